/* The interpreter's views and concat: every result element is loaded at its coordinates in the
 * argument. */
#include "interp/interp_node.h"

#include <string.h>

/* Copies along a walk over the result; operand 0 is the argument. */
static bool copy_by(const Eval *e, Walk *walk) {
    int64_t n = tensor_n_elems(e->out);
    for (int64_t i = 0; i < n; i++, walk_next(walk))
        e->out->data[i] = e->args[0].data[walk->offsets[0]];
    return true;
}

static bool view_transpose(const Eval *e) {
    const Tensor *arg = &e->args[0];
    int64_t own[TENSOR_MAX_RANK], strides[TENSOR_MAX_RANK];
    tensor_strides(arg, own);
    if (arg->rank != e->out->rank) return interp_fail(e, "changes the rank");
    for (uint32_t k = 0; k < arg->rank; k++) {
        uint32_t from = e->node->attrs.per_axis->perm[k];
        if (from >= arg->rank || arg->dims[from] != e->out->dims[k])
            return interp_fail(e, "permutation and shape disagree at axis %u", k);
        strides[k] = own[from];
    }
    Walk walk = walk_over(e->out);
    walk_add_strides(&walk, strides, 0);
    return copy_by(e, &walk);
}

static bool view_reshape(const Eval *e) {
    int64_t n = tensor_n_elems(e->out), n_arg = tensor_n_elems(&e->args[0]);
    if (n != n_arg)
        return interp_fail(e, "%lld elements into %lld", (long long)n_arg, (long long)n);
    if (n) memcpy(e->out->data, e->args[0].data, (size_t)n * sizeof(double));
    return true;
}

static bool view_expand(const Eval *e) {
    Walk walk = walk_over(e->out);
    if (!walk_add_broadcast(&walk, &e->args[0]))
        return interp_fail(e, "%s does not expand to %s", tensor_type_str(&e->args[0], e->arena),
                           tensor_type_str(e->out, e->arena));
    return copy_by(e, &walk);
}

static bool view_slice(const Eval *e) {
    const Tensor *arg = &e->args[0];
    int64_t own[TENSOR_MAX_RANK], strides[TENSOR_MAX_RANK], offset = 0;
    tensor_strides(arg, own);
    if (arg->rank != e->out->rank) return interp_fail(e, "changes the rank");
    bool is_empty = tensor_n_elems(e->out) == 0;
    for (uint32_t k = 0; k < arg->rank; k++) {
        int64_t begin, step = e->node->attrs.per_axis->step[k];
        if (!interp_dim(e, e->node->attrs.per_axis->begin[k], &begin)) return false;
        int64_t last = begin + (e->out->dims[k] - 1) * step;
        bool fits = begin >= 0 && begin < arg->dims[k] && last >= 0 && last < arg->dims[k];
        if (!is_empty && !fits)
            return interp_fail(e, "axis %u takes elements %lld to %lld of %lld", k,
                               (long long)begin, (long long)last, (long long)arg->dims[k]);
        strides[k] = own[k] * step;
        offset += own[k] * begin;
    }
    Walk walk = walk_over(e->out);
    walk_add_strides(&walk, strides, offset);
    return copy_by(e, &walk);
}

static bool view_pad(const Eval *e) {
    const Tensor *arg = &e->args[0];
    int64_t low[TENSOR_MAX_RANK], strides[TENSOR_MAX_RANK];
    tensor_strides(arg, strides);
    if (arg->rank != e->out->rank) return interp_fail(e, "changes the rank");
    for (uint32_t k = 0; k < arg->rank; k++) {
        if (!interp_dim(e, e->node->attrs.per_axis->begin[k], &low[k])) return false;
        if (low[k] < 0 || low[k] + arg->dims[k] > e->out->dims[k])
            return interp_fail(e, "axis %u: %lld before %lld elements in %lld", k,
                               (long long)low[k], (long long)arg->dims[k],
                               (long long)e->out->dims[k]);
    }
    Walk walk = walk_over(e->out);
    int64_t n = tensor_n_elems(e->out);
    for (int64_t i = 0; i < n; i++, walk_next(&walk)) {
        bool is_inside = true;
        int64_t from = 0;
        for (uint32_t k = 0; k < arg->rank; k++) {
            int64_t at = walk.index[k] - low[k];
            is_inside = is_inside && at >= 0 && at < arg->dims[k];
            from += at * strides[k];
        }
        if (is_inside)
            e->out->data[i] = arg->data[from];
        else
            interp_fill(e->out, i, e->node->attrs.number, e->node->attrs.whole);
    }
    return true;
}

/* out[i.., t.., c..] = arg[i * stride + t * dilation.., c..] */
static bool view_windows(const Eval *e) {
    const Tensor *arg = &e->args[0], *out = e->out;
    const Attrs *attrs = &e->node->attrs;
    int64_t own[TENSOR_MAX_RANK], strides[TENSOR_MAX_RANK] = {0};
    tensor_strides(arg, own);
    if (out->rank != windows_axis(attrs->axes, arg->rank)) return interp_fail(e, "ranks disagree");
    for (uint32_t k = 0; k < arg->rank; k++) {
        uint32_t at = windows_axis(attrs->axes, k), tap = windows_tap_axis(attrs->axes, k);
        strides[at] = own[k];
        if (!(attrs->axes >> k & 1)) continue;
        strides[at] = own[k] * attrs->per_axis->step[k];
        strides[tap] = own[k] * attrs->per_axis->dilation[k];
        int64_t last = (out->dims[at] - 1) * attrs->per_axis->step[k] +
                       (out->dims[tap] - 1) * attrs->per_axis->dilation[k];
        if (tensor_n_elems(out) && last >= arg->dims[k])
            return interp_fail(e, "axis %u takes element %lld of %lld", k, (long long)last,
                               (long long)arg->dims[k]);
    }
    Walk walk = walk_over(out);
    walk_add_strides(&walk, strides, 0);
    return copy_by(e, &walk);
}

static bool gather_shape_fits(const Eval *e, uint32_t axis) {
    const Tensor *arg = &e->args[0], *indices = &e->args[1];
    if (axis >= arg->rank || arg->rank - 1 + indices->rank != e->out->rank) return false;
    for (uint32_t k = 0; k < e->out->rank; k++) {
        int64_t want = k < axis                   ? arg->dims[k]
                       : k < axis + indices->rank ? indices->dims[k - axis]
                                                  : arg->dims[k - indices->rank + 1];
        if (e->out->dims[k] != want) return false;
    }
    return true;
}

/* out[i.., j.., k..] = arg[i.., indices[j..], k..] */
static bool view_gather(const Eval *e) {
    const Tensor *arg = &e->args[0], *indices = &e->args[1];
    uint32_t axis = (uint32_t)e->node->attrs.axis;
    if (!gather_shape_fits(e, axis)) return interp_fail(e, "axis and shapes disagree");
    int64_t n = tensor_n_elems(e->out), extent = arg->dims[axis];
    if (extent == 0) { /* rows gathered from an empty axis are zeros */
        for (int64_t i = 0; i < n; i++) e->out->data[i] = 0;
        return true;
    }
    int64_t own[TENSOR_MAX_RANK], of_indices[TENSOR_MAX_RANK];
    int64_t strides[2][TENSOR_MAX_RANK] = {{0}};
    tensor_strides(arg, own);
    tensor_strides(indices, of_indices);
    for (uint32_t k = 0; k < e->out->rank; k++) {
        if (k < axis)
            strides[0][k] = own[k];
        else if (k < axis + indices->rank)
            strides[1][k] = of_indices[k - axis];
        else
            strides[0][k] = own[k - indices->rank + 1];
    }
    Walk walk = walk_over(e->out);
    walk_add_strides(&walk, strides[0], 0);
    walk_add_strides(&walk, strides[1], 0);
    for (int64_t i = 0; i < n; i++, walk_next(&walk)) {
        int64_t index = tensor_int(indices, walk.offsets[1]);
        if (index < 0) index = 0;
        if (index > extent - 1) index = extent - 1;
        e->out->data[i] = arg->data[walk.offsets[0] + index * own[axis]];
    }
    return true;
}

bool interp_view(const Eval *e) {
    switch ((int)e->node->op) {
    case OP_TRANSPOSE:
        return view_transpose(e);
    case OP_RESHAPE:
        return view_reshape(e);
    case OP_EXPAND:
        return view_expand(e);
    case OP_SLICE:
        return view_slice(e);
    case OP_PAD:
        return view_pad(e);
    case OP_WINDOWS:
        return view_windows(e);
    case OP_GATHER:
        return view_gather(e);
    }
    return interp_fail(e, "no reference for this view");
}

bool interp_concat(const Eval *e) {
    uint32_t axis = (uint32_t)e->node->attrs.axis;
    if (axis >= e->out->rank) return interp_fail(e, "axis %u of rank %u", axis, e->out->rank);
    int64_t out_strides[TENSOR_MAX_RANK], at = 0;
    tensor_strides(e->out, out_strides);
    for (uint32_t a = 0; a < e->node->n_args; a++) {
        const Tensor *arg = &e->args[a];
        Tensor part = *e->out;
        part.dims[axis] = arg->rank == e->out->rank ? arg->dims[axis] : 0;
        if (!tensor_same_shape(arg, &part) || at + part.dims[axis] > e->out->dims[axis])
            return interp_fail(e, "argument %u of shape %s does not fit %s", a + 1,
                               tensor_type_str(arg, e->arena), tensor_type_str(e->out, e->arena));
        Walk walk = walk_over(arg);
        walk_add_strides(&walk, out_strides, at * out_strides[axis]);
        int64_t n = tensor_n_elems(arg);
        for (int64_t i = 0; i < n; i++, walk_next(&walk))
            e->out->data[walk.offsets[0]] = arg->data[i];
        at += part.dims[axis];
    }
    if (at == e->out->dims[axis]) return true;
    return interp_fail(e, "the parts have %lld of %lld elements along axis %u", (long long)at,
                       (long long)e->out->dims[axis], axis);
}

bool interp_update(const Eval *e) {
    const Tensor *whole = &e->args[0], *part = &e->args[1], *starts = &e->args[2];
    int64_t strides[TENSOR_MAX_RANK], first = 0, n = tensor_n_elems(whole);
    if (!tensor_same_shape(whole, e->out) || part->rank != whole->rank)
        return interp_fail(e, "an update of shape %s in %s", tensor_type_str(part, e->arena),
                           tensor_type_str(whole, e->arena));
    tensor_strides(e->out, strides);
    for (uint32_t k = 0; k < whole->rank; k++) {
        int64_t start = tensor_int(starts, k), last = whole->dims[k] - part->dims[k];
        first += (start < 0 ? 0 : start > last ? last : start) * strides[k];
    }
    for (int64_t i = 0; i < n; i++) e->out->data[i] = whole->data[i];
    Walk walk = walk_over(part);
    walk_add_strides(&walk, strides, first);
    n = tensor_n_elems(part);
    for (int64_t i = 0; i < n; i++, walk_next(&walk)) e->out->data[walk.offsets[0]] = part->data[i];
    return true;
}
