/* Inlining: turns a group of graph nodes into the scalar programs of one kernel, by pulling every
 * value through elementwise bodies and index maps down to loads.
 *
 * A group has a domain (a shape), reduced axes, reductions, and values to store. A value varies
 * over the whole domain ("inner") or over the domain without the reduced axes ("row"). Inlining
 * does not decide which nodes belong together; it finds out whether a group can be a kernel. */
#ifndef FUSEC_FUSE_INLINE_INLINE_H
#define FUSEC_FUSE_INLINE_INLINE_H

#include "fuse/grouping_flags.h"
#include "pipeline/decisions.h"
#include "plan/plan.h"

#define OUTPUT_NONE UINT32_MAX

/* A value to store: in output `output`; in the node's temporary if `output` is OUTPUT_NONE; or at
 * its place in the stored concat `whole`, as argument `piece` - 1. */
typedef struct StoreTarget {
    NodeId node;
    uint32_t output;
    NodeId whole;
    uint32_t piece; /* 0: no piece of a concat */
} StoreTarget;

typedef struct GroupTrial GroupTrial; /* fuse/group_memo.h */

typedef struct Group {
    Shape domain;
    uint32_t axes; /* bit set of the domain's reduced axes */
    /* For a GEMM slice (fuse/gemm_slice.h), per axis of the domain: the offset in the matmul; all
     * DIM_NONE for the whole matmul. */
    DimId begin[MAX_RANK];
    uint32_t gemm_slice; /* the slice node, plus 1; 0: the whole matmul */
    Vec(NodeId) reduces; /* ascending */
    Vec(StoreTarget) targets;
    /* Set by the last inlining: */
    Vec(NodeId) loads; /* nodes it loads */
    double prims;      /* cost of a CPU kernel's code in simple primitives; 0: unknown */
    bool has_passes;   /* its reductions or stores need more than one pass */
    bool has_inner;    /* it reduces, and stores inner values too */
    uint32_t fixed;    /* the `kernel` block of the source, plus 1; 0: none */
    bool is_closed;    /* no root may join */
    bool is_whole;     /* a map over a whole value of which it stores parts */
    /* The last trial, or NULL, and its distance: see FoundTrial. Its facts hold until the round
     * ends. */
    const GroupTrial *trial;
    NodeId distance;
    uint32_t last_refusal; /* of Grouping.refusals, plus 1; 0: none */
} Group;

/* Whether the group's reductions have a result at each point of the domain. */
static inline bool group_keeps_shape(const Graph *graph, const Group *group) {
    return group->reduces.n && graph_keeps_shape(graph, group->reduces.data[0]);
}

/* The form of the group's kernel. */
KernelForm group_form(const Graph *graph, const Group *group);

/* A copy without loads, which inlining sets. */
Group group_copy(Arena *arena, const Group *group);
/* Whether `group` is `first`, or `first` with more reductions and targets. */
bool group_continues(const Group *first, const Group *group);

typedef enum InlineMark {
    INLINE_LOADED,
    INLINE_VISITED,
    INLINE_ASKED /* a trial has asked for the node's facts */
} InlineMark;

/* Per node: what the current inlining knows. The marks are clear between inlinings, so that an
 * inlining costs time in its own size and not in the graph's. */
typedef struct InlineMarks {
    uint32_t *slot;  /* slot + 1 of the group's reductions */
    NodeFlags flags; /* of InlineMark */
    NodeId *touched; /* nodes with marks; the first n_sorted ascend */
    uint32_t n_touched, n_sorted;
    NodeId *visited; /* nodes with INLINE_VISITED, in the order in which they got it */
    uint32_t n_visited;
} InlineMarks;
InlineMarks inline_marks_new(Arena *arena, const Graph *graph);
void inline_mark(InlineMarks *marks, NodeId id, InlineMark mark);
/* Sorts the nodes with marks. */
void inline_sort_marks(InlineMarks *marks);
void inline_clear_marks(InlineMarks *marks);

#define GROUP_NONE UINT32_MAX

/* What a trial may ask about a node beside what the graph says: a bit set. */
typedef enum InlineFact {
    INLINE_IN_MEMORY = 1, /* it is in memory before the kernel runs */
    INLINE_MAY_REPEAT = 2 /* it may be recomputed all the same: DIRECTIVE_MUST_HOLD */
} InlineFact;

/* A node with its facts at the time when a trial asked. */
typedef struct NodeFacts {
    NodeId node;
    uint32_t facts; /* of InlineFact */
    uint32_t kind;  /* in a memo, as is the next one: see node_kinds.h */
    bool is_fixed;
} NodeFacts;
typedef Vec(NodeFacts) AskedFacts;

/* The inputs of inlining. */
typedef struct InlineInput {
    const Graph *graph;
    InlineMarks *marks;
    Arena *scratch; /* for the trial before the final pass; NULL for a trial only */
    /* Before this kernel runs, memory holds inputs, params and the stored values of other groups. A
     * reduction of the group itself is never loaded. */
    const uint32_t *group_of; /* per node: the group that computes it, or GROUP_NONE */
    uint32_t group;           /* the group that is inlined */
    /* Of GroupingFlag. During a trial all values of other groups count as stored. The final pass
     * adds GROUPING_DROPS_REST. */
    NodeFlags flags;
    const Decisions *decisions; /* may be NULL */
    /* Per node: the buffer to load it from; per target: the buffer to store to. NULL during a
     * trial: loads then name the node, and stores UINT32_MAX. */
    const uint32_t *buffer_of_node;
    const uint32_t *buffer_of_output;
    const Buffer *buffers;
    bool has_im2col, has_f8_mma, has_cores; /* see FuseOptions */
    bool has_traces;                        /* the kernel has traces; not during a trial */
    uint32_t max_scalars;
    AskedFacts *asked; /* receives the facts that a trial has asked for; may be NULL */
} InlineInput;

static inline bool inline_is_trial(const InlineInput *input) {
    return !input->buffer_of_node;
}

static inline uint32_t inline_facts(const InlineInput *input, NodeId id) {
    uint32_t made_by = input->group_of[id];
    bool is_stored = made_by != GROUP_NONE && made_by != input->group &&
                     (inline_is_trial(input) || node_has(input->flags, id, GROUPING_STORED));
    uint32_t facts = is_stored || graph_is_bound(input->graph, id) ? INLINE_IN_MEMORY : 0;
    if (decisions_ask(input->decisions, id, DIRECTIVE_MUST_HOLD)) facts |= INLINE_MAY_REPEAT;
    return facts;
}

/* Whether all nodes still have these facts. */
bool inline_facts_hold(const InlineInput *input, const AskedFacts *asked);

typedef struct InlineFailure {
    ReasonId reason;
    NodeId node; /* where it occurred */
} InlineFailure;

/* Inlines `group` into `kernel` (name, args, symbols and variants stay empty) and sets
 * group->loads, has_passes, has_inner and kernel->nodes. Returns false and sets `failure` if the
 * group cannot be a kernel. */
bool inline_group(Arena *arena, const InlineInput *input, Group *group, Kernel *kernel,
                  InlineFailure *failure);

/* Trials of groups that grow. A group whose reductions and targets continue those of the last trial
 * is inlined from there on, with the result that inlining from the start would have. */
typedef struct InlineTrial InlineTrial;
/* `trials` is another arena than `arena`. Trials of several graphs may share it: after one of them
 * has been used, each other one must be dropped before it is used again. */
InlineTrial *inline_trial_new(Arena *arena, Arena *trials, const Graph *graph);
/* The next group is inlined from the start: the flags of its nodes may have changed. */
void inline_trial_drop(InlineTrial *trial);
/* The facts that a trial asked for, and the nodes that it computes. */
typedef struct TrialNodes {
    NodeFacts *asked;
    NodeId *visited;
    uint32_t n_asked, n_visited;
    /* Whether it continues the trial before, which has the first so many of each. */
    bool continues;
    uint32_t n_asked_before, n_visited_before;
    uint32_t n_scalars; /* that it made */
} TrialNodes;

/* inline_group as a trial, with the marks of the trial in place of the input's. `kernel`, `nodes`
 * and the group's loads are valid until the next call. */
bool inline_try(InlineTrial *trial, const InlineInput *input, Group *group, const Kernel **kernel,
                TrialNodes *nodes, InlineFailure *failure);

/* Per scalar: the first stage that can compute it, one more than the stage of the last reduction
 * that it depends on, unless each point has its result. */
uint32_t *inline_scalar_stages(Arena *arena, const Kernel *kernel);
/* The same while the kernel is inlined: adds the scalars that `stage` does not have yet. A value of
 * a reduction then comes before its result. */
void inline_add_stages(Arena *arena, const Kernel *kernel, VecU32 *stage);
/* Assigns reductions and stores to the kernel's stages. `stage`: per scalar. `is_row`, per store:
 * the store runs after all stages, once per row. */
void inline_arrange_stages(Arena *arena, Kernel *kernel, const uint32_t *stage, const Store *stores,
                           const bool *is_row, uint32_t n_stores);

#endif
