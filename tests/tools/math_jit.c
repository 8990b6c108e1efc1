/* See math_jit.h. A kernel is one loop: load, operation, store. */
#include "math_jit.h"

#include "codegen/llvm/module.h"
#include "codegen/math/convert.h"
#include "codegen/math/math.h"
#include "codegen/ptx/ptx_write.h"

#include <llvm-c/Analysis.h>
#include <llvm-c/Core.h>
#include <llvm-c/Error.h>
#include <llvm-c/LLJIT.h>
#include <llvm-c/Object.h>
#include <llvm-c/Orc.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PTX_KERNEL_CALL = 71 };

struct MathJit {
    LLVMOrcLLJITRef lljit;
    MathFunction *functions;
};

typedef struct OpEntry {
    const char *name;
    unsigned arity;
    Val (*emit)(const Codegen *k, Val x, Val y); /* NULL: the function of that name */
} OpEntry;

/* Divides all lanes by the first lane's divisor. */
static Val by_one(const Codegen *k, Val x, Val y, bool are_fractions) {
    if (!k_is_vector(x)) return math_div(k, x, y);
    MathDivisor divisor = math_divisor(k, k_extract(k, y, 0));
    return math_quotient(k, x, &divisor, are_fractions);
}

static Val math_quotient_by_one(const Codegen *k, Val x, Val y) {
    return by_one(k, x, y, false);
}

static Val math_fraction_by_one(const Codegen *k, Val x, Val y) {
    return by_one(k, x, y, true);
}

#define NAMED(op, n_args) {.name = #op, .arity = n_args},
#define OWN(op, n_args) {.name = #op, .arity = n_args, .emit = math_##op},

/* Indexed by MathOp. */
static const OpEntry op_entries[] = {MATH_FUNCTIONS(NAMED) MATH_EXACT(NAMED) MATH_OWN(OWN)
                                         MATH_SHORT(NAMED){.name = "convert", .arity = 1}};

const char *math_op_name(MathOp op) {
    return op_entries[op].name;
}

unsigned math_op_arity(MathOp op) {
    return op_entries[op].arity;
}

static Val emit_op(const Codegen *k, const MathKernel *kernel, Val x, Val y) {
    const OpEntry *entry = &op_entries[kernel->op];
    if (kernel->op == MATH_OP_CONVERT) return convert_value(k, x, kernel->from, kernel->to);
    return entry->emit ? entry->emit(k, x, y) : math_binary(k, entry->name, x, y);
}

static Val load(const Codegen *k, Val base, Dtype dtype, unsigned lanes, Val i) {
    Val at = k_gep(k, k_memory_type(k, dtype, 1), base, i);
    Val v = k_load(k, k_memory_type(k, dtype, lanes), at);
    LLVMSetAlignment(v, dtype_bytes(dtype));
    return dtype == DT_BOOL ? k_trunc(k, v, k_value_type(k, dtype, lanes)) : v;
}

static void store(const Codegen *k, Val base, Dtype dtype, unsigned lanes, Val i, Val v) {
    Val at = k_gep(k, k_memory_type(k, dtype, 1), base, i);
    if (dtype == DT_BOOL) v = k_zext(k, v, k_memory_type(k, dtype, lanes));
    Val s = k_store(k, v, at);
    LLVMSetAlignment(s, dtype_bytes(dtype));
}

static void kernel_name(char name[32], size_t i_kernel) {
    snprintf(name, 32, "kernel_%zu", i_kernel);
}

static void emit_kernel(const Codegen *k, const MathKernel *kernel, size_t i_kernel) {
    LLVMTypeRef params[] = {k->ptr, k->ptr, k->ptr, k->i64};
    char name[32];
    kernel_name(name, i_kernel);
    LLVMTypeRef type = LLVMFunctionType(k->void_type, params, 4, 0);
    Val function = LLVMAddFunction(k->module, name, type);
    if (k_has_ptx(k)) LLVMSetFunctionCallConv(function, PTX_KERNEL_CALL);
    LLVMBasicBlockRef entry = LLVMAppendBasicBlockInContext(k->context, function, "entry");
    k_goto(k, entry);
    LLVMBasicBlockRef head = k_block(k, "head");
    LLVMBasicBlockRef body = k_block(k, "body");
    LLVMBasicBlockRef done = k_block(k, "done");
    k_branch(k, head);
    Val i = k_phi(k, k->i64);
    Val is_open = k_ult(k, i, LLVMGetParam(function, 3));
    k_cond_br(k, is_open, body, done);
    k_goto(k, body);
    Val x = load(k, LLVMGetParam(function, 0), kernel->from, kernel->lanes, i);
    Val y = x;
    if (math_op_arity(kernel->op) == 2) {
        y = load(k, LLVMGetParam(function, 1), kernel->from, kernel->lanes, i);
    }
    Val v = emit_op(k, kernel, x, y);
    Dtype to = kernel->op == MATH_OP_CONVERT ? kernel->to : kernel->from;
    store(k, LLVMGetParam(function, 2), to, kernel->lanes, i, v);
    Val next = k_add(k, i, k_i64(k, kernel->lanes ? kernel->lanes : 1));
    k_br(k, head);
    k_incoming(i, k_i64(k, 0), entry);
    k_incoming(i, next, k_here(k));
    k_goto(k, done);
    k_ret_void(k);
}

static bool is_gpu(const char *cpu) {
    return strncmp(cpu, "sm_", 3) == 0;
}

static LLVMTargetMachineRef machine_for(const char *cpu) {
    static const char triple[] = "x86_64-unknown-linux-gnu";
    LLVMTargetRef target;
    char *message = NULL;
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeX86AsmParser();
    if (LLVMGetTargetFromTriple(triple, &target, &message)) {
        fprintf(stderr, "%s\n", message);
        LLVMDisposeMessage(message);
        return NULL;
    }
    return LLVMCreateTargetMachine(target, triple, cpu, "", LLVMCodeGenLevelDefault, LLVMRelocPIC,
                                   LLVMCodeModelSmall);
}

static void set_target(LLVMModuleRef module, LLVMTargetMachineRef machine) {
    LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(machine);
    LLVMSetModuleDataLayout(module, layout);
    LLVMDisposeTargetData(layout);
    char *triple = LLVMGetTargetMachineTriple(machine);
    LLVMSetTarget(module, triple);
    LLVMDisposeMessage(triple);
}

/* Emits a module of the kernels for `machine`, or for a GPU if it is NULL. False, after printing
 * the reason, if it is not well formed. */
static bool emit_module(Codegen *k, Arena *arena, const Target *target, const MathKernel *kernels,
                        size_t n_kernels, LLVMTargetMachineRef machine) {
    module_init(k, arena, target, "math");
    k->overlaps_quotients = !machine;
    if (machine) set_target(k->module, machine);
    for (size_t i = 0; i < n_kernels; i++) emit_kernel(k, &kernels[i], i);
    char *message = NULL;
    bool is_bad = LLVMVerifyModule(k->module, LLVMReturnStatusAction, &message) != 0;
    if (is_bad) fprintf(stderr, "%s\n", message);
    LLVMDisposeMessage(message);
    return !is_bad;
}

static bool failed(LLVMErrorRef error) {
    if (!error) return false;
    char *message = LLVMGetErrorMessage(error);
    fprintf(stderr, "%s\n", message);
    LLVMDisposeErrorMessage(message);
    return true;
}

static bool add_module(LLVMOrcLLJITRef lljit, const MathKernel *kernels, size_t n_kernels) {
    LLVMTargetMachineRef machine = machine_for("x86-64-v3");
    if (!machine) return false;
    Arena *arena = arena_new(NULL);
    Codegen k;
    bool is_good = emit_module(&k, arena, target_get(TARGET_CPU), kernels, n_kernels, machine);
    LLVMDisposeTargetMachine(machine);
    if (!is_good) {
        module_dispose(&k);
        arena_free(arena);
        return false;
    }
    LLVMDisposeBuilder(k.builder);
    LLVMOrcThreadSafeContextRef owner = LLVMOrcCreateNewThreadSafeContextFromLLVMContext(k.context);
    LLVMOrcThreadSafeModuleRef safe = LLVMOrcCreateNewThreadSafeModule(k.module, owner);
    LLVMOrcJITDylibRef dylib = LLVMOrcLLJITGetMainJITDylib(lljit);
    is_good = !failed(LLVMOrcLLJITAddLLVMIRModule(lljit, dylib, safe));
    LLVMOrcDisposeThreadSafeContext(owner);
    arena_free(arena);
    return is_good;
}

static bool look_up(MathJit *jit, size_t n_kernels) {
    for (size_t i = 0; i < n_kernels; i++) {
        char name[32];
        kernel_name(name, i);
        LLVMOrcExecutorAddress address = 0;
        if (failed(LLVMOrcLLJITLookup(jit->lljit, &address, name))) return false;
        memcpy(&jit->functions[i], &address, sizeof address);
    }
    return true;
}

MathJit *math_jit_new(const MathKernel *kernels, size_t n_kernels) {
    LLVMTargetMachineRef machine = machine_for("x86-64-v3");
    if (!machine) return NULL;
    LLVMOrcLLJITBuilderRef builder = LLVMOrcCreateLLJITBuilder();
    LLVMOrcLLJITBuilderSetJITTargetMachineBuilder(
        builder, LLVMOrcJITTargetMachineBuilderCreateFromTargetMachine(machine));
    MathJit *jit = calloc(1, sizeof *jit);
    if (!jit || failed(LLVMOrcCreateLLJIT(&jit->lljit, builder))) {
        free(jit);
        return NULL;
    }
    jit->functions = calloc(n_kernels, sizeof *jit->functions);
    if (jit->functions && add_module(jit->lljit, kernels, n_kernels) && look_up(jit, n_kernels)) {
        return jit;
    }
    math_jit_free(jit);
    return NULL;
}

void math_jit_free(MathJit *jit) {
    if (!jit) return;
    failed(LLVMOrcDisposeLLJIT(jit->lljit));
    free(jit->functions);
    free(jit);
}

MathFunction math_jit_function(const MathJit *jit, size_t i_kernel) {
    return jit->functions[i_kernel];
}

/* Compiles to an object or assembly; NULL if LLVM fails. */
static LLVMMemoryBufferRef compile(const MathKernel *kernels, size_t n_kernels, const char *cpu,
                                   LLVMCodeGenFileType kind) {
    LLVMTargetMachineRef machine = machine_for(cpu);
    if (!machine) return NULL;
    Arena *arena = arena_new(NULL);
    Codegen k;
    bool is_good = emit_module(&k, arena, target_get(TARGET_CPU), kernels, n_kernels, machine);
    LLVMMemoryBufferRef buffer = NULL;
    char *message = NULL;
    if (is_good &&
        LLVMTargetMachineEmitToMemoryBuffer(machine, k.module, kind, &message, &buffer)) {
        fprintf(stderr, "%s\n", message);
        LLVMDisposeMessage(message);
        buffer = NULL;
    }
    module_dispose(&k);
    arena_free(arena);
    LLVMDisposeTargetMachine(machine);
    return buffer;
}

/* Whether a symbol of the object is its own: a kernel, the file's name or a section. */
static bool is_own(const char *name) {
    return *name == '\0' || *name == '.' || strncmp(name, "kernel_", 7) == 0 ||
           strcmp(name, "math") == 0;
}

int math_count_externals(const MathKernel *kernels, size_t n_kernels) {
    LLVMMemoryBufferRef object = compile(kernels, n_kernels, "x86-64-v3", LLVMObjectFile);
    if (!object) return -1;
    char *message = NULL;
    LLVMBinaryRef binary = LLVMCreateBinary(object, NULL, &message);
    if (!binary) {
        fprintf(stderr, "%s\n", message);
        LLVMDisposeMessage(message);
        LLVMDisposeMemoryBuffer(object);
        return -1;
    }
    int n_externals = 0;
    LLVMSymbolIteratorRef symbol = LLVMObjectFileCopySymbolIterator(binary);
    while (!LLVMObjectFileIsSymbolIteratorAtEnd(binary, symbol)) {
        const char *name = LLVMGetSymbolName(symbol);
        if (!is_own(name)) {
            fprintf(stderr, "external symbol %s\n", name);
            n_externals++;
        }
        LLVMMoveToNextSymbol(symbol);
    }
    LLVMDisposeSymbolIterator(symbol);
    LLVMDisposeBinary(binary);
    LLVMDisposeMemoryBuffer(object);
    return n_externals;
}

static char *ptx_of(const MathKernel *kernels, size_t n_kernels, const Target *target) {
    Arena *arena = arena_new(NULL);
    Codegen k;
    char *text = NULL;
    if (emit_module(&k, arena, target, kernels, n_kernels, NULL)) {
        PtxText ptx = {.head.arena = arena, .functions.arena = arena};
        ptx_write_head(&ptx.head, target, false);
        ptx_write_module(&ptx, &k, 0);
        text_add(&ptx.head, text_str(&ptx.functions), ptx.functions.n_bytes);
        text = malloc(ptx.head.n_bytes + 1);
        if (text) memcpy(text, text_str(&ptx.head), ptx.head.n_bytes + 1);
    }
    module_dispose(&k);
    arena_free(arena);
    return text;
}

char *math_assembly(const MathKernel *kernels, size_t n_kernels, const char *cpu) {
    if (is_gpu(cpu)) return ptx_of(kernels, n_kernels, target_by_name(cpu));
    LLVMMemoryBufferRef buffer = compile(kernels, n_kernels, cpu, LLVMAssemblyFile);
    if (!buffer) return NULL;
    size_t n_bytes = LLVMGetBufferSize(buffer);
    char *text = malloc(n_bytes + 1);
    if (text) {
        memcpy(text, LLVMGetBufferStart(buffer), n_bytes);
        text[n_bytes] = '\0';
    }
    LLVMDisposeMemoryBuffer(buffer);
    return text;
}

void math_text_free(char *text) {
    free(text);
}
