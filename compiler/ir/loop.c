/* See loop.h. */
#include "ir/loop.h"

#include <string.h>

bool graph_has_loops(const Graph *graph) {
    for (NodeId id = 0; id < graph->nodes.n; id++)
        if (graph_class(graph, id) == CLASS_LOOP) return true;
    return false;
}

static GraphLoop loop_of_result(const Graph *graph, NodeId result) {
    const Node *node = graph_node(graph, result);
    uint32_t n = node->n_args / 2;
    return (GraphLoop){.result = result,
                       .n_carried = n,
                       .carries = node->args,
                       .next = node->args + n,
                       .count = loop_count(node)};
}

/* Whether both are results of one loop. */
static bool is_same_loop(const GraphLoop *a, const GraphLoop *b) {
    return a->n_carried == b->n_carried && a->count == b->count &&
           memcmp(a->carries, b->carries, 2 * a->n_carried * sizeof *a->carries) == 0;
}

/* Gives each carry its loop. Returns false if two loops have one carry. */
static bool find_carries(Arena *arena, const Graph *graph, GraphLoops *loops) {
    for (NodeId id = 0; id < graph->nodes.n; id++) {
        if (graph_node(graph, id)->op != OP_LOOP_RESULT) continue;
        GraphLoop loop = loop_of_result(graph, id);
        uint32_t known = loops->of[loop.carries[0]];
        if (known && is_same_loop(&loops->loops.data[known - 1], &loop)) continue;
        vec_push(arena, &loops->loops, loop);
        for (uint32_t i = 0; i < loop.n_carried; i++) {
            if (loops->of[loop.carries[i]]) return false;
            loops->of[loop.carries[i]] = loops->loops.n;
        }
    }
    return true;
}

/* Whether a loop_result has these arguments by its own loop, to which its arguments belong or which
 * they are computed before. */
static bool closes(const GraphLoops *loops, const Node *result) {
    uint32_t own = loops->of[result->args[0]];
    for (uint32_t i = 0; i < result->n_args; i++)
        if (loops->of[result->args[i]] && loops->of[result->args[i]] != own) return false;
    return true;
}

static const char *spread(const Graph *graph, GraphLoops *loops) {
    for (NodeId id = 0; id < graph->nodes.n; id++) {
        const Node *node = graph_node(graph, id);
        if (node->op == OP_LOOP_CARRY) {
            if (!loops->of[id]) return "a loop_carry is of no loop_result";
            if (loops->of[node->args[0]]) return "a loop is inside another one";
        } else if (node->op == OP_LOOP_RESULT) {
            if (!closes(loops, node)) return "a loop has a value of another one";
        } else {
            for (uint32_t i = 0; i < node->n_args; i++) {
                uint32_t of = loops->of[node->args[i]];
                if (of && loops->of[id] && loops->of[id] != of) return "a value is of two loops";
                if (of) loops->of[id] = of;
            }
        }
    }
    for (uint32_t i = 0; i < graph->outputs.n; i++)
        if (loops->of[graph->outputs.data[i].node]) return "a value of a loop's step is an output";
    return NULL;
}

/* A kernel or contract holds in one place: in the steps of one loop, or between loops. */
static const char *check_blocks(Arena *arena, const Graph *graph, const GraphLoops *loops) {
    uint32_t *seen = arena_array(arena, uint32_t, graph->fixed_kernels.n + 1);
    for (NodeId id = 0; id < graph->nodes.n && graph->kernel_of.n; id++) {
        uint32_t k = graph->kernel_of.data[id], of = loops->of[id] + 1;
        if (!k) continue;
        if (graph_class(graph, id) == CLASS_LOOP) return "a block has a loop";
        if (seen[k] && seen[k] != of) return "a block has ops of a loop and ops beside it";
        seen[k] = of;
    }
    return NULL;
}

const char *loops_problem(Arena *arena, const Graph *graph) {
    if (!graph_has_loops(graph)) return NULL;
    GraphLoops loops = {.of = arena_array(arena, uint32_t, graph->nodes.n)};
    if (!find_carries(arena, graph, &loops)) return "two loops have one loop_carry";
    const char *problem = spread(graph, &loops);
    return problem ? problem : check_blocks(arena, graph, &loops);
}

GraphLoops loops_find(Arena *arena, const Graph *graph) {
    GraphLoops loops = {.of = arena_array(arena, uint32_t, graph->nodes.n)};
    find_carries(arena, graph, &loops);
    spread(graph, &loops);
    return loops;
}
