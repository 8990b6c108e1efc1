/* Row kernels that continue a GEMM. See sequence_state.h. */
#include "launch/sequence_state.h"
#include "machine/machine.h"
#include "machine/tuning.h"
#include "plan/launch.h"
#include "template/wgmma.h"
#include "schedule/schedule.h"

#include <string.h>

/* narrower elements are computed in as many registers */
enum { ROW_LEAST_BYTES = 2 };

/* The largest number of columns of the sequence's first GEMM. */
static int64_t most_columns(const Composer *c, const Trial *t) {
    const Kernel *first = sequence_first(t);
    return dim_hi(c->plan->graph->dims, kernel_axis_extent(first, gemm_axis_n(first)));
}

bool sequence_has_rows(const Composer *c, const Trial *t) {
    const Kernel *first = sequence_first(t), *consumer = sequence_consumer(t);
    DimTab *dims = c->plan->graph->dims;
    DimId extent = kernel_axis_extent(first, gemm_axis_n(first));
    return form_info(consumer->form)->reduces_rows && consumer->segment_axis == NO_AXIS &&
           trial_n_kernels(t) == 2 && kernel_n_reduced(consumer) == extent &&
           dim_lo(dims, extent) > 0 &&
           dim_mul(dims, kernel_n_rows(consumer), extent) == kernel_n_rows(first) &&
           most_columns(c, t) <= (c->target->has->cores
                                      ? sched_cpu_gemm_widest_rows(first, c->target)
                                      : sched_gemm_widest_rows(c->plan, first));
}

/* GPU. */

/* A number of which the row length is a multiple where the variant applies. */
static int64_t multiple_of_row(const Trial *t, const Variant *of_first) {
    const Kernel *first = sequence_first(t);
    DimId extent = kernel_axis_extent(first, gemm_axis_n(first));
    int64_t asked = predicate_multiple(&of_first->predicate, extent);
    return asked > 1 ? asked : dim_multiple(t->together.graph->dims, extent);
}

/* The elements of one access of the widest dtype that the consumer loads or stores. */
static uint32_t row_lanes(const Trial *t, const Variant *of_first) {
    const Kernel *consumer = sequence_consumer(t);
    uint32_t widest = ROW_LEAST_BYTES;
    for (uint32_t i = 0; i < consumer->args.n; i++) {
        uint32_t own = dtype_bytes(t->together.buffers.data[consumer->args.data[i]].dtype);
        if (own > widest) widest = own;
    }
    uint32_t lanes = ACCESS_BYTES / widest;
    while (multiple_of_row(t, of_first) % lanes) lanes /= 2;
    return lanes;
}

/* A few threads per row of at most `n` elements, so that a warp has several independent rows at
 * once, but not more rows than exist. */
static uint32_t sequence_threads_per_row(const Sched *first, uint32_t lanes, int64_t n) {
    uint32_t warp_rows = first->gemm.tile_m * WARP_THREADS / first->threads;
    if (template_info(first->template)->uses_copy_engine) warp_rows = WGMMA_EPILOGUE_ROWS;
    uint32_t threads_per_row = warp_rows < WARP_THREADS ? WARP_THREADS / warp_rows : 1;
    if (threads_per_row < LAUNCH_ROWS_THREADS) threads_per_row = LAUNCH_ROWS_THREADS;
    while (threads_per_row < WARP_THREADS && (threads_per_row * LAUNCH_ROWS_ELEMS < n ||
                                              threads_per_row * lanes * LAUNCH_ROWS_STEPS < n))
        threads_per_row *= 2;
    return threads_per_row;
}

/* The row kernel's variant. The last variant must have no conditions on pointers. */
static Variant gpu_row_variant(const Trial *t, const Variant *of_first, bool is_last, int64_t n) {
    const Kernel *consumer = sequence_consumer(t);
    Variant variant = *of_first;
    Sched own = consumer->variants[0].sched;
    own.lanes = row_lanes(t, of_first);
    own.threads = of_first->sched.threads;
    own.row.threads_per_row = sequence_threads_per_row(&of_first->sched, own.lanes, n);
    own.unroll = 1;
    own.row.resident = 1;
    while (own.row.resident * own.row.threads_per_row * own.lanes < n) own.row.resident *= 2;
    own.row.slots = own.row.resident;
    own.is_wide = own.is_wide || of_first->sched.is_wide;
    variant.sched = own;
    variant.shared_bytes = 0;
    variant.n_maps = 0;
    predicate_align(&variant.predicate, ACCESS_BYTES,
                    is_last ? kernel_own_args(&t->together, consumer)
                            : UINT64_MAX >> (64 - consumer->args.n));
    return variant;
}

/* The variant without conditions: rows in one work unit are short enough for it. */
static Variant cpu_row_variant(const Trial *t, const Variant *of_first) {
    const Kernel *consumer = sequence_consumer(t);
    Variant variant = consumer->variants[consumer->n_variants - 1];
    variant.grid = of_first->grid;
    return variant;
}

/* Whether a block of the variant has whole rows. In a cluster that splits k no block has. */
static bool leaves_rows(const Variant *variant, int64_t n) {
    return !template_info(variant->sched.template)->cluster_splits_k &&
           sched_tile(&variant->sched).n >= n;
}

/* Bytes of a row that pass from the launch to the consumer only. */
static uint32_t row_bytes(const Composer *c, const Trial *t) {
    const Kernel *consumer = sequence_consumer(t);
    int64_t bytes = 0;
    for (uint32_t i = 0; i < consumer->args.n; i++) {
        const Buffer *buffer = &c->plan->buffers.data[consumer->args.data[i]];
        Shape layout = buffer_layout(buffer);
        if (launch_stores_to(&t->together, trial_launch(t), consumer->args.data[i]) &&
            trial_is_private(c, t, consumer->args.data[i]))
            bytes += dim_hi(c->plan->graph->dims, layout.dims[layout.rank - 1]) *
                     dtype_bytes(buffer->dtype);
    }
    return bytes <= LAUNCH_ROWS_BYTES ? (uint32_t)bytes : 0;
}

bool sequence_continue_rows(const Composer *c, Trial *t) {
    Kernel *first = sequence_first(t);
    GemmLaunch launch = {.n_gemms = 1, .has_rows = true, .row_bytes = row_bytes(c, t)};
    int64_t n = most_columns(c, t);
    sched_in_launch(c->arena, c->scratch, &t->together, first, launch, c->target);
    if (!leaves_rows(&first->variants[first->n_variants - 1], n)) return false;
    uint32_t kept = 0;
    Variant of_first[MAX_VARIANTS], of_rows[MAX_VARIANTS];
    for (uint32_t v = 0; v < first->n_variants; v++) {
        const Variant *variant = &first->variants[v];
        if (!leaves_rows(variant, n)) continue;
        of_first[kept] = *variant;
        of_rows[kept++] = c->target->has->cores
                              ? cpu_row_variant(t, variant)
                              : gpu_row_variant(t, variant, v + 1 == first->n_variants, n);
    }
    kernel_set_variants(c->scratch, first, of_first, kept);
    kernel_set_variants(c->scratch, sequence_consumer(t), of_rows, kept);
    return true;
}

bool sequence_passes_rows(const Composer *c, const Trial *t) {
    return !c->target->has->blocks || row_bytes(c, t) > 0;
}
