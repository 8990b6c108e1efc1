/* Objects with code for several levels: the levels of the table, what the artifact says of them,
 * and that each level gives the bits of the others and keeps the interpreter's bounds. */
#include "lib/compiled.h"
#include "lib/pair.h"
#include "lib/text_file.h"
#include "random/random_graph.h"

#include <criterion/criterion.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_RANDOM = 30, MAX_EXTENT = 100 };

static const Target *multi(void) {
    return target_get(TARGET_CPU_MULTI);
}

Test(levels, the_last_level_has_the_machine_of_its_target) {
    for (int id = 0; id < TARGET_COUNT; id++) {
        const Target *target = target_get((TargetId)id);
        uint32_t n = target_n_levels(target);
        const Target *last = target_level(target, n - 1);
        cr_expect(strcmp(last->machine, target->machine) == 0 &&
                      last->vector_bytes == target->vector_bytes && last->device == target->device,
                  "%s", target->name);
        for (uint32_t i = 0; i < n; i++)
            cr_expect_eq(target_n_levels(target_level(target, i)), 1u, "%s", target->name);
    }
    cr_expect_geq(target_n_levels(multi()), 2u);
}

/* The levels' variants come best first, and those of the last level need none. */
Test(levels, every_launch_has_variants_of_every_level) {
    Compiled compiled = compiled_new("dim M in 1..4096\n"
                                     "graph g(x: f32[M, 96]) -> (y: f32[M, 40]) {\n"
                                     "  param w: f32[96, 40] = \"w\"\n"
                                     "  y = softmax(x @ w, axis=1)\n}\n",
                                     TARGET_CPU_MULTI);
    const Plan *plan = compiled.plan;
    cr_assert_gt(plan->kernels.n, 0u);
    for (uint32_t k = 0; k < plan->kernels.n; k++) {
        const Kernel *kernel = &plan->kernels.data[k];
        uint32_t level = 0, n = target_n_levels(multi());
        cr_expect_str_eq(predicate_level(&kernel->variants->predicate),
                         target_get(TARGET_CPU_V4)->name, "no integers are multiplied here");
        for (uint32_t v = 0; v < kernel->n_variants; v++) {
            Str name = predicate_level(&kernel->variants[v].predicate);
            while (level + 1 < n && name != target_level(multi(), level)->name) level++;
            cr_expect(level + 1 < n || !name, "%s, variant %u", kernel->name, v);
        }
        cr_expect_eq(level, n - 1, "%s", kernel->name);
    }
    compile_free(&compiled);
}

typedef struct Outputs {
    const uint8_t *bytes[64];
} Outputs;

/* Runs the graph at one level, fused and unfused and beside the interpreter, and compares its
 * outputs with those of the level before. */
static void run_level(Pair *pair, const char *level, const int64_t *values, const char *what,
                      Arena *arena, Outputs *before) {
    Text report = {.arena = arena};
    RigOptions options = RIG_OPTIONS_INIT;
    PairCounts counts = {0};
    options.program.no_weights = true;
    options.program.cpu_level = level;
    options.program.n_threads = 2;
    bool is_right = pair_open(pair, 0, &options, &report) && pair_place(pair, values, &report) &&
                    pair_run(pair, &(PairData){.fill = FILL_UNIFORM, .seed = 7}, &counts, &report);
    cr_assert(is_right, "%s at level %s:\n%s", what, level, text_str(&report));
    cr_expect_str_eq(frt_program_level(pair->fused_rig.program), level);
    const Graph *graph = pair->fused.module->graphs.data[0];
    for (uint32_t i = 0; i < graph->outputs.n && i < 64; i++) {
        size_t n_bytes;
        const uint8_t *now = rig_result(&pair->fused_rig, graph->outputs.data[i].name, &n_bytes);
        cr_expect(!before->bytes[i] || memcmp(before->bytes[i], now, n_bytes) == 0,
                  "%s: output %s differs at level %s", what, graph->outputs.data[i].name, level);
        before->bytes[i] = arena_copy(arena, now, n_bytes);
    }
}

static void check_levels(const char *source, const char *what, uint64_t seed) {
    Arena *arena = arena_new(NULL);
    Text report = {.arena = arena};
    Outputs outputs = {{NULL}};
    int64_t values[DIM_MAX_SYMBOLS];
    Rng rng = rng_new(seed);
    Pair pair;
    cr_assert(pair_compile(&pair, source, multi(), &report), "%s: %s", what, text_str(&report));
    random_symbol_values(&rng, pair.exposed.module->dims, MAX_EXTENT, values);
    for (uint32_t i = 0; i < target_n_levels(multi()); i++) {
        const Target *level = target_level(multi(), i);
        if (compile_target_runs(level))
            run_level(&pair, level->name, values, what, arena, &outputs);
        else if (seed == 1)
            printf("SKIPPED this CPU cannot run %s\n", level->name);
    }
    pair_free(&pair);
    arena_free(arena);
}

Test(levels, all_levels_give_the_same_bits, .timeout = 120) {
    static const char *const paths[] = {"dsl/examples/digits.g", "dsl/examples/softmax.g",
                                        "dsl/examples/residual_layernorm.g"};
    Arena *arena = arena_new(NULL);
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        check_levels(text_file_read(arena, paths[i], NULL), paths[i], 1 + i);
    for (uint64_t seed = 1; seed <= N_RANDOM; seed++)
        check_levels(random_graph_source(arena, seed, NULL),
                     str_format(arena, "random graph %llu", (unsigned long long)seed), seed);
    arena_free(arena);
}
