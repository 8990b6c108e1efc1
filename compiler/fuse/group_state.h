/* The state of grouping, shared by its files and internal to them: group.c joins roots into groups,
 * group_merge.c moves groups, group_uncoalesced.c, group_limits.c and group_store.c decide
 * before and between rounds which values are stored in addition, group_apart.c what is stored when
 * the work is spent, group_gemm_slice.c finds matmuls to compute slice by slice. group_rounds.c has
 * the rounds. */
#ifndef FUSEC_FUSE_GROUP_STATE_H
#define FUSEC_FUSE_GROUP_STATE_H

#include "fuse/group.h"
#include "fuse/group_memo.h"

/* The latest groups whose results are read at or below a node's arguments, plus 1; 0 for none. */
typedef struct LastGroups {
    uint32_t any, of_run; /* `of_run` leaves out init kernels */
} LastGroups;

/* A value to be placed in a group. */
typedef struct Root {
    NodeId node;
    bool is_reduction; /* reduce it; otherwise store it */
    uint32_t output;
    NodeId whole; /* see StoreTarget */
    uint32_t piece;
} Root;

typedef struct Inlined Inlined; /* fuse/group_limits.c */

typedef struct Grouper {
    Arena *arena;
    NodeId *loads; /* has room for every node; inlining's memory is released */
    InlineMarks *marks;
    GroupMemo *memo; /* may be NULL */
    const Graph *graph;
    bool off, has_cores;
    bool is_apart;              /* the work is spent: see group_store_apart */
    bool has_limit;             /* somebody counts the work */
    GroupingWork *work;         /* see Planning */
    const Decisions *decisions; /* see FuseOptions */
    NodeFlags flags;            /* of GroupingFlag */
    Grouping *g;
    ReasonId *want_reason; /* per node: of GROUPING_WANTED */
    /* Per node, of a round: the matmul that it is a GEMM slice of, or NODE_NONE. */
    NodeId *gemm_slice_of;
    const uint32_t *op_cost; /* per op */
    VecU32 *users;           /* per node */
    NodeFlags leads;         /* of GemmSliceFlag */
    LastGroups *last_groups; /* per node below n_last */
    uint32_t n_last;
    /* Of a round, per `fuse must` block, plus 1: the values that groups reduce or store, but for
     * results that are stored for the block's sake: they move no block to another kernel. NULL:
     * fusion is off. */
    uint32_t *block_values;
    Inlined *inlined;           /* room for group_split_closure; NULL: not needed yet */
    double single_prims;        /* Group.prims of the root that is being placed, by itself */
    Vec(GroupFailure) failures; /* of a round: roots that no group could take */
} Grouper;

/* Whether the round ends where it is, because the work is spent. */
bool group_is_spent(const Grouper *p);
/* Places the roots of the graph, until all have groups or the work is spent. */
void group_run_round(Grouper *p);
/* Whether a group was too large, so that another round follows: this one only looks for others. */
bool group_is_too_large(const Grouper *p);
/* When the work is spent: stores values so that each op is computed in one kernel, and inlined
 * where all its readers are in that kernel, which stays small. Takes time in proportion to the
 * graph, and tries no group. Each root then has a kernel of its own, but for those of `kernel` and
 * `fuse must` blocks. */
void group_store_apart(Grouper *p);

/* Inlines the group as a trial and keeps its loads. `makers`, if not NULL, counts for each node the
 * groups that compute it. */
bool group_attempt(const Grouper *p, Group *group, uint32_t index, InlineFailure *failure,
                   uint32_t *makers);

/* Whether the group's values are prepared. All values of a group are of one kind, except in
 * `kernel` blocks. */
bool group_is_init(const Grouper *p, const Group *group);
/* The number of the group, plus 1, before which the node's group cannot come; 0 if there is
 * none. */
uint32_t group_dependency(Grouper *p, NodeId id);
/* Adds the root to the group if the group can take it. */
bool group_try_join(Grouper *p, uint32_t index, const Root *root, InlineFailure *failure);

/* Adds the root to a map, which then runs over a larger value and stores parts of it. */
bool group_widen(Grouper *p, uint32_t index, const Root *root);

/* Merges the groups over rows whose results the root needs into group `into`, the latest of them,
 * and adds the root. `single` is the root as a group by itself. Returns the group's new number, or
 * GROUP_NONE if they cannot be merged. */
uint32_t group_merge_for(Grouper *p, const Group *single, const Root *root, uint32_t into);

/* Adds a root that needs results of group `after` - 1 to an earlier group that computes another
 * input of the root, and moves that group after `after` - 1. So the order of the ops in the source
 * does not matter. `single` is the root as a group by itself. Returns the group's new number, or
 * GROUP_NONE if there is no such group. */
uint32_t group_join_earlier(Grouper *p, const Group *single, const Root *root, uint32_t after);
/* group_join_earlier for a root that needs results of rows and of columns: applies if the latest
 * group does not have the form that the decisions prefer (by_columns). */
uint32_t group_join_preferred(Grouper *p, const Group *single, const Root *root, uint32_t after);

/* Gives the refusals the numbers of their groups, which do not move any more. */
void group_number_refusals(Grouping *g);

/* Finds the round's GEMM slices: matmuls with one slice, and matmuls that the decisions name
 * (gemm_slice). */
void group_find_gemm_slices(Grouper *p);
/* Whether the node is computed by a reduction of its own: it is a reduction, or a GEMM slice that
 * is computed in place of the matmul. */
bool group_folds(const Grouper *p, NodeId id);
/* Whether the node must be a kernel by itself, with its arguments in memory. */
bool group_is_single(const Grouper *p, NodeId id);

/* The `kernel` block of a node that a run computes; 0 if it is in none. */
static inline uint32_t group_fixed_block(const Graph *graph, NodeId id) {
    return graph_is_bound(graph, id) ? 0 : graph_block(graph, id, BLOCK_KERNEL);
}
/* Whether a value of a `kernel` block is used outside the block, except as a piece of a concat that
 * the block stores. */
bool group_leaves_block(const Grouper *p, NodeId id);

/* Flags the values that groups of the round load (GROUPING_LOADED). */
void group_flag_loaded(const Grouper *p);
/* Flags the values that GEMMs read (GROUPING_FEEDS_GEMM), and the values that are computed from
 * reductions' results (GROUPING_REDUCED). */
void group_flag_uses(const Grouper *p);
/* The largest number of elements. */
double group_elems_hi(const Graph *graph, NodeId id);
/* Stores the node from the next round on. Returns false if it is stored already. */
bool group_want_stored(Grouper *p, NodeId id, ReasonId reason);
/* Whether a user of a value that params determine cannot be prepared or is larger: then this value
 * is the one to keep. */
bool group_is_last_prepared(const Grouper *p, NodeId id);
/* How often each element of the node would be computed. Each view is a separate use; elementwise
 * users in one kernel share one. */
double group_repetition(const Grouper *p, NodeId id);
/* Whether a view reads the node. */
bool group_has_views(const Grouper *p, NodeId id);
/* Before grouping: stores values that params determine and that runs would read uncoalesced. */
void group_want_coalesced(Grouper *p);
/* Before grouping: stores values that would make every kernel too deep, too long or too wide. */
void group_bound_closures(Grouper *p);
/* Before grouping: stores what elementwise ops compute for GEMMs. */
void group_want_operands(Grouper *p);
/* After a round: if a group reads more tensors than a kernel takes, stores values until none needs
 * to. Returns whether another round is needed. */
bool group_narrow(Grouper *p);
/* Before a round: counts the values of `fuse must` blocks. */
void group_count_blocks(Grouper *p);
/* Whether the group has too many values. It has room for the value that begins a `fuse must` block
 * only if it has room for the whole block, and then for all others of the block. */
bool group_is_full(const Grouper *p, const Group *group);
/* Stores some of the values that a group of the root alone would inline, because the group has too
 * many scalars when node `failing` is reached. Returns false if it stores none: the group does not
 * inline that node any more, or nothing is left to store. */
bool group_split_closure(Grouper *p, NodeId root, NodeId failing);
/* At the end: an output that would be stored in any case (a reduction's result, or a value stored
 * in its place) gets the reason of its reader. */
void group_judge_outputs(Grouper *p);
/* After a round: stores values that turned out to be worth storing. Returns whether another round
 * is needed. */
bool group_store_more(Grouper *p);
/* After a round without other changes: finds concats to store in place. Returns whether another
 * round is needed. */
bool group_find_concats_in_place(Grouper *p);
/* After a round: finds values of which several maps each compute a part. One map then computes the
 * whole value, and the parts join that map. Returns whether another round is needed. */
bool group_find_whole_values(Grouper *p, const uint32_t *makers);

#endif
