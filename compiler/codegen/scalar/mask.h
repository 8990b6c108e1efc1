/* Masks of softmax and product: whether a box of rows and keys is hidden, or seen as a whole.
 *
 * A mask is a select between a score and -infinity. Its predicate is evaluated over all rows and
 * keys of the box, by intervals of its integers. A value that varies along rows alone, or along
 * keys alone, such as the number of a document, is computed at each of them: its interval is from
 * the least to the greatest. A value that varies along both may be anything. */
#ifndef FUSEC_CODEGEN_SCALAR_MASK_H
#define FUSEC_CODEGEN_SCALAR_MASK_H

#include "codegen/scalar/point.h"

enum { MOST_MASKS = 8 };

/* A select between a score and -infinity. */
typedef struct Mask {
    ScalarId select, shows, score; /* `shows` is true, or with is_negated false, where the key is
                                    * seen */
    bool is_negated;
} Mask;

/* Finds the masks around the score that ends at `root`; the innermost last. `masks` has room for
 * MOST_MASKS. Returns their number. */
uint32_t masks_find(const ScalarTab *tab, ScalarId root, Mask *masks);

/* Whether the rows see no key of the box, or all: i1. NULL: there is no mask. */
typedef struct Seen {
    Val none, all;
} Seen;

/* Positions along an axis, i64, at least one and at most `most`. */
typedef struct MaskSpan {
    Val first, last;
    uint32_t most;
} MaskSpan;

/* An interval of integers (i64). lo NULL: nothing is known. `holds` (i1): whether the values lie in
 * it; NULL: they do. */
typedef struct MaskRange {
    Val lo, hi, holds;
} MaskRange;

/* Threads that look at a box together, each at some of its values. */
typedef struct MaskThreads {
    uint32_t n;
    Val number; /* i32: of this thread */
    /* The least or the greatest of the threads' values (i32). */
    Val (*join)(const Codegen *k, Val value, PrimId extreme);
} MaskThreads;

enum { MASK_MOST_KNOWN = 4 };
typedef struct MaskBox {
    Point point; /* its batch */
    uint32_t row_axis, key_axis;
    MaskSpan rows, keys;
    const MaskThreads *threads; /* NULL: one */
    /* The intervals of values that vary along the rows. */
    uint32_t n_known;
    ScalarId known[MASK_MOST_KNOWN];
    MaskRange ranges[MASK_MOST_KNOWN];
} MaskBox;

/* Computes the intervals of values that vary along the box's rows alone, once for all boxes of
 * these rows: copies of it with other keys. */
void masks_take_rows(MaskBox *box, const Mask *masks, uint32_t n);
Seen masks_seen(MaskBox *box, const Mask *masks, uint32_t n);

#endif
