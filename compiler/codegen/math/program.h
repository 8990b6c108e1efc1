/* Elementary functions as programs: lists of IEEE operations on numbers, bits and conditions, read
 * from functions.def. call.c emits the programs as LLVM IR; this file does not use LLVM.
 *
 * Statements end with `;`; the last statement lists the results. `a, b = f(x)` names results; a
 * name may be assigned again. Operators are those of C: + - * / on numbers; + - * & | << >> on
 * bits; < > <= >= == on numbers (false for NaN); > (signed), == and != on bits; & and | on
 * conditions. `?:` selects without a branch. Operands are evaluated from left to right, and the
 * code is emitted in that order.
 *
 * A call is one of these:
 * - an operation of STEP_OPS, by its name;
 * - another function: the first row that fits the type of the first operand that is no constant;
 * - a PTX instruction on numbers, as rcp.approx.ftz.f32(y);
 * - poly(x, table): c[0] + x*(c[1] + x*(...)) by fma;
 * - slice(table, at, n): n numbers of the table from index `at` on, by selects;
 * - opaque(c): a constant that ptxas cannot see (see fp_opaque);
 * - hidden(x): a constant x times an opaque 1; any other x unchanged;
 * - rare(condition, value, other): `value` where the condition holds, otherwise `other`, which must
 * be a name; `value` is computed only if the condition holds for some lane.
 *
 * A constant takes the type of the operand beside it; word(c) is a constant given by its bits. + -
 * * / of two constants is computed when the program is read. */
#ifndef FUSEC_CODEGEN_MATH_PROGRAM_H
#define FUSEC_CODEGEN_MATH_PROGRAM_H

#include "base/vec.h"

typedef enum { MATH_NUMBER, MATH_BITS, MATH_CONDITION, MATH_SAME } MathKind;

typedef struct MathType {
    MathKind kind;
    bool is_f64; /* 64 bits wide; a condition: compares 64-bit values */
} MathType;

/* LIST of the operations of a step: OP(symbol, name or operator, kind of the operands, number of
 * operands, kind of the result, how call.c emits it). Operations with an empty name have their own
 * syntax. The steps between a RARE and its RARE_END are the `value` of a rare(). */
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
    uint32_t n_args, args[STEP_MAX_ARGS]; /* indices of earlier steps */
    double number;                        /* a constant's value; `word` if it is one of bits */
    uint64_t word;
    const char *text; /* the PTX instruction */
} MathStep;

typedef struct MathProgram {
    const char *name;
    bool is_f64, has_ptx;
    Vec(MathStep) steps; /* the parameters come first */
    uint32_t n_results, results[MATH_MAX_RESULTS];
    struct MathProgram *next; /* in the module's list of programs that were read */
} MathProgram;

/* Reads the function `name` for numbers of that type. A name without a row in functions.def is an
 * operation of STEP_OPS. The result lives in `arena`. */
MathProgram *math_program_read(Arena *arena, const char *name, bool is_f64, bool has_ptx);

#endif
