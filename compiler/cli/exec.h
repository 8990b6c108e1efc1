/* One graph of an artifact on a device, with its tensors on the host and there: what run, bench and
 * verify share. Dims and data that are not given are chosen here, from the seed and the tensor's
 * name alone, so that two programs with equal inputs get equal data. */
#ifndef FUSEC_CLI_EXEC_H
#define FUSEC_CLI_EXEC_H

#include "cli/cli.h"
#include "cli/data.h"

#include <frt_manifest.h>

typedef struct ExecTensor {
    frt_tensor_info info;
    int32_t index; /* in the module's graph */
    int64_t dims[FRT_MAX_RANK];
    size_t n_bytes;
    uint8_t *host;
    void *device;  /* not for params */
    bool is_given; /* from a file */
} ExecTensor;

typedef struct Exec {
    Cli *cli;
    frt_module *module;
    frt_program *program;
    frt_exec *exec;
    frt_module_info info;
    frt_graph_info graph_info;
    int32_t graph;
    bool has_weights;    /* params come from the weights file */
    ExecTensor *tensors; /* inputs, params and outputs */
    uint32_t n_tensors;
    frt_dim_info dims[FRT_MAX_DIMS];
    int64_t dim_values[FRT_MAX_DIMS];
    bool dim_known[FRT_MAX_DIMS];
    bool dim_is_set[FRT_MAX_DIMS]; /* by --dim or chosen here, not by a tensor */
    uint32_t n_chosen;             /* dims that nothing fixes */
    /* verify's: outputs and workspace hold poison before each run that exec_fill prepares. */
    bool poisons;
    void *workspace;
    uint8_t *poison; /* n_workspace_bytes on the host */
    size_t n_workspace_bytes;
} Exec;

/* Reads the artifact and finds the graph `name` (NULL: the only one). Close after a failure too. */
fusec_status exec_open(Cli *cli, Exec *exec, const void *artifact, size_t n_bytes,
                       const char *name);
void exec_close(Exec *exec);

/* Reads the files of --input. Before exec_start. */
fusec_status exec_read_inputs(Exec *exec);
/* Makes the program (weights by --weights, else relative to the folder of cli->path), settles all
 * dims, fills and binds all tensors. Dims come from --dim, from params and inputs that files hold,
 * else they are the legal value nearest to `wanted_dim`, which is told on stderr if `tells`. */
fusec_status exec_start(Exec *exec, int64_t wanted_dim, bool tells);
/* Gives other contents to what no file gives, for the runs from here on. */
fusec_status exec_fill(Exec *exec, DataKind kind);
/* Runs once and brings all outputs to the host. */
fusec_status exec_run(Exec *exec);
Dtype exec_tensor_dtype(const ExecTensor *tensor);
ExecTensor *exec_find(Exec *exec, const char *name);
/* Says that there is no `what` of that name, and which there are. */
fusec_status exec_fail_no_tensor(Exec *exec, const char *what, const char *name, bool is_output);

/* Compiles source for running on `target`. The bytes live on the cli's arena. */
fusec_status exec_compile(Cli *cli, const char *text, size_t n_bytes, const Target *target,
                          bool no_fuse, const char **artifact, size_t *n_artifact);
/* Opens the artifact that the command line names; options that only a source has are refused. */
fusec_status exec_open_artifact(Cli *cli, Exec *exec, const char *bytes, size_t n_bytes);
/* Opens the source or artifact that the command line names, compiled for the device it asks for. */
fusec_status exec_open_path(Cli *cli, Exec *exec);
/* By --target, --device, or what is at hand. */
fusec_status exec_choose_target(const Cli *cli, const Target **target);

/* Notes the estimates for all kernels of a plan for a GPU. */
void registers_note(Cli *cli, const Driver *driver);
/* Of a kernel of the opened graph; 0 when it was not compiled here. */
uint32_t registers_estimated(const Exec *exec, const char *symbol);
/* What to say of a kernel that the driver could not keep in registers, or NULL. */
const char *registers_complaint(const Exec *exec, const char *symbol, const frt_kernel_info *made);
/* Says it on stderr, once for each kernel, of all that the opened graph runs. */
fusec_status registers_warn(Exec *exec);

#endif
