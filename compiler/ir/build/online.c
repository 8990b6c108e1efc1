/* Softmax and product in one op: its dtype and shape rules. See build.h. */
#include "ir/build/build.h"

#include <math.h>

static NodeId fail_shapes(Builder *b, OpId op, NodeId x, NodeId v, const char *what) {
    const char *x_shape = shape_str(b->dims, b->arena, build_shape_of(b, x));
    const char *v_shape = shape_str(b->dims, b->arena, build_shape_of(b, v));
    BuildError *error =
        build_fail(b, DIAG_SHAPE_MISMATCH, (BuildPlace){0}, "%s of `%s` differ: %s and %s", what,
                   op_info(op)->name, x_shape, v_shape);
    error->nodes[error->n_nodes++] = x;
    error->nodes[error->n_nodes++] = v;
    return NODE_NONE;
}

/* The scores have the dtype in which the values are multiplied. */
static bool check_scores(Builder *b, OpId op, NodeId x, Dtype values) {
    Dtype scores = graph_node(b->graph, x)->dtype, compute = online_compute(values);
    if (scores == compute) return true;
    build_fail(b, DIAG_DTYPE_MISMATCH, (BuildPlace){.arg = 1},
               "scores of `%s` are %s where the values are %s, not %s", op_info(op)->name,
               dtype_name(compute), dtype_name(values), dtype_name(scores))
        ->help = dtype_is_float(scores)
                     ? str_format(b->arena, "Write cast(x, %s), or a product with `out=%s`.",
                                  dtype_name(compute), dtype_name(compute))
                     : NULL;
    return false;
}

static bool check_rank(Builder *b, OpId op, NodeId node, uint32_t arg) {
    uint32_t rank = build_shape_of(b, node)->rank;
    if (rank >= 2 && rank < MAX_GIVEN_RANK) return true;
    build_fail(b, rank < 2 ? DIAG_SHAPE_MISMATCH : DIAG_LIMIT, (BuildPlace){.arg = arg},
               "`%s` takes ranks of 2 to %d, not %u", op_info(op)->name, MAX_GIVEN_RANK - 1, rank)
        ->help = rank < 2 ? "Reshape it to a matrix." : "Reshape leading axes to one.";
    return false;
}

/* The factors of weights are as the scores. */
static bool check_factor(Builder *b, OpId op, NodeId x, NodeId factor) {
    if (factor == NODE_NONE) return true;
    if (op_info(op)->row) {
        build_fail(b, DIAG_BAD_ARGUMENT, (BuildPlace){.arg = 3}, "`%s` takes no `factor`",
                   op_info(op)->name)
            ->help = "Factors of weights are not in their sum.";
        return false;
    }
    const Node *scores = graph_node(b->graph, x), *of = graph_node(b->graph, factor);
    if (scores->dtype != of->dtype) {
        build_fail(b, DIAG_DTYPE_MISMATCH, (BuildPlace){.arg = 3},
                   "the factor of `%s` is %s like the scores, not %s", op_info(op)->name,
                   dtype_name(scores->dtype), dtype_name(of->dtype));
        return false;
    }
    if (shape_equal(&scores->shape, &of->shape)) return true;
    fail_shapes(b, op, x, factor, "scores and factor");
    return false;
}

/* Sets how the node makes weights of scores of dtype `compute`. The product is one that a matmul
 * has. */
static bool take_quantize(Builder *b, const QuantizeMap *given, Dtype values, Node *node) {
    QuantizeMap *map = &node->attrs.quantize;
    Dtype compute = online_compute(values);
    if (op_info(node->op)->power) return true;
    *map = (QuantizeMap){.scale = 1, .least = -INFINITY, .dtype = values};
    if (op_info(node->op)->row || !given) return true;
    *map = *given;
    map->scale = dtype_round(compute, map->scale);
    map->least = dtype_round(compute, map->least);
    if (!quantize_map_fits(map, values)) {
        build_fail(b, DIAG_DTYPE_MISMATCH, (BuildPlace){0},
                   "`%s` multiplies values of %s by weights of their dtype, not %s",
                   op_info(node->op)->name, dtype_name(values), dtype_name(map->dtype))
            ->help = "8-bit floats multiply one another, and so do i8 and u8.";
        return false;
    }
    bool has_scale = map->scale > 0 && isfinite(map->scale);
    if (has_scale && (map->least == -INFINITY || (map->least >= 0 && isfinite(map->least))))
        return true;
    build_fail(b, DIAG_BAD_ARGUMENT, (BuildPlace){0}, "`%s` of `%s` is %g, as %s",
               has_scale ? "least" : "scale", op_info(node->op)->name,
               has_scale ? map->least : map->scale, dtype_name(compute))
        ->help = has_scale ? "It is at least 0, or left out." : "It is above 0 and finite.";
    return false;
}

/* A product of integers or of 8-bit floats is one of f32. */
static bool take_out(Builder *b, Dtype values, const Dtype *out, Node *node) {
    Dtype own = online_dtype(node->op, values);
    Dtype base = dtype_in(values, DTS_FLOAT) ? values : online_compute(values);
    const OpInfo *info = op_info(node->op);
    uint32_t arg = info->power ? 4 : info->row ? 3 : 7;
    return build_check_out(b, (BuildPlace){.arg = arg}, base, out ? out : &own, &node->dtype);
}

NodeId build_online(Builder *b, OpId op, NodeId x, NodeId v, NodeId factor,
                    const QuantizeMap *quantize, const Dtype *out) {
    if (x == NODE_NONE || v == NODE_NONE) return NODE_NONE;
    Node node = {.op = op, .n_args = factor == NODE_NONE ? 2 : 3, .args = (NodeId[]){x, v, factor}};
    Dtype dtype = graph_node(b->graph, v)->dtype;
    if (!build_check_dtype(b, op, dtype) || !check_scores(b, op, x, dtype) ||
        !take_quantize(b, quantize, dtype, &node) || !take_out(b, dtype, out, &node) ||
        !check_rank(b, op, x, 1) || !check_rank(b, op, v, 2) || !check_factor(b, op, x, factor))
        return NODE_NONE;
    const Shape scores = *build_shape_of(b, x), values = *build_shape_of(b, v);
    if (scores.dims[scores.rank - 1] != values.dims[values.rank - 2])
        return fail_shapes(b, op, x, v, "contracted extents");
    if (!matmul_shape(b->dims, &scores, &values, &node.shape))
        return fail_shapes(b, op, x, v, "leading axes");
    return build_checked_node(b, node);
}
