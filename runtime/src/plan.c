/* Choosing variants and filling launches. */
#include "plan.h"

#include "error.h"
#include "mem.h"

#include <inttypes.h>
#include <stdio.h>

/* The most maps that a variant of the step has. */
static uint32_t most_maps(const Manifest *m, const Step *step) {
    uint32_t most = 0;
    for (uint32_t i = 0; i < step->n_variants; i++) {
        uint32_t n = m->variants[step->first_variant + i].n_maps;
        most = n > most ? n : most;
    }
    return most;
}

/* A launch's storage: `pointer`, `dim` and `map` move past it. */
static void place_launch(const Manifest *m, const Step *step, PlanStep *planned, void ***pointer,
                         int64_t **dim, char **map) {
    Launch *launch = &planned->launch;
    uint32_t n_maps = most_maps(m, step);
    planned->variant = -1;
    planned->maps = *map;
    *launch = (Launch){.label = step->label, .args = *pointer, .dims = *dim};
    *pointer += step->n_args;
    *dim += step->n_dims;
    launch->params = *pointer;
    for (uint32_t k = 0; k < step->n_args; k++) {
        *(*pointer)++ = &launch->args[k];
    }
    for (uint32_t k = 0; k < step->n_dims; k++) {
        *(*pointer)++ = &launch->dims[k];
    }
    for (uint32_t k = 0; k < n_maps; k++) {
        *(*pointer)++ = *map;
        *map += FRT_MAP_BYTES;
    }
}

frt_status plan_create(const frt_program *program, Plan *plan, frt_error *err) {
    const Manifest *m = program->m;
    const Graph *graph = program->graph;
    const Step *steps = &m->steps[graph->first_step];
    size_t n_pointers = 0;
    size_t n_dims = 0;
    size_t n_maps = 0;
    for (uint32_t i = 0; i < graph->n_steps; i++) {
        uint32_t n = most_maps(m, &steps[i]);
        n_pointers += 2 * (size_t)steps[i].n_args + steps[i].n_dims + n;
        n_dims += steps[i].n_dims;
        n_maps += n;
    }
    plan->steps = mem_alloc(graph->n_steps, sizeof *plan->steps);
    plan->pointers = mem_alloc(n_pointers, sizeof *plan->pointers);
    plan->dims = mem_alloc(n_dims, sizeof *plan->dims);
    plan->maps = mem_alloc(n_maps * FRT_MAP_BYTES + MAP_ALIGN_BYTES, 1);
    plan->needed = mem_alloc(graph->n_steps, sizeof *plan->needed);
    if (!plan->steps || !plan->pointers || !plan->dims || !plan->maps || !plan->needed) {
        plan_free(plan);
        return frt_fail_memory(err, n_pointers * sizeof *plan->pointers);
    }
    void **pointer = plan->pointers;
    int64_t *dim = plan->dims;
    char *map = plan->maps + (MAP_ALIGN_BYTES - (uintptr_t)plan->maps % MAP_ALIGN_BYTES);
    for (uint32_t i = 0; i < graph->n_steps; i++) {
        place_launch(m, &steps[i], &plan->steps[i], &pointer, &dim, &map);
    }
    return FRT_OK;
}

void plan_free(Plan *plan) {
    mem_free(plan->steps);
    mem_free(plan->pointers);
    mem_free(plan->dims);
    mem_free(plan->maps);
    mem_free(plan->needed);
    *plan = (Plan){0};
}

/* The k-th map of a variant over the launch's argument; false when it cannot be made. */
static bool make_map(const frt_program *program, const Step *step, const Variant *variant,
                     uint32_t k, const Launch *launch, DimValues dims, MapSpec *spec) {
    const Manifest *m = program->m;
    const Map *map = &m->maps[variant->first_map + k];
    uint32_t tensor = program->graph->first_tensor + m->refs[step->first_arg + map->arg];
    return map_make(m, map, m->tensors[tensor].dtype, launch->args[map->arg], dims, spec);
}

static bool variant_applies(const frt_program *program, const Step *step, const Variant *variant,
                            const Launch *launch, DimValues dims) {
    const Manifest *m = program->m;
    MapSpec spec;
    if (!predicate_holds(m, variant->when, launch->args, dims)) {
        return false;
    }
    for (uint32_t k = 0; k < variant->n_maps; k++) {
        if (!program->device.has_maps ||
            !make_map(program, step, variant, k, launch, dims, &spec)) {
            return false;
        }
    }
    return true;
}

static frt_status encode_maps(frt_program *program, const Step *step, const Variant *variant,
                              const PlanStep *planned, DimValues dims, frt_error *err) {
    Device *device = &program->device;
    frt_status status = FRT_OK;
    if (variant->n_maps && !device->has_maps) {
        return frt_fail(err, FRT_E_DRIVER_OLD,
                        "kernel %s takes tensor maps, which the driver does not know", step->label);
    }
    for (uint32_t k = 0; !status && k < variant->n_maps; k++) {
        MapSpec spec;
        char *map = (char *)planned->maps + (size_t)k * FRT_MAP_BYTES;
        if (!make_map(program, step, variant, k, &planned->launch, dims, &spec)) {
            return frt_fail(err, FRT_E_LAUNCH,
                            "kernel %s: no tensor map of argument %u can be made for these dims",
                            step->label, program->m->maps[variant->first_map + k].arg);
        }
        status = device->ops->encode_map(device, &spec, map, err);
    }
    return status;
}

static frt_status prepare_launch(frt_program *program, const Step *step, PlanStep *planned,
                                 const Region *regions, DimValues dims, frt_error *err) {
    const Manifest *m = program->m;
    Launch *launch = &planned->launch;
    for (uint32_t k = 0; k < step->n_args; k++) {
        launch->args[k] = regions[m->refs[step->first_arg + k]].data;
    }
    for (uint32_t k = 0; k < step->n_dims; k++) {
        uint32_t dim = m->refs[step->first_dim + k];
        if (!dims.known[dim]) {
            return frt_fail(
                err, FRT_E_DIM_UNKNOWN,
                "kernel %s needs dim %s, which no bound tensor and no param fixes: set it",
                step->label, m->dims[dim].name);
        }
        launch->dims[k] = dims.values[dim];
    }
    uint32_t chosen = 0;
    const Variant *variants = &m->variants[step->first_variant];
    while (chosen + 1 < step->n_variants && /* the last one always applies */
           !variant_applies(program, step, &variants[chosen], launch, dims)) {
        chosen++;
    }
    const Variant *variant = &variants[chosen];
    char what[160];
    int64_t shared;
    snprintf(what, sizeof what, "the grid of %.100s", step->label);
    frt_status status = manifest_eval(m, variant->grid, dims, what, &launch->grid, err);
    if (!status) {
        snprintf(what, sizeof what, "the shared memory of %.100s", step->label);
        status = manifest_eval(m, variant->shared, dims, what, &shared, err);
    }
    if (status) {
        return status;
    }
    bool is_cuda = m->target == FRT_TARGET_KIND_CUDA;
    if (launch->grid < 0 || (is_cuda && launch->grid > INT32_MAX) || shared < 0 ||
        shared > INT32_MAX) {
        return frt_fail(err, FRT_E_LAUNCH,
                        "kernel %s would need a grid of %" PRId64 " and %" PRId64
                        " bytes of shared memory: too large for these dims",
                        step->label, launch->grid, shared);
    }
    uint32_t first = m->steps[program->graph->first_step].first_variant;
    planned->kernel = step->first_variant - first + chosen;
    launch->block = variant->block;
    launch->shared = (int32_t)shared;
    launch->overlaps = variant->waits && program->device.has_overlap;
    planned->variant = (int32_t)chosen;
    planned->is_idle = launch->grid == 0;
    return encode_maps(program, step, variant, planned, dims, err);
}

static frt_status prepare_copy(const frt_program *program, const Step *step, PlanStep *planned,
                               const Region *regions, DimValues dims, frt_error *err) {
    const Manifest *m = program->m;
    const Region *to = &regions[m->refs[step->first_arg]];
    const Region *from = &regions[m->refs[step->first_arg + 1]];
    int64_t n_bytes;
    frt_status status = manifest_eval(m, step->n_bytes, dims, "the size of a copy", &n_bytes, err);
    if (status) {
        return status;
    }
    if (n_bytes < 0 || n_bytes > to->n_bytes || n_bytes > from->n_bytes) {
        return frt_fail(err, FRT_E_SHAPE,
                        "a copy of %" PRId64 " bytes from %" PRId64 " bytes to %" PRId64
                        ": it does not fit these dims",
                        n_bytes, from->n_bytes, to->n_bytes);
    }
    planned->to = to->data;
    planned->from = from->data;
    planned->n_bytes = (size_t)n_bytes;
    planned->is_idle = n_bytes == 0;
    return FRT_OK;
}

/* Of all launches together, since several kernels load at once. */
static frt_status load_kernels(const frt_program *program, Plan *plan, frt_error *err) {
    const Step *steps = &program->m->steps[program->graph->first_step];
    uint32_t n = 0;
    for (uint32_t i = 0; i < program->graph->n_steps; i++) {
        if (steps[i].kind == FRT_STEP_LAUNCH && !plan->steps[i].is_idle) {
            plan->needed[n++] = plan->steps[i].kernel;
        }
    }
    frt_status status = kernels_need(program->kernels, plan->needed, n, err);
    for (uint32_t i = 0; !status && i < program->graph->n_steps; i++) {
        if (steps[i].kind == FRT_STEP_LAUNCH && !plan->steps[i].is_idle) {
            plan->steps[i].launch.kernel = kernels_get(program->kernels, plan->steps[i].kernel);
        }
    }
    return status;
}

frt_status plan_prepare(frt_program *program, Plan *plan, frt_phase phase, const Region *regions,
                        DimValues dims, frt_error *err) {
    const Graph *graph = program->graph;
    for (uint32_t i = 0; i < graph->n_steps; i++) {
        const Step *step = &program->m->steps[graph->first_step + i];
        frt_status status = FRT_OK;
        if (step->phase != phase) {
            plan->steps[i].is_idle = true;
        } else if (step->kind == FRT_STEP_LAUNCH) {
            status = prepare_launch(program, step, &plan->steps[i], regions, dims, err);
        } else {
            status = prepare_copy(program, step, &plan->steps[i], regions, dims, err);
        }
        if (status) {
            return status;
        }
    }
    return load_kernels(program, plan, err);
}

frt_status plan_enqueue(frt_program *program, const Plan *plan, uint32_t i, StepOrder order,
                        void *stream, frt_error *err) {
    const PlanStep *step = &plan->steps[i];
    Device *device = &program->device;
    if (step->is_idle) {
        return FRT_OK;
    }
    if (program->m->steps[program->graph->first_step + i].kind == FRT_STEP_COPY) {
        return device->ops->copy(device, step->to, step->from, step->n_bytes, stream, err);
    }
    Launch launch = step->launch;
    launch.overlaps = launch.overlaps && order == STEP_OVERLAPS;
    return device->ops->launch(device, &launch, stream, err);
}
