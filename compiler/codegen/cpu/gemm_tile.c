/* The register tile of a CPU GEMM. See gemm.h.
 *
 * Every element of the tile is one accumulator of fmas in ascending k. It begins with zero or with
 * the partial result of earlier blocks of k, so no bit depends on the size of a tile or block. The
 * loop over k is bottom-tested and carries its own pointers, because LLVM would otherwise spill
 * accumulators. */
#include "codegen/cpu/gemm.h"
#include "machine/machine.h"

enum { PREFETCH_STEPS = 8, MAX_AHEAD_PASSES = 4 };

/* The loop-carried values: the accumulators, with vector v of row r at r * n_vectors + v, then the
 * pointers to both panels, then the prefetch pointer if n_ahead is not 0. */
typedef struct Tile {
    Val *values;
    uint32_t n_accs;
    uint32_t n_ahead; /* cache lines prefetched per iteration */
} Tile;

static Val offset(const Gemm *gemm, Val base, int64_t elems) {
    return gemm_element(gemm, base, k_int(gemm->lower->k->i64, elems));
}

/* Panels in memory have the operand's dtype. */
static Val panel_element(const Gemm *gemm, Val base, Val at) {
    const Codegen *k = gemm->lower->k;
    return k_gep(k, k_memory_type(k, gemm->panel_dtype, 1), base, at);
}

static Val panel_offset(const Gemm *gemm, Val base, int64_t elems) {
    return panel_element(gemm, base, k_int(gemm->lower->k->i64, elems));
}

static Val panel_load(const Gemm *gemm, Val pointer) {
    const Codegen *k = gemm->lower->k;
    Val load = k_load_aligned(k, k_memory_type(k, gemm->panel_dtype, gemm->lanes), pointer,
                              gemm->lanes * dtype_bytes(gemm->panel_dtype));
    return convert_value(k, load, gemm->panel_dtype, gemm->acc);
}

/* The operand is a load of packed memory, so its address at the first column is the panel's. */
void gemm_find_panels(Gemm *gemm) {
    Point point = point_inside(&gemm->point);
    point.axis[gemm->column.axis] = gemm->column_begin;
    point.axis[gemm->k_axis] = gemm->k_begin;
    gemm->columns = gemm_operand_address(gemm, &gemm->column, &point);
}

static uint32_t line_elems(const Gemm *gemm) {
    return CPU_LINE_BYTES / dtype_bytes(gemm->panel_dtype);
}

/* Prefetches columns from the second-level cache. */
static void prefetch_columns(const Gemm *gemm, Val columns) {
    int64_t ahead = (int64_t)PREFETCH_STEPS * gemm->panel_columns;
    for (uint32_t c = 0; c < gemm->tile_columns; c += line_elems(gemm))
        gemm_prefetch(gemm, panel_offset(gemm, columns, ahead + c), 1);
}

/* The steps of the loop over the block of k: packed pairs, or whole pairs of panels in memory. */
static Val count_steps(const Gemm *gemm) {
    const Codegen *k = gemm->lower->k;
    if (!gemm->has_pairs) return gemm->n_k;
    return k_udivi(k, gemm->has_panels ? gemm->n_k : k_addi(k, gemm->n_k, 1), 2);
}

/* Elements of a panel from one step of the loop to the next. Panels in memory have no pairs, so a
 * step reads two steps of k there. */
static uint32_t step_columns(const Gemm *gemm) {
    return gemm->has_pairs && gemm->has_panels ? 2 * gemm->panel_columns : gemm->panel_columns;
}

/* A GEMM of few rows uses each column from memory once or twice. It would wait for memory in its
 * first pass and leave memory idle in the others. So each pass prefetches its share of the panel's
 * next block of k. */
static void open_ahead(const Gemm *gemm, Tile *tile, uint32_t unroll, Val columns) {
    const Lower *lower = gemm->lower;
    const Codegen *k = lower->k;
    uint32_t n_passes = gemm->block_rows / gemm->n_tile_rows;
    if (!gemm->has_panels || n_passes > MAX_AHEAD_PASSES) return;
    uint32_t n_lines = unroll * step_columns(gemm) / line_elems(gemm);
    tile->n_ahead = (n_lines + n_passes - 1) / n_passes;
    Val rounds = k_udivi(k, count_steps(gemm), unroll);
    Val pass = k_udivi(k, gemm->partials_row, gemm->n_tile_rows);
    Val share = k_muli(k, k_mul(k, pass, rounds), (int64_t)tile->n_ahead * line_elems(gemm));
    Val block = k_muli(k, gemm->n_k, gemm->panel_columns);
    tile->values[tile->n_accs + 2] = panel_element(gemm, columns, k_add(k, block, share));
}

/* Vector `v` of the columns. `has_second`: the step of k after this one exists. */
static Val column_vector(const Gemm *gemm, Val columns, uint32_t v, bool has_second) {
    int64_t at = (int64_t)v * gemm->lanes;
    Val first = panel_load(gemm, panel_offset(gemm, columns, at));
    if (!gemm->has_pairs || !gemm->has_panels) return first;
    Val second = has_second
                     ? panel_load(gemm, panel_offset(gemm, columns, at + gemm->panel_columns))
                     : LLVMConstNull(LLVMTypeOf(first));
    return gemm_pair(gemm, first, second);
}

/* Emits one step of the loop, `step` steps after the pointers: a step of k, or a pair. */
static void tile_step(const Gemm *gemm, Tile *tile, uint32_t step, bool has_second) {
    const Codegen *k = gemm->lower->k;
    LLVMTypeRef type = k_value_type(k, gemm->acc, 1);
    Val rows = tile->values[tile->n_accs];
    Val columns =
        panel_offset(gemm, tile->values[tile->n_accs + 1], (int64_t)step * step_columns(gemm));
    Val *vectors = arena_array(k->arena, Val, gemm->n_vectors);
    for (uint32_t v = 0; v < gemm->n_vectors; v++)
        vectors[v] = column_vector(gemm, columns, v, has_second);
    prefetch_columns(gemm, columns);
    for (uint32_t r = 0; r < gemm->n_tile_rows; r++) {
        int64_t at = (int64_t)r * gemm->row_stride + (int64_t)step * gemm->k_stride;
        Val one = k_load(k, type, offset(gemm, rows, at));
        Val all = k_splat(k, one, gemm->lanes);
        for (uint32_t v = 0; v < gemm->n_vectors; v++) {
            Val *acc = &tile->values[r * gemm->n_vectors + v];
            *acc = gemm->has_pairs ? gemm_add_pairs(gemm, all, vectors[v], *acc)
                                   : math_multiply_add(k, gemm->acc, all, vectors[v], *acc);
        }
    }
}

/* Loops over the steps from `from` to `to`, `unroll` per iteration. */
static void tile_loop(const Gemm *gemm, Tile *tile, Val from, Val to, uint32_t unroll,
                      bool has_second) {
    const Lower *lower = gemm->lower;
    const Codegen *k = lower->k;
    Loop loop = loop_begin(k, from, to, unroll);
    loop_carry(k, &loop, tile->values, tile->n_accs + 2 + (tile->n_ahead > 0));
    for (uint32_t step = 0; step < unroll; step++) tile_step(gemm, tile, step, has_second);
    Val *pointers = &tile->values[tile->n_accs];
    for (uint32_t i = 0; i < tile->n_ahead; i++) {
        gemm_prefetch(gemm, pointers[2], 2);
        pointers[2] = panel_offset(gemm, pointers[2], line_elems(gemm));
    }
    pointers[0] = offset(gemm, pointers[0], (int64_t)unroll * gemm->k_stride);
    pointers[1] = panel_offset(gemm, pointers[1], (int64_t)unroll * step_columns(gemm));
    loop_end(k, &loop);
}

static Val partial_at(const Gemm *gemm, Val partials, uint32_t i) {
    int64_t row = i / gemm->n_vectors, vector = i % gemm->n_vectors;
    return offset(gemm, partials, row * gemm->block_columns + vector * gemm->lanes);
}

/* The initial accumulators: zeros, or the partial results of earlier blocks of k. */
static void tile_open(const Gemm *gemm, Tile *tile, Val partials) {
    const Lower *lower = gemm->lower;
    const Codegen *k = lower->k;
    Val zero = LLVMConstNull(k_value_type(k, gemm->acc, gemm->lanes));
    Val is_later = k_nei(k, gemm->k_begin, 0);
    LLVMBasicBlockRef first = k_here(k);
    If later = if_begin(k, is_later);
    Val *loaded = arena_array(k->arena, Val, tile->n_accs);
    for (uint32_t i = 0; i < tile->n_accs; i++)
        loaded[i] = gemm_load(gemm, partial_at(gemm, partials, i));
    LLVMBasicBlockRef then = k_here(k);
    if_end(k, &later);
    for (uint32_t i = 0; i < tile->n_accs; i++) {
        tile->values[i] = k_merge(k, zero, first, loaded[i], then);
    }
}

/* The tile's first element at the beginning of the block of k, `column` columns into the unit. */
static Val tile_begin(const Gemm *gemm, Val column) {
    Lower *lower = gemm->lower;
    const Codegen *k = lower->k;
    Val depth = gemm->has_panels ? lower_dim(lower, gemm->k_extent)
                                 : lower_index_const(lower, gemm->panel_depth);
    if (gemm->panel_columns == gemm->tile_columns) return k_mul(k, column, depth);
    Val in_panel = k_uremi(k, column, gemm->panel_columns);
    return k_add(k, k_mul(k, k_sub(k, column, in_panel), depth), in_panel);
}

void gemm_tiles(Gemm *gemm) {
    Lower *lower = gemm->lower;
    const Codegen *k = lower->k;
    uint32_t unroll = lower->variant->sched.unroll;
    Val zero = lower_index_const(lower, 0);
    Val n_steps = count_steps(gemm);
    Val n_even = k_sub(k, n_steps, k_uremi(k, n_steps, unroll));
    Tile tile = {.n_accs = gemm->n_tile_rows * gemm->n_vectors};
    tile.values = arena_array(k->arena, Val, tile.n_accs + 3);
    Loop loop = loop_begin(k, zero, gemm->n_columns, gemm->tile_columns);
    Val at = k_muli(k, gemm->partials_row, gemm->block_columns);
    Val partials = gemm_element(gemm, gemm->partials, k_add(k, at, loop.index));
    Val panel = tile_begin(gemm, loop.index);
    tile_open(gemm, &tile, partials);
    tile.values[tile.n_accs] = gemm->rows;
    tile.values[tile.n_accs + 1] = panel_element(gemm, gemm->columns, panel);
    open_ahead(gemm, &tile, unroll, tile.values[tile.n_accs + 1]);
    tile_loop(gemm, &tile, zero, unroll > 1 ? n_even : n_steps, unroll, true);
    if (unroll > 1) tile_loop(gemm, &tile, n_even, n_steps, 1, true);
    if (gemm->has_pairs && gemm->has_panels) /* the last step of an odd number */
        tile_loop(gemm, &tile, k_muli(k, n_steps, 2), gemm->n_k, 1, false);
    for (uint32_t i = 0; i < tile.n_accs; i++)
        gemm_store(gemm, partial_at(gemm, partials, i), tile.values[i]);
    loop_end(k, &loop);
}
