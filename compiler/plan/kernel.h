/* The plan: which kernels compute a graph, what each reads, reduces and stores, how it is scheduled
 * and where its buffers lie. Made by the passes, read by codegen. */
#ifndef FUSEC_PLAN_KERNEL_H
#define FUSEC_PLAN_KERNEL_H

#include "ir/graph.h"
#include "ir/scalar.h"
#include "machine/target.h"
#include "plan/im2col.h"

typedef enum {
    BUFFER_INPUT,
    BUFFER_PARAM,
    BUFFER_OUTPUT,
    BUFFER_TEMP,
    BUFFER_PREPARED /* made by init kernels from params; the program keeps it between runs */
} BufferKind;

/* A tensor in memory, row-major. */
typedef struct Buffer {
    BufferKind kind;
    uint32_t ordinal; /* among its kind, in the order of the graph's list (temps: of creation) */
    Dtype dtype;
    Shape shape;
    DimId pitch;         /* temps: elements from row to row along the last axis, where that is more
                          * than the axis has; else DIM_NONE */
    bool is_on_chip;     /* a temp in no memory: one launch makes and reads it, tile by tile, or as
                          * a whole where the launch is one block */
    NodeId node;         /* whose value it holds */
    Str name;            /* inputs, params, outputs: the user's; temps: t0, ..; prepared: p0, .. */
    DimId offset_bytes;  /* temps: place in the workspace, a multiple of WORKSPACE_ALIGN_BYTES */
    uint32_t takes_over; /* temps, plus 1: the temp in whose memory a kernel that reads it stores
                          * this one; 0: none */
    uint32_t stands_for; /* plus 1, of a copy: the buffer that is read in its place where the copy
                          * has no elements; 0: none is */
} Buffer;
enum { WORKSPACE_ALIGN_BYTES = 256 };

/* How far apart rows of `source` lie for those who read it or its copy, and how wide the copy is:
 * symbols with one rule (ir/dim.h). */
typedef struct DynamicPitch {
    uint32_t source;       /* buffer */
    uint32_t pitch, width; /* symbols */
} DynamicPitch;

/* One reduction over all reduced axes of its kernel. */
typedef struct Reduce {
    NodeId node;
    PrimId combine; /* ADD MUL MIN MAX */
    bool is_arg;    /* carries the index of the extreme too; the result is that index */
    Dtype acc;      /* compute type of the accumulator */
    double identity;
    ScalarId value;      /* per element, of type acc; of a GEMM the lhs, in its dtype */
    ScalarId factor;     /* of a GEMM the rhs, in its dtype; else SCALAR_NONE */
    Precision precision; /* of a GEMM: of tf32 both operands are PRIM_TF32, of
                          * something or stored so */
    ScalarId arg_index;  /* is_arg: i32, the index that goes with the element */
    /* The result that SCALAR_STAGE stands for: the accumulator, divided by `divisor` unless it is
     * DIM_NONE, converted to `result`. For a partial the raw accumulator. */
    DimId divisor;
    Dtype result;
} Reduce;

typedef struct Store {
    uint32_t buffer;
    IndexId address; /* element */
    ScalarId value;  /* of the buffer's dtype */
    NodeId node;     /* what is stored */
    uint32_t piece;  /* of the concat that the buffer holds, plus 1; 0: it holds `node` itself */
    uint32_t trace;  /* of `value` in Kernel.traces, plus 1; 0: none */
    /* Elements of the buffer before the kernel's pointer to it, from which `address` counts then;
     * DIM_NONE: none. */
    DimId begin;
    GuardId guard; /* where it is stored: for each element of `node` at one place of the loops */
} Store;

/* A value of the graph as a kernel has it: `value` is the node's element at `coords`, one index per
 * axis of the node, wherever `guard` holds. Nothing but taps (verify/probe.h) reads it. */
typedef struct Trace {
    NodeId node;
    ScalarId value; /* of the node's dtype */
    GuardId guard;
    const IndexId *coords;
    bool is_loaded;         /* read from memory, not computed */
    Vec(uint32_t) operands; /* traces it is made of; they come before it */
} Trace;

/* One pass over the full domain (parallel and reduced axes): reductions and stores that depend
 * only on reductions of earlier stages. */
typedef struct Stage {
    Vec(uint32_t) reduces; /* slots */
    Vec(Store) stores;
} Stage;

/* How reduced elements lie relative to the innermost axis of what is reduced. It fixes the order
 * of summation, with the extents. */
typedef enum {
    FORM_MAP,    /* nothing is reduced */
    FORM_ROW,    /* the innermost axis is reduced */
    FORM_COLUMN, /* it is not */
    FORM_GEMM    /* one matmul: parallel axes .., m, n, one reduced axis k; then stores over .., m,
                        n */
} KernelForm;

/* Order of summation, a function of form, device class and the number of elements alone. Element i
 * of a segment is added to chain i mod n_chains in ascending order, starting from the identity;
 * chains are joined by a balanced tree, lowest bit of the chain number first; when there are
 * several segments of segment_elems elements, they are reduced to partials, which are reduced in
 * turn by the same rule. A chain without elements holds the identity, which changes no bit. */
typedef struct ReduceOrder {
    uint32_t n_chains; /* a power of two */
    int64_t segment_elems;
} ReduceOrder;

ReduceOrder reduce_order(KernelForm form, DeviceClass device);

/* How a GEMM is computed. It fixes the order of summation: GEMM_FMA is one chain of
 * fused multiply-adds per element, ascending in k, on every device; GEMM_MMA is the tensor
 * core's, in ascending steps of its k (of f64 that is GEMM_FMA's chain); GEMM_NAIVE is
 * GEMM_FMA's chain without tiles, for a k of one and products too small for a tile; of
 * tensor cores' dtypes the same, the operands converted. GEMM_WGMMA is GEMM_MMA's order by
 * other instructions, so that variants of one kernel may differ in it. GEMM_GEMV is for one
 * row or column on a GPU: element k goes to chain k mod gemv_n_chains, every chain is fused
 * multiply-adds from +0, ascending in k, and all chains are joined by a balanced tree, lowest bit
 * of the chain number first. The choice rests on dtypes, the operands' own extents (not on how a
 * kernel's loops share them) and target alone. Of a matmul with segments (Attrs.segment_elems) each
 * has this order, and their accumulators are elements of a column (ReduceOrder). */
typedef enum { GEMM_FMA, GEMM_MMA, GEMM_NAIVE, GEMM_WGMMA, GEMM_GEMV } GemmEngine;
/* Of GEMM_GEMV, for an extent `k`: the power of two that holds what it can be, within a
 * bound. */
uint32_t gemv_n_chains(const DimTab *dims, DimId k);

/* Numbers only: what lowering reads beside the kernel itself. */
typedef struct Sched {
    uint32_t lanes;     /* consecutive elements per step along the lane axis: the last parallel
                         * axis, in FORM_ROW the last reduced one */
    bool is_flat;       /* GPU FORM_MAP: lanes go on from row to row (plan/flat.h) */
    uint32_t lanes_out; /* FORM_MAP: the lane axis is so many before the last, which is short (CPU)
                         * or is not the one along which results lie (GPU, in tiles) */
    /* GPU: FORM_MAP in tiles (plan/map_tile.h) of tile_m elements along axis_in by tile_n along the
     * lane axis: lanes_in elements of what lies along axis_in are loaded at a time. 0: it is not.
     */
    uint32_t lanes_in, axis_in;
    uint32_t unroll;          /* steps in flight; of a map on a GPU, and of GEMM_NAIVE: of a thread,
                               * `threads` steps apart, MAP_MAX_UNROLL at most */
    uint32_t threads;         /* GPU: per block. CPU: 1 */
    uint32_t threads_per_row; /* GPU FORM_ROW: threads per row; FORM_COLUMN: threads along columns,
                               * so that a block has threads / (8 * team) segments side by side */
    int64_t chunk_elems;      /* CPU: elements of the lane axis per work unit (map, column) */
    uint32_t resident; /* GPU FORM_ROW: steps of a row kept in registers over all stages; 0: none */
    uint32_t slots;    /* GPU FORM_ROW: accumulators per sum, a power of two; of more than one
                        * each has every so many-th step of a resident row, so that team * slots
                        * * lanes is n_chains or holds the row */
    bool is_wide;      /* indices need 64 bits */
    bool pairs_bf16;   /* GPU: which computes bf16 by itself, two lanes at a time, as it does f16 */
    uint32_t min_blocks; /* GPU: that the assembler must make room for on a processor, so that it
                          * does not spill for one more; 0: as it likes */
    /* FORM_GEMM */
    GemmEngine engine;
    uint32_t tile_m, tile_n, tile_k; /* elements of a block's (GPU) or unit's (CPU) tile */
    /* GPU: how the tile is split over warps; GEMM_WGMMA has four more that bring in the
     * operands. CPU: the register tile, in elements; vectors lie along n if warps_n is a multiple
     * of lanes, else along m. */
    uint32_t warps_m, warps_n;
    uint32_t stages; /* GPU: tiles of k in shared memory at once. CPU: 1 blocked, 0 streamed */
    /* GPU: blocks side by side in the grid, which is a multiple of it, that see each other's shared
     * memory; 0 or 1: none. GEMM_WGMMA: one below the other, they fetch their common tile of
     * the rhs together. GEMM_GEMV: they share the chains of one tile. FORM_ROW: each
     * has a segment of one row, resident; there are no more segments than blocks. */
    uint32_t cluster;
    /* GEMM_WGMMA: the phases of the launch, whose tiles a block multiplies at once. They have
     * the lhs in common; 0 or 1: the kernel is alone. */
    uint32_t products;
    /* GEMM_WGMMA: columns of the last tile of each row of tiles, which is narrower and has a
     * map of its own for the rhs, the third; 0: it is as wide as the others. Blocks that
     * have a wide tile less take these, after the wide ones. */
    uint32_t tail_n;
    /* GEMM_WGMMA: warps that store a tile's results while the next tile is multiplied; 0: the
     * warps that multiply store theirs. */
    uint32_t store_warps;
    /* GEMM_GEMV: `team` threads along k, each with `slots` accumulators of `lanes` chains
     * (lanes along k) or of `lanes` outputs (lanes along the outputs) at a time; the outputs of a
     * block are tile_m (then tile_n is 1) or tile_n. */
    bool lanes_along_k;
} Sched;

enum { MAP_MAX_UNROLL = 4 };
/* GEMM_NAIVE: a known k of up to so many steps is written out, all loads first. */
enum { NAIVE_MAX_WRITTEN = 16 };

/* GEMM_GEMV goes over k in passes, each with a group of chains that a block's threads hold at
 * once. */
typedef struct GemvPasses {
    uint32_t n_groups, n_passes; /* of all chains, of a block's own */
    /* Lanes along the outputs: rounds of loads of a pass that needs no loop, so that a round, and
     * the next pass's first, is on its way while the one before is used; 0: it has a loop. They
     * need a known k and few loads, since a grid of so many blocks takes the registers. */
    uint32_t n_rounds;
    uint32_t n_kept;  /* passes whose sums lie in shared memory before they are joined */
    uint32_t n_parts; /* of an output there, for each pass */
} GemvPasses;
enum { GEMV_PROCESSORS = 132 }; /* of the cards that rounds are counted for */

enum {
    MAX_MAPS = 3,
    MAX_MAP_RANK = 5,
    MAX_LAUNCH_MAPS = 16,
    MAP_STEP_BYTES = 16 /* what addresses and strides of a map are multiples of */
};

/* How the copy engine of a GPU sees an argument: as axes of the kernel, each with its stride and
 * the length of the box that is copied at once (elements), the contiguous axis first. It fills with
 * zeros what a box has outside. Kernels get it as a parameter of 128 bytes; the runtime makes it,
 * and passes over the variant where pointers or strides are none that it can describe. */
typedef struct MapAxis {
    uint32_t axis; /* of the kernel */
    DimId stride;
    uint32_t box;
} MapAxis;
typedef struct TensorMap {
    uint32_t arg; /* of Kernel.args */
    /* Of a lhs that is windows over an image: the first axis is k, whose box is taken of
     * each of as many pixels as the box of the last one, m, has, row by row. NULL: of no such. */
    const Im2col *im2col;
    uint32_t swizzle_bytes;
    bool is_tf32; /* the copy engine rounds elements of f32 to tf32 on their way */
    DimId offset; /* elements */
    uint32_t rank;
    MapAxis axes[MAX_MAP_RANK];
} TensorMap;

/* CPU, FORM_ROW: a value of each element of a row that several stages need. One computes it and
 * keeps it on the stack, the others find it there. */
typedef struct CachedValue {
    ScalarId value;
    uint32_t stage; /* that computes it: the first that needs it */
    uint32_t slot;  /* an array over the row; values that lie there one after the other share it */
} CachedValue;
typedef struct RowCache {
    const CachedValue *data;
    uint32_t n;
} RowCache;
enum { MAX_CACHED_VALUES = 32 };

/* What a variant costs beside others: the time of a block, `fixed` and each measure times its
 * weight. So many percent of it go with the number of blocks, the rest with the waves that they run
 * in. Of one group the cheapest that applies is taken; its variants stand in a row, and have the
 * same measures. */
enum { MAX_MEASURES = 3 };
typedef struct Price {
    uint32_t group; /* from 1; 0: it has no price */
    DimId blocks;
    int64_t per_wave, percent;
    int64_t fixed, weights[MAX_MEASURES];
    DimId measures[MAX_MEASURES];
    uint32_t n_measures;
} Price;

/* A lowering of a kernel that applies when its conditions hold; the last always does. */
typedef struct Variant {
    Str symbol;     /* of the function in the artifact */
    bool is_shared; /* the function is another kernel's, which is structurally the same */
    Sched sched;
    DimId grid;            /* blocks (GPU) or work units (CPU) */
    bool is_resident;      /* GPU: no more blocks than processors, which share the grid's */
    uint32_t shared_bytes; /* GPU: of dynamic shared memory */
    TensorMap maps[MAX_MAPS];
    uint32_t n_maps;
    /* Pointers of the arguments in align_args are multiples of align_bytes; 1: any pointer. */
    uint32_t align_bytes;
    uint64_t align_args; /* bit set over Kernel.args */
    DimId multiple_dim;  /* a dim that must be a multiple of multiple_of, or DIM_NONE */
    int64_t multiple_of;
    DimId other_dim; /* another that must be a multiple of other_of, or DIM_NONE */
    int64_t other_of;
    DimId limit_dim; /* a dim that must be at least `least` and at most `limit`, or DIM_NONE */
    int64_t least, limit;
    Price price;
    uint32_t smem_bytes; /* GPU: of dynamic shared memory, for what the launch keeps on chip */
    RowCache row_cache;
} Variant;

enum { SMEM_ALIGN_BYTES = 16, SMEM_LANES = 4, MAX_CLUSTER = 8 };
enum { SMEM_ACCESS_BYTES = SMEM_LANES * 8 }; /* the most that lanes read of one buffer there */
enum { MAX_VARIANTS = 24, MAX_KERNEL_ARGS = 60 };
/* GPU: tiles of a GEMM are taken down so many rows of them, then to the next column. */
enum { GEMM_GROUP_ROWS = 8 };

#define NO_AXIS UINT32_MAX

/* How a kernel starts. A part runs beside the kernel before it, in blocks of its own; parts have
 * the form, the engine and the block size in common, and those of one code come one after the
 * other. A variant of the launch is that of all its parts, and applies where every part's
 * conditions hold. A phase follows the kernel before it in the same blocks, each on the tile or the
 * rows that the block has just made; its variants go with those of the kernel that opened the
 * launch, one by one. A turn follows the kernel before it too, but in the only block of the launch,
 * which does all of each kernel, the blocks of its grid one after the other. Kernels of a
 * gemm-rows-gemm launch (plan/gemm_rows_gemm.h) share blocks too, and what passes between them is
 * in registers, a tile at a time.
 */
typedef enum {
    LAUNCH_SINGLE,
    LAUNCH_PARALLEL,
    LAUNCH_SEQUENCE,
    LAUNCH_ONE_BLOCK,
    LAUNCH_GEMM_ROWS_GEMM
} LaunchMode;

/* The n kernels behind a kernel over rows that stand for it where these are few and long: where
 * margin >= least, unless a cluster has a block for each part of them, which it has up to a length
 * of `clustered` where the innermost extent is a multiple of `lanes`. 0 of them: none do. */
typedef struct RowDispatch {
    uint32_t n;
    DimId margin, length, inner;
    int64_t least, clustered, lanes; /* clustered: 0, no cluster has */
} RowDispatch;

/* The rows of a gemm-rows-gemm launch, rewritten to one pass (launch/online_softmax.h). What they
 * store is weight / total, where the weight is power(something less the shift), so that weights by
 * another shift are these times a power; and what is multiplied by them can be divided by the total
 * in the end. */
typedef struct OnlineSoftmax {
    ScalarId weight;       /* f32, per element; SCALAR_NONE: they are not */
    PrimId power;          /* power(a + b) is power(a) power(b) */
    uint32_t shift, total; /* slots: the greatest of what is below the power, the sum of weights */
    bool is_limited;       /* row m has weights but 0 only for columns below m + 1 + ahead */
    DimId ahead;
} OnlineSoftmax;
#define ONLINE_NAME "online-weights"

typedef struct Kernel {
    Str name;
    Span span;
    bool is_init; /* an init step: runs once for a program, and again when a param changes */
    KernelForm form;
    uint32_t n_parallel;               /* axes [0, n_parallel) of the index table */
    uint32_t first_reduced, n_reduced; /* axes [first_reduced, first_reduced + n_reduced) */
    /* A partial reduces one segment of the reduced elements per row and stores the raw
     * accumulators: its rows run over the parallel axes and, innermost (FORM_ROW) or outermost
     * (FORM_COLUMN), this axis of segments. Of a GEMM it is one of the parallel axes, the
     * one before m. NO_AXIS when it is no partial. */
    uint32_t segment_axis;
    /* FORM_GEMM, CPU: the operand whose elements lie side by side in the register tile is a load
     * from panels of this many: element (k, c) of panel p at (p * depth + k) * panel_columns + c,
     * zeros where there is no column. 0: it is not. */
    uint32_t panel_columns;
    ScalarTab *scalars;
    Vec(Reduce) reduces; /* slots */
    Vec(Stage) stages;
    Vec(Store) row_stores; /* once per parallel index, after all stages */
    Vec(uint32_t) args;    /* buffers, in argument order */
    Vec(NodeId) nodes;     /* what it computes, inlined or not, ascending; for explain and dumps.
                            * None for a layout's: it computes nothing new */
    Vec(Trace) traces;     /* the values it has; kernels that one was split into share the array */
    uint64_t symbols;      /* dims passed: bit set of dim symbols */
    Variant variants[MAX_VARIANTS];
    uint32_t n_variants;
    uint32_t code; /* equal numbers: the same but for the buffers (launch/dedup.h) */
    /* 1 where the kernel starts, 0 where it does not; DIM_NONE: it always starts. Its grids are
     * multiples of it. The kernels that stand for one where it does not start follow it. */
    DimId when;
    RowDispatch spread;
    LaunchMode link;
    OnlineSoftmax online_softmax;
    /* Of a launch of turns: arguments (bit set) that it copies to shared memory when it begins. */
    uint64_t copied_args;
} Kernel;

/* One edge of the graph and what fusion made of it. */
typedef enum { EDGE_FUSED, EDGE_STORED } EdgeVerdict;

typedef enum {
    REASON_NONE,
#define REASON(sym, id, text, step, advice) REASON_##sym,
#include "plan/reasons.def"
    REASON_COUNT
} ReasonId;

typedef struct ReasonInfo {
    const char *id;
    const char *text;
    const char *step;   /* a sentence, {} for values: what the source can say to flip the verdict */
    const char *advice; /* a sentence: which ops, extents or options would flip it */
} ReasonInfo;
const ReasonInfo *reason_info(ReasonId id);

typedef struct Edge {
    NodeId producer, consumer; /* NODE_NONE consumer: an output */
    uint32_t output;           /* which of the graph's that is */
    EdgeVerdict verdict;
    ReasonId reason;
} Edge;

/* What a change would make something take, and what it takes now, in microseconds, at values of the
 * dims (by symbol). */
typedef struct ChangePrice {
    const int64_t *dims;
    double then_us, now_us;
} ChangePrice;
typedef Vec(ChangePrice) VecChangePrice;

/* Two launches of which neither waits for the other, by a kernel of each, and why they are not one.
 */
typedef struct Apart {
    Str kernel, other;              /* names; `other` is before it */
    NodeId kernel_node, other_node; /* a value of each; NODE_NONE where it computes none */
    ReasonId reason;
    VecChangePrice prices; /* as one launch; where that decides: at every point that was asked */
} Apart;

typedef struct Plan {
    const Graph *graph;
    Vec(Buffer) buffers;
    Vec(Kernel) kernels; /* in launch order, init kernels first */
    Vec(Edge) edges;
    Vec(DynamicPitch) dynamic_pitches;
    Vec(Apart) aparts;
    bool has_ties;             /* values that rows or columns could have been made with */
    bool may_rewrite;          /* arithmetic may be changed, within a bound */
    VecDim workspace;          /* bytes: the largest of these, 0 of none */
    DimId peak_bytes_unshared; /* what temps would take without reuse; DIM_NONE: no dim says */
} Plan;

/* The axes of a GEMM: parallel .., m, n and reduced k. */
static inline uint32_t gemm_axis_m(const Kernel *kernel) {
    return kernel->n_parallel - 2;
}
static inline uint32_t gemm_axis_n(const Kernel *kernel) {
    return kernel->n_parallel - 1;
}
static inline uint32_t gemm_axis_k(const Kernel *kernel) {
    return kernel->first_reduced;
}

/* What a GEMM's operands are multiplied as. */
static inline Dtype gemm_operand_dtype(const Kernel *kernel) {
    return scalar_get(kernel->scalars, kernel->reduces.data[0].value)->dtype;
}

/* A GEMM's operand before it is rounded to tf32, which tensor cores do on the way in. */
static inline ScalarId gemm_unrounded(const Kernel *kernel, ScalarId factor) {
    const Scalar *s = scalar_get(kernel->scalars, factor);
    return s->kind == SCALAR_PRIM && s->prim == PRIM_TF32 ? s->args[0] : factor;
}

/* GPU FORM_COLUMN: bytes of shared memory that the chains take, and whether all reductions use one
 * place there in turn, since there are several stages or much to keep. */
uint32_t kernel_column_shared(const Kernel *kernel, const Sched *sched, bool *take_turns);
/* Of a variant of GEMM_GEMV. */
GemvPasses kernel_gemv_passes(const Kernel *kernel, const Variant *variant);
/* The axis that lanes of a variant go along, where a GEMM does not choose another; or
 * NO_AXIS. */
uint32_t kernel_lane_axis(const Kernel *kernel, const Sched *sched);
/* All axes (bit set) that lanes of such a variant go along. */
uint32_t kernel_lane_axes(const Kernel *kernel, const Sched *sched);
/* CPU: whether rows are so short that the ends of their reductions are worth taking together, in
 * groups of as many as there are lanes, of KERNEL_GROUP_ELEMS elements at most: what they read,
 * keep and store stays in the nearest cache. */
enum { KERNEL_GROUP_ELEMS = 2048 };
bool kernel_has_groups(const Kernel *kernel, const Variant *variant);
/* CPU: how many vectors a row of a group takes that is of known length and few of them, so that it
 * needs no loop. 0: it has one. */
uint32_t kernel_row_steps(Arena *arena, const Kernel *kernel, uint32_t lanes);
/* Reduction `i` of a stage. */
static inline const Reduce *stage_reduce(const Kernel *kernel, const Stage *stage, uint32_t i) {
    return &kernel->reduces.data[stage->reduces.data[i]];
}
/* Extent of one axis. */
DimId kernel_axis_extent(const Kernel *kernel, uint32_t axis);
/* Products of the extents of the parallel axes (without segments) and of the reduced axes. */
DimId kernel_n_rows(const Kernel *kernel);
DimId kernel_n_reduced(const Kernel *kernel);
/* Bit set. */
static inline uint32_t kernel_parallel_axes(const Kernel *kernel) {
    return (1u << kernel->n_parallel) - 1;
}
/* Per scalar id: whether the kernel's reductions and stores need it, as arguments or in places and
 * guards; or the roots, which count too. */
bool *kernel_live_scalars(Arena *arena, const Kernel *kernel);
bool *kernel_needed_scalars(Arena *arena, const Kernel *kernel, const ScalarId *roots,
                            uint32_t n_roots);
/* Per scalar id: whether the kernel's reductions are of it; a GEMM's operands are, which a
 * block reads ahead for all its tiles. */
bool *kernel_reduced_scalars(Arena *arena, const Kernel *kernel);
/* What one stage needs (the number of stages: the row's stores): what it computes, or finds kept by
 * a stage before. What is kept is made of, it does not need for that. */
bool *stage_live_scalars(Arena *arena, const Kernel *kernel, RowCache row_cache, uint32_t stage);
/* Whether the value is kept by a stage before `stage`. */
bool row_cache_has(RowCache row_cache, ScalarId value, uint32_t stage);
/* Elements of a row at most where the variant applies. */
int64_t variant_row_elems(const Kernel *kernel, const Variant *variant);
/* Per scalar id: how many of a stage's stores and reductions need it, and the guard of the last
 * store that does. One store alone needs its value only inside the guard. */
typedef struct ScalarNeed {
    uint32_t n;
    GuardId guard;
} ScalarNeed;
ScalarNeed *stage_needs(Arena *arena, const Kernel *kernel, const Stage *stage);
#define NO_ARG UINT32_MAX
/* Where the buffer is among the kernel's arguments; NO_ARG when the kernel does not touch it. */
uint32_t kernel_find_arg(const Kernel *kernel, uint32_t buffer);
bool kernel_stores_to(const Kernel *kernel, uint32_t buffer);
/* Arguments (bit set) whose elements it reads once each: one load, at as many places as there are
 * elements. */
uint64_t kernel_args_read_once(const Plan *plan, const Kernel *kernel);
/* Whether the buffer is an argument that the kernel stores nothing to. */
bool kernel_only_reads(const Kernel *kernel, uint32_t buffer);
/* Fills args and symbols from what the kernel's programs touch. */
void kernel_note_interface(Arena *arena, Kernel *kernel);
/* Whether a pass stores values of elements, not of rows. */
bool kernel_stores_inner(const Kernel *kernel);
/* The kernel's first store to the buffer, or NULL. */
const Store *kernel_find_store(const Kernel *kernel, uint32_t buffer);
/* Elements of the buffer before the kernel's pointer to it; DIM_NONE: none. */
DimId kernel_arg_begin(const Kernel *kernel, uint32_t arg);
/* The arguments (bit set) whose pointers a variant puts a condition on: bound ones. */
uint64_t variant_pointer_conditions(const Plan *plan, const Kernel *kernel, const Variant *variant);
/* False: it applies always, and none that follows it is of use. */
bool variant_has_conditions(const Plan *plan, const Kernel *kernel, const Variant *variant);
/* The arguments (bit set) in memory of the runtime's own, params among them, whose addresses are
 * multiples of WORKSPACE_ALIGN_BYTES. Not those that others may stand for. */
uint64_t kernel_own_args(const Plan *plan, const Kernel *kernel);
/* The shape that it fills in memory: rows as long as they are apart. */
Shape buffer_layout(const Buffer *buffer);
/* Bytes of a buffer as a dim, those between its rows included. */
DimId buffer_bytes(DimTab *dims, const Buffer *buffer);
/* Those that the kernel may touch of one of its arguments: all of them, or the rows that it gathers
 * or the part that it reads where that is less at any size, or the pieces that it stores. */
DimId kernel_buffer_bytes(const Plan *plan, const Kernel *kernel, uint32_t buffer);
/* Memory traffic of a kernel, each buffer counted once per kernel, as a dim: what it reads plus
 * what it writes. */
DimId kernel_bytes(const Plan *plan, const Kernel *kernel);
/* The node whose value, or a piece of it, the store puts into memory. */
NodeId store_holds(const Plan *plan, const Store *store);
/* Calls visit for every store of the kernel, in order. */
typedef void (*StoreVisitor)(void *user, const Store *store);
void kernel_each_store(const Kernel *kernel, StoreVisitor visit, void *user);
uint32_t plan_n_buffers(const Plan *plan, BufferKind kind);
/* Appends it as the last of its kind. Returns its place in the plan. */
uint32_t plan_add_buffer(Arena *arena, Plan *plan, Buffer buffer);
uint32_t plan_add_temp(Arena *arena, Plan *plan, NodeId node, Dtype dtype, Shape shape);
/* How many of the plan's kernels are init kernels: those before this one. */
uint32_t plan_n_init(const Plan *plan);
/* Puts init kernels first, otherwise in the order in which they are, and numbers temps and prepared
 * buffers anew. */
void plan_order_init(Arena *arena, Plan *plan);
/* Whether it has something to do at values of the dims, by symbol: others may stand for it, or what
 * it copies is read as it is. */
bool kernel_starts(const Plan *plan, const Kernel *kernel, const int64_t *dims);
/* Whether it stands for one before it where that does not start. */
static inline bool kernel_is_fallback(const Kernel *kernel) {
    return kernel->when != DIM_NONE && kernel->spread.n == 0;
}
/* Whether the kernel only lays an operand of matmuls out anew, in an init step or, where that pays,
 * in a run: it has no nodes, and the node of its buffer is a matmul's. */
bool kernel_lays_out(const Plan *plan, const Kernel *kernel);
/* The operand of the GEMM `kernel` that is read from this laid-out buffer, or NODE_NONE. */
NodeId kernel_operand_in(const Plan *plan, const Kernel *kernel, uint32_t buffer);
/* What the layout's kernel lays out: an operand of the first matmul that reads it. */
NodeId plan_laid_out(const Plan *plan, const Kernel *layout);
/* What init kernels write, in bytes. */
DimId plan_prepared_bytes(const Plan *plan);

/* Proves that every kernel reads only what is bound or was written before it, that everything is
 * written once (a concat perhaps in pieces; again by kernels that stand for others) and in its
 * dtype, that stages hold every slot once, and that init kernels come first, read nothing but
 * params and what init kernels made, need no dim but those that params fix, and alone write what is
 * prepared. NULL, or what is wrong. */
const char *plan_verify(const Plan *plan, Arena *arena);
/* Proves of a placed plan that temps in one place do not live at the same time, but for one that
 * takes the place of another whose every element only the same element of the new one is made of.
 * NULL, or what is wrong. */
const char *plan_verify_places(const Plan *plan, Arena *arena);

/* `, in the blocks of the one before`: what is said of a kernel behind its name. */
const char *launch_mode_text(LaunchMode link);
/* `kernel softmax ... stage 1: r0 = max(...)`: the schedule and scalar programs, for --emit=sched.
 */
void plan_print(const Plan *plan, Text *out);

#endif
