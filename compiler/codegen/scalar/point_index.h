/* The index functions of point.c: indices and guards at a point. Internal to points. */
#ifndef FUSEC_CODEGEN_SCALAR_POINT_INDEX_H
#define FUSEC_CODEGEN_SCALAR_POINT_INDEX_H

#include "codegen/scalar/point.h"

/* Whether a value that depends on these axes (bit set) differs from lane to lane. */
bool point_on_lanes(const Point *point, uint32_t axes);
/* How the index changes from lane to lane, and whether it is a multiple of `multiple` at lane 0. */
LaneMotion point_motion(const Point *point, IndexId index);
bool point_is_multiple(const Point *point, IndexId index, int64_t multiple);
/* The elements side by side that a CPU's lanes, of which all exist, read again and again; 0: they
 * do not. */
uint32_t point_repeated_lanes(const Point *point, IndexId index);
/* Whether the index is computed once for all lanes. */
bool point_is_shared(const Point *point, IndexId index);
/* The index at lane 0, or per lane. */
Val point_index_at(Point *point, IndexId id, bool per_lane);
/* Whether all terms of the guard hold: i1, a constant if the point's piece tells, or a vector of i1
 * if a bound may fall between two lanes. */
Val point_guard(Point *point, GuardId guard);
/* Returns the guard's conditions that all lanes share, and sets *of_lanes to its conditions that
 * differ from lane to lane. Either is NULL if the guard has no such condition. */
Val point_guard_split(Point *point, GuardId guard, Val *of_lanes);
/* Whether the guard's first condition is known in the point's piece: it holds, or fails, everywhere
 * in it. */
bool point_guard_is_known(const Point *point, const Guard *g, bool *holds);
/* Whether the first condition holds: i1, or a vector of i1 if it differs from lane to lane. */
Val point_guard_range(Point *point, const Guard *g);
/* What the point's block knows of the index at lane 0, or of the guard's first condition; NULL:
 * nothing. */
typedef struct PointBlock PointBlock;
Val point_index_in_block(const Point *point, IndexId id);
Val point_range_in_block(const Point *point, const Guard *guard);
/* Splits a constant addend off an axis value and adds it to *constant. */
Val point_without_constant(Val value, int64_t *constant);

#endif
