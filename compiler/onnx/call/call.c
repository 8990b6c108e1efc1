/* Inputs, outputs and attributes of a node, and the builder in short. */
#include "onnx/call/import_state.h"

#include <math.h>

bool has_input(const Call *c, uint32_t i) {
    if (i >= c->node->inputs.n || !c->node->inputs.data[i][0]) return false;
    const Value *value = onnx_scope_find(c->scope, c->node->inputs.data[i]);
    return !value || !value->is_absent;
}

Value *input_value(Call *c, uint32_t i) {
    return has_input(c, i) ? onnx_scope_find(c->scope, c->node->inputs.data[i]) : NULL;
}

NodeId input(Call *c, uint32_t i) {
    Value *value = input_value(c, i);
    return value ? value_node(c, value) : NODE_NONE;
}

const Known *input_known(Call *c, uint32_t i) {
    Value *value = input_value(c, i);
    return value ? value_known(c->im, value) : NULL;
}

bool has_output(const Call *c, uint32_t i) {
    return i < c->node->outputs.n && c->node->outputs.data[i][0];
}

void name_node(Call *c, const Value *value) {
    if (value->node != NODE_NONE && !c->scope->is_repeated && onnx_may_name(value->name))
        build_name(c->im->b, value->node, value->name);
}

bool output(Call *c, uint32_t i, NodeId node) {
    Import *im = c->im;
    if (!has_output(c, i) || node == NODE_NONE) return node != NODE_NONE;
    Value *value = onnx_scope_add(im, c->scope, c->node->outputs.data[i]);
    value->node = node;
    name_node(c, value);
    return true;
}

bool output_known(Call *c, uint32_t i, Known *known) {
    if (known && has_output(c, i))
        onnx_scope_add(c->im, c->scope, c->node->outputs.data[i])->known = known;
    return known != NULL;
}

/* An attribute of the node; in a function one of the call, which the node refers to. */
static const OnnxAttr *resolve(const Call *c, const OnnxAttr *attr) {
    if (!attr || !attr->reference) return attr;
    const OnnxFunction *function = c->scope->function;
    const Call *outer = c->scope->call;
    for (uint32_t i = 0; outer && i < outer->node->attrs.n; i++)
        if (outer->node->attrs.data[i].name == attr->reference)
            return resolve(outer, &outer->node->attrs.data[i]);
    for (uint32_t i = 0; function && i < function->defaults.n; i++)
        if (function->defaults.data[i].name == attr->reference) return &function->defaults.data[i];
    return NULL;
}

const OnnxAttr *find_attr(const Call *c, const char *name) {
    for (uint32_t i = 0; i < c->node->attrs.n; i++)
        if (strcmp(c->node->attrs.data[i].name, name) == 0)
            return resolve(c, &c->node->attrs.data[i]);
    return NULL;
}

static const char *attr_type_name(int64_t type) {
    static const char *const names[] = {
        [ATTR_FLOAT] = "a float",           [ATTR_INT] = "an integer",
        [ATTR_STRING] = "a string",         [ATTR_TENSOR] = "a tensor",
        [ATTR_GRAPH] = "a graph",           [ATTR_FLOATS] = "a list of floats",
        [ATTR_INTS] = "a list of integers", [ATTR_STRINGS] = "a list of strings"};
    bool is_known = type > 0 && type <= ATTR_STRINGS;
    return is_known ? names[type] : "of another type";
}

const OnnxAttr *typed_attr(Call *c, const char *name, OnnxAttrType type) {
    const OnnxAttr *attr = find_attr(c, name);
    if (!attr || !attr->type || attr->type == (int64_t)type) return attr;
    onnx_fail(c, DIAG_BAD_ARGUMENT, "its attribute `%s` is %s, not %s", name,
              attr_type_name(attr->type), attr_type_name(type));
    return NULL;
}

int64_t attr_int(Call *c, const char *name, int64_t otherwise) {
    const OnnxAttr *attr = typed_attr(c, name, ATTR_INT);
    return attr ? attr->integer : otherwise;
}

double attr_float(Call *c, const char *name, double otherwise) {
    const OnnxAttr *attr = typed_attr(c, name, ATTR_FLOAT);
    return attr ? attr->number : otherwise;
}

Str attr_string(Call *c, const char *name, Str otherwise) {
    const OnnxAttr *attr = typed_attr(c, name, ATTR_STRING);
    return attr ? attr->string : otherwise;
}

bool attr_ints(Call *c, const char *name, const VecInt **ints) {
    const OnnxAttr *attr = typed_attr(c, name, ATTR_INTS);
    *ints = attr ? &attr->ints : NULL;
    return attr != NULL;
}

bool attr_list(Call *c, const char *name, uint32_t n, int64_t least, int64_t most,
               int64_t *values) {
    const VecInt *given;
    bool is_given = attr_ints(c, name, &given) && given->n;
    if (is_given && given->n != n)
        return onnx_fail(c, DIAG_WRONG_COUNT, "%s has %u numbers, but needs %u", name, given->n, n);
    for (uint32_t k = 0; k < n; k++) {
        values[k] = is_given ? given->data[k] : least;
        if (values[k] < least || values[k] > most)
            return onnx_fail(c, DIAG_BAD_ARGUMENT, "%s has %lld", name, (long long)values[k]);
    }
    return true;
}

bool fail_unknown(Call *c, uint32_t i) {
    const Value *value = input_value(c, i);
    if (value && !onnx_need_least(c, value->undecided, 0)) return false;
    if (value && value->known)
        return onnx_fail(c, DIAG_NO_LOWERING,
                         "its input %u, `%s`, must be a constant, and may not follow from dims",
                         i + 1, value->name);
    return onnx_fail(c, DIAG_NO_LOWERING,
                     "its input %u, `%s`, must follow from constants and dims%s", i + 1,
                     i < c->node->inputs.n ? c->node->inputs.data[i] : "",
                     value ? onnx_constants_needed(c->im, value->node) : "");
}

bool int_argument(Call *c, uint32_t i, int64_t otherwise, int64_t *value) {
    const Known *known = input_known(c, i);
    *value = otherwise;
    if (!has_input(c, i)) return true;
    if (!known || known->n != 1 || !known->ints || !known_int(c->im, known, 0, value))
        return fail_unknown(c, i);
    return true;
}

bool float_argument(Call *c, uint32_t i, double otherwise, double *value) {
    const Known *known = input_known(c, i);
    *value = otherwise;
    if (!has_input(c, i)) return true;
    if (!known || known->n != 1 || !known->floats) return fail_unknown(c, i);
    *value = known->floats[0];
    return true;
}

bool list_argument(Call *c, const char *attr, uint32_t i, IntList *list) {
    const VecInt *ints;
    *list = (IntList){0};
    if (attr && attr_ints(c, attr, &ints)) {
        *list = (IntList){true, ints->n, arena_array(c->im->arena, DimId, ints->n + 1)};
        for (uint32_t k = 0; k < ints->n; k++) list->dims[k] = number(c, ints->data[k]);
        return true;
    }
    if (i == UINT32_MAX || !has_input(c, i)) return true;
    const Known *known = input_known(c, i);
    if (!known || !known->ints) return fail_unknown(c, i);
    *list = (IntList){true, known->n, known->ints};
    return true;
}

bool constant_list(Call *c, const IntList *list, const char *what, int64_t *values, uint32_t max) {
    if (list->n > max)
        return onnx_fail(c, DIAG_WRONG_COUNT, "`%s` has %u numbers, more than %u", what, list->n,
                         max);
    for (uint32_t k = 0; k < list->n; k++)
        if (!dim_is_const(c->im->b->dims, list->dims[k], &values[k]))
            return onnx_fail(c, DIAG_BAD_ARGUMENT, "`%s` must hold constants", what);
    return true;
}

bool axis_of(Call *c, int64_t axis, uint32_t rank, uint32_t *result) {
    if (axis < -(int64_t)rank || axis >= (int64_t)rank)
        return onnx_fail(c, DIAG_BAD_AXIS, "there is no axis %lld of %u", (long long)axis, rank);
    *result = (uint32_t)(axis < 0 ? axis + rank : axis);
    return true;
}

bool axes_argument(Call *c, const char *attr, uint32_t i, uint32_t rank, uint32_t *axes,
                   bool *is_given) {
    IntList list;
    int64_t values[MAX_RANK];
    uint32_t axis = 0;
    *axes = 0;
    if (!list_argument(c, attr, i, &list) || !constant_list(c, &list, "axes", values, MAX_RANK))
        return false;
    *is_given = list.is_given;
    for (uint32_t k = 0; k < list.n; k++) {
        if (!axis_of(c, values[k], rank, &axis)) return false;
        *axes |= 1u << axis;
    }
    return true;
}

/* The builder, in short. */

NodeId op1(Call *c, OpId op, NodeId x) {
    Operand operand = operand_tensor(x);
    return build_eltwise(c->im->b, op, 1, &operand);
}

NodeId op2(Call *c, OpId op, NodeId x, NodeId y) {
    Operand operands[] = {operand_tensor(x), operand_tensor(y)};
    return build_eltwise(c->im->b, op, 2, operands);
}

NodeId op2n(Call *c, OpId op, NodeId x, double value) {
    return x == NODE_NONE ? x : op2(c, op, x, constant(c, value, x));
}

NodeId op3(Call *c, OpId op, NodeId x, NodeId y, NodeId z) {
    Operand operands[] = {operand_tensor(x), operand_tensor(y), operand_tensor(z)};
    return build_eltwise(c->im->b, op, 3, operands);
}

NodeId cast_to(Call *c, NodeId x, Dtype dtype) {
    Operand operand = operand_tensor(x);
    return build_cast(c->im->b, &operand, dtype);
}

NodeId constant(Call *c, double value, NodeId like) {
    if (like == NODE_NONE) return like;
    Dtype dtype = dtype_of(c, like);
    Operand operand = operand_float(dtype_round(dtype, value));
    double limit = (double)DIM_LIMIT, whole = value > limit    ? limit
                                              : value < -limit ? -limit
                                                               : value;
    if (dtype_is_int(dtype)) operand = operand_int(number(c, isnan(value) ? 0 : (int64_t)whole));
    if (dtype_is_bool(dtype)) operand = operand_bool(value != 0);
    return build_const(c->im->b, &operand, dtype);
}

NodeId reshape_to(Call *c, NodeId x, const Shape *shape) {
    return build_reshape(c->im->b, x, (DimList){shape->rank, shape->dims});
}

NodeId reduce(Call *c, OpId op, NodeId x, uint32_t axes, bool keep) {
    return build_reduce(c->im->b, op, x, axes, keep);
}
