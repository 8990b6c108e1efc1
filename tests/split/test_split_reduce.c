/* Long reductions beside which elements are stored: one kernel goes over the segments and stores
 * the elements as it does, another finishes. Results are compared by `soak --shapes` of segments,
 * `fusec verify` and on a GPU. */
#include "split/split_reduce.h"

#include "explain/explain.h"
#include "lib/plans.h"

#include <criterion/criterion.h>
#include <string.h>

static PricedPlan priced(Arena *arena, const char *source, TargetId target) {
    Module *module = plans_parse(arena, source);
    PricedPlan plan =
        plans_price(arena, module, 0, false, target, card_of_target(target_get(target)), NULL);
    cr_assert(plan.plan, "%s", source);
    return plan;
}

static const TargetId targets[] = {TARGET_SM_90A, TARGET_SM_80, TARGET_CPU};
enum { N_TARGETS = sizeof targets / sizeof *targets };

static const struct {
    const char *what, *source;
    uint32_t n_launches[N_TARGETS];
} cases[] = {
    {"all of a vector",
     "dim N in 1..100000000\ngraph g(x: f32[N], r: f32[N]) -> (h: f32[N], s: f32) {\n"
     "  h = x + r\n  s = sum(h * h)\n}\n",
     {2, 2, 2}},
    {"the reduction first",
     "graph g(x: f32[100000000]) -> (s: f32, y: f32[100000000]) {\n"
     "  s = sum(x)\n  y = x + 1.0\n}\n",
     {2, 2, 2}},
    {"neither needs the other",
     "graph g(x: f32[1000000]) -> (y: f32[1000000], s: f32) {\n"
     "  y = x + 1.0\n  s = sum(x)\n}\n",
     {2, 2, 2}},
    {"columns",
     "graph g(x: f32[100000, 512], r: f32[100000, 512]) -> (h: f32[100000, 512], s: f32[512]) {\n"
     "  h = x + r\n  s = sum(h * h, axis=0)\n}\n",
     {2, 2, 2}},
    {"columns, of which one kernel could take all",
     "dim T in 1..65536\ngraph g(x: f32[T, 1024], t: f32[T, 1024])"
     " -> (d: f32[T, 1024], db: f32[1024]) {\n"
     "  d = where(x > 0.0, t, 0.0)\n  db = sum(d, axis=0)\n}\n",
     {2, 2, 2}},
    {"columns, which prices can hardly tell from a map and a sum",
     "graph g(x: f32[1024, 1024], t: f32[1024, 1024])"
     " -> (d: f32[1024, 1024], db: f32[1024]) {\n"
     "  d = where(x > 0.0, t, 0.0)\n  db = sum(d, axis=0)\n}\n",
     {2, 2, 2}},
    {"a block of the source",
     "graph g(x: f16[1999, 72], r: f16[1999, 72]) -> (h: f16[1999, 72], s: f16[72]) {\n"
     "  fuse must {\n    h = x + r\n    s = sum(h * h, axis=0)\n  }\n}\n",
     {2, 2, 2}},
    {"a kernel of the source",
     "graph g(x: f32[100000], r: f32[100000]) -> (h: f32[100000], s: f32) {\n"
     "  kernel one {\n    h = x + r\n    s = sum(h * h)\n  }\n}\n",
     {2, 2, 2}},
    {"few long rows",
     "graph g(x: f32[8, 1000000], r: f32[8, 1000000]) -> (h: f32[8, 1000000], s: f32[8]) {\n"
     "  h = x + r\n  s = sum(h * h, axis=1)\n}\n",
     {2, 2, 2}},
    {"rows for half a GPU, but for all cores",
     "graph g(x: f32[64, 1000000], r: f32[64, 1000000]) -> (h: f32[64, 1000000], s: f32[64]) {\n"
     "  h = x + r\n  s = sum(h * h, axis=1)\n}\n",
     {2, 2, 1}},
    {"rows for all of any machine",
     "graph g(x: f32[8192, 32768], r: f32[8192, 32768]) -> (h: f32[8192, 32768], s: f32[8192]) {\n"
     "  h = x + r\n  s = sum(h * h, axis=1)\n}\n",
     {1, 1, 1}},
    {"what follows is computed of what is stored",
     "graph g(x: f32[2, 1000000], r: f32[2, 1000000])"
     " -> (h: f32[2, 1000000], y: f32[2, 1000000]) {\n"
     "  h = x + r\n  y = h - mean(h, axis=1, keep=true)\n}\n",
     {3, 3, 3}},
};

Test(split_reduce, elements_are_stored_as_they_are_reduced) {
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int t = 0; t < N_TARGETS; t++) {
            Arena *arena = arena_new(NULL);
            PricedPlan plan = priced(arena, cases[i].source, targets[t]);
            cr_expect_eq(plan.cost->n_launches, cases[i].n_launches[t], "%s, %s: %u launches",
                         cases[i].what, target_get(targets[t])->name, plan.cost->n_launches);
            arena_free(arena);
        }
}

/* As a program that fixes the kernels, with elements and sums of one kernel. */
Test(split_reduce, a_dump_starts_as_many_kernels) {
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int t = 0; t < N_TARGETS; t++) {
            Arena *arena = arena_new(NULL);
            Text text = {.arena = arena};
            Module *module = plans_parse(arena, cases[i].source);
            const Card *card = card_of_target(target_get(targets[t]));
            PricedPlan plan = plans_price(arena, module, 0, false, targets[t], card, NULL);
            module->graphs.data[0] = explain_fused_graph(arena, strtab_new(arena), plan.plan);
            module_print(module, &text);
            PricedPlan again = priced(arena, text_str(&text), targets[t]);
            cr_expect_eq(again.cost->n_launches, plan.cost->n_launches, "%s, %s:\n%s",
                         cases[i].what, target_get(targets[t])->name, text_str(&text));
            arena_free(arena);
        }
}

/* Nothing is read twice, and the finish stores no elements. */
Test(split_reduce, each_byte_is_moved_once) {
    for (int t = 0; t < N_TARGETS; t++) {
        Arena *arena = arena_new(NULL);
        PricedPlan plan = priced(arena, cases[3].source, targets[t]);
        double moved = plan.cost->read_bytes + plan.cost->written_bytes;
        cr_expect_lt(moved, plan.cost->least_bytes * 1.01, "%s", target_get(targets[t])->name);
        const Kernel *part = &plan.plan->kernels.data[0], *finish = part + 1;
        cr_expect_neq(part->segment_axis, NO_AXIS);
        cr_expect(kernel_stores_inner(part) && !kernel_stores_inner(finish));
        cr_expect_eq(part->stages.data[0].reduces.n, finish->stages.data[0].reduces.n);
        arena_free(arena);
    }
}

/* The kernels that stand for few long rows, too: with what is stored before the last pass. */
Test(split_reduce, dispatched_rows_store_as_they_are_reduced) {
    static const char source[] =
        "dim T in 1..65536\ndim D in 1..65536\n"
        "graph g(x: f32[T, D], r: f32[T, D]) -> (h: f32[T, D], y: f32[T, D]) {\n"
        "  h = x + r\n  y = softmax(h)\n}\n";
    Arena *arena = arena_new(NULL);
    const Plan *plan = priced(arena, source, TARGET_SM_80).plan;
    uint32_t n_maps = 0, n_storing = 0;
    for (uint32_t k = 1; k < plan->kernels.n; k++) {
        const Kernel *kernel = &plan->kernels.data[k];
        cr_expect(kernel_is_alternative(kernel));
        n_maps += kernel->form == FORM_MAP;
        n_storing += kernel->segment_axis != NO_AXIS && kernel_stores_inner(kernel);
    }
    cr_expect_eq(n_maps, 1);
    cr_expect_eq(n_storing, 1);
    arena_free(arena);
}

/* A value that segments make of another may lie where that does: each element is at one place. */
Test(split_reduce, store_over_what_they_read) {
    static const char source[] = "graph g(x: f32[1000000]) -> (y: f32[1000000]) {\n"
                                 "  fuse never { a = exp(x) }\n  b = tanh(a)\n  s = sum(b)\n"
                                 "  fuse never { y = b * s }\n}\n";
    for (int t = 0; t < N_TARGETS; t++) {
        Arena *arena = arena_new(NULL);
        const Plan *plan = priced(arena, source, targets[t]).plan;
        bool in_place_of = false;
        for (uint32_t i = 0; i < plan->buffers.n; i++)
            in_place_of = in_place_of || plan->buffers.data[i].in_place_of;
        cr_expect(in_place_of, "%s", target_get(targets[t])->name);
        arena_free(arena);
    }
}

/* What needs rows and columns goes with the same of them, whichever the source has first. */
Test(split_reduce, the_order_of_statements_is_no_matter) {
    static const char *const shapes[] = {"1024, 1024", "300, 7", "4096, 64", "64, 4096",
                                         "256, 16384"};
    static const char *const sums[] = {"  r = sum(x, axis=1, keep=true)\n",
                                       "  c = sum(x, axis=0, keep=true)\n"};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int t = 0; t < N_TARGETS; t++) {
            Arena *arena = arena_new(NULL);
            const PlanCost *costs[2];
            for (int first = 0; first < 2; first++) {
                const char *source = str_format(
                    arena, "graph g(x: f32[%s]) -> (y: f32[%s]) {\n%s%s  y = x / (r + c)\n}\n",
                    shapes[i], shapes[i], sums[first], sums[1 - first]);
                costs[first] = priced(arena, source, targets[t]).cost;
            }
            cr_expect_eq(costs[0]->n_launches, costs[1]->n_launches, "%s, %s: %u and %u launches",
                         shapes[i], target_get(targets[t])->name, costs[0]->n_launches,
                         costs[1]->n_launches);
            arena_free(arena);
        }
    Arena *arena = arena_new(NULL);
    const char *source = str_format(
        arena, "graph g(x: f32[1024, 1024]) -> (y: f32[1024, 1024]) {\n%s%s  y = x / (r + c)\n}\n",
        sums[0], sums[1]);
    cr_expect_eq(priced(arena, source, TARGET_SM_90A).cost->n_launches, 3);
    arena_free(arena);
}
