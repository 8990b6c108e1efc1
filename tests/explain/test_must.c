/* `fuse must` and `fuse never`: what they ask of a plan, where they give way, and that printing
 * keeps them. */
#include "explain/must_check.h"

#include "lib/plans.h"

#include <criterion/criterion.h>

static PricedPlan plan_of(Arena *arena, const char *source, TargetId target) {
    const Module *module = plans_parse(arena, source);
    PricedPlan priced =
        plans_price(arena, module, 0, false, target, card_of_target(target_get(target)), NULL);
    cr_assert(priced.plan, "%s", source);
    return priced;
}

/* Values that stand in a `fuse never` block in one of many ways. */
static const char *const never_blocks[] = {
    /* elementwise, among what would fuse */
    "graph g(x: f32[64]) -> (y: f32[64]) {\n  a = exp(x)\n  fuse never { b = a * 2.0 }\n"
    "  y = relu(b)\n}",
    /* reductions over the same rows */
    "graph g(x: f32[64, 100]) -> (y: f32[64, 100]) {\n"
    "  fuse never { m = max(x, axis=1, keep=true) }\n  y = (x - m) / sum(x - m, axis=1, "
    "keep=true)\n}",
    /* all that a def expands to */
    "graph g(x: f32[64, 100]) -> (y: f32[64, 100]) {\n  a = -x\n  fuse never { s = softmax(a, "
    "axis=1) }\n"
    "  y = s + 1.0\n}",
    /* matmuls that would pass a value in registers or shared memory */
    "graph g(x: bf16[256, 256], u: bf16[256, 256], v: bf16[256, 256]) -> (y: bf16[256, 256]) {\n"
    "  fuse never { a = x @ u }\n  y = a * (x @ v)\n}",
    /* views and index tensors */
    "graph g(x: f32[8, 8]) -> (y: f32[8, 8]) {\n  i = cast(iota([8, 8], axis=0), f32)\n"
    "  fuse never { t = transpose(x) + i }\n  y = -t\n}",
    /* outputs, one of them twice */
    "graph g(x: f32[64]) -> (a: f32[64], y: f32[64]) {\n  fuse never { a = exp(x); y = a + x }\n}",
    /* costly work in several places */
    "graph g(x: f32[100]) -> (y: f32[98]) {\n  fuse never { e = exp(x) }\n  y = e[2:] + e[:-2]\n}",
    /* two blocks side by side */
    "graph g(x: f32[64]) -> (y: f32[64]) {\n  fuse never { a = exp(x) }\n  fuse never { y = a + x "
    "}\n}",
};

static bool is_in_never_block(const Plan *plan, NodeId id) {
    return id != NODE_NONE && graph_block(plan->graph, id, BLOCK_NEVER);
}

Test(must, never_fuses_an_op_of_the_block) {
    for (size_t i = 0; i < sizeof never_blocks / sizeof never_blocks[0]; i++) {
        Arena *arena = arena_new(NULL);
        const Plan *plan = plan_of(arena, never_blocks[i], TARGET_SM_90A).plan;
        uint32_t n_checked = 0;
        for (uint32_t e = 0; e < plan->edges.n; e++) {
            const Edge *edge = &plan->edges.data[e];
            if (!is_in_never_block(plan, edge->producer) &&
                !is_in_never_block(plan, edge->consumer))
                continue;
            if (edge->reason == REASON_SOURCE || edge->consumer == NODE_NONE) continue;
            cr_expect(edge->verdict == EDGE_STORED && edge->reason == REASON_NEVER,
                      "edge %u is %s in\n%s", e, reason_info(edge->reason)->id, never_blocks[i]);
            n_checked++;
        }
        cr_expect(n_checked > 0, "%s", never_blocks[i]);
        for (uint32_t b = 0; b < plan->buffers.n; b++)
            cr_expect(plan->buffers.data[b].space == BUFFER_GLOBAL, "%s", never_blocks[i]);
        arena_free(arena);
    }
}

/* `m` passes within a launch to its reader `x - m`. A `fuse never` block holds another reader of
 * `m` in a kernel of its own: that edge is stored, and its reason is the block. */
Test(must, a_value_that_passes_in_shared_memory_is_stored_for_a_never_block) {
    Arena *arena = arena_new(NULL);
    const Plan *plan = plan_of(arena,
                               "graph g(x: f32[8, 8]) -> (y: f32[8], z: f32[8]) {\n"
                               "  m = max(x, axis=1)\n  y = max(x - m, axis=1)\n"
                               "  fuse never { z = leaky_relu(2.0, m) }\n}",
                               TARGET_SM_90A)
                           .plan;
    uint32_t n_off_memory = 0, n_never = 0;
    for (uint32_t e = 0; e < plan->edges.n; e++) {
        const Edge *edge = &plan->edges.data[e];
        n_off_memory += edge->reason == REASON_SAME_LAUNCH && edge->verdict == EDGE_FUSED;
        if (edge->consumer == NODE_NONE || !is_in_never_block(plan, edge->consumer)) continue;
        n_never += edge->reason == REASON_NEVER && edge->verdict == EDGE_STORED;
    }
    cr_expect_eq(n_off_memory, 1);
    cr_expect_eq(n_never, 1);
    arena_free(arena);
}

typedef struct Must {
    const char *source;
    TargetId target;
    bool is_kept;
} Must;

static const char gated[] =
    "graph g(x: bf16[256, 256], u: bf16[256, 256], v: bf16[256, 256]) -> (y: bf16[256, 256]) {\n"
    "  fuse must { y = silu(x @ u) * (x @ v) }\n}";

static const Must musts[] = {
    {"graph g(x: f32[64, 100]) -> (y: f32[64, 100]) {\n  fuse must { y = softmax(x, axis=1) }\n}",
     TARGET_CPU, true},
    /* a value in shared memory counts as fused, where a launch passes it */
    {gated, TARGET_SM_80, true},
    {gated, TARGET_CPU, true},
    /* worth storing, but held by the block */
    {"graph g(x: f32[100]) -> (y: f32[98]) {\n  fuse must { e = exp(x); y = e[2:] + e[:-2] }\n}",
     TARGET_SM_90A, true},
    /* a matmul passes the value in the block within the launch, not a later value */
    {"graph g(x: bf16[32, 31, 7], u: bf16[7, 31], v: bf16[7, 31], i: i32[32])"
     " -> (y: bool[32, 31, 31]) {\n  fuse must { a = x @ u; s = sigmoid(a) }\n"
     "  b = x @ v\n  y = gather(b, i, axis=0) > s * b\n}",
     TARGET_SM_80, true},
    /* whole rows in shared memory, though the op of the block is not the first of its kernel */
    {"graph g(x: bf16[4096, 512], w: bf16[512, 31], z: f32[4096, 31])"
     " -> (v: f32[4096, 31], y: f32[4096, 31]) {\n"
     "  m = min(z, axis=1, keep=true)\n  fuse must { v = cast(x @ w, f32); c = abs(v) }\n"
     "  y = c - max(c, axis=1, keep=true) + m\n}",
     TARGET_SM_80, true},
    /* what leaves the block may be stored besides */
    {"graph g(x: f32[64]) -> (h: f32[64], y: f32[64]) {\n  fuse must { h = exp(x); y = h + x }\n}",
     TARGET_SM_90A, true},
    /* ... and is computed again where the block's other kernels read it */
    {"graph g(x: f32[4, 8], w: f32[8]) -> (h: f32[4, 8], y: f32[4]) {\n"
     "  fuse must { h = relu(x); y = h @ w }\n}",
     TARGET_CPU, true},
    {"graph g(x: f16[64, 64], w: f16[64, 64]) -> (h: f16[64, 64], y: f16[64, 64]) {\n"
     "  fuse must { h = transpose(x); y = h @ w }\n}",
     TARGET_SM_90A, true},
    {"graph g(x: f16[64, 64]) -> (h: f16[64, 64], y: f16[64, 66]) {\n"
     "  fuse must { h = x * 2.0; y = pad(h, low=[0, 1], high=[0, 1]) }\n}",
     TARGET_SM_80, true},
    {"dim B in 3..300\ngraph g(x: f64[13, 2, B])"
     " -> (p: f64[13, 2, B], q: f64[13, 1, B], y: f64[13, 1, B]) {\n  p = x * 2.0\n"
     "  fuse must { q = p[:, 1:]; y = softmax(q, axis=[0, 1, 2]) }\n}",
     TARGET_CPU, true},
    /* ... also where a price would have it stored for who is outside */
    {"graph g(x: f32[16, 16], a: f32[16, 7], b: f32[16, 7]) -> (y: f32[16, 7]) {\n"
     "  fuse must { m = x * 2.0; p = m @ a }\n  y = silu(p) * (m @ b)\n}",
     TARGET_CPU, true},
    /* passes over few long rows are a matter of price */
    {"graph g(x: f32[100000]) -> (y: f32[100000]) {\n  fuse must { y = softmax(x) }\n}",
     TARGET_SM_90A, true},
    {"graph g(x: f32[100000]) -> (y: f32[100000]) {\n  fuse must { y = softmax(x) }\n}", TARGET_CPU,
     true},
    /* a value that kernels of a one-block launch pass may be an output */
    {"graph g(x: f32[8, 4], a: f32[4, 8], w: f32[8, 1]) -> (p: f32[8, 8], y: f32[8, 1]) {\n"
     "  fuse must { p = x @ a; q = silu(p); y = q @ w }\n}",
     TARGET_SM_80, true},
    /* not what rests on a reduction that would be stored for that alone */
    {"graph g(x: bf16[512, 256], u: bf16[256, 256]) -> (n: bf16[512, 256], y: bf16[512, 256]) {\n"
     "  fuse must { n = softmax(x); y = n @ u }\n}",
     TARGET_CPU, false},
    /* edges across the border are no concern of it */
    {"graph g(x: f32[64, 100]) -> (y: f32[100]) {\n  s = softmax(x, axis=1)\n"
     "  fuse must { t = s * 2.0; y = sum(t, axis=0) }\n}",
     TARGET_SM_90A, true},
    /* what a block makes for others is stored where that keeps the block */
    {"graph g(x: f32[4096, 1024]) -> (z: f32[1024]) {\n"
     "  fuse must { y = softmax(x) }\n  z = sum(y, axis=0)\n}",
     TARGET_SM_90A, true},
    {"graph g(x: f32[4096, 1024]) -> (z: f32[1024]) {\n"
     "  fuse must { y = softmax(x) }\n  z = sum(y, axis=0)\n}",
     TARGET_CPU, true},
    /* small kernels share a one-block launch, if their sizes are known to be small */
    {"graph g(x: f32[8, 8]) -> (y: f32[8, 8]) {\n  fuse must { m = max(x, axis=1); y = x - m }\n}",
     TARGET_SM_90A, true},
    {"dim B in 2..64\ngraph g(x: f32[B, B]) -> (y: f32[B, B]) {\n"
     "  fuse must { m = max(x, axis=1); y = x - m }\n}",
     TARGET_SM_90A, false},
};

Test(must, must_is_kept_or_reported) {
    for (size_t i = 0; i < sizeof musts / sizeof musts[0]; i++) {
        Arena *arena = arena_new(NULL);
        Diags diags = {.arena = arena};
        const Plan *plan = plan_of(arena, musts[i].source, musts[i].target).plan;
        cr_expect(must_check(plan, NULL, NULL, &diags) == musts[i].is_kept, "%s", musts[i].source);
        cr_expect((diags.n_errors == 0) == musts[i].is_kept);
        for (const Diag *diag = diags.first; diag; diag = diag->next)
            cr_expect(diag->severity != SEVERITY_ERROR || diag->id == DIAG_FUSE_MUST);
        arena_free(arena);
    }
}

/* A price does not speak against the source's own kernel either. */
Test(must, a_kernel_may_go_over_few_long_rows) {
    Arena *arena = arena_new(NULL);
    const Module *module = plans_parse(
        arena, "graph g(x: f32[100000]) -> (y: f32[100000]) {\n  kernel k { y = softmax(x) }\n}");
    cr_expect_eq(plans_fuse(arena, module, 0, false)->kernels.n, 1);
    arena_free(arena);
}

/* The statement is no op: the output stands for it. */
Test(must, a_copy_that_its_kernel_cannot_contain_is_shown_at_the_output) {
    Arena *arena = arena_new(NULL);
    const Module *module =
        plans_parse(arena, "graph g(x: f32[8, 8], t: f32[4])\n-> (y: f32[8, 8], z: f32[4]) {\n"
                           "  kernel k { z = t; y = x + 1.0 }\n}");
    const char *errors = plans_refusal(arena, module, 0);
    cr_expect(strstr(errors, "test.g:2:19: error: this cannot be in its `kernel` block"), "%s",
              errors);
    arena_free(arena);
}

Test(must, printed_graphs_keep_them) {
    for (size_t i = 0; i < sizeof never_blocks / sizeof never_blocks[0]; i++) {
        Arena *arena = arena_new(NULL);
        Module *module = plans_parse(arena, never_blocks[i]);
        Text first = {.arena = arena}, second = first;
        module_print(module, &first);
        Module *again = plans_parse(arena, text_str(&first));
        module_print(again, &second);
        cr_expect_str_eq(text_str(&first), text_str(&second));
        cr_expect(strstr(text_str(&first), "fuse never {"), "%s", text_str(&first));
        arena_free(arena);
    }
}
