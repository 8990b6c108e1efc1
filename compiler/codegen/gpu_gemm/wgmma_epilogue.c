/* See wgmma_epilogue.h. */
#include "codegen/gpu_gemm/wgmma_epilogue.h"

#include <string.h>

enum { MAX_CARRIED = 8, MAX_LANES = 4 };

/* The same tile to the kernel of each phase. */
static GemmBlock *tiles_of_phases(const Wgmma *w, const GemmBlock *tile) {
    GemmBlock *tiles = arena_array(w->unit->arena, GemmBlock, w->n_products);
    for (uint32_t p = 0; p < w->n_products; p++) {
        tiles[p] = *tile;
        if (p == 0) continue;
        tiles[p].lower = &w->lower[p];
        tiles[p].point = point_new(&w->lower[p], 1);
        memcpy(tiles[p].point.axis, tile->point.axis, sizeof tile->point.axis);
    }
    return tiles;
}

static void take_warp(const Wgmma *w, WgmmaEpilogue *d, LLVMValueRef warp) {
    LLVMBuilderRef builder = w->unit->builder;
    LLVMValueRef at = LLVMBuildMul(builder, warp, unit_i32(w->unit, w->epilogue_bytes), "");
    LLVMValueRef begin = unit_i32(w->unit, (int64_t)w->sched->stages * w->stage_bytes);
    d->warp = warp;
    d->own = wgmma_at(w, LLVMBuildAdd(builder, at, begin, ""));
}

/* Accumulators 4j + 2h and the next of a thread are columns 8j + 2t and the next of row g + 8h,
 * where g is the lane's number / 4 and t the rest. */
static WgmmaEpilogue epilogue_init(const Wgmma *w, const GemmBlock *tile) {
    LLVMBuilderRef builder = w->unit->builder;
    bool is_whole = w->sched->store_warps > 0;
    LLVMValueRef lane = LLVMBuildAnd(builder, w->thread, unit_i32(w->unit, WARP - 1), "");
    WgmmaEpilogue d = {.lanes = gpu_gemm_lanes(tile, MAX_LANES), .unroll = UINT32_MAX};
    d.tiles = tiles_of_phases(w, tile);
    for (uint32_t p = 0; p < w->n_products; p++) {
        uint32_t unroll = 2 * gpu_gemm_rows_at_once(&w->lower[p]);
        if (unroll < d.unroll) d.unroll = unroll;
    }
    if (d.lanes < MAX_LANES) d.lanes = 1;
    d.columns = wgmma_epilogue_columns(w->sched, d.lanes);
    d.step = wgmma_epilogue_step(d.columns, d.lanes);
    d.n_parts = w->sched->tile_n / d.columns;
    d.across = d.columns / d.lanes;
    take_warp(w, &d, w->warp);
    LLVMValueRef pitch = unit_i32(w->unit, wgmma_epilogue_pitch(w->sched, d.lanes));
    LLVMValueRef row = LLVMBuildLShr(builder, lane, unit_i32(w->unit, 2), "");
    LLVMValueRef column = LLVMBuildAnd(builder, lane, unit_i32(w->unit, 3), "");
    column = LLVMBuildShl(builder, column, unit_i32(w->unit, 1), "");
    LLVMValueRef at = LLVMBuildAdd(builder, LLVMBuildMul(builder, row, pitch, ""), column, "");
    d.place = gpu_shared_at(w->unit, d.own, w->unit->f32, at);
    d.first_row = unit_i32(w->unit, 0);
    if (d.across < WARP)
        d.first_row = LLVMBuildUDiv(builder, lane, unit_i32(w->unit, d.across), "");
    LLVMValueRef works =
        LLVMBuildICmp(builder, LLVMIntULT, d.first_row, unit_i32(w->unit, d.step), "");
    LLVMValueRef none = unit_i32(w->unit, is_whole ? WGMMA_WARP_ROWS : WGMMA_DRAIN_ROWS);
    d.first_row = LLVMBuildSelect(builder, works, d.first_row, none, "");
    d.in_part = LLVMBuildURem(builder, lane, unit_i32(w->unit, d.across), "");
    d.in_part = LLVMBuildMul(builder, d.in_part, unit_i32(w->unit, d.lanes), "");
    return d;
}

/* What depends on this lane's columns of a part alone, in each phase. */
static void part_columns(const Wgmma *w, const WgmmaEpilogue *d, LLVMValueRef part,
                         GemmColumn *columns) {
    LLVMBuilderRef builder = w->unit->builder;
    LLVMValueRef first = LLVMBuildMul(builder, part, unit_i32(w->unit, d->columns), "");
    first = LLVMBuildAdd(builder, first, d->in_part, "");
    for (uint32_t p = 0; p < w->n_products; p++) {
        columns[p] = gpu_gemm_column(&d->tiles[p], first, d->lanes);
        columns[p].in_part = d->in_part;
    }
}

static void put_results(const Wgmma *w, const WgmmaEpilogue *d, const LLVMValueRef *accs,
                        uint32_t part, uint32_t half) {
    const Unit *unit = w->unit;
    LLVMBuilderRef builder = unit->builder;
    LLVMValueRef poison = LLVMGetPoison(LLVMVectorType(unit->f32, 2));
    for (uint32_t i = 0; i < w->n_products * d->columns / 8; i++) {
        uint32_t product = i / (d->columns / 8), column = i % (d->columns / 8);
        column += (product * w->sched->tile_n + part * d->columns) / 8;
        const LLVMValueRef *sums = accs + column * 4 + half * 2;
        LLVMValueRef pair = LLVMBuildInsertElement(builder, poison, sums[0], unit_i32(unit, 0), "");
        pair = LLVMBuildInsertElement(builder, pair, sums[1], unit_i32(unit, 1), "");
        LLVMValueRef at = gpu_shared_at(unit, d->place, unit->f32, unit_i32(unit, (int64_t)i * 8));
        LLVMSetAlignment(LLVMBuildStore(builder, pair, at), 8);
    }
}

/* Chooses by number which accumulators are stored: a thread's registers have no index, and the
 * loops around keep the epilogue's code to one copy. */
static void choose_results(const Wgmma *w, const WgmmaEpilogue *d, LLVMValueRef number,
                           const LLVMValueRef *accs) {
    const Unit *unit = w->unit;
    LLVMBasicBlockRef after = unit_block(unit, w->lower->function, "put");
    LLVMBasicBlockRef from = unit_here(unit);
    uint32_t n = d->n_parts * 2;
    LLVMBasicBlockRef *cases = arena_array(unit->arena, LLVMBasicBlockRef, n);
    for (uint32_t i = 0; i < n; i++) {
        cases[i] = unit_block(unit, w->lower->function, "part");
        unit_goto(unit, cases[i]);
        put_results(w, d, accs, i / 2, i % 2);
        LLVMBuildBr(unit->builder, after);
    }
    unit_goto(unit, from);
    LLVMValueRef choice = LLVMBuildSwitch(unit->builder, number, cases[0], n);
    for (uint32_t i = 1; i < n; i++) LLVMAddCase(choice, unit_i32(unit, i), cases[i]);
    unit_goto(unit, after);
}

/* Where the warp's half begins in the tile: index_type. */
static LLVMValueRef first_of_half(const Wgmma *w, const WgmmaEpilogue *d, LLVMValueRef half) {
    LLVMBuilderRef builder = w->unit->builder;
    LLVMValueRef row = LLVMBuildShl(builder, d->warp, unit_i32(w->unit, 1), "");
    row = LLVMBuildAdd(builder, row, half, "");
    row = LLVMBuildMul(builder, row, unit_i32(w->unit, WGMMA_DRAIN_ROWS), "");
    return gpu_index(w->lower, row);
}

static void warp_barrier(const Wgmma *w) {
    LLVMValueRef all = unit_i32(w->unit, -1);
    unit_intrinsic(w->unit, "llvm.nvvm.bar.warp.sync", NULL, 0, &all, 1);
}

/* The rows of a half (i32) of a part, whose results will lie in `results`; so many rows (i32; NULL:
 * none) of the part are drained next. */
static GemmRows rows_of_half(const Wgmma *w, const WgmmaEpilogue *d, LLVMValueRef half,
                             LLVMValueRef n_next, GemmPhase *phases, GemmPart *results) {
    LLVMValueRef m0 = LLVMBuildAdd(w->unit->builder, d->tiles->m0, first_of_half(w, d, half), "");
    for (uint32_t p = 0; p < w->n_products; p++) phases[p].block.m0 = m0;
    *results = (GemmPart){.shared = d->own,
                          .pitch = wgmma_epilogue_pitch(w->sched, d->lanes),
                          .n_rows = WGMMA_DRAIN_ROWS,
                          .n_columns = d->columns,
                          .run = WGMMA_DRAIN_ROWS,
                          .run_stride = WGMMA_DRAIN_ROWS,
                          .n_next = n_next};
    return gpu_gemm_rows(phases, w->n_products, results, d->first_row, d->step, d->unroll);
}

static void phases_of_part(const Wgmma *w, const WgmmaEpilogue *d, const GemmColumn *columns,
                           GemmPhase *phases) {
    for (uint32_t p = 0; p < w->n_products; p++)
        phases[p] = (GemmPhase){.block = d->tiles[p], .column = columns[p]};
    gpu_gemm_load_early(phases, w->n_products);
}

/* The accumulators of a half of a part, for all lanes of the warp to read. */
static void put_half(const Wgmma *w, const WgmmaEpilogue *d, LLVMValueRef part, LLVMValueRef half,
                     const LLVMValueRef *accs) {
    LLVMValueRef number = LLVMBuildShl(w->unit->builder, part, unit_i32(w->unit, 1), "");
    choose_results(w, d, LLVMBuildOr(w->unit->builder, number, half, ""), accs);
    warp_barrier(w);
}

static Loop each_half(const Wgmma *w) {
    return loop_begin(w->unit, w->lower->function, unit_i32(w->unit, 0), unit_i32(w->unit, 2),
                      unit_i32(w->unit, 1));
}

static Loop each_part(const Wgmma *w, const WgmmaEpilogue *d) {
    return loop_begin(w->unit, w->lower->function, unit_i32(w->unit, 0),
                      unit_i32(w->unit, d->n_parts), unit_i32(w->unit, 1));
}

/* A half of the warp's rows. */
static void epilogue_half(const Wgmma *w, const WgmmaEpilogue *d, LLVMValueRef part,
                          LLVMValueRef half, const GemmColumn *columns, const LLVMValueRef *accs) {
    LLVMValueRef early[GEMM_MAX_EARLY_VALUES];
    GemmPhase phases[WGMMA_MAX_PRODUCTS];
    GemmPart results;
    phases_of_part(w, d, columns, phases);
    GemmRows rows = rows_of_half(w, d, half, NULL, phases, &results);
    gpu_gemm_begin_rows(&rows, early);
    put_half(w, d, part, half, accs);
    gpu_gemm_epilogue_rows(&rows, early);
    warp_barrier(w);
}

/* Both halves; each loads ahead for the next. */
static void epilogue_part(const Wgmma *w, const WgmmaEpilogue *d, LLVMValueRef part,
                          const GemmColumn *columns, const LLVMValueRef *accs) {
    const Unit *unit = w->unit;
    LLVMValueRef early[GEMM_MAX_EARLY_VALUES], all = unit_i32(unit, WGMMA_DRAIN_ROWS);
    GemmPhase phases[WGMMA_MAX_PRODUCTS];
    GemmPart results;
    phases_of_part(w, d, columns, phases);
    GemmRows rows = rows_of_half(w, d, unit_i32(unit, 0), all, phases, &results);
    uint32_t n_early = gpu_gemm_begin_rows(&rows, early);
    Loop halves = each_half(w);
    loop_carry(unit, &halves, early, n_early);
    put_half(w, d, part, halves.index, accs);
    LLVMValueRef left = LLVMBuildSub(unit->builder, unit_i32(unit, 1), halves.index, "");
    LLVMValueRef n_next = LLVMBuildMul(unit->builder, left, all, "");
    rows = rows_of_half(w, d, halves.index, n_next, phases, &results);
    gpu_gemm_epilogue_rows(&rows, early);
    warp_barrier(w);
    loop_end_carry(unit, &halves, early, n_early);
}

/* All rows of the warp, from where they lie on chip. */
static void epilogue_whole_part(const Wgmma *w, const WgmmaEpilogue *d, LLVMValueRef part,
                                const GemmColumn *columns) {
    const Unit *unit = w->unit;
    LLVMValueRef early[GEMM_MAX_EARLY_VALUES];
    GemmPhase phases[WGMMA_MAX_PRODUCTS];
    LLVMValueRef m0 =
        LLVMBuildAdd(unit->builder, d->tiles->m0, first_of_half(w, d, unit_i32(w->unit, 0)), "");
    phases_of_part(w, d, columns, phases);
    for (uint32_t p = 0; p < w->n_products; p++) phases[p].block.m0 = m0;
    LLVMValueRef at =
        LLVMBuildMul(unit->builder, part, unit_i32(w->unit, (int64_t)d->columns * 2), "");
    GemmPart results = {.shared = gpu_shared_at(unit, d->own, unit->i8, at),
                        .pitch = wgmma_results_pitch(w->sched),
                        .n_rows = WGMMA_WARP_ROWS,
                        .n_columns = d->columns,
                        .between = w->sched->tile_n,
                        .is_rounded = true,
                        .run = WGMMA_WARP_ROWS,
                        .run_stride = WGMMA_WARP_ROWS};
    GemmRows rows =
        gpu_gemm_rows(phases, w->n_products, &results, d->first_row, d->step, d->unroll);
    gpu_gemm_begin_rows(&rows, early);
    gpu_gemm_epilogue_rows(&rows, early);
}

static void epilogue_part_of(const Wgmma *w, const WgmmaEpilogue *d, LLVMValueRef part,
                             const GemmColumn *columns, const LLVMValueRef *accs) {
    if (accs)
        epilogue_part(w, d, part, columns, accs);
    else
        epilogue_whole_part(w, d, part, columns);
}

/* The values of all phases' columns that vary with the column; the first MAX_CARRIED of them. */
static uint32_t columns_values(const Wgmma *w, const WgmmaEpilogue *d, const GemmColumn *columns,
                               LLVMValueRef *values) {
    uint32_t n = 0;
    for (uint32_t p = 0; p < w->n_products; p++) {
        uint32_t used = n < MAX_CARRIED ? n : MAX_CARRIED;
        n += gpu_gemm_column_values(&d->tiles[p], &columns[p], values + used, MAX_CARRIED - used);
    }
    return n;
}

/* The columns with those values replaced. */
static void columns_with(const Wgmma *w, const WgmmaEpilogue *d, const GemmColumn *columns,
                         const LLVMValueRef *values, GemmColumn *with) {
    for (uint32_t p = 0; p < w->n_products; p++) {
        with[p] = gpu_gemm_column_with(&d->tiles[p], &columns[p], values);
        values += gpu_gemm_column_values(&d->tiles[p], &columns[p], NULL, 0);
    }
}

/* `first` was prepared while the last multiplications ran; likewise each next part's columns are
 * while the one before is stored, unless they would take too many registers. Without `accs` the
 * results lie on chip. */
static void epilogue_tile(const Wgmma *w, const WgmmaEpilogue *d, const GemmColumn *first,
                          const LLVMValueRef *accs) {
    const Unit *unit = w->unit;
    LLVMBuilderRef builder = unit->builder;
    LLVMValueRef values[MAX_CARRIED], last = unit_i32(unit, (int64_t)d->n_parts - 1);
    if (d->n_parts == 1) {
        epilogue_part_of(w, d, unit_i32(w->unit, 0), first, accs);
        return;
    }
    GemmColumn ahead[WGMMA_MAX_PRODUCTS], columns[WGMMA_MAX_PRODUCTS];
    uint32_t n = columns_values(w, d, first, values);
    Loop parts = each_part(w, d);
    if (n > MAX_CARRIED) {
        part_columns(w, d, parts.index, columns);
        epilogue_part_of(w, d, parts.index, columns, accs);
        loop_end(unit, &parts);
        return;
    }
    loop_carry(unit, &parts, values, n);
    LLVMValueRef next = LLVMBuildAdd(builder, parts.index, unit_i32(unit, 1), "");
    LLVMValueRef is_last = LLVMBuildICmp(builder, LLVMIntEQ, parts.index, last, "");
    next = LLVMBuildSelect(builder, is_last, last, next, "");
    part_columns(w, d, next, ahead);
    columns_with(w, d, first, values, columns);
    epilogue_part_of(w, d, parts.index, columns, accs);
    columns_values(w, d, ahead, values);
    loop_end_carry(unit, &parts, values, n);
}

void wgmma_epilogue_results(const Wgmma *w, WgmmaEpilogue epilogue, LLVMValueRef warp) {
    GemmColumn columns[WGMMA_MAX_PRODUCTS];
    take_warp(w, &epilogue, warp);
    part_columns(w, &epilogue, unit_i32(w->unit, 0), columns);
    epilogue_tile(w, &epilogue, columns, NULL);
}

/* Rows that follow. */

void wgmma_take_chips(const Wgmma *w, Lower *lower) {
    const Unit *unit = w->unit;
    Smem *own = arena_array(unit->arena, Smem, lower->kernel->args.n);
    for (uint32_t i = 0; i < lower->kernel->args.n; i++) {
        own[i] = lower->chips[i];
        if (!own[i].base) continue;
        Dtype dtype = lower->plan->buffers.data[lower->kernel->args.data[i]].dtype;
        LLVMValueRef at =
            LLVMBuildMul(unit->builder, w->warp,
                         unit_i32(unit, (int64_t)WGMMA_DRAIN_ROWS * dtype_bytes(dtype)), "");
        LLVMValueRef pitch = unit_index_cast(unit, lower_dim(lower, own[i].pitch), unit->i32);
        own[i].base =
            gpu_shared_at(unit, own[i].base, unit->i8, LLVMBuildMul(unit->builder, at, pitch, ""));
    }
    lower->chips = own;
}

/* A half of the warp's rows, all columns, then what follows for these rows: by the warp alone, so
 * that no warp waits for another. */
static void epilogue_rows(const Wgmma *w, const WgmmaEpilogue *d, const LLVMValueRef *accs) {
    Unit *unit = w->unit;
    BlockTile *tile = w->lower->tile;
    GemmColumn columns[WGMMA_MAX_PRODUCTS];
    Loop halves = each_half(w);
    GemmBlock block = *d->tiles;
    block.m0 = LLVMBuildAdd(unit->builder, block.m0, first_of_half(w, d, halves.index), "");
    *tile = gpu_gemm_tile(&block);
    tile->n_rows = WGMMA_DRAIN_ROWS;
    tile->is_warps = true;
    LLVMValueRef exist = LLVMBuildICmp(unit->builder, LLVMIntULT, block.m0, block.m, "");
    If some = if_begin(unit, w->lower->function, exist);
    Loop parts = each_part(w, d);
    part_columns(w, d, parts.index, columns);
    epilogue_half(w, d, parts.index, halves.index, columns, accs);
    loop_end(unit, &parts);
    unit->math.overlaps_quotients = false;
    template_gpu_row(w->lower->rows);
    unit->math.overlaps_quotients = true;
    warp_barrier(w);
    if_end(unit, &some);
    loop_end(unit, &halves);
}

WgmmaEpilogue wgmma_begin_epilogue(Wgmma *w, LLVMValueRef number) {
    wgmma_take_pointers(w, wgmma_part_of_tile(w, &number));
    GemmBlock tile = wgmma_tile_at(w, number);
    return epilogue_init(w, &tile);
}

/* While the last multiplications run, and then with their results. */
void wgmma_end_epilogue(const Wgmma *w, const WgmmaEpilogue *epilogue, LLVMValueRef last_stage,
                        const LLVMValueRef *accs) {
    LLVMValueRef sums[WGMMA_MAX_ACCUMULATORS];
    GemmColumn columns[WGMMA_MAX_PRODUCTS];
    if (!w->lower->rows) part_columns(w, epilogue, unit_i32(w->unit, 0), columns);
    wgmma_finish(w, accs);
    for (uint32_t i = 0; i < w->width / 2; i++)
        sums[i] = LLVMBuildLoad2(w->unit->builder, w->unit->f32, accs[i], "");
    wgmma_release(w, last_stage, NULL);
    if (w->lower->rows)
        epilogue_rows(w, epilogue, sums);
    else
        epilogue_tile(w, epilogue, columns, sums);
}
