/* The operations of math_ops.h. No fast-math flag is ever set. */
#include "codegen/math/math_ops.h"

#include <string.h>

static LLVMTypeRef type_with_lanes(LLVMTypeRef element, unsigned lanes) {
    return lanes ? LLVMVectorType(element, lanes) : element;
}

Fp fp_of(const Codegen *k, Val x) {
    LLVMTypeRef type = LLVMTypeOf(x);
    LLVMTypeRef element = type;
    Fp p = {.k = k, .type = type};
    if (LLVMGetTypeKind(type) == LLVMVectorTypeKind) {
        p.lanes = LLVMGetVectorSize(type);
        element = LLVMGetElementType(type);
    }
    p.is_f64 = LLVMGetTypeKind(element) == LLVMDoubleTypeKind;
    LLVMTypeRef word = LLVMIntTypeInContext(k->context, p.is_f64 ? 64 : 32);
    p.bits = type_with_lanes(word, p.lanes);
    return p;
}

Fp fp_f32(const Fp *p) {
    LLVMTypeRef word = p->k->i32;
    LLVMTypeRef number = p->k->f32;
    return (Fp){.k = p->k,
                .type = type_with_lanes(number, p->lanes),
                .bits = type_with_lanes(word, p->lanes),
                .lanes = p->lanes};
}

Fp fp_f64(const Fp *p) {
    LLVMTypeRef word = p->k->i64;
    LLVMTypeRef number = p->k->f64;
    return (Fp){.k = p->k,
                .type = type_with_lanes(number, p->lanes),
                .bits = type_with_lanes(word, p->lanes),
                .lanes = p->lanes,
                .is_f64 = true};
}

Val fp_splat(const Codegen *k, Val scalar, unsigned lanes) {
    if (!lanes) return scalar;
    Val poison = LLVMGetPoison(LLVMVectorType(LLVMTypeOf(scalar), lanes));
    Val first = k_insert(k, poison, scalar, 0);
    return k_shuffle(k, first, poison, LLVMConstNull(LLVMVectorType(k->i32, lanes)));
}

static LLVMTypeRef element_of(const Fp *p, LLVMTypeRef type) {
    return p->lanes ? LLVMGetElementType(type) : type;
}

Val fp_num(const Fp *p, double value) {
    return fp_splat(p->k, LLVMConstReal(element_of(p, p->type), value), p->lanes);
}

Val fp_int(const Fp *p, uint64_t value) {
    LLVMTypeRef word = element_of(p, p->bits);
    return fp_splat(p->k, LLVMConstInt(word, p->is_f64 ? value : (uint32_t)value, 0), p->lanes);
}

/* The bits of `value` minus one, plus the grid's second extent, which is always one. The addition
 * stands at the function's entry, so that a loop does not repeat it. */
Val fp_opaque(const Fp *p, double value) {
    static const char name[] = "llvm.nvvm.read.ptx.sreg.nctaid.y";
    const Codegen *k = p->k;
    LLVMTypeRef type = LLVMFunctionType(k->i32, NULL, 0, 0);
    Val read = LLVMGetNamedFunction(k->module, name);
    if (!read) read = LLVMAddFunction(k->module, name, type);

    LLVMBasicBlockRef here = k_here(k);
    LLVMBasicBlockRef entry = LLVMGetEntryBasicBlock(LLVMGetBasicBlockParent(here));
    Val first = LLVMGetFirstInstruction(entry);
    LLVMPositionBuilder(k->builder, entry, first);
    union {
        float value;
        uint32_t bits;
    } number = {.value = (float)value};
    Val one = k_call(k, type, read, NULL, 0);
    Val bits = k_addi(k, one, number.bits - 1);
    Val opaque = k_bitcast(k, bits, k->f32);
    k_goto(k, here);
    return fp_splat(k, opaque, p->lanes);
}

Val fp_intrinsic(const Codegen *k, const char *name, LLVMTypeRef type, Val *args, unsigned n_args) {
    return k_intrinsic_of(k, name, &type, 1, args, n_args);
}
