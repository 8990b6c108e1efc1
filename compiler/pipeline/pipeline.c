/* Running passes. See pipeline.h. */
#include "pipeline/pipeline.h"

#include <time.h>

#define HAS(fact) (1u << FACT_##fact)
enum {
    GPU_SHIFT = 16, /* shift in the column of modes */
    FACTS_OF_GRAPH = HAS(AST) | HAS(GRAPH) | HAS(SEGMENTS)
};
_Static_assert((int)MODE_COUNT <= GPU_SHIFT, "the modes of a pass are two bit sets of 16");

static const PassInfo passes[PASS_COUNT] = {
#define IN(mode) (1u << MODE_##mode)
#define ON_GPU(mode) (1u << (MODE_##mode + GPU_SHIFT))
#define PASS(sym, name, scope, run, extension, requires, leaves, modes, doc)                  \
    [PASS_##sym] = {                                                                          \
        name,         extension, doc, requires, leaves, (modes)&0xFFFF, (modes) >> GPU_SHIFT, \
        SCOPE_##scope},
#include "pipeline/passes.def"
};

static const ModeInfo modes[MODE_COUNT] = {
#define MODE(sym, name, fuses, doc) [MODE_##sym] = {name, doc, fuses},
#include "pipeline/modes.def"
};

static const FactInfo facts[FACT_COUNT] = {
#define FACT(sym, name, doc) [FACT_##sym] = {name, doc},
#include "pipeline/facts.def"
};

const PassInfo *pass_info(PassId pass) {
    return &passes[pass];
}

const ModeInfo *mode_info(PlanMode mode) {
    return &modes[mode];
}

uint32_t mode_launches(PlanMode mode) {
    static const uint32_t tried_in[] = {
#define LAUNCH_MODE(sym, name, blocks, tried, ...) [LAUNCH_##sym] = tried,
#include "plan/launch_modes.def"
    };
    uint32_t launches = 0;
    for (uint32_t i = 0; i < sizeof tried_in / sizeof *tried_in; i++)
        launches |= (tried_in[i] >> mode & 1) << i;
    return launches;
}

const FactInfo *fact_info(Fact fact) {
    return &facts[fact];
}

static double now_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static bool is_run(const Planning *p, PassId pass) {
    uint32_t in = passes[pass].modes;
    if (p->target->has->launches) in |= passes[pass].gpu_modes;
    return in >> p->mode & 1;
}

static void check_requirements(const Planning *p, PassId pass) {
    uint32_t missing = passes[pass].requires & ~p->facts;
    for (int fact = 0; fact < FACT_COUNT; fact++)
        if (missing >> fact & 1)
            ice(p->arena, "pass %s: it does not hold that %s", passes[pass].name, facts[fact].doc);
}

/* A unit whose plan has the result already is done. */
static bool run_each(const Planning *p, PassId pass) {
    PassEach *run = p->plan_passes->passes[pass].each;
    for (uint32_t i = 0; i < p->n_units; i++) {
        ArenaMark mark = {0};
        if (pass <= p->units[i].is_made_to) continue;
        if (p->scratch) mark = arena_mark(p->scratch);
        if (!run(p, &p->units[i])) return false;
        if (p->scratch) arena_rewind(p->scratch, mark);
    }
    return true;
}

static bool run_all(const Planning *p, PassAll *run) {
    ArenaMark mark = {0};
    if (p->scratch) mark = arena_mark(p->scratch);
    bool ok = run(p);
    if (p->scratch) arena_rewind(p->scratch, mark);
    return ok;
}

static bool run_pass(const Planning *p, PassId pass) {
    switch (passes[pass].scope) {
    case SCOPE_EACH:
        return run_each(p, pass);
    case SCOPE_ALL:
        return run_all(p, p->plan_passes->passes[pass].all);
    case SCOPE_DRIVER:
        return run_all(p, p->driver_passes->passes[pass].all);
    }
    return false;
}

/* A pass invalidates the facts of all later passes and establishes its own. */
static void note_facts(Planning *p, PassId pass) {
    for (int later = (int)pass; later < PASS_COUNT; later++) p->facts &= ~passes[later].leaves;
    p->facts |= passes[pass].leaves;
    for (uint32_t i = 0; i < p->n_units; i++)
        if (p->units[i].plan) p->units[i].plan->facts = p->facts;
}

static void count_work(const Planning *p) {
    for (uint32_t i = 0; p->work && i < p->n_units; i++) {
        const Plan *plan = p->units[i].plan;
        for (uint32_t k = 0; plan && k < plan->kernels.n; k++)
            *p->work += scalar_count(plan->kernels.data[k].scalars);
    }
}

bool pipeline_run(Planning *p, PassId from, PassId to) {
    for (int pass = (int)from; pass <= (int)to; pass++) {
        if (!is_run(p, (PassId)pass)) continue;
        check_requirements(p, (PassId)pass);
        double begin = p->after ? now_seconds() : 0;
        if (!run_pass(p, (PassId)pass)) return false;
        note_facts(p, (PassId)pass);
        count_work(p);
        if (p->after) p->after(p, (PassId)pass, now_seconds() - begin);
    }
    return true;
}

static Planning trial_like(const Planning *like, Arena *arena, Arena *scratch, PlanMode mode,
                           PlanUnit *unit) {
    return (Planning){.plan_passes = like->plan_passes,
                      .target = like->target,
                      .mode = mode,
                      .is_trial = true,
                      .arena = arena,
                      .scratch = scratch,
                      .group_trials = like->group_trials,
                      .region_memo = like->region_memo,
                      .op_cost = like->op_cost,
                      .group_memo = like->group_memo,
                      .work = like->work,
                      .grouped = like->grouped,
                      .most_work = like->most_work,
                      .units = unit,
                      .n_units = 1};
}

Graph *graph_for_trial(Arena *arena, const Graph *graph) {
    Graph *own = arena_copy(arena, graph, sizeof *graph);
    own->dims = dimtab_copy(arena, graph->dims);
    return own;
}

Plan *pipeline_try(const Planning *like, Arena *arena, Arena *scratch, PlanMode mode, Graph *graph,
                   const Decisions *decisions, PassId to) {
    Diags ignored = {.arena = arena};
    PlanUnit unit = {.graph = graph, .decisions = decisions};
    Planning trial = trial_like(like, arena, scratch, mode, &unit);
    trial.diags = &ignored;
    trial.facts = FACTS_OF_GRAPH;
    return pipeline_run(&trial, PASS_DECIDE, to) ? unit.plan : NULL;
}

void pipeline_retry(const Planning *like, Arena *arena, Arena *scratch, PlanMode mode, Plan *plan,
                    PassId from, PassId to) {
    PlanUnit unit = {.plan = plan};
    Planning trial = trial_like(like, arena, scratch, mode, &unit);
    trial.price_memo = like->price_memo;
    trial.facts = plan->facts;
    if (!pipeline_run(&trial, from, to)) ice(arena, "pass %s refused a plan", passes[from].name);
}
