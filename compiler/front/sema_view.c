/* Arguments of calls of views (transpose, reshape, expand, pad, gather, concat) and of iota. */
#include "front/sema_state.h"

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
        if (!sema_want_axis_number(sema, &perm->items[k], "perm", &numbers[k]))
            return value_poison();
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

Value call_pad(Sema *sema, const Call *call) {
    NodeId x;
    DimId low_dims[MAX_RANK], high_dims[MAX_RANK];
    DimList low, high;
    const Value *value = &call->args[3];
    if (!sema_want_tensor(sema, &call->args[0], "x", &x)) return value_poison();
    uint32_t rank = sema_node(sema, x)->shape.rank;
    if (!sema_want_per_axis(sema, call, 1, "low", rank, low_dims, &low) ||
        !sema_want_per_axis(sema, call, 2, "high", rank, high_dims, &high))
        return value_poison();
    if (!build_check_pad(sema->builder, x, low, high))
        return sema_report(sema, call->span, call->args);
    bool is_given = value->kind != VALUE_ABSENT;
    if (is_given && !value_is_number(value))
        return sema_error(sema, DIAG_BAD_ARGUMENT, value->span, "`value` must be a number, not %s",
                          value_describe(sema, value));
    Operand operand = {0};
    if (is_given) operand = sema_operand(sema, value);
    NodeId id = build_pad(sema_at(sema, call->span), x, low, high, is_given ? &operand : NULL);
    return sema_made(sema, call->span, call->args, id);
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

Value call_iota(Sema *sema, const Call *call) {
    DimId dims[MAX_RANK];
    DimList shape;
    uint32_t axis;
    if (!sema_want_dims(sema, &call->args[0], "shape", dims, &shape) ||
        !sema_want_axis_or_default(sema, call, shape.n, &axis))
        return value_poison();
    NodeId id = build_iota(sema_at(sema, call->span), shape, axis);
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
    for (uint32_t i = 0; i < list->n_items; i++)
        if (!sema_want_tensor(sema, &list->items[i], "xs", &xs[i])) return value_poison();
    if (!build_check_concat(sema->builder, xs[0])) return sema_report(sema, call->span, call->args);
    if (!want_axis(sema, call, 1, xs[0], &axis)) return value_poison();
    NodeId id = build_concat(sema_at(sema, call->span), list->n_items, xs, axis);
    return sema_made(sema, call->span, call->args, id);
}
