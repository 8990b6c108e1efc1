/* Finding a softmax and the product that contracts its axis, by structure: see build.h. Internal to
 * the builder. */
#ifndef FUSEC_BUILD_ONLINE_FIND_H
#define FUSEC_BUILD_ONLINE_FIND_H

#include "ir/build/build.h"
#include "ir/index.h"

enum { ONLINE_MOST_STEPS = 32 };

/* What an op on a path does to weights beside views and casts. Factors multiply or divide by
 * another value, or select 0 in place of weights. */
typedef enum {
    STEP_PLAIN,  /* moves, converts or divides by the sum of weights */
    STEP_ROW,    /* a factor of each row */
    STEP_KEY,    /* a factor of each row and key */
    STEP_SCALED, /* before the sum: a number, which weights and their sum share */
    STEP_MASK    /* before the sum: hides keys */
} OnlineStep;

/* The ops that stand between two values, from the later one back to the earlier one. */
typedef struct OnlinePath {
    NodeId ops[ONLINE_MOST_STEPS];
    uint32_t args[ONLINE_MOST_STEPS]; /* which argument the path goes on with */
    OnlineStep steps[ONLINE_MOST_STEPS];
    uint32_t n;
} OnlinePath;

/* weights = power(scores - their maximum), moved by views and times factors; the matmul multiplies
 * them, divided by their sum before or after. */
typedef struct OnlineFound {
    NodeId matmul, scores;
    NodeId power;         /* NODE_NONE: not reached */
    uint32_t side;        /* of the weights in the matmul */
    OpId op;              /* that does the same */
    QuantizeMap quantize; /* of an op without powers */
    NodeId greatest; /* of such an op: the node that is the greatest absolute value of each row */
    OnlinePath weights;  /* from the matmul's operand back to the power, without its division */
    OnlinePath exponent; /* from the power's argument back to the scores, without the shift */
} OnlineFound;

/* Why a matmul whose operand has exponentials along the contracted axis cannot become one op. */
typedef struct OnlineReason {
    const char *message, *help; /* NULL: its operand has none */
} OnlineReason;

/* Whether the matmul multiplies weights that are divided by their sum. All that makes the weights
 * must lie in `online` blocks; where the whole graph is rewritten, it may lie in the matmul's block
 * of kernels instead. */
bool online_find_product(const Builder *b, NodeId matmul, OnlineFound *found, OnlineReason *reason);
/* Whether the matmul multiplies rows that are divided by their greatest absolute value, and then
 * perhaps scaled, rounded, clamped and cast. *reason is left as it is where there is none. */
bool online_find_quantized(const Builder *b, NodeId matmul, OnlineFound *found,
                           OnlineReason *reason);
/* Whether `id` divides a matmul's result, to which views and casts may lead, by the sum of the
 * weights that the matmul multiplies. */
bool online_find_quotient(const Builder *b, NodeId id, OnlineFound *found, OnlineReason *reason);
/* The logarithm of a sum of exponentials in an `online` block, or the greatest absolute value. */
typedef struct OnlineLog {
    OpId op;       /* that finds it with a product */
    NodeId scores; /* the exponents, before a maximum is taken off */
    uint32_t axis; /* of the scores, along which the sum goes */
    bool
        is_taken; /* the scores less the logarithm; else the rows of `id` are those of the scores */
} OnlineLog;
/* Whether `id` is log(sum(e^x)), or m + log(sum(e^(x - m))), or x - m - log(sum(e^(x - m))), which
 * is x less the logarithm. m is the maximum of x. */
bool online_find_log(const Builder *b, NodeId id, OnlineLog *found);
/* The matmul whose result `id` divides or scales, to which views and casts lead; or NODE_NONE. */
NodeId online_quotient_of(const Graph *graph, NodeId id, uint32_t *arg);
/* The exponentials that the node sums; NODE_NONE: it does not. */
NodeId online_summed_powers(const Graph *graph, NodeId id);

#endif
