/* The reference interpreter: shapes, dispatch by class, whole graphs, and helpers of the other
 * files. */
#include "interp/interp.h"

#include "interp/interp_node.h"
#include "ir/loop.h"

#include <assert.h>
#include <float.h>
#include <limits.h>

bool interp_fail(const Eval *e, const char *format, ...) {
    va_list list;
    va_start(list, format);
    const char *message = str_vformat(e->arena, format, list);
    va_end(list);
    const char *name = e->node->name;
    *e->error = name ? str_format(e->arena, "`%s` (`%s`): %s", e->info->name, name, message)
                     : str_format(e->arena, "`%s`: %s", e->info->name, message);
    return false;
}

bool interp_dim(const Eval *e, DimId dim, int64_t *value) {
    if (dim_eval(e->graph->dims, dim, e->symbol_values, value)) return true;
    return interp_fail(e, "extent `%s` overflows", dim_str(e->graph->dims, e->arena, dim));
}

static bool eval_shape(const Eval *e, const Node *node, Tensor *out) {
    *out = (Tensor){.dtype = node->dtype, .rank = node->shape.rank};
    for (uint32_t k = 0; k < node->shape.rank; k++) {
        if (!interp_dim(e, node->shape.dims[k], &out->dims[k])) return false;
        if (out->dims[k] < 0)
            return interp_fail(e, "extent `%s` is %lld",
                               dim_str(e->graph->dims, e->arena, node->shape.dims[k]),
                               (long long)out->dims[k]);
    }
    if (tensor_n_elems(out) >= 0) return true;
    return interp_fail(e, "%s has more than %d elements", tensor_type_str(out, e->arena),
                       TENSOR_MAX_ELEMS);
}

static bool check_args(const Eval *e) {
    for (uint32_t i = 0; i < e->node->n_args; i++) {
        Tensor want;
        const Tensor *arg = &e->args[i];
        if (!eval_shape(e, graph_node(e->graph, e->node->args[i]), &want)) return false;
        if (arg->dtype == want.dtype && tensor_same_shape(arg, &want)) continue;
        return interp_fail(e, "argument %u is %s but must be %s", i + 1,
                           tensor_type_str(arg, e->arena), tensor_type_str(&want, e->arena));
    }
    return true;
}

static bool dispatch(const Eval *e) {
    switch (e->info->cls) {
    case CLASS_SOURCE:
        return interp_source(e);
    case CLASS_ELTWISE:
        return interp_eltwise(e);
    case CLASS_CAST:
        return interp_cast(e);
    case CLASS_REDUCE:
        return interp_reduce(e);
    case CLASS_ARGREDUCE:
        return interp_argreduce(e);
    case CLASS_SCAN:
        return interp_scan(e);
    case CLASS_SCAN_BY:
        return interp_scan_by(e);
    case CLASS_SORT:
        return interp_sort(e);
    case CLASS_SEGMENT:
        return interp_segments(e);
    case CLASS_VIEW:
        return interp_view(e);
    case CLASS_CONCAT:
        return interp_concat(e);
    case CLASS_UPDATE:
        return interp_update(e);
    case CLASS_ONLINE:
        return interp_online(e);
    case CLASS_LOOP:
        return interp_fail(e, "has a value in a whole graph alone");
    case CLASS_MATMUL:
        return interp_matmul(e);
    }
    return interp_fail(e, "unknown class");
}

static Eval eval_new(const Graph *graph, NodeId id, const int64_t *symbol_values, Arena *arena,
                     const char **error) {
    const Node *node = graph_node(graph, id);
    return (Eval){.graph = graph,
                  .node = node,
                  .info = op_info(node->op),
                  .symbol_values = symbol_values,
                  .arena = arena,
                  .error = error};
}

bool interp_shape(const Graph *graph, NodeId node, const int64_t *symbol_values, Tensor *out,
                  Arena *arena, const char **error) {
    Eval e = eval_new(graph, node, symbol_values, arena, error);
    return eval_shape(&e, e.node, out);
}

bool interp_node(const Graph *graph, NodeId node, const int64_t *symbol_values, const Tensor *args,
                 Tensor *out, double *bounds, Arena *arena, const char **error) {
    return interp_node_within(graph, node, symbol_values, args, NULL, out, bounds, arena, error);
}

bool interp_node_within(const Graph *graph, NodeId node, const int64_t *symbol_values,
                        const Tensor *args, const double *const *errors, Tensor *out,
                        double *bounds, Arena *arena, const char **error) {
    Eval e = eval_new(graph, node, symbol_values, arena, error);
    if (!eval_shape(&e, e.node, out) || (e.node->n_args && !args)) return false;
    e.args = args;
    e.errors = errors;
    e.out = out;
    e.bounds = bounds;
    if (!check_args(&e)) return false;
    int64_t n = tensor_n_elems(out);
    out->data = arena_array(arena, double, (size_t)n);
    for (int64_t i = 0; bounds && i < n; i++) bounds[i] = 0;
    return dispatch(&e) && (!bounds || !graph->is_fast || interp_widen(&e));
}

/* Whole graphs. */

static bool bind(const Graph *graph, const GraphInput *input, const int64_t *symbol_values,
                 const Tensor *given, Tensor *values, Arena *arena, const char **error) {
    Tensor want;
    if (!interp_shape(graph, input->node, symbol_values, &want, arena, error)) return false;
    if (given->dtype != want.dtype || !tensor_same_shape(given, &want)) {
        *error = str_format(arena, "`%s` is %s but must be %s", input->name,
                            tensor_type_str(given, arena), tensor_type_str(&want, arena));
        return false;
    }
    values[input->node] = *given;
    return true;
}

/* `reach`, per node, NULL: computes values without bounds. */
static bool eval_with(const Graph *graph, NodeId id, const int64_t *symbol_values, Tensor *values,
                      double **reach, Arena *arena, const char **error) {
    const Node *node = graph_node(graph, id);
    Tensor type, *args = arena_array(arena, Tensor, node->n_args);
    const double **errors = arena_array(arena, const double *, node->n_args);
    double *bounds = NULL;
    for (uint32_t k = 0; k < node->n_args; k++) {
        args[k] = values[node->args[k]];
        if (reach) errors[k] = reach[node->args[k]];
    }
    if (reach) {
        if (!interp_shape(graph, id, symbol_values, &type, arena, error)) return false;
        bounds = reach[id] = arena_array(arena, double, (size_t)tensor_n_elems(&type) + 1);
    }
    return interp_node_within(graph, id, symbol_values, args, errors, &values[id], bounds, arena,
                              error);
}

/* The evaluation of a whole graph. */
typedef struct Run {
    const Graph *graph;
    const int64_t *symbol_values;
    Tensor *values;
    double **bounds; /* per node; NULL: none are asked for */
    GraphLoops loops;
    Arena *arena;
    const char **error;
} Run;

/* Gives node `to` the value of node `from`, with its bounds. */
static void take_value(const Run *run, NodeId to, const Tensor *value, double *bounds) {
    run->values[to] = *value;
    if (run->bounds) run->bounds[to] = bounds;
}

static bool eval_node(const Run *run, NodeId id) {
    NodeId from = graph_node(run->graph, id)->n_args ? graph_node(run->graph, id)->args[0] : 0;
    if (graph_is_bound(run->graph, id)) return true;
    if (graph_node(run->graph, id)->op != OP_LOOP_CARRY)
        return eval_with(run->graph, id, run->symbol_values, run->values, run->bounds, run->arena,
                         run->error);
    take_value(run, id, &run->values[from], run->bounds ? run->bounds[from] : NULL);
    return true;
}

/* Puts what a step made in the place of what it was made from. */
static void carry_on(const Run *run, const GraphLoop *loop) {
    Tensor *next = arena_array(run->arena, Tensor, loop->n_carried);
    double **bounds = arena_array(run->arena, double *, loop->n_carried);
    for (uint32_t i = 0; i < loop->n_carried; i++) {
        next[i] = run->values[loop->next[i]];
        bounds[i] = run->bounds ? run->bounds[loop->next[i]] : NULL;
    }
    for (uint32_t i = 0; i < loop->n_carried; i++)
        take_value(run, loop->carries[i], &next[i], bounds[i]);
}

static bool eval_next(const Run *run, NodeId id);

/* Evaluates what a step computes. */
static bool run_step(const Run *run, uint32_t number) {
    for (NodeId id = 0; id < run->loops.loops.data[number].result; id++) {
        uint32_t of = run->loops.of[id];
        bool is_carry = graph_node(run->graph, id)->op == OP_LOOP_CARRY && of == number + 1;
        bool is_in_step = of && !is_carry && loops_are_inside(&run->loops, of, number + 1);
        if (is_in_step && !eval_next(run, id)) return false;
    }
    return true;
}

/* Runs the steps of a loop. Nodes have the values of the first step already, which is evaluated as
 * the rest of the graph is, even if the loop has none. Leaves the last values in the carries. */
static bool run_loop(const Run *run, uint32_t number) {
    const GraphLoop *loop = &run->loops.loops.data[number];
    int64_t n_steps;
    if (!dim_eval(run->graph->dims, loop->count, run->symbol_values, &n_steps)) {
        *run->error = str_format(run->arena, "the number of steps `%s` overflows",
                                 dim_str(run->graph->dims, run->arena, loop->count));
        return false;
    }
    for (int64_t step = 0; step < n_steps; step++) {
        carry_on(run, loop);
        if (step + 1 < n_steps && !run_step(run, number)) return false;
    }
    return true;
}

/* Evaluates node `id`, and before a loop's first result the loop. */
static bool eval_next(const Run *run, NodeId id) {
    const Node *node = graph_node(run->graph, id);
    if (node->op != OP_LOOP_RESULT) return eval_node(run, id);
    uint32_t number = run->loops.of[node->args[0]] - 1;
    if (run->loops.loops.data[number].result == id && !run_loop(run, number)) return false;
    NodeId from = node->args[loop_at(node)];
    take_value(run, id, &run->values[from], run->bounds ? run->bounds[from] : NULL);
    return true;
}

bool interp_graph(const Graph *graph, const int64_t *symbol_values, const Tensor *inputs,
                  const Tensor *params, Tensor *values, Arena *arena, const char **error) {
    return interp_graph_within(graph, symbol_values, inputs, params, values, NULL, arena, error);
}

bool interp_graph_within(const Graph *graph, const int64_t *symbol_values, const Tensor *inputs,
                         const Tensor *params, Tensor *values, double **bounds, Arena *arena,
                         const char **error) {
    for (uint32_t i = 0; i < graph->inputs.n + graph->params.n; i++) {
        bool is_param = i >= graph->inputs.n;
        uint32_t k = is_param ? i - graph->inputs.n : i;
        const GraphInput *input = is_param ? &graph->params.data[k] : &graph->inputs.data[k];
        const Tensor *given = is_param ? &params[k] : &inputs[k];
        if (!bind(graph, input, symbol_values, given, values, arena, error)) return false;
    }
    const Run run = {graph, symbol_values, values, bounds, loops_find(arena, graph), arena, error};
    for (NodeId id = 0; id < graph->nodes.n; id++)
        if (!eval_next(&run, id)) return false;
    return true;
}

/* Walks. */

Walk walk_over(const Tensor *shape) {
    Walk walk = {.rank = shape->rank};
    for (uint32_t k = 0; k < shape->rank; k++) walk.dims[k] = shape->dims[k];
    return walk;
}

void walk_add_strides(Walk *walk, const int64_t *strides, int64_t offset) {
    for (uint32_t k = 0; k < walk->rank; k++) walk->strides[walk->n_operands][k] = strides[k];
    walk->offsets[walk->n_operands++] = offset;
}

bool walk_add_broadcast(Walk *walk, const Tensor *operand) {
    if (operand->rank > walk->rank) return false;
    int64_t own[TENSOR_MAX_RANK], strides[TENSOR_MAX_RANK] = {0};
    tensor_strides(operand, own);
    uint32_t lead = walk->rank - operand->rank;
    for (uint32_t k = 0; k < operand->rank; k++) {
        if (operand->dims[k] != walk->dims[lead + k] && operand->dims[k] != 1) return false;
        strides[lead + k] = operand->dims[k] == 1 ? 0 : own[k];
    }
    walk_add_strides(walk, strides, 0);
    return true;
}

void walk_next(Walk *walk) {
    for (uint32_t k = walk->rank; k-- > 0;) {
        bool carries = ++walk->index[k] == walk->dims[k];
        int64_t step = carries ? 1 - walk->dims[k] : 1;
        for (uint32_t i = 0; i < walk->n_operands; i++)
            walk->offsets[i] += step * walk->strides[i][k];
        if (!carries) return;
        walk->index[k] = 0;
    }
}

/* Rounding and bounds. */

double interp_unit_roundoff(Dtype compute) {
    return dtype_is_double(compute) ? 0x1p-53 : 0x1p-24;
}

void interp_fill(Tensor *out, int64_t i, double number, int64_t whole) {
    if (dtype_is_int(out->dtype))
        tensor_set_int(out, i, whole);
    else
        out->data[i] = dtype_round(out->dtype, number);
}

double interp_rounded_bound(Dtype dtype, double exact, double error) {
    double value = dtype_round(dtype, exact);
    double below = dtype_distance(dtype, value, dtype_round(dtype, exact - error));
    double above = dtype_distance(dtype, value, dtype_round(dtype, exact + error));
    double bound = below > above ? below : above;
    /* Never 0, because orders of summation may differ in the sign of a zero. */
    return bound > 0 ? bound : DBL_TRUE_MIN;
}

void interp_settle(const Eval *e, int64_t i, double exact, double error) {
    Dtype dtype = e->out->dtype;
    e->out->data[i] = dtype_round(dtype, exact);
    if (e->bounds && error > 0) e->bounds[i] = interp_rounded_bound(dtype, exact, error);
}
