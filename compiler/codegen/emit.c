/* From plans to bytes: legality, lowering, then the PTX writer, or LLVM's code generator for CPUs.
 * See codegen.h.
 *
 * No LLVM optimization pass runs. The templates emit the final code themselves, and passes would
 * cost as much time as code generation without making the code faster. */
#include "codegen/codegen.h"
#include "codegen/gpu/gpu.h"

#include "codegen/llvm/module.h"
#include "codegen/lower.h"
#include "codegen/object.h"
#include "codegen/part/part.h"
#include "codegen/unit.h"

#include <llvm-c/Analysis.h>
#include <llvm-c/Support.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <stdio.h>
#include <string.h>
#include <threads.h>

enum {
    /* Of an object: a unit takes no further function once it has so many instructions. */
    UNIT_INSTRUCTIONS = 400,
    /* A thread that begins before there are units is worth its start for so many ops. A transformer
     * block has 64, which make some 20 units. */
    OPS_OF_THREAD = 8,
    /* LLVM's best code takes a time that grows faster than the function. A larger unit gets quick
     * code, and so do all units behind a share of the instructions that a source may have. The
     * largest unit of the examples has 2,325, the largest artifact 54,459. */
    MOST_BEST_UNIT = 1 << 13,
    BEST_SHARE = 8,
    /* Of all functions of a source of up to 64 KiB: some 44 MB of PTX. */
    MOST_INSTRUCTIONS = 1 << 20,
    INSTRUCTIONS_OF_BYTE = 16
};

/* Loops carry one index and constant offsets, so LLVM's loop strength reduction has nothing to
 * gain. Nor has its combiner of machine code, which orders sums of integers anew. */
static const char *const llvm_options[] = {"fusec", "-disable-lsr", "-x86-machine-combiner=0"};

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

void codegen_on_fault(void (*told)(const char *why)) {
    LLVMInstallFatalErrorHandler(told);
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

static bool is_ptx(const Target *target, CodeKind kind) {
    return target->ptx_version && kind == CODE_ASSEMBLY;
}

/* Finishing a unit, on any thread. */

static bool verify(CodegenUnit *unit) {
    char *message = NULL;
    bool is_broken = LLVMVerifyModule(unit->k.module, LLVMReturnStatusAction, &message);
    if (is_broken) {
        unit->broken = " module is broken";
        unit->message = message;
    } else {
        LLVMDisposeMessage(message);
    }
    return !is_broken;
}

static LLVMTargetMachineRef make_machine(const Target *target, UnitEffort effort, char **message) {
    static const LLVMCodeGenOptLevel levels[EFFORT_COUNT] = {
        [EFFORT_BEST] = LLVMCodeGenLevelDefault, [EFFORT_QUICK] = LLVMCodeGenLevelNone};
    LLVMTargetRef backend;
    const char *triple = target->has->triple;
    call_once(&llvm_once, initialise_llvm);
    if (LLVMGetTargetFromTriple(triple, &backend, message)) return NULL;
    return LLVMCreateTargetMachine(backend, triple, target->machine, "", levels[effort],
                                   LLVMRelocPIC, LLVMCodeModelDefault);
}

/* Has the machine make code of the module. True: it refuses, and says why. */
static bool make_code(LLVMTargetMachineRef machine, LLVMModuleRef module, LLVMCodeGenFileType type,
                      char **message, LLVMMemoryBufferRef *code) {
    LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(machine);
    LLVMSetModuleDataLayout(module, layout);
    LLVMDisposeTargetData(layout);
    return LLVMTargetMachineEmitToMemoryBuffer(machine, module, type, message, code);
}

/* A machine makes its tables with its first function, which here does nothing. */
static LLVMTargetMachineRef prepare_machine(const BackOptions *options) {
    char *message = NULL;
    LLVMMemoryBufferRef code = NULL;
    LLVMTargetMachineRef machine = make_machine(options->target, EFFORT_BEST, &message);
    LLVMContextRef context = LLVMContextCreate();
    LLVMModuleRef module = LLVMModuleCreateWithNameInContext("fusec", context);
    LLVMBuilderRef builder = LLVMCreateBuilderInContext(context);
    LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(context), NULL, 0, false);
    Val f = LLVMAddFunction(module, "nothing", type);
    LLVMPositionBuilderAtEnd(builder, LLVMAppendBasicBlockInContext(context, f, ""));
    LLVMBuildRetVoid(builder);
    LLVMSetTarget(module, options->target->has->triple);
    if (machine && !make_code(machine, module, LLVMObjectFile, &message, &code))
        LLVMDisposeMemoryBuffer(code);
    if (message) LLVMDisposeMessage(message);
    LLVMDisposeBuilder(builder);
    LLVMDisposeModule(module);
    LLVMContextDispose(context);
    return machine;
}

/* Code for a CPU. */
static void run_machine(CodegenUnit *unit, const Target *target, CodeKind kind) {
    if (!unit->machine) unit->machine = make_machine(target, unit->effort, &unit->message);
    unit->broken = "";
    if (!unit->machine) return;
    LLVMCodeGenFileType type = kind == CODE_OBJECT ? LLVMObjectFile : LLVMAssemblyFile;
    if (!make_code(unit->machine, unit->k.module, type, &unit->message, &unit->code))
        unit->broken = NULL;
    else
        unit->code = NULL;
}

static void print_module(CodegenUnit *unit) {
    char *text = LLVMPrintModuleToString(unit->k.module);
    unit->code = LLVMCreateMemoryBufferWithMemoryRangeCopy(text, strlen(text), "");
    LLVMDisposeMessage(text);
}

static void finish(CodegenUnit *unit, const BackOptions *options, CodeKind kind) {
    if (options->verify && !verify(unit)) return;
    if (kind == CODE_LLVM_IR)
        print_module(unit);
    else if (is_ptx(options->target, kind))
        ptx_write_module(&unit->ptx, &unit->k, unit->n_instructions);
    else
        run_machine(unit, options->target, kind);
}

/* Lowering and taking units, on the caller's thread. */
struct Emission {
    Arena *arena;
    BackOptions options;
    CodeKind kind;
    UnitQueue *queue;
    PartTab *parts;
    CodegenUnit *open;       /* that functions are lowered into; or NULL */
    uint32_t n_instructions; /* of the open unit */
    uint64_t n_lowered;      /* instructions of all units */
    uint64_t most_lowered;   /* that the source may have */
    Text head;               /* of PTX */
    Vec(CodeBytes) pieces;   /* the results of units, each followed by a NUL */
    Diags *diags;
};

static void add_piece(Emission *e, const char *data, size_t n_bytes) {
    char *copy = arena_copy(e->arena, data, n_bytes + 1);
    vec_push(e->arena, &e->pieces, ((CodeBytes){copy, n_bytes}));
}

/* Continues a unit's failure in the caller's thread. */
static void fail(const Emission *e, const CodegenUnit *unit) {
    Escape *escape = arena_escape(e->arena);
    bool is_memory = unit->failure == ESCAPE_OUT_OF_MEMORY;
    if (is_memory && escape) longjmp(escape->jump, (int)unit->failure);
    ice(e->arena, "%s", is_memory ? "out of memory" : unit->escape.message);
}

static bool take(void *user, CodegenUnit *unit) {
    Emission *e = user;
    if (unit->failure) fail(e, unit);
    if (unit->broken)
        return diag_report(e->diags, DIAG_INTERNAL, NULL, (Span){0, 0}, "LLVM%s: %s", unit->broken,
                           unit->message ? unit->message : "no code");
    if (is_ptx(e->options.target, e->kind)) {
        ptx_add_declarations(&e->head, &unit->ptx.head);
        add_piece(e, text_str(&unit->ptx.functions), unit->ptx.functions.n_bytes);
    } else {
        add_piece(e, LLVMGetBufferStart(unit->code), LLVMGetBufferSize(unit->code));
    }
    return true;
}

/* Opens a unit if none is open. */
static bool open_unit(Emission *e) {
    if (!e->open) e->open = unit_open(e->queue);
    if (e->open) e->open->k.parts = e->parts;
    return e->open != NULL;
}

/* Closes the open unit, if any. */
static void close_unit(Emission *e) {
    bool is_much =
        e->n_instructions > MOST_BEST_UNIT || e->n_lowered > e->most_lowered / BEST_SHARE;
    if (e->open) unit_close(e->queue, e->n_instructions, is_much ? EFFORT_QUICK : EFFORT_BEST);
    e->open = NULL;
    e->n_instructions = 0;
}

/* Functions of PTX have units of their own, which keeps memory small. Objects have units of a size
 * at which LLVM's own work for a module is small. Other output is that of one module. */
static bool is_unit_full(const Emission *e) {
    if (is_ptx(e->options.target, e->kind)) return e->n_instructions > 0;
    return e->kind == CODE_OBJECT && e->n_instructions >= UNIT_INSTRUCTIONS;
}

/* A long source may make long code. */
static uint64_t most_instructions(const Source *source) {
    uint64_t most = source ? (uint64_t)INSTRUCTIONS_OF_BYTE * source->n_bytes : 0;
    return most > MOST_INSTRUCTIONS ? most : MOST_INSTRUCTIONS;
}

static bool refuse(const Emission *e, const Plan *plan) {
    const Source *source = plan->graph->source;
    return diag_report(e->diags, DIAG_LIMIT, source, plan->graph->span,
                       "the artifact's code would have more than %llu instructions",
                       (unsigned long long)e->most_lowered);
}

/* The instructions of the functions of the module behind `last`; NULL: of all. */
static uint32_t count_instructions(const Codegen *k, Val last) {
    uint32_t n = 0;
    Val f = last ? LLVMGetNextFunction(last) : LLVMGetFirstFunction(k->module);
    for (; f; f = LLVMGetNextFunction(f)) n += k_count_instructions(f);
    return n;
}

static bool lower_functions(Emission *e, const Plan *plan) {
    e->most_lowered = most_instructions(plan->graph->source);
    for (uint32_t i = 0; i < lower_n_functions(plan); i++) {
        if (is_unit_full(e)) close_unit(e);
        if (!open_unit(e)) return false;
        Val last = LLVMGetLastFunction(e->open->k.module);
        lower_function(&e->open->k, plan, i);
        uint32_t n = count_instructions(&e->open->k, last);
        e->n_lowered += n;
        e->n_instructions += n;
        if (e->n_lowered > e->most_lowered) return refuse(e, plan);
    }
    return true;
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

/* The manifest, the head and the functions as one text. */
static CodeBytes join_ptx(const Emission *e, const char *manifest) {
    CodeBytes begin[2] = {{.n_bytes = 0}, {e->head.data, e->head.n_bytes}}, all = {0};
    if (manifest) begin[0] = (CodeBytes){(char *)(uintptr_t)manifest, strlen(manifest)};
    size_t n_bytes = begin[0].n_bytes + begin[1].n_bytes;
    for (uint32_t i = 0; i < e->pieces.n; i++) n_bytes += e->pieces.data[i].n_bytes;
    all.data = arena_extend(e->arena, NULL, 0, n_bytes + 1);
    for (uint32_t i = 0; i < 2 + e->pieces.n; i++) {
        CodeBytes piece = i < 2 ? begin[i] : e->pieces.data[i - 2];
        if (piece.n_bytes) memcpy(all.data + all.n_bytes, piece.data, piece.n_bytes);
        all.n_bytes += piece.n_bytes;
    }
    all.data[n_bytes] = '\0';
    return all;
}

Emission *codegen_open(Arena *arena, BackOptions options, CodeKind kind, Diags *diags) {
    Emission *e = arena_array(arena, Emission, 1);
    *e = (Emission){
        .arena = arena, .options = options, .kind = kind, .head.arena = arena, .diags = diags};
    e->parts = parttab_new(arena);
    e->queue = unit_queue_new(arena, &e->options, kind, finish, take, e);
    return e;
}

void codegen_prepare(Emission *e, uint32_t n_ops) {
    if (e->kind == CODE_OBJECT && !e->options.target->ptx_version)
        unit_queue_prepare(e->queue, prepare_machine, n_ops / OPS_OF_THREAD);
}

/* One unit of an object stays open for the manifest. Behind several, the manifest is a unit of its
 * own, so that code is made of all functions before it is there. */
bool codegen_lower(Emission *e, const Plan *const *plans, uint32_t n_plans) {
    bool has_head = is_ptx(e->options.target, e->kind);
    if (has_head) ptx_write_head(&e->head, e->options.target, has_f8_mma(plans, n_plans));
    for (uint32_t p = 0; p < n_plans; p++)
        if (!lower_functions(e, plans[p])) return false;
    if (!has_head && !open_unit(e)) return false;
    if (e->kind != CODE_OBJECT || e->n_lowered > e->n_instructions) close_unit(e);
    return true;
}

bool codegen_finish(Emission *e, const char *manifest, CodeBytes *code) {
    if (e->kind == CODE_OBJECT && !open_unit(e)) return false;
    if (e->open && manifest) embed_manifest(&e->open->k, manifest);
    close_unit(e);
    if (!unit_take_rest(e->queue)) return false;
    bool has_head = is_ptx(e->options.target, e->kind);
    *code = has_head ? join_ptx(e, manifest) : object_join(e->arena, e->pieces.data, e->pieces.n);
    return true;
}

void codegen_close(Emission *e) {
    if (e->queue) unit_queue_dispose(e->queue);
    e->queue = NULL;
}

bool codegen_emit(Arena *arena, const Plan *const *plans, uint32_t n_plans, BackOptions options,
                  CodeKind kind, CodeBytes *code, Diags *diags) {
    Emission *e = codegen_open(arena, options, kind, diags);
    Escape *escape = arena_escape(arena), outer;
    if (escape) {
        memcpy(&outer.jump, &escape->jump, sizeof outer.jump);
        int reason = setjmp(escape->jump);
        if (reason) { /* end the threads and dispose of LLVM's objects on this path too */
            codegen_close(e);
            memcpy(&escape->jump, &outer.jump, sizeof outer.jump);
            longjmp(escape->jump, reason);
        }
    }
    bool ok = codegen_lower(e, plans, n_plans) && codegen_finish(e, NULL, code);
    codegen_close(e);
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
