/* The manifest as text, one directive per line. See manifest.h. */
#include "artifact/manifest.h"

#include "artifact/line.h"
#include "plan/launch.h"

#include <frt_manifest.h>
#include <inttypes.h>
#include <stdio.h>

_Static_assert((int)PLAN_MAX_TENSORS <= (int)FRT_MAX_TENSORS, "a plan's tensors have room");

static const char too_many[] = "tensors in one graph";

bool manifest_may_hold(const Plan *plan, Diags *diags) {
    if (plan->buffers.n <= FRT_MAX_TENSORS) return true;
    return line_report_limit(diags, plan->graph->source, plan->graph->span, too_many,
                             FRT_MAX_TENSORS);
}

/* The head. */

static const char *const runtimes[DEVICE_COUNT] = {
#define DEVICE(sym, artifact, runtime, ...) [DEVICE_##sym] = FRT_TARGET_##runtime,
#include "machine/devices.def"
};

static void write_levels(Writer *w) {
    const Target *target = w->input->target;
    for (uint32_t i = 0; target_n_levels(target) > 1 && i < target_n_levels(target); i++) {
        line_begin(w, FRT_D_LEVEL);
        line_word(w, target_level(target, i)->name);
        line_word(w, target_level(target, i)->machine);
        line_end(w);
    }
}

static void write_head(Writer *w) {
    const Target *target = w->input->target;
    const char *source = w->module->source->name, *slash = strrchr(source, '/');
    line_begin(w, FRT_D_ARTIFACT);
    line_int(w, FRT_MANIFEST_VERSION);
    line_end(w);
    line_begin(w, FRT_D_CHECKSUM);
    text_printf(&w->text, " %0*d", FRT_CHECKSUM_DIGITS, 0);
    line_end(w);
    line_begin(w, FRT_D_COMPILER);
    line_word(w, w->input->compiler);
    line_end(w);
    line_begin(w, FRT_D_TARGET);
    line_word(w, runtimes[target->device]);
    line_word(w, target->machine);
    line_end(w);
    write_levels(w);
    line_begin(w, FRT_D_NUMERICS);
    line_word(w, w->input->numerics);
    line_end(w);
    line_begin(w, FRT_X_REWRITES);
    line_word(w, w->input->rewrites ? FRT_REWRITES_ON : FRT_REWRITES_OFF);
    line_end(w);
    line_begin(w, FRT_D_SOURCE);
    line_name(w, slash && slash[1] ? slash + 1 : source); /* without its folder, so that the bytes
                                                           * do not depend on it */
    line_end(w);
    if (!w->module->weights) return;
    line_begin(w, FRT_D_WEIGHTS);
    line_name(w, w->module->weights);
    line_end(w);
}

static void write_dims(Writer *w) {
    for (uint32_t i = 0; i < dim_n_symbols(w->dims); i++) {
        const DimSymbol *symbol = dim_symbol_info(w->dims, i);
        if (symbol->rule) continue;
        line_begin(w, FRT_D_DIM);
        line_name(w, symbol->name);
        line_int(w, symbol->lo);
        line_int(w, symbol->hi);
        line_int(w, symbol->multiple);
        line_end(w);
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
    line_expr(t->w, term->dim);
    text_printf(&t->w->text, ":%" PRId64, term->of);
}

/* The runtime has upper bounds only: dim >= least is written as most - dim <= most - least. */
static void put_range(TermWriter *t, const PredicateTerm *term) {
    int64_t most = term->most < INT64_MAX ? term->most : dim_hi(t->w->dims, term->dim);
    if (term->most < INT64_MAX) {
        begin_term(t, "l:");
        line_expr(t->w, term->dim);
        text_printf(&t->w->text, ":%" PRId64, most);
    }
    if (term->least == INT64_MIN) return;
    begin_term(t, "l:");
    text_printf(&t->w->text, "%" PRId64 ",", most);
    line_expr(t->w, term->dim);
    text_printf(&t->w->text, ",-:%" PRId64, most - term->least);
}

/* The position of argument `arg` of kernel `k` among those of the launch, if the runtime must test
 * its pointer; else NO_ARG. */
static uint32_t open_position(const TermWriter *t, uint32_t k, const PredicateTerm *term,
                              uint32_t arg) {
    if (!t->launch) return term->args >> arg & 1 ? arg : NO_ARG;
    const Kernel *kernel = launch_kernel(t->plan, t->launch, k);
    bool is_open = variant_open_args(t->plan, kernel, term) >> arg & 1;
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
    case TERM_LEVEL:
        begin_term(t, "c:");
        text_puts(&t->w->text, term->level);
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
static const TermKind term_order[] = {TERM_ALIGNED, TERM_LEVEL, TERM_MULTIPLE, TERM_RANGE};
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
    line_escaped(w, buffer->name);
}

/* The store whose slice of the buffer the kernel gets a pointer to; NULL if it gets the whole
 * buffer. */
static const Store *piece_of(const Kernel *kernel, uint32_t arg) {
    return kernel_arg_begin(kernel, arg) ? kernel_find_store(kernel, kernel->args.data[arg]) : NULL;
}

static void put_piece_name(Writer *w, const Buffer *buffer, const Store *store) {
    text_puts(&w->text, ".");
    line_escaped(w, str_format(w->text.arena, "%s.piece%u", buffer->name, store->piece));
}

static void write_piece(Writer *w, const Plan *plan, const Store *store) {
    const Buffer *buffer = &plan->buffers.data[store->buffer];
    line_begin(w, FRT_D_TEMP);
    text_puts(&w->text, " ");
    put_piece_name(w, buffer, store);
    line_int(w, 0);
    line_word(w, dtype_name(buffer->dtype));
    text_puts(&w->text, " ");
    put_buffer_name(w, buffer);
    text_puts(&w->text, ":");
    line_expr(w, dim_mul_const(w->dims, store->begin, dtype_bytes(buffer->dtype)));
    line_shape(w, &graph_node(plan->graph, store->node)->shape);
    line_end(w);
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
    line_escaped(w, str_format(w->text.arena, "%s.part%u", buffer->name, number));
}

static void write_part(Writer *w, const Plan *plan, uint32_t number) {
    const Part *part = &w->parts.data[number];
    const Buffer *buffer = &plan->buffers.data[part->buffer];
    line_begin(w, FRT_D_TEMP);
    text_puts(&w->text, " ");
    put_part_name(w, buffer, number);
    line_int(w, 0);
    line_word(w, dtype_name(buffer->dtype));
    text_puts(&w->text, " ");
    put_buffer_name(w, buffer);
    text_puts(&w->text, ":");
    line_expr(w, dim_mul_const(w->dims, part->begin, dtype_bytes(buffer->dtype)));
    line_dim(w, dim_sub(w->dims, shape_n_elems(w->dims, &buffer->shape), part->begin));
    line_end(w);
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
    line_begin(w, directives[buffer->kind]);
    text_puts(&w->text, " ");
    put_buffer_name(w, buffer);
    line_int(w, 0); /* the device ordinal */
    line_word(w, dtype_name(buffer->dtype));
    if (buffer->kind == BUFFER_TEMP) line_dim(w, buffer->offset_bytes);
    if (buffer->kind == BUFFER_PREPARED) line_word(w, FRT_NONE);
    Shape layout = buffer_layout(buffer);
    line_shape(w, &layout);
    if (buffer->kind == BUFFER_PARAM || buffer->choice) line_word(w, "=");
    if (buffer->kind == BUFFER_PARAM) line_name(w, w->graph->params.data[buffer->ordinal].key);
    if (buffer->choice) line_name(w, plan->buffers.data[buffer->source].name);
    line_end(w);
}

/* The predicates under which no padded copy is made: the rows are aligned already, or the copy
 * would cost more than it saves. */
static void write_pitch(Writer *w, const Plan *plan, const DynamicPitch *pitch) {
    const DimSymbol *symbol = dim_symbol_info(w->dims, pitch->pitch);
    const DimRule *rule = symbol->rule;
    const Buffer *source = &plan->buffers.data[pitch->source];
    line_begin(w, FRT_D_PITCH);
    line_name(w, symbol->name);
    line_name(w, dim_symbol_info(w->dims, pitch->width)->name);
    line_name(w, source->name);
    line_dim(w, rule->extent);
    line_int(w, rule->padded);
    const Condition *copied = &pitch->choice->condition;
    for (uint32_t i = 0; i < copied->n_unless; i++) put_alone(w, &copied->unless[i]);
    line_end(w);
}

/* For human readers: the runtime computes it from the shape. */
static void write_prepared_bytes(Writer *w, const Buffer *buffer) {
    line_begin(w, FRT_X_BYTES);
    text_puts(&w->text, " ");
    put_buffer_name(w, buffer);
    line_dim(w, buffer_bytes(w->dims, buffer));
    line_end(w);
}

static void write_in_place(Writer *w, const Plan *plan) {
    for (uint32_t i = 0; i < plan->buffers.n; i++) {
        const Buffer *buffer = &plan->buffers.data[i];
        uint32_t input = plan_input_in_place(plan, i);
        if (input == NO_BUFFER) continue;
        line_begin(w, FRT_D_IN_PLACE);
        line_name(w, buffer->name);
        line_name(w, plan->buffers.data[input].name);
        line_end(w);
    }
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
        line_fail_limit(w, too_many, FRT_MAX_TENSORS);
    write_in_place(w, plan);
    line_begin(w, FRT_D_WORKSPACE);
    text_puts(&w->text, " ");
    if (plan->workspace.n)
        line_largest(w, plan->workspace.data, plan->workspace.n);
    else
        text_puts(&w->text, "0");
    line_end(w);
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
        line_escaped(w, dim_symbol_info(w->dims, i)->name);
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
    line_dim(w, size);
    text_puts(&w->text, ":");
    line_expr(w, stride);
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
    line_begin(w, FRT_D_MAP);
    line_int(w, position_of(plan, launch, at.kernel, map->arg));
    if (map->is_tf32) text_puts(&w->text, ":" FRT_MAP_TF32);
    line_int(w, map->swizzle_bytes);
    line_dim(w, kernel_map_offset(kernel, map));
    for (uint32_t i = 0; i < map->rank && !map->im2col; i++) {
        DimId size = index_axis_extent(tab, map->axes[i].axis);
        put_map_axis(w, size, map->axes[i].stride, map->axes[i].box);
    }
    if (map->im2col) put_windows(w, map);
    line_end(w);
}

/* GPU: threads of a block. CPU: every call gets a multiple of so many work units. */
static uint32_t block_of(const Writer *w, const Kernel *kernel, const Variant *variant) {
    enum { GROUP_ROWS = 16 };
    if (w->input->target->has->blocks) return variant->sched.threads;
    return kernel_has_groups(kernel, variant) ? GROUP_ROWS : 1;
}

static void put_price(Writer *w, const Price *price) {
    text_puts(&w->text, " " FRT_PRICE ":");
    line_expr(w, price->blocks);
    text_printf(&w->text, ":%" PRId64 ":%" PRId64 ":%" PRId64, price->per_wave, price->percent,
                price->fixed);
    for (uint32_t i = 0; i < price->n_measures; i++)
        text_printf(&w->text, ":%" PRId64, price->weights[i]);
}

/* Writes the measures before the first variant of a group. */
static void write_measures(Writer *w, const Kernel *kernel, uint32_t v) {
    const Price *price = &kernel->variants[v].price;
    if (!price->group || (v && kernel->variants[v - 1].price.group == price->group)) return;
    line_begin(w, FRT_D_MEASURES);
    for (uint32_t i = 0; i < price->n_measures; i++) line_dim(w, price->measures[i]);
    line_end(w);
}

/* Returns whether the variant has no predicate. */
static bool write_variant(Writer *w, const Plan *plan, const Launch *launch, uint32_t v) {
    const Kernel *first = launch_kernel(plan, launch, 0);
    const Variant *variant = &first->variants[v];
    if (!variant->symbol) ice(w->text.arena, "kernel %s is not scheduled", first->name);
    write_measures(w, first, v);
    line_begin(w, FRT_D_VARIANT);
    line_name(w, variant->symbol);
    line_dim(w, launch_grid(plan, launch, v));
    line_int(w, block_of(w, first, variant));
    if (w->input->target->has->blocks) /* the kernel declares its static arrays itself */
        line_int(w, (int64_t)launch_shared_bytes(plan, launch, v) + variant->kept_shared_bytes);
    else
        line_dim(w, launch_worth(w->text.arena, plan, launch, v));
    bool always = put_predicate(w, plan, launch, v);
    if (w->input->target->has_pdl) line_word(w, FRT_WAITS);
    if (variant->is_persistent)
        text_printf(&w->text, " " FRT_RESIDENT ":%u", variant->sched.cluster);
    if (variant->price.group) put_price(w, &variant->price);
    line_end(w);
    LaunchMap maps[MAX_LAUNCH_MAPS];
    uint32_t n_maps = launch_maps(plan, launch, v, maps);
    for (uint32_t i = 0; i < n_maps; i++) write_map(w, plan, launch, v, maps[i]);
    return always;
}

static void put_label(Writer *w, const Launch *launch, Str name) {
    line_name(w, launch->n == 1 ? name : str_format(w->text.arena, "%s+%u", name, launch->n - 1));
}

/* The old value of an update that is made in another buffer. */
static void write_copy(Writer *w, const Plan *plan, const Store *store) {
    const Buffer *from = &plan->buffers.data[store->copied - 1];
    line_begin(w, FRT_D_COPY);
    line_word(w, FRT_PHASE_RUN_NAME);
    text_puts(&w->text, " ");
    put_buffer_name(w, &plan->buffers.data[store->buffer]);
    text_puts(&w->text, " ");
    put_buffer_name(w, from);
    line_dim(w, buffer_bytes(w->dims, from));
    line_end(w);
}

static void write_copies(Writer *w, const Plan *plan, const Kernel *kernel) {
    for (uint32_t i = 0; i < kernel->stages.n; i++)
        for (uint32_t k = 0; k < kernel->stages.data[i].stores.n; k++)
            if (kernel->stages.data[i].stores.data[k].copied)
                write_copy(w, plan, &kernel->stages.data[i].stores.data[k]);
}

static void write_launch(Writer *w, const Plan *plan, const Launch *launch) {
    const Source *source = w->module->source;
    const Kernel *kernel = launch_kernel(plan, launch, 0);
    write_copies(w, plan, kernel); /* a kernel that updates is alone in its launch */
    line_begin(w, FRT_D_LAUNCH);
    line_word(w, kernel->is_init ? FRT_PHASE_INIT_NAME : FRT_PHASE_RUN_NAME);
    line_int(w, kernel->span.end ? source_position(source, kernel->span.begin).line : 0);
    put_label(w, launch, kernel->name);
    put_args(w, plan, launch);
    put_symbols(w, plan, launch);
    line_end(w);
    if (kernel->n_variants == 0) ice(w->text.arena, "kernel %s has no variants", kernel->name);
    for (uint32_t i = 0; i < kernel->n_variants; i++) {
        bool always = write_variant(w, plan, launch, i), is_last = i + 1 == kernel->n_variants;
        if (is_last ? !always : always && kernel->variants[i].n_maps == 0)
            ice(w->text.arena, "variant %u of kernel %s must %sbe conditional", i, kernel->name,
                is_last ? "not " : "");
    }
}

static void write_graph(Writer *w, const Graph *graph, const Plan *plan) {
    w->graph = graph;
    line_begin(w, FRT_D_GRAPH);
    line_name(w, graph->name);
    line_end(w);
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
    if (module->graphs.n > FRT_MAX_GRAPHS) line_fail_limit(&w, "graphs", FRT_MAX_GRAPHS);
    for (uint32_t i = 0; i < module->graphs.n && !w.failed; i++)
        write_graph(&w, module->graphs.data[i], input->plans[i]);
    line_begin(&w, FRT_D_END);
    line_end(&w);
    if (w.n_refs > FRT_MAX_REFS) line_fail_limit(&w, "launch arguments", FRT_MAX_REFS);
    if (w.text.n_bytes > FRT_MAX_TEXT_BYTES)
        line_fail_limit(&w, "bytes in its manifest", FRT_MAX_TEXT_BYTES);
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
