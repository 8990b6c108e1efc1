/* Packing the strips of a CPU GEMM. See template/cpu_strips.h and gemm.h.
 *
 * Strip s of the tap row (outer, inner) is at ((outer * n + s) * run + inner) * strip_pitch. Its
 * element i is that of its first tap at the i-th neighbour along m. Vectors lie inside of the
 * range in which all guards on m hold, and the last one begins earlier rather than have a mask.
 * The rest of the strip has the operand's value outside, also where no window reads it. */
#include "codegen/cpu/gemm.h"
#include "base/arith.h"
#include "machine/machine.h"

static int64_t strips_of_block(const Gemm *gemm, const CpuStrips *strips) {
    int64_t n_outer = gemm->depth / cpu_strips_step(strips);
    return (n_outer < 1 ? 1 : n_outer) * strips->n * strips->run;
}

int64_t gemm_strips_elems(const Gemm *gemm, const CpuStrips *strips) {
    return strips_of_block(gemm, strips) * gemm->strip_pitch;
}

Val gemm_strip_offsets(const Gemm *gemm, const CpuStrips *strips) {
    const Codegen *k = gemm->lower->k;
    int64_t n = gemm->depth < strips->depth ? gemm->depth : strips->depth;
    Val *values = arena_array(k->arena, Val, (size_t)n);
    for (int64_t at = 0; at < n; at++) {
        int64_t inner = at % strips->run, tap = at / strips->run % strips->n_taps;
        int64_t outer = at / cpu_strips_step(strips);
        int64_t strip = (outer * strips->n + strips->strip_of[tap]) * strips->run + inner;
        values[at] = k_int(k->i64, strip * gemm->strip_pitch + strips->shift_of[tap]);
    }
    return k_constant_array(k, values, (uint32_t)n, "strips");
}

/* One strip. All positions are of m, counted from the first window of the unit. */
typedef struct Strip {
    const Gemm *gemm;
    const GemmOperand *operand;
    uint32_t number;
    Val begin;    /* the first window of the unit */
    Val from, to; /* the elements of the image */
    Point point;  /* of the step of k */
    Val memory;
    Val ahead; /* the image's row of a later step of k at `begin`; NULL: it is not prefetched */
} Strip;

static void store_at(const Strip *strip, Val at, Val value) {
    const Gemm *gemm = strip->gemm;
    Val to = gemm_element(gemm, strip->memory, at);
    k_store_aligned(gemm->lower->k, value, to, dtype_bytes(gemm->acc));
}

/* Whether both are known, and so few vectors apart that they need no loop. */
static bool are_few(const Gemm *gemm, Val from, Val to, int64_t *n) {
    enum { MOST_VECTORS = 12 };
    if (!LLVMIsAConstantInt(from) || !LLVMIsAConstantInt(to)) return false;
    *n = LLVMConstIntGetSExtValue(to) - LLVMConstIntGetSExtValue(from);
    return *n <= MOST_VECTORS * (int64_t)gemm->lanes;
}

/* Fills whole vectors of [from, to). */
static void fill(const Strip *strip, Val from, Val to, Val value) {
    const Gemm *gemm = strip->gemm;
    const Codegen *k = gemm->lower->k;
    int64_t n;
    if (are_few(gemm, from, to, &n)) {
        for (int64_t at = 0; at < n; at += gemm->lanes) store_at(strip, k_addi(k, from, at), value);
        return;
    }
    Loop loop = loop_begin(k, from, to, gemm->lanes);
    store_at(strip, loop.index, value);
    loop_end(k, &loop);
}

static void fill_around(Strip *strip) {
    const Gemm *gemm = strip->gemm;
    Lower *lower = gemm->lower;
    const Codegen *k = lower->k;
    ScalarId outside = strip->operand->strips->outside;
    Val value = outside ? point_lanes(&strip->point, outside)
                        : LLVMConstNull(k_value_type(k, gemm->acc, gemm->lanes));
    Val rest = k_uremi(k, strip->to, gemm->lanes);
    if (outside) fill(strip, lower_index_const(lower, 0), strip->from, value);
    fill(strip, k_sub(k, strip->to, rest), lower_index_const(lower, gemm->strip_pitch), value);
}

/* Rows of channels are far apart, so a CPU does not foresee them. */
static void prefetch(const Strip *strip, Val at) {
    const Gemm *gemm = strip->gemm;
    const Codegen *k = gemm->lower->k;
    const CpuStrips *strips = strip->operand->strips;
    const Scalar *load = scalar_get(gemm->lower->kernel->scalars, strips->load);
    LLVMTypeRef one = k_memory_type(k, load->dtype, 1);
    uint32_t line = CPU_LINE_BYTES / dtype_bytes(load->dtype), n = gemm->lanes * strips->stride;
    Val first = k_gep(k, one, strip->ahead, k_muli(k, at, strips->stride));
    for (uint32_t i = 0; i < n; i += line)
        gemm_prefetch(gemm, k_gep(k, one, first, k_int(k->i64, i)), 1);
}

static void pack_vector(const Strip *strip, Val at, Val mask) {
    const Gemm *gemm = strip->gemm;
    if (strip->ahead) prefetch(strip, at);
    Point point = point_inside(&strip->point);
    point.mask = mask;
    point.axis[strip->operand->axis] = k_add(gemm->lower->k, strip->begin, at);
    store_at(strip, at, gemm_operand_lanes(gemm, strip->operand, &point));
}

static void pack_inside(const Strip *strip) {
    const Gemm *gemm = strip->gemm;
    Lower *lower = gemm->lower;
    const Codegen *k = lower->k;
    Val n = k_sub(k, strip->to, strip->from), zero = lower_index_const(lower, 0);
    int64_t number, last_at;
    if (are_few(gemm, strip->from, strip->to, &number) && number >= gemm->lanes) {
        for (int64_t at = 0; at < number; at += gemm->lanes) {
            last_at = min_i64(at, number - gemm->lanes);
            pack_vector(strip, k_addi(k, strip->from, last_at), NULL);
        }
        return;
    }
    Val is_long = k_sge(k, n, lower_index_const(lower, gemm->lanes));
    Val last = k_subi(k, n, gemm->lanes);
    Loop loop = loop_over(k, k_select(k, is_long, n, zero), gemm->lanes);
    pack_vector(strip, k_add(k, strip->from, k_smin(k, loop.index, last)), NULL);
    loop_end(k, &loop);
    If is_short = if_begin(k, k_and(k, k_xori(k, is_long, 1), k_sgt(k, n, zero)));
    pack_vector(strip, strip->from, gemm_lanes_before(gemm, zero, n));
    if_end(k, &is_short);
}

/* Of two constants these are constants. */
static Val least(const Codegen *k, Val a, Val b) {
    return k_select(k, k_slt(k, a, b), a, b);
}

static Val most(const Codegen *k, Val a, Val b) {
    return k_select(k, k_slt(k, a, b), b, a);
}

/* The elements of the strip that are in the image, as far as windows of the unit read them. */
static void find_inside(Strip *strip, Val n) {
    Lower *lower = strip->gemm->lower;
    const Codegen *k = lower->k;
    const CpuStrips *strips = strip->operand->strips;
    uint32_t number = strip->number;
    Val zero = lower_index_const(lower, 0);
    strip->from = zero;
    strip->to = k_addi(k, n, strips->last_shift[number]);
    if (strips->lo[number] > 0) {
        Val lo = k_sub(k, lower_index_const(lower, strips->lo[number]), strip->begin);
        strip->from = least(k, most(k, lo, zero), strip->to);
    }
    if (strips->hi[number] == INT64_MAX) return;
    Val hi = k_sub(k, lower_index_const(lower, strips->hi[number]), strip->begin);
    strip->to = most(k, least(k, hi, strip->to), strip->from);
}

/* Steps of k between a row of the image and the one that is prefetched. */
static int64_t steps_ahead(const Gemm *gemm, const CpuStrips *strips) {
    enum { VECTORS = 64 };
    int64_t n_rows = strips_of_block(gemm, strips) / strips->run;
    int64_t n = n_rows * (gemm->strip_pitch / gemm->lanes);
    return n < VECTORS ? VECTORS / n : 1;
}

/* The rows of the image that a step of k of tap 0 reads. */
typedef struct ImageRow {
    const Gemm *gemm;
    const GemmOperand *operand;
    Val outer, inner, begin, n; /* n: windows of the unit */
    Point point;
} ImageRow;

static Val find_ahead(const ImageRow *row) {
    const Gemm *gemm = row->gemm;
    const Codegen *k = gemm->lower->k;
    const CpuStrips *strips = row->operand->strips;
    Point next = point_inside(&gemm->point);
    Val at_k = row->point.axis[gemm->k_axis];
    next.axis[gemm->k_axis] = k_addi(k, at_k, steps_ahead(gemm, strips));
    next.axis[row->operand->axis] = row->begin;
    return point_pointer(&next, scalar_get(gemm->lower->kernel->scalars, strips->load));
}

static Strip strip_of(const ImageRow *row, uint32_t number) {
    const Gemm *gemm = row->gemm;
    const Codegen *k = gemm->lower->k;
    const CpuStrips *strips = row->operand->strips;
    Strip strip = {.gemm = gemm, .operand = row->operand, .number = number, .begin = row->begin};
    Val at = k_addi(k, k_muli(k, row->outer, strips->n), number);
    at = k_add(k, k_muli(k, at, strips->run), row->inner);
    Val memory = row->operand == &gemm->row ? gemm->rows : gemm->columns;
    strip.memory = gemm_element(gemm, memory, k_muli(k, at, gemm->strip_pitch));
    strip.point = point_inside(&row->point);
    int64_t by = strips->first_tap[number] * strips->step_by;
    point_move_block(&strip.point, &row->point, by, strips->step_of);
    return strip;
}

static void pack_image_row(const ImageRow *row) {
    Val ahead = find_ahead(row);
    for (uint32_t i = 0; i < row->operand->strips->n; i++) {
        Strip strip = strip_of(row, i);
        if (i == 0) strip.ahead = ahead;
        find_inside(&strip, row->n);
        fill_around(&strip);
        pack_inside(&strip);
    }
}

/* Strips of a row that is outside of the image. */
static void fill_image_row(const ImageRow *row) {
    for (uint32_t i = 0; i < row->operand->strips->n; i++) {
        Strip strip = strip_of(row, i);
        strip.from = strip.to = lower_index_const(row->gemm->lower, 0);
        fill_around(&strip);
    }
}

static void pack_or_fill(ImageRow *row) {
    const Gemm *gemm = row->gemm;
    Lower *lower = gemm->lower;
    const Codegen *k = lower->k;
    const CpuStrips *strips = row->operand->strips;
    uint32_t axis = row->operand->axis;
    Val at_k = k_add(k, k_muli(k, row->outer, cpu_strips_step(strips)), row->inner);
    row->point = point_inside(&gemm->point);
    row->point.lanes = gemm->lanes;
    row->point.lane_axis = axis;
    row->point.block = INDEX_ANY_START;
    row->point.piece = (PointPiece){strips->outside != SCALAR_NONE, axis, 0, 0, true};
    row->point.axis[gemm->k_axis] = k_add(k, gemm->k_begin, at_k);
    point_prepare(&row->point, &row->operand->value, 1, 1u << axis);
    point_enter_block(&row->point, row->operand->value, row->begin);
    Val is_inside = point_take_ranges(&row->point, strips->inside);
    if (!is_inside) {
        pack_image_row(row);
        return;
    }
    If inside = if_begin(k, is_inside);
    pack_image_row(row);
    if_end(k, &inside);
    If outside = if_begin(k, k_xori(k, is_inside, 1));
    fill_image_row(row);
    if_end(k, &outside);
}

void gemm_pack_strips(const Gemm *gemm, const GemmOperand *operand) {
    Lower *lower = gemm->lower;
    const Codegen *k = lower->k;
    const CpuStrips *strips = operand->strips;
    bool is_row = operand == &gemm->row;
    Val begin = is_row ? gemm->row_begin : gemm->column_begin;
    Val n = is_row ? k_sub(k, gemm->row_end, begin) : gemm->n_columns;
    int64_t room = is_row ? gemm->block_rows : gemm->block_columns, extent;
    if (dim_hi(lower_dims(lower), operand->extent) <= room) begin = lower_index_const(lower, 0);
    if (dim_is_const(lower_dims(lower), operand->extent, &extent) && extent <= room)
        n = lower_index_const(lower, extent);
    Val n_outer = k_udivi(k, gemm->n_k, cpu_strips_step(strips));
    Loop inner = loop_over(k, lower_index_const(lower, strips->run), 1);
    Loop outer = loop_over(k, n_outer, 1);
    ImageRow row = {.gemm = gemm,
                    .operand = operand,
                    .outer = outer.index,
                    .inner = inner.index,
                    .begin = begin,
                    .n = n};
    pack_or_fill(&row);
    loop_end(k, &outer);
    loop_end(k, &inner);
}
