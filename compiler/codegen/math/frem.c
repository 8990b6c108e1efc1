/* C's fmod of double: a loop around remainder_step of functions.def. */
#include "codegen/math/math_ops.h"

/* A finished lane continues with quotients of zero. An infinite x and y = 0 give NaN in the first
 * iteration, which ends the loop. An infinite y never enters the loop. */
static Val frem_f64(const Fp *p, Val x, Val y) {
    const Codegen *k = p->k;
    Val x_size = math_unary(k, "abs", x);
    Val y_size = math_unary(k, "abs", y);
    Val y_exponent = math_unary(k, "biased_exponent", y_size);
    LLVMBasicBlockRef entry = k_here(k);
    LLVMBasicBlockRef head = k_block(k, "frem");
    LLVMBasicBlockRef body = k_block(k, "frem.step");
    LLVMBasicBlockRef done = k_block(k, "frem.done");
    k_branch(k, head);
    Val r = k_phi(k, p->type);
    Val is_less = k_fcmp(p->k, LLVMRealOLT, r, y_size);
    Val is_nan = k_fcmp(p->k, LLVMRealUNO, r, y_size);
    Val is_done = k_or(p->k, is_less, is_nan);
    Val is_open = k_not(k, is_done);
    Val is_any = fp_any_lane(p, is_open);
    k_cond_br(k, is_any, body, done);
    k_goto(k, body);
    Val args[] = {r, y_size, y_exponent}, step;
    math_call(k, "remainder_scale", args, &step);
    Val stepped = math_binary(k, "remainder_step", r, step);
    Val next = k_select(p->k, is_open, stepped, r);
    k_br(k, head);
    k_incoming(r, x_size, entry);
    k_incoming(r, next, body);
    k_goto(k, done);
    Val is_y_nan = k_fcmp(p->k, LLVMRealUNO, y_size, y_size);
    Val result = k_select(p->k, is_y_nan, y_size, r);
    return math_binary(k, "copysign", result, x);
}

Val math_frem(const Codegen *k, Val x, Val y) {
    Fp p = fp_of(k, x);
    return p.is_f64 ? frem_f64(&p, x, y) : math_binary(k, "rem", x, y);
}
