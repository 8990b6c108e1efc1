/* The library without memory, and without threads: every allocation of a compilation fails once,
 * and each time the call comes back with a status. Linked with --wrap, so that allocations and
 * threads of ours, and not LLVM's, pass through here. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fusec.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

void *__real_malloc(size_t n_bytes);
void *__real_calloc(size_t n, size_t n_bytes);
void *__wrap_malloc(size_t n_bytes);
void *__wrap_calloc(size_t n, size_t n_bytes);

static atomic_uint n_allocations, n_elsewhere; /* elsewhere: on threads of the library */
static _Thread_local bool is_here;
static unsigned failing; /* which allocation, from 1; 0: none */

static bool fails(void) {
    n_elsewhere += !is_here;
    return ++n_allocations == failing;
}

void *__wrap_malloc(size_t n_bytes) {
    return fails() ? NULL : __real_malloc(n_bytes);
}

void *__wrap_calloc(size_t n, size_t n_bytes) {
    return fails() ? NULL : __real_calloc(n, n_bytes);
}

typedef void *Work(void *);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, Work *work,
                          void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, Work *work,
                          void *argument);

static unsigned n_threads_asked, n_threads_most = 1000;

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, Work *work,
                          void *argument) {
    if (n_threads_asked++ >= n_threads_most) return EAGAIN;
    return __real_pthread_create(thread, attributes, work, argument);
}

static void fail_each(const char *text, fusec_kind kind, uint32_t n_threads,
                      fusec_status expected) {
    fusec_options options = FUSEC_OPTIONS_INIT;
    is_here = true;
    options.kind = kind;
    options.n_threads = n_threads;
    options.explain = true;
    fusec_status status = FUSEC_MEMORY;
    for (failing = 1; failing < 10000; failing++) {
        fusec_result *result = NULL;
        n_allocations = 0;
        status = fusec_compile(text, strlen(text), &options, &result);
        bool has_failed = n_allocations >= failing;
        size_t n_bytes = 0;
        if (result) fusec_result_bytes(result, &n_bytes);
        if (has_failed) {
            cr_assert(status == FUSEC_MEMORY || status == expected);
            cr_assert(status != FUSEC_MEMORY || n_bytes == 0);
            cr_assert(!result || status == expected ||
                      strstr(fusec_result_messages(result), "out of memory"));
        }
        fusec_result_free(result);
        if (!has_failed) break;
    }
    cr_expect(failing > 3 && failing < 10000, "%u allocations failed", failing);
    cr_expect(status == expected);
    failing = 0;
}

static const char good[] = "dim B in 1..64\ngraph g(x: f32[B, 800]) -> (y: f32[B, 800]) {\n"
                           "  y = softmax(gelu(x) * 2.0) + layernorm(x, x, x)\n}\n";

Test(lib_memory, every_failing_allocation_gives_a_status) {
    fail_each(good, FUSEC_PTX, 1, FUSEC_OK);
    fail_each(good, FUSEC_OBJECT, 1, FUSEC_OK);
    fail_each(good, FUSEC_FUSED, 1, FUSEC_OK);
}

Test(lib_memory, so_it_does_when_the_source_is_wrong) {
    fail_each("graph g(x: f32[8]) -> (y: f32[8]) { y = reluu(x) }\n", FUSEC_PTX, 1, FUSEC_INPUT);
}

/* Two functions. Their texts are larger than the first block of an arena. */
static const char large[] =
    "graph g(x: f32[64, 8000], y: f32[64, 6000]) -> (a: f32[64, 8000], b: f32[64, 6000]) {\n"
    "  a = softmax(gelu(x) * 2.0) + erf(tanh(x))\n  b = softmax(sin(y)) + cos(y)\n}\n";

/* An allocation that fails on another thread is the caller's failure too. */
Test(lib_memory, so_it_does_with_threads) {
    fail_each(large, FUSEC_PTX, 3, FUSEC_OK);
    cr_expect_gt(n_elsewhere, 0u);
    fail_each(good, FUSEC_OBJECT, 3, FUSEC_OK);
}

static void expect_threads(uint32_t n_threads, unsigned asked) {
    fusec_options options = FUSEC_OPTIONS_INIT;
    options.n_threads = n_threads;
    fusec_result *result = NULL;
    n_threads_asked = 0;
    cr_expect_eq(fusec_compile(large, strlen(large), &options, &result), FUSEC_OK);
    cr_expect_eq(n_threads_asked, asked, "%u asked for %u threads", n_threads, n_threads_asked);
    fusec_result_free(result);
}

/* The caller's thread is one of them, and does all where the system gives no other. Search starts
 * one, which ends with it, and code generation starts another. */
Test(lib_memory, threads_are_started_where_they_are_asked_for) {
    expect_threads(0, 0);
    expect_threads(1, 0);
    expect_threads(2, 2);
    n_threads_most = 0;
    expect_threads(3, 2);
}
