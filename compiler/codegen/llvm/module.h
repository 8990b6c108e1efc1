/* One LLVM module under construction and what every emitter needs of it: types, intrinsics, small
 * arithmetic. Owns the LLVM objects; one thread at a time may use it. */
#ifndef FUSEC_CODEGEN_LLVM_MODULE_H
#define FUSEC_CODEGEN_LLVM_MODULE_H

#include "codegen/llvm/convert.h"
#include "codegen/math/math.h"
#include "ir/graph.h"
#include "machine/target.h"

typedef struct Unit {
    Arena *arena;
    const Target *target;
    LLVMContextRef context;
    LLVMModuleRef module;
    LLVMBuilderRef builder;
    const char *symbol;      /* of the kernel under construction */
    struct SharedPool *pool; /* GPU: where arrays in shared memory lie; NULL: each by itself */
    MathCtx math;
    LLVMTypeRef void_type, i1, i8, i32, i64, f32;
    LLVMTypeRef ptr;        /* generic */
    LLVMTypeRef global_ptr; /* to tensors: address space 1 on a GPU */
    LLVMValueRef invariant; /* metadata of loads from memory that nobody writes meanwhile */
    uint32_t invariant_kind;
} Unit;

/* Every unit must be disposed; disposing a zeroed one does nothing. */
void unit_init(Unit *unit, Arena *arena, const Target *target, const char *name);
void unit_dispose(Unit *unit);

static inline bool unit_is_gpu(const Unit *unit) {
    return unit->target->device == DEVICE_GPU;
}

/* Type of `dtype` as a value and as it lies in memory (they differ for bool: i1 and i8). */
LLVMTypeRef unit_value_type(const Unit *unit, Dtype dtype, uint32_t lanes);
LLVMTypeRef unit_memory_type(const Unit *unit, Dtype dtype, uint32_t lanes);
ConvertType unit_convert_type(Dtype dtype);
/* `type` itself for one lane. */
LLVMTypeRef unit_vector_of(LLVMTypeRef type, uint32_t lanes);
bool unit_is_vector(LLVMValueRef value);
/* 1: a scalar. */
uint32_t unit_lanes(LLVMValueRef value);
LLVMValueRef unit_splat(const Unit *unit, LLVMValueRef scalar, uint32_t lanes);
/* A number of `dtype`'s value type. */
LLVMValueRef unit_number(const Unit *unit, Dtype dtype, double number);
LLVMValueRef unit_int(LLVMTypeRef type, int64_t value);
LLVMValueRef unit_i32(const Unit *unit, int64_t value);

/* GPU: `n_bytes` (8 or 16) at a multiple of that in global memory, which this thread alone reads.
 * By `policy` (i64, of createpolicy) in the last cache; NULL: they take no place in the nearest
 * one. What may change is read where it stands in the code. */
LLVMValueRef unit_load_hinted(const Unit *unit, LLVMTypeRef type, uint32_t n_bytes,
                              LLVMValueRef pointer, bool may_change, LLVMValueRef policy);

/* Calls an intrinsic by name; `overloads` are the types its name is mangled with. */
LLVMValueRef unit_intrinsic(const Unit *unit, const char *name, LLVMTypeRef *overloads,
                            uint32_t n_overloads, LLVMValueRef *args, uint32_t n_args);

/* Sets alignment in bytes on argument `arg` (from 1) of a call. */
void unit_align_argument(const Unit *unit, LLVMValueRef call, uint32_t arg, uint32_t bytes);

LLVMBasicBlockRef unit_block(const Unit *unit, LLVMValueRef function, const char *name);
LLVMBasicBlockRef unit_here(const Unit *unit);
void unit_goto(const Unit *unit, LLVMBasicBlockRef block);   /* continue at the end of `block` */
void unit_branch(const Unit *unit, LLVMBasicBlockRef block); /* br, then goto */

/* A primitive on values of `dtype` (the operands' compute type), scalars or vectors alike. */
LLVMValueRef unit_prim(const Unit *unit, PrimId prim, Dtype dtype, LLVMValueRef a, LLVMValueRef b,
                       LLVMValueRef c);

/* A counted loop, bottom-tested with a guard: `for (i = from; i < to; i += step)`, step positive.
 *   Loop loop = loop_begin(unit, function, from, to, step);  ... body uses loop.index ...
 *   loop_end(unit, &loop);
 * Values that live across iterations go through memory, or are carried: loop_carry, called first in
 * the body, turns values[i] into this iteration's; loop_end_carry takes the next iteration's and
 * leaves the final ones. */
typedef struct Loop {
    LLVMValueRef index, step, to;
    LLVMBasicBlockRef before, body, exit;
    LLVMValueRef *carried, *initial; /* phis and what they began with */
    bool is_entered;                 /* surely: its bounds are constants */
} Loop;
Loop loop_begin(const Unit *unit, LLVMValueRef function, LLVMValueRef from, LLVMValueRef to,
                LLVMValueRef step);
void loop_end(const Unit *unit, Loop *loop);
void loop_carry(const Unit *unit, Loop *loop, LLVMValueRef *values, uint32_t n);
/* Several lists of values as the flat one that a loop carries, or from that back into them. Returns
 * how many values they have. */
typedef struct ValueList {
    LLVMValueRef *values;
    uint32_t n;
} ValueList;
uint32_t loop_flatten(const ValueList *lists, uint32_t n_lists, LLVMValueRef *flat, bool is_back);
void loop_end_carry(const Unit *unit, Loop *loop, LLVMValueRef *values, uint32_t n);

/* `if (condition) { ... }` */
typedef struct If {
    LLVMBasicBlockRef after;
} If;
If if_begin(const Unit *unit, LLVMValueRef function, LLVMValueRef condition);
void if_end(const Unit *unit, If *branch);

/* A signed integer as another integer type. */
LLVMValueRef unit_index_cast(const Unit *unit, LLVMValueRef value, LLVMTypeRef type);

#endif
