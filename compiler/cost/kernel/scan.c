/* The cost of scans. See template.h. */
#include "cost/count/prims.h"
#include "cost/count/stride.h"
#include "cost/kernel/loops.h"
#include "lowering/order.h"
#include "machine/machine.h"
#include "machine/tuning.h"
#include "plan/access.h"

#include <math.h>

/* The totals of a tile's runs and groups. */
static uint32_t scan_bytes(Arena *arena, const Kernel *kernel, const Variant *variant) {
    (void)arena;
    uint32_t bytes = 0, n = SCAN_RUN * SCAN_RUN + SCAN_RUN;
    for (uint32_t i = 0; i < kernel->reduces.n; i++) {
        const Reduce *reduce = &kernel->reduces.data[i];
        uint32_t n_values = reduce->join ? reduce->join->n : 1;
        for (uint32_t k = 0; k < n_values; k++) {
            uint32_t acc_bytes = dtype_bytes(reduce->join ? reduce->join->types[k] : reduce->acc);
            bytes += n * (acc_bytes < 4 ? 4 : acc_bytes);
        }
    }
    return variant->sched.row.threads_per_row > 1 ? bytes : 0;
}

static double scan_registers(const ThreadUse *use) {
    return use->own + use->peak + REGS_SCAN;
}

/* Whether neighbours of the load, along the row and beside it, are in other sectors. */
static bool is_lone(const Coster *c, const Pricing *p, const Scalar *load) {
    uint32_t axis = kernel_lane_axis(p->kernel, &p->variant->sched);
    double bytes = dtype_bytes(load->dtype);
    double along = cost_axis_stride(c, p->kernel, load->index, p->kernel->first_reduced);
    double beside = axis == NO_AXIS ? 0 : cost_axis_stride(c, p->kernel, load->index, axis);
    return fabs(along) * bytes >= SECTOR_BYTES && fabs(beside) * bytes >= SECTOR_BYTES;
}

/* A lone element has its sector in flight, as the last elements of tiles do. */
static void load(const Coster *c, Pricing *p, bool *const *live) {
    const Sched *sched = &p->variant->sched;
    cost_loops.load(c, p, live);
    for (ScalarId id = 1; id <= scalar_count(p->kernel->scalars); id++) {
        const Scalar *s = scalar_get(p->kernel->scalars, id);
        if (s->kind == SCALAR_LOAD && live[0][id] && is_lone(c, p, s))
            p->bytes_in_flight +=
                (double)sched->unroll * sched->lanes * (SECTOR_BYTES - dtype_bytes(s->dtype));
    }
}

const TemplateCost cost_gpu_scan = {
    .base = &cost_loops, .registers = scan_registers, .shared_bytes = scan_bytes, .load = load};

/* The primitives of an element's guards and of the choices by them, which most rows are walked
 * without. */
static double guard_prims(const Coster *c, const Pricing *p, const bool *live) {
    const Kernel *kernel = p->kernel;
    const Sched *sched = &p->variant->sched;
    double prims = 0;
    if (!kernel_guards_have_ends(c->arena, kernel, sched, kernel->first_reduced)) return 0;
    for (ScalarId id = 1; id <= scalar_count(kernel->scalars); id++) {
        const Scalar *s = scalar_get(kernel->scalars, id);
        bool is_guard = s->kind == SCALAR_INSIDE || scalar_chooses_part(kernel->scalars, s);
        if (live[id] && is_guard) prims += scalar_prims(c->card, kernel, id, sched->lanes);
    }
    return prims;
}

/* CPU: each element is combined with those of its run, which the next element waits for, and with
 * those before the run, for the result. */
static void count(const Coster *c, Pricing *p, bool *const *live) {
    cost_loops.count(c, p, live);
    double lanes = p->variant->sched.lanes, n_steps = p->rows * p->reduced * cost_lane_fill(c, p);
    p->cost->n_prims -= n_steps * guard_prims(c, p, live[0]);
    for (uint32_t i = 0; i < p->kernel->reduces.n; i++) {
        const Reduce *reduce = &p->kernel->reduces.data[i];
        bool is_short = !reduce->join && prim_info(reduce->combine)->is_exact;
        double each = is_short ? COST_SCAN_EXACT_CLOCKS : COST_ROW_TARGET_CLOCKS;
        double waited = combine_prims(c->card, reduce) * each * c->card->lanes / lanes;
        double once = reduce_prims(c->card, reduce, p->variant->sched.lanes);
        p->cost->n_prims += n_steps * fmax(once, waited - once);
        if (lanes > 1) p->cost->n_prims += n_steps * COST_CPU_SCAN_CLOCKS * c->card->lanes / lanes;
    }
}

const TemplateCost cost_cpu_scan = {.base = &cost_loops, .count = count};
