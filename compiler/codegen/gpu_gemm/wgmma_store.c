/* Tiles of results in shared memory, and the warps that store them. See wgmma_epilogue.h. */
#include "codegen/gpu_gemm/wgmma_epilogue.h"

static void arrive(const Wgmma *w, Val barrier) {
    const Codegen *k = w->k;
    gpu_warp_barrier(k);
    Val lane = k_andi(k, w->thread, WARP_THREADS - 1);
    If first = if_begin(k, k_eqi(k, lane, 0));
    gpu_mbarrier_arrive(k, barrier);
    if_end(k, &first);
}

/* Writes the results, rounded; the pitch is wgmma_results_pitch. */
static void put_results(const Wgmma *w, const Val *accs) {
    const Codegen *k = w->k;
    const Reduce *reduce = &w->lower->kernel->reduces.data[0];
    uint32_t pitch = wgmma_results_pitch(w->sched);
    Val lane = k_andi(k, w->thread, WARP_THREADS - 1);
    Val row = gpu_fragment_row(k, lane);
    Val column = k_andi(k, lane, 3);
    Val at = k_muli(k, row, (int64_t)pitch * 2);
    column = k_shli(k, column, 2);
    at = k_add(k, at, column);
    Val own = k_muli(k, w->warp, w->epilogue_bytes);
    at = k_add(k, at, own);
    int64_t begin = (int64_t)w->sched->gemm.stages * w->stage_bytes;
    Val place = wgmma_at(w, k_addi(k, at, begin));
    GemmFragments fragments = {.accs = accs,
                               .n_m = 1,
                               .n_n = w->width / FRAGMENT_COLUMNS,
                               .n_halves = 2,
                               .pitch = pitch,
                               .acc = reduce->acc,
                               .stored = reduce->result};
    gpu_gemm_put_fragments(k, &fragments, place);
}

static Val next_parity(const Wgmma *w, Val parity, Val is_stored) {
    const Codegen *k = w->k;
    return k_xor(k, parity, k_zext(k, is_stored, k->i32));
}

static void store_own(Wgmma *w, Val number, Val *values) {
    (void)values;
    wgmma_epilogue_results(w, wgmma_begin_epilogue(w, number), w->warp);
}

Val wgmma_leave_results(Wgmma *w, const WgmmaWalk *walk, Val parity, Val last_stage,
                        const Val *accs) {
    const Codegen *k = w->k;
    Val sums[WGMMA_MAX_ACCUMULATORS];
    wgmma_finish(w, accs);
    for (uint32_t i = 0; i < w->width / 2; i++) sums[i] = k_load(k, w->acc_type, accs[i]);
    wgmma_release(w, last_stage, NULL);
    Val empty = wgmma_results_empty(w, w->warp);
    wgmma_wait(w, empty, k_xori(k, parity, 1));
    put_results(w, sums);
    Val more = wgmma_is_more(w, walk);
    If others = if_begin(k, more);
    arrive(w, wgmma_results_full(w, w->warp));
    if_end(k, &others);
    If self = if_begin(k, k_not(k, more));
    gpu_warp_barrier(k);
    wgmma_work_by_code(w, walk->number, store_own, &parity, 1, 0);
    if_end(k, &self);
    return next_parity(w, parity, more);
}

/* Stores the results of every n-th consumer warp for the tile. `parity`: see
 * wgmma_leave_results. */
static void store_results(Wgmma *w, Val number, Val *parity) {
    const Codegen *k = w->k;
    uint32_t n_warps = w->sched->gemm.warps_m;
    Val first = k_subi(k, w->warp, (int64_t)n_warps + 1);
    WgmmaEpilogue epilogue = wgmma_begin_epilogue(w, number);
    Loop warps = loop_begin(k, first, k_i32(k, n_warps), w->sched->gemm.store_warps);
    Val full = wgmma_results_full(w, warps.index), empty = wgmma_results_empty(w, warps.index);
    wgmma_wait(w, full, *parity);
    wgmma_epilogue_results(w, epilogue, warps.index);
    arrive(w, empty);
    loop_end(k, &warps);
}

void wgmma_store_tiles(Wgmma *w, Val *parity) {
    const Codegen *k = w->k;
    WgmmaWalk walk = wgmma_walk(w, parity, 1);
    Val more = wgmma_is_more(w, &walk);
    If others = if_begin(k, more);
    wgmma_work_by_code(w, walk.number, store_results, parity, 1, 0);
    if_end(k, &others);
    *parity = next_parity(w, *parity, more);
    wgmma_walked(w, &walk);
}
