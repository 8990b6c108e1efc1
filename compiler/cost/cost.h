/* The cost model: predicts the memory traffic, instructions and time of a scheduled plan at given
 * dims on a card. Search, launch, split and layout decide by it, and the ledger prints it.
 *
 * The time of a kernel is its launch plus the longest of memory, arithmetic and tensor cores. With
 * few warps per processor, a part of the others is added, because nothing hides it. Bytes are those
 * of DRAM: the kernel's footprint (cost/count/footprint.h) without data that is still in the
 * cache, and again for every pass over rows that the cache cannot hold. Spilled registers are
 * counted at the cache that holds them. Inputs are cold. Buffers in shared memory or registers
 * cause no traffic; on a CPU, temps that fit the cache take no DRAM time. Init steps are predicted
 * separately and are not in a run's totals; prepared tensors are as cold as params. The plan must
 * be scheduled; an unplaced plan has no workspace to report. */
#ifndef FUSEC_COST_COST_H
#define FUSEC_COST_COST_H

#include "cost/count/footprint.h"
#include "machine/tuning.h"
#include "cost/pressure.h"

/* The cost of one kernel of the plan. Bytes are of DRAM, times in microseconds. */
typedef struct KernelCost {
    uint32_t variant; /* the variant that runs with aligned pointers */
    bool starts;      /* it has elements at these dims, and no other version of its choice runs */
    double read_bytes, written_bytes;
    double cache_bytes; /* through the last-level cache, including those of DRAM */
    double n_prims;     /* approximate number of instructions over all elements */
    double n_flops;     /* for a GEMM: two per multiply-add */
    double n_blocks;
    double launch_us; /* 0 if an earlier kernel's launch includes it */
    double memory_us, arithmetic_us, tensor_us;
    double spill_us; /* of registers that are spilled and read back */
    double us;       /* launch_us, plus the longest of the others, plus the time that it does not
                      * hide */
    Pressure pressure;
} KernelCost;

typedef struct PlanCost {
    const Plan *plan;
    const Card *card;
    const int64_t *dims;
    KernelCost *kernels;                  /* plan->kernels.n */
    uint32_t n_init;                      /* init kernels, which are the first ones and not part of
                                           * a run */
    uint32_t n_init_steps;                /* launches of init kernels */
    double init_bytes, init_us;           /* of init kernels; bytes are read plus written */
    uint32_t n_launches;                  /* of a run, as are the totals below */
    double read_bytes, written_bytes, us; /* over all kernels of a run */
    double least_bytes; /* moved by any program: the used part of each input, and each output,
                         * once */
    double workspace_bytes, unshared_bytes; /* with and without reuse of memory */
    double bound_bytes; /* inputs, params, outputs and prepared tensors, in full */
} PlanCost;

/* The values of the dims by symbol. A symbol without one in `given` (by symbol, or NULL; negative:
 * not given) gets COST_DEFAULT_DIM, moved into its range and down to its multiple. */
int64_t *cost_dims(Arena *arena, const DimTab *dims, const int64_t *given);

/* The points at which plans for all values of the dims are compared. The diagonal has the values of
 * cost_dims; every dim at its least value; at two small sizes, where tiles and blocks run out; and
 * at its largest value or COST_LARGE_DIM. The corners have one of the first dims at its least value
 * and the others at their largest, or the reverse. Each point occurs once. On a CPU no dim is less
 * than COST_SHORT_DIM if its range allows: the fixed costs of rows of a few elements should not
 * decide a plan for all sizes. */
enum {
    COST_DIAGONAL_POINTS = 5,
    COST_CORNER_DIMS = 4,
    COST_MAX_POINTS = COST_DIAGONAL_POINTS + 2 * COST_CORNER_DIMS
};
typedef struct CostPoints {
    const int64_t *dims[COST_MAX_POINTS]; /* by symbol; the first point is that of cost_dims */
    uint32_t n, n_diagonal;               /* the diagonal comes first */
} CostPoints;
CostPoints cost_points(Arena *arena, const DimTab *dims, const DeviceTraits *device);
/* The same points, of which no dim is less than `least` if its range allows. */
CostPoints cost_points_from(Arena *arena, const DimTab *dims, int64_t least);

/* `dims` are by symbol, from cost_dims. Results are on the arena. */
PlanCost *cost_plan(Arena *arena, const Plan *plan, const Card *card, const int64_t *dims);
/* Predicts all kernels and the time of a run, but not least_bytes, bound_bytes, workspace_bytes and
 * unshared_bytes: in time proportional to the kernels, not to the plan's buffers too. */
PlanCost *cost_kernels(Arena *arena, const Plan *plan, const Card *card, const int64_t *dims);
/* The time of a run, by cost_kernels. */
double cost_us(Arena *arena, const Plan *plan, const Card *card, const int64_t *dims);

#endif
