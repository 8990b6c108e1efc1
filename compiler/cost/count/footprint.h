/* Footprints: the elements of a buffer that a kernel touches at given dims, found from its index
 * expressions and guards. It is an estimate in two respects: gathered positions count as random,
 * each once; and accesses whose expressions differ in more than an offset count as disjoint until
 * the buffer is full. */
#ifndef FUSEC_COST_COUNT_FOOTPRINT_H
#define FUSEC_COST_COUNT_FOOTPRINT_H

#include "plan/plan.h"

/* The elements of one buffer that some accesses touch. */
typedef struct Footprint {
    double elems; /* distinct */
    double bytes; /* bytes of their sectors */
} Footprint;

typedef struct FootprintHulls FootprintHulls;

/* The footprint of the kernel's loads from `buffer`, among the scalars marked in `live`
 * (scalar_count + 1 flags; NULL: all). `dims` are by symbol. */
Footprint footprint_loads(Arena *arena, const Plan *plan, const Kernel *kernel, uint32_t buffer,
                          const bool *live, const int64_t *dims);
/* The part of a buffer that a series of kernels has touched. For loads with addresses of axes alone
 * the elements are known, for others only their number. Starts as zeros. */
typedef struct FootprintSeen {
    FootprintHulls *hulls; /* NULL: none */
    double bytes;          /* of all accesses */
} FootprintSeen;
/* The bytes of `own` (a result of footprint_loads) that no earlier kernel touched; they count as
 * touched from now on. */
double footprint_see_loads(Arena *arena, const Plan *plan, const Kernel *kernel, uint32_t buffer,
                           const bool *live, const int64_t *dims, Footprint own,
                           FootprintSeen *seen);
void footprint_see_stores(Arena *arena, const Plan *plan, const Kernel *kernel, uint32_t buffer,
                          const int64_t *dims, Footprint own, FootprintSeen *seen);
/* The least footprint of all reads of `buffer` (or of a copy of it that is empty here) by these
 * kernels, each element once: the kernel with the most loads, or all loads with addresses of axes
 * alone if they touch more. */
Footprint footprint_least_loads(Arena *arena, const Plan *plan, const VecU32 *readers,
                                uint32_t buffer, const int64_t *dims);
/* The footprint of the kernel's stores to `buffer`. */
Footprint footprint_stores(Arena *arena, const Plan *plan, const Kernel *kernel, uint32_t buffer,
                           const int64_t *dims);

/* The number of times that a value is computed: the product of the extents of the axes (bit
 * set). */
double footprint_points(const Kernel *kernel, uint32_t axes, const int64_t *dims);

/* The share of points of its axes at which a guard holds, 0 to 1. */
double footprint_guard_share(const Kernel *kernel, GuardId guard, const int64_t *dims);

/* `n` elements of an axis that are computed together if one of them is needed. */
typedef struct FootprintStep {
    uint32_t axis;
    double n;
} FootprintStep;
static const FootprintStep footprint_no_step = {NO_AXIS, 1};

/* Per scalar that a stage needs (stage number n: the final stores): the share of the stage's points
 * at which it is computed, 0 to 1. It is less than 1 if only one guarded store needs the scalar. */
double *footprint_shares(Arena *arena, const Kernel *kernel, uint32_t stage, FootprintStep step,
                         const int64_t *dims);

#endif
