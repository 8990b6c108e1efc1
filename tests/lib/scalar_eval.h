/* Evaluates scalar DAGs on numbers: the meaning of an op's body, with no code generator. */
#ifndef FUSEC_TESTS_SCALAR_EVAL_H
#define FUSEC_TESTS_SCALAR_EVAL_H

#include "interp/scalar_eval.h"
#include "ir/op.h"

/* A load of buffer k gives operands[k]; its dtype is that of the load. What is neither that nor a
 * constant, a primitive or a conversion gives NaN. `rounds` as in ScalarEnv. */
double scalar_eval_on(const ScalarTab *tab, ScalarId id, const double *operands, bool rounds);

/* An op's elementwise body applied to loads of storage dtype `dtype` (a select's first is bool),
 * each converted to the compute type, and the result converted to the op's result dtype. */
ScalarId op_body_on(ScalarTab *tab, OpId op, uint32_t n_args, Dtype dtype);

#endif
