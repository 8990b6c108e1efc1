/* Softmax between two products by wgmma: which tiles of columns masks hide. See wgmma_rows.h. */
#include "codegen/gpu_gemm/rows/wgmma_rows.h"

#include <math.h>

/* Where the scores' program ends, or SCALAR_NONE. */
static ScalarId score_root(const WgmmaRows *s) {
    const Kernel *scores = s->has_scores ? s->lower->kernel : NULL;
    return score_program(scores, s->out_lower->kernel).root;
}

/* The score inside the masks, or SCALAR_NONE. */
static ScalarId inner_score(const WgmmaRows *s) {
    return s->n_masks ? s->masks[s->n_masks - 1].score : score_root(s);
}

/* Whether the value `root` needs a load or a select that differs from column to column. */
static bool differs_by_column(const WgmmaRows *s, ScalarId root) {
    const Kernel *kernel = s->lower->kernel;
    const bool *needed = kernel_needed_scalars(s->k->arena, kernel, &root, 1);
    for (ScalarId id = 1; id <= scalar_count(kernel->scalars); id++) {
        const Scalar *scalar = scalar_get(kernel->scalars, id);
        bool is_select = scalar->kind == SCALAR_PRIM && scalar->prim == PRIM_SELECT;
        bool counts = scalar->kind == SCALAR_LOAD || is_select;
        if (needed[id] && counts && scalar->axes & 1u << s->key_axis) return true;
    }
    return false;
}

/* Whether a score may be -infinity where no mask hides it: something beside the product differs
 * from key to key, such as a bias. A product of finite operands that overflows does not count. */
static bool may_hide(const WgmmaRows *s) {
    ScalarId score = inner_score(s);
    return !s->has_scores || !score || differs_by_column(s, score);
}

/* Whether a mask's condition reads the score. */
static bool masks_read(const WgmmaRows *s, ScalarId score) {
    for (uint32_t i = 0; i < s->n_masks; i++)
        if (kernel_needed_scalars(s->k->arena, s->lower->kernel, &s->masks[i].shows, 1)[score])
            return true;
    return false;
}

/* A power of two by which the products are multiplied joins the factor of the exponents, if nobody
 * else reads the scaled score. */
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
    if (!is_power || other->kind != SCALAR_STAGE || masks_read(s, root)) return;
    s->scaled = root;
    s->scale = number->number;
    s->factor *= s->scale;
}

void wgmma_rows_find_masks(WgmmaRows *s) {
    s->n_masks = masks_find(s->lower->kernel->scalars, score_root(s), s->masks);
    s->may_hide = may_hide(s);
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
    bool is_min = extreme == PRIM_MIN;
    if (LLVMTypeOf(value) == k->i32)
        return k_intrinsic_2(k, is_min ? "llvm.nvvm.redux.sync.min" : "llvm.nvvm.redux.sync.max",
                             value, k_i32(k, -1));
    for (uint32_t offset = 1; offset < WARP_THREADS; offset *= 2) {
        Val other = gpu_shuffle_xor(k, value, offset);
        value = is_min ? k_smin(k, value, other) : k_smax(k, value, other);
    }
    return value;
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

Seen wgmma_rows_seen(const WgmmaRows *s, Val column) {
    const Codegen *k = s->k;
    if (!s->n_masks && s->is_whole) return (Seen){NULL, NULL};
    Val is_inside = k_ule(k, k_addi(k, column, s->width), s->n_keys);
    MaskBox box = s->seen_rows;
    box.keys = positions(s, column, s->width, s->n_keys);
    Seen seen = masks_seen(&box, s->masks, s->n_masks);
    seen.all = seen.all ? k_and(k, is_inside, seen.all) : is_inside;
    return seen;
}

SeenTiles wgmma_rows_seen_tiles(const WgmmaRows *s, Val column) {
    const Codegen *k = s->k;
    Val lane = k_andi(k, s->out.thread, WARP_THREADS - 1);
    Val own = k_madi(k, gpu_index(s->lower, lane), s->width, column);
    Seen seen = wgmma_rows_seen(s, own);
    Val some = k_slt(k, own, s->keys.end);
    if (seen.none) some = k_and(k, some, k_not(k, seen.none));
    some = gpu_threads_of_warp(k, some);
    return (SeenTiles){some, gpu_threads_of_warp(k, seen.all)};
}

Val wgmma_rows_first_seen(const WgmmaRows *s, Val some) {
    const Codegen *k = s->k;
    Val rest = k_and(k, some, k_subi(k, some, 1));
    Val below = k_subi(k, k_xor(k, some, rest), 1);
    return k_asm(k, k->i32, "popc.b32 $0, $1;", "=r,r", &below, 1, false);
}
