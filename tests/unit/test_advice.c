/* The advice of every edge, followed: random programs and examples are changed as the ledger says,
 * compiled again, and the edge must have the other verdict, and no `fuse must` block be broken;
 * where the ledger says that only other ops would do, `fuse must` is refused for the same reason.
 */
#include "pass/contract.h"

#include "lib/plans.h"
#include "lib/random_graph.h"
#include "lib/text_file.h"

#include <criterion/criterion.h>
#include <glob.h>
#include <string.h>

enum { N_SEEDS = 32 };

/* A module for one target. */
typedef struct Compiled {
    const char *name;
    const Module *module;
    TargetId target;
} Compiled;

static Plan *plan_of(const Compiled *program, Arena *arena, const Graph *graph) {
    Module alone = *program->module;
    Graph *shown = arena_copy(arena, graph, sizeof *graph);
    memset(&alone.graphs, 0, sizeof alone.graphs);
    vec_push(arena, &alone.graphs, shown);
    const Card *card = card_of_target(target_get(program->target));
    return plans_price(arena, &alone, 0, false, program->target, card, NULL).plan;
}

static const Plan *plan_changed(void *user, Arena *arena, const Graph *graph) {
    return plan_of(user, arena, graph);
}

/* Settles the plan's reasons. */
static const Advice *settle(Compiled *program, Arena *arena, Plan *plan) {
    AdvicePlanner planner = {.plan = plan_changed, .user = program, .trial = arena_new(NULL)};
    const Advice *advices = advice_settle(arena, plan, &planner);
    arena_free(planner.trial);
    return advices;
}

static const Edge *find_edge(const Plan *plan, const Edge *like) {
    for (uint32_t i = 0; i < plan->edges.n; i++)
        if (plan->edges.data[i].producer == like->producer &&
            plan->edges.data[i].consumer == like->consumer)
            return &plan->edges.data[i];
    return NULL;
}

static const char *value_name(const Graph *graph, NodeId id) {
    const Node *node = graph_node(graph, id);
    return node->name ? node->name : op_info(node->op)->name;
}

/* Facts: what a reason says of an edge, checked on the plan. */

static bool computes(const Kernel *kernel, NodeId id) {
    for (uint32_t i = 0; i < kernel->nodes.n; i++)
        if (kernel->nodes.data[i] == id) return true;
    return false;
}

typedef struct StoreSearch {
    NodeId node;
    bool found;
} StoreSearch;

static void note_store(void *user, const Store *store) {
    StoreSearch *search = user;
    search->found = search->found || store->node == search->node;
}

static bool stores(const Kernel *kernel, NodeId id) {
    StoreSearch search = {id, false};
    kernel_each_store(kernel, note_store, &search);
    return search.found;
}

/* Whether both run over the same axes and reduce none. */
static bool same_domain(const Kernel *a, const Kernel *b) {
    if (a->form != FORM_MAP || b->form != FORM_MAP || a->n_parallel != b->n_parallel) return false;
    for (uint32_t k = 0; k < a->n_parallel; k++)
        if (index_axis_extent(scalartab_indices(a->scalars), k) !=
            index_axis_extent(scalartab_indices(b->scalars), k))
            return false;
    return true;
}

static void count_store(void *user, const Store *store) {
    uint32_t *n = user;
    *n += store->node != NODE_NONE;
}

/* Whether the kernel has more to do than to read one value and to store one. */
static bool has_other_ends(const Plan *plan, const Kernel *kernel) {
    uint32_t n_stored = 0, n_read = 0;
    kernel_each_store(kernel, count_store, &n_stored);
    for (uint32_t i = 0; i < kernel->args.n; i++) {
        BufferKind kind = plan->buffers.data[kernel->args.data[i]].kind;
        n_read += kernel_only_reads(kernel, kernel->args.data[i]) && kind != BUFFER_INPUT &&
                  kind != BUFFER_PARAM;
    }
    return n_stored + n_read + kernel->reduces.n > 2;
}

static bool holds(const Plan *plan, const Edge *edge, const Kernel *maker, const Kernel *reader) {
    switch (edge->reason) {
    case REASON_OTHER_DOMAIN:
        return !same_domain(maker, reader) && maker->form != FORM_CONTRACT;
    case REASON_BETWEEN:
        return has_other_ends(plan, reader);
    case REASON_TILES:
        return maker->form == FORM_CONTRACT;
    default:
        return true;
    }
}

/* Of one of the kernels that store the value and one of those that go on from it. */
static void check_fact(const Compiled *program, const Plan *plan, const Edge *edge) {
    bool is_true = false, is_known = false;
    for (uint32_t i = 0; i < plan->kernels.n; i++)
        for (uint32_t k = 0; k < plan->kernels.n; k++) {
            const Kernel *maker = &plan->kernels.data[i], *reader = &plan->kernels.data[k];
            if (maker->segment_axis != NO_AXIS || kernel_lays_out(maker) ||
                !stores(maker, edge->producer) || !computes(reader, edge->consumer))
                continue;
            is_known = true;
            is_true = is_true || holds(plan, edge, maker, reader);
        }
    cr_expect(is_true || !is_known, "%s for %s: %s -> %s is not [%s]", program->name,
              target_get(program->target)->name, value_name(plan->graph, edge->producer),
              value_name(plan->graph, edge->consumer), reason_info(edge->reason)->id);
}

/* How often each step came last. */
typedef struct Tally {
    uint32_t n_followed[ADVICE_KIND_COUNT], n_edges;
} Tally;

/* Whether the reason is one that the ledger gives. */
static bool says(const Edge *edge, const Advice *advice, const Edge *then) {
    bool has = then->reason == edge->reason;
    for (uint32_t i = 0; i < advice->n_steps; i++)
        has = has || advice->steps[i].reason == then->reason;
    return has;
}

static void follow_edge(Compiled *program, const Plan *plan, const Edge *edge, const Advice *advice,
                        Tally *tally) {
    Arena *arena = arena_new(NULL);
    const AdviceStep *last = &advice->steps[advice->n_steps - 1];
    Advice both = {.steps = {{.kind = ADVICE_MUST}}, .n_steps = 1};
    bool flips = last->kind != ADVICE_OPS;
    vec_push(arena, &both.steps[0].nodes, edge->producer);
    vec_push(arena, &both.steps[0].nodes, edge->consumer);
    const Graph *changed = advice_follow(arena, plan->graph, flips ? advice : &both);
    Plan *after = plan_of(program, arena, changed);
    const Edge *then = after ? find_edge(after, edge) : NULL;
    bool is_said = then && says(edge, advice, then);
    if (after && !flips) settle(program, arena, after);
    bool is_right =
        then && (flips ? then->verdict != edge->verdict && !contract_n_broken(after)
                       : then->verdict == EDGE_STORED && (is_said || says(edge, advice, then)));
    tally->n_followed[last->kind]++;
    tally->n_edges++;
    cr_expect(is_right, "%s for %s: %s -> %s [%s], step %u is %s: then %s [%s]", program->name,
              target_get(program->target)->name, value_name(plan->graph, edge->producer),
              value_name(plan->graph, edge->consumer), reason_info(edge->reason)->id,
              advice->n_steps, advice_kind_name(last->kind),
              !then                         ? "not there"
              : then->verdict == EDGE_FUSED ? "fused"
                                            : "stored",
              reason_info(then ? then->reason : REASON_NONE)->id);
    arena_free(arena);
}

static void follow_graph(Compiled *program, const Graph *graph, Tally *tally) {
    Arena *arena = arena_new(NULL);
    Plan *plan = plan_of(program, arena, graph);
    cr_assert(plan, "%s", program->name);
    const Advice *advices = settle(program, arena, plan);
    for (uint32_t i = 0; i < plan->edges.n; i++) {
        const Edge *edge = &plan->edges.data[i];
        if (edge->consumer == NODE_NONE) continue;
        cr_expect(edge->reason != REASON_NONE, "%s: an edge without a reason", program->name);
        if (edge->verdict == EDGE_STORED) check_fact(program, plan, edge);
        if (advices[i].n_steps) follow_edge(program, plan, edge, &advices[i], tally);
    }
    arena_free(arena);
}

static void follow_all(const char *source, const char *name, Tally *tally) {
    static const TargetId targets[] = {TARGET_SM_90A, TARGET_SM_80, TARGET_CPU};
    Arena *arena = arena_new(NULL);
    Compiled program = {.name = name, .module = plans_parse(arena, source)};
    for (size_t t = 0; t < sizeof targets / sizeof *targets; t++) {
        program.target = targets[t];
        for (uint32_t g = 0; g < program.module->graphs.n; g++)
            follow_graph(&program, program.module->graphs.data[g], tally);
    }
    arena_free(arena);
}

Test(advice, of_random_programs, .timeout = 240) {
    Tally tally = {0};
    for (uint64_t seed = 0; seed < N_SEEDS; seed++) {
        Arena *arena = arena_new(NULL);
        const char *name = str_format(arena, "seed %llu", (unsigned long long)seed);
        follow_all(random_graph_source(arena, seed, NULL), name, &tally);
        arena_free(arena);
    }
    static const AdviceKind wanted[] = {ADVICE_OPS, ADVICE_MUST, ADVICE_NEVER, ADVICE_OUTPUT,
                                        ADVICE_INPUT};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        cr_expect_gt(tally.n_followed[wanted[i]], 20u, "%s", advice_kind_name(wanted[i]));
}

Test(advice, of_the_examples, .timeout = 240) {
    Arena *arena = arena_new(NULL);
    Tally tally = {0};
    glob_t paths;
    cr_assert_eq(glob("dsl/examples/*.g", 0, NULL, &paths), 0);
    for (size_t i = 0; i < paths.gl_pathc; i++)
        follow_all(text_file_read(arena, paths.gl_pathv[i], NULL), paths.gl_pathv[i], &tally);
    cr_expect_gt(tally.n_edges, 300u);
    globfree(&paths);
    arena_free(arena);
}

/* What random programs are too small for, and blocks. */
static const char *const programs[] = {
    "graph g(x: f32[4096, 1024], w: bf16[1024, 1024]) -> (y: bf16[4096, 1024]) {\n"
    "  y = cast(x, bf16) @ w\n}",
    "graph g(x: f32[100000]) -> (y: f32[100000]) {\n  y = x / sum(x)\n}",
    "graph g(x: bf16[128, 262144]) -> (y: bf16[128, 262144]) {\n"
    "  y = x - max(x, axis=1, keep=true)\n}",
    "graph g(x: f32[4096, 512], w: f32[512, 512]) -> (h: f32[4096, 512], y: f32[4096, 512]) {\n"
    "  h = relu(x @ w)\n  y = h / max(h, axis=1, keep=true)\n}",
    "graph g(x: bf16[4096, 512], w: bf16[512, 64]) -> (y: bf16[4096, 64]) {\n"
    "  p = x @ w\n  y = p - max(p, axis=1, keep=true)\n}",
    "graph g(x: f32[1000000]) -> (e: f32[1000000], y: f32[999998]) {\n"
    "  e = exp(x)\n  y = e[2:] + e[:-2]\n}",
    "graph g(x: f32[64]) -> (y: f32[64]) {\n"
    "  fuse never { h = exp(x) }\n  kernel a { i = sin(h) }\n  y = relu(i)\n}",
    /* a concat of a concat, of which `fuse never` has a piece stored */
    "dim B in 1..16\ndim T in 2..40\n"
    "graph g(x: bf16[T, B], z: bf16[2])\n"
    "  -> (a: bf16[2*B*T + 2], b: bf16[4*B*T + 2], c: f16[B*T]) {\n"
    "  v = reshape(x, [B*T])\n  a = concat([v, v, z], axis=0)\n"
    "  b = concat([a[2:], a], axis=0)\n  c = cast(v, f16)\n}",
    "graph g(x: f32[2, 8], z: f32[3, 1]) -> (i: i32[2], y: f32[3, 2]) {\n"
    "  i = argmax(x, axis=1)\n  y = gather(-z, i, axis=1)\n}",
    /* what a price sets apart on a CPU, and would be a product's if `fuse must` insisted */
    "graph g(x: bf16[32, 31, 7], y: bf16[7, 31], z: bf16[7, 31], w: i32[32])\n"
    "  -> (b: bool[32, 31, 31]) {\n"
    "  p = x @ y\n  q = x @ z\n  s = sigmoid(p) * q\n  b = gather(q, w, axis=0) > s\n}",
    /* a fold of another shape, whose other factor is a later kernel's once there is a block */
    "dim B in 1..16\n"
    "graph g(x: f64[4, B, 32, B], y: f32[B, 33], z: f32[33])\n"
    "  -> (v: f32[4, B, B], s: f64[4, B, 33]) {\n"
    "  v = cast(argmax(x, axis=2), f32)\n  s = cast(v @ (y * z), f64)\n}",
};

Test(advice, of_what_is_large_or_in_blocks, .timeout = 240) {
    Tally tally = {0};
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
        follow_all(programs[i], programs[i], &tally);
    cr_expect_gt(tally.n_followed[ADVICE_FREE], 0u);
}
