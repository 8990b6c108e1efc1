/* Shared memory of a launch's block, and its bounds in every launch mode.
 *
 *      0                                  own                                own + kept
 *      | own bytes of the kernels         | buffers that the launch keeps    |
 *        (operands, partial results)        (values between kernels, copies)
 *
 * The kernels use their own bytes one after the other, so the largest need counts. The buffers lie
 * behind these bytes; launch_smem_offset (plan/launch.h) lays them out. Modes that keep buffers are
 * bounded here: columns of plan/launch_modes.def bound the own bytes, the kept bytes and their sum,
 * and a block has only bytes that every card of the target has.
 *
 * - single, parallel: they keep no buffer. Each kernel's schedule bounds the own bytes: the tiles
 * of machine/tiles.def fit by themselves, and a wgmma GEMM gives up stages (schedule/wgmma.c).
 * - sequence: it keeps tiles. If they do not fit, the values stay in global memory. A wgmma GEMM
 *   leaves room for the tiles when it is scheduled (GemmLaunch.row_bytes); other GEMMs give up
 *   stages beyond LAUNCH_DYNAMIC_BYTES.
 * - one block: it keeps whole buffers. If they do not fit, there is no launch. Copies of inputs
 * take the bytes that are left.
 * - gemm-rows-gemm: it keeps values in registers. If the operands do not fit, there is no launch.
 */
#ifndef FUSEC_LAUNCH_SMEM_H
#define FUSEC_LAUNCH_SMEM_H

#include "launch/trial.h"

/* The kernels' own bytes in variant `v` of the merged trial: in a sequence with as few stages as
 * its GEMM may have. */
uint32_t smem_own_bytes(const Composer *c, const Trial *t, uint32_t v);
/* Whether a block of variant `v` has room for `own` such bytes and for the buffers that the trial
 * keeps in shared memory. */
bool smem_fits(const Composer *c, const Trial *t, uint32_t v, uint32_t own);

/* Moves the temporaries that the last kernel of a sequence reads from the kernels before it, and
 * that nothing else reads, out of global memory. On a GPU they stay there if they do not fit. */
void smem_keep_passed(const Composer *c, Trial *t);
/* Sets Variant.kept_shared_bytes of the merged trial. A GEMM gives up stages for them. */
void smem_set_kept_bytes(Trial *t);

#endif
