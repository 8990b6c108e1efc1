/* Values, and the conversion of call arguments to the kinds of values that are required. */
#include "front/sema_state.h"

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

Value value_item(const Value *list, uint32_t i) {
    Value item = list->items[i];
    if (!list->is_elsewhere) return item;
    item.span = list->span;
    item.is_elsewhere = true;
    return item;
}

Operand sema_operand(const Sema *sema, const Value *value) {
    static const OperandKind kinds[] = {[VALUE_TENSOR] = OPERAND_TENSOR,
                                        [VALUE_INT] = OPERAND_INT,
                                        [VALUE_FLOAT] = OPERAND_FLOAT,
                                        [VALUE_BOOL] = OPERAND_BOOL};
    return (Operand){.kind = kinds[value->kind],
                     .node = value->node,
                     .dim = value->dim,
                     .number = value->number,
                     .is_inexact = value->inexact,
                     .span = sema_graph_span(sema, value->span)};
}

Value *sema_new_items(Sema *sema, Span span, int64_t n) {
    if (n > SEMA_MAX_LIST) {
        sema_error(sema, DIAG_LIMIT, span, "list of more than %d items", SEMA_MAX_LIST);
        return NULL;
    }
    sema->n_items += (uint32_t)n;
    if (sema->n_items <= SEMA_MAX_ITEMS) return arena_array(sema->arena, Value, (size_t)n + 1);
    sema->stopped = true;
    sema_error(sema, DIAG_LIMIT, span, "lists made from others pass %d items", SEMA_MAX_ITEMS);
    return NULL;
}

const char *value_describe(Sema *sema, const Value *value) {
    switch (value->kind) {
    case VALUE_POISON:
        break;
    case VALUE_TENSOR:
    case VALUE_INT:
    case VALUE_FLOAT:
    case VALUE_BOOL: {
        Operand operand = sema_operand(sema, value);
        return build_describe(sema->builder, &operand);
    }
    case VALUE_STRING:
        return "a string";
    case VALUE_DTYPE:
        return str_format(sema->arena, "the dtype %s", dtype_name(value->dtype));
    case VALUE_LIST:
        return str_format(sema->arena, "a list of %u", value->n_items);
    case VALUE_FUNCTION:
        return str_format(sema->arena, "the function `%s`", value->string);
    case VALUE_NONE:
        return "`none`";
    case VALUE_ABSENT:
        return "nothing";
    }
    return "nothing";
}

double value_double(Sema *sema, const Value *value) {
    int64_t integer;
    return value_const_int(sema, value, &integer) ? (double)integer : value->number;
}

bool value_const_int(Sema *sema, const Value *value, int64_t *number) {
    return value->kind == VALUE_INT && dim_is_const(sema->dims, value->dim, number);
}

Value sema_help_tensor(Sema *sema, const Value *value) {
    if (value->kind == VALUE_LIST)
        diag_help(sema->diags, "Numbers become a tensor by tensor([..]), tensors by stack([..]).");
    if (value->kind == VALUE_FUNCTION)
        diag_help(sema->diags, "`%s` is a function: call it with parentheses.", value->string);
    return value_poison();
}

bool sema_want_operand(Sema *sema, const Value *value, const char *what, Operand *operand) {
    if (value->kind == VALUE_POISON) return false;
    if (value->kind == VALUE_TENSOR || value_is_number(value)) {
        *operand = sema_operand(sema, value);
        return true;
    }
    sema_error(sema, DIAG_BAD_ARGUMENT, value->span, "`%s` must be a tensor, not %s", what,
               value_describe(sema, value));
    sema_help_tensor(sema, value);
    return false;
}

bool sema_want_tensor(Sema *sema, const Value *value, const char *what, NodeId *node) {
    Operand operand;
    if (!sema_want_operand(sema, value, what, &operand)) return false;
    *node = build_tensor(sema_at(sema, value->span), &operand);
    if (*node == NODE_NONE) sema_report(sema, value->span, value);
    return *node != NODE_NONE;
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

bool sema_want_axis_number(Sema *sema, const Value *value, const char *what, int64_t *number) {
    if (value->kind == VALUE_POISON) return false;
    if (value_const_int(sema, value, number)) return true;
    sema_error(sema, DIAG_BAD_ARGUMENT, value->span, "`%s` must be the number of an axis, not %s",
               what, value_describe(sema, value));
    return false;
}

bool sema_want_axis(Sema *sema, const Value *value, const char *what, uint32_t rank,
                    uint32_t *axis) {
    int64_t number;
    if (!sema_want_axis_number(sema, value, what, &number)) return false;
    if (build_check_axis(sema->builder, (BuildPlace){0}, number, rank, axis)) return true;
    sema_report(sema, value->span, NULL);
    return false;
}

bool sema_want_axis_or_default(Sema *sema, const Call *call, uint32_t rank, uint32_t *axis) {
    if (call->args[1].kind != VALUE_ABSENT)
        return sema_want_axis(sema, &call->args[1], "axis", rank, axis);
    if (build_default_axis(sema->builder, call->op, rank, axis)) return true;
    sema_report(sema, call->span, NULL);
    return false;
}

bool sema_want_axes(Sema *sema, const Value *value, const char *what, uint32_t rank,
                    uint32_t *axes) {
    if (value->kind == VALUE_POISON) return false;
    *axes = BUILD_ALL_AXES;
    if (value->kind == VALUE_ABSENT || value->kind == VALUE_NONE) return true;
    bool is_list = value->kind == VALUE_LIST;
    uint32_t n = is_list ? value->n_items : 1, axis;
    *axes = 0;
    for (uint32_t i = 0; i < n; i++) {
        int64_t number;
        const Value item = is_list ? value_item(value, i) : *value;
        if (!sema_want_axis_number(sema, &item, what, &number)) return false;
        if (build_next_axis(sema->builder, (BuildPlace){0}, number, rank, NULL, axes, &axis))
            continue;
        sema_report(sema, item.span, NULL);
        return false;
    }
    return true;
}

bool sema_want_dims(Sema *sema, const Value *value, const char *what, DimId *dims, DimList *list) {
    if (value->kind == VALUE_POISON) return false;
    if (value->kind != VALUE_LIST) {
        sema_error(sema, DIAG_BAD_ARGUMENT, value->span, "`%s` must be a list of integers, not %s",
                   what, value_describe(sema, value));
        return false;
    }
    if (!build_check_n_axes(sema->builder, value->n_items)) {
        sema_report(sema, value->span, NULL);
        return false;
    }
    for (uint32_t i = 0; i < value->n_items; i++) {
        const Value item = value_item(value, i);
        if (item.kind == VALUE_POISON) return false;
        if (item.kind != VALUE_INT) {
            sema_error(sema, DIAG_BAD_ARGUMENT, item.span,
                       "`%s` must be a list of integers, but holds %s", what,
                       value_describe(sema, &item));
            return false;
        }
        dims[i] = item.dim;
    }
    *list = (DimList){.n = value->n_items, .dims = dims};
    return true;
}
