/* Launches of a plan: the grids that a run starts, each with one or several kernels.
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
    uint32_t most_own, most_kept, most_bytes; /* of a block's shared memory (launch/smem.h) */
    const char *text;                         /* dumps print it for each kernel after the first */
    const char *word;                         /* in JSON */
} LaunchModeInfo;
const LaunchModeInfo *launch_mode_info(LaunchMode mode);
/* The mode of the kernel's launch. For the first kernel of a launch, or if the plan has no launches
 * yet, the row of LAUNCH_SINGLE. */
const LaunchModeInfo *kernel_launch_info(const Plan *plan, uint32_t kernel);

/* Makes each kernel of the plan a launch. */
void plan_launch_singly(Arena *arena, Plan *plan);
/* The launch that runs the kernel; NULL if the plan has no launches yet. */
const Launch *plan_launch_of(const Plan *plan, uint32_t kernel);
/* Its index among the launches, of which there are some. */
uint32_t plan_launch_index(const Plan *plan, uint32_t kernel);
/* The launch that begins after this one: after the last launch of a run, the first one of the next
 * run, which has no init kernels. */
const Launch *plan_launch_after(const Plan *plan, const Launch *launch);
/* Adds a launch of the kernel in front of launch `at`, or moves launch `from` there, which comes
 * before. */
void plan_insert_launch(Arena *arena, Plan *plan, uint32_t at, const Kernel *kernel);
void plan_move_launch(Arena *scratch, Plan *plan, uint32_t from, uint32_t at);
/* Launches [first, first + n) as a separate plan: kernels and launches are copied to the arena;
 * buffers and edges are those of the given plan. */
Plan plan_extract(Arena *arena, const Plan *plan, uint32_t first, uint32_t n);

/* Whether kernel `k` of the plan belongs to the launch. */
static inline bool launch_has(const Launch *launch, uint32_t k) {
    return k >= launch->first && k < launch->first + launch->n;
}
/* Kernel `k` of the launch's kernels. */
static inline const Kernel *launch_kernel(const Plan *plan, const Launch *launch, uint32_t k) {
    return &plan->kernels.data[launch->first + k];
}

/* The place of a shared buffer in a block's dynamic shared memory: the offset in bytes, and the row
 * pitch of the tile in elements. For row kernels the tile is whole rows; after wgmma, the rows that
 * a warp stores at once. For GEMMs the tile is tile_m x tile_n of `sched`. In a one-block launch,
 * shared and copied buffers are whole and have no pitch, and each takes at least SMEM_ACCESS_BYTES.
 * Returns the bytes of all these buffers. */
typedef struct SmemOffset {
    uint32_t offset_bytes;
    DimId pitch;
} SmemOffset;
uint32_t launch_smem_offset(const Plan *plan, const Launch *launch, const Sched *sched,
                            uint32_t buffer, SmemOffset *place);
/* Bytes of dynamic shared memory of variant `v` before those buffers. The launch's kernels use the
 * same bytes one after the other. */
uint32_t launch_shared_bytes(const Plan *plan, const Launch *launch, uint32_t v);
/* Blocks that variant `v` of the launch starts, before any limit. */
/* CPU: the least number of units that are worth a thread of their own. */
DimId launch_worth(Arena *arena, const Plan *plan, const Launch *launch, uint32_t v);
DimId launch_grid(const Plan *plan, const Launch *launch, uint32_t v);
/* The tensor maps of variant `v` of the launch, in order. Kernels with their own blocks have all
 * their maps, one kernel after the other. Kernels that share blocks share the lhs: the first
 * kernel's map of the lhs comes first, then each kernel's map of its rhs. Returns their number, at
 * most MAX_LAUNCH_MAPS. */
typedef struct LaunchMap {
    uint32_t kernel, map; /* indices into the launch's kernels and into Variant.maps */
} LaunchMap;
uint32_t launch_maps(const Plan *plan, const Launch *launch, uint32_t v, LaunchMap *maps);
/* The first argument of the launch, in any space, with the same buffer as argument `arg` of kernel
 * `kernel`: that argument itself if no earlier kernel has the buffer. */
typedef struct LaunchArg {
    uint32_t kernel, arg; /* indices into the launch's kernels and into Kernel.args */
} LaunchArg;
LaunchArg launch_first_use(const Plan *plan, const Launch *launch, LaunchArg of);
bool launch_comes_again(const Plan *plan, const Launch *launch, LaunchArg of);
bool launch_stores_to(const Plan *plan, const Launch *launch, uint32_t buffer);
/* Whether the launch copies the buffer to shared memory before its first kernel. */
bool launch_copies(const Launch *launch, uint32_t buffer);
/* Whether a kernel of the launch computes the node. */
bool launch_computes(const Plan *plan, const Launch *launch, NodeId id);
/* The dims passed to any of its kernels. */
uint64_t launch_symbols(const Plan *plan, const Launch *launch);
/* The number of constants that the launch gives its first `n` kernels; at most MAX_LAUNCH_GIVEN. */
enum { MAX_LAUNCH_GIVEN = 256 };
uint32_t launch_n_given(const Plan *plan, const Launch *launch, uint32_t n);
/* Whether each kernel after the first continues in the blocks of the kernel before it, by the
 * launch's mode. */
bool launch_is_sequence(const Launch *launch);
/* Whether the launch runs a second matmul in the blocks of the first. */
bool launch_joins_gemms(const Plan *plan, const Launch *launch);
/* Whether its kernels run one after the other in the same blocks. */
static inline bool launch_shares_blocks(const Launch *launch) {
    return launch_mode_info(launch->mode)->blocks != BLOCKS_OWN;
}
/* Whether one block runs the whole grid of each kernel. */
static inline bool launch_has_one_block(const Launch *launch) {
    return launch_mode_info(launch->mode)->blocks == BLOCKS_ONE;
}
/* Whether each block runs its tile of all kernels. */
static inline bool launch_is_tiled(const Launch *launch) {
    return launch_mode_info(launch->mode)->blocks == BLOCKS_SHARED;
}

#endif
