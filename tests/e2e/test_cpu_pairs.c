/* CPU products of small integers, which multiply two steps of k at a time: exact, to the last bit
 * of a sum that wraps, for any extents, layouts, levels and numbers of threads. */
#include "lib/compiled.h"
#include "lib/rig.h"
#include "random/rng.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

typedef struct Extents {
    int64_t m, n, k;
} Extents;

/* Odd and even k, around lanes, blocks of k (384 steps) and prepared panels. */
static const Extents all_extents[] = {{1, 1, 1},     {17, 33, 1},  {20, 40, 2},   {14, 32, 384},
                                      {60, 70, 385}, {5, 300, 63}, {300, 5, 768}, {130, 35, 771}};
enum { N_EXTENTS = sizeof all_extents / sizeof *all_extents };

static const TargetId targets[] = {TARGET_CPU, TARGET_CPU_V4, TARGET_CPU_VNNI, TARGET_CPU_AMX,
                                   TARGET_CPU_MULTI};
enum { N_TARGETS = sizeof targets / sizeof *targets };

typedef struct Case {
    Dtype a, b;
    bool is_param, lhs_trans, rhs_trans;
} Case;

static const Case cases[] = {
    {DT_I8, DT_I8, false, false, false},  {DT_I8, DT_I8, true, false, false},
    {DT_U8, DT_U8, false, true, false},   {DT_U8, DT_U8, true, false, true},
    {DT_I16, DT_I16, false, false, true}, {DT_I16, DT_I16, true, true, true}};
enum { N_CASES = sizeof cases / sizeof *cases };

static const char *case_source(Arena *arena, const Case *c, Extents e) {
    const char *a = dtype_name(c->a), *b = dtype_name(c->b);
    const char *shape = str_format(arena, "[%lld, %lld]", (long long)(c->rhs_trans ? e.n : e.k),
                                   (long long)(c->rhs_trans ? e.k : e.n));
    return str_format(
        arena,
        "graph g(a: %s[%lld, %lld]%s) -> (p: i32[%lld, %lld]) {\n%s"
        "  p = matmul(%s, %s, out=i32)\n}\n",
        a, (long long)(c->lhs_trans ? e.k : e.m), (long long)(c->lhs_trans ? e.m : e.k),
        c->is_param ? "" : str_format(arena, ", b: %s%s", b, shape), (long long)e.m, (long long)e.n,
        c->is_param ? str_format(arena, "  param b: %s%s = \"b\"\n", b, shape) : "",
        c->lhs_trans ? "transpose(a, [1, 0])" : "a", c->rhs_trans ? "transpose(b, [1, 0])" : "b");
}

/* Often the least and the greatest numbers: two products of the least i16 overflow 32 bits. */
static void fill(Rig *rig, const char *name, Dtype dtype, uint64_t seed) {
    size_t n_bytes, size = dtype_bytes(dtype);
    uint8_t *data = rig_contents(rig, name, &n_bytes);
    Rng rng = rng_new(seed);
    for (size_t at = 0; at < n_bytes; at += size) {
        uint64_t bits = rng_below(&rng, 3) ? rng_below(&rng, 1 << 16) : 0x8080;
        if (dtype == DT_I16 && rng_below(&rng, 2)) bits = 0x8000;
        memcpy(data + at, &bits, size);
    }
}

static uint32_t element(const Rig *rig, const char *name, Dtype dtype, int64_t at) {
    size_t n_bytes;
    const uint8_t *data = rig_result(rig, name, &n_bytes) + (size_t)at * dtype_bytes(dtype);
    return (uint32_t)dtype_load_int(dtype, data);
}

static void check_results(const Rig *rig, const Case *c, Extents e, const char *what) {
    for (int64_t row = 0; row < e.m; row++)
        for (int64_t column = 0; column < e.n; column++) {
            uint32_t sum = 0;
            for (int64_t k = 0; k < e.k; k++)
                sum += element(rig, "a", c->a, c->lhs_trans ? k * e.m + row : row * e.k + k) *
                       element(rig, "b", c->b, c->rhs_trans ? column * e.k + k : k * e.n + column);
            uint32_t got = element(rig, "p", DT_I32, row * e.n + column);
            cr_assert_eq(got, sum, "%s %s %lldx%lldx%lld%s at (%lld, %lld)", what, dtype_name(c->a),
                         (long long)e.m, (long long)e.n, (long long)e.k,
                         c->is_param ? " param" : "", (long long)row, (long long)column);
        }
}

static void check_level(const Case *c, Extents e, const Compiled *compiled, const char *level,
                        const char *what) {
    RigOptions options = RIG_OPTIONS_INIT;
    options.program.cpu_level = level;
    options.program.n_threads = 1 + (int32_t)(e.k % 3);
    options.program.no_weights = true;
    options.is_unaligned = e.k % 2 == 1;
    Rig rig;
    cr_assert(rig_open(&rig, compiled->bytes, compiled->n_bytes, NULL, &options) &&
                  rig_place(&rig, compiled->module->dims, NULL),
              "%s", rig.error);
    fill(&rig, "a", c->a, 1);
    fill(&rig, "b", c->b, 2);
    cr_assert(rig_run(&rig, 0x7F), "%s", rig.error);
    check_results(&rig, c, e, what);
    rig_close(&rig);
}

Test(cpu_pairs, products_of_small_integers_are_exact, .timeout = 180) {
    for (uint32_t i = 0; i < N_CASES * N_EXTENTS * N_TARGETS; i++) {
        Arena *arena = arena_new(NULL);
        const Case *c = &cases[i % N_CASES];
        Extents e = all_extents[i / N_CASES % N_EXTENTS];
        const Target *target = target_get(targets[i / N_CASES / N_EXTENTS]);
        Compiled compiled =
            compiled_new(case_source(arena, c, e), (TargetId)(targets[i / N_CASES / N_EXTENTS]));
        for (uint32_t l = 0; l < target_n_levels(target); l++) {
            const Target *level = target_level(target, l);
            if (compile_target_runs(level))
                check_level(c, e, &compiled, level == target ? NULL : level->name, level->name);
            else if (i == 0)
                printf("SKIPPED this CPU cannot run %s\n", level->name);
        }
        compile_free(&compiled);
        arena_free(arena);
    }
}

/* VNNI multiplies and adds in one instruction; a product of floats has no code of its own for it.
 */
Test(cpu_pairs, instructions_are_those_of_the_level) {
    static const char source[] = "graph g(a: i8[64, 64], b: i8[64, 64]) -> (p: i32[64, 64]) {\n"
                                 "  p = matmul(a, b, out=i32)\n}\n";
    static const char floats[] = "graph g(a: f32[64, 64], b: f32[64, 64]) -> (p: f32[64, 64]) {\n"
                                 "  p = a @ b\n}\n";
    Compiled compiled = compiled_new(source, TARGET_CPU_MULTI);
    const Kernel *kernel = &compiled.plan->kernels.data[0];
    cr_expect_str_eq(predicate_level(&kernel->variants->predicate), "cpu-amx");
    compile_free(&compiled);
    compiled = compiled_new(floats, TARGET_CPU_MULTI);
    kernel = &compiled.plan->kernels.data[0];
    cr_expect_str_eq(predicate_level(&kernel->variants->predicate), "cpu-v4");
    compile_free(&compiled);
}
