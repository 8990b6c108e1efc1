/* Planted mistakes: each changes the plan of a small program as a wrong compiler would have made
 * it, through the driver's hook, and says which op it is a mistake of. They show that `fusec
 * verify` finds mistakes and names them; nothing of them is in the compiler. */
#ifndef FUSEC_TESTS_FAULTS_H
#define FUSEC_TESTS_FAULTS_H

#include "driver/driver.h"

typedef enum {
#define FAULT(sym, doc, op, line, hits, source) FAULT_##sym,
#include "lib/faults.def"
    FAULT_COUNT
} FaultId;

/* The fused program has it, or the unfused one too; or what is rewritten, if that is asked for. */
typedef enum { FAULT_IN_FUSED, FAULT_IN_BOTH, FAULT_IN_REWRITTEN } FaultPlace;

typedef struct FaultInfo {
    const char *name, *doc;
    const char *op; /* that is to be named */
    unsigned line;  /* of it in the source */
    FaultPlace place;
    const char *source; /* of the program */
} FaultInfo;
const FaultInfo *fault_info(FaultId id);

/* The hook that plants it. `*n_planted` counts the plans that it changed. */
DriverHook fault_hook(FaultId id, uint32_t *n_planted);

/* A mistake in some op of any program: its result is one too large. */
typedef struct RandomFault {
    uint64_t seed;      /* which */
    uint32_t n_planted; /* plans that were changed */
    /* Lines of the values that are wrong by it themselves, not by their operands: several ops may
     * share what one kernel computes. */
    uint32_t n_lines;
    uint32_t lines[64];
} RandomFault;
DriverHook fault_random_hook(RandomFault *fault);

#endif
