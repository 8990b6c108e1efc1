/* Regions that are improved ahead, on several threads. The kernels of a plan have regions that do
 * not depend on each other, unless a candidate that pays changes the decisions of another one's
 * nodes. Before search goes through the kernels one by one, the regions as they are now are
 * improved side by side, and the memo of regions gets the results. Search then finds those whose
 * decisions have not changed, and counts their work when it does: what it decides, and when its
 * work is spent, does not depend on the threads. */
#ifndef FUSEC_SEARCH_AHEAD_H
#define FUSEC_SEARCH_AHEAD_H

#include "search/search_state.h"

/* For compilations on so many threads; NULL: there is only one thread, or no memory. */
RegionsAhead *regions_ahead_new(uint32_t n_threads);
/* `ahead` may be NULL. */
void regions_ahead_free(RegionsAhead *ahead);

/* Improves the regions of the plan's kernels, if they are several and there are threads. */
void search_ahead(const Searcher *c, const Plan *plan);

#endif
