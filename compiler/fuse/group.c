/* Grouping by greedy joining. See group.h. */
#include "fuse/group_state.h"
#include "plan/must.h"
#include "machine/tuning.h"
#include "fuse/hoist.h"
#include "fuse/gemm_slice.h"
#include "split/split_reduce.h"

#include <string.h>

/* The `kernel` block of the value that the root stores. */
static uint32_t fixed_root(const Grouper *p, const Root *root) {
    bool is_output = root->output != OUTPUT_NONE;
    uint32_t copied_by = is_output ? p->graph->outputs.data[root->output].copied_by : 0;
    return copied_by ? copied_by : group_fixed_block(p->graph, root->node);
}

bool group_is_single(const Grouper *p, NodeId id) {
    bool is_wanted = graph_block(p->graph, id, BLOCK_NEVER) ||
                     decisions_ask(p->decisions, id, DIRECTIVE_OWN_KERNEL);
    return !p->off && is_wanted && !graph_is_bound(p->graph, id) && !graph_is_literal(p->graph, id);
}

/* Whether a node that must be a kernel by itself reads the value. */
static bool feeds_single(const Grouper *p, NodeId id) {
    for (uint32_t i = 0; !graph_is_bound(p->graph, id) && i < p->users[id].n; i++)
        if (group_is_single(p, p->users[id].data[i])) return true;
    return false;
}

/* Whether a spill cut separates the value from its reader. A cut that was refused separates
 * nothing, even if the value is stored for another reason. */
static bool is_cut(const Grouper *p, NodeId id, NodeId user) {
    bool is_wanted = node_has(p->flags, id, GROUPING_WANTED) && p->want_reason[id] == REASON_SPILLS;
    return decisions_ask(p->decisions, id, DIRECTIVE_CUT) && is_wanted &&
           p->decisions->side[id] != p->decisions->side[user];
}

/* Computes the dependencies of the next node. A reader of a concat in place, or of a value on the
 * other side of a spill cut, must come after the value's last group. So must an update after the
 * group of what it updates, which is copied before the update's kernel. So the value counts as a
 * result of the next group, even if no such group exists yet. */
static void find_dependency(Grouper *p) {
    NodeId id = p->n_last++;
    const Node *node = graph_node(p->graph, id);
    LastGroups last = {0, 0};
    for (uint32_t i = 0; i < node->n_args; i++) {
        NodeId arg = node->args[i];
        uint32_t made_by = p->g->group_of[arg];
        LastGroups of_arg = p->last_groups[arg];
        bool is_again =
            decisions_ask(p->decisions, arg, DIRECTIVE_MUST_HOLD) && must_shares(p->graph, arg, id);
        if (made_by != GROUP_NONE && !is_again) {
            const Group *group = &p->g->groups.data[made_by];
            bool is_updated = i == 0 && graph_is_update(p->graph, id);
            of_arg.any =
                made_by + 1 +
                (node_has(p->flags, arg, GROUPING_IN_PLACE) || is_cut(p, arg, id) || is_updated);
            of_arg.of_run = !group->fixed && group_is_init(p, group) ? 0 : of_arg.any;
        }
        if (of_arg.any > last.any) last.any = of_arg.any;
        if (of_arg.of_run > last.of_run) last.of_run = of_arg.of_run;
    }
    p->last_groups[id] = last;
}

/* Init kernels run before all kernels of a run, regardless of the order of groups. */
uint32_t group_dependency(Grouper *p, NodeId id) {
    while (p->n_last <= id) find_dependency(p);
    const LastGroups *last = &p->last_groups[id];
    return node_has(p->flags, id, GROUPING_CAN_PREPARE) ? last->any : last->of_run;
}

/* The reason for a value that is separate because it or a reader must be a kernel by itself. */
static ReasonId why_apart(const Grouper *p, NodeId id) {
    bool never = graph_block(p->graph, id, BLOCK_NEVER);
    for (uint32_t i = 0; i < p->users[id].n; i++)
        never = never || graph_block(p->graph, p->users[id].data[i], BLOCK_NEVER);
    return never ? REASON_NEVER : p->is_apart ? REASON_SPENT : REASON_SLOWER;
}

/* Trying groups. */

/* Whether the root that joined the group, whose cost was `before`, adds more code than one kernel
 * less is worth. That is so if the root is large and shares almost nothing with the group. On a CPU
 * such a fusion saves no memory traffic and costs LLVM seconds; PTX is written in a time linear in
 * its length. */
static bool is_overfull(const Grouper *p, const Group *group, double before) {
    return !group->fixed && before > 0 && group->prims > FUSE_MOST_PRIMS &&
           p->single_prims > FUSE_MUCH_PRIMS &&
           group->prims > FUSE_OVERFULL_SHARE * (before + p->single_prims);
}

/* A full group is refused before inlining is tried: in large graphs most groups that share a load
 * with a root are full. */
static bool try_group(const Grouper *p, Group *group, uint32_t index, InlineFailure *failure) {
    uint32_t n_values = group->reduces.n + group->targets.n;
    double before = group->prims;
    bool is_full = group_is_full(p, group);
    if (!is_full && !group_attempt(p, group, index, failure, NULL)) return false;
    is_full = is_full || (n_values > 1 && group->loads.n > FUSE_MOST_LOADS) ||
              is_overfull(p, group, before);
    if (!is_full) return true;
    *failure = (InlineFailure){.reason = REASON_TOO_LARGE};
    return false;
}

/* The matmul that the node is a slice of, or the node. */
static NodeId folded(const Grouper *p, NodeId id) {
    return p->gemm_slice_of[id] != NODE_NONE ? p->gemm_slice_of[id] : id;
}

/* Whether the domain of the reduction has one axis more than its result, which it reduces. */
static bool adds_axis(const Grouper *p, NodeId id) {
    return graph_is_matmul(p->graph, id) || graph_is_segments(p->graph, id) ||
           graph_is_online(p->graph, id);
}

/* An update runs over the part that it replaces. The domain of a GEMM is its own shape, or the
 * slice's shape, and the contracted axis as the innermost. That of segments is their shape, and the
 * axis that they divide as the innermost. */
static Shape root_domain(const Grouper *p, const Root *root) {
    const Node *node = graph_node(p->graph, root->node);
    if (graph_is_update(p->graph, root->node)) return graph_node(p->graph, node->args[1])->shape;
    if (!root->is_reduction) return node->shape;
    NodeId of = folded(p, root->node);
    Shape of_arg = graph_node(p->graph, graph_node(p->graph, of)->args[0])->shape;
    if (!adds_axis(p, of)) return of_arg;
    Shape domain = node->shape;
    uint32_t inner = of_arg.rank - 1;
    if (graph_is_segments(p->graph, of))
        while (!(node->attrs.axes >> inner & 1)) inner--;
    if (domain.rank < MAX_RANK) domain.dims[domain.rank++] = of_arg.dims[inner];
    return domain;
}

static uint32_t root_axes(const Grouper *p, NodeId id) {
    const Node *node = graph_node(p->graph, id);
    return adds_axis(p, folded(p, id)) ? 1u << node->shape.rank : node->attrs.axes;
}

static StoreTarget target_of(const Root *root) {
    return (StoreTarget){
        .node = root->node, .output = root->output, .whole = root->whole, .piece = root->piece};
}

/* Whether the reduction shares its kernel with no other reduction. */
static bool is_alone(const Grouper *p, NodeId id) {
    OpClass cls = graph_class(p->graph, id);
    return cls == CLASS_MATMUL || cls == CLASS_SORT || cls == CLASS_ONLINE;
}

/* Whether the group takes the reduction as far as segments go: they share a kernel with other
 * reductions of the same segments alone. */
static bool has_segments_of(const Grouper *p, const Group *group, NodeId id) {
    NodeId first = group->reduces.n ? group->reduces.data[0] : NODE_NONE;
    if (first == NODE_NONE) return !graph_is_segments(p->graph, id) || !group->targets.n;
    if (!graph_is_segments(p->graph, first) && !graph_is_segments(p->graph, id)) return true;
    return graph_class(p->graph, first) == graph_class(p->graph, id) &&
           graph_node(p->graph, first)->args[1] == graph_node(p->graph, id)->args[1] &&
           graph_node(p->graph, first)->attrs.axes == graph_node(p->graph, id)->attrs.axes;
}

/* Whether the reduction is the other one of the two of a softmax. */
static bool completes_softmax(const Grouper *p, const Group *group, NodeId id) {
    return group->reduces.n == 1 && graph_share_softmax(p->graph, group->reduces.data[0], id);
}

/* Whether the group's domain and axes have room for the root. */
static bool has_room(const Grouper *p, const Group *group, const Root *root) {
    if (!root->is_reduction) return true;
    NodeId of = folded(p, root->node);
    bool is_other = completes_softmax(p, group, of);
    bool is_taken = group->reduces.n && is_alone(p, group->reduces.data[0]) && !is_other;
    bool is_shared = (group->reduces.n || group->targets.n) && !is_other;
    if (is_taken || (is_shared && is_alone(p, of)) || !has_segments_of(p, group, of)) return false;
    if (group->axes && group->axes != root_axes(p, root->node)) return false;
    if (group->reduces.n && group_keeps_shape(p->graph, group) != graph_keeps_shape(p->graph, of))
        return false;
    Shape domain = root_domain(p, root);
    return shape_equal(&domain, &group->domain);
}

/* Adds a root for which the group has room. */
static void add_root(Arena *arena, const Grouper *p, Group *group, const Root *root) {
    if (!root->is_reduction) {
        vec_push(arena, &group->targets, target_of(root));
        return;
    }
    NodeId of = folded(p, root->node);
    /* A map becomes a reduction's group; its stores stay inner. */
    group->axes = root_axes(p, root->node);
    bool is_first = completes_softmax(p, group, of) && !op_info(graph_node(p->graph, of)->op)->row;
    vec_push(arena, &group->reduces, of);
    if (is_first) { /* the product is the first of the two */
        group->reduces.data[1] = group->reduces.data[0];
        group->reduces.data[0] = of;
        group->trial = NULL; /* of another order */
    }
    if (of != root->node) {
        memcpy(group->begin, graph_node(p->graph, root->node)->attrs.per_axis->begin,
               sizeof group->begin);
        group->gemm_slice = root->node + 1;
    }
}

/* Why the group's passes stay separate kernels, each split over the machine; or REASON_NONE. */
static ReasonId why_starved(const Grouper *p, const Group *group) {
    if (graph_is_matmul(p->graph, group->reduces.data[0]) ||
        graph_is_online(p->graph, group->reduces.data[0]))
        return REASON_NONE;
    DimTab *dims = p->graph->dims;
    double rows = 1, length = 1;
    for (uint32_t d = 0; d < group->domain.rank; d++) {
        double hi = (double)dim_hi(dims, group->domain.dims[d]);
        if (group->axes >> d & 1)
            length *= hi;
        else
            rows *= hi;
    }
    bool is_row = group->axes >> (group->domain.rank - 1) & 1;
    return split_need(is_row ? FORM_ROW : FORM_COLUMN, rows, length);
}

static bool needs_own_group(const Grouper *p, const Group *group) {
    for (uint32_t i = 0; i < group->reduces.n; i++)
        if (decisions_ask(p->decisions, group->reduces.data[i], DIRECTIVE_SPLIT_REDUCE))
            return true;
    return false;
}

static bool shares_load(const Grouper *p, const Group *a, const Group *b) {
    p->work->n_steps += 1 + (a->loads.n * b->loads.n >> 3);
    for (uint32_t i = 0; i < a->loads.n; i++)
        for (uint32_t k = 0; k < b->loads.n; k++)
            if (a->loads.data[i] == b->loads.data[k]) return true;
    return false;
}

/* A piece of a concat is computed in every run, as the other pieces are. */
static bool is_init_target(const Grouper *p, const StoreTarget *target) {
    return node_has(p->flags, target->node, GROUPING_CAN_PREPARE) &&
           target->output == OUTPUT_NONE && !target->piece;
}

bool group_is_init(const Grouper *p, const Group *group) {
    if (group->reduces.n) return node_has(p->flags, group->reduces.data[0], GROUPING_CAN_PREPARE);
    return is_init_target(p, &group->targets.data[0]);
}

/* The reason why the group takes no root with another domain. */
static ReasonId why_not_added(const Grouper *p, const Group *group) {
    bool is_gemm = group->reduces.n && graph_is_matmul(p->graph, group->reduces.data[0]);
    return is_gemm ? REASON_TILES : REASON_OTHER_DOMAIN;
}

/* Whether a `fuse must` block contains the root and a value that the group computes. */
static bool is_insisted(const Grouper *p, const Group *group, NodeId root) {
    bool is =
        group->fixed || must_shares_any(p->graph, root, group->reduces.data, group->reduces.n);
    for (uint32_t i = 0; i < group->targets.n; i++)
        is = is || must_shares_any(p->graph, root, &group->targets.data[i].node, 1);
    return is;
}

/* The price, or the rule of segments, that forbids the group with its new root; REASON_NONE if none
 * does. A `fuse must` block overrides the price, not the rule. */
static ReasonId why_priced(const Grouper *p, const Group *group, NodeId root) {
    ReasonId starved = group->has_passes ? why_starved(p, group) : REASON_NONE;
    bool has_map =
        group->reduces.n && group->targets.n && graph_is_segments(p->graph, group->reduces.data[0]);
    bool is_whole = group->has_passes || group->has_inner || has_map;
    bool is_apart = is_whole && needs_own_group(p, group);
    if (starved == REASON_SEGMENTS) return starved; /* a rule, not a price */
    if ((!starved && !is_apart) || is_insisted(p, group, root)) return REASON_NONE;
    return starved ? starved : REASON_SLOWER;
}

static bool try_join(Grouper *p, uint32_t index, const Root *root, InlineFailure *failure) {
    const Group *group = &p->g->groups.data[index];
    bool is_gemm = group->reduces.n && graph_is_matmul(p->graph, group->reduces.data[0]);
    *failure = (InlineFailure){.reason = why_not_added(p, group), .node = root->node};
    StoreTarget target = target_of(root);
    if (!group->fixed && group_is_init(p, group) != is_init_target(p, &target)) return false;
    if (!has_room(p, group, root)) return false;
    bool reorders = root->is_reduction && completes_softmax(p, group, folded(p, root->node));
    Group joined = reorders ? group_copy(p->arena, group) : *group; /* the lists begin alike */
    add_root(p->arena, p, &joined, root);
    uint32_t made_by = p->g->group_of[root->node];
    if (root->is_reduction) p->g->group_of[root->node] = index;
    bool ok = try_group(p, &joined, index, failure);
    bool is_place = failure->reason == REASON_OTHER_DOMAIN || failure->reason == REASON_MISALIGNED;
    if (!ok && is_gemm && is_place) failure->reason = REASON_TILES;
    ReasonId priced = ok ? why_priced(p, &joined, root->node) : REASON_NONE;
    if (priced) {
        *failure = (InlineFailure){.reason = priced, .node = root->node};
        ok = false;
    }
    p->g->group_of[root->node] = made_by;
    if (ok) p->g->groups.data[index] = joined;
    return ok;
}

bool group_try_join(Grouper *p, uint32_t index, const Root *root, InlineFailure *failure) {
    ArenaMark mark = arena_mark(p->arena);
    bool ok = try_join(p, index, root, failure);
    if (!ok) arena_rewind(p->arena, mark);
    return ok;
}

static void note_failure(Grouper *p, InlineFailure why, NodeId root) {
    vec_push(p->arena, &p->failures, ((GroupFailure){why, p->off ? NODE_NONE : root}));
}

bool group_is_too_large(const Grouper *p) {
    return p->failures.n && p->failures.data[0].why.reason == REASON_TOO_LARGE;
}

static uint32_t open_group(Grouper *p, const Root *root) {
    Group group = {.domain = root_domain(p, root)};
    uint32_t index = p->g->groups.n;
    add_root(p->arena, p, &group, root);
    uint32_t made_by = p->g->group_of[root->node];
    if (root->is_reduction) p->g->group_of[root->node] = index;
    InlineFailure failure;
    if (!try_group(p, &group, index, &failure))
        note_failure(p, failure, group_fixed_block(p->graph, root->node) ? NODE_NONE : root->node);
    p->g->group_of[root->node] = made_by;
    vec_push(p->arena, &p->g->groups, group);
    return index;
}

/* A value that a `kernel` block stores before its reductions gets their domain, if it can. */
static void take_domain(Grouper *p, Group *group, uint32_t index, uint32_t fixed) {
    InlineFailure failure;
    for (NodeId id = 0; id < p->graph->nodes.n; id++) {
        if (group_fixed_block(p->graph, id) != fixed || !graph_is_reduction(p->graph, id)) continue;
        if (graph_is_matmul(p->graph, id)) return;
        Group moved = group_copy(p->arena, group);
        moved.domain = root_domain(p, &(Root){.node = id, .is_reduction = true});
        if (try_group(p, &moved, index, &failure)) *group = moved;
        return;
    }
}

/* Joins the group of the `kernel` block, or opens it. */
static uint32_t place_fixed(Grouper *p, const Root *root, uint32_t fixed, uint32_t after) {
    InlineFailure failure = {.reason = REASON_BETWEEN, .node = root->node};
    for (uint32_t i = 0; i < p->g->groups.n; i++) {
        if (p->g->groups.data[i].fixed != fixed) continue;
        bool ok =
            i + 1 >= after && (group_try_join(p, i, root, &failure) || group_widen(p, i, root));
        if (!ok) note_failure(p, failure, NODE_NONE);
        return i;
    }
    uint32_t index = open_group(p, root);
    p->g->groups.data[index].fixed = fixed;
    if (!root->is_reduction) take_domain(p, &p->g->groups.data[index], index, fixed);
    return index;
}

static bool is_related(const Grouper *p, const Group *single, uint32_t group) {
    for (uint32_t k = 0; k < single->loads.n; k++)
        if (p->g->group_of[single->loads.data[k]] == group) return true;
    return shares_load(p, single, &p->g->groups.data[group]);
}

/* Marks reductions whose results a kernel by itself reads as stored. */
static void note_own_group(const Grouper *p, const Group *alone) {
    for (uint32_t i = 0; i < alone->loads.n && !p->off; i++) {
        NodeId load = alone->loads.data[i];
        if (!p->g->why_stored[load]) p->g->why_stored[load] = why_apart(p, load);
    }
}

static void refuse(const Grouper *p, NodeId load, uint32_t group, ReasonId reason) {
    uint32_t *of_load = &p->g->last_refusal[load];
    uint32_t *of_group = &p->g->groups.data[group].last_refusal;
    vec_push(p->arena, &p->g->refusals, (Refusal){load, GROUP_NONE, reason, *of_load, *of_group});
    *of_load = *of_group = p->g->refusals.n;
    if (!p->g->why_apart[load]) p->g->why_apart[load] = reason;
    if (!p->g->why_stored[load]) p->g->why_stored[load] = reason;
}

/* The reason why the last group that computes something the root needs did not take the root,
 * though a later one did. */
static ReasonId why_passed(Grouper *p, uint32_t maker, const Root *root) {
    Group before = p->g->groups.data[maker];
    InlineFailure failure = {.reason = REASON_BETWEEN};
    if (before.is_closed) return REASON_SLOWER;
    if (before.fixed) return REASON_FIXED;
    bool can_join = group_try_join(p, maker, root, &failure);
    p->g->groups.data[maker] = before;
    return can_join ? REASON_BETWEEN : failure.reason;
}

/* The reason why an earlier group did not take the root: only the values of later groups, unless
 * the root reduces over another domain. */
static ReasonId why_earlier(const Grouper *p, uint32_t maker, const Root *root) {
    if (maker == GROUP_NONE || p->g->groups.data[maker].fixed) return REASON_BETWEEN;
    const Group *group = &p->g->groups.data[maker];
    return has_room(p, group, root) ? REASON_BETWEEN : why_not_added(p, group);
}

/* Records the reasons for a root that joined a later group than those that compute its inputs. */
static void note_passed(Grouper *p, const Root *root, const Group *single, uint32_t joined,
                        uint32_t after) {
    for (uint32_t k = 0; k < single->loads.n; k++) {
        NodeId load = single->loads.data[k];
        uint32_t maker = p->g->group_of[load];
        if (maker == GROUP_NONE || maker == joined) continue;
        bool is_latest = maker + 1 == after;
        refuse(p, load, joined,
               is_latest ? why_passed(p, maker, root) : why_earlier(p, maker, root));
    }
}

/* Places a root and returns its group. In this order: several groups over rows merge with the root,
 * the group with the preferred form takes it, the latest group that can, an earlier group that can
 * move; else it opens a group. Groups before `after` - 1 are too early, because the root needs
 * results of group `after` - 1. Of the later ones the latest few are tried: in the steps of a loop
 * hundreds may read what the root reads, and none can take it. */
static uint32_t place_root(Grouper *p, const Root *root, uint32_t after) {
    uint32_t fixed = p->off ? 0 : fixed_root(p, root);
    if (fixed) return place_fixed(p, root, fixed, after);
    uint32_t alone = open_group(p, root);
    if (group_is_too_large(p)) return alone;
    bool is_copy = root->piece && graph_is_bound(p->graph, root->node); /* not in dumps */
    bool is_apart = p->is_apart && !must_block(p->graph, root->node);
    p->g->groups.data[alone].is_closed =
        p->off || is_copy || is_apart || group_is_single(p, root->node);
    if (p->g->groups.data[alone].is_closed) {
        note_own_group(p, &p->g->groups.data[alone]);
        return alone;
    }
    Group single = p->g->groups.data[alone];
    p->g->groups.n--;
    p->single_prims = must_block(p->graph, root->node) ? 0 : single.prims;
    InlineFailure failure, why = {.reason = REASON_BETWEEN};
    uint32_t merged = after ? group_merge_for(p, &single, root, after - 1) : GROUP_NONE;
    if (merged != GROUP_NONE) return merged;
    uint32_t joined = group_join_preferred(p, &single, root, after);
    if (joined != GROUP_NONE) {
        note_passed(p, root, &single, joined, after);
        return joined;
    }
    uint32_t n_tried = 0;
    for (uint32_t i = p->g->groups.n; i-- > (after ? after - 1 : 0);) {
        const Group *group = &p->g->groups.data[i];
        if (group->is_closed && i + 1 == after) why.reason = REASON_SLOWER;
        if (group->fixed || group->is_closed || !is_related(p, &single, i)) continue;
        if (n_tried++ >= FUSE_MOST_TRIED && i + 1 != after) continue;
        if (group_try_join(p, i, root, &failure)) {
            note_passed(p, root, &single, i, after);
            return i;
        }
        if (i + 1 == after) why = failure;
    }
    joined = group_join_earlier(p, &single, root, after);
    if (joined != GROUP_NONE) {
        note_passed(p, root, &single, joined, after);
        return joined;
    }
    vec_push(p->arena, &p->g->groups, single);
    for (uint32_t k = 0; k < single.loads.n; k++) {
        NodeId load = single.loads.data[k];
        uint32_t maker = p->g->group_of[load];
        bool is_latest = maker != GROUP_NONE && maker + 1 == after;
        ReasonId reason = is_cut(p, load, root->node) ? REASON_SPILLS
                          : is_latest                 ? why.reason
                                                      : why_earlier(p, maker, root);
        refuse(p, load, alone, reason);
    }
    return alone;
}

/* Makes a reduction or a store of the node. A node that a group already computes is stored by that
 * group. */
static void root_node(Grouper *p, NodeId id, uint32_t output) {
    uint32_t made_by = p->g->group_of[id];
    Root root = {.node = id, .is_reduction = group_folds(p, id), .output = output};
    if (made_by != GROUP_NONE) {
        vec_push(p->arena, &p->g->groups.data[made_by].targets,
                 (StoreTarget){.node = id, .output = output});
        return;
    }
    uint32_t index = place_root(p, &root, group_dependency(p, id));
    if (!graph_is_bound(p->graph, id) && !graph_is_literal(p->graph, id))
        p->g->group_of[id] = index;
    if (root.is_reduction && output != OUTPUT_NONE) root_node(p, id, output);
}

/* Starts a round: no value is stored yet. */
static Grouping *grouping_new(const Grouper *p) {
    uint32_t n = p->graph->nodes.n;
    Grouping *g = arena_array(p->arena, Grouping, 1);
    g->group_of = arena_array(p->arena, uint32_t, n);
    g->flags = p->flags;
    g->why_stored = arena_array(p->arena, ReasonId, n);
    g->gemm_slice_of = p->gemm_slice_of;
    g->why_apart = arena_array(p->arena, ReasonId, n);
    g->last_refusal = arena_array(p->arena, uint32_t, n);
    memset(g->group_of, 0xFF, n * sizeof *g->group_of);
    node_flags_drop(p->flags, GROUPING_STORED);
    return g;
}

static bool is_own_kernel(const Grouper *p, NodeId id) {
    return p->off && !graph_is_bound(p->graph, id) && !graph_is_literal(p->graph, id);
}

/* Stores the value in the kernel that computes the reduction below it, or nowhere. */
static void sink_epilogue(Grouper *p, NodeId id) {
    Root root = {.node = id, .output = OUTPUT_NONE};
    uint32_t after = group_dependency(p, id);
    InlineFailure failure;
    if (after == 0 || after > p->g->groups.n || p->g->groups.data[after - 1].fixed ||
        p->g->groups.data[after - 1].is_closed || !group_try_join(p, after - 1, &root, &failure)) {
        node_drop(p->flags, id, GROUPING_SINKS);
        node_add(p->flags, id, GROUPING_NEVER_SINKS);
        return;
    }
    p->g->group_of[id] = after - 1;
    node_add(p->flags, id, GROUPING_STORED); /* its reader has the reason */
}

/* Stores each piece of a concat in place, from the group that computes the piece or from a new one.
 * The concat is complete when the last of these groups has run. */
static void root_pieces(Grouper *p, NodeId whole) {
    const Node *node = graph_node(p->graph, whole);
    uint32_t last = 0;
    for (uint32_t i = 0; i < node->n_args; i++) {
        Root piece = {.node = node->args[i], .output = OUTPUT_NONE, .whole = whole, .piece = i + 1};
        uint32_t made_by = p->g->group_of[piece.node];
        if (made_by != GROUP_NONE && !group_is_init(p, &p->g->groups.data[made_by]))
            vec_push(p->arena, &p->g->groups.data[made_by].targets, target_of(&piece));
        else
            made_by = place_root(p, &piece, group_dependency(p, piece.node));
        if (made_by > last) last = made_by;
    }
    p->g->group_of[whole] = last;
}

void group_run_round(Grouper *p) {
    const Graph *graph = p->graph;
    p->g = grouping_new(p);
    if (p->memo && group_memo_growing(p->memo)) inline_trial_drop(group_memo_growing(p->memo));
    p->n_last = 0;
    if (!p->off) group_count_blocks(p);
    group_find_gemm_slices(p);
    for (NodeId id = 0; id < graph->nodes.n && !group_is_spent(p); id++) {
        if (group_folds(p, id)) root_node(p, id, OUTPUT_NONE);
        if (node_has(p->flags, id, GROUPING_IN_PLACE)) root_pieces(p, id);
        bool is_output = node_has(p->flags, id, GROUPING_OUTPUT);
        for (uint32_t o = 0; o < graph->outputs.n && is_output; o++) {
            if (graph->outputs.data[o].node != id) continue;
            bool is_later = !p->off && graph->outputs.data[o].copied_by;
            if (!node_has(p->flags, id, GROUPING_IN_PLACE) && !is_later) root_node(p, id, o);
        }
        bool is_fixed = group_leaves_block(p, id);
        bool is_apart =
            group_is_single(p, id) || (feeds_single(p, id) && !graph_is_literal(graph, id));
        if (is_output) {
            if (!graph_is_bound(graph, id)) node_add(p->flags, id, GROUPING_STORED);
            p->g->why_stored[id] = REASON_OUTPUT;
        } else if (!group_folds(p, id) && (node_has(p->flags, id, GROUPING_WANTED) ||
                                           is_own_kernel(p, id) || is_fixed || is_apart)) {
            if (!node_has(p->flags, id, GROUPING_IN_PLACE)) root_node(p, id, OUTPUT_NONE);
            node_add(p->flags, id, GROUPING_STORED);
            p->g->why_stored[id] = p->off     ? REASON_FUSION_OFF
                                   : is_fixed ? REASON_FIXED
                                   : is_apart ? why_apart(p, id)
                                              : p->want_reason[id];
        } else if (node_has(p->flags, id, GROUPING_SINKS)) {
            sink_epilogue(p, id);
        }
    }
    for (uint32_t o = 0; o < graph->outputs.n && !p->off && !group_is_spent(p);
         o++) /* after their kernels exist */
        if (graph->outputs.data[o].copied_by) root_node(p, graph->outputs.data[o].node, o);
}
