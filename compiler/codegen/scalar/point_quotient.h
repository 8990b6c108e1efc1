/* Quotients of a point's lanes, or of many points', by one divisor. Internal to points. */
#ifndef FUSEC_CODEGEN_SCALAR_POINT_QUOTIENT_H
#define FUSEC_CODEGEN_SCALAR_POINT_QUOTIENT_H

#include "codegen/scalar/point.h"

/* Whether it is an element less the largest of the row's: at most 0, or NaN. */
bool point_is_at_most_0(const Kernel *kernel, ScalarId id);
/* The quotient, or NULL where the lanes' divisors differ or it would not pay to know that they do
 * not. */
Val point_quotient(Lower *lower, const Scalar *s, Val x, Val y);

#endif
