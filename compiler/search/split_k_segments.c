/* Each segment length is priced as the plan of a graph with only the matmul. See
 * split_k_segments.h. */
#include "search/split_k_segments.h"
#include "machine/tuning.h"

#include "cost/cost.h"

#include <math.h>

enum {
    ACCESS_ELEMS = 8, /* multiple of equal segments: whole accesses of 16 bytes */
    STEP_ELEMS = 64,  /* multiple if the last segment is shorter: steps of a tile */
};
/* Numbers of segments that are tried if the last segment may be shorter. */
static const int64_t uneven[] = {2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, SEARCH_MOST_SEGMENTS};

typedef struct Segmenter {
    const Planning *planning;
    Arena *trial, *scratch;
    const Graph *graph;
    const Target *target;
} Segmenter;

static Dtype operand_dtype(const Graph *graph, const Node *matmul, uint32_t side) {
    return graph_node(graph, matmul->args[side])->dtype;
}

static const Shape *operand_shape(const Graph *graph, const Node *matmul, uint32_t side) {
    return &graph_node(graph, matmul->args[side])->shape;
}

/* The shape with all extents at their largest values, as dims of another graph. */
static Shape largest(const DimTab *from, const Shape *shape, DimTab *to) {
    Shape known = {.rank = shape->rank};
    for (uint32_t d = 0; d < shape->rank; d++)
        known.dims[d] = dim_const(to, dim_hi(from, shape->dims[d]));
    return known;
}

/* A graph with two inputs and their matmul. */
static Graph *graph_alone(const Segmenter *s, const Node *matmul, int64_t segment_elems) {
    DimTab *dims = dimtab_new(s->trial);
    Graph *alone = graph_new(s->trial, dims, NULL, "product");
    Node gemm = *matmul;
    NodeId args[2];
    for (uint32_t side = 0; side < 2; side++) {
        Shape shape = largest(s->graph->dims, operand_shape(s->graph, matmul, side), dims);
        Node operand = {
            .op = OP_INPUT, .dtype = operand_dtype(s->graph, matmul, side), .shape = shape};
        args[side] = graph_add(alone, operand);
        vec_push(s->trial, &alone->inputs, (GraphInput){.name = "", .node = args[side]});
    }
    gemm.args = args;
    gemm.shape = largest(s->graph->dims, &matmul->shape, dims);
    gemm.attrs.segment_elems = segment_elems;
    NodeId id = graph_add(alone, gemm);
    vec_push(s->trial, &alone->outputs, (GraphOutput){.name = "", .node = id});
    return alone;
}

static double price(const Segmenter *s, const Node *matmul, int64_t segment_elems) {
    arena_reset(s->trial);
    Graph *alone = graph_alone(s, matmul, segment_elems);
    const Plan *plan =
        pipeline_try(s->planning, s->trial, s->scratch, MODE_OPS, alone, NULL, PASS_SCHEDULE);
    if (!plan) return INFINITY;
    const int64_t *none = cost_dims(s->trial, alone->dims, NULL);
    return cost_us(s->trial, plan, card_of_target(s->target), none);
}

/* Whether k is known and the matmul may leave SMs idle for some extents. */
static bool may_pay(const Segmenter *s, const Node *matmul, int64_t *k) {
    DimTab *dims = s->graph->dims;
    const Shape *left = operand_shape(s->graph, matmul, 0);
    DimId n = shape_n_elems(dims, &matmul->shape);
    double most = card_of_target(s->target)->n_processors * SEARCH_SEGMENT_TILE;
    return s->target->has->blocks && dim_is_const(dims, left->dims[left->rank - 1], k) &&
           *k >= 2 * SEARCH_SEGMENT_ELEMS && n != DIM_NONE && dim_hi(dims, n) > 0 &&
           (double)dim_hi(dims, n) < most;
}

/* The best number so far; at first no segments. */
typedef struct Best {
    int64_t segment_elems;
    double us;
} Best;

static void try_segments(const Segmenter *s, const Node *matmul, int64_t segment_elems,
                         double worth, Best *best) {
    double us = price(s, matmul, segment_elems);
    if (us < best->us * worth) *best = (Best){segment_elems, us};
}

/* Tries equal segments. If k allows no good choice of those, tries segments with a shorter last
 * one, which costs one more kernel. */
static int64_t choose(const Segmenter *s, const Node *matmul) {
    int64_t k;
    if (!may_pay(s, matmul, &k)) return 0;
    double whole = price(s, matmul, 0);
    Best best = {0, fmin(whole * SEARCH_SEGMENT_WORTH, whole - SEARCH_SEGMENT_US)};
    for (int64_t n = 2; n <= SEARCH_MOST_SEGMENTS && k / n >= SEARCH_SEGMENT_ELEMS; n++)
        if (k % (n * ACCESS_ELEMS) == 0) try_segments(s, matmul, k / n, 1, &best);
    bool has_choice = k % (8 * STEP_ELEMS) == 0;
    for (size_t i = 0; i < sizeof uneven / sizeof *uneven && !has_choice; i++) {
        int64_t step = uneven[i] * STEP_ELEMS, elems = (k + step - 1) / step * STEP_ELEMS;
        if (k % elems && elems < k && elems >= SEARCH_SEGMENT_ELEMS)
            try_segments(s, matmul, elems, SEARCH_SEGMENT_REST, &best);
    }
    return best.segment_elems;
}

/* An earlier matmul that differs only in the values of its operands. */
static const Node *find_same(const Graph *graph, NodeId id) {
    const Node *node = graph_node(graph, id);
    for (NodeId other = 0; other < id; other++) {
        const Node *before = graph_node(graph, other);
        if (before->op == node->op && before->dtype == node->dtype &&
            operand_dtype(graph, before, 0) == operand_dtype(graph, node, 0) &&
            operand_dtype(graph, before, 1) == operand_dtype(graph, node, 1) &&
            before->attrs.precision == node->attrs.precision &&
            shape_equal(operand_shape(graph, before, 0), operand_shape(graph, node, 0)) &&
            shape_equal(operand_shape(graph, before, 1), operand_shape(graph, node, 1)))
            return before;
    }
    return NULL;
}

bool split_k_pass(const Planning *p, PlanUnit *unit) {
    Graph *graph = unit->graph;
    Segmenter s = {.planning = p,
                   .trial = p->trial,
                   .scratch = p->scratch,
                   .graph = graph,
                   .target = p->target};
    for (NodeId id = 0; id < graph->nodes.n; id++) {
        if (!graph_is_matmul(graph, id)) continue;
        const Node *same = find_same(graph, id);
        Node *matmul = graph_node(graph, id);
        matmul->attrs.segment_elems = same ? same->attrs.segment_elems : choose(&s, matmul);
    }
    arena_reset(s.trial);
    return true;
}
