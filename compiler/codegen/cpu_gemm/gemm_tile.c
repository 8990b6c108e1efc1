/* The register tile of a CPU GEMM. See gemm.h.
 *
 * Every element of the tile is one accumulator of fmas in ascending k. It begins with zero or with
 * the partial result of earlier blocks of k, so no bit depends on the size of a tile or block. The
 * loop over k is bottom-tested and carries its own pointers, because LLVM would otherwise spill
 * accumulators. */
#include "codegen/cpu_gemm/gemm.h"
#include "codegen/part/part.h"
#include "machine/machine.h"
#include "machine/tuning.h"
#include "plan/access.h"

#include <string.h>

enum { PREFETCH_STEPS = 8, MAX_AHEAD_PASSES = 4, MOST_LINES_AHEAD = 4 };

typedef struct Tile {
    Val *rows; /* per row of an operand that is not packed: the pointer to which offsets are
                * added */
    Val lines[MOST_LINES_AHEAD]; /* the same of some rows of the next tile, which are prefetched */
    uint32_t n_lines;
    Val strips;                      /* rows in strips: the pointer of the first one */
    Val columns;                     /* the same of the columns */
    Val row_offsets, column_offsets; /* of the block of k, of operands that are not packed */
    Val partials;                    /* of the panel's first row */
    Val pitch;                       /* of partial results */
    Val is_later;  /* i1: whether they begin with those of earlier blocks of k; NULL: never */
    Val depth;     /* of a panel of columns */
    Val begin, at; /* pointers to the panel of columns, or to the offsets of columns that are not
                    * packed: of the block of k, and of the iteration */
    Val *masks;    /* per vector of such columns: the lanes that exist; NULL: all do */
    /* The loop-carried values: the accumulators, with vector v of row r at r * n_vectors + v, then
     * the pointer to the panel of rows, or to the offsets of rows that are not packed, then the
     * prefetch pointer if n_ahead is not 0. */
    Val *values;
    uint32_t n_accs;
    Val n_steps, n_even; /* of the block of k: all, and those of whole iterations */
    uint32_t n_ahead;    /* cache lines prefetched per iteration */
} Tile;

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
Val gemm_find_panels(Gemm *gemm) {
    Point point = point_inside(&gemm->point);
    point.axis[gemm->column.axis] = gemm->column_begin;
    point.axis[gemm->k_axis] = gemm->k_begin;
    return gemm_operand_address(gemm, &gemm->column, &point);
}

static uint32_t line_elems(const Gemm *gemm) {
    return CPU_LINE_BYTES / dtype_bytes(gemm->panel_dtype);
}

/* Prefetches columns from the second-level cache. */
static void prefetch_columns(const Gemm *gemm, Val columns) {
    int64_t ahead = (int64_t)PREFETCH_STEPS * gemm->panel_columns;
    for (uint32_t c = 0; c < gemm->tile_columns; c += line_elems(gemm))
        cpu_prefetch(gemm->lower->k, panel_offset(gemm, columns, ahead + c), 1);
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
    uint32_t n_passes = gemm->few.block_rows / gemm->n_tile_rows;
    if (!gemm->has_panels || n_passes > MAX_AHEAD_PASSES) return;
    uint32_t n_lines = unroll * step_columns(gemm) / line_elems(gemm);
    tile->n_ahead = (n_lines + n_passes - 1) / n_passes;
    Val rounds = k_udivi(k, count_steps(gemm), unroll);
    Val pass = k_udivi(k, gemm->partials_row, gemm->n_tile_rows);
    Val share = k_muli(k, k_mul(k, pass, rounds), (int64_t)tile->n_ahead * line_elems(gemm));
    Val block = k_muli(k, gemm->n_k, gemm->panel_columns);
    tile->values[tile->n_accs + 1] = panel_element(gemm, columns, k_add(k, block, share));
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

static bool has_rows(const Gemm *gemm) {
    return !cpu_pack_has_places(gemm->row.pack);
}

static bool has_columns(const Gemm *gemm) {
    return !cpu_pack_has_places(gemm->column.pack);
}

/* The element or vector of an operand that is not packed: `step` steps after its pointer to the
 * offsets, `at` elements from `place`. */
static Val load_placed(const Gemm *gemm, const GemmOperand *operand, Val place, Val offsets,
                       uint32_t step, int64_t at, uint32_t lanes, Val mask) {
    const Lower *lower = gemm->lower;
    const Codegen *k = lower->k;
    const Scalar *load = scalar_get(lower->kernel->scalars, operand->value);
    LLVMTypeRef one = k_memory_type(k, operand->dtype, 1);
    Val offset = k_load(k, k->i64, k_gep(k, k->i64, offsets, k_int(k->i64, step)));
    if (operand->strips) {
        Val strip = gemm_element_by(gemm, gemm_element(gemm, place, offset), at);
        return gemm_load_strip(gemm, strip, lanes);
    }
    Val pointer = k_gep(k, one, k_gep(k, one, place, offset), k_int(k->i64, at));
    uint32_t arg = lower_arg(lower, load->buffer);
    Val value = point_load_lanes(lower, arg, operand->dtype, lanes, pointer, mask);
    return convert_value(k, value, operand->dtype, gemm->acc);
}

/* Element (r, step) of the rows. */
static Val row_element(const Gemm *gemm, const Tile *tile, uint32_t r, uint32_t step) {
    const Codegen *k = gemm->lower->k;
    Val rows = tile->values[tile->n_accs];
    if (!has_rows(gemm))
        return load_placed(gemm, &gemm->row, tile->rows[r], rows, step, 0, 1, NULL);
    int64_t at = (int64_t)r * gemm->row_stride + (int64_t)step * gemm->k_stride;
    return k_load(k, k_value_type(k, gemm->acc, 1), gemm_element_by(gemm, rows, at));
}

static void load_columns(const Gemm *gemm, const Tile *tile, uint32_t step, bool has_second,
                         Val *vectors) {
    Val columns = tile->at;
    const CpuStrips *strips = gemm->column.strips;
    uint32_t n_own = gemm->n_vectors / gemm->n_batches;
    int64_t apart = strips ? gemm_strips_elems(gemm, strips) : 0; /* from batch to batch */
    if (has_columns(gemm))
        columns = panel_offset(gemm, columns, (int64_t)step * step_columns(gemm));
    for (uint32_t v = 0; v < gemm->n_vectors; v++)
        vectors[v] = has_columns(gemm)
                         ? column_vector(gemm, columns, v, has_second)
                         : load_placed(gemm, &gemm->column, tile->columns, columns, step,
                                       (int64_t)v % n_own * gemm->lanes + v / n_own * apart,
                                       gemm->lanes, tile->masks ? tile->masks[v] : NULL);
    if (has_columns(gemm)) prefetch_columns(gemm, columns);
}

/* Prefetches the element of the step in rows of the next tile. */
static void prefetch_rows(const Gemm *gemm, const Tile *tile, uint32_t step) {
    const Codegen *k = gemm->lower->k;
    LLVMTypeRef one = k_memory_type(k, gemm->row.dtype, 1);
    Val offsets = tile->values[tile->n_accs];
    for (uint32_t i = 0; i < tile->n_lines; i++) {
        Val offset = k_load(k, k->i64, k_gep(k, k->i64, offsets, k_int(k->i64, step)));
        cpu_prefetch(k, k_gep(k, one, tile->lines[i], offset), 1);
    }
}

/* Emits one step of the loop, `step` steps after the pointers: a step of k, or a pair. */
static void tile_step(const Gemm *gemm, Tile *tile, uint32_t step, bool has_second) {
    const Codegen *k = gemm->lower->k;
    Val *vectors = arena_array(k->arena, Val, gemm->n_vectors);
    load_columns(gemm, tile, step, has_second, vectors);
    prefetch_rows(gemm, tile, step);
    for (uint32_t r = 0; r < gemm->n_tile_rows; r++) {
        Val all = k_splat(k, row_element(gemm, tile, r, step), gemm->lanes);
        for (uint32_t v = 0; v < gemm->n_vectors; v++) {
            Val *acc = &tile->values[r * gemm->n_vectors + v];
            *acc = gemm->has_pairs ? gemm_add_pairs(gemm, all, vectors[v], *acc)
                                   : math_multiply_add(k, gemm->acc, all, vectors[v], *acc);
        }
    }
}

/* Prefetches the lines of an iteration, but with more rows, for which the same function runs, none.
 */
static void prefetch_ahead(const Gemm *gemm, Tile *tile) {
    const Codegen *k = gemm->lower->k;
    Val *pointer = &tile->values[tile->n_accs + 1], before = *pointer;
    bool is_always = gemm->units.block_rows / gemm->n_tile_rows <= MAX_AHEAD_PASSES;
    LLVMBasicBlockRef here = k_here(k);
    If few = if_begin(k, is_always ? NULL : gemm->is_few);
    for (uint32_t i = 0; i < tile->n_ahead; i++) {
        cpu_prefetch(k, *pointer, 2);
        *pointer = panel_offset(gemm, *pointer, line_elems(gemm));
    }
    LLVMBasicBlockRef then = k_here(k);
    if_end(k, &few);
    if (!is_always) *pointer = k_merge(k, *pointer, then, before, here);
}

/* Loops over the steps from `from` to `to`, `unroll` per iteration. Columns that are packed are
 * `width` elements a step from their pointer. The loop counts what it adds to that pointer. */
static void tile_loop(const Gemm *gemm, Tile *tile, Val from, Val to, uint32_t unroll,
                      bool has_second, uint32_t width) {
    const Codegen *k = gemm->lower->k;
    int64_t scale = has_columns(gemm) ? width : 1;
    Val *rows = &tile->values[tile->n_accs];
    Val begin = k_muli(k, k_index_cast(k, from, k->i64), scale);
    Val end = k_muli(k, k_index_cast(k, to, k->i64), scale);
    Loop loop = loop_begin(k, begin, end, unroll * scale);
    loop_carry(k, &loop, tile->values, tile->n_accs + 1 + (tile->n_ahead > 0));
    tile->at = has_columns(gemm) ? panel_element(gemm, tile->begin, loop.index)
                                 : k_gep(k, k->i64, tile->begin, loop.index);
    for (uint32_t step = 0; step < unroll; step++) tile_step(gemm, tile, step, has_second);
    if (tile->n_ahead) prefetch_ahead(gemm, tile);
    *rows = has_rows(gemm) ? gemm_element_by(gemm, *rows, (int64_t)unroll * gemm->k_stride)
                           : k_gep(k, k->i64, *rows, k_int(k->i64, unroll));
    loop_end(k, &loop);
}

/* The address of accumulator `i` of the tile whose partial results begin at `partials`. */
static Val partial_at(const Gemm *gemm, const Tile *tile, Val partials, uint32_t i) {
    const Codegen *k = gemm->lower->k;
    Val row = gemm_element(gemm, partials, k_muli(k, tile->pitch, i / gemm->n_vectors));
    return gemm_element_by(gemm, row, (int64_t)(i % gemm->n_vectors) * gemm->lanes);
}

/* The initial accumulators: zeros, or the partial results of earlier blocks of k. */
static void tile_open(const Gemm *gemm, Tile *tile, Val partials) {
    const Codegen *k = gemm->lower->k;
    Val zero = LLVMConstNull(k_value_type(k, gemm->acc, gemm->lanes));
    for (uint32_t i = 0; i < tile->n_accs; i++) tile->values[i] = zero;
    if (!tile->is_later) return;
    LLVMBasicBlockRef first = k_here(k);
    If later = if_begin(k, tile->is_later);
    Val *loaded = arena_array(k->arena, Val, tile->n_accs);
    for (uint32_t i = 0; i < tile->n_accs; i++)
        loaded[i] = gemm_load(gemm, partial_at(gemm, tile, partials, i));
    LLVMBasicBlockRef then = k_here(k);
    if_end(k, &later);
    for (uint32_t i = 0; i < tile->n_accs; i++)
        tile->values[i] = k_merge(k, zero, first, loaded[i], then);
}

/* Whether each block of k, also the last one, is a multiple of `unroll` steps. */
static bool has_whole_rounds(const Gemm *gemm, uint32_t unroll) {
    if (unroll == 1) return true;
    return !gemm->has_pairs && gemm->depth % unroll == 0 &&
           cpu_is_multiple(gemm->lower, gemm->k_extent, unroll);
}

/* Where the register tile `column` columns into the unit has its columns, see gemm_tile_begin. */
static Val tile_begin(const Gemm *gemm, Val column, Val depth) {
    const Codegen *k = gemm->lower->k;
    if (gemm->panel_columns == gemm->tile_columns) return k_mul(k, column, depth);
    Val in_panel = k_uremi(k, column, gemm->panel_columns);
    return k_add(k, k_mul(k, k_sub(k, column, in_panel), depth), in_panel);
}

static Val panel_depth(const Gemm *gemm) {
    Lower *lower = gemm->lower;
    return gemm->has_panels ? lower_dim(lower, gemm->k_extent)
                            : lower_index_const(lower, gemm->panel_depth);
}

Val gemm_tile_begin(const Gemm *gemm, Val column) {
    return tile_begin(gemm, column, panel_depth(gemm));
}

/* The rows of the panel where they are; those past the edge are the last one. */
static Val *place_rows(const Gemm *gemm) {
    Lower *lower = gemm->lower;
    const Codegen *k = lower->k;
    Val *places = arena_array(k->arena, Val, gemm->n_tile_rows);
    for (uint32_t r = 0; r < gemm->n_tile_rows; r++) {
        Val row = gemm_clamp(lower, k_addi(k, gemm->panel_begin, r), gemm->row.extent);
        places[r] = gemm_place(gemm, &gemm->row, row);
    }
    return places;
}

/* The elements from row to neighbouring row; 0: that is not known. */
static int64_t rows_apart(const Gemm *gemm) {
    const Kernel *kernel = gemm->lower->kernel;
    const IndexTab *tab = scalartab_indices(kernel->scalars);
    IndexExpr expr = index_expr(tab, scalar_get(kernel->scalars, gemm->row.value)->index);
    int64_t least = 0, own;
    for (uint32_t i = 0; i < expr.n_terms; i++) {
        bool moves = index_atom(tab, expr.terms[i].atom).axes >> gemm->row.axis & 1;
        if (!moves || !dim_is_const(indextab_dims(tab), expr.terms[i].coefficient, &own)) continue;
        if (own > 0 && (!least || own < least)) least = own;
    }
    return least;
}

/* Rows that are read where they are have a few elements side by side at each step of k, and those
 * of the next step may be far from them, as channels of an image are. Such memory a CPU does not
 * foresee. With several tiles of columns, each waits less. */
static void place_lines_ahead(const Gemm *gemm, Tile *tile) {
    Lower *lower = gemm->lower;
    const Codegen *k = lower->k;
    const Kernel *kernel = lower->kernel;
    if (gemm->row.pack.way != PACK_NONE || gemm->units.block_columns > gemm->tile_columns ||
        kernel_is_smooth(k->arena, kernel, gemm->row.value, gemm->k_axis, gemm->lanes) ||
        kernel_run(k->arena, kernel, gemm->row.value, gemm->k_axis, CODEGEN_LEAST_RUN))
        return;
    int64_t row_bytes = rows_apart(gemm) * dtype_bytes(gemm->row.dtype);
    int64_t bytes = gemm->n_tile_rows * row_bytes;
    if (bytes <= 0 || bytes > MOST_LINES_AHEAD * CPU_LINE_BYTES) return;
    tile->n_lines = (uint32_t)((bytes + CPU_LINE_BYTES - 1) / CPU_LINE_BYTES);
    for (uint32_t i = 0; i < tile->n_lines; i++) {
        int64_t row = gemm->n_tile_rows + i * gemm->n_tile_rows / tile->n_lines;
        Val at = gemm_clamp(lower, k_addi(k, gemm->panel_begin, row), gemm->row.extent);
        tile->lines[i] = gemm_place(gemm, &gemm->row, at);
    }
}

/* The rows of a panel of strips lie side by side. */
static Val *rows_beside(const Gemm *gemm, Val first) {
    Val *places = arena_array(gemm->lower->k->arena, Val, gemm->n_tile_rows);
    for (uint32_t r = 0; r < gemm->n_tile_rows; r++) places[r] = gemm_element_by(gemm, first, r);
    return places;
}

/* Sets the pointers at the beginning of the block of k. */
static void place_operands(const Gemm *gemm, Tile *tile) {
    const Codegen *k = gemm->lower->k;
    if (gemm->row.strips)
        tile->strips = gemm_element(gemm, gemm->rows, k_sub(k, gemm->panel_begin, gemm->row_begin));
    else if (!has_rows(gemm))
        tile->rows = place_rows(gemm);
    tile->row_offsets = has_rows(gemm) ? gemm->rows : gemm_block_offsets(gemm, &gemm->row);
    if (!has_columns(gemm)) tile->column_offsets = gemm_block_offsets(gemm, &gemm->column);
    tile->columns = gemm->columns;
    if (gemm->column.pack.way == PACK_NONE)
        tile->columns = gemm_place(gemm, &gemm->column, gemm->column_begin);
    Val row = k_mul(k, gemm->partials_row, tile->pitch);
    tile->partials = gemm_element(gemm, gemm->partials, row);
}

/* Sets the pointers `column` columns into the unit. */
static void place_tile(const Gemm *gemm, Tile *tile, Val columns, Val column) {
    const Codegen *k = gemm->lower->k;
    tile->values[tile->n_accs] = tile->row_offsets;
    tile->begin = tile->column_offsets;
    if (has_columns(gemm))
        tile->begin = panel_element(gemm, columns, tile_begin(gemm, column, tile->depth));
    else if (gemm->column.strips)
        tile->columns = gemm_element(gemm, columns, column);
    else
        tile->columns = k_gep(k, k_memory_type(k, gemm->column.dtype, 1), columns, column);
}

/* Multiplies the panel of rows with the columns of one tile; `columns`: those of the unit. */
static void multiply_tile(const Gemm *gemm, Tile *tile, Val columns, Val column) {
    Lower *lower = gemm->lower;
    const Codegen *k = lower->k;
    uint32_t unroll = lower->variant->sched.unroll;
    Val zero = lower_index_const(lower, 0), n_steps = tile->n_steps, n_even = tile->n_even;
    Val partials = gemm_element(gemm, tile->partials, column);
    place_tile(gemm, tile, columns, column);
    tile_open(gemm, tile, partials);
    if (has_columns(gemm)) open_ahead(gemm, tile, unroll, tile->begin);
    uint32_t width = step_columns(gemm);
    tile_loop(gemm, tile, zero, n_even, unroll, true, width);
    if (n_even != n_steps) tile_loop(gemm, tile, n_even, n_steps, 1, true, width);
    if (gemm->has_pairs && gemm->has_panels) /* the last step of an odd number */
        tile_loop(gemm, tile, k_muli(k, n_steps, 2), gemm->n_k, 1, false, gemm->panel_columns);
    for (uint32_t i = 0; i < tile->n_accs; i++)
        gemm_store(gemm, partial_at(gemm, tile, partials, i), tile->values[i]);
}

/* The last tile of columns that are not packed has masks. */
static void multiply_rest(const Gemm *gemm, Tile *tile, Val columns, Val n_full, Val rest) {
    const Lower *lower = gemm->lower;
    const Codegen *k = lower->k;
    If left = if_begin(k, k_nei(k, rest, 0));
    tile->masks = arena_array(k->arena, Val, gemm->n_vectors);
    for (uint32_t v = 0; v < gemm->n_vectors; v++)
        tile->masks[v] = gemm_lanes_before(gemm, lower_index_const(lower, v * gemm->lanes), rest);
    multiply_tile(gemm, tile, columns, n_full);
    if_end(k, &left);
}

static void multiply_columns(const Gemm *gemm, Tile *tile) {
    const Lower *lower = gemm->lower;
    const Codegen *k = lower->k;
    uint32_t unroll = lower->variant->sched.unroll;
    Val n = gemm->n_columns, rest = NULL, columns = tile->columns;
    if (gemm->row.strips) tile->rows = rows_beside(gemm, tile->strips);
    tile->values = arena_array(k->arena, Val, tile->n_accs + 2);
    tile->n_steps = count_steps(gemm);
    tile->n_even = has_whole_rounds(gemm, unroll)
                       ? tile->n_steps
                       : k_sub(k, tile->n_steps, k_uremi(k, tile->n_steps, unroll));
    bool is_whole = cpu_is_multiple(lower, gemm->column.extent, gemm->tile_columns);
    if (gemm->column.pack.way == PACK_NONE && !is_whole) {
        rest = k_uremi(k, n, gemm->tile_columns);
        n = k_sub(k, n, rest);
    }
    Loop loop = loop_begin(k, lower_index_const(lower, 0), n, gemm->tile_columns);
    multiply_tile(gemm, tile, columns, loop.index);
    loop_end(k, &loop);
    if (rest) multiply_rest(gemm, tile, columns, n, rest);
}

/* The tile is a part: many kernels have the same. */
void gemm_tiles(Gemm *gemm) {
    Lower *lower = gemm->lower;
    const Codegen *k = lower->k;
    Tile tile = {.n_accs = gemm->n_tile_rows * gemm->n_vectors,
                 .pitch = lower_index_const(lower, gemm_pitch(gemm))};
    place_operands(gemm, &tile);
    place_lines_ahead(gemm, &tile);
    if (has_columns(gemm)) tile.depth = panel_depth(gemm);
    if (!gemm_has_one_k_block(gemm)) tile.is_later = k_nei(k, gemm->k_begin, 0);
    Val *const given[] = {&gemm->n_k,    &gemm->n_columns,  &gemm->partials_row,
                          &gemm->is_few, &tile.columns,     &tile.partials,
                          &tile.pitch,   &tile.strips,      &tile.is_later,
                          &tile.depth,   &tile.row_offsets, &tile.column_offsets};
    uint32_t n = sizeof given / sizeof *given;
    Val **slots = arena_array(k->arena, Val *, n + gemm->n_tile_rows + tile.n_lines);
    memcpy(slots, given, sizeof given);
    for (uint32_t r = 0; tile.rows && r < gemm->n_tile_rows; r++) slots[n++] = &tile.rows[r];
    for (uint32_t i = 0; i < tile.n_lines; i++) slots[n++] = &tile.lines[i];
    Part part = part_begin(lower, slots, n);
    multiply_columns(gemm, &tile);
    part_end(&part);
}
