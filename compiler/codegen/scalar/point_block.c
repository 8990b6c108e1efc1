/* What is computed once for a block of the lane axis. See point_index.h.
 *
 * LLVM runs no pass that would move it out of the loops inside the block. */
#include "codegen/scalar/point_index.h"
#include "plan/access.h"

#include <string.h>

typedef struct BlockIndex {
    IndexId id;
    int64_t stride; /* from element to element */
    Val first;      /* at the beginning of the block */
} BlockIndex;

typedef struct BlockRange {
    Guard guard;
    Val holds; /* i1, for all of the block */
} BlockRange;

struct PointBlock {
    Val begin;
    Vec(BlockIndex) indices;
    Vec(BlockRange) ranges;
};

static void note_index(Point *first, PointBlock *block, IndexId id) {
    const IndexTab *tab = scalartab_indices(first->lower->kernel->scalars);
    if (!id || !point_on_lanes(first, index_axes(tab, id)) || index_is_gathered(tab, id)) return;
    LaneMotion motion = point_motion(first, id);
    int64_t stride = motion == LANES_CONTIGUOUS;
    if (motion == LANES_VARYING) stride = index_stride_const(tab, id, first->lane_axis);
    if (motion == LANES_VARYING && !stride) return;
    BlockIndex own = {id, stride, point_index(first, id)};
    vec_push(first->lower->k->arena, &block->indices, own);
}

static void note_ranges(Point *first, PointBlock *block, GuardId id) {
    const ScalarTab *scalars = first->lower->kernel->scalars;
    const IndexTab *tab = scalartab_indices(scalars);
    for (bool holds; id; id = guard_get(scalars, id).next) {
        BlockRange own = {.guard = guard_get(scalars, id)};
        if (point_guard_is_known(first, &own.guard, &holds) ||
            index_is_gathered(tab, own.guard.index) ||
            point_motion(first, own.guard.index) != LANES_UNIFORM)
            continue;
        own.holds = point_guard_range(first, &own.guard);
        vec_push(first->lower->k->arena, &block->ranges, own);
    }
}

void point_enter_block(Point *point, ScalarId root, Val begin) {
    const Lower *lower = point->lower;
    PointBlock *block = arena_array(lower->k->arena, PointBlock, 1);
    Point first = point_inside(point);
    first.axis[point->lane_axis] = block->begin = begin;
    const bool *needed = kernel_needed_scalars(lower->k->arena, lower->kernel, &root, 1);
    for (ScalarId id = 1; id <= root; id++) {
        const Scalar *s = scalar_get(lower->kernel->scalars, id);
        if (!needed[id]) continue;
        note_index(&first, block, s->index);
        note_ranges(&first, block, s->guard);
    }
    point->in_block = block;
}

Val point_index_in_block(const Point *point, IndexId id) {
    const Codegen *k = point->lower->k;
    const PointBlock *block = point->in_block;
    for (uint32_t i = 0; block && i < block->indices.n; i++) {
        BlockIndex own = block->indices.data[i];
        if (own.id != id) continue;
        if (!own.stride) return own.first;
        Val steps = k_sub(k, point->axis[point->lane_axis], block->begin);
        return k_add(k, own.first, k_muli(k, steps, own.stride));
    }
    return NULL;
}

Val point_range_in_block(const Point *point, const Guard *guard) {
    const PointBlock *block = point->in_block;
    for (uint32_t i = 0; block && i < block->ranges.n; i++) {
        Guard own = block->ranges.data[i].guard;
        if (own.index == guard->index && own.lo == guard->lo && own.hi == guard->hi)
            return block->ranges.data[i].holds;
    }
    return NULL;
}

/* A copy whose indices are not set. */
static PointBlock *copy_block(Arena *arena, const PointBlock *from) {
    PointBlock *block = arena_array(arena, PointBlock, 1);
    block->begin = from->begin;
    block->ranges = from->ranges;
    return block;
}

void point_move_block(Point *point, const Point *from, int64_t by, int64_t of) {
    const Codegen *k = point->lower->k;
    PointBlock *block = copy_block(k->arena, from->in_block);
    for (uint32_t i = 0; i < from->in_block->indices.n; i++) {
        BlockIndex own = from->in_block->indices.data[i];
        own.first = k_addi(k, own.first, own.stride * by / of);
        vec_push(k->arena, &block->indices, own);
    }
    point->in_block = block;
}

void point_shift_block(Point *point, const Point *from, uint32_t axis, Val by) {
    const Codegen *k = point->lower->k;
    const IndexTab *tab = scalartab_indices(point->lower->kernel->scalars);
    PointBlock *block = copy_block(k->arena, from->in_block);
    for (uint32_t i = 0; i < from->in_block->indices.n; i++) {
        BlockIndex own = from->in_block->indices.data[i];
        own.first = k_add(k, own.first, k_muli(k, by, index_stride_const(tab, own.id, axis)));
        vec_push(k->arena, &block->indices, own);
    }
    point->in_block = block;
}

Val point_take_ranges(Point *point, GuardId guard) {
    const Codegen *k = point->lower->k;
    PointBlock *block = arena_array(k->arena, PointBlock, 1);
    Val all = NULL;
    *block = *point->in_block;
    memset(&block->ranges, 0, sizeof block->ranges);
    for (uint32_t i = 0; i < point->in_block->ranges.n; i++) {
        BlockRange own = point->in_block->ranges.data[i];
        if (guard_has(point->lower->kernel->scalars, guard, own.guard)) {
            all = all ? k_and(k, all, own.holds) : own.holds;
            own.holds = LLVMConstInt(k->i1, 1, 0);
        }
        vec_push(k->arena, &block->ranges, own);
    }
    point->in_block = block;
    return all;
}
