/* See kernels.h. A loaded kernel is an atomic pointer that never changes again. So a lookup needs
 * no lock, and loading takes one. */
#include "code/kernels.h"

#include "host/error.h"
#include "host/mem.h"
#include "host/pool.h"
#include "host/port.h"

#include <pthread.h>

enum { DRIVER_STACK_BYTES = 8 << 20 }; /* for the driver's own compiler */

struct Kernels {
    Device *device;
    const frt_module *module;
    const Variant *variants; /* of the steps of the graph */
    uint32_t n;
    uint32_t *pieces;           /* per variant: the index of its piece */
    _Atomic(void *) *functions; /* per variant; NULL: not loaded */
    pthread_mutex_t lock;       /* guards the fields below; held while a thread loads */
    DeviceCode *codes;          /* capacity: one per piece of the module */
    uint32_t n_codes;
    void **handles; /* per piece: handle of the code that has it; NULL: not loaded */
    double ms;      /* time spent on loading */
};

static frt_status find_pieces(Kernels *kernels, frt_error *err) {
    uint32_t piece = 0;
    for (uint32_t i = 0; i < kernels->n; i++) {
        if (!pieces_have(kernels->module, kernels->variants[i].symbol, &piece)) {
            return frt_fail(err, FRT_E_CODE, "the artifact's code has no kernel `%.200s`",
                            kernels->variants[i].symbol);
        }
        kernels->pieces[i] = piece;
    }
    return FRT_OK;
}

/* The variants of a graph's steps are contiguous in the manifest. */
static void find_variants(Kernels *kernels, const Graph *graph) {
    const Manifest *m = &kernels->module->manifest;
    for (uint32_t i = 0; i < graph->n_steps; i++) {
        const Step *step = &m->steps[graph->first_step + i];
        if (kernels->n == 0) {
            kernels->variants = &m->variants[step->first_variant];
        }
        kernels->n += step->n_variants;
    }
}

frt_status kernels_create(Device *device, const frt_module *module, const Graph *graph,
                          Kernels **result, frt_error *err) {
    Kernels *kernels = mem_alloc(1, sizeof *kernels);
    if (!kernels) {
        return frt_fail_memory(err, sizeof *kernels);
    }
    if (pthread_mutex_init(&kernels->lock, NULL) != 0) {
        mem_free(kernels);
        return frt_fail(err, FRT_E_THREADS, "cannot make the kernels' mutex");
    }
    kernels->device = device;
    kernels->module = module;
    find_variants(kernels, graph);
    kernels->pieces = mem_alloc(kernels->n, sizeof *kernels->pieces);
    kernels->functions = mem_alloc(kernels->n, sizeof *kernels->functions);
    kernels->codes = mem_alloc(module->n_pieces, sizeof *kernels->codes);
    kernels->handles = mem_alloc(module->n_pieces, sizeof *kernels->handles);
    bool has_room = kernels->pieces && kernels->functions && kernels->codes && kernels->handles;
    frt_status status = has_room ? find_pieces(kernels, err)
                                 : frt_fail_memory(err, module->n_pieces * sizeof *kernels->codes);
    if (status) {
        kernels_free(kernels);
        return status;
    }
    *result = kernels;
    return FRT_OK;
}

void kernels_free(Kernels *kernels) {
    if (!kernels) {
        return;
    }
    for (uint32_t i = 0; i < kernels->n_codes; i++) {
        kernels->device->ops->unload(kernels->device, kernels->codes[i].handle);
    }
    mem_free(kernels->pieces);
    mem_free(kernels->functions);
    mem_free(kernels->codes);
    mem_free(kernels->handles);
    pthread_mutex_destroy(&kernels->lock);
    mem_free(kernels);
}

void *kernels_get(const Kernels *kernels, uint32_t variant) {
    return atomic_load(&kernels->functions[variant]);
}

/* One call of the device's loader: pieces that become one code, and the result. */
typedef struct Job {
    const uint32_t *pieces;
    uint32_t n;
    DeviceCode code;
    frt_status status;
    frt_error err;
} Job;

/* The missing pieces of the kernels that a caller needs. */
typedef struct Batch {
    Kernels *kernels;
    const uint32_t *variants; /* n of them; NULL: all variants */
    uint32_t n;
    uint32_t *missing; /* pieces */
    uint32_t n_missing;
    Job *jobs; /* capacity: one per missing piece */
    uint32_t n_jobs;
} Batch;

static uint32_t wanted(const Batch *batch, uint32_t i) {
    return batch->variants ? batch->variants[i] : i;
}

static bool are_there(const Batch *batch) {
    bool all = true;
    for (uint32_t i = 0; all && i < batch->n; i++) {
        all = kernels_get(batch->kernels, wanted(batch, i)) != NULL;
    }
    return all;
}

static void list_missing(Batch *batch) {
    for (uint32_t i = 0; i < batch->n; i++) {
        uint32_t piece = batch->kernels->pieces[wanted(batch, i)];
        uint32_t k = 0;
        while (k < batch->n_missing && batch->missing[k] != piece) {
            k++;
        }
        if (k == batch->n_missing && !batch->kernels->handles[piece]) {
            batch->missing[batch->n_missing++] = piece;
        }
    }
}

/* Makes one job of all missing pieces, or one job per piece. */
static void make_jobs(Batch *batch, bool together) {
    uint32_t n_each = together ? batch->n_missing : 1;
    batch->n_jobs = 0;
    for (uint32_t i = 0; i < batch->n_missing; i += n_each) {
        batch->jobs[batch->n_jobs++] =
            (Job){.pieces = batch->missing + i, .n = n_each, .err = FRT_ERROR_INIT};
    }
}

/* Runs on any thread. */
static void run_job(void *ctx, int64_t i) {
    const Batch *batch = ctx;
    Job *job = &batch->jobs[i];
    Device *device = batch->kernels->device;
    DeviceScope scope;
    job->status = device->ops->enter(device, &scope, &job->err);
    if (!job->status) {
        job->status = device->ops->load(device, batch->kernels->module, job->pieces, job->n,
                                        &job->code, &job->err);
        device->ops->leave(device, &scope);
    }
}

/* Creates threads for this one load: loading is rare and takes much longer than creating threads.
 * If a thread cannot be created, fewer threads load. */
static void run_jobs(Batch *batch) {
    int n_threads = batch->kernels->device->n_loaders;
    Pool *pool = NULL;
    if ((uint32_t)n_threads > batch->n_jobs) {
        n_threads = (int)batch->n_jobs;
    }
    if (n_threads > 1 && !pool_create(n_threads, DRIVER_STACK_BYTES, &pool, NULL)) {
        pool_run(pool, batch->n_jobs, run_job, batch);
        pool_free(pool);
        return;
    }
    for (uint32_t i = 0; i < batch->n_jobs; i++) {
        run_job(batch, i);
    }
}

/* Keeps the loaded code, and returns the first failed job; NULL: none failed. */
static const Job *settle_jobs(Batch *batch) {
    Kernels *kernels = batch->kernels;
    const Job *failed = NULL;
    for (uint32_t i = 0; i < batch->n_jobs; i++) {
        const Job *job = &batch->jobs[i];
        if (job->status) {
            failed = failed ? failed : job;
            continue;
        }
        kernels->codes[kernels->n_codes++] = job->code;
        for (uint32_t k = 0; k < job->n; k++) {
            kernels->handles[job->pieces[k]] = job->code.handle;
        }
    }
    return failed;
}

static frt_status fail_job(const Job *failed, frt_error *err) {
    frt_fail(err, failed->status, "%s", failed->err.message);
    if (err) {
        err->cuda = failed->err.cuda;
    }
    return failed->status;
}

/* If the driver refuses the joint code, one piece may be at fault. Each piece is then loaded by
 * itself, so that the error names the bad kernel and the others are usable. */
static frt_status load_missing(Batch *batch, frt_error *err) {
    bool together = batch->kernels->device->loads_together;
    make_jobs(batch, together);
    run_jobs(batch);
    const Job *failed = settle_jobs(batch);
    if (failed && failed->status == FRT_E_CODE && together && batch->n_missing > 1) {
        make_jobs(batch, false);
        run_jobs(batch);
        failed = settle_jobs(batch);
    }
    return failed ? fail_job(failed, err) : FRT_OK;
}

/* Dynamic shared memory of a variant in bytes if it is constant, else -1. */
static int64_t most_shared(const Manifest *m, const Variant *variant) {
    int64_t n_bytes;
    return expr_is_const(m->tokens, variant->shared, &n_bytes) ? n_bytes : -1;
}

static frt_status find_functions(const Batch *batch, frt_error *err) {
    Kernels *kernels = batch->kernels;
    Device *device = kernels->device;
    frt_status status = FRT_OK;
    for (uint32_t i = 0; !status && i < batch->n; i++) {
        uint32_t variant = wanted(batch, i);
        const Variant *at = &kernels->variants[variant];
        int64_t max_shared = most_shared(&kernels->module->manifest, at);
        void *function = kernels_get(kernels, variant);
        if (!function) {
            status = device->ops->find(device, kernels->handles[kernels->pieces[variant]],
                                       at->symbol, max_shared, &function, err);
        }
        if (!status) {
            atomic_store(&kernels->functions[variant], function);
        }
    }
    return status;
}

static frt_status load(Batch *batch, frt_error *err) {
    Kernels *kernels = batch->kernels;
    pthread_mutex_lock(&kernels->lock);
    int64_t begin = port_clock_ns();
    list_missing(batch);
    frt_status status = batch->n_missing > 0 ? load_missing(batch, err) : FRT_OK;
    if (!status) {
        status = find_functions(batch, err);
    }
    kernels->ms += 1e-6 * (double)(port_clock_ns() - begin);
    pthread_mutex_unlock(&kernels->lock);
    return status;
}

static frt_status need(Batch *batch, frt_error *err) {
    if (are_there(batch)) {
        return FRT_OK;
    }
    batch->missing = mem_alloc(batch->n, sizeof *batch->missing);
    batch->jobs = mem_alloc(batch->n, sizeof *batch->jobs);
    frt_status status = batch->missing && batch->jobs
                            ? load(batch, err)
                            : frt_fail_memory(err, batch->n * sizeof *batch->jobs);
    mem_free(batch->missing);
    mem_free(batch->jobs);
    return status;
}

frt_status kernels_need(Kernels *kernels, const uint32_t *variants, uint32_t n, frt_error *err) {
    return need(&(Batch){.kernels = kernels, .variants = variants, .n = n}, err);
}

frt_status kernels_need_all(Kernels *kernels, frt_error *err) {
    return need(&(Batch){.kernels = kernels, .n = kernels->n}, err);
}

void kernels_describe_load(Kernels *kernels, frt_load_info *info) {
    *info = (frt_load_info){.n_kernels = (int32_t)kernels->n};
    pthread_mutex_lock(&kernels->lock);
    info->ms = kernels->ms;
    info->is_cached = kernels->n_codes > 0;
    for (uint32_t i = 0; i < kernels->n_codes; i++) {
        info->is_compiled = info->is_compiled || kernels->codes[i].is_compiled;
        info->is_cached = info->is_cached && kernels->codes[i].is_cached;
    }
    for (uint32_t i = 0; i < kernels->n; i++) {
        info->n_loaded += kernels_get(kernels, i) != NULL;
    }
    pthread_mutex_unlock(&kernels->lock);
}
