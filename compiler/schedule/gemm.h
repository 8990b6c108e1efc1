/* Schedules of GEMMs, by device class. */
#ifndef FUSEC_SCHEDULE_GEMM_H
#define FUSEC_SCHEDULE_GEMM_H

#include "machine/machine.h"
#include "machine/target.h"
#include "plan/plan.h"

/* What starts with a GEMM: phases, whose products blocks make at once where they use wgmma,
 * and units of a CPU always, or parts, itself among them, which fill the machine together. 1 and 0:
 * none. Or rows that follow in its blocks or units: then a tile is to hold whole rows, at most
 * sched_gemm_widest_rows or sched_cpu_gemm_widest_rows of columns, and on a GPU what passes to them
 * takes so many bytes for each row. */
typedef struct GemmLaunch {
    uint32_t n_gemms, n_kernels;
    const Kernel *kernels;
    bool has_rows;
    uint32_t row_bytes;
} GemmLaunch;

/* The GEMMs that fill the machine. */
static inline const Kernel *gemm_launch_kernels(const GemmLaunch *launch, const Kernel *kernel,
                                                uint32_t *n) {
    *n = launch->n_kernels ? launch->n_kernels : 1;
    return launch->n_kernels ? launch->kernels : kernel;
}

/* Product of the parallel extents before m. */
DimId gemm_n_batches(const Kernel *kernel);

/* Fill `variants` (MAX_VARIANTS of them, all set to what applies anywhere), in order of preference;
 * the last must apply always. Return how many there are, at least 1. */
uint32_t sched_gpu_gemm(const Plan *plan, const Kernel *kernel, GemmLaunch launch,
                        const Target *target, Variant *variants);
/* The most columns of the GEMM that one block of a GPU can have whole; 0: none. */
int64_t sched_gemm_widest_rows(const Plan *plan, const Kernel *kernel);
/* The dynamic part of `bytes` of shared memory: none if the kernel may declare all of them, else
 * all. */
static inline uint32_t sched_gemm_dynamic_bytes(uint32_t bytes) {
    return bytes > STATIC_SHARED_BYTES ? bytes : 0;
}
/* Whether a GPU multiplies such operands on tensor cores. */
bool sched_gemm_has_tensor_cores(Dtype operands, Precision precision);
/* Whether operands are copied to shared memory 16 bytes at a time where they lie so that they can.
 */
bool sched_gpu_gemm_copies(const Plan *plan, const Kernel *kernel);
/* Tensor cores: both operands f16, bf16, f64, or f32 with precision tf32. sched_gpu_gemm calls it.
 * `is_spare`: the last variant, which always applies, is for odd pointers and small products. */
uint32_t sched_mma(const Plan *plan, const Kernel *kernel, GemmLaunch launch, const Target *target,
                   bool is_spare, Variant *variants);
/* Whether such a variant copies both operands to shared memory, several steps of k ahead. */
bool sched_mma_copies(const Kernel *kernel, const Variant *variant);
/* Of operands of this dtype, the most columns of a tile. */
int64_t sched_mma_widest_rows(Dtype dtype);
/* The same from shared memory, for targets that have it: 0 when the operands do not lie so that the
 * copy engine can fetch them. Each variant's maps are a condition; something must follow them. */
uint32_t sched_wgmma(const Plan *plan, const Kernel *kernel, GemmLaunch launch,
                     const Target *target, Variant *variants);
/* Whether the maps can be made wherever pointers are aligned and the product is not small. */
bool sched_wgmma_fits(const Plan *plan, const Kernel *kernel);
/* Whether both are such, of the same lhs and of rhs operands that lie alike: then the same
 * blocks can make both. */
bool sched_wgmma_goes_with(const Plan *plan, const Kernel *a, const Kernel *b);

/* CPU: the axis (m or n) along which the register tile's elements lie side by side, and how many of
 * them a tile has. */
typedef struct GemmPanel {
    uint32_t axis, width;
} GemmPanel;
GemmPanel sched_cpu_gemm_panel(const Kernel *kernel, const Target *target);
/* CPU: the most columns of the GEMM that a unit can have whole. */
int64_t sched_cpu_gemm_widest_rows(const Kernel *kernel, const Target *target);
/* CPU: whether both are of the same lhs along the same k, with rhs operands that lie
 * alike: then one pass over the rows makes both. */
bool sched_cpu_gemm_goes_with(const Kernel *a, const Kernel *b);
/* One row, or one column where `is_column`. sched_gpu_gemm calls it. */
uint32_t sched_gemv(const Kernel *kernel, const Target *target, bool is_column, Variant *variants);
/* The same for a variant of a launch of one block (launch/one_block.c), in blocks of its number of
 * threads. */
void sched_gemv_one_block(const Kernel *kernel, Variant *variant);
uint32_t sched_cpu_gemm(const Kernel *kernel, GemmLaunch launch, const Target *target,
                        Variant *variants);

/* GPU: one block per tile and batch; of all parts of the launch. */
DimId gemm_gpu_grid(const Kernel *kernel, uint32_t tile_m, uint32_t tile_n);
DimId gemm_launch_grid(const GemmLaunch *launch, const Kernel *kernel, uint32_t tile_m,
                       uint32_t tile_n);

#endif
