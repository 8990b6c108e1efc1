/* The fake driver's functions: one for each row of cuda_api.def, which also makes its lookup. */
#include "fake_cuda.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

FakeCuda fake_cuda;

enum { MAX_KERNELS = 32, N_LOG = sizeof fake_cuda.log / sizeof fake_cuda.log[0] };

static struct {
    const char *symbol;
    FakeKernel kernel;
} kernels[MAX_KERNELS];
static int n_kernels;

static char callers_context, primary_context, module_handle;

void fake_cuda_reset(void) {
    fake_cuda = (FakeCuda){.driver_version = 12080, .n_devices = 1, .major = 9};
    fake_cuda.stack[0] = &callers_context;
    fake_cuda.depth = 1;
}

void fake_cuda_add_kernel(const char *symbol, FakeKernel kernel) {
    kernels[n_kernels].symbol = symbol;
    kernels[n_kernels++].kernel = kernel;
}

long fake_cuda_count(const char *name) {
    long n = 0;
    for (long i = 0; i < fake_cuda.n_calls && i < N_LOG; i++) {
        n += strcmp(fake_cuda.log[i], name) == 0;
    }
    return n;
}

/* Log a call; the code with which it must fail, or 0. */
static int enter(const char *name) {
    if (fake_cuda.n_calls < N_LOG) {
        fake_cuda.log[fake_cuda.n_calls] = name;
    }
    fake_cuda.n_calls++;
    if (fake_cuda.fail_at > 0 && --fake_cuda.fail_at == 0) {
        fake_cuda.has_failed = 1;
        fake_cuda.failed_in = name;
        return fake_cuda.fail_code;
    }
    return 0;
}

/* Calls that need a current context of ours: the runtime must have pushed one. */
static int enter_current(const char *name) {
    int code = enter(name);
    return !code && fake_cuda.depth < 2 ? 201 : code;
}

#define FAIL_IF(code)       \
    do {                    \
        int code_ = (code); \
        if (code_) {        \
            return code_;   \
        }                   \
    } while (0)

static int fake_cuInit(unsigned flags) {
    FAIL_IF(enter("cuInit"));
    return flags ? 1 : fake_cuda.n_devices == 0 ? 100 : 0;
}

static int fake_cuDriverGetVersion(int *version) {
    FAIL_IF(enter("cuDriverGetVersion"));
    *version = fake_cuda.driver_version;
    return 0;
}

static int fake_cuGetErrorName(int result, const char **name) {
    static char text[32];
    snprintf(text, sizeof text, "CUDA_ERROR_%d", result);
    *name = text;
    return 0;
}

static int fake_cuDeviceGetCount(int *count) {
    FAIL_IF(enter("cuDeviceGetCount"));
    *count = fake_cuda.n_devices;
    return 0;
}

static int fake_cuDeviceGet(int *device, int ordinal) {
    FAIL_IF(enter("cuDeviceGet"));
    *device = ordinal;
    return ordinal < fake_cuda.n_devices ? 0 : 101;
}

static int fake_cuDeviceGetName(char *name, int n_bytes, int device) {
    FAIL_IF(enter("cuDeviceGetName"));
    snprintf(name, (size_t)n_bytes, "Fake GPU %d", device);
    return 0;
}

static int fake_cuDeviceGetAttribute(int *value, int attribute, int device) {
    FAIL_IF(enter("cuDeviceGetAttribute"));
    *value = attribute == 75   ? fake_cuda.major
             : attribute == 76 ? fake_cuda.minor
             : attribute == 97 ? 232448
                               : device;
    return 0;
}

static int fake_cuDevicePrimaryCtxRetain(void **context, int device) {
    FAIL_IF(enter("cuDevicePrimaryCtxRetain"));
    fake_cuda.n_contexts++;
    *context = &primary_context;
    return device;
}

/* Calls that give something back do it even when they report a failure, as the driver does when
 * it reports an earlier one. */
static int fake_cuDevicePrimaryCtxRelease(int device) {
    fake_cuda.n_contexts--;
    return enter("cuDevicePrimaryCtxRelease") + device;
}

static int fake_cuCtxPushCurrent(void *context) {
    FAIL_IF(enter("cuCtxPushCurrent"));
    if (!context || fake_cuda.depth == 16) {
        return 201;
    }
    fake_cuda.stack[fake_cuda.depth++] = context;
    return 0;
}

static int fake_cuCtxPopCurrent(void **context) {
    int code = enter("cuCtxPopCurrent");
    if (fake_cuda.depth < 2) {
        return 201;
    }
    *context = fake_cuda.stack[--fake_cuda.depth];
    return code;
}

static int fake_cuCtxGetDevice(int *device) {
    FAIL_IF(enter_current("cuCtxGetDevice"));
    *device = 0;
    return 0;
}

static int fake_cuCtxSynchronize(void) {
    FAIL_IF(enter_current("cuCtxSynchronize"));
    fake_cuda.n_syncs++;
    return 0;
}

static int fake_cuModuleLoadDataEx(void **module, const void *image, unsigned n_options,
                                   int *options, void **values) {
    int code = enter_current("cuModuleLoadDataEx");
    if (code) {
        for (unsigned i = 0; i < n_options; i++) {
            if (options[i] == 5) {
                strcpy(values[i], "ptxas error : fake complaint\nline two\n");
            }
        }
        return code;
    }
    fake_cuda.n_modules++;
    fake_cuda.image = image;
    *module = &module_handle;
    return 0;
}

static int fake_cuModuleUnload(void *module) {
    fake_cuda.n_modules--;
    return enter_current("cuModuleUnload") + (module != &module_handle);
}

static int fake_cuModuleGetFunction(void **function, void *module, const char *name) {
    FAIL_IF(enter_current("cuModuleGetFunction"));
    for (int i = 0; i < n_kernels && module == &module_handle; i++) {
        if (strcmp(kernels[i].symbol, name) == 0) {
            *function = &kernels[i];
            return 0;
        }
    }
    return 500;
}

static int fake_cuFuncGetAttribute(int *value, int attribute, void *function) {
    FAIL_IF(enter_current("cuFuncGetAttribute"));
    static const int values[] = {[1] = 1024, [3] = 24, [4] = 96}; /* shared, local, registers */
    *value = attribute >= 0 && attribute <= 4 ? values[attribute] : 0;
    return function ? 0 : 1;
}

static int fake_cuFuncSetAttribute(void *function, int attribute, int value) {
    FAIL_IF(enter_current("cuFuncSetAttribute"));
    fake_cuda.max_dynamic_shared = value;
    return function && attribute == 8 ? 0 : 1;
}

static int fake_cuFuncLoad(void *function) {
    FAIL_IF(enter_current("cuFuncLoad"));
    return function ? 0 : 1;
}

static int fake_cuMemAlloc(uint64_t *data, size_t n_bytes) {
    FAIL_IF(enter_current("cuMemAlloc"));
    if (n_bytes == 0) {
        return 1;
    }
    void *memory = aligned_alloc(256, (n_bytes + 255) / 256 * 256);
    if (!memory) {
        return 2;
    }
    fake_cuda.n_blocks++;
    fake_cuda.n_bytes += n_bytes;
    *data = (uint64_t)(uintptr_t)memory;
    return 0;
}

static int fake_cuMemFree(uint64_t data) {
    fake_cuda.n_blocks--;
    free((void *)(uintptr_t)data);
    return enter_current("cuMemFree");
}

static int fake_cuMemcpyHtoD(uint64_t to, const void *from, size_t n_bytes) {
    FAIL_IF(enter_current("cuMemcpyHtoD"));
    memcpy((void *)(uintptr_t)to, from, n_bytes);
    return 0;
}

static int fake_cuMemcpyDtoH(void *to, uint64_t from, size_t n_bytes) {
    FAIL_IF(enter_current("cuMemcpyDtoH"));
    memcpy(to, (void *)(uintptr_t)from, n_bytes);
    return 0;
}

static int fake_cuMemcpyDtoDAsync(uint64_t to, uint64_t from, size_t n_bytes, void *stream) {
    FAIL_IF(enter_current("cuMemcpyDtoDAsync"));
    fake_cuda.stream = stream;
    memmove((void *)(uintptr_t)to, (void *)(uintptr_t)from, n_bytes);
    return 0;
}

static int fake_cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                               unsigned block_x, unsigned block_y, unsigned block_z,
                               unsigned shared_bytes, void *stream, void **params, void **extra) {
    FAIL_IF(enter_current("cuLaunchKernel"));
    if (!function || grid_x == 0 || grid_y != 1 || grid_z != 1 || block_x == 0 || block_y != 1 ||
        block_z != 1 || extra) {
        return 1;
    }
    fake_cuda.n_launches++;
    fake_cuda.grid = grid_x;
    fake_cuda.block = block_x;
    fake_cuda.shared = shared_bytes;
    fake_cuda.stream = stream;
    for (int i = 0; i < n_kernels; i++) {
        if (function == &kernels[i]) {
            kernels[i].kernel(params, grid_x, block_x);
        }
    }
    return 0;
}

/* Accepts what the driver would, and keeps it readable. */
static int fake_cuTensorMapEncodeTiled(void *map, int dtype, uint32_t rank, void *data,
                                       const uint64_t *sizes, const uint64_t *stride_bytes,
                                       const uint32_t *box, const uint32_t *element_strides,
                                       int interleave, int swizzle, int l2_promotion, int fill) {
    FAIL_IF(enter_current("cuTensorMapEncodeTiled"));
    FakeMap fake = {.data = data, .dtype = dtype, .rank = rank, .swizzle = swizzle};
    bool is_good = (uintptr_t)map % 64 == 0 && (uintptr_t)data % 16 == 0 && rank >= 1 &&
                   rank <= 5 && interleave == 0 && fill == 0 && l2_promotion <= 3;
    for (uint32_t i = 0; is_good && i < rank; i++) {
        fake.sizes[i] = sizes[i];
        fake.box[i] = box[i];
        if (i > 0) fake.stride_bytes[i] = stride_bytes[i - 1];
        is_good = sizes[i] > 0 && fake.stride_bytes[i] % 16 == 0 && box[i] >= 1 && box[i] <= 256 &&
                  element_strides[i] == 1;
    }
    if (!is_good) return 1;
    memcpy(map, &fake, sizeof fake);
    return 0;
}

static int fake_cuStreamSynchronize(void *stream) {
    FAIL_IF(enter_current("cuStreamSynchronize"));
    fake_cuda.stream = stream;
    fake_cuda.n_syncs++;
    return 0;
}

static int fake_cuEventCreate(void **event, unsigned flags) {
    FAIL_IF(enter_current("cuEventCreate"));
    fake_cuda.n_events++;
    *event = malloc(sizeof(long));
    return *event && flags == 0 ? 0 : 2;
}

static int fake_cuEventDestroy(void *event) {
    fake_cuda.n_events--;
    free(event);
    return enter_current("cuEventDestroy");
}

/* An event's time is the number of calls before it, in milliseconds. */
static int fake_cuEventRecord(void *event, void *stream) {
    FAIL_IF(enter_current("cuEventRecord"));
    fake_cuda.stream = stream;
    *(long *)event = fake_cuda.n_calls;
    return 0;
}

static int fake_cuEventSynchronize(void *event) {
    FAIL_IF(enter_current("cuEventSynchronize"));
    return event ? 0 : 1;
}

static int fake_cuEventElapsedTime(float *ms, void *start, void *end) {
    FAIL_IF(enter_current("cuEventElapsedTime"));
    *ms = (float)(*(long *)end - *(long *)start);
    return 0;
}

void *fake_cuda_lookup(void *ctx, const char *symbol) {
    (void)ctx;
    void *found = NULL;
    if (fake_cuda.missing && strcmp(fake_cuda.missing, symbol) == 0) {
        return NULL;
    }
#define X(base, versioned, version, required, params) \
    if (strcmp(symbol, #versioned) == 0) {            \
        int(*function) params = fake_##base;          \
        memcpy(&found, &function, sizeof found);      \
    }
#include "../../runtime/src/cuda_api.def"
#undef X
    return found;
}
