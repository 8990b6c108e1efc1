/* The tests' own reading of PTX and of what the assembler says of it. */
#include "lib/ptx.h"

#include <criterion/criterion.h>
#include <string.h>

static const char ptx[] = ".version 7.8\n.target sm_80\n.address_size 64\n"
                          ".visible .entry first(\n\t.param .u64 first_param_0\n)\n{\n"
                          "\t.reg .b32 %r<2>;\n\t.reg .b64 %rd<2>;\n"
                          "\t.shared .align 4 .b8 room[256];\n"
                          "\tld.param.u64 %rd1, [first_param_0];\n"
                          "\tld.volatile.shared.u32 %r1, [room];\n"
                          "\tst.global.u32 [%rd1], %r1;\n\tret;\n}\n"
                          ".visible .entry second()\n{\n\tret;\n}\n";

Test(ptx, spills_and_remarks_are_read) {
    Arena *arena = arena_new(NULL);
    PtxReport report;
    ptx_read_messages(
        arena,
        "ptxas info    : 0 bytes gmem\n"
        "ptxas info    : (C7510) Potential Performance Loss: instructions are serialized\n"
        "ptxas info    : Compiling entry function 'a_v0' for 'sm_90a'\n"
        "ptxas info    : Function properties for a_v0\n"
        "    16 bytes stack frame, 12 bytes spill stores, 8 bytes spill loads\n"
        "ptxas info    : Used 255 registers, used 1 barriers, 49152 bytes smem\n"
        "ptxas warning : something is odd\n"
        "ptxas info    : Compiling entry function 'b' for 'sm_90a'\n"
        "ptxas info    : Function properties for b\n"
        "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
        "ptxas info    : Used 40 registers\n",
        &report);
    cr_assert_eq(report.functions.n, 2);
    const PtxFunction *a = &report.functions.data[0], *b = a + 1;
    cr_expect_eq(report.n_remarks, 2);
    cr_expect(strcmp(a->name, "a_v0") == 0 && strcmp(b->name, "b") == 0);
    cr_expect(a->n_registers == 255 && b->n_registers == 40);
    cr_expect(a->stack_bytes == 16 && a->spill_store_bytes == 12 && a->spill_load_bytes == 8);
    cr_expect(b->stack_bytes == 0 && b->spill_store_bytes == 0 && b->spill_load_bytes == 0);
    cr_expect(a->shared_bytes == 49152 && b->shared_bytes == 0);
    cr_expect(!ptx_is_in_registers(&report));
    report.functions.data[0] = *b;
    cr_expect(ptx_is_in_registers(&report));
    report.functions.n = 0;
    cr_expect(!ptx_is_in_registers(&report), "of nothing nothing is known");
    arena_free(arena);
}

Test(ptx, the_assembler_is_understood) {
    Arena *arena = arena_new(NULL);
    PtxReport report;
    PtxOptions options = {.target = "sm_80", .wants_sass = true};
    if (ptx_assemble(arena, ptx, strlen(ptx), options, &report)) {
        cr_assert_eq(report.functions.n, 2);
        cr_expect(ptx_is_in_registers(&report));
        cr_expect_eq(report.n_remarks, 0);
        uint32_t n_shared = 0;
        for (uint32_t i = 0; i < 2; i++) {
            const PtxFunction *function = &report.functions.data[i];
            bool is_first = strcmp(function->name, "first") == 0;
            n_shared += function->shared_bytes;
            cr_expect(function->n_registers > 0 && function->n_registers < 32);
            cr_expect_eq(function->shared_bytes, is_first ? 256 : 0, "%s", function->name);
        }
        cr_expect_eq(n_shared, 256);
        if (report.sass) cr_expect_eq(ptx_count(report.sass, "STG"), 1);
    }
    arena_free(arena);
}

Test(ptx, functions_are_found_by_name) {
    Arena *arena = arena_new(NULL);
    const char *first = ptx_function_text(arena, ptx, "first");
    const char *second = ptx_function_text(arena, ptx, "second");
    cr_expect_eq(ptx_count(first, "ret;"), 1);
    cr_expect_eq(ptx_count(first, "shared"), 2);
    cr_expect_eq(ptx_count(second, "ret;"), 1);
    cr_expect_eq(ptx_count(second, "shared"), 0);
    arena_free(arena);
}
