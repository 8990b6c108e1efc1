/* Accumulators of reductions: values that templates keep, combine and finish. */
#ifndef FUSEC_CODEGEN_SCALAR_ACC_H
#define FUSEC_CODEGEN_SCALAR_ACC_H

#include "codegen/scalar/point.h"

/* An accumulator of one reduction: a value and, for an arg-reduction, its index; each a scalar or
 * one per lane. */
typedef struct Acc {
    Val value, index;
} Acc;
/* Whether the result depends on the order in which elements are combined, to the last bit. */
bool acc_is_ordered(const Lower *lower, const Reduce *reduce);
/* Whether that of any of the stage's reductions does. */
bool acc_stage_is_ordered(const Lower *lower, const Stage *stage);
Acc acc_identity(const Lower *lower, const Reduce *reduce, uint32_t lanes);
Acc acc_combine(const Lower *lower, const Reduce *reduce, Acc a, Acc b);
/* What the accumulator is with an element behind all that it has. */
Acc acc_take(const Lower *lower, const Reduce *reduce, Acc acc, Acc element);
/* The element of a reduction at a point. */
Acc acc_element(Point *point, const Reduce *reduce);
/* `condition ? a : b` */
Acc acc_select(const Lower *lower, Val condition, Acc a, Acc b);
/* Joins the lanes, lowest bit of the lane number first. */
Acc acc_join_lanes(const Lower *lower, const Reduce *reduce, Acc acc, uint32_t lanes);
/* Joins accumulators of an arg-reduction in two rounds, each of an instruction or two where
 * acc_combine has ten: `join` gets the values, to be combined as the reduction that it is given
 * says, which has no index; then, likewise, the indices of those that are the extreme. */
typedef Acc AccJoin(const void *user, const Reduce *reduce, Acc acc);
Acc acc_join_arg(const Lower *lower, const Reduce *reduce, Acc acc, AccJoin *join,
                 const void *user);
/* Sets results and extremes of slot at the point from the final accumulator. */
void acc_finish(Point *point, uint32_t slot, Acc acc);

/* loop_carry and loop_end_carry of accumulators, and of one more value where `beside` is not NULL.
 */
void acc_loop_carry(const Codegen *k, Loop *loop, Acc *accs, uint32_t n, Val *beside);
void acc_loop_end(const Codegen *k, Loop *loop, Acc *accs, uint32_t n, Val *beside);

#endif
