/* Ops of their own kind: grids, crops, and optimizers of training. */
#include "onnx/call/import_state.h"

bool onnx_swiglu(Call *c) {
    NodeId a = input(c, 0);
    double alpha = attr_float(c, "alpha", 1);
    NodeId gate = alpha == 1 ? op1(c, OP_SILU, a)
                             : op2(c, OP_MUL, a, op1(c, OP_SIGMOID, op2n(c, OP_MUL, a, alpha)));
    return output(c, 0, op2(c, OP_MUL, gate, input(c, 1)));
}

/* theta: [n, k, k + 1], size: [n, c, d0, ..] -> [n, d0, .., k]: where GridSample reads, of points
 * that lie evenly from -1 to 1. */
bool onnx_affine_grid(Call *c) {
    NodeId theta = input(c, 0);
    IntList list;
    int64_t size[MAX_RANK], n_points = 1;
    enum { MAX_POINTS = 1 << 22 };
    bool aligns = attr_int(c, "align_corners", 0) != 0;
    if (theta == NODE_NONE || !list_argument(c, NULL, 1, &list) ||
        !constant_list(c, &list, "size", size, MAX_RANK))
        return false;
    if (list.n != 4 && list.n != 5)
        return onnx_fail(c, DIAG_WRONG_COUNT, "size has %u numbers", list.n);
    uint32_t k = list.n - 2;
    for (uint32_t i = 2; i < list.n; i++) {
        if (size[i] < 1 || size[i] > MAX_POINTS / n_points)
            return onnx_fail(c, DIAG_LIMIT, "its size is 0, or too large");
        n_points *= size[i];
    }
    int64_t dims[2] = {k + 1, n_points};
    double *points = arena_array(c->im->arena, double, (size_t)(dims[0] * n_points) + 1);
    for (int64_t p = 0; p < n_points; p++) {
        int64_t rest = p;
        for (uint32_t i = k; i-- > 0; rest /= size[2 + i]) {
            double n = (double)size[2 + i], at = (double)(rest % size[2 + i]);
            points[(k - 1 - i) * n_points + p] =
                aligns ? 2 * at / (n - 1) - 1 : (2 * at + 1) / n - 1;
        }
        points[k * n_points + p] = 1;
    }
    NodeId grid = matmul(c, theta, table_node(c, dtype_of(c, theta), 2, dims, points));
    int64_t to[MAX_RANK] = {size[0]};
    for (uint32_t i = 0; i < k; i++) to[1 + i] = size[2 + i];
    to[k + 1] = k;
    return output(c, 0, reshape_const(c, move_axis(c, grid, 1, 2), k + 2, to));
}

/* The middle of each axis, or the axis with zeros around it. */
bool onnx_center_crop_pad(Call *c) {
    NodeId x = input(c, 0);
    IntList list;
    int64_t extents[MAX_RANK], wanted[MAX_RANK];
    const VecInt *axes;
    DimId low[MAX_RANK], high[MAX_RANK];
    if (!const_dims_but(c, x, UINT32_MAX, extents) || !list_argument(c, NULL, 1, &list) ||
        !constant_list(c, &list, "shape", wanted, MAX_RANK))
        return false;
    uint32_t rank = shape_of(c, x)->rank;
    bool has_axes = attr_ints(c, "axes", &axes);
    if (list.n != (has_axes ? axes->n : rank))
        return onnx_fail(c, DIAG_WRONG_COUNT, "shape has %u numbers", list.n);
    for (uint32_t k = 0; k < rank; k++) low[k] = high[k] = number(c, 0);
    for (uint32_t i = 0; i < list.n; i++) {
        uint32_t axis = i;
        if (has_axes && !axis_of(c, axes->data[i], rank, &axis)) return false;
        int64_t more = wanted[i] - extents[axis];
        if (extents[axis] < 0)
            return onnx_fail(c, DIAG_NO_LOWERING, "axis %u must have a constant extent", axis);
        if (more < 0) x = part_of(c, x, axis, number(c, -more / 2), number(c, wanted[i]));
        if (more <= 0) continue;
        low[axis] = number(c, more / 2);
        high[axis] = number(c, more - more / 2);
    }
    return output(c, 0, build_pad(c->im->b, x, (DimList){rank, low}, (DimList){rank, high}, NULL));
}

/* Optimizers. Inputs: a rate, a count of updates, and for each of n tensors x, its gradient and
 * its states: all x first. */

typedef struct Update {
    NodeId rate, count, x, gradient; /* gradient: with norm_coefficient * x */
    NodeId plain_gradient, states[2];
} Update;
typedef NodeId (*UpdateStep)(Call *c, Update *u);

static bool update_all(Call *c, uint32_t n_states, UpdateStep step) {
    uint32_t n_kinds = 2 + n_states, n = (c->node->inputs.n - 2) / n_kinds;
    double norm = attr_float(c, "norm_coefficient", 0);
    if (c->node->inputs.n != 2 + n * n_kinds || n == 0)
        return onnx_fail(c, DIAG_WRONG_ARITY, "it has %u inputs", c->node->inputs.n);
    for (uint32_t i = 0; i < n; i++) {
        Update u = {
            .rate = input(c, 0), .x = input(c, 2 + i), .plain_gradient = input(c, 2 + n + i)};
        u.count = cast_to(c, input(c, 1), DT_F32);
        u.gradient = op2(c, OP_ADD, op2n(c, OP_MUL, u.x, norm), u.plain_gradient);
        for (uint32_t k = 0; k < n_states; k++) u.states[k] = input(c, 2 + (2 + k) * n + i);
        NodeId x = step(c, &u);
        if (x == NODE_NONE) return false;
        output(c, i, x);
        for (uint32_t k = 0; k < n_states; k++)
            if (has_output(c, (1 + k) * n + i)) output(c, (1 + k) * n + i, u.states[k]);
    }
    return true;
}

/* rate * step / (sqrt(squares) + epsilon) off x */
static NodeId scaled_step(Call *c, const Update *u, NodeId rate, NodeId step, NodeId squares,
                          double epsilon) {
    NodeId root = op2n(c, OP_ADD, op1(c, OP_SQRT, squares), attr_float(c, "epsilon", epsilon));
    return op2(c, OP_SUB, u->x, op2(c, OP_DIV, op2(c, OP_MUL, rate, step), root));
}

static NodeId adagrad_step(Call *c, Update *u) {
    NodeId decay = op2n(c, OP_MUL, u->count, attr_float(c, "decay_factor", 0));
    NodeId rate = op2(c, OP_DIV, u->rate, op2n(c, OP_ADD, decay, 1));
    u->states[0] = op2(c, OP_ADD, u->states[0], op2(c, OP_MUL, u->gradient, u->gradient));
    return scaled_step(c, u, rate, u->gradient, u->states[0], 0);
}

/* part * old + (1 - part) * now */
static NodeId blended(Call *c, double part, NodeId old, NodeId now) {
    NodeId kept = op2n(c, OP_MUL, old, part);
    return op2(c, OP_ADD, kept, op2n(c, OP_MUL, now, 1 - part));
}

/* 1 - base^count */
static NodeId correction(Call *c, const Update *u, double base) {
    NodeId power = op2(c, OP_POW, constant(c, base, u->count), u->count);
    return op1(c, OP_NEG, op2n(c, OP_SUB, power, 1));
}

static NodeId adam_step(Call *c, Update *u) {
    double alpha = attr_float(c, "alpha", (double)0.9f),
           beta = attr_float(c, "beta", (double)0.999f);
    double post = attr_float(c, "norm_coefficient_post", 0);
    NodeId g = u->gradient;
    u->states[0] = blended(c, alpha, u->states[0], g);
    u->states[1] = blended(c, beta, u->states[1], op2(c, OP_MUL, g, g));
    NodeId factor =
        op2(c, OP_DIV, op1(c, OP_SQRT, correction(c, u, beta)), correction(c, u, alpha));
    NodeId is_first = op2n(c, OP_LESS_EQUAL, u->count, 0);
    NodeId rate = where(c, is_first, u->rate, op2(c, OP_MUL, u->rate, factor));
    NodeId x = scaled_step(c, u, rate, u->states[0], u->states[1], 1e-6);
    return post == 0 ? x : op2n(c, OP_MUL, x, 1 - post);
}

static NodeId momentum_step(Call *c, Update *u) {
    double alpha = attr_float(c, "alpha", 0), beta = attr_float(c, "beta", 0);
    NodeId g = u->gradient, is_first = op2n(c, OP_LESS_EQUAL, u->count, 0);
    NodeId part = where(c, is_first, constant(c, 1, u->rate), constant(c, beta, u->rate));
    NodeId kept = op2n(c, OP_MUL, u->states[0], alpha);
    u->states[0] = op2(c, OP_ADD, kept, op2(c, OP_MUL, part, g));
    NodeId step = u->states[0];
    if (strcmp(attr_string(c, "mode", "standard"), "nesterov") == 0)
        step = op2(c, OP_ADD, g, op2n(c, OP_MUL, step, alpha));
    return op2(c, OP_SUB, u->x, op2(c, OP_MUL, u->rate, step));
}

bool onnx_adagrad(Call *c) {
    return update_all(c, 1, adagrad_step);
}

bool onnx_adam(Call *c) {
    return update_all(c, 2, adam_step);
}

bool onnx_momentum(Call *c) {
    return update_all(c, 1, momentum_step);
}
