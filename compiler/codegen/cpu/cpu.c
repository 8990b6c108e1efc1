/* Loops, arrays and the order of summation. See cpu.h. */
#include "codegen/cpu/cpu.h"

enum { ARRAY_ALIGN_BYTES = 64 };

/* Loops. */

Loop cpu_unit_loop(Lower *lower, LLVMValueRef begin, LLVMValueRef end, uint32_t step) {
    const Unit *unit = lower->unit;
    if (lower->index_type != unit->i64) {
        begin = LLVMBuildTrunc(unit->builder, begin, lower->index_type, "");
        end = LLVMBuildTrunc(unit->builder, end, lower->index_type, "");
    }
    return loop_begin(unit, lower->function, begin, end, lower_index_const(lower, step));
}

uint32_t cpu_lanes(const Lower *lower) {
    IndexTab *tab = scalartab_indices(lower->kernel->scalars);
    if (lower->lane_axis == NO_AXIS) return 1;
    DimId extent = index_axis_extent(tab, lower->lane_axis);
    return dim_hi(indextab_dims(tab), extent) > 1 ? lower->variant->sched.lanes : 1;
}

bool cpu_is_multiple(const Lower *lower, DimId dim, uint32_t multiple) {
    IndexTab *tab = scalartab_indices(lower->kernel->scalars);
    return index_is_multiple(tab, index_dim(tab, dim), NO_AXIS, multiple);
}

LLVMValueRef cpu_at_most(const Lower *lower, LLVMValueRef rest, int64_t limit) {
    LLVMBuilderRef builder = lower->unit->builder;
    LLVMValueRef most = lower_index_const(lower, limit);
    LLVMValueRef is_less = LLVMBuildICmp(builder, LLVMIntULT, rest, most, "");
    return LLVMBuildSelect(builder, is_less, rest, most, "");
}

LLVMValueRef cpu_modulo(const Lower *lower, LLVMValueRef value, uint32_t n) {
    LLVMValueRef low_bits = lower_index_const(lower, (int64_t)n - 1);
    return LLVMBuildAnd(lower->unit->builder, value, low_bits, "");
}

static bool is_zero(LLVMValueRef value) {
    return LLVMIsAConstantInt(value) && LLVMIsNull(value);
}

LLVMValueRef cpu_lanes_below(const Lower *lower, LLVMValueRef n, uint32_t lanes) {
    const Unit *unit = lower->unit;
    LLVMValueRef *numbers = arena_array(unit->arena, LLVMValueRef, lanes);
    for (uint32_t i = 0; i < lanes; i++) numbers[i] = lower_index_const(lower, i);
    LLVMValueRef limit = unit_splat(unit, n, lanes);
    LLVMValueRef lane = LLVMConstVector(numbers, lanes);
    return LLVMBuildICmp(unit->builder, LLVMIntULT, lane, limit, "");
}

void cpu_each_step(Lower *lower, LLVMValueRef from, LLVMValueRef n, uint32_t lanes, bool is_whole,
                   CpuStep *step, void *user) {
    const Unit *unit = lower->unit;
    LLVMValueRef rest = cpu_modulo(lower, n, lanes);
    LLVMValueRef n_full = LLVMBuildSub(unit->builder, n, rest, "");
    LLVMValueRef to = LLVMBuildAdd(unit->builder, from, n_full, "");
    if (!is_zero(n_full)) {
        LLVMValueRef width = lower_index_const(lower, lanes);
        Loop loop = loop_begin(unit, lower->function, from, to, width);
        step(user, loop.index, NULL);
        loop_end(unit, &loop);
    }
    if (is_whole || lanes == 1 || is_zero(rest)) return;
    LLVMValueRef none = lower_index_const(lower, 0);
    LLVMValueRef is_left = LLVMBuildICmp(unit->builder, LLVMIntNE, rest, none, "");
    If left = if_begin(unit, lower->function, is_left);
    step(user, to, cpu_lanes_below(lower, rest, lanes));
    if_end(unit, &left);
}

/* Arrays. */

static LLVMValueRef stack_array(const Lower *lower, LLVMTypeRef type, int64_t n_elems) {
    const Unit *unit = lower->unit;
    LLVMBasicBlockRef here = unit_here(unit);
    unit_goto(unit, lower->entry);
    LLVMTypeRef array_type = LLVMArrayType2(type, (uint64_t)n_elems);
    LLVMValueRef array = LLVMBuildAlloca(unit->builder, array_type, "");
    LLVMSetAlignment(array, ARRAY_ALIGN_BYTES);
    unit_goto(unit, here);
    return array;
}

CpuArray cpu_array_new(Lower *lower, Dtype dtype, bool has_index, int64_t n_elems) {
    CpuArray array = {.dtype = dtype};
    array.values = stack_array(lower, unit_value_type(lower->unit, dtype, 1), n_elems);
    if (has_index) array.indices = stack_array(lower, lower->unit->i32, n_elems);
    return array;
}

LLVMValueRef cpu_memory_new(Lower *lower, Dtype dtype, int64_t n_elems) {
    return stack_array(lower, unit_memory_type(lower->unit, dtype, 1), n_elems);
}

/* Where element `at` lies, and the alignment of `lanes` values from there. */
static LLVMValueRef element(const Lower *lower, Dtype dtype, LLVMValueRef array, LLVMValueRef at) {
    LLVMTypeRef type = unit_value_type(lower->unit, dtype, 1);
    return LLVMBuildGEP2(lower->unit->builder, type, array, &at, 1, "");
}

CpuArray cpu_array_from(const Lower *lower, const CpuArray *array, LLVMValueRef at) {
    CpuArray from = {.dtype = array->dtype};
    from.values = element(lower, array->dtype, array->values, at);
    if (array->indices) from.indices = element(lower, DT_I32, array->indices, at);
    return from;
}

static uint32_t access_align(Dtype dtype, uint32_t lanes) {
    uint32_t bytes = lanes * dtype_bytes(dtype);
    return bytes < ARRAY_ALIGN_BYTES ? bytes : ARRAY_ALIGN_BYTES;
}

static LLVMValueRef load_lanes(const Lower *lower, Dtype dtype, LLVMValueRef array, LLVMValueRef at,
                               uint32_t lanes) {
    LLVMTypeRef type = unit_value_type(lower->unit, dtype, lanes);
    LLVMValueRef pointer = element(lower, dtype, array, at);
    LLVMValueRef load = LLVMBuildLoad2(lower->unit->builder, type, pointer, "");
    LLVMSetAlignment(load, access_align(dtype, lanes));
    return load;
}

static void store_lanes(const Lower *lower, Dtype dtype, LLVMValueRef array, LLVMValueRef at,
                        LLVMValueRef value, uint32_t lanes) {
    LLVMValueRef pointer = element(lower, dtype, array, at);
    LLVMValueRef store = LLVMBuildStore(lower->unit->builder, value, pointer);
    LLVMSetAlignment(store, access_align(dtype, lanes));
}

Acc cpu_array_load(const Lower *lower, const CpuArray *array, LLVMValueRef at, uint32_t lanes) {
    Acc acc = {.value = load_lanes(lower, array->dtype, array->values, at, lanes)};
    if (array->indices) acc.index = load_lanes(lower, DT_I32, array->indices, at, lanes);
    return acc;
}

void cpu_array_store(const Lower *lower, const CpuArray *array, LLVMValueRef at, Acc acc,
                     uint32_t lanes) {
    store_lanes(lower, array->dtype, array->values, at, acc.value, lanes);
    if (array->indices) store_lanes(lower, DT_I32, array->indices, at, acc.index, lanes);
}

void cpu_array_fill(const Lower *lower, const CpuArray *array, int64_t n_elems, Acc acc,
                    uint32_t lanes) {
    enum { MAX_STRAIGHT = 16 };
    const Unit *unit = lower->unit;
    if (n_elems <= (int64_t)MAX_STRAIGHT * lanes) {
        for (int64_t i = 0; i < n_elems; i += lanes)
            cpu_array_store(lower, array, lower_index_const(lower, i), acc, lanes);
        return;
    }
    LLVMValueRef from = lower_index_const(lower, 0), to = lower_index_const(lower, n_elems);
    Loop loop = loop_begin(unit, lower->function, from, to, lower_index_const(lower, lanes));
    cpu_array_store(lower, array, loop.index, acc, lanes);
    loop_end(unit, &loop);
}

/* Order. */

CpuOrder cpu_stage_order(const Lower *lower, const Stage *stage, uint32_t lanes) {
    const Kernel *kernel = lower->kernel;
    ReduceOrder rule = reduce_order(kernel->form, DEVICE_CPU);
    CpuOrder order = {
        .n_chains = rule.n_chains, .n_levels = 1, .segment_elems = rule.segment_elems};
    int64_t most = variant_row_elems(kernel, lower->variant);
    if (!lower->variant->sched.is_wide && most > INT32_MAX) most = INT32_MAX;
    uint32_t least_chains = kernel->form == FORM_ROW ? lanes : 1;
    while (order.n_chains > least_chains && order.n_chains / 2 >= most) order.n_chains /= 2;
    if (kernel->segment_axis != NO_AXIS || !acc_stage_is_ordered(lower, stage)) return order;
    for (int64_t n = most; n > order.segment_elems; order.n_levels++)
        n = n / order.segment_elems + (n % order.segment_elems != 0);
    return order;
}

CpuSpan cpu_reduced_span(Lower *lower, const Point *unit_point) {
    const Kernel *kernel = lower->kernel;
    LLVMBuilderRef builder = lower->unit->builder;
    CpuSpan span = {lower_index_const(lower, 0), lower_dim(lower, kernel_n_reduced(kernel))};
    if (kernel->segment_axis == NO_AXIS) return span;
    int64_t segment_elems = reduce_order(kernel->form, DEVICE_CPU).segment_elems;
    span.begin = LLVMBuildMul(builder, unit_point->axis[kernel->segment_axis],
                              lower_index_const(lower, segment_elems), "");
    LLVMValueRef rest = LLVMBuildSub(builder, span.n, span.begin, "");
    span.n = cpu_at_most(lower, rest, segment_elems);
    return span;
}

/* Folds the span into the chains of `level`; run_elems is segment_elems^level. */
static void fold_level(Lower *lower, CpuOrder order, const CpuFold *fold, uint32_t level,
                       int64_t run_elems, CpuSpan span) {
    const Unit *unit = lower->unit;
    LLVMBuilderRef builder = unit->builder;
    fold->clear(fold->user, level);
    if (level == 0) {
        fold->elements(fold->user, span);
        return;
    }
    LLVMValueRef zero = lower_index_const(lower, 0), one = lower_index_const(lower, 1);
    LLVMValueRef run = lower_index_const(lower, run_elems);
    LLVMValueRef n_full = LLVMBuildUDiv(builder, span.n, run, "");
    LLVMValueRef rest = LLVMBuildURem(builder, span.n, run, "");
    LLVMValueRef is_left = LLVMBuildICmp(builder, LLVMIntNE, rest, zero, "");
    LLVMValueRef n_left = LLVMBuildZExt(builder, is_left, lower->index_type, "");
    LLVMValueRef n_runs = LLVMBuildAdd(builder, n_full, n_left, "");
    Loop loop = loop_begin(unit, lower->function, zero, n_runs, one);
    LLVMValueRef done = LLVMBuildMul(builder, loop.index, run, "");
    LLVMValueRef ahead = LLVMBuildSub(builder, span.n, done, "");
    CpuSpan part = {LLVMBuildAdd(builder, span.begin, done, ""),
                    cpu_at_most(lower, ahead, run_elems)};
    fold_level(lower, order, fold, level - 1, run_elems / order.segment_elems, part);
    fold->join(fold->user, level, cpu_modulo(lower, loop.index, order.n_chains));
    loop_end(unit, &loop);
}

void cpu_fold_stage(Lower *lower, CpuOrder order, const CpuFold *fold, CpuSpan span) {
    int64_t run_elems = 1;
    for (uint32_t level = 1; level < order.n_levels; level++) run_elems *= order.segment_elems;
    fold_level(lower, order, fold, order.n_levels - 1, run_elems, span);
}

/* Values. */

CpuRoots cpu_stage_roots(const Lower *lower, const Stage *stage) {
    CpuRoots roots = {.n = 0};
    roots.ids =
        arena_array(lower->unit->arena, ScalarId, stage->reduces.n * (size_t)2 + stage->stores.n);
    for (uint32_t i = 0; i < stage->reduces.n; i++) {
        const Reduce *reduce = stage_reduce(lower->kernel, stage, i);
        roots.ids[roots.n++] = reduce->value;
        if (reduce->is_arg) roots.ids[roots.n++] = reduce->arg_index;
    }
    for (uint32_t i = 0; i < stage->stores.n; i++)
        roots.ids[roots.n++] = stage->stores.data[i].value;
    return roots;
}

uint32_t cpu_reduced_axes(const Kernel *kernel) {
    return ((1u << kernel->n_reduced) - 1) << kernel->first_reduced;
}
