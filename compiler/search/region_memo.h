/* The results of pricing a region's candidates. Graphs repeat: the layers of a model have equal
 * regions, and advice plans one graph many times with small changes. A region whose nodes, blocks
 * and decisions equal those of a priced region, whatever their names and places in the source, gets
 * its result. */
#ifndef FUSEC_SEARCH_REGION_MEMO_H
#define FUSEC_SEARCH_REGION_MEMO_H

#include "search/search_state.h"

/* The region's decisions after all candidates that pay. */
typedef struct RegionResult {
    bool improves;              /* some candidate pays */
    const Decisions *decisions; /* NULL: the region has not been priced */
    /* Of a result that was made ahead (search/ahead.h): what Planning.work and Planning.grouped do
     * not have yet. */
    uint64_t work;
    GroupingWork grouped;
} RegionResult;

/* A new empty memo for one target; `arena` must live as long as the memo. */
RegionMemo *region_memo_new(Arena *arena);
/* The result for a region with these decisions. The caller sets a result that has not been
 * priced. */
RegionResult *region_memo_of(const Searcher *c, const Region *region, const Decisions *decisions);
/* Counts the work of a known result that was made ahead. Returns false if the search's work would
 * have been spent on the way, so that the result is not known. */
bool region_memo_count(const Searcher *c, RegionResult *result);
void region_memo_set(const Searcher *c, RegionResult *result, bool improves,
                     const Decisions *decisions);

#endif
