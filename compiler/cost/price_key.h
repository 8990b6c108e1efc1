/* Everything of a plan that the cost model and the modes of launches read, as words: its launches,
 * kernels, schedules and buffers, but not nodes, names, numbers of buffers and values of constants.
 * Plans with equal keys have equal prices on one target. */
#ifndef FUSEC_COST_PRICE_KEY_H
#define FUSEC_COST_PRICE_KEY_H

#include "machine/target.h"
#include "plan/plan.h"

/* Appends the plan's words to a key on `arena`. Returns false if the prices depend on more, or the
 * key is too long. */
bool price_key_write(Arena *arena, VecU32 *key, Arena *scratch, const Plan *plan,
                     const Target *target);

#endif
