/* Kernels: loop axes, and stages that reduce and store over them. Scalar programs define the
 * computation per element; variants (plan/variant.h) define the schedule. */
#ifndef FUSEC_PLAN_KERNEL_H
#define FUSEC_PLAN_KERNEL_H

#include "ir/graph.h"
#include "ir/scalar.h"
#include "plan/choice.h"
#include "plan/variant.h"

#include <assert.h>

/* How a scan by a function joins parts of a row, each of which has n values. All reductions that
 * have the function and the elements in common have one ScanJoin. */
typedef struct ScanJoin {
    uint32_t n;
    const ScalarId *elements; /* per value, in Kernel.scalars: an element's, of its type */
    const Dtype *types;       /* per value: the type that holds it */
    /* The function. SCALAR_STAGE of slot i is value i of the part before, of slot n + i value i of
     * the part behind it. */
    const ScalarTab *scalars;
    const ScalarId *results; /* per value, in `scalars`, of its type */
} ScanJoin;

/* One reduction over all reduced axes of its kernel. */
typedef struct Reduce {
    NodeId node;
    PrimId combine; /* ADD MUL MIN MAX; of a scan by a function NONE: */
    const ScanJoin *join;
    uint32_t joined;      /* which of the join's values the result is; `value` is its element */
    PrimId power, row;    /* where the form weighs: as in OpInfo */
    QuantizeMap quantize; /* where the form weighs without powers */
    bool is_arg;          /* carries the index of the extreme too, which is the result */
    Dtype acc;            /* of the accumulator (dtype_accumulator) */
    double identity;
    union {
        ScalarId value; /* per element, of type acc */
        ScalarId lhs;   /* for a GEMM, in the dtype of its operands */
    };
    ScalarId rhs;        /* for a GEMM, in the dtype of its operands; of segments the number of the
                          * element's segment, i32 or i64; else SCALAR_NONE */
    Precision precision; /* for a GEMM; tf32 operands are a PRIM_TF32 or stored as tf32 */
    union {
        ScalarId arg_index; /* is_arg: i32 index of the element; of segments the number of the
                             * result's segment, in the dtype of `rhs` */
        ScalarId count;     /* where the form weighs: how often a weight counts in the sum of the
                             * weights, of type acc; SCALAR_NONE: once */
    };
    ScalarId factor; /* where the form weighs: what multiplies a weight in the product, not in the
                      * sum of the weights, of type acc; SCALAR_NONE: nothing */
    /* The value of SCALAR_STAGE: the accumulator, divided by `divisor` unless that is DIM_NONE,
     * converted to `result`. A partial's result is the raw accumulator. */
    DimId divisor;
    Dtype result;
} Reduce;

typedef struct Store {
    uint32_t buffer;
    IndexId address; /* element */
    ScalarId value;  /* in the buffer's dtype */
    NodeId node;     /* the node whose value it stores */
    uint32_t piece;  /* operand of the concat in the buffer, plus 1; 0: `node` itself */
    uint32_t trace;  /* index of `value` in Kernel.traces, plus 1; 0: none */
    /* The kernel's pointer to the buffer is this many elements after the buffer's first element,
     * and `address` counts from there. DIM_NONE: it points to the first element. */
    DimId begin;
    GuardId guard;   /* holds at one point of the loops per element of `node` */
    bool is_scratch; /* of a sort: memory for its own use, at and after these addresses */
    bool is_update;  /* it replaces a part of `node`, whose other elements are in the buffer */
    uint32_t copied; /* of an update: the buffer that is copied to `buffer` before the kernel, plus
                      * 1; 0: none, the old value is there */
} Store;

/* A graph value inside a kernel: `value` is the node's element at `coords` (one index per axis of
 * the node) wherever `guard` holds. Only probes (verify/probe.h) use traces, and only their plans
 * have them. */
typedef struct Trace {
    NodeId node;
    ScalarId value; /* in the node's dtype */
    GuardId guard;
    const IndexId *coords;
    bool is_loaded;         /* the kernel loads it and does not compute it */
    Vec(uint32_t) operands; /* the traces of its inputs, which come before it */
} Trace;

/* One walk over the full domain (parallel and reduced axes): its reductions and stores depend only
 * on reductions of earlier stages, where each point has results on reductions of the stage itself.
 */
typedef struct Stage {
    Vec(uint32_t) reduces; /* slots */
    Vec(Store) stores;
} Stage;

/* The interval of a value of the scores' masks over each block of ONLINE_BLOCK keys: loads, at any
 * key of the block. Of a bool they are i32, 0 or 1. */
typedef struct Bounds {
    ScalarId value, least, greatest;
} Bounds;

/* The band of a matrix of rows and columns: of each tile of BAND_ROWS rows the columns in [first,
 * end), of which there are some. A kernel with a band leaves the others out: it computes no output,
 * multiplies no k, reduces no element there. `axis` is that of the columns. The bounds are loads at
 * any row of the tile, i32: multiples of the chains of a row's sum (ReduceOrder), and of BAND_STEP.
 * `end` may pass the extent. */
enum { BAND_ROWS = 256, BAND_STEP = 256 };
typedef struct Band {
    ScalarId first, end; /* SCALAR_NONE: there is no band */
    uint32_t axis, row_axis;
    DimId n_rows;       /* of the matrix: tiles begin at its first row */
    double share, most; /* of all columns, about: of the mean row, and of the longest */
} Band;

/* Arguments that are parts of buffers or constants (launch/part.h). */
typedef struct KernelParts {
    DimId begins[MAX_KERNEL_ARGS]; /* elements before the kernel's pointer; DIM_NONE: none */
    Vec(ScalarId) constants;       /* of Kernel.scalars, in the order of their arguments */
    ScalarTab *scalars; /* Kernel.scalars with loads that count from there and given constants */
} KernelParts;

#define NO_AXIS UINT32_MAX

struct Kernel {
    Str name;
    Span span;
    bool is_init; /* runs once per program, and again if a param changes */
    KernelForm form;
    uint32_t n_parallel;               /* axes [0, n_parallel) of the index table */
    uint32_t first_reduced, n_reduced; /* axes [first_reduced, first_reduced + n_reduced) */
    /* A partial kernel reduces one segment per row and stores raw accumulators. Its rows run over
     * the parallel axes and this axis of segments, which is innermost for FORM_ROW and outermost
     * for FORM_COLUMN. A GEMM and softmax and product have the axis among their parallel axes,
     * before m. NO_AXIS: not a partial kernel. */
    uint32_t segment_axis;
    /* CPU GEMM: the operand that is contiguous along the register tile is loaded from panels of
     * this many columns. Element (k, c) of panel p lies at (p * depth + k) * panel_columns + c;
     * columns after the last hold zeros. 0: no panels. */
    uint32_t panel_columns;
    ScalarTab *scalars;
    Vec(Reduce) reduces; /* slots */
    Vec(Stage) stages;
    Vec(Store) row_stores; /* once per parallel index, after all stages */
    Vec(uint32_t) args;    /* buffers, in argument order */
    Vec(Bounds) bounds;    /* of the kernel that makes an online kernel's scores */
    ScalarId tiles_taken; /* of it too: a load of how many tiles of rows blocks have taken, which is
                           * 0 before the launch and behind it; SCALAR_NONE: nobody counts */
    Band band;
    Vec(NodeId) nodes; /* ascending: nodes that it computes; empty if it only copies data */
    Vec(Trace) traces; /* shared by kernels that one kernel was split into */
    uint64_t symbols;  /* dims passed to it: bit set of dim symbols */
    Variant *variants; /* at most MAX_VARIANTS; shared by copies of the kernel */
    uint32_t n_variants;
    uint32_t program; /* kernels of a number are copies of one, but for their buffers and nodes, as
                       * fusion made them (fuse/op_kernels.h); 0: no other kernel need be */
    uint32_t code;    /* equal for kernels that differ only in their buffers (launch/dedup.h) */
    /* Its code and its launch have pointers to these parts, and its launch these constants; its
     * scalars have not. NULL: none. */
    const KernelParts *parts;
    /* The kernel starts in runs that take its version of the choice. NULL: in every run. */
    const Choice *choice;
    Version version;
};

static_assert(sizeof(Kernel) <= 512, "kernels are copied to try launches");

/* A copy that has its own variants and shares everything else. */
Kernel kernel_copy(Arena *arena, const Kernel *kernel);
/* Gives the kernel a copy of these variants. */
/* The number of the last variant of a level; n_variants: there is none. */
uint32_t kernel_last_of_level(const Kernel *kernel, Str level);
void kernel_set_variants(Arena *arena, Kernel *kernel, const Variant *variants, uint32_t n);

/* Axes of a GEMM: parallel .., m, n and reduced k. */
static inline uint32_t gemm_axis_m(const Kernel *kernel) {
    return kernel->n_parallel - 2;
}
static inline uint32_t gemm_axis_n(const Kernel *kernel) {
    return kernel->n_parallel - 1;
}
static inline uint32_t gemm_axis_k(const Kernel *kernel) {
    return kernel->first_reduced;
}

/* The dtype in which a GEMM multiplies its operands, or an online kernel its weights and values. */
static inline Dtype gemm_operand_dtype(const Kernel *kernel) {
    return scalar_get(kernel->scalars, kernel->reduces.data[0].rhs)->dtype;
}

/* The dtype of the lhs, which may be another 8-bit float than that of the rhs. */
static inline Dtype gemm_left_dtype(const Kernel *kernel) {
    return scalar_get(kernel->scalars, kernel->reduces.data[0].lhs)->dtype;
}

/* The operand before its rounding to tf32, which tensor cores do when they load it. */
static inline ScalarId gemm_unrounded(const Kernel *kernel, ScalarId operand) {
    const Scalar *s = scalar_get(kernel->scalars, operand);
    return s->kind == SCALAR_PRIM && s->prim == PRIM_TF32 ? s->args[0] : operand;
}

/* GPU FORM_COLUMN: bytes of shared memory that the chains take. `shares_smem`: whether all
 * reductions use the same bytes one after the other, since there are several stages or many
 * accumulators. */
uint32_t kernel_column_shared(const Kernel *kernel, const Sched *sched, bool *shares_smem);
/* The passes of a variant of GEMM_GEMV. */
GemvPasses kernel_gemv_passes(const Kernel *kernel, const Variant *variant);
/* Whether the lanes lie along the reduced axis and are joined at the end of a row. */
bool kernel_lanes_reduce(const Kernel *kernel, const Sched *sched);
/* The axis that a variant's lanes go along, unless a GEMM chooses another axis; or NO_AXIS. */
uint32_t kernel_lane_axis(const Kernel *kernel, const Sched *sched);
/* The schedule of the kernel as text: all numbers that its template reads, so equal texts are equal
 * schedules (launch/dedup.h). */
void sched_print(const Kernel *kernel, const Sched *sched, Text *out);
/* All axes (bit set) that the lanes go along. */
uint32_t kernel_lane_axes(const Kernel *kernel, const Sched *sched);
/* CPU: whether rows are so short that the kernel ends the reductions of several rows together: as
 * many rows as there are lanes, of PLAN_GROUP_ELEMS elements at most, so that what they load,
 * keep and store stays in the nearest cache. */
bool kernel_has_groups(const Kernel *kernel, const Variant *variant);
/* CPU: how many vectors of `lanes` a row has, if that number is known, at most `most`, and so small
 * that the row needs no loop; else 0. */
uint32_t kernel_row_steps(Arena *arena, const Kernel *kernel, uint32_t lanes, uint32_t most);
enum { KERNEL_MOST_ROW_STEPS = 8, KERNEL_MOST_COLUMN_ROWS = 64 }; /* judged */
/* Reduction `i` of a stage. */
static inline const Reduce *stage_reduce(const Kernel *kernel, const Stage *stage, uint32_t i) {
    return &kernel->reduces.data[stage->reduces.data[i]];
}
/* The extent of one axis. */
DimId kernel_axis_extent(const Kernel *kernel, uint32_t axis);
/* The products of the extents of the parallel axes (without segments) and of the reduced axes. */
DimId kernel_n_rows(const Kernel *kernel);
/* The product of the parallel extents before m. */
DimId gemm_n_batches(const Kernel *kernel);
DimId kernel_n_reduced(const Kernel *kernel);
/* Bit set of the parallel axes. */
static inline uint32_t kernel_parallel_axes(const Kernel *kernel) {
    return (1u << kernel->n_parallel) - 1;
}
/* Per scalar: whether the kernel's reductions and stores need it, as an argument, in an index or in
 * a guard. kernel_needed_scalars: whether the roots need it or it is a root. */
bool *kernel_live_scalars(Arena *arena, const Kernel *kernel);
bool *kernel_needed_scalars(Arena *arena, const Kernel *kernel, const ScalarId *roots,
                            uint32_t n_roots);
/* Per scalar: whether a reduction of the kernel is computed from it. This includes a GEMM's
 * operands, which a block reads before all its stores. */
bool *kernel_reduced_scalars(Arena *arena, const Kernel *kernel);
/* Per scalar: whether a stage needs it (stage number Kernel.stages.n: the row's stores), to compute
 * it or to load it from the row cache. A stage that loads a cached value does not need the value's
 * arguments. */
bool *stage_live_scalars(Arena *arena, const Kernel *kernel, RowCache row_cache, uint32_t stage);
/* Whether a stage before `stage` keeps the value in the row cache. */
bool row_cache_has(RowCache row_cache, ScalarId value, uint32_t stage);
/* The most elements of a row at sizes for which the variant applies. */
int64_t variant_row_elems(const Kernel *kernel, const Variant *variant);
/* Per scalar: the number of the stage's stores and reductions that need it, and the guard of the
 * last store that does. If a single store needs a value, the value is needed only inside the
 * guard. */
typedef struct ScalarNeed {
    uint32_t n;
    GuardId guard;
} ScalarNeed;
ScalarNeed *stage_needs(Arena *arena, const Kernel *kernel, const Stage *stage);
#define NO_ARG UINT32_MAX
/* The index of the buffer among the kernel's arguments; NO_ARG if the kernel does not access it. */
uint32_t kernel_find_arg(const Kernel *kernel, uint32_t buffer);
bool kernel_stores_to(const Kernel *kernel, uint32_t buffer);
/* Whether the buffer is an argument that the kernel does not store to. */
bool kernel_only_reads(const Kernel *kernel, uint32_t buffer);
/* Sets args and symbols to what the kernel's programs use. */
void kernel_note_interface(Arena *arena, Kernel *kernel);
/* Whether a stage stores a value per element, not per row. */
bool kernel_stores_inner(const Kernel *kernel);
/* Whether it replaces a part of a value in memory. */
bool kernel_updates(const Kernel *kernel);
/* The kernel's first store to the buffer, or NULL. */
const Store *kernel_find_store(const Kernel *kernel, uint32_t buffer);
/* Elements of the buffer before the kernel's pointer to it; DIM_NONE: none. */
DimId kernel_arg_begin(const Kernel *kernel, uint32_t arg);
/* Elements of the buffer before the launch's pointer to an argument that is a part of it and that
 * the kernel only reads; DIM_NONE: none. */
static inline DimId kernel_part_begin(const Kernel *kernel, uint32_t arg) {
    return kernel->parts ? kernel->parts->begins[arg] : DIM_NONE;
}
/* The number of constants that the launch gives the kernel. */
static inline uint32_t kernel_n_given(const Kernel *kernel) {
    return kernel->parts ? kernel->parts->constants.n : 0;
}
/* Elements from the launch's pointer to where the map begins. */
DimId kernel_map_offset(const Kernel *kernel, const TensorMap *map);
/* Calls visit for every store of the kernel, in order. */
typedef void (*StoreVisitor)(void *user, const Store *store);
void kernel_each_store(const Kernel *kernel, StoreVisitor visit, void *user);
/* Whether the kernel is an alternative: it starts in runs in which the default kernel does not. */
static inline bool kernel_is_alternative(const Kernel *kernel) {
    return kernel->choice && kernel->version == VERSION_ALTERNATIVE;
}
/* Whether the kernel is the default of a choice, so that other kernels replace it in some runs. */
static inline bool kernel_has_alternative(const Kernel *kernel) {
    return kernel->choice && kernel->version == VERSION_DEFAULT;
}
/* The dim of which the kernel's grids are multiples; DIM_NONE without a choice. */
static inline DimId kernel_factor(const Kernel *kernel) {
    return kernel->choice ? kernel->choice->factors[kernel->version] : DIM_NONE;
}

#endif
