/* Codegen units. A unit is an LLVM module with functions of the plans.
 *
 * The caller's thread lowers units one after the other, since lowering adds to tables of the plan.
 * Any thread finishes them, which takes most of the time: the PTX writer makes text of a unit, or
 * LLVM an object. The caller takes them in the order in which it opened them, so the bytes do not
 * depend on the number of threads. */
#ifndef FUSEC_CODEGEN_UNIT_H
#define FUSEC_CODEGEN_UNIT_H

#include "codegen/codegen.h"
#include "codegen/llvm/build.h"
#include "codegen/ptx/ptx_write.h"

#include <llvm-c/TargetMachine.h>

typedef enum { UNIT_OPEN, UNIT_LOWERED, UNIT_BEGUN, UNIT_FINISHED } UnitState;

/* What LLVM makes of a unit for a CPU: its best code, or code in a time that is linear in its
 * instructions. The results are equal. */
typedef enum { EFFORT_BEST, EFFORT_QUICK, EFFORT_COUNT } UnitEffort;

typedef struct CodegenUnit {
    Codegen k;
    UnitState state;
    UnitEffort effort;
    uint32_t n_instructions;
    Arena *scratch;           /* of lowering */
    Arena *own;               /* of finishing; its escape is `escape` */
    Escape escape;            /* of the thread that finishes */
    EscapeReason failure;     /* of finishing; 0: none */
    const char *broken;       /* begins LLVM's refusal, as in "LLVM module is broken"; NULL: none */
    char *message;            /* LLVM's, about it; or NULL */
    PtxText ptx;              /* the result for a GPU: declarations and functions, on `own` */
    LLVMMemoryBufferRef code; /* the result for a CPU */
    LLVMTargetMachineRef machine; /* of the thread that finishes; or NULL */
} CodegenUnit;

typedef struct UnitQueue UnitQueue;

/* Makes a result of a unit, on any thread. */
typedef void UnitFinish(CodegenUnit *unit, const BackOptions *options, CodeKind kind);
/* Makes a machine that has made code already, on any thread; NULL: it cannot. */
typedef LLVMTargetMachineRef UnitPrepare(const BackOptions *options);
/* Takes the result of a finished unit, on the caller's thread. */
typedef bool UnitTake(void *user, CodegenUnit *unit);

/* A queue of units for options->n_threads threads, of which the caller's is one. */
UnitQueue *unit_queue_new(Arena *arena, const BackOptions *options, CodeKind kind,
                          UnitFinish *finish, UnitTake *take, void *user);
/* Starts up to `most` threads before there are units: each prepares a machine. */
void unit_queue_prepare(UnitQueue *queue, UnitPrepare *prepare, uint32_t most);
/* An empty unit to lower into. A full queue takes its oldest unit first. NULL: `take` failed. */
CodegenUnit *unit_open(UnitQueue *queue);
/* The unit opened last is lowered, to so many instructions: larger units are finished first. */
void unit_close(UnitQueue *queue, uint32_t n_instructions, UnitEffort effort);
/* Takes the units that are left. False: `take` failed. */
bool unit_take_rest(UnitQueue *queue);
/* Ends the threads and frees all units, finished or not. */
void unit_queue_dispose(UnitQueue *queue);

#endif
