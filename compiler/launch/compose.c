/* See compose.h. */
#include "launch/compose.h"

#include "cost/price_memo.h"
#include "launch/dedup.h"
#include "launch/trial_memo.h"
#include "machine/tuning.h"
#include "plan/must.h"

/* A plan of fewer launches hardly has parts that are alike. */
enum { LEAST_LAUNCHES = 32 };

/* A launch of one kernel needs no trial. */
const LaunchRules launch_rules_single = {.mode = LAUNCH_SINGLE};

/* `fuse must` blocks. */

/* A node at an end of a stored edge of a `fuse must` block. */
enum { EDGE_END };

/* Kernels [begin, end): from the first to the last that compute values of a block at the ends of
 * stored edges. */
typedef struct KernelRange {
    uint32_t begin, end;
} KernelRange;

/* Per `fuse must` block, plus 1. A block without such kernels has an empty range. */
static KernelRange *find_kernel_ranges(const Composer *c, NodeFlags flags) {
    const Plan *plan = c->plan;
    uint32_t n_blocks = plan->graph->fixed_kernels.n + 1;
    KernelRange *ranges = arena_array(c->scratch, KernelRange, n_blocks);
    for (uint32_t k = plan_n_init(plan); k < plan->kernels.n; k++) {
        const Kernel *kernel = &plan->kernels.data[k];
        for (uint32_t i = 0; i < kernel->nodes.n; i++) {
            NodeId id = kernel->nodes.data[i];
            if (!node_has(flags, id, EDGE_END)) continue;
            KernelRange *range = &ranges[must_block(plan->graph, id)];
            if (!range->end) range->begin = k;
            range->end = k + 1;
        }
    }
    return ranges;
}

/* Makes a launch of the mode that keeps a `fuse must` block, at any price. */
static void keep_block(Composer *c, const LaunchRules *rules, KernelRange range) {
    uint32_t launches[MAX_TRIAL_LAUNCHES], n = range.end - range.begin;
    if (n < 2 || n > MAX_TRIAL_LAUNCHES) return;
    for (uint32_t k = 0; k < n; k++) {
        launches[k] = plan_launch_index(c->plan, range.begin + k);
        if (c->plan->launches.data[launches[k]].n > 1) return;
    }
    launch_try(c, rules, launches, n, 2);
}

/* Makes launches for the blocks that stay broken after the later modes have composed theirs. */
static void keep_blocks(Composer *c, const LaunchRules *rules) {
    const Graph *graph = c->plan->graph;
    if (!must_n_broken(c->plan)) return;
    ArenaMark mark = arena_mark(c->scratch);
    NodeFlags flags = node_flags_new(c->scratch, graph->nodes.n);
    Plan plan = trial_compose_around(c, NULL, 0, c->plan->launches.n);
    for (uint32_t i = 0; i < plan.edges.n; i++) {
        const Edge *edge = &plan.edges.data[i];
        if (!must_breaks(&plan, edge)) continue;
        node_add(flags, edge->producer, EDGE_END);
        node_add(flags, edge->consumer, EDGE_END);
    }
    c->n_broken = must_n_broken(&plan);
    const KernelRange *ranges = find_kernel_ranges(c, flags);
    for (uint32_t b = 1; b <= graph->fixed_kernels.n && c->n_broken; b++)
        if (graph->fixed_kernels.data[b - 1].kind == BLOCK_MUST) keep_block(c, rules, ranges[b]);
    c->n_broken = 0;
    arena_rewind(c->scratch, mark);
}

static EdgesOf list_edges(Arena *arena, const Plan *plan) {
    uint32_t n_nodes = plan->graph->nodes.n, n = plan->edges.n;
    EdgesOf edges = {0};
    if (!n) return edges;
    edges.first = arena_array(arena, uint32_t, n_nodes + (size_t)2);
    edges.of = arena_array(arena, uint32_t, n);
    uint32_t *next = edges.first + 1; /* the end of a node's edges so far, the first at the end */
    for (uint32_t e = 0; e < n; e++) next[plan->edges.data[e].producer + 1]++;
    for (uint32_t id = 0; id < n_nodes; id++) next[id + 1] += next[id];
    for (uint32_t e = 0; e < n; e++) edges.of[next[plan->edges.data[e].producer]++] = e;
    return edges;
}

static VecU32 list_of_versions(Arena *arena, const Plan *plan) {
    VecU32 buffers = {0};
    for (uint32_t k = 0; k < plan->kernels.n; k++) {
        const Kernel *kernel = &plan->kernels.data[k];
        for (uint32_t i = 0; i < kernel->row_stores.n && kernel->choice; i++)
            vec_push(arena, &buffers, kernel->row_stores.data[i].buffer);
    }
    return buffers;
}

static void copy_buffer(Buffer *copies, const Plan *plan, uint32_t buffer) {
    const Buffer *own = &plan->buffers.data[buffer];
    copies[buffer] = *own;
    if (own->choice) copies[own->source] = plan->buffers.data[own->source];
}

/* A copy of those buffers that the plan's kernels use: the plan may be a small part of another. */
static Buffer *copy_buffers(Arena *arena, const Plan *plan) {
    Buffer *copies = arena_extend(arena, NULL, 0, plan->buffers.n * sizeof *copies);
    for (uint32_t k = 0; k < plan->kernels.n; k++)
        for (uint32_t i = 0; i < plan->kernels.data[k].args.n; i++)
            copy_buffer(copies, plan, plan->kernels.data[k].args.data[i]);
    for (uint32_t i = 0; i < plan->dynamic_pitches.n; i++)
        copy_buffer(copies, plan, plan->dynamic_pitches.data[i].source);
    return copies;
}

void launch_compose(const Planning *p, Plan *plan, uint32_t modes) {
    static const LaunchRules *const table[] = {
#define LAUNCH_MODE(sym, name, ...) &launch_rules_##name,
#include "plan/launch_modes.def"
    };
    Composer c = {.planning = p,
                  .arena = p->arena,
                  .scratch = p->scratch,
                  .plan = plan,
                  .target = p->target,
                  .most_work = p->work ? *p->work + LAUNCH_MOST_WORK / p->n_units : 0,
                  .points = cost_points(p->arena, plan->graph->dims, p->target->has)};
    bool is_long = plan->launches.n >= LEAST_LAUNCHES;
    c.price_memo = p->price_memo ? p->price_memo : is_long ? price_memo_new(p->arena) : NULL;
    if (is_long && !plan->graph->fixed_kernels.n)
        c.trial_memo = trial_memo_new(p->arena, plan->graph);
    if (modes & LAUNCH_MODES_IN_BLOCKS) {
        c.n_users = plan_count_users(p->scratch, plan);
        c.edges_of = list_edges(p->scratch, plan);
        c.of_versions = list_of_versions(p->scratch, plan);
        c.placed = copy_buffers(p->scratch, plan);
        if (modes & 1u << LAUNCH_ONE_BLOCK) c.around = copy_buffers(p->scratch, plan);
    }
    for (uint32_t i = 0; i < sizeof table / sizeof *table; i++) {
        const LaunchRules *rules = table[i];
        bool is_for_target = p->target->has->launches || rules->has_cpu;
        if (!rules->propose || !is_for_target || !(modes >> rules->mode & 1)) continue;
        rules->propose(&c);
        if (rules->keeps_blocks) keep_blocks(&c, rules);
    }
}

bool launch_pass(const Planning *p) {
    uint32_t modes = mode_launches(p->mode);
    const Plan **plans = arena_array(p->scratch, const Plan *, p->n_units);
    for (uint32_t i = 0; i < p->n_units; i++) {
        launch_compose(p, p->units[i].plan, modes & LAUNCH_MODES_IN_BLOCKS);
        plans[i] = p->units[i].plan;
    }
    if (!(modes & LAUNCH_MODES_BESIDE) || !p->target->has->launches) return true;
    /* Equal kernels start together and share the machine. */
    dedup_classify(p->scratch, p->target->has_pdl, plans, p->n_units);
    for (uint32_t i = 0; i < p->n_units; i++)
        launch_compose(p, p->units[i].plan, modes & LAUNCH_MODES_BESIDE);
    return true;
}
