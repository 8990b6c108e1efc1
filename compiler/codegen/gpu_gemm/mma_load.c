/* Operands of tensor core GEMMs: from memory to shared memory to fragments. See
 * mma.h.
 *
 * An operand that is a plain load, aligned and side by side along one axis, is copied by cp.async.
 * Any other (views, guards, casts, odd pitches) is computed through points. Both give the same
 * elements, so the same bits. */
#include "codegen/gpu_gemm/mma.h"

static IndexTab *indices_of(const GemmBlock *block) {
    return scalartab_indices(block->lower->kernel->scalars);
}

static LLVMValueRef bytes_from(const GemmBlock *block, LLVMValueRef pointer, LLVMValueRef offset) {
    const Unit *unit = block->lower->unit;
    return LLVMBuildGEP2(unit->builder, unit->i8, pointer, &offset, 1, "");
}

uint32_t mma_operand_bytes(const MmaOperand *factor) {
    return factor->n_rows * factor->row_chunks * CHUNK_BYTES;
}

/* Rows whose chunks are permuted alike are so many apart, or a multiple. */
static uint32_t swizzle_period(const MmaOperand *factor) {
    return factor->by_elements ? 4 : 8;
}

/* The permutation of a row's chunks. Rows of 4 chunks share 128 bytes of banks by twos. */
static LLVMValueRef swizzle(const MmaOperand *factor, const GemmBlock *block, LLVMValueRef row,
                            LLVMValueRef chunk) {
    LLVMBuilderRef builder = block->lower->unit->builder;
    uint32_t n_chunks = factor->row_chunks < 8 ? factor->row_chunks : 8;
    if (n_chunks < 8) row = LLVMBuildLShr(builder, row, unit_i32(block->lower->unit, 1), "");
    uint32_t mask = (factor->by_elements ? n_chunks / 2 : n_chunks) - 1;
    row = LLVMBuildAnd(builder, row, unit_i32(block->lower->unit, mask), "");
    if (factor->by_elements) row = LLVMBuildShl(builder, row, unit_i32(block->lower->unit, 1), "");
    return LLVMBuildXor(builder, chunk, row, "");
}

/* Where a chunk lies within a stage, in bytes. */
static LLVMValueRef chunk_bytes(const MmaOperand *factor, const GemmBlock *block, LLVMValueRef row,
                                LLVMValueRef chunk) {
    LLVMBuilderRef builder = block->lower->unit->builder;
    LLVMValueRef row_bytes =
        unit_i32(block->lower->unit, (int64_t)factor->row_chunks * CHUNK_BYTES);
    LLVMValueRef at = LLVMBuildMul(builder, row, row_bytes, "");
    chunk = swizzle(factor, block, row, chunk);
    chunk = LLVMBuildMul(builder, chunk, unit_i32(block->lower->unit, CHUNK_BYTES), "");
    at = LLVMBuildAdd(builder, at, chunk, "");
    return LLVMBuildAdd(builder, at, unit_i32(block->lower->unit, factor->begin_bytes), "");
}

/* How the operand lies. */

static bool are_chunks_whole(const MmaOperand *factor, IndexTab *tab, IndexId index,
                             uint32_t axis) {
    return index_lane_motion(tab, index, axis, factor->chunk_elems) == LANES_CONTIGUOUS &&
           index_is_multiple(tab, index, axis, factor->chunk_elems);
}

/* Whether chunks lie in memory as they are wanted: then is_turned says along which axis. */
static bool find_copied(MmaOperand *factor, const GemmBlock *block) {
    const Lower *lower = block->lower;
    const Kernel *kernel = lower->kernel;
    IndexTab *tab = indices_of(block);
    const Scalar *s = scalar_get(kernel->scalars, factor->value);
    uint32_t k = gemm_axis_k(kernel);
    DimId stride;
    if (s->kind != SCALAR_LOAD || s->guard || lower->variant->align_bytes < CHUNK_BYTES)
        return false;
    uint32_t arg = lower_arg(lower, s->buffer);
    if (!(lower->variant->align_args >> arg & 1) || !index_stride(tab, s->index, k, &stride))
        return false;
    factor->is_turned = !are_chunks_whole(factor, tab, s->index, k);
    return !factor->is_turned || are_chunks_whole(factor, tab, s->index, factor->axis);
}

/* Whether some load under the operand runs along the axis. */
static bool has_run_along(const MmaOperand *factor, const GemmBlock *block, uint32_t axis) {
    const ScalarTab *scalars = block->lower->kernel->scalars;
    const bool *reached = scalar_reached(block->lower->unit->arena, scalars, factor->value);
    for (ScalarId id = 1; id <= factor->value; id++) {
        const Scalar *s = scalar_get(scalars, id);
        if (reached[id] && s->kind == SCALAR_LOAD &&
            index_lane_motion(indices_of(block), s->index, axis, 2) == LANES_CONTIGUOUS)
            return true;
    }
    return false;
}

/* This thread's part. */

static LLVMValueRef row_number(const MmaOperand *factor, const GemmBlock *block, uint32_t i) {
    LLVMValueRef step = unit_i32(block->lower->unit, (int64_t)factor->row_step * i);
    return LLVMBuildAdd(block->lower->unit->builder, factor->own_row, step, "");
}

static void share_chunks(MmaOperand *factor, const GemmBlock *block) {
    LLVMBuilderRef builder = block->lower->unit->builder;
    uint32_t threads = block->lower->variant->sched.threads;
    LLVMValueRef across = unit_i32(block->lower->unit, factor->row_chunks);
    factor->row_step = threads / factor->row_chunks;
    factor->n_chunks = factor->n_rows / factor->row_step;
    if (factor->row_step % swizzle_period(factor) || factor->n_rows % factor->row_step ||
        factor->n_chunks > MAX_CHUNKS)
        ice(block->lower->unit->arena, "%u threads do not share a tile of %u rows", threads,
            factor->n_rows);
    factor->own_row = LLVMBuildUDiv(builder, block->thread, across, "");
    factor->own_chunk = LLVMBuildURem(builder, block->thread, across, "");
    factor->own_bytes = chunk_bytes(factor, block, factor->own_row, factor->own_chunk);
}

/* The point of own chunk `i` in the tile from k0; its lanes are the chunk's elements. */
static Point chunk_point(const MmaOperand *factor, const GemmBlock *block, uint32_t i,
                         LLVMValueRef k0) {
    Lower *lower = block->lower;
    LLVMBuilderRef builder = lower->unit->builder;
    uint32_t k = gemm_axis_k(lower->kernel);
    LLVMValueRef row = row_number(factor, block, i);
    LLVMValueRef along = LLVMBuildMul(builder, factor->own_chunk,
                                      unit_i32(block->lower->unit, factor->chunk_elems), "");
    row = gpu_index(lower, row);
    along = gpu_index(lower, along);
    Point point = point_inside(&block->point);
    point.lanes = factor->chunk_elems;
    point.lane_axis = factor->is_turned ? factor->axis : k;
    point.axis[k] = LLVMBuildAdd(builder, k0, factor->is_turned ? row : along, "");
    point.axis[factor->axis] =
        LLVMBuildAdd(builder, factor->first, factor->is_turned ? along : row, "");
    return point;
}

/* Bytes of a chunk from element `from` of an extent: 0 to 16, i32. */
static LLVMValueRef bytes_inside(const MmaOperand *factor, const GemmBlock *block,
                                 LLVMValueRef from, LLVMValueRef extent) {
    const Unit *unit = block->lower->unit;
    LLVMBuilderRef builder = unit->builder;
    LLVMTypeRef type = block->lower->index_type;
    LLVMValueRef zero = LLVMConstNull(type), most = unit_int(type, factor->chunk_elems);
    LLVMValueRef left = LLVMBuildSub(builder, extent, from, "");
    LLVMValueRef args[2] = {left, most};
    left = unit_intrinsic(unit, "llvm.smin", &type, 1, args, 2);
    args[0] = left, args[1] = zero;
    left = unit_intrinsic(unit, "llvm.smax", &type, 1, args, 2);
    if (type != unit->i32) left = LLVMBuildTrunc(builder, left, unit->i32, "");
    return LLVMBuildMul(builder, left, unit_i32(unit, factor->elem_bytes), "");
}

/* Addresses at k = 0; what the row (straight) or the chunk (turned) leaves inside the matrix. */
static void aim_copies(MmaOperand *factor, const GemmBlock *block) {
    Lower *lower = block->lower;
    Unit *unit = lower->unit;
    LLVMBuilderRef builder = unit->builder;
    const Scalar *s = scalar_get(lower->kernel->scalars, factor->value);
    uint32_t k = gemm_axis_k(lower->kernel);
    LLVMValueRef zero = lower_index_const(lower, 0);
    DimId stride;
    index_stride(indices_of(block), s->index, k, &stride);
    factor->k_stride = stride ? lower_dim(lower, stride) : zero;
    bool has_whole_chunks = gpu_gemm_axis_is_multiple(lower, k, factor->chunk_elems);
    for (uint32_t i = 0; i < factor->n_chunks; i++) {
        Point point = chunk_point(factor, block, i, zero);
        LLVMValueRef at = point.axis[factor->axis];
        point.active = LLVMBuildICmp(builder, LLVMIntSLT, at, factor->extent, "");
        factor->sources[i] = point_pointer(&point, s);
        LLVMValueRef all = unit_i32(block->lower->unit, has_whole_chunks ? CHUNK_BYTES : -1);
        factor->n_bytes[i] =
            factor->is_turned
                ? bytes_inside(factor, block, at, factor->extent)
                : LLVMBuildSelect(builder, point.active, all, unit_i32(block->lower->unit, 0), "");
    }
}

void mma_operand_init(MmaOperand *factor, const GemmBlock *block, bool is_left, uint32_t tile,
                      uint32_t begin_bytes) {
    const Kernel *kernel = block->lower->kernel;
    const Reduce *reduce = &kernel->reduces.data[0];
    uint32_t depth = block->lower->variant->sched.tile_k, k = gemm_axis_k(kernel);
    ScalarId value = is_left ? reduce->value : reduce->factor;
    *factor = (MmaOperand){.value = gemm_unrounded(kernel, value),
                           .is_left = is_left,
                           .axis = is_left ? gemm_axis_m(kernel) : gemm_axis_n(kernel),
                           .first = is_left ? block->m0 : block->n0,
                           .extent = is_left ? block->m : block->n,
                           .begin_bytes = begin_bytes};
    factor->dtype = scalar_get(kernel->scalars, factor->value)->dtype;
    factor->elem_bytes = dtype_bytes(factor->dtype);
    factor->chunk_elems = CHUNK_BYTES / factor->elem_bytes;
    factor->rounds = factor->dtype == DT_F32;
    factor->ends_in_step =
        factor->dtype == DT_F64 && is_left && !gpu_gemm_axis_is_multiple(block->lower, k, depth);
    factor->is_copied = find_copied(factor, block);
    if (!factor->is_copied)
        factor->is_turned =
            !has_run_along(factor, block, k) && has_run_along(factor, block, factor->axis);
    factor->by_elements = factor->elem_bytes == 8 || (factor->elem_bytes == 4 && factor->is_turned);
    factor->n_rows = factor->is_turned ? depth : tile;
    factor->row_chunks = (factor->is_turned ? tile : depth) / factor->chunk_elems;
    share_chunks(factor, block);
    if (factor->is_copied) aim_copies(factor, block);
}

/* Bringing in. */

void mma_operand_move(MmaOperand *factor, const GemmBlock *block, LLVMValueRef first) {
    factor->first = first;
    if (factor->is_copied) aim_copies(factor, block);
}

void mma_copies_commit(const Unit *unit) {
    unit_intrinsic(unit, "llvm.nvvm.cp.async.commit.group", NULL, 0, NULL, 0);
}

void mma_copies_wait(const Unit *unit, uint32_t n_pending) {
    LLVMValueRef n = unit_i32(unit, n_pending);
    unit_intrinsic(unit, "llvm.nvvm.cp.async.wait.group", NULL, 0, &n, 1);
}

static void copy_chunk(const GemmBlock *block, LLVMValueRef to, LLVMValueRef from,
                       LLVMValueRef n_bytes) {
    LLVMValueRef args[3] = {to, from, n_bytes};
    unit_intrinsic(block->lower->unit, "llvm.nvvm.cp.async.cg.shared.global.16.s", NULL, 0, args,
                   3);
}

static void start_copies(const MmaOperand *factor, const GemmBlock *block, LLVMValueRef k0,
                         LLVMValueRef stage) {
    Lower *lower = block->lower;
    Unit *unit = lower->unit;
    LLVMBuilderRef builder = unit->builder;
    LLVMTypeRef element = unit_memory_type(unit, factor->dtype, 1);
    LLVMValueRef delta = LLVMBuildMul(builder, k0, factor->k_stride, "");
    if (lower->index_type == unit->i32) delta = LLVMBuildSExt(builder, delta, unit->i64, "");
    LLVMValueRef to = bytes_from(block, stage, factor->own_bytes), in_k = NULL;
    if (!factor->is_turned) {
        Point point = chunk_point(factor, block, 0, k0);
        in_k = bytes_inside(factor, block, point.axis[gemm_axis_k(lower->kernel)], block->k);
    }
    for (uint32_t i = 0; i < factor->n_chunks; i++) {
        LLVMValueRef n_bytes = factor->n_bytes[i];
        if (factor->is_turned) {
            LLVMValueRef row = gpu_index(lower, row_number(factor, block, i));
            LLVMValueRef left = LLVMBuildSub(builder, block->k, k0, "");
            LLVMValueRef exists = LLVMBuildICmp(builder, LLVMIntSLT, row, left, "");
            n_bytes =
                LLVMBuildSelect(builder, exists, n_bytes, unit_i32(block->lower->unit, 0), "");
        } else {
            n_bytes = LLVMBuildAnd(builder, n_bytes, in_k, "");
        }
        uint32_t rows_bytes = i * factor->row_step * factor->row_chunks * CHUNK_BYTES;
        LLVMValueRef from = LLVMBuildGEP2(builder, element, factor->sources[i], &delta, 1, "");
        copy_chunk(block, bytes_from(block, to, unit_i32(block->lower->unit, rows_bytes)), from,
                   n_bytes);
    }
}

/* Which lanes of a chunk along `lane_axis` from `at` are inside. */
static LLVMValueRef lanes_inside(const MmaOperand *factor, const GemmBlock *block, LLVMValueRef at,
                                 LLVMValueRef extent) {
    const Lower *lower = block->lower;
    LLVMBuilderRef builder = lower->unit->builder;
    uint32_t n = factor->chunk_elems;
    LLVMValueRef numbers[CHUNK_BYTES];
    for (uint32_t i = 0; i < n; i++) numbers[i] = lower_index_const(lower, i);
    LLVMValueRef lanes = unit_splat(lower->unit, at, n);
    lanes = LLVMBuildAdd(builder, lanes, LLVMConstVector(numbers, n), "");
    extent = unit_splat(lower->unit, extent, n);
    return LLVMBuildICmp(builder, LLVMIntSLT, lanes, extent, "");
}

static LLVMValueRef compute_chunk(const MmaOperand *factor, const GemmBlock *block, uint32_t i,
                                  LLVMValueRef k0) {
    Lower *lower = block->lower;
    Unit *unit = lower->unit;
    LLVMBuilderRef builder = unit->builder;
    uint32_t k = gemm_axis_k(lower->kernel);
    Point point = chunk_point(factor, block, i, k0);
    uint32_t row_axis = factor->is_turned ? k : factor->axis;
    LLVMValueRef row_extent = factor->is_turned ? block->k : factor->extent;
    LLVMValueRef extent = factor->is_turned ? factor->extent : block->k;
    LLVMValueRef at = point.axis[point.lane_axis];
    point.active = LLVMBuildICmp(builder, LLVMIntSLT, point.axis[row_axis], row_extent, "");
    if (gpu_gemm_axis_is_multiple(lower, point.lane_axis, factor->chunk_elems)) {
        LLVMValueRef inside = LLVMBuildICmp(builder, LLVMIntSLT, at, extent, "");
        point.active = LLVMBuildAnd(builder, point.active, inside, "");
    } else {
        point.mask = lanes_inside(factor, block, at, extent);
    }
    LLVMValueRef value = point_lanes(&point, factor->value);
    LLVMValueRef exists = unit_splat(unit, point.active, factor->chunk_elems);
    if (point.mask) exists = LLVMBuildAnd(builder, exists, point.mask, "");
    value = LLVMBuildSelect(builder, exists, value, LLVMConstNull(LLVMTypeOf(value)), "");
    return LLVMBuildBitCast(builder, value, LLVMVectorType(unit->i32, 4), "");
}

void mma_operand_fetch(MmaOperand *factor, const GemmBlock *block, LLVMValueRef k0,
                       LLVMValueRef stage) {
    if (factor->is_copied) {
        start_copies(factor, block, k0, stage);
        return;
    }
    for (uint32_t i = 0; i < factor->n_chunks; i++)
        factor->values[i] = compute_chunk(factor, block, i, k0);
}

void mma_operand_put(const MmaOperand *factor, const GemmBlock *block, LLVMValueRef stage) {
    LLVMBuilderRef builder = block->lower->unit->builder;
    if (factor->is_copied) return;
    LLVMValueRef to = bytes_from(block, stage, factor->own_bytes);
    for (uint32_t i = 0; i < factor->n_chunks; i++) {
        uint32_t rows_bytes = i * factor->row_step * factor->row_chunks * CHUNK_BYTES;
        LLVMValueRef at = bytes_from(block, to, unit_i32(block->lower->unit, rows_bytes));
        LLVMSetAlignment(LLVMBuildStore(builder, factor->values[i], at), CHUNK_BYTES);
    }
}

/* Fragments. */

uint32_t mma_fragment_registers(const MmaOperand *factor) {
    return factor->elem_bytes == 8 ? 2 : FRAGMENT_REGISTERS;
}

/* Lane l gives the address of row l % 8 of matrix l / 8. The instruction wants of the lhs
 * the matrices (m 0, k 0), (m 8, k 0), (m 0, k 1), (m 8, k 1), of the right one (n 0, k 0), (n 0,
 * k 1), (n 8, k 0), (n 8, k 1), where k counts chunks. */
static void aim_matrices(MmaOperand *factor, const GemmBlock *block, LLVMValueRef warp_first,
                         uint32_t n) {
    LLVMBuilderRef builder = block->lower->unit->builder;
    LLVMValueRef one = unit_i32(block->lower->unit, 1);
    LLVMValueRef in_matrix =
        LLVMBuildAnd(builder, block->thread, unit_i32(block->lower->unit, 7), "");
    LLVMValueRef bit3 = LLVMBuildLShr(builder, block->thread, unit_i32(block->lower->unit, 3), "");
    LLVMValueRef bit4 = LLVMBuildLShr(builder, block->thread, unit_i32(block->lower->unit, 4), "");
    bit3 = LLVMBuildAnd(builder, bit3, one, "");
    bit4 = LLVMBuildAnd(builder, bit4, one, "");
    LLVMValueRef half_own = factor->is_left ? bit3 : bit4, half_k = factor->is_left ? bit4 : bit3;
    LLVMValueRef half_row = factor->is_turned ? half_k : half_own;
    LLVMValueRef half_chunk = factor->is_turned ? half_own : half_k;
    LLVMValueRef row = LLVMBuildMul(builder, half_row, unit_i32(block->lower->unit, 8), "");
    row = LLVMBuildAdd(builder, row, in_matrix, "");
    if (factor->is_turned) {
        LLVMValueRef chunk =
            LLVMBuildLShr(builder, warp_first, unit_i32(block->lower->unit, 3), "");
        half_chunk = LLVMBuildAdd(builder, half_chunk, chunk, "");
    } else {
        row = LLVMBuildAdd(builder, row, warp_first, "");
    }
    for (uint32_t i = 0; i < n; i++) {
        LLVMValueRef chunk =
            LLVMBuildAdd(builder, half_chunk, unit_i32(block->lower->unit, (int64_t)i * 2), "");
        factor->lane_bytes[i] = chunk_bytes(factor, block, row, chunk);
    }
}

/* Lane l has the elements (own l / 4, k l % 4) of matrices of 8 by 4. */
static void aim_elements(MmaOperand *factor, const GemmBlock *block, LLVMValueRef warp_first,
                         uint32_t n) {
    LLVMBuilderRef builder = block->lower->unit->builder;
    LLVMValueRef lane =
        LLVMBuildAnd(builder, block->thread, unit_i32(block->lower->unit, WARP - 1), "");
    LLVMValueRef own = LLVMBuildLShr(builder, lane, unit_i32(block->lower->unit, 2), "");
    LLVMValueRef at_k = LLVMBuildAnd(builder, lane, unit_i32(block->lower->unit, 3), "");
    own = LLVMBuildAdd(builder, own, warp_first, "");
    uint32_t n_places = factor->is_turned ? n * 2 : n;
    for (uint32_t i = 0; i < n_places; i++) {
        uint32_t own_plus = factor->is_turned ? i * 8 : 0;
        uint32_t k_plus = factor->is_turned ? 0 : i * STEP_BYTES / factor->elem_bytes;
        LLVMValueRef one = LLVMBuildAdd(builder, own, unit_i32(block->lower->unit, own_plus), "");
        LLVMValueRef two = LLVMBuildAdd(builder, at_k, unit_i32(block->lower->unit, k_plus), "");
        LLVMValueRef row = factor->is_turned ? two : one, along = factor->is_turned ? one : two;
        LLVMValueRef elems = unit_i32(block->lower->unit, factor->chunk_elems);
        LLVMValueRef chunk = LLVMBuildUDiv(builder, along, elems, "");
        LLVMValueRef rest = LLVMBuildURem(builder, along, elems, "");
        rest = LLVMBuildMul(builder, rest, unit_i32(block->lower->unit, factor->elem_bytes), "");
        LLVMValueRef at = chunk_bytes(factor, block, row, chunk);
        factor->lane_bytes[i] = LLVMBuildAdd(builder, at, rest, "");
    }
}

void mma_operand_aim(MmaOperand *factor, const GemmBlock *block, LLVMValueRef warp_first,
                     uint32_t warp_elems) {
    uint32_t steps = block->lower->variant->sched.tile_k * factor->elem_bytes / STEP_BYTES;
    uint32_t n = factor->is_turned ? warp_elems / 16 : steps;
    if (n > MAX_FRAGMENTS)
        ice(block->lower->unit->arena, "a warp takes more than %d fragments", MAX_FRAGMENTS);
    if (factor->by_elements)
        aim_elements(factor, block, warp_first, n);
    else
        aim_matrices(factor, block, warp_first, n);
}

static void load_matrices(const MmaOperand *factor, const GemmBlock *block, LLVMValueRef stage,
                          uint32_t i, uint32_t step, LLVMValueRef *registers) {
    const Unit *unit = block->lower->unit;
    uint32_t column = factor->is_turned ? i : step, rows = (factor->is_turned ? step : i) * 16;
    uint32_t rows_bytes = rows * factor->row_chunks * CHUNK_BYTES;
    LLVMValueRef at = bytes_from(block, stage, factor->lane_bytes[column]);
    at = bytes_from(block, at, unit_i32(unit, rows_bytes));
    LLVMTypeRef type = LLVMTypeOf(at);
    const char *name = factor->is_turned ? "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.trans.b16"
                                         : "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16";
    LLVMValueRef matrices = unit_intrinsic(unit, name, &type, 1, &at, 1);
    for (uint32_t r = 0; r < FRAGMENT_REGISTERS; r++)
        registers[r] = LLVMBuildExtractValue(unit->builder, matrices, r, "");
}

/* Registers in the instruction's order: of the lhs halves of m before those of k, of the
 * right one after. */
static void load_elements(const MmaOperand *factor, const GemmBlock *block, LLVMValueRef stage,
                          uint32_t i, uint32_t step, LLVMValueRef *registers) {
    const Unit *unit = block->lower->unit;
    LLVMTypeRef type = factor->elem_bytes == 8 ? unit_value_type(unit, DT_F64, 1) : unit->i32;
    uint32_t n = mma_fragment_registers(factor), n_k = n / 2;
    for (uint32_t r = 0; r < n; r++) {
        uint32_t own_half = factor->is_left ? r % 2 : r / n_k;
        uint32_t k_half = factor->is_left ? r / 2 : r % n_k;
        uint32_t rows = factor->is_turned ? step * STEP_BYTES / factor->elem_bytes + k_half * 4
                                          : i * 16 + own_half * 8;
        uint32_t place = factor->is_turned ? i * 2 + own_half : step;
        uint32_t rows_bytes = rows * factor->row_chunks * CHUNK_BYTES;
        LLVMValueRef at = bytes_from(block, stage, factor->lane_bytes[place]);
        at = bytes_from(block, at, unit_i32(unit, rows_bytes));
        registers[r] = LLVMBuildLoad2(unit->builder, type, at, "");
        LLVMSetAlignment(registers[r], factor->elem_bytes);
    }
}

/* Beyond the end of k the lhs is -0 and the right one +0: their product changes no sum, not
 * even -0. */
static void pad_elements(const GemmBlock *block, uint32_t step, LLVMValueRef k0,
                         LLVMValueRef *registers, uint32_t n) {
    Lower *lower = block->lower;
    const Unit *unit = lower->unit;
    LLVMBuilderRef builder = unit->builder;
    LLVMValueRef lane = LLVMBuildAnd(builder, block->thread, unit_i32(block->lower->unit, 3), "");
    LLVMValueRef k = LLVMBuildAdd(builder, k0, gpu_index(lower, lane), "");
    k = LLVMBuildAdd(builder, k, lower_index_const(lower, (int64_t)step * 4), "");
    LLVMValueRef inside = LLVMBuildICmp(builder, LLVMIntSLT, k, block->k, "");
    LLVMValueRef pad = unit_number(unit, DT_F64, -0.0);
    for (uint32_t r = 0; r < n; r++)
        registers[r] = LLVMBuildSelect(builder, inside, registers[r], pad, "");
}

/* As PRIM_TF32, in fewer instructions where the machine has one: after any NaN has become the one
 * whose upper bits are set, since those below are cut off. */
static LLVMValueRef round_to_tf32(const Unit *unit, LLVMValueRef bits) {
    LLVMValueRef value = LLVMBuildBitCast(unit->builder, bits, unit->f32, "");
    if (!unit->target->has_tf32_rounding)
        return LLVMBuildBitCast(unit->builder, math_tf32(&unit->math, value), unit->i32, "");
    LLVMValueRef same[2] = {value, value};
    value = unit_intrinsic(unit, "llvm.nvvm.fmax.nan.f", NULL, 0, same, 2);
    return unit_intrinsic(unit, "llvm.nvvm.f2tf32.rn", NULL, 0, &value, 1);
}

void mma_operand_fragment(const MmaOperand *factor, const GemmBlock *block, LLVMValueRef stage,
                          uint32_t i, uint32_t step, LLVMValueRef k0, LLVMValueRef *registers) {
    uint32_t n = mma_fragment_registers(factor);
    if (factor->by_elements)
        load_elements(factor, block, stage, i, step, registers);
    else
        load_matrices(factor, block, stage, i, step, registers);
    if (factor->ends_in_step) pad_elements(block, step, k0, registers, n);
    for (uint32_t r = 0; r < n && factor->rounds; r++)
        registers[r] = round_to_tf32(block->lower->unit, registers[r]);
}
