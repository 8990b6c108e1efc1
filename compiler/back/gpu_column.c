/* GPU columns: a block is 32 threads along the columns, lanes each, by 8 along the reduced
 * elements. Thread row y takes elements y, y + 8, ...: it is chain y of ReduceOrder, and the tree
 * over the eight runs through shared memory. */
#include "back/gpu_stage.h"

typedef struct Column {
    Lower *lower;
    Unit *unit;
    const Kernel *kernel;
    const Sched *sched;
    ReduceOrder order;
    LLVMValueRef x, y;          /* i32 */
    LLVMValueRef chain;         /* index_type: y */
    LLVMValueRef exists;        /* i1: whether the thread has columns */
    LLVMValueRef first, length; /* index_type: reduced elements (of the segment) */
    Point point;
    LLVMValueRef shared, shared_index; /* [8][32][lanes] of the widest accumulator; of i32 */
} Column;

/* Splits the step number into parallel axes, the last advancing by lanes. */
static void find_columns(Column *column, LLVMValueRef step) {
    Lower *lower = column->lower;
    LLVMBuilderRef builder = column->unit->builder;
    uint32_t n = column->kernel->n_parallel;
    const IndexTab *tab = scalartab_indices(column->kernel->scalars);
    LLVMValueRef lanes = lower_index_const(lower, column->sched->lanes);
    LLVMValueRef total = lower_dim(lower, kernel_n_rows(column->kernel));
    LLVMValueRef n_steps = LLVMBuildUDiv(builder, total, lanes, "");
    column->exists = LLVMBuildICmp(builder, LLVMIntULT, step, n_steps, "");
    column->point.active = column->exists;
    if (n == 1) {
        column->point.axis[0] = LLVMBuildMul(builder, step, lanes, "");
    } else if (n > 1) {
        LLVMValueRef extent = lower_dim(lower, index_axis_extent(tab, n - 1));
        LLVMValueRef per_row = LLVMBuildUDiv(builder, extent, lanes, "");
        LLVMValueRef in_row = LLVMBuildURem(builder, step, per_row, "");
        LLVMValueRef outer = LLVMBuildUDiv(builder, step, per_row, "");
        column->point.axis[n - 1] = LLVMBuildMul(builder, in_row, lanes, "");
        lower_split(lower, outer, 0, n - 1, &column->point);
    }
}

static void find_place(Column *column) {
    Lower *lower = column->lower;
    Unit *unit = column->unit;
    LLVMBuilderRef builder = unit->builder;
    LLVMValueRef thread = gpu_thread(unit), block = gpu_block(lower);
    column->x = LLVMBuildAnd(builder, thread, unit_int(unit->i32, WARP - 1), "");
    column->y = LLVMBuildLShr(builder, thread, unit_int(unit->i32, 5), "");
    column->chain = gpu_index(column->lower, column->y);
    LLVMValueRef n = lower_dim(lower, kernel_n_reduced(column->kernel));
    column->first = lower_index_const(lower, 0);
    column->length = n;
    if (column->kernel->segment_axis != NO_AXIS) {
        DimTab *dims = indextab_dims(scalartab_indices(column->kernel->scalars));
        DimId strips =
            dim_ceil_div(dims, kernel_n_rows(column->kernel), (int64_t)column->sched->lanes * WARP);
        LLVMValueRef n_strips = lower_dim(lower, strips);
        LLVMValueRef segment = LLVMBuildUDiv(builder, block, n_strips, "");
        block = LLVMBuildURem(builder, block, n_strips, "");
        column->point.axis[column->kernel->segment_axis] = segment;
        LLVMValueRef length = lower_index_const(lower, column->order.segment_elems);
        column->first = LLVMBuildMul(builder, segment, length, "");
        LLVMValueRef rest = LLVMBuildSub(builder, n, column->first, "");
        column->length = gpu_segment_count(lower, rest);
    }
    LLVMValueRef warp = lower_index_const(lower, WARP);
    LLVMValueRef step = LLVMBuildMul(builder, block, warp, "");
    step = LLVMBuildAdd(builder, step, gpu_index(column->lower, column->x), "");
    find_columns(column, step);
}

/* Joining the eight chains: every thread gets the result of its columns. */

/* Where chain y keeps its accumulator of a type. */
static LLVMValueRef chain_slot(Column *column, LLVMValueRef array, LLVMTypeRef type,
                               LLVMValueRef y) {
    Unit *unit = column->unit;
    LLVMValueRef row = LLVMBuildMul(unit->builder, y, unit_int(unit->i32, WARP), "");
    LLVMValueRef at = LLVMBuildAdd(unit->builder, row, column->x, "");
    return gpu_shared_at(unit, array, type, at);
}

static LLVMValueRef read_chain(Column *column, LLVMValueRef array, LLVMValueRef like, uint32_t y) {
    LLVMValueRef at = unit_int(column->unit->i32, y);
    LLVMValueRef slot = chain_slot(column, array, LLVMTypeOf(like), at);
    return LLVMBuildLoad2(column->unit->builder, LLVMTypeOf(like), slot, "");
}

static Acc join_chains(Column *column, const Reduce *reduce, Acc acc) {
    Unit *unit = column->unit;
    Acc parts[8];
    gpu_barrier(unit);
    LLVMTypeRef type = LLVMTypeOf(acc.value);
    LLVMBuildStore(unit->builder, acc.value, chain_slot(column, column->shared, type, column->y));
    if (acc.index) {
        type = LLVMTypeOf(acc.index);
        LLVMBuildStore(unit->builder, acc.index,
                       chain_slot(column, column->shared_index, type, column->y));
    }
    gpu_barrier(unit);
    for (uint32_t y = 0; y < 8; y++) {
        parts[y] = (Acc){read_chain(column, column->shared, acc.value, y), NULL};
        if (acc.index) parts[y].index = read_chain(column, column->shared_index, acc.index, y);
    }
    for (uint32_t n = 8; n > 1; n /= 2)
        for (uint32_t i = 0; i < n / 2; i++)
            parts[i] = acc_combine(column->lower, reduce, parts[2 * i], parts[2 * i + 1]);
    return parts[0];
}

/* Passes over elements. */

static Point point_at(const void *user, LLVMValueRef at, int64_t ahead) {
    const Column *column = user;
    const Kernel *kernel = column->kernel;
    LLVMBuilderRef builder = column->unit->builder;
    Point point = point_inside(&column->point);
    LLVMValueRef element = LLVMBuildAdd(builder, column->first, at, "");
    element = LLVMBuildAdd(builder, element, lower_index_const(column->lower, ahead), "");
    lower_split(column->lower, element, kernel->first_reduced, kernel->n_reduced, &point);
    point.active = NULL; /* without columns there is no element */
    return point;
}

static void pass_elements(Column *column, const Stage *stage, Acc *accs) {
    Lower *lower = column->lower;
    gpu_stage_begin(lower, stage, accs);
    LLVMValueRef none = lower_index_const(lower, 0);
    LLVMValueRef count =
        LLVMBuildSelect(column->unit->builder, column->exists, column->length, none, "");
    GpuElements elements = {.lower = lower,
                            .own = column->chain,
                            .count = count,
                            .stride = column->order.n_chains,
                            .unroll = column->sched->unroll,
                            .at = point_at,
                            .user = column};
    gpu_each_element(&elements, stage, accs);
}

/* One pass per segment; partial p goes to chain p mod 8 of a second set of accumulators. */
static void pass_segments(Column *column, const Stage *stage, Acc *accs) {
    Lower *lower = column->lower;
    Unit *unit = column->unit;
    LLVMBuilderRef builder = unit->builder;
    LLVMValueRef zero = lower_index_const(lower, 0), n = column->length;
    LLVMValueRef length = lower_index_const(lower, column->order.segment_elems);
    LLVMValueRef values[2 * MAX_STAGE_VALUES];
    Acc outer[MAX_STAGE_VALUES];
    gpu_stage_begin(lower, stage, outer);
    uint32_t n_values = acc_flatten(outer, stage->reduces.n, values);
    Loop loop = loop_begin(unit, lower->function, zero, n, length);
    loop_carry(unit, &loop, values, n_values);
    acc_unflatten(outer, stage->reduces.n, values);
    LLVMValueRef rest = LLVMBuildSub(builder, n, loop.index, "");
    column->first = loop.index;
    column->length = gpu_segment_count(lower, rest);
    pass_elements(column, stage, accs);
    LLVMValueRef segment = LLVMBuildUDiv(builder, loop.index, length, "");
    LLVMValueRef chain =
        LLVMBuildAnd(builder, segment, lower_index_const(lower, column->order.n_chains - 1), "");
    LLVMValueRef is_own = LLVMBuildICmp(builder, LLVMIntEQ, chain, column->chain, "");
    for (uint32_t i = 0; i < stage->reduces.n; i++) {
        const Reduce *reduce = &column->kernel->reduces.data[stage->reduces.data[i]];
        Acc partial = join_chains(column, reduce, accs[i]);
        Acc joined = acc_combine(lower, reduce, outer[i], partial);
        outer[i] = acc_select(lower, is_own, joined, outer[i]);
    }
    acc_flatten(outer, stage->reduces.n, values);
    loop_end_carry(unit, &loop, values, n_values);
    acc_unflatten(outer, stage->reduces.n, values);
    column->first = zero;
    column->length = n;
    for (uint32_t i = 0; i < stage->reduces.n; i++) accs[i] = outer[i];
}

static void run_stage(Column *column, const Stage *stage) {
    Acc accs[MAX_STAGE_VALUES];
    gpu_stage_prepare(&column->point, stage);
    if (gpu_stage_has_segments(column->lower, stage))
        pass_segments(column, stage, accs);
    else
        pass_elements(column, stage, accs);
    for (uint32_t i = 0; i < stage->reduces.n; i++) {
        uint32_t slot = stage->reduces.data[i];
        acc_finish(&column->point, slot,
                   join_chains(column, &column->kernel->reduces.data[slot], accs[i]));
    }
}

static void store_columns(Column *column) {
    Unit *unit = column->unit;
    const Kernel *kernel = column->kernel;
    if (!kernel->row_stores.n) return;
    point_prepare_stores(&column->point, kernel->row_stores.data, kernel->row_stores.n);
    LLVMValueRef is_first =
        LLVMBuildICmp(unit->builder, LLVMIntEQ, column->y, unit_int(unit->i32, 0), "");
    LLVMValueRef writes = LLVMBuildAnd(unit->builder, is_first, column->exists, "");
    If leads = if_begin(unit, column->lower->function, writes);
    point_store_all(&column->point, kernel->row_stores.data, kernel->row_stores.n);
    if_end(unit, &leads);
}

static void make_shared(Column *column) {
    bool has_f64 = false, has_arg = false;
    for (uint32_t i = 0; i < column->kernel->reduces.n; i++) {
        has_f64 = has_f64 || column->kernel->reduces.data[i].acc == DT_F64;
        has_arg = has_arg || column->kernel->reduces.data[i].is_arg;
    }
    uint32_t n = 8 * WARP * column->sched->lanes;
    LLVMTypeRef type = has_f64 ? unit_value_type(column->unit, DT_F64, 1) : column->unit->f32;
    column->shared = gpu_shared(column->unit, type, n, "chains");
    if (has_arg) column->shared_index = gpu_shared(column->unit, column->unit->i32, n, "indices");
}

void template_gpu_column(Lower *lower) {
    Column column = {.lower = lower,
                     .unit = lower->unit,
                     .kernel = lower->kernel,
                     .sched = &lower->variant->sched,
                     .order = reduce_order(FORM_COLUMN, DEVICE_GPU)};
    if (!lower->is_turn) lower->read_once = kernel_args_read_once(lower->plan, lower->kernel);
    column.point = point_new(lower, column.sched->lanes);
    find_place(&column);
    make_shared(&column);
    for (uint32_t i = 0; i < column.kernel->stages.n; i++)
        run_stage(&column, &column.kernel->stages.data[i]);
    store_columns(&column);
}
