/* The wgmma instruction, for which LLVM has no intrinsic, and its matrix descriptors. See
 * wgmma.h. */
#include "codegen/gpu_gemm/wgmma.h"

/* Descriptors count in units of 16 bytes and have 14 bits for an address. */
enum {
    UNIT_SHIFT = 4,
    ADDRESS_MASK = 0x3FFF,
    STEP_BYTES = 32,
    ROW_STEPS = WGMMA_SWIZZLE_BYTES / STEP_BYTES /* of k in a row of a straight tile */
};
/* Units from 8 rows to the next 8. */
enum { ROWS_UNITS = 1024 >> UNIT_SHIFT };

/* Units from the tile's begin to step `step` of k: along a row and from one block of rows to the
 * next, or for a transposed tile as many rows as a step has 16-bit elements. */
static uint32_t step_units(const WgmmaLayout *layout, uint32_t step) {
    uint32_t rows = STEP_BYTES / 2;
    uint32_t bytes = layout->is_mn_major ? step * rows * WGMMA_SWIZZLE_BYTES
                                         : step / ROW_STEPS * layout->own * WGMMA_SWIZZLE_BYTES +
                                               step % ROW_STEPS * STEP_BYTES;
    return bytes >> UNIT_SHIFT;
}

/* The descriptor of a tile at `at` (ptr addrspace(3)). A transposed tile has a block of `depth`
 * rows after the other. */
Val wgmma_descriptor(const Codegen *k, const WgmmaLayout *layout, Val at) {
    uint64_t lead = layout->is_mn_major ? layout->depth * WGMMA_SWIZZLE_BYTES >> UNIT_SHIFT : 1;
    uint64_t fixed = UINT64_C(1) << 62 | lead << 16 | (uint64_t)ROWS_UNITS << 32;
    at = k_lshri(k, k_ptrtoint(k, at, k->i32), UNIT_SHIFT);
    at = k_zext(k, k_andi(k, at, ADDRESS_MASK), k->i64);
    return k_or(k, at, LLVMConstInt(k->i64, fixed, 0));
}

/* Calls inline assembly with `n` accumulators as inputs and outputs; `inputs` constrains the other
 * arguments. */
static void call_asm(const Codegen *k, const char *text, const char *inputs, const Val *accs,
                     uint32_t n, const Val *others, uint32_t n_others) {
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
const char *wgmma_operand_type(Dtype dtype) {
    switch (dtype_info(dtype)->mma) {
    case MMA_TF32:
        return "tf32";
    case MMA_BFLOAT:
        return "bf16";
    case MMA_S8:
        return "s8";
    case MMA_U8:
        return "u8";
    case MMA_E4M3:
        return "e4m3";
    case MMA_E5M2:
        return "e5m2";
    case MMA_HALF:
    case MMA_DOUBLE: /* has no wgmma */
    case MMA_NONE:
        break;
    }
    return "f16";
}

/* Prints the lhs of a step: a descriptor, or the registers `first` and the three after it. */
static void put_left(Text *text, const WgmmaProduct *product, uint32_t first) {
    if (!product->registers)
        text_puts(text, "a");
    else
        text_printf(text, "{$%u,$%u,$%u,$%u}", first, first + 1, first + 2, first + 3);
}

void wgmma_product(const Codegen *k, const WgmmaProduct *product) {
    const Dtype dtype = product->dtypes[1];
    uint32_t n = product->width / 2, step_elems = STEP_BYTES / dtype_bytes(dtype);
    uint32_t n_left = product->registers ? 4 * product->n_steps : 1;
    bool is_int = dtype_is_int(dtype); /* such operands have no signs to choose */
    Text text = {.arena = k->arena}, inputs = {.arena = k->arena};
    Val *others = arena_array(k->arena, Val, n_left + 1);
    text_puts(&text, "{ .reg .b64 a, b; wgmma.fence.sync.aligned; ");
    for (uint32_t step = 0; step < product->n_steps; step++) {
        if (!product->registers)
            text_printf(&text, "add.s64 a, $%u, %u; ", n, step_units(&product->left, step));
        text_printf(&text, "add.s64 b, $%u, %u; ", n + n_left, step_units(&product->right, step));
        text_printf(&text, "wgmma.mma_async.sync.aligned.m64n%uk%u.%s.%s.%s {", product->width,
                    step_elems, is_int ? "s32" : "f32", wgmma_operand_type(product->dtypes[0]),
                    wgmma_operand_type(dtype));
        for (uint32_t i = 0; i < n; i++) text_printf(&text, i ? ",$%u" : "$%u", i);
        text_puts(&text, "}, ");
        put_left(&text, product, n + 4 * step);
        text_printf(&text, ", b, %d", step > 0 || !product->begins);
        if (!is_int) text_puts(&text, ", 1, 1");
        if (dtype_bytes(dtype) == 2 && !product->registers)
            text_printf(&text, ", %d", product->left.is_mn_major);
        if (dtype_bytes(dtype) == 2) text_printf(&text, ", %d", product->right.is_mn_major);
        text_puts(&text, "; ");
    }
    text_puts(&text, "wgmma.commit_group.sync.aligned; }");
    for (uint32_t i = 0; i < n_left; i++) {
        others[i] = product->registers ? product->registers[i] : product->left_descriptor;
        text_puts(&inputs, product->registers ? "r," : "l,");
    }
    others[n_left] = product->right_descriptor;
    text_puts(&inputs, "l,");
    call_asm(k, text_str(&text), text_str(&inputs), product->accs, n, others, n_left + 1);
}

/* A side's tile in a stage; of the lhs, this warpgroup's 64 rows. */
static WgmmaLayout layout_of(const Wgmma *w, const WgmmaSide *side) {
    return (WgmmaLayout){side->is_mn_major, side->tile, wgmma_depth(w->dtype)};
}

static Val side_at(const Wgmma *w, const WgmmaSide *side, Val stage) {
    const Codegen *k = w->k;
    Val at = k_addi(k, k_muli(k, stage, w->stage_bytes), side->begin_bytes);
    if (side == &w->sides[0]) { /* 64 rows of a straight tile have as many bytes as a block of a
                                 * transposed one */
        at = k_add(k, at, k_muli(k, w->group, (int64_t)WGMMA_ROWS * WGMMA_SWIZZLE_BYTES));
    }
    return wgmma_at(w, at);
}

void wgmma_multiply(const Wgmma *w, Val stage, const Val *accs, bool begins) {
    WgmmaProduct product = {.dtypes = {w->left_dtype, w->dtype},
                            .width = w->width,
                            .n_steps = ROW_STEPS,
                            .begins = begins,
                            .left = layout_of(w, &w->sides[0]),
                            .right = layout_of(w, &w->sides[1]),
                            .accs = accs};
    product.left_descriptor =
        wgmma_descriptor(w->k, &product.left, side_at(w, &w->sides[0], stage));
    product.right_descriptor =
        wgmma_descriptor(w->k, &product.right, side_at(w, &w->sides[1], stage));
    wgmma_product(w->k, &product);
}

void wgmma_await(const Codegen *k, uint32_t n_groups, const Val *accs, uint32_t n) {
    const char *text = str_format(k->arena, "wgmma.wait_group.sync.aligned %u;", n_groups);
    call_asm(k, text, "", accs, n, NULL, 0);
}

void wgmma_finish(const Wgmma *w, const Val *accs) {
    wgmma_await(w->k, 0, accs, w->width / 2);
}
