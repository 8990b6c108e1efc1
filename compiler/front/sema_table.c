/* tensor([[1.0, 2.0], [3.0, 4.0]], dtype): numbers that the source lists. */
#include "front/sema_state.h"

typedef struct Table {
    Sema *sema;
    Shape shape;
    Vec(Value) items; /* numbers, in row-major order */
} Table;

/* The extents are those of the first items. A list without items has the last extent, 0. */
static bool read_shape(Table *t, const Value *value) {
    Value at = *value;
    for (; at.kind == VALUE_LIST; at = value_item(&at, 0)) {
        if (!build_check_n_axes(t->sema->builder, t->shape.rank + 1)) {
            sema_report(t->sema, at.span, NULL);
            return false;
        }
        t->shape.dims[t->shape.rank++] = dim_const(t->sema->dims, at.n_items);
        if (at.n_items == 0) break;
    }
    return true;
}

static bool read_items(Table *t, const Value *value, uint32_t axis) {
    Sema *sema = t->sema;
    bool is_list = value->kind == VALUE_LIST;
    if (axis == t->shape.rank && value_is_number(value)) {
        vec_push(sema->arena, &t->items, *value);
        return true;
    }
    if (axis == t->shape.rank || !is_list) {
        const char *what = axis == t->shape.rank ? "a number" : "a list";
        sema_error(sema, DIAG_BAD_ARGUMENT, value->span, "an item of `tensor` must be %s, not %s",
                   what, value_describe(sema, value));
        if (value->kind == VALUE_TENSOR)
            diag_help(sema->diags, "Tensors are put side by side by stack([a, b]).");
        return false;
    }
    if (!dim_equals_const(sema->dims, t->shape.dims[axis], value->n_items)) {
        sema_error(sema, DIAG_SHAPE_MISMATCH, value->span,
                   "a list of %u beside one of %s: the rows of a tensor are equally long",
                   value->n_items, dim_str(sema->dims, sema->arena, t->shape.dims[axis]));
        return false;
    }
    for (uint32_t i = 0; i < value->n_items; i++) {
        const Value item = value_item(value, i);
        if (!read_items(t, &item, axis + 1)) return false;
    }
    return true;
}

/* bool, if all items are, f32 where one has a point or there is none, else i32. */
static Dtype usual_dtype(const Table *t) {
    bool are_bools = t->items.n > 0, has_float = t->items.n == 0;
    for (uint32_t i = 0; i < t->items.n; i++) {
        are_bools = are_bools && t->items.data[i].kind == VALUE_BOOL;
        has_float = has_float || t->items.data[i].kind == VALUE_FLOAT;
    }
    return are_bools ? DT_BOOL : has_float ? DT_F32 : DT_I32;
}

Value call_tensor(Sema *sema, const Call *call) {
    Table t = {.sema = sema};
    if (!read_shape(&t, &call->args[0]) || !read_items(&t, &call->args[0], 0))
        return value_poison();
    Dtype dtype = usual_dtype(&t);
    if (call->args[1].kind != VALUE_ABSENT &&
        !sema_want_dtype(sema, &call->args[1], "dtype", &dtype))
        return value_poison();
    Operand *operands = arena_array(sema->arena, Operand, t.items.n);
    for (uint32_t i = 0; i < t.items.n; i++) {
        double number;
        int64_t whole;
        const Operand item = sema_operand(sema, &t.items.data[i]);
        operands[i] = build_stated(sema->builder, &item, dtype);
        if (build_literal(sema->builder, (BuildPlace){0}, &operands[i], dtype, &number, &whole))
            continue;
        return sema_report(sema, t.items.data[i].span, NULL);
    }
    const DimList shape = {t.shape.rank, t.shape.dims};
    NodeId id = build_table(sema_at(sema, call->span), shape, t.items.n, operands, dtype);
    return sema_made(sema, call->span, call->args, id);
}
