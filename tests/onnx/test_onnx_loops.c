/* Recurrences, scans and loops whose number of steps is a dim: their values are those of the steps
 * written out, by the reference interpreter. */
#include "interp/interp.h"
#include "onnx/import.h"
#include "onnx/onnx_source.h"

#include <criterion/criterion.h>

enum { FLOAT = 1, INT32 = 6, INT64 = 7, BOOL = 9, OPSET = 18 };
static Arena *arena;

static void setup(void) {
    arena = arena_new(NULL);
}

static void teardown(void) {
    arena_free(arena);
}

TestSuite(onnx_loops, .init = setup, .fini = teardown);

static const Graph *graph_of(const OnnxWriter *w, OnnxImport **made) {
    Diags diags = {.arena = arena};
    Text text = {.arena = arena}, model = onnx_write_model(w, OPSET);
    OnnxSource source = {.name = "m.onnx", .file = {(const uint8_t *)model.data, model.n_bytes}};
    *made = onnx_import(arena, strtab_new(arena), &diags, &source, "m.safetensors");
    if (!*made) diag_print(&diags, &text);
    cr_assert_not_null(*made, "%s", text_str(&text));
    return (*made)->module->graphs.data[0];
}

/* Numbers from -1 to 1; integers are lengths of sequences. */
static void fill(Tensor *x, uint32_t seed) {
    for (int64_t i = 0; i < tensor_n_elems(x); i++)
        if (dtype_is_int(x->dtype))
            tensor_set_int(x, i, 1 + 2 * i);
        else
            tensor_set_number(x, i, sin((double)(7 * i + 3 * seed + 1)));
}

/* Output `at` of the model where every dim is n. */
static Tensor value_of(const OnnxWriter *w, int64_t n, uint32_t at) {
    OnnxImport *made;
    const Graph *graph = graph_of(w, &made);
    int64_t symbols[DIM_MAX_SYMBOLS];
    const char *why = "";
    for (uint32_t i = 0; i < DIM_MAX_SYMBOLS; i++) symbols[i] = n;
    Tensor *inputs = arena_array(arena, Tensor, graph->inputs.n + 1);
    Tensor *params = arena_array(arena, Tensor, graph->params.n + 1);
    Tensor *values = arena_array(arena, Tensor, graph->nodes.n + 1);
    for (uint32_t i = 0; i < graph->inputs.n; i++) {
        NodeId node = graph->inputs.data[i].node;
        cr_assert(interp_shape(graph, node, symbols, &inputs[i], arena, &why), "%s", why);
        cr_assert(tensor_new(arena, inputs[i].dtype, inputs[i].rank, inputs[i].dims, &inputs[i]));
        fill(&inputs[i], i);
    }
    for (uint32_t i = 0; i < graph->params.n; i++) {
        const OnnxWeight *weight = &made->weights.data[i];
        cr_assert(tensor_new(arena, weight->dtype, weight->rank, weight->dims, &params[i]));
        tensor_load(&params[i], weight->bytes.data);
    }
    cr_assert(interp_graph(graph, symbols, inputs, params, values, arena, &why), "%s", why);
    return values[graph->outputs.data[at].node];
}

static void expect_equal(const OnnxWriter *repeated, const OnnxWriter *written, int64_t n,
                         uint32_t n_outputs, const char *what) {
    for (uint32_t at = 0; at < n_outputs; at++) {
        Tensor a = value_of(repeated, n, at), b = value_of(written, n, at);
        cr_assert(tensor_same_shape(&a, &b), "%s, output %u: %s and %s", what, at,
                  tensor_type_str(&a, arena), tensor_type_str(&b, arena));
        for (int64_t i = 0; i < tensor_n_elems(&a); i++)
            cr_assert(tensor_number(&a, i) == tensor_number(&b, i),
                      "%s, %lld steps, output %u, element %lld: %g and %g", what, (long long)n, at,
                      (long long)i, tensor_number(&a, i), tensor_number(&b, i));
    }
}

static const char *dim_of(bool is_dim, int64_t n) {
    return is_dim ? "T" : str_format(arena, "%lld", (long long)n);
}

/* Recurrences: x: [steps, 2, 3], two sequences of lengths 1 and 3. */

static OnnxWriter recurrence(const char *op, const char *direction, bool is_dim, int64_t n) {
    const int64_t n_gates = strcmp(op, "LSTM") == 0 ? 4 : strcmp(op, "GRU") == 0 ? 3 : 1;
    const char *n_directions = strcmp(direction, "bidirectional") == 0 ? "2" : "1";
    const char *rows = str_format(arena, "%lld", (long long)(2 * n_gates));
    const char *const x[] = {dim_of(is_dim, n), "2", "3"}, *const lengths[] = {"2"},
                      *const w[] = {n_directions, rows, "3"},
                      *const r[] = {n_directions, rows, "2"};
    OnnxWriter writer = onnx_writer(arena);
    Text attrs = {.arena = arena};
    onnx_attr_int(&attrs, "hidden_size", 2);
    onnx_attr_text(&attrs, "direction", direction);
    onnx_write_input(&writer, "x", FLOAT, 3, x);
    onnx_write_input(&writer, "w", FLOAT, 3, w);
    onnx_write_input(&writer, "r", FLOAT, 3, r);
    onnx_write_input(&writer, "lengths", INT32, 1, lengths);
    onnx_write_node(&writer, op, "x w r - lengths", n_gates == 4 ? "y h c" : "y h", &attrs);
    onnx_write_output(&writer, "y", FLOAT);
    onnx_write_output(&writer, "h", FLOAT);
    if (n_gates == 4) onnx_write_output(&writer, "c", FLOAT);
    return writer;
}

Test(onnx_loops, recurrences_over_a_dim_are_loops) {
    static const char *const ops[] = {"RNN", "GRU", "LSTM"}, *const directions[] = {
                                                                 "forward", "reverse",
                                                                 "bidirectional"};
    for (uint32_t k = 0; k < 3; k++)
        for (uint32_t d = 0; d < 3; d++)
            for (int64_t n = 1; n <= 4; n += 3) {
                OnnxWriter repeated = recurrence(ops[k], directions[d], true, n),
                           written = recurrence(ops[k], directions[d], false, n);
                const char *text = onnx_source_of(arena, &repeated, OPSET);
                cr_assert_not_null(strstr(text, ", T, 0)"), "%s", text);
                expect_equal(&repeated, &written, n, k == 2 ? 3 : 2,
                             str_format(arena, "%s %s", ops[k], directions[d]));
            }
}

/* More steps than the language takes tensors in one concat. */
Test(onnx_loops, many_steps_are_a_loop) {
    OnnxWriter w = recurrence("GRU", "forward", false, 5000);
    const char *text = onnx_source_of(arena, &w, OPSET);
    cr_expect_not_null(strstr(text, ", 5000, 0)"), "%.400s", text);
}

/* A step adds x's columns to the state, the last one first, and collects the differences. */
static OnnxWriter scan(bool is_dim, int64_t n) {
    static const char *const state[] = {"2"};
    const char *const x[] = {"2", dim_of(is_dim, n)};
    static const int64_t one[] = {1};
    OnnxWriter w = onnx_writer(arena), body = onnx_writer(arena);
    Text attrs = {.arena = arena};
    onnx_write_input(&body, "s", FLOAT, 1, state);
    onnx_write_input(&body, "e", FLOAT, 1, state);
    onnx_write_node(&body, "Add", "s e", "t", NULL);
    onnx_write_node(&body, "Mul", "t t", "d", NULL);
    onnx_write_node(&body, "Sub", "d e", "c", NULL);
    onnx_write_output(&body, "d", FLOAT);
    onnx_write_output(&body, "c", FLOAT);
    onnx_write_output(&body, "t", FLOAT);
    onnx_attr_graph(&attrs, "body", &body);
    onnx_attr_int(&attrs, "num_scan_inputs", 1);
    onnx_attr_ints(&attrs, "scan_input_axes", 1, one);
    onnx_attr_ints(&attrs, "scan_input_directions", 1, one);
    onnx_attr_ints(&attrs, "scan_output_axes", 2, (const int64_t[]){1, 0});
    onnx_attr_ints(&attrs, "scan_output_directions", 2, (const int64_t[]){0, 1});
    onnx_write_input(&w, "s0", FLOAT, 1, state);
    onnx_write_input(&w, "x", FLOAT, 2, x);
    onnx_write_node(&w, "Scan", "s0 x", "last all turned", &attrs);
    onnx_write_output(&w, "last", FLOAT);
    onnx_write_output(&w, "all", FLOAT);
    onnx_write_output(&w, "turned", FLOAT);
    return w;
}

Test(onnx_loops, scans_over_a_dim_are_loops) {
    for (int64_t n = 1; n <= 5; n += 2) {
        OnnxWriter repeated = scan(true, n), written = scan(false, n);
        expect_equal(&repeated, &written, n, 3, "scan");
    }
}

/* y = x and then, as often as x has rows less `fewer`, y + (x[i] * i); all of these. */
static OnnxWriter loop(bool is_dim, int64_t n, int64_t fewer, const char *goes_on) {
    const char *const x[] = {dim_of(is_dim, n), "2"};
    static const char *const row[] = {"2"};
    static const int64_t zero[] = {0};
    OnnxWriter w = onnx_writer(arena), body = onnx_writer(arena);
    Text attrs = {.arena = arena}, to_float = {.arena = arena};
    onnx_write_input(&body, "i", INT64, 0, NULL);
    onnx_write_input(&body, "given", BOOL, 0, NULL);
    onnx_write_input(&body, "s", FLOAT, 1, row);
    onnx_attr_int(&to_float, "to", FLOAT);
    onnx_write_node(&body, "Gather", "x i", "e", NULL);
    onnx_write_node(&body, "Cast", "i", "f", &to_float);
    onnx_write_node(&body, "Mul", "e f", "p", NULL);
    onnx_write_node(&body, "Add", "s p", "t", NULL);
    onnx_write_node(&body, "Less", "i i", "never", NULL);
    onnx_write_node(&body, "Identity", goes_on, "still", NULL);
    onnx_write_output(&body, "still", BOOL);
    onnx_write_output(&body, "t", FLOAT);
    onnx_write_output(&body, "p", FLOAT);
    onnx_attr_graph(&attrs, "body", &body);
    onnx_write_input(&w, "x", FLOAT, 2, x);
    onnx_write_input(&w, "s0", FLOAT, 1, row);
    onnx_write_ints(&w, "zero", 1, zero);
    onnx_write_ints(&w, "fewer", 1, &fewer);
    onnx_write_node(&w, "Shape", "x", "shape", NULL);
    onnx_write_node(&w, "Gather", "shape zero", "rows", NULL);
    onnx_write_node(&w, "Sub", "rows fewer", "n", NULL);
    onnx_write_node(&w, "Loop", "n - s0", "y all", &attrs);
    onnx_write_output(&w, "y", FLOAT);
    onnx_write_output(&w, "all", FLOAT);
    return w;
}

Test(onnx_loops, a_loop_of_a_dim_is_repeated) {
    for (int64_t n = 3; n <= 5; n += 2)
        for (int64_t fewer = 0; fewer <= 2; fewer++) {
            OnnxWriter repeated = loop(true, n, fewer, "given"),
                       written = loop(false, n, fewer, "given");
            expect_equal(&repeated, &written, n, 2, "loop");
        }
    OnnxWriter few = loop(true, 3, 2, "given"), ends = loop(true, 3, 0, "never");
    const char *text = onnx_source_of(arena, &few, OPSET);
    cr_expect_not_null(strstr(text, "dim T in 2..65536"), "%s", text);
    text = onnx_source_of(arena, &ends, OPSET);
    cr_expect_not_null(strstr(text, "whether it takes another step is not known"), "%s", text);
}

/* Two scans whose bodies have weights of one name. */
Test(onnx_loops, weights_of_bodies_have_keys_of_their_own) {
    static const char *const state[] = {"2"}, *const x[] = {"T", "2"};
    static const float weights[2][2] = {{1, 2}, {3, 4}};
    OnnxWriter w = onnx_writer(arena);
    onnx_write_input(&w, "s0", FLOAT, 1, state);
    onnx_write_input(&w, "x", FLOAT, 2, x);
    for (int k = 0; k < 2; k++) {
        OnnxWriter body = onnx_writer(arena);
        Text attrs = {.arena = arena};
        onnx_write_input(&body, "s", FLOAT, 1, state);
        onnx_write_input(&body, "e", FLOAT, 1, state);
        onnx_write_floats(&body, "weight", 2, weights[k]);
        onnx_write_node(&body, "Mul", "s weight", "p", NULL);
        onnx_write_node(&body, "Add", "p e", "t", NULL);
        onnx_write_output(&body, "t", FLOAT);
        onnx_attr_graph(&attrs, "body", &body);
        onnx_attr_int(&attrs, "num_scan_inputs", 1);
        onnx_write_node(&w, "Scan", k ? "s1 x" : "s0 x", k ? "s2" : "s1", &attrs);
    }
    onnx_write_output(&w, "s2", FLOAT);
    OnnxImport *made;
    graph_of(&w, &made);
    cr_assert_eq(made->weights.n, 2);
    cr_expect_str_eq(made->weights.data[0].key, "weight");
    cr_expect_str_eq(made->weights.data[1].key, "weight_2");
}
