/* The state of the cost model while it predicts a plan; shared by its files. */
#ifndef FUSEC_COST_PRICING_H
#define FUSEC_COST_PRICING_H

#include "cost/cost.h"
#include "plan/launch.h"

/* Common facts of a launch's parallel kernels. */
typedef struct Beside {
    bool is_any; /* the current launch has such kernels */
    uint32_t variant;
    double n_blocks;
    Pressure most; /* of the kernel with the fewest blocks per processor */
} Beside;

typedef struct KnownKernel KnownKernel; /* cost/known.h */

typedef struct Coster {
    Arena *arena;
    PlanCost *out;
    const Plan *plan;
    const Card *card;
    const DimTab *dims;
    const int64_t *values;
    const Launch *launch; /* the current launch */
    Beside beside;        /* its parallel kernels */
    double *touched; /* per buffer: `passed` before the last kernel that touched it, plus 1; 0: none
                      * did; negative: the current kernel does */
    Vec(KnownKernel) known;       /* by program */
    FootprintSeen *seen;          /* per buffer: the part that the cache may hold */
    double passed;                /* bytes of DRAM traffic so far */
    double working_bytes;         /* CPU: of all tensors of a run */
    bool launch_begun, has_begun; /* a kernel of this launch has started; any kernel has */
} Coster;

/* The prediction of one kernel. */
typedef struct Pricing {
    const Kernel *kernel;
    const Variant *variant;
    KernelCost *cost;
    bool begins;            /* it starts the launch: earlier kernels of the launch have no
                             * elements */
    double rows, reduced;   /* rows x reduced elements are the iteration points */
    double held_bytes;      /* first reads that hit the cache */
    double searched_bytes;  /* of all reads, in bytes of DRAM: those of a search, which no other
                             * loads are in flight with */
    double left_bytes;      /* CPU: bytes written to temps that stay in the cache until they are
                             * read */
    double n_beside;        /* blocks of the launch, over all parallel kernels */
    double bytes_in_flight; /* per thread, over all loads of a step */
    double parallel;        /* primitives of an element that a thread can have in flight */
    double wait_us;         /* latency of the loads before the thread continues with the next step
                             * or ends */
} Pricing;

static inline double cost_number(const Coster *c, DimId dim) {
    return dim_number(c->dims, dim, c->values);
}

/* Whether the buffer is still in the cache: less than the cache's size has passed since the kernel
 * that touched it began. */
static inline bool cost_is_cached(const Coster *c, uint32_t buffer) {
    return c->touched[buffer] > 0 && c->passed - (c->touched[buffer] - 1) <= c->card->cache_bytes;
}

/* Whether the kernel continues a sequence, in the blocks and by the variant of the kernel
 * before. */
static inline bool cost_continues_sequence(const Coster *c, const Kernel *kernel) {
    return launch_is_sequence(c->launch) && kernel != launch_kernel(c->plan, c->launch, 0);
}

/* Whether the kernel is a row kernel that continues a GEMM in its blocks. */
static inline bool cost_is_sequence_rows(const Coster *c, const Kernel *kernel) {
    return cost_continues_sequence(c, kernel) && form_info(kernel->form)->reduces_rows;
}

#endif
