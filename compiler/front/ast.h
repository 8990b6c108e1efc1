/* The abstract syntax tree: the source's structure, with the byte range of every part, before any
 * checks. Everything lives on the arena of the parse. */
#ifndef FUSEC_FRONT_AST_H
#define FUSEC_FRONT_AST_H

#include "base/diag.h"
#include "base/vec.h"

enum {
    AST_MAX_DEPTH = 256,      /* of nested expressions; a chain of infix operators counts as one */
    AST_MAX_NAME_BYTES = 255, /* of an identifier */
    AST_MAX_STRING_BYTES = 4095
};

typedef enum {
#define SUGAR(sym, text, op) SUGAR_##sym,
#include "front/sugar.def"
    SUGAR_COUNT
} Sugar;

typedef enum {
    AST_BROKEN,    /* an error has been reported */
    AST_INT,       /* integer, at most DIM_LIMIT */
    AST_FLOAT,     /* number: with a point or exponent, inf or nan */
    AST_BOOL,      /* integer: 0 or 1 */
    AST_NONE,      /* none */
    AST_STRING,    /* name: its contents */
    AST_NAME,      /* name */
    AST_LIST,      /* [items] */
    AST_CALL,      /* name(items), some of which are AST_KEYWORD */
    AST_AS,        /* items[0] as "name": a call, and the prefix of its params' names */
    AST_KEYWORD,   /* name=items[0], in a call */
    AST_UNARY,     /* sugar items[0] */
    AST_BINARY,    /* items[0] sugar items[1] */
    AST_CHOICE,    /* items[1] if items[0] else items[2] */
    AST_FIELD,     /* items[0].name */
    AST_METHOD,    /* items[0].name(..): an error, with the help that sema gives */
    AST_SUBSCRIPT, /* items[0][items[1], ...] */
    AST_RANGE,     /* begin:end:step in a subscript; each of items[0..2] may be NULL */
    AST_ELLIPSIS,  /* ... in a subscript */
    AST_LOOP       /* loop, the whole value of a statement */
} AstKind;

typedef struct Ast {
    AstKind kind;
    Sugar sugar;
    uint32_t depth;
    Span span;
    Span name_span; /* CALL, AS, KEYWORD, FIELD, METHOD: range of the name alone */
    Str name;
    int64_t integer;
    double number;
    uint32_t n_items;
    struct Ast **items;
    const struct AstLoop *loop;
} Ast;

typedef Vec(Ast *) AstList;

/* dtype[dims]; `dims` is empty for a scalar. */
typedef struct AstType {
    Str dtype;
    Span span;
    AstList dims;
} AstType;

/* `name: type` in a graph's signature, a def's parameter with its default (or NULL), or a value
 * that a loop carries, with its first. */
typedef struct AstDecl {
    Str name;
    Span span;
    AstType *type;
    Ast *default_value;
} AstDecl;

typedef Vec(AstDecl) AstDecls;

typedef enum {
    STMT_BIND,   /* targets = value */
    STMT_PARAM,  /* param targets[0]: type = "key" */
    STMT_RETURN, /* return values */
    STMT_KERNEL, /* kernel name { body } */
    STMT_MUST,   /* fuse must { body } */
    STMT_NEVER,  /* fuse never { body } */
    STMT_ONLINE, /* online { body } */
    STMT_BROKEN  /* did not parse; `targets` are the names that it would have bound */
} AstStmtKind;

typedef struct AstStmt AstStmt;
typedef Vec(AstStmt *) AstStmts;

struct AstStmt {
    AstStmtKind kind;
    Span span;
    AstList targets; /* AST_NAME */
    Ast *value;
    AstList values;
    AstType *type;
    Str name, key;
    AstStmts body;
};

/* `loop index in begin:end:step with carried { body }`; `step` may be NULL. */
typedef struct AstLoop {
    Str index;
    Span index_span;
    Ast *begin, *end, *step;
    AstDecls carried; /* each with its value before the first step */
    AstStmts body;
} AstLoop;

/* `dim name in lo..hi mult m`, or `dim name = lo` (hi NULL). */
typedef struct AstDim {
    Str name;
    Span span;
    const Source *source;
    Ast *lo, *hi, *multiple; /* multiple may be NULL */
} AstDim;

typedef struct AstDef {
    Str name;
    Span span; /* of the name */
    const Source *source;
    AstDecls formals;
    AstStmts body;
} AstDef;

typedef struct AstInclude {
    Str path;
    Span span;
    uint32_t n_dims; /* of the file, before it */
} AstInclude;

typedef struct AstGraph {
    Str name;
    Span span; /* of the name */
    AstDecls inputs, outputs;
    AstStmts body;
} AstGraph;

typedef struct AstFile {
    const Source *source;
    Str weights; /* or NULL */
    Span weights_span;
    Vec(AstInclude) includes;
    Vec(AstDim) dims;
    Vec(AstDef *) defs;
    Vec(AstGraph *) graphs;
    Vec(Str) broken_names; /* of items that did not parse; their use reports no further error */
} AstFile;

/* Parses `source` and reports errors. Returns the parsed parts even after errors. */
AstFile *ast_parse(Arena *arena, StrTab *strings, Diags *diags, const Source *source);
/* Parses the items in this part of `source`. */
AstFile *ast_parse_part(Arena *arena, StrTab *strings, Diags *diags, const Source *source,
                        Span part);

const char *sugar_text(Sugar sugar);

/* The tree as indented text, one node per line (`--emit=ast`). */
void ast_print(const AstFile *file, Text *out);

/* The state of one parse, shared by the lexer, the parser and the builders below. */
typedef struct Parse {
    Arena *arena;
    StrTab *strings;
    Diags *diags;
    const Source *source;
    AstFile *file;
    uint32_t offset;        /* of the next byte to lex */
    uint32_t n_open;        /* open round and square brackets; newlines inside them are blanks */
    bool after_sep;         /* the last token ended a statement, so another end of line is
                             * dropped */
    bool too_deep;          /* the depth error was reported */
    bool broke_in_brackets; /* the last syntax error was inside brackets: the next line may still
                             * belong to it */
    uint32_t bad_end;       /* end of the last bad byte, so that a run of bad bytes is reported
                             * once */
} Parse;

bool parse_error(Parse *parse, DiagId id, Span span, const char *message);

/* Builders, called by the grammar's actions. */
Ast *ast_new(Parse *parse, AstKind kind, Span span);
Ast *ast_int(Parse *parse, int64_t value, Span span);
Ast *ast_float(Parse *parse, double value, Span span);
Ast *ast_named(Parse *parse, AstKind kind, Str name, Span span);
Ast *ast_list(Parse *parse, AstKind kind, const AstList *items, Span span);
Ast *ast_call(Parse *parse, Str name, Span name_span, const AstList *args, Span span);
Ast *ast_as(Parse *parse, Ast *call, Str prefix, Span prefix_span, Span span);
Ast *ast_keyword(Parse *parse, Str name, Span name_span, Ast *value, Span span);
Ast *ast_unary(Parse *parse, Sugar sugar, Ast *a, Span span);
Ast *ast_binary(Parse *parse, Sugar sugar, Ast *a, Ast *b, Span span);
Ast *ast_choice(Parse *parse, Ast *condition, Ast *a, Ast *b, Span span);
Ast *ast_field(Parse *parse, Ast *a, Str name, Span name_span, Span span);
Ast *ast_method(Parse *parse, Ast *a, Str name, Span name_span, Span span);
Ast *ast_subscript(Parse *parse, Ast *a, const AstList *items, Span span);
Ast *ast_range(Parse *parse, Ast *begin, Ast *end, Ast *step, Span span);
Ast *ast_loop(Parse *parse, const AstLoop *loop, Span span);
AstType *ast_type(Parse *parse, Str dtype, const AstList *dims, Span span);
AstStmt *ast_bind(Parse *parse, const AstList *targets, Ast *value, Span span);
AstStmt *ast_param(Parse *parse, Ast *name, AstType *type, Str key, Span span);
AstStmt *ast_return(Parse *parse, const AstList *values, Span span);
AstStmt *ast_kernel(Parse *parse, Ast *name, const AstStmts *body);
/* `word` must be `must` or `never`; anything else is reported. */
AstStmt *ast_fuse(Parse *parse, Ast *word, const AstStmts *body);
AstStmt *ast_online(Parse *parse, const AstStmts *body, Span span);
AstStmt *ast_broken_stmt(Parse *parse, Span span);
void ast_add_broken_item(Parse *parse, Span span);
void ast_add_weights(Parse *parse, Str path, Span span);
void ast_add_include(Parse *parse, Str path, Span span);
void ast_add_dim(Parse *parse, Ast *name, Ast *lo, Ast *hi, Ast *multiple);
void ast_add_graph(Parse *parse, Ast *name, const AstDecls *inputs, const AstDecls *outputs,
                   const AstStmts *body);
void ast_add_def(Parse *parse, Ast *name, const AstDecls *formals, const AstStmts *body);

#endif
