/* The wgmma instruction, for which LLVM has no intrinsic, and its matrix descriptors. See
 * wgmma.h. */
#include "codegen/gpu_gemm/wgmma.h"

/* Descriptors count in units of 16 bytes and have 14 bits for an address. */
enum {
    UNIT_SHIFT = 4,
    ADDRESS_MASK = 0x3FFF,
    STEP_BYTES = 32,
    STEPS = WGMMA_SWIZZLE_BYTES / STEP_BYTES
};
/* Units from 8 rows to the next 8, and from one block of a transposed tile to the next. */
enum { ROWS_UNITS = 1024 >> UNIT_SHIFT, BLOCK_UNITS = 8192 >> UNIT_SHIFT };

/* Units from one k step of the instruction to the next: along a row, or for a transposed tile as
 * many rows as a step has 16-bit elements. */
static uint32_t step_units(const WgmmaSide *side) {
    uint32_t rows = STEP_BYTES / 2;
    return (side->is_mn_major ? rows * WGMMA_SWIZZLE_BYTES : STEP_BYTES) >> UNIT_SHIFT;
}

static Val descriptor(const Wgmma *w, const WgmmaSide *side, Val stage) {
    const Codegen *k = w->k;
    bool is_left = side == &w->sides[0];
    Val at = k_addi(k, k_muli(k, stage, w->stage_bytes), side->begin_bytes);
    if (is_left) { /* 64 rows of a straight tile have as many bytes as a block of a transposed
                    * one */
        at = k_add(k, at, k_muli(k, w->group, (int64_t)WGMMA_ROWS * WGMMA_SWIZZLE_BYTES));
    }
    Val base = k_ptrtoint(k, w->shared, k->i32);
    at = k_lshri(k, k_add(k, base, at), UNIT_SHIFT);
    at = k_andi(k, at, ADDRESS_MASK);
    uint64_t lead = side->is_mn_major ? BLOCK_UNITS : 1, fixed = UINT64_C(1) << 62;
    fixed |= lead << 16 | (uint64_t)ROWS_UNITS << 32;
    at = k_zext(k, at, k->i64);
    return k_or(k, at, LLVMConstInt(k->i64, fixed, 0));
}

/* Calls inline assembly with `n` accumulators as inputs and outputs; `inputs` constrains the other
 * arguments. */
static void call_asm(const Wgmma *w, const char *text, const char *inputs, const Val *accs,
                     uint32_t n, const Val *others, uint32_t n_others) {
    const Codegen *k = w->k;
    Text constraints = {.arena = k->arena};
    Val *args = arena_array(k->arena, Val, n + n_others);
    for (uint32_t i = 0; i < n + n_others; i++) {
        args[i] = i < n ? accs[i] : others[i - n];
        if (i < n) text_puts(&constraints, "r,");
    }
    text_printf(&constraints, "%s~{memory}", inputs);
    k_asm(k, k->void_type, text, text_str(&constraints), args, n + n_others, true);
}

/* The type of the instruction. f32 elements are tf32 after the copy. Only 16-bit elements can be
 * transposed. */
static const char *operand_type(Dtype dtype) {
    switch (dtype_info(dtype)->mma) {
    case MMA_TF32:
        return "tf32";
    case MMA_BFLOAT:
        return "bf16";
    case MMA_S8:
        return "s8";
    case MMA_U8:
        return "u8";
    case MMA_HALF:
    case MMA_DOUBLE: /* has no wgmma */
    case MMA_NONE:
        break;
    }
    return "f16";
}

void wgmma_multiply(const Wgmma *w, Val stage, const Val *accs) {
    uint32_t n = w->width / 2, step_elems = STEP_BYTES / dtype_bytes(w->dtype);
    const char *dtype = operand_type(w->dtype);
    bool is_int = dtype_is_int(w->dtype); /* such operands have no signs to choose */
    Text text = {.arena = w->k->arena};
    text_puts(&text, "{ .reg .b64 a, b; wgmma.fence.sync.aligned; ");
    for (uint32_t step = 0; step < STEPS; step++) {
        text_printf(&text, "add.s64 a, $%u, %u; add.s64 b, $%u, %u; ", n,
                    step * step_units(&w->sides[0]), n + 1, step * step_units(&w->sides[1]));
        text_printf(&text, "wgmma.mma_async.sync.aligned.m64n%uk%u.%s.%s.%s {", w->width,
                    step_elems, is_int ? "s32" : "f32", dtype, dtype);
        for (uint32_t i = 0; i < n; i++) text_printf(&text, i ? ",$%u" : "$%u", i);
        text_puts(&text, is_int ? "}, a, b, 1" : "}, a, b, 1, 1, 1");
        if (dtype_bytes(w->dtype) == 2)
            text_printf(&text, ", %d, %d", w->sides[0].is_mn_major, w->sides[1].is_mn_major);
        text_puts(&text, "; ");
    }
    text_puts(&text, "wgmma.commit_group.sync.aligned; }");
    Val descriptors[2] = {descriptor(w, &w->sides[0], stage), descriptor(w, &w->sides[1], stage)};
    call_asm(w, text_str(&text), "l,l,", accs, n, descriptors, 2);
}

void wgmma_finish(const Wgmma *w, const Val *accs) {
    call_asm(w, "wgmma.wait_group.sync.aligned 0;", "", accs, w->width / 2, NULL, 0);
}
