/* What verify does when a fused program is wrong: it compiles and runs it again and again, with
 * probes, until it can name the op (bisect.h). */
#ifndef FUSEC_CLI_BISECT_H
#define FUSEC_CLI_BISECT_H

#include "cli/exec.h"
#include "verify/bisect.h"

typedef struct BisectCase {
    Cli *cli;
    const char *text; /* the source */
    size_t n_bytes;
    const Target *target;
    const Plan *plan, *placed; /* fused, of the graph that is wrong, as in bisect.h */
    uint32_t graph;            /* its index */
    const Exec *wrong;         /* dims are taken from it, inputs are made again */
    DataKind data;
    const char *output;             /* that differs */
    const uint8_t *right;           /* what it should be */
    const uint8_t *const *expected; /* per node, NULL: not known */
} BisectCase;

BisectVerdict cli_bisect(const BisectCase *wrong, Arena *arena);

#endif
