/* Schedules of contractions, by device class. */
#ifndef FUSEC_SCHED_GEMM_H
#define FUSEC_SCHED_GEMM_H

#include "ir/target.h"

/* Product of the parallel extents before m. */
DimId gemm_n_batches(const Kernel *kernel);

/* Fill `variants` (MAX_VARIANTS of them, all set to what applies anywhere), in order of preference;
 * the last must apply always. Return how many there are, at least 1. */
uint32_t sched_gemm_gpu(const Plan *plan, const Kernel *kernel, const Target *target,
                        Variant *variants);
/* Tensor cores: both factors f16, or both bf16. sched_gemm_gpu calls it. */
uint32_t sched_gemm_mma(const Plan *plan, const Kernel *kernel, const Target *target,
                        Variant *variants);
/* One row, or one column where `is_column`. sched_gemm_gpu calls it. */
uint32_t sched_gemm_vector(const Kernel *kernel, const Target *target, bool is_column,
                           Variant *variants);
uint32_t sched_gemm_cpu(const Plan *plan, const Kernel *kernel, const Target *target,
                        Variant *variants);

/* GPU: one block per tile and batch. */
DimId gemm_gpu_grid(const Kernel *kernel, uint32_t tile_m, uint32_t tile_n);

#endif
