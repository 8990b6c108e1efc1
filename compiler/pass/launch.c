/* Greedy: each kernel joins the earliest launch of its code that it does not have to follow. See
 * launch.h. */
#include "pass/launch.h"

#include <string.h>

/* Whether `other` touches what `kernel` writes. */
static bool writes_for(const Kernel *kernel, const Kernel *other) {
    for (uint32_t i = 0; i < other->args.n; i++)
        if (kernel_stores_to(kernel, other->args.data[i])) return true;
    return false;
}

/* Tensor maps are those of one kernel's arguments. */
static bool has_maps(const Kernel *kernel) {
    for (uint32_t v = 0; v < kernel->n_variants; v++)
        if (kernel->variants[v].n_maps) return true;
    return false;
}

/* Whether kernel `k` may run with the launch at `first`: nothing from there on makes what it reads.
 */
static bool may_join(const Plan *plan, uint32_t first, uint32_t k) {
    const Kernel *kernels = plan->kernels.data, *kernel = &kernels[k];
    Launch launch = plan_launch(plan, first);
    bool has_phases = launch.n > 1 && !launch_has_parts(&launch);
    uint32_t n_args = (launch.n + 1) * kernel->args.n;
    if (has_phases || has_maps(kernel) || kernels[first].is_init != kernel->is_init ||
        kernels[first].code != kernel->code || n_args > MAX_KERNEL_ARGS)
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

void launch_join(Plan *plan) {
    for (uint32_t k = 1; k < plan->kernels.n; k++) {
        if (plan->kernels.data[k].link != LINK_NONE || plan_launch(plan, k).n > 1) continue;
        for (uint32_t first = 0; first < k; first += plan_launch(plan, first).n) {
            if (!may_join(plan, first, k)) continue;
            move(plan, k, first + plan_launch(plan, first).n);
            break;
        }
    }
}
