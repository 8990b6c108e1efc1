/* Short rows of a CPU, whose neighbours lie side by side: each lane reduces a row of its own. The
 * results are those of rows whose lanes are joined, to the bit. */
#include "lib/compile.h"
#include "lib/pair.h"
#include "lib/plans.h"

#include <criterion/criterion.h>

typedef struct Case {
    const char *source;
    bool is_in_lanes; /* the last kernel; as one kernel per op it is not */
} Case;

static const Case cases[] = {
    {"graph g(x: f32[3, 200]) -> (y: f32[3, 194]) { y = sum(windows(x, size=[7]), axis=-1) }\n",
     true},
    {"graph g(x: f32[5, 21, 30]) -> (y: f32[5, 10, 14]) {\n"
     "  y = relu(mean(windows(x, size=[3, 4], axis=[1, 2], stride=[2, 2]), axis=[3, 4]))\n}\n",
     true},
    {"graph g(x: f64[2, 3, 8, 9, 10]) -> (y: f64[2, 3, 8, 9, 10]) {\n"
     "  y = prod(windows(x, size=[3, 3, 3], axis=[2, 3, 4], padding=[1, 1, 1], value=1.5),\n"
     "           axis=[5, 6, 7])\n}\n",
     true},
    {"graph g(x: bf16[4, 61]) -> (y: bf16[4, 20], z: bf16[4, 20]) {\n"
     "  w = windows(x, size=[4], axis=[1], stride=[3])\n"
     "  y = max(w, axis=-1)\n  z = sum(w, axis=-1)\n}\n",
     true},
    {"graph g(x: i32[300, 3]) -> (y: i32[300]) { y = argmax(x, axis=1) }\n", true},
    {"graph g(x: f32[301, 4]) -> (y: f32[301, 4]) { y = softmax(x) }\n", true},
    /* windows of more taps than chains of a column, and fewer than those of a row */
    {"graph g(x: f32[2, 90]) -> (y: f32[2, 60]) { y = sum(windows(x, size=[31]), axis=-1) }\n",
     true},
    /* rows that are apart, long, or of a length that runs decide; bf16 without masks */
    {"graph g(x: f32[300, 9]) -> (y: f32[300]) { y = sum(x, axis=1) }\n", false},
    {"graph g(x: f32[2, 900]) -> (y: f32[2, 800]) { y = sum(windows(x, size=[101]), axis=-1) }\n",
     false},
    {"dim N in 1..5\ngraph g(x: f32[300, N]) -> (y: f32[300]) { y = sum(x, axis=1) }\n", false},
    {"graph g(x: bf16[4, 10]) -> (y: bf16[4, 3]) {\n"
     "  fuse must {\n    y = max(windows(x, size=[3], axis=[1], stride=[3]), axis=-1)\n  }\n}\n",
     false},
};
enum { N_CASES = sizeof cases / sizeof *cases };

static bool is_in_lanes(Arena *arena, const char *source) {
    const Card *card = card_of_target(target_get(TARGET_CPU));
    const Plan *plan =
        plans_price(arena, plans_parse(arena, source), 0, false, TARGET_CPU, card, NULL).plan;
    const Kernel *last = &plan->kernels.data[plan->kernels.n - 1];
    return template_info(last->variants[0].sched.template)->lanes_are_rows;
}

Test(cpu_rows, lanes_are_rows_where_neighbours_lie_side_by_side) {
    for (size_t i = 0; i < N_CASES; i++) {
        Arena *arena = arena_new(NULL);
        cr_expect_eq(is_in_lanes(arena, cases[i].source), cases[i].is_in_lanes, "%s",
                     cases[i].source);
        arena_free(arena);
    }
}

/* As one kernel per op, windows are stored and their rows are contiguous, so lanes are joined. */
Test(cpu_rows, results_are_those_of_joined_lanes) {
    static const TargetId targets[] = {TARGET_CPU, TARGET_CPU_V4};
    for (size_t i = 0; i < (size_t)N_CASES * 2; i++) {
        const Target *target = target_get(targets[i % 2]);
        if (!compile_target_runs(target)) continue;
        Arena *arena = arena_new(NULL);
        Text report = {.arena = arena};
        const int64_t dims[] = {3};
        RigOptions options = RIG_OPTIONS_INIT;
        bool ok = pair_is_right(cases[i / 2].source, target, &options, dims, 3, &report);
        cr_expect(ok, "%s%s", text_str(&report), cases[i / 2].source);
        arena_free(arena);
    }
}
