/* Products of windows that a CPU packs in strips: which convolutions have them, and that their bits
 * are those of one kernel per op, at any edge of rows, blocks of k and padding. */
#include "codegen/codegen.h"
#include "lib/compile.h"
#include "lib/pair.h"
#include "lib/plans.h"

#include <criterion/criterion.h>

typedef struct Convolution {
    const char *x, *w, *y, *call; /* call: after `conv`, without the operands */
    bool has_strips;
} Convolution;

/* Strides that are above, below and equal to the dilation; rows shorter than a
 * vector, of one block and of several; few and many columns; operands that are computed; blocks of
 * k of some rows of the windows, or of all. */
static const Convolution convolutions[] = {
    {"2, 13, 11, 29", "5, 13, 5, 5", "2, 5, 6, 15", "2d(x, w, stride=2, padding=2)", true},
    {"2, 5, 40, 40", "4, 5, 2, 2", "2, 4, 14, 14", "2d(x, w, stride=3, padding=1, dilation=2)",
     true},
    {"1, 9, 8, 70", "2, 9, 3, 4", "1, 2, 8, 23",
     "2d(tanh(x), w, stride=[1, 3], padding=[1, 2], dilation=[1, 2])", true},
    {"1, 3, 5, 700", "2, 3, 3, 7", "1, 2, 5, 700", "2d(x, w, padding=[1, 3])", true},
    {"2, 6, 5, 6, 21", "18, 6, 3, 2, 3", "2, 18, 3, 7, 23",
     "3d(x, w, stride=[2, 1, 1], padding=[1, 1, 2])", true},
    {"2, 7, 60", "37, 7, 4", "2, 37, 30", "1d(x, w, stride=2, padding=1)", true},
    {"1, 31, 12, 26", "15, 31, 1, 1", "1, 15, 4, 9", "2d(x, w, stride=3)", true},
    {"1, 300, 9, 33", "6, 300, 3, 3", "1, 6, 5, 17", "2d(x, w, stride=2, padding=1)", true},
    {"2, 4, 9, 20", "3, 4, 3, 3", "2, 3, 7, 18", "2d(x, w)", false}, /* read where it is */
    {"1, 15, 35, 30", "2, 15, 3, 3", "1, 2, 17, 14", "2d(x, w, stride=2)", true},
    {"1, 6, 31, 32", "5, 6, 2, 2", "1, 5, 15, 16", "2d(x, w, stride=2)", true}, /* few columns */
    {"1, 3, 31, 32", "40, 3, 2, 2", "1, 40, 15, 16", "2d(x, w, stride=2)", false},
    {"1, 8, 9, 5", "4, 8, 3, 3", "1, 4, 9, 5", "2d(x, w, padding=1)", false}, /* short rows */
    /* channels last: turned, or with few channels as the rows are */
    {"2, 9, 29, 8", "3, 3, 8, 5", "2, 9, 29, 5", "2d_nhwc(x, w, padding=1)", true},
    /* an image whose vector would end behind its strip */
    {"2, 2, 5, 6", "40, 2, 1, 2", "2, 40, 5, 11",
     "2d(pad(x, low=[0, 0, 0, 17], high=[0, 0, 0, 0]), w, stride=[1, 2])", true},
    {"1, 12, 40, 21", "4, 5, 21, 2", "1, 6, 20, 2", "2d_nhwc(tanh(x), w, stride=2, padding=[1, 2])",
     true},
    {"2, 11, 33, 35", "2, 3, 35, 1", "2, 10, 29, 1", "2d_nhwc(x, w, dilation=[1, 2])", true},
    {"1, 9, 37, 2", "3, 11, 2, 3", "1, 9, 37, 3", "2d_nhwc(x, w, padding=[1, 5])", true},
    {"1, 7, 9, 40", "3, 3, 40, 1", "1, 7, 9, 1", "2d_nhwc(x, w, padding=1)", true},
    {"2, 9, 29, 8", "3, 3, 8, 18", "2, 9, 29, 18", "2d_nhwc(x, w, padding=1)", false},
    {"2, 13, 13, 40", "3, 3, 40, 5", "2, 5, 5, 5", "2d_nhwc(x, w, stride=3, padding=1)", false},
    {"2, 19, 19, 40", "1, 1, 40, 4", "2, 10, 10, 4", "2d_nhwc(x, w, stride=2)", false},
    {"2, 9, 18, 19", "37, 9, 1, 1", "2, 37, 18, 19", "2d(x, w)", false}};
enum { N_CONVOLUTIONS = sizeof convolutions / sizeof *convolutions };

static const TargetId targets[] = {TARGET_CPU, TARGET_CPU_V4};

static size_t n_targets(void) {
    return codegen_cpu_runs(target_get(TARGET_CPU_V4)) ? 2 : 1;
}

static const char *source_of(Arena *arena, const Convolution *c, const char *t) {
    return str_format(arena,
                      "graph g(x: %s[%s]) -> (y: %s[%s]) {\n  param w: %s[%s]\n  fuse must {\n"
                      "    c = conv%s\n  }\n  y = relu(c) + 1.0\n}\n",
                      t, c->x, t, c->y, t, c->w, c->call);
}

/* Whether fused bits are those of one kernel per op, with these dtypes by turns. */
static void expect_bits(const Convolution *all, size_t n, const char *const *dtypes,
                        size_t n_dtypes) {
    for (size_t i = 0; i < n; i++)
        for (size_t t = 0; t < n_targets(); t++) {
            RigOptions options = RIG_OPTIONS_INIT;
            options.program.n_threads = i % 2 ? 1 : 3;
            options.program.no_weights = true;
            Text report = {.arena = arena_new(NULL)};
            const char *source = source_of(report.arena, &all[i], dtypes[(i + t) % n_dtypes]);
            bool ok = pair_is_right(source, target_get(targets[t]), &options, NULL, 11, &report);
            cr_expect(ok, "%s%s", source, text_str(&report));
            arena_free(report.arena);
        }
}

Test(cpu_strips, bits_are_those_of_one_kernel_per_op, .timeout = 240) {
    static const char *const dtypes[] = {"f32", "f32", "f64", "bf16"};
    expect_bits(convolutions, N_CONVOLUTIONS, dtypes, 4);
}

Test(cpu_strips, rows_of_images_have_strips) {
    Arena *arena = arena_new(NULL);
    for (size_t i = 0; i < N_CONVOLUTIONS; i++) {
        const char *source = source_of(arena, &convolutions[i], "f32");
        PricedPlan priced = plans_price(arena, plans_parse(arena, source), 0, false, TARGET_CPU,
                                        card_of_target(target_get(TARGET_CPU)), NULL);
        bool has_strips = false;
        for (uint32_t k = 0; k < priced.plan->kernels.n; k++)
            has_strips =
                has_strips ||
                sched_cpu_gemm_params(&priced.plan->kernels.data[k].variants[0].sched).has_strips;
        cr_expect_eq(has_strips, convolutions[i].has_strips, "%s", source);
    }
    arena_free(arena);
}

/* Units that go down the rows of an image: strides and dilations in any order of the rows, parts of
 * an image and several images, one column and several, taps of a row that do not fill its tiles,
 * paddings, wide images, operands that are computed, channels last. */
static const Convolution sweeps[] = {
    {"2, 37, 15, 15", "2, 37, 5, 5", "2, 2, 8, 8", "2d(x, w, stride=2, padding=2)", true},
    {"1, 12, 61, 20", "3, 12, 4, 3", "1, 3, 61, 20", "2d(x, w, dilation=[2, 1], padding=[3, 1])",
     true},
    {"3, 9, 40, 31", "1, 9, 7, 4", "3, 1, 12, 14", "2d(x, w, stride=[3, 2])", true},
    {"1, 7, 30, 29", "2, 7, 7, 5", "1, 2, 9, 29",
     "2d(tanh(x), w, stride=[3, 1], dilation=[2, 1], padding=[4, 2])", true},
    {"1, 16, 9, 70", "5, 16, 3, 3", "1, 5, 9, 70", "2d(x, w, padding=1)", true},
    {"2, 5, 33, 24", "4, 5, 11, 9", "2, 4, 17, 16", "2d(x, w, stride=[2, 1], padding=[5, 0])",
     true},
    {"2, 21, 26, 13", "4, 3, 13, 7", "2, 12, 24, 7", "2d_nhwc(x, w, stride=[2, 1], padding=[3, 0])",
     true},
    {"1, 33, 19, 35", "3, 5, 35, 2", "1, 33, 15, 2", "2d_nhwc(x, w, padding=[1, 0])", true}};
enum { N_SWEEPS = sizeof sweeps / sizeof *sweeps };

static bool sweeps_over(Arena *arena, const char *source) {
    PricedPlan priced = plans_price(arena, plans_parse(arena, source), 0, false, TARGET_CPU_V4,
                                    card_of_target(target_get(TARGET_CPU_V4)), NULL);
    bool any = false;
    for (uint32_t k = 0; k < priced.plan->kernels.n; k++)
        any = any || sched_cpu_gemm_params(&priced.plan->kernels.data[k].variants[0].sched).sweeps;
    return any;
}

Test(cpu_strips, units_sweep_over_rows_of_images) {
    Arena *arena = arena_new(NULL);
    for (size_t i = 0; i < N_SWEEPS; i++) {
        const char *source = source_of(arena, &sweeps[i], "f32");
        cr_expect(sweeps_over(arena, source), "%s", source);
    }
    arena_free(arena);
}

Test(cpu_strips, bits_of_sweeps_are_those_of_one_kernel_per_op, .timeout = 240) {
    static const char *const dtypes[] = {"f32", "f32", "f64"};
    expect_bits(sweeps, N_SWEEPS, dtypes, 3);
}

/* Windows of channels last are packed in runs of k, or read where they are, however few columns
 * there are; and the outputs of few channels first are stored in vectors. */
Test(cpu_strips, vectors_lie_along_what_is_contiguous) {
    static const struct {
        Convolution convolution;
        bool is_transposed;
    } cases[] = {
        {{"2, 13, 13, 40", "3, 3, 40, 5", "2, 5, 5, 5", "2d_nhwc(x, w, stride=3, padding=1)",
          false},
         false},
        {{"2, 19, 19, 40", "1, 1, 40, 4", "2, 10, 10, 4", "2d_nhwc(x, w, stride=2)", false}, false},
        {{"1, 9, 18, 18", "38, 9, 1, 1", "1, 38, 18, 18", "2d(x, w)", false}, true},
        {{"1, 90, 18, 18", "38, 90, 1, 1", "1, 38, 18, 18", "2d(x, w)", false}, false},
        {{"1, 90, 9, 33", "4, 90, 3, 3", "1, 4, 5, 17", "2d(x, w, stride=2, padding=1)", true},
         true}};
    Arena *arena = arena_new(NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *source = source_of(arena, &cases[i].convolution, "f32");
        PricedPlan priced = plans_price(arena, plans_parse(arena, source), 0, false, TARGET_CPU,
                                        card_of_target(target_get(TARGET_CPU)), NULL);
        const Kernel *product = NULL;
        for (uint32_t k = 0; k < priced.plan->kernels.n; k++)
            if (priced.plan->kernels.data[k].form == FORM_GEMM)
                product = &priced.plan->kernels.data[k];
        cr_assert_not_null(product, "%s", source);
        const Sched *sched = &product->variants[product->n_variants - 1].sched;
        cr_expect_eq(sched->cpu_gemm.is_transposed, cases[i].is_transposed, "%s", source);
    }
    arena_free(arena);
}

/* Windows of several rows of an image, one of which may not exist, are multiplied at a time where
 * there are few columns and few windows in a row. */
Test(cpu_strips, short_rows_share_a_unit) {
    static const struct {
        Convolution convolution;
        uint32_t more_batches;
    } cases[] = {{{"1, 9, 35, 30", "2, 9, 3, 3", "1, 2, 17, 14", "2d(x, w, stride=2)", true}, 1},
                 {{"1, 9, 35, 30", "8, 9, 3, 3", "1, 8, 17, 14", "2d(x, w, stride=2)", true}, 0},
                 {{"1, 9, 19, 30", "2, 9, 3, 3", "1, 2, 9, 14", "2d(x, w, stride=2)", true}, 0}};
    Arena *arena = arena_new(NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *source = source_of(arena, &cases[i].convolution, "f32");
        PricedPlan priced = plans_price(arena, plans_parse(arena, source), 0, false, TARGET_CPU_V4,
                                        card_of_target(target_get(TARGET_CPU_V4)), NULL);
        uint32_t more_batches = 0;
        for (uint32_t k = 0; k < priced.plan->kernels.n; k++)
            more_batches +=
                sched_cpu_gemm_params(&priced.plan->kernels.data[k].variants[0].sched).more_batches;
        cr_expect_eq(more_batches, cases[i].more_batches, "%u: %s", more_batches, source);
    }
    arena_free(arena);
}
