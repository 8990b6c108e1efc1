/* Recurrences: the steps of a sequence, one after the other. If their number is known and small
 * they are written out, else a loop repeats one of them at run time. */
#include "onnx/call/import_state.h"

#include <math.h>

typedef struct Recurrence Recurrence;
/* One step of a cell: from the products of x and of h with their weights, both with n_gates * h
 * columns, and the state before, the state after. */
typedef bool (*CellStep)(Call *c, const Recurrence *r, NodeId xw, NodeId *h, NodeId *state);
struct Recurrence {
    uint32_t n_gates;
    CellStep step;
    bool has_state; /* besides h */
    OpId activations[6];
    uint32_t n_activations; /* of a direction */
    /* of the direction at hand */
    uint32_t direction;
    NodeId r, r_bias, peepholes; /* [h, gates * h]; [gates * h], or NODE_NONE; [3 * h] */
    int64_t size;                /* h */
};

static NodeId activated(Call *c, const Recurrence *r, uint32_t i, NodeId x) {
    double limit = attr_float(c, "clip", 0);
    if (limit > 0) {
        NodeId least = constant(c, -limit, x);
        x = op3(c, OP_CLAMP, x, least, constant(c, limit, x));
    }
    return op1(c, r->activations[r->direction * r->n_activations + i], x);
}

/* The columns of gate i. */
static NodeId gate(Call *c, const Recurrence *r, NodeId x, uint32_t i) {
    if (x == NODE_NONE) return x;
    return part_of(c, x, shape_of(c, x)->rank - 1, number(c, i * r->size), number(c, r->size));
}

static NodeId plus(Call *c, NodeId a, NodeId b) {
    return b == NODE_NONE ? a : op2(c, OP_ADD, a, b);
}

static NodeId state_products(Call *c, const Recurrence *r, NodeId h) {
    return plus(c, matmul(c, h, r->r), r->r_bias);
}

static bool rnn_step(Call *c, const Recurrence *r, NodeId xw, NodeId *h, NodeId *state) {
    (void)state;
    *h = activated(c, r, 0, op2(c, OP_ADD, xw, state_products(c, r, *h)));
    return *h != NODE_NONE;
}

static NodeId peeped(Call *c, const Recurrence *r, NodeId x, uint32_t i, NodeId state) {
    if (r->peepholes == NODE_NONE) return x;
    return op2(c, OP_ADD, x, op2(c, OP_MUL, gate(c, r, r->peepholes, i), state));
}

/* Gates: input, output, forget, cell. */
static bool lstm_step(Call *c, const Recurrence *r, NodeId xw, NodeId *h, NodeId *state) {
    NodeId sums = op2(c, OP_ADD, xw, state_products(c, r, *h));
    NodeId in = activated(c, r, 0, peeped(c, r, gate(c, r, sums, 0), 0, *state));
    NodeId forget = attr_int(c, "input_forget", 0)
                        ? op1(c, OP_NEG, op2n(c, OP_SUB, in, 1))
                        : activated(c, r, 0, peeped(c, r, gate(c, r, sums, 2), 2, *state));
    NodeId cell = activated(c, r, 1, gate(c, r, sums, 3));
    NodeId kept = op2(c, OP_MUL, forget, *state);
    *state = op2(c, OP_ADD, kept, op2(c, OP_MUL, in, cell));
    NodeId out = activated(c, r, 0, peeped(c, r, gate(c, r, sums, 1), 1, *state));
    *h = op2(c, OP_MUL, out, activated(c, r, 2, *state));
    return *h != NODE_NONE;
}

/* Gates: update, reset, hidden. */
static bool gru_step(Call *c, const Recurrence *r, NodeId xw, NodeId *h, NodeId *state) {
    NodeId hw = state_products(c, r, *h), hidden;
    (void)state;
    NodeId update = activated(c, r, 0, op2(c, OP_ADD, gate(c, r, xw, 0), gate(c, r, hw, 0)));
    NodeId reset = activated(c, r, 0, op2(c, OP_ADD, gate(c, r, xw, 1), gate(c, r, hw, 1)));
    if (attr_int(c, "linear_before_reset", 0))
        hidden = op2(c, OP_MUL, reset, gate(c, r, hw, 2));
    else
        hidden = plus(c, matmul(c, op2(c, OP_MUL, reset, *h), gate(c, r, r->r, 2)),
                      gate(c, r, r->r_bias, 2));
    hidden = activated(c, r, 1, op2(c, OP_ADD, gate(c, r, xw, 2), hidden));
    NodeId old = op2(c, OP_MUL, update, *h);
    *h = op2(c, OP_SUB, op2(c, OP_ADD, hidden, old), op2(c, OP_MUL, update, hidden));
    return *h != NODE_NONE;
}

static bool read_activations(Call *c, Recurrence *r, uint32_t n_directions) {
    static const struct {
        const char *name;
        OpId op;
    } names[] = {
        {"Tanh", OP_TANH}, {"Sigmoid", OP_SIGMOID}, {"Relu", OP_RELU}, {"Softplus", OP_SOFTPLUS}};
    const OnnxAttr *given = typed_attr(c, "activations", ATTR_STRINGS);
    uint32_t n = r->n_activations * n_directions;
    for (uint32_t i = 0; !given && i < n; i++)
        r->activations[i] =
            r->n_activations > 1 && i % r->n_activations == 0 ? OP_SIGMOID : OP_TANH;
    if (given && given->strings.n != n)
        return onnx_fail(c, DIAG_WRONG_COUNT, "%u activations, not %u", given->strings.n, n);
    for (uint32_t i = 0; given && i < n; i++) {
        size_t k = 0, n_names = sizeof names / sizeof names[0];
        while (k < n_names && strcmp(names[k].name, given->strings.data[i]) != 0) k++;
        if (k == n_names)
            return onnx_fail(c, DIAG_NO_LOWERING, "activation `%s` is not supported",
                             given->strings.data[i]);
        r->activations[i] = names[k].op;
    }
    return true;
}

/* Input i of a direction: [directions, ..] -> [..]; NODE_NONE: it is not given. */
static NodeId of_direction(Call *c, uint32_t i, uint32_t direction) {
    return has_input(c, i) ? at_index(c, input(c, i), 0, direction) : NODE_NONE;
}

/* One direction, while it runs. */
typedef struct Direction {
    NodeId xw;       /* x's products with its weights: [t, b, gates * h] */
    NodeId lengths;  /* of the sequences: i32[b, 1]; NODE_NONE: all have t steps */
    NodeId h, state; /* [b, h] */
    NodeId y;        /* of a step: [b, h]; in the end [t, b, h], or NODE_NONE if no one reads it */
    bool is_down;    /* the last step comes first */
} Direction;

/* Sequences that the step is in have the new state, the others keep theirs. `is_in`: bool[b, 1], or
 * NODE_NONE: all */
static bool take_step(Call *c, const Recurrence *r, Direction *d, NodeId xw, NodeId is_in) {
    NodeId old_h = d->h, old_state = d->state;
    if (!r->step(c, r, xw, &d->h, &d->state)) return false;
    d->y = d->h;
    if (is_in == NODE_NONE) return true;
    d->y = where(c, is_in, d->h, constant(c, 0, d->h));
    d->h = where(c, is_in, d->h, old_h);
    if (r->has_state) d->state = where(c, is_in, d->state, old_state);
    return true;
}

static bool write_steps(Call *c, const Recurrence *r, Direction *d, int64_t n_steps) {
    NodeId *y = arena_array(c->im->arena, NodeId, (size_t)n_steps + 1);
    for (int64_t i = 0; i < n_steps; i++) {
        int64_t t = d->is_down ? n_steps - 1 - i : i;
        NodeId xw = at_index(c, d->xw, 0, t), is_in = NODE_NONE;
        if (d->lengths != NODE_NONE) is_in = op2n(c, OP_GREATER, d->lengths, (double)t);
        if (!take_step(c, r, d, xw, is_in)) return false;
        y[t] = d->y;
    }
    d->y = has_output(c, 0) ? stacked(c, (uint32_t)n_steps, y, 0) : NODE_NONE;
    return true;
}

static bool repeat_steps(Call *c, const Recurrence *r, Direction *d, DimId n_steps) {
    Builder *b = c->im->b;
    Repeat loop;
    NodeId t, index, is_in = NODE_NONE;
    if (!repeat_begin(c, n_steps, DT_I32, &loop, &index)) return false;
    NodeId h = d->h = build_loop_carry(b, d->h), state = d->state;
    if (r->has_state) state = d->state = build_loop_carry(b, state);
    DimId last = dim_sub(b->dims, n_steps, number(c, 1));
    t = d->is_down ? op2(c, OP_SUB, number_node(c, last, DT_I32), index) : index;
    if (d->lengths != NODE_NONE) is_in = op2(c, OP_GREATER, d->lengths, t);
    bool good = take_step(c, r, d, element_at(c, d->xw, 0, t), is_in);
    build_repeat_carry(b, &loop, h, d->h);
    if (r->has_state) build_repeat_carry(b, &loop, state, d->state);
    uint32_t n_carried = loop.carries.n;
    if (has_output(c, 0)) build_repeat_collect(b, &loop, t, d->y);
    repeat_end(c, &loop, index);
    if (!good) return false;
    d->h = build_repeat_result(b, &loop, 0);
    if (r->has_state) d->state = build_repeat_result(b, &loop, 1);
    d->y = has_output(c, 0) ? build_repeat_collected(b, &loop, n_carried) : NODE_NONE;
    return d->h != NODE_NONE;
}

/* x: [t, b, i]. `d` has the first state, and receives the last one and the outputs. */
static bool run_direction(Call *c, Recurrence *r, NodeId x, Direction *d) {
    uint32_t at = r->direction;
    NodeId w = of_direction(c, 1, at), bias = of_direction(c, 3, at);
    int64_t n_steps;
    if (w == NODE_NONE) return false;
    r->r = build_transpose(c->im->b, of_direction(c, 2, at), 2, NULL);
    r->peepholes = r->has_state ? of_direction(c, 7, at) : NODE_NONE;
    d->xw = matmul(c, x, build_transpose(c->im->b, w, 2, NULL));
    DimId n = number(c, r->n_gates * r->size), t = shape_of(c, x)->dims[0];
    r->r_bias = bias == NODE_NONE ? bias : part_of(c, bias, 0, n, n);
    if (bias != NODE_NONE) d->xw = op2(c, OP_ADD, d->xw, part_of(c, bias, 0, number(c, 0), n));
    d->lengths = has_input(c, 4) ? with_axis(c, cast_to(c, input(c, 4), DT_I32), 1) : NODE_NONE;
    if (dim_is_const(c->im->b->dims, t, &n_steps) && n_steps <= MAX_CONCAT_ARGS)
        return write_steps(c, r, d, n_steps);
    return repeat_steps(c, r, d, t);
}

/* The state that input i gives a direction, or zeros: [b, h] */
static NodeId first_state(Call *c, uint32_t i, uint32_t direction, NodeId x, int64_t size) {
    if (has_input(c, i)) {
        NodeId given = input(c, i);
        return at_index(c, attr_int(c, "layout", 0) ? move_axis(c, given, 1, 0) : given, 0,
                        direction);
    }
    Shape shape = {2, {shape_of(c, x)->dims[1], number(c, size)}};
    return expand_to(c, constant(c, 0, x), &shape);
}

static bool recur(Call *c, Recurrence *r) {
    static const int64_t batch_first[] = {2, 0, 1, 3};
    Str direction = attr_string(c, "direction", "forward");
    bool is_both = strcmp(direction, "bidirectional") == 0, swaps = attr_int(c, "layout", 0) != 0;
    bool is_reverse = strcmp(direction, "reverse") == 0;
    uint32_t n = is_both ? 2 : 1, steps_and_batch = 3;
    NodeId x = input(c, 0), weights = input(c, 2), last[2], states[2], outs[2];
    int64_t extents[MAX_RANK], recurrent[MAX_RANK];
    if (swaps) x = move_axis(c, x, 1, 0);
    if (!const_dims_but(c, x, steps_and_batch, extents) || !const_dims(c, weights, recurrent))
        return false;
    if (shape_of(c, x)->rank != 3 || shape_of(c, weights)->rank != 3 || recurrent[0] != n)
        return onnx_fail(c, DIAG_SHAPE_MISMATCH, "its tensors need 3 axes, and its directions");
    r->size = recurrent[2];
    if (!read_activations(c, r, n)) return false;
    for (uint32_t i = 0; i < n; i++) {
        Direction d = {.is_down = i == 1 || is_reverse, .state = NODE_NONE};
        r->direction = i;
        d.h = first_state(c, 5, i, x, r->size);
        if (r->has_state) d.state = first_state(c, 6, i, x, r->size);
        if (!run_direction(c, r, x, &d)) return false;
        last[i] = d.h, states[i] = d.state, outs[i] = d.y;
    }
    if (has_output(c, 0)) {
        NodeId all = stacked(c, n, outs, 1);
        output(c, 0, swaps ? transpose(c, all, batch_first) : all);
    }
    if (has_output(c, 1)) output(c, 1, stacked(c, n, last, swaps ? 1 : 0));
    if (r->has_state && has_output(c, 2)) output(c, 2, stacked(c, n, states, swaps ? 1 : 0));
    return true;
}

bool onnx_rnn(Call *c) {
    Recurrence r = {.n_gates = 1, .step = rnn_step, .n_activations = 1};
    return recur(c, &r);
}

bool onnx_lstm(Call *c) {
    Recurrence r = {.n_gates = 4, .step = lstm_step, .has_state = true, .n_activations = 3};
    return recur(c, &r);
}

bool onnx_gru(Call *c) {
    Recurrence r = {.n_gates = 3, .step = gru_step, .n_activations = 2};
    return recur(c, &r);
}

/* Linear attention. */

/* [b, t, n * d] -> [b, n, t, d] in f32 */
static NodeId per_head(Call *c, NodeId x, int64_t n) {
    static const int64_t perm[] = {0, 2, 1, 3};
    if (x == NODE_NONE) return x;
    if (shape_of(c, x)->rank != 3) {
        onnx_fail(c, DIAG_SHAPE_MISMATCH, "its inputs need 3 axes");
        return NODE_NONE;
    }
    Shape from = *shape_of(c, x), to = {4, {from.dims[0], from.dims[1], number(c, n)}};
    to.dims[3] = dim_exact_div(c->im->b->dims, from.dims[2], to.dims[2]);
    return cast_to(c, transpose(c, reshape_to(c, x, &to), perm), DT_F32);
}

/* state: [b, n, d, e] -> [b, n * times, d, e] */
static NodeId repeated_heads(Call *c, NodeId state, int64_t times) {
    if (state == NODE_NONE || times == 1) return state;
    Shape from = *shape_of(c, state), to = from;
    Shape wide = {5, {from.dims[0], from.dims[1], number(c, times), from.dims[2], from.dims[3]}};
    to.dims[1] = dim_mul_const(c->im->b->dims, from.dims[1], times);
    return reshape_to(c, expand_to(c, with_axis(c, state, 2), &wide), &to);
}

typedef struct LinearAttention {
    NodeId q, k, v;            /* [b, heads, t, d] */
    NodeId decay, beta;        /* NODE_NONE: the rule has none */
    NodeId state;              /* [b, heads, d, e] */
    int64_t n_steps, n_shared; /* heads of q for each of k */
    double scale;
} LinearAttention;

/* state = decay * state + k (v - state^T k); y = q state. Vectors are rows: [b, heads, 1, d]. */
static NodeId linear_step(Call *c, LinearAttention *a, int64_t t) {
    static const int64_t swap[] = {0, 1, 3, 2};
    DimId at = number(c, t), one = number(c, 1);
    NodeId k = part_of(c, a->k, 2, at, one), v = part_of(c, a->v, 2, at, one);
    if (a->decay != NODE_NONE) {
        NodeId decay = transpose(c, part_of(c, a->decay, 2, at, one), swap);
        a->state = op2(c, OP_MUL, a->state, decay);
    }
    if (a->beta != NODE_NONE) {
        v = op2(c, OP_SUB, v, matmul(c, k, a->state));
        v = op2(c, OP_MUL, part_of(c, a->beta, 2, at, one), v);
    }
    a->state = op2(c, OP_ADD, a->state, op2(c, OP_MUL, transpose(c, k, swap), v));
    NodeId read = repeated_heads(c, a->state, a->n_shared);
    return op2n(c, OP_MUL, matmul(c, part_of(c, a->q, 2, at, one), read), a->scale);
}

/* The state of the call before, or zeros. */
static bool linear_state(Call *c, LinearAttention *a, Dtype *dtype) {
    const Shape *keys = shape_of(c, a->k);
    Shape shape = {4, {keys->dims[0], keys->dims[1], keys->dims[3], shape_of(c, a->v)->dims[3]}};
    a->state = expand_to(c, constant(c, 0, a->k), &shape);
    if (!has_input(c, 3)) return a->state != NODE_NONE;
    NodeId past = input(c, 3);
    if (past == NODE_NONE) return false;
    if (!shape_equal(shape_of(c, past), &shape))
        return onnx_fail(c, DIAG_SHAPE_MISMATCH, "past_state has another shape than the state");
    *dtype = dtype_of(c, past);
    a->state = cast_to(c, past, DT_F32);
    return true;
}

/* Decay and beta, by the rule. */
static bool linear_rule(Call *c, LinearAttention *a, int64_t n_heads) {
    Str rule = attr_string(c, "update_rule", "gated_delta");
    bool is_gated = strncmp(rule, "gated", 5) == 0, is_delta = strstr(rule, "delta") != NULL;
    if (has_input(c, 4) != is_gated || has_input(c, 5) != is_delta)
        return onnx_fail(c, DIAG_BAD_ARGUMENT, "decay and beta do not fit update_rule `%s`", rule);
    if (is_gated) a->decay = op1(c, OP_EXP, per_head(c, input(c, 4), n_heads));
    if (is_delta) {
        NodeId beta = input(c, 5);
        if (beta == NODE_NONE) return false;
        bool is_shared = shape_of(c, beta)->rank == 3 &&
                         dim_equals_const(c->im->b->dims, shape_of(c, beta)->dims[2], 1);
        a->beta = per_head(c, beta, is_shared ? 1 : n_heads);
    }
    return a->decay != NODE_NONE || a->beta != NODE_NONE || (!is_gated && !is_delta);
}

bool onnx_linear_attention(Call *c) {
    static const int64_t merge[] = {0, 2, 1, 3};
    int64_t n_q = attr_int(c, "q_num_heads", 0), n_k = attr_int(c, "kv_num_heads", 0), d;
    LinearAttention a = {.decay = NODE_NONE, .beta = NODE_NONE};
    NodeId x = input(c, 0);
    if (x == NODE_NONE) return false;
    if (n_q < 1 || n_k < 1 || n_q % n_k)
        return onnx_fail(c, DIAG_BAD_ARGUMENT, "kv_num_heads does not divide q_num_heads");
    a.q = per_head(c, x, n_q);
    a.k = per_head(c, input(c, 1), n_k);
    a.v = per_head(c, input(c, 2), n_k);
    a.n_shared = n_q / n_k;
    if (a.q == NODE_NONE || a.k == NODE_NONE || a.v == NODE_NONE) return false;
    Dtype dtype = dtype_of(c, x), state_dtype = dtype;
    const Shape *keys = shape_of(c, a.k);
    if (!dim_is_const(c->im->b->dims, keys->dims[2], &a.n_steps) || a.n_steps > MAX_CONCAT_ARGS ||
        !dim_is_const(c->im->b->dims, keys->dims[3], &d))
        return onnx_fail(c, DIAG_NO_LOWERING, "it needs a constant number of steps and head size");
    if (!linear_state(c, &a, &state_dtype) || !linear_rule(c, &a, n_k)) return false;
    a.scale = attr_float(c, "scale", 0);
    if (a.scale == 0) a.scale = 1 / sqrt((double)d);
    NodeId *y = arena_array(c->im->arena, NodeId, (size_t)a.n_steps + 1);
    for (int64_t t = 0; t < a.n_steps; t++) y[t] = linear_step(c, &a, t);
    NodeId all = transpose(c, build_concat(c->im->b, (uint32_t)a.n_steps, y, 2), merge);
    if (all == NODE_NONE) return false;
    Shape to = {3, {shape_of(c, all)->dims[0], shape_of(c, all)->dims[1], number(c, -1)}};
    if (has_output(c, 1)) output(c, 1, cast_to(c, a.state, state_dtype));
    return output(c, 0, cast_to(c, reshape_to(c, all, &to), dtype));
}

/* A convolution of each channel over the elements up to each, and the last elements, which the
 * next call begins with. x: [b, c, t], weights: [c, 1, k], past: [b, c, k - 1] */
bool onnx_causal_conv(Call *c) {
    NodeId x = input(c, 0), weights = input(c, 1), sum = NODE_NONE, wide = NODE_NONE;
    int64_t extents[MAX_RANK], kernel[MAX_RANK];
    if (!const_dims_but(c, x, 1, extents) || !const_dims(c, weights, kernel)) return false;
    if (shape_of(c, x)->rank != 3 || shape_of(c, weights)->rank != 3)
        return onnx_fail(c, DIAG_SHAPE_MISMATCH, "x and its weights need 3 axes");
    int64_t n_past = kernel[2] - 1, n = extents[2];
    if (n_past < 0 || n_past > MAX_CONCAT_ARGS || kernel[1] != 1)
        return onnx_fail(c, DIAG_SHAPE_MISMATCH, "its weights need the shape [channels, 1, taps]");
    Dtype dtype = dtype_of(c, x);
    DimId low[3] = {number(c, 0), number(c, 0), number(c, n_past)},
          high[3] = {low[0], low[0], low[0]};
    if (has_input(c, 3) && n_past)
        wide = concat(c, input(c, 3), x, 2);
    else
        wide = build_pad(c->im->b, x, (DimList){3, low}, (DimList){3, high}, NULL);
    NodeId z = cast_to(c, wide, dtype_compute(dtype)),
           w = cast_to(c, weights, dtype_compute(dtype));
    w = reshape_const(c, w, 3, (int64_t[]){1, kernel[0], kernel[2]});
    for (int64_t k = 0; k <= n_past; k++) {
        NodeId tap = part_of(c, z, 2, number(c, k), number(c, n));
        NodeId part = op2(c, OP_MUL, tap, part_of(c, w, 2, number(c, k), number(c, 1)));
        sum = plus(c, part, sum);
    }
    if (has_input(c, 2))
        sum = op2(c, OP_ADD, sum, cast_to(c, per_channel(c, input(c, 2), 3), dtype_compute(dtype)));
    sum = cast_to(c, sum, dtype);
    if (strcmp(attr_string(c, "activation", "none"), "none") != 0) sum = op1(c, OP_SILU, sum);
    if (has_output(c, 1)) output(c, 1, part_of(c, wide, 2, number(c, n), number(c, n_past)));
    return output(c, 0, sum);
}
