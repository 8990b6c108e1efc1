/* CPU GEMMs of a few rows. Each element of the rhs is used so few times that packing it would cost
 * more than it saves. See gemm.h.
 *
 * The layout in memory decides the order of the loops. If the columns are contiguous, several steps
 * of k go over all of the unit's columns, whose partial results stay in the cache. If k is
 * contiguous, squares of columns by k are transposed in registers. In both cases an output adds its
 * products in ascending k. */
#include "codegen/cpu_gemm/gemm.h"

enum { MAX_HELD = 16, MAX_ROWS = 16 }; /* most broadcast elements, and accumulators, in registers */

typedef struct Steps {
    Gemm *gemm;
    uint32_t n;
    Val k;         /* k of the first step, in the block */
    Point *points; /* one per step */
    Val *held;     /* element (r, step) of the rows in every lane, at r * n + step; or NULL */
} Steps;

static Val constant(const Gemm *gemm, int64_t value) {
    return lower_index_const(gemm->lower, value);
}

/* The rows that are multiplied at a time: their accumulators fill half the vector registers. Code
 * for more rows loops over them. */
static uint32_t rows_at_once(const Gemm *gemm) {
    uint32_t most = gemm->lower->k->target->vector_bytes / 4;
    return most < MAX_ROWS ? most : MAX_ROWS;
}

static bool has_loop(const Gemm *gemm) {
    return gemm->n_tile_rows > rows_at_once(gemm);
}

/* The address of element (0, at_k) of the packed rows. */
static Val rows_at(const Gemm *gemm, Val at_k) {
    return gemm_element(gemm, gemm->rows, k_muli(gemm->lower->k, at_k, gemm->k_stride));
}

/* Element (r, step), counted from the address, broadcast to every lane. */
static Val row_element(const Gemm *gemm, Val rows, uint32_t r, uint32_t step) {
    const Codegen *k = gemm->lower->k;
    int64_t offset = (int64_t)r * gemm->row_stride + (int64_t)step * gemm->k_stride;
    Val pointer = gemm_element_by(gemm, rows, offset);
    return k_splat(k, k_load(k, k_value_type(k, gemm->acc, 1), pointer), gemm->lanes);
}

/* The address of partial results in row `r`, counted from another address. */
static Val partial_at(const Gemm *gemm, Val partials, uint32_t r) {
    return gemm_element(gemm, partials, constant(gemm, (int64_t)r * gemm->units.block_columns));
}

/* Emits code for `n` rows, whose elements at the step of k and partial results begin at these
 * addresses. */
typedef void RowsStep(void *user, Val rows, Val partials, uint32_t n);

/* Goes over all rows: the step of k is `at_k`, the partial results are `offset` columns into the
 * unit. */
static void each_rows(const Gemm *gemm, Val at_k, Val offset, RowsStep *step, void *user) {
    const Codegen *k = gemm->lower->k;
    uint32_t most = rows_at_once(gemm), rest = gemm->n_tile_rows % most;
    uint32_t n = gemm->n_tile_rows - rest;
    Val rows = rows_at(gemm, at_k), partials = gemm_element(gemm, gemm->partials, offset);
    if (n == most) {
        step(user, rows, partials, n);
    } else if (n) {
        Loop loop = loop_over(k, constant(gemm, n), most);
        Val row = gemm_element(gemm, rows, k_muli(k, loop.index, gemm->row_stride));
        Val at = k_muli(k, loop.index, gemm->units.block_columns);
        step(user, row, gemm_element(gemm, partials, at), most);
        loop_end(k, &loop);
    }
    if (!rest) return;
    Val row = gemm_element(gemm, rows, constant(gemm, (int64_t)n * gemm->row_stride));
    step(user, row, partial_at(gemm, partials, n), rest);
}

static void clear_partials(const Gemm *gemm) {
    Lower *lower = gemm->lower;
    const Codegen *k = lower->k;
    LLVMTypeRef type = k_value_type(k, gemm->acc, gemm->lanes);
    If first = if_begin(k, k_eq(k, gemm->k_begin, constant(gemm, 0)));
    Loop loop = loop_over(k, gemm->n_columns, gemm->lanes);
    Val partials = gemm_element(gemm, gemm->partials, loop.index);
    for (uint32_t r = 0; r < gemm->n_tile_rows; r++)
        gemm_store(gemm, partial_at(gemm, partials, r), LLVMConstNull(type));
    loop_end(k, &loop);
    if_end(k, &first);
}

/* Lanes along columns. */

static Val column_lanes(const Steps *steps, uint32_t step, Val at, Val mask) {
    Gemm *gemm = steps->gemm;
    Point point = point_inside(&steps->points[step]);
    point.mask = mask;
    point.axis[gemm->column.axis] = at;
    return gemm_operand_lanes(gemm, &gemm->column, &point);
}

/* The columns of some steps of k. */
typedef struct Columns {
    const Steps *steps;
    Val at, mask;
    Val *vectors; /* per step, ahead of a loop over rows; else NULL */
} Columns;

static void columns_rows(void *user, Val rows, Val partials, uint32_t n) {
    const Columns *columns = user;
    const Steps *steps = columns->steps;
    const Gemm *gemm = steps->gemm;
    const Codegen *k = gemm->lower->k;
    Val accs[MAX_ROWS];
    for (uint32_t r = 0; r < n; r++) accs[r] = gemm_load(gemm, partial_at(gemm, partials, r));
    for (uint32_t step = 0; step < steps->n; step++) {
        Val vector = columns->vectors ? columns->vectors[step]
                                      : column_lanes(steps, step, columns->at, columns->mask);
        for (uint32_t r = 0; r < n; r++) {
            Val one =
                steps->held ? steps->held[r * steps->n + step] : row_element(gemm, rows, r, step);
            accs[r] = math_multiply_add(k, gemm->acc, one, vector, accs[r]);
        }
    }
    for (uint32_t r = 0; r < n; r++) gemm_store(gemm, partial_at(gemm, partials, r), accs[r]);
}

/* Hardware prefetchers do not follow rows that are far apart. So this prefetches the same columns
 * of the next steps, where the operand is a plain load. */
static void prefetch_next(const Steps *steps, Val at) {
    const Gemm *gemm = steps->gemm;
    if (!gemm_operand_is_plain(gemm, &gemm->column)) return;
    for (uint32_t step = 0; step < steps->n; step++) {
        Point point = point_inside(&steps->points[step]);
        Val at_k = point.axis[gemm->k_axis];
        point.axis[gemm->k_axis] = k_add(gemm->lower->k, at_k, constant(gemm, steps->n));
        point.axis[gemm->column.axis] = at;
        cpu_prefetch(gemm->lower->k, gemm_operand_address(gemm, &gemm->column, &point), 2);
    }
}

static void columns_step(void *user, Val at, Val mask) {
    const Steps *steps = user;
    Columns columns = {steps, at, mask, NULL};
    const Gemm *gemm = steps->gemm;
    const Codegen *k = gemm->lower->k;
    prefetch_next(steps, at);
    if (has_loop(gemm)) columns.vectors = arena_array(k->arena, Val, steps->n);
    for (uint32_t step = 0; columns.vectors && step < steps->n; step++)
        columns.vectors[step] = column_lanes(steps, step, at, mask);
    each_rows(gemm, steps->k, k_sub(k, at, gemm->column_begin), columns_rows, &columns);
}

/* Steps of the block of k from `from` to `to`, n steps at a time. */
static void each_steps(Gemm *gemm, Val from, Val to, uint32_t n) {
    Lower *lower = gemm->lower;
    const Codegen *k = lower->k;
    Loop loop = loop_begin(k, from, to, n);
    Steps steps = {.gemm = gemm, .n = n, .k = loop.index};
    steps.points = arena_array(k->arena, Point, n);
    Val at_k = k_add(k, gemm->k_begin, loop.index);
    for (uint32_t step = 0; step < n; step++) {
        Point *point = &steps.points[step];
        *point = gemm_operand_point(gemm, &gemm->column);
        point->axis[gemm->k_axis] = k_add(k, at_k, constant(gemm, step));
        point_prepare(point, &gemm->column.value, 1, 1u << gemm->column.axis);
    }
    if (gemm->n_tile_rows * n <= MAX_HELD && !has_loop(gemm)) {
        Val rows = rows_at(gemm, loop.index);
        steps.held = arena_array(k->arena, Val, gemm->n_tile_rows * (size_t)n);
        for (uint32_t i = 0; i < gemm->n_tile_rows * n; i++)
            steps.held[i] = row_element(gemm, rows, i / n, i % n);
    }
    cpu_each_long_step(lower, gemm->column_begin, gemm->n_columns, gemm->lanes,
                       cpu_is_multiple(lower, gemm->column.extent, gemm->lanes), columns_step,
                       &steps);
    loop_end(k, &loop);
}

static void stream_along_columns(Gemm *gemm) {
    uint32_t n_steps = gemm->lower->variant->sched.unroll;
    const Codegen *k = gemm->lower->k;
    Val rest = k_urem(k, gemm->n_k, constant(gemm, n_steps));
    Val n_whole = k_sub(k, gemm->n_k, rest);
    each_steps(gemm, constant(gemm, 0), n_whole, n_steps);
    each_steps(gemm, n_whole, gemm->n_k, 1);
}

/* Lanes along k. */

/* Vectors of steps of k. */
typedef struct Vectors {
    const Gemm *gemm;
    const Val *vectors;
    uint32_t n;
} Vectors;

static void multiply_rows(const Vectors *all, Val rows, Val *accs, uint32_t n) {
    const Gemm *gemm = all->gemm;
    for (uint32_t r = 0; r < n; r++)
        for (uint32_t i = 0; i < all->n; i++) {
            Val one = row_element(gemm, rows, r, i);
            accs[r] = math_multiply_add(gemm->lower->k, gemm->acc, one, all->vectors[i], accs[r]);
        }
}

static void vectors_rows(void *user, Val rows, Val partials, uint32_t n) {
    const Vectors *all = user;
    const Gemm *gemm = all->gemm;
    Val accs[MAX_ROWS];
    for (uint32_t r = 0; r < n; r++) accs[r] = gemm_load(gemm, partial_at(gemm, partials, r));
    multiply_rows(all, rows, accs, n);
    for (uint32_t r = 0; r < n; r++) gemm_store(gemm, partial_at(gemm, partials, r), accs[r]);
}

/* Multiplies the rows with the vectors of the steps from `at_k` on. The partial results are `accs`,
 * or, if there is a loop over rows, in memory `offset` columns into the unit. */
static void multiply_vectors(Vectors all, Val at_k, Val offset, Val *accs) {
    if (has_loop(all.gemm))
        each_rows(all.gemm, at_k, offset, vectors_rows, &all);
    else
        multiply_rows(&all, rows_at(all.gemm, at_k), accs, all.gemm->n_tile_rows);
}

static void carry_accs(const Gemm *gemm, Loop *loop, Val *accs) {
    if (!has_loop(gemm)) loop_carry(gemm->lower->k, loop, accs, gemm->n_tile_rows);
}

/* Loops over the whole squares of the block of k; `points` are at the columns. */
static void square_loop(Gemm *gemm, const Point *points, Val n_whole, Val offset, Val *accs) {
    const Lower *lower = gemm->lower;
    const Codegen *k = lower->k;
    uint32_t n = gemm->lanes;
    Loop loop = loop_over(k, n_whole, n);
    carry_accs(gemm, &loop, accs);
    Val *vectors = arena_array(k->arena, Val, n);
    Val at_k = k_add(k, gemm->k_begin, loop.index);
    for (uint32_t i = 0; i < n; i++) {
        Point point = point_inside(&points[i]);
        point.axis[gemm->k_axis] = at_k;
        vectors[i] = gemm_operand_lanes(gemm, &gemm->column, &point);
    }
    k_transpose(k, vectors, gemm->lanes);
    multiply_vectors((Vectors){gemm, vectors, n}, loop.index, offset, accs);
    loop_end(k, &loop);
}

/* The rest of the block of k, one step at a time. */
static void single_loop(Gemm *gemm, Val n_whole, Val offset, Val *accs) {
    Lower *lower = gemm->lower;
    const Codegen *k = lower->k;
    Val column = k_add(k, gemm->column_begin, offset);
    Val mask = gemm_lanes_before(gemm, column, lower_dim(lower, gemm->column.extent));
    Loop loop = loop_begin(k, n_whole, gemm->n_k, 1);
    carry_accs(gemm, &loop, accs);
    Point point = gemm_operand_point(gemm, &gemm->column);
    point.lane_axis = gemm->column.axis;
    point.mask = mask;
    point.axis[gemm->column.axis] = column;
    point.axis[gemm->k_axis] = k_add(k, gemm->k_begin, loop.index);
    Val vector = gemm_operand_lanes(gemm, &gemm->column, &point);
    multiply_vectors((Vectors){gemm, &vector, 1}, loop.index, offset, accs);
    loop_end(k, &loop);
}

static void stream_along_k(Gemm *gemm) {
    Lower *lower = gemm->lower;
    const Codegen *k = lower->k;
    uint32_t n = gemm->lanes;
    Val *accs = arena_array(k->arena, Val, gemm->n_tile_rows);
    Point *points = arena_array(k->arena, Point, n);
    Val rest = cpu_modulo(lower, gemm->n_k, n);
    Val n_whole = k_sub(k, gemm->n_k, rest);
    Loop loop = loop_over(k, gemm->n_columns, n);
    Val column = k_add(k, gemm->column_begin, loop.index);
    for (uint32_t i = 0; i < n; i++) {
        Val own = k_add(k, column, constant(gemm, i));
        points[i] = gemm_operand_point(gemm, &gemm->column);
        points[i].axis[gemm->column.axis] = gemm_clamp(lower, own, gemm->column.extent);
    }
    uint32_t n_carried = has_loop(gemm) ? 0 : gemm->n_tile_rows;
    Val partials = gemm_element(gemm, gemm->partials, loop.index);
    for (uint32_t r = 0; r < n_carried; r++)
        accs[r] = gemm_load(gemm, partial_at(gemm, partials, r));
    square_loop(gemm, points, n_whole, loop.index, accs);
    single_loop(gemm, n_whole, loop.index, accs);
    for (uint32_t r = 0; r < n_carried; r++)
        gemm_store(gemm, partial_at(gemm, partials, r), accs[r]);
    loop_end(k, &loop);
}

void gemm_stream(Gemm *gemm) {
    clear_partials(gemm);
    if (gemm->column.is_along_k)
        stream_along_k(gemm);
    else
        stream_along_columns(gemm);
}
