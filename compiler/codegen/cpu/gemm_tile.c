/* The register tile of a CPU GEMM. See gemm.h.
 *
 * Every element of the tile is one chain of multiply-adds in ascending k, which begins with zero or
 * with what earlier blocks of k have left: so no bit hangs on the size of a tile or block. The loop
 * over k tests at its bottom and carries its own pointers: otherwise accumulators would be
 * spilled. */
#include "codegen/cpu/gemm.h"

enum { PREFETCH_STEPS = 8, LINE_BYTES = 64, MAX_AHEAD_PASSES = 4 };

/* Accumulators, vector v of row r at r * n_vectors + v, then the pointers to both panels, and to
 * what is asked for ahead if n_ahead is not 0. */
typedef struct Tile {
    LLVMValueRef *values;
    uint32_t n_accs;
    uint32_t n_ahead; /* lines in each round of the loop */
} Tile;

LLVMValueRef gemm_multiply_add(const Gemm *gemm, LLVMValueRef a, LLVMValueRef b, LLVMValueRef sum) {
    const Unit *unit = gemm->lower->unit;
    if (gemm->acc == DT_I32)
        return LLVMBuildAdd(unit->builder, LLVMBuildMul(unit->builder, a, b, ""), sum, "");
    LLVMTypeRef type = LLVMTypeOf(sum);
    LLVMValueRef args[3] = {a, b, sum};
    return unit_intrinsic(unit, "llvm.fma", &type, 1, args, 3);
}

static LLVMValueRef offset(const Gemm *gemm, LLVMValueRef base, int64_t elems) {
    return gemm_element(gemm, base, unit_int(gemm->lower->unit->i64, elems));
}

/* Panels in memory keep the operand's dtype. */
static LLVMValueRef panel_element(const Gemm *gemm, LLVMValueRef base, LLVMValueRef at) {
    const Unit *unit = gemm->lower->unit;
    LLVMTypeRef type = unit_memory_type(unit, gemm->panel_dtype, 1);
    return LLVMBuildGEP2(unit->builder, type, base, &at, 1, "");
}

static LLVMValueRef panel_offset(const Gemm *gemm, LLVMValueRef base, int64_t elems) {
    return panel_element(gemm, base, unit_int(gemm->lower->unit->i64, elems));
}

static LLVMValueRef panel_load(const Gemm *gemm, LLVMValueRef pointer) {
    const Unit *unit = gemm->lower->unit;
    LLVMTypeRef type = unit_memory_type(unit, gemm->panel_dtype, gemm->lanes);
    LLVMValueRef load = LLVMBuildLoad2(unit->builder, type, pointer, "");
    LLVMSetAlignment(load, gemm->lanes * dtype_bytes(gemm->panel_dtype));
    return convert_value(&gemm->lower->unit->math, load, unit_convert_type(gemm->panel_dtype),
                         unit_convert_type(gemm->acc));
}

/* The operand is a load, whose address has been laid out so that it is the panel's. */
void gemm_find_panels(Gemm *gemm) {
    Point point = point_inside(&gemm->point);
    point.axis[gemm->column.axis] = gemm->column_begin;
    point.axis[gemm->k_axis] = gemm->k_begin;
    gemm->columns = gemm_operand_address(gemm, &gemm->column, &point);
}

static uint32_t line_elems(const Gemm *gemm) {
    return LINE_BYTES / dtype_bytes(gemm->panel_dtype);
}

/* Columns come from the second level of the cache. */
static void prefetch_columns(const Gemm *gemm, LLVMValueRef columns) {
    int64_t ahead = (int64_t)PREFETCH_STEPS * gemm->tile_columns;
    for (uint32_t c = 0; c < gemm->tile_columns; c += line_elems(gemm))
        gemm_prefetch(gemm, panel_offset(gemm, columns, ahead + c), 1);
}

/* A few rows use what comes from memory once or twice, and would wait for it in the first of their
 * passes and leave memory idle in the others: each pass asks for its share of the panel's next
 * block of k, which follows this one. */
static void open_ahead(const Gemm *gemm, Tile *tile, uint32_t unroll, LLVMValueRef columns) {
    const Lower *lower = gemm->lower;
    LLVMBuilderRef builder = lower->unit->builder;
    uint32_t n_passes = gemm->block_rows / gemm->n_tile_rows;
    if (!gemm->has_panels || n_passes > MAX_AHEAD_PASSES) return;
    uint32_t n_lines = unroll * gemm->tile_columns / line_elems(gemm);
    tile->n_ahead = (n_lines + n_passes - 1) / n_passes;
    LLVMValueRef rounds = LLVMBuildUDiv(builder, gemm->n_k, lower_index_const(lower, unroll), "");
    LLVMValueRef pass =
        LLVMBuildUDiv(builder, gemm->partials_row, lower_index_const(lower, gemm->n_tile_rows), "");
    LLVMValueRef share =
        LLVMBuildMul(builder, LLVMBuildMul(builder, pass, rounds, ""),
                     lower_index_const(lower, (int64_t)tile->n_ahead * line_elems(gemm)), "");
    LLVMValueRef block =
        LLVMBuildMul(builder, gemm->n_k, lower_index_const(lower, gemm->tile_columns), "");
    tile->values[tile->n_accs + 2] =
        panel_element(gemm, columns, LLVMBuildAdd(builder, block, share, ""));
}

/* One step of k, `step` steps after where the pointers stand. */
static void tile_step(const Gemm *gemm, Tile *tile, uint32_t step) {
    const Unit *unit = gemm->lower->unit;
    LLVMTypeRef type = unit_value_type(unit, gemm->acc, 1);
    LLVMValueRef rows = tile->values[tile->n_accs];
    LLVMValueRef columns =
        panel_offset(gemm, tile->values[tile->n_accs + 1], (int64_t)step * gemm->tile_columns);
    LLVMValueRef *vectors = arena_array(unit->arena, LLVMValueRef, gemm->n_vectors);
    for (uint32_t v = 0; v < gemm->n_vectors; v++)
        vectors[v] = panel_load(gemm, panel_offset(gemm, columns, (int64_t)v * gemm->lanes));
    prefetch_columns(gemm, columns);
    for (uint32_t r = 0; r < gemm->n_tile_rows; r++) {
        int64_t at = (int64_t)r * gemm->row_stride + (int64_t)step * gemm->k_stride;
        LLVMValueRef one = LLVMBuildLoad2(unit->builder, type, offset(gemm, rows, at), "");
        LLVMValueRef all = unit_splat(unit, one, gemm->lanes);
        for (uint32_t v = 0; v < gemm->n_vectors; v++) {
            LLVMValueRef *acc = &tile->values[r * gemm->n_vectors + v];
            *acc = gemm_multiply_add(gemm, all, vectors[v], *acc);
        }
    }
}

/* Steps of k from `from` to `to`, `unroll` at a time. */
static void tile_loop(const Gemm *gemm, Tile *tile, LLVMValueRef from, LLVMValueRef to,
                      uint32_t unroll) {
    const Lower *lower = gemm->lower;
    const Unit *unit = lower->unit;
    uint32_t n = tile->n_accs + 2 + (tile->n_ahead > 0);
    Loop loop = loop_begin(unit, lower->function, from, to, lower_index_const(lower, unroll));
    loop_carry(unit, &loop, tile->values, n);
    for (uint32_t step = 0; step < unroll; step++) tile_step(gemm, tile, step);
    LLVMValueRef *pointers = &tile->values[tile->n_accs];
    for (uint32_t i = 0; i < tile->n_ahead; i++) {
        gemm_prefetch(gemm, pointers[2], 2);
        pointers[2] = panel_offset(gemm, pointers[2], line_elems(gemm));
    }
    pointers[0] = offset(gemm, pointers[0], (int64_t)unroll * gemm->k_stride);
    pointers[1] = panel_offset(gemm, pointers[1], (int64_t)unroll * gemm->tile_columns);
    loop_end_carry(unit, &loop, tile->values, n);
}

static LLVMValueRef partial_at(const Gemm *gemm, LLVMValueRef partials, uint32_t i) {
    int64_t row = i / gemm->n_vectors, vector = i % gemm->n_vectors;
    return offset(gemm, partials, row * gemm->block_columns + vector * gemm->lanes);
}

/* Zeros, or in later blocks of k the partial results. */
static void tile_open(const Gemm *gemm, Tile *tile, LLVMValueRef partials) {
    const Lower *lower = gemm->lower;
    const Unit *unit = lower->unit;
    LLVMTypeRef type = unit_value_type(unit, gemm->acc, gemm->lanes);
    LLVMValueRef zero = LLVMConstNull(type);
    LLVMValueRef is_later =
        LLVMBuildICmp(unit->builder, LLVMIntNE, gemm->k_begin, lower_index_const(lower, 0), "");
    LLVMBasicBlockRef first = unit_here(unit);
    If later = if_begin(unit, lower->function, is_later);
    LLVMValueRef *loaded = arena_array(unit->arena, LLVMValueRef, tile->n_accs);
    for (uint32_t i = 0; i < tile->n_accs; i++)
        loaded[i] = gemm_load(gemm, partial_at(gemm, partials, i));
    LLVMBasicBlockRef then = unit_here(unit);
    if_end(unit, &later);
    for (uint32_t i = 0; i < tile->n_accs; i++) {
        tile->values[i] = LLVMBuildPhi(unit->builder, type, "");
        LLVMAddIncoming(tile->values[i], &zero, &first, 1);
        LLVMAddIncoming(tile->values[i], &loaded[i], &then, 1);
    }
}

void gemm_tiles(Gemm *gemm) {
    Lower *lower = gemm->lower;
    const Unit *unit = lower->unit;
    LLVMBuilderRef builder = unit->builder;
    uint32_t unroll = lower->variant->sched.unroll;
    LLVMValueRef zero = lower_index_const(lower, 0);
    LLVMValueRef n_even =
        LLVMBuildSub(builder, gemm->n_k,
                     LLVMBuildURem(builder, gemm->n_k, lower_index_const(lower, unroll), ""), "");
    Tile tile = {.n_accs = gemm->n_tile_rows * gemm->n_vectors};
    tile.values = arena_array(unit->arena, LLVMValueRef, tile.n_accs + 3);
    Loop loop = loop_begin(unit, lower->function, zero, gemm->n_columns,
                           lower_index_const(lower, gemm->tile_columns));
    LLVMValueRef at = LLVMBuildMul(builder, gemm->partials_row,
                                   lower_index_const(lower, gemm->block_columns), "");
    LLVMValueRef partials =
        gemm_element(gemm, gemm->partials, LLVMBuildAdd(builder, at, loop.index, ""));
    LLVMValueRef panel_depth =
        gemm->has_panels ? lower_dim(lower, gemm->k_extent) : lower_index_const(lower, gemm->depth);
    LLVMValueRef panel = LLVMBuildMul(builder, loop.index, panel_depth, "");
    tile_open(gemm, &tile, partials);
    tile.values[tile.n_accs] = gemm->rows;
    tile.values[tile.n_accs + 1] = panel_element(gemm, gemm->columns, panel);
    open_ahead(gemm, &tile, unroll, tile.values[tile.n_accs + 1]);
    tile_loop(gemm, &tile, zero, unroll > 1 ? n_even : gemm->n_k, unroll);
    if (unroll > 1) tile_loop(gemm, &tile, n_even, gemm->n_k, 1);
    for (uint32_t i = 0; i < tile.n_accs; i++)
        gemm_store(gemm, partial_at(gemm, partials, i), tile.values[i]);
    loop_end(unit, &loop);
}
