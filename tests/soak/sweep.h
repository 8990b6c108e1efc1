/* The sweep's programs: source text with every op, dtype and class of shape. */
#ifndef FUSEC_TESTS_SWEEP_H
#define FUSEC_TESTS_SWEEP_H

#include "ir/graph.h"

enum { SWEEP_MAX_DIMS = 3 };

/* One source with one graph, and the extents it is run with. */
typedef struct SweepCase {
    const char *name, *source;
    uint32_t n_dims; /* 0: all extents are constants in the source */
    const int64_t (*extents)[SWEEP_MAX_DIMS];
    uint32_t n_extents;
    double lo, hi; /* of uniform contents of float inputs */
} SweepCase;

typedef Vec(SweepCase) SweepCases;

void sweep_add_eltwise(Arena *arena, SweepCases *cases);
void sweep_add_casts(Arena *arena, SweepCases *cases);
void sweep_add_reductions(Arena *arena, SweepCases *cases);
void sweep_add_views(Arena *arena, SweepCases *cases);
void sweep_add_composites(Arena *arena, SweepCases *cases);
void sweep_add_contractions(Arena *arena, SweepCases *cases);

#endif
