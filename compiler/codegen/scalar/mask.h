/* Masks of softmax and product: whether a box of rows and keys is hidden, or seen as a whole.
 *
 * A mask is a select between a score and -infinity. Its predicate is evaluated over all rows and
 * keys of the box, by intervals of its integers. A value loaded at a place that depends on neither
 * is known; other values may be anything. */
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

/* Positions along an axis, i64. */
typedef struct MaskSpan {
    Val first, last;
} MaskSpan;

typedef struct MaskBox {
    Point point; /* its batch */
    uint32_t row_axis, key_axis;
    MaskSpan rows, keys;
} MaskBox;

Seen masks_seen(MaskBox *box, const Mask *masks, uint32_t n);

#endif
