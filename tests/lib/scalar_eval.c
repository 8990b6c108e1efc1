/* Ops' bodies on numbers. See lib/scalar_eval.h. */
#include "lib/scalar_eval.h"

#include <math.h>

typedef struct Operands {
    const double *of;
} Operands;

static double operand(void *user, ScalarId id, const Scalar *scalar) {
    const Operands *operands = user;
    (void)id;
    return scalar->kind == SCALAR_LOAD ? operands->of[scalar->buffer] : (double)NAN;
}

double scalar_eval_on(const ScalarTab *tab, ScalarId id, const double *operands, bool rounds) {
    Operands user = {operands};
    ScalarEnv env = {.leaf = operand, .user = &user, .rounds = rounds};
    return scalar_eval(tab, id, &env);
}

ScalarId op_body_on(ScalarTab *tab, OpId op, uint32_t n_args, Dtype dtype) {
    const OpInfo *info = op_info(op);
    ScalarId args[3] = {SCALAR_NONE, SCALAR_NONE, SCALAR_NONE};
    IndexId origin =
        index_dim(scalartab_indices(tab), dim_const(indextab_dims(scalartab_indices(tab)), 0));
    for (uint32_t k = 0; k < n_args; k++) {
        Dtype stored = info->result == RESULT_SELECT && k == 0 ? DT_BOOL : dtype;
        ScalarId load = scalar_load(tab, stored, k, origin, GUARD_NONE);
        args[k] = scalar_cvt(tab, load, dtype_compute(stored));
    }
    for (uint32_t k = n_args; k < info->max_args; k++)
        args[k] = scalar_const(tab, dtype_compute(dtype), dtype_round(dtype, info->default_last));
    ScalarId body = info->body(tab, dtype, args[0], args[1], args[2]);
    return info->result == RESULT_BOOL ? body : scalar_cvt(tab, body, dtype);
}
