/* Reports of errors: at the place in the source, with notes on the calls that led there and on the
 * tensors and dims involved. And the places that nodes get. */
#include "front/prelude.h"
#include "front/sema_state.h"

#include <string.h>

/* Notes the calls and steps that led to the frame, innermost first: a few of them, and the one in
 * the graph. */
static void note_calls(Sema *sema, const Frame *from, const Frame *end) {
    enum { MAX_NOTED = 4 };
    uint32_t n = 0;
    for (const Frame *frame = from; frame != end && frame && frame->caller; n++) {
        bool is_last = frame->caller->caller == NULL;
        const Source *source = frame->caller->source;
        if (n + 1 >= MAX_NOTED && !is_last) {
            frame = frame->caller;
            continue;
        }
        if (frame->def)
            diag_note(sema->diags, source, frame->call_span, "in this call of `%s`",
                      frame->def->name);
        else if (frame->is_repeated)
            diag_note(sema->diags, source, frame->call_span, "in each step %s of this loop",
                      frame->loop->index);
        else
            diag_note(sema->diags, source, frame->call_span, "in the step %s = %lld of this loop",
                      frame->loop->index, (long long)frame->index);
        frame = frame->caller;
    }
}

/* The frame of the program's own call of the prelude that led here; NULL: the current frame is none
 * of the prelude. */
static const Frame *prelude_call(const Sema *sema) {
    const Frame *call = NULL;
    for (const Frame *f = sema->frame; f && prelude_is_source(sema->prelude, f->source);
         f = f->caller)
        call = f;
    return call;
}

/* The name by which the program calls the function, which may be an op's with a form in the
 * prelude. */
static const char *called_name(Sema *sema, const Frame *call) {
    const char *text = call->caller->source->text + call->call_span.begin;
    return str_format(sema->arena, "`%.*s`", (int)strcspn(text, "( \t\r\n#"), text);
}

/* Notes the tensors with which the program calls the function: they are the first values of its
 * frame. */
static void note_arguments(Sema *sema, const Frame *call) {
    Text text = {.arena = sema->arena};
    for (uint32_t i = 0; call->def && i < call->scope.bindings.n && i < call->def->formals.n; i++) {
        const Binding *binding = &call->scope.bindings.data[i];
        if (binding->value.kind != VALUE_TENSOR) continue;
        text_printf(&text, "%s`%s` is %s", text.n_bytes ? ", " : "", binding->name,
                    sema_node_type_str(sema, binding->value.node));
    }
    if (text.n_bytes)
        diag_note(sema->diags, call->caller->source, call->call_span, "%s", text_str(&text));
}

/* Reports an error inside the prelude where the program calls it. Words that the prelude itself has
 * for the error say all of it; of others the arguments and the place in the prelude are notes. */
static void report_in_prelude(Sema *sema, const Frame *call, DiagId id, Span span,
                              const char *message, bool has_own_words) {
    const char *name = called_name(sema, call);
    bool has_name = strncmp(message, name, strlen(name)) == 0;
    diag_report(sema->diags, id, call->caller->source, call->call_span, "%s%s%s",
                has_name ? "" : name, has_name ? "" : ": ", message);
    if (!has_own_words) {
        note_arguments(sema, call);
        diag_note(sema->diags, sema->frame->source, span, "the error is here, in the prelude");
        note_calls(sema, sema->frame, call);
    }
    note_calls(sema, call->caller, NULL);
}

static void report(Sema *sema, DiagId id, Span span, const char *message, bool has_own_words) {
    const Frame *call = prelude_call(sema);
    if (call) {
        report_in_prelude(sema, call, id, span, message, has_own_words);
        return;
    }
    const Source *source = sema->frame ? sema->frame->source : sema->file->source;
    diag_report(sema->diags, id, source, span, "%s", message);
    note_calls(sema, sema->frame, NULL);
}

Value sema_error(Sema *sema, DiagId id, Span span, const char *format, ...) {
    if (sema->diags->n_errors > DIAG_MAX_ERRORS) { /* the diagnostic will not be kept, so its text
                                                    * is not formatted */
        sema->diags->n_errors++;
        return value_poison();
    }
    va_list args;
    va_start(args, format);
    const char *message = str_vformat(sema->arena, format, args);
    va_end(args);
    report(sema, id, span, message, false);
    return value_poison();
}

Value sema_error_of_def(Sema *sema, Span span, const char *message) {
    if (sema->diags->n_errors > DIAG_MAX_ERRORS)
        sema->diags->n_errors++;
    else
        report(sema, DIAG_BAD_ARGUMENT, span, message, true);
    return value_poison();
}

const char *sema_node_type_str(Sema *sema, NodeId id) {
    const Node *node = sema_node(sema, id);
    return shape_type_str(sema->dims, sema->arena, node->dtype, &node->shape);
}

/* Notes `x` is f32[B, 4] at the place where the tensor was made. */
static void note_tensor(Sema *sema, NodeId id) {
    if (sema->diags->n_errors > DIAG_MAX_ERRORS) return;
    const Node *node = sema_node(sema, id);
    const Source *source = sema->builder->graph->source;
    const char *type = sema_node_type_str(sema, id);
    if (node->name)
        diag_note(sema->diags, source, node->span, "`%s` is %s", node->name, type);
    else
        diag_note(sema->diags, source, node->span, "this is %s", type);
}

/* Notes the declarations and ranges of dims; `used` is a bit set of symbols. */
static void note_ranges(Sema *sema, uint64_t used) {
    for (uint32_t i = 0; i < dim_n_symbols(sema->dims); i++) {
        if (!(used >> i & 1)) continue;
        const DimSymbol *info = dim_symbol_info(sema->dims, i);
        const Binding *declared = scope_find(&sema->dim_scope, info->name);
        diag_note(sema->diags, declared ? declared->source : sema->file->source,
                  declared ? declared->span : (Span){0}, "`%s` ranges over %lld..%lld", info->name,
                  (long long)info->lo, (long long)info->hi);
    }
}

static Span place_span(BuildPlace at, Span span, const Value *args) {
    if (!args || !at.arg) return span;
    const Value *arg = &args[at.arg - 1];
    return at.item ? value_item(arg, at.item - 1).span : arg->span;
}

/* Whether the prelude writes a number at the place, and does not get it from the program. */
static bool is_own_number(const Sema *sema, Span at) {
    const char *text = sema->frame->source->text + at.begin;
    return strchr("0123456789.-", *text) || strncmp(text, "inf", 3) == 0;
}

/* A number of the prelude that a dtype of integers lacks: the function takes floats. Each call is
 * told so once. */
static bool reports_integers(Sema *sema, const BuildError *error, Span at) {
    const Frame *call = error->id == DIAG_LITERAL_RANGE ? prelude_call(sema) : NULL;
    if (!call || !dtype_is_int(error->taken_as) || !is_own_number(sema, at)) return false;
    if (memcmp(&sema->refused, &call->call_span, sizeof(Span)) == 0) return true;
    sema->refused = call->call_span;
    const char *name = called_name(sema, call);
    report(sema, DIAG_UNSUPPORTED_DTYPE, at,
           str_format(sema->arena, "%s does not take %s", name, dtype_name(error->taken_as)), true);
    diag_help(sema->diags, "%s computes with floats; use cast(x, f32).", name);
    return true;
}

Value sema_report(Sema *sema, Span span, const Value *args) {
    BuildError error;
    while (build_take_error(sema->builder, &error)) {
        Span at = error.span.end ? error.span : place_span(error.at, span, args);
        if (reports_integers(sema, &error, at)) continue;
        sema_error(sema, error.id, at, "%s", error.message);
        bool is_own = !prelude_call(sema); /* else the tensors may be the prelude's */
        for (uint32_t i = 0; i < error.n_nodes; i++)
            if (is_own || sema_node(sema, error.nodes[i])->name) note_tensor(sema, error.nodes[i]);
        if (error.block)
            diag_note(sema->diags, sema->frame->source,
                      sema->builder->graph->fixed_kernels.data[error.block - 1].span,
                      "the first is here");
        note_ranges(sema, error.symbols);
        if (error.help) diag_help(sema->diags, "%s", error.help);
    }
    sema->stopped = sema->stopped || sema->builder->is_full;
    return value_poison();
}

Span sema_graph_span(const Sema *sema, Span span) {
    for (const Frame *frame = sema->frame; frame; frame = frame->caller) {
        if (frame->source == sema->builder->graph->source) return span;
        span = frame->call_span;
    }
    return span;
}

Builder *sema_at(Sema *sema, Span span) {
    sema->builder->span = sema_graph_span(sema, span);
    sema->builder->call = sema->call;
    return sema->builder;
}

Value sema_made(Sema *sema, Span span, const Value *args, NodeId node) {
    return node == NODE_NONE ? sema_report(sema, span, args) : value_tensor(node, span);
}

/* Calls in the form of other libraries. */
static const struct {
    const char *theirs, *ours;
} forms[] = {
#define FORM(theirs, ours) {theirs, ours},
#include "front/foreign.def"
};

/* The kind of value that an argument of a form stands for. */
static ValueKind form_kind(const char *arg) {
    size_t n = strcspn(arg, ",)");
    if (*arg == '[') return VALUE_LIST;
    if (strncmp(arg, "true", 4) == 0) return VALUE_BOOL;
    if (*arg >= '0' && *arg <= '9') return memchr(arg, '.', n) ? VALUE_FLOAT : VALUE_INT;
    return n == 1 ? VALUE_TENSOR : VALUE_FUNCTION;
}

/* Whether the n arguments of a call, of which some may be absent, are of the kinds of the form. */
static bool has_kinds(const char *theirs, uint32_t n, const Value *args) {
    const char *at = strchr(theirs, '(') + 1;
    uint32_t i = 0;
    for (; i < n && *at; i++) {
        if (form_kind(at) != args[i].kind) return false;
        at += *at == '[' ? strcspn(at, "]") + 1 : strcspn(at, ",)");
        at += strspn(at, ", )");
    }
    while (i < n && args[i].kind == VALUE_ABSENT) i++;
    return i == n && !*at;
}

void sema_help_form(Sema *sema, const char *callee, uint32_t n, const Value *args) {
    size_t n_bytes = strlen(callee);
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
        if (strncmp(forms[i].theirs, callee, n_bytes) == 0 && forms[i].theirs[n_bytes] == '(' &&
            (!args || has_kinds(forms[i].theirs, n, args)))
            diag_help(sema->diags, "What is `%s` elsewhere is `%s` here.", forms[i].theirs,
                      forms[i].ours);
}
