/* Values: what numbers become beside tensors, and what arguments are taken for. */
#include "front/sema_state.h"

#include "base/number.h"

#include <math.h>

Value value_poison(void) {
    return (Value){.kind = VALUE_POISON};
}

Value value_tensor(NodeId node, Span span) {
    return (Value){.kind = VALUE_TENSOR, .node = node, .span = span};
}

Value value_int(DimId dim, Span span) {
    return (Value){.kind = VALUE_INT, .dim = dim, .span = span};
}

bool value_is_number(const Value *value) {
    return value->kind == VALUE_INT || value->kind == VALUE_FLOAT || value->kind == VALUE_BOOL;
}

static const char *number_str(Sema *sema, double number) {
    Text text = {.arena = sema->arena};
    number_print(number, 17, &text);
    return text_str(&text);
}

const char *value_describe(Sema *sema, const Value *value) {
    switch (value->kind) {
    case VALUE_POISON:
        break;
    case VALUE_TENSOR:
        return str_format(sema->arena, "a tensor %s", sema_node_type_str(sema, value->node));
    case VALUE_INT: {
        int64_t number;
        bool is_const = dim_is_const(sema->dims, value->dim, &number);
        return str_format(sema->arena, "the %s `%s`", is_const ? "integer" : "dim expression",
                          dim_str(sema->dims, sema->arena, value->dim));
    }
    case VALUE_FLOAT:
        return str_format(sema->arena, "the number %s", number_str(sema, value->number));
    case VALUE_BOOL:
        return value->number != 0 ? "`true`" : "`false`";
    case VALUE_STRING:
        return "a string";
    case VALUE_DTYPE:
        return str_format(sema->arena, "the dtype %s", dtype_name(value->dtype));
    case VALUE_LIST:
        return str_format(sema->arena, "a list of %u", value->n_items);
    case VALUE_NONE:
        return "`none`";
    case VALUE_ABSENT:
        return "nothing";
    }
    return "nothing";
}

bool value_const_int(Sema *sema, const Value *value, int64_t *number) {
    return value->kind == VALUE_INT && dim_is_const(sema->dims, value->dim, number);
}

Dtype value_default_dtype(const Value *value) {
    if (value->kind == VALUE_BOOL) return DT_BOOL;
    return value->kind == VALUE_INT ? DT_I32 : DT_F32;
}

/* A bool or a float as an element of dtype, if it is one. */
static const char *float_problem(const Value *value, Dtype dtype, double *number) {
    *number = dtype_round(dtype, value->number);
    switch (dtype_kind(dtype)) {
    case KIND_BOOL:
        return "is not true or false";
    case KIND_INT:
        if (isfinite(value->number) && *number == value->number) return NULL;
        return isfinite(value->number) && floor(value->number) == value->number
                   ? "is out of range"
                   : "is not an integer";
    case KIND_FLOAT:
        if (isfinite(value->number) && !isfinite(*number)) return "is out of range";
        return value->number != 0 && *number == 0 ? "rounds to 0" : NULL;
    }
    return NULL;
}

static const char *int_problem(Sema *sema, const Value *value, Dtype dtype, double *number) {
    int64_t integer;
    if (!value_const_int(sema, value, &integer))
        return "is known only at run time and cannot be a number";
    if (value->inexact && dtype_kind(dtype) == KIND_FLOAT)
        return "comes from an integer division that was rounded down; write one side with a point";
    Value as_float = {.kind = VALUE_FLOAT, .number = (double)integer};
    return float_problem(&as_float, dtype, number);
}

bool sema_literal(Sema *sema, const Value *value, Dtype dtype, bool quiet, double *number) {
    const char *problem = NULL;
    if (value->kind == VALUE_BOOL) {
        *number = value->number;
        if (dtype != DT_BOOL) problem = "is no number";
    } else {
        problem = value->kind == VALUE_INT ? int_problem(sema, value, dtype, number)
                                           : float_problem(value, dtype, number);
    }
    if (problem && !quiet)
        sema_error(sema, DIAG_LITERAL_RANGE, value->span, "%s, taken as %s, %s",
                   value_describe(sema, value), dtype_name(dtype), problem);
    return problem == NULL;
}

bool sema_as_tensor(Sema *sema, const Value *value, Dtype dtype, NodeId *node) {
    if (value->kind == VALUE_TENSOR) {
        *node = value->node;
        return true;
    }
    double number;
    if (!value_is_number(value) || !sema_literal(sema, value, dtype, false, &number)) return false;
    *node = sema_add_const(sema, value->span, dtype, number);
    return *node != NODE_NONE;
}

bool sema_want_tensor(Sema *sema, const Value *value, const char *what, NodeId *node) {
    if (value->kind == VALUE_POISON) return false;
    if (value->kind == VALUE_TENSOR || value_is_number(value))
        return sema_as_tensor(sema, value, value_default_dtype(value), node);
    sema_error(sema, DIAG_BAD_ARGUMENT, value->span, "`%s` must be a tensor, not %s", what,
               value_describe(sema, value));
    return false;
}

bool sema_want_bool(Sema *sema, const Value *value, const char *what, bool *flag) {
    if (value->kind == VALUE_ABSENT) return true;
    if (value->kind == VALUE_BOOL) {
        *flag = value->number != 0;
        return true;
    }
    if (value->kind != VALUE_POISON)
        sema_error(sema, DIAG_BAD_ARGUMENT, value->span, "`%s` must be true or false, not %s", what,
                   value_describe(sema, value));
    return false;
}

bool sema_want_axis(Sema *sema, const Value *value, const char *what, uint32_t rank,
                    uint32_t *axis) {
    if (value->kind == VALUE_POISON) return false;
    int64_t number;
    if (!value_const_int(sema, value, &number)) {
        sema_error(sema, DIAG_BAD_ARGUMENT, value->span,
                   "`%s` must be the number of an axis, not %s", what, value_describe(sema, value));
        return false;
    }
    if (number < -(int64_t)rank || number >= (int64_t)rank) {
        sema_error(sema, DIAG_BAD_AXIS, value->span, "axis %lld is out of range for rank %u",
                   (long long)number, rank);
        return false;
    }
    *axis = (uint32_t)(number < 0 ? number + (int64_t)rank : number);
    return true;
}

bool sema_want_axes(Sema *sema, const Value *value, const char *what, uint32_t rank,
                    uint32_t *axes) {
    if (value->kind == VALUE_POISON) return false;
    *axes = (1u << rank) - 1;
    if (value->kind == VALUE_ABSENT || value->kind == VALUE_NONE) return true;
    bool is_list = value->kind == VALUE_LIST;
    uint32_t n = is_list ? value->n_items : 1;
    *axes = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t axis;
        const Value *item = is_list ? &value->items[i] : value;
        if (!sema_want_axis(sema, item, what, rank, &axis)) return false;
        if (*axes >> axis & 1) {
            sema_error(sema, DIAG_BAD_AXIS, item->span, "axis %u is given twice", axis);
            return false;
        }
        *axes |= 1u << axis;
    }
    return true;
}

bool sema_want_dims(Sema *sema, const Value *value, const char *what, uint32_t *n, DimId *dims) {
    if (value->kind == VALUE_POISON) return false;
    if (value->kind != VALUE_LIST) {
        sema_error(sema, DIAG_BAD_ARGUMENT, value->span, "`%s` must be a list of integers, not %s",
                   what, value_describe(sema, value));
        return false;
    }
    if (value->n_items > MAX_RANK) {
        sema_error(sema, DIAG_LIMIT, value->span, "%u axes, but at most %d are supported",
                   value->n_items, MAX_RANK);
        return false;
    }
    for (uint32_t i = 0; i < value->n_items; i++) {
        const Value *item = &value->items[i];
        if (item->kind == VALUE_POISON) return false;
        if (item->kind != VALUE_INT) {
            sema_error(sema, DIAG_BAD_ARGUMENT, item->span,
                       "`%s` must be a list of integers, but holds %s", what,
                       value_describe(sema, item));
            return false;
        }
        dims[i] = item->dim;
    }
    *n = value->n_items;
    return true;
}
