/* The functions of the fake driver, one for each row of cuda_api.def, which also generates its
 * lookup. */
#include "fake_cuda.h"

#include "device/cuda_api.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

FakeCuda fake_cuda;

enum { MAX_KERNELS = 32, N_LOG = sizeof fake_cuda.log / sizeof fake_cuda.log[0] };

static struct {
    const char *symbol;
    FakeKernel kernel;
    int n_values;
    bool has_more;
    long n_loads;
} kernels[MAX_KERNELS];
static int n_kernels;

static char callers_context, primary_context;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards fake_cuda and kernels */
static _Thread_local void *stack[16] = {&callers_context};
static _Thread_local int depth = 1;

void fake_cuda_reset(void) {
    fake_cuda =
        (FakeCuda){.driver_version = 12080, .n_devices = 1, .major = 9, .n_processors = 132};
    depth = 1;
    for (int i = 0; i < n_kernels; i++) {
        kernels[i].n_loads = 0;
    }
}

int fake_cuda_depth(void) {
    return depth;
}

long fake_cuda_loads(const char *symbol) {
    long n = 0;
    for (int i = 0; i < n_kernels; i++) {
        n += strcmp(kernels[i].symbol, symbol) == 0 ? kernels[i].n_loads : 0;
    }
    return n;
}

void fake_cuda_add_valued_kernel(const char *symbol, FakeKernel kernel, int n_values,
                                 bool has_more) {
    kernels[n_kernels].symbol = symbol;
    kernels[n_kernels].n_values = n_values;
    kernels[n_kernels].has_more = has_more;
    kernels[n_kernels++].kernel = kernel;
}

void fake_cuda_add_kernel(const char *symbol, FakeKernel kernel) {
    fake_cuda_add_valued_kernel(symbol, kernel, 0, false);
}

long fake_cuda_count(const char *name) {
    long n = 0;
    for (long i = 0; i < fake_cuda.n_calls && i < N_LOG; i++) {
        n += strcmp(fake_cuda.log[i], name) == 0;
    }
    return n;
}

/* Logs a call. Returns the error code with which it must fail, or 0. */
static int enter(const char *name) {
    int code = 0;
    pthread_mutex_lock(&lock);
    if (fake_cuda.n_calls < N_LOG) {
        fake_cuda.log[fake_cuda.n_calls] = name;
    }
    fake_cuda.n_calls++;
    if (fake_cuda.fail_at > 0 && --fake_cuda.fail_at == 0) {
        fake_cuda.has_failed = 1;
        fake_cuda.failed_in = name;
        code = fake_cuda.fail_code;
    }
    pthread_mutex_unlock(&lock);
    return code;
}

/* For calls that need a current context, which the runtime must have pushed. */
static int enter_current(const char *name) {
    int code = enter(name);
    return !code && depth < 2 ? 201 : code;
}

#define FAIL_IF(code)       \
    do {                    \
        int code_ = (code); \
        if (code_) {        \
            return code_;   \
        }                   \
    } while (0)

/* An operation recorded in a captured stream: a launch, or with index -1 a copy. */
enum { MAX_OPS = 64, MAX_PARAMS = 8 };
typedef struct Op {
    int index;
    unsigned grid, block;
    uint64_t values[MAX_PARAMS];
    void **params;
    uint64_t to, from;
    size_t n_bytes;
} Op;
typedef struct Graph {
    int n;
    Op ops[MAX_OPS];
} Graph;
static Graph recorded;

static int record(Op op) {
    if (recorded.n == MAX_OPS) return 2;
    recorded.ops[recorded.n++] = op;
    return 0;
}

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
    static _Thread_local char text[32];
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
             : attribute == 13 ? 1980000
             : attribute == 16 ? fake_cuda.n_processors
                               : device;
    return 0;
}

static int fake_cuDevicePrimaryCtxRetain(void **context, int device) {
    FAIL_IF(enter("cuDevicePrimaryCtxRetain"));
    fake_cuda.n_contexts++;
    *context = &primary_context;
    return device;
}

/* A call that frees a resource frees it even when it reports a failure, as in the driver, where it
 * may report an earlier error. */
static int fake_cuDevicePrimaryCtxRelease(int device) {
    fake_cuda.n_contexts--;
    return enter("cuDevicePrimaryCtxRelease") + device;
}

static int fake_cuCtxPushCurrent(void *context) {
    FAIL_IF(enter("cuCtxPushCurrent"));
    if (!context || depth == 16) {
        return 201;
    }
    stack[depth++] = context;
    return 0;
}

static int fake_cuCtxPopCurrent(void **context) {
    int code = enter("cuCtxPopCurrent");
    if (depth < 2) {
        return 201;
    }
    *context = stack[--depth];
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

/* A module is a copy of its text. */
static bool has_entry(const char *module, const char *symbol) {
    char entry[160];
    snprintf(entry, sizeof entry, ".entry %s(", symbol);
    return strstr(module, entry) != NULL;
}

/* Takes a while, and counts concurrent compilations. */
static void compile(void) {
    pthread_mutex_lock(&lock);
    fake_cuda.n_compiling++;
    if (fake_cuda.n_compiling > fake_cuda.most_compiling) {
        fake_cuda.most_compiling = fake_cuda.n_compiling;
    }
    pthread_mutex_unlock(&lock);
    struct timespec left = {.tv_nsec = 1000 * fake_cuda.compile_us};
    while (nanosleep(&left, &left) != 0) {
    }
    pthread_mutex_lock(&lock);
    fake_cuda.n_compiling--;
    pthread_mutex_unlock(&lock);
}

static void note_image(const char *text) {
    pthread_mutex_lock(&lock);
    fake_cuda.image = text;
    snprintf(fake_cuda.image_text, sizeof fake_cuda.image_text, "%s", text);
    for (int i = 0; i < n_kernels; i++) {
        kernels[i].n_loads += has_entry(text, kernels[i].symbol);
    }
    pthread_mutex_unlock(&lock);
}

static int fake_cuModuleLoadDataEx(void **module, const void *image, unsigned n_options,
                                   int *options, void **values) {
    int code = enter_current("cuModuleLoadDataEx");
    fake_cuda.n_compilers = 0;
    for (unsigned i = 0; i < n_options; i++) {
        if (options[i] == 34) fake_cuda.n_compilers = (int)(intptr_t)values[i];
    }
    if (!code && fake_cuda.refused && has_entry(image, fake_cuda.refused)) code = 218;
    if (code) {
        for (unsigned i = 0; i < n_options; i++) {
            if (options[i] == 5) {
                strcpy(values[i], "ptxas error : fake complaint\nline two\n");
            }
        }
        return code;
    }
    if (strncmp(image, FAKE_CUBIN, sizeof FAKE_CUBIN - 1) != 0) compile();
    note_image(image);
    fake_cuda.n_modules++;
    *module = strdup(image);
    return *module ? 0 : 2;
}

static int fake_cuModuleUnload(void *module) {
    fake_cuda.n_modules--;
    free(module);
    return enter_current("cuModuleUnload");
}

static int fake_cuModuleGetFunction(void **function, void *module, const char *name) {
    FAIL_IF(enter_current("cuModuleGetFunction"));
    bool has_all = !strstr(module, ".entry ");
    for (int i = 0; i < n_kernels; i++) {
        if (strcmp(kernels[i].symbol, name) == 0 && (has_all || has_entry(module, name))) {
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
    pthread_mutex_lock(&lock);
    fake_cuda.max_dynamic_shared = value;
    pthread_mutex_unlock(&lock);
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
    pthread_mutex_lock(&lock);
    fake_cuda.stream = stream;
    pthread_mutex_unlock(&lock);
    if (stream && stream == fake_cuda.capturing) {
        return record((Op){.to = to, .from = from, .n_bytes = n_bytes, .index = -1});
    }
    memmove((void *)(uintptr_t)to, (void *)(uintptr_t)from, n_bytes);
    return 0;
}

static int launch(void *function, unsigned grid, unsigned block, unsigned shared_bytes,
                  int overlaps, void *stream, void **params) {
    pthread_mutex_lock(&lock);
    fake_cuda.n_launches++;
    fake_cuda.grid = grid;
    fake_cuda.block = block;
    fake_cuda.shared = shared_bytes;
    fake_cuda.stream = stream;
    fake_cuda.overlaps = overlaps;
    fake_cuda.n_overlapping += overlaps;
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < n_kernels; i++) {
        if (function != &kernels[i]) continue;
        if (stream && stream == fake_cuda.capturing) {
            Op op = {.index = i, .grid = grid, .block = block, .params = params};
            for (int k = 0; k < kernels[i].n_values; k++) memcpy(&op.values[k], params[k], 8);
            return record(op);
        }
        kernels[i].kernel(params, grid, block);
    }
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
    return launch(function, grid_x, block_x, shared_bytes, 0, stream, params);
}

static int fake_cuLaunchKernelEx(const CudaLaunchConfig *config, void *function, void **params,
                                 void **extra) {
    FAIL_IF(enter_current("cuLaunchKernelEx"));
    if (!function || config->grid[0] == 0 || config->grid[1] != 1 || config->grid[2] != 1 ||
        config->block[0] == 0 || config->block[1] != 1 || config->block[2] != 1 || extra ||
        config->n_attributes != 1 || config->attributes->id != 6) {
        return 1;
    }
    return launch(function, config->grid[0], config->block[0], config->shared_bytes,
                  config->attributes->value, config->stream, params);
}

/* Linking. */

typedef struct Link {
    char *cubin;
} Link;

static int fake_cuLinkCreate(unsigned n_options, int *options, void **values, void **link) {
    FAIL_IF(enter_current("cuLinkCreate"));
    (void)options;
    (void)values;
    fake_cuda.n_links++;
    *link = calloc(1, sizeof(Link));
    return *link && !n_options ? 0 : 1;
}

static int fake_cuLinkAddData(void *link, int type, void *data, size_t n_bytes, const char *name,
                              unsigned n_options, int *options, void **values) {
    FAIL_IF(enter_current("cuLinkAddData"));
    (void)options;
    (void)values;
    if (type != 1 || n_options || !name || strlen(data) + 1 != n_bytes) return 1;
    if (fake_cuda.refused && has_entry(data, fake_cuda.refused)) return 218;
    compile();
    char *cubin = ((Link *)link)->cubin = malloc(n_bytes + sizeof FAKE_CUBIN);
    if (cubin) snprintf(cubin, n_bytes + sizeof FAKE_CUBIN, FAKE_CUBIN "%s", (char *)data);
    return cubin ? 0 : 2;
}

static int fake_cuLinkComplete(void *link, void **cubin, size_t *n_bytes) {
    FAIL_IF(enter_current("cuLinkComplete"));
    *cubin = ((Link *)link)->cubin;
    if (!*cubin) return 1;
    *n_bytes = strlen(*cubin) + 1;
    return 0;
}

static int fake_cuLinkDestroy(void *link) {
    fake_cuda.n_links--;
    free(((Link *)link)->cubin);
    free(link);
    return enter_current("cuLinkDestroy");
}

/* Streams and graphs. */

static int fake_cuStreamCreate(void **stream, unsigned flags) {
    FAIL_IF(enter_current("cuStreamCreate"));
    fake_cuda.n_streams++;
    *stream = malloc(1);
    return *stream && flags == 1 ? 0 : 1;
}

static int fake_cuStreamDestroy(void *stream) {
    fake_cuda.n_streams--;
    free(stream);
    return enter_current("cuStreamDestroy");
}

static int fake_cuStreamIsCapturing(void *stream, int *status) {
    FAIL_IF(enter_current("cuStreamIsCapturing"));
    *status = stream && stream == fake_cuda.capturing;
    return 0;
}

static int fake_cuStreamBeginCapture(void *stream, int mode) {
    FAIL_IF(enter_current("cuStreamBeginCapture"));
    if (!stream || fake_cuda.capturing || mode != 2) return 1;
    fake_cuda.capturing = stream;
    recorded = (Graph){.n = 0};
    return 0;
}

static int fake_cuStreamEndCapture(void *stream, void **graph) {
    int code = enter_current("cuStreamEndCapture");
    if (stream != fake_cuda.capturing) return 1;
    fake_cuda.capturing = NULL;
    Graph *copy = code ? NULL : malloc(sizeof *copy);
    if (!copy) return code ? code : 2;
    *copy = recorded;
    fake_cuda.n_graphs++;
    *graph = copy;
    return 0;
}

static int fake_cuGraphInstantiateWithFlags(void **exec, void *graph, unsigned long long flags) {
    FAIL_IF(enter_current("cuGraphInstantiateWithFlags"));
    Graph *copy = malloc(sizeof *copy);
    if (!copy || flags) return 2;
    *copy = *(Graph *)graph;
    fake_cuda.n_graphs++;
    *exec = copy;
    return 0;
}

/* Accepts only the same steps with the same kernels, as the driver does. */
static int fake_cuGraphExecUpdate(void *exec, void *graph, CudaGraphUpdate *result) {
    FAIL_IF(enter_current("cuGraphExecUpdate"));
    Graph *old = exec, *new = graph;
    bool is_same = old->n == new->n;
    for (int i = 0; is_same && i < old->n; i++) is_same = old->ops[i].index == new->ops[i].index;
    result->result = !is_same;
    if (!is_same) return 910;
    *old = *new;
    return 0;
}

static int fake_cuGraphLaunch(void *exec, void *stream) {
    FAIL_IF(enter_current("cuGraphLaunch"));
    Graph *graph = exec;
    fake_cuda.stream = stream;
    if (stream && stream == fake_cuda.capturing) return 900;
    for (int i = 0; i < graph->n; i++) {
        Op *op = &graph->ops[i];
        void *params[MAX_PARAMS];
        if (op->index < 0) {
            memmove((void *)(uintptr_t)op->to, (void *)(uintptr_t)op->from, op->n_bytes);
            continue;
        }
        int n = kernels[op->index].n_values;
        for (int k = 0; k < n; k++) params[k] = &op->values[k];
        if (n == 0) return 1;
        if (kernels[op->index].has_more) params[n] = op->params[n];
        kernels[op->index].kernel(params, op->grid, op->block);
    }
    return 0;
}

static int fake_cuGraphExecDestroy(void *exec) {
    fake_cuda.n_graphs--;
    free(exec);
    return enter_current("cuGraphExecDestroy");
}

static int fake_cuGraphDestroy(void *graph) {
    fake_cuda.n_graphs--;
    free(graph);
    return enter_current("cuGraphDestroy");
}

/* Accepts the same maps as the driver, and stores them in a readable form. */
static int fake_cuTensorMapEncodeTiled(void *map, int dtype, uint32_t rank, void *data,
                                       const uint64_t *sizes, const uint64_t *stride_bytes,
                                       const uint32_t *box, const uint32_t *element_strides,
                                       int interleave, int swizzle, int l2_promotion, int fill) {
    FAIL_IF(enter_current("cuTensorMapEncodeTiled"));
    FakeMap fake;
    bool is_good = (uintptr_t)map % 64 == 0 && interleave == 0 && fill == 0 && l2_promotion <= 3;
    if (!is_good ||
        !fake_map_make(&fake, dtype, rank, data, sizes, stride_bytes, box, element_strides))
        return 1;
    fake.swizzle = (int16_t)swizzle;
    memcpy(map, &fake, sizeof fake);
    return 0;
}

static int fake_cuTensorMapEncodeIm2col(void *map, int dtype, uint32_t rank, void *data,
                                        const uint64_t *sizes, const uint64_t *stride_bytes,
                                        const int *lower, const int *upper, uint32_t n_channels,
                                        uint32_t n_pixels, const uint32_t *element_strides,
                                        int interleave, int swizzle, int l2_promotion, int fill) {
    FAIL_IF(enter_current("cuTensorMapEncodeIm2col"));
    const FakeWindows windows = {lower, upper, n_channels, n_pixels};
    FakeMap fake;
    bool is_good = (uintptr_t)map % 64 == 0 && interleave == 0 && fill == 0 && l2_promotion <= 3;
    if (!is_good || !fake_map_make_im2col(&fake, dtype, rank, data, sizes, stride_bytes, &windows,
                                          element_strides))
        return 1;
    fake.swizzle = (int16_t)swizzle;
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

/* The time of an event is the number of calls before it, in milliseconds. */
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
#include "../../runtime/src/device/cuda_api.def"
#undef X
    return found;
}
