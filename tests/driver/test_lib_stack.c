/* The library on the stack that fusec.h asks for: the deepest sources compile, or are refused, in a
 * thread that has no more. */
#include "lib/text_file.h"

#include <criterion/criterion.h>
#include <fusec.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Work {
    const char *text;
    fusec_kind kind;
    fusec_status status;
} Work;

static void *compile(void *arg) {
    Work *work = arg;
    fusec_options options = FUSEC_OPTIONS_INIT;
    options.kind = work->kind;
    options.n_threads = 2; /* the other thread has no more stack either */
    fusec_result *result = NULL;
    work->status = fusec_compile(work->text, strlen(work->text), &options, &result);
    fusec_result_free(result);
    return NULL;
}

static void expect_on_stack(const char *text, fusec_kind kind, fusec_status expected) {
    Work work = {.text = text, .kind = kind};
    pthread_attr_t attributes;
    pthread_t thread;
    cr_assert_eq(pthread_attr_init(&attributes), 0);
    cr_assert_eq(pthread_attr_setstacksize(&attributes, FUSEC_STACK_BYTES), 0);
    cr_assert_eq(pthread_create(&thread, &attributes, compile, &work), 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attributes);
    cr_expect_eq(work.status, expected, "status %d of %.60s", (int)work.status, text);
}

/* `head`, then `n` times `part`, then `middle`, then `n` times `close`, then `tail`. */
static void expect_repeated(const char *const parts[5], size_t n, fusec_status expected) {
    Arena *arena = arena_new(NULL);
    Text text = {.arena = arena};
    text_puts(&text, parts[0]);
    for (size_t i = 0; i < n; i++) text_puts(&text, parts[1]);
    text_puts(&text, parts[2]);
    for (size_t i = 0; i < n; i++) text_puts(&text, parts[3]);
    text_puts(&text, parts[4]);
    expect_on_stack(text_str(&text), FUSEC_PTX, expected);
    arena_free(arena);
}

#define HEAD "graph g(x: f32[8]) -> (y: f32[8]) {\n  y = "

/* Inlining follows a chain of ops into one kernel, until that has as many as it may have. */
Test(lib_stack, long_chains_compile, .timeout = 120) {
    static const char *const sum[5] = {HEAD "x", " + x", "", "", "\n}\n"};
    expect_repeated(sum, 5000, FUSEC_OK);
}

Test(lib_stack, deep_expressions_compile_or_are_refused) {
    static const char *const calls[5] = {HEAD, "tanh(", "x", ")", "\n}\n"};
    static const char *const brackets[5] = {HEAD, "(", "x", ")", "\n}\n"};
    static const char *const signs[5] = {HEAD, "-", "x", "", "\n}\n"};
    expect_repeated(calls, 200, FUSEC_OK);
    expect_repeated(calls, 10000, FUSEC_INPUT);
    expect_repeated(brackets, 100000, FUSEC_INPUT);
    expect_repeated(signs, 100000, FUSEC_INPUT);
}

/* Each def calls the one before it. */
Test(lib_stack, deep_calls_compile_or_are_refused) {
    for (int n = 60; n <= 200; n += 140) {
        Arena *arena = arena_new(NULL);
        Text text = {.arena = arena};
        text_puts(&text, "def f0(x) = x + x\n");
        for (int i = 1; i < n; i++) text_printf(&text, "def f%d(x) = -f%d(x) + x\n", i, i - 1);
        text_printf(&text, HEAD "f%d(x)\n}\n", n - 1);
        expect_on_stack(text_str(&text), FUSEC_PTX, n == 60 ? FUSEC_OK : FUSEC_INPUT);
        arena_free(arena);
    }
}

Test(lib_stack, examples_compile, .timeout = 60) {
    static const char *const paths[] = {"dsl/examples/transformer.g", "dsl/examples/mlp.g",
                                        "dsl/examples/residual_conv.g"};
    Arena *arena = arena_new(NULL);
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        const char *text = text_file_read(arena, paths[i], NULL);
        expect_on_stack(text, FUSEC_PTX, FUSEC_OK);
        expect_on_stack(text, FUSEC_OBJECT, FUSEC_OK);
    }
    arena_free(arena);
}
