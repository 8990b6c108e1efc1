/* The library: what a host program sees of a compilation, good, wrong, many at once, and without
 * memory. */
#include <criterion/criterion.h>
#include <fusec.h>
#include <pthread.h>
#include <string.h>

static const char good[] = "dim B in 1..64\ngraph g(x: f32[B, 8]) -> (y: f32[B, 8]) {\n"
                           "  y = softmax(x * 2.0)\n}\n";

static fusec_status compile(const char *text, const fusec_options *options, fusec_result **result) {
    return fusec_compile(text, strlen(text), options, result);
}

Test(fusec_lib, source_becomes_an_artifact) {
    fusec_result *result = NULL;
    size_t n_bytes = 0;
    cr_assert(compile(good, NULL, &result) == FUSEC_OK, "%s", fusec_result_messages(result));
    const char *bytes = fusec_result_bytes(result, &n_bytes);
    cr_expect(n_bytes > 100 && strncmp(bytes, "//@ fusec-artifact", 18) == 0);
    cr_expect_str_eq(fusec_result_messages(result), "");
    cr_expect_str_eq(fusec_result_explanation(result), "");
    cr_expect(fusec_result_n_diagnostics(result) == 0);
    fusec_result_free(result);
    fusec_result_free(NULL);
}

Test(fusec_lib, every_kind_is_made) {
    for (int kind = 0; kind < FUSEC_KIND_COUNT; kind++) {
        fusec_options options = FUSEC_OPTIONS_INIT;
        fusec_result *result = NULL;
        size_t n_bytes = 0;
        options.kind = (fusec_kind)kind;
        options.explain = kind % 2;
        cr_assert(compile(good, &options, &result) == FUSEC_OK, "%s",
                  fusec_result_messages(result));
        fusec_result_bytes(result, &n_bytes);
        cr_expect(n_bytes > 0, "kind %d", kind);
        cr_expect((fusec_result_explanation(result)[0] != '\0') == options.explain);
        fusec_result_free(result);
    }
}

Test(fusec_lib, every_target_compiles) {
    for (size_t i = 0; fusec_target_name(i); i++) {
        fusec_options options = FUSEC_OPTIONS_INIT;
        fusec_result *result = NULL;
        options.target = fusec_target_name(i);
        options.kind = strncmp(options.target, "sm_", 3) == 0 ? FUSEC_PTX : FUSEC_OBJECT;
        cr_expect(compile(good, &options, &result) == FUSEC_OK, "%s: %s", options.target,
                  fusec_result_messages(result));
        cr_expect(fusec_target_doc(i)[0]);
        fusec_result_free(result);
    }
}

Test(fusec_lib, diagnostics_have_a_place_and_an_id) {
    fusec_options options = FUSEC_OPTIONS_INIT;
    fusec_result *result = NULL;
    options.source_name = "model.g";
    cr_assert(compile("graph g(x: f32[8]) -> (y: f32[9]) {\n  y = x + 1.0\n}\n", &options,
                      &result) == FUSEC_INPUT);
    size_t n_bytes = 1;
    cr_expect(!fusec_result_bytes(result, &n_bytes) && n_bytes == 0);
    cr_assert(fusec_result_n_diagnostics(result) > 0);
    fusec_diagnostic first = {.struct_size = sizeof first};
    cr_assert(fusec_result_diagnostic(result, 0, &first));
    cr_expect(first.severity == FUSEC_ERROR && first.line > 0 && first.column > 0);
    cr_expect_str_eq(first.file, "model.g");
    cr_expect_str_eq(first.id, "shape-mismatch");
    cr_expect(strstr(fusec_result_messages(result), first.message));
    cr_expect(!fusec_result_diagnostic(result, 1000, &first));
    fusec_result_free(result);
}

Test(fusec_lib, wrong_options_are_named) {
    static const struct {
        fusec_options options;
        fusec_status status;
        const char *expected;
    } cases[] = {
        {{.kind = FUSEC_PTX, .target = "sm_1"}, FUSEC_TARGET, "there is no target `sm_1`"},
        {{.kind = FUSEC_PTX, .target = "cpu"}, FUSEC_USAGE, "ptx cannot be made for target cpu"},
        {{.kind = FUSEC_KIND_COUNT}, FUSEC_USAGE, "no kind of output"},
        {{.kind = FUSEC_PTX, .numerics = "quick"},
         FUSEC_USAGE,
         "`quick` are neither `strict` nor `fast`"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fusec_result *result = NULL;
        fusec_options options = cases[i].options;
        options.struct_size = sizeof options;
        cr_expect(compile(good, &options, &result) == cases[i].status);
        cr_expect(strstr(fusec_result_messages(result), cases[i].expected), "%s",
                  fusec_result_messages(result));
        fusec_diagnostic only = {.struct_size = sizeof only};
        cr_assert(fusec_result_n_diagnostics(result) == 1);
        cr_assert(fusec_result_diagnostic(result, 0, &only));
        cr_expect(!only.id && !only.file && strstr(only.message, cases[i].expected));
        fusec_result_free(result);
    }
}

Test(fusec_lib, older_options_are_enough) {
    fusec_options options = FUSEC_OPTIONS_INIT;
    fusec_result *result = NULL;
    options.struct_size = offsetof(fusec_options, target); /* as if the header ended there */
    options.target = (const char *)&options;               /* not to be read */
    options.kind = FUSEC_GRAPH;
    cr_expect(compile(good, &options, &result) == FUSEC_OK);
    fusec_result_free(result);
}

/* The one file that there is. */
static bool give_include(void *user, const char *path, const char **text, size_t *n_bytes) {
    static const char twice[] = "def twice(x) = x + x\n";
    *(int *)user += 1;
    *text = twice;
    *n_bytes = strlen(twice);
    return strcmp(path, "models/parts/twice.g") == 0;
}

Test(fusec_lib, included_files_come_from_the_caller) {
    const char *text = "include \"../parts/twice.g\"\ngraph g(x: f32[8]) -> (y: f32[8]) {\n"
                       "  y = twice(x)\n}\n";
    int n_calls = 0;
    fusec_options options = FUSEC_OPTIONS_INIT;
    fusec_result *result = NULL;
    options.source_name = "models/large/net.g";
    cr_expect(compile(text, &options, &result) == FUSEC_INPUT, "no file can be read");
    cr_expect(strstr(fusec_result_messages(result), "cannot read models/parts/twice.g"));
    fusec_result_free(result);
    options.include = give_include;
    options.include_user = &n_calls;
    cr_expect(compile(text, &options, &result) == FUSEC_OK, "%s", fusec_result_messages(result));
    cr_expect_eq(n_calls, 1);
    fusec_result_free(result);
    options.source_name = "net.g";
    cr_expect(compile(text, &options, &result) == FUSEC_INPUT);
    cr_expect(strstr(fusec_result_messages(result), "cannot read ../parts/twice.g"));
    fusec_result_free(result);
}

Test(fusec_lib, numerics_are_recorded) {
    static const char *const modes[] = {NULL, "strict", "fast"};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        fusec_options options = FUSEC_OPTIONS_INIT;
        fusec_result *result = NULL;
        size_t n_bytes = 0;
        options.numerics = modes[i];
        cr_assert(compile(good, &options, &result) == FUSEC_OK);
        const char *ptx = fusec_result_bytes(result, &n_bytes);
        bool is_fast = strstr(ptx, "\n//@ numerics fast\n");
        cr_expect_eq(is_fast, i == 2);
        cr_expect_eq(strstr(ptx, "\n//@ numerics strict\n") != NULL, i < 2);
        fusec_result_free(result);
    }
}

/* Arithmetic is rewritten where the caller says so. */
Test(fusec_lib, rewrites_are_asked_for) {
    static const char attention[] =
        "graph a(q: f16[2, 64, 64], k: f16[2, 64, 64], v: f16[2, 64, 64]) -> (o: f16[2, 64, 64]) "
        "{\n  o = softmax(q @ transpose(k, perm=[0, 2, 1])) @ v\n}\n";
    for (int rewrites = FUSEC_REWRITES_DEFAULT; rewrites <= FUSEC_REWRITES_OFF + 1; rewrites++) {
        fusec_options options = FUSEC_OPTIONS_INIT;
        fusec_result *result = NULL;
        options.explain = true;
        options.rewrites = (fusec_rewrites)rewrites;
        fusec_status status = compile(attention, &options, &result);
        bool is_on = strstr(fusec_result_explanation(result), ": rewritten, within ");
        cr_expect_eq(is_on, rewrites == FUSEC_REWRITES_ON, "%d", rewrites);
        cr_expect_eq(status, rewrites > FUSEC_REWRITES_OFF ? FUSEC_USAGE : FUSEC_OK);
        if (status) cr_expect(strstr(fusec_result_messages(result), "options.rewrites is neither"));
        fusec_result_free(result);
    }
}

Test(fusec_lib, no_bytes_are_too_strange) {
    static const char junk[] = "\0\xff graph g(x: f32[\0";
    for (size_t n = 0; n <= sizeof junk; n++) {
        fusec_result *result = NULL;
        cr_expect(fusec_compile(junk, n, NULL, &result) == FUSEC_INPUT);
        cr_expect(fusec_result_n_diagnostics(result) > 0);
        fusec_result_free(result);
    }
    fusec_result *result = NULL;
    cr_expect(fusec_compile(NULL, 0, NULL, &result) == FUSEC_INPUT);
    fusec_result_free(result);
}

enum { N_THREADS = 4, N_ROUNDS = 4 };

typedef struct Thread {
    pthread_t id;
    fusec_result *results[N_ROUNDS];
} Thread;

static void *compile_often(void *user) {
    Thread *thread = user;
    for (int i = 0; i < N_ROUNDS; i++) {
        fusec_options options = FUSEC_OPTIONS_INIT;
        options.kind = i % 2 ? FUSEC_OBJECT : FUSEC_PTX;
        compile(good, &options, &thread->results[i]);
    }
    return NULL;
}

Test(fusec_lib, threads_compile_at_the_same_time_to_equal_bytes) {
    Thread threads[N_THREADS] = {{0}};
    for (int t = 0; t < N_THREADS; t++)
        cr_assert(pthread_create(&threads[t].id, NULL, compile_often, &threads[t]) == 0);
    for (int t = 0; t < N_THREADS; t++) pthread_join(threads[t].id, NULL);
    for (int t = 0; t < N_THREADS; t++) {
        for (int i = 0; i < N_ROUNDS; i++) {
            size_t n, n_first;
            const void *first = fusec_result_bytes(threads[0].results[i % 2], &n_first);
            const void *bytes = fusec_result_bytes(threads[t].results[i], &n);
            cr_assert(n > 0 && n == n_first && memcmp(bytes, first, n) == 0);
        }
    }
    for (int t = 0; t < N_THREADS; t++)
        for (int i = 0; i < N_ROUNDS; i++) fusec_result_free(threads[t].results[i]);
}

/* A block of a transformer, whose functions fill several units of code. */
static const char block[] =
    "def project(x, w) = x @ transpose(w)\n"
    "graph g(x: f32[64, 256]) -> (y: f32[64, 256]) {\n"
    "  param w: f32[1024, 256]\n  param v: f32[256, 1024]\n  param u: f32[256, 256]\n"
    "  h = x + layernorm(softmax(project(x, u)), x[0], x[1])\n"
    "  y = h + project(gelu(project(h, w)), v)\n}\n";

Test(fusec_lib, bytes_do_not_depend_on_the_number_of_threads) {
    static const fusec_kind kinds[] = {FUSEC_PTX, FUSEC_OBJECT, FUSEC_ASM, FUSEC_LLVM};
    static const uint32_t n_threads[] = {0, 1, 2, 3, 16, 1000};
    enum { N_KINDS = sizeof kinds / sizeof *kinds, N = sizeof n_threads / sizeof *n_threads };
    for (int k = 0; k < N_KINDS; k++) {
        fusec_result *results[N];
        for (int i = 0; i < N; i++) {
            fusec_options options = FUSEC_OPTIONS_INIT;
            options.kind = kinds[k];
            options.n_threads = n_threads[i];
            cr_assert_eq(fusec_compile(block, strlen(block), &options, &results[i]), FUSEC_OK, "%s",
                         fusec_result_messages(results[i]));
        }
        size_t n_first, n_bytes;
        const char *first = fusec_result_bytes(results[0], &n_first);
        const char *entry = kinds[k] == FUSEC_PTX ? strstr(first, ".entry") : NULL;
        cr_expect(kinds[k] != FUSEC_PTX || (entry && strstr(entry + 1, ".entry")), "one unit");
        for (int i = 1; i < N; i++) {
            const void *bytes = fusec_result_bytes(results[i], &n_bytes);
            cr_expect_eq(n_bytes, n_first, "kind %d, %u threads", (int)kinds[k], n_threads[i]);
            cr_expect(n_bytes == n_first && memcmp(bytes, first, n_bytes) == 0,
                      "kind %d, %u threads", (int)kinds[k], n_threads[i]);
        }
        for (int i = 0; i < N; i++) fusec_result_free(results[i]);
    }
}
