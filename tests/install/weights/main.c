/* Runs digits.g on an empty image, from the artifact at argv[1] or, EMBEDDED, from the one that is
 * linked in. The artifact knows where its weights are. Ten probabilities add up to one. */
#include <fusert.h>
#include <stdio.h>
#ifdef EMBEDDED
#include "digits.h"
#endif

static frt_status load(int argc, char **argv, frt_module **module, frt_error *err) {
#ifdef EMBEDDED
    if (argc < 2) return digits_load(module, err);
#endif
    return frt_module_load_file(argc > 1 ? argv[1] : "digits.o", module, err);
}

int main(int argc, char **argv) {
    float x[64] = {0}, p[10], sum = 0;
    frt_error err = FRT_ERROR_INIT;
    frt_module *module = NULL;
    frt_program *program = NULL;
    frt_exec *exec = NULL;
    frt_tensor tx = {x, FRT_F32, 2, {1, 64}}, tp = {p, FRT_F32, 2, {1, 10}};
    if (load(argc, argv, &module, &err) || frt_program_create(module, NULL, NULL, &program, &err) ||
        frt_exec_create(program, &exec, &err) || frt_bind(exec, "x", &tx, &err) ||
        frt_bind(exec, "p", &tp, &err) || frt_run(exec, NULL, &err))
        return fprintf(stderr, "%s\n", err.message), 1;
    for (int k = 0; k < 10; k++) sum += p[k];
    frt_exec_free(exec), frt_program_free(program), frt_module_free(module);
    printf("%.3f\n", (double)sum);
    return !(sum > 0.999f && sum < 1.001f);
}
