/* Row pitches of stored values. See pad.h. */
#include "layout/pad.h"
#include "machine/machine.h"
#include "machine/tuning.h"

#include "ir/indexmap.h"
#include "schedule/gemm.h"

#include <string.h>

enum {
    PITCH_WANTED, /* a tensor core GEMM reads its rows */
    PITCH_BROKEN, /* something reads it, but not by rows */
};

typedef struct Pitches {
    const Graph *graph;
    NodeFlags values;
    unsigned stored;       /* flag of `values` */
    const uint32_t *inner; /* per node: see order.h */
    NodeFlags pitches;     /* PITCH_WANTED, PITCH_BROKEN */
    NodeId *last_reader;   /* per node; of one that nothing reads any node before it */
    uint32_t n_visits;
} Pitches;

static bool is_stored(const Pitches *p, NodeId id) {
    return node_has(p->values, id, p->stored);
}

static bool is_wanted(const Pitches *p, NodeId id) {
    return node_has(p->pitches, id, PITCH_WANTED) && !node_has(p->pitches, id, PITCH_BROKEN);
}

/* The axis of the value that lies innermost in memory. */
static uint32_t inner_axis(const Pitches *p, NodeId id) {
    return p->inner[id] ? p->inner[id] - 1u : graph_node(p->graph, id)->shape.rank - 1;
}

/* The stored value of which `node` is a view, or NODE_NONE. Sets `last` to the value's
 * innermost coordinate as a function of the view's coordinates, in `tab`. */
static NodeId find_root(const Pitches *p, NodeId node, IndexTab *tab, IndexId *last) {
    const Graph *graph = p->graph;
    IndexId coords[MAX_RANK], below[MAX_RANK];
    const Shape *shape = &graph_node(graph, node)->shape;
    for (uint32_t k = 0; k < shape->rank; k++)
        coords[k] = index_axis(tab, index_new_axis(tab, shape->dims[k]));
    while (!is_stored(p, node)) {
        const Node *view = graph_node(graph, node);
        if (!indexmap_can_pull(view->op)) return NODE_NONE;
        indexmap_pull(tab, graph, view, coords, below);
        memcpy(coords, below, sizeof coords);
        node = view->args[0];
    }
    uint32_t rank = graph_node(graph, node)->shape.rank;
    if (rank < 2) return NODE_NONE;
    *last = coords[inner_axis(p, node)];
    return node;
}

bool layout_has_tensor_cores(const Graph *graph, const Node *gemm) {
    return op_info(gemm->op)->cls == CLASS_MATMUL &&
           sched_gemm_has_tensor_cores(graph_node(graph, gemm->args[0])->dtype,
                                       gemm->attrs.precision);
}

static void note_reader(Pitches *p, Arena *arena, NodeId id) {
    const Node *node = graph_node(p->graph, id);
    if (graph_is_update(p->graph, id)) { /* a copy of all bytes may make one from the other */
        node_add(p->pitches, id, PITCH_BROKEN);
        node_add(p->pitches, node->args[0], PITCH_BROKEN);
    }
    for (uint32_t i = 0; i < node->n_args; i++) {
        p->last_reader[node->args[i]] = id;
        IndexTab *tab = indextab_new(arena, p->graph->dims);
        IndexId last;
        NodeId root = find_root(p, node->args[i], tab, &last);
        if (root == NODE_NONE) continue;
        if (!index_is_affine(tab, last)) node_add(p->pitches, root, PITCH_BROKEN);
        if (layout_has_tensor_cores(p->graph, node)) node_add(p->pitches, root, PITCH_WANTED);
    }
}

DimId pad_pitch(DimTab *dims, DimId extent, Dtype dtype) {
    int64_t line = LINE_BYTES / dtype_bytes(dtype), step = ACCESS_BYTES / dtype_bytes(dtype);
    if (dim_lo(dims, extent) >= line * LAYOUT_PAD_GROWTH) step = line;
    return dim_round_up(dims, extent, step);
}

static bool has_gemms(const Graph *graph) {
    for (NodeId id = 0; id < graph->nodes.n; id++)
        if (layout_has_tensor_cores(graph, graph_node(graph, id))) return true;
    return false;
}

/* A value that a padded value is computed from element by element gets the same pitch, so that the
 * padded value can be stored in place of it (plan/in_place.h). `at` is a node on the way down from
 * `made`. */
static void want_below(Pitches *p, NodeId made, NodeId at) {
    const Node *wanted = graph_node(p->graph, made), *node = graph_node(p->graph, at);
    OpClass cls = op_info(node->op)->cls;
    bool is_plain = cls == CLASS_ELTWISE || cls == CLASS_CAST;
    for (uint32_t i = 0; is_plain && i < node->n_args; i++) {
        NodeId arg = node->args[i];
        const Node *from = graph_node(p->graph, arg);
        if (!shape_equal(&from->shape, &wanted->shape) || p->inner[arg] != p->inner[made] ||
            p->n_visits++ == LAYOUT_PAD_VISITS)
            continue;
        if (!is_stored(p, arg))
            want_below(p, made, arg);
        else if (dtype_bytes(from->dtype) == dtype_bytes(wanted->dtype) &&
                 p->last_reader[arg] <= made)
            node_add(p->pitches, arg, PITCH_WANTED);
    }
}

DimId *pad_rows(Arena *arena, const Graph *graph, NodeFlags flags, unsigned stored,
                const uint32_t *inner) {
    uint32_t n = graph->nodes.n;
    DimId *pitches = arena_array(arena, DimId, n);
    if (!has_gemms(graph)) return pitches;
    Pitches p = {.graph = graph,
                 .values = flags,
                 .stored = stored,
                 .inner = inner,
                 .pitches = node_flags_new(arena, n),
                 .last_reader = arena_array(arena, NodeId, n)};
    for (NodeId id = 0; id < n; id++) note_reader(&p, arena, id);
    for (NodeId id = n; id-- > 0; p.n_visits = 0)
        if (is_wanted(&p, id) && is_stored(&p, id)) want_below(&p, id, id);
    for (NodeId id = 0; id < n; id++) {
        const Node *node = graph_node(graph, id);
        if (!is_wanted(&p, id)) continue;
        DimId extent = node->shape.dims[inner_axis(&p, id)];
        /* A row of one element needs no alignment. */
        if (dim_equals_const(graph->dims, extent, 1)) continue;
        DimId pitch = pad_pitch(graph->dims, extent, node->dtype);
        pitches[id] = pitch == extent ? DIM_NONE : pitch;
    }
    return pitches;
}
