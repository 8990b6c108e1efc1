/* Arguments of calls of views (transpose, reshape, expand, pad, windows, gather, concat), of iota,
 * and of each. */
#include "front/sema_state.h"

#include <string.h>

Value call_transpose(Sema *sema, const Call *call) {
    NodeId x;
    int64_t numbers[MAX_RANK];
    const Value *perm = &call->args[1];
    if (!sema_want_tensor(sema, &call->args[0], "x", &x)) return value_poison();
    const Shape *from = &sema_node(sema, x)->shape;
    bool is_given = perm->kind != VALUE_ABSENT;
    if (is_given && perm->kind != VALUE_LIST)
        return sema_error(sema, DIAG_BAD_AXIS, perm->span,
                          "`perm` must list the %u axes of %s, not %s", from->rank,
                          shape_str(sema->dims, sema->arena, from), value_describe(sema, perm));
    if (is_given && !build_check_perm(sema->builder, x, perm->n_items))
        return sema_report(sema, call->span, call->args);
    uint32_t seen = 0, axis;
    for (uint32_t k = 0; k < perm->n_items; k++) {
        const BuildPlace at = {.arg = 2, .item = k + 1};
        const Value item = value_item(perm, k);
        if (!sema_want_axis_number(sema, &item, "perm", &numbers[k])) return value_poison();
        if (!build_next_axis(sema->builder, at, numbers[k], from->rank, "perm", &seen, &axis))
            return sema_report(sema, call->span, call->args);
    }
    NodeId id =
        build_transpose(sema_at(sema, call->span), x, perm->n_items, is_given ? numbers : NULL);
    return sema_made(sema, call->span, call->args, id);
}

/* A call whose arguments are a tensor and the shape of the result. */
static Value call_shaped(Sema *sema, const Call *call,
                         NodeId (*build)(Builder *b, NodeId x, DimList shape)) {
    NodeId x;
    DimId dims[MAX_RANK];
    DimList shape;
    if (!sema_want_tensor(sema, &call->args[0], "x", &x) ||
        !sema_want_dims(sema, &call->args[1], "shape", dims, &shape))
        return value_poison();
    return sema_made(sema, call->span, call->args, build(sema_at(sema, call->span), x, shape));
}

Value call_reshape(Sema *sema, const Call *call) {
    return call_shaped(sema, call, build_reshape);
}

Value call_expand(Sema *sema, const Call *call) {
    return call_shaped(sema, call, build_expand);
}

bool sema_want_per_axis(Sema *sema, const Call *call, uint32_t at, const char *what, uint32_t rank,
                        DimId *dims, DimList *list) {
    if (!sema_want_dims(sema, &call->args[at], what, dims, list)) return false;
    if (build_check_per_axis(sema->builder, (BuildPlace){0}, what, list->n, rank)) return true;
    sema_report(sema, call->args[at].span, NULL);
    return false;
}

/* Reads the axis in argument `at`; 0 when it is not given. */
static bool want_axis(Sema *sema, const Call *call, uint32_t at, NodeId x, uint32_t *axis) {
    *axis = 0;
    return call->args[at].kind == VALUE_ABSENT ||
           sema_want_axis(sema, &call->args[at], "axis", sema_node(sema, x)->shape.rank, axis);
}

Value call_gather(Sema *sema, const Call *call) {
    NodeId x, indices;
    uint32_t axis;
    if (!sema_want_tensor(sema, &call->args[0], "x", &x) ||
        !sema_want_tensor(sema, &call->args[1], "indices", &indices))
        return value_poison();
    if (!build_check_gather(sema->builder, x, indices))
        return sema_report(sema, call->span, call->args);
    if (!want_axis(sema, call, 2, x, &axis)) return value_poison();
    NodeId id = build_gather(sema_at(sema, call->span), x, indices, axis);
    return sema_made(sema, call->span, call->args, id);
}

/* The dtype of the tensors among the starts, each of which has one number; i32 without any. */
static bool check_starts(Sema *sema, const Call *call, Dtype *dtype) {
    const Value *list = &call->args[2];
    bool has_dtype = false;
    *dtype = DT_I32;
    for (uint32_t i = 0; i < list->n_items; i++) {
        const Value item = value_item(list, i);
        if (item.kind != VALUE_TENSOR) continue;
        const Node *start = sema_node(sema, item.node);
        if (!dim_equals_const(sema->dims, shape_n_elems(sema->dims, &start->shape), 1)) {
            sema_error(sema, DIAG_BAD_ARGUMENT, item.span,
                       "`starts` of `%s` have a scalar for each axis, not %s", call->name,
                       value_describe(sema, &item));
            return false;
        }
        if (has_dtype && start->dtype != *dtype) {
            sema_error(sema, DIAG_DTYPE_MISMATCH, item.span,
                       "`starts` of `%s` are %s and %s: cast them to one dtype", call->name,
                       dtype_name(*dtype), dtype_name(start->dtype));
            return false;
        }
        *dtype = start->dtype;
        has_dtype = true;
    }
    return true;
}

/* Numbers, one for each axis: a tensor, or a list of scalars and integers, which become one. */
static bool want_starts(Sema *sema, const Call *call, NodeId *starts) {
    const Value *list = &call->args[2];
    NodeId items[MAX_RANK];
    if (list->kind != VALUE_LIST) return sema_want_tensor(sema, list, "starts", starts);
    if (!build_check_n_axes(sema->builder, list->n_items)) {
        sema_report(sema, list->span, NULL);
        return false;
    }
    Dtype dtype;
    if (!check_starts(sema, call, &dtype)) return false;
    Builder *b = sema_at(sema, call->span);
    const DimId one = dim_const(sema->dims, 1);
    for (uint32_t i = 0; i < list->n_items; i++) {
        Operand operand;
        const Value item = value_item(list, i);
        if (!sema_want_operand(sema, &item, "starts", &operand)) return false;
        if (item.kind == VALUE_FLOAT) {
            sema_error(sema, DIAG_BAD_ARGUMENT, item.span, "`starts` of `%s` are integers, not %s",
                       call->name, value_describe(sema, &item));
            return false;
        }
        NodeId start = build_const_at(b, (BuildPlace){.arg = 3, .item = i + 1}, &operand, dtype);
        items[i] = start == NODE_NONE ? start : build_reshape(b, start, (DimList){1, &one});
    }
    *starts = list->n_items == 1 ? items[0] : build_concat(b, list->n_items, items, 0);
    if (*starts != NODE_NONE) return true;
    sema_report(sema, call->span, call->args);
    return false;
}

Value call_update(Sema *sema, const Call *call) {
    NodeId x, update, starts;
    if (!sema_want_tensor(sema, &call->args[0], "x", &x) ||
        !sema_want_tensor(sema, &call->args[1], "update", &update) ||
        !want_starts(sema, call, &starts))
        return value_poison();
    NodeId id = build_update(sema_at(sema, call->span), call->op, x, update, starts);
    return sema_made(sema, call->span, call->args, id);
}

Value call_iota(Sema *sema, const Call *call) {
    DimId dims[MAX_RANK];
    DimList shape;
    uint32_t axis;
    Dtype dtype = DT_I32;
    bool is_given = call->args[2].kind != VALUE_ABSENT;
    if (!sema_want_dims(sema, &call->args[0], "shape", dims, &shape) ||
        !sema_want_axis_or_default(sema, call, shape.n, &axis) ||
        (is_given && !sema_want_dtype(sema, &call->args[2], "dtype", &dtype)))
        return value_poison();
    NodeId id = build_iota(sema_at(sema, call->span), shape, axis, dtype);
    return sema_made(sema, call->span, call->args, id);
}

Value call_concat(Sema *sema, const Call *call) {
    const Value *list = &call->args[0];
    uint32_t axis;
    if (list->kind == VALUE_POISON) return *list;
    if (list->kind != VALUE_LIST)
        return sema_error(sema, DIAG_BAD_ARGUMENT, list->span,
                          "`concat` takes a list of 1 to %d tensors, not %s", MAX_CONCAT_ARGS,
                          value_describe(sema, list));
    if (!build_check_n_concat(sema->builder, list->n_items))
        return sema_report(sema, call->span, call->args);
    NodeId *xs = arena_array(sema->arena, NodeId, list->n_items);
    for (uint32_t i = 0; i < list->n_items; i++) {
        const Value item = value_item(list, i);
        if (!sema_want_tensor(sema, &item, "xs", &xs[i])) return value_poison();
    }
    if (!build_check_concat(sema->builder, xs[0])) return sema_report(sema, call->span, call->args);
    if (!want_axis(sema, call, 1, xs[0], &axis)) return value_poison();
    NodeId id = build_concat(sema_at(sema, call->span), list->n_items, xs, axis);
    return sema_made(sema, call->span, call->args, id);
}

/* Pad. */

/* Reads the number to be put beyond a tensor; *is_given is false when there is none. */
static bool want_value(Sema *sema, const Value *value, Operand *operand, bool *is_given) {
    *is_given = value->kind != VALUE_ABSENT;
    if (!*is_given) return true;
    if (value->kind == VALUE_POISON) return false;
    if (value_is_number(value)) {
        *operand = sema_operand(sema, value);
        return true;
    }
    sema_error(sema, DIAG_BAD_ARGUMENT, value->span, "`value` must be a number, not %s",
               value_describe(sema, value));
    return false;
}

static bool want_border(Sema *sema, const Value *mode, Border *border) {
    *border = BORDER_CONSTANT;
    if (mode->kind == VALUE_ABSENT) return true;
    if (mode->kind == VALUE_POISON) return false;
    while (mode->kind == VALUE_STRING && *border < BORDER_COUNT &&
           strcmp(mode->string, border_name(*border)) != 0)
        ++*border;
    if (mode->kind == VALUE_STRING && *border != BORDER_COUNT) return true;
    sema_error(sema, DIAG_BAD_ARGUMENT, mode->span,
               "`mode` must be \"constant\", \"reflect\", \"replicate\" or \"circular\"");
    return false;
}

Value call_pad(Sema *sema, const Call *call) {
    NodeId x;
    DimId low_dims[MAX_RANK], high_dims[MAX_RANK], gap_dims[MAX_RANK];
    DimList low, high, gaps;
    Operand operand = {0};
    Border border;
    bool is_given, has_gaps = call->args[4].kind != VALUE_ABSENT;
    if (!sema_want_tensor(sema, &call->args[0], "x", &x)) return value_poison();
    uint32_t rank = sema_node(sema, x)->shape.rank;
    if (!sema_want_per_axis(sema, call, 1, "low", rank, low_dims, &low) ||
        !sema_want_per_axis(sema, call, 2, "high", rank, high_dims, &high) ||
        (has_gaps && !sema_want_per_axis(sema, call, 4, "interior", rank, gap_dims, &gaps)) ||
        !want_border(sema, &call->args[5], &border))
        return value_poison();
    if (!build_check_pad(sema->builder, x, low, high))
        return sema_report(sema, call->span, call->args);
    if (!want_value(sema, &call->args[3], &operand, &is_given)) return value_poison();
    const Operand *value = is_given ? &operand : NULL;
    Builder *b = sema_at(sema, call->span);
    if (has_gaps) x = build_spread(b, x, gaps, value);
    NodeId id =
        border ? build_pad_border(b, x, low, high, border) : build_pad(b, x, low, high, value);
    return sema_made(sema, call->span, call->args, id);
}

/* Windows. */

/* The axes of the windows in the order of the list, and their number; by default the last ones, as
 * many as `size` lists. */
static bool want_window_axes(Sema *sema, const Call *call, uint32_t rank, uint32_t *axes,
                             uint32_t *n) {
    const Value *size = &call->args[1], *axis = &call->args[2];
    uint32_t seen = 0;
    bool is_given = axis->kind != VALUE_ABSENT && axis->kind != VALUE_NONE;
    const Value *list = is_given ? axis : size;
    *n = list->kind == VALUE_LIST ? list->n_items : 1;
    if (*n > rank) {
        sema_error(sema, DIAG_BAD_AXIS, list->span, "%u window axes of a tensor of rank %u", *n,
                   rank);
        return false;
    }
    for (uint32_t i = 0; i < *n; i++) {
        int64_t number = (int64_t)rank - *n + i;
        const Value item = axis->kind == VALUE_LIST ? value_item(axis, i) : *axis;
        if (is_given && !sema_want_axis_number(sema, &item, "axis", &number)) return false;
        if (build_next_axis(sema->builder, (BuildPlace){0}, number, rank, NULL, &seen, &axes[i]))
            continue;
        sema_report(sema, item.span, NULL);
        return false;
    }
    return true;
}

/* One number for all, or a list of `n`. */
static bool want_each(Sema *sema, const Value *value, const char *what, uint32_t n, DimId *dims) {
    DimList list = {n, dims};
    if (value->kind == VALUE_INT) {
        for (uint32_t i = 0; i < n; i++) dims[i] = value->dim;
        return true;
    }
    if (!sema_want_dims(sema, value, what, dims, &list)) return false;
    if (list.n == n) return true;
    sema_error(sema, DIAG_BAD_ARGUMENT, value->span, "`%s` lists %u numbers for %u window axes",
               what, list.n, n);
    return false;
}

/* Reads numbers, one for each window axis, into entries of `to`; nothing, if they are not given. */
static bool want_of_axes(Sema *sema, const Value *value, const char *what, uint32_t n,
                         const uint32_t *axes, DimId *to) {
    DimId dims[MAX_RANK];
    if (value->kind == VALUE_ABSENT || value->kind == VALUE_NONE) return true;
    if (!want_each(sema, value, what, n, dims)) return false;
    for (uint32_t i = 0; i < n; i++) to[axes[i]] = dims[i];
    return true;
}

/* The same for constants. */
static bool want_steps(Sema *sema, const Value *value, const char *what, uint32_t n,
                       const uint32_t *axes, int64_t *to) {
    DimId dims[MAX_RANK] = {DIM_NONE};
    if (!want_of_axes(sema, value, what, n, axes, dims)) return false;
    for (uint32_t i = 0; i < n; i++) {
        if (!dims[axes[i]] || dim_is_const(sema->dims, dims[axes[i]], &to[axes[i]])) continue;
        sema_error(sema, DIAG_BAD_ARGUMENT, value->span, "`%s` must be known while compiling",
                   what);
        return false;
    }
    return true;
}

/* `stride=none`: windows do not overlap. */
static bool want_strides(Sema *sema, const Call *call, uint32_t n, const uint32_t *axes,
                         Windowing *w) {
    const Value *stride = &call->args[3], *size = &call->args[1];
    return want_steps(sema, stride->kind == VALUE_NONE ? size : stride, "stride", n, axes,
                      w->stride);
}

static bool fits_same(const Windowing *w, uint32_t n, const uint32_t *axes) {
    for (uint32_t i = 0; i < n; i++)
        if (w->stride[axes[i]] != 1) return false;
    return true;
}

/* Padding is numbers, or a word that says where windows begin. */
static bool want_padding(Sema *sema, const Value *padding, uint32_t n, const uint32_t *axes,
                         Windowing *w) {
    if (padding->kind != VALUE_STRING)
        return want_of_axes(sema, padding, "padding", n, axes, w->low) &&
               want_of_axes(sema, padding, "padding", n, axes, w->high);
    if (strcmp(padding->string, "valid") == 0) return true;
    bool is_causal = strcmp(padding->string, "causal") == 0;
    if (!is_causal && strcmp(padding->string, "same") != 0) {
        sema_error(sema, DIAG_BAD_ARGUMENT, padding->span,
                   "`padding` must be numbers, \"valid\", \"same\" or \"causal\"");
        return false;
    }
    if (!is_causal && !fits_same(w, n, axes)) {
        sema_error(sema, DIAG_BAD_ARGUMENT, padding->span,
                   "`padding=\"same\"` needs strides of 1; write the padding as numbers");
        return false;
    }
    for (uint32_t i = 0; i < n; i++) build_window_padding(sema->builder, w, axes[i], is_causal);
    return true;
}

Value call_windows(Sema *sema, const Call *call) {
    NodeId x;
    uint32_t axes[MAX_RANK], n;
    Operand operand = {0};
    bool is_given;
    const Value *args = call->args;
    if (!sema_want_tensor(sema, &args[0], "x", &x)) return value_poison();
    Windowing w = build_windowing(sema->builder, x);
    if (!want_window_axes(sema, call, sema_node(sema, x)->shape.rank, axes, &n) ||
        !want_of_axes(sema, &args[1], "size", n, axes, w.size) ||
        !want_strides(sema, call, n, axes, &w) ||
        !want_steps(sema, &args[4], "dilation", n, axes, w.dilation) ||
        !want_padding(sema, &args[5], n, axes, &w) ||
        !want_of_axes(sema, &args[6], "low", n, axes, w.low) ||
        !want_of_axes(sema, &args[7], "high", n, axes, w.high) ||
        !want_value(sema, &args[8], &operand, &is_given))
        return value_poison();
    for (uint32_t i = 0; i < n; i++) w.axes |= 1u << axes[i];
    if (is_given) w.value = &operand;
    return sema_made(sema, call->span, args, build_windows(sema_at(sema, call->span), &w));
}

/* each(value, n): a list of n, which `value` is, or of which it is every item. */
Value call_each(Sema *sema, const Call *call) {
    const Value *value = &call->args[0];
    int64_t n;
    if (value->kind == VALUE_POISON || call->args[1].kind == VALUE_POISON) return value_poison();
    if (!value_const_int(sema, &call->args[1], &n) || n < 0 || n > SEMA_MAX_LIST)
        return sema_error(sema, DIAG_BAD_ARGUMENT, call->args[1].span,
                          "`n` must be an integer from 0 to %d", SEMA_MAX_LIST);
    if (value->kind == VALUE_LIST && value->n_items == n) return *value;
    if (value->kind == VALUE_LIST)
        return sema_error(sema, DIAG_BAD_ARGUMENT, value->span, "%lld items are wanted, not %s",
                          (long long)n, value_describe(sema, value));
    Value *items = sema_new_items(sema, call->span, n);
    if (!items) return value_poison();
    for (int64_t i = 0; i < n; i++) items[i] = *value;
    return (Value){.kind = VALUE_LIST, .n_items = (uint32_t)n, .items = items, .span = call->span};
}
