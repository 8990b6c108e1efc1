/* Einsum, as the builder has it. */
#include "onnx/call/import_state.h"

bool onnx_einsum(Call *c) {
    uint32_t n = c->node->inputs.n;
    NodeId *xs = arena_array(c->im->arena, NodeId, n);
    for (uint32_t i = 0; i < n; i++) xs[i] = input(c, i);
    const char *equation = attr_string(c, "equation", "");
    return output(c, 0, build_einsum(c->im->b, equation, n, xs, PRECISION_FULL, NULL));
}
