/* No plan for a CPU is slower than its ops apart. `make bench-fusion` measures more, and more
 * closely. */
#include "codegen/codegen.h"
#include "lib/pair.h"

#include <criterion/criterion.h>

enum { N_ROUNDS = 9, N_TRIES = 3 };
/* Beyond them a fused run is too slow: a factor of the unfused time, and microseconds. */
static const double most_factor = 1.3, most_us = 3;

static bool is_slower(Pair *pair, PairTimes *t, Text *report) {
    for (int i = 0; i < N_TRIES; i++) {
        cr_assert(pair_time(pair, N_ROUNDS, t, report), "%s", text_str(report));
        if (t->fused_us <= t->unfused_us * most_factor + most_us) return false;
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
    bool is_right = pair_compile_plain(&pair, source, target, &report) &&
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
