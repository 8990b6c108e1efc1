/* Finding a product of rows that are divided by their greatest absolute value. See online_find.h.
 */
#include "ir/build/online_follow.h"

#include <math.h>

enum { NUMBER_DEPTH = 8 };

/* A number of a row: factor * M^exponent, with M the greatest absolute value, and at least `least`.
 */
typedef struct Number {
    double factor, least;
    int exponent;    /* 0: without M, 1 or -1 */
    OnlinePlace x;   /* whose absolute value M is the greatest of */
    NodeId greatest; /* the node that is M; NODE_NONE: there is none */
} Number;

/* The way from the product's operand back to x. */
typedef struct Quotient {
    Number scale; /* what multiplies the value at hand; x has been found if it has an exponent */
    double low, high; /* what clamps let through of the operand */
    bool is_scaled, is_rounded, is_cast;
} Quotient;

/* Numbers of rows. */

/* The other one of a value and its negation. */
static bool is_negated(const OnlineFinder *f, OnlinePlace value, OnlinePlace *of) {
    value = online_before_moves(f, value);
    if (online_node_of(f, &value)->op != OP_NEG) return false;
    *of = online_arg_place(f, &value, 0);
    return true;
}

/* Whether `sizes` are the absolute values of x. */
static bool are_sizes(const OnlineFinder *f, OnlinePlace sizes, OnlinePlace *x) {
    OnlinePlace negated;
    sizes = online_before_moves(f, sizes);
    OpId op = online_node_of(f, &sizes)->op;
    *x = op == OP_ABS ? online_arg_place(f, &sizes, 0) : sizes;
    if (op == OP_ABS || op == OP_RELU) return true;
    for (uint32_t k = 0; op == OP_MAXIMUM && k < 2; k++) {
        *x = online_arg_place(f, &sizes, k);
        if (is_negated(f, online_arg_place(f, &sizes, 1 - k), &negated))
            return online_is_same(f, negated, *x);
    }
    return false;
}

/* Whether the value is the greatest absolute value of a row x: the maximum of absolute values, or
 * the greater one of the maximum and the negated minimum. */
static bool is_greatest(const OnlineFinder *f, const OnlinePlace *place, OnlinePlace *x) {
    OnlinePlace arg, least, low;
    if (online_reduces_keys(f, *place, PRIM_MAX, &arg)) return are_sizes(f, arg, x);
    if (online_node_of(f, place)->op != OP_MAXIMUM) return false;
    for (uint32_t k = 0; k < 2; k++)
        if (is_negated(f, online_arg_place(f, place, 1 - k), &least) &&
            online_reduces_keys(f, online_arg_place(f, place, k), PRIM_MAX, x) &&
            online_reduces_keys(f, least, PRIM_MIN, &low))
            return online_is_same(f, low, *x);
    return false;
}

static bool read_number(const OnlineFinder *f, OnlinePlace place, uint32_t depth, Number *number);

/* Multiplies the number by another one to the power `sign`, 1 or -1. */
static bool join(Number *number, const Number *other, int sign) {
    if (number->exponent && other->exponent) return false;
    double factor = sign > 0 ? number->factor * other->factor : number->factor / other->factor;
    if (other->exponent) *number = *other;
    if (sign < 0 && other->exponent) number->exponent = -number->exponent;
    number->factor = factor;
    return factor > 0 && isfinite(factor);
}

/* If the op is the greater one of a literal and a multiple of M, sets the number. */
static bool read_floor(const OnlineFinder *f, const OnlinePlace *place, uint32_t depth,
                       Number *number) {
    double literal;
    for (uint32_t k = 0; k < 2; k++) {
        if (!online_is_literal(f, online_arg_place(f, place, 1 - k), &literal)) continue;
        if (!(literal >= 0) || !read_number(f, online_arg_place(f, place, k), depth, number) ||
            number->exponent != 1)
            return false;
        number->least = fmax(number->least, literal / number->factor);
        return true;
    }
    return false;
}

static bool read_number(const OnlineFinder *f, OnlinePlace place, uint32_t depth, Number *number) {
    Number other;
    double literal;
    place = online_before_moves(f, place);
    const Node *node = online_node_of(f, &place);
    *number = (Number){.factor = 1, .least = -INFINITY, .greatest = NODE_NONE};
    if (online_is_literal(f, place, &literal)) {
        number->factor = literal;
        return literal > 0;
    }
    if (!depth || !online_belongs(f, place.node)) return false;
    if (is_greatest(f, &place, &number->x)) {
        number->exponent = 1;
        number->greatest = place.node;
        return true;
    }
    if (node->op == OP_MAXIMUM) return read_floor(f, &place, depth - 1, number);
    if (node->op != OP_MUL && node->op != OP_DIV) return false;
    return read_number(f, online_arg_place(f, &place, 0), depth - 1, number) &&
           read_number(f, online_arg_place(f, &place, 1), depth - 1, &other) &&
           join(number, &other, node->op == OP_MUL ? 1 : -1);
}

/* Operands. */

/* If the op multiplies or divides argument `*k` by a number of the row, takes the number. */
static bool take_scale(OnlineFinder *f, const OnlinePlace *place, uint32_t *k, Quotient *q) {
    const Node *node = online_node_of(f, place);
    uint32_t n = node->op == OP_MUL ? 2 : node->op == OP_DIV;
    for (*k = 0; *k < n; ++*k) {
        Number number;
        OnlinePlace other = online_arg_place(f, place, 1 - *k);
        if (online_varies(f, other) || !read_number(f, other, NUMBER_DEPTH, &number)) continue;
        q->is_scaled = true;
        return join(&q->scale, &number, node->op == OP_MUL ? 1 : -1);
    }
    return false;
}

/* If the op keeps argument `*k` within literals, notes them. */
static bool take_limits(const OnlineFinder *f, const OnlinePlace *place, uint32_t *k, Quotient *q) {
    const Node *node = online_node_of(f, place);
    double bounds[2]; /* of a clamp, the low one first */
    bool is_clamp = node->op == OP_CLAMP;
    if ((!is_clamp && node->op != OP_MAXIMUM && node->op != OP_MINIMUM) || q->scale.exponent)
        return false;
    *k = !is_clamp && online_is_literal(f, online_arg_place(f, place, 0), &bounds[0]);
    for (uint32_t i = 0; i + 1 < node->n_args; i++)
        if (!online_is_literal(f, online_arg_place(f, place, is_clamp ? i + 1 : 1 - *k),
                               &bounds[i]))
            return false;
    double high = bounds[is_clamp];
    if (node->op != OP_MINIMUM) q->low = fmax(q->low, bounds[0] * q->scale.factor);
    if (node->op != OP_MAXIMUM) q->high = fmin(q->high, high * q->scale.factor);
    return true;
}

/* Whether the cast is the one that quantises, or goes between floats that ops compute in. */
static bool take_cast(const OnlineFinder *f, const Node *node, Quotient *q) {
    Dtype from = graph_node(f->graph, node->args[0])->dtype, to = node->dtype;
    if (!dtype_in(from, DTS_FLOAT)) return false;
    bool is_plain = dtype_in(to, DTS_FLOAT), is_first = !q->is_cast;
    q->is_cast = true;
    return is_plain ||
           (is_first && !q->is_scaled && !q->is_rounded && to == f->found->quantize.dtype);
}

/* Reads the op that makes the operand of argument `k` of its own. */
static bool read_step(OnlineFinder *f, const OnlinePlace *place, uint32_t *k, Quotient *q) {
    const Node *node = online_node_of(f, place);
    *k = 0;
    if (online_is_view(node)) return true;
    if (node->op == OP_CAST) return take_cast(f, node, q);
    if (node->op == OP_ROUND) return q->is_rounded = !q->is_scaled;
    return take_limits(f, place, k, q) || take_scale(f, place, k, q);
}

static bool are_scores(const OnlineFinder *f, const Quotient *q, OnlinePlace place) {
    OnlinePlace x = q->scale.x;
    if (q->scale.exponent != -1) return false;
    return online_is_same(f, place, x) ||
           online_is_same(f, online_before_moves(f, place), online_before_moves(f, x));
}

/* Whether clamps let through what the dtype can hold of numbers up to the scale. */
static bool lets_through(const Quotient *q, Dtype dtype) {
    double low = -q->scale.factor, high = q->scale.factor, slack = 1 + 0x1p-20;
    if (!dtype_info(dtype)->has_infinity) {
        low = fmax(low, dtype_is_int(dtype) ? dtype_round(dtype, -1e300) : -dtype_max(dtype));
        high = fmin(high, dtype_is_int(dtype) ? dtype_round(dtype, 1e300) : dtype_max(dtype));
    }
    return q->low * slack <= low && q->high * slack >= high;
}

/* Whether the op that does the same takes the operands' dtypes and ranks. */
static bool is_supported(OnlineFinder *f, const Quotient *q) {
    const Node *matmul = graph_node(f->graph, f->found->matmul);
    Dtype values = graph_node(f->graph, matmul->args[1 - f->found->side])->dtype;
    Dtype scores = graph_node(f->graph, f->found->scores)->dtype, compute = online_compute(values);
    if (!lets_through(q, f->found->quantize.dtype))
        return online_fail(f, "Let it keep all up to the scale, or put it before the quotient.",
                           "a clamp changes rows that their greatest absolute value divides");
    if (matmul->attrs.precision != PRECISION_FULL)
        return online_fail(f, "Leave out `precision`.", "the product has a precision of its own");
    bool is_bytes = dtype_in(values, DTS_BYTE);
    if (!dtype_in(values, op_info(OP_QUANTIZE_MATMUL)->dtypes) ||
        !quantize_map_fits(&f->found->quantize, values) || !dtype_in(scores, DTS_FLOAT) ||
        dtype_bytes(scores) > dtype_bytes(compute) || (is_bytes && matmul->dtype != DT_I32))
        return online_fail(f,
                           is_bytes ? "Write `out=i32`." : "Cast the values, or the rows to f32.",
                           "quantised rows do not go with the dtypes of their product");
    if (matmul->shape.rank >= MAX_GIVEN_RANK)
        return online_fail(f, "Reshape leading axes to one.",
                           "the product has a rank of 8 or more");
    return true;
}

/* Goes from the operand back to x. */
static bool read_operand(OnlineFinder *f, OnlinePlace place) {
    OnlinePath *path = &f->found->weights;
    Quotient q = {.scale = {.factor = 1, .least = -INFINITY, .greatest = NODE_NONE},
                  .low = -INFINITY,
                  .high = INFINITY};
    f->found->quantize.dtype = online_node_of(f, &place)->dtype;
    while (!are_scores(f, &q, place)) {
        uint32_t k;
        if (!online_belongs(f, place.node) || !read_step(f, &place, &k, &q) ||
            !online_go_on(path, f, &place, k))
            return false;
    }
    f->found->scores = place.node;
    f->found->op = OP_QUANTIZE_MATMUL;
    f->found->greatest = q.scale.greatest;
    f->found->quantize.scale = q.scale.factor;
    f->found->quantize.least = q.scale.least;
    f->found->quantize.rounds = q.is_rounded;
    return is_supported(f, &q);
}

bool online_find_quantized(const Builder *b, NodeId matmul, OnlineFound *found,
                           OnlineReason *reason) {
    for (uint32_t side = 0; side < 2; side++) {
        OnlinePlace product;
        OnlineFinder f = online_finder_new(b, matmul, found, &product);
        online_begin_keys(&f, matmul);
        if (read_operand(&f, online_operand(&f, &product, side))) return true;
        if (f.message) *reason = (OnlineReason){f.message, f.help};
    }
    *found = (OnlineFound){.matmul = matmul, .power = NODE_NONE, .greatest = NODE_NONE};
    return false;
}
