/* Schedules of GEMMs, by device class. */
#ifndef FUSEC_SCHEDULE_GEMM_H
#define FUSEC_SCHEDULE_GEMM_H

#include "machine/machine.h"
#include "machine/target.h"
#include "plan/plan.h"

/* The other kernels of a GEMM's launch. Either n_gemms GEMMs with a common lhs [M,K] share blocks
 * (wgmma) or units (CPU), or n_kernels parallel GEMMs (this one among `kernels`) fill the machine
 * together; 1 and 0: neither. Or has_rows: a row kernel follows in the same blocks or
 * units. Then a tile must hold whole rows, of at most sched_gemm_widest_rows or
 * sched_cpu_gemm_widest_rows columns; on a GPU values passed to it take row_bytes of shared memory
 * per row. */
typedef struct GemmLaunch {
    uint32_t n_gemms, n_kernels;
    const Kernel *kernels;
    bool has_rows;
    /* CPU: the rows are the lhs of another GEMM in the same units. Both GEMMs have register tiles
     * of as many rows. */
    bool is_in_trio;
    uint32_t row_bytes;
} GemmLaunch;

/* Results that a thread of a GEMM on tensor cores stores at once, if rows allow it. */
enum { GEMM_STORE_LANES = 4 };

/* The GEMMs that fill the machine together. */
static inline const Kernel *gemm_launch_kernels(const GemmLaunch *launch, const Kernel *kernel,
                                                uint32_t *n) {
    *n = launch->n_kernels ? launch->n_kernels : 1;
    return launch->n_kernels ? launch->kernels : kernel;
}

/* The most columns of a GEMM whose whole rows fit one block of a GPU; 0: none. */
int64_t sched_gemm_widest_rows(const Plan *plan, const Kernel *kernel);
/* The dynamic part of `bytes` of shared memory: none if the kernel may declare all of them, else
 * all. */
static inline uint32_t sched_gemm_dynamic_bytes(uint32_t bytes) {
    return bytes > STATIC_SHARED_BYTES ? bytes : 0;
}
/* Whether a GPU multiplies operands of this dtype on tensor cores. */
bool sched_gemm_has_tensor_cores(Dtype operands, Precision precision);
bool gemm_has_tensor_cores(const Kernel *kernel);
/* Whether each output is computed by itself: k is one, or the GEMM is too small for a tile. */
bool sched_naive_may(const Plan *plan, const Kernel *kernel);
/* Whether the GEMM is computed in another way, and has one row or one column, in the kernel and in
 * the graph's operands. */
bool sched_gemv_may(const Plan *plan, const Kernel *kernel);
/* The most columns of a tile of fused multiply-adds. */
int64_t sched_simt_widest_rows(void);
/* The outer batch axes of the graph's matmul. Along the axes from there to m the rhs has one
 * element, so they are rows (fuse/inline/inline_axes.h). */
uint32_t gemm_n_batch_axes(const Graph *graph, const Node *matmul);
/* GPU: whether an address, or an axis padded to tiles, may need 64 bits. */
bool gemm_is_wide(const Plan *plan, const Kernel *kernel);
/* The arguments (bit set) that the GEMM accesses contiguously along the axis, in runs of `lanes`
 * elements. are_whole: each run also begins at a multiple of `lanes` elements. */
uint64_t gemm_run_args(const Kernel *kernel, uint32_t axis, uint32_t lanes, bool are_whole);
/* Whether the operands are copied to shared memory in 16-byte accesses where their layout allows
 * it. */
bool sched_gpu_gemm_copies(const Plan *plan, const Kernel *kernel);
/* The most columns of a tile with operands of this dtype. */
int64_t sched_mma_widest_rows(Dtype dtype);
/* Whether the target multiplies the kernel's operands by wgmma, if the copy engine can fetch them.
 */
bool sched_wgmma_may(const Plan *plan, const Kernel *kernel, const Target *target);
/* Whether the same blocks can compute both GEMMs by wgmma: they have a common lhs, and rhs operands
 * of the same layout. */
bool sched_wgmma_goes_with(const Plan *plan, const Kernel *a, const Kernel *b);

/* Gives the three kernels of a gemm-rows-gemm launch their variants, one for aligned pointers and
 * one for any: they lie on the scratch arena, what they refer to on the other. */
void sched_gemm_rows_gemm(Arena *arena, Arena *scratch, const Plan *plan, Kernel *const *kernels);

/* The same for a matmul and the online kernel that reads its scores. */
void sched_gemm_online(Arena *arena, Arena *scratch, const Target *target, const Plan *plan,
                       Kernel *scores, Kernel *result);
/* CPU: whether a unit of the online kernel can compute its scores by this matmul; and then one
 * variant of both. */
bool sched_cpu_gemm_online_may(const Kernel *scores, const Kernel *result, const Target *target);
void sched_cpu_gemm_online(Arena *scratch, const Target *target, Kernel *scores, Kernel *result);

/* CPU: the contiguous axis (m or n) of the register tile, and the number of its elements in a tile
 * of the target's best level. False: other levels have tiles along the other axis. */
typedef struct GemmPanel {
    uint32_t axis, width;
} GemmPanel;
bool sched_cpu_gemm_panel(const Kernel *kernel, const Target *target, GemmPanel *panel);
/* CPU: the most columns of a GEMM whose whole rows fit one work unit. */
int64_t sched_cpu_gemm_widest_rows(const Kernel *kernel, const Target *target);
/* CPU: whether the GEMM may be one of two in GemmLaunch.is_in_trio; and the bytes of a unit's
 * operands and partial results on the stack, at most. */
bool sched_cpu_gemm_is_in_trio(const Kernel *kernel, const Target *target);
int64_t sched_cpu_gemm_stack_bytes(const Kernel *kernel, const Sched *sched);
/* CPU: whether one loop over k can compute both GEMMs: they have a common lhs, the same k, and rhs
 * operands of the same layout. */
bool sched_cpu_gemm_goes_with(const Kernel *a, const Kernel *b);
/* GPU: one block per tile and batch; gemm_launch_grid: over all parallel GEMMs of the launch. */
DimId gemm_gpu_grid(const Kernel *kernel, uint32_t tile_m, uint32_t tile_n);
DimId gemm_launch_grid(const GemmLaunch *launch, const Kernel *kernel, uint32_t tile_m,
                       uint32_t tile_n);

#endif
