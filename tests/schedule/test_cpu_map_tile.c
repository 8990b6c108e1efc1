/* Maps in tiles on a CPU: which maps are, along which axis they turn values, and that no element is
 * left out where tiles, squares and pieces end. */
#include "lib/compile.h"
#include "lib/pair.h"
#include "lib/plans.h"

#include <criterion/criterion.h>

typedef struct Tiling {
    const char *source;
    uint32_t in; /* the axis of loads of the last kernel, plus 1; 0: it has no tiles */
} Tiling;

static const Tiling tilings[] = {
    {"graph g(x: f32[130, 77]) -> (y: f32[77, 130]) { y = transpose(x) }\n", 1},
    {"graph g(x: f32[3, 70, 20], z: f32[20, 70], b: f32[70]) -> (y: f32[3, 20, 70]) {\n"
     "  y = exp(transpose(x, perm=[0, 2, 1])) * z + b\n}\n",
     2},
    {"graph g(x: f64[9, 33]) -> (y: f64[33, 9]) { y = transpose(x) }\n", 1},
    {"graph g(x: bf16[40, 67]) -> (y: bf16[67, 40]) { y = relu(transpose(x)) }\n", 1},
    {"graph g(x: i64[21, 19]) -> (y: i64[19, 21]) { y = transpose(x) + 1 }\n", 1},
    /* pieces of the loads' axis: a padding, and one shorter than a vector */
    {"graph g(x: f32[2, 17, 5, 23]) -> (y: f32[2, 7, 27, 17]) {\n"
     "  fuse must {\n"
     "    y = pad(transpose(x, perm=[0, 2, 3, 1]), low=[0, 1, 2, 0], high=[0, 1, 2, 0])\n"
     "  }\n}\n",
     3},
    {"graph g(a: f32[12, 6], b: f32[12, 70]) -> (y: f32[76, 12]) {\n"
     "  y = relu(transpose(concat([a, b], axis=1)))\n}\n",
     1},
    /* one operand lies along the lanes, the other is turned: both are read in vectors */
    {"graph g(x: f32[64, 64], z: f32[64, 64]) -> (y: f32[64, 64], w: f32[64, 64]) {\n"
     "  fuse must {\n    y = transpose(x) - z\n    w = transpose(x) * 2.0\n  }\n}\n",
     1},
    /* near lanes, short axes, bytes, and no load that is apart */
    {"graph g(x: f32[64, 2, 64]) -> (y: f32[64, 128]) {\n"
     "  y = reshape(transpose(x, perm=[0, 2, 1]), [64, 128])\n}\n",
     0},
    {"graph g(x: f32[5, 64]) -> (y: f32[64, 5]) { y = transpose(x) }\n", 0},
    {"graph g(x: i8[64, 64]) -> (y: i8[64, 64]) { y = transpose(x) }\n", 0},
    {"graph g(x: f32[64, 64]) -> (y: f32[64, 64]) { y = exp(x) }\n", 0},
};
enum { N_TILINGS = sizeof tilings / sizeof *tilings };

Test(cpu_map_tile, values_are_turned_whose_loads_lie_along_another_axis) {
    for (size_t i = 0; i < N_TILINGS; i++) {
        Arena *arena = arena_new(NULL);
        const Card *card = card_of_target(target_get(TARGET_CPU));
        Module *module = plans_parse(arena, tilings[i].source);
        const Plan *plan = plans_price(arena, module, 0, false, TARGET_CPU, card, NULL).plan;
        const Sched *sched = &plan->kernels.data[plan->kernels.n - 1].variants[0].sched;
        bool is_tiled = template_info(sched->template)->turns_values;
        cr_expect_eq(is_tiled, tilings[i].in > 0, "%s", tilings[i].source);
        if (is_tiled && tilings[i].in)
            cr_expect_eq(sched->map_tile.axis_in, tilings[i].in - 1, "i%u: %s",
                         sched->map_tile.axis_in, tilings[i].source);
        arena_free(arena);
    }
}

Test(cpu_map_tile, no_element_is_left_out) {
    static const TargetId targets[] = {TARGET_CPU, TARGET_CPU_V4};
    for (size_t i = 0; i < N_TILINGS * 2; i++) {
        const Target *target = target_get(targets[i % 2]);
        if (!compile_target_runs(target)) continue;
        Arena *arena = arena_new(NULL);
        Text report = {.arena = arena};
        RigOptions options = RIG_OPTIONS_INIT;
        options.program.n_threads = i % 3 ? 1 : 3;
        bool ok = pair_is_right(tilings[i / 2].source, target, &options, NULL, 5, &report);
        cr_expect(ok, "%s%s", text_str(&report), tilings[i / 2].source);
        arena_free(arena);
    }
}
