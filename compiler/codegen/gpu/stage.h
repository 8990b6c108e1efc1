/* What the GPU's row and column templates share: a stage of a reduction kernel, pass by pass. */
#ifndef FUSEC_CODEGEN_GPU_STAGE_H
#define FUSEC_CODEGEN_GPU_STAGE_H

#include "codegen/gpu/gpu.h"

enum { MAX_STAGE_VALUES = 64 };

/* Computes now, at the point of a row, what the stage needs that depends on no reduced axis. */
void gpu_stage_prepare(Point *row, const Stage *stage);
/* Identities for the stage's reductions. */
void gpu_stage_begin(const Lower *lower, const Stage *stage, Acc *accs);
/* Stores what the stage stores at a point: after the visits of all points whose loads are to be
 * under way at once, since none moves past a store. */
void gpu_stage_store(Point *point, const Stage *stage);
/* The most reduced elements that the variant is for. */
int64_t gpu_most_reduced(const Lower *lower);
/* Whether the stage reduces segment by segment: ordered, whole, and possibly longer than one. */
bool gpu_stage_has_segments(const Lower *lower, const Stage *stage);

/* min(rest, the length of a segment) */
Val gpu_segment_count(const Lower *lower, Val rest);

/* One thread's elements: own, own + stride, ... below count, `unroll` of them in flight while they
 * last. `at` makes the point of the element `ahead` after `element`. */
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
