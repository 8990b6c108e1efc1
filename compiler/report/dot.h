/* Plans in the DOT language: kernels as clusters around their ops, launches of several kernels as
 * clusters around those, edges through memory with their bytes. For Graphviz: dot -Tsvg. */
#ifndef FUSEC_REPORT_DOT_H
#define FUSEC_REPORT_DOT_H

#include "plan/plan.h"

void dot_print(Arena *arena, const Plan *const *plans, uint32_t n_plans, Text *out);

#endif
