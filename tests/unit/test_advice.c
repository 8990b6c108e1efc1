/* The advice of every edge, followed: random programs and examples are changed as the ledger says,
 * compiled again, and the edge must have the other verdict; where the ledger says that only other
 * ops would do, `fuse must` is refused for the same reason. */
#include "pass/advice.h"

#include "lib/plans.h"
#include "lib/random_graph.h"
#include "lib/text_file.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

typedef struct Compiled {
    const char *name;
    const Module *module;
    TargetId target;
} Compiled;

static Plan *plan_of(const Compiled *program, Arena *arena, const Graph *graph) {
    Module alone = *program->module;
    Graph *shown = arena_copy(arena, graph, sizeof *graph);
    memset(&alone.graphs, 0, sizeof alone.graphs);
    vec_push(arena, &alone.graphs, shown);
    const Card *card = card_of_target(target_get(program->target));
    return plans_price(arena, &alone, 0, false, program->target, card, NULL).plan;
}

static const Plan *plan_changed(void *user, Arena *arena, const Graph *graph) {
    return plan_of(user, arena, graph);
}

/* Settles the plan's reasons. */
static const Advice *settle(Compiled *program, Arena *arena, Plan *plan) {
    AdvicePlanner planner = {.plan = plan_changed, .user = program, .trial = arena_new(NULL)};
    const Advice *advices = advice_settle(arena, plan, &planner);
    arena_free(planner.trial);
    return advices;
}

static const Edge *find_edge(const Plan *plan, const Edge *like) {
    for (uint32_t i = 0; i < plan->edges.n; i++)
        if (plan->edges.data[i].producer == like->producer &&
            plan->edges.data[i].consumer == like->consumer)
            return &plan->edges.data[i];
    return NULL;
}

static const char *value_name(const Graph *graph, NodeId id) {
    const Node *node = graph_node(graph, id);
    return node->name ? node->name : op_info(node->op)->name;
}

/* How often each step came last, and how often it was wrong. */
typedef struct Tally {
    uint32_t n_followed[ADVICE_KIND_COUNT], n_edges, n_wrong;
} Tally;

static void follow_edge(Compiled *program, const Plan *plan, const Edge *edge, const Advice *advice,
                        Tally *tally) {
    Arena *arena = arena_new(NULL);
    const AdviceStep *last = &advice->steps[advice->n_steps - 1];
    Advice both = {.steps = {{.kind = ADVICE_MUST}}, .n_steps = 1};
    bool flips = last->kind != ADVICE_OPS;
    vec_push(arena, &both.steps[0].nodes, edge->producer);
    vec_push(arena, &both.steps[0].nodes, edge->consumer);
    const Graph *changed = advice_follow(arena, plan->graph, flips ? advice : &both);
    Plan *after = plan_of(program, arena, changed);
    if (after && !flips) settle(program, arena, after);
    const Edge *then = after ? find_edge(after, edge) : NULL;
    bool is_right = then && (flips ? then->verdict != edge->verdict
                                   : then->verdict == EDGE_STORED && then->reason == edge->reason);
    tally->n_followed[last->kind]++;
    tally->n_edges++;
    tally->n_wrong += !is_right;
    cr_expect(is_right, "%s for %s: %s -> %s [%s], step %u is %s: then %s [%s]", program->name,
              target_get(program->target)->name, value_name(plan->graph, edge->producer),
              value_name(plan->graph, edge->consumer), reason_info(edge->reason)->id,
              advice->n_steps, advice_kind_name(last->kind),
              !then                            ? "not there"
              : then->verdict == EDGE_FUSED ? "fused"
                                               : "stored",
              reason_info(then ? then->reason : REASON_NONE)->id);
    arena_free(arena);
}

static void follow_graph(Compiled *program, const Graph *graph, Tally *tally) {
    Arena *arena = arena_new(NULL);
    Plan *plan = plan_of(program, arena, graph);
    cr_assert(plan, "%s", program->name);
    const Advice *advices = settle(program, arena, plan);
    for (uint32_t i = 0; i < plan->edges.n; i++) {
        const Edge *edge = &plan->edges.data[i];
        if (edge->consumer == NODE_NONE) continue;
        cr_expect(edge->reason != REASON_NONE, "%s: an edge without a reason", program->name);
        if (advices[i].n_steps) follow_edge(program, plan, edge, &advices[i], tally);
    }
    arena_free(arena);
}

static void follow_all(const char *source, const char *name, Tally *tally) {
    static const TargetId targets[] = {TARGET_SM_90A, TARGET_SM_80, TARGET_CPU};
    Arena *arena = arena_new(NULL);
    const char *errors = "";
    Compiled program = {.name = name, .module = plans_parse(arena, source, &errors)};
    cr_assert(program.module, "%s: %s", name, errors);
    for (size_t t = 0; t < sizeof targets / sizeof *targets; t++) {
        program.target = targets[t];
        for (uint32_t g = 0; g < program.module->graphs.n; g++)
            follow_graph(&program, program.module->graphs.data[g], tally);
    }
    arena_free(arena);
}

#include <stdlib.h>
Test(advice, of_random_programs) {
    Tally tally = {0};
    int first = atoi(getenv("A0") ? getenv("A0") : "0"), n = atoi(getenv("A1") ? getenv("A1") : "60");
    for (int seed = first; seed < n; seed++) {
        Arena *arena = arena_new(NULL);
        char what[32];
        snprintf(what, sizeof what, "seed %d", seed);
        follow_all(random_graph_source(arena, (uint64_t)seed, NULL), what, &tally);
        arena_free(arena);
    }
    for (int r = 0; r < ADVICE_KIND_COUNT; r++)
        printf("%-14s %5u\n", advice_kind_name((AdviceKind)r), tally.n_followed[r]);
    printf("wrong %u of %u\n", tally.n_wrong, tally.n_edges);
}
