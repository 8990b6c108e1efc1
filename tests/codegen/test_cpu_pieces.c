/* What a CPU emits in pieces, in runs, without a loop over rows, or in vectors where LLVM would
 * not: fused and unfused bits are equal, and every value is within the interpreter's bounds. */
#include "codegen/codegen.h"
#include "lib/compile.h"
#include "lib/pair.h"
#include "lib/plans.h"
#include "schedule/schedule.h"

#include <criterion/criterion.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const TargetId targets[] = {TARGET_CPU, TARGET_CPU_V4};
enum { N_TARGETS = sizeof targets / sizeof *targets };

static void run_fills(Pair *pair, const char *source, Text *report) {
    static const RandomFill fills[] = {FILL_UNIFORM, FILL_INTEGERS, FILL_RAMP, FILL_SPECIAL};
    for (uint64_t i = 0; i < 4; i++) {
        PairData data = {.fill = fills[i], .seed = 7 + i};
        PairCounts counts = {0};
        cr_expect(pair_run(pair, &data, &counts, report), "%s%s", text_str(report), source);
    }
}

static void check_source(const char *source, const int64_t *dims, bool is_unaligned) {
    for (int t = 0; t < N_TARGETS; t++) {
        const Target *target = target_get(targets[t]);
        if (!compile_target_runs(target)) continue;
        Arena *arena = arena_new(NULL);
        Text report = {.arena = arena};
        Pair pair;
        RigOptions options = RIG_OPTIONS_INIT;
        options.is_unaligned = is_unaligned;
        options.program.n_threads = 2;
        bool is_open = pair_compile(&pair, source, target, &report) &&
                       pair_open(&pair, 0, &options, &report) && pair_place(&pair, dims, &report);
        cr_expect(is_open, "%s%s", text_str(&report), source);
        if (is_open) run_fills(&pair, source, &report);
        pair_free(&pair);
        arena_free(arena);
    }
}

static void check_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void check_format(const char *format, ...) {
    char source[4096];
    va_list args;
    va_start(args, format);
    vsnprintf(source, sizeof source, format, args);
    va_end(args);
    check_source(source, NULL, false);
    check_source(source, NULL, true);
}

/* Runs: windows with channels last. Channels around the least run and the lanes; few and many
 * columns, so that either operand is packed in squares. */
Test(cpu_pieces, runs_of_im2col, .timeout = 240) {
    static const int channels[] = {1, 3, 4, 15, 16, 17, 40}, columns[] = {1, 5, 16, 33};
    for (int c = 0; c < 7; c++)
        for (int n = 0; n < 4; n++)
            check_format(
                "graph g(x: f32[2, 6, 5, %d], w: f32[3, 2, %d, %d]) -> (y: f32[2, %d, %d, %d]) {\n"
                "  y = relu(conv2d_nhwc(x, w, padding=%d, stride=%d))\n}\n",
                channels[c], channels[c], columns[n], n % 2 ? 6 : 2, n % 2 ? 6 : 2, columns[n],
                n % 2, n % 2 ? 1 : 2);
}

Test(cpu_pieces, runs_of_either_operand_in_any_dtype, .timeout = 240) {
    static const char *const dtypes[] = {"f32", "f64", "bf16", "f16"};
    static const int rows[] = {1, 3, 7, 30};
    for (int d = 0; d < 4; d++)
        for (int m = 0; m < 4; m++)
            check_format("graph g(x: %s[9, 11, 24], w: %s[%d, 216]) -> (y: %s[%d, 63]) {\n"
                         "  t = reshape(windows(x, size=[3, 3], axis=[0, 1]), [63, 216])\n"
                         "  y = w @ transpose(t, [1, 0])\n}\n",
                         dtypes[d], dtypes[d], rows[m], dtypes[d], rows[m]);
}

/* More elements of k than a block of k, runs across the blocks' ends, and rows of all batches. */
Test(cpu_pieces, runs_across_blocks_of_k, .timeout = 120) {
    check_format("graph g(x: f32[3, 7, 7, 50], w: f32[3, 3, 50, 20]) -> (y: f32[3, 7, 7, 20]) {\n"
                 "  y = conv2d_nhwc(x, w, padding=1) * 0.5\n}\n");
    check_format("graph g(x: f32[2, 7, 7, 90], w: f32[3, 3, 90, 6]) -> (y: f32[2, 3, 3, 6]) {\n"
                 "  y = conv2d_nhwc(x, w, stride=2)\n}\n");
}

/* Pieces: concats along k, along rows of k and beyond the most cuts. */
Test(cpu_pieces, pieces_of_k, .timeout = 240) {
    static const int lengths[] = {1, 3, 8, 16, 24}, columns[] = {3, 32};
    for (int c = 0; c < 5; c++)
        for (int n = 0; n < 2; n++) {
            int k = lengths[c];
            check_format("graph g(x: f32[5, 9, %d], w: f32[%d, %d]) -> (y: f32[5, 7, %d]) {\n"
                         "  y = concat([x[:, :-2], x[:, 1:-1] * 2.0, x[:, 2:]], axis=2) @ w\n}\n",
                         k, 3 * k, columns[n], columns[n]);
            check_format("graph g(x: f32[5, %d, 9], w: f32[%d, %d]) -> (y: f32[5, 7, %d]) {\n"
                         "  t = transpose(x, [0, 2, 1])\n"
                         "  y = concat([t[:, :-2], t[:, 1:-1], t[:, 2:]], axis=2) @ w\n}\n",
                         k, 3 * k, columns[n], columns[n]);
        }
}

Test(cpu_pieces, more_pieces_than_are_emitted, .timeout = 120) {
    char parts[2048] = "x";
    for (int i = 1; i < 70; i++) strcat(parts, i % 2 ? ", z" : ", x");
    check_format("graph g(x: f32[6, 5], z: f32[6, 5], w: f32[350, 20]) -> (y: f32[6, 20], c: "
                 "f32[6, 350]) {\n"
                 "  c = concat([%s], axis=1) + 1.0\n  y = concat([%s], axis=1) @ w\n}\n",
                 parts, parts);
}

Test(cpu_pieces, pieces_of_maps, .timeout = 120) {
    check_format(
        "graph g(a: f32[5, 1], b: f32[5, 7], c: f32[5, 16], d: f32[5, 33], e: f32[5, 64])\n"
        "    -> (y: f32[5, 121]) {\n"
        "  y = tanh(concat([a, b, c * 2.0, d, e], axis=1))\n}\n");
    check_format("graph g(a: u8[40, 20], b: u8[40, 12], c: u8[40, 48]) -> (y: u8[40, 112]) {\n"
                 "  y = concat([a, b, c, b, a], axis=1) + 3\n}\n");
    check_format("graph g(x: f32[6, 40], p: f32[64]) -> (y: f32[6, 64]) {\n"
                 "  t = pad(x, low=[0, 9], high=[0, 15], value=2.0)\n"
                 "  y = concat([t[:, :20], t[:, 25:40], t[:, 30:59]], axis=1) * p\n}\n");
}

/* Columns of few rows: each reduction, several stages, reduced axes apart, and no elements. */
Test(cpu_pieces, columns_of_few_rows, .timeout = 240) {
    static const int rows[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 33, 64, 65};
    for (int i = 0; i < 12; i++) {
        int n = rows[i];
        check_format("graph g(x: f32[4, %d, 37]) -> (s: f32[4, 37], m: f32[4, 37], i: i32[4, 37], "
                     "y: f32[4, %d, 37]) {\n"
                     "  s = sum(x, axis=1)\n  m = max(x * x, axis=1)\n  i = argmax(x, axis=1)\n"
                     "  y = softmax(x, axis=1)\n}\n",
                     n, n);
        check_format("graph g(x: bf16[%d, 5, 2, 19]) -> (y: bf16[%d, 5, 2, 19], z: bf16[5, 19]) {\n"
                     "  y = x - mean(x, axis=[0, 2], keep=true)\n  z = prod(x, axis=[0, 2])\n}\n",
                     n, n);
        check_format(
            "graph g(x: f64[3, %d, 8], b: bool[3, %d, 8]) -> (y: f64[3, 8], z: bool[3, 8]) {\n"
            "  y = logsumexp(x, axis=1) * 2.0\n  z = any(b, axis=1)\n}\n",
            n, n);
    }
}

/* Lanes a few elements apart under guards: pooling in both layouts, columns of many rows, depthwise
 * taps along short rows. */
Test(cpu_pieces, windows_apart_with_padding, .timeout = 240) {
    static const char *const dtypes[] = {"f32", "f64", "bf16"};
    for (int d = 0; d < 3; d++)
        for (int stride = 1; stride <= 9; stride++) {
            int n = 1 + (39 + 4 - 5) / stride;
            check_format("graph g(x: %s[2, 3, 39, 39], p: %s[3, 1, 5, 5]) -> (y: %s[2, 3, %d, %d], "
                         "z: %s[2, 3, %d, %d]) {\n"
                         "  y = max_pool2d(x, 5, stride=%d, padding=2)\n"
                         "  z = conv2d(x, p, stride=%d, padding=2, groups=3)\n}\n",
                         dtypes[d], dtypes[d], dtypes[d], n, n, dtypes[d], n, n, stride, stride);
        }
    for (int width = 2; width <= 17; width += 5)
        check_format("graph g(x: f32[2, 9, %d, 7]) -> (y: f32[2, 5, %d, 7]) {\n"
                     "  y = avg_pool2d_nhwc(x, 3, stride=2, padding=1)\n}\n",
                     2 * width, width);
}

/* Where a guard fails for all lanes, a constant is read; its address is no memory of the tensor. */
Test(cpu_pieces, constants_outside_of_a_guard, .timeout = 120) {
    static const char *const values[] = {"2.0", "-inf", "nan"};
    for (int v = 0; v < 3; v++)
        check_format("graph g(x: f32[3, 40], y: f64[2, 33]) -> (a: f32[7, 40], b: f64[6, 11]) {\n"
                     "  a = pad(x, low=[2, 0], high=[2, 0], value=%s) * 2.0\n"
                     "  b = pad(y[:, ::3], low=[3, 0], high=[1, 0], value=%s) + 1.0\n}\n",
                     values[v], values[v]);
}

/* One lane is stored at a place that does not move with the lanes. */
Test(cpu_pieces, a_guard_of_one_lane, .timeout = 120) {
    check_format("graph g(x: f32[37]) -> (y: f32[41]) {\n"
                 "  p = pad(x, low=[0], high=[1], value=2.0)\n"
                 "  y = concat([p[2:0:-1], p, p[1:2]], axis=0)\n}\n");
}

Test(cpu_pieces, scans_of_each_level, .timeout = 120) {
    static const int lengths[] = {1, 2, 16, 17, 255, 256, 257, 4096, 4097};
    for (int i = 0; i < 9; i++) {
        check_format("graph g(x: f32[3, %d]) -> (y: f32[3, %d], z: f32[3, %d]) {\n"
                     "  y = cumsum(x, axis=1)\n  z = logcumsumexp(x, axis=1)\n}\n",
                     lengths[i], lengths[i], lengths[i]);
        check_format("graph g(x: i32[%d, 21]) -> (y: i32[%d, 21]) {\n  y = cummax(x, axis=0)\n}\n",
                     lengths[i], lengths[i]);
    }
}

/* Floats become integers, whatever they are: the special contents have NaN, infinities and the
 * largest numbers. */
Test(cpu_pieces, floats_become_integers, .timeout = 240) {
    static const char *const floats[] = {"f32", "f64", "f16", "bf16"};
    static const char *const integers[] = {"i64", "i32", "i8", "u8", "u16", "u32"};
    for (int f = 0; f < 4; f++)
        for (int i = 0; i < 6; i++)
            check_format("graph g(x: %s[333]) -> (y: %s[333], z: %s[333]) {\n"
                         "  y = cast(x, %s)\n  z = cast(x * 30000.0, %s)\n}\n",
                         floats[f], integers[i], integers[i], integers[i], integers[i]);
}

/* Whether the assembly for AVX2, or the IR, has the text. */
static bool code_has(const char *source, CodeKind kind, const char *part) {
    Arena *arena = arena_new(NULL);
    Diags diags = {.arena = arena};
    Plan *fused = plans_fuse(arena, plans_parse(arena, source), 0, false);
    const Target *target = target_get(TARGET_CPU);
    sched_plan(arena, fused, target);
    const Plan *plan = fused;
    BackOptions options = {.target = target, .verify = true};
    CodeBytes code;
    cr_assert(codegen_emit(arena, &plan, 1, options, kind, &code, &diags), "%s", source);
    Text text = {.arena = arena};
    text_printf(&text, "%.*s", (int)code.n_bytes, code.data);
    bool has = strstr(text_str(&text), part) != NULL;
    arena_free(arena);
    return has;
}

/* Of whole vectors, no accumulator is stored under a mask. */
Test(cpu_pieces, comparisons_store_all_accumulators) {
    static const char *const kept[] = {"f32", "f64", "i64", "i32"};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        char source[200];
        snprintf(source, sizeof source,
                 "dim T in 2..500\ngraph g(x: %s[T, 640]) -> (y: %s[640], z: i32[640]) {\n"
                 "  y = min(x, axis=0)\n  z = argmax(x, axis=0)\n}\n",
                 kept[i], kept[i]);
        cr_expect_not(code_has(source, CODE_ASSEMBLY, "maskmov"), "%s", source);
    }
}

Test(cpu_pieces, comparisons_of_rows_store_all_accumulators) {
    cr_expect_not(code_has("graph g(x: f32[9, 640]) -> (z: i32[9]) { z = argmax(x, axis=1) }",
                           CODE_ASSEMBLY, "maskmov"));
}

/* The rows of a concat are told apart without a division in each lane. */
Test(cpu_pieces, a_guard_of_a_quotient_is_one_of_its_dividend) {
    cr_expect_not(
        code_has("dim H in 4..24 mult 4\n"
                 "graph g(x: f16[H + 6, 3, 1, H + 1], z: f16[H + 6, H, 1, H + 1])\n"
                 "    -> (y: f16[H + 6, H + 3, 1, H + 1]) { y = concat([x, z], axis=1) }\n",
                 CODE_LLVM_IR, "div <"));
}

/* Pieces that are shorter than a vector of 16-bit elements, and have whole halves of it. */
Test(cpu_pieces, halves_of_a_vector_have_no_masks) {
    const char *source = "graph g(x: bf16[33, 16], c: f32[33, 8]) -> (y: bf16[33, 16]) {\n"
                         "  turned = concat([-x[:, 8:16], x[:, 0:8]], axis=1)\n"
                         "  y = turned * cast(concat([c, c], axis=1), bf16)\n}\n";
    cr_expect_not(code_has(source, CODE_LLVM_IR, "masked.load"), "%s", source);
    check_source(source, NULL, true);
}

/* Squares of whole vectors are turned, and each step of it is one instruction. */
Test(cpu_pieces, squares_are_turned_without_masks, .timeout = 240) {
    static const char *const dtypes[] = {"u8", "bf16", "f32", "f64"};
    for (int d = 0; d < 4; d++) {
        char source[200];
        snprintf(source, sizeof source,
                 "graph g(x: %s[3, 32, 64]) -> (y: %s[3, 64, 32]) {\n"
                 "  y = transpose(x, perm=[0, 2, 1])\n}\n",
                 dtypes[d], dtypes[d]);
        cr_expect_not(code_has(source, CODE_LLVM_IR, "masked.load"), "%s", source);
        cr_expect_not(code_has(source, CODE_ASSEMBLY, "blend"), "%s", source);
        check_source(source, NULL, true);
    }
}
