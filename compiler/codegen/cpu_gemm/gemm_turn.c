/* Turned stores of a CPU GEMM. See gemm.h.
 *
 * The lanes of a register tile are columns, which may be far apart in the outputs while rows lie
 * side by side: images with channels first. Then squares of partial results are transposed, and
 * vectors along the rows are finished and stored.
 *
 *     partials   r0 | c0 c1 c2 ..        outputs    c0 | r0 r1 r2 ..
 *                r1 | c0 c1 c2 ..                   c1 | r0 r1 r2 ..
 *
 * Several panels of rows are kept before they are stored, so that vectors are full. The columns of
 * a strided transposed convolution have a phase of the stride, and those of all phases are woven
 * into one row of the output. */
#include "codegen/cpu_gemm/gemm.h"
#include "base/arith.h"
#include "machine/tuning.h"

/* Whether the stored values are no bools, which have bits in registers. */
static bool has_bytes(const Gemm *gemm) {
    const Store *store = &gemm->lower->kernel->row_stores.data[0];
    return !dtype_is_bool(gemm->lower->plan->buffers.data[store->buffer].dtype);
}

/* The panels of a unit that are kept, as many as fit in a cache, but such that vectors of rows are
 * mostly full. */
static uint32_t kept_panels(const Gemm *gemm) {
    int64_t panel_bytes =
        (int64_t)gemm->n_tile_rows * gemm->units.block_columns * dtype_bytes(gemm->acc);
    uint32_t all = gemm->units.rows / gemm->n_tile_rows, n = all;
    while (n > 1 && (n * panel_bytes > SCHED_CPU_TURNED_BYTES || all % n)) n--;
    while (n < all && (n * gemm->n_tile_rows < 2 * gemm->lanes || all % n)) n++;
    return n;
}

/* The run of the stores' rows; 0: their lanes would be mostly empty, or are not side by side. */
static uint32_t find_run(Gemm *gemm, uint32_t n_kept) {
    const Kernel *kernel = gemm->lower->kernel;
    const DimTab *dims = lower_dims(gemm->lower);
    Arena *arena = gemm->lower->k->arena;
    int64_t rows = min_i64(n_kept, dim_hi(dims, gemm->row.extent));
    int64_t columns = dim_hi(dims, gemm->column.extent);
    if (2 * rows < gemm->lanes || columns < 2 ||
        !cpu_pack_stores_apart(kernel, gemm->column.axis, gemm->lanes))
        return 0;
    uint32_t run = kernel_store_run(arena, kernel, gemm->row.axis);
    bool may_weave =
        gemm->row.axis == gemm_axis_m(kernel) && columns <= gemm->units.columns && has_bytes(gemm);
    if (!run && may_weave && cpu_pack_weaves(arena, kernel, gemm->lanes, &gemm->weave))
        run = gemm->weave.run;
    return 2 * rows * run < gemm->lanes * (rows + run) ? 0 : run;
}

void gemm_choose_stores(Gemm *gemm, bool is_alone) {
    gemm->store_rows = gemm->n_tile_rows;
    if (!is_alone || gemm->lanes == 1 || gemm->is_streamed || gemm->n_batches > 1 || gemm->sweep)
        return;
    uint32_t n_kept = kept_panels(gemm) * gemm->n_tile_rows;
    gemm->store_run = find_run(gemm, n_kept);
    if (gemm->store_run)
        gemm->store_rows = n_kept;
    else
        gemm->weave.n = 0;
}

/* Vectors of rows from `first` on, which is a row of the partial results at `partials`. */
typedef struct Turn {
    Gemm *gemm;
    Val turned; /* a square, or those of all columns */
    Val first, partials;
    Val column; /* the first column of the square */
    Point point;
} Turn;

/* Transposes the square of partial results that begins at the row and the column. Partial results
 * of rows and columns that do not exist come into lanes that nobody stores. */
static void turn_square(const Turn *turn, Val at_row, Val column, Val square) {
    const Gemm *gemm = turn->gemm;
    const Codegen *k = gemm->lower->k;
    Val *vectors = arena_array(k->arena, Val, gemm->lanes);
    Val row = k_add(k, turn->partials, k_sub(k, at_row, turn->first));
    Val offset = k_sub(k, column, gemm->column_begin);
    for (uint32_t i = 0; i < gemm->lanes; i++) {
        Val at = k_muli(k, k_addi(k, row, i), gemm->units.block_columns);
        vectors[i] = gemm_load(gemm, gemm_element(gemm, gemm->partials, k_add(k, at, offset)));
    }
    k_transpose(k, vectors, gemm->lanes);
    for (uint32_t i = 0; i < gemm->lanes; i++) {
        Val to = lower_index_const(gemm->lower, (int64_t)i * gemm->lanes);
        gemm_store(gemm, gemm_element(gemm, square, to), vectors[i]);
    }
}

/* The point of a column, `at` after the first one that is turned, with its results. */
static Point finished_point(const Turn *turn, Val at_row, Val mask, Val at) {
    const Gemm *gemm = turn->gemm;
    const Codegen *k = gemm->lower->k;
    Point point = point_inside(&turn->point);
    point.mask = mask;
    point.axis[gemm->row.axis] = at_row;
    point.axis[gemm->column.axis] = k_add(k, turn->column, at);
    CpuArray turned = {.dtype = gemm->acc, .values = turn->turned};
    acc_finish(&point, 0,
               cpu_array_load(gemm->lower, &turned, k_muli(k, at, gemm->lanes), gemm->lanes));
    return point;
}

/* Finishes and stores the columns of a square, for rows from `at_row` on. */
static void store_square(void *user, Val at_row, Val mask) {
    const Turn *turn = user;
    const Gemm *gemm = turn->gemm;
    const Codegen *k = gemm->lower->k;
    const Kernel *kernel = gemm->lower->kernel;
    turn_square(turn, at_row, turn->column, turn->turned);
    Val end = k_add(k, gemm->column_begin, gemm->n_columns);
    Val n = cpu_at_most(gemm->lower, k_sub(k, end, turn->column), gemm->lanes);
    Loop loop = loop_over(k, n, 1);
    Point point = finished_point(turn, at_row, mask, loop.index);
    point_store_all(&point, kernel->row_stores.data, kernel->row_stores.n);
    loop_end(k, &loop);
}

/* The same of all columns, of which some are woven together. */
static void store_woven(void *user, Val at_row, Val mask) {
    const Turn *turn = user;
    const Gemm *gemm = turn->gemm;
    const Codegen *k = gemm->lower->k;
    StoreWeave weave = gemm->weave;
    Point points[STORE_WEAVE_MOST];
    Loop squares = loop_over(k, gemm->n_columns, gemm->lanes);
    Val to = k_muli(k, squares.index, gemm->lanes);
    Val square = gemm_element(gemm, turn->turned, to);
    turn_square(turn, at_row, k_add(k, turn->column, squares.index), square);
    loop_end(k, &squares);
    Loop outer = loop_over(k, gemm->n_columns, weave.n * weave.apart);
    Loop inner = loop_over(k, lower_index_const(gemm->lower, weave.apart), 1);
    Val first = k_add(k, outer.index, inner.index);
    const Store *store = &gemm->lower->kernel->row_stores.data[0];
    for (uint32_t i = 0; i < weave.n; i++) {
        points[i] = finished_point(turn, at_row, mask, k_addi(k, first, i * weave.apart));
        point_lanes(&points[i], store->value); /* while the point's result is its own */
    }
    point_store_woven(points, weave.n, store);
    loop_end(k, &inner);
    loop_end(k, &outer);
}

static void begin_at(Turn *turn, Val column) {
    const Gemm *gemm = turn->gemm;
    turn->column = column;
    turn->point = point_inside(&gemm->point);
    turn->point.lanes = gemm->lanes;
    turn->point.lane_axis = gemm->row.axis;
    turn->point.block = gemm->store_run;
}

/* Stores rows [from, to) of one run. */
static void store_rows(Turn *turn, Val from, Val to) {
    const Gemm *gemm = turn->gemm;
    Lower *lower = gemm->lower;
    const Codegen *k = lower->k;
    Val n = k_sub(k, to, from);
    if (gemm->weave.n) {
        begin_at(turn, gemm->column_begin);
        cpu_each_step(lower, from, n, gemm->lanes, false, store_woven, turn);
        return;
    }
    Val end = k_add(k, gemm->column_begin, gemm->n_columns);
    Loop loop = loop_begin(k, gemm->column_begin, end, gemm->lanes);
    begin_at(turn, loop.index);
    cpu_each_step(lower, from, n, gemm->lanes, false, store_square, turn);
    loop_end(k, &loop);
}

void gemm_turn_stores(Gemm *gemm, Val first, Val end, Val partials) {
    Lower *lower = gemm->lower;
    const Codegen *k = lower->k;
    int64_t n_columns = gemm->weave.n ? gemm->units.block_columns : gemm->lanes;
    Turn turn = {.gemm = gemm,
                 .turned = cpu_array_new(lower, gemm->acc, false, n_columns * gemm->lanes).values,
                 .first = first,
                 .partials = partials};
    if (gemm->store_run == INDEX_ANY_START) {
        store_rows(&turn, first, end);
        return;
    }
    Val n_run = lower_index_const(lower, gemm->store_run);
    Loop loop = loop_begin(k, k_sub(k, first, k_urem(k, first, n_run)), end, gemm->store_run);
    Val next = k_add(k, loop.index, n_run);
    Val from = k_select(k, k_slt(k, loop.index, first), first, loop.index);
    store_rows(&turn, from, k_select(k, k_slt(k, end, next), end, next));
    loop_end(k, &loop);
}
