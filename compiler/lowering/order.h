/* The order of sums. The form of a kernel, and for GEMMs the engine, decide in which order elements
 * are added, whatever tiles, threads and launches compute them. */
#ifndef FUSEC_LOWERING_ORDER_H
#define FUSEC_LOWERING_ORDER_H

#include "ir/dim/dim.h"
#include "machine/target.h"

/* The position of the reduced axes relative to the innermost axis of the reduced tensor
 * (lowering/forms.def). Together with the extents it fixes the order of sums. */
typedef enum {
#define FORM(symbol, ...) FORM_##symbol,
#include "lowering/forms.def"
} KernelForm;

/* The order of a sum: form and device class choose it, whatever the number of elements. Element i
 * of a segment is added to chain i mod n_chains, in ascending order, starting from the identity. A
 * balanced tree joins the chains, lowest bit of the chain number first. If there are several
 * segments of segment_elems elements, each gives a partial result, and these are summed by the same
 * rule. A chain without elements holds the identity, which changes no bit. */
typedef struct ReduceOrder {
    uint32_t n_chains; /* a power of two */
    int64_t segment_elems;
} ReduceOrder;

ReduceOrder reduce_order(KernelForm form, DeviceClass device);

/* The order of a scan, on every target. Elements make runs of SCAN_RUN, these make groups of
 * SCAN_RUN runs, and so on up to level SCAN_LEVELS, a tile. A run, group or tile is accumulated in
 * ascending order from its own first element; the tiles in ascending order from the first. The
 * result at an element joins, from the outermost level in, what comes before the element: the tiles
 * before, the groups before in its tile, the runs before in its group, the elements of its run. */
enum { SCAN_RUN = 16, SCAN_LEVELS = 3, SCAN_TILE = SCAN_RUN * SCAN_RUN * SCAN_RUN };

/* The chains in which softmax and product (CLASS_ONLINE) sums the weights of a block of
 * ONLINE_BLOCK keys, on every target: weight k is added to chain k mod ONLINE_CHAINS, then chains i
 * and i + 16 are added, i and i + 8, and so on. */
enum { ONLINE_CHAINS = 32 };

typedef struct FormInfo {
    const char *name, *title;
    uint32_t n_chains;     /* of a sum; 0: the device class's row_chains (machine/devices.def) */
    int64_t segment_elems; /* as in ReduceOrder; equal on all devices, so that one plan serves
                            * all */
    bool reduces;          /* the kernel has reductions over its reduced axes */
    bool reduces_rows;     /* the innermost axis is reduced: lanes lie along it and are joined */
    bool reduces_columns;  /* the innermost axis is not reduced: each lane sums its own column */
    bool multiplies; /* one matmul: parallel axes .., m, n, reduced axis k, stores over .., m, n */
    bool each_point; /* each point has its own result of a reduction, in the same stage */
    bool sorts;      /* the results are the order of the points along the reduced axis */
    bool divides;    /* a result reduces the elements of one segment, a run of the reduced axis */
    bool weighs;     /* softmax and product: axes of a matmul; the lhs does not depend on n */
    bool one_pass;   /* it visits each point once; otherwise once per stage */
} FormInfo;
const FormInfo *form_info(KernelForm form);

/* The order in which a GEMM adds its products (lowering/engines.def). The engine depends on dtypes,
 * the operands' own extents (not on a kernel's loops) and the target alone. In a split-K matmul
 * (Attrs.segment_elems) each segment has the engine's order, and the segments' accumulators are
 * summed as the elements of a column (ReduceOrder). */
typedef enum {
#define ENGINE(symbol, ...) GEMM_##symbol,
#include "lowering/engines.def"
} GemmEngine;

/* Elements of k of 8-bit floats whose products the tensor cores add in fewer bits than f32 has. The
 * sums of so many products each are added in f32, ascending in k. */
enum { GEMM_F8_DEPTH = 128 };

typedef struct EngineInfo {
    const char *name;
    bool uses_tensor_cores;
    bool uses_warp_groups; /* a warpgroup multiplies operands in shared memory */
} EngineInfo;
const EngineInfo *engine_info(GemmEngine engine);

/* The chains of GEMM_GEMV for an extent `k`: the power of two that covers its range, within a
 * bound. */
uint32_t gemv_n_chains(const DimTab *dims, DimId k);

#endif
