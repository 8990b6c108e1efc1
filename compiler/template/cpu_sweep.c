/* See cpu_sweep.h. */
#include "template/cpu_sweep.h"

#include "machine/tuning.h"
#include "plan/access.h"

/* Puts the strips across in order: their rows lie `rest` behind a multiple of the stride. */
static void order_strips(CpuSweep *sweep) {
    const CpuStrips *across = &sweep->across;
    int64_t rest[INDEX_NEAR_STRIDE];
    for (uint32_t i = 0; i < across->n; i++) {
        int64_t at = across->first_tap[i] * across->step_by;
        rest[i] = at % across->step_of;
        sweep->later[i] = (uint32_t)(at / across->step_of);
        uint32_t place = i;
        for (; place > 0 && rest[sweep->order[place - 1]] > rest[i]; place--)
            sweep->order[place] = sweep->order[place - 1];
        sweep->order[place] = i;
    }
}

/* Whether the weights are elements of memory at equal distances along k and n. */
static bool find_weights(const Kernel *kernel, CpuSweep *sweep) {
    const IndexTab *tab = scalartab_indices(kernel->scalars);
    const Scalar *load = scalar_get(kernel->scalars, kernel->reduces.data[0].rhs);
    if (load->kind != SCALAR_LOAD || load->guard || index_is_gathered(tab, load->index) ||
        load->dtype != kernel->reduces.data[0].acc)
        return false;
    sweep->weight_k = index_stride_const(tab, load->index, gemm_axis_k(kernel));
    sweep->weight_n = index_stride_const(tab, load->index, gemm_axis_n(kernel));
    bool has_one =
        dim_equals_const(indextab_dims(tab), kernel_axis_extent(kernel, gemm_axis_n(kernel)), 1);
    return sweep->weight_k > 0 && (has_one || sweep->weight_n > 0);
}

uint32_t cpu_sweep_taps(const CpuSweep *sweep, uint32_t across) {
    uint32_t n = 0;
    for (int64_t tap = 0; tap < sweep->across.n_taps; tap++)
        n += sweep->across.strip_of[tap] == across;
    return n;
}

uint32_t cpu_sweep_tap(const CpuSweep *sweep, uint32_t across, uint32_t i) {
    uint32_t tap = sweep->across.first_tap[across];
    while (i > 0) i -= sweep->across.strip_of[++tap] == across;
    return tap;
}

bool cpu_sweep_find(Arena *arena, const Kernel *kernel, const CpuStrips *strips, CpuSweep *sweep) {
    const DimTab *dims = indextab_dims(scalartab_indices(kernel->scalars));
    uint32_t m = gemm_axis_m(kernel);
    if (m == 0 || cpu_strips_step(strips) < SCHED_CPU_SWEEP_STEPS) return false;
    sweep->axis = m - 1;
    if (!dim_is_const(dims, kernel_axis_extent(kernel, sweep->axis), &sweep->n_rows) ||
        !find_weights(kernel, sweep) ||
        !cpu_strips_outer(arena, kernel, kernel->reduces.data[0].lhs, sweep->axis, strips,
                          &sweep->across))
        return false;
    sweep->n_most = 0;
    for (uint32_t i = 0; i < sweep->across.n; i++) {
        uint32_t n = cpu_sweep_taps(sweep, i);
        if (n > sweep->n_most) sweep->n_most = n;
    }
    order_strips(sweep);
    return sweep->n_most > 1 && sweep->n_rows > sweep->across.reach;
}
