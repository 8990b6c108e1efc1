/* Minimum cuts by maximum flows (Dinic): augments along shortest paths, all of one length at a
 * time. The edges of a node are visited in the order in which they were added. See flow.h. */
#include "base/flow.h"

#include "base/vec.h"

typedef struct FlowEdge {
    uint32_t from, to, next; /* next: the next edge of the same node, plus 1 */
    uint64_t left;           /* residual capacity; the reverse edge is number ^ 1 */
} FlowEdge;

struct Flow {
    Arena *arena;
    uint32_t n_nodes;
    Vec(FlowEdge) edges;
    uint32_t *first, *last, *current; /* per node: index of an edge, plus 1 */
    uint32_t *level;                  /* per node: distance from the source, plus 1; 0: not
                                       * reached */
    uint32_t *queue, *path;
};

Flow *flow_new(Arena *arena, uint32_t n_nodes) {
    Flow *flow = arena_array(arena, Flow, 1);
    uint32_t **const arrays[] = {&flow->first, &flow->last,  &flow->current,
                                 &flow->level, &flow->queue, &flow->path};
    *flow = (Flow){.arena = arena, .n_nodes = n_nodes};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        *arrays[i] = arena_array(arena, uint32_t, n_nodes + 1);
    return flow;
}

static void add_half(Flow *flow, uint32_t from, uint32_t to, uint64_t capacity) {
    vec_push(flow->arena, &flow->edges, (FlowEdge){.from = from, .to = to, .left = capacity});
    uint32_t number = flow->edges.n;
    if (flow->last[from])
        flow->edges.data[flow->last[from] - 1].next = number;
    else
        flow->first[from] = number;
    flow->last[from] = number;
}

void flow_edge(Flow *flow, uint32_t from, uint32_t to, uint64_t capacity) {
    add_half(flow, from, to, capacity);
    add_half(flow, to, from, 0);
}

static bool find_levels(Flow *flow, uint32_t source, uint32_t sink) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < flow->n_nodes; i++) flow->level[i] = 0;
    flow->level[source] = 1;
    flow->queue[n++] = source;
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t e = flow->first[flow->queue[k]]; e; e = flow->edges.data[e - 1].next) {
            const FlowEdge *edge = &flow->edges.data[e - 1];
            if (!edge->left || flow->level[edge->to]) continue;
            flow->level[edge->to] = flow->level[edge->from] + 1;
            flow->queue[n++] = edge->to;
        }
    return flow->level[sink] != 0;
}

/* Sends the largest possible flow along the path's n edges. Returns the number of edges before the
 * first saturated one. */
static uint32_t send(Flow *flow, uint32_t n, uint64_t *total) {
    uint64_t least = UINT64_MAX;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++)
        if (flow->edges.data[flow->path[i]].left < least) {
            least = flow->edges.data[flow->path[i]].left;
            kept = i;
        }
    for (uint32_t i = 0; i < n; i++) {
        flow->edges.data[flow->path[i]].left -= least;
        flow->edges.data[flow->path[i] ^ 1].left += least;
    }
    *total += least;
    return kept;
}

static uint64_t send_all(Flow *flow, uint32_t source, uint32_t sink) {
    uint64_t total = 0;
    uint32_t n = 0, at = source;
    for (uint32_t i = 0; i < flow->n_nodes; i++) flow->current[i] = flow->first[i];
    for (;;) {
        uint32_t *e = &flow->current[at];
        for (; *e; *e = flow->edges.data[*e - 1].next) {
            const FlowEdge *edge = &flow->edges.data[*e - 1];
            if (edge->left && flow->level[edge->to] == flow->level[at] + 1) break;
        }
        if (*e) {
            flow->path[n++] = *e - 1;
            at = flow->edges.data[*e - 1].to;
        } else if (n == 0) {
            return total;
        } else { /* a dead end */
            flow->level[at] = 0;
            at = flow->edges.data[flow->path[--n]].from;
        }
        if (at != sink) continue;
        n = send(flow, n, &total);
        at = flow->edges.data[flow->path[n]].from;
    }
}

uint64_t flow_cut(Flow *flow, uint32_t source, uint32_t sink, bool *on_source_side) {
    uint64_t total = 0;
    while (find_levels(flow, source, sink)) total += send_all(flow, source, sink);
    for (uint32_t i = 0; i < flow->n_nodes; i++) on_source_side[i] = flow->level[i] != 0;
    return total;
}
