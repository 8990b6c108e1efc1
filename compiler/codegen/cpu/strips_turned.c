/* Packing strips across the lanes: turned ones, and those of vectors. See strips.h.
 *
 *     image, channels last     x0c0 x0c1 .. x1c0 x1c1 ..      vectors along the channels of
 *     strips                   c0 | x0 x1 x2 ..               neighbours are transposed
 *                              c1 | x0 x1 x2 ..
 */
#include "codegen/cpu/strips.h"
#include "codegen/scalar/masked.h"

/* Some channels of one strip's tap; at most as many as lanes. */
typedef struct Channels {
    const StripRow *row;
    const Strip *strip;
    Point point; /* at the first one, in the block of its run */
    Val memory;  /* of the first channel's strip */
    uint32_t n;
} Channels;

/* The channels of the neighbour at `at`. */
static Val load_neighbour(const Channels *channels, Val at) {
    const StripRow *row = channels->row;
    Point point = point_inside(&channels->point);
    point_shift_block(&point, &channels->point, row->axis, at);
    point.axis[row->axis] = k_add(row->lower->k, row->begin, at);
    return cpu_value(&point, row->value, row->acc);
}

static void pack_square(const void *user, Val at, Val mask) {
    const Channels *channels = user;
    const StripRow *row = channels->row;
    const Codegen *k = row->lower->k;
    Val *vectors = arena_array(k->arena, Val, row->lanes);
    Val last = k_subi(k, channels->strip->to, 1);
    for (uint32_t i = 0; i < row->lanes; i++) {
        Val neighbour = k_addi(k, at, i);
        if (mask) neighbour = k_smin(k, neighbour, last);
        vectors[i] = load_neighbour(channels, neighbour);
    }
    k_transpose(k, vectors, row->lanes);
    LLVMTypeRef one = k_value_type(k, row->acc, 1);
    for (uint32_t i = 0; i < channels->n; i++) {
        Val strip = k_gep(k, one, channels->memory, k_int(k->i64, (int64_t)i * row->pitch));
        Val to = k_gep(k, one, strip, at);
        if (mask)
            masked_store(k, to, dtype_bytes(row->acc), mask, vectors[i]);
        else
            k_store_aligned(k, vectors[i], to, dtype_bytes(row->acc));
    }
}

static Channels channels_of(const StripRow *row, const Strip *strip, Val first, uint32_t n) {
    Lower *lower = row->lower;
    const Codegen *k = lower->k;
    uint32_t k_axis = lower->kernel->first_reduced;
    Channels channels = {.row = row, .strip = strip, .point = point_inside(&strip->point), .n = n};
    channels.point.axis[k_axis] = k_add(k, strip->point.axis[k_axis], first);
    if (n < row->lanes)
        channels.point.mask = cpu_lanes_below(lower, lower_index_const(lower, n), row->lanes);
    Val at = k_muli(k, first, row->pitch);
    channels.memory = k_gep(k, k_value_type(k, row->acc, 1), strip->memory, at);
    return channels;
}

static void fill_all(const StripRow *row, Strip *strip) {
    Lower *lower = row->lower;
    const Codegen *k = lower->k;
    Loop loop = loop_over(k, lower_index_const(lower, row->strips->run), 1);
    Strip own = *strip;
    Val at = k_muli(k, loop.index, row->pitch);
    own.memory = k_gep(k, k_value_type(k, row->acc, 1), strip->memory, at);
    own.point = point_inside(&strip->point);
    strip_fill_around(&own);
    loop_end(k, &loop);
}

static void pack_strip(const StripRow *row, Strip *strip) {
    Lower *lower = row->lower;
    const Codegen *k = lower->k;
    uint32_t n_channels = (uint32_t)row->strips->run, rest = n_channels % row->lanes;
    Val whole = lower_index_const(lower, n_channels - rest);
    strip_find_inside(strip);
    fill_all(row, strip);
    if (n_channels >= row->lanes) {
        Loop loop = loop_over(k, whole, row->lanes);
        Channels channels = channels_of(row, strip, loop.index, row->lanes);
        strip_each_vector(strip, pack_square, &channels);
        loop_end(k, &loop);
    }
    if (!rest) return;
    Channels channels = channels_of(row, strip, whole, rest);
    strip_each_vector(strip, pack_square, &channels);
}

typedef void PackStrip(const StripRow *row, Strip *strip);

/* Packs each strip by `pack`, or fills it if the row is outside of the image. The lanes of the
 * row's point lie along another axis than the row's. */
static void pack_across(StripRow *row, PackStrip *pack, PackStrip *fill) {
    Lower *lower = row->lower;
    const Codegen *k = lower->k;
    const CpuStrips *strips = row->strips;
    uint32_t k_axis = lower->kernel->first_reduced, lane_axis = row->point.lane_axis;
    for (uint32_t i = 0; i < strips->n; i++) {
        Strip strip = {.row = row, .number = i, .point = point_inside(&row->point)};
        Val at = lower_index_const(lower, (int64_t)i * row->step);
        strip.memory = k_gep(k, k_value_type(k, row->acc, row->width), row->memory, at);
        strip.point.piece = (PointPiece){row->outside != SCALAR_NONE, row->axis, 0, 0, true};
        strip.point.axis[k_axis] =
            k_addi(k, row->point.axis[k_axis], strips->first_tap[i] * strips->run);
        strip.point.axis[row->axis] = row->begin;
        point_enter_block(&strip.point, row->value, strip.point.axis[lane_axis]);
        Val is_inside = point_take_ranges(&strip.point, row->inside);
        If inside = if_begin(k, is_inside);
        Strip own = strip;
        own.point = point_inside(&strip.point);
        pack(row, &own);
        if_end(k, &inside);
        if (!is_inside) continue;
        If outside = if_begin(k, k_xori(k, is_inside, 1));
        strip.from = strip.to = lower_index_const(lower, 0);
        fill(row, &strip);
        if_end(k, &outside);
    }
}

void strips_pack_turned(StripRow *row) {
    row->point.lanes = row->lanes;
    row->point.lane_axis = row->lower->kernel->first_reduced;
    row->point.block = (uint32_t)row->strips->run;
    pack_across(row, pack_strip, fill_all);
}

static void pack_vector(const StripRow *row, const Strip *strip, Val at) {
    const Codegen *k = row->lower->k;
    Point point = point_inside(&strip->point);
    point_shift_block(&point, &strip->point, row->axis, at);
    point.axis[row->axis] = k_add(k, row->begin, at);
    Val value = cpu_value(&point, row->value, row->acc);
    k_store_aligned(k, value, strip_place(strip, at), dtype_bytes(row->acc));
}

static void fill_vectors(const StripRow *row, Strip *strip) {
    (void)row;
    strip_fill_around(strip);
}

static void pack_vectors(const StripRow *row, Strip *strip) {
    const Codegen *k = row->lower->k;
    strip_find_inside(strip);
    strip_fill_around(strip);
    Loop loop = loop_begin(k, strip->from, strip->to, 1);
    pack_vector(row, strip, loop.index);
    loop_end(k, &loop);
}

void strips_pack_vectors(StripRow *row) {
    row->point.block = INDEX_ANY_START;
    pack_across(row, pack_vectors, fill_vectors);
}
