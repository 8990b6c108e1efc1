/* Thread block clusters and mbarriers. See gpu.h.
 *
 * A value sent to another block carries its mbarrier, which counts the arrived bytes (st.async).
 * The alternative, a release by barrier.cluster.arrive, waits until the whole machine sees all
 * earlier writes of the threads, and took a third of a cluster's time. */
#include "codegen/gpu/gpu.h"

void gpu_cluster_begin(const Codegen *k) {
    k_intrinsic_0(k, "llvm.nvvm.barrier.cluster.arrive.relaxed.aligned");
}

void gpu_cluster_arrive(const Codegen *k) {
    k_intrinsic_0(k, "llvm.nvvm.barrier.cluster.arrive.aligned");
}

void gpu_cluster_wait(const Codegen *k) {
    k_intrinsic_0(k, "llvm.nvvm.barrier.cluster.wait.aligned");
}

Val gpu_cluster_at(const Codegen *k, Val pointer, Val rank) {
    return k_intrinsic_2(k, "llvm.nvvm.mapa.shared.cluster", pointer, rank);
}

void gpu_cluster_send(const Codegen *k, Val value, Val pointer, Val barrier, Val rank) {
    bool is_wide = LLVMTypeOf(value) == k->i64;
    const char *text = str_format(k->arena,
                                  "st.async.shared::cluster.mbarrier::complete_tx::bytes"
                                  ".b%d [$0], $1, [$2];",
                                  is_wide ? 64 : 32);
    const char *list = is_wide ? "l,l,l,~{memory}" : "l,r,l,~{memory}";
    Val there = gpu_cluster_at(k, pointer, rank);
    there = k_ptrtoint(k, there, k->i64);
    Val told = gpu_cluster_at(k, barrier, rank);
    told = k_ptrtoint(k, told, k->i64);
    Val args[3] = {there, value, told};
    k_asm(k, k->void_type, text, list, args, 3, true);
}

void gpu_mbarrier_init(const Codegen *k, Val barrier, uint32_t n_arrivals) {
    k_intrinsic_2(k, "llvm.nvvm.mbarrier.init.shared", barrier, k_i32(k, n_arrivals));
}

void gpu_mbarrier_publish(const Codegen *k) {
    k_intrinsic_0(k, "llvm.nvvm.fence.mbarrier_init.release.cluster");
}

void gpu_mbarrier_arrive(const Codegen *k, Val barrier) {
    k_intrinsic_2(k, "llvm.nvvm.mbarrier.arrive.scope.cta.space.cta", barrier, k_i32(k, 1));
}

void gpu_mbarrier_expect(const Codegen *k, Val barrier, uint32_t n_bytes) {
    k_intrinsic_2(k, "llvm.nvvm.mbarrier.arrive.expect.tx.scope.cta.space.cta", barrier,
                  k_i32(k, n_bytes));
}

void gpu_mbarrier_wait(const Lower *lower, Val barrier, Val parity, bool is_of_cluster) {
    const Codegen *k = lower->k;
    const char *name = is_of_cluster ? "llvm.nvvm.mbarrier.try.wait.parity.scope.cluster.space.cta"
                                     : "llvm.nvvm.mbarrier.try.wait.parity.scope.cta.space.cta";
    LLVMBasicBlockRef poll = k_block(k, "poll");
    LLVMBasicBlockRef after = k_block(k, "arrived");
    k_branch(k, poll);
    Val done = k_intrinsic_2(k, name, barrier, parity);
    k_cond_br(k, done, after, poll);
    k_goto(k, after);
}
