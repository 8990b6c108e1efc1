/* Operands of a GEMM kernel, lhs [.., m, k] and rhs [.., k, n]: where the kernel has them, and how
 * they lie in memory. */
#ifndef FUSEC_PLAN_OPERAND_H
#define FUSEC_PLAN_OPERAND_H

#include "plan/kernel.h"

enum {
    ACCESS_BYTES = 16, /* the widest access, and what the copy engine steps by */
    LINE_BYTES = 128   /* of memory */
};

/* Where the kernel has its lhs or rhs. */
ScalarId *gemm_operand(const Kernel *gemm, bool is_left);

/* How an operand lies, if it is a load without conditions and runs along k or its own axis. */
typedef struct OperandRows {
    bool is_plain;
    bool fit;             /* rows begin at multiples of 16 bytes, whatever the symbols are */
    uint32_t axis, inner; /* its own, and the one that it runs along */
    DimId extent;         /* of the latter */
    uint32_t elem_bytes;
} OperandRows;
OperandRows gemm_operand_rows(const Kernel *gemm, bool is_left);

#endif
