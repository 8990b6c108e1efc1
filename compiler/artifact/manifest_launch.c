/* Launches: their arguments, variants, tensor maps and prices. See manifest_writer.h. */
#include "artifact/manifest_writer.h"
#include "plan/launch.h"

#include <frt_manifest.h>
#include <inttypes.h>
#include <string.h>

_Static_assert((int)MAX_LAUNCH_GIVEN <= (int)FRT_MAX_NUMBERS, "a launch's constants have room");

static void put_arg(Writer *w, const Plan *plan, const Kernel *kernel, uint32_t i) {
    const Buffer *buffer = &plan->buffers.data[kernel->args.data[i]];
    const Store *piece = manifest_piece_of(kernel, i);
    if (piece)
        manifest_put_piece_name(w, buffer, piece);
    else if (kernel_part_begin(kernel, i))
        manifest_put_part_name(w, buffer, manifest_part_number(w, kernel, i));
    else
        manifest_put_buffer_name(w, buffer);
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

/* The bits of a constant that a launch gives. */
static uint64_t bits_of(const Scalar *constant) {
    float number = (float)constant->number;
    uint64_t bits = (uint64_t)constant->whole;
    uint32_t low = (uint32_t)bits;
    if (dtype_is_double(constant->dtype)) memcpy(&bits, &constant->number, sizeof bits);
    if (dtype_is_single(constant->dtype)) memcpy(&low, &number, sizeof low);
    return dtype_bytes(constant->dtype) == 8 ? bits : low;
}

/* The dims of the launch, and the constants of its kernels. */
static void put_numbers(Writer *w, const Plan *plan, const Launch *launch) {
    uint32_t n = 0;
    text_puts(&w->text, " ");
    for (uint32_t i = 0; i < dim_n_symbols(w->dims); i++) {
        if (!(launch_symbols(plan, launch) >> i & 1)) continue;
        if (n++) text_puts(&w->text, ",");
        line_escaped(w, dim_symbol_info(w->dims, i)->name);
    }
    for (uint32_t k = 0; k < launch->n; k++) {
        const Kernel *kernel = launch_kernel(plan, launch, k);
        for (uint32_t i = 0; i < kernel_n_given(kernel); i++) {
            const Scalar *constant = scalar_get(kernel->scalars, kernel->parts->constants.data[i]);
            text_printf(&w->text, "%s0x%" PRIx64, n++ ? "," : "", bits_of(constant));
        }
    }
    w->n_refs += n;
    if (n == 0) text_puts(&w->text, FRT_NONE);
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
    line_int(w, manifest_position_of(plan, launch, at.kernel, map->arg));
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
    bool always = manifest_put_predicate(w, plan, launch, v);
    if (w->input->target->has_pdl) line_word(w, FRT_WAITS);
    if (variant->is_persistent) {
        text_printf(&w->text, " " FRT_RESIDENT ":%u", variant->sched.cluster);
        if (variant->sched.min_blocks > 1) text_printf(&w->text, ":%u", variant->sched.min_blocks);
    }
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
    manifest_put_buffer_name(w, &plan->buffers.data[store->buffer]);
    text_puts(&w->text, " ");
    manifest_put_buffer_name(w, from);
    line_dim(w, buffer_bytes(w->dims, from));
    line_end(w);
}

static void write_copies(Writer *w, const Plan *plan, const Kernel *kernel) {
    for (uint32_t i = 0; i < kernel->stages.n; i++)
        for (uint32_t k = 0; k < kernel->stages.data[i].stores.n; k++)
            if (kernel->stages.data[i].stores.data[k].copied)
                write_copy(w, plan, &kernel->stages.data[i].stores.data[k]);
}

void manifest_write_launch(Writer *w, const Plan *plan, const Launch *launch) {
    const Source *source = w->module->source;
    const Kernel *kernel = launch_kernel(plan, launch, 0);
    write_copies(w, plan, kernel); /* a kernel that updates is alone in its launch */
    line_begin(w, FRT_D_LAUNCH);
    line_word(w, kernel->is_init ? FRT_PHASE_INIT_NAME : FRT_PHASE_RUN_NAME);
    line_int(w, kernel->span.end ? source_position(source, kernel->span.begin).line : 0);
    put_label(w, launch, kernel->name);
    put_args(w, plan, launch);
    put_numbers(w, plan, launch);
    line_end(w);
    if (kernel->n_variants == 0) ice(w->text.arena, "kernel %s has no variants", kernel->name);
    for (uint32_t i = 0; i < kernel->n_variants; i++) {
        bool always = write_variant(w, plan, launch, i), is_last = i + 1 == kernel->n_variants;
        if (is_last ? !always : always && kernel->variants[i].n_maps == 0)
            ice(w->text.arena, "variant %u of kernel %s must %sbe conditional", i, kernel->name,
                is_last ? "not " : "");
    }
}
