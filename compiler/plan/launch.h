/* Launches of a plan: kernels that one grid runs, as parts side by side, phases of a block or turns
 * of all blocks, and what they have in common. */
#ifndef FUSEC_PLAN_LAUNCH_H
#define FUSEC_PLAN_LAUNCH_H

#include "plan/plan.h"

/* The kernels of one launch: the one at `first` and those after it that are linked to it. The
 * launch has the arguments of all of them, one kernel's after the other's, without what is on chip.
 * Grids of parts lie end to end, unless blocks walk over tiles: then over those of all parts. */
typedef struct Launch {
    const Kernel *kernels;
    uint32_t n;
} Launch;
Launch plan_launch(const Plan *plan, uint32_t first);
/* Where a buffer on chip lies in a block's dynamic shared memory: bytes from the first of them, and
 * elements from one row of the tile to the next. For a phase over rows the tile is whole rows, by
 * wgmma those that its warps drain at once; for one of GEMMs it is tile_m x tile_n of the
 * sched. Of turns, what is on chip or copied there lies as it would in memory, without a pitch;
 * SMEM_ACCESS_BYTES from where it begins are the launch's, however small it is. Returns the bytes
 * of all such buffers. */
typedef struct SmemPlace {
    uint32_t offset_bytes;
    DimId pitch;
} SmemPlace;
uint32_t launch_smem_place(const Plan *plan, const Launch *launch, const Sched *sched,
                           uint32_t buffer, SmemPlace *place);
/* Dynamic shared memory that variant `v` of the launch has before what is on chip: phases use the
 * same bytes one after the other. */
uint32_t launch_shared_bytes(const Launch *launch, uint32_t v);
/* Blocks that variant `v` of the launch starts, before any limit. */
DimId launch_grid(DimTab *dims, const Launch *launch, uint32_t v);
/* The tensor maps that variant `v` of the launch takes, in order. Parts have all of theirs, one
 * part's after the other's. Phases have the lhs in common: its map is the first kernel's,
 * and each kernel's of its rhs follows. Returns how many there are, MAX_LAUNCH_MAPS at
 * most. */
typedef struct LaunchMap {
    uint32_t kernel, map; /* of the launch's kernels, of Variant.maps */
} LaunchMap;
uint32_t launch_maps(const Launch *launch, uint32_t v, LaunchMap *maps);
/* The first argument of the launch, on chip or not, that is the same buffer as argument `arg` of
 * kernel `kernel`: that one itself if it does not come again. */
typedef struct LaunchArg {
    uint32_t kernel, arg; /* of the launch's kernels, of Kernel.args */
} LaunchArg;
LaunchArg launch_first_use(const Launch *launch, LaunchArg of);
bool launch_comes_again(const Launch *launch, LaunchArg of);
bool launch_stores_to(const Launch *launch, uint32_t buffer);
/* Whether the node is a value of one of its kernels. */
bool launch_computes(const Launch *launch, NodeId id);
/* Dims passed to any of its kernels. */
uint64_t launch_symbols(const Launch *launch);
static inline bool launch_is_parallel(const Launch *launch) {
    return launch->n > 1 && launch->kernels[1].link == LAUNCH_PARALLEL;
}
static inline bool launch_is_one_block(const Launch *launch) {
    return launch->n > 1 && launch->kernels[1].link == LAUNCH_ONE_BLOCK;
}
static inline bool launch_is_gemm_rows_gemm(const Launch *launch) {
    return launch->n > 1 && launch->kernels[1].link == LAUNCH_GEMM_ROWS_GEMM;
}
/* Whether kernel `k` of the plan is one of a launch of turns. */
static inline bool plan_is_one_block(const Plan *plan, uint32_t k) {
    return plan->kernels.data[k].link == LAUNCH_ONE_BLOCK ||
           (k + 1 < plan->kernels.n && plan->kernels.data[k + 1].link == LAUNCH_ONE_BLOCK);
}

#endif
