/* `fusec verify` on programs that are compiled wrong on purpose: each planted mistake is found, and
 * its op and line are named. */
#define _XOPEN_SOURCE 700 /* mkdtemp */
#include "driver/driver.h"
#include "fake/fake_cuda.h"
#include "lib/compile.h"
#include "lib/prove.h"
#include "plan/launch.h"
#include "random/random_graph.h"
#include "verify/probe.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static Proof proof;
static Arena *arena;

static void set_up(void) {
    arena = arena_new(NULL);
}

static void tear_down(void) {
    arena_free(arena);
}

TestSuite(prove, .init = set_up, .fini = tear_down);

Test(prove, every_planted_mistake_is_named) {
    Text report = {.arena = arena};
    for (int id = 0; id < FAULT_COUNT; id++)
        if (!prove_fault(&proof, (FaultId)id, "cpu", &report)) cr_expect(false, "%s", report.data);
    cr_expect(FAULT_COUNT >= 20);
}

Test(prove, the_same_programs_agree_without_mistakes) {
    for (int id = 0; id < FAULT_COUNT; id++) {
        const char *options[] = {"--target=cpu", "--data=integers,special",
                                 prove_rows((FaultId)id, "cpu"), NULL};
        prove_verify(&proof, fault_info((FaultId)id)->source, (DriverHook){0}, options);
        cr_expect(proof.status == FUSEC_OK, "%s: %s", fault_info((FaultId)id)->name, proof.said);
    }
}

/* Some mistakes do not show: what they change is not taken, or saturates. */
Test(prove, a_mistake_in_any_op_of_random_programs_is_named) {
    Text report = {.arena = arena};
    uint32_t n[RANDOM_MISSED + 1] = {0};
    for (uint64_t seed = 1; seed <= 40; seed++) n[prove_random(&proof, seed, "cpu", &report)]++;
    cr_expect(n[RANDOM_MISSED] == 0, "%s", text_str(&report));
    cr_expect(n[RANDOM_NAMED] >= 30, "%u named, %u not seen", n[RANDOM_NAMED], n[RANDOM_UNSEEN]);
}

/* The fake driver says of every kernel that it needs 96 registers and 24 bytes beside. What this
 * one makes is no matter: verify finds it wrong, and still tells. */
static void k_nothing(void **params, unsigned grid, unsigned block) {
    (void)params, (void)grid, (void)block;
}

Test(prove, a_kernel_that_spills_is_named_by_verify_and_bench, .timeout = 60) {
    static const char source[] = "graph g(x: f32[64]) -> (y: f32[64]) {\n  y = -x\n}\n";
    static const char *const commands[] = {"verify", "bench"};
    static const char *const options[] = {"--target=sm_90a", "--device=cuda", NULL};
    const char *const warning =
        "warning: kernel g_0_y_l2 does not fit in 96 registers: 24 bytes of each thread lie in "
        "memory; about ";
    fake_cuda_reset();
    fake_cuda_add_kernel("g_0_y_l2", k_nothing);
    fake_cuda_add_kernel("g_0_y_l2_v1", k_nothing);
    for (int i = 0; i < 2; i++) {
        prove_command(&proof, commands[i], source, true, options);
        cr_expect(proof.status == (i ? FUSEC_OK : FUSEC_MISMATCH), "%s: %s", commands[i],
                  proof.said);
        const char *found = strstr(proof.said, warning);
        cr_assert(found, "%s: %s", commands[i], proof.said);
        long about = strtol(found + strlen(warning), NULL, 10);
        cr_expect(about >= 16 && about <= 64, "%s: about %ld", commands[i], about);
        cr_expect(!strstr(found + 1, warning), "%s says it once: %s", commands[i], proof.said);
    }
    cr_expect(strstr(proof.said, "registers  about local shared"), "%s", proof.said);
}

/* Of two variants the first is the one that runs. */
Test(prove, the_driver_compiles_what_runs_or_all_of_it, .timeout = 60) {
    static const char source[] = "graph g(x: f32[64]) -> (y: f32[64]) {\n  y = -x\n}\n";
    fake_cuda_add_kernel("g_0_y_l2", k_nothing);
    fake_cuda_add_kernel("g_0_y_l2_v1", k_nothing);
    for (int all = 0; all < 2; all++) {
        const char *const options[] = {"--target=sm_80", "--device=cuda", "--runs=3",
                                       all ? "--load-all" : NULL, NULL};
        fake_cuda_reset();
        prove_command(&proof, "bench", source, true, options);
        cr_assert(proof.status == FUSEC_OK, "%s", proof.said);
        const char *said = all ? " ms, 2 of 2 kernels, compiled" : " ms, 1 of 2 kernels, compiled";
        cr_expect(strstr(proof.said, said), "%s", proof.said);
        cr_expect_eq(fake_cuda_loads("g_0_y_l2"), 1);
        cr_expect_eq(fake_cuda_loads("g_0_y_l2_v1"), all);
    }
}

/* What a report is to have: kernel, element, coordinates, both values, ULPs, and the way back. */
Test(prove, a_mismatch_says_where_and_how_far) {
    Text report = {.arena = arena};
    cr_assert(prove_fault(&proof, FAULT_swapped_operands, "cpu", &report), "%s", report.data);
    static const char *const parts[] = {
        "graph g for cpu, random inputs: output z differs between fused and unfused: ",
        "element 0 of f32[1, 8] at [0, 0] is -0.730475",
        ", not 0.975669",
        " ULP), kernel g_0_z_l6\n",
        "first wrong: `sub` that makes `s`, line 3, in kernel g_0_z_l6: element 0 of f32[1, 8]",
        "what it is made of is right\n",
        "; what is fused stayed as it was\n",
        " --graph=g --target=cpu --data=random --seed=1 --dim=B=1\n",
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        cr_expect(strstr(proof.said, parts[i]), "no `%s` in\n%s", parts[i], proof.said);
}

/* A mistake that is gone as soon as one looks, as one of a schedule that taps change: what is
 * stored is the first operand of the right value. */
static void plant_unless_tapped(void *user, Arena *of_plan, Plan *plan, bool is_fused) {
    (void)of_plan;
    for (uint32_t i = 0; i < plan->buffers.n; i++)
        if (plan->buffers.data[i].name[0] == '.' || !is_fused) return;
    Store *store = &plan->kernels.data[0].stages.data[0].stores.data[0];
    store->value = scalar_get(plan->kernels.data[0].scalars, store->value)->args[0];
    ++*(uint32_t *)user;
}

Test(prove, what_no_op_does_wrong_is_said_to_be_the_schedule) {
    uint32_t n_planted = 0;
    const char *options[] = {"--target=cpu", "--no-rewrite", NULL};
    DriverHook hook = {.user = &n_planted, .scheduled = plant_unless_tapped};
    prove_verify(&proof, fault_info(FAULT_wrong_op)->source, hook, options);
    cr_expect(n_planted == 1 && proof.status == FUSEC_MISMATCH);
    cr_expect(strstr(proof.said,
                     "  first wrong: `add` that makes `z`, line 6, in kernel g_0_z_l6 or "
                     "before it: with the values of its ops stored beside it the output "
                     "is right, so it is no op that is wrong but how a kernel is"),
              "%s", proof.said);
}

/* The loops of a dim cut a graph, of whose parts one is bisected. */
Test(prove, parts_of_a_graph_with_loops_are_bisected) {
    static const char source[] =
        "dim N in 0..5\ngraph g(x: f32[8], z: f32[8]) -> (y: f32[8]) {\n"
        "  a = loop t in 0:N with h = x { return maximum(roll(h, 1, 0), x) }\n"
        "  y = exp(z) * sqrt(a + z)\n}\n";
    uint32_t n_planted = 0;
    const char *options[] = {"--target=cpu", "--data=random", NULL};
    prove_verify(&proof, source, fault_hook(FAULT_wrong_op, &n_planted), options);
    cr_expect(proof.status == FUSEC_MISMATCH && strstr(proof.said, "first wrong: `mul`"), "%s",
              proof.said);
}

/* Special values and ramps find what random ones do not. */
Test(prove, only_the_kinds_of_inputs_that_are_asked_for_run) {
    uint32_t n_planted = 0;
    const char *random[] = {"--target=cpu", "--data=random,ramps,integers", NULL};
    const char *special[] = {"--target=cpu", "--data=special", NULL};
    DriverHook hook = fault_hook(FAULT_drops_nan, &n_planted);
    const char *source = fault_info(FAULT_drops_nan)->source;
    prove_verify(&proof, source, hook, random);
    cr_expect(proof.status == FUSEC_OK, "%s", proof.said);
    prove_verify(&proof, source, hook, special);
    cr_expect(proof.status == FUSEC_MISMATCH, "%s", proof.said);
    cr_expect(strstr(proof.said, "for cpu, special inputs: "), "%s", proof.said);
}

/* As many taps as one trial has, spread over the plan. */
static void tap_some(void *user, Arena *of_plan, Plan *plan, bool is_fused) {
    Probe taps[12];
    uint32_t n = 0, n_seen = 0, *n_tapped = user;
    for (uint32_t k = 0; k < plan->kernels.n && is_fused; k++)
        for (uint32_t t = 0; t < plan->kernels.data[k].traces.n && n < 12; t++)
            if (n_seen++ % 3 == 0 && probe_place(of_plan, plan, k, t, &taps[n])) n++;
    probe_store(of_plan, plan, taps, n);
    *n_tapped += n;
}

static void compile_tapped(const char *source, TargetId target) {
    Compiled compiled;
    bool is_good = compile_source(&compiled, source, target_get(target), COMPILE_FUSED);
    cr_expect(is_good, "%s\n%s", compiled.messages, source);
    compile_free(&compiled);
}

/* That the results are right is for a machine with a GPU: soak --faults. */
Test(prove, programs_with_taps_compile_for_gpus, .timeout = 60) {
    static const TargetId targets[] = {TARGET_SM_80, TARGET_SM_90A};
    uint32_t n_tapped = 0;
    compile_with((DriverHook){.user = &n_tapped, .fused = tap_some});
    for (uint64_t seed = 0; seed < 30; seed++)
        compile_tapped(random_graph_source(arena, seed, NULL), targets[seed % 2]);
    cr_expect(n_tapped >= 100, "%u taps", n_tapped);
    for (int id = 0; id < FAULT_COUNT; id++)
        compile_tapped(fault_info((FaultId)id)->source, targets[id % 2]);
}

/* Adds what verify said, with the program's path as `model.g`. */
static void put_said(Text *out) {
    for (const char *at = proof.said; *at;) {
        const char *path = strstr(at, "/tmp/prove.");
        text_add(out, at, path ? (size_t)(path - at) : strlen(at));
        if (!path) return;
        text_puts(out, "model.g");
        at = path + strcspn(path, " ");
    }
}

/* The page shows a program and what verify says of it. */
Test(prove, the_session_in_the_docs_is_real) {
    Text report = {.arena = arena}, page = {.arena = arena}, said = {.arena = arena};
    char part[4096];
    FILE *file = fopen("docs/DEBUGGING.md", "rb");
    cr_assert(file, "run from the root of the tree");
    for (size_t n; (n = fread(part, 1, sizeof part, file)) > 0;) text_add(&page, part, n);
    fclose(file);
    cr_assert(prove_fault(&proof, FAULT_dropped_element, "cpu", &report), "%s", report.data);
    put_said(&said);
    cr_expect(strstr(text_str(&page), fault_info(FAULT_dropped_element)->source));
    cr_expect(strstr(text_str(&page), text_str(&said)), "the page lacks\n%s", text_str(&said));
}

/* By itself, to little, in a file that `fusec verify` takes. */
Test(prove, failing_random_graphs_are_reduced) {
    char folder[] = "/tmp/test_prove.XXXXXX", here[256], command[2048], text[1 << 16];
    cr_assert(mkdtemp(folder) && getcwd(here, sizeof here));
    snprintf(command, sizeof command,
             "cd %s && %s/build/tests/soak/soak 5 10 --target=cpu --plant=swapped_operands; "
             "wc -l soak-*-cpu.g; for f in soak-*-cpu.g; do %s/build/fusec verify $f --target=cpu; "
             "done; rm -r %s",
             folder, here, here, folder);
    FILE *said = popen(command, "r");
    cr_assert(said);
    text[fread(text, 1, sizeof text - 1, said)] = '\0';
    pclose(said);
    const char *kept = strstr(text, "  kept: soak-");
    const char *summary = strstr(text, " failed, 0 skipped\n");
    cr_assert(strstr(text, "  reduced:\n") && kept && summary, "%s", text);
    long n_lines = strtol(summary + strlen(" failed, 0 skipped\n"), NULL, 10);
    cr_expect(n_lines >= 4 && n_lines <= 12, "%ld lines\n%s", n_lines, text);
    cr_expect(strstr(summary, "comparisons agree"), "%s", text);
}
