/* Points: emitting a kernel's scalar programs at one position of its loops, for one or several
 * lanes.
 *
 * A Lower is one kernel function under construction, common to all templates of all targets. A
 * Point is a place in its loops: a value for every axis, and the lanes side by side along the lane
 * axis (lane j stands at axis value + j). Templates make loops and points and ask for values and
 * stores; a point emits each scalar once. Values that do not depend on the lane axis stay scalars.
 */
#ifndef FUSEC_POINT_H
#define FUSEC_POINT_H

#include "back/unit.h"

typedef struct Lower {
    Unit *unit;
    const Plan *plan;
    const Kernel *kernel;
    const Variant *variant;
    LLVMValueRef function;
    LLVMValueRef *pointers;                /* per Kernel.args */
    bool *is_written;                      /* per Kernel.args */
    LLVMValueRef *maps;                    /* per map of the variant: pointer to the parameter */
    LLVMValueRef symbols[DIM_MAX_SYMBOLS]; /* i64 */
    LLVMTypeRef index_type;                /* i32 or i64: of axis values and element addresses */
    uint32_t lane_axis;                    /* NO_AXIS when the kernel has no axes to put lanes on */
    LLVMBasicBlockRef entry; /* holds what is computed once; its terminator comes last */
    LLVMValueRef *dims;      /* per DimId, in the entry block; grown on demand */
    uint32_t n_dims;
} Lower;

typedef struct Point {
    Lower *lower;
    uint32_t lanes;
    uint32_t lane_axis;          /* the Lower's, unless a template lays lanes along another axis */
    LLVMValueRef axis[MAX_AXES]; /* index_type, at lane 0 */
    LLVMValueRef active;    /* i1: whether this point exists at all, or NULL: it does. Loads stay in
                             * bounds where it is false; stores are the template's to skip. */
    LLVMValueRef mask;      /* <lanes x i1>: lanes that exist, or NULL: all (CPU tails) */
    LLVMValueRef *results;  /* per slot: SCALAR_STAGE, scalar or per lane */
    LLVMValueRef *extremes; /* per slot: SCALAR_EXTREME */
    LLVMValueRef *values;   /* per ScalarId, once emitted */
} Point;

/* Sets up a Lower for `kernel`: everything but function, pointers, symbols and entry, which depend
 * on the target's calling convention. */
void lower_init(Lower *lower, Unit *unit, const Plan *plan, const Kernel *kernel,
                const Variant *variant);
/* The value of a dim in index_type (or i64), computed once in the entry block. */
LLVMValueRef lower_dim(Lower *lower, DimId dim);
LLVMValueRef lower_dim64(Lower *lower, DimId dim);
LLVMValueRef lower_index_const(const Lower *lower, int64_t value);
/* Splits a linear index into the `n` axes from `first`, innermost last: sets point->axis. */
void lower_split(Lower *lower, LLVMValueRef linear, uint32_t first, uint32_t n, Point *point);

/* A point without axis values; `results` and `extremes` have room for every slot. */
Point point_new(Lower *lower, uint32_t lanes);
/* A point inside `outer`'s loops: same axes so far, and every value `outer` has emitted. */
Point point_inside(const Point *outer);
/* The scalar's value: a vector of lanes when it depends on the lane axis (and lanes > 1). */
LLVMValueRef point_value(Point *point, ScalarId id);
/* The same, always per lane. */
LLVMValueRef point_lanes(Point *point, ScalarId id);
/* Emits, now, everything the roots need that depends on no axis of `inner_axes` (bit set) and that
 * can be computed already: so that loops find it ready. */
void point_prepare(Point *point, const ScalarId *roots, uint32_t n_roots, uint32_t inner_axes);
/* Index at lane 0. */
LLVMValueRef point_index(Point *point, IndexId id);
void point_store(Point *point, const Store *store);

#endif
