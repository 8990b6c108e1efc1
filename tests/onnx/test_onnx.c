/* ONNX in: the graphs that models become, and what wrong models are told. */
#include "front/prelude.h"
#include "front/sema.h"
#include "onnx/onnx_bytes.h"
#include "onnx/import.h"

#include <criterion/criterion.h>
#include <ctype.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { FLOAT = 1, INT32 = 6, INT64 = 7, BOOL = 9 };
static Arena *arena;

static void setup(void) {
    arena = arena_new(NULL);
}

static void teardown(void) {
    arena_free(arena);
}

TestSuite(onnx, .init = setup, .fini = teardown);

static const OnnxConstant *constants; /* of the next import */
static uint32_t n_constants;

static OnnxImport *import_bytes(const char *bytes, size_t n, const char **messages) {
    Diags diags = {.arena = arena};
    Text text = {.arena = arena};
    OnnxSource source = {.name = "m.onnx",
                         .file = {(const uint8_t *)bytes, n},
                         .n_constants = n_constants,
                         .constants = constants};
    OnnxImport *made = onnx_import(arena, strtab_new(arena), &diags, &source, "m.safetensors");
    diag_print(&diags, &text);
    *messages = text_str(&text);
    cr_assert_eq(made == NULL, diags.n_errors > 0);
    return made;
}

static OnnxImport *import_model(const OnnxWriter *w, int64_t opset, const char **messages) {
    Text model = onnx_write_model(w, opset);
    return import_bytes(model.data, model.n_bytes, messages);
}

/* The source that the model becomes. It parses, to the same source. */
static const char *source_of(const OnnxWriter *w, int64_t opset) {
    const char *messages;
    Text text = {.arena = arena}, again = {.arena = arena};
    OnnxImport *made = import_model(w, opset, &messages);
    cr_assert_not_null(made, "%s", messages);
    module_print(made->module, &text);
    Diags diags = {.arena = arena};
    const Source *source = source_new(arena, "m.g", text_str(&text), text.n_bytes);
    Module *module = front_parse(arena, strtab_new(arena), &diags, source);
    cr_assert_not_null(module, "%s", text_str(&text));
    module_print(module, &again);
    cr_assert_str_eq(text_str(&again), text_str(&text));
    return text_str(&text);
}

static void expect(const char *text, const char *part) {
    cr_assert_not_null(strstr(text, part), "no `%s` in\n%s", part, text);
}

static void expect_error(const OnnxWriter *w, int64_t opset, const char *part) {
    const char *messages;
    cr_assert_null(import_model(w, opset, &messages));
    expect(messages, part);
}

static void write_x(OnnxWriter *w) {
    static const char *const dims[] = {"batch", "6"};
    onnx_write_input(w, "x", FLOAT, 2, dims);
}

Test(onnx, a_graph_keeps_its_names_and_symbolic_dims) {
    OnnxWriter w = onnx_writer(arena);
    write_x(&w);
    onnx_write_node(&w, "Relu", "x", "h/0", NULL);
    onnx_write_node(&w, "Add", "h/0 x", "sum", NULL);
    onnx_write_node(&w, "Tanh", "sum", "y.1", NULL);
    onnx_write_output(&w, "y.1", FLOAT);
    const char *text = source_of(&w, 13);
    expect(text, "dim batch in 1..65536");
    expect(text, "graph net(x: f32[batch, 6]) -> (y_1: f32[batch, 6])");
    expect(text, "sum = add(");
    expect(text, "y_1 = tanh(sum)");
}

Test(onnx, a_name_that_is_no_identifier_gets_one_of_its_own) {
    OnnxWriter w = onnx_writer(arena);
    static const char *const dims[] = {"2"};
    onnx_write_input(&w, "a.b", FLOAT, 1, dims);
    onnx_write_input(&w, "a/b", FLOAT, 1, dims);
    onnx_write_input(&w, "graph", FLOAT, 1, dims);
    onnx_write_input(&w, "1", FLOAT, 1, dims);
    onnx_write_node(&w, "Sum", "a.b a/b graph 1", "f32", NULL);
    onnx_write_output(&w, "f32", FLOAT);
    const char *text = source_of(&w, 13);
    expect(text, "net(a_b: f32[2], a_b_2: f32[2], graph_: f32[2], _1: f32[2]) -> (f32_: f32[2])");
}

Test(onnx, shapes_that_are_computed_become_dims) {
    OnnxWriter w = onnx_writer(arena);
    static const int64_t zero[] = {0}, rest[] = {2, -1};
    Text axis = {.arena = arena};
    onnx_attr_int(&axis, "axis", 0);
    write_x(&w);
    onnx_write_ints(&w, "zero", 1, zero);
    onnx_write_ints(&w, "rest", 2, rest);
    onnx_write_node(&w, "Shape", "x", "shape", NULL);
    onnx_write_node(&w, "Gather", "shape zero", "n", NULL);
    onnx_write_node(&w, "Concat", "n rest", "to", &axis);
    onnx_write_node(&w, "Reshape", "x to", "y", NULL);
    onnx_write_output(&w, "y", FLOAT);
    const char *text = source_of(&w, 13);
    expect(text, "-> (y: f32[batch, 2, 3])");
    expect(text, "y = reshape(x, [batch, 2, 3])");
    cr_assert_null(strstr(text, "gather"), "%s", text);
}

Test(onnx, axes_are_an_attribute_or_an_input_by_opset) {
    static const int64_t one[] = {1};
    for (int is_input = 0; is_input < 2; is_input++) {
        OnnxWriter w = onnx_writer(arena);
        Text attrs = {.arena = arena};
        write_x(&w);
        if (is_input)
            onnx_write_ints(&w, "axes", 1, one);
        else
            onnx_attr_ints(&attrs, "axes", 1, one);
        onnx_write_node(&w, "ReduceSum", is_input ? "x axes" : "x", "y", &attrs);
        onnx_write_output(&w, "y", FLOAT);
        expect(source_of(&w, is_input ? 13 : 11), "y = sum(x, axis=[1], keep=true)");
    }
}

Test(onnx, softmax_changed_its_axis_in_opset_13) {
    static const char *const dims[] = {"2", "3", "4"};
    for (int64_t opset = 11; opset <= 13; opset += 2) {
        OnnxWriter w = onnx_writer(arena);
        onnx_write_input(&w, "x", FLOAT, 3, dims);
        onnx_write_node(&w, "Softmax", "x", "y", NULL);
        onnx_write_output(&w, "y", FLOAT);
        expect(source_of(&w, opset), opset < 13 ? "reshape(x, [2, 12])" : "axis=[2]");
    }
}

Test(onnx, initializers_become_params_with_their_elements) {
    OnnxWriter w = onnx_writer(arena);
    static const float values[] = {1, 2, 3, 4, 5, 6};
    const char *messages;
    write_x(&w);
    onnx_write_floats(&w, "layer.bias", 6, values);
    onnx_write_floats(&w, "unused", 6, values);
    onnx_write_node(&w, "Add", "x layer.bias", "y", NULL);
    onnx_write_output(&w, "y", FLOAT);
    expect(source_of(&w, 13), "layer_bias");
    OnnxImport *made = import_model(&w, 13, &messages);
    cr_assert_eq(made->weights.n, 1);
    const OnnxWeight *weight = &made->weights.data[0];
    cr_assert_str_eq(weight->key, "layer.bias");
    cr_assert_eq(weight->bytes.n, sizeof values);
    cr_assert_eq(memcmp(weight->bytes.data, values, sizeof values), 0);
    Text head = {.arena = arena};
    onnx_weights_header(made, &head);
    cr_assert_eq(head.n_bytes % 8, 0);
    cr_assert_eq((size_t)(unsigned char)head.data[0], head.n_bytes - 8);
    expect(head.data + 8, "\"layer.bias\"");
}

Test(onnx, a_function_of_the_model_is_inlined) {
    OnnxWriter w = onnx_writer(arena);
    Text function = {.arena = arena}, opset = {.arena = arena};
    pb_text(&function, 1, "Twice");
    pb_text(&function, 4, "a");
    pb_text(&function, 5, "b");
    Text inner = onnx_node(arena, "Add", "a a", "b", NULL);
    pb_message(&function, 7, &inner);
    pb_text(&opset, 1, "");
    pb_int(&opset, 2, 13);
    pb_message(&function, 9, &opset);
    pb_text(&function, 10, "");
    pb_message(&w.functions, 25, &function);
    write_x(&w);
    onnx_write_node(&w, "Twice", "x", "h", NULL);
    onnx_write_node(&w, "Twice", "h", "y", NULL);
    onnx_write_output(&w, "y", FLOAT);
    const char *text = source_of(&w, 13);
    expect(text, "h = add(x, x)");
    expect(text, "y = add(h, h)");
}

static OnnxWriter sum_over_an_input(void) {
    OnnxWriter w = onnx_writer(arena);
    static const char *const dims[] = {"1"};
    write_x(&w);
    onnx_write_input(&w, "my.axes", INT64, 1, dims);
    onnx_write_node(&w, "Neg", "my.axes", "axes", NULL);
    onnx_write_node(&w, "ReduceSum", "x axes", "y", NULL);
    onnx_write_output(&w, "y", FLOAT);
    return w;
}

Test(onnx, an_input_that_is_given_as_a_constant_is_known) {
    static const OnnxConstant axes = {.name = "my_axes", .text = "1"};
    OnnxWriter w = sum_over_an_input();
    constants = &axes;
    n_constants = 1;
    const char *text = source_of(&w, 13);
    expect(text, "net(x: f32[batch, 6])");
    expect(text, "y = sum(x, axis=[1], keep=true)");
}

Test(onnx, wrong_constants_are_errors) {
    static const struct {
        OnnxConstant given;
        const char *message;
    } cases[] = {
        {{.name = "axis", .text = "1"}, "--constant=axis: the model has no input of this name"},
        {{.name = "my.axes", .text = "1,2"}, "its extents are not those of the model's input"},
        {{.name = "my.axes", .text = "one"}, "its value is no list of numbers"},
        {{.name = "x", .text = "1"}, "must come from a .npy file"},
        {{.name = "x", .file = {(const uint8_t *)"?", 1}}, "--constant=x: "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        OnnxWriter w = sum_over_an_input();
        constants = &cases[i].given;
        n_constants = 1;
        expect_error(&w, 13, cases[i].message);
    }
}

Test(onnx, nodes_of_known_inputs_are_evaluated) {
    OnnxWriter w = onnx_writer(arena);
    static const int64_t from[] = {2, 7}, by[] = {5, 4};
    static const char *const dims[] = {"6"};
    onnx_write_input(&w, "x", FLOAT, 1, dims);
    onnx_write_ints(&w, "from", 2, from);
    onnx_write_ints(&w, "by", 2, by);
    onnx_write_node(&w, "Mod", "from by", "shape", NULL);
    onnx_write_node(&w, "Reshape", "x shape", "y", NULL);
    onnx_write_output(&w, "y", FLOAT);
    expect(source_of(&w, 13), "y = reshape(x, [2, 3])");
}

Test(onnx, elements_are_gathered_from_batches_of_any_size) {
    for (int64_t axis = 0; axis < 2; axis++) {
        static const char *const dims[] = {"batch", "3"};
        OnnxWriter w = onnx_writer(arena);
        Text attrs = {.arena = arena};
        onnx_attr_int(&attrs, "axis", axis);
        write_x(&w);
        onnx_write_input(&w, "at", INT64, 2, dims);
        onnx_write_node(&w, "GatherElements", "x at", "y", &attrs);
        onnx_write_output(&w, "y", FLOAT);
        const char *text = source_of(&w, 13);
        expect(text, "y: f32[batch, 3]");
        expect(text, axis == 0 ? "iota([batch + 1], axis=0)" : "const(6, i32)");
    }
}

Test(onnx, rows_are_gathered_by_tuples_from_data_of_any_size) {
    static const char *const dims[] = {"n", "2"}, *const data[] = {"batch", "time", "4"};
    OnnxWriter w = onnx_writer(arena);
    onnx_write_input(&w, "x", FLOAT, 3, data);
    onnx_write_input(&w, "at", INT64, 2, dims);
    onnx_write_node(&w, "GatherND", "x at", "y", NULL);
    onnx_write_output(&w, "y", FLOAT);
    const char *text = source_of(&w, 13);
    expect(text, "-> (y: f32[n, 4])");
    expect(text, "reshape(x, [batch*time, 4])");
}

/* A table of positions, cut to as many as there are words. */
Test(onnx, a_dim_that_a_slice_ends_at_is_bounded_by_what_is_sliced) {
    static const char *const dims[] = {"batch", "time"};
    static const int64_t first[] = {0}, second[] = {1};
    static const float positions[12] = {1};
    OnnxWriter w = onnx_writer(arena);
    onnx_write_input(&w, "x", FLOAT, 2, dims);
    onnx_write_floats(&w, "positions", 12, positions);
    onnx_write_ints(&w, "first", 1, first);
    onnx_write_ints(&w, "second", 1, second);
    onnx_write_node(&w, "Shape", "x", "shape", NULL);
    onnx_write_node(&w, "Gather", "shape second", "n", NULL);
    onnx_write_node(&w, "Slice", "positions first n", "some", NULL);
    onnx_write_node(&w, "Add", "x some", "y", NULL);
    onnx_write_output(&w, "y", FLOAT);
    const char *text = source_of(&w, 13);
    expect(text, "dim batch in 1..65536");
    expect(text, "dim time in 1..12");
}

/* Classical machine learning. */

static void write_scaler(OnnxWriter *w, uint32_t n_offsets) {
    static const float numbers[6] = {1, 2, 3, 4, 5, 6};
    Text attrs = {.arena = arena};
    onnx_attr_domain(&attrs, "ai.onnx.ml");
    onnx_attr_floats(&attrs, "offset", n_offsets, numbers);
    onnx_attr_floats(&attrs, "scale", 6, numbers);
    write_x(w);
    onnx_write_node(w, "Scaler", "x", "y", &attrs);
    onnx_write_output(w, "y", FLOAT);
}

Test(onnx, a_scaler_is_a_difference_and_a_product) {
    OnnxWriter w = onnx_writer(arena);
    write_scaler(&w, 6);
    const char *text = source_of(&w, 13);
    expect(text, "sub(x, ");
    expect(text, "y = mul(");
}

Test(onnx, numbers_of_an_attribute_must_be_as_many_as_features) {
    OnnxWriter w = onnx_writer(arena);
    write_scaler(&w, 5);
    expect_error(&w, 13, "its attribute `offset` needs 6 numbers");
}

/* Graphs inside nodes. */

/* y = body(.. body(x)), where a step adds x to itself and is collected. */
static OnnxWriter doubling_loop(const char *count) {
    OnnxWriter w = onnx_writer(arena), body = onnx_writer(arena);
    static const char *const dims[] = {"2"}, *const number[] = {"1"};
    static const int64_t three[] = {3};
    Text attrs = {.arena = arena};
    onnx_write_input(&body, "step", INT64, 0, NULL);
    onnx_write_input(&body, "goes_on", BOOL, 0, NULL);
    onnx_write_input(&body, "a", FLOAT, 1, dims);
    onnx_write_node(&body, "Identity", "goes_on", "still", NULL);
    onnx_write_node(&body, "Add", "a a", "b", NULL);
    onnx_write_output(&body, "still", BOOL);
    onnx_write_output(&body, "b", FLOAT);
    onnx_write_output(&body, "b", FLOAT);
    onnx_attr_graph(&attrs, "body", &body);
    onnx_write_input(&w, "x", FLOAT, 1, dims);
    onnx_write_input(&w, "n", INT64, 1, number);
    onnx_write_ints(&w, "three", 1, three);
    onnx_write_node(&w, "Loop", str_format(arena, "%s - x", count), "y all", &attrs);
    onnx_write_output(&w, "y", FLOAT);
    onnx_write_output(&w, "all", FLOAT);
    return w;
}

static uint32_t count_parts(const char *text, const char *part) {
    uint32_t n = 0;
    for (; (text = strstr(text, part)) != NULL; text++) n++;
    return n;
}

Test(onnx, a_loop_is_written_out) {
    OnnxWriter w = doubling_loop("three");
    const char *text = source_of(&w, 16);
    cr_assert_eq(count_parts(text, "add("), 3, "%s", text);
    expect(text, "all: f32[3, 2]");
}

Test(onnx, a_loop_needs_a_known_count) {
    OnnxWriter w = doubling_loop("n");
    expect_error(&w, 16, "give it as a constant: --constant=n=VALUES");
}

Test(onnx, a_branch_is_chosen_by_a_known_condition_or_by_a_select) {
    static const char *const dims[] = {"2"};
    for (int is_known = 0; is_known < 2; is_known++) {
        OnnxWriter w = onnx_writer(arena), yes = onnx_writer(arena), no = onnx_writer(arena);
        static const int64_t zero[] = {0};
        Text attrs = {.arena = arena};
        onnx_write_node(&yes, "Relu", "x", "a", NULL);
        onnx_write_output(&yes, "a", FLOAT);
        onnx_write_node(&no, "Tanh", "x", "b", NULL);
        onnx_write_output(&no, "b", FLOAT);
        onnx_attr_graph(&attrs, "then_branch", &yes);
        onnx_attr_graph(&attrs, "else_branch", &no);
        onnx_write_input(&w, "x", FLOAT, 1, dims);
        onnx_write_input(&w, "given", BOOL, 0, NULL);
        onnx_write_ints(&w, "zero", 1, zero);
        onnx_write_node(&w, "If", is_known ? "zero" : "given", "y", &attrs);
        onnx_write_output(&w, "y", FLOAT);
        const char *text = source_of(&w, 16);
        expect(text, is_known ? "b = tanh(x)" : "y = where(given, ");
        cr_assert_eq(strstr(text, "relu") == NULL, is_known, "%s", text);
    }
}

Test(onnx, an_einsum_is_a_matrix_product) {
    static const char *const left[] = {"B", "4", "6"}, *const right[] = {"B", "5", "6"};
    OnnxWriter w = onnx_writer(arena);
    Text attrs = {.arena = arena};
    onnx_attr_text(&attrs, "equation", "bij,bkj->bik");
    onnx_write_input(&w, "x", FLOAT, 3, left);
    onnx_write_input(&w, "z", FLOAT, 3, right);
    onnx_write_node(&w, "Einsum", "x z", "y", &attrs);
    onnx_write_output(&w, "y", FLOAT);
    const char *text = source_of(&w, 16);
    expect(text, "matmul(x, ");
    expect(text, "y: f32[B, 4, 5]");
}

/* ONNX's numbers of dtypes. */
enum { UINT8 = 2, INT8 = 3 };

Test(onnx, bytes_are_multiplied_as_bytes) {
    static const int types[][2] = {{UINT8, UINT8}, {UINT8, INT8}, {INT8, UINT8}, {INT8, INT8}};
    static const char *const left[] = {"B", "6"}, *const right[] = {"6", "4"};
    static const char *const image[] = {"B", "6", "5"}, *const taps[] = {"4", "6", "3"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        OnnxWriter w = onnx_writer(arena);
        onnx_write_input(&w, "a", types[i][0], 2, left);
        onnx_write_input(&w, "b", types[i][1], 2, right);
        onnx_write_input(&w, "p", types[i][0], 0, NULL);
        onnx_write_input(&w, "q", types[i][1], 0, NULL);
        onnx_write_node(&w, "MatMulInteger", "a b p q", "y", NULL);
        onnx_write_output(&w, "y", 6);
        expect(source_of(&w, 16), "out=i32)");
    }
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        OnnxWriter w = onnx_writer(arena);
        onnx_write_input(&w, "x", types[i][0], 3, image);
        onnx_write_input(&w, "w", types[i][1], 3, taps);
        onnx_write_node(&w, "ConvInteger", "x w", "y", NULL);
        onnx_write_output(&w, "y", 6);
        bool is_native = types[i][1] == INT8 || types[i][0] == UINT8;
        const char *text = source_of(&w, 16);
        cr_expect_eq(strstr(text, "out=i32)") != NULL, is_native, "%s", text);
    }
}

Test(onnx, a_cache_of_one_batch_is_updated_in_place) {
    static const char *const cache[] = {"1", "2", "8", "4"}, *const part[] = {"1", "2", "1", "4"};
    static const char *const one[] = {"1"};
    OnnxWriter w = onnx_writer(arena);
    onnx_write_input(&w, "cache", FLOAT, 4, cache);
    onnx_write_input(&w, "part", FLOAT, 4, part);
    onnx_write_input(&w, "at", INT64, 1, one);
    onnx_write_node(&w, "TensorScatter", "cache part at", "y", NULL);
    onnx_write_output(&w, "y", FLOAT);
    expect(source_of(&w, 24), "y = dynamic_update_slice(cache, part, ");
}

Test(onnx, a_wrong_equation_is_an_error) {
    static const char *const square[] = {"4", "4"};
    static const char *const wrong[][2] = {{"ij->ii", "`i` stands twice in the result"},
                                           {"ij->i?", "`?` where a letter of the result"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        OnnxWriter w = onnx_writer(arena);
        Text attrs = {.arena = arena};
        onnx_attr_text(&attrs, "equation", wrong[i][0]);
        onnx_write_input(&w, "x", FLOAT, 2, square);
        onnx_write_node(&w, "Einsum", "x", "y", &attrs);
        onnx_write_output(&w, "y", FLOAT);
        expect_error(&w, 16, wrong[i][1]);
    }
}

/* A tree of two tests and three leaves, of f32[batch, 6]. The second test's feature, and the node
 * where it leads to if it holds, are given. */
static OnnxWriter tree_of(int64_t feature, int64_t next) {
    static const char *const modes[] = {"BRANCH_LEQ", "BRANCH_GT", "LEAF", "LEAF", "LEAF"};
    static const float values[] = {0.5F, 2, 0, 0, 0}, weights[] = {1, 2, 3};
    static const int64_t tree[5], node[] = {0, 1, 2, 3, 4}, no[] = {2, 4, 0, 0, 0};
    int64_t features[] = {0, feature, 0, 0, 0}, yes[] = {1, next, 0, 0, 0};
    OnnxWriter w = onnx_writer(arena);
    Text attrs = {.arena = arena};
    write_x(&w);
    onnx_attr_domain(&attrs, "ai.onnx.ml");
    onnx_attr_texts(&attrs, "nodes_modes", 5, modes);
    onnx_attr_floats(&attrs, "nodes_values", 5, values);
    onnx_attr_ints(&attrs, "nodes_treeids", 5, tree);
    onnx_attr_ints(&attrs, "nodes_nodeids", 5, node);
    onnx_attr_ints(&attrs, "nodes_featureids", 5, features);
    onnx_attr_ints(&attrs, "nodes_truenodeids", 5, yes);
    onnx_attr_ints(&attrs, "nodes_falsenodeids", 5, no);
    onnx_attr_ints(&attrs, "target_treeids", 3, tree);
    onnx_attr_ints(&attrs, "target_nodeids", 3, node + 2);
    onnx_attr_ints(&attrs, "target_ids", 3, tree);
    onnx_attr_floats(&attrs, "target_weights", 3, weights);
    onnx_write_node(&w, "TreeEnsembleRegressor", "x", "y", &attrs);
    onnx_write_output(&w, "y", FLOAT);
    return w;
}

Test(onnx, a_tree_of_depth_two_is_two_steps_of_gathers) {
    OnnxWriter w = tree_of(5, 3);
    const char *text = source_of(&w, 16);
    uint32_t n_steps = 0;
    for (const char *at = text; (at = strstr(at, "less_equal(")); at++) n_steps++;
    cr_expect_eq(n_steps, 2, "%s", text);
    expect(text, "y = sum(");
}

Test(onnx, wrong_trees_are_errors) {
    OnnxWriter circle = tree_of(5, 1), beyond = tree_of(6, 3), nowhere = tree_of(5, 9);
    expect_error(&circle, 16, "its trees lead in a circle");
    expect_error(&beyond, 16, "tests a feature that the input does not have");
    expect_error(&nowhere, 16, "node 1 of its trees has no next node");
}

enum { FLOAT8E4M3FNUZ = 18 };

Test(onnx, elements_without_a_dtype_are_bytes_that_are_cast_alone) {
    static const char *const dims[] = {"6"};
    for (int is_cast = 0; is_cast < 2; is_cast++) {
        OnnxWriter w = onnx_writer(arena);
        Text attrs = {.arena = arena};
        onnx_attr_int(&attrs, "to", FLOAT);
        onnx_write_input(&w, "x", FLOAT8E4M3FNUZ, 1, dims);
        onnx_write_node(&w, "Identity", "x", "same", NULL);
        onnx_write_node(&w, is_cast ? "Cast" : "Neg", "same", "y", is_cast ? &attrs : NULL);
        onnx_write_output(&w, "y", FLOAT);
        if (is_cast)
            expect(source_of(&w, 24), "net(x: u8[6]) -> (y: f32[6])");
        else
            expect_error(&w, 24,
                         "its input `same` is float8e4m3fnuz, which the language has no "
                         "dtype for; cast it before");
    }
}

Test(onnx, functions_of_the_prelude_are_its_defs) {
    OnnxWriter w = onnx_writer(arena);
    write_x(&w);
    onnx_write_node(&w, "Softsign", "x", "y", NULL);
    onnx_write_output(&w, "y", FLOAT);
    const char *text = source_of(&w, 16);
    expect(text, "abs(x)");
    expect(text, "y = div(x, ");
}

/* Words of the language that are neither ops nor defs, and a function of the model's. */
static bool is_language(const char *word) {
    static const char *const words[] = {"split", "einsum", "dim", "dtype", "f"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(word, words[i]) == 0) return true;
    return op_by_name(word) != OP_NONE || prelude_has(word);
}

Test(onnx, spellings_call_what_the_language_has) {
    Text page = {.arena = arena};
    uint32_t n_calls = 0;
    onnx_ops_print(&page);
    for (const char *at = text_str(&page); (at = strchr(at, '(')); at++) {
        const char *begin = at;
        while (isalnum((unsigned char)begin[-1]) || begin[-1] == '_') begin--;
        const char *word = str_format(arena, "%.*s", (int)(at - begin), begin);
        cr_expect(!*word || is_language(word), "the table of ops calls `%s`", word);
        n_calls += *word != 0;
    }
    cr_expect_gt(n_calls, 150);
}

/* Size. */

/* A model whose file ends with a weight of n bytes: all but these bytes. */
static Text large_model(size_t n) {
    static const char *const dims[] = {"1", "4096"};
    OnnxWriter w = onnx_writer(arena);
    Text model = {.arena = arena}, import = {.arena = arena}, tensor = {.arena = arena};
    onnx_write_input(&w, "x", FLOAT, 2, dims);
    onnx_write_node(&w, "MatMul", "x weight", "y", NULL);
    onnx_write_output(&w, "y", FLOAT);
    pb_int(&tensor, 1, 4096);
    pb_int(&tensor, 1, (int64_t)(n / 4 / 4096));
    pb_int(&tensor, 2, FLOAT);
    pb_text(&tensor, 8, "weight");
    pb_begin(&tensor, 9, n);
    pb_begin(&w.graph, 5, tensor.n_bytes + n);
    text_add(&w.graph, tensor.data, tensor.n_bytes);
    pb_int(&model, 1, 8);
    pb_text(&import, 1, "");
    pb_int(&import, 2, 13);
    pb_message(&model, 8, &import);
    pb_begin(&model, 7, w.graph.n_bytes + n);
    text_add(&model, w.graph.data, w.graph.n_bytes);
    return model;
}

/* The elements stay in the file, which here is one hole but for its beginning. */
Test(onnx, half_a_gigabyte_of_weights_takes_no_time) {
    size_t n = (size_t)512 << 20;
    Text model = large_model(n);
    size_t n_bytes = model.n_bytes + n;
    FILE *file = tmpfile();
    cr_assert(file && fwrite(model.data, 1, model.n_bytes, file) == model.n_bytes);
    cr_assert(fflush(file) == 0 && ftruncate(fileno(file), (off_t)n_bytes) == 0);
    void *bytes = mmap(NULL, n_bytes, PROT_READ, MAP_PRIVATE, fileno(file), 0);
    cr_assert(bytes != MAP_FAILED);
    const char *messages;
    clock_t start = clock();
    OnnxImport *made = import_bytes(bytes, n_bytes, &messages);
    double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    cr_assert_not_null(made, "%s", messages);
    cr_expect_lt(seconds, 0.1, "%g s", seconds);
    cr_assert_eq(made->weights.n, 1);
    cr_expect_eq(made->weights.data[0].bytes.n, n);
    cr_expect_eq(made->weights.data[0].bytes.data, (const uint8_t *)bytes + model.n_bytes);
    munmap(bytes, n_bytes);
    fclose(file);
}

/* Errors. */

Test(onnx, an_argument_that_is_not_known_names_the_input_it_follows_from) {
    OnnxWriter w = sum_over_an_input();
    expect_error(&w, 13,
                 "its input 2, `axes`, must follow from constants and dims; give it as a "
                 "constant: --constant=my_axes=VALUES");
}

Test(onnx, an_error_names_the_node_the_op_and_the_opset) {
    OnnxWriter w = onnx_writer(arena);
    write_x(&w);
    onnx_write_node(&w, "NonMaxSuppression", "x", "y", NULL);
    onnx_write_output(&w, "y", FLOAT);
    expect_error(&w, 13, "m.onnx: node `y` (NonMaxSuppression, opset 13): the op is not supported");
}

Test(onnx, an_op_of_a_later_opset_is_an_error) {
    OnnxWriter w = onnx_writer(arena);
    write_x(&w);
    onnx_write_node(&w, "Gelu", "x", "y", NULL);
    onnx_write_output(&w, "y", FLOAT);
    expect_error(&w, 13, "this version of the op is not supported");
}

Test(onnx, shapes_are_checked_by_the_builder) {
    OnnxWriter w = onnx_writer(arena);
    static const float values[] = {1, 2, 3, 4, 5};
    write_x(&w);
    onnx_write_floats(&w, "bias", 5, values);
    onnx_write_node(&w, "Add", "x bias", "y", NULL);
    onnx_write_output(&w, "y", FLOAT);
    expect_error(&w, 13, "node `y` (Add, opset 13): shapes of `add` do not broadcast");
}

Test(onnx, a_name_without_a_value_is_an_error) {
    OnnxWriter w = onnx_writer(arena);
    write_x(&w);
    onnx_write_node(&w, "Add", "x nothing", "y", NULL);
    onnx_write_output(&w, "y", FLOAT);
    expect_error(&w, 13, "no node before it makes its input `nothing`");
    OnnxWriter v = onnx_writer(arena);
    write_x(&v);
    onnx_write_output(&v, "y", FLOAT);
    expect_error(&v, 13, "no node makes output y");
}

Test(onnx, a_value_that_is_made_twice_is_an_error) {
    OnnxWriter w = onnx_writer(arena);
    write_x(&w);
    onnx_write_node(&w, "Relu", "x", "y", NULL);
    onnx_write_node(&w, "Tanh", "x", "y", NULL);
    onnx_write_output(&w, "y", FLOAT);
    expect_error(&w, 13, "its output `y` is made twice");
}

static Text good_model(void) {
    OnnxWriter w = onnx_writer(arena);
    static const float values[] = {1, 2, 3, 4, 5, 6};
    static const int64_t shape[] = {0, 2, 3};
    write_x(&w);
    onnx_write_floats(&w, "bias", 6, values);
    onnx_write_ints(&w, "shape", 3, shape);
    onnx_write_node(&w, "Add", "x bias", "h", NULL);
    onnx_write_node(&w, "Reshape", "h shape", "y", NULL);
    onnx_write_output(&w, "y", FLOAT);
    return onnx_write_model(&w, 13);
}

/* The opset stands at the end, so that no beginning of the file is a model. */
Test(onnx, every_beginning_of_a_file_is_an_error) {
    Text model = good_model();
    const char *messages;
    for (size_t n = 0; n < model.n_bytes; n++) {
        char *cut = arena_copy(arena, model.data, n ? n : 1);
        cr_assert_null(import_bytes(cut, n, &messages), "%zu bytes", n);
        expect(messages, "m.onnx");
    }
    cr_assert_not_null(import_bytes(model.data, model.n_bytes, &messages));
}

Test(onnx, every_flipped_bit_is_an_error_or_a_model) {
    Text model = good_model();
    const char *messages;
    for (size_t i = 0; i < model.n_bytes * 8; i++) {
        model.data[i / 8] ^= (char)(1 << i % 8);
        OnnxImport *made = import_bytes(model.data, model.n_bytes, &messages);
        if (made) cr_assert_null(graph_verify(made->module->graphs.data[0], arena));
        model.data[i / 8] ^= (char)(1 << i % 8);
    }
}
