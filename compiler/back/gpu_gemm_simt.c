/* GPU contractions on the ordinary units: every output is one chain of fused multiply-adds,
 * ascending in k.
 *
 * The block walks k in steps of tile_k. Tiles of both factors lie in shared memory as rows of one k
 * each, twice: while one pair is computed on, the next is on its way, loaded into registers before
 * the computing and stored after it, so that one barrier a step is enough. A warp computes lanes_m
 * x lanes_n times a thread's rm x rn outputs, which are fragments of at most 16 bytes, spread over
 * the warp's part of the tile so that neighbouring threads read neighbouring fragments.
 *
 * Beyond the end of k the factors are -0 and +0: their product changes no sum, not even -0. The
 * finished accumulators go through the same shared memory to the epilogue, a row of fragments at a
 * time. */
#include "back/gpu_gemm.h"

enum { FRAGMENT_BYTES = 16, MAX_STEPS = 32, MAX_OUTPUTS = 64, MAX_SIDE = 8 };

/* One factor and its tile. */
typedef struct Side {
    ScalarId value;
    uint32_t axis;              /* m or n */
    uint32_t tile;              /* elements along it */
    LLVMValueRef begin, extent; /* index_type: of the tile, of the axis */
    uint32_t lane_axis, lanes;  /* how elements are loaded */
    uint32_t pitch;             /* elements from one k to the next in shared memory */
    uint32_t offset_bytes;      /* in a buffer */
    double pad;                 /* stands beyond the end of k */
    uint32_t n_groups,
        n_steps; /* groups of lanes in a tile, and per thread (the last may be idle) */
    /* Per step: where its group stands, and how much further: steps a constant distance apart have
     * all but that in common. */
    LLVMValueRef own[MAX_STEPS];  /* i32: in the tile along the axis */
    LLVMValueRef at_k[MAX_STEPS]; /* i32: in the tile along k */
    uint32_t more_own[MAX_STEPS], more_k[MAX_STEPS];
    LLVMValueRef exists[MAX_STEPS]; /* i1: the group is inside the extent of the axis */
    Point points[MAX_STEPS];        /* with the values that do not move with k */
    /* The thread's fragments: `n` of `size` elements, `stride` elements apart, the first at `first`
     * (i32) along the axis. */
    uint32_t n, size, stride;
    LLVMValueRef first;
} Side;

typedef struct Simt {
    Lower *lower;
    Unit *unit;
    const Sched *sched;
    GemmBlock block;
    Dtype acc;
    uint32_t acc_bytes;
    Side sides[2]; /* left, right */
    LLVMValueRef shared;
    uint32_t buffer_bytes; /* of one pair of tiles */
    LLVMValueRef computes; /* i1, or NULL: whether the thread has outputs; NULL: all have */
    uint32_t part_pitch;   /* elements */
} Simt;

static LLVMValueRef int32(const Simt *g, int64_t value) {
    return unit_int(g->unit->i32, value);
}

static LLVMValueRef plus(const Simt *g, LLVMValueRef value, uint32_t more) {
    if (!more) return value;
    return LLVMBuildAdd(g->unit->builder, value, unit_int(LLVMTypeOf(value), more), "");
}

/* How a factor is loaded. */

/* The loads a value hangs on, as flags per scalar. */
static bool *reached_scalars(const Simt *g, ScalarId root) {
    const ScalarTab *scalars = g->lower->kernel->scalars;
    bool *reached = arena_array(g->unit->arena, bool, scalar_count(scalars) + 1);
    reached[root] = true;
    for (ScalarId id = scalar_count(scalars); id > 0; id--)
        for (int i = 0; i < 3 && reached[id]; i++) reached[scalar_get(scalars, id)->args[i]] = true;
    return reached;
}

/* How many loads of the factor are contiguous along an axis. */
static uint32_t count_contiguous(const Simt *g, ScalarId root, uint32_t axis, uint32_t lanes) {
    const ScalarTab *scalars = g->lower->kernel->scalars;
    const bool *reached = reached_scalars(g, root);
    uint32_t n = 0;
    for (ScalarId id = 1; id <= scalar_count(scalars); id++) {
        const Scalar *s = scalar_get(scalars, id);
        if (reached[id] && s->kind == SCALAR_LOAD &&
            index_lane_motion(scalartab_indices(scalars), s->index, axis, lanes) ==
                LANES_CONTIGUOUS)
            n++;
    }
    return n;
}

static void choose_lanes(const Simt *g, Side *side) {
    uint32_t k = gemm_axis_k(g->lower->kernel), wide = FRAGMENT_BYTES / g->acc_bytes;
    uint32_t along_k = count_contiguous(g, side->value, k, wide);
    uint32_t along_own = count_contiguous(g, side->value, side->axis, wide);
    bool is_along_k = along_k > along_own;
    uint32_t most = is_along_k ? g->sched->tile_k : side->tile;
    side->lane_axis = is_along_k ? k : side->axis;
    side->lanes = g->sched->lanes < most ? g->sched->lanes : most;
    if (side->lanes > wide) side->lanes = wide;
    if (!gpu_gemm_axis_is_multiple(g->lower, side->lane_axis, side->lanes)) side->lanes = 1;
    side->n_groups = side->tile * g->sched->tile_k / side->lanes;
    side->n_steps = (side->n_groups + g->sched->threads - 1) / g->sched->threads;
    if (side->n_steps > MAX_STEPS) ice(g->unit->arena, "tile of too many elements per thread");
}

/* Rows of shared memory are padded so that what is stored across them falls into different banks.
 */
static void choose_pitch(Side *side, uint32_t acc_bytes) {
    bool has_vectors = side->size > 1 || (side->lane_axis == side->axis && side->lanes > 1);
    side->pitch = side->tile + (has_vectors ? FRAGMENT_BYTES / acc_bytes : 1);
}

/* Where the groups of this thread stand, and what of the factor can be computed before the loop
 * over k. Neighbouring threads take neighbours along the lane axis. */
static void place_groups(Simt *g, Side *side) {
    LLVMBuilderRef builder = g->unit->builder;
    const Lower *lower = g->lower;
    uint32_t k = gemm_axis_k(lower->kernel), lanes = side->lanes;
    bool is_along_k = side->lane_axis == k;
    uint32_t across = (is_along_k ? g->sched->tile_k : side->tile) / lanes;
    bool is_whole = g->sched->threads % across == 0;
    for (uint32_t s = 0; s < side->n_steps; s++) {
        LLVMValueRef group = g->block.thread;
        uint32_t more = is_whole ? s * (g->sched->threads / across) : 0;
        if (!is_whole) group = plus(g, group, s * g->sched->threads);
        LLVMValueRef fast = LLVMBuildURem(builder, group, int32(g, across), "");
        fast = LLVMBuildMul(builder, fast, int32(g, lanes), "");
        LLVMValueRef slow = LLVMBuildUDiv(builder, group, int32(g, across), "");
        side->own[s] = is_along_k ? slow : fast;
        side->at_k[s] = is_along_k ? fast : slow;
        side->more_own[s] = is_along_k ? more : 0;
        side->more_k[s] = is_along_k ? 0 : more;
        LLVMValueRef index =
            LLVMBuildAdd(builder, side->begin, gpu_gemm_index(lower, side->own[s]), "");
        index = plus(g, index, side->more_own[s]);
        side->exists[s] = LLVMBuildICmp(builder, LLVMIntULT, index, side->extent, "");
        Point *point = &side->points[s];
        *point = point_inside(&g->block.point);
        point->lanes = lanes;
        point->lane_axis = side->lane_axis;
        point->axis[side->axis] = index;
        point->active = side->exists[s];
        point_prepare(point, &side->value, 1, 1u << k);
    }
}

/* Loading. */

/* The points of a side's groups in the tile of k from `begin`; their loads are under way. */
static void fetch(Simt *g, const Side *side, LLVMValueRef begin, Point *points) {
    LLVMBuilderRef builder = g->unit->builder;
    const Lower *lower = g->lower;
    const ScalarTab *scalars = lower->kernel->scalars;
    const bool *reached = reached_scalars(g, side->value);
    uint32_t axis = gemm_axis_k(lower->kernel);
    for (uint32_t s = 0; s < side->n_steps; s++) {
        points[s] = point_inside(&side->points[s]);
        LLVMValueRef k = LLVMBuildAdd(builder, begin, gpu_gemm_index(lower, side->at_k[s]), "");
        k = plus(g, k, side->more_k[s]);
        LLVMValueRef in_k = LLVMBuildICmp(builder, LLVMIntULT, k, g->block.k, "");
        points[s].axis[axis] = k;
        points[s].active = LLVMBuildAnd(builder, side->exists[s], in_k, "");
        for (ScalarId id = 1; id <= scalar_count(scalars); id++)
            if (reached[id] && scalar_get(scalars, id)->kind == SCALAR_LOAD)
                point_value(&points[s], id);
    }
}

static LLVMValueRef shared_at(const Simt *g, LLVMValueRef bytes) {
    return gpu_shared_at(g->unit, g->shared, g->unit->i8, bytes);
}

/* Element offsets of a tile as bytes of the buffer. */
static LLVMValueRef offset_in(const Simt *g, const Side *side, LLVMValueRef at_k,
                              LLVMValueRef own) {
    LLVMBuilderRef builder = g->unit->builder;
    LLVMValueRef at = LLVMBuildMul(builder, at_k, int32(g, side->pitch), "");
    at = LLVMBuildAdd(builder, at, own, "");
    at = LLVMBuildMul(builder, at, int32(g, g->acc_bytes), "");
    return LLVMBuildAdd(builder, at, int32(g, side->offset_bytes), "");
}

static void store_group(const Simt *g, const Side *side, LLVMValueRef pointer, LLVMValueRef value) {
    LLVMBuilderRef builder = g->unit->builder;
    bool is_apart = side->lane_axis != side->axis && side->lanes > 1;
    if (!is_apart) {
        LLVMSetAlignment(LLVMBuildStore(builder, value, pointer), side->lanes * g->acc_bytes);
        return;
    }
    for (uint32_t j = 0; j < side->lanes; j++) {
        LLVMValueRef one = LLVMBuildExtractElement(builder, value, int32(g, j), "");
        LLVMValueRef offset = int32(g, (int64_t)j * side->pitch * g->acc_bytes);
        LLVMBuildStore(builder, one, gpu_shared_at(g->unit, pointer, g->unit->i8, offset));
    }
}

/* Fetched groups, as accumulators' type, into the buffer at `buffer` bytes (i32). */
static void put(Simt *g, const Side *side, Point *points, LLVMValueRef buffer) {
    Unit *unit = g->unit;
    LLVMBuilderRef builder = unit->builder;
    Dtype dtype = scalar_get(g->lower->kernel->scalars, side->value)->dtype;
    LLVMValueRef pad = unit_splat(unit, unit_number(unit, g->acc, side->pad), side->lanes);
    for (uint32_t s = 0; s < side->n_steps; s++) {
        LLVMValueRef value = convert_value(&unit->math, point_lanes(&points[s], side->value),
                                           unit_convert_type(dtype), unit_convert_type(g->acc));
        value = LLVMBuildSelect(builder, points[s].active, value, pad, "");
        LLVMValueRef at = offset_in(g, side, side->at_k[s], side->own[s]);
        at = plus(g, at, (side->more_k[s] * side->pitch + side->more_own[s]) * g->acc_bytes);
        If has_group = {NULL};
        if ((s + 1) * g->sched->threads > side->n_groups) {
            LLVMValueRef left = int32(g, (int64_t)side->n_groups - (int64_t)s * g->sched->threads);
            has_group = if_begin(unit, g->lower->function,
                                 LLVMBuildICmp(builder, LLVMIntULT, g->block.thread, left, ""));
        }
        store_group(g, side, shared_at(g, LLVMBuildAdd(builder, at, buffer, "")), value);
        if (has_group.after) if_end(unit, &has_group);
    }
}

/* Computing. */

static LLVMValueRef multiply_add(const Simt *g, LLVMValueRef a, LLVMValueRef b, LLVMValueRef sum) {
    Unit *unit = g->unit;
    if (g->acc == DT_I32)
        return LLVMBuildAdd(unit->builder, LLVMBuildMul(unit->builder, a, b, ""), sum, "");
    LLVMTypeRef type = LLVMTypeOf(sum);
    LLVMValueRef args[3] = {a, b, sum};
    return unit_intrinsic(unit, "llvm.fma", &type, 1, args, 3);
}

/* The thread's fragments of one row of a tile, as single elements. */
static void load_fragments(const Simt *g, const Side *side, LLVMValueRef base, uint32_t k,
                           LLVMValueRef *elements) {
    LLVMBuilderRef builder = g->unit->builder;
    LLVMTypeRef type = unit_value_type(g->unit, g->acc, side->size);
    for (uint32_t f = 0; f < side->n; f++) {
        int64_t offset = ((int64_t)k * side->pitch + (int64_t)f * side->stride) * g->acc_bytes;
        LLVMValueRef pointer = gpu_shared_at(g->unit, base, g->unit->i8, int32(g, offset));
        LLVMValueRef load = LLVMBuildLoad2(builder, type, pointer, "");
        LLVMSetAlignment(load, side->size * g->acc_bytes);
        for (uint32_t i = 0; i < side->size; i++)
            *elements++ =
                side->size == 1 ? load : LLVMBuildExtractElement(builder, load, int32(g, i), "");
    }
}

static uint32_t n_outputs(const Side *side) {
    return side->n * side->size;
}

/* All of a buffer's k, ascending. The next row's fragments are loaded before a row is computed. */
static void compute(Simt *g, LLVMValueRef buffer, LLVMValueRef *sums) {
    LLVMValueRef rows[2][2][MAX_SIDE], bases[2];
    uint32_t rm = n_outputs(&g->sides[0]), rn = n_outputs(&g->sides[1]);
    for (uint32_t i = 0; i < 2; i++) {
        LLVMValueRef at = offset_in(g, &g->sides[i], int32(g, 0), g->sides[i].first);
        bases[i] = shared_at(g, LLVMBuildAdd(g->unit->builder, at, buffer, ""));
        load_fragments(g, &g->sides[i], bases[i], 0, rows[0][i]);
    }
    for (uint32_t k = 0; k < g->sched->tile_k; k++) {
        for (uint32_t i = 0; i < 2 && k + 1 < g->sched->tile_k; i++)
            load_fragments(g, &g->sides[i], bases[i], k + 1, rows[(k + 1) % 2][i]);
        for (uint32_t a = 0; a < rm; a++)
            for (uint32_t b = 0; b < rn; b++)
                sums[a * rn + b] =
                    multiply_add(g, rows[k % 2][0][a], rows[k % 2][1][b], sums[a * rn + b]);
    }
}

/* The same, by the threads that have outputs. */
static void compute_some(Simt *g, LLVMValueRef buffer, LLVMValueRef *sums) {
    if (!g->computes) {
        compute(g, buffer, sums);
        return;
    }
    LLVMBuilderRef builder = g->unit->builder;
    uint32_t n = n_outputs(&g->sides[0]) * n_outputs(&g->sides[1]);
    LLVMValueRef before[MAX_OUTPUTS];
    for (uint32_t i = 0; i < n; i++) before[i] = sums[i];
    LLVMBasicBlockRef from[2] = {unit_here(g->unit), NULL};
    If has_outputs = if_begin(g->unit, g->lower->function, g->computes);
    compute(g, buffer, sums);
    from[1] = unit_here(g->unit);
    if_end(g->unit, &has_outputs);
    for (uint32_t i = 0; i < n; i++) {
        LLVMValueRef values[2] = {before[i], sums[i]};
        sums[i] = LLVMBuildPhi(builder, LLVMTypeOf(before[i]), "");
        LLVMAddIncoming(sums[i], values, from, 2);
    }
}

/* The whole of k. */
static void accumulate(Simt *g, LLVMValueRef *sums) {
    Unit *unit = g->unit;
    LLVMBuilderRef builder = unit->builder;
    Lower *lower = g->lower;
    Point points[2][MAX_STEPS];
    uint32_t n = n_outputs(&g->sides[0]) * n_outputs(&g->sides[1]);
    LLVMValueRef zero = lower_index_const(lower, 0), carried[MAX_OUTPUTS + 1];
    LLVMValueRef step = lower_index_const(lower, g->sched->tile_k);
    LLVMValueRef has_k = LLVMBuildICmp(builder, LLVMIntSGT, g->block.k, zero, "");
    If first = if_begin(unit, lower->function, has_k);
    for (uint32_t i = 0; i < 2; i++) fetch(g, &g->sides[i], zero, points[i]);
    for (uint32_t i = 0; i < 2; i++) put(g, &g->sides[i], points[i], int32(g, 0));
    if_end(unit, &first);
    gpu_barrier(unit);
    for (uint32_t i = 0; i < n; i++) carried[i] = unit_number(unit, g->acc, 0);
    carried[n] = int32(g, 0);
    Loop loop = loop_begin(unit, lower->function, zero, g->block.k, step);
    loop_carry(unit, &loop, carried, n + 1);
    LLVMValueRef buffer = carried[n], next = LLVMBuildAdd(builder, loop.index, step, "");
    LLVMValueRef other = LLVMBuildSub(builder, int32(g, g->buffer_bytes), buffer, "");
    for (uint32_t i = 0; i < 2; i++) fetch(g, &g->sides[i], next, points[i]);
    compute_some(g, buffer, carried);
    for (uint32_t i = 0; i < 2; i++) put(g, &g->sides[i], points[i], other);
    gpu_barrier(unit);
    carried[n] = other;
    loop_end_carry(unit, &loop, carried, n + 1);
    for (uint32_t i = 0; i < n; i++) sums[i] = carried[i];
}

/* The epilogue. */

/* Row of fragments `f` of every thread, into shared memory. */
static void put_part(const Simt *g, uint32_t f, const LLVMValueRef *sums, LLVMValueRef warp_m) {
    LLVMBuilderRef builder = g->unit->builder;
    const Side *left = &g->sides[0], *right = &g->sides[1];
    uint32_t rn = n_outputs(right), warp_rows = left->tile / g->sched->warps_m;
    LLVMTypeRef type = unit_value_type(g->unit, g->acc, right->size);
    /* A thread's first row in the tile, less the other fragments' rows of the warps before. */
    LLVMValueRef skipped =
        LLVMBuildMul(builder, warp_m, int32(g, (int64_t)warp_rows - left->stride), "");
    LLVMValueRef row = LLVMBuildSub(builder, left->first, skipped, "");
    LLVMValueRef at = LLVMBuildMul(builder, row, int32(g, g->part_pitch), "");
    at = LLVMBuildAdd(builder, at, right->first, "");
    LLVMValueRef base = shared_at(g, LLVMBuildMul(builder, at, int32(g, g->acc_bytes), ""));
    for (uint32_t i = 0; i < left->size; i++)
        for (uint32_t b = 0; b < right->n; b++) {
            const LLVMValueRef *from =
                sums + (size_t)(f * left->size + i) * rn + (size_t)b * right->size;
            LLVMValueRef value = from[0];
            if (right->size > 1) value = LLVMGetPoison(type);
            for (uint32_t j = 0; j < right->size && right->size > 1; j++)
                value = LLVMBuildInsertElement(builder, value, from[j], int32(g, j), "");
            int64_t offset = ((int64_t)i * g->part_pitch + (int64_t)b * right->stride);
            LLVMValueRef pointer =
                gpu_shared_at(g->unit, base, g->unit->i8, int32(g, offset * (int64_t)g->acc_bytes));
            LLVMSetAlignment(LLVMBuildStore(builder, value, pointer), right->size * g->acc_bytes);
        }
}

typedef struct Finish {
    const Simt *g;
    const LLVMValueRef *sums;
    LLVMValueRef warp_m;
} Finish;

static void put_if_any(const void *user, uint32_t f) {
    const Finish *finish = user;
    const Simt *g = finish->g;
    If has_outputs = {NULL};
    if (g->computes) has_outputs = if_begin(g->unit, g->lower->function, g->computes);
    put_part(g, f, finish->sums, finish->warp_m);
    if (has_outputs.after) if_end(g->unit, &has_outputs);
}

static void finish(const Simt *g, const LLVMValueRef *sums, LLVMValueRef warp_m) {
    const Side *left = &g->sides[0];
    GemmPart part = {.shared = g->shared,
                     .pitch = g->part_pitch,
                     .n_rows = left->tile / left->n,
                     .n_columns = g->sides[1].tile,
                     .run = left->stride,
                     .run_stride = left->tile / g->sched->warps_m};
    Finish parts = {.g = g, .sums = sums, .warp_m = warp_m};
    gpu_gemm_drain_parts(&g->block, part, left->n, put_if_any, &parts);
}

/* Set-up. */

/* Splits one side of the tile over `warps` warps of `lanes` threads each. */
static void place_fragments(Simt *g, Side *side, uint32_t warps, uint32_t lanes, LLVMValueRef warp,
                            LLVMValueRef lane) {
    LLVMBuilderRef builder = g->unit->builder;
    uint32_t per_thread = side->tile / (warps * lanes), most = FRAGMENT_BYTES / g->acc_bytes;
    side->size = per_thread < most ? per_thread : most;
    side->n = per_thread / side->size;
    side->stride = lanes * side->size;
    LLVMValueRef at = LLVMBuildMul(builder, warp, int32(g, side->tile / warps), "");
    LLVMValueRef in_warp = LLVMBuildMul(builder, lane, int32(g, side->size), "");
    side->first = LLVMBuildAdd(builder, at, in_warp, "");
}

/* Threads of a warp along m: 8 by 4, or all along the one side that there is. */
static uint32_t lanes_along_m(const Sched *sched) {
    return sched->tile_m == 1 ? 1 : sched->tile_n == 1 ? WARP : 8;
}

static LLVMValueRef place_thread(Simt *g) {
    LLVMBuilderRef builder = g->unit->builder;
    const Sched *sched = g->sched;
    uint32_t lanes_m = lanes_along_m(sched), lanes_n = WARP / lanes_m;
    LLVMValueRef thread = g->block.thread;
    LLVMValueRef lane = LLVMBuildAnd(builder, thread, int32(g, WARP - 1), "");
    LLVMValueRef warp = LLVMBuildLShr(builder, thread, int32(g, 5), "");
    LLVMValueRef warp_m = LLVMBuildUDiv(builder, warp, int32(g, sched->warps_n), "");
    LLVMValueRef warp_n = LLVMBuildURem(builder, warp, int32(g, sched->warps_n), "");
    LLVMValueRef lane_m = LLVMBuildUDiv(builder, lane, int32(g, lanes_n), "");
    LLVMValueRef lane_n = LLVMBuildURem(builder, lane, int32(g, lanes_n), "");
    uint32_t computing = WARP * sched->warps_m * sched->warps_n;
    if (computing < sched->threads)
        g->computes = LLVMBuildICmp(builder, LLVMIntULT, thread, int32(g, computing), "");
    place_fragments(g, &g->sides[0], sched->warps_m, lanes_m, warp_m, lane_m);
    place_fragments(g, &g->sides[1], sched->warps_n, lanes_n, warp_n, lane_n);
    return warp_m;
}

/* Shared memory: two buffers of a tile each, then a part of the finished tile in their place. */
static void make_shared(Simt *g) {
    uint32_t bytes = 0;
    for (uint32_t i = 0; i < 2; i++) {
        Side *side = &g->sides[i];
        choose_pitch(side, g->acc_bytes);
        side->offset_bytes = bytes;
        bytes += side->pitch * g->sched->tile_k * g->acc_bytes;
        bytes = (bytes + FRAGMENT_BYTES - 1) / FRAGMENT_BYTES * FRAGMENT_BYTES;
    }
    g->buffer_bytes = bytes;
    uint32_t columns = g->sides[1].tile;
    g->part_pitch = columns + (columns > 1 ? FRAGMENT_BYTES / g->acc_bytes : 0);
    uint32_t rows = g->sides[0].tile / g->sides[0].n;
    uint32_t part_bytes = rows * g->part_pitch * g->acc_bytes;
    g->shared =
        gpu_tiles(g->lower, part_bytes > 2 * bytes ? part_bytes : 2 * bytes, FRAGMENT_BYTES);
}

/* Values that depend on the batch alone, ahead of everything. */
static void prepare_batch(Simt *g) {
    const Kernel *kernel = g->lower->kernel;
    const ScalarId roots[2] = {g->sides[0].value, g->sides[1].value};
    uint32_t inner =
        1u << gemm_axis_m(kernel) | 1u << gemm_axis_n(kernel) | 1u << gemm_axis_k(kernel);
    point_prepare(&g->block.point, roots, 2, inner);
}

/* Two blocks of 256 threads, or four of 128, hide each other's waits; that leaves 128 registers a
 * thread, which the accumulators, two rows of fragments and the groups on their way fit into. In
 * f64 they take more. */
static void ask_for_occupancy(const Simt *g) {
    static const char key[] = "nvvm.minctasm";
    const char *value = g->sched->threads >= 256 ? "2" : g->acc_bytes == 8 ? "3" : "4";
    LLVMAttributeRef attribute =
        LLVMCreateStringAttribute(g->unit->context, key, sizeof key - 1, value, 1);
    LLVMAddAttributeAtIndex(g->lower->function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                            attribute);
}

void template_gpu_gemm_simt(Lower *lower) {
    const Reduce *reduce = &lower->kernel->reduces.data[0];
    Simt g = {.lower = lower,
              .unit = lower->unit,
              .sched = &lower->variant->sched,
              .block = gpu_gemm_block(lower),
              .acc = reduce->acc,
              .acc_bytes = dtype_bytes(reduce->acc)};
    g.sides[0] = (Side){.value = reduce->value,
                        .axis = gemm_axis_m(lower->kernel),
                        .tile = g.sched->tile_m,
                        .begin = g.block.m0,
                        .extent = g.block.m,
                        .pad = g.acc == DT_I32 ? 0 : -0.0};
    g.sides[1] = (Side){.value = reduce->factor,
                        .axis = gemm_axis_n(lower->kernel),
                        .tile = g.sched->tile_n,
                        .begin = g.block.n0,
                        .extent = g.block.n};
    if (!lower->is_turn) ask_for_occupancy(&g);
    LLVMValueRef warp_m = place_thread(&g), sums[MAX_OUTPUTS];
    for (uint32_t i = 0; i < 2; i++) choose_lanes(&g, &g.sides[i]);
    make_shared(&g);
    prepare_batch(&g);
    for (uint32_t i = 0; i < 2; i++) place_groups(&g, &g.sides[i]);
    accumulate(&g, sums);
    finish(&g, sums, warp_m);
}
