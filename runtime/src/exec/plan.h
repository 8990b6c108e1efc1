/* The steps of a graph made concrete: which variant, which grid, which addresses. All memory is
 * allocated when the plan is made; preparing allocates only to load code, enqueuing nothing. */
#ifndef FRT_PLAN_H
#define FRT_PLAN_H

#include "exec/program.h"

typedef struct PlanStep {
    bool is_idle;    /* nothing to launch or copy */
    int32_t variant; /* within the step; -1 before preparation and for copies */
    uint32_t kernel; /* of a launch: its variant's number in the graph */
    Launch launch;
    void *maps;      /* of the variant: FRT_MAP_BYTES each */
    MapSpec *specs;  /* what `maps` were encoded from; of rank 0 where there is none yet */
    void *to, *from; /* copy */
    size_t n_bytes;
} PlanStep;

typedef struct Plan {
    PlanStep *steps;  /* per step of the graph */
    void **pointers;  /* storage of all launches' args and params */
    int64_t *dims;    /* storage of all launches' dims */
    char *maps;       /* storage of all launches' tensor maps */
    uint32_t *needed; /* room for a kernel of each step */
    MapSpec *specs;   /* storage of all launches' */
} Plan;

frt_status plan_create(const frt_program *program, Plan *plan, frt_error *err);
void plan_free(Plan *plan);

/* Make the steps of one phase concrete, and load the kernels that they launch. `regions` holds each
 * tensor's address, never NULL. Between enter and leave. */
frt_status plan_prepare(frt_program *program, Plan *plan, frt_phase phase, const Region *regions,
                        DimValues dims, frt_error *err);

/* Enqueue step `i` of the graph, alone: to begin when what was enqueued before it has ended.
 * Between enter and leave. */
typedef enum StepOrder { STEP_OVERLAPS, STEP_ALONE } StepOrder;
frt_status plan_enqueue(frt_program *program, const Plan *plan, uint32_t i, StepOrder order,
                        void *stream, frt_error *err);

#endif
