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
    const int64_t sizes[DIM_MAX_SYMBOLS] = {2, 3}; /* of dims, where there are some */
    RigOptions options = RIG_OPTIONS_INIT;
    options.program.no_weights = true;
    return pair_is_right(program, target_get(TARGET_CPU), &options, sizes, 3, report);
}

Test(windows, products_read_images_where_they_are, .timeout = 120) {
    for (size_t i = 0; i < sizeof in_place / sizeof *in_place; i++) {
        Text report = {.arena = arena_new(NULL)};
        const char *program = str_format(report.arena, "graph g(%s", in_place[i]);
        cr_expect(is_right(program, &report), "%s%s", program, text_str(&report));
        arena_free(report.arena);
    }
}

/* Values of more than 8 axes: windows over three axes of groups, which a pool and a convolution
 * read, and one of 16 axes in every class of ops. Their tensors in memory have 8 axes for the
 * runtime. */
static const char windows_of_six_axes[] =
    "dim B in 1..3\n"
    "graph g(x: f32[B, 2, 2, 5, 4, 6], w: f32[2, 3, 2, 2, 2]) -> (y: f32[B, 2, 2, 2, 2, 2], z: "
    "f32[B, 2, 3, 4, 3, 5]) {\n"
    "  t = windows(x, size=[2, 2, 2], axis=[3, 4, 5])\n"
    "  y = max(windows(x, size=[2, 2, 2], axis=[3, 4, 5], stride=[2, 2, 3]), axis=[-3, -2, -1])\n"
    "  z = einsum(\"bgcxyzuvw,gouvw->bgoxyz\", t, w)\n"
    "}\n";
static const char sixteen_axes[] =
    "dim B in 1..3\n"
    "dim N in 1..4\n"
    "graph many(x: f32[B, 2, 3, 2, N, 2, 2, 2], y: f32[2, 2, 3, 2, 2]) -> (a: f32[B, 3, N], b: "
    "f32[B, 12, N, 8], c: f32[3, 4], d: f32[B, 6], e: f32[B, 2, N], f: i32[B, N], g: f32[3], h: "
    "f32[2], o: f32[B, 2]) {\n"
    "  p = reshape(x, [B, 1, 2, 1, 3, 1, 2, 1, N, 1, 2, 1, 2, 1, 2, 1])\n"
    "  r = expand(p, [B, 2, 2, 1, 3, 1, 2, 2, N, 1, 2, 1, 2, 1, 2, 2])\n"
    "  t = transpose(r, perm=[15, 8, 0, 3, 4, 5, 6, 7, 1, 9, 10, 11, 12, 13, 14, 2])\n"
    "  a = transpose(sum(tanh(t), axis=[0, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]), perm=[1, 2, "
    "0])\n"
    "  b = reshape(max(r, axis=[1, 7, 15]), [B, 12, N, 8])\n"
    "  q = concat([t, pad(t, low=[0] * 16, high=[0] * 8 + [1] + [0] * 7)[..., :2, :, :, :, :, :, "
    ":, ::-1]], axis=12)\n"
    "  c = sum(q, axis=[0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 13, 14, 15])\n"
    "  m = reshape(x, [B, 1, 1, 1, 1, 1, 1, 1, 1, 2, 3, 2*N, 8])\n"
    "  w = reshape(y, [1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 3, 8, 1])\n"
    "  d = reshape(sum(m @ w, axis=[-2, -1]), [B, 6])\n"
    "  s = softmax(t, axis=1)\n"
    "  e = transpose(sum(s * 0.5, axis=[3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]), perm=[2, 0, "
    "1])\n"
    "  f = transpose(max(argsort(t, axis=1), axis=[0, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, "
    "15]), perm=[1, 0])\n"
    "  k = cumsum(t, axis=4)\n"
    "  g = sum(k, axis=[0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15])\n"
    "  h = sum(gather(t[..., 0], argmax(y, axis=2)[0, 0], axis=4), axis=[0, 1, 2, 3, 6, 7, 8, 9, "
    "10, 11, 12, 13, 14, 15] + [5])\n"
    "  u = dynamic_update_slice(t, t[1:], [argmax(y), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, "
    "0])\n"
    "  o = transpose(sum(u, axis=[1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]), perm=[1, 0])\n"
    "}\n";

Test(windows, values_have_up_to_16_axes, .timeout = 120) {
    static const char *const given[] = {windows_of_six_axes, sixteen_axes};
    for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
        Text report = {.arena = arena_new(NULL)};
        cr_expect(is_right(given[i], &report), "%s%s", given[i], text_str(&report));
        arena_free(report.arena);
    }
}
