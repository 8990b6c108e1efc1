/* Which loads ask the last cache to keep what they read: those of kernels that write as they read,
 * where that is more than it holds. Times are in docs/results. */
#include "lib/compiled.h"

#include <criterion/criterion.h>

#define NORM(rows, columns)                                                                        \
    "graph g(x: bf16[" rows ", " columns "], w: bf16[" columns "]) -> (y: bf16[" rows ", " columns \
    "]) {\n  y = rmsnorm(x, w)\n}\n"

static const struct {
    const char *source;
    TargetId target;
    uint32_t n_hints, n_policies, n_choices; /* of all functions; choices by extents */
} programs[] = {
    {NORM("16384", "8192"), TARGET_SM_90A, 8, 1, 0}, /* x in eight accesses a thread, not w */
    {NORM("16384", "8192"), TARGET_SM_89, 8, 1, 0},
    {NORM("16384", "8192"), TARGET_SM_80, 0, 0, 0}, /* PTX 7.0 has none */
    {NORM("1024", "8192"), TARGET_SM_90A, 0, 0, 0}, /* 33 MB: a reader finds them in the cache */
    {"dim B in 1..65536\n" NORM("B", "8192"), TARGET_SM_90A, 8, 2, 1},
    {"dim B in 1..1024\n" NORM("B", "8192"), TARGET_SM_90A, 0, 0, 0},
    {"graph g(x: bf16[16384, 8192], b: bf16[8192]) -> (y: bf16[16384, 8192]) {\n"
     "  y = relu(x + b)\n}\n",
     TARGET_SM_90A, 1, 1, 0},
    /* A cluster's blocks each have a part of a row. */
    {"graph g(x: bf16[1024, 131072]) -> (y: bf16[1024, 131072]) {\n  y = softmax(x)\n}\n",
     TARGET_SM_90A, 0, 0, 0},
    /* Nothing is written beside the sums; elements one by one have no hint. */
    {"graph g(x: f32[16384, 8192]) -> (y: f32[16384]) {\n  y = sum(x, axis=1)\n}\n", TARGET_SM_90A,
     0, 0, 0},
    {NORM("16384", "8191"), TARGET_SM_90A, 0, 0, 0}};

Test(gpu_stream, large_inputs_that_are_read_once_stay_in_the_cache) {
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        Compiled c = compiled_new(programs[i].source, programs[i].target);
        uint32_t n_hints = ptx_count(c.bytes, "ld.global.L2::cache_hint.v");
        uint32_t n_policies = ptx_count(c.bytes, "createpolicy.fractional.L2::evict_");
        uint32_t n_choices = ptx_count(c.bytes, "createpolicy.fractional.L2::evict_normal");
        n_hints += ptx_count(c.bytes, "ld.global.nc.L2::cache_hint.v");
        cr_expect_eq(n_hints, programs[i].n_hints, "%s%u hints", programs[i].source, n_hints);
        cr_expect_eq(n_policies, programs[i].n_policies, "%s%u policies", programs[i].source,
                     n_policies);
        cr_expect_eq(n_choices, programs[i].n_choices, "%s%u choices", programs[i].source,
                     n_choices);
        cr_expect(compiled_is_in_registers(&c), "%s", programs[i].source);
        compile_free(&c);
    }
}
