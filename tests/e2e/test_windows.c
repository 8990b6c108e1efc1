/* The view `windows`, a convolution of the prelude, and the same taps as slices side by side: equal
 * bits, fused and unfused. */
#include "lib/compile.h"
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
