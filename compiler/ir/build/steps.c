/* The note of the steps of unrolled loops, from their first node to the finished graph. See build.h
 * and ir/steps.h. */
#include "ir/build/build.h"

/* While a graph is made. */

void build_begin_loop(Builder *b, Str index, int64_t begin, int64_t by) {
    LoopSteps loop = {.index = index, .begin = begin, .by = by, .parent = b->loop};
    OpenLoop open = {0};
    if (b->loop) loop.in_step = b->open_loops.data[b->loop - 1].starts.n - 1;
    vec_push(b->arena, &b->graph->loops, loop);
    vec_push(b->arena, &b->open_loops, open);
    b->loop = b->graph->loops.n;
}

void build_loop_step(Builder *b, uint32_t n_carried, const NodeId *carried) {
    LoopSteps *loop = &b->graph->loops.data[b->loop - 1];
    OpenLoop *open = &b->open_loops.data[b->loop - 1];
    if (!open->starts.n) loop->n_carried = n_carried;
    open->is_uneven = open->is_uneven || loop->n_carried != n_carried;
    vec_push(b->arena, &open->starts, b->graph->nodes.n);
    vec_push(b->arena, &open->starts_again, b->again.n);
    for (uint32_t i = 0; i < n_carried; i++) vec_push(b->arena, &open->carried, carried[i]);
}

void build_end_loop(Builder *b, const Str *names) {
    LoopSteps *loop = &b->graph->loops.data[b->loop - 1];
    const OpenLoop *open = &b->open_loops.data[b->loop - 1];
    loop->n_steps = open->starts.n - 1;
    loop->names = arena_copy(b->arena, names, loop->n_carried * sizeof *names);
    loop->carried = open->carried.data;
    b->loop = loop->parent;
}

void build_read_again(Builder *b, NodeId node) {
    if (b->loop) vec_push(b->arena, &b->again, (ReadAgain){b->graph->nodes.n, node});
}

/* When it is finished. */

/* Lists the nodes of a step: its own ones, and between them, in the order of the source, the older
 * nodes that the step uses again. Returns their number. `nodes` NULL: only counts. */
static uint32_t nodes_of_step(const Builder *b, const OpenLoop *open, uint32_t step,
                              NodeId *nodes) {
    uint32_t n = 0, again = open->starts_again.data[step];
    uint32_t end_again = open->starts_again.data[step + 1], end = open->starts.data[step + 1];
    for (NodeId id = open->starts.data[step]; id <= end; id++) {
        for (; again < end_again && b->again.data[again].at == id; again++, n++)
            if (nodes) nodes[n] = b->again.data[again].node;
        if (id == end) break;
        if (nodes) nodes[n] = id;
        n++;
    }
    return n;
}

static void list_steps(Builder *b, LoopSteps *loop, const OpenLoop *open) {
    uint32_t n_steps = loop->n_steps;
    loop->first = open->starts.data[0];
    loop->end = open->starts.data[open->starts.n - 1];
    if (!n_steps) return;
    loop->n_nodes = nodes_of_step(b, open, 0, NULL);
    for (uint32_t k = 1; k < n_steps; k++)
        if (nodes_of_step(b, open, k, NULL) != loop->n_nodes) loop->n_steps = 0;
    if (open->is_uneven || !loop->n_nodes) loop->n_steps = 0;
    if (!loop->n_steps) return;
    loop->nodes = arena_array(b->arena, NodeId, (size_t)n_steps * loop->n_nodes);
    for (uint32_t k = 0; k < n_steps; k++)
        nodes_of_step(b, open, k, loop->nodes + (size_t)k * loop->n_nodes);
}

void build_list_steps(Builder *b) {
    enum { MOST = 4 * MAX_NODES }; /* of deeply nested loops only the outer ones have a note */
    size_t n = 0;
    for (uint32_t i = 0; i < b->graph->loops.n; i++) {
        const OpenLoop *open = &b->open_loops.data[i];
        n += open->starts.data[b->graph->loops.data[i].n_steps] - open->starts.data[0];
        if (n > MOST) b->graph->loops.data[i].n_steps = 0;
        list_steps(b, &b->graph->loops.data[i], open);
    }
}

static void move_all(NodeId *nodes, size_t n, const NodeId *moved) {
    for (size_t i = 0; i < n; i++)
        if (nodes[i] != NODE_NONE) nodes[i] = moved[nodes[i]];
}

static size_t n_in_steps(const LoopSteps *loop) {
    return (size_t)loop->n_steps * loop->n_nodes;
}

static size_t n_carried(const LoopSteps *loop) {
    return loop->n_steps ? ((size_t)loop->n_steps + 1) * loop->n_carried : 0;
}

void build_move_steps(Builder *b, const NodeId *moved) {
    for (uint32_t i = 0; i < b->graph->loops.n; i++) {
        LoopSteps *loop = &b->graph->loops.data[i];
        move_all(loop->nodes, n_in_steps(loop), moved);
        move_all(loop->carried, n_carried(loop), moved);
    }
}

/* The nodes that were made of a step's nodes; returns their number. */
static uint32_t made_of(const NodeId *nodes, uint32_t n, const NodeId *begins, NodeId *made) {
    uint32_t n_made = 0;
    for (uint32_t i = 0; i < n; i++)
        for (NodeId id = begins[nodes[i]]; id < begins[nodes[i] + 1]; id++, n_made++)
            if (made) made[n_made] = id;
    return n_made;
}

static void remake(Builder *b, LoopSteps *loop, const NodeId *begins) {
    uint32_t n_steps = loop->n_steps, n = loop->n_nodes;
    uint32_t n_made = n_steps ? made_of(loop->nodes, n, begins, NULL) : 0;
    for (uint32_t k = 1; k < n_steps; k++)
        if (made_of(loop->nodes + (size_t)k * n, n, begins, NULL) != n_made) loop->n_steps = 0;
    NodeId *made = arena_array(b->arena, NodeId, (size_t)loop->n_steps * n_made);
    for (uint32_t k = 0; k < loop->n_steps; k++)
        made_of(loop->nodes + (size_t)k * n, n, begins, made + (size_t)k * n_made);
    loop->nodes = made;
    loop->n_nodes = n_made;
    loop->first = begins[loop->first];
    loop->end = begins[loop->end];
}

void build_remake_steps(Builder *b, const NodeId *begins, const NodeId *moved) {
    for (uint32_t i = 0; i < b->graph->loops.n; i++) {
        LoopSteps *loop = &b->graph->loops.data[i];
        remake(b, loop, begins);
        move_all(loop->carried, n_carried(loop), moved);
    }
}

void build_drop_steps(Builder *b, NodeFlags live, uint32_t n_nodes) {
    NodeId *moved = arena_array(b->arena, NodeId, n_nodes);
    NodeId *begins = arena_array(b->arena, NodeId, n_nodes + 1);
    for (NodeId id = 0; id < n_nodes; id++) {
        bool is_live = node_has(live, id, BUILD_LIVE);
        moved[id] = is_live ? begins[id] : NODE_NONE;
        begins[id + 1] = begins[id] + is_live;
    }
    build_move_steps(b, moved);
    for (uint32_t i = 0; i < b->graph->loops.n; i++) {
        LoopSteps *loop = &b->graph->loops.data[i];
        loop->first = begins[loop->first];
        loop->end = begins[loop->end];
    }
}
