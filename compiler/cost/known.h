/* The cost of a kernel, which copies of the kernel share. A plan without fusion has thousands of
 * copies of a program (Kernel.program). */
#ifndef FUSEC_COST_KNOWN_H
#define FUSEC_COST_KNOWN_H

#include "cost/pricing.h"

enum { KNOWN_MOST_ARGS = 4 };

/* What the model knows of an argument when it predicts the kernel. */
typedef struct KnownArg {
    bool is_cached, has_hulls;
    double seen_bytes;
} KnownArg;

/* The cost depends on this and on the kernel. */
typedef struct KnownState {
    bool is_single; /* the kernel is alone in its launch, has no choice and few arguments */
    bool starts, begins, has_begun;
    double n_blocks;
    KnownArg args[KNOWN_MOST_ARGS];
} KnownState;

struct KnownKernel {
    const Kernel *kernel; /* NULL: none is known */
    const Variant *variant;
    Pressure pressure;
    const KernelCost *cost; /* NULL: it is not known */
    KnownState before;
    double seen_bytes[KNOWN_MOST_ARGS]; /* per argument, after the kernel */
    bool is_touched[KNOWN_MOST_ARGS];
};

/* pressure_of. */
Pressure known_pressure(Coster *c, const Kernel *kernel, const Variant *variant);
/* The state before the kernel is predicted. */
KnownState known_state(const Coster *c, const Pricing *p);
/* Predicts the kernel as the last copy of it, if that had the same state. */
bool known_price(Coster *c, const Pricing *p, const KnownState *state);
/* Notes the prediction of a kernel, whose state was this before it. */
void known_note(Coster *c, const Pricing *p, const KnownState *state);

#endif
