/* CPU contractions. See template.h. */
#include "back/template.h"

void template_cpu_contract(Lower *lower, LLVMValueRef begin, LLVMValueRef end) {
    (void)begin, (void)end;
    ice(lower->unit->arena, "no contraction template");
}
