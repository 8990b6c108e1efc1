/* The registers that a function is estimated to take, beside those that the assembler gives it.
 *
 *   FUSEC_REGISTERS=N:SEED build/tests/cost/test_registers
 *
 * takes N random graphs and the examples, each for both targets, and names every function whose
 * estimate is off by more than a quarter. Without it a few graphs are looked at; those of many live
 * values always. */
#include "cost/pressure.h"
#include "machine/machine.h"
#include "explain/explain.h"
#include "lib/compiled.h"
#include "lib/text_file.h"
#include "plan/launch.h"
#include "random/random_graph.h"

#include <criterion/criterion.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double FAR = 0.25;   /* of the assembler's figure */
static const double LEAST = 0.88; /* of the functions are not further off, in a small sample, ... */
static const double LEAST_OF_MANY_LIVE = 0.85; /* ... and of those of many live values */
static const TargetId targets[] = {TARGET_SM_90A, TARGET_SM_80};
enum { N_TARGETS = 2, N_SEEDS = 24, FIRST_SEED = 7101, MAX_TEMPLATES = 40 };

/* Of the functions of a template. */
typedef struct Tally {
    const char *name;
    uint32_t n, n_low, n_high, n_spilling, n_unforeseen;
    double least, most; /* ratios */
} Tally;

typedef struct Survey {
    Arena *arena;
    Tally tallies[MAX_TEMPLATES], all;
    uint32_t n_tallies;
    bool is_long;
} Survey;

static const char *template_name(Arena *arena, const Plan *plan, const Launch *launch) {
    const char *word = launch->n > 1 ? launch_mode_info(launch->mode)->word : NULL;
    const Kernel *first = launch_kernel(plan, launch, 0);
    bool has_engine = first->form == FORM_GEMM;
    return str_format(arena, "%s%s%s%s%s", word ? word : "", word ? " of " : "",
                      form_info(first->form)->title, has_engine ? " by " : "",
                      has_engine ? engine_info(sched_engine(&first->variants[0].sched))->name : "");
}

static Tally *tally_of(Survey *s, const char *name) {
    for (uint32_t i = 0; i < s->n_tallies; i++)
        if (strcmp(s->tallies[i].name, name) == 0) return &s->tallies[i];
    cr_assert(s->n_tallies < MAX_TEMPLATES);
    s->tallies[s->n_tallies].name = str_format(s->arena, "%s", name);
    return &s->tallies[s->n_tallies++];
}

static void add(Tally *tally, double ratio, bool is_spilling, bool is_foreseen) {
    tally->least = tally->n && tally->least < ratio ? tally->least : ratio;
    tally->most = tally->n && tally->most > ratio ? tally->most : ratio;
    tally->n++;
    tally->n_low += ratio < 1 - FAR;
    tally->n_high += ratio > 1 + FAR;
    tally->n_spilling += is_spilling;
    tally->n_unforeseen += is_spilling && !is_foreseen;
}

/* With so many registers all threads of a processor fit. Fewer are the same to the cost. */
static uint32_t at_least_free(uint32_t n_registers) {
    enum { FREE = 32 };
    return n_registers < FREE ? FREE : n_registers;
}

/* A function of fewer registers than there are spills to have more blocks, as the assembler likes
 * it: that is not for lack of them. */
static void note(Survey *s, const Plan *plan, const Launch *launch, uint32_t v,
                 const PtxFunction *made) {
    enum { NEARLY_ALL = MAX_THREAD_REGISTERS - 7 };
    uint32_t most = 0;
    for (uint32_t k = 0; k < launch->n; k++) {
        const Kernel *kernel = launch_kernel(plan, launch, k);
        if (v >= kernel->n_variants) continue;
        uint32_t own = pressure_registers(s->arena, kernel, &kernel->variants[v].sched);
        if (own > most) most = own;
    }
    double ratio = (double)at_least_free(most) / at_least_free(made->n_registers);
    bool is_spilling = made->spill_store_bytes && made->n_registers >= NEARLY_ALL;
    add(tally_of(s, template_name(s->arena, plan, launch)), ratio, is_spilling,
        most > MAX_THREAD_REGISTERS);
    add(&s->all, ratio, is_spilling, most > MAX_THREAD_REGISTERS);
    if (s->is_long && (ratio < 1 - FAR || ratio > 1 + FAR || is_spilling))
        printf("  %s: %u registers, %u estimated%s\n", made->name, made->n_registers, most,
               is_spilling ? ", and some in memory" : "");
}

static const PtxFunction *find(const PtxReport *report, const char *symbol) {
    for (uint32_t i = 0; i < report->functions.n; i++)
        if (strcmp(report->functions.data[i].name, symbol) == 0) return &report->functions.data[i];
    return NULL; /* another variant's code */
}

static void look_at(Survey *s, const char *what, const char *source, TargetId target) {
    Compiled compiled = compiled_new(source, target);
    PtxReport report;
    if (s->is_long) printf("%s for %s\n", what, target_get(target)->name);
    const Plan *plan = compiled.plan;
    if (compiled_assemble(&compiled, (PtxOptions){0}, &report))
        for (uint32_t i = 0; i < plan->launches.n; i++) {
            Launch launch = plan->launches.data[i];
            for (uint32_t v = 0; v < launch_kernel(plan, &launch, 0)->n_variants; v++) {
                const PtxFunction *made =
                    find(&report, launch_kernel(plan, &launch, 0)->variants[v].symbol);
                if (made) note(s, plan, &launch, v, made);
            }
        }
    compile_free(&compiled);
}

static void look_at_seed(Survey *s, uint64_t seed, TargetId target) {
    const char *source = random_graph_source(s->arena, seed, NULL);
    look_at(s, str_format(s->arena, "seed %llu", (unsigned long long)seed), source, target);
}

static void look_at_examples(Survey *s, TargetId target) {
    glob_t paths;
    cr_assert_eq(glob("dsl/examples/*.g", 0, NULL, &paths), 0);
    for (size_t i = 0; i < paths.gl_pathc; i++)
        look_at(s, paths.gl_pathv[i], text_file_read(s->arena, paths.gl_pathv[i], NULL), target);
    globfree(&paths);
}

/* Ops in which tens of values wait for their use. */

/* Independent values that are all summed up before each of them is scaled by what that makes. */
static const char *scaled(Arena *arena, int live, const char *dtype, const char *scale) {
    Text text = {.arena = arena};
    text_printf(&text, "graph g(x: %s[1048576], z: %s[1048576]) -> (y: %s[1048576]) {\n", dtype,
                dtype, dtype);
    for (int i = 0; i < live; i++) text_printf(&text, "  v%d = relu(x * %d.0 + z)\n", i, i + 1);
    text_puts(&text, "  t0 = z\n");
    for (int i = 0; i < live; i++) text_printf(&text, "  t%d = t%d + v%d\n", i + 1, i, i);
    text_printf(&text, "  t = %s t%d\n  s0 = x\n", scale, live);
    for (int i = 0; i < live; i++)
        text_printf(&text, "  s%d = s%d + (v%d - t) * v%d\n", i + 1, i, i, i);
    text_printf(&text, "  y = s%d * 1.5\n}\n", live);
    return text_str(&text);
}

static const char *plainly_scaled(Arena *arena, int live, const char *dtype) {
    return scaled(arena, live, dtype, "0.5 *");
}

static const char *scaled_by_quotient(Arena *arena, int live, const char *dtype) {
    return scaled(arena, live, dtype, "z /");
}

/* Each value is made of the one before. */
static const char *chained(Arena *arena, int live, const char *dtype) {
    Text text = {.arena = arena};
    text_printf(&text, "graph g(x: %s[1048576], z: %s[1048576]) -> (y: %s[1048576]) {\n", dtype,
                dtype, dtype);
    text_puts(&text, "  v0 = x + z\n");
    for (int i = 1; i < live; i++)
        text_printf(&text, "  v%d = relu(v%d * %g) + z\n", i, i - 1, 1 + i / 64.0);
    text_printf(&text, "  w0 = v%d\n", live - 1);
    for (int i = 0; i < live; i++)
        text_printf(&text, "  w%d = w%d * v%d - z\n", i + 1, i, (i * 7) % live);
    text_printf(&text, "  y = w%d * 1.5\n}\n", live);
    return text_str(&text);
}

typedef const char *MakeManyLive(Arena *arena, int live, const char *dtype);

static void look_at_many_live(Survey *s, TargetId target) {
    static MakeManyLive *const kinds[] = {plainly_scaled, scaled_by_quotient, chained};
    static const char *const dtypes[] = {"f32", "bf16"};
    static const int live[] = {10, 20, 30, 40, 50, 60, 80, 130, 180};
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
        for (size_t d = 0; d < sizeof dtypes / sizeof dtypes[0]; d++)
            for (size_t i = 0; i < sizeof live / sizeof live[0]; i++)
                look_at(s, str_format(s->arena, "kind %zu, %d of %s", k, live[i], dtypes[d]),
                        kinds[k](s->arena, live[i], dtypes[d]), target);
}

static void print_tally(const Tally *t, const char *name) {
    printf("%-34s %5u functions, %5.1f %% within a quarter, %3u below, %3u above, %.2f to %.2f; "
           "%u spill, %u unforeseen\n",
           name, t->n, 100.0 * (t->n - t->n_low - t->n_high) / t->n, t->n_low, t->n_high, t->least,
           t->most, t->n_spilling, t->n_unforeseen);
}

Test(registers, estimates_are_near_what_the_assembler_takes, .timeout = 3600) {
    Survey s = {.arena = arena_new(NULL)};
    unsigned n = N_SEEDS, first = FIRST_SEED;
    const char *asked = getenv("FUSEC_REGISTERS");
    s.is_long = asked && sscanf(asked, "%u:%u", &n, &first) == 2;
    for (unsigned i = 0; i < n; i++)
        for (unsigned t = 0; t < N_TARGETS; t++)
            if (s.is_long || i % N_TARGETS == t) look_at_seed(&s, first + i, targets[t]);
    for (unsigned t = 0; t < N_TARGETS && s.is_long; t++) look_at_examples(&s, targets[t]);
    for (uint32_t i = 0; i < s.n_tallies; i++) print_tally(&s.tallies[i], s.tallies[i].name);
    if (s.all.n) {
        print_tally(&s.all, "all");
        cr_expect_geq(s.all.n, N_SEEDS * 4);
        cr_expect(s.all.n_low + s.all.n_high <= (1 - LEAST) * s.all.n, "of %u %u below, %u above",
                  s.all.n, s.all.n_low, s.all.n_high);
        cr_expect_eq(s.all.n_unforeseen, 0);
    }
    arena_free(s.arena);
}

Test(registers, estimates_of_many_live_values_are_near_too, .timeout = 600) {
    for (unsigned t = 0; t < N_TARGETS; t++) {
        Survey s = {.arena = arena_new(NULL), .is_long = getenv("FUSEC_REGISTERS") != NULL};
        look_at_many_live(&s, targets[t]);
        if (s.all.n) {
            print_tally(&s.all, target_get(targets[t])->name);
            cr_expect(s.all.n_low + s.all.n_high <= (1 - LEAST_OF_MANY_LIVE) * s.all.n,
                      "of %u %u below, %u above", s.all.n, s.all.n_low, s.all.n_high);
            cr_expect_eq(s.all.n_unforeseen, 0);
        }
        arena_free(s.arena);
    }
}
