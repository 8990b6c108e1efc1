/* Softmax between two products by wgmma: the tiles of rows that a block takes. See wgmma_rows.h. */
#include "codegen/gpu_gemm/rows/wgmma_rows.h"
#include "machine/tuning.h"

#include <string.h>

static DimId n_tiles(const WgmmaRows *s) {
    DimTab *dims = lower_dims(s->lower);
    const Kernel *kernel = s->out_lower->kernel;
    DimId n = dim_ceil_div(dims, kernel_axis_extent(kernel, gemm_axis_m(kernel)), s->tiles.m);
    for (uint32_t axis = 0; axis < gemm_axis_m(kernel); axis++)
        n = dim_mul(dims, n, kernel_axis_extent(kernel, axis));
    return n;
}

/* The batches whose right operands the L2 cache holds together. Documents and the like see a part
 * of the keys, so there may be twice as many batches: the more there are, the more alike is the
 * work of blocks. */
static Val batches_at_once(const WgmmaRows *s) {
    const Codegen *k = s->k;
    uint32_t depth = s->has_scores ? s->lower->variant->sched.gemm.tile_k : 0;
    uint32_t columns = s->out_lower->variant->sched.gemm.tile_n;
    uint32_t row_bytes = GEMM_ROWS_GEMM_ELEM_BYTES * (depth + columns);
    uint32_t n_bytes = CODEGEN_ROWS_GEMM_L2_BYTES * (s->lower->kernel->bounds.n ? 2 : 1);
    Val n = k_index_cast(k, s->n_keys, k->i64);
    Val rows = k_udiv(k, k_i64(k, n_bytes / row_bytes), k_umax(k, n, k_i64(k, 1)));
    return k_index_cast(k, k_umax(k, rows, k_i64(k, 1)), s->lower->index_type);
}

/* Where masks hide tiles of columns, tiles of rows take different times. Groups of batches are
 * computed one after the other, and in a group the tiles of rows go from the last to the first:
 * under a causal mask the last rows see the most columns. index_type. */
typedef struct Groups {
    Val rows;    /* tiles of rows of a batch */
    Val batches; /* of all groups */
    Val size;    /* batches of a group; the last has what is left */
} Groups;

static Groups groups_of(const WgmmaRows *s) {
    const Codegen *k = s->k;
    Lower *lower = s->lower;
    DimTab *dims = lower_dims(lower);
    DimId across = dim_ceil_div(dims, kernel_axis_extent(lower->kernel, s->row_axis), s->tiles.m);
    Val one = lower_index_const(lower, 1), rows = k_umax(k, lower_dim(lower, across), one);
    Val batches = k_udiv(k, lower_dim(lower, n_tiles(s)), rows);
    Val size = k_umax(k, k_umin(k, batches_at_once(s), batches), one);
    return (Groups){rows, batches, size};
}

static Val batches_left(const WgmmaRows *s, const Groups *groups, Val first) {
    return k_umin(s->k, k_sub(s->k, groups->batches, first), groups->size);
}

/* The number of tile `at` of the group that begins with batch `first` and has `size` batches. */
static Val number_in_group(const WgmmaRows *s, const Groups *groups, Val first, Val size, Val at) {
    const Codegen *k = s->k;
    Val before = k_udiv(k, at, size); /* by itself: compilers order arguments as they like */
    Val row = k_sub(k, k_subi(k, groups->rows, 1), before);
    return k_mad(k, k_add(k, first, k_urem(k, at, size)), groups->rows, row);
}

Val wgmma_rows_number(const WgmmaRows *s, Val at) {
    const Codegen *k = s->k;
    if (!s->n_masks) return at;
    Groups groups = groups_of(s);
    Val in_all = k_mul(k, groups.size, groups.rows);
    Val first = k_mul(k, k_udiv(k, at, in_all), groups.size);
    Val size = batches_left(s, &groups, first);
    return number_in_group(s, &groups, first, size, k_urem(k, at, in_all));
}

/* A group takes rounds, in each of which every block has one tile, or none in the last. In every
 * second round the blocks go backwards: whoever has the longest tile of one has the shortest of the
 * next. */
static void each_tile_by_rounds(WgmmaRows *s, WgmmaRowsTileWork *work) {
    const Codegen *k = s->k;
    Groups groups = groups_of(s);
    Val n = gpu_index(s->lower, gpu_special(k, "nctaid.x")), block = gpu_block(s->lower);
    Val per_group = k_mul(k, groups.size, groups.rows);
    Val rounds = k_udiv(k, k_add(k, per_group, k_subi(k, n, 1)), n);
    Val n_groups = k_udiv(k, k_add(k, groups.batches, k_subi(k, groups.size, 1)), groups.size);
    Val ring[WGMMA_ROWS_RING] = {k_i32(k, 0), k_i32(k, 0), k_i32(k, 0)}, before[WGMMA_ROWS_RING];
    LLVMBasicBlockRef own = k_block(k, "own_tile"), next = k_block(k, "next_round");
    Loop loop = loop_over(k, k_mul(k, n_groups, rounds), 1);
    loop_carry(k, &loop, ring, WGMMA_ROWS_RING);
    memcpy(before, ring, sizeof before);
    Val first = k_mul(k, k_udiv(k, loop.index, rounds), groups.size);
    Val round = k_urem(k, loop.index, rounds), is_back = k_nei(k, k_andi(k, round, 1), 0);
    Val size = batches_left(s, &groups, first);
    Val in_round = k_select(k, is_back, k_sub(k, k_subi(k, n, 1), block), block);
    Val at = k_mad(k, round, n, in_round);
    LLVMBasicBlockRef here = k_here(k);
    k_cond_br(k, k_ult(k, at, k_mul(k, size, groups.rows)), own, next);
    k_goto(k, own);
    work(s, number_in_group(s, &groups, first, size, at), ring);
    LLVMBasicBlockRef worked = k_here(k);
    k_br(k, next);
    k_goto(k, next);
    for (uint32_t i = 0; i < WGMMA_ROWS_RING; i++)
        ring[i] = k_merge(k, before[i], here, ring[i], worked);
    loop_end(k, &loop);
}

/* The place (i32) after those of all tiles that blocks have taken. The launch adds one to the count
 * as often as there are tiles, `n` (i32) times, and the last time it wraps to 0. */
static Val take_place(const WgmmaRows *s, Val n) {
    const Codegen *k = s->k;
    const Lower *lower = s->lower;
    const Scalar *taken = scalar_get(lower->kernel->scalars, lower->kernel->tiles_taken);
    Val args[2] = {lower->pointers[lower_arg(lower, taken->buffer)], k_subi(k, n, 1)};
    Val before =
        k_asm(k, k->i32, "atom.global.inc.u32 $0, [$1], $2;", "=r,l,r,~{memory}", args, 2, true);
    return k_add(k, before, gpu_special(k, "nctaid.x"));
}

/* A thread of the producer gives the block its next tile: at first that of the block's number, then
 * the next one of all, so that no block is done long before another. -1: there are no more.
 * `is_later` (i32, a variable): whether the block has had one. */
static void give_tile(const WgmmaRows *s, const WgmmaRowsGiven *given, Val parity, Val is_later) {
    const Codegen *k = s->k;
    LLVMTypeRef type = s->lower->index_type;
    Val n = k_index_cast(k, lower_dim(s->lower, n_tiles(s)), k->i32);
    Val place = k_alloca(k, k->i32), number = k_alloca(k, type);
    If gives = if_begin(k, k_eqi(k, s->out.in_group, 0));
    wgmma_wait(&s->out, given->empty, k_xori(k, parity, 1));
    k_store(k, gpu_special(k, "ctaid.x"), place);
    If later = if_begin(k, k_nei(k, k_load(k, k->i32, is_later), 0));
    k_store(k, take_place(s, n), place);
    if_end(k, &later);
    k_store(k, k_i32(k, 1), is_later);
    k_store(k, k_int(type, -1), number);
    Val at = k_load(k, k->i32, place);
    If more = if_begin(k, k_ult(k, at, n));
    k_store(k, wgmma_rows_number(s, gpu_index(s->lower, at)), number);
    if_end(k, &more);
    k_store(k, k_load(k, type, number), given->number);
    gpu_mbarrier_arrive(k, given->full);
    if_end(k, &gives);
    gpu_warp_barrier(k);
}

/* The number of the block's next tile, which each warp reads. */
static Val given_tile(const WgmmaRows *s, const WgmmaRowsGiven *given, Val parity) {
    const Codegen *k = s->k;
    wgmma_wait(&s->out, given->full, parity);
    Val number = k_load(k, s->lower->index_type, given->number);
    gpu_warp_barrier(k);
    If one = if_begin(k, k_eqi(k, k_andi(k, s->out.thread, WARP_THREADS - 1), 0));
    gpu_mbarrier_arrive(k, given->empty);
    if_end(k, &one);
    return number;
}

static void each_given_tile(WgmmaRows *s, WgmmaRowsTileWork *work, bool is_producer) {
    const Codegen *k = s->k;
    Val ring[WGMMA_ROWS_RING], kept[WGMMA_ROWS_RING], is_later = k_alloca(k, k->i32);
    WgmmaRowsGiven given = wgmma_rows_given(s);
    LLVMBasicBlockRef take = k_block(k, "take_tile"), own = k_block(k, "own_tile");
    LLVMBasicBlockRef done = k_block(k, "no_tiles");
    k_store(k, k_i32(k, 0), is_later);
    for (uint32_t i = 0; i < WGMMA_ROWS_RING; i++) {
        kept[i] = k_alloca(k, k->i32);
        k_store(k, k_i32(k, 0), kept[i]);
    }
    k_branch(k, take);
    for (uint32_t i = 0; i < WGMMA_ROWS_RING; i++) ring[i] = k_load(k, k->i32, kept[i]);
    Val parity = ring[WGMMA_ROWS_RING - 1]; /* it changes with every tile of rows */
    if (is_producer) give_tile(s, &given, parity, is_later);
    Val number = given_tile(s, &given, parity);
    k_cond_br(k, k_eqi(k, number, -1), done, own);
    k_goto(k, own);
    work(s, number, ring);
    for (uint32_t i = 0; i < WGMMA_ROWS_RING; i++) k_store(k, ring[i], kept[i]);
    k_br(k, take);
    k_goto(k, done);
}

void wgmma_rows_each_tile(WgmmaRows *s, WgmmaRowsTileWork *work, bool is_producer) {
    const Codegen *k = s->k;
    if (wgmma_rows_counts_tiles(s)) {
        each_given_tile(s, work, is_producer);
        return;
    }
    if (s->n_masks) {
        each_tile_by_rounds(s, work);
        return;
    }
    Val ring[WGMMA_ROWS_RING] = {k_i32(k, 0), k_i32(k, 0), k_i32(k, 0)};
    Val step = gpu_index(s->lower, gpu_special(k, "nctaid.x"));
    Loop tiles = loop_begin_by(k, gpu_block(s->lower), lower_dim(s->lower, n_tiles(s)), step);
    loop_carry(k, &tiles, ring, WGMMA_ROWS_RING);
    work(s, tiles.index, ring);
    loop_end(k, &tiles);
}
