/* The interpreter's elementwise ops, casts and sources. They use the op table's references only. */
#include "interp/interp_node.h"

/* The dtype in which the op computes: that of its data arguments. */
static Dtype data_dtype(const Eval *e) {
    return e->args[e->info->result == RESULT_SELECT ? 1 : 0].dtype;
}

/* How far a correct target may be from `value`, the rounding of `exact`. It is 0 for a correctly
 * rounded op, and for an exact infinity or NaN. */
static double eltwise_bound(const Eval *e, double exact, double value) {
    Dtype dtype = e->out->dtype;
    double n_ulps = op_ulp(e->info, dtype);
    if (n_ulps == 0 || isnan(exact) || isinf(exact)) return 0;
    double bound = n_ulps * dtype_ulp(dtype, value);
    if (isinf(value) && fabs(exact) - bound > dtype_max(dtype)) return 0;
    double absolute = op_abs_error(e->info, dtype);
    return bound < absolute ? absolute : bound;
}

/* A body computes in the compute type and then rounds once to the dtype. A correctly rounded op is
 * one operation of the compute type, so both roundings are part of its definition. */
static void eval_float(const Eval *e, Dtype data, int64_t i, const double *v) {
    double exact = e->info->ref(v[0], v[1], v[2]);
    if (dtype_is_bool(e->out->dtype)) {
        e->out->data[i] = exact != 0;
        return;
    }
    double value = dtype_round(data, dtype_round(dtype_compute(data), exact));
    e->out->data[i] = value;
    if (e->bounds) e->bounds[i] = eltwise_bound(e, exact, value);
}

static void eval_int(const Eval *e, int64_t i, const int64_t *v) {
    tensor_set_int(e->out, i, e->info->ref_int(v[0], v[1], v[2]));
}

bool interp_eltwise(const Eval *e) {
    Walk walk = walk_over(e->out);
    uint32_t n_args = e->node->n_args;
    if (n_args < e->info->min_args || n_args > e->info->max_args || n_args > WALK_MAX_OPERANDS)
        return interp_fail(e, "%u arguments", n_args);
    for (uint32_t k = 0; k < n_args; k++)
        if (!walk_add_broadcast(&walk, &e->args[k]))
            return interp_fail(e, "argument %u of shape %s does not broadcast to %s", k + 1,
                               tensor_type_str(&e->args[k], e->arena),
                               tensor_type_str(e->out, e->arena));
    Dtype data = data_dtype(e);
    bool is_float = dtype_is_float(data);
    if (is_float ? !e->info->ref : !e->info->ref_int)
        return interp_fail(e, "not defined on %s", dtype_name(data));
    double v[WALK_MAX_OPERANDS] = {0};
    int64_t whole[WALK_MAX_OPERANDS] = {0};
    if (n_args < e->info->max_args) v[n_args] = dtype_round(data, e->info->default_last);
    int64_t n = tensor_n_elems(e->out);
    for (int64_t i = 0; i < n; i++, walk_next(&walk)) {
        for (uint32_t k = 0; k < n_args && is_float; k++) v[k] = e->args[k].data[walk.offsets[k]];
        for (uint32_t k = 0; k < n_args && !is_float; k++)
            whole[k] = tensor_int(&e->args[k], walk.offsets[k]);
        if (is_float)
            eval_float(e, data, i, v);
        else
            eval_int(e, i, whole);
    }
    return true;
}

static bool bit_cast(const Eval *e) {
    if (dtype_bytes(e->args[0].dtype) != dtype_bytes(e->out->dtype))
        return interp_fail(e, "changes the width");
    size_t n_bytes = (size_t)tensor_n_elems(e->out) * dtype_bytes(e->out->dtype);
    uint8_t *bytes = arena_array(e->arena, uint8_t, n_bytes + 1);
    tensor_store(&e->args[0], bytes);
    tensor_load(e->out, bytes);
    return true;
}

bool interp_cast(const Eval *e) {
    const Tensor *arg = &e->args[0];
    Dtype to = e->out->dtype;
    int64_t n = tensor_n_elems(e->out);
    if (n != tensor_n_elems(arg)) return interp_fail(e, "changes the shape");
    if (e->node->op == OP_BITCAST) return bit_cast(e);
    for (int64_t i = 0; i < n; i++) {
        if (dtype_is_float(arg->dtype) && !dtype_is_float(to))
            tensor_set_int(e->out, i, dtype_saturate(to, arg->data[i]));
        else if (dtype_is_float(arg->dtype))
            e->out->data[i] = dtype_round(to, arg->data[i]);
        else if (dtype_is_float(to))
            e->out->data[i] = dtype_round_int(to, tensor_int(arg, i));
        else
            tensor_set_int(e->out, i, tensor_int(arg, i));
    }
    return true;
}

bool interp_source(const Eval *e) {
    int64_t n = tensor_n_elems(e->out);
    Walk walk = walk_over(e->out);
    if (e->node->op != OP_CONST && e->node->op != OP_IOTA)
        return interp_fail(e, "has no value of its own");
    if (e->node->op == OP_IOTA && (uint32_t)e->node->attrs.axis >= e->out->rank)
        return interp_fail(e, "axis %d of a tensor of rank %u", e->node->attrs.axis, e->out->rank);
    for (int64_t i = 0; i < n; i++, walk_next(&walk)) {
        if (e->node->op == OP_IOTA)
            tensor_set_int(e->out, i, walk.index[e->node->attrs.axis]);
        else
            interp_fill(e->out, i, e->node->attrs.number, e->node->attrs.whole);
    }
    return true;
}
