/* Templates emit the loops of a kernel function. They get a Lower with pointers, symbols and entry
 * set and the builder after the entry block. They return with the builder at the end of the last
 * block, and lower.c adds the `ret`. A template reads the kernel, the Sched of its variant and the
 * target, and gets every value through points.
 *
 * GPU: a function computes the block of its block index. CPU: it computes the work units
 * [units_begin, units_end) of the Lower. By form, a unit is:
 *   map     chunk_elems elements along the lane axis
 *   row     one row, or one segment of a row for partial results
 *   column  chunk_elems columns, or one segment of them for partial results
 *   gemm    a tile of one batch */
#ifndef FUSEC_CODEGEN_TEMPLATE_H
#define FUSEC_CODEGEN_TEMPLATE_H

#include "codegen/scalar/point.h"

typedef void Emit(Lower *lower);
#define TEMPLATE(symbol, function, ...) Emit emit_##function;
#include "lowering/templates.def"

/* Calls the emission function of the template of the Lower's variant. */
void template_emit(Lower *lower);

#endif
