/* The order of axes in which temporaries are stored.
 *
 * A GEMM reads rows along k: the channels of a tap, for a convolution. If they are not contiguous,
 * neither the copy engine nor a wide access can fetch them. A temporary that GEMMs read is
 * therefore stored with the axis innermost that all of them read along k. The other axes keep their
 * order. Where no reader goes over taps, the temporary must also come out in this order: its
 * producer's results, or the temporaries that it is computed from, have the axis innermost. On a
 * CPU, other kernels read too: what they compute in an order, they want to read in this order.
 *
 * Only addresses change. Inputs, params, outputs and prepared values keep the order of their
 * axes. */
#ifndef FUSEC_LAYOUT_ORDER_H
#define FUSEC_LAYOUT_ORDER_H

#include "ir/node_flags.h"
#include "plan/operand.h"

/* The flags of the values that a plan stores, as bits of `values`. */
typedef struct StoredValues {
    NodeFlags values;
    unsigned stored; /* in memory */
    unsigned output, prepared;
} StoredValues;

typedef struct OrderOptions {
    bool off;       /* all temporaries are row-major */
    bool has_cores; /* a CPU, which packs the operands of any GEMM; else only GEMMs on tensor cores
                     * count */
    const uint32_t *given; /* per node: the result for inputs and outputs; NULL: all row-major */
} OrderOptions;

/* Per node: one more than the axis that lies innermost if the value is stored as a temporary; 0:
 * row-major. */
uint32_t *order_axes(Arena *arena, const Graph *graph, StoredValues stored, OrderOptions options);

#endif
