/* See alike_kernels.h. */
#include "fuse/alike_kernels.h"

#include <string.h>

/* A group and its kernel, which is copied for later groups that are like this one. */
typedef struct KnownGroup {
    Group group;     /* with the loads that inlining found */
    uint32_t number; /* of the group */
    Kernel kernel;
} KnownGroup;

struct AlikeKernels {
    Arena *arena;
    OpKernels ops;
    NodeKinds *kinds; /* may be NULL */
    HashIds ids;      /* of `groups`, from 1 on */
    Vec(KnownGroup) groups;
    /* Of the walk that is under way, or the last one: */
    NodeId *image;  /* per node of the known group: the other group's node, plus 1; 0: none */
    NodeId *source; /* the inverse */
    VecU32 reached; /* nodes of the known group that have an image; the first n_walked are done */
    uint32_t n_walked;
    VecU32 from, to; /* buffers of the known group, and those of the other one */
};

/* Of groups with equal hashes so many are compared. */
enum { MOST_COMPARED = 4 };

AlikeKernels *alike_kernels_new(Arena *scratch, NodeKinds *kinds, const Graph *graph) {
    AlikeKernels *known = arena_array(scratch, AlikeKernels, 1);
    known->arena = scratch;
    known->kinds = kinds;
    if (!kinds) return known;
    known->image = arena_array(scratch, NodeId, graph->nodes.n);
    known->source = arena_array(scratch, NodeId, graph->nodes.n);
    return known;
}

static uint64_t hash_of(const AlikeKernels *known, const Group *group) {
    uint64_t hash = hash_mix(group->axes, (uint64_t)group->reduces.n << 32 | group->targets.n);
    for (uint32_t k = 0; k < group->domain.rank; k++) hash = hash_mix(hash, group->domain.dims[k]);
    for (uint32_t i = 0; i < group->reduces.n; i++)
        hash = hash_mix(hash, node_look(known->kinds, group->reduces.data[i]));
    for (uint32_t i = 0; i < group->targets.n; i++)
        hash = hash_mix(hash, node_look(known->kinds, group->targets.data[i].node));
    return hash;
}

static void begin_walk(AlikeKernels *known) {
    for (uint32_t i = 0; i < known->reached.n; i++) {
        NodeId id = known->reached.data[i];
        known->source[known->image[id] - 1] = 0;
        known->image[id] = 0;
    }
    known->reached.n = known->n_walked = known->from.n = known->to.n = 0;
}

/* Notes that `b` has the place of `a`. Returns false if another node has. */
static bool pair_nodes(AlikeKernels *known, NodeId a, NodeId b) {
    if (known->image[a] || known->source[b])
        return known->image[a] == b + 1 && known->source[b] == a + 1;
    if (node_look(known->kinds, a) != node_look(known->kinds, b)) return false;
    known->image[a] = b + 1;
    known->source[b] = a + 1;
    vec_push(known->arena, &known->reached, a);
    return true;
}

static bool pair_buffers(AlikeKernels *known, const Buffer *buffers, uint32_t a, uint32_t b) {
    for (uint32_t i = 0; i < known->from.n; i++)
        if (known->from.data[i] == a || known->to.data[i] == b)
            return known->from.data[i] == a && known->to.data[i] == b;
    if (!buffer_is_alike(&buffers[a], &buffers[b])) return false;
    vec_push(known->arena, &known->from, a);
    vec_push(known->arena, &known->to, b);
    return true;
}

static uint32_t buffer_of(const InlineInput *input, const StoreTarget *target) {
    if (target->output != OUTPUT_NONE) return input->buffer_of_output[target->output];
    return input->buffer_of_node[target->piece ? target->whole : target->node];
}

static bool pair_targets(AlikeKernels *known, const InlineInput *input, const StoreTarget *a,
                         const StoreTarget *b) {
    return a->piece == b->piece && pair_nodes(known, a->node, b->node) &&
           (!a->piece || pair_nodes(known, a->whole, b->whole)) &&
           pair_buffers(known, input->buffers, buffer_of(input, a), buffer_of(input, b));
}

static bool pair_roots(AlikeKernels *known, const InlineInput *input, const Group *a,
                       const Group *b) {
    bool are_alike = a->axes == b->axes && a->is_whole == b->is_whole &&
                     a->reduces.n == b->reduces.n && a->targets.n == b->targets.n &&
                     shape_equal(&a->domain, &b->domain);
    for (uint32_t i = 0; i < a->reduces.n && are_alike; i++)
        are_alike = pair_nodes(known, a->reduces.data[i], b->reduces.data[i]);
    for (uint32_t i = 0; i < a->targets.n && are_alike; i++)
        are_alike = pair_targets(known, input, &a->targets.data[i], &b->targets.data[i]);
    return are_alike;
}

/* Whether the group computes the value, though it may be in memory for other groups. */
static bool is_composed(const Graph *graph, const Group *group, NodeId id) {
    bool is_root = vec_has(&group->reduces, id);
    for (uint32_t i = 0; i < group->targets.n; i++) {
        const StoreTarget *target = &group->targets.data[i];
        is_root = is_root || target->node == id || (target->piece && target->whole == id);
    }
    return is_root || graph_is_update(graph, id);
}

/* Pairs the arguments of two nodes that have been paired. */
static bool walk_node(AlikeKernels *known, const InlineInput *of_known, const InlineInput *input,
                      const Group *group, NodeId a) {
    NodeId b = known->image[a] - 1;
    const Node *one = graph_node(input->graph, a), *other = graph_node(input->graph, b);
    uint32_t facts = inline_facts(of_known, a);
    bool has_buffer = input->buffer_of_node[a] != UINT32_MAX;
    if (facts & INLINE_MAY_REPEAT || facts != inline_facts(input, b) ||
        has_buffer != (input->buffer_of_node[b] != UINT32_MAX))
        return false;
    if (has_buffer &&
        !pair_buffers(known, input->buffers, input->buffer_of_node[a], input->buffer_of_node[b]))
        return false;
    if (facts == INLINE_IN_MEMORY && !is_composed(input->graph, group, a)) return true;
    bool are_alike = one->n_args == other->n_args;
    for (uint32_t i = 0; i < one->n_args && are_alike; i++)
        are_alike = pair_nodes(known, one->args[i], other->args[i]);
    return are_alike;
}

static bool are_alike(AlikeKernels *known, const KnownGroup *first, const InlineInput *input,
                      const Group *group) {
    InlineInput of_known = *input;
    of_known.group = first->number;
    begin_walk(known);
    bool are = pair_roots(known, input, &first->group, group);
    while (known->n_walked < known->reached.n && are)
        are = walk_node(known, &of_known, input, &first->group,
                        known->reached.data[known->n_walked++]);
    return are;
}

/* Copies. */

static uint32_t buffer_in_place(const AlikeKernels *known, uint32_t buffer) {
    uint32_t i = 0;
    while (known->from.data[i] != buffer) i++;
    return known->to.data[i];
}

static VecU32 copy_nodes(Arena *arena, const AlikeKernels *known, const uint32_t *nodes,
                         uint32_t n) {
    VecU32 copy = {arena_copy(arena, nodes, n * sizeof *nodes), n, n};
    for (uint32_t i = 0; i < n; i++) copy.data[i] = known->image[nodes[i]] - 1;
    graph_sort_nodes(copy.data, n);
    return copy;
}

static Store *copy_stores(Arena *arena, const AlikeKernels *known, const Store *stores,
                          uint32_t n) {
    Store *copies = arena_copy(arena, stores, n * sizeof *stores);
    for (uint32_t i = 0; i < n; i++) {
        Store *copy = &copies[i];
        copy->node = known->image[copy->node] - 1;
        copy->buffer = buffer_in_place(known, copy->buffer);
        if (copy->copied) copy->copied = buffer_in_place(known, copy->copied - 1) + 1;
    }
    return copies;
}

static void copy_stages(Arena *arena, const AlikeKernels *known, Kernel *kernel) {
    kernel->stages.data =
        arena_copy(arena, kernel->stages.data, kernel->stages.n * sizeof *kernel->stages.data);
    kernel->stages.capacity = kernel->stages.n;
    for (uint32_t i = 0; i < kernel->stages.n; i++) {
        Stage *stage = &kernel->stages.data[i];
        stage->reduces.data =
            arena_copy(arena, stage->reduces.data, stage->reduces.n * sizeof *stage->reduces.data);
        stage->reduces.capacity = stage->reduces.n;
        stage->stores.data = copy_stores(arena, known, stage->stores.data, stage->stores.n);
        stage->stores.capacity = stage->stores.n;
    }
    kernel->row_stores.data =
        copy_stores(arena, known, kernel->row_stores.data, kernel->row_stores.n);
    kernel->row_stores.capacity = kernel->row_stores.n;
}

static void copy_kernel(Arena *arena, const AlikeKernels *known, const KnownGroup *first,
                        Group *group, Kernel *kernel) {
    *kernel = first->kernel;
    kernel->scalars = scalartab_rebound_apart(arena, first->kernel.scalars, known->from.data,
                                              known->to.data, known->from.n);
    kernel->reduces.data =
        arena_copy(arena, kernel->reduces.data, kernel->reduces.n * sizeof *kernel->reduces.data);
    kernel->reduces.capacity = kernel->reduces.n;
    for (uint32_t i = 0; i < kernel->reduces.n; i++)
        kernel->reduces.data[i].node = known->image[kernel->reduces.data[i].node] - 1;
    copy_stages(arena, known, kernel);
    VecU32 nodes = copy_nodes(arena, known, kernel->nodes.data, kernel->nodes.n);
    kernel->nodes.data = nodes.data;
    kernel->nodes.capacity = nodes.n;
    VecU32 loads = copy_nodes(arena, known, first->group.loads.data, first->group.loads.n);
    group->loads.data = loads.data;
    group->loads.n = group->loads.capacity = loads.n;
    group->has_passes = first->group.has_passes;
    group->has_inner = first->group.has_inner;
}

/* Whether a copy has all that inlining has done. Sorts get scratch memory afterwards. */
static bool may_copy(const InlineInput *input, const Kernel *kernel) {
    bool may = !form_info(kernel->form)->sorts;
    for (uint32_t i = 0; i < kernel->reduces.n && may; i++) may = !kernel->reduces.data[i].join;
    for (uint32_t i = 0; i < kernel->nodes.n && may; i++)
        may = !node_has(input->flags, kernel->nodes.data[i], GROUPING_DROPS_REST);
    return may;
}

static void keep(AlikeKernels *known, uint64_t hash, const InlineInput *input, const Group *group,
                 const Kernel *kernel) {
    KnownGroup first = {.group = *group, .number = input->group, .kernel = *kernel};
    first.group.loads.data =
        arena_copy(known->arena, group->loads.data, group->loads.n * sizeof *group->loads.data);
    vec_push(known->arena, &known->groups, first);
    hashids_add(known->arena, &known->ids, hash, known->groups.n);
}

bool alike_kernels_inline(Arena *arena, AlikeKernels *known, const InlineInput *input, Group *group,
                          Kernel *kernel, InlineFailure *failure) {
    if (!known->kinds || group->fixed || group->gemm_slice || input->has_traces ||
        op_kernels_are_for(input, group))
        return op_kernels_inline(arena, &known->ops, input, group, kernel, failure);
    uint64_t hash = hash_of(known, group);
    uint32_t probe = 0, n = 0;
    for (uint32_t k; n < MOST_COMPARED && (k = hashids_next(&known->ids, hash, &probe)); n++) {
        const KnownGroup *first = &known->groups.data[k - 1];
        if (!are_alike(known, first, input, group)) continue;
        copy_kernel(arena, known, first, group, kernel);
        return true;
    }
    if (!inline_group(arena, input, group, kernel, failure)) return false;
    if (n < MOST_COMPARED && may_copy(input, kernel)) keep(known, hash, input, group, kernel);
    return true;
}
