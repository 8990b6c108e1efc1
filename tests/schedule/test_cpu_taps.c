/* CPU GEMMs of one column and a short k: which of them are computed tap by tap, along which axis,
 * and that their bits are those of one kernel per op, at any edge of lanes and padding. */
#include "codegen/codegen.h"
#include "lib/compile.h"
#include "lib/pair.h"
#include "lib/plans.h"
#include "template/cpu_taps.h"

#include <criterion/criterion.h>

static const Sched *product_of(const Plan *plan) {
    for (uint32_t i = 0; i < plan->kernels.n; i++)
        if (plan->kernels.data[i].form == FORM_GEMM)
            return &plan->kernels.data[i].variants[0].sched;
    return NULL;
}

typedef struct Convolution {
    int channels, size, taps, stride, padding, apart;
    bool is_last; /* channels last */
} Convolution;

static int n_windows(const Convolution *c) {
    return (c->size + 2 * c->padding - c->apart * (c->taps - 1) - 1) / c->stride + 1;
}

static const char *image_of(Arena *arena, const Convolution *c, int side) {
    return c->is_last ? str_format(arena, "2, %d, %d, %d", side, side, c->channels)
                      : str_format(arena, "2, %d, %d, %d", c->channels, side, side);
}

static const char *source_of(Arena *arena, const Convolution *c, const char *t) {
    int n = n_windows(c), s = c->size, d = c->channels, k = c->taps;
    const char *x = image_of(arena, c, s), *y = image_of(arena, c, n);
    const char *w = c->is_last ? str_format(arena, "%d, %d, 1, %d", k, k, d)
                               : str_format(arena, "%d, 1, %d, %d", d, k, k);
    return str_format(arena,
                      "graph g(x: %s[%s], w: %s[%s]) -> (y: %s[%s]) {\n  fuse must {\n"
                      "    c = %s(x, w, stride=%d, padding=%d, dilation=%d, groups=%d)\n  }\n"
                      "  y = relu(c) + 1.0\n}\n",
                      t, x, t, w, t, y, c->is_last ? "conv2d_nhwc" : "conv2d", c->stride,
                      c->padding, c->apart, d);
}

static bool is_right(const char *source, const Target *target, int32_t n_threads, Text *report) {
    RigOptions options = RIG_OPTIONS_INIT;
    options.program.n_threads = n_threads;
    return pair_is_right(source, target, &options, NULL, 11, report);
}

/* Rows of outputs that are shorter and longer than vectors, with and without a middle, whose lanes
 * are contiguous, near or far apart. */
static const Convolution convolutions[] = {
    {3, 9, 3, 1, 1, 1, false},  {3, 33, 3, 1, 1, 1, false}, {2, 16, 3, 2, 1, 1, false},
    {2, 35, 5, 2, 2, 1, false}, {2, 50, 2, 3, 0, 2, false}, {1, 70, 1, 4, 0, 1, false},
    {2, 67, 3, 4, 2, 2, false}, {2, 7, 7, 1, 3, 1, false},  {3, 21, 4, 5, 1, 1, false},
    {17, 9, 3, 1, 1, 1, true},  {37, 11, 2, 1, 0, 1, true}, {8, 20, 3, 2, 1, 2, true},
    {1, 20, 3, 1, 1, 1, true},  {8, 6, 5, 1, 2, 1, true},   {16, 13, 11, 1, 5, 1, true},
    {5, 1, 1, 1, 0, 1, true},   {3, 15, 5, 2, 2, 1, false}, {2, 41, 8, 1, 3, 1, false},
    {3, 40, 7, 3, 0, 2, false}, {2, 12, 6, 1, 5, 2, false}, {1, 60, 11, 1, 5, 1, false},
    {37, 13, 7, 1, 3, 1, true}, {16, 21, 9, 2, 4, 1, true}, {5, 30, 6, 3, 5, 2, true},
    {33, 9, 5, 1, 4, 2, true}};
enum { N_CONVOLUTIONS = sizeof convolutions / sizeof *convolutions };

static const TargetId targets[] = {TARGET_CPU, TARGET_CPU_V4};

/* The number of targets that this machine runs, the first of `targets`. */
static size_t n_targets(void) {
    return codegen_cpu_runs(target_get(TARGET_CPU_V4)) ? 2 : 1;
}

Test(cpu_taps, bits_are_those_of_one_kernel_per_op, .timeout = 240) {
    static const char *const dtypes[] = {"f32", "f64", "bf16"};
    for (size_t i = 0; i < N_CONVOLUTIONS; i++)
        for (size_t t = 0; t < n_targets(); t++) {
            Text report = {.arena = arena_new(NULL)};
            const char *dtype = dtypes[(i + t) % 3];
            const char *source = source_of(report.arena, &convolutions[i], dtype);
            bool ok = is_right(source, target_get(targets[t]), i % 2 ? 1 : 3, &report);
            cr_expect(ok, "%s%s", source, text_str(&report));
            arena_free(report.arena);
        }
}

Test(cpu_taps, lanes_lie_along_what_is_contiguous) {
    static const struct {
        Convolution convolution;
        bool is_taps;
        uint32_t lanes_out;
        bool has_planes;
    } cases[] = {{{12, 30, 3, 1, 1, 1, false}, true, 1, true},
                 {{12, 30, 3, 2, 0, 1, false}, true, 1, false},
                 {{12, 30, 5, 2, 2, 1, false}, true, 1, true},
                 {{12, 30, 2, 2, 0, 1, false}, true, 1, false}, /* each element is used once */
                 {{12, 30, 3, 5, 0, 1, false}, true, 1, false},
                 {{12, 30, 3, 9, 0, 1, false}, false, 0, false}, /* the pixels are too far apart */
                 {{40, 30, 3, 2, 1, 1, true}, true, 4, false},
                 {{40, 14, 7, 1, 3, 1, true}, true, 4, true},      /* elements are vectors */
                 {{12, 30, 12, 1, 0, 1, false}, false, 0, false}}; /* 144 taps */
    Arena *arena = arena_new(NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *source = source_of(arena, &cases[i].convolution, "f32");
        PricedPlan priced = plans_price(arena, plans_parse(arena, source), 0, false, TARGET_CPU,
                                        card_of_target(target_get(TARGET_CPU)), NULL);
        const Sched *sched = product_of(priced.plan);
        cr_assert_not_null(sched, "%s", source);
        cr_expect_eq(sched->template == TEMPLATE_CPU_TAPS, cases[i].is_taps, "%s", source);
        if (!cases[i].is_taps) continue;
        cr_expect_eq(sched->cpu_taps.lanes_out, cases[i].lanes_out, "%s", source);
        cr_expect_eq(sched->cpu_taps.has_planes, cases[i].has_planes, "%s", source);
    }
    arena_free(arena);
}

/* The residual may lie in the memory that the outputs overwrite, so none is computed twice. */
Test(cpu_taps, planes_add_a_residual_once, .timeout = 60) {
    Text report = {.arena = arena_new(NULL)};
    const char *source =
        "graph g(x: f32[2, 3, 21, 21], w: f32[3, 1, 5, 5], v: f32[21, 21]) -> (y: f32[2, 3, 21, "
        "21]) {\n  s = tanh(x) @ v\n  fuse must {\n    c = conv2d(x, w, padding=2, groups=3)\n"
        "    t = s + c * s\n  }\n  y = t @ v\n}\n";
    bool ok = is_right(source, target_get(TARGET_CPU), 2, &report);
    cr_expect(ok, "%s%s", source, text_str(&report));
    arena_free(report.arena);
}

/* Axes of one element, as the batch of one image, join no others to each other; and weights that
 * are saved channels first are turned once. */
Test(cpu_taps, lanes_of_one_image_lie_along_its_channels) {
    Arena *arena = arena_new(NULL);
    const char *source = "graph g(x: f32[1, 16, 16, 96]) -> (y: f32[1, 16, 16, 96]) {\n"
                         "  param w: f32[96, 1, 3, 3]\n"
                         "  y = conv2d_nhwc(x, transpose(w, perm=[2, 3, 1, 0]), padding=1, "
                         "groups=96)\n}\n";
    PricedPlan priced = plans_price(arena, plans_parse(arena, source), 0, false, TARGET_CPU,
                                    card_of_target(target_get(TARGET_CPU)), NULL);
    const Sched *sched = product_of(priced.plan);
    cr_assert_not_null(sched);
    cr_expect_eq(sched->template, TEMPLATE_CPU_TAPS);
    cr_expect_eq(sched->cpu_taps.lanes_out, 3);
    cr_expect_eq(plan_n_init(priced.plan), 1);
    arena_free(arena);
}

/* Lanes a few elements apart are taken from whole vectors, of which no element lies behind the last
 * one that the lanes need. */
Test(cpu_taps, strided_maps_read_no_element_behind_their_last, .timeout = 120) {
    for (int stride = 2; stride <= 5; stride++)
        for (int n = 1; n <= 40; n += 3)
            for (size_t t = 0; t < n_targets(); t++) {
                Text report = {.arena = arena_new(NULL)};
                const char *source = str_format(
                    report.arena,
                    "graph g(x: f32[3, %d], z: f64[%d]) -> (y: f32[3, %d], v: f64[%d]) {\n"
                    "  y = relu(x[:, ::%d])\n  v = z[::%d] * 2.0\n}\n",
                    (n - 1) * stride + 1, (n - 1) * stride + 1, n, n, stride, stride);
                bool ok = is_right(source, target_get(targets[t]), 1, &report);
                cr_expect(ok, "%s%s", source, text_str(&report));
                arena_free(report.arena);
            }
}
