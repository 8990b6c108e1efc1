/* What it takes that rows follow a product in its blocks, beyond what the cost model knows of both:
 * few blocks have whole rows, so each waits for memory, and each warp goes over its rows alone.
 * Microseconds on an H200, fitted to softmax, layernorm and rmsnorm behind products of 1 to 65536
 * rows of 64 to 256 columns in bf16 and f32, k of 64 and 512; those by wgmma to 524288 rows.
 * `product`: the schedule of the product; `waves`: how often a processor's blocks are replaced,
 * with the first, the last being whole or not. */
#ifndef FUSEC_COST_KERNEL_GEMM_ROWS_H
#define FUSEC_COST_KERNEL_GEMM_ROWS_H

#include "plan/kernel.h"

/* The least that a product along `k` elements of `elem_bytes` takes. */
double cost_rows_gemm_us(const Sched *sched, double waves, double k, uint32_t elem_bytes);
/* The least that the rows take, of `columns` elements with `prims` primitives each; by wgmma what
 * they take beside what the product keeps its warps busy. */
double cost_rows_us(const Sched *sched, double waves, double columns, double prims);
double cost_rows_wgmma_us(const Sched *sched, double waves, double columns, double prims);
/* What remains of the launch that the rows do not need, since one behind another begins while that
 * one ends; and what comes before the first row. */
double cost_rows_begin_us(const Sched *sched, double columns);

#endif
