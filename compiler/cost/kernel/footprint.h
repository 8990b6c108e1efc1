/* Footprints: which elements of a buffer a kernel touches, at given values of the dims, found from
 * its index expressions and guards. An estimate in two places, both said in footprint.c: gathered
 * positions are taken as drawn at random and each counts once, and accesses whose expressions
 * differ in more than an offset as disjoint until the buffer is full. */
#ifndef FUSEC_COST_KERNEL_FOOTPRINT_H
#define FUSEC_COST_KERNEL_FOOTPRINT_H

#include "plan/plan.h"

/* What some accesses to one buffer touch. */
typedef struct Footprint {
    double elems; /* distinct */
    double bytes; /* of the sectors they lie in */
} Footprint;

typedef struct FootprintHulls FootprintHulls;

/* Of `kernel`'s loads from `buffer` among the scalars marked in `live` (scalar_count + 1 flags;
 * NULL: all). `dims` by symbol. */
Footprint footprint_loads(Arena *arena, const Plan *plan, const Kernel *kernel, uint32_t buffer,
                          const bool *live, const int64_t *dims);
/* What of a buffer some kernels, one after the other, have touched. Of loads whose addresses are
 * made of axes alone it is known which, of others how many. Zeros to begin with. */
typedef struct FootprintSeen {
    FootprintHulls *hulls; /* NULL: none */
    double bytes;          /* of all */
} FootprintSeen;
/* The bytes of `own`, what footprint_loads gives, that were not touched before; from now on they
 * are. */
double footprint_see_loads(Arena *arena, const Plan *plan, const Kernel *kernel, uint32_t buffer,
                           const bool *live, const int64_t *dims, Footprint own,
                           FootprintSeen *seen);
void footprint_see_stores(Arena *arena, const Plan *plan, const Kernel *kernel, uint32_t buffer,
                          const int64_t *dims, Footprint own, FootprintSeen *seen);
/* The buffer that loads from `buffer` read at these values of the dims: of a copy without elements
 * what it stands for, else itself. */
uint32_t footprint_source(const Plan *plan, uint32_t buffer, const int64_t *dims);
/* Of what all kernels from `first` on read of `buffer`, by itself or for a copy that is none here,
 * once each: the loads of the kernel that loads most, or all whose addresses are made of axes
 * alone, where that is more. */
Footprint footprint_least_loads(Arena *arena, const Plan *plan, uint32_t first, uint32_t buffer,
                                const int64_t *dims);
/* Of its stores to `buffer`. */
Footprint footprint_stores(Arena *arena, const Plan *plan, const Kernel *kernel, uint32_t buffer,
                           const int64_t *dims);

/* Times that a value is computed: the product of the extents of the axes (bit set). */
double footprint_points(const Kernel *kernel, uint32_t axes, const int64_t *dims);

/* The part of the places of its axes that a guard leaves, 0 to 1. */
double footprint_guard_share(const Kernel *kernel, GuardId guard, const int64_t *dims);

/* Per scalar that a stage (the number of stages: the stores after all) needs: the part of the
 * stage's points at which it is computed, from 0 to 1, which is less for what one guarded store
 * alone needs. */
double *footprint_shares(Arena *arena, const Kernel *kernel, uint32_t stage, const int64_t *dims);

#endif
