/* Judging what was rewritten (plan/rewrite.h): a product of weights against the bound that its
 * rewrite is held to, beside the exact one and beside the one that is not rewritten. */
#ifndef FUSEC_VERIFY_VERIFY_REWRITE_H
#define FUSEC_VERIFY_VERIFY_REWRITE_H

#include "plan/rewrite.h"

typedef struct RewriteCounts {
    int64_t n_rows, n_elems; /* judged: of large tensors as many rows as take a second or so */
    double worst;            /* share of the bound that an element took */
    bool is_unknown;         /* what a row reads is not known to the host: a copy */
} RewriteCounts;

typedef struct RewriteValue {
    const uint8_t *actual; /* elements of the product; NULL: evaluated on the host */
    const bool *is_there;  /* which of them there are; NULL: all */
    const uint8_t
        *plain; /* of the program that is not rewritten, from the same operands; or NULL */
} RewriteValue;

/* What is wrong goes to `report`, a line. Nothing stays on `scratch`. */
bool verify_rewrite(const RewriteCase *c, const RewriteValue *value, Arena *scratch,
                    RewriteCounts *counts, Text *report);

#endif
