/* Params that the caller gives, and the dims that all params together fix. */
#include "exec/program.h"
#include "host/error.h"
#include "host/mem.h"

#include <inttypes.h>
#include <string.h>

static const Tensor *graph_tensors(const frt_program *program) {
    return &program->m->tensors[program->graph->first_tensor];
}

/* Uploads in chunks, so that only one chunk of the file is in host memory. */
static frt_status upload_weight(Device *device, void *to, const Weights *weights,
                                const Weight *weight, frt_error *err) {
    enum { CHUNK_BYTES = 8 << 20 };
    size_t n_chunk = weight->n_bytes < CHUNK_BYTES ? weight->n_bytes : CHUNK_BYTES;
    frt_status status = FRT_OK;
    void *chunk = mem_alloc(n_chunk, 1);
    if (!chunk) {
        return frt_fail_memory(err, n_chunk);
    }
    for (size_t at = 0; !status && at < weight->n_bytes; at += n_chunk) {
        size_t n = weight->n_bytes - at < n_chunk ? weight->n_bytes - at : n_chunk;
        status = weights_read(weights, weight, at, chunk, n, err);
        if (!status) {
            status = device->ops->upload(device, (char *)to + at, chunk, n, err);
        }
    }
    mem_free(chunk);
    return status;
}

frt_status program_keep_param(frt_program *program, uint32_t index, ParamSource source,
                              const int64_t *extents, int64_t n_bytes, frt_error *err) {
    Device *device = &program->device;
    Region *region = &program->kept[index];
    Region fresh = *region;
    frt_status status = FRT_OK;
    bool moves = !region->data || region->n_bytes != n_bytes;
    if (moves) {
        fresh = (Region){.n_bytes = n_bytes};
        status = device_alloc(device, (size_t)n_bytes, &fresh.data, err);
    }
    if (!status && n_bytes > 0) {
        status = source.weights
                     ? upload_weight(device, fresh.data, source.weights, source.weight, err)
                     : device->ops->upload(device, fresh.data, source.data, (size_t)n_bytes, err);
    }
    if (!status && moves && region->data) {
        status = device->ops->sync_all(device, err); /* earlier runs may still read the old
                                                      * memory */
    }
    if (moves) {
        const Region *useless = status ? &fresh : region;
        device_free(device, useless->data, (size_t)useless->n_bytes);
    }
    if (!status) {
        *region = fresh;
        memcpy(program->extents[index], extents, sizeof program->extents[index]);
        program->is_set[index] = true;
    }
    return status;
}

/* Fixes dims by the extents of all set params but `except`. They are known to agree. */
static void fix_set_params(const frt_program *program, uint32_t except, FixDims *fix,
                           DimState *dims) {
    const Tensor *tensors = graph_tensors(program);
    for (uint32_t i = 0; i < program->graph->n_tensors; i++) {
        if (i != except && program->is_set[i]) {
            fix(program->m, dims, &tensors[i], program->extents[i], NULL);
        }
    }
}

/* The dims that params fix once param `index` has these extents. Dims fixed by its old extents do
 * not count, so a param of another shape may replace it if no other param disagrees. */
static frt_status resolve_dims(const frt_program *program, uint32_t index, const int64_t *extents,
                               DimState *dims, frt_error *err) {
    const Tensor *tensors = graph_tensors(program);
    *dims = (DimState){.known = {false}};
    fix_set_params(program, index, dims_fix_by_shape, dims);
    frt_status status = dims_fix_by_shape(program->m, dims, &tensors[index], extents, err);
    if (!status) {
        fix_set_params(program, index, dims_solve_by_shape, dims);
        status = dims_solve_by_shape(program->m, dims, &tensors[index], extents, err);
    }
    for (uint32_t i = 0; !status && i < program->graph->n_tensors; i++) {
        bool is_there = i == index || program->is_set[i];
        if (is_there && shape_is_known(program->m, &tensors[i], dims)) {
            const int64_t *given = i == index ? extents : program->extents[i];
            status = shape_check(program->m, &tensors[i], dims, given, NULL, err);
        }
    }
    return status;
}

static void note_change(frt_program *program) {
    program->is_ready = false;
    atomic_fetch_add(&program->generation, 1);
}

/* Call it under the lock, between enter and leave. */
static frt_status set_param(frt_program *program, uint32_t index, const frt_tensor *given,
                            frt_error *err) {
    const Tensor *tensor = &graph_tensors(program)[index];
    DimState dims;
    int64_t n_bytes;
    frt_status status = given_check(program->m, tensor, given, &n_bytes, err);
    if (!status) {
        status = resolve_dims(program, index, given->dims, &dims, err);
    }
    if (!status) {
        status = program_keep_param(program, index, (ParamSource){.data = given->data}, given->dims,
                                    n_bytes, err);
    }
    if (!status) {
        program->dims = dims;
        note_change(program);
    }
    return status;
}

/* The param's memory is kept for its next values. Call it under the lock. */
static frt_status forget_param(frt_program *program, uint32_t index) {
    program->is_set[index] = false;
    program->dims = (DimState){.known = {false}};
    fix_set_params(program, index, dims_fix_by_shape, &program->dims);
    fix_set_params(program, index, dims_solve_by_shape, &program->dims);
    note_change(program);
    return FRT_OK;
}

/* Sets a param without a shape: the other params' dims must give it. Call it under the lock. */
static frt_status set_param_bytes(frt_program *program, uint32_t index, const frt_tensor *given,
                                  size_t n_bytes, frt_error *err) {
    const Tensor *tensor = &graph_tensors(program)[index];
    DimValues dims = {program->dims.values, program->dims.known};
    frt_tensor whole = {.data = given->data, .dtype = tensor->dtype, .rank = tensor->rank};
    int64_t n_wanted;
    frt_status status = manifest_shape(program->m, tensor, dims, whole.dims, &n_wanted, err);
    if (status == FRT_E_DIM_UNKNOWN) {
        return frt_fail(err, status,
                        "param %s has an extent that no param given so far fixes: give its shape",
                        tensor->name);
    }
    if (status) {
        return status;
    }
    if ((uint64_t)n_wanted != n_bytes) {
        return frt_fail(err, FRT_E_WEIGHTS_MISMATCH,
                        "param %s has %" PRId64 " bytes, but %zu were given", tensor->name,
                        n_wanted, n_bytes);
    }
    return set_param(program, index, &whole, err);
}

/* Sets a param in one of three ways: `n_bytes` at given->data, a tensor with its shape, or removal
 * (NULL). Call it under the lock. */
static frt_status change_param(frt_program *program, uint32_t index, const frt_tensor *given,
                               const size_t *n_bytes, frt_error *err) {
    if (n_bytes) {
        return set_param_bytes(program, index, given, *n_bytes, err);
    }
    return given ? set_param(program, index, given, err) : forget_param(program, index);
}

static frt_status find_and_change(frt_program *program, const char *name, const frt_tensor *given,
                                  const size_t *n_bytes, frt_error *err) {
    if (!program || !name) {
        return frt_fail(err, FRT_E_INVALID_ARGUMENT, "no program or no name");
    }
    int32_t index = graph_find_tensor(program->m, program->graph, name);
    if (index < 0 || graph_tensors(program)[index].role != FRT_PARAM) {
        return frt_fail(err, FRT_E_UNKNOWN_NAME, "graph %s has no param %.200s",
                        program->graph->name, name);
    }
    Device *device = &program->device;
    DeviceScope scope;
    frt_status status = device->ops->enter(device, &scope, err);
    if (status) {
        return status;
    }
    pthread_mutex_lock(&program->lock);
    status = change_param(program, (uint32_t)index, given, n_bytes, err);
    pthread_mutex_unlock(&program->lock);
    device->ops->leave(device, &scope);
    return status;
}

frt_status frt_program_set_param(frt_program *program, const char *name, const void *data,
                                 size_t n_bytes, frt_error *err) {
    frt_tensor given = {.data = (void *)(uintptr_t)data};
    return find_and_change(program, name, &given, &n_bytes, err);
}

frt_status frt_program_set_param_tensor(frt_program *program, const char *name,
                                        const frt_tensor *tensor, frt_error *err) {
    return find_and_change(program, name, tensor, NULL, err);
}

frt_status frt_program_get_dim(const frt_program *program, int32_t dim, int64_t *value) {
    if (!program || !value || dim < 0 || (uint32_t)dim >= program->m->n_given_dims) {
        return FRT_E_INVALID_ARGUMENT;
    }
    if (!program->dims.known[dim]) {
        return FRT_E_DIM_UNKNOWN;
    }
    *value = program->dims.values[dim];
    return FRT_OK;
}
