/* Greedy: each kernel joins the earliest launch of its code that it does not have to follow. See
 * launch.h. */
#include "pass/launch.h"

#include "pass/sched.h"

#include <string.h>

/* Whether `other` reads what `kernel` writes. Two that write to one buffer write apart. */
static bool writes_for(const Kernel *kernel, const Kernel *other) {
    for (uint32_t i = 0; i < other->args.n; i++) {
        uint32_t buffer = other->args.data[i];
        if (kernel_stores_to(kernel, buffer) && !kernel_stores_to(other, buffer)) return true;
    }
    return false;
}

/* Tensor maps of the variant that has most. */
static uint32_t most_maps(const Kernel *kernel) {
    uint32_t most = 0;
    for (uint32_t v = 0; v < kernel->n_variants; v++)
        if (kernel->variants[v].n_maps > most) most = kernel->variants[v].n_maps;
    return most;
}

/* Whether kernel `k` may run with the launch at `first`: nothing from there on makes what it reads.
 */
static bool may_join(const Plan *plan, uint32_t first, uint32_t k) {
    const Kernel *kernels = plan->kernels.data, *kernel = &kernels[k];
    Launch launch = plan_launch(plan, first);
    bool has_phases = launch.n > 1 && !launch_has_parts(&launch);
    uint32_t n_args = (launch.n + 1) * kernel->args.n;
    uint32_t n_maps = (launch.n + 1) * most_maps(kernel);
    if (has_phases || kernels[first].is_init != kernel->is_init ||
        kernels[first].code != kernel->code || n_args > MAX_KERNEL_ARGS || n_maps > MAX_LAUNCH_MAPS)
        return false;
    for (uint32_t i = first; i < k; i++)
        if (writes_for(&kernels[i], kernel)) return false;
    return true;
}

static void move(Plan *plan, uint32_t from, uint32_t to) {
    Kernel *kernels = plan->kernels.data, moved = kernels[from];
    moved.link = LINK_PART;
    memmove(&kernels[to + 1], &kernels[to], (from - to) * sizeof *kernels);
    kernels[to] = moved;
}

/* Blocks that walk over the tiles of all parts are filled by other tiles than each part alone. */
static void fit_parts(Arena *arena, Plan *plan, const Target *target) {
    for (uint32_t first = 0; first < plan->kernels.n; first += plan_launch(plan, first).n) {
        Launch launch = plan_launch(plan, first);
        if (!launch_has_parts(&launch) || !most_maps(launch.kernels)) continue;
        for (uint32_t k = first; k < first + launch.n; k++)
            sched_in_launch(arena, plan, &plan->kernels.data[k], (GemmLaunch){1, launch.n}, target);
    }
}

void launch_join(Arena *arena, Plan *plan, const Target *target) {
    for (uint32_t k = 1; k < plan->kernels.n; k++) {
        if (plan->kernels.data[k].link != LINK_NONE || plan_launch(plan, k).n > 1) continue;
        for (uint32_t first = 0; first < k; first += plan_launch(plan, first).n) {
            if (!may_join(plan, first, k)) continue;
            move(plan, k, first + plan_launch(plan, first).n);
            break;
        }
    }
    fit_parts(arena, plan, target);
}
