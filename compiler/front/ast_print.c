/* Prints the tree as indented text: one node per line, with its content and the bytes that it
 * spans. */
#include "front/ast.h"

#include "base/number.h"

static const char *kind_name(AstKind kind) {
    switch (kind) {
    case AST_BROKEN:
        return "broken";
    case AST_INT:
        return "int";
    case AST_FLOAT:
        return "float";
    case AST_BOOL:
        return "bool";
    case AST_NONE:
        return "none";
    case AST_STRING:
        return "string";
    case AST_NAME:
        return "name";
    case AST_LIST:
        return "list";
    case AST_CALL:
        return "call";
    case AST_AS:
        return "as";
    case AST_KEYWORD:
        return "keyword";
    case AST_UNARY:
        return "unary";
    case AST_BINARY:
        return "binary";
    case AST_CHOICE:
        return "choice";
    case AST_FIELD:
        return "field";
    case AST_METHOD:
        return "method";
    case AST_SUBSCRIPT:
        return "subscript";
    case AST_RANGE:
        return "range";
    case AST_ELLIPSIS:
        return "ellipsis";
    case AST_LOOP:
        return "loop";
    }
    return "?";
}

static void indent(Text *out, uint32_t level) {
    for (uint32_t i = 0; i < level; i++) text_puts(out, "  ");
}

static void print_head(const Ast *ast, Text *out) {
    text_puts(out, kind_name(ast->kind));
    if (ast->name) text_printf(out, " `%s`", ast->name);
    if (ast->kind == AST_INT) text_printf(out, " %lld", (long long)ast->integer);
    if (ast->kind == AST_BOOL) text_puts(out, ast->integer ? " true" : " false");
    if (ast->kind == AST_UNARY || ast->kind == AST_BINARY)
        text_printf(out, " %s", sugar_text(ast->sugar));
    if (ast->kind == AST_FLOAT) {
        text_puts(out, " ");
        number_print(ast->number, 17, out);
    }
    text_printf(out, "  %u..%u\n", ast->span.begin, ast->span.end);
}

static void print_expr(const Ast *ast, uint32_t level, Text *out);
static void print_body(const AstStmts *body, uint32_t level, Text *out);

/* Prints a chain of infix operators, which may be long, as one node with its operands in order. */
static void print_chain(const Ast *ast, uint32_t level, Text *out) {
    Vec(const Ast *) spine = {0};
    for (; ast->kind == AST_BINARY; ast = ast->items[0]) vec_push(out->arena, &spine, ast);
    text_puts(out, "chain\n");
    print_expr(ast, level + 1, out);
    for (uint32_t i = spine.n; i-- > 0;) {
        indent(out, level + 1);
        print_head(spine.data[i], out);
        print_expr(spine.data[i]->items[1], level + 2, out);
    }
}

static void print_loop(const AstLoop *loop, uint32_t level, Text *out) {
    indent(out, level);
    text_printf(out, "index `%s`\n", loop->index);
    print_expr(loop->begin, level + 1, out);
    print_expr(loop->end, level + 1, out);
    print_expr(loop->step, level + 1, out);
    for (uint32_t i = 0; i < loop->carried.n; i++) {
        indent(out, level);
        text_printf(out, "carried `%s`\n", loop->carried.data[i].name);
        print_expr(loop->carried.data[i].default_value, level + 1, out);
    }
    print_body(&loop->body, level, out);
}

static void print_expr(const Ast *ast, uint32_t level, Text *out) {
    indent(out, level);
    if (!ast) {
        text_puts(out, "absent\n");
        return;
    }
    if (ast->kind == AST_BINARY && ast->items[0]->kind == AST_BINARY) {
        print_chain(ast, level, out);
        return;
    }
    print_head(ast, out);
    for (uint32_t i = 0; i < ast->n_items; i++) print_expr(ast->items[i], level + 1, out);
    if (ast->loop) print_loop(ast->loop, level + 1, out);
}

static void print_decls(const char *what, const AstDecls *decls, Text *out) {
    for (uint32_t i = 0; i < decls->n; i++) {
        const AstDecl *decl = &decls->data[i];
        text_printf(out, "  %s `%s`", what, decl->name);
        if (decl->type) text_printf(out, ": %s", decl->type->dtype);
        text_puts(out, "\n");
        for (uint32_t k = 0; decl->type && k < decl->type->dims.n; k++)
            print_expr(decl->type->dims.data[k], 2, out);
        if (decl->default_value) print_expr(decl->default_value, 2, out);
    }
}

static void print_body(const AstStmts *body, uint32_t level, Text *out) {
    static const char *const words[] = {
        [STMT_BIND] = "bind",     [STMT_PARAM] = "param",    [STMT_RETURN] = "return",
        [STMT_KERNEL] = "kernel", [STMT_MUST] = "fuse must", [STMT_NEVER] = "fuse never",
        [STMT_ONLINE] = "online", [STMT_BROKEN] = "broken"};
    for (uint32_t i = 0; i < body->n; i++) {
        const AstStmt *stmt = body->data[i];
        indent(out, level);
        text_puts(out, words[stmt->kind]);
        for (uint32_t k = 0; k < stmt->targets.n; k++)
            text_printf(out, " `%s`", stmt->targets.data[k]->name);
        if (stmt->name) text_printf(out, " `%s`", stmt->name);
        if (stmt->key) text_printf(out, ": %s = \"%s\"", stmt->type->dtype, stmt->key);
        text_puts(out, "\n");
        for (uint32_t k = 0; stmt->type && k < stmt->type->dims.n; k++)
            print_expr(stmt->type->dims.data[k], level + 1, out);
        if (stmt->value) print_expr(stmt->value, level + 1, out);
        for (uint32_t k = 0; k < stmt->values.n; k++)
            print_expr(stmt->values.data[k], level + 1, out);
        print_body(&stmt->body, level + 1, out);
    }
}

void ast_print(const AstFile *file, Text *out) {
    if (file->weights) text_printf(out, "weights \"%s\"\n", file->weights);
    for (uint32_t i = 0; i < file->includes.n; i++)
        text_printf(out, "include \"%s\"\n", file->includes.data[i].path);
    for (uint32_t i = 0; i < file->dims.n; i++) {
        const AstDim *dim = &file->dims.data[i];
        text_printf(out, "dim `%s`\n", dim->name);
        print_expr(dim->lo, 1, out);
        if (dim->hi) print_expr(dim->hi, 1, out);
        if (dim->multiple) print_expr(dim->multiple, 1, out);
    }
    for (uint32_t i = 0; i < file->defs.n; i++) {
        text_printf(out, "def `%s`\n", file->defs.data[i]->name);
        print_decls("parameter", &file->defs.data[i]->formals, out);
        print_body(&file->defs.data[i]->body, 1, out);
    }
    for (uint32_t i = 0; i < file->graphs.n; i++) {
        text_printf(out, "graph `%s`\n", file->graphs.data[i]->name);
        print_decls("input", &file->graphs.data[i]->inputs, out);
        print_decls("output", &file->graphs.data[i]->outputs, out);
        print_body(&file->graphs.data[i]->body, 1, out);
    }
}
