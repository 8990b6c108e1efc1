/* Fuzz entry: arbitrary bytes as a .safetensors file. An accepted file is read to its last byte, so
 * that a wrong offset becomes a sanitizer report. Build: clang -fsanitize=fuzzer,address,undefined
 * with the runtime's sources. */
#include "../../runtime/src/exec/weights.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    static const char *const names[] = {"a", "b", "w", "fc1.weight"};
    Weights *weights = NULL;
    frt_error err = FRT_ERROR_INIT;
    if (weights_parse(data, n, "fuzz", &weights, &err)) {
        return 0;
    }
    unsigned sum = 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const Weight *weight = weights_find(weights, names[i]);
        for (size_t k = 0; weight && k < weight->n_bytes; k++) {
            unsigned char byte = 0;
            weights_read(weights, weight, k, &byte, 1, &err);
            sum += byte;
        }
    }
    volatile unsigned sink = sum;
    (void)sink;
    weights_close(weights);
    return 0;
}
