/* The CPU as a device. Device memory is host memory, streams do not exist, and a launch runs at
 * once on the pool or on the caller's threads. */
#include "device/device.h"
#include "host/error.h"
#include "code/image.h"
#include "host/mem.h"
#include "host/pool.h"
#include "host/port.h"

#include <string.h>

enum {
    /* Of a launch, for each thread: so that a thread that has begun late, or shares its core, gets
     * less to do. */
    THREAD_CHUNKS = 16,
    /* A kernel's own bytes, and room for the functions that call it. */
    KERNEL_STACK_BYTES = FRT_MAX_KERNEL_STACK_BYTES + (16 << 10),
    /* A thread's stack also holds what the C library keeps there for each thread. */
    WORKER_STACK_BYTES = KERNEL_STACK_BYTES + (64 << 10)
};

typedef void (*Kernel)(void *const *args, const int64_t *dims, int64_t begin, int64_t end);

typedef struct CpuState {
    Pool *pool; /* NULL with the caller's parallel_for */
    frt_parallel_for parallel_for;
    void *parallel_ctx;
} CpuState;

typedef struct Job {
    Kernel kernel;
    const Launch *launch;
    int64_t chunk; /* work units */
} Job;

/* The CPU features that an architecture's name implies. */
static const struct {
    const char *arch, *features;
} archs[] = {
    {"x86-64", NULL},
    {"x86-64-v2", "sse3,ssse3,sse4.1,sse4.2,popcnt"},
    {"x86-64-v3", "sse4.2,popcnt,movbe,lzcnt,avx,avx2,bmi,bmi2,fma,f16c"},
    {"x86-64-v4", "sse4.2,popcnt,movbe,lzcnt,avx,avx2,bmi,bmi2,fma,f16c,avx512f,avx512bw,"
                  "avx512cd,avx512dq,avx512vl"},
};

/* The first feature of the list that this CPU lacks; NULL: none. */
static const char *find_missing(const char *list, char name[32]) {
    while (list && *list) {
        size_t n = strcspn(list, ",");
        size_t n_kept = n < 32 ? n : 31;
        memcpy(name, list, n_kept);
        name[n_kept] = '\0';
        if (port_cpu_has(name) != 1) {
            return name;
        }
        list += n + (list[n] == ',');
    }
    return NULL;
}

static frt_status fail_feature(const char *arch, const char *name, frt_error *err) {
    if (port_cpu_has(name) < 0) {
        return frt_fail(err, FRT_E_HOST_CPU,
                        "the artifact is for CPU %s with feature %s, which this runtime does not "
                        "know",
                        arch, name);
    }
    return frt_fail(err, FRT_E_HOST_CPU, "the artifact is for CPU %s, but this CPU lacks %s", arch,
                    name);
}

/* Whether this CPU has the architecture and the features. */
static frt_status check_cpu(const char *arch, const char *features, frt_error *err) {
    char name[32];
    bool is_known = features != NULL;
    const char *missing = NULL;
    for (size_t i = 0; i < sizeof archs / sizeof archs[0]; i++) {
        if (strcmp(archs[i].arch, arch) == 0) {
            missing = find_missing(archs[i].features, name);
            is_known = true;
        }
    }
    if (!is_known) {
        return frt_fail(err, FRT_E_HOST_CPU,
                        "the artifact is for CPU %s and does not say which features that means",
                        arch);
    }
    missing = missing ? missing : find_missing(features, name);
    return missing ? fail_feature(arch, missing, err) : FRT_OK;
}

/* Finds the levels whose code runs here: those that this CPU has, from `best` on. */
static frt_status choose_levels(Device *device, const Manifest *m, const char *best,
                                frt_error *err) {
    uint32_t first = 0;
    while (best && first < m->n_levels && strcmp(m->levels[first].name, best) != 0) {
        first++;
    }
    if (best && first == m->n_levels) {
        return frt_fail(err, FRT_E_UNKNOWN_NAME, "the artifact has no level %.100s%s%s", best,
                        first ? ", its best is " : ": it has code for one CPU",
                        first ? m->levels[0].name : "");
    }
    for (uint32_t i = first; i < m->n_levels; i++) {
        bool is_wanted = best && i == first;
        frt_status status =
            check_cpu(m->levels[i].arch, m->levels[i].features, is_wanted ? err : NULL);
        if (status && is_wanted) {
            return status;
        }
        device->levels |= (uint32_t)!status << i;
    }
    return FRT_OK;
}

static frt_status cpu_open(Device *device, const frt_module *module,
                           const frt_program_options *options, frt_error *err) {
    const Manifest *m = &module->manifest;
    frt_status status = check_cpu(m->arch, m->features, err);
    if (!status) {
        status = choose_levels(device, m, options->cpu_level, err);
    }
    if (status) {
        return status;
    }
    int n_threads = options->n_threads ? options->n_threads : port_cpu_count();
    n_threads = n_threads < POOL_MAX_THREADS ? n_threads : POOL_MAX_THREADS;
    CpuState *state = mem_alloc(1, sizeof *state);
    if (!state) {
        return frt_fail_memory(err, sizeof *state);
    }
    state->parallel_for = options->parallel_for;
    state->parallel_ctx = options->parallel_ctx;
    if (!state->parallel_for) {
        status = pool_create(n_threads, WORKER_STACK_BYTES, &state->pool, err);
        if (status) {
            mem_free(state);
            return status;
        }
    }
    device->state = state;
    device->n_threads = n_threads;
    port_cpu_name(device->name, sizeof device->name);
    return FRT_OK;
}

static void cpu_close(Device *device) {
    CpuState *state = device->state;
    pool_free(state->pool);
    mem_free(state);
}

static frt_status cpu_enter(Device *device, DeviceScope *scope, frt_error *err) {
    (void)device;
    (void)err;
    scope->fp = port_fp_get();
    port_fp_set(PORT_FP_DEFAULT);
    return FRT_OK;
}

static void cpu_leave(Device *device, const DeviceScope *scope) {
    (void)device;
    port_fp_set(scope->fp);
}

static frt_status cpu_load(Device *device, const frt_module *module, const uint32_t *pieces,
                           uint32_t n, DeviceCode *code, frt_error *err) {
    Image *image = NULL;
    (void)device;
    (void)pieces; /* a CPU module has a single piece */
    (void)n;
    frt_status status = image_load(module, &image, err);
    code->handle = image;
    return status;
}

static void cpu_unload(Device *device, void *handle) {
    (void)device;
    image_free(handle);
}

static frt_status cpu_find(Device *device, void *handle, const char *symbol, int64_t max_shared,
                           void **kernel, frt_error *err) {
    (void)device;
    (void)max_shared;
    return image_find(handle, symbol, kernel, err);
}

static frt_status cpu_alloc(Device *device, size_t n_bytes, void **data, frt_error *err) {
    (void)device;
    void *memory = mem_alloc_aligned(n_bytes);
    if (!memory) {
        return frt_fail_memory(err, n_bytes);
    }
    *data = memory;
    return FRT_OK;
}

static void cpu_free(Device *device, void *data) {
    (void)device;
    mem_free(data);
}

static frt_status cpu_move(Device *device, void *to, const void *from, size_t n, frt_error *err) {
    (void)device;
    (void)err;
    memcpy(to, from, n);
    return FRT_OK;
}

static void run_chunk(void *ctx, int64_t i) {
    const Job *job = ctx;
    int64_t begin = i * job->chunk;
    int64_t n_left = job->launch->grid - begin;
    int64_t end = begin + (n_left < job->chunk ? n_left : job->chunk);
    job->kernel(job->launch->args, job->launch->dims, begin, end);
}

/* Runs on a caller's thread, whose floating-point state is unknown. */
static void run_foreign_chunk(void *ctx, int64_t i) {
    uint32_t fp = port_fp_get();
    port_fp_set(PORT_FP_DEFAULT);
    run_chunk(ctx, i);
    port_fp_set(fp);
}

static void run_chunks(const CpuState *state, int64_t n_chunks, Job *job) {
    if (state->parallel_for) {
        state->parallel_for(state->parallel_ctx, n_chunks, run_foreign_chunk, job);
    } else {
        pool_run(state->pool, n_chunks, run_chunk, job);
    }
}

/* The arguments of run_chunks for another thread. */
typedef struct Errand {
    const CpuState *state;
    int64_t n_chunks;
    Job *job;
} Errand;

static void *run_errand(void *arg) {
    const Errand *errand = arg;
    port_fp_set(PORT_FP_DEFAULT);
    run_chunks(errand->state, errand->n_chunks, errand->job);
    return NULL;
}

/* Runs the chunks on a thread of its own, because the caller's stack is too small for a kernel. */
static frt_status run_apart(const CpuState *state, int64_t n_chunks, Job *job, frt_error *err) {
    pthread_t thread;
    Errand errand = {state, n_chunks, job};
    int code = port_thread_start(&thread, WORKER_STACK_BYTES, run_errand, &errand);
    if (code != 0) {
        return frt_fail(err, FRT_E_THREADS,
                        "the caller's stack is too small for a kernel, and no other thread "
                        "starts: %s",
                        strerror(code));
    }
    pthread_join(thread, NULL);
    return FRT_OK;
}

/* Cuts the grid into chunks. Units do not depend on each other, so neither does a result on the
 * chunks. All but the last are whole blocks. A chunk is worth a thread of its own, but a thread
 * that is alone gets the whole grid. */
static int64_t cut(const Device *device, const Launch *launch, int64_t *chunk) {
    int64_t n = device->n_threads > 1 ? (int64_t)device->n_threads * THREAD_CHUNKS : 1;
    int64_t most = launch->grid / launch->worth;
    n = n < most ? n : most > 1 ? most : 1;
    *chunk = (launch->grid - 1) / n + 1;
    *chunk = ((*chunk - 1) / launch->block + 1) * launch->block;
    return (launch->grid - 1) / *chunk + 1;
}

static frt_status cpu_launch(Device *device, const Launch *launch, void *stream, frt_error *err) {
    const CpuState *state = device->state;
    (void)stream;
    Job job = {.launch = launch};
    memcpy(&job.kernel, &launch->kernel, sizeof job.kernel);
    int64_t n_chunks = cut(device, launch, &job.chunk);
    if (!state->parallel_for && port_stack_left() < KERNEL_STACK_BYTES) {
        return run_apart(state, n_chunks, &job, err);
    }
    run_chunks(state, n_chunks, &job);
    return FRT_OK;
}

static frt_status cpu_copy(Device *device, void *to, const void *from, size_t n_bytes, void *stream,
                           frt_error *err) {
    (void)stream;
    return cpu_move(device, to, from, n_bytes, err);
}

static frt_status cpu_sync(Device *device, void *stream, frt_error *err) {
    (void)device;
    (void)stream;
    (void)err;
    return FRT_OK;
}

static frt_status cpu_sync_all(Device *device, frt_error *err) {
    return cpu_sync(device, NULL, err);
}

typedef struct CpuTimer {
    int32_t n;
    int64_t ns[];
} CpuTimer;

static frt_status cpu_timer_create(Device *device, int32_t n, void **timer, frt_error *err) {
    (void)device;
    size_t n_bytes = sizeof(CpuTimer) + (size_t)n * sizeof(int64_t);
    CpuTimer *t = mem_alloc(1, n_bytes);
    if (!t) {
        return frt_fail_memory(err, n_bytes);
    }
    t->n = n;
    *timer = t;
    return FRT_OK;
}

static frt_status cpu_timer_mark(Device *device, void *timer, int32_t i, void *stream,
                                 frt_error *err) {
    (void)device;
    (void)stream;
    (void)err;
    ((CpuTimer *)timer)->ns[i] = port_clock_ns();
    return FRT_OK;
}

static frt_status cpu_timer_read(Device *device, void *timer, float *ms, frt_error *err) {
    (void)device;
    (void)err;
    const CpuTimer *t = timer;
    for (int32_t i = 0; i + 1 < t->n; i++) {
        ms[i] = (float)((double)(t->ns[i + 1] - t->ns[i]) * 1e-6);
    }
    return FRT_OK;
}

static void cpu_timer_free(Device *device, void *timer) {
    (void)device;
    mem_free(timer);
}

static frt_status cpu_describe(const Device *device, void *kernel, frt_kernel_info *info,
                               frt_error *err) {
    (void)device;
    (void)kernel;
    (void)err;
    *info = (frt_kernel_info){0};
    return FRT_OK;
}

const DeviceOps device_cpu_ops = {
    .open = cpu_open,
    .close = cpu_close,
    .enter = cpu_enter,
    .leave = cpu_leave,
    .load = cpu_load,
    .unload = cpu_unload,
    .find = cpu_find,
    .describe = cpu_describe,
    .alloc = cpu_alloc,
    .free = cpu_free,
    .upload = cpu_move,
    .download = cpu_move,
    .launch = cpu_launch,
    .copy = cpu_copy,
    .sync = cpu_sync,
    .sync_all = cpu_sync_all,
    .timer_create = cpu_timer_create,
    .timer_mark = cpu_timer_mark,
    .timer_read = cpu_timer_read,
    .timer_free = cpu_timer_free,
};
