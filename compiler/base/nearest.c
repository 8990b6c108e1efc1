/* See nearest.h. */
#include "base/nearest.h"

#include <stdbool.h>
#include <string.h>

enum { MAX_BYTES = 48 };

static unsigned least_of(unsigned a, unsigned b) {
    return a < b ? a : b;
}

/* The edits from `a` to `b`, both shorter than MAX_BYTES. The rows are those of the optimal string
 * alignment: row i has the edits from the first i letters of `a` to the first j of `b`. */
static unsigned count_edits(const char *a, const char *b) {
    unsigned rows[3][MAX_BYTES];
    size_t n_a = strlen(a), n_b = strlen(b);
    for (size_t i = 0; i <= n_a; i++) {
        unsigned *row = rows[i % 3], *above = rows[(i + 2) % 3], *swapped = rows[(i + 1) % 3];
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= n_b; j++) {
            row[j] = row[j - 1] + 1;
            if (i == 0) continue;
            row[j] =
                least_of(row[j], least_of(above[j] + 1, above[j - 1] + (a[i - 1] != b[j - 1])));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least_of(row[j], swapped[j - 2] + 1);
        }
    }
    return rows[n_a % 3][n_b];
}

Nearest nearest_to(const char *name) {
    size_t n = strlen(name);
    return (Nearest){.name = name,
                     .limit = n == 0 || n >= MAX_BYTES ? 0
                              : n < 3                  ? (unsigned)n
                                                       : (unsigned)n / 3 + 1};
}

void nearest_try(Nearest *nearest, const char *candidate) {
    size_t n = strlen(nearest->name);
    if (nearest->limit == 0 || strlen(candidate) >= MAX_BYTES) return;
    bool abbreviates = n > 1 && strncmp(nearest->name, candidate, n) == 0;
    unsigned n_edits = abbreviates ? 1 : count_edits(nearest->name, candidate);
    if (n_edits >= nearest->limit) return;
    nearest->best = candidate;
    nearest->limit = n_edits;
}
