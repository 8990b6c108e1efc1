/* GPU contractions, by engine. See template.h. */
#include "codegen/gpu_gemm/gemm.h"

void template_gpu_contract(Lower *lower) {
    switch (lower->variant->sched.engine) {
    case CONTRACT_FMA:
        template_gpu_gemm_simt(lower);
        break;
    case CONTRACT_MMA:
        if (lower->n_together > 1)
            template_gpu_gemm_relay(lower);
        else
            template_gpu_gemm_mma(lower);
        break;
    case CONTRACT_PLAIN:
        template_gpu_gemm_plain(lower);
        break;
    case CONTRACT_WGMMA:
        template_gpu_gemm_wgmma(lower);
        break;
    case CONTRACT_VECTOR:
        template_gpu_gemm_vector(lower);
        break;
    }
}
