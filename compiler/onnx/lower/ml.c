/* Ops of the domain ai.onnx.ml, classical machine learning. x: [n, features] */
#include "onnx/call/import_state.h"

#include <math.h>

bool onnx_binarizer(Call *c) {
    NodeId x = input(c, 0);
    if (x == NODE_NONE) return false;
    NodeId is_above = op2n(c, OP_GREATER, x, attr_float(c, "threshold", 0));
    return output(c, 0, cast_to(c, is_above, dtype_of(c, x)));
}

/* x: [.., n], indices: [k] or [1, k] -> [.., k], of a vector [1, k] */
bool onnx_array_feature_extractor(Call *c) {
    static const int64_t all[] = {-1};
    NodeId x = input(c, 0), indices = reshape_const(c, cast_to(c, input(c, 1), DT_I32), 1, all);
    if (x == NODE_NONE) return false;
    if (shape_of(c, x)->rank == 1) x = with_axis(c, x, 0);
    return output(c, 0, build_gather(c->im->b, x, indices, -1));
}

NodeId onnx_ml_table(Call *c, const char *name, Dtype dtype, uint32_t rank, const int64_t *dims) {
    const OnnxAttr *attr = find_attr(c, name);
    int64_t n = 1;
    for (uint32_t k = 0; k < rank; k++) n *= dims[k];
    if (attr && attr->floats.n && attr->floats.n == n)
        return table_node(c, dtype, rank, dims, attr->floats.data);
    onnx_fail(c, DIAG_WRONG_COUNT, "its attribute `%s` needs %lld numbers", name, (long long)n);
    return NODE_NONE;
}

int64_t onnx_ml_n_floats(const Call *c, const char *name) {
    const OnnxAttr *attr = find_attr(c, name);
    return attr ? attr->floats.n : 0;
}

NodeId onnx_ml_rows(Call *c, int64_t *n_features) {
    NodeId x = input(c, 0);
    if (x == NODE_NONE) return x;
    if (!dtype_is_double(dtype_of(c, x))) x = cast_to(c, x, DT_F32);
    if (shape_of(c, x)->rank == 1) x = with_axis(c, x, 0);
    if (shape_of(c, x)->rank == 2 &&
        dim_is_const(c->im->b->dims, shape_of(c, x)->dims[1], n_features) && *n_features > 0)
        return x;
    onnx_fail(c, DIAG_NO_LOWERING, "it needs a tensor [n, features] with a constant extent");
    return NODE_NONE;
}

/* x as f32: [n, features] */
static NodeId rows_in(Call *c, int64_t *n_features) {
    return cast_to(c, onnx_ml_rows(c, n_features), DT_F32);
}

/* (x - offset) * scale */
bool onnx_ml_scaler(Call *c) {
    int64_t n, n_offsets = onnx_ml_n_floats(c, "offset"), n_scales = onnx_ml_n_floats(c, "scale");
    NodeId x = rows_in(c, &n);
    if (x == NODE_NONE) return false;
    if (n_offsets)
        x = op2(c, OP_SUB, x,
                onnx_ml_table(c, "offset", DT_F32, 1, n_offsets == 1 ? &n_offsets : &n));
    if (n_scales)
        x = op2(c, OP_MUL, x, onnx_ml_table(c, "scale", DT_F32, 1, n_scales == 1 ? &n_scales : &n));
    return output(c, 0, x);
}

/* Each row over its largest element, or over its 1- or 2-norm, unless that is 0. */
bool onnx_ml_normalizer(Call *c) {
    int64_t n;
    NodeId x = rows_in(c, &n), size;
    if (x == NODE_NONE) return false;
    Str norm = attr_string(c, "norm", "MAX");
    if (strcmp(norm, "MAX") == 0)
        size = reduce(c, OP_MAX, x, 1u << 1, true);
    else if (strcmp(norm, "L1") == 0)
        size = reduce(c, OP_SUM, op1(c, OP_ABS, x), 1u << 1, true);
    else if (strcmp(norm, "L2") == 0)
        size = op1(c, OP_SQRT, reduce(c, OP_SUM, op2(c, OP_MUL, x, x), 1u << 1, true));
    else
        return onnx_fail(c, DIAG_BAD_ARGUMENT, "there is no norm `%s`", norm);
    if (size == NODE_NONE) return false;
    NodeId is_zero = op2n(c, OP_EQUAL, size, 0);
    return output(c, 0, op2(c, OP_DIV, x, where(c, is_zero, constant(c, 1, size), size)));
}

/* A missing number of each feature becomes another. Missing are NaN, or a number that is given. */
bool onnx_ml_imputer(Call *c) {
    int64_t n, n_values = onnx_ml_n_floats(c, "imputed_value_floats");
    if (n_values == 0)
        return onnx_fail(c, DIAG_NO_LOWERING, "it needs the attribute `imputed_value_floats`");
    NodeId x = rows_in(c, &n);
    if (x == NODE_NONE) return false;
    NodeId values =
        onnx_ml_table(c, "imputed_value_floats", DT_F32, 1, n_values == 1 ? &n_values : &n);
    double missing = attr_float(c, "replaced_value_float", 0);
    NodeId is_missing = isnan(missing) ? op2(c, OP_NOT_EQUAL, x, x) : op2n(c, OP_EQUAL, x, missing);
    if (values == NODE_NONE) return false;
    return output(c, 0, where(c, is_missing, expand_to(c, values, shape_of(c, x)), x));
}

/* Tensors [n, features k] beside each other. */
bool onnx_ml_feature_vectorizer(Call *c) {
    NodeId parts[MAX_CONCAT_ARGS];
    uint32_t n = c->node->inputs.n;
    if (n > MAX_CONCAT_ARGS) return onnx_fail(c, DIAG_LIMIT, "it has too many inputs");
    for (uint32_t i = 0; i < n; i++) {
        parts[i] = cast_to(c, input(c, i), DT_F32);
        if (parts[i] == NODE_NONE) return false;
        if (shape_of(c, parts[i])->rank == 1) parts[i] = with_axis(c, parts[i], 1);
    }
    return output(c, 0, build_concat(c->im->b, n, parts, 1));
}

/* Linear models. */

/* [n, n_rows]: x times the transposed coefficients [n_rows, features], plus intercepts. */
static NodeId linear_scores(Call *c, int64_t n_rows) {
    int64_t n;
    NodeId x = rows_in(c, &n);
    if (x == NODE_NONE) return x;
    NodeId factors = onnx_ml_table(c, "coefficients", DT_F32, 2, (int64_t[]){n_rows, n});
    NodeId scores = factors == NODE_NONE ? factors : matmul(c, x, move_axis(c, factors, 1, 0));
    if (onnx_ml_n_floats(c, "intercepts") == 0 || scores == NODE_NONE) return scores;
    return op2(c, OP_ADD, scores, onnx_ml_table(c, "intercepts", DT_F32, 1, &n_rows));
}

NodeId onnx_ml_transformed(Call *c, NodeId scores) {
    Str how = attr_string(c, "post_transform", "NONE");
    if (scores == NODE_NONE || strcmp(how, "NONE") == 0) return scores;
    if (strcmp(how, "LOGISTIC") == 0) return op1(c, OP_SIGMOID, scores);
    if (strcmp(how, "SOFTMAX") == 0) return softmax_over(c, scores, 1u << 1);
    onnx_fail(c, DIAG_NO_LOWERING, "its post_transform `%s` is not supported", how);
    return NODE_NONE;
}

bool onnx_ml_linear_regressor(Call *c) {
    int64_t n_targets = attr_int(c, "targets", 1);
    if (n_targets < 1 || n_targets > onnx_ml_n_floats(c, "coefficients"))
        return onnx_fail(c, DIAG_BAD_ARGUMENT, "it has no coefficients for its targets");
    return output(c, 0, onnx_ml_transformed(c, linear_scores(c, n_targets)));
}

bool onnx_ml_output_best(Call *c, NodeId scores, const VecInt *labels) {
    if (scores == NODE_NONE) return false;
    double *numbers = arena_array(c->im->arena, double, labels->n + 1);
    int64_t n = labels->n;
    for (uint32_t i = 0; i < labels->n; i++) numbers[i] = (double)labels->data[i];
    NodeId table = table_node(c, DT_I64, 1, &n, numbers);
    NodeId best = build_argreduce(c->im->b, OP_ARGMAX, scores, 1, false);
    return output(c, 0, build_gather(c->im->b, table, best, 0));
}

bool onnx_ml_output_classes(Call *c, NodeId scores, const VecInt *labels) {
    return onnx_ml_output_best(c, scores, labels) &&
           output(c, 1, cast_to(c, onnx_ml_transformed(c, scores), DT_F32));
}

bool onnx_ml_labels(Call *c, const char *name, const VecInt **labels) {
    if (attr_ints(c, name, labels) && (*labels)->n > 1) return true;
    if (find_attr(c, "classlabels_strings"))
        return onnx_fail(c, DIAG_UNSUPPORTED_DTYPE,
                         "its labels are strings, which the language has no dtype for; number the "
                         "classes before the model is trained");
    return onnx_fail(c, DIAG_NO_LOWERING, "it needs the attribute `%s` with two labels or more",
                     name);
}

bool onnx_ml_linear_classifier(Call *c) {
    const VecInt *labels;
    return onnx_ml_labels(c, "classlabels_ints", &labels) &&
           onnx_ml_output_classes(c, linear_scores(c, labels->n), labels);
}

/* Codes. */

/* Whether each element is each of some numbers: x [..], numbers [k] -> [.., k] */
static NodeId is_each(Call *c, NodeId x, NodeId numbers) {
    if (x == NODE_NONE || numbers == NODE_NONE) return NODE_NONE;
    x = with_axis(c, x, shape_of(c, x)->rank);
    return x == NODE_NONE ? x : op2(c, OP_EQUAL, x, numbers);
}

/* The integers or floats of an attribute, or of two, one of each; NULL: there are none, or one that
 * no f64 has. */
static const double *numbers_of(Call *c, const char *ints, const char *floats, int64_t *n,
                                Dtype *dtype) {
    const VecInt *list;
    const OnnxAttr *attr = find_attr(c, floats);
    if (attr && attr->floats.n) {
        *n = attr->floats.n;
        *dtype = DT_F32;
        return attr->floats.data;
    }
    if (!attr_ints(c, ints, &list) || list->n == 0) return NULL;
    double *numbers = arena_array(c->im->arena, double, list->n);
    for (uint32_t i = 0; i < list->n; i++) {
        numbers[i] = (double)list->data[i];
        if (fabs(numbers[i]) >= 0x1p53) return NULL;
    }
    *n = list->n;
    *dtype = DT_I64;
    return numbers;
}

/* A number for each key; the default for what is no key. */
bool onnx_ml_label_encoder(Call *c) {
    int64_t n = 0, n_values = 0;
    Dtype of_keys = DT_I64, of_values = DT_I64;
    const double *keys = numbers_of(c, "keys_int64s", "keys_floats", &n, &of_keys);
    const double *values = numbers_of(c, "values_int64s", "values_floats", &n_values, &of_values);
    NodeId x = input(c, 0);
    if (x == NODE_NONE) return false;
    if (!keys || !values)
        return onnx_fail(c, DIAG_NO_LOWERING, "it needs numbers below 2^53 as keys and as values");
    if (n != n_values)
        return onnx_fail(c, DIAG_WRONG_COUNT, "it has %lld keys and %lld values", (long long)n,
                         (long long)n_values);
    NodeId found = is_each(c, cast_to(c, x, of_keys), table_node(c, of_keys, 1, &n, keys));
    if (found == NODE_NONE) return false;
    uint32_t last = shape_of(c, found)->rank - 1;
    NodeId hits = cast_to(c, found, DT_I32);
    NodeId place = build_argreduce(c->im->b, OP_ARGMAX, hits, (int32_t)last, false);
    NodeId value = build_gather(c->im->b, table_node(c, of_values, 1, &n, values), place, 0);
    NodeId is_key = op2n(c, OP_GREATER, reduce(c, OP_MAX, hits, 1u << last, false), 0);
    double otherwise = dtype_is_float(of_values) ? attr_float(c, "default_float", -0.0)
                                                 : (double)attr_int(c, "default_int64", -1);
    if (value == NODE_NONE || is_key == NODE_NONE) return false;
    return output(c, 0, where(c, is_key, value, constant(c, otherwise, value)));
}

/* 1 at the place of the element among the categories, else 0: x [..] -> [.., categories] */
bool onnx_ml_one_hot_encoder(Call *c) {
    int64_t n = 0;
    Dtype dtype = DT_I64;
    NodeId x = input(c, 0);
    const double *numbers = numbers_of(c, "cats_int64s", "cats_int64s", &n, &dtype);
    if (x == NODE_NONE) return false;
    if (!numbers || attr_int(c, "zeros", 1) == 0)
        return onnx_fail(c, DIAG_NO_LOWERING,
                         "it needs integers as categories, and zeros for other elements");
    NodeId is_there = is_each(c, cast_to(c, x, DT_I64), table_node(c, DT_I64, 1, &n, numbers));
    return output(c, 0, cast_to(c, is_there, DT_F32));
}
