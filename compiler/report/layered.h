/* Layered drawings of acyclic graphs (Sugiyama's method): nodes are boxes in ranks, every edge
 * points down, few edges cross and long edges are straight. Lengths are in units of the drawing; y
 * grows downwards. The result depends only on the order and the sizes of nodes and edges.
 *
 * The rank of a node is its longest path from the top. Sweeps over the means of neighbours order
 * each rank, and the best order is kept. Least squares under the separations of a rank set the x
 * coordinates. This file knows no kernels. */
#ifndef FUSEC_REPORT_LAYERED_H
#define FUSEC_REPORT_LAYERED_H

#include "base/vec.h"

#include <stdbool.h>

/* A pinned node is in the first or last rank, with no other nodes than pinned ones. No edge may end
 * at a node pinned to the top, or begin at one pinned to the bottom. */
typedef enum { LAYERED_FREE, LAYERED_TOP, LAYERED_BOTTOM } LayeredPin;

typedef struct LayeredNode {
    double w, h;
    LayeredPin pin;
    double x, y; /* result: the upper left corner */
} LayeredNode;

typedef struct LayeredPoint {
    double x, y;
} LayeredPoint;

/* An edge leaves the lower side of node `from` and ends at the upper side of the later node `to`. A
 * port is a distance from the middle of the side; edges without ports are evenly spread on the
 * side. */
typedef struct LayeredEdge {
    uint32_t from, to;
    bool has_from_port, has_to_port;
    double from_port, to_port;
    double label_w, label_h; /* size of the label; 0: no label */
    LayeredPoint *points;    /* result: from the first point to the last, never upwards */
    uint32_t n_points;
    double label_x, label_y; /* result: the label's middle */
} LayeredEdge;

typedef struct Layered {
    Arena *arena;
    double node_gap, rank_gap; /* least distances between neighbouring boxes of a rank, and between
                                * ranks */
    Vec(LayeredNode) nodes;
    Vec(LayeredEdge) edges;
    double w, h; /* result: everything lies in [0, w] x [0, h] */
} Layered;

uint32_t layered_add_node(Layered *layout, double w, double h, LayeredPin pin);
void layered_add_edge(Layered *layout, LayeredEdge edge);
void layered_run(Layered *layout);

#endif
