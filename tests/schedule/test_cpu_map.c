/* Steps of a CPU's maps and scans: several vectors where elements take long, whose ends are steps
 * of one,  what cost
 * knows of values that only some elements of a step need, and lanes that share elements. */
#include "lib/compile.h"
#include "lib/pair.h"
#include "lib/plans.h"
#include "codegen/cpu/cpu.h"

#include <criterion/criterion.h>

typedef struct Case {
    const char *source;
    uint32_t unroll; /* of the first kernel's last variant */
    uint32_t n_kernels;
} Case;

static const Case cases[] = {
    {"graph g(x: f32[1000]) -> (y: f32[1000]) { y = x * 2.0 + 1.0 }\n", 1, 1},
    {"graph g(x: f32[1003]) -> (y: f32[1003]) { y = sigmoid(tanh(x)) }\n", 4, 1},
    {"graph g(x: f64[77]) -> (y: f64[77]) { y = exp(x) }\n", 4, 1},
    {"graph g(x: f32[1000]) -> (y: f32[1000]) { y = sin(x) }\n", 2, 1},
    {"graph g(x: f32[1001]) -> (y: f32[1001]) { y = tanh(exp(sin(sigmoid(x)))) }\n", 4, 1},
    /* rows that are too short, and some that have one step and a rest */
    {"graph g(x: f32[50, 11]) -> (y: f32[50, 10]) {\n"
     "  fuse must {\n    y = exp(tanh(x[:, 1:]))\n  }\n}\n",
     1, 1},
    {"graph g(x: f32[9, 75], z: f32[75]) -> (y: f32[9, 75]) {\n"
     "  y = pad(exp(x[:, 1:] * z[1:]), low=[0, 1], high=[0, 0])\n}\n",
     4, 1},
    /* rows of a scan that lie side by side: whole steps, whole vectors and a rest; and few rows */
    {"graph g(x: f32[10, 203]) -> (y: f32[10, 203]) {\n"
     "  y = tanh(exp(sigmoid(cumsum(sigmoid(x), axis=0))))\n}\n",
     4, 1},
    {"graph g(x: f32[10, 13]) -> (y: f32[10, 13]) {\n"
     "  y = exp(sigmoid(cumsum(x, axis=0)))\n}\n",
     1, 1},
    {"graph g(x: f32[10, 203]) -> (y: f32[10, 203]) {\n  y = cumsum(x, axis=0) * 2.0\n}\n", 1, 1},
    /* one sigmoid of a row of 32 costs a whole step in a kernel of the others */
    {"graph g(x: f64[16, 32, 8, 32]) -> (y: f64[16, 32, 8, 32], a: f64[16, 32, 8, 1]) {\n"
     "  y = sigmoid(x)\n  a = sigmoid(abs(y[:, :, :, 0:1]))\n}\n",
     4, 4},
};

Test(cpu_map, steps_have_several_vectors_where_elements_take_long) {
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Arena *arena = arena_new(NULL);
        const Plan *plan = plans_of(arena, TARGET_CPU, cases[i].source);
        const Kernel *first = &plan->kernels.data[0];
        uint32_t unroll = first->variants[first->n_variants - 1].sched.unroll;
        cr_expect_eq(unroll, cases[i].unroll, "unroll %u: %s", unroll, cases[i].source);
        cr_expect_eq(plan->kernels.n, cases[i].n_kernels, "%u kernels: %s", plan->kernels.n,
                     cases[i].source);
        arena_free(arena);
    }
}

Test(cpu_map, no_element_is_left_out) {
    static const TargetId targets[] = {TARGET_CPU, TARGET_CPU_V4};
    for (size_t i = 0; i < sizeof cases / sizeof *cases * 2; i++) {
        const Target *target = target_get(targets[i % 2]);
        if (!compile_target_runs(target)) continue;
        Arena *arena = arena_new(NULL);
        Text report = {.arena = arena};
        RigOptions options = RIG_OPTIONS_INIT;
        bool ok = pair_is_right(cases[i / 2].source, target, &options, NULL, 3, &report);
        cr_expect(ok, "%s%s", text_str(&report), cases[i / 2].source);
        arena_free(arena);
    }
}

/* Lanes of which 2 to 4 share an element, from any place on: enlarged images, and zeros between
 * elements, with padding on both sides. */
static const char *const shared[] = {
    "graph g(x: f32[3, 9, 37]) -> (y: f32[3, 9, 74]) {\n"
    "  y = reshape(expand(unsqueeze(x, 3), [3, 9, 37, 2]), [3, 9, 74]) + 1.0\n}\n",
    "graph g(x: f32[3, 9, 37]) -> (y: f32[3, 9, 109]) {\n"
    "  y = exp(pad(x, low=[0, 0, 0], high=[0, 0, 0], interior=[0, 0, 2]))\n}\n",
    "graph g(x: f64[3, 9, 37]) -> (y: f64[3, 17, 107]) {\n"
    "  y = abs(pad(x, low=[0, 0, 0], high=[0, 0, 0], interior=[0, 1, 2])[:, :, 1:108])\n}\n",
    "graph g(x: f32[2, 5, 33]) -> (y: f32[2, 5, 68]) {\n"
    "  y = abs(pad(x, low=[0, 0, 1], high=[0, 0, 2], interior=[0, 0, 1]))\n}\n",
    "graph g(x: i32[2, 5, 33]) -> (y: i32[2, 5, 131]) {\n"
    "  y = abs(reshape(expand(unsqueeze(x, 3), [2, 5, 33, 4]), [2, 5, 132])[:, :, 1:])\n}\n",
};

Test(cpu_map, lanes_share_elements) {
    static const TargetId targets[] = {TARGET_CPU, TARGET_CPU_V4};
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++) {
        Arena *arena = arena_new(NULL);
        const Plan *plan = plans_of(arena, TARGET_CPU_V4, shared[i]);
        const Kernel *last = &plan->kernels.data[plan->kernels.n - 1];
        cr_expect_gt(sched_chunk_elems(&last->variants[0].sched), CPU_MAP_SHORT_RUN, "%s",
                     shared[i]);
        for (uint32_t t = 0; t < 2; t++) {
            Text report = {.arena = arena};
            RigOptions options = RIG_OPTIONS_INIT;
            bool ok = !compile_target_runs(target_get(targets[t])) ||
                      pair_is_right(shared[i], target_get(targets[t]), &options, NULL, 5, &report);
            cr_expect(ok, "%s%s", text_str(&report), shared[i]);
        }
        arena_free(arena);
    }
}
