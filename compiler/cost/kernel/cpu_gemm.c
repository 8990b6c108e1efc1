/* The cost of GEMMs on a CPU. See template.h. */
#include "cost/kernel/gemm.h"

const TemplateCost cost_cpu_gemm = {
    .count = cost_gemm_count,
    .load = cost_gemm_load,
    .use = cost_gemm_use,
    .compute = cost_gemm_compute,
    .bared_us = cost_gemm_bared_us,
};
