/* Classifies the held-out digits on the CPU: an object file made by the compiler, its weights and
 * the runtime are all there is. The images of a batch are spread over all cores.
 *
 *   fusec dsl/examples/digits.g -o digits.o
 *   cpu_only digits.o dsl/examples/digits
 *
 * The second argument is the folder of weights.safetensors, images.npy and labels.npy. */
#include "held_out.h"

#include <fusert.h>
#include <stdio.h>

/* Runs the artifact at `path` over all images at once. */
static frt_status classify(const char *path, HeldOut *set, frt_error *err) {
    frt_module *module = NULL;
    frt_program *program = NULL;
    frt_exec *exec = NULL;
    frt_program_options options = FRT_PROGRAM_OPTIONS_INIT;
    options.weights_path = set->weights_path; /* in place of the one that the artifact names */
    frt_tensor tx = {.dtype = FRT_F32, .rank = 2, .dims = {set->n, N_PIXELS}};
    frt_tensor tp = {.dtype = FRT_F32, .rank = 2, .dims = {set->n, N_DIGITS}};
    tx.data = set->images.data;
    tp.data = set->p;
    frt_status status = frt_module_load_file(path, &module, err);
    if (!status) status = frt_program_create(module, "digits", &options, &program, err);
    if (!status) status = frt_exec_create(program, &exec, err);
    if (!status) status = frt_bind(exec, "x", &tx, err);
    if (!status) status = frt_bind(exec, "p", &tp, err);
    if (!status) status = frt_run(exec, NULL, err);
    if (!status) printf("on %d threads: ", (int)frt_program_n_threads(program));
    frt_exec_free(exec);
    frt_program_free(program);
    frt_module_free(module);
    return status;
}

int main(int argc, char **argv) {
    HeldOut set;
    frt_error err = FRT_ERROR_INIT;
    if (argc != 3) return fprintf(stderr, "usage: cpu_only digits.o FOLDER\n"), 2;
    const char *error = held_out_read(argv[2], &set);
    if (!error && classify(argv[1], &set, &err)) error = err.message;
    if (error)
        fprintf(stderr, "cpu_only: %s\n", error);
    else
        held_out_print_right(set.p, set.labels.data, set.n);
    held_out_free(&set);
    return error != NULL;
}
