/* An outside program: compiles a graph in memory with libfusec and runs it on the CPU with
 * libfusert, in C. Prints what went wrong; succeeds when every number is right. */
#include <fusec.h>
#include <fusert.h>

#include <stdio.h>
#include <string.h>

static const char source[] = "dim N in 1..1024\n"
                             "graph twice(x: f32[N], r: f32[N]) -> (y: f32[N], total: f32) {\n"
                             "  y = relu(x * 2 + r)\n"
                             "  total = sum(y)\n"
                             "}\n";

enum { N = 100 };
static float x[N], r[N], y[N], total;

static int fail(const char *what, const char *why) {
    printf("%s: %s\n", what, why);
    return 1;
}

static int check(void) {
    float sum = 0;
    for (int i = 0; i < N; i++) {
        float value = x[i] * 2 + r[i];
        float expected = value > 0 ? value : 0;
        if (!(y[i] == expected)) {
            printf("y[%d] is %g, expected %g\n", i, (double)y[i], (double)expected);
            return 1;
        }
        sum += expected;
    }
    return total == sum ? 0 : fail("total", "wrong"); /* small integers: exact in any order */
}

static int run(const void *bytes, size_t n_bytes) {
    frt_error err = FRT_ERROR_INIT;
    frt_module *module = NULL;
    frt_program *program = NULL;
    frt_exec *exec = NULL;
    frt_tensor tx = {.data = x, .dtype = FRT_F32, .rank = 1, .dims = {N}};
    frt_tensor tr = {.data = r, .dtype = FRT_F32, .rank = 1, .dims = {N}};
    frt_tensor ty = {.data = y, .dtype = FRT_F32, .rank = 1, .dims = {N}};
    frt_tensor ttotal = {.data = &total, .dtype = FRT_F32, .rank = 0};
    for (int i = 0; i < N; i++) {
        x[i] = (float)(i - N / 2);
        r[i] = (float)(i % 7);
    }
    int failed = frt_module_load_memory(bytes, n_bytes, &module, &err) ||
                 frt_program_create(module, NULL, NULL, &program, &err) ||
                 frt_exec_create(program, &exec, &err) || frt_bind(exec, "x", &tx, &err) ||
                 frt_bind(exec, "r", &tr, &err) || frt_bind(exec, "y", &ty, &err) ||
                 frt_bind(exec, "total", &ttotal, &err) || frt_run(exec, NULL, &err);
    frt_exec_free(exec);
    frt_program_free(program);
    frt_module_free(module);
    return failed ? fail("the runtime", err.message) : check();
}

int main(void) {
    fusec_options options = FUSEC_OPTIONS_INIT;
    options.kind = FUSEC_OBJECT;
    fusec_result *result = NULL;
    if (fusec_compile(source, strlen(source), &options, &result) != FUSEC_OK) {
        int failed = fail("libfusec", result ? fusec_result_messages(result) : "out of memory");
        fusec_result_free(result);
        return failed;
    }
    size_t n_bytes = 0;
    const void *bytes = fusec_result_bytes(result, &n_bytes);
    int failed = run(bytes, n_bytes);
    fusec_result_free(result);
    return failed;
}
