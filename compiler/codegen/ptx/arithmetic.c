/* Arithmetic, comparisons and selects, lane by lane. See ptx.h.
 *
 * Every float instruction carries `.rn`. Without it, ptxas would contract a multiplication and an
 * addition to one fma. */
#include "codegen/ptx/ptx.h"

void ptx_put_each(Ptx *ptx, LLVMValueRef instruction, const char *text, PtxType type,
                  PtxPart *const *from, uint32_t n) {
    PtxPart *to = ptx_new_parts(ptx, ptx_type_of(ptx, instruction));
    bool is_short = ptx_element(type.element)->bits == 16; /* PTX takes no immediates of 16 bits */
    for (uint32_t i = 0; i < type.n_parts; i++) {
        PtxPart operands[4] = {to[i]};
        for (uint32_t k = 0; k < n; k++)
            operands[k + 1] = is_short ? ptx_register(ptx, from[k][i]) : from[k][i];
        ptx_put(ptx, &type, text, operands);
    }
    ptx_set_parts(ptx, instruction, to);
}

/* Operators. */

static const char *const operators[] = {
    [LLVMAdd] = "add.#s $0, $1, $2;",     [LLVMSub] = "sub.#s $0, $1, $2;",
    [LLVMMul] = "mul.lo.#s $0, $1, $2;",  [LLVMUDiv] = "div.#u $0, $1, $2;",
    [LLVMSDiv] = "div.#s $0, $1, $2;",    [LLVMURem] = "rem.#u $0, $1, $2;",
    [LLVMSRem] = "rem.#s $0, $1, $2;",    [LLVMShl] = "shl.#b $0, $1, $2;",
    [LLVMLShr] = "shr.#u $0, $1, $2;",    [LLVMAShr] = "shr.#s $0, $1, $2;",
    [LLVMAnd] = "and.#b $0, $1, $2;",     [LLVMOr] = "or.#b $0, $1, $2;",
    [LLVMXor] = "xor.#b $0, $1, $2;",     [LLVMFAdd] = "add.rn.#f $0, $1, $2;",
    [LLVMFSub] = "sub.rn.#f $0, $1, $2;", [LLVMFMul] = "mul.rn.#f $0, $1, $2;",
    [LLVMFDiv] = "div.rn.#f $0, $1, $2;", [LLVMFNeg] = "neg.#f $0, $1;"};

static bool is_number(PtxPart part, int64_t number) {
    return part.kind == PTX_NUMBER && part.number == number;
}

uint64_t ptx_bits(PtxPart part, PtxType type) {
    uint32_t bits = ptx_element(type.element)->bits;
    return (uint64_t)part.number & (UINT64_MAX >> (64 - bits));
}

/* log2 of a number that is a power of two, else -1. */
static int power_of_two(PtxPart part, PtxType type) {
    uint64_t bits = ptx_bits(part, type);
    if (part.kind != PTX_NUMBER || !bits || (bits & (bits - 1))) return -1;
    int n = 0;
    while (bits >>= 1) n++;
    return n;
}

static bool is_float_number(PtxPart part, PtxType type, uint64_t f32, uint64_t f64) {
    if (part.kind != PTX_NUMBER) return false;
    if (type.element == PTX_F32) return ptx_bits(part, type) == f32;
    return type.element == PTX_F64 && ptx_bits(part, type) == f64;
}

/* Whether `x op y` equals x. Lowering emits identities such as x + 0, and this file drops them. */
static bool is_left(LLVMOpcode op, PtxType type, PtxPart y) {
    switch (op) {
    case LLVMAdd:
    case LLVMSub:
    case LLVMOr:
    case LLVMXor:
    case LLVMShl:
    case LLVMLShr:
    case LLVMAShr:
        return is_number(y, 0);
    case LLVMMul:
    case LLVMUDiv:
    case LLVMSDiv:
        return is_number(y, 1);
    case LLVMFAdd:
        return is_float_number(y, type, 0x80000000, 0x8000000000000000);
    case LLVMFMul:
        return is_float_number(y, type, 0x3f800000, 0x3ff0000000000000);
    default:
        return false;
    }
}

static bool is_commutative(LLVMOpcode op) {
    return op == LLVMAdd || op == LLVMMul || op == LLVMAnd || op == LLVMOr || op == LLVMXor ||
           op == LLVMFAdd || op == LLVMFMul;
}

/* Replaces a multiplication by a power of two with a shift, and an unsigned division or remainder
 * by a power of two with a shift or a mask. */
static LLVMOpcode cheaper(LLVMOpcode op, PtxType type, PtxPart *y) {
    int n = power_of_two(*y, type);
    if (n < 0 || (op != LLVMMul && op != LLVMUDiv && op != LLVMURem)) return op;
    y->number = op == LLVMURem ? (int64_t)((UINT64_C(1) << n) - 1) : n;
    return op == LLVMMul ? LLVMShl : op == LLVMUDiv ? LLVMLShr : LLVMAnd;
}

/* Whether `y` is a power of two whose reciprocal is a normal float. Then `y` becomes the
 * reciprocal, and a multiplication gives the quotient exactly. */
static bool invert(PtxType type, PtxPart *y) {
    bool is_f64 = type.element == PTX_F64;
    if (y->kind != PTX_NUMBER || (!is_f64 && type.element != PTX_F32)) return false;
    uint32_t n_fraction = is_f64 ? 52 : 23;
    uint64_t bits = ptx_bits(*y, type), bias = is_f64 ? 1023 : 127;
    uint64_t exponent = bits >> n_fraction & (2 * bias + 1);
    if (bits << (64 - n_fraction) || exponent == 0 || exponent >= 2 * bias) return false;
    y->number = (int64_t)(bits + ((2 * bias - 2 * exponent) << n_fraction));
    return true;
}

static bool is_shift(LLVMOpcode op) {
    return op == LLVMShl || op == LLVMLShr || op == LLVMAShr;
}

static const char *operator_text(LLVMOpcode op, PtxType type, const PtxPart *x) {
    if (op == LLVMFDiv && is_float_number(*x, type, 0x3f800000, 0x3ff0000000000000))
        return "rcp.rn.#f $0, $2;";
    if (op == LLVMXor && type.element == PTX_I1 && is_number(x[1], 1)) return "not.pred $0, $1;";
    return operators[op];
}

PtxPart ptx_operate(Ptx *ptx, LLVMOpcode op, PtxType type, PtxPart x, PtxPart y) {
    PtxPart both[2] = {x, y};
    if (is_commutative(op) && x.kind == PTX_NUMBER) {
        both[0] = y;
        both[1] = x;
    }
    op = cheaper(op, type, &both[1]);
    if (op == LLVMFDiv && invert(type, &both[1])) op = LLVMFMul;
    if (is_left(op, type, both[1])) return both[0];
    const char *text = operator_text(op, type, both);
    if (is_shift(op) && type.element == PTX_I64 && both[1].kind != PTX_NUMBER)
        both[1] = ptx_do(ptx, NULL, "cvt.u32.u64 $0, $1;", PTX_32, &both[1], 1);
    bool is_short = ptx_element(type.element)->bits == 16 || type.element == PTX_I1;
    for (uint32_t k = 0; k < 2 && is_short; k++)
        if (text[0] != 'n') both[k] = ptx_register(ptx, both[k]);
    return ptx_do(ptx, &type, text, ptx_part_class(type), both, 2);
}

static void put_operators(Ptx *ptx, LLVMValueRef instruction, LLVMOpcode op) {
    if (ptx_map_find(&ptx->parts, instruction))
        return; /* ptx_put_division already wrote this half of a
                 * quotient and remainder */
    if (ptx_put_division(ptx, instruction)) return;
    PtxType type = ptx_type_of(ptx, instruction);
    const PtxPart *x = ptx_parts(ptx, LLVMGetOperand(instruction, 0));
    const PtxPart *y = x;
    if (op != LLVMFNeg) y = ptx_parts(ptx, LLVMGetOperand(instruction, 1));
    PtxPart *to = arena_array(ptx->arena, PtxPart, type.n_parts);
    for (uint32_t i = 0; i < type.n_parts; i++) to[i] = ptx_operate(ptx, op, type, x[i], y[i]);
    ptx_set_parts(ptx, instruction, to);
}

/* Comparisons. */

static const char *compare_text(const Ptx *ptx, LLVMValueRef instruction, PtxType type) {
    static const char *const integers[] = {
        [LLVMIntEQ] = "setp.eq.#b $0, $1, $2;",  [LLVMIntNE] = "setp.ne.#b $0, $1, $2;",
        [LLVMIntUGT] = "setp.gt.#u $0, $1, $2;", [LLVMIntUGE] = "setp.ge.#u $0, $1, $2;",
        [LLVMIntULT] = "setp.lt.#u $0, $1, $2;", [LLVMIntULE] = "setp.le.#u $0, $1, $2;",
        [LLVMIntSGT] = "setp.gt.#s $0, $1, $2;", [LLVMIntSGE] = "setp.ge.#s $0, $1, $2;",
        [LLVMIntSLT] = "setp.lt.#s $0, $1, $2;", [LLVMIntSLE] = "setp.le.#s $0, $1, $2;"};
    static const char *const floats[] = {
        [LLVMRealOEQ] = "setp.eq.#f $0, $1, $2;",  [LLVMRealOGT] = "setp.gt.#f $0, $1, $2;",
        [LLVMRealOGE] = "setp.ge.#f $0, $1, $2;",  [LLVMRealOLT] = "setp.lt.#f $0, $1, $2;",
        [LLVMRealOLE] = "setp.le.#f $0, $1, $2;",  [LLVMRealONE] = "setp.ne.#f $0, $1, $2;",
        [LLVMRealORD] = "setp.num.#f $0, $1, $2;", [LLVMRealUNO] = "setp.nan.#f $0, $1, $2;",
        [LLVMRealUEQ] = "setp.equ.#f $0, $1, $2;", [LLVMRealUGT] = "setp.gtu.#f $0, $1, $2;",
        [LLVMRealUGE] = "setp.geu.#f $0, $1, $2;", [LLVMRealULT] = "setp.ltu.#f $0, $1, $2;",
        [LLVMRealULE] = "setp.leu.#f $0, $1, $2;", [LLVMRealUNE] = "setp.neu.#f $0, $1, $2;"};
    if (LLVMGetInstructionOpcode(instruction) == LLVMFCmp)
        return floats[LLVMGetFCmpPredicate(instruction)];
    LLVMIntPredicate predicate = LLVMGetICmpPredicate(instruction);
    if (type.element != PTX_I1) return integers[predicate];
    if (predicate == LLVMIntNE) return "xor.pred $0, $r1, $r2;";
    if (predicate == LLVMIntEQ) return "xor.pred $0, $r1, $r2; not.pred $0, $0;";
    ptx_ice(ptx, "", instruction);
}

static void put_comparison(Ptx *ptx, LLVMValueRef instruction) {
    LLVMValueRef x = LLVMGetOperand(instruction, 0), y = LLVMGetOperand(instruction, 1);
    PtxType type = ptx_type_of(ptx, x);
    const char *text = compare_text(ptx, instruction, type);
    PtxPart *from[2];
    from[0] = ptx_lanes(ptx, type, ptx_parts(ptx, x));
    from[1] = ptx_lanes(ptx, type, ptx_parts(ptx, y));
    ptx_put_each(ptx, instruction, text, ptx_unpacked(type), from, 2);
}

/* Selects. */

static PtxPart choose(Ptx *ptx, PtxType type, PtxPart condition, PtxPart yes, PtxPart no) {
    static const char of_predicates[] =
        "{ .reg .pred t, f; and.pred t, $r3, $r1; not.pred f, $r3; and.pred f, f, $r2; "
        "or.pred $0, t, f; }";
    static const char *const texts[] = {[PTX_PRED] = of_predicates,
                                        [PTX_16] = "selp.b16 $0, $r1, $r2, $r3;",
                                        [PTX_32] = "selp.b32 $0, $1, $2, $r3;",
                                        [PTX_64] = "selp.b64 $0, $1, $2, $r3;"};
    PtxClass class = ptx_part_class(type);
    if (condition.kind == PTX_NUMBER) return condition.number ? yes : no;
    if (class == PTX_PRED && is_number(no, 0))
        return ptx_do(ptx, NULL, "and.pred $0, $r1, $r2;", class, (PtxPart[]){condition, yes}, 2);
    bool is_float = type.element == PTX_F32 || type.element == PTX_F64;
    const char *text = is_float ? "selp.#f $0, $1, $2, $r3;" : texts[class];
    return ptx_do(ptx, &type, text, class, (PtxPart[]){yes, no, condition}, 3);
}

/* A select between packed 16-bit lanes, whose condition compares packed 16-bit floats. `set` fills
 * each half of a register with ones where the comparison holds, so one lop3 selects two lanes. */
static bool put_choice_of_pairs(Ptx *ptx, LLVMValueRef instruction) {
    static const char *const texts[] = {[LLVMRealOLT] = "set.lt.u32.#f $0, $r1, $r2;",
                                        [LLVMRealOLE] = "set.le.u32.#f $0, $r1, $r2;",
                                        [LLVMRealOEQ] = "set.eq.u32.#f $0, $r1, $r2;",
                                        [LLVMRealUNE] = "set.neu.u32.#f $0, $r1, $r2;"};
    PtxType type = ptx_type_of(ptx, instruction);
    LLVMValueRef condition = LLVMGetOperand(instruction, 0);
    if (!type.is_packed || !LLVMIsAFCmpInst(condition)) return false;
    LLVMRealPredicate predicate = LLVMGetFCmpPredicate(condition);
    LLVMValueRef x = LLVMGetOperand(condition, 0), y = LLVMGetOperand(condition, 1);
    PtxType compared = ptx_type_of(ptx, x);
    if (!compared.is_packed || predicate >= sizeof texts / sizeof *texts || !texts[predicate])
        return false;
    const PtxPart *left = ptx_parts(ptx, x), *right = ptx_parts(ptx, y);
    const PtxPart *yes = ptx_parts(ptx, LLVMGetOperand(instruction, 1));
    const PtxPart *no = ptx_parts(ptx, LLVMGetOperand(instruction, 2));
    PtxPart *to = arena_array(ptx->arena, PtxPart, type.n_parts);
    for (uint32_t i = 0; i < type.n_parts; i++) {
        PtxPart compares[2] = {left[i], right[i]};
        PtxPart mask = ptx_do(ptx, &compared, texts[predicate], PTX_32, compares, 2);
        PtxPart chooses[3] = {yes[i], no[i], mask};
        to[i] = ptx_do(ptx, NULL, "lop3.b32 $0, $r1, $r2, $r3, 0xe4;", PTX_32, chooses, 3);
    }
    ptx_set_parts(ptx, instruction, to);
    return true;
}

static void put_choice(Ptx *ptx, LLVMValueRef instruction) {
    if (put_choice_of_pairs(ptx, instruction)) return;
    PtxType type = ptx_type_of(ptx, instruction), own = type;
    LLVMValueRef condition = LLVMGetOperand(instruction, 0);
    bool is_one = ptx_type_of(ptx, condition).n_lanes == 1;
    const PtxPart *conditions = ptx_parts(ptx, condition);
    const PtxPart *yes = ptx_parts(ptx, LLVMGetOperand(instruction, 1));
    const PtxPart *no = ptx_parts(ptx, LLVMGetOperand(instruction, 2));
    if (!is_one) { /* one condition per lane */
        yes = ptx_lanes(ptx, type, yes);
        no = ptx_lanes(ptx, type, no);
        own = ptx_unpacked(type);
    }
    PtxPart *to = arena_array(ptx->arena, PtxPart, own.n_parts);
    for (uint32_t i = 0; i < own.n_parts; i++)
        to[i] = choose(ptx, own, conditions[is_one ? 0 : i], yes[i], no[i]);
    ptx_set_parts(ptx, instruction, is_one ? to : ptx_join_lanes(ptx, type, to));
}

bool ptx_put_arithmetic(Ptx *ptx, LLVMValueRef instruction) {
    LLVMOpcode op = LLVMGetInstructionOpcode(instruction);
    if (op == LLVMICmp || op == LLVMFCmp)
        put_comparison(ptx, instruction);
    else if (op == LLVMSelect)
        put_choice(ptx, instruction);
    else if (op < sizeof operators / sizeof *operators && operators[op])
        put_operators(ptx, instruction, op);
    else
        return false;
    return true;
}
