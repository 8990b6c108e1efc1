/* Comparisons of values that are known while compiling, and the choice by them: `a if c else b`. */
#include "front/sema_state.h"

#include <string.h>

static Value truth(bool is_true, Span span) {
    return (Value){.kind = VALUE_BOOL, .number = is_true, .span = span};
}

static bool is_equality(Sugar sugar) {
    return sugar == SUGAR_EQ || sugar == SUGAR_NE;
}

static bool compare_doubles(Sugar sugar, double a, double b) {
    if (sugar == SUGAR_EQ) return a == b;
    if (sugar == SUGAR_NE) return a != b;
    if (sugar == SUGAR_LT) return a < b;
    if (sugar == SUGAR_LE) return a <= b;
    return sugar == SUGAR_GT ? a > b : a >= b;
}

/* -1, 0 or 1: how `a` compares with `b` for all values of the dims. False: it depends on them. */
static bool order_of(DimTab *dims, DimId a, DimId b, int *order) {
    DimId one = dim_const(dims, 1), after_a = dim_add(dims, a, one),
          after_b = dim_add(dims, b, one);
    *order = 0;
    if (dim_prove_equal(dims, a, b)) return true;
    *order = after_a && dim_prove_le(dims, after_a, b) ? -1 : 1;
    return *order < 0 || (after_b && dim_prove_le(dims, after_b, a));
}

static Value compare_ints(Sema *sema, Sugar sugar, const Value *a, const Value *b, Span span) {
    DimTab *dims = sema->dims;
    int order;
    if (order_of(dims, a->dim, b->dim, &order))
        return truth(compare_doubles(sugar, order, 0), span);
    if (sugar == SUGAR_LE && dim_prove_le(dims, a->dim, b->dim)) return truth(true, span);
    if (sugar == SUGAR_GE && dim_prove_le(dims, b->dim, a->dim)) return truth(true, span);
    if (sugar == SUGAR_LT && dim_prove_le(dims, b->dim, a->dim)) return truth(false, span);
    if (sugar == SUGAR_GT && dim_prove_le(dims, a->dim, b->dim)) return truth(false, span);
    const char *left = dim_str(dims, sema->arena, a->dim);
    sema_error(sema, DIAG_BAD_DIM, span, "`%s %s %s` holds for some values of the dims only", left,
               sugar_text(sugar), dim_str(dims, sema->arena, b->dim));
    diag_help(sema->diags, "While compiling it must be known: narrow the ranges of the dims.");
    return value_poison();
}

static bool is_double(Sema *sema, const Value *value) {
    int64_t integer;
    return value->kind == VALUE_FLOAT || value_const_int(sema, value, &integer);
}

static bool is_same(const Value *a, const Value *b) {
    if (a->kind != b->kind) return false;
    if (a->kind == VALUE_STRING) return strcmp(a->string, b->string) == 0;
    if (a->kind == VALUE_DTYPE) return a->dtype == b->dtype;
    if (a->kind == VALUE_BOOL) return a->number == b->number;
    return a->kind == VALUE_NONE;
}

/* Values that are equal or not, and have no order. */
static bool is_word(const Value *value) {
    return value->kind == VALUE_STRING || value->kind == VALUE_DTYPE || value->kind == VALUE_BOOL;
}

bool sema_compare(Sema *sema, Sugar sugar, const Value *a, const Value *b, Span span,
                  Value *result) {
    bool are_bools = a->kind == VALUE_BOOL && b->kind == VALUE_BOOL;
    bool is_a = a->number != 0, is_b = b->number != 0; /* of bools */
    bool has_none = a->kind == VALUE_NONE || b->kind == VALUE_NONE;
    bool are_words = is_word(a) && a->kind == b->kind;
    bool is_order = is_equality(sugar) || (sugar >= SUGAR_LT && sugar <= SUGAR_GE);
    if (is_equality(sugar) && (has_none || are_words))
        *result = truth(is_same(a, b) == (sugar == SUGAR_EQ), span);
    else if (are_bools && (sugar == SUGAR_AND || sugar == SUGAR_OR))
        *result = truth(sugar == SUGAR_AND ? is_a && is_b : is_a || is_b, span);
    else if (is_order && a->kind == VALUE_INT && b->kind == VALUE_INT)
        *result = compare_ints(sema, sugar, a, b, span);
    else if (is_order && is_double(sema, a) && is_double(sema, b))
        *result = truth(compare_doubles(sugar, value_double(sema, a), value_double(sema, b)), span);
    else
        return false;
    return true;
}

Value sema_choice(Sema *sema, const Ast *ast) {
    Value condition = sema_eval(sema, ast->items[0]);
    if (condition.kind == VALUE_BOOL) {
        Value value = sema_eval(sema, ast->items[condition.number != 0 ? 1 : 2]);
        value.span = ast->span;
        return value;
    }
    if (condition.kind == VALUE_POISON) return condition;
    sema_error(sema, DIAG_BAD_ARGUMENT, condition.span,
               "`if` needs true or false, known while compiling, not %s",
               value_describe(sema, &condition));
    if (condition.kind == VALUE_TENSOR)
        diag_help(sema->diags, "Write where(condition, a, b) to choose for each element.");
    return value_poison();
}
