/* GPU GEMMs on the ordinary units: every output is one chain of fused multiply-adds,
 * ascending in k.
 *
 * The block walks k in steps of tile_k. Tiles of both operands lie in shared memory as rows of one
 * k each, sched.stages of them: while one is computed on, the next are on their way. An operand
 * that is a plain load is copied by cp.async, by elements where it lies across; any other is loaded
 * into registers before the computing and stored after it. One barrier a step is enough.
 *
 * A warp computes lanes_m x lanes_n times a thread's rm x rn outputs, which are fragments of at
 * most 16 bytes, spread over the warp's part of the tile so that neighbouring threads read
 * neighbouring fragments. What a multiplication costs is a slot to start it and the reading of its
 * registers: hence many outputs a thread, in an order in which neighbours share an operand.
 *
 * Beyond the end of k the operands are -0 and +0: their product changes no sum, not even -0. The
 * finished accumulators go through the same shared memory to the epilogue, a row of fragments at a
 * time. */
#include "codegen/gpu_gemm/simt.h"

#include <string.h>

enum { MAX_OUTPUTS = 128, MAX_SIDE = 16 };
enum { MAX_VALUES = MAX_OUTPUTS + SIMT_MAX_AHEAD * 2 * MAX_SIDE };
/* From here on a thread's outputs leave the assembler no choice of register banks if they also lie
 * in fours. */
enum { MANY_OUTPUTS = 64 };

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
        LLVMValueRef pointer = gpu_shared_at(g->unit, base, g->unit->i8, unit_i32(g->unit, offset));
        LLVMValueRef load = LLVMBuildLoad2(builder, type, pointer, "");
        LLVMSetAlignment(load, side->size * g->acc_bytes);
        for (uint32_t i = 0; i < side->size; i++)
            *elements++ = side->size == 1
                              ? load
                              : LLVMBuildExtractElement(builder, load, unit_i32(g->unit, i), "");
    }
}

static uint32_t n_outputs(const Side *side) {
    return side->n * side->size;
}

/* Down a column and up the next, so that two in a row share an operand, which is then read once. */
static void multiply_row(const Simt *g, LLVMValueRef (*row)[MAX_SIDE], LLVMValueRef *sums) {
    uint32_t rm = n_outputs(&g->sides[0]), rn = n_outputs(&g->sides[1]);
    for (uint32_t b = 0; b < rn; b++)
        for (uint32_t i = 0; i < rm; i++) {
            uint32_t a = b % 2 ? rm - 1 - i : i;
            LLVMValueRef *sum = &sums[a * rn + b];
            *sum = multiply_add(g, row[0][a], row[1][b], *sum);
        }
}

/* What the loop over k carries: the thread's outputs so far, and the next rows' fragments, row k in
 * place k mod `ahead`. */
typedef struct Work {
    LLVMValueRef sums[MAX_OUTPUTS];
    LLVMValueRef rows[SIMT_MAX_AHEAD][2][MAX_SIDE];
} Work;

/* Row `k` of a buffer. */
static void load_row(const Simt *g, LLVMValueRef buffer, uint32_t k,
                     LLVMValueRef (*row)[MAX_SIDE]) {
    for (uint32_t i = 0; i < 2; i++) {
        const Side *side = &g->sides[i];
        LLVMValueRef at = simt_offset(g, side, unit_i32(g->unit, 0), side->first);
        LLVMValueRef base = simt_shared_at(g, LLVMBuildAdd(g->unit->builder, at, buffer, ""));
        load_fragments(g, side, base, k, row[i]);
    }
}

/* Rows [from, to) of `buffer`, ascending. A row some way ahead is loaded before a row is computed:
 * of `next`, when `buffer` has no more. */
static void compute(const Simt *g, LLVMValueRef buffer, LLVMValueRef next, uint32_t from,
                    uint32_t to, Work *work) {
    uint32_t ahead = simt_rows_ahead(g->sched), depth = g->sched->tile_k;
    for (uint32_t k = from; k < to; k++) {
        LLVMValueRef row[2][MAX_SIDE], (*place)[MAX_SIDE] = work->rows[k % ahead];
        memcpy(row, place, sizeof row);
        bool is_next = k + ahead >= depth;
        load_row(g, is_next ? next : buffer, (k + ahead) % depth, place);
        multiply_row(g, row, work->sums);
    }
}

/* Copies `n` values of the list to its end, or back. */
static void pack_some(LLVMValueRef *own, uint32_t n, LLVMValueRef **list, bool is_back) {
    if (is_back)
        memcpy(own, *list, n * sizeof *own);
    else
        memcpy(*list, own, n * sizeof *own);
    *list += n;
}

static uint32_t pack_or_unpack(const Simt *g, Work *work, LLVMValueRef *values, bool is_back) {
    uint32_t rm = n_outputs(&g->sides[0]), rn = n_outputs(&g->sides[1]);
    LLVMValueRef *end = values;
    pack_some(work->sums, rm * rn, &end, is_back);
    for (uint32_t i = 0; i < simt_rows_ahead(g->sched); i++) {
        pack_some(work->rows[i][0], rm, &end, is_back);
        pack_some(work->rows[i][1], rn, &end, is_back);
    }
    return (uint32_t)(end - values);
}

static uint32_t pack(const Simt *g, Work *work, LLVMValueRef *values) {
    return pack_or_unpack(g, work, values, false);
}

static void unpack(const Simt *g, LLVMValueRef *values, Work *work) {
    pack_or_unpack(g, work, values, true);
}

/* The same, by the threads that have outputs. */
static void compute_some(const Simt *g, LLVMValueRef buffer, LLVMValueRef next, uint32_t from,
                         uint32_t to, Work *work) {
    if (!g->computes) {
        compute(g, buffer, next, from, to, work);
        return;
    }
    LLVMValueRef before[MAX_VALUES], after[MAX_VALUES];
    uint32_t n = pack(g, work, before);
    LLVMBasicBlockRef blocks[2] = {unit_here(g->unit), NULL};
    If has_outputs = if_begin(g->unit, g->lower->function, g->computes);
    compute(g, buffer, next, from, to, work);
    blocks[1] = unit_here(g->unit);
    if_end(g->unit, &has_outputs);
    pack(g, work, after);
    for (uint32_t i = 0; i < n; i++) {
        LLVMValueRef values[2] = {before[i], after[i]};
        after[i] = LLVMBuildPhi(g->unit->builder, LLVMTypeOf(before[i]), "");
        LLVMAddIncoming(after[i], values, blocks, 2);
    }
    unpack(g, after, work);
}

/* The tile in `buffer` is there for all threads; later ones may be on their way. */
static void finish_tile(const Simt *g, LLVMValueRef buffer, Point (*points)[MAX_STEPS]) {
    LLVMValueRef n_later = unit_i32(g->unit, (int64_t)g->sched->stages - 2);
    simt_put_tile(g, buffer, points);
    if (simt_has_copies(g))
        unit_intrinsic(g->unit, "llvm.nvvm.cp.async.wait.group", NULL, 0, &n_later, 1);
    gpu_barrier(g->unit);
}

static LLVMValueRef next_buffer(const Simt *g, LLVMValueRef buffer) {
    LLVMBuilderRef builder = g->unit->builder;
    LLVMValueRef next = simt_plus(g, buffer, g->buffer_bytes);
    LLVMValueRef end = unit_i32(g->unit, (int64_t)g->sched->stages * g->buffer_bytes);
    LLVMValueRef wraps = LLVMBuildICmp(builder, LLVMIntEQ, next, end, "");
    return LLVMBuildSelect(builder, wraps, unit_i32(g->unit, 0), next, "");
}

static void begin_tiles(Simt *g) {
    Point points[2][MAX_STEPS];
    LLVMValueRef zero = lower_index_const(g->lower, 0);
    LLVMValueRef has_k = LLVMBuildICmp(g->unit->builder, LLVMIntSGT, g->block.k, zero, "");
    If first = if_begin(g->unit, g->lower->function, has_k);
    simt_fetch_tile(g, zero, points);
    for (uint32_t i = 0; i + 1 < g->sched->stages; i++)
        simt_copy_tile(g, lower_index_const(g->lower, (int64_t)i * g->sched->tile_k),
                       unit_i32(g->unit, (int64_t)i * g->buffer_bytes));
    finish_tile(g, unit_i32(g->unit, 0), points);
    if_end(g->unit, &first);
}

/* The whole of k. The barrier comes before a tile's last rows are computed, which then hide that
 * the next tile's first rows are loaded. */
static void accumulate(Simt *g, LLVMValueRef *sums) {
    Unit *unit = g->unit;
    LLVMBuilderRef builder = unit->builder;
    Point points[2][MAX_STEPS];
    uint32_t depth = g->sched->tile_k, ahead = g->sched->stages - 1;
    uint32_t n_rows = simt_rows_ahead(g->sched);
    Work work;
    LLVMValueRef values[MAX_VALUES + 2];
    LLVMValueRef zero = lower_index_const(g->lower, 0), step = lower_index_const(g->lower, depth);
    begin_tiles(g);
    for (uint32_t i = 0; i < MAX_OUTPUTS; i++) work.sums[i] = unit_number(unit, g->acc, 0);
    for (uint32_t k = 0; k < n_rows; k++) load_row(g, unit_i32(unit, 0), k, work.rows[k]);
    uint32_t n = pack(g, &work, values);
    values[n] = unit_i32(unit, 0);
    values[n + 1] = unit_i32(unit, (int64_t)ahead * g->buffer_bytes);
    Loop loop = loop_begin(unit, g->lower->function, zero, g->block.k, step);
    loop_carry(unit, &loop, values, n + 2);
    unpack(g, values, &work);
    LLVMValueRef buffer = values[n], free = values[n + 1], next = next_buffer(g, buffer);
    LLVMValueRef later = lower_index_const(g->lower, (int64_t)ahead * depth);
    simt_copy_tile(g, LLVMBuildAdd(builder, loop.index, later, ""), free);
    simt_fetch_tile(g, LLVMBuildAdd(builder, loop.index, step, ""), points);
    compute_some(g, buffer, next, 0, depth - n_rows, &work);
    finish_tile(g, next, points);
    compute_some(g, buffer, next, depth - n_rows, depth, &work);
    pack(g, &work, values);
    values[n] = next;
    values[n + 1] = next_buffer(g, free);
    loop_end_carry(unit, &loop, values, n + 2);
    for (uint32_t i = 0; i < n_outputs(&g->sides[0]) * n_outputs(&g->sides[1]); i++)
        sums[i] = values[i];
}

/* The epilogue. */

/* One by one where fragments would tie accumulators to registers side by side throughout the loop
 * over k: volatile, or the assembler joins the stores. */
static void put_fragment(const Simt *g, LLVMValueRef pointer, LLVMValueRef value) {
    LLVMBuilderRef builder = g->unit->builder;
    uint32_t size = g->sides[1].size;
    if (size == 1 || n_outputs(&g->sides[0]) * n_outputs(&g->sides[1]) < MANY_OUTPUTS) {
        LLVMSetAlignment(LLVMBuildStore(builder, value, pointer), size * g->acc_bytes);
        return;
    }
    for (uint32_t j = 0; j < size; j++) {
        LLVMValueRef one = LLVMBuildExtractElement(builder, value, unit_i32(g->unit, j), "");
        LLVMValueRef offset = unit_i32(g->unit, (int64_t)j * g->acc_bytes);
        LLVMValueRef to = gpu_shared_at(g->unit, pointer, g->unit->i8, offset);
        LLVMSetVolatile(LLVMBuildStore(builder, one, to), 1);
    }
}

/* Row of fragments `f` of every thread, into shared memory. */
static void put_part(const Simt *g, uint32_t f, const LLVMValueRef *sums, LLVMValueRef warp_m) {
    LLVMBuilderRef builder = g->unit->builder;
    const Side *left = &g->sides[0], *right = &g->sides[1];
    uint32_t rn = n_outputs(right), warp_rows = left->tile / g->sched->warps_m;
    LLVMTypeRef type = unit_value_type(g->unit, g->acc, right->size);
    /* A thread's first row in the tile, less the other fragments' rows of the warps before. */
    LLVMValueRef skipped =
        LLVMBuildMul(builder, warp_m, unit_i32(g->unit, (int64_t)warp_rows - left->stride), "");
    LLVMValueRef row = LLVMBuildSub(builder, left->first, skipped, "");
    LLVMValueRef at = LLVMBuildMul(builder, row, unit_i32(g->unit, g->part_pitch), "");
    at = LLVMBuildAdd(builder, at, right->first, "");
    LLVMValueRef base =
        simt_shared_at(g, LLVMBuildMul(builder, at, unit_i32(g->unit, g->acc_bytes), ""));
    for (uint32_t i = 0; i < left->size; i++)
        for (uint32_t b = 0; b < right->n; b++) {
            const LLVMValueRef *from =
                sums + (size_t)(f * left->size + i) * rn + (size_t)b * right->size;
            LLVMValueRef value = from[0];
            if (right->size > 1) value = LLVMGetPoison(type);
            for (uint32_t j = 0; j < right->size && right->size > 1; j++)
                value = LLVMBuildInsertElement(builder, value, from[j], unit_i32(g->unit, j), "");
            int64_t offset = ((int64_t)i * g->part_pitch + (int64_t)b * right->stride);
            LLVMValueRef pointer = gpu_shared_at(g->unit, base, g->unit->i8,
                                                 unit_i32(g->unit, offset * (int64_t)g->acc_bytes));
            put_fragment(g, pointer, value);
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
    gpu_gemm_epilogue_parts(&g->block, part, left->n, put_if_any, &parts);
}

/* Set-up. */

/* Splits one side of the tile over `warps` warps of `lanes` threads each. */
static void place_fragments(Simt *g, Side *side, uint32_t warps, uint32_t lanes, LLVMValueRef warp,
                            LLVMValueRef lane) {
    LLVMBuilderRef builder = g->unit->builder;
    uint32_t per_thread = side->tile / (warps * lanes), most = SIMT_FRAGMENT_BYTES / g->acc_bytes;
    side->size = per_thread < most ? per_thread : most;
    side->n = per_thread / side->size;
    side->stride = lanes * side->size;
    LLVMValueRef at = LLVMBuildMul(builder, warp, unit_i32(g->unit, side->tile / warps), "");
    LLVMValueRef in_warp = LLVMBuildMul(builder, lane, unit_i32(g->unit, side->size), "");
    side->first = LLVMBuildAdd(builder, at, in_warp, "");
}

/* Where a lane stands among those along m and n. Neighbours read the same fragment of the left
 * operand, neighbours but one of the right, so that a 16-byte load of either takes two passes over
 * shared memory, not four. */
static void place_lane(const Simt *g, LLVMValueRef lane, uint32_t lanes_n, LLVMValueRef *m,
                       LLVMValueRef *n) {
    LLVMBuilderRef builder = g->unit->builder;
    if (lanes_n == 1 || lanes_n == WARP) {
        *m = LLVMBuildUDiv(builder, lane, unit_i32(g->unit, lanes_n), "");
        *n = LLVMBuildURem(builder, lane, unit_i32(g->unit, lanes_n), "");
        return;
    }
    LLVMValueRef one = unit_i32(g->unit, 1), half = unit_i32(g->unit, lanes_n / 2);
    LLVMValueRef low_m = LLVMBuildAnd(builder, lane, one, "");
    LLVMValueRef pair = LLVMBuildLShr(builder, lane, one, "");
    LLVMValueRef low_n = LLVMBuildAnd(builder, pair, one, "");
    LLVMValueRef rest = LLVMBuildLShr(builder, lane, unit_i32(g->unit, 2), "");
    LLVMValueRef high_n = LLVMBuildURem(builder, rest, half, "");
    LLVMValueRef high_m = LLVMBuildUDiv(builder, rest, half, "");
    high_m = LLVMBuildShl(builder, high_m, one, "");
    high_n = LLVMBuildShl(builder, high_n, one, "");
    *m = LLVMBuildAdd(builder, high_m, low_m, "");
    *n = LLVMBuildAdd(builder, high_n, low_n, "");
}

static LLVMValueRef place_thread(Simt *g) {
    LLVMBuilderRef builder = g->unit->builder;
    const Sched *sched = g->sched;
    uint32_t lanes_m = simt_lanes_m(sched), lanes_n = WARP / lanes_m;
    LLVMValueRef thread = g->block.thread;
    LLVMValueRef lane = LLVMBuildAnd(builder, thread, unit_i32(g->unit, WARP - 1), "");
    LLVMValueRef warp = LLVMBuildLShr(builder, thread, unit_i32(g->unit, 5), "");
    warp = LLVMBuildURem(builder, warp, unit_i32(g->unit, (int64_t)sched->warps_m * sched->warps_n),
                         "");
    LLVMValueRef warp_m = LLVMBuildUDiv(builder, warp, unit_i32(g->unit, sched->warps_n), "");
    LLVMValueRef warp_n = LLVMBuildURem(builder, warp, unit_i32(g->unit, sched->warps_n), "");
    LLVMValueRef lane_m, lane_n;
    place_lane(g, lane, lanes_n, &lane_m, &lane_n);
    uint32_t computing = WARP * sched->warps_m * sched->warps_n;
    if (computing < sched->threads)
        g->computes = LLVMBuildICmp(builder, LLVMIntULT, thread, unit_i32(g->unit, computing), "");
    place_fragments(g, &g->sides[0], sched->warps_m, lanes_m, warp_m, lane_m);
    place_fragments(g, &g->sides[1], sched->warps_n, lanes_n, warp_n, lane_n);
    return warp_m;
}

/* Shared memory: buffers of a tile of each operand, then a part of the finished tile in their
 * place.
 */
static void make_shared(Simt *g) {
    uint32_t bytes = 0;
    for (uint32_t i = 0; i < 2; i++) {
        Side *side = &g->sides[i];
        side->offset_bytes = bytes;
        bytes += side->pitch * g->sched->tile_k * g->acc_bytes;
        bytes = (bytes + SIMT_FRAGMENT_BYTES - 1) / SIMT_FRAGMENT_BYTES * SIMT_FRAGMENT_BYTES;
    }
    g->buffer_bytes = bytes;
    g->part_pitch = simt_part_pitch(g->sched, g->acc_bytes);
    uint32_t least = simt_part_bytes(g->sched, g->acc_bytes);
    bytes *= g->sched->stages;
    g->shared = gpu_tiles(g->lower, bytes > least ? bytes : least, SIMT_FRAGMENT_BYTES);
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
 * thread, which 64 accumulators, two rows of fragments and the groups on their way fit into. More
 * accumulators take all registers that a thread can have; in f64 they take two each. */
static void ask_for_occupancy(const Simt *g) {
    static const char key[] = "nvvm.minctasm";
    uint32_t outputs = n_outputs(&g->sides[0]) * n_outputs(&g->sides[1]);
    bool is_full = outputs * g->acc_bytes / 4 > MANY_OUTPUTS;
    const char *value = g->sched->threads >= 256 ? is_full ? "1" : "2"
                        : g->acc_bytes == 8      ? "3"
                                                 : "4";
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
    LLVMValueRef warp_m = place_thread(&g), sums[MAX_OUTPUTS];
    if (!lower->is_turn) ask_for_occupancy(&g);
    for (uint32_t i = 0; i < 2; i++) simt_side_init(&g, &g.sides[i]);
    make_shared(&g);
    prepare_batch(&g);
    for (uint32_t i = 0; i < 2; i++) simt_side_place(&g, &g.sides[i]);
    accumulate(&g, sums);
    finish(&g, sums, warp_m);
}
