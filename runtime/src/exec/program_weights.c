/* Loading params from a weights file: finding the file, and checking that its tensors fit. */
#include "host/error.h"
#include "host/mem.h"
#include "exec/program.h"
#include "exec/shards.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The path of the weights file; NULL in *path when the program has none. The caller frees it. */
static frt_status weights_path(const frt_program *program, const frt_program_options *options,
                               char **path, frt_error *err) {
    const char *name = options->weights_path ? options->weights_path : program->m->weights;
    *path = NULL;
    if (!name || options->no_weights) {
        return FRT_OK;
    }
    bool is_relative = !options->weights_path && name[0] != '/';
    const char *folder = "";
    if (is_relative) {
        folder = options->base_dir ? options->base_dir : program->module->folder;
        folder = folder ? folder : "";
    }
    size_t n_folder = strlen(folder);
    size_t n = n_folder + strlen(name) + 2;
    *path = mem_alloc(n, 1);
    if (!*path) {
        return frt_fail_memory(err, n);
    }
    bool needs_slash = n_folder > 0 && folder[n_folder - 1] != '/';
    snprintf(*path, n, "%s%s%s", folder, needs_slash ? "/" : "", name);
    return FRT_OK;
}

static bool has_params(const frt_program *program) {
    for (uint32_t i = 0; i < program->graph->n_tensors; i++) {
        if (program->m->tensors[program->graph->first_tensor + i].role == FRT_PARAM) {
            return true;
        }
    }
    return false;
}

static frt_status fail_shape(const Tensor *tensor, const Weight *weight, const char *wanted,
                             frt_error *err) {
    char found[160];
    extents_print(weight->dims, weight->rank, found, sizeof found);
    return frt_fail(err, FRT_E_WEIGHTS_MISMATCH, "param %s is %s, but `%.100s` in the file is %s%s",
                    tensor->name, wanted, weight->name, weight->dtype, found);
}

/* The file fixes all symbolic extents of params before any param is checked. */
static frt_status fix_dims(frt_program *program, const Tensor *tensor, const Weights *weights,
                           const Weight *weight, frt_error *err) {
    (void)weights;
    if (weight->rank != tensor->rank ||
        strcmp(weight->dtype, weights_dtype_word(tensor->dtype)) != 0) {
        char wanted[64];
        snprintf(wanted, sizeof wanted, "%s of rank %d", frt_dtype_name(tensor->dtype),
                 tensor->rank);
        return fail_shape(tensor, weight, wanted, err);
    }
    return dims_fix_by_shape(program->m, &program->dims, tensor, weight->dims, err);
}

/* Extents of other forms fix the dims that are left. */
static frt_status solve_dims(frt_program *program, const Tensor *tensor, const Weights *weights,
                             const Weight *weight, frt_error *err) {
    (void)weights;
    return dims_solve_by_shape(program->m, &program->dims, tensor, weight->dims, err);
}

static frt_status check_shape(const frt_program *program, const Tensor *tensor,
                              const Weight *weight, frt_error *err) {
    int64_t extents[FRT_MAX_RANK];
    DimValues dims = {program->dims.values, program->dims.known};
    if (!shape_is_known(program->m, tensor, &program->dims)) {
        return FRT_OK;
    }
    frt_status status = manifest_shape(program->m, tensor, dims, extents, NULL, err);
    if (status) {
        return status;
    }
    for (int32_t i = 0; i < tensor->rank; i++) {
        if (extents[i] != weight->dims[i]) {
            char wanted[160];
            int n = snprintf(wanted, sizeof wanted, "%s", frt_dtype_name(tensor->dtype));
            extents_print(extents, tensor->rank, wanted + n, sizeof wanted - (size_t)n);
            return fail_shape(tensor, weight, wanted, err);
        }
    }
    return FRT_OK;
}

static frt_status load_param(frt_program *program, const Tensor *tensor, const Weights *weights,
                             const Weight *weight, frt_error *err) {
    frt_status status = check_shape(program, tensor, weight, err);
    if (status) {
        return status;
    }
    const Tensor *tensors = &program->m->tensors[program->graph->first_tensor];
    ParamSource source = {.weights = weights, .weight = weight};
    return program_keep_param(program, (uint32_t)(tensor - tensors), source, weight->dims,
                              (int64_t)weight->n_bytes, err);
}

typedef frt_status (*ParamVisitor)(frt_program *program, const Tensor *tensor,
                                   const Weights *weights, const Weight *weight, frt_error *err);

static frt_status for_each_param(frt_program *program, const Shards *shards, const char *path,
                                 ParamVisitor visit, frt_error *err) {
    const Tensor *tensors = &program->m->tensors[program->graph->first_tensor];
    frt_status status = FRT_OK;
    for (uint32_t i = 0; !status && i < program->graph->n_tensors; i++) {
        const Tensor *tensor = &tensors[i];
        if (tensor->role != FRT_PARAM) {
            continue;
        }
        const Weights *weights = NULL;
        const Weight *weight = NULL;
        const char *name = tensor->key ? tensor->key : tensor->name;
        status = shards_find(shards, name, &weights, &weight, err);
        if (!status && !weight && tensor->key) {
            return frt_fail(err, FRT_E_WEIGHTS_MISSING,
                            "param %s wants `%.100s`, which is not in %.200s", tensor->name,
                            tensor->key, path);
        }
        /* A param without a key is not in the file; the caller sets it. */
        if (!status && weight) {
            status = visit(program, tensor, weights, weight, err);
        }
    }
    return status;
}

frt_status program_load_weights(frt_program *program, const frt_program_options *options,
                                frt_error *err) {
    char *path;
    Shards *shards = NULL;
    if (!has_params(program)) {
        return FRT_OK;
    }
    frt_status status = weights_path(program, options, &path, err);
    if (status || !path) {
        return status;
    }
    status = shards_open(path, &shards, err);
    if (status == FRT_E_WEIGHTS_MISSING && !options->weights_path) {
        frt_fail(err, status,
                 "there is no weights file %.300s, where the artifact has it: weights_path of the "
                 "program's options says where it is",
                 path);
    }
    if (!status) {
        status = for_each_param(program, shards, path, fix_dims, err);
    }
    if (!status) {
        status = for_each_param(program, shards, path, solve_dims, err);
    }
    if (!status) {
        status = for_each_param(program, shards, path, load_param, err);
    }
    shards_close(shards);
    mem_free(path);
    return status;
}
