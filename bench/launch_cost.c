/* What launching costs: an artifact's run, by frt_run into a stream, by the exec's own graph, and
 * many in one CUDA graph of the caller, each with and without launches that overlap; and how long
 * its code takes to load: as one module, all of it and what runs, into the cache and from there.
 *
 *   cc -std=c11 -D_POSIX_C_SOURCE=200809L -O2 -Iruntime/include bench/launch_cost.c \
 *      build/libfusert.a -lm -ldl -lpthread -o launch_cost
 *   CUDA_CACHE_DISABLE=1 ./launch_cost [--loads=ROUNDS] ARTIFACT [DIM=VALUE]...
 *
 * With --loads it only loads. Else it first checks that overlapping runs give the bits of runs that
 * are waited for one by one: two execs in turn on one workspace, and one whose inputs and outputs
 * are copied in the stream between runs, each in a stream, by own graphs and captured. Run several
 * at once: kernels that wait have to survive that a GPU is taken away and given back. Prints one
 * line of JSON. */
#include <dlfcn.h>
#include <fusert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MAX_RUNS = 2000, SAMPLE_US = 20000, N_CAPTURED = 64, N_SAMPLES = 9, MAX_TENSORS = 256 };
enum { MAX_PTX_BYTES = 64 << 20 };

typedef struct Bench {
    frt_module *module;
    frt_program *program;
    frt_exec *exec;
    void *stream;
    void *data[MAX_TENSORS];
    void *host[MAX_TENSORS]; /* what an input holds, what an output is to hold */
    size_t n_bytes[MAX_TENSORS];
    int is_output[MAX_TENSORS];
    int n_data;
    frt_error err;
} Bench;

static struct {
    int (*cuInit)(unsigned);
    int (*cuDevicePrimaryCtxRetain)(void **, int);
    int (*cuCtxSetCurrent)(void *);
    int (*cuStreamCreate)(void **, unsigned);
    int (*cuStreamSynchronize)(void *);
    int (*cuMemcpyDtoDAsync_v2)(uint64_t, uint64_t, size_t, void *);
    int (*cuStreamBeginCapture_v2)(void *, int);
    int (*cuStreamEndCapture)(void *, void **);
    int (*cuGraphInstantiateWithFlags)(void **, void *, unsigned long long);
    int (*cuGraphLaunch)(void *, void *);
    int (*cuGraphExecDestroy)(void *);
    int (*cuGraphDestroy)(void *);
    int (*cuModuleLoadData)(void **, const void *);
    int (*cuModuleUnload)(void *);
    int (*cuModuleGetFunction)(void **, void *, const char *);
    int (*cuFuncLoad)(void *);
} cu;

static void check(int failed, const char *what) {
    if (failed) {
        fprintf(stderr, "launch_cost: %s (%d)\n", what, failed);
        exit(1);
    }
}

static void open_driver(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    void *context = NULL;
    check(!library, "no CUDA driver");
#define FIND(name) *(void **)&cu.name = dlsym(library, #name)
    FIND(cuInit), FIND(cuDevicePrimaryCtxRetain), FIND(cuCtxSetCurrent), FIND(cuStreamCreate);
    FIND(cuStreamSynchronize), FIND(cuStreamBeginCapture_v2), FIND(cuStreamEndCapture);
    FIND(cuMemcpyDtoDAsync_v2);
    FIND(cuGraphInstantiateWithFlags), FIND(cuGraphLaunch), FIND(cuGraphExecDestroy);
    FIND(cuGraphDestroy), FIND(cuModuleLoadData), FIND(cuModuleUnload);
    FIND(cuModuleGetFunction), FIND(cuFuncLoad);
    check(cu.cuInit(0) || cu.cuDevicePrimaryCtxRetain(&context, 0) || cu.cuCtxSetCurrent(context),
          "no device");
}

static double now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int n) {
    qsort(values, (size_t)n, sizeof *values, by_value);
    return values[n / 2];
}

/* Values between -1 and 1, integers 0 or 1; the same for the same seed. */
static void fill_random(void *data, frt_dtype dtype, size_t n_bytes, uint32_t *seed) {
    size_t n = n_bytes / frt_dtype_bytes(dtype);
    for (size_t i = 0; i < n; i++) {
        *seed = *seed * 1664525u + 1013904223u;
        float value = (float)((int32_t)*seed >> 8) / (float)(1 << 23);
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        if (dtype == FRT_F64) ((double *)data)[i] = (double)value;
        if (dtype == FRT_F32) ((float *)data)[i] = value;
        if (dtype == FRT_BF16) ((uint16_t *)data)[i] = (uint16_t)(bits >> 16);
        if (dtype == FRT_F16) ((uint16_t *)data)[i] = (uint16_t)(0x3000 | *seed >> 22);
        if (dtype == FRT_I32) ((int32_t *)data)[i] = (int32_t)(*seed >> 31);
        if (dtype == FRT_BOOL) ((uint8_t *)data)[i] = (uint8_t)(*seed >> 31);
    }
}

/* Dims: those named on the command line, else the nearest legal to 1. */
static void fill(Bench *b, char **dims, int n_dims, uint32_t seed) {
    uint32_t param_seed = 7;
    int64_t values[64] = {0};
    FRT_INFO(frt_module_info, info);
    FRT_INFO(frt_graph_info, graph);
    frt_module_get_info(b->module, &info);
    int32_t g = frt_program_graph(b->program);
    frt_module_get_graph(b->module, g, &graph);
    for (int32_t i = 0; i < info.n_dims; i++) {
        FRT_INFO(frt_dim_info, dim);
        frt_module_get_dim(b->module, i, &dim);
        values[i] = dim.lo > 1 ? dim.lo : dim.multiple;
        for (int k = 0; k < n_dims; k++) {
            size_t n = strlen(dim.name);
            if (strncmp(dims[k], dim.name, n) == 0 && dims[k][n] == '=')
                values[i] = atoll(dims[k] + n + 1);
        }
        check(frt_set_dim(b->exec, dim.name, values[i], &b->err), b->err.message);
    }
    for (int32_t i = 0; i < graph.n_tensors; i++) {
        FRT_INFO(frt_tensor_info, t);
        frt_module_get_tensor(b->module, g, i, &t);
        frt_tensor bound = {.dtype = t.dtype, .rank = t.rank};
        size_t n = frt_dtype_bytes(t.dtype);
        if (t.role == FRT_TEMP) continue;
        check(frt_module_eval_shape(b->module, g, i, values, bound.dims, &b->err), b->err.message);
        for (int32_t k = 0; k < t.rank; k++) n *= (size_t)bound.dims[k];
        void *host = calloc(1, n);
        check(!host, "out of memory");
        if (t.role != FRT_OUTPUT)
            fill_random(host, t.dtype, n, t.role == FRT_PARAM ? &param_seed : &seed);
        if (t.role == FRT_PARAM) {
            bound.data = host;
            check(frt_program_set_param_tensor(b->program, t.name, &bound, &b->err),
                  b->err.message);
            free(host);
            continue;
        }
        check(frt_device_alloc(b->program, n, &bound.data, &b->err) ||
                  frt_copy_to_device(b->program, bound.data, host, n, &b->err) ||
                  frt_bind(b->exec, t.name, &bound, &b->err),
              b->err.message);
        b->data[b->n_data] = bound.data;
        b->host[b->n_data] = host;
        b->is_output[b->n_data] = t.role == FRT_OUTPUT;
        b->n_bytes[b->n_data++] = n;
    }
    check(frt_prepare(b->exec, &b->err), b->err.message);
}

static void open_bench(Bench *b, frt_module *module, frt_program_options options, char **dims,
                       int n_dims) {
    *b = (Bench){.module = module, .err = FRT_ERROR_INIT};
    options.no_weights = true;
    check(frt_program_create(module, NULL, &options, &b->program, &b->err), b->err.message);
    check(frt_exec_create(b->program, &b->exec, &b->err), b->err.message);
    check(cu.cuStreamCreate(&b->stream, 1), "no stream");
    if (dims) fill(b, dims, n_dims, 1);
}

static void close_bench(Bench *b) {
    for (int i = 0; i < b->n_data; i++) {
        frt_device_free(b->program, b->data[i], b->n_bytes[i]);
        free(b->host[i]);
    }
    frt_exec_free(b->exec);
    frt_program_free(b->program);
}

static void run(Bench *b) {
    check(frt_run(b->exec, b->stream, &b->err), b->err.message);
}

/* One run by itself, its outputs brought to the host; or, with `compares`, compared. */
static void settle(Bench *b, int compares, const char *what) {
    check(cu.cuStreamSynchronize(b->stream), "a run failed");
    for (int i = 0; i < b->n_data; i++) {
        if (!b->is_output[i]) continue;
        void *to = compares ? malloc(b->n_bytes[i]) : b->host[i];
        check(frt_copy_from_device(b->program, to, b->data[i], b->n_bytes[i], &b->err),
              b->err.message);
        check(compares && memcmp(to, b->host[i], b->n_bytes[i]) != 0, what);
        if (compares) free(to);
    }
}

/* An exec over the other's program and stream, with inputs and a workspace of its own. */
static void open_second(Bench *b, const Bench *first, char **dims, int n_dims, uint32_t seed) {
    *b = (Bench){.module = first->module,
                 .program = first->program,
                 .stream = first->stream,
                 .err = FRT_ERROR_INIT};
    check(frt_exec_create(b->program, &b->exec, &b->err), b->err.message);
    fill(b, dims, n_dims, seed);
}

static void copy_async(const Bench *b, void *to, void *from, int i) {
    check(cu.cuMemcpyDtoDAsync_v2((uint64_t)(uintptr_t)to, (uint64_t)(uintptr_t)from, b->n_bytes[i],
                                  b->stream),
          "cannot copy");
}

/* Runs `sides` in turn: two execs on one workspace; and between, runs of `mover` with the inputs of
 * one of them, whose outputs are copied to it. */
static void enqueue_pattern(Bench *sides, Bench *mover) {
    for (int i = 0; i < 6; i++) run(&sides[i % 2]);
    for (int i = 0; i < 4; i++) {
        Bench *side = &sides[i % 2];
        for (int k = 0; k < side->n_data; k++)
            if (!side->is_output[k]) copy_async(side, mover->data[k], side->data[k], k);
        run(mover);
        for (int k = 0; k < side->n_data; k++)
            if (side->is_output[k]) copy_async(side, side->data[k], mover->data[k], k);
        run(&sides[(i + 1) % 2]);
    }
}

enum { N_BURSTS = 60 };

static void check_overlap(frt_module *module, char **dims, int n_dims) {
    Bench sides[2], mover;
    size_t n_workspace = 0;
    void *workspace = NULL, *graph = NULL, *exec = NULL;
    frt_program_options options = FRT_PROGRAM_OPTIONS_INIT;
    open_bench(&sides[0], module, options, dims, n_dims);
    open_second(&sides[1], &sides[0], dims, n_dims, 2);
    open_second(&mover, &sides[0], dims, n_dims, 3);
    Bench *b = &sides[0];
    for (int i = 0; i < 2; i++) {
        run(&sides[i]);
        settle(&sides[i], 0, "");
    }
    check(frt_exec_workspace_bytes(b->exec, &n_workspace, &b->err) ||
              frt_device_alloc(b->program, n_workspace, &workspace, &b->err),
          b->err.message);
    void *poison = malloc(n_workspace + 1);
    check(!poison, "out of memory");
    memset(poison, 0xff, n_workspace);
    Bench *all[] = {&sides[0], &sides[1], &mover};
    for (int i = 0; i < 3 && n_workspace; i++)
        check(frt_exec_set_workspace(all[i]->exec, workspace, n_workspace, &b->err) ||
                  frt_prepare(all[i]->exec, &b->err),
              b->err.message);
    for (int mode = 0; mode < 3; mode++) { /* in a stream, captured, by graphs of their own */
        static const char *const names[] = {"other bits in a stream", "other bits when captured",
                                            "other bits by own graphs"};
        for (int i = 0; i < 3 && mode == 2; i++)
            check(frt_exec_keep_graph(all[i]->exec, true, &b->err) ||
                      frt_prepare(all[i]->exec, &b->err),
                  b->err.message);
        if (mode == 1) {
            check(cu.cuStreamBeginCapture_v2(b->stream, 0), "cannot capture");
            enqueue_pattern(sides, &mover);
            check(cu.cuStreamEndCapture(b->stream, &graph), "cannot capture");
            check(cu.cuGraphInstantiateWithFlags(&exec, graph, 0), "cannot make a graph");
        }
        for (int burst = 0; burst < N_BURSTS; burst++) {
            check(frt_copy_to_device(b->program, workspace, poison, n_workspace, &b->err),
                  b->err.message);
            if (mode == 1)
                check(cu.cuGraphLaunch(exec, b->stream), "cannot replay");
            else
                enqueue_pattern(sides, &mover);
            for (int i = 0; i < 2; i++) settle(&sides[i], 1, names[mode]);
        }
    }
    free(poison);
    cu.cuGraphExecDestroy(exec);
    cu.cuGraphDestroy(graph);
    frt_exec_free(mover.exec);
    frt_exec_free(sides[1].exec);
    close_bench(&sides[0]);
}

/* Microseconds from the first of many runs to the end of the last, per run; `held` receives how
 * long the caller was held for one, with nothing in the way. */
static double time_stream(Bench *b, double *held) {
    double us[N_SAMPLES], calls[N_SAMPLES];
    int n_runs = 40;
    for (int s = -2; s < N_SAMPLES; s++) {
        double begin = now_us();
        for (int i = 0; i < n_runs; i++) run(b);
        check(cu.cuStreamSynchronize(b->stream), "a run failed");
        double each = (now_us() - begin) / n_runs;
        if (s < 0) {
            n_runs = (int)(SAMPLE_US / each) + 10;
            n_runs = n_runs < MAX_RUNS ? n_runs : MAX_RUNS;
            continue;
        }
        us[s] = each;
        begin = now_us();
        for (int i = 0; i < 10; i++) run(b);
        calls[s] = (now_us() - begin) / 10;
        check(cu.cuStreamSynchronize(b->stream), "a run failed");
    }
    *held = median(calls, N_SAMPLES);
    return median(us, N_SAMPLES);
}

/* Microseconds per run of N_CAPTURED runs in one graph, replayed back to back. */
static double time_captured(Bench *b) {
    void *graph = NULL, *exec = NULL;
    double us[N_SAMPLES];
    check(cu.cuStreamBeginCapture_v2(b->stream, 0), "cannot capture");
    for (int i = 0; i < N_CAPTURED; i++) run(b);
    check(cu.cuStreamEndCapture(b->stream, &graph), "cannot capture");
    check(cu.cuGraphInstantiateWithFlags(&exec, graph, 0), "cannot make a graph");
    int n_replays = 2;
    for (int s = -2; s < N_SAMPLES; s++) {
        double begin = now_us();
        for (int i = 0; i < n_replays; i++) cu.cuGraphLaunch(exec, b->stream);
        check(cu.cuStreamSynchronize(b->stream), "a replay failed");
        double each = (now_us() - begin) / n_replays;
        if (s < 0)
            n_replays = (int)(2 * SAMPLE_US / each) + 2;
        else
            us[s] = each / N_CAPTURED;
    }
    cu.cuGraphExecDestroy(exec);
    cu.cuGraphDestroy(graph);
    return median(us, N_SAMPLES);
}

/* Ways to bring a program's code to the device, all kernels of the artifact or those that run. */
typedef struct Way {
    const char *name;
    bool load_all;
    int n_threads;
    const char *cache; /* NULL: none; else its name: empty at first */
    bool is_cached;    /* by a way above */
} Way;

static const Way ways[] = {
    {"all", true, 0, NULL, false},
    {"needed", false, 0, NULL, false},
    {"needed, linked and kept, 1 thread", false, 1, "a", false},
    {"needed, linked and kept", false, 0, "b", false},
    {"needed, cached", false, 0, "b", true},
};
enum { N_WAYS = sizeof ways / sizeof ways[0], MAX_ROUNDS = 9 };

static double time_way(const Way *way, frt_module *module, char **dims, int n_dims,
                       const char *folder) {
    Bench b;
    char path[64];
    FRT_INFO(frt_load_info, load);
    frt_program_options options = FRT_PROGRAM_OPTIONS_INIT;
    snprintf(path, sizeof path, "%s/%s", folder, way->cache ? way->cache : "");
    options.load_all = way->load_all;
    options.n_threads = way->n_threads;
    options.cache = way->cache != NULL;
    options.cache_dir = path;
    open_bench(&b, module, options, dims, n_dims);
    frt_program_get_load(b.program, &load);
    check(load.is_cached != options.cache || load.is_compiled == way->is_cached ||
              (way->load_all && load.n_loaded != load.n_kernels),
          way->name);
    close_bench(&b);
    return load.ms;
}

/* As one module, by the driver alone, with every function found. */
static double time_module(const char *path) {
    void *module = NULL;
    FILE *file = fopen(path, "rb");
    char *text = calloc(1, MAX_PTX_BYTES);
    check(!file || !text || fread(text, 1, MAX_PTX_BYTES - 1, file) == 0, "cannot read the PTX");
    fclose(file);
    double begin = now_us();
    check(cu.cuModuleLoadData(&module, text), "the driver refuses the PTX");
    for (char *at = text; (at = strstr(at, "\n//@ function "));) {
        char name[200] = "";
        void *function = NULL;
        sscanf(at += 14, "%199s", name);
        check(cu.cuModuleGetFunction(&function, module, name), name);
        if (cu.cuFuncLoad) check(cu.cuFuncLoad(function), name);
    }
    double ms = 1e-3 * (now_us() - begin);
    check(cu.cuModuleUnload(module), "cannot unload");
    free(text);
    return ms;
}

/* Medians of `n_rounds`, each of which loads in every way; the first load of the process, which
 * brings the driver's compiler, is not counted. */
static void print_loads(const char *path, frt_module *module, char **dims, int n_dims,
                        int n_rounds) {
    double ms[N_WAYS + 1][MAX_ROUNDS];
    time_module(path);
    for (int round = 0; round < n_rounds; round++) {
        char folder[] = "/tmp/launch-cost-XXXXXX", command[64];
        check(!mkdtemp(folder), "no folder");
        ms[N_WAYS][round] = time_module(path);
        for (int i = 0; i < N_WAYS; i++)
            ms[i][round] = time_way(&ways[i], module, dims, n_dims, folder);
        snprintf(command, sizeof command, "rm -r %s", folder);
        check(system(command), "cannot remove the cache");
    }
    printf("\"load_ms\": {\"one module\": %.2f", median(ms[N_WAYS], n_rounds));
    for (int i = 0; i < N_WAYS; i++)
        printf(", \"%s\": %.2f", ways[i].name, median(ms[i], n_rounds));
    printf("}");
}

static void print_launches(frt_module *module, char **dims, int n_dims) {
    for (int overlaps = 0; overlaps < 2; overlaps++) {
        Bench b;
        double held, held_graph;
        frt_program_options options = FRT_PROGRAM_OPTIONS_INIT;
        options.in_order = !overlaps;
        open_bench(&b, module, options, dims, n_dims);
        double captured = time_captured(&b);
        double stream = time_stream(&b, &held);
        check(frt_exec_keep_graph(b.exec, true, &b.err) || frt_prepare(b.exec, &b.err),
              b.err.message);
        double graph = time_stream(&b, &held_graph);
        printf(", \"%s\": {\"captured_us\": %.3f, \"stream_us\": %.3f, \"stream_call_us\": %.3f, "
               "\"own_graph_us\": %.3f, \"own_graph_call_us\": %.3f}",
               overlaps ? "overlap" : "in_order", captured, stream, held, graph, held_graph);
        close_bench(&b);
    }
}

int main(int argc, char **argv) {
    frt_error err = FRT_ERROR_INIT;
    frt_module *module = NULL;
    int n_rounds = argc > 1 && strncmp(argv[1], "--loads=", 8) == 0 ? atoi(argv[1] + 8) : 0;
    int first = n_rounds ? 2 : 1;
    check(argc <= first || n_rounds > MAX_ROUNDS,
          "use: launch_cost [--loads=ROUNDS] ARTIFACT [DIM=VALUE]...");
    char *path = argv[first], **dims = argv + first + 1;
    int n_dims = argc - first - 1;
    open_driver();
    check(frt_module_load_file(path, &module, &err), err.message);
    if (!n_rounds) check_overlap(module, dims, n_dims);
    printf("{\"artifact\": \"%s\", ", path);
    print_loads(path, module, dims, n_dims, n_rounds ? n_rounds : 1);
    if (!n_rounds) print_launches(module, dims, n_dims);
    puts("}");
    frt_module_free(module);
    return 0;
}
