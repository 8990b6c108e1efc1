/* See strips.h. */
#include "codegen/cpu/strips.h"
#include "base/arith.h"
#include "codegen/scalar/masked.h"
#include "machine/machine.h"

Val strip_place(const Strip *strip, Val at) {
    const StripRow *row = strip->row;
    const Codegen *k = row->lower->k;
    return k_gep(k, k_value_type(k, row->acc, row->width), strip->memory, at);
}

static void store_at(const Strip *strip, Val at, Val value) {
    const StripRow *row = strip->row;
    k_store_aligned(row->lower->k, value, strip_place(strip, at), dtype_bytes(row->acc));
}

/* Whether both are known, and so few vectors apart that they need no loop. */
static bool are_few(const StripRow *row, Val from, Val to, int64_t *n) {
    enum { MOST_VECTORS = 12 };
    if (!LLVMIsAConstantInt(from) || !LLVMIsAConstantInt(to)) return false;
    *n = LLVMConstIntGetSExtValue(to) - LLVMConstIntGetSExtValue(from);
    return *n <= MOST_VECTORS * (int64_t)row->lanes;
}

/* Fills whole vectors of [from, to). */
static void fill(const Strip *strip, Val from, Val to, Val value) {
    const StripRow *row = strip->row;
    const Codegen *k = row->lower->k;
    int64_t n;
    if (are_few(row, from, to, &n)) {
        for (int64_t at = 0; at < n; at += row->lanes) store_at(strip, k_addi(k, from, at), value);
        return;
    }
    Loop loop = loop_begin(k, from, to, row->lanes);
    store_at(strip, loop.index, value);
    loop_end(k, &loop);
}

void strip_fill_around(Strip *strip) {
    const StripRow *row = strip->row;
    Lower *lower = row->lower;
    const Codegen *k = lower->k;
    LLVMTypeRef type = k_value_type(k, row->acc, row->lanes * row->width);
    ScalarId outside = row->outside;
    Val value = outside ? cpu_value(&strip->point, outside, row->acc) : LLVMConstNull(type);
    Val rest = k_uremi(k, strip->to, row->lanes);
    if (outside) fill(strip, lower_index_const(lower, 0), strip->from, value);
    fill(strip, k_sub(k, strip->to, rest), lower_index_const(lower, row->pitch), value);
}

/* Rows of channels are far apart, so a CPU does not foresee them. */
static void prefetch(const Strip *strip, Val at) {
    const StripRow *row = strip->row;
    const Codegen *k = row->lower->k;
    const CpuStrips *strips = row->strips;
    const Scalar *load = scalar_get(row->lower->kernel->scalars, strips->load);
    LLVMTypeRef one = k_memory_type(k, load->dtype, 1);
    uint32_t line = CPU_LINE_BYTES / dtype_bytes(load->dtype), n = row->lanes * strips->stride;
    Val first = k_gep(k, one, strip->ahead, k_muli(k, at, strips->stride));
    for (uint32_t i = 0; i < n; i += line)
        cpu_prefetch(k, k_gep(k, one, first, k_int(k->i64, i)), 1);
}

/* Lanes that are not below the mask may be behind the strip. */
static void pack_vector(const void *user, Val at, Val mask) {
    const Strip *strip = user;
    const StripRow *row = strip->row;
    if (strip->ahead) prefetch(strip, at);
    Point point = point_inside(&strip->point);
    point.mask = mask;
    point.axis[row->axis] = k_add(row->lower->k, row->begin, at);
    Val value = cpu_value(&point, row->value, row->acc);
    if (mask)
        masked_store(row->lower->k, strip_place(strip, at), dtype_bytes(row->acc), mask, value);
    else
        store_at(strip, at, value);
}

void strip_each_vector(const Strip *strip, StripPack *pack, const void *user) {
    Lower *lower = strip->row->lower;
    const Codegen *k = lower->k;
    uint32_t lanes = strip->row->lanes;
    Val n = k_sub(k, strip->to, strip->from), zero = lower_index_const(lower, 0);
    Val is_long = k_sge(k, n, lower_index_const(lower, lanes));
    Val last = k_subi(k, n, lanes);
    Loop loop = loop_over(k, k_select(k, is_long, n, zero), lanes);
    pack(user, k_add(k, strip->from, k_smin(k, loop.index, last)), NULL);
    loop_end(k, &loop);
    Val has_any = k_sgt(k, n, zero);
    If is_short = if_begin(k, k_and(k, k_xori(k, is_long, 1), has_any));
    pack(user, strip->from, cpu_lanes_below(lower, n, lanes));
    if_end(k, &is_short);
}

static void pack_inside(const Strip *strip) {
    const StripRow *row = strip->row;
    const Codegen *k = row->lower->k;
    int64_t number, last_at;
    if (are_few(row, strip->from, strip->to, &number) && number >= row->lanes) {
        for (int64_t at = 0; at < number; at += row->lanes) {
            last_at = min_i64(at, number - row->lanes);
            pack_vector(strip, k_addi(k, strip->from, last_at), NULL);
        }
        return;
    }
    strip_each_vector(strip, pack_vector, strip);
}

/* Of two constants these are constants. */
static Val least(const Codegen *k, Val a, Val b) {
    return k_select(k, k_slt(k, a, b), a, b);
}

static Val most(const Codegen *k, Val a, Val b) {
    return k_select(k, k_slt(k, a, b), b, a);
}

void strip_find_inside(Strip *strip) {
    const StripRow *row = strip->row;
    Lower *lower = row->lower;
    const Codegen *k = lower->k;
    const CpuStrips *strips = row->strips;
    uint32_t number = strip->number;
    Val zero = lower_index_const(lower, 0);
    strip->from = zero;
    strip->to = k_addi(k, row->n, strips->last_shift[number]);
    if (strips->lo[number] > 0) {
        Val lo = k_sub(k, lower_index_const(lower, strips->lo[number]), row->begin);
        strip->from = least(k, most(k, lo, zero), strip->to);
    }
    if (strips->hi[number] == INT64_MAX) return;
    Val hi = k_sub(k, lower_index_const(lower, strips->hi[number]), row->begin);
    strip->to = most(k, least(k, hi, strip->to), strip->from);
}

static Strip strip_of(const StripRow *row, uint32_t number) {
    const Codegen *k = row->lower->k;
    const CpuStrips *strips = row->strips;
    LLVMTypeRef type = k_value_type(k, row->acc, 1);
    Strip strip = {.row = row, .number = number, .point = point_inside(&row->point)};
    Val at = lower_index_const(row->lower, (int64_t)number * row->step);
    strip.memory = k_gep(k, type, row->memory, at);
    int64_t by = strips->first_tap[number] * strips->step_by;
    point_move_block(&strip.point, &row->point, by, strips->step_of);
    return strip;
}

static void pack(const StripRow *row, Val ahead) {
    for (uint32_t i = 0; i < row->strips->n; i++) {
        Strip strip = strip_of(row, i);
        if (i == 0) strip.ahead = ahead;
        strip_find_inside(&strip);
        strip_fill_around(&strip);
        pack_inside(&strip);
    }
}

/* Strips of a row that is outside of the image. */
static void fill_row(const StripRow *row) {
    for (uint32_t i = 0; i < row->strips->n; i++) {
        Strip strip = strip_of(row, i);
        strip.from = strip.to = lower_index_const(row->lower, 0);
        strip_fill_around(&strip);
    }
}

static Val find_ahead(const StripRow *row) {
    const Kernel *kernel = row->lower->kernel;
    uint32_t k_axis = kernel->first_reduced;
    if (!row->steps_ahead) return NULL;
    Point next = point_inside(&row->point);
    next.axis[k_axis] = k_addi(row->lower->k, row->point.axis[k_axis], row->steps_ahead);
    next.axis[row->axis] = row->begin;
    return point_pointer(&next, scalar_get(kernel->scalars, row->strips->load));
}

void strips_pack_row(StripRow *row) {
    const Codegen *k = row->lower->k;
    bool has_guards = row->strips->outside != SCALAR_NONE;
    Val ahead = find_ahead(row);
    row->point.lanes = row->lanes;
    row->point.lane_axis = row->axis;
    row->point.block = INDEX_ANY_START;
    row->point.piece = (PointPiece){has_guards, row->axis, 0, 0, true};
    point_prepare(&row->point, &row->value, 1, 1u << row->axis);
    point_enter_block(&row->point, row->value, row->begin);
    Val is_inside = point_take_ranges(&row->point, row->inside);
    if (!is_inside) {
        pack(row, ahead);
        return;
    }
    If inside = if_begin(k, is_inside);
    pack(row, ahead);
    if_end(k, &inside);
    If outside = if_begin(k, k_xori(k, is_inside, 1));
    fill_row(row);
    if_end(k, &outside);
}
