/* Composes scans by a function: the elements that they join, and the function as scalars of its
 * own. See inliner.h. */
#include "fuse/inline/inliner.h"

#include <string.h>

/* The function of a scan as it becomes scalars. */
typedef struct Function {
    const Graph *graph;
    ScalarTab *tab;
    ScalarId *of; /* per node */
} Function;

static ScalarId eltwise_scalar(const Function *f, const Node *node) {
    const OpInfo *info = op_info(node->op);
    ScalarId args[3] = {0};
    for (uint32_t i = 0; i < node->n_args; i++)
        args[i] = scalar_cvt(f->tab, f->of[node->args[i]],
                             dtype_compute(graph_node(f->graph, node->args[i])->dtype));
    for (uint32_t i = node->n_args; i < info->max_args; i++)
        args[i] = scalar_const(f->tab, scalar_get(f->tab, args[0])->dtype,
                               dtype_round(node->dtype, info->default_last));
    ScalarId body = info->body(f->tab, node->dtype, args[0], args[1], args[2]);
    return scalar_round(f->tab, body, node->dtype);
}

static ScalarId node_scalar(const Function *f, NodeId id) {
    const Node *node = graph_node(f->graph, id);
    if (op_info(node->op)->cls == CLASS_ELTWISE) return eltwise_scalar(f, node);
    if (op_info(node->op)->cls == CLASS_CAST)
        return scalar_cast(f->tab, f->of[node->args[0]], node->dtype, node->op == OP_BITCAST);
    return scalar_literal(f->tab, node->dtype, node->attrs.number, node->attrs.whole);
}

/* The type that holds a value between joins: that in which ops compute, with shared memory for
 * it. */
static Dtype held_dtype(Dtype dtype) {
    return dtype_is_bool(dtype) ? DT_I32 : dtype_compute(dtype);
}

static ScanJoin *join_new(Inliner *c, const Graph *function, const ScalarId *elements) {
    uint32_t n = function->outputs.n;
    Function f = {.graph = function,
                  .tab = scalartab_new(c->arena, indextab_new(c->arena, c->dims)),
                  .of = arena_array(c->arena, ScalarId, function->nodes.n)};
    Dtype *types = arena_array(c->arena, Dtype, n);
    ScalarId *results = arena_array(c->arena, ScalarId, n);
    if (c->graph->is_fast) scalartab_set_fast(f.tab);
    for (uint32_t i = 0; i < 2 * n; i++) {
        NodeId id = function->inputs.data[i].node;
        Dtype dtype = graph_node(function, id)->dtype;
        if (i < n) types[i] = held_dtype(dtype);
        f.of[id] = scalar_round(f.tab, scalar_stage(f.tab, held_dtype(dtype), i, 0), dtype);
    }
    for (NodeId id = 0; id < function->nodes.n; id++)
        if (graph_node(function, id)->op != OP_INPUT) f.of[id] = node_scalar(&f, id);
    for (uint32_t i = 0; i < n; i++)
        results[i] = scalar_cvt(f.tab, f.of[function->outputs.data[i].node], types[i]);
    ScanJoin *join = arena_array(c->arena, ScanJoin, 1);
    *join = (ScanJoin){
        .n = n, .elements = elements, .types = types, .scalars = f.tab, .results = results};
    return join;
}

/* The join of an earlier reduction of the kernel, or a new one. */
static const ScanJoin *find_join(Inliner *c, const Kernel *kernel, const Graph *function,
                                 const ScalarId *elements) {
    uint32_t n = function->outputs.n;
    for (uint32_t i = 0; i < kernel->reduces.n; i++) {
        const Reduce *other = &kernel->reduces.data[i];
        if (other->join && graph_node(c->graph, other->node)->attrs.function == function &&
            memcmp(other->join->elements, elements, n * sizeof *elements) == 0)
            return other->join;
    }
    return join_new(c, function, elements);
}

bool inline_compose_scan_by(Inliner *c, Kernel *kernel, NodeId id) {
    const Node *node = graph_node(c->graph, id);
    ScalarId *elements = arena_array(c->arena, ScalarId, node->n_args);
    inline_mark(c->marks, id, INLINE_VISITED);
    for (uint32_t i = 0; i < node->n_args; i++) {
        ScalarId value = inline_pull(c, node->args[i], c->coords, GUARD_NONE);
        if (!value) return false;
        Dtype type = held_dtype(graph_node(c->graph, node->args[i])->dtype);
        elements[i] = scalar_cvt(c->scalars, value, type);
    }
    const ScanJoin *join = find_join(c, kernel, node->attrs.function, elements);
    uint32_t joined = (uint32_t)node->attrs.axis;
    c->marks->slot[id] = kernel->reduces.n + 1;
    vec_push(c->arena, &kernel->reduces,
             (Reduce){.node = id,
                      .join = join,
                      .joined = joined,
                      .acc = join->types[joined],
                      .value = elements[joined],
                      .result = c->graph->is_fast ? join->types[joined] : node->dtype});
    return true;
}
