/* Views (transpose, reshape, expand, pad, gather, slice, split), concat and iota. See build.h. */
#include "ir/build/build.h"

#include <stdlib.h>

/* A view of one argument. */
static NodeId add_view(Builder *b, OpId op, NodeId x, const Shape *shape, const Attrs *attrs) {
    Node node = {.op = op,
                 .dtype = graph_node(b->graph, x)->dtype,
                 .shape = *shape,
                 .n_args = 1,
                 .args = &x,
                 .attrs = *attrs};
    return build_checked_node(b, node);
}

bool build_check_perm(Builder *b, NodeId x, uint32_t n) {
    const Shape *from = build_shape_of(b, x);
    if (n == from->rank) return true;
    build_fail(b, DIAG_BAD_AXIS, (BuildPlace){.arg = 2},
               "`perm` must list the %u axes of %s, not a list of %u", from->rank,
               shape_str(b->dims, b->arena, from), n);
    return false;
}

NodeId build_transpose(Builder *b, NodeId x, uint32_t n, const int64_t *perm) {
    if (x == NODE_NONE || (perm && !build_check_perm(b, x, n))) return NODE_NONE;
    const Shape from = *build_shape_of(b, x);
    Shape to = from;
    AxisAttrs per_axis = {0};
    bool is_identity = true;
    uint32_t seen = 0;
    for (uint32_t k = 0; k < from.rank; k++) {
        uint32_t axis = from.rank - 1 - k;
        const BuildPlace at = {.arg = 2, .item = k + 1};
        if (perm && !build_next_axis(b, at, perm[k], from.rank, "perm", &seen, &axis))
            return NODE_NONE;
        per_axis.perm[k] = (uint8_t)axis;
        to.dims[k] = from.dims[axis];
        is_identity = is_identity && axis == k;
    }
    return is_identity ? x : add_view(b, OP_TRANSPOSE, x, &to, &(Attrs){.per_axis = &per_axis});
}

/* Reshape. */

/* A reshape of no elements is zeros: it depends on no value, so that none is computed for it.
 * The coordinates of its argument may be without those of the loops that run zero times. A load at
 * them would precede these loops, at an address where the argument may have no element. */
NodeId build_reshaped(Builder *b, NodeId x, const Shape *shape) {
    if (shape_equal(build_shape_of(b, x), shape)) return x;
    if (!dim_equals_const(b->dims, shape_n_elems(b->dims, shape), 0))
        return add_view(b, OP_RESHAPE, x, shape, &(Attrs){0});
    const Operand zero = operand_int(dim_const(b->dims, 0));
    return add_view(b, OP_EXPAND, build_const(b, &zero, graph_node(b->graph, x)->dtype), shape,
                    &(Attrs){0});
}

/* The largest number that divides every coefficient of the dim and `with`. */
static int64_t common_factor(const DimTab *dims, DimId dim, int64_t with) {
    int64_t factor = with;
    for (uint32_t i = 0; i <= dim_n_terms(dims, dim); i++) {
        int64_t c = i ? dim_term(dims, dim, i - 1).coefficient : dim_constant_part(dims, dim);
        while (c) {
            int64_t rest = factor % c;
            factor = c;
            c = rest;
        }
        if (factor < 0) factor = -factor;
    }
    return factor;
}

/* total / divisor, DIM_NONE unless exact for all values; in lowest terms. */
static DimId divide_exactly(DimTab *dims, DimId total, int64_t divisor) {
    int64_t factor = common_factor(dims, total, divisor);
    if (divisor < 1 || factor < 1) return DIM_NONE;
    DimId numerator = dim_exact_div(dims, total, dim_const(dims, factor));
    DimId rest = dim_const(dims, divisor / factor);
    DimId quotient = numerator ? dim_div(dims, numerator, rest) : DIM_NONE;
    if (!quotient) return DIM_NONE;
    return dim_prove_equal(dims, dim_mul(dims, quotient, rest), numerator) ? quotient : DIM_NONE;
}

/* The extent for axis `inferred` that makes `to` hold `total` elements, or DIM_NONE. Constant
 * extents that do not divide at once are put together and divided last. */
static DimId infer_extent(DimTab *dims, DimId total, const Shape *to, uint32_t inferred) {
    DimId rest = total, constant = dim_const(dims, 1);
    int64_t value;
    for (uint32_t k = 0; k < to->rank && rest; k++) {
        if (k == inferred) continue;
        if (dim_equals_const(dims, to->dims[k], 0)) return DIM_NONE;
        DimId quotient = dim_exact_div(dims, rest, to->dims[k]);
        if (quotient)
            rest = quotient;
        else if (dim_is_const(dims, to->dims[k], &value))
            constant = dim_mul(dims, constant, to->dims[k]);
        else
            return DIM_NONE;
    }
    if (!rest || !constant || !dim_is_const(dims, constant, &value)) return DIM_NONE;
    return divide_exactly(dims, rest, value);
}

static NodeId bad_reshape(Builder *b, NodeId x, const Shape *to) {
    Text text = {.arena = b->arena};
    for (uint32_t k = 0; k < to->rank; k++)
        text_printf(&text, "%s%s", k ? ", " : "", dim_str(b->dims, b->arena, to->dims[k]));
    BuildError *error =
        build_fail(b, DIAG_BAD_RESHAPE, (BuildPlace){0}, "cannot reshape %s into (%s): %s",
                   shape_str(b->dims, b->arena, build_shape_of(b, x)), text_str(&text),
                   "element counts differ");
    error->nodes[error->n_nodes++] = x;
    return NODE_NONE;
}

NodeId build_reshape(Builder *b, NodeId x, DimList shape) {
    Shape to;
    if (x == NODE_NONE || !build_shape(b, shape, &to)) return NODE_NONE;
    const Shape from = *build_shape_of(b, x);
    DimId known = dim_const(b->dims, 1), total = shape_n_elems(b->dims, &from);
    uint32_t inferred = UINT32_MAX;
    for (uint32_t k = 0; k < to.rank; k++) {
        if (!dim_equals_const(b->dims, to.dims[k], -1)) {
            known = dim_mul(b->dims, known, to.dims[k]);
            continue;
        }
        if (inferred != UINT32_MAX) {
            build_fail(b, DIAG_BAD_RESHAPE, (BuildPlace){.arg = 2, .item = k + 1},
                       "only one extent may be -1");
            return NODE_NONE;
        }
        inferred = k;
    }
    if (inferred != UINT32_MAX) {
        DimId extent = infer_extent(b->dims, total, &to, inferred);
        if (!extent) return bad_reshape(b, x, &to);
        to.dims[inferred] = extent;
    } else if (!known || !dim_prove_equal(b->dims, known, total)) {
        return bad_reshape(b, x, &to);
    }
    return build_reshaped(b, x, &to);
}

/* Expand and pad. */

/* Puts the extents of `from` in place of -1. */
static void keep_extents(Builder *b, const Shape *from, Shape *to) {
    for (uint32_t k = 0; k < from->rank && k < to->rank; k++) {
        DimId *extent = &to->dims[to->rank - 1 - k];
        if (dim_equals_const(b->dims, *extent, -1)) *extent = from->dims[from->rank - 1 - k];
    }
}

NodeId build_expand(Builder *b, NodeId x, DimList shape) {
    Shape to;
    if (x == NODE_NONE || !build_shape(b, shape, &to)) return NODE_NONE;
    const Shape from = *build_shape_of(b, x);
    keep_extents(b, &from, &to);
    Shape joint = to;
    if (!shape_broadcast(b->dims, &joint, &from) || !shape_equal(&joint, &to)) {
        const char *from_text = shape_str(b->dims, b->arena, &from);
        BuildError *error =
            build_fail(b, DIAG_SHAPE_MISMATCH, (BuildPlace){0}, "cannot expand %s to %s", from_text,
                       shape_str(b->dims, b->arena, &to));
        error->nodes[error->n_nodes++] = x;
        return NODE_NONE;
    }
    return shape_equal(&from, &to) ? x : add_view(b, OP_EXPAND, x, &to, &(Attrs){0});
}

static bool check_amount(Builder *b, uint32_t arg, const char *what, DimId amount) {
    if (dim_lo(b->dims, amount) >= 0) return true;
    build_fail(b, DIAG_BAD_ARGUMENT, (BuildPlace){.arg = arg}, "`%s` can be negative: %s", what,
               dim_str(b->dims, b->arena, amount))
        ->help = "Write a slice to take elements away.";
    return false;
}

bool build_check_pad(Builder *b, NodeId x, DimList low, DimList high) {
    uint32_t rank = build_shape_of(b, x)->rank;
    if (!build_check_per_axis(b, (BuildPlace){.arg = 2}, "low", low.n, rank) ||
        !build_check_per_axis(b, (BuildPlace){.arg = 3}, "high", high.n, rank))
        return false;
    for (uint32_t k = 0; k < rank; k++)
        if (!check_amount(b, 2, "low", low.dims[k]) || !check_amount(b, 3, "high", high.dims[k]))
            return false;
    return true;
}

NodeId build_pad(Builder *b, NodeId x, DimList low, DimList high, const Operand *value) {
    if (x == NODE_NONE || !build_check_pad(b, x, low, high)) return NODE_NONE;
    const Shape from = *build_shape_of(b, x);
    Shape to = from;
    AxisAttrs per_axis = {0};
    Attrs attrs = {.per_axis = &per_axis};
    for (uint32_t k = 0; k < from.rank; k++) {
        per_axis.begin[k] = low.dims[k];
        DimId inner = dim_add(b->dims, low.dims[k], from.dims[k]);
        to.dims[k] = dim_add(b->dims, inner, high.dims[k]);
    }
    Dtype dtype = graph_node(b->graph, x)->dtype;
    if (value &&
        !build_literal(b, (BuildPlace){.arg = 4}, value, dtype, &attrs.number, &attrs.whole))
        return NODE_NONE;
    return shape_equal(&from, &to) ? x : add_view(b, OP_PAD, x, &to, &attrs);
}

/* Gather and iota. */

bool build_check_gather(Builder *b, NodeId data, NodeId indices) {
    Dtype dtype = graph_node(b->graph, indices)->dtype;
    if (!dtype_in(dtype, DTS_INDEX))
        build_fail(b, DIAG_UNSUPPORTED_DTYPE, (BuildPlace){.arg = 2},
                   "indices of `gather` must be i32 or i64, not %s", dtype_name(dtype));
    else if (build_shape_of(b, data)->rank == 0)
        build_fail(b, DIAG_BAD_AXIS, (BuildPlace){.arg = 1}, "a scalar has no axis to gather");
    else
        return true;
    return false;
}

NodeId build_gather(Builder *b, NodeId data, NodeId indices, int64_t number) {
    uint32_t axis;
    if (data == NODE_NONE || indices == NODE_NONE || !build_check_gather(b, data, indices))
        return NODE_NONE;
    const Shape from = *build_shape_of(b, data), rows = *build_shape_of(b, indices);
    if (!build_check_axis(b, (BuildPlace){.arg = 3}, number, from.rank, &axis) ||
        !build_check_rank(b, from.rank - 1 + rows.rank))
        return NODE_NONE;
    NodeId args[2] = {data, indices};
    Node node = {.op = OP_GATHER,
                 .dtype = graph_node(b->graph, data)->dtype,
                 .shape = shape_gathered(&from, &rows, axis),
                 .n_args = 2,
                 .args = args,
                 .attrs.axis = (int32_t)axis};
    return build_checked_node(b, node);
}

/* Updates. */

static bool check_starts(Builder *b, OpId op, NodeId starts, uint32_t rank) {
    const Node *node = graph_node(b->graph, starts);
    const BuildPlace at = {.arg = 3};
    int64_t n;
    if (!dtype_in(node->dtype, DTS_INDEX)) {
        build_fail(b, DIAG_DTYPE_MISMATCH, at, "`starts` of `%s` are %s, not i32 or i64",
                   op_info(op)->name, dtype_name(node->dtype))
            ->help = "Write cast(starts, i32).";
        return false;
    }
    if (node->shape.rank == 1 && dim_is_const(b->dims, node->shape.dims[0], &n) && n == rank)
        return true;
    build_fail(b, DIAG_SHAPE_MISMATCH, at, "`starts` of `%s` have the shape %s, not (%u,)",
               op_info(op)->name, shape_str(b->dims, b->arena, &node->shape), rank)
        ->help = "They have a number for each axis.";
    return false;
}

NodeId build_update(Builder *b, OpId op, NodeId x, NodeId update, NodeId starts) {
    if (x == NODE_NONE || update == NODE_NONE || starts == NODE_NONE) return NODE_NONE;
    const Node *from = graph_node(b->graph, x), *part = graph_node(b->graph, update);
    bool fits = part->shape.rank == from->shape.rank;
    for (uint32_t k = 0; fits && k < from->shape.rank; k++)
        fits = dim_always_le(b->dims, part->shape.dims[k], from->shape.dims[k]);
    if (from->dtype != part->dtype) {
        build_fail(b, DIAG_DTYPE_MISMATCH, (BuildPlace){.arg = 2}, "operands of `%s` are %s and %s",
                   op_info(op)->name, dtype_name(from->dtype), dtype_name(part->dtype))
            ->help = "Nothing is promoted silently: cast the update.";
        return NODE_NONE;
    }
    if (!fits || from->shape.rank == 0) {
        build_fail(b, DIAG_SHAPE_MISMATCH, (BuildPlace){.arg = 2},
                   "an update of the shape %s may not fit into %s",
                   shape_str(b->dims, b->arena, &part->shape),
                   shape_str(b->dims, b->arena, &from->shape))
            ->help = "It has the rank of `x`, at least 1, and no extent that can be greater.";
        return NODE_NONE;
    }
    if (!check_starts(b, op, starts, from->shape.rank)) return NODE_NONE;
    Node node = {.op = op,
                 .dtype = from->dtype,
                 .shape = from->shape,
                 .n_args = 3,
                 .args = (NodeId[]){x, update, starts}};
    return build_checked_node(b, node);
}

NodeId build_iota(Builder *b, DimList shape, int64_t number, Dtype dtype) {
    uint32_t axis;
    Node node = {.op = OP_IOTA, .dtype = dtype};
    if (!dtype_in(dtype, DTS_INDEX)) {
        build_fail(b, DIAG_UNSUPPORTED_DTYPE, (BuildPlace){.arg = 3},
                   "`iota` gives i32 or i64, not %s", dtype_name(dtype))
            ->help = "Write a cast around it.";
        return NODE_NONE;
    }
    if (!build_shape(b, shape, &node.shape) ||
        !build_check_axis(b, (BuildPlace){.arg = 2}, number, shape.n, &axis))
        return NODE_NONE;
    node.attrs.axis = (int32_t)axis;
    return build_checked_node(b, node);
}

/* Concat. */

static NodeId concat_mismatch(Builder *b, NodeId one, NodeId other, DiagId id, const char *what) {
    const Node *a = graph_node(b->graph, one), *c = graph_node(b->graph, other);
    const char *a_type = shape_type_str(b->dims, b->arena, a->dtype, &a->shape);
    BuildError *error = build_fail(b, id, (BuildPlace){0}, "%s of `concat` differ: %s and %s", what,
                                   a_type, shape_type_str(b->dims, b->arena, c->dtype, &c->shape));
    error->nodes[error->n_nodes++] = one;
    error->nodes[error->n_nodes++] = other;
    return NODE_NONE;
}

static bool fits_beside(const Shape *a, const Shape *b, uint32_t axis) {
    if (a->rank != b->rank) return false;
    for (uint32_t k = 0; k < a->rank; k++)
        if (k != axis && a->dims[k] != b->dims[k]) return false;
    return true;
}

bool build_check_n_concat(Builder *b, uint32_t n) {
    if (n > 0 && n <= MAX_CONCAT_ARGS) return true;
    build_fail(b, DIAG_BAD_ARGUMENT, (BuildPlace){.arg = 1},
               "`concat` takes a list of 1 to %d tensors, not a list of %u", MAX_CONCAT_ARGS, n);
    return false;
}

bool build_check_concat(Builder *b, NodeId first) {
    if (build_shape_of(b, first)->rank > 0) return true;
    build_fail(b, DIAG_BAD_AXIS, (BuildPlace){.arg = 1}, "scalars have no axis to concat along");
    return false;
}

enum { CONCAT_FAN = 24 }; /* what one kernel reads comfortably; longer lists become trees */

/* The concatenation of `n` checked nodes; `model` has everything but the arguments and the extent
 * of the joined axis. `nodes` is overwritten. */
static NodeId join_nodes(Builder *b, Node model, NodeId *nodes, uint32_t n) {
    uint32_t axis = (uint32_t)model.attrs.axis;
    while (n > CONCAT_FAN) {
        uint32_t n_joined = 0;
        for (uint32_t i = 0; i < n; i += CONCAT_FAN) {
            uint32_t n_part = n - i < CONCAT_FAN ? n - i : CONCAT_FAN;
            NodeId part = n_part == 1 ? nodes[i] : join_nodes(b, model, nodes + i, n_part);
            if (part == NODE_NONE) return NODE_NONE;
            nodes[n_joined++] = part;
        }
        n = n_joined;
    }
    model.n_args = n;
    model.args = nodes;
    model.shape.dims[axis] = dim_const(b->dims, 0);
    for (uint32_t i = 0; i < n; i++)
        model.shape.dims[axis] =
            dim_add(b->dims, model.shape.dims[axis], build_shape_of(b, nodes[i])->dims[axis]);
    return build_node(b, (BuildPlace){0}, model);
}

NodeId build_concat(Builder *b, uint32_t n, const NodeId *xs, int64_t number) {
    uint32_t axis;
    if (!build_check_n_concat(b, n) || vec_among(xs, n, NODE_NONE) ||
        !build_check_concat(b, xs[0]) ||
        !build_check_axis(b, (BuildPlace){.arg = 2}, number, build_shape_of(b, xs[0])->rank, &axis))
        return NODE_NONE;
    const Node first = *graph_node(b->graph, xs[0]);
    Node node = {
        .op = OP_CONCAT, .dtype = first.dtype, .shape = first.shape, .attrs.axis = (int32_t)axis};
    for (uint32_t i = 1; i < n; i++) {
        const Node *other = graph_node(b->graph, xs[i]);
        if (other->dtype != first.dtype)
            return concat_mismatch(b, xs[0], xs[i], DIAG_DTYPE_MISMATCH, "dtypes");
        if (!fits_beside(&first.shape, &other->shape, axis))
            return concat_mismatch(b, xs[0], xs[i], DIAG_SHAPE_MISMATCH,
                                   "extents beside the joined axis");
        node.shape.dims[axis] = dim_add(b->dims, node.shape.dims[axis], other->shape.dims[axis]);
    }
    if (!build_check_shape(b, &node.shape)) return NODE_NONE;
    if (n == 1) return xs[0];
    NodeId *nodes = arena_array(b->arena, NodeId, n);
    memcpy(nodes, xs, n * sizeof *xs);
    return join_nodes(b, node, nodes, n);
}

/* Slices. Bounds must be provable for every value of the dims: an access that could fall outside is
 * an error here, never a clamp. */

Slicing build_slicing(Builder *b, NodeId x) {
    Slicing s = {.x = x};
    if (x == NODE_NONE) return s;
    s.from = s.to = *build_shape_of(b, x);
    for (uint32_t k = 0; k < s.from.rank; k++) {
        s.per_axis.begin[k] = dim_const(b->dims, 0);
        s.per_axis.step[k] = 1;
    }
    return s;
}

/* The slice node, unless it takes everything, then a reshape without the dropped axes. */
NodeId build_slicing_finish(Builder *b, Slicing *s) {
    NodeId id = s->x;
    if (id == NODE_NONE) return NODE_NONE;
    bool is_whole = true;
    for (uint32_t k = 0; k < s->to.rank; k++) {
        bool is_empty = dim_equals_const(b->dims, s->to.dims[k], 0);
        if (is_empty && s->per_axis.step[k] < 0) s->per_axis.begin[k] = dim_const(b->dims, 0);
        if (is_empty ? s->per_axis.step[k] < 0 : dim_equals_const(b->dims, s->to.dims[k], 1))
            s->per_axis.step[k] = 1;
        is_whole = is_whole && s->per_axis.step[k] == 1 && s->to.dims[k] == s->from.dims[k];
    }
    if (!is_whole) id = add_view(b, OP_SLICE, s->x, &s->to, &(Attrs){.per_axis = &s->per_axis});
    if (!s->dropped || id == NODE_NONE) return id;
    Shape rest = {0};
    for (uint32_t k = 0; k < s->to.rank; k++)
        if (!(s->dropped >> k & 1)) rest.dims[rest.rank++] = s->to.dims[k];
    return build_reshaped(b, id, &rest);
}

/* a <= c is required: says that it does not hold or is not known, and what would make it known. */
static bool require_le(Builder *b, BuildPlace at, NodeId x, const char *what, DimId a, DimId c) {
    DimTab *dims = b->dims;
    if (dim_prove_le(dims, a, c)) return true;
    const char *a_text = dim_str(dims, b->arena, a), *c_text = dim_str(dims, b->arena, c);
    bool never = dim_lo(dims, a) > dim_hi(dims, c);
    BuildError *error =
        never ? build_fail(b, DIAG_SLICE_BOUNDS, at, "%s out of range: %s is more than %s", what,
                           a_text, c_text)
              : build_fail(b, DIAG_SLICE_BOUNDS, at,
                           "%s may be out of range: %s <= %s is not known to hold for all dims",
                           what, a_text, c_text);
    error->nodes[error->n_nodes++] = x;
    if (never) return false;
    int64_t value;
    uint32_t symbol;
    error->symbols = dim_symbols_used(dims, a) | dim_symbols_used(dims, c);
    if (dim_is_const(dims, a, &value) && dim_is_symbol(dims, c, &symbol) &&
        value <= dim_hi(dims, c))
        error->help = str_format(b->arena, "Declare `dim %s in %lld..%lld`.", c_text,
                                 (long long)value, (long long)dim_hi(dims, c));
    return false;
}

static bool require_nonnegative(Builder *b, BuildPlace at, NodeId x, const char *what, DimId a) {
    if (dim_prove_le(b->dims, dim_const(b->dims, 0), a)) return true;
    const char *text = dim_str(b->dims, b->arena, a);
    int64_t value;
    BuildError *error =
        dim_is_const(b->dims, a, &value)
            ? build_fail(b, DIAG_SLICE_BOUNDS, at, "%s out of range: it lies at %s", what, text)
            : build_fail(b, DIAG_SLICE_BOUNDS, at,
                         "%s may be out of range: %s can be as low as %lld", what, text,
                         (long long)dim_lo(b->dims, a));
    error->nodes[error->n_nodes++] = x;
    error->symbols = dim_symbols_used(b->dims, a);
    return false;
}

static bool require_extent(Builder *b, DimId extent, const char *what) {
    if (extent != DIM_NONE) return true;
    build_fail(b, DIAG_DIM_OVERFLOW, (BuildPlace){0}, "%s can pass 2^62", what);
    return false;
}

bool build_bound(Builder *b, DimId given, DimId extent, DimId *bound) {
    *bound = given;
    if (dim_hi(b->dims, given) < 0) *bound = dim_add(b->dims, extent, given);
    return require_extent(b, *bound, "subscript");
}

bool build_slice_index(Builder *b, Slicing *s, uint32_t axis, DimId at) {
    const BuildPlace place = {.arg = 1};
    DimId extent = s->from.dims[axis], one = dim_const(b->dims, 1);
    if (!require_nonnegative(b, place, s->x, "index", at) ||
        !require_le(b, place, s->x, "index", at, dim_sub(b->dims, extent, one)))
        return false;
    s->per_axis.begin[axis] = at;
    s->to.dims[axis] = one;
    s->dropped |= 1u << axis;
    return true;
}

static bool check_step(Builder *b, BuildPlace at, int64_t step) {
    if (build_is_step(step)) return true;
    build_fail(b, DIAG_BAD_ARGUMENT, at, "a step must be an integer other than 0");
    return false;
}

static bool check_upward(Builder *b, const Slicing *s, uint32_t axis, DimId begin, DimId end) {
    const BuildPlace begin_at = {.arg = 1}, end_at = {.arg = 2};
    return require_nonnegative(b, begin_at, s->x, "begin of the slice", begin) &&
           require_le(b, begin_at, s->x, "begin of the slice", begin, end) &&
           require_le(b, end_at, s->x, "end of the slice", end, s->from.dims[axis]);
}

/* -1 <= end <= begin < extent */
static bool check_downward(Builder *b, const Slicing *s, uint32_t axis, DimId begin, DimId end) {
    const BuildPlace begin_at = {.arg = 1}, end_at = {.arg = 2};
    DimId one = dim_const(b->dims, 1), first = dim_add(b->dims, end, one);
    return require_nonnegative(b, end_at, s->x, "end of the slice plus 1", first) &&
           require_le(b, end_at, s->x, "end of the slice", end, begin) &&
           require_le(b, begin_at, s->x, "begin of the slice", begin,
                      dim_sub(b->dims, s->from.dims[axis], one));
}

bool build_slice_range(Builder *b, Slicing *s, uint32_t axis, DimId begin, DimId end,
                       int64_t step) {
    if (!check_step(b, (BuildPlace){.arg = 3}, step) ||
        !(step > 0 ? check_upward : check_downward)(b, s, axis, begin, end))
        return false;
    s->per_axis.begin[axis] = begin;
    s->per_axis.step[axis] = step;
    int64_t stride = llabs(step);
    DimId length = step > 0 ? dim_sub(b->dims, end, begin) : dim_sub(b->dims, begin, end);
    bool is_exact = length && dim_multiple(b->dims, length) % stride == 0;
    s->to.dims[axis] = is_exact ? dim_div(b->dims, length, dim_const(b->dims, stride))
                                : dim_ceil_div(b->dims, length, stride);
    return require_extent(b, s->to.dims[axis], "slice");
}

/* The first and the last element taken lie inside. */
static bool check_slice_axis(Builder *b, const Slicing *s, uint32_t axis) {
    const BuildPlace begin_at = {.arg = 2}, extent_at = {.arg = 3};
    DimTab *dims = b->dims;
    DimId one = dim_const(dims, 1), begin = s->per_axis.begin[axis], extent = s->to.dims[axis];
    int64_t step = s->per_axis.step[axis];
    if (step > 0 && !require_nonnegative(b, begin_at, s->x, "begin of the slice", begin))
        return false;
    if (!require_nonnegative(b, extent_at, s->x, "extent of the slice", extent)) return false;
    if (dim_equals_const(dims, extent, 0)) return true;
    DimId last = dim_mul_const(dims, dim_sub(dims, extent, one), step);
    if (last) last = dim_add(dims, begin, last);
    DimId end = last ? dim_add(dims, last, one) : DIM_NONE;
    if (!require_extent(b, end, "slice")) return false;
    if (step > 0)
        return require_le(b, extent_at, s->x, "end of the slice", end, s->from.dims[axis]);
    DimId top = dim_sub(dims, s->from.dims[axis], one);
    return require_le(b, begin_at, s->x, "begin of the slice", begin, top) &&
           require_nonnegative(b, extent_at, s->x, "last element of the slice", last);
}

NodeId build_slice(Builder *b, NodeId x, DimList begin, DimList shape, DimList step) {
    Slicing s = build_slicing(b, x);
    uint32_t rank = s.from.rank;
    const BuildPlace step_at = {.arg = 4};
    if (x == NODE_NONE ||
        !build_check_per_axis(b, (BuildPlace){.arg = 2}, "begin", begin.n, rank) ||
        !build_check_per_axis(b, (BuildPlace){.arg = 3}, "shape", shape.n, rank) ||
        (step.n && !build_check_per_axis(b, step_at, "step", step.n, rank)))
        return NODE_NONE;
    for (uint32_t k = 0; k < rank; k++) {
        s.per_axis.begin[k] = begin.dims[k];
        s.to.dims[k] = shape.dims[k];
    }
    for (uint32_t k = 0; k < rank; k++) {
        int64_t *number = &s.per_axis.step[k];
        if (step.n && !dim_is_const(b->dims, step.dims[k], number)) *number = 0;
        if (!check_step(b, step_at, *number) || !check_slice_axis(b, &s, k)) return NODE_NONE;
    }
    return build_slicing_finish(b, &s);
}

/* Split. */

bool build_check_split(Builder *b, NodeId x) {
    if (build_shape_of(b, x)->rank > 0) return true;
    build_fail(b, DIAG_BAD_AXIS, (BuildPlace){.arg = 1}, "a scalar has no axis to split");
    return false;
}

bool build_check_n_parts(Builder *b, uint32_t n) {
    if (n > 0 && n <= MAX_CONCAT_ARGS) return true;
    build_fail(b, DIAG_BAD_ARGUMENT, (BuildPlace){.arg = 2},
               "`parts` lists 1 to %d extents, not %u", MAX_CONCAT_ARGS, n);
    return false;
}

bool build_check_part(Builder *b, BuildPlace at, DimId size) {
    if (dim_lo(b->dims, size) >= 0) return true;
    const Operand operand = operand_int(size);
    build_fail(b, DIAG_BAD_ARGUMENT, at,
               "an extent of `parts` must be a nonnegative integer, not %s",
               build_describe(b, &operand));
    return false;
}

static bool check_parts(Builder *b, DimList sizes, DimId extent) {
    DimId total = dim_const(b->dims, 0);
    if (!build_check_n_parts(b, sizes.n)) return false;
    for (uint32_t i = 0; i < sizes.n; i++) {
        const BuildPlace at = {.arg = 2, .item = i + 1};
        if (!build_check_part(b, at, sizes.dims[i])) return false;
        total = dim_add(b->dims, total, sizes.dims[i]);
    }
    if (total && dim_prove_equal(b->dims, total, extent)) return true;
    build_fail(b, DIAG_SHAPE_MISMATCH, (BuildPlace){.arg = 2},
               "parts add up to %s, but the extent is %s", dim_str(b->dims, b->arena, total),
               dim_str(b->dims, b->arena, extent));
    return false;
}

/* Slices of the given sizes side by side. */
static bool take_parts(Builder *b, NodeId x, DimList sizes, uint32_t axis, NodeId *parts) {
    DimId begin = dim_const(b->dims, 0);
    for (uint32_t i = 0; i < sizes.n; i++) {
        Slicing s = build_slicing(b, x);
        s.per_axis.begin[axis] = begin;
        s.to.dims[axis] = sizes.dims[i];
        parts[i] = build_slicing_finish(b, &s);
        if (parts[i] == NODE_NONE) return false;
        begin = dim_add(b->dims, begin, sizes.dims[i]);
    }
    return true;
}

bool build_split(Builder *b, NodeId x, DimList sizes, int64_t number, NodeId *parts) {
    uint32_t axis;
    return x != NODE_NONE && build_check_split(b, x) &&
           build_check_axis(b, (BuildPlace){.arg = 3}, number, build_shape_of(b, x)->rank, &axis) &&
           check_parts(b, sizes, build_shape_of(b, x)->dims[axis]) &&
           take_parts(b, x, sizes, axis, parts);
}

/* The extent of each of `parts` equal parts, or DIM_NONE. */
static DimId even_size(Builder *b, DimId parts, DimId extent, int64_t *n) {
    const Operand operand = operand_int(parts);
    if (!dim_is_const(b->dims, parts, n) || *n < 1 || *n > MAX_CONCAT_ARGS) {
        build_fail(b, DIAG_BAD_ARGUMENT, (BuildPlace){.arg = 2},
                   "`parts` must be a list of extents or a count from 1 to %d, not %s",
                   MAX_CONCAT_ARGS, build_describe(b, &operand));
        return DIM_NONE;
    }
    DimId size = dim_div(b->dims, extent, parts);
    if (size && dim_prove_equal(b->dims, dim_mul(b->dims, size, parts), extent)) return size;
    build_fail(b, DIAG_SHAPE_MISMATCH, (BuildPlace){0},
               "extent %s does not divide into %lld equal parts",
               dim_str(b->dims, b->arena, extent), (long long)*n);
    return DIM_NONE;
}

bool build_split_evenly(Builder *b, NodeId x, DimId n, int64_t number, NodeId *parts,
                        uint32_t *n_parts) {
    uint32_t axis;
    int64_t count;
    if (x == NODE_NONE || !build_check_split(b, x) ||
        !build_check_axis(b, (BuildPlace){.arg = 3}, number, build_shape_of(b, x)->rank, &axis))
        return false;
    DimId size = even_size(b, n, build_shape_of(b, x)->dims[axis], &count);
    if (!size) return false;
    *n_parts = (uint32_t)count;
    DimId *sizes = arena_array(b->arena, DimId, *n_parts);
    for (uint32_t i = 0; i < *n_parts; i++) sizes[i] = size;
    return take_parts(b, x, (DimList){*n_parts, sizes}, axis, parts);
}
