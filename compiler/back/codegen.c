/* Code generation on several threads. See codegen.h. A target machine serves one thread. */
#include "back/codegen.h"

#include <llvm-c/Analysis.h>
#include <llvm-c/Target.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static LLVMTargetMachineRef make_machine(const Target *target, const char *triple, char **message) {
    LLVMTargetRef backend;
    if (LLVMGetTargetFromTriple(triple, &backend, message)) return NULL;
    return LLVMCreateTargetMachine(backend, triple, target->llvm_cpu, target->llvm_features,
                                   LLVMCodeGenLevelDefault, LLVMRelocPIC, LLVMCodeModelDefault);
}

static void print_module(CodegenModule *module) {
    char *text = LLVMPrintModuleToString(module->unit.module);
    module->code = LLVMCreateMemoryBufferWithMemoryRangeCopy(text, strlen(text), "");
    LLVMDisposeMessage(text);
}

static void run_machine(const Codegen *codegen, CodegenModule *module,
                        LLVMTargetMachineRef *machine) {
    LLVMModuleRef llvm = module->unit.module;
    if (!*machine) *machine = make_machine(codegen->target, LLVMGetTarget(llvm), &module->message);
    if (!*machine) return;
    LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(*machine);
    LLVMSetModuleDataLayout(llvm, layout);
    LLVMDisposeTargetData(layout);
    LLVMCodeGenFileType type = codegen->kind == CODE_OBJECT ? LLVMObjectFile : LLVMAssemblyFile;
    if (LLVMTargetMachineEmitToMemoryBuffer(*machine, llvm, type, &module->message, &module->code))
        module->code = NULL;
}

static void generate(const Codegen *codegen, CodegenModule *module, LLVMTargetMachineRef *machine) {
    if (codegen->verify) {
        LLVMModuleRef llvm = module->unit.module;
        module->is_broken = LLVMVerifyModule(llvm, LLVMReturnStatusAction, &module->message) != 0;
        if (module->is_broken) return;
        LLVMDisposeMessage(module->message);
        module->message = NULL;
    }
    if (codegen->kind == CODE_LLVM_IR)
        print_module(module);
    else
        run_machine(codegen, module, machine);
    unit_dispose(&module->unit);
}

/* The largest module that nobody has begun, so that the threads end at about the same time. */
static CodegenModule *find_largest(Codegen *codegen) {
    CodegenModule *largest = NULL;
    for (uint32_t i = 0; i < codegen->n_made; i++) {
        CodegenModule *module = &codegen->modules[i];
        if (!module->is_started && (!largest || module->n_instructions > largest->n_instructions))
            largest = module;
    }
    return largest;
}

/* A module to generate; NULL when there will be none. */
static CodegenModule *take_module(Codegen *codegen) {
    mtx_lock(&codegen->lock);
    while (codegen->n_started == codegen->n_made && !codegen->is_closed)
        cnd_wait(&codegen->changed, &codegen->lock);
    CodegenModule *module = find_largest(codegen);
    if (module) {
        module->is_started = true;
        codegen->n_started++;
    }
    mtx_unlock(&codegen->lock);
    return module;
}

static int help(void *user) {
    Codegen *codegen = user;
    LLVMTargetMachineRef machine = NULL;
    for (CodegenModule *module; (module = take_module(codegen));)
        generate(codegen, module, &machine);
    if (machine) LLVMDisposeTargetMachine(machine);
    return 0;
}

static uint32_t n_helpers_wanted(BackOptions options, uint32_t max_modules) {
    long n_processors = sysconf(_SC_NPROCESSORS_ONLN);
    long n_threads = options.n_threads ? (long)options.n_threads : n_processors;
    if (n_threads > CODEGEN_MAX_HELPERS + 1) n_threads = CODEGEN_MAX_HELPERS + 1;
    if (n_threads > (long)max_modules) n_threads = (long)max_modules;
    return n_threads > 1 ? (uint32_t)n_threads - 1 : 0;
}

/* Signals are for the threads of whoever called. */
static void start_helpers(Codegen *codegen, uint32_t n) {
    sigset_t all, before;
    sigfillset(&all);
    if (pthread_sigmask(SIG_SETMASK, &all, &before)) return;
    while (codegen->n_helpers < n &&
           thrd_create(&codegen->helpers[codegen->n_helpers], help, codegen) == thrd_success)
        codegen->n_helpers++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void codegen_open(Codegen *codegen, Arena *arena, BackOptions options, CodeKind kind,
                  uint32_t max_modules) {
    *codegen = (Codegen){.target = options.target,
                         .kind = kind,
                         .verify = options.verify,
                         .modules = arena_array(arena, CodegenModule, max_modules),
                         .max_modules = max_modules};
    if (mtx_init(&codegen->lock, mtx_plain) != thrd_success)
        ice(arena, "the system has no lock for the code generator");
    if (cnd_init(&codegen->changed) != thrd_success) {
        mtx_destroy(&codegen->lock);
        ice(arena, "the system has no condition variable for the code generator");
    }
    codegen->is_open = true;
    start_helpers(codegen, n_helpers_wanted(options, max_modules));
}

Unit *codegen_module(Codegen *codegen, Arena *arena) {
    if (codegen->n_made == codegen->max_modules) ice(arena, "more modules than were announced");
    Unit *unit = &codegen->modules[codegen->n_made].unit;
    unit_init(unit, arena, codegen->target, "fusec");
    return unit;
}

void codegen_submit(Codegen *codegen) {
    CodegenModule *module = &codegen->modules[codegen->n_made];
    module->n_instructions = unit_n_instructions(&module->unit);
    mtx_lock(&codegen->lock);
    codegen->n_made++;
    cnd_signal(&codegen->changed);
    mtx_unlock(&codegen->lock);
}

static void close_queue(Codegen *codegen) {
    mtx_lock(&codegen->lock);
    codegen->is_closed = true;
    cnd_broadcast(&codegen->changed);
    mtx_unlock(&codegen->lock);
}

static void join_helpers(Codegen *codegen) {
    while (codegen->n_helpers) thrd_join(codegen->helpers[--codegen->n_helpers], NULL);
}

void codegen_finish(Codegen *codegen) {
    close_queue(codegen);
    help(codegen);
    join_helpers(codegen);
}

void codegen_dispose(Codegen *codegen) {
    if (!codegen->is_open) return;
    close_queue(codegen);
    join_helpers(codegen);
    for (uint32_t i = 0; i < codegen->max_modules; i++) {
        CodegenModule *module = &codegen->modules[i];
        unit_dispose(&module->unit);
        if (module->code) LLVMDisposeMemoryBuffer(module->code);
        if (module->message) LLVMDisposeMessage(module->message);
    }
    cnd_destroy(&codegen->changed);
    mtx_destroy(&codegen->lock);
    codegen->is_open = false;
}
