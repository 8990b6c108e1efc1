/* What grouping works on, shared by its files: group.c joins roots into groups, group_merge.c moves
 * groups, group_limits.c and group_store.c decide between rounds what else must be stored,
 * group_gemm_slice.c finds GEMMs to be made slice by slice. Internal to them. */
#ifndef FUSEC_FUSE_GROUP_STATE_H
#define FUSEC_FUSE_GROUP_STATE_H

#include "fuse/group.h"

enum {
    MAX_GROUP_VALUES = 24, /* reductions and stores of one kernel */
    MAX_GROUP_LOADS = 32,
};

/* Whether a value that hangs elementwise on a reduction's result is stored in its place. */
typedef enum { SINK_NONE, SINK_WANTED, SINK_REFUSED } Sinking;

/* Whether a map runs over a value for the sake of its parts. */
typedef enum { WHOLE_NONE, WHOLE_WANTED, WHOLE_REFUSED } WholeMap;

/* The latest groups whose results are read at or below a node's arguments, plus 1; 0 for none. */
typedef struct LastGroups {
    uint32_t any, of_run; /* of a run: no init steps */
} LastGroups;

/* A value on its way into a group. */
typedef struct Root {
    NodeId node;
    bool is_reduction; /* fold it; otherwise store it */
    uint32_t output;
    NodeId whole; /* see StoreTarget */
    uint32_t piece;
} Root;

typedef struct Grouper {
    Arena *arena;
    NodeId *loads; /* room for every node, while a composition's memory is given up */
    InlineMarks *marks;
    const Graph *graph;
    bool off, has_cores;
    const Decisions *decisions; /* see FuseOptions */
    const bool *can_prepare;    /* per node */
    Grouping *g;
    bool *wants_store; /* per node: decided so far, over all rounds */
    ReasonId *want_reason;
    Sinking *sinking; /* per node: whether it stands for a reduction's result, over all rounds */
    WholeMap *whole;  /* per node, over all rounds */
    bool *is_placed;  /* per node: concats to be stored in pieces, over all rounds */
    /* Per node, of a round: the product that it is a window of, or NODE_NONE; and whether nothing
     * but windows of it is made (fuse/gemm_slice.h). */
    NodeId *gemm_slice_of;
    bool *is_inside;
    uint32_t *op_cost;       /* per op */
    VecU32 *users;           /* per node */
    LastGroups *last_groups; /* per node below n_last */
    uint32_t n_last;
    double single_prims; /* Group.prims of what is placed now, by itself */
    InlineFailure failure;
    NodeId failed; /* the root that no group of its own could take; NODE_NONE: the source's could
                    * not */
} Grouper;

/* Composes for the sake of finding out, and keeps what the group reads. `makers`, if any, counts
 * for every node the groups that compute it. */
bool group_attempt(const Grouper *p, Group *group, uint32_t index, InlineFailure *failure,
                   uint32_t *makers);

/* Whether the group's values, which are all of one kind unless the source fixed them, are
 * prepared. */
bool group_is_init(const Grouper *p, const Group *group);
/* The group, plus 1, that the node's own cannot come before; 0: there is none. */
uint32_t group_dependency(Grouper *p, NodeId id);
/* Adds the root to the group if that can take it. */
bool group_try_join(Grouper *p, uint32_t index, const Root *root, InlineFailure *failure);

/* The same for a map, which runs over something larger then, of which all that it stores is part.
 */
bool group_widen(Grouper *p, uint32_t index, const Root *root);

/* Merges groups over rows whose results the root, which alone is `lone`, needs into group `into`,
 * the latest of them, and adds it. Returns where that group is then; GROUP_NONE: it cannot be. */
uint32_t group_merge_for(Grouper *p, const Group *single, const Root *root, uint32_t into);

/* The form of a group's kernel. */
KernelForm group_form(const Grouper *p, const Group *group);
/* Adds the root, which alone is `lone` and needs what group `after` - 1 makes, to an earlier
 * group that makes something for it, if that can follow all up to there, which it then does: so
 * that it is no matter which of them the source has first. Returns where that group is then;
 * GROUP_NONE: there is none. */
uint32_t group_join_earlier(Grouper *p, const Group *single, const Root *root, uint32_t after);
/* Where rows and columns make something for the root: the same for those of the form that options
 * prefer, if the latest is of the other. */
uint32_t group_join_preferred(Grouper *p, const Group *single, const Root *root, uint32_t after);

/* Finds the round's windows: of products that one slice reads, and of those that options name. */
void group_find_gemm_slices(Grouper *p);
/* Whether a group is to be opened for the node, or joined, that folds what it is made of: a
 * reduction, or a window of a product, in place of that. */
bool group_folds(const Grouper *p, NodeId id);
/* Whether the node is to be a kernel by itself, with its arguments in memory. */
bool group_is_single(const Grouper *p, NodeId id);

/* Per node: whether a group of the round reads it from memory. */
bool *group_find_loaded(const Grouper *p);
/* Its elements, at most. */
double group_elems_hi(const Graph *graph, NodeId id);
/* Has the node stored from the next round on; false if it is already. */
bool group_want_stored(Grouper *p, NodeId id, ReasonId reason);
/* Before anything is grouped: stores what would make any kernel too deep, too long or too wide. */
void group_bound_closures(Grouper *p);
/* Has what a group of the root's own would inline taken apart in places, since that has too many
 * scalars once the node `failing` is to be composed. False: nothing is left to be stored. */
bool group_split_closure(Grouper *p, NodeId root, NodeId failing);
/* In the end: an output that would be stored anyway, a reduction's result or what stands for it,
 * has the reason of its reader. */
void group_judge_outputs(Grouper *p);
/* After a round: stores what turned out to be worth it. Returns whether another round is due. */
bool group_store_more(Grouper *p);
/* After a round in which nothing else changed: finds concats whose pieces are better stored where
 * the concat lies. Returns whether another round is due. */
bool group_place_more(Grouper *p);
/* The same for values of which several maps compute a part each: as if it was to be stored, one map
 * computes it, and the parts join that. */
bool group_whole_more(Grouper *p, const uint32_t *makers);

#endif
