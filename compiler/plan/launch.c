/* See launch.h. */
#include "plan/launch.h"
#include "machine/tuning.h"

enum { SMEM_ALL = INT32_MAX }; /* no bound but the block's shared memory */

static const LaunchModeInfo infos[] = {
#define LAUNCH_MODE(sym, name, blocks, tried, own, kept, both, text, word) \
    [LAUNCH_##sym] = {blocks, own, kept, both, text, word},
#include "plan/launch_modes.def"
};

const LaunchModeInfo *launch_mode_info(LaunchMode mode) {
    return &infos[mode];
}

const LaunchModeInfo *kernel_launch_info(const Plan *plan, uint32_t kernel) {
    const Launch *launch = plan_launch_of(plan, kernel);
    return &infos[launch && launch->first != kernel ? launch->mode : LAUNCH_SINGLE];
}

void plan_launch_singly(Arena *arena, Plan *plan) {
    memset(&plan->launches, 0, sizeof plan->launches); /* a copied plan gets its own array */
    for (uint32_t k = 0; k < plan->kernels.n; k++)
        vec_push(arena, &plan->launches, (Launch){.mode = LAUNCH_SINGLE, .first = k, .n = 1});
}

uint32_t plan_launch_index(const Plan *plan, uint32_t kernel) {
    uint32_t first = 0, end = plan->launches.n;
    while (end - first > 1) {
        uint32_t middle = first + (end - first) / 2;
        if (plan->launches.data[middle].first <= kernel)
            first = middle;
        else
            end = middle;
    }
    return first;
}

const Launch *plan_launch_of(const Plan *plan, uint32_t kernel) {
    return plan->launches.n ? &plan->launches.data[plan_launch_index(plan, kernel)] : NULL;
}

const Launch *plan_launch_after(const Plan *plan, const Launch *launch) {
    bool is_last = launch + 1 == plan->launches.data + plan->launches.n;
    return is_last ? plan_launch_of(plan, plan_n_init(plan)) : launch + 1;
}

void plan_insert_launch(Arena *arena, Plan *plan, uint32_t at, const Kernel *kernel) {
    uint32_t first = plan->launches.data[at].first;
    vec_push(arena, &plan->kernels, *kernel);
    for (uint32_t k = plan->kernels.n - 1; k > first; k--)
        plan->kernels.data[k] = plan->kernels.data[k - 1];
    plan->kernels.data[first] = *kernel;
    vec_push(arena, &plan->launches, (Launch){.mode = LAUNCH_SINGLE});
    for (uint32_t l = plan->launches.n - 1; l > at; l--) {
        plan->launches.data[l] = plan->launches.data[l - 1];
        plan->launches.data[l].first++;
    }
    plan->launches.data[at] = (Launch){.mode = LAUNCH_SINGLE, .first = first, .n = 1};
}

void plan_move_launch(Arena *scratch, Plan *plan, uint32_t from, uint32_t at) {
    Launch *launches = plan->launches.data, moved = launches[from];
    Kernel *kernels = plan->kernels.data;
    const Kernel *own =
        arena_copy(scratch, &kernels[moved.first], moved.n * sizeof *plan->kernels.data);
    for (uint32_t l = from; l + 1 < at; l++) {
        launches[l] = launches[l + 1];
        memmove(&kernels[launches[l].first - moved.n], &kernels[launches[l].first],
                launches[l].n * sizeof *kernels);
        launches[l].first -= moved.n;
    }
    launches[at - 1] = moved;
    if (at - 1 > from) launches[at - 1].first = launches[at - 2].first + launches[at - 2].n;
    memcpy(&kernels[launches[at - 1].first], own, moved.n * sizeof *kernels);
}

Plan plan_extract(Arena *arena, const Plan *plan, uint32_t first, uint32_t n) {
    Plan own = *plan;
    uint32_t begin = n ? plan->launches.data[first].first : 0, n_kernels = 0;
    for (uint32_t i = first; i < first + n; i++) n_kernels += plan->launches.data[i].n;
    own.kernels.data =
        arena_copy(arena, &plan->kernels.data[begin], n_kernels * sizeof *own.kernels.data);
    own.launches.data =
        arena_copy(arena, &plan->launches.data[first], n * sizeof *own.launches.data);
    own.kernels.n = own.kernels.capacity = n_kernels;
    own.launches.n = own.launches.capacity = n;
    for (uint32_t i = 0; i < n; i++) own.launches.data[i].first -= begin;
    return own;
}

uint64_t launch_symbols(const Plan *plan, const Launch *launch) {
    uint64_t symbols = 0;
    for (uint32_t k = 0; k < launch->n; k++) {
        const Kernel *kernel = launch_kernel(plan, launch, k);
        symbols |= kernel->symbols;
        /* A block finds its kernel by the grids of the kernels before. */
        if (launch->n > 1 && kernel->choice)
            symbols |= dim_symbols_used(plan->graph->dims, kernel_factor(kernel));
    }
    return symbols;
}

uint32_t launch_n_given(const Plan *plan, const Launch *launch, uint32_t n) {
    uint32_t n_given = 0;
    for (uint32_t k = 0; k < n; k++) n_given += kernel_n_given(launch_kernel(plan, launch, k));
    return n_given;
}

/* The row pitch of the tile in elements. Rows of a GEMM's tile are padded by one access, at most
 * four elements, against bank conflicts. A larger padding would leave no room for two blocks of
 * large tiles on an SM with 164 KiB. */
static DimId smem_pitch(const Plan *plan, const Kernel *reader, const Sched *sched,
                        const Buffer *buffer) {
    Shape layout = buffer_layout(buffer);
    if (form_info(reader->form)->reduces_rows) return layout.dims[layout.rank - 1];
    uint32_t pad = SMEM_ALIGN_BYTES / dtype_bytes(buffer->dtype);
    return dim_const(plan->graph->dims,
                     sched_tile(sched).n + (pad < SMEM_LANES ? pad : SMEM_LANES));
}

/* Rows of the tile in shared memory at once: all rows for a GEMM that reads the tile; for a row
 * kernel, the rows that the epilogue stores at a time. */
static uint32_t smem_rows(const Kernel *reader, const Sched *sched) {
    return form_info(reader->form)->reduces_rows ? sched_epilogue_rows(sched) : sched_tile(sched).m;
}

LaunchArg launch_first_use(const Plan *plan, const Launch *launch, LaunchArg of) {
    uint32_t buffer = launch_kernel(plan, launch, of.kernel)->args.data[of.arg];
    for (uint32_t k = 0; k < of.kernel; k++) {
        uint32_t arg = kernel_find_arg(launch_kernel(plan, launch, k), buffer);
        if (arg != NO_ARG) return (LaunchArg){k, arg};
    }
    return of;
}

bool launch_comes_again(const Plan *plan, const Launch *launch, LaunchArg of) {
    return launch_first_use(plan, launch, of).kernel != of.kernel;
}

bool launch_stores_to(const Plan *plan, const Launch *launch, uint32_t buffer) {
    for (uint32_t k = 0; k < launch->n; k++)
        if (kernel_stores_to(launch_kernel(plan, launch, k), buffer)) return true;
    return false;
}

bool launch_copies(const Launch *launch, uint32_t buffer) {
    return vec_has(&launch->copied, buffer);
}

bool launch_computes(const Plan *plan, const Launch *launch, NodeId id) {
    for (uint32_t k = 0; k < launch->n; k++)
        if (vec_has(&launch_kernel(plan, launch, k)->nodes, id)) return true;
    return false;
}

bool launch_is_sequence(const Launch *launch) {
    switch (launch->mode) {
    case LAUNCH_SINGLE:
    case LAUNCH_PARALLEL:
    case LAUNCH_ONE_BLOCK:
    case LAUNCH_GEMM_ROWS_GEMM:
    case LAUNCH_GEMM_ONLINE:
        return false;
    case LAUNCH_SEQUENCE:
        return true;
    }
    return false;
}

bool launch_joins_gemms(const Plan *plan, const Launch *launch) {
    return launch_is_sequence(launch) &&
           form_info(launch_kernel(plan, launch, 1)->form)->multiplies;
}

/* Places whole buffers, in the order in which the kernels of a one-block launch use them. A load
 * whose guard is false reads at the buffer's start, even if the buffer is empty; so
 * SMEM_ACCESS_BYTES follow the start of the last buffer. */
static uint32_t place_whole(const Plan *plan, const Launch *launch, uint32_t buffer,
                            SmemOffset *place) {
    int64_t bytes = 0, least = 0, own;
    for (uint32_t k = 0; k < launch->n; k++)
        for (uint32_t i = 0; i < launch_kernel(plan, launch, k)->args.n; i++) {
            uint32_t id = launch_kernel(plan, launch, k)->args.data[i];
            const Buffer *at = &plan->buffers.data[id];
            bool is_here = at->space == BUFFER_SHARED || launch_copies(launch, id);
            if (!is_here || launch_comes_again(plan, launch, (LaunchArg){k, i})) continue;
            if (id == buffer) *place = (SmemOffset){(uint32_t)bytes, DIM_NONE};
            own = dim_hi(plan->graph->dims, buffer_bytes(plan->graph->dims, at));
            least = bytes + SMEM_ACCESS_BYTES;
            bytes += (own + SMEM_ALIGN_BYTES - 1) / SMEM_ALIGN_BYTES * SMEM_ALIGN_BYTES;
        }
    return (uint32_t)(bytes < least ? least : bytes);
}

/* Places the tiles that the kernels after the first read, one after the other. */
static uint32_t place_tiles(const Plan *plan, const Launch *launch, const Sched *sched,
                            uint32_t buffer, SmemOffset *place) {
    uint32_t bytes = 0;
    for (uint32_t k = 1; k < launch->n; k++) {
        const Kernel *kernel = launch_kernel(plan, launch, k);
        for (uint32_t i = 0; i < kernel->args.n; i++) {
            uint32_t id = kernel->args.data[i];
            const Buffer *own = &plan->buffers.data[id];
            if (own->space != BUFFER_SHARED) continue;
            DimId pitch = smem_pitch(plan, kernel, sched, own);
            if (id == buffer) *place = (SmemOffset){bytes, pitch};
            bytes += smem_rows(kernel, sched) * dtype_bytes(own->dtype) *
                     (uint32_t)dim_hi(plan->graph->dims, pitch);
            bytes = (bytes + SMEM_ALIGN_BYTES - 1) / SMEM_ALIGN_BYTES * SMEM_ALIGN_BYTES;
        }
    }
    return bytes;
}

uint32_t launch_smem_offset(const Plan *plan, const Launch *launch, const Sched *sched,
                            uint32_t buffer, SmemOffset *place) {
    switch (launch_mode_info(launch->mode)->blocks) {
    case BLOCKS_OWN:
        return 0;
    case BLOCKS_SHARED:
        return place_tiles(plan, launch, sched, buffer, place);
    case BLOCKS_ONE:
        return place_whole(plan, launch, buffer, place);
    }
    return 0;
}

uint32_t launch_maps(const Plan *plan, const Launch *launch, uint32_t v, LaunchMap *maps) {
    uint32_t n = 0;
    bool has_one_lhs = launch_shares_blocks(launch);
    for (uint32_t k = 0; k < launch->n; k++)
        for (uint32_t i = 0; i < launch_kernel(plan, launch, k)->variants[v].n_maps; i++)
            if (k == 0 || i > 0 || !has_one_lhs) maps[n++] = (LaunchMap){k, i};
    return n;
}

DimId launch_grid(const Plan *plan, const Launch *launch, uint32_t v) {
    DimTab *dims = plan->graph->dims;
    DimId all = launch_kernel(plan, launch, 0)->variants[v].grid;
    switch (launch_mode_info(launch->mode)->blocks) {
    case BLOCKS_OWN:
        for (uint32_t k = 1; k < launch->n; k++)
            all = dim_add(dims, all, launch_kernel(plan, launch, k)->variants[v].grid);
        return all;
    case BLOCKS_SHARED:
        return all;
    case BLOCKS_ONE:
        return dim_const(dims, 1);
    }
    return all;
}

/* Primitives of a point. Of the parts of a concat each point computes one. */
static int64_t point_prims(Arena *arena, const Kernel *kernel) {
    const ScalarTab *scalars = kernel->scalars;
    const bool *live = kernel_live_scalars(arena, kernel);
    bool *has_part = scalar_marks(scalars), *has_whole = scalar_marks(scalars);
    int64_t whole = 0, parts = 0, n_parts = 1;
    for (ScalarId id = scalar_count(scalars); id > 0; id--) {
        if (!live[id]) continue;
        const Scalar *s = scalar_get(scalars, id);
        bool chooses = scalar_chooses_part(scalars, s), is_part = has_part[id] && !has_whole[id];
        n_parts += chooses;
        *(is_part || chooses ? &parts : &whole) += scalar_own_cost(scalars, id);
        for (int i = 0; i < 3; i++) (is_part || chooses ? has_part : has_whole)[s->args[i]] = true;
    }
    return whole + parts / n_parts;
}

/* About so many multiply-adds, of full vectors, take as long as the kernel's arithmetic. A product
 * also reads its operands and stores its results. */
static DimId n_products(Arena *arena, DimTab *dims, const Kernel *kernel) {
    int64_t n_prims = PLAN_ELEMENT_PRIMS + point_prims(arena, kernel);
    DimId rows = kernel_n_rows(kernel), depth = kernel_n_reduced(kernel);
    DimId points = dim_mul(dims, rows, depth);
    if (!form_info(kernel->form)->multiplies) return dim_mul_const(dims, points, 2 * n_prims);
    DimId elements = dim_add(dims, kernel_axis_extent(kernel, gemm_axis_m(kernel)),
                             kernel_axis_extent(kernel, gemm_axis_n(kernel)));
    for (uint32_t batch = 0; batch < gemm_axis_m(kernel); batch++)
        elements = dim_mul(dims, elements, kernel_axis_extent(kernel, batch));
    elements = dim_add(dims, dim_mul(dims, elements, depth), rows);
    return dim_add(dims, points, dim_mul_const(dims, elements, 2 * n_prims));
}

DimId launch_worth(Arena *arena, const Plan *plan, const Launch *launch, uint32_t v) {
    DimTab *dims = plan->graph->dims;
    DimId all = dim_const(dims, 1), grid = launch_grid(plan, launch, v);
    for (uint32_t k = 0; k < launch->n; k++)
        all = dim_add(dims, all, n_products(arena, dims, launch_kernel(plan, launch, k)));
    DimId worth = dim_div(dims, dim_mul_const(dims, grid, PLAN_WORTH_PRODUCTS), all);
    return worth ? dim_add(dims, worth, dim_const(dims, 1)) : dim_const(dims, 1);
}

uint32_t launch_shared_bytes(const Plan *plan, const Launch *launch, uint32_t v) {
    uint32_t most = 0;
    for (uint32_t k = 0; k < launch->n; k++) {
        uint32_t own = launch_kernel(plan, launch, k)->variants[v].shared_bytes;
        if (own > most) most = own;
    }
    return most;
}
