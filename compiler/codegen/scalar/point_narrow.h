/* Arithmetic of f16 and bf16 in their own type, two elements an instruction, where that gives the
 * bits of a program that widens, computes in f32 and rounds. Internal to points. */
#ifndef FUSEC_CODEGEN_SCALAR_POINT_NARROW_H
#define FUSEC_CODEGEN_SCALAR_POINT_NARROW_H

#include "codegen/scalar/point.h"

/* The value of `s`, which rounds f32, computed in the narrow type; NULL where that is not the same
 * or the machine does not. */
Val point_narrow_rounded(Point *point, const Scalar *s);
/* The value of `s`, which compares f32, by a comparison in the narrow type; or NULL. */
Val point_narrow_compared(Point *point, const Scalar *s);

#endif
