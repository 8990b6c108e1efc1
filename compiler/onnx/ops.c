/* The table of ops, and its page. */
#include "onnx/call/import_state.h"

static const OnnxOp ops[] = {
#define ONNX(domain, name, since, until, min, max, lower, fold, id, spelling, doc) \
    {domain, name, since, until, min, max, lower, fold, OP_##id, spelling, doc},
#include "onnx/onnx_ops.def"
};
static const struct {
    const char *domain;
    int64_t newest;
} opsets[] = {
#define ONNX_OPSET(domain, newest) {domain, newest},
#include "onnx/onnx_opsets.def"
};
static const struct {
    const char *domain, *name, *why;
} refused[] = {
#define ONNX_REFUSED(domain, name, why) {domain, name, why},
#include "onnx/onnx_refused.def"
};
enum {
    N_OPS = sizeof ops / sizeof ops[0],
    N_OPSETS = sizeof opsets / sizeof opsets[0],
    N_REFUSED = sizeof refused / sizeof refused[0]
};

static Str plain_domain(Str domain) {
    return strcmp(domain, "ai.onnx") == 0 ? "" : domain;
}

int64_t onnx_newest_opset(Str domain) {
    for (uint32_t i = 0; i < N_OPSETS; i++)
        if (strcmp(opsets[i].domain, plain_domain(domain)) == 0) return opsets[i].newest;
    return INT64_MAX;
}

const char *onnx_why_refused(Str domain, Str name) {
    for (uint32_t i = 0; i < N_REFUSED; i++)
        if (strcmp(refused[i].name, name) == 0 &&
            strcmp(refused[i].domain, plain_domain(domain)) == 0)
            return refused[i].why;
    return NULL;
}

static bool has_opset(const OnnxOp *op, int64_t opset) {
    return opset >= op->since && (!op->until || opset <= op->until);
}

const OnnxOp *onnx_op_find(Str domain, Str name, int64_t opset, bool *is_other_opset) {
    domain = plain_domain(domain);
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
    text_printf(out,
                "The newest opset is %lld, of ai.onnx.ml %lld. Those behind it are errors.\n\n",
                (long long)onnx_newest_opset(""), (long long)onnx_newest_opset("ai.onnx.ml"));
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
    text_puts(out,
              "\n## Ops that are errors\n\n| op | why, and what would be needed |\n|---|---|\n");
    for (uint32_t i = 0; i < N_REFUSED; i++)
        text_printf(out, "| `%s%s%s` | %s |\n", refused[i].domain, refused[i].domain[0] ? "." : "",
                    refused[i].name, refused[i].why);
}
