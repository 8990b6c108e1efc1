/* Planted faults. Each changes the plan of a small program as a compiler with a bug would, through
 * the driver's hook, and names the op that is wrong. They show that `fusec verify` finds faults and
 * names them. The compiler contains nothing of them. */
#ifndef FUSEC_TESTS_FAULTS_H
#define FUSEC_TESTS_FAULTS_H

#include "driver/driver.h"

typedef enum {
#define FAULT(sym, doc, op, line, hits, source) FAULT_##sym,
#include "lib/faults.def"
    FAULT_COUNT
} FaultId;

/* The programs with the fault: the fused one, or the unfused one too. */
typedef enum { FAULT_IN_FUSED, FAULT_IN_BOTH } FaultPlace;

typedef struct FaultInfo {
    const char *name, *doc;
    const char *op; /* the op that verify must name */
    unsigned line;  /* the op's line in the source */
    FaultPlace place;
    const char *source; /* text of the program */
} FaultInfo;
const FaultInfo *fault_info(FaultId id);

/* The hook that plants the fault. `*n_planted` counts the plans that it changed. */
DriverHook fault_hook(FaultId id, uint32_t *n_planted);

/* A fault in some op of any program: its result is one too large. */
typedef struct RandomFault {
    uint64_t seed;      /* selects the op */
    uint32_t n_planted; /* number of changed plans */
    /* Lines of values that are wrong themselves and not by their operands. There may be several,
     * because ops share computations in a kernel. */
    uint32_t n_lines;
    uint32_t lines[64];
} RandomFault;
DriverHook fault_random_hook(RandomFault *fault);

#endif
