/* A block's accumulators on tensor cores. See mma_tile.h. */
#include "codegen/gpu_gemm/mma_tile.h"
#include "codegen/gpu_gemm/wgmma.h"

void mma_tile_init(MmaTile *tile, const GemmBlock *block) {
    Lower *lower = block->lower;
    const Kernel *kernel = lower->kernel;
    const Sched *sched = &lower->variant->sched;
    const Codegen *k = lower->k;
    *tile = (MmaTile){.lower = lower, .k = k, .sched = sched, .block = *block};
    tile->left = gemm_left_dtype(kernel);
    tile->dtype = gemm_operand_dtype(kernel);
    tile->acc_bytes = dtype_bytes(kernel->reduces.data[0].acc);
    tile->acc_type = k_value_type(tile->k, kernel->reduces.data[0].acc, 1);
    tile->n_m = sched->gemm.tile_m / sched->gemm.warps_m / FRAGMENT_ROWS;
    tile->n_n = sched->gemm.tile_n / sched->gemm.warps_n / FRAGMENT_COLUMNS;
    tile->n_accs = tile->n_m * tile->n_n * FRAGMENT_ACCUMULATORS;
    if (tile->n_accs > MAX_ACCUMULATORS)
        ice(tile->k->arena, "a thread keeps more than %d accumulators", MAX_ACCUMULATORS);
    tile->has_parts = dtype_in(tile->dtype, DTS_STORED);
    for (uint32_t i = 0; i < tile->n_accs; i++) {
        tile->accs[i] = LLVMConstNull(tile->acc_type);
        tile->parts[i] = sched->gemm.by_groups ? k_alloca(k, tile->acc_type) : tile->accs[i];
    }
    Val warp = k_udivi(k, block->thread, WARP_THREADS);
    tile->warp_m = k_uremi(k, warp, sched->gemm.warps_m);
    tile->warp_n = k_udivi(k, warp, sched->gemm.warps_m);
}

void mma_tile_aim(const MmaTile *tile, MmaOperand *operand) {
    const Sched *sched = tile->sched;
    bool is_left = operand->is_left;
    uint32_t elems = is_left ? sched->gemm.tile_m / sched->gemm.warps_m
                             : sched->gemm.tile_n / sched->gemm.warps_n;
    Val warp = is_left ? tile->warp_m : tile->warp_n;
    Val first = k_muli(tile->k, warp, elems);
    mma_operand_aim(operand, first, elems);
}

/* Arithmetic. */

static LLVMTypeRef operand_type(const MmaTile *tile) {
    const Codegen *k = tile->k;
    switch (dtype_info(tile->dtype)->mma) {
    case MMA_DOUBLE:
        return tile->acc_type;
    case MMA_HALF:
        return LLVMVectorType(k->f16, 2);
    case MMA_TF32:
    case MMA_BFLOAT:
    case MMA_S8:
    case MMA_U8:
    case MMA_E4M3:
    case MMA_E5M2:
    case MMA_NONE:
        break;
    }
    return k->i32;
}

/* Emits one mma instruction with `n_left` and `n_right` operand registers and `n_accs`
 * accumulators. */
static void run_instruction(const MmaTile *tile, const char *name, const Val *left, uint32_t n_left,
                            const Val *right, uint32_t n_right, Val *accs, uint32_t n_accs) {
    const Codegen *k = tile->k;
    LLVMTypeRef type = operand_type(tile);
    Val args[10];
    uint32_t n = 0;
    for (uint32_t i = 0; i < n_left + n_right; i++) {
        Val operand = i < n_left ? left[i] : right[i - n_left];
        args[n++] = k_bitcast(k, operand, type);
    }
    for (uint32_t i = 0; i < n_accs; i++) args[n++] = accs[i];
    Val sums = k_intrinsic(k, name, args, n);
    for (uint32_t i = 0; i < n_accs; i++) accs[i] = k_extract_value(k, sums, i);
}

/* The instruction for 8-bit floats, for which LLVM has no intrinsic. */
static void run_f8(const MmaTile *tile, const Val *left, const Val *right, Val *accs) {
    const Codegen *k = tile->k;
    LLVMTypeRef sums[FRAGMENT_ACCUMULATORS];
    Val args[10];
    for (uint32_t i = 0; i < FRAGMENT_ACCUMULATORS; i++) sums[i] = tile->acc_type;
    for (uint32_t i = 0; i < 4; i++) args[i] = left[i];
    for (uint32_t i = 0; i < 2; i++) args[4 + i] = right[i];
    for (uint32_t i = 0; i < FRAGMENT_ACCUMULATORS; i++) args[6 + i] = accs[i];
    const char *text = str_format(k->arena,
                                  "mma.sync.aligned.m16n8k32.row.col.f32.%s.%s.f32 {$0, $1, $2, "
                                  "$3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};",
                                  wgmma_operand_type(tile->left), wgmma_operand_type(tile->dtype));
    Val all = k_asm(k, LLVMStructTypeInContext(k->context, sums, FRAGMENT_ACCUMULATORS, 0), text,
                    "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f", args, 10, false);
    for (uint32_t i = 0; i < FRAGMENT_ACCUMULATORS; i++) accs[i] = k_extract_value(k, all, i);
}

/* Adds the product of one lhs fragment and half an rhs fragment to 4 accumulators. For f64 the
 * large instruction runs at twice the rate of the small one, on machines that have it. */
static void multiply(const MmaTile *tile, const Val *left, const Val *right, Val *accs) {
    switch (dtype_info(tile->dtype)->mma) {
    case MMA_BFLOAT:
        run_instruction(tile, "llvm.nvvm.mma.m16n8k16.row.col.bf16", left, 4, right, 2, accs, 4);
        return;
    case MMA_HALF:
        run_instruction(tile, "llvm.nvvm.mma.m16n8k16.row.col.f32.f32", left, 4, right, 2, accs, 4);
        return;
    case MMA_TF32:
        run_instruction(tile, "llvm.nvvm.mma.m16n8k8.row.col.tf32", left, 4, right, 2, accs, 4);
        return;
    case MMA_S8:
        run_instruction(tile, "llvm.nvvm.mma.m16n8k32.row.col.s8", left, 4, right, 2, accs, 4);
        return;
    case MMA_U8:
        run_instruction(tile, "llvm.nvvm.mma.m16n8k32.row.col.u8", left, 4, right, 2, accs, 4);
        return;
    case MMA_E4M3:
    case MMA_E5M2:
        run_f8(tile, left, right, accs);
        return;
    case MMA_DOUBLE:
    case MMA_NONE:
        break;
    }
    if (tile->k->target->has_large_f64_mma) {
        run_instruction(tile, "llvm.nvvm.mma.m16n8k4.row.col.f64", left, 2, right, 1, accs, 4);
        return;
    }
    for (uint32_t half = 0; half < 2; half++)
        run_instruction(tile, "llvm.nvvm.mma.m8n8k4.row.col.f64", left + half, 1, right, 1,
                        accs + half * 2, 2);
}

void mma_tile_load(const MmaTile *tile, const MmaOperand *operand, Val stage, MmaStep step,
                   Val *fragments) {
    uint32_t n = operand->is_left ? tile->n_m : tile->n_n / 2;
    for (uint32_t i = 0; i < n; i++)
        mma_operand_fragment(operand, stage, i, step,
                             fragments + i * mma_fragment_registers(operand));
}

void mma_tile_multiply(MmaTile *tile, const MmaFragments *fragments) {
    uint32_t each = dtype_bytes(tile->dtype) == 8 ? 2 : FRAGMENT_REGISTERS;
    for (uint32_t m = 0; m < tile->n_m; m++)
        for (uint32_t n = 0; n < tile->n_n; n++)
            multiply(tile, fragments->left + m * each, fragments->right + n * each / 2,
                     (tile->has_parts ? tile->parts : tile->accs) +
                         gpu_fragment_pair(tile->n_n, m, n, 0));
}

void mma_tile_join(MmaTile *tile) {
    for (uint32_t i = 0; i < tile->n_accs; i++) {
        tile->accs[i] = k_fadd(tile->k, tile->accs[i], tile->parts[i]);
        tile->parts[i] = LLVMConstNull(tile->acc_type);
    }
}

/* Warpgroups. A warpgroup has 64 rows of the tile and all columns, so a warp has the rows that it
 * has by mma too. The operands' rows in shared memory are 128 bytes long, with the swizzle of
 * wgmma. */

static Val group_descriptor(const MmaTile *tile, const MmaOperand *operand, Val stage) {
    const Codegen *k = tile->k;
    WgmmaLayout layout = {.own = operand->n_rows, .depth = GEMM_F8_DEPTH};
    Val at = k_i32(k, operand->begin_bytes);
    if (operand->is_left) {
        Val group = k_udivi(k, tile->block.thread, WGMMA_GROUP_WARPS * WARP_THREADS);
        at = k_add(k, at, k_muli(k, group, (int64_t)WGMMA_ROWS * WGMMA_SWIZZLE_BYTES));
    }
    return wgmma_descriptor(k, &layout, k_byte(k, stage, at));
}

void mma_tile_start_group(const MmaTile *tile, const MmaOperand operands[2], Val stage) {
    WgmmaProduct product = {.dtypes = {tile->left, tile->dtype},
                            .width = tile->sched->gemm.tile_n,
                            .n_steps = GEMM_F8_DEPTH / STEP_BYTES,
                            .begins = true,
                            .left_descriptor = group_descriptor(tile, &operands[0], stage),
                            .right_descriptor = group_descriptor(tile, &operands[1], stage),
                            .accs = tile->parts};
    wgmma_product(tile->k, &product);
}

void mma_tile_finish_group(MmaTile *tile) {
    const Codegen *k = tile->k;
    wgmma_await(k, 0, tile->parts, tile->n_accs);
    for (uint32_t i = 0; i < tile->n_accs; i++)
        tile->accs[i] = k_fadd(k, tile->accs[i], k_load(k, tile->acc_type, tile->parts[i]));
}

/* The epilogue. */

static void put_sums(const MmaTile *tile, uint32_t first_m, uint32_t n_m) {
    const Codegen *k = tile->k;
    uint32_t pitch = tile->sched->gemm.tile_n + MMA_EPILOGUE_PAD;
    Val lane = k_andi(k, tile->block.thread, WARP_THREADS - 1);
    Val row = k_muli(k, tile->warp_m, (int64_t)n_m * FRAGMENT_ROWS);
    row = k_add(k, row, gpu_fragment_row(k, lane));
    Val column = gpu_fragment_column(k, lane);
    Val warp_n = k_muli(k, tile->warp_n, (int64_t)tile->n_n * FRAGMENT_COLUMNS);
    Val at = k_muli(k, row, pitch);
    at = k_add(k, at, k_add(k, column, warp_n));
    Val own = k_gep(k, tile->acc_type, tile->shared, at);
    Dtype acc = tile->lower->kernel->reduces.data[0].acc;
    GemmFragments fragments = {.accs = tile->accs + gpu_fragment_pair(tile->n_n, first_m, 0, 0),
                               .n_m = n_m,
                               .n_n = tile->n_n,
                               .n_halves = 2,
                               .pitch = pitch,
                               .acc = acc,
                               .stored = acc};
    gpu_gemm_put_fragments(k, &fragments, own);
}

static void put_subtile(const void *user, uint32_t i) {
    const MmaTile *tile = user;
    uint32_t rows = mma_epilogue_rows(tile->sched, tile->acc_bytes);
    put_sums(tile, i * rows / FRAGMENT_ROWS, rows / FRAGMENT_ROWS);
}

void mma_tile_epilogue(const MmaTile *tile) {
    const Sched *sched = tile->sched;
    uint32_t rows = mma_epilogue_rows(tile->sched, tile->acc_bytes),
             warp_rows = sched->gemm.tile_m / sched->gemm.warps_m;
    GemmSubtile subtile = {.shared = tile->shared,
                           .pitch = sched->gemm.tile_n + MMA_EPILOGUE_PAD,
                           .n_rows = rows * sched->gemm.warps_m,
                           .n_columns = sched->gemm.tile_n,
                           .run = rows,
                           .run_stride = warp_rows};
    gpu_gemm_epilogue_subtiles(&tile->block, subtile, warp_rows / rows, put_subtile, tile);
}
