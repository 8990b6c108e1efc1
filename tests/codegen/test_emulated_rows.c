/* What kernels over rows touch of tensors that have hardly an element, on an emulated GPU: the
 * caller's may end where they end. Results are checked by the soak. */
#include "emulator/emu.h"
#include "lib/compiled.h"

#include <criterion/criterion.h>
#include <stdio.h>

/* EMPTY_BYTES: the runtime gives so many in place of a tensor without elements. */
enum { MOST_BYTES = 512, GUARD = 64, EMPTY_BYTES = 256 };

/* A tensor amid what is not its own. */
typedef struct Given {
    uint8_t bytes[GUARD + MOST_BYTES + GUARD];
    uint32_t n_bytes;
} Given;
static _Alignas(256) Given x, y;

static uint64_t begin_of(const Given *given) {
    return (uint64_t)(uintptr_t)(given->bytes + GUARD);
}

static bool holds(const Given *given, uint64_t at, uint32_t n_bytes) {
    return at >= begin_of(given) && at + n_bytes <= begin_of(given) + given->n_bytes;
}

static bool may_access(uint64_t at, uint32_t n_bytes) {
    return holds(&x, at, n_bytes) || holds(&y, at, n_bytes);
}

/* Rows of length 0, of a tensor of one element or two. */
static const struct {
    const char *graph;
    uint32_t x_bytes, y_bytes;
} slices[] = {
    {"graph g(x: f32[1, L + 1]) -> (y: f32[1, L]) { y = softmax(x[:, 1:]) }", 4, 0},
    {"graph g(x: f32[1, L + 2]) -> (y: f32[1, L]) { y = log_softmax(x[:, 2:]) }", 8, 0},
    {"graph g(x: f16[1, L + 1]) -> (y: f16[1]) { y = sum(x[:, 1:], axis=1) }", 2, 2},
    {"graph g(x: bf16[L + 1]) -> (y: bf16) { y = var(x[1:]) }", 2, 2},
    {"graph g(x: f32[1, L + 1]) -> (y: f32[1, 4*L]) {"
     " y = softmax(concat([x[:, 1:], x[:, 1:], x[:, 1:], x[:, 1:]], axis=1)) }",
     4, 0},
};

/* Runs every kernel of the graph's module. `min_kernels`: kernels that it has at least. */
static void run_kernels(const char *graph, uint32_t min_kernels) {
    char source[256], error[400];
    snprintf(source, sizeof source, "dim L in 0..512\n%s\n", graph);
    Compiled p = compiled_new(source, TARGET_SM_80);
    cr_assert_eq(p.plan->kernels.n, 1, "%s", source);
    EmuModule module;
    cr_assert(emu_module_init(&module, p.bytes), "%s\n%s", module.error, source);
    uint64_t x_at = begin_of(&x), y_at = begin_of(&y), length = 0;
    void *params[] = {&x_at, &y_at, &length};
    uint32_t n_inputs = p.plan->kernels.data[0].args.n - 1; /* a kernel may read none */
    cr_assert_geq(module.kernels.n, min_kernels, "%s", source);
    for (uint32_t k = 0; k < module.kernels.n; k++) {
        const EmuKernel *kernel = module.kernels.data[k];
        cr_assert_leq(kernel->params.n, sizeof params / sizeof *params, "%s", source);
        EmuLaunch launch = {.n_blocks = 1,
                            .n_threads = kernel->n_threads,
                            .params = n_inputs ? params : params + 1,
                            .seed = 1,
                            .may_access = may_access};
        cr_expect(emu_run(kernel, &launch, error, sizeof error), "%s\n%s", error, source);
    }
    emu_module_free(&module);
    compile_free(&p);
}

Test(emulated_rows, nothing_behind_a_tiny_tensor_is_read) {
    for (size_t i = 0; i < sizeof slices / sizeof *slices; i++) {
        x.n_bytes = slices[i].x_bytes, y.n_bytes = slices[i].y_bytes;
        run_kernels(slices[i].graph, 2); /* by vectors and by single elements */
    }
}

/* Loops that run zero times, over slices that begin at the end of tensors without elements. The
 * reshapes drop the coordinates that would show that nothing is read. */
static const char *const empty_loops[] = {
    "graph g(x: f64[0, 0, 99]) -> (y: f64[0]) { y = cumsum(reshape(x[:, :, 99:], [0]), axis=0) }",
    "graph g(x: i16[0, L, 200]) -> (y: i16[0]) { y = cummax(reshape(x[:, :, 200:], [0]), axis=0) }",
    "graph g(x: f32[L, L, 99]) -> (y: f32[0]) { y = cumsum(reshape(x[:, :, 99:], [0]), axis=0) }",
    "graph g(x: f32[0, 99]) -> (y: f32[0, L]) { y = cumsum(reshape(x[:, 99:], [0, L]), axis=0) }",
    "graph g(x: f32[0, 0, 99]) -> (y: f32[1]) {"
    " y = sum(reshape(x[:, :, 99:], [0]), axis=0, keep=true) }",
    "graph g(x: f32[0, 99]) -> (y: f32[99]) { y = sum(x, axis=0) }",
    "graph g(x: f32[0, 0, 99]) -> (y: f32[33]) {"
    " y = sum(reshape(x[:, :, 99:], [0, 33]), axis=0) }",
    "graph g(x: f32[L, L, 99]) -> (y: f32[33]) {"
    " y = sum(reshape(x[:, :, 99:], [33, 0]), axis=1) }",
    "graph g(x: f64[5, 0, 99]) -> (y: f64) { y = sum(x[:, :, 50]) }",
    "graph g(x: f64[5, 0, 99]) -> (y: f64[5]) { y = sum(x[:, :, 50], axis=1) }",
    "graph g(x: f64[5, 0, 99]) -> (y: f64[99]) { y = sum(x, axis=[0, 1]) }",
    "graph g(x: f64[5, 0, 99]) -> (y: f64[49]) { y = sum(x[:, :, 50:], axis=[0, 1]) }",
    "graph g(x: f64[5, 0, 99]) -> (y: f64[5, 0]) { y = x[:, :, 50] }",
    "graph g(x: f64[5, 0, 99]) -> (y: f64[5, 0]) { y = cumsum(x[:, :, 50], axis=0) }",
};

Test(emulated_rows, a_loop_that_runs_zero_times_reads_nothing) {
    x.n_bytes = EMPTY_BYTES, y.n_bytes = MOST_BYTES;
    for (size_t i = 0; i < sizeof empty_loops / sizeof *empty_loops; i++)
        run_kernels(empty_loops[i], 1);
}
