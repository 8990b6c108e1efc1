/* Least cuts: edges of the least total capacity whose removal parts two nodes of a network. */
#ifndef FUSEC_BASE_FLOW_H
#define FUSEC_BASE_FLOW_H

#include "base/arena.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct Flow Flow;

Flow *flow_new(Arena *arena, uint32_t n_nodes);
/* Capacities from one node to another add up. That of some cut has to be less than 2^63. */
void flow_edge(Flow *flow, uint32_t from, uint32_t to, uint64_t capacity);
/* Its capacity. `on_source_side` (n_nodes flags) gets the nodes on the source's side of the least
 * cut, of several the one nearest to the source. Once for a network. */
uint64_t flow_cut(Flow *flow, uint32_t source, uint32_t sink, bool *on_source_side);

#endif
