/* Code for all lanes of a vector at once, and a loop for the lanes that need a slower way. */
#include "codegen/math/math_ops.h"

Val fp_any_lane(const Fp *p, Val condition) {
    if (!p->lanes) return condition;
    return fp_intrinsic(p->k, "llvm.vector.reduce.or", LLVMTypeOf(condition), &condition, 1);
}

Val fp_condition_bits(const Fp *p, Val condition) {
    return k_select(p->k, condition, k_i32(p->k, -1), k_i32(p->k, 0));
}

static Val all_have(const Fp *p, Val bits, uint32_t bit, Val condition_bits) {
    const Codegen *k = p->k;
    Val all = k_extract(p->k, bits, 0);
    for (unsigned i = 1; i < p->lanes; i++) {
        Val own = k_extract(p->k, bits, i);
        all = k_and(p->k, all, own);
    }
    all = k_and(p->k, all, condition_bits);
    Val one = k_andi(k, all, bit);
    return k_nei(k, one, 0);
}

/* Adding 95 to an exponent (biased by 127) sets its highest bit exactly for exponents from 33 to
 * 160. */
Val fp_all_usual(const Fp *p, Val x, Val condition_bits) {
    Val bits = k_bitcast(p->k, x, p->bits);
    bits = k_add(p->k, bits, fp_int(p, (uint64_t)95 << 23));
    return all_have(p, bits, 0x40000000, condition_bits);
}

/* Subtracting one from the bits makes zero the largest unsigned number. */
Val fp_all_usual_fractions(const Fp *p, Val x, Val condition_bits) {
    const uint32_t least = (uint32_t)33 << 23; /* 2^-94 */
    const Codegen *k = p->k;
    Val bits = k_bitcast(p->k, x, p->bits);
    bits = k_add(p->k, bits, fp_int(p, UINT32_MAX));
    if (!k_has_ptx(k)) {
        Val are_usual = k_uge(k, bits, fp_int(p, least - 1));
        Val all = fp_intrinsic(k, "llvm.vector.reduce.and", LLVMTypeOf(are_usual), &are_usual, 1);
        return k_and(k, all, k_nei(k, condition_bits, 0));
    }
    Val all = condition_bits;
    for (unsigned i = 0; i < p->lanes; i++) {
        all = k_umin(k, all, k_extract(k, bits, i));
    }
    return k_ugei(k, all, least - 1);
}

/* `n` lanes from lane `first` on; after the last lane follows lane 0. */
static Val lanes_from(const Fp *p, Val vector, unsigned first, unsigned n) {
    Val order[64];
    for (unsigned i = 0; i < n; i++) order[i] = k_i32(p->k, (first + i) % p->lanes);
    Val poison = LLVMGetPoison(LLVMTypeOf(vector));
    return k_shuffle(p->k, vector, poison, LLVMConstVector(order, n));
}

/* 4 of 64 lanes at once: one lane at once would take 64 iterations with 64 moves each. */
static unsigned lanes_at_once(const Fp *p) {
    unsigned n = p->lanes < 32 ? 1 : p->lanes / 16;
    while (p->lanes % n) n--;
    return n;
}

/* Each iteration works on the first lanes of the vector and then rotates the vector by that many
 * lanes. A fixed lane position keeps the code small. */
Val fp_few_lanes(const Fp *p, Val x, Val (*of)(const Fp *few, Val x, const void *user),
                 const void *user, LLVMBasicBlockRef done) {
    const Codegen *k = p->k;
    unsigned n = lanes_at_once(p);
    LLVMBasicBlockRef before = k_here(k);
    LLVMBasicBlockRef each = k_block(k, "each");
    k_branch(k, each);
    Val iteration = k_phi(k, k->i32);
    Val lanes = k_phi(k, p->type);
    Val first = lanes_from(p, lanes, 0, n);
    Fp few = fp_of(k, first);
    Val results = of(&few, first, user);
    Val rotated = lanes_from(p, lanes, n, p->lanes);
    for (unsigned i = 0; i < n; i++) {
        Val result = k_extract(k, results, i);
        rotated = k_insert(k, rotated, result, p->lanes - n + i);
    }
    Val next = k_addi(k, iteration, 1);
    Val is_last = k_eqi(k, next, p->lanes / n);
    k_cond_br(k, is_last, done, each);
    LLVMBasicBlockRef last = k_here(k);
    k_incoming(iteration, k_i32(k, 0), before);
    k_incoming(iteration, next, last);
    k_incoming(lanes, x, before);
    k_incoming(lanes, rotated, last);
    return rotated;
}
