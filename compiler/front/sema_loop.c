/* Loops are unrolled: each step expands the body in a frame of its own, with the index as a number
 * and the carried values of the step before. What a step returns beyond the carried values is
 * collected in lists, an item for each step. */
#include "front/sema_state.h"

typedef struct Loop {
    const Ast *ast;
    int64_t begin, end, step;
    uint32_t n_carried, n_collected;
    Value *carried;       /* of the next step */
    Vec(Value) collected; /* n_collected for each step */
} Loop;

/* The steps of a loop. */

static bool eval_bound(Sema *sema, const Ast *ast, const char *what, int64_t *number) {
    Value value = sema_eval(sema, ast);
    if (value_const_int(sema, &value, number)) return true;
    if (value.kind == VALUE_POISON) return false;
    sema_error(sema, DIAG_BAD_ARGUMENT, ast->span,
               "the %s of a loop must be an integer known while compiling, not %s", what,
               value_describe(sema, &value));
    if (value.kind == VALUE_TENSOR)
        diag_help(sema->diags, "No step of a loop depends on data, and none ends it; let steps "
                               "keep a value by `where`.");
    else if (value.kind == VALUE_INT)
        diag_help(sema->diags,
                  "Loops are unrolled: declare the dim as a number, as in `dim T = 512`, or write "
                  "a scan.");
    return false;
}

static bool eval_steps(Sema *sema, const AstLoop *ast, Loop *loop) {
    loop->step = 1;
    if (!eval_bound(sema, ast->begin, "begin", &loop->begin) ||
        !eval_bound(sema, ast->end, "end", &loop->end) ||
        (ast->step && !eval_bound(sema, ast->step, "step", &loop->step)))
        return false;
    if (loop->step) return true;
    sema_error(sema, DIAG_BAD_ARGUMENT, ast->step->span, "the step of a loop must not be 0");
    return false;
}

/* What is carried into the first step. */
static bool eval_first(Sema *sema, const AstLoop *ast, Loop *loop) {
    bool is_whole = true;
    loop->n_carried = ast->carried.n;
    loop->carried = arena_array(sema->arena, Value, ast->carried.n + 1);
    for (uint32_t i = 0; i < ast->carried.n; i++) {
        loop->carried[i] = sema_eval(sema, ast->carried.data[i].default_value);
        if (loop->carried[i].kind == VALUE_POISON) is_whole = false;
    }
    return is_whole;
}

/* One step. */

static void bind(Sema *sema, Str name, Value value, Span span) {
    if (scope_find(&sema->frame->scope, name))
        sema_error(sema, DIAG_REDEFINITION, span, "`%s` is bound already by this loop", name);
    else
        scope_add(sema->arena, &sema->frame->scope, name, value, span);
}

static void bind_step(Sema *sema, const AstLoop *ast, const Loop *loop, int64_t index) {
    bind(sema, ast->index, value_int(dim_const(sema->dims, index), ast->index_span),
         ast->index_span);
    for (uint32_t i = 0; i < ast->carried.n; i++)
        bind(sema, ast->carried.data[i].name, loop->carried[i], ast->carried.data[i].span);
}

/* Takes what a step returned apart: one value, or a list of several. */
static bool take_result(Sema *sema, Loop *loop, const Value *result) {
    bool is_list = result->kind == VALUE_LIST && (result->several || loop->n_carried > 1);
    const Value *values = is_list ? result->items : result;
    uint32_t n = is_list ? result->n_items : 1;
    if (n < loop->n_carried) {
        sema_error(sema, DIAG_WRONG_COUNT, loop->ast->span,
                   "a step returns %u value%s of the %u that the loop carries", n,
                   n == 1 ? "" : "s", loop->n_carried);
        return false;
    }
    loop->n_collected = n - loop->n_carried;
    for (uint32_t i = 0; i < loop->n_carried; i++) loop->carried[i] = values[i];
    for (uint32_t i = loop->n_carried; i < n; i++)
        vec_push(sema->arena, &loop->collected, values[i]);
    return true;
}

static bool run_step(Sema *sema, Loop *loop, int64_t index) {
    const AstLoop *ast = loop->ast->loop;
    Frame frame = {.caller = sema->frame,
                   .outer = sema->frame,
                   .loop = ast,
                   .index = index,
                   .source = sema->frame->source,
                   .call_span = loop->ast->span,
                   .prefix = sema->frame->prefix};
    uint32_t n_errors = sema->diags->n_errors;
    if (!sema_enter(sema, &frame)) return false;
    bind_step(sema, ast, loop, index);
    sema_body(sema, &ast->body);
    if (!frame.has_returned && sema->diags->n_errors == n_errors && !sema->stopped)
        sema_error(sema, DIAG_MISPLACED, loop->ast->span, "this loop has no `return`");
    sema_leave(sema);
    return sema->diags->n_errors == n_errors && !sema->stopped &&
           frame.result.kind != VALUE_POISON && take_result(sema, loop, &frame.result);
}

/* The whole loop. */

/* Item `at` of what each step collected. */
static Value collected(Sema *sema, const Loop *loop, uint32_t at) {
    uint32_t n = loop->n_collected ? loop->collected.n / loop->n_collected : 0;
    Value *items = sema_new_items(sema, loop->ast->span, n);
    if (!items) return value_poison();
    for (uint32_t i = 0; i < n; i++) items[i] = loop->collected.data[i * loop->n_collected + at];
    return (Value){.kind = VALUE_LIST, .n_items = n, .items = items, .span = loop->ast->span};
}

/* A loop without steps has lists without items, as many as its `return` says. */
static uint32_t n_returned(const AstLoop *ast) {
    const AstStmt *last = ast->body.n ? ast->body.data[ast->body.n - 1] : NULL;
    return last && last->kind == STMT_RETURN ? last->values.n : ast->carried.n;
}

static Value loop_value(Sema *sema, Loop *loop) {
    uint32_t n = loop->n_carried + loop->n_collected;
    Value *values = arena_array(sema->arena, Value, n + 1);
    for (uint32_t i = 0; i < loop->n_carried; i++) values[i] = loop->carried[i];
    for (uint32_t i = 0; i < loop->n_collected; i++) {
        values[loop->n_carried + i] = collected(sema, loop, i);
        if (values[loop->n_carried + i].kind == VALUE_POISON) return value_poison();
    }
    Value value = {.kind = VALUE_LIST, .n_items = n, .items = values, .several = true};
    if (n == 1) value = values[0];
    value.span = loop->ast->span;
    return value;
}

static bool run_steps(Sema *sema, Loop *loop) {
    int64_t i = loop->begin, end = loop->end;
    for (; loop->step > 0 ? i < end : i > end; i += loop->step)
        if (!run_step(sema, loop, i)) return false;
    return true;
}

Value sema_loop(Sema *sema, const Ast *ast) {
    Loop loop = {.ast = ast};
    if (!eval_steps(sema, ast->loop, &loop) || !eval_first(sema, ast->loop, &loop))
        return value_poison();
    uint32_t n = n_returned(ast->loop), call = sema->call;
    loop.n_collected = n > loop.n_carried ? n - loop.n_carried : 0;
    if (!call) sema->call = ++sema->n_calls;
    bool ok = run_steps(sema, &loop);
    sema->call = call;
    return ok ? loop_value(sema, &loop) : value_poison();
}
