/* Nodes whose inputs are all known: the op is lowered into a graph of its own, and the reference
 * interpreter evaluates that graph. */
#include "interp/interp.h"
#include "onnx/call/import_state.h"

/* No tensor on the way may have more elements. */
enum { MAX_EVALUATED = 1 << 20 };

static bool is_constant(Import *im, const Known *known) {
    int64_t value;
    for (uint32_t i = 0; known->ints && i < known->n; i++)
        if (!known_int(im, known, i, &value) || value >= DIM_LIMIT || value <= -DIM_LIMIT)
            return false;
    return true;
}

/* A graph inside the node may use any value around it. */
static bool can_evaluate(Call *c) {
    uint32_t n_given = 0;
    for (uint32_t i = 0; i < c->node->attrs.n; i++)
        if (c->node->attrs.data[i].graph) return false;
    for (uint32_t i = 0; i < c->node->inputs.n; i++) {
        Dtype dtype;
        const Known *known = input_known(c, i);
        if (!has_input(c, i)) continue;
        if (!known || !elem_dtype(known->type, &dtype) || !is_constant(c->im, known)) return false;
        n_given++;
    }
    return n_given > 0;
}

/* The op alone, with its inputs as constants and params; NULL: it cannot be evaluated here. */
static Graph *graph_of(Call *c, Import *part) {
    Scope *scope = onnx_scope_new(part, NULL, c->scope->opsets);
    Call inner = *c;
    scope->call = c->scope->call;
    scope->function = c->scope->function;
    scope->is_repeated = true;
    inner.im = part;
    inner.scope = scope;
    for (uint32_t i = 0; i < c->node->inputs.n; i++)
        if (has_input(c, i) && !onnx_scope_own(scope, c->node->inputs.data[i]))
            onnx_scope_add(part, scope, c->node->inputs.data[i])->known = input_value(c, i)->known;
    bool good = onnx_check(&inner) && (c->op->lower(&inner), onnx_check(&inner));
    c->has_failed = inner.has_failed;
    for (uint32_t i = 0; good && i < c->node->outputs.n; i++) {
        Value *made = has_output(c, i) ? onnx_scope_own(scope, c->node->outputs.data[i]) : NULL;
        if (!made) continue;
        NodeId node = value_node(&inner, made);
        if (node == NODE_NONE) return NULL;
        build_output(part->b, str_format(part->arena, "output_%u", i), node, 0);
    }
    return good ? build_finish(part->b) : NULL;
}

static bool is_small(const Graph *graph) {
    for (uint32_t i = 0; i < graph->nodes.n; i++) {
        int64_t n;
        DimId elems = shape_n_elems(graph->dims, &graph->nodes.data[i].shape);
        if (elems == DIM_NONE || !dim_is_const(graph->dims, elems, &n) || n > MAX_EVALUATED)
            return false;
        if (graph_is_output(graph, i) && n > MAX_KNOWN) return false;
    }
    return graph->inputs.n == 0;
}

static bool load_params(const Import *part, const Graph *graph, Tensor *params) {
    for (uint32_t k = 0, i; k < graph->params.n; k++) {
        const OnnxWeight *weight = NULL;
        for (i = 0; i < part->result->weights.n; i++)
            if (part->result->weights.data[i].name == graph->params.data[k].name)
                weight = &part->result->weights.data[i];
        if (!weight ||
            !tensor_new(part->arena, weight->dtype, weight->rank, weight->dims, &params[k]))
            return false;
        tensor_load(&params[k], weight->bytes.data);
    }
    return true;
}

static Known *known_of(Import *im, const Tensor *tensor) {
    Known *known = known_new(im, (int64_t)elem_of_dtype(tensor->dtype), tensor->rank, tensor->dims);
    for (uint32_t i = 0; known && i < known->n; i++) {
        if (known->floats) known->floats[i] = tensor_number(tensor, i);
        if (known->ints) {
            int64_t value = tensor_int(tensor, i);
            if (value >= DIM_LIMIT || value <= -DIM_LIMIT) return NULL;
            known->ints[i] = dim_const(im->b->dims, value);
        }
    }
    return known;
}

bool onnx_fold_known(Call *c) {
    Import *im = c->im, part = *im;
    OnnxImport result = {.module = im->result->module};
    int64_t symbols[DIM_MAX_SYMBOLS] = {0};
    const char *why;
    if (!can_evaluate(c)) return false;
    part.result = &result;
    part.highest_dim = 0; /* no smaller dim would make it fit */
    memset(&part.names, 0, sizeof part.names);
    memset(&part.keys, 0, sizeof part.keys);
    part.b = build_new(im->arena, im->b->dims, im->b->graph->source, im->b->graph->name);
    Graph *graph = graph_of(c, &part);
    if (!graph || !is_small(graph)) return false;
    Tensor *params = arena_array(im->arena, Tensor, graph->params.n + 1);
    Tensor *values = arena_array(im->arena, Tensor, graph->nodes.n + 1);
    Known **made = arena_array(im->arena, Known *, graph->outputs.n + 1);
    if (!load_params(&part, graph, params) ||
        !interp_graph(graph, symbols, NULL, params, values, im->arena, &why))
        return false;
    for (uint32_t k = 0; k < graph->outputs.n; k++) {
        made[k] = known_of(im, &values[graph->outputs.data[k].node]);
        if (!made[k]) return false;
    }
    for (uint32_t k = 0, i = 0; k < graph->outputs.n; k++, i++) {
        while (strcmp(graph->outputs.data[k].name, str_format(im->arena, "output_%u", i)) != 0) i++;
        output_known(c, i, made[k]);
    }
    return true;
}
