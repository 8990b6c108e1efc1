/* The list of templates, and what is known of each without its code. The code is in the table of
 * codegen/template.c, which expands lowering/templates.def too: a template without an emit function
 * does not link. */
#ifndef FUSEC_LOWERING_TEMPLATE_H
#define FUSEC_LOWERING_TEMPLATE_H

#include "lowering/order.h"

typedef enum {
#define TEMPLATE(symbol, ...) TEMPLATE_##symbol,
#include "lowering/templates.def"
    N_TEMPLATES
} TemplateId;

/* The member of Sched's union that belongs to a template. */
typedef enum {
    SCHED_NONE,
    SCHED_MAP_TILE,
    SCHED_ROW,
    SCHED_COLUMN,
    SCHED_GEMM,
    SCHED_GEMV,
    SCHED_CPU_MAP,
    SCHED_CPU_COLUMN,
    SCHED_CPU_GEMM
} SchedParams;

typedef struct TemplateInfo {
    const char *name;
    KernelForm form;
    DeviceClass device;
    GemmEngine engine;
    SchedParams params;
    /* Arrays in shared memory come from a pool that the bodies of one function have in common; else
     * the template declares one array of its own. */
    bool pools_shared;
    /* The copy engine brings tiles of both operands to shared memory, by tensor maps. Warps that
     * only copy run beside those that multiply, and a block goes on from tile to tile, over those
     * of all kernels of a parallel launch. */
    bool uses_copy_engine;
    /* A block or a work unit makes a tile of outputs together, from operands that its threads or
     * lanes share; else each output is computed by itself. */
    bool tiles_outputs;
    /* Loads that lie across the lanes come through shared memory, where they are transposed. */
    bool transposes_loads;
    /* Lanes go on from the end of a row to the next row. */
    bool lanes_cross_rows;
    /* One mainloop multiplies for several GEMMs of a launch that have the lhs in common. */
    bool joins_products;
    /* Blocks of a cluster share the sums of one tile. */
    bool cluster_splits_k;
    /* However many its blocks are, they need little of a processor beside others. */
    bool is_small;
} TemplateInfo;

const TemplateInfo *template_info(TemplateId id);

#endif
