/* Products of i8 and u8. */
#ifndef FUSEC_IR_BUILD_BYTES_H
#define FUSEC_IR_BUILD_BYTES_H

#include "ir/build/build.h"

/* Whether one dtype is i8 and the other u8. */
bool build_are_mixed_bytes(Dtype a, Dtype b);
/* The product of an i8 and a u8 tensor, of the shape that build_matmul gives, in the dtype in which
 * it is computed, i32. It is exact up to the wrap of i32. */
NodeId build_mixed_bytes(Builder *b, const Operand *left, const Operand *right);

#endif
