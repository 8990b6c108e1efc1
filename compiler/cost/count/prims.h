/* The instructions of a kernel's points, in primitives: instructions of one lane. */
#ifndef FUSEC_COST_COUNT_PRIMS_H
#define FUSEC_COST_COUNT_PRIMS_H

#include "machine/card.h"
#include "plan/plan.h"

/* The primitives of one scalar; f64 counts several, and so do elements that a CPU computes one by
 * one. `lanes` are the schedule's. */
double scalar_prims(const Card *card, const Kernel *kernel, ScalarId id, uint32_t lanes);
/* The instructions of the combination of two elements. */
double combine_prims(const Card *card, const Reduce *reduce);
/* The primitives of a reduction that takes one element. */
double reduce_prims(const Card *card, const Reduce *reduce, uint32_t lanes);
/* The primitives of storing a cached row value, or of loading it. */
double row_cache_prims(const Card *card, const Kernel *kernel, ScalarId id);
/* The primitives of a row of FORM_ROW on a CPU beside its elements; else 0. `dims` are by symbol.
 * `live`: per stage, and for the final stores, the scalars that it needs. */
double row_end_prims(const Card *card, const Kernel *kernel, const Variant *variant,
                     const int64_t *dims, bool *const *live);
/* GPU: the additional primitives of an element of a row that is accessed element by element instead
 * of by vectors; else 0. */
double single_access_prims(const Card *card, const Plan *plan, const Kernel *kernel,
                           const Sched *sched);
/* The share of memory bandwidth that such rows reach: sums of 7 to 16383 columns took 35 to 48 us
 * in bf16 and 33 to 40 in f32; whole vectors took 33. */
double single_access_share(const Card *card, const Kernel *kernel, const Sched *sched);
/* Of the primitives of a scalar of a CPU's map: those of its address that are computed once for a
 * work unit. 0 for other kernels. */
double map_shared_prims(const Card *card, const Kernel *kernel, const Sched *sched, ScalarId id);
/* The primitives of a work unit of FORM_MAP on a CPU beside its elements; else 0. `live` as above.
 */
double map_unit_prims(const Card *card, const Kernel *kernel, const Sched *sched,
                      bool *const *live);
/* The primitives of an element of a flat map for its coordinates. */
double flat_prims(Arena *arena, const Kernel *kernel);

/* The primitives of an element that can be in flight at once: all of them divided by the longest
 * dependent chain, stage by stage. */
double parallel_prims(Arena *arena, const Card *card, const Kernel *kernel, bool *const *live);

#endif
