/* Candidates: the variants of a GEMM in order of preference, each for the runs in which a dim lies
 * in a range. A candidate that some runs of its base call for is added; one that none calls for is
 * not, nor is any after a candidate that applies to all of them. */
#ifndef FUSEC_SCHEDULE_CANDIDATES_H
#define FUSEC_SCHEDULE_CANDIDATES_H

#include "plan/kernel.h"

typedef struct Candidates {
    const DimTab *dims;
    Variant base;      /* every candidate begins as a copy of it, with its conditions */
    Variant *variants; /* MAX_VARIANTS */
    uint32_t n;
    bool is_complete; /* a candidate applies to all runs of the base */
} Candidates;

/* The next candidates are for the runs of another base. */
void candidates_for(Candidates *list, Variant base);
/* Adds a candidate whatever came before it. */
Variant *candidate_add(Candidates *list, Variant variant);
/* Adds a candidate for runs in which the dim lies in the range. NULL: no run calls for it. */
Variant *candidate_within(Candidates *list, DimId dim, int64_t least, int64_t most);
Variant *candidate_at_most(Candidates *list, DimId dim, int64_t most);
/* Adds a candidate for all other runs; NULL: there are none. */
Variant *candidate_always(Candidates *list);

#endif
