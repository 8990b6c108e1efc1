/* Loops. A loop of a known number of steps is unrolled: each step expands the body in a frame of
 * its own, with the index as a number and the carried values of the step before. What a step
 * returns beyond the carried values is collected in lists, an item for each step.
 *
 * A loop whose number of steps is a dim expands its body once, as the step of a loop that is
 * repeated at run time (ir/loop.h). Its index is a carried scalar. What a step returns beyond the
 * carried values is a carried tensor with an axis for the steps, of which each updates its own
 * element. */
#include "front/sema_state.h"
#include "ir/loop.h"

typedef struct Loop {
    const Ast *ast;
    DimId begin, end;
    int64_t step;
    DimId count; /* of the steps */
    uint32_t n_carried, n_collected;
    Value *carried;       /* of the next step */
    Vec(Value) collected; /* n_collected for each step */
} Loop;

/* The steps of a loop. */

static bool eval_bound(Sema *sema, const Ast *ast, const char *what, Value *value) {
    *value = sema_eval(sema, ast);
    if (value->kind == VALUE_INT && value->dim) return true;
    if (value->kind == VALUE_POISON) return false;
    sema_error(sema, DIAG_BAD_ARGUMENT, ast->span,
               "the %s of a loop must be an integer or a dim expression, not %s", what,
               value_describe(sema, value));
    if (value->kind == VALUE_TENSOR)
        diag_help(sema->diags, "No step of a loop depends on data, and none ends it; let steps "
                               "keep a value by `where`.");
    return false;
}

static bool eval_step(Sema *sema, const Ast *ast, int64_t *step) {
    Value value = sema_eval(sema, ast);
    if (value.kind == VALUE_POISON) return false;
    if (value_const_int(sema, &value, step) && *step) return true;
    sema_error(sema, DIAG_BAD_ARGUMENT, ast->span,
               "the step of a loop must be an integer other than 0, not %s",
               value_describe(sema, &value));
    return false;
}

/* The number of steps where it is known while compiling, at least 0. */
static bool is_known(const Sema *sema, const Loop *loop, int64_t *begin, int64_t *end) {
    return dim_is_const(sema->dims, loop->begin, begin) && dim_is_const(sema->dims, loop->end, end);
}

static bool eval_steps(Sema *sema, const AstLoop *ast, Loop *loop) {
    Value begin, end;
    loop->step = 1;
    if (!eval_bound(sema, ast->begin, "begin", &begin) ||
        !eval_bound(sema, ast->end, "end", &end) ||
        (ast->step && !eval_step(sema, ast->step, &loop->step)))
        return false;
    loop->begin = begin.dim;
    loop->end = end.dim;
    DimId way = loop->step > 0 ? dim_sub(sema->dims, end.dim, begin.dim)
                               : dim_sub(sema->dims, begin.dim, end.dim);
    loop->count =
        way ? dim_ceil_div(sema->dims, way, loop->step > 0 ? loop->step : -loop->step) : DIM_NONE;
    return true;
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

static void bind_step(Sema *sema, const AstLoop *ast, const Loop *loop, Value index) {
    bind(sema, ast->index, index, ast->index_span);
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

/* Expands the body. */
static bool run_frame(Sema *sema, Loop *loop, Frame *frame, Value index) {
    const AstLoop *ast = loop->ast->loop;
    uint32_t n_errors = sema->diags->n_errors;
    if (!sema_enter(sema, frame)) return false;
    bind_step(sema, ast, loop, index);
    sema_body(sema, &ast->body);
    if (!frame->has_returned && sema->diags->n_errors == n_errors && !sema->stopped)
        sema_error(sema, DIAG_MISPLACED, loop->ast->span, "this loop has no `return`");
    return true;
}

static Frame frame_of(Sema *sema, const Loop *loop) {
    return (Frame){.caller = sema->frame,
                   .outer = sema->frame,
                   .loop = loop->ast->loop,
                   .source = sema->frame->source,
                   .call_span = loop->ast->span,
                   .prefix = sema->frame->prefix};
}

static bool run_step(Sema *sema, Loop *loop, int64_t index) {
    Frame frame = frame_of(sema, loop);
    uint32_t n_errors = sema->diags->n_errors;
    frame.index = index;
    Value number = value_int(dim_const(sema->dims, index), loop->ast->loop->index_span);
    if (!run_frame(sema, loop, &frame, number)) return false;
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

/* The tensors of carried values, and the names of what they are part of. */
typedef struct Carried {
    Vec(NodeId) nodes;
    Vec(Str) names;
} Carried;

static void add_carried(Sema *sema, Carried *carried, const Value *value, Str name) {
    if (value->kind == VALUE_TENSOR) {
        vec_push(sema->arena, &carried->nodes, value->node);
        vec_push(sema->arena, &carried->names, name);
    }
    for (uint32_t i = 0; value->kind == VALUE_LIST && i < value->n_items; i++)
        add_carried(sema, carried, &value->items[i], name);
}

static Carried carried_tensors(Sema *sema, const Loop *loop) {
    Carried carried = {0};
    for (uint32_t i = 0; i < loop->n_carried; i++)
        add_carried(sema, &carried, &loop->carried[i], loop->ast->loop->carried.data[i].name);
    return carried;
}

static void note_step(Sema *sema, const Loop *loop) {
    Carried carried = carried_tensors(sema, loop);
    build_loop_step(sema->builder, carried.nodes.n, carried.nodes.data);
}

static bool run_steps(Sema *sema, Loop *loop, int64_t begin, int64_t end) {
    int64_t i = begin;
    build_begin_loop(sema->builder, loop->ast->loop->index, begin, loop->step);
    Carried first = carried_tensors(sema, loop);
    for (; loop->step > 0 ? i < end : i > end; i += loop->step) {
        note_step(sema, loop);
        if (!run_step(sema, loop, i)) return false;
    }
    note_step(sema, loop);
    build_end_loop(sema->builder, first.names.data);
    return true;
}

/* Loops that are repeated at run time. */

/* Makes a `loop_carry` of each value that the first step receives. */
static bool carry_first(Sema *sema, Loop *loop) {
    const AstLoop *ast = loop->ast->loop;
    for (uint32_t i = 0; i < loop->n_carried; i++) {
        NodeId first;
        Span span = ast->carried.data[i].span;
        if (!sema_want_tensor(sema, &loop->carried[i], ast->carried.data[i].name, &first))
            return false;
        loop->carried[i] = value_tensor(build_loop_carry(sema_at(sema, span), first), span);
    }
    return true;
}

/* A scalar that counts from `first`, as a carry: i64 where i32 may not hold it. */
static NodeId counter(Sema *sema, const Loop *loop, DimId first) {
    bool is_long =
        dim_hi(sema->dims, loop->begin) >= INT32_MAX || dim_hi(sema->dims, loop->end) >= INT32_MAX;
    return build_repeat_counter(sema->builder, first, is_long ? DT_I64 : DT_I32);
}

/* The values of the loop: carried, then collected. */
static Value results(Sema *sema, const Loop *loop, const Repeat *r) {
    uint32_t n = loop->n_carried + loop->n_collected;
    Value *values = arena_array(sema->arena, Value, n + 1);
    Builder *b = sema_at(sema, loop->ast->span);
    for (uint32_t i = 0; i < n; i++) {
        NodeId result =
            i < loop->n_carried ? build_repeat_result(b, r, i) : build_repeat_collected(b, r, i);
        if (result == NODE_NONE) return sema_report(sema, loop->ast->span, NULL);
        values[i] = value_tensor(result, loop->ast->span);
    }
    Value value = {.kind = VALUE_LIST, .n_items = n, .items = values, .several = true};
    if (n == 1) value = values[0];
    value.span = loop->ast->span;
    return value;
}

/* What the step returned: next carried values, and values to collect. */
static Value take_repeated(Sema *sema, Loop *loop, const Value *result, NodeId index, bool uses) {
    Builder *b = sema->builder;
    Repeat r = {.count = loop->count};
    Value *firsts = arena_copy(sema->arena, loop->carried, loop->n_carried * sizeof *firsts);
    if (!take_result(sema, loop, result)) return value_poison();
    for (uint32_t i = 0; i < loop->n_carried; i++) {
        NodeId next;
        if (!sema_want_tensor(sema, &loop->carried[i], "a carried value", &next))
            return value_poison();
        build_repeat_carry(b, &r, firsts[i].node, next);
    }
    bool begins_at_0 = dim_equals_const(sema->dims, loop->begin, 0) && loop->step == 1;
    NodeId at = begins_at_0 ? index : NODE_NONE;
    if (!begins_at_0 && loop->n_collected) at = counter(sema, loop, dim_const(sema->dims, 0));
    for (uint32_t i = 0; i < loop->n_collected; i++) {
        NodeId value;
        if (!sema_want_tensor(sema, &loop->collected.data[i], "a collected value", &value))
            return value_poison();
        build_repeat_collect(b, &r, at, value);
    }
    bool counts = begins_at_0 && loop->n_collected;
    if (uses || counts) build_repeat_count(b, &r, index, loop->step);
    if (!begins_at_0 && loop->n_collected) build_repeat_count(b, &r, at, 1);
    return results(sema, loop, &r);
}

/* The loops around that are repeated. */
static uint32_t n_around(const Sema *sema) {
    uint32_t n = 0;
    for (const Frame *frame = sema->frame; frame; frame = frame->caller) n += frame->is_repeated;
    return n;
}

static Value repeat(Sema *sema, Loop *loop) {
    const AstLoop *ast = loop->ast->loop;
    uint32_t n_errors = sema->diags->n_errors;
    if (n_around(sema) == MAX_LOOPS_DEEP)
        return sema_error(sema, DIAG_LIMIT, loop->ast->span,
                          "loops whose number of steps is a dim are inside each other more than "
                          "%d deep",
                          MAX_LOOPS_DEEP);
    if (sema->builder->block)
        return sema_error(sema, DIAG_MISPLACED, loop->ast->span,
                          "a loop whose number of steps is a dim is in a block");
    if (!loop->count || dim_lo(sema->dims, loop->count) < 0) {
        build_check_loop_count(sema->builder, loop->count);
        return sema_report(sema, loop->ast->span, NULL);
    }
    if (!carry_first(sema, loop)) return value_poison();
    sema_at(sema, loop->ast->span);
    NodeId index = counter(sema, loop, loop->begin);
    if (index == NODE_NONE) return sema_report(sema, loop->ast->span, NULL);
    Frame frame = frame_of(sema, loop);
    frame.is_repeated = true;
    if (!run_frame(sema, loop, &frame, value_tensor(index, ast->index_span))) return value_poison();
    const Binding *counts = scope_find(&frame.scope, ast->index);
    bool uses = counts && counts->is_used;
    sema_leave(sema);
    if (sema->diags->n_errors != n_errors || sema->stopped || frame.result.kind == VALUE_POISON)
        return value_poison();
    sema_at(sema, loop->ast->span);
    return take_repeated(sema, loop, &frame.result, index, uses);
}

static Value unroll(Sema *sema, Loop *loop, int64_t begin, int64_t end) {
    uint32_t n = n_returned(loop->ast->loop);
    loop->n_collected = n > loop->n_carried ? n - loop->n_carried : 0;
    return run_steps(sema, loop, begin, end) ? loop_value(sema, loop) : value_poison();
}

Value sema_loop(Sema *sema, const Ast *ast) {
    Loop loop = {.ast = ast};
    int64_t begin, end;
    if (!eval_steps(sema, ast->loop, &loop) || !eval_first(sema, ast->loop, &loop))
        return value_poison();
    uint32_t call = sema->call;
    if (!call) sema->call = ++sema->n_calls;
    Value value =
        is_known(sema, &loop, &begin, &end) ? unroll(sema, &loop, begin, end) : repeat(sema, &loop);
    sema->call = call;
    return value;
}

/* The ops of such loops, as dumps have them. */

Value call_loop_carry(Sema *sema, const Call *call) {
    NodeId x;
    if (!sema_want_tensor(sema, &call->args[0], "x", &x)) return value_poison();
    NodeId id = build_loop_carry(sema_at(sema, call->span), x);
    return sema_made(sema, call->span, call->args, id);
}

static bool want_tensors(Sema *sema, const Value *list, const char *what, uint32_t n,
                         NodeId *nodes) {
    for (uint32_t i = 0; i < n; i++) {
        const Value item = value_item(list, i);
        if (!sema_want_tensor(sema, &item, what, &nodes[i])) return false;
    }
    return true;
}

Value call_loop_result(Sema *sema, const Call *call) {
    const Value *carries = &call->args[0], *next = &call->args[1], *n = &call->args[2];
    int64_t at;
    bool are_lists = carries->kind == VALUE_LIST && next->kind == VALUE_LIST &&
                     carries->n_items == next->n_items && carries->n_items > 0;
    if (!are_lists || n->kind != VALUE_INT || !value_const_int(sema, &call->args[3], &at) ||
        at < 0 || at >= carries->n_items)
        return sema_error(sema, DIAG_BAD_ARGUMENT, call->span,
                          "`loop_result` takes two lists of as many tensors, a number of steps, "
                          "and which of them it is");
    NodeId *nodes = arena_array(sema->arena, NodeId, 2 * (size_t)carries->n_items);
    if (!want_tensors(sema, carries, "carries", carries->n_items, nodes) ||
        !want_tensors(sema, next, "next", carries->n_items, nodes + carries->n_items))
        return value_poison();
    NodeId id = build_loop_result(sema_at(sema, call->span), carries->n_items, nodes,
                                  nodes + carries->n_items, n->dim, (uint32_t)at);
    return sema_made(sema, call->span, call->args, id);
}
