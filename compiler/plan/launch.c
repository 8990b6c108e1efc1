/* What the kernels of a launch have in common. See launch.h. */
#include "plan/launch.h"

Launch plan_launch(const Plan *plan, uint32_t first) {
    uint32_t end = first + 1;
    while (end < plan->kernels.n && plan->kernels.data[end].link != LAUNCH_SINGLE) end++;
    return (Launch){.kernels = &plan->kernels.data[first], .n = end - first};
}

uint64_t launch_symbols(const Launch *launch) {
    uint64_t symbols = 0;
    for (uint32_t k = 0; k < launch->n; k++) {
        const Kernel *kernel = &launch->kernels[k];
        symbols |= kernel->symbols;
        /* A block finds its part by the grids of those before. */
        if (launch->n > 1 && kernel->when != DIM_NONE)
            symbols |=
                dim_symbols_used(indextab_dims(scalartab_indices(kernel->scalars)), kernel->when);
    }
    return symbols;
}

/* Elements from row to row of the tile. Rows of a GEMM's tile are padded by one access, at
 * most four elements, against bank conflicts: by no more, so that two blocks of large tiles still
 * have room on a processor with 164 KiB. */
static DimId chip_pitch(const Plan *plan, const Kernel *reader, const Sched *sched,
                        const Buffer *buffer) {
    Shape layout = buffer_layout(buffer);
    if (reader->form == FORM_ROW) return layout.dims[layout.rank - 1];
    uint32_t pad = SMEM_ALIGN_BYTES / dtype_bytes(buffer->dtype);
    return dim_const(plan->graph->dims,
                     sched_tile(sched).n + (pad < SMEM_LANES ? pad : SMEM_LANES));
}

/* Rows of the tile that are there at once: of a GEMM that follows all of them, of rows those that
 * the epilogue has. */
static uint32_t chip_rows(const Kernel *reader, const Sched *sched) {
    return form_info(reader->form)->reduces_rows ? sched_epilogue_rows(sched) : sched_tile(sched).m;
}

LaunchArg launch_first_use(const Launch *launch, LaunchArg of) {
    uint32_t buffer = launch->kernels[of.kernel].args.data[of.arg];
    for (uint32_t k = 0; k < of.kernel; k++) {
        uint32_t arg = kernel_find_arg(&launch->kernels[k], buffer);
        if (arg != NO_ARG) return (LaunchArg){k, arg};
    }
    return of;
}

bool launch_comes_again(const Launch *launch, LaunchArg of) {
    return launch_first_use(launch, of).kernel != of.kernel;
}

bool launch_stores_to(const Launch *launch, uint32_t buffer) {
    for (uint32_t k = 0; k < launch->n; k++)
        if (kernel_stores_to(&launch->kernels[k], buffer)) return true;
    return false;
}

bool launch_computes(const Launch *launch, NodeId id) {
    for (uint32_t k = 0; k < launch->n; k++)
        if (vec_has(&launch->kernels[k].nodes, id)) return true;
    return false;
}

/* Whole buffers, in the order in which the turns take them. Where its guard is off a load reads
 * what lies where its buffer begins, of an empty one whatever follows: behind the last there is
 * room. */
static uint32_t turn_place(const Plan *plan, const Launch *launch, uint32_t buffer,
                           SmemPlace *place) {
    int64_t bytes = 0, least = 0, own;
    for (uint32_t k = 0; k < launch->n; k++)
        for (uint32_t i = 0; i < launch->kernels[k].args.n; i++) {
            const Kernel *kernel = &launch->kernels[k];
            const Buffer *at = &plan->buffers.data[kernel->args.data[i]];
            bool is_here = at->is_on_chip || (kernel->copied_args >> i & 1);
            if (!is_here || launch_comes_again(launch, (LaunchArg){k, i})) continue;
            if (kernel->args.data[i] == buffer) *place = (SmemPlace){(uint32_t)bytes, DIM_NONE};
            own = dim_hi(plan->graph->dims, buffer_bytes(plan->graph->dims, at));
            least = bytes + SMEM_ACCESS_BYTES;
            bytes += (own + SMEM_ALIGN_BYTES - 1) / SMEM_ALIGN_BYTES * SMEM_ALIGN_BYTES;
        }
    return (uint32_t)(bytes < least ? least : bytes);
}

uint32_t launch_smem_place(const Plan *plan, const Launch *launch, const Sched *sched,
                           uint32_t buffer, SmemPlace *place) {
    uint32_t bytes = 0;
    if (launch_is_gemm_rows_gemm(launch)) return 0;
    if (launch_is_one_block(launch)) return turn_place(plan, launch, buffer, place);
    for (uint32_t k = 1; k < launch->n; k++)
        for (uint32_t i = 0; i < launch->kernels[k].args.n; i++) {
            uint32_t id = launch->kernels[k].args.data[i];
            const Buffer *own = &plan->buffers.data[id];
            if (!own->is_on_chip) continue;
            DimId pitch = chip_pitch(plan, &launch->kernels[k], sched, own);
            if (id == buffer) *place = (SmemPlace){bytes, pitch};
            bytes += chip_rows(&launch->kernels[k], sched) * dtype_bytes(own->dtype) *
                     (uint32_t)dim_hi(plan->graph->dims, pitch);
            bytes = (bytes + SMEM_ALIGN_BYTES - 1) / SMEM_ALIGN_BYTES * SMEM_ALIGN_BYTES;
        }
    return bytes;
}

uint32_t launch_maps(const Launch *launch, uint32_t v, LaunchMap *maps) {
    uint32_t n = 0;
    bool has_phases = launch->n > 1 && !launch_is_parallel(launch);
    for (uint32_t k = 0; k < launch->n; k++)
        for (uint32_t i = 0; i < launch->kernels[k].variants[v].n_maps; i++)
            if (k == 0 || i > 0 || !has_phases) maps[n++] = (LaunchMap){k, i};
    return n;
}

DimId launch_grid(DimTab *dims, const Launch *launch, uint32_t v) {
    DimId all = launch->kernels->variants[v].grid;
    if (launch_is_one_block(launch)) return dim_const(dims, 1);
    for (uint32_t k = 1; k < launch->n && launch_is_parallel(launch); k++)
        all = dim_add(dims, all, launch->kernels[k].variants[v].grid);
    return all;
}

uint32_t launch_shared_bytes(const Launch *launch, uint32_t v) {
    uint32_t most = 0;
    for (uint32_t k = 0; k < launch->n; k++)
        if (launch->kernels[k].variants[v].shared_bytes > most)
            most = launch->kernels[k].variants[v].shared_bytes;
    return most;
}
