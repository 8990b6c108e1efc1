/* Cache hints for kernels that stream more than L2 holds. See gpu.h. */
#include "codegen/gpu/gpu.h"
#include "machine/tuning.h"

/* Bytes per element of the grid that the kernel reads from `args` and stores; *stores: whether it
 * stores. */
static uint32_t element_bytes(const Lower *lower, uint64_t args, bool *stores) {
    const Kernel *kernel = lower->kernel;
    const Buffer *buffers = lower->plan->buffers.data;
    uint32_t bytes = 0;
    for (uint32_t i = 0; i < kernel->args.n; i++)
        if (args >> i & 1) bytes += dtype_bytes(buffers[kernel->args.data[i]].dtype);
    *stores = false;
    for (uint32_t i = 0; i < kernel->stages.n; i++) {
        const Stage *stage = &kernel->stages.data[i];
        *stores = *stores || stage->stores.n;
        for (uint32_t k = 0; k < stage->stores.n; k++)
            bytes += dtype_bytes(buffers[stage->stores.data[k].buffer].dtype);
    }
    return bytes;
}

static Val policy_new(const Codegen *k, const char *priority) {
    const char *text = str_format(k->arena, "createpolicy.fractional.L2::%s.b64 $0;", priority);
    return k_asm(k, k->i64, text, "=l", NULL, 0, false);
}

void gpu_stream(Lower *lower) {
    Codegen *k = lower->k;
    const Kernel *kernel = lower->kernel;
    DimTab *dims = lower_dims(lower);
    uint64_t args = kernel_args_read_once(lower->plan, kernel);
    bool stores;
    uint32_t bytes = element_bytes(lower, args, &stores);
    bool is_alone = !lower->is_one_block && !lower->tile && lower->variant->sched.cluster <= 1;
    DimId n = dim_mul(dims, kernel_n_rows(kernel), kernel_n_reduced(kernel));
    bool is_wide = lower->variant->sched.lanes > 1; /* only wide loads take the hint */
    if (!k->target->has_load_hints || !is_alone || !is_wide || !args || !stores || !n) return;
    int64_t least = CODEGEN_STREAM_BYTES / bytes;
    if (dim_hi(dims, n) < least) return;
    lower->read_once = args;
    lower->load_policy = policy_new(k, "evict_last");
    if (dim_lo(dims, n) >= least) return;
    Val usual = policy_new(k, "evict_normal");
    Val elems = lower_dim(lower, n);
    lower->load_policy = k_select(k, k_sgei(k, elems, least), lower->load_policy, usual);
}
