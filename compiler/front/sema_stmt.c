/* Statements and graphs: names, params, blocks, outputs. */
#include "front/sema_state.h"

#include <string.h>

/* Whether `name` may be bound here; reports an error if not. A graph cannot shadow dims and dtypes,
 * so that its printed form has the same meaning. */
static bool check_name(Sema *sema, Str name, Span span) {
    const Binding *old = scope_find(&sema->frame->scope, name);
    if (old && old->value.kind == VALUE_ABSENT) return true; /* a declared output, not bound yet */
    if (!old && sema_is_graph_frame(sema)) old = scope_find(&sema->dim_scope, name);
    if (old) {
        sema_error(sema, DIAG_REDEFINITION, span, "`%s` is bound already", name);
        diag_note(sema->diags, old->source ? old->source : sema->frame->source, old->span,
                  "the first binding is here");
        return false;
    }
    if (!sema_is_graph_frame(sema) || !dtype_is_reserved(name)) return true;
    sema_error(sema, DIAG_REDEFINITION, span, "`%s` is a dtype and cannot be bound", name);
    return false;
}

static void bind(Sema *sema, const Ast *target, Value value) {
    if (strcmp(target->name, "_") == 0 || !check_name(sema, target->name, target->span)) return;
    if (value.kind == VALUE_TENSOR && sema_is_graph_frame(sema))
        build_name(sema->builder, value.node, target->name);
    scope_add(sema->arena, &sema->frame->scope, target->name, value, target->span);
    scope_find(&sema->frame->scope, target->name)->block = sema->builder->block;
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
             value.kind == VALUE_LIST ? value_item(&value, i) : value_poison());
}

static void stmt_param(Sema *sema, const AstStmt *stmt) {
    Value value = sema_param(sema, stmt);
    bind(sema, stmt->targets.data[0], value);
}

static void stmt_return(Sema *sema, const AstStmt *stmt) {
    Frame *frame = sema->frame;
    if (sema_is_graph_frame(sema)) {
        sema_error(sema, DIAG_MISPLACED, stmt->span, "`return` belongs in a def or a loop");
        diag_help(sema->diags, "A graph's outputs are the names declared after `->`.");
        return;
    }
    uint32_t n = stmt->values.n;
    Value *values = arena_array(sema->arena, Value, n);
    for (uint32_t i = 0; i < n; i++) values[i] = sema_eval(sema, stmt->values.data[i]);
    frame->has_returned = true;
    frame->result = values[0];
    if (n > 1)
        frame->result = (Value){.kind = VALUE_LIST, .n_items = n, .items = values, .several = true};
    for (uint32_t i = 0; i < n; i++)
        if (values[i].kind == VALUE_POISON) frame->result = value_poison();
}

/* The statements of a `kernel` or `fuse` block. */
static void fill_block(Sema *sema, const AstStmt *stmt, BlockKind kind) {
    build_block(sema_at(sema, stmt->span), kind, stmt->name);
    sema_report(sema, stmt->span, NULL);
    sema_body(sema, &stmt->body);
    build_end_block(sema->builder);
}

static void stmt_fuse(Sema *sema, const AstStmt *stmt) {
    bool is_must = stmt->kind == STMT_MUST;
    if (!sema_is_graph_frame(sema) || sema->builder->block) {
        sema_error(sema, DIAG_MISPLACED, stmt->span, "`fuse %s` belongs directly in a graph",
                   is_must ? "must" : "never");
        sema_body(sema, &stmt->body);
        return;
    }
    fill_block(sema, stmt, is_must ? BLOCK_MUST : BLOCK_NEVER);
}

static void stmt_kernel(Sema *sema, const AstStmt *stmt) {
    if (sema_is_graph_frame(sema) && !sema->builder->block)
        fill_block(sema, stmt, BLOCK_KERNEL);
    else
        sema_error(sema, DIAG_MISPLACED, stmt->span, "`kernel` belongs directly in a graph");
}

static void stmt_online(Sema *sema, const AstStmt *stmt) {
    uint32_t before = build_begin_online(sema_at(sema, stmt->span));
    sema_body(sema, &stmt->body);
    build_end_online(sema->builder, before);
}

static void stmt_broken(Sema *sema, const AstStmt *stmt) {
    for (uint32_t i = 0; i < stmt->targets.n; i++) {
        const Ast *target = stmt->targets.data[i];
        if (!sema_find(sema, target->name))
            scope_add(sema->arena, &sema->frame->scope, target->name, value_poison(), target->span);
    }
    sema->frame->has_returned = sema->frame->has_returned || !sema_is_graph_frame(sema);
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
        case STMT_ONLINE:
            stmt_online(sema, stmt);
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
        Dtype dtype;
        Shape shape;
        Value value = value_poison();
        if (sema_eval_type(sema, decl->type, &dtype, &shape)) {
            const DimList extents = {shape.rank, shape.dims};
            NodeId id = build_input(sema_at(sema, decl->span), decl->name, dtype, extents);
            value = sema_made(sema, decl->span, NULL, id);
            if (id == NODE_NONE) return;
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
    if (!build_check_n_outputs(sema->builder, ast->outputs.n)) sema_report(sema, ast->span, NULL);
}

/* The tensor bound to an output. A number takes the declared dtype. */
static bool want_output(Sema *sema, const AstDecl *decl, const Value *value, Dtype dtype,
                        NodeId *node) {
    Operand operand;
    if (!sema_want_operand(sema, value, decl->name, &operand)) return false;
    *node = build_const(sema_at(sema, value->span), &operand, dtype);
    if (*node == NODE_NONE) sema_report(sema, value->span, value);
    return *node != NODE_NONE;
}

/* Checks that the output's tensor has the declared type. */
static void add_output(Sema *sema, const AstDecl *decl) {
    Binding *binding = scope_find(&sema->frame->scope, decl->name);
    Dtype dtype;
    Shape shape;
    bool has_type = sema_eval_type(sema, decl->type, &dtype, &shape);
    if (!binding) {
        sema_error(sema, DIAG_MISSING_OUTPUT, decl->span, "output `%s` is never bound", decl->name);
        Nearest nearest = nearest_to(decl->name);
        scope_try_names(&sema->frame->scope, &nearest);
        if (nearest.best) diag_help(sema->diags, "Did you mean `%s`?", nearest.best);
        return;
    }
    binding->is_used = true;
    NodeId node;
    if (!has_type || binding->value.kind == VALUE_POISON) return;
    if (!want_output(sema, decl, &binding->value, dtype, &node)) return;
    const Node *made = sema_node(sema, node);
    bool same_dtype = made->dtype == dtype;
    if (!same_dtype || !shape_equal(&made->shape, &shape)) {
        sema_error(sema, same_dtype ? DIAG_SHAPE_MISMATCH : DIAG_DTYPE_MISMATCH, decl->span,
                   "output `%s` is declared %s but is %s", decl->name,
                   shape_type_str(sema->dims, sema->arena, dtype, &shape),
                   sema_node_type_str(sema, node));
        diag_note(sema->diags, sema->frame->source, binding->span, "`%s` is bound here",
                  decl->name);
        return;
    }
    build_output(sema_at(sema, decl->span), decl->name, node, binding->block);
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

void sema_graph(Sema *sema, const AstGraph *ast) {
    Builder *b = build_new(sema->arena, sema->dims, sema->file->source, ast->name);
    ArenaMark mark = arena_mark(sema->scratch);
    b->graph->arena = sema->scratch;
    b->graph->span = ast->span;
    b->rewrites = sema->rewrites;
    Frame frame = {.source = sema->file->source, .prefix = ""};
    scope_clear(&sema->params);
    sema->module_params.n = 0;
    sema->builder = b;
    sema->frame = &frame;
    add_inputs(sema, ast);
    check_output_names(sema, ast);
    sema_body(sema, &ast->body);
    for (uint32_t i = 0; i < ast->outputs.n && !sema->stopped; i++)
        add_output(sema, &ast->outputs.data[i]);
    if (sema->diags->n_errors == sema->n_errors_before) {
        warn_unused(sema);
        sema_name_params(sema, ast);
        Graph *graph = build_finish(b);
        if (graph) vec_push(sema->arena, &sema->module->graphs, graph);
        sema_report(sema, ast->span, NULL);
        if (graph && sema->scratch != sema->arena) graph_move_nodes(graph, sema->arena);
    }
    if (sema->scratch != sema->arena) arena_rewind(sema->scratch, mark);
    sema->builder = NULL;
    sema->frame = NULL;
}
