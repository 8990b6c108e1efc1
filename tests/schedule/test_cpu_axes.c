/* Axes of a CPU's maps. The last axis is split where a load divides it and lanes are contiguous
 * then; axes are joined although padding hides a range of the outer one. The results are those of
 * one kernel per op. */
#include "lib/compile.h"
#include "lib/pair.h"
#include "lib/plans.h"

#include <criterion/criterion.h>

typedef struct Case {
    const char *source;
    int64_t n_last; /* the extent of the last axis */
} Case;

static const Case cases[] = {
    /* windows of 7 pixels with 3 channels, in rows of 147 */
    {"graph g(x: f32[2, 30, 30, 3]) -> (y: f32[288, 147]) {\n"
     "  fuse must { y = reshape(windows(x, size=[7, 7], axis=[1, 2], stride=[2, 2]), [288, 147]) "
     "}\n}\n",
     21},
    /* the same, of which padding hides some */
    {"graph g(x: f32[2, 24, 24, 3]) -> (y: f32[288, 147]) {\n"
     "  p = pad(x, low=[0, 3, 3, 0], high=[0, 3, 3, 0])\n"
     "  y = relu(reshape(windows(p, size=[7, 7], axis=[1, 2], stride=[2, 2]), [288, 147]))\n}\n",
     21},
    /* heads beside each other, which end inside a vector, or do not */
    {"graph g(x: bf16[8, 40, 60]) -> (y: bf16[40, 480]) {\n"
     "  y = reshape(transpose(x, [1, 0, 2]), [40, 480])\n}\n",
     60},
    {"graph g(x: bf16[8, 40, 64]) -> (y: bf16[40, 512]) {\n"
     "  fuse must {\n    y = reshape(transpose(x, [1, 0, 2]), [40, 512])\n  }\n}\n",
     512},
    /* runs that are too short */
    {"graph g(x: f32[8, 40, 3]) -> (y: f32[40, 24]) {\n"
     "  y = reshape(transpose(x, [1, 0, 2]), [40, 24])\n}\n",
     24},
    /* elements that are apart all the same */
    {"graph g(x: f32[40, 64, 8]) -> (y: f32[40, 512]) {\n"
     "  fuse must {\n    y = reshape(transpose(x, [0, 2, 1]), [40, 512])\n  }\n}\n",
     512},
    /* padding of pixels with channels, of pixels, of rows alone, and of channels */
    {"graph g(x: f32[2, 9, 11, 3]) -> (y: f32[2, 12, 18, 3]) {\n"
     "  y = relu(pad(x, low=[0, 1, 3, 0], high=[0, 2, 4, 0], value=-1.5))\n}\n",
     54},
    {"graph g(x: f32[2, 9, 11]) -> (y: f32[2, 12, 18]) {\n"
     "  y = relu(pad(x, low=[0, 1, 3], high=[0, 2, 4]))\n}\n",
     18},
    {"graph g(x: f32[2, 9, 11, 3]) -> (y: f32[2, 12, 11, 3]) {\n"
     "  y = relu(pad(x, low=[0, 1, 0, 0], high=[0, 2, 0, 0]))\n}\n",
     396},
    {"graph g(x: f32[2, 9, 11, 3]) -> (y: f32[2, 9, 11, 8]) {\n"
     "  y = relu(pad(x, low=[0, 0, 0, 1], high=[0, 0, 0, 4]))\n}\n",
     8},
    /* two tensors that are padded apart */
    {"graph g(x: f32[9, 11, 3], z: f32[9, 7, 3]) -> (y: f32[9, 18, 3]) {\n"
     "  y = pad(x, low=[0, 7, 0], high=[0, 0, 0]) + pad(z, low=[0, 0, 0], high=[0, 11, 0])\n}\n",
     54},
    /* short rows that gather element by element, and short rows that gather side by side */
    {"graph g(x: i16[40, 5], s: i16[7, 5], i: i32[40, 5]) -> (y: i16[40, 5]) {\n"
     "  y = x + take_along_dim(s, i, axis=0)\n}\n",
     200},
    {"graph g(s: f32[7, 5], i: i32[40]) -> (y: f32[40, 5]) { y = gather(s, i) + 1.0 }\n", 5},
    /* contiguous as they are */
    {"graph g(x: f32[40, 512]) -> (y: f32[20480]) { y = reshape(relu(x), [20480]) }\n", 20480},
};

static int64_t n_last_of(Arena *arena, const char *source) {
    const Card *card = card_of_target(target_get(TARGET_CPU_V4));
    PricedPlan priced =
        plans_price(arena, plans_parse(arena, source), 0, false, TARGET_CPU_V4, card, NULL);
    const Plan *plan = priced.plan;
    const Kernel *last = &plan->kernels.data[plan->kernels.n - 1];
    return dim_lo(plan->graph->dims,
                  index_axis_extent(scalartab_indices(last->scalars), last->n_parallel - 1));
}

Test(cpu_axes, lanes_lie_along_the_longest_run) {
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Arena *arena = arena_new(NULL);
        int64_t n_last = n_last_of(arena, cases[i].source);
        cr_expect_eq(n_last, cases[i].n_last, "%ld: %s", (long)n_last, cases[i].source);
        arena_free(arena);
    }
}

Test(cpu_axes, results_are_those_of_one_kernel_per_op) {
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
