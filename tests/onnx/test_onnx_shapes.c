/* Arguments, shapes and numbers that follow from constants and dims. */
#include "onnx/onnx_source.h"

#include <criterion/criterion.h>

enum { FLOAT = 1, INT64 = 7 };
static Arena *arena;

static void setup(void) {
    arena = arena_new(NULL);
}

static void teardown(void) {
    arena_free(arena);
}

TestSuite(onnx_shapes, .init = setup, .fini = teardown);

static void expect(const OnnxWriter *w, int64_t opset, const char *part) {
    const char *text = onnx_source_of(arena, w, opset);
    cr_expect_not_null(strstr(text, part), "no `%s` in\n%s", part, text);
}

/* PyTorch's exporter turns pads around: pairs, from the last to the first. */
Test(onnx_shapes, tables_of_integers_are_cut_and_transposed_while_importing) {
    static const char *const dims[] = {"batch", "6"};
    static const int64_t given[] = {1, 2, 0, 0}, pairs[] = {-1, 2}, down[] = {-1}, first[] = {0},
                         last[] = {-INT64_MAX};
    OnnxWriter w = onnx_writer(arena);
    onnx_write_input(&w, "x", FLOAT, 2, dims);
    onnx_write_ints(&w, "given", 4, given);
    onnx_write_ints(&w, "pairs", 2, pairs);
    onnx_write_ints(&w, "down", 1, down);
    onnx_write_ints(&w, "first", 1, first);
    onnx_write_ints(&w, "last", 1, last);
    onnx_write_node(&w, "Reshape", "given pairs", "table", NULL);
    onnx_write_node(&w, "Slice", "table down last first down", "turned", NULL);
    onnx_write_node(&w, "Transpose", "turned", "by_side", NULL);
    onnx_write_node(&w, "Reshape", "by_side down", "pads", NULL);
    onnx_write_node(&w, "Pad", "x pads", "y", NULL);
    onnx_write_output(&w, "y", FLOAT);
    expect(&w, 18, "y = pad(x, low=[0, 1], high=[0, 2], value=0.0)");
}

/* y = op(x, x.shape[0]), of integers */
static OnnxWriter with_extent(const char *op) {
    static const char *const dims[] = {"batch", "6"};
    static const int64_t first[] = {0};
    OnnxWriter w = onnx_writer(arena);
    onnx_write_input(&w, "x", INT64, 2, dims);
    onnx_write_ints(&w, "first", 1, first);
    onnx_write_node(&w, "Shape", "x", "shape", NULL);
    onnx_write_node(&w, "Gather", "shape first", "n", NULL);
    onnx_write_node(&w, op, "x n", "y", NULL);
    onnx_write_output(&w, "y", INT64);
    return w;
}

Test(onnx_shapes, a_symbolic_extent_is_a_number_too) {
    static const char *const dims[] = {"batch", "6"};
    OnnxWriter mul = with_extent("Mul"), shape = onnx_writer(arena);
    expect(&mul, 18, "iota([batch + 1], axis=0, dtype=i64)");
    onnx_write_input(&shape, "x", FLOAT, 2, dims);
    onnx_write_node(&shape, "Shape", "x", "y", NULL);
    onnx_write_output(&shape, "y", INT64);
    expect(&shape, 18, "-> (y: i64[2])");
}

/* The node reads x, f32[batch, 1, H], and more inputs. */
static void expect_range(const char *op, const char *inputs, const Text *attrs, const char *range) {
    static const char *const dims[] = {"batch", "1", "H"}, *const taps[] = {"4", "1", "3"};
    static const int64_t pads[] = {0, 0, 2, 0, 0, 1};
    OnnxWriter w = onnx_writer(arena);
    onnx_write_input(&w, "x", FLOAT, 3, dims);
    onnx_write_input(&w, "w", FLOAT, 3, taps);
    onnx_write_ints(&w, "pads", 6, pads);
    onnx_write_node(&w, op, inputs, "y", attrs);
    onnx_write_output(&w, "y", FLOAT);
    expect(&w, 18, "dim batch in 1..65536");
    expect(&w, 18, range);
}

Test(onnx_shapes, dims_are_as_large_as_windows_and_borders_need) {
    static const int64_t size[] = {5}, stride[] = {2};
    Text pool = {.arena = arena}, border = {.arena = arena};
    expect_range("Conv", "x w", NULL, "dim H in 3..65536");
    onnx_attr_ints(&pool, "kernel_shape", 1, size);
    onnx_attr_ints(&pool, "strides", 1, stride);
    expect_range("MaxPool", "x", &pool, "dim H in 5..65536");
    onnx_attr_int(&pool, "ceil_mode", 1);
    expect_range("MaxPool", "x", &pool, "y: f32[batch, 1, ((H) / (2)) - 1]");
    onnx_attr_text(&border, "mode", "reflect");
    expect_range("Pad", "x pads", &border, "dim H in 3..65536");
}

/* Two convolutions and a pool: what the last needs is a range of what the first reads. */
Test(onnx_shapes, ranges_go_through_the_layers_before) {
    static const char *const dims[] = {"batch", "1", "H"}, *const taps[] = {"1", "1", "3"};
    static const int64_t size[] = {2};
    Text pool = {.arena = arena};
    OnnxWriter w = onnx_writer(arena);
    onnx_attr_ints(&pool, "kernel_shape", 1, size);
    onnx_attr_ints(&pool, "strides", 1, size);
    onnx_write_input(&w, "x", FLOAT, 3, dims);
    onnx_write_input(&w, "w", FLOAT, 3, taps);
    onnx_write_node(&w, "Conv", "x w", "a", NULL);
    onnx_write_node(&w, "MaxPool", "a", "b", &pool);
    onnx_write_node(&w, "Conv", "b w", "y", NULL);
    onnx_write_output(&w, "y", FLOAT);
    expect(&w, 18, "dim H in 8..65536");
}

Test(onnx_shapes, axes_of_symbolic_extents_are_resized_by_scales) {
    static const char *const dims[] = {"batch", "1", "H"}, *const modes[] = {"nearest", "linear",
                                                                             "cubic"};
    static const float whole[] = {1, 1, 2}, third[] = {1, 1, 0.3F};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        for (int is_whole = 0; is_whole < 2; is_whole++) {
            Text attrs = {.arena = arena};
            OnnxWriter w = onnx_writer(arena);
            onnx_attr_text(&attrs, "mode", modes[i]);
            onnx_write_input(&w, "x", FLOAT, 3, dims);
            onnx_write_floats(&w, "scales", 3, is_whole ? whole : third);
            onnx_write_node(&w, "Resize", "x - scales", "y", &attrs);
            onnx_write_output(&w, "y", FLOAT);
            expect(&w, 18, is_whole ? "-> (y: f32[batch, 1, 2*H])" : "cannot be scaled by 0.3");
        }
}

Test(onnx_shapes, sizes_of_a_resize_may_follow_from_dims) {
    static const char *const dims[] = {"batch", "1", "4"}, *const like[] = {"batch", "1", "T"};
    static const int64_t first[] = {0}, second[] = {2}, width[] = {9};
    for (int is_like = 0; is_like < 2; is_like++) {
        Text attrs = {.arena = arena};
        OnnxWriter w = onnx_writer(arena);
        onnx_write_input(&w, "x", FLOAT, 3, dims);
        onnx_write_input(&w, "other", FLOAT, 3, like);
        onnx_write_ints(&w, "first", 1, first);
        onnx_write_ints(&w, "second", 1, second);
        onnx_write_ints(&w, "width", 1, width);
        onnx_attr_int(&attrs, "axis", 0);
        onnx_write_node(&w, "Shape", "x", "shape", NULL);
        onnx_write_node(&w, "Slice", "shape first second", "front", NULL);
        onnx_write_node(&w, "Concat", "front width", "fixed", &attrs);
        onnx_write_node(&w, "Shape", "other", "open", NULL);
        onnx_write_node(&w, "Resize", is_like ? "x - - open" : "x - - fixed", "y", NULL);
        onnx_write_output(&w, "y", FLOAT);
        expect(&w, 18, is_like ? "-> (y: f32[batch, 1, T])" : "-> (y: f32[batch, 1, 9])");
    }
}

/* y = Add(x, w), twice, in a function whose input w is called `b`. */
Test(onnx_shapes, weights_keep_their_names_in_functions) {
    static const char *const dims[] = {"2"};
    static const float weights[] = {1, 2};
    Text function = {.arena = arena}, opset = {.arena = arena};
    OnnxWriter w = onnx_writer(arena);
    pb_text(&function, 1, "Plus");
    pb_text(&function, 4, "a");
    pb_text(&function, 4, "b");
    pb_text(&function, 5, "c");
    Text inner = onnx_node(arena, "Add", "a b", "c", NULL);
    pb_message(&function, 7, &inner);
    pb_text(&opset, 1, "");
    pb_int(&opset, 2, 13);
    pb_message(&function, 9, &opset);
    pb_text(&function, 10, "");
    pb_message(&w.functions, 25, &function);
    onnx_write_input(&w, "x", FLOAT, 1, dims);
    onnx_write_floats(&w, "enc.w", 2, weights);
    onnx_write_node(&w, "Plus", "x enc.w", "h", NULL);
    onnx_write_node(&w, "Plus", "h enc.w", "y", NULL);
    onnx_write_output(&w, "y", FLOAT);
    expect(&w, 13, "param enc_w: f32[2] = \"enc.w\"");
    const char *text = onnx_source_of(arena, &w, 13);
    cr_expect_null(strstr(strstr(text, "param ") + 1, "param "), "%s", text);
}

Test(onnx_shapes, an_argument_that_follows_from_dims_is_told) {
    static const char *const dims[] = {"batch", "4"};
    static const int64_t first[] = {0};
    OnnxWriter w = onnx_writer(arena);
    onnx_write_input(&w, "x", FLOAT, 2, dims);
    onnx_write_ints(&w, "first", 1, first);
    onnx_write_node(&w, "Shape", "x", "shape", NULL);
    onnx_write_node(&w, "Gather", "shape first", "k", NULL);
    onnx_write_node(&w, "Trilu", "x k", "y", NULL);
    onnx_write_output(&w, "y", FLOAT);
    expect(&w, 18, "its input 2, `k`, must be a constant, and may not follow from dims");
}

/* y = op(T, bound) for x: f32[T], T from 1 to 65536; a comparison as an integer. */
static const char *compared(const char *op, int64_t bound, bool is_integer) {
    static const char *const dims[] = {"T"};
    OnnxWriter w = onnx_writer(arena);
    Text attrs = {.arena = arena};
    onnx_attr_int(&attrs, "to", INT64);
    onnx_write_input(&w, "x", FLOAT, 1, dims);
    onnx_write_ints(&w, "bound", 1, &bound);
    onnx_write_node(&w, "Shape", "x", "n", NULL);
    onnx_write_node(&w, op, "n bound", "value", NULL);
    onnx_write_node(&w, "Cast", "value", "whole", &attrs);
    onnx_write_node(&w, "Expand", is_integer ? "x value" : "x whole", "y", NULL);
    onnx_write_output(&w, "y", FLOAT);
    return onnx_source_of(arena, &w, 18);
}

/* Expand to the extent T, or to 1 or 0 for a comparison. */
Test(onnx_shapes, extents_are_compared_where_their_ranges_decide) {
    static const struct {
        const char *op;
        int64_t bound;
        const char *part;
    } rows[] = {{"Max", 1, "y: f32[T]"},
                {"Min", 65536, "y: f32[T]"},
                {"Max", 5, "dim T in 5..65536"},
                {"Greater", 0, "y: f32[T]"},
                {"GreaterOrEqual", 1, "y: f32[T]"},
                {"Less", 65537, "y: f32[T]"},
                {"LessOrEqual", 65536, "y: f32[T]"},
                {"LessOrEqual", 0, "does not broadcast"},
                {"Greater", 65536, "does not broadcast"},
                {"Less", 5, "its input 2, `whole`, must follow from constants and dims"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool is_integer = rows[i].op[0] == 'M';
        const char *text = compared(rows[i].op, rows[i].bound, is_integer);
        cr_expect_not_null(strstr(text, rows[i].part), "%s %lld: no `%s` in\n%s", rows[i].op,
                           (long long)rows[i].bound, rows[i].part, text);
    }
}

/* y = x, where a second input has the dims N and M. */
Test(onnx_shapes, a_dim_may_be_an_expression) {
    static const char *const names[][2] = {
        {"4*T", "f32[4*T]"},
        {"T+1", "f32[T + 1]"},
        {"2*(T + 1)", "f32[2*T + 2]"},
        {"T - 3", "dim T in 3..65536"},
        {"N//2", "f32[((N) / (2))]"},
        {"N*M + 1", "f32[N*M + 1]"},
        {"T//2", "f32[T__2]"},
        {"batch-size", "f32[batch_size]"},
        {"N + T", "f32[N___T]"},
        {"((T)", "f32[__T_]"},
        {"T +", "f32[T__]"},
        {"T**2", "f32[T__2]"},
        {"T//0", "f32[T__0]"},
        {"N + M - 9", "dim N in 5..65536"},
        {"N + M - 200000", "its dim `N + M - 200000` may be negative"}};
    static const char *const alone[] = {"N", "M"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        OnnxWriter w = onnx_writer(arena);
        onnx_write_input(&w, "x", FLOAT, 1, &names[i][0]);
        onnx_write_input(&w, "z", FLOAT, 2, alone);
        onnx_write_node(&w, "Relu", "x", "y", NULL);
        onnx_write_output(&w, "y", FLOAT);
        expect(&w, 18, names[i][1]);
    }
}

/* The first n elements of each column, sorted, where x has n rows. */
Test(onnx_shapes, a_dim_may_be_the_number_of_elements_of_a_top_k) {
    static const char *const dims[] = {"n", "6"};
    static const int64_t first[] = {0};
    OnnxWriter w = onnx_writer(arena);
    Text attrs = {.arena = arena};
    onnx_attr_int(&attrs, "axis", 0);
    onnx_write_input(&w, "x", FLOAT, 2, dims);
    onnx_write_ints(&w, "first", 1, first);
    onnx_write_node(&w, "Shape", "x", "shape", NULL);
    onnx_write_node(&w, "Gather", "shape first", "k", NULL);
    onnx_write_node(&w, "TopK", "x k", "y at", &attrs);
    onnx_write_output(&w, "y", FLOAT);
    expect(&w, 18, "y: f32[n, 6]");
    expect(&w, 18, "argsort_descending(");
}

/* y = x[begin:end], x of f32[T], has this text. */
static void expect_slice(int64_t begin, int64_t end, const char *text) {
    static const char *const dims[] = {"T"};
    OnnxWriter w = onnx_writer(arena);
    onnx_write_input(&w, "x", FLOAT, 1, dims);
    onnx_write_ints(&w, "begin", 1, &begin);
    onnx_write_ints(&w, "end", 1, &end);
    onnx_write_node(&w, "Slice", "x begin end", "y", NULL);
    onnx_write_output(&w, "y", FLOAT);
    expect(&w, 18, text);
}

Test(onnx_shapes, dims_are_as_large_as_slices_need) {
    expect_slice(0, 16, "dim T in 16..");
    expect_slice(-3, INT64_MAX, "dim T in 3..");
    expect_slice(5, -2, "dim T in 7..");
    expect_slice(5, -2, "y: f32[T - 7]");
}

/* Pads x, f32[T, 5], behind its rows to a multiple of 4, by (-T) % 4; and rolls it by 2 % T. */
Test(onnx_shapes, the_rest_of_an_extent_is_an_expression) {
    static const char *const dims[] = {"T", "5"};
    static const int64_t zero[] = {0}, one[] = {1}, two[] = {2}, four[] = {4};
    OnnxWriter pad = onnx_writer(arena), roll = onnx_writer(arena);
    Text attrs = {.arena = arena};
    onnx_write_input(&pad, "x", FLOAT, 2, dims);
    onnx_write_ints(&pad, "zero", 1, zero);
    onnx_write_ints(&pad, "four", 1, four);
    onnx_write_node(&pad, "Shape", "x", "shape", NULL);
    onnx_write_node(&pad, "Gather", "shape zero", "n", NULL);
    onnx_write_node(&pad, "Neg", "n", "less", NULL);
    onnx_write_node(&pad, "Mod", "less four", "rest", NULL);
    onnx_attr_int(&attrs, "axis", 0);
    onnx_write_node(&pad, "Concat", "zero zero rest zero", "pads", &attrs);
    onnx_write_node(&pad, "Pad", "x pads", "y", NULL);
    onnx_write_output(&pad, "y", FLOAT);
    expect(&pad, 18, "y: f32[4*((T + 3) / (4)), 5]");
    onnx_write_input(&roll, "x", FLOAT, 2, dims);
    onnx_write_ints(&roll, "zero", 1, zero);
    onnx_write_ints(&roll, "one", 1, one);
    onnx_write_ints(&roll, "two", 1, two);
    onnx_write_node(&roll, "Shape", "x", "shape", NULL);
    onnx_write_node(&roll, "Gather", "shape zero", "n", NULL);
    onnx_write_node(&roll, "Mod", "two n", "at", NULL);
    onnx_write_node(&roll, "Slice", "x at n zero one", "y", NULL);
    onnx_write_output(&roll, "y", FLOAT);
    expect(&roll, 18, "dim T in 3..");
    expect(&roll, 18, "y: f32[T - 2, 5]");
}

Test(onnx_shapes, an_axis_of_a_dim_is_split_in_equal_parts) {
    static const char *const dims[] = {"N", "3*M"};
    for (int n = 2; n <= 3; n++)
        for (int axis = 0; axis < 2; axis++) {
            OnnxWriter w = onnx_writer(arena);
            Text attrs = {.arena = arena};
            onnx_attr_int(&attrs, "axis", axis);
            onnx_write_input(&w, "x", FLOAT, 2, dims);
            onnx_write_node(&w, "Split", "x", n == 2 ? "y z" : "a y z", &attrs);
            onnx_write_output(&w, "y", FLOAT);
            onnx_write_output(&w, "z", FLOAT);
            const char *rest = axis ? "z: f32[N, ((3*M) / (2))]" : "z: f32[((N) / (2)), 3*M]";
            const char *third = axis ? "z: f32[N, M]" : "an extent of N has 3 equal parts if";
            expect(&w, 18, n == 2 ? rest : third);
        }
}

/* Windows of 3 in steps of 2, as many as ceil(H / 2), over x: f32[1, 1, H]. */
Test(onnx_shapes, windows_of_strides_pad_a_dim_to_its_multiple) {
    static const char *const dims[] = {"1", "1", "H"}, *const taps[] = {"4", "1", "3"};
    static const int64_t size[] = {3}, stride[] = {2}, far[] = {5};
    for (int k = 0; k < 4; k++) {
        OnnxWriter w = onnx_writer(arena);
        Text attrs = {.arena = arena};
        onnx_attr_text(&attrs, "auto_pad", k % 2 ? "SAME_LOWER" : "SAME_UPPER");
        onnx_attr_ints(&attrs, "kernel_shape", 1, size);
        onnx_attr_ints(&attrs, "strides", 1, stride);
        onnx_write_input(&w, "x", FLOAT, 3, dims);
        onnx_write_input(&w, "w", FLOAT, 3, taps);
        onnx_write_node(&w, k < 2 ? "Conv" : "MaxPool", k < 2 ? "x w" : "x", "y", &attrs);
        onnx_write_output(&w, "y", FLOAT);
        expect(&w, 18, k < 2 ? "y: f32[1, 4, ((H + 1) / (2))]" : "y: f32[1, 1, ((H + 1) / (2))]");
        expect(&w, 18, "shape=[1, 1, 2*((H + 1) / (2)) + 1]");
    }
    OnnxWriter wide = onnx_writer(arena);
    Text attrs = {.arena = arena};
    onnx_attr_text(&attrs, "auto_pad", "SAME_UPPER");
    onnx_attr_ints(&attrs, "kernel_shape", 1, size);
    onnx_attr_ints(&attrs, "strides", 1, far);
    onnx_write_input(&wide, "x", FLOAT, 3, dims);
    onnx_write_node(&wide, "MaxPool", "x", "y", &attrs);
    onnx_write_output(&wide, "y", FLOAT);
    expect(&wide, 18, "auto_pad with a stride longer than a window needs extents");
}

Test(onnx_shapes, a_padding_that_is_none_is_an_error) {
    static const char *const dims[] = {"1", "1", "9"}, *const taps[] = {"1", "1", "3"};
    static const char *const ops[] = {"Conv", "ConvTranspose"};
    for (int k = 0; k < 2; k++) {
        OnnxWriter w = onnx_writer(arena);
        Text attrs = {.arena = arena};
        onnx_attr_text(&attrs, "auto_pad", "SAME_WRONG");
        onnx_write_input(&w, "x", FLOAT, 3, dims);
        onnx_write_input(&w, "w", FLOAT, 3, taps);
        onnx_write_node(&w, ops[k], "x w", "y", &attrs);
        onnx_write_output(&w, "y", FLOAT);
        expect(&w, 18, "auto_pad `SAME_WRONG` is none of NOTSET");
    }
}

/* Numbers of the model, no dims, make the size. */
Test(onnx_shapes, a_size_that_no_dim_makes_smaller_is_an_error) {
    static const int64_t size[] = {(int64_t)1 << 40, (int64_t)1 << 20};
    OnnxWriter w = onnx_writer(arena);
    onnx_write_ints(&w, "size", 2, size);
    onnx_write_node(&w, "ConstantOfShape", "size", "y", NULL);
    onnx_write_output(&w, "y", FLOAT);
    expect(&w, 18, "node `y` (ConstantOfShape, opset 18): a tensor of shape");
}

Test(onnx_shapes, names_in_errors_command_no_terminal) {
    static const char *const dims[] = {"4"};
    OnnxWriter w = onnx_writer(arena);
    onnx_write_input(&w, "x", FLOAT, 1, dims);
    onnx_write_node(&w, "Nothing", "x", "\x1b[31my\xff\xc3\xa9", NULL);
    onnx_write_output(&w, "y", FLOAT);
    expect(&w, 18, "node `?[31my?\xc3\xa9` (Nothing");
}

/* Strides of 2, pads of 1: 2 * (H - 1) + 4 - 2 elements. */
Test(onnx_shapes, dims_are_transposed_convolutions_extents) {
    static const char *const dims[] = {"1", "2", "H"}, *const taps[] = {"2", "3", "4"};
    static const int64_t pads[] = {1, 1}, stride[] = {2};
    OnnxWriter w = onnx_writer(arena);
    Text attrs = {.arena = arena};
    onnx_attr_ints(&attrs, "pads", 2, pads);
    onnx_attr_ints(&attrs, "strides", 1, stride);
    onnx_write_input(&w, "x", FLOAT, 3, dims);
    onnx_write_input(&w, "w", FLOAT, 3, taps);
    onnx_write_node(&w, "ConvTranspose", "x w", "y", &attrs);
    onnx_write_output(&w, "y", FLOAT);
    expect(&w, 18, "y: f32[1, 3, 2*H]");
}

/* 0.0, 1.0, .. below an extent that was cast. */
Test(onnx_shapes, an_extent_may_bound_a_range_of_floats) {
    static const char *const dims[] = {"T"};
    static const float begin[] = {0}, step[] = {1};
    OnnxWriter w = onnx_writer(arena);
    Text attrs = {.arena = arena};
    onnx_attr_int(&attrs, "to", FLOAT);
    onnx_write_input(&w, "x", FLOAT, 1, dims);
    onnx_write_floats(&w, "begin", 1, begin);
    onnx_write_floats(&w, "step", 1, step);
    onnx_write_node(&w, "Shape", "x", "n", NULL);
    onnx_write_node(&w, "Cast", "n", "end", &attrs);
    onnx_write_node(&w, "Range", "begin end step", "y", NULL);
    onnx_write_output(&w, "y", FLOAT);
    expect(&w, 18, "y: f32[T]");
}

/* What is known and refused says what would be needed; newer opsets are no guess. */
Test(onnx_shapes, ops_that_depend_on_data_and_opsets_of_the_future_are_told) {
    static const char *const dims[] = {"4"};
    OnnxWriter boxes = onnx_writer(arena), late = onnx_writer(arena);
    onnx_write_input(&boxes, "x", FLOAT, 1, dims);
    onnx_write_node(&boxes, "SequenceConstruct", "x", "y", NULL);
    onnx_write_output(&boxes, "y", FLOAT);
    expect(&boxes, 18,
           "node `y` (SequenceConstruct, opset 18): the op is not supported: it needs "
           "sequences of tensors");
    onnx_write_input(&late, "x", FLOAT, 1, dims);
    onnx_write_node(&late, "Relu", "x", "y", NULL);
    onnx_write_output(&late, "y", FLOAT);
    expect(&late, 28, "y = relu(x)");
    expect(&late, 29, "node `y` (Relu, opset 29): the opset is newer than 28");
}

/* Products of all pairs of the places of an image. */
Test(onnx_shapes, dims_without_a_bound_are_small_enough_for_the_sizes) {
    static const char *const dims[] = {"batch", "8", "H", "W"};
    static const int64_t places[] = {0, 8, -1}, turned[] = {0, 2, 1};
    Text perm = {.arena = arena};
    OnnxWriter w = onnx_writer(arena);
    onnx_attr_ints(&perm, "perm", 3, turned);
    onnx_write_input(&w, "x", FLOAT, 4, dims);
    onnx_write_ints(&w, "places", 3, places);
    onnx_write_node(&w, "Reshape", "x places", "k", NULL);
    onnx_write_node(&w, "Transpose", "k", "q", &perm);
    onnx_write_node(&w, "MatMul", "q k", "y", NULL);
    onnx_write_output(&w, "y", FLOAT);
    expect(&w, 18, "dim H in 1..2048\n");
}

/* x: f32[T, 4]; the names `T`, `two`, `first` and `last` are those of numbers. */
static OnnxWriter with_length(void) {
    static const char *const dims[] = {"T", "4"};
    static const int64_t zero[] = {0}, two[] = {2}, sixteen[] = {16}, last[] = {INT64_MAX};
    OnnxWriter w = onnx_writer(arena);
    onnx_write_input(&w, "x", FLOAT, 2, dims);
    onnx_write_ints(&w, "first", 1, zero);
    onnx_write_ints(&w, "two", 1, two);
    onnx_write_ints(&w, "sixteen", 1, sixteen);
    onnx_write_ints(&w, "last", 1, last);
    onnx_write_node(&w, "Shape", "x", "shape", NULL);
    onnx_write_node(&w, "Gather", "shape first", "length", NULL);
    return w;
}

Test(onnx_shapes, the_second_half_is_what_the_first_leaves) {
    OnnxWriter w = with_length();
    onnx_write_node(&w, "Div", "length two", "half", NULL);
    onnx_write_node(&w, "Slice", "x half last", "y", NULL);
    onnx_write_output(&w, "y", FLOAT);
    expect(&w, 18, "dim T in 1..65536");
    expect(&w, 18, "y: f32[T - ((T) / (2)), 4]");
}

/* Which of the two is smaller is decided where an extent needs it, and nowhere else. */
Test(onnx_shapes, a_smaller_number_narrows_a_dim_only_as_an_extent) {
    OnnxWriter w = with_length(), data = with_length();
    onnx_write_node(&w, "Min", "length sixteen", "end", NULL);
    onnx_write_node(&w, "Slice", "x first end", "y", NULL);
    onnx_write_output(&w, "y", FLOAT);
    expect(&w, 18, "dim T in 16..65536");
    onnx_write_node(&data, "Min", "length sixteen", "y", NULL);
    onnx_write_output(&data, "y", INT64);
    expect(&data, 18, "dim T in 1..65536");
}

Test(onnx_shapes, a_rest_by_a_dim_narrows_it_only_as_an_extent) {
    OnnxWriter w = with_length(), data = with_length();
    onnx_write_node(&w, "Mod", "two length", "begin", NULL);
    onnx_write_node(&w, "Slice", "x begin last", "y", NULL);
    onnx_write_output(&w, "y", FLOAT);
    expect(&w, 18, "dim T in 3..65536");
    onnx_write_node(&data, "Mod", "two length", "y", NULL);
    onnx_write_output(&data, "y", INT64);
    expect(&data, 18, "dim T in 1..65536");
}

/* As torch.unfold begins. */
Test(onnx_shapes, a_range_narrows_a_dim_to_lengths_that_are_not_negative) {
    OnnxWriter w = with_length();
    onnx_write_node(&w, "Sub", "length sixteen", "end", NULL);
    onnx_write_node(&w, "Range", "first end two", "y", NULL);
    onnx_write_output(&w, "y", INT64);
    expect(&w, 18, "dim T in 15..65536");
}

Test(onnx_shapes, dims_are_raised_until_their_product_has_enough_elements) {
    static const char *const dims[] = {"2", "H", "W"};
    static const int64_t flat[] = {2, -1}, five[] = {5};
    OnnxWriter w = onnx_writer(arena);
    onnx_write_input(&w, "x", FLOAT, 3, dims);
    onnx_write_ints(&w, "flat", 2, flat);
    onnx_write_ints(&w, "k", 1, five);
    onnx_write_node(&w, "Reshape", "x flat", "all", NULL);
    onnx_write_node(&w, "TopK", "all k", "y places", NULL);
    onnx_write_output(&w, "y", FLOAT);
    expect(&w, 18, "dim H in 3..65536\ndim W in 3..65536");
}

Test(onnx_shapes, places_of_a_pool_may_follow_from_dims) {
    static const char *const dims[] = {"2", "3", "H", "W"};
    static const int64_t size[] = {3, 3}, dilations[] = {2, 2};
    Text pool = {.arena = arena};
    OnnxWriter w = onnx_writer(arena);
    onnx_attr_ints(&pool, "kernel_shape", 2, size);
    onnx_attr_ints(&pool, "dilations", 2, dilations);
    onnx_write_input(&w, "x", FLOAT, 4, dims);
    onnx_write_node(&w, "MaxPool", "x", "y places", &pool);
    onnx_write_output(&w, "places", INT64);
    expect(&w, 18, "dim H in 5..65536");
    expect(&w, 18, "places: i64[2, 3, H - 4, W - 4]");
    expect(&w, 18, "iota([H*W + 1], axis=0)");
}

/* The pads of a convolution whose output has half as many elements, rounded up, as PyTorch's
 * exporter computes them in floats: max((ceil(T / 2) - 1) * 2 + 3 - T, 0), and the half of it. */
Test(onnx_shapes, extents_may_be_computed_in_floats) {
    static const float two[] = {2}, one[] = {1}, three[] = {3}, none[] = {0};
    OnnxWriter w = with_length(), half = with_length();
    Text to_float = {.arena = arena}, to_int = {.arena = arena}, axis = {.arena = arena};
    onnx_attr_int(&to_float, "to", FLOAT);
    onnx_attr_int(&to_int, "to", INT64);
    onnx_attr_int(&axis, "axis", 0);
    onnx_write_floats(&w, "two_", 1, two);
    onnx_write_floats(&w, "one_", 1, one);
    onnx_write_floats(&w, "three_", 1, three);
    onnx_write_floats(&w, "none_", 1, none);
    onnx_write_node(&w, "Cast", "length", "float", &to_float);
    onnx_write_node(&w, "Div", "float two_", "halves", NULL);
    onnx_write_node(&w, "Ceil", "halves", "steps", NULL);
    onnx_write_node(&w, "Sub", "steps one_", "before", NULL);
    onnx_write_node(&w, "Mul", "before two_", "last_begin", NULL);
    onnx_write_node(&w, "Add", "last_begin three_", "reach", NULL);
    onnx_write_node(&w, "Sub", "reach float", "pad", NULL);
    onnx_write_node(&w, "Clip", "pad none_", "all", NULL);
    onnx_write_node(&w, "Div", "all two_", "part", NULL);
    onnx_write_node(&w, "Cast", "part", "low_int", &to_int);
    onnx_write_node(&w, "Cast", "low_int", "low", &to_float);
    onnx_write_node(&w, "Sub", "all low", "high", NULL);
    onnx_write_node(&w, "Concat", "low none_ high none_", "both", &axis);
    onnx_write_node(&w, "Cast", "both", "pads", &to_int);
    onnx_write_node(&w, "Pad", "x pads", "y", NULL);
    onnx_write_output(&w, "y", FLOAT);
    expect(&w, 18, "dim T in 1..65536");
    expect(&w, 18, "y: f32[2*((T + 1) / (2)) + 1, 4]");
    onnx_write_floats(&half, "two_", 1, two);
    onnx_write_node(&half, "Cast", "length", "float", &to_float);
    onnx_write_node(&half, "Div", "float two_", "halves", NULL);
    onnx_write_node(&half, "Cast", "halves", "end", &to_int);
    onnx_write_node(&half, "Slice", "x first end", "y", NULL);
    onnx_write_output(&half, "y", FLOAT);
    expect(&half, 18, "y: f32[((T) / (2)), 4]");
}
