/* See cpu_amx.h. */
#include "template/cpu_amx.h"

static Dtype dtype_of(const Kernel *kernel, ScalarId operand) {
    return scalar_get(kernel->scalars, operand)->dtype;
}

bool cpu_amx_multiplies(const Kernel *kernel, bool is_fast) {
    const Reduce *reduce = &kernel->reduces.data[0];
    Dtype left = dtype_of(kernel, reduce->lhs), right = dtype_of(kernel, reduce->rhs);
    if (dtype_bytes(reduce->acc) != sizeof(int32_t)) return false;
    if (dtype_is_int(reduce->acc)) return dtype_in(left, DTS_BYTE) && dtype_in(right, DTS_BYTE);
    return is_fast && dtype_is_bfloat(left) && dtype_is_bfloat(right);
}
