/* Choosing by price: no plan is predicted to be slower than one kernel for each op, over a family
 * of graphs, extents, targets and values of the dims; candidates that pay are taken, and `fuse
 * must` blocks are kept. */
#include "search/search.h"

#include "lib/plans.h"
#include "random/random_graph.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static const double LOSS = 1.02;

static PricedPlan priced(Arena *arena, const char *source, TargetId target, bool off,
                         const int64_t *dims) {
    Module *module = plans_parse(arena, source);
    const Card *card = card_of_target(target_get(target));
    PricedPlan plan = plans_price(arena, module, 0, off, target, card, dims);
    cr_assert(plan.plan, "%s", source);
    return plan;
}

/* At each point where plans are compared. */
static void expect_no_loss(const char *source, TargetId target) {
    Arena *arena = arena_new(NULL);
    PricedPlan fused = priced(arena, source, target, false, NULL);
    PricedPlan apart = priced(arena, source, target, true, NULL);
    const Card *card = card_of_target(target_get(target));
    CostPoints points = cost_points(arena, fused.plan->graph->dims, card->has);
    CostPoints points_apart = cost_points(arena, apart.plan->graph->dims, card->has);
    for (uint32_t i = 0; i < points.n; i++) {
        double us = cost_plan(arena, fused.plan, card, points.dims[i])->us;
        double us_apart = cost_plan(arena, apart.plan, card, points_apart.dims[i])->us;
        cr_expect(us <= LOSS * us_apart, "%s, point %u: %.2f us fused, %.2f unfused\n%s",
                  target_get(target)->name, i, us, us_apart, source);
    }
    arena_free(arena);
}

/* R rows, K, N columns of dtype D: each is a word to be replaced. */
static const char *const bodies[] = {
    "x: D[R, N] -> D[R, N] { y = x - mean(x, axis=0, keep=true) }",
    "x: D[R, N] -> D[R, N] { y = softmax(x, axis=0) }",
    "x: D[R, N] -> D[R, N] { y = softmax(x, axis=1) }",
    "x: D[R, N] -> D[R, N] { y = softmax(softmax(softmax(softmax(x)))) }",
    "x: D[R, N] -> D[R, N] { y = log_softmax(tanh(softmax(erf(x)))) }",
    "x: D[R, N], z: D[R, N] -> D[R, N] { y = softmax(x) * softmax(z) }",
    "x: D[R, N], z: D[R, N], g: D[N] -> D[R, N] { y = rmsnorm(x, g) * rmsnorm(z, g) }",
    "x: D[R, N] -> D[] { y = sum(x * x) }",
    "x: D[R, K], w: D[K, N] -> D[R, N] { y = softmax(x @ w) }",
    "x: D[R, K], w: D[K, N], r: D[R, N] -> D[R] { y = sum(relu(x @ w + r), axis=1) }",
    "x: D[R, K], z: D[R, K], w: D[K, N] -> D[R, N] { y = (x + z) @ w }",
    "x: D[R, K], w: D[K, N], s: D[N] -> D[R, N] { y = x @ (w * s) }",
    "x: D[R, K], w: D[K, N], v: D[K, N] -> D[R, N] { y = silu(x @ w) * (x @ v) }",
    "x: D[R, K], z: D[R, K], w: D[2 * K, N] -> D[R, N] { y = concat([x, z], axis=1) @ w }",
    "x: D[N, R], b: D[N] -> D[R, N] { y = rmsnorm(transpose(x), b) }",
    "x: D[N, R] -> D[R] { y = sum(transpose(x), axis=1) }",
    "x: D[N, R] -> D[R + 2, N] { y = pad(transpose(x), low=[1, 0], high=[1, 0], value=0.0) }",
};

static void put_replaced(Text *text, const char *body, const char *const (*words)[2], size_t n) {
    for (const char *at = body; *at; at++) {
        const char *put = NULL;
        bool is_word = (at == body || !strchr("abcdefghijklmnopqrstuvwxyz_", at[-1]));
        for (size_t i = 0; i < n && is_word; i++)
            if (*at == words[i][0][0]) put = words[i][1];
        if (put)
            text_puts(text, put);
        else
            text_printf(text, "%c", *at);
    }
}

static const char *source_of(Arena *arena, size_t body, const char *dtype, const char *rows,
                             const char *k, const char *n) {
    const char *const words[][2] = {{"D", dtype}, {"R", rows}, {"K", k}, {"N", n}};
    Text text = {.arena = arena};
    const char *arrow = strstr(bodies[body], " -> "), *brace = strchr(bodies[body], '{');
    if (strcmp(rows, "B") == 0) text_puts(&text, "dim B in 1..65536\n");
    text_puts(&text, "graph g(");
    char head[200], type[40];
    snprintf(head, sizeof head, "%.*s", (int)(arrow - bodies[body]), bodies[body]);
    snprintf(type, sizeof type, "%.*s", (int)(brace - arrow - 5), arrow + 4);
    put_replaced(&text, head, words, 4);
    text_puts(&text, ") -> (y: ");
    put_replaced(&text, type, words, 4);
    text_printf(&text, ") %s\n", brace);
    return text_str(&text);
}

Test(search, no_plan_is_predicted_to_be_slower_than_its_ops) {
    static const char *const rows[] = {"1", "64", "1024", "16384", "B"};
    static const char *const extents[][2] = {{"64", "64"}, {"512", "128"}, {"4096", "1000"}};
    static const TargetId targets[] = {TARGET_SM_90A, TARGET_SM_80, TARGET_CPU};
    Arena *arena = arena_new(NULL);
    for (size_t body = 0; body < sizeof bodies / sizeof *bodies; body++)
        for (size_t i = 0; i < 5 * 3 * 2 * 3; i++) {
            size_t size = i / 3;
            expect_no_loss(source_of(arena, body, size % 2 ? "bf16" : "f32", rows[size / 2 % 5],
                                     extents[size / 10][0], extents[size / 10][1]),
                           targets[i % 3]);
        }
    arena_free(arena);
}

/* Pairs beside each other, of whose lanes every other one is taken. */
Test(search, joined_pairs_are_no_slower_than_their_ops) {
    static const TargetId targets[] = {TARGET_SM_90A, TARGET_CPU};
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
        expect_no_loss("dim T in 1..65536\n"
                       "graph g(x: f32[T, 64], c: f32[T, 32], s: f32[T, 32]) -> (y: f32[T, 64]) {\n"
                       "  a = x[:, ::2]; b = x[:, 1::2]\n  e = reshape(a * c - b * s, [T, 32, 1])\n"
                       "  o = reshape(a * s + b * c, [T, 32, 1])\n"
                       "  y = reshape(concat([e, o], axis=2), [T, 64])\n}\n",
                       targets[i]);
}

/* Operands that are copied for their rows are so at symbolic extents too: to store what is computed
 * pays where the copy engine can have both. */
Test(search, copies_of_symbolic_extents_are_priced) {
    static const char source[] =
        "dim M in 1..65536\ngraph g(x: f16[M, 1024], v: f16[1024, 100]) -> (y: f16[M, 100]) {\n"
        "  y = concat([x[:, 512:], x[:, :512]], axis=1) @ v\n}\n";
    Arena *arena = arena_new(NULL);
    PricedPlan plan = priced(arena, source, TARGET_SM_90A, false, NULL);
    expect_no_loss(source, TARGET_SM_90A);
    cr_expect_eq(plan.cost->n_launches, 2, "%u launches", plan.cost->n_launches);
    cr_expect_eq(sched_engine(&plan.plan->kernels.data[plan.plan->kernels.n - 1].variants[0].sched),
                 GEMM_WGMMA);
    arena_free(arena);
}

/* Whatever no move was made for: gathers and pads of odd rows, matrices of few rows side by side,
 * and lhs operands across k. */
Test(search, no_plan_is_slower_than_its_ops) {
    static const char *const sources[] = {
        "graph g(y: bf16[257, 3000], j: i32[3000]) -> (v: bf16[3001, 3003]) {\n"
        "  v = pad(gather(y, j, axis=0), low=[0, 1], high=[1, 2])\n}\n",
        "graph g(x: bf16[257], y: bf16[257, 3000], j: i32[3000]) -> (v: bf16[3001, 3003]) {\n"
        "  v = pad(gather(reshape(x, [257, 1]) * y, j, axis=0), low=[0, 1], high=[1, 2])\n}\n",
        "graph g(x: f32[33, 8191], j: i32[2000]) -> (b: f32[2000, 8191]) {\n"
        "  b = gather(x * 2.0, j, axis=0)\n}\n",
        "graph g(a: bf16[164, 8, 904], w: bf16[904, 64], s: bf16[164, 1, 64])"
        " -> (y: bf16[164, 8, 64]) {\n  y = (a @ w) * s\n}\n",
        "dim K in 1..8192\ndim M in 1..8192\ndim N in 1..8192\n"
        "graph g(x: bf16[K, M], w: bf16[K, N]) -> (y: bf16[M, N]) {\n  y = transpose(x) @ w\n}\n",
        /* of several kernels that are faster each, but leave less in the cache */
        "dim B in 0..300\n"
        "graph g(x: i32[B, 8, 64], i: i32[B], b: i32[64], s: i32[B])"
        " -> (a: i32[B, B, 64], c: i32[B, B, 64], y: i32[B, 64]) {\n"
        "  a = gather(x, i, axis=1)\n  c = a - b\n  y = s @ c\n}\n",
        "dim B in 2..65536 mult 2\n"
        "graph g(w: f64[B, 24], a: f64[24, 1]) -> (y: f64[12, 8, 8]) {\n"
        "  e = expand(w @ a, [12, B, 8])\n  y = transpose(e, perm=[0, 2, 1]) @ e\n}\n",
        "graph g(a: f32[16, 1, 8, 1], b: f32[1], c: f32[16, 1, 8, 1])"
        " -> (s: f32[16, 1, 8, 1], y: f32[16, 1, 8, 64]) {\n"
        "  v = where(iota([8, 1], axis=1) <= iota([8, 1], axis=0), a - b - c, 0.25)\n"
        "  s = softmax(v, axis=3)\n  y = gather(s, iota([64], axis=0) * 3 + 5, axis=3)\n}\n"};
    static const TargetId targets[] = {TARGET_SM_90A, TARGET_SM_80, TARGET_CPU};
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++)
        for (size_t t = 0; t < sizeof targets / sizeof *targets; t++)
            expect_no_loss(sources[i], targets[t]);
}

/* A concat whose operand in a `fuse never` block prevents a concat in place. Each operand has a
 * kernel of its own, which is whole, and no lane computes all operands. */
Test(search, a_concat_operand_of_a_never_block_is_copied) {
    static const char source[] =
        "dim T in 1..4096\n"
        "graph g(x: bf16[9, 8, T], v: bf16[9, 8, T], y: bf16[9, T, T]) -> (z: bf16[9, T + 16, T]) "
        "{\n  fuse never {\n    u = v * 2.0\n  }\n"
        "  z = concat([u, sqrt(abs(x)), y], axis=1)\n}\n";
    Arena *arena = arena_new(NULL);
    PricedPlan plan = priced(arena, source, TARGET_CPU, false, NULL);
    cr_expect_eq(plan.cost->n_launches, 3, "%u launches", plan.cost->n_launches);
    expect_no_loss(source, TARGET_CPU);
    arena_free(arena);
}

/* Alone, whose input comes from memory, the softmax is faster with its sums apart; here another
 * kernel has read that. */
Test(search, candidates_are_undone_where_the_plan_is_better_without) {
    static const TargetId targets[] = {TARGET_SM_90A, TARGET_SM_80};
    for (size_t t = 0; t < sizeof targets / sizeof *targets; t++) {
        Arena *arena = arena_new(NULL);
        const char *source = "graph g(x: f16[437, 255], w: f16[437, 100])"
                             " -> (a: f16[255, 100], b: f16[437, 255]) {\n"
                             "  a = transpose(x) @ w\n  b = softmax(x, axis=0)\n}\n";
        PricedPlan plan = priced(arena, source, targets[t], false, NULL);
        cr_expect_eq(plan.cost->n_launches, 3, "%u launches", plan.cost->n_launches);
        arena_free(arena);
    }
}

/* Launches after a candidate is taken, and of the same graph in a `fuse must` block. */
static const struct {
    const char *head, *body;
    TargetId target;
    uint32_t n_launches, n_held;
} tried[] = {
    /* an operand computed in the matmul that alone reads it */
    {"graph g(x: bf16[1, 4096], w: bf16[4096, 4096]) -> (y: bf16[1, 4096])",
     "s = w * const(2.0, bf16); y = x @ s", TARGET_SM_90A, 1, 1},
    /* one for which the copy engine would not do any more */
    {"graph g(x: bf16[65536, 1024], w: bf16[1024, 1024]) -> (y: bf16[65536, 1024])",
     "s = x * const(0.5, bf16); y = s @ w", TARGET_SM_90A, 2, 1},
    /* an operand stored, so that the copy engine can fetch it */
    {"graph g(x: bf16[32768, 256], z: bf16[32768, 256], w: bf16[512, 512]) -> (y: bf16[32768, "
     "512])",
     "c = concat([x, z], axis=1); y = c @ w", TARGET_SM_90A, 2, 1},
    /* rows that are odd, computed and transposed: stored and copied beside each other, then fetched
       in whole */
    {"graph g(x: f32[37, 101], w: bf16[53, 101], s: bf16[101]) -> (y: bf16[37, 53])",
     "z = cast(x, bf16) * s; v = transpose(w); y = z @ v", TARGET_SM_90A, 2, 1},
    /* columns by few blocks */
    {"dim B in 1..65536\ngraph g(x: f32[B, 512]) -> (y: f32[B, 512])",
     "y = x - mean(x, axis=0, keep=true)", TARGET_SM_90A, 3, 1},
    /* one pass over columns that stores: it is split all the same, in a block of the source too */
    {"dim B in 1..65536\ngraph g(x: f16[B, 512]) -> (s: f16[512], y: f16[B, 512])",
     "s = sum(x, axis=0); y = gelu(x)", TARGET_SM_80, 2, 2},
    /* operands of a concat in kernels of their own; in one kernel each lane would compute all */
    {"dim B in 1..65536\ngraph g(x: f32[B, 64], z: f32[B, 32]) -> (y: f32[B, 96])",
     "y = concat([exp(x), gelu(z)], axis=1)", TARGET_CPU, 2, 1},
    /* a matmul and anything elementwise, of whatever extents */
    {"dim M in 1..65536\ndim N in 1..65536\ndim K in 1..65536\ngraph g(x: bf16[M, K], r: bf16[M, "
     "N],"
     " w: bf16[K, N], b: bf16[N]) -> (y: bf16[M, N])",
     "y = gelu(x @ w + b) + r", TARGET_CPU, 1, 1},
    {"dim M in 1..65536\ndim N in 1..65536\ndim K in 1..65536\ngraph g(x: bf16[M, K], w: bf16[K, "
     "N],"
     " v: bf16[K, N], u: bf16[N, K]) -> (y: bf16[M, K])",
     "y = (silu(x @ w) * (x @ v)) @ u", TARGET_CPU, 2, 2},
    /* the filters stored, so that they are turned once; the image stored in the other layout and
     * with its padding, so that the product reads it where it is */
    {"graph g(x: f32[2, 32, 28, 28], w: f32[64, 32, 3, 3]) -> (y: f32[2, 64, 28, 28])",
     "y = relu(conv2d(x, w, padding=1))", TARGET_CPU_V4, 3, 1},
    /* rows in the blocks that make them */
    {"graph g(x: bf16[4096, 64], w: bf16[64, 64]) -> (y: bf16[4096, 64])", "y = softmax(x @ w)",
     TARGET_SM_90A, 1, 1},
    {"graph g(x: bf16[4096, 64], w: bf16[64, 64]) -> (y: bf16[4096, 64])", "y = softmax(x @ w)",
     TARGET_SM_80, 1, 1},
    /* short rows on a CPU, of which a vector has one or an element of each */
    {"dim B in 1..65536\ngraph g(x: f32[B, 4]) -> (y: f32[B, 4])", "y = softmax(x)", TARGET_CPU, 1,
     1},
    {"dim B in 1..65536\ngraph g(x: bf16[B, 10]) -> (y: bf16[B, 10])", "y = softmax(x)", TARGET_CPU,
     1, 1},
    {"dim B in 1..65536\ngraph g(x: f32[B, 10], g: f32[10]) -> (y: f32[B, 10])",
     "y = layernorm(x, g, g)", TARGET_CPU, 1, 1},
    {"dim B in 1..65536\ngraph g(x: f32[B, 10]) -> (y: f32[B, 10])", "y = log_softmax(x)",
     TARGET_CPU, 1, 1},
    {"dim B in 1..65536\ngraph g(x: f32[B, 2]) -> (y: f32[B, 2])", "y = log_softmax(x)", TARGET_CPU,
     1, 1},
    /* rows that are columns in memory, on a CPU: a map of short rows transposes them */
    {"dim M in 1..8192\ndim N in 1..8192\ngraph g(t: f32[N, M]) -> (y: f32[M, N])",
     "y = softmax(transpose(t))", TARGET_CPU, 2, 1},
    {"dim M in 1..8192\ndim N in 1..8192\ngraph g(t: f32[N, M], x: f32[M, N]) -> (y: f32[M, N])",
     "y = softmax(transpose(t) + x)", TARGET_CPU, 2, 1},
    {"dim M in 1..8192\ndim N in 1..8192\ngraph g(a: f32[M, N]) -> (y: f32[N, M])",
     "y = transpose(softmax(a))", TARGET_CPU, 2, 1},
    {"dim M in 1..65536\ndim N in 1..65536\ngraph g(t: f32[N, M], b: f32[N]) -> (y: f32[M, N])",
     "y = rmsnorm(transpose(t), b)", TARGET_CPU, 2, 1},
    /* a costly map that few read, of few elements: computed by both */
    {"dim B in 1..16\ngraph g(x: f32[17, 16]) -> (y: f32[17, 16], u: f32[B, 17, 16])",
     "v = tanh(x) / exp(x); y = v + sin(v); u = expand(v, [B, 17, 16]) * 2.0", TARGET_SM_90A, 1, 1},
    /* tiles of whole rows, which would be one block */
    {"dim B in 1..65536\ngraph g(x: f32[B, 512], w: f32[512, 128]) -> (y: f32[B, 128])",
     "y = softmax(x @ w)", TARGET_SM_90A, 2, 1},
};

Test(search, candidates_are_taken_where_they_pay) {
    for (size_t i = 0; i < sizeof tried / sizeof *tried; i++) {
        Arena *arena = arena_new(NULL);
        char own[400], held[400];
        snprintf(own, sizeof own, "%s {\n  %s\n}\n", tried[i].head, tried[i].body);
        snprintf(held, sizeof held, "%s {\n  fuse must { %s }\n}\n", tried[i].head, tried[i].body);
        PricedPlan chosen = priced(arena, own, tried[i].target, false, NULL);
        PricedPlan kept = priced(arena, held, tried[i].target, false, NULL);
        cr_expect_eq(chosen.cost->n_launches, tried[i].n_launches, "%u launches\n%s",
                     chosen.cost->n_launches, own);
        cr_expect_eq(kept.cost->n_launches, tried[i].n_held, "%u launches\n%s",
                     kept.cost->n_launches, held);
        arena_free(arena);
    }
}

/* Of `y` and `exp` which one is stored: the one value that readers of both make of them, if that is
 * cheaper than another pass over the rows. */
Test(search, what_readers_compute_from_several_values_is_stored_instead) {
    static const struct {
        const char *source;
        TargetId target;
        bool is_joined;
    } cases[] = {
        {"graph g(x: f32[4096, 1024]) -> (z: f32[1024]) { y = softmax(x); z = sum(y, axis=0) }",
         TARGET_SM_90A, true},
        {"graph g(x: f32[4096, 1024]) -> (z: f32[1024]) { y = softmax(x); z = sum(y, axis=0) }",
         TARGET_SM_80, true},
        {"graph g(x: f32[4096, 1024], a: f32[4096, 1024]) -> (z: f32[1024]) {\n"
         "  y = softmax(x)\n  z = sum(y * a, axis=0)\n}",
         TARGET_SM_90A, true},
        {"graph g(x: f32[4096, 1024]) -> (z: f32[1024]) { y = softmax(x); z = sum(y, axis=0) }",
         TARGET_CPU, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Arena *arena = arena_new(NULL);
        const Plan *plan = priced(arena, cases[i].source, cases[i].target, false, NULL).plan;
        bool stores_exp = false, stores_y = false;
        for (uint32_t b = 0; b < plan->buffers.n; b++) {
            const Node *node = graph_node(plan->graph, plan->buffers.data[b].node);
            stores_exp = stores_exp || node->op == OP_EXP;
            stores_y = stores_y || (node->name && strcmp(node->name, "y") == 0);
        }
        cr_expect(stores_y == cases[i].is_joined && stores_exp != cases[i].is_joined,
                  "%s: exp %d, y %d", cases[i].source, stores_exp, stores_y);
        arena_free(arena);
    }
}

Test(search, a_better_plan_is_faster_on_average_or_loses_less_to_its_ops) {
    CostPoints points = {.n = 3, .n_diagonal = 3};
    static const struct {
        Prices now, other, apart;
        bool is_better;
    } cases[] = {
        {{{10, 10, 10}, 0}, {{9, 9, 9}, 0}, {{20, 20, 20}, 0}, true},
        {{{10, 10, 10}, 0}, {{9.9, 9.9, 9.9}, 0}, {{20, 20, 20}, 0}, false}, /* too little */
        {{{10, 10, 10}, 0}, {{12, 6, 10}, 0}, {{20, 20, 20}, 0}, true},      /* by the mean */
        {{{10, 10, 10}, 0}, {{12, 2, 2}, 0}, {{11, 20, 20}, 0}, false}, /* slower than ops apart */
        {{{12, 2, 2}, 0}, {{11, 11, 11}, 0}, {{11, 11, 11}, 0}, true},  /* what was there is */
        {{{40, 10, 10}, 0},
         {{20, 10, 10}, 0},
         {{10, 10, 10}, 0},
         true}, /* both: the smaller loss */
        {{{10, 10, 10}, 10}, {{9, 9, 9}, 12}, {{11, 11, 11}, 11}, false}, /* slower on one core */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        cr_expect_eq(prices_are_better(&points, &cases[i].now, &cases[i].other, &cases[i].apart),
                     cases[i].is_better, "case %zu", i);
}

/* Matmuls of R rows with computed operands: one operand for several matmuls, or both operands of
 * one matmul. E is another dtype. */
static const char *const computed[] = {
    "x: D[R, K], w: D[K, N] -> { y = x @ (w * 2.0) }",
    "x: D[R, K], w: D[N, K] -> { y = x @ transpose(w * 2.0, perm=[1, 0]) }",
    "x: D[R, K], w: D[K, N], s: D[N] -> { y = x @ (w * s) }",
    "x: D[R, K], w: D[K, N], s: D[K] -> { y = (x * s) @ w }",
    "x: D[R, K], w: D[K, N], s: D[R, 1] -> { y = (x * s) @ w }",
    "x: D[R, K], w: D[K, N] -> { y = gelu(x) @ w }",
    "x: D[R, K], w: D[K, N], m: bool[R, K] -> { y = where(m, x, -x) @ w }",
    "x: D[R, K], w: i32[K, N], s: D[N] -> { y = x @ (cast(w, D) * s) }",
    "x: D[R, K], w: i32[K, N], s: D[N] -> { y = (x @ cast(w, D)) * s }",
    "x: E[R, K], w: D[K, N] -> { y = cast(x, D) @ w }",
    "x: D[R, K], w: E[K, N] -> { y = x @ cast(w, D) }",
    "x: D[R, K], z: D[R, K], w: D[K, N] -> { v = w * 2.0\n y = x @ v + z @ v }",
    "x: E[R, K], w: D[K, N], v: D[K, N] -> { c = cast(x, D)\n y = c @ w + c @ v }",
    "x: E[R, K], w: D[K, N], v: D[K, N] -> { c = cast(x, D)\n y = c @ (w * 2.0) + c @ (v * 2.0) "
    "}",
};

/* The graph, and the same in a `fuse must` block. */
static const char *computed_source(Arena *arena, const char *body, const char *dtype,
                                   const char *other, const char *rows, bool is_must) {
    const char *arrow = strstr(body, "-> {");
    const char *const words[][2] = {
        {"D", dtype}, {"E", other}, {"R", rows}, {"K", "2048"}, {"N", "1024"}};
    Text pattern = {.arena = arena}, text = {.arena = arena};
    text_printf(&pattern, "graph g(%.*s) -> (y: D[R, N]) {%s%s%s\n", (int)(arrow - body), body,
                is_must ? " fuse must {" : "", arrow + 4, is_must ? "\n}" : "");
    put_replaced(&text, text_str(&pattern), words, sizeof words / sizeof *words);
    return text_str(&text);
}

/* At every number of rows that is known, the default is no more than 3 % above the block: two
 * candidates that each save less than 2 % are not taken. */
Test(search, operands_are_computed_where_that_is_cheaper, .timeout = 300) {
    static const char *const rows[] = {"1", "16", "512"};
    static const TargetId targets[] = {TARGET_CPU, TARGET_SM_80, TARGET_SM_90A};
    Arena *arena = arena_new(NULL);
    for (size_t i = 0; i < sizeof computed / sizeof *computed * 18; i++) {
        const char *dtype = i & 1 ? "bf16" : "f32", *other = i & 1 ? "f32" : "bf16";
        const char *body = computed[i / 18], *m = rows[i / 2 % 3];
        TargetId target = targets[i / 6 % 3];
        const char *source = computed_source(arena, body, dtype, other, m, false);
        const char *must_source = computed_source(arena, body, dtype, other, m, true);
        double us = priced(arena, source, target, false, NULL).cost->us;
        double us_must = priced(arena, must_source, target, false, NULL).cost->us;
        cr_expect(us <= 1.03 * us_must, "%s: %.2f us, in a `fuse must` block %.2f\n%s",
                  target_get(target)->name, us, us_must, source);
    }
    arena_free(arena);
}

/* A row of the lhs: what weights need is computed as they are read, by all that read them.
 */
Test(search, weights_are_scaled_as_they_are_read) {
    Arena *arena = arena_new(NULL);
    static const TargetId targets[] = {TARGET_SM_80, TARGET_SM_90A};
    for (size_t i = 0; i < 2; i++) {
        PricedPlan one = priced(arena,
                                "graph g(x: bf16[1, 4096], w: i32[4096, 4096], s: bf16[4096])"
                                " -> (y: bf16[1, 4096]) {\n  y = x @ (cast(w, bf16) * s)\n}\n",
                                targets[i], false, NULL);
        PricedPlan two = priced(arena,
                                "graph g(x: bf16[1, 4096], z: bf16[1, 4096], w: bf16[4096, 4096])"
                                " -> (y: bf16[1, 4096], u: bf16[1, 4096]) {\n"
                                "  v = w * 2\n  y = x @ v\n  u = z @ v\n}\n",
                                targets[i], false, NULL);
        cr_expect_eq(one.cost->n_launches, 1);
        cr_expect_eq(two.cost->n_launches, 1);
    }
    arena_free(arena);
}

/* Three layers 784-512-512-N, the last one's rows under a softmax: launches at whatever M, or at
 * the one that is known. */
static const struct {
    const char *dtype;
    bool has_params; /* weights are, else inputs */
    int n;
    const char *m;
    TargetId target;
    uint32_t n_launches;
} layers[] = {
    {"bf16", true, 10, "M", TARGET_SM_90A, 3},
    {"bf16", true, 10, "M", TARGET_SM_80, 3},
    {"bf16", true, 10, "4096", TARGET_SM_90A, 3},
    {"f32", true, 10, "M", TARGET_SM_90A, 3},
    {"f32", false, 10, "M", TARGET_SM_80, 3},
    {"f32", true, 256, "M", TARGET_CPU, 3},
    {"bf16", true, 16, "4096", TARGET_SM_80, 3},
    {"bf16", false, 64, "M", TARGET_SM_90A, 3}, /* at M = 1 alone it loses, half a microsecond */
    {"bf16", false, 128, "65536", TARGET_SM_90A, 3},
    {"f32", true, 64, "M", TARGET_SM_90A, 4},    /* loses 2 to 4 where M is small */
    {"bf16", false, 10, "M", TARGET_SM_90A, 4},  /* rows of 20 bytes are copied first */
    {"bf16", true, 1000, "M", TARGET_SM_90A, 4}, /* no tile has such rows */
    {"f32", true, 1000, "M", TARGET_CPU, 4},
};

static const char *layers_source(Arena *arena, size_t i) {
    static const char *const names[] = {"w1", "b1", "w2", "b2", "w3", "b3"};
    const char *dtype = layers[i].dtype;
    int extents[][2] = {{784, 512}, {0, 512},           {512, 512},
                        {0, 512},   {512, layers[i].n}, {0, layers[i].n}};
    Text inputs = {.arena = arena}, params = {.arena = arena}, source = {.arena = arena};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        const char *rows = extents[k][0] ? str_format(arena, "%d, ", extents[k][0]) : "";
        const char *type = str_format(arena, "%s[%s%d]", dtype, rows, extents[k][1]);
        if (layers[i].has_params)
            text_printf(&params, "  param %s: %s = \"%s\"\n", names[k], type, names[k]);
        else
            text_printf(&inputs, ", %s: %s", names[k], type);
    }
    text_printf(&source,
                "dim M in 1..65536\ngraph g(x: %s[%s, 784]%s) -> (p: %s[%s, %d]) {\n%s"
                "  h = relu(x @ w1 + b1)\n  k = relu(h @ w2 + b2)\n  p = softmax(k @ w3 + b3)\n}\n",
                dtype, layers[i].m, text_str(&inputs), dtype, layers[i].m, layers[i].n,
                text_str(&params));
    return text_str(&source);
}

Test(search, layers_start_few_launches) {
    Arena *arena = arena_new(NULL);
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
        const char *source = layers_source(arena, i);
        uint32_t n = priced(arena, source, layers[i].target, false, NULL).cost->n_launches;
        cr_expect_eq(n, layers[i].n_launches, "%u launches on %s\n%s", n,
                     target_get(layers[i].target)->name, source);
    }
    arena_free(arena);
}

/* Rotations by position: a kernel for each tensor would compute the cosines and sines again for
 * every head of every batch. They are stored, and the rest is one kernel, not one for each op. */
Test(search, what_is_broadcast_is_stored_where_it_is_costly) {
    static const char *const source =
        "dim B in 1..64\ndim T in 2..64\n"
        "graph g(x: f32[B, T, 64], f: f32[8]) -> (y: f32[B, 4, T, 16]) {\n"
        "  a = reshape(cast(iota([T], dtype=i64), f32), [T, 1]) * f\n"
        "  both = concat([a, a], axis=1)\n"
        "  heads = transpose(reshape(x, [B, T, 4, 16]), perm=[0, 2, 1, 3])\n"
        "  low = slice(heads, begin=[0, 0, 0, 0], shape=[B, 4, T, 8])\n"
        "  high = slice(heads, begin=[0, 0, 0, 8], shape=[B, 4, T, 8])\n"
        "  y = heads * cos(both) + concat([-high, low], axis=3) * sin(both)\n}\n";
    Arena *arena = arena_new(NULL);
    cr_expect_eq(priced(arena, source, TARGET_CPU, false, NULL).cost->n_launches, 2);
    expect_no_loss(source, TARGET_CPU);
    arena_free(arena);
}

/* One-block launches are chosen where separate launches of their kernels, joined with any
 * neighbours, are not cheaper, except by differences that prices cannot show. */
Test(search, one_block_launches_do_not_lose_to_slices) {
    for (uint64_t seed = 1; seed <= 60; seed++) {
        Arena *arena = arena_new(NULL);
        const Module *module = plans_parse(arena, random_graph_source(arena, seed, NULL));
        const Card *card = card_of_target(target_get(TARGET_SM_90A));
        const PlanCost *with = plans_price(arena, module, 0, false, TARGET_SM_90A, card, NULL).cost;
        const PlanCost *without = plans_price_slices(arena, module, 0, TARGET_SM_90A).cost;
        uint32_t n_saved =
            without->n_launches > with->n_launches ? without->n_launches - with->n_launches : 0;
        cr_expect_leq(with->us, price_tie_us(without->us, n_saved),
                      "seed %llu: %.2f us in %u launches, %.2f in %u without",
                      (unsigned long long)seed, with->us, with->n_launches, without->us,
                      without->n_launches);
        arena_free(arena);
    }
}
