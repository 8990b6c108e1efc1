/* Function interfaces and template choice. See lower.h.
 *
 * GPU: void kernel(one global pointer per argument, one i64 per dim symbol).
 * CPU: void kernel(ptr arguments, ptr dims, i64 begin, i64 end). */
#include "back/lower.h"

#include "back/template.h"

#include <string.h>

enum { PTX_KERNEL_CALLING_CONVENTION = 71 };

static void add_attribute(const Unit *unit, LLVMValueRef function, const char *key,
                          const char *value) {
    LLVMAttributeRef attribute = LLVMCreateStringAttribute(
        unit->context, key, (unsigned)strlen(key), value, (unsigned)strlen(value));
    LLVMAddAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, attribute);
}

static void add_nounwind(const Unit *unit, LLVMValueRef function) {
    static const char name[] = "nounwind";
    unsigned kind = LLVMGetEnumAttributeKindForName(name, sizeof name - 1);
    LLVMAddAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                            LLVMCreateEnumAttribute(unit->context, kind, 0));
}

static void open_entry(Lower *lower) {
    lower->entry = unit_block(lower->unit, lower->function, "entry");
    unit_goto(lower->unit, lower->entry);
}

/* Ends the entry block by a jump to the first block of the body. */
static void close_entry(Lower *lower, LLVMBasicBlockRef body) {
    LLVMBuildRetVoid(lower->unit->builder);
    unit_goto(lower->unit, lower->entry);
    LLVMBuildBr(lower->unit->builder, body);
}

static void lower_gpu(Lower *lower) {
    Unit *unit = lower->unit;
    const Kernel *kernel = lower->kernel;
    LLVMTypeRef params[MAX_KERNEL_ARGS + DIM_MAX_SYMBOLS];
    uint32_t n = 0, first_symbol = kernel->args.n;
    for (; n < kernel->args.n; n++) params[n] = unit->global_ptr;
    for (uint32_t s = 0; s < DIM_MAX_SYMBOLS; s++)
        if (kernel->symbols >> s & 1) params[n++] = unit->i64;
    LLVMTypeRef type = LLVMFunctionType(unit->void_type, params, n, 0);
    lower->function = LLVMAddFunction(unit->module, lower->variant->symbol, type);
    LLVMSetFunctionCallConv(lower->function, PTX_KERNEL_CALLING_CONVENTION);
    add_nounwind(unit, lower->function);
    add_attribute(unit, lower->function, "nvvm.reqntid",
                  str_format(unit->arena, "%u,1,1", lower->variant->sched.threads));
    open_entry(lower);
    for (uint32_t i = 0; i < kernel->args.n; i++)
        lower->pointers[i] = LLVMGetParam(lower->function, i);
    for (uint32_t s = 0; s < DIM_MAX_SYMBOLS; s++)
        if (kernel->symbols >> s & 1)
            lower->symbols[s] = LLVMGetParam(lower->function, first_symbol++);
    LLVMBasicBlockRef body = unit_block(unit, lower->function, "body");
    unit_goto(unit, body);
    static void (*const templates[])(Lower *) = {[FORM_MAP] = template_gpu_map,
                                                 [FORM_ROW] = template_gpu_row,
                                                 [FORM_COLUMN] = template_gpu_column,
                                                 [FORM_CONTRACT] = template_gpu_contract};
    unit->math.overlaps_quotients = kernel->form == FORM_CONTRACT;
    templates[kernel->form](lower);
    close_entry(lower, body);
}

static LLVMValueRef load_slot(const Unit *unit, LLVMValueRef array, LLVMTypeRef type,
                              uint32_t index) {
    LLVMValueRef at = unit_int(unit->i64, index);
    LLVMValueRef slot = LLVMBuildGEP2(unit->builder, type, array, &at, 1, "");
    return LLVMBuildLoad2(unit->builder, type, slot, "");
}

static void lower_cpu(Lower *lower) {
    Unit *unit = lower->unit;
    const Kernel *kernel = lower->kernel;
    LLVMTypeRef params[4] = {unit->ptr, unit->ptr, unit->i64, unit->i64};
    LLVMTypeRef type = LLVMFunctionType(unit->void_type, params, 4, 0);
    lower->function = LLVMAddFunction(unit->module, lower->variant->symbol, type);
    add_nounwind(unit, lower->function);
    add_attribute(unit, lower->function, "target-cpu", unit->target->llvm_cpu);
    add_attribute(unit, lower->function, "no-builtins", "");
    open_entry(lower);
    uint32_t n_symbols = 0;
    for (uint32_t i = 0; i < kernel->args.n; i++)
        lower->pointers[i] = load_slot(unit, LLVMGetParam(lower->function, 0), unit->ptr, i);
    for (uint32_t s = 0; s < DIM_MAX_SYMBOLS; s++)
        if (kernel->symbols >> s & 1)
            lower->symbols[s] =
                load_slot(unit, LLVMGetParam(lower->function, 1), unit->i64, n_symbols++);
    LLVMBasicBlockRef body = unit_block(unit, lower->function, "body");
    unit_goto(unit, body);
    static void (*const templates[])(Lower *, LLVMValueRef,
                                     LLVMValueRef) = {[FORM_MAP] = template_cpu_map,
                                                      [FORM_ROW] = template_cpu_row,
                                                      [FORM_COLUMN] = template_cpu_column,
                                                      [FORM_CONTRACT] = template_cpu_contract};
    templates[kernel->form](lower, LLVMGetParam(lower->function, 2),
                            LLVMGetParam(lower->function, 3));
    close_entry(lower, body);
}

void lower_plan(Unit *unit, const Plan *plan) {
    for (uint32_t k = 0; k < plan->kernels.n; k++) {
        const Kernel *kernel = &plan->kernels.data[k];
        IndexTab *indices = scalartab_indices(kernel->scalars);
        for (uint32_t v = 0; v < kernel->n_variants; v++) {
            const Variant *variant = &kernel->variants[v];
            if (variant->is_shared) continue;
            Lower lower;
            lower_init(&lower, unit, plan, kernel, variant);
            index_assume_multiple(indices, variant->multiple_dim, variant->multiple_of);
            if (unit_is_gpu(unit))
                lower_gpu(&lower);
            else
                lower_cpu(&lower);
            index_assume_multiple(indices, DIM_NONE, 1);
        }
    }
}
