/* The cost model: what a scheduled plan moves, computes and takes at given values of the dims on a
 * card. Numbers for decisions and for people: fusion asks it, the ledger prints it.
 *
 * A kernel takes its launch and then the longest of memory, arithmetic and tensor cores; with few
 * warps on a processor part of the others too, since nothing hides it. Bytes are
 * those of DRAM: what a kernel touches (cost/kernel/footprint.h), without what still lies in the
 * cache because it was written or read shortly before, and again for every pass over rows that the
 * cache cannot hold; registers that spill are priced by the cache that holds them. Inputs are cold.
 * Buffers on chip move nothing; on a CPU temps that fit the cache take no time of DRAM. Init steps
 * are priced by themselves, and are none of a run's totals; what they prepared is as cold as a
 * param. Requires a scheduled plan; a plan that is not placed has no workspace to tell of. */
#ifndef FUSEC_COST_COST_H
#define FUSEC_COST_COST_H

#include "cost/kernel/footprint.h"
#include "machine/tuning.h"
#include "cost/pressure.h"

/* Per kernel of the plan. Bytes are of DRAM, times in microseconds. */
typedef struct KernelCost {
    uint32_t variant; /* the one that runs, pointers being aligned */
    bool starts;      /* it has something to do here, and no others stand for it */
    double read_bytes, written_bytes;
    double cache_bytes; /* through the last level of the cache, those of DRAM among them */
    double n_prims;     /* instructions, roughly, over all elements */
    double n_flops;     /* of a GEMM: two for each product */
    double n_blocks;
    double launch_us; /* 0 for what runs in the launch of a kernel before it */
    double memory_us, arithmetic_us, tensor_us;
    double spill_us; /* of registers that are written to memory and read back */
    double us;       /* launch_us, the longest of the others, and what it does not hide */
    Pressure pressure;
} KernelCost;

typedef struct PlanCost {
    const Plan *plan;
    const Card *card;
    const int64_t *dims;
    KernelCost *kernels;                  /* plan->kernels.n */
    uint32_t n_init;                      /* the first kernels, which are none of a run */
    uint32_t n_init_steps;                /* launches of those */
    double init_bytes, init_us;           /* over them: read and written */
    uint32_t n_launches;                  /* of a run, as are the totals below */
    double read_bytes, written_bytes, us; /* over all its kernels */
    double least_bytes; /* that any program moves: what is used of each input, each output, once */
    double workspace_bytes, unshared_bytes; /* with and without reuse */
    double bound_bytes; /* inputs, params, outputs and what is kept prepared, all in full */
} PlanCost;

/* Values of the dims, by symbol, for those without one in `given` (indexed by symbol, or NULL;
 * negative: not given): COST_DEFAULT_DIM, moved into the dim's range and down to its multiple. */
int64_t *cost_dims(Arena *arena, const DimTab *dims, const int64_t *given);

/* Where plans are compared that have to serve all values of the dims: on the diagonal, which is at
 * those of cost_dims, and with every dim at its least, at two small sizes, where tiles and blocks
 * run out, and at its largest value or COST_LARGE_DIM; and in corners, where one of the first
 * dims is at its least and the others are at their largest, or the other way round. Each point
 * once. On a CPU no dim is less than COST_SHORT_DIM without need: rows of a few elements take their
 * reductions' ends, fused, and a plan for all sizes should not hang on them. */
enum {
    COST_DIAGONAL_POINTS = 5,
    COST_CORNER_DIMS = 4,
    COST_MAX_POINTS = COST_DIAGONAL_POINTS + 2 * COST_CORNER_DIMS
};
typedef struct CostPoints {
    const int64_t *dims[COST_MAX_POINTS]; /* by symbol; the first is cost_dims' */
    uint32_t n, n_diagonal;               /* the first ones are the diagonal's */
} CostPoints;
CostPoints cost_points(Arena *arena, const DimTab *dims, DeviceClass device);

/* `dims` by symbol, as made by cost_dims. Results live on the arena. */
PlanCost *cost_plan(Arena *arena, const Plan *plan, const Card *card, const int64_t *dims);
/* The time of a run alone. It takes as long as the kernels are many, not the plan's buffers. */
double cost_us(Arena *arena, const Plan *plan, const Card *card, const int64_t *dims);

#endif
