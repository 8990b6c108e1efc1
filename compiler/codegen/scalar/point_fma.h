/* --numerics=fast: a product that only a sum or a difference takes is not rounded by itself.
 * Internal to points. */
#ifndef FUSEC_CODEGEN_SCALAR_POINT_FMA_H
#define FUSEC_CODEGEN_SCALAR_POINT_FMA_H

#include "codegen/scalar/point.h"

/* The value of `s` by one fused multiply-add, if it is such a sum or difference of floats; or NULL.
 */
Val point_contracted(Point *point, const Scalar *s);

#endif
