/* The code of dual GEMMs: two matmuls in one launch, with every engine, dtype and size, and with
 * different values stored besides the result. The assembler accepts the code almost without spills.
 * A block that reads its own stores uses no non-coherent loads. Tests that run on a card check
 * results. */
#include "lib/compiled.h"
#include "plan/launch.h"

#include <criterion/criterion.h>

/* Per thread, for values that live across both matmuls. */
enum { MAX_SPILL_BYTES = 64 };

typedef struct Pair {
    const char *dtype, *m;
    bool row_cache; /* the gate's argument is an output too */
    bool is_half;   /* both matmuls are halves of one matmul */
} Pair;

static const Pair pairs[] = {
    {"f32", "1", false, false},  {"f64", "1", true, false},    {"bf16", "1", false, false},
    {"f16", "1", true, false},   {"f32", "4096", true, false}, {"f32", "B", false, false},
    {"f64", "512", true, false}, {"bf16", "512", true, false}, {"f16", "B", true, false},
    {"f32", "B", false, true},   {"f64", "512", true, true},   {"bf16", "1", false, true},
    {"bf16", "512", true, true}, {"f16", "B", false, true},
};

static const char *source_of(Arena *arena, const Pair *pair) {
    const char *d = pair->dtype, *m = pair->m;
    const char *kept = pair->row_cache ? str_format(arena, "g: %s[%s, 1024], ", d, m) : "";
    const char *right = pair->is_half
                            ? str_format(arena, "w: %s[512, 2048]", d)
                            : str_format(arena, "a: %s[512, 1024], b: %s[512, 1024]", d, d);
    const char *body =
        pair->is_half ? "fuse must {\n    g, u = split(x @ w, 2, axis=1)\n    y = silu(g) * u\n  }"
                      : "g = x @ a\n  y = silu(g) * (x @ b)";
    return str_format(arena,
                      "dim B in 1..8192\ngraph p(x: %s[%s, 512], %s) -> (%sy: %s[%s, 1024]) {\n"
                      "  %s\n}\n",
                      d, m, right, kept, d, m, body);
}

/* Counts loads of memory that the launch writes, which may not be non-coherent. */
static uint32_t n_loads_of_written(const char *text) {
    return ptx_count(text, "ld.global") - ptx_count(text, "ld.global.nc");
}

static void check(const Pair *pair, TargetId target) {
    Arena *arena = arena_new(NULL);
    const char *source = source_of(arena, pair), *name = target_get(target)->name;
    Compiled compiled = compiled_new(source, target);
    const Plan *plan = compiled.plan;
    Launch launch = *plan_launch_of(plan, 0);
    cr_assert(launch.n == 2 && plan->kernels.n == 2, "%s\n%s", name, source);
    bool goes_through_memory = false;
    for (uint32_t i = 0; i < launch_kernel(plan, &launch, 1)->args.n; i++) {
        uint32_t buffer = launch_kernel(plan, &launch, 1)->args.data[i];
        goes_through_memory =
            goes_through_memory || (kernel_stores_to(launch_kernel(plan, &launch, 0), buffer) &&
                                    plan->buffers.data[buffer].space == BUFFER_GLOBAL);
    }
    for (uint32_t v = 0; v < launch_kernel(plan, &launch, 0)->n_variants; v++) {
        const Variant *variant = &launch_kernel(plan, &launch, 0)->variants[v];
        bool reads = goes_through_memory && sched_engine(&variant->sched) != GEMM_WGMMA;
        if (variant->is_shared) continue;
        const char *text = compiled_function(&compiled, launch_kernel(plan, &launch, 0), v);
        if (!target_get(target)->has_pdl) /* where inputs may change, too, all loads are such */
            cr_expect_eq(n_loads_of_written(text) > 0, reads, "%s, %s\n%s", name, variant->symbol,
                         source);
    }
    PtxReport report;
    bool is_assembled = compiled_assemble(&compiled, (PtxOptions){0}, &report);
    for (uint32_t i = 0; is_assembled && i < report.functions.n; i++)
        cr_expect_leq(report.functions.data[i].spill_store_bytes, MAX_SPILL_BYTES, "%s\n%s", name,
                      source);
    cr_expect(!is_assembled || report.n_remarks == 0, "%s\n%s", name, source);
    compile_free(&compiled);
    arena_free(arena);
}

Test(dual_gemm, every_engine_makes_both_in_one_launch, .timeout = 300) {
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        check(&pairs[i], TARGET_SM_80);
        check(&pairs[i], TARGET_SM_90A);
    }
}
