/* Contractions on tensor cores: of f16, bf16, f32 rounded to tf32, and f64. See template.h.
 *
 * Every output is one chain of instructions from +0, ascending in k; k is padded with zeros to a
 * multiple of tile_k, which is one and the same in every schedule: so no bit depends on tiles,
 * stages, warps or what is fused. In f64 the instructions are themselves chains of fused
 * multiply-adds, ascending in k, to the bit (measured on an H200, every shape): with padding that
 * changes no sum the result is CONTRACT_FMA's. Stages of shared memory are filled ahead of their
 * use; the accumulators stay in registers and go through shared memory to the epilogue. */
#include "back/gpu_gemm_mma.h"

enum { MAX_ACCUMULATORS = 128, SHARED_ALIGN_BYTES = 128, PAD_ELEMS = 8, DRAIN_BYTES = 48 * 1024 };

typedef struct Mma {
    Lower *lower;
    Unit *unit;
    const Sched *sched;
    GemmBlock block;
    MmaFactor factors[2];
    uint32_t stage_bytes, acc_bytes;
    LLVMTypeRef acc_type;
    LLVMValueRef shared;
    LLVMValueRef warp_m, warp_n; /* i32: the warp's place in the tile, in warps */
    uint32_t n_m, n_n;           /* instructions' tiles of 16 and of 8 along the warp's share */
    uint32_t n_accs;
    LLVMValueRef accs[MAX_ACCUMULATORS]; /* [m][n][4] */
} Mma;

static LLVMValueRef i32_const(const Mma *mma, int64_t value) {
    return unit_int(mma->unit->i32, value);
}

/* Rows of each warp's share that are drained at once: all that fit. */
static uint32_t drained_rows(const Mma *mma) {
    const Sched *sched = mma->sched;
    uint32_t rows = sched->tile_m / sched->warps_m;
    uint32_t row_bytes = sched->warps_m * (sched->tile_n + PAD_ELEMS) * mma->acc_bytes;
    while (rows > 16 && rows * row_bytes > DRAIN_BYTES) rows /= 2;
    return rows;
}

static uint32_t drain_bytes(const Mma *mma) {
    const Sched *sched = mma->sched;
    return drained_rows(mma) * sched->warps_m * (sched->tile_n + PAD_ELEMS) * mma->acc_bytes;
}

static void place_warp(Mma *mma) {
    LLVMBuilderRef builder = mma->unit->builder;
    const Sched *sched = mma->sched;
    LLVMValueRef warp = LLVMBuildUDiv(builder, mma->block.thread, i32_const(mma, WARP), "");
    mma->warp_m = LLVMBuildURem(builder, warp, i32_const(mma, sched->warps_m), "");
    mma->warp_n = LLVMBuildUDiv(builder, warp, i32_const(mma, sched->warps_m), "");
    for (int side = 0; side < 2; side++) {
        uint32_t elems = side ? sched->tile_n / sched->warps_n : sched->tile_m / sched->warps_m;
        LLVMValueRef first =
            LLVMBuildMul(builder, side ? mma->warp_n : mma->warp_m, i32_const(mma, elems), "");
        mma_factor_aim(&mma->factors[side], &mma->block, first, elems);
    }
}

static void mma_init(Mma *mma, Lower *lower) {
    const Kernel *kernel = lower->kernel;
    const Sched *sched = &lower->variant->sched;
    *mma = (Mma){.lower = lower, .unit = lower->unit, .sched = sched};
    mma->acc_bytes = dtype_bytes(kernel->reduces.data[0].acc);
    mma->acc_type = unit_value_type(mma->unit, kernel->reduces.data[0].acc, 1);
    mma->block = gpu_gemm_block(lower);
    const Reduce *reduce = &kernel->reduces.data[0];
    ScalarId roots[2] = {reduce->value, reduce->factor};
    uint32_t inner =
        1u << gemm_axis_m(kernel) | 1u << gemm_axis_n(kernel) | 1u << gemm_axis_k(kernel);
    point_prepare(&mma->block.point, roots, 2, inner);
    mma_factor_init(&mma->factors[0], &mma->block, true, sched->tile_m, 0);
    uint32_t left_bytes = mma_factor_bytes(&mma->factors[0]);
    mma_factor_init(&mma->factors[1], &mma->block, false, sched->tile_n, left_bytes);
    mma->stage_bytes = left_bytes + mma_factor_bytes(&mma->factors[1]);
    uint32_t n_bytes = mma->stage_bytes * sched->stages, least = drain_bytes(mma);
    mma->shared = gpu_tiles(lower, n_bytes > least ? n_bytes : least, SHARED_ALIGN_BYTES);
    mma->n_m = sched->tile_m / sched->warps_m / 16;
    mma->n_n = sched->tile_n / sched->warps_n / 8;
    mma->n_accs = mma->n_m * mma->n_n * 4;
    if (mma->n_accs > MAX_ACCUMULATORS)
        ice(mma->unit->arena, "a thread keeps more than %d accumulators", MAX_ACCUMULATORS);
    place_warp(mma);
}

/* Stages. */

static LLVMValueRef stage_at(const Mma *mma, LLVMValueRef offset) {
    return gpu_shared_at(mma->unit, mma->shared, mma->unit->i8, offset);
}

static LLVMValueRef next_stage(const Mma *mma, LLVMValueRef offset) {
    LLVMBuilderRef builder = mma->unit->builder;
    LLVMValueRef end = i32_const(mma, (int64_t)mma->stage_bytes * mma->sched->stages);
    LLVMValueRef next = LLVMBuildAdd(builder, offset, i32_const(mma, mma->stage_bytes), "");
    LLVMValueRef wraps = LLVMBuildICmp(builder, LLVMIntEQ, next, end, "");
    return LLVMBuildSelect(builder, wraps, i32_const(mma, 0), next, "");
}

static void wait_copies(const Mma *mma, uint32_t n_pending) {
    LLVMValueRef n = i32_const(mma, n_pending);
    unit_intrinsic(mma->unit, "llvm.nvvm.cp.async.wait.group", NULL, 0, &n, 1);
}

static void fetch(Mma *mma, LLVMValueRef k0, LLVMValueRef stage) {
    for (int side = 0; side < 2; side++)
        mma_factor_fetch(&mma->factors[side], &mma->block, k0, stage);
    unit_intrinsic(mma->unit, "llvm.nvvm.cp.async.commit.group", NULL, 0, NULL, 0);
}

static void put(const Mma *mma, LLVMValueRef stage) {
    for (int side = 0; side < 2; side++) mma_factor_put(&mma->factors[side], &mma->block, stage);
}

/* Arithmetic. */

static LLVMTypeRef operand_type(const Mma *mma) {
    const Unit *unit = mma->unit;
    Dtype dtype = mma->factors[0].dtype;
    if (dtype == DT_F64) return mma->acc_type;
    return dtype == DT_F16 ? LLVMVectorType(LLVMHalfTypeInContext(unit->context), 2) : unit->i32;
}

/* One instruction: `n_left` and `n_right` operands, `n_accs` accumulators. */
static void run_instruction(const Mma *mma, const char *name, const LLVMValueRef *left,
                            uint32_t n_left, const LLVMValueRef *right, uint32_t n_right,
                            LLVMValueRef *accs, uint32_t n_accs) {
    const Unit *unit = mma->unit;
    LLVMTypeRef type = operand_type(mma);
    LLVMValueRef args[10];
    uint32_t n = 0;
    for (uint32_t i = 0; i < n_left + n_right; i++) {
        LLVMValueRef operand = i < n_left ? left[i] : right[i - n_left];
        args[n++] = LLVMBuildBitCast(unit->builder, operand, type, "");
    }
    for (uint32_t i = 0; i < n_accs; i++) args[n++] = accs[i];
    LLVMValueRef sums = unit_intrinsic(unit, name, NULL, 0, args, n);
    for (uint32_t i = 0; i < n_accs; i++)
        accs[i] = LLVMBuildExtractValue(unit->builder, sums, i, "");
}

/* Adds the product of one left fragment and half of a right one to 4 accumulators. The large
 * instruction of f64 runs at twice the rate of the small one, where there is one. */
static void multiply(const Mma *mma, const LLVMValueRef *left, const LLVMValueRef *right,
                     LLVMValueRef *accs) {
    Dtype dtype = mma->factors[0].dtype;
    if (dtype == DT_BF16) {
        run_instruction(mma, "llvm.nvvm.mma.m16n8k16.row.col.bf16", left, 4, right, 2, accs, 4);
    } else if (dtype == DT_F16) {
        run_instruction(mma, "llvm.nvvm.mma.m16n8k16.row.col.f32.f32", left, 4, right, 2, accs, 4);
    } else if (dtype == DT_F32) {
        run_instruction(mma, "llvm.nvvm.mma.m16n8k8.row.col.tf32", left, 4, right, 2, accs, 4);
    } else if (mma->unit->target->has_large_f64_mma) {
        run_instruction(mma, "llvm.nvvm.mma.m16n8k4.row.col.f64", left, 2, right, 1, accs, 4);
    } else {
        for (uint32_t half = 0; half < 2; half++)
            run_instruction(mma, "llvm.nvvm.mma.m8n8k4.row.col.f64", left + half, 1, right, 1,
                            accs + half * 2, 2);
    }
}

/* What a warp multiplies at one step of k. */
typedef struct Fragments {
    LLVMValueRef left[MAX_FRAGMENTS * FRAGMENT_REGISTERS];
    LLVMValueRef right[MAX_FRAGMENTS * FRAGMENT_REGISTERS];
} Fragments;

/* Step `step` of the tile from k0, which lies at `stage`. */
static void load_fragments(const Mma *mma, LLVMValueRef stage, LLVMValueRef k0, uint32_t step,
                           Fragments *f) {
    uint32_t each = mma_fragment_registers(&mma->factors[0]);
    for (uint32_t n = 0; n < mma->n_n / 2; n++)
        mma_factor_fragment(&mma->factors[1], &mma->block, stage, n, step, k0, f->right + n * each);
    for (uint32_t m = 0; m < mma->n_m; m++)
        mma_factor_fragment(&mma->factors[0], &mma->block, stage, m, step, k0, f->left + m * each);
}

static void multiply_fragments(Mma *mma, Fragments *f) {
    uint32_t each = mma_fragment_registers(&mma->factors[0]);
    for (uint32_t m = 0; m < mma->n_m; m++)
        for (uint32_t n = 0; n < mma->n_n; n++)
            multiply(mma, f->left + m * each, f->right + n * each / 2,
                     mma->accs + (m * mma->n_n + n) * 4);
}

/* The stages' turns, and what one step of the loop hands to the next. */
typedef struct Turn {
    LLVMValueRef read, fill; /* i32: bytes from the first stage */
    Fragments fragments;     /* of the first step of the stage `read` */
} Turn;

/* Accumulators and turn as a flat list that the loop carries, or back from it. */
static uint32_t flatten(Mma *mma, Turn *turn, LLVMValueRef *values, bool is_back) {
    uint32_t each = mma_fragment_registers(&mma->factors[0]);
    uint32_t n = 0, n_left = mma->n_m * each, n_right = mma->n_n / 2 * each;
    LLVMValueRef *const lists[5] = {mma->accs, &turn->read, &turn->fill, turn->fragments.left,
                                    turn->fragments.right};
    const uint32_t counts[5] = {mma->n_accs, 1, 1, n_left, n_right};
    for (int list = 0; list < 5; list++)
        for (uint32_t i = 0; i < counts[list]; i++, n++) {
            if (is_back)
                lists[list][i] = values[n];
            else
                values[n] = lists[list][i];
        }
    return n;
}

/* Multiplies the stage `read`, whose tile begins at k0, while the tile that is `ahead` tiles
 * further is fetched into `fill`. Fragments are loaded a step before they are multiplied: the last
 * step waits for the next stage and loads its first. */
static void run_stage(Mma *mma, Turn *turn, LLVMValueRef k0, uint32_t ahead) {
    Fragments fragments[2] = {turn->fragments};
    LLVMBuilderRef builder = mma->unit->builder;
    int64_t depth = mma->sched->tile_k;
    uint32_t n_steps = (uint32_t)depth * mma->factors[0].elem_bytes / STEP_BYTES;
    LLVMValueRef next_k0 = LLVMBuildAdd(builder, k0, lower_index_const(mma->lower, depth), "");
    LLVMValueRef stage = stage_at(mma, turn->read), fill = stage_at(mma, turn->fill);
    turn->read = next_stage(mma, turn->read);
    turn->fill = next_stage(mma, turn->fill);
    for (uint32_t step = 0; step < n_steps; step++) {
        Fragments *next = &fragments[(step + 1) % 2];
        if (step + 1 < n_steps) {
            load_fragments(mma, stage, k0, step + 1, next);
        } else {
            wait_copies(mma, mma->sched->stages - 2);
            gpu_barrier(mma->unit);
            load_fragments(mma, stage_at(mma, turn->read), next_k0, 0, next);
        }
        if (step == 0) {
            LLVMValueRef reach = lower_index_const(mma->lower, ahead * depth);
            fetch(mma, LLVMBuildAdd(builder, k0, reach, ""), fill);
        }
        multiply_fragments(mma, &fragments[step % 2]);
    }
    put(mma, fill);
    turn->fragments = fragments[n_steps % 2];
}

static void fill_stage(Mma *mma, LLVMValueRef number) {
    LLVMBuilderRef builder = mma->unit->builder;
    LLVMValueRef at = LLVMBuildMul(builder, number, i32_const(mma, mma->stage_bytes), "");
    LLVMValueRef k0 = LLVMBuildMul(builder, number, i32_const(mma, mma->sched->tile_k), "");
    LLVMValueRef stage = stage_at(mma, at);
    fetch(mma, gpu_index(mma->lower, k0), stage);
    put(mma, stage);
}

/* The first `n` stages. Copies are only started, so that a loop takes no longer. Where one factor
 * goes through registers, it is loaded for all stages at once; where both do, the code for that
 * would cost more than it gains. */
static void fill_ahead(Mma *mma, uint32_t n) {
    if (mma->factors[0].is_copied == mma->factors[1].is_copied) {
        Loop loop = loop_begin(mma->unit, mma->lower->function, i32_const(mma, 0),
                               i32_const(mma, n), i32_const(mma, 1));
        fill_stage(mma, loop.index);
        loop_end(mma->unit, &loop);
        return;
    }
    for (uint32_t s = 0; s < n; s++) fill_stage(mma, i32_const(mma, s));
}

/* All of k. One stage is being read, one filled, the others are on their way. */
static void run_k(Mma *mma) {
    Lower *lower = mma->lower;
    Unit *unit = mma->unit;
    uint32_t ahead = mma->sched->stages - 1, depth = mma->sched->tile_k;
    Turn turn = {.read = i32_const(mma, 0),
                 .fill = i32_const(mma, (int64_t)ahead * mma->stage_bytes)};
    fill_ahead(mma, ahead);
    wait_copies(mma, ahead - 1);
    gpu_barrier(unit);
    load_fragments(mma, stage_at(mma, turn.read), lower_index_const(lower, 0), 0, &turn.fragments);
    LLVMValueRef values[MAX_ACCUMULATORS + 2 + 2 * MAX_FRAGMENTS * FRAGMENT_REGISTERS];
    uint32_t n = flatten(mma, &turn, values, false);
    Loop loop = loop_begin(unit, lower->function, lower_index_const(lower, 0), mma->block.k,
                           lower_index_const(lower, depth));
    loop_carry(unit, &loop, values, n);
    flatten(mma, &turn, values, true);
    run_stage(mma, &turn, loop.index, ahead);
    flatten(mma, &turn, values, false);
    loop_end_carry(unit, &loop, values, n);
    flatten(mma, &turn, values, true);
    wait_copies(mma, 0);
    gpu_barrier(unit);
}

/* Without any k there may be no memory to read either: then nothing runs, and the sums are 0. */
static void run_k_if_any(Mma *mma) {
    Lower *lower = mma->lower;
    const IndexTab *tab = scalartab_indices(lower->kernel->scalars);
    DimId k = index_axis_extent(tab, gemm_axis_k(lower->kernel));
    if (dim_lo(indextab_dims(tab), k) > 0) {
        run_k(mma);
        return;
    }
    LLVMValueRef extent = mma->block.k;
    Loop once = loop_begin(mma->unit, lower->function, lower_index_const(lower, 0), extent, extent);
    loop_carry(mma->unit, &once, mma->accs, mma->n_accs);
    run_k(mma);
    loop_end_carry(mma->unit, &once, mma->accs, mma->n_accs);
}

/* Epilogue. */

/* Accumulators 0, 1 of a thread are columns 2t, 2t + 1 of row g of a 16 x 8 tile, 2 and 3 of row
 * g + 8, where g is the lane's number / 4 and t the rest. */
static void put_sums(const Mma *mma, uint32_t first_m, uint32_t n_m) {
    const Unit *unit = mma->unit;
    LLVMBuilderRef builder = unit->builder;
    uint32_t pitch = mma->sched->tile_n + PAD_ELEMS;
    LLVMValueRef lane = LLVMBuildAnd(builder, mma->block.thread, i32_const(mma, WARP - 1), "");
    LLVMValueRef row = LLVMBuildMul(builder, mma->warp_m, i32_const(mma, (int64_t)n_m * 16), "");
    row = LLVMBuildAdd(builder, row, LLVMBuildLShr(builder, lane, i32_const(mma, 2), ""), "");
    LLVMValueRef column = LLVMBuildAnd(builder, lane, i32_const(mma, 3), "");
    column = LLVMBuildShl(builder, column, i32_const(mma, 1), "");
    LLVMValueRef warp_n =
        LLVMBuildMul(builder, mma->warp_n, i32_const(mma, (int64_t)mma->n_n * 8), "");
    LLVMValueRef at = LLVMBuildMul(builder, row, i32_const(mma, pitch), "");
    at = LLVMBuildAdd(builder, at, LLVMBuildAdd(builder, column, warp_n, ""), "");
    LLVMValueRef own = gpu_shared_at(unit, mma->shared, mma->acc_type, at);
    LLVMValueRef poison = LLVMGetPoison(LLVMVectorType(mma->acc_type, 2));
    for (uint32_t i = 0; i < n_m * mma->n_n * 2; i++) {
        uint32_t half = i % 2, n = i / 2 % mma->n_n, m = i / 2 / mma->n_n;
        const LLVMValueRef *sums = mma->accs + ((first_m + m) * mma->n_n + n) * 4 + half * 2;
        LLVMValueRef pair = LLVMBuildInsertElement(builder, poison, sums[0], i32_const(mma, 0), "");
        pair = LLVMBuildInsertElement(builder, pair, sums[1], i32_const(mma, 1), "");
        uint32_t offset = (m * 16 + half * 8) * pitch + n * 8;
        LLVMValueRef pointer = gpu_shared_at(unit, own, mma->acc_type, i32_const(mma, offset));
        LLVMSetAlignment(LLVMBuildStore(builder, pair, pointer), mma->acc_bytes * 2);
    }
}

static void put_part(const void *user, uint32_t i) {
    const Mma *mma = user;
    uint32_t rows = drained_rows(mma);
    put_sums(mma, i * rows / 16, rows / 16);
}

static void drain(const Mma *mma) {
    const Sched *sched = mma->sched;
    uint32_t rows = drained_rows(mma), warp_rows = sched->tile_m / sched->warps_m;
    GemmPart part = {.shared = mma->shared,
                     .pitch = sched->tile_n + PAD_ELEMS,
                     .n_rows = rows * sched->warps_m,
                     .n_columns = sched->tile_n,
                     .run = rows,
                     .run_stride = warp_rows};
    gpu_gemm_drain_parts(&mma->block, part, warp_rows / rows, put_part, mma);
}

void template_gpu_gemm_mma(Lower *lower) {
    Mma *mma = arena_array(lower->unit->arena, Mma, 1);
    mma_init(mma, lower);
    for (uint32_t i = 0; i < mma->n_accs; i++) mma->accs[i] = LLVMConstReal(mma->acc_type, 0);
    run_k_if_any(mma);
    drain(mma);
}
