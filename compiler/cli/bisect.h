/* Bisection in `fusec verify`: when a fused program is wrong, compiles and runs it repeatedly with
 * probes until verify/bisect.h can name the op. */
#ifndef FUSEC_CLI_BISECT_H
#define FUSEC_CLI_BISECT_H

#include "cli/exec.h"
#include "verify/bisect.h"

typedef struct BisectCase {
    Cli *cli;
    const char *text; /* source text */
    size_t n_bytes;
    const Target *target;
    const Plan *plan, *placed; /* fused plans of the wrong graph, as in verify/bisect.h */
    uint32_t graph;            /* its index */
    const Exec *wrong;         /* the failed run: its dims are used again, and its inputs are
                                * generated again */
    DataKind data;
    const char *output;             /* the output that differs */
    const uint8_t *right;           /* its right value */
    const uint8_t *const *expected; /* per node: right elements; NULL: unknown */
} BisectCase;

BisectVerdict cli_bisect(const BisectCase *wrong, Arena *arena);

#endif
