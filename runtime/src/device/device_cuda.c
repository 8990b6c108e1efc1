/* A CUDA device: context, code, memory, launches and timing through the driver table. */
#include "device/device_cuda.h"
#include "host/error.h"
#include "host/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Errors that end the context; cuda.h says "the process must be terminated and relaunched". */
static bool is_fatal(int result) {
    return result == 214 || result == 220 || result == 700 || result == 702 || result == 709 ||
           result == 710 || (result >= 714 && result <= 719);
}

static const char *error_name(const CudaState *state, int result) {
    const char *name = NULL;
    state->api.cuGetErrorName(result, &name);
    return name ? name : "unknown CUDA error";
}

static frt_status status_of(int result, frt_status otherwise) {
    if (is_fatal(result)) {
        return FRT_E_DEVICE_LOST;
    }
    return result == CUDA_ERROR_OUT_OF_MEMORY ? FRT_E_OUT_OF_MEMORY : otherwise;
}

frt_status cuda_fail(CudaState *state, int result, frt_status otherwise, const char *doing,
                     frt_error *err) {
    if (is_fatal(result)) {
        atomic_store(&state->lost, result);
    }
    frt_status status = status_of(result, otherwise);
    frt_fail(err, status, "%s: %s (%d)%s", doing, error_name(state, result), result,
             is_fatal(result) ? "; the CUDA context is lost, only a new process can use it" : "");
    if (err) {
        err->cuda = result;
    }
    return status;
}

frt_status cuda_check(CudaState *state, int result, const char *doing, frt_error *err) {
    return result == CUDA_SUCCESS ? FRT_OK : cuda_fail(state, result, FRT_E_DRIVER, doing, err);
}

static frt_status find_device(CudaState *state, const frt_program_options *options,
                              frt_error *err) {
    const CudaApi *api = &state->api;
    int count = 0;
    int result = api->cuInit(0);
    if (result == CUDA_ERROR_NO_DEVICE) {
        return frt_fail(err, FRT_E_NO_DEVICE, "there is no CUDA device");
    }
    if (result == CUDA_SUCCESS) {
        result = api->cuDeviceGetCount(&count);
    }
    if (result != CUDA_SUCCESS) {
        return cuda_fail(state, result, FRT_E_DRIVER, "starting the CUDA driver", err);
    }
    if (options->device_ordinal < 0 || options->device_ordinal >= count) {
        return frt_fail(err, FRT_E_NO_DEVICE, "CUDA device %d was asked for, but there are %d",
                        options->device_ordinal, count);
    }
    return cuda_check(state, api->cuDeviceGet(&state->device, options->device_ordinal),
                      "finding the CUDA device", err);
}

/* Finds the device of the caller's context. */
static frt_status find_context_device(CudaState *state, frt_error *err) {
    const CudaApi *api = &state->api;
    void *popped;
    int result = api->cuInit(0);
    if (result == CUDA_SUCCESS) {
        result = api->cuCtxPushCurrent(state->context);
    }
    if (result == CUDA_SUCCESS) {
        result = api->cuCtxGetDevice(&state->device);
        api->cuCtxPopCurrent(&popped);
    }
    return cuda_check(state, result, "using the caller's CUDA context", err);
}

static frt_status read_attributes(CudaState *state, Device *device, frt_error *err) {
    const CudaApi *api = &state->api;
    int major = 0;
    int minor = 0;
    int clock_khz = 0;
    const struct {
        int attribute;
        int *value;
    } wanted[] = {{CUDA_DEVICE_MAJOR, &major},
                  {CUDA_DEVICE_MINOR, &minor},
                  {CUDA_DEVICE_MAX_SHARED_OPTIN, &state->max_shared},
                  {CUDA_DEVICE_N_PROCESSORS, &device->info.n_processors},
                  {CUDA_DEVICE_CLOCK_KHZ, &clock_khz}};
    int result = CUDA_SUCCESS;
    for (size_t i = 0; result == CUDA_SUCCESS && i < sizeof wanted / sizeof *wanted; i++) {
        result = api->cuDeviceGetAttribute(wanted[i].value, wanted[i].attribute, state->device);
    }
    if (result == CUDA_SUCCESS) {
        result = api->cuDeviceGetName(device->name, (int)sizeof device->name, state->device);
    }
    if (result == CUDA_SUCCESS) {
        result = api->cuDriverGetVersion(&state->driver_version);
    }
    state->sm = major * 10 + minor;
    device->info.compute_capability = state->sm;
    device->info.driver_version = state->driver_version;
    device->info.clock_mhz = clock_khz / 1000;
    return cuda_check(state, result, "asking the CUDA device what it is", err);
}

/* "sm_90" runs on 9.0 and later (PTX) or on 9.x (cubin), "sm_90a" on 9.0 only, and "sm_100f" on its
 * major version only. */
static frt_status check_arch(const CudaState *state, const frt_module *module,
                             const char *device_name, frt_error *err) {
    const char *arch = module->manifest.arch;
    int sm = 0;
    char suffix = '\0';
    char rest = '\0';
    int n = sscanf(arch, "sm_%4d%c%c", &sm, &suffix, &rest);
    bool is_known = n == 1 || (n == 2 && (suffix == 'a' || suffix == 'f'));
    if (!is_known || sm < 10) {
        return frt_fail(err, FRT_E_ARCH, "the artifact is for %s, which is no known architecture",
                        arch);
    }
    bool is_same_major = sm / 10 == state->sm / 10;
    bool fits = sm <= state->sm;
    if (suffix == 'a') {
        fits = sm == state->sm;
    } else if (suffix == 'f' || module->code_kind == FRT_CODE_CUBIN) {
        fits = fits && is_same_major;
    }
    if (!fits) {
        return frt_fail(err, FRT_E_ARCH, "the artifact is for %s, but %s is sm_%d", arch,
                        device_name, state->sm);
    }
    return FRT_OK;
}

static frt_status open_context(CudaState *state, const frt_program_options *options,
                               frt_error *err) {
    state->context = options->cu_context;
    if (state->context) {
        return find_context_device(state, err);
    }
    return find_device(state, options, err);
}

/* Chooses how to load code. The driver compiles one module at a time (version 580: two threads gain
 * nothing), and each module costs 7 ms, so pieces needed together are loaded as one. From 13.0 on
 * the driver compiles the functions of one module in several threads, with the same result. With
 * the cache it is different: the driver's linker runs in any number of threads, and a cubin per
 * function is found again in any combination. */
static void choose_loading(Device *device, const frt_program_options *options) {
    enum { MOST_LOADERS = 8 };
    CudaState *state = device->state;
    int n = options->n_threads ? options->n_threads : port_cpu_count();
    n = n < MOST_LOADERS ? n : MOST_LOADERS;
    device->loads_together = !state->cache.is_on;
    device->n_loaders = device->loads_together ? 1 : n;
    state->n_compilers =
        device->loads_together && state->driver_version >= CUDA_SPLIT_DRIVER ? n : 1;
}

static frt_status cuda_open(Device *device, const frt_module *module,
                            const frt_program_options *options, frt_error *err) {
    CudaState *state = mem_alloc(1, sizeof *state);
    if (!state) {
        return frt_fail_memory(err, sizeof *state);
    }
    frt_status status = cuda_api_load(&state->api, options, err);
    if (!status) {
        status = open_context(state, options, err);
    }
    if (!status) {
        status = read_attributes(state, device, err);
    }
    if (!status) {
        status = check_arch(state, module, device->name, err);
    }
    if (!status && !state->context) {
        status =
            cuda_check(state, state->api.cuDevicePrimaryCtxRetain(&state->context, state->device),
                       "making a CUDA context", err);
        state->is_primary = !status;
    }
    if (status) {
        mem_free(state);
        return status;
    }
    device->has_maps = state->api.cuTensorMapEncodeTiled && state->api.cuTensorMapEncodeIm2col;
    device->has_overlap = !options->in_order && state->api.cuLaunchKernelEx != NULL &&
                          state->driver_version >= CUDA_OVERLAP_DRIVER;
    device->has_graphs = cuda_has_graphs(&state->api);
    cubin_cache_open(&state->cache, options);
    device->state = state;
    choose_loading(device, options);
    return FRT_OK;
}

static void cuda_close(Device *device) {
    CudaState *state = device->state;
    if (state->is_primary) {
        state->api.cuDevicePrimaryCtxRelease(state->device);
    }
    mem_free(state);
}

static frt_status cuda_enter(Device *device, DeviceScope *scope, frt_error *err) {
    CudaState *state = device->state;
    (void)scope;
    int lost = atomic_load(&state->lost);
    if (lost) {
        return cuda_fail(state, lost, FRT_E_DEVICE_LOST, "the CUDA device was lost earlier", err);
    }
    return cuda_check(state, state->api.cuCtxPushCurrent(state->context),
                      "making the CUDA context current", err);
}

static void cuda_leave(Device *device, const DeviceScope *scope) {
    CudaState *state = device->state;
    void *popped;
    (void)scope;
    state->api.cuCtxPopCurrent(&popped);
}

/* By default a block has at most 48 KiB of shared memory, on any device. */
static int allow_shared(const CudaState *state, void *function, int64_t max_shared) {
    int n_static = 0;
    int result = state->api.cuFuncGetAttribute(&n_static, CUDA_FUNC_SHARED_BYTES, function);
    if (result != CUDA_SUCCESS || (max_shared >= 0 && max_shared + n_static <= 48 * 1024)) {
        return result;
    }
    return state->api.cuFuncSetAttribute(function, CUDA_FUNC_MAX_DYNAMIC_SHARED,
                                         state->max_shared - n_static);
}

static frt_status cuda_find(Device *device, void *handle, const char *symbol, int64_t max_shared,
                            void **kernel, frt_error *err) {
    CudaState *state = device->state;
    char doing[160];
    snprintf(doing, sizeof doing, "finding kernel %.120s", symbol);
    int result = state->api.cuModuleGetFunction(kernel, handle, symbol);
    /* A kernel loaded at its first launch would make that launch uncapturable. */
    if (result == CUDA_SUCCESS && state->api.cuFuncLoad) {
        result = state->api.cuFuncLoad(*kernel);
    }
    if (result == CUDA_SUCCESS) {
        result = allow_shared(state, *kernel, max_shared);
    }
    return result == CUDA_SUCCESS ? FRT_OK : cuda_fail(state, result, FRT_E_CODE, doing, err);
}

static frt_status cuda_describe(const Device *device, void *kernel, frt_kernel_info *info,
                                frt_error *err) {
    CudaState *state = device->state;
    const CudaApi *api = &state->api;
    int result = api->cuFuncGetAttribute(&info->n_registers, CUDA_FUNC_N_REGISTERS, kernel);
    if (result == CUDA_SUCCESS) {
        result = api->cuFuncGetAttribute(&info->local_bytes, CUDA_FUNC_LOCAL_BYTES, kernel);
    }
    if (result == CUDA_SUCCESS) {
        result = api->cuFuncGetAttribute(&info->shared_bytes, CUDA_FUNC_SHARED_BYTES, kernel);
    }
    return cuda_check(state, result, "asking the driver about a kernel", err);
}

static frt_status cuda_alloc(Device *device, size_t n_bytes, void **data, frt_error *err) {
    CudaState *state = device->state;
    char doing[80];
    uint64_t address = 0;
    snprintf(doing, sizeof doing, "allocating %zu bytes of device memory", n_bytes);
    frt_status status = cuda_check(state, state->api.cuMemAlloc(&address, n_bytes), doing, err);
    if (!status) {
        *data = (void *)(uintptr_t)address;
    }
    return status;
}

static void cuda_free(Device *device, void *data) {
    CudaState *state = device->state;
    state->api.cuMemFree((uint64_t)(uintptr_t)data);
}

static frt_status cuda_sync_all(Device *device, frt_error *err) {
    CudaState *state = device->state;
    return cuda_check(state, state->api.cuCtxSynchronize(), "waiting for the device", err);
}

/* cuMemcpyHtoD orders itself after the legacy stream only. From pageable memory it may also return
 * before the bytes have arrived. Non-blocking streams need both, so both are awaited here. */
static frt_status cuda_upload(Device *device, void *to, const void *from, size_t n,
                              frt_error *err) {
    CudaState *state = device->state;
    frt_status status = cuda_sync_all(device, err);
    if (!status) {
        status = cuda_check(state, state->api.cuMemcpyHtoD((uint64_t)(uintptr_t)to, from, n),
                            "copying to the device", err);
    }
    return status ? status : cuda_sync_all(device, err);
}

static frt_status cuda_download(Device *device, void *to, const void *from, size_t n,
                                frt_error *err) {
    CudaState *state = device->state;
    frt_status status = cuda_sync_all(device, err);
    return status ? status
                  : cuda_check(state, state->api.cuMemcpyDtoH(to, (uint64_t)(uintptr_t)from, n),
                               "copying from the device", err);
}

enum { CUDA_MAP_TF32 = 11 };

/* The CUtensorMapDataType of a map's elements. */
static int map_dtype(const MapSpec *spec) {
    static const int types[FRT_DTYPE_COUNT] = {
#define X(symbol, number, name, safetensors, bytes, map) [number] = map,
#include <frt_dtype.def>
#undef X
    };
    return spec->is_tf32 ? CUDA_MAP_TF32 : types[spec->dtype];
}

static frt_status cuda_encode_map(Device *device, const MapSpec *spec, void *map, frt_error *err) {
    CudaState *state = device->state;
    int swizzle = spec->swizzle == 128 ? 3 : spec->swizzle == 64 ? 2 : spec->swizzle == 32 ? 1 : 0;
    int result = spec->is_im2col
                     ? state->api.cuTensorMapEncodeIm2col(
                           map, map_dtype(spec), spec->rank, spec->data, spec->sizes,
                           spec->stride_bytes + 1, spec->lower + 1, spec->upper + 1, spec->box[0],
                           spec->box[spec->rank - 1], spec->steps, CUDA_MAP_INTERLEAVE_NONE,
                           swizzle, CUDA_MAP_L2_PROMOTION_256, CUDA_MAP_FILL_ZEROS)
                     : state->api.cuTensorMapEncodeTiled(
                           map, map_dtype(spec), spec->rank, spec->data, spec->sizes,
                           spec->stride_bytes + 1, spec->box, spec->steps, CUDA_MAP_INTERLEAVE_NONE,
                           swizzle, CUDA_MAP_L2_PROMOTION_256, CUDA_MAP_FILL_ZEROS);
    return cuda_check(state, result, "describing a tensor to the copy engine", err);
}

/* PDL: the launch may begin while the kernel before it in the stream ends, if that kernel allows
 * it; this kernel waits at its entry. After anything but a kernel, the launch begins when that has
 * ended. */
static int launch_overlapping(const CudaState *state, const Launch *launch, void *stream) {
    CudaLaunchAttribute overlap = {.id = CUDA_LAUNCH_OVERLAP, .value = 1};
    CudaLaunchConfig config = {.grid = {(unsigned)launch->grid, 1, 1},
                               .block = {(unsigned)launch->block, 1, 1},
                               .shared_bytes = (unsigned)launch->shared,
                               .stream = stream,
                               .attributes = &overlap,
                               .n_attributes = 1};
    return state->api.cuLaunchKernelEx(&config, launch->kernel, launch->params, NULL);
}

static int launch_in_order(const CudaState *state, const Launch *launch, void *stream) {
    return state->api.cuLaunchKernel(launch->kernel, (unsigned)launch->grid, 1, 1,
                                     (unsigned)launch->block, 1, 1, (unsigned)launch->shared,
                                     stream, launch->params, NULL);
}

static frt_status cuda_launch(Device *device, const Launch *launch, void *stream, frt_error *err) {
    CudaState *state = device->state;
    int result = launch->overlaps ? launch_overlapping(state, launch, stream)
                                  : launch_in_order(state, launch, stream);
    if (result == CUDA_SUCCESS) {
        return FRT_OK;
    }
    char doing[240];
    snprintf(doing, sizeof doing,
             "launching kernel %.100s (grid %" PRId64 ", block %d, %d bytes shared)", launch->label,
             launch->grid, launch->block, launch->shared);
    return cuda_fail(state, result, FRT_E_LAUNCH, doing, err);
}

static frt_status cuda_copy(Device *device, void *to, const void *from, size_t n_bytes,
                            void *stream, frt_error *err) {
    CudaState *state = device->state;
    int result = state->api.cuMemcpyDtoDAsync((uint64_t)(uintptr_t)to, (uint64_t)(uintptr_t)from,
                                              n_bytes, stream);
    return result == CUDA_SUCCESS ? FRT_OK
                                  : cuda_fail(state, result, FRT_E_LAUNCH, "enqueuing a copy", err);
}

static frt_status cuda_sync(Device *device, void *stream, frt_error *err) {
    CudaState *state = device->state;
    return cuda_check(state, state->api.cuStreamSynchronize(stream), "waiting for the stream", err);
}

typedef struct CudaTimer {
    int32_t n;
    void *events[];
} CudaTimer;

static void cuda_timer_free(Device *device, void *timer) {
    CudaState *state = device->state;
    CudaTimer *t = timer;
    for (int32_t i = 0; i < t->n; i++) {
        state->api.cuEventDestroy(t->events[i]);
    }
    mem_free(t);
}

static frt_status cuda_timer_create(Device *device, int32_t n, void **timer, frt_error *err) {
    CudaState *state = device->state;
    size_t n_bytes = sizeof(CudaTimer) + (size_t)n * sizeof(void *);
    CudaTimer *t = mem_alloc(1, n_bytes);
    if (!t) {
        return frt_fail_memory(err, n_bytes);
    }
    while (t->n < n) {
        frt_status status = cuda_check(state, state->api.cuEventCreate(&t->events[t->n], 0),
                                       "making an event", err);
        if (status) {
            cuda_timer_free(device, t);
            return status;
        }
        t->n++;
    }
    *timer = t;
    return FRT_OK;
}

static frt_status cuda_timer_mark(Device *device, void *timer, int32_t i, void *stream,
                                  frt_error *err) {
    CudaState *state = device->state;
    CudaTimer *t = timer;
    return cuda_check(state, state->api.cuEventRecord(t->events[i], stream), "recording an event",
                      err);
}

static frt_status cuda_timer_read(Device *device, void *timer, float *ms, frt_error *err) {
    CudaState *state = device->state;
    const CudaTimer *t = timer;
    frt_status status = cuda_check(state, state->api.cuEventSynchronize(t->events[t->n - 1]),
                                   "waiting for the last timed run", err);
    for (int32_t i = 0; !status && i + 1 < t->n; i++) {
        status =
            cuda_check(state, state->api.cuEventElapsedTime(&ms[i], t->events[i], t->events[i + 1]),
                       "reading a time", err);
    }
    return status;
}

const DeviceOps device_cuda_ops = {
    .open = cuda_open,
    .close = cuda_close,
    .enter = cuda_enter,
    .leave = cuda_leave,
    .load = cuda_load,
    .unload = cuda_unload,
    .find = cuda_find,
    .describe = cuda_describe,
    .alloc = cuda_alloc,
    .free = cuda_free,
    .upload = cuda_upload,
    .download = cuda_download,
    .encode_map = cuda_encode_map,
    .launch = cuda_launch,
    .copy = cuda_copy,
    .sync = cuda_sync,
    .sync_all = cuda_sync_all,
    .graph_begin = cuda_graph_begin,
    .graph_end = cuda_graph_end,
    .graph_launch = cuda_graph_launch,
    .is_recording = cuda_is_recording,
    .graph_free = cuda_graph_free,
    .timer_create = cuda_timer_create,
    .timer_mark = cuda_timer_mark,
    .timer_read = cuda_timer_read,
    .timer_free = cuda_timer_free,
};
