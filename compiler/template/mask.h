/* Masks of softmax and product: where a kernel's program has them, and the values by which they
 * hide keys.
 *
 * A mask is a select between a score and -infinity. Its predicate joins comparisons of integers by
 * and, or, not. The integers are indices, constants, and other values such as the number of a
 * document, and sums of these. */
#ifndef FUSEC_TEMPLATE_MASK_H
#define FUSEC_TEMPLATE_MASK_H

#include "plan/plan.h"

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

/* The kernel whose program makes the scores of an online kernel, its axes of rows and keys, and
 * where its program of scores ends. SCALAR_NONE: the online kernel's exponents are not these
 * scores, so a key of the score -infinity may have a weight. */
typedef struct ScoreProgram {
    const Kernel *kernel;
    uint32_t row_axis, key_axis;
    ScalarId root;
} ScoreProgram;
/* `scores`: the matmul in the launch of `online`, or NULL. */
ScoreProgram score_program(const Kernel *scores, const Kernel *online);

/* What the interval of a part of a predicate follows from. */
typedef enum {
    MASK_NUMBER, /* its value, or as an index that of its terms */
    MASK_WIDER,  /* the interval of its argument, which is narrower */
    MASK_SUM,    /* the intervals of both arguments: a sum or a difference */
    MASK_JOINED, /* its arguments: and, or, not, or a comparison of integers */
    MASK_VALUE,  /* an integer, or a bool that is no MASK_JOINED: its values along an axis */
    MASK_UNKNOWN /* nothing */
} MaskPart;
MaskPart mask_part(const ScalarTab *tab, ScalarId id);

/* Calls visit for each MASK_VALUE of the predicate. */
typedef void MaskVisitor(void *user, ScalarId id);
void mask_each_value(const ScalarTab *tab, ScalarId predicate, MaskVisitor *visit, void *user);

#endif
