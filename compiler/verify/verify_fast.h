/* Judging fast programs, whose fused and unfused results differ: what a graph's values are, and how
 * far those of a program made of it with --numerics=fast may be off. */
#ifndef FUSEC_VERIFY_VERIFY_FAST_H
#define FUSEC_VERIFY_VERIFY_FAST_H

#include "verify/verify.h"

typedef struct FastReference {
    const Plan *plan;
    Tensor *values;  /* per node */
    double **bounds; /* the same; NULL for those that are bound */
} FastReference;

/* From the elements of what is bound, `bytes` per node. Rewrites of `plan` widen the bounds. False,
 * and a reason in `*error`: it is too large for the interpreter, or nothing to judge by is there.
 */
bool verify_fast_reference(const Plan *plan, const int64_t *symbol_values,
                           const uint8_t *const *bytes, Arena *arena, FastReference *reference,
                           const char **error);

/* Whether a program's elements of the node are within its bound. What is wrong goes to `report`, a
 * line. */
bool verify_fast_value(const FastReference *reference, NodeId id, const uint8_t *bytes,
                       Arena *arena, VerifyCounts *counts, Text *report);

#endif
