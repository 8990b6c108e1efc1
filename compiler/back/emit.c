/* From plans to bytes: legality, lowering, LLVM's code generator. See back.h.
 *
 * No optimiser passes run: the emitters write what they mean, and passes cost as much as code
 * generation without changing the speed of what comes out. Loop strength reduction is switched off
 * for the same reason. */
#include "back/back.h"

#include "back/lower.h"

#include <llvm-c/Analysis.h>
#include <llvm-c/Support.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <string.h>
#include <threads.h>

static void initialise_llvm(void) {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    static const char *const options[] = {"fusec", "-disable-lsr"};
    LLVMParseCommandLineOptions(2, options, "");
}

static once_flag llvm_once = ONCE_FLAG_INIT;

const char *back_llvm_version(void) {
    return LLVM_VERSION_STRING;
}

/* Legality: every live primitive and conversion has operands its row allows. What the rows allow,
 * unit_prim and convert_value lower for every target; a test emits each. */
bool back_is_legal(const Plan *plan, const Target *target, Diags *diags) {
    bool ok = true;
    for (uint32_t k = 0; k < plan->kernels.n; k++) {
        const Kernel *kernel = &plan->kernels.data[k];
        if (kernel->args.n > MAX_KERNEL_ARGS)
            ok = diag_report(diags, DIAG_NO_LOWERING, plan->graph->source, kernel->span,
                             "kernel `%s` takes %u tensors, at most %d fit", kernel->name,
                             kernel->args.n, MAX_KERNEL_ARGS);
        for (ScalarId id = 1; id <= scalar_count(kernel->scalars); id++) {
            const Scalar *s = scalar_get(kernel->scalars, id);
            if (s->kind != SCALAR_PRIM) continue;
            const PrimInfo *info = prim_info(s->prim);
            Dtype operand = scalar_get(kernel->scalars, s->args[info->arity - 1])->dtype;
            if (dtype_in(operand, info->operands)) continue;
            ok = diag_report(diags, DIAG_NO_LOWERING, plan->graph->source, kernel->span,
                             "target `%s` has no lowering for `%s` in %s", target->name, info->name,
                             dtype_name(operand));
        }
    }
    return ok;
}

static LLVMTargetMachineRef make_machine(const Unit *unit, Diags *diags) {
    LLVMTargetRef target;
    char *message = NULL;
    if (LLVMGetTargetFromTriple(LLVMGetTarget(unit->module), &target, &message)) {
        diag_report(diags, DIAG_NO_LOWERING, NULL, (Span){0, 0}, "LLVM: %s", message);
        LLVMDisposeMessage(message);
        return NULL;
    }
    return LLVMCreateTargetMachine(target, LLVMGetTarget(unit->module), unit->target->llvm_cpu,
                                   unit->target->llvm_features, LLVMCodeGenLevelDefault,
                                   LLVMRelocPIC, LLVMCodeModelDefault);
}

/* The manifest as the content of its own section of an object. */
static void embed_manifest(const Unit *unit, const char *manifest) {
    uint32_t n_bytes = (uint32_t)strlen(manifest);
    LLVMValueRef text = LLVMConstStringInContext2(unit->context, manifest, n_bytes, 1);
    LLVMValueRef global = LLVMAddGlobal(unit->module, LLVMTypeOf(text), "fusec_manifest");
    LLVMSetInitializer(global, text);
    LLVMSetGlobalConstant(global, 1);
    LLVMSetSection(global, ".fusec");
    LLVMSetAlignment(global, 1);
}

static void keep(Arena *arena, CodeBytes *code, const char *head, const char *data,
                 size_t n_bytes) {
    size_t n_head = head ? strlen(head) : 0;
    code->n_bytes = n_head + n_bytes;
    code->data = arena_alloc(arena, code->n_bytes + 1);
    if (n_head) memcpy(code->data, head, n_head);
    if (n_bytes) memcpy(code->data + n_head, data, n_bytes);
}

static bool check_module(const Unit *unit, Diags *diags) {
    char *message = NULL;
    bool is_broken = LLVMVerifyModule(unit->module, LLVMReturnStatusAction, &message) != 0;
    if (is_broken)
        diag_report(diags, DIAG_INTERNAL, NULL, (Span){0, 0}, "LLVM module is broken: %s", message);
    LLVMDisposeMessage(message);
    return !is_broken;
}

static bool emit_module(Arena *arena, const Unit *unit, BackOptions options, CodeKind kind,
                        CodeBytes *code, Diags *diags) {
    bool is_gpu = unit_is_gpu(unit);
    if (options.verify && !check_module(unit, diags)) return false;
    if (kind == CODE_LLVM_IR) {
        char *text = LLVMPrintModuleToString(unit->module);
        keep(arena, code, NULL, text, strlen(text));
        LLVMDisposeMessage(text);
        return true;
    }
    LLVMTargetMachineRef machine = make_machine(unit, diags);
    if (!machine) return false;
    LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(machine);
    LLVMSetModuleDataLayout(unit->module, layout);
    LLVMDisposeTargetData(layout);
    char *message = NULL;
    LLVMMemoryBufferRef buffer = NULL;
    LLVMCodeGenFileType type = kind == CODE_OBJECT ? LLVMObjectFile : LLVMAssemblyFile;
    bool failed =
        LLVMTargetMachineEmitToMemoryBuffer(machine, unit->module, type, &message, &buffer) != 0;
    if (failed) {
        diag_report(diags, DIAG_INTERNAL, NULL, (Span){0, 0}, "LLVM: %s", message);
        LLVMDisposeMessage(message);
    } else {
        keep(arena, code, is_gpu && kind == CODE_ASSEMBLY ? options.manifest : NULL,
             LLVMGetBufferStart(buffer), LLVMGetBufferSize(buffer));
        LLVMDisposeMemoryBuffer(buffer);
    }
    LLVMDisposeTargetMachine(machine);
    return !failed;
}

bool back_emit(Arena *arena, const Plan *const *plans, uint32_t n_plans, BackOptions options,
               CodeKind kind, CodeBytes *code, Diags *diags) {
    call_once(&llvm_once, initialise_llvm);
    Unit *unit = arena_array(arena, Unit, 1);
    Escape *escape = arena_escape(arena), outer;
    if (escape) {
        memcpy(&outer.jump, &escape->jump, sizeof outer.jump);
        int reason = setjmp(escape->jump);
        if (reason) { /* release LLVM's objects on the way out */
            unit_dispose(unit);
            memcpy(&escape->jump, &outer.jump, sizeof outer.jump);
            longjmp(escape->jump, reason);
        }
    }
    unit_init(unit, arena, options.target, "fusec");
    for (uint32_t i = 0; i < n_plans; i++) lower_plan(unit, plans[i]);
    if (kind == CODE_OBJECT && options.manifest) embed_manifest(unit, options.manifest);
    bool ok = emit_module(arena, unit, options, kind, code, diags);
    unit_dispose(unit);
    if (escape) memcpy(&escape->jump, &outer.jump, sizeof outer.jump);
    return ok;
}

const Target *back_native_cpu(void) {
    char *features = LLVMGetHostCPUFeatures();
    bool has_v4 = strstr(features, "+avx512vl") && strstr(features, "+avx512bw") &&
                  strstr(features, "+avx512dq") && strstr(features, "+avx512cd");
    bool has_v3 = strstr(features, "+avx2") && strstr(features, "+fma") &&
                  strstr(features, "+f16c") && strstr(features, "+bmi2");
    LLVMDisposeMessage(features);
    return has_v4 ? target_get(TARGET_CPU_V4) : has_v3 ? target_get(TARGET_CPU) : NULL;
}
