/* Evaluates expressions. Operations on numbers are computed at compile time. An operation with a
 * tensor becomes a call of the operator's op. Chains of infix operators lean left and are walked by
 * a loop, so the recursion is no deeper than the tree. */
#include "front/sema_state.h"

#include "base/vec.h"

#include <math.h>
#include <string.h>

static const OpId sugar_ops[SUGAR_COUNT] = {
#define SUGAR(sym, text, op) [SUGAR_##sym] = OP_##op,
#include "front/sugar.def"
};

/* Names. */

static bool is_broken_name(const Sema *sema, Str name) {
    for (uint32_t i = 0; i < sema->file->broken_names.n; i++)
        if (sema->file->broken_names.data[i] == name) return true;
    return false;
}

static Value unknown_name(Sema *sema, const Ast *ast) {
    if (is_broken_name(sema, ast->name)) return value_poison();
    sema_error(sema, DIAG_UNKNOWN_NAME, ast->span, "unknown name `%s`", ast->name);
    if (sema->diags->n_errors > DIAG_MAX_ERRORS) return value_poison();
    Nearest nearest = nearest_to(ast->name);
    for (const Frame *frame = sema->frame; frame; frame = frame->outer)
        scope_try_names(&frame->scope, &nearest);
    scope_try_names(&sema->dim_scope, &nearest);
    if (sema_is_callable(sema, ast->name))
        diag_help(sema->diags, "`%s` is a function: call it with parentheses.", ast->name);
    else if (sema_help_name(sema, ast->name))
        return value_poison();
    else if (nearest.best)
        diag_help(sema->diags, "Did you mean `%s`?", nearest.best);
    else
        sema_help_missing(sema, ast->name);
    return value_poison();
}

static Value eval_name(Sema *sema, const Ast *ast) {
    Binding *binding = sema_find(sema, ast->name);
    if (!binding) binding = scope_find(&sema->dim_scope, ast->name);
    Value value = {.kind = VALUE_DTYPE};
    if (binding) {
        binding->is_used = true;
        value = binding->value;
    } else if (!dtype_by_name(ast->name, &value.dtype) && !sema_function(sema, ast->name, &value)) {
        return unknown_name(sema, ast);
    }
    value.span = ast->span;
    return value;
}

/* Arithmetic on compile-time numbers. */

static Value overflow(Sema *sema, Span span, Sugar sugar) {
    return sema_error(sema, DIAG_DIM_OVERFLOW, span, "result of `%s` can pass 2^62",
                      sugar_text(sugar));
}

static DimId int_remainder(DimTab *dims, DimId a, DimId b) {
    int64_t divisor;
    bool is_multiple = dim_is_const(dims, b, &divisor) && dim_multiple(dims, a) % divisor == 0;
    return is_multiple ? dim_const(dims, 0)
                       : dim_sub(dims, a, dim_mul(dims, dim_div(dims, a, b), b));
}

static Value int_arith(Sema *sema, Sugar sugar, const Value *a, const Value *b, Span span) {
    DimTab *dims = sema->dims;
    Value value = value_int(DIM_NONE, span);
    value.inexact = a->inexact || b->inexact;
    if (sugar == SUGAR_ADD) value.dim = dim_add(dims, a->dim, b->dim);
    if (sugar == SUGAR_SUB) value.dim = dim_sub(dims, a->dim, b->dim);
    if (sugar == SUGAR_MUL) value.dim = dim_mul(dims, a->dim, b->dim);
    if (sugar == SUGAR_DIV || sugar == SUGAR_REM) {
        if (dim_lo(dims, b->dim) <= 0)
            return sema_error(sema, DIAG_BAD_DIM, b->span, "divisor `%s` is not always positive",
                              dim_str(dims, sema->arena, b->dim));
        value.dim = sugar == SUGAR_DIV ? dim_div(dims, a->dim, b->dim)
                                       : int_remainder(dims, a->dim, b->dim);
        DimId rest = sugar == SUGAR_DIV ? int_remainder(dims, a->dim, b->dim) : DIM_NONE;
        if (rest && !dim_equals_const(dims, rest, 0)) value.inexact = true;
    }
    return value.dim ? value : overflow(sema, span, sugar);
}

/* Bit operators on integers that are constants; on others they are refused as numbers. */
static Value int_bits(Sema *sema, Sugar sugar, const Value *a, const Value *b, Span span) {
    static const PrimId prims[SUGAR_COUNT] = {[SUGAR_BIT_AND] = PRIM_BITAND,
                                              [SUGAR_BIT_OR] = PRIM_BITOR,
                                              [SUGAR_BIT_XOR] = PRIM_BITXOR,
                                              [SUGAR_SHL] = PRIM_SHL,
                                              [SUGAR_SHR] = PRIM_SHR};
    int64_t x, y;
    if (!value_const_int(sema, a, &x) || !value_const_int(sema, b, &y))
        return sema_error(sema, DIAG_BAD_DIM, span, "`%s` of dims that are known only at run time",
                          sugar_text(sugar));
    int64_t result = prim_eval_int(prims[sugar], DT_I64, x, y, 0);
    bool is_lost = sugar == SUGAR_SHL && prim_eval_int(PRIM_SHR, DT_I64, result, y, 0) != x;
    if (is_lost || result > DIM_LIMIT || result < -DIM_LIMIT) return overflow(sema, span, sugar);
    return value_int(dim_const(sema->dims, result), span);
}

static double float_arith(Sugar sugar, double a, double b) {
    if (sugar == SUGAR_ADD) return a + b;
    if (sugar == SUGAR_SUB) return a - b;
    if (sugar == SUGAR_MUL) return a * b;
    return sugar == SUGAR_DIV ? a / b : fmod(a, b);
}

static bool is_arithmetic(Sugar sugar) {
    return sugar >= SUGAR_ADD && sugar <= SUGAR_REM;
}

static bool is_bits(Sugar sugar) {
    return sugar >= SUGAR_BIT_OR && sugar <= SUGAR_SHR;
}

static bool is_int_or_float(const Value *value) {
    return value->kind == VALUE_INT || value->kind == VALUE_FLOAT;
}

/* Whether the result overflows a double or underflows to 0. A division by 0 is exactly infinite and
 * not lost. */
static bool is_lost(Sugar sugar, double a, double b, double result) {
    if (!isfinite(a) || !isfinite(b)) return false;
    if (isinf(result)) return sugar != SUGAR_DIV || b != 0;
    bool has_zero = a == 0 || (sugar == SUGAR_MUL && b == 0);
    return result == 0 && !has_zero && (sugar == SUGAR_MUL || sugar == SUGAR_DIV);
}

/* Whether the number is a constant that a double holds; reports an error if not. */
static bool is_double(Sema *sema, const Value *value) {
    double number;
    const Operand operand = sema_operand(sema, value);
    if (value->kind != VALUE_INT ||
        build_literal(sema->builder, (BuildPlace){0}, &operand, DT_F64, &number, NULL))
        return true;
    sema_report(sema, value->span, NULL);
    return false;
}

/* Arithmetic on two numbers, of which at least one is a float. */
static Value mixed_arith(Sema *sema, Sugar sugar, const Value *a, const Value *b, Span span) {
    if (!is_double(sema, a) || !is_double(sema, b)) return value_poison();
    double left = value_double(sema, a), right = value_double(sema, b);
    double number = float_arith(sugar, left, right);
    if (is_lost(sugar, left, right, number)) {
        sema_error(sema, DIAG_LITERAL_RANGE, span, "the result, in doubles, %s",
                   number == 0 ? "rounds to 0" : "is out of range");
        return value_poison();
    }
    return (Value){.kind = VALUE_FLOAT, .number = number, .span = span};
}

/* `a` and then `b`. */
static Value join_lists(Sema *sema, const Value *a, const Value *b, Span span) {
    uint32_t n = a->n_items + b->n_items; /* neither is longer than SEMA_MAX_LIST */
    Value *items = sema_new_items(sema, span, n);
    if (!items) return value_poison();
    for (uint32_t i = 0; i < n; i++)
        items[i] = i < a->n_items ? value_item(a, i) : value_item(b, i - a->n_items);
    return (Value){.kind = VALUE_LIST, .n_items = n, .items = items, .span = span};
}

/* The list `times` times, one after the other. */
static Value repeat_list(Sema *sema, const Value *list, const Value *times, Span span) {
    int64_t n;
    if (!value_const_int(sema, times, &n) || n < 0)
        return sema_error(sema, DIAG_BAD_ARGUMENT, times->span,
                          "a list is repeated a constant number of times, not %s",
                          value_describe(sema, times));
    if (list->n_items && n > SEMA_MAX_LIST / list->n_items)
        return sema_error(sema, DIAG_LIMIT, span, "list of more than %d items", SEMA_MAX_LIST);
    uint32_t n_items = list->n_items * (list->n_items ? (uint32_t)n : 0);
    Value *items = sema_new_items(sema, span, n_items);
    if (!items) return value_poison();
    for (uint32_t i = 0; i < n_items; i++) items[i] = value_item(list, i % list->n_items);
    return (Value){.kind = VALUE_LIST, .n_items = n_items, .items = items, .span = span};
}

static Value eval_pair(Sema *sema, Sugar sugar, const Value *a, const Value *b, Span span) {
    if (a->kind == VALUE_POISON || b->kind == VALUE_POISON) return value_poison();
    if (is_arithmetic(sugar) && is_int_or_float(a) && is_int_or_float(b)) {
        bool both_int = a->kind == VALUE_INT && b->kind == VALUE_INT;
        return both_int ? int_arith(sema, sugar, a, b, span) : mixed_arith(sema, sugar, a, b, span);
    }
    if (sugar == SUGAR_ADD && a->kind == VALUE_LIST && b->kind == VALUE_LIST)
        return join_lists(sema, a, b, span);
    if (sugar == SUGAR_MUL && a->kind == VALUE_LIST && b->kind == VALUE_INT)
        return repeat_list(sema, a, b, span);
    if (is_bits(sugar) && a->kind == VALUE_INT && b->kind == VALUE_INT)
        return int_bits(sema, sugar, a, b, span);
    Value result, args[2] = {*a, *b};
    if (sema_compare(sema, sugar, a, b, span, &result)) return result;
    return sema_call_op(sema, sugar_ops[sugar], span, 2, args);
}

static Value eval_binary(Sema *sema, const Ast *ast) {
    Vec(const Ast *) spine = {0};
    while (ast->kind == AST_BINARY) {
        vec_push(sema->arena, &spine, ast);
        ast = ast->items[0];
    }
    Value value = sema_eval(sema, ast);
    for (uint32_t i = spine.n; i-- > 0;) {
        const Ast *step = spine.data[i];
        Value right = sema_eval(sema, step->items[1]);
        value = eval_pair(sema, step->sugar, &value, &right, step->span);
    }
    return value;
}

static Value eval_unary(Sema *sema, const Ast *ast) {
    Value value = sema_eval(sema, ast->items[0]);
    if (value.kind == VALUE_POISON) return value;
    value.span = ast->span;
    if (ast->sugar == SUGAR_NEG && value.kind == VALUE_FLOAT) {
        value.number = -value.number;
        return value;
    }
    if (ast->sugar == SUGAR_NEG && value.kind == VALUE_INT) {
        value.dim = dim_mul_const(sema->dims, value.dim, -1);
        return value.dim ? value : overflow(sema, ast->span, ast->sugar);
    }
    if (ast->sugar == SUGAR_BIT_NOT && value.kind == VALUE_INT) { /* ~x = -1 - x */
        value.dim = dim_sub(sema->dims, dim_const(sema->dims, -1), value.dim);
        return value.dim ? value : overflow(sema, ast->span, ast->sugar);
    }
    if (ast->sugar == SUGAR_NOT && value.kind == VALUE_BOOL) {
        value.number = value.number == 0;
        return value;
    }
    value.span = ast->items[0]->span;
    bool is_bool = value.kind == VALUE_BOOL || (value.kind == VALUE_TENSOR &&
                                                dtype_is_bool(sema_node(sema, value.node)->dtype));
    if (ast->sugar == SUGAR_BIT_NOT && is_bool)
        return sema_call_op(sema, OP_LOGICAL_NOT, ast->span, 1, &value);
    return sema_call_op(sema, sugar_ops[ast->sugar], ast->span, 1, &value);
}

/* Lists, fields and indexing. */

static Value eval_list(Sema *sema, const Ast *ast) {
    if (ast->n_items > SEMA_MAX_LIST)
        return sema_error(sema, DIAG_LIMIT, ast->span, "list of more than %d items", SEMA_MAX_LIST);
    Value *items = arena_array(sema->arena, Value, ast->n_items);
    bool is_whole = true;
    for (uint32_t i = 0; i < ast->n_items; i++) {
        items[i] = sema_eval(sema, ast->items[i]);
        if (items[i].kind == VALUE_POISON) is_whole = false;
    }
    if (!is_whole) return value_poison();
    return (Value){.kind = VALUE_LIST, .n_items = ast->n_items, .items = items, .span = ast->span};
}

static Value eval_field(Sema *sema, const Ast *ast) {
    if (sema_is_module_path(sema, ast)) return sema_unknown_path(sema, ast);
    Value base = sema_eval(sema, ast->items[0]);
    if (base.kind == VALUE_POISON) return base;
    if (base.kind != VALUE_TENSOR || strcmp(ast->name, "shape") != 0) {
        sema_error(sema, DIAG_UNKNOWN_NAME, ast->name_span, "%s has no field `%s`",
                   value_describe(sema, &base), ast->name);
        if (base.kind == VALUE_TENSOR) sema_help_field(sema, ast->name);
        return value_poison();
    }
    const Shape shape = sema_node(sema, base.node)->shape;
    Value *items = arena_array(sema->arena, Value, shape.rank);
    for (uint32_t i = 0; i < shape.rank; i++) items[i] = value_int(shape.dims[i], ast->span);
    return (Value){.kind = VALUE_LIST, .n_items = shape.rank, .items = items, .span = ast->span};
}

/* The place of a bound of `list[begin:end]`, from 0 to the count; an absent bound is `otherwise`.
 */
static bool list_bound(Sema *sema, const Ast *ast, const Value *list, uint32_t otherwise,
                       uint32_t *bound) {
    int64_t n = list->n_items, at = otherwise;
    Value value = ast ? sema_eval(sema, ast) : value_int(dim_const(sema->dims, at), list->span);
    if (value.kind == VALUE_POISON) return false;
    if (!value_const_int(sema, &value, &at)) {
        sema_error(sema, DIAG_BAD_ARGUMENT, value.span,
                   "a list is cut at a constant integer, not %s", value_describe(sema, &value));
        return false;
    }
    if (at < -n || at > n) {
        sema_error(sema, DIAG_SLICE_BOUNDS, value.span, "bound %lld of a list of %lld",
                   (long long)at, (long long)n);
        return false;
    }
    *bound = (uint32_t)(at < 0 ? at + n : at);
    return true;
}

static Value part_of_list(Sema *sema, const Ast *range, const Value *list) {
    uint32_t begin, end;
    if (range->items[2])
        return sema_error(sema, DIAG_BAD_ARGUMENT, range->span, "a part of a list has no step");
    if (!list_bound(sema, range->items[0], list, 0, &begin) ||
        !list_bound(sema, range->items[1], list, list->n_items, &end))
        return value_poison();
    Value part = *list;
    part.items += begin;
    part.n_items = begin < end ? end - begin : 0;
    part.span = range->span;
    return part;
}

static Value index_list(Sema *sema, const Ast *ast, const Value *list) {
    if (ast->n_items == 2 && ast->items[1]->kind == AST_RANGE)
        return part_of_list(sema, ast->items[1], list);
    if (ast->n_items != 2 || ast->items[1]->kind == AST_ELLIPSIS)
        return sema_error(sema, DIAG_BAD_ARGUMENT, ast->span,
                          "a list is indexed by a single integer or range");
    Value at = sema_eval(sema, ast->items[1]);
    int64_t n = list->n_items, index;
    if (at.kind == VALUE_POISON) return at;
    bool is_bool = at.kind == VALUE_BOOL;
    if (is_bool) index = at.number != 0;
    if (!is_bool && !value_const_int(sema, &at, &index))
        return sema_error(sema, DIAG_BAD_ARGUMENT, at.span,
                          "a list is indexed by an integer, not %s", value_describe(sema, &at));
    if (index < -n || index >= n)
        return sema_error(sema, DIAG_SLICE_BOUNDS, at.span, "index %lld of a list of %lld",
                          (long long)index, (long long)n);
    Value item = value_item(list, (uint32_t)(index < 0 ? index + n : index));
    item.span = ast->span;
    return item;
}

static Value eval_subscript(Sema *sema, const Ast *ast) {
    Value base = sema_eval(sema, ast->items[0]);
    if (base.kind == VALUE_POISON) return base;
    if (base.kind == VALUE_TENSOR) return sema_subscript(sema, ast, &base);
    if (base.kind == VALUE_LIST) return index_list(sema, ast, &base);
    return sema_error(sema, DIAG_BAD_ARGUMENT, ast->items[0]->span,
                      "only tensors and lists can be indexed, not %s", value_describe(sema, &base));
}

static bool count_step(Sema *sema, Span span) {
    if (sema->stopped) return false;
    if (sema->depth == 0 || ++sema->n_steps <= SEMA_MAX_STEPS) return true;
    sema->stopped = true;
    sema_error(sema, DIAG_LIMIT, span, "expansion of defs and loops passes %d expressions",
               SEMA_MAX_STEPS);
    return false;
}

static Value eval_as(Sema *sema, const Ast *ast) {
    const Ast *call = ast->items[0];
    return call->kind == AST_CALL ? sema_call(sema, call, ast) : sema_eval(sema, call);
}

Value sema_eval(Sema *sema, const Ast *ast) {
    if (!count_step(sema, ast->span)) return value_poison();
    switch (ast->kind) {
    case AST_BROKEN:
        return value_poison();
    case AST_INT:
        return value_int(dim_const(sema->dims, ast->integer), ast->span);
    case AST_FLOAT:
        return (Value){.kind = VALUE_FLOAT, .number = ast->number, .span = ast->span};
    case AST_BOOL:
        return (Value){.kind = VALUE_BOOL, .number = (double)ast->integer, .span = ast->span};
    case AST_NONE:
        return (Value){.kind = VALUE_NONE, .span = ast->span};
    case AST_STRING:
        return (Value){.kind = VALUE_STRING, .string = ast->name, .span = ast->span};
    case AST_NAME:
        return eval_name(sema, ast);
    case AST_LIST:
        return eval_list(sema, ast);
    case AST_CALL:
        return sema_call(sema, ast, NULL);
    case AST_AS:
        return eval_as(sema, ast);
    case AST_UNARY:
        return eval_unary(sema, ast);
    case AST_BINARY:
        return eval_binary(sema, ast);
    case AST_CHOICE:
        return sema_choice(sema, ast);
    case AST_FIELD:
        return eval_field(sema, ast);
    case AST_METHOD:
        return sema_unknown_path(sema, ast);
    case AST_SUBSCRIPT:
        return eval_subscript(sema, ast);
    case AST_LOOP:
        return sema_loop(sema, ast);
    case AST_KEYWORD:
    case AST_RANGE:
    case AST_ELLIPSIS:
        break; /* the grammar allows these in calls and subscripts only */
    }
    return value_poison();
}

/* Types. */

/* Evaluates an extent, which must be in range and not negative. */
static bool sema_eval_extent(Sema *sema, const Ast *ast, DimId *extent) {
    Value value = sema_eval(sema, ast);
    if (value.kind == VALUE_POISON) return false;
    if (value.kind != VALUE_INT) {
        sema_error(sema, DIAG_BAD_DIM, ast->span, "an extent must be an integer or a dim, not %s",
                   value_describe(sema, &value));
        return false;
    }
    *extent = value.dim;
    return true;
}

static void fail_unknown_dtype(Sema *sema, const AstType *type) {
    Text names = {.arena = sema->diags->arena};
    sema_error(sema, DIAG_UNKNOWN_DTYPE,
               (Span){type->span.begin, type->span.begin + (uint32_t)strlen(type->dtype)},
               "unknown dtype `%s`", type->dtype);
    if (sema_help_dtype(sema, type->dtype)) return;
    sema_help_missing(sema, type->dtype);
    for (Dtype dtype = (Dtype)0; dtype < DT_COUNT; dtype++) {
        const char *separator = dtype == 0 ? "" : dtype + 1 == DT_COUNT ? " and " : ", ";
        text_printf(&names, "%s%s", separator, dtype_name(dtype));
    }
    diag_help(sema->diags, "The dtypes are %s.", text_str(&names));
}

/* A dtype by its name, or by that of a value: `T[8]` with `T = dtype(x)`. */
static bool eval_dtype(Sema *sema, const AstType *type, Dtype *dtype) {
    if (dtype_by_name(type->dtype, dtype)) return true;
    Binding *binding = sema_find(sema, type->dtype);
    if (!binding || binding->value.kind != VALUE_DTYPE) {
        fail_unknown_dtype(sema, type);
        return false;
    }
    binding->is_used = true;
    *dtype = binding->value.dtype;
    return true;
}

bool sema_eval_type(Sema *sema, const AstType *type, Dtype *dtype, Shape *shape) {
    bool ok = eval_dtype(sema, type, dtype);
    if (!build_check_given_rank(sema->builder, type->dims.n)) {
        sema_report(sema, type->span, NULL);
        return false;
    }
    *shape = (Shape){.rank = type->dims.n};
    for (uint32_t i = 0; i < type->dims.n; i++)
        ok = sema_eval_extent(sema, type->dims.data[i], &shape->dims[i]) && ok;
    if (!ok || build_check_shape(sema->builder, shape)) return ok;
    sema_report(sema, type->span, NULL);
    return false;
}
