/* Accumulators of reductions: templates create, combine and finish them. */
#ifndef FUSEC_CODEGEN_SCALAR_ACC_H
#define FUSEC_CODEGEN_SCALAR_ACC_H

#include "codegen/scalar/point.h"

enum { MAX_STAGE_VALUES = 64 }; /* reductions of a stage, at most */

/* An accumulator of one reduction: a value and, for an arg-reduction, its index. Each is a scalar
 * or a vector of lanes. */
typedef struct Acc {
    Val value, index;
} Acc;
/* Whether the last bit of the result depends on the order in which elements are combined. */
bool acc_is_ordered(const Lower *lower, const Reduce *reduce);
/* Whether a reduction of the stage is ordered in this sense. */
bool acc_stage_is_ordered(const Lower *lower, const Stage *stage);
/* Whether b's value ranks before a's: a NaN ranks before every number, then the greater value, or
 * for MIN the smaller one. */
Val acc_is_ahead(const Lower *lower, const Reduce *reduce, Acc a, Acc b);
Acc acc_identity(const Lower *lower, const Reduce *reduce, uint32_t lanes);
Acc acc_combine(const Lower *lower, const Reduce *reduce, Acc a, Acc b);
/* The accumulator after one more element, which follows all earlier ones. */
Acc acc_take(const Lower *lower, const Reduce *reduce, Acc acc, Acc element);
/* The reduction's element at a point. */
Acc acc_element(Point *point, const Reduce *reduce);
/* `condition ? a : b`, for value and index */
Acc acc_select(const Lower *lower, Val condition, Acc a, Acc b);
/* Joins `n` accumulators (a power of two) to one by a tree over pairs of neighbours, in place. */
Acc acc_join_pairs(const Lower *lower, const Reduce *reduce, Acc *accs, uint32_t n);
/* Joins the lanes to one, by a tree over the bits of the lane number, lowest bit first. */
Acc acc_join_lanes(const Lower *lower, const Reduce *reduce, Acc acc, uint32_t lanes);
/* Joins accumulators of an arg-reduction in two rounds. Each round takes one or two instructions,
 * where acc_combine takes ten. The first call of `join` combines the values alone. The second
 * combines the indices of those accumulators whose value is the extreme. The Reduce that `join`
 * gets says how, and has no index. */
typedef Acc AccJoin(const void *user, const Reduce *reduce, Acc acc);
Acc acc_join_arg(const Lower *lower, const Reduce *reduce, Acc acc, AccJoin *join,
                 const void *user);
/* Parts of a row that a function of a scan joins: an accumulator per value, whose `index` (i1) says
 * whether the part has elements. */
Acc *acc_join_none(const Lower *lower, const ScanJoin *join, uint32_t lanes);
/* The accumulators of one element. */
Acc *acc_join_element(Point *point, const ScanJoin *join);
/* Joins a part with the one behind it. */
Acc *acc_join_parts(const Lower *lower, const ScanJoin *join, const Acc *before, const Acc *behind);
/* Sets the results and extremes of `slot` at the point from the final accumulator. */
void acc_finish(Point *point, uint32_t slot, Acc acc);

/* loop_carry for accumulators. */
void acc_loop_carry(const Codegen *k, Loop *loop, Acc *accs, uint32_t n);

#endif
