/* Bringing code to a CUDA device: a cubin as it is, PTX by the driver's compiler or from the cache
 * of what it made. See cubin_cache.h. */
#include "device_cuda.h"
#include "error.h"
#include "mem.h"

#include <stdio.h>
#include <string.h>

/* The JIT's own words, on one line. */
static void flatten(char *log) {
    size_t n = strlen(log);
    while (n > 0 && (log[n - 1] == '\n' || log[n - 1] == ' ')) {
        log[--n] = '\0';
    }
    for (; *log; log++) {
        *log = *log == '\n' ? ' ' : *log;
    }
}

static frt_status load_image(CudaState *state, const void *image, frt_error *err) {
    char log[320] = "";
    int options[] = {CUDA_JIT_ERROR_LOG_BUFFER, CUDA_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)(sizeof log - 1)};
    int result = state->api.cuModuleLoadDataEx(&state->module, image, 2, options, values);
    if (result == CUDA_SUCCESS) {
        return FRT_OK;
    }
    state->module = NULL;
    frt_status otherwise = FRT_E_CODE;
    if (result == CUDA_ERROR_NO_BINARY_FOR_GPU) {
        otherwise = FRT_E_ARCH;
    } else if (result == CUDA_ERROR_UNSUPPORTED_PTX_VERSION) {
        otherwise = FRT_E_DRIVER_OLD;
    }
    char doing[360];
    flatten(log);
    snprintf(doing, sizeof doing, "the driver refuses the kernels%s%s", log[0] ? ": " : "", log);
    return cuda_fail(state, result, otherwise, doing, err);
}

/* The cubin lies anywhere in the artifact, but an ELF file is read by words. */
static frt_status load_cubin(CudaState *state, const frt_module *module, frt_error *err) {
    void *aligned = mem_alloc_aligned(module->n_code);
    if (!aligned) {
        return frt_fail_memory(err, module->n_code);
    }
    memcpy(aligned, module->code, module->n_code);
    frt_status status = load_image(state, aligned, err);
    mem_free(aligned);
    return status;
}

/* What a cubin depends on beside the PTX. The driver's number is that of a CUDA version, of which
 * there are several builds. */
static CubinKey key_of(const CudaState *state, const frt_module *module) {
    char made_by[160];
    char build[64];
    port_driver_build(build, sizeof build);
    snprintf(made_by, sizeof made_by, "driver %d build %s sm_%d default options",
             state->driver_version, build, state->sm);
    return cubin_cache_key(made_by, module->code, module->n_code);
}

static bool load_cached(CudaState *state, const CubinKey *key) {
    size_t n_bytes;
    void *cubin = cubin_cache_get(&state->cache, key, &n_bytes);
    if (!cubin) {
        return false;
    }
    int result = state->api.cuModuleLoadDataEx(&state->module, cubin, 0, NULL, NULL);
    mem_free(cubin);
    if (result == CUDA_SUCCESS) {
        return true;
    }
    state->module = NULL;
    cubin_cache_drop(&state->cache, key);
    return false;
}

/* Links the PTX to a cubin, loads and keeps it. On failure the plain way says what is wrong. */
static bool link_and_keep(CudaState *state, const frt_module *module, const CubinKey *key,
                          bool *is_kept) {
    const CudaApi *api = &state->api;
    void *link = NULL;
    void *cubin = NULL;
    size_t n_bytes = 0;
    if (!api->cuLinkCreate || !api->cuLinkAddData || !api->cuLinkComplete || !api->cuLinkDestroy ||
        api->cuLinkCreate(0, NULL, NULL, &link) != CUDA_SUCCESS) {
        return false;
    }
    int result = api->cuLinkAddData(link, CUDA_LINK_INPUT_PTX, (void *)module->code,
                                    module->n_code + 1, "kernels", 0, NULL, NULL);
    if (result == CUDA_SUCCESS) {
        result = api->cuLinkComplete(link, &cubin, &n_bytes);
    }
    if (result == CUDA_SUCCESS) {
        result = api->cuModuleLoadDataEx(&state->module, cubin, 0, NULL, NULL);
    }
    if (result == CUDA_SUCCESS) {
        *is_kept = cubin_cache_put(&state->cache, key, cubin, n_bytes);
    } else {
        state->module = NULL;
    }
    api->cuLinkDestroy(link); /* and with it the cubin */
    return result == CUDA_SUCCESS;
}

static frt_status load_ptx(Device *device, const frt_module *module, frt_error *err) {
    CudaState *state = device->state;
    if (state->cache.is_on) {
        CubinKey key = key_of(state, module);
        device->load.is_cached = load_cached(state, &key);
        if (device->load.is_cached) {
            return FRT_OK;
        }
        device->load.is_compiled = true;
        if (link_and_keep(state, module, &key, &device->load.is_cached)) {
            return FRT_OK;
        }
    }
    device->load.is_compiled = true;
    return load_image(state, module->code, err);
}

frt_status cuda_load(Device *device, const frt_module *module, frt_error *err) {
    CudaState *state = device->state;
    return module->code_kind == FRT_CODE_CUBIN ? load_cubin(state, module, err)
                                               : load_ptx(device, module, err);
}

void cuda_unload(Device *device) {
    CudaState *state = device->state;
    if (state->module) {
        state->api.cuModuleUnload(state->module);
        state->module = NULL;
    }
}
