/* The cost of maps. See template.h. */
#include "cost/kernel/loops.h"

double cost_map_registers(const ThreadUse *use) {
    return use->own + use->peak;
}

uint32_t cost_map_bytes(Arena *arena, const Kernel *kernel, const Variant *variant) {
    (void)arena, (void)kernel, (void)variant;
    return 0;
}

const TemplateCost cost_gpu_map = {
    .registers = cost_map_registers,
    .shared_bytes = cost_map_bytes,
    .count = cost_loops_count,
    .load = cost_loops_load,
    .use = cost_loops_use,
    .compute = cost_loops_compute,
    .bared_us = cost_loops_bared_us,
};

const TemplateCost cost_cpu_map = {
    .count = cost_loops_count,
    .load = cost_loops_load,
    .use = cost_loops_use,
    .compute = cost_loops_compute,
    .bared_us = cost_loops_bared_us,
};
