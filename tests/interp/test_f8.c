/* The bound of products of 8-bit floats: tensor cores add them in few bits, for 128 elements of k.
 */
#include "interp/interp.h"
#include "lib/compare.h"

#include <criterion/criterion.h>

enum { MOST_K = 300 };

typedef struct Dot {
    Dtype left, right;
    int64_t k;
    double a[MOST_K], b[MOST_K]; /* elements of the dtypes */
} Dot;

static NodeId input_of(Graph *graph, Dtype dtype, int64_t rows, int64_t columns) {
    DimId extents[2] = {dim_const(graph->dims, rows), dim_const(graph->dims, columns)};
    Node node = {.op = OP_INPUT, .dtype = dtype, .shape = {.rank = 2}};
    for (int i = 0; i < 2; i++) node.shape.dims[i] = extents[i];
    return graph_add(graph, node);
}

/* The sum, and its bound. */
static double evaluate(const Dot *dot, double *bound) {
    Arena *arena = arena_new(NULL);
    Graph *graph = graph_new(arena, dimtab_new(arena), source_new(arena, "t.g", "", 0), "g");
    NodeId args[2] = {input_of(graph, dot->left, 1, dot->k),
                      input_of(graph, dot->right, dot->k, 1)};
    Tensor operands[2], result;
    const char *error = NULL;
    for (int i = 0; i < 2; i++) {
        cr_assert(interp_shape(graph, args[i], NULL, &operands[i], arena, &error), "%s", error);
        cr_assert(tensor_new(arena, operands[i].dtype, 2, operands[i].dims, &operands[i]));
        for (int64_t k = 0; k < dot->k; k++) operands[i].data[k] = i ? dot->b[k] : dot->a[k];
    }
    Node node = {.op = OP_MATMUL, .dtype = DT_F32, .n_args = 2, .args = args};
    node.shape = (Shape){.rank = 2};
    for (int i = 0; i < 2; i++) node.shape.dims[i] = dim_const(graph->dims, 1);
    NodeId id = graph_add(graph, node);
    cr_assert(interp_node(graph, id, NULL, operands, &result, bound, arena, &error), "%s", error);
    double value = result.data[0];
    arena_free(arena);
    return value;
}

/* The first product is 2^14, the others `rest`. */
static Dot dot_of(int64_t k, double rest) {
    Dot dot = {.left = DT_F8E5M2, .right = DT_F8E4M3, .k = k};
    for (int64_t i = 0; i < k; i++) {
        dot.a[i] = i ? rest : 0x1p14;
        dot.b[i] = 1;
    }
    return dot;
}

/* Ones beside 2^14 lie below the bits that are kept, so 127 of them may be lost, and no more than a
 * few times as much. */
Test(interp_f8, what_tensor_cores_cut_off_is_within_the_bound) {
    double bound = 0;
    Dot dot = dot_of(128, 1);
    cr_expect_eq(evaluate(&dot, &bound), 0x1p14 + 127);
    cr_expect(compare_element(DT_F32, 0x1p14 + 127, 0x1p14, bound));
    cr_expect_not(compare_element(DT_F32, 0x1p14 + 127, 0x1p14 - 200, bound));
}

/* After 128 elements the sum goes to f32, which holds what follows: it is not lost beside the first
 * product. */
Test(interp_f8, a_part_cuts_off_nothing_of_the_next) {
    double first = 0, both = 0;
    Dot dot = dot_of(128, 1), longer = dot_of(256, 1);
    evaluate(&dot, &first);
    evaluate(&longer, &both);
    cr_expect_gt(first, 0);
    cr_expect_eq(both, first);
}

/* Twos beside 2^14 lie within these bits, and so do equal numbers. */
Test(interp_f8, sums_that_fit_are_exact) {
    double bound = 1;
    Dot dot = dot_of(128, 2);
    cr_expect_eq(evaluate(&dot, &bound), 0x1p14 + 254);
    cr_expect_lt(bound, 1e-300);
    dot.a[0] = 2;
    cr_expect_eq(evaluate(&dot, &bound), 256);
    cr_expect_lt(bound, 1e-300);
}

Test(interp_f8, what_is_no_number_passes_through) {
    double bound = 0;
    Dot dot = dot_of(64, 1);
    dot.a[40] = (double)INFINITY;
    cr_expect(isinf(evaluate(&dot, &bound)));
    dot.b[50] = (double)NAN;
    cr_expect(isnan(evaluate(&dot, &bound)));
}
