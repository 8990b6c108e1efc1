/* Stages of GPU reductions. See stage.h. */
#include "codegen/gpu/stage.h"

static const Reduce *reduce_of(const Lower *lower, const Stage *stage, uint32_t i) {
    return stage_reduce(lower->kernel, stage, i);
}

void gpu_stage_prepare(Point *row, const Stage *stage) {
    const Lower *lower = row->lower;
    const Kernel *kernel = lower->kernel;
    ScalarId roots[3 * MAX_STAGE_VALUES];
    uint32_t n = 0, inner = ((1u << kernel->n_reduced) - 1) << kernel->first_reduced;
    if (stage->reduces.n + stage->stores.n > MAX_STAGE_VALUES)
        ice(lower->k->arena, "stage of more than %d values", MAX_STAGE_VALUES);
    for (uint32_t i = 0; i < stage->reduces.n; i++) {
        roots[n++] = reduce_of(lower, stage, i)->value;
        roots[n++] = reduce_of(lower, stage, i)->arg_index;
    }
    for (uint32_t i = 0; i < stage->stores.n; i++) roots[n++] = stage->stores.data[i].value;
    point_prepare(row, roots, n, inner);
}

void gpu_stage_begin(const Lower *lower, const Stage *stage, Acc *accs) {
    for (uint32_t i = 0; i < stage->reduces.n; i++)
        accs[i] = acc_identity(lower, reduce_of(lower, stage, i), lower->variant->sched.lanes);
}

/* Adds the elements at a point to the accumulators, and computes the values that the stage stores
 * there. */
static void gpu_stage_visit(Point *point, const Stage *stage, Acc *accs) {
    for (uint32_t i = 0; i < stage->reduces.n; i++) {
        const Reduce *reduce = reduce_of(point->lower, stage, i);
        Acc element = acc_element(point, reduce);
        accs[i] = acc_take(point->lower, reduce, accs[i], element);
    }
    point_prepare_stores(point, stage->stores.data, stage->stores.n);
}

void gpu_stage_store(Point *point, const Stage *stage) {
    point_store_all(point, stage->stores.data, stage->stores.n);
}

int64_t gpu_most_reduced(const Lower *lower) {
    return variant_row_elems(lower->kernel, lower->variant);
}

bool gpu_stage_has_segments(const Lower *lower, const Stage *stage) {
    const Kernel *kernel = lower->kernel;
    return kernel->segment_axis == NO_AXIS && acc_stage_is_ordered(lower, stage) &&
           gpu_most_reduced(lower) > form_info(kernel->form)->segment_elems;
}

Val gpu_segment_count(const Lower *lower, Val rest) {
    int64_t segment = form_info(lower->kernel->form)->segment_elems;
    const Codegen *k = lower->k;
    Val length = lower_index_const(lower, segment);
    return k_select(k, k_slt(k, rest, length), rest, length);
}

SharedAccs gpu_shared_accs(const Codegen *k, LLVMTypeRef type, bool has_index, uint32_t n,
                           const char *name) {
    SharedAccs array = {.values = gpu_shared(k, type, n, name)};
    if (has_index) array.indices = gpu_shared(k, k->i32, n, "indices");
    return array;
}

void gpu_shared_accs_put(const Codegen *k, const SharedAccs *array, Val at, Acc acc) {
    k_store(k, acc.value, k_gep(k, LLVMTypeOf(acc.value), array->values, at));
    if (acc.index) k_store(k, acc.index, k_gep(k, LLVMTypeOf(acc.index), array->indices, at));
}

Acc gpu_shared_accs_get(const Codegen *k, const SharedAccs *array, Val at, Acc like) {
    LLVMTypeRef type = LLVMTypeOf(like.value);
    Acc acc = {.value = k_load(k, type, k_gep(k, type, array->values, at))};
    if (!like.index) return acc;
    type = LLVMTypeOf(like.index);
    acc.index = k_load(k, type, k_gep(k, type, array->indices, at));
    return acc;
}

enum { REST_UNROLL = 4 }; /* unroll of the loop over the rest */

/* A loop of `width` elements per iteration from `from`; returns where it stopped. */
static Val loop_of_width(const GpuElements *e, const Stage *stage, Acc *accs, Val from,
                         uint32_t width) {
    Lower *lower = e->lower;
    const Codegen *k = lower->k;
    int64_t reach = (int64_t)(width - 1) * e->stride;
    Val to = k_subi(k, e->count, reach);
    Loop loop = loop_begin(k, from, to, e->stride * width);
    Val next = from;
    acc_loop_carry(k, &loop, accs, stage->reduces.n);
    loop_carry(k, &loop, &next, 1);
    Point *points = arena_array(k->arena, Point, width);
    for (uint32_t u = 0; u < width; u++) {
        points[u] = e->at(e->user, loop.index, e->stride * u);
        gpu_stage_visit(&points[u], stage, accs);
    }
    for (uint32_t u = 0; u < width; u++) gpu_stage_store(&points[u], stage);
    next = k_add(k, loop.index, loop.step);
    loop_end(k, &loop);
    return next;
}

void gpu_each_element(const GpuElements *e, const Stage *stage, Acc *accs) {
    Val from = e->own;
    if (e->unroll > REST_UNROLL) from = loop_of_width(e, stage, accs, from, e->unroll);
    if (e->unroll > 1)
        from =
            loop_of_width(e, stage, accs, from, e->unroll < REST_UNROLL ? e->unroll : REST_UNROLL);
    loop_of_width(e, stage, accs, from, 1);
}
