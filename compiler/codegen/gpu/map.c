/* The template of maps. See template.h. */
#include "codegen/gpu/gpu.h"
#include "machine/tuning.h"

/* The point of step `u` of the thread; it is active if the block has that step. */
static Point map_step(Lower *lower, Val first, Val n_steps, uint32_t u) {
    const Codegen *k = lower->k;
    const Sched *sched = &lower->variant->sched;
    Point point = point_new(lower, sched->lanes);
    Val step = k_offset(k, first, (int64_t)u * sched->threads);
    point.active = k_ult(k, step, n_steps);
    lower_split_vectors(lower, step, &point);
    return point;
}

/* The grid is exact: many small blocks balance better over the machine than a loop in each block. A
 * thread has one step. It has a few steps if they are single elements, because a multiprocessor
 * starts only about eleven blocks per microsecond; then all loads come before the first store. */
void emit_gpu_map(Lower *lower) {
    Codegen *k = lower->k;
    const Kernel *kernel = lower->kernel;
    const Sched *sched = &lower->variant->sched;
    const Stage *stage = &kernel->stages.data[0];
    gpu_stream(lower);
    Val first = gpu_step(lower, sched->unroll);
    Val n_steps = k_udivi(k, lower_dim(lower, kernel_n_rows(kernel)), sched->lanes);
    Point points[SCHED_MAP_UNROLL];
    bool is_one = sched->unroll == 1;
    If exists;
    for (uint32_t u = 0; u < sched->unroll; u++) {
        points[u] = map_step(lower, first, n_steps, u);
        if (is_one) exists = if_begin(k, points[u].active);
        if (is_one) points[u].active = NULL;
        point_prepare_stores(&points[u], stage->stores.data, stage->stores.n);
    }
    for (uint32_t u = 0; u < sched->unroll; u++) {
        if (!is_one) exists = if_begin(k, points[u].active);
        point_store_all(&points[u], stage->stores.data, stage->stores.n);
        if_end(k, &exists);
    }
}
