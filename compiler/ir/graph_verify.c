/* Checks the graph's invariants. It runs between passes and in tests, so that a pass that breaks a
 * graph is found. Slice bounds are rejected only if they are certainly outside, because a proof of
 * the front end may not hold any more after views are composed. */
#include "ir/loop.h"
#include "ir/node_flags.h"

typedef struct Check {
    const Graph *graph;
    DimTab *dims;
    NodeId id;
    const Node *node;
} Check;

static const Node *arg(const Check *c, uint32_t k) {
    return graph_node(c->graph, c->node->args[k]);
}

/* Dtypes. */

static const char *check_same_dtypes(const Check *c, uint32_t first) {
    for (uint32_t k = first; k < c->node->n_args; k++)
        if (arg(c, k)->dtype != arg(c, first)->dtype) return "argument dtypes differ";
    return NULL;
}

static const char *check_dtypes(const Check *c) {
    const OpInfo *info = op_info(c->node->op);
    uint32_t first = info->result == RESULT_SELECT, n = c->node->n_args;
    if (info->cls == CLASS_SOURCE || info->cls == CLASS_LOOP) return NULL;
    if (c->node->op == OP_GATHER || info->cls == CLASS_SEGMENT) {
        if (!dtype_in(arg(c, 1)->dtype, DTS_INDEX)) return "indices are not i32 or i64";
        n = 1;
    }
    if (info->cls == CLASS_ONLINE) {
        if (!dtype_in(arg(c, 1)->dtype, info->dtypes)) return "argument dtype not allowed";
        if (c->node->n_args > 2 && arg(c, 2)->dtype != arg(c, 0)->dtype)
            return "factors have not the dtype of scores";
        if (!info->power && !quantize_map_fits(&c->node->attrs.quantize, arg(c, 1)->dtype))
            return "weights have not the dtype of values";
        return arg(c, 0)->dtype == online_compute(arg(c, 1)->dtype)
                   ? NULL
                   : "scores have not the dtype in which the values are multiplied";
    }
    if (info->cls == CLASS_UPDATE) {
        if (!dtype_in(arg(c, 2)->dtype, DTS_INDEX)) return "starts are not i32 or i64";
        if (arg(c, 0)->dtype != arg(c, 1)->dtype) return "argument dtypes differ";
        n = 1;
    }
    for (uint32_t k = first; k < n; k++)
        if (!dtype_in(arg(c, k)->dtype, info->dtypes)) return "argument dtype not allowed";
    bool may_mix = info->cls == CLASS_MATMUL || info->cls == CLASS_SCAN_BY; /* see their checks */
    if (n > first && n == c->node->n_args && !may_mix && check_same_dtypes(c, first))
        return check_same_dtypes(c, first);
    switch (info->result) {
    case RESULT_SAME:
        return c->node->dtype == arg(c, 0)->dtype ? NULL : "result dtype is not the argument's";
    case RESULT_BOOL:
        return dtype_is_bool(c->node->dtype) ? NULL : "result of a comparison not bool";
    case RESULT_SELECT:
        if (!dtype_is_bool(arg(c, 0)->dtype)) return "condition is not bool";
        return c->node->dtype == arg(c, 1)->dtype ? NULL : "result dtype is not the operands'";
    case RESULT_NODE:
        if (info->cls != CLASS_ARGREDUCE && info->cls != CLASS_SORT) return NULL;
        return dtype_in(c->node->dtype, DTS_INDEX) ? NULL : "an index is i32 or i64";
    }
    return NULL;
}

/* Shapes. */

static const char *expect_shape(const Check *c, const Shape *shape) {
    return shape_equal(shape, &c->node->shape) ? NULL : "shape is not what the op's rule gives";
}

static const char *check_eltwise(const Check *c) {
    Shape shape = {0};
    for (uint32_t k = 0; k < c->node->n_args; k++)
        if (!shape_broadcast(c->dims, &shape, &arg(c, k)->shape))
            return "argument shapes do not broadcast";
    return expect_shape(c, &shape);
}

static const char *check_reduce(const Check *c, bool is_single) {
    const Attrs *attrs = &c->node->attrs;
    const Shape *from = &arg(c, 0)->shape;
    if (attrs->axes == 0 || attrs->axes >> from->rank) return "axes are empty or out of range";
    if (is_single && attrs->axes & (attrs->axes - 1)) return "more than one axis";
    Shape shape = shape_reduced(c->dims, from, attrs->axes, attrs->keep);
    return expect_shape(c, &shape);
}

static const char *check_scan(const Check *c) {
    const Shape *from = &arg(c, 0)->shape;
    uint32_t axes = c->node->attrs.axes;
    if (axes == 0 || axes >> from->rank) return "axis is missing or out of range";
    if (axes & (axes - 1)) return "more than one axis";
    return expect_shape(c, from);
}

static const char *check_scan_by(const Check *c) {
    const Graph *function = c->node->attrs.function;
    uint32_t n = c->node->n_args, result = (uint32_t)c->node->attrs.axis;
    if (!function || function->outputs.n != n || function->inputs.n != 2 * n)
        return "function is missing or takes other tensors";
    if (result >= n || c->node->dtype != arg(c, result)->dtype) return "no such result";
    for (uint32_t k = 0; k < n; k++) {
        if (!shape_equal(&arg(c, k)->shape, &c->node->shape)) return "argument shapes differ";
        for (uint32_t side = 0; side < 2; side++)
            if (graph_node(function, function->inputs.data[side * n + k].node)->dtype !=
                arg(c, k)->dtype)
                return "function takes other dtypes";
    }
    return check_scan(c);
}

static const char *check_segments(const Check *c) {
    const Shape *from = &arg(c, 0)->shape;
    uint32_t axes = c->node->attrs.axes;
    Shape shape = *from;
    if (axes == 0 || axes >> from->rank) return "axis is missing or out of range";
    if (axes & (axes - 1)) return "more than one axis";
    if (from->rank == MAX_RANK) return "rank too high for segments";
    if (!shape_equal(from, &arg(c, 1)->shape)) return "not a number for each element";
    for (uint32_t k = 0; k < shape.rank; k++)
        if (axes >> k & 1) shape.dims[k] = c->node->shape.dims[k];
    return expect_shape(c, &shape);
}

static const char *check_transpose(const Check *c) {
    const Shape *from = &arg(c, 0)->shape, *to = &c->node->shape;
    uint32_t seen = 0;
    if (from->rank != to->rank) return "rank changes";
    for (uint32_t k = 0; k < to->rank; k++) {
        uint32_t axis = c->node->attrs.per_axis->perm[k];
        if (axis >= from->rank || seen >> axis & 1) return "perm is no permutation";
        seen |= 1u << axis;
        if (to->dims[k] != from->dims[axis]) return "shape is not what perm gives";
    }
    return NULL;
}

static const char *check_reshape(const Check *c) {
    DimId from = shape_n_elems(c->dims, &arg(c, 0)->shape);
    DimId to = shape_n_elems(c->dims, &c->node->shape);
    return dim_prove_equal(c->dims, from, to) ? NULL : "element counts differ";
}

static const char *check_expand(const Check *c) {
    Shape shape = c->node->shape;
    if (!shape_broadcast(c->dims, &shape, &arg(c, 0)->shape)) return "does not broadcast";
    return expect_shape(c, &shape);
}

static const char *check_slice(const Check *c) {
    const Shape *from = &arg(c, 0)->shape, *to = &c->node->shape;
    if (from->rank != to->rank) return "rank changes";
    for (uint32_t k = 0; k < to->rank; k++) {
        DimId begin = c->node->attrs.per_axis->begin[k];
        if (begin == DIM_NONE || c->node->attrs.per_axis->step[k] == 0) return "no begin or step";
        if (dim_hi(c->dims, begin) < 0 || dim_lo(c->dims, begin) > dim_hi(c->dims, from->dims[k]))
            return "begin is outside";
    }
    return NULL;
}

/* The last tap of the last window lies inside. */
static const char *check_window(const Check *c, uint32_t k, DimId places, DimId taps) {
    const Attrs *attrs = &c->node->attrs;
    DimId one = dim_const(c->dims, 1);
    if (attrs->per_axis->step[k] < 1 || attrs->per_axis->dilation[k] < 1)
        return "no stride or dilation";
    DimId last = dim_mul_const(c->dims, dim_sub(c->dims, places, one), attrs->per_axis->step[k]);
    DimId tap = dim_mul_const(c->dims, dim_sub(c->dims, taps, one), attrs->per_axis->dilation[k]);
    DimId end = last && tap ? dim_add(c->dims, dim_add(c->dims, last, tap), one) : DIM_NONE;
    return end && dim_prove_le(c->dims, end, arg(c, 0)->shape.dims[k]) ? NULL
                                                                       : "a window ends outside";
}

static const char *check_windows(const Check *c) {
    const Shape *from = &arg(c, 0)->shape, *to = &c->node->shape;
    uint32_t axes = c->node->attrs.axes;
    if (!axes || axes >> from->rank || to->rank != windows_axis(axes, from->rank))
        return "window axes and ranks disagree";
    for (uint32_t k = 0; k < from->rank; k++) {
        DimId places = to->dims[windows_axis(axes, k)];
        bool is_window = axes >> k & 1;
        if (!is_window && places != from->dims[k]) return "an axis without windows changes";
        const char *wrong =
            is_window ? check_window(c, k, places, to->dims[windows_tap_axis(axes, k)]) : NULL;
        if (wrong) return wrong;
    }
    return NULL;
}

static const char *check_pad(const Check *c) {
    const Shape *from = &arg(c, 0)->shape, *to = &c->node->shape;
    if (from->rank != to->rank) return "rank changes";
    for (uint32_t k = 0; k < to->rank; k++) {
        DimId low = c->node->attrs.per_axis->begin[k];
        DimId inner = low ? dim_add(c->dims, low, from->dims[k]) : DIM_NONE;
        if (!inner || dim_lo(c->dims, low) < 0) return "low is missing or negative";
        if (!dim_prove_le(c->dims, inner, to->dims[k])) return "high is negative";
    }
    return NULL;
}

static const char *check_gather(const Check *c) {
    const Shape *data = &arg(c, 0)->shape, *rows = &arg(c, 1)->shape;
    uint32_t axis = (uint32_t)c->node->attrs.axis;
    if (axis >= data->rank || data->rank - 1 + rows->rank > MAX_RANK) return "axis out of range";
    Shape shape = shape_gathered(data, rows, axis);
    return expect_shape(c, &shape);
}

static const char *check_view(const Check *c) {
    if (c->node->op == OP_TRANSPOSE) return check_transpose(c);
    if (c->node->op == OP_RESHAPE) return check_reshape(c);
    if (c->node->op == OP_EXPAND) return check_expand(c);
    if (c->node->op == OP_SLICE) return check_slice(c);
    if (c->node->op == OP_PAD) return check_pad(c);
    if (c->node->op == OP_WINDOWS) return check_windows(c);
    if (c->node->op == OP_GATHER) return check_gather(c);
    return "view without a rule";
}

static const char *check_concat(const Check *c) {
    Shape shape = arg(c, 0)->shape;
    uint32_t axis = (uint32_t)c->node->attrs.axis;
    if (axis >= shape.rank) return "axis out of range";
    if (c->node->n_args > MAX_CONCAT_ARGS) return "too many arguments";
    for (uint32_t i = 1; i < c->node->n_args; i++) {
        const Shape *other = &arg(c, i)->shape;
        if (other->rank != shape.rank) return "ranks differ";
        for (uint32_t k = 0; k < shape.rank; k++)
            if (k != axis && other->dims[k] != shape.dims[k]) return "extents differ";
        shape.dims[axis] = dim_add(c->dims, shape.dims[axis], other->dims[axis]);
    }
    return expect_shape(c, &shape);
}

static const char *check_update(const Check *c) {
    const Shape *x = &arg(c, 0)->shape, *part = &arg(c, 1)->shape, *starts = &arg(c, 2)->shape;
    int64_t n;
    if (part->rank != x->rank || x->rank == 0) return "ranks differ";
    if (starts->rank != 1 || !dim_is_const(c->dims, starts->dims[0], &n) || n != x->rank)
        return "starts have not one number for each axis";
    for (uint32_t k = 0; k < x->rank; k++)
        if (!dim_always_le(c->dims, part->dims[k], x->dims[k])) return "the update may be larger";
    return expect_shape(c, x);
}

static const char *check_matmul(const Check *c) {
    const Shape *a = &arg(c, 0)->shape, *b = &arg(c, 1)->shape;
    Dtype dtype = arg(c, 0)->dtype, out = c->node->dtype;
    if (c->node->attrs.precision == PRECISION_TF32 && !dtype_is_single(dtype))
        return "only f32 is rounded to tf32";
    bool is_mixed = arg(c, 1)->dtype != dtype;
    if (is_mixed && !(dtype_in(dtype, DTS_STORED) && dtype_in(arg(c, 1)->dtype, DTS_STORED)))
        return "argument dtypes differ";
    if (out != dtype_compute(dtype) && (is_mixed || out != dtype))
        return "the result has neither the operands' dtype nor that of their computation";
    if (a->rank < 2 || b->rank < 2) return "operand of rank below 2";
    if (a->dims[a->rank - 1] != b->dims[b->rank - 2]) return "contracted extents differ";
    Shape shape;
    if (!matmul_shape(c->dims, a, b, &shape)) return "leading axes do not broadcast";
    return expect_shape(c, &shape);
}

static const char *check_loop(const Check *c) {
    const Node *node = c->node, *like = arg(c, node->op == OP_LOOP_RESULT ? loop_at(node) : 0);
    if (node->op == OP_LOOP_RESULT) {
        if (node->n_args % 2 || loop_at(node) >= node->n_args / 2) return "carries do not match";
        if (!loop_count(node) || dim_lo(c->dims, loop_count(node)) < 0)
            return "steps missing or possibly negative";
        for (uint32_t i = 0; i < node->n_args / 2; i++) {
            const Node *carry = arg(c, i), *next = arg(c, i + node->n_args / 2);
            if (carry->op != OP_LOOP_CARRY) return "a carry is none";
            if (carry->dtype != next->dtype || !shape_equal(&carry->shape, &next->shape))
                return "a carried value changes its type";
        }
    }
    if (node->dtype != like->dtype) return "result dtype is not the argument's";
    return expect_shape(c, &like->shape);
}

static const char *check_online(const Check *c) {
    const Shape *x = &arg(c, 0)->shape, *v = &arg(c, 1)->shape;
    Dtype dtype = arg(c, 1)->dtype, out = c->node->dtype;
    if (out != online_compute(dtype) && (out != dtype || !dtype_in(dtype, DTS_FLOAT)))
        return "the result has neither the values' dtype nor that of their computation";
    if (x->rank < 2 || v->rank < 2) return "operand of rank below 2";
    if (x->rank >= MAX_GIVEN_RANK || v->rank >= MAX_GIVEN_RANK) return "rank too high";
    if (x->dims[x->rank - 1] != v->dims[v->rank - 2]) return "contracted extents differ";
    if (c->node->n_args > 2 && op_info(c->node->op)->row) return "a sum of weights has no factors";
    if (c->node->n_args > 2 && !shape_equal(x, &arg(c, 2)->shape))
        return "factors have not the shape of scores";
    Shape shape;
    if (!matmul_shape(c->dims, x, v, &shape)) return "leading axes do not broadcast";
    return expect_shape(c, &shape);
}

static bool is_element(const Node *constant) {
    double number = constant->attrs.number;
    int64_t whole = constant->attrs.whole;
    if (dtype_is_int(constant->dtype)) return dtype_wrap(constant->dtype, whole) == whole;
    return dtype_round(constant->dtype, number) == number ||
           (number != number && dtype_is_float(constant->dtype));
}

static const char *check_source(const Check *c) {
    if (c->node->op == OP_CONST) {
        if (c->node->shape.rank) return "a constant is a scalar";
        return is_element(c->node) ? NULL : "constant is no element of its dtype";
    }
    if (c->node->op != OP_IOTA) return NULL;
    if (!dtype_in(c->node->dtype, DTS_INDEX)) return "an index is i32 or i64";
    return (uint32_t)c->node->attrs.axis < c->node->shape.rank ? NULL : "axis out of range";
}

static const char *check_shape(const Check *c) {
    switch (op_info(c->node->op)->cls) {
    case CLASS_SOURCE:
        return check_source(c);
    case CLASS_ELTWISE:
    case CLASS_CAST:
        return check_eltwise(c);
    case CLASS_REDUCE:
        return check_reduce(c, false);
    case CLASS_ARGREDUCE:
        return check_reduce(c, true);
    case CLASS_SCAN:
    case CLASS_SORT:
        return check_scan(c);
    case CLASS_SCAN_BY:
        return check_scan_by(c);
    case CLASS_SEGMENT:
        return check_segments(c);
    case CLASS_VIEW:
        return check_view(c);
    case CLASS_CONCAT:
        return check_concat(c);
    case CLASS_UPDATE:
        return check_update(c);
    case CLASS_ONLINE:
        return check_online(c);
    case CLASS_LOOP:
        return check_loop(c);
    case CLASS_MATMUL:
        return check_matmul(c);
    }
    return "op without a class";
}

static const char *check_node(const Check *c) {
    const Node *node = c->node;
    if (node->op <= OP_NONE || node->op >= OP_COUNT) return "no such op";
    const OpInfo *info = op_info(node->op);
    uint32_t max_args = info->cls == CLASS_ELTWISE ? info->max_args : node->n_args;
    if (node->n_args < info->min_args || node->n_args > info->max_args || node->n_args < max_args)
        return "wrong number of arguments";
    for (uint32_t k = 0; k < node->n_args; k++)
        if (node->args[k] >= c->id) return "an argument does not come before its user";
    if (node->shape.rank > MAX_RANK) return "rank too high";
    for (uint32_t k = 0; k < node->shape.rank; k++)
        if (!node->shape.dims[k] || dim_lo(c->dims, node->shape.dims[k]) < 0)
            return "extent missing or possibly negative";
    const char *problem = check_dtypes(c);
    return problem ? problem : check_shape(c);
}

/* Interface and kernels. */

static const char *check_inputs(const Graph *graph) {
    for (uint32_t i = 0; i < graph->inputs.n; i++)
        if (graph->inputs.data[i].node >= graph->nodes.n ||
            graph_node(graph, graph->inputs.data[i].node)->op != OP_INPUT)
            return "an input is no input node";
    for (uint32_t i = 0; i < graph->params.n; i++)
        if (graph->params.data[i].node >= graph->nodes.n ||
            graph_node(graph, graph->params.data[i].node)->op != OP_PARAM)
            return "a param is no param node";
    for (uint32_t i = 0; i < graph->outputs.n; i++)
        if (graph->outputs.data[i].node >= graph->nodes.n) return "an output is no node";
    return graph->outputs.n ? NULL : "no output";
}

/* What one piece runs: a fixed kernel, or a node of none. Kernel k is unit k - 1, and node `id` of
 * no kernel is unit `id` behind all kernels. */
typedef struct Units {
    const Graph *graph;
    uint32_t n;
    uint32_t
        *n_awaited;  /* per unit: the uses of other units' values, as far as these have not run */
    uint32_t *first; /* per unit, and one more: index in `users` */
    uint32_t *users; /* per use of a unit's value: the unit that uses it */
} Units;

static uint32_t unit_of(const Graph *graph, NodeId id) {
    uint32_t k = graph->kernel_of.data[id];
    return k ? k - 1 : graph->fixed_kernels.n + id;
}

/* Counts the uses of each unit's values, or lists them. */
static void note_uses(Units *units, bool lists) {
    const Graph *graph = units->graph;
    for (NodeId id = 0; id < graph->nodes.n; id++) {
        const Node *node = graph_node(graph, id);
        for (uint32_t i = 0; i < node->n_args; i++) {
            uint32_t made = unit_of(graph, node->args[i]), user = unit_of(graph, id);
            if (made == user) continue;
            uint32_t place = --units->first[made];
            if (lists) units->users[place] = user;
            if (lists) units->n_awaited[user]++;
        }
    }
}

static Units units_of(const Graph *graph, Arena *arena) {
    Units units = {.graph = graph, .n = graph->fixed_kernels.n + graph->nodes.n};
    units.n_awaited = arena_array(arena, uint32_t, units.n);
    units.first = arena_array(arena, uint32_t, units.n + 1);
    note_uses(&units, false); /* modulo 2^32 */
    uint32_t n_uses = 0;
    for (uint32_t u = 0; u <= units.n; u++) {
        n_uses -= units.first[u];
        units.first[u] = n_uses;
    }
    units.users = arena_array(arena, uint32_t, n_uses + 1);
    note_uses(&units, true);
    return units;
}

/* Whether some order runs every fixed kernel in one piece: runs each unit that awaits no other. */
static const char *check_kernels(const Graph *graph, Arena *arena) {
    uint32_t n = graph->nodes.n;
    if (graph->kernel_of.n == 0) return NULL;
    if (graph->kernel_of.n != n) return "kernel_of does not match the nodes";
    for (NodeId id = 0; id < n; id++)
        if (graph->kernel_of.data[id] > graph->fixed_kernels.n) return "kernel_of names no kernel";
    Units units = units_of(graph, arena);
    VecU32 run = {0};
    for (uint32_t u = 0; u < units.n; u++)
        if (units.n_awaited[u] == 0) vec_push(arena, &run, u);
    for (uint32_t i = 0; i < run.n; i++) {
        uint32_t u = run.data[i];
        for (uint32_t k = units.first[u]; k < units.first[u + 1]; k++)
            if (--units.n_awaited[units.users[k]] == 0) vec_push(arena, &run, units.users[k]);
    }
    return run.n == units.n ? NULL : "fixed kernels wait for each other";
}

const char *graph_verify(const Graph *graph, Arena *arena) {
    for (NodeId id = 0; id < graph->nodes.n; id++) {
        Check check = {
            .graph = graph, .dims = graph->dims, .id = id, .node = graph_node(graph, id)};
        const char *problem = check_node(&check);
        if (!problem) continue;
        const char *op = check.node->op < OP_COUNT ? op_info(check.node->op)->name : "?";
        return str_format(arena, "graph `%s`, node %u (%s): %s", graph->name, id, op, problem);
    }
    const char *problem = check_inputs(graph);
    if (!problem) problem = check_kernels(graph, arena);
    if (!problem) problem = loops_problem(arena, graph);
    return problem ? str_format(arena, "graph `%s`: %s", graph->name, problem) : NULL;
}
