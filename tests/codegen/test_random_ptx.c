/* Random programs compile for GPUs, which `make test` has none of: no crash, nothing refused, and
 * the assembler, where there is one, takes what comes out. bench/gpu_check.sh runs them. */
#include "lib/compiled.h"
#include "plan/launch.h"
#include "random/random_graph.h"

#include <criterion/criterion.h>

enum { N_PROGRAMS = 60, ASSEMBLED = 1 /* every so many-th: it takes longer than compiling */ };

/* Launches of parts that are not all of one code. */
static uint32_t n_mixed_launches(const Compiled *compiled) {
    const Plan *plan = compiled->plan;
    uint32_t n = 0;
    for (uint32_t l = 0; l < plan->launches.n; l++) {
        Launch launch = plan->launches.data[l];
        bool is_mixed = false;
        for (uint32_t i = 1; i < launch.n && launch.mode == LAUNCH_PARALLEL; i++)
            is_mixed = is_mixed || launch_kernel(plan, &launch, i)->code !=
                                       launch_kernel(plan, &launch, 0)->code;
        n += is_mixed;
    }
    return n;
}

static uint32_t compile_seed(uint64_t seed, TargetId target) {
    Arena *arena = arena_new(NULL);
    RandomGraphOptions options = random_graph_defaults();
    options.max_elems = 1 << 13;
    if (seed % 3 == 0) options.param_percent = 80;
    const char *source = random_graph_source(arena, seed, &options);
    Compiled compiled;
    bool ok = compile_source(&compiled, source, target_get(target), COMPILE_FUSED);
    cr_assert(ok, "seed %llu: %s\n%s", (unsigned long long)seed, compiled.messages, source);
    PtxReport report;
    if (seed % ASSEMBLED == 0 && compiled_assemble(&compiled, (PtxOptions){.level = "0"}, &report))
        cr_expect(report.functions.n > 0, "seed %llu", (unsigned long long)seed);
    uint32_t n_mixed = n_mixed_launches(&compiled);
    compile_free(&compiled);
    arena_free(arena);
    return n_mixed;
}

/* Graphs with kernels that need not wait for each other are among them. */
static void compile_seeds(TargetId target) {
    uint32_t n_mixed = 0;
    for (uint64_t seed = 1; seed <= N_PROGRAMS; seed++) n_mixed += compile_seed(seed, target);
    cr_expect_geq(n_mixed, N_PROGRAMS / 4, "%u launches of several codes", n_mixed);
}

Test(random_ptx, programs_compile_for_sm_80, .timeout = 300) {
    compile_seeds(TARGET_SM_80);
}

Test(random_ptx, programs_compile_for_sm_90a, .timeout = 300) {
    compile_seeds(TARGET_SM_90A);
}
