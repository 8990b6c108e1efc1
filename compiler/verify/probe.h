/* Probes: additional stores of values that a plan's kernels have in any case, each into an output
 * of its own, so that it can be seen where a fused program goes wrong. A probe changes no grouping
 * and no value: the kernels compute what they did, and store more of it. Nor does it change a
 * buffer's place, unless a kernel of several passes stored over what a probe has it read again.
 * What a GEMM computes of its operands has no place in it; a map before it stores that. What an
 * init kernel stores is prepared, and a map after all others copies it to the output. A kernel with
 * probes starts at all extents, to the same bits: those that stand for it at some
 * (split/dispatch_rows.h) are taken out.
 *
 * Works on a fused plan before it is scheduled. */
#ifndef FUSEC_VERIFY_PROBE_H
#define FUSEC_VERIFY_PROBE_H

#include "plan/plan.h"

typedef struct Probe {
    uint32_t kernel, trace;
    /* The loops it is stored over, outermost first: its elements are row-major over them. */
    uint32_t n_axes;
    uint32_t axes[MAX_AXES];
    bool is_row;    /* after the stages, once per row */
    bool is_apart;  /* by a map just before the kernel, from a copy of its program */
    uint32_t stage; /* else: in which */
    /* What is stored: the value, then the gathered indices that its place hangs on, but for idle
     * ones: any will do. */
    Vec(ScalarId) scalars;
} Probe;

/* Finds where `kernel` can store a trace of its own. False where it has no place for it: of a split
 * kernel what the other part has, and of any what is idle. */
bool probe_place(Arena *arena, const Plan *plan, uint32_t kernel, uint32_t trace, Probe *tap);

/* Whether nothing that the kernel stores hangs on a trace: composition has found that out. */
bool probe_is_idle(Arena *arena, const Kernel *kernel, uint32_t trace);

/* Adds the stores of all probes, and an output of one axis for each scalar: that of scalar s of
 * probe t has probe_name. */
void probe_store(Arena *arena, Plan *plan, const Probe *taps, uint32_t n_taps);
Str probe_name(Arena *arena, uint32_t tap, uint32_t scalar);
/* Makes an output of this name of what a buffer holds: of a temp by making it that output, so that
 * it leaves the workspace, of a prepared one by a copy. */
void probe_show(Arena *arena, Plan *plan, uint32_t buffer, Str name);

#endif
