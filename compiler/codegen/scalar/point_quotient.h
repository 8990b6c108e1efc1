/* Divisions of a point's lanes, or of many points, by one divisor. Internal to points. */
#ifndef FUSEC_CODEGEN_SCALAR_POINT_QUOTIENT_H
#define FUSEC_CODEGEN_SCALAR_POINT_QUOTIENT_H

#include "codegen/scalar/point.h"

/* Whether the value is an element minus the maximum of its row: at most 0, or NaN. */
bool point_is_at_most_0(const Kernel *kernel, ScalarId id);
/* The quotient; NULL if the lanes have different divisors or a shared divisor would not pay. */
Val point_quotient(Lower *lower, const Scalar *s, Val x, Val y);

#endif
