/* One graph of an artifact on a device, with its tensors on host and device; for run, bench and
 * verify. Dims and data that are not given are chosen here, from the seed and the tensor's name
 * alone, so that two programs with equal inputs get equal data. */
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
    void *device;  /* NULL for params */
    bool is_given; /* read from a file */
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
    bool dim_is_set[FRT_MAX_DIMS]; /* set by --dim or chosen here, not by a tensor */
    uint32_t n_chosen;             /* dims that neither an option nor a tensor fixes */
    /* For verify: outputs and workspace are filled with poison before each run that exec_fill
     * prepares. */
    bool poisons;
    void *workspace;
    uint8_t *poison; /* n_workspace_bytes on the host */
    size_t n_workspace_bytes;
} Exec;

/* Reads the artifact and finds graph `name` (NULL: the only one). Call exec_close even after a
 * failure. */
fusec_status exec_open(Cli *cli, Exec *exec, const void *artifact, size_t n_bytes,
                       const char *name);
void exec_close(Exec *exec);

/* Reads the files of --input. Call it before exec_start. */
fusec_status exec_read_inputs(Exec *exec);
/* Creates the program, fixes all dims, and fills and binds all tensors. Weights come by --weights,
 * else relative to the folder of cli->path. Dims come from --dim and from params and inputs in
 * files. Any other dim gets the legal value nearest to `wanted_dim`; if `tells`, stderr says so. */
fusec_status exec_start(Exec *exec, int64_t wanted_dim, bool tells);
/* Refills all tensors that no file gives, for the next runs. */
fusec_status exec_fill(Exec *exec, DataKind kind);
/* Runs once and copies all outputs to the host. */
fusec_status exec_run(Exec *exec);
Dtype exec_tensor_dtype(const ExecTensor *tensor);
ExecTensor *exec_find(Exec *exec, const char *name);
/* Reports that no tensor has this name, and lists the names that exist. */
fusec_status exec_fail_no_tensor(Exec *exec, const char *what, const char *name, bool is_output);

/* Reports that a tensor or the workspace has no room in memory. */
fusec_status exec_fail_too_large(const Exec *exec, const char *what, size_t n_bytes);

/* Compiles the source for execution on `target`. The bytes are on the cli's arena. */
fusec_status exec_compile(Cli *cli, const char *text, size_t n_bytes, const Target *target,
                          bool no_fuse, const char **artifact, size_t *n_artifact);
/* Opens the artifact of the command line. Options that need a source are errors. */
fusec_status exec_open_artifact(Cli *cli, Exec *exec, const char *bytes, size_t n_bytes);
/* Opens the source or artifact of the command line, compiled for the device that it asks for. */
fusec_status exec_open_path(Cli *cli, Exec *exec);
/* Chooses the target by --target, --device, or the device at hand. */
fusec_status exec_choose_target(const Cli *cli, const Target **target);

/* Notes the estimated registers of all kernels of a plan for a GPU. */
void registers_note(Cli *cli, const Driver *driver);
/* The estimate for a kernel of the opened graph; 0 when it was not compiled here. */
uint32_t registers_estimated(const Exec *exec, const char *symbol);
/* A sentence about a kernel whose registers the driver spilled; NULL if it spilled none. */
const char *registers_complaint(const Exec *exec, const char *symbol, const frt_kernel_info *made);
/* Prints this sentence on stderr, once for each kernel that the opened graph runs. */
fusec_status registers_warn(Exec *exec);

#endif
