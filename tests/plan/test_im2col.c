/* Windows over images: which concats of slices and which views are fetched from the image, what the
 * map says of them, and what that is thought to take. That results are right is for the tests that
 * run (soak
 * --shapes, im2col). */
#include "lib/compiled.h"
#include "lib/plans.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define TAPS_3X3(h, w, h1, w1, h2, w2)                                              \
    "p[:, 0:" h ", 0:" w "], p[:, 0:" h ", 1:" w1 "], p[:, 0:" h ", 2:" w2 "], "    \
    "p[:, 1:" h1 ", 0:" w "], p[:, 1:" h1 ", 1:" w1 "], p[:, 1:" h1 ", 2:" w2 "], " \
    "p[:, 2:" h2 ", 0:" w "], p[:, 2:" h2 ", 1:" w1 "], p[:, 2:" h2 ", 2:" w2 "]"

/* 3 x 3 taps of 20 x 30 pixels, with a border. */
#define SAME(dtype, channels, k, value, product)                                               \
    "dim B in 1..64\n"                                                                         \
    "graph g(x: " dtype "[B, 20, 30, " channels "], w: " dtype "[" k ", 64]) -> (y: " dtype    \
    "[B, 20, 30, 64]) {\n  fuse must {\n"                                                      \
    "    p = pad(x, low=[0, 1, 1, 0], high=[0, 1, 1, 0], value=" value ")\n"                   \
    "    c = concat([" TAPS_3X3("20", "30", "21", "31", "22", "32") "], axis=3)\n    " product \
                                                                    "\n  }\n}\n"

static const struct {
    const char *what, *source;
    const char *map; /* of the image; NULL: it is not fetched so */
} cases[] = {
    {"a border of zeros", SAME("bf16", "64", "576", "0", "y = relu(c @ w)"),
     "64:1:64 30:64:-1:-1:1 20:1920:-1:-1:1 B:38400:128"},
    {"more channels than a step", SAME("f16", "192", "1728", "0", "y = c @ w"),
     "192:1:64 30:192:-1:-1:1 20:5760:-1:-1:1 B:115200:128"},
    {"a border of ones", SAME("bf16", "64", "576", "1", "y = c @ w"), NULL},
    {"taps that are no whole steps", SAME("bf16", "72", "648", "0", "y = c @ w"), NULL},
    {"f32 that means f32", SAME("f32", "64", "576", "0", "y = c @ w"), NULL},
    {"no border",
     "dim B in 1..64\n"
     "graph g(x: bf16[B, 22, 32, 64], w: bf16[576, 64]) -> (y: bf16[B, 20, 30, 64]) {\n"
     "  p = x\n  fuse must {\n    c = concat([" TAPS_3X3(
         "20", "30", "21", "31", "22", "32") "], axis=3)\n    y = c @ w\n  }\n}\n",
     "64:1:64 32:64:0:-2:1 22:2048:0:-2:1 B:45056:128"},
    {"every other pixel, of a border on one side",
     "dim B in 1..64\n"
     "graph g(x: bf16[B, 20, 30, 64], w: bf16[256, 64]) -> (y: bf16[B, 10, 15, 64]) {\n"
     "  fuse must {\n    p = pad(x, low=[0, 1, 1, 0], high=[0, 0, 0, 0], value=0)\n"
     "    c = concat([p[:, 0:20:2, 0:30:2], p[:, 0:20:2, 1:31:2], p[:, 1:21:2, 0:30:2],"
     " p[:, 1:21:2, 1:31:2]], axis=3)\n    y = c @ w\n  }\n}\n",
     "64:1:64 30:64:-1:-2:2 20:1920:-1:-2:2 B:38400:128"},
    {"taps apart, along a line",
     "dim B in 1..64\ngraph g(x: f16[B, 100, 64], w: f16[192, 40]) -> (y: f16[B, 100, 40]) {\n"
     "  fuse must {\n    p = pad(x, low=[0, 8, 0], high=[0, 0, 0], value=0)\n"
     "    c = concat([p[:, 0:100], p[:, 4:104], p[:, 8:108]], axis=2)\n    y = c @ w\n  }\n}\n",
     "64:1:64 100:64:-8:-8:1 B:6400:128"},
    {"the view, with a border",
     "dim B in 1..64\n"
     "graph g(x: bf16[B, 20, 30, 64], w: bf16[576, 64]) -> (y: bf16[B, 20, 30, 64]) {\n"
     "  fuse must {\n    t = windows(x, size=[3, 3], axis=[1, 2], padding=\"same\")\n"
     "    y = relu(reshape(t, [B, 20, 30, 576]) @ w)\n  }\n}\n",
     "64:1:64 30:64:-1:-1:1 20:1920:-1:-1:1 B:38400:128"},
    {"the view, with strides, dilation and no border",
     "dim B in 1..64\n"
     "graph g(x: f16[B, 25, 31, 128], w: f16[1152, 64]) -> (y: f16[B, 11, 14, 64]) {\n"
     "  fuse must {\n    t = windows(x, size=[3, 3], axis=[1, 2], stride=2, dilation=2)\n"
     "    y = reshape(t, [B, 11, 14, 1152]) @ w\n  }\n}\n",
     "128:1:64 31:128:0:-4:2 25:3968:0:-4:2 B:99200:128"},
    {"the view of channels that are no whole steps",
     "dim B in 1..64\n"
     "graph g(x: bf16[B, 20, 30, 72], w: bf16[648, 64]) -> (y: bf16[B, 20, 30, 64]) {\n"
     "  fuse must {\n    t = windows(x, size=[3, 3], axis=[1, 2], padding=1)\n"
     "    y = reshape(t, [B, 20, 30, 648]) @ w\n  }\n}\n",
     NULL},
    {"images without pixels",
     "graph g(x: bf16[40, 0, 64], w: bf16[64, 64]) -> (y: bf16[40, 1, 2, 64]) {\n"
     "  y = windows(x, size=[2], axis=1, stride=2, low=1, high=1) @ w\n}\n",
     NULL},
    {"images without channels",
     "graph g(x: bf16[8, 20, 30, 0], w: bf16[0, 64]) -> (y: bf16[8, 22, 30, 64]) {\n"
     "  y = pad(x, low=[0, 1, 0, 0], high=[0, 1, 0, 0]) @ w\n}\n",
     NULL},
    {"one tap, of every other pixel of an odd number",
     "dim B in 1..64\n"
     "graph g(x: bf16[B, 13, 13, 64], w: bf16[1, 1, 64, 72]) -> (y: bf16[B, 7, 7, 72]) {\n"
     "  fuse must { y = relu(conv2d_nhwc(x, w, stride=2)) }\n}\n",
     "64:1:64 13:64:0:0:2 13:832:0:0:2 B:10816:128"},
    {"one tap, of every other pixel of an even number: image lines are images",
     "dim B in 1..64\n"
     "graph g(x: bf16[B, 14, 14, 64], w: bf16[1, 1, 64, 72]) -> (y: bf16[B, 7, 7, 72]) {\n"
     "  fuse must { y = relu(conv2d_nhwc(x, w, stride=2)) }\n}\n",
     "64:1:64 14:64:0:-1:2 7,B,*:1792:128"},
    {"one tap, of lines that fill tiles by themselves",
     "dim B in 1..64\n"
     "graph g(x: bf16[B, 127, 127, 64], w: bf16[1, 1, 64, 72]) -> (y: bf16[B, 64, 64, 72]) {\n"
     "  fuse must { y = relu(conv2d_nhwc(x, w, stride=2)) }\n}\n",
     NULL},
    {"lines that repeat, and are no images",
     "dim B in 1..64\n"
     "graph g(x: bf16[B, 1, 14, 64], w: bf16[64, 72]) -> (y: bf16[B, 8, 7, 72]) {\n"
     "  fuse must { y = expand(x[:, :, ::2], [B, 8, 7, 64]) @ w }\n}\n",
     NULL},
    {"slices of two tensors",
     "dim B in 1..64\ngraph g(x: f16[B, 100, 64], z: f16[B, 100, 64], w: f16[128, 40])"
     " -> (y: f16[B, 98, 40]) {\n  fuse must {\n    c = concat([x[:, 0:98], z[:, 2:100]], axis=2)\n"
     "    y = c @ w\n  }\n}\n",
     NULL},
};

/* The line of the first map of `artifact`, or an empty one. */
static void first_map(const char *artifact, char line[200]) {
    const char *at = strstr(artifact, "\n//@ map ");
    line[0] = 0;
    if (at) snprintf(line, 200, "%.*s", (int)strcspn(at + 1, "\n"), at + 1);
}

Test(im2col, windows_are_fetched_from_the_image, .timeout = 120) {
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Compiled c = compiled_new(cases[i].source, TARGET_SM_90A);
        char line[200];
        first_map(c.bytes, line);
        bool has = strstr(c.bytes, ".im2col.");
        cr_expect_eq(has, cases[i].map != NULL, "%s", cases[i].what);
        cr_expect(!cases[i].map || strstr(line, cases[i].map), "%s: %s", cases[i].what, line);
        cr_expect_eq(c.plan->kernels.n, 1, "%s: %u kernels", cases[i].what, c.plan->kernels.n);
        cr_expect(compiled_is_in_registers(&c), "%s", cases[i].what);
        compile_free(&c);
        c = compiled_new(cases[i].source, TARGET_SM_80);
        cr_expect_null(strstr(c.bytes, "im2col"), "%s", cases[i].what);
        compile_free(&c);
    }
}

/* Ops after the matmul may split its rows into images again. */
Test(im2col, what_follows_may_go_over_other_axes) {
    Compiled c =
        compiled_new("dim B in 1..64\n"
                     "graph g(x: bf16[B, 20, 30, 64], w: bf16[128, 64], r: bf16[B, 1, 30, 1])"
                     " -> (y: bf16[B, 64, 20, 30]) {\n"
                     "  p = pad(x, low=[0, 1, 0, 0], high=[0, 0, 0, 0], value=0)\n  fuse must {\n"
                     "    c = concat([p[:, 0:20], p[:, 1:21]], axis=3)\n"
                     "    y = transpose(c @ w + r, [0, 3, 1, 2])\n  }\n}\n",
                     TARGET_SM_90A);
    cr_expect(strstr(c.bytes, ".im2col."), "%.900s", c.bytes);
    cr_expect_eq(c.plan->kernels.n, 1);
    compile_free(&c);
}

/* Microseconds on an H200, of 64 images and 3 x 3 taps. */
Test(im2col, prices_are_what_was_measured) {
    static const struct {
        const char *size, *channels, *k;
        double us;
    } images[] = {{"56", "64", "576", 38.4}, {"28", "256", "2304", 87.3}};
    for (size_t i = 0; i < sizeof images / sizeof *images; i++) {
        Arena *arena = arena_new(NULL);
        const char *s = images[i].size, *c = images[i].channels;
        Text taps = {.arena = arena};
        for (int tap = 0; tap < 9; tap++)
            text_printf(&taps, "%sp[:, %d:%d + %s, %d:%d + %s]", tap ? ", " : "", tap / 3, tap / 3,
                        s, tap % 3, tap % 3, s);
        const char *source =
            str_format(arena,
                       "graph g(x: bf16[64, %s, %s, %s], w: bf16[%s, %s], b: bf16[%s])"
                       " -> (y: bf16[64, %s, %s, %s]) {\n"
                       "  p = pad(x, low=[0, 1, 1, 0], high=[0, 1, 1, 0], value=0)\n"
                       "  y = relu(concat([%s], axis=3) @ w + b)\n}\n",
                       s, s, c, images[i].k, c, c, s, s, c, text_str(&taps));
        PricedPlan priced = plans_price(arena, plans_parse(arena, source), 0, false, TARGET_SM_90A,
                                        card_get(CARD_H200), NULL);
        cr_assert_eq(priced.plan->kernels.n, 1, "%s", source);
        double us = priced.cost->us;
        cr_expect(fabs(us - images[i].us) < 0.15 * images[i].us, "%s: %.1f us", source, us);
        arena_free(arena);
    }
}

/* 7 x 7 of them are a tree of concats. */
Test(im2col, many_taps_are_fetched_too) {
    Arena *arena = arena_new(NULL);
    Text taps = {.arena = arena};
    for (int t = 0; t < 49; t++)
        text_printf(&taps, "%sp[:, %d:%d + 28, %d:%d + 28]", t ? ", " : "", t / 7, t / 7, t % 7,
                    t % 7);
    Compiled c = compiled_new(
        str_format(
            arena,
            "graph g(x: bf16[64, 28, 28, 64], w: bf16[3136, 64]) -> (y: bf16[64, 28, 28, 64])"
            " {\n  p = pad(x, low=[0, 3, 3, 0], high=[0, 3, 3, 0])\n"
            "  y = relu(concat([%s], axis=3) @ w)\n}\n",
            text_str(&taps)),
        TARGET_SM_90A);
    cr_expect_eq(c.plan->kernels.n, 1, "%u kernels", c.plan->kernels.n);
    cr_expect(strstr(c.bytes, ".im2col."));
    cr_expect(compiled_is_in_registers(&c));
    compile_free(&c);
    arena_free(arena);
}
