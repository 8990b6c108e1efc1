/* Schedules of GEMMs on a CPU. See gemm.h.
 *
 * register_m by register_n is the register tile. Vectors lie along n, or along m if it is
 * transposed. A call multiplies tile_m by tile_n at a time,
 * the work units side by side that make up so much, and loops over k by tile_k. The stack bounds
 * these sizes: it holds tile_k by tile_n of one operand, and tile_m by tile_n of partial results.
 * With few rows, packing the columns does not pay (is_blocked false), unless an init step has
 * packed them. */
#include "schedule/scheduler.h"
#include "base/arith.h"
#include "machine/tuning.h"
#include "template/cpu_amx.h"
#include "plan/access.h"
#include "template/cpu_pack.h"
#include "template/cpu_sweep.h"

enum { WIDE_VECTOR_BYTES = 64 };

typedef struct Tile {
    uint32_t rows, vectors;
} Tile;

/* Cuts `extent` into equal parts of at most `most`. A part is a multiple of `step`, at least 1. */
static uint32_t cut(int64_t extent, int64_t most, int64_t step) {
    if (most < step) most = step;
    most -= most % step;
    if (extent <= 0) return (uint32_t)step;
    int64_t n_parts = ceil_div(extent, most);
    return (uint32_t)min_i64(most, round_up(ceil_div(extent, n_parts), step));
}

typedef struct Gemm {
    const Kernel *kernel;
    DimTab *dims;
    DimId rows, columns, depth;
    ScalarId row_operand, column_operand;
    uint32_t acc_bytes, vector_bytes, lanes;
    uint32_t packed_bytes; /* of an element of the packed operands */
    bool is_transposed;
    bool has_amx;                     /* tile registers multiply */
    bool leaves_rows, leaves_columns; /* they are not packed */
    bool weaves;                      /* stores of a unit that has all columns are woven */
    bool has_strips;                  /* the lhs is packed in strips */
    CpuStrips strips;
    GemmLaunch launch;
} Gemm;

static uint32_t n_registers(const Gemm *gemm) {
    return gemm->vector_bytes == WIDE_VECTOR_BYTES ? 32 : 16;
}

/* The most vectors of a row. Every row takes a register per vector, each vector takes one more, and
 * the broadcast element one. */
static uint32_t most_vectors(const Gemm *gemm, uint32_t rows) {
    uint32_t vectors = 2;
    while (vectors < SCHED_CPU_MOST_VECTORS && (rows + 1) * (vectors + 1) + 1 <= n_registers(gemm))
        vectors++;
    return vectors;
}

/* Rows that are not packed have a pointer each. */
static Tile choose_tile(const Gemm *gemm, int64_t n_rows) {
    if (gemm->has_amx) return (Tile){n_rows > AMX_ROWS ? 2 * AMX_ROWS : AMX_ROWS, 2};
    bool is_wide = gemm->vector_bytes == WIDE_VECTOR_BYTES;
    bool has_one_vector = dim_hi(gemm->dims, gemm->columns) <= gemm->lanes;
    uint32_t most_rows = is_wide ? SCHED_CPU_HIGH_TILE_ROWS : SCHED_CPU_LOW_TILE_ROWS;
    if (!gemm->is_transposed && has_one_vector && !is_wide) most_rows = SCHED_CPU_STRIP_ROWS;
    if (gemm->leaves_rows)
        most_rows = is_wide || has_one_vector ? SCHED_CPU_POINTER_ROWS : SCHED_CPU_LOW_TILE_ROWS;
    if (gemm->launch.is_in_trio)
        most_rows = is_wide ? SCHED_CPU_HIGH_TILE_ROWS : SCHED_CPU_LOW_TILE_ROWS;
    uint32_t rows = cut(n_rows, most_rows, 1);
    return (Tile){rows, most_vectors(gemm, rows)};
}

/* The elements that whole tiles of the product compute, also past its edges. */
static int64_t n_computed(const Gemm *gemm, Tile tile, int64_t n_rows) {
    int64_t width = (int64_t)tile.vectors * gemm->lanes;
    return round_up(n_rows, tile.rows) * round_up(dim_hi(gemm->dims, gemm->columns), width);
}

/* A tile of fewer rows and as many accumulators, if less of it is past the edges. 16 rows are four
 * tiles of 4, or three of 6. */
static Tile fit_rows(const Gemm *gemm, Tile tile, int64_t n_rows) {
    Tile other = {.rows = (uint32_t)ceil_div(n_rows, ceil_div(n_rows, tile.rows) + 1)};
    other.vectors = most_vectors(gemm, other.rows);
    bool is_full = other.rows * other.vectors >= tile.rows * tile.vectors;
    double share = (double)n_computed(gemm, other, n_rows) / (double)n_computed(gemm, tile, n_rows);
    return is_full && share <= SCHED_CPU_TILE_SHARE ? other : tile;
}

typedef struct Block {
    uint32_t rows, columns;
} Block;

static void set_tiles(const Gemm *gemm, Sched *sched, Tile tile, Block block, Block unit) {
    uint32_t width = tile.vectors * sched->lanes;
    sched->cpu_gemm.is_transposed = gemm->is_transposed;
    sched->cpu_gemm.register_m = gemm->is_transposed ? width : tile.rows;
    sched->cpu_gemm.register_n = gemm->is_transposed ? tile.rows : width;
    sched->cpu_gemm.tile_m = gemm->is_transposed ? block.columns : block.rows;
    sched->cpu_gemm.tile_n = gemm->is_transposed ? block.rows : block.columns;
    sched->cpu_gemm.unit_m = gemm->is_transposed ? unit.columns : unit.rows;
    sched->cpu_gemm.unit_n = gemm->is_transposed ? unit.rows : unit.columns;
}

/* A register tile for at most this many rows. */
static Tile choose_fitting_tile(const Gemm *gemm, int64_t n_rows) {
    int64_t n_columns = dim_hi(gemm->dims, gemm->columns);
    Tile tile = choose_tile(gemm, n_rows);
    if (n_columns < 1) return (Tile){tile.rows, 1};
    if (!gemm->has_amx && !gemm->launch.is_in_trio && n_rows > tile.rows &&
        n_rows <= SCHED_CPU_UNIT_TILES * tile.rows && n_rows == dim_hi(gemm->dims, gemm->rows))
        tile = fit_rows(gemm, tile, n_rows);
    int64_t n_across = ceil_div(n_columns, (int64_t)tile.vectors * gemm->lanes);
    tile.vectors = (uint32_t)ceil_div(n_columns, n_across * gemm->lanes);
    return tile;
}

/* Whether the lhs is made by a row kernel of the launch: then a block has all of k. */
static bool is_behind_rows(const Gemm *gemm) {
    return gemm->launch.is_in_trio && !gemm->launch.has_rows;
}

static int64_t block_columns(const Gemm *gemm) {
    int64_t most =
        gemm->has_amx ? SCHED_CPU_AMX_COLUMNS : SCHED_CPU_COLUMNS_BYTES / gemm->acc_bytes;
    return most / gemm->launch.n_gemms;
}

/* The most columns of a unit; all of them if a row kernel follows, or if they are woven. */
static int64_t most_columns(const Gemm *gemm) {
    int64_t all = dim_hi(gemm->dims, gemm->columns), most = block_columns(gemm);
    bool has_all = (gemm->launch.has_rows || gemm->weaves) && !gemm->is_transposed && all > most;
    return has_all ? all + SCHED_CPU_MOST_VECTORS * gemm->lanes : most;
}

/* The most elements of k of a panel of rows. */
static int64_t most_row_depth(const Gemm *gemm) {
    Tile tile = choose_fitting_tile(gemm, dim_hi(gemm->dims, gemm->rows));
    return SCHED_CPU_ROWS_BYTES / gemm->packed_bytes / tile.rows;
}

/* The most elements of k per block: packed columns have a fixed amount of memory, whatever their
 * number. An operand that is not packed comes from memory again in each block of k, so blocks are
 * as long as that memory allows. So they are beside columns of one vector, which take little
 * memory: then rows are read in long runs. */
static int64_t most_depth(const Gemm *gemm, uint32_t columns) {
    int64_t bytes = gemm->has_amx ? SCHED_CPU_AMX_DEPTH_BYTES : SCHED_CPU_DEPTH_BYTES;
    int64_t most = bytes / gemm->packed_bytes, room = most * block_columns(gemm);
    if (is_behind_rows(gemm)) return dim_hi(gemm->dims, gemm->depth) + gemm->lanes;
    if (gemm->launch.is_in_trio) return most;
    if (gemm->leaves_columns) return most_row_depth(gemm);
    if (gemm->leaves_rows && gemm->launch.n_gemms == 1) return room / columns;
    bool has_one_vector = !gemm->is_transposed && dim_hi(gemm->dims, gemm->columns) <= gemm->lanes;
    int64_t deepest = min_i64(room / columns, most_row_depth(gemm));
    if (has_one_vector && gemm->launch.n_gemms == 1 && deepest > most) return deepest;
    return columns > block_columns(gemm) ? min_i64(most, room / columns) : most;
}

/* The most rows of a tile. If a row kernel follows, one thread runs it per unit, so there should be
 * units for several threads, as far as their packing allows. */
static int64_t most_rows(const Gemm *gemm, const Sched *sched, uint32_t columns) {
    int64_t most = SCHED_CPU_PARTIALS_BYTES / gemm->acc_bytes / columns / gemm->launch.n_gemms;
    if (is_behind_rows(gemm)) return SCHED_CPU_TRIO_ROWS;
    if (!gemm->launch.has_rows || gemm->is_transposed) return most;
    bool has_panels = gemm->kernel->panel_columns > 0;
    bool is_one_block = dim_hi(gemm->dims, gemm->depth) <= sched->cpu_gemm.tile_k;
    if (gemm->launch.is_in_trio && is_one_block) return SCHED_CPU_TRIO_ROWS;
    return has_panels || is_one_block ? min_i64(most, SCHED_CPU_LONG_ROWS) : most;
}

/* The vectors of a tile that reads prepared panels: as many as registers allow for all rows, and as
 * go into a panel without rest. */
static uint32_t vectors_of_panel(const Gemm *gemm, uint32_t columns) {
    uint32_t most = choose_fitting_tile(gemm, dim_hi(gemm->dims, gemm->rows)).vectors;
    uint32_t vectors = min_u32(columns / gemm->lanes, most);
    while (columns % (vectors * gemm->lanes)) vectors--;
    return vectors;
}

/* The register tiles of a unit, of at most so many rows. A unit has one tile more rather than that
 * a small rest of the rows is a unit, which packs all columns again. */
static uint32_t n_unit_tiles(const Gemm *gemm, Tile tile, int64_t n_rows) {
    int64_t most = gemm->has_amx ? SCHED_CPU_AMX_UNIT_TILES : SCHED_CPU_UNIT_TILES;
    int64_t n = ceil_div(n_rows, tile.rows), n_units = (n + 1) / most;
    return n < 1 ? 1 : (uint32_t)ceil_div(n, n_units < 1 ? 1 : n_units);
}

/* The unit of a product that has prepared panels, and whose rows are all in one tile. Units of
 * fewer rows cost little, as no column is packed, but read the panels again. Units of fewer columns
 * pack the rows again. */
static Block choose_few_rows_unit(const Gemm *gemm, Tile tile, int64_t n_rows, Block block) {
    int64_t n_tiles = ceil_div(n_rows, tile.rows), panel = gemm->kernel->panel_columns;
    int64_t n_across = ceil_div(dim_hi(gemm->dims, gemm->columns), block.columns);
    int64_t least = gemm->leaves_rows ? panel : SCHED_CPU_PACKED_COLUMNS_BYTES / gemm->acc_bytes;
    bool keeps_rows = n_tiles <= SCHED_CPU_UNIT_TILES && block.columns * n_across >= 2 * least;
    int64_t n_each = n_tiles * n_across / SCHED_CPU_MANY_UNITS;
    n_each = keeps_rows ? n_tiles : n_each < 1 ? 1 : min_i64(n_each, SCHED_CPU_UNIT_TILES);
    int64_t n_units = n_across * ceil_div(n_tiles, n_each), n_parts = 1;
    int64_t few = gemm->has_amx ? 2 * SCHED_CPU_FEW_UNITS : SCHED_CPU_FEW_UNITS;
    while (!gemm->weaves && n_units * n_parts < few && block.columns >= 2 * n_parts * least)
        n_parts *= 2;
    int64_t columns = round_up(ceil_div(block.columns, n_parts), panel);
    return (Block){(uint32_t)n_each * tile.rows, min_u32(block.columns, (uint32_t)columns)};
}

/* Chooses a packed schedule for at most this many rows. Prepared panels have the tile width of all
 * rows. GEMMs that share the loop share the memory of packed columns and partial results. */
static void choose_packed(const Gemm *gemm, Sched *sched, int64_t n_rows) {
    int64_t n_columns = dim_hi(gemm->dims, gemm->columns);
    Tile tile = choose_fitting_tile(gemm, n_rows);
    uint32_t prepared = gemm->kernel->panel_columns;
    if (prepared) tile.vectors = vectors_of_panel(gemm, prepared);
    uint32_t width = tile.vectors * sched->lanes;
    uint32_t columns = cut(n_columns, most_columns(gemm), prepared ? prepared : width);
    sched->cpu_gemm.is_blocked = true;
    sched->cpu_gemm.has_amx = gemm->has_amx;
    sched->unroll = gemm->vector_bytes == WIDE_VECTOR_BYTES ? 1 : 4;
    sched->cpu_gemm.tile_k = cut(dim_hi(gemm->dims, gemm->depth), most_depth(gemm, columns),
                                 gemm->has_amx ? AMX_ROW_BYTES / gemm->packed_bytes : sched->lanes);
    int64_t rows = most_rows(gemm, sched, columns);
    uint32_t unit_rows =
        tile.rows * n_unit_tiles(gemm, tile, n_rows < 1 ? rows : min_i64(n_rows, rows));
    Block block = {cut(n_rows, rows, unit_rows), columns};
    if (gemm->launch.has_rows && gemm->is_transposed) unit_rows = block.rows;
    Block unit = {unit_rows, columns};
    if (prepared && !gemm->launch.has_rows && n_rows > 0 && n_rows <= block.rows) {
        unit = choose_few_rows_unit(gemm, tile, n_rows, block);
        block.rows = cut(n_rows, n_rows + unit.rows, unit.rows);
    }
    set_tiles(gemm, sched, tile, block, unit);
}

/* The batches in sequence that multiply the same rows: a multiple of them begins where the rows
 * change. 0: the rows never change. */
static int64_t n_alike_batches(const Gemm *gemm) {
    const Kernel *kernel = gemm->kernel;
    const IndexTab *tab = scalartab_indices(kernel->scalars);
    uint32_t axes = scalar_get(kernel->scalars, gemm->row_operand)->axes,
             k = kernel->n_parallel - 2;
    int64_t n = 1, extent;
    if (!(axes & ((1u << k) - 1))) return 0;
    for (; k-- > 0 && !(axes >> k & 1); n *= extent)
        if (!dim_is_const(gemm->dims, index_axis_extent(tab, k), &extent)) return 1;
    return n;
}

/* The rows of the image in a unit. A tile of few columns and one vector of windows has few
 * accumulators, and each multiply-add waits for the one before it. So vectors of several rows are
 * side by side, if there are units for several threads. The strips that a tap reads, and the next
 * tap reads again, should stay in the first-level cache. From the second one a vector comes in half
 * the time of a multiply-add, so two rows of one vector gain there too. */
static uint32_t n_strip_rows(const Gemm *gemm, Tile tile, int64_t windows) {
    enum { CHAINS = 8, ELEM_BYTES = 4 };
    int64_t n_batches = dim_hi(gemm->dims, gemm_n_batches(gemm->kernel));
    bool has_all = windows <= (int64_t)tile.vectors * gemm->lanes;
    if (!gemm->is_transposed || gemm->kernel->panel_columns || !has_all) return 1;
    int64_t tap_bytes = ELEM_BYTES * gemm->strips.run *
                        cpu_strips_pitch(&gemm->strips, (uint32_t)windows, gemm->lanes);
    int64_t n_near = SCHED_CPU_NEAR_BYTES / tap_bytes;
    if (n_near < 2) n_near = tile.vectors == 1 ? 2 : 1;
    int64_t n = min_i64(CHAINS / (tile.rows * tile.vectors), n_batches / SCHED_CPU_FEW_UNITS);
    n = min_i64(n, n_near);
    for (int64_t n_alike = n_alike_batches(gemm); n > 1 && n_alike % n;) n--;
    return n < 1 ? 1 : (uint32_t)n;
}

/* The clocks of `n_taps` of a strip across, for one step of k and all windows. Accumulators come
 * from memory and go there again for each row of the image, and the first and the last rows of a
 * unit's outputs have only some of a tile's taps. */
static double sweep_clocks(const Gemm *gemm, const CpuSweep *sweep, uint32_t n_taps, Tile tile,
                           uint32_t columns, int64_t vectors, double n_outputs) {
    enum { TILE_CLOCKS = 30 };
    double steps = (double)cpu_strips_step(&gemm->strips), clocks = 0;
    double n_across = (double)ceil_div(vectors, tile.vectors);
    double apart = (double)sweep->across.reach / (double)sweep->across.n_taps;
    uint32_t n_each = tile.rows / columns;
    for (uint32_t at = 0; at < n_taps; at += n_each) {
        uint32_t n = min_u32(n_each, n_taps - at), rows = n * columns;
        double past = 1 + (n - 1) * apart / n_outputs;
        clocks += past * (cpu_pack_step_clocks(rows, tile.vectors) +
                          (TILE_CLOCKS + rows * tile.vectors) / steps);
    }
    return clocks * n_across;
}

/* The rows of outputs of a sweep, an equal part of an image's. A unit also packs the rows of the
 * image that it shares with its neighbours, so it should have twice as many rows of outputs. */
static int64_t n_swept_rows(const Gemm *gemm, const CpuSweep *sweep, int64_t columns,
                            int64_t vectors) {
    int64_t n_batches = dim_hi(gemm->dims, gemm_n_batches(gemm->kernel));
    int64_t reach = sweep->across.reach;
    int64_t row_bytes = columns * (vectors + 1) * gemm->vector_bytes;
    int64_t n = n_batches / SCHED_CPU_FEW_UNITS;
    if (n < 2 * reach) n = min_i64(2 * reach, (n_batches + 1) / 2);
    n = min_i64(n, SCHED_CPU_SWEEP_BYTES / row_bytes - 2 * reach);
    n = min_i64(n, sweep->n_rows);
    return n < 1 ? 0 : ceil_div(sweep->n_rows, ceil_div(sweep->n_rows, n));
}

/* The register tile of a sweep with the least clocks. False: a unit without one takes less. */
static bool choose_sweep_tile(const Gemm *gemm, const CpuSweep *sweep, Tile plain, uint32_t columns,
                              int64_t n_outputs, int64_t vectors, Tile *best) {
    enum { ROUND = 16 }; /* parts of a clock */
    const CpuStrips *strips = &gemm->strips;
    double element = strips->is_turned ? SCHED_CPU_TURNED_CLOCKS : SCHED_CPU_STRIP_CLOCKS;
    double packed =
        element / ROUND * (double)(vectors * gemm->lanes * strips->n) / (double)strips->n_taps;
    double again = (double)sweep->across.n / (double)sweep->across.n_taps *
                   (1 + (double)sweep->across.reach / (double)n_outputs);
    double least =
        packed + cpu_pack_step_clocks(plain.rows, plain.vectors) *
                     (double)(ceil_div(vectors, plain.vectors) * ceil_div(columns, plain.rows));
    bool gains = false;
    for (uint32_t taps = 1; taps <= sweep->n_most; taps++)
        for (Tile tile = {taps * columns, 1}; tile.vectors <= vectors; tile.vectors++) {
            if ((tile.rows + 1) * tile.vectors + 1 >= n_registers(gemm)) break;
            double own = 0;
            for (uint32_t i = 0; i < sweep->across.n; i++)
                own += sweep_clocks(gemm, sweep, cpu_sweep_taps(sweep, i), tile, columns, vectors,
                                    (double)n_outputs);
            own = own / (double)sweep->across.n_taps + again * packed;
            if (own >= least) continue;
            *best = tile, least = own, gains = true;
        }
    return gains;
}

/* A unit of strips may sweep over the rows of the image. `plain`: its register tile if it does not.
 */
static void choose_sweep(const Gemm *gemm, Sched *sched, Tile plain) {
    Arena *arena = scalartab_arena(gemm->kernel->scalars);
    int64_t columns, windows = dim_hi(gemm->dims, gemm->columns);
    CpuSweep sweep;
    if (!gemm->is_transposed || gemm->kernel->panel_columns ||
        !dim_is_const(gemm->dims, gemm->rows, &columns) || columns > sched->cpu_gemm.unit_n ||
        !cpu_sweep_find(arena, gemm->kernel, &gemm->strips, &sweep))
        return;
    uint32_t most = sched->cpu_gemm.unit_m;
    int64_t vectors = ceil_div(min_i64(windows, most), gemm->lanes);
    int64_t n_rows = n_swept_rows(gemm, &sweep, columns, vectors);
    Tile tile;
    if (n_rows < 2 ||
        !choose_sweep_tile(gemm, &sweep, plain, (uint32_t)columns, n_rows, vectors, &tile))
        return;
    uint32_t width = tile.vectors * gemm->lanes;
    int64_t whole = round_up(min_i64(windows, most), width);
    Block block = {(uint32_t)columns, cut(windows, whole, width)};
    sched->cpu_gemm.sweeps = true;
    sched->cpu_gemm.more_batches = (uint32_t)n_rows - 1;
    sched->cpu_gemm.tile_k = (uint32_t)cpu_strips_step(&gemm->strips);
    set_tiles(gemm, sched, tile, block, block);
}

/* A unit is a part of a row of the image, with all columns that go into a block: each packs the
 * strips again. */
static void choose_strips(const Gemm *gemm, Sched *sched) {
    int64_t n_rows = dim_hi(gemm->dims, gemm->rows), n_columns = dim_hi(gemm->dims, gemm->columns);
    Tile tile = choose_fitting_tile(gemm, n_rows);
    uint32_t prepared = gemm->kernel->panel_columns, most = cpu_strips_width(&gemm->strips);
    if (prepared) tile.vectors = vectors_of_panel(gemm, prepared);
    uint32_t width = tile.vectors * sched->lanes;
    int64_t most_beside =
        gemm->is_transposed ? min_i64(block_columns(gemm), most) : most_columns(gemm);
    sched->cpu_gemm.is_blocked = sched->cpu_gemm.has_strips = true;
    sched->unroll = gemm->vector_bytes == WIDE_VECTOR_BYTES ? 1 : 4;
    uint32_t columns = cut(n_columns, most_beside, prepared ? prepared : width);
    int64_t most_down = SCHED_CPU_PARTIALS_BYTES / gemm->acc_bytes / columns;
    if (!gemm->is_transposed) most_down = min_i64(most_down, most);
    Block block = {cut(n_rows, most_down, tile.rows), columns};
    uint32_t windows =
        gemm->is_transposed ? min_u32(block.columns, (uint32_t)n_columns) : block.rows;
    uint32_t n_batches = n_strip_rows(gemm, tile, n_columns);
    sched->cpu_gemm.more_batches = n_batches - 1;
    sched->cpu_gemm.tile_k =
        (uint32_t)cpu_strips_depth(&gemm->strips, windows, n_batches, sched->lanes);
    set_tiles(gemm, sched, tile, block, block);
    choose_sweep(gemm, sched, tile);
}

static void choose_streamed(const Gemm *gemm, Sched *sched, int64_t n_rows) {
    Tile tile = {.rows = n_rows < 1 ? 1 : (uint32_t)n_rows, .vectors = 1};
    int64_t n_columns = dim_hi(gemm->dims, gemm->columns);
    sched->cpu_gemm.is_blocked = false;
    bool is_wide = gemm->vector_bytes == WIDE_VECTOR_BYTES;
    sched->unroll = is_wide && n_rows > SCHED_CPU_FEW_ROWS ? 2 * SCHED_CPU_STREAM_STEPS
                                                           : SCHED_CPU_STREAM_STEPS;
    sched->cpu_gemm.tile_k = cut(dim_hi(gemm->dims, gemm->depth),
                                 SCHED_CPU_STREAM_DEPTH_BYTES / gemm->acc_bytes, sched->lanes);
    uint32_t unit_bytes =
        gemm->launch.has_rows ? SCHED_CPU_STREAM_COLUMNS_BYTES : SCHED_CPU_STREAM_UNIT_BYTES;
    uint32_t unit_columns = cut(n_columns, unit_bytes / gemm->acc_bytes, sched->lanes);
    uint32_t columns =
        cut(n_columns, SCHED_CPU_STREAM_COLUMNS_BYTES / gemm->acc_bytes, unit_columns);
    set_tiles(gemm, sched, tile, (Block){tile.rows, columns}, (Block){tile.rows, unit_columns});
}

/* Streaming emits the columns' scalar program at many places in the code. */
static bool can_stream(const Gemm *gemm) {
    bool seen[SCHED_CPU_STREAM_SCALARS + 1] = {false};
    const ScalarTab *scalars = gemm->kernel->scalars;
    return scalar_count(scalars) <= SCHED_CPU_STREAM_SCALARS &&
           scalar_cost(scalars, gemm->column_operand, seen) <= SCHED_CPU_STREAM_PRIMS;
}

/* The number of units that have the same rows and columns. Those of a sweep are parts of images. */
static DimId unit_batches(const Gemm *gemm, const CpuGemmSched *sched) {
    const Kernel *kernel = gemm->kernel;
    uint32_t m = gemm_axis_m(kernel), n_each = sched->more_batches + 1;
    if (!sched->sweeps) return dim_ceil_div(gemm->dims, gemm_n_batches(kernel), n_each);
    DimId n = dim_ceil_div(gemm->dims, kernel_axis_extent(kernel, m - 1), n_each);
    for (uint32_t axis = 0; axis + 1 < m; axis++)
        n = dim_mul(gemm->dims, n, kernel_axis_extent(kernel, axis));
    return n;
}

static void set_grid(const Gemm *gemm, Variant *variant) {
    DimTab *dims = gemm->dims;
    const Sched *sched = &variant->sched;
    uint32_t unit_rows = gemm->is_transposed ? sched->cpu_gemm.unit_n : sched->cpu_gemm.unit_m;
    uint32_t unit_columns = gemm->is_transposed ? sched->cpu_gemm.unit_m : sched->cpu_gemm.unit_n;
    DimId down = dim_ceil_div(dims, gemm->rows, unit_rows);
    DimId across = dim_ceil_div(dims, gemm->columns, unit_columns);
    DimId blocks = dim_mul(dims, down, across);
    variant->grid = dim_mul(dims, unit_batches(gemm, &sched->cpu_gemm), blocks);
}

/* Adds candidates for few rows, one per bound on the number of rows. Columns are streamed, or come
 * from prepared panels. */
static void add_few_rows(const Gemm *gemm, Candidates *list) {
    static const int64_t bounds[] = {SCHED_CPU_FEW_ROWS, 4 * SCHED_CPU_FEW_ROWS};
    int64_t most = dim_hi(gemm->dims, gemm->rows);
    bool has_panels = gemm->kernel->panel_columns > 0;
    if (gemm->has_strips || gemm->launch.is_in_trio) return;
    if (!has_panels && (gemm->leaves_columns || !can_stream(gemm))) return;
    for (uint32_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        Variant *variant = candidate_at_most(list, gemm->rows, bounds[i]);
        if (!variant) continue;
        (has_panels ? choose_packed : choose_streamed)(gemm, &variant->sched,
                                                       min_i64(most, bounds[i]));
        set_grid(gemm, variant);
    }
}

/* Adds a packed candidate, if there is one. */
static void add_packed(const Gemm *gemm, Variant *variant) {
    if (!variant) return;
    if (gemm->has_strips)
        choose_strips(gemm, &variant->sched);
    else
        choose_packed(gemm, &variant->sched, dim_hi(gemm->dims, gemm->rows));
    set_grid(gemm, variant);
}

/* Strips are of the lhs. */
static void leave_operands(Gemm *gemm) {
    bool has_row_strips = gemm->has_strips && !gemm->is_transposed;
    bool has_column_strips = gemm->has_strips && gemm->is_transposed;
    Arena *arena = scalartab_arena(gemm->kernel->scalars);
    gemm->leaves_rows = !has_row_strips &&
                        cpu_pack_leaves_rows(arena, gemm->kernel, gemm->is_transposed, gemm->lanes);
    gemm->leaves_columns =
        !has_column_strips && cpu_pack_leaves_columns(gemm->kernel, gemm->is_transposed);
}

static Gemm gemm_of(const Kernel *kernel, const Target *target) {
    const IndexTab *tab = scalartab_indices(kernel->scalars);
    const Reduce *reduce = &kernel->reduces.data[0];
    DimTab *dims = indextab_dims(tab);
    DimId m = index_axis_extent(tab, gemm_axis_m(kernel));
    DimId n = index_axis_extent(tab, gemm_axis_n(kernel));
    Gemm gemm = {.kernel = kernel,
                 .dims = dims,
                 .rows = m,
                 .columns = n,
                 .depth = index_axis_extent(tab, gemm_axis_k(kernel)),
                 .row_operand = reduce->lhs,
                 .column_operand = reduce->rhs,
                 .acc_bytes = dtype_bytes(reduce->acc),
                 .packed_bytes = dtype_bytes(reduce->acc),
                 .vector_bytes = target->vector_bytes,
                 .launch = {.n_gemms = 1}};
    Arena *arena = scalartab_arena(kernel->scalars);
    gemm.lanes = gemm.vector_bytes / gemm.acc_bytes;
    gemm.has_strips = cpu_pack_has_strips(arena, kernel, gemm.lanes, &gemm.strips);
    if (cpu_pack_transposes(arena, kernel, gemm.lanes)) {
        gemm.is_transposed = true;
        gemm.rows = n;
        gemm.columns = m;
        gemm.row_operand = reduce->rhs;
        gemm.column_operand = reduce->lhs;
    }
    leave_operands(&gemm);
    return gemm;
}

/* Takes tile registers, if the machine has them, the kernel suits them and its operands can be
 * packed as they need. */
static void take_amx(const Scheduler *s, Gemm *gemm) {
    Arena *arena = scalartab_arena(gemm->kernel->scalars);
    const Reduce *reduce = &gemm->kernel->reduces.data[0];
    bool may = s->target->has_amx && cpu_amx_multiplies(gemm->kernel, s->plan->graph->is_fast);
    if (!may || gemm->is_transposed || dim_hi(gemm->dims, gemm->columns) < AMX_ROWS) return;
    CpuPack rows = cpu_pack_rows(arena, gemm->kernel, reduce->lhs, gemm_axis_m(gemm->kernel),
                                 CPU_AMX_ROW_LANES, true);
    if (rows.way == PACK_OWN_AXIS) return;
    gemm->has_amx = true;
    gemm->has_strips = gemm->leaves_rows = gemm->leaves_columns = false;
    gemm->packed_bytes = dtype_bytes(scalar_get(gemm->kernel->scalars, reduce->lhs)->dtype);
}

static GemmPanel panel_of(const Kernel *kernel, const Target *level) {
    Gemm gemm = gemm_of(kernel, level);
    Tile tile = choose_fitting_tile(&gemm, dim_hi(gemm.dims, gemm.rows));
    return (GemmPanel){.axis = gemm.is_transposed ? gemm_axis_m(kernel) : gemm_axis_n(kernel),
                       .width = tile.vectors * gemm.lanes};
}

/* Levels of fewer lanes multiply a part of a panel at a time. */
bool sched_cpu_gemm_panel(const Kernel *kernel, const Target *target, GemmPanel *panel) {
    *panel = panel_of(kernel, target_level(target, 0));
    bool all_agree = true;
    for (uint32_t i = 1; i < target_n_levels(target); i++)
        all_agree = all_agree && panel_of(kernel, target_level(target, i)).axis == panel->axis;
    return all_agree;
}

/* The coefficient of the axis in an index of axes alone; DIM_NONE: the axis does not occur. */
static DimId axis_stride(const IndexTab *tab, IndexExpr expr, uint32_t axis) {
    for (uint32_t i = 0; i < expr.n_terms; i++)
        if (index_atom(tab, expr.terms[i].atom).axis == axis) return expr.terms[i].coefficient;
    return DIM_NONE;
}

/* Whether the lhs operands of both are loads of the same elements. */
static bool have_one_left(const Kernel *a, const Kernel *b) {
    const Scalar *load = scalar_get(a->scalars, a->reduces.data[0].lhs);
    const Scalar *other = scalar_get(b->scalars, b->reduces.data[0].lhs);
    if (load->kind != SCALAR_LOAD || other->kind != SCALAR_LOAD || load->guard || other->guard ||
        load->buffer != other->buffer)
        return false;
    const IndexTab *tab = scalartab_indices(a->scalars), *other_tab = scalartab_indices(b->scalars);
    IndexExpr own = index_expr(tab, load->index), its = index_expr(other_tab, other->index);
    bool is_same = own.offset == its.offset && own.n_terms == its.n_terms &&
                   index_is_affine(tab, load->index) && index_is_affine(other_tab, other->index);
    for (uint32_t i = 0; i < own.n_terms && is_same; i++)
        is_same = axis_stride(other_tab, its, index_atom(tab, own.terms[i].atom).axis) ==
                  own.terms[i].coefficient;
    return is_same;
}

/* With few rows, a GEMM's units divide its columns; a row kernel needs all columns in one unit,
 * which would undo this. */
int64_t sched_cpu_gemm_widest_rows(const Kernel *kernel, const Target *target) {
    Gemm gemm = gemm_of(kernel, target);
    return SCHED_CPU_WIDEST_ROW_BYTES / gemm.acc_bytes;
}

bool sched_cpu_gemm_is_in_trio(const Kernel *kernel, const Target *target) {
    const DimTab *dims = indextab_dims(scalartab_indices(kernel->scalars));
    bool may = !kernel->choice && kernel->segment_axis == NO_AXIS &&
               dim_lo(dims, kernel_axis_extent(kernel, gemm_axis_m(kernel))) >=
                   SCHED_CPU_GEMM_ONLINE_LEAST_ROWS;
    for (uint32_t i = 0; i < target_n_levels(target); i++) {
        Gemm gemm = gemm_of(kernel, target_level(target, i));
        may = may && !gemm.is_transposed && !gemm.leaves_rows && !gemm.leaves_columns &&
              !gemm.has_strips;
    }
    for (uint32_t v = 0; v < kernel->n_variants; v++) {
        const Sched *sched = &kernel->variants[v].sched;
        may = may && template_info(sched->template)->joins_gemms && !sched->cpu_gemm.has_amx;
    }
    return may;
}

int64_t sched_cpu_gemm_stack_bytes(const Kernel *kernel, const Sched *sched) {
    const CpuGemmSched *own = &sched->cpu_gemm;
    const DimTab *dims = indextab_dims(scalartab_indices(kernel->scalars));
    int64_t k = dim_hi(dims, kernel_n_reduced(kernel)), depth = own->tile_k + sched->lanes;
    int64_t n_partials = k > own->tile_k ? own->tile_m : own->register_m;
    int64_t n = depth * round_up(own->register_m, sched->lanes) + n_partials * own->tile_n;
    if (!kernel->panel_columns) n += depth * own->tile_n;
    return n * dtype_bytes(kernel->reduces.data[0].acc);
}

/* Without columns, a value passed to another kernel would have no row axis. */
bool sched_cpu_gemm_goes_with(const Kernel *a, const Kernel *b) {
    const DimTab *dims = indextab_dims(scalartab_indices(a->scalars));
    return have_one_left(a, b) && a->reduces.data[0].acc == b->reduces.data[0].acc &&
           kernel_axis_extent(a, gemm_axis_k(a)) == kernel_axis_extent(b, gemm_axis_k(b)) &&
           dim_hi(dims, kernel_axis_extent(a, gemm_axis_n(a))) > 0;
}

/* Whether the results of a strided transposed convolution, whose columns have phases, are few
 * enough for a unit to have all columns of some rows. */
static bool has_woven_stores(const Gemm *gemm) {
    enum { MOST_COLUMNS_BYTES = 4096 };
    Arena *arena = scalartab_arena(gemm->kernel->scalars);
    StoreWeave weave;
    return !gemm->is_transposed && !gemm->launch.has_rows && gemm->launch.n_gemms == 1 &&
           dim_hi(gemm->dims, gemm->columns) * gemm->acc_bytes <= MOST_COLUMNS_BYTES &&
           !kernel_store_run(arena, gemm->kernel, gemm_axis_m(gemm->kernel)) &&
           cpu_pack_weaves(arena, gemm->kernel, gemm->lanes, &weave);
}

static void list_variants(const Scheduler *s, Candidates *list) {
    Gemm gemm = gemm_of(s->kernel, s->target);
    gemm.launch = s->launch;
    gemm.has_strips = gemm.has_strips && !s->launch.has_rows && s->launch.n_gemms == 1;
    leave_operands(&gemm);
    gemm.weaves = has_woven_stores(&gemm);
    list->base.sched.template = TEMPLATE_CPU_GEMM;
    list->base.sched.lanes = gemm.lanes;
    add_few_rows(&gemm, list);
    take_amx(s, &gemm);
    add_packed(&gemm, candidate_always(list));
}

const TemplateSchedule schedule_cpu_gemm = {.list = list_variants};
