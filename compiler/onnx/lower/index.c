/* Elements by index: gathers and scatters of single elements, sorts. */
#include "onnx/call/import_state.h"

#include <math.h>

/* Gathers. */

/* An index along an axis as a part of a place: times the elements that one step skips. */
static NodeId times(Call *c, NodeId index, DimId stride) {
    return op2(c, OP_MUL, index, number_node(c, stride, DT_I32));
}

/* The place of each element of `shape` in an array of the shape `data`, where the index along
 * `axis` is replaced. */
static NodeId flat_places(Call *c, const Shape *shape, const Shape *data, uint32_t axis,
                          NodeId index) {
    NodeId place = NODE_NONE;
    DimId stride = number(c, 1);
    for (uint32_t k = shape->rank; k-- > 0;) {
        NodeId at = times(c, k == axis ? index : index_along(c, shape, k), stride);
        place = place == NODE_NONE ? at : op2(c, OP_ADD, place, at);
        stride = dim_mul(c->im->b->dims, stride, data->dims[k]);
    }
    return place;
}

static NodeId flat(Call *c, NodeId x) {
    static const int64_t all[] = {-1};
    return reshape_const(c, x, 1, all);
}

/* data, indices: one rank, and an axis */
static bool elements_of(Call *c, NodeId data, NodeId indices, uint32_t *axis, NodeId *places) {
    if (data == NODE_NONE || indices == NODE_NONE) return false;
    Shape shape = *shape_of(c, indices), from = *shape_of(c, data);
    if (shape.rank != from.rank)
        return onnx_fail(c, DIAG_SHAPE_MISMATCH, "data and indices differ in rank");
    if (!axis_of(c, attr_int(c, "axis", 0), shape.rank, axis)) return false;
    indices = negative_from_end(c, indices, from.dims[*axis]);
    *places = flat_places(c, &shape, &from, *axis, indices);
    return true;
}

bool onnx_gather_elements(Call *c) {
    NodeId data = input(c, 0), indices = input(c, 1), places;
    uint32_t axis;
    if (!elements_of(c, data, indices, &axis, &places)) return false;
    return output(c, 0, build_gather(c->im->b, flat(c, data), places, 0));
}

/* Rows of data by tuples of indices: [batch.., i.., q] names one of the first `n_batch` + q axes
 * of data each. The result: [batch.., i..]. */
static NodeId tuple_places(Call *c, NodeId indices, NodeId data, uint32_t n_batch, int64_t q) {
    Shape to = *shape_of(c, indices), from = *shape_of(c, data);
    uint32_t last = --to.rank;
    NodeId place = NODE_NONE;
    DimId stride = number(c, 1);
    for (int64_t k = n_batch + q; k-- > 0;) {
        NodeId at = k < n_batch ? index_along(c, &to, (uint32_t)k)
                                : negative_from_end(c, at_index(c, indices, last, k - n_batch),
                                                    from.dims[k]);
        at = times(c, at, stride);
        place = place == NODE_NONE ? at : op2(c, OP_ADD, place, at);
        stride = dim_mul(c->im->b->dims, stride, from.dims[k]);
    }
    return place;
}

/* The length of a tuple of indices, if it fits the data. */
static bool check_tuples(Call *c, NodeId data, NodeId indices, int64_t n_batch, int64_t *q) {
    if (data == NODE_NONE || indices == NODE_NONE) return false;
    uint32_t rank = shape_of(c, indices)->rank;
    *q = 0;
    if (rank && !dim_is_const(c->im->b->dims, shape_of(c, indices)->dims[rank - 1], q))
        return onnx_fail(c, DIAG_NO_LOWERING, "the last extent of its indices is no constant");
    if (rank == 0 || n_batch < 0 || n_batch >= rank || *q < 1 ||
        n_batch + *q > shape_of(c, data)->rank)
        return onnx_fail(c, DIAG_SHAPE_MISMATCH, "its tuples of indices do not fit the data");
    return true;
}

/* data with its first n axes as one */
static NodeId rows_of(Call *c, NodeId data, int64_t n) {
    Shape from = *shape_of(c, data), to = {.rank = from.rank - (uint32_t)n + 1};
    to.dims[0] = number(c, 1);
    for (uint32_t k = 0; k < from.rank; k++)
        if (k < n)
            to.dims[0] = dim_mul(c->im->b->dims, to.dims[0], from.dims[k]);
        else
            to.dims[k - (uint32_t)n + 1] = from.dims[k];
    return reshape_to(c, data, &to);
}

bool onnx_gather_nd(Call *c) {
    NodeId data = input(c, 0), indices = input(c, 1);
    int64_t q, n_batch = attr_int(c, "batch_dims", 0);
    if (!check_tuples(c, data, indices, n_batch, &q)) return false;
    NodeId places = tuple_places(c, indices, data, (uint32_t)n_batch, q);
    return output(c, 0, build_gather(c->im->b, rows_of(c, data, n_batch + q), places, 0));
}

/* Scatters. */

/* x, ids: [n] and [n, ..] -> [n_segments, ..] */
static NodeId segments(Call *c, OpId op, NodeId x, NodeId ids, DimId n_segments) {
    Shape wide = *shape_of(c, x), column = {.rank = wide.rank, .dims = {wide.dims[0]}};
    for (uint32_t k = 1; k < column.rank; k++) column.dims[k] = number(c, 1);
    ids = expand_to(c, reshape_to(c, ids, &column), &wide);
    return build_segments(c->im->b, op, x, ids, n_segments, 0);
}

NodeId scattered(Call *c, NodeId data, NodeId places, NodeId updates, Str reduction) {
    Builder *b = c->im->b;
    if (data == NODE_NONE || places == NODE_NONE || updates == NODE_NONE) return NODE_NONE;
    Shape column = *shape_of(c, data);
    DimId n = column.dims[0];
    NodeId order = build_scan(b, OP_ARGSORT, places, 0);
    NodeId ids = build_gather(b, places, order, 0);
    if (strcmp(reduction, "none") == 0) {
        NodeId last = segments(c, OP_SEGMENT_MAX, order, ids, n);
        NodeId found = build_gather(b, updates, last, 0);
        for (uint32_t k = 1; k < column.rank; k++) column.dims[k] = number(c, 1);
        NodeId is_new = op2n(c, OP_GREATER_EQUAL, reshape_to(c, last, &column), 0);
        return where(c, is_new, found, data);
    }
    bool adds = strcmp(reduction, "add") == 0, multiplies = strcmp(reduction, "mul") == 0;
    bool is_max = strcmp(reduction, "max") == 0;
    OpId join = adds ? OP_ADD : multiplies ? OP_MUL : is_max ? OP_MAXIMUM : OP_MINIMUM;
    OpId over = adds         ? OP_SEGMENT_SUM
                : multiplies ? OP_SEGMENT_PROD
                : is_max     ? OP_SEGMENT_MAX
                             : OP_SEGMENT_MIN;
    NodeId sorted = build_gather(b, updates, order, 0);
    NodeId own = segments(c, over, sorted, ids, n);
    NodeId joined = op2(c, join, data, own);
    /* a sum of nothing is +0, and data without updates stays as it is */
    bool keeps = adds && joined != NODE_NONE && dtype_is_float(dtype_of(c, data));
    return keeps ? where(c, op2n(c, OP_EQUAL, own, 0), data, joined) : joined;
}

bool onnx_scatter_elements(Call *c) {
    NodeId data = input(c, 0), indices = input(c, 1), places;
    uint32_t axis;
    if (!elements_of(c, data, indices, &axis, &places)) return false;
    NodeId y = scattered(c, flat(c, data), flat(c, places), flat(c, input(c, 2)),
                         attr_string(c, "reduction", "none"));
    Shape shape = *shape_of(c, data);
    return output(c, 0, reshape_to(c, y, &shape));
}

bool onnx_scatter_nd(Call *c) {
    NodeId data = input(c, 0), indices = input(c, 1), updates = input(c, 2);
    int64_t q;
    if (updates == NODE_NONE || !check_tuples(c, data, indices, 0, &q)) return false;
    NodeId places = tuple_places(c, indices, data, 0, q);
    NodeId rows = rows_of(c, data, q);
    if (rows == NODE_NONE || places == NODE_NONE) return false;
    Shape each = *shape_of(c, rows);
    each.dims[0] = number(c, -1);
    NodeId y = scattered(c, rows, flat(c, places), reshape_to(c, updates, &each),
                         attr_string(c, "reduction", "none"));
    Shape shape = *shape_of(c, data);
    return output(c, 0, reshape_to(c, y, &shape));
}

/* The cache of one batch, updated from one element on: a part of it is stored anew. */
static NodeId updated(Call *c, NodeId cache, NodeId update, NodeId first, uint32_t axis) {
    Shape vector = {.rank = 1, .dims = {number(c, shape_of(c, cache)->rank)}};
    NodeId k = index_along(c, &vector, 0), at = cast_to(c, first, DT_I32);
    NodeId starts = where(c, op2n(c, OP_EQUAL, k, axis), at, constant(c, 0, k));
    return build_update(c->im->b, OP_DYNAMIC_UPDATE_SLICE, cache, update, starts);
}

/* cache: [b, .., t, ..], update: the same with fewer along `axis`, from write_indices[b] on. */
bool onnx_tensor_scatter(Call *c) {
    NodeId cache = input(c, 0), update = input(c, 1), first = input(c, 2);
    int64_t extents[MAX_RANK], n[MAX_RANK];
    uint32_t axis;
    if (!const_dims(c, cache, extents) || !const_dims(c, update, n)) return false;
    Shape shape = *shape_of(c, cache), part = *shape_of(c, update), column = {.rank = shape.rank};
    if (!axis_of(c, attr_int(c, "axis", -2), shape.rank, &axis)) return false;
    bool is_circular = strcmp(attr_string(c, "mode", "linear"), "circular") == 0;
    if (!is_circular && extents[0] == 1 && axis > 0 && first != NODE_NONE)
        return output(c, 0, updated(c, cache, update, first, axis));
    NodeId at = index_along(c, &shape, axis);
    if (first != NODE_NONE) {
        for (uint32_t k = 0; k < column.rank; k++) column.dims[k] = number(c, k ? 1 : extents[0]);
        at = op2(c, OP_SUB, at, reshape_to(c, cast_to(c, first, DT_I32), &column));
    }
    if (is_circular) {
        NodeId wrapped = op2n(c, OP_ADD, at, (double)extents[axis]);
        at = where(c, op2n(c, OP_LESS, at, 0), wrapped, at);
    }
    NodeId is_new = op2(c, OP_LOGICAL_AND, op2n(c, OP_GREATER_EQUAL, at, 0),
                        op2n(c, OP_LESS, at, (double)n[axis]));
    NodeId inside = where(c, is_new, at, constant(c, 0, at));
    NodeId places = flat_places(c, &shape, &part, axis, inside);
    NodeId found = build_gather(c->im->b, flat(c, update), places, 0);
    return output(c, 0, where(c, is_new, found, cache));
}

/* Sorts. */

/* The elements of the last axis that `index`, i32, names. x: [r.., n], index: [r.., k] */
static NodeId take_last(Call *c, NodeId x, NodeId index) {
    Builder *b = c->im->b;
    Shape shape = *shape_of(c, index), rows = shape;
    uint32_t last = shape.rank - 1;
    DimId n = shape_of(c, x)->dims[last], n_rows = number(c, 1);
    for (uint32_t k = 0; k < last; k++) n_rows = dim_mul(b->dims, n_rows, shape.dims[k]);
    rows.dims[last] = number(c, 1);
    NodeId row = reshape_to(c, build_iota(b, (DimList){1, &n_rows}, 0, DT_I64), &rows);
    NodeId place = op2(c, OP_MUL, row, number_node(c, n, DT_I64));
    return build_gather(b, flat(c, x), op2(c, OP_ADD, cast_to(c, index, DT_I64), place), 0);
}

bool onnx_top_k(Call *c) {
    DimTab *dims = c->im->b->dims;
    NodeId x = input(c, 0);
    IntList list;
    uint32_t axis;
    Dtype long_dtype;
    if (x == NODE_NONE || !list_argument(c, NULL, 1, &list)) return false;
    if (has_input(c, 1) && list.n != 1)
        return onnx_fail(c, DIAG_WRONG_COUNT, "k has %u numbers", list.n);
    DimId k = list.is_given ? list.dims[0] : number(c, attr_int(c, "k", 0));
    uint32_t rank = shape_of(c, x)->rank;
    if (!axis_of(c, attr_int(c, "axis", -1), rank, &axis) || !elem_dtype(ELEM_INT64, &long_dtype))
        return false;
    DimId extent = shape_of(c, x)->dims[axis];
    if (!onnx_need_least(c, k, 0) || !onnx_need_least(c, dim_sub(dims, extent, k), 0)) return false;
    if (k == DIM_NONE || dim_lo(dims, k) < 0 || !dim_prove_le(dims, k, extent))
        return onnx_fail(c, DIAG_BAD_ARGUMENT, "k is %s, but axis %u has an extent of %s",
                         k ? dim_str(dims, c->im->arena, k) : "", axis,
                         dim_str(dims, c->im->arena, extent));
    x = move_axis(c, x, axis, rank - 1);
    bool is_largest = attr_int(c, "largest", 1) != 0;
    NodeId index = build_scan(c->im->b, is_largest ? OP_ARGSORT_DESCENDING : OP_ARGSORT, x, -1);
    index = part_of(c, index, rank - 1, number(c, 0), k);
    NodeId value = take_last(c, x, index);
    index = cast_to(c, index, long_dtype);
    if (has_output(c, 1)) output(c, 1, move_axis(c, index, rank - 1, axis));
    return output(c, 0, move_axis(c, value, rank - 1, axis));
}

/* Sequences of different lengths, each turned round. */
bool onnx_reverse_sequence(Call *c) {
    NodeId x = input(c, 0), lengths = cast_to(c, input(c, 1), DT_I32);
    int64_t batch = attr_int(c, "batch_axis", 1), time = attr_int(c, "time_axis", 0);
    if (lengths == NODE_NONE || x == NODE_NONE) return false;
    Shape shape = *shape_of(c, x), row = {.rank = shape.rank};
    if (shape.rank < 2 || batch + time != 1 || batch < 0 || batch > 1)
        return onnx_fail(c, DIAG_BAD_AXIS, "its axes must be 0 and 1");
    for (uint32_t k = 0; k < row.rank; k++) row.dims[k] = number(c, k == batch ? -1 : 1);
    NodeId at = index_along(c, &shape, (uint32_t)time);
    lengths = reshape_to(c, lengths, &row);
    NodeId mirrored = op2n(c, OP_SUB, op2(c, OP_SUB, lengths, at), 1);
    at = where(c, op2(c, OP_LESS, at, lengths), mirrored, at);
    NodeId places = flat_places(c, &shape, &shape, (uint32_t)time, at);
    return output(c, 0, build_gather(c->im->b, flat(c, x), places, 0));
}

/* Slices of `axis`, or elements, where a condition holds that is known. */
bool onnx_compress(Call *c) {
    NodeId x = input(c, 0);
    const Known *condition = input_known(c, 1);
    uint32_t axis = 0;
    int64_t holds;
    if (x == NODE_NONE) return false;
    if (!condition || !condition->ints) return fail_unknown(c, 1);
    if (!find_attr(c, "axis"))
        x = flat(c, x);
    else if (!axis_of(c, attr_int(c, "axis", 0), shape_of(c, x)->rank, &axis))
        return false;
    Known *kept = known_new(c->im, ELEM_INT32, 1, &(int64_t){condition->n});
    kept->n = 0;
    for (uint32_t i = 0; i < condition->n; i++) {
        if (!known_int(c->im, condition, i, &holds)) return fail_unknown(c, 1);
        if (holds) kept->ints[kept->n++] = number(c, i);
    }
    kept->dims[0] = kept->n;
    Value made = {.name = "", .node = NODE_NONE, .known = kept};
    return output(c, 0, build_gather(c->im->b, x, value_node(c, &made), axis));
}

/* The places of elements other than 0, as columns. */
bool onnx_fold_nonzero(Call *c) {
    const Known *x = input_known(c, 0);
    int64_t value = 0, dims[2] = {0, 0};
    if (!x) return false;
    uint32_t *hits = arena_array(c->im->arena, uint32_t, x->n + 1), n = 0;
    for (uint32_t i = 0; i < x->n; i++) {
        if (x->ints && !known_int(c->im, x, i, &value)) return false;
        if (x->floats ? x->floats[i] != 0 : value != 0) hits[n++] = i;
    }
    dims[0] = x->rank;
    dims[1] = n;
    Known *places = known_new(c->im, ELEM_INT64, 2, dims);
    for (uint32_t i = 0; places && i < n; i++)
        for (uint32_t k = x->rank, rest = hits[i]; k-- > 0;) {
            places->ints[k * n + i] = number(c, rest % x->dims[k]);
            rest = (uint32_t)(rest / x->dims[k]);
        }
    return output_known(c, 0, places);
}

bool onnx_unknown_shape(Call *c) {
    return fail_unknown(c, 0);
}
