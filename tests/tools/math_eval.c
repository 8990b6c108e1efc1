/* See math_eval.h. */
#include "math_eval.h"

#include <math.h>

enum { MAX_STEPS = 2048 };

typedef struct Value {
    double number;
    uint64_t word;
    bool holds;
} Value;

typedef union Word32 {
    float number;
    uint32_t bits;
} Word32;

typedef union Word64 {
    double number;
    uint64_t bits;
} Word64;

static uint64_t bits_of(double x, bool is_f64) {
    return is_f64 ? (Word64){.number = x}.bits : (Word32){.number = (float)x}.bits;
}

static double number_of(uint64_t bits, bool is_f64) {
    return is_f64 ? (Word64){.bits = bits}.number : (double)(Word32){.bits = (uint32_t)bits}.number;
}

/* In the type of the operands. */
static double arithmetic(StepOp op, bool is_f64, double a, double b, double c) {
    switch ((int)op) {
    case STEP_NEG:
        return -a;
    case STEP_ABS:
        return fabs(a);
    case STEP_SQRT:
        return sqrt(a);
    case STEP_TRUNC:
        return trunc(a);
    case STEP_RINT:
        return nearbyint(a);
    case STEP_ADD:
        return a + b;
    case STEP_SUB:
        return a - b;
    case STEP_MUL:
        return a * b;
    case STEP_DIV:
    case STEP_FDIV:
        return a / b;
    case STEP_FMA:
        return is_f64 ? fma(a, b, c) : (double)fmaf((float)a, (float)b, (float)c);
    }
    return a; /* WIDEN, NARROW */
}

static bool comparison(StepOp op, double a, double b) {
    switch ((int)op) {
    case STEP_LT:
        return a < b;
    case STEP_GT:
        return a > b;
    case STEP_LE:
        return a <= b;
    case STEP_GE:
        return a >= b;
    case STEP_EQ:
        return a == b;
    case STEP_ONE:
        return a < b || a > b;
    case STEP_UNO:
        return isnan(a) || isnan(b);
    }
    return false;
}

static uint64_t integer(StepOp op, uint64_t a, uint64_t b) {
    switch ((int)op) {
    case STEP_IADD:
        return a + b;
    case STEP_ISUB:
        return a - b;
    case STEP_IMUL:
        return a * b;
    case STEP_IAND:
        return a & b;
    case STEP_IOR:
        return a | b;
    case STEP_SHL:
        return a << b;
    case STEP_SHR:
        return a >> b;
    }
    return a; /* LOW_BITS */
}

static bool condition(StepOp op, const Value *a, const Value *b) {
    switch ((int)op) {
    case STEP_INE:
        return a->word != b->word;
    case STEP_IEQ:
        return a->word == b->word;
    case STEP_IGT:
        return (int64_t)a->word > (int64_t)b->word;
    case STEP_AND:
        return a->holds && b->holds;
    case STEP_OR:
        return a->holds || b->holds;
    case STEP_NOT:
        return !a->holds;
    }
    return comparison(op, a->number, b->number);
}

static Value step_value(const MathProgram *program, const MathStep *step, const Value *values) {
    static const Value none = {0};
    const Value *arg[STEP_MAX_ARGS] = {&none, &none, &none};
    for (uint32_t i = 0; i < step->n_args; i++) arg[i] = &values[step->args[i]];
    bool is_f64 = step->type.is_f64;
    Value v = {.number = step->number, .word = step->word};
    if (step->op == STEP_SELECT)
        v = arg[0]->holds ? *arg[1] : *arg[2];
    else if (step->type.kind == MATH_CONDITION)
        v.holds = condition(step->op, arg[0], arg[1]);
    else if (step->op == STEP_TO_BITS)
        v.word = bits_of(arg[0]->number, is_f64);
    else if (step->op == STEP_FROM_BITS)
        v.number = number_of(arg[0]->word, is_f64);
    else if (step->op == STEP_FROM_INT)
        v.number = (double)(int32_t)arg[0]->word;
    else if (step->op != STEP_CONSTANT && step->type.kind == MATH_BITS)
        v.word = integer(step->op, arg[0]->word, arg[1]->word);
    else if (step->op != STEP_CONSTANT)
        v.number = arithmetic(step->op, program->steps.data[step->args[0]].type.is_f64,
                              arg[0]->number, arg[1]->number, arg[2]->number);
    if (!is_f64) {
        v.number = (double)(float)v.number;
        v.word &= UINT32_MAX;
    }
    return v;
}

double math_eval(const MathProgram *program, const double *args) {
    Value values[MAX_STEPS];
    uint32_t n = 0;
    for (uint32_t i = 0; i < program->steps.n && i < MAX_STEPS; i++) {
        const MathStep *step = &program->steps.data[i];
        if (step->op == STEP_PARAMETER)
            values[i] = (Value){.number = args[n++]};
        else
            values[i] = step_value(program, step, values);
    }
    return values[program->results[0]].number;
}
