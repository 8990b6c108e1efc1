/* Index expressions with the values of dims substituted, for fast evaluation at many points of the
 * loops on the host. Independent of lowering. */
#ifndef FUSEC_INTERP_INDEX_EVAL_H
#define FUSEC_INTERP_INDEX_EVAL_H

#include "ir/index.h"

typedef struct IndexCode IndexCode;

/* NULL when a dim overflows for these values of the symbols. */
const IndexCode *index_compile(Arena *arena, const IndexTab *tab, IndexId id,
                               const int64_t *symbol_values);

/* A point of the loops: a value per axis, and the values that gathers read there. */
typedef struct IndexPoint {
    const int64_t *axes;
    int64_t (*value_at)(void *user, uint32_t scalar); /* value of a ScalarId */
    void *user;
} IndexPoint;
int64_t index_eval(const IndexCode *code, const IndexPoint *point);

#endif
