/* The dump of schedules shows both operands of a GEMM, and of a schedule the fields that its
 * template reads and no others. The whole dump of one program stands in tests/golden/program.sched:
 * a GEMM, rows over its result (on the CPU in the GEMM's launch), other rows, and a map.
 * FUSEC_UPDATE_GOLDEN=1 writes it anew. */
#include "lib/plans.h"
#include "lib/text_file.h"
#include "machine/card.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

static const char source[] =
    "graph g(x: bf16[256, 512], w: bf16[512, 256], b: bf16[256], z: f32[96, 2048], u: f32[8, 40])\n"
    "    -> (y: bf16[256, 256], p: bf16[256, 256], s: f32[96], m: f32[8, 40]) {\n"
    "  y = relu(x @ w + b)\n"
    "  p = softmax(y)\n"
    "  s = sum(z, axis=1)\n"
    "  m = u * 2\n"
    "}\n";

static void update_golden(const char *path, const Text *text) {
    FILE *file = fopen(path, "wb");
    cr_assert(file, "cannot write %s", path);
    fputs(text_str(text), file);
    cr_expect_eq(fclose(file), 0);
}

Test(kernel_print, the_dump_of_a_program_is_the_golden_one) {
    static const TargetId targets[] = {TARGET_SM_80, TARGET_SM_90A, TARGET_CPU};
    static const char path[] = "tests/golden/program.sched";
    Arena *arena = arena_new(NULL);
    Text text = {.arena = arena};
    size_t n_bytes;
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        const Target *target = target_get(targets[i]);
        Module *module = plans_parse(arena, source);
        PricedPlan priced =
            plans_price(arena, module, 0, false, targets[i], card_of_target(target), NULL);
        text_printf(&text, "%s# %s\n", i ? "\n" : "", target->name);
        plan_print(priced.plan, &text);
    }
    if (getenv("FUSEC_UPDATE_GOLDEN")) update_golden(path, &text);
    cr_expect_str_eq(text_str(&text), text_file_read(arena, path, &n_bytes));
    arena_free(arena);
}
