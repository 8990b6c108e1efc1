/* Composes kernels of pulled values: axes, reductions and stores. See inline.h. */
#include "fuse/inline/inliner.h"
#include "machine/tuning.h"

#include "fuse/inline/inline_axes.h"
#include "ir/indexmap.h"
#include "template/cpu_pack.h"
#include "template/wgmma.h"
#include "template/find_im2col.h"

#include <string.h>

/* Axes: the kernel's loops. */

/* Makes the loops of one kind (parallel or reduced), and the domain coordinates as functions of
 * them. */
static uint32_t make_axes(Inliner *c, const AxisPlan *plan, bool reduced) {
    uint32_t n = 0;
    const Shape *domain = &c->group->domain;
    for (uint32_t at = 0; at < domain->rank; at++) {
        if (((c->group->axes >> plan->order[at] & 1) != 0) != reduced) continue;
        uint32_t members[MAX_RANK], n_members = 1;
        members[0] = plan->order[at];
        DimId extent = domain->dims[members[0]];
        while (plan->joins[at]) {
            at = inline_next_of_kind(c->group, plan, at);
            members[n_members] = plan->order[at];
            extent = dim_mul(c->dims, extent, domain->dims[members[n_members++]]);
        }
        uint32_t axis = index_new_axis(c->indices, extent);
        IndexId rest = index_axis(c->indices, axis);
        for (uint32_t m = n_members; m-- > 0;) {
            DimId size = domain->dims[members[m]];
            c->coords[members[m]] = m ? index_mod(c->indices, rest, size) : rest;
            if (m) rest = index_div(c->indices, rest, size);
        }
        n++;
    }
    return n;
}

static void composer_init(Inliner *c, Arena *arena, const InlineInput *input, Group *group,
                          const AxisPlan *plan, Kernel *kernel) {
    *c = (Inliner){.arena = arena,
                   .memory = input->scratch ? input->scratch : arena,
                   .input = input,
                   .marks = input->marks,
                   .graph = input->graph,
                   .dims = input->graph->dims,
                   .placing = NODE_NONE,
                   .reader = NODE_NONE,
                   .kernel = input->has_traces ? kernel : NULL,
                   .group = group};
    c->indices = indextab_new(arena, c->dims);
    c->scalars = scalartab_new(c->memory, c->indices);
    if (c->graph->is_fast) scalartab_set_fast(c->scalars);
    kernel->scalars = c->scalars;
    kernel->n_parallel = make_axes(c, plan, false);
    kernel->first_reduced = kernel->n_parallel;
    kernel->n_reduced = make_axes(c, plan, true);
    kernel->segment_axis = NO_AXIS;
    c->parallel_axes = kernel_parallel_axes(kernel);
    kernel->form = group_form(c->graph, group);
}

/* Reductions and stores. */

static DimId reduced_count(Inliner *c) {
    DimId count = dim_const(c->dims, 1);
    for (uint32_t d = 0; d < c->group->domain.rank; d++)
        if (c->group->axes >> d & 1) count = dim_mul(c->dims, count, c->group->domain.dims[d]);
    return count;
}

/* An operand of a product, read at (.., m, k) or (.., k, n) with leading axes broadcast. The domain
 * is (.., m, n, k), or a slice's part of m, n and the batches. */
static ScalarId pull_operand(Inliner *c, const Node *node, uint32_t side) {
    const Shape *shape = &graph_node(c->graph, node->args[side])->shape;
    uint32_t rank = node->shape.rank;
    IndexId at[MAX_RANK], coords[MAX_RANK];
    for (uint32_t d = 0; d <= rank; d++) at[d] = inline_gemm_coord(c, d);
    Shape batch = {.rank = rank - 2}, own = {.rank = shape->rank - 2};
    memcpy(batch.dims, node->shape.dims, batch.rank * sizeof(DimId));
    memcpy(own.dims, shape->dims, own.rank * sizeof(DimId));
    indexmap_broadcast(c->indices, &batch, at, &own, coords);
    coords[own.rank] = side == 1 ? at[rank] : at[rank - 2];
    coords[own.rank + 1] = side == 1 ? at[rank - 1] : at[rank];
    return inline_pull(c, node->args[side], coords, GUARD_NONE);
}

static bool compose_contract(Inliner *c, Kernel *kernel, NodeId id) {
    const Node *node = graph_node(c->graph, id);
    ScalarId operands[2];
    if (c->group->domain.rank != node->shape.rank + 1) return inline_fail(c, REASON_TOO_LARGE, id);
    for (uint32_t side = 0; side < 2; side++) {
        operands[side] = pull_operand(c, node, side);
        if (!operands[side]) return false;
        Dtype dtype = graph_node(c->graph, node->args[side])->dtype;
        operands[side] =
            scalar_cvt(c->scalars, operands[side], dtype_multiplied(dtype, c->input->has_f8_mma));
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

/* Softmax and product: the scores, the values and the factors of weights. */
static bool compose_online(Inliner *c, Kernel *kernel, NodeId id) {
    const Node *node = graph_node(c->graph, id);
    if (c->group->domain.rank != node->shape.rank + 1) return inline_fail(c, REASON_TOO_LARGE, id);
    ScalarId scores = pull_operand(c, node, 0);
    ScalarId values = scores ? pull_operand(c, node, 1) : SCALAR_NONE, factor = SCALAR_NONE;
    if (!values) return false;
    if (node->n_args > 2) {
        factor = pull_operand(c, node, 2);
        if (!factor) return false;
    }
    inline_mark(c->marks, id, INLINE_VISITED);
    Dtype acc = dtype_compute(node->dtype);
    c->marks->slot[id] = kernel->reduces.n + 1;
    vec_push(
        c->arena, &kernel->reduces,
        (Reduce){.node = id,
                 .combine = PRIM_ADD,
                 .power = op_info(node->op)->power,
                 .row = op_info(node->op)->row,
                 .quantize = node->attrs.quantize,
                 .acc = acc,
                 .lhs = scalar_cvt(c->scalars, scores, acc),
                 .rhs = scalar_cvt(c->scalars, values, graph_node(c->graph, node->args[1])->dtype),
                 .factor = factor ? scalar_cvt(c->scalars, factor, acc) : SCALAR_NONE,
                 .result = c->graph->is_fast ? acc : node->dtype});
    return true;
}

/* The elements and their numbers are read at (.., i, ..), where the domain is (.., segment, .., i).
 */
static bool compose_segments(Inliner *c, Kernel *kernel, NodeId id) {
    const Node *node = graph_node(c->graph, id);
    const OpInfo *info = op_info(node->op);
    uint32_t rank = node->shape.rank, axis = 0;
    while (!(node->attrs.axes >> axis & 1)) axis++;
    ScalarId read[2];
    if (c->group->domain.rank != rank + 1) return inline_fail(c, REASON_TOO_LARGE, id);
    IndexId at[MAX_RANK];
    memcpy(at, c->coords, rank * sizeof *at);
    at[axis] = c->coords[rank];
    for (uint32_t k = 0; k < 2; k++) {
        read[k] = inline_pull(c, node->args[k], at, GUARD_NONE);
        if (!read[k]) return false;
    }
    inline_mark(c->marks, id, INLINE_VISITED);
    Dtype acc = dtype_accumulator(node->dtype);
    ScalarId segment = scalar_index(c->scalars, c->coords[axis]);
    c->marks->slot[id] = kernel->reduces.n + 1;
    vec_push(c->arena, &kernel->reduces,
             (Reduce){.node = id,
                      .combine = info->combine,
                      .acc = acc,
                      .identity = dtype_round(node->dtype, info->identity),
                      .value = scalar_cvt(c->scalars, read[0], acc),
                      .rhs = read[1],
                      .arg_index =
                          scalar_cvt(c->scalars, segment, scalar_get(c->scalars, read[1])->dtype),
                      .result = c->graph->is_fast ? acc : node->dtype});
    return true;
}

static bool compose_one(Inliner *c, Kernel *kernel, NodeId id) {
    c->reader = id;
    if (graph_is_matmul(c->graph, id)) return compose_contract(c, kernel, id);
    if (graph_is_online(c->graph, id)) return compose_online(c, kernel, id);
    if (graph_is_segments(c->graph, id)) return compose_segments(c, kernel, id);
    if (graph_is_scan_by(c->graph, id)) return inline_compose_scan_by(c, kernel, id);
    const Node *node = graph_node(c->graph, id);
    const OpInfo *info = op_info(node->op);
    Dtype dtype = graph_node(c->graph, node->args[0])->dtype;
    bool is_arg = info->cls == CLASS_ARGREDUCE, is_index = is_arg || info->cls == CLASS_SORT;
    Dtype acc = info->cls == CLASS_SORT ? dtype_compute(dtype) : dtype_accumulator(dtype);
    inline_mark(c->marks, id, INLINE_VISITED);
    ScalarId value = inline_pull(c, node->args[0], c->coords, GUARD_NONE);
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
    if (inline_in_memory(c, id) || *budget == 0) return false;
    --*budget;
    const Node *node = graph_node(c->graph, id);
    ValueSpan place = span_of(c->graph, c->group, &node->shape);
    if (place != SPAN_NONE) {
        IndexId coords[MAX_RANK];
        inline_place_coords(c, place, &node->shape, coords);
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
    if (!inline_is_trial(c->input) || c->group->is_whole) return !inline_in_memory(c, id);
    return is_made_here(c, id, &budget);
}

static bool may_pass(void *user, NodeId id) {
    return !inline_in_memory(user, id);
}

static bool find_path(Inliner *c, NodeId target, StorePath *path) {
    StorePathSearch search = {.graph = c->graph,
                              .group = c->group,
                              .may_begin = may_begin,
                              .may_pass = may_pass,
                              .user = c};
    NodeId reduce = c->group->reduces.n ? c->group->reduces.data[0] : NODE_NONE;
    bool stores_rows = reduce != NODE_NONE &&
                       (graph_is_matmul(c->graph, reduce) || graph_is_segments(c->graph, reduce) ||
                        graph_is_online(c->graph, reduce));
    return store_map_find_path(&search, target, path) && (!stores_rows || path->place == SPAN_ROW);
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
        if (c->kernel) entry.trace = inline_trace(c, &entry, c->operands);
        memo_put(c->memory, &c->memo, entry);
    }
    c->operands->n = 0;
    c->placing = id;
    ScalarId above = inline_pull(c, id, at->at, at->guard);
    c->placing = NODE_NONE;
    return above;
}

/* Pulls the first value of the path at coordinates `at` and follows the path to its end. The value
 * is computed at positions outside the slices too. */
static ScalarId pull_along(Inliner *c, const StorePath *path, StoreCoords *at) {
    NodeId root = path->nodes[path->n - 1];
    ScalarId value = inline_pull(c, root, at->at, GUARD_NONE);
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

/* Stores the part that an update replaces. The domain is the part's shape. */
static bool compose_update(Inliner *c, StoreTarget target, Store *store) {
    const Node *node = graph_node(c->graph, target.node);
    const Shape *part = &graph_node(c->graph, node->args[1])->shape;
    IndexId at[MAX_RANK];
    TraceIds traces = {0};
    if (c->group->axes || !shape_equal(part, &c->group->domain))
        return inline_fail(c, REASON_OTHER_DOMAIN, target.node) != SCALAR_NONE;
    c->operands = &traces;
    ScalarId value = inline_pull(c, node->args[1], c->coords, GUARD_NONE);
    for (uint32_t k = 0; k < part->rank && value; k++) {
        DimId room = dim_sub(c->dims, node->shape.dims[k], part->dims[k]);
        IndexId axis = index_dim(c->indices, dim_const(c->dims, k));
        ScalarId start = inline_pull(c, node->args[2], &axis, GUARD_NONE);
        if (!start) return false;
        start = scalar_clamp_index(c->scalars, start,
                                   scalar_index(c->scalars, index_dim(c->indices, room)));
        DimId n_places = dim_add(c->dims, room, dim_const(c->dims, 1));
        bool is_whole = node->shape.dims[k] == part->dims[k];
        at[k] = is_whole ? c->coords[k]
                         : index_add(c->indices, scalar_as_index(c->scalars, start, n_places),
                                     c->coords[k]);
    }
    c->operands = NULL;
    if (!value) return false;
    inline_mark(c->marks, target.node, INLINE_VISITED);
    *store = (Store){.value = value, .node = target.node, .buffer = UINT32_MAX, .is_update = true};
    MemoEntry made = memo_key(target.node, GUARD_NONE, at, part->rank);
    made.value = value;
    made.is_again = true; /* it may be in memory for later kernels, but not for this kernel */
    made.coords = arena_copy(c->arena, at, part->rank * sizeof *at);
    if (c->kernel) store->trace = inline_trace(c, &made, &traces) + 1;
    if (!inline_is_trial(c->input)) {
        bool is_output = target.output != OUTPUT_NONE;
        uint32_t old = c->input->buffer_of_node[node->args[0]];
        store->buffer = is_output ? c->input->buffer_of_output[target.output]
                                  : c->input->buffer_of_node[target.node];
        store->copied = old == store->buffer ? 0 : old + 1;
    }
    store->address = inline_address(c, store->buffer, &node->shape, at);
    return true;
}

/* Whether the store leaves out all columns but the first of a matrix. */
static bool has_one_column(const Inliner *c, const Store *store) {
    uint32_t n = c->group->domain.rank - 2;
    DimId zero = dim_const(c->dims, 0), one = dim_const(c->dims, 1);
    if (!store->guard) return c->group->domain.dims[n] == one;
    Guard guard = guard_get(c->scalars, store->guard);
    return guard.index == c->coords[n] && guard.lo == zero && guard.hi == one && !guard.next;
}

/* Where a group has two reductions of rows in one pass, the second one has a result for each row. A
 * target of the second one alone stores one element for each row. A target of both is made where
 * the product is; templates that multiply powers have no result of the row there. */
static bool settle_rows(Inliner *c, NodeId target, Store *store, bool *is_row) {
    const Group *group = c->group;
    if (group->reduces.n < 2 || !graph_is_online(c->graph, group->reduces.data[0])) return true;
    const bool *is_reached = scalar_reached(c->memory, c->scalars, store->value);
    bool reads[2] = {false, false};
    for (ScalarId id = 1; id <= store->value; id++) {
        const Scalar *s = scalar_get(c->scalars, id);
        if (is_reached[id] && s->kind == SCALAR_STAGE) reads[s->slot] = true;
    }
    if (!reads[1]) return true;
    bool has_powers = op_info(graph_node(c->graph, group->reduces.data[0])->op)->power;
    if (reads[0] && !has_powers) return true;
    if (reads[0] || !has_one_column(c, store))
        return inline_fail(c, REASON_OTHER_DOMAIN, target) != SCALAR_NONE;
    store->guard = GUARD_NONE;
    *is_row = false;
    return true;
}

static bool compose_target(Inliner *c, StoreTarget target, Store *store, bool *is_row) {
    StorePath path;
    if (graph_is_update(c->graph, target.node)) return compose_update(c, target, store);
    if (!find_path(c, target.node, &path))
        return inline_fail(c, REASON_OTHER_DOMAIN, target.node) != SCALAR_NONE;
    *is_row = path.place == SPAN_ROW;
    if (*is_row && group_keeps_shape(c->graph, c->group))
        return inline_fail(c, REASON_SCAN, target.node) != SCALAR_NONE;
    c->has_paths = c->has_paths || path.n > 1;
    StoreCoords at = {.guard = GUARD_NONE};
    inline_place_coords(c, path.place, &graph_node(c->graph, path.nodes[path.n - 1])->shape, at.at);
    /* The stored node may be in memory for later kernels, but not for this kernel. */
    TraceIds traces = {0};
    c->operands = &traces;
    ScalarId value = pull_along(c, &path, &at);
    c->operands = NULL;
    if (!value) return false;
    if (inline_is_heavy(c, at.at, graph_node(c->graph, target.node)->shape.rank))
        return inline_fail(c, REASON_TOO_LARGE, target.node) != SCALAR_NONE;
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
    store->address = inline_address(c, store->buffer, &graph_node(c->graph, held)->shape, at.at);
    return settle_rows(c, target.node, store, is_row);
}

static void collect_nodes(Inliner *c, Kernel *kernel) {
    c->group->has_passes = form_info(kernel->form)->reduces && kernel->stages.n > 1;
    c->group->has_inner = form_info(kernel->form)->reduces && kernel_stores_inner(kernel);
    c->group->loads.n = 0;
    kernel->nodes.n = 0;
    InlineMarks *marks = c->marks;
    inline_sort_marks(marks);
    for (uint32_t i = 0; i < marks->n_touched; i++) {
        NodeId id = marks->touched[i];
        if (node_has(marks->flags, id, INLINE_LOADED)) vec_push(c->arena, &c->group->loads, id);
        if (node_has(marks->flags, id, INLINE_VISITED)) vec_push(c->arena, &kernel->nodes, id);
    }
}

/* Composes the group's reductions and targets that are not composed yet. */
static bool compose_rest(Inliner *c, Kernel *kernel) {
    const Group *group = c->group;
    bool ok = true;
    while (ok && kernel->reduces.n < group->reduces.n)
        ok = compose_reduce(c, kernel, group->reduces.data[kernel->reduces.n]);
    while (ok && c->stores.n < group->targets.n) {
        Store store = {0};
        bool is_row = false;
        ok = compose_target(c, group->targets.data[c->stores.n], &store, &is_row);
        vec_push(c->arena, &c->stores, store);
        vec_push(c->arena, &c->is_row, is_row);
    }
    if (!ok) return false;
    memset(&kernel->stages, 0, sizeof kernel->stages);
    memset(&kernel->row_stores, 0, sizeof kernel->row_stores);
    inline_add_stages(c->arena, kernel, &c->stage);
    inline_arrange_stages(c->arena, kernel, c->stage.data, c->stores.data, c->is_row.data,
                          c->stores.n);
    collect_nodes(c, kernel);
    return true;
}

static bool compose_with(Arena *arena, const InlineInput *input, Group *group, const AxisPlan *plan,
                         Kernel *kernel, InlineFailure *failure) {
    Inliner c;
    *kernel = (Kernel){.name = kernel->name, .span = kernel->span};
    composer_init(&c, arena, input, group, plan, kernel);
    bool ok = compose_rest(&c, kernel);
    *failure = c.failure;
    inline_clear_marks(c.marks);
    return ok;
}

/* Whether a CPU packs rows of the lhs as they come, whichever rows they are, and m by itself is too
 * short to fill its tiles. */
static bool cores_join_rows(const InlineInput *input, const Kernel *kernel) {
    enum { WIDEST = 16 }; /* lanes of a CPU's vectors */
    if (!input->has_cores || !form_info(kernel->form)->multiplies || kernel->n_reduced != 1)
        return false;
    DimId m = index_axis_extent(scalartab_indices(kernel->scalars), gemm_axis_m(kernel));
    CpuPack pack = cpu_pack_rows(input->scratch, kernel, kernel->reduces.data[0].lhs,
                                 gemm_axis_m(kernel), WIDEST, false);
    CpuStrips strips;
    if (cpu_pack_has_strips(input->scratch, kernel, WIDEST, &strips)) return false;
    bool is_left = pack.way == PACK_NONE && !cpu_pack_transposes(input->scratch, kernel, WIDEST);
    return dim_hi(input->graph->dims, m) <= FUSE_SHORT_ROWS &&
           (is_left || pack.way == PACK_K || pack.way == PACK_RUNS_OF_K);
}

/* Whether the rows of one batch fill less than half of a tile. Rows of all batches may then share
 * tiles as windows of one tap, such as the pixels of a strided 1 x 1 convolution. */
static bool leaves_tiles_empty(const InlineInput *input, const Kernel *kernel) {
    if (!form_info(kernel->form)->multiplies) return false;
    DimId m = index_axis_extent(scalartab_indices(kernel->scalars), gemm_axis_m(kernel));
    return dim_hi(input->graph->dims, m) < FUSE_SHORT_TILE_ROWS;
}

/* Whether axes are joined follows from the kernel with all axes separate. */
static bool plan_axes(const InlineInput *input, Group *group, Kernel *kernel, AxisPlan *plan,
                      InlineFailure *failure) {
    if (!inline_may_join_axes(group)) return true;
    if (!compose_with(input->scratch, input, group, plan, kernel, failure)) return false;
    inline_join_axes(input->graph->dims, group, kernel, input->has_cores, plan);
    AxisPlan joined = *plan;
    if (cores_join_rows(input, kernel)) inline_join_rows(group, kernel, plan);
    if (input->has_im2col && (im2col_may_be(kernel) || leaves_tiles_empty(input, kernel)) &&
        inline_join_rows(group, kernel, &joined)) {
        memset(&group->loads, 0, sizeof group->loads);
        int64_t depth = wgmma_depth(gemm_operand_dtype(kernel));
        if (compose_with(input->scratch, input, group, &joined, kernel, failure) &&
            im2col_find(kernel, input->buffers, depth))
            *plan = joined;
    }
    memset(&group->loads, 0, sizeof group->loads);
    return true;
}

bool inline_group(Arena *arena, const InlineInput *input, Group *group, Kernel *kernel,
                  InlineFailure *failure) {
    AxisPlan plan = inline_order_axes(input, group);
    if (inline_is_trial(input)) return compose_with(arena, input, group, &plan, kernel, failure);
    ArenaMark mark = arena_mark(input->scratch);
    bool ok = plan_axes(input, group, kernel, &plan, failure);
    arena_rewind(input->scratch, mark);
    ok = ok && compose_with(arena, input, group, &plan, kernel, failure);
    if (ok) kernel->scalars = scalartab_moved(arena, kernel->scalars);
    arena_rewind(input->scratch, mark);
    return ok;
}

/* Trials. */

struct InlineTrial {
    Arena *arena;
    InlineMarks marks;
    InlineInput input;
    AskedFacts asked;
    Group group;
    Kernel kernel;
    Inliner inliner;
    bool has_group; /* it has inlined `group` */
};

InlineTrial *inline_trial_new(Arena *arena, Arena *trials, const Graph *graph) {
    InlineTrial *trial = arena_array(arena, InlineTrial, 1);
    trial->arena = trials;
    trial->marks = inline_marks_new(arena, graph);
    return trial;
}

void inline_trial_drop(InlineTrial *trial) {
    trial->has_group = false;
}

/* Whether no reduction of the group may read the result of another, which its stores may. */
static bool has_results_for_stores(const Graph *graph, const Group *group) {
    return group_keeps_shape(graph, group) ||
           (group->reduces.n && graph_is_segments(graph, group->reduces.data[0]));
}

/* Whether inlining the group from the start would lead to the same: the facts have not changed, and
 * what the trial has pulled does not depend on the new reductions and targets. A path may begin at
 * a value of a reduction, and a wanted target is pulled at its store alone. What was pulled for a
 * store may have results that a new reduction may not read. */
static bool may_continue(const InlineTrial *trial, const InlineInput *input, const Group *group) {
    const Group *last = &trial->group;
    bool may = trial->has_group && trial->input.group == input->group &&
               group_continues(last, group) &&
               (group->reduces.n == last->reduces.n ||
                (!trial->inliner.has_paths && !has_results_for_stores(input->graph, last)));
    for (uint32_t i = last->targets.n; i < group->targets.n && may; i++) {
        NodeId target = group->targets.data[i].node;
        may = !node_has(input->flags, target, GROUPING_WANTED) ||
              !node_has(trial->marks.flags, target, INLINE_VISITED);
    }
    return may && inline_facts_hold(input, &trial->asked);
}

static void start_trial(InlineTrial *trial) {
    AxisPlan separate = inline_order_axes(&trial->input, &trial->group);
    arena_reset(trial->arena);
    inline_clear_marks(&trial->marks);
    memset(&trial->asked, 0, sizeof trial->asked);
    memset(&trial->kernel, 0, sizeof trial->kernel);
    composer_init(&trial->inliner, trial->arena, &trial->input, &trial->group, &separate,
                  &trial->kernel);
}

/* The node at which a group has too many scalars depends on the order in which it was inlined. */
static bool compose_trial(InlineTrial *trial, bool *continues) {
    bool ok = compose_rest(&trial->inliner, &trial->kernel);
    if (!*continues || scalar_count(trial->kernel.scalars) <= trial->input.max_scalars) return ok;
    *continues = false;
    start_trial(trial);
    return compose_rest(&trial->inliner, &trial->kernel);
}

bool inline_try(InlineTrial *trial, const InlineInput *input, Group *group, const Kernel **kernel,
                TrialNodes *nodes, InlineFailure *failure) {
    bool continues = may_continue(trial, input, group);
    uint32_t n_asked = trial->asked.n, n_visited = trial->marks.n_visited;
    uint32_t n_scalars = continues ? scalar_count(trial->kernel.scalars) : 0;
    trial->input = *input;
    trial->input.marks = &trial->marks;
    trial->input.asked = &trial->asked;
    trial->group = *group;
    if (!continues) start_trial(trial);
    trial->has_group = compose_trial(trial, &continues);
    *failure = trial->inliner.failure;
    *kernel = &trial->kernel;
    *group = trial->group;
    trial->group = group_copy(trial->arena, group);
    *nodes = (TrialNodes){.asked = trial->asked.data,
                          .visited = trial->marks.visited,
                          .n_asked = trial->asked.n,
                          .n_visited = trial->marks.n_visited,
                          .continues = continues,
                          .n_asked_before = continues ? n_asked : 0,
                          .n_visited_before = continues ? n_visited : 0,
                          .n_scalars =
                              scalar_count(trial->kernel.scalars) - (continues ? n_scalars : 0)};
    return trial->has_group;
}
