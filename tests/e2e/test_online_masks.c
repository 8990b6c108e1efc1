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
    "(id + 3 == own + 3) && (j <= i + 383)",
    "(j >= 130) && (id == own) && (j < 600)",
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

static void fill_ids(int32_t *docs, int32_t *owns) {
    for (int j = 0; j < N; j++) docs[j] = j < FIRST ? j < 100 ? 0 : 1 : j < END ? 2 : 3;
    for (int i = 0; i < M; i++) owns[i] = 2;
}

/* All seen scores are equal, and values are the key's distance from FIRST, in 64ths. */
static float value_of(int key) {
    return (float)(key - FIRST) / 64;
}

static void expect_means(const float *y, const char *predicate) {
    for (int at = 0; at < M * C; at++)
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
    fill_ids(c.docs, c.owns);
    for (int at = 0; at < N * C; at++) c.v[at] = value_of(at / C);
    deny(c.k, 0, FIRST), deny(c.k, END, N);
    deny(c.v, 0, FIRST), deny(c.v, END, N);
    for (size_t p = 0; p < N_PREDICATES; p++) {
        const char *source = source_of(arena, "q @ transpose(k)", "f32", predicates[p]);
        Compiled compiled = compiled_new(source, TARGET_CPU);
        run_cpu(&compiled, &c);
        expect_means(c.y, predicates[p]);
        compile_free(&compiled);
    }
    arena_free(arena);
}

/* A GPU, by mma.sync. */

static uint16_t *values;

/* Of the values, those of the keys that a row sees. */
static bool may_access(uint64_t at, uint32_t n_bytes) {
    uint64_t begin = (uint64_t)(uintptr_t)values;
    if (at < begin || at >= begin + sizeof(uint16_t) * N * C) return true;
    uint64_t first = (at - begin) / sizeof(uint16_t) / C;
    return first >= FIRST && (at + n_bytes - 1 - begin) / sizeof(uint16_t) / C < END;
}

static void run_gpu(const Compiled *p, const char *predicate) {
    EmuModule module;
    const Kernel *kernel = &p->plan->kernels.data[0];
    float *x = calloc(M * N, sizeof *x), y[M * C];
    int32_t docs[N], owns[M];
    uint64_t at[5];
    void *params[5] = {&at[0], &at[1], &at[2], &at[3], &at[4]};
    char error[400];
    cr_assert(emu_module_init(&module, p->bytes), "%s", module.error);
    cr_assert(p->plan->kernels.n == 1 && kernel->args.n == 5);
    for (uint32_t i = 0; i < 5; i++) {
        const Buffer *buffer = &p->plan->buffers.data[kernel->args.data[i]];
        const void *tensors[] = {x, values, docs, owns, y};
        const char *names[] = {"x", "v", "docs", "owns", "y"};
        for (uint32_t t = 0; t < 5; t++)
            if (strcmp(buffer->name, names[t]) == 0) at[i] = (uint64_t)(uintptr_t)tensors[t];
    }
    fill_ids(docs, owns);
    for (int i = 0; i < N * C; i++)
        values[i] = (uint16_t)dtype_bits(DT_F16, (double)value_of(i / C));
    const Variant *variant = &kernel->variants[0];
    EmuLaunch launch = {.n_blocks =
                            (M + variant->sched.gemm.tile_m - 1) / variant->sched.gemm.tile_m,
                        .n_threads = variant->sched.threads,
                        .params = params,
                        .seed = 1,
                        .may_access = may_access};
    cr_assert(emu_run(module.kernels.data[0], &launch, error, sizeof error), "%s: %s", predicate,
              error);
    expect_means(y, predicate);
    emu_module_free(&module);
    free(x);
}

Test(online_masks, gpu_does_not_read_hidden_tiles, .timeout = 120) {
    Arena *arena = arena_new(NULL);
    values = calloc(N * C, sizeof *values);
    for (size_t p = 0; p < N_PREDICATES; p++) {
        Compiled compiled = compiled_new(source_of(arena, "x", "f16", predicates[p]), TARGET_SM_80);
        run_gpu(&compiled, predicates[p]);
        compile_free(&compiled);
    }
    free(values);
    arena_free(arena);
}
