/* Division of floats, correctly rounded.
 *
 * NVIDIA's assembler makes a division of f32 a short sequence, a check and a call, with branches
 * between one element and the next that keep them from overlapping. Where that matters, vectors of
 * f32 have one check for all lanes after a sequence without branches, which is right unless
 * something was very small or large; then it is done again in f64, which has more than twice the
 * digits plus two, so that rounding the quotient again rounds once, subnormal results included.
 * On an H200 that is worth it in the epilogues of products, where few warps run. Of softmax, whose
 * divisor is the same for all lanes, it would take 7 % off, but more code to compile; a map of gelu
 * would lose 12 %. */
#include "codegen/math/math_ops.h"

Val fp_machine_reciprocal(const Fp *p, Val y) {
    const char *text = p->is_f64 ? "rcp.approx.ftz.f64 $0, $1;" : "rcp.approx.ftz.f32 $0, $1;";
    return fp_machine(p, text, &y, 1);
}

typedef struct Quotient {
    Val value, is_zero; /* is_zero: the dividend is */
    Val product;        /* with the machine's reciprocal */
} Quotient;

/* Refined once, it is not always the nearest number, and a few quotients would be wrong. */
static Val refined(const Fp *p, Val minus_y, Val reciprocal) {
    for (int i = 0; i < 2; i++) {
        Val error = fp_fma(p, minus_y, reciprocal, fp_num(p, 1));
        reciprocal = fp_fma(p, reciprocal, error, reciprocal);
    }
    return reciprocal;
}

Val fp_refined_reciprocal(const Fp *p, Val y) {
    if (!k_has_ptx(p->k)) return math_div(p->k, fp_num(p, 1), y);
    Val rough = fp_machine_reciprocal(p, y);
    Val minus_y = fp_neg(p, y);
    Val reciprocal = refined(p, minus_y, rough);
    Val is_nan = fp_unordered(p, reciprocal, reciprocal);
    return fp_select(p, is_nan, rough, reciprocal);
}

/* Markstein's: a refined reciprocal, and a quotient corrected by the exact remainder. The
 * correction would lose the sign of 0. */
static Quotient refined_quotient(const Fp *p, Val x, Val y) {
    Val rough = fp_machine_reciprocal(p, y);
    Val minus_y = fp_neg(p, y);
    Val reciprocal = refined(p, minus_y, rough);
    Val first = fp_mul(p, x, reciprocal);
    Val rest = fp_fma(p, minus_y, first, x);
    Val corrected = fp_fma(p, rest, reciprocal, first);
    Quotient q = {.is_zero = fp_eq(p, x, fp_num(p, 0))};
    q.value = fp_select(p, q.is_zero, first, corrected);
    q.product = fp_mul(p, x, rough);
    return q;
}

/* Whether the quotient of `x` that was computed is right: it is, if the remainder was exact and
 * nothing overflowed. A divisor that is subnormal, near the largest or infinite has no reciprocal
 * here, which the quotient's size tells: it is then 0, infinite or NaN. */
static Val is_right(const Fp *p, Val x, const Quotient *q) {
    const Codegen *k = p->k;
    Val x_size = math_fabs(k, x);
    Val size = math_fabs(k, q->value);
    Val is_large = k_fcmp(k, LLVMRealOGE, x_size, fp_num(p, 0x1p-100));
    Val is_normal = k_fcmp(k, LLVMRealOGE, size, fp_num(p, 0x1p-120));
    Val is_bounded = k_fcmp(k, LLVMRealOLE, size, fp_num(p, 0x1p120));
    is_large = fp_or(p, is_large, q->is_zero);
    is_normal = fp_or(p, is_normal, q->is_zero);
    Val right = fp_and(p, is_large, is_normal);
    return fp_and(p, right, is_bounded);
}

static Val all_lanes(const Fp *p, Val condition) {
    Val all = k_extract(p->k, condition, 0);
    for (unsigned i = 1; i < p->lanes; i++) {
        Val one = k_extract(p->k, condition, i);
        all = fp_and(p, all, one);
    }
    return all;
}

/* In f64. Where there is no finite quotient, or the divisor is infinite, the result is the product
 * with the machine's reciprocal. */
static Val wide_quotient(const Fp *p, Val x, Val y) {
    const Codegen *k = p->k;
    Fp wide = fp_f64(p);
    Val x_wide = k_fpext(k, x, wide.type);
    Val y_wide = k_fpext(k, y, wide.type);
    Quotient q = refined_quotient(&wide, x_wide, y_wide);
    Val is_nan = fp_unordered(&wide, q.value, q.value);
    Val value = fp_select(&wide, is_nan, q.product, q.value);
    return k_fptrunc(k, value, p->type);
}

Val math_near_quotient(const Codegen *k, Val x, Val y) {
    Fp p = fp_of(k, x);
    if (!k_has_ptx(k) || p.is_f64) return k_fdiv(k, x, y);
    Val reciprocal = fp_machine_reciprocal(&p, y);
    return fp_mul(&p, x, reciprocal);
}

Val math_div(const Codegen *k, Val x, Val y) {
    Fp p = fp_of(k, x);
    bool is_constant = LLVMIsConstant(x) && LLVMIsConstant(y);
    if (!k->overlaps_quotients || p.is_f64 || !p.lanes || is_constant) return k_fdiv(k, x, y);
    Quotient q = refined_quotient(&p, x, y);
    Val right = is_right(&p, x, &q);
    Val all_right = all_lanes(&p, right);
    LLVMBasicBlockRef here = k_here(k);
    LLVMBasicBlockRef wide = k_block(k, "wide");
    LLVMBasicBlockRef done = k_block(k, "divided");
    k_cond_br(k, all_right, done, wide);
    k_goto(k, wide);
    Val others = wide_quotient(&p, x, y);
    k_branch(k, done);
    return k_merge(k, q.value, here, others, wide);
}
