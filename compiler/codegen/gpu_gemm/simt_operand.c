/* Operands of SIMT GEMMs: from global memory to shared memory. See simt.h.
 *
 * Copies have 16 bytes if vectors along the operand's own axis are whole and aligned. Otherwise
 * they copy single elements, which also transposes an operand that is contiguous along k.
 * Neighbouring threads then read neighbouring elements, and a warp writes to different banks. */
#include "codegen/gpu_gemm/simt.h"

#include <stdlib.h>
#include <string.h>

enum {
    MAX_OFFSET = 1 << 23, /* limit of an immediate address offset, in bytes */
    BANKS = 32            /* of shared memory: words written per pass */
};

/* How an operand is loaded. */

/* The operand's load, if shared memory can hold its bytes unchanged; else NULL. */
static const Scalar *find_copied(const Simt *g, const Side *side) {
    const Lower *lower = g->lower;
    const Scalar *s = scalar_get(lower->kernel->scalars, side->value);
    bool is_load = s->kind == SCALAR_LOAD && !s->guard && s->dtype == g->acc;
    if (!is_load || lower->is_one_block) return NULL;
    return lower->smem && lower->smem[lower_arg(lower, s->buffer)].base ? NULL : s;
}

static void choose_lanes(const Simt *g, Side *side) {
    uint32_t axis_k = gemm_axis_k(g->lower->kernel), wide = SIMT_FRAGMENT_BYTES / g->acc_bytes;
    uint32_t along_k = gpu_gemm_contiguous_loads(g->lower, side->value, axis_k, wide);
    uint32_t along_own = gpu_gemm_contiguous_loads(g->lower, side->value, side->axis, wide);
    bool is_along_k = along_k > along_own;
    uint32_t most = is_along_k ? g->sched->gemm.tile_k : side->tile;
    side->lane_axis = is_along_k ? axis_k : side->axis;
    side->lanes = g->sched->lanes < most ? g->sched->lanes : most;
    if (side->lanes > wide) side->lanes = wide;
    if (!gpu_gemm_axis_is_multiple(g->lower, side->lane_axis, side->lanes)) side->lanes = 1;
    side->copied = find_copied(g, side);
    if (side->copied &&
        (is_along_k || !gpu_gemm_has_vectors(g->lower, side->copied, side->axis, side->lanes)))
        side->lanes = 1;
    side->n_groups = side->tile * g->sched->gemm.tile_k / side->lanes;
    side->n_steps = (side->n_groups + g->sched->threads - 1) / g->sched->threads;
    if (side->n_steps > MAX_STEPS) ice(g->k->arena, "tile of too many elements per thread");
}

/* Pads the rows of shared memory so that transposed stores fall into different banks, as far as the
 * vector width allows. */
static void choose_pitch(Side *side) {
    bool is_along_own = side->lane_axis == side->axis;
    side->pitch =
        side->tile + (is_along_own && side->lanes > side->size ? side->lanes : side->size);
}

void simt_side_init(const Simt *g, Side *side) {
    choose_lanes(g, side);
    choose_pitch(side);
}

/* Whether the thread has a group in step `s` (i1); NULL: all threads do. */
static Val has_group(const Simt *g, const Side *side, uint32_t s) {
    if ((s + 1) * g->sched->threads <= side->n_groups) return NULL;
    return k_ulti(g->k, g->block.thread, (int64_t)side->n_groups - (int64_t)s * g->sched->threads);
}

/* Whether the thread has a group in step `s`, and the group's `index` along the own axis is inside
 * the extent. */
static Val group_exists(const Simt *g, const Side *side, uint32_t s, Val index) {
    const Codegen *k = g->k;
    Val has = has_group(g, side, s);
    if (gpu_gemm_axis_is_multiple(g->lower, side->axis, side->tile))
        return has ? has : k_int(k->i1, 1);
    Val is_inside = k_ult(k, index, side->extent);
    return has ? k_and(k, has, is_inside) : is_inside;
}

/* Distributes groups over threads. Neighbouring threads take `across` neighbouring groups along the
 * lane axis; for an operand contiguous along k, as many as fall into different banks. Then come
 * such runs side by side along the other axis, then the next groups along the lane axis. If all
 * steps are whole, a thread's group of step `s` is a constant distance from that of step 0 along
 * each axis. */
static void place_group(const Simt *g, Side *side, uint32_t s, bool is_along_k) {
    const Codegen *k = g->k;
    uint32_t lanes = side->lanes, length = is_along_k ? g->sched->gemm.tile_k : side->tile;
    uint32_t width = is_along_k ? side->tile : g->sched->gemm.tile_k, across = length / lanes;
    uint32_t most = BANKS / side->size / lanes, threads = g->sched->threads;
    if (is_along_k && across > most && most) across = most;
    bool is_whole = threads % across == 0, is_wide = is_whole && threads / across >= width;
    uint32_t beside = is_wide || !is_whole ? width : threads / across, n_beside = width / beside;
    uint32_t further = threads / across / beside * across * lanes;
    Val group = is_whole ? g->block.thread : k_offset(g->k, g->block.thread, s * threads);
    Val fast = k_uremi(k, group, across);
    Val slow = k_udivi(k, group, across);
    if (is_wide && across * lanes < length) {
        Val run = k_udivi(k, slow, width);
        slow = k_uremi(k, slow, width);
        run = k_muli(k, run, across);
        fast = k_add(k, fast, run);
    }
    fast = k_muli(k, fast, lanes);
    uint32_t more_slow = is_whole ? s % n_beside * beside : 0;
    uint32_t more_fast = is_whole ? s / n_beside * further : 0;
    side->own[s] = is_along_k ? slow : fast;
    side->at_k[s] = is_along_k ? fast : slow;
    side->more_own[s] = is_along_k ? more_slow : more_fast;
    side->more_k[s] = is_along_k ? more_fast : more_slow;
}

/* Finds the positions of this thread's groups, and computes values of the operand that are
 * invariant in the loop over k. */
void simt_side_place(const Simt *g, Side *side) {
    const Lower *lower = g->lower;
    uint32_t axis_k = gemm_axis_k(lower->kernel);
    for (uint32_t s = 0; s < side->n_steps; s++) {
        place_group(g, side, s, side->lane_axis == axis_k);
        Val index = k_add(g->k, side->begin, gpu_index(lower, side->own[s]));
        index = k_offset(g->k, index, side->more_own[s]);
        side->exists[s] = group_exists(g, side, s, index);
        Point *point = &side->points[s];
        *point = point_inside(&g->block.point);
        point->lanes = side->lanes;
        point->lane_axis = side->lane_axis;
        point->axis[side->axis] = index;
        point->active = side->exists[s];
        point_prepare(point, &side->value, 1, 1u << axis_k);
    }
}

/* Loading. */

/* The position along k of group `s` of the tile from `begin`; *is_inside (i1): whether it is
 * inside. */
static Val group_k(const Simt *g, const Side *side, uint32_t s, Val begin, Val *is_inside) {
    const Codegen *k = g->k;
    Val at_k = k_add(k, begin, gpu_index(g->lower, side->at_k[s]));
    at_k = k_offset(g->k, at_k, side->more_k[s]);
    *is_inside = k_ult(k, at_k, g->block.k);
    return at_k;
}

static Point group_point(const Simt *g, const Side *side, uint32_t s, Val k, Val exists) {
    Point point = point_inside(&side->points[s]);
    point.axis[gemm_axis_k(g->lower->kernel)] = k;
    point.active = exists;
    return point;
}

static bool needs_pad(const Simt *g) {
    return !gpu_gemm_axis_is_multiple(g->lower, gemm_axis_k(g->lower->kernel),
                                      g->sched->gemm.tile_k);
}

Val simt_shared_at(const Simt *g, Val bytes) {
    return k_byte(g->k, g->shared, bytes);
}

/* The byte offset in the buffer of a tile's element. */
Val simt_offset(const Simt *g, const Side *side, Val at_k, Val own) {
    const Codegen *k = g->k;
    Val at = k_muli(k, k_madi(k, at_k, side->pitch, own), g->acc_bytes);
    return k_addi(k, at, side->offset_bytes);
}

static void store_group(const Simt *g, const Side *side, Val pointer, Val value) {
    const Codegen *k = g->k;
    bool is_apart = side->lane_axis != side->axis && side->lanes > 1;
    if (!is_apart) {
        k_store_aligned(k, value, pointer, side->lanes * g->acc_bytes);
        return;
    }
    for (uint32_t j = 0; j < side->lanes; j++) {
        Val one = k_extract(k, value, j);
        k_store(k, one, k_byte(k, pointer, k_i32(k, (int64_t)j * side->pitch * g->acc_bytes)));
    }
}

/* An address as a register plus a constant. */
typedef struct Place {
    Val at; /* i32 in shared memory, or a global pointer */
    int64_t more_bytes;
} Place;

/* Emits cp.async for one group if `exists`. It is volatile, so it stays in place. */
static void copy_group(const Simt *g, const Side *side, Place to, Place from, Val exists) {
    const Codegen *k = g->k;
    uint32_t n_bytes = side->lanes * g->acc_bytes;
    const char *code = str_format(
        k->arena, "@$2 cp.async.%s.shared.global [$0+%lld], [$1+%lld], %u;",
        n_bytes == 16 ? "cg" : "ca", (long long)to.more_bytes, (long long)from.more_bytes, n_bytes);
    Val args[3] = {to.at, from.at, exists};
    k_asm(k, k->void_type, code, "r,l,b,~{memory}", args, 3, true);
}

/* The shared address of group `s` in the buffer at byte `buffer` (i32). */
static Val group_at(const Simt *g, const Side *side, uint32_t s, Val buffer) {
    Val at = simt_offset(g, side, side->at_k[s], side->own[s]);
    at = k_offset(g->k, at, (side->more_k[s] * side->pitch + side->more_own[s]) * g->acc_bytes);
    return simt_shared_at(g, k_add(g->k, at, buffer));
}

/* Begins a branch for threads that have a group in step `s`; only in the last step some have
 * none. */
static If begin_group(const Simt *g, const Side *side, uint32_t s) {
    return if_begin(g->k, has_group(g, side, s));
}

/* Elements in memory between neighbours along an axis; -1: not a known constant. */
static int64_t known_stride(const Simt *g, const Side *side, uint32_t axis) {
    const Lower *lower = g->lower;
    int64_t stride;
    DimId dim;
    if (!index_stride(scalartab_indices(lower->kernel->scalars), side->copied->index, axis, &dim) ||
        !dim || !dim_is_const(lower_dims(lower), dim, &stride))
        return -1;
    return stride;
}

/* The distance in memory, in bytes, from the group of step `base` to that of step `s`. False: it is
 * not a known constant that fits an instruction. */
static bool distance(const Simt *g, const Side *side, uint32_t base, uint32_t s, int64_t *bytes) {
    const uint32_t axes[2] = {gemm_axis_k(g->lower->kernel), side->axis};
    const int64_t more[2] = {(int64_t)side->more_k[s] - side->more_k[base],
                             (int64_t)side->more_own[s] - side->more_own[base]};
    *bytes = 0;
    for (uint32_t i = 0; i < 2; i++) {
        int64_t stride = more[i] ? known_stride(g, side, axes[i]) : 0;
        if (stride < 0 || stride > MAX_OFFSET) return false;
        *bytes += stride * more[i] * g->acc_bytes;
    }
    return (more[0] || more[1]) && llabs(*bytes) < MAX_OFFSET;
}

static void copy_groups(const Simt *g, const Side *side, Val begin, Val buffer) {
    Place to = {NULL, 0}, from = {NULL, 0};
    uint32_t base = 0; /* the step whose group is at `from.at` */
    for (uint32_t s = 0; s < side->n_steps; s++) {
        Val in_k, at_k = group_k(g, side, s, begin, &in_k);
        Val exists = k_and(g->k, side->exists[s], in_k);
        If group = begin_group(g, side, s);
        to.more_bytes = ((int64_t)side->more_k[s] * side->pitch + side->more_own[s]) * g->acc_bytes;
        if (!to.more_bytes) {
            Val at = group_at(g, side, s, buffer);
            to.at = k_ptrtoint(g->k, at, g->k->i32);
        }
        if (s == 0 || !distance(g, side, base, s, &from.more_bytes)) {
            Point point = group_point(g, side, s, at_k, exists);
            from = (Place){point_pointer(&point, side->copied), 0};
            base = s;
        }
        copy_group(g, side, to, from, exists);
        if_end(g->k, &group);
    }
}

static Val pad_of(const Simt *g, const Side *side) {
    return k_splat(g->k, k_number(g->k, g->acc, side->pad), side->lanes);
}

/* Writes the pad value past the end of k, where copies write nothing. */
static void pad_groups(const Simt *g, const Side *side, Val begin, Val buffer) {
    for (uint32_t s = 0; s < side->n_steps; s++) {
        Val in_k;
        group_k(g, side, s, begin, &in_k);
        If group = begin_group(g, side, s);
        If beyond = if_begin(g->k, k_not(g->k, in_k));
        store_group(g, side, group_at(g, side, s, buffer), pad_of(g, side));
        if_end(g->k, &beyond);
        if_end(g->k, &group);
    }
}

/* Makes the points of a side's groups in the tile of k from `begin`, and starts their loads. */
static void fetch(const Simt *g, const Side *side, Val begin, Point *points) {
    const ScalarTab *scalars = g->lower->kernel->scalars;
    const bool *reached = scalar_reached(g->k->arena, scalars, side->value);
    for (uint32_t s = 0; s < side->n_steps; s++) {
        Val in_k, at_k = group_k(g, side, s, begin, &in_k);
        Val exists = k_and(g->k, side->exists[s], in_k);
        points[s] = group_point(g, side, s, at_k, exists);
        for (ScalarId id = 1; id <= scalar_count(scalars); id++)
            if (reached[id] && scalar_get(scalars, id)->kind == SCALAR_LOAD)
                point_value(&points[s], id);
    }
}

/* Stores the fetched groups, converted to the accumulators' type, to the buffer at byte `buffer`
 * (i32). */
static void put(const Simt *g, const Side *side, Point *points, Val buffer) {
    const Codegen *k = g->k;
    for (uint32_t s = 0; s < side->n_steps; s++) {
        Val value = gpu_gemm_to_acc(g->lower, side->value, point_lanes(&points[s], side->value));
        if (needs_pad(g)) value = k_select(k, points[s].active, value, pad_of(g, side));
        If group = begin_group(g, side, s);
        store_group(g, side, group_at(g, side, s, buffer), value);
        if_end(g->k, &group);
    }
}

/* Tiles. */

bool simt_has_copies(const Simt *g) {
    return g->sides[0].copied || g->sides[1].copied;
}

/* Writes the pads of the last tile around the copied elements. */
static void pad_tile(const Simt *g, Val begin, Val buffer) {
    const Codegen *k = g->k;
    Val end = k_addi(k, begin, g->sched->gemm.tile_k);
    If beyond = if_begin(k, k_sgt(k, end, g->block.k));
    for (uint32_t i = 0; i < 2; i++)
        if (g->sides[i].copied) pad_groups(g, &g->sides[i], begin, buffer);
    if_end(k, &beyond);
}

void simt_copy_tile(const Simt *g, Val begin, Val buffer) {
    if (!simt_has_copies(g)) return;
    for (uint32_t i = 0; i < 2; i++)
        if (g->sides[i].copied) copy_groups(g, &g->sides[i], begin, buffer);
    gpu_copies_commit(g->k);
    if (needs_pad(g)) pad_tile(g, begin, buffer);
}

void simt_fetch_tile(const Simt *g, Val begin, Point (*points)[MAX_STEPS]) {
    for (uint32_t i = 0; i < 2; i++)
        if (!g->sides[i].copied) fetch(g, &g->sides[i], begin, points[i]);
}

void simt_put_tile(const Simt *g, Val buffer, Point (*points)[MAX_STEPS]) {
    for (uint32_t i = 0; i < 2; i++)
        if (!g->sides[i].copied) put(g, &g->sides[i], points[i], buffer);
}
