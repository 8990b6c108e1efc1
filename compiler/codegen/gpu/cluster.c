/* Clusters, and barriers in shared memory that count arrivals and bytes. See gpu.h.
 *
 * What a block sends goes with the barrier that waits for it: the hardware counts its bytes there.
 * A release by barrier.cluster.arrive waits until everything its threads ever wrote is seen by the
 * whole machine, which took a third of a cluster's time. */
#include "codegen/gpu/gpu.h"

#include <string.h>

void gpu_cluster_begin(const Codegen *k) {
    k_intrinsic(k, "llvm.nvvm.barrier.cluster.arrive.relaxed.aligned", NULL, 0, NULL, 0);
}

void gpu_cluster_arrive(const Codegen *k) {
    k_intrinsic(k, "llvm.nvvm.barrier.cluster.arrive.aligned", NULL, 0, NULL, 0);
}

void gpu_cluster_wait(const Codegen *k) {
    k_intrinsic(k, "llvm.nvvm.barrier.cluster.wait.aligned", NULL, 0, NULL, 0);
}

Val gpu_cluster_at(const Codegen *k, Val pointer, Val rank) {
    Val args[2] = {pointer, rank};
    return k_intrinsic(k, "llvm.nvvm.mapa.shared.cluster", NULL, 0, args, 2);
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
    LLVMTypeRef types[3] = {k->i64, LLVMTypeOf(value), k->i64};
    LLVMTypeRef type = LLVMFunctionType(k->void_type, types, 3, 0);
    Val code = LLVMGetInlineAsm(type, text, strlen(text), list, strlen(list), 1, 0,
                                LLVMInlineAsmDialectATT, 0);
    Val args[3] = {there, value, told};
    k_call(k, type, code, args, 3);
}

void gpu_mbarrier_init(const Codegen *k, Val barrier, uint32_t n_arrivals) {
    Val args[2] = {barrier, k_i32(k, n_arrivals)};
    k_intrinsic(k, "llvm.nvvm.mbarrier.init.shared", NULL, 0, args, 2);
}

void gpu_mbarrier_publish(const Codegen *k) {
    k_intrinsic(k, "llvm.nvvm.fence.mbarrier_init.release.cluster", NULL, 0, NULL, 0);
}

void gpu_mbarrier_expect(const Codegen *k, Val barrier, uint32_t n_bytes) {
    Val args[2] = {barrier, k_i32(k, n_bytes)};
    k_intrinsic(k, "llvm.nvvm.mbarrier.arrive.expect.tx.scope.cta.space.cta", NULL, 0, args, 2);
}

void gpu_mbarrier_wait(const Lower *lower, Val barrier, Val parity, bool is_of_cluster) {
    const Codegen *k = lower->k;
    const char *name = is_of_cluster ? "llvm.nvvm.mbarrier.try.wait.parity.scope.cluster.space.cta"
                                     : "llvm.nvvm.mbarrier.try.wait.parity.scope.cta.space.cta";
    LLVMBasicBlockRef poll = k_block(k, "poll");
    LLVMBasicBlockRef after = k_block(k, "arrived");
    k_branch(k, poll);
    Val args[2] = {barrier, parity};
    Val done = k_intrinsic(k, name, NULL, 0, args, 2);
    k_cond_br(k, done, after, poll);
    k_goto(k, after);
}
