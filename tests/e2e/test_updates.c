/* Random programs of updates, fused beside one kernel per op and the interpreter. soak --updates
 * runs more of them. */
#include "lib/compile.h"
#include "lib/pair.h"
#include "random/random_updates.h"

#include <criterion/criterion.h>

enum { N_PROGRAMS = 200 };

static void check(uint64_t seed, const Target *target) {
    static const int64_t sizes[] = {1, 4};
    Arena *arena = arena_new(NULL);
    Text report = {.arena = arena};
    Pair pair;
    PairCounts counts = {0};
    const char *source = random_updates_source(arena, seed);
    cr_assert(pair_compile(&pair, source, target, &report), "%s%s", source, text_str(&report));
    const DimTab *dims = pair.exposed.module->graphs.data[0]->dims;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        RigOptions options = RIG_OPTIONS_INIT;
        int64_t values[DIM_MAX_SYMBOLS] = {0};
        options.program.no_weights = true;
        for (uint32_t s = 0; s < dim_n_symbols(dims); s++) values[s] = sizes[i];
        bool is_right = pair_open(&pair, 0, &options, &report) &&
                        pair_place(&pair, values, &report) &&
                        pair_run(&pair, &(PairData){.seed = seed}, &counts, &report);
        cr_expect(is_right, "updates %u:\n%s\n%s", (unsigned)seed, source, text_str(&report));
    }
    pair_free(&pair);
    arena_free(arena);
}

Test(updates, random_programs_are_right, .timeout = 120) {
    for (uint64_t seed = 1; seed <= N_PROGRAMS; seed++) check(seed, target_get(TARGET_CPU));
}
