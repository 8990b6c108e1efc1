/* Points: emitting a kernel's scalar programs at one position of its loops, for one or several
 * lanes.
 *
 * A Lower is one kernel function under construction, common to all templates of all targets. A
 * Point is a place in its loops: a value for every axis, and the lanes side by side along the lane
 * axis (lane j stands at axis value + j). Templates make loops and points and ask for values and
 * stores; a point emits each scalar once. Values that do not depend on the lane axis stay scalars.
 */
#ifndef FUSEC_CODEGEN_SCALAR_POINT_H
#define FUSEC_CODEGEN_SCALAR_POINT_H

#include "codegen/llvm/build.h"
#include "codegen/math/convert.h"
#include "codegen/math/math.h"
#include "codegen/math/prim.h"
#include "ir/graph.h"
#include "plan/plan.h"

/* A buffer in shared memory: rows of the block's tile. `base` NULL: it is in memory. */
typedef struct Smem {
    Val base;    /* ptr addrspace(3), 16-byte aligned */
    DimId pitch; /* elements from row to row */
} Smem;

/* The tile that the blocks of a sequence work on, as its first GEMM finds it, or the rows of it
 * that a warp has by itself; i64. */
typedef struct BlockTile {
    Val m0, n0;    /* its first row and column in the matrix */
    Val m;         /* rows of the matrix */
    Val first_row; /* m0 and all the rows of the batches before */
    uint32_t n_rows;
    bool is_warps;
} BlockTile;

/* GPU: shared memory that the kernels of a launch use one after the other: of the launch's dynamic
 * shared memory, or an array. */
typedef struct SharedTiles {
    uint32_t dynamic_bytes;
    Val array;
    uint32_t n_bytes;
} SharedTiles;

typedef struct Lower {
    Codegen *k;
    const Plan *plan;
    const Launch *launch; /* that the function runs */
    const Kernel *kernel;
    const Variant *variant;
    Val function;
    Val block;        /* GPU: the block's number: i32, among those of its kernel where kernels are
                         parallel; of one block, which block of the grid it stands for; else NULL */
    Val *pointers;    /* per Kernel.args; NULL of shared buffers */
    bool *may_change; /* per Kernel.args: what it holds, from the kernel's beginning on */
    /* GPU: Kernel.args (bit set) that the template reads by unit_load_hinted, and its policy. */
    uint64_t read_once;
    Val load_policy;
    Val *maps; /* per map of the kernel, or of the launch: pointer to the parameter */
    /* GPU: parallel kernels that are this one but for their buffers; their pointers are the
     * function's parameters from `first_param` on, their maps those from `first_map` on. */
    uint32_t n_parts, first_param, first_map;
    /* The kernels that the template runs, in this Lower and the next ones of the array: kernels
     * that share the block, or (GPU) parallel kernels of other code, one for each tile; else 1. */
    uint32_t n_together, n_codes;
    struct Lower *rows; /* a kernel over rows that the template runs itself, or NULL */
    const Smem *smem;   /* per Kernel.args; NULL: none is in shared memory */
    BlockTile *tile;    /* of a sequence, else NULL */
    bool is_one_block;  /* of a one-block launch: its block has a processor for itself */
    bool lets_in;       /* GPU: is still to say when the next launch's blocks may come in */
    SharedTiles *tiles;
    Val symbols[DIM_MAX_SYMBOLS]; /* i64 */
    Val units_begin, units_end;   /* CPU, i64: the work units of the call */
    LLVMTypeRef index_type;       /* i32 or i64: of axis values and element addresses */
    uint32_t lane_axis;           /* NO_AXIS when the kernel has no axes to put lanes on */
    LLVMBasicBlockRef entry;      /* holds what is computed once; its terminator comes last */
    Vec(MathDivisor) divisors;    /* what lanes divide by together */
    uint32_t *uses;               /* per ScalarId, as point_fma.c counts; NULL before */
    Val *dims;                    /* per DimId, in the entry block; grown on demand */
    uint32_t n_dims;
} Lower;

/* An index that moves alike over this many neighbours does so from any start. */
enum { POINT_ANY_START = 1 << 20 };

typedef struct Point {
    Lower *lower;
    uint32_t lanes;
    uint32_t lane_axis;   /* the Lower's, unless a template lays lanes along another axis */
    bool begins_anywhere; /* along that axis, and not at a multiple of the lanes */
    Val axis[MAX_AXES];   /* index_type, at lane 0 */
    /* Of a flat map (template/flat.h): the number of the element at lane 0, index_type, and per
     * axis that needs it the lanes' coordinates; lane_axis has no part in it then. NULL: it is
     * none. */
    Val flat, *coordinates;
    Val active;    /* i1: whether this point exists at all, or NULL: it does. Loads stay in
                    * bounds where it is false; stores are the template's to skip. */
    Val mask;      /* <lanes x i1>: lanes that exist, or NULL: all (CPU tails) */
    Val *results;  /* per slot: SCALAR_STAGE, scalar or per lane */
    Val *extremes; /* per slot: SCALAR_EXTREME */
    Val *values;   /* per ScalarId, once emitted */
} Point;

/* Sets up a Lower for `kernel`: everything but function, pointers, symbols and entry, which depend
 * on the target's calling convention. */
void lower_init(Lower *lower, Codegen *k, const Plan *plan, const Kernel *kernel,
                const Variant *variant);
/* Where the buffer is among the kernel's arguments, one of which it must be. */
uint32_t lower_arg(const Lower *lower, uint32_t buffer);
/* The value of a dim in index_type (or i64), computed once in the entry block. */
Val lower_dim(Lower *lower, DimId dim);
Val lower_dim64(Lower *lower, DimId dim);
/* A dim as a divisor: an extent of 0 has no elements, but may still be divided by. */
Val lower_divisor(Lower *lower, DimId dim);
static inline DimTab *lower_dims(const Lower *lower) {
    return indextab_dims(scalartab_indices(lower->kernel->scalars));
}
Val lower_index_const(const Lower *lower, int64_t value);
/* Splits a linear index into the `n` axes from `first`, innermost last: sets point->axis. */
void lower_split(Lower *lower, Val linear, uint32_t first, uint32_t n, Point *point);

/* A point without axis values; `results` and `extremes` have room for every slot. */
Point point_new(Lower *lower, uint32_t lanes);
/* A point inside `outer`'s loops: same axes so far, and every value `outer` has emitted. */
Point point_inside(const Point *outer);
/* The scalar's value: a vector of lanes when it depends on the lane axis (and lanes > 1). */
Val point_value(Point *point, ScalarId id);
/* The same, always per lane. */
Val point_lanes(Point *point, ScalarId id);
/* Emits, now, everything the roots need that depends on no axis of `inner_axes` (bit set) and that
 * can be computed already: so that loops find it ready. */
void point_prepare(Point *point, const ScalarId *roots, uint32_t n_roots, uint32_t inner_axes);
/* Lists loads, `most` at most, that the roots need, that the point has not emitted and that no
 * result of a reduction comes before: those that a loop can begin early. */
uint32_t point_list_loads(const Point *point, const ScalarId *roots, uint32_t n_roots,
                          ScalarId *loads, uint32_t most);
/* Divides, now and at once, what the roots need divided by one value at all of the `n` points, and
 * what these have already: one look tells whether any quotient is unusual, and the code for those
 * is there once. */
void point_divide_together(Point *points, uint32_t n, const ScalarId *roots, uint32_t n_roots);
/* What a load finds, as it lies in memory: a vector of lanes where it depends on the lane axis. */
Val point_loaded(Point *point, ScalarId load);
/* Where a load reads at lane 0. */
Val point_pointer(Point *point, const Scalar *load);
/* Index at lane 0. */
Val point_index(Point *point, IndexId id);
/* Nothing, where kernels that share the block pass the value in registers. */
void point_store(Point *point, const Store *store);
/* Of kernels that share the block, at one place of their loops: gives the point, where its kernel
 * loads what the maker's stores, the values themselves. */
void point_take_passed(Point *point, Point *maker);
/* Computes what the stores need: of those under a guard what several need; the rest is computed
 * inside the guard, where that lets all lanes through or none. */
void point_prepare_stores(Point *point, const Store *stores, uint32_t n);
void point_store_all(Point *point, const Store *stores, uint32_t n);

#endif
