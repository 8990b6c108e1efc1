#include <fusert.h>
#include <stdio.h>

int main(void) {
    const char *image = "  #####      ##     ##    #####    ##      #      ##      #     ";
    float x[64], p[10];
    for (int i = 0; i < 64; i++) x[i] = image[i] == '#';
    frt_error err = FRT_ERROR_INIT;
    frt_module *module = NULL;
    frt_program *program = NULL;
    frt_exec *exec = NULL;
    frt_tensor tx = {x, FRT_F32, 2, {1, 64}}, tp = {p, FRT_F32, 2, {1, 10}};
    if (frt_module_load_file("build/digits.o", &module, &err) ||
        frt_program_create(module, NULL, NULL, &program, &err) ||
        frt_exec_create(program, &exec, &err) || frt_bind(exec, "x", &tx, &err) ||
        frt_bind(exec, "p", &tp, &err) || frt_run(exec, NULL, &err))
        return fprintf(stderr, "%s\n", err.message), 1;
    for (int k = 0; k < 10; k++) printf("%d: %4.1f %%\n", k, 100 * (double)p[k]);
    frt_exec_free(exec), frt_program_free(program), frt_module_free(module);
}
