/* See build.h. */
#include "codegen/llvm/build.h"

#include <llvm-c/Target.h>
#include <string.h>

LLVMTypeRef k_vector_of(LLVMTypeRef type, uint32_t lanes) {
    return lanes > 1 ? LLVMVectorType(type, lanes) : type;
}

static LLVMTypeRef element_type(const Codegen *k, Dtype dtype) {
    switch (k_held(k, dtype)) {
    case HELD_DOUBLE:
        return k->f64;
    case HELD_FLOAT:
        return k->f32;
    case HELD_HALF:
        return k->f16;
    case HELD_BFLOAT:
        return LLVMBFloatTypeInContext(k->context);
    case HELD_BITS:
        return LLVMIntTypeInContext(k->context, 8 * dtype_bytes(dtype));
    case HELD_BIT:
        break;
    }
    return k->i1;
}

LLVMTypeRef k_value_type(const Codegen *k, Dtype dtype, uint32_t lanes) {
    return k_vector_of(element_type(k, dtype), lanes);
}

LLVMTypeRef k_memory_type(const Codegen *k, Dtype dtype, uint32_t lanes) {
    if (dtype_is_bool(dtype)) return k_vector_of(k->i8, lanes);
    return k_value_type(k, dtype, lanes);
}

bool k_is_vector(Val value) {
    return LLVMGetTypeKind(LLVMTypeOf(value)) == LLVMVectorTypeKind;
}

uint32_t k_lanes(Val value) {
    return k_is_vector(value) ? LLVMGetVectorSize(LLVMTypeOf(value)) : 1;
}

LLVMTypeRef k_element_type(Val value) {
    LLVMTypeRef type = LLVMTypeOf(value);
    return k_is_vector(value) ? LLVMGetElementType(type) : type;
}

Val k_splat(const Codegen *k, Val scalar, uint32_t lanes) {
    if (lanes <= 1 || k_is_vector(scalar)) return scalar;
    if (LLVMIsConstant(scalar)) {
        Val *all = arena_array(k->arena, Val, lanes);
        for (uint32_t i = 0; i < lanes; i++) all[i] = scalar;
        return LLVMConstVector(all, lanes);
    }
    LLVMTypeRef type = LLVMVectorType(LLVMTypeOf(scalar), lanes);
    Val poison = LLVMGetPoison(type);
    Val first = k_insert(k, poison, scalar, 0);
    Val zeros = LLVMConstNull(LLVMVectorType(k->i32, lanes));
    return k_shuffle(k, first, poison, zeros);
}

Val k_vector(const Codegen *k, const Val *scalars, uint32_t n) {
    if (n == 1) return scalars[0];
    Val all = LLVMGetPoison(LLVMVectorType(LLVMTypeOf(scalars[0]), n));
    for (uint32_t i = 0; i < n; i++) all = k_insert(k, all, scalars[i], i);
    return all;
}

Val k_whole(const Codegen *k, Dtype dtype, int64_t whole) {
    LLVMTypeRef type = k_value_type(k, dtype, 1);
    uint64_t bits = (uint64_t)whole & UINT64_MAX >> (64 - 8 * dtype_bytes(dtype));
    return LLVMConstInt(type, bits, false);
}

Val k_number(const Codegen *k, Dtype dtype, double number) {
    LLVMTypeRef type = k_value_type(k, dtype, 1);
    switch (k_held(k, dtype)) {
    case HELD_BITS:
    case HELD_BIT:
        if (dtype_is_int(dtype)) return k_whole(k, dtype, dtype_saturate(dtype, number));
        return LLVMConstInt(type, dtype_bits(dtype, number), false);
    case HELD_DOUBLE:
    case HELD_FLOAT:
    case HELD_HALF:
    case HELD_BFLOAT:
        break;
    }
    return LLVMConstReal(type, number);
}

Val k_constant_array(const Codegen *k, Val *values, uint32_t n, const char *name) {
    Val all = LLVMConstArray2(LLVMTypeOf(values[0]), values, n);
    for (Val old = LLVMGetFirstGlobal(k->module); old; old = LLVMGetNextGlobal(old))
        if (LLVMGetInitializer(old) == all) return old;
    Val memory = LLVMAddGlobal(k->module, LLVMTypeOf(all), name);
    LLVMSetInitializer(memory, all);
    LLVMSetGlobalConstant(memory, true);
    LLVMSetLinkage(memory, LLVMPrivateLinkage);
    return memory;
}

Val k_intrinsic_of(const Codegen *k, const char *name, LLVMTypeRef *overloads, uint32_t n_overloads,
                   Val *args, uint32_t n_args) {
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    if (!id) ice(k->arena, "LLVM has no intrinsic %s", name);
    Val f = LLVMGetIntrinsicDeclaration(k->module, id, overloads, n_overloads);
    LLVMTypeRef type = LLVMIntrinsicGetType(k->context, id, overloads, n_overloads);
    return k_call(k, type, f, args, n_args);
}

Val k_intrinsic_of_type(const Codegen *k, const char *name, Val a, Val b) {
    LLVMTypeRef type = LLVMTypeOf(a);
    Val args[2] = {a, b};
    return k_intrinsic_of(k, name, &type, 1, args, 2);
}

Val k_asm(const Codegen *k, LLVMTypeRef result, const char *text, const char *constraints,
          Val *args, uint32_t n_args, bool has_effects) {
    LLVMTypeRef *types = arena_array(k->arena, LLVMTypeRef, n_args);
    for (uint32_t i = 0; i < n_args; i++) types[i] = LLVMTypeOf(args[i]);
    LLVMTypeRef type = LLVMFunctionType(result, types, n_args, 0);
    Val code = LLVMGetInlineAsm(type, text, strlen(text), constraints, strlen(constraints),
                                has_effects, 0, LLVMInlineAsmDialectATT, 0);
    return k_call(k, type, code, args, n_args);
}

Val k_load_hinted(const Codegen *k, LLVMTypeRef type, uint32_t n_bytes, Val pointer,
                  bool may_change, Val policy) {
    uint32_t n = n_bytes / 4;
    const char *text = str_format(k->arena, "ld.global%s%s%s [$%u]%s;", may_change ? "" : ".nc",
                                  policy ? ".L2::cache_hint" : ".L1::no_allocate",
                                  n == 4 ? ".v4.b32 {$0, $1, $2, $3}," : ".v2.b32 {$0, $1},", n,
                                  policy ? str_format(k->arena, ", $%u", n + 1) : "");
    const char *list = str_format(k->arena, "%s%s%s", n == 4 ? "=r,=r,=r,=r,l" : "=r,=r,l",
                                  policy ? ",l" : "", may_change ? ",~{memory}" : "");
    LLVMTypeRef words[4] = {k->i32, k->i32, k->i32, k->i32};
    LLVMTypeRef loaded_type = LLVMStructTypeInContext(k->context, words, n, 0);
    Val args[2] = {pointer, policy};
    Val loaded = k_asm(k, loaded_type, text, list, args, policy ? 2 : 1, may_change);
    Val all = LLVMGetPoison(LLVMVectorType(k->i32, n));
    for (uint32_t i = 0; i < n; i++) {
        Val word = k_extract_value(k, loaded, i);
        all = k_insert(k, all, word, i);
    }
    return k_bitcast(k, all, type);
}

void k_add_attribute(const Codegen *k, Val function, const char *key, const char *value) {
    LLVMAttributeRef attribute = LLVMCreateStringAttribute(k->context, key, (unsigned)strlen(key),
                                                           value, (unsigned)strlen(value));
    LLVMAddAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, attribute);
}

/* Control flow. */

Loop loop_begin_by(const Codegen *k, Val from, Val to, Val step) {
    Loop loop = {.to = to, .step = step};
    loop.before = k_here(k);
    loop.body = k_block(k, "loop");
    loop.exit = k_block(k, "done");
    Val enters = k_slt(k, from, to);
    loop.is_entered = LLVMIsAConstantInt(enters) && LLVMConstIntGetZExtValue(enters);
    if (loop.is_entered)
        k_br(k, loop.body);
    else
        k_cond_br(k, enters, loop.body, loop.exit);
    k_goto(k, loop.body);
    loop.index = k_phi(k, LLVMTypeOf(from));
    k_incoming(loop.index, from, loop.before);
    return loop;
}

Loop loop_begin(const Codegen *k, Val from, Val to, int64_t step) {
    return loop_begin_by(k, from, to, k_int(LLVMTypeOf(from), step));
}

void loop_carry(const Codegen *k, Loop *loop, Val *values, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        Carried carried = {&values[i], k_phi(k, LLVMTypeOf(values[i])), values[i]};
        k_incoming(carried.phi, carried.initial, loop->before);
        values[i] = carried.phi;
        vec_push(k->arena, &loop->carried, carried);
    }
}

void loop_end(const Codegen *k, Loop *loop) {
    Val next = k_add(k, loop->index, loop->step);
    Val again = k_slt(k, next, loop->to);
    LLVMBasicBlockRef latch = k_here(k);
    k_incoming(loop->index, next, latch);
    k_cond_br(k, again, loop->body, loop->exit);
    k_goto(k, loop->exit);
    for (uint32_t i = 0; i < loop->carried.n; i++) {
        Carried *carried = &loop->carried.data[i];
        k_incoming(carried->phi, *carried->value, latch);
        Val last = k_phi(k, LLVMTypeOf(carried->phi));
        if (!loop->is_entered) k_incoming(last, carried->initial, loop->before);
        k_incoming(last, *carried->value, latch);
        *carried->value = last;
    }
}

If if_begin(const Codegen *k, Val condition) {
    if (!condition) return (If){NULL};
    LLVMBasicBlockRef then = k_block(k, "then");
    If branch = {.after = k_block(k, "after")};
    k_cond_br(k, condition, then, branch.after);
    k_goto(k, then);
    return branch;
}

void if_end(const Codegen *k, If *branch) {
    if (branch->after) k_branch(k, branch->after);
}

Val k_fence(const Codegen *k, Val value) {
    LLVMTypeRef type = LLVMTypeOf(value);
    LLVMTypeKind kind = LLVMGetTypeKind(k_element_type(value));
    bool is_float = kind == LLVMFloatTypeKind || kind == LLVMDoubleTypeKind;
    if (!is_float || LLVMIsConstant(value) || k->target->has->blocks) return value;
    return k_intrinsic_of(k, "llvm.arithmetic.fence", &type, 1, &value, 1);
}

/* A transpose in log2(lanes) stages.
 *
 * Vectors are made of parts of 128 bits. First the squares of vectors by a part's lanes are
 * transposed, by as many stages of a perfect shuffle as it takes: x86 interleaves parts in one
 * instruction, whatever the width of a lane. Then the squares of parts are transposed, in the same
 * way: it also takes two parts of each vector in one instruction. */

enum { PART_BITS = 128 };

static Val interleave(const Codegen *k, Val a, Val b, uint32_t part, uint32_t first) {
    uint32_t n = k_lanes(a);
    Val *lanes = arena_array(k->arena, Val, n);
    for (uint32_t i = 0; i < n; i++)
        lanes[i] = k_i32(k, i / part * part + first + i % part / 2 + i % 2 * n);
    return k_shuffle(k, a, b, LLVMConstVector(lanes, n));
}

/* Transposes `part` vectors within their parts. */
static void transpose_parts(const Codegen *k, Val *vectors, uint32_t part) {
    Val *before = arena_array(k->arena, Val, part);
    for (uint32_t s = 1; s < part; s *= 2) {
        memcpy(before, vectors, part * sizeof *before);
        for (uint32_t i = 0; i < part; i++)
            vectors[i] =
                interleave(k, before[i / 2], before[i / 2 + part / 2], part, i % 2 * (part / 2));
    }
}

/* The parts of `a` and then of `b` whose number is even, or odd. */
static Val every_second(const Codegen *k, Val a, Val b, uint32_t part, uint32_t is_odd) {
    uint32_t n = k_lanes(a);
    Val *lanes = arena_array(k->arena, Val, n);
    for (uint32_t i = 0; i < n; i++)
        lanes[i] = k_i32(k, (2 * (i / part) + is_odd) * part + i % part);
    return k_shuffle(k, a, b, LLVMConstVector(lanes, n));
}

/* Transposes the parts of the vectors that are `part` apart, the first of them `first`. */
static void transpose_squares(const Codegen *k, Val *vectors, uint32_t first, uint32_t part) {
    uint32_t n = k_lanes(vectors[0]) / part;
    Val *before = arena_array(k->arena, Val, n);
    for (uint32_t s = 1; s < n; s *= 2) {
        for (uint32_t i = 0; i < n; i++) before[i] = vectors[first + i * part];
        for (uint32_t i = 0; i < n; i++) {
            uint32_t from = 2 * i % n;
            vectors[first + i * part] =
                every_second(k, before[from], before[from + 1], part, i / (n / 2));
        }
    }
}

static void fence_all(const Codegen *k, Val *vectors, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) vectors[i] = k_fence(k, vectors[i]);
}

void k_transpose(const Codegen *k, Val *vectors, uint32_t n) {
    LLVMTargetDataRef layout = LLVMGetModuleDataLayout(k->module);
    uint64_t bits = LLVMSizeOfTypeInBits(layout, k_element_type(vectors[0]));
    uint32_t part = n;
    while (part > 1 && part * bits > PART_BITS) part /= 2;
    fence_all(k, vectors, n);
    for (uint32_t i = 0; i < n; i += part) transpose_parts(k, &vectors[i], part);
    fence_all(k, vectors, n);
    for (uint32_t i = 0; i < part; i++) transpose_squares(k, vectors, i, part);
}
