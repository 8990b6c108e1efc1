/* Loops, arrays and the order of summation. See cpu.h. */
#include "codegen/cpu/cpu.h"

#include <frt_manifest.h>

enum { ARRAY_ALIGN_BYTES = 64, MASKED_VECTOR_BYTES = 64 }; /* masks of AVX-512 */

/* Loops. */

Loop cpu_unit_loop(Lower *lower, Val begin, Val end, uint32_t step) {
    const Codegen *k = lower->k;
    if (lower->index_type != k->i64) {
        begin = k_trunc(k, begin, lower->index_type);
        end = k_trunc(k, end, lower->index_type);
    }
    return loop_begin(k, begin, end, step);
}

uint32_t cpu_lanes(const Lower *lower) {
    if (lower->lane_axis == NO_AXIS) return 1;
    DimId extent = kernel_axis_extent(lower->kernel, lower->lane_axis);
    return dim_hi(lower_dims(lower), extent) > 1 ? lower->variant->sched.lanes : 1;
}

bool cpu_is_multiple(const Lower *lower, DimId dim, uint32_t multiple) {
    IndexTab *tab = scalartab_indices(lower->kernel->scalars);
    return index_is_multiple(tab, index_dim(tab, dim), NO_AXIS, multiple);
}

Val cpu_at_most(const Lower *lower, Val rest, int64_t limit) {
    const Codegen *k = lower->k;
    Val most = lower_index_const(lower, limit);
    return k_select(k, k_ult(k, rest, most), rest, most);
}

Val cpu_modulo(const Lower *lower, Val value, uint32_t n) {
    return k_andi(lower->k, value, (int64_t)n - 1);
}

static bool is_zero(Val value) {
    return LLVMIsAConstantInt(value) && LLVMIsNull(value);
}

Val cpu_lanes_below(const Lower *lower, Val n, uint32_t lanes) {
    const Codegen *k = lower->k;
    Val *numbers = arena_array(k->arena, Val, lanes);
    for (uint32_t i = 0; i < lanes; i++) numbers[i] = lower_index_const(lower, i);
    Val limit = k_splat(k, n, lanes);
    Val lane = LLVMConstVector(numbers, lanes);
    return k_ult(k, lane, limit);
}

Val cpu_value(Point *point, ScalarId id, Dtype dtype) {
    Dtype own = scalar_get(point->lower->kernel->scalars, id)->dtype;
    return convert_value(point->lower->k, point_lanes(point, id), own, dtype);
}

void cpu_prefetch(const Codegen *k, Val pointer, uint32_t level) {
    Val args[4] = {pointer, k_i32(k, 0), k_i32(k, 4 - level), k_i32(k, 1)};
    LLVMTypeRef overload = k->ptr;
    k_intrinsic_of(k, "llvm.prefetch", &overload, 1, args, 4);
}

void cpu_each_step(Lower *lower, Val from, Val n, uint32_t lanes, bool is_whole, CpuStep *step,
                   void *user) {
    const Codegen *k = lower->k;
    Val rest = cpu_modulo(lower, n, lanes);
    Val n_full = k_sub(k, n, rest);
    Val to = k_add(k, from, n_full);
    if (!is_zero(n_full)) {
        Loop loop = loop_begin(k, from, to, lanes);
        step(user, loop.index, NULL);
        loop_end(k, &loop);
    }
    if (is_whole || lanes == 1 || is_zero(rest)) return;
    If left = if_begin(k, k_nei(k, rest, 0));
    step(user, to, cpu_lanes_below(lower, rest, lanes));
    if_end(k, &left);
}

void cpu_each_long_step(Lower *lower, Val from, Val n, uint32_t lanes, bool is_whole, CpuStep *step,
                        void *user) {
    const Codegen *k = lower->k;
    if (is_whole || lanes == 1 || k->target->vector_bytes < MASKED_VECTOR_BYTES) {
        cpu_each_step(lower, from, n, lanes, is_whole, step, user);
        return;
    }
    Val to = k_add(k, from, n);
    Loop loop = loop_begin(k, from, to, lanes);
    step(user, loop.index, cpu_lanes_below(lower, k_sub(k, to, loop.index), lanes));
    loop_end(k, &loop);
}

bool cpu_may_repeat(const Lower *lower) {
    const Kernel *kernel = lower->kernel;
    const bool *live = kernel_live_scalars(lower->k->arena, kernel);
    for (ScalarId id = 1; id <= scalar_count(kernel->scalars); id++) {
        const Scalar *s = scalar_get(kernel->scalars, id);
        if (live[id] && s->kind == SCALAR_LOAD && lower->may_change[lower_arg(lower, s->buffer)])
            return false;
    }
    return true;
}

void cpu_cover(Lower *lower, Val n, uint32_t lanes, bool may_repeat, CpuStep *step, void *user) {
    const Codegen *k = lower->k;
    Val zero = lower_index_const(lower, 0), last = k_subi(k, n, lanes);
    bool is_whole = is_zero(cpu_modulo(lower, n, lanes));
    if (is_whole || !may_repeat || !LLVMIsAConstantInt(n) || LLVMConstIntGetSExtValue(last) < 0) {
        cpu_each_step(lower, zero, n, lanes, is_whole, step, user);
        return;
    }
    Loop loop = loop_over(k, n, lanes);
    step(user, k_smin(k, loop.index, last), NULL);
    loop_end(k, &loop);
}

/* Arrays. */

/* Callers give a kernel this much stack, of which a part is for spilled registers and calls. */
enum { ARRAYS_BYTES = FRT_MAX_KERNEL_STACK_BYTES - (64 << 10) };

static Val stack_array(const Lower *lower, LLVMTypeRef type, uint32_t elem_bytes, int64_t n_elems) {
    Codegen *k = lower->k;
    k->n_stack_bytes += elem_bytes * n_elems + ARRAY_ALIGN_BYTES;
    if (k->n_stack_bytes > ARRAYS_BYTES)
        ice(k->arena, "kernel %s has %lld bytes of arrays on the stack, more than %d",
            lower->kernel->name, (long long)k->n_stack_bytes, ARRAYS_BYTES);
    LLVMBasicBlockRef here = k_here(k);
    k_goto(k, lower->entry);
    Val array = k_alloca(k, LLVMArrayType2(type, (uint64_t)n_elems));
    LLVMSetAlignment(array, ARRAY_ALIGN_BYTES);
    k_goto(k, here);
    return array;
}

CpuArray cpu_array_new(Lower *lower, Dtype dtype, bool has_index, int64_t n_elems) {
    CpuArray array = {.dtype = dtype};
    array.values =
        stack_array(lower, k_value_type(lower->k, dtype, 1), dtype_bytes(dtype), n_elems);
    if (has_index) array.indices = stack_array(lower, lower->k->i32, sizeof(int32_t), n_elems);
    return array;
}

Val cpu_memory_new(Lower *lower, Dtype dtype, int64_t n_elems) {
    return stack_array(lower, k_memory_type(lower->k, dtype, 1), dtype_bytes(dtype), n_elems);
}

/* Address of element `at` of an array of `dtype` values. */
static Val element(const Lower *lower, Dtype dtype, Val array, Val at) {
    return k_gep(lower->k, k_value_type(lower->k, dtype, 1), array, at);
}

CpuArray cpu_array_from(const Lower *lower, const CpuArray *array, Val at) {
    CpuArray from = {.dtype = array->dtype};
    from.values = element(lower, array->dtype, array->values, at);
    if (array->indices) from.indices = element(lower, DT_I32, array->indices, at);
    return from;
}

static uint32_t access_align(Dtype dtype, uint32_t lanes) {
    uint32_t bytes = lanes * dtype_bytes(dtype);
    return bytes < ARRAY_ALIGN_BYTES ? bytes : ARRAY_ALIGN_BYTES;
}

static Val load_lanes(const Lower *lower, Dtype dtype, Val array, Val at, uint32_t lanes) {
    Val pointer = element(lower, dtype, array, at);
    return k_load_aligned(lower->k, k_value_type(lower->k, dtype, lanes), pointer,
                          access_align(dtype, lanes));
}

static void store_lanes(const Lower *lower, Dtype dtype, Val array, Val at, Val value,
                        uint32_t lanes) {
    Val pointer = element(lower, dtype, array, at);
    k_store_aligned(lower->k, value, pointer, access_align(dtype, lanes));
}

Acc cpu_array_load(const Lower *lower, const CpuArray *array, Val at, uint32_t lanes) {
    Acc acc = {.value = load_lanes(lower, array->dtype, array->values, at, lanes)};
    if (array->indices) acc.index = load_lanes(lower, DT_I32, array->indices, at, lanes);
    return acc;
}

Acc cpu_array_update(const Lower *lower, const CpuArray *array, Val at, uint32_t lanes,
                     const Reduce *reduce) {
    Acc acc = cpu_array_load(lower, array, at, lanes);
    if (acc_is_ordered(lower, reduce)) return acc;
    acc.value = k_freeze(lower->k, acc.value);
    if (acc.index) acc.index = k_freeze(lower->k, acc.index);
    return acc;
}

void cpu_array_store(const Lower *lower, const CpuArray *array, Val at, Acc acc, uint32_t lanes) {
    store_lanes(lower, array->dtype, array->values, at, acc.value, lanes);
    if (array->indices) store_lanes(lower, DT_I32, array->indices, at, acc.index, lanes);
}

void cpu_array_fill(const Lower *lower, const CpuArray *array, int64_t n_elems, Acc acc,
                    uint32_t lanes) {
    enum { MAX_STRAIGHT = 16 };
    const Codegen *k = lower->k;
    if (n_elems <= (int64_t)MAX_STRAIGHT * lanes) {
        for (int64_t i = 0; i < n_elems; i += lanes)
            cpu_array_store(lower, array, lower_index_const(lower, i), acc, lanes);
        return;
    }
    Loop loop = loop_over(k, lower_index_const(lower, n_elems), lanes);
    cpu_array_store(lower, array, loop.index, acc, lanes);
    loop_end(k, &loop);
}

/* Order. */

CpuOrder cpu_stage_order(const Lower *lower, const Stage *stage, uint32_t lanes) {
    const Kernel *kernel = lower->kernel;
    ReduceOrder rule = reduce_order(kernel->form, lower->k->target->device);
    CpuOrder order = {
        .n_chains = rule.n_chains, .n_levels = 1, .segment_elems = rule.segment_elems};
    int64_t most = variant_row_elems(kernel, lower->variant);
    if (!lower->variant->sched.is_wide && most > INT32_MAX) most = INT32_MAX;
    uint32_t least_chains = kernel_lanes_reduce(kernel, &lower->variant->sched) ? lanes : 1;
    while (order.n_chains > least_chains && order.n_chains / 2 >= most) order.n_chains /= 2;
    if (kernel->segment_axis != NO_AXIS || !acc_stage_is_ordered(lower, stage)) return order;
    for (int64_t n = most; n > order.segment_elems; order.n_levels++)
        n = n / order.segment_elems + (n % order.segment_elems != 0);
    return order;
}

CpuArray *cpu_chains_new(Lower *lower, const Stage *stage, CpuOrder order, int64_t width) {
    uint32_t n = stage->reduces.n;
    CpuArray *chains = arena_array(lower->k->arena, CpuArray, order.n_levels * (size_t)n);
    for (uint32_t j = 0; j < order.n_levels * n; j++) {
        const Reduce *reduce = stage_reduce(lower->kernel, stage, j % n);
        chains[j] = cpu_array_new(lower, reduce->acc, reduce->is_arg, order.n_chains * width);
    }
    return chains;
}

CpuSpan cpu_whole_steps(Lower *lower, CpuSpan span, uint32_t lanes, CpuStep *step, void *user) {
    const Codegen *k = lower->k;
    Val rest = cpu_modulo(lower, span.n, lanes);
    Val n_full = k_sub(k, span.n, rest);
    cpu_each_step(lower, span.begin, n_full, lanes, true, step, user);
    return (CpuSpan){k_add(k, span.begin, n_full), rest};
}

CpuSpan cpu_reduced_span(Lower *lower, const Point *unit_point) {
    const Kernel *kernel = lower->kernel;
    const Codegen *k = lower->k;
    CpuSpan span = {lower_index_const(lower, 0), lower_dim(lower, kernel_n_reduced(kernel))};
    if (kernel->segment_axis == NO_AXIS) return span;
    int64_t segment_elems = form_info(kernel->form)->segment_elems;
    span.begin = k_muli(k, unit_point->axis[kernel->segment_axis], segment_elems);
    Val rest = k_sub(k, span.n, span.begin);
    span.n = cpu_at_most(lower, rest, segment_elems);
    return span;
}

CpuSpan cpu_lane_span(Lower *lower, Val unit, int64_t n_elems, Point *point) {
    const Codegen *k = lower->k;
    DimId extent = kernel_axis_extent(lower->kernel, lower->lane_axis);
    Val n_parts = lower_dim(lower, dim_ceil_div(lower_dims(lower), extent, n_elems));
    Val outer = k_udiv(k, unit, n_parts);
    if (lower->lane_axis > 0) lower_split(lower, outer, 0, lower->lane_axis, point);
    Val begin = k_muli(k, k_urem(k, unit, n_parts), n_elems);
    Val rest = k_sub(k, lower_dim(lower, extent), begin);
    return (CpuSpan){begin, cpu_at_most(lower, rest, n_elems)};
}

Point cpu_lane_point(const Point *unit, uint32_t lanes, Val at, Val mask) {
    Point point = point_inside(unit);
    point.lanes = lanes;
    point.mask = mask;
    point.axis[point.lower->lane_axis] = at;
    return point;
}

/* Folds the span into the chains of `level`. run_elems is segment_elems^level. */
static void fold_level(Lower *lower, CpuOrder order, const CpuFold *fold, uint32_t level,
                       int64_t run_elems, CpuSpan span) {
    const Codegen *k = lower->k;
    fold->clear(fold->user, level);
    if (level == 0) {
        fold->elements(fold->user, span);
        return;
    }
    Val n_full = k_udivi(k, span.n, run_elems);
    Val rest = k_uremi(k, span.n, run_elems);
    Val is_left = k_nei(k, rest, 0);
    Val n_left = k_zext(k, is_left, lower->index_type);
    Val n_runs = k_add(k, n_full, n_left);
    Loop loop = loop_over(k, n_runs, 1);
    Val done = k_muli(k, loop.index, run_elems);
    Val ahead = k_sub(k, span.n, done);
    CpuSpan part = {k_add(k, span.begin, done), cpu_at_most(lower, ahead, run_elems)};
    fold_level(lower, order, fold, level - 1, run_elems / order.segment_elems, part);
    fold->join(fold->user, level, cpu_modulo(lower, loop.index, order.n_chains));
    loop_end(k, &loop);
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
        arena_array(lower->k->arena, ScalarId, stage->reduces.n * (size_t)2 + stage->stores.n);
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
