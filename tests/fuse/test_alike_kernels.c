/* The kernels of layers are copies of those of the first one. A plan with copies is the plan that
 * inlining makes of each group, which a plan without a memo is. */
#include "lib/plans.h"

#include "fuse/group_memo.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static const char *plan_text(const char *source, bool copies) {
    Arena *arena = arena_new(NULL), *trials = arena_new(NULL);
    Diags diags = {.arena = arena};
    const Graph *graph = plans_parse(arena, source)->graphs.data[0];
    FuseOptions options = {.has_cores = true};
    if (copies) options.memo = group_memo_new(known_groups_new(arena), trials, graph, NULL);
    const Plan *plan = plans_fuse_with(arena, graph, options, &diags);
    cr_assert(plan);
    Text text = {.arena = arena};
    plan_print(plan, &text);
    const char *kept = strdup(text_str(&text));
    arena_free(trials), arena_free(arena);
    return kept;
}

static void expect_same(const char *source) {
    const char *inlined = plan_text(source, false), *copied = plan_text(source, true);
    cr_expect_str_eq(copied, inlined);
    free((char *)inlined), free((char *)copied);
}

Test(alike_kernels, layers_are_copied) {
    expect_same("dim B in 1..64\ndim D = 32\n"
                "def layer(x) {\n  param w: bf16[D, D]\n  param g: bf16[D]\n"
                "  return x + silu(rmsnorm(x, g, eps=1e-5) @ w) * 0.5\n}\n"
                "graph net(x: bf16[B, D]) -> (y: bf16[B, D]) {\n"
                "  y = loop i in 0:6 with h = x {\n    return layer(h) as \"l{i}\"\n  }\n}\n");
}

/* They differ in a number, in the part that they read, and in how often they read a tensor. */
Test(alike_kernels, groups_that_differ_are_not_copied) {
    expect_same("dim B in 1..64\ndim D = 32\n"
                "def layer(x, z, s) {\n  param w: f32[D, D]\n  return (x * z) @ w * s\n}\n"
                "graph net(x: f32[B, D], k: f32[4, B, D]) -> (y: f32[B, D]) {\n"
                "  a = layer(x, k[0], 0.5) as \"a\"\n  b = layer(a, k[1], 0.25) as \"b\"\n"
                "  c = layer(b, b, 0.25) as \"c\"\n  d = layer(c, a, 0.25) as \"d\"\n"
                "  e = layer(d, d, 0.25) as \"e\"\n  y = layer(e, k[1], 0.25) as \"y\"\n}\n");
}

/* Pieces of concats and updates have places in a buffer with others. */
Test(alike_kernels, stores_of_parts_are_copied) {
    expect_same("dim B in 1..64\n"
                "def part(x) = concat([tanh(x) * 2.0, exp(x)], axis=1)\n"
                "graph net(x: f32[B, 32], z: f32[B, 32], w: f32[32, 32], c: f32[4, B, 32])"
                " -> (y: f32[B, 64], q: f32[B, 64], k: f32[4, B, 32]) {\n"
                "  y = part(x @ w)\n  q = part(z @ w)\n"
                "  a = dynamic_update_slice(c, reshape(exp(x), [1, B, 32]), [1, 0, 0])\n"
                "  k = dynamic_update_slice(a, reshape(exp(z), [1, B, 32]), [2, 0, 0])\n}\n");
}
