/* The additional time of a row kernel in the blocks of a GEMM. Few blocks have whole rows, so each
 * waits for memory, and each warp processes its rows alone. Microseconds on an H200, fitted to
 * softmax, layernorm and rmsnorm after GEMMs of 1 to 65536 rows and 64 to 256 columns in bf16 and
 * f32, with k of 64 and 512; for wgmma up to 524288 rows. `product` is the schedule of the GEMM.
 * `waves` counts the blocks that a processor runs one after the other, with a fractional last
 * one. */
#ifndef FUSEC_COST_KERNEL_GEMM_ROWS_H
#define FUSEC_COST_KERNEL_GEMM_ROWS_H

#include "plan/kernel.h"

/* The least time of a GEMM along `k` elements of `elem_bytes`. */
double cost_rows_gemm_us(const Sched *sched, double waves, double k, uint32_t elem_bytes);
/* The least time of the rows, with `columns` elements of `prims` primitives each. For wgmma: the
 * time beside the GEMM's use of its warps. */
double cost_rows_us(const Sched *sched, double waves, double columns, double prims);
double cost_rows_wgmma_us(const Sched *sched, double waves, double columns, double prims);
/* The part of a launch's fixed time that the rows do not need, because a launch begins while the
 * one before ends, plus the time before the first row. */
double cost_rows_begin_us(const Sched *sched, double columns);

#endif
