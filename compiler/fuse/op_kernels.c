/* See op_kernels.h. */
#include "fuse/op_kernels.h"

#include <string.h>

/* Whether the kernel loads the node, and never computes it. */
static bool is_loaded(const InlineInput *input, NodeId id) {
    return inline_facts(input, id) == INLINE_IN_MEMORY;
}

bool op_kernels_are_for(const InlineInput *input, const Group *group) {
    if (group->reduces.n || group->targets.n != 1 || group->fixed || input->has_traces)
        return false;
    StoreTarget target = group->targets.data[0];
    const Node *node = graph_node(input->graph, target.node);
    OpClass cls = op_info(node->op)->cls;
    bool is_alone = (cls == CLASS_ELTWISE || cls == CLASS_CAST) && !target.piece &&
                    target.output == OUTPUT_NONE && shape_equal(&group->domain, &node->shape) &&
                    !inline_facts(input, target.node);
    for (uint32_t i = 0; i < node->n_args && is_alone; i++)
        is_alone =
            is_loaded(input, node->args[i]) ||
            (graph_is_literal(input->graph, node->args[i]) && !inline_facts(input, node->args[i]));
    return is_alone;
}

static uint64_t bits_of(double number) {
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

static uint64_t hash_of(const Graph *graph, NodeId id) {
    const Node *node = graph_node(graph, id);
    uint64_t hash = hash_mix(node->op, node->dtype);
    for (uint32_t i = 0; i < node->shape.rank; i++) hash = hash_mix(hash, node->shape.dims[i]);
    for (uint32_t i = 0; i < node->n_args; i++) {
        const Node *arg = graph_node(graph, node->args[i]);
        hash = hash_mix(hash, (uint64_t)arg->dtype << 32 | arg->op);
        if (graph_is_literal(graph, node->args[i]))
            hash = hash_mix(hash, bits_of(arg->attrs.number) ^ (uint64_t)arg->attrs.whole);
    }
    return hash;
}

static bool are_attrs_equal(const Attrs *a, const Attrs *b) {
    return bits_of(a->number) == bits_of(b->number) && a->whole == b->whole &&
           a->precision == b->precision && a->axis == b->axis && a->axes == b->axes &&
           a->keep == b->keep;
}

static bool are_values_alike(const InlineInput *input, NodeId a, NodeId b) {
    const Node *one = graph_node(input->graph, a), *other = graph_node(input->graph, b);
    if (one->dtype != other->dtype || !shape_equal(&one->shape, &other->shape)) return false;
    bool is_literal = graph_is_literal(input->graph, a);
    if (is_literal != graph_is_literal(input->graph, b)) return false;
    if (is_literal) return are_attrs_equal(&one->attrs, &other->attrs);
    return buffer_is_alike(&input->buffers[input->buffer_of_node[a]],
                           &input->buffers[input->buffer_of_node[b]]);
}

/* The buffers that the op's kernel accesses: of its arguments, and the one that it writes;
 * UINT32_MAX for a literal. Returns their number. */
static uint32_t list_buffers(const InlineInput *input, NodeId id, uint32_t *buffers) {
    const Node *node = graph_node(input->graph, id);
    for (uint32_t i = 0; i < node->n_args; i++)
        buffers[i] = graph_is_literal(input->graph, node->args[i])
                         ? UINT32_MAX
                         : input->buffer_of_node[node->args[i]];
    buffers[node->n_args] = input->buffer_of_node[id];
    return node->n_args + 1;
}

enum { MOST_BUFFERS = 4 };

static bool are_ops_alike(const InlineInput *input, NodeId a, NodeId b) {
    const Node *one = graph_node(input->graph, a), *other = graph_node(input->graph, b);
    uint32_t of_one[MOST_BUFFERS], of_other[MOST_BUFFERS];
    if (one->op != other->op || one->n_args != other->n_args ||
        !are_attrs_equal(&one->attrs, &other->attrs) || !are_values_alike(input, a, b))
        return false;
    for (uint32_t i = 0; i < one->n_args; i++)
        if (!are_values_alike(input, one->args[i], other->args[i])) return false;
    uint32_t n = list_buffers(input, a, of_one);
    list_buffers(input, b, of_other);
    for (uint32_t i = 1; i < n; i++)
        for (uint32_t k = 0; k < i; k++)
            if ((of_one[i] == of_one[k]) != (of_other[i] == of_other[k])) return false;
    return true;
}

/* The literals of the op and the op, ascending. */
static void note_nodes(Arena *arena, const Graph *graph, NodeId id, Kernel *kernel) {
    const Node *node = graph_node(graph, id);
    memset(&kernel->nodes, 0, sizeof kernel->nodes);
    for (uint32_t i = 0; i < node->n_args; i++)
        if (graph_is_literal(graph, node->args[i]) && !vec_has(&kernel->nodes, node->args[i]))
            vec_push(arena, &kernel->nodes, node->args[i]);
    graph_sort_nodes(kernel->nodes.data, kernel->nodes.n);
    vec_push(arena, &kernel->nodes, id);
}

void op_kernels_note_loads(Arena *arena, const Graph *graph, Group *group) {
    const Node *node = graph_node(graph, group->targets.data[0].node);
    group->has_passes = group->has_inner = false;
    group->loads.n = 0;
    for (uint32_t i = 0; i < node->n_args; i++)
        if (!graph_is_literal(graph, node->args[i]) && !vec_has(&group->loads, node->args[i]))
            vec_push(arena, &group->loads, node->args[i]);
    graph_sort_nodes(group->loads.data, group->loads.n);
}

static void copy_kernel(Arena *arena, const InlineInput *input, const Kernel *first, NodeId of,
                        NodeId id, Kernel *kernel) {
    uint32_t from[MOST_BUFFERS], to[MOST_BUFFERS], n = list_buffers(input, of, from);
    list_buffers(input, id, to);
    *kernel = *first;
    kernel->scalars = scalartab_rebound(arena, first->scalars, from, to, n);
    kernel->stages.data = arena_copy(arena, first->stages.data, sizeof *first->stages.data);
    Stage *stage = &kernel->stages.data[0];
    stage->stores.data = arena_copy(arena, stage->stores.data, sizeof *stage->stores.data);
    stage->stores.capacity = kernel->stages.capacity = 1;
    stage->stores.data[0].node = id;
    stage->stores.data[0].buffer = to[n - 1];
    note_nodes(arena, input->graph, id, kernel);
}

/* A kernel of one stage that stores one value, whose scalars and expressions have no guards. */
static bool may_copy(const Kernel *kernel) {
    return kernel->stages.n == 1 && kernel->stages.data[0].stores.n == 1 &&
           kernel->row_stores.n == 0 && !scalartab_has_guards(kernel->scalars);
}

bool op_kernels_inline(Arena *arena, OpKernels *known, const InlineInput *input, Group *group,
                       Kernel *kernel, InlineFailure *failure) {
    if (!op_kernels_are_for(input, group))
        return inline_group(arena, input, group, kernel, failure);
    NodeId id = group->targets.data[0].node;
    uint64_t hash = hash_of(input->graph, id);
    uint32_t probe = 0;
    for (uint32_t k; (k = hashids_next(&known->ids, hash, &probe));) {
        if (!are_ops_alike(input, known->nodes.data[k - 1], id)) continue;
        copy_kernel(arena, input, &known->kernels.data[k - 1], known->nodes.data[k - 1], id,
                    kernel);
        op_kernels_note_loads(arena, input->graph, group);
        return true;
    }
    if (!inline_group(arena, input, group, kernel, failure)) return false;
    if (!may_copy(kernel)) return true;
    vec_push(input->scratch, &known->nodes, id);
    hashids_add(input->scratch, &known->ids, hash, known->nodes.n);
    kernel->program = known->nodes.n;
    vec_push(input->scratch, &known->kernels, *kernel);
    return true;
}
