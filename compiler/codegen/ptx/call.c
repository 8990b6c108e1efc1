/* Calls: intrinsics by the table in calls.def, and inline assembly with its operands substituted.
 * See ptx.h. */
#include "codegen/ptx/ptx.h"

#include <stdlib.h>
#include <string.h>

typedef enum CallKind { CALL_EACH, CALL_FOLD, CALL_READ, CALL_ALL } CallKind;

typedef struct Intrinsic {
    const char *name;
    CallKind kind;
    const char *text;
} Intrinsic;

static const Intrinsic intrinsics[] = {
#define EACH(name, text) {name, CALL_EACH, text},
#define FOLD(name, text) {name, CALL_FOLD, text},
#define READ(name, text) {name, CALL_READ, text},
#define CALL(name, text) {name, CALL_ALL, text},
#include "codegen/ptx/calls.def"
};

static int compare_names(const void *name, const void *intrinsic) {
    return strcmp(name, ((const Intrinsic *)intrinsic)->name);
}

static const Intrinsic *find_intrinsic(Ptx *ptx, LLVMValueRef call, LLVMValueRef callee) {
    static const char saturated[] = "llvm.fptosi.sat";
    Intrinsic *found = ptx_map_find(&ptx->called, callee);
    if (found) return found;
    unsigned id = LLVMGetIntrinsicID(callee);
    size_t n;
    const char *name = id ? LLVMIntrinsicGetName(id, &n) : "";
    bool is_wide = strcmp(name, saturated) == 0 && ptx_type_of(ptx, call).element == PTX_I64;
    if (is_wide) name = "llvm.fptosi.sat.i64";
    found = bsearch(name, intrinsics, sizeof intrinsics / sizeof *intrinsics, sizeof *intrinsics,
                    compare_names);
    if (!found) ptx_ice(ptx, "", call);
    ptx_map_add(ptx->arena, &ptx->called, callee, found);
    return found;
}

/* First the parts of all results, which are new registers, then the parts of all arguments. */
typedef struct Operands {
    PtxPart *parts;
    uint32_t n, n_results;
} Operands;

static uint32_t n_fields(LLVMTypeRef type) {
    LLVMTypeKind kind = LLVMGetTypeKind(type);
    if (kind == LLVMVoidTypeKind) return 0;
    return kind == LLVMStructTypeKind ? LLVMCountStructElementTypes(type) : 1;
}

static PtxPart new_field(Ptx *ptx, LLVMTypeRef type, uint32_t i) {
    bool is_struct = LLVMGetTypeKind(type) == LLVMStructTypeKind;
    PtxType field = ptx_type(ptx, is_struct ? LLVMStructGetTypeAtIndex(type, i) : type);
    if (field.n_parts != 1) ice(ptx->arena, "%s: a call returns vectors", ptx->name);
    return *ptx_new_parts(ptx, field);
}

static Operands operands_of(Ptx *ptx, LLVMValueRef call) {
    LLVMTypeRef type = LLVMTypeOf(call);
    uint32_t n_args = LLVMGetNumArgOperands(call), n = n_fields(type);
    Operands all = {.n = n, .n_results = n};
    for (uint32_t i = 0; i < n_args; i++)
        all.n += ptx_type_of(ptx, LLVMGetOperand(call, i)).n_parts;
    all.parts = arena_array(ptx->arena, PtxPart, all.n);
    for (uint32_t i = 0; i < n; i++) all.parts[i] = new_field(ptx, type, i);
    for (uint32_t i = 0; i < n_args; i++) {
        LLVMValueRef arg = LLVMGetOperand(call, i);
        const PtxPart *parts = ptx_parts(ptx, arg);
        for (uint32_t k = 0; k < ptx_type_of(ptx, arg).n_parts; k++) all.parts[n++] = parts[k];
    }
    return all;
}

static void put_all(Ptx *ptx, LLVMValueRef call, const char *text) {
    Operands all = operands_of(ptx, call);
    ptx_put(ptx, NULL, text, all.parts);
    if (all.n_results) ptx_set_parts(ptx, call, all.parts);
}

static void put_each_lane(Ptx *ptx, LLVMValueRef call, const char *text) {
    enum { MAX_ARGS = 3 };
    PtxPart *from[MAX_ARGS];
    uint32_t n = LLVMGetNumArgOperands(call);
    for (uint32_t i = 0; i < n && i < MAX_ARGS; i++)
        from[i] = ptx_parts(ptx, LLVMGetOperand(call, i));
    ptx_put_each(ptx, call, text, ptx_type_of(ptx, LLVMGetOperand(call, 0)), from, n);
}

static void put_fold(Ptx *ptx, LLVMValueRef call, const char *text) {
    LLVMValueRef vector = LLVMGetOperand(call, 0);
    PtxType type = ptx_type_of(ptx, vector);
    PtxPart *lanes = ptx_lanes(ptx, type, ptx_parts(ptx, vector));
    PtxPart *all = arena_copy(ptx->arena, lanes, sizeof *lanes);
    for (uint32_t i = 1; i < type.n_lanes; i++)
        *all = ptx_do(ptx, &type, text, all->class, (PtxPart[]){*all, lanes[i]}, 2);
    ptx_set_parts(ptx, call, all);
}

/* Inline assembly takes registers only. An argument with a tied constraint ("0") is copied into the
 * register of its result first. */
static void put_assembly(Ptx *ptx, LLVMValueRef call, LLVMValueRef callee) {
    Operands all = operands_of(ptx, call);
    size_t n_bytes;
    const char *at = LLVMGetInlineAsmConstraintString(callee, &n_bytes);
    for (uint32_t i = 0; i < all.n; i++, at += strcspn(at, ",") + 1) {
        if (i < all.n_results) continue;
        if (*at >= '0' && *at <= '9')
            ptx_move(ptx, all.parts[strtoul(at, NULL, 10)], all.parts[i]);
        else if (all.parts[i].kind == PTX_VARIABLE)
            all.parts[i].kind = PTX_REGISTER;
        else
            all.parts[i] = ptx_register(ptx, all.parts[i]);
    }
    ptx_put(ptx, NULL, LLVMGetInlineAsmAsmString(callee, &n_bytes), all.parts);
    if (all.n_results) ptx_set_parts(ptx, call, all.parts);
}

bool ptx_is_pure_call(Ptx *ptx, LLVMValueRef call) {
    LLVMValueRef callee = LLVMGetCalledValue(call);
    return !LLVMIsAInlineAsm(callee) && find_intrinsic(ptx, call, callee)->kind != CALL_ALL;
}

bool ptx_put_call(Ptx *ptx, LLVMValueRef call) {
    if (!LLVMIsACallInst(call)) return false;
    LLVMValueRef callee = LLVMGetCalledValue(call);
    if (LLVMIsAInlineAsm(callee)) {
        put_assembly(ptx, call, callee);
        return true;
    }
    const Intrinsic *intrinsic = find_intrinsic(ptx, call, callee);
    if (intrinsic->kind == CALL_EACH)
        put_each_lane(ptx, call, intrinsic->text);
    else if (intrinsic->kind == CALL_FOLD)
        put_fold(ptx, call, intrinsic->text);
    else
        put_all(ptx, call, intrinsic->text);
    return true;
}
