/* The prelude's convolutions and poolings against their definitions as loops, on small integers,
 * for which every order of a sum gives the same. Images are [B, C, D, H, W]; missing axes have
 * extents of 1. */
#include "front/sema.h"
#include "interp/interp.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

enum { AXES = 3 };

typedef struct Case {
    int64_t batch, channels, results, groups;
    int64_t size[AXES], kernel[AXES]; /* of the image; of the window */
    int64_t stride[AXES], low[AXES], dilation[AXES], more[AXES];
    const char *source;
} Case;

static int64_t volume(const int64_t *dims, uint32_t n) {
    int64_t total = 1;
    for (uint32_t k = 0; k < n; k++) total *= dims[k];
    return total;
}

static double content(uint32_t input, int64_t i) {
    return (double)((i * 7 + input * 3 + i / 5) % 11 - 5);
}

/* The first output of the program's graph. */
static Tensor evaluate(Arena *arena, const char *source) {
    Diags diags = {.arena = arena};
    Text text = {.arena = arena};
    Module *module = front_parse(arena, strtab_new(arena), &diags,
                                 source_new(arena, "conv.g", source, strlen(source)));
    if (!module) diag_print(&diags, &text);
    cr_assert(module, "%s\n%s", source, text_str(&text));
    const Graph *graph = module->graphs.data[0];
    Tensor *inputs = arena_array(arena, Tensor, graph->inputs.n);
    Tensor *values = arena_array(arena, Tensor, graph->nodes.n);
    const char *error = NULL;
    for (uint32_t i = 0; i < graph->inputs.n; i++) {
        Tensor *t = &inputs[i];
        cr_assert(interp_shape(graph, graph->inputs.data[i].node, NULL, t, arena, &error));
        cr_assert(tensor_new(arena, t->dtype, t->rank, t->dims, t));
        for (int64_t k = 0; k < tensor_n_elems(t); k++) t->data[k] = content(i, k);
    }
    cr_assert(interp_graph(graph, NULL, inputs, NULL, values, arena, &error), "%s", error);
    return values[graph->outputs.data[0].node];
}

static bool next(int64_t *at, const int64_t *dims, uint32_t n) {
    for (uint32_t k = n; k-- > 0;) {
        if (++at[k] < dims[k]) return true;
        at[k] = 0;
    }
    return false;
}

static int64_t offset(const int64_t *at, const int64_t *dims, uint32_t n) {
    int64_t total = 0;
    for (uint32_t k = 0; k < n; k++) total = total * dims[k] + at[k];
    return total;
}

/* The extents of the result, which has batch and results in front. */
static void result_dims(const Tensor *result, const Case *c, int64_t out[AXES]) {
    cr_assert(result->rank >= 3 && result->dims[0] == c->batch && result->dims[1] == c->results);
    for (uint32_t k = 0; k < AXES; k++) {
        bool has = k + result->rank >= AXES + 2;
        out[k] = has ? result->dims[k + result->rank - AXES] : 1;
    }
    cr_assert_eq(c->batch * c->results * volume(out, AXES), tensor_n_elems(result));
}

/* Position `at` of the result and tap `tap` meet at `from` in the image; false: outside. */
static bool image_at(const Case *c, const int64_t *at, const int64_t *tap, int64_t *from) {
    bool is_inside = true;
    for (uint32_t k = 0; k < AXES; k++) {
        from[k] = at[k] * c->stride[k] + tap[k] * c->dilation[k] - c->low[k];
        is_inside = is_inside && from[k] >= 0 && from[k] < c->size[k];
    }
    return is_inside;
}

static double conv_at(const Case *c, int64_t b, int64_t n, const int64_t *at) {
    int64_t tap[AXES] = {0}, from[AXES], m = c->results / c->groups, i = c->channels / c->groups;
    double sum = 0;
    do {
        if (!image_at(c, at, tap, from)) continue;
        for (int64_t k = 0; k < i; k++) {
            int64_t x = (b * c->channels + n / m * i + k) * volume(c->size, AXES);
            int64_t w = (n * i + k) * volume(c->kernel, AXES);
            sum += content(0, x + offset(from, c->size, AXES)) *
                   content(1, w + offset(tap, c->kernel, AXES));
        }
    } while (next(tap, c->kernel, AXES));
    return sum;
}

static void expect_conv(const Case *c) {
    Arena *arena = arena_new(NULL);
    Tensor y = evaluate(arena, c->source);
    int64_t out[AXES], at[AXES] = {0};
    result_dims(&y, c, out);
    for (int64_t i = 0; i < c->batch * c->results; i++) do {
            double want = conv_at(c, i / c->results, i % c->results, at);
            cr_assert_eq(y.data[i * volume(out, AXES) + offset(at, out, AXES)], want, "%s",
                         c->source);
        } while (next(at, out, AXES));
    arena_free(arena);
}

/* Every element of the image adds its products to the result. */
static void expect_transposed(const Case *c) {
    Arena *arena = arena_new(NULL);
    Tensor y = evaluate(arena, c->source);
    int64_t out[AXES], at[AXES] = {0}, m = c->results / c->groups, i = c->channels / c->groups;
    result_dims(&y, c, out);
    double *want = arena_array(arena, double, (size_t)tensor_n_elems(&y));
    for (uint32_t k = 0; k < AXES; k++)
        cr_expect_eq(out[k], (c->size[k] - 1) * c->stride[k] - 2 * c->low[k] +
                                 c->dilation[k] * (c->kernel[k] - 1) + c->more[k] + 1);
    for (int64_t q = 0; q < c->batch * c->channels; q++) do {
            double x = content(0, q * volume(c->size, AXES) + offset(at, c->size, AXES));
            int64_t tap[AXES] = {0}, channel = q % c->channels;
            do {
                int64_t to[AXES];
                bool is_inside = true;
                for (uint32_t k = 0; k < AXES; k++) {
                    to[k] = at[k] * c->stride[k] + tap[k] * c->dilation[k] - c->low[k];
                    is_inside = is_inside && to[k] >= 0 && to[k] < out[k];
                }
                for (int64_t r = 0; r < m && is_inside; r++) {
                    int64_t n = q / c->channels * c->results + channel / i * m + r;
                    int64_t w = (channel * m + r) * volume(c->kernel, AXES);
                    want[n * volume(out, AXES) + offset(to, out, AXES)] +=
                        x * content(1, w + offset(tap, c->kernel, AXES));
                }
            } while (next(tap, c->kernel, AXES));
        } while (next(at, c->size, AXES));
    for (int64_t k = 0; k < tensor_n_elems(&y); k++)
        cr_assert_eq(y.data[k], want[k], "%s", c->source);
    arena_free(arena);
}

typedef enum { POOL_MAX, POOL_MEAN, POOL_MEAN_OF_INSIDE } Pool;

static void expect_pool(const Case *c, Pool pool) {
    Arena *arena = arena_new(NULL);
    Tensor y = evaluate(arena, c->source);
    int64_t out[AXES], at[AXES] = {0}, from[AXES];
    result_dims(&y, c, out);
    for (int64_t q = 0; q < c->batch * c->results; q++) do {
            double most = -INFINITY, sum = 0, n = 0;
            int64_t tap[AXES] = {0};
            do {
                if (!image_at(c, at, tap, from)) continue;
                double x = content(0, q * volume(c->size, AXES) + offset(from, c->size, AXES));
                most = fmax(most, x);
                sum += x;
                n++;
            } while (next(tap, c->kernel, AXES));
            if (pool == POOL_MEAN) n = (double)volume(c->kernel, AXES);
            double want = pool == POOL_MAX ? most : sum / n;
            double got = y.data[q * volume(out, AXES) + offset(at, out, AXES)];
            cr_assert(fabs(got - want) <= 1e-15 * fabs(want), "%s", c->source);
        } while (next(at, out, AXES));
    arena_free(arena);
}

#define GRAPH(inputs, y, call) "graph g(" inputs ") -> (y: " y ") { y = " call " }"
#define ONES \
    { 1, 1, 1 }
#define ZEROS \
    { 0, 0, 0 }

static const Case convolutions[] = {
    {2,
     3,
     4,
     1,
     {1, 6, 5},
     {1, 3, 2},
     {1, 2, 1},
     {0, 1, 1},
     ONES,
     ZEROS,
     GRAPH("x: f64[2, 3, 6, 5], w: f64[4, 3, 3, 2]", "f64[2, 4, 3, 6]",
           "conv2d(x, w, stride=[2, 1], padding=1)")},
    {2,
     4,
     6,
     2,
     {1, 7, 8},
     {1, 3, 3},
     ONES,
     {0, 2, 2},
     {1, 2, 2},
     ZEROS,
     GRAPH("x: f64[2, 4, 7, 8], w: f64[6, 2, 3, 3]", "f64[2, 6, 7, 8]",
           "conv2d(x, w, padding=\"same\", dilation=2, groups=2)")},
    {1,
     3,
     3,
     3,
     {1, 5, 5},
     {1, 2, 2},
     ONES,
     ZEROS,
     ONES,
     ZEROS,
     GRAPH("x: f64[1, 3, 5, 5], w: f64[3, 1, 2, 2]", "f64[1, 3, 4, 4]", "conv2d(x, w, groups=3)")},
    {1,
     2,
     3,
     1,
     {1, 5, 4},
     {1, 2, 2},
     ONES,
     ZEROS,
     ONES,
     ZEROS,
     GRAPH("x: f64[1, 2, 5, 4], w: f64[3, 2, 2, 2]", "f64[1, 3, 4, 3]",
           "transpose(conv2d_nhwc(transpose(x, perm=[0, 2, 3, 1]), "
           "transpose(w, perm=[2, 3, 1, 0])), perm=[0, 3, 1, 2])")},
    {2,
     3,
     2,
     1,
     {1, 1, 9},
     {1, 1, 3},
     ONES,
     {0, 0, 4},
     {1, 1, 2},
     ZEROS,
     GRAPH("x: f64[2, 3, 9], w: f64[2, 3, 3]", "f64[2, 2, 9]",
           "conv1d(x, w, padding=\"causal\", dilation=2)")},
    {1,
     2,
     4,
     2,
     {3, 4, 5},
     {2, 3, 2},
     {2, 1, 2},
     {1, 1, 0},
     ONES,
     ZEROS,
     GRAPH("x: f64[1, 2, 3, 4, 5], w: f64[4, 1, 2, 3, 2]", "f64[1, 4, 2, 4, 2]",
           "conv3d(x, w, stride=[2, 1, 2], padding=[1, 1, 0], groups=2)")},
};

Test(conv, convolutions_are_sums_over_taps_and_channels) {
    for (size_t i = 0; i < sizeof convolutions / sizeof *convolutions; i++)
        expect_conv(&convolutions[i]);
}

static const Case transposed[] = {
    {2,
     4,
     6,
     2,
     {1, 4, 3},
     {1, 3, 2},
     {1, 2, 3},
     {0, 1, 0},
     ONES,
     {0, 1, 2},
     GRAPH("x: f64[2, 4, 4, 3], w: f64[4, 3, 3, 2]", "f64[2, 6, 8, 10]",
           "conv_transpose2d(x, w, stride=[2, 3], padding=[1, 0], output_padding=[1, 2], "
           "groups=2)")},
    {1,
     2,
     3,
     1,
     {1, 5, 4},
     {1, 1, 1},
     {1, 2, 2},
     {0, 1, 1},
     ONES,
     ZEROS,
     GRAPH("x: f64[1, 2, 5, 4], w: f64[2, 3, 1, 1]", "f64[1, 3, 7, 5]",
           "conv_transpose2d(x, w, stride=2, padding=1)")},
    {2,
     4,
     6,
     2,
     {1, 4, 3},
     {1, 1, 1},
     {1, 2, 3},
     {0, 1, 0},
     ONES,
     {0, 1, 2},
     GRAPH("x: f64[2, 4, 4, 3], w: f64[4, 3, 1, 1]", "f64[2, 6, 6, 9]",
           "conv_transpose2d(x, w, stride=[2, 3], padding=[1, 0], output_padding=[1, 2], "
           "groups=2)")},
    {2,
     3,
     2,
     1,
     {1, 1, 5},
     {1, 1, 3},
     {1, 1, 2},
     {0, 0, 1},
     {1, 1, 2},
     ZEROS,
     GRAPH("x: f64[2, 3, 5], w: f64[3, 2, 3]", "f64[2, 2, 11]",
           "conv_transpose1d(x, w, stride=2, padding=1, dilation=2)")},
    {2,
     3,
     2,
     1,
     {1, 1, 5},
     {1, 1, 4},
     {1, 1, 3},
     {0, 0, 2},
     {1, 1, 2},
     ZEROS,
     GRAPH("x: f64[2, 3, 5], w: f64[3, 2, 4]", "f64[2, 2, 15]",
           "conv_transpose1d(x, w, stride=3, padding=2, dilation=2)")},
    {1,
     4,
     4,
     2,
     {1, 3, 4},
     {1, 5, 3},
     {1, 2, 4},
     {0, 2, 1},
     {1, 3, 6},
     {0, 1, 3},
     GRAPH("x: f64[1, 4, 3, 4], w: f64[4, 2, 5, 3]", "f64[1, 4, 14, 26]",
           "conv_transpose2d(x, w, stride=[2, 4], padding=[2, 1], output_padding=[1, 3], "
           "dilation=[3, 6], groups=2)")},
    {1,
     2,
     2,
     1,
     {2, 3, 2},
     {2, 2, 3},
     {2, 1, 2},
     {0, 1, 1},
     ONES,
     {1, 0, 0},
     GRAPH("x: f64[1, 2, 2, 3, 2], w: f64[2, 2, 2, 2, 3]", "f64[1, 2, 5, 2, 3]",
           "conv_transpose3d(x, w, stride=[2, 1, 2], padding=[0, 1, 1], "
           "output_padding=[1, 0, 0])")},
};

Test(conv, transposed_convolutions_add_every_product) {
    for (size_t i = 0; i < sizeof transposed / sizeof *transposed; i++)
        expect_transposed(&transposed[i]);
}

typedef struct PoolCase {
    Pool pool;
    Case of;
} PoolCase;

static const PoolCase pools[] = {
    {POOL_MAX,
     {2,
      3,
      3,
      1,
      {1, 7, 6},
      {1, 3, 3},
      {1, 2, 2},
      {0, 1, 1},
      ONES,
      ZEROS,
      GRAPH("x: f64[2, 3, 7, 6]", "f64[2, 3, 4, 3]", "max_pool2d(x, 3, stride=2, padding=1)")}},
    {POOL_MAX,
     {1,
      2,
      2,
      1,
      {1, 1, 9},
      {1, 1, 2},
      {1, 1, 2},
      ZEROS,
      {1, 1, 3},
      ZEROS,
      GRAPH("x: f64[1, 2, 9]", "f64[1, 2, 3]", "max_pool1d(x, 2, dilation=3)")}},
    {POOL_MEAN,
     {1,
      2,
      2,
      1,
      {4, 5, 6},
      {2, 2, 3},
      {2, 2, 3},
      ZEROS,
      ONES,
      ZEROS,
      GRAPH("x: f64[1, 2, 4, 5, 6]", "f64[1, 2, 2, 2, 2]", "avg_pool3d(x, [2, 2, 3])")}},
    {POOL_MEAN,
     {1,
      2,
      2,
      1,
      {1, 5, 6},
      {1, 3, 3},
      {1, 2, 2},
      {0, 1, 1},
      ONES,
      ZEROS,
      GRAPH("x: f64[1, 2, 5, 6]", "f64[1, 2, 3, 3]", "avg_pool2d(x, 3, stride=2, padding=1)")}},
    {POOL_MEAN_OF_INSIDE,
     {1,
      2,
      2,
      1,
      {1, 5, 6},
      {1, 3, 3},
      {1, 2, 2},
      {0, 1, 1},
      ONES,
      ZEROS,
      GRAPH("x: f64[1, 2, 5, 6]", "f64[1, 2, 3, 3]",
            "avg_pool2d(x, 3, stride=2, padding=1, count_include_pad=false)")}},
    {POOL_MEAN,
     {1,
      2,
      2,
      1,
      {1, 4, 6},
      {1, 2, 2},
      {1, 2, 2},
      ZEROS,
      ONES,
      ZEROS,
      GRAPH("x: f64[1, 2, 4, 6]", "f64[1, 2, 2, 3]", "adaptive_avg_pool2d(x, [2, 3])")}},
    {POOL_MAX,
     {1,
      2,
      2,
      1,
      {1, 4, 6},
      {1, 2, 2},
      {1, 2, 2},
      ZEROS,
      ONES,
      ZEROS,
      GRAPH("x: f64[1, 2, 4, 6]", "f64[1, 2, 2, 3]", "adaptive_max_pool2d(x, [2, 3])")}},
    {POOL_MEAN,
     {1,
      2,
      2,
      1,
      {1, 6, 4},
      {1, 2, 2},
      {1, 2, 2},
      ZEROS,
      ONES,
      ZEROS,
      GRAPH("x: f64[1, 2, 6, 4]", "f64[1, 2, 3, 2]",
            "transpose(avg_pool2d_nhwc(transpose(x, perm=[0, 2, 3, 1]), 2), perm=[0, 3, 1, 2])")}},
    {POOL_MAX,
     {1,
      2,
      2,
      1,
      {1, 6, 4},
      {1, 3, 2},
      {1, 1, 1},
      ZEROS,
      ONES,
      ZEROS,
      GRAPH("x: f64[1, 2, 6, 4]", "f64[1, 2, 4, 3]",
            "transpose(max_pool2d_nhwc(transpose(x, perm=[0, 2, 3, 1]), [3, 2], stride=1), "
            "perm=[0, 3, 1, 2])")}},
};

Test(conv, poolings_go_over_windows) {
    for (size_t i = 0; i < sizeof pools / sizeof *pools; i++)
        expect_pool(&pools[i].of, pools[i].pool);
}

static void expect_elems(const char *source, uint32_t n, const double *want) {
    Arena *arena = arena_new(NULL);
    Tensor y = evaluate(arena, source);
    cr_assert_eq(tensor_n_elems(&y), n);
    for (uint32_t i = 0; i < n; i++) cr_expect_eq(y.data[i], want[i], "%s: element %u", source, i);
    arena_free(arena);
}

Test(conv, elements_are_rearranged_as_documented) {
    /* x: 0, 1, .. of an iota */
#define X(shape) "x = reshape(cast(iota([24], axis=0), f64), " shape "); y = "
#define REARRANGED(shape, y, call) "graph g() -> (y: " y ") { " X(shape) call " }"
    expect_elems(REARRANGED("[1, 4, 2, 3]", "f64[1, 1, 4, 6]", "pixel_shuffle(x, 2)"), 24,
                 (const double[]){0, 6, 1, 7,  2, 8,  12, 18, 13, 19, 14, 20,
                                  3, 9, 4, 10, 5, 11, 15, 21, 16, 22, 17, 23});
    expect_elems(REARRANGED("[1, 1, 4, 6]", "f64[1, 4, 2, 3]", "pixel_unshuffle(x, 2)"), 24,
                 (const double[]){0, 2, 4,  12, 14, 16, 1, 3, 5,  13, 15, 17,
                                  6, 8, 10, 18, 20, 22, 7, 9, 11, 19, 21, 23});
    expect_elems(REARRANGED("[2, 1, 3, 4]", "f64[2, 6, 2]", "unfold(x, [2, 3])[:, :, ::3]"), 24,
                 (const double[]){0,  5,  1,  6,  2,  7,  4,  9,  5,  10, 6,  11,
                                  12, 17, 13, 18, 14, 19, 16, 21, 17, 22, 18, 23});
    expect_elems(
        REARRANGED("[24]", "f64[1, 1, 2, 6]", "interpolate(reshape(x[0:3], [1, 1, 1, 3]), 2)"), 12,
        (const double[]){0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2});
    expect_elems(REARRANGED("[24]", "f64[1, 1, 2]",
                            "lp_pool1d(reshape(x[3:7] * 0.0 + 2.0, [1, 1, 4]), 2, 2) * "
                            "lp_pool1d(reshape(x[3:7] * 0.0 + 2.0, [1, 1, 4]), 2, 2)"),
                 2, (const double[]){8.000000000000002, 8.000000000000002});
}
