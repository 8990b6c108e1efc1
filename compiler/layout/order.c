/* The order of axes in which temporaries are stored. See order.h.
 *
 * A walk goes down from a node through all that is computed where it is read, with coordinates in
 * terms of the axes at which it began, and ends at products and at stored values. Walks from the
 * operands of GEMMs find the axes that readers want, and so do walks from stored values whose axis
 * is known. Walks from stored values also find the axes in which these values come out. */
#include "layout/order.h"
#include "layout/pad.h"
#include "machine/machine.h"
#include "machine/tuning.h"

#include "ir/indexmap.h"
#include "schedule/gemm.h"
#include "template/cpu_taps.h"

#include <string.h>

/* An axis on which all agree who were asked. */
typedef struct Wish {
    uint8_t axis;      /* plus 1; 0: nobody was asked */
    bool is_contested; /* they do not agree, or one of them wants no axis */
} Wish;

typedef struct Reading {
    Wish wish;
    bool has_taps; /* a reader goes along k over several axes of the value */
} Reading;

typedef struct Orders {
    const Graph *graph;
    StoredValues stored;
    bool has_cores;
    Reading *readings; /* per node */
    uint32_t *order;   /* per node: the result */
    bool reads_bound;  /* walks ask inputs too in which order they lie */
} Orders;

typedef struct Walk Walk;
struct Walk {
    Orders *orders;
    IndexTab *tab;
    uint32_t n_visits;
    uint32_t k;    /* readers: the axis that they read contiguously */
    bool has_taps; /* readers: a GEMM goes over several axes of what they compute */
    Wish made;     /* of a stored value: the axis in which it comes out */
    void (*end)(Walk *walk, NodeId id, const IndexId *coords);
};

static void wish_for(Wish *wish, uint32_t axis_plus_1) {
    if (!axis_plus_1 || (wish->axis && wish->axis != axis_plus_1)) wish->is_contested = true;
    wish->axis = (uint8_t)axis_plus_1;
}

static bool has_agreed(Wish wish) {
    return wish.axis && !wish.is_contested;
}

/* Elements that one wide access holds. */
static uint32_t access_elems(const Node *node) {
    return ACCESS_BYTES / dtype_bytes(node->dtype);
}

static bool is_stored(const Orders *o, NodeId id) {
    return node_has(o->stored.values, id, o->stored.stored) || graph_is_bound(o->graph, id);
}

/* Whether the order of the value's axes is the plan's to choose. */
static bool is_temporary(const Orders *o, NodeId id) {
    return is_stored(o, id) && !graph_is_bound(o->graph, id) && !graph_is_update(o->graph, id) &&
           !node_has(o->stored.values, id, o->stored.output) &&
           !node_has(o->stored.values, id, o->stored.prepared);
}

/* Whether a GEMM computes the node. That of taps is computed in lanes along any axis on a CPU, as a
 * map is. */
static bool is_gemm(const Orders *o, NodeId id) {
    return graph_is_matmul(o->graph, id) && !(o->has_cores && cpu_taps_may_be(o->graph, id));
}

static void walk_down(Walk *w, NodeId id, const IndexId *coords);

/* The coordinates in the argument of a view; false: its places are known at run time only. */
static bool pull_view(const Walk *w, const Node *node, const IndexId *coords, IndexId *below) {
    const Graph *graph = w->orders->graph;
    DimTab *dims = graph->dims;
    bool can_pull = indexmap_can_pull(node->op);
    if (can_pull) indexmap_pull(w->tab, graph, node, coords, below);
    if (can_pull || node->op != OP_PAD) return can_pull;
    for (uint32_t k = 0; k < node->shape.rank; k++)
        below[k] = index_add_dim(w->tab, coords[k],
                                 dim_sub(dims, dim_const(dims, 0), node->attrs.per_axis->begin[k]));
    return true;
}

static void walk_concat(Walk *w, const Node *node, const IndexId *coords) {
    const Graph *graph = w->orders->graph;
    uint32_t axis = (uint32_t)node->attrs.axis;
    DimId before = dim_const(graph->dims, 0);
    for (uint32_t i = 0; i < node->n_args; i++) {
        IndexId below[MAX_RANK];
        memcpy(below, coords, node->shape.rank * sizeof *below);
        below[axis] = index_add_dim(w->tab, coords[axis],
                                    dim_sub(graph->dims, dim_const(graph->dims, 0), before));
        walk_down(w, node->args[i], below);
        const Shape *shape = &graph_node(graph, node->args[i])->shape;
        before = dim_add(graph->dims, before, shape->dims[axis]);
    }
}

/* A coordinate along a reduced axis is an axis of its own. */
static void walk_reduction(Walk *w, const Node *node, const IndexId *coords) {
    const Shape *shape = &graph_node(w->orders->graph, node->args[0])->shape;
    IndexId below[MAX_RANK];
    for (uint32_t k = 0, at = 0; k < shape->rank; k++) {
        bool is_reduced = node->attrs.axes >> k & 1;
        below[k] =
            is_reduced ? index_axis(w->tab, index_new_axis(w->tab, shape->dims[k])) : coords[at];
        at += !is_reduced || node->attrs.keep;
    }
    walk_down(w, node->args[0], below);
}

/* The operands of a matmul, of which k is an axis of its own. */
static void walk_operands(Walk *w, const Node *node, const IndexId *coords) {
    const Graph *graph = w->orders->graph;
    const Shape *left = &graph_node(graph, node->args[0])->shape;
    uint32_t n_batches = node->shape.rank - 2;
    Shape batches = node->shape;
    batches.rank = n_batches;
    IndexId k = index_axis(w->tab, index_new_axis(w->tab, left->dims[left->rank - 1]));
    for (uint32_t side = 0; side < 2; side++) {
        IndexId below[MAX_RANK];
        Shape own = graph_node(graph, node->args[side])->shape;
        own.rank -= 2;
        indexmap_broadcast(w->tab, &batches, coords, &own, below);
        below[own.rank] = side ? k : coords[n_batches];
        below[own.rank + 1] = side ? coords[n_batches + 1] : k;
        walk_down(w, node->args[side], below);
    }
}

static void walk_args(Walk *w, NodeId id, const IndexId *coords) {
    const Graph *graph = w->orders->graph;
    const Node *node = graph_node(graph, id);
    OpClass cls = op_info(node->op)->cls;
    IndexId pulled[MAX_RANK];
    if (cls == CLASS_VIEW && pull_view(w, node, coords, pulled))
        walk_down(w, node->args[0], pulled);
    if (cls == CLASS_CONCAT) walk_concat(w, node, coords);
    enum { MOST_OF_MATMUL = 15, MOST_OF_REDUCTION = 8 }; /* axes of a walk that goes on */
    if (cls == CLASS_MATMUL && index_n_axes(w->tab) <= MOST_OF_MATMUL)
        walk_operands(w, node, coords);
    if (cls == CLASS_REDUCE && index_n_axes(w->tab) <= MOST_OF_REDUCTION)
        walk_reduction(w, node, coords);
    for (uint32_t i = 0; (cls == CLASS_ELTWISE || cls == CLASS_CAST) && i < node->n_args; i++) {
        IndexId below[MAX_RANK];
        indexmap_broadcast(w->tab, &node->shape, coords, &graph_node(graph, node->args[i])->shape,
                           below);
        walk_down(w, node->args[i], below);
    }
}

static void walk_down(Walk *w, NodeId id, const IndexId *coords) {
    if (w->n_visits++ >= LAYOUT_ORDER_VISITS) return;
    if (is_stored(w->orders, id) || is_gemm(w->orders, id))
        w->end(w, id, coords);
    else
        walk_args(w, id, coords);
}

static Walk walk_new(Arena *arena, Orders *o, const Shape *shape, IndexId *coords) {
    Walk walk = {.orders = o, .tab = indextab_new(arena, o->graph->dims)};
    for (uint32_t k = 0; k < shape->rank; k++)
        coords[k] = index_axis(walk.tab, index_new_axis(walk.tab, shape->dims[k]));
    return walk;
}

/* Readers. */

static void end_reader(Walk *w, NodeId id, const IndexId *coords) {
    Orders *o = w->orders;
    if (!is_temporary(o, id)) return;
    const Node *node = graph_node(o->graph, id);
    uint32_t along = 0, n_moved = 0;
    for (uint32_t a = 0; a < node->shape.rank; a++) {
        n_moved += index_moved_by(w->tab, coords[a]) >> w->k & 1;
        if (index_lane_motion(w->tab, coords[a], w->k, access_elems(node)) == LANES_CONTIGUOUS)
            along = a + 1;
    }
    if (n_moved == 0) return;
    wish_for(&o->readings[id].wish, along);
    o->readings[id].has_taps = o->readings[id].has_taps || w->has_taps || n_moved > 1;
}

static void read_operands(Arena *arena, Orders *o, NodeId id) {
    const Node *gemm = graph_node(o->graph, id);
    for (uint32_t side = 0; side < 2; side++) {
        IndexId coords[MAX_RANK];
        const Shape *shape = &graph_node(o->graph, gemm->args[side])->shape;
        Walk walk = walk_new(arena, o, shape, coords);
        walk.k = shape->rank - 1 - side;
        walk.end = end_reader;
        walk_down(&walk, gemm->args[side], coords);
    }
}

/* Producers. */

static void end_source(Walk *w, NodeId id, const IndexId *coords) {
    Orders *o = w->orders;
    const Node *node = graph_node(o->graph, id);
    bool is_fixed = is_stored(o, id) && !is_temporary(o, id) && !o->order[id];
    if (is_fixed && !o->reads_bound) return;
    uint32_t inner = o->order[id] ? o->order[id] - 1u : node->shape.rank - 1;
    for (uint32_t a = 0; node->shape.rank && a < index_n_axes(w->tab); a++)
        if (index_lane_motion(w->tab, coords[inner], a, access_elems(node)) == LANES_CONTIGUOUS)
            wish_for(&w->made, a + 1);
}

static Wish find_made(Arena *arena, Orders *o, NodeId id) {
    IndexId coords[MAX_RANK];
    Walk walk = walk_new(arena, o, &graph_node(o->graph, id)->shape, coords);
    walk.end = end_source;
    if (is_gemm(o, id))
        end_source(&walk, id, coords);
    else
        walk_args(&walk, id, coords);
    return walk.made;
}

/* Whether the axis gives rows of whole accesses. */
static bool fits(const Orders *o, const Node *node, uint32_t axis) {
    return dim_multiple(o->graph->dims, node->shape.dims[axis]) % access_elems(node) == 0;
}

/* Other views are stored for the order of their axes. In a padding or a slice each axis is that of
 * the argument. */
static bool keeps_axes(Arena *arena, Orders *o, const Node *node) {
    IndexId coords[MAX_RANK], below[MAX_RANK];
    if (op_info(node->op)->cls != CLASS_VIEW) return true;
    Walk walk = walk_new(arena, o, &node->shape, coords);
    if (!pull_view(&walk, node, coords, below) ||
        graph_node(o->graph, node->args[0])->shape.rank != node->shape.rank)
        return false;
    for (uint32_t k = 0; k < node->shape.rank; k++)
        if (index_moved_by(walk.tab, below[k]) & ~(1u << k)) return false;
    return true;
}

/* A value that is computed from other temporaries is computed fastest in their order. */
static void read_sources(Arena *arena, Orders *o, NodeId id) {
    IndexId coords[MAX_RANK];
    const Node *node = graph_node(o->graph, id);
    Reading reading = o->readings[id];
    if (!is_temporary(o, id) || is_gemm(o, id) || !has_agreed(reading.wish) ||
        !fits(o, node, reading.wish.axis - 1u) || !keeps_axes(arena, o, node))
        return;
    Walk walk = walk_new(arena, o, &node->shape, coords);
    walk.k = reading.wish.axis - 1u;
    walk.has_taps = reading.has_taps && op_info(node->op)->cls == CLASS_VIEW;
    walk.end = end_reader;
    walk_args(&walk, id, coords);
}

/* On a CPU a padding that no reader asks about is a copy in the order of its argument's memory, if
 * rows are long. */
static uint32_t copied_order(Arena *arena, Orders *o, NodeId id) {
    const Node *node = graph_node(o->graph, id);
    Wish wish = o->readings[id].wish;
    bool is_asked = wish.axis || wish.is_contested;
    if (!o->has_cores || node->op != OP_PAD || is_asked || !is_temporary(o, id)) return 0;
    o->reads_bound = true;
    Wish made = find_made(arena, o, id);
    o->reads_bound = false;
    bool is_other = has_agreed(made) && made.axis != node->shape.rank;
    bool is_long = is_other && dim_hi(o->graph->dims, node->shape.dims[made.axis - 1]) >=
                                   LAYOUT_LEAST_COPIED_ROW;
    return is_long ? made.axis : 0;
}

static bool may_choose(Arena *arena, Orders *o, NodeId id) {
    const Node *node = graph_node(o->graph, id);
    Reading reading = o->readings[id];
    if (!has_agreed(reading.wish) || !keeps_axes(arena, o, node) ||
        reading.wish.axis == node->shape.rank || !fits(o, node, reading.wish.axis - 1u))
        return false;
    Wish made = find_made(arena, o, id);
    return reading.has_taps || (has_agreed(made) && made.axis == reading.wish.axis);
}

uint32_t *order_axes(Arena *arena, const Graph *graph, StoredValues stored, OrderOptions options) {
    uint32_t n = graph->nodes.n;
    Orders o = {.graph = graph,
                .stored = stored,
                .has_cores = options.has_cores,
                .readings = arena_array(arena, Reading, n),
                .order = arena_array(arena, uint32_t, n)};
    if (options.off) return o.order;
    for (NodeId id = 0; id < n; id++) {
        const Node *node = graph_node(graph, id);
        if (options.has_cores ? is_gemm(&o, id) : layout_has_tensor_cores(graph, node))
            read_operands(arena, &o, id);
        if (graph_is_update(graph, id)) /* a copy of all bytes may make one from the other */
            o.readings[node->args[0]].wish.is_contested = true;
    }
    for (NodeId id = n; id-- > 0 && options.has_cores;) read_sources(arena, &o, id);
    if (options.given) memcpy(o.order, options.given, n * sizeof *o.order);
    for (NodeId id = 0; id < n; id++) {
        if (may_choose(arena, &o, id)) o.order[id] = o.readings[id].wish.axis;
        if (!o.order[id]) o.order[id] = copied_order(arena, &o, id);
    }
    return o.order;
}
