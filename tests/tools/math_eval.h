/* The programs of codegen/math on numbers, without LLVM: what a target with IEEE arithmetic
 * computes, step by step. */
#ifndef FUSEC_TESTS_MATH_EVAL_H
#define FUSEC_TESTS_MATH_EVAL_H

#include "codegen/math/program.h"

/* The first result of a program for a CPU. Numbers of f32 are held as doubles. */
double math_eval(const MathProgram *program, const double *args);

#endif
