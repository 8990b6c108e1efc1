/* Results that lie on chip whole, and the warps that store them. See wgmma_epilogue.h. */
#include "codegen/gpu_gemm/wgmma_epilogue.h"

static void arrive(const Wgmma *w, LLVMValueRef barrier) {
    const Unit *unit = w->unit;
    LLVMBuilderRef builder = unit->builder;
    LLVMValueRef all = unit_i32(w->unit, -1), args[2] = {barrier, unit_i32(w->unit, 1)};
    unit_intrinsic(unit, "llvm.nvvm.bar.warp.sync", NULL, 0, &all, 1);
    LLVMValueRef lane = LLVMBuildAnd(builder, w->thread, unit_i32(w->unit, WARP - 1), "");
    LLVMValueRef is_first = LLVMBuildICmp(builder, LLVMIntEQ, lane, unit_i32(w->unit, 0), "");
    If first = if_begin(unit, w->lower->function, is_first);
    unit_intrinsic(unit, "llvm.nvvm.mbarrier.arrive.scope.cta.space.cta", NULL, 0, args, 2);
    if_end(unit, &first);
}

/* Accumulators 4j + 2h and the next of a thread are columns 8j + 2t and the next of row g + 8h,
 * where g is the lane's number / 4 and t the rest; see wgmma_results_pitch. */
static void put_results(const Wgmma *w, const LLVMValueRef *accs) {
    const Unit *unit = w->unit;
    LLVMBuilderRef builder = unit->builder;
    const Reduce *reduce = &w->lower->kernel->reduces.data[0];
    uint32_t pitch = wgmma_results_pitch(w->sched), n = w->width / 4;
    LLVMValueRef lane = LLVMBuildAnd(builder, w->thread, unit_i32(w->unit, WARP - 1), "");
    LLVMValueRef row = LLVMBuildLShr(builder, lane, unit_i32(w->unit, 2), "");
    LLVMValueRef column = LLVMBuildAnd(builder, lane, unit_i32(w->unit, 3), "");
    LLVMValueRef at = LLVMBuildMul(builder, row, unit_i32(w->unit, (int64_t)pitch * 2), "");
    column = LLVMBuildShl(builder, column, unit_i32(w->unit, 2), "");
    at = LLVMBuildAdd(builder, at, column, "");
    LLVMValueRef own = LLVMBuildMul(builder, w->warp, unit_i32(w->unit, w->epilogue_bytes), "");
    at = LLVMBuildAdd(builder, at, own, "");
    int64_t begin = (int64_t)w->sched->stages * w->stage_bytes;
    LLVMValueRef place = wgmma_at(w, LLVMBuildAdd(builder, at, unit_i32(w->unit, begin), ""));
    LLVMValueRef poison = LLVMGetPoison(LLVMVectorType(unit->f32, 2));
    for (uint32_t i = 0; i < n; i++) {
        const LLVMValueRef *sums = accs + (size_t)i * 2;
        LLVMValueRef pair =
            LLVMBuildInsertElement(builder, poison, sums[0], unit_i32(w->unit, 0), "");
        pair = LLVMBuildInsertElement(builder, pair, sums[1], unit_i32(w->unit, 1), "");
        pair = convert_value(&w->unit->math, pair, unit_convert_type(reduce->acc),
                             unit_convert_type(reduce->result));
        int64_t bytes = (int64_t)(i / 2) * 16 + (int64_t)(i % 2) * WGMMA_DRAIN_ROWS * pitch * 2;
        LLVMValueRef pointer = gpu_shared_at(unit, place, unit->i8, unit_i32(w->unit, bytes));
        LLVMSetAlignment(LLVMBuildStore(builder, pair, pointer), 4);
    }
}

/* Whether the block has a tile after this one. */
static LLVMValueRef is_more(const Wgmma *w, const Loop *tiles) {
    LLVMBuilderRef builder = w->unit->builder;
    LLVMValueRef next = LLVMBuildAdd(builder, tiles->index, tiles->step, "");
    return LLVMBuildICmp(builder, LLVMIntSLT, next, tiles->to, "");
}

static LLVMValueRef next_turn(const Wgmma *w, LLVMValueRef turn, LLVMValueRef is_handed) {
    LLVMBuilderRef builder = w->unit->builder;
    return LLVMBuildXor(builder, turn, LLVMBuildZExt(builder, is_handed, w->unit->i32, ""), "");
}

static void store_own(Wgmma *w, LLVMValueRef number, LLVMValueRef *values) {
    (void)values;
    wgmma_epilogue_results(w, wgmma_begin_epilogue(w, number), w->warp);
}

LLVMValueRef wgmma_hand_over(Wgmma *w, const Loop *tiles, LLVMValueRef turn,
                             LLVMValueRef last_stage, const LLVMValueRef *accs) {
    const Unit *unit = w->unit;
    LLVMValueRef sums[WGMMA_MAX_ACCUMULATORS], function = w->lower->function;
    wgmma_finish(w, accs);
    for (uint32_t i = 0; i < w->width / 2; i++)
        sums[i] = LLVMBuildLoad2(unit->builder, unit->f32, accs[i], "");
    wgmma_release(w, last_stage, NULL);
    LLVMValueRef taken = wgmma_taken(w, w->warp);
    wgmma_wait(w, taken, LLVMBuildXor(unit->builder, turn, unit_i32(w->unit, 1), ""));
    put_results(w, sums);
    LLVMValueRef more = is_more(w, tiles);
    If others = if_begin(unit, function, more);
    arrive(w, wgmma_handed(w, w->warp));
    if_end(unit, &others);
    If self = if_begin(unit, function, LLVMBuildNot(unit->builder, more, ""));
    LLVMValueRef all = unit_i32(w->unit, -1);
    unit_intrinsic(unit, "llvm.nvvm.bar.warp.sync", NULL, 0, &all, 1);
    wgmma_work_by_code(w, tiles->index, store_own, &turn, 1, 0);
    if_end(unit, &self);
    return next_turn(w, turn, more);
}

/* Of the tile, what every n-th warp that multiplies has left. `turn`: see wgmma_hand_over. */
static void store_handed(Wgmma *w, LLVMValueRef number, LLVMValueRef *turn) {
    const Unit *unit = w->unit;
    uint32_t n_warps = w->sched->warps_m;
    LLVMValueRef first =
        LLVMBuildSub(unit->builder, w->warp, unit_i32(unit, (int64_t)n_warps + 1), "");
    WgmmaEpilogue epilogue = wgmma_begin_epilogue(w, number);
    Loop warps = loop_begin(unit, w->lower->function, first, unit_i32(unit, n_warps),
                            unit_i32(unit, w->sched->store_warps));
    LLVMValueRef handed = wgmma_handed(w, warps.index), taken = wgmma_taken(w, warps.index);
    wgmma_wait(w, handed, *turn);
    wgmma_epilogue_results(w, epilogue, warps.index);
    arrive(w, taken);
    loop_end(unit, &warps);
}

void wgmma_store_tiles(Wgmma *w, LLVMValueRef *turn) {
    const Unit *unit = w->unit;
    Loop tiles = wgmma_each_tile(w);
    loop_carry(unit, &tiles, turn, 1);
    LLVMValueRef more = is_more(w, &tiles);
    If others = if_begin(unit, w->lower->function, more);
    wgmma_work_by_code(w, tiles.index, store_handed, turn, 1, 0);
    if_end(unit, &others);
    *turn = next_turn(w, *turn, more);
    loop_end_carry(unit, &tiles, turn, 1);
}
