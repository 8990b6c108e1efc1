/* Layered drawings of acyclic graphs: boxes in ranks, every edge going down, few crossings, long
 * edges straight. Lengths are in units of the drawing, y grows downwards. Deterministic: the result
 * depends on the order of nodes and edges and on their sizes alone.
 *
 * Ranks by longest path; order within ranks by sweeps over the means of neighbours, the best order
 * kept; places by least squares under the separations of a rank. Knows nothing of kernels. */
#ifndef FUSEC_LAYOUT_H
#define FUSEC_LAYOUT_H

#include "base/vec.h"

#include <stdbool.h>

/* Nodes pinned to the top or bottom have the first or last rank for themselves. No edge may lead to
 * the one or come from the other. */
typedef enum { LAYOUT_FREE, LAYOUT_TOP, LAYOUT_BOTTOM } LayoutPin;

typedef struct LayoutNode {
    double w, h;
    LayoutPin pin;
    double x, y; /* set: the upper left corner */
} LayoutNode;

typedef struct LayoutPoint {
    double x, y;
} LayoutPoint;

/* Leaves `from` at its lower side and reaches `to`, a later node, at its upper side: where the port
 * says, as the distance from the middle of the side, or evenly spread with the other edges there.
 */
typedef struct LayoutEdge {
    uint32_t from, to;
    bool has_from_port, has_to_port;
    double from_port, to_port;
    double label_w, label_h; /* room for a label; 0: none */
    LayoutPoint *points;     /* set: from the first to the last, never going up */
    uint32_t n_points;
    double label_x, label_y; /* set: the label's middle */
} LayoutEdge;

typedef struct Layout {
    Arena *arena;
    double node_gap, rank_gap; /* least distances between boxes side by side, and between ranks */
    Vec(LayoutNode) nodes;
    Vec(LayoutEdge) edges;
    double w, h; /* set: everything lies in [0, w] x [0, h] */
} Layout;

uint32_t layout_add_node(Layout *layout, double w, double h, LayoutPin pin);
void layout_add_edge(Layout *layout, LayoutEdge edge);
void layout_run(Layout *layout);

#endif
