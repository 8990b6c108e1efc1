/* See point_quotient.h. */
#include "codegen/scalar/point_quotient.h"

/* Emits the reciprocal and its companions right after the definition of `y`, so that they dominate
 * every use of y. */
static MathDivisor divisor_of(Lower *lower, Val y) {
    Codegen *k = lower->k;
    for (uint32_t i = 0; i < lower->divisors.n; i++)
        if (lower->divisors.data[i].value == y) return lower->divisors.data[i];
    LLVMBasicBlockRef here = k_here(k);
    Val next = LLVMIsAInstruction(y) ? LLVMGetNextInstruction(y) : NULL;
    while (next && LLVMIsAPHINode(next)) next = LLVMGetNextInstruction(next);
    if (next)
        LLVMPositionBuilderBefore(k->builder, next);
    else if (LLVMIsAInstruction(y))
        k_goto(k, LLVMGetInstructionParent(y));
    MathDivisor divisor = math_divisor(k, y);
    k_goto(k, here);
    vec_push(k->arena, &lower->divisors, divisor);
    return divisor;
}

bool point_is_at_most_0(const Kernel *kernel, ScalarId id) {
    const Scalar *s = scalar_get(kernel->scalars, id);
    if (s->kind != SCALAR_PRIM || s->prim != PRIM_SUB) return false;
    const Scalar *largest = scalar_get(kernel->scalars, s->args[1]);
    if (largest->kind != SCALAR_STAGE) return false;
    const Reduce *reduce = &kernel->reduces.data[largest->slot];
    return reduce->combine == PRIM_MAX && !reduce->is_arg && reduce->value == s->args[0] &&
           reduce->result == reduce->acc;
}

/* Whether the dividends are known to be from +0 to 1, or NaN. At an inactive point they may be any
 * number. */
static bool are_fractions(const Lower *lower, const Scalar *s) {
    const Scalar *x = scalar_get(lower->kernel->scalars, s->args[0]);
    return x->kind == SCALAR_PRIM && x->prim == PRIM_EXP &&
           point_is_at_most_0(lower->kernel, x->args[0]);
}

/* Whether a CPU divides rows so: short ones do not pay for the reciprocal, nor other dividends for
 * the tests of signs and large numbers. */
static bool are_long_rows(const Lower *lower, const Scalar *s) {
    enum { LEAST_ELEMS = 64 };
    DimId n = kernel_n_reduced(lower->kernel);
    return are_fractions(lower, s) && dim_hi(lower_dims(lower), n) >= LEAST_ELEMS;
}

static bool is_quotient(const Lower *lower, const Scalar *s) {
    return s->kind == SCALAR_PRIM && s->prim == PRIM_DIV && dtype_is_single(s->dtype) &&
           (k_has_ptx(lower->k) || are_long_rows(lower, s));
}

Val point_quotient(Lower *lower, const Scalar *s, Val x, Val y) {
    if (!is_quotient(lower, s) || !k_is_vector(x) || k_is_vector(y)) return NULL;
    MathDivisor divisor = divisor_of(lower, y);
    return math_quotient(lower->k, x, &divisor, are_fractions(lower, s));
}

/* Whether all points have the dividend, and one scalar divisor serves all of them. */
static bool divides_alike(const Point *points, uint32_t n, const Scalar *s) {
    Val y = points->values[s->args[1]];
    bool is_alike = is_quotient(points->lower, s) && y && !k_is_vector(y);
    for (uint32_t i = 0; i < n && is_alike; i++) {
        Val x = points[i].values[s->args[0]];
        is_alike = x && k_is_vector(x) == (points->lanes > 1) && points[i].values[s->args[1]] == y;
    }
    return is_alike;
}

/* The lanes of all points in one vector. */
static Val join_lanes(const Point *points, uint32_t n, ScalarId id) {
    const Codegen *k = points->lower->k;
    uint32_t lanes = points->lanes;
    Val all = LLVMGetPoison(k_vector_of(k->f32, n * lanes));
    for (uint32_t i = 0; i < n * lanes; i++) {
        Val own = points[i / lanes].values[id];
        if (lanes > 1) own = k_extract(k, own, i % lanes);
        all = k_insert(k, all, own, i);
    }
    return all;
}

static Val point_of_lanes(const Codegen *k, Val all, uint32_t at, uint32_t lanes) {
    if (lanes == 1) return k_extract(k, all, at);
    Val *numbers = arena_array(k->arena, Val, lanes);
    for (uint32_t i = 0; i < lanes; i++) numbers[i] = k_i32(k, at + i);
    Val poison = LLVMGetPoison(LLVMTypeOf(all));
    return k_shuffle(k, all, poison, LLVMConstVector(numbers, lanes));
}

/* Needs at least two lanes. */
static void divide_together(Point *points, uint32_t n, ScalarId id, const Scalar *s) {
    Lower *lower = points->lower;
    const Codegen *k = lower->k;
    uint32_t lanes = points->lanes;
    MathDivisor divisor = divisor_of(lower, points->values[s->args[1]]);
    Val all = join_lanes(points, n, s->args[0]);
    all = math_quotient(k, all, &divisor, are_fractions(lower, s));
    for (uint32_t i = 0; i < n; i++)
        points[i].values[id] = point_of_lanes(k, all, i * lanes, lanes);
}

void point_divide_together(Point *points, uint32_t n, const ScalarId *roots, uint32_t n_roots) {
    enum {
        MOST_LANES = 16
    }; /* with more lanes, loads wait for each other: 3 % of softmax
        * [256,131072] */
    if (n * points->lanes < 2) return;
    const Lower *lower = points->lower;
    const ScalarTab *scalars = lower->kernel->scalars;
    uint32_t most = MOST_LANES / points->lanes;
    const bool *wanted = kernel_needed_scalars(lower->k->arena, lower->kernel, roots, n_roots);
    for (ScalarId id = 1; id <= scalar_count(scalars); id++) {
        const Scalar *s = scalar_get(scalars, id);
        if (!wanted[id] || points->values[id] || !divides_alike(points, n, s)) continue;
        for (uint32_t i = 0; i < n && (n - i) * points->lanes > 1; i += most)
            divide_together(points + i, n - i < most ? n - i : most, id, s);
    }
}
