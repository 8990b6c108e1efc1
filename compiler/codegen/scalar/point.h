/* Points: emitting a kernel's scalar programs at one position of its loops, for one or several
 * lanes.
 *
 * A Lower is one kernel function under construction; the templates of all targets use it. A Point
 * is a position in the function's loops. It has a value for every axis, and lanes side by side
 * along the lane axis: lane j is at axis value + j. A template builds loops and points and asks a
 * point for values and stores. A point emits each scalar once. A value that does not depend on the
 * lane axis stays a scalar. */
#ifndef FUSEC_CODEGEN_SCALAR_POINT_H
#define FUSEC_CODEGEN_SCALAR_POINT_H

#include "codegen/llvm/build.h"
#include "codegen/math/convert.h"
#include "codegen/math/math.h"
#include "codegen/math/prim.h"
#include "ir/graph.h"
#include "plan/plan.h"

/* A buffer in shared memory: the rows of the block's tile. `base` NULL: it is in global memory. */
typedef struct Smem {
    Val base;    /* ptr addrspace(3), 16-byte aligned */
    DimId pitch; /* elements from one row to the next */
} Smem;

/* The tile [rows,columns] of the blocks of a sequence, as its first GEMM defines it, or the rows of
 * it that one warp owns. All values are i64. */
typedef struct BlockTile {
    Val m0, n0;    /* first row and first column of the tile in the matrix */
    Val m;         /* rows of the matrix */
    Val first_row; /* m0 plus the rows of all earlier batches */
    uint32_t n_rows;
    bool is_warps;
} BlockTile;

/* GPU: shared memory that the kernels of a launch use one after the other. It is part of the
 * launch's dynamic shared memory, or an array of its own. */
typedef struct SharedTiles {
    uint32_t dynamic_bytes;
    Val array;
    uint32_t n_bytes;
} SharedTiles;

/* CPU: what kernel_shared_scalars told last. */
typedef struct SharedScalars {
    const bool *of; /* NULL: it was not asked */
    uint32_t axis, lanes;
} SharedScalars;

typedef struct Lower {
    Codegen *k;
    const Plan *plan;
    const Launch *launch; /* the launch that the function runs */
    const Kernel *kernel;
    const Variant *variant;
    Val function;
    Val block;        /* GPU: the block's number, i32. In a parallel launch it counts within the
                       * kernel; in a one-block launch it is the number of the block that the one
                       * block stands for. NULL: the grid's block index */
    Val *pointers;    /* per Kernel.args; NULL for shared buffers */
    bool *may_change; /* per Kernel.args: whether another kernel may write it during this one */
    /* GPU: the bit set of Kernel.args that the template reads by k_load_hinted, and their cache
     * policy. */
    uint64_t read_once;
    Val load_policy;
    Val *maps; /* per map of the kernel or the launch: pointer to the kernel parameter */
    /* GPU: parallel kernels with the same code and other buffers. Their pointers are the function's
     * parameters from `first_param` on, their maps those from `first_map` on. */
    uint32_t n_kernels, first_param, first_map;
    /* The kernels that one template call emits, in this Lower and the next ones of the array: the
     * kernels of a sequence that share a block, or (GPU) parallel kernels of different code, one
     * per tile. Otherwise 1. */
    uint32_t n_together, n_codes;
    struct Lower *rows; /* a row kernel of the sequence that the template itself emits, or NULL */
    struct Lower *behind_rows; /* CPU: a GEMM whose lhs that row kernel makes, or NULL */
    const Smem *smem;          /* per Kernel.args; NULL: no argument is in shared memory */
    BlockTile *tile;           /* in a sequence, else NULL */
    bool is_one_block;         /* a one-block launch: its block has a multiprocessor to itself */
    bool triggers_next; /* GPU, PDL: the template must still emit the trigger that lets the next
                         * launch begin */
    SharedTiles *tiles;
    Val symbols[DIM_MAX_SYMBOLS]; /* i64 */
    Val *given;                   /* per constant that the launch gives the kernel: its value */
    Val units_begin, units_end;   /* CPU, i64: the range of work units of this call */
    LLVMTypeRef index_type;       /* i32 or i64: type of axis values and element addresses */
    uint32_t lane_axis;           /* NO_AXIS: the kernel has no axis for lanes */
    SharedScalars shared;
    LLVMBasicBlockRef entry;   /* holds values computed once; it gets its terminator last */
    Vec(MathDivisor) divisors; /* divisors that several lanes share */
    uint32_t *uses;            /* per ScalarId, counted by point_fma.c; NULL before */
    Val *dims;                 /* two per DimId, in the entry block; grown on demand */
    uint32_t n_dims;
} Lower;

/* The piece [lo, hi) of an axis in which a loop runs. Guards on the axis are then known, and of a
 * concat along the axis one piece is left. */
typedef struct PointPiece {
    bool is_any; /* false: the loop runs over the whole axis */
    uint32_t axis;
    int64_t lo, hi; /* hi INT64_MAX: up to the end */
    bool is_inside; /* the template knows that each guard on the axis holds */
} PointPiece;

typedef struct Point {
    Lower *lower;
    uint32_t lanes;
    uint32_t lane_axis; /* that of the Lower, unless the template uses another axis */
    uint32_t block;     /* the lanes lie between neighbouring multiples of it, lane 0 anywhere; 0:
                         * lane 0 is at a multiple of the lanes */
    const struct PointBlock *in_block; /* see point_enter_block; or NULL */
    PointPiece piece;
    Val axis[MAX_AXES]; /* index_type, of lane 0 */
    /* For a flat map (template/flat.h): the number of the element at lane 0, in index_type, and for
     * each axis that needs it the lanes' coordinates. lane_axis is then unused. NULL: the map is
     * not flat. */
    Val flat, *coordinates;
    Val active;    /* i1: whether this point exists; NULL: it does. Where it is false, loads stay in
                    * bounds and the template must skip the stores. */
    Val mask;      /* <lanes x i1>: the lanes that exist; NULL: all (CPU tails) */
    Val *results;  /* per slot: value of SCALAR_STAGE, a scalar or a vector */
    Val *extremes; /* per slot: value of SCALAR_EXTREME */
    Val *values;   /* per ScalarId, once emitted */
} Point;

/* Sets up a Lower for `kernel`, except function, pointers, symbols and entry, which depend on the
 * target's calling convention. */
void lower_init(Lower *lower, Codegen *k, const Plan *plan, const Kernel *kernel,
                const Variant *variant);
/* The position of the buffer in the kernel's arguments; it must be one of them. */
uint32_t lower_arg(const Lower *lower, uint32_t buffer);
/* The value of a dim in index_type, or in i64, computed once in the entry block. */
Val lower_dim(Lower *lower, DimId dim);
Val lower_dim64(Lower *lower, DimId dim);
/* The extent of an axis in index_type. */
static inline Val lower_extent(Lower *lower, uint32_t axis) {
    return lower_dim(lower, kernel_axis_extent(lower->kernel, axis));
}
/* A dim as a divisor: at least 1, because code that divides by an extent of 0 may run although it
 * has no elements. */
Val lower_divisor(Lower *lower, DimId dim);
static inline DimTab *lower_dims(const Lower *lower) {
    return indextab_dims(scalartab_indices(lower->kernel->scalars));
}
Val lower_index_const(const Lower *lower, int64_t value);
/* Splits a linear index into the `n` axes from `first`, innermost last, and sets point->axis. */
void lower_split(Lower *lower, Val linear, uint32_t first, uint32_t n, Point *point);

/* Splits the number of a vector of point->lanes elements into the parallel axes. */
void lower_split_vectors(Lower *lower, Val number, Point *point);

/* Whether the guard's first condition is a range [lo, hi) of the axis. */
bool point_cut_of(const Kernel *kernel, Guard guard, uint32_t axis, int64_t *lo, int64_t *hi);

/* A point without axis values. `results` and `extremes` have an entry for every slot. */
Point point_new(Lower *lower, uint32_t lanes);
/* A point inside the loops of `outer`: it starts with the axes and all emitted values of
 * `outer`. */
Point point_inside(const Point *outer);
/* The scalar's value: a vector of lanes if it depends on the lane axis and lanes > 1. */
Val point_value(Point *point, ScalarId id);
/* point_value as a vector of lanes in any case. */
Val point_lanes(Point *point, ScalarId id);
/* Emits now every value that the roots need, that depends on no axis of `inner_axes` (bit set), and
 * that can already be computed. So later loops do not recompute it. */
void point_prepare(Point *point, const ScalarId *roots, uint32_t n_roots, uint32_t inner_axes);
/* Computes now, at the multiple `begin` of point->block, the indices of the root's loads and the
 * conditions that are alike in the whole block. From now on the point is used inside the block. */
void point_enter_block(Point *point, ScalarId root, Val begin);
/* Sets the point's block to that of `from`, moved: an index that moves by n from lane to lane moves
 * by n * by / of. */
void point_move_block(Point *point, const Point *from, int64_t by, int64_t of);
/* The same, moved by `by` elements of an axis along which each index moves evenly. */
void point_shift_block(Point *point, const Point *from, uint32_t axis, Val by);
/* Returns whether those conditions of the guard hold that are alike in the whole block, or NULL if
 * there are none. From now on the point is used where they do. */
Val point_take_ranges(Point *point, GuardId guard);
/* Lists at most `most` loads that the roots need, that the point has not emitted, and that depend
 * on no reduction's result. A loop can begin them early. */
uint32_t point_list_loads(const Point *point, const ScalarId *roots, uint32_t n_roots,
                          ScalarId *loads, uint32_t most);
/* Emits the divisions by one divisor that the roots need, for all `n` points at once. One test then
 * covers all quotients, and the code for unusual ones exists once. */
void point_divide_together(Point *points, uint32_t n, const ScalarId *roots, uint32_t n_roots);
/* The loaded value in its memory type: a vector of lanes if the load depends on the lane axis. */
Val point_loaded(Point *point, ScalarId load);
/* The address that a load reads at lane 0. */
Val point_pointer(Point *point, const Scalar *load);
/* CPU: `lanes` elements of a kernel's argument at the pointer; of those outside the mask zeros.
 * NULL: all are in memory. */
Val point_load_lanes(const Lower *lower, uint32_t arg, Dtype dtype, uint32_t lanes, Val pointer,
                     Val mask);
/* The index at lane 0. */
Val point_index(Point *point, IndexId id);
/* Emits the store, unless the kernels of the block pass the value in registers. */
void point_store(Point *point, const Store *store);
/* For kernels that share a block, at one position of their loops: a load of `point` that reads a
 * store of `maker` gets the stored value itself. */
void point_take_passed(Point *point, Point *maker);
/* Computes the values that the stores need, before the stores. Of guarded stores it computes only
 * the values that several stores need; if a guard is uniform over the lanes, its store then
 * computes its other values inside the guard. */
void point_prepare_stores(Point *point, const Store *stores, uint32_t n);
void point_store_all(Point *point, const Store *stores, uint32_t n);
/* Stores the lanes of `n` points, at most STORE_WEAVE_MOST, between each other, on a CPU: lane j of
 * point i is n * j + i elements after lane 0 of the first. */
void point_store_woven(Point *points, uint32_t n, const Store *store);

#endif
