/* What the files of the cost model share while they price a plan. */
#ifndef FUSEC_COST_KERNEL_PRICING_H
#define FUSEC_COST_KERNEL_PRICING_H

#include "cost/cost.h"
#include "plan/launch.h"

/* What the kernels of a launch have in common whose blocks run side by side. */
typedef struct Beside {
    bool is_any; /* the launch at hand has such kernels */
    uint32_t variant;
    double n_blocks;
    Pressure most; /* of the kernel of which fewest blocks fit on a processor */
} Beside;

typedef struct Coster {
    Arena *arena;
    PlanCost *out;
    const Plan *plan;
    const Card *card;
    const DimTab *dims;
    const int64_t *values;
    const Launch *launch; /* at hand */
    Beside beside;        /* of it */
    double *touched; /* per buffer: `passed` before the last kernel that touched it, plus 1; 0: none
                        did; negative: the kernel at hand does */
    FootprintSeen *seen;          /* per buffer: what the cache may have of it */
    double passed;                /* bytes of DRAM so far */
    bool launch_begun, has_begun; /* something of this launch, something at all has started */
} Coster;

/* One kernel being priced. */
typedef struct Pricing {
    const Kernel *kernel;
    const Variant *variant;
    KernelCost *cost;
    bool begins;            /* the launch: those of it before have nothing to do */
    double rows, reduced;   /* iteration points: rows x reduced */
    double held_bytes;      /* read for the first time, from the cache */
    double left_bytes;      /* CPU: written to temps that the cache holds until they are read */
    double n_beside;        /* blocks of the launch, whose parts run side by side */
    double bytes_in_flight; /* of one thread, over all its loads of a step */
    double parallel;        /* prims of an element that a thread may have under way at once */
    double wait_us;         /* for them, before the thread goes on to the next step or ends */
} Pricing;

static inline double cost_number(const Coster *c, DimId dim) {
    return dim_number(c->dims, dim, c->values);
}

/* Whether the kernel continues a sequence, in the blocks and by the variant of the kernel before.
 */
static inline bool cost_continues_sequence(const Coster *c, const Kernel *kernel) {
    return launch_is_sequence(c->launch) && kernel != launch_kernel(c->plan, c->launch, 0);
}

/* Whether the kernel is rows that continue a product, in its blocks. */
static inline bool cost_is_sequence_rows(const Coster *c, const Kernel *kernel) {
    return cost_continues_sequence(c, kernel) && form_info(kernel->form)->reduces_rows;
}

#endif
