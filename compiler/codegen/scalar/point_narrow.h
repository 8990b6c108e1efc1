/* Arithmetic of f16 and bf16 in their own type, two elements per instruction. It is used where its
 * bits equal those of the program, which widens, computes in f32 and rounds. Internal to points. */
#ifndef FUSEC_CODEGEN_SCALAR_POINT_NARROW_H
#define FUSEC_CODEGEN_SCALAR_POINT_NARROW_H

#include "codegen/scalar/point.h"

/* The value of `s`, a rounding of f32, computed in the narrow type; NULL if the bits would differ
 * or the machine lacks the instruction. */
Val point_narrow_rounded(Point *point, const Scalar *s);
/* The value of `s`, a comparison of f32, by a comparison in the narrow type; or NULL. */
Val point_narrow_compared(Point *point, const Scalar *s);

#endif
