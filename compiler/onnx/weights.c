/* The head of a .safetensors file: its length, and JSON that places each tensor. */
#include "base/jsontext.h"
#include "onnx/import.h"

static void put_numbers(JsonText *json, const char *name, uint32_t n, const int64_t *numbers) {
    jsontext_begin(json, name, '[');
    for (uint32_t i = 0; i < n; i++) jsontext_number(json, NULL, (double)numbers[i]);
    jsontext_end(json, ']');
}

void onnx_weights_header(const OnnxImport *import, Text *out) {
    enum { ALIGNED = 8 };
    Text head = {.arena = out->arena};
    JsonText json = {.out = &head};
    int64_t at[2] = {0, 0};
    jsontext_begin(&json, NULL, '{');
    for (uint32_t i = 0; i < import->weights.n; i++) {
        const OnnxWeight *weight = &import->weights.data[i];
        at[0] = at[1];
        at[1] += (int64_t)weight->bytes.n;
        jsontext_begin(&json, weight->key, '{');
        jsontext_string(&json, "dtype", dtype_safetensors(weight->dtype));
        put_numbers(&json, "shape", weight->rank, weight->dims);
        put_numbers(&json, "data_offsets", 2, at);
        jsontext_end(&json, '}');
    }
    jsontext_end(&json, '}');
    while (head.n_bytes % ALIGNED) text_puts(&head, " ");
    char length[8];
    for (int i = 0; i < 8; i++) length[i] = (char)(head.n_bytes >> (8 * i) & 0xFF);
    text_add(out, length, sizeof length);
    text_add(out, head.data, head.n_bytes);
}
