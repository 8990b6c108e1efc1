/* PTX cut by function: every function is a program by itself, and the same one. */
#include "back/ptx_text.h"
#include "lib/compile.h"
#include "lib/ptx.h"
#include "lib/text_file.h"

#include <criterion/criterion.h>
#include <string.h>

#define HEAD "//\n// By LLVM\n//\n\n.version 8.0\n.target sm_90a\n.address_size 64\n"
#define SHARED ".extern .shared .align 1024 .b8 dynamic_shared[];\n"

Test(ptx_text, modules_become_a_head_and_functions) {
    Arena *arena = arena_new(NULL);
    PtxText ptx = {.head.arena = arena, .functions.arena = arena};
    ptx_add_module(&ptx, HEAD "\n\t// .globl\ta\n// a$x has been demoted\n\n.visible .entry a(\n"
                              ")\n{\n\tret;\n\n}\n\n\t// .globl\ta_v1\n.visible .entry a_v1()\n"
                              "{\n\t// .globl\n\tret;\n}\n");
    ptx_add_module(&ptx, HEAD "\n\t// .globl\tb\n" SHARED "\n.visible .entry b(\n)\n{\n}\n");
    ptx_add_module(&ptx, HEAD);
    ptx_add_module(&ptx, HEAD "\n\t// .globl\tc\n" SHARED "\n.visible .entry c(\n)\n{\n}\n");
    cr_expect_str_eq(text_str(&ptx.head), HEAD SHARED);
    cr_expect_str_eq(text_str(&ptx.functions),
                     "\n//@ function a\n.visible .entry a(\n)\n{\n\tret;\n\n}\n"
                     "\n//@ function a_v1\n.visible .entry a_v1()\n{\n\t// .globl\n\tret;\n}\n"
                     "\n//@ function b\n.visible .entry b(\n)\n{\n}\n"
                     "\n//@ function c\n.visible .entry c(\n)\n{\n}\n");
    arena_free(arena);
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
    Compiled compiled;
    cr_assert(compile_source(&compiled, source, target, COMPILE_FUSED), "%s: %s", path,
              compiled.messages);
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

Test(ptx_text, every_function_is_a_program, .timeout = 120) {
    expect_cut("dsl/examples/mlp.g", TARGET_SM_90A);
    expect_cut("dsl/examples/digits.g", TARGET_SM_80);
    expect_cut("tests/golden/numbers.g", TARGET_SM_90A);
}
