/* The advice of every edge, followed: random programs and examples are changed as the ledger says,
 * compiled again, and the edge must have the other verdict, and no `fuse must` block be broken;
 * where the ledger says that only other ops would do, `fuse must` is refused for the same reason.
 */
#include "explain/must_check.h"
#include "search/region_memo.h"

#include "lib/plans.h"
#include "lib/text_file.h"
#include "random/random_graph.h"

#include <criterion/criterion.h>
#include <glob.h>
#include <string.h>

/* Under the sanitizers, which look for wrong accesses, fewer programs have to do. */
#if defined(__SANITIZE_ADDRESS__)
enum { N_SEEDS = 4, EXAMPLE_STEP = 5, LEAST_EDGES = 60, HAS_EVERY_KIND = false };
#else
enum { N_SEEDS = 40, EXAMPLE_STEP = 1, LEAST_EDGES = 300, HAS_EVERY_KIND = true };
#endif

/* A module for one target. */
typedef struct Compiled {
    const char *name;
    const Module *module;
    TargetId target;
    RegionMemo *memo; /* of the plans that advice tries, as the driver keeps one */
} Compiled;

static Plan *plan_with(const Compiled *program, Arena *arena, const Graph *graph,
                       RegionMemo *memo) {
    Module alone = *program->module;
    Graph *shown = arena_copy(arena, graph, sizeof *graph);
    memset(&alone.graphs, 0, sizeof alone.graphs);
    vec_push(arena, &alone.graphs, shown);
    return plans_price_again(arena, &alone, program->target, memo).plan;
}

/* The plan of a source that is compiled alone. */
static Plan *plan_of(const Compiled *program, Arena *arena, const Graph *graph) {
    return plan_with(program, arena, graph, NULL);
}

static Plan *plan_changed(void *user, Arena *arena, Graph *graph) {
    const Compiled *program = user;
    return plan_with(program, arena, graph, program->memo);
}

/* Of a plan whose launches are joined. */
static AdviceTotals price_of(void *user, Arena *arena, const Plan *plan) {
    const Compiled *program = user;
    const Card *card = card_of_target(target_get(program->target));
    const PlanCost *cost = cost_plan(arena, plan, card, cost_dims(arena, plan->graph->dims, NULL));
    return (AdviceTotals){.us = cost->us, .n_launches = cost->n_launches};
}

static AdvicePlanner planner_of(Compiled *program) {
    return (AdvicePlanner){
        .plan = plan_changed, .price = price_of, .user = program, .trial = arena_new(NULL)};
}

/* Settles the plan's reasons. */
static const Advice *settle(Compiled *program, Arena *arena, Plan *plan) {
    program->memo = region_memo_new(arena);
    AdvicePlanner planner = planner_of(program);
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

/* Whether the kernel has more to do than to read one value and to store one. What an update updates
 * has to be copied before. */
static bool has_other_ends(const Plan *plan, const Kernel *kernel) {
    uint32_t n_stored = 0, n_read = 0;
    kernel_each_store(kernel, count_store, &n_stored);
    for (uint32_t i = 0; i < kernel->args.n; i++) {
        BufferKind kind = plan->buffers.data[kernel->args.data[i]].kind;
        n_read += kernel_only_reads(kernel, kernel->args.data[i]) && kind != BUFFER_INPUT &&
                  kind != BUFFER_PARAM;
    }
    return n_stored + n_read + kernel->reduces.n + kernel_updates(kernel) > 2;
}

static bool holds(const Plan *plan, const Edge *edge, const Kernel *maker, const Kernel *reader) {
    switch (edge->reason) {
    case REASON_OTHER_DOMAIN:
        return !same_domain(maker, reader) && maker->form != FORM_GEMM;
    case REASON_BETWEEN:
        return has_other_ends(plan, reader);
    case REASON_TILES:
        return maker->form == FORM_GEMM;
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
            if (maker->segment_axis != NO_AXIS || kernel_lays_out(plan, maker) ||
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
    uint32_t n_priced, n_moved; /* of those that flip; of those some only move what is stored */
} Tally;

/* Whether the reason is one that the ledger gives. */
static bool says(const Edge *edge, const Advice *advice, const Edge *then) {
    bool has = then->reason == edge->reason;
    for (uint32_t i = 0; i < advice->n_steps; i++)
        has = has || advice->steps[i].reason == then->reason;
    return has;
}

/* Whether the price and the edges that are stored instead are those of the changed plan. */
static void check_price(Compiled *program, const Plan *plan, const Advice *advice, Plan *after) {
    AdviceTotals then = price_of(program, plan->graph->arena, after);
    cr_expect(advice->is_priced, "%s: no price", program->name);
    cr_expect(advice->then.us == then.us && advice->then.n_launches == then.n_launches,
              "%s: said %g us in %u launches, takes %g us in %u", program->name, advice->then.us,
              advice->then.n_launches, then.us, then.n_launches);
    uint32_t n_lost = 0;
    for (uint32_t i = 0; i < plan->edges.n; i++) {
        const Edge *edge = &plan->edges.data[i], *other = find_edge(after, edge);
        bool is_lost = other && edge->verdict == EDGE_FUSED && other->verdict == EDGE_STORED;
        bool is_said = n_lost < advice->lost.n && advice->lost.data[n_lost] == i;
        cr_expect_eq(is_lost, is_said, "%s: edge %u", program->name, i);
        n_lost += is_said;
    }
}

static void follow_edge(Compiled *program, const Plan *plan, const Edge *edge, const Advice *advice,
                        Tally *tally) {
    Arena *arena = arena_new(NULL);
    const AdviceStep *last = &advice->steps[advice->n_steps - 1];
    Advice both = {.steps = {{.kind = ADVICE_MUST}}, .n_steps = 1};
    bool flips = last->kind != ADVICE_OPS;
    VecU32 ends = {0};
    advice_add_node(arena, &ends, edge->producer);
    advice_add_node(arena, &ends, edge->consumer);
    advice_block(arena, advice_units(arena, plan->graph), &ends, &both.steps[0].nodes);
    const Graph *changed = advice_follow(arena, plan->graph, flips ? advice : &both);
    Plan *after = plan_of(program, arena, changed);
    const Edge *then = after ? find_edge(after, edge) : NULL;
    bool is_said = then && says(edge, advice, then);
    bool breaks = after && must_n_broken(after) > must_n_broken(plan);
    if (after && !flips) settle(program, arena, after);
    bool is_right =
        then &&
        (flips ? then->verdict != edge->verdict && !must_n_broken(after)
               : breaks || (then->verdict == EDGE_STORED && (is_said || says(edge, advice, then))));
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
    bool is_priced = is_right && flips && advice->is_tried;
    if (is_priced) check_price(program, plan, advice, after);
    tally->n_priced += is_priced;
    tally->n_moved += is_priced && advice->lost.n;
    arena_free(arena);
}

/* Every advice that is followed takes two plans, so graphs of many layers are left out. */
enum { MOST_NODES = 500 };

static void follow_graph(Compiled *program, const Graph *graph, Tally *tally) {
    if (graph->nodes.n > MOST_NODES) return;
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

Test(advice, of_random_programs, .timeout = 600) {
    Tally tally = {0};
    /* Each edge is followed by compiling the whole program: short programs have as many kinds of
     * edges, and take a fraction of the time. */
    RandomGraphOptions options = random_graph_defaults();
    options.max_statements = 12;
    for (uint64_t seed = 0; seed < N_SEEDS; seed++) {
        Arena *arena = arena_new(NULL);
        const char *name = str_format(arena, "seed %llu", (unsigned long long)seed);
        follow_all(random_graph_source(arena, seed, &options), name, &tally);
        arena_free(arena);
    }
    static const AdviceKind wanted[] = {ADVICE_OPS, ADVICE_MUST, ADVICE_NEVER, ADVICE_OUTPUT,
                                        ADVICE_INPUT};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted && HAS_EVERY_KIND; i++)
        cr_expect_gt(tally.n_followed[wanted[i]], 10u, "%s: %u", advice_kind_name(wanted[i]),
                     tally.n_followed[wanted[i]]);
    cr_expect(tally.n_priced > 3 * N_SEEDS && tally.n_moved > N_SEEDS / 3, "%u priced, %u moved",
              tally.n_priced, tally.n_moved);
}

Test(advice, of_the_examples, .timeout = 240) {
    Arena *arena = arena_new(NULL);
    Tally tally = {0};
    glob_t paths;
    cr_assert_eq(glob("dsl/examples/*.g", 0, NULL, &paths), 0);
    for (size_t i = 0; i < paths.gl_pathc; i += EXAMPLE_STEP)
        follow_all(text_file_read(arena, paths.gl_pathv[i], NULL), paths.gl_pathv[i], &tally);
    cr_expect_gt(tally.n_edges, LEAST_EDGES);
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
    /* a concat of a concat, with an operand that `fuse never` keeps stored */
    "dim B in 1..16\ndim T in 2..40\n"
    "graph g(x: bf16[T, B], z: bf16[2])\n"
    "  -> (a: bf16[2*B*T + 2], b: bf16[4*B*T + 2], c: f16[B*T]) {\n"
    "  v = reshape(x, [B*T])\n  a = concat([v, v, z], axis=0)\n"
    "  b = concat([a[2:], a], axis=0)\n  c = cast(v, f16)\n}",
    "graph g(x: f32[2, 8], z: f32[3, 1]) -> (i: i32[2], y: f32[3, 2]) {\n"
    "  i = argmax(x, axis=1)\n  y = gather(-z, i, axis=1)\n}",
    /* a value that the price keeps in its own kernel on a CPU, and that `fuse must` would put into
     * a matmul's kernel */
    "graph g(x: bf16[32, 31, 7], y: bf16[7, 31], z: bf16[7, 31], w: i32[32])\n"
    "  -> (b: bool[32, 31, 31]) {\n"
    "  p = x @ y\n  q = x @ z\n  s = sigmoid(p) * q\n  b = gather(q, w, axis=0) > s\n}",
    /* a fold of another shape, whose other operand is a later kernel's once there is a block */
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

/* Pairs of matmuls that one launch would slow down: by its registers at all sizes, or at one of
 * three. */
static const char *const pairs[] = {
    "graph g(x: f32[1024, 2048], w: f32[2048, 2048], z: f32[1024, 2048], v: f32[2048, 2048])"
    " -> (p: f32[1024, 2048], q: f32[1024, 2048]) {\n  p = sqrt(x @ w)\n  q = z @ v\n}",
    "dim B in 1..1024\ngraph g(x: f32[B, 2048], w: f32[2048, 2048], z: f32[B, 2048],"
    " v: f32[2048, 2048]) -> (p: f32[B, 2048], q: f32[B, 2048]) {\n"
    "  p = sqrt(x @ w)\n  q = z @ v\n}",
};

Test(advice, joins_launches_that_a_price_keeps_separate) {
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        Arena *arena = arena_new(NULL);
        Compiled program = {pairs[i], plans_parse(arena, pairs[i]), TARGET_SM_80, NULL};
        Plan *plan = plan_of(&program, arena, program.module->graphs.data[0]);
        AdviceTotals now = price_of(&program, arena, plan);
        AdvicePlanner planner = planner_of(&program);
        const Advice *advices = advice_settle_launches(arena, plan, now, &planner);
        cr_assert_eq(plan->unjoined.n, 1u);
        cr_expect_eq(plan->unjoined.data[0].reason, REASON_SLOWER_LAUNCH);
        cr_assert_eq(advices[0].n_steps, 1u, "%s", pairs[i]);
        cr_expect(advices[0].is_tried && advices[0].steps[0].kind == ADVICE_MUST);
        Plan *after = plan_of(&program, arena, advice_follow(arena, plan->graph, &advices[0]));
        cr_expect_eq(after->unjoined.n, 0u, "%s", pairs[i]);
        check_price(&program, plan, &advices[0], after);
        cr_expect(advices[0].then.n_launches == 1 && now.n_launches == 2, "%s", pairs[i]);
        const Unjoined *apart = &plan->unjoined.data[0];
        bool is_slower = false;
        for (uint32_t k = 0; k < apart->prices.n; k++)
            is_slower =
                is_slower || apart->prices.data[k].changed_us > apart->prices.data[k].current_us;
        cr_expect(is_slower && apart->prices.n == (i ? 4 : 1), "%u sizes", apart->prices.n);
        /* The source's own block costs what it was said to cost. */
        VecBlockPrice blocks = advice_price_blocks(arena, after, &planner);
        cr_assert_eq(blocks.n, 1u);
        cr_expect(blocks.data[0].without.us == now.us && blocks.data[0].without.n_launches == 2);
        arena_free(planner.trial);
        arena_free(arena);
    }
}

/* What no block of the source changes gets no steps: matmuls of two dtypes; a pair behind one
 * another; a value that another block holds. */
Test(advice, gives_none_that_cannot_be_followed) {
    static const char *const sources[] = {
        "graph g(x: bf16[256, 256], w: bf16[256, 256], z: f32[256, 256], v: f32[256, 256])"
        " -> (p: bf16[256, 256], q: f32[256, 256]) {\n  p = x @ w\n  q = z @ v\n}",
        "graph g(x: bf16[512, 512], w: bf16[512, 512], v: bf16[512, 512], u: bf16[512, 256])"
        " -> (y: bf16[512, 512], q: bf16[512, 256]) {\n"
        "  p = x @ w\n  y = silu(p) * (x @ v)\n  q = x @ u\n}",
        "graph g(x: f32[1024, 2048], w: f32[2048, 2048], z: f32[1024, 2048], v: f32[2048, 2048])"
        " -> (p: f32[1024, 2048], q: f32[1024, 2048]) {\n"
        "  p = sqrt(x @ w)\n  fuse never { q = z @ v }\n}",
    };
    static const ReasonId reasons[] = {REASON_OTHER_LOOPS, REASON_IN_BLOCKS, REASON_SLOWER_LAUNCH};
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        Arena *arena = arena_new(NULL);
        Compiled program = {sources[i], plans_parse(arena, sources[i]), TARGET_SM_80, NULL};
        Plan *plan = plan_of(&program, arena, program.module->graphs.data[0]);
        AdvicePlanner planner = planner_of(&program);
        AdviceTotals now = price_of(&program, arena, plan);
        const Advice *advices = advice_settle_launches(arena, plan, now, &planner);
        cr_assert_eq(plan->unjoined.n, 1u, "%s", sources[i]);
        cr_expect_eq(plan->unjoined.data[0].reason, reasons[i], "%s", sources[i]);
        cr_expect_eq(advices[0].n_steps, 0u, "%s", sources[i]);
        arena_free(planner.trial);
        arena_free(arena);
    }
}

/* Blocks that a source can have. */

/* Whether a value outside the block depends on the block, and the block depends on it: no kernel
 * can compute such a block. */
static bool is_broken_by(const Graph *graph, const bool *is_in, NodeId id) {
    Arena *arena = arena_new(NULL);
    bool *is_below = arena_array(arena, bool, graph->nodes.n), found = false;
    is_below[id] = true;
    for (NodeId at = id + 1; at < graph->nodes.n; at++)
        for (uint32_t i = 0; i < graph_node(graph, at)->n_args; i++)
            is_below[at] = is_below[at] || is_below[graph_node(graph, at)->args[i]];
    for (NodeId at = id + 1; at < graph->nodes.n; at++)
        found = found || (is_below[at] && is_in[at]);
    memset(is_below, 0, graph->nodes.n);
    is_below[id] = true;
    bool is_from = false;
    for (NodeId at = id + 1; at-- > 0;)
        for (uint32_t i = 0; is_below[at] && i < graph_node(graph, at)->n_args; i++) {
            NodeId arg = graph_node(graph, at)->args[i];
            is_below[arg] = true;
            is_from = is_from || is_in[arg];
        }
    arena_free(arena);
    return found && is_from;
}

static void check_block(const Graph *graph, const VecU32 *nodes, const char *what) {
    Arena *arena = arena_new(NULL);
    bool *is_in = arena_array(arena, bool, graph->nodes.n);
    for (uint32_t i = 0; i < nodes->n; i++) is_in[nodes->data[i]] = true;
    for (NodeId id = 0; id < graph->nodes.n; id++) {
        uint32_t call = graph_node(graph, id)->call;
        for (NodeId of = 0; of < graph->nodes.n && call && is_in[id]; of++)
            cr_expect(graph_node(graph, of)->call != call || is_in[of], "%s: half a call", what);
        cr_expect(is_in[id] || graph_is_bound(graph, id) || !is_broken_by(graph, is_in, id),
                  "%s: node %u is in the way", what, id);
    }
    arena_free(arena);
}

Test(advice, blocks_can_be_written, .timeout = 240) {
    static const char *const paths[] = {"dsl/examples/transformer.g", "dsl/examples/softmax.g",
                                        "dsl/examples/mlp.g"};
    uint32_t n_blocks = 0;
    for (size_t i = 0; i < 2 * sizeof paths / sizeof *paths; i++) {
        Arena *arena = arena_new(NULL);
        const char *text = text_file_read(arena, paths[i / 2], NULL);
        if (!text) continue;
        Compiled program = {paths[i / 2], plans_parse(arena, text),
                            i % 2 ? TARGET_SM_90A : TARGET_CPU, NULL};
        for (uint32_t g = 0; g < program.module->graphs.n; g++) {
            Plan *plan = plan_of(&program, arena, program.module->graphs.data[g]);
            const Advice *advices = settle(&program, arena, plan);
            for (uint32_t e = 0; e < plan->edges.n; e++)
                for (uint32_t k = 0; k < advices[e].n_steps; k++) {
                    const AdviceStep *step = &advices[e].steps[k];
                    if (step->kind != ADVICE_MUST || !advices[e].is_tried) continue;
                    check_block(plan->graph, &step->nodes, paths[i / 2]);
                    n_blocks++;
                }
        }
        arena_free(arena);
    }
    cr_expect_gt(n_blocks, 2u);
}

/* Takes by hand the steps of an advice that names parts of a longer statement. All ops of a call
 * leave a block together. */
Test(advice, calls_leave_a_block_whole) {
    static const struct {
        const char *source, *value;
    } cases[] = {{"graph g(x: f32[1024]) -> (y: f32[1024]) { fuse never { y = softmax(x) } }\n",
                  "Take `y` (line 1:60) out of"},
                 {"def f(x) { a = x * 2.0; return exp(a) + a }\n"
                  "graph g(x: f32[1024]) -> (y: f32[1024]) {\n"
                  "  b = f(x)\n  fuse never { y = f(b) }\n}\n",
                  "Take `y` (line 1:32) out of"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Arena *arena = arena_new(NULL);
        Compiled program = {"never.g", plans_parse(arena, cases[i].source), TARGET_CPU, NULL};
        Plan *plan = plan_of(&program, arena, program.module->graphs.data[0]);
        const Advice *advices = settle(&program, arena, plan);
        uint32_t n = 0;
        for (uint32_t e = 0; e < plan->edges.n; e++) {
            const Advice *advice = &advices[e];
            if (plan->edges.data[e].reason != REASON_NEVER) continue;
            n++;
            const char *text = advice_text(arena, plan->graph, advice);
            cr_expect(advice->is_tried && strstr(text, cases[i].value), "%s", text);
            cr_expect_eq(advice->then.n_launches, 1, "%s", text);
        }
        cr_expect_geq(n, 3u);
        arena_free(arena);
    }
}

Test(advice, says_how_a_block_is_written) {
    static const char head[] = "dim B in 1..4096\n"
                               "graph g(x: bf16[B, 256], u: bf16[256, 768], d: bf16[768, 256])\n"
                               "    -> (y: bf16[B, 256]) {\n";
    Arena *arena = arena_new(NULL);
    const char *source = str_format(arena, "%s  y = x + (gelu(x @ u) * 2.0) @ d\n}\n", head);
    Compiled program = {source, plans_parse(arena, source), TARGET_SM_90A, NULL};
    Plan *plan = plan_of(&program, arena, program.module->graphs.data[0]);
    const Advice *advices = settle(&program, arena, plan);
    uint32_t n_found = 0;
    for (uint32_t e = 0; e < plan->edges.n; e++) {
        const Edge *edge = &plan->edges.data[e];
        bool is_it = edge->reason == REASON_OPERAND &&
                     graph_node(plan->graph, edge->consumer)->op == OP_MATMUL;
        if (!is_it) continue;
        const char *text = advice_text(arena, plan->graph, &advices[e]);
        cr_expect_str_eq(text,
                         "Put `mul` (line 4:12) and `matmul` (line 4:11), as statements side by "
                         "side, into one `fuse must` block to have it computed in the matmul's "
                         "kernel, or passed to it in shared memory or registers.");
        n_found++;
    }
    cr_expect_eq(n_found, 1u);
    source = str_format(arena,
                        "%s  a = gelu(x @ u)\n  fuse must {\n    b = a * 2.0\n    c = b @ d\n  }\n"
                        "  y = x + c\n}\n",
                        head);
    program = (Compiled){source, plans_parse(arena, source), TARGET_SM_90A, NULL};
    cr_expect_eq(must_n_broken(plan_of(&program, arena, program.module->graphs.data[0])), 0u);
    arena_free(arena);
}
