/* See group_memo.h. */
#include "fuse/group_memo.h"

#include "base/keytab.h"

#include <string.h>

typedef struct KnownTrial {
    GroupTrial trial;
    const struct KnownTrial *before; /* NULL: the first */
} KnownTrial;

/* The first round of a plan has other facts than the last one of the plan before. */
enum { N_KNOWN_TRIALS = 4 };

struct GroupEntry {
    const KnownTrial *last; /* NULL: none */
};

struct GroupMemo {
    Arena *arena;
    const Node *nodes; /* of the graph; its copies share them */
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
    return memo;
}

GroupMemo *group_memo_of(GroupMemo *memo, const Graph *graph) {
    return memo && memo->nodes == graph->nodes.data ? memo : NULL;
}

InlineTrial *group_memo_growing(const GroupMemo *memo) {
    return memo->growing;
}

/* Everything of a group on which inlining depends. */
static void write_key(GroupMemo *memo, const InlineInput *input, const Group *group) {
    VecU32 *key = &memo->key;
    key->n = 0;
    vec_push(memo->arena, key, group->axes);
    vec_push(memo->arena, key, group->gemm_slice);
    vec_push(memo->arena, key, group->is_whole);
    vec_push(memo->arena, key, group->domain.rank);
    for (uint32_t k = 0; k < group->domain.rank; k++) {
        vec_push(memo->arena, key, group->domain.dims[k]);
        vec_push(memo->arena, key, group->begin[k]);
    }
    vec_push(memo->arena, key, group->reduces.n);
    for (uint32_t i = 0; i < group->reduces.n; i++)
        vec_push(memo->arena, key, group->reduces.data[i]);
    for (uint32_t i = 0; i < group->targets.n; i++) {
        const StoreTarget *target = &group->targets.data[i];
        vec_push(memo->arena, key, target->node);
        vec_push(memo->arena, key, target->whole);
        vec_push(memo->arena, key, target->piece);
        vec_push(memo->arena, key, node_has(input->flags, target->node, GROUPING_WANTED));
    }
}

GroupEntry *group_memo_entry(GroupMemo *memo, const InlineInput *input, const Group *group) {
    write_key(memo, input, group);
    uint32_t id = keytab_intern(memo->arena, &memo->keys, &memo->key);
    if (id > memo->entries.n)
        vec_push(memo->arena, &memo->entries, arena_array(memo->arena, GroupEntry, 1));
    return memo->entries.data[id - 1];
}

static bool holds(const InlineInput *input, const GroupTrial *trial) {
    bool all = true;
    for (; trial && all; trial = trial->from) all = inline_facts_hold(input, &trial->asked);
    return all;
}

const GroupTrial *group_memo_trial(const GroupEntry *entry, const InlineInput *input) {
    const KnownTrial *known = entry->last;
    for (uint32_t i = 0; i < N_KNOWN_TRIALS && known; i++, known = known->before)
        if (holds(input, &known->trial)) return &known->trial;
    return NULL;
}

static VecU32 copy_list(Arena *arena, const VecU32 *list) {
    return (VecU32){arena_copy(arena, list->data, list->n * sizeof *list->data), list->n, list->n};
}

const GroupTrial *group_memo_set(GroupMemo *memo, GroupEntry *entry, const GroupTrial *trial,
                                 bool is_growing) {
    KnownTrial *known = arena_array(memo->arena, KnownTrial, 1);
    known->before = entry->last;
    known->trial = *trial;
    known->trial.loads = copy_list(memo->arena, &trial->loads);
    known->trial.nodes = copy_list(memo->arena, &trial->nodes);
    known->trial.asked.data =
        arena_copy(memo->arena, trial->asked.data, trial->asked.n * sizeof *trial->asked.data);
    known->trial.asked.capacity = trial->asked.n;
    entry->last = known;
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
