/* Updates at a place known at run time: their results, and outputs that lie at the address of an
 * input. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "lib/compiled.h"

#include <criterion/criterion.h>
#include <fusert.h>
#include <string.h>
#include <sys/mman.h>

enum { ROWS = 4, COLUMNS = 1024 }; /* a row is a page of 4096 bytes */

static const char source[] =
    "graph put(cache: f32[4, 1024], row: f32[1, 1024], at: i32) -> (new: f32[4, 1024], "
    "top: f32[4]) {\n"
    "  new = dynamic_update_slice(cache, row + 1.0, [at, 0])\n  top = max(new, axis=1)\n}\n"
    "graph late(cache: f32[4, 1024], row: f32[1, 1024], at: i32) -> (new: f32[4, 1024], "
    "top: f32[4]) {\n"
    "  new = dynamic_update_slice(cache, row, [at, 0])\n  top = max(cache * new, axis=1)\n}\n"
    "graph chain(cache: f32[4, 1024], row: f32[1, 1024], at: i32) -> (new: f32[4, 1024]) {\n"
    "  a = dynamic_update_slice(cache, row, [at, 0])\n"
    "  new = dynamic_update_slice(a, row + sum(a), [at + 1, 0])\n}\n"
    "graph two(cache: f32[4, 1024], row: f32[1, 1024], at: i32) -> (new: f32[4, 1024], "
    "other: f32[4, 1024]) {\n"
    "  new = dynamic_update_slice(cache, row, [at, 0])\n"
    "  other = dynamic_update_slice(cache, row * 2.0, [at, 0])\n}\n";

typedef struct Run {
    frt_module *module;
    frt_program *program;
    frt_exec *exec;
    frt_error error;
    float row[COLUMNS], top[ROWS];
    int32_t at;
} Run;

static void bind(Run *run, const char *name, frt_dtype dtype, int32_t rank, int64_t n, void *data) {
    frt_tensor tensor = {.data = data, .dtype = dtype, .rank = rank, .dims = {n, COLUMNS}};
    cr_assert_eq(frt_bind(run->exec, name, &tensor, &run->error), FRT_OK, "%s", run->error.message);
}

static void start(Run *run, const Compiled *p, const char *graph) {
    *run = (Run){.error = FRT_ERROR_INIT};
    cr_assert(!frt_module_load_memory(p->bytes, p->n_bytes, &run->module, &run->error) &&
                  !frt_program_create(run->module, graph, NULL, &run->program, &run->error) &&
                  !frt_exec_create(run->program, &run->exec, &run->error),
              "%s", run->error.message);
    for (int i = 0; i < COLUMNS; i++) run->row[i] = (float)i;
    bind(run, "row", FRT_F32, 2, 1, run->row);
    bind(run, "at", FRT_I32, 0, 0, &run->at);
}

static void end(Run *run) {
    frt_exec_free(run->exec), frt_program_free(run->program), frt_module_free(run->module);
}

static float *new_cache(void) {
    float *cache = mmap(NULL, sizeof(float) * ROWS * COLUMNS, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq(cache, MAP_FAILED);
    for (int i = 0; i < ROWS * COLUMNS; i++) cache[i] = (float)-i;
    return cache;
}

static void free_cache(float *cache) {
    munmap(cache, sizeof(float) * ROWS * COLUMNS);
}

static void expect_row(const float *cache, int32_t at) {
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        float want = i / COLUMNS == at ? (float)(i % COLUMNS) + 1 : (float)-i;
        cr_assert_eq(cache[i], want, "element %d", i);
    }
}

/* A place outside is clamped. The input stays what it was. */
Test(update, apart) {
    static const int32_t places[][2] = {{0, 0}, {2, 2}, {3, 3}, {4, 3}, {-1, 0}};
    Compiled p = compiled_new(source, TARGET_CPU);
    float *cache = new_cache(), *result = new_cache();
    Run run;
    start(&run, &p, "put");
    bind(&run, "cache", FRT_F32, 2, ROWS, cache);
    bind(&run, "new", FRT_F32, 2, ROWS, result);
    bind(&run, "top", FRT_F32, 1, ROWS, run.top);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        run.at = places[i][0];
        memset(result, 0xFF, sizeof(float) * ROWS * COLUMNS);
        cr_assert_eq(frt_run(run.exec, NULL, &run.error), FRT_OK, "%s", run.error.message);
        expect_row(result, places[i][1]);
        expect_row(cache, -1);
        cr_expect_eq(run.top[places[i][1]], 1024.F);
    }
    end(&run);
    free_cache(cache), free_cache(result);
    compile_free(&p);
}

/* Nothing but the row is written: the other pages may not be. */
Test(update, in_place) {
    Compiled p = compiled_new(source, TARGET_CPU);
    float *cache = new_cache();
    Run run;
    start(&run, &p, "put");
    bind(&run, "cache", FRT_F32, 2, ROWS, cache);
    bind(&run, "new", FRT_F32, 2, ROWS, cache);
    bind(&run, "top", FRT_F32, 1, ROWS, run.top);
    run.at = 2;
    cr_assert_eq(mprotect(cache, 2 * sizeof run.row, PROT_READ), 0);
    cr_assert_eq(mprotect(cache + 3 * COLUMNS, sizeof run.row, PROT_READ), 0);
    cr_assert_eq(frt_run(run.exec, NULL, &run.error), FRT_OK, "%s", run.error.message);
    expect_row(cache, 2);
    cr_expect(run.top[0] == 0 && run.top[2] == 1024.F && run.top[3] == -3072.F);
    end(&run);
    free_cache(cache);
    compile_free(&p);
}

static void expect_chain(bool is_in_place) {
    Compiled p = compiled_new(source, TARGET_CPU);
    float *cache = new_cache(), *result = is_in_place ? cache : new_cache(), sum = 0;
    Run run;
    start(&run, &p, "chain");
    bind(&run, "cache", FRT_F32, 2, ROWS, cache);
    bind(&run, "new", FRT_F32, 2, ROWS, result);
    for (int i = 0; i < ROWS * COLUMNS; i++) cache[i] = (float)(i / COLUMNS);
    for (int i = 0; i < COLUMNS; i++) run.row[i] = 1, sum += 0 + 1 + 2 + 3;
    run.at = 0;
    cr_assert_eq(frt_run(run.exec, NULL, &run.error), FRT_OK, "%s", run.error.message);
    sum += COLUMNS; /* the first row has changed from 0 to 1 */
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        int row = i / COLUMNS;
        cr_assert_eq(result[i], row == 0 ? 1 : row == 1 ? 1 + sum : (float)row, "element %d", i);
    }
    end(&run);
    free_cache(cache);
    if (!is_in_place) free_cache(result);
    compile_free(&p);
}

Test(update, chains_share_a_buffer) {
    expect_chain(false);
    expect_chain(true);
}

/* The input in whose place the output of this name may lie; -1: none. */
static int32_t place_of(const Compiled *p, int32_t graph, const char *output) {
    frt_module *module;
    frt_error error = FRT_ERROR_INIT;
    int32_t found = -1;
    cr_assert_eq(frt_module_load_memory(p->bytes, p->n_bytes, &module, &error), FRT_OK);
    for (int32_t i = 0; i < 5; i++) {
        FRT_INFO(frt_tensor_info, tensor);
        if (!frt_module_get_tensor(module, graph, i, &tensor) && tensor.role == FRT_OUTPUT &&
            strcmp(tensor.name, output) == 0)
            found = tensor.stands_for;
    }
    frt_module_free(module);
    return found;
}

/* A kernel that reads the input beside the update, or after it, forbids it. Of two outputs that may
 * lie in one place either one may. */
Test(update, pairs_are_declared) {
    static const TargetId targets[] = {TARGET_CPU, TARGET_SM_90A};
    for (int i = 0; i < 2; i++) {
        Compiled p = compiled_new(source, targets[i]);
        cr_expect_eq(place_of(&p, 0, "new"), 0);
        cr_expect_eq(place_of(&p, 0, "top"), -1);
        cr_expect_eq(place_of(&p, 1, "new"), -1);
        cr_expect_eq(place_of(&p, 2, "new"), 0);
        cr_expect(place_of(&p, 3, "new") == 0 && place_of(&p, 3, "other") == 0);
        compile_free(&p);
    }
}

static void expect_refused(const char *graph, const char *name, size_t shift, const char *message) {
    Compiled p = compiled_new(source, TARGET_CPU);
    float *cache = new_cache(), *result = new_cache();
    Run run;
    start(&run, &p, graph);
    bind(&run, "cache", FRT_F32, 2, ROWS, cache);
    bind(&run, "new", FRT_F32, 2, ROWS, result);
    bind(&run, "top", FRT_F32, 1, ROWS, run.top);
    bind(&run, name, FRT_F32, name[0] == 'n' ? 2 : 1, ROWS, cache + shift);
    cr_expect_eq(frt_run(run.exec, NULL, &run.error), FRT_E_OVERLAP);
    cr_expect_str_eq(run.error.message, message);
    end(&run);
    free_cache(cache), free_cache(result);
    compile_free(&p);
}

Test(update, other_aliases_are_errors) {
    expect_refused("put", "new", 16,
                   "output new shares memory with input cache, but has not its address");
    expect_refused("put", "top", 0, "output top shares memory with input cache");
    expect_refused("late", "new", 0, "output new shares memory with input cache");
}

/* What an update copies is in memory, though no kernel of another launch reads it. */
Test(update, of_what_one_launch_computes) {
    static const char rolled[] =
        "graph g(x: f32[8, 64], w: f32[64, 64], at: i32) -> (y: f32[8, 64]) {\n"
        "  v = x @ w\n  y = dynamic_update_slice(roll(v, -1, 0), v[0:1] @ w, [at, 0])\n}\n";
    Compiled p = compiled_new(rolled, TARGET_SM_90A);
    cr_expect_eq(place_of(&p, 0, "y"), -1);
    compile_free(&p);
}

/* What is copied for an update is copied in a run, so the update is none of the init steps, though
 * it depends on params alone. */
Test(update, of_params) {
    Compiled p = compiled_new("graph g() -> (y: f32[4]) {\n  param w: f32[4, 8]\n  param at: i32\n"
                              "  v = exp(w)\n"
                              "  y = sum(dynamic_update_slice(v, v[:1], [at, 0]), axis=1)\n}\n",
                              TARGET_CPU);
    uint32_t n_updates = 0;
    for (uint32_t k = 0; k < p.plan->kernels.n; k++) {
        const Kernel *kernel = &p.plan->kernels.data[k];
        n_updates += kernel_updates(kernel);
        cr_expect_not(kernel->is_init && kernel_updates(kernel));
    }
    cr_expect_eq(n_updates, 1u);
    compile_free(&p);
}

/* An update is no part of a larger tensor, even where the kernel of its copy could store both. */
Test(update, in_a_concat) {
    Compiled p = compiled_new("graph g(x: f32[4, 8], at: i32) -> (y: f32[8, 8], z: f32[4, 8]) {\n"
                              "  v = dynamic_update_slice(x, x[:1], [at, 0])\n"
                              "  y = concat([v, v])\n  z = exp(v)\n}\n",
                              TARGET_CPU);
    for (uint32_t k = 0; k < p.plan->kernels.n; k++) {
        const Stage *stage = &p.plan->kernels.data[k].stages.data[0];
        for (uint32_t i = 0; i < stage->stores.n && kernel_updates(&p.plan->kernels.data[k]); i++)
            cr_expect_eq(stage->stores.data[i].piece, 0u);
    }
    compile_free(&p);
}

/* An update of an updated value that is an output too copies it after the first update: the two are
 * no one kernel, though they run over the same part. */
Test(update, of_an_updated_output) {
    Compiled p = compiled_new("graph g(x: f32[3, 9], k: f32[1, 9], at: i32, to: i32)\n"
                              "    -> (new: f32[3, 9], b: f32[3, 9]) {\n"
                              "  new = dynamic_update_slice(x, k * 2.0, [at, 0])\n"
                              "  b = dynamic_update_slice(new, k, [to, 0])\n}\n",
                              TARGET_CPU);
    cr_expect_eq(p.plan->kernels.n, 2u);
    for (uint32_t k = 0; k < p.plan->kernels.n; k++)
        cr_expect(kernel_updates(&p.plan->kernels.data[k]));
    compile_free(&p);
}

/* A copy takes all bytes, so a matmul that reads what was updated reads rows without padding. */
Test(update, has_no_padded_rows) {
    Compiled p = compiled_new("dim T in 1..40\n"
                              "graph g(x: i8[2, T, 2], k: i8[1, T, 2], w: i8[2, 2, 1], at: i32)\n"
                              "    -> (y: i8[2, T, 1]) {\n"
                              "  y = matmul(dynamic_update_slice(x, k, [at, 0, 0]), w)\n}\n",
                              TARGET_SM_90A);
    for (uint32_t i = 0; i < p.plan->buffers.n; i++)
        cr_expect_eq(p.plan->buffers.data[i].pitch, DIM_NONE);
    compile_free(&p);
}
