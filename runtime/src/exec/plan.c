/* Choosing variants and filling launches. */
#include "exec/plan.h"

#include "host/error.h"
#include "host/mem.h"

#include <inttypes.h>

/* The largest number of maps of a variant of the step. */
static uint32_t most_maps(const Manifest *m, const Step *step) {
    uint32_t most = 0;
    for (uint32_t i = 0; i < step->n_variants; i++) {
        uint32_t n = m->variants[step->first_variant + i].n_maps;
        most = n > most ? n : most;
    }
    return most;
}

/* Assigns storage to a launch: `pointer`, `dim`, `map` and `spec` move past it. */
static void place_launch(const Manifest *m, const Step *step, PlanStep *planned, void ***pointer,
                         int64_t **dim, char **map, MapSpec **spec) {
    Launch *launch = &planned->launch;
    uint32_t n_maps = most_maps(m, step);
    planned->variant = -1;
    planned->maps = *map;
    planned->specs = *spec;
    *spec += n_maps;
    *launch = (Launch){.label = step->label, .args = *pointer, .dims = *dim};
    *pointer += step->n_args;
    *dim += step->n_dims + step->n_numbers;
    launch->params = *pointer;
    for (uint32_t k = 0; k < step->n_args; k++) {
        *(*pointer)++ = &launch->args[k];
    }
    for (uint32_t k = 0; k < step->n_dims + step->n_numbers; k++) {
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
        n_pointers += 2 * (size_t)steps[i].n_args + steps[i].n_dims + steps[i].n_numbers + n;
        n_dims += (size_t)steps[i].n_dims + steps[i].n_numbers;
        n_maps += n;
    }
    plan->steps = mem_alloc(graph->n_steps, sizeof *plan->steps);
    plan->counts = mem_alloc(graph->n_repeats, sizeof *plan->counts);
    plan->pointers = mem_alloc(n_pointers, sizeof *plan->pointers);
    plan->dims = mem_alloc(n_dims, sizeof *plan->dims);
    plan->maps = mem_alloc(n_maps * FRT_MAP_BYTES + MAP_ALIGN_BYTES, 1);
    plan->needed = mem_alloc(graph->n_steps, sizeof *plan->needed);
    plan->specs = mem_alloc(n_maps, sizeof *plan->specs);
    if (!plan->steps || !plan->counts || !plan->pointers || !plan->dims || !plan->maps ||
        !plan->needed || !plan->specs) {
        plan_free(plan);
        return frt_fail_memory(err, n_pointers * sizeof *plan->pointers);
    }
    void **pointer = plan->pointers;
    int64_t *dim = plan->dims;
    MapSpec *spec = plan->specs;
    char *map = plan->maps + (MAP_ALIGN_BYTES - (uintptr_t)plan->maps % MAP_ALIGN_BYTES);
    for (uint32_t i = 0; i < graph->n_steps; i++) {
        place_launch(m, &steps[i], &plan->steps[i], &pointer, &dim, &map, &spec);
    }
    return FRT_OK;
}

void plan_free(Plan *plan) {
    mem_free(plan->steps);
    mem_free(plan->counts);
    mem_free(plan->pointers);
    mem_free(plan->dims);
    mem_free(plan->maps);
    mem_free(plan->needed);
    mem_free(plan->specs);
    *plan = (Plan){0};
}

/* Makes the tensor maps of a variant over the launch's arguments, up to the first that fails.
 * Returns the number of maps made. */
static uint32_t make_maps(const frt_program *program, const Step *step, const Variant *variant,
                          const Launch *launch, DimValues dims, MapSpec specs[FRT_MAX_MAPS]) {
    const Manifest *m = program->m;
    for (uint32_t k = 0; k < variant->n_maps; k++) {
        const Map *map = &m->maps[variant->first_map + k];
        uint32_t tensor = program->graph->first_tensor + m->refs[step->first_arg + map->arg];
        frt_dtype dtype = m->tensors[tensor].dtype;
        if (!program->device.has_maps ||
            !map_make(m, map, dtype, launch->args[map->arg], dims, &specs[k])) {
            return k;
        }
    }
    return variant->n_maps;
}

static frt_status fail_map(const frt_program *program, const Step *step, const Map *map,
                           frt_error *err) {
    if (!program->device.has_maps) {
        return frt_fail(err, FRT_E_DRIVER_OLD,
                        "kernel %s takes tensor maps, which the driver does not know", step->label);
    }
    return frt_fail(err, FRT_E_LAUNCH,
                    "kernel %s: no tensor map of argument %u can be made for these dims",
                    step->label, map->arg);
}

/* Selecting a variant of a launch. */
typedef struct Selection {
    const frt_program *program;
    const Step *step;
    const Launch *launch;
    DimValues dims;
    MapSpec *specs; /* FRT_MAX_MAPS of them: the maps of the variant tried last */
    uint32_t n_made;
} Selection;

static const Variant *variant_of(const Selection *c, uint32_t i) {
    return &c->program->m->variants[c->step->first_variant + i];
}

static bool variant_applies(const Selection *c, const Variant *variant) {
    return predicate_holds(c->program->m, variant->when, c->program->device.levels, c->launch->args,
                           c->dims);
}

static bool try_maps(Selection *c, uint32_t i) {
    c->n_made = make_maps(c->program, c->step, variant_of(c, i), c->launch, c->dims, c->specs);
    return c->n_made == variant_of(c, i)->n_maps;
}

/* Evaluates the measures of a price. False: one overflows. */
static bool measure(const Selection *c, const Price *price, int64_t measures[FRT_MAX_MEASURES]) {
    bool is_good = true;
    for (uint32_t i = 0; i < price->n_measures && is_good; i++) {
        is_good =
            expr_eval(c->program->m->tokens, price->measures[i], c->dims, &measures[i]) == EXPR_OK;
    }
    return is_good;
}

/* The predicted time of a variant. An overflow counts as the largest value. */
static int64_t price_of(const Selection *c, const Price *price, const int64_t *measures) {
    int64_t each = price->fixed;
    int64_t blocks = 0;
    bool is_good =
        expr_eval(c->program->m->tokens, price->blocks, c->dims, &blocks) == EXPR_OK && blocks >= 0;
    for (uint32_t i = 0; i < price->n_measures && is_good; i++) {
        int64_t more;
        is_good =
            checked_mul(measures[i], price->weights[i], &more) && checked_add(each, more, &each);
    }
    int64_t waves = blocks / price->per_wave + (blocks % price->per_wave > 0);
    is_good = is_good && checked_mul(waves, price->per_wave, &waves) &&
              checked_mul(waves, 100 - price->percent, &waves) &&
              checked_mul(blocks, price->percent, &blocks) && checked_add(blocks, waves, &blocks) &&
              checked_mul(each, blocks, &each);
    return is_good ? each : INT64_MAX;
}

/* Searches the group that begins at variant `*i` for the cheapest applicable variant; the first
 * wins a tie. True: `*i` is that variant. False: none applies, and `*i` is the last of the
 * group. */
static bool try_group(Selection *c, uint32_t *i) {
    enum { MAX = FRT_MAX_VARIANTS };
    uint32_t first = *i;
    uint32_t n = 0;
    int64_t prices[MAX];
    int64_t measures[FRT_MAX_MEASURES];
    bool applies[MAX];
    const Price *group = &variant_of(c, first)->price;
    bool is_good = measure(c, group, measures);
    for (; first + n < c->step->n_variants; n++) {
        const Variant *variant = variant_of(c, first + n);
        if (variant->price.group != group->group) {
            break;
        }
        applies[n] = variant_applies(c, variant);
        prices[n] = is_good && applies[n] ? price_of(c, &variant->price, measures) : INT64_MAX;
    }
    for (uint32_t tried = 0; tried < n; tried++) {
        uint32_t best = MAX;
        for (uint32_t k = 0; k < n; k++) {
            if (applies[k] && (best == MAX || prices[k] < prices[best])) {
                best = k;
            }
        }
        if (best == MAX) {
            break;
        }
        if (try_maps(c, first + best)) {
            *i = first + best;
            return true;
        }
        applies[best] = false;
    }
    *i = first + n - 1;
    return false;
}

/* The first variant whose predicate holds and whose maps can be made. A group with prices counts as
 * its cheapest such variant. The last variant has no predicate, so it fails only if a map cannot be
 * made. */
static frt_status select_variant(Selection *c, uint32_t *chosen, frt_error *err) {
    for (*chosen = 0; *chosen < c->step->n_variants; ++*chosen) {
        const Variant *variant = variant_of(c, *chosen);
        bool applies = variant->price.group > 0
                           ? try_group(c, chosen)
                           : variant_applies(c, variant) && try_maps(c, *chosen);
        if (applies) {
            return FRT_OK;
        }
    }
    const Variant *last = variant_of(c, c->step->n_variants - 1);
    return fail_map(c->program, c->step, &c->program->m->maps[last->first_map + c->n_made], err);
}

/* Encodes the maps that have changed. Encoding a map takes the driver a tenth of a microsecond,
 * half of all other work for a launch, and most tensors keep their address from run to run. */
static frt_status encode_maps(frt_program *program, const Variant *variant, PlanStep *planned,
                              const MapSpec *specs, frt_error *err) {
    Device *device = &program->device;
    for (uint32_t k = 0; k < variant->n_maps; k++) {
        if (map_is_same(&planned->specs[k], &specs[k])) {
            continue;
        }
        planned->specs[k] = (MapSpec){0}; /* a failure below must leave no stale spec */
        char *map = (char *)planned->maps + (size_t)k * FRT_MAP_BYTES;
        frt_status status = device->ops->encode_map(device, &specs[k], map, err);
        if (status) {
            return status;
        }
        planned->specs[k] = specs[k];
    }
    return FRT_OK;
}

static frt_status set_params(const frt_program *program, const Step *step, Launch *launch,
                             const Region *regions, DimValues dims, frt_error *err) {
    const Manifest *m = program->m;
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
    for (uint32_t k = 0; k < step->n_numbers; k++) {
        launch->dims[step->n_dims + k] = (int64_t)m->numbers[step->first_number + k];
    }
    return FRT_OK;
}

/* The largest grid of the variant. All blocks of a persistent grid must be resident at once, in
 * whole clusters. */
static int64_t most_blocks(const frt_program *program, const Variant *variant) {
    if (variant->cluster == 0) {
        return INT64_MAX;
    }
    int64_t n_blocks = (int64_t)program->device.info.n_processors * variant->resident;
    int64_t n_clusters = n_blocks / variant->cluster;
    return (n_clusters > 0 ? n_clusters : 1) * variant->cluster;
}

/* A number that does not fit says nothing, and neither does one below 1. */
static int64_t worth_of(const frt_program *program, const Variant *variant, DimValues dims) {
    int64_t worth;
    bool is_good = expr_eval(program->m->tokens, variant->shared, dims, &worth) == EXPR_OK;
    return is_good && worth > 0 ? worth : 1;
}

static frt_status size_launch(const frt_program *program, const Variant *variant, DimValues dims,
                              Launch *launch, frt_error *err) {
    const Manifest *m = program->m;
    bool has_shared = target_info(m->target)->has_launches;
    int64_t shared = 0;
    frt_status status =
        manifest_eval(m, variant->grid, dims, (Subject){"the grid of", launch->label, NO_AXIS},
                      &launch->grid, err);
    if (!status && has_shared) {
        status =
            manifest_eval(m, variant->shared, dims,
                          (Subject){"the shared memory of", launch->label, NO_AXIS}, &shared, err);
    }
    if (status) {
        return status;
    }
    int64_t most = most_blocks(program, variant);
    if (launch->grid > most) {
        launch->grid = most;
    }
    if (launch->grid < 0 || launch->grid > target_info(m->target)->most_grid || shared < 0 ||
        shared > INT32_MAX) {
        return frt_fail(err, FRT_E_LAUNCH,
                        "kernel %s would need a grid of %" PRId64 " and %" PRId64
                        " bytes of shared memory: too large for these dims",
                        launch->label, launch->grid, shared);
    }
    launch->block = variant->block;
    launch->shared = (int32_t)shared;
    launch->worth = has_shared ? 1 : worth_of(program, variant, dims);
    return FRT_OK;
}

static frt_status prepare_launch(frt_program *program, const Step *step, PlanStep *planned,
                                 const Region *regions, DimValues dims, frt_error *err) {
    const Manifest *m = program->m;
    Launch *launch = &planned->launch;
    MapSpec specs[FRT_MAX_MAPS];
    uint32_t chosen = 0;
    frt_status status = set_params(program, step, launch, regions, dims, err);
    if (!status) {
        status = select_variant(&(Selection){program, step, launch, dims, specs, 0}, &chosen, err);
    }
    if (status) {
        return status;
    }
    const Variant *variant = &m->variants[step->first_variant + chosen];
    status = size_launch(program, variant, dims, launch, err);
    if (!status) {
        status = encode_maps(program, variant, planned, specs, err);
    }
    if (status) {
        return status;
    }
    uint32_t first = m->steps[program->graph->first_step].first_variant;
    planned->kernel = step->first_variant - first + chosen;
    launch->overlaps = variant->waits && program->device.has_overlap;
    planned->variant = (int32_t)chosen;
    planned->is_idle = launch->grid == 0;
    return FRT_OK;
}

static frt_status prepare_copy(const frt_program *program, const Step *step, PlanStep *planned,
                               const Region *regions, DimValues dims, frt_error *err) {
    const Manifest *m = program->m;
    const Region *to = &regions[m->refs[step->first_arg]];
    const Region *from = &regions[m->refs[step->first_arg + 1]];
    int64_t n_bytes;
    frt_status status = manifest_eval(
        m, step->n_bytes, dims, (Subject){"the size of a copy", NULL, NO_AXIS}, &n_bytes, err);
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
    planned->is_idle = n_bytes == 0 || to->data == from->data; /* in place */
    return FRT_OK;
}

/* Loads the kernels of all launches together, because several kernels load at once. */
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

static frt_status count_iterations(const frt_program *program, Plan *plan, DimValues dims,
                                   frt_error *err) {
    const Manifest *m = program->m;
    for (uint32_t i = 0; i < program->graph->n_repeats; i++) {
        const Repeat *repeat = &m->repeats[program->graph->first_repeat + i];
        frt_status status = manifest_eval(m, repeat->count, dims,
                                          (Subject){"the iterations of a repeat", NULL, NO_AXIS},
                                          &plan->counts[i], err);
        if (status) {
            return status;
        }
    }
    return FRT_OK;
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
    frt_status status =
        phase == FRT_PHASE_RUN ? count_iterations(program, plan, dims, err) : FRT_OK;
    return status ? status : load_kernels(program, plan, err);
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

static frt_status enqueue_range(frt_program *program, const Plan *plan, uint32_t from, uint32_t to,
                                void *stream, frt_error *err) {
    frt_status status = FRT_OK;
    for (uint32_t i = from; !status && i < to; i++) {
        status = plan_enqueue(program, plan, i, STEP_OVERLAPS, stream, err);
    }
    return status;
}

/* A part of a graph: steps from `first` on, with repeats from `repeat` on. */
typedef struct Part {
    uint32_t first, end, repeat, end_repeat;
} Part;

/* Repeats are at most FRT_MAX_REPEATS_DEEP inside each other. */
static frt_status run_part(frt_program *program, const Plan *plan, Part part, void *stream,
                           frt_error *err) {
    const Repeat *repeats = program->m->repeats + program->graph->first_repeat;
    uint32_t next = part.first;
    for (uint32_t i = part.repeat; i < part.end_repeat; i = repeats[i].next) {
        const Repeat *repeat = &repeats[i];
        const Part even = {repeat->first, repeat->odd, i + 1, repeat->inner_odd};
        const Part odd = {repeat->odd, repeat->end, repeat->inner_odd, repeat->next};
        frt_status status = enqueue_range(program, plan, next, repeat->first, stream, err);
        for (int64_t k = 0; !status && k < plan->counts[i]; k++) {
            status = run_part(program, plan, k % 2 ? odd : even, stream, err);
        }
        if (status) {
            return status;
        }
        next = repeat->end;
    }
    return enqueue_range(program, plan, next, part.end, stream, err);
}

frt_status plan_run(frt_program *program, const Plan *plan, void *stream, frt_error *err) {
    const Graph *graph = program->graph;
    const Part whole = {0, graph->n_steps, 0, graph->n_repeats};
    return run_part(program, plan, whole, stream, err);
}
