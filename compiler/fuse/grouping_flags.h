/* What grouping and inlining know of the nodes of a graph, as node flags. */
#ifndef FUSEC_FUSE_GROUPING_FLAGS_H
#define FUSEC_FUSE_GROUPING_FLAGS_H

#include "ir/node_flags.h"

typedef enum GroupingFlag {
    /* Facts of the graph. */
    GROUPING_OUTPUT,        /* an output */
    GROUPING_CAN_PREPARE,   /* see hoist.h; a group has one kind */
    GROUPING_NUMBER,        /* a number that the compiler knows, and that costs nothing */
    GROUPING_FEEDS_GEMM,    /* a GEMM reads it, directly or through views */
    GROUPING_REDUCED,       /* it is computed from a reduction's result */
    GROUPING_LAST_COMPUTED, /* of the values that can be prepared it is computed last: views may
                             * follow */
    GROUPING_UPDATED,       /* an update updates it, or a copy of it, after its group has run */
    /* Decided so far, over all rounds. */
    GROUPING_WANTED, /* it is to be stored. A group that stores it may not recompute it at other
                      * coordinates */
    GROUPING_SINKS,  /* it follows elementwise from a reduction's result and is stored in place
                      * of that result */
    GROUPING_NEVER_SINKS, /* no group could store it in place of the result */
    GROUPING_WHOLE,       /* one map computes all of it and stores its slices */
    GROUPING_NEVER_WHOLE, /* such a map would have to store the value too */
    GROUPING_IN_PLACE,    /* a concat in place */
    /* Of a round. */
    GROUPING_STORED,  /* it is in memory after its group has run */
    GROUPING_LOADED,  /* a group loads it */
    GROUPING_INSIDE,  /* only slices of it are computed (fuse/gemm_slice.h) */
    GROUPING_VISITED, /* by the walk that is under way, which drops the flag at its end */
    /* Of the final kernels. */
    GROUPING_DROPS_REST, /* a slice; a kernel does not store the rest */
    GROUPING_PREPARED,   /* an init kernel stores it */
    GROUPING_FLAG_COUNT
} GroupingFlag;
_Static_assert(GROUPING_FLAG_COUNT <= MAX_NODE_FLAGS, "grouping's flag is a flag of a node");

#endif
