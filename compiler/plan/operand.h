/* Operands of a GEMM kernel, lhs [.., m, k] and rhs [.., k, n], and their layout in memory. */
#ifndef FUSEC_PLAN_OPERAND_H
#define FUSEC_PLAN_OPERAND_H

#include "plan/kernel.h"

/* The field of the kernel that holds its lhs or rhs. */
ScalarId *gemm_operand(const Kernel *gemm, bool is_left);

/* The layout of an operand, if it is a load without a guard and contiguous along k or its own
 * axis. */
typedef struct OperandRows {
    bool is_plain;
    bool fit;             /* rows start at multiples of 16 bytes for all dims */
    uint32_t axis, inner; /* its own axis (m or n), and the contiguous one */
    DimId extent;         /* of the contiguous axis */
    uint32_t elem_bytes;
} OperandRows;
OperandRows gemm_operand_rows(const Kernel *gemm, bool is_left);

#endif
