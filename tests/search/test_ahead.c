/* Regions that are improved on other threads: search decides the same, and counts the same work, as
 * without them, also where its work is spent on the way. */
#include "search/ahead.h"

#include "lib/plans.h"
#include "machine/tuning.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static const char source[] =
    "dim B in 1..64\n"
    "def layer(x, z) {\n  param w: f32[64, 64]\n  param v: f32[64, 96]\n  param u: f32[96, 64]\n"
    "  param g: f32[64]\n  h = rmsnorm(x, g) @ w\n  a = softmax(h @ transpose(h)) @ h\n"
    "  return silu(a @ v) @ u + transpose(z)\n}\n"
    "graph net(x: f32[B, 64], z: f32[64, B]) -> (y: f32[B, 64], s: f32[B]) {\n"
    "  a = layer(x, z) as \"a\"\n  b = layer(a, exp(z)) as \"b\"\n"
    "  y = layer(a + b, z * 2.0) as \"c\"\n  s = sum(softmax(y, axis=0) * b, axis=1)\n}\n";

typedef struct Outcome {
    char *decisions;
    uint64_t work;
    GroupingWork grouped;
} Outcome;

/* What search decides, where so much work has been done before it. */
static Outcome decide(TargetId target, uint64_t work, RegionsAhead *ahead) {
    Arena *arena = arena_new(NULL), *scratch = arena_new(NULL);
    Module *module = plans_parse(arena, source);
    Outcome outcome = {.work = work};
    PlanUnit unit = {.graph = module->graphs.data[0]};
    Diags diags = {.arena = arena};
    Planning planning = plans_planning(arena, scratch, target, &unit);
    planning.has_traces = false;
    planning.trial = arena_new(NULL);
    planning.group_trials = arena_new(NULL);
    planning.diags = &diags;
    planning.work = &outcome.work;
    planning.grouped = &outcome.grouped;
    planning.ahead = ahead;
    cr_assert(pipeline_run(&planning, PASS_SPLIT_K, PASS_DECIDE));
    Text text = {.arena = arena};
    decisions_print(unit.decisions, unit.graph, &text);
    outcome.decisions = strdup(text_str(&text));
    arena_free(planning.trial), arena_free(planning.group_trials);
    arena_free(scratch), arena_free(arena);
    return outcome;
}

static void expect_same(TargetId target, uint64_t work, RegionsAhead *ahead) {
    Outcome alone = decide(target, work, NULL), beside = decide(target, work, ahead);
    cr_expect_str_eq(beside.decisions, alone.decisions);
    cr_expect_eq(beside.work, alone.work, "%s, from %llu on", target_get(target)->name,
                 (unsigned long long)work);
    cr_expect_eq(beside.grouped.n_scalars, alone.grouped.n_scalars, "%s, from %llu on",
                 target_get(target)->name, (unsigned long long)work);
    free(alone.decisions), free(beside.decisions);
}

Test(ahead, threads_do_not_change_what_is_decided) {
    static const TargetId targets[] = {TARGET_CPU_V4, TARGET_SM_80, TARGET_SM_90A};
    for (size_t t = 0; t < sizeof targets / sizeof *targets; t++) {
        RegionsAhead *ahead = regions_ahead_new(4);
        Outcome all = decide(targets[t], 0, NULL);
        uint64_t needed = all.work + all.grouped.n_scalars;
        cr_assert(ahead && needed < SEARCH_MOST_WORK);
        for (uint64_t part = 0; part <= 8; part++)
            expect_same(targets[t], SEARCH_MOST_WORK - needed * part / 8, ahead);
        expect_same(targets[t], 0, ahead);
        free(all.decisions);
        regions_ahead_free(ahead);
    }
}

Test(ahead, one_thread_improves_nothing_ahead) {
    cr_expect_null(regions_ahead_new(0));
    cr_expect_null(regions_ahead_new(1));
}
