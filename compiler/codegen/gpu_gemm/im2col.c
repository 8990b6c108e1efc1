/* See im2col.h. */
#include "codegen/gpu_gemm/im2col.h"

/* Selects number(tap) of the tap that contains k. */
static Val of_tap(const Codegen *k, const WindowsCopy *copy,
                  uint32_t number(const Im2col *, const Im2colTap *)) {
    const Im2col *windows = copy->windows;
    Val chosen = k_i32(k, number(windows, &windows->taps[0]));
    for (uint32_t t = 1; t < windows->n_taps; t++) {
        Val is_in = k_ugei(k, copy->k, (uint32_t)windows->taps[t].first);
        chosen = k_select(k, is_in, k_i32(k, number(windows, &windows->taps[t])), chosen);
    }
    return chosen;
}

/* The offset from k to the channel. */
static uint32_t channel_less_k(const Im2col *windows, const Im2colTap *tap) {
    (void)windows;
    return (uint32_t)(tap->channel - tap->first);
}

/* Bits of one spatial offset; an instruction has 16 bits for all offsets of a tap. */
static uint32_t offset_bits(const Im2col *windows) {
    return 16 / windows->n_spatial;
}

static uint32_t all_offsets(const Im2col *windows, const Im2colTap *tap) {
    uint32_t all = 0;
    for (uint32_t i = 0; i < windows->n_spatial; i++)
        all |= tap->offsets[i] << (offset_bits(windows) * i);
    return all;
}

/* Computes the row's pixel along each spatial axis, and its image. */
static uint32_t add_pixel(const Codegen *k, const WindowsCopy *copy, Val *args) {
    const Im2col *windows = copy->windows;
    Val rest = copy->row;
    for (uint32_t i = 0; i < windows->n_spatial; i++) {
        const Im2colAxis *axis = &windows->axes[i];
        Val n = k_i32(k, (uint32_t)axis->n);
        Val at = k_muli(k, k_urem(k, rest, n), (uint32_t)axis->step);
        args[i] = k_addi(k, at, (uint32_t)axis->lower);
        rest = k_udiv(k, rest, n);
    }
    args[windows->n_spatial] = rest;
    return windows->n_spatial + 1;
}

void gpu_im2col_copy(const Codegen *k, const WindowsCopy *copy) {
    static const char *const names[] = {[1] = "llvm.nvvm.cp.async.bulk.tensor.g2s.im2col.3d",
                                        [2] = "llvm.nvvm.cp.async.bulk.tensor.g2s.im2col.4d",
                                        [3] = "llvm.nvvm.cp.async.bulk.tensor.g2s.im2col.5d"};
    uint32_t n = 0, n_spatial = copy->windows->n_spatial;
    LLVMTypeRef i16 = k->i16;
    Val args[4 + 2 * IM2COL_MAX_SPATIAL + 7];
    args[n++] = k_addrspace_cast(k, copy->to, LLVMPointerTypeInContext(k->context, 7));
    args[n++] = copy->barrier;
    args[n++] = copy->map;
    Val less = of_tap(k, copy, channel_less_k);
    args[n++] = k_add(k, copy->k, less);
    n += add_pixel(k, copy, args + n);
    Val offsets = of_tap(k, copy, all_offsets);
    uint32_t bits = offset_bits(copy->windows);
    for (uint32_t i = 0; i < n_spatial; i++) {
        Val own = k_andi(k, k_lshri(k, offsets, bits * i), (1u << bits) - 1);
        args[n++] = k_trunc(k, own, i16);
    }
    args[n++] = k_int(i16, 0); /* the multicast mask: this block alone */
    args[n++] = k_int(k->i64, 0);
    args[n++] = k_int(k->i1, false);
    args[n++] = k_int(k->i1, false);
    args[n++] = k_i32(k, 0);
    k_intrinsic(k, names[n_spatial], args, n);
}
