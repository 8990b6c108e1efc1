/* Judging what a program computed, on the host and without any device: node by node against the
 * reference interpreter, and two programs' outputs against each other. */
#ifndef FUSEC_VERIFY_VERIFY_H
#define FUSEC_VERIFY_VERIFY_H

#include "interp/interp.h"
#include "plan/plan.h"

typedef struct VerifyCounts {
    uint32_t n_nodes;   /* compared with the reference */
    uint32_t n_skipped; /* too large for it */
    int64_t n_elems;
    int64_t n_any; /* of fast programs: that nothing is known of */
} VerifyCounts;

/* Each node's value against the reference applied to the program's own values of its arguments, so
 * that no error adds up. `plan` is the program's. `bytes[id]` are the stored elements of node id,
 * NULL where it was not kept. What is wrong goes to `report`, a line per node. Nothing stays on
 * `scratch`. */
bool verify_nodes(const Plan *plan, const int64_t *symbol_values, const uint8_t *const *bytes,
                  Arena *scratch, VerifyCounts *counts, Text *report);

/* Whether an element is right; `bound` as interp_node gives it. */
bool verify_within(Dtype dtype, double expected, double actual, double bound);

/* Index of the first element in which two tensors differ in any bit, but for the payload of NaNs;
 * -1 when there is none. */
int64_t verify_bits(Dtype dtype, const uint8_t *a, const uint8_t *b, size_t n_bytes);

/* `element 7 of f32[3, 5] at [1, 2] is 1.5, not 1.25 (2097152 ULP)`: how one element of two tensors
 * of this type (its data is not looked at) differs. */
void verify_describe(const Tensor *type, int64_t element, double actual, double expected,
                     Text *out);
/* The first kernel that stores the node's value (or parts of it); NULL: none. */
const Kernel *verify_kernel_of(const Plan *plan, NodeId node);
/* `sub` that makes `d`, line 5 */
void verify_name_node(const Graph *graph, NodeId id, Text *out);

#endif
