/* The blocks of GPU GEMMs: their tiles, and how their operands lie in memory. See gemm.h. */
#include "codegen/gpu_gemm/gemm.h"
#include "machine/tuning.h"

bool gpu_gemm_axis_is_multiple(const Lower *lower, uint32_t axis, uint32_t lanes) {
    DimId extent = kernel_axis_extent(lower->kernel, axis);
    return dim_multiple(lower_dims(lower), extent) % lanes == 0 ||
           predicate_multiple(&lower->variant->predicate, extent) % lanes == 0;
}

bool gpu_gemm_one_tile_reads_right(const Lower *lower) {
    const Kernel *kernel = lower->kernel;
    const Sched *sched = &lower->variant->sched;
    ScalarId operand = gemm_unrounded(kernel, kernel->reduces.data[0].rhs);
    const Scalar *s = scalar_get(kernel->scalars, operand);
    if (s->kind != SCALAR_LOAD) return false;
    for (uint32_t axis = 0; axis < gemm_axis_m(kernel); axis++)
        if (axis != kernel->segment_axis && !(s->axes >> axis & 1) &&
            dim_hi(lower_dims(lower), kernel_axis_extent(lower->kernel, axis)) > 1)
            return false;
    uint32_t rows = sched->cluster > 1 ? sched_tile(sched).m * sched->cluster : sched_tile(sched).m;
    return dim_hi(lower_dims(lower), kernel_axis_extent(lower->kernel, gemm_axis_m(kernel))) <=
           rows;
}

bool gpu_gemm_reads_right_once(const Lower *lower) {
    return lower->n_kernels <= 1 && lower->n_codes <= 1 && gpu_gemm_one_tile_reads_right(lower);
}

/* Operands. */

void gpu_gemm_prepare_batch(GemmBlock *block, const ScalarId *roots, uint32_t n_roots) {
    const Kernel *kernel = block->lower->kernel;
    uint32_t inner =
        1u << gemm_axis_m(kernel) | 1u << gemm_axis_n(kernel) | 1u << gemm_axis_k(kernel);
    point_prepare(&block->point, roots, n_roots, inner);
}

uint32_t gpu_gemm_contiguous_loads(const Lower *lower, ScalarId value, uint32_t axis,
                                   uint32_t lanes) {
    const ScalarTab *scalars = lower->kernel->scalars;
    const bool *reached = scalar_reached(lower->k->arena, scalars, value);
    uint32_t n = 0;
    for (ScalarId id = 1; id <= scalar_count(scalars); id++) {
        const Scalar *s = scalar_get(scalars, id);
        if (reached[id] && s->kind == SCALAR_LOAD &&
            index_lane_motion(scalartab_indices(scalars), s->index, axis, lanes) ==
                LANES_CONTIGUOUS)
            n++;
    }
    return n;
}

bool gpu_gemm_has_vectors(const Lower *lower, const Scalar *load, uint32_t axis, uint32_t lanes) {
    IndexTab *tab = scalartab_indices(lower->kernel->scalars);
    uint32_t arg = lower_arg(lower, load->buffer);
    return predicate_alignment(&lower->variant->predicate, arg) >=
               (int64_t)lanes * dtype_bytes(load->dtype) &&
           index_lane_motion(tab, load->index, axis, lanes) == LANES_CONTIGUOUS &&
           index_is_multiple(tab, load->index, axis, lanes);
}

Val gpu_gemm_to_acc(const Lower *lower, ScalarId operand, Val value) {
    const Kernel *kernel = lower->kernel;
    Dtype dtype = scalar_get(kernel->scalars, operand)->dtype;
    return convert_value(lower->k, value, dtype, kernel->reduces.data[0].acc);
}

Val gpu_gemm_rounded(const Lower *lower, Val sum) {
    const Reduce *reduce = &lower->kernel->reduces.data[0];
    return convert_value(lower->k, sum, reduce->acc, reduce->result);
}

Val gpu_gemm_next_stage(const Codegen *k, Val at, uint32_t stage_bytes, uint32_t n) {
    Val next = k_addi(k, at, stage_bytes);
    Val wraps = k_eqi(k, next, (int64_t)stage_bytes * n);
    return k_select(k, wraps, k_i32(k, 0), next);
}

/* Blocks. */

/* Tiles are numbered down a group of CODEGEN_GEMM_GROUP_ROWS rows of tiles (the last group may have
 * fewer), then in the next column of tiles. */
typedef struct TileGroup {
    Val first, size; /* its first row of tiles, and how many it has */
} TileGroup;

static DimId n_tile_rows(const Lower *lower, const GemmTiles *tiles) {
    DimId m = kernel_axis_extent(lower->kernel, gemm_axis_m(lower->kernel));
    return dim_ceil_div(lower_dims(lower), m, tiles->m);
}

static TileGroup tile_group(Lower *lower, Val group, Val rows) {
    const Codegen *k = lower->k;
    Val eight = lower_index_const(lower, CODEGEN_GEMM_GROUP_ROWS);
    Val first = k_mul(k, group, eight);
    Val left = k_sub(k, rows, first);
    return (TileGroup){first, k_select(k, k_ult(k, left, eight), left, eight)};
}

/* Splits a tile's number within its batch. */
static void split_tile(GemmBlock *block, Val tile, const GemmTiles *tiles) {
    Lower *lower = block->lower;
    const Codegen *k = lower->k;
    DimTab *dims = lower_dims(lower);
    Val rows = lower_dim(lower, n_tile_rows(lower, tiles));
    Val columns = lower_dim(lower, tiles->across);
    Val per_group = k_muli(k, columns, CODEGEN_GEMM_GROUP_ROWS);
    Val number = k_udiv(k, tile, per_group);
    Val in_group = k_urem(k, tile, per_group);
    TileGroup group = tile_group(lower, number, rows);
    Val row = k_add(k, group.first, k_urem(k, in_group, group.size));
    Val column = k_udiv(k, in_group, group.size);
    block->m0 = k_muli(k, row, tiles->m);
    block->n0 = k_muli(k, column, tiles->n);
    if (!dim_equals_const(dims, tiles->begin, 0))
        block->n0 = k_add(k, block->n0, lower_dim(lower, tiles->begin));
}

Val gpu_gemm_tile_number(Lower *lower, Val row, Val column, const GemmTiles *tiles) {
    const Codegen *k = lower->k;
    Val rows = lower_dim(lower, n_tile_rows(lower, tiles)),
        columns = lower_dim(lower, tiles->across);
    Val batch = k_udiv(k, row, rows), in_batch = k_urem(k, row, rows);
    TileGroup group = tile_group(lower, k_udivi(k, in_batch, CODEGEN_GEMM_GROUP_ROWS), rows);
    Val before = k_mul(k, k_mad(k, batch, rows, group.first), columns);
    Val in_group = k_mad(k, column, group.size, k_sub(k, in_batch, group.first));
    return k_add(k, before, in_group);
}

/* Records the tile for the later kernels of the sequence. */
static void note_tile(const GemmBlock *block) {
    BlockTile *tile = block->lower->tile;
    if (tile && !tile->m0) *tile = gpu_gemm_tile(block);
}

BlockTile gpu_gemm_tile(const GemmBlock *block) {
    const Codegen *k = block->lower->k;
    BlockTile tile = {.n_rows = sched_tile(&block->lower->variant->sched).m};
    tile.m0 = k_index_cast(k, block->m0, k->i64);
    tile.n0 = k_index_cast(k, block->n0, k->i64);
    tile.m = k_index_cast(k, block->m, k->i64);
    tile.first_row = tile.m0;
    if (!block->batch) return tile;
    tile.first_row = k_mad(k, k_index_cast(k, block->batch, k->i64), tile.m, tile.m0);
    return tile;
}

GemmBlock gpu_gemm_block(Lower *lower) {
    const Sched *sched = &lower->variant->sched;
    Val tile = gpu_block(lower);
    if (template_info(sched->template)->cluster_splits_k && sched->cluster > 1)
        tile = k_udivi(lower->k, tile, sched->cluster);
    GemmTiles tiles = gpu_gemm_tiles(lower, sched_tile(sched).m);
    GemmBlock block = gpu_gemm_block_at(lower, tile, &tiles);
    note_tile(&block);
    return block;
}

GemmTiles gpu_gemm_tiles(const Lower *lower, uint32_t rows) {
    uint32_t n = gemm_axis_n(lower->kernel), columns = sched_tile(&lower->variant->sched).n;
    DimTab *dims = lower_dims(lower);
    return (GemmTiles){.m = rows,
                       .n = columns,
                       .begin = dim_const(dims, 0),
                       .across = dim_ceil_div(dims, kernel_axis_extent(lower->kernel, n), columns),
                       .is_whole = gpu_gemm_axis_is_multiple(lower, n, columns)};
}

/* A block of the kernel, whose batch and tile are to be set. */
static GemmBlock new_block(Lower *lower, const GemmTiles *tiles) {
    Codegen *k = lower->k;
    const Kernel *kernel = lower->kernel;
    DimId m = kernel_axis_extent(lower->kernel, gemm_axis_m(kernel));
    DimId n = kernel_axis_extent(lower->kernel, gemm_axis_n(kernel));
    GemmBlock block = {.lower = lower,
                       .thread = gpu_thread(k),
                       .is_whole = tiles->is_whole,
                       .point = point_new(lower, 1)};
    block.m = lower_dim(lower, m);
    block.n = lower_dim(lower, n);
    block.k = lower_dim(lower, kernel_axis_extent(lower->kernel, gemm_axis_k(kernel)));
    return block;
}

/* Sets the batch of the tile, of which each batch has `n`. Returns the tile's number within it. */
static Val enter_batch(GemmBlock *block, Val tile, DimId n) {
    Lower *lower = block->lower;
    const Codegen *k = lower->k;
    const Kernel *kernel = lower->kernel;
    if (kernel->n_parallel <= 2) return tile;
    Val n_tiles = lower_dim(lower, n);
    block->batch = k_udiv(k, tile, n_tiles);
    tile = k_urem(k, tile, n_tiles);
    lower_split(lower, block->batch, 0, kernel->n_parallel - 2, &block->point);
    return tile;
}

GemmBlock gpu_gemm_block_at(Lower *lower, Val tile, const GemmTiles *tiles) {
    GemmBlock block = new_block(lower, tiles);
    DimId n = dim_mul(lower_dims(lower), n_tile_rows(lower, tiles), tiles->across);
    tile = enter_batch(&block, tile, n);
    split_tile(&block, tile, tiles);
    return block;
}

GemmBlock gpu_gemm_row_at(Lower *lower, Val row, const GemmTiles *tiles) {
    GemmBlock block = new_block(lower, tiles);
    row = enter_batch(&block, row, n_tile_rows(lower, tiles));
    block.m0 = k_muli(lower->k, row, tiles->m);
    block.n0 = lower_index_const(lower, 0);
    return block;
}

/* Bands. */

static bool has_band(const Kernel *kernel, uint32_t axis) {
    return kernel->band.first && kernel->band.axis == axis;
}

/* The band of the rows from m0 on, which are in one tile of the band, up to the extent. */
static GpuBand band_of_rows(const GemmBlock *block, Val extent) {
    const Codegen *k = block->lower->k;
    Point point = point_inside(&block->point);
    point.axis[gemm_axis_m(block->lower->kernel)] = block->m0;
    GpuBand band = gpu_band(&point);
    band.end = k_umin(k, band.end, extent);
    return band;
}

GpuBand gpu_gemm_band_of_k(const GemmBlock *block) {
    const Kernel *kernel = block->lower->kernel;
    if (has_band(kernel, gemm_axis_k(kernel))) return band_of_rows(block, block->k);
    return (GpuBand){lower_index_const(block->lower, 0), block->k};
}

GpuBand gpu_gemm_band_of_n(const GemmBlock *block) {
    return band_of_rows(block, block->n);
}

Val gpu_gemm_in_band(const GemmBlock *block, uint32_t columns) {
    const Kernel *kernel = block->lower->kernel;
    const Codegen *k = block->lower->k;
    if (!has_band(kernel, gemm_axis_n(kernel))) return NULL;
    GpuBand band = gpu_gemm_band_of_n(block);
    Val begins = k_ult(k, block->n0, band.end);
    Val ends = k_ult(k, band.first, k_addi(k, block->n0, columns));
    return k_and(k, begins, ends);
}
