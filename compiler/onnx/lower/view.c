/* Ops that move elements: shapes, slices, pads, gathers. */
#include "onnx/call/import_state.h"

#include <math.h>

bool onnx_constant(Call *c) {
    const OnnxAttr *attr = typed_attr(c, "value", ATTR_TENSOR);
    if (!attr || !attr->tensor)
        return onnx_fail(c, DIAG_UNSUPPORTED_DTYPE, "it has no value that is a tensor of numbers");
    onnx_scope_add(c->im, c->scope, c->node->outputs.n ? c->node->outputs.data[0] : "")->tensor =
        attr->tensor;
    return true;
}

/* A shape that an input gives. */
static bool shape_argument(Call *c, uint32_t i, IntList *list) {
    if (!list_argument(c, "shape", i, list)) return false;
    if (list->n <= MAX_RANK) return true;
    return onnx_fail(c, DIAG_LIMIT, "its result has more than 16 axes");
}

bool onnx_constant_of_shape(Call *c) {
    const OnnxAttr *attr = typed_attr(c, "value", ATTR_TENSOR);
    IntList list;
    OnnxTensor zero = {.type = ELEM_FLOAT, .n_elems = 1};
    vec_push(c->im->arena, &zero.floats, 0);
    if (!shape_argument(c, 0, &list)) return false;
    Value made = {.name = "", .node = NODE_NONE, .tensor = &zero};
    if (attr && attr->tensor) made.tensor = attr->tensor;
    NodeId value = value_node(c, &made);
    value = build_reshape(c->im->b, value, (DimList){0, NULL});
    return output(c, 0, build_expand(c->im->b, value, (DimList){list.n, list.dims}));
}

/* A bound of Range that is a whole number, or follows from dims. */
static bool whole_bound(Call *c, uint32_t i, DimId *bound) {
    const Value *value = input_value(c, i);
    const Known *known = input_known(c, i);
    if (!known && value && value->below <= 1) known = onnx_whole_known(c, i);
    if (!known || known->n != 1) return false;
    if (known->ints) {
        *bound = known->ints[0];
        return true;
    }
    double whole = known->floats[0];
    *bound = fabs(whole) < INT32_MAX ? number(c, (int64_t)whole) : DIM_NONE;
    return *bound != DIM_NONE && whole == floor(whole);
}

/* The number of elements of Range: ceil((limit - start) / step). */
static bool n_of_range(Call *c, DimId *n) {
    DimTab *dims = c->im->b->dims;
    DimId from, to, by;
    int64_t step;
    if (whole_bound(c, 0, &from) && whole_bound(c, 1, &to) && whole_bound(c, 2, &by)) {
        if (!dim_is_const(dims, by, &step) || step == 0)
            return onnx_fail(c, DIAG_NO_LOWERING, "its step must be a constant other than 0");
        DimId span = step < 0 ? dim_sub(dims, from, to) : dim_sub(dims, to, from);
        if (span != DIM_NONE && dim_hi(dims, span) < 0) span = number(c, 0);
        *n = dim_ceil_div(dims, span, step < 0 ? -step : step);
        return true;
    }
    double numbers[3];
    for (uint32_t i = 0; i < 3; i++) {
        const Known *known = input_known(c, i);
        if (!known || known->n != 1) return fail_unknown(c, i);
        numbers[i] = known->floats ? known->floats[0] : NAN;
    }
    double count = ceil((numbers[1] - numbers[0]) / numbers[2]);
    if (!(count < INT32_MAX)) return onnx_fail(c, DIAG_LIMIT, "it has no number of elements");
    *n = number(c, count < 0 ? 0 : (int64_t)count);
    return true;
}

/* start + index * step */
bool onnx_range(Call *c) {
    DimId n;
    NodeId first = input(c, 0), delta = input(c, 2);
    if (!n_of_range(c, &n) || !onnx_need_least(c, n, 0)) return false;
    NodeId index = build_iota(c->im->b, (DimList){1, &n}, 0, DT_I32);
    if (first == NODE_NONE || delta == NODE_NONE || index == NODE_NONE) return false;
    index = op2(c, OP_MUL, cast_to(c, index, dtype_of(c, first)), delta);
    return output(c, 0, op2(c, OP_ADD, first, index));
}

/* Reshapes. */

bool onnx_reshape(Call *c) {
    NodeId x = input(c, 0);
    IntList list;
    if (x == NODE_NONE || !shape_argument(c, 1, &list)) return false;
    DimId dims[MAX_RANK];
    for (uint32_t k = 0; k < list.n; k++) {
        bool keeps =
            dim_equals_const(c->im->b->dims, list.dims[k], 0) && !attr_int(c, "allowzero", 0);
        if (keeps && k >= shape_of(c, x)->rank)
            return onnx_fail(c, DIAG_BAD_RESHAPE, "extent 0 of axis %u has no axis to copy", k);
        dims[k] = keeps ? shape_of(c, x)->dims[k] : list.dims[k];
    }
    return output(c, 0, build_reshape(c->im->b, x, (DimList){list.n, dims}));
}

/* x as a matrix: the axes before `axis`, and the others. */
static NodeId flatten(Call *c, NodeId x, int64_t axis) {
    if (x == NODE_NONE) return x;
    Shape from = *shape_of(c, x), to = {.rank = 2, .dims = {number(c, 1), number(c, 1)}};
    if (axis < 0) axis += from.rank;
    if (axis < 0 || axis > from.rank) {
        onnx_fail(c, DIAG_BAD_AXIS, "there is no axis %lld of %u", (long long)axis, from.rank);
        return NODE_NONE;
    }
    for (uint32_t k = 0; k < from.rank; k++)
        to.dims[k >= axis] = dim_mul(c->im->b->dims, to.dims[k >= axis], from.dims[k]);
    return reshape_to(c, x, &to);
}

bool onnx_flatten(Call *c) {
    return output(c, 0, flatten(c, input(c, 0), attr_int(c, "axis", 1)));
}

bool onnx_squeeze(Call *c) {
    NodeId x = input(c, 0);
    uint32_t axes;
    bool is_given;
    if (x == NODE_NONE) return false;
    Shape from = *shape_of(c, x), to = {0};
    if (!axes_argument(c, "axes", 1, from.rank, &axes, &is_given)) return false;
    for (uint32_t k = 0; k < from.rank; k++) {
        bool is_one = dim_equals_const(c->im->b->dims, from.dims[k], 1);
        if (is_given && (axes >> k & 1) && !is_one)
            return onnx_fail(c, DIAG_SHAPE_MISMATCH, "axis %u has an extent of %s, not 1", k,
                             dim_str(c->im->b->dims, c->im->arena, from.dims[k]));
        if (is_given ? !(axes >> k & 1) : !is_one) to.dims[to.rank++] = from.dims[k];
    }
    return output(c, 0, reshape_to(c, x, &to));
}

bool onnx_unsqueeze(Call *c) {
    NodeId x = input(c, 0);
    IntList list;
    uint32_t axes;
    bool is_given;
    if (x == NODE_NONE || !list_argument(c, "axes", 1, &list)) return false;
    Shape from = *shape_of(c, x), to = {.rank = from.rank + list.n};
    if (list.n > MAX_RANK || to.rank > MAX_RANK)
        return onnx_fail(c, DIAG_LIMIT, "its result has more than 16 axes");
    if (!axes_argument(c, "axes", 1, to.rank, &axes, &is_given)) return false;
    for (uint32_t k = 0, next = 0; k < to.rank; k++)
        to.dims[k] = axes >> k & 1 || next == from.rank ? number(c, 1) : from.dims[next++];
    return output(c, 0, reshape_to(c, x, &to));
}

bool onnx_transpose(Call *c) {
    NodeId x = input(c, 0);
    const VecInt *perm;
    if (x == NODE_NONE) return false;
    bool has_perm = attr_ints(c, "perm", &perm);
    uint32_t rank = shape_of(c, x)->rank;
    return output(
        c, 0,
        build_transpose(c->im->b, x, has_perm ? perm->n : rank, has_perm ? perm->data : NULL));
}

bool onnx_expand(Call *c) {
    NodeId x = input(c, 0);
    IntList list;
    if (x == NODE_NONE || !shape_argument(c, 1, &list)) return false;
    Shape to = {.rank = list.n};
    for (uint32_t k = 0; k < list.n; k++) to.dims[k] = list.dims[k];
    if (!shape_broadcast(c->im->b->dims, &to, shape_of(c, x)))
        return onnx_fail(c, DIAG_SHAPE_MISMATCH, "%s does not broadcast to %s",
                         shape_str(c->im->b->dims, c->im->arena, shape_of(c, x)),
                         shape_str(c->im->b->dims, c->im->arena, &to));
    return output(c, 0, build_expand(c->im->b, x, (DimList){to.rank, to.dims}));
}

/* Each axis is repeated by an axis of its own in front of it. */
bool onnx_tile(Call *c) {
    NodeId x = input(c, 0);
    IntList list;
    if (x == NODE_NONE || !list_argument(c, NULL, 1, &list)) return false;
    Shape from = *shape_of(c, x);
    if (list.n != from.rank)
        return onnx_fail(c, DIAG_WRONG_COUNT, "%u repeats for %u axes", list.n, from.rank);
    for (uint32_t k = 0; k < from.rank && x != NODE_NONE; k++) {
        Shape now = *shape_of(c, x), wide = {.rank = 3}, to = now;
        if (dim_equals_const(c->im->b->dims, list.dims[k], 1)) continue;
        DimId before = number(c, 1), behind = before;
        for (uint32_t i = 0; i < now.rank; i++) {
            DimId *side = i < k ? &before : &behind;
            *side = dim_mul(c->im->b->dims, *side, now.dims[i]);
        }
        wide.dims[0] = before;
        wide.dims[1] = number(c, 1);
        wide.dims[2] = behind;
        x = reshape_to(c, x, &wide);
        wide.dims[1] = list.dims[k];
        x = build_expand(c->im->b, x, (DimList){3, wide.dims});
        to.dims[k] = dim_mul(c->im->b->dims, now.dims[k], list.dims[k]);
        x = reshape_to(c, x, &to);
    }
    return output(c, 0, x);
}

bool onnx_concat(Call *c) {
    uint32_t n = c->node->inputs.n;
    NodeId *parts = arena_array(c->im->arena, NodeId, n);
    for (uint32_t i = 0; i < n; i++) parts[i] = input(c, i);
    return output(c, 0, build_concat(c->im->b, n, parts, attr_int(c, "axis", 1)));
}

/* The sizes of parts that are all alike, but for the last: n * size may pass the extent. The rest
 * of two parts is half the extent, rounded down. */
static bool even_sizes(Call *c, DimId extent, uint32_t n, IntList *sizes) {
    DimTab *dims = c->im->b->dims;
    *sizes = (IntList){false, n, arena_array(c->im->arena, DimId, n + 1)};
    DimId size = dim_ceil_div(dims, extent, n ? n : 1), rest = extent;
    for (uint32_t i = 0; i < n; i++) {
        sizes->dims[i] = i + 1 == n ? rest : size;
        rest = dim_sub(dims, rest, size);
    }
    if (n == 2) sizes->dims[1] = dim_div(dims, extent, number(c, 2));
    if (!n || (sizes->dims[n - 1] && dim_lo(dims, sizes->dims[n - 1]) >= 0)) return true;
    return onnx_fail(c, DIAG_NO_LOWERING,
                     "an extent of %s has %u equal parts if it is known to be a multiple of it, as "
                     "a dim `%u*N` is",
                     dim_str(dims, c->im->arena, extent), n, n);
}

bool onnx_split(Call *c) {
    NodeId x = input(c, 0);
    IntList sizes;
    uint32_t axis, n = c->node->outputs.n;
    if (x == NODE_NONE || !axis_of(c, attr_int(c, "axis", 0), shape_of(c, x)->rank, &axis) ||
        !list_argument(c, "split", 1, &sizes))
        return false;
    DimId extent = shape_of(c, x)->dims[axis], begin = number(c, 0);
    int64_t n_said = attr_int(c, "num_outputs", n);
    if (n_said != n)
        return onnx_fail(c, DIAG_WRONG_COUNT, "num_outputs is %lld, but it has %u outputs",
                         (long long)n_said, n);
    if (sizes.is_given && sizes.n != n)
        return onnx_fail(c, DIAG_WRONG_COUNT, "%u sizes of %u outputs", sizes.n, n);
    NodeId *parts = arena_array(c->im->arena, NodeId, n + 1);
    if (sizes.is_given) {
        if (!build_split(c->im->b, x, (DimList){n, sizes.dims}, axis, parts)) return false;
    } else if (!even_sizes(c, extent, n, &sizes)) {
        return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (!sizes.is_given) parts[i] = part_of(c, x, axis, begin, sizes.dims[i]);
        output(c, i, parts[i]);
        begin = dim_add(c->im->b->dims, begin, sizes.dims[i]);
    }
    return true;
}

bool onnx_slice(Call *c) {
    NodeId x = input(c, 0);
    SliceRange ranges[MAX_RANK];
    uint32_t n;
    if (x == NODE_NONE || !slice_ranges(c, shape_of(c, x), ranges, &n)) return false;
    Shape to = *shape_of(c, x);
    DimId begin[MAX_RANK], step[MAX_RANK];
    for (uint32_t k = 0; k < to.rank; k++) begin[k] = number(c, 0), step[k] = number(c, 1);
    for (uint32_t i = 0; i < n; i++) {
        begin[ranges[i].axis] = ranges[i].begin;
        to.dims[ranges[i].axis] = ranges[i].extent;
        step[ranges[i].axis] = number(c, ranges[i].step);
    }
    return output(c, 0,
                  build_slice(c->im->b, x, (DimList){to.rank, begin}, (DimList){to.rank, to.dims},
                              (DimList){to.rank, step}));
}

/* Pads. */

static bool pad_amounts(Call *c, uint32_t rank, DimId *low, DimId *high) {
    IntList pads;
    uint32_t n = rank;
    bool has_axes = false;
    int64_t order[MAX_RANK];
    IntList list = {0};
    if (!list_argument(c, find_attr(c, "pads") ? "pads" : "paddings", 1, &pads)) return false;
    if (has_input(c, 3)) {
        if (!list_argument(c, NULL, 3, &list) || !constant_list(c, &list, "axes", order, MAX_RANK))
            return false;
        has_axes = true;
        n = list.n;
    }
    if (pads.n != 2 * n) return onnx_fail(c, DIAG_WRONG_COUNT, "%u pads of %u axes", pads.n, n);
    for (uint32_t k = 0; k < rank; k++) low[k] = high[k] = number(c, 0);
    for (uint32_t k = 0; k < n; k++) {
        uint32_t axis = k;
        if (has_axes && !axis_of(c, order[k], rank, &axis)) return false;
        low[axis] = pads.dims[k];
        high[axis] = pads.dims[n + k];
    }
    return true;
}

/* Negative amounts cut elements off. */
static NodeId cut_negative(Call *c, NodeId x, DimId *low, DimId *high) {
    DimTab *dims = c->im->b->dims;
    Shape to = *shape_of(c, x);
    DimId begin[MAX_RANK];
    for (uint32_t k = 0; k < to.rank; k++) {
        DimId *ends[2] = {&low[k], &high[k]};
        begin[k] = number(c, 0);
        for (int side = 0; side < 2; side++) {
            int64_t amount;
            if (!dim_is_const(dims, *ends[side], &amount) || amount >= 0) continue;
            to.dims[k] = dim_add(dims, to.dims[k], *ends[side]);
            if (side == 0) begin[k] = number(c, -amount);
            *ends[side] = number(c, 0);
        }
    }
    return build_slice(c->im->b, x, (DimList){to.rank, begin}, (DimList){to.rank, to.dims},
                       (DimList){0, NULL});
}

static bool border_of(Call *c, Border *border) {
    static const char *const modes[BORDER_COUNT] = {[BORDER_CONSTANT] = "constant",
                                                    [BORDER_REFLECT] = "reflect",
                                                    [BORDER_REPLICATE] = "edge",
                                                    [BORDER_CIRCULAR] = "wrap"};
    Str mode = attr_string(c, "mode", "constant");
    for (int i = 0; i < BORDER_COUNT; i++)
        if (strcmp(mode, modes[i]) == 0) {
            *border = (Border)i;
            return true;
        }
    return onnx_fail(c, DIAG_NO_LOWERING, "mode `%s` is not supported", mode);
}

/* Amounts that follow from dims are at least 0, and no larger than the border allows. */
static bool narrow_pads(Call *c, NodeId x, Border border, const DimId *low, const DimId *high) {
    DimTab *dims = c->im->b->dims;
    for (uint32_t k = 0; x != NODE_NONE && k < shape_of(c, x)->rank; k++) {
        const DimId ends[2] = {low[k], high[k]};
        for (int side = 0; side < 2; side++) {
            DimId rest = dim_sub(dims, shape_of(c, x)->dims[k], ends[side]);
            if (!onnx_need_least(c, ends[side], 0)) return false;
            if (border == BORDER_REFLECT && !onnx_need_least(c, rest, 1)) return false;
            if (border == BORDER_CIRCULAR && !onnx_need_least(c, rest, 0)) return false;
        }
    }
    return true;
}

bool onnx_pad(Call *c) {
    NodeId x = input(c, 0);
    DimId low[MAX_RANK], high[MAX_RANK];
    Border border = BORDER_CONSTANT;
    if (x == NODE_NONE || !border_of(c, &border)) return false;
    uint32_t rank = shape_of(c, x)->rank;
    if (!pad_amounts(c, rank, low, high)) return false;
    x = cut_negative(c, x, low, high);
    if (!narrow_pads(c, x, border, low, high)) return false;
    DimList lows = {rank, low}, highs = {rank, high};
    if (border != BORDER_CONSTANT)
        return output(c, 0, build_pad_border(c->im->b, x, lows, highs, border));
    const Known *known = input_known(c, 2);
    if (has_input(c, 2) && (!known || known->n != 1)) return fail_unknown(c, 2);
    Operand value =
        operand_float(known && known->floats ? known->floats[0] : attr_float(c, "value", 0));
    if (x != NODE_NONE && !dtype_is_float(dtype_of(c, x)))
        value = operand_int(known && known->ints ? known->ints[0] : number(c, 0));
    if (x != NODE_NONE && dtype_is_bool(dtype_of(c, x)))
        value = operand_bool(known && known->ints && known->ints[0] != number(c, 0));
    return output(c, 0, build_pad(c->im->b, x, lows, highs, &value));
}

/* Gathers. */

/* Indices as i32, negative ones counted from the end. */
static NodeId indices_of(Call *c, uint32_t i, DimId extent) {
    NodeId indices = NODE_NONE;
    const Known *known = input_known(c, i);
    int64_t n, value;
    if (known && known->ints) {
        Known *plain = known_new(c->im, ELEM_INT32, known->rank, known->dims);
        for (uint32_t k = 0; k < known->n; k++) {
            bool is_const = known_int(c->im, known, k, &value);
            plain->ints[k] = is_const && value < 0 ? dim_add(c->im->b->dims, extent, known->ints[k])
                                                   : known->ints[k];
        }
        Value made = {.name = "", .node = NODE_NONE, .known = plain};
        return value_node(c, &made);
    }
    indices = input(c, i);
    if (indices == NODE_NONE) return indices;
    indices = cast_to(c, indices, DT_I32);
    if (!dim_is_const(c->im->b->dims, extent, &n)) return indices;
    NodeId wrapped = op2n(c, OP_ADD, indices, (double)n);
    return op3(c, OP_WHERE, op2n(c, OP_LESS, indices, 0), wrapped, indices);
}

bool onnx_gather(Call *c) {
    NodeId x = input(c, 0);
    uint32_t axis;
    if (x == NODE_NONE || !axis_of(c, attr_int(c, "axis", 0), shape_of(c, x)->rank, &axis))
        return false;
    NodeId indices = indices_of(c, 1, shape_of(c, x)->dims[axis]);
    return output(c, 0, build_gather(c->im->b, x, indices, axis));
}

/* Blocks of channels. x: [n, c, h, w] */
static bool block_of(Call *c, NodeId x, DimId *block, Shape *from) {
    if (x == NODE_NONE) return false;
    *from = *shape_of(c, x);
    int64_t size = attr_int(c, "blocksize", 0);
    if (from->rank != 4 || size < 1)
        return onnx_fail(c, DIAG_BAD_ARGUMENT, "it needs a tensor of 4 axes and a blocksize");
    *block = number(c, size);
    return true;
}

bool onnx_depth_to_space(Call *c) {
    static const int64_t dcr[] = {0, 3, 4, 1, 5, 2}, crd[] = {0, 1, 4, 2, 5, 3};
    NodeId x = input(c, 0);
    DimId b, *d;
    Shape from;
    if (!block_of(c, x, &b, &from)) return false;
    DimTab *dims = c->im->b->dims;
    bool is_crd = strcmp(attr_string(c, "mode", "DCR"), "CRD") == 0;
    DimId few = dim_exact_div(dims, from.dims[1], dim_mul(dims, b, b));
    d = from.dims;
    Shape cut = {6, {d[0], is_crd ? few : b, b, is_crd ? b : few, d[2], d[3]}};
    Shape to = {4, {d[0], few, dim_mul(dims, d[2], b), dim_mul(dims, d[3], b)}};
    x = build_transpose(c->im->b, reshape_to(c, x, &cut), 6, is_crd ? crd : dcr);
    return output(c, 0, reshape_to(c, x, &to));
}

bool onnx_space_to_depth(Call *c) {
    static const int64_t dcr[] = {0, 3, 5, 1, 2, 4}, crd[] = {0, 1, 3, 5, 2, 4};
    bool is_crd = strcmp(attr_string(c, "mode", "DCR"), "CRD") == 0;
    NodeId x = input(c, 0);
    DimId b, *d;
    Shape from;
    if (!block_of(c, x, &b, &from)) return false;
    DimTab *dims = c->im->b->dims;
    d = from.dims;
    DimId h = dim_exact_div(dims, d[2], b), w = dim_exact_div(dims, d[3], b);
    Shape cut = {6, {d[0], d[1], h, b, w, b}};
    Shape to = {4, {d[0], dim_mul(dims, d[1], dim_mul(dims, b, b)), h, w}};
    x = build_transpose(c->im->b, reshape_to(c, x, &cut), 6, is_crd ? crd : dcr);
    return output(c, 0, reshape_to(c, x, &to));
}

/* Indices compared: triangles, diagonals, one-hot rows. */

/* row index + k - column index, of the last two axes. */
static NodeId diagonal(Call *c, const Shape *shape, int64_t k) {
    DimList list = {shape->rank, shape->dims};
    if (shape->rank < 2) {
        onnx_fail(c, DIAG_SHAPE_MISMATCH, "it needs a tensor of at least 2 axes");
        return NODE_NONE;
    }
    NodeId row = build_iota(c->im->b, list, shape->rank - 2, DT_I32);
    NodeId column = build_iota(c->im->b, list, shape->rank - 1, DT_I32);
    return op2(c, OP_SUB, op2n(c, OP_ADD, row, (double)k), column);
}

bool onnx_trilu(Call *c) {
    NodeId x = input(c, 0);
    int64_t k = 0;
    if (x == NODE_NONE || !int_argument(c, 1, 0, &k)) return false;
    if (k > INT32_MAX) k = INT32_MAX / 2;
    if (k < -INT32_MAX) k = -INT32_MAX / 2;
    Shape shape = *shape_of(c, x);
    NodeId d = diagonal(c, &shape, k);
    NodeId kept = op2n(c, attr_int(c, "upper", 1) ? OP_LESS_EQUAL : OP_GREATER_EQUAL, d, 0);
    return output(c, 0, op3(c, OP_WHERE, kept, x, constant(c, 0, x)));
}

bool onnx_eye_like(Call *c) {
    Shape shape;
    int64_t type;
    Dtype dtype;
    Value *value = input_value(c, 0);
    if (!value_shape(c->im, value, &shape) || !value_type(c->im, value, &type)) return false;
    if (!elem_dtype(attr_int(c, "dtype", type), &dtype))
        return onnx_fail(c, DIAG_UNSUPPORTED_DTYPE, "the language has no such dtype");
    NodeId d = diagonal(c, &shape, attr_int(c, "k", 0));
    return output(c, 0, cast_to(c, op2n(c, OP_EQUAL, d, 0), dtype));
}

/* indices: [i..], values: [2] -> [i.., depth, ..], at `axis` */
bool onnx_one_hot(Call *c) {
    const Known *depth = input_known(c, 1);
    NodeId values = input(c, 2), x = NODE_NONE;
    uint32_t axis;
    if (!depth || depth->n != 1 ||
        (!depth->ints && !(depth->floats[0] >= 0 && depth->floats[0] <= INT32_MAX)))
        return fail_unknown(c, 1);
    DimId n = depth->ints ? depth->ints[0] : number(c, (int64_t)depth->floats[0]);
    x = indices_of(c, 0, n);
    if (x == NODE_NONE || values == NODE_NONE) return false;
    Shape from = *shape_of(c, x), to = {.rank = from.rank + 1}, one;
    if (to.rank > MAX_RANK) return onnx_fail(c, DIAG_LIMIT, "its result has more than 16 axes");
    if (!axis_of(c, attr_int(c, "axis", -1), to.rank, &axis)) return false;
    for (uint32_t k = 0; k < to.rank; k++) to.dims[k] = k == axis ? n : from.dims[k - (k > axis)];
    one = to;
    one.dims[axis] = number(c, 1);
    NodeId index = build_iota(c->im->b, (DimList){to.rank, to.dims}, axis, DT_I32);
    NodeId is_on = op2(c, OP_EQUAL, index, reshape_to(c, x, &one));
    NodeId ends[2];
    DimId halves[2] = {number(c, 1), number(c, 1)};
    if (!build_split(c->im->b, values, (DimList){2, halves}, 0, ends)) return false;
    for (int i = 0; i < 2; i++) ends[i] = build_reshape(c->im->b, ends[i], (DimList){0, NULL});
    return output(c, 0, op3(c, OP_WHERE, is_on, ends[1], ends[0]));
}
