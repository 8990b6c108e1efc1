/* The front end's entry: the dims, defs and graphs of one file, and the prelude. */
#include "front/sema.h"

#include <string.h>

#include "front/sema_state.h"

/* Dims. */

static bool eval_const(Sema *sema, const Ast *ast, int64_t *number) {
    Value value = sema_eval(sema, ast);
    if (value_const_int(sema, &value, number)) return true;
    if (value.kind != VALUE_POISON)
        sema_error(sema, DIAG_BAD_DIM, ast->span, "a dim's bound must be an integer, not %s",
                   value_describe(sema, &value));
    return false;
}

static Value eval_range(Sema *sema, const AstDim *ast) {
    int64_t lo, hi, multiple = 1;
    if (!eval_const(sema, ast->lo, &lo) || !eval_const(sema, ast->hi, &hi) ||
        (ast->multiple && !eval_const(sema, ast->multiple, &multiple)))
        return value_poison();
    DimId dim = build_dim(sema->builder, ast->name, lo, hi, multiple);
    return dim ? value_int(dim, ast->span) : sema_report(sema, ast->span, NULL);
}

static void add_dim(Sema *sema, const AstDim *ast) {
    const Binding *old = scope_find(&sema->dim_scope, ast->name);
    Value value = value_poison();
    if (old || dtype_is_reserved(ast->name)) {
        sema_error(sema, DIAG_REDEFINITION, ast->span,
                   old ? "dim `%s` is declared already" : "`%s` is a dtype and cannot be a dim",
                   ast->name);
        if (old) diag_note(sema->diags, old->source, old->span, "the first is here");
        return;
    }
    if (ast->hi && !build_check_n_dims(sema->builder)) {
        sema_report(sema, ast->span, NULL);
    } else if (ast->hi) {
        value = eval_range(sema, ast);
    } else {
        value = sema_eval(sema, ast->lo);
        if (value.kind != VALUE_INT && value.kind != VALUE_POISON)
            value = sema_error(sema, DIAG_BAD_DIM, ast->lo->span, "`%s` must be an integer, not %s",
                               ast->name, value_describe(sema, &value));
    }
    scope_add(sema->arena, &sema->dim_scope, ast->name, value, ast->span)->source = ast->source;
}

/* Dims are evaluated in a frame of their own, in which only earlier dims have names. A tensor made
 * there by mistake goes to a graph that is discarded. */
static void add_dims(Sema *sema) {
    Frame frame = {.prefix = ""};
    sema->frame = &frame;
    sema->builder = build_new(sema->arena, sema->dims, sema->file->source, NULL);
    for (uint32_t i = 0; i < sema->file->dims.n; i++) {
        frame.source = sema->file->dims.data[i].source;
        add_dim(sema, &sema->file->dims.data[i]);
    }
    sema->frame = NULL;
    sema->builder = NULL;
}

static void check_defs(Sema *sema) {
    const AstFile *file = sema->file;
    Scope seen = {0};
    for (uint32_t i = 0; i < file->defs.n; i++) {
        const AstDef *def = file->defs.data[i];
        const Binding *old = scope_find(&seen, def->name);
        Frame frame = {.source = def->source};
        sema->frame = &frame;
        if (old) sema_error(sema, DIAG_REDEFINITION, def->span, "a second def `%s`", def->name);
        if (old) diag_note(sema->diags, old->source, old->span, "the first is here");
        if (!old)
            scope_add(sema->arena, &seen, def->name, value_poison(), def->span)->source =
                def->source;
    }
    sema->frame = NULL;
}

static void check_graphs(Sema *sema) {
    const AstFile *file = sema->file;
    Scope seen = {0};
    for (uint32_t i = 0; i < file->graphs.n; i++) {
        const AstGraph *graph = file->graphs.data[i];
        const Binding *old = scope_find(&seen, graph->name);
        if (!old) {
            scope_add(sema->arena, &seen, graph->name, value_poison(), graph->span);
            continue;
        }
        sema_error(sema, DIAG_REDEFINITION, graph->span, "a second graph `%s`", graph->name);
        diag_note(sema->diags, file->source, old->span, "the first is here");
    }
    if (file->graphs.n == 0 && sema->diags->n_errors == 0)
        sema_error(sema, DIAG_NO_GRAPH, (Span){0}, "no graph in this file");
}

Sema *front_new(Arena *arena, StrTab *strings, Diags *diags) {
    Sema *sema = arena_array(arena, Sema, 1);
    *sema = (Sema){.arena = arena,
                   .strings = strings,
                   .diags = diags,
                   .n_errors_before = diags->n_errors,
                   .prelude = prelude_new(arena, strings, diags),
                   .callees = arena_array(arena, Callee, N_CALLEES)};
    return sema;
}

Sema *front_read(Arena *arena, StrTab *strings, Diags *diags, const Source *source,
                 const IncludeReader *reader) {
    uint32_t n_errors = diags->n_errors;
    AstFile *file = include_parse(arena, strings, diags, source, reader);
    if (!file) return NULL;
    Sema *sema = front_new(arena, strings, diags);
    sema->n_errors_before = n_errors;
    sema->file = file;
    sema->module = module_new(arena, strings, source);
    sema->dims = sema->module->dims;
    sema->module->weights = file->weights;
    return sema;
}

Module *front_check(Sema *sema, Arena *scratch, bool rewrites) {
    sema->scratch = scratch ? scratch : sema->arena;
    sema->rewrites = rewrites;
    add_dims(sema);
    check_defs(sema);
    check_graphs(sema);
    for (uint32_t i = 0; i < sema->file->graphs.n && !sema->stopped; i++)
        sema_graph(sema, sema->file->graphs.data[i]);
    return sema->diags->n_errors == sema->n_errors_before ? sema->module : NULL;
}

Module *front_parse(Arena *arena, StrTab *strings, Diags *diags, const Source *source) {
    Sema *sema = front_read(arena, strings, diags, source, NULL);
    return sema ? front_check(sema, NULL, false) : NULL;
}

/* The expression is the body of a def whose parameters are the tensors. */
static const AstDef *parse_expression(Sema *sema, const char *expression, uint32_t n,
                                      const FrontTensor *tensors) {
    Text text = {.arena = sema->arena};
    for (uint32_t i = 0; i < n; i++)
        text_printf(&text, "%s%s", i ? ", " : "def expression(", tensors[i].name);
    text_printf(&text, ") = %s\n", expression);
    const Source *source = source_new(sema->arena, "expression", text.data, text.n_bytes);
    sema->file = include_parse(sema->arena, sema->strings, sema->diags, source, NULL);
    memset(sema->callees, 0, N_CALLEES * sizeof *sema->callees);
    return sema->file && sema->file->defs.n ? sema->file->defs.data[0] : NULL;
}

NodeId front_express(Sema *sema, Builder *builder, const char *expression, uint32_t n,
                     const FrontTensor *tensors) {
    Frame frame = {.prefix = ""};
    Span span = builder->span;
    uint32_t call = builder->call;
    const AstDef *def = parse_expression(sema, expression, n, tensors);
    if (!def) return NODE_NONE;
    Value *args = arena_array(sema->arena, Value, n);
    for (uint32_t i = 0; i < n; i++) args[i] = value_tensor(tensors[i].node, def->span);
    frame.source = def->source;
    sema->n_steps = sema->n_items = 0;
    sema->dims = builder->dims;
    sema->builder = builder;
    sema->frame = &frame;
    Value value = sema_expand(sema, def, def->span, "", args);
    sema->frame = NULL;
    builder->span = span;
    builder->call = call;
    if (value.kind != VALUE_TENSOR && value.kind != VALUE_POISON)
        sema_error(sema, DIAG_BAD_ARGUMENT, def->span, "`%s` is %s, not a tensor", expression,
                   value_describe(sema, &value));
    return value.kind == VALUE_TENSOR ? value.node : NODE_NONE;
}
