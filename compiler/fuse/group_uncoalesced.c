/* Params that kernels of a run would read uncoalesced: transposed weights, taps of a filter. An
 * init step lays them out once, in the order in which they are read. See group_state.h. */
#include "fuse/group_state.h"

#include "ir/indexmap.h"
#include "template/cpu_taps.h"

#include <string.h>

enum { LANES = 4 }; /* neighbouring elements that a vector access would read */

/* Whether inlining would go on below the node: a view, elementwise op or cast that params alone
 * determine. */
static bool is_inner(const Grouper *p, NodeId id) {
    OpClass cls = graph_class(p->graph, id);
    bool is_op = cls == CLASS_ELTWISE || cls == CLASS_CAST ||
                 (cls == CLASS_VIEW && indexmap_can_pull(graph_node(p->graph, id)->op));
    return is_op && node_has(p->flags, id, GROUPING_CAN_PREPARE) &&
           !node_has(p->flags, id, GROUPING_WANTED);
}

/* Who reads a value: a GEMM, which takes rows and columns alike; a GEMM of taps, whose lanes may
 * lie along its batches; or anything else, in lanes along the last axis. */
typedef enum { READER_GEMM, READER_TAPS, READER_LANES } Reader;

static Reader reader_of(const Grouper *p, NodeId id) {
    bool has_taps = false, has_others = false;
    if (!node_has(p->flags, id, GROUPING_FEEDS_GEMM)) return READER_LANES;
    for (uint32_t i = 0; i < p->users[id].n; i++) {
        bool is_taps = p->has_cores && cpu_taps_may_be(p->graph, p->users[id].data[i]);
        has_taps = has_taps || is_taps;
        has_others = has_others || !is_taps;
    }
    return has_taps && !has_others ? READER_TAPS : READER_GEMM;
}

/* Index expressions while the values below a node are visited. */
typedef struct Walk {
    const Grouper *p;
    IndexTab *tab;
    uint32_t last;   /* the node's innermost axis with several elements */
    uint32_t n_left; /* nodes that may still be visited */
    Reader reader;
} Walk;

/* Whether some value in memory that the node is computed from is read uncoalesced. */
static bool reads_uncoalesced(Walk *w, NodeId id, const IndexId *coords) {
    const Graph *graph = w->p->graph;
    const Node *node = graph_node(graph, id);
    bool is_in_memory = graph_is_bound(graph, id) || op_info(node->op)->cls != CLASS_SOURCE;
    if (!is_in_memory || w->n_left == 0) return false;
    w->n_left--;
    if (!is_inner(w->p, id)) {
        IndexId address = indexmap_address(w->tab, &node->shape, coords);
        return w->reader == READER_GEMM
                   ? !index_is_affine(w->tab, address)
                   : index_lane_motion(w->tab, address, w->last, LANES) == LANES_VARYING;
    }
    for (uint32_t i = 0; i < node->n_args; i++) {
        IndexId below[MAX_RANK];
        if (op_info(node->op)->cls == CLASS_VIEW)
            indexmap_pull(w->tab, graph, node, coords, below);
        else
            indexmap_broadcast(w->tab, &node->shape, coords,
                               &graph_node(graph, node->args[i])->shape, below);
        if (reads_uncoalesced(w, node->args[i], below)) return true;
    }
    return false;
}

enum { MOST_VISITS = 64 };

static bool is_uncoalesced(const Grouper *p, NodeId id, Reader reader) {
    const Shape *shape = &graph_node(p->graph, id)->shape;
    ArenaMark mark = arena_mark(p->arena);
    Walk w = {.p = p, .n_left = MOST_VISITS, .reader = reader};
    w.tab = indextab_new(p->arena, p->graph->dims);
    IndexId coords[MAX_RANK];
    bool is_long = false; /* one element has no neighbours */
    for (uint32_t k = 0; k < shape->rank; k++) {
        coords[k] = index_axis(w.tab, index_new_axis(w.tab, shape->dims[k]));
        bool is_of_matrix = reader == READER_TAPS && k + 2 >= shape->rank;
        if (is_of_matrix || dim_equals_const(p->graph->dims, shape->dims[k], 1)) continue;
        w.last = k;
        is_long = true;
    }
    bool is = is_long && reads_uncoalesced(&w, id, coords);
    arena_rewind(p->arena, mark);
    return is;
}

/* Whether a reader of the value is of a run, or larger: then this value is the one to keep. */
static bool is_kept(const Grouper *p, NodeId id) {
    return is_inner(p, id) && group_is_last_prepared(p, id);
}

/* The first value on the way to the uncoalesced one, through views of one another, that is
 * uncoalesced too. The matrices of taps, rows of which go along k, are no such views. */
static NodeId first_uncoalesced(const Grouper *p, NodeId id, Reader reader) {
    NodeId first = reader == READER_TAPS ? NODE_NONE : id;
    while (graph_class(p->graph, id) == CLASS_VIEW && is_inner(p, id)) {
        id = graph_node(p->graph, id)->args[0];
        bool is =
            is_inner(p, id) && is_uncoalesced(p, id, reader == READER_TAPS ? READER_LANES : reader);
        if (!is && reader != READER_TAPS) break;
        if (is) first = id;
    }
    return first;
}

/* Several views of one uncoalesced value, such as the taps of a filter, share it if together they
 * read all of it. */
void group_want_coalesced(Grouper *p) {
    uint32_t n = p->graph->nodes.n;
    NodeId *first = arena_array(p->arena, NodeId, n);
    double *n_read = arena_array(p->arena, double, n); /* elements of `first` values */
    for (NodeId id = 0; id < n; id++) {
        Reader reader = reader_of(p, id);
        first[id] = NODE_NONE;
        if (!is_kept(p, id) || !is_uncoalesced(p, id, reader)) continue;
        first[id] = first_uncoalesced(p, id, reader);
        if (first[id] == NODE_NONE) continue;
        n_read[first[id]] += group_elems_hi(p->graph, id);
    }
    for (NodeId id = 0; id < n; id++) {
        if (first[id] == NODE_NONE) continue;
        bool shares = n_read[first[id]] >= group_elems_hi(p->graph, first[id]);
        group_want_stored(p, shares ? first[id] : id, REASON_PREPARED);
    }
}
