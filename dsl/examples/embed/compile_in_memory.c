/* Compiles an expression given on the command line and runs it over a table of a and b, all in this
 * process: libfusec makes an object in memory, libfusert runs it.
 *
 *   compile_in_memory 'relu(a) * b + 0.5'
 *
 * A wrong expression gets the compiler's message with its place. */
#include <fusec.h>
#include <fusert.h>
#include <stdio.h>

enum { N_ROWS = 9, TEXT_MAX_BYTES = 4096 };

/* The module of a graph y = expression; NULL, with the reason printed, when there is none. */
static frt_module *compile(const char *expression) {
    static const char form[] = "dim N in 1..1048576\n"
                               "graph g(a: f32[N], b: f32[N]) -> (y: f32[N]) {\n"
                               "  y = %s\n}\n";
    char text[TEXT_MAX_BYTES];
    fusec_result *result = NULL;
    fusec_options options = FUSEC_OPTIONS_INIT;
    frt_error err = FRT_ERROR_INIT;
    frt_module *module = NULL;
    int n_bytes = snprintf(text, sizeof text, form, expression);
    if (n_bytes < 0 || n_bytes >= TEXT_MAX_BYTES) {
        fprintf(stderr, "the expression is too long\n");
        return NULL;
    }
    options.kind = FUSEC_OBJECT;
    options.target = "cpu";
    options.source_name = "expression.g";
    fusec_status status = fusec_compile(text, (size_t)n_bytes, &options, &result);
    fputs(result ? fusec_result_messages(result) : "out of memory\n", stderr);
    if (status == FUSEC_OK) {
        size_t artifact_bytes;
        const void *artifact = fusec_result_bytes(result, &artifact_bytes);
        if (frt_module_load_memory(artifact, artifact_bytes, &module, &err))
            fprintf(stderr, "%s\n", err.message);
    }
    fusec_result_free(result);
    return module;
}

static frt_status run(frt_module *module, float *a, float *b, float *y, frt_error *err) {
    float *const data[3] = {a, b, y};
    static const char *const names[3] = {"a", "b", "y"};
    frt_program *program = NULL;
    frt_exec *exec = NULL;
    frt_status status = frt_program_create(module, NULL, NULL, &program, err);
    if (!status) status = frt_exec_create(program, &exec, err);
    for (int i = 0; i < 3 && !status; i++) {
        frt_tensor tensor = {.data = data[i], .dtype = FRT_F32, .rank = 1, .dims = {N_ROWS}};
        status = frt_bind(exec, names[i], &tensor, err);
    }
    if (!status) status = frt_run(exec, NULL, err);
    frt_exec_free(exec);
    frt_program_free(program);
    return status;
}

int main(int argc, char **argv) {
    float a[N_ROWS], b[N_ROWS], y[N_ROWS];
    frt_error err = FRT_ERROR_INIT;
    frt_module *module = compile(argc > 1 ? argv[1] : "relu(a) * b + 0.5");
    if (!module) return 1;
    for (int i = 0; i < N_ROWS; i++) a[i] = (float)(i - 4) / 4, b[i] = (float)(i + 1);
    frt_status status = run(module, a, b, y, &err);
    frt_module_free(module);
    if (status) return fprintf(stderr, "%s\n", err.message), 1;
    for (int i = 0; i < N_ROWS; i++)
        printf("a = %g  b = %g  y = %.6g\n", (double)a[i], (double)b[i], (double)y[i]);
    return 0;
}
