/* Contractions with a k of at most one: a thread per element. Such products are outer products; the
 * other templates take the rest. */
#include "back/gpu.h"
#include "back/gpu_gemm.h"

static LLVMValueRef element(Lower *lower) {
    const Unit *unit = lower->unit;
    LLVMValueRef thread = gpu_thread(unit);
    if (lower->index_type != unit->i32)
        thread = LLVMBuildZExt(unit->builder, thread, lower->index_type, "");
    LLVMValueRef block = gpu_block(lower);
    LLVMValueRef threads = lower_index_const(lower, lower->variant->sched.threads);
    LLVMValueRef first = LLVMBuildMul(unit->builder, block, threads, "");
    return LLVMBuildAdd(unit->builder, first, thread, "");
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

/* One chain of multiply-adds, ascending in k. */
static LLVMValueRef sum_over_k(Point *point) {
    Lower *lower = point->lower;
    const Unit *unit = lower->unit;
    const Reduce *reduce = &lower->kernel->reduces.data[0];
    LLVMValueRef sum = unit_number(unit, reduce->acc, 0);
    LLVMValueRef zero = lower_index_const(lower, 0), one = lower_index_const(lower, 1);
    LLVMValueRef n = lower_dim(lower, kernel_n_reduced(lower->kernel));
    Loop loop = loop_begin(unit, lower->function, zero, n, one);
    loop_carry(unit, &loop, &sum, 1);
    Point at = point_inside(point);
    at.axis[lower->kernel->first_reduced] = loop.index;
    LLVMValueRef left = factor_at(&at, reduce->value, reduce->acc);
    LLVMValueRef right = factor_at(&at, reduce->factor, reduce->acc);
    sum = multiply_add(unit, reduce->acc, left, right, sum);
    loop_end_carry(unit, &loop, &sum, 1);
    return sum;
}

void template_gpu_gemm_plain(Lower *lower) {
    const Unit *unit = lower->unit;
    const Kernel *kernel = lower->kernel;
    const Reduce *reduce = &kernel->reduces.data[0];
    Point point = point_new(lower, 1);
    LLVMValueRef at = element(lower);
    LLVMValueRef total = lower_dim(lower, kernel_n_rows(kernel));
    point.active = LLVMBuildICmp(unit->builder, LLVMIntULT, at, total, "");
    lower_split(lower, at, 0, kernel->n_parallel, &point);
    LLVMValueRef sum = sum_over_k(&point);
    point.results[0] = convert_value(&unit->math, sum, unit_convert_type(reduce->acc),
                                     unit_convert_type(reduce->result));
    point_prepare_stores(&point, kernel->row_stores.data, kernel->row_stores.n);
    If exists = if_begin(unit, lower->function, point.active);
    point_store_all(&point, kernel->row_stores.data, kernel->row_stores.n);
    if_end(unit, &exists);
}
