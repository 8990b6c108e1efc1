/* Small kernels around the maths and conversion emitters, compiled in process for the CPU or
 * lowered to PTX, for test_math.c. Nothing here is part of the compiler. */
#ifndef FUSEC_TESTS_MATH_JIT_H
#define FUSEC_TESTS_MATH_JIT_H

#include "ir/dtype.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* name, number of operands; the elementary functions, which have an error bound */
#define MATH_FUNCTIONS(X) \
    X(exp, 1)             \
    X(exp2, 1)            \
    X(log, 1) X(log2, 1) X(sin, 1) X(cos, 1) X(tanh, 1) X(erf, 1) X(silu, 1) X(pow, 2)

/* those that are exact or correctly rounded */
#define MATH_EXACT(X) \
    X(sqrt, 1)        \
    X(abs, 1)         \
    X(copysign, 2) X(floor, 1) X(ceil, 1) X(trunc, 1) X(rint, 1) X(max, 2) X(min, 2)

/* those that math.h declares; quotients: of float, all lanes of a vector divided by the first of y,
 * lanes from +0 to 1, or NaN */
#define MATH_OWN(X) \
    X(frem, 2)      \
    X(idiv, 2) X(irem, 2) X(udiv, 2) X(urem, 2) X(quotient_by_one, 2) X(fraction_by_one, 2)

/* float: the shorter forms of prims.def */
#define MATH_SHORT(X) \
    X(exp_16, 1)      \
    X(exp_ftz, 1)     \
    X(logistic_16, 1) \
    X(silu_16, 1)     \
    X(tanh_10, 1)     \
    X(div_22, 2) X(sqrt_22, 1) X(rsqrt_22, 1) X(log_21, 1) X(log2_22, 1) X(sin_20, 1) X(cos_20, 1)

typedef enum MathOp {
#define X(name, n_args) MATH_OP_##name,
    MATH_FUNCTIONS(X) MATH_EXACT(X) MATH_OWN(X) MATH_SHORT(X)
#undef X
        MATH_OP_CONVERT
} MathOp;

/* out[i] = op(x[i], y[i]); a conversion has types `from` and `to`, any other op `from` alone.
 * bool is a byte in memory. The kernel handles n elements, a multiple of the lanes. */
typedef struct MathKernel {
    MathOp op;
    Dtype from, to;
    unsigned lanes; /* 0: scalar */
} MathKernel;

typedef void (*MathFunction)(const void *x, const void *y, void *out, uint64_t n);

const char *math_op_name(MathOp op);
unsigned math_op_arity(MathOp op);

typedef struct MathJit MathJit;

/* Compiles for x86-64-v3. NULL, with the reason on stderr, if LLVM fails. */
MathJit *math_jit_new(const MathKernel *kernels, size_t n_kernels);
void math_jit_free(MathJit *jit);
MathFunction math_jit_function(const MathJit *jit, size_t i_kernel);

/* The number of symbols that an object of these kernels takes from elsewhere; each is named on
 * stderr. -1 if LLVM fails. */
int math_count_externals(const MathKernel *kernels, size_t n_kernels);

/* The kernels as assembly text (free with math_text_free): PTX when `cpu` starts with sm_,
 * x86-64 otherwise. NULL if LLVM fails. */
char *math_assembly(const MathKernel *kernels, size_t n_kernels, const char *cpu);
void math_text_free(char *text);

#endif
