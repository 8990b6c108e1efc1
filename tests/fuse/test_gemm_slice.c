/* Matmul slices: slices of a matmul that one op reads together become matmuls of their own, in one
 * launch if the price agrees; other slices are read from the stored matmul. Dumps of such plans are
 * programs for the same plans. Tests that run on a card check results. */
#include "explain/explain.h"

#include "lib/plans.h"

#include <criterion/criterion.h>
#include <string.h>

typedef struct Case {
    const char *source; /* after the dims */
    TargetId target;
    uint32_t n_launches, n_slices;
} Case;

static const char *const dims_text =
    "dim M in 1..4096\ndim N in 8..4096 mult 8\ndim L in 1..4096\n";

static const Case cases[] = {
    {"graph g(x: bf16[M, 256], w: bf16[256, 1024]) -> (y: bf16[M, 512]) {\n"
     "  h = x @ w\n  a, b = split(h, 2, axis=1)\n  y = silu(a) * b\n}\n",
     TARGET_SM_90A, 1, 2},
    {"graph g(x: f32[M, 200], w: f32[200, 400]) -> (y: f32[M, 200]) {\n"
     "  h = x @ w\n  a, b = split(h, 2, axis=1)\n  y = silu(a) * b\n}\n",
     TARGET_CPU, 1, 2},
    {"graph g(x: bf16[1, 1024], w: bf16[1024, 4096]) -> (y: bf16[1, 2048]) {\n"
     "  h = x @ w\n  a, b = split(h, 2, axis=1)\n  y = silu(a) * b\n}\n",
     TARGET_CPU, 1, 2},
    /* work on the whole before it is sliced */
    {"graph g(x: bf16[M, 256], w: bf16[256, 1024], c: bf16[1024]) -> (y: bf16[M, 512]) {\n"
     "  h = relu(x @ w + c)\n  a, b = split(h, 2, axis=1)\n  y = silu(a) * b\n}\n",
     TARGET_SM_90A, 1, 2},
    {"graph g(x: f16[M, 256], w: f16[256, 2 * N]) -> (y: f16[M, N]) {\n"
     "  h = x @ w\n  a, b = split(h, 2, axis=1)\n  y = silu(a) * b\n}\n",
     TARGET_SM_90A, 1, 2},
    {"graph g(x: bf16[M, 256], w: bf16[1024, 256]) -> (y: bf16[M, 512]) {\n"
     "  h = x @ transpose(w)\n  a, b = split(h, 2, axis=1)\n  y = silu(a) * b\n}\n",
     TARGET_SM_90A, 1, 2},
    /* one of them is an output too */
    {"graph g(x: bf16[M, 256], w: bf16[256, 1024]) -> (a: bf16[M, 512], y: bf16[M, 512]) {\n"
     "  h = x @ w\n  a, b = split(h, 2, axis=1)\n  y = silu(a) * b\n}\n",
     TARGET_SM_90A, 1, 2},
    /* three of them */
    {"graph g(x: bf16[M, 256], w: bf16[256, 1536]) -> (y: bf16[M, 512]) {\n"
     "  h = x @ w\n  a, b, c = split(h, 3, axis=1)\n  y = silu(a) * b + c\n}\n",
     TARGET_SM_90A, 1, 3},
    /* one slice alone: its columns are all that is multiplied */
    {"graph g(x: bf16[M, 256], w: bf16[256, 512]) -> (y: bf16[M, 128]) {\n"
     "  h = relu(x @ w)\n  y = h[:, 128:256]\n}\n",
     TARGET_CPU, 1, 1},
    /* one after the other in the same blocks they would take longer; `fuse must` insists */
    {"graph g(x: bf16[M, 256], w: bf16[256, 1024]) -> (y: bf16[M, 512]) {\n"
     "  h = x @ w\n  a, b = split(h, 2, axis=1)\n  y = silu(a) * b\n}\n",
     TARGET_SM_80, 2, 0},
    {"graph g(x: bf16[M, 256], w: bf16[256, 512]) -> (y: bf16[M, 256]) {\n"
     "  fuse must {\n    h = x @ w\n    a, b = split(h, 2, axis=1)\n    y = silu(a) * b\n  }\n}\n",
     TARGET_SM_80, 1, 2},
    {"graph g(x: bf16[1, 1024], w: bf16[1024, 4096]) -> (y: bf16[1, 2048]) {\n"
     "  h = x @ w\n  a, b = split(h, 2, axis=1)\n  y = silu(a) * b\n}\n",
     TARGET_SM_90A, 2, 0},
    {"graph g(x: bf16[1, 1024], w: bf16[1024, 4096]) -> (y: bf16[1, 2048]) {\n"
     "  fuse must {\n    h = x @ w\n    a, b = split(h, 2, axis=1)\n    y = silu(a) * b\n  }\n}\n",
     TARGET_SM_90A, 1, 2},
    {"graph g(x: f32[M, 200], w: f32[200, 400]) -> (y: f32[M, 200]) {\n"
     "  fuse must {\n    h = x @ w\n    a, b = split(h, 2, axis=1)\n    y = silu(a) * b\n  }\n}\n",
     TARGET_SM_90A, 1, 2},
    /* along the rows, and along batches */
    {"graph g(x: f16[2 * M, 256], w: f16[256, 512]) -> (y: f16[M, 512]) {\n"
     "  fuse must {\n    h = x @ w\n    a, b = split(h, 2, axis=0)\n    y = sigmoid(a) * b\n  "
     "}\n}\n",
     TARGET_SM_80, 1, 2},
    {"graph g(x: bf16[2, M, 256], w: bf16[2, 256, 512]) -> (y: bf16[1, M, 512]) {\n"
     "  fuse must {\n    h = x @ w\n    a, b = split(h, 2, axis=0)\n    y = sigmoid(a) * b\n  "
     "}\n}\n",
     TARGET_SM_80, 1, 2},
    /* read as they were: the whole is an output, or is read otherwise too */
    {"graph g(x: bf16[M, 256], w: bf16[256, 1024]) -> (h: bf16[M, 1024], y: bf16[M, 512]) {\n"
     "  h = x @ w\n  a, b = split(h, 2, axis=1)\n  y = silu(a) * b\n}\n",
     TARGET_SM_90A, 2, 0},
    {"graph g(x: bf16[M, 256], w: bf16[256, 1024]) -> (s: bf16[M], y: bf16[M, 512]) {\n"
     "  h = x @ w\n  a, b = split(h, 2, axis=1)\n  s = sum(h, axis=1)\n  y = silu(a) * b\n}\n",
     TARGET_SM_90A, 3, 0},
    /* slices that begin within an access, or may, and slices with steps */
    {"graph g(x: bf16[M, 256], w: bf16[256, 1000]) -> (y: bf16[M, 500]) {\n"
     "  h = x @ w\n  a, b = split(h, 2, axis=1)\n  y = silu(a) * b\n}\n",
     TARGET_SM_90A, 2, 0},
    {"graph g(x: bf16[M, 256], w: bf16[256, 2 * L]) -> (y: bf16[M, L]) {\n"
     "  h = x @ w\n  a, b = split(h, 2, axis=1)\n  y = silu(a) * b\n}\n",
     TARGET_SM_80, 2, 0},
    {"graph g(x: bf16[M, 256], w: bf16[256, 1024]) -> (y: bf16[M, 512]) {\n"
     "  h = x @ w\n  y = silu(h[:, ::2]) * h[:, 1::2]\n}\n",
     TARGET_SM_90A, 2, 0},
    /* slices that overlap would be multiplied twice */
    {"graph g(x: bf16[M, 256], w: bf16[256, 1024]) -> (y: bf16[M, 768]) {\n"
     "  h = x @ w\n  y = silu(h[:, :768]) * h[:, 256:]\n}\n",
     TARGET_SM_90A, 2, 0},
    {"graph g(x: bf16[M, 256], w: bf16[256, 1024]) -> (y: bf16[M, 512]) {\n"
     "  h = x @ w\n  fuse never { a = h[:, :512] }\n  y = silu(a) * h[:, 512:]\n}\n",
     TARGET_SM_90A, 3, 0},
    /* one matmul stores slices that no op reads together */
    {"graph g(x: bf16[M, 256], w: bf16[256, 1024]) -> (a: bf16[M, 512], b: bf16[M, 512]) {\n"
     "  a, b = split(x @ w, 2, axis=1)\n}\n",
     TARGET_SM_90A, 1, 0},
};

static uint32_t n_slices(const Plan *plan) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < plan->edges.n; i++)
        n += plan->edges.data[i].reason == REASON_MATMUL_SLICE &&
             plan->edges.data[i].verdict == EDGE_FUSED;
    return n;
}

static PricedPlan price(Arena *arena, const Module *module, TargetId target) {
    return plans_price(arena, module, 0, false, target, card_of_target(target_get(target)), NULL);
}

static const char *dump(Arena *arena, const Module *module, const Plan *plan) {
    Module shown = *module;
    Text text = {.arena = arena};
    memset(&shown.graphs, 0, sizeof shown.graphs);
    vec_push(arena, &shown.graphs, explain_fused_graph(arena, module->strings, plan));
    module_print(&shown, &text);
    return text_str(&text);
}

Test(gemm_slice, slices_that_meet_are_matmuls_of_one_launch) {
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const Case *c = &cases[i];
        Arena *arena = arena_new(NULL);
        const char *source = str_format(arena, "%s%s", dims_text, c->source);
        Module *module = plans_parse(arena, source);
        PricedPlan priced = price(arena, module, c->target);
        cr_expect_eq(priced.cost->n_launches, c->n_launches, "%u launches, %s\n%s",
                     priced.cost->n_launches, target_get(c->target)->name, source);
        cr_expect_eq(n_slices(priced.plan), c->n_slices, "%u slices, %s\n%s", n_slices(priced.plan),
                     target_get(c->target)->name, source);
        arena_free(arena);
    }
}

Test(gemm_slice, dumps_are_programs_for_the_same_plan) {
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const Case *c = &cases[i];
        Arena *arena = arena_new(NULL);
        Module *module = plans_parse(arena, str_format(arena, "%s%s", dims_text, c->source));
        PricedPlan priced = price(arena, module, c->target);
        const char *once = dump(arena, module, priced.plan);
        Module *read = plans_parse(arena, once);
        PricedPlan again = price(arena, read, c->target);
        cr_expect_str_eq(dump(arena, read, again.plan), once);
        cr_expect_eq(again.cost->n_launches, priced.cost->n_launches, "%u launches of\n%s",
                     again.cost->n_launches, once);
        arena_free(arena);
    }
}

/* The halves of the rhs are read once each, and nothing is multiplied twice. */
Test(gemm_slice, no_byte_and_no_column_is_added) {
    Arena *arena = arena_new(NULL);
    Module *module = plans_parse(arena, str_format(arena, "%s%s", dims_text, cases[0].source));
    PricedPlan priced = price(arena, module, TARGET_SM_90A);
    const Plan *plan = priced.plan;
    DimTab *dims = plan->graph->dims;
    cr_assert_eq(plan->kernels.n, 2);
    DimId read = dim_const(dims, 0);
    for (uint32_t k = 0; k < 2; k++) {
        const Kernel *kernel = &plan->kernels.data[k];
        const Scalar *operand = scalar_get(kernel->scalars, kernel->reduces.data[0].rhs);
        IndexTab *tab = scalartab_indices(kernel->scalars);
        cr_expect(dim_equals_const(dims, index_expr(tab, operand->index).offset, 512 * k));
        cr_expect(dim_equals_const(dims, index_axis_extent(tab, gemm_axis_n(kernel)), 512));
        read = dim_add(dims, read, kernel_buffer_bytes(plan, kernel, operand->buffer));
    }
    cr_expect(dim_equals_const(dims, read, 256 * 1024 * 2));
    double least = priced.cost->least_bytes;
    cr_expect_float_eq(priced.cost->read_bytes + priced.cost->written_bytes, least, least * 0.2);
    arena_free(arena);
}

/* The sliced value depends on several matmuls, of which at most one is computed for the slice
 * alone, and on values of other kernels. */
static const char *const sliced[] = {
    "x @ a",
    "(x @ a) + (x @ b)",
    "silu(x @ a) * (x @ b)",
    "(x @ a) + (y @ b)",
    "(x @ a) + (x @ b) * (y @ a)",
    "(x @ a) * softmax(y @ b)",
    "(x @ a) + mean(y, axis=1, keep=true)",
    "relu((x @ a) - sum(y, axis=0)[:16])",
};

typedef struct Reader {
    const char *text, *type;
} Reader;

static const Reader readers[] = {
    {"softmax(h[:, :-1])", "f32[8, 15]"}, {"sum(h[:, 1:], axis=1)", "f32[8]"},
    {"sum(h[2:], axis=0)", "f32[16]"},    {"argmax(h[:, :-1], axis=1)", "i32[8]"},
    {"transpose(h[:, :8])", "f32[8, 8]"}, {"h[0] @ w", "f32[4]"},
    {"h[:, :-1] @ w[:-1]", "f32[8, 4]"},  {"h[:, ::2] @ w[:8]", "f32[8, 4]"},
    {"exp(h[:, 3:7])", "f32[8, 4]"},
};

Test(gemm_slice, whatever_reads_a_slice_of_matmuls_compiles, .timeout = 120) {
    static const TargetId targets[] = {TARGET_CPU, TARGET_SM_80, TARGET_SM_90A};
    for (size_t i = 0; i < sizeof sliced / sizeof *sliced; i++)
        for (size_t k = 0; k < sizeof readers / sizeof *readers; k++)
            for (size_t t = 0; t < sizeof targets / sizeof *targets; t++) {
                Arena *arena = arena_new(NULL);
                const char *source =
                    str_format(arena,
                               "graph g(x: f32[8, 24], y: f32[8, 24], a: f32[24, 16], "
                               "b: f32[24, 16], w: f32[16, 4]) -> (z: %s) {\n"
                               "  h = %s\n  z = %s\n}\n",
                               readers[k].type, sliced[i], readers[k].text);
                PricedPlan priced = price(arena, plans_parse(arena, source), targets[t]);
                cr_expect_not_null(priced.plan, "%s\n%s", target_get(targets[t])->name, source);
                arena_free(arena);
            }
}
