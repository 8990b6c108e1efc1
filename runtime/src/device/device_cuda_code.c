/* Loading code on a CUDA device. A cubin is loaded as it is. PTX goes through the driver's
 * compiler, or its cubin comes from the cache (cubin_cache.h). */
#include "device/device_cuda.h"
#include "host/error.h"
#include "host/mem.h"

#include <stdio.h>
#include <string.h>

/* Puts the compiler's log on one line, for a message. */
static void flatten(char *log) {
    size_t n = strlen(log);
    while (n > 0 && (log[n - 1] == '\n' || log[n - 1] == ' ')) {
        log[--n] = '\0';
    }
    for (; *log; log++) {
        *log = *log == '\n' ? ' ' : *log;
    }
}

/* Code to load: PTX with a NUL, or a cubin. */
typedef struct Source {
    const char *bytes;
    size_t n_bytes;
    const Piece *only; /* the only function in it; NULL: there may be more */
} Source;

/* Loads an image with `n_threads` of the driver's compiler. Threads cost a single function 10 ms or
 * more. */
static frt_status load_image(CudaState *state, const Source *source, const void *image,
                             int n_threads, void **handle, frt_error *err) {
    char log[320] = "";
    int options[] = {CUDA_JIT_ERROR_LOG_BUFFER, CUDA_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                     CUDA_JIT_SPLIT_COMPILE};
    void *values[] = {log, (void *)(uintptr_t)(sizeof log - 1), (void *)(uintptr_t)n_threads};
    void *module = NULL;
    unsigned n_options = n_threads > 1 ? 3 : 2;
    int result = state->api.cuModuleLoadDataEx(&module, image, n_options, options, values);
    if (result == CUDA_SUCCESS) {
        *handle = module;
        return FRT_OK;
    }
    frt_status otherwise = FRT_E_CODE;
    if (result == CUDA_ERROR_NO_BINARY_FOR_GPU) {
        otherwise = FRT_E_ARCH;
    } else if (result == CUDA_ERROR_UNSUPPORTED_PTX_VERSION) {
        otherwise = FRT_E_DRIVER_OLD;
    }
    char doing[512];
    char which[160] = "the kernels";
    if (source->only) {
        snprintf(which, sizeof which, "kernel %.*s", (int)source->only->n_symbol,
                 source->only->symbol);
    }
    flatten(log);
    snprintf(doing, sizeof doing, "the driver refuses %s%s%s", which, log[0] ? ": " : "", log);
    return cuda_fail(state, result, otherwise, doing, err);
}

/* The driver reads an ELF file by words, and a cubin has no alignment in the artifact. */
static frt_status load_cubin(CudaState *state, const Source *source, void **handle,
                             frt_error *err) {
    void *aligned = mem_alloc_aligned(source->n_bytes);
    if (!aligned) {
        return frt_fail_memory(err, source->n_bytes);
    }
    memcpy(aligned, source->bytes, source->n_bytes);
    frt_status status = load_image(state, source, aligned, 1, handle, err);
    mem_free(aligned);
    return status;
}

/* The cache key names the driver build: several builds share one CUDA version number. */
static CubinKey key_of(const CudaState *state, const Source *source) {
    char made_by[160];
    char build[64];
    port_driver_build(build, sizeof build);
    snprintf(made_by, sizeof made_by, "driver %d build %s sm_%d default options",
             state->driver_version, build, state->sm);
    return cubin_cache_key(made_by, source->bytes, source->n_bytes);
}

static bool load_cached(CudaState *state, const CubinKey *key, void **handle) {
    size_t n_bytes;
    void *module = NULL;
    void *cubin = cubin_cache_get(&state->cache, key, &n_bytes);
    if (!cubin) {
        return false;
    }
    int result = state->api.cuModuleLoadDataEx(&module, cubin, 0, NULL, NULL);
    mem_free(cubin);
    if (result == CUDA_SUCCESS) {
        *handle = module;
        return true;
    }
    cubin_cache_drop(&state->cache, key);
    return false;
}

/* Links the PTX to a cubin, loads it and stores it in the cache. On failure the caller loads the
 * PTX directly, and that call reports the error. */
static bool link_and_keep(CudaState *state, const Source *source, const CubinKey *key,
                          DeviceCode *code) {
    const CudaApi *api = &state->api;
    void *link = NULL;
    void *cubin = NULL;
    void *module = NULL;
    size_t n_bytes = 0;
    if (!api->cuLinkCreate || !api->cuLinkAddData || !api->cuLinkComplete || !api->cuLinkDestroy ||
        api->cuLinkCreate(0, NULL, NULL, &link) != CUDA_SUCCESS) {
        return false;
    }
    int result = api->cuLinkAddData(link, CUDA_LINK_INPUT_PTX, (void *)(uintptr_t)source->bytes,
                                    source->n_bytes + 1, "kernels", 0, NULL, NULL);
    if (result == CUDA_SUCCESS) {
        result = api->cuLinkComplete(link, &cubin, &n_bytes);
    }
    if (result == CUDA_SUCCESS) {
        result = api->cuModuleLoadDataEx(&module, cubin, 0, NULL, NULL);
    }
    if (result == CUDA_SUCCESS) {
        code->handle = module;
        code->is_cached = cubin_cache_put(&state->cache, key, cubin, n_bytes);
    }
    api->cuLinkDestroy(link); /* this also frees the cubin */
    return result == CUDA_SUCCESS;
}

static frt_status load_ptx(CudaState *state, const Source *source, DeviceCode *code,
                           frt_error *err) {
    if (state->cache.is_on) {
        CubinKey key = key_of(state, source);
        code->is_cached = load_cached(state, &key, &code->handle);
        if (code->is_cached) {
            return FRT_OK;
        }
        code->is_compiled = true;
        if (link_and_keep(state, source, &key, code)) {
            return FRT_OK;
        }
    }
    code->is_compiled = true;
    int n_threads = source->only ? 1 : state->n_compilers;
    return load_image(state, source, source->bytes, n_threads, &code->handle, err);
}

static frt_status load_functions(CudaState *state, const frt_module *module, const uint32_t *pieces,
                                 uint32_t n, DeviceCode *code, frt_error *err) {
    size_t n_bytes;
    char *ptx = pieces_join(module, pieces, n, &n_bytes);
    if (!ptx) {
        return frt_fail_memory(err, n_bytes);
    }
    Source source = {ptx, n_bytes, n == 1 ? &module->pieces[*pieces] : NULL};
    frt_status status = load_ptx(state, &source, code, err);
    mem_free(ptx);
    return status;
}

frt_status cuda_load(Device *device, const frt_module *module, const uint32_t *pieces, uint32_t n,
                     DeviceCode *code, frt_error *err) {
    CudaState *state = device->state;
    Source whole = {module->code, module->n_code, NULL};
    if (!pieces_are_one(module)) {
        return load_functions(state, module, pieces, n, code, err);
    }
    return module->code_kind == FRT_CODE_CUBIN ? load_cubin(state, &whole, &code->handle, err)
                                               : load_ptx(state, &whole, code, err);
}

void cuda_unload(Device *device, void *handle) {
    CudaState *state = device->state;
    state->api.cuModuleUnload(handle);
}
