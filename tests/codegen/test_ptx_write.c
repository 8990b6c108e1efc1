/* PTX from LLVM's IR: what instructions become, and that every function is a program by itself. */
#include "codegen/ptx/ptx_write.h"
#include "lib/compiled.h"
#include "lib/text_file.h"

#include <criterion/criterion.h>
#include <llvm-c/IRReader.h>
#include <setjmp.h>
#include <string.h>

/* What the function `k` of the IR becomes, from its parameters on; NULL, with the message in
 * `escape`, where the writer does not know it. */
static const char *written(Arena *arena, Escape *escape, const char *ir) {
    LLVMContextRef context = LLVMContextCreate();
    LLVMMemoryBufferRef buffer = LLVMCreateMemoryBufferWithMemoryRangeCopy(ir, strlen(ir), "k");
    LLVMModuleRef module;
    char *message = NULL;
    cr_assert_eq(LLVMParseIRInContext(context, buffer, &module, &message), 0, "%s", message);
    Codegen k = {.arena = arena,
                 .target = target_get(TARGET_SM_90A),
                 .context = context,
                 .module = module,
                 .invariant_kind = LLVMGetMDKindIDInContext(context, "invariant.load", 14)};
    PtxText ptx = {.head.arena = arena, .functions.arena = arena};
    if (setjmp(escape->jump)) return NULL;
    ptx_write_head(&ptx.head, k.target, false);
    ptx_write_module(&ptx, &k, 0);
    PtxReport report;
    text_add(&ptx.head, text_str(&ptx.functions), ptx.functions.n_bytes);
    const char *text = text_str(&ptx.head);
    ptx_assemble(arena, text, strlen(text), (PtxOptions){.target = "sm_90a", .level = "0"},
                 &report);
    LLVMDisposeModule(module);
    LLVMContextDispose(context);
    return ptx_function_text(arena, text, "k");
}

/* Expects each line of `wanted` in the text, in this order. */
static void expect_lines(const char *text, const char *message, const char *const *wanted,
                         uint32_t n) {
    const char *at = text;
    cr_assert_not_null(text, "%s", message);
    for (uint32_t i = 0; i < n; i++) {
        const char *line = strstr(at, wanted[i]);
        cr_assert(line, "no `%s` (%u) in its place in\n%s", wanted[i], i, text);
        at = line + strlen(wanted[i]);
    }
}

#define EXPECT(ir, ...)                                                          \
    do {                                                                         \
        Escape escape;                                                           \
        Arena *arena = arena_new(&escape);                                       \
        static const char *const lines[] = {__VA_ARGS__};                        \
        const char *text = written(arena, &escape, ir);                          \
        expect_lines(text, escape.message, lines, sizeof lines / sizeof *lines); \
        arena_free(arena);                                                       \
    } while (0)

#define KERNEL(params, body) "define ptx_kernel void @k(" params ") {\n" body "  ret void\n}\n"

/* a and b change places in every round: one is put aside. What leaves the loop is what went in. */
Test(ptx_write, phis_are_set_all_at_once) {
    EXPECT("define ptx_kernel void @k(ptr addrspace(1) %p, i32 %x, i32 %y) {\n"
           "entry:\n  br label %loop\n"
           "loop:\n  %a = phi i32 [ %x, %entry ], [ %b, %loop ]\n"
           "  %b = phi i32 [ %y, %entry ], [ %a, %loop ]\n"
           "  %i = phi i32 [ 0, %entry ], [ %n, %loop ]\n  %n = add i32 %i, 1\n"
           "  %c = icmp slt i32 %n, 7\n  br i1 %c, label %loop, label %done\n"
           "done:\n  %l = phi i32 [ %b, %loop ]\n  store i32 %l, ptr addrspace(1) %p\n"
           "  ret void\n}\n",
           "mov.b32 %r3, %r1;", "mov.b32 %r4, %r2;", "mov.b32 %r5, 0;", "add.s32 %r6, %r5, 1;",
           "setp.lt.s32 %p1, %r6, 7;", "mov.b32 %r8, %r3;", "mov.b32 %r3, %r4;",
           "mov.b32 %r4, %r8;", "mov.b32 %r5, %r6;", "@%p1 bra $L2;", "mov.b32 %r7, %r3;",
           "st.global.b32 [%rd1], %r7;");
}

/* What shares the phi's register and is wanted after the loop keeps it from being set too early. */
Test(ptx_write, a_value_wanted_after_a_loop_is_kept) {
    EXPECT("define ptx_kernel void @k(ptr addrspace(1) %p) {\n"
           "entry:\n  br label %loop\n"
           "loop:\n  %q = phi ptr addrspace(1) [ %p, %entry ], [ %n, %loop ]\n"
           "  %far = getelementptr i8, ptr addrspace(1) %q, i64 8\n"
           "  %n = getelementptr i8, ptr addrspace(1) %q, i64 64\n"
           "  %v = load i32, ptr addrspace(1) %q\n  %c = icmp slt i32 %v, 7\n"
           "  br i1 %c, label %loop, label %done\n"
           "done:\n  store i32 %v, ptr addrspace(1) %far\n  ret void\n}\n",
           "@!%p1 bra $L3;", "add.s64 %rd3, %rd2, 64;", "mov.b64 %rd2, %rd3;", "bra.uni $L2;",
           "st.global.b32 [%rd2+8], %r1;");
}

Test(ptx_write, numbers_are_exact_and_sums_are_not_contracted) {
    EXPECT(KERNEL("ptr addrspace(1) %p, float %x, double %y",
                  "  %m = fmul float %x, 0x3FB99999A0000000\n  %s = fadd float %m, %x\n"
                  "  %q = fdiv float %s, 8.0\n  %r = fdiv float 1.0, %q\n"
                  "  %t = fadd float %r, -0.0\n  store float %t, ptr addrspace(1) %p\n"
                  "  %d = fmul double %y, 0x3FB999999999999A\n"
                  "  store double %d, ptr addrspace(1) %p\n"),
           "mul.rn.f32 %r2, %r1, 0f3DCCCCCD;", "add.rn.f32 %r3, %r2, %r1;",
           "mul.rn.f32 %r4, %r3, 0f3E000000;", "rcp.rn.f32 %r5, %r4;", "st.global.b32 [%rd1], %r5;",
           "mul.rn.f64 %rd3, %rd2, 0d3FB999999999999A;");
}

Test(ptx_write, bits_of_a_number_are_written_as_what_they_became) {
    EXPECT(KERNEL("ptr addrspace(1) %p",
                  "  %b = bitcast double -0.0 to i64\n  %s = lshr i64 %b, 52\n"
                  "  store i64 %s, ptr addrspace(1) %p, align 8\n"),
           "shr.u64 %rd2, -9223372036854775808, 52;");
}

Test(ptx_write, pairs_share_a_register_and_accesses_are_wide) {
    EXPECT(KERNEL("ptr addrspace(1) %p",
                  "  %v = load <8 x bfloat>, ptr addrspace(1) %p, align 16, !invariant.load !0\n"
                  "  %s = fadd <8 x bfloat> %v, %v\n"
                  "  %at = getelementptr bfloat, ptr addrspace(1) %p, i64 24\n"
                  "  store <8 x bfloat> %s, ptr addrspace(1) %at, align 8\n") "!0 = !{}\n",
           "ld.global.nc.v4.b32 {%r1, %r2, %r3, %r4}, [%rd1];", "add.rn.bf16x2 %r5, %r1, %r1;",
           "st.global.v2.b32 [%rd1+48], {%r5, %r6};", "st.global.v2.b32 [%rd1+56], {%r7, %r8};");
}

/* Two at a time: a mask with all bits of a half set where it holds. Else lane by lane. */
Test(ptx_write, pairs_are_chosen_by_masks) {
    EXPECT(KERNEL("ptr addrspace(1) %p, <2 x bfloat> %x, <2 x bfloat> %y",
                  "  %c = fcmp ole <2 x bfloat> %x, %y\n"
                  "  %s = select <2 x i1> %c, <2 x bfloat> %x, <2 x bfloat> %y\n"
                  "  store <2 x bfloat> %s, ptr addrspace(1) %p, align 4\n"),
           "set.le.u32.bf16x2 %r3, %r1, %r2;", "lop3.b32 %r4, %r1, %r2, %r3, 0xe4;",
           "st.global.b32 [%rd1], %r4;");
    EXPECT(KERNEL("ptr addrspace(1) %p, <2 x half> %x, <2 x float> %y",
                  "  %c = fcmp olt <2 x float> %y, zeroinitializer\n"
                  "  %s = select <2 x i1> %c, <2 x half> %x, <2 x half> zeroinitializer\n"
                  "  store <2 x half> %s, ptr addrspace(1) %p, align 4\n"),
           "setp.lt.f32 ", "selp.b16 ", "selp.b16 ", "st.global.b32 ");
}

/* By constants: products. Both halves of one division: one of them. */
Test(ptx_write, divisions_are_few) {
    EXPECT(
        KERNEL("ptr addrspace(1) %p, i32 %x, i32 %y, i64 %w",
               "  %a = udiv i32 %x, 16\n  store volatile i32 %a, ptr addrspace(1) %p\n"
               "  %b = urem i32 %x, 56\n  store volatile i32 %b, ptr addrspace(1) %p\n"
               "  %c = sdiv i32 %x, 7\n  store volatile i32 %c, ptr addrspace(1) %p\n"
               "  %d = urem i32 %x, %y\n  store volatile i32 %d, ptr addrspace(1) %p\n"
               "  %e = udiv i32 %x, %y\n  store volatile i32 %e, ptr addrspace(1) %p\n"
               "  %f = udiv i64 %w, 4001\n  store volatile i64 %f, ptr addrspace(1) %p, align 8\n"),
        "shr.u32 ", "st.volatile", "mul.hi.u32 ", "sub.s32 ", "mul.hi.s32 ", "div.u32 ",
        "mul.lo.s32 ", "sub.s32 ", "mul.hi.u64 ");
    Escape escape;
    Arena *arena = arena_new(&escape);
    const char *text = written(arena, &escape,
                               KERNEL("ptr addrspace(1) %p, i32 %x, i32 %y",
                                      "  %d = urem i32 %x, %y\n  %e = udiv i32 %x, %y\n"
                                      "  %s = add i32 %d, %e\n"
                                      "  store i32 %s, ptr addrspace(1) %p\n"));
    cr_expect_eq(ptx_count(text, "div.u32"), 1);
    cr_expect_eq(ptx_count(text, "rem.u32"), 0);
    arena_free(arena);
}

/* Nothing is guessed: the message names the instruction. */
Test(ptx_write, what_is_unknown_is_named) {
    static const struct {
        const char *ir, *message;
    } cases[] = {
        {KERNEL("ptr addrspace(1) %p", "  %v = atomicrmw add ptr addrspace(1) %p, i32 1 monotonic\n"
                                       "  store i32 %v, ptr addrspace(1) %p\n"),
         "atomicrmw"},
        {KERNEL("ptr addrspace(1) %p, i32 %i", "  %v = load <4 x i32>, ptr addrspace(1) %p\n"
                                               "  %e = extractelement <4 x i32> %v, i32 %i\n"
                                               "  store i32 %e, ptr addrspace(1) %p\n"),
         "extractelement"},
        {"declare i32 @llvm.ctpop.i32(i32)\n" KERNEL("ptr addrspace(1) %p, i32 %x",
                                                     "  %v = call i32 @llvm.ctpop.i32(i32 %x)\n"
                                                     "  store i32 %v, ptr addrspace(1) %p\n"),
         "llvm.ctpop.i32"},
        {KERNEL("ptr addrspace(1) %p, i128 %x", "  store i128 %x, ptr addrspace(1) %p\n"), "i128"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Escape escape;
        Arena *arena = arena_new(&escape);
        cr_expect_null(written(arena, &escape, cases[i].ir), "%s", cases[i].message);
        cr_expect(strstr(escape.message, cases[i].message), "%s", escape.message);
        arena_free(arena);
    }
}

/* They are looked up by halves. */
Test(ptx_write, intrinsics_are_sorted) {
    static const char *const names[] = {
#define EACH(name, text) name,
#define FOLD(name, text) name,
#define READ(name, text) name,
#define CALL(name, text) name,
#include "codegen/ptx/calls.def"
    };
    for (size_t i = 1; i < sizeof names / sizeof *names; i++)
        cr_expect(strcmp(names[i - 1], names[i]) < 0, "%s", names[i]);
}

static const char mark[] = "\n//@ function ";

static const char *word_of(Arena *arena, const char *text) {
    return str_format(arena, "%.*s", (int)strcspn(text, " \n"), text);
}

static void expect_same(const PtxReport *whole, const PtxFunction *alone) {
    for (uint32_t i = 0; i < whole->functions.n; i++) {
        const PtxFunction *there = &whole->functions.data[i];
        if (strcmp(there->name, alone->name) != 0) continue;
        cr_expect_eq(there->n_registers, alone->n_registers, "%s", alone->name);
        cr_expect_eq(there->stack_bytes, alone->stack_bytes, "%s", alone->name);
        cr_expect_eq(there->shared_bytes, alone->shared_bytes, "%s", alone->name);
        return;
    }
    cr_expect_fail("%s is not in the whole", alone->name);
}

/* Every entry follows a line that names it; the head with it is taken by the assembler, as the
 * whole is. */
static void expect_cut(const char *path, TargetId id) {
    Arena *arena = arena_new(NULL);
    const Target *target = target_get(id);
    size_t n_source;
    const char *source = text_file_read(arena, path, &n_source);
    Compiled compiled = compiled_new(source, id);
    const char *code = strstr(compiled.bytes, "\n//@ end\n") + strlen("\n//@ end\n");
    const char *at = strstr(code, mark);
    cr_assert(at, "%s is not cut", path);
    int n_head = (int)(at + 1 - code);
    PtxOptions options = {.target = target->name};
    PtxReport whole = {0}, alone;
    bool has_tool = ptx_assemble(arena, code, strlen(code), options, &whole);
    uint32_t n = 0;
    for (const char *next; at; at = next, n++) {
        next = strstr(at + 1, mark);
        const char *end = next ? next + 1 : code + strlen(code);
        const char *ptx = str_format(arena, "%.*s%.*s", n_head, code, (int)(end - at - 1), at + 1);
        cr_expect_eq(ptx_count(ptx, ".entry "), 1, "%s", path);
        const char *name = word_of(arena, at + strlen(mark));
        const char *entry = str_format(arena, "%s%s\n.visible .entry %s(", mark, name, name);
        cr_expect(strncmp(at, entry, strlen(entry)) == 0, "%.100s", at);
        if (!has_tool || !ptx_assemble(arena, ptx, strlen(ptx), options, &alone)) continue;
        cr_assert_eq(alone.functions.n, 1);
        expect_same(&whole, alone.functions.data);
    }
    cr_expect_eq(ptx_count(code, ".entry "), n, "%s: an entry is not cut off", path);
    for (const char *variant = compiled.bytes; (variant = strstr(variant, "\n//@ variant "));) {
        const char *name = word_of(arena, variant += strlen("\n//@ variant "));
        const char *line = str_format(arena, "%s%s\n", mark, name);
        cr_expect(strstr(code, line), "%s has no text", name);
    }
    compile_free(&compiled);
    arena_free(arena);
}

Test(ptx_write, every_function_is_a_program, .timeout = 120) {
    expect_cut("dsl/examples/mlp.g", TARGET_SM_90A);
    expect_cut("dsl/examples/digits.g", TARGET_SM_80);
    expect_cut("tests/golden/numbers.g", TARGET_SM_90A);
}
