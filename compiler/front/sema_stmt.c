/* Statements and graphs: binding names, params, fixed kernels, outputs, dropping what is unused. */
#include "front/sema_state.h"

#include <string.h>

static bool is_graph_frame(const Sema *sema) {
    return sema->frame->def == NULL;
}

/* Whether `name` may be bound here; reports if not. In a graph dims and dtypes cannot be shadowed,
 * so that its printed form means the same. */
static bool check_name(Sema *sema, Str name, Span span) {
    Dtype dtype;
    const Binding *old = scope_find(&sema->frame->scope, name);
    if (old && old->value.kind == VALUE_ABSENT) return true; /* an output not bound yet */
    if (!old && is_graph_frame(sema)) old = scope_find(&sema->dim_scope, name);
    if (old) {
        sema_error(sema, DIAG_REDEFINITION, span, "`%s` is bound already", name);
        diag_note(sema->diags, sema->frame->source, old->span, "the first binding is here");
        return false;
    }
    if (!is_graph_frame(sema) || !dtype_by_name(name, &dtype)) return true;
    sema_error(sema, DIAG_REDEFINITION, span, "`%s` is a dtype and cannot be bound", name);
    return false;
}

static void bind(Sema *sema, const Ast *target, Value value) {
    if (strcmp(target->name, "_") == 0 || !check_name(sema, target->name, target->span)) return;
    if (value.kind == VALUE_TENSOR && is_graph_frame(sema)) {
        Node *node = graph_node(sema->graph, value.node);
        if (!node->name) node->name = target->name;
    }
    scope_add(sema->arena, &sema->frame->scope, target->name, value, target->span);
    scope_find(&sema->frame->scope, target->name)->block = sema->kernel;
}

static void stmt_bind(Sema *sema, const AstStmt *stmt) {
    Value value = sema_eval(sema, stmt->value);
    uint32_t n = stmt->targets.n;
    if (n == 1) {
        bind(sema, stmt->targets.data[0], value);
        return;
    }
    bool is_list = value.kind == VALUE_LIST;
    if (value.kind != VALUE_POISON && (!is_list || value.n_items != n)) {
        sema_error(sema, DIAG_WRONG_COUNT, stmt->span, "%u names for %u value%s", n,
                   is_list ? value.n_items : 1, is_list && value.n_items != 1 ? "s" : "");
        value = value_poison();
    }
    for (uint32_t i = 0; i < n; i++)
        bind(sema, stmt->targets.data[i],
             value.kind == VALUE_LIST ? value.items[i] : value_poison());
}

static void stmt_param(Sema *sema, const AstStmt *stmt) {
    const Ast *name = stmt->targets.data[0];
    if (!is_graph_frame(sema)) {
        sema_error(sema, DIAG_MISPLACED, stmt->span, "`param` belongs in a graph, not in a def");
        return;
    }
    Node node = {.op = OP_PARAM, .name = name->name};
    NodeId id = NODE_NONE;
    if (sema_eval_type(sema, stmt->type, &node.dtype, &node.shape))
        id = sema_add_node(sema, name->span, node);
    if (id != NODE_NONE) {
        GraphInput param = {.name = name->name, .node = id, .key = stmt->key, .span = name->span};
        vec_push(sema->arena, &sema->graph->params, param);
        sema->graph->kernel_of.data[id] = 0;
    }
    bind(sema, name, id == NODE_NONE ? value_poison() : value_tensor(id, name->span));
}

static void stmt_return(Sema *sema, const AstStmt *stmt) {
    Frame *frame = sema->frame;
    if (is_graph_frame(sema)) {
        sema_error(sema, DIAG_MISPLACED, stmt->span, "`return` belongs in a def");
        diag_help(sema->diags, "A graph's outputs are the names declared after `->`.");
        return;
    }
    uint32_t n = stmt->values.n;
    Value *values = arena_array(sema->arena, Value, n);
    for (uint32_t i = 0; i < n; i++) values[i] = sema_eval(sema, stmt->values.data[i]);
    frame->has_returned = true;
    frame->result = values[0];
    if (n > 1) frame->result = (Value){.kind = VALUE_LIST, .n_items = n, .items = values};
    for (uint32_t i = 0; i < n; i++)
        if (values[i].kind == VALUE_POISON) frame->result = value_poison();
}

/* The statements of a `kernel` or `fuse` block. */
static void fill_block(Sema *sema, const AstStmt *stmt, FixedKernel block) {
    vec_push(sema->arena, &sema->graph->fixed_kernels, block);
    sema->kernel = sema->graph->fixed_kernels.n;
    sema_body(sema, &stmt->body);
    sema->kernel = 0;
}

static void stmt_fuse(Sema *sema, const AstStmt *stmt) {
    bool is_must = stmt->kind == STMT_MUST;
    if (!is_graph_frame(sema) || sema->kernel) {
        sema_error(sema, DIAG_MISPLACED, stmt->span, "`fuse %s` belongs directly in a graph",
                   is_must ? "must" : "never");
        sema_body(sema, &stmt->body);
        return;
    }
    FixedKernel block = {.kind = is_must ? BLOCK_MUST : BLOCK_NEVER, .span = stmt->span};
    block.name = block_word(block.kind);
    fill_block(sema, stmt, block);
}

static void stmt_kernel(Sema *sema, const AstStmt *stmt) {
    Graph *graph = sema->graph;
    if (!is_graph_frame(sema) || sema->kernel) {
        sema_error(sema, DIAG_MISPLACED, stmt->span, "`kernel` belongs directly in a graph");
        return;
    }
    for (uint32_t i = 0; i < graph->fixed_kernels.n; i++) {
        if (graph->fixed_kernels.data[i].kind != BLOCK_KERNEL ||
            graph->fixed_kernels.data[i].name != stmt->name)
            continue;
        sema_error(sema, DIAG_REDEFINITION, stmt->span, "a second kernel `%s`", stmt->name);
        diag_note(sema->diags, sema->frame->source, graph->fixed_kernels.data[i].span,
                  "the first is here");
    }
    FixedKernel kernel = {.name = stmt->name, .span = stmt->span};
    fill_block(sema, stmt, kernel);
}

static void stmt_broken(Sema *sema, const AstStmt *stmt) {
    for (uint32_t i = 0; i < stmt->targets.n; i++) {
        const Ast *target = stmt->targets.data[i];
        if (!scope_find(&sema->frame->scope, target->name))
            scope_add(sema->arena, &sema->frame->scope, target->name, value_poison(), target->span);
    }
    sema->frame->has_returned = sema->frame->has_returned || sema->frame->def;
}

void sema_body(Sema *sema, const AstStmts *body) {
    for (uint32_t i = 0; i < body->n && !sema->stopped; i++) {
        const AstStmt *stmt = body->data[i];
        if (sema->frame->has_returned && stmt->kind != STMT_BROKEN) {
            sema_error(sema, DIAG_MISPLACED, stmt->span, "statement after `return`");
            return;
        }
        switch (stmt->kind) {
        case STMT_BIND:
            stmt_bind(sema, stmt);
            break;
        case STMT_PARAM:
            stmt_param(sema, stmt);
            break;
        case STMT_RETURN:
            stmt_return(sema, stmt);
            break;
        case STMT_KERNEL:
            stmt_kernel(sema, stmt);
            break;
        case STMT_MUST:
        case STMT_NEVER:
            stmt_fuse(sema, stmt);
            break;
        case STMT_BROKEN:
            stmt_broken(sema, stmt);
            break;
        }
    }
}

/* Graphs. */

static void add_inputs(Sema *sema, const AstGraph *ast) {
    for (uint32_t i = 0; i < ast->inputs.n; i++) {
        const AstDecl *decl = &ast->inputs.data[i];
        Node node = {.op = OP_INPUT, .name = decl->name};
        Value value = value_poison();
        if (sema_eval_type(sema, decl->type, &node.dtype, &node.shape)) {
            NodeId id = sema_add_node(sema, decl->span, node);
            if (id == NODE_NONE) return;
            GraphInput input = {.name = decl->name, .node = id, .span = decl->span};
            vec_push(sema->arena, &sema->graph->inputs, input);
            value = value_tensor(id, decl->span);
        }
        if (check_name(sema, decl->name, decl->span))
            scope_add(sema->arena, &sema->frame->scope, decl->name, value, decl->span);
    }
}

static void check_output_names(Sema *sema, const AstGraph *ast) {
    for (uint32_t i = 0; i < ast->outputs.n; i++) {
        const AstDecl *decl = &ast->outputs.data[i];
        check_name(sema, decl->name, decl->span);
        for (uint32_t k = 0; k < i; k++)
            if (ast->outputs.data[k].name == decl->name)
                sema_error(sema, DIAG_REDEFINITION, decl->span, "output `%s` is declared twice",
                           decl->name);
    }
    if (ast->outputs.n == 0)
        sema_error(sema, DIAG_MISSING_OUTPUT, ast->span, "graph `%s` has no output", ast->name);
}

/* The output's tensor, whose type must be the declared one. */
static void add_output(Sema *sema, const AstDecl *decl) {
    Binding *binding = scope_find(&sema->frame->scope, decl->name);
    Dtype dtype;
    Shape shape;
    bool has_type = sema_eval_type(sema, decl->type, &dtype, &shape);
    if (!binding) {
        sema_error(sema, DIAG_MISSING_OUTPUT, decl->span, "output `%s` is never bound", decl->name);
        const char *nearest = scope_nearest(&sema->frame->scope, decl->name, NULL);
        if (nearest) diag_help(sema->diags, "Did you mean `%s`?", nearest);
        return;
    }
    binding->is_used = true;
    NodeId node;
    if (!has_type || binding->value.kind == VALUE_POISON) return;
    if (value_is_number(&binding->value)) {
        if (!sema_as_tensor(sema, &binding->value, dtype, &node)) return;
    } else if (!sema_want_tensor(sema, &binding->value, decl->name, &node)) {
        return;
    }
    const Node *made = graph_node(sema->graph, node);
    bool same_dtype = made->dtype == dtype;
    if (!same_dtype || !shape_equal(&made->shape, &shape)) {
        sema_error(sema, same_dtype ? DIAG_SHAPE_MISMATCH : DIAG_DTYPE_MISMATCH, decl->span,
                   "output `%s` is declared %s but is %s", decl->name,
                   sema_type_str(sema, dtype, &shape), sema_node_type_str(sema, node));
        diag_note(sema->diags, sema->frame->source, binding->span, "`%s` is bound here",
                  decl->name);
        return;
    }
    GraphOutput output = {.name = decl->name, .node = node, .span = decl->span};
    uint32_t block = graph_is_bound(sema->graph, node) ? binding->block : 0;
    if (block && sema->graph->fixed_kernels.data[block - 1].kind == BLOCK_KERNEL)
        output.copied_by = block;
    vec_push(sema->arena, &sema->graph->outputs, output);
}

static void warn_unused(Sema *sema) {
    const Scope *scope = &sema->frame->scope;
    for (uint32_t i = 0; i < scope->bindings.n; i++) {
        const Binding *binding = &scope->bindings.data[i];
        if (binding->is_used || binding->name[0] == '_') continue;
        diag_report(sema->diags, DIAG_UNUSED_VALUE, sema->frame->source, binding->span,
                    "`%s` is never used", binding->name);
    }
}

/* Dead code. */

static bool *find_live(Sema *sema) {
    const Graph *graph = sema->graph;
    bool *live = arena_array(sema->arena, bool, graph->nodes.n);
    for (uint32_t i = 0; i < graph->inputs.n; i++) live[graph->inputs.data[i].node] = true;
    for (uint32_t i = 0; i < graph->outputs.n; i++) live[graph->outputs.data[i].node] = true;
    for (NodeId id = graph->nodes.n; id-- > 0;) {
        const Node *node = graph_node(graph, id);
        for (uint32_t k = 0; k < node->n_args && live[id]; k++) live[node->args[k]] = true;
    }
    return live;
}

/* Closes the gaps in nodes and kernel_of; entry i of the result is where node i went. */
static NodeId *compact_nodes(Sema *sema, const bool *live) {
    Graph *graph = sema->graph;
    NodeId *moved = arena_array(sema->arena, NodeId, graph->nodes.n);
    NodeId n = 0;
    for (NodeId id = 0; id < graph->nodes.n; id++) {
        if (!live[id]) continue;
        Node *node = graph_node(graph, id);
        for (uint32_t k = 0; k < node->n_args; k++) node->args[k] = moved[node->args[k]];
        graph->nodes.data[n] = *node;
        graph->kernel_of.data[n] = graph->kernel_of.data[id];
        moved[id] = n++;
    }
    graph->nodes.n = graph->kernel_of.n = n;
    return moved;
}

/* Kernels that lost all their nodes go too. */
static void compact_kernels(Sema *sema) {
    Graph *graph = sema->graph;
    uint32_t n_old = graph->fixed_kernels.n, n = 0;
    uint32_t *moved = arena_array(sema->arena, uint32_t, n_old + 1);
    for (NodeId id = 0; id < graph->nodes.n; id++) moved[graph->kernel_of.data[id]] = 1;
    for (uint32_t k = 1; k <= n_old; k++) {
        if (!moved[k]) continue;
        graph->fixed_kernels.data[n] = graph->fixed_kernels.data[k - 1];
        moved[k] = ++n;
    }
    moved[0] = 0;
    for (NodeId id = 0; id < graph->nodes.n; id++)
        graph->kernel_of.data[id] = moved[graph->kernel_of.data[id]];
    for (uint32_t i = 0; i < graph->outputs.n; i++)
        graph->outputs.data[i].copied_by = moved[graph->outputs.data[i].copied_by];
    graph->fixed_kernels.n = n;
    if (n == 0) graph->kernel_of.n = 0;
}

static void prune(Sema *sema) {
    Graph *graph = sema->graph;
    const bool *live = find_live(sema);
    uint32_t n_params = 0;
    for (uint32_t i = 0; i < graph->params.n; i++)
        if (live[graph->params.data[i].node])
            graph->params.data[n_params++] = graph->params.data[i];
    graph->params.n = n_params;
    const NodeId *moved = compact_nodes(sema, live);
    for (uint32_t i = 0; i < graph->inputs.n; i++)
        graph->inputs.data[i].node = moved[graph->inputs.data[i].node];
    for (uint32_t i = 0; i < n_params; i++)
        graph->params.data[i].node = moved[graph->params.data[i].node];
    for (uint32_t i = 0; i < graph->outputs.n; i++)
        graph->outputs.data[i].node = moved[graph->outputs.data[i].node];
    compact_kernels(sema);
}

void sema_graph(Sema *sema, const AstGraph *ast) {
    uint32_t n_errors = sema->diags->n_errors;
    Graph *graph = graph_new(sema->arena, sema->dims, sema->file->source, ast->name);
    graph->span = ast->span;
    Frame frame = {.source = sema->file->source};
    sema->graph = graph;
    sema->frame = &frame;
    add_inputs(sema, ast);
    check_output_names(sema, ast);
    sema_body(sema, &ast->body);
    for (uint32_t i = 0; i < ast->outputs.n && !sema->stopped; i++)
        add_output(sema, &ast->outputs.data[i]);
    if (sema->diags->n_errors == n_errors) {
        if (n_errors == sema->n_errors_before) warn_unused(sema);
        sema_join_same(sema);
        prune(sema);
        vec_push(sema->arena, &sema->module->graphs, graph);
    }
    sema->graph = NULL;
    sema->frame = NULL;
}
