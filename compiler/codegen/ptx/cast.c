/* Conversions. See ptx.h. */
#include "codegen/ptx/ptx.h"

/* Conversions of one lane. A cast without text keeps the register. */

typedef struct Cast {
    LLVMOpcode op;
    PtxElement from, to;
    const char *text;
} Cast;

static const Cast casts[] = {
#define PTX_CAST(op, from, to, text) {LLVM##op, PTX_##from, PTX_##to, text},
#include "codegen/ptx/casts.def"
};

static const Cast *find_cast(const Ptx *ptx, LLVMValueRef instruction, PtxElement from,
                             PtxElement to) {
    LLVMOpcode op = LLVMGetInstructionOpcode(instruction);
    for (uint32_t i = 0; i < sizeof casts / sizeof *casts; i++)
        if (casts[i].op == op && casts[i].from == from && casts[i].to == to) return &casts[i];
    ptx_ice(ptx, "", instruction);
}

/* Converts two f32 lanes to one register with two 16-bit floats. */
static void put_narrow_pairs(Ptx *ptx, LLVMValueRef instruction, PtxType type,
                             const PtxPart *lanes) {
    const char *text = type.element == PTX_F16 ? "cvt.rn.f16x2.f32 $0, $r2, $r1;"
                                               : "cvt.rn.bf16x2.f32 $0, $r2, $r1;";
    PtxPart *to = arena_array(ptx->arena, PtxPart, type.n_parts);
    for (uint32_t i = 0; i < type.n_parts; i++)
        to[i] = ptx_do(ptx, NULL, text, PTX_32, lanes + 2 * i, 2);
    ptx_set_parts(ptx, instruction, to);
}

static void put_conversion(Ptx *ptx, LLVMValueRef instruction) {
    LLVMValueRef operand = LLVMGetOperand(instruction, 0);
    PtxType from = ptx_type_of(ptx, operand), to = ptx_type_of(ptx, instruction);
    const PtxPart *lanes = ptx_lanes(ptx, from, ptx_parts(ptx, operand));
    const Cast *cast = find_cast(ptx, instruction, from.element, to.element);
    if (cast->op == LLVMFPTrunc && to.is_packed) {
        put_narrow_pairs(ptx, instruction, to, lanes);
        return;
    }
    PtxPart *made = arena_array(ptx->arena, PtxPart, to.n_lanes);
    for (uint32_t i = 0; i < to.n_lanes; i++)
        made[i] = cast->text
                      ? ptx_do(ptx, NULL, cast->text, ptx_element(to.element)->class, &lanes[i], 1)
                      : lanes[i];
    ptx_set_parts(ptx, instruction, ptx_join_lanes(ptx, to, made));
}

/* Whether the lanes are integers of 8 or 16 bits, which have a register each, and fill words. */
static bool is_small(PtxType type) {
    uint32_t bits = ptx_element(type.element)->bits;
    return (type.element == PTX_I8 || type.element == PTX_I16) && type.n_lanes * bits % 32 == 0;
}

/* The 32-bit words of small lanes. */
static PtxPart *join_small(Ptx *ptx, PtxType type, const PtxPart *lanes) {
    uint32_t n_each = 32 / ptx_element(type.element)->bits, n = type.n_lanes / n_each;
    PtxPart *words = arena_array(ptx->arena, PtxPart, n);
    for (uint32_t i = 0; i < n; i++) {
        const PtxPart *own = lanes + (size_t)i * n_each;
        words[i] = n_each == 4 ? ptx_word_of_bytes(ptx, own)
                               : ptx_do(ptx, NULL, "mov.b32 $0, {$r1, $r2};", PTX_32, own, 2);
    }
    return words;
}

static PtxPart *split_small(Ptx *ptx, PtxType type, const PtxPart *words) {
    uint32_t bits = ptx_element(type.element)->bits, n_each = 32 / bits;
    PtxPart *lanes = ptx_new_parts(ptx, type);
    for (uint32_t i = 0; i < type.n_lanes; i += n_each)
        if (bits == 16)
            ptx_put(ptx, NULL, "mov.b32 {$0, $1}, $r2;",
                    (PtxPart[]){lanes[i], lanes[i + 1], words[i / 2]});
        else
            for (uint32_t j = 0; j < 4; j++)
                ptx_put(ptx, NULL, "bfe.u32 $0, $1, $2, 8;",
                        (PtxPart[]){lanes[i + j], words[i / 4], ptx_number(PTX_32, 8 * j)});
    return lanes;
}

/* Reinterprets bits. The parts keep their registers, or two 32-bit registers become one 64-bit
 * register, or the reverse. */
static void put_bit_cast(Ptx *ptx, LLVMValueRef instruction) {
    LLVMValueRef operand = LLVMGetOperand(instruction, 0);
    PtxType from = ptx_type_of(ptx, operand), to = ptx_type_of(ptx, instruction);
    PtxPart *parts = ptx_parts(ptx, operand), *made;
    PtxClass narrow = ptx_part_class(from), wide = ptx_part_class(to);
    if (from.element != to.element && is_small(from) && wide == PTX_32 && !is_small(to)) {
        made = join_small(ptx, from, parts);
    } else if (from.element != to.element && is_small(to) && narrow == PTX_32 && !is_small(from)) {
        made = split_small(ptx, to, parts);
    } else if (from.n_parts == 2 * to.n_parts && narrow == PTX_32 && wide == PTX_64) {
        made = arena_array(ptx->arena, PtxPart, to.n_parts);
        for (uint32_t i = 0; i < to.n_parts; i++)
            made[i] =
                ptx_do(ptx, NULL, "mov.b64 $0, {$r1, $r2};", PTX_64, parts + 2 * (size_t)i, 2);
    } else if (to.n_parts == 2 * from.n_parts && narrow == PTX_64 && wide == PTX_32) {
        made = ptx_new_parts(ptx, to);
        for (uint32_t i = 0; i < from.n_parts; i++)
            ptx_put(ptx, NULL, "mov.b64 {$0, $1}, $r2;",
                    (PtxPart[]){made[2 * i], made[2 * i + 1], parts[i]});
    } else if (from.n_parts != to.n_parts || narrow != wide) {
        ptx_ice(ptx, "", instruction);
    } else {
        made = arena_copy(ptx->arena, parts, to.n_parts * sizeof *parts);
        for (uint32_t i = 0; i < to.n_parts; i++) /* an immediate is printed as its new type */
            made[i].is_float = ptx_element(to.element)->suffix != NULL;
    }
    ptx_set_parts(ptx, instruction, made);
}

bool ptx_put_cast(Ptx *ptx, LLVMValueRef instruction) {
    LLVMOpcode op = LLVMGetInstructionOpcode(instruction);
    if (op == LLVMBitCast)
        put_bit_cast(ptx, instruction);
    else if (LLVMIsACastInst(instruction))
        put_conversion(ptx, instruction);
    else
        return false;
    return true;
}
