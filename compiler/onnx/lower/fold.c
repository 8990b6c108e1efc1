/* What is known while importing: shapes, and integers that are computed from them. A fold returns
 * false, without an error, where it cannot compute its outputs; the op is lowered then. */
#include "onnx/call/import_state.h"

bool onnx_fold_shape(Call *c) {
    Shape shape;
    uint32_t k;
    if (!value_shape(c->im, input_value(c, 0), &shape)) return false;
    int64_t rank = shape.rank, start = attr_int(c, "start", 0), end = attr_int(c, "end", rank);
    start = start < 0 ? start + rank : start;
    end = end < 0 ? end + rank : end;
    start = start < 0 ? 0 : start > rank ? rank : start;
    end = end < start ? start : end > rank ? rank : end;
    Known *known = known_list(c->im, (uint32_t)(end - start));
    for (k = 0; k < known->n; k++) known->ints[k] = shape.dims[start + k];
    return output_known(c, 0, known);
}

bool onnx_fold_size(Call *c) {
    Shape shape;
    if (!value_shape(c->im, input_value(c, 0), &shape)) return false;
    Known *known = known_new(c->im, ELEM_INT64, 0, NULL);
    known->ints[0] = shape_n_elems(c->im->b->dims, &shape);
    return known->ints[0] != DIM_NONE && output_known(c, 0, known);
}

bool onnx_fold_constant(Call *c) {
    Import *im = c->im;
    const OnnxAttr *attr;
    Known *known = NULL;
    if ((attr = typed_attr(c, "value_int", ATTR_INT)) != NULL) {
        known = known_new(im, ELEM_INT64, 0, NULL);
        known->ints[0] = number(c, attr->integer);
    } else if ((attr = typed_attr(c, "value_float", ATTR_FLOAT)) != NULL) {
        known = known_new(im, ELEM_FLOAT, 0, NULL);
        known->floats[0] = attr->number;
    } else if ((attr = typed_attr(c, "value_ints", ATTR_INTS)) != NULL) {
        known = known_list(im, attr->ints.n);
        for (uint32_t i = 0; known && i < attr->ints.n; i++)
            known->ints[i] = number(c, attr->ints.data[i]);
    } else if ((attr = typed_attr(c, "value_floats", ATTR_FLOATS)) != NULL) {
        int64_t n = attr->floats.n;
        known = known_new(im, ELEM_FLOAT, 1, &n);
        if (known && n) memcpy(known->floats, attr->floats.data, (size_t)n * sizeof(double));
    }
    return output_known(c, 0, known);
}

bool onnx_fold_constant_of_shape(Call *c) {
    const OnnxAttr *attr = typed_attr(c, "value", ATTR_TENSOR);
    const Known *shape = input_known(c, 0);
    const Known *value = attr && attr->tensor ? tensor_known(c->im, attr->tensor) : NULL;
    int64_t dims[MAX_RANK];
    if (!shape || !shape->ints || shape->n > MAX_RANK || (attr && (!value || value->n != 1)))
        return false;
    for (uint32_t k = 0; k < shape->n; k++)
        if (!known_int(c->im, shape, k, &dims[k])) return false;
    Known *known = known_new(c->im, value ? value->type : ELEM_FLOAT, shape->n, dims);
    for (uint32_t i = 0; known && i < known->n; i++) {
        if (known->ints) known->ints[i] = value->ints[0];
        if (known->floats) known->floats[i] = value ? value->floats[0] : 0;
    }
    return output_known(c, 0, known);
}

bool onnx_fold_range(Call *c) {
    const Known *from = input_known(c, 0), *to = input_known(c, 1), *by = input_known(c, 2);
    int64_t start, limit, step;
    if (!from || !to || !by || !known_int(c->im, from, 0, &start) ||
        !known_int(c->im, to, 0, &limit) || !known_int(c->im, by, 0, &step) || step == 0)
        return false;
    int64_t span = step > 0 ? limit - start : start - limit, by_abs = step > 0 ? step : -step;
    int64_t n = span > 0 ? (span - 1) / by_abs + 1 : 0;
    Known *known = known_new(c->im, from->type, 1, &n);
    for (uint32_t i = 0; known && i < known->n; i++) known->ints[i] = number(c, start + i * step);
    return output_known(c, 0, known);
}

/* Copies of elements. */

static void copy_elem(Known *to, uint32_t i, const Known *from, uint32_t k) {
    if (to->ints) to->ints[i] = from->ints[k];
    if (to->floats) to->floats[i] = from->floats[k];
}

/* All elements under other dims. */
static Known *renamed(Call *c, const Known *from, uint32_t rank, const int64_t *dims) {
    Known *to = known_new(c->im, from->type, rank, dims);
    if (!to || to->n != from->n) return NULL;
    for (uint32_t i = 0; i < to->n; i++) copy_elem(to, i, from, i);
    return to;
}

bool onnx_fold_identity(Call *c) {
    Value *value = input_value(c, 0);
    if (!has_output(c, 0)) return false;
    Value *made = onnx_scope_add(c->im, c->scope, c->node->outputs.data[0]);
    value_copy(made, value);
    return true;
}

/* Whether there is an input. */
bool onnx_fold_has_element(Call *c) {
    Known *known = known_new(c->im, ELEM_BOOL, 0, NULL);
    known->ints[0] = number(c, has_input(c, 0));
    return output_known(c, 0, known);
}

/* The extents that Reshape gives `from`; false: they are not known. */
static bool reshaped_extents(Call *c, const Known *from, uint32_t *rank, int64_t *dims) {
    const Known *shape = input_known(c, 1);
    int64_t n = 1, rest = -1;
    if (!shape || shape->n > MAX_RANK) return false;
    *rank = shape->n;
    for (uint32_t k = 0; k < shape->n; k++) {
        if (!known_int(c->im, shape, k, &dims[k])) return false;
        if (dims[k] == 0 && !attr_int(c, "allowzero", 0)) {
            if (k >= from->rank) return false;
            dims[k] = from->dims[k];
        }
        if (dims[k] < -1 || dims[k] > MAX_KNOWN) return false;
        if (dims[k] < 0 && rest >= 0) return false;
        if (dims[k] < 0)
            rest = k;
        else if ((n *= dims[k]) > MAX_KNOWN)
            return false;
    }
    if (rest >= 0 && n) dims[rest] = from->n / n;
    return rest < 0 || n > 0;
}

/* The same for Squeeze, or Unsqueeze. */
static bool squeezed_extents(Call *c, const Known *from, bool adds, uint32_t *rank, int64_t *dims) {
    IntList list;
    uint32_t axes, next = 0;
    bool is_given;
    if (has_input(c, 1) && !input_known(c, 1)) return false;
    if (!list_argument(c, "axes", 1, &list) || list.n + from->rank > MAX_RANK) return false;
    uint32_t whole = from->rank + (adds ? list.n : 0);
    if (!axes_argument(c, "axes", 1, whole, &axes, &is_given)) return false;
    *rank = 0;
    for (uint32_t k = 0; k < whole; k++) {
        bool is_in = axes >> k & 1;
        if (adds && (is_in || next == from->rank))
            dims[(*rank)++] = 1;
        else if (adds)
            dims[(*rank)++] = from->dims[next++];
        else if (is_given ? !is_in : from->dims[k] != 1)
            dims[(*rank)++] = from->dims[k];
    }
    return true;
}

/* Reshape, Squeeze and Unsqueeze. */
bool onnx_fold_reshape(Call *c) {
    const Known *known = input_known(c, 0);
    int64_t dims[MAX_RANK];
    uint32_t rank = 0;
    bool adds = strcmp(c->node->op, "Unsqueeze") == 0;
    if (!known) return false;
    bool is_found = strcmp(c->node->op, "Reshape") == 0
                        ? reshaped_extents(c, known, &rank, dims)
                        : squeezed_extents(c, known, adds, &rank, dims);
    return is_found && output_known(c, 0, renamed(c, known, rank, dims));
}

/* The elements from `begin` on, by a stride for each axis of `to`, in row-major order. */
static void copy_strided(Known *to, const Known *from, int64_t begin, const int64_t *strides) {
    int64_t at[MAX_RANK] = {0};
    for (uint32_t i = 0; i < to->n; i++) {
        int64_t place = begin;
        for (uint32_t k = 0; k < to->rank; k++) place += at[k] * strides[k];
        copy_elem(to, i, from, (uint32_t)place);
        for (uint32_t k = to->rank; k-- > 0 && ++at[k] == to->dims[k];) at[k] = 0;
    }
}

static void strides_of(const Known *known, int64_t *strides) {
    int64_t stride = 1;
    for (uint32_t k = known->rank; k-- > 0; stride *= known->dims[k]) strides[k] = stride;
}

bool onnx_fold_transpose(Call *c) {
    const Known *from = input_known(c, 0);
    int64_t dims[MAX_RANK], strides[MAX_RANK], from_strides[MAX_RANK];
    const VecInt *perm;
    if (!from || (attr_ints(c, "perm", &perm) && perm->n != from->rank)) return false;
    strides_of(from, from_strides);
    for (uint32_t k = 0, seen = 0; k < from->rank; k++) {
        uint32_t axis = from->rank - 1 - k;
        if (perm && !axis_of(c, perm->data[k], from->rank, &axis)) return false;
        if (seen >> axis & 1) return false;
        seen |= 1u << axis;
        dims[k] = from->dims[axis];
        strides[k] = from_strides[axis];
    }
    Known *to = known_new(c->im, from->type, from->rank, dims);
    if (!to || to->n != from->n) return false;
    copy_strided(to, from, 0, strides);
    return output_known(c, 0, to);
}

bool onnx_fold_gather(Call *c) {
    const Known *data = input_known(c, 0), *indices = input_known(c, 1);
    if (!data || !indices || !indices->ints || data->rank != 1 || attr_int(c, "axis", 0) > 0)
        return false;
    Known *known = known_new(c->im, data->type, indices->rank, indices->dims);
    for (uint32_t i = 0; known && i < known->n; i++) {
        int64_t at;
        if (!known_int(c->im, indices, i, &at)) return false;
        if (at < 0) at += data->n;
        if (at < 0 || at >= data->n)
            return onnx_fail(c, DIAG_SLICE_BOUNDS, "index %lld lies outside", (long long)at);
        copy_elem(known, i, data, (uint32_t)at);
    }
    return output_known(c, 0, known);
}

bool onnx_fold_concat(Call *c) {
    int64_t n = 0, type = ELEM_NONE;
    for (uint32_t i = 0; i < c->node->inputs.n; i++) {
        const Known *part = input_known(c, i);
        if (!part || part->rank != 1 || (i && part->type != type)) return false;
        type = part->type;
        n += part->n;
    }
    Known *known = known_new(c->im, type, 1, &n);
    for (uint32_t i = 0, at = 0; known && i < c->node->inputs.n; i++) {
        const Known *part = input_known(c, i);
        for (uint32_t k = 0; k < part->n; k++) copy_elem(known, at++, part, k);
    }
    return output_known(c, 0, known);
}

/* Slices. */

/* A bound clamped as the op says: into [0, extent], or for downward steps into [-1, extent - 1]. */
static DimId slice_bound(Call *c, DimId given, DimId extent, bool is_down) {
    DimTab *dims = c->im->b->dims;
    DimId least = number(c, is_down ? -1 : 0);
    DimId most = is_down ? dim_sub(dims, extent, number(c, 1)) : extent;
    if (dim_hi(dims, given) < 0) given = dim_add(dims, given, extent);
    if (given == DIM_NONE || dim_hi(dims, given) < 0) return least;
    if (dim_always_le(dims, most, given) || dim_lo(dims, given) > DIM_LIMIT / 4) return most;
    return given;
}

static bool slice_range(Call *c, const Shape *shape, SliceRange *range, DimId from, DimId to) {
    DimTab *dims = c->im->b->dims;
    DimId extent = shape->dims[range->axis];
    bool is_down = range->step < 0;
    int64_t least_step = INT32_MAX;
    if (range->step == 0) return onnx_fail(c, DIAG_BAD_ARGUMENT, "a step is 0");
    if (range->step > least_step) range->step = least_step;
    if (range->step < -least_step) range->step = -least_step;
    from = slice_bound(c, from, extent, is_down);
    to = slice_bound(c, to, extent, is_down);
    DimId span = is_down ? dim_sub(dims, from, to) : dim_sub(dims, to, from);
    DimId first = is_down ? to : from, last = is_down ? from : to;
    if (!onnx_need_least(c, first, is_down ? -1 : 0) || !onnx_need_least(c, span, 0) ||
        !onnx_need_least(c, dim_sub(dims, extent, last), is_down ? 1 : 0))
        return false;
    if (dim_hi(dims, span) <= 0) span = number(c, 0), from = number(c, 0);
    range->begin = from;
    range->extent = dim_ceil_div(dims, span, is_down ? -range->step : range->step);
    return true;
}

bool slice_ranges(Call *c, const Shape *shape, SliceRange *ranges, uint32_t *n) {
    IntList starts, ends, axes, steps;
    int64_t axis[MAX_RANK], step[MAX_RANK];
    if (!list_argument(c, "starts", 1, &starts) || !list_argument(c, "ends", 2, &ends) ||
        !list_argument(c, "axes", 3, &axes) || !list_argument(c, NULL, 4, &steps) ||
        !constant_list(c, &axes, "axes", axis, MAX_RANK) ||
        !constant_list(c, &steps, "steps", step, MAX_RANK))
        return false;
    *n = starts.n;
    if (ends.n != *n || (axes.is_given && axes.n != *n) || (steps.is_given && steps.n != *n) ||
        *n > shape->rank)
        return onnx_fail(c, DIAG_WRONG_COUNT, "starts, ends, axes and steps differ in length");
    for (uint32_t i = 0; i < *n; i++) {
        ranges[i].step = steps.is_given ? step[i] : 1;
        if (!axis_of(c, axes.is_given ? axis[i] : i, shape->rank, &ranges[i].axis) ||
            !slice_range(c, shape, &ranges[i], starts.dims[i], ends.dims[i]))
            return false;
    }
    return true;
}

bool onnx_fold_slice(Call *c) {
    const Known *data = input_known(c, 0);
    Shape shape;
    SliceRange ranges[MAX_RANK];
    uint32_t n;
    int64_t begin, first = 0, dims[MAX_RANK], strides[MAX_RANK];
    if (!data || !value_shape(c->im, input_value(c, 0), &shape)) return false;
    for (uint32_t i = 1; i < c->node->inputs.n; i++)
        if (has_input(c, i) && !input_known(c, i)) return false;
    if (!slice_ranges(c, &shape, ranges, &n)) return false;
    strides_of(data, strides);
    if (data->rank) memcpy(dims, data->dims, data->rank * sizeof *dims);
    for (uint32_t i = 0, seen = 0; i < n; i++) {
        uint32_t axis = ranges[i].axis;
        if ((seen >> axis & 1) || !dim_is_const(c->im->b->dims, ranges[i].begin, &begin) ||
            !dim_is_const(c->im->b->dims, ranges[i].extent, &dims[axis]))
            return false;
        seen |= 1u << axis;
        first += begin * strides[axis];
        strides[axis] *= ranges[i].step;
    }
    Known *known = known_new(c->im, data->type, data->rank, dims);
    if (known) copy_strided(known, data, first, strides);
    return output_known(c, 0, known);
}

/* Arithmetic. */

bool onnx_fold_cast(Call *c) {
    const Known *from = input_known(c, 0);
    int64_t to = attr_int(c, "to", ELEM_NONE), value;
    Value *like = input_value(c, 1);
    Dtype dtype;
    if (like && !value_type(c->im, like, &to)) return false;
    if (!from && elem_info(to)->kind == ELEM_IS_INT) from = onnx_whole_known(c, 0);
    if (!from) return false;
    bool has_dtype = elem_dtype(to, &dtype);
    Known *known = known_new(c->im, to, from->rank, from->dims);
    for (uint32_t i = 0; known && i < known->n; i++) {
        bool is_const = from->floats || known_int(c->im, from, i, &value);
        if (from->ints && known->ints && elem_info(to)->kind == ELEM_IS_INT &&
            elem_info(to)->n_bytes >= 4) {
            known->ints[i] = from->ints[i];
            continue;
        }
        if (!is_const || !has_dtype) return false;
        double given = from->floats ? from->floats[i] : (double)value;
        given = dtype_round(dtype, given);
        if (known->floats)
            known->floats[i] = given;
        else
            known->ints[i] = number(c, (int64_t)given);
    }
    return output_known(c, 0, known);
}

/* Whether a < b for all dims, or for none; false: neither is known. */
static bool is_below_always(Call *c, DimId a, DimId b, bool *is_below) {
    DimTab *dims = c->im->b->dims;
    DimId behind = dim_add(dims, a, number(c, 1));
    *is_below = behind != DIM_NONE && dim_prove_le(dims, behind, b);
    return *is_below || dim_prove_le(dims, b, a);
}

/* The smaller or larger one, if it is the same for all dims. Else a number is decided to be the
 * smaller one where a shape needs the result. */
static bool extreme(Call *c, bool is_max, DimId a, DimId b, DimId *result) {
    DimTab *dims = c->im->b->dims;
    int64_t value;
    bool is_le = dim_prove_le(dims, a, b);
    *result = is_le == is_max ? b : a;
    if (is_le || dim_prove_le(dims, b, a)) return true;
    c->undecided = dim_is_const(dims, a, &value) ? dim_sub(dims, b, a) : dim_sub(dims, a, b);
    return false;
}

/* a - floor(a / b) * b, for a and b of one sign each. Of a number by a dim, which is undecided up
 * to the number, no more than the number where a shape needs it. */
static DimId rest_of(Call *c, DimId a, DimId b) {
    DimTab *dims = c->im->b->dims;
    int64_t number_a;
    if (dim_lo(dims, b) < 1) return DIM_NONE;
    if (dim_is_const(dims, a, &number_a)) {
        int64_t least_b = number_a < 0 ? -number_a : number_a + 1;
        if (dim_lo(dims, b) >= least_b) return number_a < 0 ? dim_add(dims, a, b) : a;
        c->undecided = dim_sub(dims, b, number(c, least_b));
        return DIM_NONE;
    }
    DimId positive = dim_hi(dims, a) <= 0 ? dim_sub(dims, number(c, 0), a) : a;
    if (dim_lo(dims, positive) < 0) return DIM_NONE;
    if (positive == a) return dim_sub(dims, a, dim_mul(dims, b, dim_div(dims, a, b)));
    DimId up = dim_div(dims, dim_add(dims, positive, dim_sub(dims, b, number(c, 1))), b);
    return dim_sub(dims, dim_mul(dims, b, up), positive);
}

static bool symbolic(Call *c, OpId op, DimId a, DimId b, DimId *result) {
    DimTab *dims = c->im->b->dims;
    bool is_below = false, is_after = op == OP_GREATER || op == OP_LESS_EQUAL,
         is_not = op == OP_LESS_EQUAL || op == OP_GREATER_EQUAL;
    switch (op) {
    case OP_ADD:
        *result = dim_add(dims, a, b);
        break;
    case OP_SUB:
        *result = dim_sub(dims, a, b);
        break;
    case OP_MUL:
        *result = dim_mul(dims, a, b);
        break;
    case OP_DIV: /* truncating, as the dims' floor where nothing is negative */
        *result = dim_lo(dims, a) >= 0 && dim_lo(dims, b) > 0 ? dim_div(dims, a, b) : DIM_NONE;
        break;
    case OP_REM:
        *result = rest_of(c, a, b);
        break;
    case OP_MINIMUM:
    case OP_MAXIMUM:
        return extreme(c, op == OP_MAXIMUM, a, b, result);
    case OP_LESS:
    case OP_GREATER:
    case OP_LESS_EQUAL:
    case OP_GREATER_EQUAL:
        if (!is_below_always(c, is_after ? b : a, is_after ? a : b, &is_below)) return false;
        *result = number(c, is_below != is_not);
        break;
    case OP_EQUAL:
        if (a != b && dim_lo(dims, dim_sub(dims, a, b)) <= 0 &&
            dim_hi(dims, dim_sub(dims, a, b)) >= 0)
            return false;
        *result = number(c, a == b);
        break;
    default:
        return false;
    }
    return *result != DIM_NONE;
}

static bool apply(Call *c, const Known *const *args, const uint32_t *at, Known *to, uint32_t i) {
    const OpInfo *info = op_info(c->op->id);
    int64_t ints[BUILD_MAX_OPERANDS] = {0};
    double floats[BUILD_MAX_OPERANDS] = {0};
    uint32_t n = c->node->inputs.n;
    bool is_const = true;
    for (uint32_t k = 0; k < n; k++) {
        if (args[k]->floats) floats[k] = args[k]->floats[at[k]];
        if (args[k]->ints) is_const = known_int(c->im, args[k], at[k], &ints[k]) && is_const;
    }
    if (to->floats || args[0]->floats) {
        Dtype dtype;
        if (!args[0]->floats || !info->ref || !elem_dtype(args[0]->type, &dtype)) return false;
        double value = info->ref(floats[0], floats[1], floats[2]);
        if (to->floats)
            to->floats[i] = dtype_round(dtype, value);
        else
            to->ints[i] = number(c, value != 0);
        return true;
    }
    if (!is_const && c->op->id == OP_NEG)
        return symbolic(c, OP_SUB, number(c, 0), args[0]->ints[at[0]], &to->ints[i]);
    if (!is_const || c->op->id == OP_REM) /* whose reference has the sign of the dividend */
        return n == 2 &&
               symbolic(c, c->op->id, args[0]->ints[at[0]], args[1]->ints[at[1]], &to->ints[i]);
    if (!info->ref_int) return false;
    int64_t value = info->ref_int(ints[0], ints[1], ints[2]);
    to->ints[i] = number(c, value);
    return value < DIM_LIMIT && value > -DIM_LIMIT;
}

/* Elementwise ops of lists and numbers, in 64 bits. */
bool onnx_fold_eltwise(Call *c) {
    const Known *args[BUILD_MAX_OPERANDS] = {0}, *widest = NULL;
    uint32_t n = c->node->inputs.n;
    const OpInfo *info = op_info(c->op->id);
    if (n == 0 || n < info->min_args || n > info->max_args) return false;
    for (uint32_t k = 0; k < n; k++) {
        args[k] = input_known(c, k);
        if (!args[k] || args[k]->rank > 1 || args[k]->type != args[0]->type) return false;
        if (elem_info(args[k]->type)->kind == ELEM_IS_UINT) return false;
        if (!widest || (args[k]->rank >= widest->rank && args[k]->n != 1)) widest = args[k];
    }
    int64_t type = info->result == RESULT_BOOL ? (int64_t)ELEM_BOOL : args[0]->type;
    Known *to = known_new(c->im, type, widest->rank, widest->dims);
    for (uint32_t i = 0; to && i < to->n; i++) {
        uint32_t at[BUILD_MAX_OPERANDS] = {0};
        for (uint32_t k = 0; k < n; k++) {
            if (args[k]->n != 1 && args[k]->n != to->n) return false;
            at[k] = args[k]->n == 1 ? 0 : i;
        }
        if (!apply(c, args, at, to, i)) return false;
    }
    return output_known(c, 0, to);
}

/* fmod=1 has the sign of the dividend, which no shape asks for. */
bool onnx_fold_mod(Call *c) {
    const Known *from = input_known(c, 0);
    return from && from->ints && !attr_int(c, "fmod", 0) && onnx_fold_eltwise(c);
}

bool onnx_fold_where(Call *c) {
    const Known *when = input_known(c, 0), *yes = input_known(c, 1), *no = input_known(c, 2);
    if (!when || !yes || !no || !when->ints || yes->type != no->type || when->rank != 1 ||
        yes->rank > 1 || no->rank > 1)
        return false;
    Known *to = known_new(c->im, yes->type, when->rank, when->dims);
    for (uint32_t i = 0; to && i < to->n; i++) {
        int64_t holds;
        if (!known_int(c->im, when, i, &holds)) return false;
        const Known *from = holds ? yes : no;
        if (from->n != 1 && from->n != to->n) return false;
        if ((yes->n != 1 && yes->n != to->n) || (no->n != 1 && no->n != to->n)) return false;
        copy_elem(to, i, from, from->n == 1 ? 0 : i);
    }
    return output_known(c, 0, to);
}

/* Sums, products and extremes of a list of integers. */
bool onnx_fold_reduce(Call *c) {
    const Known *known = input_known(c, 0);
    if (!known || !known->ints || known->rank != 1 || known->n == 0) return false;
    int64_t one = 1;
    bool keeps = attr_int(c, "keepdims", 1) != 0;
    Known *to = known_new(c->im, known->type, keeps, &one);
    DimId value = known->ints[0];
    for (uint32_t i = 1; i < known->n; i++) {
        DimId next = known->ints[i];
        OpId op = c->op->id;
        if (op == OP_SUM || op == OP_PROD) {
            if (!symbolic(c, op == OP_SUM ? OP_ADD : OP_MUL, value, next, &value)) return false;
        } else if (dim_always_le(c->im->b->dims, value, next)) {
            value = op == OP_MAX ? next : value;
        } else if (dim_always_le(c->im->b->dims, next, value)) {
            value = op == OP_MAX ? value : next;
        } else {
            return false;
        }
    }
    to->ints[0] = value;
    return output_known(c, 0, to);
}
