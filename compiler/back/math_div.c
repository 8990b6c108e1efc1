/* Division of floats, correctly rounded.
 *
 * NVIDIA's assembler makes a division of f32 a short sequence, a check and a call, with branches
 * between one element and the next that keep them from overlapping. Here vectors of f32 have one
 * check for all lanes: where dividends and divisors are of moderate size, Markstein's sequence
 * gives the correctly rounded quotient; else it is done in f64, which has more than twice the digits
 * plus two, so that rounding the quotient again rounds once, subnormal results included. */
#include "back/math_ops.h"

#include <string.h>

static Val reciprocal_of_one(const Fp *p, Val y) {
    const char *text = p->is_f64 ? "rcp.approx.ftz.f64 $0, $1;" : "rcp.approx.ftz.f32 $0, $1;";
    const char *constraints = p->is_f64 ? "=d,d" : "=f,f";
    LLVMTypeRef number = LLVMTypeOf(y), type = LLVMFunctionType(number, &number, 1, 0);
    Val rcp = LLVMGetInlineAsm(type, text, strlen(text), constraints, strlen(constraints), 0, 0,
                               LLVMInlineAsmDialectATT, 0);
    return LLVMBuildCall2(p->m->builder, type, rcp, &y, 1, "");
}

/* Within an ULP (f32) or 2^-20 (f64); of 0 and infinity the other. */
static Val machine_reciprocal(const Fp *p, Val y) {
    LLVMTypeRef i32 = LLVMInt32TypeInContext(p->m->context);
    Val all = LLVMGetPoison(p->type);
    for (unsigned i = 0; i < p->lanes; i++) {
        Val at = LLVMConstInt(i32, i, 0);
        Val one = LLVMBuildExtractElement(p->m->builder, y, at, "");
        one = reciprocal_of_one(p, one);
        all = LLVMBuildInsertElement(p->m->builder, all, one, at, "");
    }
    return all;
}

/* A refined reciprocal and a corrected quotient; the remainder is exact. A dividend of 0 keeps its
 * sign. With `specials` also what has no finite quotient, or an infinite divisor: the product with
 * the machine's reciprocal is then the result. */
static Val refined_quotient(const Fp *p, Val x, Val y, bool specials) {
    Val rough = machine_reciprocal(p, y);
    Val minus_y = fp_neg(p, y);
    Val error = fp_fma(p, minus_y, rough, fp_num(p, 1));
    Val reciprocal = fp_fma(p, rough, error, rough);
    Val first = fp_mul(p, x, reciprocal);
    Val rest = fp_fma(p, minus_y, first, x);
    Val quotient = fp_fma(p, rest, reciprocal, first);
    Val product = fp_mul(p, x, rough);
    Val is_special = fp_eq(p, x, fp_num(p, 0));
    if (specials) {
        Val is_nan = fp_unordered(p, rest, rest);
        is_special = fp_or(p, is_special, is_nan);
    }
    return fp_select(p, is_special, product, quotient);
}

/* Nothing on the way to such a quotient can overflow or lose digits to underflow. */
static Val is_moderate(const Fp *p, Val x, Val y) {
    Val x_size = math_fabs(p->m, x);
    Val y_size = math_fabs(p->m, y);
    Val is_zero = fp_eq(p, x, fp_num(p, 0));
    Val is_normal = LLVMBuildFCmp(p->m->builder, LLVMRealOGE, x_size, fp_num(p, 0x1p-100), "");
    Val moderate = fp_or(p, is_zero, is_normal);
    const double bounds[3] = {0x1p100, 0x1p24, 0x1p-24};
    for (int i = 0; i < 3; i++) {
        LLVMRealPredicate holds = i < 2 ? LLVMRealOLE : LLVMRealOGE;
        Val inside = LLVMBuildFCmp(p->m->builder, holds, i ? y_size : x_size,
                                   fp_num(p, bounds[i]), "");
        moderate = fp_and(p, moderate, inside);
    }
    LLVMTypeRef i32 = LLVMInt32TypeInContext(p->m->context);
    Val all = LLVMBuildExtractElement(p->m->builder, moderate, LLVMConstInt(i32, 0, 0), "");
    for (unsigned i = 1; i < p->lanes; i++) {
        Val one = LLVMBuildExtractElement(p->m->builder, moderate, LLVMConstInt(i32, i, 0), "");
        all = fp_and(p, all, one);
    }
    return all;
}

static Val wide_quotient(const Fp *p, Val x, Val y) {
    LLVMBuilderRef b = p->m->builder;
    Fp wide = fp_f64(p);
    Val x_wide = LLVMBuildFPExt(b, x, wide.type, "");
    Val y_wide = LLVMBuildFPExt(b, y, wide.type, "");
    Val quotient = refined_quotient(&wide, x_wide, y_wide, true);
    return LLVMBuildFPTrunc(b, quotient, p->type, "");
}

Val math_div(const MathCtx *m, Val x, Val y) {
    Fp p = fp_of(m, x);
    LLVMBuilderRef b = m->builder;
    bool is_constant = LLVMIsConstant(x) && LLVMIsConstant(y);
    if (!m->is_nvptx || p.is_f64 || !p.lanes || is_constant) return LLVMBuildFDiv(b, x, y, "");
    Val all_moderate = is_moderate(&p, x, y);
    Val function = LLVMGetBasicBlockParent(LLVMGetInsertBlock(b));
    LLVMBasicBlockRef quick = LLVMAppendBasicBlockInContext(m->context, function, "quick");
    LLVMBasicBlockRef wide = LLVMAppendBasicBlockInContext(m->context, function, "wide");
    LLVMBasicBlockRef done = LLVMAppendBasicBlockInContext(m->context, function, "divided");
    LLVMBuildCondBr(b, all_moderate, quick, wide);
    LLVMPositionBuilderAtEnd(b, quick);
    Val values[2] = {refined_quotient(&p, x, y, false)};
    LLVMBuildBr(b, done);
    LLVMPositionBuilderAtEnd(b, wide);
    values[1] = wide_quotient(&p, x, y);
    LLVMBuildBr(b, done);
    LLVMPositionBuilderAtEnd(b, done);
    LLVMBasicBlockRef blocks[2] = {quick, wide};
    Val quotient = LLVMBuildPhi(b, p.type, "");
    LLVMAddIncoming(quotient, values, blocks, 2);
    return quotient;
}
