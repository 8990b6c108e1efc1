/* Graphs: shape rules, proofs about dims, printing, and that graph_verify sees what is broken. */
#include "ir/graph.h"

#include "random/rng.h"

#include <criterion/criterion.h>

typedef struct World {
    Arena *arena;
    DimTab *dims;
    Graph *graph;
    DimId one, four, b, h; /* b in 0..100, h in 8..64 a multiple of 8 */
} World;

static World world_new(void) {
    World w = {.arena = arena_new(NULL)};
    w.dims = dimtab_new(w.arena);
    w.graph = graph_new(w.arena, w.dims, NULL, "g");
    w.one = dim_const(w.dims, 1);
    w.four = dim_const(w.dims, 4);
    w.b =
        dim_symbol(w.dims, dim_declare(w.dims, (DimSymbol){.name = "B", .hi = 100, .multiple = 1}));
    DimSymbol h = {.name = "H", .lo = 8, .hi = 64, .multiple = 8};
    w.h = dim_symbol(w.dims, dim_declare(w.dims, h));
    return w;
}

static Shape shape2(DimId a, DimId b) {
    return (Shape){.rank = 2, .dims = {a, b}};
}

static NodeId add_input(World *w, const char *name, Dtype dtype, Shape shape) {
    NodeId id = graph_add(w->graph, (Node){.op = OP_INPUT, .dtype = dtype, .shape = shape});
    vec_push(w->arena, &w->graph->inputs, (GraphInput){.name = name, .node = id});
    return id;
}

static NodeId add_binary(World *w, OpId op, NodeId a, NodeId b, Shape shape) {
    NodeId args[2] = {a, b};
    Dtype dtype = graph_node(w->graph, a)->dtype;
    Node node = {.op = op, .dtype = dtype, .shape = shape, .n_args = 2, .args = args};
    return graph_add(w->graph, node);
}

static NodeId add_unary(World *w, OpId op, NodeId a, Shape shape, Attrs attrs) {
    Dtype dtype = graph_node(w->graph, a)->dtype;
    Node node = {.op = op, .dtype = dtype, .shape = shape, .n_args = 1, .args = &a, .attrs = attrs};
    return graph_add(w->graph, node);
}

static void add_output(World *w, const char *name, NodeId node) {
    vec_push(w->arena, &w->graph->outputs, (GraphOutput){.name = name, .node = node});
}

Test(graph, shapes_broadcast_as_numpy_does_and_symbols_are_never_one) {
    World w = world_new();
    Shape shape = {.rank = 1, .dims = {w.four}}, column = shape2(w.b, w.one);
    cr_assert(shape_broadcast(w.dims, &shape, &column));
    Shape expected = shape2(w.b, w.four);
    cr_expect(shape_equal(&shape, &expected));
    Shape before = shape, other = shape2(w.four, w.four);
    cr_expect_not(shape_broadcast(w.dims, &shape, &other));
    cr_expect(shape_equal(&shape, &before), "a failed broadcast leaves the shape alone");
    Shape scalar = {0};
    cr_expect(shape_broadcast(w.dims, &scalar, &other) && shape_equal(&scalar, &other));
    arena_free(w.arena);
}

Test(graph, reduced_shapes_keep_or_drop_axes) {
    World w = world_new();
    Shape shape = {.rank = 3, .dims = {w.b, w.four, w.h}};
    Shape dropped = shape_reduced(w.dims, &shape, 5, false);
    cr_expect_eq(dropped.rank, 1);
    cr_expect_eq(dropped.dims[0], w.four);
    Shape kept = shape_reduced(w.dims, &shape, 5, true);
    cr_expect(kept.rank == 3 && kept.dims[0] == w.one && kept.dims[2] == w.one);
    cr_expect_eq(shape_n_elems(w.dims, &dropped), w.four);
    arena_free(w.arena);
}

/* Every claim of the provers is checked against all values of the symbols. */
static bool holds_everywhere(const World *w, DimId a, DimId b, bool equal) {
    for (int64_t x = 0; x <= 100; x++)
        for (int64_t y = 8; y <= 64; y += 8) {
            int64_t values[2] = {x, y}, va, vb;
            if (!dim_eval(w->dims, a, values, &va) || !dim_eval(w->dims, b, values, &vb))
                return false;
            if (equal ? va != vb : va > vb) return false;
        }
    return true;
}

Test(graph, proofs_about_divisions_are_sound_and_find_what_slices_need) {
    World w = world_new();
    DimId exprs[64];
    uint32_t n = 0;
    const DimId bases[] = {w.b, w.h, w.one, dim_add(w.dims, w.b, w.one), dim_mul(w.dims, w.b, w.h)};
    for (size_t i = 0; i < sizeof bases / sizeof bases[0]; i++) {
        exprs[n++] = bases[i];
        for (int64_t d = 2; d <= 8; d += 3) {
            DimId quotient = dim_div(w.dims, bases[i], dim_const(w.dims, d));
            exprs[n++] = quotient;
            exprs[n++] = dim_mul_const(w.dims, quotient, d);
            exprs[n++] = dim_add(w.dims, dim_mul_const(w.dims, quotient, d), w.four);
        }
    }
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < n; k++) {
            if (dim_prove_le(w.dims, exprs[i], exprs[k]))
                cr_expect(holds_everywhere(&w, exprs[i], exprs[k], false), "%s <= %s",
                          dim_str(w.dims, w.arena, exprs[i]), dim_str(w.dims, w.arena, exprs[k]));
            if (dim_prove_equal(w.dims, exprs[i], exprs[k]))
                cr_expect(holds_everywhere(&w, exprs[i], exprs[k], true), "%s == %s",
                          dim_str(w.dims, w.arena, exprs[i]), dim_str(w.dims, w.arena, exprs[k]));
        }
    DimId two = dim_const(w.dims, 2), half = dim_div(w.dims, w.b, two);
    cr_expect(dim_prove_le(w.dims, half, w.b));
    cr_expect(dim_prove_le(w.dims, dim_mul_const(w.dims, half, 2), w.b));
    cr_expect_not(dim_prove_equal(w.dims, dim_mul_const(w.dims, half, 2), w.b));
    DimId eighth = dim_div(w.dims, w.h, dim_const(w.dims, 8));
    cr_expect(dim_prove_equal(w.dims, dim_mul_const(w.dims, eighth, 8), w.h));
    cr_expect_not(dim_prove_le(w.dims, DIM_NONE, w.b));
    arena_free(w.arena);
}

/* h is at least 8. */
Test(graph, proofs_about_polynomials_are_sound_and_count_from_the_least_values) {
    World w = world_new();
    DimId squares[] = {dim_mul(w.dims, w.h, w.h), dim_mul(w.dims, w.h, w.b),
                       dim_mul(w.dims, w.b, w.b)};
    DimId area = dim_sub(w.dims, squares[0], w.h);
    cr_expect(dim_prove_le(w.dims, dim_const(w.dims, 56), area));
    cr_expect_not(dim_prove_le(w.dims, dim_const(w.dims, 57), area));
    cr_expect(dim_prove_le(w.dims, dim_mul_const(w.dims, w.b, 8), squares[1]));
    cr_expect_not(dim_prove_le(w.dims, dim_mul_const(w.dims, w.b, 9), squares[1]));
    Rng rng = rng_new(1);
    DimId zero = dim_const(w.dims, 0);
    uint32_t n_proved = 0;
    for (int i = 0; i < 2000; i++) {
        DimId linear = dim_add(w.dims, dim_mul_const(w.dims, w.h, rng_between(&rng, -20, 20)),
                               dim_mul_const(w.dims, w.b, rng_between(&rng, -20, 20)));
        DimId sum = dim_add(w.dims, linear, dim_const(w.dims, rng_between(&rng, -90, 90)));
        for (int k = 0; k < 3; k++) {
            DimId square = dim_mul_const(w.dims, squares[k], rng_between(&rng, -2, 4));
            sum = dim_add(w.dims, sum, square);
        }
        if (!dim_prove_le(w.dims, zero, sum)) continue;
        n_proved++;
        cr_expect(holds_everywhere(&w, zero, sum, false), "0 <= %s", dim_str(w.dims, w.arena, sum));
    }
    cr_expect(n_proved > 100, "%u", n_proved);
    arena_free(w.arena);
}

/* y = sum((a + c) over rows), with `a` f32[B, 4] and `c` f32[4]. */
static World small_graph(void) {
    World w = world_new();
    NodeId a = add_input(&w, "a", DT_F32, shape2(w.b, w.four));
    NodeId c = add_input(&w, "c", DT_F32, (Shape){.rank = 1, .dims = {w.four}});
    NodeId s = add_binary(&w, OP_ADD, a, c, shape2(w.b, w.four));
    Shape row = {.rank = 1, .dims = {w.b}};
    add_output(&w, "y", add_unary(&w, OP_SUM, s, row, (Attrs){.axes = 2}));
    return w;
}

typedef void (*Breakage)(World *w);

static void late_argument(World *w) {
    graph_node(w->graph, 2)->args[0] = 3;
}
static void self_argument(World *w) {
    graph_node(w->graph, 2)->args[0] = 2;
}
static void wrong_arity(World *w) {
    graph_node(w->graph, 2)->n_args = 1;
}
static void wrong_dtype(World *w) {
    graph_node(w->graph, 2)->dtype = DT_F16;
}
static void mixed_dtypes(World *w) {
    graph_node(w->graph, 1)->dtype = DT_F64;
}
static void refused_dtype(World *w) {
    for (NodeId id = 0; id < 4; id++) graph_node(w->graph, id)->dtype = DT_BOOL;
}
static void wrong_shape(World *w) {
    graph_node(w->graph, 2)->shape = shape2(w->four, w->b);
}
static void missing_extent(World *w) {
    graph_node(w->graph, 0)->shape.dims[0] = DIM_NONE;
}
static void negative_extent(World *w) {
    graph_node(w->graph, 0)->shape.dims[0] = dim_sub(w->dims, w->b, w->one);
}
static void axis_outside(World *w) {
    graph_node(w->graph, 3)->attrs.axes = 4;
}
static void no_axes(World *w) {
    graph_node(w->graph, 3)->attrs.axes = 0;
}
static void unknown_op(World *w) {
    graph_node(w->graph, 2)->op = OP_NONE;
}
static void no_output(World *w) {
    w->graph->outputs.n = 0;
}
static void output_outside(World *w) {
    w->graph->outputs.data[0].node = 9;
}
static void input_is_no_input(World *w) {
    w->graph->inputs.data[0].node = 2;
}
static void short_kernels(World *w) {
    vec_push(w->arena, &w->graph->kernel_of, 0);
}
static void no_such_kernel(World *w) {
    for (int i = 0; i < 4; i++) vec_push(w->arena, &w->graph->kernel_of, 7);
}
static void reshape_loses(World *w) {
    add_unary(w, OP_RESHAPE, 0, (Shape){.rank = 1, .dims = {w->b}}, (Attrs){0});
}
static void perm_repeats(World *w) {
    add_unary(w, OP_TRANSPOSE, 0, shape2(w->b, w->b),
              (Attrs){.per_axis = &(AxisAttrs){.perm = {0, 0}}});
}
static void slice_outside(World *w) {
    const AxisAttrs per_axis = {.begin = {dim_const(w->dims, 0), dim_const(w->dims, 9)},
                                .step = {1, 1}};
    add_unary(w, OP_SLICE, 0, shape2(w->b, w->one), (Attrs){.per_axis = &per_axis});
}
static void pad_shrinks(World *w) {
    const AxisAttrs per_axis = {.begin = {dim_const(w->dims, 0), w->one}};
    add_unary(w, OP_PAD, 0, shape2(w->b, w->four), (Attrs){.per_axis = &per_axis});
}
static void const_unrounded(World *w) {
    graph_add(w->graph, (Node){.op = OP_CONST, .dtype = DT_F16, .attrs.number = 0.1});
}
static void concat_uneven(World *w) {
    NodeId id = add_binary(w, OP_CONCAT, 0, 1, shape2(w->b, w->four));
    graph_node(w->graph, id)->attrs.axis = 0;
}
static void matmul_differs(World *w) {
    add_binary(w, OP_MATMUL, 0, 0, shape2(w->b, w->four));
}

static void tf32_of_integers(World *w) {
    NodeId a = add_input(w, "i", DT_I32, shape2(w->four, w->four));
    NodeId id = add_binary(w, OP_MATMUL, a, a, shape2(w->four, w->four));
    graph_node(w->graph, id)->attrs.precision = PRECISION_TF32;
}

static void product_of_another_dtype(World *w) {
    NodeId a = add_input(w, "h", DT_BF16, shape2(w->four, w->four));
    NodeId id = add_binary(w, OP_MATMUL, a, a, shape2(w->four, w->four));
    graph_node(w->graph, id)->dtype = DT_F16;
}

Test(graph, verify_accepts_a_right_graph_and_names_what_is_broken) {
    const Breakage breakages[] = {late_argument,     self_argument,
                                  wrong_arity,       wrong_dtype,
                                  mixed_dtypes,      refused_dtype,
                                  wrong_shape,       missing_extent,
                                  negative_extent,   axis_outside,
                                  no_axes,           unknown_op,
                                  no_output,         output_outside,
                                  input_is_no_input, short_kernels,
                                  no_such_kernel,    reshape_loses,
                                  perm_repeats,      slice_outside,
                                  pad_shrinks,       const_unrounded,
                                  concat_uneven,     matmul_differs,
                                  tf32_of_integers,  product_of_another_dtype};
    World right = small_graph();
    cr_expect_null(graph_verify(right.graph, right.arena));
    arena_free(right.arena);
    for (size_t i = 0; i < sizeof breakages / sizeof breakages[0]; i++) {
        World w = small_graph();
        breakages[i](&w);
        const char *problem = graph_verify(w.graph, w.arena);
        cr_expect(problem && strstr(problem, "graph `g`"), "breakage %zu is not seen", i);
        arena_free(w.arena);
    }
}

/* Two chains over one input; `first` and `second` say which fixed kernel each node is in. */
static World two_chains(const uint32_t kernels[5]) {
    World w = world_new();
    Shape row = {.rank = 1, .dims = {w.b}};
    NodeId x = add_input(&w, "x", DT_F32, row);
    NodeId p = add_unary(&w, OP_EXP, x, row, (Attrs){0});
    NodeId q = add_unary(&w, OP_NEG, p, row, (Attrs){0});
    NodeId r = add_unary(&w, OP_ABS, q, row, (Attrs){0});
    NodeId s = add_binary(&w, OP_ADD, r, p, row);
    add_output(&w, "y", s);
    vec_push(w.arena, &w.graph->fixed_kernels, (FixedKernel){.name = "k"});
    vec_push(w.arena, &w.graph->fixed_kernels, (FixedKernel){.name = "m"});
    for (int i = 0; i < 5; i++) vec_push(w.arena, &w.graph->kernel_of, kernels[i]);
    return w;
}

Test(graph, fixed_kernels_print_as_blocks_in_an_order_that_works) {
    World w = two_chains((const uint32_t[5]){0, 1, 0, 2, 2});
    Text text = {.arena = w.arena};
    graph_print(w.graph, &text);
    cr_expect_null(graph_verify(w.graph, w.arena));
    cr_expect_str_eq(text_str(&text), "graph g(x: f32[B]) -> (y: f32[B]) {\n"
                                      "  kernel k {\n"
                                      "    v1 = exp(x)\n"
                                      "  }\n"
                                      "  v2 = neg(v1)\n"
                                      "  kernel m {\n"
                                      "    v3 = abs(v2)\n"
                                      "    y = add(v3, v1)\n"
                                      "  }\n"
                                      "}\n");
    arena_free(w.arena);
}

Test(graph, kernels_that_wait_for_each_other_are_refused) {
    World w = two_chains((const uint32_t[5]){0, 1, 2, 1, 2});
    cr_expect(graph_verify(w.graph, w.arena));
    Text text = {.arena = w.arena};
    graph_print(w.graph, &text); /* still prints, for the one who debugs it */
    cr_expect(strstr(text_str(&text), "y = add("));
    arena_free(w.arena);
}

Test(graph, printed_names_are_unique_and_never_mean_something_else) {
    World w = world_new();
    Shape row = {.rank = 1, .dims = {w.b}};
    NodeId x = add_input(&w, "v1", DT_F32, row);
    NodeId p = add_unary(&w, OP_EXP, x, row, (Attrs){0}); /* unnamed, but v1 is taken */
    NodeId q = add_unary(&w, OP_NEG, p, row, (Attrs){0}); /* named like a dim */
    NodeId r = add_unary(&w, OP_ABS, q, row, (Attrs){0}); /* named like an output elsewhere */
    graph_node(w.graph, q)->name = "B";
    graph_node(w.graph, r)->name = "z";
    add_output(&w, "z", q);
    add_output(&w, "y", r);
    Text text = {.arena = w.arena};
    graph_print(w.graph, &text);
    cr_expect_str_eq(text_str(&text), "graph g(v1: f32[B]) -> (z: f32[B], y: f32[B]) {\n"
                                      "  v1_1 = exp(v1)\n"
                                      "  v2 = neg(v1_1)\n"
                                      "  v3 = abs(v2)\n"
                                      "  z = v2\n"
                                      "  y = v3\n"
                                      "}\n");
    arena_free(w.arena);
}
