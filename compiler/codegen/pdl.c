/* Launches that overlap (programmatic dependent launch). See gpu.h and docs/design/pdl.md. */
#include "codegen/gpu/gpu.h"
#include "plan/launch.h"

/* Whether the launch has one block, or many blocks that use little of a multiprocessor. Such blocks
 * delay no other launch for long, wherever they run. */
static bool is_small(const Plan *plan, const Launch *launch) {
    const Kernel *kernel = launch_kernel(plan, launch, 0);
    if (kernel->is_init) return false;
    return launch_has_one_block(launch) ||
           template_info(kernel->variants[0].sched.template)->is_small;
}

/* Whether the next launch may begin before this one's blocks have ended
 * (griddepcontrol.launch_dependents). Large blocks of the next launch would crowd onto the
 * multiprocessors that become free first, while others stand idle. */
static bool lets_next_in(const Plan *plan, const Launch *launch) {
    return is_small(plan, launch) && is_small(plan, plan_launch_after(plan, launch));
}

void gpu_begin(Lower *lowers, const Launch *launch) {
    const Codegen *k = lowers->k;
    if (!k->target->has_pdl) return;
    if (launch_has_one_block(launch)) gpu_one_block_prefetch(lowers, launch);
    gpu_pdl_say(k, "griddepcontrol.wait;");
    lowers->triggers_next = lets_next_in(lowers->plan, launch);
    if (launch_has_one_block(launch)) gpu_pdl_trigger(lowers);
}
