/* Softmax between two products by wgmma: which tiles of columns masks hide. See wgmma_rows.h. */
#include "codegen/gpu_gemm/rows/wgmma_rows.h"

/* Where the scores' program ends. SCALAR_NONE: the rows' exponents are not the scores, so a hidden
 * score may have a weight. */
static ScalarId score_root(const WgmmaRows *s) {
    const ScalarTab *rows = s->out_lower->kernel->scalars;
    ScalarId id = s->exponent;
    if (!s->has_scores) return id;
    while (scalar_get(rows, id)->kind == SCALAR_CVT) id = scalar_get(rows, id)->args[0];
    return scalar_get(rows, id)->kind == SCALAR_LOAD ? s->lower->kernel->row_stores.data[0].value
                                                     : SCALAR_NONE;
}

void wgmma_rows_find_masks(WgmmaRows *s) {
    s->n_masks = masks_find(s->lower->kernel->scalars, score_root(s), s->masks);
}

/* `n` positions from `first` (index_type) on, before `extent`. */
static MaskSpan positions(const WgmmaRows *s, Val first, uint32_t n, Val extent) {
    const Codegen *k = s->k;
    MaskSpan span = {.first = k_index_cast(k, first, k->i64)};
    Val last = k_addi(k, span.first, (int64_t)n - 1);
    span.last = k_smin(k, last, k_subi(k, k_index_cast(k, extent, k->i64), 1));
    return span;
}

Seen wgmma_rows_seen(const WgmmaRows *s, Val column) {
    const Codegen *k = s->k;
    if (!s->n_masks && s->is_whole) return (Seen){NULL, NULL};
    Val is_inside = k_ule(k, k_addi(k, column, s->width), s->n_keys);
    MaskBox box = {
        .point = point_inside(&s->block.point), .row_axis = s->row_axis, .key_axis = s->key_axis};
    box.rows = positions(s, s->block.m0, s->tiles.m, s->block.m);
    box.keys = positions(s, column, s->width, s->n_keys);
    Seen seen = masks_seen(&box, s->masks, s->n_masks);
    seen.all = seen.all ? k_and(k, is_inside, seen.all) : is_inside;
    return seen;
}
