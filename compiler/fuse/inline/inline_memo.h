/* The values that inlining has pulled, by node, guard and coordinates. */
#ifndef FUSEC_FUSE_INLINE_INLINE_MEMO_H
#define FUSEC_FUSE_INLINE_INLINE_MEMO_H

#include "base/hashids.h"
#include "ir/graph.h"
#include "ir/scalar.h"

typedef struct MemoEntry {
    uint64_t hash; /* never 0 */
    NodeId node;
    GuardId guard;
    const IndexId *coords; /* `rank` coordinates, one per axis of the node */
    uint32_t rank;
    bool is_again; /* recomputed although it is in memory */
    ScalarId value;
    uint32_t trace;
} MemoEntry;

typedef struct InlineMemo {
    MemoEntry *entries;
    uint32_t n, capacity; /* a power of two, or 0 */
} InlineMemo;

/* An entry without a value. */
MemoEntry memo_key(NodeId node, GuardId guard, const IndexId *coords, uint32_t rank);
/* Returns NULL if the value has not been pulled. */
const MemoEntry *memo_find(const InlineMemo *memo, const MemoEntry *key);
/* The entry's coordinates must live as long as the memo. */
void memo_put(Arena *arena, InlineMemo *memo, MemoEntry entry);

#endif
