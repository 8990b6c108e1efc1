/* Following values of a graph back to what they are made of, to find what becomes one op.
 *
 * Views are followed by the indices of elements: two values are the same if they are read from one
 * node at equal indices. So it does not matter which reshapes, transposes and broadcasts stand
 * between. Internal to the builder. */
#ifndef FUSEC_BUILD_ONLINE_FOLLOW_H
#define FUSEC_BUILD_ONLINE_FOLLOW_H

#include "ir/build/online_find.h"

/* An element of a node. */
typedef struct OnlinePlace {
    NodeId node;
    IndexId at[MAX_RANK];
} OnlinePlace;

typedef struct OnlineFinder {
    Arena *arena;
    const Graph *graph;
    const Builder *b;
    IndexTab *tab;
    DimId n_keys;
    uint32_t key_axis; /* of `tab`: the axis that the matmul contracts */
    OnlineFound *found;
    OnlinePlace power, total;
    OnlinePlace weights[ONLINE_MOST_STEPS]; /* before each op of the path of weights */
    bool has_total, is_divided, has_divisor;
    uint32_t *budget; /* of visits: what takes more is not found */
    const char *message, *help;
} OnlineFinder;

/* Begins at the node; sets *first to its element at axes of its own. */
OnlineFinder online_finder_new(const Builder *b, NodeId id, OnlineFound *found, OnlinePlace *first);
/* Sets the axis that the matmul contracts. */
void online_begin_keys(OnlineFinder *f, NodeId matmul);
/* The element of the operand on one side of the matmul of which `product` is an element. */
OnlinePlace online_operand(OnlineFinder *f, const OnlinePlace *product, uint32_t side);

/* Whether the node may become part of the op. */
bool online_belongs(const OnlineFinder *f, NodeId id);
const Node *online_node_of(const OnlineFinder *f, const OnlinePlace *place);
/* Sets why nothing is found; returns false. */
bool online_fail(OnlineFinder *f, const char *help, const char *message);
bool online_is_view(const Node *node);
bool online_is_float_cast(const Graph *graph, const Node *node);
bool online_is_elementwise(const Node *node);
bool online_is_one(const OnlineFinder *f, DimId extent);

/* The element of argument `k` that an elementwise op or a view reads. */
OnlinePlace online_arg_place(const OnlineFinder *f, const OnlinePlace *place, uint32_t k);
/* The element before views, or before views and casts between floats. */
OnlinePlace online_before_views(const OnlineFinder *f, OnlinePlace place);
OnlinePlace online_before_moves(const OnlineFinder *f, OnlinePlace place);
/* Adds the op to the path, and goes to the element of argument `arg`. */
bool online_go_on(OnlinePath *path, const OnlineFinder *f, OnlinePlace *place, uint32_t arg);
/* Whether the value changes from key to key. */
bool online_varies(const OnlineFinder *f, OnlinePlace place);
bool online_is_same(const OnlineFinder *f, OnlinePlace a, OnlinePlace b);
bool online_is_literal(const OnlineFinder *f, OnlinePlace place, double *number);
/* If the value is a reduction over the keys by `combine`, sets the element of its argument. */
bool online_reduces_keys(const OnlineFinder *f, OnlinePlace place, PrimId combine,
                         OnlinePlace *arg);

#endif
