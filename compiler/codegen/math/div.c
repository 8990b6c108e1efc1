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

static Val all_lanes(const Fp *p, Val condition) {
    Val all = k_extract(p->k, condition, 0);
    for (unsigned i = 1; i < p->lanes; i++) {
        Val one = k_extract(p->k, condition, i);
        all = k_and(p->k, all, one);
    }
    return all;
}

Val math_div(const Codegen *k, Val x, Val y) {
    Fp p = fp_of(k, x);
    bool is_constant = LLVMIsConstant(x) && LLVMIsConstant(y);
    if (!k->overlaps_quotients || p.is_f64 || !p.lanes || is_constant) return k_fdiv(k, x, y);
    Val args[] = {x, y}, quotient[2];
    math_call(k, "checked_quotient", args, quotient);
    Val all_right = all_lanes(&p, quotient[1]);
    LLVMBasicBlockRef here = k_here(k);
    LLVMBasicBlockRef wide = k_block(k, "wide");
    LLVMBasicBlockRef done = k_block(k, "divided");
    k_cond_br(k, all_right, done, wide);
    k_goto(k, wide);
    Val others = math_binary(k, "wide_quotient", x, y);
    k_branch(k, done);
    return k_merge(k, quotient[0], here, others, wide);
}
