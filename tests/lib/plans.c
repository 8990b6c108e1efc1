/* Source text to plans. See plans.h. */
#include "lib/plans.h"

#include "cost/cost.h"
#include "front/sema.h"
#include "fuse/hoist.h"
#include "interp/interp.h"
#include "launch/compose.h"
#include "layout/layout.h"
#include "memory/memplan.h"
#include "random/rng.h"
#include "search/passes.h"
#include "split/split.h"

#include <criterion/criterion.h>
#include <string.h>

Planning plans_planning(Arena *arena, Arena *scratch, TargetId target, PlanUnit *unit) {
    return (Planning){.plan_passes = &plan_passes,
                      .target = target_get(target),
                      .mode = MODE_COMPILE,
                      .has_traces = true,
                      .arena = arena,
                      .scratch = scratch,
                      .units = unit,
                      .n_units = 1,
                      .facts = 1u << FACT_GRAPH};
}

static const char *rendered(Arena *arena, const Diags *diags) {
    Text text = {.arena = arena};
    diag_print(diags, &text);
    return text_str(&text);
}

Module *plans_parse(Arena *arena, const char *source) {
    Diags diags = {.arena = arena};
    const Source *text = source_new(arena, "test.g", source, strlen(source));
    Module *module = front_parse(arena, strtab_new(arena), &diags, text);
    cr_assert(module, "%s\n%s", rendered(arena, &diags), source);
    return module;
}

Plan *plans_fuse_with(Arena *arena, const Graph *graph, FuseOptions options, Diags *diags) {
    Arena *scratch = arena_new(NULL);
    Plan *plan = fuse_graph(arena, scratch, graph, options, diags);
    if (plan) split_plan(arena, plan);
    if (plan) hoist_plan(arena, plan);
    cr_assert(!plan || !plan_verify(plan, scratch), "%s", graph->name);
    arena_free(scratch);
    return plan;
}

static Plan *fuse(Arena *arena, const Graph *graph, bool off, const char **errors) {
    Diags diags = {.arena = arena};
    Plan *plan =
        plans_fuse_with(arena, graph, (FuseOptions){.off = off, .has_traces = true}, &diags);
    *errors = rendered(arena, &diags);
    return plan;
}

Plan *plans_fuse(Arena *arena, const Module *module, uint32_t index, bool off) {
    const Graph *graph = module->graphs.data[index];
    const char *errors;
    Plan *plan = fuse(arena, graph, off, &errors);
    cr_assert(plan, "%s\n%s", errors, graph->source->text);
    return plan;
}

void plans_lay_out(Arena *arena, Plan *plan, TargetId target) {
    PlanUnit unit = {.plan = plan};
    Planning planning = plans_planning(arena, arena_new(NULL), target, &unit);
    plan->facts = 1u << FACT_INIT;
    cr_assert(layout_pass(&planning, &unit));
    arena_free(planning.scratch);
}

void plans_compose(Arena *arena, Plan *plan, TargetId target, uint32_t modes) {
    PlanUnit unit = {.plan = plan};
    Planning planning = plans_planning(arena, arena_new(NULL), target, &unit);
    launch_compose(&planning, plan, modes);
    arena_free(planning.scratch);
}

const char *plans_refusal(Arena *arena, const Module *module, uint32_t index) {
    const char *errors;
    cr_assert_null(fuse(arena, module->graphs.data[index], false, &errors));
    return errors;
}

static PricedPlan price(Arena *arena, const Module *module, uint32_t index, PlanMode mode,
                        PlanMode launch_mode, TargetId target, const Card *card,
                        const int64_t *dims, RegionMemo *memo) {
    Diags diags = {.arena = arena};
    PlanUnit unit = {.graph = module->graphs.data[index]};
    Planning planning = plans_planning(arena, arena_new(NULL), target, &unit);
    planning.trial = arena_new(NULL);
    planning.region_memo = memo;
    planning.grouped = arena_array(arena, GroupingWork, 1);
    planning.diags = &diags;
    planning.mode = mode;
    bool ok = pipeline_run(&planning, PASS_SPLIT_K, PASS_SCHEDULE);
    planning.mode = launch_mode;
    ok = ok && pipeline_run(&planning, PASS_LAUNCH, PASS_BAND);
    planning.mode = mode;
    ok = ok && pipeline_run(&planning, PASS_PLACE, PASS_PLACE);
    arena_free(planning.scratch);
    arena_free(planning.trial);
    if (!ok) return (PricedPlan){NULL, NULL};
    return (PricedPlan){unit.plan,
                        cost_plan(arena, unit.plan, card, cost_dims(arena, module->dims, dims))};
}

PricedPlan plans_price(Arena *arena, const Module *module, uint32_t index, bool off,
                       TargetId target, const Card *card, const int64_t *dims) {
    PlanMode mode = off ? MODE_UNFUSED : MODE_COMPILE;
    return price(arena, module, index, mode, mode, target, card, dims, NULL);
}

PricedPlan plans_price_again(Arena *arena, const Module *module, TargetId target,
                             RegionMemo *memo) {
    const Card *card = card_of_target(target_get(target));
    return price(arena, module, 0, MODE_COMPILE, MODE_COMPILE, target, card, NULL, memo);
}

PricedPlan plans_price_slices(Arena *arena, const Module *module, uint32_t index, TargetId target) {
    const Card *card = card_of_target(target_get(target));
    return price(arena, module, index, MODE_COMPILE, MODE_SLICES, target, card, NULL, NULL);
}

const Plan *plans_of(Arena *arena, TargetId target, const char *source) {
    const Card *card = card_of_target(target_get(target));
    return plans_price(arena, plans_parse(arena, source), 0, false, target, card, NULL).plan;
}

const double *plans_values(Arena *arena, const Graph *graph) {
    Tensor inputs[4], *values = arena_array(arena, Tensor, graph->nodes.n);
    const char *error = "";
    Rng rng = rng_new(7);
    cr_assert_leq(graph->inputs.n, 4u);
    for (uint32_t i = 0; i < graph->inputs.n; i++) {
        cr_assert(interp_shape(graph, graph->inputs.data[i].node, NULL, &inputs[i], arena, &error));
        int64_t n = tensor_n_elems(&inputs[i]);
        inputs[i].data = arena_array(arena, double, (size_t)n);
        double most = dtype_in(inputs[i].dtype, DTS_BYTE) ? 127 : 2;
        for (int64_t k = 0; k < n; k++)
            inputs[i].data[k] =
                dtype_round(inputs[i].dtype, most * (double)rng_between(&rng, -1000, 1000) / 1000);
    }
    cr_assert(interp_graph(graph, NULL, inputs, NULL, values, arena, &error), "%s", error);
    return values[graph->outputs.data[0].node].data;
}
