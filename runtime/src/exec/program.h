/* A program: device, code, params and the results of init steps. After creation only the params and
 * the set of loaded kernels change. `lock` guards the readiness of the params. */
#ifndef FRT_PROGRAM_H
#define FRT_PROGRAM_H

#include "code/kernels.h"
#include "exec/weights.h"

#include <pthread.h>

/* The memory of one tensor of the graph. */
typedef struct Region {
    void *data; /* NULL: not allocated */
    int64_t n_bytes;
} Region;

/* Values of all dims of the module during resolution. */
typedef struct DimState {
    int64_t values[FRT_MAX_DIMS];
    bool known[FRT_MAX_DIMS];
    const Tensor *tensor[FRT_MAX_DIMS]; /* the tensor that fixed the dim; NULL: the caller set it */
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
    Region *kept;     /* per tensor of the graph: memory of params and persistent temps, else
                       * empty */
    bool *is_set;     /* per tensor: whether it is a param with values */
    int64_t (*extents)[FRT_MAX_RANK]; /* per tensor of the graph: extents of a set param */
    DimState dims;                    /* dims fixed by set params */
    void *scratch; /* FRT_ALIGNMENT bytes: the address of tensors without elements */
    pthread_mutex_t lock;
    bool is_ready;               /* all params are set and init steps have run; guarded by `lock` */
    frt_init_info init;          /* guarded by `lock`; without struct_size and n_steps */
    _Atomic uint32_t generation; /* increases when a param changes, so that execs prepare again */
};

frt_program *program_retain(frt_program *program);

/* Checks that all params are set, and runs the init steps if needed. Call it between enter and
 * leave. */
frt_status program_make_ready(frt_program *program, frt_error *err);

/* Checks dtype, rank, constant extents and the pointer of `given` against `tensor`, and computes
 * its bytes. */
frt_status given_check(const Manifest *m, const Tensor *tensor, const frt_tensor *given,
                       int64_t *n_bytes, frt_error *err);

/* Checks that the extents `given` equal those that `dims` give the tensor. */
frt_status shape_check(const Manifest *m, const Tensor *tensor, const DimState *dims,
                       const int64_t *given, int64_t *n_bytes, frt_error *err);

/* Whether all dims in its extents have values. A param's extents may use dims that inputs fix; they
 * are known, and the shape is checked, when an exec is prepared. */
bool shape_is_known(const Manifest *m, const Tensor *tensor, const DimState *dims);

/* Fixes a dim, or checks that its value agrees with an earlier one. `tensor` NULL: the caller sets
 * it. */
frt_status dims_fix(const Manifest *m, DimState *dims, uint32_t dim, int64_t value,
                    const Tensor *tensor, int32_t axis, frt_error *err);

typedef frt_status FixDims(const Manifest *m, DimState *dims, const Tensor *tensor,
                           const int64_t *extents, frt_error *err);
/* Fixes the dims that are bare extents of a tensor with these actual extents. */
FixDims dims_fix_by_shape;
/* Fixes each dim that has no value yet, and on which alone an extent of the tensor depends, as in
 * `2*B+1`. Call it after dims_fix_by_shape of all tensors that are known. */
FixDims dims_solve_by_shape;

/* The source of a param's bytes: memory of the caller, or a tensor of a weights file. */
typedef struct ParamSource {
    const void *data;       /* used without `weights` */
    const Weights *weights; /* NULL: use `data` */
    const Weight *weight;
} ParamSource;

/* Replaces the param's bytes on the device and its extents. Frees the new memory on failure. Call
 * it between enter and leave. */
frt_status program_keep_param(frt_program *program, uint32_t index, ParamSource source,
                              const int64_t *extents, int64_t n_bytes, frt_error *err);

/* Places tensor `index` of the graph, which is a part of another, in that one's region. */
frt_status program_place_part(const frt_program *program, uint32_t index, DimValues dims,
                              Region *regions, frt_error *err);

/* "[2, 64]" */
void extents_print(const int64_t *extents, int32_t rank, char *text, size_t n_bytes);

/* Loads params from the weights file, if there is one. Call it between enter and leave. */
frt_status program_load_weights(frt_program *program, const frt_program_options *options,
                                frt_error *err);

#endif
