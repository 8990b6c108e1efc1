/* Evaluation of scalar programs on numbers held in doubles: it defines their meaning, on the host
 * and independent of lowering, except of i64 beyond 2^53, which it rounds. Recursive and slow. */
#ifndef FUSEC_INTERP_SCALAR_EVAL_H
#define FUSEC_INTERP_SCALAR_EVAL_H

#include "ir/scalar.h"

typedef struct ScalarEnv {
    /* The value of a scalar that is no constant, primitive or conversion. */
    double (*leaf)(void *user, ScalarId id, const Scalar *scalar);
    void *user;
    bool rounds; /* rounds every primitive to its type, as a target does; false: computes in
                  * double */
} ScalarEnv;

double scalar_eval(const ScalarTab *tab, ScalarId id, const ScalarEnv *env);

#endif
