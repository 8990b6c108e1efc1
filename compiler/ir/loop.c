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

/* The loops whose step a value is made in, ascending, so that inner ones come first. */
typedef struct LoopSet {
    uint32_t n, loops[MAX_LOOPS_DEEP];
} LoopSet;

/* False: they would be too many. */
static bool set_add(LoopSet *set, uint32_t loop) {
    if (vec_among(set->loops, set->n, loop)) return true;
    if (set->n == MAX_LOOPS_DEEP) return false;
    uint32_t i = set->n++;
    for (; i > 0 && set->loops[i - 1] > loop; i--) set->loops[i] = set->loops[i - 1];
    set->loops[i] = loop;
    return true;
}

/* Adds all of `from` but `without`. */
static bool set_join(LoopSet *set, const LoopSet *from, uint32_t without) {
    bool ok = true;
    for (uint32_t i = 0; i < from->n; i++)
        ok = ok && (from->loops[i] == without || set_add(set, from->loops[i]));
    return ok;
}

/* Finds the loops of a node from those of its arguments, and which loop a loop is inside of. */
static const char *spread_node(const Graph *graph, GraphLoops *loops, LoopSet *sets, NodeId id) {
    const Node *node = graph_node(graph, id);
    bool is_result = node->op == OP_LOOP_RESULT, is_carry = node->op == OP_LOOP_CARRY;
    uint32_t own = is_result ? loops->of[node->args[0]] - 1 : UINT32_MAX;
    if (is_carry && !loops->of[id]) return "a loop_carry is of no loop_result";
    bool ok = !is_carry || set_add(&sets[id], loops->of[id] - 1);
    for (uint32_t i = 0; i < node->n_args; i++)
        ok = ok && set_join(&sets[id], &sets[node->args[i]], own);
    if (!ok) return "loops are inside each other more than 4 deep";
    if (is_carry) return NULL;
    loops->of[id] = sets[id].n ? sets[id].loops[0] + 1 : 0;
    if (!is_result) return NULL;
    loops->loops.data[own].parent = loops->of[id];
    return loops->of[id] && loops->of[id] - 1 < own ? "a loop has a value of another one" : NULL;
}

static const char *spread(Arena *arena, const Graph *graph, GraphLoops *loops) {
    LoopSet *sets = arena_array(arena, LoopSet, graph->nodes.n);
    for (NodeId id = 0; id < graph->nodes.n; id++) {
        const char *problem = spread_node(graph, loops, sets, id);
        if (problem) return problem;
    }
    for (uint32_t i = 0; i < graph->outputs.n; i++)
        if (loops->of[graph->outputs.data[i].node]) return "a value of a loop's step is an output";
    return NULL;
}

bool loops_are_inside(const GraphLoops *loops, uint32_t loop, uint32_t outer) {
    while (loop && loop != outer) loop = loops->loops.data[loop - 1].parent;
    return loop == outer;
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
    const char *problem = spread(arena, graph, &loops);
    return problem ? problem : check_blocks(arena, graph, &loops);
}

GraphLoops loops_find(Arena *arena, const Graph *graph) {
    GraphLoops loops = {.of = arena_array(arena, uint32_t, graph->nodes.n)};
    find_carries(arena, graph, &loops);
    spread(arena, graph, &loops);
    return loops;
}
