/* See module.h. */
#include "codegen/llvm/module.h"

#include <string.h>

static void init_types(Codegen *k) {
    LLVMContextRef context = k->context;
    k->void_type = LLVMVoidTypeInContext(context);
    k->i1 = LLVMInt1TypeInContext(context);
    k->i8 = LLVMInt8TypeInContext(context);
    k->i16 = LLVMInt16TypeInContext(context);
    k->i32 = LLVMInt32TypeInContext(context);
    k->i64 = LLVMInt64TypeInContext(context);
    k->f16 = LLVMHalfTypeInContext(context);
    k->f32 = LLVMFloatTypeInContext(context);
    k->f64 = LLVMDoubleTypeInContext(context);
    k->ptr = LLVMPointerTypeInContext(context, 0);
    k->global_ptr = LLVMPointerTypeInContext(context, k->target->has->blocks ? 1 : 0);
}

/* Marks branch targets and notes both parts of control-flow enforcement in a CPU's object, so that
 * a program with such an object can keep them. */
static void mark_control_flow(const Codegen *k) {
    static const char *const flags[] = {"cf-protection-branch", "cf-protection-return"};
    LLVMMetadataRef on = LLVMValueAsMetadata(LLVMConstInt(k->i32, 1, false));
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        LLVMAddModuleFlag(k->module, LLVMModuleFlagBehaviorOverride, flags[i], strlen(flags[i]),
                          on);
}

void module_init(Codegen *k, Arena *arena, const Target *target, const char *name) {
    *k = (Codegen){.arena = arena, .target = target};
    k->programs = arena_alloc(arena, sizeof *k->programs);
    LLVMContextRef context = k->context = LLVMContextCreate();
    k->module = LLVMModuleCreateWithNameInContext(name, context);
    k->builder = LLVMCreateBuilderInContext(context);
    LLVMSetTarget(k->module, target->has->triple);
    if (target->has->layout) LLVMSetDataLayout(k->module, target->has->layout);
    init_types(k);
    if (target->has->cores) mark_control_flow(k);
    static const char invariant[] = "invariant.load";
    k->invariant_kind = LLVMGetMDKindIDInContext(context, invariant, sizeof invariant - 1);
    k->invariant = LLVMMetadataAsValue(context, LLVMMDNodeInContext2(context, NULL, 0));
}

void module_dispose(Codegen *k) {
    if (k->builder) LLVMDisposeBuilder(k->builder);
    if (k->module) LLVMDisposeModule(k->module);
    if (k->context) LLVMContextDispose(k->context);
    *k = (Codegen){.arena = NULL};
}

uint32_t k_count_instructions(LLVMValueRef function) {
    uint32_t n = 0;
    LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(function);
    for (; block; block = LLVMGetNextBasicBlock(block))
        for (Val i = LLVMGetFirstInstruction(block); i; i = LLVMGetNextInstruction(i)) n++;
    return n;
}
