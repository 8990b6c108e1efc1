/* What grouping a graph has shown: the last grouping, and trials of groups. The search plans one
 * graph several times, and the final plan has the decisions of one of its plans. Rounds of grouping
 * try the same groups again, and so do plans. A trial depends on the group and on the facts
 * (inline_facts) of the nodes that inlining asked about. A group whose nodes all have the facts of
 * one of its latest trials gets the result of that trial. So does a group of the same kinds of
 * nodes (node_kinds.h) at one distance from those of the trial, in the same graph or another. */
#ifndef FUSEC_FUSE_GROUP_MEMO_H
#define FUSEC_FUSE_GROUP_MEMO_H

#include "fuse/group.h"
#include "fuse/node_kinds.h"
#include "pipeline/pipeline.h"

/* What the memo knows of groups whose nodes have the same kinds and the same distances from the
 * group's first reduction or target. */
typedef struct GroupEntry GroupEntry;

/* The result of a trial. */
struct GroupTrial {
    GroupEntry *entry;
    NodeId base; /* the first reduction or target of the group that was tried */
    bool ok;
    InlineFailure failure; /* if not ok */
    double prims;          /* as in Group, if ok; so are the others */
    bool has_passes, has_inner;
    VecU32 loads; /* ascending */
    /* The facts that inlining asked for, and the nodes that the group computes. A trial
     * of a growing group continues the trial `from`, and has the facts and nodes that `from` does
     * not have. */
    AskedFacts asked;
    VecU32 nodes;
    const struct GroupTrial *from; /* NULL: it continues none */
};

/* No trials, for graphs that share their dims. The arena must live as long. */
KnownGroups *known_groups_new(Arena *arena);
/* A new memo of one graph, with the trials of others. `trials` is another arena than that of
 * `known`, for nothing else meanwhile; NULL: no trial continues another. `work`: see Planning. */
GroupMemo *group_memo_new(KnownGroups *known, Arena *trials, const Graph *graph,
                          GroupingWork *work);
/* The memo if it is of this graph or a copy of it for a trial; otherwise NULL. */
GroupMemo *group_memo_of(GroupMemo *memo, const Graph *graph);
/* The kinds of the graph's nodes; NULL if there is no memo. */
NodeKinds *group_memo_kinds(const GroupMemo *memo);
/* NULL: the memo counts none, or there is no memo. */
GroupingWork *group_memo_work(const GroupMemo *memo);
/* The entry of one group. */
typedef struct GroupKey {
    GroupEntry *entry;
    NodeId base; /* the group's first reduction or target */
} GroupKey;
GroupKey group_memo_key(GroupMemo *memo, const InlineInput *input, const Group *group);
/* Whether the group has the reductions and targets that it had in its last trial. */
bool group_memo_is_tried(const Group *group);
/* A trial at a distance: where the trial has a node that is not fixed, the group has the node
 * `distance` behind it. */
typedef struct FoundTrial {
    const GroupTrial *trial; /* NULL: none */
    NodeId distance;         /* modulo 2^32 */
} FoundTrial;
/* A trial of the key's entry, of the same group or one of the latest, if all facts are those of the
 * trial. The facts of `held`, which may be none, are known to be. */
FoundTrial group_memo_trial(const GroupMemo *memo, GroupKey key, const InlineInput *input,
                            FoundTrial held);
/* The group's node in place of the trial's, of its lists or where it failed. */
NodeId group_memo_node(FoundTrial found, NodeId kept);
/* The trial of the group that grows; may be NULL. */
InlineTrial *group_memo_growing(const GroupMemo *memo);
/* Keeps a copy of the result of a trial, and returns it. `is_growing`: of the group that grows. */
const GroupTrial *group_memo_set(GroupMemo *memo, GroupKey key, const GroupTrial *trial,
                                 bool is_growing);
/* The kept result of the last trial of the group that grows. */
const GroupTrial *group_memo_grown(const GroupMemo *memo);

/* A copy of the last grouping on `arena`, if it was made with these decisions; otherwise NULL. */
Grouping *group_memo_grouping(const GroupMemo *memo, Arena *arena, const Decisions *decisions);
/* Keeps a copy of a grouping in place of the last. */
void group_memo_keep(GroupMemo *memo, const Grouping *grouping, const Decisions *decisions);

#endif
