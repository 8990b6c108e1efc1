/* Builds the tree. It bounds the depth, so that walkers may recurse. The left operands of infix
 * operators do not count towards the depth; walkers must loop over them. */
#include "front/ast.h"

#include <string.h>

static const char *const sugar_texts[SUGAR_COUNT] = {
#define SUGAR(sym, text, op) [SUGAR_##sym] = text,
#include "front/sugar.def"
};

const char *sugar_text(Sugar sugar) {
    return sugar_texts[sugar];
}

bool parse_error(Parse *parse, DiagId id, Span span, const char *message) {
    return diag_report(parse->diags, id, parse->source, span, "%s", message);
}

Ast *ast_new(Parse *parse, AstKind kind, Span span) {
    Ast *ast = arena_array(parse->arena, Ast, 1);
    *ast = (Ast){.kind = kind, .span = span, .depth = 1};
    return ast;
}

Ast *ast_int(Parse *parse, int64_t value, Span span) {
    Ast *ast = ast_new(parse, AST_INT, span);
    ast->integer = value;
    return ast;
}

Ast *ast_float(Parse *parse, double value, Span span) {
    Ast *ast = ast_new(parse, AST_FLOAT, span);
    ast->number = value;
    return ast;
}

Ast *ast_named(Parse *parse, AstKind kind, Str name, Span span) {
    Ast *ast = ast_new(parse, kind, span);
    ast->name = name;
    ast->name_span = span;
    return ast;
}

/* The depth of a node is that of its deepest item plus one. Past the limit the node becomes
 * AST_BROKEN. */
static Ast *limit_depth(Parse *parse, Ast *ast) {
    uint32_t depth = 0;
    for (uint32_t i = 0; i < ast->n_items; i++) {
        const Ast *item = ast->items[i];
        if (!item) continue;
        uint32_t below = item->depth;
        if (i == 0 && ast->kind == AST_BINARY && item->kind == AST_BINARY) below--;
        if (below > depth) depth = below;
    }
    ast->depth = depth + 1;
    if (ast->depth <= AST_MAX_DEPTH) return ast;
    if (!parse->too_deep)
        parse_error(parse, DIAG_LIMIT, ast->span, "expression nested more than 256 deep");
    parse->too_deep = true;
    return ast_new(parse, AST_BROKEN, ast->span);
}

static Ast *with_items(Parse *parse, AstKind kind, Span span, uint32_t n_items, Ast **items) {
    Ast *ast = ast_new(parse, kind, span);
    ast->n_items = n_items;
    ast->items = items;
    return ast;
}

Ast *ast_list(Parse *parse, AstKind kind, const AstList *items, Span span) {
    return limit_depth(parse, with_items(parse, kind, span, items->n, items->data));
}

Ast *ast_call(Parse *parse, Str name, Span name_span, const AstList *args, Span span) {
    Ast *ast = with_items(parse, AST_CALL, span, args->n, args->data);
    ast->name = name;
    ast->name_span = name_span;
    return limit_depth(parse, ast);
}

static Ast **copy_items(Parse *parse, uint32_t n, Ast *const *items) {
    return arena_copy(parse->arena, items, n * sizeof *items);
}

/* A node with a name and one item. */
static Ast *with_name(Parse *parse, AstKind kind, Ast *item, Str name, Span name_span, Span span) {
    Ast *ast = with_items(parse, kind, span, 1, copy_items(parse, 1, &item));
    ast->name = name;
    ast->name_span = name_span;
    return limit_depth(parse, ast);
}

Ast *ast_as(Parse *parse, Ast *call, Str prefix, Span prefix_span, Span span) {
    return with_name(parse, AST_AS, call, prefix, prefix_span, span);
}

Ast *ast_keyword(Parse *parse, Str name, Span name_span, Ast *value, Span span) {
    return with_name(parse, AST_KEYWORD, value, name, name_span, span);
}

Ast *ast_unary(Parse *parse, Sugar sugar, Ast *a, Span span) {
    Ast *ast = with_items(parse, AST_UNARY, span, 1, copy_items(parse, 1, &a));
    ast->sugar = sugar;
    return limit_depth(parse, ast);
}

Ast *ast_binary(Parse *parse, Sugar sugar, Ast *a, Ast *b, Span span) {
    Ast *items[2] = {a, b};
    Ast *ast = with_items(parse, AST_BINARY, span, 2, copy_items(parse, 2, items));
    ast->sugar = sugar;
    return limit_depth(parse, ast);
}

Ast *ast_choice(Parse *parse, Ast *condition, Ast *a, Ast *b, Span span) {
    Ast *items[3] = {condition, a, b};
    return limit_depth(parse, with_items(parse, AST_CHOICE, span, 3, copy_items(parse, 3, items)));
}

Ast *ast_field(Parse *parse, Ast *a, Str name, Span name_span, Span span) {
    return with_name(parse, AST_FIELD, a, name, name_span, span);
}

Ast *ast_method(Parse *parse, Ast *a, Str name, Span name_span, Span span) {
    return with_name(parse, AST_METHOD, a, name, name_span, span);
}

Ast *ast_subscript(Parse *parse, Ast *a, const AstList *subscripts, Span span) {
    AstList items = {0};
    vec_push(parse->arena, &items, a);
    for (uint32_t i = 0; i < subscripts->n; i++)
        vec_push(parse->arena, &items, subscripts->data[i]);
    return ast_list(parse, AST_SUBSCRIPT, &items, span);
}

Ast *ast_range(Parse *parse, Ast *begin, Ast *end, Ast *step, Span span) {
    Ast *items[3] = {begin, end, step};
    return limit_depth(parse, with_items(parse, AST_RANGE, span, 3, copy_items(parse, 3, items)));
}

Ast *ast_loop(Parse *parse, const AstLoop *loop, Span span) {
    Ast *ast = ast_new(parse, AST_LOOP, span);
    ast->loop = arena_copy(parse->arena, loop, sizeof *loop);
    return ast;
}

AstType *ast_type(Parse *parse, Str dtype, const AstList *dims, Span span) {
    AstType *type = arena_array(parse->arena, AstType, 1);
    *type = (AstType){.dtype = dtype, .span = span};
    if (dims) type->dims = *dims;
    return type;
}

static AstStmt *ast_stmt(Parse *parse, AstStmtKind kind, Span span) {
    AstStmt *stmt = arena_array(parse->arena, AstStmt, 1);
    *stmt = (AstStmt){.kind = kind, .span = span};
    return stmt;
}

AstStmt *ast_bind(Parse *parse, const AstList *targets, Ast *value, Span span) {
    AstStmt *stmt = ast_stmt(parse, STMT_BIND, span);
    stmt->targets = *targets;
    stmt->value = value;
    return stmt;
}

AstStmt *ast_param(Parse *parse, Ast *name, AstType *type, Str key, Span span) {
    AstStmt *stmt = ast_stmt(parse, STMT_PARAM, span);
    vec_push(parse->arena, &stmt->targets, name);
    stmt->type = type;
    stmt->key = key;
    return stmt;
}

AstStmt *ast_return(Parse *parse, const AstList *values, Span span) {
    AstStmt *stmt = ast_stmt(parse, STMT_RETURN, span);
    stmt->values = *values;
    return stmt;
}

AstStmt *ast_kernel(Parse *parse, Ast *name, const AstStmts *body) {
    AstStmt *stmt = ast_stmt(parse, STMT_KERNEL, name->span);
    stmt->name = name->name;
    stmt->body = *body;
    return stmt;
}

AstStmt *ast_fuse(Parse *parse, Ast *word, const AstStmts *body) {
    bool is_must = strcmp(word->name, "must") == 0;
    if (!is_must && strcmp(word->name, "never") != 0)
        parse_error(parse, DIAG_SYNTAX, word->span,
                    "unexpected name after `fuse`, expected `must` or `never`");
    AstStmt *stmt = ast_stmt(parse, is_must ? STMT_MUST : STMT_NEVER, word->span);
    stmt->body = *body;
    return stmt;
}

AstStmt *ast_online(Parse *parse, const AstStmts *body, Span span) {
    AstStmt *stmt = ast_stmt(parse, STMT_ONLINE, span);
    stmt->body = *body;
    return stmt;
}

/* Finds the identifier at or after *offset, past blanks. NULL, with *offset unchanged, when there
 * is none. */
static Ast *scan_name(Parse *parse, uint32_t *offset, uint32_t end) {
    const char *text = parse->source->text;
    uint32_t begin = *offset;
    while (begin < end && strchr(" \t\r\n", text[begin])) begin++;
    uint32_t stop = begin;
    while (stop < end && text[stop] &&
           strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789", text[stop]))
        stop++;
    if (stop == begin || stop - begin > AST_MAX_NAME_BYTES) return NULL;
    *offset = stop;
    Str name = strtab_intern(parse->strings, text + begin, stop - begin);
    return ast_named(parse, AST_NAME, name, (Span){begin, stop});
}

/* Keeps the names before a `=`, so that their later use reports no further error. */
AstStmt *ast_broken_stmt(Parse *parse, Span span) {
    AstStmt *stmt = ast_stmt(parse, STMT_BROKEN, span);
    const char *text = parse->source->text;
    for (uint32_t offset = span.begin;;) {
        Ast *name = scan_name(parse, &offset, span.end);
        if (!name) break;
        vec_push(parse->arena, &stmt->targets, name);
        while (offset < span.end && strchr(" \t,", text[offset])) offset++;
    }
    return stmt;
}

void ast_add_broken_item(Parse *parse, Span span) {
    uint32_t offset = span.begin;
    if (!scan_name(parse, &offset, span.end)) return;
    const Ast *name = scan_name(parse, &offset, span.end);
    if (name) vec_push(parse->arena, &parse->file->broken_names, name->name);
}

void ast_add_weights(Parse *parse, Str path, Span span) {
    AstFile *file = parse->file;
    if (file->weights) {
        parse_error(parse, DIAG_REDEFINITION, span, "a second `weights` line");
        diag_note(parse->diags, parse->source, file->weights_span, "the first is here");
        return;
    }
    if (!*path) parse_error(parse, DIAG_BAD_ARGUMENT, span, "the path of the weights is empty");
    file->weights = path;
    file->weights_span = span;
}

void ast_add_include(Parse *parse, Str path, Span span) {
    AstInclude include = {.path = path, .span = span, .n_dims = parse->file->dims.n};
    vec_push(parse->arena, &parse->file->includes, include);
}

void ast_add_dim(Parse *parse, Ast *name, Ast *lo, Ast *hi, Ast *multiple) {
    AstDim dim = {.name = name->name,
                  .span = name->span,
                  .source = parse->source,
                  .lo = lo,
                  .hi = hi,
                  .multiple = multiple};
    vec_push(parse->arena, &parse->file->dims, dim);
}

void ast_add_graph(Parse *parse, Ast *name, const AstDecls *inputs, const AstDecls *outputs,
                   const AstStmts *body) {
    AstGraph *graph = arena_array(parse->arena, AstGraph, 1);
    *graph = (AstGraph){.name = name->name,
                        .span = name->span,
                        .inputs = *inputs,
                        .outputs = *outputs,
                        .body = *body};
    vec_push(parse->arena, &parse->file->graphs, graph);
}

void ast_add_def(Parse *parse, Ast *name, const AstDecls *formals, const AstStmts *body) {
    AstDef *def = arena_array(parse->arena, AstDef, 1);
    *def = (AstDef){.name = name->name,
                    .span = name->span,
                    .source = parse->source,
                    .formals = *formals,
                    .body = *body};
    vec_push(parse->arena, &parse->file->defs, def);
}
