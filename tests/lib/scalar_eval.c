/* Scalar DAGs evaluated by recursion: bodies are small. */
#include "lib/scalar_eval.h"

#include <math.h>

double scalar_eval(const ScalarTab *tab, ScalarId id, const double *operands, bool rounds) {
    const Scalar *s = scalar_get(tab, id);
    double v[3] = {0};
    if (s->kind == SCALAR_CONST) return s->number;
    if (s->kind == SCALAR_LOAD) return operands[s->buffer];
    if (s->kind == SCALAR_CVT)
        return dtype_round(s->dtype, scalar_eval(tab, s->args[0], operands, rounds));
    if (s->kind != SCALAR_PRIM) return NAN;
    const PrimInfo *info = prim_info(s->prim);
    for (uint32_t i = 0; i < info->arity; i++)
        v[i] = scalar_eval(tab, s->args[i], operands, rounds);
    Dtype dtype = scalar_get(tab, s->args[info->arity - 1])->dtype;
    double value = prim_eval(s->prim, dtype, v[0], v[1], v[2]);
    return rounds ? dtype_round(s->dtype, value) : value;
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
