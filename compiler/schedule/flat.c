/* See flat.h. */
#include "schedule/flat.h"

#include "template/flat.h"

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
FlatUse sched_flat_use(Arena *arena, const Kernel *kernel, uint32_t lanes) {
    const bool *live = kernel_live_scalars(arena, kernel);
    const Stage *stage = &kernel->stages.data[0];
    uint32_t n_flat = 0, n_others = 0;
    DimId offset;
    FlatUse use = {.may = kernel->form == FORM_MAP && kernel->n_parallel > 0 &&
                          kernel_n_rows(kernel) != DIM_NONE};
    for (uint32_t i = 0; i < stage->stores.n && use.may; i++) {
        const Store *store = &stage->stores.data[i];
        use.may = !store->guard && flat_is_in_order(kernel, store->address, &offset);
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

DimId sched_map_grid(const Kernel *kernel, const Sched *sched) {
    DimId n = sched->template == TEMPLATE_GPU_MAP_FLAT ? flat_room(kernel, sched->lanes)
                                                       : kernel_n_rows(kernel);
    return dim_ceil_div(indextab_dims(scalartab_indices(kernel->scalars)), n,
                        (int64_t)sched->lanes * sched->threads * sched->unroll);
}
