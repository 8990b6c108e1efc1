/* Softmax between two products by wgmma: the lhs of the scores in registers. See wgmma_rows.h.
 *
 * A consumer multiplies its 64 rows with every tile of columns. From shared memory, tensor cores
 * would read them each time. A consumer with enough registers keeps its rows there: the tile in
 * shared memory is then free for the block's next rows at once. A bias that is loaded for each
 * score needs the registers for loads on their way. */
#include "codegen/gpu_gemm/rows/wgmma_rows.h"

static uint32_t n_steps(const WgmmaRows *s) {
    return s->left.depth / GEMM_ROWS_GEMM_STEP;
}

bool wgmma_rows_can_keep_left(const WgmmaRows *s, uint32_t registers) {
    uint32_t of_products = online_product_registers(2 * s->n_sums, s->width);
    return s->has_scores && s->overlaps && !s->may_hide && !s->left.is_mn_major &&
           n_steps(s) <= WGMMA_ROWS_MOST_STEPS &&
           of_products + n_steps(s) * WGMMA_ROWS_STEP_REGISTERS + WGMMA_ROWS_OTHER_REGISTERS <=
               registers;
}

void wgmma_rows_take_left(WgmmaRows *s) {
    const Codegen *k = s->k;
    Val lane = k_andi(k, s->out.thread, WARP_THREADS - 1);
    Val row = k_madi(k, s->out.warp, WGMMA_WARP_ROWS, k_andi(k, lane, WGMMA_WARP_ROWS - 1));
    Val half = k_udivi(k, lane, WGMMA_WARP_ROWS), turn = k_andi(k, row, 7);
    Val line = k_byte(k, gpu_shared_dynamic(k), k_muli(k, row, WGMMA_SWIZZLE_BYTES));
    for (uint32_t step = 0; step < n_steps(s); step++) {
        uint32_t first = step * GEMM_ROWS_GEMM_STEP, along = first % WGMMA_ROWS_BLOCK_ELEMS;
        uint32_t block = first / WGMMA_ROWS_BLOCK_ELEMS * s->left.own * WGMMA_SWIZZLE_BYTES;
        uint32_t chunk = along * GEMM_ROWS_GEMM_ELEM_BYTES / ACCESS_BYTES;
        Val place = k_muli(k, k_xor(k, k_addi(k, half, chunk), turn), ACCESS_BYTES);
        Val at = k_byte(k, line, k_addi(k, place, block));
        LLVMTypeRef type = LLVMTypeOf(at);
        Val matrices =
            k_intrinsic_of(k, "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16", &type, 1, &at, 1);
        for (uint32_t r = 0; r < WGMMA_ROWS_STEP_REGISTERS; r++)
            s->kept_left[step * WGMMA_ROWS_STEP_REGISTERS + r] = k_extract_value(k, matrices, r);
    }
}

/* Every warp of every consumer arrives when it has its rows or needs them no more. If one arrived
 * for its warpgroup, another might still wait for the rows: where a mask hides all columns, no
 * product keeps the warps together. */
void wgmma_rows_free_left(const WgmmaRows *s, Val barrier) {
    const Codegen *k = s->k;
    gpu_warp_barrier(k);
    If one = if_begin(k, k_eqi(k, k_andi(k, s->out.thread, WARP_THREADS - 1), 0));
    gpu_mbarrier_arrive(k, barrier);
    if_end(k, &one);
}
