/* Merging and moving groups.
 *
 * A kernel may reduce rows of several tensors. Reductions over tensors that have nothing in common
 * open separate groups, because nothing tells at that time that a later root needs both. If a root
 * needs the results of several groups over rows of one domain, the earlier groups move into the
 * latest. This requires that the merged group can take the root, and that no group between needs
 * the moved results. If the latest group cannot take the root, or reduces columns, an earlier group
 * may be moved after it. See group_state.h. */
#include "fuse/group_state.h"
#include "plan/must.h"

#include <string.h>

static bool goes_over_rows(const Grouper *p, const Group *group) {
    return group->reduces.n && form_info(group_form(p->graph, group))->reduces_rows;
}

/* Whether the group stores a value that cannot move relative to other values. */
static bool is_bound_to_place(const Grouper *p, const Group *group) {
    if (group->gemm_slice && node_has(p->flags, group->gemm_slice - 1, GROUPING_UPDATED))
        return true;
    for (uint32_t i = 0; i < group->reduces.n; i++)
        if (node_has(p->flags, group->reduces.data[i], GROUPING_UPDATED)) return true;
    for (uint32_t i = 0; i < group->targets.n; i++) {
        const StoreTarget *target = &group->targets.data[i];
        if (target->piece || node_has(p->flags, target->node, GROUPING_UPDATED) ||
            decisions_ask(p->decisions, target->node, DIRECTIVE_CUT))
            return true;
    }
    return false;
}

/* Whether a group between the two reads a value that `from` computes. */
static bool is_needed_before(const Grouper *p, uint32_t from, uint32_t into) {
    p->work->n_steps += (into - from) / 16;
    for (uint32_t i = from + 1; i < into; i++) {
        const Group *group = &p->g->groups.data[i];
        for (uint32_t k = 0; k < group->loads.n; k++)
            if (p->g->group_of[group->loads.data[k]] == from) return true;
    }
    return false;
}

static bool may_merge(const Grouper *p, uint32_t from, uint32_t into) {
    const Group *a = &p->g->groups.data[from], *b = &p->g->groups.data[into];
    return !a->fixed && !b->fixed && !a->is_closed && !b->is_closed && goes_over_rows(p, a) &&
           goes_over_rows(p, b) && a->axes == b->axes && shape_equal(&a->domain, &b->domain) &&
           group_is_init(p, a) == group_is_init(p, b) && !is_bound_to_place(p, a) &&
           !is_needed_before(p, from, into);
}

/* Whether a price forbids the merge and no `fuse must` block demands it. */
static bool is_unwanted(const Grouper *p, const Group *group, const Group *into) {
    NodeId one = group->reduces.data[0], other = into->reduces.data[0];
    bool is_asked = decisions_ask(p->decisions, one, DIRECTIVE_NO_MERGE) ||
                    decisions_ask(p->decisions, other, DIRECTIVE_NO_MERGE);
    return is_asked && !must_shares(p->graph, one, other);
}

static void note_slower(const Grouper *p, const Group *single, uint32_t from) {
    for (uint32_t k = 0; k < single->loads.n; k++) {
        NodeId load = single->loads.data[k];
        if (p->g->group_of[load] == from && !p->g->why_stored[load])
            p->g->why_stored[load] = REASON_SLOWER;
    }
}

/* Adds a number to an ascending list, unless the list has it. */
static void add_sorted(Arena *arena, VecU32 *list, uint32_t number) {
    if (vec_has(list, number)) return;
    vec_push(arena, list, number);
    for (uint32_t i = list->n - 1; i > 0 && list->data[i - 1] > number; i--) {
        list->data[i] = list->data[i - 1];
        list->data[i - 1] = number;
    }
}

/* The groups before `into`, ascending, that compute inputs of the root and may merge. */
static VecU32 find_sources(Grouper *p, const Group *single, uint32_t into) {
    VecU32 sources = {0};
    for (uint32_t k = 0; k < single->loads.n; k++) {
        uint32_t from = p->g->group_of[single->loads.data[k]];
        if (from == GROUP_NONE || from >= into || vec_has(&sources, from) ||
            !may_merge(p, from, into))
            continue;
        if (is_unwanted(p, &p->g->groups.data[from], &p->g->groups.data[into]))
            note_slower(p, single, from);
        else
            add_sorted(p->arena, &sources, from);
    }
    return sources;
}

static void add_in_order(Arena *arena, Group *group, NodeId reduction) {
    vec_push(arena, &group->reduces, reduction);
    NodeId *all = group->reduces.data;
    for (uint32_t i = group->reduces.n - 1; i > 0 && all[i - 1] > reduction; i--) {
        all[i] = all[i - 1];
        all[i - 1] = reduction;
    }
}

static void add_group(Arena *arena, Group *sum, const Group *group) {
    for (uint32_t k = 0; k < group->reduces.n; k++)
        add_in_order(arena, sum, group->reduces.data[k]);
    for (uint32_t k = 0; k < group->targets.n; k++)
        vec_push(arena, &sum->targets, group->targets.data[k]);
}

/* The merged group: the reductions and stores of all groups. */
static Group sum_of(const Grouper *p, const VecU32 *sources, uint32_t into) {
    Group sum = p->g->groups.data[into];
    memset(&sum.reduces, 0, sizeof sum.reduces);
    memset(&sum.targets, 0, sizeof sum.targets);
    sum.trial = NULL; /* the values of the other groups are not in memory any more */
    for (uint32_t i = 0; i < sources->n; i++)
        add_group(p->arena, &sum, &p->g->groups.data[sources->data[i]]);
    add_group(p->arena, &sum, &p->g->groups.data[into]);
    return sum;
}

/* The new numbers of groups from `first` on, after groups have moved. */
typedef struct Places {
    uint32_t first, n;
    uint32_t *of; /* per group from `first` on, by its old number */
} Places;

typedef struct NewNumber {
    NodeId id;
    uint32_t group;
} NewNumber;
typedef Vec(NewNumber) NewNumbers;

/* Lists the node if the group computes it. */
static void list_value(const Grouper *p, NodeId id, uint32_t group, uint32_t to,
                       NewNumbers *numbers) {
    if (p->g->group_of[id] == group) vec_push(p->arena, numbers, ((NewNumber){id, to}));
}

static void list_values(const Grouper *p, uint32_t index, uint32_t to, NewNumbers *numbers) {
    const Group *group = &p->g->groups.data[index];
    for (uint32_t i = 0; i < group->reduces.n; i++)
        list_value(p, group->reduces.data[i], index, to, numbers);
    if (group->gemm_slice) list_value(p, group->gemm_slice - 1, index, to, numbers);
    for (uint32_t i = 0; i < group->targets.n; i++) {
        const StoreTarget *target = &group->targets.data[i];
        list_value(p, target->node, index, to, numbers);
        if (target->piece) list_value(p, target->whole, index, to, numbers);
    }
}

/* Gives the values of groups that are about to move their new numbers. */
static void note_places(Grouper *p, const Places *places) {
    NewNumbers numbers = {0};
    for (uint32_t i = 0; i < places->n; i++)
        if (places->of[i] != places->first + i)
            list_values(p, places->first + i, places->of[i], &numbers);
    for (uint32_t i = 0; i < numbers.n; i++) {
        NodeId id = numbers.data[i].id;
        p->g->group_of[id] = numbers.data[i].group;
        if (p->n_last > id) p->n_last = id; /* later nodes may depend on it */
    }
}

static Places places_from(const Grouper *p, uint32_t first, uint32_t end) {
    Places places = {.first = first, .n = end - first};
    places.of = arena_array(p->arena, uint32_t, places.n);
    p->work->n_steps += places.n / 16;
    return places;
}

void group_number_refusals(Grouping *g) {
    for (uint32_t i = 0; i < g->groups.n; i++)
        for (uint32_t r = g->groups.data[i].last_refusal; r; r = g->refusals.data[r - 1].of_group)
            g->refusals.data[r - 1].group = i;
}

/* Gives the refusals of group `from` to group `to`. */
static void join_refusals(const Grouping *g, Group *to, const Group *from) {
    uint32_t first = from->last_refusal;
    if (!first) return;
    while (g->refusals.data[first - 1].of_group) first = g->refusals.data[first - 1].of_group;
    g->refusals.data[first - 1].of_group = to->last_refusal;
    to->last_refusal = from->last_refusal;
}

/* Removes the groups that were merged into `into`. Returns the new number of `into`. */
static uint32_t close_up(Grouper *p, const VecU32 *sources, uint32_t into) {
    ArenaMark mark = arena_mark(p->arena);
    Group *groups = p->g->groups.data;
    uint32_t first = sources->data[0], n_gone = 0, moved_to = into - sources->n;
    Places places = places_from(p, first, p->g->groups.n);
    for (uint32_t i = 0; i < places.n; i++) {
        bool is_gone = n_gone < sources->n && sources->data[n_gone] == first + i;
        places.of[i] = is_gone ? moved_to : first + i - n_gone;
        n_gone += is_gone;
    }
    note_places(p, &places);
    for (uint32_t i = 0; i < sources->n; i++)
        join_refusals(p->g, &groups[into], &groups[sources->data[i]]);
    for (uint32_t i = 0; i < places.n; i++)
        if (first + i >= into || !vec_has(sources, first + i))
            groups[places.of[i]] = groups[first + i];
    p->g->groups.n -= sources->n;
    arena_rewind(p->arena, mark);
    return moved_to;
}

/* Gives the values that group `from` computes to group `to`. */
static void renumber(Grouper *p, const Group *group, uint32_t from, uint32_t to) {
    uint32_t *of = p->g->group_of;
    for (uint32_t i = 0; i < group->reduces.n; i++)
        if (of[group->reduces.data[i]] == from) of[group->reduces.data[i]] = to;
    for (uint32_t i = 0; i < group->targets.n; i++)
        if (of[group->targets.data[i].node] == from) of[group->targets.data[i].node] = to;
}

static uint32_t try_merge(Grouper *p, const Group *single, const Root *root, uint32_t into) {
    VecU32 sources = find_sources(p, single, into);
    if (!sources.n) return GROUP_NONE;
    Group *groups = p->g->groups.data, kept = groups[into];
    groups[into] = sum_of(p, &sources, into);
    for (uint32_t i = 0; i < sources.n; i++)
        renumber(p, &groups[sources.data[i]], sources.data[i], into);
    InlineFailure failure;
    if (group_try_join(p, into, root, &failure)) return close_up(p, &sources, into);
    for (uint32_t i = 0; i < sources.n; i++)
        renumber(p, &groups[sources.data[i]], into, sources.data[i]);
    groups[into] = kept;
    return GROUP_NONE;
}

uint32_t group_merge_for(Grouper *p, const Group *single, const Root *root, uint32_t into) {
    ArenaMark mark = arena_mark(p->arena);
    uint32_t merged = try_merge(p, single, root, into);
    if (merged == GROUP_NONE) arena_rewind(p->arena, mark);
    return merged;
}

/* Moves a group from one position to a later one; the groups between move up. */
static void move_group(Grouper *p, uint32_t from, uint32_t to) {
    ArenaMark mark = arena_mark(p->arena);
    Group moved = p->g->groups.data[from];
    Places places = places_from(p, from, to + 1);
    places.of[0] = to;
    for (uint32_t i = 1; i < places.n; i++) places.of[i] = from + i - 1;
    note_places(p, &places);
    memmove(&p->g->groups.data[from], &p->g->groups.data[from + 1], (to - from) * sizeof moved);
    p->g->groups.data[to] = moved;
    arena_rewind(p->arena, mark);
}

static bool may_follow(const Grouper *p, uint32_t from, uint32_t after) {
    const Group *group = &p->g->groups.data[from];
    return !group->fixed && !group->is_closed && !is_bound_to_place(p, group) &&
           !is_needed_before(p, from, after);
}

/* The group before `after` - 1 that computes the root's `k`th load, if the group may be moved. */
static uint32_t earlier_maker(const Grouper *p, const Group *single, uint32_t k, uint32_t after) {
    uint32_t from = p->g->group_of[single->loads.data[k]];
    return from == GROUP_NONE || from + 1 >= after || !may_follow(p, from, after) ? GROUP_NONE
                                                                                  : from;
}

static bool join_moved(Grouper *p, const Root *root, uint32_t from, uint32_t after) {
    InlineFailure failure;
    if (!group_try_join(p, from, root, &failure)) return false;
    move_group(p, from, after - 1);
    return true;
}

uint32_t group_join_earlier(Grouper *p, const Group *single, const Root *root, uint32_t after) {
    for (uint32_t k = 0; k < single->loads.n; k++) {
        uint32_t from = earlier_maker(p, single, k, after);
        if (from != GROUP_NONE && join_moved(p, root, from, after)) return after - 1;
    }
    return GROUP_NONE;
}

/* Whether a `fuse must` block contains the root and a reduction of the group. */
static bool is_wanted_in(const Grouper *p, const Group *group, NodeId root) {
    return must_shares_any(p->graph, root, group->reduces.data, group->reduces.n);
}

uint32_t group_join_preferred(Grouper *p, const Group *single, const Root *root, uint32_t after) {
    const Group *latest = after ? &p->g->groups.data[after - 1] : NULL;
    KernelForm own = latest ? group_form(p->graph, latest) : FORM_MAP;
    KernelForm other = form_info(own)->reduces_rows ? FORM_COLUMN : FORM_ROW;
    if (form_info(own)->one_pass || is_wanted_in(p, latest, root->node)) return GROUP_NONE;
    for (uint32_t k = 0; k < single->loads.n; k++) {
        uint32_t from = earlier_maker(p, single, k, after);
        if (from == GROUP_NONE || group_form(p->graph, &p->g->groups.data[from]) != other) continue;
        p->g->has_ties = true;
        bool is_preferred =
            form_info(other)->reduces_columns == (p->decisions && p->decisions->by_columns);
        if (is_preferred && join_moved(p, root, from, after)) return after - 1;
    }
    return GROUP_NONE;
}
