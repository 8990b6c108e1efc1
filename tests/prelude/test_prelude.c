/* Functions of the prelude, evaluated by the interpreter: beside the same written with ops and
 * numbers, and beside the functions of C. Functions of one float are swept in tests/ulp. */
#include "front/sema.h"
#include "interp/interp.h"
#include "random/random_data.h"

#include <criterion/criterion.h>
#include <math.h>

/* Evaluates the graph `source`, whose inputs are filled at random; a `fill` overwrites them. */
typedef struct Evaluated {
    Arena *arena;
    const Graph *graph;
    Tensor inputs[8], *values;
} Evaluated;

static const char *messages(Arena *arena, const Diags *diags) {
    Text text = {.arena = arena};
    diag_print(diags, &text);
    return text_str(&text);
}

static Evaluated evaluate(const char *source, void (*fill)(Tensor *inputs)) {
    Evaluated e = {.arena = arena_new(NULL)};
    Diags diags = {.arena = e.arena};
    Module *module = front_parse(e.arena, strtab_new(e.arena), &diags,
                                 source_new(e.arena, "t.g", source, strlen(source)));
    cr_assert(module, "%s", messages(e.arena, &diags));
    e.graph = module->graphs.data[0];
    Rng rng = rng_new(1);
    const char *error = NULL;
    for (uint32_t i = 0; i < e.graph->inputs.n; i++) {
        NodeId node = e.graph->inputs.data[i].node;
        Tensor *t = &e.inputs[i];
        cr_assert(interp_shape(e.graph, node, NULL, t, e.arena, &error), "%s", error);
        cr_assert(tensor_new(e.arena, t->dtype, t->rank, t->dims, t));
        random_fill(&rng, FILL_UNIFORM, t);
    }
    if (fill) fill(e.inputs);
    e.values = arena_array(e.arena, Tensor, e.graph->nodes.n);
    cr_assert(interp_graph(e.graph, NULL, e.inputs, NULL, e.values, e.arena, &error), "%s", error);
    return e;
}

static const Tensor *output_of(const Evaluated *e, uint32_t i) {
    return &e->values[e->graph->outputs.data[i].node];
}

/* The results agree within a few roundings of f32. */
static void expect_near(double got, double want, const char *what, int64_t i) {
    bool is_same = got == want || (isnan(got) && isnan(want));
    cr_expect(is_same || fabs(got - want) <= 2e-6 * fmax(1, fabs(want)),
              "%s, element %lld: %g, want %g", what, (long long)i, got, want);
}

typedef struct Case {
    const char *inputs, *type, *function, *spelled;
} Case;

static const Case cases[] = {
    {"x: f32[3, 4]", "f32[3, 4]", "elu(x, alpha=0.5)", "where(x > 0, x, 0.5 * (exp(x) - 1))"},
    {"x: f32[3, 4]", "f32[3, 4]", "celu(x, 2.0)", "where(x > 0, x, 2 * (exp(x / 2) - 1))"},
    {"x: f32[3, 4]", "f32[3, 4]", "hardtanh(x, -0.5, 2)", "minimum(maximum(x, -0.5), 2)"},
    {"x: f32[3, 4]", "f32[3, 2]", "glu(x)", "x[:, :2] * sigmoid(x[:, 2:])"},
    {"x: f32[4, 3]", "f32[2, 3]", "glu(x, axis=0)", "x[:2] * sigmoid(x[2:])"},
    {"x: f32[3, 4]", "f32[3, 4]", "where(isfinite(x / 0), 1.0, where(isnan(x), 2.0, 3.0))",
     "x * 0 + 3"},
    {"x: f32[3, 4]", "bool[3, 4]", "isinf(1 / (x - x))", "x == x"},
};

static void check_case(const Case *c) {
    Arena *arena = arena_new(NULL);
    const char *source = str_format(arena, "graph g(%s) -> (y: %s, z: %s) {\n  y = %s\n  z = %s\n}",
                                    c->inputs, c->type, c->type, c->function, c->spelled);
    Evaluated e = evaluate(source, NULL);
    const Tensor *y = output_of(&e, 0), *z = output_of(&e, 1);
    int64_t n = tensor_n_elems(y);
    cr_assert(n > 0);
    for (int64_t i = 0; i < n; i++) expect_near(y->data[i], z->data[i], c->function, i);
    arena_free(e.arena);
    arena_free(arena);
}

Test(prelude, functions_are_what_ops_spell_out) {
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) check_case(&cases[i]);
}

static const double edges[] = {0.0,  -0.0,     1,         -1,  3e-39, -2e38,
                               3e38, INFINITY, -INFINITY, NAN, 0.25};
enum { N_EDGES = sizeof edges / sizeof *edges };

static void fill_edges(Tensor *inputs) {
    for (size_t i = 0; i < N_EDGES * N_EDGES; i++) {
        inputs[0].data[i] = dtype_round(DT_F32, edges[i / N_EDGES]);
        inputs[1].data[i] = dtype_round(DT_F32, edges[i % N_EDGES]);
    }
}

Test(prelude, functions_of_two_numbers_are_those_of_c) {
    Evaluated e =
        evaluate("graph g(y: f32[11, 11], x: f32[11, 11]) -> (a: f32[11, 11], h: f32[11, 11])"
                 " {\n  a = atan2(y, x)\n  h = hypot(y, x)\n}",
                 fill_edges);
    for (int64_t i = 0; i < N_EDGES * N_EDGES; i++) {
        double y = e.inputs[0].data[i], x = e.inputs[1].data[i];
        double angle = output_of(&e, 0)->data[i], want = atan2(y, x);
        expect_near(angle, want, "atan2", i);
        cr_expect(isnan(want) || !signbit(angle) == !signbit(want), "atan2(%g, %g)", y, x);
        expect_near(output_of(&e, 1)->data[i], dtype_round(DT_F32, hypot(y, x)), "hypot", i);
    }
    arena_free(e.arena);
}

static void fill_halves(Tensor *inputs) {
    for (int64_t i = 0; i < 4; i++) inputs[0].data[i] = (double)i;
}

/* The prelude's own calls are of its own functions. */
Test(prelude, a_def_of_the_program_hides_a_function_outside_the_prelude_alone) {
    Evaluated e = evaluate("def atan(x) = x * 7.0\n"
                           "graph g(x: f32[4]) -> (a: f32[4], b: f32[4]) {\n"
                           "  a = atan(x)\n  b = asin(x * 0.25)\n}",
                           fill_halves);
    for (int64_t i = 0; i < 4; i++) {
        expect_near(output_of(&e, 0)->data[i], 7 * (double)i, "atan", i);
        expect_near(output_of(&e, 1)->data[i], asin((double)i / 4), "asin", i);
    }
    arena_free(e.arena);
}
