/* Making an exec, binding tensors and setting dims. */
#include "exec/exec.h"

#include "host/error.h"
#include "host/mem.h"

#include <inttypes.h>
#include <string.h>

frt_status frt_exec_create(frt_program *program, frt_exec **result, frt_error *err) {
    if (!program || !result) {
        return frt_fail(err, FRT_E_INVALID_ARGUMENT, "no program or no place for the exec");
    }
    frt_exec *exec = mem_alloc(1, sizeof *exec);
    if (!exec) {
        return frt_fail_memory(err, sizeof *exec);
    }
    uint32_t n = program->graph->n_tensors;
    exec->program = program_retain(program);
    exec->is_workspace_own = true;
    exec->bindings = mem_alloc(n, sizeof *exec->bindings);
    exec->regions = mem_alloc(n, sizeof *exec->regions);
    frt_status status = exec->bindings && exec->regions
                            ? plan_create(program, &exec->plan, err)
                            : frt_fail_memory(err, n * sizeof *exec->bindings);
    if (status) {
        frt_exec_free(exec);
        return status;
    }
    *result = exec;
    return FRT_OK;
}

/* Earlier runs may still use the workspace, so wait for the device before freeing it. */
static void free_own_workspace(frt_exec *exec) {
    Device *device = &exec->program->device;
    DeviceScope scope;
    if (!exec->is_workspace_own || !exec->workspace) {
        return;
    }
    bool is_inside = device->ops->enter(device, &scope, NULL) == FRT_OK;
    if (is_inside) {
        device->ops->sync_all(device, NULL);
    }
    device_free(device, exec->workspace, exec->n_workspace);
    if (is_inside) {
        device->ops->leave(device, &scope);
    }
    exec->workspace = NULL;
    exec->n_workspace = 0;
}

void frt_exec_free(frt_exec *exec) {
    if (!exec) {
        return;
    }
    free_own_workspace(exec);
    exec_free_graph(exec);
    plan_free(&exec->plan);
    mem_free(exec->bindings);
    mem_free(exec->regions);
    frt_program_free(exec->program);
    mem_free(exec);
}

/* Finds the input or output called `name`. */
static frt_status find_bindable(const frt_exec *exec, const char *name, int32_t *index,
                                frt_error *err) {
    const frt_program *program = exec->program;
    *index = graph_find_tensor(program->m, program->graph, name);
    const Tensor *tensors = &program->m->tensors[program->graph->first_tensor];
    if (*index < 0) {
        return frt_fail(err, FRT_E_UNKNOWN_NAME, "graph %s has no input or output %.200s",
                        program->graph->name, name);
    }
    if (tensors[*index].role != FRT_INPUT && tensors[*index].role != FRT_OUTPUT) {
        return frt_fail(err, FRT_E_UNKNOWN_NAME, "%s is a %s of graph %s, not an input or output",
                        name, role_name(tensors[*index].role), program->graph->name);
    }
    return FRT_OK;
}

frt_status frt_bind(frt_exec *exec, const char *name, const frt_tensor *tensor, frt_error *err) {
    if (!exec || !name || !tensor) {
        return frt_fail(err, FRT_E_INVALID_ARGUMENT, "no exec, no name or no tensor");
    }
    const frt_program *program = exec->program;
    int32_t index;
    frt_status status = find_bindable(exec, name, &index, err);
    if (status) {
        return status;
    }
    const Tensor *wanted = &program->m->tensors[program->graph->first_tensor + (uint32_t)index];
    int64_t n_bytes;
    status = given_check(program->m, wanted, tensor, &n_bytes, err);
    if (status) {
        return status;
    }
    size_t elem_bytes = frt_dtype_bytes(wanted->dtype);
    if ((uintptr_t)tensor->data % elem_bytes != 0) {
        return frt_fail(err, FRT_E_ALIGNMENT,
                        "%s %s is bound to an address that is no multiple of its %zu-byte elements",
                        role_name(wanted->role), name, elem_bytes);
    }
    exec->bindings[index] = (Binding){true, *tensor};
    exec->is_prepared = false;
    return FRT_OK;
}

frt_status frt_set_dim(frt_exec *exec, const char *name, int64_t value, frt_error *err) {
    if (!exec || !name) {
        return frt_fail(err, FRT_E_INVALID_ARGUMENT, "no exec or no name");
    }
    const Manifest *m = exec->program->m;
    for (uint32_t i = 0; i < m->n_given_dims; i++) {
        if (strcmp(m->dims[i].name, name) != 0) {
            continue;
        }
        frt_status status = manifest_check_dim(m, i, value, the_caller, err);
        if (!status) {
            exec->set.known[i] = true;
            exec->set.values[i] = value;
            exec->is_prepared = false;
        }
        return status;
    }
    return frt_fail(err, FRT_E_UNKNOWN_NAME, "the artifact has no dim %.200s", name);
}

static frt_status resolve_role(frt_exec *exec, frt_role role, FixDims *fix, frt_error *err) {
    const frt_program *program = exec->program;
    const Tensor *tensors = &program->m->tensors[program->graph->first_tensor];
    frt_status status = FRT_OK;
    for (uint32_t i = 0; !status && i < program->graph->n_tensors; i++) {
        if (tensors[i].role == role && exec->bindings[i].is_bound) {
            status = fix(program->m, &exec->dims, &tensors[i], exec->bindings[i].tensor.dims, err);
        }
    }
    return status;
}

/* The address of a bound tensor. While it is unbound: an address with the least alignment. That of
 * a temp counts as aligned, since the compiler aligns it. */
static void *address_of(const frt_exec *exec, uint32_t tensor) {
    const frt_program *program = exec->program;
    frt_role role = program->m->tensors[program->graph->first_tensor + tensor].role;
    if (role == FRT_TEMP) {
        return (void *)(uintptr_t)FRT_ALIGNMENT;
    }
    bool is_bindable = role == FRT_INPUT || role == FRT_OUTPUT;
    if (is_bindable && exec->bindings[tensor].is_bound) {
        return exec->bindings[tensor].tensor.data;
    }
    return (void *)(uintptr_t)1;
}

static void resolve_pitches(frt_exec *exec) {
    const Manifest *m = exec->program->m;
    const Graph *graph = exec->program->graph;
    for (uint32_t i = 0; i < graph->n_pitches; i++) {
        const Pitch *pitch = &m->pitches[graph->first_pitch + i];
        pitch_resolve(m, pitch, address_of(exec, (uint32_t)pitch->source), exec->dims.values,
                      exec->dims.known);
    }
}

/* Resolve dims from params, set dims, bound inputs and bound outputs, in this order. */
static frt_status exec_resolve_dims(frt_exec *exec, frt_error *err) {
    const frt_program *program = exec->program;
    frt_status status = FRT_OK;
    exec->is_prepared = false; /* a failure below leaves dims half resolved */
    exec->dims = program->dims;
    for (uint32_t i = 0; !status && i < program->m->n_dims; i++) {
        if (exec->set.known[i]) {
            status = dims_fix(program->m, &exec->dims, i, exec->set.values[i], NULL, 0, err);
        }
    }
    static FixDims *const ways[] = {dims_fix_by_shape, dims_solve_by_shape};
    for (size_t i = 0; !status && i < sizeof ways / sizeof *ways; i++) {
        status = resolve_role(exec, FRT_INPUT, ways[i], err);
        if (!status) {
            status = resolve_role(exec, FRT_OUTPUT, ways[i], err);
        }
    }
    if (!status) {
        resolve_pitches(exec);
    }
    return status;
}

frt_status frt_output_shape(frt_exec *exec, const char *name, int64_t dims[FRT_MAX_RANK],
                            int32_t *rank, frt_error *err) {
    if (!exec || !name || !dims || !rank) {
        return frt_fail(err, FRT_E_INVALID_ARGUMENT, "no exec, name or place for the shape");
    }
    const frt_program *program = exec->program;
    int32_t index = graph_find_tensor(program->m, program->graph, name);
    if (index < 0) {
        return frt_fail(err, FRT_E_UNKNOWN_NAME, "graph %s has no tensor %.200s",
                        program->graph->name, name);
    }
    const Tensor *tensor = &program->m->tensors[program->graph->first_tensor + (uint32_t)index];
    frt_status status = exec_resolve_dims(exec, err);
    if (!status) {
        status = manifest_shape(program->m, tensor,
                                (DimValues){exec->dims.values, exec->dims.known}, dims, NULL, err);
    }
    if (!status) {
        *rank = tensor->rank;
    }
    return status;
}

static frt_status workspace_bytes(frt_exec *exec, size_t *n_bytes, frt_error *err) {
    const frt_program *program = exec->program;
    int64_t n = 0;
    if (program->graph->has_workspace) {
        frt_status status = manifest_eval(program->m, program->graph->workspace,
                                          (DimValues){exec->dims.values, exec->dims.known},
                                          (Subject){"the workspace", NULL, NO_AXIS}, &n, err);
        if (status) {
            return status;
        }
    }
    if (n < 0) {
        return frt_fail(err, FRT_E_SHAPE, "the workspace would have %" PRId64 " bytes", n);
    }
    *n_bytes = (size_t)n;
    return FRT_OK;
}

frt_status frt_exec_workspace_bytes(frt_exec *exec, size_t *n_bytes, frt_error *err) {
    if (!exec || !n_bytes) {
        return frt_fail(err, FRT_E_INVALID_ARGUMENT, "no exec or no place for the size");
    }
    frt_status status = exec_resolve_dims(exec, err);
    return status ? status : workspace_bytes(exec, n_bytes, err);
}

frt_status frt_exec_set_workspace(frt_exec *exec, void *data, size_t n_bytes, frt_error *err) {
    if (!exec) {
        return frt_fail(err, FRT_E_INVALID_ARGUMENT, "no exec");
    }
    if (!data && n_bytes > 0) {
        return frt_fail(err, FRT_E_NULL, "a workspace of %zu bytes at NULL", n_bytes);
    }
    if ((uintptr_t)data % FRT_ALIGNMENT != 0) {
        return frt_fail(err, FRT_E_ALIGNMENT, "the workspace is not aligned to %d bytes",
                        FRT_ALIGNMENT);
    }
    free_own_workspace(exec);
    exec->is_workspace_own = data == NULL;
    exec->workspace = data;
    exec->n_workspace = n_bytes;
    exec->is_prepared = false;
    return FRT_OK;
}

/* Grows the workspace to at least `n_bytes`, with a quarter to spare if memory allows. Otherwise
 * dims that grow from run to run would make each run wait for the device and allocate. */
static frt_status grow_workspace(frt_exec *exec, size_t n_bytes, frt_error *err) {
    Device *device = &exec->program->device;
    size_t n_roomy = exec->n_workspace + exec->n_workspace / 4;
    size_t n = n_roomy > n_bytes ? n_roomy : n_bytes;
    free_own_workspace(exec);
    if (n > n_bytes && device_alloc(device, n, &exec->workspace, NULL) == FRT_OK) {
        exec->n_workspace = n;
        return FRT_OK;
    }
    frt_status status = device_alloc(device, n_bytes, &exec->workspace, err);
    if (!status) {
        exec->n_workspace = n_bytes;
    }
    return status;
}

/* Own workspaces never shrink. */
static frt_status size_workspace(frt_exec *exec, frt_error *err) {
    size_t n_bytes;
    frt_status status = workspace_bytes(exec, &n_bytes, err);
    if (status || n_bytes <= exec->n_workspace) {
        return status;
    }
    if (!exec->is_workspace_own) {
        return frt_fail(err, FRT_E_WORKSPACE, "the workspace has %zu bytes, but %zu are needed",
                        exec->n_workspace, n_bytes);
    }
    return grow_workspace(exec, n_bytes, err);
}

static frt_status place_temp(frt_exec *exec, const Tensor *tensor, Region *region, frt_error *err) {
    DimValues dims = {exec->dims.values, exec->dims.known};
    int64_t offset;
    int64_t end;
    Subject what = {"the offset of temp", tensor->name, NO_AXIS};
    frt_status status = manifest_shape(exec->program->m, tensor, dims, NULL, &region->n_bytes, err);
    if (!status) {
        status = manifest_eval(exec->program->m, tensor->offset, dims, what, &offset, err);
    }
    if (status) {
        return status;
    }
    if (offset < 0 || offset % (int64_t)frt_dtype_bytes(tensor->dtype) != 0 ||
        !checked_add(offset, region->n_bytes, &end) || (uint64_t)end > exec->n_workspace) {
        return frt_fail(err, FRT_E_WORKSPACE,
                        "temp %s of %" PRId64 " bytes lies at %" PRId64
                        " of a workspace of %zu bytes, outside it or between elements",
                        tensor->name, region->n_bytes, offset, exec->n_workspace);
    }
    char *base = exec->workspace;
    region->data = region->n_bytes           ? base + offset
                   : tensor->stands_for >= 0 ? exec->regions[tensor->stands_for].data
                                             : exec->program->scratch;
    return FRT_OK;
}

static frt_status place_tensor(frt_exec *exec, uint32_t index, frt_error *err) {
    const frt_program *program = exec->program;
    const Tensor *tensor = &program->m->tensors[program->graph->first_tensor + index];
    Region *region = &exec->regions[index];
    if (tensor->role == FRT_PARAM || tensor->is_persistent) {
        *region = program->kept[index];
        return tensor->is_persistent ? FRT_OK
                                     : shape_check(program->m, tensor, &exec->dims,
                                                   program->extents[index], NULL, err);
    }
    if (tensor->whole) {
        DimValues dims = {exec->dims.values, exec->dims.known};
        return program_place_part(program, index, dims, exec->regions, err);
    }
    if (tensor->role == FRT_TEMP) {
        return place_temp(exec, tensor, region, err);
    }
    const frt_tensor *bound = &exec->bindings[index].tensor; /* check_bound has checked that it is
                                                              * bound */
    frt_status status =
        shape_check(program->m, tensor, &exec->dims, bound->dims, &region->n_bytes, err);
    region->data = !status && region->n_bytes ? bound->data : program->scratch;
    return status;
}

static bool overlaps(const Region *a, const Region *b) {
    uintptr_t x = (uintptr_t)a->data;
    uintptr_t y = (uintptr_t)b->data;
    return a->n_bytes > 0 && b->n_bytes > 0 && x < y + (uintptr_t)b->n_bytes &&
           y < x + (uintptr_t)a->n_bytes;
}

/* Whether output `i` lies at the address of the input that it may replace, which is tensor `k` or
 * has it as a part. */
static bool is_in_place(const frt_exec *exec, const Tensor *tensors, uint32_t i, uint32_t k) {
    k = tensors[k].whole ? tensors[k].whole - 1 : k;
    return tensors[i].in_place == k + 1 && exec->regions[i].data == exec->regions[k].data &&
           exec->regions[i].n_bytes == exec->regions[k].n_bytes;
}

/* Kernels may read an input after they wrote an output, so inputs and outputs must not overlap, but
 * for pairs that the artifact declares. Outputs must not overlap params or the workspace either. */
static frt_status check_overlap(const frt_exec *exec, frt_error *err) {
    const frt_program *program = exec->program;
    const Tensor *tensors = &program->m->tensors[program->graph->first_tensor];
    for (uint32_t i = 0; i < program->graph->n_tensors; i++) {
        for (uint32_t k = 0; tensors[i].role == FRT_OUTPUT && k < program->graph->n_tensors; k++) {
            bool is_pair = (k < i || tensors[k].role != FRT_OUTPUT) && tensors[k].whole != i + 1;
            if (k != i && is_pair && overlaps(&exec->regions[i], &exec->regions[k]) &&
                !is_in_place(exec, tensors, i, k)) {
                return frt_fail(err, FRT_E_OVERLAP, "output %s shares memory with %s %s%s",
                                tensors[i].name, role_name(tensors[k].role), tensors[k].name,
                                tensors[i].in_place == k + 1 ? ", but has not its address" : "");
            }
        }
    }
    return FRT_OK;
}

static frt_status check_bound(const frt_exec *exec, frt_error *err) {
    const frt_program *program = exec->program;
    const Tensor *tensors = &program->m->tensors[program->graph->first_tensor];
    for (uint32_t i = 0; i < program->graph->n_tensors; i++) {
        bool is_bindable = tensors[i].role == FRT_INPUT || tensors[i].role == FRT_OUTPUT;
        if (is_bindable && !exec->bindings[i].is_bound) {
            return frt_fail(err, FRT_E_UNBOUND, "%s %s of graph %s is not bound",
                            role_name(tensors[i].role), tensors[i].name, program->graph->name);
        }
    }
    return FRT_OK;
}

frt_status exec_prepare(frt_exec *exec, frt_error *err) {
    frt_program *program = exec->program;
    uint32_t generation = atomic_load(&program->generation);
    exec->is_prepared = false;
    frt_status status = program_make_ready(program, err);
    if (!status) {
        status = check_bound(exec, err);
    }
    if (!status) {
        status = exec_resolve_dims(exec, err);
    }
    if (!status) {
        status = size_workspace(exec, err);
    }
    for (uint32_t i = 0; !status && i < program->graph->n_tensors; i++) {
        status = place_tensor(exec, i, err);
    }
    if (!status) {
        status = check_overlap(exec, err);
    }
    if (!status) {
        status = plan_prepare(program, &exec->plan, FRT_PHASE_RUN, exec->regions,
                              (DimValues){exec->dims.values, exec->dims.known}, err);
    }
    if (!status) {
        status = exec_record(exec, err);
    }
    exec->generation = generation;
    exec->is_prepared = !status;
    return status;
}

frt_status exec_prepare_if_needed(frt_exec *exec, frt_error *err) {
    bool is_current =
        exec->is_prepared && exec->generation == atomic_load(&exec->program->generation);
    return is_current ? FRT_OK : exec_prepare(exec, err);
}
