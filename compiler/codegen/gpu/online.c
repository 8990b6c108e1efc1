/* GPU softmax and product for any dtype. A warp has a few rows of one batch and a part of the
 * columns, and takes the keys block by block (docs/design/attention.md). Each thread computes the
 * weights of every 32nd key of the block and leaves them in shared memory; then it adds their
 * product with every 32nd column of the values to its sums. Hidden keys have a weight of -0; a
 * product that is NaN is computed again without their infinities. See template.h. */
#include "codegen/gpu/gpu.h"
#include "codegen/scalar/online.h"
#include "machine/tuning.h"
#include "template/online.h"

#include <math.h>

enum {
    MOST_ROWS = 8,
    N_KEYS = ONLINE_BLOCK / WARP_THREADS,               /* of a thread, in a block of keys */
    MOST_COLUMNS = SCHED_ONLINE_COLUMNS / WARP_THREADS, /* of a thread */
    VALUES_AT_ONCE = 32,                                /* that a thread loads together */
    LEAST_AT_ONCE = VALUES_AT_ONCE / MOST_COLUMNS
};

/* What a thread carries from block to block: all rows, one after the other. */
typedef struct Sums {
    Val maxima[MOST_ROWS], totals[MOST_ROWS];
    Val sums[MOST_ROWS * MOST_COLUMNS];
} Sums;

typedef struct Online {
    Lower *lower;
    const Reduce *reduce;
    uint32_t n_rows, n_columns; /* of a thread */
    uint32_t row_axis, column_axis, key_axis;
    Point rows[MOST_ROWS];
    Val exist[MOST_ROWS]; /* i1 */
    OnlineKeys keys;
    Val lane;                  /* i32: the thread's number in the warp */
    Val weights;               /* shared: of the warp's rows, [rows, ONLINE_BLOCK] */
    Val columns[MOST_COLUMNS]; /* index_type */
    Val scales[MOST_ROWS], are_visible[MOST_ROWS]; /* of the block */
} Online;

static Val number(const Online *o, double value) {
    return k_number(o->lower->k, o->reduce->acc, value);
}

static Val combine(const Online *o, PrimId prim, Val a, Val b) {
    return math_prim(o->lower->k, prim, o->reduce->acc, a, b, NULL);
}

/* Joins the warp's values: thread i and i + 16, i and i + 8, and so on. */
static Val join_threads(const Online *o, PrimId prim, Val value) {
    for (uint32_t offset = WARP_THREADS / 2; offset > 0; offset /= 2)
        value = combine(o, prim, value, gpu_shuffle_xor(o->lower->k, value, offset));
    return value;
}

/* The address of the weight of key `at` (i32) of the block. */
static Val weight_place(const Online *o, uint32_t row, Val at) {
    const Codegen *k = o->lower->k;
    LLVMTypeRef type = k_value_type(k, o->reduce->acc, 1);
    return k_gep(k, type, o->weights, k_offset(k, at, (int64_t)row * ONLINE_BLOCK));
}

/* The score of the row's key `at`; a key that does not exist is hidden. */
static Val score_at(const Online *o, uint32_t row, Val at) {
    const Codegen *k = o->lower->k;
    Point point = point_inside(&o->rows[row]);
    point.active = k_slt(k, at, o->keys.end);
    point.axis[o->key_axis] = at;
    Val score = point_value(&point, o->reduce->lhs);
    return k_select(k, point.active, score, number(o, online_no_score(o->reduce)));
}

/* The weight of the row's key `at` as it enters the sum of weights. */
static Val counted(const Online *o, uint32_t row, Val at, Val weight) {
    const Codegen *k = o->lower->k;
    Point point = point_inside(&o->rows[row]);
    if (!o->reduce->count) return weight;
    point.active = k_slt(k, at, o->keys.end);
    point.axis[o->key_axis] = at;
    return k_select(k, point.active, online_counted(&point, weight), number(o, 0));
}

/* The weight of the row's key `at` as it enters the product, before it is rounded. */
static Val multiplied(const Online *o, uint32_t row, Val at, Val weight) {
    Point point = point_inside(&o->rows[row]);
    if (!o->reduce->factor) return weight;
    point.active = k_slt(o->lower->k, at, o->keys.end);
    point.axis[o->key_axis] = at;
    return online_multiplied(&point, weight);
}

/* Computes the weights of a row for the block of keys from `begin` on. */
static void weigh_row(Online *o, uint32_t row, Val begin, Sums *sums) {
    Lower *lower = o->lower;
    const Codegen *k = lower->k;
    Val keys[N_KEYS], scores[N_KEYS], own = number(o, -INFINITY), total = number(o, 0);
    Val zero = number(o, 0);
    for (uint32_t j = 0; j < N_KEYS; j++) {
        keys[j] = k_offset(k, gpu_index(lower, o->lane), (int64_t)j * WARP_THREADS);
        keys[j] = k_add(k, begin, keys[j]);
        scores[j] = score_at(o, row, keys[j]);
        own = combine(o, PRIM_MAX, own, online_size(lower, scores[j]));
    }
    own = join_threads(o, PRIM_MAX, own);
    Val is_visible = k_fcmp(k, LLVMRealUNE, own, number(o, -INFINITY));
    Val greatest = combine(o, PRIM_MAX, sums->maxima[row], own);
    Val scale = online_scale(lower, sums->maxima[row], greatest);
    for (uint32_t j = 0; j < N_KEYS && online_weighs(o->reduce); j++) {
        Val weight = online_weight(lower, scores[j], greatest);
        weight = k_select(k, is_visible, weight, zero);
        if (o->reduce->power) total = combine(o, PRIM_ADD, total, counted(o, row, keys[j], weight));
        Val place = weight_place(o, row, k_offset(k, o->lane, (int64_t)j * WARP_THREADS));
        weight = multiplied(o, row, keys[j], weight);
        if (!o->reduce->row) k_store(k, online_rounded(lower, scores[j], weight), place);
    }
    o->scales[row] = k_select(k, is_visible, scale, number(o, 1));
    o->are_visible[row] = is_visible;
    total = join_threads(o, PRIM_ADD, total);
    sums->totals[row] = math_fma(k, o->scales[row], sums->totals[row], total);
    sums->maxima[row] = greatest;
}

/* The values of key `at` at the thread's columns. */
static void read_values(const Online *o, Val at, Val *values) {
    const Codegen *k = o->lower->k;
    for (uint32_t j = 0; j < o->n_columns; j++) {
        Point point = point_inside(&o->rows[0]);
        point.axis[o->key_axis] = at;
        point.axis[o->column_axis] = o->columns[j];
        point.active = k_slt(k, o->columns[j], lower_extent(o->lower, o->column_axis));
        values[j] = online_value(&point);
    }
}

/* Adds the products of key `at` (i32) of the block and its values. */
static void add_key(const Online *o, Val at, const Val *values, bool sees, Val *products) {
    const Codegen *k = o->lower->k;
    for (uint32_t r = 0; r < o->n_rows; r++) {
        Val place = weight_place(o, r, at);
        Val weight = k_load(k, k_value_type(k, o->reduce->acc, 1), place);
        for (uint32_t j = 0; j < o->n_columns; j++) {
            Val seen = sees ? online_seen_value(o->lower, weight, values[j]) : values[j];
            products[r * o->n_columns + j] =
                math_fma(k, weight, seen, products[r * o->n_columns + j]);
        }
    }
}

/* Adds those of the keys from `from` to `to` of the block, `step` at a time: their values are on
 * their way together. */
static void add_keys(const Online *o, Val begin, Val from, Val to, uint32_t step, bool sees,
                     Val *products) {
    const Codegen *k = o->lower->k;
    Val values[VALUES_AT_ONCE][MOST_COLUMNS];
    Loop loop = loop_begin(k, from, to, step);
    loop_carry(k, &loop, products, o->n_rows * o->n_columns);
    for (uint32_t i = 0; i < step; i++)
        read_values(o, k_add(k, begin, k_offset(k, loop.index, i)), values[i]);
    Val at = k_index_cast(k, loop.index, k->i32);
    for (uint32_t i = 0; i < step; i++) add_key(o, k_offset(k, at, i), values[i], sees, products);
    loop_end(k, &loop);
}

/* The product of the weights and the values of the `n` keys from `begin` on. `sees`: hidden
 * infinities count as 0. The last keys are loaded one by one. */
static void multiply(const Online *o, Val begin, Val n, bool sees, Val *products) {
    const Codegen *k = o->lower->k;
    const uint32_t steps[] = {VALUES_AT_ONCE / o->n_columns, LEAST_AT_ONCE, 1};
    Val from = lower_index_const(o->lower, 0);
    for (uint32_t i = 0; i < o->n_rows * o->n_columns; i++) products[i] = number(o, 0);
    for (uint32_t i = 0; i < 3; i++) {
        bool is_same = i > 0 && steps[i] == steps[i - 1];
        if (is_same || (sees && steps[i] > 1)) continue;
        Val to = k_muli(k, k_udivi(k, n, steps[i]), steps[i]);
        add_keys(o, begin, from, to, steps[i], sees, products);
        from = to;
    }
}

/* The product, where hidden keys have no part in it: if it has a NaN, it is computed again with the
 * values as each row sees them. */
static void multiply_seen(const Online *o, Val begin, Val n, Val *products) {
    const Codegen *k = o->lower->k;
    uint32_t n_sums = o->n_rows * o->n_columns;
    Val seen[MOST_ROWS * MOST_COLUMNS];
    multiply(o, begin, n, false, products);
    LLVMBasicBlockRef here = k_here(k);
    If again = if_begin(k, online_has_nan(k, products, n_sums));
    multiply(o, begin, n, true, seen);
    LLVMBasicBlockRef repeated = k_here(k);
    if_end(k, &again);
    for (uint32_t i = 0; i < n_sums; i++)
        products[i] = k_merge(k, products[i], here, seen[i], repeated);
}

/* Adds the product of the weights and the values of the block to the rescaled sums. */
static void add_products(const Online *o, Val begin, Sums *sums) {
    Lower *lower = o->lower;
    const Codegen *k = lower->k;
    uint32_t n_sums = o->n_rows * o->n_columns;
    Val products[MOST_ROWS * MOST_COLUMNS], is_any = o->are_visible[0];
    for (uint32_t r = 1; r < o->n_rows; r++) is_any = k_or(k, is_any, o->are_visible[r]);
    Val n = k_sub(k, o->keys.end, begin);
    Val most = lower_index_const(lower, ONLINE_BLOCK);
    n = k_select(k, k_slt(k, n, most), n, most);
    multiply_seen(o, begin, k_select(k, is_any, n, lower_index_const(lower, 0)), products);
    for (uint32_t i = 0; i < n_sums; i++) {
        Val sum = math_fma(k, o->scales[i / o->n_columns], sums->sums[i], products[i]);
        sums->sums[i] = k_select(k, o->are_visible[i / o->n_columns], sum, sums->sums[i]);
    }
}

static void take_blocks(Online *o, Sums *sums) {
    Lower *lower = o->lower;
    const Codegen *k = lower->k;
    for (uint32_t r = 0; r < o->n_rows; r++) {
        sums->maxima[r] = number(o, -INFINITY);
        sums->totals[r] = number(o, 0);
    }
    for (uint32_t i = 0; i < o->n_rows * o->n_columns; i++) sums->sums[i] = number(o, 0);
    Loop blocks = loop_begin(k, o->keys.begin, o->keys.end, ONLINE_BLOCK);
    loop_carry(k, &blocks, sums->maxima, o->n_rows);
    loop_carry(k, &blocks, sums->totals, o->n_rows);
    loop_carry(k, &blocks, sums->sums, o->n_rows * o->n_columns);
    for (uint32_t r = 0; r < o->n_rows; r++) weigh_row(o, r, blocks.index, sums);
    if (!o->reduce->row) {
        gpu_warp_barrier(k);
        add_products(o, blocks.index, sums);
        gpu_warp_barrier(k);
    }
    loop_end(k, &blocks);
}

static void store_results(Online *o, const Sums *sums) {
    Lower *lower = o->lower;
    const Codegen *k = lower->k;
    const Kernel *kernel = lower->kernel;
    for (uint32_t i = 0; i < o->n_rows * o->n_columns; i++) {
        uint32_t r = i / o->n_columns, j = i % o->n_columns;
        Val is_inside = k_slt(k, o->columns[j], lower_extent(lower, o->column_axis));
        If exists = if_begin(k, k_and(k, is_inside, o->exist[r]));
        Point point = point_inside(&o->rows[r]);
        point.axis[o->column_axis] = o->columns[j];
        online_set_results(&point, sums->sums[i], sums->maxima[r], sums->totals[r]);
        point_store_all(&point, kernel->row_stores.data, kernel->row_stores.n);
        if_end(k, &exists);
    }
    for (uint32_t r = 0; r < o->n_rows && online_stores_rows(kernel); r++) {
        If exists = if_begin(k, k_and(k, k_eqi(k, o->columns[0], 0), o->exist[r]));
        Point row = point_inside(&o->rows[r]);
        online_store_row(&row, sums->maxima[r], sums->totals[r]);
        if_end(k, &exists);
    }
}

/* Parts of the columns count first, then groups of rows, then batches. A row behind the last one
 * repeats it. */
static void place_warp(Online *o, Val warp) {
    Lower *lower = o->lower;
    const Codegen *k = lower->k;
    DimTab *dims = lower_dims(lower);
    DimId rows = kernel_axis_extent(lower->kernel, o->row_axis);
    DimId columns = kernel_axis_extent(lower->kernel, o->column_axis);
    uint32_t own = o->n_columns * WARP_THREADS;
    Val n_parts = lower_divisor(lower, dim_ceil_div(dims, columns, own));
    Val n_groups = lower_divisor(lower, dim_ceil_div(dims, rows, o->n_rows));
    Val group = k_udiv(k, warp, n_parts);
    Val column = k_muli(k, k_urem(k, warp, n_parts), own);
    column = k_add(k, column, gpu_index(lower, o->lane));
    for (uint32_t j = 0; j < o->n_columns; j++)
        o->columns[j] = k_offset(k, column, (int64_t)j * WARP_THREADS);
    Point batch = point_new(lower, 1);
    if (o->row_axis > 0) lower_split(lower, k_udiv(k, group, n_groups), 0, o->row_axis, &batch);
    o->keys = online_keys(&batch);
    Val first = k_muli(k, k_urem(k, group, n_groups), o->n_rows);
    Val n = lower_dim(lower, rows), last = k_subi(k, n, 1);
    for (uint32_t r = 0; r < o->n_rows; r++) {
        Val row = k_offset(k, first, r);
        o->exist[r] = k_slt(k, row, n);
        o->rows[r] = point_inside(&batch);
        o->rows[r].axis[o->row_axis] = k_select(k, o->exist[r], row, last);
        point_prepare(&o->rows[r], &o->reduce->lhs, 1, 1u << o->key_axis);
    }
}

static void make_shared(Online *o) {
    const Codegen *k = o->lower->k;
    uint32_t n_warps = o->lower->variant->sched.threads / WARP_THREADS;
    LLVMTypeRef type = k_value_type(k, o->reduce->acc, 1);
    uint32_t own = o->n_rows * ONLINE_BLOCK;
    Val all = gpu_shared(k, type, n_warps * own, "weights");
    Val warp = k_udivi(k, gpu_thread(k), WARP_THREADS);
    o->weights = k_gep(k, type, all, k_muli(k, warp, own));
}

void emit_gpu_online(Lower *lower) {
    const Codegen *k = lower->k;
    const Kernel *kernel = lower->kernel;
    const Sched *sched = &lower->variant->sched;
    Online o = {.lower = lower,
                .reduce = &kernel->reduces.data[0],
                .n_rows = sched->unroll,
                .n_columns = online_warp_columns(sched) / WARP_THREADS,
                .row_axis = gemm_axis_m(kernel),
                .column_axis = gemm_axis_n(kernel),
                .key_axis = gemm_axis_k(kernel)};
    Sums sums;
    Val thread = gpu_thread(k);
    o.lane = k_andi(k, thread, WARP_THREADS - 1);
    make_shared(&o);
    Val first = k_muli(k, gpu_block(lower), sched->threads / WARP_THREADS);
    Val warp = k_add(k, first, gpu_index(lower, k_udivi(k, thread, WARP_THREADS)));
    Val n_warps = lower_dim(lower, online_n_units(lower_dims(lower), kernel, sched->unroll,
                                                  online_warp_columns(sched)));
    If exists = if_begin(k, k_ult(k, warp, n_warps));
    place_warp(&o, warp);
    take_blocks(&o, &sums);
    store_results(&o, &sums);
    if_end(k, &exists);
}
