/* Arithmetic of f16 and bf16 in their own type, two elements per instruction, and of u32 in 32 bits
 * instead of 64. It is used where its bits equal those of the program, which widens, computes in
 * f32 or i64 and rounds. Internal to points. */
#ifndef FUSEC_CODEGEN_SCALAR_POINT_NARROW_H
#define FUSEC_CODEGEN_SCALAR_POINT_NARROW_H

#include "codegen/scalar/point.h"

/* The value of `s`, a conversion from a wider type, computed in the narrow type; NULL if the bits
 * would differ or the machine lacks the instruction. */
Val point_narrow_rounded(Point *point, const Scalar *s);
/* The value of `s`, a comparison, by a comparison in the narrow type; or NULL. */
Val point_narrow_compared(Point *point, const Scalar *s);

#endif
