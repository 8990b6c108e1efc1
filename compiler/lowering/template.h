/* The list of templates and their traits. The code is in the table of codegen/template.c, which
 * expands lowering/templates.def too: a template without an emit function does not link. */
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
    SCHED_CPU_GEMM,
    SCHED_CPU_TAPS
} SchedParams;

typedef struct TemplateInfo {
    const char *name;
    KernelForm form;
    DeviceClass device;
    GemmEngine engine;
    SchedParams params;
    /* Arrays in shared memory come from a pool that all bodies of a function share. Otherwise the
     * template declares an array of its own. */
    bool pools_shared;
    /* The copy engine (TMA) brings tiles of both operands to shared memory. Producer warps copy
     * while consumer warps multiply, and a persistent block walks over tiles, over those of all
     * kernels of a parallel launch. */
    bool uses_copy_engine;
    /* A block or work unit computes a tile of outputs from operands that its threads or lanes
     * share. Otherwise each output is computed by itself. */
    bool tiles_outputs;
    /* Uncoalesced loads go through shared memory, which transposes them. */
    bool transposes_loads;
    /* CPU: values whose loads lie along another axis than the lanes are computed along it and
     * turned (template/cpu_map_tile.h). */
    bool turns_values;
    /* Vectors of lanes run across the ends of rows. */
    bool lanes_cross_rows;
    /* Each lane reduces a row of its own: lanes lie along the last parallel axis, not along the
     * reduced one. */
    bool lanes_are_rows;
    /* One mainloop multiplies several GEMMs of a launch with a common lhs. */
    bool joins_gemms;
    /* The blocks of a cluster share the sums of one tile. */
    bool cluster_splits_k;
    /* Any number of its blocks uses little of a processor. */
    bool is_small;
    /* It leaves out what is outside Kernel.band. */
    bool takes_bands;
} TemplateInfo;

const TemplateInfo *template_info(TemplateId id);

#endif
