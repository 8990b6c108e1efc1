/* Products that a CPU's tile registers (AMX) multiply: 16 rows by 16 columns by 64 bytes of k in
 * one instruction. */
#ifndef FUSEC_TEMPLATE_CPU_AMX_H
#define FUSEC_TEMPLATE_CPU_AMX_H

#include "plan/kernel.h"

enum {
    AMX_ROWS = 16,
    AMX_ROW_BYTES = 64,
    CPU_AMX_ROW_LANES = 32 /* of the vectors that pack rows */
};

/* Whether tile registers multiply the operands of the GEMM. They do so with i8 and u8, whose sums
 * of 32 bits wrap, so that their order changes no bit. They do so with bf16 if the graph is
 * `fast`, because they add the products of two steps of k one after the other, flush subnormals
 * and round sums to f32. */
bool cpu_amx_multiplies(const Kernel *kernel, bool is_fast);

#endif
