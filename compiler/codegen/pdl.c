/* Launches that overlap (programmatic dependent launch). See gpu.h and docs/design/pdl.md. */
#include "codegen/gpu/gpu.h"
#include "plan/launch.h"

static bool is_one_block(const Launch *launch) {
    return launch_mode_info(launch->mode)->blocks == BLOCKS_ONE;
}

/* One block, or many that need little of a processor beside others: wherever they come in, they
 * delay nobody for long. */
static bool is_small(const Plan *plan, const Launch *launch) {
    const Kernel *kernel = launch_kernel(plan, launch, 0);
    if (kernel->is_init) return false;
    return is_one_block(launch) || template_info(kernel->variants[0].sched.template)->is_small;
}

/* Whether the next launch is let in before this one's blocks have ended. Large blocks would go
 * where blocks end first, several to one processor, and others would stand empty. Behind the last
 * launch of a run comes the first of the next. */
static bool lets_next_in(const Plan *plan, const Launch *launch) {
    uint32_t next = launch->first + launch->n;
    if (next == plan->kernels.n) next = plan_n_init(plan);
    return is_small(plan, launch) && is_small(plan, plan_launch_of(plan, next));
}

void gpu_begin(Lower *phases, const Launch *launch) {
    const Codegen *k = phases->k;
    if (!k->target->has_pdl) return;
    if (is_one_block(launch)) gpu_one_block_prefetch(phases, launch);
    gpu_pdl_say(k, "griddepcontrol.wait;");
    phases->lets_in = lets_next_in(phases->plan, launch);
    if (is_one_block(launch)) gpu_pdl_trigger(phases);
}
