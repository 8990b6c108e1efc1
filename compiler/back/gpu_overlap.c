/* Launches that overlap (programmatic dependent launch): the next kernel's blocks come in while the
 * last of this one's run, and each of them waits at its entry for all that the launches before it
 * do. See gpu.h. */
#include "back/gpu.h"

/* First the wait: so no more than one kernel at a time stands waiting behind the one that runs, and
 * what it waits for is all that there is to wait for. */
void gpu_wait_for_earlier(const Unit *unit, LLVMValueRef function) {
    static const char text[] = "griddepcontrol.wait; griddepcontrol.launch_dependents;";
    static const char list[] = "~{memory}";
    LLVMTypeRef type = LLVMFunctionType(unit->void_type, NULL, 0, 0);
    LLVMValueRef code = LLVMGetInlineAsm(type, text, sizeof text - 1, list, sizeof list - 1, 1, 0,
                                         LLVMInlineAsmDialectATT, 0);
    LLVMBasicBlockRef before = unit_here(unit), entry = LLVMGetEntryBasicBlock(function);
    LLVMPositionBuilderBefore(unit->builder, LLVMGetFirstInstruction(entry));
    LLVMBuildCall2(unit->builder, type, code, NULL, 0, "");
    unit_goto(unit, before);
}
