/* Reductions, products, and what is normalised by a reduction. */
#include "onnx/call/import_state.h"

#include <math.h>

/* Reductions. */

/* The axes of a reduction. False with *is_none: it reduces nothing. */
static bool reduced_axes(Call *c, NodeId x, uint32_t *axes, bool *is_none) {
    bool is_given = false;
    *is_none = false;
    if (x == NODE_NONE || !axes_argument(c, "axes", 1, shape_of(c, x)->rank, axes, &is_given))
        return false;
    if (*axes == 0 && attr_int(c, "noop_with_empty_axes", 0)) {
        *is_none = true;
        return true;
    }
    if (*axes == 0) *axes = (1u << shape_of(c, x)->rank) - 1;
    return true;
}

/* A reduction of x, which is computed from input 0 with its shape. */
static NodeId reduced(Call *c, OpId op, NodeId x) {
    uint32_t axes;
    bool is_none;
    if (!reduced_axes(c, x, &axes, &is_none)) return NODE_NONE;
    if (is_none || shape_of(c, x)->rank == 0) return x;
    return reduce(c, op, x, axes, attr_int(c, "keepdims", 1) != 0);
}

bool onnx_reduce(Call *c) {
    NodeId x = input(c, 0);
    if (x == NODE_NONE) return false;
    Dtype dtype = dtype_of(c, x);
    bool is_plain = dtype_in(dtype, op_info(c->op->id)->dtypes);
    if (!is_plain) x = cast_to(c, x, dtype_is_bool(dtype) ? DT_I32 : DT_F64);
    x = reduced(c, c->op->id, x);
    if (dtype_is_bool(dtype)) return output(c, 0, op2n(c, OP_GREATER, x, 0));
    return output(c, 0, is_plain ? x : cast_to(c, x, dtype));
}

bool onnx_reduce_sum_square(Call *c) {
    NodeId x = input(c, 0);
    return output(c, 0, reduced(c, OP_SUM, op2(c, OP_MUL, x, x)));
}

bool onnx_reduce_l1(Call *c) {
    return output(c, 0, reduced(c, OP_SUM, op1(c, OP_ABS, input(c, 0))));
}

/* A function of floats, of integers by way of f64. */
static NodeId through_float(Call *c, OpId op, NodeId x) {
    if (x == NODE_NONE || dtype_is_float(dtype_of(c, x))) return op1(c, op, x);
    return cast_to(c, op1(c, op, cast_to(c, x, DT_F64)), dtype_of(c, x));
}

bool onnx_reduce_l2(Call *c) {
    NodeId x = input(c, 0);
    return output(c, 0, through_float(c, OP_SQRT, reduced(c, OP_SUM, op2(c, OP_MUL, x, x))));
}

bool onnx_reduce_log_sum(Call *c) {
    return output(c, 0, through_float(c, OP_LOG, reduced(c, OP_SUM, input(c, 0))));
}

/* The maximum is taken off first, so that no exponential overflows; one that is infinite is not. */
bool onnx_reduce_log_sum_exp(Call *c) {
    NodeId x = input(c, 0);
    uint32_t axes;
    bool is_none;
    if (!reduced_axes(c, x, &axes, &is_none)) return false;
    if (is_none || shape_of(c, x)->rank == 0) return output(c, 0, x);
    NodeId most = reduce(c, OP_MAX, x, axes, true);
    NodeId is_finite = op2n(c, OP_LESS, op1(c, OP_ABS, most), INFINITY);
    most = op3(c, OP_WHERE, is_finite, most, constant(c, 0, x));
    NodeId sum = reduce(c, OP_SUM, op1(c, OP_EXP, op2(c, OP_SUB, x, most)), axes, true);
    NodeId result = op2(c, OP_ADD, op1(c, OP_LOG, sum), most);
    if (result == NODE_NONE || attr_int(c, "keepdims", 1)) return output(c, 0, result);
    Shape to = shape_reduced(c->im->b->dims, shape_of(c, x), axes, false);
    return output(c, 0, reshape_to(c, result, &to));
}

NodeId reversed(Call *c, NodeId x, uint32_t axis) {
    Slicing s = build_slicing(c->im->b, x);
    DimId n = shape_of(c, x)->dims[axis];
    DimId last = dim_sub(c->im->b->dims, n, number(c, 1));
    if (!build_slice_range(c->im->b, &s, axis, last, number(c, -1), -1)) return NODE_NONE;
    return build_slicing_finish(c->im->b, &s);
}

bool onnx_argreduce(Call *c) {
    NodeId x = input(c, 0);
    uint32_t axis;
    Dtype dtype;
    int64_t last;
    if (x == NODE_NONE || !axis_of(c, attr_int(c, "axis", 0), shape_of(c, x)->rank, &axis))
        return false;
    bool is_last = attr_int(c, "select_last_index", 0) != 0;
    DimId n = shape_of(c, x)->dims[axis];
    /* the last of equal elements is the first of the reversed axis */
    NodeId from = is_last ? reversed(c, x, axis) : x;
    NodeId index =
        build_argreduce(c->im->b, c->op->id, from, axis, attr_int(c, "keepdims", 1) != 0);
    if (is_last) {
        if (!dim_is_const(c->im->b->dims, n, &last))
            return onnx_fail(c, DIAG_NO_LOWERING, "select_last_index needs a constant extent");
        index = op2(c, OP_SUB, constant(c, (double)(last - 1), index), index);
    }
    if (!elem_dtype(ELEM_INT64, &dtype))
        return onnx_fail(c, DIAG_UNSUPPORTED_DTYPE, "the language has no dtype for int64");
    return output(c, 0, cast_to(c, index, dtype));
}

/* Elements one place further along the axis, behind what a scan of nothing gives. */
static NodeId shifted(Call *c, NodeId x, uint32_t axis, int64_t first) {
    DimId none[MAX_RANK], one[MAX_RANK], n = shape_of(c, x)->dims[axis];
    uint32_t rank = shape_of(c, x)->rank;
    bool is_float = dtype_is_float(dtype_of(c, x));
    Operand value = is_float ? operand_float((double)first) : operand_int(number(c, first));
    for (uint32_t k = 0; k < rank; k++) none[k] = one[k] = number(c, 0);
    one[axis] = number(c, 1);
    x = build_pad(c->im->b, x, (DimList){rank, one}, (DimList){rank, none}, &value);
    return part_of(c, x, axis, number(c, 0), n);
}

bool onnx_scan_op(Call *c) {
    NodeId x = input(c, 0);
    int64_t given;
    uint32_t axis;
    if (x == NODE_NONE || !int_argument(c, 1, 0, &given) ||
        !axis_of(c, given, shape_of(c, x)->rank, &axis))
        return false;
    bool is_reverse = attr_int(c, "reverse", 0) != 0;
    if (is_reverse) x = reversed(c, x, axis);
    if (attr_int(c, "exclusive", 0) && x != NODE_NONE)
        x = shifted(c, x, axis, c->op->id == OP_CUMPROD);
    x = build_scan(c->im->b, c->op->id, x, axis);
    return output(c, 0, is_reverse && x != NODE_NONE ? reversed(c, x, axis) : x);
}

/* Products. */

bool onnx_matmul(Call *c) {
    NodeId a = input(c, 0);
    return output(c, 0, matmul(c, a, input(c, 1)));
}

bool onnx_gemm(Call *c) {
    NodeId a = input(c, 0), b = input(c, 1);
    double alpha = attr_float(c, "alpha", 1), beta = attr_float(c, "beta", 1);
    if (attr_int(c, "transA", 0)) a = build_transpose(c->im->b, a, 2, NULL);
    if (attr_int(c, "transB", 0)) b = build_transpose(c->im->b, b, 2, NULL);
    NodeId y = matmul(c, a, b);
    if (alpha != 1) y = op2n(c, OP_MUL, y, alpha);
    if (!has_input(c, 2) || beta == 0) return output(c, 0, y);
    NodeId bias = input(c, 2);
    if (beta != 1) bias = op2n(c, OP_MUL, bias, beta);
    return output(c, 0, op2(c, OP_ADD, y, bias));
}

/* Softmax and its kin. */

typedef NodeId (*RowFunction)(Call *c, NodeId x, uint32_t axes);

NodeId softmax_over(Call *c, NodeId x, uint32_t axes) {
    NodeId e = op1(c, OP_EXP, op2(c, OP_SUB, x, reduce(c, OP_MAX, x, axes, true)));
    return op2(c, OP_DIV, e, reduce(c, OP_SUM, e, axes, true));
}

static NodeId log_softmax_rows(Call *c, NodeId x, uint32_t axes) {
    NodeId d = op2(c, OP_SUB, x, reduce(c, OP_MAX, x, axes, true));
    return op2(c, OP_SUB, d, op1(c, OP_LOG, reduce(c, OP_SUM, op1(c, OP_EXP, d), axes, true)));
}

/* 1 at the first largest element of each row, which has one axis. */
static NodeId hardmax_rows(Call *c, NodeId x, uint32_t axes) {
    if (x == NODE_NONE) return x;
    Shape shape = *shape_of(c, x);
    uint32_t axis = 0;
    while (!(axes >> axis & 1)) axis++;
    NodeId first = build_argreduce(c->im->b, OP_ARGMAX, x, axis, true);
    NodeId index = build_iota(c->im->b, (DimList){shape.rank, shape.dims}, axis, DT_I32);
    return op2(c, OP_EQUAL, index, first);
}

/* Before opset 13 the axes from `axis` on are one row, since then `axis` alone. */
static bool onnx_rows(Call *c, RowFunction rows) {
    NodeId x = input(c, 0);
    uint32_t axis = 0;
    if (x == NODE_NONE) return false;
    Dtype dtype = dtype_of(c, x);
    Shape shape = *shape_of(c, x), flat = {.rank = 2, .dims = {number(c, 1), number(c, 1)}};
    if (!axis_of(c, attr_int(c, "axis", c->opset < 13 ? 1 : -1), shape.rank, &axis)) return false;
    x = cast_to(c, x, dtype_compute(dtype));
    if (c->opset >= 13) return output(c, 0, cast_to(c, rows(c, x, 1u << axis), dtype));
    for (uint32_t k = 0; k < shape.rank; k++)
        flat.dims[k >= axis] = dim_mul(c->im->b->dims, flat.dims[k >= axis], shape.dims[k]);
    x = rows(c, reshape_to(c, x, &flat), 2);
    return output(c, 0, cast_to(c, reshape_to(c, x, &shape), dtype));
}

bool onnx_softmax(Call *c) {
    return onnx_rows(c, softmax_over);
}

bool onnx_log_softmax(Call *c) {
    return onnx_rows(c, log_softmax_rows);
}

bool onnx_hardmax(Call *c) {
    return onnx_rows(c, hardmax_rows);
}

/* Norms. */

NodeId per_channel(Call *c, NodeId vector, uint32_t rank) {
    if (vector == NODE_NONE) return vector;
    if (shape_of(c, vector)->rank != 1 || rank < 2) {
        onnx_fail(c, DIAG_SHAPE_MISMATCH, "it needs a vector with an element for each channel");
        return NODE_NONE;
    }
    Shape to = {.rank = rank};
    for (uint32_t k = 0; k < rank; k++)
        to.dims[k] = k == 1 ? shape_of(c, vector)->dims[0] : number(c, 1);
    return reshape_to(c, vector, &to);
}

/* Training: the mean and the variance of x in place of those given, which go on as outputs. */
static bool batch_statistics(Call *c, NodeId x, NodeId *mean, NodeId *variance) {
    double momentum = attr_float(c, "momentum", (double)0.9f);
    uint32_t axes = ((1u << shape_of(c, x)->rank) - 1) & ~2u;
    NodeId now[2] = {reduce(c, OP_MEAN, x, axes, true)};
    NodeId d = op2(c, OP_SUB, x, now[0]);
    now[1] = reduce(c, OP_MEAN, op2(c, OP_MUL, d, d), axes, true);
    for (uint32_t i = 0; i < 2; i++) {
        NodeId old = op2n(c, OP_MUL, input(c, 3 + i), momentum);
        if (old == NODE_NONE || now[i] == NODE_NONE) return false;
        now[i] = reshape_to(c, now[i], shape_of(c, old));
        NodeId part = op2n(c, OP_MUL, now[i], 1 - momentum);
        if (has_output(c, 1 + i)) output(c, 1 + i, op2(c, OP_ADD, old, part));
    }
    *mean = now[0], *variance = now[1];
    return true;
}

bool onnx_batch_norm(Call *c) {
    NodeId v[] = {input(c, 0), input(c, 1), input(c, 2), input(c, 3), input(c, 4)};
    if (v[0] == NODE_NONE) return false;
    if (c->opset < 9 && !attr_int(c, "spatial", 1))
        return onnx_fail(c, DIAG_NO_LOWERING, "spatial=0 is not supported");
    for (uint32_t i = 1; i < 5; i++)
        if (per_channel(c, v[i], shape_of(c, v[0])->rank) == NODE_NONE) return false;
    if (attr_int(c, "training_mode", 0) && !batch_statistics(c, v[0], &v[3], &v[4])) return false;
    const char *text = str_format(c->im->arena, "batchnorm(x, mean, variance, w, b, eps=%.17g)",
                                  attr_float(c, "epsilon", (double)1e-5f));
    return output(c, 0, express(c, text, 5, v));
}

/* (x - mean) / sqrt(variance + epsilon); the mean and the inverse deviation too, if wanted. */
static NodeId standardized(Call *c, NodeId x, uint32_t axes, double epsilon, NodeId *mean,
                           NodeId *inverse) {
    *mean = reduce(c, OP_MEAN, x, axes, true);
    NodeId d = op2(c, OP_SUB, x, *mean);
    NodeId variance = reduce(c, OP_MEAN, op2(c, OP_MUL, d, d), axes, true);
    NodeId root = op1(c, OP_SQRT, op2n(c, OP_ADD, variance, epsilon));
    *inverse = op2(c, OP_DIV, constant(c, 1, root), root);
    return op2(c, OP_DIV, d, root);
}

bool onnx_instance_norm(Call *c) {
    NodeId x = input(c, 0), mean, inverse;
    if (x == NODE_NONE) return false;
    uint32_t rank = shape_of(c, x)->rank, axes = ((1u << rank) - 1) & ~3u;
    Dtype dtype = dtype_of(c, x);
    x = standardized(c, cast_to(c, x, dtype_compute(dtype)), axes,
                     attr_float(c, "epsilon", (double)1e-5f), &mean, &inverse);
    NodeId scale = per_channel(c, input(c, 1), rank), bias = per_channel(c, input(c, 2), rank);
    x = op2(c, OP_MUL, cast_to(c, x, dtype), scale);
    return output(c, 0, op2(c, OP_ADD, x, bias));
}

bool onnx_group_norm(Call *c) {
    NodeId x = input(c, 0), mean, inverse;
    DimTab *dims = c->im->b->dims;
    int64_t n_groups = attr_int(c, "num_groups", 0);
    if (x == NODE_NONE) return false;
    Shape shape = *shape_of(c, x), cut = {.rank = 3, .dims = {shape.dims[0], number(c, n_groups)}};
    if (shape.rank < 2 || n_groups < 1)
        return onnx_fail(c, DIAG_BAD_ARGUMENT,
                         "it needs num_groups, and a tensor of 2 axes or more");
    Dtype dtype = dtype_of(c, x);
    cut.dims[2] = number(c, -1);
    x = reshape_to(c, cast_to(c, x, dtype_compute(dtype)), &cut);
    x = standardized(c, x, 4, attr_float(c, "epsilon", (double)1e-5f), &mean, &inverse);
    NodeId affine[2];
    for (uint32_t i = 0; i < 2; i++) {
        NodeId v = input(c, i + 1);
        if (v != NODE_NONE && c->opset < 21) { /* per group */
            Shape wide = {2,
                          {number(c, n_groups), dim_exact_div(dims, shape.dims[1], cut.dims[1])}};
            Shape tall = {2, {cut.dims[1], number(c, 1)}}, flat = {1, {shape.dims[1]}};
            v = build_expand(c->im->b, reshape_to(c, v, &tall), (DimList){2, wide.dims});
            v = reshape_to(c, v, &flat);
        }
        affine[i] = per_channel(c, v, shape.rank);
    }
    x = cast_to(c, reshape_to(c, x, &shape), dtype);
    return output(c, 0, op2(c, OP_ADD, op2(c, OP_MUL, x, affine[0]), affine[1]));
}

/* The axes from `axis` on. */
static bool last_axes(Call *c, NodeId x, uint32_t *axes) {
    uint32_t axis;
    if (x == NODE_NONE || !axis_of(c, attr_int(c, "axis", -1), shape_of(c, x)->rank, &axis))
        return false;
    *axes = ((1u << shape_of(c, x)->rank) - 1) & ~((1u << axis) - 1);
    return true;
}

bool onnx_layer_norm(Call *c) {
    NodeId x = input(c, 0), mean, inverse;
    uint32_t axes;
    if (!last_axes(c, x, &axes)) return false;
    Dtype dtype = dtype_of(c, x);
    x = standardized(c, cast_to(c, x, dtype_compute(dtype)), axes,
                     attr_float(c, "epsilon", (double)1e-5f), &mean, &inverse);
    x = cast_to(c, x, dtype);
    x = op2(c, OP_MUL, x, input(c, 1));
    if (has_input(c, 2)) x = op2(c, OP_ADD, x, input(c, 2));
    if (has_output(c, 1)) output(c, 1, mean);
    if (has_output(c, 2)) output(c, 2, inverse);
    return output(c, 0, x);
}

bool onnx_rms_norm(Call *c) {
    NodeId x = input(c, 0);
    uint32_t axes;
    if (!last_axes(c, x, &axes)) return false;
    Dtype dtype = dtype_of(c, x);
    NodeId z = cast_to(c, x, dtype_compute(dtype));
    NodeId square = reduce(c, OP_MEAN, op2(c, OP_MUL, z, z), axes, true);
    NodeId root = op1(c, OP_SQRT, op2n(c, OP_ADD, square, attr_float(c, "epsilon", (double)1e-5f)));
    x = cast_to(c, op2(c, OP_DIV, z, root), dtype);
    return output(c, 0, op2(c, OP_MUL, x, input(c, 1)));
}

/* The p-norm over axes, p being 1 or 2. */
static NodeId lp_norm(Call *c, NodeId x, uint32_t axes, int64_t p) {
    if (p == 1) return reduce(c, OP_SUM, op1(c, OP_ABS, x), axes, true);
    if (p == 2) return op1(c, OP_SQRT, reduce(c, OP_SUM, op2(c, OP_MUL, x, x), axes, true));
    NodeId sum = reduce(c, OP_SUM, op2n(c, OP_POW, op1(c, OP_ABS, x), (double)p), axes, true);
    return op2n(c, OP_POW, sum, 1 / (double)p);
}

bool onnx_lp_norm(Call *c) {
    NodeId x = input(c, 0);
    uint32_t axis;
    if (x == NODE_NONE || !axis_of(c, attr_int(c, "axis", -1), shape_of(c, x)->rank, &axis))
        return false;
    NodeId norm = lp_norm(c, x, 1u << axis, attr_int(c, "p", 2));
    NodeId is_zero = op2n(c, OP_EQUAL, norm, 0);
    norm = op3(c, OP_WHERE, is_zero, constant(c, 1, x), norm);
    return output(c, 0, op2(c, OP_DIV, x, norm));
}

bool onnx_global_lp_pool(Call *c) {
    NodeId x = input(c, 0);
    if (x == NODE_NONE) return false;
    uint32_t axes = ((1u << shape_of(c, x)->rank) - 1) & ~3u;
    return output(c, 0, lp_norm(c, x, axes, attr_int(c, "p", 2)));
}

bool onnx_global_pool(Call *c) {
    NodeId x = input(c, 0);
    if (x == NODE_NONE) return false;
    uint32_t axes = ((1u << shape_of(c, x)->rank) - 1) & ~3u;
    return output(c, 0, reduce(c, c->op->id, x, axes, true));
}

/* (x - mean) / (deviation + 1e-9) */
bool onnx_mean_variance_norm(Call *c) {
    static const int64_t usual[] = {0, 2, 3};
    NodeId x = input(c, 0);
    const VecInt *given;
    uint32_t axes = 0, axis;
    if (x == NODE_NONE) return false;
    bool has_axes = attr_ints(c, "axes", &given);
    for (uint32_t i = 0; i < (has_axes ? given->n : 3); i++) {
        if (!axis_of(c, has_axes ? given->data[i] : usual[i], shape_of(c, x)->rank, &axis))
            return false;
        axes |= 1u << axis;
    }
    NodeId d = op2(c, OP_SUB, x, reduce(c, OP_MEAN, x, axes, true));
    NodeId variance = reduce(c, OP_MEAN, op2(c, OP_MUL, d, d), axes, true);
    NodeId deviation = op2n(c, OP_ADD, op1(c, OP_SQRT, variance), 1e-9);
    return output(c, 0, op2(c, OP_DIV, d, deviation));
}
