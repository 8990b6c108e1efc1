/* The cost of maps with flat vectors. See template.h. */
#include "cost/kernel/loops.h"

const TemplateCost cost_gpu_map_flat = {
    .registers = cost_map_registers,
    .shared_bytes = cost_map_bytes,
    .count = cost_loops_count,
    .load = cost_loops_load,
    .use = cost_loops_use,
    .compute = cost_loops_compute,
    .bared_us = cost_loops_bared_us,
};
