/* Random convolutions of few channels, in groups and both layouts, with strides, and transposed
 * ones, on CPUs: fused and unfused give equal bits. CONVOLUTIONS_N and CONVOLUTIONS_SEED draw
 * others. */
#include "lib/compile.h"
#include "lib/pair.h"
#include "random/rng.h"

#include <criterion/criterion.h>
#include <stdlib.h>

enum { N_DRAWN = 40, FIRST_SEED = 1, MOST_MULTIPLICATIONS = 2000000 };

/* Of an image's row and column: the extents of the image, of the window and of the result. */
typedef struct Axes {
    int64_t image[2], window[2], result[2], stride[2], padding[2];
} Axes;

static int64_t one_of(Rng *rng, const int64_t *values, uint32_t n) {
    return values[rng_below(rng, n)];
}
#define ONE_OF(rng, ...)                          \
    one_of((rng), (const int64_t[]){__VA_ARGS__}, \
           sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

/* Returns false if the windows do not fit. */
static bool draw_axes(Rng *rng, bool is_transposed, Axes *axes) {
    bool is_good = true;
    for (int i = 0; i < 2; i++) {
        axes->image[i] = rng_between(rng, 2, rng_chance(rng, 50) ? 12 : 40);
        axes->window[i] = ONE_OF(rng, 1, 2, 3, 4, 5, 7);
        axes->stride[i] = i && rng_chance(rng, 70) ? axes->stride[0] : ONE_OF(rng, 1, 1, 2, 2, 3);
        axes->padding[i] = ONE_OF(rng, 0, 0, 1, 2, 3);
        int64_t padded = axes->image[i] + 2 * axes->padding[i];
        axes->result[i] = is_transposed ? (axes->image[i] - 1) * axes->stride[i] -
                                              2 * axes->padding[i] + axes->window[i]
                                        : (padded - axes->window[i]) / axes->stride[i] + 1;
        is_good = is_good && axes->result[i] > 0 && padded >= axes->window[i];
    }
    return is_good;
}

/* Image-like shapes have their channels in front of both extents, or behind them. */
static const char *shape(Arena *arena, bool is_last, int64_t n, int64_t channels,
                         const int64_t *extents) {
    long long h = extents[0], w = extents[1], count = n, c = channels;
    return is_last ? str_format(arena, "[%lld, %lld, %lld, %lld]", count, h, w, c)
                   : str_format(arena, "[%lld, %lld, %lld, %lld]", count, c, h, w);
}

/* Those of filters: `outer` stands in front, or at the end if channels are last. */
static const char *filter_shape(Arena *arena, bool is_last, int64_t outer, int64_t inner,
                                const int64_t *extents) {
    long long h = extents[0], w = extents[1], o = outer, i = inner;
    return is_last ? str_format(arena, "[%lld, %lld, %lld, %lld]", h, w, i, o)
                   : str_format(arena, "[%lld, %lld, %lld, %lld]", o, i, h, w);
}

/* A program; NULL: the draw fits nothing, or is too large. */
static const char *draw(Rng *rng, Arena *arena) {
    static const char *const dtypes[] = {"f32", "f32", "f64", "f16", "bf16"};
    Axes a;
    const char *dtype = dtypes[rng_below(rng, sizeof dtypes / sizeof *dtypes)];
    bool is_transposed = rng_chance(rng, 50), is_last = rng_chance(rng, 40);
    int64_t n = rng_between(rng, 1, 3), groups = ONE_OF(rng, 1, 1, 2, 4, 8);
    int64_t in = ONE_OF(rng, 1, 2, 3, 4, 8, 16), out = ONE_OF(rng, 1, 2, 3, 4, 5, 7, 8, 16);
    bool fits = draw_axes(rng, is_transposed, &a);
    const int64_t *places = is_transposed ? a.image : a.result;
    int64_t n_taps = a.window[0] * a.window[1];
    if (!fits || n * groups * in * out * places[0] * places[1] * n_taps > MOST_MULTIPLICATIONS)
        return NULL;
    return str_format(arena,
                      "graph g(x: %s%s, w: %s%s) -> (y: %s%s) {\n"
                      "  y = conv%s2d%s(x, w, stride=[%d, %d], padding=[%d, %d], groups=%d)\n}\n",
                      dtype, shape(arena, is_last, n, groups * in, a.image), dtype,
                      is_transposed ? filter_shape(arena, is_last, groups * in, out, a.window)
                                    : filter_shape(arena, is_last, groups * out, in, a.window),
                      dtype, shape(arena, is_last, n, groups * out, a.result),
                      is_transposed ? "_transpose" : "", is_last ? "_nhwc" : "", (int)a.stride[0],
                      (int)a.stride[1], (int)a.padding[0], (int)a.padding[1], (int)groups);
}

static void expect_equal(const char *source, const Target *target) {
    Arena *arena = arena_new(NULL);
    Text report = {.arena = arena};
    Pair pair;
    PairCounts counts = {0};
    RigOptions options = RIG_OPTIONS_INIT;
    const int64_t no_symbols[1] = {0};
    cr_assert(pair_compile(&pair, source, target, &report), "%s%s", source, text_str(&report));
    cr_expect(pair_open(&pair, 0, &options, &report) && pair_place(&pair, no_symbols, &report) &&
                  pair_run(&pair, &(PairData){.seed = 1}, &counts, &report),
              "%s for %s:\n%s", source, target->name, text_str(&report));
    pair_free(&pair);
    arena_free(arena);
}

static uint64_t from_environment(const char *name, uint64_t otherwise) {
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

static void check(TargetId id) {
    const Target *target = target_get(id);
    uint64_t n = from_environment("CONVOLUTIONS_N", N_DRAWN);
    Rng rng = rng_new(from_environment("CONVOLUTIONS_SEED", FIRST_SEED));
    if (!compile_target_runs(target)) cr_skip("no processor for %s", target->name);
    for (uint64_t i = 0; i < n;) {
        Arena *arena = arena_new(NULL);
        const char *source = draw(&rng, arena);
        if (source) expect_equal(source, target);
        i += source != NULL;
        arena_free(arena);
    }
}

Test(convolutions, drawn_ones_are_equal_on_cpu, .timeout = 36000) {
    check(TARGET_CPU);
}

Test(convolutions, drawn_ones_are_equal_on_cpu_v4, .timeout = 36000) {
    check(TARGET_CPU_V4);
}
