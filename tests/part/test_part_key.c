/* The keys of parts: equal functions have equal keys, in whatever modules, and a function that
 * differs in anything has another. */
#include "codegen/llvm/module.h"
#include "codegen/part/part_key.h"
#include "machine/target.h"

#include <criterion/criterion.h>
#include <llvm-c/IRReader.h>
#include <string.h>

/* Lines that may stand in the function below. Each differs from the one before in one thing. */
static const char *const lines[] = {
    "%r = add i64 %i, 1",
    "%r = add i64 %i, 2",
    "%r = add nsw i64 %i, 2",
    "%r = add nuw i64 %i, 2",
    "%r = add i64 2, %i",
    "%r = sub i64 2, %i",
    "%r = sub i64 %n, %i",
    "%r = sub i64 %i, %n",
    "%r = lshr i64 %i, %n",
    "%r = lshr exact i64 %i, %n",
    "%r = or i64 %i, %n",
    "%r = or disjoint i64 %i, %n",
    "%r = zext i32 %b to i64",
    "%r = sext i32 %b to i64",
    "%r = zext nneg i32 %b to i64",
    "%r = icmp slt i64 %i, %n",
    "%r = icmp sle i64 %i, %n",
    "%r = icmp samesign sle i64 %i, %n",
    "%r = fcmp olt float %f, 0.0",
    "%r = fcmp ult float %f, 0.0",
    "%r = fcmp ult float %f, -0.0",
    "%r = fcmp ult float %f, 0x7FF8000000000000",
    "%r = fcmp ult float %f, 0x7FFC000000000000",
    "%r = fadd float %f, %f",
    "%r = fadd contract float %f, %f",
    "%r = fadd nnan float %f, %f",
    "%r = load float, ptr %p, align 4",
    "%r = load float, ptr %p, align 8",
    "%r = load volatile float, ptr %p, align 8",
    "%r = load i32, ptr %p, align 8",
    "%r = load i32, ptr %p, align 8, !invariant.load !0",
    "store float %f, ptr %p, align 4",
    "store volatile float %f, ptr %p, align 4",
    "store float %f, ptr %p, align 1",
    "%r = getelementptr float, ptr %p, i64 %i",
    "%r = getelementptr i8, ptr %p, i64 %i",
    "%r = getelementptr inbounds i8, ptr %p, i64 %i",
    "%r = getelementptr [2 x float], ptr %p, i64 %i",
    "%r = getelementptr [3 x float], ptr %p, i64 %i",
    "%r = alloca float, align 4",
    "%r = alloca float, align 64",
    "%r = alloca [2 x float], align 64",
    "%r = shufflevector <4 x float> %v, <4 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>",
    "%r = shufflevector <4 x float> %v, <4 x float> poison, <4 x i32> <i32 0, i32 1, i32 3, i32 2>",
    "%r = shufflevector <4 x float> %v, <4 x float> poison, <2 x i32> <i32 0, i32 1>",
    "%r = shufflevector <4 x float> %v, <4 x float> undef, <2 x i32> <i32 0, i32 1>",
    "%r = fmul <4 x float> %v, <float 1.0, float 2.0, float 3.0, float 4.0>",
    "%r = fmul <4 x float> %v, <float 1.0, float 2.0, float 3.0, float 5.0>",
    "%r = fmul <4 x float> %v, <float 1.0, float 2.0, float 3.0, float poison>",
    "%r = fmul <4 x float> %v, zeroinitializer",
    "%r = insertelement <4 x float> %v, float %f, i32 0",
    "%r = insertelement <4 x float> %v, float %f, i32 1",
    "%r = call float @llvm.fabs.f32(float %f)",
    "%r = call float @llvm.sqrt.f32(float %f)",
    "%r = tail call float @llvm.sqrt.f32(float %f)",
    "%r = call nnan float @llvm.sqrt.f32(float %f)",
    "%r = call <4 x float> @llvm.masked.load.v4f32.p0(ptr align 4 %p, <4 x i1> poison, <4 x float> "
    "%v)",
    "%r = call <4 x float> @llvm.masked.load.v4f32.p0(ptr align 8 %p, <4 x i1> poison, <4 x float> "
    "%v)",
    "%r = select i1 poison, i64 %i, i64 %n",
    "%r = select i1 undef, i64 %i, i64 %n",
    "%r = select i1 true, i64 %i, i64 %n",
    "br i1 true, label %next, label %last\nnext:",
    "br i1 true, label %last, label %next\nnext:",
    "br label %next\nnext:\n%r = phi i64 [ 1, %entry ]",
    "br label %next\nnext:\n%r = phi i64 [ 2, %entry ]",
    "br label %next\nnext:\nbr i1 true, label %third, label %last\nthird:",
};

/* Functions with one of these count as equal to none. */
static const char *const unknown[] = {
    "%r = load float, ptr @global",
    "call void @other()",
    "%r = load atomic float, ptr %p unordered, align 4",
    "%r = load float, ptr %p, align 4, !nontemporal !1",
    "fence seq_cst",
    "call void asm sideeffect \"\", \"\"()",
    "%r = add i128 %wide, 1",
};

typedef struct Parsed {
    Codegen k;
    bool has_key;
    VecU32 key;
} Parsed;

static Parsed parse(Arena *arena, const char *line) {
    Parsed parsed = {.has_key = false};
    const char *text = str_format(
        arena,
        "@global = external global float\ndeclare void @other()\n"
        "declare float @llvm.fabs.f32(float)\ndeclare float @llvm.sqrt.f32(float)\n"
        "declare <4 x float> @llvm.masked.load.v4f32.p0(ptr, <4 x i1>, <4 x float>)\n"
        "define void @f(ptr %%p, i64 %%i, i64 %%n, i32 %%b, float %%f, <4 x float> %%v, i128 "
        "%%wide) {\nentry:\n%s\nbr label %%last\nlast:\nret void\n}\n"
        "!0 = !{}\n!1 = !{i32 1}\n",
        line);
    char *message = NULL;
    LLVMModuleRef module;
    module_init(&parsed.k, arena, target_get(TARGET_CPU), "test");
    LLVMMemoryBufferRef buffer =
        LLVMCreateMemoryBufferWithMemoryRangeCopy(text, strlen(text), "test");
    cr_assert(!LLVMParseIRInContext(parsed.k.context, buffer, &module, &message), "%s: %s", line,
              message);
    parsed.has_key = part_key(&parsed.k, LLVMGetNamedFunction(module, "f"), &parsed.key);
    LLVMDisposeModule(module);
    module_dispose(&parsed.k);
    return parsed;
}

static bool is_equal(const Parsed *a, const Parsed *b) {
    return a->key.n == b->key.n &&
           memcmp(a->key.data, b->key.data, a->key.n * sizeof *a->key.data) == 0;
}

Test(part_key, differs_where_anything_differs) {
    enum { N = sizeof lines / sizeof *lines };
    Arena *arena = arena_new(NULL);
    Parsed parsed[N];
    for (uint32_t i = 0; i < N; i++) {
        parsed[i] = parse(arena, lines[i]);
        Parsed again = parse(arena, lines[i]);
        cr_assert(parsed[i].has_key, "no key: %s", lines[i]);
        cr_expect(is_equal(&parsed[i], &again), "two keys: %s", lines[i]);
        for (uint32_t k = 0; k < i; k++)
            cr_expect(!is_equal(&parsed[i], &parsed[k]), "one key:\n%s\n%s", lines[k], lines[i]);
    }
    arena_free(arena);
}

Test(part_key, what_is_not_known_has_none) {
    Arena *arena = arena_new(NULL);
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        cr_expect(!parse(arena, unknown[i]).has_key, "%s", unknown[i]);
    arena_free(arena);
}
