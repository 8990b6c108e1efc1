/* Elementary functions as programs: lists of IEEE operations on numbers, their bits and conditions,
 * read from functions.def. call.c emits them as LLVM IR; nothing here knows LLVM.
 *
 * The language: statements end with `;`, the last one lists the results. `a, b = f(x)` names
 * results; a name may be given again. Operators are C's: + - * / on numbers, + - * & | << >> on
 * bits, < > <= >= == on numbers (false for NaN), > (signed), == and != on bits, & | on conditions;
 * ?: chooses without a branch. Operands are computed from left to right, and the code is emitted in
 * that order. Calls are of an operation of STEP_OPS; another function: the row that fits the type
 * of its first operand that is no constant; an instruction of PTX on numbers, as
 * rcp.approx.ftz.f32(y); poly(x, table): c[0] + x*(c[1] + x*(...)) by fma; slice(table, at, n): n
 * numbers from place `at` on, by selects; opaque(c): a constant that ptxas does not know (call.c);
 * hidden(x): `x` times such a 1 where it is a constant; rare(condition, value, other): `value`
 * where the condition holds, else `other`, which must be a name; the value is computed only if the
 * condition holds for some lane. A constant takes the type of the operand beside it, word(c) is one
 * of bits; + - * / of two constants is computed here. */
#ifndef FUSEC_CODEGEN_MATH_PROGRAM_H
#define FUSEC_CODEGEN_MATH_PROGRAM_H

#include "base/vec.h"

typedef enum { MATH_NUMBER, MATH_BITS, MATH_CONDITION, MATH_SAME } MathKind;

typedef struct MathType {
    MathKind kind;
    bool is_f64; /* 64 bits wide, or a condition on such */
} MathType;

/* LIST of the steps' operations: OP(symbol, name or operator, kind of the operands, their number,
 * kind of the result, how call.c emits it). The first ones have no name; a RARE has those up to its
 * RARE_END behind it. */
#define STEP_OPS(OP)                                                   \
    OP(PARAMETER, "", NUMBER, 0, SAME, OWN(parameter))                 \
    OP(CONSTANT, "", NUMBER, 0, SAME, OWN(constant))                   \
    OP(MACHINE, "", NUMBER, 3, SAME, OWN(machine))                     \
    OP(RARE, "", CONDITION, 1, SAME, OWN(rare))                        \
    OP(RARE_END, "", NUMBER, 3, SAME, OWN(rare_end))                   \
    OP(SELECT, "", NUMBER, 3, SAME, OWN(select))                       \
    OP(NEG, "neg", NUMBER, 1, SAME, UNARY(k_fneg))                     \
    OP(ABS, "abs", NUMBER, 1, SAME, INTRINSIC("llvm.fabs"))            \
    OP(SQRT, "sqrt", NUMBER, 1, SAME, INTRINSIC("llvm.sqrt"))          \
    OP(FLOOR, "floor", NUMBER, 1, SAME, INTRINSIC("llvm.floor"))       \
    OP(CEIL, "ceil", NUMBER, 1, SAME, INTRINSIC("llvm.ceil"))          \
    OP(TRUNC, "trunc", NUMBER, 1, SAME, INTRINSIC("llvm.trunc"))       \
    OP(RINT, "rint", NUMBER, 1, SAME, INTRINSIC("llvm.roundeven"))     \
    OP(OPAQUE, "opaque", NUMBER, 1, SAME, OWN(opaque))                 \
    OP(HIDDEN, "hidden", NUMBER, 1, SAME, OWN(hidden))                 \
    OP(WIDEN, "widen", NUMBER, 1, SAME, CAST(k_fpext))                 \
    OP(NARROW, "narrow", NUMBER, 1, SAME, CAST(k_fptrunc))             \
    OP(TO_BITS, "bits", NUMBER, 1, BITS, CAST(k_bitcast))              \
    OP(ADD, "+", NUMBER, 2, SAME, BINARY(k_fadd))                      \
    OP(SUB, "-", NUMBER, 2, SAME, BINARY(k_fsub))                      \
    OP(MUL, "*", NUMBER, 2, SAME, BINARY(k_fmul))                      \
    OP(DIV, "/", NUMBER, 2, SAME, BINARY(math_div))                    \
    OP(FDIV, "fdiv", NUMBER, 2, SAME, BINARY(k_fdiv))                  \
    OP(MAXIMUM, "maximum", NUMBER, 2, SAME, INTRINSIC("llvm.maximum")) \
    OP(MINIMUM, "minimum", NUMBER, 2, SAME, INTRINSIC("llvm.minimum")) \
    OP(FMA, "fma", NUMBER, 3, SAME, INTRINSIC("llvm.fma"))             \
    OP(LT, "<", NUMBER, 2, CONDITION, COMPARE(OLT))                    \
    OP(GT, ">", NUMBER, 2, CONDITION, COMPARE(OGT))                    \
    OP(LE, "<=", NUMBER, 2, CONDITION, COMPARE(OLE))                   \
    OP(GE, ">=", NUMBER, 2, CONDITION, COMPARE(OGE))                   \
    OP(EQ, "==", NUMBER, 2, CONDITION, COMPARE(OEQ))                   \
    OP(ONE, "one", NUMBER, 2, CONDITION, COMPARE(ONE))                 \
    OP(UNO, "uno", NUMBER, 2, CONDITION, COMPARE(UNO))                 \
    OP(UGT, "ugt", NUMBER, 2, CONDITION, COMPARE(UGT))                 \
    OP(IADD, "+", BITS, 2, SAME, BINARY(k_add))                        \
    OP(ISUB, "-", BITS, 2, SAME, BINARY(k_sub))                        \
    OP(IMUL, "*", BITS, 2, SAME, BINARY(k_mul))                        \
    OP(IAND, "&", BITS, 2, SAME, BINARY(k_and))                        \
    OP(IOR, "|", BITS, 2, SAME, BINARY(k_or))                          \
    OP(SHL, "<<", BITS, 2, SAME, BINARY(k_shl))                        \
    OP(SHR, ">>", BITS, 2, SAME, BINARY(k_lshr))                       \
    OP(LOW_BITS, "low_bits", BITS, 1, SAME, CAST(k_trunc))             \
    OP(FROM_BITS, "number", BITS, 1, NUMBER, CAST(k_bitcast))          \
    OP(FROM_INT, "from_int", BITS, 1, NUMBER, CAST(k_sitofp))          \
    OP(IGT, ">", BITS, 2, CONDITION, BINARY(k_sgt))                    \
    OP(IEQ, "==", BITS, 2, CONDITION, BINARY(k_eq))                    \
    OP(INE, "!=", BITS, 2, CONDITION, BINARY(k_ne))                    \
    OP(AND, "&", CONDITION, 2, SAME, BINARY(k_and))                    \
    OP(OR, "|", CONDITION, 2, SAME, BINARY(k_or))                      \
    OP(NOT, "not", CONDITION, 1, SAME, UNARY(k_not))

typedef enum {
    STEP_NONE,
#define OP(symbol, ...) STEP_##symbol,
    STEP_OPS(OP)
#undef OP
        STEP_COUNT
} StepOp;

enum { STEP_MAX_ARGS = 3, MATH_MAX_RESULTS = 5 };

typedef struct MathStep {
    StepOp op;
    MathType type;
    bool is_free;                         /* a constant that has no type yet */
    uint32_t n_args, args[STEP_MAX_ARGS]; /* earlier steps */
    double number;                        /* of a constant; as bits: `word` */
    uint64_t word;
    const char *text; /* of a machine's instruction */
} MathStep;

typedef struct MathProgram {
    const char *name;
    bool is_f64, has_ptx;
    Vec(MathStep) steps; /* the first ones are the parameters */
    uint32_t n_results, results[MATH_MAX_RESULTS];
    struct MathProgram *next; /* of those that were read */
} MathProgram;

/* The function of numbers of that type. A name that has no row is one of STEP_OPS. */
MathProgram *math_program_read(Arena *arena, const char *name, bool is_f64, bool has_ptx);

#endif
