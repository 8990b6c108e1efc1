/* The cost of gemm-rows-gemm launches (template/gemm_rows_gemm.h): scores recomputed in every pass,
 * row work, and the second GEMM. */
#ifndef FUSEC_COST_KERNEL_GEMM_ROWS_GEMM_H
#define FUSEC_COST_KERNEL_GEMM_ROWS_GEMM_H

#include "cost/pricing.h"

bool cost_is_gemm_rows_gemm(const Coster *c);
/* How often the kernel computes its results; more than once only for the scores of a gemm-rows-gemm
 * launch. */
double cost_gemm_rows_gemm_passes(const Coster *c, const Kernel *kernel);
/* Sets `us` from the times of the kernels. */
void cost_gemm_rows_gemm_time(const Coster *c, Pricing *p);

#endif
