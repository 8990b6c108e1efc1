/* Launches of a plan: the grids that a run starts, each of one or several kernels.
 *
 *   plan->kernels    k0   k1   k2   k3   k4   k5
 *   plan->launches  |single|  parallel |  one block  |
 *
 * The schedule makes each kernel a launch (plan_launch_singly); the composer (launch/compose.h)
 * joins launches. */
#ifndef FUSEC_PLAN_LAUNCH_H
#define FUSEC_PLAN_LAUNCH_H

#include "plan/plan.h"

typedef struct LaunchModeInfo {
    LaunchBlocks blocks;
    const char *text; /* `, in the blocks of the one before`: said of each kernel but the first */
    const char *word; /* in the ledger's JSON; NULL for a launch of one kernel */
} LaunchModeInfo;
const LaunchModeInfo *launch_mode_info(LaunchMode mode);
/* Of the mode of the kernel's launch, unless the kernel is its first or the plan has no launches
 * yet: then what LAUNCH_SINGLE has. */
const LaunchModeInfo *kernel_launch_info(const Plan *plan, uint32_t kernel);

/* Makes each kernel of the plan a launch of its own. */
void plan_launch_singly(Arena *arena, Plan *plan);
/* The launch that runs the kernel; NULL: the plan has no launches yet. */
const Launch *plan_launch_of(const Plan *plan, uint32_t kernel);
/* Launches [first, first + n) as a plan of their own: kernels and launches are copies on the arena,
 * buffers and edges are the given plan's. */
Plan plan_excerpt(Arena *arena, const Plan *plan, uint32_t first, uint32_t n);

/* Kernel `k` of the launch's kernels. */
static inline const Kernel *launch_kernel(const Plan *plan, const Launch *launch, uint32_t k) {
    return &plan->kernels.data[launch->first + k];
}

/* Where a shared buffer lies in a block's dynamic shared memory: bytes from its first byte, and
 * elements from one row of the tile to the next. For kernels over rows the tile is whole rows; by
 * wgmma, the rows that its warps store at once. For GEMMs the tile is tile_m x tile_n of `sched`.
 * For one block, buffers that are shared or copied lie as they would in memory, without a pitch,
 * and each has SMEM_ACCESS_BYTES at least. Returns the bytes of all those buffers. */
typedef struct SmemOffset {
    uint32_t offset_bytes;
    DimId pitch;
} SmemOffset;
uint32_t launch_smem_offset(const Plan *plan, const Launch *launch, const Sched *sched,
                            uint32_t buffer, SmemOffset *place);
/* Dynamic shared memory that variant `v` of the launch has before those buffers: its kernels use
 * the same bytes one after the other. */
uint32_t launch_shared_bytes(const Plan *plan, const Launch *launch, uint32_t v);
/* Blocks that variant `v` of the launch starts, before any limit. */
DimId launch_grid(const Plan *plan, const Launch *launch, uint32_t v);
/* The tensor maps that variant `v` of the launch takes, in order. Kernels with blocks of their own
 * have all of theirs, one kernel's after the other's. Kernels that share blocks have the lhs in
 * common: its map is the first kernel's, and each kernel's map of its rhs follows. Returns how many
 * there are, MAX_LAUNCH_MAPS at most. */
typedef struct LaunchMap {
    uint32_t kernel, map; /* of the launch's kernels, of Variant.maps */
} LaunchMap;
uint32_t launch_maps(const Plan *plan, const Launch *launch, uint32_t v, LaunchMap *maps);
/* The first argument of the launch, in whatever space, that is the same buffer as argument `arg` of
 * kernel `kernel`: that argument itself if no kernel before has the buffer. */
typedef struct LaunchArg {
    uint32_t kernel, arg; /* of the launch's kernels, of Kernel.args */
} LaunchArg;
LaunchArg launch_first_use(const Plan *plan, const Launch *launch, LaunchArg of);
bool launch_comes_again(const Plan *plan, const Launch *launch, LaunchArg of);
bool launch_stores_to(const Plan *plan, const Launch *launch, uint32_t buffer);
/* Whether the launch copies the buffer to shared memory before its first kernel. */
bool launch_copies(const Launch *launch, uint32_t buffer);
/* Whether the node is a value of one of its kernels. */
bool launch_computes(const Plan *plan, const Launch *launch, NodeId id);
/* Dims passed to any of its kernels. */
uint64_t launch_symbols(const Plan *plan, const Launch *launch);
/* Whether kernel `k` of the plan is rows that are rewritten to one pass. */
bool kernel_is_rewritten(const Plan *plan, uint32_t k);
/* Whether each kernel but the first goes on in the blocks of the one before, by its variant. */
bool launch_is_sequence(const Launch *launch);
/* Whether the launch multiplies a second time in the blocks of its first product. */
bool launch_joins_gemms(const Plan *plan, const Launch *launch);
/* Whether its kernels follow one another in the same blocks. */
static inline bool launch_shares_blocks(const Launch *launch) {
    return launch_mode_info(launch->mode)->blocks != BLOCKS_OWN;
}

#endif
