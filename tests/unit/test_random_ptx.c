/* Random programs compile for GPUs, which `make test` has none of: no crash, nothing refused, and
 * the assembler, where there is one, takes what comes out. bench/gpu_check.sh runs them. */
#include "lib/compile.h"
#include "lib/ptx.h"
#include "lib/random_graph.h"

#include <criterion/criterion.h>

enum { N_PROGRAMS = 60, ASSEMBLED = 10 /* every so many-th: it takes longer than compiling */ };

static void compile_seed(uint64_t seed, TargetId target) {
    Arena *arena = arena_new(NULL);
    RandomGraphOptions options = random_graph_defaults();
    options.max_elems = 1 << 13;
    if (seed % 3 == 0) options.param_percent = 80;
    const char *source = random_graph_source(arena, seed, &options);
    Compiled compiled;
    bool ok = compile_source(&compiled, source, target_get(target), COMPILE_FUSED);
    cr_assert(ok, "seed %llu: %s\n%s", (unsigned long long)seed, compiled.messages, source);
    PtxReport report;
    PtxOptions assembler = {.target = target_get(target)->name, .level = "0"};
    if (seed % ASSEMBLED == 0 &&
        ptx_assemble(arena, compiled.bytes, compiled.n_bytes, assembler, &report))
        cr_expect(report.functions.n > 0, "seed %llu", (unsigned long long)seed);
    compile_free(&compiled);
    arena_free(arena);
}

Test(random_ptx, programs_compile_for_sm_80, .timeout = 300) {
    for (uint64_t seed = 1; seed <= N_PROGRAMS; seed++) compile_seed(seed, TARGET_SM_80);
}

Test(random_ptx, programs_compile_for_sm_90a, .timeout = 300) {
    for (uint64_t seed = 1; seed <= N_PROGRAMS; seed++) compile_seed(seed, TARGET_SM_90A);
}
