/* --numerics=fast: contracts a multiplication whose only use is an addition or subtraction.
 * Internal to points. */
#ifndef FUSEC_CODEGEN_SCALAR_POINT_FMA_H
#define FUSEC_CODEGEN_SCALAR_POINT_FMA_H

#include "codegen/scalar/point.h"

/* The value of `s` as one fma, if it is a float addition or subtraction with such an operand; else
 * NULL. */
Val point_contracted(Point *point, const Scalar *s);

#endif
