/* The table of ops, and its page. */
#include "onnx/call/import_state.h"

static const OnnxOp ops[] = {
#define ONNX(domain, name, since, until, min, max, lower, fold, id, spelling, doc) \
    {domain, name, since, until, min, max, lower, fold, OP_##id, spelling, doc},
#include "onnx/onnx_ops.def"
};
enum { N_OPS = sizeof ops / sizeof ops[0] };

static bool has_opset(const OnnxOp *op, int64_t opset) {
    return opset >= op->since && (!op->until || opset <= op->until);
}

const OnnxOp *onnx_op_find(Str domain, Str name, int64_t opset, bool *is_other_opset) {
    if (strcmp(domain, "ai.onnx") == 0) domain = "";
    for (uint32_t i = 0; i < N_OPS; i++) {
        if (strcmp(ops[i].name, name) != 0 || strcmp(ops[i].domain, domain) != 0) continue;
        if (has_opset(&ops[i], opset)) return &ops[i];
        *is_other_opset = true;
    }
    return NULL;
}

/* A cell of a table, where `|` would end it. */
static void print_cell(Text *out, const char *text) {
    for (; *text; text++) {
        if (*text == '|') text_puts(out, "\\");
        text_add(out, text, 1);
    }
}

void onnx_ops_print(Text *out) {
    text_puts(out, "| op | opsets | in the language | not supported |\n|---|---|---|---|\n");
    for (uint32_t i = 0; i < N_OPS; i++) {
        text_printf(out, "| `%s%s%s` | %lld to ", ops[i].domain, ops[i].domain[0] ? "." : "",
                    ops[i].name, (long long)ops[i].since);
        if (ops[i].until)
            text_printf(out, "%lld", (long long)ops[i].until);
        else
            text_puts(out, "the newest");
        text_puts(out, " | ");
        print_cell(out, ops[i].spelling);
        text_printf(out, " | %s |\n", ops[i].doc);
    }
}
