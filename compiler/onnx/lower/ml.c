/* Ops of the domain ai.onnx.ml, classical machine learning. x: [n, features] */
#include "onnx/call/import_state.h"

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
