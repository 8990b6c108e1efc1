/* CPU column reductions. A unit is a strip of neighbouring columns, or one segment of its rows. See
 * template.h.
 *
 * The outer loop streams through the rows. Every column of the strip has its accumulators in arrays
 * on the stack. A strip too wide for the stack is processed in sub-strips. Columns after the end of
 * the last vector have accumulators too, of masked loads; nothing reads them.
 *
 * A few rows of known number are emitted without a loop over them: each vector of columns runs
 * through all stages with its values in registers. */
#include "codegen/cpu/cpu.h"
#include "machine/tuning.h"
#include "template/cpu_taps.h"

typedef struct Column {
    Lower *lower;
    Point point; /* of the unit: outer axes and segment; a scalar point */
    uint32_t lanes;
    int64_t width;     /* columns of a sub-strip; a multiple of lanes */
    Val first, n;      /* first column and number of columns of the sub-strip */
    uint32_t n_rows;   /* of columns without a loop over the rows, else 0 */
    PointPiece piece;  /* of the lane axis, in which no guard of such a column fails */
    CpuArray *results; /* per slot: results; extremes, if the reduction has them */
    CpuArray *extremes;
    /* The state while a stage is emitted. */
    const Stage *stage;
    CpuOrder order;
    CpuArray *chains; /* of reduction i of the stage at level k: chains[k * n reduces + i], each
                       * [n_chains,width] */
    /* The position in the stage's loops. */
    Point row;         /* a point with the reduced axes set */
    Val row_chain;     /* offset of the row's accumulator (chain) in the arrays */
    uint32_t level;    /* the level that is joined into */
    const bool *needs; /* per slot: whether the step reads its result */
} Column;

static const Reduce *reduce_at(const Column *column, uint32_t i) {
    return stage_reduce(column->lower->kernel, column->stage, i);
}

static const CpuArray *chains_at(const Column *column, uint32_t level, uint32_t i) {
    return &column->chains[level * column->stage->reduces.n + i];
}

/* The offset of chain `chain` in an array of chains [n_chains,width]. */
static Val chain_begin(const Column *column, Val chain) {
    return k_muli(column->lower->k, chain, column->width);
}

/* The point of a vector of columns, with the results that it needs. `at` counts from the
 * sub-strip's first column. */
static Point column_point(const Column *column, const Point *outer, Val at, Val mask) {
    Lower *lower = column->lower;
    uint32_t n_slots = lower->kernel->reduces.n;
    Point point = point_inside(outer);
    point.lanes = column->lanes;
    point.mask = mask;
    point.axis[lower->lane_axis] = k_add(column->lower->k, column->first, at);
    point.results = arena_array(lower->k->arena, Val, n_slots);
    point.extremes = arena_array(lower->k->arena, Val, n_slots);
    for (uint32_t slot = 0; slot < n_slots; slot++) {
        if (!column->needs[slot]) continue;
        point.results[slot] =
            cpu_array_load(lower, &column->results[slot], at, column->lanes).value;
        if (column->extremes[slot].values)
            point.extremes[slot] =
                cpu_array_load(lower, &column->extremes[slot], at, column->lanes).value;
    }
    return point;
}

/* Walks the columns of the sub-strip. Steps that touch only the arrays need no mask. */
static void each_vector(Column *column, bool is_masked, CpuStep *step) {
    Lower *lower = column->lower;
    Val from = lower_index_const(lower, 0), n = column->n;
    DimId extent = kernel_axis_extent(lower->kernel, lower->lane_axis);
    bool is_whole = cpu_is_multiple(lower, extent, column->lanes);
    if (!is_masked && !is_whole) {
        Val more = k_add(column->lower->k, n, lower_index_const(lower, column->lanes - 1));
        Val past = cpu_modulo(lower, more, column->lanes);
        n = k_sub(lower->k, more, past);
    }
    cpu_each_step(lower, from, n, column->lanes, is_whole || !is_masked, step, column);
}

/* Elements. */

static void element_step(void *user, Val at, Val mask) {
    const Column *column = user;
    Lower *lower = column->lower;
    Point point = column_point(column, &column->row, at, mask);
    for (uint32_t i = 0; i < column->stage->reduces.n; i++) {
        const Reduce *reduce = reduce_at(column, i);
        const CpuArray *chains = chains_at(column, 0, i);
        Acc acc = acc_element(&point, reduce);
        Val chain = k_add(column->lower->k, column->row_chain, at);
        Acc before = cpu_array_update(lower, chains, chain, column->lanes, reduce);
        acc = acc_take(lower, reduce, before, acc);
        cpu_array_store(lower, chains, chain, acc, column->lanes);
    }
    point_store_all(&point, column->stage->stores.data, column->stage->stores.n);
}

static void column_elements(void *user, CpuSpan span) {
    Column *column = user;
    Lower *lower = column->lower;
    const Kernel *kernel = lower->kernel;
    const Codegen *k = lower->k;
    CpuRoots roots = cpu_stage_roots(lower, column->stage);
    Val to = k_add(k, span.begin, span.n);
    Loop loop = loop_begin(k, span.begin, to, 1);
    column->row = point_inside(&column->point);
    lower_split(lower, loop.index, kernel->first_reduced, kernel->n_reduced, &column->row);
    point_prepare(&column->row, roots.ids, roots.n, 1u << lower->lane_axis);
    column->row_chain = chain_begin(column, cpu_modulo(lower, loop.index, column->order.n_chains));
    each_vector(column, true, element_step);
    loop_end(k, &loop);
}

/* Chains. */

static void column_clear(void *user, uint32_t level) {
    const Column *column = user;
    for (uint32_t i = 0; i < column->stage->reduces.n; i++) {
        Acc identity = acc_identity(column->lower, reduce_at(column, i), column->lanes);
        cpu_array_fill(column->lower, chains_at(column, level, i),
                       column->order.n_chains * column->width, identity, column->lanes);
    }
}

/* Joins the chains of the columns at `at` by the balanced tree. */
static Acc join_chains(const Column *column, uint32_t level, uint32_t i, Val at) {
    Acc partials[64];
    const Lower *lower = column->lower;
    uint32_t n = column->order.n_chains;
    for (uint32_t k = 0; k < n; k++) {
        Val chain = k_add(column->lower->k, at, lower_index_const(lower, k * column->width));
        partials[k] = cpu_array_load(lower, chains_at(column, level, i), chain, column->lanes);
    }
    return acc_join_pairs(lower, reduce_at(column, i), partials, n);
}

static void join_step(void *user, Val at, Val mask) {
    (void)mask;
    const Column *column = user;
    const Lower *lower = column->lower;
    for (uint32_t i = 0; i < column->stage->reduces.n; i++) {
        const CpuArray *chains = chains_at(column, column->level, i);
        Val chain = k_add(column->lower->k, column->row_chain, at);
        Acc partial = join_chains(column, column->level - 1, i, at);
        const Reduce *reduce = reduce_at(column, i);
        Acc before = cpu_array_update(lower, chains, chain, column->lanes, reduce);
        Acc acc = acc_combine(lower, reduce, before, partial);
        cpu_array_store(lower, chains, chain, acc, column->lanes);
    }
}

static void column_join(void *user, uint32_t level, Val chain) {
    Column *column = user;
    column->level = level;
    column->row_chain = chain_begin(column, chain);
    each_vector(column, false, join_step);
}

static void finish_step(void *user, Val at, Val mask) {
    const Column *column = user;
    const Lower *lower = column->lower;
    Point point = column_point(column, &column->point, at, mask);
    for (uint32_t i = 0; i < column->stage->reduces.n; i++) {
        uint32_t slot = column->stage->reduces.data[i];
        acc_finish(&point, slot, join_chains(column, column->order.n_levels - 1, i, at));
        Acc result = {.value = point.results[slot]}, extreme = {.value = point.extremes[slot]};
        cpu_array_store(lower, &column->results[slot], at, result, column->lanes);
        if (column->extremes[slot].values)
            cpu_array_store(lower, &column->extremes[slot], at, extreme, column->lanes);
    }
}

/* Stages. */

/* The slots whose results the stage reads. NULL: the stores after the last stage. */
static bool *needed_slots(const Lower *lower, const Stage *stage) {
    const Kernel *kernel = lower->kernel;
    uint32_t index = stage ? (uint32_t)(stage - kernel->stages.data) : kernel->stages.n;
    const bool *live = stage_live_scalars(lower->k->arena, kernel, (RowCache){.n = 0}, index);
    bool *needs = arena_array(lower->k->arena, bool, kernel->reduces.n);
    for (ScalarId id = 1; id <= scalar_count(kernel->scalars); id++) {
        const Scalar *s = scalar_get(kernel->scalars, id);
        if (live[id] && (s->kind == SCALAR_STAGE || s->kind == SCALAR_EXTREME))
            needs[s->slot] = true;
    }
    return needs;
}

static void column_stage(Column *column, const Stage *stage, CpuSpan span) {
    Lower *lower = column->lower;
    Arena *arena = lower->k->arena;
    uint32_t n = stage->reduces.n;
    column->stage = stage;
    column->order = cpu_stage_order(lower, stage, column->lanes);
    column->chains = cpu_chains_new(lower, stage, column->order, column->width);
    column->needs = needed_slots(lower, stage);
    CpuFold fold = {
        .user = column, .clear = column_clear, .elements = column_elements, .join = column_join};
    cpu_fold_stage(lower, column->order, &fold, span);
    column->needs = arena_array(arena, bool, lower->kernel->reduces.n);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t slot = stage->reduces.data[i];
        const Reduce *reduce = reduce_at(column, i);
        column->results[slot] = cpu_array_new(lower, reduce->result, false, column->width);
        if (reduce->is_arg)
            column->extremes[slot] = cpu_array_new(lower, reduce->acc, false, column->width);
    }
    if (n) each_vector(column, false, finish_step);
}

static void row_store_step(void *user, Val at, Val mask) {
    const Column *column = user;
    const Kernel *kernel = column->lower->kernel;
    Point point = column_point(column, &column->point, at, mask);
    point_store_all(&point, kernel->row_stores.data, kernel->row_stores.n);
}

/* Few rows. */

/* Joins the elements of the rows in the order of sums. */
static Acc straight_reduce(const Column *column, Point *rows, uint32_t i) {
    const Lower *lower = column->lower;
    const Reduce *reduce = reduce_at(column, i);
    uint32_t n_chains = column->order.n_chains;
    Acc *partials = arena_array(lower->k->arena, Acc, n_chains);
    for (uint32_t c = 0; c < n_chains; c++)
        partials[c] = acc_identity(lower, reduce, column->lanes);
    for (uint32_t r = 0; r < column->n_rows; r++) {
        Acc acc = acc_element(&rows[r], reduce), *partial = &partials[r % n_chains];
        *partial = r < n_chains ? acc : acc_take(lower, reduce, *partial, acc);
    }
    return acc_join_pairs(lower, reduce, partials, n_chains);
}

/* Emits, once for all rows, what a stage needs that is the same for all. */
static void share_values(const Column *column, Point *all, Point *rows, const Stage *stage) {
    const Kernel *kernel = column->lower->kernel;
    CpuRoots roots = cpu_stage_roots(column->lower, stage);
    point_prepare(all, roots.ids, roots.n, cpu_reduced_axes(kernel));
    for (uint32_t r = 0; r < column->n_rows; r++)
        for (ScalarId id = 1; id <= scalar_count(kernel->scalars); id++)
            if (!rows[r].values[id]) rows[r].values[id] = all->values[id];
}

/* Emits all stages for one vector of columns. */
static void straight_step(void *user, Val at, Val mask) {
    Column *column = user;
    Lower *lower = column->lower;
    Arena *arena = lower->k->arena;
    const Kernel *kernel = lower->kernel;
    Point all = point_inside(&column->point), *rows = arena_array(arena, Point, column->n_rows);
    all.lanes = column->lanes;
    all.mask = mask;
    all.piece = column->piece;
    if (column->piece.is_any) all.block = INDEX_ANY_START;
    all.axis[lower->lane_axis] = k_add(lower->k, column->first, at);
    all.results = arena_array(arena, Val, kernel->reduces.n);
    all.extremes = arena_array(arena, Val, kernel->reduces.n);
    for (uint32_t r = 0; r < column->n_rows; r++) {
        rows[r] = point_inside(&all);
        lower_split(lower, lower_index_const(lower, r), kernel->first_reduced, kernel->n_reduced,
                    &rows[r]);
    }
    for (uint32_t s = 0; s < kernel->stages.n; s++) {
        column->stage = &kernel->stages.data[s];
        column->order = cpu_stage_order(lower, column->stage, column->lanes);
        share_values(column, &all, rows, column->stage);
        for (uint32_t i = 0; i < column->stage->reduces.n; i++)
            acc_finish(&all, column->stage->reduces.data[i], straight_reduce(column, rows, i));
        for (uint32_t r = 0; r < column->n_rows; r++)
            point_store_all(&rows[r], column->stage->stores.data, column->stage->stores.n);
    }
    point_store_all(&all, kernel->row_stores.data, kernel->row_stores.n);
}

/* The columns before and after the middle, one by one. */
static void straight_ends(Column *column, CpuTapsSteps steps) {
    Lower *lower = column->lower;
    const Codegen *k = lower->k;
    uint32_t lanes = column->lanes;
    Val lo = lower_index_const(lower, steps.lo),
        middle = lower_index_const(lower, steps.hi - steps.lo);
    column->lanes = 1;
    Loop loop = loop_begin(k, lower_index_const(lower, 0), k_sub(k, column->n, middle), 1);
    Val after = k_add(k, loop.index, middle);
    straight_step(column, k_select(k, k_slt(k, loop.index, lo), loop.index, after), NULL);
    loop_end(k, &loop);
    column->lanes = lanes;
}

/* Guards, as of padding, hold in the middle of the lane axis, if one sub-strip has all of it. */
static void straight_columns(Column *column) {
    Lower *lower = column->lower;
    const Kernel *kernel = lower->kernel;
    int64_t extent;
    bool is_one =
        dim_is_const(lower_dims(lower), kernel_axis_extent(kernel, lower->lane_axis), &extent) &&
        extent <= column->width && extent <= lower->variant->sched.cpu_column.chunk_elems;
    CpuTapsSteps steps = cpu_column_steps(lower->k->arena, kernel, lower->lane_axis, column->lanes);
    if (!is_one || !steps.has_middle) {
        each_vector(column, true, straight_step);
        return;
    }
    straight_ends(column, steps);
    column->piece = (PointPiece){true, lower->lane_axis, steps.lo, steps.hi, false};
    cpu_each_step(lower, lower_index_const(lower, steps.lo),
                  lower_index_const(lower, steps.hi - steps.lo), column->lanes, false,
                  straight_step, column);
}

/* Emits all stages over one sub-strip. */
static void column_chunk(Column *column, CpuSpan span) {
    const Lower *lower = column->lower;
    const Kernel *kernel = lower->kernel;
    if (column->n_rows) {
        straight_columns(column);
        return;
    }
    column->results = arena_array(lower->k->arena, CpuArray, kernel->reduces.n);
    column->extremes = arena_array(lower->k->arena, CpuArray, kernel->reduces.n);
    for (uint32_t i = 0; i < kernel->stages.n; i++)
        column_stage(column, &kernel->stages.data[i], span);
    column->needs = needed_slots(lower, NULL);
    if (kernel->row_stores.n) each_vector(column, true, row_store_step);
}

/* Units. */

/* Bytes of the arrays per column. */
static int64_t bytes_per_column(const Lower *lower, uint32_t lanes) {
    const Kernel *kernel = lower->kernel;
    int64_t total = 0;
    for (uint32_t s = 0; s < kernel->stages.n; s++) {
        const Stage *stage = &kernel->stages.data[s];
        CpuOrder order = cpu_stage_order(lower, stage, lanes);
        for (uint32_t i = 0; i < stage->reduces.n; i++) {
            const Reduce *reduce = stage_reduce(kernel, stage, i);
            uint32_t acc_bytes = dtype_bytes(reduce->acc) + (reduce->is_arg ? 4 : 0);
            total += (int64_t)order.n_chains * order.n_levels * acc_bytes;
            total += dtype_bytes(reduce->result) + acc_bytes;
        }
    }
    return total;
}

/* The width of a sub-strip: the unit's columns, but no more than fit on the stack. */
static int64_t chunk_width(const Lower *lower, DimId extent) {
    DimTab *dims = lower_dims(lower);
    int64_t lanes = cpu_lanes(lower), width = lower->variant->sched.cpu_column.chunk_elems;
    int64_t per_column = bytes_per_column(lower, cpu_lanes(lower));
    int64_t most = dim_hi(dims, extent);
    if (most < width) width = most + (lanes - most % lanes) % lanes;
    if (per_column && CODEGEN_STRIP_BYTES / per_column < width)
        width = CODEGEN_STRIP_BYTES / per_column;
    return width > lanes ? width - width % lanes : lanes;
}

/* Sets the unit's outer axes and segment, and returns the number of its strip. */
static Val split_unit(Column *column, Val index, Val n_strips) {
    Lower *lower = column->lower;
    const Codegen *k = lower->k;
    const Kernel *kernel = lower->kernel;
    uint32_t n_outer = lower->lane_axis;
    if (kernel->segment_axis != NO_AXIS) {
        Val per_segment = n_strips;
        for (uint32_t j = 0; j < n_outer; j++)
            per_segment = k_mul(k, per_segment, lower_extent(lower, j));
        column->point.axis[kernel->segment_axis] = k_udiv(k, index, per_segment);
        index = k_urem(k, index, per_segment);
    }
    if (n_outer == 0) return index;
    Val outer = k_udiv(k, index, n_strips);
    lower_split(lower, outer, 0, n_outer, &column->point);
    return k_urem(k, index, n_strips);
}

/* Hoists values that are invariant in all loops of the unit. */
static void prepare_unit(Column *column) {
    const Kernel *kernel = column->lower->kernel;
    uint32_t inner = cpu_reduced_axes(kernel) | 1u << column->lower->lane_axis;
    for (uint32_t i = 0; i < kernel->stages.n; i++) {
        CpuRoots roots = cpu_stage_roots(column->lower, &kernel->stages.data[i]);
        point_prepare(&column->point, roots.ids, roots.n, inner);
    }
}

void emit_cpu_column(Lower *lower) {
    const Codegen *k = lower->k;
    const Sched *sched = &lower->variant->sched;
    DimId extent = kernel_axis_extent(lower->kernel, lower->lane_axis);
    Column column = {.lower = lower,
                     .point = point_new(lower, 1),
                     .lanes = cpu_lanes(lower),
                     .width = chunk_width(lower, extent)};
    if (lower->kernel->segment_axis == NO_AXIS)
        column.n_rows = kernel_row_steps(k->arena, lower->kernel, 1, KERNEL_MOST_COLUMN_ROWS);
    Loop units = cpu_unit_loop(lower, lower->units_begin, lower->units_end, 1);
    DimId n_strips = dim_ceil_div(lower_dims(lower), extent, sched->cpu_column.chunk_elems);
    Val strip = split_unit(&column, units.index, lower_dim(lower, n_strips));
    Val strip_begin = k_muli(k, strip, sched->cpu_column.chunk_elems);
    Val rest = k_sub(k, lower_dim(lower, extent), strip_begin);
    Val n_columns = cpu_at_most(lower, rest, sched->cpu_column.chunk_elems);
    prepare_unit(&column);
    CpuSpan span = cpu_reduced_span(lower, &column.point);
    Val zero = lower_index_const(lower, 0);
    Loop partials = loop_begin(k, zero, n_columns, column.width);
    Val ahead = k_sub(k, n_columns, partials.index);
    column.n = cpu_at_most(lower, ahead, column.width);
    column.first = k_add(k, strip_begin, partials.index);
    column_chunk(&column, span);
    loop_end(k, &partials);
    loop_end(k, &units);
}

/* Rows whose number of elements is known and small, as of columns. */
void emit_cpu_rows_in_lanes(Lower *lower) {
    emit_cpu_column(lower);
}
