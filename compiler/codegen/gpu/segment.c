/* GPU reductions of segments: a thread has a result (codegen/scalar/segment.h). See template.h. */
#include "codegen/gpu/gpu.h"
#include "codegen/scalar/segment.h"

void emit_gpu_segment(Lower *lower) {
    const Codegen *k = lower->k;
    const Kernel *kernel = lower->kernel;
    Point point = point_new(lower, 1);
    Val at = gpu_step(lower, 1);
    If exists = if_begin(k, k_ult(k, at, lower_dim(lower, kernel_n_rows(kernel))));
    lower_split(lower, at, 0, kernel->n_parallel, &point);
    segment_reduce(&point, segment_find(&point));
    if_end(k, &exists);
}
