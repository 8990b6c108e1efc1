/* The back end: lowers plans to LLVM IR and writes PTX or objects. The only folder that includes
 * llvm-c. */
#ifndef FUSEC_CODEGEN_CODEGEN_H
#define FUSEC_CODEGEN_CODEGEN_H

#include "base/diag.h"
#include "machine/target.h"
#include "plan/plan.h"

typedef enum { CODE_LLVM_IR, CODE_ASSEMBLY, CODE_OBJECT } CodeKind; /* assembly of a GPU is PTX */

typedef struct CodeBytes {
    char *data; /* on the arena */
    size_t n_bytes;
} CodeBytes;

typedef struct BackOptions {
    const Target *target;
    bool verify;        /* run LLVM's verifier */
    uint32_t n_threads; /* of an emission, the caller's among them; 0: only the caller's */
} BackOptions;

/* Whether every primitive and dtype of the plan has a lowering; reports those without. It must
 * never be skipped: LLVM aborts the process on an instruction that it cannot select. */
bool codegen_is_legal(const Plan *plan, const Target *target, Diags *diags);

/* The emission of one artifact. */
typedef struct Emission Emission;
/* It lies on the arena, and must be closed, also after an escape. */
Emission *codegen_open(Arena *arena, BackOptions options, CodeKind kind, Diags *diags);
/* Has other threads get ready, for code of so many ops on a CPU, while the plans are made. */
void codegen_prepare(Emission *emission, uint32_t n_ops);
/* Lowers all kernels of all plans, each distinct kernel once. From then on other threads make code
 * of them, and read nothing of the plans. False: an error was reported. */
bool codegen_lower(Emission *emission, const Plan *const *plans, uint32_t n_plans);
/* The code, once it is made. PTX carries the manifest as leading comment lines, an object in a
 * section of its own; NULL: none. manifest_seal fills in its checksum afterwards. False: an error
 * was reported. */
bool codegen_finish(Emission *emission, const char *manifest, CodeBytes *code);
/* Ends the threads and frees what does not lie on the arena. */
void codegen_close(Emission *emission);
/* All of these at once, without a manifest. */
bool codegen_emit(Arena *arena, const Plan *const *plans, uint32_t n_plans, BackOptions options,
                  CodeKind kind, CodeBytes *code, Diags *diags);

/* Whether this machine runs the target's code, which is for a CPU. */
bool codegen_cpu_runs(const Target *target);
/* The best x86-64 target that runs on this machine; NULL if even x86-64-v3 does not. */
const Target *codegen_native_cpu(void);
const char *codegen_llvm_version(void);
/* Has `told` called where LLVM would end the process because of a fault. It must not return. */
void codegen_on_fault(void (*told)(const char *why));

#endif
