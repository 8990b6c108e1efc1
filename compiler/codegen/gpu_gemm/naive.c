/* GEMMs without tiles: each thread has a few outputs, each one chain of fmas. Used for outer
 * products and for GEMMs smaller than a tile. */
#include "codegen/gpu/gpu.h"
#include "codegen/gpu_gemm/gemm.h"
#include "machine/tuning.h"

/* The number of the thread's output `u`. */
static Val element(Lower *lower, uint32_t u) {
    const Codegen *k = lower->k;
    const Sched *sched = &lower->variant->sched;
    Val first = gpu_step(lower, sched->unroll);
    return k_offset(k, first, (int64_t)u * sched->threads);
}

static Val multiply_add(const Codegen *k, Dtype acc, Val a, Val b, Val sum) {
    if (dtype_is_float(acc)) return math_fma(k, a, b, sum);
    Val product = k_mul(k, a, b);
    return k_add(k, sum, product);
}

static Val product_at(Point *point, Val k, Val sum) {
    const Reduce *reduce = &point->lower->kernel->reduces.data[0];
    Point at = point_inside(point);
    at.axis[point->lower->kernel->first_reduced] = k;
    Val left = gpu_gemm_to_acc(at.lower, reduce->lhs, point_value(&at, reduce->lhs));
    Val right = gpu_gemm_to_acc(at.lower, reduce->rhs, point_value(&at, reduce->rhs));
    return multiply_add(point->lower->k, reduce->acc, left, right, sum);
}

static Val sum_over_k(Point *point) {
    Lower *lower = point->lower;
    const Codegen *k = lower->k;
    const Reduce *reduce = &lower->kernel->reduces.data[0];
    Val sum = k_number(k, reduce->acc, 0);
    DimId n = kernel_n_reduced(lower->kernel);
    int64_t depth;
    if (dim_is_const(lower_dims(lower), n, &depth) && depth <= SCHED_NAIVE_STEPS) {
        for (int64_t axis_k = 0; axis_k < depth; axis_k++)
            sum = product_at(point, lower_index_const(lower, axis_k), sum);
        return sum;
    }
    Loop loop = loop_over(k, lower_dim(lower, n), 1);
    loop_carry(k, &loop, &sum, 1);
    sum = product_at(point, loop.index, sum);
    loop_end(k, &loop);
    return sum;
}

static Point element_point(Lower *lower, uint32_t u) {
    const Codegen *k = lower->k;
    const Kernel *kernel = lower->kernel;
    Point point = point_new(lower, 1);
    Val at = element(lower, u);
    point.active = k_ult(k, at, lower_dim(lower, kernel_n_rows(kernel)));
    lower_split(lower, at, 0, kernel->n_parallel, &point);
    point.results[0] = gpu_gemm_rounded(lower, sum_over_k(&point));
    point_prepare_stores(&point, kernel->row_stores.data, kernel->row_stores.n);
    return point;
}

void emit_gpu_gemm_naive(Lower *lower) {
    const Codegen *k = lower->k;
    const Kernel *kernel = lower->kernel;
    uint32_t unroll = lower->variant->sched.unroll;
    Point points[SCHED_MAP_UNROLL];
    for (uint32_t u = 0; u < unroll; u++) points[u] = element_point(lower, u);
    for (uint32_t u = 0; u < unroll; u++) {
        If exists = if_begin(k, points[u].active);
        point_store_all(&points[u], kernel->row_stores.data, kernel->row_stores.n);
        if_end(k, &exists);
    }
}
