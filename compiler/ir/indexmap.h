/* Index maps of the view ops, and queries on indices. */
#ifndef FUSEC_IR_INDEXMAP_H
#define FUSEC_IR_INDEXMAP_H

#include "ir/graph.h"
#include "ir/scalar.h"

/* The element address of coordinates in a contiguous row-major tensor. */
IndexId indexmap_address(IndexTab *tab, const Shape *shape, const IndexId *coords);
/* The coordinates in an argument that broadcasts to `shape`. */
void indexmap_broadcast(IndexTab *tab, const Shape *shape, const IndexId *coords,
                        const Shape *arg_shape, IndexId *arg_coords);
/* Whether the op is a transpose, reshape, expand or slice: a view without guards and fill
 * values. */
bool indexmap_can_pull(OpId op);
/* The coordinates in the argument of such a view. */
void indexmap_pull(IndexTab *tab, const Graph *graph, const Node *view, const IndexId *coords,
                   IndexId *arg_coords);
/* Whether the op only rearranges: every element of the argument appears exactly once. */
bool indexmap_is_bijective(OpId op);
/* Whether the op is bijective and keeps the row-major order of elements. */
bool indexmap_keeps_order(OpId op);
/* Whether the op is bijective or a slice: each of its elements is a different element of the
 * argument. */
bool indexmap_can_push(OpId op);
/* Turns coordinates of the argument of `node`, a bijective view, into coordinates of `node`. */
void indexmap_push(IndexTab *tab, const Graph *graph, NodeId node, IndexId *coords);
/* The largest entry of `of_scalar` over all gathered values in the scalar's indices and guards. */
uint32_t indexmap_last_value(const IndexTab *tab, const ScalarTab *scalars, const Scalar *s,
                             const uint32_t *of_scalar);
#endif
