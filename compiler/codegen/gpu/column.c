/* GPU columns: a block is `team` threads along the columns, lanes each, by 8 along the reduced
 * elements, by groups. Thread row y of a group takes elements y, y + 8, ... of its segment: it is
 * chain y of ReduceOrder, and the tree over the eight runs through shared memory. Groups have
 * segments side by side: of a partial each its own, else those of one round, whose results all
 * groups then take into the chains of the next level. */
#include "codegen/gpu/stage.h"

enum { N_CHAINS = 8 };

/* A place in shared memory for accumulators of some type; of i32 for indices, NULL without. */
typedef struct Exchange {
    LLVMValueRef values, indices;
} Exchange;

typedef struct Column {
    Lower *lower;
    Unit *unit;
    const Kernel *kernel;
    const Sched *sched;
    ReduceOrder order;
    uint32_t n_groups;
    LLVMValueRef x, y, z;       /* i32: along columns, chain, group */
    LLVMValueRef chain;         /* index_type: y */
    LLVMValueRef exists;        /* i1: whether the thread has columns (and a segment) */
    LLVMValueRef first, length; /* index_type: reduced elements (of the segment) */
    Point point;
    Exchange *chains; /* [groups][8][team][lanes] for each reduction; one for all, of the widest
                       * accumulator, where they take turns */
    bool take_turns;
    Exchange sums; /* [groups][team][lanes], of segments side by side */
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
    LLVMValueRef has_columns = LLVMBuildICmp(builder, LLVMIntULT, step, n_steps, "");
    column->exists =
        column->exists ? LLVMBuildAnd(builder, column->exists, has_columns, "") : has_columns;
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

/* Of a partial: the block's segments, one a group. Returns the number of its strip of columns. */
static LLVMValueRef find_segment(Column *column, LLVMValueRef block) {
    Lower *lower = column->lower;
    LLVMBuilderRef builder = column->unit->builder;
    const Kernel *kernel = column->kernel;
    IndexTab *tab = scalartab_indices(kernel->scalars);
    int64_t strip = (int64_t)column->sched->lanes * column->sched->threads_per_row;
    DimId strips = dim_ceil_div(indextab_dims(tab), kernel_n_rows(kernel), strip);
    LLVMValueRef n_strips = lower_dim(lower, strips);
    LLVMValueRef segment = LLVMBuildUDiv(builder, block, n_strips, "");
    if (column->n_groups > 1) {
        LLVMValueRef n_groups = lower_index_const(lower, column->n_groups);
        segment = LLVMBuildMul(builder, segment, n_groups, "");
        segment = LLVMBuildAdd(builder, segment, gpu_index(column->lower, column->z), "");
        LLVMValueRef n = lower_dim(lower, index_axis_extent(tab, kernel->segment_axis));
        column->exists = LLVMBuildICmp(builder, LLVMIntULT, segment, n, "");
    }
    column->point.axis[kernel->segment_axis] = segment;
    LLVMValueRef length = lower_index_const(lower, column->order.segment_elems);
    column->first = LLVMBuildMul(builder, segment, length, "");
    LLVMValueRef rest = LLVMBuildSub(builder, column->length, column->first, "");
    column->length = gpu_segment_count(lower, rest);
    return LLVMBuildURem(builder, block, n_strips, "");
}

static void find_place(Column *column) {
    Lower *lower = column->lower;
    Unit *unit = column->unit;
    LLVMBuilderRef builder = unit->builder;
    uint32_t threads_per_row = column->sched->threads_per_row;
    LLVMValueRef thread = gpu_thread(unit), block = gpu_block(lower);
    column->x = LLVMBuildAnd(builder, thread, unit_i32(unit, (int64_t)threads_per_row - 1), "");
    LLVMValueRef row = LLVMBuildUDiv(builder, thread, unit_i32(unit, threads_per_row), "");
    column->y =
        column->n_groups > 1 ? LLVMBuildAnd(builder, row, unit_i32(unit, N_CHAINS - 1), "") : row;
    column->z = LLVMBuildUDiv(builder, row, unit_i32(unit, N_CHAINS), "");
    column->chain = gpu_index(column->lower, column->y);
    column->first = lower_index_const(lower, 0);
    column->length = lower_dim(lower, kernel_n_reduced(column->kernel));
    if (column->kernel->segment_axis != NO_AXIS) block = find_segment(column, block);
    LLVMValueRef step = LLVMBuildMul(builder, block, lower_index_const(lower, threads_per_row), "");
    step = LLVMBuildAdd(builder, step, gpu_index(column->lower, column->x), "");
    find_columns(column, step);
}

/* Accumulators in shared memory. */

/* Number `row` of those of a thread's columns. */
static LLVMValueRef exchange_at(const Column *column, LLVMValueRef array, LLVMTypeRef type,
                                LLVMValueRef row) {
    Unit *unit = column->unit;
    LLVMValueRef threads_per_row = unit_i32(unit, column->sched->threads_per_row);
    LLVMValueRef at = LLVMBuildMul(unit->builder, row, threads_per_row, "");
    at = LLVMBuildAdd(unit->builder, at, column->x, "");
    return gpu_shared_at(unit, array, type, at);
}

static void exchange_put(const Column *column, const Exchange *exchange, LLVMValueRef row,
                         Acc acc) {
    LLVMBuilderRef builder = column->unit->builder;
    LLVMTypeRef type = LLVMTypeOf(acc.value);
    LLVMBuildStore(builder, acc.value, exchange_at(column, exchange->values, type, row));
    if (!acc.index) return;
    type = LLVMTypeOf(acc.index);
    LLVMBuildStore(builder, acc.index, exchange_at(column, exchange->indices, type, row));
}

static Acc exchange_get(const Column *column, const Exchange *exchange, LLVMValueRef row,
                        Acc like) {
    LLVMBuilderRef builder = column->unit->builder;
    LLVMTypeRef type = LLVMTypeOf(like.value);
    LLVMValueRef place = exchange_at(column, exchange->values, type, row);
    Acc acc = {LLVMBuildLoad2(builder, type, place, ""), NULL};
    if (!like.index) return acc;
    type = LLVMTypeOf(like.index);
    place = exchange_at(column, exchange->indices, type, row);
    acc.index = LLVMBuildLoad2(builder, type, place, "");
    return acc;
}

/* Row `at` (i32) of the group's eight. */
static LLVMValueRef group_row(const Column *column, LLVMValueRef at) {
    Unit *unit = column->unit;
    LLVMValueRef row = LLVMBuildMul(unit->builder, column->z, unit_i32(unit, N_CHAINS), "");
    return LLVMBuildAdd(unit->builder, row, at, "");
}

static const Exchange *chains_of(const Column *column, uint32_t slot) {
    return &column->chains[column->take_turns ? 0 : slot];
}

static void put_chain(const Column *column, uint32_t slot, Acc acc) {
    exchange_put(column, chains_of(column, slot), group_row(column, column->y), acc);
}

/* The eight chains of the thread's columns and group, joined. */
static Acc get_chains(const Column *column, uint32_t slot, Acc like) {
    const Reduce *reduce = &column->kernel->reduces.data[slot];
    Acc parts[N_CHAINS];
    for (uint32_t y = 0; y < N_CHAINS; y++) {
        LLVMValueRef row = group_row(column, unit_i32(column->unit, y));
        parts[y] = exchange_get(column, chains_of(column, slot), row, like);
    }
    for (uint32_t n = N_CHAINS; n > 1; n /= 2)
        for (uint32_t i = 0; i < n / 2; i++)
            parts[i] = acc_combine(column->lower, reduce, parts[2 * i], parts[2 * i + 1]);
    return parts[0];
}

/* For all threads alike. */
static Acc join_chains(const Column *column, uint32_t slot, Acc acc) {
    gpu_barrier(column->unit);
    put_chain(column, slot, acc);
    gpu_barrier(column->unit);
    return get_chains(column, slot, acc);
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

/* Segments. Level 0 of a sum is elements, level k + 1 the results of runs of segment_elems^(k+1).
 */

static int64_t run_elems(const Column *column, uint32_t level) {
    int64_t n = 1;
    while (level-- > 0) n *= column->order.segment_elems;
    return n;
}

/* How many levels there can be. */
static uint32_t n_levels(const Column *column) {
    int64_t n = gpu_most_reduced(column->lower), segment = column->order.segment_elems;
    uint32_t levels = 1;
    for (; n > segment; levels++) n = n / segment + (n % segment != 0);
    return levels;
}

/* Part `number` (index_type) of a level, `part` for all threads of the block, to its chain. */
static Acc take_part(const Column *column, const Reduce *reduce, Acc outer, LLVMValueRef number,
                     Acc part) {
    Lower *lower = column->lower;
    LLVMBuilderRef builder = column->unit->builder;
    LLVMValueRef mask = lower_index_const(lower, N_CHAINS - 1);
    LLVMValueRef chain = LLVMBuildAnd(builder, number, mask, "");
    LLVMValueRef is_own = LLVMBuildICmp(builder, LLVMIntEQ, chain, column->chain, "");
    return acc_select(lower, is_own, acc_combine(lower, reduce, outer, part), outer);
}

/* The groups' parts, of which the first is part `number`, to their chains in ascending order: one
 * of a group that had no elements is the identity. */
static Acc take_groups(const Column *column, const Reduce *reduce, Acc outer, LLVMValueRef number,
                       Acc part) {
    Unit *unit = column->unit;
    LLVMBuilderRef builder = unit->builder;
    LLVMValueRef zero = unit_i32(unit, 0);
    LLVMValueRef leads = LLVMBuildICmp(builder, LLVMIntEQ, column->y, zero, "");
    If one = if_begin(unit, column->lower->function, leads);
    exchange_put(column, &column->sums, column->z, part);
    if_end(unit, &one);
    gpu_barrier(unit);
    uint32_t n = column->n_groups;
    for (uint32_t first = 0; first < n; first += N_CHAINS) {
        LLVMValueRef at = LLVMBuildAdd(builder, column->y, unit_i32(unit, first), "");
        if (n < N_CHAINS) at = LLVMBuildAnd(builder, at, unit_i32(unit, n - 1), "");
        Acc theirs = exchange_get(column, &column->sums, at, part);
        LLVMValueRef group = unit_index_cast(unit, at, column->lower->index_type);
        group = LLVMBuildAdd(builder, number, group, "");
        outer = n < N_CHAINS ? take_part(column, reduce, outer, group, theirs)
                             : acc_combine(column->lower, reduce, outer, theirs);
    }
    return outer;
}

static LLVMValueRef at_most(const Column *column, LLVMValueRef rest, int64_t limit) {
    LLVMBuilderRef builder = column->unit->builder;
    LLVMValueRef most = lower_index_const(column->lower, limit);
    LLVMValueRef is_less = LLVMBuildICmp(builder, LLVMIntSLT, rest, most, "");
    return LLVMBuildSelect(builder, is_less, rest, most, "");
}

static void fold(Column *column, const Stage *stage, uint32_t level, Acc *accs);

/* One step of a level's loop: the runs from `at` (of the level's elements) on, one a group. */
static void fold_runs(Column *column, const Stage *stage, uint32_t level, LLVMValueRef at,
                      Acc *outer) {
    LLVMBuilderRef builder = column->unit->builder;
    Acc accs[MAX_STAGE_VALUES];
    LLVMValueRef first = column->first, length = column->length, own = at;
    int64_t run = run_elems(column, level);
    bool in_groups = level == 1 && column->n_groups > 1;
    LLVMValueRef run_length = lower_index_const(column->lower, run);
    if (in_groups) {
        own = LLVMBuildMul(builder, gpu_index(column->lower, column->z), run_length, "");
        own = LLVMBuildAdd(builder, at, own, "");
    }
    column->first = LLVMBuildAdd(builder, first, own, "");
    LLVMValueRef rest = LLVMBuildSub(builder, length, own, "");
    column->length = at_most(column, rest, run);
    fold(column, stage, level - 1, accs);
    LLVMValueRef number = LLVMBuildUDiv(builder, at, run_length, "");
    for (uint32_t i = 0; i < stage->reduces.n; i++) {
        const Reduce *reduce = stage_reduce(column->kernel, stage, i);
        Acc part = join_chains(column, stage->reduces.data[i], accs[i]);
        outer[i] = in_groups ? take_groups(column, reduce, outer[i], number, part)
                             : take_part(column, reduce, outer[i], number, part);
    }
    column->first = first;
    column->length = length;
}

/* The column's elements from `first` on into the thread's chain of a level. */
static void fold(Column *column, const Stage *stage, uint32_t level, Acc *accs) {
    Lower *lower = column->lower;
    Unit *unit = column->unit;
    if (level == 0) {
        pass_elements(column, stage, accs);
        return;
    }
    gpu_stage_begin(lower, stage, accs);
    int64_t step = run_elems(column, level) * (level == 1 ? column->n_groups : 1);
    /* All threads walk the same runs, with or without columns: barriers are inside. */
    Loop loop = loop_begin(unit, lower->function, lower_index_const(lower, 0), column->length,
                           lower_index_const(lower, step));
    acc_loop_carry(unit, &loop, accs, stage->reduces.n, NULL);
    fold_runs(column, stage, level, loop.index, accs);
    acc_loop_end(unit, &loop, accs, stage->reduces.n, NULL);
}

static void store_columns(Column *column) {
    const Kernel *kernel = column->kernel;
    point_prepare_stores(&column->point, kernel->row_stores.data, kernel->row_stores.n);
    point_store_all(&column->point, kernel->row_stores.data, kernel->row_stores.n);
}

/* Those that store results: one thread for its columns, or of a partial one a group. */
static LLVMValueRef leads(const Column *column) {
    LLVMBuilderRef builder = column->unit->builder;
    bool is_partial = column->kernel->segment_axis != NO_AXIS;
    LLVMValueRef zero = unit_i32(column->unit, 0);
    LLVMValueRef row = is_partial ? column->y : LLVMBuildOr(builder, column->y, column->z, "");
    LLVMValueRef is_first = LLVMBuildICmp(builder, LLVMIntEQ, row, zero, "");
    return LLVMBuildAnd(builder, is_first, column->exists, "");
}

/* Results that nothing but the stores of a row need: those that store them join them alone, since
 * reads of shared memory by all threads would take as long as the loads of a few rows. */
static void finish_alone(Column *column, const Stage *stage, const Acc *accs, bool is_fresh) {
    Unit *unit = column->unit;
    if (!is_fresh) gpu_barrier(unit);
    for (uint32_t i = 0; i < stage->reduces.n; i++)
        put_chain(column, stage->reduces.data[i], accs[i]);
    gpu_barrier(unit);
    If first = if_begin(unit, column->lower->function, leads(column));
    for (uint32_t i = 0; i < stage->reduces.n; i++) {
        uint32_t slot = stage->reduces.data[i];
        acc_finish(&column->point, slot, get_chains(column, slot, accs[i]));
    }
    store_columns(column);
    if_end(unit, &first);
}

static void run_stage(Column *column, const Stage *stage) {
    Acc accs[MAX_STAGE_VALUES];
    gpu_stage_prepare(&column->point, stage);
    bool is_grouped = column->kernel->segment_axis == NO_AXIS && column->n_groups > 1;
    bool has_levels = is_grouped || gpu_stage_has_segments(column->lower, stage);
    fold(column, stage, has_levels ? n_levels(column) - 1 : 0, accs);
    if (column->kernel->stages.n == 1 && !column->take_turns) {
        finish_alone(column, stage, accs, !has_levels);
        return;
    }
    for (uint32_t i = 0; i < stage->reduces.n; i++) {
        uint32_t slot = stage->reduces.data[i];
        acc_finish(&column->point, slot, join_chains(column, slot, accs[i]));
    }
}

static void run_stages(Column *column) {
    const Kernel *kernel = column->kernel;
    for (uint32_t i = 0; i < kernel->stages.n; i++) run_stage(column, &kernel->stages.data[i]);
    if (!kernel->row_stores.n || (kernel->stages.n == 1 && !column->take_turns)) return;
    If first = if_begin(column->unit, column->lower->function, leads(column));
    store_columns(column);
    if_end(column->unit, &first);
}

static Exchange exchange_new(const Column *column, Dtype dtype, bool has_index, uint32_t n,
                             const char *name) {
    Unit *unit = column->unit;
    Exchange exchange = {gpu_shared(unit, unit_value_type(unit, dtype, 1), n, name), NULL};
    if (has_index) exchange.indices = gpu_shared(unit, unit->i32, n, "indices");
    return exchange;
}

static void make_shared(Column *column) {
    const Kernel *kernel = column->kernel;
    const Sched *sched = column->sched;
    uint32_t n = sched->threads * sched->lanes, n_reduces = kernel->reduces.n;
    bool has_f64 = false, has_arg = false;
    for (uint32_t i = 0; i < n_reduces; i++) {
        has_f64 = has_f64 || kernel->reduces.data[i].acc == DT_F64;
        has_arg = has_arg || kernel->reduces.data[i].is_arg;
    }
    Dtype widest = has_f64 ? DT_F64 : DT_F32;
    kernel_column_shared(kernel, sched, &column->take_turns);
    column->chains = arena_array(column->unit->arena, Exchange, n_reduces);
    for (uint32_t i = 0; i < (column->take_turns ? 1 : n_reduces); i++) {
        const Reduce *reduce = &kernel->reduces.data[i];
        column->chains[i] = column->take_turns
                                ? exchange_new(column, widest, has_arg, n, "chains")
                                : exchange_new(column, reduce->acc, reduce->is_arg, n, "chains");
    }
    if (column->n_groups > 1 && kernel->segment_axis == NO_AXIS)
        column->sums = exchange_new(column, widest, has_arg, n / N_CHAINS, "sums");
}

void template_gpu_column(Lower *lower) {
    const Sched *sched = &lower->variant->sched;
    Column column = {.lower = lower,
                     .unit = lower->unit,
                     .kernel = lower->kernel,
                     .sched = sched,
                     .order = reduce_order(FORM_COLUMN, DEVICE_GPU),
                     .n_groups = sched->threads / (sched->threads_per_row * N_CHAINS)};
    if (!lower->is_turn) lower->read_once = kernel_args_read_once(lower->plan, lower->kernel);
    column.point = point_new(lower, sched->lanes);
    find_place(&column);
    make_shared(&column);
    run_stages(&column);
}
