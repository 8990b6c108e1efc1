/* soak: runs generated programs fused and unfused through the runtime and compares them with each
 * other and with the interpreter.
 *
 *   soak [N] [SEED] [--device=cpu|cuda] [--target=NAME] [--one=SEED]   random graphs
 *   soak --sweep [--part=I/K] [--device=..] [--target=..]               every op, dtype and shape
 *   soak --reduce=FILE.g [SEED] [--device=..] [--target=..] [--plant=FAULT]  a program of yours
 *   soak --faults [N] [SEED] [--device=..] [--target=..]    whether `fusec verify` names mistakes
 *   soak --attention [N] [SEED] [--small] [--device=..] [--target=..]   attention by one pass
 *   soak --updates [N] [SEED] [--device=..] [--target=..]   dynamic_update_slice
 *   soak --shapes [N] [SEED] [--part=I/K] [--only=TEMPLATE] [--against=TARGET] [--device=..]
 *                                      N random shapes for every template (lowerings.def), or one
 *                                      case: --one=TEMPLATE:PROGRAM:SHAPE; small ones, for an
 *                                      emulated GPU: --small
 *   soak --ulp [--op=NAME] [--dtype=NAME] [--threads=N] [--found=FILE] [--seconds=N]
 *                                      the largest error of every unary op, and function of the
 *                                      prelude that takes one float, over all values of f32
 *   soak --times [--random=N] [--seed=N] [--threads=N] [--verbose] [FILE.g..]
 *                                      times on the CPU, fused beside unfused
 *   soak --merge FILE..                one coverage table of several parts
 *   soak --merge-shapes N TARGET FILE..    the same of shapes
 *   soak --write FOLDER [N] [SEED]     sources as files: random graphs, and some for each template
 *
 * The first graphs that fail (all with --reduce, none with --no-reduce) are reduced, and left as
 * `soak-SEED-TARGET.g` for `fusec verify`; a program that is given, as `soak-given-GRAPH-TARGET.g`.
 * --plant=FAULT compiles them with a mistake of
 * lib/faults.def, to see that happen. Ends with the coverage table (random graphs) and `N passed, N
 * failed, N skipped`; fails when anything failed, nothing passed, or N >= 500 random graphs left a
 * gap in the table. All take --numerics=fast: fused programs are then held to what the
 * interpreter's bounds add up to, not to the unfused ones. --coverage=FILE leaves the table's
 * counts for --merge instead, which fails for gaps in the same way. Random graphs and shapes begin
 * no program after --seconds=N. */
#include "soak.h"

#include "lib/faults.h"
#include "shapes.h"
#include "tools/ulp.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { DEFAULT_SHAPES = 500 };

/* The watchdog. What is written by a signal handler has to lie ready; a program that is being
 * verified has standard error for its own messages. */
static char watched[256];
static int messages = STDERR_FILENO;

static void on_signal(int number) {
    static const char late[] = "soak: does not finish: ", broken[] = "soak: crashed in ";
    ssize_t n = number == SIGALRM ? write(messages, late, sizeof late - 1)
                                  : write(messages, broken, sizeof broken - 1);
    if (n > 0) n = write(messages, watched, strlen(watched));
    if (n > 0) n = write(messages, "\n", 1);
    signal(number, SIG_DFL);
    raise(number);
}

static void catch_signals(void) {
    static const int numbers[] = {SIGALRM, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    struct sigaction action = {.sa_handler = on_signal};
    int copy = dup(STDERR_FILENO);
    if (copy >= 0) messages = copy;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaction(numbers[i], &action, NULL);
}

void soak_watch(const char *what, unsigned seconds) {
    snprintf(watched, sizeof watched, "%s", what);
    alarm(seconds);
}

void soak_watch_off(void) {
    alarm(0);
}

bool soak_has_time(const Soak *soak) {
    static time_t begin;
    if (begin == 0) begin = time(NULL);
    return soak->seconds == 0 || (uint64_t)(time(NULL) - begin) < soak->seconds;
}

void soak_add_counts(Soak *soak, const PairCounts *counts) {
    PairCounts *sum = &soak->counts;
    sum->n_runs += counts->n_runs;
    sum->n_nodes += counts->n_nodes;
    sum->n_skipped += counts->n_skipped;
    sum->n_elems += counts->n_elems;
    sum->n_finite += counts->n_finite;
    sum->n_any += counts->n_any;
    sum->n_fast += counts->n_fast;
    sum->n_fast_any += counts->n_fast_any;
    sum->n_prepared += counts->n_prepared;
}

/* Options. */

static int usage(const char *wrong) {
    fprintf(
        stderr,
        "soak: bad argument `%s`\n"
        "usage: soak [N] [SEED] [--device=cpu|cuda] [--target=NAME] [--one=SEED] "
        "[--reduce|--no-reduce] [--plant=FAULT] "
        "[--in-order] [--repeat=N]\n"
        "       soak --sweep [--part=I/K] [--device=cpu|cuda] [--target=NAME]\n"
        "       soak --reduce=FILE.g [--device=cpu|cuda] [--target=NAME]\n"
        "       soak --faults [N] [SEED] [--device=cpu|cuda] [--target=NAME]\n"
        "       soak --attention [N] [SEED] [--small] [--device=cpu|cuda] [--target=NAME]\n"
        "       soak --updates [N] [SEED] [--device=cpu|cuda] [--target=NAME]\n"
        "       soak --shapes [N] [SEED] [--part=I/K] [--only=TEMPLATE] [--against=TARGET] "
        "[--small] "
        "[--one=TEMPLATE:PROGRAM:SHAPE] [--device=cpu|cuda] [--target=NAME] [--plant=FAULT]\n"
        "       soak --ulp [--op=NAME] [--dtype=NAME] [--threads=N] [--found=FILE] "
        "[--device=cpu|cuda] [--target=NAME]\n"
        "       soak --merge FILE..\n"
        "       soak --merge-shapes N TARGET FILE..\n"
        "       soak --times [--random=N] [--seed=N] [--threads=N] [--target=NAME] [--verbose] "
        "[FILE.g..]\n"
        "       soak --write FOLDER [N] [SEED]\n"
        "random graphs take --coverage=FILE, for --merge; they and shapes take --seconds=N, after "
        "which none is begun; all take --numerics=fast\n",
        wrong);
    return 2;
}

bool soak_read_number(const char *text, uint64_t *number) {
    char *end;
    *number = strtoull(text, &end, 10);
    return *text >= '0' && *text <= '9' && !*end;
}

static bool plant(const char *name) {
    static uint32_t n_planted;
    for (int id = 0; id < FAULT_COUNT; id++) {
        if (strcmp(name, fault_info((FaultId)id)->name) != 0) continue;
        compile_with(fault_hook((FaultId)id, &n_planted));
        return true;
    }
    return shapes_plant(name);
}

/* An argument of the ULP sweep, and whether its value is good. False: it is another argument. */
static bool read_ulp_argument(Soak *soak, const char *argument, bool *is_good) {
    Dtype dtype = DT_F32;
    if (strcmp(argument, "--ulp") == 0) return soak->is_ulp = true;
    if (strncmp(argument, "--op=", 5) == 0) {
        *is_good = (soak->ulp_op = ulp_subject(argument + 5)) != OP_NONE;
        return true;
    }
    if (strncmp(argument, "--dtype=", 8) == 0) {
        *is_good = dtype_by_name(argument + 8, &dtype) && dtype_is_float(dtype);
        soak->ulp_dtypes = (DtypeSet)1 << dtype;
        return true;
    }
    if (strncmp(argument, "--threads=", 10) == 0) {
        *is_good = soak_read_number(argument + 10, &soak->n_threads);
        return true;
    }
    if (strncmp(argument, "--found=", 8) != 0) return false;
    *is_good = *(soak->found_path = argument + 8) != '\0';
    return true;
}

static bool read_argument(Soak *soak, const char *argument, int *n_numbers) {
    if (strcmp(argument, "--device=cpu") == 0) return true;
    if (strcmp(argument, "--device=cuda") == 0) return soak->is_cuda = true;
    if (strcmp(argument, "--in-order") == 0) {
        rig_launch_in_order();
        return true;
    }
    if (strncmp(argument, "--repeat=", 9) == 0) {
        uint64_t n;
        if (!soak_read_number(argument + 9, &n) || n > UINT32_MAX) return false;
        rig_repeat_runs((uint32_t)n);
        return true;
    }
    if (strcmp(argument, "--numerics=fast") == 0) {
        compile_with_fast_numerics();
        return true;
    }
    if (strcmp(argument, "--small") == 0) return soak->is_small = true;
    if (strcmp(argument, "--sweep") == 0) return soak->is_sweep = true;
    if (strcmp(argument, "--faults") == 0) return soak->is_faults = true;
    if (strcmp(argument, "--shapes") == 0) return soak->is_shapes = true;
    if (strcmp(argument, "--attention") == 0) return soak->is_attention = true;
    if (strcmp(argument, "--updates") == 0) return soak->is_updates = true;
    bool is_good = true;
    if (read_ulp_argument(soak, argument, &is_good)) return is_good;
    if (strncmp(argument, "--seconds=", 10) == 0)
        return soak_read_number(argument + 10, &soak->seconds);
    if (strncmp(argument, "--only=", 7) == 0) {
        soak->only = argument + 7;
        return lowering_by_name(soak->only, strlen(soak->only)) != LOWERING_COUNT;
    }
    if (strncmp(argument, "--against=", 10) == 0)
        return (soak->against = target_by_name(argument + 10)) != NULL;
    if (strcmp(argument, "--reduce") == 0 || strcmp(argument, "--no-reduce") == 0) {
        soak->max_reduced = argument[2] == 'r' ? UINT32_MAX : 0;
        return true;
    }
    if (strncmp(argument, "--reduce=", 9) == 0) return *(soak->given_path = argument + 9);
    if (strncmp(argument, "--coverage=", 11) == 0) return *(soak->coverage_path = argument + 11);
    if (strncmp(argument, "--plant=", 8) == 0) return plant(argument + 8);
    if (strncmp(argument, "--one=", 6) == 0) {
        soak->is_one = true;
        soak->n = 1;
        soak->one_shape = soak->is_shapes ? argument + 6 : NULL;
        return soak->is_shapes || soak_read_number(argument + 6, &soak->seed);
    }
    if (strncmp(argument, "--part=", 7) == 0) {
        char *slash;
        soak->part = strtoull(argument + 7, &slash, 10);
        return *slash == '/' && soak_read_number(slash + 1, &soak->n_parts) &&
               soak->part < soak->n_parts;
    }
    if (strncmp(argument, "--target=", 9) == 0) {
        soak->target_name = argument + 9;
        return target_by_name(soak->target_name) != NULL;
    }
    if (*n_numbers == 2) return false;
    return soak_read_number(argument, (*n_numbers)++ ? &soak->seed : &soak->n);
}

static void choose_targets(Soak *soak) {
    static const TargetId cpus[] = {TARGET_CPU, TARGET_CPU_V4};
    static const TargetId gpus[] = {TARGET_SM_90A, TARGET_SM_80};
    if (soak->target_name) {
        soak->targets[soak->n_targets++] = target_by_name(soak->target_name);
        soak->is_cuda = soak->targets[0]->ptx_version != NULL;
        return;
    }
    for (int i = 0; i < 2; i++) {
        const Target *target = target_get(soak->is_cuda ? gpus[i] : cpus[i]);
        if (compile_target_runs(target))
            soak->targets[soak->n_targets++] = target;
        else
            printf("soak: this CPU cannot run %s: left out\n", target->name);
    }
}

/* While a program lives, its device's context does: made once, it serves the whole process. */
static frt_program *keep_context(const Soak *soak) {
    static const char source[] = "graph keep(x: f32[1]) -> (y: f32[1]) {\n  y = -x\n}\n";
    frt_error error = FRT_ERROR_INIT;
    frt_module *module = NULL;
    frt_program *program = NULL;
    Compiled compiled;
    if (!compile_source(&compiled, source, soak->targets[0], COMPILE_FUSED))
        fprintf(stderr, "soak: %s", compiled.messages);
    else if (frt_module_load_memory(compiled.bytes, compiled.n_bytes, &module, &error) ||
             frt_program_create(module, NULL, NULL, &program, &error))
        fprintf(stderr, "soak: %s\n", error.message);
    else
        printf("soak: on %s\n", frt_device_name(program));
    frt_module_free(module);
    compile_free(&compiled);
    return program;
}

/* Prints the table; whether it lacks what so many graphs should have. */
static bool has_gaps(const Soak *soak) {
    Text table = {.arena = soak->arena}, gaps = {.arena = soak->arena};
    uint32_t n_gaps = coverage_n_zero_cells(&soak->coverage, &gaps);
    coverage_print(&soak->coverage, &table);
    printf("%s%s%u cells of the coverage table are zero\n", text_str(&table),
           soak->n >= 500 ? text_str(&gaps) : "", n_gaps);
    return soak->n >= 500 && n_gaps > 0;
}

/* Whether the coverage is as it should be: shown here, or left for the other parts. */
static bool tell_coverage(const Soak *soak) {
    if (soak->given_path || soak->is_sweep || soak->is_one || soak->is_faults || soak->is_shapes ||
        soak->is_attention || soak->is_updates || soak->is_ulp)
        return true;
    if (!soak->coverage_path) return !has_gaps(soak);
    Text line = {.arena = soak->arena};
    coverage_write(&soak->coverage, &line);
    FILE *file = fopen(soak->coverage_path, "w");
    bool is_written = file && fputs(text_str(&line), file) >= 0;
    if (file && fclose(file)) is_written = false;
    if (!is_written) fprintf(stderr, "soak: cannot write %s\n", soak->coverage_path);
    return is_written;
}

static int merge(Soak *soak, char **paths, int n) {
    static char line[1 << 18];
    soak->arena = arena_new(NULL);
    for (int i = 0; i < n; i++) {
        FILE *file = fopen(paths[i], "r");
        bool is_read =
            file && fgets(line, sizeof line, file) && coverage_merge(&soak->coverage, line);
        if (file) fclose(file);
        if (is_read) continue;
        fprintf(stderr, "soak: %s holds no coverage of this build\n", paths[i]);
        arena_free(soak->arena);
        return 2;
    }
    soak->n = soak->coverage.n_graphs;
    bool is_lacking = has_gaps(soak);
    arena_free(soak->arena);
    return is_lacking || n == 0;
}

static int merge_shapes(Soak *soak, char **argv, int n) {
    if (n < 2 || !soak_read_number(argv[0], &soak->n) || !target_by_name(argv[1]))
        return usage("--merge-shapes");
    soak->arena = arena_new(NULL);
    int status = soak_merge_shapes(soak, target_by_name(argv[1]), argv + 2, n - 2);
    arena_free(soak->arena);
    return status;
}

static int times(Soak *soak, char **argv, int n) {
    catch_signals();
    const char *wrong = soak_times(soak, argv, n);
    if (wrong) return usage(wrong);
    printf("%u passed, %u failed, 0 skipped\n", soak->n_passed, soak->n_failed);
    return soak->n_failed > 0 || soak->n_passed == 0;
}

static int write_sources(Soak *soak, char **argv, int n) {
    if (n < 1 || n > 3 || (n > 1 && !soak_read_number(argv[1], &soak->n)) ||
        (n > 2 && !soak_read_number(argv[2], &soak->seed)))
        return usage("--write");
    return soak_write_sources(soak, argv[0]) ? 0 : 1;
}

/* Whether what was asked for was there to be run. */
static bool run(Soak *soak) {
    if (soak->is_shapes) return soak_shapes(soak);
    if (soak->is_ulp) return soak_ulp(soak);
    if (soak->given_path)
        soak_given(soak);
    else if (soak->is_sweep)
        soak_sweep(soak);
    else if (soak->is_faults)
        soak_faults(soak);
    else if (soak->is_attention)
        soak_attention(soak);
    else if (soak->is_updates)
        soak_updates(soak);
    else
        soak_random(soak);
    return true;
}

int main(int argc, char **argv) {
    Soak soak = {.n = 500,
                 .seed = 1,
                 .n_parts = 1,
                 .max_reduced = 3,
                 .ulp_dtypes = DTS_FLOAT,
                 .coverage = {.without_matmul = false}};
    int n_numbers = 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc > 1 && strcmp(argv[1], "--merge") == 0) return merge(&soak, argv + 2, argc - 2);
    if (argc > 1 && strcmp(argv[1], "--merge-shapes") == 0)
        return merge_shapes(&soak, argv + 2, argc - 2);
    if (argc > 1 && strcmp(argv[1], "--write") == 0)
        return write_sources(&soak, argv + 2, argc - 2);
    if (argc > 1 && strcmp(argv[1], "--times") == 0) return times(&soak, argv + 2, argc - 2);
    for (int i = 1; i < argc; i++)
        if (!read_argument(&soak, argv[i], &n_numbers)) return usage(argv[i]);
    if (soak.is_shapes && n_numbers == 0) soak.n = DEFAULT_SHAPES;
    soak.arena = arena_new(NULL);
    choose_targets(&soak);
    if (!soak.n_targets) return usage("--target: none runs here");
    catch_signals();
    frt_program *keeper = NULL;
    if (soak.is_cuda && !(keeper = keep_context(&soak))) return 4;
    bool is_lacking = !run(&soak);
    frt_program_free(keeper);
    is_lacking |= !tell_coverage(&soak);
    const PairCounts *c = &soak.counts;
    if (c->n_fast)
        printf("fast: %" PRIu64 " elements of fused programs within what bounds add up to, %" PRIu64
               " unbounded\n",
               c->n_fast, c->n_fast_any);
    if (!soak.is_faults && !soak.is_ulp)
        printf("%" PRIu64 " runs, %" PRIu64 " after init steps; %" PRIu64 " values and %" PRIu64
               " elements against the interpreter "
               "(%" PRIu64 " finite, %" PRIu64 " unbounded), %" PRIu64 " values not compared\n",
               c->n_runs, c->n_prepared, c->n_nodes, c->n_elems, c->n_finite, c->n_any,
               c->n_skipped);
    printf("%u passed, %u failed, %u skipped\n", soak.n_passed, soak.n_failed, soak.n_skipped);
    arena_free(soak.arena);
    return soak.n_failed > 0 || soak.n_passed == 0 || is_lacking;
}
