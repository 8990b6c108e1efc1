/* Judging a program's results on the host, without a device: node by node against the reference
 * interpreter, and one program's outputs against another's. */
#ifndef FUSEC_VERIFY_VERIFY_H
#define FUSEC_VERIFY_VERIFY_H

#include "interp/interp.h"
#include "plan/plan.h"

typedef struct VerifyCounts {
    uint32_t n_nodes;   /* nodes compared with the reference */
    uint32_t n_skipped; /* nodes too large for it */
    int64_t n_elems;
    int64_t n_any; /* for fast programs: elements with no known bound */
} VerifyCounts;

/* Compares each node's value with the reference, which is applied to the program's own values of
 * its arguments, so that errors do not accumulate. `plan` is the program's. `bytes[id]` are the
 * elements of node id; NULL: not stored. `report` gets one line per wrong node. Nothing stays on
 * `scratch`. */
bool verify_nodes(const Plan *plan, const int64_t *symbol_values, const uint8_t *const *bytes,
                  Arena *scratch, VerifyCounts *counts, Text *report);

/* Whether an element is right. `bound` is as from interp_node. */
bool verify_within(Dtype dtype, double expected, double actual, double bound);
/* verify_within for element `i` of two tensors, exactly for integers. */
bool verify_element(const Tensor *expected, const Tensor *actual, int64_t i, double bound);

/* The index of the first element in which two tensors differ in any bit, apart from the payload of
 * NaNs; -1: there is none. */
int64_t verify_bits(Dtype dtype, const uint8_t *a, const uint8_t *b, size_t n_bytes);

/* Describes how one element of two tensors of this type differs: `element 7 of f32[3, 5] at [1, 2]
 * is 1.5, not 1.25 (2097152 ULP)`. type->data is not read. */
void verify_describe(const Tensor *type, int64_t element, double actual, double expected,
                     Text *out);
/* The first kernel that stores the node's value or slices of it; NULL: none. */
const Kernel *verify_kernel_of(const Plan *plan, NodeId node);
/* Prints a node: `sub` that makes `d`, line 5 */
void verify_name_node(const Graph *graph, NodeId id, Text *out);

#endif
