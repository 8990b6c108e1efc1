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
typedef enum { PLACE_NONE, PLACE_INNER, PLACE_ROW } Place;
Place place_of(const Graph *graph, const Group *group, const Shape *shape);

enum { MAX_PATH = 32 };
typedef struct PlacePath {
    Place place;
    uint32_t n;
    NodeId nodes[MAX_PATH]; /* from the value down to one that has a place */
} PlacePath;

/* Whether a path may begin at a value that has a place, since not every one of the right shape is
 * the group's; where it may not, neither may it at what the value is made of. And whether it may go
 * on from a value to what that is made of. */
typedef bool (*PlaceJudge)(void *user, NodeId node);
typedef struct PlaceSearch {
    const Graph *graph;
    const Group *group;
    PlaceJudge may_begin;
    PlaceJudge may_pass;
    void *user;
} PlaceSearch;
/* Finds a path to the node; false: there is none. */
bool place_find_path(const PlaceSearch *search, NodeId node, PlacePath *path);

/* Coordinates on the way along a path. */
typedef struct PlaceCoords {
    IndexId at[MAX_RANK];
    /* Per coordinate: a range that holds where the last slice has elements; lo DIM_NONE: all. */
    Guard ranges[MAX_RANK];
    GuardId guard; /* of what lies before */
} PlaceCoords;
/* From coordinates of the view's argument to the view's. */
void place_follow(ScalarTab *scalars, const Graph *graph, NodeId view, PlaceCoords *coords);
/* Where all slices on the way so far have elements. */
GuardId place_guard(ScalarTab *scalars, PlaceCoords *coords);

#endif
