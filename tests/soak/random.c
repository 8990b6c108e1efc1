/* Random graphs: each seed's program on every target, with several dims and contents; and the
 * reduction of what fails, or of a program that is given. */
#include "soak.h"

#include "random/random_graph.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N_ASSIGNMENTS = 2, SECONDS = 120, REDUCE_SECONDS = 30 };

static Program program_of_seed(Arena *arena, uint64_t seed, bool without_empty) {
    RandomGraphOptions options = random_graph_defaults();
    options.max_elems = 1 << 13;
    options.without_empty = without_empty;
    options.repeats = true;
    if (seed % 3 == 0) options.param_percent = 80; /* much for init steps to do */
    return random_program(arena, seed, &options);
}

Program soak_random_program(Arena *arena, uint64_t seed) {
    return program_of_seed(arena, seed, false);
}

Program soak_plain_program(Arena *arena, uint64_t seed) {
    return program_of_seed(arena, seed, true);
}

static void add_context(const Pair *pair, const PairData *data, Text *report) {
    const DimTab *dims = pair->exposed.module->dims;
    text_printf(report, "  with %s contents", random_fill_name(data->fill));
    for (uint32_t s = 0; s < dim_n_symbols(dims); s++)
        text_printf(report, ", %s = %" PRId64, dim_symbol_info(dims, s)->name,
                    pair->symbol_values[s]);
    text_puts(report, "\n");
}

/* One assignment of dims, all kinds of contents. */
static bool run_fills(Pair *pair, uint64_t seed, PairCounts *counts, Text *report) {
    static const RandomFill fills[] = {FILL_UNIFORM, FILL_INTEGERS, FILL_RAMP, FILL_SPECIAL};
    for (int i = 0; i < 4; i++) {
        PairData data = {.fill = fills[i], .seed = seed * 4 + (uint64_t)i};
        if (pair_run(pair, &data, counts, report)) continue;
        add_context(pair, &data, report);
        return false;
    }
    return true;
}

/* With dims of at most `limit`, where they may be as small. Every second seed has --rewrite. */
static bool try_source(const char *source, uint64_t seed, int64_t limit, const Target *target,
                       PairCounts *counts, Text *report) {
    Pair pair;
    RigOptions options = RIG_OPTIONS_INIT;
    options.is_unaligned = seed % 3 == 0;
    compile_with_rewrites(seed % 2);
    options.program.no_weights = true;
    options.program.n_threads = 1 + (int32_t)(seed % 2) * 2;
    bool is_right =
        pair_compile(&pair, source, target, report) && pair_open(&pair, 0, &options, report);
    Rng rng = rng_new(seed);
    for (int i = 0; i < N_ASSIGNMENTS && is_right; i++) {
        int64_t values[DIM_MAX_SYMBOLS];
        random_symbol_values(&rng, pair.exposed.module->dims, limit, values);
        is_right = pair_place(&pair, values, report) &&
                   run_fills(&pair, seed * 2 + (uint64_t)i, counts, report);
    }
    pair_free(&pair);
    return is_right;
}

/* Reduction. */

typedef enum { OUTCOME_RIGHT, OUTCOME_WRONG, OUTCOME_REFUSED, OUTCOME_CRASHED } Outcome;

typedef struct Reduction {
    uint64_t seed;
    int64_t limit; /* of dims */
    const Target *target;
    Outcome outcome; /* what the program shows, and smaller ones have to show */
} Reduction;

static Outcome outcome_here(const Reduction *r, const char *source) {
    Arena *arena = arena_new(NULL);
    Text report = {.arena = arena};
    Pair pair;
    PairCounts counts = {0};
    Outcome outcome = OUTCOME_RIGHT;
    compile_with_rewrites(r->seed % 2);
    if (!pair_compile(&pair, source, r->target, &report)) outcome = OUTCOME_REFUSED;
    pair_free(&pair);
    if (!outcome && !try_source(source, r->seed, r->limit, r->target, &counts, &report))
        outcome = OUTCOME_WRONG;
    arena_free(arena);
    return outcome;
}

/* On the CPU in a process of its own, so that a crash can be looked at too. */
static Outcome find_outcome(const Reduction *r, const char *source) {
    if (r->target->ptx_version) return outcome_here(r, source);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        static const int numbers[] = {SIGALRM, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
        for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) signal(numbers[i], SIG_DFL);
        alarm(REDUCE_SECONDS);
        _exit((int)outcome_here(r, source));
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) return OUTCOME_RIGHT;
    return WIFEXITED(status) ? (Outcome)WEXITSTATUS(status) : OUTCOME_CRASHED;
}

static bool fails(void *user, const char *source) {
    const Reduction *r = user;
    return find_outcome(r, source) == r->outcome;
}

/* Prints what is wrong with it. */
static void show(const char *source, const Reduction *r) {
    Arena *arena = arena_new(NULL);
    Text report = {.arena = arena};
    PairCounts counts = {0};
    try_source(source, r->seed, r->limit, r->target, &counts, &report);
    printf("  %s", text_str(&report));
    arena_free(arena);
}

/* Leaves the program where `fusec verify` can be pointed at it. */
static void keep(const char *source, const char *path, const Target *target) {
    if (soak_write_source(source, path))
        printf("  kept: %s; fusec verify %s --target=%s\n", path, path, target->name);
    else
        printf("  cannot write %s\n", path);
}

/* The program with its defs expanded; false where it is none. */
static bool expand(Arena *arena, const char *source, uint32_t graph, const Target *target,
                   Program *expanded) {
    Driver driver;
    DriverOptions options = {.kind = FUSEC_GRAPH, .target = target};
    bool is_good = driver_init(&driver, &options) &&
                   driver_parse(&driver, "program.g", source, strlen(source)) == FUSEC_OK &&
                   graph < driver.module->graphs.n;
    if (is_good) {
        Program made = program_of_graph(driver.arena, driver.module->graphs.data[graph]);
        *expanded = program_clone(arena, &made);
    }
    driver_free(&driver);
    return is_good;
}

/* What fails is made smaller by statements, then by the ops that those expand to. */
static bool reduce(const Program *program, Reduction *r, const char *path) {
    const char *source = program_print(program);
    Program ops;
    soak_watch("a reduction", 0);
    r->outcome = find_outcome(r, source);
    if (r->outcome == OUTCOME_RIGHT) return false;
    Program small = program_reduce(program, fails, r);
    source = program_print(&small);
    if (expand(program->arena, source, 0, r->target, &ops) && fails(r, program_print(&ops))) {
        small = program_reduce(&ops, fails, r);
        source = program_print(&small);
    }
    printf("  reduced:\n%s", source);
    keep(source, path, r->target);
    fflush(stdout);
    if (r->outcome == OUTCOME_CRASHED)
        printf("  crashes\n");
    else
        show(source, r);
    return true;
}

/* Runs one seed for one target and prints what is wrong. */
static bool run_here(const Soak *soak, uint64_t seed, const Target *target, PairCounts *counts) {
    Arena *arena = arena_new(NULL);
    Text report = {.arena = arena};
    Program program = soak_random_program(arena, seed);
    const char *repro = str_format(arena, "build/tests/soak/soak --one=%" PRIu64 " --target=%s",
                                   seed, target->name);
    soak_watch(repro, SECONDS);
    bool is_right = try_source(program_print(&program), seed, INT64_MAX, target, counts, &report);
    soak_watch_off();
    if (!is_right) {
        printf("seed %" PRIu64 ", %s: %s  again: %s\n", seed, target->name, text_str(&report),
               repro);
        if (soak->is_one) printf("%s", program_print(&program));
    }
    arena_free(arena);
    return is_right;
}

/* On the CPU in a process of its own: after a crash the others still run. */
static bool run_apart(const Soak *soak, uint64_t seed, const Target *target, PairCounts *counts) {
    int ends[2], status = 1;
    fflush(stdout);
    if (pipe(ends)) return run_here(soak, seed, target, counts);
    pid_t child = fork();
    if (child == 0) {
        bool is_right = run_here(soak, seed, target, counts);
        fflush(stdout);
        _exit(write(ends[1], counts, sizeof *counts) != sizeof *counts || !is_right);
    }
    close(ends[1]);
    if (read(ends[0], counts, sizeof *counts) != sizeof *counts) *counts = (PairCounts){0};
    close(ends[0]);
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

static void run_seed(Soak *soak, uint64_t seed, const Target *target) {
    PairCounts counts = {0};
    bool is_right = soak->is_cuda ? run_here(soak, seed, target, &counts)
                                  : run_apart(soak, seed, target, &counts);
    soak_add_counts(soak, &counts);
    if (is_right) {
        soak->n_passed++;
        return;
    }
    soak->n_failed++;
    if (soak->n_failed > soak->max_reduced) return;
    Arena *arena = arena_new(NULL);
    Program program = soak_random_program(arena, seed);
    Reduction r = {.seed = seed, .limit = INT64_MAX, .target = target};
    const char *path = str_format(arena, "soak-%" PRIu64 "-%s.g", seed, target->name);
    if (!reduce(&program, &r, path)) printf("  not reduced: it does not fail again\n");
    arena_free(arena);
}

static void note_coverage(Soak *soak, uint64_t seed) {
    Arena *arena = arena_new(NULL);
    Program program = soak_random_program(arena, seed);
    Compiled compiled;
    DriverOptions options = {.kind = FUSEC_GRAPH, .target = soak->targets[0]};
    const char *source = program_print(&program);
    if (driver_init(&compiled.driver, &options) &&
        driver_parse(&compiled.driver, "random.g", source, strlen(source)) == FUSEC_OK)
        coverage_add(&soak->coverage, compiled.driver.module->graphs.data[0]);
    driver_free(&compiled.driver);
    arena_free(arena);
}

void soak_random(Soak *soak) {
    for (uint64_t i = 0; i < soak->n && soak_has_time(soak); i++) {
        uint64_t seed = soak->seed + i;
        for (uint32_t t = 0; t < soak->n_targets; t++) run_seed(soak, seed, soak->targets[t]);
        note_coverage(soak, seed);
        if ((i + 1) % 50 == 0)
            printf("soak: %" PRIu64 " of %" PRIu64 " graphs, %u failed\n", i + 1, soak->n,
                   soak->n_failed);
    }
}

/* A program that is given. */

const char *soak_read_source(Arena *arena, const char *path) {
    Text text = {.arena = arena};
    char bytes[4096];
    errno = 0;
    FILE *file = fopen(path, "r");
    for (size_t n; file && (n = fread(bytes, 1, sizeof bytes, file)) > 0;)
        text_add(&text, bytes, n);
    if (file) fclose(file);
    if (errno) printf("soak: cannot read %s: %s\n", path, strerror(errno));
    return errno ? NULL : text_str(&text);
}

/* Whether it is a program; if not, why is said. */
static bool check_given(const Soak *soak, const char *source) {
    Compiled compiled;
    compile_source(&compiled, source, soak->targets[0], COMPILE_FUSED);
    bool is_program = compiled.module != NULL;
    if (!is_program) printf("soak: %s is no program:\n%s", soak->given_path, compiled.messages);
    compile_free(&compiled);
    return is_program;
}

/* The smallest of these that shows it makes the quickest trials. */
static const int64_t given_limits[] = {4, 16, 64};
enum { N_GIVEN_LIMITS = sizeof given_limits / sizeof *given_limits };

static void reduce_given(Soak *soak, const char *source, uint32_t graph, const Target *target) {
    Program program;
    Reduction r = {.seed = soak->seed, .target = target};
    const char *path = str_format(soak->arena, "soak-given-%u-%s.g", graph, target->name);
    if (!expand(soak->arena, source, graph, target, &program)) return;
    for (int i = 0; i < N_GIVEN_LIMITS; i++) {
        r.limit = given_limits[i];
        if (!reduce(&program, &r, path)) continue;
        soak->n_failed++;
        return;
    }
    soak->n_passed++;
    printf("graph %u, %s: does not fail; blocks are left out, dims are at most %d\n", graph,
           target->name, (int)r.limit);
}

void soak_given(Soak *soak) {
    Program first;
    const char *source = soak_read_source(soak->arena, soak->given_path);
    if (!source || !check_given(soak, source)) {
        soak->n_failed++;
        return;
    }
    for (uint32_t graph = 0; expand(soak->arena, source, graph, soak->targets[0], &first); graph++)
        for (uint32_t t = 0; t < soak->n_targets; t++)
            reduce_given(soak, source, graph, soak->targets[t]);
}
