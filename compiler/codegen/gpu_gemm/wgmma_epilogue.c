/* See wgmma_epilogue.h. */
#include "codegen/gpu_gemm/wgmma_epilogue.h"

#include <string.h>

enum { MAX_CARRIED = 8, MAX_LANES = 4 };

/* The tile as a GemmBlock of each kernel that shares the block. */
static GemmBlock *tiles_of_epilogues(const Wgmma *w, const GemmBlock *tile) {
    GemmBlock *tiles = arena_array(w->k->arena, GemmBlock, w->n_gemms);
    for (uint32_t p = 0; p < w->n_gemms; p++) {
        tiles[p] = *tile;
        if (p == 0) continue;
        tiles[p].lower = &w->lower[p];
        tiles[p].point = point_new(&w->lower[p], 1);
        memcpy(tiles[p].point.axis, tile->point.axis, sizeof tile->point.axis);
    }
    return tiles;
}

static void take_warp(const Wgmma *w, WgmmaEpilogue *d, Val warp) {
    const Codegen *k = w->k;
    Val at = k_muli(k, warp, w->epilogue_bytes);
    d->warp = warp;
    d->own = wgmma_at(w, k_addi(k, at, (int64_t)w->sched->gemm.stages * w->stage_bytes));
}

static WgmmaEpilogue epilogue_init(const Wgmma *w, const GemmBlock *tile) {
    const Codegen *k = w->k;
    bool is_whole = w->sched->gemm.store_warps > 0;
    Val lane = k_andi(k, w->thread, WARP_THREADS - 1);
    WgmmaEpilogue d = {.lanes = gpu_gemm_lanes(tile, MAX_LANES), .unroll = UINT32_MAX};
    d.tiles = tiles_of_epilogues(w, tile);
    for (uint32_t p = 0; p < w->n_gemms; p++) {
        uint32_t unroll = 2 * gpu_gemm_rows_at_once(&w->lower[p]);
        if (unroll < d.unroll) d.unroll = unroll;
    }
    if (d.lanes < MAX_LANES) d.lanes = 1;
    d.columns = wgmma_epilogue_columns(w->sched, d.lanes);
    d.step = wgmma_epilogue_step(d.columns, d.lanes);
    d.n_subtiles = w->sched->gemm.tile_n / d.columns;
    d.across = d.columns / d.lanes;
    take_warp(w, &d, w->warp);
    Val row = gpu_fragment_row(k, lane);
    Val column = gpu_fragment_column(k, lane);
    Val at = k_add(k, k_muli(k, row, wgmma_epilogue_pitch(w->sched, d.lanes)), column);
    d.place = k_gep(k, w->acc_type, d.own, at);
    d.first_row = k_i32(k, 0);
    if (d.across < WARP_THREADS) d.first_row = k_udivi(k, lane, d.across);
    Val works = k_ulti(k, d.first_row, d.step);
    Val none = k_i32(k, is_whole ? WGMMA_WARP_ROWS : WGMMA_EPILOGUE_ROWS);
    d.first_row = k_select(k, works, d.first_row, none);
    d.in_subtile = k_uremi(k, lane, d.across);
    d.in_subtile = k_muli(k, d.in_subtile, d.lanes);
    return d;
}

/* Prepares values that depend on this lane's columns of a part alone, for each kernel that shares
 * the block. */
static void subtile_columns(const Wgmma *w, const WgmmaEpilogue *d, Val subtile,
                            GemmColumn *columns) {
    const Codegen *k = w->k;
    Val first = k_madi(k, subtile, d->columns, d->in_subtile);
    for (uint32_t p = 0; p < w->n_gemms; p++) {
        columns[p] = gpu_gemm_column(&d->tiles[p], first, d->lanes);
        columns[p].in_subtile = d->in_subtile;
    }
}

static void put_results(const Wgmma *w, const WgmmaEpilogue *d, const Val *accs, uint32_t subtile,
                        uint32_t half) {
    for (uint32_t p = 0; p < w->n_gemms; p++) {
        uint32_t first = (p * w->sched->gemm.tile_n + subtile * d->columns) / FRAGMENT_COLUMNS;
        GemmFragments fragments = {.accs = accs + gpu_fragment_pair(0, 0, first, half),
                                   .n_m = 1,
                                   .n_n = d->columns / FRAGMENT_COLUMNS,
                                   .n_halves = 1,
                                   .column = p * d->columns,
                                   .acc = w->acc,
                                   .stored = w->acc};
        gpu_gemm_put_fragments(w->k, &fragments, d->place);
    }
}

/* Selects by a switch on `number` which accumulators are written, because registers cannot be
 * indexed. The loops around it then need one copy of the epilogue's code. */
static void choose_results(const Wgmma *w, const WgmmaEpilogue *d, Val number, const Val *accs) {
    const Codegen *k = w->k;
    LLVMBasicBlockRef after = k_block(k, "put");
    LLVMBasicBlockRef from = k_here(k);
    uint32_t n = d->n_subtiles * 2;
    LLVMBasicBlockRef *cases = arena_array(k->arena, LLVMBasicBlockRef, n);
    for (uint32_t i = 0; i < n; i++) {
        cases[i] = k_block(k, "part");
        k_goto(k, cases[i]);
        put_results(w, d, accs, i / 2, i % 2);
        k_br(k, after);
    }
    k_goto(k, from);
    Val choice = k_switch(k, number, cases[0], n);
    for (uint32_t i = 1; i < n; i++) LLVMAddCase(choice, k_i32(k, i), cases[i]);
    k_goto(k, after);
}

/* The first row (index_type) of a half of the warp's rows in the tile. */
static Val first_of_half(const Wgmma *w, const WgmmaEpilogue *d, Val half) {
    const Codegen *k = w->k;
    Val row = k_add(k, k_shli(k, d->warp, 1), half);
    row = k_muli(k, row, WGMMA_EPILOGUE_ROWS);
    return gpu_index(w->lower, row);
}

/* The rows of one half (i32) of a part; their results will be in `results`. n_next (i32) rows of
 * the part are stored next; NULL: none. */
static GemmRows rows_of_half(const Wgmma *w, const WgmmaEpilogue *d, Val half, Val n_next,
                             GemmEpilogue *epilogues, GemmSubtile *results) {
    Val m0 = k_add(w->k, d->tiles->m0, first_of_half(w, d, half));
    for (uint32_t p = 0; p < w->n_gemms; p++) epilogues[p].block.m0 = m0;
    *results = (GemmSubtile){.shared = d->own,
                             .pitch = wgmma_epilogue_pitch(w->sched, d->lanes),
                             .n_rows = WGMMA_EPILOGUE_ROWS,
                             .n_columns = d->columns,
                             .run = WGMMA_EPILOGUE_ROWS,
                             .run_stride = WGMMA_EPILOGUE_ROWS,
                             .n_next = n_next};
    return gpu_gemm_rows(epilogues, w->n_gemms, results, d->first_row, d->step, d->unroll);
}

static void epilogues_of_subtile(const Wgmma *w, const WgmmaEpilogue *d, const GemmColumn *columns,
                                 GemmEpilogue *epilogues) {
    for (uint32_t p = 0; p < w->n_gemms; p++)
        epilogues[p] = (GemmEpilogue){.block = d->tiles[p], .column = columns[p]};
    gpu_gemm_load_early(epilogues, w->n_gemms);
}

/* Writes the accumulators of one half of a part to the warp's buffer. */
static void put_half(const Wgmma *w, const WgmmaEpilogue *d, Val subtile, Val half,
                     const Val *accs) {
    Val number = k_shli(w->k, subtile, 1);
    choose_results(w, d, k_or(w->k, number, half), accs);
    gpu_warp_barrier(w->k);
}

static Loop each_half(const Wgmma *w) {
    return loop_over(w->k, k_i32(w->k, 2), 1);
}

static Loop each_subtile(const Wgmma *w, const WgmmaEpilogue *d) {
    return loop_over(w->k, k_i32(w->k, d->n_subtiles), 1);
}

/* Stores one half of the warp's rows. */
static void epilogue_half(const Wgmma *w, const WgmmaEpilogue *d, Val subtile, Val half,
                          const GemmColumn *columns, const Val *accs) {
    Val early[GEMM_MAX_EARLY_VALUES];
    GemmEpilogue epilogues[WGMMA_MAX_GEMMS];
    GemmSubtile results;
    epilogues_of_subtile(w, d, columns, epilogues);
    GemmRows rows = rows_of_half(w, d, half, NULL, epilogues, &results);
    gpu_gemm_begin_rows(&rows, early);
    put_half(w, d, subtile, half, accs);
    gpu_gemm_epilogue_rows(&rows, early);
    gpu_warp_barrier(w->k);
}

/* Stores both halves; each starts the loads of the next. */
static void epilogue_subtile(const Wgmma *w, const WgmmaEpilogue *d, Val subtile,
                             const GemmColumn *columns, const Val *accs) {
    const Codegen *k = w->k;
    Val early[GEMM_MAX_EARLY_VALUES], all = k_i32(k, WGMMA_EPILOGUE_ROWS);
    GemmEpilogue epilogues[WGMMA_MAX_GEMMS];
    GemmSubtile results;
    epilogues_of_subtile(w, d, columns, epilogues);
    GemmRows rows = rows_of_half(w, d, k_i32(k, 0), all, epilogues, &results);
    uint32_t n_early = gpu_gemm_begin_rows(&rows, early);
    Loop halves = each_half(w);
    loop_carry(k, &halves, early, n_early);
    put_half(w, d, subtile, halves.index, accs);
    Val left = k_sub(k, k_i32(k, 1), halves.index);
    Val n_next = k_mul(k, left, all);
    rows = rows_of_half(w, d, halves.index, n_next, epilogues, &results);
    gpu_gemm_epilogue_rows(&rows, early);
    gpu_warp_barrier(w->k);
    loop_end(k, &halves);
}

/* Stores all rows of the warp, whose results are in shared memory. */
static void epilogue_whole_subtile(const Wgmma *w, const WgmmaEpilogue *d, Val subtile,
                                   const GemmColumn *columns) {
    const Codegen *k = w->k;
    Val early[GEMM_MAX_EARLY_VALUES];
    GemmEpilogue epilogues[WGMMA_MAX_GEMMS];
    Val m0 = k_add(k, d->tiles->m0, first_of_half(w, d, k_i32(k, 0)));
    epilogues_of_subtile(w, d, columns, epilogues);
    for (uint32_t p = 0; p < w->n_gemms; p++) epilogues[p].block.m0 = m0;
    Val at = k_muli(k, subtile, (int64_t)d->columns * 2);
    GemmSubtile results = {.shared = k_byte(k, d->own, at),
                           .pitch = wgmma_results_pitch(w->sched),
                           .n_rows = WGMMA_WARP_ROWS,
                           .n_columns = d->columns,
                           .between = w->sched->gemm.tile_n,
                           .is_rounded = true,
                           .run = WGMMA_WARP_ROWS,
                           .run_stride = WGMMA_WARP_ROWS};
    GemmRows rows =
        gpu_gemm_rows(epilogues, w->n_gemms, &results, d->first_row, d->step, d->unroll);
    gpu_gemm_begin_rows(&rows, early);
    gpu_gemm_epilogue_rows(&rows, early);
}

static void epilogue_subtile_of(const Wgmma *w, const WgmmaEpilogue *d, Val subtile,
                                const GemmColumn *columns, const Val *accs) {
    if (accs)
        epilogue_subtile(w, d, subtile, columns, accs);
    else
        epilogue_whole_subtile(w, d, subtile, columns);
}

/* The number of values of all kernels' columns that vary with the column. `loop` carries them, if
 * it is not NULL. */
static uint32_t carry_columns(const Wgmma *w, const WgmmaEpilogue *d, GemmColumn *columns,
                              Loop *loop) {
    uint32_t n = 0;
    for (uint32_t p = 0; p < w->n_gemms; p++)
        n += gpu_gemm_carry_column(&d->tiles[p], &columns[p], loop);
    return n;
}

/* Stores a tile part by part. `columns` of the first part were prepared while the last
 * multiplications ran. Likewise each part's columns are prepared while the part before is stored,
 * unless this needs too many registers. `accs` NULL: the results are in shared memory. */
static void epilogue_tile(const Wgmma *w, const WgmmaEpilogue *d, GemmColumn *columns,
                          const Val *accs) {
    const Codegen *k = w->k;
    Val last = k_i32(k, (int64_t)d->n_subtiles - 1);
    if (d->n_subtiles == 1) {
        epilogue_subtile_of(w, d, k_i32(k, 0), columns, accs);
        return;
    }
    GemmColumn ahead[WGMMA_MAX_GEMMS];
    uint32_t n = carry_columns(w, d, columns, NULL);
    Loop subtiles = each_subtile(w, d);
    if (n > MAX_CARRIED) {
        subtile_columns(w, d, subtiles.index, columns);
        epilogue_subtile_of(w, d, subtiles.index, columns, accs);
        loop_end(k, &subtiles);
        return;
    }
    carry_columns(w, d, columns, &subtiles);
    Val next = k_addi(k, subtiles.index, 1);
    next = k_select(k, k_eq(k, subtiles.index, last), last, next);
    subtile_columns(w, d, next, ahead);
    epilogue_subtile_of(w, d, subtiles.index, columns, accs);
    for (uint32_t p = 0; p < w->n_gemms; p++)
        gpu_gemm_move_column(&d->tiles[p], &columns[p], &ahead[p]);
    loop_end(k, &subtiles);
}

void wgmma_epilogue_results(const Wgmma *w, WgmmaEpilogue epilogue, Val warp) {
    GemmColumn columns[WGMMA_MAX_GEMMS];
    take_warp(w, &epilogue, warp);
    subtile_columns(w, &epilogue, k_i32(w->k, 0), columns);
    epilogue_tile(w, &epilogue, columns, NULL);
}

/* The row kernel that follows. */

void wgmma_take_smem(const Wgmma *w, Lower *lower) {
    const Codegen *k = w->k;
    Smem *own = arena_array(k->arena, Smem, lower->kernel->args.n);
    for (uint32_t i = 0; i < lower->kernel->args.n; i++) {
        own[i] = lower->smem[i];
        if (!own[i].base) continue;
        Dtype dtype = lower->plan->buffers.data[lower->kernel->args.data[i]].dtype;
        Val at = k_muli(k, w->warp, (int64_t)WGMMA_EPILOGUE_ROWS * dtype_bytes(dtype));
        Val pitch = k_index_cast(k, lower_dim(lower, own[i].pitch), k->i32);
        own[i].base = k_byte(k, own[i].base, k_mul(k, at, pitch));
    }
    lower->smem = own;
}

/* Stores one half of the warp's rows with all columns, then runs the row kernel on them. The warp
 * works alone, so no warp waits for another. */
static void epilogue_rows(const Wgmma *w, const WgmmaEpilogue *d, const Val *accs) {
    const Codegen *k = w->k;
    BlockTile *tile = w->lower->tile;
    GemmColumn columns[WGMMA_MAX_GEMMS];
    Loop halves = each_half(w);
    GemmBlock block = *d->tiles;
    block.m0 = k_add(k, block.m0, first_of_half(w, d, halves.index));
    *tile = gpu_gemm_tile(&block);
    tile->n_rows = WGMMA_EPILOGUE_ROWS;
    tile->is_warps = true;
    If some = if_begin(k, k_ult(k, block.m0, block.m));
    Loop subtiles = each_subtile(w, d);
    subtile_columns(w, d, subtiles.index, columns);
    epilogue_half(w, d, subtiles.index, halves.index, columns, accs);
    loop_end(k, &subtiles);
    w->lower->k->overlaps_quotients = false;
    emit_gpu_row(w->lower->rows);
    w->lower->k->overlaps_quotients = true;
    gpu_warp_barrier(w->k);
    if_end(k, &some);
    loop_end(k, &halves);
}

WgmmaEpilogue wgmma_begin_epilogue(Wgmma *w, Val number) {
    wgmma_take_pointers(w, wgmma_kernel_of_tile(w, &number));
    GemmBlock tile = wgmma_tile_at(w, number);
    return epilogue_init(w, &tile);
}

void wgmma_epilogue_sums(const Wgmma *w, const WgmmaEpilogue *epilogue, const Val *accs) {
    Val sums[WGMMA_MAX_ACCUMULATORS];
    GemmColumn columns[WGMMA_MAX_GEMMS];
    subtile_columns(w, epilogue, k_i32(w->k, 0), columns);
    for (uint32_t i = 0; i < w->width / 2; i++) sums[i] = k_load(w->k, w->acc_type, accs[i]);
    epilogue_tile(w, epilogue, columns, sums);
}

/* Prepares the first part while the last multiplications run, then stores their results. */
void wgmma_end_epilogue(const Wgmma *w, const WgmmaEpilogue *epilogue, Val last_stage,
                        const Val *accs) {
    Val sums[WGMMA_MAX_ACCUMULATORS];
    GemmColumn columns[WGMMA_MAX_GEMMS];
    if (!w->lower->rows) subtile_columns(w, epilogue, k_i32(w->k, 0), columns);
    wgmma_finish(w, accs);
    for (uint32_t i = 0; i < w->width / 2; i++) sums[i] = k_load(w->k, w->acc_type, accs[i]);
    wgmma_release(w, last_stage, NULL);
    if (w->lower->rows)
        epilogue_rows(w, epilogue, sums);
    else
        epilogue_tile(w, epilogue, columns, sums);
}
