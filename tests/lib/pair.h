/* One graph run both ways, fused and as one kernel per op with every value kept: the fused run's
 * outputs must be the other's to the bit, and every value of the other run within the interpreter's
 * bounds of what the run's own arguments give. */
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
    /* One graph at a time: */
    uint32_t graph; /* index in the module */
    Rig fused_rig, exposed_rig;
    int64_t symbol_values[DIM_MAX_SYMBOLS];
} Pair;

typedef struct PairCounts {
    uint64_t n_runs, n_nodes, n_skipped;
    uint64_t n_elems, n_finite, n_any;
    uint64_t n_fast, n_fast_any; /* elements of fused fast programs, unbounded ones */
    uint64_t n_prepared;         /* runs whose program has init steps */
} PairCounts;

/* All functions put what is wrong into `report`, one or more lines, and return false then. */

/* Compiles the source both ways. To be freed in any case. */
bool pair_compile(Pair *pair, const char *source, const Target *target, Text *report);
/* The unfused one for another target of the same device. */
bool pair_compile_against(Pair *pair, const char *source, const Target *target,
                          const Target *against, Text *report);
void pair_free(Pair *pair);

/* Loads a graph; closes the one before. */
bool pair_open(Pair *pair, uint32_t graph, const RigOptions *options, Text *report);
/* Lays out both runs for these values of the dims. */
bool pair_place(Pair *pair, const int64_t *symbol_values, Text *report);

/* Gives an input or param its contents; NULL stands for random_fill. */
typedef void (*PairFill)(void *user, const Graph *graph, const GraphInput *input, Rng *rng,
                         Tensor *tensor);
typedef struct PairData {
    RandomFill fill;
    uint64_t seed;
    PairFill special; /* or NULL */
    void *user;
    bool without_reference; /* do not interpret: only the two runs against each other */
} PairData;

bool pair_run(Pair *pair, const PairData *data, PairCounts *counts, Text *report);

static inline const Graph *pair_graph(const Pair *pair) {
    return pair->exposed.module->graphs.data[pair->graph];
}

#endif
