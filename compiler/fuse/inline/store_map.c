/* Paths from a value of the group to a stored slice. See store_map.h. */
#include "fuse/inline/store_map.h"
#include "machine/tuning.h"

#include "ir/indexmap.h"

#include <stdlib.h>
#include <string.h>

ValueSpan span_of(const Graph *graph, const Group *group, const Shape *shape) {
    if (shape_equal(shape, &group->domain)) return SPAN_INNER;
    if (!group->axes) return SPAN_NONE;
    Shape kept = shape_reduced(graph->dims, &group->domain, group->axes, true);
    Shape dropped = shape_reduced(graph->dims, &group->domain, group->axes, false);
    return shape_equal(shape, &kept) || shape_equal(shape, &dropped) ? SPAN_ROW : SPAN_NONE;
}

/* Finding a path. */

typedef struct Finder {
    const StorePathSearch *search;
    StorePath *path;
    uint32_t n_visits;
} Finder;

static ValueSpan node_place(const StorePathSearch *search, NodeId id) {
    return span_of(search->graph, search->group, &graph_node(search->graph, id)->shape);
}

/* Whether the node's value is its argument's value, rearranged, sliced, or changed elementwise. */
static bool follows(const Graph *graph, NodeId id, NodeId arg) {
    const Node *node = graph_node(graph, id), *from = graph_node(graph, arg);
    OpClass cls = op_info(node->op)->cls;
    if (cls == CLASS_VIEW) return indexmap_can_push(node->op);
    bool is_plain = cls == CLASS_ELTWISE || cls == CLASS_CAST;
    return is_plain && from->op != OP_CONST && shape_equal(&node->shape, &from->shape);
}

static bool descend(Finder *f, NodeId id) {
    const StorePathSearch *s = f->search;
    StorePath *path = f->path;
    if (path->n == MAX_PATH || f->n_visits++ == FUSE_STORE_VISITS) return false;
    path->nodes[path->n++] = id;
    path->place = path->n > 1 ? node_place(s, id) : SPAN_NONE;
    bool has_place = path->place != SPAN_NONE;
    if (has_place && s->may_begin(s->user, id)) return true;
    const Node *node = graph_node(s->graph, id);
    for (uint32_t i = 0; i < node->n_args && !has_place && s->may_pass(s->user, id); i++)
        if (follows(s->graph, id, node->args[i]) && descend(f, node->args[i])) return true;
    path->n--;
    return false;
}

bool store_map_find_path(const StorePathSearch *search, NodeId node, StorePath *path) {
    *path = (StorePath){.place = node_place(search, node), .n = 1, .nodes = {node}};
    for (NodeId at = node; path->place == SPAN_NONE;) {
        const Node *view = graph_node(search->graph, at);
        if (path->n == MAX_PATH || !indexmap_is_bijective(view->op)) break;
        path->nodes[path->n++] = at = view->args[0];
        path->place = node_place(search, at);
    }
    if (path->place != SPAN_NONE) return true;
    Finder finder = {.search = search, .path = path};
    path->n = 0;
    return descend(&finder, node);
}

/* Following a path. */

GuardId store_map_guard(ScalarTab *scalars, StoreCoords *coords) {
    for (uint32_t k = 0; k < MAX_RANK; k++) {
        Guard *range = &coords->ranges[k];
        if (range->lo != DIM_NONE)
            coords->guard = guard_and(scalars, coords->guard, range->index, range->lo, range->hi);
        *range = (Guard){.lo = DIM_NONE};
    }
    return coords->guard;
}

/* The range of coordinate `k` inside the slice, in terms of the index from which the coordinate is
 * made. A slice of a slice lies inside it, so the last range suffices. */
static Guard slice_range(IndexTab *tab, const Node *slice, uint32_t k, IndexId at) {
    DimTab *dims = indextab_dims(tab);
    DimId zero = dim_const(dims, 0), one = dim_const(dims, 1);
    DimId offset = index_expr(tab, at).offset, back = dim_sub(dims, zero, offset);
    DimId n = slice->shape.dims[k], span = n;
    int64_t step = slice->attrs.per_axis->step[k];
    if (step != 1 && n != zero) {
        span = dim_sub(dims, n, one);
        span = dim_mul_const(dims, span, llabs(step));
        span = dim_add(dims, span, one);
    }
    Guard range = {.index = index_add_dim(tab, at, back)};
    range.lo = dim_sub(dims, slice->attrs.per_axis->begin[k], offset);
    if (step < 0) range.lo = dim_sub(dims, dim_add(dims, range.lo, one), span);
    range.hi = dim_add(dims, range.lo, span);
    return range;
}

static void cut_to_slice(ScalarTab *scalars, const Node *slice, uint32_t k, StoreCoords *coords) {
    IndexTab *tab = scalartab_indices(scalars);
    DimTab *dims = indextab_dims(tab);
    DimId zero = dim_const(dims, 0), one = dim_const(dims, 1);
    DimId back = dim_sub(dims, zero, slice->attrs.per_axis->begin[k]);
    DimId step = dim_const(dims, llabs(slice->attrs.per_axis->step[k]));
    coords->ranges[k] = slice_range(tab, slice, k, coords->at[k]);
    IndexId at = index_add_dim(tab, coords->at[k], back);
    if (slice->attrs.per_axis->step[k] < 0) at = index_scale(tab, at, dim_const(dims, -1));
    if (step != one) {
        IndexId rest = index_mod(tab, at, step);
        coords->guard = guard_and(scalars, coords->guard, rest, zero, one);
        at = index_div(tab, at, step);
    }
    coords->at[k] = slice->shape.dims[k] == one ? index_dim(tab, zero) : at;
}

void store_map_follow(ScalarTab *scalars, const Graph *graph, NodeId view, StoreCoords *coords) {
    IndexTab *tab = scalartab_indices(scalars);
    const Node *node = graph_node(graph, view);
    const Shape *from = &graph_node(graph, node->args[0])->shape;
    if (node->op == OP_SLICE) {
        for (uint32_t k = 0; k < node->shape.rank; k++)
            if (node->shape.dims[k] != from->dims[k] || node->attrs.per_axis->step[k] != 1 ||
                node->attrs.per_axis->begin[k] != dim_const(graph->dims, 0))
                cut_to_slice(scalars, node, k, coords);
        return;
    }
    Guard ranges[MAX_RANK] = {{0}};
    if (node->op == OP_TRANSPOSE)
        for (uint32_t k = 0; k < node->shape.rank; k++)
            ranges[k] = coords->ranges[node->attrs.per_axis->perm[k]];
    else
        store_map_guard(scalars, coords);
    memcpy(coords->ranges, ranges, sizeof ranges);
    indexmap_push(tab, graph, view, coords->at);
}
