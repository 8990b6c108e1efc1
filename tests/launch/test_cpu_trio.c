/* Launches of two matmuls and the row kernel between them on a CPU: which graphs have one, and that
 * no bit differs from one kernel per op, whatever the extents, dtypes, vector width and number of
 * threads. */
#include "lib/compiled.h"
#include "lib/pair.h"
#include "plan/launch.h"

#include <criterion/criterion.h>
#include <string.h>

/* A graph of queries [b, m, d], keys [b, n, d] and values [b, n, c], which are letters in the text.
 * Where they are to be joined, a block asks for it at any price. */
typedef struct Case {
    const char *dtype, *body;
    int b, m, n, d, c;
    bool is_joined;
} Case;

#define SCORES "s = (q @ transpose(k, [0, 2, 1])) * 0.125\n  "
#define SOFTMAX SCORES "y = softmax(s) @ v\n"
#define CAUSAL \
    SCORES "y = softmax(where(iota([m, n], axis=1) <= iota([m, n], axis=0), s, -inf)) @ v\n"
#define BIAS SCORES "y = softmax(s + bias) @ v\n"
#define CAPPED SCORES "y = relu(softmax(tanh(s) * 3.0) @ v)\n"
#define NORM SCORES "y = rmsnorm(s, row) @ v + q\n"
#define TWICE SCORES "p = softmax(s)\n  y = p @ v\n  z = p * 2.0\n"

static const Case cases[] = {
    {"f32", SOFTMAX, 2, 64, 128, 64, 64, true},   {"f32", SOFTMAX, 1, 33, 513, 17, 40, true},
    {"f32", SOFTMAX, 3, 16, 7, 5, 3, false},      {"f32", SOFTMAX, 1, 83, 1, 9, 33, false},
    {"f32", SOFTMAX, 3, 16, 17, 5, 19, true},     {"f32", SOFTMAX, 7, 45, 40, 1, 96, true},
    {"f32", SOFTMAX, 1, 100, 1000, 64, 64, true}, {"f32", SOFTMAX, 0, 64, 128, 64, 64, true},
    {"f32", SOFTMAX, 2, 64, 65, 400, 64, true},   {"f32", SOFTMAX, 2, 15, 128, 64, 64, false},
    {"f32", SOFTMAX, 1, 64, 4096, 64, 64, false}, {"f32", SOFTMAX, 1, 64, 128, 64, 600, false},
    {"bf16", SOFTMAX, 2, 70, 130, 64, 64, true},  {"f16", SOFTMAX, 2, 70, 129, 31, 80, true},
    {"f64", SOFTMAX, 2, 70, 129, 31, 48, true},   {"f32", CAUSAL, 2, 70, 129, 64, 64, true},
    {"f32", BIAS, 2, 70, 129, 64, 64, true},      {"f32", CAPPED, 2, 70, 129, 64, 64, true},
    {"f32", NORM, 2, 70, 129, 64, 64, true},      {"f32", TWICE, 2, 70, 129, 64, 64, false}};
enum { N_CASES = sizeof cases / sizeof *cases };

/* The text with numbers in place of the letters. */
static const char *with_extents(Arena *arena, const Case *c, const char *pattern) {
    Text text = {.arena = arena};
    for (const char *at = pattern; *at; at++) {
        bool is_letter = strchr("bmndc", *at) && strchr("[ ", at[-1]) && strchr(",]", at[1]);
        int extent = *at == 'b' ? c->b : *at == 'm' ? c->m : *at == 'n' ? c->n : c->c;
        if (is_letter)
            text_printf(&text, "%d", *at == 'd' ? c->d : extent);
        else
            text_printf(&text, "%c", *at);
    }
    return text_str(&text);
}

static const char *source_of(Arena *arena, const Case *c) {
    bool has_z = strcmp(c->body, TWICE) == 0, has_bias = strcmp(c->body, BIAS) == 0,
         has_row = strcmp(c->body, NORM) == 0;
    const char *t = c->dtype;
    const char *more = has_bias ? ", bias: f32[m, n]" : has_row ? ", row: f32[n]" : "";
    const char *pattern = str_format(
        arena,
        "graph g(q: %s[b, m, d], k: %s[b, n, d], v: %s[b, n, c]%s) -> (y: %s[b, m, c]%s) {\n"
        "  %s%s%s}\n",
        t, t, t, more, t, has_z ? ", z: f32[b, m, n]" : "", c->is_joined ? "fuse must {\n  " : "",
        c->body, c->is_joined ? "  }\n" : "");
    return with_extents(arena, c, pattern);
}

static bool is_joined(const char *source, TargetId target) {
    bool is = false;
    Compiled compiled = compiled_new(source, target);
    const Plan *plan = compiled.plan;
    for (uint32_t i = 0; i < plan->launches.n; i++)
        is = is || plan->launches.data[i].mode == LAUNCH_GEMM_ROWS_GEMM;
    compile_free(&compiled);
    return is;
}

static void check_bits(Arena *arena, const char *source, TargetId target, int n_threads) {
    Text report = {.arena = arena};
    RigOptions options = RIG_OPTIONS_INIT;
    options.program.n_threads = n_threads;
    if (!compile_target_runs(target_get(target))) return;
    const int64_t no_extents[DIM_MAX_SYMBOLS] = {0};
    cr_expect(pair_is_right(source, target_get(target), &options, no_extents, 7, &report), "%s%s",
              source, text_str(&report));
}

Test(cpu_trio, rows_between_matmuls_share_their_units, .timeout = 400) {
    static const TargetId targets[] = {TARGET_CPU, TARGET_CPU_V4, TARGET_CPU_MULTI};
    for (size_t i = 0; i < N_CASES; i++) {
        Arena *arena = arena_new(NULL);
        const char *source = source_of(arena, &cases[i]);
        for (size_t t = 0; t < sizeof targets / sizeof *targets; t++) {
            cr_expect_eq(is_joined(source, targets[t]), cases[i].is_joined, "%s", source);
            check_bits(arena, source, targets[t], 1 + (int)t);
        }
        arena_free(arena);
    }
}
