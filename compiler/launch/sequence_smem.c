/* Room on chip for what passes between phases on a GPU. See sequence_state.h. */
#include "launch/sequence_state.h"
#include "plan/launch.h"
#include "template/simt.h"
#include "template/wgmma.h"

enum {
    MAX_CHIP_BYTES = 64 * 1024, /* leaves two blocks of large tiles on a multiprocessor */
    MAX_DYNAMIC_BYTES = 96 * 1024,
    MAX_BLOCK_BYTES = 99 * 1024, /* of targets without clusters */
    MIN_STAGES = 3
};

/* Deep stages give way to what is on chip, so that a block has what every target's blocks may.
 * Where wgmma is, they have done so already. */
static void make_room(Variant *variant, uint32_t smem_bytes) {
    Sched *sched = &variant->sched;
    if (template_info(sched->template)->uses_copy_engine) return;
    while (variant->shared_bytes + smem_bytes > MAX_DYNAMIC_BYTES &&
           sched->gemm.stages > MIN_STAGES) {
        variant->shared_bytes -= variant->shared_bytes / sched->gemm.stages;
        sched->gemm.stages--;
    }
}

void sequence_set_smem_bytes(Sequence *c) {
    Kernel *kernels = &c->plan->kernels.data[c->first];
    for (uint32_t v = 0; v < kernels->n_variants; v++) {
        Variant *variant = &kernels->variants[v];
        bool is_at_once = kernels[c->launch.n - 1].form == FORM_GEMM;
        if (template_info(variant->sched.template)->uses_copy_engine && is_at_once)
            continue; /* it passes in registers */
        variant->smem_bytes =
            launch_smem_place(c->plan, &c->launch, &variant->sched, UINT32_MAX, NULL);
        for (uint32_t k = 0; k < c->launch.n; k++)
            if (kernels[k].variants[v].shared_bytes)
                make_room(&kernels[k].variants[v], variant->smem_bytes);
    }
}

/* What a block of the GEMM must have beside what is on chip, of its own or dynamic. */
static uint32_t least_shared(const Kernel *kernel, const Variant *variant) {
    const Sched *sched = &variant->sched;
    GemmSched gemm = sched_gemm(sched);
    uint32_t stage =
        (gemm.tile_m + gemm.tile_n) * gemm.tile_k * dtype_bytes(gemm_operand_dtype(kernel));
    uint32_t acc_bytes = dtype_bytes(kernel->reduces.data[0].acc);
    uint32_t part =
        sched->template == TEMPLATE_GPU_GEMM_SIMT ? simt_part_bytes(sched, acc_bytes) : 0;
    uint32_t own = gemm.stages * stage > part ? gemm.stages * stage : part;
    if (!variant->shared_bytes) return own;
    return gemm.stages > MIN_STAGES ? variant->shared_bytes / gemm.stages * MIN_STAGES
                                    : variant->shared_bytes;
}

bool sequence_fits(Sequence *c) {
    const Kernel *kernels = c->plan->kernels.data, *reader = &kernels[c->next];
    Kernel both[2] = {*c->launch.kernels, *reader};
    uint32_t most = 0,
             block_bytes = c->target->max_cluster > 1 ? WGMMA_SHARED_BYTES : MAX_BLOCK_BYTES;
    bool has_room = true;
    for (uint32_t i = 0; i < reader->args.n; i++)
        sequence_set_on_chip(c, reader->args.data[i], true);
    for (uint32_t v = 0; v < both[0].n_variants; v++) {
        Launch pair = {.kernels = both, .n = 2};
        if (template_info(both[0].variants[v].sched.template)->uses_copy_engine) continue;
        uint32_t bytes =
            launch_smem_place(c->plan, &pair, &both[0].variants[v].sched, UINT32_MAX, NULL);
        if (bytes > most) most = bytes;
        has_room = has_room && least_shared(&both[0], &both[0].variants[v]) + bytes <= block_bytes;
    }
    for (uint32_t i = 0; i < reader->args.n; i++)
        sequence_set_on_chip(c, reader->args.data[i], false);
    return has_room && both[0].variants[0].smem_bytes + most <= MAX_CHIP_BYTES;
}
