/* See compose.h. */
#include "launch/compose.h"
#include "launch/trial.h"

/* Kernels of their own: there is nothing to try. */
const LaunchRules launch_rules_single = {.has_cpu = true};

void launch_compose(Arena *arena, Arena *scratch, Plan *plan, const Target *target,
                    uint32_t modes) {
    static const LaunchMode order[] = {
#define LAUNCH_MODE(sym, name, blocks, text, word) LAUNCH_##sym,
#include "plan/launch_modes.def"
    };
    Composer c = {.arena = arena,
                  .scratch = scratch,
                  .plan = plan,
                  .target = target,
                  .points = cost_points(arena, plan->graph->dims, target->device)};
    for (uint32_t i = 0; i < sizeof order / sizeof *order; i++) {
        const LaunchRules *rules = launch_rules(order[i]);
        bool is_for_target = target->device == DEVICE_GPU || rules->has_cpu;
        if (rules->propose && is_for_target && (modes >> order[i] & 1)) rules->propose(&c);
    }
}
