/* A program: device, code, params and what init steps made. After creation everything but the
 * params and which kernels are on the device is immutable; `lock` guards the params' readiness. */
#ifndef FRT_PROGRAM_H
#define FRT_PROGRAM_H

#include "code/kernels.h"
#include "exec/weights.h"

#include <pthread.h>

/* Memory of one tensor of the graph. */
typedef struct Region {
    void *data; /* NULL: none yet */
    int64_t n_bytes;
} Region;

/* Values of all dims of the module while they are being resolved. */
typedef struct DimState {
    int64_t values[FRT_MAX_DIMS];
    bool known[FRT_MAX_DIMS];
    const Tensor *tensor[FRT_MAX_DIMS]; /* which fixed it; NULL: set by the caller */
    int32_t axis[FRT_MAX_DIMS];
} DimState;

struct frt_program {
    _Atomic uint32_t n_owners;
    frt_module *module;
    const Manifest *m;
    const Graph *graph;
    int32_t graph_index;
    Device device;
    Kernels *kernels; /* per variant of the graph, in order */
    Region *kept;     /* per tensor of the graph: params and persistent temps, else empty */
    bool *is_set;     /* per tensor: a param that has its values */
    int64_t (*extents)[FRT_MAX_RANK]; /* per tensor of the graph: of a param that is set */
    DimState dims;                    /* fixed by params that are set */
    void *scratch; /* FRT_ALIGNMENT bytes: the address of tensors without elements */
    pthread_mutex_t lock;
    bool is_ready;               /* all params set and init steps run; under `lock` */
    frt_init_info init;          /* under `lock`; without struct_size and n_steps */
    _Atomic uint32_t generation; /* grows when a param changes: execs prepare again */
};

frt_program *program_retain(frt_program *program);

/* Make sure that params are complete and init steps have run. Between enter and leave. */
frt_status program_make_ready(frt_program *program, frt_error *err);

/* Check dtype, rank, constant extents and the pointer of what is given for `tensor`, and count its
 * bytes. */
frt_status given_check(const Manifest *m, const Tensor *tensor, const frt_tensor *given,
                       int64_t *n_bytes, frt_error *err);

/* Check that a tensor with extents `given` has exactly those that `dims` give it. */
frt_status shape_check(const Manifest *m, const Tensor *tensor, const DimState *dims,
                       const int64_t *given, int64_t *n_bytes, frt_error *err);

/* Whether all dims in its extents have values. Of a param some may not: those that inputs fix,
 * which are known when an exec is prepared. Then its shape is checked there. */
bool shape_is_known(const Manifest *m, const Tensor *tensor, const DimState *dims);

/* Fix a dim or check that it agrees with what fixed it before. `tensor` NULL: the caller. */
frt_status dims_fix(const Manifest *m, DimState *dims, uint32_t dim, int64_t value,
                    const Tensor *tensor, int32_t axis, frt_error *err);

/* Fix what the bare extents of a tensor with these actual extents fix. */
frt_status dims_fix_by_shape(const Manifest *m, DimState *dims, const Tensor *tensor,
                             const int64_t *extents, frt_error *err);

/* Where a param's bytes come from: memory of the caller, or a tensor of a weights file. */
typedef struct ParamSource {
    const void *data;       /* without `weights` */
    const Weights *weights; /* NULL: from `data` */
    const Weight *weight;
} ParamSource;

/* Put the bytes on the device in place of what a param had, with its extents. Between enter and
 * leave; frees what it cannot keep. */
frt_status program_keep_param(frt_program *program, uint32_t index, ParamSource source,
                              const int64_t *extents, int64_t n_bytes, frt_error *err);

/* "[2, 64]" */
void extents_print(const int64_t *extents, int32_t rank, char *text, size_t n_bytes);

/* Load params from the weights file, if there is one. Between enter and leave. */
frt_status program_load_weights(frt_program *program, const frt_program_options *options,
                                frt_error *err);

#endif
