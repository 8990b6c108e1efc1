/* What grouping a graph has shown: the last grouping, and trials of groups. The search plans one
 * graph several times, and the final plan has the decisions of one of its plans. Rounds of grouping
 * try the same groups again, and so do plans. A trial depends on the group and on the facts
 * (inline_facts) of the nodes that inlining asked about. A group whose nodes all have the facts of
 * one of its latest trials gets the result of that trial. */
#ifndef FUSEC_FUSE_GROUP_MEMO_H
#define FUSEC_FUSE_GROUP_MEMO_H

#include "fuse/group.h"
#include "pipeline/pipeline.h"

/* The result of a trial. */
typedef struct GroupTrial {
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
} GroupTrial;

/* A new empty memo of one graph; the arenas must live as long as the memo. `trials` is another
 * arena than `arena`, for nothing else meanwhile; NULL: no trial continues another. */
GroupMemo *group_memo_new(Arena *arena, Arena *trials, const Graph *graph);
/* The memo if it is of this graph or a copy of it for a trial; otherwise NULL. */
GroupMemo *group_memo_of(GroupMemo *memo, const Graph *graph);
/* What the memo knows of one group. */
typedef struct GroupEntry GroupEntry;
GroupEntry *group_memo_entry(GroupMemo *memo, const InlineInput *input, const Group *group);
/* The result of one of the group's latest trials; NULL if a fact has changed since each. */
const GroupTrial *group_memo_trial(const GroupEntry *entry, const InlineInput *input);
/* The trial of the group that grows; may be NULL. */
InlineTrial *group_memo_growing(const GroupMemo *memo);
/* Keeps a copy of the result of a trial, and returns it. `is_growing`: of the group that grows. */
const GroupTrial *group_memo_set(GroupMemo *memo, GroupEntry *entry, const GroupTrial *trial,
                                 bool is_growing);
/* The kept result of the last trial of the group that grows. */
const GroupTrial *group_memo_grown(const GroupMemo *memo);

/* A copy of the last grouping on `arena`, if it was made with these decisions; otherwise NULL. */
Grouping *group_memo_grouping(const GroupMemo *memo, Arena *arena, const Decisions *decisions);
/* Keeps a copy of a grouping in place of the last. */
void group_memo_keep(GroupMemo *memo, const Grouping *grouping, const Decisions *decisions);

#endif
