/* CPU GEMMs: [M,K] x [K,N]. See template.h and gemm.h.
 *
 * A tile is a block of rows by a block of columns of one batch, and consists of the call's units
 * that lie side by side. It loops over k in blocks. For each block of k it packs its columns, then
 * packs panel after panel of its rows and multiplies each panel with all columns. Partial results
 * are on the stack in the accumulator's dtype. After the last block of k each panel's results are
 * converted and stored while they are in the cache.
 *
 * GEMMs with a common lhs that one launch computes together walk k together, and the lhs is packed
 * once for all of them. Their stores run at one position of the loops, so that one GEMM's values
 * pass to another in registers.
 *
 * A row kernel of the same launch runs on rows as soon as they are complete, while they are in the
 * cache. Then a unit has all columns. Values that only kernels of the launch read are on the stack,
 * at a pointer offset so that the indices of global memory reach them. The rows may be the lhs of
 * another GEMM of the launch. Its columns are packed once for the tile, and it multiplies each
 * panel of rows as soon as the row kernel has made it. */
#include "codegen/cpu_gemm/gemm.h"
#include "base/arith.h"
#include "codegen/part/part.h"

#include <string.h>

/* The GEMMs of a launch, in the order of its kernels. The first one holds the position of the
 * loops. */
typedef struct SequenceGemms {
    Gemm *gemms;
    uint32_t n;
    Lower *rows;  /* the row kernel that follows, or NULL */
    Val *passed;  /* per argument of `rows`: its stack memory if it is not global, or NULL */
    Gemm *behind; /* the GEMM whose lhs the row kernel makes, or NULL */
} SequenceGemms;

/* Whether the GEMM uses the packed rows of the first one: they have a common lhs. */
static bool shares_rows(const Gemm *gemm, const Gemm *first) {
    return gemm != first && gemm->row.axis == gemm_axis_m(gemm->lower->kernel);
}

static bool shares_columns(const Gemm *gemm, const Gemm *first) {
    return gemm != first && gemm->column.axis == gemm_axis_m(gemm->lower->kernel) &&
           !gemm->is_streamed && !gemm->has_panels && !first->has_panels;
}

/* Vectors of the last strip also read the one that follows, so this one has numbers. */
static void make_strips(Gemm *gemm) {
    const Codegen *k = gemm->lower->k;
    int64_t n = gemm->n_batches * gemm_strips_elems(gemm, gemm->column.strips);
    gemm->columns = cpu_array_new(gemm->lower, gemm->acc, false, n + gemm->lanes).values;
    gemm_store(gemm, gemm_element(gemm, gemm->columns, lower_index_const(gemm->lower, n)),
               LLVMConstNull(k_value_type(k, gemm->acc, gemm->lanes)));
}

static void make_arrays(Gemm *gemm, const Gemm *first) {
    Lower *lower = gemm->lower;
    int64_t partial_rows = gemm_has_one_k_block(gemm) ? gemm->store_rows : gemm->units.block_rows;
    if (gemm->store_run) partial_rows += gemm->lanes; /* of squares past the end */
    int64_t n_columns = (int64_t)gemm->panel_depth * gemm->units.block_columns;
    bool packs_columns = !gemm->is_streamed && (!gemm->has_panels || gemm->has_amx);
    int64_t n_partials = partial_rows * gemm_pitch(gemm);
    gemm->rows = first->rows;
    gemm->columns = first->columns;
    bool has_rows = !cpu_pack_has_places(gemm->row.pack) && !gemm->has_made_rows,
         has_columns = !cpu_pack_has_places(gemm->column.pack);
    if (has_rows && !shares_rows(gemm, first))
        gemm->rows = cpu_array_new(lower, gemm->packed, false, gemm_row_panel_elems(gemm)).values;
    if (has_columns && packs_columns && !shares_columns(gemm, first))
        gemm->columns = cpu_array_new(lower, gemm->packed, false, n_columns).values;
    if (gemm->row.strips)
        gemm->rows =
            cpu_array_new(lower, gemm->acc, false, gemm_strips_elems(gemm, gemm->row.strips))
                .values;
    if (gemm->column.strips) make_strips(gemm);
    gemm->partials = cpu_array_new(lower, gemm->acc, false, n_partials).values;
    gemm_make_offsets(gemm);
}

/* The row kernel. */

/* Whether the register tile is transposed: the result's rows lie along its columns. */
static bool is_transposed(const Gemm *gemm) {
    return gemm->row.axis == gemm_axis_n(gemm->lower->kernel);
}

static DimId row_extent(const SequenceGemms *sequence) {
    return kernel_n_reduced(sequence->rows->kernel);
}

/* Allocates the rows of one panel; for a transposed tile, all rows of the unit. Masked accesses
 * touch nothing after the last row. */
static void make_room(SequenceGemms *sequence) {
    const Gemm *first = sequence->gemms;
    Lower *rows = sequence->rows;
    uint32_t n_rows = is_transposed(first) ? first->units.block_columns : first->n_tile_rows;
    int64_t n_elems = n_rows * dim_hi(lower_dims(rows), row_extent(sequence)) + first->lanes;
    sequence->passed = arena_array(rows->k->arena, Val, rows->kernel->args.n);
    for (uint32_t i = 0; i < rows->kernel->args.n; i++) {
        const Buffer *buffer = &rows->plan->buffers.data[rows->kernel->args.data[i]];
        if (buffer->space != BUFFER_GLOBAL)
            sequence->passed[i] = cpu_memory_new(rows, buffer->dtype, n_elems);
    }
}

/* The number (i64) of a row of the unit's batch among the rows of all batches. */
static Val row_number(const SequenceGemms *sequence, Val row) {
    Gemm *first = sequence->gemms;
    const Codegen *k = first->lower->k;
    Val m = lower_dim64(
        first->lower, kernel_axis_extent(first->lower->kernel, gemm_axis_m(first->lower->kernel)));
    Val batch = k_index_cast(k, first->batch, k->i64);
    Val before = k_mul(k, batch, m);
    return k_add(k, before, k_index_cast(k, row, k->i64));
}

static void place_buffer(Lower *lower, uint32_t buffer, Val pointer) {
    uint32_t arg = kernel_find_arg(lower->kernel, buffer);
    if (arg != NO_ARG) lower->pointers[arg] = pointer;
}

/* Offsets the stack pointers so that row `begin` is the first row of the memory. */
static void place_rows(const SequenceGemms *sequence, Val begin) {
    Lower *rows = sequence->rows;
    const Codegen *k = rows->k;
    Val n = lower_dim64(rows, row_extent(sequence));
    Val elems = k_mul(k, row_number(sequence, begin), n);
    Val back = k_neg(k, elems);
    for (uint32_t i = 0; i < rows->kernel->args.n; i++) {
        if (!sequence->passed[i]) continue;
        uint32_t buffer = rows->kernel->args.data[i];
        LLVMTypeRef type = k_memory_type(k, rows->plan->buffers.data[buffer].dtype, 1);
        rows->pointers[i] = k_gep(k, type, sequence->passed[i], back);
        for (uint32_t p = 0; p < sequence->n; p++)
            place_buffer(sequence->gemms[p].lower, buffer, rows->pointers[i]);
        if (sequence->behind) place_buffer(sequence->behind->lower, buffer, rows->pointers[i]);
    }
}

/* Whether the register tile can read the rows as the row kernel makes them: their elements are as
 * they would be packed, at known distances, which leave room in the first cache for a line of
 * each. */
static bool are_packed(const Gemm *gemm) {
    enum { SET_BYTES = 4096, MOST_LINES = 8 }; /* of one set of a cache */
    const Kernel *kernel = gemm->lower->kernel;
    const IndexTab *tab = scalartab_indices(kernel->scalars);
    const Scalar *load = scalar_get(kernel->scalars, gemm->row.value);
    int64_t pitch, elem_bytes = dtype_bytes(gemm->acc);
    if (load->dtype != gemm->acc || load->guard || gemm->has_pairs || gemm->has_amx ||
        !gemm->row.is_along_k || !dim_is_const(lower_dims(gemm->lower), gemm->k_extent, &pitch) ||
        index_stride_const(tab, load->index, gemm->row.axis) != pitch ||
        index_stride_const(tab, load->index, gemm->k_axis) != 1)
        return false;
    int64_t bytes = pitch * elem_bytes, step = min_i64(bytes & -bytes, SET_BYTES);
    return gemm->n_tile_rows <= MOST_LINES * SET_BYTES / step;
}

/* Tiles also read rows that a unit does not have. Numbers that happen to be there could be slow. */
static void clear_rows(const Gemm *gemm, int64_t n_elems) {
    CpuArray rows = {.dtype = gemm->acc, .values = gemm->rows};
    Val zero = LLVMConstNull(k_value_type(gemm->lower->k, gemm->acc, gemm->lanes));
    cpu_array_fill(gemm->lower, &rows, n_elems, (Acc){zero, NULL}, gemm->lanes);
}

static void make_behind(SequenceGemms *sequence, Lower *lower) {
    Gemm *gemm = sequence->behind = arena_array(lower->k->arena, Gemm, 1);
    *gemm = gemm_new(lower);
    gemm_choose_stores(gemm, false);
    gemm->has_pairs = gemm_may_pair(gemm);
    gemm->has_made_rows = are_packed(gemm);
    make_arrays(gemm, gemm);
    if (gemm->has_made_rows) {
        uint32_t made = scalar_get(lower->kernel->scalars, gemm->row.value)->buffer;
        gemm->row_stride = (uint32_t)dim_hi(lower_dims(lower), gemm->k_extent);
        gemm->rows = sequence->passed[kernel_find_arg(sequence->rows->kernel, made)];
        clear_rows(gemm, (int64_t)gemm->row_stride * gemm->n_tile_rows);
    }
    if (gemm->n_tile_rows != sequence->gemms->n_tile_rows)
        ice(lower->k->arena, "%s has panels of %u rows, not of %u", lower->kernel->name,
            gemm->n_tile_rows, sequence->gemms->n_tile_rows);
}

/* The row kernel is a part: all variants have the same, and so have other GEMMs. */
static void go_over_rows(const SequenceGemms *sequence, Val begin, Val n) {
    Lower *rows = sequence->rows;
    const Codegen *k = rows->k;
    rows->units_begin = row_number(sequence, begin);
    rows->units_end = k_add(k, rows->units_begin, k_index_cast(k, n, k->i64));
    Part part = part_begin_kernel(rows);
    emit_cpu_row(rows);
    part_end(&part);
}

/* Stores. */

/* One row of the unit in each GEMM. */
typedef struct RowStores {
    const SequenceGemms *sequence;
    Point *points; /* per GEMM: the point of the row */
    Val *partials; /* per GEMM: the partial result at the row's first column in the unit */
    uint32_t lanes;
} RowStores;

static void row_stores_step(void *user, Val at, Val mask) {
    const RowStores *row = user;
    const Gemm *first = row->sequence->gemms;
    const Codegen *k = first->lower->k;
    Val offset = k_sub(k, at, first->column_begin);
    Point *points = arena_array(k->arena, Point, row->sequence->n);
    for (uint32_t p = 0; p < row->sequence->n; p++) {
        const Gemm *gemm = &row->sequence->gemms[p];
        const Kernel *kernel = gemm->lower->kernel;
        points[p] = point_inside(&row->points[p]);
        points[p].mask = mask;
        points[p].axis[gemm->column.axis] = at;
        for (uint32_t i = 0; i < p; i++) point_take_passed(&points[p], &points[i]);
        CpuArray partials = {.dtype = gemm->acc, .values = row->partials[p]};
        acc_finish(&points[p], 0, cpu_array_load(gemm->lower, &partials, offset, row->lanes));
        point_store_all(&points[p], kernel->row_stores.data, kernel->row_stores.n);
    }
}

static Val row_partials(const Gemm *gemm, Val number) {
    const Codegen *k = gemm->lower->k;
    Val at = k_muli(k, k_add(k, gemm->partials_row, number), gemm_pitch(gemm));
    if (gemm->beside) at = k_add(k, at, gemm->beside);
    return gemm_element(gemm, gemm->partials, at);
}

static Val n_panel_rows(const Gemm *gemm) {
    const Lower *lower = gemm->lower;
    Val left = k_sub(lower->k, gemm->row_end, gemm->panel_begin);
    return cpu_at_most(lower, left, gemm->n_tile_rows);
}

/* Stores the rows of the panel. An axis of one element has no lanes, because no address depends on
 * it. */
static void finish_rows(const SequenceGemms *sequence) {
    const Gemm *first = sequence->gemms;
    Lower *lower = first->lower;
    const Codegen *k = lower->k;
    DimTab *dims = lower_dims(lower);
    Loop loop = loop_over(k, n_panel_rows(first), 1);
    RowStores row = {.sequence = sequence, .lanes = first->lanes};
    if (dim_hi(dims, first->column.extent) <= 1) row.lanes = 1;
    row.points = arena_array(k->arena, Point, sequence->n);
    row.partials = arena_array(k->arena, Val, sequence->n);
    for (uint32_t p = 0; p < sequence->n; p++) {
        row.points[p] = gemm_row_point(&sequence->gemms[p], loop.index, row.lanes);
        row.partials[p] = row_partials(&sequence->gemms[p], loop.index);
    }
    cpu_each_step(lower, first->column_begin, first->n_columns, row.lanes,
                  cpu_is_multiple(lower, first->column.extent, row.lanes), row_stores_step, &row);
    loop_end(k, &loop);
}

/* Stores the rows of each batch of the unit. */
static void finish_batches(const SequenceGemms *sequence) {
    Gemm *gemm = sequence->gemms;
    Lower *lower = gemm->lower;
    const Codegen *k = lower->k;
    if (gemm->n_batches == 1) {
        finish_rows(sequence);
        return;
    }
    Gemm all = *gemm;
    Val left = k_sub(k, lower_dim(lower, gemm_n_batches(lower->kernel)), gemm->batch);
    Loop loop = loop_over(k, cpu_at_most(lower, left, gemm->n_batches), 1);
    gemm_set_batch(&all, loop.index, &gemm->point);
    gemm->beside = k_muli(k, loop.index, gemm->units.block_columns);
    finish_rows(sequence);
    loop_end(k, &loop);
    *gemm = all;
}

/* Computes and stores the unit's rows of outputs, all of one image. */
static void sweep_image(const SequenceGemms *sequence) {
    Gemm *gemm = sequence->gemms, all = *gemm;
    Lower *lower = gemm->lower;
    const Codegen *k = lower->k;
    Val from = gemm->point.axis[gemm->sweep->axis];
    Val left = k_sub(k, lower_index_const(lower, gemm->sweep->n_rows), from);
    Val n = cpu_at_most(lower, left, gemm->n_swept);
    gemm_sweep(gemm, from, k_add(k, from, n));
    *gemm = all;
    gemm->panel_begin = gemm->row_begin;
    gemm->partials_row = lower_index_const(lower, 0);
    Loop rows = loop_over(k, n, 1);
    gemm->point.axis[gemm->sweep->axis] = k_add(k, from, rows.index);
    Val number = k_addi(k, rows.index, gemm->sweep->across.reach);
    gemm->beside = k_muli(k, number, gemm->units.block_columns);
    finish_rows(sequence);
    loop_end(k, &rows);
    *gemm = all;
}

/* Stores the panels that are kept, if this is the last one of them; `kept`: its first row among
 * theirs. */
static void turn_panels(Gemm *gemm, Val kept) {
    const Codegen *k = gemm->lower->k;
    Val next = k_addi(k, gemm->panel_begin, gemm->n_tile_rows);
    Val is_end = k_sge(k, next, gemm->row_end);
    Val is_full = k_eqi(k, kept, gemm->store_rows - gemm->n_tile_rows);
    If full = if_begin(k, k_or(k, is_full, is_end));
    Val end = k_select(k, is_end, gemm->row_end, next);
    Val partials = k_sub(k, gemm->partials_row, kept);
    gemm_turn_stores(gemm, k_sub(k, gemm->panel_begin, kept), end, partials);
    if_end(k, &full);
}

/* The GEMM behind the row kernel. */

/* Goes to the tile of the first GEMM, and packs all columns. */
static void take_columns_behind(const SequenceGemms *sequence) {
    const Gemm *first = sequence->gemms;
    Gemm *gemm = sequence->behind;
    Lower *lower = gemm->lower;
    gemm->batch = first->batch;
    lower_split(lower, gemm->batch, 0, lower->kernel->n_parallel - 2, &gemm->point);
    gemm->row_begin = first->row_begin;
    gemm->row_end = first->row_end;
    gemm->column_begin = gemm->k_begin = gemm->partials_row = lower_index_const(lower, 0);
    gemm->n_columns = lower_dim(lower, gemm->column.extent);
    gemm->n_k = lower_dim(lower, gemm->k_extent);
    gemm_find_offsets(gemm);
    if (gemm->has_panels)
        gemm->columns = gemm_find_panels(gemm);
    else
        gemm_pack_columns(gemm);
}

/* Multiplies the panel's rows, and stores the results. */
static void fold_panel_behind(const SequenceGemms *sequence) {
    Gemm *gemm = sequence->behind;
    const SequenceGemms alone = {.gemms = gemm, .n = 1};
    gemm->panel_begin = sequence->gemms->panel_begin;
    gemm_pack_rows(gemm);
    gemm_tiles(gemm);
    finish_rows(&alone);
}

/* Loops. */

/* Gives the GEMM the loop position of the first one. */
static void follow(Gemm *gemm, const Gemm *first) {
    if (gemm == first) return;
    memcpy(gemm->point.axis, first->point.axis, sizeof first->point.axis);
    gemm->row_begin = first->row_begin;
    gemm->row_end = first->row_end;
    gemm->column_begin = first->column_begin;
    gemm->n_columns = first->n_columns;
    gemm->k_begin = first->k_begin;
    gemm->n_k = first->n_k;
    gemm->panel_begin = first->panel_begin;
    gemm->partials_row = first->partials_row;
}

static void fold_panel(Gemm *gemm, const Gemm *first) {
    follow(gemm, first);
    if (!shares_rows(gemm, first)) gemm_pack_rows(gemm);
    if (gemm->is_streamed)
        gemm_stream(gemm);
    else if (gemm->has_amx)
        gemm_amx_tiles(gemm);
    else
        gemm_tiles(gemm);
}

static void each_panel(const SequenceGemms *sequence) {
    Gemm *first = sequence->gemms;
    Lower *lower = first->lower;
    const Codegen *k = lower->k;
    Val depth = lower_index_const(lower, first->depth);
    Val at_k = lower_dim(lower, first->k_extent);
    Val k_next = k_add(k, first->k_begin, depth);
    Val is_last = k_sge(k, k_next, at_k);
    Val is_only = k_sle(k, at_k, depth);
    Loop loop = loop_begin(k, first->row_begin, first->row_end, first->n_tile_rows);
    first->panel_begin = loop.index;
    Val row = k_sub(k, loop.index, first->row_begin);
    Val kept = first->store_rows == first->n_tile_rows ? lower_index_const(lower, 0)
                                                       : k_uremi(k, row, first->store_rows);
    first->partials_row = k_select(k, is_only, kept, row);
    for (uint32_t p = 0; p < sequence->n; p++) fold_panel(&sequence->gemms[p], first);
    If last = if_begin(k, is_last);
    bool has_rows = sequence->rows && !is_transposed(first);
    if (has_rows) place_rows(sequence, loop.index);
    if (first->store_run)
        turn_panels(first, kept);
    else
        finish_batches(sequence);
    if (has_rows) go_over_rows(sequence, loop.index, n_panel_rows(first));
    if (sequence->behind) fold_panel_behind(sequence);
    if_end(k, &last);
    loop_end(k, &loop);
    if (!sequence->rows || !is_transposed(first)) return;
    last = if_begin(k, is_last);
    go_over_rows(sequence, first->column_begin, first->n_columns);
    if_end(k, &last);
}

static void take_columns(Gemm *gemm, const Gemm *first) {
    follow(gemm, first);
    gemm_find_offsets(gemm);
    if (gemm->row.strips) gemm_pack_strips(gemm, &gemm->row);
    if (gemm->column.strips)
        gemm_pack_strips(gemm, &gemm->column);
    else if (gemm->has_panels && gemm->has_amx)
        gemm_amx_take_panels(gemm);
    else if (gemm->has_panels)
        gemm->columns = gemm_find_panels(gemm);
    else if (!gemm->is_streamed && !shares_columns(gemm, first))
        gemm_pack_columns(gemm);
}

/* With K = 0 there is one block of k with no steps. */
static void each_k_block(const SequenceGemms *sequence) {
    Gemm *first = sequence->gemms;
    Lower *lower = first->lower;
    const Codegen *k = lower->k;
    Val zero = lower_index_const(lower, 0), one = lower_index_const(lower, 1);
    Val at_k = lower_dim(lower, first->k_extent);
    Loop loop = loop_begin(k, zero, k_select(k, k_sgt(k, at_k, zero), at_k, one), first->depth);
    first->k_begin = loop.index;
    first->n_k = cpu_at_most(lower, k_sub(k, at_k, loop.index), first->depth);
    for (uint32_t p = 0; p < sequence->n; p++) take_columns(&sequence->gemms[p], first);
    each_panel(sequence);
    loop_end(k, &loop);
}

/* The units along an axis. */
typedef struct Units {
    Val n, length, most; /* all, elements of a unit, units of a tile */
    bool is_one;         /* a tile never has several */
} Units;

/* A line of units side by side: of one batch, and of the same columns, or streamed ones of the same
 * rows. Lines are side by side too. */
typedef struct Side {
    Units along, across;
} Side;

/* A number of the variant that runs. */
static Val of_variant(const Gemm *gemm, Val few, Val all) {
    return few == all ? all : k_select(gemm->lower->k, gemm->is_few, few, all);
}

static Val constant_of_variant(const Gemm *gemm, uint32_t few, uint32_t all) {
    Val of_few = lower_index_const(gemm->lower, few);
    return of_variant(gemm, of_few, lower_index_const(gemm->lower, all));
}

static Units units_along(const Gemm *gemm, bool is_row) {
    Lower *lower = gemm->lower;
    DimTab *dims = lower_dims(lower);
    GemmUnits few = gemm->few, all = gemm->units;
    DimId extent = is_row ? gemm->row.extent : gemm->column.extent;
    uint32_t few_length = is_row ? few.rows : few.columns, length = is_row ? all.rows : all.columns;
    uint32_t few_most = (is_row ? few.block_rows : few.block_columns) / few_length;
    uint32_t most = (is_row ? all.block_rows : all.block_columns) / length;
    Units units = {.is_one = few_most == 1 && most == 1};
    Val few_n = lower_dim(lower, dim_ceil_div(dims, extent, few_length));
    Val n = few_length == length ? few_n : lower_dim(lower, dim_ceil_div(dims, extent, length));
    units.n = of_variant(gemm, few_n, n);
    units.length = constant_of_variant(gemm, few_length, length);
    units.most = constant_of_variant(gemm, few_most, most);
    return units;
}

static Side side_of(const Gemm *gemm) {
    Side side;
    side.along = units_along(gemm, !gemm->is_streamed);
    side.across = units_along(gemm, gemm->is_streamed);
    return side;
}

/* The number of units from `first` on that are one tile: those side by side up to `end`, in equal
 * parts that fit. */
static Val count_units(const Gemm *gemm, Val first, Val n_left, Val n_side, Val most) {
    const Codegen *k = gemm->lower->k;
    Val n_beside = k_sub(k, n_side, first);
    Val n = k_select(k, k_slt(k, n_left, n_beside), n_left, n_beside);
    Val before_most = k_addi(k, most, -1);
    Val n_parts = k_udiv(k, k_add(k, n, before_most), most);
    return k_udiv(k, k_addi(k, k_add(k, n, n_parts), -1), n_parts);
}

/* The number of lines of units that are one tile: several if the units left begin a line and are
 * whole lines. A schedule whose tile has several lines has all of a line in it. */
static Val count_lines(const Gemm *gemm, const Side *side, Val first, Val n_left, Val n_lines) {
    const Codegen *k = gemm->lower->k;
    Val zero = lower_index_const(gemm->lower, 0), one = lower_index_const(gemm->lower, 1);
    if (side->across.is_one) return one;
    Val begins = k_eqi(k, first, 0);
    Val is_whole = k_and(k, begins, k_uge(k, n_left, side->along.n));
    Val n_whole = k_select(k, is_whole, k_udiv(k, n_left, side->along.n), one);
    return count_units(gemm, zero, n_whole, n_lines, side->across.most);
}

static void set_range(const Gemm *gemm, DimId extent, Val begin, Val n, Val *from, Val *n_elems) {
    Lower *lower = gemm->lower;
    const Codegen *k = lower->k;
    Val left = k_sub(k, lower_dim(lower, extent), begin);
    *from = begin;
    *n_elems = k_select(k, k_ult(k, left, n), left, n);
}

/* The first batch of the units of this number. A sweep is a part of the rows of one image. */
static Val first_batch(const Gemm *gemm, Val number) {
    const Codegen *k = gemm->lower->k;
    if (!gemm->sweep) return k_muli(k, number, gemm->n_batches);
    int64_t n_rows = gemm->sweep->n_rows;
    int64_t n_parts = (n_rows + gemm->n_swept - 1) / gemm->n_swept;
    Val image = k_muli(k, k_udivi(k, number, n_parts), n_rows);
    return k_add(k, image, k_muli(k, k_uremi(k, number, n_parts), gemm->n_swept));
}

/* Sets the tile that begins at the unit, and returns its number of units. They are numbered by the
 * side first, then across, then by batch. */
static Val set_units(Gemm *gemm, Val unit, Val end) {
    Lower *lower = gemm->lower;
    const Codegen *k = lower->k;
    Side side = side_of(gemm);
    Val n_side = side.along.n, n_across = side.across.n;
    Val first = k_urem(k, unit, n_side);
    Val rest = k_udiv(k, unit, n_side);
    Val across = k_urem(k, rest, n_across);
    Val n_left = k_sub(k, end, unit);
    Val n = count_units(gemm, first, n_left, n_side, side.along.most);
    Val n_lines = count_lines(gemm, &side, first, n_left, k_sub(k, n_across, across));
    Val along = k_mul(k, first, side.along.length);
    Val n_along = k_mul(k, n, side.along.length);
    Val beside = k_mul(k, across, side.across.length);
    Val n_rows, n_beside = k_mul(k, n_lines, side.across.length);
    gemm->batch = first_batch(gemm, k_udiv(k, rest, n_across));
    lower_split(lower, gemm->batch, 0, lower->kernel->n_parallel - 2, &gemm->point);
    set_range(gemm, gemm->row.extent, gemm->is_streamed ? beside : along,
              gemm->is_streamed ? n_beside : n_along, &gemm->row_begin, &n_rows);
    set_range(gemm, gemm->column.extent, gemm->is_streamed ? along : beside,
              gemm->is_streamed ? n_along : n_beside, &gemm->column_begin, &gemm->n_columns);
    gemm->row_end = k_add(k, gemm->row_begin, n_rows);
    return side.across.is_one ? n : k_mul(k, n, n_lines);
}

void emit_cpu_gemm(Lower *lower) {
    SequenceGemms sequence = {.n = lower->n_together, .rows = lower->rows};
    sequence.gemms = arena_array(lower->k->arena, Gemm, sequence.n);
    for (uint32_t p = 0; p < sequence.n; p++) {
        sequence.gemms[p] = gemm_new(&lower[p]);
        gemm_choose_stores(&sequence.gemms[p], sequence.n == 1 && !sequence.rows);
        make_arrays(&sequence.gemms[p], sequence.gemms);
    }
    bool all_pair = true; /* they share the packed rows */
    for (uint32_t p = 0; p < sequence.n; p++)
        all_pair = all_pair && gemm_may_pair(&sequence.gemms[p]);
    for (uint32_t p = 0; p < sequence.n; p++) sequence.gemms[p].has_pairs = all_pair;
    if (sequence.rows) make_room(&sequence);
    if (lower->behind_rows) make_behind(&sequence, lower->behind_rows);
    if (sequence.gemms->has_amx) gemm_amx_begin(lower->k);
    Loop units = cpu_unit_loop(lower, lower->units_begin, lower->units_end, 1);
    units.step = set_units(sequence.gemms, units.index, units.to);
    if (sequence.rows && is_transposed(sequence.gemms))
        place_rows(&sequence, sequence.gemms->column_begin);
    if (sequence.behind) take_columns_behind(&sequence);
    if (sequence.gemms->sweep)
        sweep_image(&sequence);
    else
        each_k_block(&sequence);
    loop_end(lower->k, &units);
    if (sequence.gemms->has_amx) gemm_amx_end(lower->k);
}
