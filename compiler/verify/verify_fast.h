/* Judging fast programs, whose fused and unfused results differ: reference values of the whole
 * graph, and bounds on the error of a program made with --numerics=fast. */
#ifndef FUSEC_VERIFY_VERIFY_FAST_H
#define FUSEC_VERIFY_VERIFY_FAST_H

#include "verify/verify.h"

typedef struct FastReference {
    const Graph *graph;
    Tensor *values;  /* per node */
    double **bounds; /* per node; NULL for bound inputs and params */
} FastReference;

/* Computes the reference from the elements of inputs and params, `bytes` per node, with
 * the bounds of a fast program. False, with a reason in `*error`: the graph is too large for the
 * interpreter, or the bytes of an input are missing. */
bool verify_fast_reference(const Graph *graph, const int64_t *symbol_values,
                           const uint8_t *const *bytes, Arena *arena, FastReference *reference,
                           const char **error);

/* Whether the elements of the node that the program with this plan made are within its bounds.
 * `report` gets a line otherwise. */
bool verify_fast_value(const FastReference *reference, const Plan *plan, NodeId id,
                       const uint8_t *bytes, Arena *arena, VerifyCounts *counts, Text *report);

/* Whether the outputs of a rewritten graph and of the graph as it was written differ by no more
 * than the bounds of both. `report` gets a line otherwise. */
bool verify_rewritten(const FastReference *rewritten, const FastReference *written,
                      VerifyCounts *counts, Text *report);

#endif
