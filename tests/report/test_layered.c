/* Layered drawings of random graphs: nothing overlaps, edges go down and around boxes, and the
 * result is the same every time. */
#include "report/layered.h"

#include <criterion/criterion.h>
#include <math.h>

enum { N_GRAPHS = 150, MAX_N = 40 };

static uint32_t next_random(uint32_t *state, uint32_t n) {
    *state = *state * 1664525u + 1013904223u;
    return (*state >> 8) % n;
}

/* Tops first, bottoms last, edges from nodes to later ones, some with labels. */
static Layered random_layout(Arena *arena, uint32_t seed) {
    Layered layout = {.arena = arena, .node_gap = 10, .rank_gap = 20};
    uint32_t state = seed * 2654435761u + 1, n = 3 + next_random(&state, MAX_N - 3);
    uint32_t n_tops = next_random(&state, 3), n_bottoms = next_random(&state, 3);
    bool has_labels = seed % 2;
    for (uint32_t i = 0; i < n; i++) {
        LayeredPin pin = i < n_tops                          ? LAYERED_TOP
                         : i >= n - n_bottoms && i >= n_tops ? LAYERED_BOTTOM
                                                             : LAYERED_FREE;
        layered_add_node(&layout, 20 + next_random(&state, 100), 10 + next_random(&state, 60), pin);
    }
    for (uint32_t i = 0; i < 2 * n; i++) {
        uint32_t a = next_random(&state, n), b = next_random(&state, n);
        LayeredEdge edge = {.from = a < b ? a : b, .to = a < b ? b : a};
        if (a == b || layout.nodes.data[edge.to].pin == LAYERED_TOP ||
            layout.nodes.data[edge.from].pin == LAYERED_BOTTOM)
            continue;
        if (has_labels && i % 3) {
            edge.label_w = 30;
            edge.label_h = 12;
        }
        if (i % 5 == 0) {
            edge.has_from_port = true;
            edge.from_port = layout.nodes.data[edge.from].w / 4;
        }
        layered_add_edge(&layout, edge);
    }
    return layout;
}

typedef struct Area {
    double x, y, w, h;
} Area;

static bool overlap(Area a, Area b) {
    const double slack = 1e-6;
    return a.x + a.w > b.x + slack && b.x + b.w > a.x + slack && a.y + a.h > b.y + slack &&
           b.y + b.h > a.y + slack;
}

static Area node_area(const Layered *layout, uint32_t i) {
    const LayeredNode *node = &layout->nodes.data[i];
    return (Area){node->x, node->y, node->w, node->h};
}

static Area label_area(const LayeredEdge *edge) {
    return (Area){edge->label_x - edge->label_w / 2, edge->label_y - edge->label_h / 2,
                  edge->label_w, edge->label_h};
}

static void expect_apart(const Layered *layout, uint32_t seed) {
    Area whole = {0, 0, layout->w, layout->h};
    for (uint32_t i = 0; i < layout->nodes.n; i++) {
        Area a = node_area(layout, i);
        cr_assert(a.x >= -1e-6 && a.y >= -1e-6 && a.x + a.w <= whole.w + 1e-6 &&
                      a.y + a.h <= whole.h + 1e-6,
                  "graph %u: node %u lies outside", seed, i);
        for (uint32_t k = 0; k < i; k++)
            cr_assert(!overlap(a, node_area(layout, k)), "graph %u: nodes %u and %u", seed, k, i);
        for (uint32_t e = 0; e < layout->edges.n; e++)
            if (layout->edges.data[e].label_w > 0)
                cr_assert(!overlap(a, label_area(&layout->edges.data[e])),
                          "graph %u: node %u and the label of edge %u", seed, i, e);
    }
    for (uint32_t e = 0; e < layout->edges.n; e++)
        for (uint32_t k = 0; k < e && layout->edges.data[e].label_w > 0; k++)
            if (layout->edges.data[k].label_w > 0)
                cr_assert(!overlap(label_area(&layout->edges.data[e]),
                                   label_area(&layout->edges.data[k])),
                          "graph %u: labels of edges %u and %u", seed, k, e);
}

/* Down, from box to box, and through none: between two points beside a box the line is vertical. */
static void expect_edges(const Layered *layout, uint32_t seed) {
    for (uint32_t e = 0; e < layout->edges.n; e++) {
        const LayeredEdge *edge = &layout->edges.data[e];
        const LayeredNode *from = &layout->nodes.data[edge->from];
        const LayeredNode *to = &layout->nodes.data[edge->to];
        LayeredPoint first = edge->points[0], last = edge->points[edge->n_points - 1];
        cr_assert(edge->n_points >= 2, "graph %u: edge %u has no points", seed, e);
        cr_assert(from->y + from->h < to->y, "graph %u: edge %u goes up", seed, e);
        cr_assert_float_eq(first.y, from->y + from->h, 1e-6, "graph %u, edge %u", seed, e);
        cr_assert_float_eq(last.y, to->y, 1e-6, "graph %u, edge %u", seed, e);
        cr_assert(first.x >= from->x && first.x <= from->x + from->w, "graph %u, edge %u", seed, e);
        cr_assert(last.x >= to->x && last.x <= to->x + to->w, "graph %u, edge %u", seed, e);
        for (uint32_t i = 1; i < edge->n_points; i++) {
            LayeredPoint a = edge->points[i - 1], b = edge->points[i];
            cr_assert(b.y >= a.y, "graph %u: edge %u goes up", seed, e);
            double left = a.x < b.x ? a.x : b.x;
            Area line = {left, a.y, fabs(a.x - b.x), b.y - a.y};
            for (uint32_t k = 0; k < layout->nodes.n; k++)
                cr_assert(!overlap(line, node_area(layout, k)), "graph %u: edge %u meets node %u",
                          seed, e, k);
        }
    }
}

static void expect_pins(const Layered *layout, uint32_t seed) {
    for (uint32_t i = 0; i < layout->nodes.n; i++)
        for (uint32_t k = 0; k < layout->nodes.n; k++) {
            const LayeredNode *a = &layout->nodes.data[i], *b = &layout->nodes.data[k];
            if ((a->pin == LAYERED_TOP && b->pin != LAYERED_TOP) ||
                (a->pin != LAYERED_BOTTOM && b->pin == LAYERED_BOTTOM))
                cr_assert(a->y + a->h <= b->y, "graph %u: node %u is not above %u", seed, i, k);
        }
}

Test(layered, nothing_overlaps_and_edges_go_down) {
    for (uint32_t seed = 0; seed < N_GRAPHS; seed++) {
        Arena *arena = arena_new(NULL);
        Layered layout = random_layout(arena, seed);
        layered_run(&layout);
        expect_apart(&layout, seed);
        expect_edges(&layout, seed);
        expect_pins(&layout, seed);
        arena_free(arena);
    }
}

Test(layered, is_the_same_every_time) {
    for (uint32_t seed = 0; seed < 20; seed++) {
        Arena *arena = arena_new(NULL);
        Layered a = random_layout(arena, seed), b = random_layout(arena, seed);
        layered_run(&a);
        layered_run(&b);
        for (uint32_t i = 0; i < a.nodes.n; i++)
            cr_assert(a.nodes.data[i].x == b.nodes.data[i].x &&
                      a.nodes.data[i].y == b.nodes.data[i].y);
        for (uint32_t e = 0; e < a.edges.n; e++)
            cr_assert(memcmp(a.edges.data[e].points, b.edges.data[e].points,
                             a.edges.data[e].n_points * sizeof(LayeredPoint)) == 0);
        arena_free(arena);
    }
}

Test(layered, crossings_are_undone_and_chains_are_straight) {
    Arena *arena = arena_new(NULL);
    Layered layout = {.arena = arena, .node_gap = 10, .rank_gap = 20};
    for (int i = 0; i < 8; i++) layered_add_node(&layout, 30, 10, LAYERED_FREE);
    /* Two chains whose ends stand the wrong way round. */
    static const uint32_t edges[][2] = {{0, 3}, {1, 2}, {2, 4}, {3, 5}, {4, 7}, {5, 6}};
    for (size_t i = 0; i < sizeof edges / sizeof edges[0]; i++)
        layered_add_edge(&layout, (LayeredEdge){.from = edges[i][0], .to = edges[i][1]});
    layered_run(&layout);
    for (uint32_t e = 0; e < layout.edges.n; e++) {
        const LayeredEdge *edge = &layout.edges.data[e];
        cr_expect_float_eq(edge->points[0].x, edge->points[edge->n_points - 1].x, 0.5, "edge %u",
                           e);
    }
    arena_free(arena);
}

Test(layered, of_nothing_and_of_one_node) {
    Arena *arena = arena_new(NULL);
    Layered none = {.arena = arena};
    layered_run(&none);
    cr_expect(none.w <= 0 && none.h <= 0);
    Layered one = {.arena = arena};
    layered_add_node(&one, 20, 10, LAYERED_BOTTOM);
    layered_run(&one);
    cr_expect_float_eq(one.w, 20, 1e-9);
    cr_expect(one.nodes.data[0].y + 10 <= one.h + 1e-9);
    arena_free(arena);
}
