/* Concats in place: which concats the kernels of their operands store, how many launches and
 * temporaries remain, and at which offsets the runtime finds the operands. */
#include "lib/plans.h"
#include "plan/launch.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

typedef struct Counts {
    uint32_t n_kernels, n_launches, n_temps, n_pieces; /* launches: of a GPU */
} Counts;

typedef struct Case {
    const char *what, *source; /* the graph, after HEAD */
    Counts rules;              /* without prices */
    Counts cpu, gpu;           /* where prices say otherwise; else zeros */
} Case;

#define HEAD "dim B in 1..65536\n"

static const Case cases[] = {
    {"two matmuls of one shape",
     "graph g(x: bf16[B, 64], w: bf16[64, 128], v: bf16[64, 128]) -> (y: bf16[B, 256]) {\n"
     "  y = concat([x @ w, x @ v], axis=1)\n}\n",
     .rules = {2, 1, 0, 2}},
    {"two matmuls one below the other",
     "graph g(x: f32[B, 64], z: f32[B, 64], w: f32[64, 128]) -> (y: f32[2*B, 128]) {\n"
     "  y = concat([relu(x @ w), relu(z @ w)], axis=0)\n}\n",
     .rules = {2, 1, 0, 2}},
    {"rows and what is cheap",
     "graph g(a: f32[B, 64], b: f32[B, 32]) -> (y: f32[B, 96]) {\n"
     "  y = concat([softmax(a), exp(b)], axis=1)\n}\n",
     .rules = {2, 2, 0, 2}},
    {"an input as it is",
     "graph g(a: f32[B, 64], b: f32[B, 32]) -> (y: f32[B, 96]) {\n"
     "  y = concat([b, softmax(a)], axis=1)\n}\n",
     .rules = {2, 2, 0, 2}},
    {"one piece twice, and read elsewhere too",
     "graph g(a: f32[B, 64], b: f32[64]) -> (y: f32[B, 128], z: f32[64, B]) {\n"
     "  s = softmax(a)\n  y = concat([s, s], axis=1)\n  z = transpose(s + b)\n}\n",
     .rules = {1, 1, 0, 2}, /* rows are stored across memory by a map */
     .cpu = {2, 2, 1, 2}, .gpu = {2, 2, 1, 2}},
    {"rearranged pieces",
     "graph g(a: f32[B, 64], b: f32[B, 64]) -> (y: f32[2, B]) {\n"
     "  y = concat([reshape(sum(a, axis=1), [1, B]), reshape(sum(b, axis=1), [1, B])], axis=0)\n"
     "}\n",
     .rules = {2, 1, 0, 2}},
    {"a concat that is read again",
     "graph g(x: bf16[B, 64], w: bf16[64, 64], v: bf16[64, 64], o: bf16[128, 64])"
     " -> (c: bf16[B, 128], y: bf16[B, 64]) {\n"
     "  c = concat([x @ w, x @ v], axis=1)\n  y = c @ o\n}\n",
     .rules = {3, 2, 0, 2}},
    /* Two kernels of their own in place of the one that joins, which computes all for each lane. */
    {"two cheap pieces",
     "graph g(a: f32[B, 64], b: f32[B, 32], c: f32[B, 32]) -> (y: f32[B, 128]) {\n"
     "  y = concat([exp(b), softmax(a), exp(c)], axis=1)\n}\n",
     .rules = {2, 2, 2, 0}, .cpu = {3, 3, 0, 3}, .gpu = {3, 2, 0, 3}},
    {"nothing but cheap pieces",
     "graph g(a: f32[B, 64], b: f32[B, 32]) -> (y: f32[B, 96]) {\n"
     "  y = concat([exp(a), exp(b)], axis=1)\n}\n",
     .rules = {1, 1, 0, 0}, .cpu = {2, 2, 0, 2}},
    /* Joined, the rows are odd. */
    {"cheap pieces of odd rows",
     "graph g(a: f16[B, 4096], b: f16[B, 1]) -> (y: f16[B, 4097]) {\n"
     "  y = concat([exp(a), gelu(b)], axis=1)\n}\n",
     .rules = {1, 1, 0, 0}, .cpu = {2, 2, 0, 2}, .gpu = {2, 1, 0, 2}},
    {"an input as it is and cheap pieces",
     "graph g(a: f32[B, 64], b: f32[B, 32], c: f32[B, 64]) -> (y: f32[B, 160]) {\n"
     "  y = concat([b, gelu(a), gelu(c)], axis=1)\n}\n",
     .rules = {1, 1, 0, 0}, .cpu = {3, 3, 0, 3}, .gpu = {3, 1, 0, 3}},
    /* A dump would say nothing of two kernels that copy. */
    {"two inputs as they are and a cheap piece",
     "graph g(a: f32[B, 64], b: f32[B, 32], c: f32[B, 32]) -> (y: f32[B, 128]) {\n"
     "  y = concat([b, gelu(a), c], axis=1)\n}\n",
     .rules = {1, 1, 0, 0}, .cpu = {2, 2, 1, 0}},
    /* The kernel that joins them reduces them too. */
    {"a concat whose rows are summed",
     "graph g(x: f32[B, 64], w: f32[64, 64], v: f32[64, 32]) -> (y: f32[B, 96], s: f32[B]) {\n"
     "  y = concat([x @ w, x @ v], axis=1)\n  s = sum(y, axis=1)\n}\n",
     .rules = {3, 3, 2, 0}},
    {"a value that params determine",
     "graph g(x: f32[B, 64]) -> (y: f32[B + 64, 64]) {\n  param w: f32[64, 64] = \"w\"\n"
     "  y = concat([softmax(x), softmax(w)], axis=0)\n}\n",
     .rules = {3, 2, 2, 0}},
    {"one that the source keeps apart",
     "graph g(x: f32[B, 64], z: f32[B, 64]) -> (y: f32[B, 128]) {\n  s = softmax(x)\n"
     "  fuse never { y = concat([s, z], axis=1) }\n}\n",
     .rules = {2, 2, 1, 0}},
};

static void count_piece(void *user, const Store *store) {
    *(uint32_t *)user += store->piece != 0;
}

static uint32_t count_pieces(const Plan *plan) {
    uint32_t n_pieces = 0;
    for (uint32_t k = 0; k < plan->kernels.n; k++)
        kernel_each_store(&plan->kernels.data[k], count_piece, &n_pieces);
    return n_pieces;
}

static void expect(const Case *c, TargetId target) {
    Arena *arena = arena_new(NULL);
    const char *source = str_format(arena, HEAD "%s", c->source);
    Module *module = plans_parse(arena, source);
    const Plan *plan =
        plans_price(arena, module, 0, false, target, card_of_target(target_get(target)), NULL).plan;
    cr_assert(plan, "%s", c->what);
    uint32_t n_launches = 0, n_temps = 0, n_pieces = count_pieces(plan);
    for (uint32_t k = plan_n_init(plan); k < plan->kernels.n; k += plan_launch_of(plan, k)->n)
        n_launches++;
    for (uint32_t b = 0; b < plan->buffers.n; b++)
        n_temps += plan->buffers.data[b].kind == BUFFER_TEMP;
    bool is_gpu = target_get(target)->device == DEVICE_GPU;
    uint32_t n_init = plan_n_init(plan);
    const Counts *priced = is_gpu ? &c->gpu : &c->cpu, *of = priced->n_kernels ? priced : &c->rules;
    uint32_t expected = is_gpu ? of->n_launches : of->n_kernels - n_init;
    cr_expect(plan->kernels.n == of->n_kernels && n_launches == expected &&
                  n_temps == of->n_temps && n_pieces == of->n_pieces,
              "%s on %s: %u kernels, %u launches, %u temps, %u pieces", c->what,
              target_get(target)->name, plan->kernels.n, n_launches, n_temps, n_pieces);
    arena_free(arena);
}

Test(concat_in_place, operands_are_stored_where_the_concat_lies_if_that_is_faster) {
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        expect(&cases[i], TARGET_CPU);
        expect(&cases[i], TARGET_SM_90A);
    }
}

/* Of the plan by rules alone, or of that for the target; the source is what a dump of it says. */
static void expect_same(Arena *arena, const Case *c, const TargetId *target) {
    const char *source = str_format(arena, HEAD "%s", c->source);
    uint32_t n_kernels = 0, n_pieces = 0;
    for (int round = 0; round < 3; round++) {
        Module *module = plans_parse(arena, source);
        const Plan *plan = target && round == 0
                               ? plans_price(arena, module, 0, false, *target,
                                             card_of_target(target_get(*target)), NULL)
                                     .plan
                               : plans_fuse(arena, module, 0, false);
        cr_assert(plan, "%s: %s", c->what, source);
        if (round == 0) n_kernels = plan->kernels.n, n_pieces = count_pieces(plan);
        cr_expect(plan->kernels.n == n_kernels && count_pieces(plan) == n_pieces,
                  "%s, round %d: %u kernels, %u pieces\n%s", c->what, round, plan->kernels.n,
                  count_pieces(plan), source);
        Text text = {.arena = arena};
        module->graphs.data[0] = explain_fused_graph(arena, strtab_new(arena), plan);
        module_print(module, &text);
        source = text_str(&text);
    }
    const Counts *rules = &c->rules;
    cr_expect(target || (n_kernels == rules->n_kernels && n_pieces == rules->n_pieces),
              "%s: %u kernels, %u pieces", c->what, n_kernels, n_pieces);
}

/* A dump fixes the kernels; the concat stays outside them. */
Test(concat_in_place, a_dump_is_the_same_plan) {
    static const TargetId targets[] = {TARGET_CPU, TARGET_SM_90A};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Arena *arena = arena_new(NULL);
        expect_same(arena, &cases[i], NULL);
        for (size_t k = 0; k < 2; k++) expect_same(arena, &cases[i], &targets[k]);
        arena_free(arena);
    }
}
