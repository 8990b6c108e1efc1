/* Runs digits on a GPU inside a program that already has CUDA of its own: its context, its stream
 * and its memory. The runtime enqueues on that stream between the program's own copies, and nothing
 * waits before the end. The driver is opened by hand, so that this builds without a toolkit; a
 * program with <cuda.h> does the same with the functions' names.
 *
 *   fusec dsl/examples/digits.g -o digits.ptx
 *   own_context digits.ptx dsl/examples/digits
 *
 * The second argument is the folder of weights.safetensors, images.npy and labels.npy. Without a
 * driver or a device it says SKIPPED and why. */
#include "held_out.h"

#include <dlfcn.h>
#include <fusert.h>
#include <stdint.h>
#include <stdio.h>

typedef struct Cuda {
    int (*init)(unsigned flags);
    int (*get_device)(int *device, int ordinal);
    int (*create_context)(void **context, unsigned flags, int device);
    int (*destroy_context)(void *context);
    int (*create_stream)(void **stream, unsigned flags);
    int (*synchronize)(void *stream);
    int (*alloc)(uint64_t *data, size_t n_bytes);
    int (*copy_in)(uint64_t device, const void *host, size_t n_bytes, void *stream);
    int (*copy_out)(void *host, uint64_t device, size_t n_bytes, void *stream);
    void *context, *stream;
} Cuda;

static void *symbol(void *library, const char *name, int *n_missing) {
    void *found = dlsym(library, name);
    *n_missing += !found;
    return found;
}

/* A context that is current in this thread and a stream in it; NULL, or why there is none. */
static const char *open_cuda(Cuda *cuda) {
    int n_missing = 0, device;
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return "there is no CUDA driver";
    *(void **)&cuda->init = symbol(library, "cuInit", &n_missing);
    *(void **)&cuda->get_device = symbol(library, "cuDeviceGet", &n_missing);
    *(void **)&cuda->create_context = symbol(library, "cuCtxCreate_v2", &n_missing);
    *(void **)&cuda->destroy_context = symbol(library, "cuCtxDestroy_v2", &n_missing);
    *(void **)&cuda->create_stream = symbol(library, "cuStreamCreate", &n_missing);
    *(void **)&cuda->synchronize = symbol(library, "cuStreamSynchronize", &n_missing);
    *(void **)&cuda->alloc = symbol(library, "cuMemAlloc_v2", &n_missing);
    *(void **)&cuda->copy_in = symbol(library, "cuMemcpyHtoDAsync_v2", &n_missing);
    *(void **)&cuda->copy_out = symbol(library, "cuMemcpyDtoHAsync_v2", &n_missing);
    if (n_missing) return "the CUDA driver is too old";
    if (cuda->init(0) || cuda->get_device(&device, 0)) return "the CUDA driver finds no device";
    if (cuda->create_context(&cuda->context, 0, device)) return "the device gives no context";
    if (cuda->create_stream(&cuda->stream, 1)) return "the device gives no stream";
    return NULL;
}

static frt_status bind(frt_exec *exec, const char *name, uint64_t device, int64_t n, int64_t width,
                       frt_error *err) {
    frt_tensor tensor = {.dtype = FRT_F32, .rank = 2, .dims = {n, width}};
    tensor.data = (void *)(uintptr_t)device;
    return frt_bind(exec, name, &tensor, err);
}

/* In, through and out again on one stream; the probabilities are there when NULL is returned. */
static const char *run(const Cuda *cuda, frt_exec *exec, HeldOut *set, frt_error *err) {
    size_t x_bytes = (size_t)set->n * N_PIXELS * sizeof(float);
    size_t p_bytes = (size_t)set->n * N_DIGITS * sizeof(float);
    uint64_t x, p;
    if (cuda->alloc(&x, x_bytes) || cuda->alloc(&p, p_bytes)) return "out of device memory";
    if (bind(exec, "x", x, set->n, N_PIXELS, err) || bind(exec, "p", p, set->n, N_DIGITS, err) ||
        frt_prepare(exec, err)) /* all that allocates, before the stream gets work */
        return err->message;
    if (cuda->copy_in(x, set->images.data, x_bytes, cuda->stream))
        return "the images cannot be copied";
    if (frt_run(exec, cuda->stream, err)) return err->message;
    if (cuda->copy_out(set->p, p, p_bytes, cuda->stream)) return "the result cannot be copied";
    return cuda->synchronize(cuda->stream) ? "the stream has failed" : NULL;
}

static const char *classify(const Cuda *cuda, const char *path, HeldOut *set, frt_error *err) {
    frt_module *module = NULL;
    frt_program *program = NULL;
    frt_exec *exec = NULL;
    frt_program_options options = FRT_PROGRAM_OPTIONS_INIT;
    options.cu_context = cuda->context;
    options.weights_path = set->weights_path; /* in place of the one that the artifact names */
    const char *error = err->message;
    if (!frt_module_load_file(path, &module, err) &&
        !frt_program_create(module, "digits", &options, &program, err) &&
        !frt_exec_create(program, &exec, err))
        error = run(cuda, exec, set, err);
    if (!error) printf("on %s: ", frt_device_name(program));
    frt_exec_free(exec);
    frt_program_free(program);
    frt_module_free(module);
    return error;
}

int main(int argc, char **argv) {
    Cuda cuda = {0};
    HeldOut set;
    frt_error err = FRT_ERROR_INIT;
    if (argc != 3) return fprintf(stderr, "usage: own_context digits.ptx FOLDER\n"), 2;
    const char *error = open_cuda(&cuda);
    if (error) return printf("SKIPPED %s\n", error), 0;
    error = held_out_read(argv[2], &set);
    if (!error) error = classify(&cuda, argv[1], &set, &err);
    if (error)
        fprintf(stderr, "own_context: %s\n", error);
    else
        held_out_print_right(set.p, set.labels.data, set.n);
    held_out_free(&set);
    cuda.destroy_context(cuda.context); /* with its stream and its memory */
    return error != NULL;
}
