/* What stands between a softmax and its product, done to scores, to weights and to the result.
 * Internal to the builder. */
#ifndef FUSEC_BUILD_ONLINE_WEIGHTS_H
#define FUSEC_BUILD_ONLINE_WEIGHTS_H

#include "ir/build/online_find.h"

/* A graph that is made again. */
typedef struct OnlineNodes {
    Builder *b;
    const Node *nodes;   /* as they were */
    const NodeId *moved; /* per node: what took its place */
} OnlineNodes;

/* Moves the scores as the weights are moved on their path, and hides the keys that masks hide. */
NodeId online_hide(const OnlineNodes *n, const OnlineFound *found, NodeId scores);
/* The factors of rows and keys, in the dtype of sums and the shape of the product's operand;
 * *factor is NODE_NONE if there are none. Returns false after an error. */
bool online_make_factor(const OnlineNodes *n, const OnlineFound *found, NodeId *factor);
/* Whether rows have factors, by which the product of the weights is multiplied. */
bool online_has_rows(const OnlineFound *found);
/* A sum of scores and a select between -infinity and something else is a mask: the key is hidden,
 * whatever its score is. Sets *masked to the select between the sum and -infinity; NODE_NONE: the
 * node is no such sum. Returns false after an error. */
bool online_mask_sum(const OnlineNodes *n, NodeId sum, NodeId *masked);
/* Multiplies the result, which has the dtype of sums, by the factors of its rows. */
NodeId online_scale_rows(const OnlineNodes *n, const OnlineFound *found, NodeId result);

#endif
