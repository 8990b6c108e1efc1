/* Order of summation: the form of a kernel, and for GEMMs the engine, say in which order elements
 * are added, whatever tiles, threads and launches compute it. */
#ifndef FUSEC_PLAN_ORDER_H
#define FUSEC_PLAN_ORDER_H

#include "ir/dim.h"
#include "machine/target.h"

/* How reduced elements lie relative to the innermost axis of what is reduced. It fixes the order
 * of summation, with the extents. */
typedef enum {
    FORM_MAP,    /* nothing is reduced */
    FORM_ROW,    /* the innermost axis is reduced */
    FORM_COLUMN, /* it is not */
    FORM_GEMM    /* one matmul: parallel axes .., m, n, one reduced axis k; then stores over .., m,
                        n */
} KernelForm;

/* Order of summation, a function of form, device class and the number of elements alone. Element i
 * of a segment is added to chain i mod n_chains in ascending order, starting from the identity;
 * chains are joined by a balanced tree, lowest bit of the chain number first; when there are
 * several segments of segment_elems elements, they are reduced to partials, which are reduced in
 * turn by the same rule. A chain without elements holds the identity, which changes no bit. */
typedef struct ReduceOrder {
    uint32_t n_chains; /* a power of two */
    int64_t segment_elems;
} ReduceOrder;

ReduceOrder reduce_order(KernelForm form, DeviceClass device);

/* How a GEMM is computed. It fixes the order of summation: GEMM_FMA is one chain of
 * fused multiply-adds per element, ascending in k, on every device; GEMM_MMA is the tensor
 * core's, in ascending steps of its k (of f64 that is GEMM_FMA's chain); GEMM_NAIVE is
 * GEMM_FMA's chain without tiles, for a k of one and products too small for a tile; of
 * tensor cores' dtypes the same, the operands converted. GEMM_WGMMA is GEMM_MMA's order by
 * other instructions, so that variants of one kernel may differ in it. GEMM_GEMV is for one
 * row or column on a GPU: element k goes to chain k mod gemv_n_chains, every chain is fused
 * multiply-adds from +0, ascending in k, and all chains are joined by a balanced tree, lowest bit
 * of the chain number first. The choice rests on dtypes, the operands' own extents (not on how a
 * kernel's loops share them) and target alone. Of a matmul with segments (Attrs.segment_elems) each
 * has this order, and their accumulators are elements of a column (ReduceOrder). */
typedef enum { GEMM_FMA, GEMM_MMA, GEMM_NAIVE, GEMM_WGMMA, GEMM_GEMV } GemmEngine;
/* Of GEMM_GEMV, for an extent `k`: the power of two that holds what it can be, within a
 * bound. */
uint32_t gemv_n_chains(const DimTab *dims, DimId k);

#endif
