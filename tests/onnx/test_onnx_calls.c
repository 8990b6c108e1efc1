/* What a node is called with: the types of its attributes, how many outputs it has, inputs that are
 * left out, and inputs whose extents are all names. */
#include "onnx/onnx_source.h"

#include <criterion/criterion.h>

enum { FLOAT = 1 };
static Arena *arena;

static void setup(void) {
    arena = arena_new(NULL);
}

static void teardown(void) {
    arena_free(arena);
}

TestSuite(onnx_calls, .init = setup, .fini = teardown);

static void expect(const OnnxWriter *w, int64_t opset, const char *part) {
    const char *text = onnx_source_of(arena, w, opset);
    cr_expect_not_null(strstr(text, part), "no `%s` in\n%s", part, text);
}

static OnnxWriter with_input(uint32_t rank, const char *const *dims) {
    OnnxWriter w = onnx_writer(arena);
    onnx_write_input(&w, "x", FLOAT, rank, dims);
    return w;
}

static void expect_attr(const char *op, const Text *attrs, const char *outputs, const char *part) {
    static const char *const dims[] = {"4", "6"};
    OnnxWriter w = with_input(2, dims);
    onnx_write_node(&w, op, "x", outputs, attrs);
    onnx_write_output(&w, "y", FLOAT);
    expect(&w, 18, part);
}

Test(onnx_calls, an_attribute_of_another_type_is_told) {
    static const int64_t axes[] = {1};
    Text word = {.arena = arena}, list = {.arena = arena}, number = {.arena = arena};
    onnx_attr_text(&word, "axis", "hello");
    onnx_attr_ints(&list, "axis", 1, axes);
    onnx_attr_int(&number, "alpha", 1);
    expect_attr("Softmax", &word, "y",
                "node `y` (Softmax, opset 18): its attribute `axis` is a string, not an integer");
    expect_attr("Flatten", &list, "y", "`axis` is a list of integers, not an integer");
    expect_attr("Elu", &number, "y", "`alpha` is an integer, not a float");
    expect_attr("Transpose", &word, "y", "transpose(x, perm=[1, 0])"); /* it has no axis */
}

Test(onnx_calls, so_is_one_of_a_node_that_is_known_while_importing) {
    static const char *const dims[] = {"4", "6"};
    static const int64_t first[] = {0};
    OnnxWriter w = with_input(2, dims);
    Text word = {.arena = arena};
    onnx_attr_text(&word, "axis", "hello");
    onnx_write_ints(&w, "first", 1, first);
    onnx_write_node(&w, "Shape", "x", "shape", NULL);
    onnx_write_node(&w, "Gather", "shape first", "n", &word);
    onnx_write_node(&w, "Expand", "x n", "y", NULL);
    onnx_write_output(&w, "y", FLOAT);
    const char *text = onnx_source_of(arena, &w, 18);
    cr_expect(strncmp(text, "error: m.onnx: node `n` (Gather, opset 18): its attribute", 40) == 0,
              "%s", text);
}

Test(onnx_calls, a_split_has_as_many_outputs_as_it_says) {
    for (int64_t n = 0; n <= 1000000000; n += 1000000000 / 2) {
        Text attrs = {.arena = arena};
        onnx_attr_int(&attrs, "num_outputs", n);
        expect_attr("Split", &attrs, "y z", "but it has 2 outputs");
    }
    Text attrs = {.arena = arena};
    onnx_attr_int(&attrs, "num_outputs", 2);
    expect_attr("Split", &attrs, "y z", "y: f32[2, 6]");
}

/* b = max(x, low), where low may be left out; f(x, low) = g(x, low) */
static void write_bounded(OnnxWriter *w) {
    static const char *const names[] = {"Bounded", "Outer"}, *const ops[] = {"Clip", "Bounded"};
    for (int i = 0; i < 2; i++) {
        Text inner = onnx_node(arena, ops[i], "a low", "b", NULL), opset = {.arena = arena};
        Text function = {.arena = arena};
        pb_text(&function, 1, names[i]);
        pb_text(&function, 4, "a");
        pb_text(&function, 4, "low");
        pb_text(&function, 5, "b");
        pb_message(&function, 7, &inner);
        pb_text(&opset, 1, "");
        pb_int(&opset, 2, 18);
        pb_message(&function, 9, &opset);
        pb_text(&function, 10, "");
        pb_message(&w->functions, 25, &function);
    }
}

Test(onnx_calls, a_function_may_be_called_without_an_input) {
    static const char *const dims[] = {"4"}, *const calls[] = {"x -", "x"};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        OnnxWriter w = with_input(1, dims);
        write_bounded(&w);
        onnx_write_node(&w, "Outer", calls[i], "c", NULL);
        onnx_write_node(&w, "Relu", "c", "y", NULL);
        onnx_write_output(&w, "y", FLOAT);
        expect(&w, 18, "y = relu(x)");
    }
}

Test(onnx_calls, extents_that_are_all_names_end_where_their_product_fits) {
    static const char *const dims[] = {"N", "C", "H", "W", "A", "B", "D", "E"};
    OnnxWriter four = with_input(4, dims), eight = with_input(8, dims);
    onnx_write_node(&four, "Relu", "x", "y", NULL);
    onnx_write_node(&eight, "Relu", "x", "y", NULL);
    onnx_write_output(&four, "y", FLOAT);
    onnx_write_output(&eight, "y", FLOAT);
    expect(&four, 18, "dim W in 1..16384");
    expect(&eight, 18, "dim E in 1..128");
}
