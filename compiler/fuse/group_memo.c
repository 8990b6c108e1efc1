/* See group_memo.h. */
#include "fuse/group_memo.h"

#include <string.h>

typedef struct KnownTrial {
    struct KnownTrial *before; /* NULL: the first */
    NodeFacts refuted;         /* what last did not hold, and is looked at first */
    bool is_refuted;           /* there is such a fact */
    GroupTrial trial;
} KnownTrial;

/* Of the latest trials of an entry those of the same group are looked at, and some of other groups.
 * The first round of a plan has other facts than the last one of the plan before, and one layer has
 * others than the next. */
enum { N_KNOWN_TRIALS = 512, N_OTHER_TRIALS = 32, N_KNOWN_STEPS = 8 };

/* A reduction or target that a group gets last. */
typedef struct Value {
    uint32_t kind;
    NodeId distance; /* behind the first of the group */
    bool is_reduction, is_wanted;
} Value;

/* From a group to the group with one value more. */
typedef struct Step {
    Value value;
    GroupEntry *to;
    struct Step *before; /* NULL: the first */
} Step;

struct GroupEntry {
    KnownTrial *last; /* the one that was made or found last; NULL: none */
    bool is_fast;     /* of fast programs */
    Shape domain;
    uint32_t n_reduces, n_targets;
    Step *last_step; /* the one that was made or taken last; NULL: none */
};

struct KnownGroups {
    Arena *arena;
    KindTab kinds;
    VecU32 key; /* of the group that was looked up last */
    KeyTab keys;
    Vec(GroupEntry *) entries; /* by key */
    Vec(GroupEntry *) alone;   /* of groups of one value: see alone_of; NULL: not known */
};

struct GroupMemo {
    Arena *arena;
    KnownGroups *known;
    const Node *nodes; /* of the graph; its copies share them */
    uint32_t n_nodes;
    bool is_fast; /* the graph's */
    NodeKinds *kinds;
    GroupingWork *work; /* may be NULL */
    InlineTrial *growing;
    const GroupTrial *grown;    /* the last trial of `growing` */
    const Grouping *grouping;   /* the last one, or NULL */
    const Decisions *decisions; /* of `grouping`; NULL: none */
};

KnownGroups *known_groups_new(Arena *arena) {
    KnownGroups *known = arena_array(arena, KnownGroups, 1);
    known->arena = arena;
    return known;
}

GroupMemo *group_memo_new(KnownGroups *known, Arena *trials, const Graph *graph,
                          GroupingWork *work) {
    Arena *arena = known->arena;
    GroupMemo *memo = arena_array(arena, GroupMemo, 1);
    memo->arena = arena;
    memo->known = known;
    memo->growing = trials ? inline_trial_new(arena, trials, graph) : NULL;
    memo->nodes = graph->nodes.data;
    memo->n_nodes = graph->nodes.n;
    memo->is_fast = graph->is_fast;
    memo->work = work;
    memo->kinds = node_kinds_new(arena, &known->kinds, graph);
    return memo;
}

GroupMemo *group_memo_of(GroupMemo *memo, const Graph *graph) {
    return memo && memo->nodes == graph->nodes.data ? memo : NULL;
}

NodeKinds *group_memo_kinds(const GroupMemo *memo) {
    return memo ? memo->kinds : NULL;
}

GroupingWork *group_memo_work(const GroupMemo *memo) {
    return memo ? memo->work : NULL;
}

InlineTrial *group_memo_growing(const GroupMemo *memo) {
    return memo->growing;
}

static void put(GroupMemo *memo, uint32_t word) {
    vec_push(memo->arena, &memo->known->key, word);
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
    memo->known->key.n = 0;
    put(memo, memo->is_fast);
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

static GroupEntry *find_entry(GroupMemo *memo, const InlineInput *input, const Group *group,
                              NodeId base) {
    KnownGroups *known = memo->known;
    write_key(memo, input, group, base);
    uint32_t id = keytab_intern(known->arena, &known->keys, &known->key);
    if (id <= known->entries.n) return known->entries.data[id - 1];
    GroupEntry *entry = arena_array(memo->arena, GroupEntry, 1);
    entry->is_fast = memo->is_fast;
    entry->domain = group->domain;
    entry->n_reduces = group->reduces.n;
    entry->n_targets = group->targets.n;
    vec_push(known->arena, &known->entries, entry);
    return entry;
}

bool group_memo_is_tried(const Group *group) {
    return group->trial && group->reduces.n == group->trial->entry->n_reduces &&
           group->targets.n == group->trial->entry->n_targets;
}

/* Whether the group has one value more than in its last trial, or is a first value, and `*value` is
 * that. */
static bool has_grown(GroupMemo *memo, const InlineInput *input, const Group *group, NodeId base,
                      Value *value) {
    static const GroupEntry none;
    const GroupEntry *entry = group->trial ? group->trial->entry : &none;
    uint32_t n = group->reduces.n, n_targets = group->targets.n;
    bool is_reduction = n == entry->n_reduces + 1;
    const StoreTarget *target = n_targets ? &group->targets.data[n_targets - 1] : NULL;
    if (n_targets != entry->n_targets + !is_reduction || n != entry->n_reduces + is_reduction ||
        (!is_reduction && target->piece) || group->gemm_slice || group->is_whole)
        return false;
    NodeId id = is_reduction ? group->reduces.data[n - 1] : target->node;
    NodeId first = group->trial ? group->trial->base + group->distance : base;
    *value = (Value){.kind = node_kind(memo->kinds, id),
                     .distance = id - first,
                     .is_reduction = is_reduction,
                     .is_wanted = !is_reduction && node_has(input->flags, id, GROUPING_WANTED)};
    return true;
}

static bool is_value(const Value *a, const Value *b) {
    return a->kind == b->kind && a->distance == b->distance && a->is_reduction == b->is_reduction &&
           a->is_wanted == b->is_wanted;
}

/* The entry that one of the latest steps leads to; NULL: none does. */
static GroupEntry *take_step(GroupEntry *from, const Value *value) {
    Step **at = &from->last_step;
    for (uint32_t i = 0; i < N_KNOWN_STEPS && *at; i++, at = &(*at)->before) {
        Step *step = *at;
        if (!is_value(&step->value, value)) continue;
        *at = step->before;
        step->before = from->last_step;
        from->last_step = step;
        return step->to;
    }
    return NULL;
}

/* The entry of a group of this value alone. */
static GroupEntry **alone_of(GroupMemo *memo, const Value *value) {
    uint32_t at = value->kind << 2 | (uint32_t)value->is_reduction << 1 | value->is_wanted;
    while (memo->known->alone.n <= at) vec_push(memo->arena, &memo->known->alone, NULL);
    return &memo->known->alone.data[at];
}

/* Groups grow value by value, so most keys need not be written. */
GroupKey group_memo_key(GroupMemo *memo, const InlineInput *input, const Group *group) {
    NodeId base = first_value(group);
    Value value;
    if (!has_grown(memo, input, group, base, &value))
        return (GroupKey){find_entry(memo, input, group, base), base};
    if (!group->trial) {
        GroupEntry **alone = alone_of(memo, &value);
        if (!*alone || (*alone)->is_fast != memo->is_fast ||
            !shape_equal(&(*alone)->domain, &group->domain))
            *alone = find_entry(memo, input, group, base);
        return (GroupKey){*alone, base};
    }
    GroupEntry *from = group->trial->entry, *to = take_step(from, &value);
    if (to) return (GroupKey){to, base};
    Step *step = arena_array(memo->arena, Step, 1);
    *step = (Step){value, find_entry(memo, input, group, base), from->last_step};
    from->last_step = step;
    return (GroupKey){step->to, base};
}

/* In lists of kept trials a node that is fixed has this bit. */
#define FIXED_NODE (1u << 31)

NodeId group_memo_node(FoundTrial found, NodeId kept) {
    return kept & FIXED_NODE ? kept & ~FIXED_NODE : kept + found.distance;
}

static NodeId kept_node(const GroupMemo *memo, NodeId id) {
    return node_is_fixed(memo->kinds, id) ? id | FIXED_NODE : id;
}

/* Whether the node at the trial's distance is of the kind and has the facts that the trial asked
 * for. */
static bool is_like(const GroupMemo *memo, const InlineInput *input, FoundTrial found,
                    const NodeFacts *asked) {
    NodeId id = asked->node + (asked->is_fixed ? 0 : found.distance);
    return id < memo->n_nodes && inline_facts(input, id) == asked->facts &&
           node_kind(memo->kinds, id) == asked->kind;
}

static bool holds(const GroupMemo *memo, const InlineInput *input, KnownTrial *known,
                  FoundTrial found, FoundTrial held, uint64_t *n_steps) {
    const GroupTrial *end = found.distance == held.distance ? held.trial : NULL;
    if (known->is_refuted && !is_like(memo, input, found, &known->refuted)) return false;
    for (const GroupTrial *trial = found.trial; trial && trial != end; trial = trial->from)
        for (uint32_t i = 0; i < trial->asked.n; i++) {
            ++*n_steps;
            if (is_like(memo, input, found, &trial->asked.data[i])) continue;
            known->refuted = trial->asked.data[i];
            known->is_refuted = true;
            return false;
        }
    return true;
}

FoundTrial group_memo_trial(const GroupMemo *memo, GroupKey key, const InlineInput *input,
                            FoundTrial held) {
    uint32_t n_others = 0;
    uint64_t none = 0, *n_steps = memo->work ? &memo->work->n_steps : &none;
    KnownTrial **at = &key.entry->last;
    for (uint32_t i = 0; i < N_KNOWN_TRIALS && *at; i++, at = &(*at)->before) {
        KnownTrial *known = *at;
        ++*n_steps;
        FoundTrial found = {&known->trial, key.base - known->trial.base};
        bool is_other = found.distance != 0;
        if (is_other && n_others == N_OTHER_TRIALS) continue;
        n_others += is_other;
        if (!holds(memo, input, known, found, held, n_steps)) continue;
        *at = known->before;
        known->before = key.entry->last;
        key.entry->last = known;
        return found;
    }
    return (FoundTrial){NULL, 0};
}

static VecU32 keep_nodes(const GroupMemo *memo, const VecU32 *list) {
    NodeId *kept = arena_array(memo->arena, NodeId, list->n);
    for (uint32_t i = 0; i < list->n; i++) kept[i] = kept_node(memo, list->data[i]);
    return (VecU32){kept, list->n, list->n};
}

const GroupTrial *group_memo_set(GroupMemo *memo, GroupKey key, const GroupTrial *trial,
                                 bool is_growing) {
    KnownTrial *known = arena_array(memo->arena, KnownTrial, 1);
    known->before = key.entry->last;
    known->trial = *trial;
    known->trial.entry = key.entry;
    known->trial.base = key.base;
    known->trial.loads = keep_nodes(memo, &trial->loads);
    known->trial.nodes = keep_nodes(memo, &trial->nodes);
    if (trial->failure.reason && trial->failure.node != NODE_NONE)
        known->trial.failure.node = kept_node(memo, trial->failure.node);
    known->trial.asked.data =
        arena_copy(memo->arena, trial->asked.data, trial->asked.n * sizeof *trial->asked.data);
    known->trial.asked.capacity = trial->asked.n;
    for (uint32_t i = 0; i < trial->asked.n; i++) {
        NodeFacts *asked = &known->trial.asked.data[i];
        asked->is_fixed = node_is_fixed(memo->kinds, asked->node);
        asked->kind = node_kind(memo->kinds, asked->node);
    }
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
