/* Parts of buffers and constants as arguments. Kernels that differ in nothing but the place where
 * they begin to read, as the steps of a loop over x[t] do, get pointers to these places. Kernels
 * that differ in nothing but constants get these. So they become one function.
 *
 *   kernel of step 1: 2 * x[512 + i]      launch 1: 2, the part of x from 512 on    given0 * x[i]
 *   kernel of step 2: 3 * x[1024 + i]     launch 2: 3, the part of x from 1024 on   given0 * x[i]
 */
#ifndef FUSEC_LAUNCH_PART_H
#define FUSEC_LAUNCH_PART_H

#include "pipeline/pipeline.h"

/* Sets Kernel.parts where that makes kernels equal, and Kernel.code. Requires composed launches. */
void parts_classify(const Planning *p, const Plan *const *plans, uint32_t n_plans);

#endif
