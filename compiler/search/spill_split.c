/* Cutting kernels. See spill_split.h.
 *
 * The kernel's nodes are put in the order in which the kernel computes them, depth first. A few
 * positions of this order are tried as cuts. The second kernel needs some values of the first. Each
 * of them is stored and loaded, or recomputed from stored values or from memory. A minimum cut of a
 * network finds the fastest combination. Among the positions at which both halves fit into
 * registers the cheapest is taken; if there is none, the position at which the larger half needs
 * the fewest registers. */
#include "search/spill_split.h"
#include "machine/machine.h"
#include "machine/tuning.h"

#include "base/flow.h"
#include "cost/kernel/footprint.h"
#include "cost/pressure.h"

#include <math.h>

/* Capacities are whole numbers, so that sums are exact. NEVER is more than all other capacities of
 * a kernel together, so such an edge is never cut. */
static const uint64_t NEVER = UINT64_C(10000000000000000);

/* Nodes in the order in which the kernel computes them. */
typedef struct Order {
    const bool *in; /* per node */
    NodeId *nodes;
    uint32_t *place; /* per node: index in `nodes`, plus 1; 0: absent */
    uint32_t n;
} Order;

typedef struct Cutter {
    Arena *arena;
    const Graph *graph;
    const Card *card;
    const int64_t *dims;
    Order whole;       /* of the kernel */
    uint32_t *op_cost; /* per op */
    bool *is_root;     /* per node: stored by the kernel anyway, or a reduction's result */
} Cutter;

/* A position and the best cut there. */
typedef struct Found {
    double us;
    uint32_t place;      /* number of nodes before the cut */
    uint32_t peak;       /* registers of the values of the larger half */
    bool *store, *again; /* per node: stored at the cut; recomputed after it */
} Found;

typedef struct Search {
    const Cutter *cutter;
    uint32_t whole, limit; /* registers of values: of the whole kernel, and available */
    bool *is_tried;        /* per position */
    Found best;            /* store is NULL if there is none yet */
} Search;

/* Depth first, as inlining asks for values. */
static void visit(const Graph *graph, Order *order, NodeId id) {
    const Node *node = graph_node(graph, id);
    if (!order->in[id] || order->place[id]) return;
    for (uint32_t i = 0; i < node->n_args; i++) visit(graph, order, node->args[i]);
    order->nodes[order->n++] = id;
    order->place[id] = order->n;
}

/* The nodes of `in` that the nodes of `roots` need, in order. */
static Order order_of(Arena *arena, const Graph *graph, const bool *in, const bool *roots) {
    uint32_t n = graph->nodes.n;
    Order order = {
        .in = in, .nodes = arena_array(arena, NodeId, n), .place = arena_array(arena, uint32_t, n)};
    for (NodeId id = 0; id < n; id++)
        if (roots[id]) visit(graph, &order, id);
    return order;
}

static void find_roots(Cutter *c, const Kernel *kernel) {
    for (uint32_t i = 0; i < kernel->reduces.n; i++)
        c->is_root[kernel->reduces.data[i].node] = true;
    for (uint32_t i = 0; i < kernel->row_stores.n; i++)
        c->is_root[kernel->row_stores.data[i].node] = true;
    for (uint32_t s = 0; s < kernel->stages.n; s++)
        for (uint32_t i = 0; i < kernel->stages.data[s].stores.n; i++)
            c->is_root[kernel->stages.data[s].stores.data[i].node] = true;
}

/* Prices. */

static double elems(const Cutter *c, NodeId id) {
    return dim_number(c->graph->dims,
                      shape_n_elems(c->graph->dims, &graph_node(c->graph, id)->shape), c->dims);
}

static double move_us(const Cutter *c, NodeId id) {
    double bytes = elems(c, id) * dtype_bytes(graph_node(c->graph, id)->dtype);
    return bytes / (c->card->dram_gbs * 1e3);
}

static double compute_us(const Cutter *c, NodeId id) {
    const Card *card = c->card;
    double rate = card->n_processors * card->lanes * card->ghz * 1e3;
    const Node *node = graph_node(c->graph, id);
    if (dtype_is_double(node->dtype)) rate *= card->f64_rate;
    return elems(c, id) * c->op_cost[node->op] / rate;
}

static uint64_t capacity(double us) {
    double whole = us * SEARCH_CUT_UNITS_PER_US + 1;
    return (uint64_t)(whole < SEARCH_CUT_MOST_UNITS ? whole : SEARCH_CUT_MOST_UNITS);
}

/* The cheapest way to provide the values that are needed after `place`. In the network, 2 * id + 2
 * means that node id is needed, and 2 * id + 3 that it is recomputed. */
static void find_cheapest(const Cutter *c, uint32_t place, Found *found) {
    uint32_t n = c->graph->nodes.n;
    ArenaMark mark = arena_mark(c->arena);
    Flow *flow = flow_new(c->arena, 2 * n + 2);
    bool *is_read = arena_array(c->arena, bool, n); /* read after the cut in any case */
    for (uint32_t k = place; k < c->whole.n; k++) {
        const Node *node = graph_node(c->graph, c->whole.nodes[k]);
        for (uint32_t i = 0; i < node->n_args; i++) {
            NodeId arg = node->args[i];
            if (!is_read[arg] && c->whole.place[arg] && c->whole.place[arg] <= place)
                flow_edge(flow, 0, 2 * arg + 2, NEVER);
            is_read[arg] = true;
        }
    }
    bool *is_known = arena_array(c->arena, bool, n);
    for (uint32_t k = 0; k < place; k++) {
        NodeId id = c->whole.nodes[k];
        const Node *node = graph_node(c->graph, id);
        double moved = move_us(c, id) * (c->is_root[id] ? 1 : 2);
        flow_edge(flow, 2 * id + 2, 2 * id + 3, capacity(moved));
        flow_edge(flow, 2 * id + 3, 1,
                  graph_is_reduction(c->graph, id) ? NEVER : capacity(compute_us(c, id)));
        for (uint32_t i = 0; i < node->n_args; i++) {
            NodeId arg = node->args[i];
            if (graph_is_literal(c->graph, arg)) continue;
            flow_edge(flow, 2 * id + 3, 2 * arg + 2, NEVER);
            if (c->whole.place[arg] || is_known[arg] || is_read[arg]) continue;
            flow_edge(flow, 2 * arg + 2, 1, capacity(move_us(c, arg)));
            is_known[arg] = true;
        }
    }
    bool *is_needed = arena_array(c->arena, bool, 2 * n + 2);
    found->us = (double)flow_cut(flow, 0, 1, is_needed) / SEARCH_CUT_UNITS_PER_US;
    for (uint32_t k = 0; k < place; k++) {
        NodeId id = c->whole.nodes[k];
        found->store[id] = is_needed[2 * id + 2] && !is_needed[2 * id + 3];
        found->again[id] = is_needed[2 * id + 3];
    }
    arena_rewind(c->arena, mark);
}

/* Registers. */

static double own_registers(const Cutter *c, NodeId id) {
    uint32_t bytes = dtype_bytes(graph_node(c->graph, id)->dtype);
    return graph_is_literal(c->graph, id) ? 0 : (bytes < 2 ? 2 : bytes) / 4.0;
}

/* The most registers that are live at once while the nodes of `in` are computed for the nodes of
 * `roots`. Inputs are live from their first use on. */
static uint32_t peak_of(const Cutter *c, const bool *in, const bool *roots) {
    uint32_t n = c->graph->nodes.n;
    ArenaMark mark = arena_mark(c->arena);
    Order order = order_of(c->arena, c->graph, in, roots);
    uint32_t *last = arena_array(c->arena, uint32_t, n);
    bool *is_alive = arena_array(c->arena, bool, n);
    double alive = 0, peak = 0;
    for (uint32_t k = 0; k < order.n; k++) {
        const Node *node = graph_node(c->graph, order.nodes[k]);
        last[order.nodes[k]] = k;
        for (uint32_t i = 0; i < node->n_args; i++) last[node->args[i]] = k;
    }
    for (uint32_t k = 0; k < order.n; k++) {
        const Node *node = graph_node(c->graph, order.nodes[k]);
        for (uint32_t i = 0; i <= node->n_args; i++) {
            NodeId id = i < node->n_args ? node->args[i] : order.nodes[k];
            if (!is_alive[id]) alive += own_registers(c, id);
            is_alive[id] = true;
        }
        peak = fmax(peak, alive);
        for (uint32_t i = 0; i <= node->n_args; i++) {
            NodeId id = i < node->n_args ? node->args[i] : order.nodes[k];
            if (is_alive[id] && last[id] == k) alive -= own_registers(c, id);
            is_alive[id] = is_alive[id] && last[id] != k;
        }
    }
    arena_rewind(c->arena, mark);
    return (uint32_t)peak;
}

/* peak_of for the kernel before the cut, or for the one after it. */
static uint32_t peak_of_half(const Cutter *c, const Found *found, bool is_behind) {
    uint32_t n = c->graph->nodes.n;
    bool *in = arena_array(c->arena, bool, n), *roots = arena_array(c->arena, bool, n);
    for (uint32_t k = 0; k < c->whole.n; k++) {
        NodeId id = c->whole.nodes[k];
        bool is_before = k < found->place;
        in[id] = is_behind ? !is_before || found->again[id] : is_before;
        roots[id] = is_behind ? !is_before && c->is_root[id]
                              : is_before && (c->is_root[id] || found->store[id]);
    }
    return peak_of(c, in, roots);
}

/* Positions. */

/* Below the limit, fewer registers are no advantage, except for CUT_NARROWEST, whose limit is 0. */
static bool is_better(const Found *a, const Found *b, uint32_t limit) {
    uint32_t over_a = a->peak > limit ? a->peak : 0, over_b = b->peak > limit ? b->peak : 0;
    return over_a != over_b ? over_a < over_b : a->us < b->us;
}

/* Tries a position and keeps it if it is the best so far. */
static void try_place(Search *s, uint32_t place) {
    const Cutter *c = s->cutter;
    uint32_t n = c->graph->nodes.n, n_stored = 0;
    if (place == 0 || place >= c->whole.n || s->is_tried[place]) return;
    s->is_tried[place] = true;
    Found found = {.place = place,
                   .store = arena_array(c->arena, bool, n),
                   .again = arena_array(c->arena, bool, n)};
    find_cheapest(c, place, &found);
    for (NodeId id = 0; id < n; id++) n_stored += found.store[id];
    uint32_t before = peak_of_half(c, &found, false), behind = peak_of_half(c, &found, true);
    found.peak = before > behind ? before : behind;
    if (n_stored == 0 || n_stored > SEARCH_CUT_STORED || found.peak >= s->whole) return;
    if (!s->best.store || is_better(&found, &s->best, s->limit)) s->best = found;
}

/* Tries positions spread over the kernel, then those right after the values that the best cut
 * stores. */
static void search(Search *s) {
    const Cutter *c = s->cutter;
    for (uint32_t i = 1; i <= SEARCH_CUT_PLACES; i++)
        try_place(s, (uint32_t)((uint64_t)c->whole.n * i / (SEARCH_CUT_PLACES + 1)));
    const bool *store = s->best.store;
    for (uint32_t k = 0; store && k < c->whole.n; k++)
        if (store[c->whole.nodes[k]]) try_place(s, k + 1);
}

bool spill_split_kernel(Arena *arena, const Graph *graph, const Kernel *kernel, const Card *card,
                        uint32_t registers, const int64_t *dims, CutAim aim, Decisions *decisions) {
    uint32_t n = graph->nodes.n;
    bool *in_kernel = arena_array(arena, bool, n);
    Cutter c = {.arena = arena,
                .graph = graph,
                .card = card,
                .dims = dims,
                .op_cost = op_costs(arena),
                .is_root = arena_array(arena, bool, n)};
    for (uint32_t i = 0; i < kernel->nodes.n; i++)
        in_kernel[kernel->nodes.data[i]] =
            graph_class(graph, kernel->nodes.data[i]) != CLASS_SOURCE;
    find_roots(&c, kernel);
    c.whole = order_of(arena, graph, in_kernel, c.is_root);
    Search s = {.cutter = &c, .whole = peak_of(&c, in_kernel, c.is_root)};
    uint32_t beside = registers > s.whole ? registers - s.whole : 0;
    bool has_limit = aim == CUT_CHEAPEST && beside < MAX_THREAD_REGISTERS;
    s.limit = has_limit ? MAX_THREAD_REGISTERS - beside : 0;
    s.is_tried = arena_array(arena, bool, c.whole.n + 1);
    search(&s);
    uint16_t side = 0;
    for (NodeId id = 0; id < n; id++)
        side = decisions->side[id] > side ? decisions->side[id] : side;
    for (NodeId id = 0; s.best.store && id < n; id++) {
        if (s.best.store[id]) decisions_add(decisions, id, DIRECTIVE_CUT);
        if (s.best.again[id]) decisions_add(decisions, id, DIRECTIVE_RECOMPUTE);
        if (c.whole.place[id] > s.best.place) decisions->side[id] = side + 1;
    }
    return s.best.store != NULL;
}
