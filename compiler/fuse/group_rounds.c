/* Rounds of grouping, and what is stored at their end. See group.h. */
#include "fuse/group_state.h"
#include "fuse/hoist.h"
#include "fuse/gemm_slice.h"
#include "machine/tuning.h"
#include "plan/variant.h"

#include <string.h>

/* Stores a value that a kernel reads from memory. */
static void store_value(Grouper *p, NodeId id) {
    if (graph_is_bound(p->graph, id)) return;
    if (p->off && !node_has(p->flags, id, GROUPING_STORED))
        p->g->why_stored[id] = REASON_FUSION_OFF;
    if (!p->g->why_stored[id]) p->g->why_stored[id] = REASON_BETWEEN;
    if (!node_add(p->flags, id, GROUPING_STORED)) return;
    Group *maker = &p->g->groups.data[p->g->group_of[id]];
    vec_push(p->arena, &maker->targets, (StoreTarget){.node = id, .output = OUTPUT_NONE});
}

/* Stores all values that groups load, reductions that are read, and what updates update. */
static void store_loaded(Grouper *p) {
    for (NodeId id = 0; id < p->graph->nodes.n; id++)
        if (node_has(p->flags, id, GROUPING_UPDATED)) store_value(p, id);
    for (uint32_t i = 0; i < p->g->groups.n; i++) {
        const Group *group = &p->g->groups.data[i];
        for (uint32_t k = 0; k < group->loads.n; k++) store_value(p, group->loads.data[k]);
    }
}

/* Removes stores for groups that have since joined the group that computes the value. A group keeps
 * its last value, because it has no other purpose. */
static void drop_unread(Grouper *p) {
    group_flag_loaded(p);
    for (uint32_t i = 0; i < p->g->groups.n; i++) {
        Group *group = &p->g->groups.data[i];
        uint32_t n_kept = 0, n = group->targets.n;
        for (uint32_t k = 0; k < n; k++) {
            StoreTarget target = group->targets.data[k];
            bool is_last = n_kept == 0 && k + 1 == n;
            bool is_read = target.output != OUTPUT_NONE || target.piece ||
                           node_has(p->flags, target.node, GROUPING_LOADED) || is_last ||
                           (group->fixed && p->g->why_stored[target.node] == REASON_FIXED);
            if (is_read)
                group->targets.data[n_kept++] = target;
            else
                node_drop(p->flags, target.node, GROUPING_STORED);
        }
        group->targets.n = n_kept;
    }
}

/* Stores values to make the groups smaller that were too large in the last round. Returns false if
 * nothing is left to store. */
static bool shrink(Grouper *p) {
    bool any = false;
    for (uint32_t i = 0; i < p->failures.n; i++) {
        const GroupFailure *failed = &p->failures.data[i];
        if (failed->why.reason == REASON_TOO_LARGE && failed->root != NODE_NONE)
            any = group_split_closure(p, failed->root, failed->why.node) || any;
    }
    return any || group_want_stored(p, p->failures.data[0].why.node, REASON_TOO_LARGE);
}

/* Values that are stored whatever the groups are. */
static void store_given(Grouper *p) {
    for (NodeId id = 0; id < p->graph->nodes.n; id++) {
        bool is_updated = node_has(p->flags, id, GROUPING_UPDATED) && !graph_is_bound(p->graph, id);
        if (graph_is_update(p->graph, id) || is_updated) group_want_stored(p, id, REASON_UPDATED);
        if (decisions_ask(p->decisions, id, DIRECTIVE_CUT)) group_want_stored(p, id, REASON_SPILLS);
        if (decisions_ask(p->decisions, id, DIRECTIVE_STORE))
            group_want_stored(p, id, REASON_SLOWER);
    }
}

/* What a round leaves that later ones change. */
typedef struct Round {
    Grouping *g; /* NULL: there is none */
    NodeFlags flags;
    NodeId *gemm_slice_of;
} Round;

/* Keeps the round if the groups can be kernels. */
static void keep_round(const Grouper *p, Round *kept) {
    uint32_t n = p->graph->nodes.n;
    bool is_whole = !p->failures.n && !group_is_spent(p);
    for (uint32_t i = 0; i < p->g->groups.n && is_whole; i++)
        is_whole = p->g->groups.data[i].loads.n < MAX_KERNEL_ARGS;
    if (!is_whole) return;
    if (!kept->flags.n) {
        kept->flags = node_flags_new(p->arena, n);
        kept->gemm_slice_of = arena_array(p->arena, NodeId, n);
    }
    kept->g = p->g;
    memcpy(kept->flags.bits, p->flags.bits, n * sizeof *kept->flags.bits);
    memcpy(kept->gemm_slice_of, p->gemm_slice_of, n * sizeof *kept->gemm_slice_of);
}

static void restore_round(Grouper *p, const Round *kept) {
    uint32_t n = p->graph->nodes.n;
    p->g = kept->g;
    p->failures.n = 0;
    memcpy(p->flags.bits, kept->flags.bits, n * sizeof *kept->flags.bits);
    memcpy(p->gemm_slice_of, kept->gemm_slice_of, n * sizeof *kept->gemm_slice_of);
}

/* Rounds until one changes nothing, or until the work is spent. */
static void run_rounds(Grouper *p, Round *kept) {
    for (int round = 0; round < FUSE_ROUNDS; round++) {
        p->failures.n = 0;
        group_run_round(p);
        if (group_is_spent(p)) return;
        if (!p->off && !p->is_apart) keep_round(p, kept);
        bool grew = group_is_too_large(p) && shrink(p);
        bool may_grow = !grew && !p->off && !group_is_spent(p);
        if (!grew && !(may_grow && (p->is_apart ? group_narrow(p) : group_store_more(p)))) break;
    }
}

/* When the work is spent: the last round whose groups can be kernels, or else the ops apart. */
static void finish_spent(Grouper *p, const Round *kept) {
    if (kept->g) {
        restore_round(p, kept);
        return;
    }
    p->is_apart = true;
    for (GroupingFlag flag = GROUPING_WANTED; flag <= GROUPING_IN_PLACE; flag++)
        node_flags_drop(p->flags, flag);
    store_given(p);
    group_store_apart(p);
    run_rounds(p, NULL);
}

static Grouper grouper_new(Arena *arena, const Graph *graph, FuseOptions options, GroupMemo *memo) {
    uint32_t n = graph->nodes.n;
    Grouper p = {.arena = arena,
                 .graph = graph,
                 .off = options.off,
                 .has_cores = options.has_cores,
                 .decisions = options.decisions,
                 .memo = memo,
                 .work = options.off ? NULL : options.work};
    if (!p.work) p.work = group_memo_work(memo);
    p.has_limit = p.work != NULL;
    if (!p.work) p.work = arena_array(arena, GroupingWork, 1);
    p.flags = hoist_flags(arena, graph);
    p.want_reason = arena_array(arena, ReasonId, n);
    p.op_cost = options.op_cost ? options.op_cost : op_costs(arena);
    p.last_groups = arena_array(arena, LastGroups, n);
    p.users = gemm_slice_users(arena, graph);
    p.leads = gemm_slice_leads(arena, graph, p.users);
    p.gemm_slice_of = arena_array(arena, NodeId, n);
    p.loads = arena_array(arena, NodeId, n);
    p.marks = arena_array(arena, InlineMarks, 1);
    *p.marks = inline_marks_new(arena, graph);
    return p;
}

Grouping *group_graph(Arena *arena, const Graph *graph, FuseOptions options,
                      GroupFailure *failure) {
    GroupMemo *memo = options.off ? NULL : group_memo_of(options.memo, graph);
    Grouping *known = memo ? group_memo_grouping(memo, arena, options.decisions) : NULL;
    if (known) return known;
    Grouper p = grouper_new(arena, graph, options, memo);
    Round kept = {.g = NULL};
    store_given(&p);
    if (!p.off) {
        group_flag_uses(&p);
        if (!group_is_spent(&p)) {
            group_want_coalesced(&p);
            group_bound_closures(&p);
            group_want_operands(&p);
        }
    }
    run_rounds(&p, &kept);
    if (group_is_spent(&p)) finish_spent(&p, &kept);
    if (p.failures.n) {
        *failure = p.failures.data[0];
        return NULL;
    }
    group_number_refusals(p.g);
    store_loaded(&p);
    if (!p.off) {
        drop_unread(&p);
        group_judge_outputs(&p);
    }
    if (memo) group_memo_keep(memo, p.g, options.decisions);
    return p.g;
}
