/* The passes, in order. See driver.h. */
#include "driver/driver_passes.h"

#include "artifact/manifest.h"
#include "front/ast.h"
#include "front/sema.h"
#include "report/dot.h"
#include "search/ahead.h"
#include "search/passes.h"
#include "search/region_memo.h"
#include "fuse/group_memo.h"

#include <frt_manifest.h>

static const KindInfo kinds[FUSEC_KIND_COUNT] = {
#define FUSEC_KIND(sym, number, name, extension, device, is_binary, doc) \
    [FUSEC_##sym] = {name, extension, doc, DEVICE_##device, is_binary},
#include <fusec_kinds.def>
};

static const PassTable own_passes = {{
#define EACH(run) .each = NULL
#define ALL(run) .all = NULL
#define DRIVER(run) .all = run
#define PASS(sym, name, scope, run, extension, requires, leaves, modes, doc) \
    [PASS_##sym] = {scope(run)},
#include "pipeline/passes.def"
}};

#define FUSEC_KIND(...) +1
_Static_assert(0
#include <fusec_kinds.def>
                   == FUSEC_KIND_COUNT,
               "FUSEC_KIND_COUNT is the number of rows");

const KindInfo *kind_info(fusec_kind kind) {
    return &kinds[kind];
}

bool driver_kind_fits(fusec_kind kind, const Target *target) {
    return kinds[kind].device == DEVICE_ANY || kinds[kind].device == (int)target->device;
}

const Target *driver_default_target(fusec_kind kind) {
    TargetId id = 0;
    while (!driver_kind_fits(kind, target_get(id))) id++;
    return target_get(id);
}

fusec_kind driver_artifact_kind(const Target *target) {
    static const fusec_kind artifacts[DEVICE_COUNT] = {
#define DEVICE(sym, artifact, ...) [DEVICE_##sym] = FUSEC_##artifact,
#include "machine/devices.def"
    };
    return artifacts[target->device];
}

static const char *numerics_name(bool is_fast) {
    return is_fast ? FRT_NUMERICS_FAST : FRT_NUMERICS_STRICT;
}

bool driver_numerics_by_name(const char *name, bool *is_fast) {
    *is_fast = strcmp(name, FRT_NUMERICS_FAST) == 0;
    return *is_fast || strcmp(name, FRT_NUMERICS_STRICT) == 0;
}

bool driver_rewrites(const DriverOptions *options) {
    return options->rewrites ? options->rewrites == FUSEC_REWRITES_ON : options->is_fast;
}

bool driver_init(Driver *driver, const DriverOptions *options) {
    *driver = (Driver){.options = *options};
    driver->arena = arena_new(&driver->escape);
    driver->scratch = arena_new(&driver->escape);
    driver->trial = arena_new(&driver->escape);
    driver->group_trials = arena_new(&driver->escape);
    driver->diags.arena = driver->arena;
    driver->ahead = regions_ahead_new(options->n_threads);
    if (driver->arena && driver->scratch && driver->trial && driver->group_trials) return true;
    driver_free(driver);
    return false;
}

void driver_free(Driver *driver) {
    arena_free(driver->arena);
    arena_free(driver->scratch);
    arena_free(driver->trial);
    arena_free(driver->group_trials);
    regions_ahead_free(driver->ahead);
    driver->ahead = NULL;
    driver->arena = driver->scratch = driver->trial = driver->group_trials = NULL;
}

static void close_emission(Driver *driver) {
    if (driver->emission) codegen_close(driver->emission);
    driver->emission = NULL;
}

static fusec_status guard(Driver *driver, fusec_status (*body)(Driver *, void *), void *user) {
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

fusec_status driver_guard(Driver *driver, fusec_status (*body)(Driver *, void *), void *user) {
    fusec_status status = guard(driver, body, user);
    close_emission(driver);
    return status;
}

void driver_on_fault(void (*told)(const char *why)) {
    codegen_on_fault(told);
}

bool driver_seal(char *artifact, size_t n_bytes) {
    return manifest_seal(artifact, n_bytes);
}

static void print_module(Driver *driver, Text *out) {
    const Module *module = driver->planning.n_units ? driver->planned : driver->module;
    Module shown = *module;
    memset(&shown.graphs, 0, sizeof shown.graphs);
    for (uint32_t i = 0; i < module->graphs.n; i++) {
        Graph *graph = module->graphs.data[i];
        const Plan *plan = driver->planning.n_units ? driver->planning.units[i].plan : NULL;
        if (plan) graph = explain_fused_graph(driver->arena, driver->strings, plan);
        vec_push(driver->arena, &shown.graphs, graph);
    }
    module_print(&shown, out);
}

static void print_plans(const Driver *driver, Text *out) {
    for (uint32_t i = 0; i < driver->planned->graphs.n; i++) {
        if (i) text_puts(out, "\n");
        plan_print(driver->planning.units[i].plan, out);
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
    dot_print(driver->arena, driver->plans, driver->planned->graphs.n, &text);
    return text_str(&text);
}

/* Cuts the graphs that have loops into graphs without, which are planned. Sets `planned` and
 * `sequences`. */
static void cut_loops(Driver *driver) {
    const Module *module = driver->module;
    Vec(Str) names = {0};
    driver->planned = arena_copy(driver->arena, module, sizeof *module);
    memset(&driver->planned->graphs, 0, sizeof driver->planned->graphs);
    driver->sequences = arena_array(driver->arena, Sequence *, module->graphs.n);
    for (uint32_t i = 0; i < module->graphs.n; i++)
        vec_push(driver->arena, &names, module->graphs.data[i]->name);
    for (uint32_t i = 0; i < module->graphs.n; i++) {
        Graph *graph = module->graphs.data[i];
        if (!graph_has_loops(graph)) {
            vec_push(driver->arena, &driver->planned->graphs, graph);
            continue;
        }
        Sequence *sequence = sequence_cut(driver->arena, graph, names.data, names.n);
        for (uint32_t k = 0; k < sequence->graphs.n; k++) {
            Graph *sub = sequence->graphs.data[k].graph;
            const char *wrong = graph_verify(sub, driver->scratch);
            if (wrong) ice(driver->arena, "a subgraph of %s: %s", graph->name, wrong);
            vec_push(driver->arena, &driver->planned->graphs, sub);
            vec_push(driver->arena, &names, sub->name);
        }
        driver->sequences[i] = sequence;
    }
}

uint32_t driver_planned(const Driver *driver, uint32_t graph, uint32_t *n) {
    uint32_t first = 0;
    for (uint32_t i = 0; i <= graph; i++) {
        const Sequence *sequence = driver->sequences[i];
        if (i) first += *n;
        *n = sequence ? sequence->graphs.n : 1;
    }
    return first;
}

bool driver_is_repeated(const Driver *driver, uint32_t k) {
    for (uint32_t i = 0, n; i < driver->module->graphs.n; i++) {
        uint32_t first = driver_planned(driver, i, &n);
        if (k < first + n)
            return driver->sequences[i] && driver->sequences[i]->graphs.data[k - first].loop;
    }
    return false;
}

/* The passes. */

bool parse_pass(const Planning *p) {
    Driver *driver = p->user;
    driver->front =
        front_read(p->arena, driver->strings, p->diags, driver->source, driver->options.includes);
    return driver->front != NULL;
}

bool check_pass(const Planning *p) {
    Driver *driver = p->user;
    driver->module = front_check(driver->front, p->scratch, driver_rewrites(&driver->options));
    if (!driver->module) return false;
    if (driver->options.weights)
        driver->module->weights = strtab_intern_z(driver->strings, driver->options.weights);
    for (uint32_t i = 0; i < driver->module->graphs.n; i++) {
        Graph *graph = driver->module->graphs.data[i];
        graph->is_fast = driver->options.is_fast;
        const char *wrong = graph_verify(graph, p->scratch);
        if (wrong) ice(p->arena, "the front end made a wrong graph: %s", wrong);
    }
    if (!driver->options.apart) return true;
    cut_loops(driver);
    driver->module = driver->planned;
    return true;
}

bool legal_pass(const Planning *p) {
    bool legal = true;
    for (uint32_t i = 0; i < p->n_units; i++)
        legal = codegen_is_legal(p->units[i].plan, p->target, p->diags) && legal;
    return legal;
}

bool manifest_pass(const Planning *p) {
    Driver *driver = p->user;
    ManifestInput input = {.module = driver->module,
                           .sequences = driver->sequences,
                           .plans = driver->plans,
                           .target = p->target,
                           .numerics = numerics_name(driver->options.is_fast),
                           .rewrites = driver_rewrites(&driver->options),
                           .compiler = FUSEC_VERSION};
    driver->manifest = manifest_text(p->arena, &input, p->diags);
    return driver->manifest != NULL;
}

static BackOptions back_options(const Driver *driver) {
    return (BackOptions){.target = driver->options.target,
                         .verify = driver->options.checks_llvm,
                         .n_threads = driver->options.n_threads};
}

bool lower_pass(const Planning *p) {
    Driver *driver = p->user;
    return codegen_lower(driver->emission, driver->plans, p->n_units);
}

bool emit_pass(const Planning *p) {
    Driver *driver = p->user;
    bool is_artifact = driver->options.kind == driver_artifact_kind(driver->options.target);
    const char *manifest = is_artifact ? driver->manifest : NULL;
    if (!codegen_finish(driver->emission, manifest, &driver->code)) return false;
    if (is_artifact && !manifest_seal(driver->code.data, driver->code.n_bytes))
        ice(p->arena, "the artifact has no manifest");
    return true;
}

/* Dumps. */

/* The parse has left only the graphs, so the AST is printed from a second parse. */
static const char *ast_text(Driver *driver) {
    Text text = {.arena = driver->arena};
    Diags diags = {.arena = driver->arena};
    ast_print(ast_parse(driver->arena, driver->strings, &diags, driver->source), &text);
    return text_str(&text);
}

static const char *decisions_text(const Driver *driver) {
    Text text = {.arena = driver->arena};
    for (uint32_t i = 0; i < driver->planning.n_units; i++) {
        const PlanUnit *unit = &driver->planning.units[i];
        text_printf(&text, "%sgraph %s\n", i ? "\n" : "", unit->graph->name);
        decisions_print(unit->decisions, unit->graph, &text);
    }
    return text_str(&text);
}

/* The code without its manifest, of another emission than the driver's. */
static const char *code_text(Driver *driver, CodeKind kind) {
    CodeBytes code = {0};
    if (!codegen_emit(driver->arena, driver->plans, driver->planned->graphs.n, back_options(driver),
                      kind, &code, &driver->diags))
        return "";
    return str_format(driver->arena, "%.*s", (int)code.n_bytes, code.data);
}

/* The text of a pass's result. */
static const char *text_after(Driver *driver, PassId pass) {
    switch (pass) {
    case PASS_PARSE:
        return ast_text(driver);
    case PASS_CHECK:
    case PASS_SPLIT_K:
    case PASS_FUSE:
        return graph_text(driver);
    case PASS_DECIDE:
        return decisions_text(driver);
    case PASS_SPLIT:
    case PASS_HOIST:
    case PASS_DISPATCH:
    case PASS_LAYOUT:
    case PASS_SCHEDULE:
    case PASS_LAUNCH:
    case PASS_BOUNDS:
    case PASS_BAND:
    case PASS_DEDUP:
    case PASS_CONTRACT:
    case PASS_PLACE:
    case PASS_LEGAL:
        return plan_text(driver);
    case PASS_LEDGER:
        return driver->ledger ? driver->ledger : "";
    case PASS_MANIFEST:
        return driver->manifest;
    case PASS_LOWER:
        return code_text(driver, CODE_LLVM_IR);
    case PASS_EMIT:
        return code_text(driver, CODE_ASSEMBLY);
    case PASS_COUNT:
        break;
    }
    return "";
}

static void after_pass(const Planning *p, PassId pass, double seconds) {
    Driver *driver = p->user;
    const DriverWatch *watch = &driver->options.watch;
    for (uint32_t i = 0; pass == PASS_LAYOUT && i < p->n_units; i++) {
        const char *fault = plan_verify(p->units[i].plan, p->scratch);
        if (fault) ice(p->arena, "layout of %s: %s", p->units[i].graph->name, fault);
    }
    if (!watch->after) return;
    bool wants_text = watch->wants_text >> pass & 1;
    watch->after(watch->user, pass, seconds, wants_text ? text_after(driver, pass) : NULL);
}

/* The compilation. */

fusec_status driver_parse(Driver *driver, const char *name, const char *text, size_t n_bytes) {
    const DriverOptions *options = &driver->options;
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
    driver->source = source_new(driver->arena, kept, text, n_bytes);
    driver->planning = (Planning){.plan_passes = &plan_passes,
                                  .driver_passes = &own_passes,
                                  .target = options->target,
                                  .mode = options->no_fuse ? MODE_UNFUSED : MODE_COMPILE,
                                  .has_traces = options->hook.fused != NULL,
                                  .has_texts = options->watch.wants_text != 0,
                                  .arena = driver->arena,
                                  .scratch = driver->scratch,
                                  .trial = driver->trial,
                                  .group_trials = driver->group_trials,
                                  .region_memo = region_memo_new(driver->arena),
                                  .ahead = driver->ahead,
                                  .known_groups = known_groups_new(driver->arena),
                                  .diags = &driver->diags,
                                  .work = &driver->work,
                                  .grouped = &driver->grouped,
                                  .user = driver,
                                  .after = after_pass};
    return pipeline_run(&driver->planning, PASS_PARSE, PASS_CHECK) ? FUSEC_OK : FUSEC_INPUT;
}

static void set_text(Driver *driver, const char *text) {
    driver->code = (CodeBytes){.data = arena_copy(driver->arena, text, strlen(text) + 1),
                               .n_bytes = strlen(text)};
}

/* The text of a kind that is made before fusion; else NULL. */
static const char *early_text(Driver *driver) {
    if (driver->options.kind == FUSEC_AST) return ast_text(driver);
    return driver->options.kind == FUSEC_GRAPH ? graph_text(driver) : NULL;
}

/* Whether the kind is code, which has a manifest or is the code of an artifact that has one. */
static bool is_code(fusec_kind kind) {
    switch (kind) {
    case FUSEC_AST:
    case FUSEC_GRAPH:
    case FUSEC_FUSED:
    case FUSEC_SCHED:
    case FUSEC_DOT:
    case FUSEC_KIND_COUNT:
        return false;
    case FUSEC_LLVM:
    case FUSEC_PTX:
    case FUSEC_ASM:
    case FUSEC_OBJECT:
        break;
    }
    return true;
}

/* Whether a manifest can hold the plans, where the result is code. To place the temporaries of more
 * tensors would take long. */
static bool may_be_code(Driver *driver) {
    const Planning *p = &driver->planning;
    bool may = true;
    for (uint32_t i = 0; p->may_hold && i < p->n_units; i++) {
        const Plan *plan = p->units[i].plan;
        may = p->may_hold(plan->graph, plan->buffers.n, &driver->diags) && may;
    }
    return may;
}

typedef enum HookTime { AFTER_FUSION, AFTER_SCHEDULING, AFTER_PLACING } HookTime;

static void call_hook(const Driver *driver, const DriverHook *hook, HookTime time) {
    const Planning *p = &driver->planning;
    if (hook->before) call_hook(driver, hook->before, time);
    void (*call)(void *, Arena *, Plan *, bool) = time == AFTER_FUSION       ? hook->fused
                                                  : time == AFTER_SCHEDULING ? hook->scheduled
                                                                             : hook->placed;
    for (uint32_t i = 0; i < p->n_units && call; i++)
        call(hook->user, driver->arena, p->units[i].plan, !driver->options.no_fuse);
}

/* Threads get ready for the code while the plans are made. */
static void open_emission(Driver *driver) {
    CodeKind kind = driver->options.kind == FUSEC_LLVM     ? CODE_LLVM_IR
                    : driver->options.kind == FUSEC_OBJECT ? CODE_OBJECT
                                                           : CODE_ASSEMBLY;
    uint32_t n_ops = 0;
    for (uint32_t i = 0; i < driver->planned->graphs.n; i++)
        n_ops += driver->planned->graphs.data[i]->nodes.n;
    driver->emission = codegen_open(driver->arena, back_options(driver), kind, &driver->diags);
    codegen_prepare(driver->emission, n_ops);
}

/* Runs the passes, with the hooks between them. Other threads make code while temporaries are
 * placed and the ledger and the manifest are written. */
static bool make_plans(Driver *driver) {
    Planning *p = &driver->planning;
    const DriverHook *hook = &driver->options.hook;
    cut_loops(driver);
    p->n_units = driver->planned->graphs.n;
    if (is_code(driver->options.kind)) open_emission(driver);
    p->may_hold = is_code(driver->options.kind) ? manifest_may_hold : NULL;
    p->units = arena_array(driver->arena, PlanUnit, p->n_units);
    for (uint32_t i = 0; i < p->n_units; i++) p->units[i].graph = driver->planned->graphs.data[i];
    if (!pipeline_run(p, PASS_SPLIT_K, PASS_DISPATCH) || !may_be_code(driver)) return false;
    driver->plans = arena_array(driver->arena, const Plan *, p->n_units);
    for (uint32_t i = 0; i < p->n_units; i++) driver->plans[i] = p->units[i].plan;
    call_hook(driver, hook, AFTER_FUSION);
    if (!pipeline_run(p, PASS_LAYOUT, PASS_CONTRACT)) return false;
    call_hook(driver, hook, AFTER_SCHEDULING);
    if (is_code(driver->options.kind) && !pipeline_run(p, PASS_LEGAL, PASS_LOWER)) return false;
    if (!pipeline_run(p, PASS_PLACE, PASS_PLACE)) return false;
    call_hook(driver, hook, AFTER_PLACING);
    return pipeline_run(p, PASS_LEDGER, PASS_LEDGER);
}

fusec_status driver_build(Driver *driver) {
    const char *early = early_text(driver);
    if (early) set_text(driver, early);
    if (early && !driver->options.explain && !driver->options.explain_json &&
        !driver->options.plans)
        return FUSEC_OK;
    if (!make_plans(driver)) return FUSEC_INPUT;
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
    return pipeline_run(&driver->planning, PASS_MANIFEST, PASS_EMIT) ? FUSEC_OK : FUSEC_INPUT;
}
