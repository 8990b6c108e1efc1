/* Kernels: loop axes, and stages that reduce and store over them. Scalar programs say what a kernel
 * computes per element; variants (plan/variant.h) say how. */
#ifndef FUSEC_PLAN_KERNEL_H
#define FUSEC_PLAN_KERNEL_H

#include "ir/graph.h"
#include "ir/scalar.h"
#include "plan/choice.h"
#include "plan/variant.h"

#include <assert.h>

/* One reduction over all reduced axes of its kernel. */
typedef struct Reduce {
    NodeId node;
    PrimId combine; /* ADD MUL MIN MAX */
    bool is_arg;    /* carries the index of the extreme too; the result is that index */
    Dtype acc;      /* compute type of the accumulator */
    double identity;
    union {
        ScalarId value; /* per element, of type acc */
        ScalarId lhs;   /* of a GEMM, in its dtype */
    };
    ScalarId rhs;        /* of a GEMM, in its dtype; else SCALAR_NONE */
    Precision precision; /* of a GEMM; by tf32 each operand is a PRIM_TF32 or was stored as one */
    ScalarId arg_index;  /* is_arg: i32, the index that goes with the element */
    /* SCALAR_STAGE stands for the result: the accumulator, divided by `divisor` unless that is
     * DIM_NONE, converted to `result`. A partial's result is the raw accumulator. */
    DimId divisor;
    Dtype result;
} Reduce;

typedef struct Store {
    uint32_t buffer;
    IndexId address; /* element */
    ScalarId value;  /* of the buffer's dtype */
    NodeId node;     /* whose value it stores */
    uint32_t piece;  /* of the concat that the buffer holds, plus 1; 0: it holds `node` itself */
    uint32_t trace;  /* of `value` in Kernel.traces, plus 1; 0: it has none */
    /* The kernel's pointer to the buffer is so many elements behind the buffer's first, and
     * `address` counts from there; DIM_NONE: it points to the first. */
    DimId begin;
    GuardId guard; /* it holds at one place of the loops for each element of `node` */
} Store;

/* A value of the graph as a kernel has it: `value` is the node's element at `coords`, one index per
 * axis of the node, wherever `guard` holds. Only probes (verify/probe.h) read it. */
typedef struct Trace {
    NodeId node;
    ScalarId value; /* of the node's dtype */
    GuardId guard;
    const IndexId *coords;
    bool is_loaded;         /* the kernel reads it from memory and does not compute it */
    Vec(uint32_t) operands; /* the traces that it is computed from; they come before it */
} Trace;

/* One pass over the full domain (parallel and reduced axes): its reductions and stores depend only
 * on reductions of earlier stages. */
typedef struct Stage {
    Vec(uint32_t) reduces; /* slots */
    Vec(Store) stores;
} Stage;

#define NO_AXIS UINT32_MAX

struct Kernel {
    Str name;
    Span span;
    bool is_init; /* an init step runs once for a program, and again when a param changes */
    KernelForm form;
    uint32_t n_parallel;               /* axes [0, n_parallel) of the index table */
    uint32_t first_reduced, n_reduced; /* axes [first_reduced, first_reduced + n_reduced) */
    /* A partial reduces one segment of the reduced elements per row and stores the raw
     * accumulators. Its rows run over the parallel axes and, innermost (FORM_ROW) or outermost
     * (FORM_COLUMN), over this axis of segments. A GEMM has the axis among its parallel axes,
     * before m. NO_AXIS: the kernel is no partial. */
    uint32_t segment_axis;
    /* FORM_GEMM, CPU: the operand whose elements lie side by side in the register tile is loaded
     * from panels of so many columns. Element (k, c) of panel p lies at (p * depth + k) *
     * panel_columns + c; columns past the last hold zeros. 0: the operand is not in panels. */
    uint32_t panel_columns;
    ScalarTab *scalars;
    Vec(Reduce) reduces; /* slots */
    Vec(Stage) stages;
    Vec(Store) row_stores; /* once per parallel index, after all stages */
    Vec(uint32_t) args;    /* buffers, in argument order */
    Vec(NodeId) nodes;     /* ascending, whose values it computes, inlined or not; for explain and
                            * dumps. A kernel that only lays data out has none */
    Vec(Trace) traces;     /* kernels that one kernel was split into share the array */
    uint64_t symbols;      /* dims that are passed to it: bit set of dim symbols */
    Variant *variants;     /* at most MAX_VARIANTS; a copy of the kernel shares them */
    uint32_t n_variants;
    uint32_t code; /* kernels of equal numbers differ in their buffers alone (launch/dedup.h) */
    /* The kernel starts in runs that take its version of the choice; NULL: in every run. */
    const Choice *choice;
    Version version;
};

static_assert(sizeof(Kernel) <= 512, "kernels are copied to try launches");

/* A copy that has variants of its own; it shares the rest. */
Kernel kernel_copy(Arena *arena, const Kernel *kernel);
/* Gives the kernel a copy of these variants. */
void kernel_set_variants(Arena *arena, Kernel *kernel, const Variant *variants, uint32_t n);

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

/* The dtype that a GEMM multiplies its operands in. */
static inline Dtype gemm_operand_dtype(const Kernel *kernel) {
    return scalar_get(kernel->scalars, kernel->reduces.data[0].lhs)->dtype;
}

/* A GEMM's operand before it is rounded to tf32, which tensor cores do on the way in. */
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
/* The axis that a variant's lanes go along, unless a GEMM chooses another axis; or NO_AXIS. */
uint32_t kernel_lane_axis(const Kernel *kernel, const Sched *sched);
/* The schedule of the kernel as text: the numbers that its template reads. Equal texts are equal
 * schedules. */
void sched_print(const Kernel *kernel, const Sched *sched, Text *out);
/* All axes (bit set) that the lanes go along. */
uint32_t kernel_lane_axes(const Kernel *kernel, const Sched *sched);
/* CPU: whether rows are so short that the kernel ends the reductions of several rows together: as
 * many rows as there are lanes, of KERNEL_GROUP_ELEMS elements at most, so that what they load,
 * keep and store stays in the nearest cache. */
enum { KERNEL_GROUP_ELEMS = 2048 };
bool kernel_has_groups(const Kernel *kernel, const Variant *variant);
/* CPU: how many vectors a row of a group has, if that number is known and so small that the row
 * needs no loop; else 0. */
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
/* Per scalar id: whether the kernel's reductions and stores need the scalar, as an argument, in an
 * index or in a guard; for kernel_needed_scalars, whether the roots need it, which count too. */
bool *kernel_live_scalars(Arena *arena, const Kernel *kernel);
bool *kernel_needed_scalars(Arena *arena, const Kernel *kernel, const ScalarId *roots,
                            uint32_t n_roots);
/* Per scalar id: whether the kernel's reductions are made of the scalar. A GEMM's operands are; a
 * block reads them ahead of all that it stores. */
bool *kernel_reduced_scalars(Arena *arena, const Kernel *kernel);
/* Per scalar id: whether a stage needs the scalar (stage number Kernel.stages.n: the row's stores),
 * to compute it or to find it kept by an earlier stage. For a kept value the stage does not need
 * the value's arguments. */
bool *stage_live_scalars(Arena *arena, const Kernel *kernel, RowCache row_cache, uint32_t stage);
/* Whether a stage before `stage` keeps the value. */
bool row_cache_has(RowCache row_cache, ScalarId value, uint32_t stage);
/* The most elements of a row at sizes where the variant applies. */
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
/* Whether the buffer is an argument that the kernel stores nothing to. */
bool kernel_only_reads(const Kernel *kernel, uint32_t buffer);
/* Fills args and symbols from what the kernel's programs touch. */
void kernel_note_interface(Arena *arena, Kernel *kernel);
/* Whether a stage stores a value per element, not per row. */
bool kernel_stores_inner(const Kernel *kernel);
/* The kernel's first store to the buffer, or NULL. */
const Store *kernel_find_store(const Kernel *kernel, uint32_t buffer);
/* Elements of the buffer before the kernel's pointer to it; DIM_NONE: none. */
DimId kernel_arg_begin(const Kernel *kernel, uint32_t arg);
/* Calls visit for every store of the kernel, in order. */
typedef void (*StoreVisitor)(void *user, const Store *store);
void kernel_each_store(const Kernel *kernel, StoreVisitor visit, void *user);
/* Whether the kernel starts in place of one before it, in runs where that does not start. */
static inline bool kernel_is_alternative(const Kernel *kernel) {
    return kernel->choice && kernel->version == VERSION_ALTERNATIVE;
}
/* Whether kernels behind this one start in its place in some runs. */
static inline bool kernel_has_alternative(const Kernel *kernel) {
    return kernel->choice && kernel->version == VERSION_DEFAULT;
}
/* The dim that the kernel's grids are multiples of; DIM_NONE: it has no choice. */
static inline DimId kernel_factor(const Kernel *kernel) {
    return kernel->choice ? kernel->choice->factors[kernel->version] : DIM_NONE;
}

#endif
