/* Source text to plans. See plans.h. */
#include "lib/plans.h"

#include "front/sema.h"
#include "launch/compose.h"
#include "launch/dedup.h"
#include "layout/layout.h"
#include "memory/memplan.h"
#include "schedule/schedule.h"
#include "search/search.h"
#include "search/split_k_choice.h"

#include <criterion/criterion.h>
#include <string.h>

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

static Plan *fuse(Arena *arena, const Graph *graph, bool off, const char **errors) {
    Diags diags = {.arena = arena};
    Arena *scratch = arena_new(NULL);
    Plan *plan = fuse_graph(arena, scratch, graph, (FuseOptions){.off = off}, &diags);
    arena_free(scratch);
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

const char *plans_refusal(Arena *arena, const Module *module, uint32_t index) {
    const char *errors;
    cr_assert_null(fuse(arena, module->graphs.data[index], false, &errors));
    return errors;
}

typedef enum { LINKS_NONE, LINKS_BUT_TURNS, LINKS_ALL } Links;

static PricedPlan price(Arena *arena, const Module *module, uint32_t index, Links links,
                        TargetId target, const Card *card, const int64_t *dims) {
    bool off = links == LINKS_NONE;
    Diags diags = {.arena = arena};
    Arena *scratch = arena_new(NULL);
    Graph *graph = module->graphs.data[index];
    PricedPlan priced = {NULL, NULL};
    Arena *trial = arena_new(NULL);
    split_k_choose(trial, scratch, graph, target_get(target));
    arena_free(trial);
    FuseOptions apart = {.off = true, .pads_rows = target_get(target)->device == DEVICE_GPU};
    priced.plan = off ? fuse_graph(arena, scratch, graph, apart, &diags)
                      : search_plan(arena, scratch, graph, target_get(target), &diags);
    if (!priced.plan) {
        arena_free(scratch);
        return priced;
    }
    const Plan *const plans[1] = {priced.plan};
    layout_plan(arena, priced.plan, target_get(target));
    sched_plan(arena, priced.plan, target_get(target));
    uint32_t modes = links == LINKS_ALL ? LAUNCH_MODES_IN_BLOCKS : LAUNCH_MODES_OF_GEMMS;
    if (!off) launch_compose(arena, scratch, priced.plan, target_get(target), modes);
    dedup_classify(arena, plans, 1);
    if (!off) launch_compose(arena, scratch, priced.plan, target_get(target), LAUNCH_MODES_BESIDE);
    arena_free(scratch);
    if (!memplan_place(arena, priced.plan)) return (PricedPlan){NULL, NULL};
    priced.cost = cost_plan(arena, priced.plan, card, cost_dims(arena, module->dims, dims));
    return priced;
}

PricedPlan plans_price(Arena *arena, const Module *module, uint32_t index, bool off,
                       TargetId target, const Card *card, const int64_t *dims) {
    return price(arena, module, index, off ? LINKS_NONE : LINKS_ALL, target, card, dims);
}

PricedPlan plans_price_without_turns(Arena *arena, const Module *module, uint32_t index,
                                     TargetId target) {
    const Card *card = card_of_target(target_get(target));
    return price(arena, module, index, LINKS_BUT_TURNS, target, card, NULL);
}
