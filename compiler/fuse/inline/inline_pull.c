/* Pulls values through elementwise bodies and index maps, down to loads. See inliner.h. */
#include "fuse/inline/inliner.h"
#include "plan/must.h"
#include "machine/tuning.h"

#include "ir/indexmap.h"

#include <math.h>
#include <string.h>

ScalarId inline_fail(Inliner *c, ReasonId reason, NodeId node) {
    if (!c->failure.reason) c->failure = (InlineFailure){.reason = reason, .node = node};
    return SCALAR_NONE;
}

/* What is loaded. */

static bool has_fact(const Inliner *c, NodeId id, InlineFact fact) {
    uint32_t facts = inline_facts(c->input, id);
    if (c->input->asked && !node_has(c->marks->flags, id, INLINE_ASKED)) {
        inline_mark(c->marks, id, INLINE_ASKED);
        vec_push(c->arena, c->input->asked, ((NodeFacts){.node = id, .facts = facts}));
    }
    return (facts & fact) != 0;
}

bool inline_in_memory(const Inliner *c, NodeId id) {
    return has_fact(c, id, INLINE_IN_MEMORY);
}

/* Whether the value is in memory but is recomputed for this reader. */
static bool is_made_again(const Inliner *c, NodeId id) {
    return c->reader != NODE_NONE && has_fact(c, id, INLINE_MAY_REPEAT) &&
           must_shares(c->graph, id, c->reader) && inline_in_memory(c, id);
}

/* Traces. */

static void note_operand(Inliner *c, uint32_t trace) {
    if (c->kernel && c->operands) vec_push(c->arena, c->operands, trace);
}

uint32_t inline_trace(Inliner *c, const MemoEntry *entry, const TraceIds *operands) {
    Trace trace = {.node = entry->node,
                   .value = entry->value,
                   .guard = entry->guard,
                   .coords = entry->coords,
                   .is_loaded = inline_in_memory(c, entry->node) && !entry->is_again &&
                                !c->marks->slot[entry->node]};
    for (uint32_t i = 0; i < operands->n; i++)
        vec_push(c->arena, &trace.operands, operands->data[i]);
    vec_push(c->arena, &c->kernel->traces, trace);
    return c->kernel->traces.n - 1;
}

/* Pulling, by class of op. `coords` has one index per axis of the node. */

static IndexId address_of(Inliner *c, const Shape *shape, const IndexId *coords) {
    size_t n_bytes = shape->rank * sizeof *coords;
    for (uint32_t i = 0; i < N_KNOWN_ADDRESSES && i < c->n_known; i++) {
        const KnownAddress *known = &c->known[i];
        if (shape_equal(&known->shape, shape) && memcmp(known->coords, coords, n_bytes) == 0)
            return known->address;
    }
    KnownAddress *next = &c->known[c->n_known++ % N_KNOWN_ADDRESSES];
    next->shape = *shape;
    memcpy(next->coords, coords, n_bytes);
    next->address = indexmap_address(c->indices, shape, coords);
    return next->address;
}

IndexId inline_address(Inliner *c, uint32_t buffer, const Shape *shape, const IndexId *coords) {
    if (inline_is_trial(c->input)) return address_of(c, shape, coords);
    const Buffer *to = &c->input->buffers[buffer];
    IndexId in_memory[MAX_RANK];
    Shape layout = buffer_layout(to);
    buffer_order_coords(to, coords, in_memory);
    return address_of(c, &layout, in_memory);
}

static ScalarId pull_load(Inliner *c, NodeId id, const IndexId *coords, GuardId guard) {
    const Node *node = graph_node(c->graph, id);
    inline_mark(c->marks, id, INLINE_LOADED);
    uint32_t buffer = inline_is_trial(c->input) ? id : c->input->buffer_of_node[id];
    IndexId address = inline_address(c, buffer, &node->shape, coords);
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
        ScalarId value = inline_pull(c, node->args[i], arg_coords, guard);
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

IndexId inline_gemm_coord(Inliner *c, uint32_t d) {
    DimId begin = c->group->begin[d];
    return begin ? index_add_dim(c->indices, c->coords[d], begin) : c->coords[d];
}

/* Whether every column of a product has the result, which stores of the product may read. */
static bool is_of_row(const Node *node) {
    const OpInfo *info = op_info(node->op);
    return info->cls == CLASS_ONLINE && info->row && !info->power;
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
            is_reduced ? index_dim(c->indices, dim_const(c->dims, 0)) : inline_gemm_coord(c, d);
        if (coords[at++] != expected && !(is_of_row(node) && at == node->shape.rank)) return false;
    }
    return true;
}

/* The result of a reduction of this group. The scans of a kernel run side by side, so none reads
 * another. */
static ScalarId pull_stage(Inliner *c, NodeId id, const IndexId *coords) {
    const Node *node = graph_node(c->graph, id);
    bool keeps_shape = group_keeps_shape(c->graph, c->group);
    if (!is_at_result(c, node, coords)) return inline_fail(c, REASON_MISALIGNED, id);
    bool is_element = c->of_slot.n < c->group->reduces.n; /* of a reduction that is composed */
    if (keeps_shape && is_element) return inline_fail(c, REASON_SCAN, id);
    if (graph_is_segments(c->graph, id) && is_element)
        return inline_fail(c, REASON_OTHER_DOMAIN, id); /* all walk their runs at once */
    const TraceIds *operands = &c->of_slot.data[c->marks->slot[id] - 1];
    for (uint32_t i = 0; i < operands->n; i++) note_operand(c, operands->data[i]);
    uint32_t slot = c->marks->slot[id] - 1;
    uint32_t axes = keeps_shape ? c->parallel_axes << 1 | 1 : c->parallel_axes;
    ScalarId result = scalar_stage(c->scalars, c->results.data[slot], slot, axes);
    result = scalar_round(c->scalars, result, node->dtype);
    bool is_plain = keeps_shape || graph_is_segments(c->graph, id);
    return is_plain ? result : sum_or_zero(c, node, result);
}

static ScalarId pull_pad(Inliner *c, const Node *node, const IndexId *coords, GuardId guard) {
    const Node *arg = graph_node(c->graph, node->args[0]);
    IndexId arg_coords[MAX_RANK];
    GuardId own = GUARD_NONE;
    DimId zero = dim_const(c->dims, 0);
    for (uint32_t k = 0; k < node->shape.rank; k++) {
        DimId shift = dim_sub(c->dims, zero, node->attrs.per_axis->begin[k]);
        arg_coords[k] = index_add_dim(c->indices, coords[k], shift);
        own = guard_and(c->scalars, own, arg_coords[k], zero, arg->shape.dims[k]);
        guard = guard_and(c->scalars, guard, arg_coords[k], zero, arg->shape.dims[k]);
    }
    ScalarId value = inline_pull(c, node->args[0], arg_coords, guard);
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
    ScalarId row = inline_pull(c, node->args[1], coords + axis, guard);
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
    ScalarId value = inline_pull(c, node->args[0], arg_coords, guard);
    if (!value || !own) return value;
    ScalarId zero = scalar_const(c->scalars, node->dtype, 0);
    return scalar_prim(c->scalars, PRIM_SELECT, scalar_inside(c->scalars, own), value, zero);
}

bool inline_is_heavy(const Inliner *c, const IndexId *coords, uint32_t rank) {
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
    if (inline_is_heavy(c, arg_coords, graph_node(c->graph, node->args[0])->shape.rank))
        return inline_fail(c, REASON_TOO_LARGE, id);
    return inline_pull(c, node->args[0], arg_coords, guard);
}

/* Each piece under its own guard, selected by comparisons: no copy and no extra reads. A piece that
 * the outer guard excludes is left out. In a chain of concats of slices almost all are. */
static ScalarId pull_concat(Inliner *c, const Node *node, const IndexId *coords, GuardId guard) {
    uint32_t axis = (uint32_t)node->attrs.axis;
    DimId end = node->shape.dims[axis], zero = dim_const(c->dims, 0);
    ScalarId value = SCALAR_NONE;
    for (uint32_t i = node->n_args; i-- > 0;) {
        const Node *piece = graph_node(c->graph, node->args[i]);
        DimId begin = dim_sub(c->dims, end, piece->shape.dims[axis]);
        GuardId within = guard_and(c->scalars, guard, coords[axis], begin, end);
        if (guard_excludes(c->scalars, within, guard)) {
            end = begin;
            continue;
        }
        IndexId arg_coords[MAX_RANK];
        memcpy(arg_coords, coords, node->shape.rank * sizeof *coords);
        arg_coords[axis] = index_add_dim(c->indices, coords[axis], dim_sub(c->dims, zero, begin));
        ScalarId part = inline_pull(c, node->args[i], arg_coords, within);
        if (!part) return SCALAR_NONE;
        GuardId before = guard_and(c->scalars, GUARD_NONE, coords[axis], zero, end);
        value = value ? scalar_prim(c->scalars, PRIM_SELECT, scalar_inside(c->scalars, before),
                                    part, value)
                      : part;
        end = begin;
    }
    return value ? value : scalar_const(c->scalars, node->dtype, 0);
}

/* Whether a value that this group stores is pulled at exactly the coordinates of its store. */
static bool is_in_place(Inliner *c, NodeId id, const IndexId *coords) {
    const Shape *shape = &graph_node(c->graph, id)->shape;
    ValueSpan place = span_of(c->graph, c->group, shape);
    IndexId expected[MAX_RANK];
    if (place == SPAN_NONE) return false;
    inline_place_coords(c, place, shape, expected);
    return memcmp(coords, expected, shape->rank * sizeof *coords) == 0;
}

static bool is_target(const Group *group, NodeId id) {
    for (uint32_t i = 0; i < group->targets.n; i++)
        if (group->targets.data[i].node == id) return true;
    return false;
}

static ScalarId pull_op(Inliner *c, NodeId id, const IndexId *coords, GuardId guard) {
    const Node *node = graph_node(c->graph, id);
    if (scalar_count(c->scalars) > c->input->max_scalars)
        return inline_fail(c, REASON_TOO_LARGE, id);
    if (inline_is_trial(c->input) && node_has(c->input->flags, id, GROUPING_WANTED) &&
        is_target(c->group, id) && id != c->placing && !is_in_place(c, id, coords))
        return inline_fail(c, REASON_MISALIGNED, id);
    inline_mark(c->marks, id, INLINE_VISITED);
    switch (op_info(node->op)->cls) {
    case CLASS_SOURCE:
        return pull_source(c, node, coords);
    case CLASS_ELTWISE:
        return pull_eltwise(c, node, coords, guard);
    case CLASS_CAST: {
        ScalarId value = inline_pull(c, node->args[0], coords, guard);
        return scalar_cast(c->scalars, value, node->dtype, node->op == OP_BITCAST);
    }
    case CLASS_VIEW:
        return pull_view(c, id, coords, guard);
    case CLASS_CONCAT:
        return pull_concat(c, node, coords, guard);
    case CLASS_REDUCE:
    case CLASS_ARGREDUCE:
    case CLASS_SCAN:
    case CLASS_SCAN_BY:
    case CLASS_SORT:
    case CLASS_SEGMENT:
    case CLASS_UPDATE:
    case CLASS_ONLINE:
    case CLASS_LOOP:
    case CLASS_MATMUL:
        break;
    }
    return inline_fail(c, REASON_OTHER_DOMAIN, id);
}

static ScalarId pull_node(Inliner *c, NodeId id, const IndexId *coords, GuardId guard) {
    if (c->marks->slot[id]) return pull_stage(c, id, coords);
    if (inline_in_memory(c, id) && !is_made_again(c, id)) return pull_load(c, id, coords, guard);
    NodeId reader = c->reader;
    c->reader = id;
    ScalarId value = pull_op(c, id, coords, guard);
    c->reader = reader;
    return value;
}

ScalarId inline_pull(Inliner *c, NodeId id, const IndexId *coords, GuardId guard) {
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
    if (c->kernel) key.trace = inline_trace(c, &key, &own);
    memo_put(c->memory, &c->memo, key);
    note_operand(c, key.trace);
    return key.value;
}

/* Coordinates of spans. */

void inline_place_coords(Inliner *c, ValueSpan place, const Shape *shape, IndexId *coords) {
    bool row_cache = shape->rank == c->group->domain.rank;
    uint32_t at = 0;
    for (uint32_t d = 0; d < c->group->domain.rank; d++) {
        bool is_reduced = place == SPAN_ROW && (c->group->axes >> d & 1);
        if (is_reduced && !row_cache) continue;
        coords[at++] = is_reduced ? index_dim(c->indices, dim_const(c->dims, 0)) : c->coords[d];
    }
}
