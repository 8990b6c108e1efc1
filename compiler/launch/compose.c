/* See compose.h. */
#include "launch/compose.h"
#include "launch/trial.h"

/* Kernels of their own: there is nothing to try. */
const LaunchRules launch_rules_single = {.mode = LAUNCH_SINGLE};

void launch_compose(Arena *arena, Arena *scratch, Plan *plan, const Target *target,
                    uint32_t modes) {
    static const LaunchRules *const table[] = {
#define LAUNCH_MODE(sym, name, blocks, text, word) &launch_rules_##name,
#include "plan/launch_modes.def"
    };
    Composer c = {.arena = arena,
                  .scratch = scratch,
                  .plan = plan,
                  .target = target,
                  .points = cost_points(arena, plan->graph->dims, target->device)};
    for (uint32_t i = 0; i < sizeof table / sizeof *table; i++) {
        const LaunchRules *rules = table[i];
        bool is_for_target = target->device == DEVICE_GPU || rules->has_cpu;
        if (rules->propose && is_for_target && (modes >> rules->mode & 1)) rules->propose(&c);
    }
}
