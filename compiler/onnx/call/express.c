/* Ops that are said in the language, by the prelude's defs. */
#include "front/sema.h"
#include "onnx/call/import_state.h"

#include <ctype.h>

NodeId express(Call *c, const char *expression, uint32_t n, const NodeId *tensors) {
    static const char *const names[] = {"x", "w", "b", "mean", "variance"};
    Import *im = c->im;
    FrontTensor given[sizeof names / sizeof *names];
    for (uint32_t i = 0; i < n; i++) {
        if (tensors[i] == NODE_NONE) return NODE_NONE;
        given[i] = (FrontTensor){names[i], tensors[i]};
    }
    if (!im->language) {
        im->language_diags = (Diags){.arena = im->arena};
        im->language = front_new(im->arena, im->strings, &im->language_diags);
    }
    NodeId value = front_express(im->language, im->b, expression, n, given);
    const Diag *error = im->language_diags.first;
    if (value != NODE_NONE || !error) return value;
    onnx_fail(c, error->id, "%s", error->message);
    return NODE_NONE;
}

const char *int_list(Call *c, uint32_t n, const int64_t *numbers) {
    Text text = {.arena = c->im->arena};
    for (uint32_t i = 0; i < n; i++)
        text_printf(&text, "%s%lld", i ? ", " : "[", (long long)numbers[i]);
    text_puts(&text, "]");
    return text_str(&text);
}

bool onnx_prelude(Call *c) {
    char *name = str_format(c->im->arena, "%s", c->node->op);
    for (char *at = name; *at; at++) *at = (char)tolower((unsigned char)*at);
    NodeId x = input(c, 0);
    return output(c, 0, express(c, str_format(c->im->arena, "%s(x)", name), 1, &x));
}
