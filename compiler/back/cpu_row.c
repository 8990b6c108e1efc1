/* CPU row reductions: one row, or one segment of a row, per unit. See template.h.
 *
 * The chains of the order of summation lie side by side in an array, so that a step of any width
 * folds into the chains its elements belong to and the bits do not hang on the width. */
#include "back/cpu_common.h"

/* What lies on the stack, by reduced element. */
typedef struct Kept {
    const Keep *keep;
    CpuArray array;
} Kept;

typedef struct Row {
    Lower *lower;
    Point point; /* of the unit: everything but the reduced axes; one lane */
    uint32_t lanes;
    Kept kept[MAX_KEEPS];
    uint32_t n_kept;
    /* The stage being emitted. */
    uint32_t stage_index;
    const Stage *stage;
    const bool *live; /* per scalar: whether the stage has it */
    CpuOrder order;
    CpuArray *chains;  /* of reduction i of the stage at level k: [k * n reduces + i] */
    bool in_registers; /* level 0 while whole rounds over its chains last */
} Row;

static const Reduce *reduce_at(const Row *row, uint32_t i) {
    return &row->lower->kernel->reduces.data[row->stage->reduces.data[i]];
}

static const CpuArray *chains_at(const Row *row, uint32_t level, uint32_t i) {
    return &row->chains[level * row->stage->reduces.n + i];
}

static Point row_point(const Row *row, LLVMValueRef at, LLVMValueRef mask) {
    Lower *lower = row->lower;
    Point point = point_inside(&row->point);
    point.lanes = row->lanes;
    point.mask = mask;
    lower_split(lower, at, lower->kernel->first_reduced, lower->kernel->n_reduced, &point);
    for (uint32_t i = 0; i < row->n_kept; i++) {
        const Keep *keep = row->kept[i].keep;
        if (keep->stage >= row->stage_index || !row->live[keep->value]) continue;
        Acc acc = cpu_array_load(lower, &row->kept[i].array, at, row->lanes);
        point.values[keep->value] = acc.value;
    }
    return point;
}

/* What a step leaves behind: stores, and values for later stages. */
static void row_step_stores(const Row *row, Point *point, LLVMValueRef at) {
    for (uint32_t i = 0; i < row->n_kept; i++) {
        const Keep *keep = row->kept[i].keep;
        if (keep->stage != row->stage_index) continue;
        Acc value = {.value = point_lanes(point, keep->value)};
        cpu_array_store(row->lower, &row->kept[i].array, at, value, row->lanes);
    }
    point_store_all(point, row->stage->stores.data, row->stage->stores.n);
}

/* One step of elements: the reductions' values into their chains, and the stores. */
static void row_step(void *user, LLVMValueRef at, LLVMValueRef mask) {
    const Row *row = user;
    Lower *lower = row->lower;
    Point point = row_point(row, at, mask);
    for (uint32_t i = 0; i < row->stage->reduces.n; i++) {
        const Reduce *reduce = reduce_at(row, i);
        Acc acc = acc_element(&point, reduce);
        if (mask) acc = acc_select(lower, mask, acc, acc_identity(lower, reduce, row->lanes));
        LLVMValueRef chain = cpu_modulo(lower, at, row->order.n_chains);
        Acc before = cpu_array_load(lower, chains_at(row, 0, i), chain, row->lanes);
        acc = acc_combine(lower, reduce, before, acc);
        cpu_array_store(lower, chains_at(row, 0, i), chain, acc, row->lanes);
    }
    row_step_stores(row, &point, at);
}

/* All whole rounds over the chains, which stay in registers meanwhile: where values are cheap,
 * going through memory would cost more than they do. Returns what is left of the span. */
static CpuSpan row_rounds(const Row *row, CpuSpan span) {
    Lower *lower = row->lower;
    const Unit *unit = lower->unit;
    uint32_t n = row->stage->reduces.n, n_steps = row->order.n_chains / row->lanes;
    Acc *accs = arena_array(unit->arena, Acc, n_steps * (size_t)n);
    LLVMValueRef *values = arena_array(unit->arena, LLVMValueRef, n_steps * (size_t)n * 2);
    for (uint32_t k = 0; k < n_steps * n; k++)
        accs[k] = acc_identity(lower, reduce_at(row, k % n), row->lanes);
    uint32_t n_values = acc_flatten(accs, n_steps * n, values);
    CpuSpan rest = {.n = cpu_modulo(lower, span.n, row->order.n_chains)};
    LLVMValueRef n_whole = LLVMBuildSub(unit->builder, span.n, rest.n, "");
    rest.begin = LLVMBuildAdd(unit->builder, span.begin, n_whole, "");
    Loop loop = loop_begin(unit, lower->function, span.begin, rest.begin,
                           lower_index_const(lower, row->order.n_chains));
    loop_carry(unit, &loop, values, n_values);
    acc_unflatten(accs, n_steps * n, values);
    for (uint32_t k = 0; k < n_steps; k++) {
        LLVMValueRef offset = lower_index_const(lower, k * row->lanes);
        LLVMValueRef at = LLVMBuildAdd(unit->builder, loop.index, offset, "");
        Point point = row_point(row, at, NULL);
        for (uint32_t i = 0; i < n; i++) {
            Acc acc = acc_element(&point, reduce_at(row, i));
            accs[k * n + i] = acc_combine(lower, reduce_at(row, i), accs[k * n + i], acc);
        }
        row_step_stores(row, &point, at);
    }
    acc_flatten(accs, n_steps * n, values);
    loop_end_carry(unit, &loop, values, n_values);
    acc_unflatten(accs, n_steps * n, values);
    for (uint32_t k = 0; k < n_steps * n; k++)
        cpu_array_store(lower, chains_at(row, 0, k % n),
                        lower_index_const(lower, k / n * row->lanes), accs[k], row->lanes);
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

/* Whether the chains of the stage fit in registers and its values are cheap enough for the copies
 * of the step that this takes. */
static bool fits_registers(const Row *row, CpuRoots roots) {
    enum { MOST_COST = 64 };
    const Lower *lower = row->lower;
    const ScalarTab *scalars = lower->kernel->scalars;
    DimTab *dims = indextab_dims(scalartab_indices(scalars));
    uint32_t n_steps = row->order.n_chains / row->lanes, n_values = 0, cost = 0;
    bool *seen = arena_array(lower->unit->arena, bool, scalar_count(scalars) + 1);
    for (uint32_t i = 0; i < row->stage->reduces.n; i++) {
        uint32_t lane_bytes = dtype_bytes(reduce_at(row, i)->acc) * row->lanes;
        uint32_t n_registers = (lane_bytes - 1) / lower->unit->target->vector_bytes + 1;
        n_values += n_registers * (reduce_at(row, i)->is_arg ? 2 : 1);
    }
    for (uint32_t i = 0; i < row->n_kept; i++)
        seen[row->kept[i].keep->value] = row->kept[i].keep->stage < row->stage_index;
    for (uint32_t i = 0; i < roots.n; i++) cost += scalar_cost(scalars, roots.ids[i], seen);
    uint32_t n_registers = lower->unit->target->vector_bytes / 4;
    return n_values && n_values * n_steps <= n_registers && cost * n_steps <= MOST_COST &&
           dim_hi(dims, kernel_n_reduced(lower->kernel)) >= row->order.n_chains;
}

static void row_clear(void *user, uint32_t level) {
    const Row *row = user;
    if (level == 0 && row->in_registers) return; /* begun and stored by row_rounds */
    for (uint32_t i = 0; i < row->stage->reduces.n; i++) {
        Acc identity = acc_identity(row->lower, reduce_at(row, i), row->lanes);
        cpu_array_fill(row->lower, chains_at(row, level, i), row->order.n_chains, identity,
                       row->lanes);
    }
}

/* Every second lane from `first` on. */
static LLVMValueRef every_second(const Unit *unit, LLVMValueRef value, uint32_t first) {
    uint32_t n = LLVMGetVectorSize(LLVMTypeOf(value)) / 2;
    if (n == 1)
        return LLVMBuildExtractElement(unit->builder, value, unit_int(unit->i32, first), "");
    LLVMValueRef *lanes = arena_array(unit->arena, LLVMValueRef, n);
    for (uint32_t i = 0; i < n; i++) lanes[i] = unit_int(unit->i32, 2 * i + first);
    LLVMValueRef poison = LLVMGetPoison(LLVMTypeOf(value));
    return LLVMBuildShuffleVector(unit->builder, value, poison, LLVMConstVector(lanes, n), "");
}

/* The balanced tree over a level's chains. */
static Acc join_chains(const Row *row, uint32_t level, uint32_t i) {
    const Lower *lower = row->lower;
    uint32_t n = row->order.n_chains;
    LLVMValueRef first = lower_index_const(lower, 0);
    Acc all = cpu_array_load(lower, chains_at(row, level, i), first, n);
    for (; n > 1; n /= 2) {
        Acc even = {.value = every_second(lower->unit, all.value, 0)};
        Acc odd = {.value = every_second(lower->unit, all.value, 1)};
        if (all.index) even.index = every_second(lower->unit, all.index, 0);
        if (all.index) odd.index = every_second(lower->unit, all.index, 1);
        all = acc_combine(lower, reduce_at(row, i), even, odd);
    }
    return all;
}

static void row_join(void *user, uint32_t level, LLVMValueRef chain) {
    const Row *row = user;
    for (uint32_t i = 0; i < row->stage->reduces.n; i++) {
        Acc part = join_chains(row, level - 1, i);
        Acc before = cpu_array_load(row->lower, chains_at(row, level, i), chain, 1);
        Acc acc = acc_combine(row->lower, reduce_at(row, i), before, part);
        cpu_array_store(row->lower, chains_at(row, level, i), chain, acc, 1);
    }
}

static void row_stage(Row *row, uint32_t index, CpuSpan span) {
    Lower *lower = row->lower;
    const Stage *stage = &lower->kernel->stages.data[index];
    uint32_t n = stage->reduces.n;
    row->stage_index = index;
    row->stage = stage;
    row->live = stage_live_scalars(lower->unit->arena, lower->kernel, lower->variant->keeps, index);
    row->order = cpu_stage_order(lower, stage, row->lanes);
    row->chains = arena_array(lower->unit->arena, CpuArray, row->order.n_levels * (size_t)n);
    for (uint32_t k = 0; k < row->order.n_levels * n; k++) {
        const Reduce *reduce = reduce_at(row, k % n);
        row->chains[k] = cpu_array_new(lower, reduce->acc, reduce->is_arg, row->order.n_chains);
    }
    CpuRoots roots = cpu_stage_roots(lower, stage);
    row->in_registers = fits_registers(row, roots);
    point_prepare(&row->point, roots.ids, roots.n, cpu_reduced_axes(lower->kernel));
    CpuFold fold = {.user = row, .clear = row_clear, .elements = row_elements, .join = row_join};
    cpu_fold_stage(lower, row->order, &fold, span);
    for (uint32_t i = 0; i < n; i++)
        acc_finish(&row->point, stage->reduces.data[i],
                   join_chains(row, row->order.n_levels - 1, i));
}

/* Values. */

/* An array for each slot: in the order of stages its values need not be of one dtype. */
static void make_arrays(Row *row) {
    Lower *lower = row->lower;
    const Keeps *keeps = &lower->variant->keeps;
    int64_t most = variant_row_elems(lower->kernel, lower->variant);
    int64_t n_elems = (most + row->lanes - 1) / row->lanes * row->lanes;
    for (uint32_t slot = 0; row->n_kept < keeps->n; slot++) {
        Dtype widest = DT_BOOL;
        for (uint32_t i = 0; i < keeps->n; i++) {
            Dtype dtype = scalar_get(lower->kernel->scalars, keeps->data[i].value)->dtype;
            if (keeps->data[i].slot == slot && dtype_bytes(dtype) > dtype_bytes(widest))
                widest = dtype;
        }
        CpuArray array = cpu_array_new(lower, widest, false, n_elems);
        for (uint32_t i = 0; i < keeps->n; i++) {
            if (keeps->data[i].slot != slot) continue;
            array.dtype = scalar_get(lower->kernel->scalars, keeps->data[i].value)->dtype;
            row->kept[row->n_kept++] = (Kept){&keeps->data[i], array};
        }
    }
}

/* Lanes go along the last reduced axis. With several, a step must not run over its end. */
static uint32_t row_lanes(const Lower *lower) {
    const Kernel *kernel = lower->kernel;
    uint32_t lanes = cpu_lanes(lower);
    DimId innermost = index_axis_extent(scalartab_indices(kernel->scalars), lower->lane_axis);
    return kernel->n_reduced == 1 || cpu_is_multiple(lower, innermost, lanes) ? lanes : 1;
}

void template_cpu_row(Lower *lower, LLVMValueRef begin, LLVMValueRef end) {
    LLVMBuilderRef builder = lower->unit->builder;
    const Kernel *kernel = lower->kernel;
    Row row = {.lower = lower, .point = point_new(lower, 1), .lanes = row_lanes(lower)};
    make_arrays(&row);
    Loop units = cpu_unit_loop(lower, begin, end);
    LLVMValueRef index = units.index;
    if (kernel->segment_axis != NO_AXIS) {
        DimId extent = index_axis_extent(scalartab_indices(kernel->scalars), kernel->segment_axis);
        LLVMValueRef n_segments = lower_dim(lower, extent);
        row.point.axis[kernel->segment_axis] = LLVMBuildURem(builder, index, n_segments, "");
        index = LLVMBuildUDiv(builder, index, n_segments, "");
    }
    lower_split(lower, index, 0, kernel->n_parallel, &row.point);
    CpuSpan span = cpu_reduced_span(lower, &row.point);
    for (uint32_t i = 0; i < kernel->stages.n; i++) row_stage(&row, i, span);
    point_store_all(&row.point, kernel->row_stores.data, kernel->row_stores.n);
    loop_end(lower->unit, &units);
}
