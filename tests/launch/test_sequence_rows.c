/* Row kernels in the blocks (on a CPU: the units of work) of the matmul whose result they reduce:
 * which join, for how many columns and which engines, and that the assembler accepts the code
 * without a spill. Tests that run on a card check results (soak --shapes, sequence-rows,
 * sequence-wide and sequence-wgmma). */
#include "lib/compiled.h"
#include "plan/launch.h"

#include <criterion/criterion.h>

typedef struct Rows {
    const char *dtype, *columns, *precision, *body;
    bool is_kept; /* the plan keeps `fuse must` */
} Rows;

#define SOFTMAX "y = softmax(h, axis=1)"
#define LAYERNORM "y = layernorm(h, g, b)"
#define RMSNORM "y = rmsnorm(h, g)"

static const Rows rows[] = {
    {"bf16", "64", "full", LAYERNORM, true},  {"bf16", "128", "full", SOFTMAX, true},
    {"f16", "256", "full", LAYERNORM, true},  {"bf16", "201", "full", SOFTMAX, true},
    {"bf16", "N", "full", RMSNORM, true},     {"f32", "256", "tf32", SOFTMAX, true},
    {"f32", "64", "full", LAYERNORM, true},   {"f32", "128", "full", SOFTMAX, true},
    {"f32", "256", "full", LAYERNORM, true},  {"f32", "N", "full", SOFTMAX, true},
    {"f64", "128", "full", LAYERNORM, true},  {"bf16", "257", "full", SOFTMAX, false},
    {"f32", "264", "full", RMSNORM, false},   {"f64", "129", "full", SOFTMAX, false},
    {"bf16", "N + 1", "full", SOFTMAX, false}};

static const char *source_of(Arena *arena, const Rows *r) {
    const char *d = r->dtype, *n = r->columns;
    return str_format(arena,
                      "dim M in 1..65536\ndim N in 8..256 mult 8\n"
                      "graph r(x: %s[M, 512], w: %s[512, %s], g: %s[%s], b: %s[%s])"
                      " -> (y: %s[M, %s]) {\n  fuse must {\n"
                      "    h = matmul(x, w, precision=\"%s\")\n    %s\n  }\n}\n",
                      d, d, n, d, n, d, n, d, n, r->precision, r->body);
}

/* Checks for one launch, whose variants all have whole rows and whose last variant takes any
 * sizes. */
static void check_launch(const Plan *plan, const Rows *r, const Target *target) {
    uint32_t first = plan->kernels.n - 2; /* a copy of an operand may come before */
    Launch launch = *plan_launch_of(plan, first);
    bool has_wgmma = false;
    cr_assert(launch.n == 2, "%s[%s]", r->dtype, r->columns);
    const Kernel *matmul = launch_kernel(plan, &launch, 0),
                 *reader = launch_kernel(plan, &launch, 1);
    int64_t n = dim_hi(plan->graph->dims, kernel_n_reduced(reader));
    for (uint32_t v = 0; v < matmul->n_variants; v++) {
        const Sched *sched = &matmul->variants[v].sched, *own = &reader->variants[v].sched;
        has_wgmma = has_wgmma || sched_engine(sched) == GEMM_WGMMA;
        cr_expect(sched->gemm.tile_n >= n, "%s[%s] in %u", r->dtype, r->columns,
                  sched->gemm.tile_n);
        cr_expect(own->row.resident * own->row.threads_per_row * own->lanes >= n &&
                  own->row.threads_per_row <= 32);
        cr_expect_eq(own->threads, sched->threads);
    }
    const Variant *last = &matmul->variants[matmul->n_variants - 1];
    cr_expect(!predicate_asks_extents(&last->predicate) && !last->n_maps);
    /* The right operand of tf32 is transposed, since wgmma cannot read it otherwise. */
    bool is_half = strcmp(r->dtype, "bf16") == 0 || strcmp(r->dtype, "f16") == 0;
    cr_expect_eq(has_wgmma, target->has_wgmma && is_half, "%s[%s]", r->dtype, r->columns);
}

/* Shared memory of the function and of the launch's variants that are it. */
static void check_room(const Plan *plan, const PtxFunction *function, const Target *target) {
    uint32_t most = (target->max_cluster > 1 ? 227 : 99) * 1024;
    Launch launch = *plan_launch_of(plan, plan->kernels.n - 2);
    for (uint32_t v = 0; v < launch_kernel(plan, &launch, 0)->n_variants; v++) {
        const Variant *variant = &launch_kernel(plan, &launch, 0)->variants[v];
        if (strcmp(variant->symbol, function->name) != 0) continue;
        uint32_t bytes = launch_shared_bytes(plan, &launch, v) + variant->kept_shared_bytes;
        cr_expect_leq(bytes + function->shared_bytes, most, "%s for %s: %u + %u", function->name,
                      target->name, bytes, function->shared_bytes);
    }
}

static void check_code(const Compiled *compiled, const Target *target) {
    PtxReport report;
    bool is_assembled = compiled_assemble(compiled, (PtxOptions){0}, &report);
    for (uint32_t i = 0; is_assembled && i < report.functions.n; i++) {
        cr_expect_eq(report.functions.data[i].spill_store_bytes, 0);
        check_room(compiled->plan, &report.functions.data[i], target);
    }
    cr_expect(!is_assembled || report.n_remarks == 0);
}

static void check(const Rows *r, TargetId id) {
    Arena *arena = arena_new(NULL);
    const Target *target = target_get(id);
    const char *source = source_of(arena, r);
    Compiled compiled;
    bool ok = compile_source(&compiled, source, target, COMPILE_FUSED);
    cr_expect_eq(ok, r->is_kept, "%s for %s\n%s", compiled.messages, target->name, source);
    if (!ok)
        cr_expect(strstr(compiled.messages, "256 columns (128 of f64)"), "%s", compiled.messages);
    if (ok) {
        check_launch(compiled.plan, r, target);
        check_code(&compiled, target);
    }
    compile_free(&compiled);
    arena_free(arena);
}

Test(sequence_rows, every_width_is_one_launch, .timeout = 300) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        check(&rows[i], TARGET_SM_86);
        check(&rows[i], TARGET_SM_90A);
    }
}

typedef struct Count {
    const char *source;
    TargetId target;
    uint32_t n_launches;
} Count;

static const Count counts[] = {
    /* scores, mask and softmax in one, then the values */
    {"dim B in 1..64\ngraph a(q: bf16[B, 12, 128, 64], k: bf16[B, 12, 128, 64],"
     " v: bf16[B, 12, 128, 64], mask: bf16[128, 128]) -> (o: bf16[B, 12, 128, 64]) {\n"
     "  s = (q @ transpose(k, perm=[0, 1, 3, 2])) * 0.125 + mask\n"
     "  o = softmax(s, axis=-1) @ v\n}",
     TARGET_SM_90A, 2},
    {"dim B in 1..64\ndim T in 1..256\ngraph a(q: bf16[B, 12, T, 64], k: bf16[B, 12, T, 64],"
     " v: bf16[B, 12, T, 64]) -> (o: bf16[B, 12, T, 64]) {\n  fuse must {\n"
     "    s = (q @ transpose(k, perm=[0, 1, 3, 2])) * 0.125\n    p = softmax(s, axis=-1)\n  }\n"
     "  o = p @ v\n}",
     TARGET_SM_90A, 2},
    /* of three layers the last one's rows fit */
    {"graph m(x: bf16[4096, 784], a: bf16[784, 512], b: bf16[512, 512], c: bf16[512, 16])"
     " -> (y: bf16[4096, 16]) {\n  y = softmax(relu(relu(x @ a) @ b) @ c, axis=1)\n}",
     TARGET_SM_90A, 3},
    {"graph m(x: bf16[4096, 784], a: bf16[784, 512], b: bf16[512, 512], c: bf16[512, 16])"
     " -> (y: bf16[4096, 16]) {\n  y = softmax(relu(relu(x @ a) @ b) @ c, axis=1)\n}",
     TARGET_SM_80, 3},
    /* several outputs, several reductions */
    {"graph s(x: bf16[65536, 64], w: bf16[64, 128])"
     " -> (p: bf16[65536, 128], l: bf16[65536], k: i32[65536]) {\n  h = x @ w\n"
     "  p = softmax(h, axis=1)\n  l = logsumexp(h, axis=1)\n  k = argmax(h, axis=1)\n}",
     TARGET_SM_90A, 1},
    /* on a CPU: the last layer's; scores; not of columns that units share */
    {"graph m(x: f32[4096, 784], a: f32[784, 512], b: f32[512, 512], c: f32[512, 16])"
     " -> (y: f32[4096, 16]) {\n  y = softmax(relu(relu(x @ a) @ b) @ c, axis=1)\n}",
     TARGET_CPU, 3},
    {"graph a(q: bf16[8, 12, 128, 64], k: bf16[8, 12, 128, 64]) -> (p: bf16[8, 12, 128, 128]) {\n"
     "  p = softmax((q @ transpose(k, perm=[0, 1, 3, 2])) * 0.125, axis=-1)\n}",
     TARGET_CPU, 1},
    {"graph o(x: f32[4, 512], w: f32[512, 513]) -> (y: f32[4, 513]) {\n"
     "  y = softmax(x @ w, axis=1)\n}",
     TARGET_CPU, 2},
};

Test(sequence_rows, launches) {
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        Compiled compiled = compiled_new(counts[i].source, counts[i].target);
        const Plan *plan = compiled.plan;
        uint32_t n = plan->launches.n;
        cr_expect_eq(n, counts[i].n_launches, "%u\n%s", n, counts[i].source);
        compile_free(&compiled);
    }
}
