/* Epilogues of GPU GEMMs. See gemm.h. */
#include "codegen/gpu_gemm/gemm.h"

#include "codegen/scalar/point_index.h"
#include "machine/tuning.h"

#include <string.h>

enum { MAX_STORES = 64 };

/* The number of lanes that the epilogue takes along n: a power of two, at most `most`. */
static uint32_t store_lanes(const Lower *lower, uint32_t most) {
    uint32_t n = gemm_axis_n(lower->kernel);
    while (most > 1 && !gpu_gemm_axis_is_multiple(lower, n, most)) most /= 2;
    return dim_equals_const(lower_dims(lower), kernel_axis_extent(lower->kernel, n), 0) ? 1 : most;
}

/* Outputs whose values are computed but not yet stored. */
typedef struct Pending {
    Point point;
    Val exists; /* i1: inside the extents; NULL: always */
} Pending;

/* Whether (row, column) is inside the extents; NULL: it always is. */
static Val is_inside(const GemmBlock *block, Val row, Val column) {
    const Lower *lower = block->lower;
    const Codegen *k = lower->k;
    const Sched *sched = &lower->variant->sched;
    Val inside = NULL;
    uint32_t rows = sched_tile(sched).m;
    if (template_info(sched->template)->uses_copy_engine && sched->cluster > 1)
        rows *= sched->cluster;
    if (!gpu_gemm_axis_is_multiple(lower, gemm_axis_m(lower->kernel), rows))
        inside = k_ult(k, row, block->m);
    if (block->is_whole) return inside;
    Val in_row = k_ult(k, column, block->n);
    return inside ? k_and(k, inside, in_row) : in_row;
}

/* Computes the epilogue of one row. `value` has the GEMM's results and `early` the loads started
 * before. `before` has the outputs of the launch's `n_before` earlier kernels, whose values this
 * one may read. */
static Pending compute_outputs(const GemmEpilogue *epilogue, Val row, Val value, const Val *early,
                               Pending *before, uint32_t n_before) {
    const GemmBlock *block = &epilogue->block;
    const GemmColumn *column = &epilogue->column;
    Lower *lower = block->lower;
    const Kernel *kernel = lower->kernel;
    Val at = column->point.axis[gemm_axis_n(kernel)];
    Pending pending = {.point = point_inside(&column->point)};
    pending.exists = n_before ? before->exists : is_inside(block, row, at);
    Point *point = &pending.point;
    point->axis[gemm_axis_m(kernel)] = row;
    point->active = pending.exists;
    for (uint32_t i = 0; i < column->n_early; i++) point->values[column->early[i]] = early[i];
    for (uint32_t i = 0; i < n_before; i++) point_take_passed(point, &before[i].point);
    point->results = arena_array(lower->k->arena, Val, kernel->reduces.n);
    point->results[0] = value;
    point_prepare_stores(point, kernel->row_stores.data, kernel->row_stores.n);
    return pending;
}

/* Stores the outputs of all kernels that share the block. */
static void store_outputs(Pending *pending, uint32_t n_epilogues) {
    Lower *lower = pending->point.lower;
    If exists = if_begin(lower->k, pending->exists);
    for (uint32_t p = 0; p < n_epilogues; p++) {
        const Kernel *kernel = pending[p].point.lower->kernel;
        for (uint32_t i = 0; i < kernel->row_stores.n; i++)
            point_store(&pending[p].point, &kernel->row_stores.data[i]);
    }
    if_end(lower->k, &exists);
}

static Point epilogue_point(const GemmBlock *block, Val column, uint32_t lanes) {
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

/* Computes values that depend on the column alone before the loop over rows. */
static void prepare_column(const GemmBlock *block, Point *point) {
    const Kernel *kernel = block->lower->kernel;
    ScalarId roots[MAX_STORES];
    uint32_t n = list_stored(kernel, roots), row_axis = 1u << gemm_axis_m(kernel);
    if (!block->is_whole)
        point->active = k_ult(block->lower->k, point->axis[point->lane_axis], block->n);
    point_prepare(point, roots, n, row_axis);
}

static Val load_subtile(const GemmBlock *block, const GemmSubtile *subtile, Val row, Val column,
                        uint32_t lanes) {
    const Codegen *k = block->lower->k;
    const Reduce *reduce = &block->lower->kernel->reduces.data[0];
    Dtype dtype = subtile->is_rounded ? reduce->result : reduce->acc;
    Val at = k_madi(k, row, subtile->pitch, column);
    Val pointer = k_gep(k, k_value_type(k, dtype, 1), subtile->shared, at);
    return k_load_aligned(k, k_value_type(k, dtype, lanes), pointer,
                          lanes * dtype_bytes(dtype) < 16 ? lanes * dtype_bytes(dtype) : 16);
}

/* row_of_subtile for a part whose rows are contiguous: rows a constant distance apart stay so,
 * which lets addresses share code. */
static Val row_of_run(const GemmBlock *block, Val row) {
    const Codegen *k = block->lower->k;
    int64_t constant;
    row = k_add(k, block->m0, gpu_index(block->lower, point_without_constant(row, &constant)));
    return k_offset(k, row, constant);
}

/* The matrix row of row `row` (i32) of the part. */
static Val row_of_subtile(const GemmBlock *block, const GemmSubtile *subtile, Val row) {
    const Lower *lower = block->lower;
    const Codegen *k = lower->k;
    if (subtile->run >= subtile->n_rows && !subtile->first_row) return row_of_run(block, row);
    Val run = k_udivi(k, row, subtile->run);
    Val in_run = k_andi(k, row, (int64_t)subtile->run - 1);
    Val at = k_madi(k, run, subtile->run_stride, in_run);
    if (subtile->first_row) at = k_add(k, at, subtile->first_row);
    return k_add(k, block->m0, gpu_index(lower, at));
}

GemmColumn gpu_gemm_column(const GemmBlock *block, Val in_tile, uint32_t lanes) {
    Val at = k_add(block->lower->k, block->n0, gpu_index(block->lower, in_tile));
    GemmColumn column = {.point = epilogue_point(block, at, lanes), .in_subtile = in_tile};
    prepare_column(block, &column.point);
    return column;
}

/* The place where a column keeps value `i`: its position, whether it exists, then scalars. */
static Val *column_slot(Point *point, uint32_t i) {
    if (i == 0) return &point->axis[point->lane_axis];
    return i == 1 ? &point->active : &point->values[i - 1];
}

/* Whether the value belongs to the column: it is set, not the block's, and no constant. */
static bool is_columns_own(const GemmBlock *block, Val value, uint32_t i) {
    return value && !LLVMIsConstant(value) && (i < 2 || value != block->point.values[i - 1]);
}

uint32_t gpu_gemm_carry_column(const GemmBlock *block, GemmColumn *column, Loop *loop) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < scalar_count(block->lower->kernel->scalars) + 2; i++) {
        Val *slot = column_slot(&column->point, i);
        if (!is_columns_own(block, *slot, i)) continue;
        if (loop) loop_carry(block->lower->k, loop, slot, 1);
        n++;
    }
    return n;
}

void gpu_gemm_move_column(const GemmBlock *block, GemmColumn *column, const GemmColumn *to) {
    Point point = to->point;
    for (uint32_t i = 0; i < scalar_count(block->lower->kernel->scalars) + 2; i++) {
        Val *slot = column_slot(&column->point, i);
        if (is_columns_own(block, *slot, i)) *slot = *column_slot(&point, i);
    }
}

/* Whether a kernel of the same block computes the loaded tensor. */
static bool is_made_by(const Lower *epilogues, uint32_t n_epilogues, const Scalar *load) {
    for (uint32_t p = 0; p < n_epilogues; p++) {
        const Kernel *kernel = epilogues[p].kernel;
        for (uint32_t i = 0; i < kernel->row_stores.n; i++)
            if (kernel->row_stores.data[i].buffer == load->buffer) return true;
    }
    return false;
}

void gpu_gemm_load_early(GemmEpilogue *epilogues, uint32_t n_epilogues) {
    ScalarId stored[MAX_STORES], loads[GEMM_MAX_EARLY_LOADS];
    for (uint32_t p = 0; p < n_epilogues; p++) {
        GemmColumn *column = &epilogues[p].column;
        const Kernel *kernel = epilogues[p].block.lower->kernel;
        uint32_t n = list_stored(kernel, stored);
        n = point_list_loads(&column->point, stored, n, loads, GEMM_MAX_EARLY_LOADS);
        column->n_early = 0;
        for (uint32_t i = 0; i < n; i++)
            if (!is_made_by(epilogues->block.lower, n_epilogues,
                            scalar_get(kernel->scalars, loads[i])))
                column->early[column->n_early++] = loads[i];
    }
}

/* The number of early loads of one row, over all kernels that share the block. */
static uint32_t n_early_loads(const GemmRows *rows) {
    uint32_t n = 0;
    for (uint32_t p = 0; p < rows->n_epilogues; p++) n += rows->epilogues[p].column.n_early;
    return n;
}

static Val row_ahead(const GemmRows *rows, Val row, uint32_t n_steps) {
    return k_addi(rows->epilogues->block.lower->k, row, (int64_t)rows->step * n_steps);
}

static void load_row_early(const GemmEpilogue *epilogue, Val row, Val *values) {
    const Kernel *kernel = epilogue->block.lower->kernel;
    const GemmColumn *column = &epilogue->column;
    Point point = point_inside(&column->point);
    point.active = is_inside(&epilogue->block, row, point.axis[gemm_axis_n(kernel)]);
    point.axis[gemm_axis_m(kernel)] = row;
    for (uint32_t i = 0; i < column->n_early; i++)
        values[i] = point_value(&point, column->early[i]);
}

/* Starts the early loads of one iteration's rows, the first of which is row `first` (i32) of the
 * part. */
static void load_early_of(const GemmRows *rows, const GemmEpilogue *epilogue, Val first,
                          Val *values) {
    uint32_t n_early = n_early_loads(rows);
    for (uint32_t u = 0; u < rows->unroll && epilogue->column.n_early; u++) {
        Val row = row_of_subtile(&epilogue->block, rows->subtile, row_ahead(rows, first, u));
        load_row_early(epilogue, row, values + (size_t)u * n_early);
    }
}

/* Past the last row, this loads the part's first rows again, and nobody uses them. */
static void load_early(const GemmRows *rows, Val first, Val *values) {
    const Codegen *k = rows->epilogues->block.lower->k;
    Val n_rows = k_i32(k, rows->subtile->n_rows);
    if (rows->subtile->n_next) n_rows = k_add(k, n_rows, rows->subtile->n_next);
    first = k_select(k, k_ult(k, first, n_rows), first, k_i32(k, 0));
    for (uint32_t p = 0; p < rows->n_epilogues; p++) {
        load_early_of(rows, &rows->epilogues[p], first, values);
        values += rows->epilogues[p].column.n_early;
    }
}

/* Computes the outputs of one row for every kernel that shares the block. */
static void compute_row(const GemmRows *rows, Val row, const Val *early, Pending *pending) {
    for (uint32_t p = 0; p < rows->n_epilogues; p++) {
        const GemmEpilogue *epilogue = &rows->epilogues[p];
        const Codegen *k = epilogue->block.lower->k;
        Val column = epilogue->column.in_subtile;
        const GemmSubtile *subtile = rows->subtile;
        uint32_t between = subtile->between ? subtile->between : subtile->n_columns;
        column = k_offset(k, column, (int64_t)p * between);
        Val value =
            load_subtile(&epilogue->block, subtile, row, column, epilogue->column.point.lanes);
        if (!subtile->is_rounded) value = gpu_gemm_rounded(epilogue->block.lower, value);
        Val at = row_of_subtile(&epilogue->block, subtile, row);
        pending[p] = compute_outputs(epilogue, at, value, early, pending, p);
        early += epilogue->column.n_early;
    }
}

/* Registers that hold the early loads of one row. */
static uint32_t early_words(const GemmEpilogue *epilogues, uint32_t n_epilogues) {
    uint32_t n = 0;
    for (uint32_t p = 0; p < n_epilogues; p++) {
        const GemmColumn *column = &epilogues[p].column;
        for (uint32_t i = 0; i < column->n_early; i++) {
            const ScalarTab *scalars = epilogues[p].block.lower->kernel->scalars;
            uint32_t bytes = dtype_bytes(scalar_get(scalars, column->early[i])->dtype);
            n += (column->point.lanes * bytes + 3) / 4;
        }
    }
    return n;
}

GemmRows gpu_gemm_rows(const GemmEpilogue *epilogues, uint32_t n_epilogues,
                       const GemmSubtile *subtile, Val first, uint32_t step, uint32_t unroll) {
    uint32_t n_steps = subtile->n_rows / step;
    uint32_t words = early_words(epilogues, n_epilogues);
    while (unroll > 1 && (n_steps % unroll || unroll * words > CODEGEN_EARLY_WORDS)) unroll /= 2;
    return (GemmRows){.epilogues = epilogues,
                      .n_epilogues = n_epilogues,
                      .subtile = subtile,
                      .first = first,
                      .step = step,
                      .unroll = n_steps ? unroll : 1};
}

uint32_t gpu_gemm_begin_rows(const GemmRows *rows, Val *values) {
    load_early(rows, rows->first, values);
    return rows->unroll * n_early_loads(rows);
}

/* Software pipelining: each iteration starts the early loads of the next one before it computes and
 * stores its own rows. */
void gpu_gemm_epilogue_rows(const GemmRows *rows, Val *values) {
    Lower *lower = rows->epilogues->block.lower;
    Codegen *k = lower->k;
    uint32_t unroll = rows->unroll, n_early = n_early_loads(rows);
    Val next[GEMM_MAX_EARLY_VALUES];
    Loop loop =
        loop_begin(k, rows->first, k_i32(k, rows->subtile->n_rows), (int64_t)rows->step * unroll);
    loop_carry(k, &loop, values, unroll * n_early);
    load_early(rows, row_ahead(rows, loop.index, unroll), next);
    Pending pending[GEMM_MAX_UNROLL][GEMM_MAX_EPILOGUES];
    for (uint32_t u = 0; u < unroll; u++)
        compute_row(rows, row_ahead(rows, loop.index, u), values + u * n_early, pending[u]);
    for (uint32_t u = 0; u < unroll; u++) store_outputs(pending[u], rows->n_epilogues);
    memcpy(values, next, unroll * n_early * sizeof *next);
    loop_end(k, &loop);
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
    return cost <= CODEGEN_EPILOGUE_CHEAP ? 4 : cost <= CODEGEN_EPILOGUE_MODERATE ? 2 : 1;
}

void gpu_gemm_epilogue(const GemmBlock *block, const GemmSubtile *subtile) {
    Lower *lower = block->lower;
    const Codegen *k = lower->k;
    uint32_t threads = lower->variant->sched.threads;
    uint32_t lanes = gpu_gemm_lanes(block, subtile->n_columns);
    uint32_t groups = subtile->n_columns / lanes, width = groups < threads ? groups : threads;
    uint32_t unroll = gpu_gemm_rows_at_once(lower);
    Val across = k_i32(k, width), values[GEMM_MAX_EARLY_VALUES];
    Val first = k_udiv(k, block->thread, across);
    Val group = k_urem(k, block->thread, across);
    for (uint32_t done = 0; done < groups; done += width) {
        Val at = k_muli(k, k_addi(k, group, done), lanes);
        GemmEpilogue epilogue = {.block = *block, .column = gpu_gemm_column(block, at, lanes)};
        gpu_gemm_load_early(&epilogue, 1);
        GemmRows rows = gpu_gemm_rows(&epilogue, 1, subtile, first, threads / width, unroll);
        gpu_gemm_begin_rows(&rows, values);
        gpu_gemm_epilogue_rows(&rows, values);
    }
}

GemmOne gpu_gemm_begin_one(const GemmBlock *block, const GemmSubtile *subtile, Val element) {
    const Codegen *k = block->lower->k;
    Val n_columns = k_i32(k, subtile->n_columns);
    Val row = k_udiv(k, element, n_columns);
    Val column = k_urem(k, element, n_columns);
    GemmOne one = {.epilogue = {.block = *block, .column = gpu_gemm_column(block, column, 1)},
                   .row = row_of_subtile(block, subtile, row)};
    gpu_gemm_load_early(&one.epilogue, 1);
    load_row_early(&one.epilogue, one.row, one.early);
    return one;
}

void gpu_gemm_epilogue_one(const GemmOne *one, Val value) {
    value = gpu_gemm_rounded(one->epilogue.block.lower, value);
    Pending pending = compute_outputs(&one->epilogue, one->row, value, one->early, NULL, 0);
    store_outputs(&pending, 1);
}

void gpu_gemm_epilogue_subtiles(const GemmBlock *block, GemmSubtile subtile, uint32_t n_subtiles,
                                void (*put)(const void *user, uint32_t i), const void *user) {
    Lower *lower = block->lower;
    Codegen *k = lower->k;
    if (n_subtiles == 1) {
        put(user, 0);
        gpu_barrier(k);
        gpu_gemm_epilogue(block, &subtile);
        return;
    }
    Loop loop = loop_over(k, k_i32(k, n_subtiles), 1);
    gpu_barrier(k); /* all threads have read the part before */
    for (uint32_t i = 0; i < n_subtiles; i++) {
        If due = if_begin(k, k_eqi(k, loop.index, i));
        put(user, i);
        if_end(k, &due);
    }
    gpu_barrier(k);
    subtile.first_row = k_muli(k, loop.index, subtile.run);
    gpu_gemm_epilogue(block, &subtile);
    loop_end(k, &loop);
}

Val gpu_fragment_row(const Codegen *k, Val lane) {
    return k_lshri(k, lane, 2);
}

Val gpu_fragment_column(const Codegen *k, Val lane) {
    return k_shli(k, k_andi(k, lane, 3), 1);
}

Acc gpu_fragment_join(const Lower *lower, const Reduce *reduce, Acc acc) {
    for (uint32_t offset = 1; offset < 4; offset *= 2) {
        Acc other = {gpu_shuffle_xor(lower->k, acc.value, offset), NULL};
        acc = acc_combine(lower, reduce, acc, other);
    }
    return acc;
}

void gpu_gemm_put_fragments(const Codegen *k, const GemmFragments *f, Val place) {
    uint32_t bytes = dtype_bytes(f->stored);
    for (uint32_t i = 0; i < f->n_m * f->n_n * f->n_halves; i++) {
        uint32_t half = i % f->n_halves, m = i / f->n_halves / f->n_n, n = i / f->n_halves % f->n_n;
        uint32_t row = m * FRAGMENT_ROWS + half * PAIR_ROWS, column = n * FRAGMENT_COLUMNS;
        Val pair = k_vector(k, f->accs + gpu_fragment_pair(f->n_n, m, n, half), FRAGMENT_PAIR);
        pair = convert_value(k, pair, f->acc, f->stored);
        Val pointer =
            k_byte(k, place, k_i32(k, (int64_t)(row * f->pitch + f->column + column) * bytes));
        k_store_aligned(k, pair, pointer, bytes * 2);
    }
}
