/* Splitting long reductions. See split_reduce.h. */
#include "split/split_reduce.h"
#include "machine/tuning.h"

#include "split/split_k.h"

/* Segments are the same on every device, so that one plan serves all devices. */
static int64_t segment_elems(const Kernel *kernel) {
    return form_info(kernel->form)->segment_elems;
}

ReasonId split_need(KernelForm form, double rows, double length) {
    double segment = (double)form_info(form)->segment_elems;
    if (rows < SPLIT_FEW_ROWS && length > SPLIT_LONG_ROW) return REASON_FEW_ROWS;
    return length > segment * segment ? REASON_SEGMENTS : REASON_NONE;
}

static double most_of(const Kernel *kernel, uint32_t first, uint32_t n) {
    const DimTab *dims = indextab_dims(scalartab_indices(kernel->scalars));
    double most = 1;
    for (uint32_t axis = first; axis < first + n; axis++)
        most *= (double)dim_hi(dims, kernel_axis_extent(kernel, axis));
    return most;
}

static bool is_needed(const Kernel *kernel) {
    double rows = most_of(kernel, 0, kernel->n_parallel);
    return split_need(kernel->form, rows,
                      most_of(kernel, kernel->first_reduced, kernel->n_reduced)) != REASON_NONE;
}

/* The address of the partial of a row and segment. Segments are innermost for rows and outermost
 * for columns, so that both the writing and the reading kernel access contiguous memory. */
static IndexId partial_address(const Kernel *kernel, uint32_t segment_axis) {
    IndexTab *tab = scalartab_indices(kernel->scalars);
    IndexId row = index_row_major(tab, kernel->n_parallel), segment = index_axis(tab, segment_axis);
    if (form_info(kernel->form)->reduces_rows)
        return index_add(tab, index_scale(tab, row, index_axis_extent(tab, segment_axis)), segment);
    return index_add(tab, index_scale(tab, segment, kernel_n_rows(kernel)), row);
}

/* Makes `partial` store the accumulator of `slot` (or its index), and returns the scalar by which
 * the finishing kernel loads it. */
static ScalarId through_memory(Arena *arena, Plan *plan, Kernel *partial, uint32_t slot,
                               bool is_index) {
    const Reduce *reduce = &partial->reduces.data[slot];
    ScalarTab *scalars = partial->scalars;
    IndexTab *tab = scalartab_indices(scalars);
    Dtype dtype = is_index ? DT_I32 : reduce->acc;
    uint32_t axes = kernel_parallel_axes(partial);
    DimId rows =
        choice_scale(plan->graph->dims, partial->choice, partial->version, kernel_n_rows(partial));
    Shape shape = {.rank = 2, .dims = {rows, index_axis_extent(tab, partial->segment_axis)}};
    uint32_t buffer = plan_add_temp(arena, plan, reduce->node, dtype, shape);
    IndexId address = partial_address(partial, partial->segment_axis);
    ScalarId value = reduce->is_arg && !is_index ? scalar_extreme(scalars, dtype, slot, axes)
                                                 : scalar_stage(scalars, dtype, slot, axes);
    vec_push(arena, &partial->row_stores,
             (Store){.buffer = buffer, .address = address, .value = value, .node = reduce->node});
    return scalar_load(scalars, dtype, buffer, address, GUARD_NONE);
}

bool split_may(const Plan *plan, const Kernel *kernel) {
    bool reduces = !form_info(kernel->form)->one_pass;
    return reduces && kernel->stages.n == 1 && kernel->segment_axis == NO_AXIS &&
           dim_hi(plan->graph->dims, kernel_n_reduced(kernel)) > segment_elems(kernel);
}

bool split_kernel(Arena *arena, Plan *plan, const Kernel *kernel) {
    if (form_info(kernel->form)->multiplies) return split_k_kernel(arena, plan, kernel);
    if (!split_may(plan, kernel) || (kernel_stores_inner(kernel) && !is_needed(kernel)))
        return false;
    split_in_two(arena, plan, *kernel);
    return true;
}

void split_in_two(Arena *arena, Plan *plan, Kernel kernel) {
    IndexTab *tab = scalartab_indices(kernel.scalars);
    DimId n = dim_ceil_div(plan->graph->dims, kernel_n_reduced(&kernel), segment_elems(&kernel));
    memset(&kernel.args, 0, sizeof kernel.args); /* both note their own */
    Kernel partial = kernel, finish = kernel;
    partial.name = str_format(arena, "%s_part", kernel.name);
    partial.segment_axis = index_new_axis(tab, n);
    memset(&partial.row_stores, 0, sizeof partial.row_stores);
    memset(&partial.reduces, 0, sizeof partial.reduces);
    memset(&finish.reduces, 0, sizeof finish.reduces);
    for (uint32_t slot = 0; slot < kernel.reduces.n; slot++) {
        Reduce raw = kernel.reduces.data[slot], rest = raw;
        raw.divisor = DIM_NONE;
        raw.result = raw.is_arg ? DT_I32 : raw.acc;
        vec_push(arena, &partial.reduces, raw);
        rest.value = through_memory(arena, plan, &partial, slot, false);
        if (rest.is_arg) rest.arg_index = through_memory(arena, plan, &partial, slot, true);
        vec_push(arena, &finish.reduces, rest);
    }
    finish.first_reduced = partial.segment_axis;
    finish.n_reduced = 1;
    memset(&finish.stages, 0, sizeof finish.stages);
    vec_push(arena, &finish.stages, (Stage){.reduces = kernel.stages.data[0].reduces});
    vec_push(arena, &plan->kernels, partial);
    vec_push(arena, &plan->kernels, finish);
}
