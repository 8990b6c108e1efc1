/* Maps of a CPU whose last axis is divided by a load: it is split where lanes are contiguous then,
 * and the results are those of one kernel per op. */
#include "lib/compile.h"
#include "lib/pair.h"
#include "lib/plans.h"

#include <criterion/criterion.h>

typedef struct Split {
    const char *source;
    int64_t n_last; /* the extent of the last axis */
} Split;

static const Split splits[] = {
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
     "  y = reshape(transpose(x, [1, 0, 2]), [40, 512])\n}\n",
     512},
    /* runs that are too short */
    {"graph g(x: f32[8, 40, 3]) -> (y: f32[40, 24]) {\n"
     "  y = reshape(transpose(x, [1, 0, 2]), [40, 24])\n}\n",
     24},
    /* elements that are apart all the same */
    {"graph g(x: f32[40, 64, 8]) -> (y: f32[40, 512]) {\n"
     "  y = reshape(transpose(x, [0, 2, 1]), [40, 512])\n}\n",
     512},
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

Test(split_axes, lanes_are_contiguous_where_a_split_makes_them_so) {
    for (size_t i = 0; i < sizeof splits / sizeof *splits; i++) {
        Arena *arena = arena_new(NULL);
        int64_t n_last = n_last_of(arena, splits[i].source);
        cr_expect_eq(n_last, splits[i].n_last, "%ld: %s", (long)n_last, splits[i].source);
        arena_free(arena);
    }
}

Test(split_axes, results_are_those_of_one_kernel_per_op) {
    static const TargetId targets[] = {TARGET_CPU, TARGET_CPU_V4};
    for (size_t i = 0; i < sizeof splits / sizeof *splits * 2; i++) {
        const Target *target = target_get(targets[i % 2]);
        if (!compile_target_runs(target)) continue;
        Arena *arena = arena_new(NULL);
        Text report = {.arena = arena};
        Pair pair;
        PairCounts counts = {0};
        RigOptions options = RIG_OPTIONS_INIT;
        PairData data = {.fill = FILL_UNIFORM, .seed = 3};
        bool ok = pair_compile(&pair, splits[i / 2].source, target, &report) &&
                  pair_open(&pair, 0, &options, &report) && pair_place(&pair, NULL, &report) &&
                  pair_run(&pair, &data, &counts, &report);
        cr_expect(ok, "%s%s", text_str(&report), splits[i / 2].source);
        pair_free(&pair);
        arena_free(arena);
    }
}
