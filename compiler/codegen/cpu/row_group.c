/* Groups of rows. See row.h.
 *
 * The rows of a group go through a stage one after the other. Each leaves what its lanes come to;
 * in all there are as many vectors as lanes, so the tree over them ends in one vector, with a row
 * in each lane. What follows from results alone, a logarithm or a reciprocal, is computed there,
 * once for all rows, and the next stage's rows find it in arrays. Nothing waits for the end of one
 * row's reduction. Behind the last row lanes have whatever is there; nobody reads them. */
#include "codegen/cpu/row.h"

struct RowGroup {
    const Row *model;
    Val first, n;       /* rows: before the group's, and of it */
    Val at;             /* the row at hand, counted from the first */
    Point ends;         /* all rows, in lanes: what results determine */
    uint32_t *ready;    /* per scalar: stages that make what determines it; 0: more than those */
    CpuArray *values;   /* per scalar: where rows find it, by row; without values: nowhere */
    CpuArray *partials; /* per slot: a vector for each row, ... */
    TreeLanes *lanes;   /* ... and what its lanes are */
};

/* What results determine. */

/* Of one scalar, `ready` of those that it is made of being known. */
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

/* Per scalar: whether rows need it by itself. Of truths, which no array holds, they need what those
 * are made of. */
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
        bool is_made = ready[id] && (!needed[id] || s->dtype != DT_BOOL);
        for (uint32_t i = 0; i < 3 && live[id] && !is_made; i++) needed[s->args[i]] = true;
        needed[id] = live[id] && ready[id] && s->dtype != DT_BOOL && (needed[id] || is_result);
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

/* Gives the row what stages before `stage` have made. */
static void find_values(const RowGroup *group, Row *row, uint32_t stage) {
    const Lower *lower = row->lower;
    const Kernel *kernel = lower->kernel;
    const RowCache none = {.n = 0}; /* what is below a kept value may be prepared all the same */
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

/* The row at hand. */
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

void group_take(const Row *row, uint32_t i, Acc *parts, uint32_t n) {
    RowGroup *group = row->group;
    uint32_t slot = row->stage->reduces.data[i];
    TreeLanes lanes = tree_lanes(row->lanes);
    Acc acc = tree_join(row->lower, row_reduce(row, i), parts, n, false, &lanes);
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
    Acc *parts = arena_array(lower->k->arena, Acc, n);
    for (uint32_t j = 0; j < n; j++)
        parts[j] =
            cpu_array_load(lower, &group->partials[slot], lower_index_const(lower, j * n), n);
    Acc all = tree_join(lower, reduce, parts, n, true, &lanes);
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

/* Whether the rows' stores are of lanes side by side that results alone determine. */
static bool stores_ends(const RowGroup *group) {
    enum { LEAST_BYTES = 4 }; /* of what AVX2 stores by mask */
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

/* The rows go through a stage; through no more than their stores where there is none of that
 * number. */
static void emit_stage(RowGroup *group, uint32_t index) {
    Lower *lower = group->model->lower;
    const Kernel *kernel = lower->kernel;
    bool is_stage = index < kernel->stages.n;
    bool is_last =
        !is_stage || (index + 1 == kernel->stages.n && !kernel->stages.data[index].reduces.n);
    Val zero = lower_index_const(lower, 0), one = lower_index_const(lower, 1);
    Loop loop = loop_begin(lower->k, zero, group->n, one);
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
