/* Times programs fused beside one kernel per op, on the CPU: no plan may be slower than its ops
 * apart. */
#include "soak.h"

#include "cost/cost.h"
#include "random/random_graph.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 9, MAX_RANDOM_ELEMS = 1 << 18, MAX_ELEMS = 1 << 26, SECONDS = 300 };
/* The most that a fused run may take: a factor of the unfused time, and microseconds. */
static const double bound_factor = 1.05, bound_us = 3;

typedef struct Times {
    const Target *target;
    int32_t n_threads;
    bool is_verbose;
    uint32_t n_programs, n_slower, n_failed, n_predicted;
    double log_sum; /* of unfused over fused */
} Times;

/* What the cost model says of a plan at these dims, for as many cores as there are threads. */
static double predicted_us(const Times *times, const Compiled *compiled, uint32_t graph,
                           const int64_t *dims) {
    Arena *arena = arena_new(NULL);
    Card card = *card_get(CARD_CPU);
    if (times->n_threads > 0) card = card_with_processors(&card, times->n_threads);
    double us = cost_us(arena, compiled->driver.plans[graph], &card, dims);
    arena_free(arena);
    return us;
}

static bool is_slower(const PairTimes *t) {
    return t->fused_us > t->unfused_us * bound_factor + bound_us;
}

static void print_row(Times *times, const char *label, const Pair *pair, const PairTimes *t) {
    const Compiled *sides[] = {&pair->fused, &pair->exposed};
    double measured[] = {t->fused_us, t->unfused_us}, predicted[2];
    for (int i = 0; i < 2; i++) {
        predicted[i] = predicted_us(times, sides[i], pair->graph, pair->symbol_values);
        if (predicted[i] < 2 * measured[i] && measured[i] < 2 * predicted[i]) times->n_predicted++;
    }
    if (is_slower(t) || times->is_verbose)
        printf("%-44s %10.1f %10.1f %6.2f %10.1f %10.1f%s\n", label, t->fused_us, t->unfused_us,
               t->unfused_us / t->fused_us, predicted[0], predicted[1],
               is_slower(t) ? "  slower" : "");
}

/* Elements of all values of the graph. */
static double n_elems(const Graph *graph, const int64_t *dims) {
    double n = 0;
    for (NodeId id = 0; id < graph->nodes.n; id++) {
        const Shape *shape = &graph_node(graph, id)->shape;
        double product = 1;
        for (uint32_t i = 0; i < shape->rank; i++)
            product *= dim_number(graph->dims, shape->dims[i], dims);
        n += product;
    }
    return n;
}

/* The dims that the cost model takes by default, or smaller ones if the graph would be too large.
 */
static const int64_t *choose_dims(const Graph *graph, Arena *arena) {
    CostPoints points = cost_points(arena, graph->dims, &device_traits[DEVICE_CPU]);
    for (uint32_t i = 0; i < points.n; i++)
        if (n_elems(graph, points.dims[i]) <= MAX_ELEMS) return points.dims[i];
    return points.dims[0];
}

/* One graph. */
static bool time_graph(Times *times, const char *label, Pair *pair, uint32_t graph, Arena *arena,
                       Text *report) {
    RigOptions options = RIG_OPTIONS_INIT;
    options.program.no_weights = true;
    options.program.n_threads = times->n_threads;
    PairData data = {.fill = FILL_UNIFORM, .seed = 1, .without_reference = true};
    PairCounts counts = {0};
    PairTimes t;
    if (!pair_open(pair, graph, &options, report) ||
        !pair_place(pair, choose_dims(pair_graph(pair), arena), report) ||
        !pair_run(pair, &data, &counts, report) || !pair_time(pair, ROUNDS, &t, report))
        return false;
    times->n_programs++;
    times->log_sum += log(t.unfused_us / t.fused_us);
    times->n_slower += is_slower(&t);
    const char *name = pair_graph(pair)->name;
    print_row(times, str_format(arena, "%s:%s", label, name), pair, &t);
    return true;
}

static void time_source(Times *times, const char *label, const char *source) {
    Arena *arena = arena_new(NULL);
    Text report = {.arena = arena};
    Pair pair;
    soak_watch(label, SECONDS);
    bool is_good = pair_compile_plain(&pair, source, times->target, times->target, &report);
    for (uint32_t g = 0; is_good && g < pair.fused.module->graphs.n; g++)
        is_good = time_graph(times, label, &pair, g, arena, &report);
    soak_watch_off();
    if (!is_good) {
        printf("%s: %s", label, text_str(&report));
        times->n_failed++;
    }
    pair_free(&pair);
    arena_free(arena);
}

static void time_random(Times *times, uint64_t seed) {
    Arena *arena = arena_new(NULL);
    RandomGraphOptions options = random_graph_defaults();
    options.max_elems = MAX_RANDOM_ELEMS;
    options.without_empty = true;
    time_source(times, str_format(arena, "random-%" PRIu64, seed),
                random_graph_source(arena, seed, &options));
    arena_free(arena);
}

static bool read_times(Times *times, Soak *soak, const char *argument) {
    uint64_t n_threads;
    if (strncmp(argument, "--random=", 9) == 0) return soak_read_number(argument + 9, &soak->n);
    if (strncmp(argument, "--seed=", 7) == 0) return soak_read_number(argument + 7, &soak->seed);
    if (strncmp(argument, "--target=", 9) == 0)
        return (times->target = target_by_name(argument + 9)) != NULL;
    if (strcmp(argument, "--verbose") == 0) return times->is_verbose = true;
    if (strncmp(argument, "--threads=", 10) != 0 || !soak_read_number(argument + 10, &n_threads) ||
        n_threads > INT32_MAX)
        return false;
    times->n_threads = (int32_t)n_threads;
    return true;
}

const char *soak_times(Soak *soak, char **argv, int n) {
    Times times = {.target = codegen_native_cpu(), .n_threads = 1};
    soak->n = 0;
    for (int i = 0; i < n; i++)
        if (argv[i][0] == '-' && !read_times(&times, soak, argv[i])) return argv[i];
    printf("%-44s %10s %10s %6s %10s %10s\n", "graph", "fused us", "unfused", "gain", "predicted",
           "unfused");
    for (int i = 0; i < n; i++) {
        if (argv[i][0] == '-') continue;
        Arena *arena = arena_new(NULL);
        const char *source = soak_read_source(arena, argv[i]);
        if (!source) return argv[i];
        const char *slash = strrchr(argv[i], '/');
        time_source(&times, slash ? slash + 1 : argv[i], source);
        arena_free(arena);
    }
    for (uint64_t i = 0; i < soak->n; i++) time_random(&times, soak->seed + i);
    printf("geometric mean of unfused over fused %.3f; %u of %u times predicted within a factor of "
           "2\n",
           times.n_programs ? exp(times.log_sum / times.n_programs) : 0, times.n_predicted,
           2 * times.n_programs);
    soak->n_failed = times.n_slower + times.n_failed;
    soak->n_passed = times.n_programs - times.n_slower;
    return NULL;
}
