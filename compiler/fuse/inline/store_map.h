/* Where a group has a value: at a span of its domain, or at the end of a path from such a value.
 *
 * A value has a span if its shape is that of the domain or of the domain without the reduced axes.
 * Other values follow from a value with a span by a path: views, slices, and elementwise work on
 * the slice. Following the path turns coordinates of the domain into coordinates of the value,
 * under a guard: the positions inside all slices. Nothing here pulls values or decides. */
#ifndef FUSEC_FUSE_INLINE_STORE_MAP_H
#define FUSEC_FUSE_INLINE_STORE_MAP_H

#include "fuse/inline/inline.h"

/* The span of a value of this shape in the group. */
typedef enum { SPAN_NONE, SPAN_INNER, SPAN_ROW } ValueSpan;
ValueSpan span_of(const Graph *graph, const Group *group, const Shape *shape);

enum { MAX_PATH = 32 };
typedef struct StorePath {
    ValueSpan place;
    uint32_t n;
    NodeId nodes[MAX_PATH]; /* from the value down to one with a span */
} StorePath;

/* may_begin: whether a path may begin at a value with a span, because not every value of the right
 * shape belongs to the group. If it may not, no path begins below that value either. may_pass:
 * whether a path may continue from a value to its argument. */
typedef bool (*StorePathJudge)(void *user, NodeId node);
typedef struct StorePathSearch {
    const Graph *graph;
    const Group *group;
    StorePathJudge may_begin;
    StorePathJudge may_pass;
    void *user;
} StorePathSearch;
/* Returns false if there is no path. */
bool store_map_find_path(const StorePathSearch *search, NodeId node, StorePath *path);

/* Coordinates at a position of a path. */
typedef struct StoreCoords {
    IndexId at[MAX_RANK];
    /* Per coordinate: the range in which the last slice has elements; lo DIM_NONE: all. */
    Guard ranges[MAX_RANK];
    GuardId guard; /* of the slices before the last */
} StoreCoords;
/* Turns coordinates of the view's argument into those of the view. */
void store_map_follow(ScalarTab *scalars, const Graph *graph, NodeId view, StoreCoords *coords);
/* The guard under which all slices so far have elements. */
GuardId store_map_guard(ScalarTab *scalars, StoreCoords *coords);

#endif
