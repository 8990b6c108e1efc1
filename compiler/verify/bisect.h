/* Finding the op at which a fused program first departs from the unfused one.
 *
 * The fused plan's kernels know which scalar is which value of the graph (Kernel.traces). A few of
 * these values at a time are stored beside what the kernels store anyway (verify/probe.h), and
 * compared with the unfused program's; of those that differ one is taken whose operands do not.
 * What is fused stays as it is.
 *
 * Host only: whoever calls it compiles and runs. */
#ifndef FUSEC_VERIFY_BISECT_H
#define FUSEC_VERIFY_BISECT_H

#include "verify/probe.h"

/* One run of the fused program with probes. */
typedef struct BisectTrial {
    const Probe *taps;
    uint32_t n_taps;
    uint32_t shown; /* a temporary to be an output too, UINT32_MAX: none */
    /* Filled in: per probe the elements of each of its scalars; those of `shown`; and whether the
     * output that is looked into still differs. */
    const uint8_t *const **bytes;
    const uint8_t *shown_bytes;
    bool is_wrong;
} BisectTrial;

typedef struct Bisect {
    const Plan *plan;   /* of the program that failed: as fused, where probes are put in */
    const Plan *placed; /* the same plan as lowered: other kernels may be between its own */
    uint32_t buffer;    /* the output that differs */
    const int64_t *symbol_values;
    const uint8_t *const *expected; /* per node: elements of the right value, or NULL */
    Arena *arena;
    /* Compiles, runs on the inputs that failed; false when that cannot be done, which ends it. */
    bool (*run)(void *user, BisectTrial *trial);
    void *user;
} Bisect;

/* The name that the temporary has as an output; no source can have it. */
const char *bisect_shown_name(void);
/* Puts the trial's probes into a plan that was fused, and is not placed yet. */
void bisect_apply(const BisectTrial *trial, Arena *arena, Plan *plan);

typedef enum {
    BISECT_FAILED,   /* a trial could not be run */
    BISECT_OP,       /* the op's value is wrong, its operands are right */
    BISECT_READ,     /* its operand is right in memory, but not what it reads there */
    BISECT_STORE,    /* its value is right, what lies in memory after the store is not */
    BISECT_OVERLAP,  /* its value is overwritten before it is read */
    BISECT_CHIP,     /* it is right, but not what the next phase of the launch finds on chip */
    BISECT_ORDER,    /* it is read before it is made */
    BISECT_SCHEDULE, /* with probes nothing is wrong */
} BisectKind;

typedef struct BisectVerdict {
    BisectKind kind;
    NodeId node;                 /* the op */
    uint32_t kernel;             /* that computes it */
    uint32_t n_values, n_trials; /* looked at */
    const char *text;            /* all of it, in one or more lines that end with a line feed */
} BisectVerdict;

BisectVerdict bisect_find(const Bisect *bisect);

#endif
