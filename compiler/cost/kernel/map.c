/* The cost of maps. See template.h. */
#include "cost/kernel/template.h"

const TemplateCost cost_gpu_map = {.base = &cost_loops};
const TemplateCost cost_cpu_map_tile = {.base = &cost_loops};
const TemplateCost cost_cpu_map = {.base = &cost_loops};
