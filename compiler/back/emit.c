/* From plans to bytes: legality, lowering, LLVM's code generator. See back.h.
 *
 * No optimiser passes run: the emitters write what they mean, and passes cost as much as code
 * generation without changing the speed of what comes out. Some that are part of code generation
 * are switched off for the same reason. */
#include "back/back.h"

#include "back/codegen.h"
#include "back/lower.h"
#include "back/ptx_text.h"

#include <llvm-c/Support.h>
#include <llvm-c/Target.h>
#include <string.h>
#include <threads.h>

/* Loops carry one index and constant offsets, so that strength reduction has nothing to gain. What
 * NVPTX does to straight code ahead of instruction selection, ptxas does again; on x86-64 none of
 * the second list runs. */
static const char *const llvm_options[] = {
    "fusec", "-disable-lsr", "-opt-disable=slsr,nary-reassociate,early-cse,load-store-vectorizer"};

static void initialise_llvm(void) {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMParseCommandLineOptions(sizeof llvm_options / sizeof *llvm_options, llvm_options, "");
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

/* LLVM ends every buffer with a NUL. */
static void take_code(Arena *arena, const CodegenModule *module, CodeBytes *code) {
    size_t n_bytes = LLVMGetBufferSize(module->code);
    code->data = arena_copy(arena, LLVMGetBufferStart(module->code), n_bytes + 1);
    code->n_bytes = n_bytes;
}

static void join_ptx(Arena *arena, const Codegen *codegen, const char *manifest, CodeBytes *code) {
    PtxText ptx = {.head.arena = arena, .functions.arena = arena};
    for (uint32_t i = 0; i < codegen->n_made; i++)
        ptx_add_module(&ptx, LLVMGetBufferStart(codegen->modules[i].code));
    Text all = {.arena = arena};
    if (manifest) text_puts(&all, manifest);
    text_add(&all, text_str(&ptx.head), ptx.head.n_bytes);
    text_add(&all, text_str(&ptx.functions), ptx.functions.n_bytes);
    *code = (CodeBytes){.data = all.data, .n_bytes = all.n_bytes};
}

static bool report_failures(const Codegen *codegen, Diags *diags) {
    bool ok = true;
    for (uint32_t i = 0; i < codegen->n_made; i++) {
        const CodegenModule *module = &codegen->modules[i];
        if (module->code) continue;
        ok = diag_report(diags, DIAG_INTERNAL, NULL, (Span){0, 0}, "LLVM%s: %s",
                         module->is_broken ? " module is broken" : "",
                         module->message ? module->message : "no code");
    }
    return ok;
}

static uint32_t count_functions(const Plan *const *plans, uint32_t n_plans) {
    uint32_t n = 0;
    for (uint32_t p = 0; p < n_plans; p++) n += lower_n_functions(plans[p]);
    return n;
}

/* A module takes functions until it has enough for what a module costs by itself. An object, or
 * what is to be read, is one module. */
static bool is_full(const Unit *unit, bool is_split) {
    enum { ENOUGH_INSTRUCTIONS = 1000 };
    return is_split && unit_n_instructions(unit) >= ENOUGH_INSTRUCTIONS;
}

static void make_modules(Codegen *codegen, Arena *arena, const Plan *const *plans, uint32_t n_plans,
                         bool is_split, const char *manifest) {
    Unit *unit = codegen_module(codegen, arena);
    for (uint32_t p = 0; p < n_plans; p++)
        for (uint32_t i = 0; i < lower_n_functions(plans[p]); i++) {
            if (is_full(unit, is_split)) {
                codegen_submit(codegen);
                unit = codegen_module(codegen, arena);
            }
            lower_function(unit, plans[p], i);
        }
    if (manifest) embed_manifest(unit, manifest);
    codegen_submit(codegen);
}

bool back_emit(Arena *arena, const Plan *const *plans, uint32_t n_plans, BackOptions options,
               CodeKind kind, CodeBytes *code, Diags *diags) {
    call_once(&llvm_once, initialise_llvm);
    bool is_ptx = options.target->device == DEVICE_GPU && kind == CODE_ASSEMBLY;
    Codegen *codegen = arena_array(arena, Codegen, 1);
    Escape *escape = arena_escape(arena), outer;
    if (escape) {
        memcpy(&outer.jump, &escape->jump, sizeof outer.jump);
        int reason = setjmp(escape->jump);
        if (reason) { /* release what is LLVM's on the way out */
            codegen_dispose(codegen);
            memcpy(&escape->jump, &outer.jump, sizeof outer.jump);
            longjmp(escape->jump, reason);
        }
    }
    uint32_t n_functions = count_functions(plans, n_plans);
    codegen_open(codegen, arena, options, kind, is_ptx && n_functions ? n_functions : 1);
    make_modules(codegen, arena, plans, n_plans, is_ptx,
                 kind == CODE_OBJECT ? options.manifest : NULL);
    codegen_finish(codegen);
    bool ok = report_failures(codegen, diags);
    if (ok && is_ptx) join_ptx(arena, codegen, options.manifest, code);
    if (ok && !is_ptx) take_code(arena, codegen->modules, code);
    codegen_dispose(codegen);
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
