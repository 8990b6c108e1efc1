/* What a CPU takes for rows that it reads or stores across memory. */
#include "schedule/schedule.h"

#include "lib/plans.h"

#include <criterion/criterion.h>
#include <math.h>

#define SOFTMAX_OF_TURNED \
    "graph g(t: f32[N, M]) -> (y: f32[M, N]) {\n y = softmax(transpose(t))\n}\n"
#define TURNED_SOFTMAX "graph g(t: f32[M, N]) -> (y: f32[N, M]) {\n y = transpose(softmax(t))\n}\n"

/* In one kernel, by one of the card's two cores. 64 x 1000, which computes more than it waits, is
 * measured by a core with AVX2, as the target has. */
static const struct {
    const char *source;
    int64_t m, n;
    double us;
} measured[] = {
    {SOFTMAX_OF_TURNED, 512, 512, 1246},    {SOFTMAX_OF_TURNED, 1024, 1024, 7936},
    {SOFTMAX_OF_TURNED, 2048, 2048, 47749}, {SOFTMAX_OF_TURNED, 1000, 1000, 2610},
    {SOFTMAX_OF_TURNED, 1024, 64, 431},     {SOFTMAX_OF_TURNED, 1000, 64, 117},
    {SOFTMAX_OF_TURNED, 8192, 64, 3386},    {SOFTMAX_OF_TURNED, 64, 1000, 176},
    {TURNED_SOFTMAX, 2048, 2048, 32602},    {TURNED_SOFTMAX, 1000, 1000, 1429},
    {TURNED_SOFTMAX, 1024, 64, 292},        {TURNED_SOFTMAX, 8192, 64, 2405},
};

/* A line for each element, and how many of them a cache has places for: within an operand of 2,
 * while strides alone make one of ten. */
Test(stride, rows_across_memory_take_about_what_was_measured) {
    double sum = 0;
    size_t n = sizeof measured / sizeof *measured;
    for (size_t i = 0; i < n; i++) {
        Arena *arena = arena_new(NULL);
        int64_t dims[DIM_MAX_SYMBOLS] = {measured[i].m, measured[i].n};
        for (int k = 2; k < DIM_MAX_SYMBOLS; k++) dims[k] = -1;
        const char *source =
            str_format(arena, "dim M in 1..8192\ndim N in 1..8192\n%s", measured[i].source);
        Module *module = plans_parse(arena, source);
        Plan *plan = plans_fuse(arena, module, 0, false);
        sched_plan(arena, plan, target_get(TARGET_CPU));
        const Card *card = card_get(CARD_CPU);
        double us = cost_us(arena, plan, card, cost_dims(arena, plan->graph->dims, dims));
        double ratio = us * card->n_processors / measured[i].us;
        cr_expect(ratio > 0.5 && ratio < 2, "%zu: %.1f us, %.0f measured by one core", i, us,
                  measured[i].us);
        sum += log(ratio);
        arena_free(arena);
    }
    cr_expect(fabs(sum / (double)n) < log(1.2), "%.2f on the mean", exp(sum / (double)n));
}
