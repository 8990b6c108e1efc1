/* The barriers of the pipeline: full and empty stages of the ring, and written and read results of
 * a warp. See wgmma.h. */
#include "codegen/gpu_gemm/wgmma.h"

static uint32_t barriers_begin(const Wgmma *w) {
    return w->sched->gemm.stages * w->stage_bytes + w->sched->gemm.warps_m * w->epilogue_bytes;
}

static Val barrier_at(const Wgmma *w, Val stage, uint32_t begin) {
    const Codegen *k = w->k;
    Val at = k_muli(k, stage, WGMMA_BARRIER_BYTES);
    return wgmma_at(w, k_addi(k, at, begin));
}

Val wgmma_full(const Wgmma *w, Val stage) {
    return barrier_at(w, stage, barriers_begin(w));
}

Val wgmma_empty(const Wgmma *w, Val stage) {
    return barrier_at(w, stage, barriers_begin(w) + w->sched->gemm.stages * WGMMA_BARRIER_BYTES);
}

/* Barriers of a warp's results. */
static Val results_barrier(const Wgmma *w, Val warp, uint32_t which) {
    uint32_t before = 2 * w->sched->gemm.stages + which * w->sched->gemm.warps_m;
    return barrier_at(w, warp, barriers_begin(w) + before * WGMMA_BARRIER_BYTES);
}

Val wgmma_results_full(const Wgmma *w, Val warp) {
    return results_barrier(w, warp, 0);
}

Val wgmma_results_empty(const Wgmma *w, Val warp) {
    return results_barrier(w, warp, 1);
}

void wgmma_meet(const Wgmma *w) {
    if (!w->rank) {
        gpu_barrier(w->k);
        return;
    }
    k_intrinsic_0(w->k, "llvm.nvvm.barrier.cluster.arrive");
    k_intrinsic_0(w->k, "llvm.nvvm.barrier.cluster.wait");
}

void wgmma_init_barriers(const Wgmma *w) {
    const Codegen *k = w->k;
    Val is_first = k_eqi(k, w->thread, 0);
    uint32_t n_releases = w->n_groups * wgmma_cluster(w);
    If first = if_begin(k, is_first);
    for (uint32_t s = 0; s < w->sched->gemm.stages; s++) {
        Val full = wgmma_full(w, k_i32(k, s));
        Val empty = wgmma_empty(w, k_i32(k, s));
        gpu_mbarrier_init(k, full, 1);
        gpu_mbarrier_init(k, empty, n_releases);
    }
    for (uint32_t i = 0; i < w->sched->gemm.warps_m && w->sched->gemm.store_warps; i++) {
        Val full = wgmma_results_full(w, k_i32(k, i));
        Val taken = wgmma_results_empty(w, k_i32(k, i));
        gpu_mbarrier_init(k, full, 1);
        gpu_mbarrier_init(k, taken, 1);
    }
    gpu_mbarrier_publish(k);
    k_intrinsic_0(k, "llvm.nvvm.fence.proxy.async.shared_cta");
    if_end(k, &first);
    wgmma_meet(w);
}

void wgmma_wait(const Wgmma *w, Val barrier, Val parity) {
    gpu_mbarrier_wait(w->lower, barrier, parity, false);
}

PipelineState pipeline_next(const Codegen *k, PipelineState place, uint32_t n_stages) {
    Val next = k_addi(k, place.stage, 1);
    Val wraps = k_eqi(k, next, n_stages);
    Val flip = k_zext(k, wraps, k->i32);
    return (PipelineState){.stage = k_select(k, wraps, k_i32(k, 0), next),
                           .parity = k_xor(k, place.parity, flip)};
}

/* One thread of the warpgroup per block of the cluster arrives at that block's barrier. It orders
 * only accesses of the copy engine and the tensor cores, so block scope is enough. */
void wgmma_release(const Wgmma *w, Val stage, Val condition) {
    const Codegen *k = w->k;
    Val speaks = k_ulti(k, w->in_group, wgmma_cluster(w));
    if (condition) speaks = k_and(k, speaks, condition);
    If one = if_begin(k, speaks);
    Val args[2] = {wgmma_empty(w, stage), k_i32(k, 1)};
    const char *name = "llvm.nvvm.mbarrier.arrive.scope.cta.space.cta";
    if (w->rank) {
        args[0] = gpu_cluster_at(k, args[0], w->in_group);
        name = "llvm.nvvm.mbarrier.arrive.scope.cta.space.cluster";
    }
    k_intrinsic(k, name, args, 2);
    if_end(k, &one);
}
