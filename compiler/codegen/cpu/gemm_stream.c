/* CPU GEMMs of a few rows. Each element of the rhs is used so few times that packing it would cost
 * more than it saves. See gemm.h.
 *
 * The layout in memory decides the order of the loops. If the columns are contiguous, several steps
 * of k go over all of the unit's columns, whose partial results stay in the cache. If k is
 * contiguous, squares of columns by k are transposed in registers. In both cases an output adds its
 * products in ascending k. */
#include "codegen/cpu/gemm.h"

enum { MAX_HELD = 16 }; /* most broadcast elements kept in registers */

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

/* Element (r, k) of the packed rows, broadcast to every lane. */
static Val row_element(const Gemm *gemm, uint32_t r, Val at_k, uint32_t step) {
    const Codegen *k = gemm->lower->k;
    Val at = k_mul(k, at_k, constant(gemm, gemm->k_stride));
    Val base = gemm_element(gemm, gemm->rows, at);
    int64_t offset = (int64_t)r * gemm->row_stride + (int64_t)step * gemm->k_stride;
    Val pointer = gemm_element(gemm, base, k_int(k->i64, offset));
    return k_splat(k, k_load(k, k_value_type(k, gemm->acc, 1), pointer), gemm->lanes);
}

static Val partial_at(const Gemm *gemm, uint32_t r, Val offset) {
    Val row = constant(gemm, (int64_t)r * gemm->units.block_columns);
    return gemm_element(gemm, gemm_element(gemm, gemm->partials, offset), row);
}

static void clear_partials(const Gemm *gemm) {
    Lower *lower = gemm->lower;
    const Codegen *k = lower->k;
    LLVMTypeRef type = k_value_type(k, gemm->acc, gemm->lanes);
    If first = if_begin(k, k_eq(k, gemm->k_begin, constant(gemm, 0)));
    Loop loop = loop_over(k, gemm->n_columns, gemm->lanes);
    for (uint32_t r = 0; r < gemm->n_tile_rows; r++)
        gemm_store(gemm, partial_at(gemm, r, loop.index), LLVMConstNull(type));
    loop_end(k, &loop);
    if_end(k, &first);
}

/* Lanes along columns. */

/* Multiplies rows [first, first + n) at the columns `at`. */
static void columns_rows(const Steps *steps, Val at, Val mask, uint32_t first, uint32_t n) {
    Gemm *gemm = steps->gemm;
    const Codegen *k = gemm->lower->k;
    Val offset = k_sub(k, at, gemm->column_begin);
    Val *accs = arena_array(k->arena, Val, n);
    for (uint32_t r = 0; r < n; r++) accs[r] = gemm_load(gemm, partial_at(gemm, first + r, offset));
    for (uint32_t step = 0; step < steps->n; step++) {
        Point point = point_inside(&steps->points[step]);
        point.mask = mask;
        point.axis[gemm->column.axis] = at;
        Val vector = gemm_operand_lanes(gemm, &gemm->column, &point);
        for (uint32_t r = 0; r < n; r++) {
            Val one = steps->held ? steps->held[(first + r) * steps->n + step]
                                  : row_element(gemm, first + r, steps->k, step);
            accs[r] = math_multiply_add(gemm->lower->k, gemm->acc, one, vector, accs[r]);
        }
    }
    for (uint32_t r = 0; r < n; r++) gemm_store(gemm, partial_at(gemm, first + r, offset), accs[r]);
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

/* Takes as many rows at once as fill half the vector registers. */
static void columns_step(void *user, Val at, Val mask) {
    const Steps *steps = user;
    const Gemm *gemm = steps->gemm;
    uint32_t most = gemm->lower->k->target->vector_bytes / 4;
    prefetch_next(steps, at);
    for (uint32_t first = 0; first < gemm->n_tile_rows; first += most) {
        uint32_t left = gemm->n_tile_rows - first;
        columns_rows(steps, at, mask, first, left < most ? left : most);
    }
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
    if (gemm->n_tile_rows * n <= MAX_HELD) {
        steps.held = arena_array(k->arena, Val, gemm->n_tile_rows * (size_t)n);
        for (uint32_t i = 0; i < gemm->n_tile_rows * n; i++)
            steps.held[i] = row_element(gemm, i / n, loop.index, i % n);
    }
    cpu_each_step(lower, gemm->column_begin, gemm->n_columns, gemm->lanes,
                  cpu_is_multiple(lower, gemm->column.extent, gemm->lanes), columns_step, &steps);
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

/* Loops over the whole squares of the block of k; `points` are at the columns. */
static void square_loop(Gemm *gemm, const Point *points, Val n_whole, Val *accs) {
    const Lower *lower = gemm->lower;
    const Codegen *k = lower->k;
    uint32_t n = gemm->lanes, n_rows = gemm->n_tile_rows;
    Loop loop = loop_over(k, n_whole, n);
    loop_carry(k, &loop, accs, n_rows);
    Val *vectors = arena_array(k->arena, Val, n);
    Val at_k = k_add(k, gemm->k_begin, loop.index);
    for (uint32_t i = 0; i < n; i++) {
        Point point = point_inside(&points[i]);
        point.axis[gemm->k_axis] = at_k;
        vectors[i] = gemm_operand_lanes(gemm, &gemm->column, &point);
    }
    k_transpose(k, vectors, gemm->lanes);
    for (uint32_t r = 0; r < n_rows; r++)
        for (uint32_t i = 0; i < n; i++)
            accs[r] = math_multiply_add(gemm->lower->k, gemm->acc,
                                        row_element(gemm, r, loop.index, i), vectors[i], accs[r]);
    loop_end(k, &loop);
}

/* The rest of the block of k, one step at a time. */
static void single_loop(Gemm *gemm, Val column, Val n_whole, Val *accs) {
    Lower *lower = gemm->lower;
    const Codegen *k = lower->k;
    Val mask = gemm_lanes_before(gemm, column, lower_dim(lower, gemm->column.extent));
    Loop loop = loop_begin(k, n_whole, gemm->n_k, 1);
    loop_carry(k, &loop, accs, gemm->n_tile_rows);
    Point point = gemm_operand_point(gemm, &gemm->column);
    point.lane_axis = gemm->column.axis;
    point.mask = mask;
    point.axis[gemm->column.axis] = column;
    point.axis[gemm->k_axis] = k_add(k, gemm->k_begin, loop.index);
    Val vector = gemm_operand_lanes(gemm, &gemm->column, &point);
    for (uint32_t r = 0; r < gemm->n_tile_rows; r++)
        accs[r] = math_multiply_add(gemm->lower->k, gemm->acc, row_element(gemm, r, loop.index, 0),
                                    vector, accs[r]);
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
    for (uint32_t r = 0; r < gemm->n_tile_rows; r++)
        accs[r] = gemm_load(gemm, partial_at(gemm, r, loop.index));
    square_loop(gemm, points, n_whole, accs);
    single_loop(gemm, column, n_whole, accs);
    for (uint32_t r = 0; r < gemm->n_tile_rows; r++)
        gemm_store(gemm, partial_at(gemm, r, loop.index), accs[r]);
    loop_end(k, &loop);
}

void gemm_stream(Gemm *gemm) {
    clear_partials(gemm);
    if (gemm->column.is_along_k)
        stream_along_k(gemm);
    else
        stream_along_columns(gemm);
}
