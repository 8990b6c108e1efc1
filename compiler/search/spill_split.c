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
#include "cost/count/footprint.h"
#include "cost/pressure.h"

#include <math.h>

/* Capacities are whole numbers, so that sums are exact. NEVER is more than all other capacities of
 * a kernel together, so such an edge is never cut. */
static const uint64_t NEVER = UINT64_C(10000000000000000);

/* Flags of the nodes of a kernel, or of a half of one. */
enum {
    HALF_IN,    /* it computes the value */
    HALF_ROOT,  /* it stores the value, or the value is a reduction's result */
    HALF_ALIVE, /* the value is in a register, at one point of peak_of */
};

/* Nodes in the order in which the kernel computes them. */
typedef struct Order {
    NodeFlags flags; /* HALF_* */
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
} Cutter;

/* Flags of the kernel's nodes at a cut. */
enum {
    FOUND_STORED, /* stored at the cut */
    FOUND_AGAIN,  /* recomputed after it */
    FOUND_READ,   /* read after it in any case */
    FOUND_LOADED, /* in memory, and recomputed values need it */
};

/* A position and the best cut there. */
typedef struct Found {
    double us;
    uint32_t place;  /* number of nodes before the cut; 0: no cut */
    uint32_t peak;   /* registers of the values of the larger half */
    NodeFlags flags; /* FOUND_* */
} Found;

typedef struct Search {
    const Cutter *cutter;
    uint32_t whole, limit; /* registers of values: of the whole kernel, and available */
    bool *is_tried;        /* per position */
    Found best;
} Search;

/* Depth first, as inlining asks for values. */
static void visit(const Graph *graph, Order *order, NodeId id) {
    const Node *node = graph_node(graph, id);
    if (!node_has(order->flags, id, HALF_IN) || order->place[id]) return;
    for (uint32_t i = 0; i < node->n_args; i++) visit(graph, order, node->args[i]);
    order->nodes[order->n++] = id;
    order->place[id] = order->n;
}

/* The nodes with HALF_IN that those with HALF_ROOT need, in order. */
static Order order_of(Arena *arena, const Graph *graph, NodeFlags flags) {
    Order order = {.flags = flags,
                   .nodes = arena_array(arena, NodeId, flags.n),
                   .place = arena_array(arena, uint32_t, flags.n)};
    for (NodeId id = 0; id < flags.n; id++)
        if (node_has(flags, id, HALF_ROOT)) visit(graph, &order, id);
    return order;
}

static void flag_store(void *user, const Store *store) {
    const NodeFlags *flags = user;
    node_add(*flags, store->node, HALF_ROOT);
}

static NodeFlags flags_of(Arena *arena, const Graph *graph, const Kernel *kernel) {
    NodeFlags flags = node_flags_new(arena, graph->nodes.n);
    for (uint32_t i = 0; i < kernel->nodes.n; i++)
        if (graph_class(graph, kernel->nodes.data[i]) != CLASS_SOURCE)
            node_add(flags, kernel->nodes.data[i], HALF_IN);
    for (uint32_t i = 0; i < kernel->reduces.n; i++)
        node_add(flags, kernel->reduces.data[i].node, HALF_ROOT);
    kernel_each_store(kernel, flag_store, &flags);
    return flags;
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
    for (uint32_t k = place; k < c->whole.n; k++) {
        const Node *node = graph_node(c->graph, c->whole.nodes[k]);
        for (uint32_t i = 0; i < node->n_args; i++) {
            NodeId arg = node->args[i];
            if (node_add(found->flags, arg, FOUND_READ) && c->whole.place[arg] &&
                c->whole.place[arg] <= place)
                flow_edge(flow, 0, 2 * arg + 2, NEVER);
        }
    }
    for (uint32_t k = 0; k < place; k++) {
        NodeId id = c->whole.nodes[k];
        const Node *node = graph_node(c->graph, id);
        double moved = move_us(c, id) * (node_has(c->whole.flags, id, HALF_ROOT) ? 1 : 2);
        flow_edge(flow, 2 * id + 2, 2 * id + 3, capacity(moved));
        flow_edge(flow, 2 * id + 3, 1,
                  graph_is_reduction(c->graph, id) ? NEVER : capacity(compute_us(c, id)));
        for (uint32_t i = 0; i < node->n_args; i++) {
            NodeId arg = node->args[i];
            if (graph_is_literal(c->graph, arg)) continue;
            flow_edge(flow, 2 * id + 3, 2 * arg + 2, NEVER);
            if (c->whole.place[arg] || node_has(found->flags, arg, FOUND_READ) ||
                !node_add(found->flags, arg, FOUND_LOADED))
                continue;
            flow_edge(flow, 2 * arg + 2, 1, capacity(move_us(c, arg)));
        }
    }
    bool *is_needed = arena_array(c->arena, bool, 2 * n + 2);
    found->us = (double)flow_cut(flow, 0, 1, is_needed) / SEARCH_CUT_UNITS_PER_US;
    for (uint32_t k = 0; k < place; k++) {
        NodeId id = c->whole.nodes[k];
        if (is_needed[2 * id + 3])
            node_add(found->flags, id, FOUND_AGAIN);
        else if (is_needed[2 * id + 2])
            node_add(found->flags, id, FOUND_STORED);
    }
    arena_rewind(c->arena, mark);
}

/* Registers. */

static double own_registers(const Cutter *c, NodeId id) {
    uint32_t bytes = dtype_bytes(graph_node(c->graph, id)->dtype);
    return graph_is_literal(c->graph, id) ? 0 : (bytes < 2 ? 2 : bytes) / 4.0;
}

/* The most registers that are live at once while the nodes with HALF_IN are computed for those with
 * HALF_ROOT. Inputs are live from their first use on. */
static uint32_t peak_of(const Cutter *c, NodeFlags flags) {
    ArenaMark mark = arena_mark(c->arena);
    Order order = order_of(c->arena, c->graph, flags);
    uint32_t *last = arena_array(c->arena, uint32_t, flags.n);
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
            if (node_add(flags, id, HALF_ALIVE)) alive += own_registers(c, id);
        }
        peak = fmax(peak, alive);
        for (uint32_t i = 0; i <= node->n_args; i++) {
            NodeId id = i < node->n_args ? node->args[i] : order.nodes[k];
            if (last[id] != k || !node_has(flags, id, HALF_ALIVE)) continue;
            alive -= own_registers(c, id);
            node_drop(flags, id, HALF_ALIVE);
        }
    }
    arena_rewind(c->arena, mark);
    return (uint32_t)peak;
}

/* peak_of for the kernel before the cut, or for the one after it. */
static uint32_t peak_of_half(const Cutter *c, const Found *found, bool is_behind) {
    NodeFlags half = node_flags_new(c->arena, c->graph->nodes.n);
    for (uint32_t k = 0; k < c->whole.n; k++) {
        NodeId id = c->whole.nodes[k];
        bool is_own = (k >= found->place) == is_behind;
        bool is_root = node_has(c->whole.flags, id, HALF_ROOT) ||
                       (!is_behind && node_has(found->flags, id, FOUND_STORED));
        if (is_own || (is_behind && node_has(found->flags, id, FOUND_AGAIN)))
            node_add(half, id, HALF_IN);
        if (is_own && is_root) node_add(half, id, HALF_ROOT);
    }
    return peak_of(c, half);
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
    Found found = {.place = place, .flags = node_flags_new(c->arena, n)};
    find_cheapest(c, place, &found);
    for (NodeId id = 0; id < n; id++) n_stored += node_has(found.flags, id, FOUND_STORED);
    uint32_t before = peak_of_half(c, &found, false), behind = peak_of_half(c, &found, true);
    found.peak = before > behind ? before : behind;
    if (n_stored == 0 || n_stored > SEARCH_CUT_STORED || found.peak >= s->whole) return;
    if (!s->best.place || is_better(&found, &s->best, s->limit)) s->best = found;
}

/* Tries positions spread over the kernel, then those right after the values that the best cut
 * stores. */
static void search(Search *s) {
    const Cutter *c = s->cutter;
    for (uint32_t i = 1; i <= SEARCH_CUT_PLACES; i++)
        try_place(s, (uint32_t)((uint64_t)c->whole.n * i / (SEARCH_CUT_PLACES + 1)));
    const Found coarse = s->best;
    for (uint32_t k = 0; coarse.place && k < c->whole.n; k++)
        if (node_has(coarse.flags, c->whole.nodes[k], FOUND_STORED)) try_place(s, k + 1);
}

bool spill_split_kernel(Arena *arena, const Graph *graph, const Kernel *kernel, const Card *card,
                        uint32_t registers, const int64_t *dims, CutAim aim, Decisions *decisions) {
    uint32_t n = graph->nodes.n;
    Cutter c = {.arena = arena,
                .graph = graph,
                .card = card,
                .dims = dims,
                .whole = order_of(arena, graph, flags_of(arena, graph, kernel)),
                .op_cost = op_costs(arena)};
    Search s = {.cutter = &c, .whole = peak_of(&c, c.whole.flags)};
    uint32_t beside = registers > s.whole ? registers - s.whole : 0;
    bool has_limit = aim == CUT_CHEAPEST && beside < MAX_THREAD_REGISTERS;
    s.limit = has_limit ? MAX_THREAD_REGISTERS - beside : 0;
    s.is_tried = arena_array(arena, bool, c.whole.n + 1);
    search(&s);
    uint16_t side = 0;
    for (NodeId id = 0; id < n; id++)
        side = decisions->side[id] > side ? decisions->side[id] : side;
    for (NodeId id = 0; s.best.place && id < n; id++) {
        if (node_has(s.best.flags, id, FOUND_STORED)) decisions_add(decisions, id, DIRECTIVE_CUT);
        if (node_has(s.best.flags, id, FOUND_AGAIN))
            decisions_add(decisions, id, DIRECTIVE_RECOMPUTE);
        if (c.whole.place[id] > s.best.place) decisions->side[id] = side + 1;
    }
    return s.best.place != 0;
}
