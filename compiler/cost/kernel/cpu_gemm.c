/* The cost of GEMMs on a CPU. See template.h. */
#include "cost/kernel/template.h"

const TemplateCost cost_cpu_gemm = {.base = &cost_gemms};
