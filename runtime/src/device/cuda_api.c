/* Finding the driver. The opened library is the runtime's only global state. It stays open, because
 * other users of CUDA in the process share it anyway. */
#include "device/cuda_api.h"

#include "host/error.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

/* How symbols are found: by the caller's lookup, else by cuGetProcAddress, else by dlsym. */
typedef struct Finder {
    void *(*lookup)(void *ctx, const char *symbol);
    void *ctx;
    void *library;
    int (*get)(const char *symbol, void **function, int version, uint64_t flags);
    int (*get_v2)(const char *symbol, void **function, int version, uint64_t flags, int *found);
} Finder;

static pthread_mutex_t library_lock = PTHREAD_MUTEX_INITIALIZER;
static void *library; /* libcuda, guarded by the lock */

static frt_status open_library(void **result, frt_error *err) {
    char reason[200] = "";
    pthread_mutex_lock(&library_lock);
    if (!library) {
        library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    }
    if (!library) {
        const char *why = dlerror();
        strncpy(reason, why ? why : "", sizeof reason - 1);
        library = dlopen("libcuda.so", RTLD_NOW | RTLD_LOCAL);
    }
    *result = library;
    pthread_mutex_unlock(&library_lock);
    return *result ? FRT_OK
                   : frt_fail(err, FRT_E_NO_DRIVER, "no CUDA driver on this machine (%s)", reason);
}

/* ISO C has no conversion between object and function pointers; POSIX gives them one
 * representation. */
static void copy_function(void *to, void *function) {
    memcpy(to, &function, sizeof function);
}

static frt_status make_finder(Finder *finder, const frt_program_options *options, frt_error *err) {
    *finder = (Finder){.lookup = options->cuda_lookup, .ctx = options->cuda_lookup_ctx};
    if (finder->lookup) {
        return FRT_OK;
    }
    frt_status status = open_library(&finder->library, err);
    if (status) {
        return status;
    }
    copy_function(&finder->get_v2, dlsym(finder->library, "cuGetProcAddress_v2"));
    copy_function(&finder->get, dlsym(finder->library, "cuGetProcAddress"));
    if (!finder->get && !finder->get_v2) {
        return frt_fail(err, FRT_E_DRIVER_OLD,
                        "the CUDA driver is older than 11.3: it has no cuGetProcAddress");
    }
    return FRT_OK;
}

static void *find(const Finder *finder, const char *base, const char *symbol, int version) {
    void *function = NULL;
    if (finder->lookup) {
        return finder->lookup(finder->ctx, symbol);
    }
    int found = 0;
    int result = finder->get_v2 ? finder->get_v2(base, &function, version, 0, &found)
                                : finder->get(base, &function, version, 0);
    return result == CUDA_SUCCESS && function ? function : dlsym(finder->library, symbol);
}

frt_status cuda_api_load(CudaApi *api, const frt_program_options *options, frt_error *err) {
    Finder finder;
    const char *missing = NULL;
    *api = (CudaApi){0};
    frt_status status = make_finder(&finder, options, err);
    if (status) {
        return status;
    }
#define X(base, symbol, version, required, params)                     \
    copy_function(&api->base, find(&finder, #base, #symbol, version)); \
    missing = (required) && !api->base && !missing ? #symbol : missing;
#include "device/cuda_api.def"
#undef X
    int version = 0;
    if (api->cuDriverGetVersion && api->cuDriverGetVersion(&version) == CUDA_SUCCESS &&
        version < CUDA_OLDEST_DRIVER) {
        return frt_fail(err, FRT_E_DRIVER_OLD,
                        "the CUDA driver supports CUDA %d.%d, at least %d.%d is needed",
                        version / 1000, version % 1000 / 10, CUDA_OLDEST_DRIVER / 1000,
                        CUDA_OLDEST_DRIVER % 1000 / 10);
    }
    if (missing) {
        return frt_fail(err, FRT_E_DRIVER_SYMBOL, "the CUDA driver lacks %s", missing);
    }
    return FRT_OK;
}
