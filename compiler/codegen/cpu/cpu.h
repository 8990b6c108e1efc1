/* What the CPU templates share: loops over work units and over lanes, arrays on the stack, and the
 * order of summation of plan/kernel.h.
 *
 * Everything here works in the kernel's index_type and never forms an index beyond an extent by
 * more than is stored in it, so that extents may reach the type's limit. */
#ifndef FUSEC_CODEGEN_CPU_CPU_H
#define FUSEC_CODEGEN_CPU_CPU_H

#include "codegen/scalar/acc.h"
#include "codegen/template.h"

/* Maps whose chunk_elems are no more than this take their units down the rows. */
enum { CPU_MAP_SHORT_RUN = 64 };

/* `for (unit = begin; unit < end; unit += step)`; ended by loop_end. */
Loop cpu_unit_loop(Lower *lower, Val begin, Val end, uint32_t step);

/* The schedule's lanes, or 1 along an axis of one element, which no address depends on. */
uint32_t cpu_lanes(const Lower *lower);
/* Whether the dim is a multiple of `multiple` wherever the variant applies. */
bool cpu_is_multiple(const Lower *lower, DimId dim, uint32_t multiple);
/* min(rest, limit), unsigned, for a constant limit. */
Val cpu_at_most(const Lower *lower, Val rest, int64_t limit);
/* `value & (n - 1)` for a power of two. */
Val cpu_modulo(const Lower *lower, Val value, uint32_t n);
/* Which of the lanes from 0 are below `n`. */
Val cpu_lanes_below(const Lower *lower, Val n, uint32_t lanes);

/* Emits one step of `lanes` elements at index `at`; those outside `mask` (NULL: none) do not exist.
 */
typedef void CpuStep(void *user, Val at, Val mask);
/* Steps through [from, from + n): a loop of full steps, then one masked step for what is left,
 * which is_whole rules out. `lanes` is a power of two. */
void cpu_each_step(Lower *lower, Val from, Val n, uint32_t lanes, bool is_whole, CpuStep *step,
                   void *user);

/* An array on the kernel's stack, of accumulators or of finished results of one slot. */
typedef struct CpuArray {
    Dtype dtype;         /* of values; not bool */
    Val values, indices; /* indices: i32, of arg-reductions, else NULL */
} CpuArray;
CpuArray cpu_array_new(Lower *lower, Dtype dtype, bool has_index, int64_t n_elems);
/* The array from element `at` on, a multiple of the lanes that are accessed. */
CpuArray cpu_array_from(const Lower *lower, const CpuArray *array, Val at);
/* Room on the kernel's stack for elements as memory has them. */
Val cpu_memory_new(Lower *lower, Dtype dtype, int64_t n_elems);
/* `lanes` neighbours from `at`, a multiple of lanes. */
Acc cpu_array_load(const Lower *lower, const CpuArray *array, Val at, uint32_t lanes);
void cpu_array_store(const Lower *lower, const CpuArray *array, Val at, Acc acc, uint32_t lanes);
/* Sets elements [0, n_elems) to `acc`, which has `lanes` lanes; n_elems is a multiple of them. */
void cpu_array_fill(const Lower *lower, const CpuArray *array, int64_t n_elems, Acc acc,
                    uint32_t lanes);

/* How a stage's elements are summed. Level 0 takes elements, level k + 1 the results of runs of
 * segment_elems^(k+1) elements; a stage whose bits do not hang on the order has level 0 alone. */
typedef struct CpuOrder {
    uint32_t n_chains; /* kept: no more than there can be elements, and a multiple of the lanes */
    uint32_t n_levels;
    int64_t segment_elems;
} CpuOrder;
CpuOrder cpu_stage_order(const Lower *lower, const Stage *stage, uint32_t lanes);

/* The reduced elements of a unit: all, or for a partial those of the point's segment. */
typedef struct CpuSpan {
    Val begin, n;
} CpuSpan;
CpuSpan cpu_reduced_span(Lower *lower, const Point *unit_point);

/* Walks the elements of a stage in order:
 *     clear(user, level)                   accumulators of the level become the identity
 *     elements(user, span)                 folds a segment into the chains of level 0
 *     join(user, level, at)                folds the finished chains of level - 1 into chain `at`
 * What is left is in the chains of the last level. */
typedef struct CpuFold {
    void *user;
    void (*clear)(void *user, uint32_t level);
    void (*elements)(void *user, CpuSpan span);
    void (*join)(void *user, uint32_t level, Val chain);
} CpuFold;
void cpu_fold_stage(Lower *lower, CpuOrder order, const CpuFold *fold, CpuSpan span);

/* Values that a stage's reductions and stores need. */
typedef struct CpuRoots {
    ScalarId *ids;
    uint32_t n;
} CpuRoots;
CpuRoots cpu_stage_roots(const Lower *lower, const Stage *stage);
/* Bit set of the kernel's reduced axes. */
uint32_t cpu_reduced_axes(const Kernel *kernel);

#endif
