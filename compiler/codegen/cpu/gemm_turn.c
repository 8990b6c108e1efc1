/* Turned stores of a CPU GEMM. See gemm.h.
 *
 * The lanes of a register tile are columns, which may be far apart in the outputs while rows lie
 * side by side: images with channels first. Then squares of partial results are transposed, and
 * vectors along the rows are finished and stored.
 *
 *     partials   r0 | c0 c1 c2 ..        outputs    c0 | r0 r1 r2 ..
 *                r1 | c0 c1 c2 ..                   c1 | r0 r1 r2 ..
 *
 * Several panels of rows are kept before they are stored, so that vectors are full. */
#include "codegen/cpu/gemm.h"
#include "machine/tuning.h"
#include "plan/access.h"

static bool are_apart(const Kernel *kernel, uint32_t axis, uint32_t lanes) {
    IndexTab *tab = scalartab_indices(kernel->scalars);
    for (uint32_t i = 0; i < kernel->row_stores.n; i++)
        if (index_lane_motion(tab, kernel->row_stores.data[i].address, axis, lanes) !=
            LANES_VARYING)
            return false;
    return true;
}

void gemm_choose_stores(Gemm *gemm, bool is_alone) {
    const Kernel *kernel = gemm->lower->kernel;
    int64_t rows = dim_hi(lower_dims(gemm->lower), gemm->row.extent);
    int64_t columns = dim_hi(lower_dims(gemm->lower), gemm->column.extent);
    uint32_t least = gemm->lanes / 2;
    gemm->store_rows = gemm->n_tile_rows;
    gemm->store_run = 0;
    if (!is_alone || gemm->lanes == 1 || gemm->is_streamed || rows < least || columns < 2 ||
        !are_apart(kernel, gemm->column.axis, gemm->lanes))
        return;
    uint32_t run = kernel_store_run(gemm->lower->k->arena, kernel, gemm->row.axis);
    if (run < least) return;
    int64_t panel_bytes = (int64_t)gemm->n_tile_rows * gemm->block_columns * dtype_bytes(gemm->acc);
    uint32_t n_panels = gemm->unit_rows / gemm->n_tile_rows;
    while (n_panels > 1 && (n_panels * panel_bytes > SCHED_CPU_TURNED_BYTES ||
                            gemm->unit_rows % (n_panels * gemm->n_tile_rows)))
        n_panels--;
    gemm->store_run = run;
    gemm->store_rows = n_panels * gemm->n_tile_rows;
}

/* Vectors of rows from `first` on, which is a row of the partial results at `partials`. */
typedef struct Turn {
    Gemm *gemm;
    Val square;
    Val first, partials;
    Val column; /* the first column of the square */
    Point point;
} Turn;

/* Transposes a square of partial results. Those that do not exist are in no lane that is stored. */
static void turn_square(const Turn *turn, Val at_row) {
    const Gemm *gemm = turn->gemm;
    const Codegen *k = gemm->lower->k;
    Val *vectors = arena_array(k->arena, Val, gemm->lanes);
    Val row = k_add(k, turn->partials, k_sub(k, at_row, turn->first));
    Val offset = k_sub(k, turn->column, gemm->column_begin);
    for (uint32_t i = 0; i < gemm->lanes; i++) {
        Val at = k_muli(k, k_addi(k, row, i), gemm->block_columns);
        vectors[i] = gemm_load(gemm, gemm_element(gemm, gemm->partials, k_add(k, at, offset)));
    }
    k_transpose(k, vectors, gemm->lanes);
    for (uint32_t i = 0; i < gemm->lanes; i++) {
        Val to = lower_index_const(gemm->lower, (int64_t)i * gemm->lanes);
        gemm_store(gemm, gemm_element(gemm, turn->square, to), vectors[i]);
    }
}

/* Finishes and stores the columns of a square, for rows from `at_row` on. */
static void store_square(void *user, Val at_row, Val mask) {
    const Turn *turn = user;
    const Gemm *gemm = turn->gemm;
    Lower *lower = gemm->lower;
    const Codegen *k = lower->k;
    const Kernel *kernel = lower->kernel;
    turn_square(turn, at_row);
    Val end = k_add(k, gemm->column_begin, gemm->n_columns);
    Val n = cpu_at_most(lower, k_sub(k, end, turn->column), gemm->lanes);
    Loop loop = loop_over(k, n, 1);
    Point point = point_inside(&turn->point);
    point.mask = mask;
    point.axis[gemm->row.axis] = at_row;
    point.axis[gemm->column.axis] = k_add(k, turn->column, loop.index);
    CpuArray square = {.dtype = gemm->acc, .values = turn->square};
    Val at = k_muli(k, loop.index, gemm->lanes);
    acc_finish(&point, 0, cpu_array_load(lower, &square, at, gemm->lanes));
    point_store_all(&point, kernel->row_stores.data, kernel->row_stores.n);
    loop_end(k, &loop);
}

/* Stores rows [from, to) of one run. */
static void store_rows(Turn *turn, Val from, Val to) {
    const Gemm *gemm = turn->gemm;
    Lower *lower = gemm->lower;
    const Codegen *k = lower->k;
    Val end = k_add(k, gemm->column_begin, gemm->n_columns);
    Loop loop = loop_begin(k, gemm->column_begin, end, gemm->lanes);
    turn->column = loop.index;
    turn->point = point_inside(&gemm->point);
    turn->point.lanes = gemm->lanes;
    turn->point.lane_axis = gemm->row.axis;
    turn->point.block = gemm->store_run;
    cpu_each_step(lower, from, k_sub(k, to, from), gemm->lanes, false, store_square, turn);
    loop_end(k, &loop);
}

void gemm_turn_stores(Gemm *gemm, Val first, Val end, Val partials) {
    Lower *lower = gemm->lower;
    const Codegen *k = lower->k;
    int64_t n_square = (int64_t)gemm->lanes * gemm->lanes;
    Turn turn = {.gemm = gemm,
                 .square = cpu_array_new(lower, gemm->acc, false, n_square).values,
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
