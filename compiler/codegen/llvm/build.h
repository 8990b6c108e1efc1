/* A short builder over LLVM's C API. k_add(k, a, b) emits an add at the builder's position, so that
 * emitting code reads like the emitted code. The k_ functions have the names of LLVM's
 * instructions.
 *
 * C leaves open which argument of a call is evaluated first. So at most one argument of a call
 * emits instructions, and every C compiler produces the same code. */
#ifndef FUSEC_CODEGEN_LLVM_BUILD_H
#define FUSEC_CODEGEN_LLVM_BUILD_H

#include "base/arena.h"
#include "base/str.h"
#include "base/vec.h"
#include "ir/dtype.h"
#include "machine/target.h"

#include <llvm-c/Core.h>

#include <stdbool.h>
#include <stdint.h>

typedef LLVMValueRef Val;

/* One LLVM module under construction, and the position of the next instruction. */
typedef struct Codegen {
    Arena *arena;
    const Target *target;
    LLVMContextRef context;
    LLVMModuleRef module;
    LLVMBuilderRef builder;
    const char *symbol;            /* name of the kernel under construction */
    struct MathProgram **programs; /* functions of codegen/math that were read: the last one */
    struct PartTab *parts;         /* of the artifact, see codegen/part/part.h */
    struct SharedPool *pool; /* GPU: the pool of shared memory that arrays are placed in; NULL: each
                              * array is a global of its own */
    /* GPU: divide the lanes of a vector without branches, so that their latencies overlap. It pays
     * where few warps run. It costs a few more instructions where each lane has its own divisor.
     * The bits are the same. */
    bool overlaps_quotients;
    int64_t n_stack_bytes; /* CPU: of the arrays of the function under construction */
    LLVMTypeRef void_type, i1, i8, i16, i32, i64, f16, f32, f64;
    LLVMTypeRef ptr;        /* in the generic address space */
    LLVMTypeRef global_ptr; /* to tensors; address space 1 on a GPU */
    Val invariant;          /* metadata for loads from memory that is constant during the kernel */
    uint32_t invariant_kind;
} Codegen;

/* Whether the machine has PTX's instructions, some of which the mathematics take. */
static inline bool k_has_ptx(const Codegen *k) {
    return k->target->ptx_version != NULL;
}

/* How code for the target holds an element of `dtype`. */
static inline DtypeHeld k_held(const Codegen *k, Dtype dtype) {
    return k->target->has->narrow_floats ? dtype_info(dtype)->native : dtype_info(dtype)->soft;
}

/* Types. A value is a scalar or a fixed vector of lanes; a vector of one lane is a scalar. */

/* The type of `dtype` as a value. bool is i1. bf16 is bfloat on a GPU and i16 (its bits) elsewhere,
 * because x86 turns bfloat arithmetic into calls. */
LLVMTypeRef k_value_type(const Codegen *k, Dtype dtype, uint32_t lanes);
/* The type of `dtype` in memory: bool is i8, all others as k_value_type. */
LLVMTypeRef k_memory_type(const Codegen *k, Dtype dtype, uint32_t lanes);
LLVMTypeRef k_vector_of(LLVMTypeRef type, uint32_t lanes);
bool k_is_vector(Val value);
uint32_t k_lanes(Val value);
LLVMTypeRef k_element_type(Val value); /* of a lane, or of a scalar */

/* Constants. These functions emit no instruction. */

static inline Val k_int(LLVMTypeRef type, int64_t value) {
    return LLVMConstInt(type, (uint64_t)value, 1);
}
static inline Val k_i32(const Codegen *k, int64_t value) {
    return k_int(k->i32, value);
}
static inline Val k_i64(const Codegen *k, int64_t value) {
    return k_int(k->i64, value);
}
/* An element of an integer dtype as a constant of k_value_type(dtype). */
Val k_whole(const Codegen *k, Dtype dtype, int64_t whole);
/* A number as a constant of k_value_type(dtype); for an integer dtype it saturates. */
Val k_number(const Codegen *k, Dtype dtype, double number);
/* The address of constant memory that holds these constants of one type. Equal ones share it. */
Val k_constant_array(const Codegen *k, Val *values, uint32_t n, const char *name);

/* Arithmetic. */

#define K_UNARY(name, Name)                               \
    static inline Val k_##name(const Codegen *k, Val a) { \
        return LLVMBuild##Name(k->builder, a, "");        \
    }
K_UNARY(neg, Neg)
K_UNARY(not, Not)
K_UNARY(fneg, FNeg)
#undef K_UNARY

#define K_BINARY(name, Name)                                     \
    static inline Val k_##name(const Codegen *k, Val a, Val b) { \
        return LLVMBuild##Name(k->builder, a, b, "");            \
    }
K_BINARY(add, Add)
K_BINARY(sub, Sub)
K_BINARY(mul, Mul)
K_BINARY(udiv, UDiv)
K_BINARY(urem, URem)
K_BINARY(sdiv, SDiv)
K_BINARY(srem, SRem)
K_BINARY(and, And)
K_BINARY(or, Or)
K_BINARY(xor, Xor)
K_BINARY(shl, Shl)
K_BINARY(lshr, LShr)
K_BINARY(ashr, AShr)
K_BINARY(fadd, FAdd)
K_BINARY(fsub, FSub)
K_BINARY(fmul, FMul)
K_BINARY(fdiv, FDiv)
#undef K_BINARY

/* a * b + c */
static inline Val k_mad(const Codegen *k, Val a, Val b, Val c) {
    return k_add(k, k_mul(k, a, b), c);
}

/* Comparisons. The result is i1 or a vector of i1. */

static inline Val k_icmp(const Codegen *k, LLVMIntPredicate predicate, Val a, Val b) {
    return LLVMBuildICmp(k->builder, predicate, a, b, "");
}
#define K_ICMP(name, NAME)                                       \
    static inline Val k_##name(const Codegen *k, Val a, Val b) { \
        return k_icmp(k, LLVMInt##NAME, a, b);                   \
    }
K_ICMP(eq, EQ)
K_ICMP(ne, NE)
K_ICMP(slt, SLT)
K_ICMP(sle, SLE)
K_ICMP(sgt, SGT)
K_ICMP(sge, SGE)
K_ICMP(ult, ULT)
K_ICMP(ule, ULE)
K_ICMP(ugt, UGT)
K_ICMP(uge, UGE)
#undef K_ICMP

static inline Val k_fcmp(const Codegen *k, LLVMRealPredicate predicate, Val a, Val b) {
    return LLVMBuildFCmp(k->builder, predicate, a, b, "");
}

/* Binary operations whose second operand is a constant of the first operand's type, a scalar
 * integer: k_addi(k, a, 1). */

#define K_IMMEDIATE(name)                                               \
    static inline Val k_##name##i(const Codegen *k, Val a, int64_t b) { \
        return k_##name(k, a, k_int(LLVMTypeOf(a), b));                 \
    }
K_IMMEDIATE(add)
K_IMMEDIATE(sub)
K_IMMEDIATE(mul)
K_IMMEDIATE(udiv)
K_IMMEDIATE(urem)
K_IMMEDIATE(and)
K_IMMEDIATE(xor)
K_IMMEDIATE(shl)
K_IMMEDIATE(lshr)
K_IMMEDIATE(eq)
K_IMMEDIATE(ne)
K_IMMEDIATE(ult)
K_IMMEDIATE(uge)
K_IMMEDIATE(sgt)
K_IMMEDIATE(sge)
#undef K_IMMEDIATE

/* a + b, without an instruction for b = 0. */
static inline Val k_offset(const Codegen *k, Val a, int64_t b) {
    return b ? k_addi(k, a, b) : a;
}
static inline Val k_madi(const Codegen *k, Val a, int64_t b, Val c) {
    return k_mad(k, a, k_int(LLVMTypeOf(a), b), c);
}

static inline Val k_select(const Codegen *k, Val condition, Val a, Val b) {
    return LLVMBuildSelect(k->builder, condition, a, b, "");
}

/* Conversions. */

#define K_CAST(name, Name)                                                  \
    static inline Val k_##name(const Codegen *k, Val a, LLVMTypeRef type) { \
        return LLVMBuild##Name(k->builder, a, type, "");                    \
    }
K_CAST(zext, ZExt)
K_CAST(sext, SExt)
K_CAST(trunc, Trunc)
K_CAST(zext_or_bitcast, ZExtOrBitCast)
K_CAST(trunc_or_bitcast, TruncOrBitCast)
K_CAST(fpext, FPExt)
K_CAST(fptrunc, FPTrunc)
K_CAST(sitofp, SIToFP)
K_CAST(fptosi, FPToSI)
K_CAST(uitofp, UIToFP)
K_CAST(fptoui, FPToUI)
K_CAST(bitcast, BitCast)
K_CAST(ptrtoint, PtrToInt)
K_CAST(addrspace_cast, AddrSpaceCast)
#undef K_CAST

/* Converts a signed integer to another integer type. */
static inline Val k_index_cast(const Codegen *k, Val value, LLVMTypeRef type) {
    return LLVMBuildIntCast2(k->builder, value, type, 1, "");
}

/* The value, of which LLVM no longer knows where it comes from. */
static inline Val k_freeze(const Codegen *k, Val value) {
    return LLVMBuildFreeze(k->builder, value, "");
}

/* Vectors and structs. */

static inline Val k_extract_at(const Codegen *k, Val vector, Val at) {
    return LLVMBuildExtractElement(k->builder, vector, at, "");
}
static inline Val k_extract(const Codegen *k, Val vector, uint32_t lane) {
    return k_extract_at(k, vector, k_i32(k, lane));
}
static inline Val k_insert_at(const Codegen *k, Val vector, Val value, Val at) {
    return LLVMBuildInsertElement(k->builder, vector, value, at, "");
}
static inline Val k_insert(const Codegen *k, Val vector, Val value, uint32_t lane) {
    return k_insert_at(k, vector, value, k_i32(k, lane));
}
static inline Val k_shuffle(const Codegen *k, Val a, Val b, Val mask) {
    return LLVMBuildShuffleVector(k->builder, a, b, mask, "");
}
static inline Val k_extract_value(const Codegen *k, Val aggregate, uint32_t i) {
    return LLVMBuildExtractValue(k->builder, aggregate, i, "");
}
Val k_splat(const Codegen *k, Val scalar, uint32_t lanes);
/* The same floats. LLVM's selection for a CPU does not look through it, neither at what the value
 * is made of nor at which of its bits are used. That is most of the time of some code, and gains
 * nothing between shuffles and around a rounding. */
Val k_fence(const Codegen *k, Val value);
/* Transposes `n` vectors of `n` lanes, a power of two. */
void k_transpose(const Codegen *k, Val *vectors, uint32_t n);
/* The vector of `n` scalars; one is itself. */
Val k_vector(const Codegen *k, const Val *scalars, uint32_t n);

/* Memory. */

/* The address of element `index` in the array at `pointer`. */
static inline Val k_gep(const Codegen *k, LLVMTypeRef element, Val pointer, Val index) {
    if (k->target->has->cores && LLVMIsNull(index)) return pointer;
    return LLVMBuildGEP2(k->builder, element, pointer, &index, 1, "");
}
/* The address `offset` bytes after `pointer`. */
static inline Val k_byte(const Codegen *k, Val pointer, Val offset) {
    return k_gep(k, k->i8, pointer, offset);
}
static inline Val k_load(const Codegen *k, LLVMTypeRef type, Val pointer) {
    return LLVMBuildLoad2(k->builder, type, pointer, "");
}
static inline Val k_store(const Codegen *k, Val value, Val pointer) {
    return LLVMBuildStore(k->builder, value, pointer);
}
/* The same with an alignment in bytes. */
static inline Val k_load_aligned(const Codegen *k, LLVMTypeRef type, Val pointer, uint32_t bytes) {
    Val load = k_load(k, type, pointer);
    LLVMSetAlignment(load, bytes);
    return load;
}
static inline void k_store_aligned(const Codegen *k, Val value, Val pointer, uint32_t bytes) {
    LLVMSetAlignment(k_store(k, value, pointer), bytes);
}
static inline Val k_alloca(const Codegen *k, LLVMTypeRef type) {
    return LLVMBuildAlloca(k->builder, type, "");
}

/* GPU: loads `n_bytes` (8 or 16, aligned to their size) of global memory that only this thread
 * reads. `policy` is the createpolicy value (i64) for L2; NULL: the load bypasses L1. may_change: a
 * kernel of the launch may write the memory, so the load keeps its position in the code. */
Val k_load_hinted(const Codegen *k, LLVMTypeRef type, uint32_t n_bytes, Val pointer,
                  bool may_change, Val policy);

/* Calls. */

static inline Val k_call(const Codegen *k, LLVMTypeRef type, Val function, Val *args, uint32_t n) {
    return LLVMBuildCall2(k->builder, type, function, args, n, "");
}
/* An intrinsic by name. `overloads` are the types in its mangled name. */
Val k_intrinsic_of(const Codegen *k, const char *name, LLVMTypeRef *overloads, uint32_t n_overloads,
                   Val *args, uint32_t n_args);
static inline Val k_intrinsic(const Codegen *k, const char *name, Val *args, uint32_t n_args) {
    return k_intrinsic_of(k, name, NULL, 0, args, n_args);
}
static inline Val k_intrinsic_0(const Codegen *k, const char *name) {
    return k_intrinsic(k, name, NULL, 0);
}
static inline Val k_intrinsic_1(const Codegen *k, const char *name, Val a) {
    return k_intrinsic(k, name, &a, 1);
}
static inline Val k_intrinsic_2(const Codegen *k, const char *name, Val a, Val b) {
    Val args[2] = {a, b};
    return k_intrinsic(k, name, args, 2);
}
/* An intrinsic of two operands, overloaded on their common type. */
Val k_intrinsic_of_type(const Codegen *k, const char *name, Val a, Val b);
static inline Val k_smin(const Codegen *k, Val a, Val b) {
    return k_intrinsic_of_type(k, "llvm.smin", a, b);
}
static inline Val k_smax(const Codegen *k, Val a, Val b) {
    return k_intrinsic_of_type(k, "llvm.smax", a, b);
}
static inline Val k_umin(const Codegen *k, Val a, Val b) {
    return k_intrinsic_of_type(k, "llvm.umin", a, b);
}
static inline Val k_umax(const Codegen *k, Val a, Val b) {
    return k_intrinsic_of_type(k, "llvm.umax", a, b);
}
/* Inline assembly. has_effects: it is emitted even if its result is unused. */
Val k_asm(const Codegen *k, LLVMTypeRef result, const char *text, const char *constraints,
          Val *args, uint32_t n_args, bool has_effects);
/* Sets the alignment in bytes of argument `arg`, counted from 1, of a call. */
static inline void k_align_argument(Val call, uint32_t arg, uint32_t bytes) {
    LLVMSetInstrParamAlignment(call, arg, bytes);
}

/* Adds a string attribute to a function. */
void k_add_attribute(const Codegen *k, Val function, const char *key, const char *value);

/* Blocks and branches. */

static inline LLVMBasicBlockRef k_here(const Codegen *k) {
    return LLVMGetInsertBlock(k->builder);
}
/* Appends a new block to the function under construction. */
static inline LLVMBasicBlockRef k_block(const Codegen *k, const char *name) {
    Val function = LLVMGetBasicBlockParent(k_here(k));
    return LLVMAppendBasicBlockInContext(k->context, function, name);
}
/* Moves the builder to the end of `block`. */
static inline void k_goto(const Codegen *k, LLVMBasicBlockRef block) {
    LLVMPositionBuilderAtEnd(k->builder, block);
}
static inline void k_br(const Codegen *k, LLVMBasicBlockRef block) {
    LLVMBuildBr(k->builder, block);
}
static inline void k_branch(const Codegen *k, LLVMBasicBlockRef block) { /* br, then goto */
    k_br(k, block);
    k_goto(k, block);
}
static inline void k_cond_br(const Codegen *k, Val condition, LLVMBasicBlockRef then,
                             LLVMBasicBlockRef otherwise) {
    LLVMBuildCondBr(k->builder, condition, then, otherwise);
}
static inline Val k_switch(const Codegen *k, Val value, LLVMBasicBlockRef otherwise, uint32_t n) {
    return LLVMBuildSwitch(k->builder, value, otherwise, n);
}
static inline void k_ret_void(const Codegen *k) {
    LLVMBuildRetVoid(k->builder);
}
static inline Val k_phi(const Codegen *k, LLVMTypeRef type) {
    return LLVMBuildPhi(k->builder, type, "");
}
static inline void k_incoming(Val phi, Val value, LLVMBasicBlockRef from) {
    LLVMAddIncoming(phi, &value, &from, 1);
}

/* A phi of two predecessors: `a` from `from_a`, `b` from `from_b`. */
static inline Val k_merge(const Codegen *k, Val a, LLVMBasicBlockRef from_a, Val b,
                          LLVMBasicBlockRef from_b) {
    Val phi = k_phi(k, LLVMTypeOf(a));
    k_incoming(phi, a, from_a);
    k_incoming(phi, b, from_b);
    return phi;
}

/* A counted loop, bottom-tested behind a guard: `for (i = from; i < to; i += step)` with a positive
 * step.
 *   Loop loop = loop_begin(k, from, to, step);  ... body uses loop.index ...
 *   loop_end(k, &loop);
 * A value that lives across iterations goes through memory, or the loop carries it. Calls of
 * loop_carry come first in the body: they replace each values[i] by this iteration's phi. loop_end
 * takes the next iteration's values from the same places and replaces them by the final ones. */
typedef struct Carried {
    Val *value, phi, initial;
} Carried;
typedef struct Loop {
    Val index, step, to;
    LLVMBasicBlockRef before, body, exit;
    Vec(Carried) carried;
    bool is_entered; /* the bounds are constants and the loop runs at least once */
} Loop;
Loop loop_begin(const Codegen *k, Val from, Val to, int64_t step);
Loop loop_begin_by(const Codegen *k, Val from, Val to, Val step);
/* A loop from 0 to `to`. */
static inline Loop loop_over(const Codegen *k, Val to, int64_t step) {
    return loop_begin(k, k_int(LLVMTypeOf(to), 0), to, step);
}
void loop_carry(const Codegen *k, Loop *loop, Val *values, uint32_t n);
void loop_end(const Codegen *k, Loop *loop);

/* `if (condition) { ... }`. A condition of NULL always holds: no branch is emitted. */
typedef struct If {
    LLVMBasicBlockRef after;
} If;
If if_begin(const Codegen *k, Val condition);
void if_end(const Codegen *k, If *branch);

#endif
