/* Pulls values through bodies and index maps. See inline.h. */
#include "fuse/inline.h"
#include "plan/must.h"
#include "machine/tuning.h"

#include "fuse/inline_axes.h"
#include "fuse/inline_memo.h"
#include "fuse/store_map.h"
#include "ir/indexmap.h"
#include "plan/access.h"
#include "template/wgmma.h"
#include "template/find_im2col.h"

#include <math.h>
#include <string.h>

typedef Vec(uint32_t) TraceIds;

typedef struct Inliner {
    Arena *arena;
    const InlineInput *input;
    const Graph *graph;
    DimTab *dims;
    Group *group;
    ScalarTab *scalars;
    IndexTab *indices;
    IndexId coords[MAX_RANK]; /* of the domain's axes */
    uint32_t parallel_axes;   /* bit set of kernel axes */
    InlineMarks *marks;
    InlineMemo memo;
    NodeId placing;        /* the target that is being pulled at its store */
    NodeId reader;         /* the node whose arguments are being pulled, or NODE_NONE */
    Kernel *kernel;        /* receives the traces; NULL during a trial */
    TraceIds *operands;    /* of the value that is being pulled */
    Vec(TraceIds) of_slot; /* per reduction: traces of the reduced value */
    Vec(Dtype) results;    /* per reduction: its dtype; not rounded in fast programs */
    InlineFailure failure;
} Inliner;

static ScalarId fail(Inliner *c, ReasonId reason, NodeId node) {
    if (!c->failure.reason) c->failure = (InlineFailure){.reason = reason, .node = node};
    return SCALAR_NONE;
}

/* What is loaded. */

static bool has_fact(const Inliner *c, NodeId id, InlineFact fact) {
    if (c->input->asked) inline_mark(c->marks, id, INLINE_ASKED);
    return (inline_facts(c->input, id) & fact) != 0;
}

static bool is_in_memory(const Inliner *c, NodeId id) {
    return has_fact(c, id, INLINE_IN_MEMORY);
}

/* Whether the value is in memory but is recomputed for this reader. */
static bool is_made_again(const Inliner *c, NodeId id) {
    return c->reader != NODE_NONE && has_fact(c, id, INLINE_MAY_REPEAT) &&
           must_shares(c->graph, id, c->reader) && is_in_memory(c, id);
}

/* Traces. */

static void note_operand(Inliner *c, uint32_t trace) {
    if (c->kernel && c->operands) vec_push(c->arena, c->operands, trace);
}

/* Adds the trace of a value just pulled. Its coordinates must live as long as the kernel. */
static uint32_t add_trace(Inliner *c, const MemoEntry *entry, const TraceIds *operands) {
    Trace trace = {.node = entry->node,
                   .value = entry->value,
                   .guard = entry->guard,
                   .coords = entry->coords,
                   .is_loaded = is_in_memory(c, entry->node) && !entry->is_again &&
                                !c->marks->slot[entry->node]};
    for (uint32_t i = 0; i < operands->n; i++)
        vec_push(c->arena, &trace.operands, operands->data[i]);
    vec_push(c->arena, &c->kernel->traces, trace);
    return c->kernel->traces.n - 1;
}

/* Pulling, by class of op. `coords` has one index per axis of the node. */

static ScalarId pull(Inliner *c, NodeId id, const IndexId *coords, GuardId guard);

/* The address of an element in the buffer that holds the value; no buffers exist during a trial. */
static IndexId address_in(Inliner *c, uint32_t buffer, const Shape *shape, const IndexId *coords) {
    if (inline_is_trial(c->input)) return indexmap_address(c->indices, shape, coords);
    Shape layout = buffer_layout(&c->input->buffers[buffer]);
    return indexmap_address(c->indices, &layout, coords);
}

static ScalarId pull_load(Inliner *c, NodeId id, const IndexId *coords, GuardId guard) {
    const Node *node = graph_node(c->graph, id);
    inline_mark(c->marks, id, INLINE_LOADED);
    uint32_t buffer = inline_is_trial(c->input) ? id : c->input->buffer_of_node[id];
    IndexId address = address_in(c, buffer, &node->shape, coords);
    return scalar_load(c->scalars, node->dtype, buffer, address, guard);
}

static ScalarId pull_source(Inliner *c, const Node *node, const IndexId *coords) {
    if (node->op == OP_IOTA)
        return scalar_cvt(c->scalars, scalar_index(c->scalars, coords[node->attrs.axis]),
                          node->dtype);
    return scalar_literal(c->scalars, node->dtype, node->attrs.number, node->attrs.whole);
}

static ScalarId pull_eltwise(Inliner *c, const Node *node, const IndexId *coords, GuardId guard) {
    const OpInfo *info = op_info(node->op);
    ScalarId args[3] = {0};
    for (uint32_t i = 0; i < node->n_args; i++) {
        const Node *arg = graph_node(c->graph, node->args[i]);
        IndexId arg_coords[MAX_RANK];
        indexmap_broadcast(c->indices, &node->shape, coords, &arg->shape, arg_coords);
        ScalarId value = pull(c, node->args[i], arg_coords, guard);
        if (!value) return SCALAR_NONE;
        args[i] = scalar_cvt(c->scalars, value, dtype_compute(arg->dtype));
    }
    for (uint32_t i = node->n_args; i < info->max_args; i++)
        args[i] = scalar_const(c->scalars, scalar_get(c->scalars, args[0])->dtype,
                               dtype_round(node->dtype, info->default_last));
    ScalarId body = info->body(c->scalars, node->dtype, args[0], args[1], args[2]);
    return scalar_round(c->scalars, body, node->dtype);
}

/* Sums start from -0, which changes no sum. A sum of no elements is +0. */
static ScalarId sum_or_zero(Inliner *c, const Node *node, ScalarId sum) {
    const OpInfo *info = op_info(node->op);
    bool starts_below = info->identity == 0 && signbit(info->identity) && !info->divides_by_count;
    if (!starts_below || !dtype_is_float(node->dtype)) return sum;
    GuardId any = GUARD_NONE;
    DimId one = dim_const(c->dims, 1);
    for (uint32_t d = 0; d < c->group->domain.rank; d++) {
        DimId extent = c->group->domain.dims[d];
        if (!(c->group->axes >> d & 1) || dim_lo(c->dims, extent) >= 1) continue;
        DimId past = dim_add(c->dims, extent, one);
        any = guard_and(c->scalars, any, index_dim(c->indices, extent), one, past);
    }
    ScalarId zero = scalar_const(c->scalars, node->dtype, 0);
    return any ? scalar_prim(c->scalars, PRIM_SELECT, scalar_inside(c->scalars, any), sum, zero)
               : sum;
}

/* The coordinate in the matmul for axis `d` of the domain, which may be a slice of the matmul. */
static IndexId gemm_coord(Inliner *c, uint32_t d) {
    DimId begin = c->group->begin[d];
    return begin ? index_add_dim(c->indices, c->coords[d], begin) : c->coords[d];
}

/* Whether a reduction of this group is read at the coordinates where its result is: at the row, for
 * a scan at the element. */
static bool is_at_result(Inliner *c, const Node *node, const IndexId *coords) {
    bool keeps_shape = group_keeps_shape(c->graph, c->group);
    uint32_t at = 0;
    for (uint32_t d = 0; d < c->group->domain.rank; d++) {
        bool is_reduced = (c->group->axes >> d & 1) != 0 && !keeps_shape;
        if (is_reduced && !node->attrs.keep) continue; /* a GEMM keeps no reduced axis */
        IndexId expected =
            is_reduced ? index_dim(c->indices, dim_const(c->dims, 0)) : gemm_coord(c, d);
        if (coords[at++] != expected) return false;
    }
    return true;
}

/* The result of a reduction of this group. The scans of a kernel run side by side, so none reads
 * another. */
static ScalarId pull_stage(Inliner *c, NodeId id, const IndexId *coords) {
    const Node *node = graph_node(c->graph, id);
    bool keeps_shape = group_keeps_shape(c->graph, c->group);
    if (!is_at_result(c, node, coords)) return fail(c, REASON_MISALIGNED, id);
    if (keeps_shape && c->of_slot.n < c->group->reduces.n) return fail(c, REASON_SCAN, id);
    const TraceIds *operands = &c->of_slot.data[c->marks->slot[id] - 1];
    for (uint32_t i = 0; i < operands->n; i++) note_operand(c, operands->data[i]);
    uint32_t slot = c->marks->slot[id] - 1;
    uint32_t axes = keeps_shape ? c->parallel_axes << 1 | 1 : c->parallel_axes;
    ScalarId result = scalar_stage(c->scalars, c->results.data[slot], slot, axes);
    result = scalar_round(c->scalars, result, node->dtype);
    return keeps_shape ? result : sum_or_zero(c, node, result);
}

static ScalarId pull_pad(Inliner *c, const Node *node, const IndexId *coords, GuardId guard) {
    const Node *arg = graph_node(c->graph, node->args[0]);
    IndexId arg_coords[MAX_RANK];
    GuardId own = GUARD_NONE;
    DimId zero = dim_const(c->dims, 0);
    for (uint32_t k = 0; k < node->shape.rank; k++) {
        DimId shift = dim_sub(c->dims, zero, node->attrs.begin[k]);
        arg_coords[k] = index_add_dim(c->indices, coords[k], shift);
        own = guard_and(c->scalars, own, arg_coords[k], zero, arg->shape.dims[k]);
        guard = guard_and(c->scalars, guard, arg_coords[k], zero, arg->shape.dims[k]);
    }
    ScalarId value = pull(c, node->args[0], arg_coords, guard);
    if (!value) return SCALAR_NONE;
    ScalarId outside =
        scalar_literal(c->scalars, node->dtype, node->attrs.number, node->attrs.whole);
    return scalar_prim(c->scalars, PRIM_SELECT, scalar_inside(c->scalars, own), value, outside);
}

/* Gathers rows by index, clamped to the data. */
static ScalarId pull_gather(Inliner *c, const Node *node, const IndexId *coords, GuardId guard) {
    const Node *data = graph_node(c->graph, node->args[0]);
    const Node *rows = graph_node(c->graph, node->args[1]);
    uint32_t axis = (uint32_t)node->attrs.axis, n = rows->shape.rank;
    DimId extent = data->shape.dims[axis], one = dim_const(c->dims, 1);
    ScalarId row = pull(c, node->args[1], coords + axis, guard);
    if (!row) return SCALAR_NONE;
    ScalarId last = scalar_index(c->scalars, index_dim(c->indices, dim_sub(c->dims, extent, one)));
    row = scalar_clamp_index(c->scalars, row, last);
    GuardId own = GUARD_NONE; /* rows of an empty tensor are zeros */
    if (dim_lo(c->dims, extent) < 1) {
        DimId past = dim_add(c->dims, extent, one);
        own = guard_and(c->scalars, own, index_dim(c->indices, extent), one, past);
        guard = guard_and(c->scalars, guard, index_dim(c->indices, extent), one, past);
    }
    IndexId arg_coords[MAX_RANK];
    memcpy(arg_coords, coords, axis * sizeof *coords);
    arg_coords[axis] = scalar_as_index(c->scalars, row, extent);
    for (uint32_t k = axis + 1; k < data->shape.rank; k++) arg_coords[k] = coords[k + n - 1];
    ScalarId value = pull(c, node->args[0], arg_coords, guard);
    if (!value || !own) return value;
    ScalarId zero = scalar_const(c->scalars, node->dtype, 0);
    return scalar_prim(c->scalars, PRIM_SELECT, scalar_inside(c->scalars, own), value, zero);
}

/* Each view may double an index expression; then one of the views is stored. */
static bool is_heavy(const Inliner *c, const IndexId *coords, uint32_t rank) {
    for (uint32_t k = 0; k < rank; k++)
        if (index_weight(c->indices, coords[k]) > FUSE_INDEX_WEIGHT) return true;
    return false;
}

static ScalarId pull_view(Inliner *c, NodeId id, const IndexId *coords, GuardId guard) {
    const Node *node = graph_node(c->graph, id);
    if (node->op == OP_PAD) return pull_pad(c, node, coords, guard);
    if (node->op == OP_GATHER) return pull_gather(c, node, coords, guard);
    IndexId arg_coords[MAX_RANK];
    indexmap_pull(c->indices, c->graph, node, coords, arg_coords);
    if (is_heavy(c, arg_coords, graph_node(c->graph, node->args[0])->shape.rank))
        return fail(c, REASON_TOO_LARGE, id);
    return pull(c, node->args[0], arg_coords, guard);
}

/* Each piece under its own guard, selected by comparisons: no copy and no extra reads. */
static ScalarId pull_concat(Inliner *c, const Node *node, const IndexId *coords, GuardId guard) {
    uint32_t axis = (uint32_t)node->attrs.axis;
    DimId end = node->shape.dims[axis], zero = dim_const(c->dims, 0);
    ScalarId value = SCALAR_NONE;
    for (uint32_t i = node->n_args; i-- > 0;) {
        const Node *piece = graph_node(c->graph, node->args[i]);
        DimId begin = dim_sub(c->dims, end, piece->shape.dims[axis]);
        GuardId within = guard_and(c->scalars, guard, coords[axis], begin, end);
        IndexId arg_coords[MAX_RANK];
        memcpy(arg_coords, coords, node->shape.rank * sizeof *coords);
        arg_coords[axis] = index_add_dim(c->indices, coords[axis], dim_sub(c->dims, zero, begin));
        ScalarId part = pull(c, node->args[i], arg_coords, within);
        if (!part) return SCALAR_NONE;
        GuardId before = guard_and(c->scalars, GUARD_NONE, coords[axis], zero, end);
        value = value ? scalar_prim(c->scalars, PRIM_SELECT, scalar_inside(c->scalars, before),
                                    part, value)
                      : part;
        end = begin;
    }
    return value;
}

static void place_coords(Inliner *c, ValueSpan place, const Shape *shape, IndexId *coords);

/* Whether a value that this group stores is pulled at exactly the coordinates of its store. */
static bool is_in_place(Inliner *c, NodeId id, const IndexId *coords) {
    const Shape *shape = &graph_node(c->graph, id)->shape;
    ValueSpan place = span_of(c->graph, c->group, shape);
    IndexId expected[MAX_RANK];
    if (place == SPAN_NONE) return false;
    place_coords(c, place, shape, expected);
    return memcmp(coords, expected, shape->rank * sizeof *coords) == 0;
}

static bool is_target(const Group *group, NodeId id) {
    for (uint32_t i = 0; i < group->targets.n; i++)
        if (group->targets.data[i].node == id) return true;
    return false;
}

static ScalarId pull_op(Inliner *c, NodeId id, const IndexId *coords, GuardId guard) {
    const Node *node = graph_node(c->graph, id);
    if (scalar_count(c->scalars) > c->input->max_scalars) return fail(c, REASON_TOO_LARGE, id);
    if (inline_is_trial(c->input) && node_has(c->input->flags, id, GROUPING_WANTED) &&
        is_target(c->group, id) && id != c->placing && !is_in_place(c, id, coords))
        return fail(c, REASON_MISALIGNED, id);
    inline_mark(c->marks, id, INLINE_VISITED);
    switch (op_info(node->op)->cls) {
    case CLASS_SOURCE:
        return pull_source(c, node, coords);
    case CLASS_ELTWISE:
        return pull_eltwise(c, node, coords, guard);
    case CLASS_CAST: {
        ScalarId value = pull(c, node->args[0], coords, guard);
        return scalar_cast(c->scalars, value, node->dtype, node->op == OP_BITCAST);
    }
    case CLASS_VIEW:
        return pull_view(c, id, coords, guard);
    case CLASS_CONCAT:
        return pull_concat(c, node, coords, guard);
    case CLASS_REDUCE:
    case CLASS_ARGREDUCE:
    case CLASS_SCAN:
    case CLASS_SORT:
    case CLASS_MATMUL:
        break;
    }
    return fail(c, REASON_OTHER_DOMAIN, id);
}

static ScalarId pull_node(Inliner *c, NodeId id, const IndexId *coords, GuardId guard) {
    if (c->marks->slot[id]) return pull_stage(c, id, coords);
    if (is_in_memory(c, id) && !is_made_again(c, id)) return pull_load(c, id, coords, guard);
    NodeId reader = c->reader;
    c->reader = id;
    ScalarId value = pull_op(c, id, coords, guard);
    c->reader = reader;
    return value;
}

static ScalarId pull(Inliner *c, NodeId id, const IndexId *coords, GuardId guard) {
    uint32_t rank = graph_node(c->graph, id)->shape.rank;
    MemoEntry key = memo_key(id, guard, coords, rank);
    key.is_again = is_made_again(c, id);
    const MemoEntry *found = memo_find(&c->memo, &key);
    if (found) {
        note_operand(c, found->trace);
        return found->value;
    }
    TraceIds own = {0}, *outer = c->operands;
    c->operands = &own;
    key.value = pull_node(c, id, coords, guard);
    c->operands = outer;
    if (!key.value) return SCALAR_NONE;
    key.coords = arena_copy(c->arena, coords, rank * sizeof *coords);
    if (c->kernel) key.trace = add_trace(c, &key, &own);
    memo_put(c->arena, &c->memo, key);
    note_operand(c, key.trace);
    return key.value;
}

/* Coordinates of spans. */

/* The coordinates of a value of this span and shape. */
static void place_coords(Inliner *c, ValueSpan place, const Shape *shape, IndexId *coords) {
    bool row_cache = shape->rank == c->group->domain.rank;
    uint32_t at = 0;
    for (uint32_t d = 0; d < c->group->domain.rank; d++) {
        bool is_reduced = place == SPAN_ROW && (c->group->axes >> d & 1);
        if (is_reduced && !row_cache) continue;
        coords[at++] = is_reduced ? index_dim(c->indices, dim_const(c->dims, 0)) : c->coords[d];
    }
}

/* Axes: the kernel's loops. */

/* Makes the loops of one kind (parallel or reduced), and the domain coordinates as functions of
 * them. */
static uint32_t make_axes(Inliner *c, const AxisPlan *plan, bool reduced) {
    uint32_t n = 0;
    const Shape *domain = &c->group->domain;
    for (uint32_t d = 0; d < domain->rank; d++) {
        if (((c->group->axes >> d & 1) != 0) != reduced) continue;
        uint32_t members[MAX_RANK], n_members = 1;
        members[0] = d;
        DimId extent = domain->dims[d];
        while (plan->joins[d]) {
            d = inline_next_of_kind(c->group, d);
            members[n_members++] = d;
            extent = dim_mul(c->dims, extent, domain->dims[d]);
        }
        uint32_t axis = index_new_axis(c->indices, extent);
        IndexId rest = index_axis(c->indices, axis);
        for (uint32_t m = n_members; m-- > 0;) {
            DimId size = domain->dims[members[m]];
            c->coords[members[m]] = m ? index_mod(c->indices, rest, size) : rest;
            if (m) rest = index_div(c->indices, rest, size);
        }
        n++;
        d = members[n_members - 1];
    }
    return n;
}

static void composer_init(Inliner *c, Arena *arena, const InlineInput *input, Group *group,
                          const AxisPlan *plan, Kernel *kernel) {
    *c = (Inliner){.arena = arena,
                   .input = input,
                   .marks = input->marks,
                   .graph = input->graph,
                   .dims = input->graph->dims,
                   .placing = NODE_NONE,
                   .reader = NODE_NONE,
                   .kernel = input->buffer_of_node ? kernel : NULL,
                   .group = group};
    c->indices = indextab_new(arena, c->dims);
    c->scalars = scalartab_new(arena, c->indices);
    if (c->graph->is_fast) scalartab_set_fast(c->scalars);
    kernel->scalars = c->scalars;
    kernel->n_parallel = make_axes(c, plan, false);
    kernel->first_reduced = kernel->n_parallel;
    kernel->n_reduced = make_axes(c, plan, true);
    kernel->segment_axis = NO_AXIS;
    c->parallel_axes = kernel_parallel_axes(kernel);
    bool inner_reduced = group->domain.rank && (group->axes >> (group->domain.rank - 1) & 1);
    kernel->form = !group->axes ? FORM_MAP : inner_reduced ? FORM_ROW : FORM_COLUMN;
    if (group->reduces.n && graph_is_matmul(c->graph, group->reduces.data[0]))
        kernel->form = FORM_GEMM;
    if (group_keeps_shape(c->graph, group))
        kernel->form =
            graph_class(c->graph, group->reduces.data[0]) == CLASS_SORT ? FORM_SORT : FORM_SCAN;
}

/* Reductions and stores. */

static DimId reduced_count(Inliner *c) {
    DimId count = dim_const(c->dims, 1);
    for (uint32_t d = 0; d < c->group->domain.rank; d++)
        if (c->group->axes >> d & 1) count = dim_mul(c->dims, count, c->group->domain.dims[d]);
    return count;
}

/* The operands are read at (.., m, k) and (.., k, n) with leading axes broadcast. The domain is
 * (.., m, n, k), or the slice's part of m, n and the batches. */
static bool compose_contract(Inliner *c, Kernel *kernel, NodeId id) {
    const Node *node = graph_node(c->graph, id);
    uint32_t rank = node->shape.rank;
    ScalarId operands[2];
    if (c->group->domain.rank != rank + 1) return fail(c, REASON_TOO_LARGE, id);
    IndexId at[MAX_RANK];
    for (uint32_t d = 0; d <= rank; d++) at[d] = gemm_coord(c, d);
    for (uint32_t side = 0; side < 2; side++) {
        const Shape *shape = &graph_node(c->graph, node->args[side])->shape;
        IndexId coords[MAX_RANK];
        Shape batch = {.rank = rank - 2}, own = {.rank = shape->rank - 2};
        memcpy(batch.dims, node->shape.dims, batch.rank * sizeof(DimId));
        memcpy(own.dims, shape->dims, own.rank * sizeof(DimId));
        indexmap_broadcast(c->indices, &batch, at, &own, coords);
        coords[own.rank] = side == 0 ? at[rank - 2] : at[rank];
        coords[own.rank + 1] = side == 0 ? at[rank] : at[rank - 1];
        operands[side] = pull(c, node->args[side], coords, GUARD_NONE);
        if (!operands[side]) return false;
        if (node->attrs.precision == PRECISION_TF32)
            operands[side] =
                scalar_prim(c->scalars, PRIM_TF32, operands[side], SCALAR_NONE, SCALAR_NONE);
    }
    inline_mark(c->marks, id, INLINE_VISITED);
    c->marks->slot[id] = kernel->reduces.n + 1;
    vec_push(c->arena, &kernel->reduces,
             (Reduce){.node = id,
                      .combine = PRIM_ADD,
                      .acc = dtype_compute(node->dtype),
                      .lhs = operands[0],
                      .rhs = operands[1],
                      .precision = node->attrs.precision,
                      .result = node->dtype});
    return true;
}

static bool compose_one(Inliner *c, Kernel *kernel, NodeId id) {
    c->reader = id;
    if (graph_is_matmul(c->graph, id)) return compose_contract(c, kernel, id);
    const Node *node = graph_node(c->graph, id);
    const OpInfo *info = op_info(node->op);
    Dtype acc = dtype_compute(graph_node(c->graph, node->args[0])->dtype);
    bool is_arg = info->cls == CLASS_ARGREDUCE, is_index = is_arg || info->cls == CLASS_SORT;
    inline_mark(c->marks, id, INLINE_VISITED);
    ScalarId value = pull(c, node->args[0], c->coords, GUARD_NONE);
    if (!value) return false;
    Reduce reduce = {.node = id,
                     .combine = info->combine,
                     .is_arg = is_arg,
                     .acc = acc,
                     .identity = dtype_round(is_index ? acc : node->dtype, info->identity),
                     .value = scalar_cvt(c->scalars, value, acc),
                     .divisor = info->divides_by_count ? reduced_count(c) : DIM_NONE,
                     .result = c->graph->is_fast && !is_index ? acc : node->dtype};
    for (uint32_t d = 0; d < c->group->domain.rank && reduce.is_arg; d++)
        if (c->group->axes >> d & 1) reduce.arg_index = scalar_index(c->scalars, c->coords[d]);
    c->marks->slot[id] = kernel->reduces.n + 1;
    vec_push(c->arena, &kernel->reduces, reduce);
    return true;
}

static bool compose_reduce(Inliner *c, Kernel *kernel, NodeId id) {
    TraceIds operands = {0};
    c->operands = &operands;
    bool ok = compose_one(c, kernel, id);
    c->reader = NODE_NONE;
    c->operands = NULL;
    vec_push(c->arena, &c->of_slot, operands);
    if (ok) vec_push(c->arena, &c->results, kernel->reduces.data[kernel->reduces.n - 1].result);
    return ok;
}

/* Turns the coordinates of a piece into those of the concat. */
static void join_coords(Inliner *c, StoreTarget target, IndexId *coords) {
    const Node *whole = graph_node(c->graph, target.whole);
    uint32_t axis = (uint32_t)whole->attrs.axis;
    for (uint32_t i = 0; i + 1 < target.piece; i++) {
        const Node *before = graph_node(c->graph, whole->args[i]);
        coords[axis] = index_add_dim(c->indices, coords[axis], before->shape.dims[axis]);
    }
}

/* Whether this kernel computes the value: it depends on a reduction of the kernel, or is visited
 * already. */
static bool is_made_here(Inliner *c, NodeId id, uint32_t *budget) {
    if (c->marks->slot[id]) return true;
    if (is_in_memory(c, id) || *budget == 0) return false;
    --*budget;
    const Node *node = graph_node(c->graph, id);
    ValueSpan place = span_of(c->graph, c->group, &node->shape);
    if (place != SPAN_NONE) {
        IndexId coords[MAX_RANK];
        place_coords(c, place, &node->shape, coords);
        MemoEntry key = memo_key(id, GUARD_NONE, coords, node->shape.rank);
        if (memo_find(&c->memo, &key)) return true;
    }
    for (uint32_t i = 0; i < node->n_args; i++)
        if (is_made_here(c, node->args[i], budget)) return true;
    return false;
}

/* Whether a store's path may begin at the node, so that the store leaves out the rest of the value.
 * The trial has found such a node; in the final pass no other value may need it any more. */
static bool may_begin(void *user, NodeId id) {
    Inliner *c = user;
    uint32_t budget = FUSE_INLINE_VISITS;
    if (c->kernel || c->group->is_whole) return !is_in_memory(c, id);
    return is_made_here(c, id, &budget);
}

static bool may_pass(void *user, NodeId id) {
    return !is_in_memory(user, id);
}

static bool find_path(Inliner *c, NodeId target, StorePath *path) {
    StorePathSearch search = {.graph = c->graph,
                              .group = c->group,
                              .may_begin = may_begin,
                              .may_pass = may_pass,
                              .user = c};
    bool is_contract = c->group->reduces.n && graph_is_matmul(c->graph, c->group->reduces.data[0]);
    return store_map_find_path(&search, target, path) && (!is_contract || path->place == SPAN_ROW);
}

/* Pulls the next elementwise node on the path. Its argument on the path is `value`, which is not
 * pulled again. */
static ScalarId pull_above(Inliner *c, NodeId id, NodeId below, ScalarId value,
                           const StoreCoords *at) {
    uint32_t rank = graph_node(c->graph, below)->shape.rank;
    MemoEntry entry = memo_key(below, at->guard, at->at, rank);
    if (!memo_find(&c->memo, &entry)) {
        entry.value = value;
        entry.coords = arena_copy(c->arena, at->at, rank * sizeof *at->at);
        if (c->kernel) entry.trace = add_trace(c, &entry, c->operands);
        memo_put(c->arena, &c->memo, entry);
    }
    c->operands->n = 0;
    c->placing = id;
    ScalarId above = pull(c, id, at->at, at->guard);
    c->placing = NODE_NONE;
    return above;
}

/* Pulls the first value of the path at coordinates `at` and follows the path to its end. The value
 * is computed at positions outside the slices too. */
static ScalarId pull_along(Inliner *c, const StorePath *path, StoreCoords *at) {
    NodeId root = path->nodes[path->n - 1];
    ScalarId value = pull(c, root, at->at, GUARD_NONE);
    for (uint32_t i = path->n - 1; i-- > 0 && value;) {
        NodeId id = path->nodes[i];
        const Node *node = graph_node(c->graph, id);
        if (op_info(node->op)->cls == CLASS_VIEW) {
            inline_mark(c->marks, id, INLINE_VISITED);
            store_map_follow(c->scalars, c->graph, id, at);
            if (!inline_is_trial(c->input) && node->op == OP_SLICE)
                node_add(c->input->flags, id, GROUPING_DROPS_REST);
        } else {
            store_map_guard(c->scalars, at);
            value = pull_above(c, id, path->nodes[i + 1], value, at);
        }
    }
    return value;
}

static bool compose_target(Inliner *c, StoreTarget target, Store *store, bool *is_row) {
    StorePath path;
    if (!find_path(c, target.node, &path))
        return fail(c, REASON_OTHER_DOMAIN, target.node) != SCALAR_NONE;
    *is_row = path.place == SPAN_ROW;
    if (*is_row && group_keeps_shape(c->graph, c->group))
        return fail(c, REASON_SCAN, target.node) != SCALAR_NONE;
    StoreCoords at = {.guard = GUARD_NONE};
    place_coords(c, path.place, &graph_node(c->graph, path.nodes[path.n - 1])->shape, at.at);
    /* The stored node may be in memory for later kernels, but not for this kernel. */
    TraceIds traces = {0};
    c->operands = &traces;
    ScalarId value = pull_along(c, &path, &at);
    c->operands = NULL;
    if (!value) return false;
    if (is_heavy(c, at.at, graph_node(c->graph, target.node)->shape.rank))
        return fail(c, REASON_TOO_LARGE, target.node) != SCALAR_NONE;
    NodeId held = target.piece ? target.whole : target.node;
    if (target.piece) join_coords(c, target, at.at);
    *store = (Store){.value = value,
                     .node = target.node,
                     .buffer = UINT32_MAX,
                     .piece = target.piece,
                     .guard = store_map_guard(c->scalars, &at)};
    if (traces.n) store->trace = traces.data[traces.n - 1] + 1;
    if (!inline_is_trial(c->input))
        store->buffer = target.output == OUTPUT_NONE ? c->input->buffer_of_node[held]
                                                     : c->input->buffer_of_output[target.output];
    store->address = address_in(c, store->buffer, &graph_node(c->graph, held)->shape, at.at);
    return true;
}

static void collect_nodes(Inliner *c, Kernel *kernel) {
    c->group->has_passes = form_info(kernel->form)->reduces && kernel->stages.n > 1;
    c->group->has_inner = form_info(kernel->form)->reduces && kernel_stores_inner(kernel);
    c->group->loads.n = 0;
    kernel->nodes.n = 0;
    InlineMarks *marks = c->marks;
    graph_sort_nodes(marks->touched, marks->n_touched);
    for (uint32_t i = 0; i < marks->n_touched; i++) {
        NodeId id = marks->touched[i];
        if (node_has(marks->flags, id, INLINE_LOADED)) vec_push(c->arena, &c->group->loads, id);
        if (node_has(marks->flags, id, INLINE_VISITED)) vec_push(c->arena, &kernel->nodes, id);
    }
}

static bool compose_with(Arena *arena, const InlineInput *input, Group *group, const AxisPlan *plan,
                         Kernel *kernel, InlineFailure *failure) {
    Inliner c;
    *kernel = (Kernel){.name = kernel->name, .span = kernel->span};
    composer_init(&c, arena, input, group, plan, kernel);
    bool ok = true;
    for (uint32_t i = 0; i < group->reduces.n && ok; i++)
        ok = compose_reduce(&c, kernel, group->reduces.data[i]);
    Store *stores = arena_array(arena, Store, group->targets.n);
    bool *is_row = arena_array(arena, bool, group->targets.n);
    for (uint32_t i = 0; i < group->targets.n && ok; i++)
        ok = compose_target(&c, group->targets.data[i], &stores[i], &is_row[i]);
    *failure = c.failure;
    if (ok) {
        inline_arrange_stages(arena, kernel, stores, is_row, group->targets.n);
        collect_nodes(&c, kernel);
    }
    for (uint32_t i = 0; input->asked && i < c.marks->n_touched; i++)
        if (node_has(c.marks->flags, c.marks->touched[i], INLINE_ASKED))
            vec_push(arena, input->asked, c.marks->touched[i]);
    inline_clear_marks(c.marks);
    return ok;
}

bool inline_group(Arena *arena, const InlineInput *input, Group *group, Kernel *kernel,
                  InlineFailure *failure) {
    AxisPlan separate = {{false}};
    if (inline_is_trial(input))
        return compose_with(arena, input, group, &separate, kernel, failure);
    ArenaMark mark = arena_mark(input->scratch);
    bool ok = compose_with(input->scratch, input, group, &separate, kernel, failure);
    AxisPlan plan = ok ? inline_plan_axes(input->graph->dims, group, kernel) : separate;
    AxisPlan joined = plan;
    if (ok && input->has_im2col && im2col_may_be(kernel) &&
        inline_join_rows(group, kernel, &joined)) {
        memset(&group->loads, 0, sizeof group->loads);
        int64_t depth = wgmma_depth(gemm_operand_dtype(kernel));
        if (compose_with(input->scratch, input, group, &joined, kernel, failure) &&
            im2col_find(kernel, input->buffers, depth))
            plan = joined;
    }
    memset(&group->loads, 0, sizeof group->loads);
    arena_rewind(input->scratch, mark);
    return ok && compose_with(arena, input, group, &plan, kernel, failure);
}
