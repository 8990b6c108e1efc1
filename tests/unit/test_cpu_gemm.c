/* CPU contractions: every element of the result is, to the bit, one chain of fused multiply-adds
 * ascending in k, whatever the extents, layouts, vector width, alignment and number of threads. */
#include "lib/compile.h"
#include "lib/rig.h"
#include "lib/rng.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct Extents {
    int64_t m, n, k;
} Extents;

/* Around lanes, tiles, blocks of k (256 and 384 steps) and units. */
static const Extents ragged[] = {
    {0, 3, 5},   {3, 0, 5},      {3, 5, 0},     {1, 1, 1},     {1, 1, 1000},   {2, 3, 17},
    {6, 16, 2},  {7, 17, 33},    {14, 32, 384}, {15, 33, 385}, {1, 300, 257},  {300, 1, 385},
    {4, 97, 13}, {100, 257, 64}, {257, 100, 7}, {5, 7, 1025},  {16, 290, 769}, {460, 35, 130}};
enum { N_RAGGED = sizeof ragged / sizeof *ragged };

/* Which operands are stored the other way round. */
typedef struct Layout {
    bool left_turned, right_turned;
} Layout;

static const Layout layouts[] = {{false, false}, {true, false}, {false, true}, {true, true}};
enum { N_LAYOUTS = sizeof layouts / sizeof *layouts };

static const TargetId targets[] = {TARGET_CPU, TARGET_CPU_V4};
enum { N_TARGETS = sizeof targets / sizeof *targets, N_THREAD_COUNTS = 3 };

typedef struct Case {
    Dtype dtype;
    Layout layout;
    const Target *target;
    const char *m, *n, *k; /* as written in the program */
} Case;

/* Both factors are read through a view where they are turned; the result is stored as it is and
 * once more with something done to it. */
static const char *case_source(Arena *arena, const Case *c) {
    const char *t = dtype_name(c->dtype);
    bool left = c->layout.left_turned, right = c->layout.right_turned;
    bool is_symbolic = strcmp(c->m, "M") == 0;
    return str_format(arena,
                      "%sgraph mm(a: %s[%s, %s], b: %s[%s, %s], bias: %s[%s])\n"
                      "    -> (p: %s[%s, %s], q: %s[%s, %s]) {\n"
                      "  p = %s @ %s\n  q = p * p + bias\n}\n",
                      is_symbolic ? "dim M in 0..2000\ndim N in 0..2000\ndim K in 0..4000\n" : "",
                      t, left ? c->k : c->m, left ? c->m : c->k, t, right ? c->n : c->k,
                      right ? c->k : c->n, t, c->n, t, c->m, c->n, t, c->m, c->n,
                      left ? "transpose(a, [1, 0])" : "a", right ? "transpose(b, [1, 0])" : "b");
}

static double element(Dtype dtype, const uint8_t *data, int64_t i) {
    float single;
    double number;
    memcpy(&single, data + (size_t)i * sizeof single, dtype == DT_F32 ? sizeof single : 0);
    if (dtype == DT_F32) return (double)single;
    memcpy(&number, data + (size_t)i * sizeof number, sizeof number);
    return number;
}

/* Products that are not exact, so that any other order of summation shows. */
static void fill(Rig *rig, const char *name, Dtype dtype, uint64_t seed) {
    size_t n_bytes, size = dtype_bytes(dtype);
    uint8_t *data = rig_contents(rig, name, &n_bytes);
    cr_assert_not_null(data);
    Rng rng = rng_new(seed);
    for (size_t at = 0; at < n_bytes; at += size) {
        double number = rng_uniform(&rng, -1, 1);
        float single = (float)number;
        if (dtype == DT_F32)
            memcpy(data + at, &single, size);
        else
            memcpy(data + at, &number, size);
    }
}

static double chain(const Rig *rig, const Case *c, Extents e, int64_t row, int64_t column) {
    size_t n_bytes;
    const uint8_t *a = rig_result(rig, "a", &n_bytes), *b = rig_result(rig, "b", &n_bytes);
    double sum = 0;
    for (int64_t k = 0; k < e.k; k++) {
        double left = element(c->dtype, a, c->layout.left_turned ? k * e.m + row : row * e.k + k);
        double right =
            element(c->dtype, b, c->layout.right_turned ? column * e.k + k : k * e.n + column);
        sum = c->dtype == DT_F32 ? (double)fmaf((float)left, (float)right, (float)sum)
                                 : fma(left, right, sum);
    }
    return sum;
}

static void check_results(const Rig *rig, const Case *c, Extents e) {
    size_t n_bytes;
    const uint8_t *p = rig_result(rig, "p", &n_bytes), *q = rig_result(rig, "q", &n_bytes);
    const uint8_t *bias = rig_result(rig, "bias", &n_bytes);
    for (int64_t row = 0; row < e.m; row++)
        for (int64_t column = 0; column < e.n; column++) {
            int64_t at = row * e.n + column;
            double sum = chain(rig, c, e, row, column), add = element(c->dtype, bias, column);
            double after = c->dtype == DT_F32
                               ? (double)((float)((float)sum * (float)sum) + (float)add)
                               : sum * sum + add;
            double got_p = element(c->dtype, p, at), got_q = element(c->dtype, q, at);
            bool is_same =
                memcmp(&sum, &got_p, sizeof sum) == 0 && memcmp(&after, &got_q, sizeof after) == 0;
            cr_assert(is_same,
                      "%s %s %lldx%lldx%lld%s%s at (%lld, %lld): %a and %a, should be %a and %a",
                      c->target->name, dtype_name(c->dtype), (long long)e.m, (long long)e.n,
                      (long long)e.k, c->layout.left_turned ? " left turned" : "",
                      c->layout.right_turned ? " right turned" : "", (long long)row,
                      (long long)column, got_p, got_q, sum, after);
        }
}

/* One artifact on every shape that it takes, with 1, 2 and 3 threads. */
static void check_case(const Case *c, const Extents *extents, uint32_t n_extents) {
    Compiled compiled;
    Arena *arena = arena_new(NULL);
    const char *source = case_source(arena, c);
    bool ok = compile_source(&compiled, source, c->target, COMPILE_FUSED);
    cr_assert(ok, "%s\n%s", compiled.messages, source);
    const DimTab *dims = compiled.module->graphs.data[0]->dims;
    for (uint32_t i = 0; i < n_extents; i++) {
        RigOptions options = RIG_OPTIONS_INIT;
        options.program.n_threads = 1 + (int32_t)(i % N_THREAD_COUNTS);
        options.is_unaligned = i % 2 == 1;
        Rig rig;
        cr_assert(rig_open(&rig, compiled.bytes, compiled.n_bytes, NULL, &options), "%s",
                  rig.error);
        int64_t values[3] = {extents[i].m, extents[i].n, extents[i].k};
        cr_assert(rig_place(&rig, dims, values), "%s", rig.error);
        fill(&rig, "a", c->dtype, 1 + i);
        fill(&rig, "b", c->dtype, 1000 + i);
        fill(&rig, "bias", c->dtype, 2000 + i);
        cr_assert(rig_run(&rig, 0x7F), "%s", rig.error);
        check_results(&rig, c, extents[i]);
        rig_close(&rig);
    }
    compile_free(&compiled);
    arena_free(arena);
}

static void each_layout(Dtype dtype, void (*body)(const Case *)) {
    for (uint32_t t = 0; t < N_TARGETS; t++)
        for (uint32_t l = 0; l < N_LAYOUTS; l++) {
            Case c = {.dtype = dtype, .layout = layouts[l], .target = target_get(targets[t])};
            if (compile_target_runs(c.target)) body(&c);
        }
}

static void check_symbolic(const Case *c) {
    Case symbolic = *c;
    symbolic.m = "M", symbolic.n = "N", symbolic.k = "K";
    check_case(&symbolic, ragged, N_RAGGED);
}

/* Constant extents choose tiles of their own. */
static void check_constant(const Case *c) {
    for (uint32_t i = 0; i < N_RAGGED; i++) {
        Arena *arena = arena_new(NULL);
        Case constant = *c;
        constant.m = str_format(arena, "%lld", (long long)ragged[i].m);
        constant.n = str_format(arena, "%lld", (long long)ragged[i].n);
        constant.k = str_format(arena, "%lld", (long long)ragged[i].k);
        check_case(&constant, &ragged[i], 1);
        arena_free(arena);
    }
}

Test(cpu_gemm, f32_symbolic_extents, .timeout = 60) {
    each_layout(DT_F32, check_symbolic);
}

Test(cpu_gemm, f64_symbolic_extents, .timeout = 60) {
    each_layout(DT_F64, check_symbolic);
}

Test(cpu_gemm, f32_constant_extents, .timeout = 60) {
    each_layout(DT_F32, check_constant);
}

Test(cpu_gemm, f64_constant_extents, .timeout = 60) {
    each_layout(DT_F64, check_constant);
}
