/* The work and time of templates whose threads loop over elements of their own. */
#ifndef FUSEC_COST_KERNEL_LOOPS_H
#define FUSEC_COST_KERNEL_LOOPS_H

#include "cost/kernel/template.h"

/* CPU: the factor by which a last step of lanes without elements makes a kernel longer. */
double cost_lane_fill(const Coster *c, const Pricing *p);
/* The share of the machine that has work if each processor could use `wanted` warps. */
double cost_use(const Coster *c, const Pricing *p, double wanted);

/* The loads in flight of a thread that processes `steps` steps at once. */
void cost_steps_load(const Coster *c, Pricing *p, bool *const *live, double steps);

#endif
