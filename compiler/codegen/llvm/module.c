/* LLVM plumbing. See module.h. */
#include "codegen/llvm/module.h"

#include <llvm-c/Target.h>
#include <string.h>

static const char gpu_triple[] = "nvptx64-nvidia-cuda";
static const char cpu_triple[] = "x86_64-unknown-linux-gnu";
/* Numbers of 64 bits lie at multiples of 8: without it LLVM says 4. */
static const char gpu_layout[] = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64";

void unit_init(Unit *unit, Arena *arena, const Target *target, const char *name) {
    *unit = (Unit){.arena = arena, .target = target};
    bool is_gpu = target->device == DEVICE_GPU;
    LLVMContextRef context = unit->context = LLVMContextCreate();
    unit->module = LLVMModuleCreateWithNameInContext(name, context);
    unit->builder = LLVMCreateBuilderInContext(context);
    unit->math = (MathCtx){
        .context = context, .module = unit->module, .builder = unit->builder, .is_gpu = is_gpu};
    LLVMSetTarget(unit->module, is_gpu ? gpu_triple : cpu_triple);
    if (is_gpu) LLVMSetDataLayout(unit->module, gpu_layout);
    unit->void_type = LLVMVoidTypeInContext(context);
    unit->i1 = LLVMInt1TypeInContext(context);
    unit->i8 = LLVMInt8TypeInContext(context);
    unit->i32 = LLVMInt32TypeInContext(context);
    unit->i64 = LLVMInt64TypeInContext(context);
    unit->f32 = LLVMFloatTypeInContext(context);
    unit->ptr = LLVMPointerTypeInContext(context, 0);
    unit->global_ptr = LLVMPointerTypeInContext(context, is_gpu ? 1 : 0);
    static const char invariant[] = "invariant.load";
    unit->invariant_kind = LLVMGetMDKindIDInContext(context, invariant, sizeof invariant - 1);
    unit->invariant = LLVMMetadataAsValue(context, LLVMMDNodeInContext2(context, NULL, 0));
}

void unit_dispose(Unit *unit) {
    if (unit->builder) LLVMDisposeBuilder(unit->builder);
    if (unit->module) LLVMDisposeModule(unit->module);
    if (unit->context) LLVMContextDispose(unit->context);
    *unit = (Unit){.arena = NULL};
}

LLVMTypeRef unit_vector_of(LLVMTypeRef type, uint32_t lanes) {
    return lanes > 1 ? LLVMVectorType(type, lanes) : type;
}

ConvertType unit_convert_type(Dtype dtype) {
    switch (dtype) {
    case DT_F64:
        return CONVERT_F64;
    case DT_F32:
        return CONVERT_F32;
    case DT_F16:
        return CONVERT_F16;
    case DT_BF16:
        return CONVERT_BF16;
    case DT_I32:
        return CONVERT_I32;
    case DT_BOOL:
    case DT_COUNT:
        break;
    }
    return CONVERT_BOOL;
}

LLVMTypeRef unit_value_type(const Unit *unit, Dtype dtype, uint32_t lanes) {
    return convert_ir_type(&unit->math, unit_convert_type(dtype), lanes > 1 ? lanes : 0);
}

LLVMTypeRef unit_memory_type(const Unit *unit, Dtype dtype, uint32_t lanes) {
    if (dtype == DT_BOOL) return unit_vector_of(unit->i8, lanes);
    return unit_value_type(unit, dtype, lanes);
}

bool unit_is_vector(LLVMValueRef value) {
    return LLVMGetTypeKind(LLVMTypeOf(value)) == LLVMVectorTypeKind;
}

uint32_t unit_lanes(LLVMValueRef value) {
    return unit_is_vector(value) ? LLVMGetVectorSize(LLVMTypeOf(value)) : 1;
}

LLVMValueRef unit_splat(const Unit *unit, LLVMValueRef scalar, uint32_t lanes) {
    if (lanes <= 1 || unit_is_vector(scalar)) return scalar;
    if (LLVMIsConstant(scalar)) {
        LLVMValueRef *all = arena_array(unit->arena, LLVMValueRef, lanes);
        for (uint32_t i = 0; i < lanes; i++) all[i] = scalar;
        return LLVMConstVector(all, lanes);
    }
    LLVMTypeRef type = LLVMVectorType(LLVMTypeOf(scalar), lanes);
    LLVMValueRef poison = LLVMGetPoison(type);
    LLVMValueRef first =
        LLVMBuildInsertElement(unit->builder, poison, scalar, unit_i32(unit, 0), "");
    LLVMValueRef zeros = LLVMConstNull(LLVMVectorType(unit->i32, lanes));
    return LLVMBuildShuffleVector(unit->builder, first, poison, zeros, "");
}

/* Number constants of the storage types go through their bits where LLVM has no such type. */
LLVMValueRef unit_number(const Unit *unit, Dtype dtype, double number) {
    LLVMTypeRef type = unit_value_type(unit, dtype, 1);
    if (dtype == DT_I32) return LLVMConstInt(type, (uint64_t)(int64_t)number, 1);
    if (dtype == DT_BOOL) return LLVMConstInt(type, number != 0, 0);
    if (dtype != DT_BF16 || unit_is_gpu(unit)) return LLVMConstReal(type, number);
    float single = (float)number; /* exact: it was rounded to bf16 */
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    return LLVMConstInt(type, bits >> 16, 0);
}

LLVMValueRef unit_int(LLVMTypeRef type, int64_t value) {
    return LLVMConstInt(type, (uint64_t)value, 1);
}

LLVMValueRef unit_i32(const Unit *unit, int64_t value) {
    return unit_int(unit->i32, value);
}

LLVMValueRef unit_intrinsic(const Unit *unit, const char *name, LLVMTypeRef *overloads,
                            uint32_t n_overloads, LLVMValueRef *args, uint32_t n_args) {
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    if (!id) ice(unit->arena, "LLVM has no intrinsic %s", name);
    LLVMValueRef f = LLVMGetIntrinsicDeclaration(unit->module, id, overloads, n_overloads);
    LLVMTypeRef type = LLVMIntrinsicGetType(unit->context, id, overloads, n_overloads);
    return LLVMBuildCall2(unit->builder, type, f, args, n_args, "");
}

LLVMValueRef unit_load_hinted(const Unit *unit, LLVMTypeRef type, uint32_t n_bytes,
                              LLVMValueRef pointer, bool may_change, LLVMValueRef policy) {
    uint32_t n = n_bytes / 4;
    const char *text = str_format(unit->arena, "ld.global%s%s%s [$%u]%s;", may_change ? "" : ".nc",
                                  policy ? ".L2::cache_hint" : ".L1::no_allocate",
                                  n == 4 ? ".v4.b32 {$0, $1, $2, $3}," : ".v2.b32 {$0, $1},", n,
                                  policy ? str_format(unit->arena, ", $%u", n + 1) : "");
    const char *list = str_format(unit->arena, "%s%s%s", n == 4 ? "=r,=r,=r,=r,l" : "=r,=r,l",
                                  policy ? ",l" : "", may_change ? ",~{memory}" : "");
    LLVMTypeRef words[4] = {unit->i32, unit->i32, unit->i32, unit->i32};
    LLVMTypeRef types[2] = {LLVMTypeOf(pointer), unit->i64};
    LLVMTypeRef result = LLVMVectorType(unit->i32, n);
    LLVMTypeRef signature = LLVMFunctionType(LLVMStructTypeInContext(unit->context, words, n, 0),
                                             types, policy ? 2 : 1, 0);
    LLVMValueRef code = LLVMGetInlineAsm(signature, text, strlen(text), list, strlen(list),
                                         may_change, 0, LLVMInlineAsmDialectATT, 0);
    LLVMValueRef args[2] = {pointer, policy};
    LLVMValueRef loaded = LLVMBuildCall2(unit->builder, signature, code, args, policy ? 2 : 1, "");
    LLVMValueRef all = LLVMGetPoison(result);
    for (uint32_t i = 0; i < n; i++) {
        LLVMValueRef word = LLVMBuildExtractValue(unit->builder, loaded, i, "");
        all = LLVMBuildInsertElement(unit->builder, all, word, unit_i32(unit, i), "");
    }
    return LLVMBuildBitCast(unit->builder, all, type, "");
}

void unit_align_argument(const Unit *unit, LLVMValueRef call, uint32_t arg, uint32_t bytes) {
    (void)unit;
    LLVMSetInstrParamAlignment(call, arg, bytes);
}

LLVMBasicBlockRef unit_block(const Unit *unit, LLVMValueRef function, const char *name) {
    return LLVMAppendBasicBlockInContext(unit->context, function, name);
}

LLVMBasicBlockRef unit_here(const Unit *unit) {
    return LLVMGetInsertBlock(unit->builder);
}

void unit_goto(const Unit *unit, LLVMBasicBlockRef block) {
    LLVMPositionBuilderAtEnd(unit->builder, block);
}

void unit_branch(const Unit *unit, LLVMBasicBlockRef block) {
    LLVMBuildBr(unit->builder, block);
    unit_goto(unit, block);
}

/* Primitives. */

/* As unsigned numbers, between whose signs are turned: ptxas 13.0 makes one instruction of
 * max(max(c, -a), -b) for sm_90 and later, signed, that takes a for -a. */
static LLVMValueRef gpu_int_extreme(const Unit *unit, const char *name, LLVMValueRef a,
                                    LLVMValueRef b) {
    LLVMTypeRef type = LLVMTypeOf(a);
    LLVMValueRef signs = unit_splat(unit, LLVMConstInt(unit->i32, 0x80000000, 0), unit_lanes(a));
    LLVMValueRef args[2];
    args[0] = LLVMBuildXor(unit->builder, a, signs, "");
    args[1] = LLVMBuildXor(unit->builder, b, signs, "");
    LLVMValueRef extreme = unit_intrinsic(unit, name, &type, 1, args, 2);
    return LLVMBuildXor(unit->builder, extreme, signs, "");
}

static LLVMValueRef int_extreme(const Unit *unit, bool is_max, LLVMValueRef a, LLVMValueRef b) {
    if (unit_is_gpu(unit)) return gpu_int_extreme(unit, is_max ? "llvm.umax" : "llvm.umin", a, b);
    LLVMIntPredicate keeps_first = is_max ? LLVMIntSGT : LLVMIntSLT;
    LLVMValueRef first = LLVMBuildICmp(unit->builder, keeps_first, a, b, "");
    return LLVMBuildSelect(unit->builder, first, a, b, "");
}

/* What LLVM would make a signed extreme of: a choice between two numbers by which is larger. */
static bool is_extreme(LLVMValueRef choice, LLVMValueRef a, LLVMValueRef b, bool *is_max) {
    if (!LLVMIsAICmpInst(choice)) return false;
    LLVMValueRef x = LLVMGetOperand(choice, 0), y = LLVMGetOperand(choice, 1);
    LLVMIntPredicate predicate = LLVMGetICmpPredicate(choice);
    bool is_greater = predicate == LLVMIntSGT || predicate == LLVMIntSGE;
    bool is_less = predicate == LLVMIntSLT || predicate == LLVMIntSLE;
    *is_max = is_greater == (x == a);
    return (is_greater || is_less) && ((x == a && y == b) || (x == b && y == a));
}

static LLVMValueRef int_select(const Unit *unit, LLVMValueRef choice, LLVMValueRef a,
                               LLVMValueRef b) {
    bool is_max;
    if (unit_is_gpu(unit) && is_extreme(choice, a, b, &is_max))
        return int_extreme(unit, is_max, a, b);
    return LLVMBuildSelect(unit->builder, choice, a, b, "");
}

static LLVMValueRef int_abs(const Unit *unit, LLVMValueRef a) {
    LLVMValueRef zero = LLVMConstNull(LLVMTypeOf(a));
    LLVMValueRef negative = LLVMBuildICmp(unit->builder, LLVMIntSLT, a, zero, "");
    LLVMValueRef negated = LLVMBuildNeg(unit->builder, a, "");
    return LLVMBuildSelect(unit->builder, negative, negated, a, "");
}

static LLVMValueRef int_prim(const Unit *unit, PrimId prim, LLVMValueRef a, LLVMValueRef b) {
    LLVMBuilderRef builder = unit->builder;
    if (prim == PRIM_ADD) return LLVMBuildAdd(builder, a, b, "");
    if (prim == PRIM_SUB) return LLVMBuildSub(builder, a, b, "");
    if (prim == PRIM_MUL) return LLVMBuildMul(builder, a, b, "");
    if (prim == PRIM_DIV) return math_idiv(&unit->math, a, b);
    if (prim == PRIM_REM) return math_irem(&unit->math, a, b);
    if (prim == PRIM_NEG) return LLVMBuildNeg(builder, a, "");
    if (prim == PRIM_ABS) return int_abs(unit, a);
    if (prim == PRIM_MIN) return int_extreme(unit, false, a, b);
    if (prim == PRIM_MAX) return int_extreme(unit, true, a, b);
    if (prim == PRIM_LT) return LLVMBuildICmp(builder, LLVMIntSLT, a, b, "");
    if (prim == PRIM_LE) return LLVMBuildICmp(builder, LLVMIntSLE, a, b, "");
    if (prim == PRIM_EQ) return LLVMBuildICmp(builder, LLVMIntEQ, a, b, "");
    if (prim == PRIM_NE) return LLVMBuildICmp(builder, LLVMIntNE, a, b, "");
    if (prim == PRIM_AND) return LLVMBuildAnd(builder, a, b, "");
    if (prim == PRIM_OR) return LLVMBuildOr(builder, a, b, "");
    if (prim == PRIM_NOT) return LLVMBuildNot(builder, a, "");
    ice(unit->arena, "%s of integers", prim_info(prim)->name);
}

typedef LLVMValueRef (*MathUnary)(const MathCtx *, LLVMValueRef);

static MathUnary unary_function(PrimId prim) {
    static const MathUnary functions[PRIM_COUNT] = {[PRIM_ABS] = math_fabs,
                                                    [PRIM_SQRT] = math_sqrt,
                                                    [PRIM_FLOOR] = math_floor,
                                                    [PRIM_CEIL] = math_ceil,
                                                    [PRIM_RINT] = math_rint,
                                                    [PRIM_EXP] = math_exp,
                                                    [PRIM_EXP_16] = math_exp_16,
                                                    [PRIM_EXP2] = math_exp2,
                                                    [PRIM_LOG] = math_log,
                                                    [PRIM_LOG2] = math_log2,
                                                    [PRIM_SQRT_22] = math_sqrt_22,
                                                    [PRIM_RSQRT_22] = math_rsqrt_22,
                                                    [PRIM_LOG_21] = math_log_21,
                                                    [PRIM_LOG2_22] = math_log2_22,
                                                    [PRIM_SIN_20] = math_sin_20,
                                                    [PRIM_COS_20] = math_cos_20,
                                                    [PRIM_SIN] = math_sin,
                                                    [PRIM_COS] = math_cos,
                                                    [PRIM_TANH] = math_tanh,
                                                    [PRIM_TANH_10] = math_tanh_10,
                                                    [PRIM_ERF] = math_erf,
                                                    [PRIM_LOGISTIC] = math_logistic,
                                                    [PRIM_LOGISTIC_16] = math_logistic_16,
                                                    [PRIM_NORMAL] = math_normal,
                                                    [PRIM_NORMAL_12] = math_normal_12,
                                                    [PRIM_TF32] = math_tf32};
    return functions[prim];
}

static LLVMValueRef float_prim(const Unit *unit, PrimId prim, LLVMValueRef a, LLVMValueRef b) {
    LLVMBuilderRef builder = unit->builder;
    const MathCtx *m = &unit->math;
    MathUnary function = unary_function(prim);
    if (function) return function(m, a);
    if (prim == PRIM_ADD) return LLVMBuildFAdd(builder, a, b, "");
    if (prim == PRIM_SUB) return LLVMBuildFSub(builder, a, b, "");
    if (prim == PRIM_MUL) return LLVMBuildFMul(builder, a, b, "");
    if (prim == PRIM_DIV) return math_div(m, a, b);
    if (prim == PRIM_DIV_22) return math_div_22(m, a, b);
    if (prim == PRIM_NEG) return LLVMBuildFNeg(builder, a, "");
    if (prim == PRIM_REM) return math_frem(m, a, b);
    if (prim == PRIM_MIN) return math_minimum(m, a, b);
    if (prim == PRIM_MAX) return math_maximum(m, a, b);
    if (prim == PRIM_POW) return math_pow(m, a, b);
    if (prim == PRIM_LT) return math_compare(m, LLVMRealOLT, a, b);
    if (prim == PRIM_LE) return math_compare(m, LLVMRealOLE, a, b);
    if (prim == PRIM_EQ) return math_compare(m, LLVMRealOEQ, a, b);
    if (prim == PRIM_NE) return math_compare(m, LLVMRealUNE, a, b);
    ice(unit->arena, "%s of floats", prim_info(prim)->name);
}

LLVMValueRef unit_prim(const Unit *unit, PrimId prim, Dtype dtype, LLVMValueRef a, LLVMValueRef b,
                       LLVMValueRef c) {
    if (prim == PRIM_SELECT && dtype == DT_I32) return int_select(unit, a, b, c);
    if (prim == PRIM_SELECT) return LLVMBuildSelect(unit->builder, a, b, c, "");
    if (dtype_kind(dtype) == KIND_FLOAT) return float_prim(unit, prim, a, b);
    return int_prim(unit, prim, a, b);
}

/* Control flow. */

Loop loop_begin(const Unit *unit, LLVMValueRef function, LLVMValueRef from, LLVMValueRef to,
                LLVMValueRef step) {
    Loop loop = {.to = to, .step = step};
    loop.before = unit_here(unit);
    loop.body = unit_block(unit, function, "loop");
    loop.exit = unit_block(unit, function, "done");
    LLVMValueRef enters = LLVMBuildICmp(unit->builder, LLVMIntSLT, from, to, "");
    loop.is_entered = LLVMIsAConstantInt(enters) && LLVMConstIntGetZExtValue(enters);
    if (loop.is_entered)
        LLVMBuildBr(unit->builder, loop.body);
    else
        LLVMBuildCondBr(unit->builder, enters, loop.body, loop.exit);
    unit_goto(unit, loop.body);
    loop.index = LLVMBuildPhi(unit->builder, LLVMTypeOf(from), "");
    LLVMAddIncoming(loop.index, &from, &loop.before, 1);
    return loop;
}

void loop_end(const Unit *unit, Loop *loop) {
    LLVMValueRef next = LLVMBuildAdd(unit->builder, loop->index, loop->step, "");
    LLVMValueRef again = LLVMBuildICmp(unit->builder, LLVMIntSLT, next, loop->to, "");
    LLVMBasicBlockRef latch = unit_here(unit);
    LLVMAddIncoming(loop->index, &next, &latch, 1);
    LLVMBuildCondBr(unit->builder, again, loop->body, loop->exit);
    unit_goto(unit, loop->exit);
}

void loop_carry(const Unit *unit, Loop *loop, LLVMValueRef *values, uint32_t n) {
    loop->carried = arena_array(unit->arena, LLVMValueRef, n);
    loop->initial = arena_copy(unit->arena, values, n * sizeof *values);
    for (uint32_t i = 0; i < n; i++) {
        loop->carried[i] = LLVMBuildPhi(unit->builder, LLVMTypeOf(values[i]), "");
        LLVMAddIncoming(loop->carried[i], &loop->initial[i], &loop->before, 1);
        values[i] = loop->carried[i];
    }
}

void loop_end_carry(const Unit *unit, Loop *loop, LLVMValueRef *values, uint32_t n) {
    LLVMBasicBlockRef latch = unit_here(unit);
    for (uint32_t i = 0; i < n; i++) LLVMAddIncoming(loop->carried[i], &values[i], &latch, 1);
    loop_end(unit, loop);
    for (uint32_t i = 0; i < n; i++) {
        LLVMValueRef last = LLVMBuildPhi(unit->builder, LLVMTypeOf(values[i]), "");
        if (!loop->is_entered) LLVMAddIncoming(last, &loop->initial[i], &loop->before, 1);
        LLVMAddIncoming(last, &values[i], &latch, 1);
        values[i] = last;
    }
}

uint32_t loop_flatten(const ValueList *lists, uint32_t n_lists, LLVMValueRef *flat, bool is_back) {
    uint32_t n = 0;
    for (uint32_t k = 0; k < n_lists; k++)
        for (uint32_t i = 0; i < lists[k].n; i++, n++) {
            if (is_back)
                lists[k].values[i] = flat[n];
            else
                flat[n] = lists[k].values[i];
        }
    return n;
}

If if_begin(const Unit *unit, LLVMValueRef function, LLVMValueRef condition) {
    LLVMBasicBlockRef then = unit_block(unit, function, "then");
    If branch = {.after = unit_block(unit, function, "after")};
    LLVMBuildCondBr(unit->builder, condition, then, branch.after);
    unit_goto(unit, then);
    return branch;
}

void if_end(const Unit *unit, If *branch) {
    unit_branch(unit, branch->after);
}

LLVMValueRef unit_index_cast(const Unit *unit, LLVMValueRef value, LLVMTypeRef type) {
    return LLVMBuildIntCast2(unit->builder, value, type, 1, "");
}
