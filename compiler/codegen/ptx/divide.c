/* Integer division. See ptx.h.
 *
 * ptxas divides by a constant as slowly as by a variable: it emits a reciprocal with corrections
 * for 32 bits and a function call for 64 bits. So a division by a constant becomes a multiplication
 * here (Granlund and Montgomery, Division by Invariant Integers using Multiplication), and a
 * remainder is computed from its quotient. */
#include "codegen/ptx/ptx.h"

static bool is_quotient(LLVMOpcode op) {
    return op == LLVMUDiv || op == LLVMSDiv;
}

static bool is_signed(LLVMOpcode op) {
    return op == LLVMSDiv || op == LLVMSRem;
}

/* The remainder in the same block with the same operands as this quotient, or the quotient of this
 * remainder. NULL: there is none. */
static LLVMValueRef find_partner(LLVMValueRef division) {
    static const LLVMOpcode partners[] = {
        [LLVMUDiv] = LLVMURem, [LLVMURem] = LLVMUDiv, [LLVMSDiv] = LLVMSRem, [LLVMSRem] = LLVMSDiv};
    LLVMValueRef x = LLVMGetOperand(division, 0), y = LLVMGetOperand(division, 1);
    LLVMOpcode op = partners[LLVMGetInstructionOpcode(division)];
    for (LLVMUseRef use = LLVMGetFirstUse(x); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        if (LLVMGetInstructionOpcode(user) == op && LLVMGetOperand(user, 0) == x &&
            LLVMGetOperand(user, 1) == y &&
            LLVMGetInstructionParent(user) == LLVMGetInstructionParent(division))
            return user;
    }
    return NULL;
}

/* ceil(log2(d)) */
static uint32_t log2_up(uint64_t d) {
    uint32_t n = 0;
    while (n < 64 && (UINT64_C(1) << n) < d) n++;
    return n;
}

/* floor(2^n_bits * (2^n - d) / d) + 1, for 2^(n - 1) < d < 2^n */
static uint64_t reciprocal(uint64_t d, uint32_t n, uint32_t n_bits) {
    uint64_t rest = (UINT64_C(1) << n) - d, quotient = 0;
    for (uint32_t i = 0; i < n_bits; i++) {
        rest *= 2;
        quotient = quotient * 2 + (rest >= d);
        rest -= rest >= d ? d : 0;
    }
    return quotient + 1;
}

/* x / d for any x of the type. d > 2 must not be a power of two. */
static PtxPart unsigned_quotient(Ptx *ptx, PtxType type, PtxPart x, uint64_t d) {
    uint32_t n_bits = ptx_element(type.element)->bits, n = log2_up(d);
    for (uint32_t shift = 0; n_bits == 32 && shift < n; shift++) {
        uint64_t power = UINT64_C(1) << (32 + shift), factor = (power + d - 1) / d;
        if (factor >> 32 || factor * d - power > UINT64_C(1) << shift) continue;
        PtxPart from[3] = {x, ptx_number(x.class, (int32_t)factor), ptx_number(PTX_32, shift)};
        return ptx_do(ptx, &type, "mul.hi.#u $0, $1, $2; shr.#u $0, $0, $3;", x.class, from, 3);
    }
    uint64_t factor = reciprocal(d, n, n_bits);
    int64_t number = n_bits == 32 ? (int32_t)factor : (int64_t)factor;
    PtxPart from[3] = {x, ptx_number(x.class, number), ptx_number(PTX_32, (int64_t)n - 1)};
    return ptx_do(ptx, &type,
                  "{ .reg .#b t, u; mul.hi.#u t, $1, $2; sub.#s u, $1, t; shr.#u u, u, 1; "
                  "add.#s u, u, t; shr.#u $0, u, $3; }",
                  x.class, from, 3);
}

/* x / d for 32 bits and d > 1, rounded towards zero. */
static PtxPart signed_quotient(Ptx *ptx, PtxPart x, uint32_t d) {
    uint32_t n = log2_up(d);
    if (d == UINT32_C(1) << n)
        return ptx_do(
            ptx, NULL,
            "{ .reg .b32 t; shr.s32 t, $1, 31; shr.u32 t, t, $2; add.s32 t, t, $1; "
            "shr.s32 $0, t, $3; }",
            PTX_32, (PtxPart[]){x, ptx_number(PTX_32, 32 - (int64_t)n), ptx_number(PTX_32, n)}, 3);
    uint64_t factor = (UINT64_C(1) << (31 + n)) / d + 1; /* 2^31 < operand < 2^32 */
    PtxPart from[3] = {x, ptx_number(PTX_32, (int32_t)factor), ptx_number(PTX_32, (int64_t)n - 1)};
    return ptx_do(ptx, NULL,
                  "{ .reg .b32 t, u; mul.hi.s32 t, $1, $2; add.s32 t, t, $1; shr.s32 t, t, $3; "
                  "shr.u32 u, $1, 31; add.s32 $0, t, u; }",
                  PTX_32, from, 3);
}

/* A 64-bit quotient. Most operands fit 32 bits, so the code tests for this and takes the short
 * division. */
static PtxPart wide_quotient(Ptx *ptx, LLVMOpcode op, PtxPart x, PtxPart y) {
#define WIDE_QUOTIENT(type)                                                                   \
    "{ .reg .pred far; .reg .b64 both; .reg .b32 x, y; or.b64 both, $r1, $r2; "               \
    "setp.gt.u64 far, both, 4294967295; @far bra FAR; cvt.u32.u64 x, $1; cvt.u32.u64 y, $2; " \
    "div.u32 x, x, y; cvt.u64.u32 $0, x; bra DONE; FAR: div." type " $0, $1, $2; DONE: }"
    const char *text = is_signed(op) ? WIDE_QUOTIENT("s64") : WIDE_QUOTIENT("u64");
#undef WIDE_QUOTIENT
    return ptx_do(ptx, NULL, text, PTX_64, (PtxPart[]){x, y}, 2);
}

static PtxPart quotient(Ptx *ptx, LLVMOpcode op, PtxType type, PtxPart x, PtxPart y) {
    bool is_constant = y.kind == PTX_NUMBER && y.number > 1, is_wide = type.element == PTX_I64;
    uint64_t d = ptx_bits(y, type);
    if (is_constant && !is_signed(op) && (d & (d - 1)))
        return unsigned_quotient(ptx, type, ptx_plain(ptx, x), d);
    if (is_constant && is_signed(op) && !is_wide)
        return signed_quotient(ptx, ptx_plain(ptx, x), (uint32_t)d);
    if (y.kind != PTX_NUMBER && is_wide) return wide_quotient(ptx, op, x, y);
    return ptx_operate(ptx, is_signed(op) ? LLVMSDiv : LLVMUDiv, type, x, y);
}

/* Whether a remainder is by a power of two: then it is a mask. */
static bool is_mask(LLVMOpcode op, PtxType type, PtxPart y) {
    uint64_t d = ptx_bits(y, type);
    return op == LLVMURem && y.kind == PTX_NUMBER && !(d & (d - 1));
}

bool ptx_put_division(Ptx *ptx, LLVMValueRef instruction) {
    LLVMOpcode op = LLVMGetInstructionOpcode(instruction);
    if (!is_quotient(op) && op != LLVMURem && op != LLVMSRem) return false;
    PtxType type = ptx_type_of(ptx, instruction);
    const PtxPart *x = ptx_parts(ptx, LLVMGetOperand(instruction, 0));
    const PtxPart *y = ptx_parts(ptx, LLVMGetOperand(instruction, 1));
    if (is_mask(op, type, *y)) return false;
    LLVMValueRef partner = find_partner(instruction);
    bool has_rest = partner || !is_quotient(op);
    PtxPart *quotients = arena_array(ptx->arena, PtxPart, type.n_parts);
    PtxPart *rests = arena_array(ptx->arena, PtxPart, type.n_parts);
    for (uint32_t i = 0; i < type.n_parts; i++) {
        quotients[i] = quotient(ptx, op, type, x[i], y[i]);
        if (!has_rest) continue;
        PtxPart product = ptx_operate(ptx, LLVMMul, type, quotients[i], y[i]);
        rests[i] = ptx_operate(ptx, LLVMSub, type, x[i], product);
    }
    ptx_set_parts(ptx, instruction, is_quotient(op) ? quotients : rests);
    if (partner) ptx_set_parts(ptx, partner, is_quotient(op) ? rests : quotients);
    return true;
}
