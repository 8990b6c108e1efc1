/* What a processor computes for the points of a kernel, in prims: instructions of one lane. */
#ifndef FUSEC_COST_KERNEL_PRIMS_H
#define FUSEC_COST_KERNEL_PRIMS_H

#include "machine/card.h"
#include "plan/plan.h"

/* Of one scalar; those of f64 take as long as several. */
double scalar_prims(const Card *card, const Kernel *kernel, ScalarId id);
/* In prims, of storing a value or of loading it: as a load of an argument without its index. */
/* Of storing a value that a row keeps, or of loading it. */
double row_cache_prims(const Card *card, const Kernel *kernel, ScalarId id);
/* Of a row of FORM_ROW on a CPU beside its elements; else 0. `dims` by symbol; `live`: per
 * stage, and of the stores after the last, what it has. */
double row_end_prims(const Card *card, const Kernel *kernel, const Variant *variant,
                     const int64_t *dims, bool *const *live);
/* GPU, of an element of a row that is accessed by single elements: what its loads and stores take
 * beside those of vectors; else 0. */
double single_access_prims(const Card *card, const Plan *plan, const Kernel *kernel,
                           const Sched *sched);
/* The share of memory's rate that such rows reach: sums of 7 to 16383 columns took 35 to 48 us in
 * bf16 and 33 to 40 in f32, of whole vectors 33. */
double single_access_share(const Card *card, const Kernel *kernel, const Sched *sched);
/* Of a unit of FORM_MAP on a CPU beside its elements; else 0. */
double map_unit_prims(const Card *card, const Kernel *kernel);
/* Of an element of a flat map, for where it is. */
double flat_prims(Arena *arena, const Kernel *kernel);

/* Prims of an element that may go on at once: all over those that wait for one another, stage by
 * stage. */
double parallel_prims(Arena *arena, const Card *card, const Kernel *kernel, bool *const *live);

#endif
