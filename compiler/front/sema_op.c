/* Arguments of calls of elementwise ops, casts, reductions, matmul and einsum. */
#include "front/sema_state.h"

#include <math.h>
#include <string.h>

Value sema_eltwise(Sema *sema, OpId op, Span span, uint32_t n_args, const Value *args) {
    Operand operands[BUILD_MAX_OPERANDS];
    for (uint32_t i = 0; i < n_args; i++) {
        if (args[i].kind == VALUE_POISON) return value_poison();
        if (args[i].kind != VALUE_TENSOR && !value_is_number(&args[i])) {
            sema_error(sema, DIAG_BAD_ARGUMENT, args[i].span,
                       "operand %u of `%s` must be a tensor or a number, not %s", i + 1,
                       op_info(op)->name, value_describe(sema, &args[i]));
            return sema_help_tensor(sema, &args[i]);
        }
        operands[i] = sema_operand(sema, &args[i]);
    }
    return sema_made(sema, span, args, build_eltwise(sema_at(sema, span), op, n_args, operands));
}

bool sema_want_dtype(Sema *sema, const Value *value, const char *what, Dtype *dtype) {
    if (value->kind == VALUE_DTYPE) {
        *dtype = value->dtype;
        return true;
    }
    if (value->kind == VALUE_POISON) return false;
    sema_error(sema, DIAG_BAD_ARGUMENT, value->span, "`%s` must be a dtype, not %s", what,
               value_describe(sema, value));
    if (value->kind == VALUE_STRING)
        diag_help(sema->diags, "A dtype is a name without quotes, such as f16.");
    return false;
}

Value call_const(Sema *sema, const Call *call) {
    Dtype dtype;
    const Value *value = &call->args[0];
    if (value->kind == VALUE_POISON || !sema_want_dtype(sema, &call->args[1], "dtype", &dtype))
        return value_poison();
    if (!value_is_number(value))
        return sema_error(sema, DIAG_BAD_ARGUMENT, value->span, "`const` takes a number, not %s",
                          value_describe(sema, value));
    Operand operand = sema_operand(sema, value);
    operand.span = (Span){0}; /* the span of the call */
    NodeId id = build_const(sema_at(sema, call->span), &operand, dtype);
    return sema_made(sema, call->span, NULL, id);
}

typedef NodeId BuildConversion(Builder *b, const Operand *x, Dtype dtype);

static Value convert(Sema *sema, const Call *call, BuildConversion *build) {
    Dtype dtype;
    Operand operand;
    if (!sema_want_dtype(sema, &call->args[1], "dtype", &dtype) ||
        !sema_want_operand(sema, &call->args[0], "x", &operand))
        return value_poison();
    NodeId id = build(sema_at(sema, call->span), &operand, dtype);
    return sema_made(sema, call->span, call->args, id);
}

Value call_cast(Sema *sema, const Call *call) {
    return convert(sema, call, build_cast);
}

Value call_bitcast(Sema *sema, const Call *call) {
    return convert(sema, call, build_bitcast);
}

/* Reductions. */

/* The tensor argument of a reduction, a scan, a sort or segments. Of bool its elements count as the
 * numbers 0 and 1, i32, where the op takes integers; `is_bool` says so. */
static bool want_reduced(Sema *sema, const Call *call, NodeId *x, bool *is_bool) {
    if (!sema_want_tensor(sema, &call->args[0], "x", x)) return false;
    *is_bool =
        dtype_is_bool(sema_node(sema, *x)->dtype) && dtype_in(DT_I32, op_info(call->op)->dtypes);
    if (*is_bool) {
        const Operand operand = operand_tensor(*x);
        *x = build_cast(sema_at(sema, call->span), &operand, DT_I32);
        return *x != NODE_NONE;
    }
    if (build_check_dtype(sema->builder, call->op, sema_node(sema, *x)->dtype)) return true;
    sema_report(sema, call->span, NULL);
    return false;
}

/* The result where `want_reduced` says `is_bool`: bool, if it is one of the elements. */
static NodeId as_reduced(Sema *sema, const Call *call, NodeId id, bool is_bool) {
    if (!is_bool || id == NODE_NONE || op_info(call->op)->orders) return id;
    const Operand zero = operand_int(dim_const(sema->dims, 0));
    return build_eltwise(sema->builder, OP_GREATER, 2, (const Operand[]){operand_tensor(id), zero});
}

Value call_reduce(Sema *sema, const Call *call) {
    NodeId x;
    uint32_t axes;
    bool keep = false, is_bool;
    if (!want_reduced(sema, call, &x, &is_bool)) return value_poison();
    if (call->args[1].kind == VALUE_TENSOR) {
        const OpInfo *info = op_info(call->op);
        sema_error(sema, DIAG_BAD_ARGUMENT, call->args[1].span,
                   "`%s` reduces one tensor; its second argument is the axis", info->name);
        OpId pairwise = op_by_name(str_format(sema->arena, "%simum", info->name));
        if (pairwise)
            diag_help(sema->diags, "For the elementwise one of two tensors write %s(a, b).",
                      op_info(pairwise)->name);
        return value_poison();
    }
    if (!sema_want_axes(sema, &call->args[1], "axis", sema_node(sema, x)->shape.rank, &axes) ||
        !sema_want_bool(sema, &call->args[2], "keep", &keep))
        return value_poison();
    NodeId id = build_reduce(sema_at(sema, call->span), call->op, x, axes, keep);
    return sema_made(sema, call->span, call->args, as_reduced(sema, call, id, is_bool));
}

/* The index of an element among all of them, in row-major order, for a call without an axis. */
static Value argreduce_all(Sema *sema, const Call *call, NodeId x) {
    bool keep = false;
    DimId ones[MAX_RANK], all = dim_const(sema->dims, -1);
    uint32_t rank = sema_node(sema, x)->shape.rank;
    if (!sema_want_bool(sema, &call->args[2], "keep", &keep)) return value_poison();
    for (uint32_t k = 0; k < rank; k++) ones[k] = dim_const(sema->dims, 1);
    Builder *b = sema_at(sema, call->span);
    NodeId id = build_reshape(b, x, (DimList){1, &all});
    if (id != NODE_NONE) id = build_argreduce(b, call->op, id, 0, false);
    if (id != NODE_NONE && keep) id = build_reshape(b, id, (DimList){rank, ones});
    return sema_made(sema, call->span, call->args, id);
}

Value call_argreduce(Sema *sema, const Call *call) {
    NodeId x;
    uint32_t axis;
    bool keep = false, is_bool;
    ValueKind kind = call->args[1].kind;
    if (!want_reduced(sema, call, &x, &is_bool)) return value_poison();
    bool has_axes = sema_node(sema, x)->shape.rank != 1 || kind == VALUE_NONE;
    if (has_axes && (kind == VALUE_ABSENT || kind == VALUE_NONE))
        return argreduce_all(sema, call, x);
    if (!sema_want_axis_or_default(sema, call, sema_node(sema, x)->shape.rank, &axis) ||
        !sema_want_bool(sema, &call->args[2], "keep", &keep))
        return value_poison();
    NodeId id = build_argreduce(sema_at(sema, call->span), call->op, x, axis, keep);
    return sema_made(sema, call->span, call->args, id);
}

Value call_scan(Sema *sema, const Call *call) {
    NodeId x;
    uint32_t axis;
    bool is_bool;
    if (!want_reduced(sema, call, &x, &is_bool) ||
        !sema_want_axis_or_default(sema, call, sema_node(sema, x)->shape.rank, &axis))
        return value_poison();
    NodeId id = build_scan(sema_at(sema, call->span), call->op, x, axis);
    return sema_made(sema, call->span, call->args, as_reduced(sema, call, id, is_bool));
}

Value call_sort(Sema *sema, const Call *call) {
    NodeId x;
    uint32_t axis;
    bool descends = call->op == OP_ARGSORT_DESCENDING, is_bool;
    if (!want_reduced(sema, call, &x, &is_bool)) return value_poison();
    uint32_t rank = sema_node(sema, x)->shape.rank;
    bool is_last = rank > 1 && call->args[1].kind == VALUE_ABSENT;
    axis = rank - 1;
    if ((!is_last && !sema_want_axis_or_default(sema, call, rank, &axis)) ||
        !sema_want_bool(sema, &call->args[2], "descending", &descends))
        return value_poison();
    OpId op = descends ? OP_ARGSORT_DESCENDING : OP_ARGSORT;
    NodeId id = build_scan(sema_at(sema, call->span), op, x, axis);
    return sema_made(sema, call->span, call->args, id);
}

/* The number of segments. */
static bool want_count(Sema *sema, const Value *value, DimId *count) {
    if (value->kind == VALUE_POISON) return false;
    *count = value->dim;
    if (value->kind == VALUE_INT && dim_lo(sema->dims, *count) >= 0) return true;
    sema_error(sema, DIAG_BAD_ARGUMENT, value->span,
               "`n` must be a number of segments, 0 or more, not %s", value_describe(sema, value));
    return false;
}

Value call_segments(Sema *sema, const Call *call) {
    NodeId x, ids;
    DimId count;
    uint32_t axis = 0;
    bool is_bool;
    if (!want_reduced(sema, call, &x, &is_bool) ||
        !sema_want_tensor(sema, &call->args[1], "ids", &ids) ||
        !want_count(sema, &call->args[2], &count) ||
        (call->args[3].kind != VALUE_ABSENT &&
         !sema_want_axis(sema, &call->args[3], "axis", sema_node(sema, x)->shape.rank, &axis)))
        return value_poison();
    NodeId id = build_segments(sema_at(sema, call->span), call->op, x, ids, count, axis);
    return sema_made(sema, call->span, call->args, as_reduced(sema, call, id, is_bool));
}

/* Matmul. */

static bool want_precision(Sema *sema, const Value *value, Precision *precision) {
    *precision = PRECISION_FULL;
    if (value->kind == VALUE_ABSENT) return true;
    if (value->kind == VALUE_POISON) return false;
    while (value->kind == VALUE_STRING && *precision < PRECISION_COUNT &&
           strcmp(value->string, precision_name(*precision)) != 0)
        ++*precision;
    if (value->kind == VALUE_STRING && *precision != PRECISION_COUNT) return true;
    sema_error(sema, DIAG_BAD_ARGUMENT, value->span, "`precision` must be \"full\" or \"tf32\"%s%s",
               value->kind == VALUE_STRING ? "" : ", not ",
               value->kind == VALUE_STRING ? "" : value_describe(sema, value));
    return false;
}

/* Converts the operands to tensors, numbers too. The builder refuses operands of rank 0, and with
 * `out=` operands of different dtypes. */
static bool want_operands(Sema *sema, const Call *call, Operand operands[2]) {
    static const char *const names[2] = {"a", "b"};
    NodeId node;
    Dtype dtype;
    for (int side = 0; side < 2; side++) {
        if (!sema_want_tensor(sema, &call->args[side], names[side], &node)) return false;
        operands[side] = sema_operand(sema, &call->args[side]);
    }
    bool has_out = call->args[3].kind != VALUE_ABSENT;
    if (has_out || build_common_dtype(sema->builder, call->op, 2, operands, &dtype)) return true;
    sema_report(sema, call->span, call->args);
    return false;
}

/* `precision` and `out` of a product, the last arguments of its call. */
typedef struct ProductForm {
    Precision precision;
    Dtype out;
    bool has_out;
} ProductForm;

static bool want_form(Sema *sema, const Value args[2], ProductForm *form) {
    form->has_out = args[1].kind != VALUE_ABSENT;
    return want_precision(sema, &args[0], &form->precision) &&
           (!form->has_out || sema_want_dtype(sema, &args[1], "out", &form->out));
}

Value call_matmul(Sema *sema, const Call *call) {
    Operand operands[2];
    ProductForm form;
    if (!want_operands(sema, call, operands) || !want_form(sema, &call->args[2], &form))
        return value_poison();
    NodeId id = build_matmul(sema_at(sema, call->span), &operands[0], &operands[1], form.precision,
                             form.has_out ? &form.out : NULL);
    return sema_made(sema, call->span, call->args, id);
}

Value call_online(Sema *sema, const Call *call) {
    NodeId x, v, factor = NODE_NONE;
    Dtype out;
    bool has_factor = call->args[2].kind != VALUE_ABSENT;
    bool has_out = call->args[3].kind != VALUE_ABSENT;
    if (!sema_want_tensor(sema, &call->args[0], "x", &x) ||
        !sema_want_tensor(sema, &call->args[1], "v", &v) ||
        (has_factor && !sema_want_tensor(sema, &call->args[2], "factor", &factor)) ||
        (has_out && !sema_want_dtype(sema, &call->args[3], "out", &out)))
        return value_poison();
    NodeId id = build_online(sema_at(sema, call->span), call->op, x, v, factor, NULL,
                             has_out ? &out : NULL);
    return sema_made(sema, call->span, call->args, id);
}

/* A number of the source; an absent one leaves *number as it is. */
static bool want_number(Sema *sema, const Value *value, double *number) {
    int64_t whole;
    if (value->kind == VALUE_ABSENT) return true;
    if (value->kind == VALUE_POISON) return false;
    Operand operand = sema_operand(sema, value);
    return build_literal(sema_at(sema, value->span), (BuildPlace){0}, &operand, DT_F64, number,
                         &whole);
}

/* The first arguments of an op that quantises rows, its result's dtype, which is argument `out`,
 * and a map of no scale. */
static bool want_quantized(Sema *sema, const Call *call, uint32_t out, NodeId operands[2],
                           Dtype *dtype, QuantizeMap *map) {
    const Value *args = call->args;
    if (!sema_want_tensor(sema, &args[0], "x", &operands[0]) ||
        !sema_want_tensor(sema, &args[1], "v", &operands[1]) || operands[1] == NODE_NONE)
        return false;
    Dtype values = graph_node(sema->builder->graph, operands[1])->dtype;
    *map = (QuantizeMap){.scale = 1, .least = -INFINITY, .dtype = values};
    *dtype = online_dtype(call->op, values);
    return args[out].kind == VALUE_ABSENT || sema_want_dtype(sema, &args[out], "out", dtype);
}

Value call_quantize(Sema *sema, const Call *call) {
    NodeId operands[2];
    QuantizeMap map;
    Dtype out;
    const Value *args = call->args;
    if (!want_quantized(sema, call, 6, operands, &out, &map) ||
        !want_number(sema, &args[2], &map.scale) || !want_number(sema, &args[3], &map.least) ||
        (args[4].kind != VALUE_ABSENT && !sema_want_dtype(sema, &args[4], "dtype", &map.dtype)) ||
        !sema_want_bool(sema, &args[5], "round", &map.rounds))
        return value_poison();
    NodeId id = build_online(sema_at(sema, call->span), call->op, operands[0], operands[1],
                             NODE_NONE, &map, &out);
    return sema_made(sema, call->span, args, id);
}

Value call_amax(Sema *sema, const Call *call) {
    NodeId operands[2];
    QuantizeMap map;
    Dtype out;
    if (!want_quantized(sema, call, 2, operands, &out, &map)) return value_poison();
    NodeId id = build_online(sema_at(sema, call->span), call->op, operands[0], operands[1],
                             NODE_NONE, &map, &out);
    return sema_made(sema, call->span, call->args, id);
}

Value call_einsum(Sema *sema, const Call *call) {
    enum { MAX_OPERANDS = 8 };
    static const char *const names[MAX_OPERANDS] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    NodeId xs[MAX_OPERANDS];
    uint32_t n = 0;
    ProductForm form;
    const Value *equation = &call->args[0];
    if (equation->kind != VALUE_STRING)
        return sema_error(sema, DIAG_BAD_ARGUMENT, equation->span,
                          "`equation` must be a string such as \"ij,jk->ik\", not %s",
                          value_describe(sema, equation));
    for (; n < MAX_OPERANDS && call->args[n + 1].kind != VALUE_ABSENT; n++)
        if (!sema_want_tensor(sema, &call->args[n + 1], names[n], &xs[n])) return value_poison();
    if (!want_form(sema, &call->args[MAX_OPERANDS + 1], &form)) return value_poison();
    NodeId id = build_einsum(sema_at(sema, call->span), equation->string, n, xs, form.precision,
                             form.has_out ? &form.out : NULL);
    return sema_made(sema, call->span, call->args, id);
}
