/* Attention and rotary embeddings. Heads are an axis: q: [b, h, s, d], k: [b, g, t, d],
 * v: [b, g, t, e]; each of the g heads of k and v serves h / g heads of q. */
#include "onnx/call/import_state.h"

#include <math.h>

/* [b, s, h * d] -> [b, h, s, d]; a tensor of 4 axes stays. */
static NodeId heads(Call *c, NodeId x, int64_t n) {
    static const int64_t perm[] = {0, 2, 1, 3};
    if (x == NODE_NONE || shape_of(c, x)->rank != 3) return x;
    Shape from = *shape_of(c, x);
    if (n < 1) {
        onnx_fail(c, DIAG_BAD_ARGUMENT, "tensors of 3 axes need the number of heads");
        return NODE_NONE;
    }
    Shape to = {4, {from.dims[0], from.dims[1], number(c, n), DIM_NONE}};
    to.dims[3] = dim_exact_div(c->im->b->dims, from.dims[2], to.dims[2]);
    return transpose(c, reshape_to(c, x, &to), perm);
}

/* [b, h, s, d] -> [b, s, h * d] */
static NodeId merged(Call *c, NodeId x) {
    static const int64_t perm[] = {0, 2, 1, 3};
    x = transpose(c, x, perm);
    if (x == NODE_NONE) return x;
    Shape from = *shape_of(c, x), to = {3, {from.dims[0], from.dims[1]}};
    to.dims[2] = dim_mul(c->im->b->dims, from.dims[2], from.dims[3]);
    return reshape_to(c, x, &to);
}

/* [b, g, t, d] -> [b, h, t, d]: each head several times, one after the other. */
static NodeId shared(Call *c, NodeId x, DimId n_heads) {
    if (x == NODE_NONE || shape_of(c, x)->dims[1] == n_heads) return x;
    Shape to = *shape_of(c, x), wide = {.rank = 5};
    for (uint32_t k = 0; k < 5; k++) wide.dims[k] = to.dims[k < 2 ? k : k - 1];
    wide.dims[2] = dim_exact_div(c->im->b->dims, n_heads, to.dims[1]);
    to.dims[1] = n_heads;
    return reshape_to(c, expand_to(c, with_axis(c, x, 2), &wide), &to);
}

typedef struct Attention {
    NodeId q, k, v;
    NodeId bias;       /* added to the scores; NODE_NONE: none */
    NodeId offset;     /* keys before the first query: a number, or [b, 1, 1, 1]; NODE_NONE: 0 */
    NodeId valid;      /* i32[b, 1, 1, 1]: keys that are there; NODE_NONE: all */
    Dtype dtype, wide; /* of q; of the softmax */
} Attention;

static NodeId added(Call *c, NodeId a, NodeId b) {
    return a == NODE_NONE ? b : op2(c, OP_ADD, a, b);
}

static NodeId bias_where(Call *c, const Attention *a, NodeId allowed) {
    NodeId zero = constant(c, 0, a->q);
    return where(c, allowed, zero, constant(c, -INFINITY, a->q));
}

/* The mask, with its last axis as long as the keys. */
static bool add_mask(Call *c, Attention *a) {
    NodeId mask = input(c, 3);
    DimTab *dims = c->im->b->dims;
    if (mask == NODE_NONE) return !has_input(c, 3);
    uint32_t rank = shape_of(c, mask)->rank;
    if (rank < 1 || rank > 4)
        return onnx_fail(c, DIAG_SHAPE_MISMATCH, "attn_mask has %u axes", rank);
    DimId low[MAX_RANK], high[MAX_RANK], n = shape_of(c, a->k)->dims[2];
    for (uint32_t i = 0; i < rank; i++) low[i] = high[i] = number(c, 0);
    bool is_bool = dtype_is_bool(dtype_of(c, mask));
    if (shape_of(c, mask)->dims[rank - 1] != n) {
        Operand beyond = is_bool ? operand_bool(false) : operand_float(-INFINITY);
        high[rank - 1] = dim_sub(dims, n, shape_of(c, mask)->dims[rank - 1]);
        mask = build_pad(c->im->b, mask, (DimList){rank, low}, (DimList){rank, high}, &beyond);
    }
    if (is_bool) mask = bias_where(c, a, mask);
    a->bias = added(c, a->bias, cast_to(c, mask, a->dtype));
    return true;
}

/* Limits on the distance of a query's position and a key's. */
static void add_windows(Call *c, Attention *a) {
    int64_t left = attr_int(c, "left_window_size", -1),
            right = attr_int(c, "right_window_size", -1);
    if (attr_int(c, "is_causal", 0) && (right < 0 || right > 0)) right = 0;
    Shape square = {
        4, {number(c, 1), number(c, 1), shape_of(c, a->q)->dims[2], shape_of(c, a->k)->dims[2]}};
    NodeId key = index_along(c, &square, 3);
    if (a->valid != NODE_NONE)
        a->bias = added(c, a->bias, bias_where(c, a, op2(c, OP_LESS, key, a->valid)));
    if (left < 0 && right < 0) return;
    NodeId query = index_along(c, &square, 2);
    if (a->offset != NODE_NONE) query = op2(c, OP_ADD, query, a->offset);
    NodeId ahead = op2(c, OP_SUB, key, query), allowed = NODE_NONE;
    if (right >= 0) allowed = op2n(c, OP_LESS_EQUAL, ahead, (double)right);
    if (left >= 0) {
        NodeId is_near = op2n(c, OP_GREATER_EQUAL, ahead, (double)-left);
        allowed = allowed == NODE_NONE ? is_near : op2(c, OP_LOGICAL_AND, allowed, is_near);
    }
    a->bias = added(c, a->bias, bias_where(c, a, allowed));
}

/* Softmax of the last axis, and 0 in rows that the bias closes altogether. */
static NodeId probabilities(Call *c, const Attention *a, NodeId scores) {
    NodeId z = cast_to(c, scores, a->wide);
    if (z == NODE_NONE) return z;
    uint32_t last = 1u << (shape_of(c, z)->rank - 1);
    if (a->bias == NODE_NONE) return softmax_over(c, z, last);
    NodeId most = reduce(c, OP_MAX, z, last, true), zero = constant(c, 0, z);
    most = where(c, op2n(c, OP_EQUAL, most, -INFINITY), zero, most);
    NodeId e = op1(c, OP_EXP, op2(c, OP_SUB, z, most));
    NodeId sum = reduce(c, OP_SUM, e, last, true);
    NodeId p = op2(c, OP_DIV, e, where(c, op2n(c, OP_EQUAL, sum, 0), constant(c, 1, z), sum));
    uint32_t bias_last = 1u << (shape_of(c, a->bias)->rank - 1);
    NodeId is_closed = op2n(c, OP_EQUAL, reduce(c, OP_MAX, a->bias, bias_last, true), -INFINITY);
    return where(c, is_closed, zero, p);
}

static bool take_cache(Call *c, Attention *a) {
    DimTab *dims = c->im->b->dims;
    if (has_input(c, 4) != has_input(c, 5))
        return onnx_fail(c, DIAG_WRONG_ARITY, "past_key and past_value belong together");
    if (has_input(c, 4)) {
        NodeId past = input(c, 4);
        int64_t n;
        if (past == NODE_NONE) return false;
        if (shape_of(c, past)->rank != 4)
            return onnx_fail(c, DIAG_SHAPE_MISMATCH, "past_key needs 4 axes");
        if (!dim_is_const(dims, shape_of(c, past)->dims[2], &n))
            return onnx_fail(c, DIAG_NO_LOWERING, "the length of past_key must be a constant");
        Operand length = operand_int(number(c, n));
        a->offset = build_const(c->im->b, &length, DT_I32);
        a->k = concat(c, past, a->k, 2);
        a->v = concat(c, input(c, 5), a->v, 2);
    }
    if (has_input(c, 6)) {
        NodeId valid = cast_to(c, input(c, 6), DT_I32);
        if (valid == NODE_NONE || a->q == NODE_NONE) return false;
        Shape column = {4, {number(c, -1), number(c, 1), number(c, 1), number(c, 1)}};
        int64_t n;
        if (!dim_is_const(dims, shape_of(c, a->q)->dims[2], &n))
            return onnx_fail(c, DIAG_NO_LOWERING, "the number of queries must be a constant");
        a->valid = reshape_to(c, valid, &column);
        a->offset = op2n(c, OP_SUB, a->valid, (double)n);
    }
    return a->k != NODE_NONE && a->v != NODE_NONE;
}

static bool softmax_dtype(Call *c, Attention *a) {
    int64_t type = attr_int(c, "softmax_precision", (int64_t)elem_of_dtype(a->dtype));
    return elem_dtype(type, &a->wide) ||
           onnx_fail(c, DIAG_UNSUPPORTED_DTYPE, "softmax_precision is %s", elem_info(type)->name);
}

/* q k^T, with the root of the scale on either side. */
static NodeId scores_of(Call *c, const Attention *a, NodeId k) {
    static const int64_t swap[] = {0, 1, 3, 2};
    int64_t depth;
    double scale = attr_float(c, "scale", 0);
    if (scale == 0) {
        if (!dim_is_const(c->im->b->dims, shape_of(c, a->q)->dims[3], &depth)) {
            onnx_fail(c, DIAG_NO_LOWERING, "the size of a head must be a constant");
            return NODE_NONE;
        }
        scale = 1 / sqrt((double)depth);
    }
    NodeId q = op2n(c, OP_MUL, a->q, sqrt(scale));
    return matmul(c, q, op2n(c, OP_MUL, transpose(c, k, swap), sqrt(scale)));
}

static bool have_four_axes(Call *c, NodeId q, NodeId k, NodeId v) {
    if (q == NODE_NONE || k == NODE_NONE || v == NODE_NONE) return false;
    return (shape_of(c, q)->rank == 4 && shape_of(c, k)->rank == 4 && shape_of(c, v)->rank == 4) ||
           onnx_fail(c, DIAG_SHAPE_MISMATCH,
                     "its tensors need the axes of a batch, heads, a "
                     "sequence and a head's size");
}

bool onnx_attention(Call *c) {
    NodeId x = input(c, 0), wanted = NODE_NONE;
    if (x == NODE_NONE) return false;
    int64_t n_q = attr_int(c, "q_num_heads", 0), n_k = attr_int(c, "kv_num_heads", 0);
    int64_t mode = attr_int(c, "qk_matmul_output_mode", 0);
    bool is_flat = shape_of(c, x)->rank == 3;
    double cap = attr_float(c, "softcap", 0);
    Attention a = {.q = heads(c, x, n_q),
                   .bias = NODE_NONE,
                   .offset = NODE_NONE,
                   .valid = NODE_NONE,
                   .dtype = dtype_of(c, x)};
    a.k = heads(c, input(c, 1), n_k);
    a.v = heads(c, input(c, 2), n_k);
    if (!have_four_axes(c, a.q, a.k, a.v)) return false;
    if (!take_cache(c, &a) || !softmax_dtype(c, &a) || !add_mask(c, &a)) return false;
    if (has_output(c, 1)) output(c, 1, a.k);
    if (has_output(c, 2)) output(c, 2, a.v);
    add_windows(c, &a);
    NodeId scores = scores_of(c, &a, shared(c, a.k, shape_of(c, a.q)->dims[1]));
    if (mode == 0) wanted = scores;
    if (cap != 0) scores = op2n(c, OP_MUL, op1(c, OP_TANH, op2n(c, OP_DIV, scores, cap)), cap);
    if (mode == 1) wanted = scores;
    if (a.bias != NODE_NONE) scores = op2(c, OP_ADD, scores, a.bias);
    if (mode == 2) wanted = scores;
    NodeId p = cast_to(c, probabilities(c, &a, scores), a.dtype);
    if (has_output(c, 3)) output(c, 3, mode == 3 ? p : wanted);
    NodeId y = matmul(c, p, shared(c, a.v, shape_of(c, a.q)->dims[1]));
    return output(c, 0, is_flat ? merged(c, y) : y);
}

/* A graph of the node that changes a tensor. */
static NodeId modified(Call *c, const char *name, NodeId x) {
    const OnnxAttr *attr = find_attr(c, name);
    Value given = {.name = "", .node = x}, *made;
    if (!attr || !attr->graph || x == NODE_NONE) return x;
    return onnx_run_body(c, attr->graph, false, 1, &given, 1, &made) ? value_node(c, made)
                                                                     : NODE_NONE;
}

bool onnx_flex_attention(Call *c) {
    Attention a = {.q = input(c, 0),
                   .k = input(c, 1),
                   .v = input(c, 2),
                   .bias = NODE_NONE,
                   .offset = NODE_NONE,
                   .valid = NODE_NONE};
    if (!have_four_axes(c, a.q, a.k, a.v)) return false;
    a.dtype = dtype_of(c, a.q);
    int64_t type = attr_int(c, "softmax_precision", (int64_t)elem_of_dtype(dtype_compute(a.dtype)));
    if (!elem_dtype(type, &a.wide))
        return onnx_fail(c, DIAG_UNSUPPORTED_DTYPE, "softmax_precision is %s",
                         elem_info(type)->name);
    NodeId scores = scores_of(c, &a, shared(c, a.k, shape_of(c, a.q)->dims[1]));
    scores = modified(c, "score_mod", cast_to(c, scores, a.wide));
    NodeId p = cast_to(c, modified(c, "prob_mod", probabilities(c, &a, scores)), a.dtype);
    return output(c, 0, matmul(c, p, shared(c, a.v, shape_of(c, a.q)->dims[1])));
}

/* Rotary embeddings. */

/* cache: [positions, d / 2] by position_ids, or [b, s, d / 2] -> [b, 1, s, d / 2] */
static NodeId angles(Call *c, uint32_t i) {
    NodeId cache = input(c, i);
    if (cache != NODE_NONE && has_input(c, 3))
        cache = build_gather(c->im->b, cache, cast_to(c, input(c, 3), DT_I32), 0);
    return with_axis(c, cache, 1);
}

/* x: [b, h, s, d] turned by pairs: of neighbours (interleaved), or of its two halves. */
bool onnx_rotary_embedding(Call *c) {
    NodeId given = input(c, 0), cosine = angles(c, 1), sine = angles(c, 2);
    NodeId x = heads(c, given, attr_int(c, "num_heads", 0)), rest = NODE_NONE;
    DimTab *dims = c->im->b->dims;
    int64_t depth, n = attr_int(c, "rotary_embedding_dim", 0);
    if (!have_four_axes(c, x, cosine, sine)) return false;
    bool is_pairs = attr_int(c, "interleaved", 0) != 0, is_flat = shape_of(c, given)->rank == 3;
    if (!dim_is_const(dims, shape_of(c, x)->dims[3], &depth) || n > depth || n < 0 || n % 2)
        return onnx_fail(c, DIAG_NO_LOWERING,
                         "the size of a head, and the part of it that is "
                         "turned, must be constants, and the part even");
    if (n == 0) n = depth;
    if (n < depth) rest = part_of(c, x, 3, number(c, n), number(c, depth - n));
    x = part_of(c, x, 3, number(c, 0), number(c, n));
    if (x == NODE_NONE) return false;
    Shape to = *shape_of(c, x), pairs = to;
    pairs.rank = 5;
    pairs.dims[3] = number(c, is_pairs ? n / 2 : 2);
    pairs.dims[4] = number(c, is_pairs ? 2 : n / 2);
    uint32_t axis = is_pairs ? 4 : 3;
    x = reshape_to(c, x, &pairs);
    NodeId a = at_index(c, x, axis, 0), b = at_index(c, x, axis, 1), turned[2];
    NodeId ac = op2(c, OP_MUL, a, cosine), as = op2(c, OP_MUL, a, sine);
    turned[0] = op2(c, OP_SUB, ac, op2(c, OP_MUL, b, sine));
    turned[1] = op2(c, OP_ADD, as, op2(c, OP_MUL, b, cosine));
    x = reshape_to(c, stacked(c, 2, turned, axis), &to);
    if (rest != NODE_NONE) x = concat(c, x, rest, 3);
    return output(c, 0, is_flat ? merged(c, x) : x);
}
