/* Params: those of a graph, and those of modules, which are defs with params. A call `f(x) as
 * "a.b"` puts "a.b." before the keys of the params of `f`. A key stands for one param of the graph:
 * where it is declared again, by another call with the same prefix, the param is the same. */
#include "front/sema_state.h"

#include <string.h>

bool sema_has_params(const AstStmts *body) {
    for (uint32_t i = 0; i < body->n; i++) {
        const AstStmt *stmt = body->data[i];
        const Ast *value = stmt->values.n ? stmt->values.data[0] : stmt->value;
        if (stmt->kind == STMT_PARAM) return true;
        if (value && value->kind == AST_LOOP && sema_has_params(&value->loop->body)) return true;
    }
    return false;
}

/* The text of a number or string with the name `name`, which stands in braces at `span`. Keys of
 * params take no dims. */
static const char *text_of_name(Sema *sema, Str name, Span span, bool takes_dims) {
    const Ast ast = {.kind = AST_NAME, .name = name, .span = span};
    Value value = sema_eval(sema, &ast);
    int64_t number;
    if (value.kind == VALUE_STRING) return value.string;
    if (value.kind == VALUE_INT && takes_dims) return dim_str(sema->dims, sema->arena, value.dim);
    if (value_const_int(sema, &value, &number))
        return str_format(sema->arena, "%lld", (long long)number);
    if (value.kind == VALUE_POISON) return NULL;
    sema_error(sema, DIAG_BAD_ARGUMENT, span, "`{%s}` stands for an integer or a string, not %s",
               name, value_describe(sema, &value));
    if (sema->frame->is_repeated && strcmp(name, sema->frame->loop->index) == 0)
        diag_help(sema->diags,
                  "A loop over a dim is one step that repeats: stack the params, as "
                  "f32[L, 4, 4], and take w[%s].",
                  name);
    return NULL;
}

const char *sema_fill_text(Sema *sema, Str text, Span span, bool takes_dims) {
    Text out = {.arena = sema->arena};
    for (const char *p = text; *p;) {
        size_t n_plain = strcspn(p, "{");
        text_printf(&out, "%.*s", (int)n_plain, p);
        p += n_plain;
        if (!*p) break;
        size_t n_bytes = strcspn(++p, "{}");
        Str name = strtab_intern(sema->strings, p, n_bytes);
        if (p[n_bytes] != '}' || !graph_is_identifier(name)) {
            sema_error(sema, DIAG_BAD_ARGUMENT, span,
                       "`{` must be followed by the name of a number and `}`");
            return NULL;
        }
        const char *value = text_of_name(sema, name, span, takes_dims);
        if (!value) return NULL;
        text_puts(&out, value);
        p += n_bytes + 1;
    }
    return text_str(&out);
}

/* The key of a param, or the beginning of keys. NULL after an error. */
static Str join(Sema *sema, Str prefix, const char *name, Span span) {
    const char *dot = *prefix && *name ? "." : "";
    if (strlen(prefix) + strlen(dot) + strlen(name) > SEMA_MAX_KEY) {
        sema_error(sema, DIAG_LIMIT, span, "key of a param of more than %d bytes", SEMA_MAX_KEY);
        return NULL;
    }
    return strtab_intern_z(sema->strings, str_format(sema->arena, "%s%s%s", prefix, dot, name));
}

Str sema_prefix(Sema *sema, const Ast *as) {
    if (!as) return sema->frame->prefix;
    const char *name = sema_fill_text(sema, as->name, as->name_span, false);
    return name ? join(sema, sema->frame->prefix, name, as->name_span) : NULL;
}

static bool has_key(Sema *sema, Str key, Span span) {
    if (*key) return true;
    sema_error(sema, DIAG_BAD_ARGUMENT, span, "the key of a param is empty");
    return false;
}

/* The param that has the key already. */
static Value same_param(Sema *sema, const Binding *first, Dtype dtype, const Shape *shape,
                        Span span) {
    Value value = first->value;
    if (value.kind == VALUE_POISON) return value;
    const Node *node = sema_node(sema, value.node);
    sema->n_params++;
    build_read_again(sema->builder, value.node);
    if (node->dtype == dtype && shape_equal(&node->shape, shape)) return value;
    sema_error(sema, node->dtype == dtype ? DIAG_SHAPE_MISMATCH : DIAG_DTYPE_MISMATCH, span,
               "param \"%s\" is %s here and %s before", first->name,
               shape_type_str(sema->dims, sema->arena, dtype, shape),
               sema_node_type_str(sema, value.node));
    diag_note(sema->diags, sema->builder->graph->source, node->span, "the first is here");
    return value_poison();
}

/* A param of a module, with the key as its name until sema_name_params. */
static Value module_param(Sema *sema, const AstStmt *stmt, Dtype dtype, const Shape *shape) {
    Span span = stmt->targets.data[0]->span;
    const char *name = sema_fill_text(sema, stmt->key, stmt->span, false);
    Str key = name ? join(sema, sema->frame->prefix, name, stmt->span) : NULL;
    if (!key || !has_key(sema, key, stmt->span)) return value_poison();
    const Binding *first = scope_find(&sema->params, key);
    if (first) return same_param(sema, first, dtype, shape, span);
    const DimList extents = {shape->rank, shape->dims};
    NodeId id = build_param(sema_at(sema, span), key, key, dtype, extents);
    Value value = sema_made(sema, span, NULL, id);
    scope_add(sema->arena, &sema->params, key, value, span);
    sema->n_params++;
    if (id != NODE_NONE) vec_push(sema->arena, &sema->module_params, id);
    return value;
}

Value sema_param(Sema *sema, const AstStmt *stmt) {
    const Ast *name = stmt->targets.data[0];
    Dtype dtype;
    Shape shape;
    if (sema->n_traces || !sema_eval_type(sema, stmt->type, &dtype, &shape)) return value_poison();
    if (!sema_is_graph_frame(sema)) return module_param(sema, stmt, dtype, &shape);
    if (!has_key(sema, stmt->key, stmt->span)) return value_poison();
    const DimList extents = {shape.rank, shape.dims};
    NodeId id = build_param(sema_at(sema, name->span), name->name, stmt->key, dtype, extents);
    Value value = sema_made(sema, name->span, NULL, id);
    if (!scope_find(&sema->params, stmt->key))
        scope_add(sema->arena, &sema->params, stmt->key, value, name->span);
    return value;
}

/* Names in the graph. */

/* The key with `_` for what no name may have. */
static const char *as_name(Sema *sema, Str key) {
    const char *mark = key[0] >= '0' && key[0] <= '9' ? "_" : "";
    char *name = str_format(sema->arena, "%s%s", mark, key);
    for (char *p = name; *p; p++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789", *p))
            *p = '_';
    return name;
}

static bool is_free(Sema *sema, const AstGraph *ast, const Scope *given, Str name) {
    for (uint32_t i = 0; i < ast->outputs.n; i++)
        if (ast->outputs.data[i].name == name) return false;
    return graph_is_name(name) && !scope_find(given, name) &&
           !scope_find(&sema->frame->scope, name) && !scope_find(&sema->dim_scope, name);
}

void sema_name_params(Sema *sema, const AstGraph *ast) {
    enum { MAX_BYTES = GRAPH_MAX_NAME - 11 }; /* with room for a number */
    Graph *graph = sema->builder->graph;
    Scope given = {0};
    for (uint32_t i = 0, at = 0; i < sema->module_params.n; i++) {
        NodeId node = sema->module_params.data[i];
        while (graph->params.data[at].node != node) at++;
        GraphInput *param = &graph->params.data[at];
        const char *plain = as_name(sema, param->key);
        Str name = strtab_intern_z(sema->strings, plain);
        for (uint32_t k = 2; !is_free(sema, ast, &given, name); k++)
            name = strtab_intern_z(sema->strings,
                                   str_format(sema->arena, "%.*s_%u", MAX_BYTES, plain, k));
        scope_add(sema->arena, &given, name, value_poison(), param->span);
        param->name = graph_node(graph, node)->name = name;
    }
}
