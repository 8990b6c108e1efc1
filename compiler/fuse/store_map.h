/* Where a group has a value: at a place of its domain, or on the way out of one.
 *
 * A value whose shape is the domain's, or what is left of it after reducing, has a place. Others
 * may follow from one that has by rearranging it, taking a slice of it, and elementwise work on
 * that slice: a path. Following a path from its place, coordinates become those of the value, under
 * a guard: where the domain is inside the slices. Nothing here pulls or decides. */
#ifndef FUSEC_FUSE_STORE_MAP_H
#define FUSEC_FUSE_STORE_MAP_H

#include "fuse/inline.h"

/* Whether a value of this shape has a place in the group, and which. */
typedef enum { SPAN_NONE, SPAN_INNER, SPAN_ROW } ValueSpan;
ValueSpan span_of(const Graph *graph, const Group *group, const Shape *shape);

enum { MAX_PATH = 32 };
typedef struct StorePath {
    ValueSpan place;
    uint32_t n;
    NodeId nodes[MAX_PATH]; /* from the value down to one that has a place */
} StorePath;

/* Whether a path may begin at a value that has a place, since not every one of the right shape is
 * the group's; where it may not, neither may it at what the value is made of. And whether it may go
 * on from a value to what that is made of. */
typedef bool (*StorePathJudge)(void *user, NodeId node);
typedef struct StorePathSearch {
    const Graph *graph;
    const Group *group;
    StorePathJudge may_begin;
    StorePathJudge may_pass;
    void *user;
} StorePathSearch;
/* Finds a path to the node; false: there is none. */
bool store_map_find_path(const StorePathSearch *search, NodeId node, StorePath *path);

/* Coordinates on the way along a path. */
typedef struct StoreCoords {
    IndexId at[MAX_RANK];
    /* Per coordinate: a range that holds where the last slice has elements; lo DIM_NONE: all. */
    Guard ranges[MAX_RANK];
    GuardId guard; /* of what lies before */
} StoreCoords;
/* From coordinates of the view's argument to the view's. */
void store_map_follow(ScalarTab *scalars, const Graph *graph, NodeId view, StoreCoords *coords);
/* Where all slices on the way so far have elements. */
GuardId store_map_guard(ScalarTab *scalars, StoreCoords *coords);

#endif
