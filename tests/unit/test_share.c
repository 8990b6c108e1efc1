/* Structurally equal kernels share their code, whatever their tensors are called. */
#include "lib/plans.h"
#include "pass/sched.h"
#include "pass/share.h"

#include <criterion/criterion.h>

static const char source[] =
    "dim B in 1..4096\n"
    "graph a(x: f32[B, 64], w: f32[64]) -> (y: f32[B, 64]) {\n  y = softmax(x * w, axis=1)\n}\n"
    "graph b(p: f32[B, 64], q: f32[64]) -> (r: f32[B, 64]) {\n  r = softmax(p * q, axis=1)\n}\n"
    "graph c(p: f32[B, 64], q: f32[64]) -> (r: f32[B, 64]) {\n  r = softmax(q * p, axis=1)\n}\n"
    "graph d(p: f32[B, 64], q: f32[64]) -> (r: f32[B, 64]) {\n  r = softmax(p + q, axis=1)\n}\n";

static void schedule(Arena *arena, Plan **plans, uint32_t n) {
    const char *errors = "";
    Module *module = plans_parse(arena, source, &errors);
    cr_assert(module, "%s", errors);
    for (uint32_t i = 0; i < n; i++) {
        plans[i] = plans_fuse(arena, module, i, false, &errors);
        cr_assert(plans[i], "%s", errors);
        sched_plan(arena, plans[i], target_get(TARGET_SM_80));
    }
    share_classify(arena, (const Plan *const *)plans, n);
    share_functions(arena, (const Plan *const *)plans, n);
}

Test(share, only_equal_kernels_share) {
    Arena *arena = arena_new(NULL);
    Plan *plans[4];
    schedule(arena, plans, 4);
    const Variant *variants[4];
    for (int i = 0; i < 4; i++) variants[i] = &plans[i]->kernels.data[0].variants[0];
    cr_expect(!variants[0]->is_shared);
    cr_expect(variants[1]->is_shared && variants[1]->symbol == variants[0]->symbol);
    cr_expect(!variants[2]->is_shared, "arguments in another order are another kernel");
    cr_expect(!variants[3]->is_shared, "another op is another kernel");
    arena_free(arena);
}
