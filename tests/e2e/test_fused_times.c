/* No plan for a CPU is slower than its ops apart. `make bench-fusion` measures more, and more
 * closely. */
#include "codegen/codegen.h"
#include "lib/pair.h"

#include <criterion/criterion.h>
#include <math.h>
#include <time.h>

enum { N_ROUNDS = 9, N_TRIES = 10, PAUSE_MS = 50 };
/* Beyond them a fused run is too slow: a factor of the unfused time, and microseconds. */
static const double most_factor = 1.3, most_us = 3;

/* Whether the fused run is too slow in all tries. What else the machine does only adds, and may
 * last longer than a try: the least of all tries counts, with pauses between them. */
static bool is_slower(Pair *pair, PairTimes *least, Text *report) {
    const struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000L};
    *least = (PairTimes){INFINITY, INFINITY};
    for (int i = 0; i < N_TRIES; i++) {
        PairTimes t;
        if (i > 0) nanosleep(&pause, NULL);
        cr_assert(pair_time(pair, N_ROUNDS, &t, report), "%s", text_str(report));
        least->fused_us = fmin(least->fused_us, t.fused_us);
        least->unfused_us = fmin(least->unfused_us, t.unfused_us);
        if (least->fused_us <= least->unfused_us * most_factor + most_us) return false;
    }
    return true;
}

static void time_source(const char *source, const Target *target) {
    Arena *arena = arena_new(NULL);
    Text report = {.arena = arena};
    Pair pair;
    PairTimes t;
    PairCounts counts = {0};
    RigOptions options = RIG_OPTIONS_INIT;
    PairData data = {.fill = FILL_UNIFORM, .seed = 1, .without_reference = true};
    options.program.n_threads = 1;
    bool is_right = pair_compile_plain(&pair, source, target, target, &report) &&
                    pair_open(&pair, 0, &options, &report) && pair_place(&pair, NULL, &report) &&
                    pair_run(&pair, &data, &counts, &report);
    cr_assert(is_right, "%s%s", text_str(&report), source);
    cr_expect(!is_slower(&pair, &t, &report), "fused %.1f us, unfused %.1f: %s", t.fused_us,
              t.unfused_us, source);
    pair_free(&pair);
    arena_free(arena);
}

static const char *const sources[] = {
#define TIMED(source) source,
#include "e2e/fused_times.def"
};

Test(fused_times, no_program_is_slower_than_its_ops_apart, .timeout = 240) {
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++)
        time_source(sources[i], codegen_native_cpu());
}
