/* Rows in two ways: which kernels have others that stand for them, where those start, and that the
 * plan says so. Results are compared by `fusec verify` and on a GPU. */
#include "split/dispatch_rows.h"

#include "lib/plans.h"

#include <criterion/criterion.h>
#include <string.h>

typedef struct Fixture {
    Arena *arena;
    PricedPlan priced;
    const Card *card;
} Fixture;

static Fixture fixture_new(const char *source, TargetId target) {
    Fixture f = {.arena = arena_new(NULL), .card = card_of_target(target_get(target))};
    Module *module = plans_parse(f.arena, source);
    f.priced = plans_price(f.arena, module, 0, false, target, f.card, NULL);
    cr_assert(f.priced.plan, "%s", source);
    return f;
}

static const char softmax[] = "dim B in 1..1048576\ndim C in 1..1048576\n"
                              "graph g(x: f32[B, C]) -> (y: f32[B, C]) { y = softmax(x) }\n";

static uint32_t launches_at(const Fixture *f, int64_t rows, int64_t length) {
    int64_t given[DIM_MAX_SYMBOLS];
    for (int i = 0; i < DIM_MAX_SYMBOLS; i++) given[i] = -1;
    given[0] = rows, given[1] = length;
    const int64_t *dims = cost_dims(f->arena, f->priced.plan->graph->dims, given);
    return cost_plan(f->arena, f->priced.plan, f->card, dims)->n_launches;
}

Test(dispatch_rows, few_long_rows_take_the_whole_machine) {
    static const struct {
        TargetId target;
        int64_t rows, length;
        bool is_spread;
    } cases[] = {{TARGET_SM_80, 1, 4096, false},      {TARGET_SM_80, 1, 128256, true},
                 {TARGET_SM_80, 4096, 128256, false}, {TARGET_SM_80, 64, 1048576, true},
                 {TARGET_SM_90A, 1, 128256, false}, /* a cluster's */
                 {TARGET_SM_90A, 1, 128257, true},    {TARGET_SM_90A, 1, 131076, true},
                 {TARGET_SM_90A, 200, 131076, false}, {TARGET_CPU, 1, 32768, true},
                 {TARGET_CPU, 2, 32768, false},       {TARGET_CPU, 1, 4096, false},
                 {TARGET_CPU, 64, 131072, false},     {TARGET_CPU, 64, 131073, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Fixture f = fixture_new(softmax, cases[i].target);
        uint32_t n = launches_at(&f, cases[i].rows, cases[i].length);
        cr_expect_eq(n > 1, cases[i].is_spread, "case %zu: %u launches", i, n);
        arena_free(f.arena);
    }
}

/* The whole before those that stand for it, each started where the other is not, and temps only
 * there. */
Test(dispatch_rows, kernels_start_where_others_do_not) {
    Fixture f = fixture_new(softmax, TARGET_SM_80);
    const Plan *plan = f.priced.plan;
    DimTab *dims = plan->graph->dims;
    const Kernel *whole = &plan->kernels.data[0];
    cr_assert(kernel_has_alternative(whole));
    cr_assert_eq(plan_n_alternatives(plan, whole->choice) + 1, plan->kernels.n);
    for (uint32_t k = 1; k < plan->kernels.n; k++) {
        const Kernel *piece = &plan->kernels.data[k];
        cr_expect(kernel_is_alternative(piece));
        DimId sum = dim_add(dims, kernel_factor(whole), kernel_factor(piece));
        cr_expect(dim_equals_const(dims, sum, 1));
        cr_expect(piece->form == FORM_MAP || piece->stages.n == 1);
    }
    cr_expect_eq(dim_lo(dims, kernel_factor(&plan->kernels.data[1])), 0);
    cr_expect_eq(dim_hi(dims, kernel_factor(&plan->kernels.data[1])), 1);
    cr_expect_eq(f.priced.cost->n_launches, 1);
    cr_expect_eq(f.priced.cost->workspace_bytes, 0);
    cr_expect_null(plan_verify(plan, f.arena));
    arena_free(f.arena);
}

/* What the whole writes, those that stand for it have to. */
Test(dispatch_rows, a_plan_without_one_version_is_wrong) {
    Fixture f = fixture_new(softmax, TARGET_SM_80);
    Plan *plan = f.priced.plan;
    Stage *last = &plan->kernels.data[plan->kernels.n - 1].stages.data[0];
    last->stores.n = 0;
    const char *fault = plan_verify(plan, f.arena);
    cr_assert(fault && strstr(fault, "those that stand for it"), "%s", fault ? fault : "none");
    arena_free(f.arena);
}

Test(dispatch_rows, rows_that_need_no_choice_have_none) {
    static const char *const sources[] = {
        /* insisted on */
        "dim B in 1..1048576\ndim C in 1..1048576\n"
        "graph g(x: f32[B, C]) -> (y: f32[B, C]) { fuse must { y = softmax(x) } }\n",
        "dim B in 256..1048576\ndim C in 1..1048576\n" /* never few */
        "graph g(x: f32[B, C]) -> (y: f32[B, C]) { y = softmax(x) }\n",
        "dim B in 1..1048576\ndim C in 1..16384\n" /* never long */
        "graph g(x: f32[B, C]) -> (y: f32[B, C]) { y = softmax(x) }\n",
        "dim B in 1..1048576\ndim C in 1..1048576\n" /* one pass is split anyway */
        "graph g(x: f32[B, C]) -> (y: f32[B]) { y = sum(x, axis=1) }\n"};
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        Fixture f = fixture_new(sources[i], TARGET_SM_80);
        for (uint32_t k = 0; k < f.priced.plan->kernels.n; k++)
            cr_expect_null(f.priced.plan->kernels.data[k].choice, "%s", sources[i]);
        arena_free(f.arena);
    }
}
