/* The dump of schedules shows what the template of a variant reads, and nothing else. */
#include "lib/plans.h"
#include "machine/card.h"

#include <criterion/criterion.h>
#include <string.h>

static const char source[] =
    "graph g(x: bf16[256, 512], w: bf16[512, 256], b: bf16[256]) -> (y: bf16[256, 256]) {\n"
    "  y = relu(x @ w + b)\n}\n";

/* Both operands of the GEMM, and each target's first variant. */
static const struct {
    TargetId target;
    CardId card;
    const char *variant;
} dumps[] = {
    {TARGET_SM_80, CARD_A100,
     ": mma gemm, lanes 4, threads 128, tile 32 x 32 x 128, warps 2 x 2, stages 4, grid 64, shared "
     "65536, aligned 16\n"},
    {TARGET_SM_90A, CARD_H200,
     ": wgmma gemm, lanes 4, threads 256, tile 64 x 64 x 64, warps 4 x 1, stages 12, grid 16, "
     "shared 206016, aligned 16, shared out among a block a processor\n"},
    {TARGET_CPU, CARD_CPU,
     ": gemm, lanes 8, unroll 4, tile 132 x 256 x 256, registers 6 x 16, blocked, grid 2\n"}};

Test(kernel_print, schedules_show_what_their_templates_read) {
    for (size_t i = 0; i < sizeof dumps / sizeof *dumps; i++) {
        Arena *arena = arena_new(NULL);
        Module *module = plans_parse(arena, source);
        const Card *card = card_get(dumps[i].card);
        Text text = {.arena = arena};
        plan_print(plans_price(arena, module, 0, false, dumps[i].target, card, NULL).plan, &text);
        const char *dump = text_str(&text), *first = strstr(dump, "  variant ");
        cr_assert(first && strstr(first, dumps[i].variant), "%s", dump);
        cr_expect(strstr(first, dumps[i].variant) < strchr(first, '\n'), "%s", dump);
        cr_expect(strstr(dump, "r0: bf16 = add(s1 * s2) in f32\n"), "%s", dump);
        arena_free(arena);
    }
}
