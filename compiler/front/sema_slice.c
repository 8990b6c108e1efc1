/* Arguments of subscripts, slice and split. */
#include "front/sema_state.h"

#include <string.h>

/* A bound of a subscript. A bound that is always negative counts from the end. */
static bool want_bound(Sema *sema, const Ast *ast, const Value *value, DimId extent, DimId *bound) {
    if (value->kind == VALUE_POISON) return false;
    if (value->kind != VALUE_INT) {
        sema_error(sema, DIAG_BAD_ARGUMENT, ast->span,
                   "a subscript must be an integer or a dim expression, not %s",
                   value_describe(sema, value));
        if (value->kind == VALUE_TENSOR)
            diag_help(sema->diags, "To pick rows by a tensor write gather(x, indices, axis=0); a "
                                   "part of x that begins at a scalar, dynamic_slice.");
        if (value->kind == VALUE_LIST)
            diag_help(sema->diags, "To pick rows by a list write gather(x, tensor([..]), axis=0).");
        return false;
    }
    if (build_bound(sema->builder, value->dim, extent, bound)) return true;
    sema_report(sema, ast->span, NULL);
    return false;
}

/* What NumPy and PyTorch have for a new axis. */
static bool is_new_axis(const Sema *sema, const Ast *ast) {
    bool is_name = ast->kind == AST_NAME && !sema_find(sema, ast->name);
    return ast->kind == AST_NONE ||
           (is_name && (strcmp(ast->name, "None") == 0 || strcmp(ast->name, "newaxis") == 0));
}

static bool refuse_new_axis(Sema *sema, uint32_t axis, const Ast *ast) {
    sema_error(sema, DIAG_BAD_ARGUMENT, ast->span, "a subscript adds no axis");
    diag_help(sema->diags, "Write unsqueeze(x, %u) for a new axis %u of extent 1.", axis, axis);
    return false;
}

static bool eval_bound(Sema *sema, const Ast *ast, DimId extent, DimId fallback, DimId *bound) {
    *bound = fallback;
    if (!ast) return true;
    Value value = sema_eval(sema, ast);
    return want_bound(sema, ast, &value, extent, bound);
}

static bool eval_step(Sema *sema, const Ast *ast, int64_t *step) {
    *step = 1;
    if (!ast) return true;
    Value value = sema_eval(sema, ast);
    if (value.kind == VALUE_POISON) return false;
    if (value_const_int(sema, &value, step) && build_is_step(*step)) return true;
    sema_error(sema, DIAG_BAD_ARGUMENT, ast->span, "a step must be an integer other than 0, not %s",
               value_describe(sema, &value));
    return false;
}

/* An index that is known at run time: an integer scalar. */
static bool is_run_time_index(const Sema *sema, const Value *value) {
    const Node *node = value->kind == VALUE_TENSOR ? sema_node(sema, value->node) : NULL;
    return node && node->shape.rank == 0 && dtype_in(node->dtype, DTS_INDEX);
}

/* `indices`, per axis of the tensor: an index that is known at run time; NODE_NONE: none is. */
static bool slice_index(Sema *sema, Slicing *s, uint32_t axis, const Ast *ast, NodeId *indices) {
    DimId at;
    if (is_new_axis(sema, ast)) return refuse_new_axis(sema, axis, ast);
    Value value = sema_eval(sema, ast);
    if (is_run_time_index(sema, &value)) {
        indices[axis] = value.node;
        return true;
    }
    if (!want_bound(sema, ast, &value, s->from.dims[axis], &at)) return false;
    if (build_slice_index(sema->builder, s, axis, at)) return true;
    sema_report(sema, ast->span, NULL);
    return false;
}

/* Whether two nodes compute the same integer: they are the same, or equal ops of such nodes. */
static bool is_same_number(const Sema *sema, NodeId a, NodeId b, int depth) {
    const Node *x = sema_node(sema, a), *y = sema_node(sema, b);
    if (a == b) return true;
    if (depth == 0 || x->op != y->op || x->dtype != y->dtype || x->n_args != y->n_args)
        return false;
    OpClass cls = op_info(x->op)->cls;
    if (graph_is_literal(sema->builder->graph, a)) return x->attrs.whole == y->attrs.whole;
    if (cls != CLASS_ELTWISE && cls != CLASS_CAST) return false;
    for (uint32_t i = 0; i < x->n_args; i++)
        if (!is_same_number(sema, x->args[i], y->args[i], depth - 1)) return false;
    return true;
}

/* Takes a node apart into another one and a number that is added to it. */
static NodeId without_number(const Sema *sema, NodeId id, int64_t *number) {
    const Node *node = sema_node(sema, id);
    const Graph *graph = sema->builder->graph;
    *number = 0;
    if (node->op != OP_ADD && node->op != OP_SUB) return id;
    bool is_right = graph_is_literal(graph, node->args[1]);
    if (!is_right && (node->op == OP_SUB || !graph_is_literal(graph, node->args[0]))) return id;
    *number = sema_node(sema, node->args[is_right])->attrs.whole;
    if (node->op == OP_SUB) *number = -*number;
    return node->args[!is_right];
}

/* `x[t:t + 2]` with an index t that is known at run time: `at` gets the indices of the part, as
 * many as lie between the bounds, which must be known while compiling. */
static bool run_time_range(Sema *sema, const Ast *ast, const Value *begin, NodeId *at) {
    enum { MAX_DEPTH = 16 };
    int64_t first, last;
    Value end = sema_eval(sema, ast->items[1]);
    if (end.kind == VALUE_POISON) return false;
    bool is_known = is_run_time_index(sema, &end);
    NodeId from = without_number(sema, begin->node, &first);
    NodeId to = is_known ? without_number(sema, end.node, &last) : from;
    is_known = is_known && is_same_number(sema, from, to, MAX_DEPTH) && last >= first;
    if (!is_known) {
        sema_error(sema, DIAG_BAD_ARGUMENT, ast->span,
                   "how long this part is must be known while compiling");
        diag_help(sema->diags, "Write its end as its begin and a number: x[t:t + 2].");
        return false;
    }
    DimId n = dim_const(sema->dims, last - first);
    Builder *b = sema_at(sema, ast->span);
    NodeId steps = build_iota(b, (DimList){1, &n}, 0, sema_node(sema, begin->node)->dtype);
    const Operand sum[2] = {operand_tensor(begin->node), operand_tensor(steps)};
    *at = build_eltwise(b, OP_ADD, 2, sum);
    if (*at == NODE_NONE) sema_report(sema, ast->span, NULL);
    return *at != NODE_NONE;
}

/* `indices` as in slice_index. */
static bool slice_range(Sema *sema, Slicing *s, uint32_t axis, const Ast *ast, NodeId *indices) {
    Value begin_value = {.kind = VALUE_ABSENT};
    if (ast->items[0]) begin_value = sema_eval(sema, ast->items[0]);
    if (ast->items[1] && !ast->items[2] && is_run_time_index(sema, &begin_value))
        return run_time_range(sema, ast, &begin_value, &indices[axis]);
    DimId extent = s->from.dims[axis], begin, end, zero = dim_const(sema->dims, 0);
    int64_t step;
    if (!eval_step(sema, ast->items[2], &step)) return false;
    DimId before = dim_const(sema->dims, -1), last = dim_add(sema->dims, extent, before);
    begin = step > 0 ? zero : last;
    if ((ast->items[0] && !want_bound(sema, ast->items[0], &begin_value, extent, &begin)) ||
        !eval_bound(sema, ast->items[1], extent, step > 0 ? extent : before, &end))
        return false;
    if (build_slice_range(sema->builder, s, axis, begin, end, step)) return true;
    const Value bounds[2] = {{.span = ast->items[0] ? ast->items[0]->span : ast->span},
                             {.span = ast->items[1] ? ast->items[1]->span : ast->span}};
    sema_report(sema, ast->span, bounds);
    return false;
}

/* The number of axes that a `...` stands for; false when the subscripts do not fit the rank. */
static bool count_ellipsis(Sema *sema, const Ast *ast, uint32_t rank, uint32_t *n_skipped) {
    uint32_t n = 0, n_ellipses = 0;
    for (uint32_t i = 1; i < ast->n_items; i++) {
        if (ast->items[i]->kind == AST_ELLIPSIS)
            n_ellipses++;
        else
            n++;
    }
    if (n_ellipses <= 1 && n <= rank) {
        *n_skipped = rank - n;
        return true;
    }
    if (n_ellipses > 1)
        sema_error(sema, DIAG_BAD_ARGUMENT, ast->span, "more than one `...` in a subscript");
    else
        sema_error(sema, DIAG_BAD_AXIS, ast->span, "%u subscripts for a tensor of rank %u", n,
                   rank);
    return false;
}

/* The axes before axis `k` that the result of the slice lacks. */
static uint32_t n_dropped(uint32_t dropped, uint32_t k) {
    uint32_t n = 0;
    while (k-- > 0) n += dropped >> k & 1;
    return n;
}

Value sema_subscript(Sema *sema, const Ast *ast, const Value *base) {
    Slicing s = build_slicing(sema->builder, base->node);
    uint32_t n_skipped, axis = 0;
    NodeId indices[MAX_RANK];
    for (uint32_t k = 0; k < MAX_RANK; k++) indices[k] = NODE_NONE;
    if (!count_ellipsis(sema, ast, s.from.rank, &n_skipped)) return value_poison();
    for (uint32_t i = 1; i < ast->n_items; i++) {
        const Ast *item = ast->items[i];
        if (item->kind == AST_ELLIPSIS) {
            axis += n_skipped;
            continue;
        }
        bool ok = item->kind == AST_RANGE ? slice_range(sema, &s, axis, item, indices)
                                          : slice_index(sema, &s, axis, item, indices);
        if (!ok) return value_poison();
        axis++;
    }
    Builder *b = sema_at(sema, ast->span);
    NodeId id = build_slicing_finish(b, &s);
    for (uint32_t k = s.from.rank, at = k - n_dropped(s.dropped, k); k-- > 0;) {
        if (s.dropped >> k & 1) continue;
        at--;
        if (indices[k] != NODE_NONE) id = build_gather(b, id, indices[k], at);
    }
    return sema_made(sema, ast->span, NULL, id);
}

/* slice(x, begin=[..], shape=[..], step=[..]): the form in dumps. */
Value call_slice(Sema *sema, const Call *call) {
    NodeId x;
    DimId dims[3][MAX_RANK];
    DimList begin, shape, step = {0};
    if (!sema_want_tensor(sema, &call->args[0], "x", &x)) return value_poison();
    uint32_t rank = sema_node(sema, x)->shape.rank;
    if (!sema_want_per_axis(sema, call, 1, "begin", rank, dims[0], &begin) ||
        !sema_want_per_axis(sema, call, 2, "shape", rank, dims[1], &shape) ||
        (call->args[3].kind != VALUE_ABSENT &&
         !sema_want_per_axis(sema, call, 3, "step", rank, dims[2], &step)))
        return value_poison();
    NodeId id = build_slice(sema_at(sema, call->span), x, begin, shape, step);
    return sema_made(sema, call->span, call->args, id);
}

/* split(x, parts, axis=0): `parts` is a number of equal parts or a list of extents. */

static bool listed_parts(Sema *sema, const Value *list, DimId *sizes) {
    if (!build_check_n_parts(sema->builder, list->n_items)) {
        sema_report(sema, list->span, NULL);
        return false;
    }
    for (uint32_t i = 0; i < list->n_items; i++) {
        const Value item = value_item(list, i);
        if (item.kind != VALUE_INT) {
            sema_error(sema, DIAG_BAD_ARGUMENT, item.span,
                       "an extent of `parts` must be a nonnegative integer, not %s",
                       value_describe(sema, &item));
            return false;
        }
        if (!build_check_part(sema->builder, (BuildPlace){0}, item.dim)) {
            sema_report(sema, item.span, NULL);
            return false;
        }
        sizes[i] = item.dim;
    }
    return true;
}

static Value split_list(Sema *sema, const Call *call, const NodeId *nodes, uint32_t n) {
    Value *items = arena_array(sema->arena, Value, n);
    for (uint32_t i = 0; i < n; i++) items[i] = value_tensor(nodes[i], call->span);
    return (Value){.kind = VALUE_LIST, .n_items = n, .items = items, .span = call->span};
}

Value call_split(Sema *sema, const Call *call) {
    NodeId x, *nodes = arena_array(sema->arena, NodeId, MAX_CONCAT_ARGS);
    DimId *sizes = arena_array(sema->arena, DimId, MAX_CONCAT_ARGS);
    uint32_t axis = 0, n;
    const Value *parts = &call->args[1];
    if (!sema_want_tensor(sema, &call->args[0], "x", &x)) return value_poison();
    if (!build_check_split(sema->builder, x)) return sema_report(sema, call->span, call->args);
    if (call->args[2].kind != VALUE_ABSENT &&
        !sema_want_axis(sema, &call->args[2], "axis", sema_node(sema, x)->shape.rank, &axis))
        return value_poison();
    bool is_list = parts->kind == VALUE_LIST;
    if (!is_list && parts->kind != VALUE_INT)
        return sema_error(sema, DIAG_BAD_ARGUMENT, parts->span,
                          "`parts` must be a list of extents or a count from 1 to %d, not %s",
                          MAX_CONCAT_ARGS, value_describe(sema, parts));
    if (is_list && !listed_parts(sema, parts, sizes)) return value_poison();
    n = parts->n_items;
    Builder *b = sema_at(sema, call->span);
    bool ok = is_list ? build_split(b, x, (DimList){n, sizes}, axis, nodes)
                      : build_split_evenly(b, x, parts->dim, axis, nodes, &n);
    return ok ? split_list(sema, call, nodes, n) : sema_report(sema, call->span, call->args);
}
