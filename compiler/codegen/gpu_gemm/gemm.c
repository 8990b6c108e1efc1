/* GPU GEMMs, by engine. See template.h. */
#include "codegen/gpu_gemm/gemm.h"

void template_gpu_contract(Lower *lower) {
    switch (lower->variant->sched.engine) {
    case GEMM_FMA:
        template_gpu_gemm_simt(lower);
        break;
    case GEMM_MMA:
        if (lower->n_together > 1)
            template_gpu_gemm_rows_gemm(lower);
        else
            template_gpu_gemm_mma(lower);
        break;
    case GEMM_NAIVE:
        template_gpu_gemm_plain(lower);
        break;
    case GEMM_WGMMA:
        template_gpu_gemm_wgmma(lower);
        break;
    case GEMM_GEMV:
        template_gpu_gemm_vector(lower);
        break;
    }
}
