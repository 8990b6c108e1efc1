/* Elementwise ops, casts, reductions, matmul: dtype and shape rules, read from the op table. */
#include "front/sema_state.h"

#include <string.h>

/* The place of an expression in the graph's own source: the call, when inside another's def. */
static Span graph_span(const Sema *sema, Span span) {
    for (const Frame *frame = sema->frame; frame; frame = frame->caller) {
        if (frame->source == sema->graph->source) return span;
        span = frame->call_span;
    }
    return span;
}

NodeId sema_add_node(Sema *sema, Span span, Node node) {
    if (sema->stopped) return NODE_NONE;
    if (sema->graph->nodes.n >= MAX_NODES) {
        sema->stopped = true;
        sema_error(sema, DIAG_LIMIT, span, "graph of more than %d nodes", MAX_NODES);
        return NODE_NONE;
    }
    node.span = graph_span(sema, span);
    node.call = sema->call;
    NodeId id = graph_add(sema->graph, node);
    vec_push(sema->arena, &sema->graph->kernel_of, sema->kernel);
    return id;
}

Value sema_add_unary(Sema *sema, OpId op, Span span, NodeId arg, const Shape *shape,
                     const Attrs *attrs) {
    Node node = {.op = op,
                 .dtype = graph_node(sema->graph, arg)->dtype,
                 .shape = *shape,
                 .n_args = 1,
                 .args = &arg,
                 .attrs = *attrs};
    if (!sema_check_shape(sema, span, shape)) return value_poison();
    NodeId id = sema_add_node(sema, span, node);
    return id == NODE_NONE ? value_poison() : value_tensor(id, span);
}

NodeId sema_add_const(Sema *sema, Span span, Dtype dtype, double number) {
    Node node = {.op = OP_CONST, .dtype = dtype, .attrs.number = number};
    return sema_add_node(sema, span, node);
}

/* Elementwise. */

/* The dtype shared by args[first..]: of the tensors, or of the numbers when there is none. */
static bool common_dtype(Sema *sema, OpId op, Span span, uint32_t first, uint32_t n_args,
                         const Value *args, Dtype *dtype) {
    const Value *leader = NULL;
    for (uint32_t i = first; i < n_args; i++) {
        if (args[i].kind != VALUE_TENSOR) continue;
        Dtype other = graph_node(sema->graph, args[i].node)->dtype;
        if (leader && other != *dtype) {
            sema_error(sema, DIAG_DTYPE_MISMATCH, span, "operands of `%s` are %s and %s",
                       op_info(op)->name, dtype_name(*dtype), dtype_name(other));
            sema_note_tensor(sema, leader->node);
            sema_note_tensor(sema, args[i].node);
            diag_help(sema->diags, "Nothing is promoted silently: write cast(x, %s).",
                      dtype_name(*dtype));
            return false;
        }
        if (!leader) leader = &args[i];
        *dtype = other;
    }
    if (leader) return true;
    *dtype = value_default_dtype(&args[first]);
    for (uint32_t i = first + 1; i < n_args; i++)
        if (args[i].kind == VALUE_FLOAT && *dtype == DT_I32) *dtype = DT_F32;
    return true;
}

static void help_dtypes(Sema *sema, const OpInfo *info) {
    Text text = {.arena = sema->arena};
    for (int i = 0, n = 0; i < DT_COUNT; i++)
        if (dtype_in((Dtype)i, info->dtypes))
            text_printf(&text, "%s%s", n++ ? ", " : "", dtype_name((Dtype)i));
    diag_help(sema->diags, "`%s` takes %s; use cast(x, dtype).", info->name, text_str(&text));
}

static bool check_dtype(Sema *sema, OpId op, Span span, Dtype dtype) {
    const OpInfo *info = op_info(op);
    if (dtype_in(dtype, info->dtypes)) return true;
    sema_error(sema, DIAG_UNSUPPORTED_DTYPE, span, "`%s` does not take %s", info->name,
               dtype_name(dtype));
    help_dtypes(sema, info);
    return false;
}

static bool broadcast_args(Sema *sema, OpId op, Span span, uint32_t n_args, const NodeId *args,
                           Shape *shape) {
    *shape = (Shape){0};
    for (uint32_t i = 0; i < n_args; i++) {
        const Shape *other = &graph_node(sema->graph, args[i])->shape;
        if (shape_broadcast(sema->dims, shape, other)) continue;
        sema_error(sema, DIAG_SHAPE_MISMATCH, span, "shapes of `%s` do not broadcast: %s and %s",
                   op_info(op)->name, sema_shape_str(sema, shape), sema_shape_str(sema, other));
        for (uint32_t k = 0; k <= i; k++)
            if (graph_node(sema->graph, args[k])->op != OP_CONST) sema_note_tensor(sema, args[k]);
        return false;
    }
    return true;
}

static bool check_eltwise_args(Sema *sema, OpId op, uint32_t n_args, const Value *args) {
    for (uint32_t i = 0; i < n_args; i++) {
        if (args[i].kind == VALUE_POISON) return false;
        if (args[i].kind == VALUE_TENSOR || value_is_number(&args[i])) continue;
        sema_error(sema, DIAG_BAD_ARGUMENT, args[i].span,
                   "operand %u of `%s` must be a tensor or a number, not %s", i + 1,
                   op_info(op)->name, value_describe(sema, &args[i]));
        return false;
    }
    return true;
}

/* The first argument of a select. */
static bool condition(Sema *sema, OpId op, const Value *value, NodeId *node) {
    Dtype dtype = value->kind == VALUE_TENSOR ? graph_node(sema->graph, value->node)->dtype
                                              : value_default_dtype(value);
    if (dtype == DT_BOOL) return sema_as_tensor(sema, value, DT_BOOL, node);
    sema_error(sema, DIAG_DTYPE_MISMATCH, value->span, "the condition of `%s` is %s, not bool",
               op_info(op)->name, dtype_name(dtype));
    diag_help(sema->diags, "Compare it: `x != 0`.");
    return false;
}

Value sema_eltwise(Sema *sema, OpId op, Span span, uint32_t n_args, const Value *given) {
    const OpInfo *info = op_info(op);
    enum { MAX_ELTWISE_ARGS = 3 };
    Value args[MAX_ELTWISE_ARGS] = {0};
    NodeId nodes[MAX_ELTWISE_ARGS];
    memcpy(args, given, n_args * sizeof *args);
    if (!check_eltwise_args(sema, op, n_args, args)) return value_poison();
    if (n_args < info->max_args) {
        args[n_args++] = (Value){.kind = VALUE_FLOAT, .number = info->default_last, .span = span};
    }
    uint32_t first = info->result == RESULT_SELECT;
    if (first && !condition(sema, op, &args[0], &nodes[0])) return value_poison();
    Node node = {.op = op, .n_args = n_args, .args = nodes};
    if (!common_dtype(sema, op, span, first, n_args, args, &node.dtype)) return value_poison();
    if (!check_dtype(sema, op, span, node.dtype)) return value_poison();
    for (uint32_t i = first; i < n_args; i++)
        if (!sema_as_tensor(sema, &args[i], node.dtype, &nodes[i])) return value_poison();
    if (!broadcast_args(sema, op, span, n_args, nodes, &node.shape)) return value_poison();
    if (info->result == RESULT_BOOL) node.dtype = DT_BOOL;
    if (!sema_check_shape(sema, span, &node.shape)) return value_poison();
    NodeId id = sema_add_node(sema, span, node);
    return id == NODE_NONE ? value_poison() : value_tensor(id, span);
}

/* Numbers and casts. */

static bool want_dtype(Sema *sema, const Value *value, Dtype *dtype) {
    if (value->kind == VALUE_DTYPE) {
        *dtype = value->dtype;
        return true;
    }
    if (value->kind != VALUE_POISON)
        sema_error(sema, DIAG_BAD_ARGUMENT, value->span, "`dtype` must be a dtype, not %s",
                   value_describe(sema, value));
    return false;
}

Value call_const(Sema *sema, const Call *call) {
    Dtype dtype;
    const Value *value = &call->args[0];
    if (value->kind == VALUE_POISON || !want_dtype(sema, &call->args[1], &dtype))
        return value_poison();
    if (!value_is_number(value))
        return sema_error(sema, DIAG_BAD_ARGUMENT, value->span, "`const` takes a number, not %s",
                          value_describe(sema, value));
    NodeId id;
    Value at = *value;
    at.span = call->span;
    return sema_as_tensor(sema, &at, dtype, &id) ? value_tensor(id, call->span) : value_poison();
}

Value call_cast(Sema *sema, const Call *call) {
    Dtype dtype;
    double number;
    const Value *value = &call->args[0];
    if (!want_dtype(sema, &call->args[1], &dtype)) return value_poison();
    if (value_is_number(value) && sema_literal(sema, value, dtype, true, &number)) {
        NodeId id = sema_add_const(sema, call->span, dtype, number);
        return id == NODE_NONE ? value_poison() : value_tensor(id, call->span);
    }
    NodeId arg;
    if (!sema_want_tensor(sema, value, "x", &arg)) return value_poison();
    const Node *from = graph_node(sema->graph, arg);
    if (from->dtype == dtype) return value_tensor(arg, call->span);
    Node node = {.op = OP_CAST, .dtype = dtype, .shape = from->shape, .n_args = 1, .args = &arg};
    if (!sema_check_shape(sema, call->span, &node.shape)) return value_poison();
    NodeId id = sema_add_node(sema, call->span, node);
    return id == NODE_NONE ? value_poison() : value_tensor(id, call->span);
}

/* Reductions. */

Value call_reduce(Sema *sema, const Call *call) {
    NodeId arg;
    Attrs attrs = {0};
    if (!sema_want_tensor(sema, &call->args[0], "x", &arg)) return value_poison();
    const Node *node = graph_node(sema->graph, arg);
    if (!check_dtype(sema, call->op, call->span, node->dtype)) return value_poison();
    Shape shape = node->shape;
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
    if (!sema_want_axes(sema, &call->args[1], "axis", shape.rank, &attrs.axes) ||
        !sema_want_bool(sema, &call->args[2], "keep", &attrs.keep))
        return value_poison();
    if (attrs.axes == 0) return value_tensor(arg, call->span); /* over nothing: each is its own */
    shape = shape_reduced(sema->dims, &shape, attrs.axes, attrs.keep);
    return sema_add_unary(sema, call->op, call->span, arg, &shape, &attrs);
}

Value call_argreduce(Sema *sema, const Call *call) {
    NodeId arg;
    uint32_t axis = 0;
    Attrs attrs = {0};
    if (!sema_want_tensor(sema, &call->args[0], "x", &arg)) return value_poison();
    const Node *node = graph_node(sema->graph, arg);
    if (!check_dtype(sema, call->op, call->span, node->dtype)) return value_poison();
    Node result = {.op = call->op, .dtype = DT_I32, .n_args = 1, .args = &arg};
    Shape shape = node->shape;
    if (call->args[1].kind == VALUE_ABSENT && shape.rank != 1)
        return sema_error(sema, DIAG_BAD_AXIS, call->span,
                          "`%s` needs `axis=` for a tensor of rank %u", call->name, shape.rank);
    if (call->args[1].kind != VALUE_ABSENT &&
        !sema_want_axis(sema, &call->args[1], "axis", shape.rank, &axis))
        return value_poison();
    if (!sema_want_bool(sema, &call->args[2], "keep", &attrs.keep)) return value_poison();
    attrs.axes = 1u << axis;
    result.attrs = attrs;
    result.shape = shape_reduced(sema->dims, &shape, attrs.axes, attrs.keep);
    NodeId id = sema_add_node(sema, call->span, result);
    return id == NODE_NONE ? value_poison() : value_tensor(id, call->span);
}

/* Matmul. */

/* A rank-1 operand as a matrix: a row on the left, a column on the right. */
static bool as_matrix(Sema *sema, Span span, NodeId *node, bool is_left) {
    const Shape shape = graph_node(sema->graph, *node)->shape;
    if (shape.rank != 1) return true;
    DimId one = dim_const(sema->dims, 1);
    Shape matrix = {.rank = 2, .dims = {is_left ? one : shape.dims[0], shape.dims[0]}};
    if (!is_left) matrix.dims[1] = one;
    Value value = sema_reshape_to(sema, span, *node, &matrix);
    *node = value.node;
    return value.kind == VALUE_TENSOR;
}

static Value matmul_mismatch(Sema *sema, Span span, NodeId a, NodeId b, const char *what) {
    sema_error(sema, DIAG_SHAPE_MISMATCH, span, "%s of `@` differ: %s and %s", what,
               sema_shape_str(sema, &graph_node(sema->graph, a)->shape),
               sema_shape_str(sema, &graph_node(sema->graph, b)->shape));
    sema_note_tensor(sema, a);
    sema_note_tensor(sema, b);
    return value_poison();
}

/* The product without the row of a vector on the left, the column of one on the right. */
static Value drop_vector_axes(Sema *sema, Span span, NodeId product, bool row, bool column) {
    const Shape from = graph_node(sema->graph, product)->shape;
    Shape to = {0};
    for (uint32_t k = 0; k < from.rank; k++) {
        bool is_dropped = (row && k + 2 == from.rank) || (column && k + 1 == from.rank);
        if (!is_dropped) to.dims[to.rank++] = from.dims[k];
    }
    return sema_reshape_to(sema, span, product, &to);
}

/* The result's shape: broadcast leading axes, then rows of a and columns of b. */
static bool matmul_shape(Sema *sema, const Shape *a, const Shape *b, Shape *shape) {
    Shape batch_a = *a, batch_b = *b;
    batch_a.rank -= 2;
    batch_b.rank -= 2;
    if (!shape_broadcast(sema->dims, &batch_a, &batch_b)) return false;
    *shape = (Shape){.rank = batch_a.rank + 2};
    for (uint32_t k = 0; k < batch_a.rank; k++) shape->dims[k] = batch_a.dims[k];
    shape->dims[batch_a.rank] = a->dims[a->rank - 2];
    shape->dims[batch_a.rank + 1] = b->dims[b->rank - 1];
    return true;
}

static bool want_precision(Sema *sema, const Value *value, Dtype dtype, Precision *precision) {
    *precision = PRECISION_FULL;
    if (value->kind == VALUE_ABSENT) return true;
    if (value->kind == VALUE_POISON) return false;
    while (value->kind == VALUE_STRING && *precision < PRECISION_COUNT &&
           strcmp(value->string, precision_name(*precision)) != 0)
        ++*precision;
    if (value->kind != VALUE_STRING || *precision == PRECISION_COUNT) {
        sema_error(sema, DIAG_BAD_ARGUMENT, value->span,
                   "`precision` must be \"full\" or \"tf32\"%s%s",
                   value->kind == VALUE_STRING ? "" : ", not ",
                   value->kind == VALUE_STRING ? "" : value_describe(sema, value));
        return false;
    }
    if (*precision == PRECISION_FULL || dtype == DT_F32) return true;
    sema_error(sema, DIAG_UNSUPPORTED_DTYPE, value->span,
               "`precision=\"%s\"` is for operands of f32, not %s", precision_name(*precision),
               dtype_name(dtype));
    return false;
}

Value call_matmul(Sema *sema, const Call *call) {
    NodeId args[2], given[2];
    Span span = call->span;
    if (!sema_want_tensor(sema, &call->args[0], "a", &args[0]) ||
        !sema_want_tensor(sema, &call->args[1], "b", &args[1]))
        return value_poison();
    given[0] = args[0], given[1] = args[1];
    Node node = {.op = call->op, .n_args = 2, .args = args};
    uint32_t rank_a = graph_node(sema->graph, args[0])->shape.rank;
    uint32_t rank_b = graph_node(sema->graph, args[1])->shape.rank;
    if (!common_dtype(sema, call->op, span, 0, 2, call->args, &node.dtype) ||
        !check_dtype(sema, call->op, span, node.dtype) ||
        !want_precision(sema, &call->args[2], node.dtype, &node.attrs.precision))
        return value_poison();
    if (rank_a == 0 || rank_b == 0) {
        sema_error(sema, DIAG_SHAPE_MISMATCH, span, "an operand of `@` is a scalar");
        diag_help(sema->diags, "Write `*` to scale.");
        return value_poison();
    }
    if (!as_matrix(sema, span, &args[0], true) || !as_matrix(sema, span, &args[1], false))
        return value_poison();
    Shape a = graph_node(sema->graph, args[0])->shape, b = graph_node(sema->graph, args[1])->shape;
    if (a.dims[a.rank - 1] != b.dims[b.rank - 2])
        return matmul_mismatch(sema, span, given[0], given[1], "contracted extents");
    if (!matmul_shape(sema, &a, &b, &node.shape))
        return matmul_mismatch(sema, span, given[0], given[1], "leading axes");
    if (!sema_check_shape(sema, span, &node.shape)) return value_poison();
    NodeId id = sema_add_node(sema, span, node);
    if (id == NODE_NONE) return value_poison();
    return drop_vector_axes(sema, span, id, rank_a == 1, rank_b == 1);
}
