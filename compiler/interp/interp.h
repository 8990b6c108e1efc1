/* The reference interpreter: what a graph means. It works in double precision, rounds exactly where
 * the language rounds, and shares no code with lowering. Slow on purpose.
 *
 * Tensors live on the given arena. Failures (an extent that does not fit, a tensor of more than
 * TENSOR_MAX_ELEMS elements, an argument of the wrong shape) return false and put a one-line
 * message on the arena into `*error`. One thread per arena. */
#ifndef FUSEC_INTERP_INTERP_H
#define FUSEC_INTERP_INTERP_H

#include "interp/tensor.h"
#include "ir/graph.h"

#include <math.h>

/* What a correct target may return for one element, besides the value itself (see
 * interp_node's `bounds`). */
#define INTERP_ANY INFINITY

/* Evaluates one node from the values of its arguments: args[i] belongs to node->args[i].
 * `symbol_values` is indexed by the graph's dim symbols. `*out` gets the node's dtype and shape and
 * fresh storage; an input or param has no value of its own and is an error.
 *
 * `bounds`, unless NULL, receives one number per element: by how much a correct target's element
 * may differ from this one, given these very arguments.
 *     0           the same number to the bit, the sign of zero included; any NaN equals any NaN
 *     positive    that absolute difference; infinity counts as the number that would follow the
 *                 largest finite one; NaN must meet NaN; the sign of zero is free
 *     INTERP_ANY  anything: an intermediate result may overflow in one order and not in another
 * Elementwise bounds come from the op's row (for arguments outside its domain plus 128 times the
 * least normal number of the compute type). Sums, means and products are held to
 * (n + 1) * u * sum|terms| before their one rounding, u being the unit roundoff of the compute
 * type, and to equality where every partial sum is exact in that type; a matmul of precision tf32
 * to twice that, and one with products below the least number of the compute type to n times that
 * number more. Those of a fast graph are wider, as interp_node_within has them of exact arguments.
 */
bool interp_node(const Graph *graph, NodeId node, const int64_t *symbol_values, const Tensor *args,
                 Tensor *out, double *bounds, Arena *arena, const char **error);
/* The same of a fast graph (Graph.is_fast) whose arguments are themselves off by `errors`: per
 * argument one number per element, as `bounds` are, or NULL: it is exact. What nobody knows any
 * more, as behind a comparison that may go either way, is INTERP_ANY. */
bool interp_node_within(const Graph *graph, NodeId node, const int64_t *symbol_values,
                        const Tensor *args, const double *const *errors, Tensor *out,
                        double *bounds, Arena *arena, const char **error);
/* How far from what `exact` rounds to anything may be that was within `error` > 0 of it before it
 * was rounded. */
double interp_rounded_bound(Dtype dtype, double exact, double error);
/* The extents that `node` has for these symbol values, and no storage. */
bool interp_shape(const Graph *graph, NodeId node, const int64_t *symbol_values, Tensor *out,
                  Arena *arena, const char **error);

/* What a rewrite may add to the lhs of a product: relatively, and to every element. */
typedef struct InterpSlack {
    NodeId product;
    double relative, absolute;
} InterpSlack;
/* How far the values of a fast graph may be off, given exact inputs and params: `bounds`, one
 * pointer per node, get an array each; those that are bound, NULL. */
typedef struct InterpReach {
    const InterpSlack *slack;
    uint32_t n_slack;
    double **bounds;
} InterpReach;

/* Evaluates the whole graph: inputs and params in the order of the graph's lists, values of the
 * right dtype and shape; `values` has graph->nodes.n entries, all filled. */
bool interp_graph(const Graph *graph, const int64_t *symbol_values, const Tensor *inputs,
                  const Tensor *params, Tensor *values, Arena *arena, const char **error);

/* The same, with bounds where `reach` is not NULL. */
bool interp_graph_within(const Graph *graph, const int64_t *symbol_values, const Tensor *inputs,
                         const Tensor *params, Tensor *values, const InterpReach *reach,
                         Arena *arena, const char **error);

#endif
