/* See smem.h. */
#include "launch/smem.h"

#include "cost/kernel/template.h"
#include "cost/pressure.h"
#include "machine/tuning.h"

static uint32_t most(uint32_t a, uint32_t b) {
    return a > b ? a : b;
}

/* Own bytes of the kernels. */

/* Bytes that a block of a sequence's GEMM needs at least, declared or dynamic. */
static uint32_t gemm_bytes(const Kernel *kernel, const Variant *variant) {
    const Sched *sched = &variant->sched;
    GemmSched gemm = sched_gemm(sched);
    uint32_t stage =
        (gemm.tile_m + gemm.tile_n) * gemm.tile_k * dtype_bytes(gemm_operand_dtype(kernel));
    TemplateCost cost = template_cost(sched->template, kernel);
    uint32_t subtile = cost.epilogue_bytes ? cost.epilogue_bytes(kernel, sched) : 0;
    if (!variant->shared_bytes) return most(gemm.stages * stage, subtile);
    return gemm.stages > LAUNCH_LEAST_STAGES
               ? variant->shared_bytes / gemm.stages * LAUNCH_LEAST_STAGES
               : variant->shared_bytes;
}

/* Bytes that the kernels of a one-block launch declare, by an estimate. */
static uint32_t declared_bytes(const Composer *c, const Trial *t) {
    uint32_t bytes = 0;
    for (uint32_t k = 0; k < trial_n_kernels(t) && c->target->has->blocks; k++) {
        const Kernel *kernel = trial_kernel(t, k);
        for (uint32_t v = 0; v < kernel->n_variants; v++)
            bytes = most(bytes, pressure_shared_bytes(c->scratch, kernel, &kernel->variants[v]));
    }
    return bytes + bytes / 4 + LAUNCH_ONE_BLOCK_SLACK_BYTES;
}

uint32_t smem_own_bytes(const Composer *c, const Trial *t, uint32_t v) {
    switch (trial_launch(t)->mode) {
    case LAUNCH_SINGLE:
    case LAUNCH_PARALLEL:
    case LAUNCH_GEMM_ROWS_GEMM:
    case LAUNCH_GEMM_ONLINE:
        return launch_shared_bytes(&t->together, trial_launch(t), v);
    case LAUNCH_SEQUENCE:
        return gemm_bytes(trial_kernel(t, 0), &trial_kernel(t, 0)->variants[v]);
    case LAUNCH_ONE_BLOCK:
        return declared_bytes(c, t);
    }
    return 0;
}

/* Bounds. */

static uint32_t kept_bytes(const Trial *t, uint32_t v) {
    const Sched *sched = &trial_kernel(t, 0)->variants[v].sched;
    return launch_smem_offset(&t->together, trial_launch(t), sched, UINT32_MAX, NULL);
}

bool smem_fits(const Composer *c, const Trial *t, uint32_t v, uint32_t own) {
    const LaunchModeInfo *info = launch_mode_info(trial_launch(t)->mode);
    uint32_t kept = kept_bytes(t, v);
    return own <= info->most_own && kept <= info->most_kept && own + kept <= info->most_bytes &&
           own + kept <= c->target->block_shared_bytes;
}

/* Values that pass from kernel to kernel. */

/* Whether the variant needs no check: the schedule of a GEMM with the copy engine has left room for
 * the values that the sequence keeps. */
static bool leaves_room(const Variant *variant) {
    return template_info(variant->sched.template)->uses_copy_engine;
}

static bool all_fit(const Composer *c, const Trial *t) {
    const Kernel *first = trial_kernel(t, 0);
    for (uint32_t v = 0; v < first->n_variants; v++)
        if (!leaves_room(&first->variants[v]) && !smem_fits(c, t, v, smem_own_bytes(c, t, v)))
            return false;
    return true;
}

void smem_keep_passed(const Composer *c, Trial *t) {
    Launch before = *trial_launch(t);
    const Kernel *last = trial_kernel(t, --before.n);
    BufferSpace spaces[MAX_KERNEL_ARGS];
    Buffer *buffers = t->together.buffers.data;
    for (uint32_t i = 0; i < last->args.n; i++) {
        uint32_t buffer = last->args.data[i];
        spaces[i] = buffers[buffer].space;
        if (launch_stores_to(&t->together, &before, buffer) && trial_is_private(c, t, buffer))
            buffers[buffer].space = BUFFER_SHARED;
    }
    if (!c->target->has->blocks || all_fit(c, t)) return;
    for (uint32_t i = 0; i < last->args.n; i++) buffers[last->args.data[i]].space = spaces[i];
}

/* Removes stages, down to LAUNCH_LEAST_STAGES, while the block's dynamic shared memory exceeds what
 * the blocks of every target have. */
static void give_up_stages(Variant *variant, uint32_t kept) {
    GemmSched *gemm = &variant->sched.gemm;
    if (leaves_room(variant)) return;
    while (variant->shared_bytes + kept > LAUNCH_DYNAMIC_BYTES &&
           gemm->stages > LAUNCH_LEAST_STAGES) {
        variant->shared_bytes -= variant->shared_bytes / gemm->stages;
        gemm->stages--;
    }
}

void smem_set_kept_bytes(Trial *t) {
    uint32_t n = trial_n_kernels(t);
    const Kernel *first = trial_kernel(t, 0);
    bool has_gemms = form_info(trial_kernel(t, n - 1)->form)->multiplies;
    for (uint32_t v = 0; v < first->n_variants; v++) {
        if (leaves_room(&first->variants[v]) && has_gemms) continue; /* values are in registers */
        uint32_t kept = first->variants[v].kept_shared_bytes = kept_bytes(t, v);
        for (uint32_t k = 0; k < n; k++) {
            Variant *variant = &trial_kernel(t, k)->variants[v];
            if (variant->shared_bytes) give_up_stages(variant, kept);
        }
    }
}
