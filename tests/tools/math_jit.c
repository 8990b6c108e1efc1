/* See math_jit.h. A kernel is one loop: load, operation, store. */
#include "math_jit.h"

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
    LLVMValueRef (*unary)(const MathCtx *m, LLVMValueRef x);
    LLVMValueRef (*binary)(const MathCtx *m, LLVMValueRef x, LLVMValueRef y);
} OpEntry;

/* The lanes by the first one's divisor. */
static LLVMValueRef by_one(const MathCtx *m, LLVMValueRef x, LLVMValueRef y, bool are_fractions) {
    if (LLVMGetTypeKind(LLVMTypeOf(x)) != LLVMVectorTypeKind) return math_div(m, x, y);
    LLVMValueRef at = LLVMConstInt(LLVMInt32TypeInContext(m->context), 0, 0);
    LLVMValueRef one = LLVMBuildExtractElement(m->builder, y, at, "");
    MathDivisor divisor = math_divisor(m, one);
    return math_quotient(m, x, &divisor, are_fractions);
}

static LLVMValueRef math_quotient_by_one(const MathCtx *m, LLVMValueRef x, LLVMValueRef y) {
    return by_one(m, x, y, false);
}

static LLVMValueRef math_fraction_by_one(const MathCtx *m, LLVMValueRef x, LLVMValueRef y) {
    return by_one(m, x, y, true);
}

#define EMITTER_1(name) .unary = math_##name
#define EMITTER_2(name) .binary = math_##name
#define ENTRY(op, n_args) {.name = #op, .arity = n_args, EMITTER_##n_args(op)},

/* Indexed by MathOp. */
static const OpEntry op_entries[] = {MATH_FUNCTIONS(ENTRY) MATH_EXACT(ENTRY) MATH_INTEGER(
    ENTRY) MATH_SHARED(ENTRY) MATH_SHORT(ENTRY){.name = "convert", .arity = 1}};

const char *math_op_name(MathOp op) {
    return op_entries[op].name;
}

unsigned math_op_arity(MathOp op) {
    return op_entries[op].arity;
}

size_t math_type_bytes(ConvertType type) {
    static const size_t bytes[CONVERT_N_TYPES] = {8, 4, 2, 2, 4, 1};
    return bytes[type];
}

static LLVMValueRef emit_op(const MathCtx *m, const MathKernel *k, LLVMValueRef x, LLVMValueRef y) {
    const OpEntry *entry = &op_entries[k->op];
    if (entry->unary) return entry->unary(m, x);
    if (entry->binary) return entry->binary(m, x, y);
    return convert_value(m, x, k->from, k->to);
}

static LLVMTypeRef memory_type(const MathCtx *m, ConvertType type, unsigned lanes) {
    if (type != CONVERT_BOOL) return convert_ir_type(m, type, lanes);
    LLVMTypeRef byte = LLVMInt8TypeInContext(m->context);
    return lanes ? LLVMVectorType(byte, lanes) : byte;
}

static LLVMValueRef element_at(const MathCtx *m, LLVMValueRef base, ConvertType type,
                               LLVMValueRef i) {
    LLVMTypeRef element = memory_type(m, type, 0);
    return LLVMBuildGEP2(m->builder, element, base, &i, 1, "");
}

static LLVMValueRef load(const MathCtx *m, LLVMValueRef base, ConvertType type, unsigned lanes,
                         LLVMValueRef i) {
    LLVMValueRef at = element_at(m, base, type, i);
    LLVMValueRef v = LLVMBuildLoad2(m->builder, memory_type(m, type, lanes), at, "");
    LLVMSetAlignment(v, (unsigned)math_type_bytes(type));
    if (type != CONVERT_BOOL) return v;
    return LLVMBuildTrunc(m->builder, v, convert_ir_type(m, type, lanes), "");
}

static void store(const MathCtx *m, LLVMValueRef base, ConvertType type, unsigned lanes,
                  LLVMValueRef i, LLVMValueRef v) {
    LLVMValueRef at = element_at(m, base, type, i);
    if (type == CONVERT_BOOL) v = LLVMBuildZExt(m->builder, v, memory_type(m, type, lanes), "");
    LLVMValueRef s = LLVMBuildStore(m->builder, v, at);
    LLVMSetAlignment(s, (unsigned)math_type_bytes(type));
}

static void kernel_name(char name[32], size_t i_kernel) {
    snprintf(name, 32, "kernel_%zu", i_kernel);
}

static void emit_kernel(const MathCtx *m, const MathKernel *k, size_t i_kernel) {
    LLVMContextRef c = m->context;
    LLVMBuilderRef b = m->builder;
    LLVMTypeRef i64 = LLVMInt64TypeInContext(c);
    LLVMTypeRef pointer = LLVMPointerTypeInContext(c, 0);
    LLVMTypeRef params[] = {pointer, pointer, pointer, i64};
    char name[32];
    kernel_name(name, i_kernel);
    LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(c), params, 4, 0);
    LLVMValueRef function = LLVMAddFunction(m->module, name, type);
    if (m->is_gpu) LLVMSetFunctionCallConv(function, PTX_KERNEL_CALL);
    LLVMBasicBlockRef entry = LLVMAppendBasicBlockInContext(c, function, "entry");
    LLVMBasicBlockRef head = LLVMAppendBasicBlockInContext(c, function, "head");
    LLVMBasicBlockRef body = LLVMAppendBasicBlockInContext(c, function, "body");
    LLVMBasicBlockRef done = LLVMAppendBasicBlockInContext(c, function, "done");
    LLVMPositionBuilderAtEnd(b, entry);
    LLVMBuildBr(b, head);
    LLVMPositionBuilderAtEnd(b, head);
    LLVMValueRef i = LLVMBuildPhi(b, i64, "i");
    LLVMValueRef is_open = LLVMBuildICmp(b, LLVMIntULT, i, LLVMGetParam(function, 3), "");
    LLVMBuildCondBr(b, is_open, body, done);
    LLVMPositionBuilderAtEnd(b, body);
    LLVMValueRef x = load(m, LLVMGetParam(function, 0), k->from, k->lanes, i);
    LLVMValueRef y = x;
    if (math_op_arity(k->op) == 2) {
        y = load(m, LLVMGetParam(function, 1), k->from, k->lanes, i);
    }
    LLVMValueRef v = emit_op(m, k, x, y);
    ConvertType to = k->op == MATH_OP_CONVERT ? k->to : k->from;
    store(m, LLVMGetParam(function, 2), to, k->lanes, i, v);
    LLVMValueRef width = LLVMConstInt(i64, k->lanes ? k->lanes : 1, 0);
    LLVMValueRef next = LLVMBuildAdd(b, i, width, "");
    LLVMBuildBr(b, head);
    LLVMValueRef values[] = {LLVMConstInt(i64, 0, 0), next};
    LLVMBasicBlockRef blocks[] = {entry, LLVMGetInsertBlock(b)};
    LLVMAddIncoming(i, values, blocks, 2);
    LLVMPositionBuilderAtEnd(b, done);
    LLVMBuildRetVoid(b);
}

static const char gpu_triple[] = "nvptx64-nvidia-cuda";

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

/* A verified module of the kernels, for the machine, or for a GPU where that is NULL; NULL, with
 * the reason printed, if it is not well formed. */
static LLVMModuleRef module_of(LLVMContextRef context, const MathKernel *kernels, size_t n_kernels,
                               LLVMTargetMachineRef machine) {
    LLVMModuleRef module = LLVMModuleCreateWithNameInContext("math", context);
    if (machine)
        set_target(module, machine);
    else
        LLVMSetTarget(module, gpu_triple);
    LLVMBuilderRef builder = LLVMCreateBuilderInContext(context);
    MathCtx m = {.context = context,
                 .module = module,
                 .builder = builder,
                 .is_gpu = !machine,
                 .overlaps_quotients = !machine};
    for (size_t i = 0; i < n_kernels; i++) emit_kernel(&m, &kernels[i], i);
    LLVMDisposeBuilder(builder);
    char *message = NULL;
    bool is_bad = LLVMVerifyModule(module, LLVMReturnStatusAction, &message) != 0;
    if (is_bad) {
        fprintf(stderr, "%s\n", message);
        LLVMDisposeModule(module);
        module = NULL;
    }
    LLVMDisposeMessage(message);
    return module;
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
    LLVMContextRef context = LLVMContextCreate();
    LLVMModuleRef module = module_of(context, kernels, n_kernels, machine);
    LLVMDisposeTargetMachine(machine);
    LLVMOrcThreadSafeContextRef owner = LLVMOrcCreateNewThreadSafeContextFromLLVMContext(context);
    bool is_good = false;
    if (module) {
        LLVMOrcThreadSafeModuleRef safe = LLVMOrcCreateNewThreadSafeModule(module, owner);
        LLVMOrcJITDylibRef dylib = LLVMOrcLLJITGetMainJITDylib(lljit);
        is_good = !failed(LLVMOrcLLJITAddLLVMIRModule(lljit, dylib, safe));
    }
    LLVMOrcDisposeThreadSafeContext(owner);
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

/* Object or assembly; NULL if LLVM fails. */
static LLVMMemoryBufferRef compile(const MathKernel *kernels, size_t n_kernels, const char *cpu,
                                   LLVMCodeGenFileType kind) {
    LLVMTargetMachineRef machine = machine_for(cpu);
    if (!machine) return NULL;
    LLVMContextRef context = LLVMContextCreate();
    LLVMModuleRef module = module_of(context, kernels, n_kernels, machine);
    LLVMMemoryBufferRef buffer = NULL;
    char *message = NULL;
    if (module && LLVMTargetMachineEmitToMemoryBuffer(machine, module, kind, &message, &buffer)) {
        fprintf(stderr, "%s\n", message);
        LLVMDisposeMessage(message);
        buffer = NULL;
    }
    if (module) LLVMDisposeModule(module);
    LLVMContextDispose(context);
    LLVMDisposeTargetMachine(machine);
    return buffer;
}

/* Whether a symbol of the object is one of ours: a kernel, the file's name or a section. */
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
    LLVMContextRef context = LLVMContextCreate();
    LLVMModuleRef module = module_of(context, kernels, n_kernels, NULL);
    PtxText ptx = {.head.arena = arena, .functions.arena = arena};
    char *text = NULL;
    if (module) {
        Unit unit = {.arena = arena, .target = target, .context = context, .module = module};
        ptx_write_head(&ptx, target);
        ptx_write_unit(&ptx, &unit);
        text_add(&ptx.head, text_str(&ptx.functions), ptx.functions.n_bytes);
        text = malloc(ptx.head.n_bytes + 1);
        if (text) memcpy(text, text_str(&ptx.head), ptx.head.n_bytes + 1);
        LLVMDisposeModule(module);
    }
    LLVMContextDispose(context);
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
