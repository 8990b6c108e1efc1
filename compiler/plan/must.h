/* What `fuse must` blocks ask of a plan: no value passes through memory from one op of a block to
 * another. What an init step prepares for a run is as good as a param, and breaks no block. */
#ifndef FUSEC_PLAN_MUST_H
#define FUSEC_PLAN_MUST_H

#include "plan/plan.h"

/* Whether the edge lies inside a `fuse must` block and its value is stored. */
bool must_breaks(const Plan *plan, const Edge *edge);

/* How many edges inside `fuse must` blocks are stored, by the plan as it is: linking launches may
 * leave fewer. */
uint32_t must_n_broken(const Plan *plan);

#endif
