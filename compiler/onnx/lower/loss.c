/* Losses of class scores: x: [n, c, d..], target: i32 or i64[n, d..], weight: [c]. */
#include "onnx/call/import_state.h"

typedef struct Loss {
    NodeId x, target, weight; /* log probabilities; classes; per class, or NODE_NONE */
    Str reduction;
    bool ignores;
    int64_t ignored; /* class */
} Loss;

/* values: [n, c, d..] or [1, c, 1..] -> [n, d..], of each target's class */
static NodeId of_class(Call *c, NodeId is_class, NodeId values) {
    NodeId zero = constant(c, 0, values);
    return reduce(c, OP_SUM, where(c, is_class, values, zero), 2, false);
}

static NodeId loss(Call *c, const Loss *loss) {
    if (loss->x == NODE_NONE || loss->target == NODE_NONE) return NODE_NONE;
    Shape shape = *shape_of(c, loss->x), row = {.rank = shape.rank};
    if (shape.rank < 2) {
        onnx_fail(c, DIAG_SHAPE_MISMATCH, "it needs scores of 2 axes or more");
        return NODE_NONE;
    }
    NodeId classes = with_axis(c, cast_to(c, loss->target, DT_I32), 1);
    NodeId is_class = op2(c, OP_EQUAL, index_along(c, &shape, 1), classes);
    NodeId values = op1(c, OP_NEG, of_class(c, is_class, loss->x)), weights = NODE_NONE;
    if (loss->weight != NODE_NONE) {
        for (uint32_t k = 0; k < row.rank; k++) row.dims[k] = k == 1 ? shape.dims[1] : number(c, 1);
        weights = of_class(c, is_class, reshape_to(c, loss->weight, &row));
    }
    if (loss->ignores) {
        NodeId target = cast_to(c, loss->target, DT_I32), one = constant(c, 1, values);
        NodeId is_on = op2n(c, OP_NOT_EQUAL, target, (double)loss->ignored);
        NodeId zero = constant(c, 0, values);
        weights = where(c, is_on, weights == NODE_NONE ? one : weights, zero);
        values = where(c, is_on, values, zero);
    }
    if (weights != NODE_NONE) values = op2(c, OP_MUL, values, weights);
    if (strcmp(loss->reduction, "none") == 0 || values == NODE_NONE) return values;
    uint32_t all = (1u << (shape.rank - 1)) - 1;
    bool is_mean = strcmp(loss->reduction, "mean") == 0;
    if (is_mean && weights == NODE_NONE) return reduce(c, OP_MEAN, values, all, false);
    NodeId sum = reduce(c, OP_SUM, values, all, false);
    return is_mean ? op2(c, OP_DIV, sum, reduce(c, OP_SUM, weights, all, false)) : sum;
}

static Loss loss_of(Call *c, NodeId x) {
    const OnnxAttr *ignored = typed_attr(c, "ignore_index", ATTR_INT);
    return (Loss){.x = x,
                  .target = input(c, 1),
                  .weight = input(c, 2),
                  .reduction = attr_string(c, "reduction", "mean"),
                  .ignores = ignored != NULL,
                  .ignored = ignored ? ignored->integer : 0};
}

bool onnx_nll_loss(Call *c) {
    Loss given = loss_of(c, input(c, 0));
    return output(c, 0, loss(c, &given));
}

bool onnx_softmax_loss(Call *c) {
    NodeId x = input(c, 0);
    NodeId d = op2(c, OP_SUB, x, reduce(c, OP_MAX, x, 2, true));
    NodeId log = op2(c, OP_SUB, d, op1(c, OP_LOG, reduce(c, OP_SUM, op1(c, OP_EXP, d), 2, true)));
    Loss given = loss_of(c, log);
    if (has_output(c, 1)) output(c, 1, log);
    return output(c, 0, loss(c, &given));
}
