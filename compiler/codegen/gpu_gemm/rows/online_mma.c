/* Softmax between two products by mma.sync: an online kernel, alone or with the matmul that makes
 * its scores. Rows, masks and weights are those of wgmma_rows.h: what an mma leaves in a thread are
 * 16 rows of a warp in the same places.
 *
 * A block has a tile of rows, 16 for each warp, from its first key to its last. A warp has its
 * rows' scores for the 128 keys of a block of the recurrence, which become the lhs of the second
 * product in their registers. Shared memory has the scores' lhs and two buffers:
 *
 *     scores = lhs rhs^T        from the first buffer    the second is filled with values
 *     weights
 *     result += weights values  from the second          the first is filled with the next rhs
 *
 * 0 times an infinity or a NaN is NaN. So a block has met such values of hidden keys if one of its
 * sums is NaN in the end. Then it begins again, and takes each value as wgmma_rows_hidden.c does.
 */
#include "codegen/gpu_gemm/mma_tile.h"
#include "codegen/gpu_gemm/rows/wgmma_rows.h"

enum { SHARED_ALIGN_BYTES = 128 };

typedef struct OnlineMma {
    WgmmaRows rows;
    const Codegen *k;
    MmaTile scores, out;
    MmaOperand left, right, values;
    uint32_t n_steps;                 /* of the scores' k */
    Val left_at, right_at, values_at; /* shared memory */
    Val first;                        /* index_type: the first key of the tile, a variable */
    Val repeats; /* i32, a variable: the block takes its tiles once more, as values that are not
                  * finite may be hidden */
} OnlineMma;

/* Setting up. */

static void place_shared(OnlineMma *o) {
    const WgmmaRows *s = &o->rows;
    const Codegen *k = o->k;
    const Sched *result = &s->out_lower->variant->sched;
    const Sched *scores = s->has_scores ? &s->lower->variant->sched : NULL;
    uint32_t left = scores ? gemm_rows_gemm_left_bytes(scores) : 0;
    uint32_t buffer = scores ? gemm_rows_gemm_buffer_bytes(scores, result) : 0;
    uint32_t n_bytes = online_mma_shared_bytes(scores, result);
    o->left_at = gpu_tiles(s->lower, n_bytes, SHARED_ALIGN_BYTES);
    o->right_at = k_byte(k, o->left_at, k_i32(k, left));
    o->values_at = k_byte(k, o->left_at, k_i32(k, left + buffer));
    o->out.shared = o->left_at;
}

static void init_scores(OnlineMma *o) {
    const WgmmaRows *s = &o->rows;
    const Reduce *reduce = &s->lower->kernel->reduces.data[0];
    ScalarId roots[2] = {reduce->lhs, reduce->rhs};
    GemmBlock block = s->block;
    int64_t axis_k = dim_hi(lower_dims(s->lower), kernel_n_reduced(s->lower->kernel));
    gpu_gemm_prepare_batch(&block, roots, 2);
    mma_tile_init(&o->scores, &block);
    mma_operand_init(&o->left, &o->scores.block, true, 0);
    mma_operand_init(&o->right, &o->scores.block, false, 0);
    mma_tile_aim(&o->scores, &o->left);
    mma_tile_aim(&o->scores, &o->right);
    o->n_steps = (uint32_t)((axis_k + GEMM_ROWS_GEMM_PAD_K - 1) / GEMM_ROWS_GEMM_PAD_K *
                            GEMM_ROWS_GEMM_PAD_K / GEMM_ROWS_GEMM_STEP);
}

static void init_out(OnlineMma *o) {
    const WgmmaRows *s = &o->rows;
    GemmBlock block = s->out_block;
    gpu_gemm_prepare_batch(&block, &s->out_lower->kernel->reduces.data[0].rhs, 1);
    mma_tile_init(&o->out, &block);
    mma_operand_init(&o->values, &o->out.block, false, 0);
    mma_tile_aim(&o->out, &o->values);
}

static void init(OnlineMma *o, Lower *lowers) {
    WgmmaRows *s = &o->rows;
    o->k = lowers->k;
    wgmma_rows_open(s, lowers);
    s->out = (Wgmma){.lower = s->out_lower, .k = o->k, .sched = &s->out_lower->variant->sched};
    s->out.tiles = gpu_gemm_tiles(s->out_lower, s->out.sched->gemm.tile_m);
    wgmma_place_thread(&s->out);
    wgmma_rows_take_tile(s, wgmma_rows_number(s, gpu_block(s->lower)));
    wgmma_rows_make_variables(s);
    wgmma_rows_begin(s);
    o->first = k_alloca(o->k, s->lower->index_type);
    o->repeats = k_alloca(o->k, o->k->i32);
    k_store(o->k, k_i32(o->k, 0), o->repeats);
    if (s->has_scores) init_scores(o);
    init_out(o);
    place_shared(o);
}

/* Fetching tiles. */

static void fetch(MmaOperand *operand, Val k0, Val to) {
    mma_operand_fetch(operand, k0, to);
    gpu_copies_commit(operand->k);
    mma_operand_put(operand, to);
}

static void fetch_right(OnlineMma *o, Val first) {
    if (!o->rows.has_scores) return;
    mma_operand_move(&o->right, first);
    fetch(&o->right, lower_index_const(o->rows.lower, 0), o->right_at);
}

/* Waits until all fetched tiles have arrived and all threads have finished with the buffers. */
static void meet(const OnlineMma *o) {
    gpu_copies_wait(o->k, 0);
    gpu_barrier(o->k);
}

/* Products. */

static void multiply_scores(OnlineMma *o) {
    const WgmmaRows *s = &o->rows;
    MmaTile *scores = &o->scores;
    MmaFragments fragments;
    if (!s->has_scores) return;
    for (uint32_t i = 0; i < scores->n_accs; i++) scores->accs[i] = k_number(o->k, DT_F32, 0);
    for (uint32_t step = 0; step < o->n_steps; step++) {
        MmaStep of = {.step = step, .k0 = lower_index_const(s->lower, 0)};
        mma_tile_load(scores, &o->right, o->right_at, of, fragments.right);
        mma_tile_load(scores, &o->left, o->left_at, of, fragments.left);
        mma_tile_multiply(scores, &fragments);
    }
    for (uint32_t i = 0; i < scores->n_accs; i++) k_store(o->k, scores->accs[i], s->scores[i]);
}

/* Adds the product of the weights to the sums. is_finite: other values count as 0. */
static void multiply_weights(OnlineMma *o, bool is_finite) {
    const WgmmaRows *s = &o->rows;
    const Codegen *k = o->k;
    MmaFragments fragments;
    for (uint32_t i = 0; i < o->out.n_accs; i++) o->out.accs[i] = k_load(k, k->f32, s->sums[i]);
    for (uint32_t step = 0; step < s->width / GEMM_ROWS_GEMM_STEP; step++) {
        MmaStep of = {.step = step, .k0 = lower_index_const(s->lower, 0)};
        mma_tile_load(&o->out, &o->values, o->values_at, of, fragments.right);
        for (uint32_t i = 0; i < o->out.n_n * 2 && is_finite; i++)
            fragments.right[i] = wgmma_rows_finite(s, fragments.right[i]);
        for (uint32_t i = 0; i < FRAGMENT_REGISTERS; i++)
            fragments.left[i] = k_load(k, k->i32, s->weights[step * FRAGMENT_REGISTERS + i]);
        mma_tile_multiply(&o->out, &fragments);
    }
    for (uint32_t i = 0; i < o->out.n_accs; i++) k_store(k, o->out.accs[i], s->sums[i]);
}

static Val is_repeated(const OnlineMma *o) {
    return k_nei(o->k, k_load(o->k, o->k->i32, o->repeats), 0);
}

static Val value_place(const OnlineMma *o, Val key, Val column) {
    return k_byte(o->k, o->values_at, mma_operand_element(&o->values, column, key));
}

static Val pair_at(const void *user, Val key, Val column) {
    const OnlineMma *o = user;
    bool are_neighbours = o->values.is_mn_major;
    Val first = value_place(o, key, column);
    Val second = are_neighbours ? first : value_place(o, key, k_addi(o->k, column, 1));
    return wgmma_rows_pair(o->k, first, second, are_neighbours);
}

static void multiply_seen(OnlineMma *o) {
    const Codegen *k = o->k;
    LLVMBasicBlockRef infinite = k_block(k, "infinite"), first = k_block(k, "first");
    LLVMBasicBlockRef after = k_block(k, "multiplied");
    k_cond_br(k, is_repeated(o), infinite, first);
    k_goto(k, infinite);
    wgmma_rows_add_infinite(&o->rows, pair_at, o);
    multiply_weights(o, true);
    k_br(k, after);
    k_goto(k, first);
    multiply_weights(o, false);
    k_br(k, after);
    k_goto(k, after);
}

/* The tiles. */

/* The first tile from `column` (index_type) on that some row sees, or where the keys end. */
static Val next_seen(OnlineMma *o, Val column) {
    const WgmmaRows *s = &o->rows;
    const Codegen *k = o->k;
    LLVMTypeRef index_type = s->lower->index_type;
    if (!s->n_masks) return column;
    LLVMBasicBlockRef look = k_block(k, "look"), step = k_block(k, "step");
    LLVMBasicBlockRef found = k_block(k, "found"), after = k_block(k, "after");
    k_store(k, column, o->first);
    k_branch(k, look);
    Val at = k_load(k, index_type, o->first), some = wgmma_rows_seen_tiles(s, at).some;
    k_cond_br(k, k_nei(k, some, 0), found, step);
    k_goto(k, step);
    Val next = k_addi(k, at, (int64_t)WARP_THREADS * s->width);
    k_store(k, next, o->first);
    k_cond_br(k, k_ult(k, next, s->keys.end), look, after);
    k_goto(k, found);
    Val number = gpu_index(s->lower, wgmma_rows_first_seen(s, some));
    k_store(k, k_madi(k, number, s->width, at), o->first);
    k_br(k, after);
    k_goto(k, after);
    return k_load(k, index_type, o->first);
}

static void take_tile(OnlineMma *o, Val column) {
    WgmmaRows *s = &o->rows;
    RowMost rows[WGMMA_ROWS_OF_THREAD];
    meet(o);
    fetch(&o->values, column, o->values_at);
    multiply_scores(o);
    wgmma_rows_make_exponents(s, column, wgmma_rows_seen(s, column).all);
    If repeated = if_begin(o->k, is_repeated(o));
    wgmma_rows_note_seen(s);
    if_end(o->k, &repeated);
    wgmma_rows_shift(s, rows);
    wgmma_rows_weigh(s, column, rows);
    Val next = next_seen(o, k_addi(o->k, column, s->width));
    meet(o);
    fetch_right(o, next);
    multiply_seen(o);
    k_store(o->k, next, o->first);
}

static void take_tiles(OnlineMma *o) {
    const WgmmaRows *s = &o->rows;
    const Codegen *k = o->k;
    LLVMBasicBlockRef head = k_block(k, "tiles"), body = k_block(k, "tile");
    LLVMBasicBlockRef done = k_block(k, "summed");
    Val first = next_seen(o, s->keys.begin);
    if (s->has_scores) fetch(&o->left, lower_index_const(s->lower, 0), o->left_at);
    fetch_right(o, first);
    k_store(k, first, o->first);
    k_branch(k, head);
    Val column = k_load(k, s->lower->index_type, o->first);
    k_cond_br(k, k_ult(k, column, s->keys.end), body, done);
    k_goto(k, body);
    take_tile(o, column);
    k_br(k, head);
    k_goto(k, done);
}

/* Whether a thread of the block has a NaN among its sums: i1. The buffers are free. */
static Val has_nan(const OnlineMma *o) {
    const WgmmaRows *s = &o->rows;
    const Codegen *k = o->k;
    Val sums[WGMMA_ROWS_MOST_SUMS];
    for (uint32_t i = 0; i < s->n_sums; i++) sums[i] = k_load(k, k->f32, s->sums[i]);
    If first = if_begin(k, k_eqi(k, s->out.thread, 0));
    k_store(k, k_i32(k, 0), o->values_at);
    if_end(k, &first);
    gpu_barrier(k);
    If some = if_begin(k, online_has_nan(k, sums, s->n_sums));
    k_store(k, k_i32(k, 1), o->values_at);
    if_end(k, &some);
    gpu_barrier(k);
    Val any = k_load(k, k->i32, o->values_at);
    gpu_barrier(k);
    return k_nei(k, any, 0);
}

/* Takes the tiles, and again if they have hidden values that are not finite. */
static void take_all(OnlineMma *o) {
    const Codegen *k = o->k;
    LLVMBasicBlockRef begin = k_block(k, "begin"), repeat = k_block(k, "repeat");
    LLVMBasicBlockRef done = k_block(k, "taken");
    k_branch(k, begin);
    wgmma_rows_reset(&o->rows);
    take_tiles(o);
    meet(o);
    Val is_first = k_not(k, is_repeated(o));
    k_cond_br(k, k_and(k, is_first, has_nan(o)), repeat, done);
    k_goto(k, repeat);
    k_store(k, k_i32(k, 1), o->repeats);
    k_br(k, begin);
    k_goto(k, done);
}

static void emit(Lower *lowers) {
    const Codegen *k = lowers->k;
    OnlineMma *o = arena_array(k->arena, OnlineMma, 1);
    init(o, lowers);
    take_all(o);
    wgmma_rows_end(&o->rows);
    for (uint32_t i = 0; i < o->out.n_accs; i++)
        o->out.accs[i] = k_load(k, k->f32, o->rows.sums[i]);
    mma_tile_epilogue(&o->out);
}

void emit_gpu_online_mma(Lower *lower) {
    emit(lower);
}

void emit_gpu_gemm_online_mma(Lower *lowers) {
    emit(lowers);
}
