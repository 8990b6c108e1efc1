/* Products by tile registers (AMX), whose instructions are interpreted here: programs of fast
 * numerics, at all levels of the target, beside the unfused ones and the interpreter's bounds. */
#include "tools/amx.h"
#include "lib/compiled.h"
#include "lib/pair.h"
#include "template/cpu_amx.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

/* The runtime is linked with these in place of port.c's: it is told that the machine has tile
 * registers, and does not ask for the permission to use them. So each instruction is illegal. */
int __real_port_cpu_has(const char *feature);
int __wrap_port_cpu_has(const char *feature);
int __wrap_port_cpu_has(const char *feature) {
    return strncmp(feature, "amx-", 4) == 0 ? 1 : __real_port_cpu_has(feature);
}

static bool cannot_run(void) {
    bool cannot = !compile_target_runs(target_get(TARGET_CPU_VNNI));
    if (cannot) printf("SKIPPED this CPU cannot run cpu-vnni, which cpu-amx adds tiles to\n");
    return cannot;
}

typedef struct Extents {
    int64_t m, n, k;
} Extents;

/* Around the 16 rows and columns of a register, its 64 bytes of k, tiles of 32 rows, blocks of k
 * (768 steps of 2 bytes) and of columns (288). */
static const Extents all_extents[] = {{17, 16, 1},   {18, 33, 31},  {40, 48, 64},
                                      {33, 290, 65}, {70, 17, 769}, {450, 40, 96}};
enum { N_EXTENTS = sizeof all_extents / sizeof *all_extents };

/* Of M rows: m, n and k stand for the extents. */
static const char *const products[] = {
    "graph g(x: bf16[M, k]) -> (y: bf16[M, n]) {\n"
    "  param w: bf16[k, n]\n  param b: bf16[n]\n  y = relu(x @ w + b)\n}\n",
    "graph g(x: bf16[M, k], w: bf16[n, k]) -> (y: f32[M, n]) {\n"
    "  y = matmul(relu(x), transpose(w, [1, 0]), out=f32)\n}\n",
    "graph g(x: bf16[M, k], w: bf16[k, n]) -> (y: f32[M, n], z: f32[M, n]) {\n"
    "  param v: bf16[k, n]\n  y = matmul(x, w, out=f32)\n  z = matmul(x, v, out=f32)\n}\n",
    "graph g(x: bf16[M, k]) -> (y: bf16[M, n]) {\n"
    "  param w: bf16[k, n]\n  y = softmax(x @ w)\n}\n",
    "graph g(x: i8[M, k], w: i8[k, n]) -> (y: i32[M, n]) {\n  y = matmul(x, w, out=i32)\n}\n",
    "graph g(x: u8[M, k]) -> (y: i32[M, n]) {\n"
    "  param w: i8[k, n]\n  y = matmul(x, w, out=i32) * 3\n}\n",
    "graph g(x: u8[2, M, k], w: u8[2, n, k]) -> (y: i32[2, M, n]) {\n"
    "  y = matmul(x, transpose(w, [0, 2, 1]), out=i32)\n}\n",
    "graph g(x: i8[M, k]) -> (y: i32[M, n]) {\n"
    "  param w: u8[n, k]\n  y = matmul(x, transpose(w, [1, 0]), out=i32)\n}\n"};
enum { N_PRODUCTS = sizeof products / sizeof *products };

/* Compiles and runs the program fused and unfused, by tile registers, on the one thread that may
 * interpret them. */
static void check(Arena *arena, const char *source, const int64_t *extents) {
    Text report = {.arena = arena};
    RigOptions options = RIG_OPTIONS_INIT;
    options.program.n_threads = 1;
    options.program.no_weights = true;
    uint64_t before = amx_n_interpreted();
    bool ok = pair_is_right(source, target_get(TARGET_CPU_AMX), &options, extents, 7, &report);
    cr_assert(ok, "%s%s", source, text_str(&report));
    cr_expect_gt(amx_n_interpreted(), before, "%s", source);
}

/* Each single letter k or n becomes a number. */
static Str with_extents(Arena *arena, const char *product, Extents e) {
    Text text = {.arena = arena};
    text_puts(&text, "dim M in 0..512\n");
    for (const char *at = product; *at; at++) {
        bool is_extent = (*at == 'k' || *at == 'n') && strchr("[, ", at[-1]) && strchr("],", at[1]);
        if (is_extent)
            text_printf(&text, "%lld", (long long)(*at == 'k' ? e.k : e.n));
        else
            text_printf(&text, "%c", *at);
    }
    return text_str(&text);
}

Test(cpu_amx, products_are_right, .timeout = 300) {
    if (cannot_run()) return;
    compile_with_fast_numerics();
    amx_interpret();
    for (uint32_t i = 0; i < N_PRODUCTS * N_EXTENTS; i++) {
        Arena *arena = arena_new(NULL);
        Extents e = all_extents[i / N_PRODUCTS];
        Str source = with_extents(arena, products[i % N_PRODUCTS], e);
        check(arena, source, (int64_t[]){e.m});
        arena_free(arena);
    }
}

/* Windows are packed, and groups of a grouped convolution are a batch axis. */
Test(cpu_amx, convolutions_are_right, .timeout = 300) {
    static const char *const sources[] = {
        "graph g(x: bf16[2, 9, 9, 40], w: bf16[3, 3, 40, 24]) -> (y: bf16[2, 9, 9, 24]) {\n"
        "  y = relu(conv2d_nhwc(x, w, padding=1))\n}\n",
        "graph g(x: i8[1, 12, 12, 16], w: i8[3, 3, 16, 32]) -> (y: i32[1, 10, 10, 32]) {\n"
        "  y = conv2d_nhwc(x, w, out=i32)\n}\n",
        "graph g(x: bf16[1, 4, 40, 64], w: bf16[1, 1, 32, 64]) -> (y: bf16[1, 2, 20, 64]) {\n"
        "  y = conv2d_nhwc(x, w, stride=2, groups=2)\n}\n"};
    if (cannot_run()) return;
    compile_with_fast_numerics();
    amx_interpret();
    Arena *arena = arena_new(NULL);
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) check(arena, sources[i], NULL);
    arena_free(arena);
}

/* Sums of bf16 have another order in tile registers, so only fast numerics allow them. */
Test(cpu_amx, strict_products_of_floats_have_none) {
    static const char source[] =
        "graph g(x: bf16[64, 64], w: bf16[64, 64]) -> (y: bf16[64, 64]) {\n"
        "  y = x @ w\n}\n";
    for (int is_fast = 0; is_fast < 2; is_fast++) {
        if (is_fast) compile_with_fast_numerics();
        Compiled compiled = compiled_new(source, TARGET_CPU_AMX);
        const Kernel *kernel = &compiled.plan->kernels.data[0];
        const Variant *last = &kernel->variants[kernel->n_variants - 1];
        cr_expect_eq(last->sched.cpu_gemm.has_amx, is_fast == 1);
        cr_expect_eq(cpu_amx_multiplies(kernel, is_fast == 1), is_fast == 1);
        compile_free(&compiled);
    }
}
