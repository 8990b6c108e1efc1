/* Products of small integers, two steps of k at a time. See gemm.h.
 *
 * i8 and u8 fit 16 bits, and AVX2 multiplies pairs of these and adds both products to one of
 * 32 bits (vpmaddwd), with VNNI also the sum so far (vpdpwssd, which LLVM makes of both). Sums of
 * integers wrap, so their order changes no bit, and this is exact.
 *
 * Operands are packed as for other products, an element of 32 bits for each step of k. Then pairs
 * of steps are joined in place: element s becomes the low halves of elements 2s and 2s + 1. */
#include "codegen/cpu_gemm/gemm.h"

enum { HALF_BITS = 16, WIDE_VECTOR_BYTES = 64 };

bool gemm_may_pair(const Gemm *gemm) {
    return dtype_is_int(gemm->acc) && dtype_bytes(gemm->acc) == sizeof(int32_t) &&
           !gemm->is_streamed && !gemm->has_amx && dtype_in(gemm->row.dtype, DTS_BYTE) &&
           dtype_in(gemm->column.dtype, DTS_BYTE) && gemm->lanes * sizeof(int32_t) >= 32;
}

Val gemm_pair(const Gemm *gemm, Val first, Val second) {
    const Codegen *k = gemm->lower->k;
    Val mask = k_splat(k, k_i32(k, (1 << HALF_BITS) - 1), gemm->lanes);
    Val n_bits = k_splat(k, k_i32(k, HALF_BITS), gemm->lanes);
    Val high = k_shl(k, second, n_bits);
    return k_or(k, k_and(k, first, mask), high);
}

Val gemm_add_pairs(const Gemm *gemm, Val a, Val b, Val sum) {
    const Codegen *k = gemm->lower->k;
    bool is_wide = gemm->lanes * sizeof(int32_t) == WIDE_VECTOR_BYTES;
    LLVMTypeRef halves = LLVMVectorType(k->i16, 2 * gemm->lanes);
    Val args[2] = {LLVMBuildBitCast(k->builder, a, halves, ""),
                   LLVMBuildBitCast(k->builder, b, halves, "")};
    const char *name = is_wide ? "llvm.x86.avx512.pmaddw.d.512" : "llvm.x86.avx2.pmadd.wd";
    return k_add(k, sum, k_intrinsic(k, name, args, 2));
}

/* The number of pairs of the block of k. */
static Val n_pairs(const Gemm *gemm) {
    const Codegen *k = gemm->lower->k;
    return k_udivi(k, k_addi(k, gemm->n_k, 1), 2);
}

/* Joins two vectors `pitch` elements apart, for `n` elements from `base` on. */
static void join_vectors(const Gemm *gemm, Val base, uint32_t pitch, uint32_t n) {
    Lower *lower = gemm->lower;
    const Codegen *k = lower->k;
    Loop loop = loop_over(k, n_pairs(gemm), 1);
    Val from = gemm_element(gemm, base, k_muli(k, loop.index, 2 * (int64_t)pitch));
    Val to = gemm_element(gemm, base, k_muli(k, loop.index, pitch));
    for (uint32_t v = 0; v < n; v += gemm->lanes) {
        Val low = gemm_load(gemm, gemm_element(gemm, from, lower_index_const(lower, v)));
        Val high = gemm_load(gemm, gemm_element(gemm, from, lower_index_const(lower, pitch + v)));
        Val pairs = gemm_pair(gemm, low, high);
        gemm_store(gemm, gemm_element(gemm, to, lower_index_const(lower, v)), pairs);
    }
    loop_end(k, &loop);
}

/* Stores zeros as the step after the last, if the number of steps is odd. */
static void pad_vectors(const Gemm *gemm, Val base, uint32_t pitch, uint32_t n) {
    Lower *lower = gemm->lower;
    const Codegen *k = lower->k;
    LLVMTypeRef type = k_value_type(k, gemm->acc, gemm->lanes);
    If odd = if_begin(k, k_nei(k, k_uremi(k, gemm->n_k, 2), 0));
    Val end = gemm_element(gemm, base, k_muli(k, gemm->n_k, pitch));
    for (uint32_t v = 0; v < n; v += gemm->lanes)
        gemm_store(gemm, gemm_element(gemm, end, lower_index_const(lower, v)), LLVMConstNull(type));
    if_end(k, &odd);
}

void gemm_pair_columns(Gemm *gemm) {
    Lower *lower = gemm->lower;
    const Codegen *k = lower->k;
    Loop loop = loop_begin(k, lower_index_const(lower, 0), gemm->n_columns, gemm->tile_columns);
    Val panel = gemm_element(gemm, gemm->columns, k_muli(k, loop.index, gemm->panel_depth));
    pad_vectors(gemm, panel, gemm->tile_columns, gemm->tile_columns);
    join_vectors(gemm, panel, gemm->tile_columns, gemm->tile_columns);
    loop_end(k, &loop);
}

/* Rows along k: a vector has pairs side by side. The last vector may join what is after the last
 * step, and its row has room for that. */
static void join_along_k(Gemm *gemm) {
    Lower *lower = gemm->lower;
    const Codegen *k = lower->k;
    uint32_t n = gemm->lanes;
    Val *even = arena_array(k->arena, Val, n), *odd = arena_array(k->arena, Val, n);
    for (uint32_t i = 0; i < n; i++) {
        even[i] = k_i32(k, 2 * i);
        odd[i] = k_i32(k, 2 * i + 1);
    }
    Loop rows = loop_over(k, lower_index_const(lower, gemm->n_tile_rows), 1);
    Val row = gemm_element(gemm, gemm->rows, k_muli(k, rows.index, gemm->row_stride));
    k_store(k, k_int(k_value_type(k, gemm->acc, 1), 0), gemm_element(gemm, row, gemm->n_k));
    Loop loop = loop_over(k, n_pairs(gemm), n);
    Val from = gemm_element(gemm, row, k_muli(k, loop.index, 2));
    Val a = gemm_load(gemm, from);
    Val b = gemm_load(gemm, gemm_element(gemm, from, lower_index_const(lower, n)));
    Val low = k_shuffle(k, a, b, LLVMConstVector(even, n));
    Val high = k_shuffle(k, a, b, LLVMConstVector(odd, n));
    Val pairs = gemm_pair(gemm, low, high);
    gemm_store(gemm, gemm_element(gemm, row, loop.index), pairs);
    loop_end(k, &loop);
    loop_end(k, &rows);
}

void gemm_pair_rows(Gemm *gemm) {
    if (gemm->row.is_along_k) {
        join_along_k(gemm);
        return;
    }
    pad_vectors(gemm, gemm->rows, gemm->k_stride, gemm->k_stride);
    join_vectors(gemm, gemm->rows, gemm->k_stride, gemm->k_stride);
}
