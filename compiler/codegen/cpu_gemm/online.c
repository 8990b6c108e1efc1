/* CPU softmax and product. A unit has some rows of one batch and a part of the columns, and takes
 * the keys block by block (docs/design/attention.md). Of each row it computes the weights of the
 * block, with lanes along the keys; then it adds their product with the values to the sums, a tile
 * of rows at a time, with lanes along the columns. Hidden keys have a weight of -0; a product that
 * is NaN is computed again without their infinities. A block in which no row sees a key has no
 * product. One that a mask is known to hide from all rows of the unit has no scores either.
 *
 * The scores are in memory; or the matmul that makes them is in the same launch. Then the unit
 * packs its rows once, and for each block of keys the keys. The matmul's register tile computes the
 * scores of a few rows and of all keys of the block, and these rows are weighed while the first
 * cache has their scores. See template.h. */
#include "codegen/cpu_gemm/gemm.h"
#include "codegen/scalar/mask.h"
#include "codegen/scalar/online.h"
#include "machine/tuning.h"

#include <math.h>

typedef struct Online {
    Lower *lower;
    const Reduce *reduce;
    Dtype acc;
    uint32_t lanes, row_axis, column_axis, key_axis;
    int64_t room;                 /* columns of a row of `sums` */
    Point point;                  /* at the unit's batch */
    Val row_begin, n_rows;        /* of the unit */
    Val column_begin, n_columns;  /* of the unit */
    Val key_begin, n_keys;        /* of the block */
    CpuArray weights;             /* [rows, ONLINE_BLOCK]: the scores, then the weights */
    CpuArray sums;                /* [rows, room] */
    CpuArray maxima, totals;      /* per row: the greatest score so far, the sum of weights */
    CpuArray scales, are_visible; /* per row and block: of what was summed before; i32, not 0 */
    CpuArray lane_maxima;         /* [lanes] */
    uint32_t most_rows;           /* of a unit */
    Gemm *scores;                 /* the matmul that makes them; NULL: they are in memory */
    Val packed_rows;              /* of the unit, panel after panel */
    Mask masks[MOST_MASKS];       /* of the scores' program */
    uint32_t n_masks;
    MaskBox seen_rows; /* of the unit */
} Online;

static Val load_at(const Online *o, const CpuArray *array, Val at, uint32_t lanes) {
    return cpu_array_load(o->lower, array, at, lanes).value;
}

static void store_at(const Online *o, const CpuArray *array, Val at, Val value, uint32_t lanes) {
    cpu_array_store(o->lower, array, at, (Acc){value, NULL}, lanes);
}

static Val combine(const Online *o, PrimId prim, Val a, Val b) {
    return math_prim(o->lower->k, prim, o->acc, a, b, NULL);
}

static Val number(const Online *o, double value, uint32_t lanes) {
    const Codegen *k = o->lower->k;
    return k_splat(k, k_number(k, o->acc, value), lanes);
}

/* Joins the lanes of a vector: lane i and lane i + n / 2, and so on. */
static Val join_lanes(const Online *o, PrimId prim, Val vector) {
    const Codegen *k = o->lower->k;
    for (uint32_t n = o->lanes / 2; n > 0; n /= 2) {
        Val lanes[64];
        for (uint32_t i = 0; i < o->lanes; i++) lanes[i] = k_i32(k, i ^ n);
        Val other = k_shuffle(k, vector, LLVMGetPoison(LLVMTypeOf(vector)),
                              LLVMConstVector(lanes, o->lanes));
        vector = combine(o, prim, vector, other);
    }
    return o->lanes > 1 ? k_extract(k, vector, 0) : vector;
}

/* Scores and weights. */

static Val score_place(const Online *o, Val row, Val key) {
    return k_add(o->lower->k, k_muli(o->lower->k, row, ONLINE_BLOCK), key);
}

/* The lanes from `key` on whose key exists. */
static Val keys_below(const Online *o, Val key) {
    const Codegen *k = o->lower->k;
    Val left = k_sub(k, o->n_keys, key), none = lower_index_const(o->lower, 0);
    return cpu_lanes_below(o->lower, k_smax(k, left, none), o->lanes);
}

/* A row of the block. */
typedef struct ScoreRow {
    Point point;
    Point made;   /* of the matmul that makes the scores */
    Val partials; /* its results at the row */
} ScoreRow;

/* Sets what the matmul has made as the scores that the point loads. */
static void set_made(const Online *o, const ScoreRow *row, Val key, Point *point) {
    const Gemm *gemm = o->scores;
    const Codegen *k = o->lower->k;
    const Store *store = &gemm->lower->kernel->row_stores.data[0];
    const ScalarTab *tab = o->lower->kernel->scalars;
    CpuArray partials = {.dtype = gemm->acc, .values = row->partials};
    Point made = point_inside(&row->made);
    made.axis[gemm->column.axis] = k_add(k, o->key_begin, key);
    made.mask = point->mask;
    acc_finish(&made, 0, cpu_array_load(gemm->lower, &partials, key, o->lanes));
    Val score = point_lanes(&made, store->value);
    for (ScalarId id = 1; id <= scalar_count(tab); id++) {
        const Scalar *load = scalar_get(tab, id);
        if (load->kind == SCALAR_LOAD && load->buffer == store->buffer) point->values[id] = score;
    }
}

/* Stores the scores of the block's row, and the greatest of each lane. Keys that do not exist are
 * hidden. */
static void read_scores(const Online *o, const ScoreRow *at, Val row, bool is_whole) {
    Lower *lower = o->lower;
    const Codegen *k = lower->k;
    Val greatest = number(o, -INFINITY, o->lanes);
    Val none = number(o, online_no_score(o->reduce), o->lanes);
    Loop loop = loop_over(k, o->n_keys, ONLINE_CHAINS);
    loop_carry(k, &loop, &greatest, 1);
    for (uint32_t j = 0; j < ONLINE_CHAINS; j += o->lanes) {
        Val key = k_offset(k, loop.index, j);
        Point point = point_inside(&at->point);
        point.axis[o->key_axis] = k_add(k, o->key_begin, key);
        if (!is_whole) point.mask = keys_below(o, key);
        if (o->scores) set_made(o, at, key, &point);
        Val score = point_lanes(&point, o->reduce->lhs);
        if (point.mask) score = k_select(k, point.mask, score, none);
        store_at(o, &o->weights, score_place(o, row, key), score, o->lanes);
        greatest = combine(o, PRIM_MAX, greatest, online_size(lower, score));
    }
    loop_end(k, &loop);
    store_at(o, &o->lane_maxima, lower_index_const(lower, 0), greatest, o->lanes);
}

/* The weights from `key` on as they enter their sum. */
static Val counted(const Online *o, const Point *row_point, Val key, Val weight) {
    const Codegen *k = o->lower->k;
    Point point = point_inside(row_point);
    if (!o->reduce->count) return weight;
    point.axis[o->key_axis] = k_add(k, o->key_begin, key);
    point.mask = keys_below(o, key);
    weight = online_counted(&point, weight);
    return k_select(k, point.mask, weight, number(o, 0, o->lanes));
}

/* The weights from `key` on as they enter the product, before they are rounded. */
static Val multiplied(const Online *o, const Point *row_point, Val key, Val weight) {
    Point point = point_inside(row_point);
    if (!o->reduce->factor) return weight;
    point.axis[o->key_axis] = k_add(o->lower->k, o->key_begin, key);
    point.mask = keys_below(o, key);
    return online_multiplied(&point, weight);
}

/* Replaces the scores of the row by weights, rounded as they enter the product; returns the sum of
 * the weights before. */
static Val weigh(const Online *o, const Point *row_point, Val row, Val greatest) {
    const Codegen *k = o->lower->k;
    Val sums[ONLINE_CHAINS];
    uint32_t n = ONLINE_CHAINS / o->lanes;
    for (uint32_t j = 0; j < n; j++) sums[j] = number(o, 0, o->lanes);
    Loop loop = loop_over(k, o->n_keys, ONLINE_CHAINS);
    loop_carry(k, &loop, sums, n);
    for (uint32_t j = 0; j < n; j++) {
        Val key = k_offset(k, loop.index, j * o->lanes), at = score_place(o, row, key);
        Val score = load_at(o, &o->weights, at, o->lanes);
        Val weight = online_weight(o->lower, score, greatest);
        if (o->reduce->power)
            sums[j] = combine(o, PRIM_ADD, sums[j], counted(o, row_point, key, weight));
        weight = multiplied(o, row_point, key, weight);
        store_at(o, &o->weights, at, online_rounded(o->lower, score, weight), o->lanes);
    }
    loop_end(k, &loop);
    for (; n > 1; n /= 2)
        for (uint32_t j = 0; j < n / 2; j++)
            sums[j] = combine(o, PRIM_ADD, sums[j], sums[j + n / 2]);
    return join_lanes(o, PRIM_ADD, sums[0]);
}

/* Row `row` of the unit, which is row `in_panel` of the matmul's panel. */
static ScoreRow score_row(const Online *o, Val row, Val in_panel) {
    const Codegen *k = o->lower->k;
    ScoreRow at = {.point = point_inside(&o->point)};
    at.point.lanes = o->lanes;
    at.point.lane_axis = o->key_axis;
    at.point.axis[o->row_axis] = k_add(k, o->row_begin, row);
    point_prepare(&at.point, &o->reduce->lhs, 1, 1u << o->key_axis);
    if (!o->scores) return at;
    at.made = gemm_row_point(o->scores, in_panel, o->lanes);
    at.partials = gemm_element(o->scores, o->scores->partials,
                               k_muli(k, in_panel, o->scores->units.block_columns));
    return at;
}

/* The weights of the block's row; returns whether it sees a key. */
static Val weigh_row(const Online *o, Val row, Val in_panel) {
    Lower *lower = o->lower;
    const Codegen *k = lower->k;
    ScoreRow at = score_row(o, row, in_panel);
    Val is_whole = k_eqi(k, o->n_keys, ONLINE_BLOCK);
    If whole = if_begin(k, is_whole);
    read_scores(o, &at, row, true);
    if_end(k, &whole);
    if (!cpu_is_multiple(lower, kernel_n_reduced(lower->kernel), ONLINE_BLOCK)) {
        If part = if_begin(k, k_not(k, is_whole));
        read_scores(o, &at, row, false);
        if_end(k, &part);
    }
    Val lane_maxima = load_at(o, &o->lane_maxima, lower_index_const(lower, 0), o->lanes);
    Val own = join_lanes(o, PRIM_MAX, lane_maxima);
    Val is_visible = k_fcmp(k, LLVMRealUNE, own, number(o, -INFINITY, 1));
    store_at(o, &o->are_visible, row, k_zext(k, is_visible, k->i32), 1);
    If visible = if_begin(k, is_visible);
    Val before = load_at(o, &o->maxima, row, 1), greatest = combine(o, PRIM_MAX, before, own);
    Val scale = online_scale(lower, before, greatest);
    Val total = online_weighs(o->reduce) ? weigh(o, &at.point, row, greatest) : number(o, 0, 1);
    total = math_fma(k, scale, load_at(o, &o->totals, row, 1), total);
    store_at(o, &o->maxima, row, greatest, 1);
    store_at(o, &o->scales, row, scale, 1);
    store_at(o, &o->totals, row, total, 1);
    if_end(k, &visible);
    return is_visible;
}

/* Products. */

static Val sum_place(const Online *o, Val row, Val column) {
    return k_add(o->lower->k, k_muli(o->lower->k, row, o->room), column);
}

/* Rows [first, first + n_rows) of the unit and n_vectors vectors of columns. */
typedef struct Tile {
    const Online *o;
    Val first;
    uint32_t n_rows, n_vectors;
} Tile;

/* The product of the block's weights and values at the columns from `column` on. `sees`: hidden
 * infinities count as 0. */
static void multiply(const Tile *tile, Val column, Val mask, bool sees, Val *accs) {
    const Online *o = tile->o;
    const Codegen *k = o->lower->k;
    uint32_t n = tile->n_rows * tile->n_vectors;
    for (uint32_t i = 0; i < n; i++) accs[i] = number(o, 0, o->lanes);
    Loop loop = loop_over(k, o->n_keys, 1);
    loop_carry(k, &loop, accs, n);
    for (uint32_t j = 0; j < tile->n_vectors; j++) {
        Point point = point_inside(&o->point);
        point.lanes = o->lanes;
        point.mask = mask;
        point.axis[o->key_axis] = k_add(k, o->key_begin, loop.index);
        point.axis[o->column_axis] = k_add(k, o->column_begin, k_offset(k, column, j * o->lanes));
        Val value = online_value(&point);
        for (uint32_t r = 0; r < tile->n_rows; r++) {
            Val at = score_place(o, k_offset(k, tile->first, r), loop.index);
            Val weight = load_at(o, &o->weights, at, 1), *acc = &accs[r * tile->n_vectors + j];
            Val seen = sees ? online_seen_value(o->lower, weight, value) : value;
            *acc = math_fma(k, k_splat(k, weight, o->lanes), seen, *acc);
        }
    }
    loop_end(k, &loop);
}

static Val is_visible_row(const Tile *tile, uint32_t r) {
    const Online *o = tile->o;
    Val at = k_offset(o->lower->k, tile->first, r);
    return k_nei(o->lower->k, load_at(o, &o->are_visible, at, 1), 0);
}

/* Whether a row that sees a key has a sum that is NaN: i1. */
static Val has_nan(const Tile *tile, const Val *accs) {
    const Codegen *k = tile->o->lower->k;
    Val any = k_int(k->i1, 0);
    for (uint32_t r = 0; r < tile->n_rows; r++) {
        Val own = online_has_nan(k, accs + r * tile->n_vectors, tile->n_vectors);
        any = k_or(k, any, k_and(k, own, is_visible_row(tile, r)));
    }
    return any;
}

/* The product, where hidden keys have no part in it: if it has a NaN, it is computed again with the
 * values as each row sees them. */
static void multiply_seen(const Tile *tile, Val column, Val mask, Val *accs) {
    const Codegen *k = tile->o->lower->k;
    uint32_t n = tile->n_rows * tile->n_vectors;
    Val *seen = arena_array(k->arena, Val, n);
    multiply(tile, column, mask, false, accs);
    LLVMBasicBlockRef here = k_here(k);
    If again = if_begin(k, has_nan(tile, accs));
    multiply(tile, column, mask, true, seen);
    LLVMBasicBlockRef repeated = k_here(k);
    if_end(k, &again);
    for (uint32_t i = 0; i < n; i++) accs[i] = k_merge(k, accs[i], here, seen[i], repeated);
}

/* Adds the product to the rescaled sums of the rows that see a key of the block. */
static void add_products(const Tile *tile, Val column, Val mask) {
    const Online *o = tile->o;
    const Codegen *k = o->lower->k;
    Val *accs = arena_array(k->arena, Val, tile->n_rows * tile->n_vectors);
    multiply_seen(tile, column, mask, accs);
    for (uint32_t r = 0; r < tile->n_rows; r++) {
        Val row = k_offset(k, tile->first, r);
        Val is_visible = is_visible_row(tile, r);
        Val scale = k_splat(k, load_at(o, &o->scales, row, 1), o->lanes);
        for (uint32_t j = 0; j < tile->n_vectors; j++) {
            Val at = sum_place(o, row, k_offset(k, column, j * o->lanes));
            Val before = load_at(o, &o->sums, at, o->lanes);
            Val sum = math_fma(k, scale, before, accs[r * tile->n_vectors + j]);
            store_at(o, &o->sums, at, k_select(k, is_visible, sum, before), o->lanes);
        }
    }
}

static void tile_step(void *user, Val column, Val mask) {
    add_products(user, column, mask);
}

/* The columns of the unit for a tile of rows: pairs of vectors, then single ones. */
static void multiply_rows(const Online *o, Val first, uint32_t n_rows) {
    Lower *lower = o->lower;
    const Codegen *k = lower->k;
    DimId extent = kernel_axis_extent(lower->kernel, o->column_axis);
    Tile tile = {.o = o, .first = first, .n_rows = n_rows, .n_vectors = 2};
    uint32_t width = 2 * o->lanes;
    Val rest = cpu_modulo(lower, o->n_columns, width), n_pairs = k_sub(k, o->n_columns, rest);
    if (o->room >= width) {
        Loop loop = loop_over(k, n_pairs, width);
        add_products(&tile, loop.index, NULL);
        loop_end(k, &loop);
    }
    if (cpu_is_multiple(lower, extent, width)) return;
    tile.n_vectors = 1;
    cpu_each_step(lower, n_pairs, rest, o->lanes, cpu_is_multiple(lower, extent, o->lanes),
                  tile_step, &tile);
}

static void multiply_block(const Online *o) {
    Lower *lower = o->lower;
    const Codegen *k = lower->k;
    uint32_t n = lower->variant->sched.unroll;
    Val n_whole = k_sub(k, o->n_rows, k_uremi(k, o->n_rows, n));
    Loop tiles = loop_over(k, n_whole, n);
    multiply_rows(o, tiles.index, n);
    loop_end(k, &tiles);
    Loop rows = loop_begin(k, n_whole, o->n_rows, 1);
    multiply_rows(o, rows.index, 1);
    loop_end(k, &rows);
}

/* Units. */

static void begin_rows(const Online *o) {
    const Codegen *k = o->lower->k;
    Loop rows = loop_over(k, o->n_rows, 1);
    store_at(o, &o->maxima, rows.index, number(o, -INFINITY, 1), 1);
    store_at(o, &o->totals, rows.index, number(o, 0, 1), 1);
    Loop columns = loop_over(k, o->n_columns, o->lanes);
    store_at(o, &o->sums, sum_place(o, rows.index, columns.index), number(o, 0, o->lanes),
             o->lanes);
    loop_end(k, &columns);
    loop_end(k, &rows);
}

/* The panels of packed rows. */

static Loop each_panel(const Online *o) {
    return loop_over(o->lower->k, o->n_rows, o->scores->n_tile_rows);
}

/* Goes to the panel of rows that begins at row `first` of the unit. */
static void take_panel(const Online *o, Val first) {
    Gemm *gemm = o->scores;
    const Codegen *k = o->lower->k;
    Val number = k_udivi(k, first, gemm->n_tile_rows);
    gemm->panel_begin = k_add(k, o->row_begin, first);
    gemm->rows = gemm_element(gemm, o->packed_rows, k_muli(k, number, gemm_row_panel_elems(gemm)));
}

static void pack_rows(const Online *o) {
    Loop panels = each_panel(o);
    take_panel(o, panels.index);
    gemm_pack_rows(o->scores);
    loop_end(o->lower->k, &panels);
}

/* The weights of the rows [first, first + n); returns whether one sees a key, or `is_any`. */
static Val weigh_rows(const Online *o, Val first, Val n, Val is_any) {
    const Codegen *k = o->lower->k;
    Loop rows = loop_over(k, n, 1);
    loop_carry(k, &rows, &is_any, 1);
    is_any = k_or(k, is_any, weigh_row(o, k_add(k, first, rows.index), rows.index));
    loop_end(k, &rows);
    return is_any;
}

/* The weights of all rows, panel by panel; returns whether one sees a key. */
static Val weigh_panels(const Online *o) {
    Gemm *gemm = o->scores;
    const Codegen *k = o->lower->k;
    Val is_any = k_int(k->i1, 0);
    gemm->column_begin = o->key_begin;
    gemm->n_columns = o->n_keys;
    gemm_pack_columns(gemm);
    Loop panels = each_panel(o);
    loop_carry(k, &panels, &is_any, 1);
    take_panel(o, panels.index);
    gemm_tiles(gemm);
    Val n = cpu_at_most(o->lower, k_sub(k, o->n_rows, panels.index), gemm->n_tile_rows);
    is_any = weigh_rows(o, panels.index, n, is_any);
    loop_end(k, &panels);
    return is_any;
}

/* Masks. */

static void find_masks(Online *o) {
    const Kernel *scores = o->scores ? o->scores->lower->kernel : NULL;
    ScoreProgram program = score_program(scores, o->lower->kernel);
    o->n_masks = masks_find(program.kernel->scalars, program.root, o->masks);
}

static MaskSpan span_of(const Codegen *k, Val first, Val n) {
    MaskSpan span = {.first = k_index_cast(k, first, k->i64)};
    Val end = k_add(k, span.first, k_index_cast(k, n, k->i64));
    span.last = k_subi(k, end, 1);
    return span;
}

static void take_seen_rows(Online *o) {
    const Kernel *maker = o->scores ? o->scores->lower->kernel : NULL;
    o->seen_rows = (MaskBox){.point = point_inside(maker ? &o->scores->point : &o->point),
                             .row_axis = maker ? gemm_axis_m(maker) : o->row_axis,
                             .key_axis = maker ? gemm_axis_n(maker) : o->key_axis};
    o->seen_rows.rows = span_of(o->lower->k, o->row_begin, o->n_rows);
    masks_take_rows(&o->seen_rows, o->masks, o->n_masks);
}

/* Whether a mask is known to hide the block of keys from all rows of the unit (i1); NULL: there is
 * no mask. */
static Val is_hidden(const Online *o) {
    MaskBox box = o->seen_rows;
    if (!o->n_masks) return NULL;
    box.keys = span_of(o->lower->k, o->key_begin, o->n_keys);
    return masks_seen(&box, o->masks, o->n_masks).none;
}

static void take_block(const Online *o) {
    const Codegen *k = o->lower->k;
    Val none = lower_index_const(o->lower, 0);
    Val is_any = o->scores ? weigh_panels(o) : weigh_rows(o, none, o->n_rows, k_int(k->i1, 0));
    if (o->reduce->row) return; /* the sums are not read */
    If any = if_begin(k, is_any);
    multiply_block(o);
    if_end(k, &any);
}

static void take_blocks(Online *o) {
    Lower *lower = o->lower;
    const Codegen *k = lower->k;
    OnlineKeys keys = online_keys(&o->point);
    Loop blocks = loop_begin(k, keys.begin, keys.end, ONLINE_BLOCK);
    o->key_begin = blocks.index;
    o->n_keys = cpu_at_most(lower, k_sub(k, keys.end, blocks.index), ONLINE_BLOCK);
    Val hidden = is_hidden(o);
    If some;
    if (hidden) some = if_begin(k, k_not(k, hidden));
    take_block(o);
    if (hidden) if_end(k, &some);
    loop_end(k, &blocks);
}

/* A row whose results are stored. */
typedef struct Finish {
    const Online *o;
    Point point;
    Val row, total;
    Val greatest; /* NULL: the result does not have it */
} Finish;

static void finish_step(void *user, Val column, Val mask) {
    const Finish *f = user;
    const Online *o = f->o;
    const Codegen *k = o->lower->k;
    const Kernel *kernel = o->lower->kernel;
    Point point = point_inside(&f->point);
    point.lanes = o->lanes;
    point.mask = mask;
    point.axis[o->column_axis] = k_add(k, o->column_begin, column);
    Val sum = load_at(o, &o->sums, sum_place(o, f->row, column), o->lanes);
    online_set_results(&point, sum, f->greatest, f->total);
    point_store_all(&point, kernel->row_stores.data, kernel->row_stores.n);
}

static void finish_rows(const Online *o) {
    Lower *lower = o->lower;
    const Codegen *k = lower->k;
    DimId extent = kernel_axis_extent(lower->kernel, o->column_axis);
    Loop rows = loop_over(k, o->n_rows, 1);
    Finish f = {.o = o, .point = point_inside(&o->point), .row = rows.index};
    f.point.axis[o->row_axis] = k_add(k, o->row_begin, rows.index);
    if (o->reduce->row || !o->reduce->power) f.greatest = load_at(o, &o->maxima, rows.index, 1);
    f.total = load_at(o, &o->totals, rows.index, 1);
    cpu_each_step(lower, lower_index_const(lower, 0), o->n_columns, o->lanes,
                  cpu_is_multiple(lower, extent, o->lanes), finish_step, &f);
    If first = if_begin(k, k_eqi(k, o->column_begin, 0));
    online_store_row(&f.point, load_at(o, &o->maxima, rows.index, 1), f.total);
    if_end(k, &first);
    loop_end(k, &rows);
}

/* The matmul's unit has the same rows; the parts of the keys are one batch of it. */
static void place_scores(const Online *o, Val batch) {
    Gemm *gemm = o->scores;
    Lower *lower = o->lower;
    const Codegen *k = lower->k;
    uint32_t parts = lower->kernel->segment_axis;
    if (parts != NO_AXIS) batch = k_udiv(k, batch, lower_extent(lower, parts));
    lower_split(gemm->lower, batch, 0, gemm_axis_m(gemm->lower->kernel), &gemm->point);
    gemm->row_begin = o->row_begin;
    gemm->row_end = k_add(k, o->row_begin, o->n_rows);
    gemm->k_begin = gemm->partials_row = lower_index_const(lower, 0);
    gemm->n_k = lower_dim(gemm->lower, gemm->k_extent);
}

/* Parts of the columns count first, then blocks of rows. */
static void place_unit(Online *o, Val unit) {
    Lower *lower = o->lower;
    const Codegen *k = lower->k;
    DimTab *dims = lower_dims(lower);
    DimId rows = kernel_axis_extent(lower->kernel, o->row_axis);
    DimId columns = kernel_axis_extent(lower->kernel, o->column_axis);
    Val n_parts = lower_dim(lower, dim_ceil_div(dims, columns, SCHED_CPU_ONLINE_COLUMNS));
    Val n_blocks = lower_dim(lower, dim_ceil_div(dims, rows, o->most_rows));
    Val block = k_udiv(k, unit, n_parts);
    o->column_begin = k_muli(k, k_urem(k, unit, n_parts), SCHED_CPU_ONLINE_COLUMNS);
    o->row_begin = k_muli(k, k_urem(k, block, n_blocks), o->most_rows);
    Val columns_left = k_sub(k, lower_dim(lower, columns), o->column_begin);
    Val rows_left = k_sub(k, lower_dim(lower, rows), o->row_begin);
    o->n_columns = cpu_at_most(lower, columns_left, SCHED_CPU_ONLINE_COLUMNS);
    o->n_rows = cpu_at_most(lower, rows_left, o->most_rows);
    Val batch = k_udiv(k, block, n_blocks);
    if (o->row_axis > 0) lower_split(lower, batch, 0, o->row_axis, &o->point);
    if (o->scores) place_scores(o, batch);
}

static void make_scores(Online *o, Lower *lower) {
    Gemm *gemm = o->scores = arena_array(lower->k->arena, Gemm, 1);
    *gemm = gemm_new(lower);
    int64_t n_panels = (o->most_rows + gemm->n_tile_rows - 1) / gemm->n_tile_rows;
    int64_t n_columns = (int64_t)gemm->panel_depth * gemm->units.block_columns;
    int64_t n_partials = (int64_t)gemm->n_tile_rows * gemm->units.block_columns;
    o->packed_rows =
        cpu_array_new(lower, gemm->acc, false, n_panels * gemm_row_panel_elems(gemm)).values;
    gemm->columns = cpu_array_new(lower, gemm->acc, false, n_columns).values;
    gemm->partials = cpu_array_new(lower, gemm->acc, false, n_partials).values;
}

/* `scores`: the matmul that makes them, or NULL. */
static Online online_new(Lower *lower, Lower *scores) {
    const Kernel *kernel = lower->kernel;
    const Reduce *reduce = &kernel->reduces.data[0];
    Online o = {.lower = lower,
                .reduce = reduce,
                .acc = reduce->acc,
                .lanes = lower->k->target->vector_bytes / dtype_bytes(reduce->acc),
                .row_axis = gemm_axis_m(kernel),
                .column_axis = gemm_axis_n(kernel),
                .key_axis = gemm_axis_k(kernel),
                .room = SCHED_CPU_ONLINE_COLUMNS,
                .most_rows = SCHED_CPU_ONLINE_ROWS};
    int64_t most = dim_hi(lower_dims(lower), kernel_axis_extent(kernel, o.column_axis));
    if (scores) o.most_rows = scores->variant->sched.cpu_gemm.tile_m;
    int64_t n = o.most_rows;
    if (most < o.room) o.room = (most + o.lanes - 1) / o.lanes * o.lanes;
    if (o.room < o.lanes) o.room = o.lanes;
    o.weights = cpu_array_new(lower, o.acc, false, n * ONLINE_BLOCK);
    o.sums = cpu_array_new(lower, o.acc, false, n * o.room);
    o.maxima = cpu_array_new(lower, o.acc, false, n);
    o.totals = cpu_array_new(lower, o.acc, false, n);
    o.scales = cpu_array_new(lower, o.acc, false, n);
    o.are_visible = cpu_array_new(lower, DT_I32, false, n);
    o.lane_maxima = cpu_array_new(lower, o.acc, false, o.lanes);
    if (scores) make_scores(&o, scores);
    find_masks(&o);
    return o;
}

static void emit(Lower *lower, Lower *scores) {
    const Lower *first = scores ? scores : lower;
    Online o = online_new(lower, scores);
    Loop units = cpu_unit_loop(lower, first->units_begin, first->units_end, 1);
    o.point = point_new(lower, 1);
    place_unit(&o, units.index);
    if (o.n_masks) take_seen_rows(&o);
    begin_rows(&o);
    if (scores) pack_rows(&o);
    take_blocks(&o);
    finish_rows(&o);
    loop_end(lower->k, &units);
}

void emit_cpu_online(Lower *lower) {
    emit(lower, NULL);
}

void emit_cpu_gemm_online(Lower *lowers) {
    emit(&lowers[1], &lowers[0]);
}
