/* Creating a program, its params and its init steps. */
#include "exec/program.h"

#include "host/error.h"
#include "host/api_export.h"
#include "host/mem.h"
#include "exec/plan.h"
#include "host/port.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A code of one piece is loaded at once: every run needs it. */
static frt_status make_kernels(frt_program *program, const frt_program_options *options,
                               frt_error *err) {
    frt_status status =
        kernels_create(&program->device, program->module, program->graph, &program->kernels, err);
    bool wants_all = options->load_all || pieces_are_one(program->module);
    return status || !wants_all ? status : kernels_need_all(program->kernels, err);
}

static frt_status make_tables(frt_program *program, frt_error *err) {
    uint32_t n = program->graph->n_tensors;
    program->kept = mem_alloc(n, sizeof *program->kept);
    program->is_set = mem_alloc(n, sizeof *program->is_set);
    program->extents = mem_alloc(n, sizeof *program->extents);
    if (!program->kept || !program->is_set || !program->extents) {
        return frt_fail_memory(err, n * sizeof *program->extents);
    }
    return device_alloc(&program->device, FRT_ALIGNMENT, &program->scratch, err);
}

static frt_status find_graph(frt_program *program, const char *name, frt_error *err) {
    const Manifest *m = program->m;
    if (!name && m->n_graphs != 1) {
        return frt_fail(err, FRT_E_UNKNOWN_NAME,
                        "the artifact has %u graphs, the first is %s: say which", m->n_graphs,
                        m->graphs[0].name);
    }
    for (uint32_t i = 0; i < m->n_graphs; i++) {
        if (!name || strcmp(m->graphs[i].name, name) == 0) {
            program->graph = &m->graphs[i];
            program->graph_index = (int32_t)i;
            return FRT_OK;
        }
    }
    return frt_fail(err, FRT_E_UNKNOWN_NAME, "the artifact has no graph %.200s, its first is %s",
                    name, m->graphs[0].name);
}

/* The graph's first param without values; NULL: each has its values. */
static const Tensor *param_without_values(const frt_program *program) {
    const Tensor *tensors = &program->m->tensors[program->graph->first_tensor];
    for (uint32_t i = 0; i < program->graph->n_tensors; i++) {
        if (tensors[i].role == FRT_PARAM && !program->is_set[i]) {
            return &tensors[i];
        }
    }
    return NULL;
}

static frt_status fill(frt_program *program, const frt_program_options *options, frt_error *err) {
    Device *device = &program->device;
    DeviceScope scope;
    frt_status status = device->ops->enter(device, &scope, err);
    if (status) {
        return status;
    }
    status = make_tables(program, err);
    if (!status) {
        status = make_kernels(program, options, err);
    }
    if (!status) {
        status = program_load_weights(program, options, err);
    }
    /* Params without values may still come by frt_program_set_param. */
    if (!status && !param_without_values(program)) {
        status = program_make_ready(program, err);
    }
    device->ops->leave(device, &scope);
    return status;
}

frt_status frt_program_create(frt_module *module, const char *graph,
                              const frt_program_options *options, frt_program **result,
                              frt_error *err) {
    if (!module || !result) {
        return frt_fail(err, FRT_E_INVALID_ARGUMENT, "no module or no place for the program");
    }
    frt_program_options full;
    frt_status status = options_read(options, &full, err);
    if (status) {
        return status;
    }
    frt_program *program = mem_alloc(1, sizeof *program);
    if (!program) {
        return frt_fail_memory(err, sizeof *program);
    }
    if (pthread_mutex_init(&program->lock, NULL) != 0) {
        mem_free(program);
        return frt_fail(err, FRT_E_THREADS, "cannot make the program's mutex");
    }
    atomic_init(&program->n_owners, 1);
    program->module = module_retain(module);
    program->m = &module->manifest;
    status = find_graph(program, graph, err);
    if (!status) {
        status = device_open(&program->device, module, &full, err);
    }
    if (!status) {
        status = fill(program, &full, err);
    }
    if (status) {
        frt_program_free(program);
        return status;
    }
    *result = program;
    return FRT_OK;
}

static void free_device_things(frt_program *program) {
    Device *device = &program->device;
    DeviceScope scope;
    bool is_inside = device->ops->enter(device, &scope, NULL) == FRT_OK;
    for (uint32_t i = 0; program->kept && i < program->graph->n_tensors; i++) {
        device_free(device, program->kept[i].data, (size_t)program->kept[i].n_bytes);
    }
    device_free(device, program->scratch, FRT_ALIGNMENT);
    kernels_free(program->kernels);
    if (is_inside) {
        device->ops->leave(device, &scope);
    }
    device_close(device);
}

frt_program *program_retain(frt_program *program) {
    atomic_fetch_add(&program->n_owners, 1);
    return program;
}

void frt_program_free(frt_program *program) {
    if (!program || atomic_fetch_sub(&program->n_owners, 1) != 1) {
        return;
    }
    if (program->device.ops) {
        free_device_things(program);
    }
    mem_free(program->kept);
    mem_free(program->is_set);
    mem_free(program->extents);
    pthread_mutex_destroy(&program->lock);
    frt_module_free(program->module);
    mem_free(program);
}

static DimValues program_dims(const frt_program *program) {
    return (DimValues){program->dims.values, program->dims.known};
}

/* Allocates the program's memory for a persistent temp, again when its size has changed. */
static frt_status allocate_persistent(frt_program *program, uint32_t index, frt_error *err) {
    const Tensor *tensor = &program->m->tensors[program->graph->first_tensor + index];
    Region *region = &program->kept[index];
    int64_t n_bytes;
    frt_status status =
        manifest_shape(program->m, tensor, program_dims(program), NULL, &n_bytes, err);
    if (status || (region->data && region->n_bytes == n_bytes)) {
        return status;
    }
    device_free(&program->device, region->data, (size_t)region->n_bytes);
    region->data = NULL;
    region->n_bytes = n_bytes;
    return device_alloc(&program->device, (size_t)n_bytes, &region->data, err);
}

frt_status program_place_part(const frt_program *program, uint32_t index, DimValues dims,
                              Region *regions, frt_error *err) {
    const Tensor *tensor = &program->m->tensors[program->graph->first_tensor + index];
    const Region *whole = &regions[tensor->whole - 1];
    Region *part = &regions[index];
    int64_t offset;
    int64_t end;
    Subject what = {"the offset of temp", tensor->name, NO_AXIS};
    frt_status status = manifest_shape(program->m, tensor, dims, NULL, &part->n_bytes, err);
    if (!status) {
        status = manifest_eval(program->m, tensor->offset, dims, what, &offset, err);
    }
    if (status) {
        return status;
    }
    const Tensor *of = &program->m->tensors[program->graph->first_tensor + tensor->whole - 1];
    if (of->is_persistent && !whole->data) { /* given back: no run reads it */
        part->n_bytes = 0;
    }
    if (part->n_bytes == 0) { /* the whole may have no bytes at all */
        part->data = program->scratch;
        return FRT_OK;
    }
    if (offset < 0 || offset % (int64_t)frt_dtype_bytes(tensor->dtype) != 0 ||
        !checked_add(offset, part->n_bytes, &end) || end > whole->n_bytes) {
        return frt_fail(err, FRT_E_WORKSPACE,
                        "temp %s of %" PRId64 " bytes lies at %" PRId64 " of a tensor of %" PRId64
                        " bytes, outside it or between elements",
                        tensor->name, part->n_bytes, offset, whole->n_bytes);
    }
    part->data = (char *)whole->data + offset;
    return FRT_OK;
}

/* Places the parts of params and persistent temps that init steps take, or forgets their places,
 * which are no memory of their own. */
static frt_status place_init_parts(frt_program *program, bool is_placed, frt_error *err) {
    const Manifest *m = program->m;
    const Tensor *tensors = &m->tensors[program->graph->first_tensor];
    frt_status status = FRT_OK;
    for (uint32_t i = 0; i < program->graph->n_steps; i++) {
        const Step *step = &m->steps[program->graph->first_step + i];
        for (uint32_t k = 0; !status && step->phase == FRT_PHASE_INIT && k < step->n_args; k++) {
            uint32_t arg = m->refs[step->first_arg + k];
            if (tensors[arg].whole && is_placed) {
                status =
                    program_place_part(program, arg, program_dims(program), program->kept, err);
            } else if (tensors[arg].whole) {
                program->kept[arg] = (Region){0};
            }
        }
    }
    return status;
}

static frt_status run_init_steps(frt_program *program, frt_error *err) {
    Plan plan = {0};
    Device *device = &program->device;
    int64_t begin = 0;
    frt_status status = plan_create(program, &plan, err);
    if (!status) {
        status = place_init_parts(program, true, err);
    }
    if (!status) {
        status =
            plan_prepare(program, &plan, FRT_PHASE_INIT, program->kept, program_dims(program), err);
    }
    begin = port_clock_ns();
    for (uint32_t i = 0; !status && i < program->graph->n_steps; i++) { /* none is repeated */
        status = plan_enqueue(program, &plan, i, STEP_OVERLAPS, NULL, err);
    }
    if (!status) {
        status = device->ops->sync_all(device, err);
    }
    if (!status) {
        program->init.ms = 1e-6 * (double)(port_clock_ns() - begin);
        program->init.n_runs++;
    }
    (void)place_init_parts(program, false, NULL);
    plan_free(&plan);
    return status;
}

static int32_t count_init_steps(const frt_program *program) {
    const Step *steps = &program->m->steps[program->graph->first_step];
    int32_t n = 0;
    for (uint32_t i = 0; i < program->graph->n_steps; i++) {
        n += steps[i].phase == FRT_PHASE_INIT;
    }
    return n;
}

static bool is_read_by_runs(const frt_program *program, uint32_t tensor) {
    const Manifest *m = program->m;
    const Tensor *tensors = &m->tensors[program->graph->first_tensor];
    for (uint32_t i = 0; i < program->graph->n_steps; i++) {
        const Step *step = &m->steps[program->graph->first_step + i];
        for (uint32_t k = 0; step->phase == FRT_PHASE_RUN && k < step->n_args; k++) {
            uint32_t arg = m->refs[step->first_arg + k];
            if (arg == tensor || tensors[arg].whole == tensor + 1) {
                return true;
            }
        }
    }
    return false;
}

/* Frees the temps that only init steps read and write, after these have run. */
static void settle_kept(frt_program *program) {
    const Tensor *tensors = &program->m->tensors[program->graph->first_tensor];
    program->init.kept_bytes = program->init.passing_bytes = 0;
    for (uint32_t i = 0; i < program->graph->n_tensors; i++) {
        Region *region = &program->kept[i];
        if (!tensors[i].is_persistent) {
            continue;
        }
        if (is_read_by_runs(program, i)) {
            program->init.kept_bytes += (size_t)region->n_bytes;
            continue;
        }
        program->init.passing_bytes += (size_t)region->n_bytes;
        device_free(&program->device, region->data, (size_t)region->n_bytes);
        *region = (Region){0};
    }
}

static frt_status make_ready(frt_program *program, frt_error *err) {
    const Tensor *tensors = &program->m->tensors[program->graph->first_tensor];
    const Tensor *missing = param_without_values(program);
    if (missing) {
        return frt_fail(err, FRT_E_WEIGHTS_MISSING,
                        "param %s has no values: give a weights file or set it", missing->name);
    }
    frt_status status = FRT_OK;
    for (uint32_t i = 0; !status && i < program->graph->n_tensors; i++) {
        if (tensors[i].is_persistent) {
            status = allocate_persistent(program, i, err);
        }
    }
    if (!status && count_init_steps(program) > 0) {
        status = run_init_steps(program, err);
    }
    if (!status) {
        settle_kept(program);
    }
    program->is_ready = !status;
    return status;
}

frt_status program_make_ready(frt_program *program, frt_error *err) {
    pthread_mutex_lock(&program->lock);
    frt_status status = program->is_ready ? FRT_OK : make_ready(program, err);
    pthread_mutex_unlock(&program->lock);
    return status;
}

frt_status frt_program_get_init(frt_program *program, frt_init_info *info) {
    if (!program || !info) {
        return FRT_E_INVALID_ARGUMENT;
    }
    pthread_mutex_lock(&program->lock);
    frt_init_info full = program->init;
    pthread_mutex_unlock(&program->lock);
    full.n_steps = count_init_steps(program);
    GIVE(info, full);
    return FRT_OK;
}

frt_status frt_program_get_load(const frt_program *program, frt_load_info *info) {
    if (!program || !info) {
        return FRT_E_INVALID_ARGUMENT;
    }
    frt_load_info full;
    kernels_describe_load(program->kernels, &full);
    GIVE(info, full);
    return FRT_OK;
}

const frt_module *frt_program_module(const frt_program *program) {
    return program ? program->module : NULL;
}

int32_t frt_program_graph(const frt_program *program) {
    return program ? program->graph_index : -1;
}

frt_status frt_program_get_device(const frt_program *program, frt_device_info *info) {
    if (!program || !info) {
        return FRT_E_INVALID_ARGUMENT;
    }
    GIVE(info, program->device.info);
    return FRT_OK;
}

const char *frt_device_name(const frt_program *program) {
    return program ? program->device.name : "";
}

int32_t frt_program_n_threads(const frt_program *program) {
    return program ? program->device.n_threads : 0;
}

const char *frt_program_level(const frt_program *program) {
    for (uint32_t i = 0; program && i < program->m->n_levels; i++) {
        if (program->device.levels >> i & 1) {
            return program->m->levels[i].name;
        }
    }
    return NULL;
}
