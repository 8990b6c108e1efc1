/* The back end: plans to LLVM's IR to PTX or objects. The only folder that includes llvm-c. */
#ifndef FUSEC_CODEGEN_CODEGEN_H
#define FUSEC_CODEGEN_CODEGEN_H

#include "base/diag.h"
#include "machine/target.h"
#include "plan/plan.h"

typedef enum { CODE_LLVM_IR, CODE_ASSEMBLY, CODE_OBJECT } CodeKind; /* GPU assembly is PTX */

typedef struct CodeBytes {
    char *data; /* on the arena */
    size_t n_bytes;
} CodeBytes;

typedef struct BackOptions {
    const Target *target;
    bool verify; /* run LLVM's verifier */
    /* Text of the manifest: PTX carries it as leading comment lines, an object as the content of
     * its section; NULL for none. Its checksum field is filled in by manifest_seal afterwards. */
    const char *manifest;
} BackOptions;

/* Whether every primitive and dtype of the plan has a lowering; reports what has none. Never
 * skipped: LLVM aborts the process on what it cannot select for a CPU. */
bool back_is_legal(const Plan *plan, const Target *target, Diags *diags);

/* Lowers all kernels of all plans (structurally equal kernels once each) and emits them. */
bool back_emit(Arena *arena, const Plan *const *plans, uint32_t n_plans, BackOptions options,
               CodeKind kind, CodeBytes *code, Diags *diags);

/* The best x86-64 target that runs on this machine, or NULL when not even x86-64-v3 does. */
const Target *back_native_cpu(void);
const char *back_llvm_version(void);

#endif
