/* CPU row reductions: one row, or one segment of a row, per unit. See template.h.
 *
 * The chains (accumulators) of the order of sums are side by side in an array. A step of any width
 * adds its elements to their chains, so the bits do not depend on the width. A short row of known
 * length is a few steps without a loop, each the first of its chains. Rows of short or medium
 * length run in groups (row_group.c). */
#include "codegen/cpu/row.h"

#include "plan/in_place.h"

static const CpuArray *chains_at(const Row *row, uint32_t level, uint32_t i) {
    return &row->chains[level * row->stage->reduces.n + i];
}

/* A point without the row's cached values. */
static Point bare_point(const Row *row, Val at, Val mask) {
    Lower *lower = row->lower;
    Point point = point_inside(&row->point);
    point.lanes = row->lanes;
    point.mask = mask;
    lower_split(lower, at, lower->kernel->first_reduced, lower->kernel->n_reduced, &point);
    return point;
}

/* Whether the current stage can read the cached value. */
static bool finds_kept(const Row *row, const CachedValue *keep) {
    return keep->stage < row->stage_index && row->live[keep->value];
}

static Point row_point(const Row *row, Val at, Val mask) {
    Lower *lower = row->lower;
    Point point = bare_point(row, at, mask);
    for (uint32_t i = 0; i < row->n_kept; i++) {
        const CachedValue *keep = row->kept[i].keep;
        if (!finds_kept(row, keep)) continue;
        Acc acc = cpu_array_load(lower, &row->kept[i].array, at, row->lanes);
        point.values[keep->value] = acc.value;
    }
    return point;
}

/* Loads tensors that a store of this step overwrites (plan/in_place.h). A cached value is stored
 * without its load, but a later store of the step may need the load. */
static void load_ahead(const Row *row, Point *point) {
    const Lower *lower = row->lower;
    const Kernel *kernel = lower->kernel;
    const bool *may_change = in_place_find(lower->k->arena, lower->plan, kernel);
    for (ScalarId id = 1; id <= scalar_count(kernel->scalars); id++) {
        const Scalar *s = scalar_get(kernel->scalars, id);
        if (row->live[id] && s->kind == SCALAR_LOAD && may_change[lower_arg(lower, s->buffer)])
            point_value(point, id);
    }
}

/* The step's effects: stores, and cached values for later stages. */
static void row_step_stores(const Row *row, Point *point, Val at) {
    for (uint32_t i = 0; i < row->n_kept; i++) {
        const CachedValue *keep = row->kept[i].keep;
        if (keep->stage != row->stage_index) continue;
        Acc value = {.value = point_lanes(point, keep->value)};
        cpu_array_store(row->lower, &row->kept[i].array, at, value, row->lanes);
    }
    if (row->n_kept && row->stage->stores.n > 1) load_ahead(row, point);
    point_store_all(point, row->stage->stores.data, row->stage->stores.n);
}

/* Emits one step: adds the reductions' elements to their chains, and stores. */
static void row_step(void *user, Val at, Val mask) {
    const Row *row = user;
    Lower *lower = row->lower;
    Point point = row_point(row, at, mask);
    for (uint32_t i = 0; i < row->stage->reduces.n; i++) {
        const Reduce *reduce = row_reduce(row, i);
        Acc acc = acc_element(&point, reduce);
        if (mask) acc = acc_select(lower, mask, acc, acc_identity(lower, reduce, row->lanes));
        Val chain = cpu_modulo(lower, at, row->order.n_chains);
        Acc before = cpu_array_update(lower, chains_at(row, 0, i), chain, row->lanes, reduce);
        acc = acc_take(lower, reduce, before, acc);
        cpu_array_store(lower, chains_at(row, 0, i), chain, acc, row->lanes);
    }
    row_step_stores(row, &point, at);
}

/* Loops over whole rounds of the chains with the chains in registers. For cheap values, chains in
 * memory would cost more than the values themselves. Returns the rest of the span. */
static CpuSpan row_rounds(const Row *row, CpuSpan span) {
    Lower *lower = row->lower;
    const Codegen *k = lower->k;
    uint32_t n = row->stage->reduces.n, n_steps = row->order.n_chains / row->lanes;
    Acc *accs = arena_array(k->arena, Acc, n_steps * (size_t)n);
    for (uint32_t j = 0; j < n_steps * n; j++)
        accs[j] = acc_identity(lower, row_reduce(row, j % n), row->lanes);
    CpuSpan rest = {.n = cpu_modulo(lower, span.n, row->order.n_chains)};
    Val n_whole = k_sub(k, span.n, rest.n);
    rest.begin = k_add(k, span.begin, n_whole);
    Loop loop = loop_begin(k, span.begin, rest.begin, row->order.n_chains);
    acc_loop_carry(k, &loop, accs, n_steps * n);
    for (uint32_t j = 0; j < n_steps; j++) {
        Val at = k_addi(k, loop.index, j * row->lanes);
        Point point = row_point(row, at, NULL);
        for (uint32_t i = 0; i < n; i++) {
            Acc acc = acc_element(&point, row_reduce(row, i));
            accs[j * n + i] = acc_take(lower, row_reduce(row, i), accs[j * n + i], acc);
        }
        row_step_stores(row, &point, at);
    }
    loop_end(k, &loop);
    for (uint32_t j = 0; j < n_steps * n; j++)
        cpu_array_store(lower, chains_at(row, 0, j % n),
                        lower_index_const(lower, j / n * row->lanes), accs[j], row->lanes);
    return rest;
}

static void row_elements(void *user, CpuSpan span) {
    const Row *row = user;
    Lower *lower = row->lower;
    DimId n = kernel_n_reduced(lower->kernel);
    if (row->in_registers) {
        span = row_rounds(row, span);
        if (cpu_is_multiple(lower, n, row->order.n_chains)) return;
    }
    cpu_each_step(lower, span.begin, span.n, row->lanes, cpu_is_multiple(lower, n, row->lanes),
                  row_step, user);
}

/* Whether the chains of the stage fit in registers, and its values are cheap enough to be emitted
 * once per vector of chains. */
static bool fits_registers(const Row *row, CpuRoots roots) {
    enum { MOST_COST = 64 };
    const Lower *lower = row->lower;
    const ScalarTab *scalars = lower->kernel->scalars;
    uint32_t n_steps = row->order.n_chains / row->lanes, n_values = 0, cost = 0;
    bool *seen = arena_array(lower->k->arena, bool, scalar_count(scalars) + 1);
    for (uint32_t i = 0; i < row->stage->reduces.n; i++) {
        uint32_t lane_bytes = dtype_bytes(row_reduce(row, i)->acc) * row->lanes;
        uint32_t n_registers = (lane_bytes - 1) / lower->k->target->vector_bytes + 1;
        n_values += n_registers * (row_reduce(row, i)->is_arg ? 2 : 1);
    }
    for (uint32_t i = 0; i < row->n_kept; i++)
        seen[row->kept[i].keep->value] = row->kept[i].keep->stage < row->stage_index;
    for (uint32_t i = 0; i < roots.n; i++) cost += scalar_cost(scalars, roots.ids[i], seen);
    uint32_t n_registers = lower->k->target->vector_bytes / 4;
    return n_values && n_values * n_steps <= n_registers && cost * n_steps <= MOST_COST &&
           dim_hi(lower_dims(lower), kernel_n_reduced(lower->kernel)) >= row->order.n_chains;
}

static void row_clear(void *user, uint32_t level) {
    const Row *row = user;
    if (level == 0 && row->in_registers) return; /* row_rounds begins and stores these */
    for (uint32_t i = 0; i < row->stage->reduces.n; i++) {
        Acc identity = acc_identity(row->lower, row_reduce(row, i), row->lanes);
        cpu_array_fill(row->lower, chains_at(row, level, i), row->order.n_chains, identity,
                       row->lanes);
    }
}

/* Loads the chains of a level, side by side in vectors of `width`. */
static Acc *load_chains(const Row *row, uint32_t level, uint32_t i, uint32_t width) {
    const Lower *lower = row->lower;
    Acc *partials = arena_array(lower->k->arena, Acc, row->order.n_chains / width);
    for (uint32_t j = 0; j < row->order.n_chains / width; j++) {
        Val at = lower_index_const(lower, j * width);
        partials[j] = cpu_array_load(lower, chains_at(row, level, i), at, width);
    }
    return partials;
}

static Acc join_chains(const Row *row, uint32_t level, uint32_t i) {
    const Lower *lower = row->lower;
    const Reduce *reduce = row_reduce(row, i);
    uint32_t width = lower->k->target->vector_bytes / dtype_bytes(reduce->acc);
    if (width > row->order.n_chains) width = row->order.n_chains;
    Acc *partials = load_chains(row, level, i, width);
    return tree_of_row(lower, reduce, partials, row->order.n_chains / width, width);
}

static void row_join(void *user, uint32_t level, Val chain) {
    const Row *row = user;
    for (uint32_t i = 0; i < row->stage->reduces.n; i++) {
        Acc partial = join_chains(row, level - 1, i);
        Acc before = cpu_array_load(row->lower, chains_at(row, level, i), chain, 1);
        Acc acc = acc_combine(row->lower, row_reduce(row, i), before, partial);
        cpu_array_store(row->lower, chains_at(row, level, i), chain, acc, 1);
    }
}

/* Emits the stage without a loop. */
static void straight_stage(Row *row) {
    Lower *lower = row->lower;
    uint32_t n = row->stage->reduces.n, n_partials = row->order.n_chains / row->lanes;
    int64_t n_elems = dim_hi(lower_dims(lower), kernel_n_reduced(lower->kernel));
    Acc *partials = arena_array(lower->k->arena, Acc, n_partials * (size_t)n);
    for (uint32_t j = 0; j < n_partials * n; j++)
        partials[j] = acc_identity(lower, row_reduce(row, j / n_partials), row->lanes);
    for (uint32_t j = 0; j < row->n_steps; j++) {
        int64_t begin = j * (int64_t)row->lanes, left = n_elems - begin;
        Val at = lower_index_const(lower, begin), mask = NULL;
        if (left < row->lanes)
            mask = cpu_lanes_below(lower, lower_index_const(lower, left), row->lanes);
        Point point = row_point(row, at, mask);
        for (uint32_t i = 0; i < n; i++) {
            const Reduce *reduce = row_reduce(row, i);
            Acc *partial = &partials[i * n_partials + j % n_partials],
                acc = acc_element(&point, reduce);
            if (mask) acc = acc_select(lower, mask, acc, acc_identity(lower, reduce, row->lanes));
            *partial = j < n_partials ? acc : acc_combine(lower, reduce, *partial, acc);
        }
        row_step_stores(row, &point, at);
    }
    for (uint32_t i = 0; i < n; i++) group_take(row, i, &partials[i * n_partials], n_partials);
}

/* Emits the stage of a row of any length, with the chains on the stack. */
static void folded_stage(Row *row, CpuRoots roots) {
    Lower *lower = row->lower;
    uint32_t n = row->stage->reduces.n;
    row->chains = cpu_chains_new(lower, row->stage, row->order, 1);
    row->in_registers = fits_registers(row, roots);
    CpuFold fold = {.user = row, .clear = row_clear, .elements = row_elements, .join = row_join};
    cpu_fold_stage(lower, row->order, &fold, row->span);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t top = row->order.n_levels - 1;
        if (row->group)
            group_take(row, i, load_chains(row, top, i, row->lanes),
                       row->order.n_chains / row->lanes);
        else
            acc_finish(&row->point, row->stage->reduces.data[i], join_chains(row, top, i));
    }
}

void row_stage(Row *row, uint32_t index) {
    Lower *lower = row->lower;
    row->stage_index = index;
    row->stage = &lower->kernel->stages.data[index];
    row->live =
        stage_live_scalars(lower->k->arena, lower->kernel, lower->variant->row_cache, index);
    row->order = cpu_stage_order(lower, row->stage, row->lanes);
    CpuRoots roots = cpu_stage_roots(lower, row->stage);
    point_prepare(&row->point, roots.ids, roots.n, cpu_reduced_axes(lower->kernel));
    if (row->n_steps)
        straight_stage(row);
    else
        folded_stage(row, roots);
}

/* Rows. */

/* Allocates an array of `n_rows` for each slot. Slots have arrays of their own, because the values
 * of different stages may have different dtypes. */
static void make_arrays(Row *row, uint32_t n_rows) {
    Lower *lower = row->lower;
    const RowCache *row_cache = &lower->variant->row_cache;
    int64_t most = variant_row_elems(lower->kernel, lower->variant);
    row->kept_elems = (most + row->lanes - 1) / row->lanes * row->lanes;
    for (uint32_t slot = 0; row->n_kept < row_cache->n; slot++) {
        Dtype widest = DT_BOOL;
        for (uint32_t i = 0; i < row_cache->n; i++) {
            Dtype dtype = scalar_get(lower->kernel->scalars, row_cache->data[i].value)->dtype;
            if (row_cache->data[i].slot == slot && dtype_bytes(dtype) > dtype_bytes(widest))
                widest = dtype;
        }
        CpuArray array = cpu_array_new(lower, widest, false, row->kept_elems * n_rows);
        for (uint32_t i = 0; i < row_cache->n; i++) {
            if (row_cache->data[i].slot != slot) continue;
            array.dtype = scalar_get(lower->kernel->scalars, row_cache->data[i].value)->dtype;
            row->kept[row->n_kept++] = (Kept){.keep = &row_cache->data[i], .array = array};
        }
    }
}

/* Lanes lie along the last reduced axis. If there are several, a step must not cross its end. */
static uint32_t row_lanes(const Lower *lower) {
    const Kernel *kernel = lower->kernel;
    uint32_t lanes = cpu_lanes(lower);
    DimId innermost = kernel_axis_extent(kernel, lower->lane_axis);
    return kernel->n_reduced == 1 || cpu_is_multiple(lower, innermost, lanes) ? lanes : 1;
}

/* Sets the segment axis and returns the number of the row. */
static Val split_segment(Row *row, Val index) {
    const Lower *lower = row->lower;
    const Kernel *kernel = lower->kernel;
    Val n = lower_extent(row->lower, kernel->segment_axis);
    row->point.axis[kernel->segment_axis] = k_urem(lower->k, index, n);
    return k_udiv(lower->k, index, n);
}

Row row_at(const Row *model, Val index) {
    Row row = *model;
    const Kernel *kernel = row.lower->kernel;
    row.point = point_new(row.lower, 1);
    if (kernel->segment_axis != NO_AXIS) index = split_segment(&row, index);
    lower_split(row.lower, index, 0, kernel->n_parallel, &row.point);
    row.span = cpu_reduced_span(row.lower, &row.point);
    return row;
}

static void rows_alone(const Row *model, Val begin, Val end) {
    Lower *lower = model->lower;
    const Kernel *kernel = lower->kernel;
    Loop units = cpu_unit_loop(lower, begin, end, 1);
    Row row = row_at(model, units.index);
    for (uint32_t i = 0; i < kernel->stages.n; i++) row_stage(&row, i);
    point_store_all(&row.point, kernel->row_stores.data, kernel->row_stores.n);
    loop_end(lower->k, &units);
}

void emit_cpu_row(Lower *lower) {
    Row model = {.lower = lower, .lanes = row_lanes(lower)};
    bool is_grouped = model.lanes > 1 && kernel_has_groups(lower->kernel, lower->variant);
    make_arrays(&model, is_grouped ? model.lanes : 1);
    if (!is_grouped) {
        rows_alone(&model, lower->units_begin, lower->units_end);
        return;
    }
    model.n_steps =
        kernel_row_steps(lower->k->arena, lower->kernel, model.lanes, KERNEL_MOST_ROW_STEPS);
    group_emit(&model, lower->units_begin, lower->units_end);
}
