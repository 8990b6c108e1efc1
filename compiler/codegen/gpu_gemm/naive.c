/* GEMMs without tiles: a thread for a few elements, each one chain of multiply-adds. Outer
 * products are such, and products that are too small for a tile. */
#include "codegen/gpu/gpu.h"
#include "codegen/gpu_gemm/gemm.h"

/* Of the thread's, `u` of those that its block has. */
static LLVMValueRef element(Lower *lower, uint32_t u) {
    const Unit *unit = lower->unit;
    const Sched *sched = &lower->variant->sched;
    LLVMValueRef thread = gpu_index(lower, gpu_thread(unit)), block = gpu_block(lower);
    LLVMValueRef of_block = lower_index_const(lower, (int64_t)sched->threads * sched->unroll);
    LLVMValueRef first = LLVMBuildMul(unit->builder, block, of_block, "");
    first = LLVMBuildAdd(unit->builder, first, thread, "");
    LLVMValueRef more = lower_index_const(lower, (int64_t)u * sched->threads);
    return u ? LLVMBuildAdd(unit->builder, first, more, "") : first;
}

static LLVMValueRef factor_at(Point *point, ScalarId id, Dtype acc) {
    const Unit *unit = point->lower->unit;
    Dtype dtype = scalar_get(point->lower->kernel->scalars, id)->dtype;
    return convert_value(&unit->math, point_value(point, id), unit_convert_type(dtype),
                         unit_convert_type(acc));
}

static LLVMValueRef multiply_add(const Unit *unit, Dtype acc, LLVMValueRef a, LLVMValueRef b,
                                 LLVMValueRef sum) {
    if (dtype_kind(acc) == KIND_FLOAT) return math_fma(&unit->math, a, b, sum);
    LLVMValueRef product = LLVMBuildMul(unit->builder, a, b, "");
    return LLVMBuildAdd(unit->builder, sum, product, "");
}

static LLVMValueRef product_at(Point *point, LLVMValueRef k, LLVMValueRef sum) {
    const Reduce *reduce = &point->lower->kernel->reduces.data[0];
    Point at = point_inside(point);
    at.axis[point->lower->kernel->first_reduced] = k;
    LLVMValueRef left = factor_at(&at, reduce->value, reduce->acc);
    LLVMValueRef right = factor_at(&at, reduce->factor, reduce->acc);
    return multiply_add(point->lower->unit, reduce->acc, left, right, sum);
}

static LLVMValueRef sum_over_k(Point *point) {
    Lower *lower = point->lower;
    const Unit *unit = lower->unit;
    const Reduce *reduce = &lower->kernel->reduces.data[0];
    LLVMValueRef sum = unit_number(unit, reduce->acc, 0);
    LLVMValueRef zero = lower_index_const(lower, 0), one = lower_index_const(lower, 1);
    DimId n = kernel_n_reduced(lower->kernel);
    int64_t depth;
    if (dim_is_const(lower_dims(lower), n, &depth) && depth <= NAIVE_MAX_WRITTEN) {
        for (int64_t k = 0; k < depth; k++)
            sum = product_at(point, lower_index_const(lower, k), sum);
        return sum;
    }
    Loop loop = loop_begin(unit, lower->function, zero, lower_dim(lower, n), one);
    loop_carry(unit, &loop, &sum, 1);
    sum = product_at(point, loop.index, sum);
    loop_end_carry(unit, &loop, &sum, 1);
    return sum;
}

static Point element_point(Lower *lower, uint32_t u) {
    const Unit *unit = lower->unit;
    const Kernel *kernel = lower->kernel;
    const Reduce *reduce = &kernel->reduces.data[0];
    Point point = point_new(lower, 1);
    LLVMValueRef at = element(lower, u);
    point.active =
        LLVMBuildICmp(unit->builder, LLVMIntULT, at, lower_dim(lower, kernel_n_rows(kernel)), "");
    lower_split(lower, at, 0, kernel->n_parallel, &point);
    LLVMValueRef sum = sum_over_k(&point);
    point.results[0] = convert_value(&unit->math, sum, unit_convert_type(reduce->acc),
                                     unit_convert_type(reduce->result));
    point_prepare_stores(&point, kernel->row_stores.data, kernel->row_stores.n);
    return point;
}

void template_gpu_gemm_plain(Lower *lower) {
    const Unit *unit = lower->unit;
    const Kernel *kernel = lower->kernel;
    uint32_t unroll = lower->variant->sched.unroll;
    Point points[MAP_MAX_UNROLL];
    for (uint32_t u = 0; u < unroll; u++) points[u] = element_point(lower, u);
    for (uint32_t u = 0; u < unroll; u++) {
        If exists = if_begin(unit, lower->function, points[u].active);
        point_store_all(&points[u], kernel->row_stores.data, kernel->row_stores.n);
        if_end(unit, &exists);
    }
}
