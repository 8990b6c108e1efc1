/* The view `windows`, a convolution of the prelude, and the same taps as slices side by side: equal
 * bits, fused and unfused. */
#include "lib/compile.h"
#include "lib/pair.h"
#include "lib/rig.h"
#include "random/rng.h"

#include <criterion/criterion.h>
#include <string.h>

static const char source[] =
    "dim B in 1..64\n"
    "graph g(x: f32[B, 9, 11, 16], w: f32[144, 8]) -> (taps: f32[B, 9, 11, 8],"
    " view: f32[B, 9, 11, 8], conv: f32[B, 9, 11, 8]) {\n"
    "  p = pad(x, low=[0, 1, 1, 0], high=[0, 1, 1, 0])\n"
    "  taps = concat([p[:, :-2, :-2], p[:, :-2, 1:-1], p[:, :-2, 2:],\n"
    "                 p[:, 1:-1, :-2], p[:, 1:-1, 1:-1], p[:, 1:-1, 2:],\n"
    "                 p[:, 2:, :-2], p[:, 2:, 1:-1], p[:, 2:, 2:]], axis=3) @ w\n"
    "  t = windows(x, size=[3, 3], axis=[1, 2], padding=\"same\")\n"
    "  view = reshape(t, [B, 9, 11, 144]) @ w\n"
    "  conv = conv2d_nhwc(x, reshape(w, [3, 3, 16, 8]), padding=1)\n"
    "}\n";

static void fill(Rig *rig, const char *name, uint64_t seed) {
    size_t n_bytes;
    uint8_t *bytes = rig_contents(rig, name, &n_bytes);
    Rng rng = rng_new(seed);
    for (size_t i = 0; i + 4 <= n_bytes; i += 4)
        dtype_store(DT_F32, (double)rng_between(&rng, -9999, 9999) / 7000, bytes + i);
}

static void expect_equal(CompileMode mode) {
    static const char *const others[] = {"view", "conv"};
    const int64_t dims[] = {3};
    Compiled compiled;
    Rig rig;
    RigOptions options = RIG_OPTIONS_INIT;
    size_t n, n_other;
    cr_assert(compile_source(&compiled, source, target_get(TARGET_CPU), mode), "%s",
              compiled.messages);
    cr_assert(rig_open(&rig, compiled.bytes, compiled.n_bytes, "g", &options) &&
                  rig_place(&rig, compiled.module->graphs.data[0]->dims, dims),
              "%s", rig.error);
    fill(&rig, "x", 1);
    fill(&rig, "w", 2);
    cr_assert(rig_run(&rig, 0xF5), "%s", rig.error);
    const uint8_t *taps = rig_result(&rig, "taps", &n);
    for (int i = 0; i < 2; i++) {
        const uint8_t *other = rig_result(&rig, others[i], &n_other);
        cr_expect(n == n_other && memcmp(taps, other, n) == 0, "%s differs", others[i]);
    }
    rig_close(&rig);
    compile_free(&compiled);
}

Test(windows, the_view_and_the_taps_spelled_out_give_equal_bits, .timeout = 60) {
    expect_equal(COMPILE_FUSED);
    expect_equal(COMPILE_UNFUSED);
}

/* Convolutions whose images a CPU's product reads where they are, by rows or by columns: few and
 * many channels, steps of k beyond the table of offsets, images shorter than a tile. */
static const char *const in_place[] = {
    "x: f32[2, 9, 11, 3]) -> (y: f32[2, 3, 4, 5]) {\n  param w: f32[3, 3, 3, 5]\n"
    "  y = relu(conv2d_nhwc(x, w, stride=2, dilation=1)[:, :3, :4])\n}\n",
    "x: f32[3, 19, 19, 2]) -> (y: f32[3, 17, 17, 40]) {\n  param w: f32[3, 3, 2, 40]\n"
    "  y = conv2d_nhwc(x, w) + 1.0\n}\n",
    "x: f32[1, 21, 37, 4], w: f32[2, 2, 4, 1]) -> (y: f32[1, 20, 36, 1]) {\n"
    "  y = conv2d_nhwc(x, w)\n}\n",
    "x: f32[2, 4, 23, 61], w: f32[3, 4, 2, 3]) -> (y: f32[2, 3, 22, 59]) {\n"
    "  y = relu(conv2d(x, w))\n}\n",
    "x: f32[1, 800, 5, 31], w: f32[2, 800, 3, 3]) -> (y: f32[1, 2, 3, 29]) {\n"
    "  y = conv2d(x, w)\n}\n",
    "x: f32[1, 5, 9, 800]) -> (y: f32[1, 3, 7, 9]) {\n  param w: f32[3, 3, 800, 9]\n"
    "  y = conv2d_nhwc(x, w)\n}\n",
    "x: f32[2, 30, 9, 9]) -> (y: f32[2, 70, 4, 4]) {\n  param w: f32[70, 30, 3, 3]\n"
    "  y = relu(conv2d(x, w, stride=2))\n}\n",
    "x: f64[2, 12, 12, 5]) -> (y: f64[2, 10, 10, 6]) {\n  param w: f64[3, 3, 5, 6]\n"
    "  y = conv2d_nhwc(x, w)\n}\n"};

static bool is_right(const char *program, Text *report) {
    Pair pair = {0};
    PairCounts counts = {0};
    RigOptions options = RIG_OPTIONS_INIT;
    options.program.no_weights = true;
    PairData data = {.fill = FILL_UNIFORM, .seed = 3};
    bool ok = pair_compile(&pair, program, target_get(TARGET_CPU), report) &&
              pair_open(&pair, 0, &options, report) &&
              pair_place(&pair, pair.symbol_values, report) &&
              pair_run(&pair, &data, &counts, report);
    pair_free(&pair);
    return ok;
}

Test(windows, products_read_images_where_they_are, .timeout = 120) {
    for (size_t i = 0; i < sizeof in_place / sizeof *in_place; i++) {
        Text report = {.arena = arena_new(NULL)};
        const char *program = str_format(report.arena, "graph g(%s", in_place[i]);
        cr_expect(is_right(program, &report), "%s%s", program, text_str(&report));
        arena_free(report.arena);
    }
}
