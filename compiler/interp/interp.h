/* The reference interpreter: it defines the meaning of a graph. It works in double precision,
 * rounds exactly where the language rounds, and shares no code with lowering. It favours clarity
 * over speed.
 *
 * Tensors live on the given arena. On a failure (an extent that does not fit, a tensor of more than
 * TENSOR_MAX_ELEMS elements, an argument of the wrong shape) a function returns false and puts a
 * one-line message on the arena into `*error`. One thread per arena. */
#ifndef FUSEC_INTERP_INTERP_H
#define FUSEC_INTERP_INTERP_H

#include "interp/tensor.h"
#include "ir/graph.h"

#include <math.h>

/* A bound that allows any value of an element (see interp_node's `bounds`). */
#define INTERP_ANY INFINITY

/* Evaluates one node from the values of its arguments: args[i] belongs to node->args[i].
 * `symbol_values` is indexed by the graph's dim symbols. `*out` gets the node's dtype and shape and
 * fresh storage. An input or param has no value of its own and is an error.
 *
 * `bounds`, unless NULL, receives one number per element: by how much a correct target's element
 * may differ from this one, given exactly these arguments.
 *    0           the same number to the bit, the sign of zero included; any NaN equals any NaN
 *    positive    that absolute difference; infinity counts as the number that would follow the
 *                largest finite one; NaN must meet NaN; the sign of zero is free
 *    INTERP_ANY  anything: an intermediate result may overflow in one order and not in another
 * Elementwise bounds come from the op's row; for arguments outside its domain they grow by 128
 * times the least normal number of the compute type. Sums, means and GEMMs are held to (n + 1) * u
 * * sum|terms| before their one rounding, u being the unit roundoff of the compute type. They are
 * held to equality where every partial sum is exact in that type. A matmul of precision tf32, or
 * with a result wider than its operands, is held to twice that bound. A matmul with products below
 * the least number of the compute type gets n times that number more. A fast graph has wider
 * bounds: those of interp_node_within for exact arguments. */
bool interp_node(const Graph *graph, NodeId node, const int64_t *symbol_values, const Tensor *args,
                 Tensor *out, double *bounds, Arena *arena, const char **error);
/* interp_node for a fast graph (Graph.is_fast) whose arguments have errors. `errors` has, per
 * argument, one number per element, in the form of `bounds`; NULL: the argument is exact. A value
 * that cannot be known, for example after a comparison that may go either way, is INTERP_ANY. */
bool interp_node_within(const Graph *graph, NodeId node, const int64_t *symbol_values,
                        const Tensor *args, const double *const *errors, Tensor *out,
                        double *bounds, Arena *arena, const char **error);
/* The largest distance from the rounding of `exact` to the rounding of a number within `error` > 0
 * of it. */
double interp_rounded_bound(Dtype dtype, double exact, double error);
/* E of docs/design/online-softmax.md: a column of the product of a softmax of n elements with
 * values of this dtype, by the recurrence, differs before it is rounded by at most E sum(P |v|),
 * and what is lost below the normal numbers. */
double interp_online_bound(Dtype values, double n);
/* The dtype and extents of `node` for these symbol values, without storage. */
bool interp_shape(const Graph *graph, NodeId node, const int64_t *symbol_values, Tensor *out,
                  Arena *arena, const char **error);

/* Evaluates the whole graph. A value of a loop's step is that of the last step, and a carried one
 * that after it. Inputs and params are in the order of the graph's lists, with the
 * right dtype and shape. `values` has graph->nodes.n entries, all of which are filled. */
bool interp_graph(const Graph *graph, const int64_t *symbol_values, const Tensor *inputs,
                  const Tensor *params, Tensor *values, Arena *arena, const char **error);

/* interp_graph with the errors of a fast graph, whose inputs and params are exact. `bounds`, unless
 * it is NULL, has one pointer per node: it gets an array, or NULL for a bound input or param. */
bool interp_graph_within(const Graph *graph, const int64_t *symbol_values, const Tensor *inputs,
                         const Tensor *params, Tensor *values, double **bounds, Arena *arena,
                         const char **error);

#endif
