/* CPU contractions. See template.h and cpu_gemm.h.
 *
 * A unit is a block of rows by a block of columns of one batch. It goes through k in blocks; for
 * each it packs its columns, then panel after panel of its rows, and folds each panel with all
 * columns. Partial results wait on the stack, in the accumulator's dtype. After the last block of k
 * each panel's rows are converted, and the stores run, while they are in the cache. */
#include "back/cpu_gemm.h"

static Gemm gemm_new(Lower *lower) {
    const Kernel *kernel = lower->kernel;
    const Sched *sched = &lower->variant->sched;
    const IndexTab *tab = scalartab_indices(kernel->scalars);
    const Reduce *reduce = &kernel->reduces.data[0];
    uint32_t m = kernel->n_parallel - 2, n = kernel->n_parallel - 1;
    GemmFactor left = {.value = reduce->value, .axis = m, .extent = index_axis_extent(tab, m)};
    GemmFactor right = {.value = reduce->factor, .axis = n, .extent = index_axis_extent(tab, n)};
    left.dtype = scalar_get(kernel->scalars, left.value)->dtype;
    right.dtype = scalar_get(kernel->scalars, right.value)->dtype;
    bool is_turned = sched->warps_n % sched->lanes != 0;
    Gemm gemm = {.lower = lower,
                 .acc = reduce->acc,
                 .row = is_turned ? right : left,
                 .column = is_turned ? left : right,
                 .k_axis = kernel->first_reduced,
                 .k_extent = index_axis_extent(tab, kernel->first_reduced),
                 .lanes = sched->lanes,
                 .is_streamed = sched->stages == 0,
                 .n_tile_rows = is_turned ? sched->warps_n : sched->warps_m,
                 .tile_columns = is_turned ? sched->warps_m : sched->warps_n,
                 .depth = sched->tile_k,
                 .block_rows = is_turned ? sched->tile_n : sched->tile_m,
                 .block_columns = is_turned ? sched->tile_m : sched->tile_n,
                 .point = point_new(lower, 1)};
    gemm.n_vectors = gemm.tile_columns / gemm.lanes;
    gemm.has_panels = kernel->panel_columns && !gemm.is_streamed;
    gemm.panel_dtype = gemm.has_panels ? gemm.column.dtype : gemm.acc;
    if (gemm.has_panels && kernel->panel_columns != gemm.tile_columns)
        ice(lower->unit->arena, "the panels of %s are %u wide, its tile %u", kernel->name,
            kernel->panel_columns, gemm.tile_columns);
    uint32_t left_axes = scalar_get(kernel->scalars, left.value)->axes;
    uint32_t right_axes = scalar_get(kernel->scalars, right.value)->axes;
    if ((left_axes >> n & 1) || (right_axes >> m & 1))
        ice(lower->unit->arena, "a factor of %s moves with both m and n", kernel->name);
    gemm_choose_layout(&gemm);
    return gemm;
}

static bool has_one_k_block(const Gemm *gemm) {
    DimTab *dims = indextab_dims(scalartab_indices(gemm->lower->kernel->scalars));
    return dim_hi(dims, gemm->k_extent) <= gemm->depth;
}

static void make_arrays(Gemm *gemm) {
    Lower *lower = gemm->lower;
    int64_t partial_rows = has_one_k_block(gemm) ? gemm->n_tile_rows : gemm->block_rows;
    int64_t n_columns = (int64_t)gemm->depth * gemm->block_columns;
    int64_t n_partials = partial_rows * gemm->block_columns;
    gemm->rows = cpu_array_new(lower, gemm->acc, false, gemm_row_panel_elems(gemm)).values;
    if (!gemm->is_streamed && !gemm->has_panels)
        gemm->columns = cpu_array_new(lower, gemm->acc, false, n_columns).values;
    gemm->partials = cpu_array_new(lower, gemm->acc, false, n_partials).values;
}

/* Stores. */

typedef struct RowStores {
    Gemm *gemm;
    Point point;           /* of the row */
    LLVMValueRef partials; /* the row's first column in the unit */
    uint32_t lanes;
} RowStores;

static void row_stores_step(void *user, LLVMValueRef at, LLVMValueRef mask) {
    const RowStores *row = user;
    const Gemm *gemm = row->gemm;
    const Lower *lower = gemm->lower;
    Point point = point_inside(&row->point);
    point.mask = mask;
    point.axis[gemm->column.axis] = at;
    LLVMValueRef offset = LLVMBuildSub(lower->unit->builder, at, gemm->column_begin, "");
    CpuArray partials = {.dtype = gemm->acc, .values = row->partials};
    acc_finish(&point, 0, cpu_array_load(lower, &partials, offset, row->lanes));
    point_store_all(&point, lower->kernel->row_stores.data, lower->kernel->row_stores.n);
}

/* Finishes the panel's rows. Along an axis of one element, which no address depends on, there are
 * no lanes. */
static void finish_rows(Gemm *gemm) {
    Lower *lower = gemm->lower;
    const Unit *unit = lower->unit;
    LLVMBuilderRef builder = unit->builder;
    const Kernel *kernel = lower->kernel;
    DimTab *dims = indextab_dims(scalartab_indices(kernel->scalars));
    CpuRoots roots = {arena_array(unit->arena, ScalarId, kernel->row_stores.n), 0};
    for (uint32_t i = 0; i < kernel->row_stores.n; i++)
        roots.ids[roots.n++] = kernel->row_stores.data[i].value;
    LLVMValueRef left = LLVMBuildSub(builder, gemm->row_end, gemm->panel_begin, "");
    Loop loop =
        loop_begin(unit, lower->function, lower_index_const(lower, 0),
                   cpu_at_most(lower, left, gemm->n_tile_rows), lower_index_const(lower, 1));
    RowStores row = {.gemm = gemm, .point = point_inside(&gemm->point), .lanes = gemm->lanes};
    if (dim_hi(dims, gemm->column.extent) <= 1) row.lanes = 1;
    row.point.lanes = row.lanes;
    row.point.lane_axis = gemm->column.axis;
    row.point.axis[gemm->row.axis] = LLVMBuildAdd(builder, gemm->panel_begin, loop.index, "");
    LLVMValueRef at = LLVMBuildAdd(builder, gemm->partials_row, loop.index, "");
    at = LLVMBuildMul(builder, at, lower_index_const(lower, gemm->block_columns), "");
    row.partials = gemm_element(gemm, gemm->partials, at);
    point_prepare(&row.point, roots.ids, roots.n, 1u << gemm->column.axis);
    cpu_each_step(lower, gemm->column_begin, gemm->n_columns, row.lanes,
                  cpu_is_multiple(lower, gemm->column.extent, row.lanes), row_stores_step, &row);
    loop_end(unit, &loop);
}

/* Loops. */

static void each_panel(Gemm *gemm) {
    Lower *lower = gemm->lower;
    const Unit *unit = lower->unit;
    LLVMBuilderRef builder = unit->builder;
    LLVMValueRef depth = lower_index_const(lower, gemm->depth);
    LLVMValueRef k = lower_dim(lower, gemm->k_extent);
    LLVMValueRef k_next = LLVMBuildAdd(builder, gemm->k_begin, depth, "");
    LLVMValueRef is_last = LLVMBuildICmp(builder, LLVMIntSGE, k_next, k, "");
    LLVMValueRef is_only = LLVMBuildICmp(builder, LLVMIntSLE, k, depth, "");
    Loop loop = loop_begin(unit, lower->function, gemm->row_begin, gemm->row_end,
                           lower_index_const(lower, gemm->n_tile_rows));
    gemm->panel_begin = loop.index;
    LLVMValueRef row = LLVMBuildSub(builder, loop.index, gemm->row_begin, "");
    gemm->partials_row = LLVMBuildSelect(builder, is_only, lower_index_const(lower, 0), row, "");
    gemm_pack_rows(gemm);
    if (gemm->is_streamed)
        gemm_stream(gemm);
    else
        gemm_tiles(gemm);
    If last = if_begin(unit, lower->function, is_last);
    finish_rows(gemm);
    if_end(unit, &last);
    loop_end(unit, &loop);
}

/* A contraction over nothing still has one block, of no steps. */
static void each_k_block(Gemm *gemm) {
    Lower *lower = gemm->lower;
    const Unit *unit = lower->unit;
    LLVMBuilderRef builder = unit->builder;
    LLVMValueRef zero = lower_index_const(lower, 0), one = lower_index_const(lower, 1);
    LLVMValueRef k = lower_dim(lower, gemm->k_extent);
    LLVMValueRef is_some = LLVMBuildICmp(builder, LLVMIntSGT, k, zero, "");
    Loop loop =
        loop_begin(unit, lower->function, zero, LLVMBuildSelect(builder, is_some, k, one, ""),
                   lower_index_const(lower, gemm->depth));
    gemm->k_begin = loop.index;
    gemm->n_k = cpu_at_most(lower, LLVMBuildSub(builder, k, loop.index, ""), gemm->depth);
    if (gemm->has_panels)
        gemm_find_panels(gemm);
    else if (!gemm->is_streamed)
        gemm_pack_columns(gemm);
    each_panel(gemm);
    loop_end(unit, &loop);
}

/* Units of one block of columns follow each other, then blocks of columns, then batches. */
static void set_unit(Gemm *gemm, LLVMValueRef unit_index) {
    Lower *lower = gemm->lower;
    LLVMBuilderRef builder = lower->unit->builder;
    DimTab *dims = indextab_dims(scalartab_indices(lower->kernel->scalars));
    LLVMValueRef n_row_blocks =
        lower_dim(lower, dim_ceil_div(dims, gemm->row.extent, gemm->block_rows));
    LLVMValueRef n_column_blocks =
        lower_dim(lower, dim_ceil_div(dims, gemm->column.extent, gemm->block_columns));
    LLVMValueRef row_block = LLVMBuildURem(builder, unit_index, n_row_blocks, "");
    LLVMValueRef rest = LLVMBuildUDiv(builder, unit_index, n_row_blocks, "");
    LLVMValueRef column_block = LLVMBuildURem(builder, rest, n_column_blocks, "");
    LLVMValueRef batch = LLVMBuildUDiv(builder, rest, n_column_blocks, "");
    lower_split(lower, batch, 0, lower->kernel->n_parallel - 2, &gemm->point);
    LLVMValueRef block_rows = lower_index_const(lower, gemm->block_rows);
    LLVMValueRef block_columns = lower_index_const(lower, gemm->block_columns);
    gemm->row_begin = LLVMBuildMul(builder, row_block, block_rows, "");
    LLVMValueRef rows_left =
        LLVMBuildSub(builder, lower_dim(lower, gemm->row.extent), gemm->row_begin, "");
    gemm->row_end =
        LLVMBuildAdd(builder, gemm->row_begin, cpu_at_most(lower, rows_left, gemm->block_rows), "");
    gemm->column_begin = LLVMBuildMul(builder, column_block, block_columns, "");
    LLVMValueRef columns_left =
        LLVMBuildSub(builder, lower_dim(lower, gemm->column.extent), gemm->column_begin, "");
    gemm->n_columns = cpu_at_most(lower, columns_left, gemm->block_columns);
}

void template_cpu_contract(Lower *lower, LLVMValueRef begin, LLVMValueRef end) {
    Gemm gemm = gemm_new(lower);
    make_arrays(&gemm);
    Loop units = cpu_unit_loop(lower, begin, end, 1);
    set_unit(&gemm, units.index);
    each_k_block(&gemm);
    loop_end(lower->unit, &units);
}
