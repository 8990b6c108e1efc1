/* Layered drawings. See layered.h. In this file a cell is an element of a rank: a node, or the bend
 * of an edge that passes through the rank. A link joins cells of neighbouring ranks. */
#include "report/layered.h"

#include <math.h>

#define NONE UINT32_MAX

static const double LEAST_SLANT = 1, MOST_JOG = 6;

enum {
    ORDER_SWEEPS = 24,
    PLACE_ROUNDS = 2000,
    MOST_PULLS = 10000000,
    PORT_STEP = 14,
    BEND_WEIGHT = 8
};

typedef struct Cell {
    uint32_t node, edge; /* one of them is NONE */
    uint32_t rank, position;
    double w, h;
    double x; /* the middle */
    double wanted, weight;
} Cell;

/* Ports are distances from the cells' middles. */
typedef struct Link {
    uint32_t upper, lower;
    double upper_port, lower_port;
    uint32_t edge;
    double weight;
} Link;

typedef Vec(uint32_t) Ids;
typedef struct Rank {
    Ids cells; /* in order */
    Ids links; /* to the rank below */
    double y, h;
} Rank;

typedef struct Sugiyama {
    Arena *arena;
    Layered *layout;
    bool has_labels; /* ranks alternate between nodes and labels */
    Vec(Cell) cells;
    Vec(Link) links;
    Rank *ranks;
    uint32_t n_ranks;
    uint32_t *rank_of;    /* per node */
    Ids *above;           /* per node: where its edges come from */
    uint32_t *first_link; /* per edge; its links follow each other */
} Sugiyama;

uint32_t layered_add_node(Layered *layout, double w, double h, LayeredPin pin) {
    LayeredNode node = {.w = w, .h = h, .pin = pin};
    vec_push(layout->arena, &layout->nodes, node);
    return layout->nodes.n - 1;
}

void layered_add_edge(Layered *layout, LayeredEdge edge) {
    if (edge.from >= edge.to || edge.to >= layout->nodes.n)
        ice(layout->arena, "an edge of a drawing goes from %u to %u", edge.from, edge.to);
    vec_push(layout->arena, &layout->edges, edge);
}

static Cell *cell_at(const Sugiyama *s, const Rank *rank, uint32_t position) {
    return &s->cells.data[rank->cells.data[position]];
}

/* Ranks. */

/* Moves nodes down, close to their readers: a node with more edges below it than above it, and a
 * node all of whose predecessors have edges to it alone. */
static void pull_down(Sugiyama *s, uint32_t step) {
    const Layered *layout = s->layout;
    uint32_t n = layout->nodes.n;
    uint32_t *limit = arena_array(s->arena, uint32_t, n);
    uint32_t *n_below = arena_array(s->arena, uint32_t, n);
    int32_t *balance = arena_array(s->arena, int32_t, n);
    bool *is_held = arena_array(s->arena, bool, n);
    for (uint32_t i = 0; i < layout->edges.n; i++) {
        n_below[layout->edges.data[i].from]++;
        balance[layout->edges.data[i].from]++;
        balance[layout->edges.data[i].to]--;
    }
    for (uint32_t i = 0; i < n; i++) {
        limit[i] = UINT32_MAX;
        is_held[i] = layout->nodes.data[i].pin != LAYERED_FREE;
        for (uint32_t k = 0; k < s->above[i].n; k++) {
            uint32_t from = s->above[i].data[k];
            is_held[i] = is_held[i] || is_held[from] || n_below[from] > 1;
        }
    }
    for (uint32_t i = n; i-- > 0;) {
        bool moves = balance[i] > 0 || !is_held[i];
        if (layout->nodes.data[i].pin == LAYERED_FREE && moves && limit[i] != UINT32_MAX)
            s->rank_of[i] = limit[i];
        for (uint32_t k = 0; k < s->above[i].n; k++) {
            uint32_t *latest = &limit[s->above[i].data[k]];
            if (s->rank_of[i] - step < *latest) *latest = s->rank_of[i] - step;
        }
    }
}

static void find_ranks(Sugiyama *s) {
    const Layered *layout = s->layout;
    uint32_t step = s->has_labels ? 2 : 1, last = 0;
    s->rank_of = arena_array(s->arena, uint32_t, layout->nodes.n);
    s->above = arena_array(s->arena, Ids, layout->nodes.n);
    for (uint32_t e = 0; e < layout->edges.n; e++)
        vec_push(s->arena, &s->above[layout->edges.data[e].to], layout->edges.data[e].from);
    bool has_top = false, has_bottom = false;
    for (uint32_t i = 0; i < layout->nodes.n; i++) {
        has_top = has_top || layout->nodes.data[i].pin == LAYERED_TOP;
        has_bottom = has_bottom || layout->nodes.data[i].pin == LAYERED_BOTTOM;
    }
    for (uint32_t i = 0; i < layout->nodes.n; i++) {
        LayeredPin pin = layout->nodes.data[i].pin;
        if (has_top && pin == LAYERED_FREE) s->rank_of[i] = step;
        for (uint32_t k = 0; k < s->above[i].n; k++) {
            uint32_t least = s->rank_of[s->above[i].data[k]] + step;
            if (s->rank_of[i] < least) s->rank_of[i] = least;
        }
        if (pin != LAYERED_BOTTOM && s->rank_of[i] > last) last = s->rank_of[i];
    }
    last += has_bottom ? step : 0;
    for (uint32_t i = 0; i < layout->nodes.n; i++)
        if (layout->nodes.data[i].pin == LAYERED_BOTTOM) s->rank_of[i] = last;
    pull_down(s, step);
    s->n_ranks = last + 1;
    s->ranks = arena_array(s->arena, Rank, s->n_ranks);
}

/* Cells and links. */

static uint32_t add_cell(Sugiyama *s, Cell cell) {
    Rank *rank = &s->ranks[cell.rank];
    cell.position = rank->cells.n;
    vec_push(s->arena, &s->cells, cell);
    vec_push(s->arena, &rank->cells, s->cells.n - 1);
    if (cell.h > rank->h) rank->h = cell.h;
    return s->cells.n - 1;
}

static bool is_bend(const Sugiyama *s, uint32_t cell) {
    return s->cells.data[cell].node == NONE;
}

/* A label is to the right of its edge. */
static double bend_port(const Sugiyama *s, uint32_t cell) {
    return s->cells.data[cell].h > 0 ? -s->cells.data[cell].w / 2 : 0;
}

static void add_link(Sugiyama *s, uint32_t edge, uint32_t upper, uint32_t lower) {
    bool a = is_bend(s, upper), b = is_bend(s, lower);
    const LayeredEdge *given = &s->layout->edges.data[edge];
    Link link = {.upper = upper,
                 .lower = lower,
                 .edge = edge,
                 .upper_port = a ? bend_port(s, upper) : given->from_port,
                 .lower_port = b ? bend_port(s, lower) : given->to_port,
                 .weight = a && b   ? BEND_WEIGHT
                           : a || b ? 2
                                    : 1};
    vec_push(s->arena, &s->links, link);
    vec_push(s->arena, &s->ranks[s->cells.data[upper].rank].links, s->links.n - 1);
}

static void make_cells(Sugiyama *s) {
    const Layered *layout = s->layout;
    for (uint32_t i = 0; i < layout->nodes.n; i++) {
        const LayeredNode *node = &layout->nodes.data[i];
        add_cell(
            s, (Cell){.node = i, .edge = NONE, .rank = s->rank_of[i], .w = node->w, .h = node->h});
    }
    s->first_link = arena_array(s->arena, uint32_t, layout->edges.n);
    for (uint32_t e = 0; e < layout->edges.n; e++) {
        const LayeredEdge *edge = &layout->edges.data[e];
        uint32_t upper = edge->from, last = s->rank_of[edge->to];
        s->first_link[e] = s->links.n;
        for (uint32_t rank = s->rank_of[edge->from] + 1; rank < last; rank++) {
            bool is_label = edge->label_w > 0 && rank == last - 1;
            uint32_t bend = add_cell(s, (Cell){.node = NONE,
                                               .edge = e,
                                               .rank = rank,
                                               .w = is_label ? edge->label_w : 1,
                                               .h = is_label ? edge->label_h : 0});
            add_link(s, e, upper, bend);
            upper = bend;
        }
        add_link(s, e, upper, edge->to);
    }
}

/* Order. */

/* The position at which a link meets its cell; a port counts as a fraction. */
static double meets(const Cell *cell, double port) {
    return cell->position + (cell->w > 0 ? 0.9 * port / cell->w : 0);
}

static uint64_t count_crossings(const Sugiyama *s) {
    uint64_t n = 0;
    for (uint32_t r = 0; r + 1 < s->n_ranks; r++) {
        const Ids *links = &s->ranks[r].links;
        for (uint32_t i = 0; i < links->n; i++) {
            const Link *a = &s->links.data[links->data[i]];
            double a_up = meets(&s->cells.data[a->upper], a->upper_port);
            double a_low = meets(&s->cells.data[a->lower], a->lower_port);
            for (uint32_t k = 0; k < i; k++) {
                const Link *b = &s->links.data[links->data[k]];
                double up = meets(&s->cells.data[b->upper], b->upper_port) - a_up;
                double low = meets(&s->cells.data[b->lower], b->lower_port) - a_low;
                n += up * low < 0;
            }
        }
    }
    return n;
}

/* Sorts cells by `wanted`; cells with equal values keep their order. */
static void sort_rank(Sugiyama *s, Rank *rank) {
    for (uint32_t i = 1; i < rank->cells.n; i++) {
        uint32_t id = rank->cells.data[i], k = i;
        for (; k > 0 && cell_at(s, rank, k - 1)->wanted > s->cells.data[id].wanted; k--)
            rank->cells.data[k] = rank->cells.data[k - 1];
        rank->cells.data[k] = id;
    }
    for (uint32_t i = 0; i < rank->cells.n; i++) cell_at(s, rank, i)->position = i;
}

/* Orders `rank` by the means of its neighbours above or below. */
static void sweep_rank(Sugiyama *s, uint32_t rank, bool from_above) {
    Rank *at = &s->ranks[rank];
    const Ids *links = from_above ? &s->ranks[rank - 1].links : &at->links;
    for (uint32_t i = 0; i < at->cells.n; i++) {
        Cell *cell = cell_at(s, at, i);
        cell->wanted = cell->weight = 0;
    }
    for (uint32_t i = 0; i < links->n; i++) {
        const Link *link = &s->links.data[links->data[i]];
        Cell *upper = &s->cells.data[link->upper], *lower = &s->cells.data[link->lower];
        Cell *own = from_above ? lower : upper;
        own->wanted += from_above ? meets(upper, link->upper_port) : meets(lower, link->lower_port);
        own->weight++;
    }
    for (uint32_t i = 0; i < at->cells.n; i++) {
        Cell *cell = cell_at(s, at, i);
        cell->wanted = cell->weight > 0 ? cell->wanted / cell->weight : (double)i;
    }
    sort_rank(s, at);
}

static void keep_order(const Sugiyama *s, uint32_t *kept) {
    for (uint32_t i = 0; i < s->cells.n; i++) kept[i] = s->cells.data[i].position;
}

static void restore_order(Sugiyama *s, const uint32_t *kept) {
    for (uint32_t i = 0; i < s->cells.n; i++) s->cells.data[i].wanted = kept[i];
    for (uint32_t r = 0; r < s->n_ranks; r++) sort_rank(s, &s->ranks[r]);
}

static void find_order(Sugiyama *s) {
    uint32_t *best = arena_array(s->arena, uint32_t, s->cells.n);
    uint64_t fewest = count_crossings(s);
    keep_order(s, best);
    for (int sweep = 0; sweep < ORDER_SWEEPS && fewest > 0; sweep++) {
        bool from_above = sweep % 2 == 0;
        for (uint32_t i = 1; i < s->n_ranks; i++)
            sweep_rank(s, from_above ? i : s->n_ranks - 1 - i, from_above);
        uint64_t n = count_crossings(s);
        if (n >= fewest) continue;
        fewest = n;
        keep_order(s, best);
    }
    restore_order(s, best);
}

/* Spreads edges without ports over the side, in the order of their other ends. */
static void spread_ports(Sugiyama *s, uint32_t node, bool is_lower_side) {
    Ids own = {0};
    for (uint32_t i = 0; i < s->links.n; i++) {
        const Link *link = &s->links.data[i];
        const LayeredEdge *edge = &s->layout->edges.data[link->edge];
        bool is_free = is_lower_side ? !edge->has_from_port : !edge->has_to_port;
        if ((is_lower_side ? link->upper : link->lower) != node || !is_free) continue;
        uint32_t k = own.n;
        vec_push(s->arena, &own, i);
        double at = is_lower_side ? meets(&s->cells.data[link->lower], link->lower_port)
                                  : meets(&s->cells.data[link->upper], link->upper_port);
        for (; k > 0; k--) {
            const Link *before = &s->links.data[own.data[k - 1]];
            double other = is_lower_side ? meets(&s->cells.data[before->lower], before->lower_port)
                                         : meets(&s->cells.data[before->upper], before->upper_port);
            if (other <= at) break;
            own.data[k] = own.data[k - 1];
        }
        own.data[k] = i;
    }
    double room = own.n ? (s->layout->nodes.data[node].w - PORT_STEP) / own.n : 0;
    double step = room < PORT_STEP ? room : PORT_STEP;
    for (uint32_t i = 0; i < own.n; i++) {
        Link *link = &s->links.data[own.data[i]];
        double port = (i - (own.n - 1) / 2.0) * step;
        *(is_lower_side ? &link->upper_port : &link->lower_port) = port;
    }
}

/* Places. */

static double separation(const Sugiyama *s, const Cell *a, const Cell *b) {
    bool is_thin = a->node == NONE && b->node == NONE && a->h <= 0 && b->h <= 0;
    return (a->w + b->w) / 2 + (is_thin ? s->layout->node_gap / 2 : s->layout->node_gap);
}

/* Sets x for the least squares of the distances to `wanted`, under the separations of the rank.
 * Without the offsets of the separations this is a monotone regression, computed by pooling
 * neighbours. */
static void settle_rank(Sugiyama *s, const Rank *rank, double *level, double *weight,
                        uint32_t *length) {
    uint32_t n_pools = 0;
    double offset = 0;
    for (uint32_t i = 0; i < rank->cells.n; i++) {
        Cell *cell = cell_at(s, rank, i);
        if (i) offset += separation(s, cell_at(s, rank, i - 1), cell);
        cell->x = offset;
        level[n_pools] = cell->wanted - offset;
        weight[n_pools] = cell->weight;
        length[n_pools++] = 1;
        while (n_pools > 1 && level[n_pools - 2] > level[n_pools - 1]) {
            double all = weight[n_pools - 2] + weight[n_pools - 1];
            level[n_pools - 2] = (level[n_pools - 2] * weight[n_pools - 2] +
                                  level[n_pools - 1] * weight[n_pools - 1]) /
                                 all;
            weight[n_pools - 2] = all;
            length[n_pools - 2] += length[n_pools - 1];
            n_pools--;
        }
    }
    for (uint32_t pool = 0, i = 0; pool < n_pools; pool++)
        for (uint32_t k = 0; k < length[pool]; k++) cell_at(s, rank, i++)->x += level[pool];
}

static void want(Cell *cell, double x, double weight) {
    cell->wanted += x * weight;
    cell->weight += weight;
}

/* A link pulls both its cells to be above one another. Least squares spread a slant over all links
 * of an edge. Weights of the inverse slant leave it to a few links. */
static void pull_link(Sugiyama *s, uint32_t id, bool moves_lower, bool is_sparse) {
    const Link *link = &s->links.data[id];
    Cell *upper = &s->cells.data[link->upper], *lower = &s->cells.data[link->lower];
    double slant = upper->x + link->upper_port - lower->x - link->lower_port;
    double weight = is_sparse ? link->weight / (fabs(slant) + LEAST_SLANT) : link->weight;
    if (moves_lower)
        want(lower, lower->x + slant, weight);
    else
        want(upper, upper->x - slant, weight);
}

static void pull_rank(Sugiyama *s, uint32_t r, bool is_sparse) {
    const Rank *rank = &s->ranks[r];
    for (uint32_t i = 0; i < rank->cells.n; i++) {
        Cell *cell = cell_at(s, rank, i);
        cell->weight = 1e-4; /* keeps cells without links in place, and all cells from drifting */
        cell->wanted = cell->x * cell->weight;
    }
    for (uint32_t i = 0; r > 0 && i < s->ranks[r - 1].links.n; i++)
        pull_link(s, s->ranks[r - 1].links.data[i], true, is_sparse);
    for (uint32_t i = 0; i < rank->links.n; i++)
        pull_link(s, rank->links.data[i], false, is_sparse);
    for (uint32_t i = 0; i < rank->cells.n; i++) {
        Cell *cell = cell_at(s, rank, i);
        cell->wanted /= cell->weight;
    }
}

static void find_places(Sugiyama *s) {
    double *level = arena_array(s->arena, double, s->cells.n);
    double *weight = arena_array(s->arena, double, s->cells.n);
    uint32_t *length = arena_array(s->arena, uint32_t, s->cells.n);
    for (uint32_t i = 0; i < s->cells.n; i++) s->cells.data[i].weight = 1;
    for (uint32_t r = 0; r < s->n_ranks; r++) settle_rank(s, &s->ranks[r], level, weight, length);
    uint32_t n_rounds = MOST_PULLS / (s->links.n + 1);
    if (n_rounds > PLACE_ROUNDS) n_rounds = PLACE_ROUNDS;
    for (uint32_t round = 0; round < n_rounds; round++)
        for (uint32_t i = 0; i < s->n_ranks; i++) {
            uint32_t r = round % 2 == 0 ? i : s->n_ranks - 1 - i;
            pull_rank(s, r, round >= n_rounds / 3);
            settle_rank(s, &s->ranks[r], level, weight, length);
        }
}

/* Puts bends of one edge above one another if their x coordinates differ by MOST_JOG at most. No
 * bend moves by more than half of that. */
static void straighten(Sugiyama *s, uint32_t e) {
    const LayeredEdge *edge = &s->layout->edges.data[e];
    uint32_t n_bends = s->cells.data[edge->to].rank - s->cells.data[edge->from].rank - 1;
    for (uint32_t i = 0; i < n_bends;) {
        double least = HUGE_VAL, most = -HUGE_VAL;
        uint32_t end = i;
        for (; end < n_bends; end++) {
            uint32_t cell = s->links.data[s->first_link[e] + end].lower;
            double x = s->cells.data[cell].x + bend_port(s, cell);
            double low = x < least ? x : least, high = x > most ? x : most;
            if (high - low > MOST_JOG) break;
            least = low;
            most = high;
        }
        for (; i < end; i++) {
            uint32_t cell = s->links.data[s->first_link[e] + i].lower;
            s->cells.data[cell].x = (least + most) / 2 - bend_port(s, cell);
        }
    }
}

/* Results. */

static void find_extent(Sugiyama *s) {
    double y = 0, left = 0, right = 0, gap = s->layout->rank_gap / (s->has_labels ? 2 : 1);
    for (uint32_t r = 0; r < s->n_ranks; r++) {
        s->ranks[r].y = y;
        y += s->ranks[r].h + (r + 1 < s->n_ranks ? gap : 0);
    }
    for (uint32_t i = 0; i < s->cells.n; i++) {
        const Cell *cell = &s->cells.data[i];
        if (i == 0 || cell->x - cell->w / 2 < left) left = cell->x - cell->w / 2;
        if (i == 0 || cell->x + cell->w / 2 > right) right = cell->x + cell->w / 2;
    }
    for (uint32_t i = 0; i < s->cells.n; i++) s->cells.data[i].x -= left;
    s->layout->w = right - left;
    s->layout->h = y;
}

/* Sets y of the nodes. A node without edges from above is at the bottom of its rank, close to its
 * readers. */
static void put_nodes(const Sugiyama *s) {
    for (uint32_t i = 0; i < s->layout->nodes.n; i++) {
        LayeredNode *node = &s->layout->nodes.data[i];
        const Cell *cell = &s->cells.data[i];
        const Rank *rank = &s->ranks[cell->rank];
        double slack = rank->h - node->h;
        node->x = cell->x - node->w / 2;
        bool is_low = node->pin == LAYERED_BOTTOM || s->above[i].n == 0;
        node->y = rank->y + (node->pin == LAYERED_TOP ? 0 : is_low ? slack : slack / 2);
    }
}

/* Appends a point; a point on a vertical line between two others is left out. */
static void add_point(LayeredEdge *edge, double x, double y) {
    LayeredPoint *points = edge->points;
    uint32_t n = edge->n_points;
    if (n && fabs(points[n - 1].x - x) < 1e-9 && fabs(points[n - 1].y - y) < 1e-9) return;
    bool is_down = n > 1 && fabs(points[n - 1].x - x) < 1e-9 && fabs(points[n - 2].x - x) < 1e-9;
    points[is_down ? n - 1 : edge->n_points++] = (LayeredPoint){x, y};
}

/* Sets the points of an edge. It leaves and enters ranks vertically, so it touches no box beside
 * it. */
static void put_edge(const Sugiyama *s, uint32_t e) {
    LayeredEdge *edge = &s->layout->edges.data[e];
    const LayeredNode *from = &s->layout->nodes.data[edge->from];
    const LayeredNode *to = &s->layout->nodes.data[edge->to];
    uint32_t n_links = s->cells.data[edge->to].rank - s->cells.data[edge->from].rank;
    edge->points = arena_array(s->arena, LayeredPoint, 2 * (size_t)n_links + 4);
    for (uint32_t i = 0; i < n_links; i++) {
        const Link *link = &s->links.data[s->first_link[e] + i];
        const Cell *upper = &s->cells.data[link->upper];
        const Rank *rank = &s->ranks[upper->rank];
        double x = upper->x + link->upper_port;
        add_point(edge, x, i == 0 ? from->y + from->h : rank->y);
        add_point(edge, x, rank->y + rank->h);
        if (i + 1 < n_links) continue;
        const Cell *lower = &s->cells.data[link->lower];
        x = lower->x + link->lower_port;
        add_point(edge, x, s->ranks[lower->rank].y);
        add_point(edge, x, to->y);
        if (edge->label_w <= 0) continue;
        edge->label_x = upper->x;
        edge->label_y = rank->y + rank->h / 2;
    }
}

void layered_run(Layered *layout) {
    Sugiyama s = {.arena = layout->arena, .layout = layout};
    layout->w = layout->h = 0;
    if (layout->nodes.n == 0) return;
    for (uint32_t i = 0; i < layout->edges.n; i++)
        s.has_labels = s.has_labels || layout->edges.data[i].label_w > 0;
    find_ranks(&s);
    make_cells(&s);
    find_order(&s);
    for (uint32_t i = 0; i < layout->nodes.n; i++) {
        spread_ports(&s, i, true);
        spread_ports(&s, i, false);
    }
    find_places(&s);
    for (uint32_t i = 0; i < layout->edges.n; i++) straighten(&s, i);
    find_extent(&s);
    put_nodes(&s);
    for (uint32_t i = 0; i < layout->edges.n; i++) put_edge(&s, i);
}
