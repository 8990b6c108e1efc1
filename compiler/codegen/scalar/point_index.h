/* What point.c knows of indices and guards at a point. Internal to points. */
#ifndef FUSEC_CODEGEN_SCALAR_POINT_INDEX_H
#define FUSEC_CODEGEN_SCALAR_POINT_INDEX_H

#include "codegen/scalar/point.h"

/* Whether what depends on these axes (bit set) differs from lane to lane. */
bool point_on_lanes(const Point *point, uint32_t axes);
/* How the index moves from lane to lane, and whether it is a multiple where the lanes begin. */
LaneMotion point_motion(const Point *point, IndexId index);
bool point_is_multiple(const Point *point, IndexId index, int64_t multiple);
/* The index at lane 0, or per lane. */
Val point_index_at(Point *point, IndexId id, bool per_lane);
/* Whether the whole conjunction holds: i1, or per lane where no multiple of the lanes' number is
 * known to be at its borders. */
Val point_guard(Point *point, GuardId guard);
/* What is added to an axis value, apart from it: *constant. */
Val point_without_constant(Val value, int64_t *constant);

#endif
