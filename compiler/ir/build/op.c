/* Elementwise ops, casts, reductions, matmul: dtype and shape rules, read from the op table. See
 * build.h. */
#include "ir/build/build.h"
#include "ir/build/bytes.h"

/* What ops take. */

const char *build_arity_help(const Builder *b, OpId op) {
    const OpInfo *info = op_info(op);
    return str_format(b->arena, "It takes %u by position, `%s(%.*s)`: %s.", info->max_args,
                      info->name, (int)info->max_args * 3 - 2, "a, b, c", info->doc);
}

bool build_check_arity(Builder *b, OpId op, uint32_t n) {
    const OpInfo *info = op_info(op);
    const BuildPlace whole = {0};
    if (n >= info->min_args && n <= info->max_args) return true;
    BuildError *error =
        info->min_args == info->max_args
            ? build_fail(b, DIAG_WRONG_ARITY, whole, "`%s` takes %u argument%s, not %u", info->name,
                         info->min_args, info->min_args == 1 ? "" : "s", n)
            : build_fail(b, DIAG_WRONG_ARITY, whole, "`%s` takes %u or %u arguments, not %u",
                         info->name, info->min_args, info->max_args, n);
    error->help = build_arity_help(b, op);
    return false;
}

static const char *dtypes_help(const Builder *b, const OpInfo *info) {
    Text text = {.arena = b->arena};
    for (int i = 0, n = 0; i < DT_COUNT; i++)
        if (dtype_in((Dtype)i, info->dtypes))
            text_printf(&text, "%s%s", n++ ? ", " : "", dtype_name((Dtype)i));
    return str_format(b->arena, "`%s` takes %s; use cast(x, dtype).", info->name, text_str(&text));
}

bool build_check_dtype(Builder *b, OpId op, Dtype dtype) {
    const OpInfo *info = op_info(op);
    if (dtype_in(dtype, info->dtypes)) return true;
    build_fail(b, DIAG_UNSUPPORTED_DTYPE, (BuildPlace){0}, "`%s` does not take %s", info->name,
               dtype_name(dtype))
        ->help = dtypes_help(b, info);
    return false;
}

/* Advises a cast to the first operand's dtype if the op takes that, but from bool to a number. */
static void dtype_mismatch(Builder *b, OpId op, NodeId one, NodeId other) {
    const OpInfo *info = op_info(op);
    Dtype dtype = graph_node(b->graph, one)->dtype;
    Dtype other_dtype = graph_node(b->graph, other)->dtype;
    bool takes_other = dtype_in(other_dtype, info->dtypes);
    bool keeps_first = dtype_in(dtype, info->dtypes) && !(dtype_is_bool(dtype) && takes_other);
    Dtype from = keeps_first ? other_dtype : dtype, to = keeps_first ? dtype : other_dtype;
    BuildError *error =
        build_fail(b, DIAG_DTYPE_MISMATCH, (BuildPlace){0}, "operands of `%s` are %s and %s",
                   info->name, dtype_name(dtype), dtype_name(other_dtype));
    error->nodes[error->n_nodes++] = one;
    error->nodes[error->n_nodes++] = other;
    error->help =
        str_format(b->arena,
                   dtype_is_bool(from) ? "A bool is no number: write where(condition, x, 0), or "
                                         "cast(condition, %s)."
                                       : "Nothing is promoted silently: write cast(x, %s).",
                   dtype_name(to));
    if (op_info(op)->cls == CLASS_MATMUL && build_are_mixed_bytes(dtype, other_dtype))
        error->help = str_format(b->arena, "Write matmul(a, b, out=%s): its products are exact.",
                                 dtype_name(dtype_compute(dtype)));
}

/* The first operand that shares its dtype with the others: a select's condition does not. */
static uint32_t first_data(OpId op) {
    return op_info(op)->result == RESULT_SELECT;
}

/* Of the tensors, or of the numbers when there is none. */
bool build_common_dtype(Builder *b, OpId op, uint32_t n, const Operand *operands, Dtype *dtype) {
    const Operand *leader = NULL;
    uint32_t first = first_data(op);
    for (uint32_t i = first; i < n; i++) {
        if (operands[i].kind != OPERAND_TENSOR) continue;
        Dtype other = build_dtype_of(b, &operands[i]);
        if (leader && other != *dtype) {
            dtype_mismatch(b, op, leader->node, operands[i].node);
            return false;
        }
        if (!leader) leader = &operands[i];
        *dtype = other;
    }
    if (!leader) *dtype = build_dtype_of(b, &operands[first]);
    for (uint32_t i = first + 1; i < n && !leader; i++)
        if (operands[i].kind == OPERAND_FLOAT && dtype_is_int(*dtype)) *dtype = DT_F32;
    return build_check_dtype(b, op, *dtype);
}

static bool is_missing(uint32_t n, const Operand *operands) {
    for (uint32_t i = 0; i < n; i++)
        if (operands[i].kind == OPERAND_TENSOR && operands[i].node == NODE_NONE) return true;
    return false;
}

/* Elementwise. */

static bool broadcast(Builder *b, OpId op, uint32_t n, const NodeId *args, Shape *shape) {
    *shape = (Shape){0};
    for (uint32_t i = 0; i < n; i++) {
        const Shape *other = build_shape_of(b, args[i]);
        if (shape_broadcast(b->dims, shape, other)) continue;
        const char *so_far = shape_str(b->dims, b->arena, shape);
        BuildError *error = build_fail(
            b, DIAG_SHAPE_MISMATCH, (BuildPlace){0}, "shapes of `%s` do not broadcast: %s and %s",
            op_info(op)->name, so_far, shape_str(b->dims, b->arena, other));
        for (uint32_t k = 0; k <= i; k++)
            if (!graph_is_literal(b->graph, args[k])) error->nodes[error->n_nodes++] = args[k];
        return false;
    }
    return true;
}

/* The first operand of a select. */
static bool check_condition(Builder *b, OpId op, const Operand *operand) {
    Dtype dtype = build_dtype_of(b, operand);
    if (dtype_is_bool(dtype)) return true;
    build_fail(b, DIAG_DTYPE_MISMATCH, (BuildPlace){.arg = 1},
               "the condition of `%s` is %s, not bool", op_info(op)->name, dtype_name(dtype))
        ->help = "Compare it: `x != 0`.";
    return false;
}

NodeId build_eltwise(Builder *b, OpId op, uint32_t n, const Operand *given) {
    const OpInfo *info = op_info(op);
    Operand operands[BUILD_MAX_OPERANDS] = {0};
    NodeId args[BUILD_MAX_OPERANDS];
    if (!build_check_arity(b, op, n) || is_missing(n, given)) return NODE_NONE;
    memcpy(operands, given, n * sizeof *given);
    if (n < info->max_args) operands[n++] = operand_float(info->default_last);
    uint32_t first = first_data(op);
    Node node = {.op = op, .n_args = n, .args = args};
    if (first) {
        if (!check_condition(b, op, &operands[0])) return NODE_NONE;
        args[0] = build_const_at(b, (BuildPlace){.arg = 1}, &operands[0], DT_BOOL);
        if (args[0] == NODE_NONE) return NODE_NONE;
    }
    if (!build_common_dtype(b, op, n, operands, &node.dtype)) return NODE_NONE;
    for (uint32_t i = first; i < n; i++) {
        args[i] = build_const_at(b, (BuildPlace){.arg = i + 1}, &operands[i], node.dtype);
        if (args[i] == NODE_NONE) return NODE_NONE;
    }
    if (!broadcast(b, op, n, args, &node.shape)) return NODE_NONE;
    if (info->result == RESULT_BOOL) node.dtype = DT_BOOL;
    return build_checked_node(b, node);
}

NodeId build_cast(Builder *b, const Operand *x, Dtype dtype) {
    double number;
    int64_t whole;
    if (is_missing(1, x)) return NODE_NONE;
    if (x->kind != OPERAND_TENSOR && !build_literal_problem(b, x, dtype, &number, &whole)) {
        Node node = {.op = OP_CONST, .dtype = dtype, .attrs = {.number = number, .whole = whole}};
        return build_node(b, (BuildPlace){0}, node);
    }
    NodeId arg = build_tensor(b, x);
    if (arg == NODE_NONE || graph_node(b->graph, arg)->dtype == dtype) return arg;
    Node node = {
        .op = OP_CAST, .dtype = dtype, .shape = *build_shape_of(b, arg), .n_args = 1, .args = &arg};
    return build_checked_node(b, node);
}

NodeId build_bitcast(Builder *b, const Operand *x, Dtype dtype) {
    if (is_missing(1, x)) return NODE_NONE;
    NodeId arg = build_tensor(b, x);
    if (arg == NODE_NONE) return NODE_NONE;
    Dtype from = graph_node(b->graph, arg)->dtype;
    if (from == dtype) return arg;
    if (dtype_bytes(from) != dtype_bytes(dtype)) {
        build_fail(b, DIAG_UNSUPPORTED_DTYPE, (BuildPlace){.arg = 2},
                   "`bitcast` of %s, %u bytes, to %s, %u bytes", dtype_name(from),
                   dtype_bytes(from), dtype_name(dtype), dtype_bytes(dtype))
            ->help = "Cast to an integer of the other width before or after.";
        return NODE_NONE;
    }
    Node node = {.op = OP_BITCAST,
                 .dtype = dtype,
                 .shape = *build_shape_of(b, arg),
                 .n_args = 1,
                 .args = &arg};
    return build_checked_node(b, node);
}

/* Reductions. */

bool build_default_axis(Builder *b, OpId op, uint32_t rank, uint32_t *axis) {
    const char *name = op_info(op)->name;
    const BuildPlace whole = {0};
    *axis = 0;
    if (rank == 1) return true;
    if (op_info(op)->cls == CLASS_ARGREDUCE || op_info(op)->cls == CLASS_SCAN ||
        op_info(op)->cls == CLASS_SORT)
        build_fail(b, DIAG_BAD_AXIS, whole, "`%s` needs `axis=` for a tensor of rank %u", name,
                   rank);
    else
        build_fail(b, DIAG_BAD_AXIS, whole, "`%s` of rank %u needs `axis=`", name, rank);
    return false;
}

NodeId build_reduce(Builder *b, OpId op, NodeId x, uint32_t axes, bool keep) {
    if (x == NODE_NONE) return NODE_NONE;
    const Node *arg = graph_node(b->graph, x);
    uint32_t rank = arg->shape.rank, axis;
    if (!build_check_dtype(b, op, arg->dtype)) return NODE_NONE;
    if (axes == BUILD_ALL_AXES) axes = (1u << rank) - 1;
    for (uint32_t k = rank; k < 32; k++)
        if (axes >> k & 1 && !build_check_axis(b, (BuildPlace){.arg = 2}, k, rank, &axis))
            return NODE_NONE;
    if (axes == 0) return x; /* over nothing: each is its own */
    Node node = {.op = op,
                 .dtype = arg->dtype,
                 .shape = shape_reduced(b->dims, &arg->shape, axes, keep),
                 .n_args = 1,
                 .args = &x,
                 .attrs = {.axes = axes, .keep = keep}};
    return build_checked_node(b, node);
}

/* The argument of an op along one axis, and the axis. NULL, after a report, if the op cannot take
 * them. */
static const Node *check_along(Builder *b, OpId op, NodeId x, int64_t number, uint32_t *axis) {
    if (x == NODE_NONE) return NULL;
    const Node *arg = graph_node(b->graph, x);
    bool is_good = build_check_dtype(b, op, arg->dtype) &&
                   build_check_axis(b, (BuildPlace){.arg = 2}, number, arg->shape.rank, axis);
    return is_good ? arg : NULL;
}

NodeId build_argreduce(Builder *b, OpId op, NodeId x, int64_t number, bool keep) {
    uint32_t axis;
    const Node *arg = check_along(b, op, x, number, &axis);
    if (!arg) return NODE_NONE;
    Node node = {.op = op,
                 .dtype = DT_I32,
                 .shape = shape_reduced(b->dims, &arg->shape, 1u << axis, keep),
                 .n_args = 1,
                 .args = &x,
                 .attrs = {.axes = 1u << axis, .keep = keep}};
    return build_node(b, (BuildPlace){0}, node);
}

NodeId build_scan(Builder *b, OpId op, NodeId x, int64_t number) {
    uint32_t axis;
    const Node *arg = check_along(b, op, x, number, &axis);
    if (!arg) return NODE_NONE;
    Node node = {.op = op,
                 .dtype = op_info(op)->cls == CLASS_SORT ? DT_I32 : arg->dtype,
                 .shape = arg->shape,
                 .n_args = 1,
                 .args = &x,
                 .attrs.axes = 1u << axis};
    return build_node(b, (BuildPlace){0}, node);
}

/* The numbers of segments: indices, one for each element. */
static bool check_ids(Builder *b, OpId op, NodeId x, NodeId ids) {
    const char *name = op_info(op)->name;
    const Node *elems = graph_node(b->graph, x), *numbers = graph_node(b->graph, ids);
    BuildError *error;
    if (!dtype_in(numbers->dtype, DTS_INDEX)) {
        error = build_fail(b, DIAG_DTYPE_MISMATCH, (BuildPlace){.arg = 2},
                           "`ids` of `%s` is %s, not i32 or i64", name, dtype_name(numbers->dtype));
        error->help = "Write cast(ids, i32).";
        return false;
    }
    if (shape_equal(&elems->shape, &numbers->shape)) return true;
    error = build_fail(b, DIAG_SHAPE_MISMATCH, (BuildPlace){.arg = 2},
                       "`%s` takes `x` and `ids` of one shape, not %s and %s", name,
                       shape_str(b->dims, b->arena, &elems->shape),
                       shape_str(b->dims, b->arena, &numbers->shape));
    error->help = "Reshape and expand `ids`: it has a number for each element of `x`.";
    return false;
}

NodeId build_segments(Builder *b, OpId op, NodeId x, NodeId ids, DimId n_segments, int64_t number) {
    uint32_t axis;
    const Node *arg = check_along(b, op, x, number, &axis);
    if (!arg || ids == NODE_NONE || !n_segments || !check_ids(b, op, x, ids)) return NODE_NONE;
    if (arg->shape.rank == MAX_RANK) {
        build_fail(b, DIAG_LIMIT, (BuildPlace){.arg = 1}, "`%s` takes a rank of at most %d",
                   op_info(op)->name, MAX_RANK - 1)
            ->help = "Reshape the axes before `axis`, or those behind it, to one.";
        return NODE_NONE;
    }
    Node node = {.op = op,
                 .dtype = arg->dtype,
                 .shape = arg->shape,
                 .n_args = 2,
                 .args = (NodeId[]){x, ids},
                 .attrs.axes = 1u << axis};
    node.shape.dims[axis] = n_segments;
    return build_checked_node(b, node);
}

/* Matmul. */

/* A rank-1 operand as a matrix: a row on the left, a column on the right. */
static bool as_matrix(Builder *b, NodeId *node, bool is_left) {
    const Shape shape = *build_shape_of(b, *node);
    if (shape.rank != 1) return true;
    DimId one = dim_const(b->dims, 1);
    Shape matrix = {.rank = 2, .dims = {is_left ? one : shape.dims[0], shape.dims[0]}};
    if (!is_left) matrix.dims[1] = one;
    *node = build_reshaped(b, *node, &matrix);
    return *node != NODE_NONE;
}

static NodeId matmul_mismatch(Builder *b, NodeId left, NodeId right, const char *what) {
    const char *left_shape = shape_str(b->dims, b->arena, build_shape_of(b, left));
    const char *right_shape = shape_str(b->dims, b->arena, build_shape_of(b, right));
    BuildError *error = build_fail(b, DIAG_SHAPE_MISMATCH, (BuildPlace){0},
                                   "%s of `@` differ: %s and %s", what, left_shape, right_shape);
    error->nodes[error->n_nodes++] = left;
    error->nodes[error->n_nodes++] = right;
    return NODE_NONE;
}

/* The product without the row of a vector on the left, the column of one on the right. */
static NodeId drop_vector_axes(Builder *b, NodeId gemm, bool row, bool column) {
    const Shape from = *build_shape_of(b, gemm);
    Shape to = {0};
    for (uint32_t k = 0; k < from.rank; k++) {
        bool is_dropped = (row && k + 2 == from.rank) || (column && k + 1 == from.rank);
        if (!is_dropped) to.dims[to.rank++] = from.dims[k];
    }
    return build_reshaped(b, gemm, &to);
}

static bool check_precision(Builder *b, Precision precision, Dtype dtype) {
    if (precision == PRECISION_FULL || dtype_is_single(dtype)) return true;
    build_fail(b, DIAG_UNSUPPORTED_DTYPE, (BuildPlace){.arg = 3},
               "`precision=\"%s\"` is for operands of f32, not %s", precision_name(precision),
               dtype_name(dtype));
    return false;
}

bool build_check_out(Builder *b, BuildPlace at, Dtype dtype, const Dtype *out, Dtype *result) {
    Dtype compute = dtype_compute(dtype);
    *result = out ? *out : dtype;
    if (*result == dtype || *result == compute) return true;
    BuildError *error = build_fail(b, DIAG_UNSUPPORTED_DTYPE, at, "a product of %s gives no %s",
                                   dtype_name(dtype), dtype_name(*result));
    error->help =
        compute == dtype
            ? str_format(b->arena, "It gives %s: cast the operands or the product.",
                         dtype_name(dtype))
            : str_format(b->arena, "It gives %s, or %s with `out=%s`; cast that to any other.",
                         dtype_name(dtype), dtype_name(compute), dtype_name(compute));
    return false;
}

static uint32_t rank_of(const Builder *b, const Operand *operand) {
    return operand->kind == OPERAND_TENSOR ? build_shape_of(b, operand->node)->rank : 0;
}

/* Whether the operands are different 8-bit floats, whose product has the dtype in which it is
 * computed. */
static bool mixes_f8(const Builder *b, const Operand operands[2], const Dtype *out) {
    if (!out || operands[0].kind != OPERAND_TENSOR || operands[1].kind != OPERAND_TENSOR)
        return false;
    Dtype left = build_dtype_of(b, &operands[0]), right = build_dtype_of(b, &operands[1]);
    return left != right && dtype_in(left, DTS_STORED) && dtype_in(right, DTS_STORED) &&
           *out == dtype_compute(left);
}

/* Whether the operands are i8 and u8, and the result what their products are exact in. */
static bool mixes_bytes(const Builder *b, const Operand operands[2], const Dtype *out) {
    if (!out || operands[0].kind != OPERAND_TENSOR || operands[1].kind != OPERAND_TENSOR)
        return false;
    Dtype left = build_dtype_of(b, &operands[0]), right = build_dtype_of(b, &operands[1]);
    return build_are_mixed_bytes(left, right) && *out == dtype_compute(left);
}

static bool operands_dtype(Builder *b, const Operand operands[2], const Dtype *out, Dtype *dtype) {
    if (!mixes_f8(b, operands, out)) return build_common_dtype(b, OP_MATMUL, 2, operands, dtype);
    *dtype = build_dtype_of(b, &operands[0]);
    return true;
}

NodeId build_matmul(Builder *b, const Operand *left, const Operand *right, Precision precision,
                    const Dtype *out) {
    const Operand operands[2] = {*left, *right};
    NodeId args[2] = {left->node, right->node};
    Node node = {.op = OP_MATMUL, .n_args = 2, .args = args, .attrs.precision = precision};
    Dtype dtype;
    if (is_missing(2, operands)) return NODE_NONE;
    if (mixes_bytes(b, operands, out) && precision == PRECISION_FULL)
        return build_mixed_bytes(b, left, right);
    if (!operands_dtype(b, operands, out, &dtype) || !check_precision(b, precision, dtype) ||
        !build_check_out(b, (BuildPlace){.arg = 4}, dtype, out, &node.dtype))
        return NODE_NONE;
    uint32_t left_rank = rank_of(b, left), right_rank = rank_of(b, right);
    if (left_rank == 0 || right_rank == 0) {
        build_fail(b, DIAG_SHAPE_MISMATCH, (BuildPlace){0}, "an operand of `@` is a scalar")->help =
            "Write `*` to scale.";
        return NODE_NONE;
    }
    if (!as_matrix(b, &args[0], true) || !as_matrix(b, &args[1], false)) return NODE_NONE;
    Shape a = *build_shape_of(b, args[0]), c = *build_shape_of(b, args[1]);
    if (a.dims[a.rank - 1] != c.dims[c.rank - 2])
        return matmul_mismatch(b, left->node, right->node, "contracted extents");
    if (!matmul_shape(b->dims, &a, &c, &node.shape))
        return matmul_mismatch(b, left->node, right->node, "leading axes");
    if (node.shape.rank == MAX_RANK) { /* a kernel has its axes and the contracted one */
        build_fail(b, DIAG_LIMIT, (BuildPlace){0},
                   "a matmul of rank %d, but at most %d is supported", MAX_RANK, MAX_RANK - 1);
        return NODE_NONE;
    }
    NodeId id = build_checked_node(b, node);
    return id == NODE_NONE ? id : drop_vector_axes(b, id, left_rank == 1, right_rank == 1);
}
