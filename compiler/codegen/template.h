/* Templates: one per device class and kernel form. A template emits the loops of a kernel function
 * whose Lower is ready (pointers, symbols, entry; the builder stands after the entry block) and
 * returns with the builder at the end of its last block; lower.c adds the `ret`. Templates read the
 * kernel, its variant's Sched and the target, and get every value through points. */
#ifndef FUSEC_CODEGEN_TEMPLATE_H
#define FUSEC_CODEGEN_TEMPLATE_H

#include "codegen/scalar/point.h"

/* CPU: work units [begin, end), i64.
 *   map     unit = a run of sched.chunk_elems elements of the last parallel axis, or of one
 *           sched.lanes_out before it
 *   row     unit = one row (of one segment, for a partial)
 *   column  unit = a strip of sched.chunk_elems columns (of one segment, for a partial) */
void template_cpu_map(Lower *lower, Val begin, Val end);
void template_cpu_row(Lower *lower, Val begin, Val end);
void template_cpu_column(Lower *lower, Val begin, Val end);
void template_cpu_contract(Lower *lower, Val begin, Val end);

/* GPU: the block's own indices. */
void template_gpu_map(Lower *lower);
void template_gpu_row(Lower *lower);
void template_gpu_column(Lower *lower);
void template_gpu_contract(Lower *lower);

#endif
