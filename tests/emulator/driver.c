/* A replacement of libcuda.so.1 for machines without a GPU: device memory is host memory, and
 * emu_run.c runs the kernels. Optional functions are missing. For programs that load the driver at
 * run time:
 *
 *     LD_LIBRARY_PATH=build/emulator build/fusec verify model.g --device=cuda
 *
 * FUSEC_EMU_SEED seeds the order of warps; FUSEC_EMU_MAJOR=8 with FUSEC_EMU_MINOR=0 makes it an
 * sm_80. */
#include "emulator/emu.h"

#include "device/cuda_api.h"
#include "fake/fake_map.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Error codes of cuda.h. */
enum {
    SUCCESS,
    INVALID_VALUE,
    OUT_OF_MEMORY,
    INVALID_PTX = 218,
    NOT_FOUND = 500,
    LAUNCH_FAILED = 719
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char context;

/* Device memory. */

typedef struct Memory {
    uint64_t begin, end;
} Memory;
/* Allocations in ascending order. Whoever reads or writes them holds the lock, as a launch does. */
static Memory *memories;
static size_t n_memories, n_reserved;

/* The number of allocations that begin at `at` or below. */
static size_t count_until(uint64_t at) {
    size_t least = 0, most = n_memories;
    while (least < most) {
        size_t middle = (least + most) / 2;
        if (memories[middle].begin <= at)
            least = middle + 1;
        else
            most = middle;
    }
    return least;
}

/* Whether the range is inside one allocation. */
static bool may_access(uint64_t at, uint32_t n_bytes) {
    static size_t last;
    if (last >= n_memories || at < memories[last].begin || at >= memories[last].end) {
        size_t n = count_until(at);
        if (n == 0) return false;
        last = n - 1;
    }
    return at + n_bytes <= memories[last].end;
}

/* False: out of memory. */
static bool add_memory(uint64_t begin, uint64_t end) {
    if (n_memories == n_reserved) {
        size_t n = n_reserved ? 2 * n_reserved : 64;
        Memory *grown = realloc(memories, n * sizeof *grown);
        if (!grown) return false;
        memories = grown;
        n_reserved = n;
    }
    size_t i = count_until(begin);
    memmove(&memories[i + 1], &memories[i], (n_memories - i) * sizeof *memories);
    memories[i] = (Memory){begin, end};
    n_memories++;
    return true;
}

static bool remove_memory(uint64_t begin) {
    size_t n = count_until(begin);
    if (n == 0 || memories[n - 1].begin != begin) return false;
    memmove(&memories[n - 1], &memories[n], (n_memories - n) * sizeof *memories);
    n_memories--;
    return true;
}

static int emu_cuMemAlloc(uint64_t *data, size_t n_bytes) {
    if (n_bytes == 0) return INVALID_VALUE;
    size_t whole = (n_bytes + 255) / 256 * 256;
    void *bytes = aligned_alloc(256, whole);
    if (!bytes) return OUT_OF_MEMORY;
    memset(bytes, 0xFF, whole);
    uint64_t begin = (uint64_t)(uintptr_t)bytes;
    pthread_mutex_lock(&lock);
    bool is_added = add_memory(begin, begin + n_bytes);
    pthread_mutex_unlock(&lock);
    if (!is_added) free(bytes);
    *data = begin;
    return is_added ? SUCCESS : OUT_OF_MEMORY;
}

static int emu_cuMemFree(uint64_t data) {
    if (!data) return SUCCESS;
    pthread_mutex_lock(&lock);
    bool is_removed = remove_memory(data);
    if (is_removed) free((void *)(uintptr_t)data);
    pthread_mutex_unlock(&lock);
    return is_removed ? SUCCESS : INVALID_VALUE;
}

static int emu_cuMemcpyHtoD(uint64_t to, const void *from, size_t n_bytes) {
    memcpy((void *)(uintptr_t)to, from, n_bytes);
    return SUCCESS;
}

static int emu_cuMemcpyDtoH(void *to, uint64_t from, size_t n_bytes) {
    memcpy(to, (void *)(uintptr_t)from, n_bytes);
    return SUCCESS;
}

static int emu_cuMemcpyDtoDAsync(uint64_t to, uint64_t from, size_t n_bytes, void *stream) {
    (void)stream;
    memmove((void *)(uintptr_t)to, (void *)(uintptr_t)from, n_bytes);
    return SUCCESS;
}

/* The device. */

static int from_environment(const char *name, int otherwise) {
    const char *text = getenv(name);
    return text ? atoi(text) : otherwise;
}

static int emu_cuInit(unsigned flags) {
    return flags ? INVALID_VALUE : SUCCESS;
}

static int emu_cuDriverGetVersion(int *version) {
    *version = 13000;
    return SUCCESS;
}

static int emu_cuGetErrorName(int result, const char **name) {
    static _Thread_local char text[32];
    snprintf(text, sizeof text, "CUDA_ERROR_%d", result);
    *name = text;
    return SUCCESS;
}

static int emu_cuDeviceGetCount(int *count) {
    *count = 1;
    return SUCCESS;
}

static int emu_cuDeviceGet(int *device, int ordinal) {
    *device = ordinal;
    return ordinal == 0 ? SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

static int emu_cuDeviceGetName(char *name, int n_bytes, int device) {
    (void)device;
    snprintf(name, (size_t)n_bytes, "emulator");
    return SUCCESS;
}

static int emu_cuDeviceGetAttribute(int *value, int attribute, int device) {
    enum { MOST_SHARED = 232448 };
    (void)device;
    *value = attribute == CUDA_DEVICE_MAJOR              ? from_environment("FUSEC_EMU_MAJOR", 9)
             : attribute == CUDA_DEVICE_MINOR            ? from_environment("FUSEC_EMU_MINOR", 0)
             : attribute == CUDA_DEVICE_MAX_SHARED_OPTIN ? MOST_SHARED
             : attribute == CUDA_DEVICE_CLOCK_KHZ        ? 1000000
             : attribute == CUDA_DEVICE_N_PROCESSORS ? from_environment("FUSEC_EMU_PROCESSORS", 132)
                                                     : 0;
    return SUCCESS;
}

static int emu_cuDevicePrimaryCtxRetain(void **result, int device) {
    (void)device;
    *result = &context;
    return SUCCESS;
}

static int emu_cuDevicePrimaryCtxRelease(int device) {
    (void)device;
    return SUCCESS;
}

static int emu_cuCtxPushCurrent(void *pushed) {
    return pushed ? SUCCESS : INVALID_VALUE;
}

static int emu_cuCtxPopCurrent(void **popped) {
    *popped = &context;
    return SUCCESS;
}

static int emu_cuCtxGetDevice(int *device) {
    *device = 0;
    return SUCCESS;
}

static int emu_cuCtxSynchronize(void) {
    return SUCCESS;
}

/* Modules. Launches of all threads run one after the other. */

static int emu_cuModuleLoadDataEx(void **module, const void *image, unsigned n_options,
                                  int *options, void **values) {
    EmuModule *made = malloc(sizeof *made);
    if (!made) return OUT_OF_MEMORY;
    *module = made;
    if (emu_module_init(made, image)) return SUCCESS;
    for (unsigned i = 0; i < n_options; i++)
        if (options[i] == CUDA_JIT_ERROR_LOG_BUFFER) strcpy(values[i], made->error);
    fprintf(stderr, "emulator: %s\n", made->error);
    emu_module_free(made);
    free(made);
    return INVALID_PTX;
}

static int emu_cuModuleUnload(void *module) {
    emu_module_free(module);
    free(module);
    return SUCCESS;
}

static int emu_cuModuleGetFunction(void **function, void *module, const char *name) {
    const EmuModule *from = module;
    for (uint32_t i = 0; i < from->kernels.n; i++) {
        if (strcmp(from->kernels.data[i]->name, name) != 0) continue;
        *function = from->kernels.data[i];
        return SUCCESS;
    }
    return NOT_FOUND;
}

static int emu_cuFuncGetAttribute(int *value, int attribute, void *function) {
    const EmuKernel *kernel = function;
    *value = attribute == CUDA_FUNC_SHARED_BYTES ? (int)kernel->shared_bytes : 0;
    return SUCCESS;
}

static int emu_cuFuncSetAttribute(void *function, int attribute, int value) {
    (void)function, (void)attribute, (void)value;
    return SUCCESS;
}

static int emu_cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                              unsigned block_x, unsigned block_y, unsigned block_z,
                              unsigned shared_bytes, void *stream, void **params, void **extra) {
    static uint64_t n_launches;
    const EmuKernel *kernel = function;
    (void)stream;
    if (grid_x == 0 || grid_y != 1 || grid_z != 1 || block_x != kernel->n_threads || block_y != 1 ||
        block_z != 1 || extra)
        return INVALID_VALUE;
    char error[400];
    pthread_mutex_lock(&lock);
    uint64_t seed = (uint64_t)from_environment("FUSEC_EMU_SEED", 1) << 32 | n_launches++;
    EmuLaunch launch = {.n_blocks = grid_x,
                        .n_threads = block_x,
                        .dynamic_bytes = shared_bytes,
                        .params = params,
                        .seed = seed,
                        .may_access = may_access};
    bool is_good = emu_run(kernel, &launch, error, sizeof error);
    pthread_mutex_unlock(&lock);
    if (!is_good) fprintf(stderr, "emulator: %s\n", error);
    return is_good ? SUCCESS : LAUNCH_FAILED;
}

static int emu_cuTensorMapEncodeTiled(void *map, int dtype, uint32_t rank, void *data,
                                      const uint64_t *sizes, const uint64_t *stride_bytes,
                                      const uint32_t *box, const uint32_t *element_strides,
                                      int interleave, int swizzle, int l2_promotion, int fill) {
    FakeMap made;
    (void)l2_promotion;
    if (interleave || fill ||
        !fake_map_make(&made, dtype, rank, data, sizes, stride_bytes, box, element_strides))
        return INVALID_VALUE;
    made.swizzle = (int16_t)swizzle;
    memcpy(map, &made, sizeof made);
    return SUCCESS;
}

static int emu_cuTensorMapEncodeIm2col(void *map, int dtype, uint32_t rank, void *data,
                                       const uint64_t *sizes, const uint64_t *stride_bytes,
                                       const int *lower, const int *upper, uint32_t n_channels,
                                       uint32_t n_pixels, const uint32_t *element_strides,
                                       int interleave, int swizzle, int l2_promotion, int fill) {
    const FakeWindows windows = {lower, upper, n_channels, n_pixels};
    FakeMap made;
    (void)l2_promotion;
    if (interleave || fill ||
        !fake_map_make_im2col(&made, dtype, rank, data, sizes, stride_bytes, &windows,
                              element_strides))
        return INVALID_VALUE;
    made.swizzle = (int16_t)swizzle;
    memcpy(map, &made, sizeof made);
    return SUCCESS;
}

/* Nothing to wait for: every launch has finished. */

static int emu_cuStreamSynchronize(void *stream) {
    (void)stream;
    return SUCCESS;
}

static int emu_cuStreamCreate(void **stream, unsigned flags) {
    (void)flags;
    *stream = malloc(1);
    return *stream ? SUCCESS : OUT_OF_MEMORY;
}

static int emu_cuStreamDestroy(void *stream) {
    free(stream);
    return SUCCESS;
}

static int emu_cuEventCreate(void **event, unsigned flags) {
    (void)flags;
    *event = malloc(1);
    return *event ? SUCCESS : OUT_OF_MEMORY;
}

static int emu_cuEventDestroy(void *event) {
    free(event);
    return SUCCESS;
}

static int emu_cuEventRecord(void *event, void *stream) {
    (void)event, (void)stream;
    return SUCCESS;
}

static int emu_cuEventSynchronize(void *event) {
    (void)event;
    return SUCCESS;
}

static int emu_cuEventElapsedTime(float *ms, void *start, void *end) {
    (void)start, (void)end;
    *ms = 1;
    return SUCCESS;
}

/* The lookup. */

typedef void Function(void);
static const struct {
    const char *name;
    Function *function;
} functions[] = {
#define EMU(name) {#name, (Function *)emu_##name},
#include "emulator/driver.def"
};

__attribute__((visibility("default"))) int
cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags, int *found);

int cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags,
                        int *found) {
    (void)version, (void)flags, (void)found;
    *function = NULL;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (strcmp(functions[i].name, symbol) == 0)
            memcpy(function, &functions[i].function, sizeof *function);
    return *function ? SUCCESS : NOT_FOUND;
}
