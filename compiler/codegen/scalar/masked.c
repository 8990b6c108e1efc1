/* See masked.h. AVX2 has masked moves of 32 and 64 bits alone, AVX-512 of all widths. Of other
 * widths LLVM makes a branch for each lane, as much code as a small kernel. So the first lanes of a
 * vector are moved in words of 32 bits by a mask of words, and the rest, less than a word, in
 * halves of a word and bytes. */
#include "codegen/scalar/masked.h"

enum { WORD_BYTES = 4, AVX512_VECTOR_BYTES = 64 };

/* The number of a mask's lanes, if they are the first ones of the vector; else NULL.
 * cpu_lanes_below makes such masks. */
static Val count_first(Val mask) {
    if (!LLVMIsAICmpInst(mask) || LLVMGetICmpPredicate(mask) != LLVMIntULT) return NULL;
    Val numbers = LLVMGetOperand(mask, 0), limit = LLVMGetOperand(mask, 1);
    if (!LLVMIsAConstantDataVector(numbers) || !LLVMIsAShuffleVectorInst(limit)) return NULL;
    for (uint32_t i = 0; i < k_lanes(mask); i++)
        if (LLVMConstIntGetZExtValue(LLVMGetAggregateElement(numbers, i)) != i) return NULL;
    Val first = LLVMGetOperand(limit, 0);
    return LLVMIsAInsertElementInst(first) ? LLVMGetOperand(first, 1) : NULL;
}

/* The first lanes of a vector in memory. */
typedef struct First {
    Val pointer, vector;
    uint32_t n_bytes; /* of the vector */
    Val bytes;        /* i64: of the lanes */
} First;

/* Whether such lanes are moved in words. */
static bool is_first(const Codegen *k, Val pointer, uint32_t bytes, Val mask, Val vector,
                     First *first) {
    uint32_t n_bytes = k_lanes(vector) * bytes;
    bool moves_by_mask = bytes >= WORD_BYTES || k->target->vector_bytes >= AVX512_VECTOR_BYTES;
    if (moves_by_mask || n_bytes < 2 * WORD_BYTES || n_bytes % WORD_BYTES) return false;
    Val n = count_first(mask);
    if (!n) return false;
    Val below = k_umin(k, k_index_cast(k, n, k->i64), k_int(k->i64, k_lanes(vector)));
    *first = (First){pointer, vector, n_bytes, k_muli(k, below, bytes)};
    return true;
}

/* The vector as units of `bytes`. */
static LLVMTypeRef units_type(const Codegen *k, const First *first, uint32_t bytes) {
    return LLVMVectorType(LLVMIntTypeInContext(k->context, 8 * bytes), first->n_bytes / bytes);
}

/* The numbers of the type's lanes. */
static Val lane_numbers(const Codegen *k, LLVMTypeRef type) {
    uint32_t n = LLVMGetVectorSize(type);
    Val *numbers = arena_array(k->arena, Val, n);
    for (uint32_t i = 0; i < n; i++) numbers[i] = k_int(LLVMGetElementType(type), i);
    return LLVMConstVector(numbers, n);
}

static Val splat_number(const Codegen *k, LLVMTypeRef type, Val number) {
    return k_splat(k, k_trunc(k, number, LLVMGetElementType(type)), LLVMGetVectorSize(type));
}

static Val words_mask(const Codegen *k, const First *first, LLVMTypeRef words) {
    Val n = k_udiv(k, first->bytes, k_i64(k, WORD_BYTES));
    return k_ult(k, lane_numbers(k, words), splat_number(k, words, n));
}

/* A unit of `bytes` among the lanes' bytes behind their last word. */
typedef struct Rest {
    Val has;     /* i1: there is one */
    Val number;  /* i64: of the unit in the vector */
    Val pointer; /* to it */
} Rest;

static Rest rest_of(const Codegen *k, const First *first, uint32_t bytes) {
    Rest rest = {.has = k_nei(k, k_andi(k, first->bytes, bytes), 0)};
    Val begin = k_andi(k, first->bytes, -(int64_t)(2 * bytes));
    rest.number = k_udiv(k, begin, k_i64(k, bytes));
    rest.pointer = k_byte(k, first->pointer, begin);
    return rest;
}

/* `all` with the unit, where there is one. */
static Val load_rest(const Codegen *k, const First *first, uint32_t bytes, uint32_t align,
                     Val all) {
    LLVMTypeRef type = units_type(k, first, bytes);
    Rest rest = rest_of(k, first, bytes);
    Val units = k_bitcast(k, all, type);
    LLVMBasicBlockRef before = k_here(k);
    If exists = if_begin(k, rest.has);
    Val unit = k_load_aligned(k, LLVMGetElementType(type), rest.pointer, align);
    Val is_own = k_eq(k, lane_numbers(k, type), splat_number(k, type, rest.number));
    Val own = k_select(k, is_own, k_splat(k, unit, LLVMGetVectorSize(type)), units);
    LLVMBasicBlockRef inside = k_here(k);
    if_end(k, &exists);
    return k_merge(k, own, inside, units, before);
}

static void store_rest(const Codegen *k, const First *first, uint32_t bytes, uint32_t align) {
    Rest rest = rest_of(k, first, bytes);
    Val units = k_bitcast(k, first->vector, units_type(k, first, bytes));
    If exists = if_begin(k, rest.has);
    k_store_aligned(k, k_extract_at(k, units, rest.number), rest.pointer, align);
    if_end(k, &exists);
}

static Val load_by_mask(const Codegen *k, Val pointer, uint32_t align, Val mask, Val outside) {
    LLVMTypeRef overloads[2] = {LLVMTypeOf(outside), k->global_ptr};
    Val args[3] = {pointer, mask, outside};
    Val call = k_intrinsic_of(k, "llvm.masked.load", overloads, 2, args, 3);
    k_align_argument(call, 1, align);
    return call;
}

static void store_by_mask(const Codegen *k, Val pointer, uint32_t align, Val mask, Val value) {
    LLVMTypeRef overloads[2] = {LLVMTypeOf(value), k->global_ptr};
    Val args[3] = {value, pointer, mask};
    Val call = k_intrinsic_of(k, "llvm.masked.store", overloads, 2, args, 3);
    k_align_argument(call, 2, align);
}

Val masked_load(const Codegen *k, Val pointer, uint32_t bytes, Val mask, Val outside) {
    First first;
    if (!is_first(k, pointer, bytes, mask, outside, &first))
        return load_by_mask(k, pointer, bytes, mask, outside);
    LLVMTypeRef words = units_type(k, &first, WORD_BYTES);
    Val others = k_bitcast(k, outside, words);
    Val all = load_by_mask(k, pointer, bytes, words_mask(k, &first, words), others);
    for (uint32_t unit = WORD_BYTES / 2; unit >= bytes; unit /= 2)
        all = load_rest(k, &first, unit, bytes, all);
    return k_bitcast(k, all, LLVMTypeOf(outside));
}

void masked_store(const Codegen *k, Val pointer, uint32_t bytes, Val mask, Val value) {
    First first;
    if (!is_first(k, pointer, bytes, mask, value, &first)) {
        store_by_mask(k, pointer, bytes, mask, value);
        return;
    }
    LLVMTypeRef words = units_type(k, &first, WORD_BYTES);
    Val in_words = k_bitcast(k, value, words);
    store_by_mask(k, pointer, bytes, words_mask(k, &first, words), in_words);
    for (uint32_t unit = WORD_BYTES / 2; unit >= bytes; unit /= 2)
        store_rest(k, &first, unit, bytes);
}
