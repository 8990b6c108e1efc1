/* Templates: each emits the loops of a kernel function whose Lower is ready (pointers, symbols,
 * entry; the builder stands after the entry block) and returns with the builder at the end of its
 * last block; lower.c adds the `ret`. Templates read the kernel, its variant's Sched and the
 * target, and get every value through points.
 *
 * GPU: the block's own indices. CPU: the work units [units_begin, units_end) of the Lower:
 *   map     unit = a run of chunk_elems elements of the lane axis
 *   row     unit = one row (of one segment, for a partial)
 *   column  unit = a strip of chunk_elems columns (of one segment, for a partial)
 *   gemm    unit = a tile of one batch */
#ifndef FUSEC_CODEGEN_TEMPLATE_H
#define FUSEC_CODEGEN_TEMPLATE_H

#include "codegen/scalar/point.h"

typedef void Emit(Lower *lower);
#define TEMPLATE(symbol, function, ...) Emit emit_##function;
#include "lowering/templates.def"

/* By the template of the Lower's variant. */
void template_emit(Lower *lower);

#endif
