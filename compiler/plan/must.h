/* `fuse must` blocks: within a block, no value goes from one launch to another through global
 * memory. A value that an init kernel prepares counts as a param and breaks no block. */
#ifndef FUSEC_PLAN_MUST_H
#define FUSEC_PLAN_MUST_H

#include "plan/plan.h"

/* Whether the edge lies inside a `fuse must` block and its value is stored. */
bool must_breaks(const Plan *plan, const Edge *edge);

/* The number of edges inside `fuse must` blocks that the plan stores. Joining launches may reduce
 * it later. */
uint32_t must_n_broken(const Plan *plan);

#endif
