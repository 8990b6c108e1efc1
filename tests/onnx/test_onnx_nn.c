/* Layers of networks in: the ops of the language that they become. That results are right is for
 * test_nodes.c. */
#include "onnx/onnx_source.h"

#include <criterion/criterion.h>

enum { FLOAT = 1 };

/* The source of a convolution with these biases and the batch norm behind it. */
static const char *normalized(Arena *arena, const float *biases) {
    static const char *const image[] = {"B", "2", "9"}, *const taps[] = {"2", "2", "3"};
    static const char *const channels[] = {"2"};
    OnnxWriter w = onnx_writer(arena);
    onnx_write_input(&w, "x", FLOAT, 3, image);
    onnx_write_input(&w, "w", FLOAT, 3, taps);
    onnx_write_input(&w, "scale", FLOAT, 1, channels);
    onnx_write_input(&w, "shift", FLOAT, 1, channels);
    onnx_write_input(&w, "mean", FLOAT, 1, channels);
    onnx_write_input(&w, "var", FLOAT, 1, channels);
    onnx_write_floats(&w, "bias", 2, biases);
    onnx_write_node(&w, "Conv", "x w bias", "c", NULL);
    onnx_write_node(&w, "BatchNormalization", "c scale shift mean var", "y", NULL);
    onnx_write_output(&w, "y", FLOAT);
    return onnx_source_of(arena, &w, 16);
}

/* As the prelude has them: a batch norm is a scale that params alone determine, and a shift. */
Test(onnx_nn, biases_of_zero_are_none_and_batch_norms_are_those_of_the_language) {
    Arena *arena = arena_new(NULL);
    const char *none = normalized(arena, (float[]){0, 0});
    const char *some = normalized(arena, (float[]){0, 1});
    cr_expect(strstr(some, ", bias)"), "%s", some);
    cr_expect_null(strstr(none, "bias"), "%s", none);
    cr_expect(strstr(none, "rsqrt("), "%s", none);
    cr_expect_null(strstr(none, "div("), "%s", none);
    arena_free(arena);
}
