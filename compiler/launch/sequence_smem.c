/* Shared memory for the buffers between the kernels of a sequence on a GPU. See
 * sequence_state.h. */
#include "launch/sequence_state.h"
#include "machine/card.h"
#include "machine/tuning.h"
#include "cost/kernel/template.h"
#include "template/wgmma.h"

/* Removes pipeline stages, down to LAUNCH_LEAST_STAGES, while the block's shared memory exceeds
 * what every target's blocks have. Variants of wgmma fit already. sequence_fits checks the result.
 */
static void make_room(Variant *variant, uint32_t kept_bytes) {
    Sched *sched = &variant->sched;
    if (template_info(sched->template)->uses_copy_engine) return;
    while (variant->shared_bytes + kept_bytes > LAUNCH_DYNAMIC_BYTES &&
           sched->gemm.stages > LAUNCH_LEAST_STAGES) {
        variant->shared_bytes -= variant->shared_bytes / sched->gemm.stages;
        sched->gemm.stages--;
    }
}

void sequence_set_space(const Composer *c, Trial *t, uint32_t buffer, BufferSpace space) {
    if (launch_stores_to(&t->together, trial_launch(t), buffer) && trial_is_private(c, t, buffer))
        t->together.buffers.data[buffer].space = space;
}

void sequence_set_kept_bytes(Trial *t) {
    const Launch *launch = trial_launch(t);
    Kernel *first = sequence_first(t);
    bool is_at_once = form_info(sequence_consumer(t)->form)->multiplies;
    for (uint32_t v = 0; v < first->n_variants; v++) {
        Variant *variant = &first->variants[v];
        if (template_info(variant->sched.template)->uses_copy_engine && is_at_once)
            continue; /* it stays in registers */
        variant->kept_shared_bytes =
            launch_smem_offset(&t->together, launch, &variant->sched, UINT32_MAX, NULL);
        for (uint32_t k = 0; k < launch->n; k++)
            if (trial_kernel(t, k)->variants[v].shared_bytes)
                make_room(&trial_kernel(t, k)->variants[v], variant->kept_shared_bytes);
    }
}

/* Bytes of shared memory, static or dynamic, that a block of the GEMM needs in addition to the
 * buffers. */
static uint32_t least_shared(const Kernel *kernel, const Variant *variant) {
    const Sched *sched = &variant->sched;
    GemmSched gemm = sched_gemm(sched);
    uint32_t stage =
        (gemm.tile_m + gemm.tile_n) * gemm.tile_k * dtype_bytes(gemm_operand_dtype(kernel));
    TemplateCost cost = template_cost(sched->template, kernel);
    uint32_t subtile = cost.epilogue_bytes ? cost.epilogue_bytes(kernel, sched) : 0;
    uint32_t own = gemm.stages * stage > subtile ? gemm.stages * stage : subtile;
    if (!variant->shared_bytes) return own;
    return gemm.stages > LAUNCH_LEAST_STAGES
               ? variant->shared_bytes / gemm.stages * LAUNCH_LEAST_STAGES
               : variant->shared_bytes;
}

bool sequence_fits(const Composer *c, Trial *t) {
    const Kernel *first = sequence_first(t), *consumer = sequence_consumer(t);
    uint32_t most = 0,
             block_bytes = c->target->max_cluster > 1 ? WGMMA_SHARED_BYTES : CARD_SHARED_GPU;
    bool has_room = true;
    for (uint32_t i = 0; i < consumer->args.n; i++)
        sequence_set_space(c, t, consumer->args.data[i], BUFFER_SHARED);
    Plan pair = t->together;
    Kernel both[2] = {*first, *consumer};
    pair.kernels.data = both;
    const Launch launch = {.mode = LAUNCH_SEQUENCE, .first = 0, .n = 2};
    for (uint32_t v = 0; v < first->n_variants; v++) {
        const Sched *sched = &first->variants[v].sched;
        if (template_info(sched->template)->uses_copy_engine) continue;
        uint32_t bytes = launch_smem_offset(&pair, &launch, sched, UINT32_MAX, NULL);
        if (bytes > most) most = bytes;
        has_room = has_room && least_shared(first, &first->variants[v]) + bytes <= block_bytes;
    }
    for (uint32_t i = 0; i < consumer->args.n; i++)
        sequence_set_space(c, t, consumer->args.data[i], BUFFER_GLOBAL);
    return has_room && first->variants[0].kept_shared_bytes + most <= LAUNCH_SMEM_BYTES;
}
