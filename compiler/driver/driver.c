/* The passes, in order. See driver.h. */
#include "driver/driver.h"

#include "artifact/manifest.h"
#include "explain/explain.h"
#include "explain/must_check.h"
#include "front/ast.h"
#include "front/sema.h"
#include "fuse/fuse.h"
#include "launch/dedup.h"
#include "launch/compose.h"
#include "layout/layout.h"
#include "memory/memplan.h"
#include "report/dot.h"
#include "schedule/schedule.h"
#include "search/search.h"
#include "search/split_k_choice.h"

#include <frt_manifest.h>

#include <time.h>

static const PassInfo passes[PASS_COUNT] = {
#define PASS(sym, name, extension, doc) [PASS_##sym] = {name, extension, doc},
#include "driver/passes.def"
};

const PassInfo *pass_info(PassId pass) {
    return &passes[pass];
}

static const KindInfo kinds[FUSEC_KIND_COUNT] = {
#define FUSEC_KIND(sym, name, extension, device, is_binary, doc) \
    [FUSEC_##sym] = {name, extension, doc, KIND_FOR_##device, is_binary},
#include <fusec_kinds.def>
};

const KindInfo *kind_info(fusec_kind kind) {
    return &kinds[kind];
}

const Target *driver_default_target(fusec_kind kind) {
    return target_get(kinds[kind].device == KIND_FOR_CPU ? TARGET_CPU : TARGET_SM_80);
}

const char *driver_numerics(bool is_fast) {
    return is_fast ? FRT_NUMERICS_FAST : FRT_NUMERICS_STRICT;
}

bool driver_numerics_by_name(const char *name, bool *is_fast) {
    *is_fast = strcmp(name, FRT_NUMERICS_FAST) == 0;
    return *is_fast || strcmp(name, FRT_NUMERICS_STRICT) == 0;
}

bool driver_rewrites(const DriverOptions *options) {
    if (options->no_fuse) return false;
    return options->rewrites ? options->rewrites == FUSEC_REWRITES_ON : options->is_fast;
}

bool driver_kind_fits(fusec_kind kind, const Target *target) {
    switch (kinds[kind].device) {
    case KIND_FOR_ANY:
        return true;
    case KIND_FOR_GPU:
        return target->ptx_version != NULL;
    case KIND_FOR_CPU:
        return target->ptx_version == NULL;
    }
    return false;
}

bool driver_init(Driver *driver, const DriverOptions *options) {
    *driver = (Driver){.options = *options};
    driver->arena = arena_new(&driver->escape);
    driver->scratch = arena_new(&driver->escape);
    driver->trial = arena_new(&driver->escape);
    driver->diags.arena = driver->arena;
    if (driver->arena && driver->scratch && driver->trial) return true;
    driver_free(driver);
    return false;
}

void driver_free(Driver *driver) {
    arena_free(driver->arena);
    arena_free(driver->scratch);
    arena_free(driver->trial);
    driver->arena = driver->scratch = driver->trial = NULL;
}

fusec_status driver_guard(Driver *driver, fusec_status (*body)(Driver *, void *), void *user) {
    switch (setjmp(driver->escape.jump)) {
    case 0:
        return body(driver, user);
    case ESCAPE_OUT_OF_MEMORY:
        driver->failure = "out of memory";
        return FUSEC_MEMORY;
    default:
        driver->failure = driver->escape.message;
        return FUSEC_INTERNAL;
    }
}

bool driver_seal(char *artifact, size_t n_bytes) {
    return manifest_seal(artifact, n_bytes);
}

/* Time and dumps of one pass. */

static double now_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void print_module(Driver *driver, Text *out) {
    Module shown = *driver->module;
    memset(&shown.graphs, 0, sizeof shown.graphs);
    for (uint32_t i = 0; i < driver->module->graphs.n; i++) {
        Graph *graph = driver->module->graphs.data[i];
        if (driver->plans && driver->plans[i])
            graph = explain_fused_graph(driver->arena, driver->strings, driver->plans[i]);
        vec_push(driver->arena, &shown.graphs, graph);
    }
    module_print(&shown, out);
}

static void print_plans(const Driver *driver, Text *out) {
    for (uint32_t i = 0; i < driver->module->graphs.n; i++) {
        if (i) text_puts(out, "\n");
        plan_print(driver->plans[i], out);
    }
}

static const char *graph_text(Driver *driver) {
    Text text = {.arena = driver->arena};
    print_module(driver, &text);
    return text_str(&text);
}

static const char *plan_text(const Driver *driver) {
    Text text = {.arena = driver->arena};
    print_plans(driver, &text);
    return text_str(&text);
}

static const char *dot_text(const Driver *driver) {
    Text text = {.arena = driver->arena};
    dot_print(driver->arena, driver->plans, driver->module->graphs.n, &text);
    return text_str(&text);
}

static bool wants_text(const Driver *driver, PassId pass) {
    return driver->options.watch.after && (driver->options.watch.wants_text >> pass & 1);
}

static void finish_pass(const Driver *driver, PassId pass, double begin, const char *text) {
    const DriverWatch *watch = &driver->options.watch;
    if (watch->after) watch->after(watch->user, pass, now_seconds() - begin, text);
}

/* The passes. */

fusec_status driver_parse(Driver *driver, const char *name, const char *text, size_t n_bytes) {
    double begin = now_seconds();
    if (n_bytes > SOURCE_MAX_BYTES) {
        diag_report(&driver->diags, DIAG_LIMIT, NULL, (Span){0},
                    "%s has %zu bytes, more than the %d that a source may have", name, n_bytes,
                    SOURCE_MAX_BYTES);
        return FUSEC_INPUT;
    }
    /* Some editors begin a file with a byte order mark. */
    if (n_bytes >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) {
        text += 3;
        n_bytes -= 3;
    }
    driver->strings = strtab_new(driver->arena);
    const char *kept = str_format(driver->arena, "%s", name);
    Source *source = source_new(driver->arena, kept, text, n_bytes);
    driver->module = front_parse(driver->arena, driver->strings, &driver->diags, source);
    if (!driver->module) return FUSEC_INPUT;
    for (uint32_t i = 0; i < driver->module->graphs.n; i++)
        driver->module->graphs.data[i]->is_fast = driver->options.is_fast;
    if (driver->options.weights)
        driver->module->weights = strtab_intern_z(driver->strings, driver->options.weights);
    for (uint32_t i = 0; i < driver->module->graphs.n; i++) {
        const char *wrong = graph_verify(driver->module->graphs.data[i], driver->scratch);
        if (wrong) ice(driver->arena, "the front end made a wrong graph: %s", wrong);
    }
    arena_reset(driver->scratch);
    finish_pass(driver, PASS_PARSE, begin,
                wants_text(driver, PASS_PARSE) ? graph_text(driver) : NULL);
    return FUSEC_OK;
}

static Plan *fuse(Driver *driver, const Graph *graph, bool off) {
    FuseOptions apart = fuse_options_for(driver->options.target);
    apart.off = true;
    Plan *plan = off ? fuse_graph(driver->arena, driver->scratch, graph, apart, &driver->diags)
                     : search_plan(driver->arena, driver->scratch, graph, driver->options.target,
                                   &driver->diags);
    arena_reset(driver->scratch);
    return plan;
}

static bool run_fuse(Driver *driver, Plan **plans) {
    double begin = now_seconds();
    uint32_t n = driver->module->graphs.n;
    for (uint32_t i = 0; i < n; i++) {
        split_k_choose(driver->trial, driver->scratch, driver->module->graphs.data[i],
                       driver->options.target);
        plans[i] = fuse(driver, driver->module->graphs.data[i], driver->options.no_fuse);
        if (!plans[i]) return false;
        plans[i]->may_rewrite = driver_rewrites(&driver->options);
        const DriverHook *hook = &driver->options.hook;
        if (hook->fused) hook->fused(hook->user, driver->arena, plans[i], !driver->options.no_fuse);
    }
    driver->plans = arena_copy(driver->arena, plans, n * sizeof *plans);
    finish_pass(driver, PASS_FUSE, begin,
                wants_text(driver, PASS_FUSE) ? graph_text(driver) : NULL);
    return true;
}

static void run_layout(Driver *driver, Plan **plans) {
    double begin = now_seconds();
    for (uint32_t i = 0; i < driver->module->graphs.n; i++) {
        layout_plan(driver->arena, plans[i], driver->options.target);
        const char *fault = plan_verify(plans[i], driver->scratch);
        if (fault) ice(driver->arena, "layout of %s: %s", plans[i]->graph->name, fault);
    }
    arena_reset(driver->scratch);
    finish_pass(driver, PASS_LAYOUT, begin,
                wants_text(driver, PASS_LAYOUT) ? plan_text(driver) : NULL);
}

/* Numbers for every kernel, and what passes on chip from one to the next. */
static void schedule(const Driver *driver, Arena *arena, Plan *plan) {
    const Target *target = driver->options.target;
    sched_plan(arena, plan, target);
    if (driver->options.no_fuse) return;
    launch_compose(arena, driver->scratch, plan, target, LAUNCH_MODES_IN_BLOCKS);
}

/* Of a graph changed as advice says. */
static Plan *plan_changed(void *user, Arena *arena, const Graph *graph) {
    Driver *driver = user;
    Diags ignored = {.arena = arena};
    Plan *plan = search_plan(arena, driver->scratch, graph, driver->options.target, &ignored);
    if (plan) {
        plan->may_rewrite = driver_rewrites(&driver->options);
        layout_plan(arena, plan, driver->options.target);
        schedule(driver, arena, plan);
    }
    arena_reset(driver->scratch);
    return plan;
}

static const Card *ledger_card(const DriverOptions *options) {
    return options->card ? options->card : card_of_target(options->target);
}

static AdviceTotals price_changed(void *user, Arena *arena, Plan *plan) {
    Driver *driver = user;
    const DriverOptions *options = &driver->options;
    const Plan *const plans[] = {plan};
    dedup_classify(driver->scratch, plans, 1);
    if (!options->no_fuse)
        launch_compose(arena, driver->scratch, plan, options->target, LAUNCH_MODES_BESIDE);
    arena_reset(driver->scratch);
    const int64_t *dims = cost_dims(arena, plan->graph->dims, options->dims);
    const PlanCost *cost = cost_plan(arena, plan, ledger_card(options), dims);
    return (AdviceTotals){.us = cost->us, .n_launches = cost->n_launches};
}

static double price_at(void *user, Arena *arena, const Plan *plan, const int64_t *dims) {
    const Driver *driver = user;
    return cost_us(arena, plan, ledger_card(&driver->options), dims);
}

/* A copy of the plan whose reasons may change. */
static Plan *unsettled(Arena *arena, const Plan *plan) {
    Plan *copy = arena_copy(arena, plan, sizeof *plan);
    copy->edges.data =
        arena_copy(arena, plan->edges.data, plan->edges.n * sizeof *plan->edges.data);
    return copy;
}

/* Whether the plan keeps the source's contracts; one that does not is reported with reasons that
 * hold up. */
static bool keeps_contracts(Driver *driver, const Plan *plan) {
    Diags ignored = {.arena = driver->arena};
    if (must_check(plan, NULL, NULL, &ignored)) return true;
    Plan *settled = unsettled(driver->arena, plan);
    AdvicePlanner planner = {.plan = plan_changed, .user = driver, .trial = driver->trial};
    VecConflict conflicts = conflict_find(driver->arena, settled, &planner);
    const Advice *advices = advice_settle(driver->arena, settled, &planner);
    arena_reset(driver->trial);
    return must_check(settled, advices, &conflicts, &driver->diags);
}

static bool run_schedule(Driver *driver, Plan **plans) {
    double begin = now_seconds();
    bool joins = !driver->options.no_fuse;
    for (uint32_t i = 0; i < driver->module->graphs.n; i++)
        schedule(driver, driver->arena, plans[i]);
    dedup_classify(driver->scratch, driver->plans, driver->module->graphs.n);
    for (uint32_t i = 0; i < driver->module->graphs.n && joins; i++)
        launch_compose(driver->arena, driver->scratch, plans[i], driver->options.target,
                       LAUNCH_MODES_BESIDE);
    dedup_functions(driver->scratch, driver->plans, driver->module->graphs.n);
    arena_reset(driver->scratch);
    bool is_kept = true;
    for (uint32_t i = 0; i < driver->module->graphs.n && !driver->options.no_fuse; i++)
        is_kept = keeps_contracts(driver, plans[i]) && is_kept;
    if (!is_kept) return false;
    finish_pass(driver, PASS_SCHEDULE, begin,
                wants_text(driver, PASS_SCHEDULE) ? plan_text(driver) : NULL);
    return true;
}

static bool place(Driver *driver, Plan *plan) {
    const Graph *graph = plan->graph;
    bool has_room = memplan_place(driver->arena, plan);
    const char *fault = has_room ? plan_verify_places(plan, driver->arena) : NULL;
    if (fault) ice(driver->arena, "places of %s: %s", graph->name, fault);
    if (has_room) return true;
    return diag_report(&driver->diags, DIAG_DIM_OVERFLOW, graph->source, graph->span,
                       "the workspace of graph `%s` could pass 2^62 bytes", graph->name);
}

static bool run_place(Driver *driver, Plan **plans) {
    double begin = now_seconds();
    const DriverHook *hook = &driver->options.hook;
    for (uint32_t i = 0; i < driver->module->graphs.n; i++) {
        if (!place(driver, plans[i])) return false;
        if (hook->placed)
            hook->placed(hook->user, driver->arena, plans[i], !driver->options.no_fuse);
    }
    finish_pass(driver, PASS_PLACE, begin,
                wants_text(driver, PASS_PLACE) ? plan_text(driver) : NULL);
    return true;
}

/* Blocks and launches come first: they are few, and what is compiled for a ledger is bounded. */
static void advise(Driver *driver, Plan *settled, ExplainInput *input) {
    const DriverOptions *options = &driver->options;
    AdvicePlanner planner = {
        .plan = plan_changed,
        .price = price_changed,
        .price_at = price_at,
        .points = cost_points(driver->arena, driver->module->dims, options->target->device),
        .user = driver,
        .trial = driver->trial};
    AdviceTotals now = {.us = input->cost->us, .n_launches = input->cost->n_launches};
    if (!driver->options.no_fuse)
        input->blocks = advice_price_blocks(driver->arena, settled, &planner);
    input->launch_advices = advice_settle_launches(driver->arena, settled, now, &planner);
    input->advices = advice_settle(driver->arena, settled, &planner);
    arena_reset(driver->trial);
}

bool driver_price(Driver *driver, uint32_t graph, ExplainInput *input) {
    const DriverOptions *options = &driver->options;
    const Card *card = ledger_card(options);
    Plan *unfused = fuse(driver, driver->module->graphs.data[graph], true);
    if (!unfused) return false;
    layout_plan(driver->arena, unfused, options->target);
    sched_plan(driver->arena, unfused, options->target);
    if (!place(driver, unfused)) return false;
    const int64_t *dims = cost_dims(driver->arena, driver->module->dims, options->dims);
    *input = (ExplainInput){.unfused_cost = cost_plan(driver->arena, unfused, card, dims)};
    Plan *settled = unsettled(driver->arena, driver->plans[graph]);
    input->cost = cost_plan(driver->arena, settled, card, dims);
    advise(driver, settled, input);
    for (uint32_t i = 0; options->dims && i < dim_n_symbols(driver->module->dims); i++)
        if (options->dims[i] >= 0) input->given_dims |= (uint64_t)1 << i;
    return true;
}

static bool explain(Driver *driver) {
    Text text = {.arena = driver->arena};
    for (uint32_t i = 0; i < driver->module->graphs.n; i++) {
        ExplainInput input;
        if (!driver_price(driver, i, &input)) return false;
        if (i) text_puts(&text, "\n");
        explain_print(&input, driver->arena, &text);
    }
    driver->ledger = text_str(&text);
    return true;
}

static bool explain_as_json(Driver *driver) {
    Text text = {.arena = driver->arena};
    JsonText json = {.out = &text};
    const DriverOptions *options = &driver->options;
    jsontext_begin(&json, NULL, '{');
    jsontext_string(&json, "schema", "fusec-explain-1");
    jsontext_string(&json, "compiler", FUSEC_VERSION);
    jsontext_string(&json, "file", driver->module->source->name);
    jsontext_string(&json, "target", options->target->name);
    jsontext_string(&json, "card", ledger_card(options)->name);
    jsontext_begin(&json, "graphs", '[');
    for (uint32_t i = 0; i < driver->module->graphs.n; i++) {
        ExplainInput input;
        if (!driver_price(driver, i, &input)) return false;
        explain_json(&input, &json);
    }
    jsontext_end(&json, ']');
    jsontext_end(&json, '}');
    driver->ledger = text_str(&text);
    return true;
}

static bool make_ledger(Driver *driver) {
    if (driver->options.explain_json) return explain_as_json(driver);
    return !driver->options.explain || explain(driver);
}

static const char *run_manifest(Driver *driver) {
    double begin = now_seconds();
    ManifestInput input = {.module = driver->module,
                           .plans = driver->plans,
                           .target = driver->options.target,
                           .numerics = driver_numerics(driver->options.is_fast),
                           .rewrites = driver_rewrites(&driver->options),
                           .compiler = FUSEC_VERSION};
    const char *text = manifest_text(driver->arena, &input, &driver->diags);
    if (text) finish_pass(driver, PASS_MANIFEST, begin, text);
    return text;
}

static bool emit(Driver *driver, const char *manifest, CodeKind kind, CodeBytes *code) {
    BackOptions options = {.target = driver->options.target, .manifest = manifest};
#ifndef NDEBUG
    options.verify = true;
#endif
    return back_emit(driver->arena, driver->plans, driver->module->graphs.n, options, kind, code,
                     &driver->diags);
}

static bool is_legal(Driver *driver) {
    bool legal = true;
    for (uint32_t i = 0; i < driver->module->graphs.n; i++)
        legal = back_is_legal(driver->plans[i], driver->options.target, &driver->diags) && legal;
    return legal;
}

static fusec_status run_emit(Driver *driver, const char *manifest) {
    double begin = now_seconds();
    bool is_artifact = driver->options.kind == FUSEC_PTX || driver->options.kind == FUSEC_OBJECT;
    CodeKind kind = driver->options.kind == FUSEC_LLVM     ? CODE_LLVM_IR
                    : driver->options.kind == FUSEC_OBJECT ? CODE_OBJECT
                                                           : CODE_ASSEMBLY;
    if (!emit(driver, is_artifact ? manifest : NULL, kind, &driver->code)) return FUSEC_INPUT;
    if (is_artifact && !manifest_seal(driver->code.data, driver->code.n_bytes))
        ice(driver->arena, "the artifact has no manifest");
    CodeBytes ir = {0};
    if (wants_text(driver, PASS_EMIT) && !emit(driver, NULL, CODE_LLVM_IR, &ir)) return FUSEC_INPUT;
    finish_pass(driver, PASS_EMIT, begin,
                ir.data ? str_format(driver->arena, "%.*s", (int)ir.n_bytes, ir.data) : NULL);
    return FUSEC_OK;
}

static void set_text(Driver *driver, const char *text) {
    driver->code = (CodeBytes){.data = arena_copy(driver->arena, text, strlen(text) + 1),
                               .n_bytes = strlen(text)};
}

/* Printed from a second parse: the first left nothing but the graphs. */
static const char *ast_text(Driver *driver) {
    Text text = {.arena = driver->arena};
    Diags diags = {.arena = driver->arena};
    ast_print(ast_parse(driver->arena, driver->strings, &diags, driver->module->source), &text);
    return text_str(&text);
}

/* Kinds that are made before fusion. */
static const char *early_text(Driver *driver) {
    if (driver->options.kind == FUSEC_AST) return ast_text(driver);
    return driver->options.kind == FUSEC_GRAPH ? graph_text(driver) : NULL;
}

fusec_status driver_build(Driver *driver) {
    const char *early = early_text(driver);
    if (early) set_text(driver, early);
    if (early && !driver->options.explain && !driver->options.explain_json &&
        !driver->options.plans)
        return FUSEC_OK;
    Plan **plans = arena_array(driver->arena, Plan *, driver->module->graphs.n);
    if (!run_fuse(driver, plans)) return FUSEC_INPUT;
    run_layout(driver, plans);
    if (!run_schedule(driver, plans) || !run_place(driver, plans)) return FUSEC_INPUT;
    if (!make_ledger(driver)) return FUSEC_INPUT;
    switch (driver->options.kind) {
    case FUSEC_AST:
    case FUSEC_GRAPH:
        return FUSEC_OK;
    case FUSEC_FUSED:
        set_text(driver, graph_text(driver));
        return FUSEC_OK;
    case FUSEC_SCHED:
        set_text(driver, plan_text(driver));
        return FUSEC_OK;
    case FUSEC_DOT:
        set_text(driver, dot_text(driver));
        return FUSEC_OK;
    case FUSEC_LLVM:
    case FUSEC_PTX:
    case FUSEC_ASM:
    case FUSEC_OBJECT:
    case FUSEC_KIND_COUNT:
        break;
    }
    if (!is_legal(driver)) return FUSEC_INPUT;
    const char *manifest = run_manifest(driver);
    return manifest ? run_emit(driver, manifest) : FUSEC_INPUT;
}
