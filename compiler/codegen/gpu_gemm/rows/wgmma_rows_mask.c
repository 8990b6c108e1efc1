/* Softmax between two products by wgmma: which tiles of columns masks hide. See wgmma_rows.h. */
#include "codegen/gpu_gemm/rows/wgmma_rows.h"

#include <math.h>

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

/* The score inside the masks, or SCALAR_NONE. */
static ScalarId inner_score(const WgmmaRows *s) {
    return s->n_masks ? s->masks[s->n_masks - 1].score : score_root(s);
}

/* Whether the value `root` needs a load that differs from column to column, or with `selects` a
 * select that does. */
static bool differs_by_column(const WgmmaRows *s, ScalarId root, bool selects) {
    const Kernel *kernel = s->lower->kernel;
    const bool *needed = kernel_needed_scalars(s->k->arena, kernel, &root, 1);
    for (ScalarId id = 1; id <= scalar_count(kernel->scalars); id++) {
        const Scalar *scalar = scalar_get(kernel->scalars, id);
        bool is_select = scalar->kind == SCALAR_PRIM && scalar->prim == PRIM_SELECT;
        bool counts = scalar->kind == SCALAR_LOAD || (selects && is_select);
        if (needed[id] && counts && scalar->axes & 1u << s->key_axis) return true;
    }
    return false;
}

/* Whether a score may be -infinity where no mask hides it: something beside the product differs
 * from key to key, such as a bias. A product of finite operands that overflows does not count. */
static bool may_hide(const WgmmaRows *s) {
    ScalarId score = inner_score(s);
    return !s->has_scores || !score || differs_by_column(s, score, true);
}

static void find_scale(WgmmaRows *s) {
    const ScalarTab *tab = s->lower->kernel->scalars;
    ScalarId root = inner_score(s);
    s->scale = 1;
    if (!s->has_scores || !root || scalar_get(tab, root)->kind != SCALAR_PRIM) return;
    const Scalar *product = scalar_get(tab, root);
    if (product->prim != PRIM_MUL) return;
    const Scalar *a = scalar_get(tab, product->args[0]), *b = scalar_get(tab, product->args[1]);
    const Scalar *number = a->kind == SCALAR_CONST ? a : b, *other = number == a ? b : a;
    int exponent;
    bool is_power = number->kind == SCALAR_CONST && frexp(number->number, &exponent) == 0.5;
    if (!is_power || other->kind != SCALAR_STAGE) return;
    s->scaled = root;
    s->scale = number->number;
    s->factor *= s->scale;
}

/* Whether a mask loads what varies along the columns. */
static bool loads_columns(const WgmmaRows *s) {
    for (uint32_t i = 0; i < s->n_masks; i++)
        if (differs_by_column(s, s->masks[i].shows, false)) return true;
    return false;
}

void wgmma_rows_find_masks(WgmmaRows *s) {
    s->n_masks = masks_find(s->lower->kernel->scalars, score_root(s), s->masks);
    s->may_hide = may_hide(s);
    s->looks_together = loads_columns(s);
    find_scale(s);
}

/* `n` positions from `first` (index_type) on, before `extent`. */
static MaskSpan positions(const WgmmaRows *s, Val first, uint32_t n, Val extent) {
    const Codegen *k = s->k;
    MaskSpan span = {.first = k_index_cast(k, first, k->i64), .most = n};
    Val last = k_addi(k, span.first, (int64_t)n - 1);
    span.last = k_smin(k, last, k_subi(k, k_index_cast(k, extent, k->i64), 1));
    return span;
}

/* Over the warp. */
static Val join_extremes(const Codegen *k, Val value, PrimId extreme) {
    const char *name =
        extreme == PRIM_MIN ? "llvm.nvvm.redux.sync.min" : "llvm.nvvm.redux.sync.max";
    return k_intrinsic_2(k, name, value, k_i32(k, -1));
}

void wgmma_rows_take_seen_rows(WgmmaRows *s) {
    Val lane = k_andi(s->k, s->out.thread, WARP_THREADS - 1);
    s->looking = (MaskThreads){.n = WARP_THREADS, .number = lane, .join = join_extremes};
    s->seen_rows = (MaskBox){.point = point_inside(&s->block.point),
                             .row_axis = s->row_axis,
                             .key_axis = s->key_axis,
                             .threads = &s->looking};
    s->seen_rows.rows = positions(s, s->block.m0, s->tiles.m, s->block.m);
    masks_take_rows(&s->seen_rows, s->masks, s->n_masks);
}

Seen wgmma_rows_seen(const WgmmaRows *s, Val column, bool are_apart) {
    const Codegen *k = s->k;
    if (!s->n_masks && s->is_whole) return (Seen){NULL, NULL};
    Val is_inside = k_ule(k, k_addi(k, column, s->width), s->n_keys);
    MaskBox box = s->seen_rows;
    if (are_apart) box.threads = NULL;
    box.keys = positions(s, column, s->width, s->n_keys);
    Seen seen = masks_seen(&box, s->masks, s->n_masks);
    seen.all = seen.all ? k_and(k, is_inside, seen.all) : is_inside;
    return seen;
}
