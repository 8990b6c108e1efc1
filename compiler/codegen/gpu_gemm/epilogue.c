/* Tiles and epilogues of GPU GEMMs. See gemm.h. */
#include "codegen/gpu_gemm/gemm.h"

#include "codegen/scalar/point_index.h"

#include <string.h>

enum { MAX_STORES = 64 };
enum { CHEAP = 8, MODERATE = 40 }; /* costs of an epilogue, in prims */
/* Registers for loads of rows under way, beside accumulators that are still to be drained. */
enum { MOST_EARLY_WORDS = 32 };

bool gpu_gemm_axis_is_multiple(const Lower *lower, uint32_t axis, uint32_t lanes) {
    DimId extent = kernel_axis_extent(lower->kernel, axis);
    const Variant *variant = lower->variant;
    if (dim_multiple(lower_dims(lower), extent) % lanes == 0) return true;
    return extent == variant->multiple_dim && variant->multiple_of % lanes == 0;
}

/* The most lanes, at most `most`, a power of two, that the epilogue takes along n. */
static uint32_t store_lanes(const Lower *lower, uint32_t most) {
    uint32_t n = gemm_axis_n(lower->kernel);
    while (most > 1 && !gpu_gemm_axis_is_multiple(lower, n, most)) most /= 2;
    return dim_equals_const(lower_dims(lower), kernel_axis_extent(lower->kernel, n), 0) ? 1 : most;
}

bool gpu_gemm_reads_right_once(const Lower *lower) {
    const Kernel *kernel = lower->kernel;
    const Sched *sched = &lower->variant->sched;
    ScalarId factor = gemm_unrounded(kernel, kernel->reduces.data[0].factor);
    const Scalar *s = scalar_get(kernel->scalars, factor);
    if (s->kind != SCALAR_LOAD || lower->n_parts > 1 || lower->n_codes > 1) return false;
    for (uint32_t axis = 0; axis < gemm_axis_m(kernel); axis++)
        if (!(s->axes >> axis & 1) &&
            dim_hi(lower_dims(lower), kernel_axis_extent(lower->kernel, axis)) > 1)
            return false;
    uint32_t rows = sched->cluster > 1 ? sched->tile_m * sched->cluster : sched->tile_m;
    return dim_hi(lower_dims(lower), kernel_axis_extent(lower->kernel, gemm_axis_m(kernel))) <=
           rows;
}

/* Blocks. */

/* Splits a tile's number within its batch: down a group of GEMM_GROUP_ROWS rows of tiles (the last
 * may have fewer), then to the next column. */
static void split_tile(GemmBlock *block, LLVMValueRef tile, const GemmTiles *tiles) {
    Lower *lower = block->lower;
    LLVMBuilderRef builder = lower->unit->builder;
    DimTab *dims = lower_dims(lower);
    uint32_t m = gemm_axis_m(lower->kernel);
    LLVMValueRef rows =
        lower_dim(lower, dim_ceil_div(dims, kernel_axis_extent(lower->kernel, m), tiles->m));
    LLVMValueRef columns = lower_dim(lower, tiles->across);
    LLVMValueRef eight = lower_index_const(lower, GEMM_GROUP_ROWS);
    LLVMValueRef per_group = LLVMBuildMul(builder, columns, eight, "");
    LLVMValueRef group = LLVMBuildUDiv(builder, tile, per_group, "");
    LLVMValueRef in_group = LLVMBuildURem(builder, tile, per_group, "");
    LLVMValueRef first = LLVMBuildMul(builder, group, eight, "");
    LLVMValueRef left = LLVMBuildSub(builder, rows, first, "");
    LLVMValueRef is_last = LLVMBuildICmp(builder, LLVMIntULT, left, eight, "");
    LLVMValueRef size = LLVMBuildSelect(builder, is_last, left, eight, "");
    LLVMValueRef row = LLVMBuildURem(builder, in_group, size, "");
    row = LLVMBuildAdd(builder, first, row, "");
    LLVMValueRef column = LLVMBuildUDiv(builder, in_group, size, "");
    block->m0 = LLVMBuildMul(builder, row, lower_index_const(lower, tiles->m), "");
    block->n0 = LLVMBuildMul(builder, column, lower_index_const(lower, tiles->n), "");
    if (!dim_equals_const(dims, tiles->begin, 0))
        block->n0 = LLVMBuildAdd(builder, block->n0, lower_dim(lower, tiles->begin), "");
}

/* For what follows in the same blocks. */
static void note_tile(const GemmBlock *block) {
    BlockTile *tile = block->lower->tile;
    if (tile && !tile->m0) *tile = gpu_gemm_tile(block);
}

BlockTile gpu_gemm_tile(const GemmBlock *block) {
    const Unit *unit = block->lower->unit;
    LLVMBuilderRef builder = unit->builder;
    BlockTile tile = {.n_rows = block->lower->variant->sched.tile_m};
    tile.m0 = unit_index_cast(unit, block->m0, unit->i64);
    tile.n0 = unit_index_cast(unit, block->n0, unit->i64);
    tile.m = unit_index_cast(unit, block->m, unit->i64);
    tile.first_row = tile.m0;
    if (!block->batch) return tile;
    LLVMValueRef before =
        LLVMBuildMul(builder, unit_index_cast(unit, block->batch, unit->i64), tile.m, "");
    tile.first_row = LLVMBuildAdd(builder, before, tile.m0, "");
    return tile;
}

GemmBlock gpu_gemm_block(Lower *lower) {
    const Sched *sched = &lower->variant->sched;
    LLVMValueRef tile = gpu_block(lower);
    if (sched->engine == GEMM_GEMV && sched->cluster > 1)
        tile =
            LLVMBuildUDiv(lower->unit->builder, tile, lower_index_const(lower, sched->cluster), "");
    GemmTiles tiles = gpu_gemm_tiles(lower, sched->tile_m);
    GemmBlock block = gpu_gemm_block_at(lower, tile, &tiles);
    note_tile(&block);
    return block;
}

GemmTiles gpu_gemm_tiles(const Lower *lower, uint32_t rows) {
    uint32_t n = gemm_axis_n(lower->kernel), columns = lower->variant->sched.tile_n;
    DimTab *dims = lower_dims(lower);
    return (GemmTiles){.m = rows,
                       .n = columns,
                       .begin = dim_const(dims, 0),
                       .across = dim_ceil_div(dims, kernel_axis_extent(lower->kernel, n), columns),
                       .is_whole = gpu_gemm_axis_is_multiple(lower, n, columns)};
}

GemmBlock gpu_gemm_block_at(Lower *lower, LLVMValueRef tile, const GemmTiles *tiles) {
    Unit *unit = lower->unit;
    LLVMBuilderRef builder = unit->builder;
    const Kernel *kernel = lower->kernel;
    DimTab *dims = lower_dims(lower);
    DimId m = kernel_axis_extent(lower->kernel, gemm_axis_m(kernel));
    DimId n = kernel_axis_extent(lower->kernel, gemm_axis_n(kernel));
    GemmBlock block = {.lower = lower,
                       .thread = gpu_thread(unit),
                       .is_whole = tiles->is_whole,
                       .point = point_new(lower, 1)};
    block.m = lower_dim(lower, m);
    block.n = lower_dim(lower, n);
    block.k = lower_dim(lower, kernel_axis_extent(lower->kernel, gemm_axis_k(kernel)));
    if (kernel->n_parallel > 2) {
        DimId down = dim_ceil_div(dims, m, tiles->m);
        LLVMValueRef n_tiles = lower_dim(lower, dim_mul(dims, down, tiles->across));
        block.batch = LLVMBuildUDiv(builder, tile, n_tiles, "");
        tile = LLVMBuildURem(builder, tile, n_tiles, "");
        lower_split(lower, block.batch, 0, kernel->n_parallel - 2, &block.point);
    }
    split_tile(&block, tile, tiles);
    return block;
}

/* Epilogues. */

/* Outputs on their way to memory: everything is computed, nothing stored. */
typedef struct Pending {
    Point point;
    LLVMValueRef exists; /* i1, or NULL: inside the extents */
} Pending;

/* Whether (row, column) is inside; NULL when that is certain. */
static LLVMValueRef is_inside(const GemmBlock *block, LLVMValueRef row, LLVMValueRef column) {
    const Lower *lower = block->lower;
    LLVMBuilderRef builder = lower->unit->builder;
    const Sched *sched = &lower->variant->sched;
    LLVMValueRef inside = NULL;
    uint32_t rows = sched->tile_m;
    if (sched->engine == GEMM_WGMMA && sched->cluster > 1) rows *= sched->cluster;
    if (!gpu_gemm_axis_is_multiple(lower, gemm_axis_m(lower->kernel), rows))
        inside = LLVMBuildICmp(builder, LLVMIntULT, row, block->m, "");
    if (block->is_whole) return inside;
    LLVMValueRef in_row = LLVMBuildICmp(builder, LLVMIntULT, column, block->n, "");
    return inside ? LLVMBuildAnd(builder, inside, in_row, "") : in_row;
}

static LLVMValueRef rounded(const Lower *lower, LLVMValueRef value) {
    const Reduce *reduce = &lower->kernel->reduces.data[0];
    return convert_value(&lower->unit->math, value, unit_convert_type(reduce->acc),
                         unit_convert_type(reduce->result));
}

/* Loads and epilogue of one row: `value` is the results', `early` what was loaded before. The
 * `n_before` phases before this one lie before it. */
static Pending compute_outputs(const GemmPhase *phase, LLVMValueRef row, LLVMValueRef value,
                               const LLVMValueRef *early, Pending *before, uint32_t n_before) {
    const GemmBlock *block = &phase->block;
    const GemmColumn *column = &phase->column;
    Lower *lower = block->lower;
    const Kernel *kernel = lower->kernel;
    LLVMValueRef at = column->point.axis[gemm_axis_n(kernel)];
    Pending pending = {.point = point_inside(&column->point)};
    pending.exists = n_before ? before->exists : is_inside(block, row, at);
    Point *point = &pending.point;
    point->axis[gemm_axis_m(kernel)] = row;
    point->active = pending.exists;
    for (uint32_t i = 0; i < column->n_early; i++) point->values[column->early[i]] = early[i];
    for (uint32_t i = 0; i < n_before; i++) point_take_passed(point, &before[i].point);
    point->results = arena_array(lower->unit->arena, LLVMValueRef, kernel->reduces.n);
    point->results[0] = value;
    point_prepare_stores(point, kernel->row_stores.data, kernel->row_stores.n);
    return pending;
}

/* Of all phases that run at once. */
static void store_outputs(Pending *pending, uint32_t n_phases) {
    Lower *lower = pending->point.lower;
    If exists = {NULL};
    if (pending->exists) exists = if_begin(lower->unit, lower->function, pending->exists);
    for (uint32_t p = 0; p < n_phases; p++) {
        const Kernel *kernel = pending[p].point.lower->kernel;
        for (uint32_t i = 0; i < kernel->row_stores.n; i++)
            point_store(&pending[p].point, &kernel->row_stores.data[i]);
    }
    if (exists.after) if_end(lower->unit, &exists);
}

static Point epilogue_point(const GemmBlock *block, LLVMValueRef column, uint32_t lanes) {
    Point point = point_inside(&block->point);
    point.lanes = lanes;
    point.lane_axis = gemm_axis_n(block->lower->kernel);
    point.axis[point.lane_axis] = column;
    return point;
}

static uint32_t list_stored(const Kernel *kernel, ScalarId *values) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < kernel->row_stores.n && n < MAX_STORES; i++)
        values[n++] = kernel->row_stores.data[i].value;
    return n;
}

/* What depends on the column alone is computed before the loop over rows. */
static void prepare_column(const GemmBlock *block, Point *point) {
    const Kernel *kernel = block->lower->kernel;
    ScalarId roots[MAX_STORES];
    uint32_t n = list_stored(kernel, roots), row_axis = 1u << gemm_axis_m(kernel);
    if (!block->is_whole)
        point->active = LLVMBuildICmp(block->lower->unit->builder, LLVMIntULT,
                                      point->axis[point->lane_axis], block->n, "");
    point_prepare(point, roots, n, row_axis);
}

static LLVMValueRef load_part(const GemmBlock *block, const GemmPart *part, LLVMValueRef row,
                              LLVMValueRef column, uint32_t lanes) {
    const Unit *unit = block->lower->unit;
    LLVMBuilderRef builder = unit->builder;
    const Reduce *reduce = &block->lower->kernel->reduces.data[0];
    Dtype dtype = part->is_rounded ? reduce->result : reduce->acc;
    LLVMValueRef at = LLVMBuildMul(builder, row, unit_i32(unit, part->pitch), "");
    at = LLVMBuildAdd(builder, at, column, "");
    LLVMValueRef pointer = gpu_shared_at(unit, part->shared, unit_value_type(unit, dtype, 1), at);
    LLVMValueRef load = LLVMBuildLoad2(builder, unit_value_type(unit, dtype, lanes), pointer, "");
    LLVMSetAlignment(load, lanes * dtype_bytes(dtype) < 16 ? lanes * dtype_bytes(dtype) : 16);
    return load;
}

/* The same where all rows of the part lie together: rows a constant distance apart stay so. */
static LLVMValueRef row_of_run(const GemmBlock *block, LLVMValueRef row) {
    LLVMBuilderRef builder = block->lower->unit->builder;
    int64_t constant;
    row = gpu_index(block->lower, point_without_constant(row, &constant));
    row = LLVMBuildAdd(builder, block->m0, row, "");
    LLVMValueRef ahead = lower_index_const(block->lower, constant);
    return constant ? LLVMBuildAdd(builder, row, ahead, "") : row;
}

/* The row of the matrix that row `row` (i32) of the part is. */
static LLVMValueRef row_of_part(const GemmBlock *block, const GemmPart *part, LLVMValueRef row) {
    const Lower *lower = block->lower;
    const Unit *unit = lower->unit;
    LLVMBuilderRef builder = unit->builder;
    if (part->run >= part->n_rows && !part->first_row) return row_of_run(block, row);
    LLVMValueRef run = LLVMBuildUDiv(builder, row, unit_i32(unit, part->run), "");
    LLVMValueRef in_run = LLVMBuildAnd(builder, row, unit_i32(unit, (int64_t)part->run - 1), "");
    LLVMValueRef at = LLVMBuildMul(builder, run, unit_i32(unit, part->run_stride), "");
    at = LLVMBuildAdd(builder, at, in_run, "");
    if (part->first_row) at = LLVMBuildAdd(builder, at, part->first_row, "");
    return LLVMBuildAdd(builder, block->m0, gpu_index(lower, at), "");
}

GemmColumn gpu_gemm_column(const GemmBlock *block, LLVMValueRef in_tile, uint32_t lanes) {
    LLVMValueRef at = gpu_index(block->lower, in_tile);
    at = LLVMBuildAdd(block->lower->unit->builder, block->n0, at, "");
    GemmColumn column = {.point = epilogue_point(block, at, lanes), .in_part = in_tile};
    prepare_column(block, &column.point);
    return column;
}

/* Where a column keeps value `i`: its position, whether it exists, then scalars. */
static LLVMValueRef *column_slot(Point *point, uint32_t i) {
    if (i == 0) return &point->axis[point->lane_axis];
    return i == 1 ? &point->active : &point->values[i - 1];
}

/* Whether it is the column's own: there, not the block's, and no constant. */
static bool is_columns_own(const GemmBlock *block, LLVMValueRef value, uint32_t i) {
    return value && !LLVMIsConstant(value) && (i < 2 || value != block->point.values[i - 1]);
}

uint32_t gpu_gemm_column_values(const GemmBlock *block, const GemmColumn *column,
                                LLVMValueRef *values, uint32_t most) {
    const Lower *lower = block->lower;
    Point point = column->point;
    uint32_t n = 0;
    for (uint32_t i = 0; i < scalar_count(lower->kernel->scalars) + 2; i++) {
        LLVMValueRef value = *column_slot(&point, i);
        if (!is_columns_own(block, value, i)) continue;
        if (n < most) values[n] = value;
        n++;
    }
    return n;
}

GemmColumn gpu_gemm_column_with(const GemmBlock *block, const GemmColumn *column,
                                const LLVMValueRef *values) {
    GemmColumn with = *column;
    with.point = point_inside(&column->point);
    uint32_t n = 0;
    for (uint32_t i = 0; i < scalar_count(block->lower->kernel->scalars) + 2; i++) {
        LLVMValueRef *slot = column_slot(&with.point, i);
        if (is_columns_own(block, *slot, i)) *slot = values[n++];
    }
    return with;
}

/* Whether one of the kernels that run at once makes what is to be loaded. */
static bool is_made_by(const Lower *phases, uint32_t n_phases, const Scalar *load) {
    for (uint32_t p = 0; p < n_phases; p++) {
        const Kernel *kernel = phases[p].kernel;
        for (uint32_t i = 0; i < kernel->row_stores.n; i++)
            if (kernel->row_stores.data[i].buffer == load->buffer) return true;
    }
    return false;
}

void gpu_gemm_load_early(GemmPhase *phases, uint32_t n_phases) {
    ScalarId stored[MAX_STORES], loads[GEMM_MAX_EARLY_LOADS];
    for (uint32_t p = 0; p < n_phases; p++) {
        GemmColumn *column = &phases[p].column;
        const Kernel *kernel = phases[p].block.lower->kernel;
        uint32_t n = list_stored(kernel, stored);
        n = point_list_loads(&column->point, stored, n, loads, GEMM_MAX_EARLY_LOADS);
        column->n_early = 0;
        for (uint32_t i = 0; i < n; i++)
            if (!is_made_by(phases->block.lower, n_phases, scalar_get(kernel->scalars, loads[i])))
                column->early[column->n_early++] = loads[i];
    }
}

/* Loads that a row begins early, in all phases. */
static uint32_t n_early_loads(const GemmRows *rows) {
    uint32_t n = 0;
    for (uint32_t p = 0; p < rows->n_phases; p++) n += rows->phases[p].column.n_early;
    return n;
}

static LLVMValueRef row_ahead(const GemmRows *rows, LLVMValueRef row, uint32_t n_steps) {
    const Unit *unit = rows->phases->block.lower->unit;
    return LLVMBuildAdd(unit->builder, row, unit_i32(unit, (int64_t)rows->step * n_steps), "");
}

static void load_row_early(const GemmPhase *phase, LLVMValueRef row, LLVMValueRef *values) {
    const Kernel *kernel = phase->block.lower->kernel;
    const GemmColumn *column = &phase->column;
    Point point = point_inside(&column->point);
    point.active = is_inside(&phase->block, row, point.axis[gemm_axis_n(kernel)]);
    point.axis[gemm_axis_m(kernel)] = row;
    for (uint32_t i = 0; i < column->n_early; i++)
        values[i] = point_value(&point, column->early[i]);
}

/* Begins the loads of an iteration's rows, the first of which is `first` (i32, in the part). */
static void load_phase_early(const GemmRows *rows, const GemmPhase *phase, LLVMValueRef first,
                             LLVMValueRef *values) {
    uint32_t n_early = n_early_loads(rows);
    for (uint32_t u = 0; u < rows->unroll && phase->column.n_early; u++) {
        LLVMValueRef row = row_of_part(&phase->block, rows->part, row_ahead(rows, first, u));
        load_row_early(phase, row, values + (size_t)u * n_early);
    }
}

/* There may be no such rows: then the part's first ones are loaded, which nobody uses. */
static void load_early(const GemmRows *rows, LLVMValueRef first, LLVMValueRef *values) {
    const Unit *unit = rows->phases->block.lower->unit;
    LLVMBuilderRef builder = unit->builder;
    LLVMValueRef n_rows = unit_i32(unit, rows->part->n_rows);
    if (rows->part->n_next) n_rows = LLVMBuildAdd(builder, n_rows, rows->part->n_next, "");
    LLVMValueRef is_there = LLVMBuildICmp(builder, LLVMIntULT, first, n_rows, "");
    first = LLVMBuildSelect(builder, is_there, first, unit_i32(unit, 0), "");
    for (uint32_t p = 0; p < rows->n_phases; p++) {
        load_phase_early(rows, &rows->phases[p], first, values);
        values += rows->phases[p].column.n_early;
    }
}

/* Every phase's outputs of one row. */
static void compute_row(const GemmRows *rows, LLVMValueRef row, const LLVMValueRef *early,
                        Pending *pending) {
    for (uint32_t p = 0; p < rows->n_phases; p++) {
        const GemmPhase *phase = &rows->phases[p];
        const Unit *unit = phase->block.lower->unit;
        LLVMValueRef column = phase->column.in_part;
        const GemmPart *part = rows->part;
        uint32_t between = part->between ? part->between : part->n_columns;
        LLVMValueRef before = unit_i32(unit, (int64_t)p * between);
        if (p) column = LLVMBuildAdd(unit->builder, column, before, "");
        LLVMValueRef value = load_part(&phase->block, part, row, column, phase->column.point.lanes);
        if (!part->is_rounded) value = rounded(phase->block.lower, value);
        LLVMValueRef at = row_of_part(&phase->block, part, row);
        pending[p] = compute_outputs(phase, at, value, early, pending, p);
        early += phase->column.n_early;
    }
}

/* Registers that a row's early loads wait in. */
static uint32_t early_words(const GemmPhase *phases, uint32_t n_phases) {
    uint32_t n = 0;
    for (uint32_t p = 0; p < n_phases; p++) {
        const GemmColumn *column = &phases[p].column;
        for (uint32_t i = 0; i < column->n_early; i++) {
            const ScalarTab *scalars = phases[p].block.lower->kernel->scalars;
            uint32_t bytes = dtype_bytes(scalar_get(scalars, column->early[i])->dtype);
            n += (column->point.lanes * bytes + 3) / 4;
        }
    }
    return n;
}

GemmRows gpu_gemm_rows(const GemmPhase *phases, uint32_t n_phases, const GemmPart *part,
                       LLVMValueRef first, uint32_t step, uint32_t unroll) {
    uint32_t n_steps = part->n_rows / step;
    uint32_t words = early_words(phases, n_phases);
    while (unroll > 1 && (n_steps % unroll || unroll * words > MOST_EARLY_WORDS)) unroll /= 2;
    return (GemmRows){.phases = phases,
                      .n_phases = n_phases,
                      .part = part,
                      .first = first,
                      .step = step,
                      .unroll = n_steps ? unroll : 1};
}

uint32_t gpu_gemm_begin_rows(const GemmRows *rows, LLVMValueRef *values) {
    load_early(rows, rows->first, values);
    return rows->unroll * n_early_loads(rows);
}

/* What each iteration loads early is begun an iteration before, since the next one's results depend
 * on it but this one's do not. */
void gpu_gemm_epilogue_rows(const GemmRows *rows, LLVMValueRef *values) {
    Lower *lower = rows->phases->block.lower;
    Unit *unit = lower->unit;
    uint32_t unroll = rows->unroll, n_early = n_early_loads(rows);
    LLVMValueRef next[GEMM_MAX_EARLY_VALUES];
    Loop loop = loop_begin(unit, lower->function, rows->first, unit_i32(unit, rows->part->n_rows),
                           unit_i32(unit, (int64_t)rows->step * unroll));
    loop_carry(unit, &loop, values, unroll * n_early);
    load_early(rows, row_ahead(rows, loop.index, unroll), next);
    Pending pending[GEMM_MAX_UNROLL][GEMM_MAX_PHASES];
    for (uint32_t u = 0; u < unroll; u++)
        compute_row(rows, row_ahead(rows, loop.index, u), values + u * n_early, pending[u]);
    for (uint32_t u = 0; u < unroll; u++) store_outputs(pending[u], rows->n_phases);
    loop_end_carry(unit, &loop, next, unroll * n_early);
    memcpy(values, next, unroll * n_early * sizeof *next);
}

uint32_t gpu_gemm_lanes(const GemmBlock *block, uint32_t most) {
    const Lower *lower = block->lower;
    uint32_t vector = 16 / dtype_bytes(lower->kernel->reduces.data[0].acc);
    if (lower->variant->sched.lanes < vector) vector = lower->variant->sched.lanes;
    return store_lanes(lower, vector < most ? vector : most);
}

uint32_t gpu_gemm_rows_at_once(const Lower *lower) {
    const Kernel *kernel = lower->kernel;
    bool *seen = scalar_marks(kernel->scalars);
    uint32_t cost = 0;
    for (uint32_t i = 0; i < kernel->row_stores.n; i++)
        cost += scalar_cost(kernel->scalars, kernel->row_stores.data[i].value, seen);
    return cost <= CHEAP ? 4 : cost <= MODERATE ? 2 : 1;
}

void gpu_gemm_epilogue(const GemmBlock *block, const GemmPart *part) {
    Lower *lower = block->lower;
    const Unit *unit = lower->unit;
    LLVMBuilderRef builder = unit->builder;
    uint32_t threads = lower->variant->sched.threads;
    uint32_t lanes = gpu_gemm_lanes(block, part->n_columns);
    uint32_t groups = part->n_columns / lanes, width = groups < threads ? groups : threads;
    uint32_t unroll = gpu_gemm_rows_at_once(lower);
    LLVMValueRef across = unit_i32(unit, width), values[GEMM_MAX_EARLY_VALUES];
    LLVMValueRef first = LLVMBuildUDiv(builder, block->thread, across, "");
    LLVMValueRef group = LLVMBuildURem(builder, block->thread, across, "");
    for (uint32_t done = 0; done < groups; done += width) {
        LLVMValueRef at = LLVMBuildAdd(builder, group, unit_i32(unit, done), "");
        at = LLVMBuildMul(builder, at, unit_i32(unit, lanes), "");
        GemmPhase phase = {.block = *block, .column = gpu_gemm_column(block, at, lanes)};
        gpu_gemm_load_early(&phase, 1);
        GemmRows rows = gpu_gemm_rows(&phase, 1, part, first, threads / width, unroll);
        gpu_gemm_begin_rows(&rows, values);
        gpu_gemm_epilogue_rows(&rows, values);
    }
}

GemmOne gpu_gemm_begin_one(const GemmBlock *block, const GemmPart *part, LLVMValueRef element) {
    const Unit *unit = block->lower->unit;
    LLVMValueRef n_columns = unit_i32(unit, part->n_columns);
    LLVMValueRef row = LLVMBuildUDiv(unit->builder, element, n_columns, "");
    LLVMValueRef column = LLVMBuildURem(unit->builder, element, n_columns, "");
    GemmOne one = {.phase = {.block = *block, .column = gpu_gemm_column(block, column, 1)},
                   .row = row_of_part(block, part, row)};
    gpu_gemm_load_early(&one.phase, 1);
    load_row_early(&one.phase, one.row, one.early);
    return one;
}

void gpu_gemm_epilogue_one(const GemmOne *one, LLVMValueRef value) {
    value = rounded(one->phase.block.lower, value);
    Pending pending = compute_outputs(&one->phase, one->row, value, one->early, NULL, 0);
    store_outputs(&pending, 1);
}

void gpu_gemm_epilogue_parts(const GemmBlock *block, GemmPart part, uint32_t n_parts,
                             void (*put)(const void *user, uint32_t i), const void *user) {
    Lower *lower = block->lower;
    Unit *unit = lower->unit;
    if (n_parts == 1) {
        put(user, 0);
        gpu_barrier(unit);
        gpu_gemm_epilogue(block, &part);
        return;
    }
    Loop loop = loop_begin(unit, lower->function, unit_i32(unit, 0), unit_i32(unit, n_parts),
                           unit_i32(unit, 1));
    gpu_barrier(unit); /* the part before has been read */
    for (uint32_t i = 0; i < n_parts; i++) {
        LLVMValueRef number = unit_i32(unit, i);
        LLVMValueRef is_due = LLVMBuildICmp(unit->builder, LLVMIntEQ, loop.index, number, "");
        If due = if_begin(unit, lower->function, is_due);
        put(user, i);
        if_end(unit, &due);
    }
    gpu_barrier(unit);
    part.first_row = LLVMBuildMul(unit->builder, loop.index, unit_i32(unit, part.run), "");
    gpu_gemm_epilogue(block, &part);
    loop_end(unit, &loop);
}
