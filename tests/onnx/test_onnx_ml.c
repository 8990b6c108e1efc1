/* Classical machine learning in: support vector machines and codes. That results are right is for
 * test_nodes.c. */
#include "onnx/onnx_source.h"

#include <criterion/criterion.h>

enum { FLOAT = 1, INT64 = 7 };

static const float numbers[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
static const int64_t labels[] = {2, 4, 7}, of_class[] = {1, 1, 0};

typedef struct Machine {
    uint32_t n_labels, n_coefficients, n_vectors, n_probabilities;
    const char *kernel;
} Machine;

/* The source of a classifier of x: f32[batch, 6], or its diagnostics. */
static const char *classifier(Arena *arena, Machine m) {
    static const char *const dims[] = {"batch", "6"};
    OnnxWriter w = onnx_writer(arena);
    Text attrs = {.arena = arena};
    onnx_write_input(&w, "x", FLOAT, 2, dims);
    onnx_attr_domain(&attrs, "ai.onnx.ml");
    onnx_attr_ints(&attrs, "classlabels_ints", m.n_labels, labels);
    onnx_attr_ints(&attrs, "vectors_per_class", m.n_labels, of_class);
    onnx_attr_floats(&attrs, "coefficients", m.n_coefficients, numbers);
    onnx_attr_floats(&attrs, "support_vectors", m.n_vectors, numbers);
    onnx_attr_floats(&attrs, "rho", m.n_labels * (m.n_labels - 1) / 2, numbers);
    onnx_attr_floats(&attrs, "prob_a", m.n_probabilities, numbers);
    onnx_attr_text(&attrs, "kernel_type", m.kernel);
    onnx_write_node(&w, "SVMClassifier", "x", "label score", &attrs);
    onnx_write_output(&w, "label", INT64);
    onnx_write_output(&w, "score", FLOAT);
    return onnx_source_of(arena, &w, 18);
}

Test(onnx_ml, classes_of_a_machine_are_votes) {
    static const struct {
        Machine machine;
        const char *part; /* of the source, or of the error */
    } cases[] = {
        {{2, 2, 12, 0, "LINEAR"}, "score = concat("},
        {{3, 4, 12, 0, "RBF"}, "label = gather("},
        {{3, 4, 12, 0, "SIGMOID"}, "tanh("},
        {{3, 3, 12, 0, "LINEAR"}, "it needs 4 coefficients"},
        {{2, 2, 11, 0, "LINEAR"}, "its attribute `support_vectors` needs 12 numbers"},
        {{2, 2, 12, 1, "LINEAR"}, "its probabilities are found by iteration"},
        {{2, 2, 12, 0, "COSINE"}, "there is no kernel_type `COSINE`"},
        {{1, 2, 12, 0, "LINEAR"}, "with two labels or more"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Arena *arena = arena_new(NULL);
        const char *text = classifier(arena, cases[i].machine);
        cr_expect(strstr(text, cases[i].part), "no `%s` in\n%s", cases[i].part, text);
        arena_free(arena);
    }
}

/* Keys of numbers, as many as values. */
Test(onnx_ml, codes_need_numbers) {
    static const char *const dims[] = {"batch", "6"};
    for (uint32_t n_values = 1; n_values <= 3; n_values++) {
        Arena *arena = arena_new(NULL);
        OnnxWriter w = onnx_writer(arena);
        Text attrs = {.arena = arena};
        onnx_write_input(&w, "x", INT64, 2, dims);
        onnx_attr_domain(&attrs, "ai.onnx.ml");
        if (n_values < 3) onnx_attr_ints(&attrs, "keys_int64s", 2, labels);
        onnx_attr_floats(&attrs, "values_floats", n_values, numbers);
        onnx_write_node(&w, "LabelEncoder", "x", "y", &attrs);
        onnx_write_output(&w, "y", FLOAT);
        const char *text = onnx_source_of(arena, &w, 18);
        const char *part = n_values == 1   ? "it has 2 keys and 1 values"
                           : n_values == 2 ? "y = where("
                                           : "it needs numbers below 2^53 as keys and as values";
        cr_expect(strstr(text, part), "no `%s` in\n%s", part, text);
        arena_free(arena);
    }
}

/* The label and the map of a classifier of two classes. */
Test(onnx_ml, maps_are_scores_and_labels_are_numbers) {
    static const char *const dims[] = {"batch", "6"}, *const words[] = {"no", "yes"};
    for (int is_text = 0; is_text < 2; is_text++) {
        Arena *arena = arena_new(NULL);
        OnnxWriter w = onnx_writer(arena);
        Text attrs = {.arena = arena}, map = {.arena = arena};
        onnx_write_input(&w, "x", FLOAT, 2, dims);
        onnx_attr_domain(&attrs, "ai.onnx.ml");
        onnx_attr_domain(&map, "ai.onnx.ml");
        onnx_attr_floats(&attrs, "coefficients", 12, numbers);
        onnx_attr_ints(&map, "classlabels_int64s", 2, labels);
        if (is_text)
            onnx_attr_texts(&attrs, "classlabels_strings", 2, words);
        else
            onnx_attr_ints(&attrs, "classlabels_ints", 2, labels);
        onnx_write_node(&w, "LinearClassifier", "x", "label scores", &attrs);
        onnx_write_node(&w, "ZipMap", "scores", "map", &map);
        onnx_write_output(&w, "label", INT64);
        onnx_write_output(&w, "map", 0);
        const char *text = onnx_source_of(arena, &w, 18);
        const char *part = is_text ? "its labels are strings, which the language has no dtype for"
                                   : "map: f32[batch, 2])";
        cr_expect(strstr(text, part), "no `%s` in\n%s", part, text);
        arena_free(arena);
    }
}
