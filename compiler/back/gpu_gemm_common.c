/* Tiles and epilogues of GPU contractions. See gpu_gemm.h. */
#include "back/gpu_gemm.h"

enum { GROUP_ROWS = 8, MAX_UNROLL = 4, MAX_STORES = 64, CHEAP_SCALARS = 24 };

static DimTab *dims_of(const Lower *lower) {
    return indextab_dims(scalartab_indices(lower->kernel->scalars));
}

static DimId extent_of(const Lower *lower, uint32_t axis) {
    return index_axis_extent(scalartab_indices(lower->kernel->scalars), axis);
}

LLVMValueRef gpu_gemm_index(const Lower *lower, LLVMValueRef i32) {
    if (lower->index_type == lower->unit->i32) return i32;
    return LLVMBuildZExt(lower->unit->builder, i32, lower->index_type, "");
}

bool gpu_gemm_axis_is_multiple(const Lower *lower, uint32_t axis, uint32_t lanes) {
    DimId extent = extent_of(lower, axis);
    const Variant *variant = lower->variant;
    if (dim_multiple(dims_of(lower), extent) % lanes == 0) return true;
    return extent == variant->multiple_dim && variant->multiple_of % lanes == 0;
}

/* The most lanes, at most `most`, a power of two, that the epilogue takes along n. */
static uint32_t store_lanes(const Lower *lower, uint32_t most) {
    uint32_t n = gemm_axis_n(lower->kernel);
    while (most > 1 && !gpu_gemm_axis_is_multiple(lower, n, most)) most /= 2;
    return dim_equals_const(dims_of(lower), extent_of(lower, n), 0) ? 1 : most;
}

/* Blocks. */

/* Splits a tile's number within its batch: down a group of GROUP_ROWS rows of tiles (the last may
 * have fewer), then to the next column. */
static void split_tile(GemmBlock *block, LLVMValueRef tile) {
    Lower *lower = block->lower;
    LLVMBuilderRef builder = lower->unit->builder;
    const Sched *sched = &lower->variant->sched;
    DimTab *dims = dims_of(lower);
    uint32_t m = gemm_axis_m(lower->kernel), n = gemm_axis_n(lower->kernel);
    LLVMValueRef rows = lower_dim(lower, dim_ceil_div(dims, extent_of(lower, m), sched->tile_m));
    LLVMValueRef columns = lower_dim(lower, dim_ceil_div(dims, extent_of(lower, n), sched->tile_n));
    LLVMValueRef eight = lower_index_const(lower, GROUP_ROWS);
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
    block->m0 = LLVMBuildMul(builder, row, lower_index_const(lower, sched->tile_m), "");
    block->n0 = LLVMBuildMul(builder, column, lower_index_const(lower, sched->tile_n), "");
}

GemmBlock gpu_gemm_block(Lower *lower) {
    Unit *unit = lower->unit;
    LLVMBuilderRef builder = unit->builder;
    const Kernel *kernel = lower->kernel;
    const Sched *sched = &lower->variant->sched;
    DimTab *dims = dims_of(lower);
    DimId m = extent_of(lower, gemm_axis_m(kernel));
    DimId n = extent_of(lower, gemm_axis_n(kernel));
    GemmBlock block = {.lower = lower, .thread = gpu_thread(unit), .point = point_new(lower, 1)};
    block.m = lower_dim(lower, m);
    block.n = lower_dim(lower, n);
    block.k = lower_dim(lower, extent_of(lower, gemm_axis_k(kernel)));
    LLVMValueRef tile = gpu_block(lower);
    if (sched->k_blocks > 1)
        tile = LLVMBuildUDiv(builder, tile, lower_index_const(lower, sched->k_blocks), "");
    if (kernel->n_parallel > 2) {
        DimId per_batch = dim_mul(dims, dim_ceil_div(dims, m, sched->tile_m),
                                  dim_ceil_div(dims, n, sched->tile_n));
        LLVMValueRef n_tiles = lower_dim(lower, per_batch);
        LLVMValueRef batch = LLVMBuildUDiv(builder, tile, n_tiles, "");
        tile = LLVMBuildURem(builder, tile, n_tiles, "");
        lower_split(lower, batch, 0, kernel->n_parallel - 2, &block.point);
    }
    split_tile(&block, tile);
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
    if (!gpu_gemm_axis_is_multiple(lower, gemm_axis_m(lower->kernel), sched->tile_m))
        inside = LLVMBuildICmp(builder, LLVMIntULT, row, block->m, "");
    if (gpu_gemm_axis_is_multiple(lower, gemm_axis_n(lower->kernel), sched->tile_n)) return inside;
    LLVMValueRef in_row = LLVMBuildICmp(builder, LLVMIntULT, column, block->n, "");
    return inside ? LLVMBuildAnd(builder, inside, in_row, "") : in_row;
}

/* `outer` has the values that do not depend on the row. */
static Pending begin_outputs(const GemmBlock *block, const Point *outer, LLVMValueRef row,
                             LLVMValueRef column, LLVMValueRef value) {
    Lower *lower = block->lower;
    const Kernel *kernel = lower->kernel;
    const Reduce *reduce = &kernel->reduces.data[0];
    Pending pending = {.point = point_inside(outer), .exists = is_inside(block, row, column)};
    Point *point = &pending.point;
    point->axis[gemm_axis_m(kernel)] = row;
    point->axis[gemm_axis_n(kernel)] = column;
    point->active = pending.exists;
    point->results = arena_array(lower->unit->arena, LLVMValueRef, kernel->reduces.n);
    point->results[0] = convert_value(&lower->unit->math, value, unit_convert_type(reduce->acc),
                                      unit_convert_type(reduce->result));
    for (uint32_t i = 0; i < kernel->row_stores.n; i++)
        point_value(point, kernel->row_stores.data[i].value);
    return pending;
}

static void store_outputs(Pending *pending) {
    Lower *lower = pending->point.lower;
    If exists = {NULL};
    if (pending->exists) exists = if_begin(lower->unit, lower->function, pending->exists);
    for (uint32_t i = 0; i < lower->kernel->row_stores.n; i++)
        point_store(&pending->point, &lower->kernel->row_stores.data[i]);
    if (exists.after) if_end(lower->unit, &exists);
}

static Point epilogue_point(const GemmBlock *block, LLVMValueRef column, uint32_t lanes) {
    Point point = point_inside(&block->point);
    point.lanes = lanes;
    point.lane_axis = gemm_axis_n(block->lower->kernel);
    point.axis[point.lane_axis] = column;
    return point;
}

/* What depends on the column alone is computed before the loop over rows. */
static void prepare_column(const GemmBlock *block, Point *point) {
    const Kernel *kernel = block->lower->kernel;
    ScalarId roots[MAX_STORES];
    uint32_t n = 0, row_axis = 1u << gemm_axis_m(kernel);
    for (uint32_t i = 0; i < kernel->row_stores.n && n < MAX_STORES; i++)
        roots[n++] = kernel->row_stores.data[i].value;
    if (!gpu_gemm_axis_is_multiple(block->lower, gemm_axis_n(kernel),
                                   block->lower->variant->sched.tile_n))
        point->active = LLVMBuildICmp(block->lower->unit->builder, LLVMIntULT,
                                      point->axis[point->lane_axis], block->n, "");
    point_prepare(point, roots, n, row_axis);
}

static LLVMValueRef load_part(const GemmBlock *block, const GemmPart *part, LLVMValueRef row,
                              LLVMValueRef column, uint32_t lanes) {
    const Unit *unit = block->lower->unit;
    LLVMBuilderRef builder = unit->builder;
    Dtype acc = block->lower->kernel->reduces.data[0].acc;
    LLVMValueRef at = LLVMBuildMul(builder, row, unit_int(unit->i32, part->pitch), "");
    at = LLVMBuildAdd(builder, at, column, "");
    LLVMValueRef pointer = gpu_shared_at(unit, part->shared, unit_value_type(unit, acc, 1), at);
    LLVMValueRef load = LLVMBuildLoad2(builder, unit_value_type(unit, acc, lanes), pointer, "");
    LLVMSetAlignment(load, lanes * dtype_bytes(acc) < 16 ? lanes * dtype_bytes(acc) : 16);
    return load;
}

/* The row of the matrix that row `row` (i32) of the part is. */
static LLVMValueRef row_of_part(const GemmBlock *block, const GemmPart *part, LLVMValueRef row) {
    const Lower *lower = block->lower;
    const Unit *unit = lower->unit;
    LLVMBuilderRef builder = unit->builder;
    LLVMValueRef run = LLVMBuildUDiv(builder, row, unit_int(unit->i32, part->run), "");
    LLVMValueRef in_run =
        LLVMBuildAnd(builder, row, unit_int(unit->i32, (int64_t)part->run - 1), "");
    LLVMValueRef at = LLVMBuildMul(builder, run, unit_int(unit->i32, part->run_stride), "");
    at = LLVMBuildAdd(builder, at, in_run, "");
    at = LLVMBuildAdd(builder, at, unit_int(unit->i32, part->first_row), "");
    return LLVMBuildAdd(builder, block->m0, gpu_gemm_index(lower, at), "");
}

/* Every row of the part, at one column (i32, in the tile) per thread, from row `first` on, `step`
 * apart. A few rows at once where the epilogue is cheap, so that its loads overlap. */
static void drain_column(const GemmBlock *block, const GemmPart *part, LLVMValueRef first,
                         uint32_t step, LLVMValueRef in_tile, uint32_t lanes) {
    Lower *lower = block->lower;
    Unit *unit = lower->unit;
    LLVMBuilderRef builder = unit->builder;
    uint32_t n_steps = part->n_rows / step;
    uint32_t unroll = scalar_count(lower->kernel->scalars) <= CHEAP_SCALARS ? MAX_UNROLL : 2;
    while (unroll > 1 && n_steps % unroll) unroll /= 2;
    if (!n_steps) unroll = 1;
    LLVMValueRef column = LLVMBuildAdd(builder, block->n0, gpu_gemm_index(lower, in_tile), "");
    Point outer = epilogue_point(block, column, lanes);
    prepare_column(block, &outer);
    Loop loop = loop_begin(unit, lower->function, first, unit_int(unit->i32, part->n_rows),
                           unit_int(unit->i32, (int64_t)step * unroll));
    Pending pending[MAX_UNROLL];
    for (uint32_t u = 0; u < unroll; u++) {
        LLVMValueRef row =
            LLVMBuildAdd(builder, loop.index, unit_int(unit->i32, (int64_t)step * u), "");
        LLVMValueRef value = load_part(block, part, row, in_tile, lanes);
        pending[u] = begin_outputs(block, &outer, row_of_part(block, part, row), column, value);
    }
    for (uint32_t u = 0; u < unroll; u++) store_outputs(&pending[u]);
    loop_end(unit, &loop);
}

void gpu_gemm_drain(const GemmBlock *block, const GemmPart *part) {
    Lower *lower = block->lower;
    const Unit *unit = lower->unit;
    LLVMBuilderRef builder = unit->builder;
    uint32_t threads = lower->variant->sched.threads;
    uint32_t most = 16 / dtype_bytes(lower->kernel->reduces.data[0].acc);
    if (lower->variant->sched.lanes < most) most = lower->variant->sched.lanes;
    uint32_t lanes = store_lanes(lower, most < part->n_columns ? most : part->n_columns);
    uint32_t groups = part->n_columns / lanes, width = groups < threads ? groups : threads;
    LLVMValueRef across = unit_int(unit->i32, width);
    LLVMValueRef first = LLVMBuildUDiv(builder, block->thread, across, "");
    LLVMValueRef group = LLVMBuildURem(builder, block->thread, across, "");
    for (uint32_t done = 0; done < groups; done += width) {
        LLVMValueRef at = LLVMBuildAdd(builder, group, unit_int(unit->i32, done), "");
        at = LLVMBuildMul(builder, at, unit_int(unit->i32, lanes), "");
        drain_column(block, part, first, threads / width, at, lanes);
    }
}
