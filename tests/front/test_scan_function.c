/* Scans of any associative function: on a CPU to the bit in the order that the prelude states, said
 * plainly here; and what combines lists and matrices. */
#include "lib/compiled.h"
#include "lib/rig.h"
#include "random/rng.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* The map h -> a * h + b. */
typedef struct Affine {
    float a, b;
} Affine;

static Affine after(Affine first, Affine then) {
    float scaled = first.b * then.a;
    return (Affine){first.a * then.a, scaled + then.b};
}

/* Of a row of n maps: in a level each is joined with up to 15 before it, `s` apart. */
static void scan_row(Affine *row, int64_t n) {
    Affine *before = calloc((size_t)n + 1, sizeof *before);
    for (int64_t s = 1; s < n; s *= 16) {
        memcpy(before, row, (size_t)n * sizeof *row);
        for (int64_t i = 0; i < n; i++) {
            int64_t first = i / s < 15 ? i / s : 15;
            Affine all = before[i - first * s];
            for (int64_t j = first - 1; j >= 0; j--) all = after(all, before[i - j * s]);
            row[i] = all;
        }
    }
    free(before);
}

static const char recurrence[] =
    "dim B in 1..8\ndim T in 0..100000\n"
    "def affine(first, then) {\n"
    "  return first[0] * then[0], first[1] * then[0] + then[1]\n}\n"
    "graph g(a: f32[B, T], b: f32[B, T]) -> (h: f32[B, T], r: f32[B, T]) {\n"
    "  _, h = scan(affine, [a, b], axis=-1)\n"
    "  _, r = scan(affine, [a, b], axis=1, reverse=true)\n}\n";

static void check_row(const Rig *rig, const char *name, const Affine *row, int64_t n, int64_t at,
                      bool is_reverse) {
    size_t n_bytes;
    const float *got = (const float *)(const void *)rig_result(rig, name, &n_bytes) + at;
    for (int64_t i = 0; i < n; i++) {
        float want = row[is_reverse ? n - 1 - i : i].b;
        cr_assert_eq(memcmp(&got[i], &want, sizeof want), 0, "%s of %lld at %lld: %a, not %a", name,
                     (long long)n, (long long)i, (double)got[i], (double)want);
    }
}

static void check_extents(Rig *rig, const Compiled *p, const int64_t *dims) {
    int64_t n = dims[1];
    size_t n_bytes;
    cr_assert(rig_place(rig, p->module->dims, dims), "%s", rig->error);
    float *a = (float *)(void *)rig_contents(rig, "a", &n_bytes);
    float *b = (float *)(void *)rig_contents(rig, "b", &n_bytes);
    Rng rng = rng_new((uint64_t)n);
    for (int64_t i = 0; i < dims[0] * n; i++) {
        a[i] = (float)rng_uniform(&rng, 0.5, 1.0);
        b[i] = (float)rng_uniform(&rng, -1, 1);
    }
    cr_assert(rig_run(rig, 0xF5), "%s", rig->error);
    Affine *row = calloc((size_t)n + 1, sizeof *row);
    for (int64_t at = 0; at < dims[0] * n; at += n)
        for (int is_reverse = 0; is_reverse < 2; is_reverse++) {
            for (int64_t i = 0; i < n; i++) {
                int64_t from = at + (is_reverse ? n - 1 - i : i);
                row[i] = (Affine){a[from], b[from]};
            }
            scan_row(row, n);
            check_row(rig, is_reverse ? "r" : "h", row, n, at, is_reverse != 0);
        }
    free(row);
}

Test(scan_function, recurrences_join_in_order, .timeout = 60) {
    static const int64_t extents[][2] = {{1, 0},   {2, 1},    {3, 2},    {2, 15},
                                         {2, 16},  {2, 17},   {1, 31},   {2, 256},
                                         {2, 257}, {1, 4096}, {1, 4097}, {1, 70000}};
    RigOptions options = RIG_OPTIONS_INIT;
    Compiled p = compiled_new(recurrence, TARGET_CPU);
    Rig rig;
    cr_assert(rig_open(&rig, p.bytes, p.n_bytes, "g", &options), "%s", rig.error);
    for (size_t e = 0; e < sizeof extents / sizeof *extents; e++)
        check_extents(&rig, &p, extents[e]);
    rig_close(&rig);
    compile_free(&p);
}

/* A level is a kernel, and 4096 elements have three levels. */
Test(scan_function, three_launches_up_to_4096_elements) {
    static const TargetId targets[] = {TARGET_CPU, TARGET_SM_80, TARGET_SM_90A};
    static const char source[] = "dim B in 1..64\ndim T in 0..4096\n"
                                 "def affine(first, then) {\n"
                                 "  return first[0] * then[0], first[1] * then[0] + then[1]\n}\n"
                                 "graph g(a: f32[B, T], b: f32[B, T]) -> (h: f32[B, T]) {\n"
                                 "  _, h = scan(affine, [a, b], axis=1)\n}\n";
    for (size_t t = 0; t < sizeof targets / sizeof *targets; t++) {
        Compiled p = compiled_new(source, targets[t]);
        cr_expect_leq(p.plan->launches.n, 3u, "%u launches", p.plan->launches.n);
        compile_free(&p);
    }
}

/* Ops, products of matrices, which do not commute, and tensors of several shapes. */
static const char prelude[] =
    "def last(a, b) = b\n"
    "def pair(a, b) {\n  return a[0] + b[0], maximum(a[1], b[1])\n}\n"
    "graph g(x: f32[5], m: f32[3, 2, 2], i: i32[2, 3]) -> (s: f32[5], p: f32[3, 2, 2], l: i32[2, "
    "3], "
    "u: i32[2, 3], v: f32[2], b: bool[5]) {\n"
    "  s = scan(add, x)\n  p = scan(matmul, m)\n  l = scan(last, i, axis=-1)\n"
    "  u, v = scan(pair, [i, x[:2]])\n  b = scan(logical_and, x < 3.5)\n}\n";

Test(scan_function, ops_lists_and_matrices) {
    static const float x[] = {3, 1, 2, 4, -1}, m[] = {1, 2, 3, 4, 0, 1, 1, 0, 1, 1, 0, 1};
    static const int32_t ids[] = {1, 2, 3, 4, 5, 6};
    Compiled p = compiled_new(prelude, TARGET_CPU);
    Rig rig;
    compiled_open(&p, &rig, "g");
    compiled_set(&rig, "x", x, sizeof x);
    compiled_set(&rig, "m", m, sizeof m);
    compiled_set(&rig, "i", ids, sizeof ids);
    cr_assert(rig_run(&rig, 0xF5), "%s", rig.error);
    compiled_expect_numbers(&rig, "s", DT_F32, (double[]){3, 4, 6, 10, 9});
    compiled_expect_numbers(&rig, "p", DT_F32, (double[]){1, 2, 3, 4, 2, 1, 4, 3, 2, 3, 4, 7});
    compiled_expect_numbers(&rig, "l", DT_I32, (double[]){1, 2, 3, 4, 5, 6});
    compiled_expect_numbers(&rig, "u", DT_I32, (double[]){1, 2, 3, 5, 7, 9});
    compiled_expect_numbers(&rig, "v", DT_F32, (double[]){3, 3});
    compiled_expect_numbers(&rig, "b", DT_BOOL, (double[]){1, 1, 1, 0, 0});
    rig_close(&rig);
    compile_free(&p);
}
