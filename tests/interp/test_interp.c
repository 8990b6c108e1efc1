/* The reference interpreter against cases worked by hand and loops written out. */
#include "interp/interp.h"
#include "lib/compare.h"
#include "random/random_data.h"

#include <criterion/criterion.h>
#include <float.h>
#include <math.h>

/* A graph of one op over inputs, built up by hand. */
typedef struct Fixture {
    Arena *arena;
    DimTab *dims;
    Graph *graph;
    Tensor args[8];
    NodeId inputs[8];
    uint32_t n_args;
    int64_t symbols[2]; /* N = 3, M = 2 */
} Fixture;

static Fixture fixture_new(void) {
    Fixture f = {.arena = arena_new(NULL), .symbols = {3, 2}};
    f.dims = dimtab_new(f.arena);
    dim_declare(f.dims, (DimSymbol){.name = "N", .lo = 0, .hi = 100, .multiple = 1});
    dim_declare(f.dims, (DimSymbol){.name = "M", .lo = 1, .hi = 100, .multiple = 1});
    f.graph = graph_new(f.arena, f.dims, source_new(f.arena, "t.g", "", 0), "g");
    return f;
}

enum { END = -100, N_ = -1, M_ = -2 }; /* extents in lists: symbols are negative */

static Shape shape_of(const Fixture *f, const int *extents) {
    Shape shape = {0};
    for (; *extents != END; extents++)
        shape.dims[shape.rank++] = *extents < 0 ? dim_symbol(f->dims, (uint32_t)(-*extents - 1))
                                                : dim_const(f->dims, *extents);
    return shape;
}

#define DIMS(...) ((const int[]){__VA_ARGS__, END})
#define SCALAR ((const int[]){END})
#define NUMBERS(...) ((const double[]){__VA_ARGS__})

/* Adds an input with these numbers, already elements of the dtype. */
static void give(Fixture *f, Dtype dtype, const int *extents, const double *numbers) {
    Node node = {.op = OP_INPUT, .dtype = dtype, .shape = shape_of(f, extents)};
    NodeId id = graph_add(f->graph, node);
    const char *error = NULL;
    Tensor *t = &f->args[f->n_args];
    cr_assert(interp_shape(f->graph, id, f->symbols, t, f->arena, &error), "%s", error);
    cr_assert(tensor_new(f->arena, t->dtype, t->rank, t->dims, t));
    for (int64_t i = 0; numbers && i < tensor_n_elems(t); i++) t->data[i] = numbers[i];
    f->inputs[f->n_args++] = id;
}

typedef struct Result {
    Tensor value;
    double *bounds;
    const char *error; /* NULL when it was evaluated */
} Result;

static Result evaluate(Fixture *f, OpId op, Dtype dtype, const int *extents, Attrs attrs) {
    Node node = {.op = op, .dtype = dtype, .shape = shape_of(f, extents), .attrs = attrs};
    node.n_args = f->n_args;
    node.args = f->inputs;
    NodeId id = graph_add(f->graph, node);
    Result r = {0};
    Tensor shape;
    if (!interp_shape(f->graph, id, f->symbols, &shape, f->arena, &r.error)) return r;
    r.bounds = arena_array(f->arena, double, (size_t)tensor_n_elems(&shape) + 1);
    bool ok =
        interp_node(f->graph, id, f->symbols, f->args, &r.value, r.bounds, f->arena, &r.error);
    cr_assert_eq(ok, r.error == NULL);
    return r;
}

static void expect_numbers(const Result *r, const double *want, int n) {
    cr_assert_null(r->error, "%s", r->error);
    cr_assert_eq(tensor_n_elems(&r->value), n);
    for (int i = 0; i < n; i++)
        cr_expect(compare_element(r->value.dtype, want[i], r->value.data[i], 0),
                  "element %d is %.17g, not %.17g", i, r->value.data[i], want[i]);
}

#define EXPECT(result, ...)                                  \
    expect_numbers(&(result), (const double[]){__VA_ARGS__}, \
                   (int)(sizeof((const double[]){__VA_ARGS__}) / sizeof(double)))

Test(interp, elementwise_broadcasts_and_rounds) {
    Fixture f = fixture_new();
    give(&f, DT_F16, DIMS(2, 1), NUMBERS(1, 2048));
    give(&f, DT_F16, DIMS(N_), NUMBERS(0x1p-11, 1, 3));
    Result r = evaluate(&f, OP_ADD, DT_F16, DIMS(2, N_), (Attrs){0});
    EXPECT(r, 1, 2, 4, 2048, 2048, 2052);
    cr_expect_eq(r.bounds[0], 0);
    arena_free(f.arena);
}

Test(interp, elementwise_on_integers_wraps) {
    Fixture f = fixture_new();
    give(&f, DT_I32, DIMS(N_), NUMBERS(INT32_MAX, INT32_MIN, 7));
    give(&f, DT_I32, SCALAR, NUMBERS(-1));
    Result product = evaluate(&f, OP_MUL, DT_I32, DIMS(N_), (Attrs){0});
    EXPECT(product, -(double)INT32_MAX, INT32_MIN, -7);
    Result quotient = evaluate(&f, OP_DIV, DT_I32, DIMS(N_), (Attrs){0});
    EXPECT(quotient, -(double)INT32_MAX, INT32_MIN, -7);
    Result less = evaluate(&f, OP_LESS, DT_BOOL, DIMS(N_), (Attrs){0});
    EXPECT(less, 0, 1, 0);
    arena_free(f.arena);
}

Test(interp, elementwise_special_values) {
    Fixture f = fixture_new();
    give(&f, DT_F32, DIMS(4), NUMBERS(-0.0, NAN, -1, INFINITY));
    Result relu = evaluate(&f, OP_RELU, DT_F32, DIMS(4), (Attrs){0});
    EXPECT(relu, 0.0, NAN, 0.0, INFINITY);
    Result root = evaluate(&f, OP_SQRT, DT_F32, DIMS(4), (Attrs){0});
    EXPECT(root, -0.0, NAN, NAN, INFINITY);
    Result slope = evaluate(&f, OP_LEAKY_RELU, DT_F32, DIMS(4), (Attrs){0});
    EXPECT(slope, -0.0, NAN, -(double)0.01f, INFINITY);
    arena_free(f.arena);
}

Test(interp, tolerances_become_bounds) {
    Fixture f = fixture_new();
    give(&f, DT_F32, DIMS(4), NUMBERS(0, 1000, NAN, 88.7228));
    Result r = evaluate(&f, OP_EXP, DT_F32, DIMS(4), (Attrs){0});
    cr_expect_eq(r.value.data[0], 1);
    cr_expect_eq(r.bounds[0], op_ulp(op_info(OP_EXP), DT_F32) * (double)FLT_EPSILON);
    cr_expect(isinf(r.value.data[1]) && r.bounds[1] == 0, "far beyond: infinity and nothing else");
    cr_expect(isnan(r.value.data[2]) && r.bounds[2] == 0);
    cr_expect_gt(r.bounds[3], 0);
    arena_free(f.arena);
}

Test(interp, outside_the_domain_an_intermediate_may_overflow) {
    Fixture f = fixture_new();
    give(&f, DT_F32, DIMS(2), NUMBERS(-104, -20));
    Result r = evaluate(&f, OP_SIGMOID, DT_F32, DIMS(2), (Attrs){0});
    cr_expect(compare_element(DT_F32, r.value.data[0], 0, r.bounds[0]));
    cr_expect_not(compare_element(DT_F32, r.value.data[1], 0, r.bounds[1]));
    arena_free(f.arena);
}

Test(interp, where_takes_its_condition_first) {
    Fixture f = fixture_new();
    give(&f, DT_BOOL, DIMS(2, 1), NUMBERS(1, 0));
    give(&f, DT_I32, DIMS(M_), NUMBERS(1, 2));
    give(&f, DT_I32, SCALAR, NUMBERS(-5));
    Result r = evaluate(&f, OP_WHERE, DT_I32, DIMS(2, M_), (Attrs){0});
    EXPECT(r, 1, 2, -5, -5);
    arena_free(f.arena);
}

Test(interp, casts_round_once) {
    Fixture f = fixture_new();
    give(&f, DT_F64, DIMS(5), NUMBERS(1 + 0x1p-11 + 0x1p-40, 65520, -3.9, NAN, 0.1));
    Result half = evaluate(&f, OP_CAST, DT_F16, DIMS(5), (Attrs){0});
    EXPECT(half, 1 + 0x1p-10, INFINITY, -3.900390625, NAN, 0.0999755859375);
    Result whole = evaluate(&f, OP_CAST, DT_I32, DIMS(5), (Attrs){0});
    EXPECT(whole, 1, 65520, -3, 0, 0);
    Result truth = evaluate(&f, OP_CAST, DT_BOOL, DIMS(5), (Attrs){0});
    EXPECT(truth, 1, 1, 1, 1, 1);
    arena_free(f.arena);
}

/* Adds an input of i64. */
static void give_wide(Fixture *f, const int *extents, const int64_t *numbers) {
    give(f, DT_I64, extents, NULL);
    Tensor *t = &f->args[f->n_args - 1];
    for (int64_t i = 0; i < tensor_n_elems(t); i++) tensor_set_int(t, i, numbers[i]);
}

Test(interp, i64_is_exact_beyond_doubles) {
    const int64_t odd = ((int64_t)1 << 53) + 1;
    Fixture f = fixture_new();
    give_wide(&f, DIMS(4), (const int64_t[]){odd, INT64_MIN, -7, INT64_MAX});
    Result sum = evaluate(&f, OP_SUM, DT_I64, SCALAR, (Attrs){.axes = 1});
    cr_expect_eq(tensor_int(&sum.value, 0), odd - 8);
    Result max = evaluate(&f, OP_MAX, DT_I64, SCALAR, (Attrs){.axes = 1});
    cr_expect_eq(tensor_int(&max.value, 0), INT64_MAX);
    Result at = evaluate(&f, OP_ARGMIN, DT_I32, SCALAR, (Attrs){.axes = 1});
    cr_expect_eq(tensor_int(&at.value, 0), 1);
    Result low = evaluate(&f, OP_CAST, DT_U8, DIMS(4), (Attrs){0});
    EXPECT(low, 1, 0, 249, 255);
    Result pad =
        evaluate(&f, OP_PAD, DT_I64, DIMS(5), (Attrs){.number = (double)odd, .whole = odd});
    cr_expect_eq(tensor_int(&pad.value, 4), odd);
    Result minus = evaluate(&f, OP_NEG, DT_I64, DIMS(4), (Attrs){0});
    cr_expect_eq(tensor_int(&minus.value, 0), -odd);
    cr_expect_eq(tensor_int(&minus.value, 1), INT64_MIN);
    arena_free(f.arena);
}

Test(interp, bitcasts_keep_bits_but_those_of_nan) {
    Fixture f = fixture_new();
    give(&f, DT_F32, DIMS(4), NUMBERS(1, -0.0, -(double)NAN, 0x1p-149));
    Result bits = evaluate(&f, OP_BITCAST, DT_U32, DIMS(4), (Attrs){0});
    EXPECT(bits, 0x3f800000, 0x80000000, 0x7fc00000, 1);
    Result wide = evaluate(&f, OP_BITCAST, DT_F64, DIMS(4), (Attrs){0});
    cr_expect_not_null(wide.error);
    arena_free(f.arena);
    f = fixture_new();
    give(&f, DT_U16, DIMS(2), NUMBERS(0x3c00, 0xfbff));
    Result half = evaluate(&f, OP_BITCAST, DT_F16, DIMS(2), (Attrs){0});
    EXPECT(half, 1, -65504);
    arena_free(f.arena);
}

Test(interp, narrow_integers_wrap_in_every_class) {
    Fixture f = fixture_new();
    give(&f, DT_U8, DIMS(2, 2), NUMBERS(200, 100, 3, 255));
    Result sum = evaluate(&f, OP_SUM, DT_U8, SCALAR, (Attrs){.axes = 3});
    EXPECT(sum, 46);
    Result prod = evaluate(&f, OP_PROD, DT_U8, DIMS(2), (Attrs){.axes = 2});
    EXPECT(prod, 20000 % 256, 765 % 256);
    Result neg = evaluate(&f, OP_NEG, DT_U8, DIMS(2, 2), (Attrs){0});
    EXPECT(neg, 56, 156, 253, 1);
    give(&f, DT_U8, DIMS(2, 2), NUMBERS(1, 2, 3, 4));
    Result product = evaluate(&f, OP_MATMUL, DT_U8, DIMS(2, 2), (Attrs){0});
    EXPECT(product, (200 + 300) % 256, (400 + 400) % 256, (3 + 765) % 256, (6 + 1020) % 256);
    arena_free(f.arena);
}

/* Reductions. */

static double at3(const Tensor *t, int64_t i, int64_t j, int64_t k) {
    return t->data[(i * t->dims[1] + j) * t->dims[2] + k];
}

Test(interp, sums_over_every_set_of_axes_agree_with_loops) {
    for (uint32_t axes = 1; axes < 8; axes++)
        for (int keep = 0; keep < 2; keep++) {
            Fixture f = fixture_new();
            give(&f, DT_F32, DIMS(M_, 5, N_), NULL);
            Rng rng = rng_new(axes);
            random_fill(&rng, FILL_INTEGERS, &f.args[0]);
            int extents[4] = {M_, 5, N_, END}, kept[4], n = 0;
            for (int k = 0; k < 3; k++)
                if (!(axes >> k & 1) || keep) kept[n++] = axes >> k & 1 ? 1 : extents[k];
            kept[n] = END;
            double want[30] = {0};
            int64_t size[3] = {2, 5, 3}, stride[3], total = 1;
            for (int k = 3; k-- > 0;) {
                stride[k] = axes >> k & 1 ? 0 : total;
                total *= axes >> k & 1 ? 1 : size[k];
            }
            for (int64_t i = 0; i < 2; i++)
                for (int64_t j = 0; j < 5; j++)
                    for (int64_t k = 0; k < 3; k++)
                        want[i * stride[0] + j * stride[1] + k * stride[2]] +=
                            at3(&f.args[0], i, j, k);
            Attrs attrs = {.axes = axes, .keep = keep};
            Result r = evaluate(&f, OP_SUM, DT_F32, kept, attrs);
            cr_assert_null(r.error, "%s", r.error);
            cr_assert_eq(tensor_n_elems(&r.value), total);
            for (int64_t i = 0; i < total; i++) {
                cr_expect_eq(r.value.data[i], want[i], "axes %u", axes);
                cr_expect_lt(r.bounds[i], 1e-300, "sums of small integers are exact");
            }
            arena_free(f.arena);
        }
}

Test(interp, reductions_of_special_values) {
    Fixture f = fixture_new();
    give(&f, DT_F32, DIMS(4, N_),
         NUMBERS(1, NAN, 3, -0.0, -0.0, -0.0, INFINITY, 1, -INFINITY, -2, -7, -4));
    Attrs last = {.axes = 2};
    Result sum = evaluate(&f, OP_SUM, DT_F32, DIMS(4), last);
    EXPECT(sum, NAN, -0.0, NAN, -13);
    Result max = evaluate(&f, OP_MAX, DT_F32, DIMS(4), last);
    EXPECT(max, NAN, -0.0, INFINITY, -2);
    Result min = evaluate(&f, OP_MIN, DT_F32, DIMS(4), last);
    EXPECT(min, NAN, -0.0, -INFINITY, -7);
    Result prod = evaluate(&f, OP_PROD, DT_F32, DIMS(4), last);
    EXPECT(prod, NAN, -0.0, -INFINITY, -56);
    Result at = evaluate(&f, OP_ARGMAX, DT_I32, DIMS(4), last);
    EXPECT(at, 1, 0, 0, 0);
    Result least = evaluate(&f, OP_ARGMIN, DT_I32, DIMS(4), last);
    EXPECT(least, 1, 0, 2, 1);
    arena_free(f.arena);
}

Test(interp, scans) {
    Fixture f = fixture_new();
    give(&f, DT_F32, DIMS(2, 4), NUMBERS(-0.0, 1, NAN, 3, INFINITY, 2, -INFINITY, 5));
    Attrs last = {.axes = 2}, first = {.axes = 1};
    Result sum = evaluate(&f, OP_CUMSUM, DT_F32, DIMS(2, 4), last);
    EXPECT(sum, -0.0, 1, NAN, NAN, INFINITY, INFINITY, NAN, NAN);
    Result down = evaluate(&f, OP_CUMSUM, DT_F32, DIMS(2, 4), first);
    EXPECT(down, -0.0, 1, NAN, 3, INFINITY, 3, NAN, 8);
    Result prod = evaluate(&f, OP_CUMPROD, DT_F32, DIMS(2, 4), last);
    EXPECT(prod, -0.0, -0.0, NAN, NAN, INFINITY, INFINITY, -INFINITY, -INFINITY);
    Result max = evaluate(&f, OP_CUMMAX, DT_F32, DIMS(2, 4), last);
    EXPECT(max, -0.0, 1, NAN, NAN, INFINITY, INFINITY, INFINITY, INFINITY);
    Result min = evaluate(&f, OP_CUMMIN, DT_F32, DIMS(2, 4), last);
    EXPECT(min, -0.0, -0.0, NAN, NAN, INFINITY, 2, -INFINITY, -INFINITY);
    arena_free(f.arena);
}

Test(interp, log_sums_up_to_each) {
    Fixture f = fixture_new();
    give(&f, DT_F32, DIMS(2, 4), NUMBERS(-INFINITY, -1000, -1000, 1000, 0, 0, INFINITY, NAN));
    Attrs last = {.axes = 2};
    Result sum = evaluate(&f, OP_LOGCUMSUMEXP, DT_F32, DIMS(2, 4), last);
    EXPECT(sum, -INFINITY, -1000, dtype_round(DT_F32, -1000 + log(2)), 1000, 0,
           dtype_round(DT_F32, log(2)), INFINITY, NAN);
    arena_free(f.arena);
}

Test(interp, sorts) {
    Fixture f = fixture_new();
    give(&f, DT_F32, DIMS(2, 5), NUMBERS(3, NAN, 0.0, -0.0, -INFINITY, 1, 1, NAN, INFINITY, NAN));
    Attrs last = {.axes = 2}, first = {.axes = 1};
    Result up = evaluate(&f, OP_ARGSORT, DT_I32, DIMS(2, 5), last);
    EXPECT(up, 4, 2, 3, 0, 1, 0, 1, 3, 2, 4);
    Result down = evaluate(&f, OP_ARGSORT_DESCENDING, DT_I32, DIMS(2, 5), last);
    EXPECT(down, 1, 0, 2, 3, 4, 2, 4, 3, 0, 1);
    Result columns = evaluate(&f, OP_ARGSORT, DT_I32, DIMS(2, 5), first);
    EXPECT(columns, 1, 1, 0, 0, 0, 0, 0, 1, 1, 1);
    arena_free(f.arena);
}

Test(interp, sorts_of_wide_integers) {
    Fixture f = fixture_new();
    const int64_t wide[] = {INT64_MAX, INT64_MAX - 1, INT64_MIN, INT64_MAX};
    give_wide(&f, DIMS(4), wide);
    Attrs axis = {.axes = 1};
    Result up = evaluate(&f, OP_ARGSORT, DT_I32, DIMS(4), axis);
    EXPECT(up, 2, 1, 0, 3);
    Result down = evaluate(&f, OP_ARGSORT_DESCENDING, DT_I32, DIMS(4), axis);
    EXPECT(down, 0, 3, 1, 2);
    arena_free(f.arena);
}

Test(interp, segments) {
    Fixture f = fixture_new();
    give(&f, DT_F32, DIMS(2, 4), NUMBERS(1, 2, 4, 8, -1, NAN, 5, 3));
    give(&f, DT_I32, DIMS(2, 4), NUMBERS(-1, 0, 0, 2, 1, 1, 2, 3));
    Attrs last = {.axes = 2};
    Result sums = evaluate(&f, OP_SEGMENT_SUM, DT_F32, DIMS(2, 3), last);
    EXPECT(sums, 6, 0, 8, 0, NAN, 5);
    Result products = evaluate(&f, OP_SEGMENT_PROD, DT_F32, DIMS(2, 3), last);
    EXPECT(products, 8, 1, 8, 1, NAN, 5);
    Result largest = evaluate(&f, OP_SEGMENT_MAX, DT_F32, DIMS(2, 3), last);
    EXPECT(largest, 4, -INFINITY, 8, -INFINITY, NAN, 5);
    Result smallest = evaluate(&f, OP_SEGMENT_MIN, DT_F32, DIMS(2, 3), last);
    EXPECT(smallest, 2, INFINITY, 8, INFINITY, NAN, 5);
    arena_free(f.arena);
}

Test(interp, segments_of_columns) {
    Fixture f = fixture_new();
    give(&f, DT_I32, DIMS(4, 2), NUMBERS(1, 2, 4, 8, 16, 32, 64, 128));
    const int64_t ids[] = {0, 0, 0, 1, 1, 1, 1, 5};
    give_wide(&f, DIMS(4, 2), ids);
    Attrs first = {.axes = 1};
    Result sums = evaluate(&f, OP_SEGMENT_SUM, DT_I32, DIMS(2, 2), first);
    EXPECT(sums, 5, 2, 80, 40);
    Result largest = evaluate(&f, OP_SEGMENT_MAX, DT_I32, DIMS(3, 2), first);
    EXPECT(largest, 4, 2, 64, 32, INT32_MIN, INT32_MIN);
    arena_free(f.arena);
}

Test(interp, scans_of_integers_wrap) {
    Fixture f = fixture_new();
    give(&f, DT_I8, DIMS(4), NUMBERS(100, 27, 1, -3));
    Attrs axis = {.axes = 1};
    Result sum = evaluate(&f, OP_CUMSUM, DT_I8, DIMS(4), axis);
    EXPECT(sum, 100, 127, -128, 125);
    Result prod = evaluate(&f, OP_CUMPROD, DT_I8, DIMS(4), axis);
    EXPECT(prod, 100, -116, -116, 92);
    Result max = evaluate(&f, OP_CUMMAX, DT_I8, DIMS(4), axis);
    EXPECT(max, 100, 100, 100, 100);
    Result min = evaluate(&f, OP_CUMMIN, DT_I8, DIMS(4), axis);
    EXPECT(min, 100, 27, 1, -3);
    arena_free(f.arena);
}

Test(interp, reductions_of_nothing) {
    Fixture f = fixture_new();
    f.symbols[0] = 0;
    give(&f, DT_F32, DIMS(2, N_), NULL);
    Attrs last = {.axes = 2};
    Result max = evaluate(&f, OP_MAX, DT_F32, DIMS(2), last);
    EXPECT(max, -INFINITY, -INFINITY);
    Result sum = evaluate(&f, OP_SUM, DT_F32, DIMS(2), last);
    EXPECT(sum, 0.0, 0.0);
    Result prod = evaluate(&f, OP_PROD, DT_F32, DIMS(2), last);
    EXPECT(prod, 1, 1);
    Result mean = evaluate(&f, OP_MEAN, DT_F32, DIMS(2), last);
    EXPECT(mean, NAN, NAN);
    Result at = evaluate(&f, OP_ARGMAX, DT_I32, DIMS(2), last);
    EXPECT(at, 0, 0);
    Result least = evaluate(&f, OP_ARGMIN, DT_I32, DIMS(2), last);
    EXPECT(least, 0, 0);
    arena_free(f.arena);
}

Test(interp, integer_reductions_wrap_and_know_their_extremes) {
    Fixture f = fixture_new();
    f.symbols[0] = 0;
    give(&f, DT_I32, DIMS(2), NUMBERS(INT32_MAX, 2));
    Attrs all = {.axes = 1};
    Result sum = evaluate(&f, OP_SUM, DT_I32, SCALAR, all);
    EXPECT(sum, INT32_MIN + 1.0);
    Result prod = evaluate(&f, OP_PROD, DT_I32, SCALAR, all);
    EXPECT(prod, -2);
    Fixture empty = fixture_new();
    empty.symbols[0] = 0;
    give(&empty, DT_I32, DIMS(N_), NULL);
    Result max = evaluate(&empty, OP_MAX, DT_I32, SCALAR, all);
    EXPECT(max, INT32_MIN);
    Result min = evaluate(&empty, OP_MIN, DT_I32, SCALAR, all);
    EXPECT(min, INT32_MAX);
    arena_free(f.arena);
    arena_free(empty.arena);
}

/* The value is that of the exact sum; the bound covers a plain f32 loop and not much more. */
Test(interp, sums_are_exact_and_bounded) {
    Fixture f = fixture_new();
    f.symbols[0] = 100;
    give(&f, DT_F32, DIMS(N_), NULL);
    Rng rng = rng_new(8);
    float plain = 0;
    long double exact = 0, magnitude = 0;
    for (int i = 0; i < 100; i++) {
        double x = f.args[0].data[i] = dtype_round(DT_F32, rng_uniform(&rng, -1000, 1000));
        plain += (float)x;
        exact += (long double)x;
        magnitude += fabsl((long double)x);
    }
    Result r = evaluate(&f, OP_SUM, DT_F32, SCALAR, (Attrs){.axes = 1});
    cr_expect_eq(r.value.data[0], dtype_round(DT_F32, (double)exact));
    cr_expect(compare_element(DT_F32, r.value.data[0], (double)plain, r.bounds[0]));
    cr_expect_lt(r.bounds[0], (double)magnitude * 103 * 0x1p-24);
    cr_expect_gt(r.bounds[0], (double)magnitude * 50 * 0x1p-24);
    arena_free(f.arena);
}

Test(interp, what_may_overflow_on_the_way_may_be_anything) {
    Fixture f = fixture_new();
    give(&f, DT_F32, DIMS(M_, N_), NUMBERS(3e38, 3e38, -3e38, 1e30, 1e30, 1e-30));
    for (int i = 0; i < 6; i++) f.args[0].data[i] = dtype_round(DT_F32, f.args[0].data[i]);
    Attrs last = {.axes = 2};
    Result sum = evaluate(&f, OP_SUM, DT_F32, DIMS(M_), last);
    cr_expect(isinf(sum.bounds[0]) && isfinite(sum.bounds[1]));
    Result prod = evaluate(&f, OP_PROD, DT_F32, DIMS(M_), last);
    cr_expect(isinf(prod.bounds[1]));
    arena_free(f.arena);
}

/* Views. */

Test(interp, transpose_and_reshape) {
    Fixture f = fixture_new();
    give(&f, DT_F32, DIMS(M_, N_), NUMBERS(1, 2, 3, 4, 5, 6));
    Result t = evaluate(&f, OP_TRANSPOSE, DT_F32, DIMS(N_, M_),
                        (Attrs){.per_axis = &(AxisAttrs){.perm = {1, 0}}});
    EXPECT(t, 1, 4, 2, 5, 3, 6);
    Result flat = evaluate(&f, OP_RESHAPE, DT_F32, DIMS(6), (Attrs){0});
    EXPECT(flat, 1, 2, 3, 4, 5, 6);
    arena_free(f.arena);
}

Test(interp, expand_repeats_and_puts_axes_in_front) {
    Fixture f = fixture_new();
    give(&f, DT_I32, DIMS(2, 1), NUMBERS(1, 2));
    Result r = evaluate(&f, OP_EXPAND, DT_I32, DIMS(2, 2, N_), (Attrs){0});
    EXPECT(r, 1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2);
    arena_free(f.arena);
}

Test(interp, slice_begins_and_steps) {
    Fixture f = fixture_new();
    give(&f, DT_F32, DIMS(2, 5), NUMBERS(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
    AxisAttrs per_axis = {.step = {1, 2}};
    const Attrs attrs = {.per_axis = &per_axis};
    per_axis.begin[0] = dim_const(f.dims, 1);
    per_axis.begin[1] = dim_sub(f.dims, dim_symbol(f.dims, 0), dim_const(f.dims, 2));
    Result r = evaluate(&f, OP_SLICE, DT_F32, DIMS(1, 2), attrs);
    EXPECT(r, 6, 8);
    per_axis.begin[1] = dim_const(f.dims, 4);
    Result beyond = evaluate(&f, OP_SLICE, DT_F32, DIMS(1, 2), attrs);
    cr_expect_not_null(beyond.error);
    arena_free(f.arena);
}

Test(interp, slice_goes_down) {
    Fixture f = fixture_new();
    give(&f, DT_F32, DIMS(1, 5), NUMBERS(0, 1, 2, 3, 4));
    AxisAttrs per_axis = {.step = {1, -2}};
    const Attrs attrs = {.per_axis = &per_axis};
    per_axis.begin[0] = dim_const(f.dims, 0);
    per_axis.begin[1] = dim_const(f.dims, 3);
    Result r = evaluate(&f, OP_SLICE, DT_F32, DIMS(1, 2), attrs);
    EXPECT(r, 3, 1);
    arena_free(f.arena);
}

Test(interp, windows_put_taps_behind_the_last_window_axis) {
    Fixture f = fixture_new();
    give(&f, DT_F32, DIMS(5, 2), NUMBERS(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
    AxisAttrs per_axis = {.step = {2}, .dilation = {2}};
    Attrs attrs = {.axes = 1, .per_axis = &per_axis};
    Result r = evaluate(&f, OP_WINDOWS, DT_F32, DIMS(2, 2, 2), attrs);
    EXPECT(r, 0, 1, 4, 5, 4, 5, 8, 9);
    per_axis = (AxisAttrs){.step = {1, 1}, .dilation = {2, 1}};
    attrs.axes = 3;
    Result both = evaluate(&f, OP_WINDOWS, DT_F32, DIMS(3, 1, 2, 2), attrs);
    EXPECT(both, 0, 1, 4, 5, 2, 3, 6, 7, 4, 5, 8, 9);
    per_axis.dilation[0] = 3;
    Result beyond = evaluate(&f, OP_WINDOWS, DT_F32, DIMS(3, 1, 2, 2), attrs);
    cr_expect_not_null(beyond.error);
    arena_free(f.arena);
}

Test(interp, pad_puts_a_rounded_value_around) {
    Fixture f = fixture_new();
    give(&f, DT_F16, DIMS(1, 2), NUMBERS(1, -0.0));
    AxisAttrs per_axis = {0};
    const Attrs attrs = {.number = 0.1, .per_axis = &per_axis};
    per_axis.begin[0] = dim_const(f.dims, 1);
    per_axis.begin[1] = dim_const(f.dims, 0);
    Result r = evaluate(&f, OP_PAD, DT_F16, DIMS(2, N_), attrs);
    double fill = 0.0999755859375;
    EXPECT(r, fill, fill, fill, 1, -0.0, fill);
    arena_free(f.arena);
}

Test(interp, gather_clamps_its_indices) {
    Fixture f = fixture_new();
    give(&f, DT_F32, DIMS(2, N_), NUMBERS(1, 2, 3, 4, 5, 6));
    give(&f, DT_I32, DIMS(2, 2), NUMBERS(2, -7, 99, 0));
    Result last = evaluate(&f, OP_GATHER, DT_F32, DIMS(2, 2, 2), (Attrs){.axis = 1});
    EXPECT(last, 3, 1, 3, 1, 6, 4, 6, 4);
    Result first = evaluate(&f, OP_GATHER, DT_F32, DIMS(2, 2, N_), (Attrs){.axis = 0});
    EXPECT(first, 4, 5, 6, 1, 2, 3, 4, 5, 6, 1, 2, 3);
    arena_free(f.arena);
}

Test(interp, concat_along_any_axis) {
    Fixture f = fixture_new();
    give(&f, DT_I32, DIMS(2, 1), NUMBERS(1, 2));
    give(&f, DT_I32, DIMS(2, M_), NUMBERS(3, 4, 5, 6));
    Result r = evaluate(&f, OP_CONCAT, DT_I32, DIMS(2, N_), (Attrs){.axis = 1});
    EXPECT(r, 1, 3, 4, 2, 5, 6);
    Result wrong = evaluate(&f, OP_CONCAT, DT_I32, DIMS(2, 4), (Attrs){.axis = 1});
    cr_expect_not_null(wrong.error);
    arena_free(f.arena);
}

Test(interp, sources_have_values) {
    Fixture f = fixture_new();
    Result iota = evaluate(&f, OP_IOTA, DT_I32, DIMS(M_, N_), (Attrs){.axis = 1});
    EXPECT(iota, 0, 1, 2, 0, 1, 2);
    Result number = evaluate(&f, OP_CONST, DT_BF16, SCALAR, (Attrs){.number = 1.00390625});
    EXPECT(number, 1);
    Result input = evaluate(&f, OP_INPUT, DT_F32, SCALAR, (Attrs){0});
    cr_expect_not_null(input.error);
    arena_free(f.arena);
}

/* Matmul. */

Test(interp, matmul_broadcasts_batches) {
    Fixture f = fixture_new();
    give(&f, DT_F32, DIMS(2, 1, 2, N_), NUMBERS(1, 2, 3, 4, 5, 6, 0, 1, 0, -1, 0, 1));
    give(&f, DT_F32, DIMS(M_, N_, 1), NUMBERS(1, 1, 1, 1, 0, 2));
    Result r = evaluate(&f, OP_MATMUL, DT_F32, DIMS(2, M_, 2, 1), (Attrs){0});
    EXPECT(r, 6, 15, 7, 16, 1, 0, 0, 1);
    arena_free(f.arena);
}

/* Only the operands are rounded: 1 + 3 * 2^-11 and 1 + 2^-11 are ties, of which one goes up and one
 * down; the product of the rounded ones is kept. */
Test(interp, matmul_rounds_its_operands_to_tf32_when_asked) {
    const double up = 1 + 0x1.8p-10, down = 1 + 0x1p-11;
    Fixture f = fixture_new();
    give(&f, DT_F32, DIMS(2, 1), NUMBERS(up, down));
    give(&f, DT_F32, DIMS(1, 2), NUMBERS(1, up));
    Attrs tf32 = {.precision = PRECISION_TF32};
    Result rounded = evaluate(&f, OP_MATMUL, DT_F32, DIMS(2, 2), tf32);
    const double high = 1 + 0x1p-9;
    EXPECT(rounded, high, high * high, 1, high);
    Result full = evaluate(&f, OP_MATMUL, DT_F32, DIMS(2, 2), (Attrs){0});
    EXPECT(full, up, up * up, down, dtype_round(DT_F32, down * up));
    arena_free(f.arena);
}

/* Two products of 3/8 of the least f32: each alone rounds to 0, their sum to the least. */
Test(interp, matmul_may_lose_products_below_the_least_number) {
    Fixture f = fixture_new();
    give(&f, DT_F32, DIMS(1, 2), NUMBERS(0x1.8p-76, 0x1.8p-76));
    give(&f, DT_F32, DIMS(2, 1), NUMBERS(0x1p-75, 0x1p-75));
    Result r = evaluate(&f, OP_MATMUL, DT_F32, DIMS(1, 1), (Attrs){0});
    EXPECT(r, 0x1p-149);
    cr_expect_geq(r.bounds[0], 0x1p-149);
    cr_expect_leq(r.bounds[0], 0x1p-147);
    arena_free(f.arena);
}

/* As an H200 had it: the first operand's exponent is taken for that of the least normal f16, 2^-14,
 * so that the product lines up 2^9 times as high as it is, and the sum's lowest bits are lost. */
Test(interp, matmul_may_cut_off_beside_numbers_below_the_normal_ones) {
    Fixture f = fixture_new();
    give(&f, DT_F16, DIMS(1, 3), NUMBERS(0x1p-24, 0x1.cep-10, 0x1.c6p-17));
    give(&f, DT_F16, DIMS(3, 1), NUMBERS(0x1.ffcp+15, -0x1.968p+1, -0x1.784p+1));
    Result r = evaluate(&f, OP_MATMUL, DT_F16, DIMS(1, 1), (Attrs){0});
    EXPECT(r, -1817 * 0x1p-20);
    cr_expect(compare_element(DT_F16, r.value.data[0], -1816 * 0x1p-20, r.bounds[0]));
    cr_expect_not(compare_element(DT_F16, r.value.data[0], -1814 * 0x1p-20, r.bounds[0]));
    cr_expect_not(compare_element(DT_F16, r.value.data[0], -1819 * 0x1p-20, r.bounds[0]));
    arena_free(f.arena);
}

Test(interp, matmul_of_integers_wraps_and_of_nothing_is_zero) {
    Fixture f = fixture_new();
    give(&f, DT_I32, DIMS(1, 2), NUMBERS(65536, 1));
    give(&f, DT_I32, DIMS(2, 1), NUMBERS(65536, 7));
    Result r = evaluate(&f, OP_MATMUL, DT_I32, DIMS(1, 1), (Attrs){0});
    EXPECT(r, 7);
    Fixture empty = fixture_new();
    empty.symbols[0] = 0;
    give(&empty, DT_F32, DIMS(1, N_), NULL);
    give(&empty, DT_F32, DIMS(N_, 2), NULL);
    Result none = evaluate(&empty, OP_MATMUL, DT_F32, DIMS(1, 2), (Attrs){0});
    cr_expect(!none.error && none.value.data[0] == 0 && none.value.data[1] == 0);
    arena_free(f.arena);
    arena_free(empty.arena);
}

/* 1 + 2^-9 has one digit more than bf16, 200 * 2 one more than i8. */
Test(interp, matmul_keeps_the_digits_of_a_wider_result) {
    Fixture f = fixture_new();
    give(&f, DT_BF16, DIMS(1, 2), NUMBERS(1, 0x1p-9));
    give(&f, DT_BF16, DIMS(2, 1), NUMBERS(1, 1));
    Result narrow = evaluate(&f, OP_MATMUL, DT_BF16, DIMS(1, 1), (Attrs){0});
    EXPECT(narrow, 1);
    Result wide = evaluate(&f, OP_MATMUL, DT_F32, DIMS(1, 1), (Attrs){0});
    EXPECT(wide, 1 + 0x1p-9);
    Fixture whole = fixture_new();
    give(&whole, DT_I8, DIMS(1, 2), NUMBERS(100, -128));
    give(&whole, DT_I8, DIMS(2, 1), NUMBERS(4, 127));
    Result sum = evaluate(&whole, OP_MATMUL, DT_I32, DIMS(1, 1), (Attrs){0});
    EXPECT(sum, 400 - 128 * 127);
    arena_free(f.arena);
    arena_free(whole.arena);
}

/* Errors. */

Test(interp, wrong_arguments_are_errors) {
    Fixture f = fixture_new();
    give(&f, DT_F32, DIMS(N_), NUMBERS(1, 2, 3));
    f.args[0].dims[0] = 2;
    Result shape = evaluate(&f, OP_NEG, DT_F32, DIMS(N_), (Attrs){0});
    cr_assert_not_null(shape.error);
    cr_expect_not_null(strstr(shape.error, "f32[2]"), "%s", shape.error);
    f.args[0].dims[0] = 3;
    f.symbols[0] = -1;
    Result negative = evaluate(&f, OP_NEG, DT_F32, DIMS(N_), (Attrs){0});
    cr_expect_not_null(negative.error);
    f.symbols[0] = (int64_t)1 << 40;
    Result large = evaluate(&f, OP_IOTA, DT_I32, DIMS(N_), (Attrs){0});
    cr_expect_not_null(large.error);
    arena_free(f.arena);
}

Test(interp, whole_graphs_are_evaluated_in_order) {
    Fixture f = fixture_new();
    give(&f, DT_F32, DIMS(N_), NUMBERS(1, 2, 3));
    NodeId x = f.inputs[0], pair[2];
    vec_push(f.arena, &f.graph->inputs, (GraphInput){.name = "x", .node = x});
    Shape shape = graph_node(f.graph, x)->shape;
    Node square = {.op = OP_MUL, .dtype = DT_F32, .shape = shape, .n_args = 2, .args = pair};
    pair[0] = pair[1] = x;
    pair[0] = pair[1] = graph_add(f.graph, square);
    square.op = OP_ADD;
    pair[1] = x;
    NodeId last = graph_add(f.graph, square);
    Tensor values[3];
    const char *error = NULL;
    cr_assert(interp_graph(f.graph, f.symbols, f.args, NULL, values, f.arena, &error), "%s", error);
    cr_expect_eq(values[last].data[2], 12);
    f.args[0].dtype = DT_F64;
    cr_expect_not(interp_graph(f.graph, f.symbols, f.args, NULL, values, f.arena, &error));
    cr_expect_not_null(strstr(error, "`x`"), "%s", error);
    arena_free(f.arena);
}
