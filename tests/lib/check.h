/* Checks a run of a graph node by node. Each node's value is compared with the reference
 * interpreter, which is applied to the run's own values of its arguments. So no error propagates
 * and every bound is sharp. */
#ifndef FUSEC_TESTS_CHECK_H
#define FUSEC_TESTS_CHECK_H

#include "ir/graph.h"
#include "lib/compare.h"

typedef enum {
    FETCH_OK,
    FETCH_ABSENT, /* the run did not store this node's value; constants and iotas are then
                   * computed */
    FETCH_FAILED  /* the run failed, and so does the check */
} FetchStatus;

/* Points `*bytes` at the stored elements of `node` (row-major, no padding, borrowed until the next
 * call). It is called for inputs and params like for any other node. `type` has dtype and
 * extents. */
typedef FetchStatus (*CheckFetch)(void *user, NodeId node, const Tensor *type,
                                  const uint8_t **bytes);

typedef struct CheckCounts {
    uint32_t n_checked;               /* nodes compared */
    uint32_t n_skipped;               /* nodes without a value, or with an argument without one */
    int64_t n_elems, n_finite, n_any; /* compared elements; finite ones; ones whose bound is
                                       * INTERP_ANY */
} CheckCounts;

/* True when every present node is right and at least one was compared. `report` gets a line per
 * wrong node with its op, name, types and first wrong element, at most CHECK_MAX_REPORTS lines.
 * `arena` receives all values. */
enum { CHECK_MAX_REPORTS = 8 };
bool check_graph(const Graph *graph, const int64_t *symbol_values, CheckFetch fetch, void *user,
                 Arena *arena, CheckCounts *counts, Text *report);

/* Makes every node an output that is neither a source nor an output yet, named `node_<id>`, so that
 * a run stores all values, but for those of a loop's steps (ir/loop.h). Call it before the graph is
 * compiled. */
void check_expose_nodes(Graph *graph, StrTab *strings);

/* Compares every output of two runs bit by bit; `a` and `b` are the users of their fetches. */
bool check_same_outputs(const Graph *graph, const int64_t *symbol_values, CheckFetch fetch, void *a,
                        void *b, Arena *arena, Text *report);

#endif
