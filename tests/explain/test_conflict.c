/* Which edges are named where a `fuse must` block cannot be kept: those that cannot be had, not
 * what the attempt to keep it stored; and that what is said against them helps. */
#include "lib/compile.h"

#include <criterion/criterion.h>
#include <string.h>

typedef struct Refused {
    const char *what, *source;
    const char *said[4];  /* each in an error or a help */
    const char *unsaid;   /* in none */
    const char *followed; /* the same with what the help says, which compiles; or NULL */
} Refused;

#define NORM_HEAD                                                                    \
    "dim B in 1..4096\n"                                                             \
    "graph g(x: bf16[B, 256], w: bf16[256], u: bf16[256, 256], v: bf16[256, 256])\n" \
    "    -> (y: bf16[B, 256], z: bf16[B, 256]) {\n"
#define SUM_HEAD                                                                 \
    "dim B in 1..4096\ngraph g(x: f32[B, 512], w: f32[512, 512]) -> (y: f32[B, " \
    "512]) {\n"

#define SOFTMAX_HEAD "graph g(x: f32[4096, 1024]) -> (z: f32[1024]) {\n"

static const Refused refused[] = {
    {"a norm and the products of it",
     NORM_HEAD "  fuse must {\n    n = rmsnorm(x, w)\n    y = n @ u\n    z = n @ v\n  }\n}\n",
     {"`n` has to be stored before `y` reads it: a matmul's kernel",
      "`n` has to be stored before `z` reads it: a matmul's kernel",
      "Leave the matmul out of the block, or `mean` of `rmsnorm(x, w)` and the values that it is "
      "computed from."},
     "`rsqrt`",
     NORM_HEAD "  fuse must { n = rmsnorm(x, w) }\n  y = n @ u\n  z = n @ v\n}\n"},
    {"a softmax, its columns and a product of it",
     SUM_HEAD "  fuse must {\n    s = softmax(x)\n"
              "    y = sum(s, axis=0, keep=true) + s @ w\n  }\n}\n",
     {"`s` has to be stored before `sum` of `sum(s, axis=0, keep=true)` reads it: the user runs "
      "over",
      "`s` has to be stored before `matmul` of `s @ w` reads it: a matmul's kernel",
      "`sum` of `sum(s, axis=0, keep=true)` is stored before `y` reads it"},
     "before `s` reads it",
     NULL},
    {"columns of a softmax: no edge inside it is at fault",
     SOFTMAX_HEAD "  fuse must {\n    y = softmax(x)\n    z = sum(y, axis=0)\n  }\n}\n",
     {"`y` has to be stored before `z` reads it: the user runs over",
      "Or leave `z` and the values computed from it out of the block."},
     "of `softmax(x)`",
     SOFTMAX_HEAD "  fuse must { y = softmax(x) }\n  z = sum(y, axis=0)\n}\n"},
    {"the same of a def, with more behind it",
     "def soft(x) = exp(x - max(x, axis=1, keep=true)) / sum(exp(x - max(x, axis=1, keep=true)), "
     "axis=1, keep=true)\n" SOFTMAX_HEAD "  fuse must {\n    y = soft(x)\n"
     "    r = relu(y - 0.25)\n    z = sum(r, axis=0) * 2.0\n  }\n}\n",
     {"`y` has to be stored before `sub` of `y - 0.25` reads it: the user runs over",
      "Or leave `sub` of `y - 0.25` and the values computed from it out of the block."},
     "before `y` reads it",
     NULL},
    {"rows of what columns made, which is an output: no output is at fault",
     "graph g(x: f32[400000, 32]) -> (t: f32[400000, 32], y: f32[400000]) {\n  fuse must {\n"
     "    t = x * max(x, axis=0, keep=true)\n    y = sum(t, axis=1)\n  }\n}\n",
     {"`max` of `max(x, axis=0, keep=true)` has to be stored before `t` reads it: the user runs"},
     "output",
     "graph g(x: f32[400000, 32]) -> (t: f32[400000, 32], y: f32[400000]) {\n"
     "  fuse must { t = x * max(x, axis=0, keep=true) }\n  y = sum(t, axis=1)\n}\n"},
    {"columns of a softmax that is an output",
     "graph g(x: f32[70000, 64]) -> (s: f32[70000, 64], y: f32[64]) {\n  fuse must {\n"
     "    s = softmax(x)\n    y = sum(s, axis=0)\n  }\n}\n",
     {"`s` is stored before `y` reads it: the user runs over",
      "Or leave `y` and the values computed from it out of the block."},
     "output",
     "graph g(x: f32[70000, 64]) -> (s: f32[70000, 64], y: f32[64]) {\n"
     "  fuse must { s = softmax(x) }\n  y = sum(s, axis=0)\n}\n"},
    {"a norm behind a product's epilogue, and what follows",
     "dim B in 1..4096\n"
     "graph g(h: bf16[B, 2048], x: bf16[B, 2048], w: bf16[2048], u: bf16[2048, 2048])\n"
     "    -> (y: bf16[B, 2048]) {\n"
     "  fuse must {\n    a = h + x\n    m = rmsnorm(a, w)\n    y = a + gelu(m @ u)\n  }\n}\n",
     {"`m` has to be stored before `matmul` of `m @ u` reads it: a matmul's kernel"},
     "`rsqrt`",
     "dim B in 1..4096\n"
     "graph g(h: bf16[B, 2048], x: bf16[B, 2048], w: bf16[2048], u: bf16[2048, 2048])\n"
     "    -> (y: bf16[B, 2048]) {\n"
     "  fuse must {\n    a = h + x\n    m = rmsnorm(a, w)\n  }\n  y = a + gelu(m @ u)\n}\n"},
};

Test(conflict, the_edge_that_cannot_be_had_is_named, .timeout = 120) {
    static const TargetId targets[] = {TARGET_SM_90A, TARGET_CPU};
    for (size_t i = 0; i < 2 * sizeof refused / sizeof *refused; i++) {
        const Refused *of = &refused[i / 2];
        const Target *target = target_get(targets[i % 2]);
        Compiled compiled;
        cr_expect_not(compile_source(&compiled, of->source, target, COMPILE_FUSED), "%s", of->what);
        for (uint32_t k = 0; k < 4 && of->said[k]; k++)
            cr_expect(strstr(compiled.messages, of->said[k]), "%s for %s: no `%s` in\n%s", of->what,
                      target->name, of->said[k], compiled.messages);
        cr_expect_not(strstr(compiled.messages, of->unsaid), "%s for %s: `%s` in\n%s", of->what,
                      target->name, of->unsaid, compiled.messages);
        compile_free(&compiled);
        if (!of->followed) continue;
        cr_expect(compile_source(&compiled, of->followed, target, COMPILE_FUSED), "%s for %s:\n%s",
                  of->what, target->name, compiled.messages);
        compile_free(&compiled);
    }
}
