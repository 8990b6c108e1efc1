#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
/* Masks whose loaded values vary along rows and keys: tiles that are hidden from all rows are not
 * read, on a CPU and on an emulated GPU. */
#include "emulator/emu.h"
#include "lib/compiled.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* All rows are of document 2. Keys [256, 384), a block, are of that; those before and behind are of
 * others. */
enum { M = 64, N = 640, C = 64, FIRST = 256, END = 384 };

static const char *const predicates[] = {
    "id == own",
    "!(id != own)",
    "(id <= own) && (own <= id)",
    "(id + 3 == own + 3) & (j <= i + 383)",
    "(j >= 130) && (id == own) && (j < 600)",
    "!((id < own) || (id > own))",
    "(cast(id, i64) == cast(own, i64)) && (cast(id - own, i64) <= 0)",
    "(id == 2) && (i >= 0)",
    "(cast(id, f32) == 2.0) || (j < 0)",
};
enum { N_PREDICATES = sizeof predicates / sizeof *predicates };

static const char *source_of(Arena *arena, const char *scores, const char *dtype,
                             const char *predicate) {
    return str_format(
        arena,
        "graph g(%s, v: %s[%d, %d], docs: i32[%d], owns: i32[%d]) -> (y: f32[%d, %d]) {\n"
        "  i = iota([%d, %d], axis=0)\n  j = iota([%d, %d], axis=1)\n"
        "  id = reshape(docs, [1, %d])\n  own = reshape(owns, [%d, 1])\n"
        "  fuse must {\n  s = %s\n  y = softmax_matmul(where(%s, s, -inf), v, out=f32)\n  }\n}\n",
        *scores == 'x' ? "x: f32[64, 640]" : "q: f32[64, 64], k: f32[640, 64]", dtype, N, C, N, M,
        M, C, M, N, M, N, N, M, scores, predicate);
}

/* The first rows are of a document that no key is of. */
static void fill_ids(int32_t *docs, int32_t *owns, int n_empty) {
    for (int j = 0; j < N; j++) docs[j] = j < FIRST ? j < 100 ? 0 : 1 : j < END ? 2 : 3;
    for (int i = 0; i < M; i++) owns[i] = i < n_empty ? 9 : 2;
}

/* All seen scores are equal, and values are the key's distance from FIRST, in 64ths. */
static float value_of(int key) {
    return (float)(key - FIRST) / 64;
}

static void expect_means(const float *y, const char *predicate, int n_empty) {
    for (int at = 0; at < n_empty * C; at++)
        cr_assert(isnan(y[at]), "%s: element %d of a row without keys is %g", predicate, at,
                  (double)y[at]);
    for (int at = n_empty * C; at < M * C; at++)
        cr_assert(fabs((double)y[at] - (END - FIRST - 1) / 128.) < 1e-2, "%s: element %d is %g",
                  predicate, at, (double)y[at]);
}

/* A CPU. */

/* A tensor [N, C] of f32, and the program's other tensors. */
typedef struct CpuCase {
    float *q, *k, *v, *y;
    int32_t docs[N], owns[M];
} CpuCase;

static float *new_tensor(int rows) {
    void *tensor = mmap(NULL, (size_t)rows * C * 4, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert(tensor != MAP_FAILED);
    return tensor;
}

/* Denies access to the pages inside rows [from, to) of a tensor [N, C]. */
static void deny(float *tensor, int from, int to) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = (uintptr_t)tensor;
    uintptr_t first = (begin + (uintptr_t)from * C * 4 + page - 1) / page * page;
    uintptr_t end = (begin + (uintptr_t)to * C * 4) / page * page;
    cr_assert(first < end && !mprotect((void *)first, end - first, PROT_NONE));
}

static void bind(frt_exec *exec, const char *name, void *data, frt_dtype dtype, int rows,
                 int columns) {
    frt_error error = FRT_ERROR_INIT;
    frt_tensor tensor = {data, dtype, columns ? 2 : 1, {rows, columns}};
    cr_assert(!frt_bind(exec, name, &tensor, &error), "%s", error.message);
}

static void run_cpu(const Compiled *compiled, CpuCase *c) {
    frt_error error = FRT_ERROR_INIT;
    frt_module *module = NULL;
    frt_program *program = NULL;
    frt_exec *exec = NULL;
    cr_assert(!frt_module_load_memory(compiled->bytes, compiled->n_bytes, &module, &error) &&
                  !frt_program_create(module, NULL, NULL, &program, &error) &&
                  !frt_exec_create(program, &exec, &error),
              "%s", error.message);
    bind(exec, "q", c->q, FRT_F32, M, C);
    bind(exec, "k", c->k, FRT_F32, N, C);
    bind(exec, "v", c->v, FRT_F32, N, C);
    bind(exec, "docs", c->docs, FRT_I32, N, 0);
    bind(exec, "owns", c->owns, FRT_I32, M, 0);
    bind(exec, "y", c->y, FRT_F32, M, C);
    cr_assert(!frt_run(exec, NULL, &error), "%s", error.message);
    frt_exec_free(exec), frt_program_free(program), frt_module_free(module);
}

Test(online_masks, cpu_does_not_read_hidden_blocks, .timeout = 60) {
    Arena *arena = arena_new(NULL);
    CpuCase c = {new_tensor(M), new_tensor(N), new_tensor(N), new_tensor(M), {0}, {0}};
    fill_ids(c.docs, c.owns, 0);
    for (int at = 0; at < N * C; at++) c.v[at] = value_of(at / C);
    deny(c.k, 0, FIRST), deny(c.k, END, N);
    deny(c.v, 0, FIRST), deny(c.v, END, N);
    for (size_t p = 0; p < N_PREDICATES; p++) {
        const char *source = source_of(arena, "q @ transpose(k)", "f32", predicates[p]);
        Compiled compiled = compiled_new(source, TARGET_CPU);
        run_cpu(&compiled, &c);
        expect_means(c.y, predicates[p], 0);
        compile_free(&compiled);
    }
    arena_free(arena);
}

/* A GPU, by mma.sync. */

static uint16_t *values;
static bool may_access_all;

/* Of the values, those of the keys that a row sees. */
static bool may_access(uint64_t at, uint32_t n_bytes) {
    uint64_t begin = (uint64_t)(uintptr_t)values;
    if (may_access_all || at < begin || at >= begin + sizeof(uint16_t) * N * C) return true;
    uint64_t first = (at - begin) / sizeof(uint16_t) / C;
    return first >= FIRST && (at + n_bytes - 1 - begin) / sizeof(uint16_t) / C < END;
}

/* A tensor of the program. */
typedef struct GpuTensor {
    const char *name;
    const void *data;
} GpuTensor;

static uint64_t address_of(const GpuTensor *tensors, uint32_t n, const char *name) {
    for (uint32_t t = 0; t < n; t++)
        if (strcmp(name, tensors[t].name) == 0) return (uint64_t)(uintptr_t)tensors[t].data;
    cr_assert_fail("tensor %s", name);
    return 0;
}

static void run_kernel(const EmuModule *module, const Compiled *p, const Kernel *kernel,
                       const GpuTensor *tensors, uint32_t n) {
    const Variant *variant = &kernel->variants[0];
    uint64_t at[MAX_KERNEL_ARGS];
    void *params[MAX_KERNEL_ARGS];
    int64_t n_blocks = 0;
    uint32_t k = 0;
    char error[400];
    for (uint32_t i = 0; i < kernel->args.n; i++) {
        at[i] = address_of(tensors, n, p->plan->buffers.data[kernel->args.data[i]].name);
        params[i] = &at[i];
    }
    while (strcmp(module->kernels.data[k]->name, variant->symbol) != 0) k++;
    cr_assert(dim_is_const(p->plan->graph->dims, variant->grid, &n_blocks));
    EmuLaunch launch = {.n_blocks = (uint32_t)n_blocks,
                        .n_threads = variant->sched.threads,
                        .params = params,
                        .seed = 1,
                        .may_access = may_access};
    cr_assert(emu_run(module->kernels.data[k], &launch, error, sizeof error), "%s", error);
}

/* The kernels: one that makes bounds of the documents, and one that weighs values. */
static void run_gpu(const Compiled *p, const char *predicate, int n_empty) {
    EmuModule module;
    float *x = calloc(M * N, sizeof *x), y[M * C];
    static _Alignas(16) int32_t docs[N], owns[M];
    int32_t bounds[2][N];
    const GpuTensor tensors[] = {{"x", x}, {"v", values},     {"docs", docs},   {"owns", owns},
                                 {"y", y}, {"t0", bounds[0]}, {"t1", bounds[1]}};
    cr_assert(emu_module_init(&module, p->bytes), "%s", module.error);
    fill_ids(docs, owns, n_empty);
    for (int i = 0; i < N * C; i++)
        values[i] = (uint16_t)dtype_bits(DT_F16, (double)value_of(i / C));
    cr_assert_eq(p->plan->kernels.n, 2u, "%s", predicate);
    for (uint32_t k = 0; k < p->plan->kernels.n; k++)
        run_kernel(&module, p, &p->plan->kernels.data[k], tensors,
                   sizeof tensors / sizeof *tensors);
    expect_means(y, predicate, n_empty);
    emu_module_free(&module);
    free(x);
}

Test(online_masks, gpu_does_not_read_hidden_tiles, .timeout = 120) {
    Arena *arena = arena_new(NULL);
    values = calloc(N * C, sizeof *values);
    for (size_t p = 0; p < N_PREDICATES; p++) {
        Compiled compiled = compiled_new(source_of(arena, "x", "f16", predicates[p]), TARGET_SM_80);
        run_gpu(&compiled, predicates[p], 0);
        compile_free(&compiled);
    }
    free(values);
    arena_free(arena);
}

/* Some rows of a warp, a whole warp's, all. */
Test(online_masks, gpu_rows_without_keys_are_nan, .timeout = 120) {
    static const int n_empty[] = {5, 16, M};
    Arena *arena = arena_new(NULL);
    Compiled compiled =
        compiled_new(source_of(arena, "x", "f16", "!((id < own) || (id > own))"), TARGET_SM_80);
    values = calloc(N * C, sizeof *values);
    may_access_all = true;
    for (size_t i = 0; i < sizeof n_empty / sizeof *n_empty; i++)
        run_gpu(&compiled, "rows without keys", n_empty[i]);
    compile_free(&compiled);
    free(values);
    arena_free(arena);
}
