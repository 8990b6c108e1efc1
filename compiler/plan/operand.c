/* See operand.h. */
#include "plan/operand.h"
#include "machine/machine.h"

ScalarId *gemm_operand(const Kernel *gemm, bool is_left) {
    Reduce *reduce = &gemm->reduces.data[0];
    return is_left ? &reduce->lhs : &reduce->rhs;
}

OperandRows gemm_operand_rows(const Kernel *gemm, bool is_left) {
    ScalarId operand = gemm_unrounded(gemm, *gemm_operand(gemm, is_left));
    const Scalar *s = scalar_get(gemm->scalars, operand);
    IndexTab *tab = scalartab_indices(gemm->scalars);
    uint32_t k = gemm_axis_k(gemm);
    OperandRows rows = {.axis = is_left ? gemm_axis_m(gemm) : gemm_axis_n(gemm),
                        .elem_bytes = dtype_bytes(s->dtype)};
    if (s->kind != SCALAR_LOAD || s->guard) return rows;
    bool is_along_k = index_lane_motion(tab, s->index, k, 2) == LANES_CONTIGUOUS;
    rows.inner = is_along_k ? k : rows.axis;
    rows.is_plain =
        is_along_k || index_lane_motion(tab, s->index, rows.axis, 2) == LANES_CONTIGUOUS;
    rows.extent = index_axis_extent(tab, rows.inner);
    rows.fit = rows.is_plain &&
               index_is_multiple(tab, s->index, rows.inner, ACCESS_BYTES / rows.elem_bytes);
    return rows;
}
