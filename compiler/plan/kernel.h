/* Kernels: loop axes, and stages that reduce and store over them. Scalar programs say what is
 * computed per element; versions (plan/choice.h) say how. */
#ifndef FUSEC_PLAN_KERNEL_H
#define FUSEC_PLAN_KERNEL_H

#include "ir/graph.h"
#include "ir/scalar.h"
#include "plan/choice.h"

#include <assert.h>

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

#define NO_AXIS UINT32_MAX

struct Kernel {
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
    Variant *variants;     /* at most MAX_VARIANTS; a copy of the kernel shares them */
    uint32_t n_variants;
    uint32_t code; /* equal numbers: the same but for the buffers (launch/dedup.h) */
    /* 1 where the kernel starts, 0 where it does not; DIM_NONE: it always starts. Its grids are
     * multiples of it. It is what the condition of a choice says, or 1 less that. */
    DimId when;
    Choice choice;
};

static_assert(sizeof(Kernel) <= 512, "kernels are copied to try launches");

/* A kernel that has variants of its own; the rest it shares. */
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
/* What the schedule of the kernel is, as text: the numbers that its template reads. Equal texts are
 * equal schedules. */
void sched_print(const Kernel *kernel, const Sched *sched, Text *out);
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
/* Calls visit for every store of the kernel, in order. */
typedef void (*StoreVisitor)(void *user, const Store *store);
void kernel_each_store(const Kernel *kernel, StoreVisitor visit, void *user);
/* Whether it stands for one before it where that does not start. */
static inline bool kernel_is_fallback(const Kernel *kernel) {
    return kernel->when != DIM_NONE && kernel->choice.n == 0;
}

#endif
