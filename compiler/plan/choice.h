/* A choice: two versions of one computation. Each run takes one of them when its dims and pointers
 * are known.
 *
 *   of kernels   default: one kernel          alternative: the kernels after it with the same
 *                                             choice, which store the same values
 *   of buffers   default: the source itself   alternative: a copy of it with padded rows
 *
 * The cost model, dumps and proofs ask choice_taken. In the manifest a choice is a symbol with a
 * rule. Grids and sizes are multiples of the symbol, so a version that is not taken has no blocks
 * and no bytes. */
#ifndef FUSEC_PLAN_CHOICE_H
#define FUSEC_PLAN_CHOICE_H

#include "ir/predicate.h"

typedef enum { VERSION_DEFAULT, VERSION_ALTERNATIVE, N_VERSIONS } Version;

typedef struct Choice {
    Condition condition; /* true in runs that take the alternative */
    /* Per version: 1 in runs that take it, 0 in others. DIM_NONE if the condition includes
     * pointers, so that no dim expresses it; then the extents of the alternative are 0 by their own
     * rules. */
    DimId factors[N_VERSIONS];
} Choice;

/* Makes a choice of kernels, with a condition on extents and a symbol of this name. Returns NULL if
 * no dim expresses the condition or the dim is a constant. */
const Choice *choice_new(Arena *arena, DimTab *dims, const char *name, const Condition *condition);
/* The version that a run takes. */
Version choice_taken(const Choice *choice, const PredicateAt *at);
/* Returns a grid or a number of elements of one version; it is 0 in runs that take the other
 * version. Without a choice (NULL) returns `size`. */
DimId choice_scale(DimTab *dims, const Choice *choice, Version version, DimId size);

#endif
