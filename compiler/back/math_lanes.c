/* Lanes together: a quick way for all of them, and one after the other where it does not do. */
#include "back/math_ops.h"

enum { LEAST_BIT = 0x20000000, TOO_LARGE_BIT = 0x40000000 };

static Val i32_const(const MathCtx *m, uint32_t value) {
    return LLVMConstInt(LLVMInt32TypeInContext(m->context), value, 0);
}

static Val fp_lane(const Fp *p, Val vector, unsigned i) {
    return LLVMBuildExtractElement(p->m->builder, vector, i32_const(p->m, i), "");
}

Val fp_excess(const Fp *p, Val is_excess) {
    return LLVMBuildSelect(p->m->builder, is_excess, i32_const(p->m, TOO_LARGE_BIT),
                           i32_const(p->m, 0), "");
}

/* The two highest bits of the exponent tell, those of all lanes together by two instructions for
 * every second lane. */
Val fp_all_usual(const Fp *p, Val x, Val excess) {
    LLVMBuilderRef b = p->m->builder;
    Val bits = fp_to_bits(p, x);
    Val all = fp_lane(p, bits, 0), any = all;
    for (unsigned i = 1; i < p->lanes; i++) {
        Val own = fp_lane(p, bits, i);
        all = fp_and(p, all, own);
        any = fp_or(p, any, own);
    }
    if (excess) any = fp_or(p, any, excess);
    Val least = LLVMBuildAnd(b, all, i32_const(p->m, LEAST_BIT), "");
    Val too_large = LLVMBuildAnd(b, any, i32_const(p->m, TOO_LARGE_BIT), "");
    Val both = fp_or(p, least, too_large);
    return LLVMBuildICmp(b, LLVMIntEQ, both, i32_const(p->m, LEAST_BIT), "");
}

/* Works on lane 0 and turns the lanes by one, as many times as there are lanes: little code. */
Val fp_each_lane(const Fp *p, Val x, Val (*of)(const Fp *one, Val x, const void *user),
                 const void *user, LLVMBasicBlockRef done) {
    const MathCtx *m = p->m;
    LLVMBuilderRef b = m->builder;
    LLVMBasicBlockRef before = LLVMGetInsertBlock(b);
    Val function = LLVMGetBasicBlockParent(before);
    LLVMBasicBlockRef each = LLVMAppendBasicBlockInContext(m->context, function, "each");
    LLVMBuildBr(b, each);
    LLVMPositionBuilderAtEnd(b, each);
    Val turn = LLVMBuildPhi(b, LLVMInt32TypeInContext(m->context), "");
    Val lanes = LLVMBuildPhi(b, p->type, "");
    Val first = fp_lane(p, lanes, 0);
    Fp one = fp_of(m, first);
    Val result = of(&one, first, user);
    Val order[64];
    for (unsigned i = 0; i < p->lanes; i++) order[i] = i32_const(m, (i + 1) % p->lanes);
    Val poison = LLVMGetPoison(p->type);
    Val turned = LLVMBuildShuffleVector(b, lanes, poison, LLVMConstVector(order, p->lanes), "");
    turned = LLVMBuildInsertElement(b, turned, result, i32_const(m, p->lanes - 1), "");
    Val next = LLVMBuildAdd(b, turn, i32_const(m, 1), "");
    Val is_last = LLVMBuildICmp(b, LLVMIntEQ, next, i32_const(m, p->lanes), "");
    LLVMBuildCondBr(b, is_last, done, each);
    LLVMBasicBlockRef from[2] = {before, LLVMGetInsertBlock(b)};
    Val turns[2] = {i32_const(m, 0), next}, values[2] = {x, turned};
    LLVMAddIncoming(turn, turns, from, 2);
    LLVMAddIncoming(lanes, values, from, 2);
    return turned;
}
