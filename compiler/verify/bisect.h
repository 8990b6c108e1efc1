/* Bisection: finds the op at which a fused program first departs from the unfused one.
 *
 * The fused plan's kernels record which scalar is which value of the graph (Kernel.traces). Each
 * trial stores a few of these values by probes (verify/probe.h) and compares them with those of the
 * unfused program. The result is a value that differs although its operands do not. The grouping
 * does not change.
 *
 * Host only: the caller compiles and runs. */
#ifndef FUSEC_VERIFY_BISECT_H
#define FUSEC_VERIFY_BISECT_H

#include "verify/probe.h"

/* One run of the fused program with probes. */
typedef struct BisectTrial {
    const Probe *probes;
    uint32_t n_probes;
    uint32_t shown; /* a temporary that becomes an output too; UINT32_MAX: none */
    /* Results: per probe the elements of each of its scalars, the elements of `shown`, and whether
     * the output under examination still differs. */
    const uint8_t *const **bytes;
    const uint8_t *shown_bytes;
    bool is_wrong;
} BisectTrial;

typedef struct Bisect {
    const Plan *plan;   /* the failed program after fusion, where probes are added */
    const Plan *placed; /* the same plan as lowered, with further kernels between its own */
    uint32_t buffer;    /* the output that differs */
    const int64_t *symbol_values;
    const uint8_t *const *expected; /* per node: elements of the right value, or NULL */
    Arena *arena;
    /* Compiles, and runs on the inputs that failed. False ends the search: it could not be done. */
    bool (*run)(void *user, BisectTrial *trial);
    void *user;
} Bisect;

/* The name of the temporary as an output; no source can use it. */
const char *bisect_shown_name(void);
/* Adds the trial's probes to a fused plan that is not placed yet. */
void bisect_apply(const BisectTrial *trial, Arena *arena, Plan *plan);

typedef enum {
    BISECT_FAILED,   /* a trial could not run */
    BISECT_OP,       /* the op's value is wrong, its operands are right */
    BISECT_READ,     /* an operand is right in memory, but the op reads another value */
    BISECT_STORE,    /* the op's value is right, but memory is wrong after the store */
    BISECT_OVERLAP,  /* the value is overwritten before it is read */
    BISECT_SMEM,     /* the value is right, but the next kernel of the launch finds another one in
                      * shared memory */
    BISECT_ORDER,    /* the value is read before it is computed */
    BISECT_SCHEDULE, /* with probes the output is right */
} BisectKind;

typedef struct BisectVerdict {
    BisectKind kind;
    NodeId node;                 /* the op */
    uint32_t kernel;             /* the kernel that computes it */
    uint32_t n_values, n_trials; /* examined values, runs */
    const char *text;            /* the whole report: one or more lines, each with its newline */
} BisectVerdict;

BisectVerdict bisect_find(const Bisect *bisect);

#endif
