/* Evaluation of scalar programs. See scalar_eval.h. */
#include "interp/scalar_eval.h"

/* Integers keep their low bits, floats are rounded. */
static double converted(Dtype from, Dtype to, double value) {
    if (!dtype_is_int(from) || dtype_is_float(to)) return dtype_round(to, value);
    return (double)dtype_wrap(to, dtype_saturate(DT_I64, value));
}

double scalar_eval(const ScalarTab *tab, ScalarId id, const ScalarEnv *env) {
    const Scalar *s = scalar_get(tab, id);
    double v[3] = {0};
    if (s->kind == SCALAR_CONST) return s->number;
    if (s->kind == SCALAR_CVT)
        return converted(scalar_get(tab, s->args[0])->dtype, s->dtype,
                         scalar_eval(tab, s->args[0], env));
    if (s->kind != SCALAR_PRIM) return env->leaf(env->user, id, s);
    const PrimInfo *info = prim_info(s->prim);
    for (uint32_t i = 0; i < info->arity; i++) v[i] = scalar_eval(tab, s->args[i], env);
    Dtype dtype = scalar_get(tab, s->args[info->arity - 1])->dtype;
    double value = prim_eval(s->prim, dtype, v[0], v[1], v[2]);
    return env->rounds ? dtype_round(s->dtype, value) : value;
}
