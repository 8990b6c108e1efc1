/* Lanes together: a quick way for all of them, and a few after the others where it does not do. */
#include "codegen/math/math_ops.h"

static Val i32_const(const MathCtx *m, uint32_t value) {
    return LLVMConstInt(LLVMInt32TypeInContext(m->context), value, 0);
}

static Val fp_lane(const Fp *p, Val vector, unsigned i) {
    return LLVMBuildExtractElement(p->m->builder, vector, i32_const(p->m, i), "");
}

Val fp_condition_bits(const Fp *p, Val condition) {
    return LLVMBuildSelect(p->m->builder, condition, i32_const(p->m, UINT32_MAX),
                           i32_const(p->m, 0), "");
}

static Val all_have(const Fp *p, Val bits, uint32_t bit, Val condition_bits) {
    LLVMBuilderRef b = p->m->builder;
    Val all = fp_lane(p, bits, 0);
    for (unsigned i = 1; i < p->lanes; i++) {
        Val own = fp_lane(p, bits, i);
        all = fp_and(p, all, own);
    }
    all = fp_and(p, all, condition_bits);
    Val one = LLVMBuildAnd(b, all, i32_const(p->m, bit), "");
    return LLVMBuildICmp(b, LLVMIntNE, one, i32_const(p->m, 0), "");
}

/* Of exponents (biased by 127) those from 33 to 160 have the highest bit set when 95 is added, and
 * no others. */
Val fp_all_usual(const Fp *p, Val x, Val condition_bits) {
    Val bits = fp_to_bits(p, x);
    bits = fp_iadd(p, bits, fp_int(p, (uint64_t)95 << 23));
    return all_have(p, bits, 0x40000000, condition_bits);
}

/* Less one, zero is the largest number. */
Val fp_all_usual_fractions(const Fp *p, Val x, Val condition_bits) {
    const uint32_t least = (uint32_t)33 << 23; /* 2^-94 */
    LLVMBuilderRef b = p->m->builder;
    Val bits = fp_to_bits(p, x);
    bits = fp_iadd(p, bits, fp_int(p, UINT32_MAX));
    Val all = condition_bits;
    for (unsigned i = 0; i < p->lanes; i++) {
        Val args[] = {all, fp_lane(p, bits, i)};
        all = fp_intrinsic(p->m, "llvm.umin", LLVMTypeOf(all), args, 2);
    }
    return LLVMBuildICmp(b, LLVMIntUGE, all, i32_const(p->m, least - 1), "");
}

/* `n` lanes from `first` on, around the end. */
static Val lanes_from(const Fp *p, Val vector, unsigned first, unsigned n) {
    Val order[64];
    for (unsigned i = 0; i < n; i++) order[i] = i32_const(p->m, (first + i) % p->lanes);
    Val poison = LLVMGetPoison(LLVMTypeOf(vector));
    return LLVMBuildShuffleVector(p->m->builder, vector, poison, LLVMConstVector(order, n), "");
}

/* Of 64 lanes four: one by one would take 64 turns, of 64 moves each. */
static unsigned lanes_at_once(const Fp *p) {
    unsigned n = p->lanes < 32 ? 1 : p->lanes / 16;
    while (p->lanes % n) n--;
    return n;
}

/* Works on the first lanes and turns all by as many, until each was first: little code. */
Val fp_few_lanes(const Fp *p, Val x, Val (*of)(const Fp *few, Val x, const void *user),
                 const void *user, LLVMBasicBlockRef done) {
    const MathCtx *m = p->m;
    LLVMBuilderRef b = m->builder;
    unsigned n = lanes_at_once(p);
    LLVMBasicBlockRef before = LLVMGetInsertBlock(b);
    Val function = LLVMGetBasicBlockParent(before);
    LLVMBasicBlockRef each = LLVMAppendBasicBlockInContext(m->context, function, "each");
    LLVMBuildBr(b, each);
    LLVMPositionBuilderAtEnd(b, each);
    Val turn = LLVMBuildPhi(b, LLVMInt32TypeInContext(m->context), "");
    Val lanes = LLVMBuildPhi(b, p->type, "");
    Val first = lanes_from(p, lanes, 0, n);
    Fp few = fp_of(m, first);
    Val results = of(&few, first, user);
    Val turned = lanes_from(p, lanes, n, p->lanes);
    for (unsigned i = 0; i < n; i++) {
        Val result = fp_lane(&few, results, i);
        Val at = i32_const(m, p->lanes - n + i);
        turned = LLVMBuildInsertElement(b, turned, result, at, "");
    }
    Val next = LLVMBuildAdd(b, turn, i32_const(m, 1), "");
    Val is_last = LLVMBuildICmp(b, LLVMIntEQ, next, i32_const(m, p->lanes / n), "");
    LLVMBuildCondBr(b, is_last, done, each);
    LLVMBasicBlockRef from[2] = {before, LLVMGetInsertBlock(b)};
    Val turns[2] = {i32_const(m, 0), next}, values[2] = {x, turned};
    LLVMAddIncoming(turn, turns, from, 2);
    LLVMAddIncoming(lanes, values, from, 2);
    return turned;
}
