/* Steps of unrolled loops. A loop of a known number of steps is no op of a graph: a graph has the
 * nodes of every step. What it also has is a note of which nodes each step has, so that a print
 * keeps the loop (ir/print/reroll.h). No pass reads the note, and a graph without it means the
 * same.
 *
 * Steps of a loop are alike if each has as many nodes, counted before values that are the same
 * became one node and others were dropped. Loops whose steps are not alike have no note. */
#ifndef FUSEC_IR_STEPS_H
#define FUSEC_IR_STEPS_H

#include "base/vec.h"

typedef struct LoopSteps {
    const char *index;   /* its name */
    int64_t begin, by;   /* the index of step k is begin + k * by */
    uint32_t n_steps;    /* 0: steps are not alike */
    uint32_t parent;     /* the loop that this one is in, plus 1; 0: none */
    uint32_t in_step;    /* of the parent */
    uint32_t n_nodes;    /* of a step */
    uint32_t *nodes;     /* [n_steps][n_nodes] node k of each step; NODE_NONE: it was dropped. Equal
                          * values, in one step or in several, are one node */
    uint32_t first, end; /* the nodes that no earlier step or op has are first .. end - 1 */
    uint32_t n_carried;
    const char **names; /* of the carried values */
    uint32_t *carried;  /* [n_steps + 1][n_carried] before each step, and after the last */
} LoopSteps;

typedef Vec(LoopSteps) LoopStepsList;

#endif
