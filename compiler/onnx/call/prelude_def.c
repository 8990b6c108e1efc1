/* Ops that the prelude has a def for: the def is checked on numbers, and the graph of numbers that
 * it becomes is built again on tensors. */
#include "front/sema.h"
#include "onnx/call/import_state.h"

#include <ctype.h>

/* The node with other arguments. */
static NodeId rebuilt(Call *c, const Node *node, const NodeId *made) {
    Operand operands[BUILD_MAX_OPERANDS];
    for (uint32_t i = 0; i < node->n_args && i < BUILD_MAX_OPERANDS; i++)
        operands[i] = operand_tensor(made[node->args[i]]);
    switch (op_info(node->op)->cls) {
    case CLASS_ELTWISE:
        return build_eltwise(c->im->b, node->op, node->n_args, operands);
    case CLASS_CAST:
        return build_cast(c->im->b, &operands[0], node->dtype);
    default:
        return NODE_NONE;
    }
}

NodeId prelude_def_of(Call *c, NodeId x, const char *call) {
    Diags diags = {.arena = c->im->arena};
    if (x == NODE_NONE) return x;
    const char *text = str_format(c->im->arena, "graph f(x: %s[]) -> (y: %s[]) {\n  y = %s\n}\n",
                                  dtype_name(dtype_of(c, x)), dtype_name(dtype_of(c, x)), call);
    const Source *source = source_new(c->im->arena, "prelude", text, strlen(text));
    Module *module = front_parse(c->im->arena, strtab_new(c->im->arena), &diags, source);
    if (!module) {
        onnx_fail(c, DIAG_UNSUPPORTED_DTYPE, "`%s` does not take %s", call,
                  dtype_name(dtype_of(c, x)));
        return NODE_NONE;
    }
    const Graph *graph = module->graphs.data[0];
    NodeId *made = arena_array(c->im->arena, NodeId, graph->nodes.n + 1);
    for (NodeId id = 0; id < graph->nodes.n; id++) {
        const Node *node = graph_node(graph, id);
        Operand value = operand_float(node->attrs.number);
        made[id] = node->op == OP_INPUT   ? x
                   : node->op == OP_CONST ? build_const(c->im->b, &value, node->dtype)
                                          : rebuilt(c, node, made);
    }
    return made[graph->outputs.data[0].node];
}

bool onnx_prelude(Call *c) {
    char *name = str_format(c->im->arena, "%s", c->node->op);
    for (char *at = name; *at; at++) *at = (char)tolower((unsigned char)*at);
    return output(c, 0, prelude_def_of(c, input(c, 0), str_format(c->im->arena, "%s(x)", name)));
}
