/* References for the errors of the elementary functions, for test_math.c. */
#ifndef FUSEC_TESTS_MATH_REFERENCE_H
#define FUSEC_TESTS_MATH_REFERENCE_H

#include "math_jit.h"

typedef struct MathReference {
    MathOp op;
    double (*of_f32)(double); /* NULL for pow */
    long double (*of_f64)(long double);
    double spread;               /* the function varies within +-spread */
    double bound_f32, bound_f64; /* the errors promised by codegen/math/functions.def, in ULP */
} MathReference;

enum { N_MATH_REFERENCES = 10 };
extern const MathReference math_references[N_MATH_REFERENCES];

/* |got - want| in units in the last place of `want` in the type, f32 or f64; below the least normal
 * number in units of subnormals. 2^128 or 2^1024 stands for infinity, so a result that overflows
 * too early counts its distance. Infinite when exactly one is NaN. */
double math_error_ulp(double got, long double want, Dtype type);

uint64_t math_random(uint64_t *state);

#endif
