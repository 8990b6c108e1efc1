/* Minimum cuts: the edges of least total capacity whose removal separates two nodes of a
 * network. */
#ifndef FUSEC_BASE_FLOW_H
#define FUSEC_BASE_FLOW_H

#include "base/arena.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct Flow Flow;

Flow *flow_new(Arena *arena, uint32_t n_nodes);
/* Adds capacity from one node to another; repeated calls add up. Some cut must have a capacity less
 * than 2^63. */
void flow_edge(Flow *flow, uint32_t from, uint32_t to, uint64_t capacity);
/* Returns the capacity of the minimum cut. `on_source_side` (n_nodes flags) gets the nodes on the
 * source's side; of several minimum cuts it is the one nearest to the source. Call it once per
 * network. */
uint64_t flow_cut(Flow *flow, uint32_t source, uint32_t sink, bool *on_source_side);

#endif
