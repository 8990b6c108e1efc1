/* The shorter forms that --numerics=fast takes of f32, on NVIDIA's machines. Bounds: prims.def.
 * Their results for zeros, infinities, NaN and negative numbers are those of the functions they
 * stand for; none flushes what is below the normal numbers. */
#include "codegen/math/math_ops.h"

static bool has_machine(const Fp *p) {
    return k_has_ptx(p->k) && !p->is_f64;
}

/* `x`, of which neither LLVM nor ptxas knows the value: see fp_opaque. */
static Val hidden(const Fp *p, Val x) {
    return LLVMIsConstant(x) ? fp_mul(p, x, fp_opaque(p, 1.0)) : x;
}

static Val machine_of(const Fp *p, const char *text, Val x) {
    Val own = hidden(p, x);
    return fp_machine(p, text, &own, 1);
}

Val math_div_22(const Codegen *k, Val x, Val y) {
    Fp p = fp_of(k, x);
    if (!has_machine(&p)) return math_div(k, x, y);
    Val args[] = {hidden(&p, x), hidden(&p, y)};
    return fp_machine(&p, "div.full.f32 $0, $1, $2;", args, 2);
}

Val math_sqrt_22(const Codegen *k, Val x) {
    Fp p = fp_of(k, x);
    return has_machine(&p) ? machine_of(&p, "sqrt.approx.f32 $0, $1;", x) : math_sqrt(k, x);
}

Val math_rsqrt_22(const Codegen *k, Val x) {
    Fp p = fp_of(k, x);
    if (has_machine(&p)) return machine_of(&p, "rsqrt.approx.f32 $0, $1;", x);
    Val root = math_sqrt(k, x);
    return k_fdiv(k, fp_num(&p, 1), root);
}

Val math_log2_22(const Codegen *k, Val x) {
    Fp p = fp_of(k, x);
    return has_machine(&p) ? machine_of(&p, "lg2.approx.f32 $0, $1;", x) : math_log2(k, x);
}

Val math_log_21(const Codegen *k, Val x) {
    Fp p = fp_of(k, x);
    if (!has_machine(&p)) return math_log(k, x);
    Val log2 = machine_of(&p, "lg2.approx.f32 $0, $1;", x);
    return fp_mul(&p, log2, fp_num(&p, LN2_HIGH));
}

/* x less the nearest multiple of 2 pi, for |x| up to MODERATE: off by half a last place of numbers
 * below 4, twice. Both terms are positive, so that -0 stays. */
#define MODERATE 0x1p15
static Val turned_back(const Fp *p, Val x) {
    static const double two_pi[] = {0x1.921fb4p+2, 0x1.44442ep-22};
    Rounded n = fp_round_product(p, x, 0x1.45f306dc9c883p-3);
    Val r = fp_fma(p, n.whole, fp_num(p, -two_pi[0]), x);
    return fp_fma(p, n.whole, fp_num(p, -two_pi[1]), r);
}

/* What is larger goes the long way, infinity and NaN too; lanes beside it keep what they would have
 * without it. */
static Val sine(const Codegen *k, Val x, const char *text, Val (*full)(const Codegen *, Val)) {
    Fp p = fp_of(k, x);
    if (!has_machine(&p)) return full(k, x);
    Val rest = turned_back(&p, x);
    Val quick = machine_of(&p, text, rest);
    Val is_large = k_fcmp(k, LLVMRealUGT, math_fabs(k, x), fp_num(&p, MODERATE));
    Val any = fp_any_lane(&p, is_large);
    LLVMBasicBlockRef here = k_here(k);
    LLVMBasicBlockRef large = k_block(k, "large");
    LLVMBasicBlockRef done = k_block(k, "turned");
    k_cond_br(k, any, large, done);
    k_goto(k, large);
    Val mixed = fp_select(&p, is_large, full(k, x), quick);
    LLVMBasicBlockRef from = k_here(k);
    k_branch(k, done);
    return k_merge(k, quick, here, mixed, from);
}

/* The machine's keeps the sign of 0, and so does what comes before it. */
Val math_sin_20(const Codegen *k, Val x) {
    return sine(k, x, "sin.approx.f32 $0, $1;", math_sin);
}

Val math_cos_20(const Codegen *k, Val x) {
    return sine(k, x, "cos.approx.f32 $0, $1;", math_cos);
}
