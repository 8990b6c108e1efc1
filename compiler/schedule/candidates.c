/* See candidates.h. */
#include "schedule/candidates.h"

void candidates_for(Candidates *list, Variant base) {
    list->base = base;
    list->is_complete = false;
}

Variant *candidate_add(Candidates *list, Variant variant) {
    list->variants[list->n] = variant;
    return &list->variants[list->n++];
}

Variant *candidate_always(Candidates *list) {
    if (list->is_complete) return NULL;
    list->is_complete = true;
    return candidate_add(list, list->base);
}

Variant *candidate_within(Candidates *list, DimId dim, int64_t least, int64_t most) {
    if (list->is_complete || dim == DIM_NONE) return NULL;
    int64_t lo = dim_lo(list->dims, dim), hi = dim_hi(list->dims, dim);
    if (lo > most || hi < least) return NULL;
    if (lo >= least && hi <= most) return candidate_always(list);
    Variant *variant = candidate_add(list, list->base);
    predicate_set_range(&variant->predicate, dim, least, most);
    return variant;
}

Variant *candidate_at_most(Candidates *list, DimId dim, int64_t most) {
    return candidate_within(list, dim, INT64_MIN, most);
}
