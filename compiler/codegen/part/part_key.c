/* See part_key.h. The words have all that an instruction has: its opcode, type, operands, flags,
 * and what only instructions of its opcode have. */
#include "codegen/part/part_key.h"

#include "base/hashids.h"

#include <string.h>

typedef struct KeyWriter {
    const Codegen *k;
    VecU32 *key;
    HashIds locals; /* parameters, blocks and instructions in order, by hashes of their addresses */
    uint32_t n_locals;
    bool is_known; /* all so far */
} KeyWriter;

static void put(KeyWriter *w, uint32_t word) {
    vec_push(w->k->arena, w->key, word);
}

static void put_long(KeyWriter *w, uint64_t value) {
    put(w, (uint32_t)value);
    put(w, (uint32_t)(value >> 32));
}

static void put_name(KeyWriter *w, const char *name) {
    for (size_t i = 0; i <= strlen(name); i += sizeof(uint32_t)) {
        uint32_t word = 0;
        memcpy(&word, name + i, strnlen(name + i, sizeof word));
        put(w, word);
    }
}

static void put_type(KeyWriter *w, LLVMTypeRef type) {
    LLVMTypeKind kind = LLVMGetTypeKind(type);
    put(w, kind);
    switch (kind) {
    case LLVMVoidTypeKind:
    case LLVMHalfTypeKind:
    case LLVMBFloatTypeKind:
    case LLVMFloatTypeKind:
    case LLVMDoubleTypeKind:
    case LLVMX86_AMXTypeKind:
        return;
    case LLVMIntegerTypeKind:
        put(w, LLVMGetIntTypeWidth(type));
        return;
    case LLVMPointerTypeKind:
        put(w, LLVMGetPointerAddressSpace(type));
        return;
    case LLVMVectorTypeKind:
        put(w, LLVMGetVectorSize(type));
        put_type(w, LLVMGetElementType(type));
        return;
    case LLVMArrayTypeKind:
        put_long(w, LLVMGetArrayLength2(type));
        put_type(w, LLVMGetElementType(type));
        return;
    default:
        w->is_known = false;
    }
}

static uint64_t hash_of(const void *local) {
    return hash_mix(0, (uintptr_t)local);
}

static void add_local(KeyWriter *w, const void *local) {
    hashids_add(w->k->arena, &w->locals, hash_of(local), ++w->n_locals);
}

static void put_local(KeyWriter *w, const void *local) {
    uint32_t probe = 0;
    put(w, hashids_next(&w->locals, hash_of(local), &probe));
}

/* The bits of an integer, or of a float as an integer of its size. */
static void put_bits(KeyWriter *w, Val number, uint32_t n_bits) {
    LLVMTypeRef type = LLVMIntTypeInContext(w->k->context, n_bits);
    w->is_known = w->is_known && n_bits <= 64;
    if (w->is_known) put_long(w, LLVMConstIntGetZExtValue(LLVMConstBitCast(number, type)));
}

static void put_number(KeyWriter *w, Val number) {
    LLVMTypeRef type = LLVMTypeOf(number);
    switch (LLVMGetTypeKind(type)) {
    case LLVMIntegerTypeKind:
        put_bits(w, number, LLVMGetIntTypeWidth(type));
        return;
    case LLVMHalfTypeKind:
        put_bits(w, number, 16);
        return;
    case LLVMFloatTypeKind:
        put_bits(w, number, 32);
        return;
    case LLVMDoubleTypeKind:
        put_bits(w, number, 64);
        return;
    default:
        w->is_known = false;
    }
}

static void put_intrinsic(KeyWriter *w, Val function) {
    size_t n_bytes;
    const char *name = LLVMGetValueName2(function, &n_bytes);
    w->is_known = w->is_known && strncmp(name, "llvm.", 5) == 0;
    put_name(w, name);
}

static void put_value(KeyWriter *w, Val value);

static void put_elements(KeyWriter *w, Val vector) {
    for (uint32_t i = 0; i < k_lanes(vector); i++) put_value(w, LLVMGetAggregateElement(vector, i));
}

/* Any operand. A local one has its type where it is defined. */
static void put_value(KeyWriter *w, Val value) {
    LLVMValueKind kind = LLVMGetValueKind(value);
    put(w, kind);
    switch (kind) {
    case LLVMArgumentValueKind:
    case LLVMBasicBlockValueKind:
    case LLVMInstructionValueKind:
        put_local(w, value);
        return;
    case LLVMFunctionValueKind:
        put_intrinsic(w, value);
        return;
    default:
        put_type(w, LLVMTypeOf(value));
    }
    switch (kind) {
    case LLVMUndefValueValueKind:
    case LLVMPoisonValueValueKind:
    case LLVMConstantAggregateZeroValueKind:
    case LLVMConstantPointerNullValueKind:
        return;
    case LLVMConstantIntValueKind:
    case LLVMConstantFPValueKind:
        put_number(w, value);
        return;
    case LLVMConstantVectorValueKind:
    case LLVMConstantDataVectorValueKind:
        put_elements(w, value);
        return;
    default:
        w->is_known = false;
    }
}

/* Loads of what no kernel writes are marked; there is no other metadata. */
static void put_metadata(KeyWriter *w, Val instruction) {
    size_t n = 0;
    bool has = LLVMHasMetadata(instruction);
    put(w, has);
    if (!has) return;
    LLVMValueMetadataEntry *entries =
        LLVMInstructionGetAllMetadataOtherThanDebugLoc(instruction, &n);
    LLVMDisposeValueMetadataEntries(entries);
    Val mark = LLVMGetMetadata(instruction, w->k->invariant_kind);
    w->is_known = w->is_known && n == 1 && mark == w->k->invariant;
}

static void put_memory(KeyWriter *w, Val access) {
    put(w, LLVMGetAlignment(access));
    put(w, (uint32_t)LLVMGetVolatile(access));
    w->is_known = w->is_known && LLVMGetOrdering(access) == LLVMAtomicOrderingNotAtomic;
}

static void put_attributes(KeyWriter *w, Val call, LLVMAttributeIndex index) {
    uint32_t n = LLVMGetCallSiteAttributeCount(call, index);
    LLVMAttributeRef *attributes = arena_array(w->k->arena, LLVMAttributeRef, n);
    LLVMGetCallSiteAttributes(call, index, attributes);
    put(w, n);
    for (uint32_t i = 0; i < n; i++) {
        w->is_known = w->is_known && LLVMIsEnumAttribute(attributes[i]);
        if (!w->is_known) return;
        put(w, LLVMGetEnumAttributeKind(attributes[i]));
        put_long(w, LLVMGetEnumAttributeValue(attributes[i]));
    }
}

/* The attributes of the call, of its result, and of its arguments. */
static void put_call(KeyWriter *w, Val call) {
    put(w, LLVMGetInstructionCallConv(call));
    put(w, LLVMGetTailCallKind(call));
    w->is_known = w->is_known && LLVMGetNumOperandBundles(call) == 0;
    put_attributes(w, call, (LLVMAttributeIndex)LLVMAttributeFunctionIndex);
    for (uint32_t i = 0; i <= LLVMGetNumArgOperands(call); i++) put_attributes(w, call, i);
}

static void put_mask(KeyWriter *w, Val shuffle) {
    uint32_t n = LLVMGetNumMaskElements(shuffle);
    for (uint32_t i = 0; i < n; i++) put(w, (uint32_t)LLVMGetMaskValue(shuffle, i));
}

static void put_indices(KeyWriter *w, Val extract) {
    for (uint32_t i = 0; i < LLVMGetNumIndices(extract); i++) put(w, LLVMGetIndices(extract)[i]);
}

/* What only instructions of this opcode have. */
static void put_own(KeyWriter *w, Val i, LLVMOpcode opcode) {
    switch (opcode) {
    case LLVMAdd:
    case LLVMSub:
    case LLVMMul:
    case LLVMShl:
    case LLVMTrunc:
        put(w, (uint32_t)LLVMGetNUW(i) << 1 | (uint32_t)LLVMGetNSW(i));
        return;
    case LLVMUDiv:
    case LLVMSDiv:
    case LLVMLShr:
    case LLVMAShr:
        put(w, (uint32_t)LLVMGetExact(i));
        return;
    case LLVMZExt:
    case LLVMUIToFP:
        put(w, (uint32_t)LLVMGetNNeg(i));
        return;
    case LLVMOr:
        put(w, (uint32_t)LLVMGetIsDisjoint(i));
        return;
    case LLVMICmp:
        put(w, (uint32_t)LLVMGetICmpPredicate(i) << 1 | (uint32_t)LLVMGetICmpSameSign(i));
        return;
    case LLVMFCmp:
        put(w, LLVMGetFCmpPredicate(i));
        return;
    case LLVMLoad:
    case LLVMStore:
        put_memory(w, i);
        return;
    case LLVMAlloca:
        put_type(w, LLVMGetAllocatedType(i));
        put(w, LLVMGetAlignment(i));
        return;
    case LLVMGetElementPtr:
        put_type(w, LLVMGetGEPSourceElementType(i));
        put(w, LLVMGEPGetNoWrapFlags(i));
        return;
    case LLVMShuffleVector:
        put_mask(w, i);
        return;
    case LLVMPHI:
        for (uint32_t n = 0; n < LLVMCountIncoming(i); n++)
            put_local(w, LLVMGetIncomingBlock(i, n));
        return;
    case LLVMCall:
        put_call(w, i);
        return;
    case LLVMExtractValue:
        put_indices(w, i);
        return;
    default:
        return;
    }
}

/* Whether instructions of the opcode have nothing that is not written. */
static bool is_known_opcode(LLVMOpcode opcode) {
    static const LLVMOpcode known[] = {LLVMRet,
                                       LLVMBr,
                                       LLVMSwitch,
                                       LLVMUnreachable,
                                       LLVMAdd,
                                       LLVMFAdd,
                                       LLVMSub,
                                       LLVMFSub,
                                       LLVMMul,
                                       LLVMFMul,
                                       LLVMUDiv,
                                       LLVMSDiv,
                                       LLVMFDiv,
                                       LLVMURem,
                                       LLVMSRem,
                                       LLVMFRem,
                                       LLVMShl,
                                       LLVMLShr,
                                       LLVMAShr,
                                       LLVMAnd,
                                       LLVMOr,
                                       LLVMXor,
                                       LLVMAlloca,
                                       LLVMLoad,
                                       LLVMStore,
                                       LLVMTrunc,
                                       LLVMZExt,
                                       LLVMSExt,
                                       LLVMFPToUI,
                                       LLVMFPToSI,
                                       LLVMUIToFP,
                                       LLVMSIToFP,
                                       LLVMFPTrunc,
                                       LLVMFPExt,
                                       LLVMGetElementPtr,
                                       LLVMPtrToInt,
                                       LLVMFNeg,
                                       LLVMIntToPtr,
                                       LLVMBitCast,
                                       LLVMICmp,
                                       LLVMFCmp,
                                       LLVMPHI,
                                       LLVMCall,
                                       LLVMSelect,
                                       LLVMFreeze,
                                       LLVMInsertElement,
                                       LLVMExtractElement,
                                       LLVMExtractValue,
                                       LLVMShuffleVector};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i] == opcode) return true;
    return false;
}

static void put_instruction(KeyWriter *w, Val instruction) {
    LLVMOpcode opcode = LLVMGetInstructionOpcode(instruction);
    uint32_t n = (uint32_t)LLVMGetNumOperands(instruction);
    w->is_known = w->is_known && is_known_opcode(opcode);
    if (!w->is_known) return;
    put(w, opcode);
    put_type(w, LLVMTypeOf(instruction));
    put(w, n);
    for (uint32_t i = 0; i < n; i++) put_value(w, LLVMGetOperand(instruction, i));
    put_metadata(w, instruction);
    if (LLVMCanValueUseFastMathFlags(instruction)) put(w, LLVMGetFastMathFlags(instruction));
    put_own(w, instruction, opcode);
}

/* Numbers the locals, of which instructions may name those behind them. */
static void number_locals(KeyWriter *w, Val function) {
    for (uint32_t i = 0; i < LLVMCountParams(function); i++)
        add_local(w, LLVMGetParam(function, i));
    LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(function);
    for (; block; block = LLVMGetNextBasicBlock(block)) {
        add_local(w, LLVMBasicBlockAsValue(block));
        for (Val i = LLVMGetFirstInstruction(block); i; i = LLVMGetNextInstruction(i))
            add_local(w, i);
    }
}

bool part_key(const Codegen *k, Val function, VecU32 *key) {
    KeyWriter w = {.k = k, .key = key, .is_known = true};
    number_locals(&w, function);
    put_name(&w, k->target->name);
    put(&w, LLVMCountParams(function));
    for (uint32_t i = 0; i < LLVMCountParams(function); i++)
        put_type(&w, LLVMTypeOf(LLVMGetParam(function, i)));
    LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(function);
    for (; block && w.is_known; block = LLVMGetNextBasicBlock(block)) {
        put_value(&w, LLVMBasicBlockAsValue(block));
        for (Val i = LLVMGetFirstInstruction(block); i; i = LLVMGetNextInstruction(i))
            put_instruction(&w, i);
    }
    return w.is_known;
}
