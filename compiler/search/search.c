/* Greedy search: the candidates of a kernel are tried in the order of the table, each on top of
 * those taken before. After all kernels, the graph is planned again with the taken candidates;
 * kernels that are new then get another round. Kernels that spill come last. See search.h. */
#include "plan/launch.h"
#include "machine/tuning.h"
#include "search/ahead.h"
#include "search/region_memo.h"
#include "search/spill_split.h"

#include "fuse/gemm_slice.h"
#include "fuse/group_memo.h"
#include "plan/must.h"

#include <math.h>
#include <string.h>

/* Candidates. */

/* A candidate sets directives of the region's nodes. Returns whether any directive is new. */
typedef bool Candidate(const Region *region, Decisions *decisions);

/* Sets the directive on all nodes with the flag. */
static bool ask(const Region *region, RegionFlag flag, Decisions *decisions, Directive directive) {
    bool changes = false;
    for (NodeId id = 0; id < region->flags.n; id++)
        if (node_has(region->flags, id, flag))
            changes = decisions_add(decisions, id, directive) || changes;
    return changes;
}

static bool compute_left(const Region *region, Decisions *decisions) {
    return ask(region, REGION_LEFT, decisions, DIRECTIVE_RECOMPUTE);
}

static bool compute_right(const Region *region, Decisions *decisions) {
    return ask(region, REGION_RIGHT, decisions, DIRECTIVE_RECOMPUTE);
}

/* Both operands, if the kernel computes both. */
static bool recompute_operands(const Region *region, Decisions *decisions) {
    bool has_left = compute_left(region, decisions), has_right = compute_right(region, decisions);
    return has_left && has_right;
}

static bool store_left(const Region *region, Decisions *decisions) {
    return ask(region, REGION_COMPUTED_LEFT, decisions, DIRECTIVE_STORE);
}

static bool store_right(const Region *region, Decisions *decisions) {
    return ask(region, REGION_COMPUTED_RIGHT, decisions, DIRECTIVE_STORE);
}

static bool store_operands(const Region *region, Decisions *decisions) {
    bool has_left = store_left(region, decisions), has_right = store_right(region, decisions);
    return has_left && has_right;
}

static bool store_joined(const Region *region, Decisions *decisions) {
    return ask(region, REGION_JOINED, decisions, DIRECTIVE_STORE);
}

/* Each transpose as a kernel of its own. If a row kernel stored it, the access would be uncoalesced
 * again. */
static bool transposed_own_kernel(const Region *region, Decisions *decisions) {
    return ask(region, REGION_TRANSPOSED, decisions, DIRECTIVE_OWN_KERNEL);
}

/* Sets the directive on all nodes of the class. */
static bool ask_class(const Region *region, OpClass cls, Decisions *decisions,
                      Directive directive) {
    const Graph *graph = region->subgraph.graph;
    bool changes = false;
    for (NodeId id = 0; id < graph->nodes.n; id++)
        if (graph_class(graph, id) == cls)
            changes = decisions_add(decisions, id, directive) || changes;
    return changes;
}

static bool ask_reductions(const Region *region, Decisions *decisions, Directive directive) {
    bool changes = ask_class(region, CLASS_REDUCE, decisions, directive);
    return ask_class(region, CLASS_ARGREDUCE, decisions, directive) || changes;
}

static bool rows_unmerged(const Region *region, Decisions *decisions) {
    return ask_reductions(region, decisions, DIRECTIVE_NO_MERGE);
}

/* A lane computes one result of segments after the other, while a map behind has all lanes. */
static bool split_reductions(const Region *region, Decisions *decisions) {
    bool changes = ask_class(region, CLASS_SEGMENT, decisions, DIRECTIVE_SPLIT_REDUCE);
    return ask_reductions(region, decisions, DIRECTIVE_SPLIT_REDUCE) || changes;
}

/* A kernel with a concat computes all operands for all lanes and selects one of the values. */
static bool store_pieces(const Region *region, Decisions *decisions) {
    return ask(region, REGION_MAY_PLACE, decisions, DIRECTIVE_CONCAT_IN_PLACE);
}

/* Slices that meet become matmuls of their own, which may run in the same blocks. */
static bool slice_gemms(const Region *region, Decisions *decisions) {
    return ask(region, REGION_MAY_SLICE, decisions, DIRECTIVE_GEMM_SLICE);
}

/* The sorts alone: they store their orders one by one, and maps read them in vectors. */
static bool sorts_own_kernel(const Region *region, Decisions *decisions) {
    return ask_class(region, CLASS_SORT, decisions, DIRECTIVE_OWN_KERNEL);
}

/* The scans alone: a row of one has a block or a thread, while maps in front have all of them. */
static bool scans_own_kernel(const Region *region, Decisions *decisions) {
    bool changes = ask_class(region, CLASS_SCAN, decisions, DIRECTIVE_OWN_KERNEL);
    return ask_class(region, CLASS_SCAN_BY, decisions, DIRECTIVE_OWN_KERNEL) || changes;
}

/* The reductions alone: a row's end is computed in one lane, while a map behind has all of them. */
static bool reductions_own_kernel(const Region *region, Decisions *decisions) {
    return ask_reductions(region, decisions, DIRECTIVE_OWN_KERNEL);
}

/* The gathers that segments read, and that one thread would wait for, one after the other. */
static bool store_gathers(const Region *region, Decisions *decisions) {
    const Graph *graph = region->subgraph.graph;
    bool changes = false;
    for (NodeId id = 0; id < graph->nodes.n; id++)
        for (uint32_t i = 0; i < 2 && graph_is_segments(graph, id); i++) {
            NodeId from = graph_below_views(graph, graph_node(graph, id)->args[i]);
            if (graph_class(graph, from) == CLASS_VIEW)
                changes = decisions_add(decisions, from, DIRECTIVE_STORE) || changes;
        }
    return changes;
}

/* Each piece is stored by the kernel that computes it, and the concat is a copy. */
static bool joined_own_kernel(const Region *region, Decisions *decisions) {
    return ask_class(region, CLASS_CONCAT, decisions, DIRECTIVE_OWN_KERNEL);
}

static bool all_own_kernels(const Region *region, Decisions *decisions) {
    const Graph *graph = region->subgraph.graph;
    bool changes = false;
    for (NodeId id = 0; id < graph->nodes.n; id++)
        if (graph_class(graph, id) != CLASS_SOURCE)
            changes = decisions_add(decisions, id, DIRECTIVE_OWN_KERNEL) || changes;
    return changes;
}

/* Each value that a kernel would compute again for the elements of a larger tensor. */
static bool store_broadcast(const Region *region, Decisions *decisions) {
    return ask(region, REGION_BROADCAST, decisions, DIRECTIVE_STORE);
}

/* One kernel for all views that are costly to read. */
static bool store_outer_views(const Region *region, Decisions *decisions) {
    return ask(region, REGION_OUTER_VIEW, decisions, DIRECTIVE_STORE);
}

static Candidate *const candidates[] = {
    recompute_operands, compute_left,  compute_right,         store_left,        store_right,
    store_operands,     store_joined,  transposed_own_kernel, slice_gemms,       rows_unmerged,
    split_reductions,   store_pieces,  store_outer_views,     store_broadcast,   sorts_own_kernel,
    scans_own_kernel,   store_gathers, reductions_own_kernel, joined_own_kernel, all_own_kernels};
/* The last of them make many kernels: they are for plans slower than one kernel per op. */
enum { N_CANDIDATES = sizeof candidates / sizeof *candidates, N_LAST_CANDIDATES = 3 };

/* The number of broken edges of `fuse must` blocks plus the number of kernels of each block. */
static uint32_t n_broken(Arena *arena, const Plan *plan) {
    const Graph *graph = plan->graph;
    uint32_t n = must_n_broken(plan);
    uint32_t *last = arena_array(arena, uint32_t, graph->fixed_kernels.n + (size_t)1);
    for (uint32_t i = 0; i < plan->kernels.n; i++) {
        const Kernel *kernel = &plan->kernels.data[i];
        for (uint32_t k = 0; k < kernel->nodes.n; k++) {
            uint32_t block = must_block(graph, kernel->nodes.data[k]);
            if (!block || last[block] == i + 1) continue;
            last[block] = i + 1;
            n++;
        }
    }
    return n;
}

static void note_launches(const Searcher *c, const Plan *plan, Evaluation *evaluation) {
    evaluation->n_launches = 0;
    evaluation->is_at_once = false;
    for (uint32_t i = 0; i < plan->launches.n; i++) {
        const Launch *launch = &plan->launches.data[i];
        const Kernel *first = launch_kernel(plan, launch, 0);
        bool is_pair = launch_joins_gemms(plan, launch);
        bool is_at_once = c->target->has->cores;
        for (uint32_t v = 0; v < first->n_variants; v++)
            is_at_once = is_at_once || sched_gemm(&first->variants[v].sched).n_gemms > 1;
        evaluation->is_at_once = evaluation->is_at_once || (is_pair && is_at_once);
        evaluation->n_launches++;
    }
}

bool search_is_spent(const Searcher *c) {
    const Planning *p = c->planning;
    uint64_t n_tried = p->grouped && !p->is_trial ? p->grouped->n_scalars : 0;
    return group_work_is_spent(p->grouped, c->graph) ||
           (c->most_work && *p->work + n_tried > c->most_work);
}

/* The arena for the next priced plan. */
static Arena *for_pricing(const Searcher *c) {
    arena_rewind(c->scratch, c->clean);
    if (c->priced) arena_reset(c->priced);
    return c->priced ? c->priced : c->arena;
}

/* Prices the graph planned with these decisions. Returns false if it cannot be planned. */
static bool price_graph(const Searcher *c, const Graph *graph, const Decisions *decisions,
                        bool has_gemm_slices, Evaluation *evaluation) {
    PlanMode mode = has_gemm_slices ? MODE_SLICES : MODE_SEARCH;
    Arena *arena = for_pricing(c);
    const Plan *plan = pipeline_try(c->planning, arena, c->scratch, mode,
                                    graph_for_trial(arena, graph), decisions, PASS_LAUNCH);
    if (!plan) return false;
    evaluation->n_broken = n_broken(c->scratch, plan);
    note_launches(c, plan, evaluation);
    evaluation->prices = prices_of_plan(c->scratch, plan, c->target, &c->points);
    return true;
}

static bool price_region(const Searcher *c, const Region *region, const Decisions *decisions,
                         Evaluation *evaluation) {
    return price_graph(c, region->subgraph.graph, decisions, region->has_gemm_slices, evaluation);
}

bool search_evaluate(const Searcher *c, const Decisions *decisions, Evaluation *evaluation) {
    bool has_gemm_slices = node_flags_any(decisions->directives, DIRECTIVE_GEMM_SLICE);
    return price_graph(c, c->graph, decisions, has_gemm_slices, evaluation);
}

/* The prices of another plan beside those of the current one. Prices of CPU plans are accurate only
 * to SEARCH_MORE_KERNELS: so much worse counts each launch more, unless the current plan is slower
 * than one kernel per op. */
static Prices prices_beside(const Searcher *c, const Evaluation *now, const Evaluation *other,
                            const Prices *unfused) {
    Prices dear = other->prices;
    if (!c->target->has->cores || other->n_launches <= now->n_launches ||
        !prices_are_within(&c->points, &now->prices, unfused, PRICES_NO_SLOWER))
        return dear;
    double factor = pow(SEARCH_MORE_KERNELS, other->n_launches - now->n_launches);
    dear.alone_us *= factor;
    for (uint32_t i = 0; i < c->points.n; i++) dear.us[i] *= factor;
    return dear;
}

static bool is_better(const Searcher *c, const Evaluation *now, const Evaluation *other,
                      const Prices *unfused) {
    Prices dear = prices_beside(c, now, other, unfused);
    return prices_are_better(&c->points, &now->prices, &dear, unfused);
}

/* Matmuls of slices are fused into one launch only if they run at once, as a dual GEMM. Two matmuls
 * in sequence in the same blocks take longer than one matmul of all columns and a map, because
 * memory idles between them: on an H200 25.0 and 23.0 us for 1 x 4096 x 8192, 25.1 and 23.8 for 16
 * rows by `mma.sync`, 1352 and 1323 for 1024 rows of f32. */
static bool is_worth_slicing(const Searcher *c, const Evaluation *now, const Evaluation *other,
                             const Prices *unfused) {
    if (other->n_broken < now->n_broken) return true;
    if (!other->is_at_once) return false;
    if (is_better(c, now, other, unfused)) return true;
    return other->n_launches < now->n_launches && !is_better(c, other, now, unfused);
}

/* At equal price fewer launches win. */
bool search_is_worth(const Searcher *c, const Evaluation *now, const Evaluation *other,
                     const Prices *unfused) {
    bool waits = c->target->has->launches && other->n_launches > now->n_launches;
    bool is_as_good = waits &&
                      prices_are_within(&c->points, &now->prices, unfused, PRICES_NO_SLOWER) &&
                      prices_may_favor_joining(&c->points, &now->prices, &other->prices);
    return !is_as_good && is_better(c, now, other, unfused);
}

typedef bool Worth(const Searcher *, const Evaluation *now, const Evaluation *other,
                   const Prices *unfused);

/* A state of the region: its decisions and their evaluation. */
typedef struct Trial {
    Decisions *decisions;
    Evaluation evaluation;
} Trial;

/* Prices the state with the candidate. Returns false if the candidate changes nothing, breaks a
 * `fuse must` block, or does not pay. */
static bool try_candidate(const Searcher *c, const Region *region, Candidate *candidate,
                          const Decisions *from, const Evaluation *now, const Prices *unfused,
                          Trial *trial) {
    Worth *pays = candidate == slice_gemms ? is_worth_slicing : search_is_worth;
    trial->decisions = decisions_copy(c->arena, from);
    return candidate(region, trial->decisions) &&
           price_region(c, region, trial->decisions, &trial->evaluation) &&
           trial->evaluation.n_broken <= now->n_broken && pays(c, now, &trial->evaluation, unfused);
}

bool search_improve(const Searcher *searcher, const Region *region, Decisions **decisions) {
    Planning planning = *searcher->planning;
    Searcher own = *searcher, *c = &own;
    planning.group_memo = group_memo_new(known_groups_new(c->arena), planning.group_trials,
                                         region->subgraph.graph, planning.grouped);
    own.planning = &planning;
    Trial now = {.decisions = *decisions}, top, instead;
    Prices unfused;
    const Decisions *before = NULL;
    if (!price_region(c, region, *decisions, &now.evaluation)) return false;
    if (!prices_of_unfused(c->planning, for_pricing(c), c->scratch, region->subgraph.graph,
                           &c->points, &unfused))
        return false;
    for (uint32_t i = 0; i < N_CANDIDATES && !search_is_spent(c); i++) {
        Candidate *candidate = candidates[i];
        bool is_last = i + N_LAST_CANDIDATES >= N_CANDIDATES;
        if ((candidate == slice_gemms) != region->has_gemm_slices) continue;
        if (is_last &&
            prices_are_within(&c->points, &now.evaluation.prices, &unfused, PRICES_NO_SLOWER))
            continue;
        bool pays =
            try_candidate(c, region, candidate, now.decisions, &now.evaluation, &unfused, &top);
        bool pays_instead = before && try_candidate(c, region, candidate, before, &now.evaluation,
                                                    &unfused, &instead);
        if (!pays && !pays_instead) continue;
        if (pays_instead &&
            (!pays || search_is_worth(c, &top.evaluation, &instead.evaluation, &unfused))) {
            now = instead;
        } else {
            before = now.decisions;
            now = top;
        }
    }
    bool improves = now.decisions != *decisions;
    *decisions = now.decisions;
    return improves;
}

/* Kernels. */

/* Copies decisions between the graph and a subgraph, for the nodes that the region computes.
 * Decisions about its inputs stay. */
static void copy_decisions(Decisions *to, const Decisions *from, const Subgraph *subgraph,
                           bool back) {
    for (NodeId id = 0; id < subgraph->graph->nodes.n; id++) {
        if (graph_is_bound(subgraph->graph, id)) continue;
        NodeId of = subgraph->of[id];
        to->directives.bits[back ? of : id] = from->directives.bits[back ? id : of];
    }
}

static void note_taken(Searcher *c, const Subgraph *subgraph) {
    if (c->n_taken == MAX_TAKEN) return;
    unsigned mark = MARK_TAKEN + c->n_taken++;
    for (NodeId id = 0; id < subgraph->graph->nodes.n; id++)
        if (!graph_is_bound(subgraph->graph, id)) node_add(c->marks, subgraph->of[id], mark);
}

/* search_improve, or its result for an equal region. */
static bool improve_once(const Searcher *c, const Region *region, Decisions **decisions) {
    RegionResult *known = region_memo_of(c, region, *decisions);
    if (known->decisions && region_memo_count(c, known)) {
        *decisions = decisions_copy(c->arena, known->decisions);
        return known->improves;
    }
    bool improves = search_improve(c, region, decisions);
    region_memo_set(c, known, improves, *decisions);
    return improves;
}

Decisions *search_region_decisions(const Searcher *c, const Region *region) {
    Decisions *decisions = decisions_new(c->arena, region->subgraph.graph->nodes.n);
    decisions->by_columns = c->decisions->by_columns;
    memcpy(decisions->inner, region->inner, region->flags.n * sizeof *region->inner);
    copy_decisions(decisions, c->decisions, &region->subgraph, false);
    return decisions;
}

/* Tries the candidates of the region. If any pay, adds them to the decisions and returns true. */
static bool take_candidates(Searcher *c, const Region *region) {
    Decisions *decisions = search_region_decisions(c, region);
    if (!improve_once(c, region, &decisions)) return false;
    copy_decisions(c->decisions, decisions, &region->subgraph, true);
    if (!region->has_gemm_slices) note_taken(c, &region->subgraph);
    return true;
}

/* The region lies in the scratch arena, and what is priced behind it. */
static bool improve_region(Searcher *c, const Plan *plan, const Kernel *kernel,
                           bool has_gemm_slices) {
    Region region;
    ArenaMark clean = c->clean;
    c->n_regions++;
    arena_rewind(c->scratch, clean);
    if (!search_make_region(c, plan, kernel, has_gemm_slices, &region)) return false;
    c->clean = arena_mark(c->scratch);
    bool improves = take_candidates(c, &region);
    c->clean = clean;
    return improves;
}

/* Slices of the matmul are priced after the kernel's other candidates. */
static bool improve_kernel(Searcher *c, const Plan *plan, const Kernel *kernel) {
    if (search_has_candidates(c, plan, kernel)) {
        node_add(c->marks, search_main_node(kernel), MARK_SETTLED);
        if (improve_region(c, plan, kernel, false)) return true;
    }
    if (!search_has_gemm_slices(c, plan, kernel)) return false;
    NodeId gemm = search_main_node(kernel);
    bool improves = improve_region(c, plan, kernel, true);
    node_add(c->marks, gemm, MARK_SLICED);
    if (improves) node_add(c->marks, gemm, MARK_SETTLED); /* a dual GEMM has no candidates */
    return improves;
}

/* Whole plans. */

Plan *search_make_plan(const Searcher *c) {
    arena_rewind(c->scratch, c->clean);
    return pipeline_try(c->planning, c->arena, c->scratch, MODE_ALONE, c->graph, c->decisions,
                        PASS_DISPATCH);
}

Plan *search_try_candidates(Searcher *c, Plan *plan) {
    bool changes = true;
    for (int round = 0; plan && changes && round < SEARCH_ROUNDS; round++) {
        changes = false;
        c->buffer_users = plan_users(c->arena, plan);
        search_ahead(c, plan);
        for (uint32_t k = 0;
             k < plan->kernels.n && c->n_regions < SEARCH_MOST_REGIONS && !search_is_spent(c); k++)
            changes = improve_kernel(c, plan, &plan->kernels.data[k]) || changes;
        if (changes) plan = search_make_plan(c);
    }
    return plan;
}

/* Cuts of kernels that spill. */

/* Schedules the plan without layouts. */
static void schedule(Searcher *c, Plan *plan) {
    arena_rewind(c->scratch, c->clean);
    pipeline_retry(c->planning, c->arena, c->scratch, MODE_ALONE, plan, PASS_SCHEDULE,
                   PASS_SCHEDULE);
}

/* Schedules and prices the plan. The result is in the scratch arena. */
static const PlanCost *price(Searcher *c, Plan *plan) {
    schedule(c, plan);
    return cost_kernels(c->scratch, plan, card_of_target(c->target), c->points.dims[0]);
}

/* The plan with the kernel cut in two, by the cheaper of the aims, if it is cheaper than the plan;
 * otherwise NULL. `registers`: what the kernel needs. */
static Plan *split_spilling(Searcher *c, const Plan *plan, double us, uint32_t kernel,
                            uint32_t registers) {
    Decisions *before = c->decisions, *best_decisions = before;
    Plan *best = NULL;
    double best_us = us;
    for (int aim = 0; aim < CUT_AIM_COUNT; aim++) {
        c->decisions = decisions_copy(c->arena, before);
        arena_rewind(c->scratch, c->clean);
        if (!spill_split_kernel(c->scratch, c->graph, &plan->kernels.data[kernel],
                                card_of_target(c->target), registers, c->points.dims[0],
                                (CutAim)aim, c->decisions))
            continue;
        Plan *other = search_make_plan(c);
        double other_us = other ? price(c, other)->us : 0;
        if (!other || !price_is_worth(other_us, us) || other_us >= best_us ||
            must_n_broken(other) > must_n_broken(plan))
            continue;
        best = other, best_us = other_us, best_decisions = c->decisions;
    }
    c->decisions = best_decisions;
    return best;
}

/* Whether the kernel may need too many registers, so that the estimate is worth its time. */
static bool may_spill(Searcher *c, const Kernel *kernel) {
    return c->target->has->blocks && !kernel->is_init &&
           scalar_count(kernel->scalars) > SEARCH_FEW_SCALARS &&
           pressure_live(c->scratch, kernel) > SEARCH_MANY_REGISTERS;
}

static Plan *cut_kernels(Searcher *c, Plan *plan) {
    for (uint32_t k = 0, n_tries = 0;
         plan && k < plan->kernels.n && n_tries < SEARCH_MOST_CUTS && !search_is_spent(c); k++) {
        if (!may_spill(c, &plan->kernels.data[k])) continue;
        n_tries++;
        const PlanCost *cost = price(c, plan);
        Pressure pressure = cost->kernels[k].pressure;
        Plan *better =
            pressure.spills ? split_spilling(c, plan, cost->us, k, pressure.registers) : NULL;
        if (!better) continue;
        plan = better;
        k = UINT32_MAX; /* restart at the first kernel */
    }
    return plan;
}

/* Records the reason of operands that rules store and prices confirm, in the plan too, whose
 * fusion does not know it. */
static void note_priced(Searcher *c, Plan *plan) {
    for (NodeId id = 0; id < c->graph->nodes.n; id++)
        if (node_has(c->marks, id, MARK_ASKED)) decisions_add(c->decisions, id, DIRECTIVE_PRICED);
    for (uint32_t i = 0; plan && i < plan->edges.n; i++) {
        Edge *edge = &plan->edges.data[i];
        if (edge->reason == REASON_OPERAND && node_has(c->marks, edge->producer, MARK_ASKED))
            edge->reason = REASON_SLOWER;
    }
}

/* Ties. */

static Searcher searcher_new(const Searcher *model, bool by_columns) {
    uint32_t n = model->graph->nodes.n;
    Searcher c = *model;
    c.decisions = decisions_new(c.arena, n);
    c.decisions->by_columns = by_columns;
    c.marks = node_flags_new(c.arena, n);
    return c;
}

static Plan *best_plan(Searcher *c) {
    Plan *plan = search_guard_unfused(
        c, search_try_candidates(c, search_keep_must_blocks(c, search_make_plan(c))));
    plan = search_launch_must_blocks(c, cut_kernels(c, plan));
    plan = search_store_broken_blocks(c, plan);
    note_priced(c, plan);
    return plan;
}

static Evaluation evaluation_of(Searcher *c, Plan *plan) {
    Evaluation evaluation;
    schedule(c, plan);
    evaluation.n_broken = n_broken(c->scratch, plan);
    note_launches(c, plan, &evaluation);
    evaluation.prices = prices_of_plan(c->scratch, plan, c->target, &c->points);
    return evaluation;
}

/* A value that may be computed by a row kernel or a column kernel goes with rows, unless the plan
 * is better if all such values go with columns. The order in the source never matters. */
static bool is_by_columns(const Searcher *model, Plan *plan, const Decisions **decisions) {
    Searcher c = searcher_new(model, true);
    Prices unfused;
    Plan *other = best_plan(&c);
    if (!other || !prices_of_unfused(c.planning, c.arena, c.scratch, c.graph, &c.points, &unfused))
        return false;
    Evaluation by_rows = evaluation_of(&c, plan), by_columns = evaluation_of(&c, other);
    bool is_as_good =
        by_columns.n_launches < by_rows.n_launches &&
        prices_are_within(&c.points, &by_columns.prices, &by_rows.prices, PRICES_JOINED);
    *decisions = c.decisions;
    return by_columns.n_broken <= by_rows.n_broken &&
           (is_as_good || search_is_worth(&c, &by_rows, &by_columns, &unfused));
}

/* Graphs have equal shares of the program's work. What one leaves, the next ones may take. */
static uint64_t most_work(const Planning *p, const PlanUnit *unit) {
    const Source *source = unit->graph->source;
    uint64_t most = SEARCH_MOST_WORK, n_units = p->n_units;
    if (source && (uint64_t)source->n_bytes * SEARCH_WORK_OF_BYTE > most)
        most = (uint64_t)source->n_bytes * SEARCH_WORK_OF_BYTE;
    return p->work ? most * (uint64_t)(unit - p->units + 1) / n_units : 0;
}

/* The plan of the decisions is the unit's, if it has the results of the passes that made it alone,
 * and nobody asks for those of each pass. */
static void take_plan(const Planning *p, PlanUnit *unit, Plan *plan) {
    if (!plan || p->has_traces || p->has_texts || plan->facts & pass_info(PASS_SCHEDULE)->leaves)
        return;
    unit->plan = plan;
    unit->is_made_to = PASS_DISPATCH;
}

bool decide_pass(const Planning *p, PlanUnit *unit) {
    const Graph *graph = unit->graph;
    Planning planning = *p;
    KnownGroups *known = p->known_groups ? p->known_groups : known_groups_new(p->arena);
    unit->group_memo = planning.group_memo =
        group_memo_new(known, p->group_trials, graph, p->grouped);
    planning.op_cost = op_costs(p->arena);
    Searcher model = {.planning = &planning,
                      .arena = p->arena,
                      .scratch = p->scratch,
                      .priced = p->trial,
                      .clean = arena_mark(p->scratch),
                      .memo = p->region_memo ? p->region_memo : region_memo_new(p->arena),
                      .graph = unit->graph,
                      .target = p->target,
                      .points = cost_points(p->arena, graph->dims, p->target->has),
                      .most_work = most_work(p, unit),
                      .op_cost = planning.op_cost,
                      .users = gemm_slice_users(p->arena, graph)};
    model.leads = gemm_slice_leads(p->arena, graph, model.users);
    Searcher c = searcher_new(&model, false);
    Plan *plan = best_plan(&c);
    const Decisions *by_columns = NULL;
    bool has_ties = plan && plan->has_ties && graph->nodes.n <= SEARCH_TIE_NODES;
    unit->decisions = c.decisions;
    if (has_ties && is_by_columns(&model, plan, &by_columns))
        unit->decisions = by_columns;
    else
        take_plan(p, unit, plan);
    return true;
}
