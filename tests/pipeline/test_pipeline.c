/* The table of passes: what a pass requires is left by passes before it in every mode, and a run
 * from a pass whose requirements do not hold is refused. */
#include "lib/plans.h"

#include <criterion/criterion.h>
#include <setjmp.h>
#include <string.h>

static const char *const names[] = {
#define PASS(sym, name, scope, run, extension, requires, leaves, modes, doc) name,
#include "pipeline/passes.def"
};

Test(pipeline, passes_are_in_the_order_of_the_list) {
    cr_assert_eq(sizeof names / sizeof *names, PASS_COUNT);
    for (int pass = 0; pass < PASS_COUNT; pass++) {
        cr_expect_str_eq(pass_info((PassId)pass)->name, names[pass]);
        cr_expect(pass_info((PassId)pass)->leaves, "%s", names[pass]);
        for (int other = 0; other < pass; other++)
            cr_expect(!(pass_info((PassId)pass)->leaves & pass_info((PassId)other)->leaves),
                      "%s and %s leave the same", names[pass], names[other]);
    }
}

static bool runs_in(PassId pass, int mode, bool is_gpu) {
    const PassInfo *info = pass_info(pass);
    return (info->modes | (is_gpu ? info->gpu_modes : 0)) >> mode & 1;
}

Test(pipeline, what_a_pass_requires_is_left_by_those_before_it) {
    const uint32_t of_graph = 1u << FACT_AST | 1u << FACT_GRAPH | 1u << FACT_SEGMENTS;
    for (int mode = 0; mode < MODE_COUNT; mode++)
        for (int is_gpu = 0; is_gpu < 2; is_gpu++) {
            uint32_t facts = runs_in(PASS_PARSE, mode, is_gpu) ? 0 : of_graph;
            for (int pass = 0; pass < PASS_COUNT; pass++) {
                const PassInfo *info = pass_info((PassId)pass);
                if (!runs_in((PassId)pass, mode, is_gpu)) continue;
                cr_expect(!(info->requires & ~facts), "%s in mode %s", info->name,
                          mode_info((PlanMode)mode)->name);
                facts |= info->leaves;
            }
        }
}

static const char source[] = "graph g(x: f32[64, 96], w: f32[96, 32]) -> (y: f32[64, 32]) {\n"
                             "  y = softmax(relu(x @ w))\n}\n";

Test(pipeline, a_pass_whose_requirements_do_not_hold_is_refused) {
    for (int pass = 0; pass < PASS_COUNT; pass++) {
        static Escape escape;
        static Arena *arena;
        static bool is_refused;
        if (!pass_info((PassId)pass)->requires) continue;
        arena = arena_new(&escape);
        PlanUnit unit = {.graph = NULL};
        Planning planning = plans_planning(arena, NULL, TARGET_SM_80, &unit);
        planning.facts = 0;
        is_refused = setjmp(escape.jump) != 0;
        if (!is_refused) pipeline_run(&planning, (PassId)pass, (PassId)pass);
        cr_expect(is_refused && strstr(escape.message, names[pass]), "%s", names[pass]);
        arena_free(arena);
    }
}

Test(pipeline, a_pass_makes_untrue_what_later_ones_left) {
    Arena *arena = arena_new(NULL);
    Module *module = plans_parse(arena, source);
    const Card *card = card_of_target(target_get(TARGET_SM_80));
    Plan *plan = plans_price(arena, module, 0, false, TARGET_SM_80, card, NULL).plan;
    uint32_t places = 1u << FACT_PLACES, launches = 1u << FACT_LAUNCHES;
    cr_expect(plan->facts & places && plan->facts & launches);
    PlanUnit unit = {.plan = plan};
    Planning planning = plans_planning(arena, arena_new(NULL), TARGET_SM_80, &unit);
    pipeline_retry(&planning, arena, planning.scratch, MODE_ALONE, plan, PASS_SCHEDULE,
                   PASS_SCHEDULE);
    cr_expect(!(plan->facts & places) && !(plan->facts & launches) &&
              plan->facts & 1u << FACT_SCHEDULES);
    arena_free(planning.scratch);
    arena_free(arena);
}

/* What a mode leaves out is not done. */
Test(pipeline, a_mode_runs_its_own_passes) {
    Arena *arena = arena_new(NULL), *scratch = arena_new(NULL);
    Graph *graph = plans_parse(arena, source)->graphs.data[0];
    PlanUnit none = {.plan = NULL};
    Planning planning = plans_planning(arena, scratch, TARGET_SM_80, &none);
    Plan *ops = pipeline_try(&planning, arena, scratch, MODE_OPS, graph, NULL, PASS_PLACE);
    Plan *fused = pipeline_try(&planning, arena, scratch, MODE_SEARCH, graph, NULL, PASS_PLACE);
    cr_assert(ops && fused);
    cr_expect(ops->kernels.n > fused->kernels.n);
    cr_expect(!(ops->facts >> FACT_LAUNCHES & 1) && fused->facts >> FACT_LAUNCHES & 1);
    cr_expect(!(ops->facts >> FACT_PLACES & 1) && !(fused->facts >> FACT_PLACES & 1));
    arena_free(scratch);
    arena_free(arena);
}

Test(pipeline, directives_are_bits_of_a_node) {
    Arena *arena = arena_new(NULL);
    Decisions *decisions = decisions_new(arena, 3);
    cr_expect(!decisions_ask(NULL, 1, DIRECTIVE_STORE));
    for (int directive = 0; directive < DIRECTIVE_COUNT; directive++) {
        cr_expect(!node_flags_any(decisions->directives, (unsigned)directive));
        cr_expect(decisions_add(decisions, 1, (Directive)directive));
        cr_expect(!decisions_add(decisions, 1, (Directive)directive));
        const Decisions *copy = decisions_copy(arena, decisions);
        cr_expect(decisions_ask(copy, 1, (Directive)directive));
        cr_expect(!decisions_ask(copy, 0, (Directive)directive));
    }
    arena_free(arena);
}

/* Plans a graph up to PASS_DISPATCH. Returns the plan that PASS_DECIDE has left, or NULL. */
static Plan *plan_graph(Arena *arena, Graph *graph, bool has_texts, PlanUnit *unit) {
    *unit = (PlanUnit){.graph = graph};
    Planning planning = plans_planning(arena, arena_new(NULL), TARGET_CPU, unit);
    planning.has_traces = false;
    planning.has_texts = has_texts;
    planning.facts = 1u << FACT_AST | 1u << FACT_GRAPH | 1u << FACT_SEGMENTS;
    cr_assert(pipeline_run(&planning, PASS_DECIDE, PASS_DECIDE));
    Plan *decided = unit->plan;
    cr_assert(pipeline_run(&planning, PASS_FUSE, PASS_DISPATCH));
    arena_free(planning.scratch);
    return decided;
}

static const char operand[] =
    "graph g(x: f32[512, 512], w: f32[512, 2048]) -> (y: f32[512, 2048]) {\n"
    "  y = tanh(exp(x)) @ w\n}\n";

/* The search ends with the plan of its decisions, so nobody fuses by them again. */
Test(pipeline, passes_take_the_plan_that_the_search_has_made) {
    Arena *arena = arena_new(NULL);
    Graph *graph = plans_parse(arena, operand)->graphs.data[0];
    PlanUnit unit, other;
    Plan *decided = plan_graph(arena, graph, false, &unit);
    cr_expect(decided && decided == unit.plan);
    cr_expect_null(plan_graph(arena, graph, true, &other), "passes with texts run one by one");
    Text text = {.arena = arena}, of_other = {.arena = arena};
    plan_print(unit.plan, &text);
    plan_print(other.plan, &of_other);
    cr_expect_str_eq(text_str(&text), text_str(&of_other));
    cr_assert_eq(unit.plan->edges.n, other.plan->edges.n);
    uint32_t n_slower = 0;
    for (uint32_t i = 0; i < unit.plan->edges.n; i++) {
        cr_expect_eq(unit.plan->edges.data[i].reason, other.plan->edges.data[i].reason);
        n_slower += unit.plan->edges.data[i].reason == REASON_SLOWER;
    }
    cr_expect_gt(n_slower, 0, "no price has agreed to store an operand");
    arena_free(arena);
}
