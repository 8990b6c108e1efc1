/* See noise.h. */
#include "lib/noise.h"

#include "lib/compile.h"

#include <dlfcn.h>
#include <fusert.h>

enum { NON_BLOCKING = 1, N_TENSORS = 4 };

/* Blocks that use memory, tensor cores or neither, and have shared memory. */
static const char text[] = "graph noise(x: f32[2097152], a: bf16[640, 640]) -> (y: f32[2097152], "
                           "p: bf16[640, 640]) {\n"
                           "  y = x * 0.5 + 1.0\n  p = softmax(a @ a, axis=1)\n}\n";
static const struct {
    const char *name;
    frt_dtype dtype;
    int32_t rank;
    int64_t dims[2];
    size_t n_bytes;
} tensors[N_TENSORS] = {{"x", FRT_F32, 1, {2097152}, 8 << 20},
                        {"a", FRT_BF16, 2, {640, 640}, 640 * 640 * 2},
                        {"y", FRT_F32, 1, {2097152}, 8 << 20},
                        {"p", FRT_BF16, 2, {640, 640}, 640 * 640 * 2}};

struct Noise {
    frt_module *module;
    frt_program *program;
    frt_exec *exec;
    void *data[N_TENSORS];
    void *stream;
};

static bool make_stream(Noise *noise) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW), *context = NULL;
    int (*retain)(void **, int), (*push)(void *), (*pop)(void **), (*create)(void **, unsigned);
    if (!library) return false;
    *(void **)&retain = dlsym(library, "cuDevicePrimaryCtxRetain");
    *(void **)&push = dlsym(library, "cuCtxPushCurrent_v2");
    *(void **)&pop = dlsym(library, "cuCtxPopCurrent_v2");
    *(void **)&create = dlsym(library, "cuStreamCreate");
    if (!retain || !push || !pop || !create || retain(&context, 0) || push(context)) return false;
    bool is_made = create(&noise->stream, NON_BLOCKING) == 0;
    pop(&context);
    return is_made;
}

static bool bind_tensors(Noise *noise, frt_error *error) {
    for (int i = 0; i < N_TENSORS; i++) {
        if (frt_device_alloc(noise->program, tensors[i].n_bytes, &noise->data[i], error))
            return false;
        frt_tensor tensor = {.data = noise->data[i],
                             .dtype = tensors[i].dtype,
                             .rank = tensors[i].rank,
                             .dims = {tensors[i].dims[0], tensors[i].dims[1]}};
        if (frt_bind(noise->exec, tensors[i].name, &tensor, error)) return false;
    }
    return true;
}

static bool load(Noise *noise, const Compiled *compiled, frt_error *error) {
    return !frt_module_load_memory(compiled->bytes, compiled->n_bytes, &noise->module, error) &&
           !frt_program_create(noise->module, NULL, NULL, &noise->program, error) &&
           !frt_exec_create(noise->program, &noise->exec, error) && bind_tensors(noise, error) &&
           !frt_prepare(noise->exec, error);
}

Noise *noise_new(Arena *arena, const Target *target, const char **why) {
    Noise *noise = arena_array(arena, Noise, 1);
    frt_error error = FRT_ERROR_INIT;
    Compiled compiled;
    bool is_compiled = compile_source(&compiled, text, target, COMPILE_FUSED);
    if (!is_compiled)
        *why = str_format(arena, "%s", compiled.messages);
    else if (!load(noise, &compiled, &error))
        *why = str_format(arena, "%s", error.message);
    else if (!make_stream(noise))
        *why = "no stream of the driver's";
    compile_free(&compiled);
    if (noise->stream) return noise;
    noise_free(noise);
    return NULL;
}

void noise_free(Noise *noise) {
    if (!noise) return;
    if (noise->stream) frt_sync(noise->program, noise->stream, NULL);
    frt_exec_free(noise->exec);
    for (int i = 0; i < N_TENSORS && noise->program; i++)
        if (noise->data[i]) frt_device_free(noise->program, noise->data[i], tensors[i].n_bytes);
    frt_program_free(noise->program);
    frt_module_free(noise->module);
}

void noise_start(Noise *noise, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) frt_run(noise->exec, noise->stream, NULL);
}
