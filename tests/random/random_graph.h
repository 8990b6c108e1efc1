/* Random programs of the graph language, typed and valid by construction, with values in sane
 * ranges. Equal seeds and options give equal programs. Each seed prescribes part of its program, so
 * a run of consecutive seeds visits every cell of the coverage table that the options allow. */
#ifndef FUSEC_TESTS_RANDOM_GRAPH_H
#define FUSEC_TESTS_RANDOM_GRAPH_H

#include "random/program.h"

typedef struct RandomGraphOptions {
    uint32_t min_statements, max_statements;
    int64_t max_elems; /* limit of any tensor, for all values of the dims */
    bool without_matmul;
    uint32_t param_percent; /* params among inputs and params */
    bool without_params;    /* inputs instead of params */
    bool without_prelude;   /* no composites */
    bool without_symbols;   /* constant extents only */
    bool repeats; /* loops of a dim of steps, of which a graph is cut before it is planned */
    /* No tensors without elements beyond a rare constant extent of 0. They are drawn from a stream
     * of their own, so that this option leaves the programs of all seeds as they are. */
    bool without_empty;
} RandomGraphOptions;

/* 3 to 25 statements, tensors of at most 2^15 elements, a quarter of inputs and params are params,
 * everything allowed. Two of three programs have tensors without elements: extents of 0, dims that
 * may be 0, and empty slices. */
RandomGraphOptions random_graph_defaults(void);

Program random_program(Arena *arena, uint64_t seed, const RandomGraphOptions *options);
/* The program as source text. `options` NULL: the defaults. */
char *random_graph_source(Arena *arena, uint64_t seed, const RandomGraphOptions *options);

#endif
