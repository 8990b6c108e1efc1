/* Common subexpression elimination. See ptx.h.
 *
 * Templates compute an index wherever they need it. ptxas finds equal computations only inside a
 * basic block, and a longer text takes it longer. */
#include "codegen/ptx/ptx.h"

#include <string.h>

enum { MAX_OPERANDS = 5 };

/* The identity of an instruction: two instructions with equal keys compute the same value. */
typedef struct Key {
    LLVMOpcode op;
    uint32_t n_operands;
    const void *type;
    const void *detail; /* for example a comparison's predicate or a GEP's element type */
    const void *operands[MAX_OPERANDS];
} Key;

typedef struct Computed {
    Key key;
    LLVMValueRef instruction;
    const PtxBlock *block; /* of the instruction */
    struct Computed *next;
} Computed;

static bool is_pure(Ptx *ptx, LLVMValueRef instruction) {
    switch (LLVMGetInstructionOpcode(instruction)) {
    case LLVMCall:
        return ptx_is_pure_call(ptx, instruction);
    case LLVMLoad:
    case LLVMStore:
    case LLVMAlloca:
    case LLVMPHI:
    case LLVMShuffleVector: /* the mask of a shuffle is no operand */
        return false;
    default:
        return !LLVMIsATerminatorInst(instruction);
    }
}

static const void *detail_of(LLVMValueRef instruction) {
    switch (LLVMGetInstructionOpcode(instruction)) {
    case LLVMICmp:
        return (const void *)(uintptr_t)LLVMGetICmpPredicate(instruction);
    case LLVMFCmp:
        return (const void *)(uintptr_t)LLVMGetFCmpPredicate(instruction);
    case LLVMGetElementPtr:
        return LLVMGetGEPSourceElementType(instruction);
    case LLVMExtractValue:
        return (const void *)(uintptr_t)LLVMGetIndices(instruction)[0];
    default:
        return NULL;
    }
}

static bool make_key(const Ptx *ptx, LLVMValueRef instruction, Key *key) {
    *key = (Key){.op = LLVMGetInstructionOpcode(instruction),
                 .n_operands = (uint32_t)LLVMGetNumOperands(instruction),
                 .type = LLVMTypeOf(instruction),
                 .detail = detail_of(instruction)};
    if (key->n_operands > MAX_OPERANDS) return false;
    for (uint32_t i = 0; i < key->n_operands; i++) {
        LLVMValueRef operand = LLVMGetOperand(instruction, i);
        const void *first = ptx_map_find(&ptx->first, operand);
        key->operands[i] = first ? first : operand;
    }
    return true;
}

static bool is_equal(const Key *a, const Key *b) {
    if (a->op != b->op || a->n_operands != b->n_operands || a->type != b->type) return false;
    if (a->detail != b->detail) return false;
    return !memcmp(a->operands, b->operands, a->n_operands * sizeof *a->operands);
}

static const void *hash_of(const Key *key) {
    uint64_t hash = key->op;
    for (uint32_t i = 0; i < key->n_operands; i++)
        hash = (hash ^ (uint64_t)(uintptr_t)key->operands[i]) * UINT64_C(0x9e3779b97f4a7c15);
    return (const void *)(uintptr_t)((hash ^ (uint64_t)(uintptr_t)key->detail) | 1);
}

static bool dominates(const PtxBlock *a, const PtxBlock *b) {
    while (b && b->label > a->label) b = b->dominator;
    return a == b;
}

bool ptx_is_same(Ptx *ptx, LLVMValueRef instruction, bool is_free) {
    Key key;
    if (!is_pure(ptx, instruction) || !make_key(ptx, instruction, &key)) return false;
    const void *hash = hash_of(&key);
    Computed *known = ptx_map_find(&ptx->same, hash);
    for (Computed *other = known; other; other = other->next) {
        if (!is_equal(&key, &other->key)) continue;
        if (!dominates(other->block, ptx->here)) continue;
        PtxPart *parts = ptx_map_find(&ptx->parts, other->instruction);
        if (!parts && !is_free) continue;
        ptx_map_add(ptx->arena, &ptx->first, instruction, other->instruction);
        if (parts) ptx_set_parts(ptx, instruction, parts);
        return true;
    }
    Computed *own = arena_array(ptx->arena, Computed, 1);
    *own = (Computed){.key = key, .instruction = instruction, .block = ptx->here, .next = known};
    ptx_map_add(ptx->arena, &ptx->same, hash, own);
    return false;
}
