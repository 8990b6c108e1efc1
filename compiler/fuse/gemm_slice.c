/* See gemm_slice.h. */
#include "fuse/gemm_slice.h"
#include "ir/node_flags.h"
#include "machine/machine.h"

typedef enum SearchFlag {
    KNOWN, /* met in the search, and in a list */
} SearchFlag;

VecU32 *gemm_slice_users(Arena *arena, const Graph *graph) {
    VecU32 *users = arena_array(arena, VecU32, graph->nodes.n);
    size_t n_uses = 0;
    for (NodeId id = 0; id < graph->nodes.n; id++) {
        const Node *node = graph_node(graph, id);
        for (uint32_t i = 0; i < node->n_args; i++) users[node->args[i]].capacity++;
        n_uses += node->n_args;
    }
    NodeId *uses = arena_array(arena, NodeId, n_uses);
    for (NodeId id = 0; id < graph->nodes.n; id++) {
        const Node *node = graph_node(graph, id);
        users[id].data = uses;
        uses += users[id].capacity;
        for (uint32_t i = 0; i < node->n_args; i++) {
            VecU32 *of_arg = &users[node->args[i]];
            of_arg->data[of_arg->n++] = id;
        }
    }
    return users;
}

/* Whether `elems` contiguous elements of this dtype are a whole number of accesses. */
static bool is_whole(const Graph *graph, DimId elems, Dtype dtype) {
    return dim_multiple(graph->dims, elems) * dtype_bytes(dtype) % ACCESS_BYTES == 0;
}

/* Which of the operand's last two axes is contiguous. */
static uint32_t inner_axis(const Graph *graph, NodeId operand) {
    const Node *node = graph_node(graph, operand);
    uint32_t last = node->shape.rank - 1;
    bool is_transposed = node->op == OP_TRANSPOSE && node->attrs.per_axis->perm[last] + 1u == last;
    return is_transposed ? last - 1 : last;
}

static bool cuts_axis(const Graph *graph, const Node *slice, uint32_t axis) {
    return slice->shape.dims[axis] != graph_node(graph, slice->args[0])->shape.dims[axis];
}

/* Whether accesses to this operand (0: the left one) are as wide in the slice as in the whole
 * matmul. The lhs has the axes m and k, the rhs k and n; the result has m and n. */
static bool is_aligned(const Graph *graph, NodeId gemm, const Node *slice, uint32_t side) {
    NodeId operand = graph_node(graph, gemm)->args[side];
    const Node *node = graph_node(graph, operand);
    uint32_t rank = slice->shape.rank, own = side == 0 ? rank - 2 : rank - 1;
    uint32_t own_of_operand = side == 0 ? node->shape.rank - 2 : node->shape.rank - 1;
    bool is_cut = cuts_axis(graph, slice, own);
    for (uint32_t d = 0; d + 2 < rank; d++) is_cut = is_cut || cuts_axis(graph, slice, d);
    if (!is_cut) return true;
    uint32_t inner = inner_axis(graph, operand);
    bool begins_whole =
        inner != own_of_operand || is_whole(graph, slice->attrs.per_axis->begin[own], node->dtype);
    return begins_whole && is_whole(graph, node->shape.dims[inner], node->dtype);
}

static bool is_gemm_slice(const Graph *graph, NodeId gemm, NodeId id) {
    const Node *node = graph_node(graph, id);
    if (node->op != OP_SLICE) return false;
    for (uint32_t d = 0; d < node->shape.rank; d++)
        if (node->attrs.per_axis->step[d] != 1) return false;
    return is_aligned(graph, gemm, node, 0) && is_aligned(graph, gemm, node, 1);
}

static bool is_elementwise(const Graph *graph, NodeId gemm, NodeId id) {
    const Node *node = graph_node(graph, id);
    OpClass cls = op_info(node->op)->cls;
    return (cls == CLASS_ELTWISE || cls == CLASS_CAST) &&
           shape_equal(&node->shape, &graph_node(graph, gemm)->shape);
}

static bool may_be_inside(const Graph *graph, NodeId gemm, NodeId id) {
    return !graph_is_output(graph, id) && !graph_block(graph, id, BLOCK_NEVER) &&
           graph_block(graph, id, BLOCK_KERNEL) == graph_block(graph, gemm, BLOCK_KERNEL);
}

NodeFlags gemm_slice_leads(Arena *arena, const Graph *graph, const VecU32 *users) {
    NodeFlags leads = node_flags_new(arena, graph->nodes.n);
    for (NodeId id = graph->nodes.n; id-- > 0;) {
        bool may_lead = users[id].n != 0;
        for (uint32_t i = 0; i < users[id].n && may_lead; i++) {
            NodeId user = users[id].data[i];
            OpClass cls = graph_class(graph, user);
            bool is_slice = graph_node(graph, user)->op == OP_SLICE;
            bool is_plain = cls == CLASS_ELTWISE || cls == CLASS_CAST;
            may_lead = is_slice || (is_plain && node_has(leads, user, LEADS_TO_SLICES));
        }
        may_lead = may_lead && !graph_is_output(graph, id); /* which takes long */
        node_set(leads, id, LEADS_TO_SLICES, may_lead);
    }
    return leads;
}

bool gemm_slice_find(Arena *arena, const Graph *graph, const VecU32 *users, NodeFlags leads,
                     NodeId gemm, GemmSlices *found) {
    *found = (GemmSlices){.inside = {.n = 0}};
    if (!graph_is_matmul(graph, gemm) || !node_has(leads, gemm, LEADS_TO_SLICES) ||
        !may_be_inside(graph, gemm, gemm))
        return false;
    NodeFlags known = node_flags_new(arena, graph->nodes.n);
    vec_push(arena, &found->inside, gemm);
    for (uint32_t i = 0; i < found->inside.n; i++) {
        const VecU32 *readers = &users[found->inside.data[i]];
        if (readers->n == 0) return false;
        for (uint32_t k = 0; k < readers->n; k++) {
            NodeId id = readers->data[k];
            bool is_slice = is_gemm_slice(graph, gemm, id);
            if (!node_add(known, id, KNOWN)) continue;
            bool may_be = is_slice
                              ? !graph_block(graph, id, BLOCK_NEVER) &&
                                    graph_block(graph, id, BLOCK_KERNEL) ==
                                        graph_block(graph, gemm, BLOCK_KERNEL)
                              : is_elementwise(graph, gemm, id) && may_be_inside(graph, gemm, id);
            if (!may_be) return false;
            vec_push(arena, is_slice ? &found->slices : &found->inside, id);
        }
    }
    return true;
}

bool gemm_slices_are_alike(const Graph *graph, const GemmSlices *found) {
    DimTab *dims = graph->dims;
    const Shape *shape = &graph_node(graph, found->slices.data[0])->shape;
    DimId sum = dim_const(dims, 0), own = shape_n_elems(dims, shape);
    DimId all = shape_n_elems(dims, &graph_node(graph, found->inside.data[0])->shape);
    for (uint32_t i = 0; i < found->slices.n && sum && own; i++) {
        if (!shape_equal(shape, &graph_node(graph, found->slices.data[i])->shape)) return false;
        sum = dim_add(dims, sum, own);
    }
    return sum && own && all && dim_always_le(dims, sum, all);
}
