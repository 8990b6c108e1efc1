/* Masks of softmax and product (template/mask.h): whether a box of rows and keys is hidden, or seen
 * as a whole.
 *
 * The predicate of a mask is evaluated over all rows and keys of the box, by intervals of its
 * integers. A value that varies along rows alone, or along keys alone, such as the number of a
 * document, has an interval from its least to its greatest. Kernel.bounds has those of keys on a
 * GPU; the others are computed from the value at each position. A value that varies along both may
 * be anything. */
#ifndef FUSEC_CODEGEN_SCALAR_MASK_H
#define FUSEC_CODEGEN_SCALAR_MASK_H

#include "codegen/scalar/point.h"
#include "template/mask.h"

/* Whether the rows see no key of the box, or all: i1. NULL: there is no mask. */
typedef struct Seen {
    Val none, all;
} Seen;

/* Positions along an axis, i64, at least one and at most `most`. */
typedef struct MaskSpan {
    Val first, last;
    uint32_t most;
} MaskSpan;

/* An interval of integers (i64), of a bool of 0 and 1. lo NULL: nothing is known. `holds` (i1):
 * whether the values lie in it; NULL: they do. */
typedef struct MaskRange {
    Val lo, hi, holds;
} MaskRange;

/* The threads that look at the rows of a box, each at some of them. */
typedef struct MaskThreads {
    uint32_t n;
    Val number; /* i32: of this thread */
    /* The least or the greatest of the threads' values (i32 or i64). */
    Val (*join)(const Codegen *k, Val value, PrimId extreme);
} MaskThreads;

enum { MASK_MOST_KNOWN = 4 };
typedef struct MaskBox {
    Point point; /* its batch */
    uint32_t row_axis, key_axis;
    MaskSpan rows;
    MaskSpan keys; /* with threads: all in one block of ONLINE_BLOCK keys */
    /* NULL: one thread looks at the rows, and at keys whose values have no bounds. */
    const MaskThreads *threads;
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
