/* See im2col.h. */
#include "codegen/gpu_gemm/im2col.h"

/* Chooses the number of the tap that k is in. */
static LLVMValueRef of_tap(const Unit *unit, const WindowsCopy *copy,
                           uint32_t number(const Im2col *, const Im2colTap *)) {
    const Im2col *windows = copy->windows;
    LLVMValueRef chosen = unit_i32(unit, number(windows, &windows->taps[0]));
    for (uint32_t t = 1; t < windows->n_taps; t++) {
        LLVMValueRef first = unit_i32(unit, (uint32_t)windows->taps[t].first);
        LLVMValueRef is_in = LLVMBuildICmp(unit->builder, LLVMIntUGE, copy->k, first, "");
        LLVMValueRef own = unit_i32(unit, number(windows, &windows->taps[t]));
        chosen = LLVMBuildSelect(unit->builder, is_in, own, chosen, "");
    }
    return chosen;
}

/* Added to k it is the channel. */
static uint32_t channel_less_k(const Im2col *windows, const Im2colTap *tap) {
    (void)windows;
    return (uint32_t)(tap->channel - tap->first);
}

/* Bits of an offset among all of a tap: as many as instructions take. */
static uint32_t offset_bits(const Im2col *windows) {
    return 16 / windows->n_spatial;
}

static uint32_t all_offsets(const Im2col *windows, const Im2colTap *tap) {
    uint32_t all = 0;
    for (uint32_t i = 0; i < windows->n_spatial; i++)
        all |= tap->offsets[i] << (offset_bits(windows) * i);
    return all;
}

/* The row's own pixel along each axis, and its image. */
static uint32_t add_pixel(const Unit *unit, const WindowsCopy *copy, LLVMValueRef *args) {
    LLVMBuilderRef builder = unit->builder;
    const Im2col *windows = copy->windows;
    LLVMValueRef rest = copy->row;
    for (uint32_t i = 0; i < windows->n_spatial; i++) {
        const Im2colAxis *axis = &windows->axes[i];
        LLVMValueRef n = unit_i32(unit, (uint32_t)axis->n);
        LLVMValueRef at = LLVMBuildURem(builder, rest, n, "");
        at = LLVMBuildMul(builder, at, unit_i32(unit, (uint32_t)axis->step), "");
        args[i] = LLVMBuildAdd(builder, at, unit_i32(unit, (uint32_t)axis->lower), "");
        rest = LLVMBuildUDiv(builder, rest, n, "");
    }
    args[windows->n_spatial] = rest;
    return windows->n_spatial + 1;
}

void gpu_im2col_copy(const Unit *unit, const WindowsCopy *copy) {
    static const char *const names[] = {[1] = "llvm.nvvm.cp.async.bulk.tensor.g2s.im2col.3d",
                                        [2] = "llvm.nvvm.cp.async.bulk.tensor.g2s.im2col.4d",
                                        [3] = "llvm.nvvm.cp.async.bulk.tensor.g2s.im2col.5d"};
    LLVMBuilderRef builder = unit->builder;
    uint32_t n = 0, n_spatial = copy->windows->n_spatial;
    LLVMTypeRef cluster_ptr = LLVMPointerTypeInContext(unit->context, 7);
    LLVMTypeRef i16 = LLVMInt16TypeInContext(unit->context);
    LLVMValueRef args[4 + 2 * IM2COL_MAX_SPATIAL + 7];
    args[n++] = LLVMBuildAddrSpaceCast(builder, copy->to, cluster_ptr, "");
    args[n++] = copy->barrier;
    args[n++] = copy->map;
    LLVMValueRef less = of_tap(unit, copy, channel_less_k);
    args[n++] = LLVMBuildAdd(builder, copy->k, less, "");
    n += add_pixel(unit, copy, args + n);
    LLVMValueRef offsets = of_tap(unit, copy, all_offsets);
    uint32_t bits = offset_bits(copy->windows);
    for (uint32_t i = 0; i < n_spatial; i++) {
        LLVMValueRef own = LLVMBuildLShr(builder, offsets, unit_i32(unit, bits * i), "");
        own = LLVMBuildAnd(builder, own, unit_i32(unit, (1u << bits) - 1), "");
        args[n++] = LLVMBuildTrunc(builder, own, i16, "");
    }
    args[n++] = unit_int(i16, 0); /* the own block alone */
    args[n++] = unit_int(unit->i64, 0);
    args[n++] = unit_int(unit->i1, false);
    args[n++] = unit_int(unit->i1, false);
    args[n++] = unit_i32(unit, 0);
    unit_intrinsic(unit, names[n_spatial], NULL, 0, args, n);
}
