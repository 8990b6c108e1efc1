/* Sweeps of a CPU GEMM. See template/cpu_sweep.h.
 *
 * The partial results of a column are those of the unit's rows of outputs, side by side. Rows of
 * outputs before and after the unit's have room too: a register tile of several taps may have some
 * of them, and nobody stores those. */
#include "codegen/cpu_gemm/gemm.h"

typedef struct Sweep {
    Gemm *gemm;
    Val from, to;    /* the rows of outputs */
    uint32_t across; /* the strip across in which the image's row is */
    Val row;         /* its number there: it is also that of the outputs of the first tap */
    Val weights;     /* of the first tap */
    int64_t n_steps; /* of k: a row of windows */
    /* From one tap to the next: rows of outputs, and elements of the weights. */
    int64_t rows_apart, weights_apart;
} Sweep;

/* A register tile of some taps and all columns of the product. */
typedef struct Tile {
    uint32_t n_taps, n_columns, n_vectors;
    Val partials, weights, strips; /* of the first tap, column and vector */
    Val *values;
} Tile;

static uint32_t n_columns(const Gemm *gemm) {
    return gemm->units.block_rows;
}

/* The address of an accumulator. Later taps have earlier rows of outputs. */
static Val partial_at(const Sweep *sweep, const Tile *tile, uint32_t i) {
    const Gemm *gemm = sweep->gemm;
    uint32_t v = i % tile->n_vectors, row = i / tile->n_vectors;
    int64_t tap = row / tile->n_columns, column = row % tile->n_columns;
    int64_t up = tap * sweep->rows_apart * gemm->units.block_columns;
    return gemm_element_by(gemm, tile->partials, column * gemm_pitch(gemm) - up + v * gemm->lanes);
}

static void multiply_step(const Sweep *sweep, Tile *tile, Val at) {
    const Gemm *gemm = sweep->gemm;
    const Codegen *k = gemm->lower->k;
    const CpuSweep *of = gemm->sweep;
    Val *vectors = arena_array(k->arena, Val, tile->n_vectors);
    Val strip_offset = k_load(k, k->i64, k_gep(k, k->i64, gemm->column.offsets, at));
    Val strip = gemm_element(gemm, tile->strips, strip_offset);
    Val weights = gemm_element(gemm, tile->weights, k_muli(k, at, of->weight_k));
    for (uint32_t v = 0; v < tile->n_vectors; v++) {
        Val place = gemm_element_by(gemm, strip, (int64_t)v * gemm->lanes);
        vectors[v] = gemm_load_strip(gemm, place, gemm->lanes);
    }
    for (uint32_t row = 0; row < tile->n_taps * tile->n_columns; row++) {
        int64_t tap = row / tile->n_columns, column = row % tile->n_columns;
        int64_t apart = tap * sweep->weights_apart + column * of->weight_n;
        Val weight =
            k_load(k, k_value_type(k, gemm->acc, 1), gemm_element_by(gemm, weights, apart));
        Val all = k_splat(k, weight, gemm->lanes);
        for (uint32_t v = 0; v < tile->n_vectors; v++) {
            Val *acc = &tile->values[row * tile->n_vectors + v];
            *acc = math_multiply_add(k, gemm->acc, all, vectors[v], *acc);
        }
    }
}

static void multiply_tile(const Sweep *sweep, Tile *tile) {
    const Gemm *gemm = sweep->gemm;
    const Codegen *k = gemm->lower->k;
    uint32_t n = tile->n_taps * tile->n_columns * tile->n_vectors;
    tile->values = arena_array(k->arena, Val, n);
    for (uint32_t i = 0; i < n; i++) tile->values[i] = gemm_load(gemm, partial_at(sweep, tile, i));
    Loop loop = loop_over(k, k_i64(k, sweep->n_steps), 1);
    loop_carry(k, &loop, tile->values, n);
    multiply_step(sweep, tile, loop.index);
    loop_end(k, &loop);
    for (uint32_t i = 0; i < n; i++) gemm_store(gemm, partial_at(sweep, tile, i), tile->values[i]);
}

/* Multiplies the windows of the tile at `column` by `n` taps from `first` on, a Val, if one of
 * their rows of outputs is the unit's. */
static void multiply_taps(const Sweep *sweep, Val column, Val first, uint32_t n) {
    const Gemm *gemm = sweep->gemm;
    const Codegen *k = gemm->lower->k;
    Val top = k_sub(k, sweep->row, k_muli(k, first, sweep->rows_apart));
    Val bottom = k_addi(k, top, -(int64_t)(n - 1) * sweep->rows_apart);
    Val is_below = k_sge(k, top, sweep->from);
    If any = if_begin(k, k_and(k, is_below, k_slt(k, bottom, sweep->to)));
    Val number = k_addi(k, k_sub(k, top, sweep->from), gemm->sweep->across.reach);
    Val place = k_add(k, k_muli(k, number, gemm->units.block_columns), column);
    Val tap = k_muli(k, k_index_cast(k, first, k->i64), sweep->weights_apart);
    Tile tile = {.n_taps = n,
                 .n_columns = n_columns(gemm),
                 .n_vectors = gemm->n_vectors,
                 .partials = gemm_element(gemm, gemm->partials, place),
                 .weights = gemm_element(gemm, sweep->weights, tap),
                 .strips = gemm_element(gemm, gemm->columns, column)};
    multiply_tile(sweep, &tile);
    if_end(k, &any);
}

/* Multiplies the image's row by all taps of its strip. */
static void multiply_row(const Sweep *sweep) {
    const Gemm *gemm = sweep->gemm;
    Lower *lower = gemm->lower;
    const Codegen *k = lower->k;
    uint32_t n = cpu_sweep_taps(gemm->sweep, sweep->across);
    uint32_t n_each = gemm->n_tile_rows / n_columns(gemm), rest = n % n_each;
    Loop columns = loop_over(k, gemm->n_columns, gemm->tile_columns);
    if (n >= n_each) {
        Loop taps = loop_over(k, lower_index_const(lower, n - rest), n_each);
        multiply_taps(sweep, columns.index, taps.index, n_each);
        loop_end(k, &taps);
    }
    if (rest) multiply_taps(sweep, columns.index, lower_index_const(lower, n - rest), rest);
    loop_end(k, &columns);
}

/* Sets what follows from the strip across. */
static void enter_strip(Sweep *sweep, uint32_t across) {
    Gemm *gemm = sweep->gemm;
    Lower *lower = gemm->lower;
    const CpuSweep *of = gemm->sweep;
    uint32_t first = of->across.first_tap[across], next = first;
    sweep->across = across;
    if (cpu_sweep_taps(of, across) > 1) next = cpu_sweep_tap(of, across, 1);
    sweep->rows_apart = of->across.shift_of[next];
    sweep->weights_apart = (int64_t)(next - first) * sweep->n_steps * of->weight_k;
    gemm->k_begin = lower_index_const(lower, first * sweep->n_steps);
    gemm->n_k = lower_index_const(lower, sweep->n_steps);
    Point point = point_inside(&gemm->point);
    point.axis[gemm->row.axis] = gemm->row_begin;
    point.axis[gemm->k_axis] = gemm->k_begin;
    sweep->weights = gemm_operand_address(gemm, &gemm->row, &point);
}

/* Packs and multiplies the image's row of the strip across, if the unit's outputs have a part of
 * it. */
static void sweep_row(Sweep *sweep, Val at, uint32_t across) {
    Gemm *gemm = sweep->gemm;
    const Codegen *k = gemm->lower->k;
    const CpuSweep *of = gemm->sweep;
    sweep->row = k_addi(k, at, -(int64_t)of->later[across]);
    Val end = k_addi(k, sweep->to, of->across.last_shift[across]);
    Val is_behind = k_sge(k, sweep->row, sweep->from);
    If is_part = if_begin(k, k_and(k, is_behind, k_slt(k, sweep->row, end)));
    gemm->point.axis[of->axis] = sweep->row;
    enter_strip(sweep, across);
    gemm_pack_strips(gemm, &gemm->column);
    multiply_row(sweep);
    if_end(k, &is_part);
}

void gemm_sweep(Gemm *gemm, Val from, Val to) {
    Lower *lower = gemm->lower;
    const Codegen *k = lower->k;
    const CpuSweep *of = gemm->sweep;
    CpuArray partials = {.dtype = gemm->acc, .values = gemm->partials};
    Acc zero = {.value = LLVMConstNull(k_value_type(k, gemm->acc, gemm->lanes))};
    Sweep sweep = {
        .gemm = gemm, .from = from, .to = to, .n_steps = cpu_strips_step(gemm->column.strips)};
    cpu_array_fill(lower, &partials, (int64_t)n_columns(gemm) * gemm_pitch(gemm), zero,
                   gemm->lanes);
    uint32_t past = 0;
    for (uint32_t i = 0; i < of->across.n; i++)
        if (of->across.last_shift[i] + of->later[i] > past)
            past = of->across.last_shift[i] + of->later[i];
    Loop loop = loop_begin(k, from, k_addi(k, to, past), 1);
    Point unit = point_inside(&gemm->point);
    for (uint32_t i = 0; i < of->across.n; i++) {
        gemm->point = point_inside(&unit);
        sweep_row(&sweep, loop.index, of->order[i]);
    }
    loop_end(k, &loop);
}
