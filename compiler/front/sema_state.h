/* Declarations that the files of sema share: values, scopes, and the state of one run. Evaluation
 * walks the tree and yields values; a tensor is a node appended to the current graph. A value that
 * could not be made is VALUE_POISON. Its use reports no error, so one mistake gives one report. */
#ifndef FUSEC_FRONT_SEMA_STATE_H
#define FUSEC_FRONT_SEMA_STATE_H

#include "base/nearest.h"
#include "front/prelude.h"
#include "ir/build/build.h"

enum {
    SEMA_MAX_DEPTH = 64,       /* of defs that call defs and loops inside loops */
    SEMA_MAX_STEPS = 1 << 20,  /* expressions evaluated inside defs and loops, which bounds
                                * expansion */
    SEMA_MAX_ITEMS = 1 << 22,  /* of all lists that are made from others */
    SEMA_MAX_KEY = 1024,       /* bytes of the key of a module's param */
    SEMA_MAX_PARAMETERS = 256, /* of a def */
    SEMA_MAX_ARGS = 16,        /* of an op or another row of calls.def */
    SEMA_MAX_LIST = 4096       /* items of a list value */
};

typedef enum {
    VALUE_POISON,
    VALUE_TENSOR,   /* node */
    VALUE_INT,      /* dim: an integer literal or an expression over dims */
    VALUE_FLOAT,    /* number */
    VALUE_BOOL,     /* number: 0 or 1 */
    VALUE_STRING,   /* string */
    VALUE_DTYPE,    /* dtype */
    VALUE_LIST,     /* items */
    VALUE_FUNCTION, /* string: the name of an op, or of `def` */
    VALUE_NONE,     /* `none` */
    VALUE_ABSENT    /* an argument that was not given */
} ValueKind;

typedef struct Value {
    ValueKind kind;
    Dtype dtype;
    bool inexact;      /* VALUE_INT: a division in it rounded down */
    bool several;      /* VALUE_LIST: of a `return` or a loop with several values */
    bool is_elsewhere; /* VALUE_LIST: the spans of its items are in another source */
    NodeId node;
    DimId dim;
    double number;
    Str string;
    const AstDef *def; /* VALUE_FUNCTION; NULL: an op */
    uint32_t n_items;
    const struct Value *items;
    Span span; /* of the expression, in the source of the frame that evaluated it */
} Value;

/* A name with its value. */
typedef struct Binding {
    Str name;
    Value value;
    Span span;            /* of the name where it was bound */
    const Source *source; /* of a dim or def, which an included file may have */
    bool is_used;
    uint32_t block; /* in a graph: the block whose statement bound it, plus 1; 0: none */
} Binding;

/* Names in order of binding, found by hash. */
typedef struct Scope {
    Vec(Binding) bindings;
    uint32_t *slots; /* index + 1 into bindings; 0: free */
    uint32_t n_slots;
} Scope;

/* The expansion of a def, a step of a loop (def NULL), or the body of a graph (caller NULL). */
typedef struct Frame {
    struct Frame *caller;
    struct Frame *outer; /* of a step: the frame whose names it sees too, its caller; or NULL */
    const AstDef *def;
    const AstLoop *loop;
    bool is_repeated; /* of a step: that of a loop whose number of steps is a dim */
    int64_t index;    /* of the step, unless it is repeated */
    const Source *source;
    Span call_span; /* of the call or the loop, in the caller's source */
    Scope scope;
    Str prefix; /* of the keys of its params; "" in a graph */
    bool has_returned;
    Value result;
} Frame;

/* What a name called last, in the program or in the prelude. */
typedef struct Callee {
    Str name; /* interned */
    bool is_prelude;
    const AstDef *def;
    OpId op;
} Callee;

enum { N_CALLEES = 128 };

typedef struct Sema {
    Arena *arena;
    Arena *scratch; /* of the nodes of a graph that is not finished */
    StrTab *strings;
    Diags *diags;
    Module *module;
    DimTab *dims;
    const AstFile *file;
    Prelude *prelude;
    Callee *callees;  /* the last of each hash of a name */
    Scope dim_scope;  /* the file's dims, as VALUE_INT */
    Builder *builder; /* of the current graph */
    Frame *frame;
    uint32_t call, n_calls; /* calls of defs by the graph: the current one + 1 (0: none), and their
                             * number so far */
    uint32_t depth;         /* of defs and loops */
    Scope params;           /* of the current graph, by key */
    Vec(NodeId) module_params; /* params of modules, in the order of the graph's params */
    uint32_t n_params;         /* declarations by modules so far */
    uint32_t n_errors_before;  /* errors that the same Diags had before this run */
    bool rewrites;             /* Builder.rewrites of the graphs */
    uint32_t n_steps;
    uint32_t n_items;        /* of lists that were made from others */
    Vec(Scope) spare_scopes; /* cleared scopes of returned defs, for reuse */
    uint32_t n_traces;       /* functions of scans that are being expanded, which have no params */
    Span refused; /* the program's last call of the prelude whose integers were refused */
    bool stopped; /* a limit was exceeded: all further values are poison */
} Sema;

/* A call during its check: the name, and the arguments by parameter. */
typedef struct Call {
    Str name;
    Span span;
    OpId op;
    uint32_t n_args;
    Value args[SEMA_MAX_ARGS];
} Call;

/* sema_report.c: reports an error in the source of the current frame, with notes on the calls that
 * led there. An error inside the prelude is reported at the program's own call of it, whose
 * function the message names. */
STR_PRINTF(4, 5)
Value sema_error(Sema *sema, DiagId id, Span span, const char *format, ...);
/* The same of a message that a def has for its caller: no place inside the prelude is noted. */
Value sema_error_of_def(Sema *sema, Span span, const char *message);
/* Reports the builder's errors in a call at `span` with these arguments; NULL: all errors are at
 * `span`. Returns VALUE_POISON. */
Value sema_report(Sema *sema, Span span, const Value *args);
/* The place of an expression in the graph's own source. For an expression in a def of the prelude
 * it is the place of the call. */
Span sema_graph_span(const Sema *sema, Span span);
/* The builder, set up to make nodes for the expression at `span`. */
Builder *sema_at(Sema *sema, Span span);
/* The value of a call that the builder made into `node`. NODE_NONE: reports the builder's error. */
Value sema_made(Sema *sema, Span span, const Value *args, NodeId node);
const char *sema_node_type_str(Sema *sema, NodeId node);
static inline const Node *sema_node(const Sema *sema, NodeId node) {
    return graph_node(sema->builder->graph, node);
}

/* sema_names.c: help below the last error, at a name that other libraries have or that is
 * misspelt. */
void sema_help_call(Sema *sema, const char *name);
/* Says how a call that other libraries have of a function of this name is written here. The n
 * arguments are of the kinds that it has there, and may be absent; NULL: any. */
void sema_help_form(Sema *sema, const char *callee, uint32_t n, const Value *args);
/* The same for a name that is no function's; false: no help. */
bool sema_help_name(Sema *sema, const char *name);
/* The same for a name that nothing here has; none, if nothing is known of it. */
void sema_help_missing(Sema *sema, const char *name);
/* The same for a dtype. */
bool sema_help_dtype(Sema *sema, const char *name);
/* The same for a field of a tensor. */
void sema_help_field(Sema *sema, const char *name);
/* Our name of a parameter; NULL: other libraries have none of this name. */
const char *sema_our_keyword(const char *theirs);
/* Whether `ast` is a name in a module, such as `torch.float32`. */
bool sema_is_module_path(const Sema *sema, const Ast *ast);
/* The error at a method or at a name in a module. */
Value sema_unknown_path(Sema *sema, const Ast *ast);

/* sema_scope.c */
Binding *scope_find(const Scope *scope, Str name);
Binding *scope_add(Arena *arena, Scope *scope, Str name, Value value, Span span);
/* Removes all bindings but keeps the storage. */
void scope_clear(Scope *scope);
/* The name in the current frame, or, in a loop, in those around it. */
Binding *sema_find(const Sema *sema, Str name);
/* Makes `frame` the current one; false: too many are. */
bool sema_enter(Sema *sema, Frame *frame);
void sema_leave(Sema *sema);
static inline bool sema_is_graph_frame(const Sema *sema) {
    return sema->frame->caller == NULL;
}
/* Tries the bound names, the newest first. */
void scope_try_names(const Scope *scope, Nearest *nearest);

/* sema_value.c */
Value value_poison(void);
Value value_tensor(NodeId node, Span span);
Value value_int(DimId dim, Span span);
bool value_is_number(const Value *value); /* a literal, a dim or a bool */
const char *value_describe(Sema *sema, const Value *value);
/* An item of a list, with a span in the source of the current frame. */
Value value_item(const Value *list, uint32_t i);
/* Storage for a list of `n` items that is made from others; NULL: it would be too long. */
Value *sema_new_items(Sema *sema, Span span, int64_t n);
/* The constant of an integer value; false: it is not constant. */
bool value_const_int(Sema *sema, const Value *value, int64_t *number);
/* A number that is constant. */
double value_double(Sema *sema, const Value *value);
/* A tensor or a number in the builder's form. */
Operand sema_operand(const Sema *sema, const Value *value);
/* After an error at a value that is no tensor: what makes one of a list or a function. */
Value sema_help_tensor(Sema *sema, const Value *value);
/* sema_operand after a check; reports that `what` must be a tensor if the value is neither. */
bool sema_want_operand(Sema *sema, const Value *value, const char *what, Operand *operand);
/* A tensor, or a constant tensor of a number's own dtype. */
bool sema_want_tensor(Sema *sema, const Value *value, const char *what, NodeId *node);
/* Arguments of a call: the value, or the default when absent. False after a report. */
bool sema_want_bool(Sema *sema, const Value *value, const char *what, bool *flag);
bool sema_want_dtype(Sema *sema, const Value *value, const char *what, Dtype *dtype);
/* The number of an axis, not yet checked: it may be negative or out of range. */
bool sema_want_axis_number(Sema *sema, const Value *value, const char *what, int64_t *number);
bool sema_want_axis(Sema *sema, const Value *value, const char *what, uint32_t rank,
                    uint32_t *axis);
/* The axis in argument 1 of an iota, argmax or argmin, or the default. */
bool sema_want_axis_or_default(Sema *sema, const Call *call, uint32_t rank, uint32_t *axis);
bool sema_want_axes(Sema *sema, const Value *value, const char *what, uint32_t rank,
                    uint32_t *axes);
/* At most MAX_RANK dims, stored in `dims`. */
bool sema_want_dims(Sema *sema, const Value *value, const char *what, DimId *dims, DimList *list);

/* sema_expr.c */
Value sema_eval(Sema *sema, const Ast *ast);
bool sema_eval_type(Sema *sema, const AstType *type, Dtype *dtype, Shape *shape);

/* sema_truth.c: a comparison of values that are known while compiling, or `&&` or `||` of two of
 * them; false: it is none of these. */
bool sema_compare(Sema *sema, Sugar sugar, const Value *a, const Value *b, Span span,
                  Value *result);
/* `a if c else b`; what is not chosen is not evaluated. */
Value sema_choice(Sema *sema, const Ast *ast);

/* sema_call.c: `as` is the AST_AS around the call, or NULL. */
Value sema_call(Sema *sema, const Ast *ast, const Ast *as);
Value sema_call_op(Sema *sema, OpId op, Span span, uint32_t n_args, const Value *args);
/* The value of a def's body, with an argument or VALUE_ABSENT for each parameter. */
Value sema_expand(Sema *sema, const AstDef *def, Span span, Str prefix, const Value *args);
/* The callable name that `name` may be a misspelling of; NULL: none is near. */
const char *sema_nearest_callable(const Sema *sema, const char *name);
/* Whether `name` is an op, a built-in or a def. */
bool sema_is_callable(const Sema *sema, Str name);
/* The op or def of this name as a value; false: there is none. */
bool sema_function(const Sema *sema, Str name, Value *value);

/* sema_op.c */
Value sema_eltwise(Sema *sema, OpId op, Span span, uint32_t n_args, const Value *args);

/* sema_view.c: reads argument `at` of a call, a list of one dim per axis of a tensor of rank
 * `rank`. */
bool sema_want_per_axis(Sema *sema, const Call *call, uint32_t at, const char *what, uint32_t rank,
                        DimId *dims, DimList *list);

/* sema_loop.c */
Value sema_loop(Sema *sema, const Ast *ast);

/* sema_slice.c */
Value sema_subscript(Sema *sema, const Ast *ast, const Value *base);

/* sema_param.c */
bool sema_has_params(const AstStmts *body);
/* Puts the values of names into a text: with i = 3, "layers.{i}" is "layers.3". NULL after an error
 * at `span`. */
const char *sema_fill_text(Sema *sema, Str text, Span span, bool takes_dims);
/* The prefix of the params of a call: the frame's own and that of `as`. NULL after an error. */
Str sema_prefix(Sema *sema, const Ast *as);
/* The tensor of a `param` of a graph or a module. */
Value sema_param(Sema *sema, const AstStmt *stmt);
/* Gives the params of modules names that the graph does not have yet. */
void sema_name_params(Sema *sema, const AstGraph *ast);

/* sema_stmt.c */
void sema_body(Sema *sema, const AstStmts *body);
void sema_graph(Sema *sema, const AstGraph *ast);

/* The handlers of calls with named parameters, as front/calls.def lists them. */
#define CALL(handler, name, n_required, ...) Value call_##handler(Sema *sema, const Call *call);
#define BUILTIN(handler, ...) Value call_##handler(Sema *sema, const Call *call);
#include "front/calls.def"

#endif
