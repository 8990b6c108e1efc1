/* From plans to bytes: legality, lowering, then the PTX writer, or LLVM's code generator for CPUs.
 * See codegen.h.
 *
 * No LLVM optimization pass runs. The templates emit the final code themselves, and passes would
 * cost as much time as code generation without making the code faster. */
#include "codegen/codegen.h"
#include "codegen/gpu/gpu.h"

#include "codegen/llvm/module.h"
#include "codegen/lower.h"
#include "codegen/ptx/ptx_write.h"

#include <llvm-c/Analysis.h>
#include <llvm-c/Support.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <stdio.h>
#include <string.h>
#include <threads.h>

/* Loops carry one index and constant offsets, so LLVM's loop strength reduction has nothing to
 * gain. */
static const char *const llvm_options[] = {"fusec", "-disable-lsr"};

static void initialise_llvm(void) {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMParseCommandLineOptions(sizeof llvm_options / sizeof *llvm_options, llvm_options, "");
}

static once_flag llvm_once = ONCE_FLAG_INIT;

const char *codegen_llvm_version(void) {
    return LLVM_VERSION_STRING;
}

/* Whether codegen has the templates of all variants of the kernel. */
static bool has_templates(const Plan *plan, const Kernel *kernel, const Target *target,
                          Diags *diags) {
    for (uint32_t i = 0; i < kernel->n_variants; i++) {
        TemplateId id = kernel->variants[i].sched.template;
        if (!gpu_isa_has(target, id))
            return diag_report(diags, DIAG_NO_LOWERING, plan->graph->source, kernel->span,
                               "kernel `%s` needs the template `%s`, for which target `%s` has no "
                               "code; codegen/gpu/isas.def says which it has",
                               kernel->name, template_info(id)->name, target->name);
    }
    return true;
}

/* Legality: the target has code for the templates of all kernels, every kernel's tensors fit, and
 * every primitive and conversion has operand dtypes that its row allows. math_prim
 * and convert_value lower every allowed combination for every target; a test emits each. */
bool codegen_is_legal(const Plan *plan, const Target *target, Diags *diags) {
    bool ok = true;
    for (uint32_t k = 0; k < plan->kernels.n; k++) {
        const Kernel *kernel = &plan->kernels.data[k];
        ok = has_templates(plan, kernel, target, diags) && ok;
        if (kernel->args.n > MAX_KERNEL_ARGS)
            ok = diag_report(diags, DIAG_LIMIT, plan->graph->source, kernel->span,
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

/* Embeds the manifest as the content of its own section of an object. */
static void embed_manifest(const Codegen *k, const char *manifest) {
    uint32_t n_bytes = (uint32_t)strlen(manifest);
    Val text = LLVMConstStringInContext2(k->context, manifest, n_bytes, 1);
    Val global = LLVMAddGlobal(k->module, LLVMTypeOf(text), "fusec_manifest");
    LLVMSetInitializer(global, text);
    LLVMSetGlobalConstant(global, 1);
    LLVMSetSection(global, ".fusec");
    LLVMSetAlignment(global, 1);
}

/* LLVM's objects during emission, and the memory of one function. A zeroed Emission may be
 * disposed. */
typedef struct Emission {
    Codegen k;
    Arena *scratch;
    LLVMTargetMachineRef machine;
    LLVMMemoryBufferRef code;
    char *message;
} Emission;

static void emission_dispose(Emission *e) {
    module_dispose(&e->k);
    if (e->scratch) arena_free(e->scratch);
    if (e->machine) LLVMDisposeTargetMachine(e->machine);
    if (e->code) LLVMDisposeMemoryBuffer(e->code);
    if (e->message) LLVMDisposeMessage(e->message);
    *e = (Emission){.scratch = NULL};
}

static bool report_failure(const Emission *e, const char *what, Diags *diags) {
    return diag_report(diags, DIAG_INTERNAL, NULL, (Span){0, 0}, "LLVM%s: %s", what,
                       e->message ? e->message : "no code");
}

static bool verify_unit(Emission *e, Diags *diags) {
    if (LLVMVerifyModule(e->k.module, LLVMReturnStatusAction, &e->message))
        return report_failure(e, " module is broken", diags);
    LLVMDisposeMessage(e->message);
    e->message = NULL;
    return true;
}

/* A text in pieces, which are joined once. */
typedef struct PtxPieces {
    Arena *arena;
    Text head;
    Vec(CodeBytes) functions;
} PtxPieces;

static void add_piece(PtxPieces *ptx, const Text *text) {
    char *data = arena_copy(ptx->arena, text_str(text), text->n_bytes);
    vec_push(ptx->arena, &ptx->functions, ((CodeBytes){data, text->n_bytes}));
}

/* Writes PTX function by function. Each function has an LLVM module of its own, which keeps memory
 * small. */
static bool write_functions(Emission *e, const Plan *plan, const BackOptions *options,
                            PtxPieces *ptx, Diags *diags) {
    for (uint32_t i = 0; i < lower_n_functions(plan); i++) {
        PtxText own = {.head = ptx->head, .functions.arena = e->scratch};
        module_init(&e->k, e->scratch, options->target, "fusec");
        lower_function(&e->k, plan, i);
        if (options->verify && !verify_unit(e, diags)) return false;
        ptx_write_module(&own, &e->k);
        ptx->head = own.head;
        add_piece(ptx, &own.functions);
        module_dispose(&e->k);
        arena_reset(e->scratch);
    }
    return true;
}

/* The manifest, the head and the functions as one text. */
static CodeBytes join(const PtxPieces *ptx, const char *manifest) {
    CodeBytes pieces[2] = {{.n_bytes = 0}, {ptx->head.data, ptx->head.n_bytes}}, all = {0};
    if (manifest) pieces[0] = (CodeBytes){(char *)(uintptr_t)manifest, strlen(manifest)};
    size_t n_bytes = pieces[0].n_bytes + pieces[1].n_bytes;
    for (uint32_t i = 0; i < ptx->functions.n; i++) n_bytes += ptx->functions.data[i].n_bytes;
    all.data = arena_extend(ptx->arena, NULL, 0, n_bytes + 1);
    for (uint32_t i = 0; i < 2 + ptx->functions.n; i++) {
        CodeBytes piece = i < 2 ? pieces[i] : ptx->functions.data[i - 2];
        if (piece.n_bytes) memcpy(all.data + all.n_bytes, piece.data, piece.n_bytes);
        all.n_bytes += piece.n_bytes;
    }
    all.data[n_bytes] = '\0';
    return all;
}

static Arena *new_scratch(Arena *arena) {
    Escape *escape = arena_escape(arena);
    Arena *scratch = arena_new(escape);
    if (!scratch && escape) longjmp(escape->jump, ESCAPE_OUT_OF_MEMORY);
    if (!scratch) ice(arena, "out of memory");
    return scratch;
}

/* Whether tensor cores multiply 8-bit floats in some kernel. */
static bool has_f8_mma(const Plan *const *plans, uint32_t n_plans) {
    bool has = false;
    for (uint32_t p = 0; p < n_plans; p++)
        for (uint32_t i = 0; i < plans[p]->kernels.n; i++) {
            const Kernel *kernel = &plans[p]->kernels.data[i];
            for (uint32_t v = 0; v < kernel->n_variants; v++)
                has = has ||
                      (engine_info(sched_engine(&kernel->variants[v].sched))->uses_tensor_cores &&
                       dtype_in(gemm_operand_dtype(kernel), DTS_STORED));
        }
    return has;
}

static bool emit_ptx(Emission *e, Arena *arena, const Plan *const *plans, uint32_t n_plans,
                     const BackOptions *options, CodeBytes *code, Diags *diags) {
    PtxText begin = {.head.arena = arena};
    e->scratch = new_scratch(arena);
    ptx_write_head(&begin, options->target, has_f8_mma(plans, n_plans));
    PtxPieces ptx = {.arena = arena, .head = begin.head};
    for (uint32_t p = 0; p < n_plans; p++)
        if (!write_functions(e, plans[p], options, &ptx, diags)) return false;
    *code = join(&ptx, options->manifest);
    return true;
}

static void make_machine(Emission *e, const Target *target) {
    LLVMTargetRef backend;
    const char *triple = LLVMGetTarget(e->k.module);
    call_once(&llvm_once, initialise_llvm);
    if (LLVMGetTargetFromTriple(triple, &backend, &e->message)) return;
    e->machine =
        LLVMCreateTargetMachine(backend, triple, target->machine, "", LLVMCodeGenLevelDefault,
                                LLVMRelocPIC, LLVMCodeModelDefault);
}

/* Code for a CPU. */
static bool run_machine(Emission *e, const Target *target, CodeKind kind, Diags *diags) {
    LLVMModuleRef module = e->k.module;
    make_machine(e, target);
    if (!e->machine) return report_failure(e, "", diags);
    LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(e->machine);
    LLVMSetModuleDataLayout(module, layout);
    LLVMDisposeTargetData(layout);
    LLVMCodeGenFileType type = kind == CODE_OBJECT ? LLVMObjectFile : LLVMAssemblyFile;
    if (!LLVMTargetMachineEmitToMemoryBuffer(e->machine, module, type, &e->message, &e->code))
        return true;
    e->code = NULL;
    return report_failure(e, "", diags);
}

static void print_module(Emission *e) {
    char *text = LLVMPrintModuleToString(e->k.module);
    e->code = LLVMCreateMemoryBufferWithMemoryRangeCopy(text, strlen(text), "");
    LLVMDisposeMessage(text);
}

/* Emits all functions from one module. LLVM ends every buffer with a NUL. */
static bool emit_module(Emission *e, Arena *arena, const Plan *const *plans, uint32_t n_plans,
                        const BackOptions *options, CodeKind kind, CodeBytes *code, Diags *diags) {
    module_init(&e->k, arena, options->target, "fusec");
    for (uint32_t p = 0; p < n_plans; p++)
        for (uint32_t i = 0; i < lower_n_functions(plans[p]); i++)
            lower_function(&e->k, plans[p], i);
    if (kind == CODE_OBJECT && options->manifest) embed_manifest(&e->k, options->manifest);
    if (options->verify && !verify_unit(e, diags)) return false;
    if (kind == CODE_LLVM_IR)
        print_module(e);
    else if (!run_machine(e, options->target, kind, diags))
        return false;
    size_t n_bytes = LLVMGetBufferSize(e->code);
    code->data = arena_copy(arena, LLVMGetBufferStart(e->code), n_bytes + 1);
    code->n_bytes = n_bytes;
    return true;
}

bool codegen_emit(Arena *arena, const Plan *const *plans, uint32_t n_plans, BackOptions options,
                  CodeKind kind, CodeBytes *code, Diags *diags) {
    bool is_ptx = options.target->ptx_version && kind == CODE_ASSEMBLY;
    Emission *e = arena_array(arena, Emission, 1);
    Escape *escape = arena_escape(arena), outer;
    if (escape) {
        memcpy(&outer.jump, &escape->jump, sizeof outer.jump);
        int reason = setjmp(escape->jump);
        if (reason) { /* dispose LLVM's objects on this path too */
            emission_dispose(e);
            memcpy(&escape->jump, &outer.jump, sizeof outer.jump);
            longjmp(escape->jump, reason);
        }
    }
    bool ok = is_ptx ? emit_ptx(e, arena, plans, n_plans, &options, code, diags)
                     : emit_module(e, arena, plans, n_plans, &options, kind, code, diags);
    emission_dispose(e);
    if (escape) memcpy(&escape->jump, &outer.jump, sizeof outer.jump);
    return ok;
}

/* Whether LLVM's text of the host's features has each of the list. */
static bool has_all(const char *host, const char *list) {
    for (; list && *list; list += *list == ',') {
        char feature[40];
        size_t n = strcspn(list, ",");
        snprintf(feature, sizeof feature, "+%.*s", (int)n, list);
        if (!strstr(host, feature)) return false;
        list += n;
    }
    return true;
}

bool codegen_cpu_runs(const Target *target) {
    static const char *const machines[][2] = {
        {"x86-64-v3", "avx2,fma,f16c,bmi2"},
        {"x86-64-v4", "avx2,fma,f16c,bmi2,avx512vl,avx512bw,avx512dq,avx512cd"}};
    char *host = LLVMGetHostCPUFeatures();
    bool runs = target->has->cores && has_all(host, target->features), is_known = false;
    for (int i = 0; i < 2; i++) {
        if (strcmp(machines[i][0], target->machine) != 0) continue;
        is_known = true;
        runs = runs && has_all(host, machines[i][1]);
    }
    LLVMDisposeMessage(host);
    return runs && is_known;
}

const Target *codegen_native_cpu(void) {
    const Target *best = NULL;
    for (int id = 0; id < TARGET_COUNT; id++) {
        const Target *target = target_get((TargetId)id);
        if (target_n_levels(target) == 1 && codegen_cpu_runs(target)) best = target;
    }
    return best;
}
