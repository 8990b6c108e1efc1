/* Checks a run of a graph node by node: each node's value against the reference interpreter applied
 * to the run's own values of its arguments, so that no error propagates and every bound is sharp.
 */
#ifndef FUSEC_TESTS_CHECK_H
#define FUSEC_TESTS_CHECK_H

#include "ir/graph.h"
#include "lib/compare.h"

typedef enum {
    FETCH_OK,
    FETCH_ABSENT, /* the run did not keep this node's value; constants and iotas are then computed
                   */
    FETCH_FAILED  /* the run broke; the check fails */
} FetchStatus;

/* Points `*bytes` at the stored elements of `node` (row-major, no padding, borrowed until the next
 * call). Inputs and params are asked for like any other node. `type` has dtype and extents. */
typedef FetchStatus (*CheckFetch)(void *user, NodeId node, const Tensor *type,
                                  const uint8_t **bytes);

typedef struct CheckCounts {
    uint32_t n_checked;               /* nodes compared */
    uint32_t n_skipped;               /* nodes whose value, or an argument's, is absent */
    int64_t n_elems, n_finite, n_any; /* compared; finite ones; ones whose bound is INTERP_ANY */
} CheckCounts;

/* True when every node present is right and at least one was compared. What is wrong goes to
 * `report`, a line per wrong node with its op, name, types and first wrong element; at most
 * CHECK_MAX_REPORTS. `arena` receives all values. */
enum { CHECK_MAX_REPORTS = 8 };
bool check_graph(const Graph *graph, const int64_t *symbol_values, CheckFetch fetch, void *user,
                 Arena *arena, CheckCounts *counts, Text *report);

/* Makes an output of every node that is neither a source nor an output yet, named `node_<id>`, so
 * that a run keeps all values. To be done before the graph is compiled. */
void check_expose_nodes(Graph *graph, StrTab *strings);

/* Every output of two runs, to the bit; `a` and `b` fetch from the one and the other. */
bool check_same_outputs(const Graph *graph, const int64_t *symbol_values, CheckFetch fetch, void *a,
                        void *b, Arena *arena, Text *report);

#endif
