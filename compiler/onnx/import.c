/* The walk over a model's nodes. See import.h. */
#include "onnx/call/import_state.h"

enum { MAX_INLINE_DEPTH = 32, MAX_CALLS = 1 << 20 };

/* Nodes. */

static const OnnxFunction *find_function(const Import *im, const OnnxNode *node) {
    for (uint32_t i = 0; i < im->model->functions.n; i++) {
        const OnnxFunction *function = &im->model->functions.data[i];
        if (strcmp(function->name, node->op) == 0 && strcmp(function->domain, node->domain) == 0)
            return function;
    }
    return NULL;
}

static bool fail_op(Call *c, bool is_other_opset) {
    const char *why = onnx_why_refused(c->node->domain, c->node->op);
    if (why) return onnx_fail(c, DIAG_UNKNOWN_OP, "the op is not supported: %s", why);
    if (is_other_opset)
        return onnx_fail(c, DIAG_UNKNOWN_OP,
                         "this version of the op is not supported; docs/ONNX.md lists the opsets");
    return onnx_fail(c, DIAG_UNKNOWN_OP,
                     "the op is not supported; it needs a row in compiler/onnx/onnx_ops.def, or a "
                     "function of this name in the model");
}

static bool check_inputs(Call *c) {
    uint32_t n = c->node->inputs.n;
    if (n < c->op->min_inputs || n > c->op->max_inputs)
        return onnx_fail(c, DIAG_WRONG_ARITY, "it has %u inputs, but the op takes %u to %u", n,
                         c->op->min_inputs, c->op->max_inputs);
    for (uint32_t i = 0; i < n; i++) {
        if (!has_input(c, i) && i < c->op->min_inputs)
            return onnx_fail(c, DIAG_WRONG_ARITY, "input %u is left out", i + 1);
        if (has_input(c, i) && !onnx_scope_find(c->scope, c->node->inputs.data[i]))
            return onnx_fail(c, DIAG_UNKNOWN_NAME, "no node before it makes its input `%s`",
                             c->node->inputs.data[i]);
    }
    return true;
}

/* The outputs beyond the first that somebody names must have been made. */
static bool check_outputs(Call *c) {
    if (!onnx_check(c)) return false;
    for (uint32_t i = 0; i < c->node->outputs.n; i++)
        if (c->node->outputs.data[i][0] && !onnx_scope_find(c->scope, c->node->outputs.data[i]))
            return onnx_fail(c, DIAG_UNKNOWN_OP, "its output `%s` is not supported",
                             c->node->outputs.data[i]);
    return true;
}

/* Elements that the language has no dtype for are cast, and go through as they are. */
static bool check_held(Call *c) {
    if (c->op->lower == onnx_cast || c->op->lower == onnx_identity) return true;
    for (uint32_t i = 0; i < c->node->inputs.n; i++) {
        const Value *value = has_input(c, i) ? input_value(c, i) : NULL;
        int64_t type = value ? held_type(c->im, value->node) : ELEM_NONE;
        if (type)
            return onnx_fail(c, DIAG_UNSUPPORTED_DTYPE,
                             "its input `%s` is %s, which the language has no dtype for; cast it "
                             "before",
                             value->name, elem_info(type)->name);
    }
    return true;
}

/* Whether the node is lowered. What its outputs follow from is undecided as what its inputs do. */
static bool lower(Call *c) {
    for (uint32_t i = 0; i < c->node->inputs.n && !c->undecided; i++)
        if (has_input(c, i)) c->undecided = input_value(c, i)->undecided;
    c->op->lower(c);
    if (!check_outputs(c)) return false;
    for (uint32_t i = 0; i < c->node->outputs.n; i++) {
        Value *made = onnx_scope_own(c->scope, c->node->outputs.data[i]);
        if (made) made->undecided = c->undecided;
    }
    onnx_note_whole(c);
    return true;
}

static bool run_node(Import *im, Scope *scope, const OnnxNode *node) {
    Call call = {.im = im, .scope = scope, .node = node}, *c = &call;
    bool is_other_opset = false;
    c->opset = onnx_scope_opset(scope, node->domain);
    if (++im->n_calls > MAX_CALLS) return onnx_fail(c, DIAG_LIMIT, "the model has too many nodes");
    const OnnxFunction *function = find_function(im, node);
    if (function) return onnx_inline_function(c, function);
    if (c->opset > onnx_newest_opset(node->domain))
        return onnx_fail(c, DIAG_UNKNOWN_OP,
                         "the opset is newer than %lld, the newest that is known; convert the "
                         "model to that one",
                         (long long)onnx_newest_opset(node->domain));
    c->op = onnx_op_find(node->domain, node->op, c->opset, &is_other_opset);
    if (!c->op) return fail_op(c, is_other_opset);
    if (!check_inputs(c) || !check_held(c)) return false;
    for (uint32_t i = 0; i < node->outputs.n; i++)
        if (node->outputs.data[i][0] && onnx_scope_own(scope, node->outputs.data[i]))
            return onnx_fail(c, DIAG_REDEFINITION, "its output `%s` is made twice",
                             node->outputs.data[i]);
    if (c->op->fold && c->op->fold(c)) return !c->has_failed;
    if (!c->has_failed && onnx_fold_known(c)) return check_outputs(c);
    return !c->has_failed && onnx_check(c) && lower(c);
}

static bool run_nodes(Import *im, Scope *scope, const OnnxNode *nodes, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        if (!run_node(im, scope, &nodes[i])) return false;
    return true;
}

bool onnx_inline_function(Call *c, const OnnxFunction *function) {
    Import *im = c->im;
    if (im->depth >= MAX_INLINE_DEPTH)
        return onnx_fail(c, DIAG_RECURSION, "functions call each other too deep");
    Scope *scope = onnx_scope_new(im, NULL, &function->opsets);
    scope->call = c;
    scope->function = function;
    scope->is_repeated = true;
    for (uint32_t i = 0; i < function->inputs.n; i++) {
        Value *given = has_input(c, i) ? onnx_scope_find(c->scope, c->node->inputs.data[i]) : NULL;
        if (!given && has_input(c, i))
            return onnx_fail(c, DIAG_UNKNOWN_NAME, "no node before it makes its input `%s`",
                             c->node->inputs.data[i]);
        Value *inner = onnx_scope_add(im, scope, function->inputs.data[i]);
        inner->is_absent = !given;
        if (given)
            *inner = (Value){.name = function->inputs.data[i],
                             .node = given->node,
                             .known = given->known,
                             .whole = given->whole,
                             .below = given->below,
                             .undecided = given->undecided,
                             .tensor = given->tensor,
                             .given = given,
                             .given_scope = c->scope};
    }
    im->depth++;
    bool good = run_nodes(im, scope, function->nodes.data, function->nodes.n);
    im->depth--;
    for (uint32_t i = 0; good && i < function->outputs.n && i < c->node->outputs.n; i++) {
        Value *made = onnx_scope_find(scope, function->outputs.data[i]);
        if (!has_output(c, i)) continue;
        if (!made)
            return onnx_fail(c, DIAG_MISSING_OUTPUT, "the function does not make its output `%s`",
                             function->outputs.data[i]);
        Value *outer = onnx_scope_add(im, c->scope, c->node->outputs.data[i]);
        value_copy(outer, made);
        name_node(c, outer);
    }
    return good;
}

/* The model's graph. */

static bool fail_builder(Import *im, const char *what, const char *name) {
    BuildError error;
    if (!build_take_error(im->b, &error)) return true;
    return diag_report(im->diags, error.id, NULL, (Span){0}, "%s: %s `%s`: %s", im->source->name,
                       what, name, error.message);
}

static bool add_input(Import *im, Scope *scope, const OnnxValueInfo *info) {
    Dtype dtype;
    DimId dims[MAX_RANK];
    bool is_held = elem_biased(info->type, &dtype);
    if (onnx_scope_find(scope, info->name)) return true; /* an initializer of the same name */
    if (onnx_is_constant(im, info)) return onnx_add_constant(im, scope, info);
    if (!info->is_tensor || !info->has_shape)
        return onnx_fail_model(im, DIAG_UNSUPPORTED_DTYPE,
                               "an input must be a tensor with a shape:", info->name);
    if (is_held) dtype = DT_U8;
    if (!is_held && !elem_dtype(info->type, &dtype))
        return diag_report(im->diags, DIAG_UNSUPPORTED_DTYPE, NULL, (Span){0},
                           "%s: input `%s` is %s, which the language has no dtype for",
                           im->source->name, info->name, elem_info(info->type)->name);
    if (info->dims.n > MAX_GIVEN_RANK)
        return onnx_fail_model(im, DIAG_LIMIT, "an input has more than 8 axes:", info->name);
    OnnxNode node = {.name = info->name, .op = "input", .domain = ""};
    Call call = {.im = im, .scope = scope, .node = &node, .opset = onnx_scope_opset(scope, "")};
    for (uint32_t k = 0; k < info->dims.n; k++)
        if (!onnx_input_dim(&call, &info->dims.data[k],
                            str_format(im->arena, "%s_%u", info->name, k), &dims[k]))
            return false;
    Value *value = onnx_scope_add(im, scope, info->name);
    value->node = build_input(im->b, onnx_unique_name(im, info->name, "x"), dtype,
                              (DimList){info->dims.n, dims});
    if (is_held) held_as(im, value->node, info->type);
    return onnx_check(&call);
}

/* An error of a value that no node is to blame for is that of the output. */
static bool add_output(Import *im, Scope *scope, uint32_t index) {
    const OnnxValueInfo *info = &im->model->graph->outputs.data[index];
    Value *value = onnx_scope_find(scope, info->name);
    if (!value) return onnx_fail_model(im, DIAG_MISSING_OUTPUT, "no node makes output", info->name);
    OnnxNode node = {.name = info->name, .op = "output", .domain = ""};
    Call call = {.im = im, .scope = scope, .node = &node};
    NodeId id = value_node(&call, value);
    if (id == NODE_NONE || !onnx_check(&call)) {
        onnx_fail(&call, DIAG_NO_LOWERING, "it has no value");
        return false;
    }
    Dtype dtype;
    if (elem_dtype(info->type, &dtype) && dtype != dtype_of(&call, id))
        id = cast_to(&call, id, dtype);
    build_output(im->b, im->outputs.data[index], id, 0);
    return fail_builder(im, "output", info->name);
}

static bool walk(Import *im) {
    const OnnxGraph *graph = im->model->graph;
    Scope *scope = onnx_scope_new(im, NULL, &im->model->opsets);
    if (!onnx_check_constants(im) || !onnx_add_initializers(im, scope, graph)) return false;
    for (uint32_t i = 0; i < graph->inputs.n; i++)
        if (!add_input(im, scope, &graph->inputs.data[i])) return false;
    if (!onnx_check_ranges(im)) return false;
    for (uint32_t i = 0; i < graph->outputs.n; i++)
        vec_push(im->arena, &im->outputs, onnx_unique_name(im, graph->outputs.data[i].name, "y"));
    if (!run_nodes(im, scope, graph->nodes.data, graph->nodes.n)) return false;
    for (uint32_t i = 0; i < graph->outputs.n; i++)
        if (!add_output(im, scope, i)) return false;
    return true;
}

/* Drops the weights of params that no output needs, and orders the others as the graph has them. */
static void keep_needed(Import *im, const Graph *graph) {
    OnnxImport *result = im->result;
    OnnxWeight *all = result->weights.data;
    uint32_t n = result->weights.n;
    memset(&result->weights, 0, sizeof result->weights);
    for (uint32_t k = 0, i = 0; k < graph->params.n; k++) {
        for (i = 0; i < n && all[i].name != graph->params.data[k].name; i++) continue;
        if (i < n) vec_push(im->arena, &result->weights, all[i]);
    }
}

/* One try with the bounds of dims that are known; NULL if it failed or was given up. */
static OnnxImport *import_once(Import *im, const char *weights) {
    Arena *arena = im->arena;
    const Source *empty = source_new(arena, im->source->name, "", 0);
    Module *module = module_new(arena, im->strings, empty);
    im->result = arena_array(arena, OnnxImport, 1);
    im->result->module = module;
    im->b = build_new(
        arena, module->dims, empty,
        strtab_intern_z(im->strings, onnx_plain_name(im, im->model->graph->name, "main")));
    if (!walk(im)) return NULL;
    Graph *graph = build_finish(im->b);
    if (!graph) {
        fail_builder(im, "graph", im->b->graph->name);
        return NULL;
    }
    vec_push(arena, &module->graphs, graph);
    keep_needed(im, graph);
    if (im->result->weights.n) module->weights = strtab_intern_z(im->strings, weights);
    return im->result;
}

OnnxImport *onnx_import(Arena *arena, StrTab *strings, Diags *diags, const OnnxSource *source,
                        const char *weights) {
    const char *why;
    Import first = {.arena = arena,
                    .strings = strings,
                    .diags = diags,
                    .source = source,
                    .highest_dim = 1 << 16,
                    .run = run_nodes},
           im = first;
    first.model = onnx_model_read(arena, strings, source->file, &why);
    if (!first.model) {
        diag_report(diags, DIAG_SYNTAX, NULL, (Span){0}, "%s is no ONNX model: %s", source->name,
                    why);
        return NULL;
    }
    for (OnnxImport *made;;) {
        first.bounds = im.bounds;
        first.highest_dim = im.highest_dim;
        im = first;
        made = import_once(&im, weights);
        if (!im.is_given_up) return made;
    }
}
