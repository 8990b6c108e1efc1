/* Calls: resolving the name, matching arguments to parameters, expanding defs. */
#include "front/sema_state.h"

#include <string.h>

typedef struct Signature {
    const char *name;
    Value (*handler)(Sema *sema, const Call *call);
    uint32_t n_required, n_params;
    const char *params[SEMA_MAX_ARGS];
} Signature;

#define COUNT(...) (sizeof((const char *[]){__VA_ARGS__}) / sizeof(const char *))
static const Signature signatures[] = {
#define CALL(handler, name, n_required, ...) \
    {name, call_##handler, n_required, COUNT(__VA_ARGS__), {__VA_ARGS__}},
#define BUILTIN(handler, name, n_required, error, doc, ...) \
    CALL(handler, name, n_required, __VA_ARGS__)
#include "front/calls.def"
};

enum { N_SIGNATURES = sizeof signatures / sizeof signatures[0] };

static const Signature *signature_by_name(const char *name) {
    for (int i = 0; i < N_SIGNATURES; i++)
        if (strcmp(signatures[i].name, name) == 0) return &signatures[i];
    return NULL;
}

/* The row of calls.def for an op; NULL for an elementwise op or a source. */
static const Signature *signature_by_op(OpId op) {
    const OpInfo *info = op_info(op);
    if (info->cls == CLASS_REDUCE) return signature_by_name("<reduce>");
    if (info->cls == CLASS_ARGREDUCE) return signature_by_name("<argreduce>");
    if (info->cls == CLASS_SORT) return signature_by_name("<sort>");
    if (info->cls == CLASS_UPDATE) return signature_by_name("<update>");
    if (info->cls == CLASS_ONLINE && info->power) return signature_by_name("<online>");
    if (info->cls == CLASS_SEGMENT) return signature_by_name("<segments>");
    if (info->cls == CLASS_SCAN) return signature_by_name("<scan>");
    return signature_by_name(info->name);
}

static const AstDef *def_in(const AstFile *file, Str name) {
    for (uint32_t i = 0; i < file->defs.n; i++)
        if (file->defs.data[i]->name == name) return file->defs.data[i];
    return NULL;
}

/* What a name calls: a def, else an op, else a row of calls.def. The program's own defs take
 * precedence over ops and the prelude's, except inside the prelude. */
static const AstDef *find_callee(const Sema *sema, Str name, OpId *op) {
    bool is_prelude = prelude_is_source(sema->prelude, sema->frame->source);
    Callee *last = &sema->callees[((uintptr_t)name >> 4) % N_CALLEES];
    if (last->name != name || last->is_prelude != is_prelude) {
        const AstDef *def = is_prelude ? NULL : def_in(sema->file, name);
        OpId own = def ? OP_NONE : op_by_name(name);
        if (!def && !own) def = prelude_def(sema->prelude, name);
        *last = (Callee){name, is_prelude, def, own};
    }
    *op = last->op;
    return last->def;
}

bool sema_is_callable(const Sema *sema, Str name) {
    return op_by_name(name) || (name[0] != '<' && signature_by_name(name)) ||
           def_in(sema->file, name) || prelude_has(name);
}

bool sema_function(const Sema *sema, Str name, Value *value) {
    OpId op;
    const AstDef *def = find_callee(sema, name, &op);
    *value = (Value){.kind = VALUE_FUNCTION, .string = name, .def = def};
    return def || op;
}

/* The function that a name of the program is bound to; NULL: none. */
static const Value *bound_function(const Sema *sema, Str name) {
    Binding *binding = sema_find(sema, name);
    if (!binding || binding->value.kind != VALUE_FUNCTION) return NULL;
    binding->is_used = true;
    return &binding->value;
}

/* Help after an unknown name or keyword. */

const char *sema_nearest_callable(const Sema *sema, const char *name) {
    Nearest nearest = nearest_to(name);
    for (int op = OP_NONE + 1; op < OP_COUNT; op++) nearest_try(&nearest, op_info((OpId)op)->name);
    for (int i = 0; i < N_SIGNATURES; i++) nearest_try(&nearest, signatures[i].name);
    for (uint32_t i = 0; i < prelude_n_defs; i++) nearest_try(&nearest, prelude_defs[i].name);
    for (uint32_t i = 0; i < sema->file->defs.n && i < 1000; i++)
        nearest_try(&nearest, sema->file->defs.data[i]->name);
    return nearest.best;
}

/* A name that other libraries give to a function is no misspelling of another function's name. */
static Value unknown_op(Sema *sema, const Ast *ast) {
    for (uint32_t i = 0; i < sema->file->broken_names.n; i++)
        if (sema->file->broken_names.data[i] == ast->name) return value_poison();
    sema_error(sema, DIAG_UNKNOWN_OP, ast->name_span, "unknown op `%s`", ast->name);
    if (sema->diags->n_errors > DIAG_MAX_ERRORS) return value_poison();
    sema_help_call(sema, ast->name);
    return value_poison();
}

/* The parameters of a def or of a row of calls.def. */
typedef struct Params {
    uint32_t n, n_required;
    const char *const *names;
} Params;

static const char *params_str(Sema *sema, const Params *params) {
    Text text = {.arena = sema->arena};
    for (uint32_t i = 0; i < params->n; i++)
        text_printf(&text, "%s%s", i ? ", " : "", params->names[i]);
    return text_str(&text);
}

/* Suggests a parameter among those that have no argument in `args` yet. */
static bool unknown_keyword(Sema *sema, const Ast *arg, const char *callee, const Params *params,
                            const Value *args) {
    sema_error(sema, DIAG_UNKNOWN_ARGUMENT, arg->name_span, "`%s` has no parameter `%s`", callee,
               arg->name);
    const char *ours = sema_our_keyword(arg->name);
    Nearest nearest = nearest_to(arg->name);
    for (uint32_t i = 0; i < params->n; i++)
        if (args[i].kind == VALUE_ABSENT) nearest_try(&nearest, params->names[i]);
    const char *best = nearest.best;
    for (uint32_t i = 0; i < params->n && ours; i++)
        if (strcmp(params->names[i], ours) == 0) best = ours;
    if (best)
        diag_help(sema->diags, "Did you mean `%s`?", best);
    else
        diag_help(sema->diags, "Its parameters are: %s.", params_str(sema, params));
    return false;
}

static bool bind_one(Sema *sema, const Ast *arg, const char *callee, const Params *params,
                     uint32_t position, Value *args) {
    uint32_t at = position;
    if (arg->kind == AST_KEYWORD) {
        for (at = 0; at < params->n; at++)
            if (strcmp(params->names[at], arg->name) == 0) break;
        if (at == params->n) return unknown_keyword(sema, arg, callee, params, args);
    }
    if (at >= params->n) {
        sema_error(sema, DIAG_WRONG_ARITY, arg->span, "too many arguments: `%s` takes %u (%s)",
                   callee, params->n, params_str(sema, params));
        sema_help_form(sema, callee, 0, NULL);
        return false;
    }
    if (args[at].kind != VALUE_ABSENT) {
        sema_error(sema, DIAG_WRONG_ARITY, arg->span, "`%s` of `%s` is given twice",
                   params->names[at], callee);
        return false;
    }
    args[at] = sema_eval(sema, arg->kind == AST_KEYWORD ? arg->items[0] : arg);
    return true;
}

/* Evaluates the arguments of `ast` into the order of the parameters; false after an error. */
static bool bind_args(Sema *sema, const Ast *ast, const Params *params, Value *args) {
    bool ok = true, saw_keyword = false;
    for (uint32_t i = 0; i < params->n; i++) args[i] = (Value){.kind = VALUE_ABSENT};
    for (uint32_t i = 0; i < ast->n_items && ok; i++) {
        const Ast *arg = ast->items[i];
        if (arg->kind == AST_KEYWORD) {
            saw_keyword = true;
        } else if (saw_keyword) {
            sema_error(sema, DIAG_WRONG_ARITY, arg->span,
                       "argument by position after one by keyword");
            return false;
        }
        ok = bind_one(sema, arg, ast->name, params, i, args);
    }
    for (uint32_t i = 0; i < params->n && ok; i++) {
        if (args[i].kind == VALUE_POISON) return false;
        if (i >= params->n_required || args[i].kind != VALUE_ABSENT) continue;
        sema_error(sema, DIAG_WRONG_ARITY, ast->span, "`%s` misses its argument `%s` (%s)",
                   ast->name, params->names[i], params_str(sema, params));
        sema_help_form(sema, ast->name, params->n, args);
        return false;
    }
    return ok;
}

/* Help below an error that a call of the program has brought, beyond the first `n_errors`. */
static void help_refused(Sema *sema, const Ast *ast, uint32_t n_errors, const Params *params,
                         const Value *args) {
    bool is_own = !prelude_is_source(sema->prelude, sema->frame->source);
    if (is_own && sema->diags->n_errors > n_errors)
        sema_help_form(sema, ast->name, params->n, args);
}

static Value call_signature(Sema *sema, const Ast *ast, OpId op, const Signature *signature) {
    Call call = {.name = ast->name, .span = ast->span, .op = op};
    Params params = {signature->n_params, signature->n_required, signature->params};
    for (uint32_t i = params.n; i < SEMA_MAX_ARGS; i++) call.args[i].kind = VALUE_ABSENT;
    if (!bind_args(sema, ast, &params, call.args)) return value_poison();
    uint32_t n_errors = sema->diags->n_errors;
    Value value = signature->handler(sema, &call);
    help_refused(sema, ast, n_errors, &params, call.args);
    return value;
}

/* Elementwise ops take positional arguments, except `approximate="form"`, which selects the op
 * `name_form`. */

static bool pick_form(Sema *sema, const Ast *arg, OpId *op) {
    Value form = sema_eval(sema, arg->items[0]);
    if (form.kind == VALUE_POISON) return false;
    if (form.kind == VALUE_STRING && strcmp(form.string, "none") == 0) return true;
    const char *name = op_info(*op)->name;
    OpId picked = OP_NONE;
    if (form.kind == VALUE_STRING)
        picked = op_by_name(str_format(sema->arena, "%s_%s", name, form.string));
    if (picked && op_info(picked)->cls == CLASS_ELTWISE) {
        *op = picked;
        return true;
    }
    sema_error(sema, DIAG_BAD_ARGUMENT, arg->span, "`%s` has no such approximation", name);
    return false;
}

/* The prelude's `name_form` of an elementwise op, for calls with PyTorch's keywords, or with `none`
 * or a number of arguments that the op does not take; NULL: the call is one of the op. */
static const AstDef *form_of_eltwise(const Sema *sema, const Ast *ast, OpId op) {
    const OpInfo *info = op_info(op);
    bool is_form = ast->n_items < info->min_args || ast->n_items > info->max_args;
    if (ast->n_items == 0) return NULL;
    for (uint32_t i = 0; i < ast->n_items; i++) {
        const Ast *arg = ast->items[i];
        bool is_name = arg->kind == AST_KEYWORD && strcmp(arg->name, "approximate") != 0;
        is_form = is_form || is_name || arg->kind == AST_NONE;
    }
    if (!is_form) return NULL;
    const char *name = str_format(sema->arena, "%s_form", info->name);
    return prelude_def(sema->prelude, strtab_intern_z(sema->strings, name));
}

static Value call_eltwise(Sema *sema, const Ast *ast, OpId op) {
    Vec(Value) args = {0};
    for (uint32_t i = 0; i < ast->n_items; i++) {
        const Ast *arg = ast->items[i];
        if (arg->kind != AST_KEYWORD) {
            vec_push(sema->arena, &args, sema_eval(sema, arg));
        } else if (strcmp(arg->name, "approximate") != 0) {
            sema_error(sema, DIAG_UNKNOWN_ARGUMENT, arg->name_span, "`%s` has no parameter `%s`",
                       ast->name, arg->name);
            diag_help(sema->diags, "%s", build_arity_help(sema->builder, op));
            return value_poison();
        } else if (!pick_form(sema, arg, &op)) {
            return value_poison();
        }
    }
    for (uint32_t i = 0; i < args.n; i++)
        if (args.data[i].kind == VALUE_POISON) return value_poison();
    if (!build_check_arity(sema->builder, op, args.n)) return sema_report(sema, ast->span, NULL);
    return sema_eltwise(sema, op, ast->span, args.n, args.data);
}

Value sema_call_op(Sema *sema, OpId op, Span span, uint32_t n_args, const Value *args) {
    if (op_info(op)->cls == CLASS_ELTWISE) return sema_eltwise(sema, op, span, n_args, args);
    Str name = strtab_intern_z(sema->strings, op_info(op)->name);
    Call call = {.name = name, .span = span, .op = op};
    for (uint32_t i = 0; i < SEMA_MAX_ARGS; i++)
        call.args[i] = i < n_args ? args[i] : (Value){.kind = VALUE_ABSENT};
    return signature_by_op(op)->handler(sema, &call);
}

/* Defs. */

static bool check_recursion(Sema *sema, const AstDef *def, Span span) {
    for (const Frame *frame = sema->frame; frame; frame = frame->caller) {
        if (frame->def != def) continue;
        Text chain = {.arena = sema->arena};
        uint32_t n = 0;
        text_puts(&chain, def->name);
        for (const Frame *f = sema->frame; f != frame && n < 8; f = f->caller)
            if (f->def) n++, text_printf(&chain, " <- %s", f->def->name);
        text_printf(&chain, " <- %s", def->name);
        sema_error(sema, DIAG_RECURSION, span, "def `%s` calls itself: %s", def->name,
                   text_str(&chain));
        return false;
    }
    return true;
}

/* Marks a value that goes from a caller to a def of another file, or back. */
static void mark_elsewhere(Value *value, const Frame *frame) {
    bool is_list = value->kind == VALUE_LIST;
    if (is_list && frame->source != frame->caller->source) value->is_elsewhere = true;
}

/* Parameters are the first bindings of the def's scope. A default may use earlier parameters. */
static void bind_formals(Sema *sema, const AstDef *def, Frame *frame, const Value *args) {
    for (uint32_t i = 0; i < def->formals.n; i++) {
        const AstDecl *formal = &def->formals.data[i];
        Value value = args[i];
        mark_elsewhere(&value, frame);
        if (value.kind == VALUE_ABSENT) value = sema_eval(sema, formal->default_value);
        if (scope_find(&frame->scope, formal->name))
            sema_error(sema, DIAG_REDEFINITION, formal->span, "parameter `%s` is given twice",
                       formal->name);
        else
            scope_add(sema->arena, &frame->scope, formal->name, value, formal->span);
    }
}

Value sema_expand(Sema *sema, const AstDef *def, Span span, Str prefix, const Value *args) {
    Frame frame = {.caller = sema->frame,
                   .def = def,
                   .source = def->source,
                   .call_span = span,
                   .prefix = prefix};
    uint32_t call = sema->call;
    if (!sema_enter(sema, &frame)) return value_poison();
    if (!call) sema->call = ++sema->n_calls;
    bind_formals(sema, def, &frame, args);
    sema_body(sema, &def->body);
    if (!frame.has_returned)
        frame.result =
            sema_error(sema, DIAG_MISPLACED, def->span, "def `%s` has no `return`", def->name);
    sema->call = call;
    sema_leave(sema);
    frame.result.span = span;
    mark_elsewhere(&frame.result, &frame);
    return frame.result;
}

static bool def_params(Sema *sema, const AstDef *def, Span span, Params *params) {
    bool saw_default = false;
    *params = (Params){.n = def->formals.n};
    if (params->n > SEMA_MAX_PARAMETERS) {
        sema_error(sema, DIAG_LIMIT, span, "def `%s` has more than %d parameters", def->name,
                   SEMA_MAX_PARAMETERS);
        return false;
    }
    const char **names = arena_array(sema->arena, const char *, params->n);
    params->names = names;
    for (uint32_t i = 0; i < params->n; i++) {
        names[i] = def->formals.data[i].name;
        if (def->formals.data[i].default_value)
            saw_default = true;
        else if (!saw_default)
            params->n_required = i + 1;
        else
            params->n_required = params->n;
    }
    return true;
}

static Value no_params(Sema *sema, const Ast *call, const Ast *as) {
    return sema_error(sema, DIAG_BAD_ARGUMENT, as->name_span, "`%s` has no params to name",
                      call->name);
}

/* A call of a def with params must name them. */
static bool check_as(Sema *sema, const Ast *ast, const AstDef *def, const Ast *as) {
    if (as || !sema_has_params(&def->body)) return true;
    sema_error(sema, DIAG_MISPLACED, ast->span, "`%s` has params, and its call does not name them",
               ast->name);
    diag_help(sema->diags,
              "Write `%s(..) as \"name\"`: the keys of its params then begin with `name.`.",
              ast->name);
    return false;
}

static Value call_def(Sema *sema, const Ast *ast, const AstDef *def, const Ast *as) {
    Params params;
    if (!check_recursion(sema, def, ast->name_span) ||
        !def_params(sema, def, ast->name_span, &params))
        return value_poison();
    Value *args = arena_array(sema->arena, Value, params.n);
    if (!bind_args(sema, ast, &params, args)) return value_poison();
    Str prefix = sema_prefix(sema, as);
    uint32_t n_params = sema->n_params, n_errors = sema->diags->n_errors;
    if (!prefix || !check_as(sema, ast, def, as)) return value_poison();
    Value value = sema_expand(sema, def, ast->span, prefix, args);
    if (prelude_is_source(sema->prelude, def->source))
        help_refused(sema, ast, n_errors, &params, args);
    bool is_idle = as && value.kind != VALUE_POISON && n_params == sema->n_params;
    return is_idle ? no_params(sema, ast, as) : value;
}

Value sema_call(Sema *sema, const Ast *ast, const Ast *as) {
    const Value *bound = bound_function(sema, ast->name);
    OpId op = bound ? op_by_name(bound->string) : OP_NONE;
    const AstDef *def = bound ? bound->def : find_callee(sema, ast->name, &op);
    if (def) return call_def(sema, ast, def, as);
    if (as && sema_is_callable(sema, ast->name)) return no_params(sema, ast, as);
    bool is_eltwise = op && op_info(op)->cls == CLASS_ELTWISE;
    def = is_eltwise ? form_of_eltwise(sema, ast, op) : NULL;
    if (def) return call_def(sema, ast, def, NULL);
    if (is_eltwise) return call_eltwise(sema, ast, op);
    const Signature *signature = op ? signature_by_op(op) : signature_by_name(ast->name);
    if (signature) return call_signature(sema, ast, op, signature);
    return unknown_op(sema, ast);
}

/* Scans by a function of elements: the function is expanded once, in a graph of its own. */

typedef struct ScanCall {
    const Value *xs, *combine;
    bool takes_lists; /* the function takes lists of tensors, not one tensor */
    Span span;
} ScanCall;

static bool read_call(Sema *sema, const Call *call, uint32_t at_lists, ScanCall *scan) {
    *scan = (ScanCall){
        .xs = &call->args[0], .combine = &call->args[1], .takes_lists = true, .span = call->span};
    if (scan->xs->kind == VALUE_POISON || scan->combine->kind == VALUE_POISON ||
        !sema_want_bool(sema, &call->args[at_lists], "takes_lists", &scan->takes_lists))
        return false;
    bool are_tensors = scan->xs->kind == VALUE_LIST && scan->xs->n_items > 0;
    for (uint32_t i = 0; are_tensors && i < scan->xs->n_items; i++)
        are_tensors = scan->xs->items[i].kind == VALUE_TENSOR;
    if (are_tensors && scan->combine->kind == VALUE_FUNCTION) return true;
    sema_error(sema, DIAG_BAD_ARGUMENT, call->span, "`%s` takes a list of tensors and a function",
               call->name);
    return false;
}

/* Inputs of the types of the tensors, as a list. */
static Value new_inputs(Sema *sema, const Graph *graph, const ScanCall *scan, const char *side) {
    uint32_t n = scan->xs->n_items;
    Value *items = arena_array(sema->arena, Value, n);
    for (uint32_t i = 0; i < n; i++) {
        const Node *like = graph_node(graph, scan->xs->items[i].node);
        Str name = str_format(sema->arena, "%s%u", side, i);
        NodeId id = build_input(sema_at(sema, scan->span), name, like->dtype,
                                (DimList){like->shape.rank, like->shape.dims});
        items[i] = value_tensor(id, scan->span);
    }
    return (Value){.kind = VALUE_LIST, .n_items = n, .items = items, .span = scan->span};
}

/* What the function makes of inputs of the types of the tensors, in the builder's graph. */
static Value expand_function(Sema *sema, const Graph *graph, const ScanCall *scan) {
    Value args[4];
    const AstDef *join = prelude_def(sema->prelude, strtab_intern_z(sema->strings, "scan_join"));
    if (!join) return value_poison();
    args[0] = *scan->combine;
    args[1] = new_inputs(sema, graph, scan, "a");
    args[2] = new_inputs(sema, graph, scan, "b");
    args[3] = (Value){.kind = VALUE_BOOL, .number = scan->takes_lists ? 1 : 0, .span = scan->span};
    return sema_expand(sema, join, scan->span, sema->frame->prefix, args);
}

/* The function of elements that the call's function is, one graph for all that are equal; NULL: it
 * is none. */
static const Graph *trace(Sema *sema, const ScanCall *scan) {
    Builder *own = sema->builder;
    uint32_t n = scan->xs->n_items;
    NodeId *results = arena_array(sema->arena, NodeId, n);
    sema->builder = build_new(sema->arena, sema->dims, own->graph->source, own->graph->name);
    sema->n_traces++;
    Value made = expand_function(sema, own->graph, scan);
    sema->n_traces--;
    Builder *traced = sema->builder;
    sema->builder = own;
    if (made.kind != VALUE_LIST || made.n_items != n) return NULL;
    for (uint32_t i = 0; i < n; i++) {
        if (made.items[i].kind != VALUE_TENSOR) return NULL;
        results[i] = made.items[i].node;
    }
    const Graph *function = build_scan_function(traced, results, n);
    if (!function) return NULL;
    for (uint32_t i = 0; i < sema->module->functions.n; i++)
        if (build_equal_functions(sema->module->functions.data[i], function))
            return sema->module->functions.data[i];
    vec_push(sema->module->arena, &sema->module->functions, function);
    return function;
}

/* is_elementwise(xs, combine, takes_lists): whether `scan_by` takes the function. */
Value call_is_elementwise(Sema *sema, const Call *call) {
    ScanCall scan;
    if (!read_call(sema, call, 2, &scan)) return value_poison();
    return (Value){.kind = VALUE_BOOL, .number = trace(sema, &scan) ? 1 : 0, .span = call->span};
}

Value call_scan_by(Sema *sema, const Call *call) {
    ScanCall scan;
    int64_t axis, result;
    if (!read_call(sema, call, 4, &scan) ||
        !sema_want_axis_number(sema, &call->args[2], "axis", &axis))
        return value_poison();
    if (!value_const_int(sema, &call->args[3], &result) || result < 0 || result >= scan.xs->n_items)
        return sema_error(sema, DIAG_BAD_ARGUMENT, call->span,
                          "`result` is the number of one of the tensors");
    const Graph *function = trace(sema, &scan);
    if (!function)
        return sema_error(sema, DIAG_BAD_ARGUMENT, call->span,
                          "`scan_by` takes tensors of one shape and a function of their elements");
    NodeId *xs = arena_array(sema->arena, NodeId, scan.xs->n_items);
    for (uint32_t i = 0; i < scan.xs->n_items; i++) xs[i] = scan.xs->items[i].node;
    NodeId id = build_scan_by(sema_at(sema, call->span), function, xs, axis, (uint32_t)result);
    return sema_made(sema, call->span, call->args, id);
}

/* Queries of a tensor's shape or dtype, answered at compile time. */

static const Node *asked(Sema *sema, const Call *call) {
    if (call->args[0].kind == VALUE_TENSOR) return sema_node(sema, call->args[0].node);
    if (call->args[0].kind != VALUE_POISON)
        sema_error(sema, DIAG_BAD_ARGUMENT, call->args[0].span, "`%s` asks about a tensor, not %s",
                   call->name, value_describe(sema, &call->args[0]));
    return NULL;
}

Value call_dtype(Sema *sema, const Call *call) {
    const Node *node = asked(sema, call);
    if (!node) return value_poison();
    return (Value){.kind = VALUE_DTYPE, .dtype = node->dtype, .span = call->span};
}

Value call_compute(Sema *sema, const Call *call) {
    const Node *node = asked(sema, call);
    if (!node) return value_poison();
    return (Value){.kind = VALUE_DTYPE, .dtype = dtype_compute(node->dtype), .span = call->span};
}

Value call_rank(Sema *sema, const Call *call) {
    const Node *node = asked(sema, call);
    if (!node) return value_poison();
    return value_int(dim_const(sema->dims, node->shape.rank), call->span);
}

Value call_dim(Sema *sema, const Call *call) {
    const Node *node = asked(sema, call);
    uint32_t axis;
    if (!node || !sema_want_axis(sema, &call->args[1], "axis", node->shape.rank, &axis))
        return value_poison();
    return value_int(node->shape.dims[axis], call->span);
}

/* The largest value of an integer, of which dims may be known at run time alone. */
Value call_most(Sema *sema, const Call *call) {
    const Value *n = &call->args[0];
    if (n->kind == VALUE_INT)
        return value_int(dim_const(sema->dims, dim_hi(sema->dims, n->dim)), call->span);
    if (n->kind == VALUE_POISON) return *n;
    return sema_error(sema, DIAG_BAD_ARGUMENT, n->span, "`most` takes an integer, not %s",
                      value_describe(sema, n));
}

Value call_is_list(Sema *sema, const Call *call) {
    (void)sema;
    return (Value){
        .kind = VALUE_BOOL, .number = call->args[0].kind == VALUE_LIST, .span = call->span};
}

/* kind(value): of which kind a value is, in the words of docs/LANGUAGE.md. */
Value call_kind(Sema *sema, const Call *call) {
    static const char *const kinds[] = {
        [VALUE_TENSOR] = "tensor", [VALUE_INT] = "integer",   [VALUE_FLOAT] = "float",
        [VALUE_BOOL] = "bool",     [VALUE_STRING] = "string", [VALUE_DTYPE] = "dtype",
        [VALUE_LIST] = "list",     [VALUE_NONE] = "none",     [VALUE_FUNCTION] = "function",
    };
    const Value *value = &call->args[0];
    if (value->kind == VALUE_POISON) return *value;
    (void)sema;
    return (Value){.kind = VALUE_STRING, .string = kinds[value->kind], .span = call->span};
}

/* error("..."): an error of the program, for arguments that a def cannot take. */
Value call_error(Sema *sema, const Call *call) {
    const Value *message = &call->args[0];
    if (message->kind == VALUE_STRING) {
        const char *text = sema_fill_text(sema, message->string, call->span, true);
        return text ? sema_error_of_def(sema, call->span, text) : value_poison();
    }
    return sema_error(sema, DIAG_BAD_ARGUMENT, message->span, "`error` takes a string, not %s",
                      value_describe(sema, message));
}

Value call_len(Sema *sema, const Call *call) {
    const Value *xs = &call->args[0];
    if (xs->kind == VALUE_LIST) return value_int(dim_const(sema->dims, xs->n_items), call->span);
    if (xs->kind == VALUE_POISON) return *xs;
    return sema_error(sema, DIAG_BAD_ARGUMENT, xs->span, "`len` counts the items of a list, not %s",
                      value_describe(sema, xs));
}
