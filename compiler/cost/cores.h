/* The time of kernels on the cores of a CPU. A launch runs on as many of them as it is worth. */
#ifndef FUSEC_COST_CORES_H
#define FUSEC_COST_CORES_H

#include "cost/pricing.h"

/* Bytes of all tensors that the plan's kernels touch. What fits a cache is there when a run begins:
 * the caller has just computed it, or the run before has read it. */
double cores_working_bytes(const Coster *c);

/* Sets the times of a kernel, whose bytes and instructions are counted. */
void cores_time_kernel(const Coster *c, Pricing *p);

#endif
