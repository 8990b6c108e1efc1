/* The composer joins launches: each kernel of a scheduled plan is a launch, and a few launches
 * may become one grid.
 *
 *   single           [ k0 ] [ k1 ] [ k2 ]      a grid each
 *
 *   parallel         [ k0 | k1 | k2 ]          horizontal fusion: independent kernels, each with
 *                                              blocks of its own in one grid
 *
 *   sequence         [ gemm > rows ]           producer and consumer in the same blocks, on the
 *                                              tile that a block has; it stays in shared memory
 *
 *   gemm_rows_gemm   [ gemm > rows > gemm ]    back-to-back GEMMs, e.g. attention: the tile
 *                                              between them stays in registers
 *
 *   one_block        [ k0 > k1 > .. > k9 ]     a megakernel of one block for kernels so small that
 *                                              a launch takes longer than their work
 *
 * plan/launch_modes.def lists the modes in the order in which they are tried. A launch changes no
 * bit of any result: each kernel has its own order of summation in every mode. For every mode of
 * several kernels launch/<mode>.c says which launches to try and how to schedule them as one;
 * launch/smem.c bounds their shared memory; launch/trial.c tries them on copies, asks the price or
 * a `fuse must` block, and then changes the plan or leaves it as it is. */
#ifndef FUSEC_LAUNCH_COMPOSE_H
#define FUSEC_LAUNCH_COMPOSE_H

#include "pipeline/pipeline.h"

/* Joins launches of the plan by the modes in `modes` (bit set of LaunchMode) that the target has,
 * in the table's order. Requires schedules. LAUNCH_PARALLEL requires Kernel.code (launch/dedup.h).
 * Extends the lifetimes of buffers, so buffers are placed afterwards. */
void launch_compose(const Planning *p, Plan *plan, uint32_t modes);

/* Sets of modes: modes whose kernels share blocks in any way; modes whose kernels have their own
 * blocks. */
/* clang-format off */
enum {
    LAUNCH_MODES_IN_BLOCKS = 0
#define LAUNCH_MODE(sym, name, blocks, ...) | (((1 << BLOCKS_SHARED | 1 << BLOCKS_ONE) >> (blocks)) & 1) << LAUNCH_##sym
#include "plan/launch_modes.def"
    ,
    LAUNCH_MODES_BESIDE = 0
#define LAUNCH_MODE(sym, name, blocks, ...) | (((1 << BLOCKS_OWN) >> (blocks)) & 1) << LAUNCH_##sym
#include "plan/launch_modes.def"
};
/* clang-format on */

/* Makes the launches of the modes that the mode of the pipeline tries. Requires scheduled plans. */
bool launch_pass(const Planning *p);

#endif
