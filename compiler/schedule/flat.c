/* Flat schedules of maps (template/flat.h): which maps they are for. See scheduler.h. */
#include "cost/pressure.h"
#include "machine/tuning.h"
#include "schedule/scheduler.h"
#include "template/flat.h"

/* The accesses of a map with vectors in the order of its elements. */
typedef struct FlatUse {
    bool may;           /* it can be flat, and is not slower for it */
    bool has_others;    /* some loads go element by element */
    uint64_t wide_args; /* bit set of Kernel.args whose vectors are aligned if the tensor is */
} FlatUse;

/* Whether neighbouring threads read elements far apart. Then neighbours should be one element apart
 * along the last axis, not a vector apart. */
static bool is_strided(const Kernel *kernel, IndexId index) {
    const IndexTab *tab = scalartab_indices(kernel->scalars);
    DimId stride;
    return index_stride(tab, index, kernel->n_parallel - 1, &stride) && stride != DIM_NONE &&
           !dim_equals_const(indextab_dims(tab), stride, 1);
}

static void note_wide(const Kernel *kernel, uint32_t buffer, DimId offset, uint32_t lanes,
                      FlatUse *use) {
    const DimTab *dims = indextab_dims(scalartab_indices(kernel->scalars));
    if (dim_multiple(dims, offset) % lanes) return;
    use->wide_args |= (uint64_t)1 << kernel_find_arg(kernel, buffer);
}

/* A flat map needs all stores in order, and at least half of the accesses. The others take as many
 * accesses as before, each touching more lines. */
static FlatUse use_of(Arena *arena, const Kernel *kernel, uint32_t lanes) {
    const bool *live = kernel_live_scalars(arena, kernel);
    const Stage *stage = &kernel->stages.data[0];
    uint32_t n_flat = 0, n_others = 0;
    DimId offset;
    FlatUse use = {.may = kernel->n_parallel > 0 && kernel_n_rows(kernel) != DIM_NONE};
    for (uint32_t i = 0; i < stage->stores.n && use.may; i++) {
        const Store *store = &stage->stores.data[i];
        use.may =
            !store->guard && !store->is_update && flat_is_in_order(kernel, store->address, &offset);
        if (use.may) note_wide(kernel, store->buffer, offset, lanes, &use);
        n_flat += use.may;
    }
    for (ScalarId id = 1; id <= scalar_count(kernel->scalars) && use.may; id++) {
        const Scalar *s = scalar_get(kernel->scalars, id);
        if (!live[id] || s->kind != SCALAR_LOAD || !s->axes) continue;
        bool is_flat = !s->guard && flat_is_in_order(kernel, s->index, &offset);
        if (is_flat) note_wide(kernel, s->buffer, offset, lanes, &use);
        use.may = is_flat || !is_strided(kernel, s->index);
        n_flat += is_flat;
        n_others += !is_flat;
    }
    use.has_others = n_others > 0 || flat_coordinates(arena, kernel);
    use.may = use.may && n_others <= n_flat && use.wide_args;
    return use;
}

bool sched_is_long_map(const Scheduler *s) {
    return scalar_count(s->kernel->scalars) > SCHED_LONG_SCALARS;
}

/* Flat vectors where rows are not known to be whole vectors. */
static FlatVectors choose(const Scheduler *s) {
    if (sched_is_long_map(s)) return (FlatVectors){.row_lanes = 1};
    uint32_t row_lanes = sched_vector_lanes(s, sched_gpu(s, TEMPLATE_GPU_MAP));
    DimId extent = sched_lane_extent(s);
    int64_t value, known = dim_multiple(s->dims, extent);
    bool is_const = dim_is_const(s->dims, extent, &value);
    Sched sched = sched_gpu(s, TEMPLATE_GPU_MAP_FLAT);
    sched.lanes = sched_most_lanes(s);
    sched.lanes = pressure_lanes(s->arena, s->kernel, sched);
    FlatUse use = use_of(s->arena, s->kernel, sched.lanes);
    bool is_enough = use.has_others && is_const &&
                     row_lanes * sched_widest_bytes(s->plan, s->kernel) >= SCHED_MAP_ROW_BYTES;
    if (!use.may || known % sched.lanes == 0 || is_enough) sched.lanes = 1;
    FlatVectors vectors = {.row_lanes = row_lanes, .variant = {.sched = sched}};
    vectors.replaces = sched.lanes > 1 && (is_const || !use.has_others);
    predicate_align(&vectors.variant.predicate, s->target->vector_bytes, use.wide_args);
    return vectors;
}

const FlatVectors *sched_flat(Scheduler *s) {
    if (!s->flat.row_lanes) s->flat = choose(s);
    return &s->flat;
}

DimId sched_map_grid(const Kernel *kernel, const Sched *sched) {
    DimId n = template_info(sched->template)->lanes_cross_rows ? flat_room(kernel, sched->lanes)
                                                               : kernel_n_rows(kernel);
    return dim_ceil_div(indextab_dims(scalartab_indices(kernel->scalars)), n,
                        (int64_t)sched->lanes * sched->threads * sched->unroll);
}

static void propose(Scheduler *s, Access access) {
    if (access != ACCESS_WIDE) return;
    Variant variant = sched_flat(s)->variant;
    if (variant.sched.lanes <= 1) return;
    variant.sched.threads = SCHED_MAP_THREADS;
    variant.grid = sched_map_grid(s->kernel, &variant.sched);
    sched_add(s, variant);
}

const TemplateSchedule schedule_gpu_map_flat = {.propose = propose,
                                                .in_one_block = sched_map_in_one_block};
