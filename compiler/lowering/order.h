/* Order of summation: the form of a kernel, and for GEMMs the engine, say in which order elements
 * are added, whatever tiles, threads and launches compute it. */
#ifndef FUSEC_LOWERING_ORDER_H
#define FUSEC_LOWERING_ORDER_H

#include "ir/dim.h"
#include "machine/target.h"

/* How reduced elements lie relative to the innermost axis of the tensor that is reduced
 * (lowering/forms.def). With the extents it fixes the order of summation. */
typedef enum {
#define FORM(symbol, ...) FORM_##symbol,
#include "lowering/forms.def"
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

typedef struct FormInfo {
    const char *name, *title;
    uint32_t n_chains;     /* of a sum; 0: the device class's row_chains (machine/devices.def) */
    int64_t segment_elems; /* ReduceOrder; the same on every device, so that one plan serves all */
    bool reduces;          /* it has reductions over its reduced axes */
    bool reduces_rows;     /* the innermost axis is reduced: lanes go along it, and are joined */
    bool reduces_columns;  /* the innermost axis is not: each lane has the sums of its own column */
    bool multiplies; /* one matmul: parallel axes .., m, n, reduced axis k, stores over .., m, n */
    bool one_pass;   /* it visits each of its points once; else once for each stage */
} FormInfo;
const FormInfo *form_info(KernelForm form);

/* How a GEMM adds up its products (lowering/engines.def). The engine rests on dtypes, the operands'
 * own extents (not on how a kernel's loops share them) and the target alone. Of a matmul with
 * segments (Attrs.segment_elems) each segment has the engine's order, and the segments'
 * accumulators are elements of a column (ReduceOrder). */
typedef enum {
#define ENGINE(symbol, ...) GEMM_##symbol,
#include "lowering/engines.def"
} GemmEngine;

typedef struct EngineInfo {
    const char *name;
    bool uses_tensor_cores;
    bool uses_warp_groups; /* four warps multiply together, operands in shared memory */
} EngineInfo;
const EngineInfo *engine_info(GemmEngine engine);

/* Of GEMM_GEMV, for an extent `k`: the power of two that holds what it can be, within a
 * bound. */
uint32_t gemv_n_chains(const DimTab *dims, DimId k);

#endif
