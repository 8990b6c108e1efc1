/* Shared memory of a launch's block, and its bounds in every launch mode.
 *
 *      0                                  own                                own + kept
 *      | own bytes of the kernels         | buffers that the launch keeps    |
 *        (operands, partial results)        (values between kernels, copies)
 *
 * The kernels use their own bytes one after the other, so the largest need counts. The buffers lie
 * behind these bytes; launch_smem_offset (plan/launch.h) lays them out. Three columns of
 * plan/launch_modes.def bound the own bytes, the kept bytes and their sum, and a fourth bound holds
 * in every mode: the bytes that a block has on every card of the target.
 *
 *   single, parallel   keep nothing; each kernel's schedule bounds its own bytes, and those of
 *                      wgmma GEMMs give up stages (schedule/wgmma.c)
 *   sequence           keeps tiles; if they do not fit, the values stay in global memory. A wgmma
 *                      GEMM leaves room for rows when it is scheduled (GemmLaunch.row_bytes)
 *   one block          keeps whole buffers; if they do not fit, there is no launch. Copies of
 * inputs take what is left gemm-rows-gemm     keeps its values in registers; if the operands do not
 * fit, there is no launch */
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
