/* A choice: two versions of one computation, of which each run takes one when its dims and pointers
 * are known.
 *
 *   of kernels   default: one kernel          alternative: the kernels behind it that have the same
 *                                             choice, and store the same values
 *   of buffers   default: the source as it    alternative: a copy of it with padded rows
 *                lies
 *
 * Cost, dumps and proofs ask choice_taken. The manifest has the choice as a symbol with a rule,
 * which grids and sizes are multiples of: a version that is not taken has no blocks and no bytes.
 */
#ifndef FUSEC_PLAN_CHOICE_H
#define FUSEC_PLAN_CHOICE_H

#include "ir/predicate.h"

typedef enum { VERSION_DEFAULT, VERSION_ALTERNATIVE, N_VERSIONS } Version;

typedef struct Choice {
    Condition condition; /* where a run takes the alternative */
    /* Per version: 1 in runs that take it, 0 in others. DIM_NONE: the condition asks for pointers,
     * too, so that no dim says it, and the extents of the alternative are 0 by their own rules. */
    DimId factors[N_VERSIONS];
} Choice;

/* A choice of kernels, whose condition is about extents; its factor is a symbol of this name. NULL:
 * no dim says where the condition holds, or that dim is a constant. */
const Choice *choice_new(Arena *arena, DimTab *dims, const char *name, const Condition *condition);
/* The version that a run takes. */
Version choice_taken(const Choice *choice, const PredicateAt *at);
/* A grid or a number of elements of one version, which is 0 in runs that take the other; of no
 * choice (NULL) the size itself. */
DimId choice_scale(DimTab *dims, const Choice *choice, Version version, DimId size);

#endif
