/* An exec: its bindings, the dims and addresses that follow from them, and the workspace. */
#ifndef FRT_EXEC_H
#define FRT_EXEC_H

#include "exec/plan.h"

typedef struct Binding {
    bool is_bound;
    frt_tensor tensor;
} Binding;

struct frt_exec {
    frt_program *program;
    Plan plan;
    Binding *bindings; /* per tensor of the graph; only inputs and outputs are used */
    Region *regions;   /* per tensor of the graph, filled by preparation */
    DimState set;      /* dims set by frt_set_dim */
    DimState dims;     /* all dims, resolved */
    void *workspace;
    size_t n_workspace;
    bool is_workspace_own;
    bool is_prepared;
    uint32_t generation; /* `generation` of the program's params at preparation */
    bool keeps_graph;
    bool is_recorded; /* own_graph holds the prepared run */
    DeviceGraph own_graph;
};

/* Enqueue the prepared steps. It launches the exec's own graph, if there is one and the stream is
 * not being captured. */
frt_status exec_launch(frt_exec *exec, void *stream, frt_error *err);

/* Make or update the graph of the prepared run, if the exec keeps a graph. */
frt_status exec_record(frt_exec *exec, frt_error *err);
void exec_free_graph(frt_exec *exec);

/* The work of frt_prepare between enter and leave. */
frt_status exec_prepare(frt_exec *exec, frt_error *err);

/* Calls exec_prepare if anything changed since the last time. */
frt_status exec_prepare_if_needed(frt_exec *exec, frt_error *err);

#endif
