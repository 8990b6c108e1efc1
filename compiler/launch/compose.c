/* See compose.h. */
#include "launch/compose.h"

#include "launch/dedup.h"
#include "launch/trial.h"

/* Kernels of their own: there is nothing to try. */
const LaunchRules launch_rules_single = {.mode = LAUNCH_SINGLE};

void launch_compose(const Planning *p, Plan *plan, uint32_t modes) {
    static const LaunchRules *const table[] = {
#define LAUNCH_MODE(sym, name, blocks, tried, text, word) &launch_rules_##name,
#include "plan/launch_modes.def"
    };
    Composer c = {.planning = p,
                  .arena = p->arena,
                  .scratch = p->scratch,
                  .plan = plan,
                  .target = p->target,
                  .points = cost_points(p->arena, plan->graph->dims, p->target->device)};
    for (uint32_t i = 0; i < sizeof table / sizeof *table; i++) {
        const LaunchRules *rules = table[i];
        bool is_for_target = p->target->has->launches || rules->has_cpu;
        if (rules->propose && is_for_target && (modes >> rules->mode & 1)) rules->propose(&c);
    }
}

bool launch_pass(const Planning *p) {
    uint32_t modes = mode_launches(p->mode);
    const Plan **plans = arena_array(p->scratch, const Plan *, p->n_units);
    for (uint32_t i = 0; i < p->n_units; i++) {
        launch_compose(p, p->units[i].plan, modes & LAUNCH_MODES_IN_BLOCKS);
        plans[i] = p->units[i].plan;
    }
    /* Equal kernels start together, and fill the machine together. */
    dedup_classify(p->scratch, plans, p->n_units);
    for (uint32_t i = 0; i < p->n_units; i++)
        launch_compose(p, p->units[i].plan, modes & LAUNCH_MODES_BESIDE);
    return true;
}
