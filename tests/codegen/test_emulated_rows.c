/* What kernels over rows touch of tensors that have hardly an element, on an emulated GPU: the
 * caller's may end where they end. Results are checked by the soak. */
#include "emulator/emu.h"
#include "lib/compiled.h"

#include <criterion/criterion.h>
#include <stdio.h>

enum { MOST_BYTES = 64, GUARD = 64 };

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
    const char *body;
    uint32_t x_bytes, y_bytes;
} slices[] = {
    {"x: f32[1, L + 1]) -> (y: f32[1, L]) { y = softmax(x[:, 1:]) }", 4, 0},
    {"x: f32[1, L + 2]) -> (y: f32[1, L]) { y = log_softmax(x[:, 2:]) }", 8, 0},
    {"x: f16[1, L + 1]) -> (y: f16[1]) { y = sum(x[:, 1:], axis=1) }", 2, 2},
    {"x: bf16[L + 1]) -> (y: bf16) { y = var(x[1:]) }", 2, 2},
    {"x: f32[1, L + 1]) -> (y: f32[1, 4*L]) { y = softmax(concat([x[:, 1:], x[:, 1:], x[:, 1:],"
     " x[:, 1:]], axis=1)) }",
     4, 0},
};

Test(emulated_rows, nothing_behind_a_tiny_tensor_is_read) {
    for (size_t i = 0; i < sizeof slices / sizeof *slices; i++) {
        char source[256], error[400];
        snprintf(source, sizeof source, "dim L in 0..512\ngraph g(%s\n", slices[i].body);
        x.n_bytes = slices[i].x_bytes, y.n_bytes = slices[i].y_bytes;
        Compiled p = compiled_new(source, TARGET_SM_80);
        cr_assert_eq(p.plan->kernels.n, 1, "%s", source);
        EmuModule module;
        cr_assert(emu_module_init(&module, p.bytes), "%s\n%s", module.error, source);
        uint64_t x_at = begin_of(&x), y_at = begin_of(&y), length = 0;
        void *params[] = {&x_at, &y_at, &length};
        cr_assert_geq(module.kernels.n, 2, "%s", source); /* by vectors and by single elements */
        for (uint32_t k = 0; k < module.kernels.n; k++) {
            const EmuKernel *kernel = module.kernels.data[k];
            cr_assert_eq(kernel->params.n, 3, "%s", source);
            EmuLaunch launch = {.n_blocks = 1,
                                .n_threads = kernel->n_threads,
                                .params = params,
                                .seed = 1,
                                .may_access = may_access};
            cr_expect(emu_run(kernel, &launch, error, sizeof error), "%s\n%s", error, source);
        }
        emu_module_free(&module);
        compile_free(&p);
    }
}
