/* Gemm-rows-gemm launches such as attention, tile by tile. See template/gemm_rows_gemm.h.
 *
 * While one tile of scores is computed, the next tile of the scores' rhs is copied to the other
 * buffer. In the last pass, the other buffer is for the second GEMM's rhs, and both are fetched
 * half an iteration ahead. */
#include "codegen/gpu_gemm/rows/gemm_rows_gemm.h"

enum { SHARED_ALIGN_BYTES = 128 };

/* Setting up. */

static const Store *score_store(const GemmRowsGemm *s) {
    return &s->lower->kernel->row_stores.data[0];
}

static const Stage *last_stage(const GemmRowsGemm *s) {
    return &s->rows_kernel->stages.data[s->rows_kernel->stages.n - 1];
}

/* Whether the row kernel uses the column index for anything but loading its scores. */
static bool asks_column(const GemmRowsGemm *s) {
    const Kernel *kernel = s->rows_kernel;
    const bool *live = kernel_live_scalars(s->k->arena, kernel);
    for (ScalarId id = 1; id <= scalar_count(kernel->scalars); id++) {
        const Scalar *scalar = scalar_get(kernel->scalars, id);
        bool is_score = scalar->kind == SCALAR_LOAD && scalar->buffer == score_store(s)->buffer;
        bool asks = scalar->kind == SCALAR_LOAD || scalar->kind == SCALAR_INDEX ||
                    scalar->kind == SCALAR_INSIDE;
        if (live[id] && asks && !is_score && (scalar->axes >> kernel->first_reduced & 1))
            return true;
    }
    return false;
}

/* The blocks of both GEMMs have the same rows; the scores' tile begins at column 0. */
static void make_tiles(GemmRowsGemm *s) {
    Lower *lower = s->lower, *out_lower = s->out_lower;
    const Sched *sched = &lower->variant->sched;
    GemmTiles tiles = gpu_gemm_tiles(lower, sched->gemm.tile_m);
    tiles.across = dim_const(lower_dims(lower), 1);
    s->is_whole = tiles.is_whole;
    GemmTiles out_tiles = gpu_gemm_tiles(out_lower, sched->gemm.tile_m);
    Val number = gpu_block(lower);
    GemmBlock block = gpu_gemm_block_at(lower, number, &tiles);
    GemmBlock out_block = gpu_gemm_block_at(out_lower, number, &out_tiles);
    const Reduce *reduce = &lower->kernel->reduces.data[0];
    ScalarId roots[2] = {reduce->lhs, reduce->rhs};
    gpu_gemm_prepare_batch(&block, roots, 2);
    gpu_gemm_prepare_batch(&out_block, &out_lower->kernel->reduces.data[0].rhs, 1);
    mma_tile_init(&s->scores, &block);
    mma_tile_init(&s->out, &out_block);
    mma_operand_init(&s->left, &s->scores.block, true, 0);
    mma_operand_init(&s->right, &s->scores.block, false, 0);
    mma_operand_init(&s->values, &s->out.block, false, 0);
    mma_tile_aim(&s->scores, &s->left);
    mma_tile_aim(&s->scores, &s->right);
    mma_tile_aim(&s->out, &s->values);
}

static void place_shared(GemmRowsGemm *s) {
    const Sched *scores = &s->lower->variant->sched, *result = &s->out_lower->variant->sched;
    uint32_t n_bytes = gemm_rows_gemm_shared_bytes(scores, result);
    uint32_t least = mma_tile_epilogue_bytes(&s->out);
    s->fixed = gpu_tiles(s->lower, n_bytes > least ? n_bytes : least, SHARED_ALIGN_BYTES);
    s->out.shared = s->fixed;
    s->buffers = k_byte(s->k, s->fixed, k_i32(s->k, gemm_rows_gemm_left_bytes(scores)));
    s->buffer_bytes = gemm_rows_gemm_buffer_bytes(scores, result);
    s->read = k_i32(s->k, 0);
}

/* The matrix row of the thread's row `r`. A row past the end repeats the last row, and its results
 * are not stored. */
static Val row_of_thread(const GemmRowsGemm *s, uint32_t r) {
    const GemmBlock *block = &s->scores.block;
    const Codegen *k = s->k;
    const Sched *sched = s->scores.sched;
    Val row = k_muli(k, s->scores.warp_m, sched->gemm.tile_m / sched->gemm.warps_m);
    Val lane = gpu_fragment_row(k, k_andi(k, block->thread, WARP_THREADS - 1));
    row = k_addi(k, k_add(k, row, lane), (int64_t)r * PAIR_ROWS);
    row = k_add(k, block->m0, gpu_index(s->lower, row));
    if (gpu_gemm_axis_is_multiple(s->lower, gemm_axis_m(s->lower->kernel), sched->gemm.tile_m))
        return row;
    Val exists = k_ult(k, row, block->m);
    Val last = k_subi(k, block->m, 1);
    return k_select(k, exists, row, last);
}

static void make_row(GemmRowsGemm *s, uint32_t r) {
    const GemmBlock *block = &s->scores.block;
    const Kernel *kernel = s->lower->kernel;
    const Codegen *k = s->k;
    Val row = row_of_thread(s, r), number = row;
    s->score_rows[r] = point_inside(&block->point);
    s->score_rows[r].lanes = PAIR;
    s->score_rows[r].lane_axis = gemm_axis_n(kernel);
    s->score_rows[r].axis[gemm_axis_m(kernel)] = row;
    point_prepare(&s->score_rows[r], &score_store(s)->value, 1, 1u << gemm_axis_n(kernel));
    if (block->batch) {
        number = k_mad(k, block->batch, block->m, row);
    }
    s->rows[r] = point_new(s->rows_lower, PAIR * s->group);
    s->rows[r].lane_axis = s->rows_kernel->first_reduced;
    lower_split(s->rows_lower, number, 0, s->rows_kernel->n_parallel, &s->rows[r]);
}

static void gemm_rows_gemm_init(GemmRowsGemm *s, Lower *lowers) {
    Lower *lower = lowers;
    const Sched *sched = &lower->variant->sched;
    DimTab *dims = lower_dims(lower);
    *s = (GemmRowsGemm){
        .lower = lower, .k = lower->k, .rows_lower = lowers + 1, .out_lower = lowers + 2};
    s->rows_kernel = s->rows_lower->kernel;
    make_tiles(s);
    place_shared(s);
    int64_t axis_k = dim_hi(dims, kernel_n_reduced(lower->kernel));
    s->n_steps = (uint32_t)((axis_k + GEMM_ROWS_GEMM_PAD_K - 1) / GEMM_ROWS_GEMM_PAD_K *
                            GEMM_ROWS_GEMM_PAD_K / GEMM_ROWS_GEMM_STEP);
    s->width = sched->gemm.tile_n;
    s->n_pairs = s->scores.n_n;
    s->n_rows = s->scores.n_m * 2;
    s->group = asks_column(s) ? 1 : s->n_pairs < GROUP_PAIRS ? s->n_pairs : GROUP_PAIRS;
    s->n_groups = s->n_pairs / s->group;
    s->period = reduce_order(s->rows_kernel->form, s->k->target->device).n_chains / s->width;
    s->n_levels = 1;
    while (1u << (s->n_levels - 1) < s->period) s->n_levels++;
    if (s->n_rows > MAX_ROWS || s->n_pairs > MAX_PAIRS || s->n_levels > MAX_LEVELS)
        ice(s->k->arena, "a gemm-rows-gemm launch of tiles of %u columns", s->width);
    s->n_tiles = lower_dim(lower, dim_ceil_div(dims, kernel_n_reduced(s->rows_kernel), s->width));
    s->column = gpu_index(lower, gpu_fragment_column(s->k, s->scores.block.thread));
    for (uint32_t r = 0; r < s->n_rows; r++) make_row(s, r);
}

/* Fetching tiles. */

static Val buffer_at(const GemmRowsGemm *s, Val offset) {
    return k_byte(s->k, s->buffers, offset);
}

Val gemm_rows_gemm_other_buffer(const GemmRowsGemm *s, Val offset) {
    return k_xori(s->k, offset, s->buffer_bytes);
}

static void fetch(MmaOperand *operand, Val k0, Val to) {
    mma_operand_fetch(operand, k0, to);
    gpu_copies_commit(operand->k);
    mma_operand_put(operand, to);
}

/* Starts the copy of tile `tile` (index_type) of the scores' rhs. */
void gemm_rows_gemm_fetch_right(GemmRowsGemm *s, Val tile, Val offset) {
    Val first = k_muli(s->k, tile, s->width);
    mma_operand_move(&s->right, first);
    fetch(&s->right, gemm_rows_gemm_index(s, 0), buffer_at(s, offset));
}

void gemm_rows_gemm_meet(const GemmRowsGemm *s) {
    gpu_copies_wait(s->k, 0);
    gpu_barrier(s->k);
}

/* Scores. */

void gemm_rows_gemm_multiply_scores(GemmRowsGemm *s, Val offset) {
    MmaFragments fragments;
    Val buffer = buffer_at(s, offset);
    for (uint32_t i = 0; i < s->scores.n_accs; i++)
        s->scores.accs[i] = LLVMConstReal(s->scores.acc_type, 0);
    for (uint32_t step = 0; step < s->n_steps; step++) {
        MmaStep of = {.step = step, .k0 = gemm_rows_gemm_index(s, 0)};
        mma_tile_load(&s->scores, &s->right, buffer, of, fragments.right);
        mma_tile_load(&s->scores, &s->left, s->fixed, of, fragments.left);
        mma_tile_multiply(&s->scores, &fragments);
    }
}

ScoreTile gemm_rows_gemm_tile(const GemmRowsGemm *s, Val tile) {
    const Codegen *k = s->k;
    ScoreTile at = {.column = k_madi(k, tile, s->width, s->column)};
    for (uint32_t n = 0; n < s->n_pairs && !s->is_whole; n++) {
        Val column = k_addi(k, at.column, (int64_t)n * FRAGMENT_COLUMNS);
        at.exists[n] = k_ult(k, column, s->scores.block.n);
    }
    return at;
}

/* The values that the scores' kernel stores for row `r` of the thread, pair `n`. */
static Val score_pair(const GemmRowsGemm *s, const ScoreTile *at, uint32_t r, uint32_t n) {
    Point point = point_inside(&s->score_rows[r]);
    Val pair = k_vector(s->k, mma_tile_pair(&s->scores, r, n), PAIR);
    point.axis[point.lane_axis] = k_addi(s->k, at->column, (int64_t)n * FRAGMENT_COLUMNS);
    point.active = at->exists[n];
    point.results = arena_array(s->k->arena, Val, 1);
    point.results[0] = gpu_gemm_rounded(s->lower, pair);
    return point_lanes(&point, score_store(s)->value);
}

/* Concatenates vectors; a pair of 16-bit values moves as one register. */
static Val join_pairs(const GemmRowsGemm *s, const Val *pairs, uint32_t n) {
    const Codegen *k = s->k;
    LLVMTypeRef element = LLVMGetElementType(LLVMTypeOf(pairs[0]));
    LLVMTypeRef type = LLVMVectorType(element, n * PAIR);
    if (n == 1) return pairs[0];
    if (element == k->f32 || element == k->i32 || element == k->i1) {
        Val all = LLVMGetPoison(type);
        for (uint32_t i = 0; i < n * PAIR; i++) {
            Val one = k_extract(k, pairs[i / PAIR], i % PAIR);
            all = k_insert(k, all, one, i);
        }
        return all;
    }
    Val words = LLVMGetPoison(LLVMVectorType(k->i32, n));
    for (uint32_t i = 0; i < n; i++) {
        Val word = k_bitcast(k, pairs[i], k->i32);
        words = k_insert(k, words, word, i);
    }
    return k_bitcast(k, words, type);
}

/* Rows. */

Val gemm_rows_gemm_group_exists(const GemmRowsGemm *s, const ScoreTile *at, uint32_t g) {
    Val pairs[GROUP_PAIRS];
    if (s->is_whole) return NULL;
    for (uint32_t i = 0; i < s->group; i++)
        pairs[i] = k_splat(s->k, at->exists[g * s->group + i], PAIR);
    return join_pairs(s, pairs, s->group);
}

Point gemm_rows_gemm_group(const GemmRowsGemm *s, const ScoreTile *at, uint32_t r, uint32_t g) {
    const ScalarTab *scalars = s->rows_kernel->scalars;
    Val pairs[GROUP_PAIRS];
    uint32_t first = g * s->group;
    for (uint32_t i = 0; i < s->group; i++) pairs[i] = score_pair(s, at, r, first + i);
    Val scores = join_pairs(s, pairs, s->group);
    Point point = point_inside(&s->rows[r]);
    point.axis[point.lane_axis] = k_addi(s->k, at->column, (int64_t)first * FRAGMENT_COLUMNS);
    if (s->group == 1) point.active = at->exists[first];
    for (ScalarId id = 1; id <= scalar_count(scalars); id++) {
        const Scalar *load = scalar_get(scalars, id);
        if (load->kind == SCALAR_LOAD && load->buffer == score_store(s)->buffer)
            point.values[id] = scores;
    }
    return point;
}

/* The last pass. */

void gemm_rows_gemm_put_weights(const GemmRowsGemm *s, uint32_t r, uint32_t g, Val values,
                                Weights *weights) {
    const Codegen *k = s->k;
    values = k_bitcast(k, values, k_vector_of(k->i32, s->group));
    for (uint32_t i = 0; i < s->group; i++)
        weights->pairs[r][g * s->group + i] = s->group == 1 ? values : k_extract(k, values, i);
}

static void make_weights(const GemmRowsGemm *s, const ScoreTile *at, Weights *weights) {
    const Store *store = &last_stage(s)->stores.data[0];
    for (uint32_t r = 0; r < s->n_rows; r++)
        for (uint32_t g = 0; g < s->n_groups; g++) {
            Point point = gemm_rows_gemm_group(s, at, r, g);
            Val value = point_lanes(&point, store->value);
            Val exists = gemm_rows_gemm_group_exists(s, at, g);
            Val none = LLVMConstNull(LLVMTypeOf(value));
            if (exists) value = k_select(s->k, exists, value, none);
            gemm_rows_gemm_put_weights(s, r, g, value, weights);
        }
}

/* Adds the product of the weights with the tile at `offset`. A fragment of the lhs has rows g and g
 * + 8 at columns 2t and 2t + 1, then the same rows 8 columns further. */
static void multiply_weights(GemmRowsGemm *s, const Weights *weights, Val offset) {
    MmaFragments fragments;
    Val buffer = buffer_at(s, offset);
    for (uint32_t step = 0; step < s->width / GEMM_ROWS_GEMM_STEP; step++) {
        MmaStep of = {.step = step, .k0 = gemm_rows_gemm_index(s, 0)};
        mma_tile_load(&s->out, &s->values, buffer, of, fragments.right);
        for (uint32_t i = 0; i < s->out.n_m * FRAGMENT_REGISTERS; i++)
            fragments.left[i] = weights->pairs[i / 4 * 2 + i % 2][step * 2 + i % 4 / 2];
        mma_tile_multiply(&s->out, &fragments);
    }
}

static void multiply_stage(GemmRowsGemm *s) {
    Weights *weights = arena_array(s->k->arena, Weights, 1);
    Val other = gemm_rows_gemm_other_buffer(s, s->read);
    Loop loop = loop_over(s->k, s->n_tiles, 1);
    loop_carry(s->k, &loop, s->out.accs, s->out.n_accs);
    Val k0 = k_muli(s->k, loop.index, s->width);
    gemm_rows_gemm_meet(s);
    fetch(&s->values, k0, buffer_at(s, other));
    gemm_rows_gemm_multiply_scores(s, s->read);
    ScoreTile at = gemm_rows_gemm_tile(s, loop.index);
    make_weights(s, &at, weights);
    gemm_rows_gemm_meet(s);
    gemm_rows_gemm_fetch_right(s, k_addi(s->k, loop.index, 1), s->read);
    multiply_weights(s, weights, other);
    loop_end(s->k, &loop);
    gemm_rows_gemm_meet(s);
}

static void reduce_stages(GemmRowsGemm *s) {
    uint32_t n = s->rows_kernel->stages.n;
    for (uint32_t i = 0; i < n; i++) {
        const Stage *stage = &s->rows_kernel->stages.data[i];
        for (uint32_t r = 0; r < s->n_rows; r++) gpu_stage_prepare(&s->rows[r], stage);
        if (i + 1 < n) gemm_rows_gemm_reduce(s, stage);
    }
}

void emit_gpu_gemm_rows_gemm(Lower *lowers) {
    GemmRowsGemm *s = arena_array(lowers->k->arena, GemmRowsGemm, 1);
    gemm_rows_gemm_init(s, lowers);
    fetch(&s->left, gemm_rows_gemm_index(s, 0), s->fixed);
    gemm_rows_gemm_fetch_right(s, gemm_rows_gemm_index(s, 0), s->read);
    reduce_stages(s);
    multiply_stage(s);
    mma_tile_epilogue(&s->out);
}
