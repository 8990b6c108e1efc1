/* Code common to the CPU templates: loops over work units and over lanes, arrays on the stack, and
 * the order of sums of lowering/order.h.
 *
 * All indices have the kernel's index_type. No index passes an extent by more than the stored
 * padding, so an extent may reach the type's limit. */
#ifndef FUSEC_CODEGEN_CPU_CPU_H
#define FUSEC_CODEGEN_CPU_CPU_H

#include "codegen/scalar/acc.h"
#include "codegen/template.h"

/* A map whose chunk_elems are at most this many walks its units down the rows. */
enum { CPU_MAP_SHORT_RUN = 64 };

/* Begins `for (unit = begin; unit < end; unit += step)`; loop_end ends it. */
Loop cpu_unit_loop(Lower *lower, Val begin, Val end, uint32_t step);

/* The lanes of the schedule; 1 along an axis of one element, on which no address depends. */
uint32_t cpu_lanes(const Lower *lower);
/* Whether the dim is a multiple of `multiple` in every run that the variant applies to. */
bool cpu_is_multiple(const Lower *lower, DimId dim, uint32_t multiple);
/* min(rest, limit), unsigned, for a constant limit. */
Val cpu_at_most(const Lower *lower, Val rest, int64_t limit);
/* `value & (n - 1)` for a power of two. */
Val cpu_modulo(const Lower *lower, Val value, uint32_t n);
/* A mask of the lanes below `n`, counted from 0. */
Val cpu_lanes_below(const Lower *lower, Val n, uint32_t lanes);

/* The scalar's value at the point, in lanes of the dtype. */
Val cpu_value(Point *point, ScalarId id, Dtype dtype);

/* Prefetches the line at `pointer`, which may be any address, into cache level 1 or 2. */
void cpu_prefetch(const Codegen *k, Val pointer, uint32_t level);

/* Emits one step of `lanes` elements at index `at`. Lanes outside `mask` do not exist; NULL: all
 * do. */
typedef void CpuStep(void *user, Val at, Val mask);
/* Steps through [from, from + n): a loop of full steps, then one masked step for the rest.
 * is_whole: there is no rest. `lanes` is a power of two. */
void cpu_each_step(Lower *lower, Val from, Val n, uint32_t lanes, bool is_whole, CpuStep *step,
                   void *user);
/* The same for steps whose code is long. Where masks cost no time, the steps of the loop have one
 * too, so the code is there once. */
void cpu_each_long_step(Lower *lower, Val from, Val n, uint32_t lanes, bool is_whole, CpuStep *step,
                        void *user);

/* Whether outputs may be computed and stored twice: the kernel reads none of the memory that it
 * writes. */
bool cpu_may_repeat(const Lower *lower);
/* Steps through [0, n). If it may repeat elements, the last step begins earlier rather than have a
 * mask, unless n is shorter than a step. */
void cpu_cover(Lower *lower, Val n, uint32_t lanes, bool may_repeat, CpuStep *step, void *user);

/* An array on the kernel's stack: accumulators, or the finished results of one slot. */
typedef struct CpuArray {
    Dtype dtype;         /* of the values; not bool */
    Val values, indices; /* indices: i32, for arg-reductions, else NULL */
} CpuArray;
CpuArray cpu_array_new(Lower *lower, Dtype dtype, bool has_index, int64_t n_elems);
/* The array from element `at` on, which is a multiple of the accessed lanes. */
CpuArray cpu_array_from(const Lower *lower, const CpuArray *array, Val at);
/* Allocates stack memory for elements in their memory type. */
Val cpu_memory_new(Lower *lower, Dtype dtype, int64_t n_elems);
/* Loads or stores `lanes` neighbouring elements from `at`, a multiple of lanes. */
Acc cpu_array_load(const Lower *lower, const CpuArray *array, Val at, uint32_t lanes);
void cpu_array_store(const Lower *lower, const CpuArray *array, Val at, Acc acc, uint32_t lanes);
/* Loads the reduction's accumulators, whose next values are stored at the same place. Of a loaded
 * value, a select between it and another one, and a store to its place LLVM makes a masked store.
 * On an AMD EPYC that takes 12 clocks, and the next load waits for it. */
Acc cpu_array_update(const Lower *lower, const CpuArray *array, Val at, uint32_t lanes,
                     const Reduce *reduce);
/* Sets elements [0, n_elems) to `acc`, which has `lanes` lanes. n_elems is a multiple of lanes. */
void cpu_array_fill(const Lower *lower, const CpuArray *array, int64_t n_elems, Acc acc,
                    uint32_t lanes);

/* The order in which a stage's elements are summed. Level 0 takes elements; level k + 1 takes the
 * results of runs of segment_elems^(k+1) elements. A stage whose bits do not depend on the order
 * has level 0 alone. */
typedef struct CpuOrder {
    uint32_t n_chains; /* chains in use: at most the number of elements, and a multiple of the
                        * lanes */
    uint32_t n_levels;
    int64_t segment_elems;
} CpuOrder;
CpuOrder cpu_stage_order(const Lower *lower, const Stage *stage, uint32_t lanes);
/* The stage's chains: those of reduction i at level k are array k * n reductions + i, each
 * [n_chains,width]. */
CpuArray *cpu_chains_new(Lower *lower, const Stage *stage, CpuOrder order, int64_t width);

/* Elements [begin, + n) of an axis. */
typedef struct CpuSpan {
    Val begin, n;
} CpuSpan;
/* Steps of `lanes` elements while the span has so many; returns the rest. */
CpuSpan cpu_whole_steps(Lower *lower, CpuSpan span, uint32_t lanes, CpuStep *step, void *user);
/* The reduced elements of a unit: all, or for partial results those of the point's segment. */
CpuSpan cpu_reduced_span(Lower *lower, const Point *unit_point);
/* A unit that is a part of the lane axis, of `n_elems` or fewer: sets the axes outside the lane
 * axis and returns the part. The unit's number counts parts first. */
CpuSpan cpu_lane_span(Lower *lower, Val unit, int64_t n_elems, Point *point);
/* The point of `lanes` elements of the lane axis from `at` on. */
Point cpu_lane_point(const Point *unit, uint32_t lanes, Val at, Val mask);

/* The places along an axis where a guard of some values begins or ceases to hold, in ascending
 * order: of a concat, where its pieces begin. n 0: none, or too many. */
enum { CPU_MOST_CUTS = 64 };
typedef struct CpuCuts {
    uint32_t axis, n;
    int64_t at[CPU_MOST_CUTS + 1];
} CpuCuts;
CpuCuts cpu_find_cuts(const Lower *lower, const ScalarId *values, uint32_t n, uint32_t axis);
/* Emits code for each piece between cuts, as far as it is in the span: there guards are known, so a
 * piece of a concat is read without asking which. */
typedef void CpuPiece(void *user, const PointPiece *piece, CpuSpan span);
void cpu_each_piece(const Lower *lower, const CpuCuts *cuts, CpuSpan span, CpuPiece *emit,
                    void *user);

/* Walks the elements of a stage in the order of sums:
 *    clear(user, level)                   sets the accumulators of the level to the identity
 *    elements(user, span)                 folds a segment into the chains of level 0
 *    join(user, level, at)                folds the finished chains of level - 1 into chain `at`
 * The results are in the chains of the last level. */
typedef struct CpuFold {
    void *user;
    void (*clear)(void *user, uint32_t level);
    void (*elements)(void *user, CpuSpan span);
    void (*join)(void *user, uint32_t level, Val chain);
} CpuFold;
void cpu_fold_stage(Lower *lower, CpuOrder order, const CpuFold *fold, CpuSpan span);

/* The scalars that a stage's reductions and stores need. */
typedef struct CpuRoots {
    ScalarId *ids;
    uint32_t n;
} CpuRoots;
CpuRoots cpu_stage_roots(const Lower *lower, const Stage *stage);
/* The bit set of the kernel's reduced axes. */
uint32_t cpu_reduced_axes(const Kernel *kernel);

#endif
