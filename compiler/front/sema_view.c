/* Views: transpose, reshape, expand, pad, gather, concat, split, iota, and questions about shapes.
 * What changes nothing adds no node. */
#include "front/sema_state.h"

#include <string.h>

bool sema_check_shape(Sema *sema, Span span, const Shape *shape) {
    DimId n_bytes = dim_const(sema->dims, 8); /* of the widest dtype, so that casts are safe */
    for (uint32_t k = 0; k < shape->rank; k++) {
        DimId dim = shape->dims[k];
        if (dim != DIM_NONE && dim_lo(sema->dims, dim) < 0) {
            bool is_proved = dim_prove_le(sema->dims, dim_const(sema->dims, 0), dim);
            sema_error(sema, DIAG_BAD_DIM, span,
                       is_proved ? "the terms of extent `%s`, each by itself, reach down to %lld"
                                 : "extent `%s` can be negative: down to %lld",
                       dim_str(sema->dims, sema->arena, dim), (long long)dim_lo(sema->dims, dim));
            if (is_proved) diag_help(sema->diags, "Narrow the dims' ranges until they do not.");
            return false;
        }
        bool is_empty = dim && dim_equals_const(sema->dims, dim, 0); /* strides pass the others */
        n_bytes = !dim ? DIM_NONE : is_empty ? n_bytes : dim_mul(sema->dims, n_bytes, dim);
    }
    if (n_bytes != DIM_NONE) return true;
    sema_error(sema, DIAG_DIM_OVERFLOW, span, "a tensor of shape %s can pass 2^62 bytes",
               sema_shape_str(sema, shape));
    return false;
}

static bool want_node(Sema *sema, const Value *value, const char *what, NodeId *node,
                      Shape *shape) {
    if (!sema_want_tensor(sema, value, what, node)) return false;
    *shape = graph_node(sema->graph, *node)->shape;
    return true;
}

Value call_transpose(Sema *sema, const Call *call) {
    NodeId arg;
    Shape from, to;
    Attrs attrs = {0};
    if (!want_node(sema, &call->args[0], "x", &arg, &from)) return value_poison();
    const Value *perm = &call->args[1];
    if (perm->kind != VALUE_ABSENT && (perm->kind != VALUE_LIST || perm->n_items != from.rank))
        return sema_error(sema, DIAG_BAD_AXIS, perm->span,
                          "`perm` must list the %u axes of %s, not %s", from.rank,
                          sema_shape_str(sema, &from), value_describe(sema, perm));
    to = from;
    bool is_identity = true;
    uint32_t seen = 0;
    for (uint32_t k = 0; k < from.rank; k++) {
        uint32_t axis = from.rank - 1 - k;
        if (perm->kind == VALUE_LIST &&
            !sema_want_axis(sema, &perm->items[k], "perm", from.rank, &axis))
            return value_poison();
        if (seen >> axis & 1)
            return sema_error(sema, DIAG_BAD_AXIS, perm->items[k].span,
                              "axis %u is given twice in `perm`", axis);
        seen |= 1u << axis;
        attrs.perm[k] = (uint8_t)axis;
        to.dims[k] = from.dims[axis];
        is_identity = is_identity && axis == k;
    }
    if (is_identity) return value_tensor(arg, call->span);
    return sema_add_unary(sema, call->op, call->span, arg, &to, &attrs);
}

Value sema_reshape_to(Sema *sema, Span span, NodeId arg, const Shape *shape) {
    if (shape_equal(&graph_node(sema->graph, arg)->shape, shape)) return value_tensor(arg, span);
    return sema_add_unary(sema, OP_RESHAPE, span, arg, shape, &(Attrs){0});
}

/* The largest number that divides every coefficient of the dim and `with`. */
static int64_t common_factor(const DimTab *dims, DimId dim, int64_t with) {
    int64_t factor = with;
    for (uint32_t i = 0; i <= dim_n_terms(dims, dim); i++) {
        int64_t c = i ? dim_term(dims, dim, i - 1).coefficient : dim_constant_part(dims, dim);
        while (c) {
            int64_t rest = factor % c;
            factor = c;
            c = rest;
        }
        if (factor < 0) factor = -factor;
    }
    return factor;
}

/* total / divisor, DIM_NONE unless exact for all values; in lowest terms. */
static DimId divide_exactly(DimTab *dims, DimId total, int64_t divisor) {
    int64_t factor = common_factor(dims, total, divisor);
    if (divisor < 1 || factor < 1) return DIM_NONE;
    DimId numerator = dim_exact_div(dims, total, dim_const(dims, factor));
    DimId rest = dim_const(dims, divisor / factor);
    DimId quotient = numerator ? dim_div(dims, numerator, rest) : DIM_NONE;
    if (!quotient) return DIM_NONE;
    return dim_prove_equal(dims, dim_mul(dims, quotient, rest), numerator) ? quotient : DIM_NONE;
}

/* The extent for axis `inferred` that makes `to` hold `total` elements, or DIM_NONE. Constant
 * extents that do not divide at once are put together and divided last. */
static DimId infer_extent(DimTab *dims, DimId total, const Shape *to, uint32_t inferred) {
    DimId rest = total, constant = dim_const(dims, 1);
    int64_t value;
    for (uint32_t k = 0; k < to->rank && rest; k++) {
        if (k == inferred) continue;
        if (dim_equals_const(dims, to->dims[k], 0)) return DIM_NONE;
        DimId quotient = dim_exact_div(dims, rest, to->dims[k]);
        if (quotient)
            rest = quotient;
        else if (dim_is_const(dims, to->dims[k], &value))
            constant = dim_mul(dims, constant, to->dims[k]);
        else
            return DIM_NONE;
    }
    if (!rest || !constant || !dim_is_const(dims, constant, &value)) return DIM_NONE;
    return divide_exactly(dims, rest, value);
}

static Value bad_reshape(Sema *sema, const Call *call, NodeId arg, const Shape *from,
                         const Shape *to) {
    Text text = {.arena = sema->arena};
    for (uint32_t k = 0; k < to->rank; k++)
        text_printf(&text, "%s%s", k ? ", " : "", dim_str(sema->dims, sema->arena, to->dims[k]));
    sema_error(sema, DIAG_BAD_RESHAPE, call->span, "cannot reshape %s into (%s): %s",
               sema_shape_str(sema, from), text_str(&text), "element counts differ");
    sema_note_tensor(sema, arg);
    return value_poison();
}

Value call_reshape(Sema *sema, const Call *call) {
    NodeId arg;
    Shape from, to = {0};
    if (!want_node(sema, &call->args[0], "x", &arg, &from) ||
        !sema_want_dims(sema, &call->args[1], "shape", &to.rank, to.dims))
        return value_poison();
    DimId known = dim_const(sema->dims, 1), total = shape_n_elems(sema->dims, &from);
    uint32_t inferred = UINT32_MAX;
    for (uint32_t k = 0; k < to.rank; k++) {
        if (!dim_equals_const(sema->dims, to.dims[k], -1)) {
            known = dim_mul(sema->dims, known, to.dims[k]);
            continue;
        }
        if (inferred != UINT32_MAX)
            return sema_error(sema, DIAG_BAD_RESHAPE, call->args[1].items[k].span,
                              "only one extent may be -1");
        inferred = k;
    }
    if (inferred != UINT32_MAX) {
        DimId extent = infer_extent(sema->dims, total, &to, inferred);
        if (!extent) return bad_reshape(sema, call, arg, &from, &to);
        to.dims[inferred] = extent;
    } else if (!known || !dim_prove_equal(sema->dims, known, total)) {
        return bad_reshape(sema, call, arg, &from, &to);
    }
    return sema_reshape_to(sema, call->span, arg, &to);
}

Value call_expand(Sema *sema, const Call *call) {
    NodeId arg;
    Shape from, to = {0};
    if (!want_node(sema, &call->args[0], "x", &arg, &from) ||
        !sema_want_dims(sema, &call->args[1], "shape", &to.rank, to.dims))
        return value_poison();
    Shape joint = to;
    if (!shape_broadcast(sema->dims, &joint, &from) || !shape_equal(&joint, &to)) {
        sema_error(sema, DIAG_SHAPE_MISMATCH, call->span, "cannot expand %s to %s",
                   sema_shape_str(sema, &from), sema_shape_str(sema, &to));
        sema_note_tensor(sema, arg);
        return value_poison();
    }
    if (shape_equal(&from, &to)) return value_tensor(arg, call->span);
    return sema_add_unary(sema, call->op, call->span, arg, &to, &(Attrs){0});
}

bool sema_want_per_axis(Sema *sema, const Call *call, uint32_t at, const char *what, uint32_t rank,
                        DimId *dims) {
    uint32_t n;
    if (!sema_want_dims(sema, &call->args[at], what, &n, dims)) return false;
    if (n == rank) return true;
    sema_error(sema, DIAG_BAD_ARGUMENT, call->args[at].span,
               "`%s` lists %u numbers for a tensor of rank %u", what, n, rank);
    return false;
}

static bool check_pad(Sema *sema, const Call *call, uint32_t at, const char *what, DimId amount) {
    if (dim_lo(sema->dims, amount) >= 0) return true;
    sema_error(sema, DIAG_BAD_ARGUMENT, call->args[at].span, "`%s` can be negative: %s", what,
               dim_str(sema->dims, sema->arena, amount));
    diag_help(sema->diags, "Write a slice to take elements away.");
    return false;
}

Value call_pad(Sema *sema, const Call *call) {
    NodeId arg;
    Shape from;
    DimId high[MAX_RANK];
    Attrs attrs = {0};
    if (!want_node(sema, &call->args[0], "x", &arg, &from) ||
        !sema_want_per_axis(sema, call, 1, "low", from.rank, attrs.begin) ||
        !sema_want_per_axis(sema, call, 2, "high", from.rank, high))
        return value_poison();
    Shape to = from;
    for (uint32_t k = 0; k < from.rank; k++) {
        if (!check_pad(sema, call, 1, "low", attrs.begin[k]) ||
            !check_pad(sema, call, 2, "high", high[k]))
            return value_poison();
        DimId inner = dim_add(sema->dims, attrs.begin[k], from.dims[k]);
        to.dims[k] = dim_add(sema->dims, inner, high[k]);
    }
    const Value *value = &call->args[3];
    if (value->kind != VALUE_ABSENT && !value_is_number(value))
        return sema_error(sema, DIAG_BAD_ARGUMENT, value->span, "`value` must be a number, not %s",
                          value_describe(sema, value));
    Dtype dtype = graph_node(sema->graph, arg)->dtype;
    if (value->kind != VALUE_ABSENT && !sema_literal(sema, value, dtype, false, &attrs.number))
        return value_poison();
    if (shape_equal(&from, &to)) return value_tensor(arg, call->span);
    return sema_add_unary(sema, call->op, call->span, arg, &to, &attrs);
}

Value call_gather(Sema *sema, const Call *call) {
    NodeId args[2];
    Shape data, rows, to = {0};
    uint32_t axis = 0;
    if (!want_node(sema, &call->args[0], "x", &args[0], &data) ||
        !want_node(sema, &call->args[1], "indices", &args[1], &rows))
        return value_poison();
    Dtype dtype = graph_node(sema->graph, args[1])->dtype;
    if (dtype != DT_I32)
        return sema_error(sema, DIAG_UNSUPPORTED_DTYPE, call->args[1].span,
                          "indices of `gather` must be i32, not %s", dtype_name(dtype));
    if (data.rank == 0)
        return sema_error(sema, DIAG_BAD_AXIS, call->args[0].span,
                          "a scalar has no axis to gather");
    if (call->args[2].kind != VALUE_ABSENT &&
        !sema_want_axis(sema, &call->args[2], "axis", data.rank, &axis))
        return value_poison();
    if (data.rank - 1 + rows.rank > MAX_RANK)
        return sema_error(sema, DIAG_LIMIT, call->span, "rank %u, but at most %d is supported",
                          data.rank - 1 + rows.rank, MAX_RANK);
    for (uint32_t k = 0; k < axis; k++) to.dims[to.rank++] = data.dims[k];
    for (uint32_t k = 0; k < rows.rank; k++) to.dims[to.rank++] = rows.dims[k];
    for (uint32_t k = axis + 1; k < data.rank; k++) to.dims[to.rank++] = data.dims[k];
    if (!sema_check_shape(sema, call->span, &to)) return value_poison();
    Node node = {.op = call->op,
                 .dtype = graph_node(sema->graph, args[0])->dtype,
                 .shape = to,
                 .n_args = 2,
                 .args = args,
                 .attrs.axis = (int32_t)axis};
    NodeId id = sema_add_node(sema, call->span, node);
    return id == NODE_NONE ? value_poison() : value_tensor(id, call->span);
}

Value call_iota(Sema *sema, const Call *call) {
    Shape shape = {0};
    uint32_t axis = 0;
    if (!sema_want_dims(sema, &call->args[0], "shape", &shape.rank, shape.dims))
        return value_poison();
    if (call->args[1].kind == VALUE_ABSENT && shape.rank != 1)
        return sema_error(sema, DIAG_BAD_AXIS, call->span, "`iota` of rank %u needs `axis=`",
                          shape.rank);
    if (call->args[1].kind != VALUE_ABSENT &&
        !sema_want_axis(sema, &call->args[1], "axis", shape.rank, &axis))
        return value_poison();
    if (!sema_check_shape(sema, call->span, &shape)) return value_poison();
    Node node = {.op = OP_IOTA, .dtype = DT_I32, .shape = shape, .attrs.axis = (int32_t)axis};
    NodeId id = sema_add_node(sema, call->span, node);
    return id == NODE_NONE ? value_poison() : value_tensor(id, call->span);
}

/* Concat. */

static Value concat_mismatch(Sema *sema, const Call *call, NodeId a, NodeId b, DiagId id,
                             const char *what) {
    sema_error(sema, id, call->span, "%s of `concat` differ: %s and %s", what,
               sema_node_type_str(sema, a), sema_node_type_str(sema, b));
    sema_note_tensor(sema, a);
    sema_note_tensor(sema, b);
    return value_poison();
}

static bool fits_beside(const Shape *a, const Shape *b, uint32_t axis) {
    if (a->rank != b->rank) return false;
    for (uint32_t k = 0; k < a->rank; k++)
        if (k != axis && a->dims[k] != b->dims[k]) return false;
    return true;
}

static bool concat_args(Sema *sema, const Call *call, NodeId *nodes) {
    const Value *list = &call->args[0];
    for (uint32_t i = 0; i < list->n_items; i++)
        if (!sema_want_tensor(sema, &list->items[i], "xs", &nodes[i])) return false;
    return true;
}

enum { CONCAT_FAN = 24 }; /* what one kernel reads comfortably; longer lists become trees */

/* The concatenation of `n` checked nodes; `model` has everything but the arguments and the extent
 * of the joined axis. */
static NodeId join_nodes(Sema *sema, Span span, Node model, NodeId *nodes, uint32_t n) {
    uint32_t axis = (uint32_t)model.attrs.axis;
    while (n > CONCAT_FAN) {
        uint32_t n_joined = 0;
        for (uint32_t i = 0; i < n; i += CONCAT_FAN) {
            uint32_t n_part = n - i < CONCAT_FAN ? n - i : CONCAT_FAN;
            NodeId part = n_part == 1 ? nodes[i] : join_nodes(sema, span, model, nodes + i, n_part);
            if (part == NODE_NONE) return NODE_NONE;
            nodes[n_joined++] = part;
        }
        n = n_joined;
    }
    model.n_args = n;
    model.args = nodes;
    model.shape.dims[axis] = dim_const(sema->dims, 0);
    for (uint32_t i = 0; i < n; i++)
        model.shape.dims[axis] = dim_add(sema->dims, model.shape.dims[axis],
                                         graph_node(sema->graph, nodes[i])->shape.dims[axis]);
    return sema_add_node(sema, span, model);
}

Value call_concat(Sema *sema, const Call *call) {
    const Value *list = &call->args[0];
    if (list->kind == VALUE_POISON) return *list;
    if (list->kind != VALUE_LIST || list->n_items == 0 || list->n_items > MAX_CONCAT_ARGS)
        return sema_error(sema, DIAG_BAD_ARGUMENT, list->span,
                          "`concat` takes a list of 1 to %d tensors, not %s", MAX_CONCAT_ARGS,
                          value_describe(sema, list));
    NodeId *nodes = arena_array(sema->arena, NodeId, list->n_items);
    if (!concat_args(sema, call, nodes)) return value_poison();
    const Node first = *graph_node(sema->graph, nodes[0]);
    uint32_t axis = 0;
    if (first.shape.rank == 0)
        return sema_error(sema, DIAG_BAD_AXIS, list->span, "scalars have no axis to concat along");
    if (call->args[1].kind != VALUE_ABSENT &&
        !sema_want_axis(sema, &call->args[1], "axis", first.shape.rank, &axis))
        return value_poison();
    Node node = {
        .op = call->op, .dtype = first.dtype, .shape = first.shape, .attrs.axis = (int32_t)axis};
    for (uint32_t i = 1; i < list->n_items; i++) {
        const Node *other = graph_node(sema->graph, nodes[i]);
        if (other->dtype != first.dtype)
            return concat_mismatch(sema, call, nodes[0], nodes[i], DIAG_DTYPE_MISMATCH, "dtypes");
        if (!fits_beside(&first.shape, &other->shape, axis))
            return concat_mismatch(sema, call, nodes[0], nodes[i], DIAG_SHAPE_MISMATCH,
                                   "extents beside the joined axis");
        node.shape.dims[axis] = dim_add(sema->dims, node.shape.dims[axis], other->shape.dims[axis]);
    }
    if (!sema_check_shape(sema, call->span, &node.shape)) return value_poison();
    if (list->n_items == 1) return value_tensor(nodes[0], call->span);
    NodeId id = join_nodes(sema, call->span, node, nodes, list->n_items);
    return id == NODE_NONE ? value_poison() : value_tensor(id, call->span);
}
