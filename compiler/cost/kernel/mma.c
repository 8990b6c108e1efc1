/* The cost of GEMMs by `mma.sync`. See template.h. Copied operands are several steps ahead. An
 * operand of another layout, or a computed one, goes through registers one step ahead, so a block
 * with little to multiply waits for memory at each step. */
#include "cost/kernel/gemm.h"
#include "machine/machine.h"
#include "machine/tuning.h"

#include "plan/operand.h"

#include <math.h>

/* Whether wide accesses load everything that the operand is computed from. */
static bool is_wide(Arena *arena, const Kernel *gemm, bool is_left) {
    const Reduce *reduce = &gemm->reduces.data[0];
    IndexTab *tab = scalartab_indices(gemm->scalars);
    uint32_t axes[] = {gemm_axis_k(gemm), is_left ? gemm_axis_m(gemm) : gemm_axis_n(gemm)};
    ScalarId operand = is_left ? reduce->lhs : reduce->rhs;
    const bool *reached = scalar_reached(arena, gemm->scalars, operand);
    for (ScalarId id = 1; id <= operand; id++) {
        const Scalar *s = scalar_get(gemm->scalars, id);
        if (!reached[id] || s->kind != SCALAR_LOAD) continue;
        bool fits = index_lane_motion(tab, s->index, axes[0], 2) == LANES_UNIFORM;
        for (uint32_t i = 0; i < 2 && !fits; i++)
            fits = index_lane_motion(tab, s->index, axes[i], 2) == LANES_CONTIGUOUS &&
                   index_is_multiple(tab, s->index, axes[i], ACCESS_BYTES / dtype_bytes(s->dtype));
        if (!fits) return false;
    }
    return true;
}

/* Operands that go through registers, and those of them that go element by element. */
typedef struct Staged {
    uint32_t n, n_loads; /* operands, and the loads that they are computed from */
    bool is_narrow[2];   /* the lhs, the rhs */
} Staged;

static uint32_t count_loads(Arena *arena, const Kernel *gemm, ScalarId operand) {
    const bool *reached = scalar_reached(arena, gemm->scalars, operand);
    uint32_t n = 0;
    for (ScalarId id = 1; id <= operand; id++)
        n += reached[id] && scalar_get(gemm->scalars, id)->kind == SCALAR_LOAD;
    return n;
}

static Staged staged_operands(Arena *arena, const Kernel *gemm, const Variant *variant) {
    IndexTab *tab = scalartab_indices(gemm->scalars);
    const Reduce *reduce = &gemm->reduces.data[0];
    Staged staged = {.n = 0};
    predicate_assume(&variant->predicate, tab);
    for (int side = 0; side < 2; side++) {
        bool is_left = side == 0;
        OperandRows rows = gemm_operand_rows(gemm, is_left);
        if (rows.is_plain && rows.fit) continue;
        staged.n++;
        staged.n_loads += count_loads(arena, gemm, is_left ? reduce->lhs : reduce->rhs);
        staged.is_narrow[side] = !is_wide(arena, gemm, is_left);
    }
    predicate_assume(NULL, tab);
    return staged;
}

/* The least time of one step in microseconds; 0: both operands are copied ahead. */
static double step_wait_us(const Staged *staged) {
    uint32_t n_narrow = (uint32_t)staged->is_narrow[0] + staged->is_narrow[1];
    if (!staged->n) return 0;
    double more_loads = fmax(0, (double)staged->n_loads - staged->n);
    return COST_MMA_WAIT_US + COST_MMA_ELEMENTS_US * n_narrow + COST_MMA_LOAD_US * more_loads;
}

/* Primitives of an element of the operand: its addresses and guards, and its way through a register
 * of its own. */
static double element_prims(Arena *arena, const Kernel *gemm, ScalarId operand) {
    const bool *reached = scalar_reached(arena, gemm->scalars, operand);
    double prims = COST_MMA_STAGED_PRIMS;
    for (ScalarId id = 1; id <= operand; id++) {
        ScalarKind kind = scalar_get(gemm->scalars, id)->kind;
        if (reached[id] && (kind == SCALAR_LOAD || kind == SCALAR_INSIDE))
            prims += COST_MMA_STAGED_WEIGHT * scalar_own_cost(gemm->scalars, id);
    }
    return prims;
}

/* Primitives of the elements of narrow operands, which each tile computes. Known of 16 bits. */
static double staged_prims(const Coster *c, const Pricing *p, const Staged *staged) {
    const Reduce *reduce = &p->kernel->reduces.data[0];
    const ScalarId operands[] = {reduce->lhs, reduce->rhs};
    double prims = 0;
    if (dtype_bytes(gemm_operand_dtype(p->kernel)) != 2) return 0;
    for (int side = 0; side < 2; side++) {
        if (!staged->is_narrow[side]) continue;
        uint32_t axes = scalar_get(p->kernel->scalars, operands[side])->axes;
        double n = footprint_points(p->kernel, axes, c->values) * cost_gemm_reads(c, p, axes);
        prims += n * element_prims(c->arena, p->kernel, operands[side]);
    }
    return prims;
}

/* The time of staging operands. The blocks of a launch wait concurrently, each at its own steps, so
 * no block takes less. How much of it other blocks hide, if there are more than run at once, is not
 * measured. */
static double stage_us(const Coster *c, const Pricing *p, double prims_per_us) {
    Staged staged = staged_operands(c->arena, p->kernel, p->variant);
    double steps = ceil(p->reduced / p->variant->sched.gemm.tile_k);
    double waits = cost_gemm_share(c, p) * steps * step_wait_us(&staged);
    return fmax(waits, staged_prims(c, p, &staged) / prims_per_us);
}

/* On a card without tensor cores for the dtype, predicts fmas on CUDA cores. */
static void compute(const Coster *c, Pricing *p, double prims_per_us) {
    KernelCost *cost = p->cost;
    double rate = cost_mma_tflops(c->card, p->kernel) * 1e6;
    if (rate <= 0) {
        cost_gemms.compute(c, p, prims_per_us);
        return;
    }
    double use = sqrt(cost_gemm_use_of_busy(c, p, COST_BUSY_MMA_WARPS));
    cost->arithmetic_us = cost->n_prims / prims_per_us;
    cost->tensor_us = fmax(cost->n_flops / (rate * use * cost_gemm_balance(c, p)),
                           fmax(cost_gemm_least_us(c, p), stage_us(c, p, prims_per_us)));
}

/* Registers for the addresses of a thread's share of the operands. */
static double mma_places(const Kernel *kernel, const Sched *sched) {
    double size = REGS_MMA + (kernel->symbols ? REGS_MMA_OPEN : 0);
    bool has_steps = dim_hi(indextab_dims(scalartab_indices(kernel->scalars)),
                            kernel_n_reduced(kernel)) > sched->gemm.tile_k;
    return size + (has_steps ? REGS_MMA_STEPS : 0);
}

static double registers(const ThreadUse *use) {
    const Sched *sched = use->sched;
    double words = dtype_bytes(use->kernel->reduces.data[0].acc) / 4.0;
    double tile = words * sched->gemm.tile_m * sched->gemm.tile_n / sched->threads;
    if (dtype_in(gemm_operand_dtype(use->kernel), DTS_STORED)) tile *= 2;
    return cost_gemm_registers(use, REGS_MMA_SHARE * tile + mma_places(use->kernel, sched));
}

const TemplateCost cost_gpu_gemm_mma = {
    .base = &cost_gemms, .registers = registers, .compute = compute};
