/* Layered drawings of acyclic graphs: boxes in ranks, every edge going down, few crossings, long
 * edges straight. Lengths are in units of the drawing, y grows downwards. Deterministic: the result
 * depends on the order of nodes and edges and on their sizes alone.
 *
 * Ranks by longest path; order within ranks by sweeps over the means of neighbours, the best order
 * kept; places by least squares under the separations of a rank. Knows nothing of kernels. */
#ifndef FUSEC_REPORT_LAYERED_H
#define FUSEC_REPORT_LAYERED_H

#include "base/vec.h"

#include <stdbool.h>

/* Nodes pinned to the top or bottom have the first or last rank for themselves. No edge may lead to
 * the one or come from the other. */
typedef enum { LAYERED_FREE, LAYERED_TOP, LAYERED_BOTTOM } LayeredPin;

typedef struct LayeredNode {
    double w, h;
    LayeredPin pin;
    double x, y; /* set: the upper left corner */
} LayeredNode;

typedef struct LayeredPoint {
    double x, y;
} LayeredPoint;

/* Leaves `from` at its lower side and reaches `to`, a later node, at its upper side: where the port
 * says, as the distance from the middle of the side, or evenly spread with the other edges there.
 */
typedef struct LayeredEdge {
    uint32_t from, to;
    bool has_from_port, has_to_port;
    double from_port, to_port;
    double label_w, label_h; /* room for a label; 0: none */
    LayeredPoint *points;    /* set: from the first to the last, never going up */
    uint32_t n_points;
    double label_x, label_y; /* set: the label's middle */
} LayeredEdge;

typedef struct Layered {
    Arena *arena;
    double node_gap, rank_gap; /* least distances between boxes side by side, and between ranks */
    Vec(LayeredNode) nodes;
    Vec(LayeredEdge) edges;
    double w, h; /* set: everything lies in [0, w] x [0, h] */
} Layered;

uint32_t layered_add_node(Layered *layout, double w, double h, LayeredPin pin);
void layered_add_edge(Layered *layout, LayeredEdge edge);
void layered_run(Layered *layout);

#endif
