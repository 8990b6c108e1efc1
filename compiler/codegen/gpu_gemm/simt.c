/* GEMMs on CUDA cores (SIMT): every output is one chain of fmas, ascending in k.
 *
 * The block loops over k in steps of tile_k. Tiles of both operands are in shared memory, one row
 * per k, in a pipeline of sched.gemm.stages stages: while one is multiplied, the next are in
 * flight. An operand that is a plain load is copied by cp.async, element by element if it is
 * transposed. Any other operand is loaded into registers before the multiplication and stored to
 * shared memory after it. One barrier per step is enough.
 *
 * A warp has lanes_m x lanes_n threads with rm x rn outputs each. A thread's outputs are fragments
 * of at most 16 bytes, spread over the warp's share of the tile, so that neighbouring threads read
 * neighbouring fragments. An fma costs an issue slot and register reads. So a thread has many
 * outputs, and computes them in an order in which consecutive fmas share an operand.
 *
 * Past the end of k the operands are -0 and +0: adding their product changes no sum, not even -0.
 * The accumulators go through the same shared memory to the epilogue, one row of fragments at a
 * time. */
#include "codegen/gpu_gemm/simt.h"
#include "machine/tuning.h"

#include <string.h>

enum { MAX_OUTPUTS = 128, MAX_SIDE = 16 };
enum { MAX_LISTS = 1 + SIMT_MAX_AHEAD * 2 };

/* Computing. */

/* Loads the thread's fragments of one row of a tile, as single elements. */
static void load_fragments(const Simt *g, const Side *side, Val base, uint32_t at_k,
                           Val *elements) {
    const Codegen *k = g->k;
    LLVMTypeRef type = k_value_type(k, g->acc, side->size);
    for (uint32_t f = 0; f < side->n; f++) {
        int64_t offset = ((int64_t)at_k * side->pitch + (int64_t)f * side->stride) * g->acc_bytes;
        Val pointer = k_byte(k, base, k_i32(k, offset));
        Val load = k_load_aligned(k, type, pointer, side->size * g->acc_bytes);
        for (uint32_t i = 0; i < side->size; i++)
            *elements++ = side->size == 1 ? load : k_extract(k, load, i);
    }
}

static uint32_t n_outputs(const Side *side) {
    return side->n * side->size;
}

/* Goes down one column and up the next, so that consecutive fmas share an operand, which is then
 * read once. */
static void multiply_row(const Simt *g, Val (*row)[MAX_SIDE], Val *sums) {
    uint32_t rm = n_outputs(&g->sides[0]), rn = n_outputs(&g->sides[1]);
    for (uint32_t b = 0; b < rn; b++)
        for (uint32_t i = 0; i < rm; i++) {
            uint32_t a = b % 2 ? rm - 1 - i : i;
            Val *sum = &sums[a * rn + b];
            *sum = math_multiply_add(g->k, g->acc, row[0][a], row[1][b], *sum);
        }
}

/* A list of values. */
typedef struct ValueList {
    Val *values;
    uint32_t n;
} ValueList;

/* The loop-carried values: the thread's accumulators, and the fragments of the next rows, with row
 * k at index k mod `ahead`. */
typedef struct Work {
    Val sums[MAX_OUTPUTS];
    Val rows[SIMT_MAX_AHEAD][2][MAX_SIDE];
} Work;

/* Loads row `k` of a buffer. */
static void load_row(const Simt *g, Val buffer, uint32_t at_k, Val (*row)[MAX_SIDE]) {
    for (uint32_t i = 0; i < 2; i++) {
        const Side *side = &g->sides[i];
        Val at = simt_offset(g, side, k_i32(g->k, 0), side->first);
        Val base = simt_shared_at(g, k_add(g->k, at, buffer));
        load_fragments(g, side, base, at_k, row[i]);
    }
}

/* Multiplies rows [from, to) of `buffer` in ascending order. Each row is loaded some rows ahead;
 * after the last row of `buffer` the loads come from `next`. */
static void compute(const Simt *g, Val buffer, Val next, uint32_t from, uint32_t to, Work *work) {
    uint32_t ahead = simt_rows_ahead(g->sched), depth = g->sched->gemm.tile_k;
    for (uint32_t k = from; k < to; k++) {
        Val row[2][MAX_SIDE], (*place)[MAX_SIDE] = work->rows[k % ahead];
        memcpy(row, place, sizeof row);
        bool is_next = k + ahead >= depth;
        load_row(g, is_next ? next : buffer, (k + ahead) % depth, place);
        multiply_row(g, row, work->sums);
    }
}

/* The accumulators and the rows as lists of values; the thread has as many of each as it needs.
 * Returns the number of lists. */
static uint32_t list_work(const Simt *g, Work *work, ValueList *lists) {
    uint32_t rm = n_outputs(&g->sides[0]), rn = n_outputs(&g->sides[1]), n = 0;
    lists[n++] = (ValueList){work->sums, rm * rn};
    for (uint32_t i = 0; i < simt_rows_ahead(g->sched); i++) {
        lists[n++] = (ValueList){work->rows[i][0], rm};
        lists[n++] = (ValueList){work->rows[i][1], rn};
    }
    return n;
}

/* `compute` in the threads that have outputs. */
static void compute_some(const Simt *g, Val buffer, Val next, uint32_t from, uint32_t to,
                         Work *work) {
    if (!g->computes) {
        compute(g, buffer, next, from, to, work);
        return;
    }
    Work before = *work;
    ValueList old[MAX_LISTS], lists[MAX_LISTS];
    list_work(g, &before, old);
    uint32_t n = list_work(g, work, lists);
    LLVMBasicBlockRef here = k_here(g->k);
    If has_outputs = if_begin(g->k, g->computes);
    compute(g, buffer, next, from, to, work);
    LLVMBasicBlockRef computed = k_here(g->k);
    if_end(g->k, &has_outputs);
    for (uint32_t l = 0; l < n; l++)
        for (uint32_t i = 0; i < lists[l].n; i++)
            lists[l].values[i] =
                k_merge(g->k, old[l].values[i], here, lists[l].values[i], computed);
}

/* Waits until the tile in `buffer` is complete for all threads; copies of later tiles may be in
 * flight. */
static void finish_tile(const Simt *g, Val buffer, Point (*points)[MAX_STEPS]) {
    simt_put_tile(g, buffer, points);
    if (simt_has_copies(g)) gpu_copies_wait(g->k, g->sched->gemm.stages - 2);
    gpu_barrier(g->k);
}

static Val next_buffer(const Simt *g, Val buffer) {
    return gpu_gemm_next_stage(g->k, buffer, g->buffer_bytes, g->sched->gemm.stages);
}

static void begin_tiles(Simt *g) {
    Point points[2][MAX_STEPS];
    Val zero = lower_index_const(g->lower, 0);
    If first = if_begin(g->k, k_sgt(g->k, g->block.k, zero));
    simt_fetch_tile(g, zero, points);
    for (uint32_t i = 0; i + 1 < g->sched->gemm.stages; i++)
        simt_copy_tile(g, lower_index_const(g->lower, (int64_t)i * g->sched->gemm.tile_k),
                       k_i32(g->k, (int64_t)i * g->buffer_bytes));
    finish_tile(g, k_i32(g->k, 0), points);
    if_end(g->k, &first);
}

/* Loops over k. The barrier comes before a tile's last rows are multiplied, and these hide the
 * loads of the next tile's first rows. */
static void accumulate(Simt *g, Val *sums) {
    const Codegen *k = g->k;
    Point points[2][MAX_STEPS];
    uint32_t depth = g->sched->gemm.tile_k, ahead = g->sched->gemm.stages - 1;
    uint32_t n_rows = simt_rows_ahead(g->sched);
    Work work;
    ValueList lists[MAX_LISTS];
    begin_tiles(g);
    for (uint32_t i = 0; i < MAX_OUTPUTS; i++) work.sums[i] = k_number(k, g->acc, 0);
    for (uint32_t j = 0; j < n_rows; j++) load_row(g, k_i32(k, 0), j, work.rows[j]);
    Val buffer = k_i32(k, 0), free = k_i32(k, (int64_t)ahead * g->buffer_bytes);
    uint32_t n = list_work(g, &work, lists);
    Loop loop = loop_over(k, g->block.k, depth);
    for (uint32_t l = 0; l < n; l++) loop_carry(k, &loop, lists[l].values, lists[l].n);
    loop_carry(k, &loop, &buffer, 1);
    loop_carry(k, &loop, &free, 1);
    Val next = next_buffer(g, buffer);
    simt_copy_tile(g, k_addi(k, loop.index, (int64_t)ahead * depth), free);
    simt_fetch_tile(g, k_add(k, loop.index, loop.step), points);
    compute_some(g, buffer, next, 0, depth - n_rows, &work);
    finish_tile(g, next, points);
    compute_some(g, buffer, next, depth - n_rows, depth, &work);
    buffer = next;
    free = next_buffer(g, free);
    loop_end(k, &loop);
    memcpy(sums, work.sums, lists[0].n * sizeof *sums);
}

/* The epilogue. */

/* Stores the elements one by one if a vector store would tie accumulators to consecutive registers
 * throughout the loop over k. The stores are volatile, or ptxas would combine them. */
static void put_fragment(const Simt *g, Val pointer, Val value) {
    const Codegen *k = g->k;
    uint32_t size = g->sides[1].size;
    if (size == 1 ||
        n_outputs(&g->sides[0]) * n_outputs(&g->sides[1]) < CODEGEN_SIMT_MANY_OUTPUTS) {
        k_store_aligned(k, value, pointer, size * g->acc_bytes);
        return;
    }
    for (uint32_t j = 0; j < size; j++) {
        Val one = k_extract(k, value, j);
        Val to = k_byte(k, pointer, k_i32(k, (int64_t)j * g->acc_bytes));
        LLVMSetVolatile(k_store(k, one, to), 1);
    }
}

/* Writes row `f` of every thread's fragments to shared memory. */
static void put_subtile(const Simt *g, uint32_t f, const Val *sums, Val warp_m) {
    const Codegen *k = g->k;
    const Side *left = &g->sides[0], *right = &g->sides[1];
    uint32_t rn = n_outputs(right), warp_rows = left->tile / g->sched->gemm.warps_m;
    /* The thread's first row in the part: its row in the tile, minus the rows of other fragments of
     * the warps before. */
    Val skipped = k_muli(k, warp_m, (int64_t)warp_rows - left->stride);
    Val row = k_sub(k, left->first, skipped);
    Val at = k_madi(k, row, g->subtile_pitch, right->first);
    Val base = simt_shared_at(g, k_muli(k, at, g->acc_bytes));
    for (uint32_t i = 0; i < left->size; i++)
        for (uint32_t b = 0; b < right->n; b++) {
            const Val *from = sums + (size_t)(f * left->size + i) * rn + (size_t)b * right->size;
            Val value = k_vector(k, from, right->size);
            int64_t offset = ((int64_t)i * g->subtile_pitch + (int64_t)b * right->stride);
            Val pointer = k_byte(k, base, k_i32(k, offset * (int64_t)g->acc_bytes));
            put_fragment(g, pointer, value);
        }
}

typedef struct Finish {
    const Simt *g;
    const Val *sums;
    Val warp_m;
} Finish;

static void put_if_any(const void *user, uint32_t f) {
    const Finish *finish = user;
    const Simt *g = finish->g;
    If has_outputs = if_begin(g->k, g->computes);
    put_subtile(g, f, finish->sums, finish->warp_m);
    if_end(g->k, &has_outputs);
}

static void finish(const Simt *g, const Val *sums, Val warp_m) {
    const Side *left = &g->sides[0];
    GemmSubtile subtile = {.shared = g->shared,
                           .pitch = g->subtile_pitch,
                           .n_rows = left->tile / left->n,
                           .n_columns = g->sides[1].tile,
                           .run = left->stride,
                           .run_stride = left->tile / g->sched->gemm.warps_m};
    Finish parts = {.g = g, .sums = sums, .warp_m = warp_m};
    gpu_gemm_epilogue_subtiles(&g->block, subtile, left->n, put_if_any, &parts);
}

/* Set-up. */

/* Splits one side of the tile over `warps` warps with `lanes` threads each. */
static void place_fragments(Simt *g, Side *side, uint32_t warps, uint32_t lanes, Val warp,
                            Val lane) {
    const Codegen *k = g->k;
    uint32_t per_thread = side->tile / (warps * lanes), most = SIMT_FRAGMENT_BYTES / g->acc_bytes;
    side->size = per_thread < most ? per_thread : most;
    side->n = per_thread / side->size;
    side->stride = lanes * side->size;
    Val at = k_muli(k, warp, side->tile / warps);
    Val in_warp = k_muli(k, lane, side->size);
    side->first = k_add(k, at, in_warp);
}

/* The position of a lane along m and n. Pairs of neighbouring lanes read the same lhs fragment, and
 * lanes two apart the same rhs fragment, so a 16-byte load of either takes two passes of shared
 * memory instead of four. */
static void place_lane(const Simt *g, Val lane, uint32_t lanes_n, Val *m, Val *n) {
    const Codegen *k = g->k;
    if (lanes_n == 1 || lanes_n == WARP_THREADS) {
        *m = k_udivi(k, lane, lanes_n);
        *n = k_uremi(k, lane, lanes_n);
        return;
    }
    Val one = k_i32(k, 1), half = k_i32(k, lanes_n / 2);
    Val low_m = k_and(k, lane, one);
    Val pair = k_lshr(k, lane, one);
    Val low_n = k_and(k, pair, one);
    Val rest = k_lshri(k, lane, 2);
    Val high_n = k_urem(k, rest, half);
    Val high_m = k_shl(k, k_udiv(k, rest, half), one);
    high_n = k_shl(k, high_n, one);
    *m = k_add(k, high_m, low_m);
    *n = k_add(k, high_n, low_n);
}

static Val place_thread(Simt *g) {
    const Codegen *k = g->k;
    const Sched *sched = g->sched;
    uint32_t lanes_m = simt_lanes_m(sched), lanes_n = WARP_THREADS / lanes_m;
    Val thread = g->block.thread;
    Val lane = k_andi(k, thread, WARP_THREADS - 1);
    Val warp = k_lshri(k, thread, 5);
    warp = k_uremi(k, warp, (int64_t)sched->gemm.warps_m * sched->gemm.warps_n);
    Val warp_m = k_udivi(k, warp, sched->gemm.warps_n);
    Val warp_n = k_uremi(k, warp, sched->gemm.warps_n);
    Val lane_m, lane_n;
    place_lane(g, lane, lanes_n, &lane_m, &lane_n);
    uint32_t computing = WARP_THREADS * sched->gemm.warps_m * sched->gemm.warps_n;
    if (computing < sched->threads) g->computes = k_ulti(k, thread, computing);
    place_fragments(g, &g->sides[0], sched->gemm.warps_m, lanes_m, warp_m, lane_m);
    place_fragments(g, &g->sides[1], sched->gemm.warps_n, lanes_n, warp_n, lane_n);
    return warp_m;
}

/* Lays out shared memory: the buffers, each with a tile of either operand. A part of the finished
 * tile later reuses the space. */
static void make_shared(Simt *g) {
    uint32_t bytes = 0;
    for (uint32_t i = 0; i < 2; i++) {
        Side *side = &g->sides[i];
        side->offset_bytes = bytes;
        bytes += side->pitch * g->sched->gemm.tile_k * g->acc_bytes;
        bytes = (bytes + SIMT_FRAGMENT_BYTES - 1) / SIMT_FRAGMENT_BYTES * SIMT_FRAGMENT_BYTES;
    }
    g->buffer_bytes = bytes;
    g->subtile_pitch = simt_subtile_pitch(g->sched, g->acc_bytes);
    uint32_t least = simt_subtile_bytes(g->sched, g->acc_bytes);
    bytes *= g->sched->gemm.stages;
    g->shared = gpu_tiles(g->lower, bytes > least ? bytes : least, SIMT_FRAGMENT_BYTES);
}

/* Two blocks of 256 threads, or four of 128, hide each other's latencies. This leaves 128 registers
 * per thread, enough for 64 accumulators, two rows of fragments and the loads in flight. More
 * accumulators need all registers of a thread; in f64 each takes two. */
static uint32_t blocks_wanted(const Simt *g) {
    uint32_t outputs = n_outputs(&g->sides[0]) * n_outputs(&g->sides[1]);
    bool is_full = outputs * g->acc_bytes / 4 > CODEGEN_SIMT_MANY_OUTPUTS;
    if (g->sched->threads >= 256) return is_full ? 1 : 2;
    return g->acc_bytes == 8 ? 3 : 4;
}

void emit_gpu_gemm_simt(Lower *lower) {
    const Reduce *reduce = &lower->kernel->reduces.data[0];
    Simt g = {.lower = lower,
              .k = lower->k,
              .sched = &lower->variant->sched,
              .block = gpu_gemm_block(lower),
              .acc = reduce->acc,
              .acc_bytes = dtype_bytes(reduce->acc)};
    g.sides[0] = (Side){.value = reduce->lhs,
                        .axis = gemm_axis_m(lower->kernel),
                        .tile = g.sched->gemm.tile_m,
                        .begin = g.block.m0,
                        .extent = g.block.m,
                        .pad = dtype_is_int(g.acc) ? 0 : -0.0};
    g.sides[1] = (Side){.value = reduce->rhs,
                        .axis = gemm_axis_n(lower->kernel),
                        .tile = g.sched->gemm.tile_n,
                        .begin = g.block.n0,
                        .extent = g.block.n};
    Val warp_m = place_thread(&g), sums[MAX_OUTPUTS];
    if (!lower->is_one_block) gpu_ask_for_blocks(lower, blocks_wanted(&g));
    for (uint32_t i = 0; i < 2; i++) simt_side_init(&g, &g.sides[i]);
    make_shared(&g);
    const ScalarId roots[2] = {reduce->lhs, reduce->rhs};
    gpu_gemm_prepare_batch(&g.block, roots, 2);
    for (uint32_t i = 0; i < 2; i++) simt_side_place(&g, &g.sides[i]);
    accumulate(&g, sums);
    finish(&g, sums, warp_m);
}
