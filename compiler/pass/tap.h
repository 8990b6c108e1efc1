/* Taps: additional stores of values that a plan's kernels have in any case, each into an output of
 * its own, so that it can be seen where a fused program goes wrong. A tap changes no grouping, no
 * value and no buffer's place: the kernels compute what they did, and store more of it.
 *
 * Works on a fused plan before it is scheduled. */
#ifndef FUSEC_TAP_H
#define FUSEC_TAP_H

#include "ir/kernel.h"

typedef struct Tap {
    uint32_t kernel, trace;
    /* The loops it is stored over, outermost first: its elements are row-major over them. */
    uint32_t n_axes;
    uint32_t axes[MAX_AXES];
    bool is_row;    /* after the stages, once per row */
    uint32_t stage; /* else: in which */
    /* What is stored: the value, then the gathered indices that its place hangs on. */
    Vec(ScalarId) scalars;
} Tap;

/* Finds where `kernel` can store a trace of its own. False where it has no place for it: the
 * operands of a contraction, and of a split kernel what the other part has. */
bool tap_place(Arena *arena, const Plan *plan, uint32_t kernel, uint32_t trace, Tap *tap);

/* Adds the stores and an output for each scalar, called `name.0`, `name.1`, ... of one axis. */
void tap_store(Arena *arena, Plan *plan, const Tap *tap, const char *name);

#endif
