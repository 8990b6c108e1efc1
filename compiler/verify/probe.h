/* Probes: extra stores of values that a plan's kernels compute anyway, each to an output of its
 * own, to show where a fused program goes wrong. A probe changes no grouping and no value; the
 * kernels only store more. It does not move a buffer, except where a kernel of several stages
 * stores over a buffer that the probe reads again. A GEMM cannot store values of its operands, so a
 * map before it computes and stores them. An init kernel's value becomes prepared, and a map after
 * all kernels copies it to the output. A kernel with probes runs at all extents, with the same
 * bits: the other versions of its choice (split/dispatch_rows.h) are removed.
 *
 * Probes apply to a fused plan that is not scheduled. */
#ifndef FUSEC_VERIFY_PROBE_H
#define FUSEC_VERIFY_PROBE_H

#include "plan/plan.h"

typedef struct Probe {
    uint32_t kernel, trace;
    /* The loops of the store, outermost first; its elements are row-major over them. */
    uint32_t n_axes;
    uint32_t axes[MAX_AXES];
    bool is_row;     /* stored after the stages, once per row */
    bool is_own_map; /* computed by a map before the kernel, from a copy of its program */
    uint32_t stage;  /* otherwise: the stage that stores it */
    /* The stored scalars: the value, then the gathered indices that its place depends on. Unused
     * indices are left out, because any value serves. */
    Vec(ScalarId) scalars;
} Probe;

/* Finds a place where `kernel` can store a trace. False: it has none, because the trace is unused
 * or belongs to another kernel of a split. */
bool probe_place(Arena *arena, const Plan *plan, uint32_t kernel, uint32_t trace, Probe *probe);

/* Whether no store of the kernel depends on the trace. */
bool probe_is_idle(Arena *arena, const Kernel *kernel, uint32_t trace);

/* Adds the stores of all probes, and an output with one axis for each scalar: probe_name(t, s) for
 * scalar s of probe t. */
void probe_store(Arena *arena, Plan *plan, const Probe *probes, uint32_t n_probes);
Str probe_name(Arena *arena, uint32_t probe, uint32_t scalar);
/* Makes the contents of a buffer an output of this name: a temp becomes the output itself and
 * leaves the workspace, a prepared buffer is copied. */
void probe_show(Arena *arena, Plan *plan, uint32_t buffer, Str name);

#endif
