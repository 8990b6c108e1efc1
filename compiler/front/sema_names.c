/* Help below an error at a name that is unknown here: the name that other libraries give to a
 * function, or a misspelling. foreign.def has the table. */
#include "front/sema_state.h"

#include <ctype.h>
#include <string.h>

/* A name of another library. */
typedef struct Foreign {
    const char *theirs;
    const char *ours;       /* NULL: fusec has no function that does the same */
    const char *expression; /* that does the same; NULL: there is none, or `ours` says it */
} Foreign;

static const Foreign keywords[] = {
#define KEYWORD(theirs, ours) {theirs, ours, NULL},
#include "front/foreign.def"
};

static const Foreign names[] = {
#define FOREIGN(theirs, ours) {theirs, ours, NULL},
#define ABSENT(theirs, expression) {theirs, NULL, expression},
#include "front/foreign.def"
};

static const Foreign methods[] = {
#define METHOD(theirs, expression) {theirs, NULL, expression},
#include "front/foreign.def"
};

static const struct {
    const char *why, *theirs;
} missing[] = {
#define MISSING(why, theirs) {why, theirs},
#include "front/foreign.def"
};

#define N_ROWS(table) (sizeof(table) / sizeof(table)[0])

static const Foreign *row_of(const Foreign *table, size_t n, const char *name) {
    for (size_t i = 0; i < n; i++)
        if (strcmp(table[i].theirs, name) == 0) return &table[i];
    return NULL;
}

const char *sema_our_keyword(const char *theirs) {
    const Foreign *row = row_of(keywords, N_ROWS(keywords), theirs);
    return row ? row->ours : NULL;
}

/* Why there is no such function; NULL: none of the lists has the name. */
static const char *why_missing(const char *name) {
    size_t n = strlen(name);
    for (size_t i = 0; i < N_ROWS(missing); i++) {
        const char *list = missing[i].theirs;
        for (const char *at = list; (at = strstr(at, name)) != NULL; at += n)
            if ((at == list || at[-1] == ' ') && (at[n] == ' ' || !at[n])) return missing[i].why;
    }
    return NULL;
}

/* The forms of a name that other libraries have beside its plain one: `relu_` works in place,
 * `view_copy` is no view, C's `expf` is of floats, and ONNX writes `LeakyRelu`. */
enum { FORM_PLAIN, FORM_IN_PLACE, FORM_COPY, FORM_OF_FLOATS, FORM_LOWER, FORM_SNAKE, N_FORMS };

static const char *without_end(Sema *sema, const char *name, const char *end) {
    size_t n = strlen(name), n_end = strlen(end);
    if (n <= n_end || strcmp(name + n - n_end, end) != 0) return name;
    return str_format(sema->arena, "%.*s", (int)(n - n_end), name);
}

static const char *in_lower(Sema *sema, const char *name, bool is_snake) {
    Text text = {.arena = sema->arena};
    for (const char *at = name; *at; at++) {
        bool is_word =
            is_snake && at > name && isupper((unsigned char)*at) && islower((unsigned char)at[-1]);
        text_printf(&text, "%s%c", is_word ? "_" : "", tolower((unsigned char)*at));
    }
    return text_str(&text);
}

static const char *form_of(Sema *sema, const char *name, int form) {
    if (form == FORM_PLAIN) return name;
    if (form == FORM_IN_PLACE) return without_end(sema, name, "_");
    if (form == FORM_COPY) return without_end(sema, name, "_copy");
    if (form == FORM_OF_FLOATS) return without_end(sema, name, "f");
    return in_lower(sema, name, form == FORM_SNAKE);
}

/* What is known of a name: `ours`, `expression`, or why there is none. */
typedef struct Known {
    const char *ours, *expression, *why;
} Known;

static Known known_of(Sema *sema, const char *name) {
    for (int form = 0; form < N_FORMS; form++) {
        const char *spelled = form_of(sema, name, form);
        const Foreign *row = row_of(names, N_ROWS(names), spelled);
        if (row) return (Known){.ours = row->ours, .expression = row->expression};
        if (sema_is_callable(sema, spelled)) return (Known){.ours = spelled};
        const char *why = why_missing(spelled);
        if (why) return (Known){.why = why};
    }
    return (Known){0};
}

static void help_absent(Sema *sema, const char *name, const Known *known) {
    if (known->expression)
        diag_help(sema->diags, "fusec has no `%s`; write `%s`.", name, known->expression);
    else if (known->why)
        diag_help(sema->diags, "fusec has no `%s`: %s.", name, known->why);
}

/* To a dtype that is called as a function; false: the name is none. */
static bool help_dtype_called(Sema *sema, const char *name) {
    Dtype dtype;
    if (!dtype_by_name(name, &dtype)) return false;
    diag_help(sema->diags, "A dtype is no function: write `cast(x, %s)`.", name);
    return true;
}

void sema_help_call(Sema *sema, const char *name) {
    Known known = known_of(sema, name);
    if (help_dtype_called(sema, name)) return;
    if (!known.ours && !known.expression && !known.why)
        known.ours = sema_nearest_callable(sema, name);
    if (known.ours && strcmp(known.ours, name) != 0)
        diag_help(sema->diags, "Did you mean `%s`?", known.ours);
    else
        help_absent(sema, name, &known);
    if (known.ours) help_dtype_called(sema, known.ours);
}

bool sema_help_name(Sema *sema, const char *name) {
    const Foreign *row = row_of(names, N_ROWS(names), name);
    if (row && row->ours)
        diag_help(sema->diags, "Did you mean `%s`?", row->ours);
    else if (row)
        diag_help(sema->diags, "fusec has no `%s`; write `%s`.", name, row->expression);
    return row != NULL;
}

void sema_help_missing(Sema *sema, const char *name) {
    help_absent(sema, name, &(Known){.why = why_missing(name)});
}

bool sema_help_dtype(Sema *sema, const char *name) {
    const Foreign *row = row_of(names, N_ROWS(names), name);
    Dtype dtype;
    return row && row->ours && dtype_by_name(row->ours, &dtype) && sema_help_name(sema, name);
}

/* Whether an expression is names joined by points, of which the first is not bound: the name of
 * a module, such as `torch.nn`. */
static bool is_module(const Sema *sema, const Ast *ast) {
    while (ast->kind == AST_FIELD) ast = ast->items[0];
    return ast->kind == AST_NAME && !sema_find(sema, ast->name);
}

/* The text of the program from the begin of an expression to the end of the name after its point.
 */
static const char *path_of(Sema *sema, const Ast *ast) {
    enum { MAX_SHOWN = 40 };
    uint32_t n = ast->name_span.end - ast->span.begin;
    if (n > MAX_SHOWN) return ast->name;
    return str_format(sema->arena, "%.*s", (int)n, sema->frame->source->text + ast->span.begin);
}

/* The row of a method of a function or of a field: `np.add.at`, `x.at[0].set`; or NULL. */
static const Foreign *method_of(Sema *sema, const Ast *ast) {
    const Ast *of = ast->items[0];
    if (of->kind == AST_SUBSCRIPT) of = of->items[0];
    if (of->kind != AST_FIELD && of->kind != AST_NAME) return NULL;
    const char *path = str_format(sema->arena, "%s.%s", of->name, ast->name);
    return row_of(methods, N_ROWS(methods), path);
}

/* Says how a name behind a point is written: `torch.relu`, `x.sum`, `x.T`. */
static void help_path(Sema *sema, const Ast *ast) {
    Known known = known_of(sema, ast->name);
    Dtype dtype;
    const Foreign *method = method_of(sema, ast);
    if (method) known = (Known){.expression = method->expression};
    if (!known.ours && dtype_by_name(ast->name, &dtype)) known.ours = ast->name;
    const char *begin = is_module(sema, ast->items[0]) ? "Functions have no module in front"
                                                       : "Tensors have no methods";
    bool is_of_tensor = !is_module(sema, ast->items[0]);
    if (!known.ours && !known.expression && !known.why)
        diag_help(sema->diags, "%s.", begin);
    else if (!known.ours)
        help_absent(sema, method ? method->theirs : ast->name, &known);
    else if ((is_of_tensor || ast->kind == AST_METHOD) && dtype_by_name(known.ours, &dtype))
        diag_help(sema->diags, "%s: write `cast(x, %s)`.", begin, known.ours);
    else
        diag_help(sema->diags, "%s: write `%s%s`.", begin, known.ours,
                  is_of_tensor ? "(x, ..)" : "");
}

Value sema_unknown_path(Sema *sema, const Ast *ast) {
    bool is_call = ast->kind == AST_METHOD;
    sema_error(sema, is_call ? DIAG_UNKNOWN_OP : DIAG_UNKNOWN_NAME, ast->name_span,
               is_call ? "unknown op `%s`" : "unknown name `%s`", path_of(sema, ast));
    if (sema->diags->n_errors <= DIAG_MAX_ERRORS) help_path(sema, ast);
    return value_poison();
}

bool sema_is_module_path(const Sema *sema, const Ast *ast) {
    return ast->kind == AST_FIELD && is_module(sema, ast->items[0]);
}

void sema_help_field(Sema *sema, const char *name) {
    Known known = known_of(sema, name);
    if (known.ours)
        diag_help(sema->diags, "The only field is `.shape`; write `%s(x)`.", known.ours);
    else if (known.expression || known.why)
        help_absent(sema, name, &known);
    else
        diag_help(sema->diags, "The only field is `.shape`.");
}
