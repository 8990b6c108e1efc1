/* Code common to the GPU's row and column templates: one stage of a reduction kernel. */
#ifndef FUSEC_CODEGEN_GPU_STAGE_H
#define FUSEC_CODEGEN_GPU_STAGE_H

#include "codegen/gpu/gpu.h"

/* Computes now, at the point of a row, the values of the stage that depend on no reduced axis. */
void gpu_stage_prepare(Point *row, const Stage *stage);
/* Sets the accumulators to the identities of the stage's reductions. */
void gpu_stage_begin(const Lower *lower, const Stage *stage, Acc *accs);
/* Emits the stage's stores at a point. A caller visits all points whose loads should overlap first,
 * because no load moves past a store. */
void gpu_stage_store(Point *point, const Stage *stage);
/* The largest number of reduced elements for which the variant applies. */
int64_t gpu_most_reduced(const Lower *lower);
/* Whether the stage reduces segment by segment: an ordered sum over the whole row, which may be
 * longer than a segment. */
bool gpu_stage_has_segments(const Lower *lower, const Stage *stage);

/* min(rest, the length of a segment) */
Val gpu_segment_count(const Lower *lower, Val rest);

/* An array in shared memory for accumulators. `indices` has i32; it is NULL unless the accumulators
 * are those of an arg-reduction. */
typedef struct SharedAccs {
    Val values, indices;
} SharedAccs;
SharedAccs gpu_shared_accs(const Codegen *k, LLVMTypeRef type, bool has_index, uint32_t n,
                           const char *name);
/* Writes or reads element `at` (i32). An accumulator that is read has the type of `like`. */
void gpu_shared_accs_put(const Codegen *k, const SharedAccs *array, Val at, Acc acc);
Acc gpu_shared_accs_get(const Codegen *k, const SharedAccs *array, Val at, Acc like);

/* One thread's elements own, own + stride, ... below count, `unroll` of them in flight while there
 * are enough. `at` makes the point of the element `ahead` after `element`. */
typedef struct GpuElements {
    Lower *lower;
    Val own, count; /* index_type */
    int64_t stride;
    uint32_t unroll;
    Point (*at)(const void *user, Val element, int64_t ahead);
    const void *user;
} GpuElements;
void gpu_each_element(const GpuElements *elements, const Stage *stage, Acc *accs);

#endif
