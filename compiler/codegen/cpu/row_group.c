/* Groups of rows. See row.h.
 *
 * The rows of a group run through a stage one after the other. Each row leaves one vector of
 * partial results. There are as many vectors as lanes, so the tree over them ends in a single
 * vector with one row per lane. Values that depend on results alone, such as a logarithm or a
 * reciprocal, are computed on this vector, once for all rows. The rows read them from arrays in the
 * next stage. So no row waits for the latency of its own reduction. Lanes after the last row hold
 * garbage; nothing reads it. */
#include "codegen/cpu/row.h"

struct RowGroup {
    const Row *model;
    Val first, n;       /* the group's first row and its number of rows */
    Val at;             /* the current row, counted from the first */
    Point ends;         /* one row per lane: for values that depend on results alone */
    uint32_t *ready;    /* per scalar: number of stages after which it is known; 0: it depends on
                         * more than results */
    CpuArray *values;   /* per scalar: its values by row; values NULL: it has no array */
    CpuArray *partials; /* per slot: a vector per row */
    TreeLanes *lanes;   /* and the meaning of its lanes */
};

/* Values that depend on reduction results alone. */

/* The number of stages that one scalar needs, given `ready` of its operands. */
static uint32_t stages_before(const Kernel *kernel, const uint32_t *ready, ScalarId id) {
    const Scalar *s = scalar_get(kernel->scalars, id);
    uint32_t last = 0;
    if (s->kind == SCALAR_STAGE || s->kind == SCALAR_EXTREME) {
        for (uint32_t k = 0; k < kernel->stages.n; k++)
            for (uint32_t i = 0; i < kernel->stages.data[k].reduces.n; i++)
                if (kernel->stages.data[k].reduces.data[i] == s->slot) last = k + 1;
        return last;
    }
    if (s->kind != SCALAR_PRIM && s->kind != SCALAR_CVT) return 0;
    for (uint32_t i = 0; i < 3 && s->args[i]; i++) {
        uint32_t own = ready[s->args[i]];
        if (scalar_get(kernel->scalars, s->args[i])->kind == SCALAR_CONST) continue;
        if (own == 0) return 0;
        if (own > last) last = own;
    }
    return last;
}

static void note_store(void *user, const Store *store) {
    bool *needed = user;
    needed[store->value] = true;
}

/* Per scalar: whether the rows read its array. A bool has no array, so the rows read its operands'
 * arrays. */
static bool *find_needed(Arena *arena, const Kernel *kernel, const uint32_t *ready) {
    const ScalarTab *scalars = kernel->scalars;
    const bool *live = kernel_live_scalars(arena, kernel);
    bool *needed = arena_array(arena, bool, scalar_count(scalars) + 1);
    for (uint32_t i = 0; i < kernel->reduces.n; i++)
        needed[kernel->reduces.data[i].value] = needed[kernel->reduces.data[i].arg_index] = true;
    kernel_each_store(kernel, note_store, needed);
    for (ScalarId id = scalar_count(scalars); id > 0; id--) {
        const Scalar *s = scalar_get(scalars, id);
        bool is_result = s->kind == SCALAR_STAGE || s->kind == SCALAR_EXTREME;
        bool is_made = ready[id] && (!needed[id] || !dtype_is_bool(s->dtype));
        for (uint32_t i = 0; i < 3 && live[id] && !is_made; i++) needed[s->args[i]] = true;
        needed[id] = live[id] && ready[id] && !dtype_is_bool(s->dtype) && (needed[id] || is_result);
    }
    return needed;
}

static RowGroup group_new(const Row *model) {
    Lower *lower = model->lower;
    Arena *arena = lower->k->arena;
    const Kernel *kernel = lower->kernel;
    uint32_t n = scalar_count(kernel->scalars) + 1;
    RowGroup group = {.model = model,
                      .ready = arena_array(arena, uint32_t, n),
                      .values = arena_array(arena, CpuArray, n),
                      .partials = arena_array(arena, CpuArray, kernel->reduces.n),
                      .lanes = arena_array(arena, TreeLanes, kernel->reduces.n)};
    for (ScalarId id = 1; id < n; id++) group.ready[id] = stages_before(kernel, group.ready, id);
    const bool *needed = find_needed(arena, kernel, group.ready);
    for (ScalarId id = 1; id < n; id++)
        if (needed[id])
            group.values[id] =
                cpu_array_new(lower, scalar_get(kernel->scalars, id)->dtype, false, model->lanes);
    for (uint32_t i = 0; i < kernel->reduces.n; i++) {
        const Reduce *reduce = &kernel->reduces.data[i];
        group.partials[i] =
            cpu_array_new(lower, reduce->acc, reduce->is_arg, (int64_t)model->lanes * model->lanes);
    }
    return group;
}

/* Rows. */

static Val times(const RowGroup *group, Val value, int64_t factor) {
    Lower *lower = group->model->lower;
    return k_muli(lower->k, value, factor);
}

/* Gives the row the values that stages before `stage` have computed. */
static void find_values(const RowGroup *group, Row *row, uint32_t stage) {
    const Lower *lower = row->lower;
    const Kernel *kernel = lower->kernel;
    const RowCache none = {.n = 0}; /* values below a cached one may be prepared too */
    const bool *live = stage_live_scalars(lower->k->arena, kernel, none, stage);
    for (ScalarId id = 1; id <= scalar_count(kernel->scalars); id++) {
        const Scalar *s = scalar_get(kernel->scalars, id);
        if (!live[id] || !group->values[id].values || group->ready[id] > stage) continue;
        Val value = cpu_array_load(lower, &group->values[id], group->at, 1).value;
        row->point.values[id] = value;
        if (s->kind == SCALAR_STAGE) row->point.results[s->slot] = value;
        if (s->kind == SCALAR_EXTREME) row->point.extremes[s->slot] = value;
    }
}

/* The row number `at` of the group. */
static Row group_row(RowGroup *group, Val at, uint32_t stage) {
    const Row *model = group->model;
    group->at = at;
    Row row = row_at(model, k_add(model->lower->k, group->first, at));
    row.group = group;
    for (uint32_t i = 0; i < row.n_kept; i++)
        row.kept[i].array =
            cpu_array_from(model->lower, &row.kept[i].array, times(group, at, row.kept_elems));
    find_values(group, &row, stage);
    return row;
}

void group_take(const Row *row, uint32_t i, Acc *partials, uint32_t n) {
    RowGroup *group = row->group;
    uint32_t slot = row->stage->reduces.data[i];
    TreeLanes lanes = tree_lanes(row->lanes);
    Acc acc = tree_join(row->lower, row_reduce(row, i), partials, n, false, &lanes);
    cpu_array_store(row->lower, &group->partials[slot], times(group, group->at, row->lanes), acc,
                    row->lanes);
    group->lanes[slot] = lanes;
}

/* Ends of a stage. */

static void finish_slot(RowGroup *group, uint32_t slot) {
    Lower *lower = group->model->lower;
    const Reduce *reduce = &lower->kernel->reduces.data[slot];
    uint32_t n = group->model->lanes;
    TreeLanes lanes = group->lanes[slot];
    Acc *partials = arena_array(lower->k->arena, Acc, n);
    for (uint32_t j = 0; j < n; j++)
        partials[j] =
            cpu_array_load(lower, &group->partials[slot], lower_index_const(lower, j * n), n);
    Acc all = tree_join(lower, reduce, partials, n, true, &lanes);
    acc_finish(&group->ends, slot, tree_sort(lower, all, &lanes));
}

static void finish_stage(RowGroup *group, uint32_t index) {
    Lower *lower = group->model->lower;
    const Kernel *kernel = lower->kernel;
    const Stage *stage = &kernel->stages.data[index];
    Val zero = lower_index_const(lower, 0);
    for (uint32_t i = 0; i < stage->reduces.n; i++) finish_slot(group, stage->reduces.data[i]);
    for (ScalarId id = 1; id <= scalar_count(kernel->scalars); id++) {
        if (!group->values[id].values || group->ready[id] != index + 1) continue;
        Acc value = {.value = point_lanes(&group->ends, id)};
        cpu_array_store(lower, &group->values[id], zero, value, group->model->lanes);
    }
}

/* Whether the kernel's stores write results alone, so that neighbouring rows are stored as one
 * vector. */
static bool stores_ends(const RowGroup *group) {
    enum { LEAST_BYTES = 4 }; /* AVX2's masked stores need 4 bytes */
    const Lower *lower = group->model->lower;
    const Kernel *kernel = lower->kernel;
    IndexTab *tab = scalartab_indices(kernel->scalars);
    bool are_ends = kernel->n_parallel == 1;
    for (uint32_t i = 0; i < kernel->row_stores.n && are_ends; i++) {
        const Store *store = &kernel->row_stores.data[i];
        are_ends = group->ready[store->value] && !store->guard &&
                   dtype_bytes(lower->plan->buffers.data[store->buffer].dtype) >= LEAST_BYTES &&
                   index_lane_motion(tab, store->address, 0, group->ends.lanes) == LANES_CONTIGUOUS;
    }
    return are_ends;
}

static void store_ends(RowGroup *group) {
    const Kernel *kernel = group->model->lower->kernel;
    Point ends = point_inside(&group->ends);
    ends.lane_axis = 0;
    ends.axis[0] = group->first;
    ends.mask = cpu_lanes_below(group->model->lower, group->n, ends.lanes);
    point_store_all(&ends, kernel->row_stores.data, kernel->row_stores.n);
}

/* Runs the rows through stage `index`; past the last stage, through the final stores only. */
static void emit_stage(RowGroup *group, uint32_t index) {
    Lower *lower = group->model->lower;
    const Kernel *kernel = lower->kernel;
    bool is_stage = index < kernel->stages.n;
    bool is_last =
        !is_stage || (index + 1 == kernel->stages.n && !kernel->stages.data[index].reduces.n);
    Loop loop = loop_over(lower->k, group->n, 1);
    Row row = group_row(group, loop.index, index);
    if (is_last) find_values(group, &row, kernel->stages.n);
    if (is_stage) row_stage(&row, index);
    if (is_last) point_store_all(&row.point, kernel->row_stores.data, kernel->row_stores.n);
    loop_end(lower->k, &loop);
    if (is_stage) finish_stage(group, index);
}

void group_emit(const Row *model, Val begin, Val end) {
    Lower *lower = model->lower;
    const Kernel *kernel = lower->kernel;
    uint32_t n = kernel->stages.n;
    RowGroup group = group_new(model);
    Loop groups = cpu_unit_loop(lower, begin, end, model->lanes);
    Val rest = k_sub(lower->k, groups.to, groups.index);
    group.first = groups.index;
    group.n = cpu_at_most(lower, rest, model->lanes);
    group.ends = point_new(lower, model->lanes);
    group.ends.lane_axis = NO_AXIS;
    for (uint32_t i = 0; i < n; i++) emit_stage(&group, i);
    if (kernel->row_stores.n && kernel->stages.data[n - 1].reduces.n) {
        if (stores_ends(&group))
            store_ends(&group);
        else
            emit_stage(&group, n);
    }
    loop_end(lower->k, &groups);
}
