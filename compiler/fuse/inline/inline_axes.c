/* See inline_axes.h. */
#include "fuse/inline/inline_axes.h"

#include "fuse/inline/store_map.h"
#include "plan/access.h"

static bool is_reduced(const Group *group, uint32_t axis) {
    return group->axes >> axis & 1;
}

/* The axis of the domain along which a value of all parallel points has its axis `axis`. */
static uint32_t find_parallel(const Group *group, const Shape *shape, uint32_t axis) {
    if (shape->rank == group->domain.rank) return axis;
    for (uint32_t d = 0; d < group->domain.rank; d++)
        if (!is_reduced(group, d) && axis-- == 0) return d;
    return MAX_RANK;
}

/* The domain's axis that lies innermost in the first result that is not row-major; MAX_RANK: all
 * of them are. */
static uint32_t find_inner(const InlineInput *input, const Group *group) {
    const FormInfo *form = form_info(group_form(input->graph, group));
    bool has_places = form->multiplies || form->weighs || form->each_point || form->divides;
    for (uint32_t i = 0; i < group->targets.n && !has_places; i++) {
        StoreTarget target = group->targets.data[i];
        const Shape *shape = &graph_node(input->graph, target.node)->shape;
        NodeId held = target.piece ? target.whole : target.node;
        uint32_t to = target.output == OUTPUT_NONE ? input->buffer_of_node[held]
                                                   : input->buffer_of_output[target.output];
        uint32_t inner = input->buffers[to].inner;
        if (inner && span_of(input->graph, group, shape) != SPAN_NONE)
            return find_parallel(group, shape, inner - 1);
    }
    return MAX_RANK;
}

AxisPlan inline_order_axes(const InlineInput *input, const Group *group) {
    AxisPlan plan = {.joins = {false}};
    uint32_t inner = inline_is_trial(input) ? MAX_RANK : find_inner(input, group), at = 0;
    bool moves = inner < MAX_RANK && !is_reduced(group, inner);
    for (uint32_t d = 0; d < group->domain.rank; d++)
        if (!moves || d != inner) plan.order[at++] = (uint8_t)d;
    if (moves) plan.order[at] = (uint8_t)inner;
    return plan;
}

uint32_t inline_next_of_kind(const Group *group, const AxisPlan *plan, uint32_t at) {
    for (uint32_t e = at + 1; e < group->domain.rank; e++)
        if (is_reduced(group, plan->order[e]) == is_reduced(group, plan->order[at])) return e;
    return MAX_RANK;
}

bool inline_may_join_axes(const Group *group) {
    uint32_t n[2] = {0, 0};
    for (uint32_t d = 0; d < group->domain.rank; d++) n[is_reduced(group, d)]++;
    return n[0] > 1 || n[1] > 1;
}

/* Whether the domain is (.., m, n, k). */
static bool has_matrices(const Kernel *kernel) {
    const FormInfo *form = form_info(kernel->form);
    return form->multiplies || form->weighs;
}

/* Whether the batch axis `axis`, to which those from `first` on are joined, must stay separate from
 * m, because m alone says whether keys have parts, or because the rhs varies along batch axes and
 * not along m. (An m of one element would not show in the rhs's index.) Single rows alone are
 * joined where the rhs varies along the batch axes before `first`: batches of more rows may pass
 * their scores on in tiles, to a product whose m says that keys have parts. */
static bool splits_rows(const DimTab *dims, const Group *group, const Kernel *kernel, uint32_t d,
                        uint32_t first, uint32_t axis) {
    if (!has_matrices(kernel) || d + 4 != group->domain.rank) return false;
    if (form_info(kernel->form)->weighs &&
        online_may_split(dims, group->domain.dims[d + 1], group->domain.dims[d + 3]))
        return true;
    bool is_single = dim_hi(dims, group->domain.dims[d + 1]) <= 1;
    uint32_t batch_axes = (2u << axis) - (is_single ? 1u << first : 1);
    return (scalar_get(kernel->scalars, kernel->reduces.data[0].rhs)->axes & batch_axes) != 0;
}

void inline_join_axes(const DimTab *dims, const Group *group, const Kernel *kernel, bool has_cores,
                      AxisPlan *plan) {
    uint32_t axis[2] = {0, kernel->n_parallel};
    uint32_t last[2] = {0, 0};  /* of the axes joined so far; if any has several elements, the last
                                 * one of these */
    uint32_t first[2] = {0, 0}; /* of the axes joined so far */
    bool is_joined[2] = {false, false}; /* to the axis before */
    for (uint32_t at = 0; at < group->domain.rank; at++) {
        uint32_t next = inline_next_of_kind(group, plan, at);
        bool of_reduced = is_reduced(group, plan->order[at]);
        uint32_t own = axis[of_reduced]++;
        bool is_one = dim_equals_const(dims, group->domain.dims[plan->order[at]], 1);
        if (!is_one || !is_joined[of_reduced]) last[of_reduced] = own;
        if (!is_joined[of_reduced]) first[of_reduced] = own;
        bool is_m = has_matrices(kernel) && at + 3 == group->domain.rank;
        bool is_split = is_m || splits_rows(dims, group, kernel, at, first[of_reduced], own);
        /* Nothing is divided by an extent of 0. */
        bool may_join =
            next < MAX_RANK && !is_split && dim_hi(dims, group->domain.dims[plan->order[next]]) > 0;
        plan->joins[at] =
            may_join && kernel_axes_join(kernel, last[of_reduced], own + 1, has_cores);
        is_joined[of_reduced] = plan->joins[at];
    }
}

bool inline_join_rows(const Group *group, const Kernel *kernel, AxisPlan *plan) {
    const Scalar *operand = scalar_get(kernel->scalars, kernel->reduces.data[0].rhs);
    uint32_t n_batches = group->domain.rank - 3;
    if (operand->axes & ((1u << n_batches) - 1)) return false;
    for (uint32_t d = 0; d < n_batches; d++) plan->joins[d] = true;
    return n_batches > 0;
}
