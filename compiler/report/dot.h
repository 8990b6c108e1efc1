/* Prints plans in the DOT language of Graphviz (dot -Tsvg). Each kernel is a cluster around its
 * ops, each launch of several kernels is a cluster around those. Edges through memory show their
 * bytes. */
#ifndef FUSEC_REPORT_DOT_H
#define FUSEC_REPORT_DOT_H

#include "plan/plan.h"

void dot_print(Arena *arena, const Plan *const *plans, uint32_t n_plans, Text *out);

#endif
