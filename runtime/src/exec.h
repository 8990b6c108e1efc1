/* An exec: what is bound, what follows from it, and the workspace. */
#ifndef FRT_EXEC_H
#define FRT_EXEC_H

#include "plan.h"

typedef struct Binding {
    bool is_bound;
    frt_tensor tensor;
} Binding;

struct frt_exec {
    frt_program *program;
    Plan plan;
    Binding *bindings; /* per tensor of the graph; inputs and outputs are used */
    Region *regions;   /* per tensor of the graph, filled by preparation */
    DimState set;      /* by frt_set_dim */
    DimState dims;     /* resolved */
    void *workspace;
    size_t n_workspace;
    bool is_workspace_own;
    bool is_prepared;
    uint32_t generation; /* of the program's params when it was prepared */
};

/* Resolve dims from params, set dims, bound inputs and bound outputs, in this order. */
frt_status exec_resolve_dims(frt_exec *exec, frt_error *err);

/* Everything frt_prepare does, between enter and leave. */
frt_status exec_prepare(frt_exec *exec, frt_error *err);

/* exec_prepare unless nothing changed since the last time. */
frt_status exec_prepare_if_needed(frt_exec *exec, frt_error *err);

#endif
