/* The cost of maps with flat vectors. See template.h. */
#include "cost/kernel/template.h"

const TemplateCost cost_gpu_map_flat = {.base = &cost_loops};
