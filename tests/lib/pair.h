/* Runs one graph twice: fused, and as one kernel per op with every value stored. The fused run's
 * outputs must equal the other run's to the bit. Every value of the other run must be within the
 * interpreter's bounds, given the run's own arguments. */
#ifndef FUSEC_TESTS_PAIR_H
#define FUSEC_TESTS_PAIR_H

#include "interp/interp.h"
#include "lib/check.h"
#include "lib/compile.h"
#include "lib/rig.h"
#include "random/random_data.h"

typedef struct Pair {
    Compiled fused, exposed;
    const Target *target;
    /* The state of one graph at a time: */
    uint32_t graph; /* index in the module */
    Rig fused_rig, exposed_rig;
    int64_t symbol_values[DIM_MAX_SYMBOLS];
} Pair;

typedef struct PairCounts {
    uint64_t n_runs, n_nodes, n_skipped;
    uint64_t n_elems, n_finite, n_any;
    uint64_t n_fast, n_fast_any; /* elements of fast fused programs, and unbounded ones among
                                  * them */
    uint64_t n_prepared;         /* runs of programs with init steps */
} PairCounts;

/* Every function returns false after a failure, with one or more lines in `report`. */

/* Compiles the source both ways. The caller frees `pair` in any case. */
bool pair_compile(Pair *pair, const char *source, const Target *target, Text *report);
/* Compiles the unfused program for another target of the same device class. */
bool pair_compile_against(Pair *pair, const char *source, const Target *target,
                          const Target *against, Text *report);
/* Compiles the source fused and as one kernel per op, whose values are not all outputs: for
 * pair_time, and for runs without a reference whose values are too large to be read back. */
bool pair_compile_plain(Pair *pair, const char *source, const Target *target, const Target *against,
                        Text *report);
void pair_free(Pair *pair);

/* Loads a graph and closes the previous one. */
bool pair_open(Pair *pair, uint32_t graph, const RigOptions *options, Text *report);
/* Lays out both runs for these values of the dims. */
bool pair_place(Pair *pair, const int64_t *symbol_values, Text *report);

/* Fills an input or param. NULL: random_fill does. */
typedef void (*PairFill)(void *user, const Graph *graph, const GraphInput *input, Rng *rng,
                         Tensor *tensor);
typedef struct PairData {
    RandomFill fill;
    uint64_t seed;
    PairFill special; /* or NULL */
    void *user;
    bool without_reference; /* compare only the two runs, without the interpreter */
} PairData;

bool pair_run(Pair *pair, const PairData *data, PairCounts *counts, Text *report);
/* Compiles the source, loads its first graph and makes one run with contents of FILL_UNIFORM.
 * `extents`: as of pair_place. */
bool pair_is_right(const char *source, const Target *target, const RigOptions *options,
                   const int64_t *extents, uint64_t seed, Text *report);

/* Microseconds of one run on the CPU. */
typedef struct PairTimes {
    double fused_us, unfused_us;
} PairTimes;
/* Times both after a pair_run, with its contents. They take turns, and the least of `n_rounds`
 * counts: what else the machine does only adds. With one thread its own processor time counts. */
bool pair_time(Pair *pair, uint32_t n_rounds, PairTimes *times, Text *report);

static inline const Graph *pair_graph(const Pair *pair) {
    return pair->exposed.module->graphs.data[pair->graph];
}

#endif
