/* What nodes and kernels hold, as words. Two whose words are the same are alike in all that was
 * written. Keys made of them are compared where code is shared (launch/dedup.h) and where prices,
 * regions, trials and schedules are remembered (cost/price_memo.h, search/region_memo.h,
 * fuse/node_kinds.h, schedule/schedule.c). A list begins with its length, so that no key is the
 * beginning of another. Dims are written by id, because they are interned over the whole module. */
#ifndef FUSEC_PLAN_WORDS_H
#define FUSEC_PLAN_WORDS_H

#include "plan/plan.h"

typedef struct Words {
    Arena *arena; /* of `key` */
    VecU32 *key;
    const Kernel *kernel;    /* whose scalars are written */
    const uint32_t *numbers; /* per scalar of the kernel: its number in the key; NULL: its id */
    DimId from;              /* loads that begin here are written as if from DIM_NONE */
} Words;

static inline void words_put(Words *w, uint32_t word) {
    vec_push(w->arena, w->key, word);
}
void words_put_long(Words *w, uint64_t word);
void words_put_double(Words *w, double number);
void words_put_text(Words *w, const char *text, size_t n_bytes);
/* Four bytes a word, and zeros behind the last. */
void words_put_bytes(Words *w, const void *data, size_t n_bytes);

void words_put_shape(Words *w, const Shape *shape);
/* The node's op, dtype, shape and attributes, but not its arguments. */
void words_put_node(Words *w, const Node *node);

/* The number of a scalar of the kernel. */
static inline void words_put_scalar_id(Words *w, ScalarId id) {
    words_put(w, w->numbers ? w->numbers[id] : id);
}
void words_put_index(Words *w, IndexId id);
void words_put_guard(Words *w, GuardId id);
/* A scalar of the kernel, but neither its id nor what only prices read. */
void words_put_scalar(Words *w, const Scalar *s);
void words_put_stores(Words *w, const Store *stores, uint32_t n);
/* The kernel's reductions, but not how scans join elements. */
void words_put_reduces(Words *w);
/* The kernel's stages, and its stores of rows. */
void words_put_stages(Words *w);
/* The kernel's axes and their kinds. */
void words_put_axes(Words *w, const IndexTab *indices);
void words_put_predicate(Words *w, const Predicate *predicate);
void words_put_map(Words *w, const TensorMap *map);
void words_put_row_cache(Words *w, const Variant *variant);

#endif
