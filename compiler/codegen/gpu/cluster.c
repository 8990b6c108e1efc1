/* Clusters, and barriers in shared memory that count arrivals and bytes. See gpu.h.
 *
 * What a block sends goes with the barrier that waits for it: the hardware counts its bytes there.
 * A release by barrier.cluster.arrive waits until everything its threads ever wrote is seen by the
 * whole machine, which took a third of a cluster's time. */
#include "codegen/gpu/gpu.h"

#include <string.h>

void gpu_cluster_begin(const Unit *unit) {
    unit_intrinsic(unit, "llvm.nvvm.barrier.cluster.arrive.relaxed.aligned", NULL, 0, NULL, 0);
}

void gpu_cluster_arrive(const Unit *unit) {
    unit_intrinsic(unit, "llvm.nvvm.barrier.cluster.arrive.aligned", NULL, 0, NULL, 0);
}

void gpu_cluster_wait(const Unit *unit) {
    unit_intrinsic(unit, "llvm.nvvm.barrier.cluster.wait.aligned", NULL, 0, NULL, 0);
}

LLVMValueRef gpu_cluster_at(const Unit *unit, LLVMValueRef pointer, LLVMValueRef rank) {
    LLVMValueRef args[2] = {pointer, rank};
    return unit_intrinsic(unit, "llvm.nvvm.mapa.shared.cluster", NULL, 0, args, 2);
}

void gpu_cluster_send(const Unit *unit, LLVMValueRef value, LLVMValueRef pointer,
                      LLVMValueRef barrier, LLVMValueRef rank) {
    bool is_wide = LLVMTypeOf(value) == unit->i64;
    const char *text = str_format(unit->arena,
                                  "st.async.shared::cluster.mbarrier::complete_tx::bytes"
                                  ".b%d [$0], $1, [$2];",
                                  is_wide ? 64 : 32);
    const char *list = is_wide ? "l,l,l,~{memory}" : "l,r,l,~{memory}";
    LLVMValueRef there = gpu_cluster_at(unit, pointer, rank);
    there = LLVMBuildPtrToInt(unit->builder, there, unit->i64, "");
    LLVMValueRef told = gpu_cluster_at(unit, barrier, rank);
    told = LLVMBuildPtrToInt(unit->builder, told, unit->i64, "");
    LLVMTypeRef types[3] = {unit->i64, LLVMTypeOf(value), unit->i64};
    LLVMTypeRef type = LLVMFunctionType(unit->void_type, types, 3, 0);
    LLVMValueRef code = LLVMGetInlineAsm(type, text, strlen(text), list, strlen(list), 1, 0,
                                         LLVMInlineAsmDialectATT, 0);
    LLVMValueRef args[3] = {there, value, told};
    LLVMBuildCall2(unit->builder, type, code, args, 3, "");
}

void gpu_mbarrier_init(const Unit *unit, LLVMValueRef barrier, uint32_t n_arrivals) {
    LLVMValueRef args[2] = {barrier, unit_i32(unit, n_arrivals)};
    unit_intrinsic(unit, "llvm.nvvm.mbarrier.init.shared", NULL, 0, args, 2);
}

void gpu_mbarrier_publish(const Unit *unit) {
    unit_intrinsic(unit, "llvm.nvvm.fence.mbarrier_init.release.cluster", NULL, 0, NULL, 0);
}

void gpu_mbarrier_expect(const Unit *unit, LLVMValueRef barrier, uint32_t n_bytes) {
    LLVMValueRef args[2] = {barrier, unit_i32(unit, n_bytes)};
    unit_intrinsic(unit, "llvm.nvvm.mbarrier.arrive.expect.tx.scope.cta.space.cta", NULL, 0, args,
                   2);
}

void gpu_mbarrier_wait(const Lower *lower, LLVMValueRef barrier, LLVMValueRef parity,
                       bool is_of_cluster) {
    const Unit *unit = lower->unit;
    const char *name = is_of_cluster ? "llvm.nvvm.mbarrier.try.wait.parity.scope.cluster.space.cta"
                                     : "llvm.nvvm.mbarrier.try.wait.parity.scope.cta.space.cta";
    LLVMBasicBlockRef poll = unit_block(unit, lower->function, "poll");
    LLVMBasicBlockRef after = unit_block(unit, lower->function, "arrived");
    unit_branch(unit, poll);
    LLVMValueRef args[2] = {barrier, parity};
    LLVMValueRef done = unit_intrinsic(unit, name, NULL, 0, args, 2);
    LLVMBuildCondBr(unit->builder, done, after, poll);
    unit_goto(unit, after);
}
