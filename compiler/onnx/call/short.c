/* The builder, in short: steps that many lowerings share. */
#include "ir/loop.h"
#include "onnx/call/import_state.h"

bool const_dims(Call *c, NodeId x, int64_t *dims) {
    return const_dims_but(c, x, 0, dims);
}

bool const_dims_but(Call *c, NodeId x, uint32_t free_axes, int64_t *dims) {
    if (x == NODE_NONE) return false;
    for (uint32_t k = 0; k < shape_of(c, x)->rank; k++)
        if (dim_is_const(c->im->b->dims, shape_of(c, x)->dims[k], &dims[k]))
            continue;
        else if (free_axes >> k & 1)
            dims[k] = -1;
        else
            return onnx_fail(c, DIAG_NO_LOWERING,
                             "axis %u of `%s` has an extent that is no constant", k,
                             c->node->inputs.n ? c->node->inputs.data[0] : "");
    return true;
}

NodeId reshape_const(Call *c, NodeId x, uint32_t rank, const int64_t *extents) {
    Shape shape = const_shape(c, rank, extents);
    return reshape_to(c, x, &shape);
}

Shape const_shape(const Call *c, uint32_t rank, const int64_t *extents) {
    Shape shape = {.rank = rank};
    for (uint32_t k = 0; k < rank; k++) shape.dims[k] = number(c, extents[k]);
    return shape;
}

NodeId expand_to(Call *c, NodeId x, const Shape *shape) {
    return build_expand(c->im->b, x, (DimList){shape->rank, shape->dims});
}

NodeId index_along(Call *c, const Shape *shape, uint32_t axis) {
    return build_iota(c->im->b, (DimList){shape->rank, shape->dims}, axis, DT_I32);
}

NodeId transpose(Call *c, NodeId x, const int64_t *perm) {
    return x == NODE_NONE ? x : build_transpose(c->im->b, x, shape_of(c, x)->rank, perm);
}

/* x, if it has the axis; else NODE_NONE after an error. */
static NodeId with_rank(Call *c, NodeId x, uint32_t axis) {
    if (x == NODE_NONE || axis < shape_of(c, x)->rank) return x;
    onnx_fail(c, DIAG_SHAPE_MISMATCH, "it needs a tensor of %u axes or more, not %u", axis + 1,
              shape_of(c, x)->rank);
    return NODE_NONE;
}

NodeId move_axis(Call *c, NodeId x, uint32_t from, uint32_t to) {
    int64_t perm[MAX_RANK];
    x = with_rank(c, x, from > to ? from : to);
    if (x == NODE_NONE) return x;
    for (uint32_t k = 0, next = 0; k < shape_of(c, x)->rank; k++) {
        if (next == from) next++;
        perm[k] = k == to ? from : next++;
    }
    return transpose(c, x, perm);
}

NodeId matmul(Call *c, NodeId a, NodeId b) {
    Operand left = operand_tensor(a), right = operand_tensor(b);
    return build_matmul(c->im->b, &left, &right, PRECISION_FULL, NULL);
}

Dtype wide_dtype(Dtype dtype) {
    return dtype_is_int(dtype) ? dtype_compute(dtype) : dtype;
}

NodeId matmul_wide(Call *c, NodeId a, NodeId b) {
    Operand left = operand_tensor(a), right = operand_tensor(b);
    if (a == NODE_NONE || b == NODE_NONE) return NODE_NONE;
    Dtype out = wide_dtype(dtype_of(c, a));
    return build_matmul(c->im->b, &left, &right, PRECISION_FULL, &out);
}

NodeId concat(Call *c, NodeId a, NodeId b, uint32_t axis) {
    NodeId parts[] = {a, b};
    return build_concat(c->im->b, 2, parts, axis);
}

NodeId part_of(Call *c, NodeId x, uint32_t axis, DimId begin, DimId extent) {
    DimId begins[MAX_RANK];
    x = with_rank(c, x, axis);
    if (x == NODE_NONE) return x;
    Shape to = *shape_of(c, x);
    for (uint32_t k = 0; k < to.rank; k++) begins[k] = k == axis ? begin : number(c, 0);
    to.dims[axis] = extent;
    return build_slice(c->im->b, x, (DimList){to.rank, begins}, (DimList){to.rank, to.dims},
                       (DimList){0, NULL});
}

NodeId at_index(Call *c, NodeId x, uint32_t axis, int64_t index) {
    x = with_rank(c, x, axis);
    if (x == NODE_NONE) return x;
    Shape to = shape_reduced(c->im->b->dims, shape_of(c, x), 1u << axis, false);
    return reshape_to(c, part_of(c, x, axis, number(c, index), number(c, 1)), &to);
}

NodeId with_axis(Call *c, NodeId x, uint32_t axis) {
    if (axis) x = with_rank(c, x, axis - 1);
    if (x == NODE_NONE) return x;
    Shape from = *shape_of(c, x), to = {.rank = from.rank + 1};
    if (to.rank > MAX_RANK) {
        onnx_fail(c, DIAG_LIMIT, "it needs a tensor of more than 16 axes");
        return NODE_NONE;
    }
    for (uint32_t k = 0; k < to.rank; k++)
        to.dims[k] = k == axis ? number(c, 1) : from.dims[k - (k > axis)];
    return reshape_to(c, x, &to);
}

NodeId stacked(Call *c, uint32_t n, const NodeId *parts, uint32_t axis) {
    NodeId *wide = arena_array(c->im->arena, NodeId, n + 1);
    for (uint32_t i = 0; i < n; i++) wide[i] = with_axis(c, parts[i], axis);
    return build_concat(c->im->b, n, wide, axis);
}

NodeId table_node(Call *c, Dtype dtype, uint32_t rank, const int64_t *dims, const double *values) {
    int64_t n = 1;
    for (uint32_t k = 0; k < rank; k++) n *= dims[k];
    size_t size = dtype_bytes(dtype);
    OnnxTensor *tensor = arena_array(c->im->arena, OnnxTensor, 1);
    uint8_t *bytes = arena_alloc(c->im->arena, (size_t)n * size + 1);
    *tensor =
        (OnnxTensor){.type = (int64_t)elem_of_dtype(dtype), .n_elems = (size_t)n, .length = -1};
    for (uint32_t k = 0; k < rank; k++) vec_push(c->im->arena, &tensor->dims, dims[k]);
    for (int64_t i = 0; i < n; i++)
        dtype_store(dtype, dtype_round(dtype, values[i]), bytes + (size_t)i * size);
    tensor->raw = (Bytes){bytes, (size_t)n * size};
    return tensor_node(c, "", tensor);
}

bool repeat_begin(Call *c, DimId count, Dtype dtype, Repeat *r, NodeId *index) {
    Import *im = c->im;
    if (!onnx_need_least(c, count, 0)) return false;
    if (im->n_repeats == MAX_LOOPS_DEEP)
        return onnx_fail(c, DIAG_LIMIT,
                         "loops whose number of steps is a dim lie in each other more than %d deep",
                         (int)MAX_LOOPS_DEEP);
    if (!build_check_loop_count(im->b, count)) return false;
    im->n_repeats++;
    *r = (Repeat){.count = count};
    *index = build_repeat_counter(im->b, number(c, 0), dtype);
    return *index != NODE_NONE;
}

/* A step that does not read its number need not count. */
void repeat_end(Call *c, Repeat *r, NodeId index) {
    const Graph *graph = c->im->b->graph;
    bool is_read = false;
    for (NodeId k = index + 1; k < graph->nodes.n && !is_read; k++)
        for (uint32_t i = 0; i < graph_node(graph, k)->n_args; i++)
            is_read = is_read || graph_node(graph, k)->args[i] == index;
    if (is_read || !r->carries.n) build_repeat_count(c->im->b, r, index, 1);
    c->im->n_repeats--;
}

NodeId element_at(Call *c, NodeId x, uint32_t axis, NodeId at) {
    return build_gather(c->im->b, x, at, axis);
}

NodeId number_node(Call *c, DimId dim, Dtype dtype) {
    Builder *b = c->im->b;
    int64_t known, least = dim_lo(b->dims, dim);
    if (dim_is_const(b->dims, dim, &known)) {
        Operand operand = operand_int(dim);
        return build_const(b, &operand, dtype);
    }
    Shape scalar = {.rank = 0};
    if (least > 0) least = 0;
    DimId last = dim_sub(b->dims, dim, number(c, least)), n = dim_add(b->dims, last, number(c, 1));
    NodeId numbers = build_iota(b, (DimList){1, &n}, 0, dtype);
    NodeId value = reshape_to(c, part_of(c, numbers, 0, last, number(c, 1)), &scalar);
    return least ? op2n(c, OP_ADD, value, (double)least) : value;
}

NodeId negative_from_end(Call *c, NodeId indices, DimId extent) {
    indices = cast_to(c, indices, DT_I32);
    NodeId wrapped = op2(c, OP_ADD, indices, number_node(c, extent, DT_I32));
    return op3(c, OP_WHERE, op2n(c, OP_LESS, indices, 0), wrapped, indices);
}
