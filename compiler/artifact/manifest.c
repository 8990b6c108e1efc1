/* The manifest as text, one directive per line. See manifest.h. */
#include "artifact/manifest.h"
#include "plan/launch.h"

#include <frt_manifest.h>
#include <inttypes.h>
#include <stdio.h>

/* A part of a buffer that launches get as an argument, in place of the buffer. */
typedef struct Part {
    uint32_t buffer;
    DimId begin; /* elements before it */
} Part;

typedef struct Writer {
    const ManifestInput *input;
    const Module *module;
    DimTab *dims;
    Diags *diags;
    const Graph *graph; /* the graph being written */
    Text text;
    uint32_t n_lines, n_refs;
    size_t line_at;  /* offset of the current line */
    Vec(Part) parts; /* of the graph */
    bool failed;     /* an error has been reported */
} Writer;

static bool report_limit(Diags *diags, const Source *source, Span at, const char *what,
                         uint32_t n) {
    return diag_report(diags, DIAG_LIMIT, source, at, "the artifact would have more than %u %s", n,
                       what);
}

static bool fail_limit(Writer *w, const char *what, uint32_t limit) {
    if (w->failed) return false;
    w->failed = true;
    Span at = w->graph ? w->graph->span : (Span){0};
    return report_limit(w->diags, w->module->source, at, what, limit);
}

_Static_assert((int)PLAN_MAX_TENSORS <= (int)FRT_MAX_TENSORS, "a plan's tensors have room");

static const char too_many[] = "tensors in one graph";

bool manifest_may_hold(const Plan *plan, Diags *diags) {
    if (plan->buffers.n <= FRT_MAX_TENSORS) return true;
    return report_limit(diags, plan->graph->source, plan->graph->span, too_many, FRT_MAX_TENSORS);
}

static void begin_line(Writer *w, const char *directive) {
    w->line_at = w->text.n_bytes;
    text_puts(&w->text, FRT_MANIFEST_PREFIX);
    text_puts(&w->text, directive);
}

static void end_line(Writer *w) {
    if (w->text.n_bytes - w->line_at > FRT_MAX_LINE_BYTES)
        fail_limit(w, "bytes in a line of its manifest", FRT_MAX_LINE_BYTES);
    if (++w->n_lines > FRT_MAX_LINES) fail_limit(w, "manifest lines", FRT_MAX_LINES);
    text_puts(&w->text, "\n");
}

static void put_word(Writer *w, const char *word) {
    text_puts(&w->text, " ");
    text_puts(&w->text, word);
}

static void put_int(Writer *w, int64_t number) {
    text_printf(&w->text, " %" PRId64, number);
}

/* Writes a name by the escape rule, without a leading blank. */
static void put_escaped(Writer *w, const char *name) {
    size_t begin = w->text.n_bytes;
    for (const char *c = name; *c; c++) {
        if (FRT_NAME_BYTE_IS_PLAIN(*c))
            text_add(&w->text, c, 1);
        else
            text_printf(&w->text, "%%%02X", (unsigned)(unsigned char)*c);
    }
    if (w->text.n_bytes - begin > FRT_MAX_NAME_BYTES)
        fail_limit(w, "bytes in an escaped name", FRT_MAX_NAME_BYTES);
}

static void put_name(Writer *w, const char *name) {
    text_puts(&w->text, " ");
    put_escaped(w, name);
}

/* Expressions in postfix notation. */

static void put_token(Writer *w, bool *is_first, const char *token) {
    if (!*is_first) text_puts(&w->text, ",");
    *is_first = false;
    text_puts(&w->text, token);
}

static void put_number(Writer *w, bool *is_first, int64_t number) {
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRId64, number);
    put_token(w, is_first, digits);
}

/* A dim whose name is an operator's gets its first letter escaped. */
static void put_symbol(Writer *w, bool *is_first, uint32_t symbol) {
    Str name = dim_symbol_info(w->dims, symbol)->name;
    put_token(w, is_first, "");
    bool is_operator = strcmp(name, "max") == 0 || strcmp(name, "min") == 0;
    if (is_operator) text_printf(&w->text, "%%%02X", (unsigned)(unsigned char)*name);
    put_escaped(w, name + is_operator);
}

static void put_postfix(Writer *w, bool *is_first, DimId dim);

static void put_term(Writer *w, bool *is_first, DimTerm term) {
    int64_t factor = term.coefficient < 0 ? -term.coefficient : term.coefficient;
    bool is_alone = factor == 1;
    if (!is_alone) put_number(w, is_first, factor);
    for (uint32_t i = 0; i < term.n_atoms; i++) {
        DimAtom atom = dim_atom(w->dims, term.atoms[i]);
        if (atom.is_division) {
            put_postfix(w, is_first, atom.numerator);
            put_postfix(w, is_first, atom.divisor);
            put_token(w, is_first, "/");
        } else {
            const DimRule *rule = dim_symbol_info(w->dims, atom.symbol)->rule;
            if (rule && rule->value != DIM_NONE)
                put_postfix(w, is_first, rule->value);
            else
                put_symbol(w, is_first, atom.symbol);
        }
        if (!is_alone) put_token(w, is_first, "*");
        is_alone = false;
    }
}

/* Positive terms come first and are added, negative ones are subtracted after them, because numbers
 * of the manifest have no sign. */
static void put_postfix(Writer *w, bool *is_first, DimId dim) {
    int64_t constant = dim_constant_part(w->dims, dim);
    bool has_operand = false;
    for (int negative = 0; negative < 2; negative++) {
        for (uint32_t i = 0; i < dim_n_terms(w->dims, dim); i++) {
            DimTerm term = dim_term(w->dims, dim, i);
            if ((term.coefficient < 0) != (negative == 1)) continue;
            put_term(w, is_first, term);
            if (has_operand) put_token(w, is_first, negative ? "-" : "+");
            has_operand = true;
        }
        bool is_due = negative ? constant < 0 : constant > 0 || !has_operand;
        if (!is_due) continue;
        bool starts = !negative && !has_operand;
        put_number(w, is_first, negative ? -constant : starts && constant < 0 ? 0 : constant);
        if (has_operand) put_token(w, is_first, negative ? "-" : "+");
        has_operand = true;
    }
}

/* Writes the maximum of the dims, without a leading blank. */
static void put_largest(Writer *w, const DimId *of, uint32_t n) {
    size_t begin = w->text.n_bytes;
    bool is_first = true;
    for (uint32_t i = 0; i < n; i++) {
        if (of[i] == DIM_NONE) ice(w->text.arena, "an expression of the manifest overflows");
        put_postfix(w, &is_first, of[i]);
        if (i) put_token(w, &is_first, "max");
    }
    uint32_t n_tokens = 1;
    for (size_t i = begin; i < w->text.n_bytes; i++) n_tokens += w->text.data[i] == ',';
    if (n_tokens > FRT_MAX_EXPR_TOKENS)
        fail_limit(w, "terms in an expression", FRT_MAX_EXPR_TOKENS);
}

static void put_expr(Writer *w, DimId dim) {
    put_largest(w, &dim, 1);
}

static void put_dim(Writer *w, DimId dim) {
    text_puts(&w->text, " ");
    put_expr(w, dim);
}

static void put_shape(Writer *w, const Shape *shape) {
    for (uint32_t k = 0; k < shape->rank; k++) put_dim(w, shape->dims[k]);
}

/* The head. */

static const char *const runtimes[DEVICE_COUNT] = {
#define DEVICE(sym, artifact, runtime, ...) [DEVICE_##sym] = FRT_TARGET_##runtime,
#include "machine/devices.def"
};

static void write_head(Writer *w) {
    const Target *target = w->input->target;
    const char *source = w->module->source->name, *slash = strrchr(source, '/');
    begin_line(w, FRT_D_ARTIFACT);
    put_int(w, FRT_MANIFEST_VERSION);
    end_line(w);
    begin_line(w, FRT_D_CHECKSUM);
    text_printf(&w->text, " %0*d", FRT_CHECKSUM_DIGITS, 0);
    end_line(w);
    begin_line(w, FRT_D_COMPILER);
    put_word(w, w->input->compiler);
    end_line(w);
    begin_line(w, FRT_D_TARGET);
    put_word(w, runtimes[target->device]);
    put_word(w, target->machine);
    end_line(w);
    begin_line(w, FRT_D_NUMERICS);
    put_word(w, w->input->numerics);
    end_line(w);
    begin_line(w, FRT_X_REWRITES);
    put_word(w, w->input->rewrites ? FRT_REWRITES_ON : FRT_REWRITES_OFF);
    end_line(w);
    begin_line(w, FRT_D_SOURCE);
    put_name(w, slash && slash[1] ? slash + 1 : source); /* without its folder, so that the bytes do
                                                          * not depend on it */
    end_line(w);
    if (!w->module->weights) return;
    begin_line(w, FRT_D_WEIGHTS);
    put_name(w, w->module->weights);
    end_line(w);
}

static void write_dims(Writer *w) {
    for (uint32_t i = 0; i < dim_n_symbols(w->dims); i++) {
        const DimSymbol *symbol = dim_symbol_info(w->dims, i);
        if (symbol->rule) continue;
        begin_line(w, FRT_D_DIM);
        put_name(w, symbol->name);
        put_int(w, symbol->lo);
        put_int(w, symbol->hi);
        put_int(w, symbol->multiple);
        end_line(w);
    }
}

/* Predicates. */

/* The position of argument `arg` of kernel `k` among the arguments of the launch. */
static uint32_t position_of(const Plan *plan, const Launch *launch, uint32_t k, uint32_t arg) {
    uint32_t position = 0;
    for (uint32_t i = 0; i <= k; i++)
        for (uint32_t a = 0; a < (i < k ? launch_kernel(plan, launch, i)->args.n : arg); a++)
            position += plan->buffers.data[launch_kernel(plan, launch, i)->args.data[a]].space ==
                        BUFFER_GLOBAL;
    return position;
}

/* A predicate whose terms are written one by one, joined by `&`. */
typedef struct TermWriter {
    Writer *w;
    const Plan *plan;
    const Launch *launch; /* NULL: the predicate is not a launch's, and arguments keep their
                           * numbers */
    bool is_first;
} TermWriter;

static void begin_term(TermWriter *t, const char *what) {
    text_printf(&t->w->text, "%s%s", t->is_first ? "" : "&", what);
    t->is_first = false;
}

static void put_multiple(TermWriter *t, const PredicateTerm *term) {
    begin_term(t, "m:");
    put_expr(t->w, term->dim);
    text_printf(&t->w->text, ":%" PRId64, term->of);
}

/* The runtime has upper bounds only: dim >= least is written as most - dim <= most - least. */
static void put_range(TermWriter *t, const PredicateTerm *term) {
    int64_t most = term->most < INT64_MAX ? term->most : dim_hi(t->w->dims, term->dim);
    if (term->most < INT64_MAX) {
        begin_term(t, "l:");
        put_expr(t->w, term->dim);
        text_printf(&t->w->text, ":%" PRId64, most);
    }
    if (term->least == INT64_MIN) return;
    begin_term(t, "l:");
    text_printf(&t->w->text, "%" PRId64 ",", most);
    put_expr(t->w, term->dim);
    text_printf(&t->w->text, ",-:%" PRId64, most - term->least);
}

/* The position of argument `arg` of kernel `k` among those of the launch, if the runtime must test
 * its pointer; else NO_ARG. */
static uint32_t open_position(const TermWriter *t, uint32_t k, const PredicateTerm *term,
                              uint32_t arg) {
    if (!t->launch) return term->args >> arg & 1 ? arg : NO_ARG;
    const Kernel *kernel = launch_kernel(t->plan, t->launch, k);
    bool is_open = arg < kernel->args.n && (variant_open_args(t->plan, kernel, term) >> arg & 1) &&
                   t->plan->buffers.data[kernel->args.data[arg]].space == BUFFER_GLOBAL;
    return is_open ? position_of(t->plan, t->launch, k, arg) : NO_ARG;
}

static void put_alignment(TermWriter *t, uint32_t k, const PredicateTerm *term) {
    for (uint32_t i = 0; i < MAX_KERNEL_ARGS; i++) {
        uint32_t position = open_position(t, k, term, i);
        if (position == NO_ARG) continue;
        begin_term(t, "a");
        text_printf(&t->w->text, "%u:%" PRId64, position, term->of);
    }
}

static void put_predicate_term(TermWriter *t, uint32_t k, const PredicateTerm *term) {
    switch (term->kind) {
    case TERM_ALIGNED:
        put_alignment(t, k, term);
        return;
    case TERM_MULTIPLE:
        put_multiple(t, term);
        return;
    case TERM_RANGE:
        put_range(t, term);
        return;
    }
}

/* The manifest's order of the kinds of terms. */
static const TermKind term_order[] = {TERM_ALIGNED, TERM_MULTIPLE, TERM_RANGE};
_Static_assert(sizeof term_order / sizeof *term_order == N_TERM_KINDS,
               "each kind of term has its place in the manifest");

/* Writes a predicate that belongs to no launch. */
static void put_alone(Writer *w, const Predicate *predicate) {
    TermWriter t = {.w = w, .is_first = true};
    const PredicateTerm *term;
    text_puts(&w->text, " ");
    for (uint32_t i = 0; i < N_TERM_KINDS; i++)
        for (uint32_t n = 0; (term = predicate_term(predicate, term_order[i], n)); n++)
            put_predicate_term(&t, 0, term);
}

/* Buffers. */

static void put_buffer_name(Writer *w, const Buffer *buffer) {
    if (buffer->kind == BUFFER_TEMP || buffer->kind == BUFFER_PREPARED) text_puts(&w->text, ".");
    put_escaped(w, buffer->name);
}

/* The store whose slice of the buffer the kernel gets a pointer to; NULL if it gets the whole
 * buffer. */
static const Store *piece_of(const Kernel *kernel, uint32_t arg) {
    return kernel_arg_begin(kernel, arg) ? kernel_find_store(kernel, kernel->args.data[arg]) : NULL;
}

static void put_piece_name(Writer *w, const Buffer *buffer, const Store *store) {
    text_puts(&w->text, ".");
    put_escaped(w, str_format(w->text.arena, "%s.piece%u", buffer->name, store->piece));
}

static void write_piece(Writer *w, const Plan *plan, const Store *store) {
    const Buffer *buffer = &plan->buffers.data[store->buffer];
    begin_line(w, FRT_D_TEMP);
    text_puts(&w->text, " ");
    put_piece_name(w, buffer, store);
    put_int(w, 0);
    put_word(w, dtype_name(buffer->dtype));
    text_puts(&w->text, " ");
    put_buffer_name(w, buffer);
    text_puts(&w->text, ":");
    put_expr(w, dim_mul_const(w->dims, store->begin, dtype_bytes(buffer->dtype)));
    put_shape(w, &graph_node(plan->graph, store->node)->shape);
    end_line(w);
}

/* Returns the number of slices. */
static uint32_t write_pieces(Writer *w, const Plan *plan) {
    uint32_t n = 0;
    for (uint32_t k = 0; k < plan->kernels.n; k++)
        for (uint32_t i = 0; i < plan->kernels.data[k].args.n; i++) {
            const Store *store = piece_of(&plan->kernels.data[k], i);
            if (!store || plan->buffers.data[store->buffer].space != BUFFER_GLOBAL) continue;
            write_piece(w, plan, store);
            n++;
        }
    return n;
}

/* The number of the part that argument `arg` is, which is added if it is new. */
static uint32_t part_number(Writer *w, const Kernel *kernel, uint32_t arg) {
    const Part part = {kernel->args.data[arg], kernel_part_begin(kernel, arg)};
    for (uint32_t i = 0; i < w->parts.n; i++)
        if (w->parts.data[i].buffer == part.buffer && w->parts.data[i].begin == part.begin)
            return i;
    vec_push(w->text.arena, &w->parts, part);
    return w->parts.n - 1;
}

static void put_part_name(Writer *w, const Buffer *buffer, uint32_t number) {
    text_puts(&w->text, ".");
    put_escaped(w, str_format(w->text.arena, "%s.part%u", buffer->name, number));
}

static void write_part(Writer *w, const Plan *plan, uint32_t number) {
    const Part *part = &w->parts.data[number];
    const Buffer *buffer = &plan->buffers.data[part->buffer];
    begin_line(w, FRT_D_TEMP);
    text_puts(&w->text, " ");
    put_part_name(w, buffer, number);
    put_int(w, 0);
    put_word(w, dtype_name(buffer->dtype));
    text_puts(&w->text, " ");
    put_buffer_name(w, buffer);
    text_puts(&w->text, ":");
    put_expr(w, dim_mul_const(w->dims, part->begin, dtype_bytes(buffer->dtype)));
    put_dim(w, dim_sub(w->dims, shape_n_elems(w->dims, &buffer->shape), part->begin));
    end_line(w);
}

/* Returns the number of parts. */
static uint32_t write_parts(Writer *w, const Plan *plan) {
    w->parts.n = 0;
    for (uint32_t k = 0; k < plan->kernels.n; k++)
        for (uint32_t i = 0; i < plan->kernels.data[k].args.n; i++)
            if (kernel_part_begin(&plan->kernels.data[k], i))
                part_number(w, &plan->kernels.data[k], i);
    for (uint32_t i = 0; i < w->parts.n; i++) write_part(w, plan, i);
    return w->parts.n;
}

static void write_buffer(Writer *w, const Plan *plan, const Buffer *buffer) {
    static const char *const directives[] = {[BUFFER_INPUT] = FRT_D_INPUT,
                                             [BUFFER_PARAM] = FRT_D_PARAM,
                                             [BUFFER_OUTPUT] = FRT_D_OUTPUT,
                                             [BUFFER_TEMP] = FRT_D_TEMP,
                                             [BUFFER_PREPARED] = FRT_D_TEMP};
    begin_line(w, directives[buffer->kind]);
    text_puts(&w->text, " ");
    put_buffer_name(w, buffer);
    put_int(w, 0); /* the device ordinal */
    put_word(w, dtype_name(buffer->dtype));
    if (buffer->kind == BUFFER_TEMP) put_dim(w, buffer->offset_bytes);
    if (buffer->kind == BUFFER_PREPARED) put_word(w, FRT_NONE);
    Shape layout = buffer_layout(buffer);
    put_shape(w, &layout);
    if (buffer->kind == BUFFER_PARAM || buffer->choice) put_word(w, "=");
    if (buffer->kind == BUFFER_PARAM) put_name(w, w->graph->params.data[buffer->ordinal].key);
    if (buffer->choice) put_name(w, plan->buffers.data[buffer->source].name);
    end_line(w);
}

/* The predicates under which no padded copy is made: the rows are aligned already, or the copy
 * would cost more than it saves. */
static void write_pitch(Writer *w, const Plan *plan, const DynamicPitch *pitch) {
    const DimSymbol *symbol = dim_symbol_info(w->dims, pitch->pitch);
    const DimRule *rule = symbol->rule;
    const Buffer *source = &plan->buffers.data[pitch->source];
    begin_line(w, FRT_D_PITCH);
    put_name(w, symbol->name);
    put_name(w, dim_symbol_info(w->dims, pitch->width)->name);
    put_name(w, source->name);
    put_dim(w, rule->extent);
    put_int(w, rule->padded);
    const Condition *copied = &pitch->choice->condition;
    for (uint32_t i = 0; i < copied->n_unless; i++) put_alone(w, &copied->unless[i]);
    end_line(w);
}

/* For human readers: the runtime computes it from the shape. */
static void write_prepared_bytes(Writer *w, const Buffer *buffer) {
    begin_line(w, FRT_X_BYTES);
    text_puts(&w->text, " ");
    put_buffer_name(w, buffer);
    put_dim(w, buffer_bytes(w->dims, buffer));
    end_line(w);
}

static void write_buffers(Writer *w, const Plan *plan) {
    for (int made = 0; made < 2; made++) {
        for (uint32_t i = 0; made && i < plan->dynamic_pitches.n; i++)
            write_pitch(w, plan, &plan->dynamic_pitches.data[i]);
        for (uint32_t i = 0; i < plan->buffers.n; i++) {
            const Buffer *buffer = &plan->buffers.data[i];
            bool is_made = buffer->kind == BUFFER_TEMP || buffer->kind == BUFFER_PREPARED;
            if (buffer->space != BUFFER_GLOBAL || is_made != (made == 1)) continue;
            write_buffer(w, plan, buffer);
            if (buffer->kind == BUFFER_PREPARED) write_prepared_bytes(w, buffer);
        }
    }
    uint32_t n_pieces = write_pieces(w, plan), n_parts = write_parts(w, plan);
    if (plan->buffers.n + n_pieces + n_parts > FRT_MAX_TENSORS)
        fail_limit(w, too_many, FRT_MAX_TENSORS);
    begin_line(w, FRT_D_WORKSPACE);
    text_puts(&w->text, " ");
    if (plan->workspace.n)
        put_largest(w, plan->workspace.data, plan->workspace.n);
    else
        text_puts(&w->text, "0");
    end_line(w);
}

/* Launches. */

static void put_arg(Writer *w, const Plan *plan, const Kernel *kernel, uint32_t i) {
    const Buffer *buffer = &plan->buffers.data[kernel->args.data[i]];
    const Store *piece = piece_of(kernel, i);
    if (piece)
        put_piece_name(w, buffer, piece);
    else if (kernel_part_begin(kernel, i))
        put_part_name(w, buffer, part_number(w, kernel, i));
    else
        put_buffer_name(w, buffer);
}

static void put_args(Writer *w, const Plan *plan, const Launch *launch) {
    uint32_t n = 0;
    text_puts(&w->text, " ");
    for (uint32_t k = 0; k < launch->n; k++)
        for (uint32_t i = 0; i < launch_kernel(plan, launch, k)->args.n; i++) {
            const Kernel *kernel = launch_kernel(plan, launch, k);
            if (plan->buffers.data[kernel->args.data[i]].space != BUFFER_GLOBAL) continue;
            if (n++) text_puts(&w->text, ",");
            put_arg(w, plan, kernel, i);
        }
    if (n == 0) text_puts(&w->text, FRT_NONE);
    w->n_refs += n;
    if (n > FRT_MAX_ARGS)
        ice(w->text.arena, "kernel %s has %u arguments", launch_kernel(plan, launch, 0)->name, n);
}

static void put_symbols(Writer *w, const Plan *plan, const Launch *launch) {
    text_puts(&w->text, " ");
    bool is_first = true;
    for (uint32_t i = 0; i < dim_n_symbols(w->dims); i++) {
        if (!(launch_symbols(plan, launch) >> i & 1)) continue;
        if (!is_first) text_puts(&w->text, ",");
        is_first = false;
        put_escaped(w, dim_symbol_info(w->dims, i)->name);
        w->n_refs++;
    }
    if (is_first) text_puts(&w->text, FRT_NONE);
}

/* Whether an earlier kernel of the launch has the same term, so that it is written once. */
static bool is_put_already(const TermWriter *t, uint32_t k, uint32_t v, uint32_t n,
                           const PredicateTerm *term) {
    for (uint32_t i = 0; i < k && term->kind != TERM_ALIGNED; i++) {
        const PredicateTerm *other = predicate_term(
            &launch_kernel(t->plan, t->launch, i)->variants[v].predicate, term->kind, n);
        if (other && predicate_terms_are_equal(other, term)) return true;
    }
    return false;
}

/* Writes the terms of one kind of kernel `k` of the launch. */
static void put_terms(TermWriter *t, uint32_t k, uint32_t v, TermKind kind) {
    const Predicate *predicate = &launch_kernel(t->plan, t->launch, k)->variants[v].predicate;
    const PredicateTerm *term;
    for (uint32_t n = 0; (term = predicate_term(predicate, kind, n)); n++)
        if (!is_put_already(t, k, v, n, term)) put_predicate_term(t, k, term);
}

/* Writes the predicate of variant `v`, the conjunction of those of all kernels of the launch: first
 * the terms on pointers, then kernel by kernel those on extents. Returns whether it is empty. */
static bool put_predicate(Writer *w, const Plan *plan, const Launch *launch, uint32_t v) {
    TermWriter t = {.w = w, .plan = plan, .launch = launch, .is_first = true};
    text_puts(&w->text, " ");
    for (uint32_t k = 0; k < launch->n; k++) put_terms(&t, k, v, term_order[0]);
    for (uint32_t k = 0; k < launch->n; k++)
        for (uint32_t i = 1; i < N_TERM_KINDS; i++) put_terms(&t, k, v, term_order[i]);
    if (t.is_first) text_puts(&w->text, FRT_NONE);
    return t.is_first;
}

static void put_map_axis(Writer *w, DimId size, DimId stride, uint32_t box) {
    put_dim(w, size);
    text_puts(&w->text, ":");
    put_expr(w, stride);
    text_printf(&w->text, ":%u", box);
}

static void put_windows(Writer *w, const TensorMap *map) {
    const Im2col *windows = map->im2col;
    put_map_axis(w, dim_const(w->dims, windows->n_channels), map->axes[0].stride, map->axes[0].box);
    for (uint32_t i = 0; i < windows->n_spatial; i++) {
        const Im2colAxis *axis = &windows->axes[i];
        text_printf(&w->text, " %" PRId64 ":%" PRId64 ":%" PRId64 ":%" PRId64 ":%" PRId64,
                    axis->size, axis->stride, axis->lower, im2col_upper(axis), axis->step);
    }
    put_map_axis(w, windows->n_images, dim_const(w->dims, windows->image_stride), map->axes[1].box);
}

static void write_map(Writer *w, const Plan *plan, const Launch *launch, uint32_t v, LaunchMap at) {
    const Kernel *kernel = launch_kernel(plan, launch, at.kernel);
    const TensorMap *map = &kernel->variants[v].maps[at.map];
    const IndexTab *tab = scalartab_indices(kernel->scalars);
    begin_line(w, FRT_D_MAP);
    put_int(w, position_of(plan, launch, at.kernel, map->arg));
    if (map->is_tf32) text_puts(&w->text, ":" FRT_MAP_TF32);
    put_int(w, map->swizzle_bytes);
    put_dim(w, kernel_map_offset(kernel, map));
    for (uint32_t i = 0; i < map->rank && !map->im2col; i++) {
        DimId size = index_axis_extent(tab, map->axes[i].axis);
        put_map_axis(w, size, map->axes[i].stride, map->axes[i].box);
    }
    if (map->im2col) put_windows(w, map);
    end_line(w);
}

/* GPU: threads of a block. CPU: the work units that are worth a call; every call gets a multiple of
 * them. */
static uint32_t block_of(const Writer *w, const Kernel *kernel, const Variant *variant) {
    enum { GROUP_ROWS = 16 };
    if (w->input->target->has->blocks) return variant->sched.threads;
    return kernel_has_groups(kernel, variant) ? GROUP_ROWS : 1;
}

static void put_price(Writer *w, const Price *price) {
    text_puts(&w->text, " " FRT_PRICE ":");
    put_expr(w, price->blocks);
    text_printf(&w->text, ":%" PRId64 ":%" PRId64 ":%" PRId64, price->per_wave, price->percent,
                price->fixed);
    for (uint32_t i = 0; i < price->n_measures; i++)
        text_printf(&w->text, ":%" PRId64, price->weights[i]);
}

/* Writes the measures before the first variant of a group. */
static void write_measures(Writer *w, const Kernel *kernel, uint32_t v) {
    const Price *price = &kernel->variants[v].price;
    if (!price->group || (v && kernel->variants[v - 1].price.group == price->group)) return;
    begin_line(w, FRT_D_MEASURES);
    for (uint32_t i = 0; i < price->n_measures; i++) put_dim(w, price->measures[i]);
    end_line(w);
}

/* Returns whether the variant has no predicate. */
static bool write_variant(Writer *w, const Plan *plan, const Launch *launch, uint32_t v) {
    const Kernel *first = launch_kernel(plan, launch, 0);
    const Variant *variant = &first->variants[v];
    if (!variant->symbol) ice(w->text.arena, "kernel %s is not scheduled", first->name);
    write_measures(w, first, v);
    begin_line(w, FRT_D_VARIANT);
    put_name(w, variant->symbol);
    put_dim(w, launch_grid(plan, launch, v));
    put_int(w, block_of(w, first, variant));
    /* Dynamic shared memory; the kernel declares its static arrays itself. */
    put_int(w, (int64_t)launch_shared_bytes(plan, launch, v) + variant->kept_shared_bytes);
    bool always = put_predicate(w, plan, launch, v);
    if (w->input->target->has_pdl) put_word(w, FRT_WAITS);
    if (variant->is_persistent)
        text_printf(&w->text, " " FRT_RESIDENT ":%u", variant->sched.cluster);
    if (variant->price.group) put_price(w, &variant->price);
    end_line(w);
    LaunchMap maps[MAX_LAUNCH_MAPS];
    uint32_t n_maps = launch_maps(plan, launch, v, maps);
    for (uint32_t i = 0; i < n_maps; i++) write_map(w, plan, launch, v, maps[i]);
    return always;
}

static void put_label(Writer *w, const Launch *launch, Str name) {
    put_name(w, launch->n == 1 ? name : str_format(w->text.arena, "%s+%u", name, launch->n - 1));
}

static void write_rewrites(Writer *w, const Launch *launch) {
    if (!launch->online_softmax.weight) return;
    begin_line(w, FRT_X_REWRITE);
    put_word(w, ONLINE_NAME);
    end_line(w);
}

static void write_launch(Writer *w, const Plan *plan, const Launch *launch) {
    const Source *source = w->module->source;
    const Kernel *kernel = launch_kernel(plan, launch, 0);
    begin_line(w, FRT_D_LAUNCH);
    put_word(w, kernel->is_init ? FRT_PHASE_INIT_NAME : FRT_PHASE_RUN_NAME);
    put_int(w, kernel->span.end ? source_position(source, kernel->span.begin).line : 0);
    put_label(w, launch, kernel->name);
    put_args(w, plan, launch);
    put_symbols(w, plan, launch);
    end_line(w);
    if (kernel->n_variants == 0) ice(w->text.arena, "kernel %s has no variants", kernel->name);
    for (uint32_t i = 0; i < kernel->n_variants; i++) {
        bool always = write_variant(w, plan, launch, i), is_last = i + 1 == kernel->n_variants;
        if (is_last ? !always : always && kernel->variants[i].n_maps == 0)
            ice(w->text.arena, "variant %u of kernel %s must %sbe conditional", i, kernel->name,
                is_last ? "not " : "");
    }
    write_rewrites(w, launch);
}

static void write_graph(Writer *w, const Graph *graph, const Plan *plan) {
    w->graph = graph;
    begin_line(w, FRT_D_GRAPH);
    put_name(w, graph->name);
    end_line(w);
    write_buffers(w, plan);
    for (uint32_t i = 0; i < plan->launches.n && !w->failed; i++)
        write_launch(w, plan, &plan->launches.data[i]);
    w->graph = NULL;
}

const char *manifest_text(Arena *arena, const ManifestInput *input, Diags *diags) {
    const Module *module = input->module;
    Writer w = {.input = input,
                .module = module,
                .dims = module->dims,
                .diags = diags,
                .text = {.arena = arena}};
    write_head(&w);
    write_dims(&w);
    if (module->graphs.n > FRT_MAX_GRAPHS) fail_limit(&w, "graphs", FRT_MAX_GRAPHS);
    for (uint32_t i = 0; i < module->graphs.n && !w.failed; i++)
        write_graph(&w, module->graphs.data[i], input->plans[i]);
    begin_line(&w, FRT_D_END);
    end_line(&w);
    if (w.n_refs > FRT_MAX_REFS) fail_limit(&w, "launch arguments", FRT_MAX_REFS);
    if (w.text.n_bytes > FRT_MAX_TEXT_BYTES)
        fail_limit(&w, "bytes in its manifest", FRT_MAX_TEXT_BYTES);
    return w.failed ? NULL : text_str(&w.text);
}

/* The checksum. */

static uint32_t crc32c(const char *bytes, size_t n_bytes) {
    uint32_t table[256];
    for (uint32_t i = 0; i < 256; i++) {
        table[i] = i;
        for (int bit = 0; bit < 8; bit++)
            table[i] = table[i] >> 1 ^ (table[i] & 1 ? 0x82F63B78u : 0);
    }
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < n_bytes; i++)
        crc = crc >> 8 ^ table[(crc ^ (unsigned char)bytes[i]) & 255];
    return ~crc;
}

/* The first occurrence of `needle` at or after `from`; NULL: there is none. */
static char *find(char *bytes, size_t n_bytes, const char *needle, char *from) {
    size_t n = strlen(needle);
    for (char *end = bytes + n_bytes; (size_t)(end - from) >= n; from++) {
        from = memchr(from, needle[0], (size_t)(end - from));
        if (!from || (size_t)(end - from) < n) return NULL;
        if (memcmp(from, needle, n) == 0) return from;
    }
    return NULL;
}

bool manifest_seal(char *artifact, size_t n_bytes) {
    char head[128];
    int n_head = snprintf(head, sizeof head, "%s%s %d\n%s%s ", FRT_MANIFEST_PREFIX, FRT_D_ARTIFACT,
                          FRT_MANIFEST_VERSION, FRT_MANIFEST_PREFIX, FRT_D_CHECKSUM);
    char *at = find(artifact, n_bytes, head, artifact);
    if (!at || (size_t)(artifact + n_bytes - at) < (size_t)n_head + FRT_CHECKSUM_DIGITS)
        return false;
    if (find(artifact, n_bytes, head, at + 1)) return false;
    char *digits = at + n_head;
    memset(digits, '0', FRT_CHECKSUM_DIGITS);
    uint32_t crc = crc32c(artifact, n_bytes);
    for (int i = 0; i < FRT_CHECKSUM_DIGITS; i++)
        digits[i] = "0123456789abcdef"[crc >> (28 - 4 * i) & 15];
    return true;
}
