/* What the schedules of all templates have in common. See scheduler.h. */
#include "schedule/scheduler.h"
#include "cost/pressure.h"
#include "machine/machine.h"
#include "machine/tuning.h"

#include <string.h>

enum { MOST_LANES = 8 };

uint32_t sched_widest_bytes(const Plan *plan, const Kernel *kernel) {
    uint32_t widest = 1;
    for (uint32_t i = 0; i < kernel->args.n; i++) {
        uint32_t bytes = dtype_bytes(plan->buffers.data[kernel->args.data[i]].dtype);
        if (bytes > widest) widest = bytes;
    }
    return widest;
}

bool sched_computes_in_f64(const Scheduler *s) {
    const ScalarTab *scalars = s->kernel->scalars;
    bool *live = kernel_live_scalars(s->arena, s->kernel);
    for (ScalarId id = 1; id <= scalar_count(scalars); id++)
        if (live[id] && dtype_is_double(scalar_get(scalars, id)->dtype)) return true;
    return false;
}

/* Whether a number of elements or an address may need 64 bits. Half the range is left for the
 * overshoot of the last step. */
static bool is_wide(const Scheduler *s) {
    const int64_t limit = INT64_C(1) << 30;
    DimId rows = kernel_n_rows(s->kernel);
    DimId visits = dim_mul(s->dims, rows, kernel_n_reduced(s->kernel));
    if (!visits || dim_hi(s->dims, visits) > limit) return true;
    for (uint32_t i = 0; i < s->kernel->args.n; i++) {
        const Buffer *buffer = &s->plan->buffers.data[s->kernel->args.data[i]];
        DimId elems = shape_n_elems(s->dims, &buffer->shape);
        if (!elems || dim_hi(s->dims, elems) > limit) return true;
    }
    return false;
}

DimId sched_lane_extent(const Scheduler *s) {
    return s->lane_axis == NO_AXIS ? dim_const(s->dims, 1)
                                   : index_axis_extent(s->indices, s->lane_axis);
}

/* Arguments that neighbouring lanes access contiguously, so that one wide access serves them. */
static uint64_t wide_arguments(const Scheduler *s, uint32_t lanes) {
    uint64_t args = 0;
    const ScalarTab *scalars = s->kernel->scalars;
    bool *live = kernel_live_scalars(s->arena, s->kernel);
    for (uint32_t i = 0; i < s->kernel->args.n; i++) {
        uint32_t buffer = s->kernel->args.data[i];
        bool is_wide_access = false;
        for (ScalarId id = 1; id <= scalar_count(scalars); id++) {
            const Scalar *load = scalar_get(scalars, id);
            if (!live[id] || load->kind != SCALAR_LOAD || load->buffer != buffer) continue;
            is_wide_access = is_wide_access ||
                             (index_lane_motion(s->indices, load->index, s->lane_axis, lanes) ==
                                  LANES_CONTIGUOUS &&
                              index_is_multiple(s->indices, load->index, s->lane_axis, lanes));
        }
        for (uint32_t k = 0; k <= s->kernel->stages.n; k++) {
            bool last = k == s->kernel->stages.n;
            const Store *stores =
                last ? s->kernel->row_stores.data : s->kernel->stages.data[k].stores.data;
            uint32_t n = last ? s->kernel->row_stores.n : s->kernel->stages.data[k].stores.n;
            for (uint32_t j = 0; j < n; j++)
                is_wide_access =
                    is_wide_access || (stores[j].buffer == buffer &&
                                       index_lane_motion(s->indices, stores[j].address,
                                                         s->lane_axis, lanes) == LANES_CONTIGUOUS);
        }
        if (is_wide_access) args |= (uint64_t)1 << i;
    }
    return args;
}

DimId sched_n_segments(const Scheduler *s) {
    return s->kernel->segment_axis == NO_AXIS
               ? dim_const(s->dims, 1)
               : index_axis_extent(s->indices, s->kernel->segment_axis);
}

Str sched_symbol(Arena *arena, const Plan *plan, const Kernel *kernel, uint32_t variant) {
    const char *graph = plan->graph->name;
    bool has_prefix = strncmp(kernel->name, graph, strlen(graph)) == 0;
    const char *prefix = has_prefix ? "" : graph, *joint = has_prefix ? "" : "_";
    return variant ? str_format(arena, "%s%s%s_v%u", prefix, joint, kernel->name, variant)
                   : str_format(arena, "%s%s%s", prefix, joint, kernel->name);
}

void sched_add(Scheduler *s, Variant variant) {
    uint32_t n = s->n_before + s->n_made;
    const Variant *before = s->n_made ? &s->made[s->n_made - 1] : NULL;
    bool are_compared = before && before->price.group && before->price.group == variant.price.group;
    if (before && !variant_has_conditions(s->plan, s->kernel, before) && !are_compared) return;
    variant.grid = choice_scale(s->dims, s->kernel->choice, s->kernel->version, variant.grid);
    variant.symbol = sched_symbol(s->arena, s->plan, s->kernel, n);
    if (n == MAX_VARIANTS) ice(s->arena, "kernel %s has too many variants", s->kernel->name);
    s->made[s->n_made++] = variant;
}

Scheduler scheduler_new(Arena *arena, const Plan *plan, Kernel *kernel, const Target *target) {
    Scheduler s = {.arena = arena,
                   .plan = plan,
                   .target = target,
                   .kernel = kernel,
                   .launch = {.n_gemms = 1},
                   .dims = plan->graph->dims,
                   .indices = scalartab_indices(kernel->scalars),
                   .lane_axis = NO_AXIS};
    if (form_info(kernel->form)->reduces_rows)
        s.lane_axis = kernel->first_reduced + kernel->n_reduced - 1;
    else if (kernel->n_parallel)
        s.lane_axis = kernel->n_parallel - 1;
    s.is_wide = is_wide(&s);
    return s;
}

void sched_add_gemm(Scheduler *s, const TemplateSchedule *template) {
    Variant variants[MAX_VARIANTS];
    bool pads_tiles = s->target->has->blocks;
    Candidates list = {.dims = s->dims,
                       .base.sched = {.lanes = 1, .unroll = 1, .threads = 1},
                       .variants = variants};
    list.base.sched.is_wide = pads_tiles ? gemm_is_wide(s->plan, s->kernel) : s->is_wide;
    template->list(s, &list);
    for (uint32_t i = 0; i < list.n; i++) sched_add(s, variants[i]);
}

/* GPU. */

Sched sched_gpu(const Scheduler *s, TemplateId template) {
    return (Sched){.template = template,
                   .lanes = 1,
                   .unroll = 1,
                   .is_wide = s->is_wide,
                   .pairs_bf16 = s->target->has_bf16};
}

uint32_t sched_most_lanes(const Scheduler *s) {
    uint32_t lanes = s->target->vector_bytes / sched_widest_bytes(s->plan, s->kernel);
    return lanes > MOST_LANES ? MOST_LANES : lanes;
}

uint32_t sched_vector_lanes(const Scheduler *s, Sched sched) {
    int64_t value;
    bool is_const = dim_is_const(s->dims, sched_lane_extent(s), &value);
    sched.lanes = sched_most_lanes(s);
    while (sched.lanes > 1 && is_const && value % sched.lanes) sched.lanes /= 2;
    sched.lanes = pressure_lanes(s->arena, s->kernel, sched);
    bool has_any = !(is_const && value == 0) && s->lane_axis != NO_AXIS;
    return has_any ? sched.lanes : 1;
}

bool sched_make_vectors(const Scheduler *s, Variant *variant) {
    DimId extent = sched_lane_extent(s);
    uint32_t lanes = variant->sched.lanes;
    if (lanes <= 1) return false;
    if (dim_multiple(s->dims, extent) % lanes)
        predicate_require_multiple(&variant->predicate, extent, lanes);
    predicate_assume(&variant->predicate, s->indices);
    uint64_t wide = wide_arguments(s, lanes);
    predicate_assume(NULL, s->indices);
    predicate_align(&variant->predicate, s->target->vector_bytes, wide);
    return wide != 0;
}

bool sched_set_access(const Scheduler *s, Access access, Variant *variant) {
    if (access != ACCESS_WIDE) return true;
    variant->sched.lanes = sched_vector_lanes(s, variant->sched);
    return sched_make_vectors(s, variant);
}

bool sched_has_registers(const Scheduler *s, const Sched *sched) {
    return pressure_least(s->arena, s->kernel, sched) <= MAX_THREAD_REGISTERS;
}

bool sched_finishes_split(const Scheduler *s) {
    const Kernel *kernel = s->kernel;
    return kernel->segment_axis == NO_AXIS && kernel->stages.n == 1 &&
           kernel->stages.data[0].stores.n == 0 &&
           dim_hi(s->dims, kernel_n_reduced(kernel)) >
               reduce_order(kernel->form, s->target->device).segment_elems;
}

void sched_unroll_finish(const Scheduler *s, Sched *sched) {
    sched->unroll = SCHED_FINISH_UNROLL;
    while (sched->unroll > 4 && !sched_has_registers(s, sched)) sched->unroll /= 2;
    sched->min_blocks =
        sched->threads < SCHED_FINISH_THREADS ? SCHED_FINISH_THREADS / sched->threads : 1;
}

uint32_t sched_n_loads(const Scheduler *s, uint32_t of_axes) {
    const ScalarTab *scalars = s->kernel->scalars;
    const bool *live = kernel_live_scalars(s->arena, s->kernel);
    uint32_t n = 0;
    for (ScalarId id = 1; id <= scalar_count(scalars); id++) {
        const Scalar *load = scalar_get(scalars, id);
        bool is_of = !of_axes || (load->axes & of_axes);
        n += live[id] && load->kind == SCALAR_LOAD && (load->axes >> s->lane_axis & 1) && is_of;
    }
    return n;
}

void sched_add_unrolled(Scheduler *s, Variant variant) {
    uint32_t n = sched_n_loads(s, 0), unroll = n == 1   ? 4 * SCHED_UNROLL
                                               : n == 2 ? 2 * SCHED_UNROLL
                                                        : 0;
    bool is_partial = s->kernel->segment_axis != NO_AXIS;
    if (!is_partial || predicate_dim(&variant.predicate, TERM_RANGE) ||
        variant.sched.unroll != SCHED_UNROLL || !unroll ||
        dim_lo(s->dims, variant.grid) > s->target->n_processors)
        return;
    variant.sched.unroll = unroll;
    if (dim_hi(s->dims, variant.grid) > s->target->n_processors)
        predicate_set_range(&variant.predicate, variant.grid, INT64_MIN, s->target->n_processors);
    sched_add(s, variant);
}

/* CPU. */

/* Whether vectors have as many lanes as f64 elements fit a register. A map with more work on
 * narrower elements has lanes for these, and computes a vector of f64 in halves. */
static bool has_f64_lanes(const Scheduler *s) {
    const ScalarTab *scalars = s->kernel->scalars;
    uint32_t wide = 0, narrow = 0;
    if (!sched_computes_in_f64(s)) return false;
    if (form_info(s->kernel->form)->reduces) return true;
    const bool *live = kernel_live_scalars(s->arena, s->kernel);
    for (ScalarId id = 1; id <= scalar_count(scalars); id++)
        if (live[id])
            *(dtype_is_double(scalar_get(scalars, id)->dtype) ? &wide : &narrow) +=
                scalar_own_cost(scalars, id);
    return wide >= narrow;
}

Sched sched_cpu(const Scheduler *s, TemplateId template) {
    Sched sched = {.template = template,
                   .lanes = s->target->vector_bytes / 4,
                   .unroll = 1,
                   .threads = 1,
                   .is_wide = s->is_wide};
    if (has_f64_lanes(s)) sched.lanes /= 2;
    if (s->lane_axis == NO_AXIS) sched.lanes = 1;
    return sched;
}

DimId sched_cpu_grid(const Scheduler *s, int64_t unit) {
    DimId rows = kernel_n_rows(s->kernel), segments = sched_n_segments(s);
    if (s->lane_axis == NO_AXIS) return dim_mul(s->dims, rows, segments);
    DimId extent = sched_lane_extent(s), blocks = dim_ceil_div(s->dims, extent, unit);
    DimId outer = dim_const(s->dims, 1);
    for (uint32_t k = 0; k < s->kernel->n_parallel; k++)
        if (k != s->lane_axis) outer = dim_mul(s->dims, outer, index_axis_extent(s->indices, k));
    return dim_mul(s->dims, segments, dim_mul(s->dims, outer, blocks));
}
