/* What the code for a CPU has and has not. */
#include "codegen/codegen.h"
#include "lib/plans.h"
#include "schedule/schedule.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

/* Whether the assembly for AVX2, or the IR, has the text. */
static bool code_has(const char *source, CodeKind kind, const char *part) {
    Arena *arena = arena_new(NULL);
    Diags diags = {.arena = arena};
    Plan *fused = plans_fuse(arena, plans_parse(arena, source), 0, false);
    const Target *target = target_get(TARGET_CPU);
    sched_plan(arena, fused, target);
    const Plan *plan = fused;
    BackOptions options = {.target = target, .verify = true};
    CodeBytes code;
    cr_assert(codegen_emit(arena, &plan, 1, options, kind, &code, &diags), "%s", source);
    Text text = {.arena = arena};
    text_printf(&text, "%.*s", (int)code.n_bytes, code.data);
    bool has = strstr(text_str(&text), part) != NULL;
    arena_free(arena);
    return has;
}

/* Of whole vectors, no accumulator is stored under a mask. */
Test(cpu_code, comparisons_store_all_accumulators) {
    static const char *const kept[] = {"f32", "f64", "i64", "i32"};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        char source[200];
        snprintf(source, sizeof source,
                 "dim T in 2..500\ngraph g(x: %s[T, 640]) -> (y: %s[640], z: i32[640]) {\n"
                 "  y = min(x, axis=0)\n  z = argmax(x, axis=0)\n}\n",
                 kept[i], kept[i]);
        cr_expect_not(code_has(source, CODE_ASSEMBLY, "maskmov"), "%s", source);
    }
}

Test(cpu_code, comparisons_of_rows_store_all_accumulators) {
    cr_expect_not(code_has("graph g(x: f32[9, 640]) -> (z: i32[9]) { z = argmax(x, axis=1) }",
                           CODE_ASSEMBLY, "maskmov"));
}

/* The rows of a concat are told apart without a division in each lane. */
Test(cpu_code, a_guard_of_a_quotient_is_one_of_its_dividend) {
    cr_expect_not(
        code_has("dim H in 4..24 mult 4\n"
                 "graph g(x: f16[H + 6, 3, 1, H + 1], z: f16[H + 6, H, 1, H + 1])\n"
                 "    -> (y: f16[H + 6, H + 3, 1, H + 1]) { y = concat([x, z], axis=1) }\n",
                 CODE_LLVM_IR, "div <"));
}
