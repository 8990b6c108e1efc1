/* The ledger: the predicted costs of a plan, and the effects of advice. See driver.h. */
#include "driver/driver_passes.h"

#include "explain/must_check.h"

static const Card *ledger_card(const DriverOptions *options) {
    return options->card ? options->card : card_of_target(options->target);
}

/* Plans a graph that was changed as advice says. */
static Plan *plan_changed(void *user, Arena *arena, Graph *graph) {
    Driver *driver = user;
    PassId last = driver->options.no_fuse ? PASS_SCHEDULE : PASS_BAND;
    driver->grouped = (GroupingWork){0}; /* each plan has the whole */
    return pipeline_try(&driver->planning, arena, driver->scratch, MODE_COMPILE, graph, NULL, last);
}

static AdviceTotals price_changed(void *user, Arena *arena, const Plan *plan) {
    const Driver *driver = user;
    const DriverOptions *options = &driver->options;
    const int64_t *dims = cost_dims(arena, plan->graph->dims, options->dims);
    const PlanCost *cost = cost_plan(arena, plan, ledger_card(options), dims);
    return (AdviceTotals){.us = cost->us, .n_launches = cost->n_launches};
}

static double price_at(void *user, Arena *arena, const Plan *plan, const int64_t *dims) {
    const Driver *driver = user;
    return cost_us(arena, plan, ledger_card(&driver->options), dims);
}

/* A copy of the plan with its own edges, whose reasons may change. */
static Plan *unsettled(Arena *arena, const Plan *plan) {
    Plan *copy = arena_copy(arena, plan, sizeof *plan);
    copy->edges.data =
        arena_copy(arena, plan->edges.data, plan->edges.n * sizeof *plan->edges.data);
    return copy;
}

static void limit_trials(Driver *driver, AdvicePlanner *planner) {
    advice_limit(planner, &driver->work);
    driver->planning.most_work = planner->most_work;
}

/* Whether the plan satisfies the source's `fuse must` blocks. If it does not, the ledger shows a
 * plan whose reasons are consistent. */
static bool keeps_contracts(Driver *driver, const Plan *plan) {
    Diags ignored = {.arena = driver->arena};
    if (must_check(plan, NULL, NULL, &ignored)) return true;
    Plan *settled = unsettled(driver->arena, plan);
    AdvicePlanner planner = {.plan = plan_changed, .user = driver, .trial = driver->trial};
    limit_trials(driver, &planner);
    VecConflict conflicts = conflict_find(driver->arena, settled, &planner);
    const Advice *advices = advice_settle(driver->arena, settled, &planner);
    arena_reset(driver->trial);
    driver->planning.most_work = 0;
    return must_check(settled, advices, &conflicts, &driver->diags);
}

bool contract_pass(const Planning *p) {
    bool is_kept = true;
    for (uint32_t i = 0; i < p->n_units; i++)
        is_kept = keeps_contracts(p->user, p->units[i].plan) && is_kept;
    return is_kept;
}

/* Advice on blocks and launches comes first, because there are few and the number of trial plans is
 * bounded. */
static void advise(Driver *driver, Plan *settled, LedgerInput *input) {
    const DriverOptions *options = &driver->options;
    AdvicePlanner planner = {
        .plan = plan_changed,
        .price = price_changed,
        .price_at = price_at,
        .points = cost_points(driver->arena, driver->module->dims, options->target->has),
        .user = driver,
        .trial = driver->trial};
    limit_trials(driver, &planner);
    AdviceTotals now = {.us = input->cost->us, .n_launches = input->cost->n_launches};
    if (!driver->options.no_fuse)
        input->blocks = advice_price_blocks(driver->arena, settled, &planner);
    input->launch_advices = advice_settle_launches(driver->arena, settled, now, &planner);
    input->advices = advice_settle(driver->arena, settled, &planner);
    input->n_refused = planner.n_refused;
    arena_reset(driver->trial);
    driver->planning.most_work = 0;
}

/* cost_plan, whose temporary data lies in the scratch arena: a plan without fusion may have 100,000
 * kernels. */
static const PlanCost *price_plan(Driver *driver, const Plan *plan) {
    const DriverOptions *options = &driver->options;
    ArenaMark mark = arena_mark(driver->scratch);
    const int64_t *dims = cost_dims(driver->arena, plan->graph->dims, options->dims);
    PlanCost *cost = cost_plan(driver->scratch, plan, ledger_card(options), dims);
    cost = arena_copy(driver->arena, cost, sizeof *cost);
    cost->dims = dims;
    cost->kernels =
        arena_copy(driver->arena, cost->kernels, plan->kernels.n * sizeof *cost->kernels);
    arena_rewind(driver->scratch, mark);
    return cost;
}

bool driver_price(Driver *driver, uint32_t graph, LedgerInput *input) {
    const DriverOptions *options = &driver->options;
    PlanUnit unfused = {.graph = driver->planned->graphs.data[graph]};
    Planning planning = driver->planning;
    planning.mode = MODE_UNFUSED;
    planning.is_trial = true;
    planning.units = &unfused;
    planning.n_units = 1;
    planning.after = NULL;
    planning.may_hold = NULL;
    if (!pipeline_run(&planning, PASS_FUSE, PASS_SCHEDULE) ||
        !pipeline_run(&planning, PASS_PLACE, PASS_PLACE))
        return false;
    *input = (LedgerInput){.unfused_cost = price_plan(driver, unfused.plan)};
    Plan *settled = unsettled(driver->arena, driver->plans[graph]);
    input->cost = price_plan(driver, settled);
    advise(driver, settled, input);
    for (uint32_t i = 0; options->dims && i < dim_n_symbols(driver->module->dims); i++)
        if (options->dims[i] >= 0) input->given_dims |= (uint64_t)1 << i;
    return true;
}

static bool explain(Driver *driver) {
    Text text = {.arena = driver->arena};
    for (uint32_t i = 0; i < driver->planned->graphs.n; i++) {
        LedgerInput input;
        if (!driver_price(driver, i, &input)) return false;
        if (i) text_puts(&text, "\n");
        input.advises_stored_only = true;
        explain_print(ledger_new(driver->arena, &input), &text);
    }
    driver->ledger = text_str(&text);
    return true;
}

static bool explain_as_json(Driver *driver) {
    Text text = {.arena = driver->arena};
    JsonText json = {.out = &text};
    const DriverOptions *options = &driver->options;
    jsontext_begin(&json, NULL, '{');
    jsontext_string(&json, "schema", "fusec-explain-2");
    jsontext_string(&json, "compiler", FUSEC_VERSION);
    jsontext_string(&json, "file", driver->module->source->name);
    jsontext_string(&json, "target", options->target->name);
    jsontext_string(&json, "card", ledger_card(options)->name);
    jsontext_begin(&json, "graphs", '[');
    for (uint32_t i = 0; i < driver->planned->graphs.n; i++) {
        LedgerInput input;
        if (!driver_price(driver, i, &input)) return false;
        explain_json(ledger_new(driver->arena, &input), &json);
    }
    jsontext_end(&json, ']');
    jsontext_end(&json, '}');
    driver->ledger = text_str(&text);
    return true;
}

bool ledger_pass(const Planning *p) {
    Driver *driver = p->user;
    if (driver->options.explain_json) return explain_as_json(driver);
    return !driver->options.explain || explain(driver);
}
