/* Extraction and insertion of vector lanes, and of the fields that calls return. See ptx.h. */
#include "codegen/ptx/ptx.h"

static void put_extract(Ptx *ptx, LLVMValueRef instruction) {
    LLVMValueRef vector = LLVMGetOperand(instruction, 0), at = LLVMGetOperand(instruction, 1);
    if (!LLVMIsAConstantInt(at)) ptx_ice(ptx, "", instruction);
    PtxPart *lane = arena_array(ptx->arena, PtxPart, 1);
    uint32_t i = (uint32_t)LLVMConstIntGetZExtValue(at);
    *lane = ptx_lane(ptx, ptx_type_of(ptx, vector), ptx_parts(ptx, vector), i);
    ptx_set_parts(ptx, instruction, lane);
}

static void put_insert(Ptx *ptx, LLVMValueRef instruction) {
    LLVMValueRef at = LLVMGetOperand(instruction, 2);
    if (!LLVMIsAConstantInt(at)) ptx_ice(ptx, "", instruction);
    PtxType type = ptx_type_of(ptx, instruction);
    const PtxPart *old = ptx_parts(ptx, LLVMGetOperand(instruction, 0));
    const PtxPart *value = ptx_parts(ptx, LLVMGetOperand(instruction, 1));
    uint32_t i = (uint32_t)LLVMConstIntGetZExtValue(at);
    PtxPart *parts = arena_copy(ptx->arena, old, type.n_parts * sizeof *parts);
    if (!type.is_packed) {
        parts[i] = *value;
    } else {
        PtxType pair = {.element = type.element, .n_lanes = 2, .n_parts = 1, .is_packed = true};
        PtxPart *halves = ptx_lanes(ptx, pair, &parts[i / 2]);
        halves[i % 2] = *value;
        parts[i / 2] = *ptx_join_lanes(ptx, pair, halves);
    }
    ptx_set_parts(ptx, instruction, parts);
}

static void put_shuffle(Ptx *ptx, LLVMValueRef instruction) {
    LLVMValueRef x = LLVMGetOperand(instruction, 0), y = LLVMGetOperand(instruction, 1);
    PtxType from = ptx_type_of(ptx, x), to = ptx_type_of(ptx, instruction);
    const PtxPart *x_lanes = ptx_lanes(ptx, from, ptx_parts(ptx, x));
    const PtxPart *y_lanes = ptx_lanes(ptx, from, ptx_parts(ptx, y));
    PtxPart *lanes = arena_array(ptx->arena, PtxPart, to.n_lanes);
    for (uint32_t i = 0; i < to.n_lanes; i++) {
        int at = LLVMGetMaskValue(instruction, i), n = (int)from.n_lanes;
        lanes[i] = (PtxPart){.kind = PTX_NOTHING, .class = ptx_element(to.element)->class};
        if (at != LLVMGetUndefMaskElem()) lanes[i] = at < n ? x_lanes[at] : y_lanes[at - n];
    }
    ptx_set_parts(ptx, instruction, ptx_join_lanes(ptx, to, lanes));
}

/* A struct returned by a call has one part for each field. */
static void put_field(Ptx *ptx, LLVMValueRef instruction) {
    PtxPart *fields = ptx_parts(ptx, LLVMGetOperand(instruction, 0));
    ptx_set_parts(ptx, instruction, fields + LLVMGetIndices(instruction)[0]);
}

bool ptx_put_lanes(Ptx *ptx, LLVMValueRef instruction) {
    LLVMOpcode op = LLVMGetInstructionOpcode(instruction);
    if (op == LLVMExtractElement)
        put_extract(ptx, instruction);
    else if (op == LLVMInsertElement)
        put_insert(ptx, instruction);
    else if (op == LLVMShuffleVector)
        put_shuffle(ptx, instruction);
    else if (op == LLVMExtractValue)
        put_field(ptx, instruction);
    else
        return false;
    return true;
}
