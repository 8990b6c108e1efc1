/* GEMMs on tensor cores by mma.sync: f16, bf16, f32 rounded to tf32, f64, bytes and 8-bit floats;
 * the last by wgmma on targets that have it (GemmSched.by_groups). See template.h.
 *
 * Every output is one chain of instructions from +0, ascending in k. k is padded with zeros to a
 * multiple of tile_k, which is the same in every schedule. So no bit depends on tiles, stages,
 * warps or fusion. An f64 instruction is itself a chain of fmas ascending in k, to the bit
 * (measured on an H200, every shape). Padding with neutral products makes its result that of
 * GEMM_FMA. A multi-stage pipeline in shared memory is filled ahead of its use. The accumulators
 * stay in registers and go through shared memory to the epilogue. */
#include "codegen/gpu_gemm/mma_tile.h"
#include "template/wgmma.h"

enum { SHARED_ALIGN_BYTES = 128 }; /* more where warpgroups multiply */

typedef struct Mma {
    Lower *lower;
    Codegen *k;
    const Sched *sched;
    MmaTile tile;
    MmaOperand operands[2];
    GpuBand of_k; /* the elements of k to multiply */
    uint32_t stage_bytes;
    Val shared;
} Mma;

static void mma_init(Mma *mma, Lower *lower) {
    const Kernel *kernel = lower->kernel;
    const Sched *sched = &lower->variant->sched;
    *mma = (Mma){.lower = lower, .k = lower->k, .sched = sched};
    GemmBlock block = gpu_gemm_block(lower);
    const Reduce *reduce = &kernel->reduces.data[0];
    ScalarId roots[2] = {reduce->lhs, reduce->rhs};
    gpu_gemm_prepare_batch(&block, roots, 2);
    mma_tile_init(&mma->tile, &block);
    mma->of_k = gpu_gemm_band_of_k(&block);
    mma_operand_init(&mma->operands[0], &mma->tile.block, true, 0);
    uint32_t left_bytes = mma_operand_bytes(&mma->operands[0]);
    mma_operand_init(&mma->operands[1], &mma->tile.block, false, left_bytes);
    mma->stage_bytes = left_bytes + mma_operand_bytes(&mma->operands[1]);
    uint32_t n_bytes = mma->stage_bytes * sched->gemm.stages;
    uint32_t least = mma_tile_epilogue_bytes(&mma->tile);
    mma->shared = gpu_tiles(lower, n_bytes > least ? n_bytes : least,
                            sched->gemm.by_groups ? WGMMA_TILE_ALIGN : SHARED_ALIGN_BYTES);
    mma->tile.shared = mma->shared;
    for (int side = 0; side < 2 && !sched->gemm.by_groups; side++)
        mma_tile_aim(&mma->tile, &mma->operands[side]);
}

/* Stages. */

static Val stage_at(const Mma *mma, Val offset) {
    return k_byte(mma->k, mma->shared, offset);
}

static Val next_stage(const Mma *mma, Val offset) {
    return gpu_gemm_next_stage(mma->k, offset, mma->stage_bytes, mma->sched->gemm.stages);
}

static void fetch(Mma *mma, Val k0, Val stage) {
    for (int side = 0; side < 2; side++) mma_operand_fetch(&mma->operands[side], k0, stage);
    gpu_copies_commit(mma->k);
}

static void put(const Mma *mma, Val stage) {
    for (int side = 0; side < 2; side++) mma_operand_put(&mma->operands[side], stage);
}

/* Loads the fragments of a step of the tile at `stage`. */
static void load_fragments(const Mma *mma, Val stage, MmaStep step, MmaFragments *f) {
    mma_tile_load(&mma->tile, &mma->operands[1], stage, step, f->right);
    mma_tile_load(&mma->tile, &mma->operands[0], stage, step, f->left);
}

/* The stages that are read and filled, and the fragments carried from one step of the mainloop to
 * the next. */
typedef struct Mainloop {
    Val read, fill;         /* i32: byte offset from the first stage */
    MmaFragments fragments; /* those of the first step of stage `read` */
} Mainloop;

/* Multiplies stage `read`, whose tile begins at k0, while the tile `ahead` tiles further is fetched
 * into `fill`. Fragments are loaded one step before they are multiplied: the last step waits for
 * the next stage and loads its first fragments. */
static void run_stage(Mma *mma, Mainloop *loop_state, Val k0, uint32_t ahead) {
    MmaFragments fragments[2] = {loop_state->fragments};
    const Codegen *k = mma->k;
    int64_t depth = mma->sched->gemm.tile_k;
    uint32_t n_steps = (uint32_t)depth * mma->operands[0].elem_bytes / STEP_BYTES;
    Val next_k0 = k_addi(k, k0, depth);
    Val stage = stage_at(mma, loop_state->read), fill = stage_at(mma, loop_state->fill);
    loop_state->read = next_stage(mma, loop_state->read);
    loop_state->fill = next_stage(mma, loop_state->fill);
    for (uint32_t step = 0; step < n_steps; step++) {
        MmaFragments *next = &fragments[(step + 1) % 2];
        if (step + 1 < n_steps) {
            load_fragments(mma, stage, (MmaStep){step + 1, k0}, next);
        } else {
            gpu_copies_wait(k, mma->sched->gemm.stages - 2);
            gpu_barrier(k);
            load_fragments(mma, stage_at(mma, loop_state->read), (MmaStep){0, next_k0}, next);
        }
        if (step == 0) {
            fetch(mma, k_addi(k, k0, ahead * depth), fill);
        }
        mma_tile_multiply(&mma->tile, &fragments[step % 2]);
        bool is_part = (step + 1) * STEP_BYTES % GEMM_F8_DEPTH == 0;
        if (mma->tile.has_parts && is_part) mma_tile_join(&mma->tile);
    }
    put(mma, fill);
    loop_state->fragments = fragments[n_steps % 2];
}

/* Waits for the next stage. What threads have copied or put there is made visible to wgmma. */
static void await_stage_of_groups(const Mma *mma, uint32_t n_left) {
    const Codegen *k = mma->k;
    gpu_copies_wait(k, n_left);
    k_intrinsic_0(k, "llvm.nvvm.fence.proxy.async.shared_cta");
    gpu_barrier(k);
}

/* The same for warpgroups, which read the stage themselves. All have finished it when the next
 * stage begins, in which it is filled. */
static void run_stage_by_groups(Mma *mma, Mainloop *loop_state, Val k0, uint32_t ahead) {
    const Codegen *k = mma->k;
    Val stage = stage_at(mma, loop_state->read), fill = stage_at(mma, loop_state->fill);
    loop_state->read = next_stage(mma, loop_state->read);
    loop_state->fill = next_stage(mma, loop_state->fill);
    mma_tile_start_group(&mma->tile, mma->operands, stage);
    fetch(mma, k_addi(k, k0, (int64_t)ahead * mma->sched->gemm.tile_k), fill);
    mma_tile_finish_group(&mma->tile);
    put(mma, fill);
    await_stage_of_groups(mma, ahead - 1);
}

static void fill_stage(Mma *mma, Val number) {
    const Codegen *k = mma->k;
    Val at = k_muli(k, number, mma->stage_bytes);
    Val k0 = k_muli(k, number, mma->sched->gemm.tile_k);
    Val stage = stage_at(mma, at);
    fetch(mma, k_add(k, mma->of_k.first, gpu_index(mma->lower, k0)), stage);
    put(mma, stage);
}

/* Fills the first `n` stages. If both operands are copied, a loop only starts the copies, at no
 * cost. If one operand goes through registers, it is loaded for all stages at once. If both do,
 * this would cost more code than it gains. */
static void fill_ahead(Mma *mma, uint32_t n) {
    if (mma->operands[0].is_copied == mma->operands[1].is_copied) {
        Loop loop = loop_over(mma->k, k_i32(mma->k, n), 1);
        fill_stage(mma, loop.index);
        loop_end(mma->k, &loop);
        return;
    }
    for (uint32_t s = 0; s < n; s++) fill_stage(mma, k_i32(mma->k, s));
}

/* Waits for the first stage and loads its first fragments. */
static void begin_stages(Mma *mma, Mainloop *loop_state, uint32_t ahead) {
    gpu_copies_wait(mma->k, ahead - 1);
    gpu_barrier(mma->k);
    MmaStep first = {0, mma->of_k.first};
    load_fragments(mma, stage_at(mma, loop_state->read), first, &loop_state->fragments);
}

/* Loops over k: one stage is read, one is filled, and the copies of the others are in flight. */
static void run_k(Mma *mma) {
    Codegen *k = mma->k;
    uint32_t ahead = mma->sched->gemm.stages - 1, depth = mma->sched->gemm.tile_k;
    Mainloop loop_state = {.read = k_i32(k, 0),
                           .fill = k_i32(k, (int64_t)ahead * mma->stage_bytes)};
    fill_ahead(mma, ahead);
    bool by_groups = mma->sched->gemm.by_groups;
    if (by_groups)
        await_stage_of_groups(mma, ahead - 1);
    else
        begin_stages(mma, &loop_state, ahead);
    Loop loop = loop_begin(k, mma->of_k.first, mma->of_k.end, depth);
    loop_carry(k, &loop, mma->tile.accs, mma->tile.n_accs);
    loop_carry(k, &loop, &loop_state.read, 1);
    loop_carry(k, &loop, &loop_state.fill, 1);
    if (by_groups) {
        run_stage_by_groups(mma, &loop_state, loop.index, ahead);
    } else {
        uint32_t each = mma_fragment_registers(&mma->operands[0]);
        loop_carry(k, &loop, loop_state.fragments.left, mma->tile.n_m * each);
        loop_carry(k, &loop, loop_state.fragments.right, mma->tile.n_n / 2 * each);
        run_stage(mma, &loop_state, loop.index, ahead);
    }
    loop_end(k, &loop);
    gpu_copies_wait(k, 0);
    gpu_barrier(k);
}

/* With K = 0 there may be no memory to read. Then the loop is skipped and the sums are 0. */
static void run_k_if_any(Mma *mma) {
    Lower *lower = mma->lower;
    DimId k = kernel_axis_extent(lower->kernel, gemm_axis_k(lower->kernel));
    if (dim_lo(lower_dims(lower), k) > 0) {
        run_k(mma);
        return;
    }
    Val extent = mma->tile.block.k;
    Loop once = loop_begin_by(mma->k, lower_index_const(lower, 0), extent, extent);
    loop_carry(mma->k, &once, mma->tile.accs, mma->tile.n_accs);
    run_k(mma);
    loop_end(mma->k, &once);
}

void emit_gpu_gemm_mma(Lower *lower) {
    Mma *mma = arena_array(lower->k->arena, Mma, 1);
    mma_init(mma, lower);
    Val is_inside = gpu_gemm_in_band(&mma->tile.block, mma->sched->gemm.tile_n);
    If inside = {0};
    if (is_inside) inside = if_begin(mma->k, is_inside);
    run_k_if_any(mma);
    mma_tile_epilogue(&mma->tile);
    if (is_inside) if_end(mma->k, &inside);
}
