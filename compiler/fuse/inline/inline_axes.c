/* See inline_axes.h. */
#include "fuse/inline/inline_axes.h"

#include "plan/access.h"

uint32_t inline_next_of_kind(const Group *group, uint32_t d) {
    for (uint32_t e = d + 1; e < group->domain.rank; e++)
        if ((group->axes >> e & 1) == (group->axes >> d & 1)) return e;
    return MAX_RANK;
}

bool inline_may_join_axes(const Group *group) {
    bool may = false;
    for (uint32_t d = 0; d < group->domain.rank; d++)
        may = may || inline_next_of_kind(group, d) < MAX_RANK;
    return may;
}

/* Whether the domain is (.., m, n, k). */
static bool has_matrices(const Kernel *kernel) {
    const FormInfo *form = form_info(kernel->form);
    return form->multiplies || form->weighs;
}

/* Whether a batch axis must stay separate from m, because the rhs varies along the batch axis and
 * not along m. (An m of one element would not show in the rhs's index.) */
static bool splits_rows(const Group *group, const Kernel *kernel, uint32_t d, uint32_t axis) {
    if (!has_matrices(kernel) || d + 4 != group->domain.rank) return false;
    uint32_t batch_axes = (2u << axis) - 1;
    return (scalar_get(kernel->scalars, kernel->reduces.data[0].rhs)->axes & batch_axes) != 0;
}

AxisPlan inline_plan_axes(const DimTab *dims, const Group *group, const Kernel *kernel,
                          bool has_cores) {
    AxisPlan plan = {{false}};
    uint32_t axis[2] = {0, kernel->n_parallel};
    for (uint32_t d = 0; d < group->domain.rank; d++) {
        uint32_t kind = group->axes >> d & 1, next = inline_next_of_kind(group, d);
        uint32_t own = axis[kind]++;
        bool is_m = has_matrices(kernel) && d + 3 == group->domain.rank;
        bool is_split = is_m || splits_rows(group, kernel, d, own);
        /* Nothing is divided by an extent of 0. */
        bool may_join = next < MAX_RANK && !is_split && dim_hi(dims, group->domain.dims[next]) > 0;
        plan.joins[d] = may_join && kernel_axes_join(kernel, own, has_cores);
    }
    return plan;
}

bool inline_join_rows(const Group *group, const Kernel *kernel, AxisPlan *plan) {
    const Scalar *operand = scalar_get(kernel->scalars, kernel->reduces.data[0].rhs);
    uint32_t n_batches = group->domain.rank - 3;
    if (operand->axes & ((1u << n_batches) - 1)) return false;
    for (uint32_t d = 0; d < n_batches; d++) plan->joins[d] = true;
    return n_batches > 0;
}
