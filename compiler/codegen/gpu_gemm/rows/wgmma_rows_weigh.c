/* Softmax between two products by wgmma: from scores to weights. See wgmma_rows.h. */
#include "codegen/gpu_gemm/rows/wgmma_rows.h"

enum { PAIR = FRAGMENT_PAIR };

static const Store *score_store(const WgmmaRows *s) {
    return &s->lower->kernel->row_stores.data[0];
}

/* The tile of rows. */

static Val unbounded_row(const WgmmaRows *s, uint32_t r) {
    const Codegen *k = s->k;
    Val lane = k_andi(k, s->out.thread, WARP_THREADS - 1);
    Val row = k_madi(k, s->out.warp, WGMMA_WARP_ROWS, gpu_fragment_row(k, lane));
    row = gpu_index(s->lower, k_offset(k, row, (int64_t)r * PAIR_ROWS));
    return k_add(k, s->block.m0, row);
}

/* The matrix row of the thread's row `r`. A row past the end repeats the last row, and its results
 * are not stored. */
static Val row_of_thread(const WgmmaRows *s, uint32_t r) {
    const Codegen *k = s->k;
    Val row = unbounded_row(s, r);
    if (gpu_gemm_axis_is_multiple(s->lower, s->row_axis, s->tiles.m)) return row;
    return k_smin(k, row, k_subi(k, s->block.m, 1));
}

/* The position of the thread's row `r` in the scores' kernel. */
static void begin_scores_row(WgmmaRows *s, uint32_t r, Val row) {
    Point *scores = &s->score_rows[r];
    *scores = point_inside(&s->block.point);
    scores->lanes = PAIR;
    scores->lane_axis = s->key_axis;
    scores->axis[s->row_axis] = row;
    point_prepare(scores, &score_store(s)->value, 1, 1u << s->key_axis);
}

static void begin_row(WgmmaRows *s, uint32_t r) {
    const Kernel *rows = s->out_lower->kernel;
    Val row = row_of_thread(s, r);
    if (s->has_scores) begin_scores_row(s, r, row);
    s->rows[r] = point_inside(&s->out_block.point);
    s->rows[r].lanes = PAIR;
    s->rows[r].axis[gemm_axis_m(rows)] = row;
    const ScalarId roots[2] = {s->exponent, s->weight_factor};
    point_prepare(&s->rows[r], roots, s->weight_factor ? 2 : 1, 1u << rows->first_reduced);
    s->rows[r].lane_axis = rows->first_reduced;
}

/* The number of the scores' tile: the parts of the keys have the same. */
static Val scores_tile(const WgmmaRows *s, Val number) {
    const Codegen *k = s->k;
    const Kernel *kernel = s->out_lower->kernel;
    DimTab *dims = lower_dims(s->lower);
    DimId rows = dim_ceil_div(dims, kernel_axis_extent(kernel, gemm_axis_m(kernel)), s->tiles.m);
    if (kernel->segment_axis == NO_AXIS) return number;
    DimId all = dim_mul(dims, rows, kernel_axis_extent(kernel, kernel->segment_axis));
    Val batch = k_udiv(k, number, lower_divisor(s->lower, all)), n = lower_divisor(s->lower, rows);
    return k_mad(k, batch, n, k_urem(k, number, n));
}

void wgmma_rows_take_tile(WgmmaRows *s, Val number) {
    ScalarId root = s->has_scores ? score_store(s)->value : s->exponent;
    s->out_block = gpu_gemm_block_at(s->out_lower, number, &s->out.tiles);
    s->keys = online_keys(&s->out_block.point);
    s->block = s->has_scores ? gpu_gemm_block_at(s->lower, scores_tile(s, number), &s->tiles)
                             : s->out_block;
    gpu_gemm_prepare_batch(&s->block, &root, 1);
    if (s->n_masks || !s->is_whole) wgmma_rows_take_seen_rows(s);
}

void wgmma_rows_begin(WgmmaRows *s) {
    for (uint32_t r = 0; r < WGMMA_ROWS_OF_THREAD; r++) begin_row(s, r);
    wgmma_rows_reset(s);
}

void wgmma_rows_reset(const WgmmaRows *s) {
    const Codegen *k = s->k;
    for (uint32_t r = 0; r < WGMMA_ROWS_OF_THREAD; r++) {
        k_store(k, k_number(k, DT_F32, s->greatest.identity), s->shift[r]);
        for (uint32_t i = 0; i < PAIR; i++) k_store(k, k_number(k, DT_F32, 0), s->total[r][i]);
        k_store(k, k_i32(k, 0), s->seen[r]);
    }
    for (uint32_t i = 0; i < s->n_sums; i++) k_store(k, k_number(k, DT_F32, 0), s->sums[i]);
    k_store(k, k_i32(k, WGMMA_ROWS_NO_WEIGHTS), s->has_weights);
}

/* Exponents. */

static const Val *score_of(const WgmmaRows *s, uint32_t r, uint32_t n) {
    return s->scores + gpu_fragment_pair(s->n_pairs, 0, n, r);
}

static Val load_pair(const WgmmaRows *s, uint32_t r, uint32_t n) {
    Val pair[PAIR];
    for (uint32_t i = 0; i < PAIR; i++) pair[i] = k_load(s->k, s->k->f32, score_of(s, r, n)[i]);
    return k_vector(s->k, pair, PAIR);
}

/* Whether the column is inside the extent; of an even extent, the pair there. */
static Val exists_at(const WgmmaRows *s, Val column) {
    return k_ult(s->k, column, s->n_keys);
}

/* The scores of pair `n` at `column`, as the rows load them. */
static Val scores_at(const WgmmaRows *s, Val column, uint32_t r, uint32_t n, bool is_plain) {
    Point scores = point_inside(&s->score_rows[r]);
    scores.axis[scores.lane_axis] = column;
    if (!is_plain && !s->is_whole) scores.active = exists_at(s, column);
    scores.results = arena_array(s->k->arena, Val, 1);
    scores.results[0] = gpu_gemm_rounded(s->lower, load_pair(s, r, n));
    if (s->scaled) scores.values[s->scaled] = scores.results[0];
    for (uint32_t i = s->n_masks; i-- > 0 && is_plain;)
        scores.values[s->masks[i].select] = point_lanes(&scores, s->masks[i].score);
    return point_lanes(&scores, score_store(s)->value);
}

/* Sets the scores that the row loads. */
static void set_score(const WgmmaRows *s, Point *row, Val score) {
    const ScalarTab *tab = s->out_lower->kernel->scalars;
    for (ScalarId id = 1; id <= scalar_count(tab); id++) {
        const Scalar *load = scalar_get(tab, id);
        if (load->kind == SCALAR_LOAD && load->buffer == score_store(s)->buffer)
            row->values[id] = score;
    }
}

/* The exponents x of pair `n` at `column`. is_plain: no mask hides a column. */
static Val exponents(const WgmmaRows *s, Val column, uint32_t r, uint32_t n, bool is_plain) {
    Point row = point_inside(&s->rows[r]);
    Val score = s->has_scores ? scores_at(s, column, r, n, is_plain) : NULL;
    row.axis[row.lane_axis] = column;
    if (!is_plain && !s->is_whole) row.active = exists_at(s, column);
    if (score) set_score(s, &row, score);
    for (uint32_t i = s->n_masks; i-- > 0 && is_plain && !score;)
        row.values[s->masks[i].select] = point_lanes(&row, s->masks[i].score);
    return point_lanes(&row, s->exponent);
}

/* A score by itself, at `column`. */
static Val single_score(const WgmmaRows *s, Val column, uint32_t r, Val variable) {
    Point scores = point_inside(&s->score_rows[r]);
    scores.lanes = 1;
    scores.axis[scores.lane_axis] = column;
    scores.active = exists_at(s, column);
    scores.results = arena_array(s->k->arena, Val, 1);
    scores.results[0] = gpu_gemm_rounded(s->lower, k_load(s->k, s->k->f32, variable));
    if (s->scaled) scores.values[s->scaled] = scores.results[0];
    return point_value(&scores, score_store(s)->value);
}

/* The exponent of number `i` of pair `n` by itself, at `column`, which may be past the end. */
static Val single_exponent(const WgmmaRows *s, Val column, uint32_t r, uint32_t n, uint32_t i) {
    const Codegen *k = s->k;
    Point row = point_inside(&s->rows[r]);
    row.lanes = 1;
    row.axis[row.lane_axis] = column;
    row.active = exists_at(s, column);
    if (s->has_scores) set_score(s, &row, single_score(s, column, r, score_of(s, r, n)[i]));
    Val x = point_value(&row, s->exponent);
    return k_select(k, row.active, x, k_number(k, DT_F32, s->greatest.identity));
}

/* The exponents of a pair in a tile that may end past the columns: those count as hidden. Of an odd
 * number of columns a pair may end there too. */
static Val ending_exponents(const WgmmaRows *s, Val column, uint32_t r, uint32_t n) {
    const Codegen *k = s->k;
    Val pair[PAIR], none = k_splat(k, k_number(k, DT_F32, s->greatest.identity), PAIR);
    DimId n_keys = kernel_axis_extent(s->lower->kernel, s->key_axis);
    if (dim_multiple(lower_dims(s->lower), n_keys) % PAIR == 0) {
        Val all = exponents(s, column, r, n, false);
        return k_select(k, k_splat(k, exists_at(s, column), PAIR), all, none);
    }
    for (uint32_t i = 0; i < PAIR; i++)
        pair[i] = single_exponent(s, k_offset(k, column, i), r, n, i);
    return k_vector(k, pair, PAIR);
}

/* Replaces all scores of the thread by exponents. */
static void make_exponents(const WgmmaRows *s, Val first, bool is_plain) {
    const Codegen *k = s->k;
    for (uint32_t r = 0; r < WGMMA_ROWS_OF_THREAD; r++)
        for (uint32_t n = 0; n < s->n_pairs; n++) {
            Val column = k_offset(k, first, (int64_t)n * FRAGMENT_COLUMNS);
            Val x = is_plain || s->is_whole ? exponents(s, column, r, n, is_plain)
                                            : ending_exponents(s, column, r, n);
            for (uint32_t i = 0; i < PAIR; i++)
                k_store(k, k_extract(k, x, i), score_of(s, r, n)[i]);
        }
}

static void make_exponents_by_mask(const WgmmaRows *s, Val first, Val sees_all) {
    const Codegen *k = s->k;
    LLVMBasicBlockRef plain = k_block(k, "plain"), masked = k_block(k, "masked");
    LLVMBasicBlockRef after = k_block(k, "exponents");
    k_cond_br(k, sees_all, plain, masked);
    k_goto(k, plain);
    make_exponents(s, first, true);
    k_br(k, after);
    k_goto(k, masked);
    make_exponents(s, first, false);
    k_br(k, after);
    k_goto(k, after);
}

/* Weights. */

/* The greatest exponents of the thread's rows in the tile, over all threads of a row. */
static void greatest(const WgmmaRows *s, Val *most) {
    Acc accs[WGMMA_ROWS_OF_THREAD];
    for (uint32_t r = 0; r < WGMMA_ROWS_OF_THREAD; r++) accs[r] = (Acc){load_pair(s, r, 0), NULL};
    for (uint32_t n = 1; n < s->n_pairs; n++)
        for (uint32_t r = 0; r < WGMMA_ROWS_OF_THREAD; r++)
            accs[r] =
                acc_combine(s->out_lower, &s->greatest, accs[r], (Acc){load_pair(s, r, n), NULL});
    for (uint32_t r = 0; r < WGMMA_ROWS_OF_THREAD; r++)
        most[r] = gpu_fragment_join(s->out_lower, &s->greatest,
                                    acc_join_lanes(s->out_lower, &s->greatest, accs[r], PAIR))
                      .value;
}

static Val is_none(const WgmmaRows *s, Val shift) {
    return k_fcmp(s->k, LLVMRealOEQ, shift, k_number(s->k, DT_F32, s->greatest.identity));
}

/* A shift of -infinity, before the first column that is seen, counts as 0: then weights are 0 and
 * not NaN. */
static Val finite_shift(const WgmmaRows *s, Val shift) {
    const Codegen *k = s->k;
    return k_select(k, is_none(s, shift), k_number(k, DT_F32, 0), shift);
}

static void scale(const WgmmaRows *s, Val factor, Val variable) {
    k_store(s->k, k_fmul(s->k, k_load(s->k, s->k->f32, variable), factor), variable);
}

static void scale_sums(const WgmmaRows *s, uint32_t r, Val factor) {
    for (uint32_t n = 0; n < s->n_sums / FRAGMENT_ACCUMULATORS; n++)
        for (uint32_t i = 0; i < PAIR; i++)
            scale(s, factor, s->sums[gpu_fragment_pair(0, 0, n, r) + i]);
}

/* 2^x, or 0 where that is below 2^-126. */
static Val power_of_two(const Codegen *k, Val x) {
    return k_asm(k, k->f32, "ex2.approx.ftz.f32 $0, $1;", "=f,f", &x, 1, false);
}

static Val times_factor(const WgmmaRows *s, Val x) {
    return k_fmul(s->k, x, k_number(s->k, DT_F32, s->factor));
}

/* The exponent of 2 that a shift stands for, in two parts: taken * factor + exponent. A weight is
 * 2^((x - taken) * factor - exponent), rounded once. Of a usual shift `taken` is 0, and `exponent`
 * is shift * factor, rounded, by which all weights of the row differ alike. Of a large one that
 * would be too rough: it is taken from x. */
typedef struct RowShift {
    Val taken, exponent;
} RowShift;

/* Shifts up to this size are usual: the exponents are rounded by 2^-10 at most. */
#define USUAL_SHIFT 16384.0

static Val is_large(const WgmmaRows *s, Val shift) {
    const Codegen *k = s->k;
    Val size = math_prim(k, PRIM_ABS, DT_F32, shift, NULL, NULL);
    return k_fcmp(k, LLVMRealOGE, size, k_number(k, DT_F32, USUAL_SHIFT / s->scale));
}

/* usual: no shift is known to be large. */
static RowShift row_shift(const WgmmaRows *s, Val shift, bool usual) {
    const Codegen *k = s->k;
    Val zero = k_number(k, DT_F32, 0), exponent = times_factor(s, shift), large;
    if (usual) return (RowShift){zero, exponent};
    large = is_large(s, shift);
    return (RowShift){k_select(k, large, shift, zero), k_select(k, large, zero, exponent)};
}

/* The power of x less the shift. */
static Val weight_of(const WgmmaRows *s, Val x, RowShift shift, bool usual) {
    const Codegen *k = s->k;
    if (!usual) x = k_fsub(k, x, shift.taken);
    Val exponent = k_fneg(k, shift.exponent);
    return power_of_two(k, math_fma(k, x, k_number(k, DT_F32, s->factor), exponent));
}

/* The factor of what was weighed by the shift `before`. */
static Val factor_of(const WgmmaRows *s, RowShift before, RowShift now, bool usual) {
    const Codegen *k = s->k;
    Val exponent = k_fsub(k, before.exponent, now.exponent);
    Val taken = k_fsub(k, before.taken, now.taken);
    if (!usual) exponent = math_fma(k, taken, k_number(k, DT_F32, s->factor), exponent);
    return power_of_two(k, exponent);
}

/* The factors of the weights of pair `n` from `column` on, of which keys past the end have any. */
static Val factors(const WgmmaRows *s, Val column, uint32_t r) {
    const Codegen *k = s->k;
    Point row = point_inside(&s->rows[r]);
    DimId n_keys = kernel_axis_extent(s->lower->kernel, s->key_axis);
    bool has_pairs = s->is_whole || dim_multiple(lower_dims(s->lower), n_keys) % PAIR == 0;
    Val pair[PAIR];
    row.axis[row.lane_axis] = column;
    if (!s->is_whole) row.active = exists_at(s, column);
    if (has_pairs) return point_lanes(&row, s->weight_factor);
    for (uint32_t i = 0; i < PAIR; i++) {
        row = point_inside(&s->rows[r]);
        row.lanes = 1;
        row.axis[row.lane_axis] = k_offset(k, column, i);
        row.active = exists_at(s, row.axis[row.lane_axis]);
        pair[i] = point_value(&row, s->weight_factor);
    }
    return k_vector(k, pair, PAIR);
}

/* The weights of pair `x` of exponents as the product has them, times their factors. */
static Val multiplied(const WgmmaRows *s, Val x, Val weights, Val factors_of) {
    const Codegen *k = s->k;
    Val none = k_splat(k, k_number(k, DT_F32, s->greatest.identity), PAIR);
    Val zero = k_splat(k, k_number(k, DT_F32, 0), PAIR);
    Val is_hidden = k_fcmp(k, LLVMRealOEQ, x, none);
    return k_select(k, is_hidden, zero, k_fmul(k, weights, factors_of));
}

/* Turns pair `n` of row `r` into weights. `first`: the column of pair 0. */
static void weigh_pair(const WgmmaRows *s, Val first, uint32_t r, uint32_t n, RowShift shift,
                       bool usual) {
    const Codegen *k = s->k;
    Val pair = load_pair(s, r, n), weights[PAIR];
    for (uint32_t i = 0; i < PAIR; i++) {
        Val weight = weight_of(s, k_extract(k, pair, i), shift, usual), total = s->total[r][i];
        k_store(k, k_fadd(k, k_load(k, k->f32, total), weight), total);
        k_store(k, weight, score_of(s, r, n)[i]);
        weights[i] = weight;
    }
    if (!s->weight_factor) return;
    Val column = k_offset(k, first, (int64_t)n * FRAGMENT_COLUMNS);
    Val all = multiplied(s, pair, k_vector(k, weights, PAIR), factors(s, column, r));
    for (uint32_t i = 0; i < PAIR; i++) k_store(k, k_extract(k, all, i), score_of(s, r, n)[i]);
}

void wgmma_rows_shift(const WgmmaRows *s, RowMost *rows) {
    const Codegen *k = s->k;
    Val most[WGMMA_ROWS_OF_THREAD];
    greatest(s, most);
    for (uint32_t r = 0; r < WGMMA_ROWS_OF_THREAD; r++) {
        Val before = k_load(k, k->f32, s->shift[r]);
        Acc shift =
            acc_combine(s->out_lower, &s->greatest, (Acc){before, NULL}, (Acc){most[r], NULL});
        k_store(k, shift.value, s->shift[r]);
        rows[r] = (RowMost){before, finite_shift(s, shift.value)};
    }
}

/* Whether a row of the warp has a large shift, now or before. */
static Val has_large_shift(const WgmmaRows *s, const RowMost *rows) {
    const Codegen *k = s->k;
    Val any = NULL;
    for (uint32_t r = 0; r < WGMMA_ROWS_OF_THREAD; r++) {
        Val now = is_large(s, rows[r].now);
        Val large = k_or(k, is_large(s, finite_shift(s, rows[r].before)), now);
        any = any ? k_or(k, any, large) : large;
    }
    return gpu_any_of_warp(k, any);
}

/* A step of k of the second product has 16 columns of the weights: two pairs of each of the
 * thread's rows. */
static void keep_pair(const WgmmaRows *s, uint32_t r, uint32_t n) {
    const Codegen *k = s->k;
    Dtype to = gemm_operand_dtype(s->out_lower->kernel);
    Val pair = convert_value(k, load_pair(s, r, n), DT_F32, to);
    k_store(k, k_bitcast(k, pair, k->i32), s->weights[wgmma_rows_weight(r, n)]);
}

static void weigh_rows(const WgmmaRows *s, Val first, const RowMost *rows, bool usual) {
    RowShift now[WGMMA_ROWS_OF_THREAD];
    for (uint32_t r = 0; r < WGMMA_ROWS_OF_THREAD; r++) {
        now[r] = row_shift(s, rows[r].now, usual);
        Val factor = factor_of(s, row_shift(s, rows[r].before, usual), now[r], usual);
        for (uint32_t i = 0; i < PAIR; i++) scale(s, factor, s->total[r][i]);
        scale_sums(s, r, factor);
    }
    for (uint32_t n = 0; n < s->n_pairs; n++)
        for (uint32_t r = 0; r < WGMMA_ROWS_OF_THREAD; r++) {
            weigh_pair(s, first, r, n, now[r], usual);
            keep_pair(s, r, n);
        }
}

static Val first_column(const WgmmaRows *s, Val tile) {
    return k_add(s->k, tile, gpu_index(s->lower, gpu_fragment_column(s->k, s->out.thread)));
}

void wgmma_rows_make_exponents_again(const WgmmaRows *s, Val tile) {
    make_exponents(s, first_column(s, tile), s->is_whole && !s->n_masks);
}

void wgmma_rows_make_exponents(const WgmmaRows *s, Val tile, Val sees_all) {
    Val first = first_column(s, tile);
    if (sees_all)
        make_exponents_by_mask(s, first, sees_all);
    else
        make_exponents(s, first, true);
}

void wgmma_rows_weigh(const WgmmaRows *s, Val column, const RowMost *rows) {
    const Codegen *k = s->k;
    Val first = s->weight_factor ? first_column(s, column) : NULL;
    if (first) { /* the code of factors may be large: it is there once */
        weigh_rows(s, first, rows, false);
        return;
    }
    LLVMBasicBlockRef at_large = k_block(k, "large_shifts"), at_usual = k_block(k, "usual_shifts");
    LLVMBasicBlockRef after = k_block(k, "weighed");
    k_cond_br(k, has_large_shift(s, rows), at_large, at_usual);
    k_goto(k, at_large);
    weigh_rows(s, first, rows, false);
    k_br(k, after);
    k_goto(k, at_usual);
    weigh_rows(s, first, rows, true);
    k_br(k, after);
    k_goto(k, after);
}

static Val greatest_of_row(const WgmmaRows *s, uint32_t r) {
    const Codegen *k = s->k;
    return k_fmul(k, k_load(k, k->f32, s->shift[r]), k_number(k, DT_F32, s->scale));
}

/* One of the four threads of a row stores what it has besides its sums. */
static void store_row(WgmmaRows *s, uint32_t r, Val total) {
    const Codegen *k = s->k;
    Val is_first = k_eqi(k, gpu_fragment_column(k, s->out.thread), 0);
    Val exists = k_ult(k, unbounded_row(s, r), s->block.m);
    Point point = point_inside(&s->rows[r]);
    point.lanes = 1;
    If first = if_begin(k, k_and(k, is_first, exists));
    online_store_row(&point, greatest_of_row(s, r), total);
    if_end(k, &first);
}

/* The factor that makes weights of the shift itself of those of its exponent, which is rounded. */
static Val rest_of_shift(const WgmmaRows *s, Val shift) {
    const Codegen *k = s->k;
    RowShift of = row_shift(s, shift, false);
    Val exact = k_fsub(k, shift, of.taken), minus = k_number(k, DT_F32, -s->factor);
    return power_of_two(k, math_fma(k, exact, minus, of.exponent));
}

/* Sets the results of row `r`, before they are rounded, to one value. Where it is NaN the sums are
 * NaN too, and stay: ptxas of CUDA 12.9 and 13 drops a wgmma whose sums nobody reads, and then
 * stores wrong registers. */
static void set_sums(const WgmmaRows *s, uint32_t r, Val value) {
    const Codegen *k = s->k;
    Val is_number = k_fcmp(k, LLVMRealORD, value, value);
    for (uint32_t n = 0; n < s->n_sums / FRAGMENT_ACCUMULATORS; n++)
        for (uint32_t i = 0; i < PAIR; i++) {
            Val at = s->sums[gpu_fragment_pair(0, 0, n, r) + i];
            k_store(k, k_select(k, is_number, value, k_load(k, k->f32, at)), at);
        }
}

void wgmma_rows_end(WgmmaRows *s) {
    const Codegen *k = s->k;
    const Kernel *kernel = s->out_lower->kernel;
    bool is_part = kernel->segment_axis != NO_AXIS, is_log = kernel->reduces.data[0].row;
    for (uint32_t r = 0; r < WGMMA_ROWS_OF_THREAD; r++) {
        Val second = k_load(k, k->f32, s->total[r][1]);
        Val total = k_fadd(k, k_load(k, k->f32, s->total[r][0]), second);
        total = gpu_fragment_join(s->out_lower, &s->total_of_row, (Acc){total, NULL}).value;
        Val rest = NULL, exact = NULL;
        if (is_part || is_log || online_stores_rows(kernel)) {
            rest = rest_of_shift(s, finite_shift(s, k_load(k, k->f32, s->shift[r])));
            exact = k_fmul(k, total, rest);
            store_row(s, r, exact);
        }
        if (is_log && !is_part)
            set_sums(s, r, online_of_row(s->out_lower, 0, greatest_of_row(s, r), exact));
        else
            scale_sums(s, r, is_part ? rest : k_fdiv(k, k_number(k, DT_F32, 1), total));
    }
}

/* The products. */

void wgmma_rows_multiply_scores(const WgmmaRows *s, Val left_at, Val right_at) {
    Dtype dtype = gemm_operand_dtype(s->lower->kernel);
    WgmmaProduct product = {
        .dtypes = {dtype, dtype},
        .width = s->width,
        .n_steps = s->left.depth / GEMM_ROWS_GEMM_STEP,
        .begins = true,
        .left = {s->left.is_mn_major, s->left.own, s->left.depth},
        .right = {s->right.is_mn_major, s->right.own, s->right.depth},
        .accs = s->scores,
    };
    if (s->keeps_left)
        product.registers = s->kept_left;
    else
        product.left_descriptor = wgmma_descriptor(s->k, &product.left, left_at);
    product.right_descriptor = wgmma_descriptor(s->k, &product.right, right_at);
    wgmma_product(s->k, &product);
}

void wgmma_rows_multiply_weights(const WgmmaRows *s, Val values_at) {
    const Codegen *k = s->k;
    Val registers[2 * WGMMA_ROWS_MOST_PAIRS];
    for (uint32_t i = 0; i < 2 * s->n_pairs; i++) registers[i] = k_load(k, k->i32, s->weights[i]);
    Dtype dtype = gemm_operand_dtype(s->out_lower->kernel);
    WgmmaProduct product = {
        .dtypes = {dtype, dtype},
        .width = 2 * s->n_sums,
        .n_steps = s->width / GEMM_ROWS_GEMM_STEP,
        .right = {s->values.is_mn_major, s->values.own, s->values.depth},
        .registers = registers,
        .accs = s->sums,
    };
    product.right_descriptor = wgmma_descriptor(k, &product.right, values_at);
    wgmma_product(k, &product);
}
