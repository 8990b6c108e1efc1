/* f32 products by fusec beside OpenBLAS: the same operands, the same processors, in one run, in
 * turn.
 *
 *   openblas ARTIFACT M N K THREADS ROUNDS
 *
 * ARTIFACT has the graphs input_plain, input_bias, param_plain and param_bias of openblas.sh: x @
 * w, and relu(x @ w + bias), with w as an input or as a param, which is prepared once. OpenBLAS has
 * no prepared form; its bias and relu are a loop over its result. Prints the least milliseconds of
 * each, and OpenBLAS's over ours. One thread is timed by its own processor time, to which other
 * programs add nothing but misses of the cache, several by the clock. */
#include <dlfcn.h>
#include <fusert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef void (*Sgemm)(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                      const float *a, int lda, const float *b, int ldb, float beta, float *c,
                      int ldc);
typedef void (*Sgemv)(int order, int trans, int m, int n, float alpha, const float *a, int lda,
                      const float *x, int step_x, float beta, float *y, int step_y);
enum { ROW_MAJOR = 101, NO_TRANS = 111, TRANS = 112 };
enum { N_GRAPHS = 4, N_CONTENDERS = N_GRAPHS + 2, BLAS_PLAIN = N_GRAPHS, BLAS_BIAS };
static const char *const graphs[N_GRAPHS] = {"input_plain", "input_bias", "param_plain",
                                             "param_bias"};

typedef struct Bench {
    int m, n, k, n_threads;
    float *x, *w, *bias;    /* [m, k], [k, n], [n] */
    float *y[N_CONTENDERS]; /* [m, n] each */
    frt_exec *execs[N_GRAPHS];
    Sgemm sgemm;
    Sgemv sgemv;                /* faster for one row */
    double least[N_CONTENDERS]; /* milliseconds */
} Bench;

static void die(const char *what, const char *why) {
    fprintf(stderr, "openblas: %s: %s\n", what, why);
    exit(1);
}

static float *make_array(size_t n, float scale) {
    float *data = aligned_alloc(64, (n * sizeof *data + 63) / 64 * 64);
    if (!data) die("memory", "there is not enough");
    unsigned state = 1;
    for (size_t i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        data[i] = scale * ((float)(state >> 8) / 8388608.0f - 1.0f);
    }
    return data;
}

static double now_ms(int n_threads) {
    struct timespec now;
    clock_gettime(n_threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &now);
    return 1e3 * (double)now.tv_sec + 1e-6 * (double)now.tv_nsec;
}

static void open_blas(Bench *bench) {
    void *library = dlopen("libopenblas.so.0", RTLD_NOW);
    if (!library) die("OpenBLAS", dlerror());
    void (*set_threads)(int);
    *(void **)&bench->sgemm = dlsym(library, "cblas_sgemm");
    *(void **)&bench->sgemv = dlsym(library, "cblas_sgemv");
    *(void **)&set_threads = dlsym(library, "openblas_set_num_threads");
    if (!bench->sgemm || !bench->sgemv || !set_threads) die("OpenBLAS", "it lacks a function");
    set_threads(bench->n_threads);
}

static void open_graphs(Bench *bench, const char *path) {
    frt_error err = FRT_ERROR_INIT;
    frt_module *module = NULL;
    frt_program_options options = FRT_PROGRAM_OPTIONS_INIT;
    options.n_threads = bench->n_threads;
    if (frt_module_load_file(path, &module, &err)) die(path, err.message);
    frt_tensor x = {bench->x, FRT_F32, 2, {bench->m, bench->k}};
    frt_tensor w = {bench->w, FRT_F32, 2, {bench->k, bench->n}};
    frt_tensor bias = {bench->bias, FRT_F32, 1, {bench->n}};
    for (int i = 0; i < N_GRAPHS; i++) {
        frt_program *program = NULL;
        frt_tensor y = {bench->y[i], FRT_F32, 2, {bench->m, bench->n}};
        int is_param = strncmp(graphs[i], "param", 5) == 0;
        int has_bias = strstr(graphs[i], "bias") != NULL;
        if (frt_program_create(module, graphs[i], &options, &program, &err) ||
            (is_param && frt_program_set_param_tensor(program, "w", &w, &err)) ||
            frt_exec_create(program, &bench->execs[i], &err) ||
            frt_bind(bench->execs[i], "x", &x, &err) ||
            (!is_param && frt_bind(bench->execs[i], "w", &w, &err)) ||
            (has_bias && frt_bind(bench->execs[i], "bias", &bias, &err)) ||
            frt_bind(bench->execs[i], "y", &y, &err) || frt_prepare(bench->execs[i], &err))
            die(graphs[i], err.message);
    }
}

static void add_bias(const Bench *bench, float *y) {
    for (int i = 0; i < bench->m; i++)
        for (int j = 0; j < bench->n; j++) {
            float sum = y[(size_t)i * (size_t)bench->n + (size_t)j] + bench->bias[j];
            y[(size_t)i * (size_t)bench->n + (size_t)j] = sum > 0 ? sum : 0;
        }
}

static void run_once(const Bench *bench, int which) {
    frt_error err = FRT_ERROR_INIT;
    if (which < N_GRAPHS) {
        if (frt_run(bench->execs[which], NULL, &err)) die(graphs[which], err.message);
        return;
    }
    if (bench->m == 1)
        bench->sgemv(ROW_MAJOR, TRANS, bench->k, bench->n, 1, bench->w, bench->n, bench->x, 1, 0,
                     bench->y[which], 1);
    else
        bench->sgemm(ROW_MAJOR, NO_TRANS, NO_TRANS, bench->m, bench->n, bench->k, 1, bench->x,
                     bench->k, bench->w, bench->n, 0, bench->y[which], bench->n);
    if (which == BLAS_BIAS) add_bias(bench, bench->y[which]);
}

/* Everybody has computed the same, but for the order of sums. */
static void compare(const Bench *bench) {
    size_t n = (size_t)bench->m * (size_t)bench->n;
    for (int i = 0; i < N_GRAPHS; i++) {
        const float *other = bench->y[i % 2 ? BLAS_BIAS : BLAS_PLAIN];
        for (size_t at = 0; at < n; at++)
            if (!(fabsf(bench->y[i][at] - other[at]) <= 1e-3f)) die(graphs[i], "it is wrong");
    }
}

int main(int argc, char **argv) {
    if (argc != 7) die("usage", "openblas ARTIFACT M N K THREADS ROUNDS");
    Bench bench = {.m = atoi(argv[2]), .n = atoi(argv[3]), .k = atoi(argv[4])};
    bench.n_threads = atoi(argv[5]);
    bench.x = make_array((size_t)bench.m * (size_t)bench.k, 1);
    bench.w = make_array((size_t)bench.k * (size_t)bench.n, 1.0f / (float)bench.k);
    bench.bias = make_array((size_t)bench.n, 1);
    for (int i = 0; i < N_CONTENDERS; i++)
        bench.y[i] = make_array((size_t)bench.m * (size_t)bench.n, 1);
    open_blas(&bench);
    open_graphs(&bench, argv[1]);
    for (int i = 0; i < N_CONTENDERS; i++) run_once(&bench, i), bench.least[i] = INFINITY;
    compare(&bench);
    for (int round = 0; round < atoi(argv[6]); round++)
        for (int i = 0; i < N_CONTENDERS; i++) {
            double begin = now_ms(bench.n_threads);
            run_once(&bench, i);
            double ms = now_ms(bench.n_threads) - begin;
            if (ms < bench.least[i]) bench.least[i] = ms;
        }
    double plain = bench.least[BLAS_PLAIN], biased = bench.least[BLAS_BIAS];
    printf("| %d x %d x %d | %.3f | %.3f |", bench.m, bench.n, bench.k, plain, biased);
    for (int i = 0; i < N_GRAPHS; i++) printf(" %.3f |", bench.least[i]);
    for (int i = 0; i < N_GRAPHS; i++) printf(" %.2f |", plain / bench.least[i]);
    printf("\n");
    return 0;
}
