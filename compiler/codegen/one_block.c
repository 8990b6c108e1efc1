/* Launches of one block. See gpu.h and plan/launch.h.
 *
 * Arguments that no kernel of the launch writes are first copied to shared memory, all at once, so
 * that the latency of global memory is paid once. Each kernel begins when its own arguments have
 * arrived. A kernel whose grid has several blocks loops over them in the one block. Between
 * kernels, and between these blocks, a barrier makes stores visible and lets shared memory be
 * reused. */
#include "codegen/gpu/gpu.h"
#include "plan/launch.h"

#include <string.h>

enum { COPY_BYTES = 16, LEAST_COPY_BYTES = 4, MAX_ROUNDS = 8 };

typedef struct Copy {
    Codegen *k;
    Val function, thread;
    Val from, to; /* ptr addrspace(1) and (3) */
    uint32_t threads;
} Copy;

/* Copies chunk `i` (i32) of `bytes` bytes, asynchronously (cp.async) if the machine can. */
static void copy_piece(const Copy *copy, Val i, uint32_t bytes) {
    Codegen *k = copy->k;
    LLVMTypeRef type = LLVMIntTypeInContext(k->context, bytes * 8);
    Val at[2];
    at[0] = k_gep(k, type, copy->to, i);
    at[1] = k_gep(k, type, copy->from, i);
    if (bytes >= LEAST_COPY_BYTES) {
        const char *name = str_format(k->arena, "llvm.nvvm.cp.async.ca.shared.global.%u", bytes);
        k_intrinsic(k, name, at, 2);
        return;
    }
    Val value = k_load_aligned(k, type, at[1], bytes);
    k_store_aligned(k, value, at[0], bytes);
}

/* Copies chunks [first, first + n), distributed over the threads; without a loop if there are few
 * rounds. */
static void copy_pieces(const Copy *copy, uint32_t first, uint32_t n, uint32_t bytes) {
    uint32_t n_rounds = n / copy->threads, end = first + n_rounds * copy->threads;
    if (n_rounds > MAX_ROUNDS) {
        Loop loop = loop_begin(copy->k, k_addi(copy->k, copy->thread, first), k_i32(copy->k, end),
                               copy->threads);
        copy_piece(copy, loop.index, bytes);
        loop_end(copy->k, &loop);
    } else {
        for (uint32_t at = first; at < end; at += copy->threads)
            copy_piece(copy, k_addi(copy->k, copy->thread, at), bytes);
    }
    if (end == first + n) return;
    If rest = if_begin(copy->k, k_ulti(copy->k, copy->thread, (int64_t)first + n - end));
    copy_piece(copy, k_addi(copy->k, copy->thread, end), bytes);
    if_end(copy->k, &rest);
}

static int64_t arg_bytes(const Lower *lower, uint32_t i) {
    const Buffer *buffer = &lower->plan->buffers.data[lower->kernel->args.data[i]];
    return dim_hi(lower_dims(lower), buffer_bytes(lower_dims(lower), buffer));
}

static bool is_aligned_arg(const Lower *lower, uint32_t i) {
    return predicate_alignment(&lower->variant->predicate, i) >= COPY_BYTES;
}

static void copy_arg(const Lower *lower, uint32_t i, Val from) {
    const Buffer *buffer = &lower->plan->buffers.data[lower->kernel->args.data[i]];
    int64_t n_bytes = arg_bytes(lower, i);
    uint32_t elem_bytes = dtype_bytes(buffer->dtype), bytes = elem_bytes;
    bool is_aligned = is_aligned_arg(lower, i);
    Copy copy = {.k = lower->k,
                 .function = lower->function,
                 .thread = gpu_thread(lower->k),
                 .from = from,
                 .to = lower->pointers[i],
                 .threads = lower->variant->sched.threads};
    if (is_aligned) bytes = COPY_BYTES;
    uint32_t n_whole = (uint32_t)(n_bytes / bytes);
    copy_pieces(&copy, 0, n_whole, bytes);
    uint32_t first = n_whole * bytes / elem_bytes, n = (uint32_t)(n_bytes / elem_bytes);
    copy_pieces(&copy, first, n - first, elem_bytes);
}

static bool is_copied(const Plan *plan, const Launch *launch, uint32_t k, uint32_t i) {
    return launch_copies(launch, launch_kernel(plan, launch, k)->args.data[i]) &&
           !launch_comes_again(plan, launch, (LaunchArg){k, i});
}

/* One thread issues the prefetch. It is predicated rather than branched over, so that the wait
 * after it stays convergent. */
static void prefetch_arg(const Lower *lower, uint32_t i, Val asks) {
    const Codegen *k = lower->k;
    int64_t n_bytes = arg_bytes(lower, i) / COPY_BYTES * COPY_BYTES;
    if (!is_aligned_arg(lower, i) || n_bytes == 0) return;
    const char *text = str_format(k->arena,
                                  "{\n\t.reg .pred asks;\n\tsetp.ne.b32 asks, $1, 0;\n\t@asks "
                                  "cp.async.bulk.prefetch.L2.global [$0], %u;\n\t}",
                                  (unsigned)n_bytes);
    Val args[2] = {lower->pointers[i], asks};
    k_asm(k, k->void_type, text, "l,r,~{memory}", args, 2, true);
}

void gpu_one_block_prefetch(const Lower *lowers, const Launch *launch) {
    const Codegen *k = lowers->k;
    Val is_first = k_eqi(k, gpu_thread(k), 0);
    Val asks = k_zext(k, is_first, k->i32);
    for (uint32_t j = 0; j < launch->n; j++)
        for (uint32_t i = 0; i < launch_kernel(lowers->plan, launch, j)->args.n; i++)
            if (is_copied(lowers->plan, launch, j, i)) prefetch_arg(&lowers[j], i, asks);
}

/* Starts the copies of the arguments of kernel `k`, as one cp.async group. */
static void begin_copies(const Lower *lowers, const Launch *launch, uint32_t k, Val *pointers) {
    for (uint32_t i = 0; i < launch_kernel(lowers->plan, launch, k)->args.n; i++)
        if (is_copied(lowers->plan, launch, k, i)) copy_arg(&lowers[k], i, pointers[i]);
    gpu_copies_commit(lowers->k);
}

/* Loops over all blocks of the kernel's grid. */
static void emit_blocks(Lower *lower) {
    Codegen *k = lower->k;
    int64_t n;
    if (!dim_is_const(lower_dims(lower), lower->variant->grid, &n))
        ice(k->arena, "kernel %s of a one-block launch has an unknown number of blocks",
            lower->kernel->name);
    lower->block = k_i32(k, 0);
    if (n == 1) {
        template_emit(lower);
        return;
    }
    Loop loop = loop_begin(k, lower->block, k_i32(k, n), 1);
    lower->block = loop.index;
    template_emit(lower);
    gpu_barrier(k);
    loop_end(k, &loop);
}

void gpu_one_block(Lower *lowers, const Launch *launch, Val *const *pointers) {
    Codegen *k = lowers->k;
    SharedPool pool = {.array = NULL};
    gpu_pool_begin(k, &pool);
    for (uint32_t j = 0; j < launch->n; j++) begin_copies(lowers, launch, j, pointers[j]);
    for (uint32_t j = 0; j < launch->n; j++) {
        gpu_copies_wait(k, launch->n - 1 - j);
        gpu_barrier(k);
        pool.n_used = 0;
        k->overlaps_quotients = form_info(launch_kernel(lowers->plan, launch, j)->form)->multiplies;
        emit_blocks(&lowers[j]);
    }
    gpu_pool_end(k);
}
