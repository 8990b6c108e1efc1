/* Evaluates scalar DAGs on numbers: the meaning of an op's body, without a code generator. */
#ifndef FUSEC_TESTS_SCALAR_EVAL_H
#define FUSEC_TESTS_SCALAR_EVAL_H

#include "interp/scalar_eval.h"
#include "ir/op.h"

/* A load of buffer k gives operands[k], in the load's dtype. Any other scalar that is no constant,
 * primitive or conversion gives NaN. `rounds` is as in ScalarEnv. */
double scalar_eval_on(const ScalarTab *tab, ScalarId id, const double *operands, bool rounds);

/* An op's elementwise body on loads of storage dtype `dtype` (a select's first is bool). Each load
 * is converted to the compute type, and the result to the op's result dtype. */
ScalarId op_body_on(ScalarTab *tab, OpId op, uint32_t n_args, Dtype dtype);

#endif
