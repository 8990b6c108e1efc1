/* Scalar programs on numbers held in doubles: their meaning, on the host and apart from lowering.
 * Recursive, and slow. */
#ifndef FUSEC_INTERP_SCALAR_EVAL_H
#define FUSEC_INTERP_SCALAR_EVAL_H

#include "ir/scalar.h"

typedef struct ScalarEnv {
    /* The value of what is no constant, primitive or conversion. */
    double (*leaf)(void *user, ScalarId id, const Scalar *scalar);
    void *user;
    bool rounds; /* every primitive to its type, as a target does; otherwise all runs in double */
} ScalarEnv;

double scalar_eval(const ScalarTab *tab, ScalarId id, const ScalarEnv *env);

#endif
