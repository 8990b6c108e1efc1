/* See group_memo.h. */
#include "fuse/group_memo.h"

#include "base/keytab.h"
#include "fuse/node_kinds.h"

#include <string.h>

typedef struct KnownTrial {
    GroupTrial trial;
    NodeId base;               /* of its group's key */
    struct KnownTrial *before; /* NULL: the first */
} KnownTrial;

/* The first round of a plan has other facts than the last one of the plan before, and one layer has
 * others than the next. */
enum { N_KNOWN_TRIALS = 32 };

struct GroupEntry {
    KnownTrial *last; /* the one that was made or found last; NULL: none */
};

struct GroupMemo {
    Arena *arena;
    const Node *nodes; /* of the graph; its copies share them */
    uint32_t n_nodes;
    NodeKinds *kinds;
    InlineTrial *growing;
    const GroupTrial *grown; /* the last trial of `growing` */
    VecU32 key;              /* of the group that was looked up last */
    KeyTab keys;
    Vec(GroupEntry *) entries;  /* by key */
    const Grouping *grouping;   /* the last one, or NULL */
    const Decisions *decisions; /* of `grouping`; NULL: none */
};

GroupMemo *group_memo_new(Arena *arena, Arena *trials, const Graph *graph) {
    GroupMemo *memo = arena_array(arena, GroupMemo, 1);
    memo->arena = arena;
    memo->growing = trials ? inline_trial_new(arena, trials, graph) : NULL;
    memo->nodes = graph->nodes.data;
    memo->n_nodes = graph->nodes.n;
    memo->kinds = node_kinds_new(arena, graph);
    return memo;
}

GroupMemo *group_memo_of(GroupMemo *memo, const Graph *graph) {
    return memo && memo->nodes == graph->nodes.data ? memo : NULL;
}

InlineTrial *group_memo_growing(const GroupMemo *memo) {
    return memo->growing;
}

static void put(GroupMemo *memo, uint32_t word) {
    vec_push(memo->arena, &memo->key, word);
}

static void put_node(GroupMemo *memo, NodeId id, NodeId base) {
    put(memo, id - base);
    put(memo, node_kind(memo->kinds, id));
}

static NodeId first_value(const Group *group) {
    NodeId first = group->reduces.n ? group->reduces.data[0] : group->targets.data[0].node;
    for (uint32_t i = 0; i < group->targets.n; i++)
        if (group->targets.data[i].node < first) first = group->targets.data[i].node;
    return first;
}

/* Everything of a group on which inlining depends. */
static void write_key(GroupMemo *memo, const InlineInput *input, const Group *group, NodeId base) {
    memo->key.n = 0;
    put(memo, group->axes);
    put(memo, group->gemm_slice ? group->gemm_slice - base : 0);
    put(memo, group->gemm_slice != 0);
    put(memo, group->is_whole);
    put(memo, group->domain.rank);
    for (uint32_t k = 0; k < group->domain.rank; k++) {
        put(memo, group->domain.dims[k]);
        put(memo, group->begin[k]);
    }
    put(memo, group->reduces.n);
    for (uint32_t i = 0; i < group->reduces.n; i++) put_node(memo, group->reduces.data[i], base);
    for (uint32_t i = 0; i < group->targets.n; i++) {
        const StoreTarget *target = &group->targets.data[i];
        put_node(memo, target->node, base);
        put(memo, target->piece);
        if (target->piece) put_node(memo, target->whole, base);
        put(memo, node_has(input->flags, target->node, GROUPING_WANTED));
    }
}

GroupKey group_memo_key(GroupMemo *memo, const InlineInput *input, const Group *group) {
    NodeId base = first_value(group);
    write_key(memo, input, group, base);
    uint32_t id = keytab_intern(memo->arena, &memo->keys, &memo->key);
    if (id > memo->entries.n)
        vec_push(memo->arena, &memo->entries, arena_array(memo->arena, GroupEntry, 1));
    return (GroupKey){memo->entries.data[id - 1], base};
}

NodeId group_memo_node(const GroupMemo *memo, FoundTrial found, NodeId id) {
    return !found.distance || node_is_fixed(memo->kinds, id) ? id : id + found.distance;
}

/* Whether the node at the trial's distance is of the kind and has the facts that the trial asked
 * for. */
static bool is_like(const GroupMemo *memo, const InlineInput *input, FoundTrial found,
                    const NodeFacts *asked) {
    NodeId id = group_memo_node(memo, found, asked->node);
    return id < memo->n_nodes && inline_facts(input, id) == asked->facts &&
           (id == asked->node || node_kind(memo->kinds, id) == node_kind(memo->kinds, asked->node));
}

static bool holds(const GroupMemo *memo, const InlineInput *input, FoundTrial found,
                  FoundTrial held) {
    const GroupTrial *end = found.distance == held.distance ? held.trial : NULL;
    bool all = true;
    for (const GroupTrial *trial = found.trial; trial && trial != end && all; trial = trial->from)
        for (uint32_t i = 0; i < trial->asked.n && all; i++)
            all = is_like(memo, input, found, &trial->asked.data[i]);
    return all;
}

FoundTrial group_memo_trial(const GroupMemo *memo, GroupKey key, const InlineInput *input,
                            FoundTrial held) {
    KnownTrial **at = &key.entry->last;
    for (uint32_t i = 0; i < N_KNOWN_TRIALS && *at; i++, at = &(*at)->before) {
        KnownTrial *known = *at;
        FoundTrial found = {&known->trial, key.base - known->base};
        if (!holds(memo, input, found, held)) continue;
        *at = known->before;
        known->before = key.entry->last;
        key.entry->last = known;
        return found;
    }
    return (FoundTrial){NULL, 0};
}

static VecU32 copy_list(Arena *arena, const VecU32 *list) {
    return (VecU32){arena_copy(arena, list->data, list->n * sizeof *list->data), list->n, list->n};
}

const GroupTrial *group_memo_set(GroupMemo *memo, GroupKey key, const GroupTrial *trial,
                                 bool is_growing) {
    KnownTrial *known = arena_array(memo->arena, KnownTrial, 1);
    known->before = key.entry->last;
    known->base = key.base;
    known->trial = *trial;
    known->trial.loads = copy_list(memo->arena, &trial->loads);
    known->trial.nodes = copy_list(memo->arena, &trial->nodes);
    known->trial.asked.data =
        arena_copy(memo->arena, trial->asked.data, trial->asked.n * sizeof *trial->asked.data);
    known->trial.asked.capacity = trial->asked.n;
    key.entry->last = known;
    if (is_growing) memo->grown = &known->trial;
    return &known->trial;
}

const GroupTrial *group_memo_grown(const GroupMemo *memo) {
    return memo->grown;
}

/* Groupings. */

static Grouping *copy_grouping(Arena *arena, const Grouping *g) {
    uint32_t n = g->flags.n;
    Grouping *copy = arena_copy(arena, g, sizeof *g);
    memset(&copy->groups, 0, sizeof copy->groups);
    for (uint32_t i = 0; i < g->groups.n; i++)
        vec_push(arena, &copy->groups, group_copy(arena, &g->groups.data[i]));
    copy->group_of = arena_copy(arena, g->group_of, n * sizeof *g->group_of);
    copy->flags = node_flags_copy(arena, g->flags);
    copy->why_stored = arena_copy(arena, g->why_stored, n * sizeof *g->why_stored);
    copy->why_apart = arena_copy(arena, g->why_apart, n * sizeof *g->why_apart);
    copy->gemm_slice_of = arena_copy(arena, g->gemm_slice_of, n * sizeof *g->gemm_slice_of);
    copy->last_refusal = arena_copy(arena, g->last_refusal, n * sizeof *g->last_refusal);
    copy->refusals.data =
        arena_copy(arena, g->refusals.data, g->refusals.n * sizeof *g->refusals.data);
    copy->refusals.capacity = g->refusals.n;
    return copy;
}

Grouping *group_memo_grouping(const GroupMemo *memo, Arena *arena, const Decisions *decisions) {
    bool is_it = memo->grouping && decisions_equal(memo->decisions, decisions);
    return is_it ? copy_grouping(arena, memo->grouping) : NULL;
}

void group_memo_keep(GroupMemo *memo, const Grouping *grouping, const Decisions *decisions) {
    memo->grouping = copy_grouping(memo->arena, grouping);
    memo->decisions = decisions ? decisions_copy(memo->arena, decisions) : NULL;
}
