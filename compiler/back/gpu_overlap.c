/* Launches that overlap (programmatic dependent launch): the next kernel's blocks come in while the
 * last of this one's run, and each of them waits at its entry for all that the launches before it
 * do. See gpu.h. */
#include "back/gpu.h"

/* "=l,=l,0,1,~{memory}" */
static const char *constraints(const Unit *unit, uint32_t n) {
    Text text = {.arena = unit->arena};
    for (uint32_t i = 0; i < n; i++) text_puts(&text, "=l,");
    for (uint32_t i = 0; i < n; i++) text_printf(&text, "%u,", i);
    text_puts(&text, "~{memory}");
    return text_str(&text);
}

static LLVMTypeRef result_type(const Unit *unit, LLVMTypeRef *types, uint32_t n) {
    if (n == 0) return unit->void_type;
    return n == 1 ? types[0] : LLVMStructTypeInContext(unit->context, types, n, 0);
}

/* First the wait: so no more than one kernel at a time stands waiting behind the one that runs, and
 * what it waits for is all that there is to wait for.
 *
 * LLVM may move a load of what a kernel only reads past anything but what its address hangs on. So
 * the pointers come out of the wait. */
void gpu_wait_for_earlier(const Unit *unit, LLVMValueRef function, uint32_t n) {
    static const char text[] = "griddepcontrol.wait;\n\tgriddepcontrol.launch_dependents;";
    LLVMTypeRef *types = arena_array(unit->arena, LLVMTypeRef, n + 1);
    LLVMValueRef *places = arena_array(unit->arena, LLVMValueRef, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        types[i] = LLVMTypeOf(LLVMGetParam(function, i));
        places[i] = LLVMGetPoison(types[i]);
    }
    const char *list = constraints(unit, n);
    LLVMTypeRef type = LLVMFunctionType(result_type(unit, types, n), types, n, 0);
    LLVMValueRef code = LLVMGetInlineAsm(type, text, sizeof text - 1, list, strlen(list), 1, 0,
                                         LLVMInlineAsmDialectATT, 0);
    LLVMBasicBlockRef before = unit_here(unit), entry = LLVMGetEntryBasicBlock(function);
    LLVMPositionBuilderBefore(unit->builder, LLVMGetFirstInstruction(entry));
    LLVMValueRef waited = LLVMBuildCall2(unit->builder, type, code, places, n, "");
    for (uint32_t i = 0; i < n; i++) {
        LLVMValueRef param = LLVMGetParam(function, i);
        if (!LLVMGetFirstUse(param)) continue;
        LLVMValueRef pointer =
            n == 1 ? waited : LLVMBuildExtractValue(unit->builder, waited, i, "");
        LLVMReplaceAllUsesWith(param, pointer);
    }
    for (uint32_t i = 0; i < n; i++) LLVMSetOperand(waited, i, LLVMGetParam(function, i));
    unit_goto(unit, before);
}
