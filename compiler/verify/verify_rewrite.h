/* Judging rewrites (plan/rewrite.h): compares a rewritten GEMM with the exact result and with the
 * result without the rewrite, both within the rewrite's bound. */
#ifndef FUSEC_VERIFY_VERIFY_REWRITE_H
#define FUSEC_VERIFY_VERIFY_REWRITE_H

#include "plan/rewrite.h"

typedef struct RewriteCounts {
    int64_t n_rows, n_elems; /* judged rows and elements; of large tensors only as many rows as take
                              * about a second */
    double worst;            /* largest share of its bound that an element used */
    bool is_unknown;         /* the host does not know the row's inputs: the values are a copy */
} RewriteCounts;

typedef struct RewriteValue {
    const uint8_t *actual; /* elements of the GEMM's result; NULL: evaluated on the host */
    const bool *is_there;  /* which elements are known; NULL: all */
    const uint8_t
        *plain; /* results of the program without the rewrite, from the same operands; or NULL */
} RewriteValue;

/* `report` gets a line if an element is wrong. Nothing stays on `scratch`. */
bool verify_rewrite(const RewriteCase *c, const RewriteValue *value, Arena *scratch,
                    RewriteCounts *counts, Text *report);

#endif
