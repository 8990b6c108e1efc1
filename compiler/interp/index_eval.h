/* Index expressions with numbers put in for dims, so that they can be evaluated quickly for many
 * points of the loops: on the host, apart from lowering. */
#ifndef FUSEC_INTERP_INDEX_EVAL_H
#define FUSEC_INTERP_INDEX_EVAL_H

#include "ir/index.h"

typedef struct IndexCode IndexCode;

/* NULL when a dim overflows for these values of the symbols. */
const IndexCode *index_compile(Arena *arena, const IndexTab *tab, IndexId id,
                               const int64_t *symbol_values);

/* Where in the loops: a value per axis, and what the gathers read there. */
typedef struct IndexPoint {
    const int64_t *axes;
    int64_t (*value_at)(void *user, uint32_t scalar); /* of a ScalarId */
    void *user;
} IndexPoint;
int64_t index_eval(const IndexCode *code, const IndexPoint *point);

#endif
