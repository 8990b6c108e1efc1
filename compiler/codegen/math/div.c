/* Division of floats, correctly rounded.
 *
 * ptxas makes a division of f32 a short sequence, a check and a call. The branches between elements
 * keep the divisions from overlapping. Under overlaps_quotients, a vector of f32 gets a sequence
 * without branches and one check for all lanes. The sequence is right unless an operand is very
 * small or very large; then the lanes are divided again in f64. f64 has more than twice the digits
 * of f32 plus two, so rounding its quotient to f32 is correct, subnormal results included. Measured
 * on an H200: the check pays in epilogues of matmuls, where few warps run. In a softmax, whose
 * divisor is the same for all lanes, it saves 7 % of the time but makes more code to compile; a
 * gelu map would become 12 % slower. */
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
