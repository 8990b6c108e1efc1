/* See mma.h. */
#include "cost/kernel/mma.h"
#include "machine/machine.h"
#include "machine/tuning.h"

#include "plan/operand.h"

/* Whether wide accesses fetch all that the operand is computed from. */
static bool is_wide(Arena *arena, const Kernel *gemm, bool is_left) {
    const Reduce *reduce = &gemm->reduces.data[0];
    IndexTab *tab = scalartab_indices(gemm->scalars);
    uint32_t axes[] = {gemm_axis_k(gemm), is_left ? gemm_axis_m(gemm) : gemm_axis_n(gemm)};
    ScalarId factor = is_left ? reduce->value : reduce->factor;
    const bool *reached = scalar_reached(arena, gemm->scalars, factor);
    for (ScalarId id = 1; id <= factor; id++) {
        const Scalar *s = scalar_get(gemm->scalars, id);
        if (!reached[id] || s->kind != SCALAR_LOAD) continue;
        bool fits = index_lane_motion(tab, s->index, axes[0], 2) != LANES_CONTIGUOUS &&
                    index_lane_motion(tab, s->index, axes[1], 2) != LANES_CONTIGUOUS;
        for (uint32_t i = 0; i < 2 && !fits; i++)
            fits = index_lane_motion(tab, s->index, axes[i], 2) == LANES_CONTIGUOUS &&
                   index_is_multiple(tab, s->index, axes[i], ACCESS_BYTES / dtype_bytes(s->dtype));
        if (!fits) return false;
    }
    return true;
}

double cost_mma_fetch_step_us(Arena *arena, const Kernel *gemm, const Variant *variant) {
    IndexTab *tab = scalartab_indices(gemm->scalars);
    uint32_t n_fetched = 0, n_narrow = 0;
    predicate_assume(&variant->predicate, tab);
    for (int is_left = 0; is_left < 2; is_left++) {
        OperandRows rows = gemm_operand_rows(gemm, is_left);
        if (rows.is_plain && rows.fit) continue;
        n_fetched++;
        n_narrow += !is_wide(arena, gemm, is_left);
    }
    predicate_assume(NULL, tab);
    return n_fetched ? COST_MMA_WAIT_US + COST_MMA_ELEMENTS_US * n_narrow : 0;
}
