/* The steps of a graph with concrete variants, grids and addresses. All memory is allocated when
 * the plan is made. Preparing allocates only to load code, so enqueuing allocates nothing. */
#ifndef FRT_PLAN_H
#define FRT_PLAN_H

#include "exec/program.h"

typedef struct PlanStep {
    bool is_idle;    /* nothing to launch or copy */
    int32_t variant; /* within the step; -1 for copies and before preparation */
    uint32_t kernel; /* for a launch: the number of its variant in the graph */
    Launch launch;
    void *maps;      /* tensor maps of the variant, FRT_MAP_BYTES each */
    MapSpec *specs;  /* the specs that `maps` encode; rank 0: not encoded yet */
    void *to, *from; /* for a copy */
    size_t n_bytes;
} PlanStep;

typedef struct Plan {
    PlanStep *steps;  /* per step of the graph */
    void **pointers;  /* storage of all launches' args and params */
    int64_t *counts;  /* per repeat of the graph: its iterations */
    int64_t *dims;    /* storage of all launches' dims */
    char *maps;       /* storage of all launches' tensor maps */
    uint32_t *needed; /* capacity: one kernel per step */
    MapSpec *specs;   /* storage of all launches' map specs */
} Plan;

frt_status plan_create(const frt_program *program, Plan *plan, frt_error *err);
void plan_free(Plan *plan);

/* Makes the steps of one phase concrete, and loads their kernels. `regions` holds each tensor's
 * address, never NULL. Call it between enter and leave. */
frt_status plan_prepare(frt_program *program, Plan *plan, frt_phase phase, const Region *regions,
                        DimValues dims, frt_error *err);

/* Enqueues all steps, those of repeats as often as they say. Call it between enter and leave. */
frt_status plan_run(frt_program *program, const Plan *plan, void *stream, frt_error *err);

/* Enqueues step `i` of the graph. STEP_ALONE: it begins when all earlier work has ended. Call it
 * between enter and leave. */
typedef enum StepOrder { STEP_OVERLAPS, STEP_ALONE } StepOrder;
frt_status plan_enqueue(frt_program *program, const Plan *plan, uint32_t i, StepOrder order,
                        void *stream, frt_error *err);

#endif
