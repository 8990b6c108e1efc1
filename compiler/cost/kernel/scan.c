/* The cost of scans. See template.h. */
#include "cost/kernel/template.h"
#include "lowering/order.h"
#include "machine/tuning.h"

/* The totals of a tile's runs and groups. */
static uint32_t scan_bytes(Arena *arena, const Kernel *kernel, const Variant *variant) {
    (void)arena;
    uint32_t bytes = 0, n = SCAN_RUN * SCAN_RUN + SCAN_RUN;
    for (uint32_t i = 0; i < kernel->reduces.n; i++) {
        uint32_t acc_bytes = dtype_bytes(kernel->reduces.data[i].acc);
        bytes += n * (acc_bytes < 4 ? 4 : acc_bytes);
    }
    return variant->sched.row.threads_per_row > 1 ? bytes : 0;
}

static double scan_registers(const ThreadUse *use) {
    return use->own + use->peak + REGS_SCAN;
}

const TemplateCost cost_gpu_scan = {
    .base = &cost_loops, .registers = scan_registers, .shared_bytes = scan_bytes};

const TemplateCost cost_cpu_scan = {.base = &cost_loops};
