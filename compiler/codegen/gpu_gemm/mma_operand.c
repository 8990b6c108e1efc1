/* Operands of tensor-core GEMMs: from global memory to shared memory to fragments. See mma.h.
 *
 * An operand that is a plain load, aligned and contiguous along one axis, is copied by cp.async.
 * Any other operand (views, guards, casts, odd pitches) is computed through points. Both ways give
 * the same elements, so the same bits. */
#include "codegen/gpu_gemm/mma.h"

static IndexTab *indices_of(const MmaOperand *operand) {
    return scalartab_indices(operand->lower->kernel->scalars);
}

uint32_t mma_operand_bytes(const MmaOperand *operand) {
    return operand->n_rows * operand->row_chunks * CHUNK_BYTES;
}

/* The number of rows after which the swizzle repeats. */
static uint32_t swizzle_period(const MmaOperand *operand) {
    return operand->by_elements ? 4 : 8;
}

/* The swizzled position of a row's chunk. Rows of 4 chunks share 128 bytes of banks in pairs. */
static Val swizzle(const MmaOperand *operand, Val row, Val chunk) {
    const Codegen *k = operand->k;
    uint32_t n_chunks = operand->row_chunks < 8 ? operand->row_chunks : 8;
    if (n_chunks < 8) row = k_lshri(k, row, 1);
    uint32_t mask = (operand->by_elements ? n_chunks / 2 : n_chunks) - 1;
    row = k_andi(k, row, mask);
    if (operand->by_elements) row = k_shli(k, row, 1);
    return k_xor(k, chunk, row);
}

/* The byte offset of a chunk within a stage. */
static Val chunk_bytes(const MmaOperand *operand, Val row, Val chunk) {
    const Codegen *k = operand->k;
    Val at = k_muli(k, row, (int64_t)operand->row_chunks * CHUNK_BYTES);
    chunk = swizzle(operand, row, chunk);
    chunk = k_muli(k, chunk, CHUNK_BYTES);
    at = k_add(k, at, chunk);
    return k_addi(k, at, operand->begin_bytes);
}

Val mma_operand_element(const MmaOperand *operand, Val own, Val at_k) {
    const Codegen *k = operand->k;
    Val row = operand->is_mn_major ? at_k : own, along = operand->is_mn_major ? own : at_k;
    Val rest = k_muli(k, k_uremi(k, along, operand->chunk_elems), operand->elem_bytes);
    Val chunk = k_udivi(k, along, operand->chunk_elems);
    return k_add(k, chunk_bytes(operand, row, chunk), rest);
}

/* The layout of the operand. */

/* Whether the tile may be transposed: neither ldmatrix nor loads of elements can transpose bytes.
 */
static bool may_be_mn_major(const MmaOperand *operand) {
    return operand->elem_bytes > 1;
}

/* Whether whole chunks are contiguous and aligned in memory; then sets is_mn_major by their axis.
 */
static bool find_copied(MmaOperand *operand) {
    const Lower *lower = operand->lower;
    const Kernel *kernel = lower->kernel;
    const Scalar *s = scalar_get(kernel->scalars, operand->value);
    uint32_t k = gemm_axis_k(kernel);
    DimId stride;
    if (s->kind != SCALAR_LOAD || s->guard) return false;
    if (!index_stride(indices_of(operand), s->index, k, &stride)) return false;
    operand->is_mn_major = !gpu_gemm_has_vectors(lower, s, k, operand->chunk_elems);
    return !operand->is_mn_major ||
           (may_be_mn_major(operand) &&
            gpu_gemm_has_vectors(lower, s, operand->axis, operand->chunk_elems));
}

/* Whether a load of the operand is contiguous along the axis. */
static bool has_run_along(const MmaOperand *operand, uint32_t axis) {
    return gpu_gemm_contiguous_loads(operand->lower, operand->value, axis, 2) > 0;
}

/* The thread's loads. */

static Val row_number(const MmaOperand *operand, uint32_t i) {
    return k_addi(operand->k, operand->own_row, (int64_t)operand->row_step * i);
}

static void share_chunks(MmaOperand *operand) {
    const Codegen *k = operand->k;
    uint32_t threads = operand->lower->variant->sched.threads;
    Val across = k_i32(k, operand->row_chunks);
    operand->row_step = threads / operand->row_chunks;
    operand->n_chunks = operand->n_rows / operand->row_step;
    if (operand->row_step % swizzle_period(operand) || operand->n_rows % operand->row_step ||
        operand->n_chunks > MAX_CHUNKS)
        ice(k->arena, "%u threads do not share a tile of %u rows", threads, operand->n_rows);
    operand->own_row = k_udiv(k, operand->block->thread, across);
    operand->own_chunk = k_urem(k, operand->block->thread, across);
    operand->own_bytes = chunk_bytes(operand, operand->own_row, operand->own_chunk);
}

/* The point of the thread's chunk `i` in the tile from k0; its lanes are the chunk's elements. */
static Point chunk_point(const MmaOperand *operand, uint32_t i, Val k0) {
    Lower *lower = operand->lower;
    const Codegen *k = lower->k;
    uint32_t axis_k = gemm_axis_k(lower->kernel);
    Val row = row_number(operand, i);
    Val along = k_muli(k, operand->own_chunk, operand->chunk_elems);
    row = gpu_index(lower, row);
    along = gpu_index(lower, along);
    Point point = point_inside(&operand->block->point);
    point.lanes = operand->chunk_elems;
    point.lane_axis = operand->is_mn_major ? operand->axis : axis_k;
    point.axis[axis_k] = k_add(k, k0, operand->is_mn_major ? row : along);
    point.axis[operand->axis] = k_add(k, operand->first, operand->is_mn_major ? along : row);
    return point;
}

/* Bytes of a chunk from element `from` that are inside the extent: 0 to 16, i32. */
static Val bytes_inside(const MmaOperand *operand, Val from, Val extent) {
    const Codegen *k = operand->k;
    LLVMTypeRef type = operand->lower->index_type;
    Val left = k_smin(k, k_sub(k, extent, from), k_int(type, operand->chunk_elems));
    left = k_smax(k, left, k_int(type, 0));
    if (type != k->i32) left = k_trunc(k, left, k->i32);
    return k_muli(k, left, operand->elem_bytes);
}

/* Computes the addresses at k = 0, and the bytes of each chunk inside the matrix along the row
 * (straight) or the chunk (transposed). */
static void aim_copies(MmaOperand *operand) {
    Lower *lower = operand->lower;
    Codegen *k = lower->k;
    const Scalar *s = scalar_get(lower->kernel->scalars, operand->value);
    uint32_t axis_k = gemm_axis_k(lower->kernel);
    Val zero = lower_index_const(lower, 0);
    DimId stride;
    index_stride(indices_of(operand), s->index, axis_k, &stride);
    operand->k_stride = stride ? lower_dim(lower, stride) : zero;
    bool has_whole_chunks = gpu_gemm_axis_is_multiple(lower, axis_k, operand->chunk_elems);
    for (uint32_t i = 0; i < operand->n_chunks; i++) {
        Point point = chunk_point(operand, i, zero);
        Val at = point.axis[operand->axis];
        point.active = k_slt(k, at, operand->extent);
        operand->sources[i] = point_pointer(&point, s);
        Val all = k_i32(k, has_whole_chunks ? CHUNK_BYTES : -1);
        operand->n_bytes[i] = operand->is_mn_major ? bytes_inside(operand, at, operand->extent)
                                                   : k_select(k, point.active, all, k_i32(k, 0));
    }
}

void mma_operand_init(MmaOperand *operand, const GemmBlock *block, bool is_left,
                      uint32_t begin_bytes) {
    const Kernel *kernel = block->lower->kernel;
    const Reduce *reduce = &kernel->reduces.data[0];
    const Sched *sched = &block->lower->variant->sched;
    uint32_t tile = is_left ? sched->gemm.tile_m : sched->gemm.tile_n, depth = sched->gemm.tile_k;
    uint32_t k = gemm_axis_k(kernel);
    ScalarId value = is_left ? reduce->lhs : reduce->rhs;
    *operand = (MmaOperand){.block = block,
                            .lower = block->lower,
                            .k = block->lower->k,
                            .value = gemm_unrounded(kernel, value),
                            .is_left = is_left,
                            .axis = is_left ? gemm_axis_m(kernel) : gemm_axis_n(kernel),
                            .first = is_left ? block->m0 : block->n0,
                            .extent = is_left ? block->m : block->n,
                            .begin_bytes = begin_bytes};
    operand->dtype = scalar_get(kernel->scalars, operand->value)->dtype;
    operand->elem_bytes = dtype_bytes(operand->dtype);
    operand->chunk_elems = CHUNK_BYTES / operand->elem_bytes;
    operand->rounds = dtype_is_single(operand->dtype);
    operand->ends_in_step = dtype_is_double(operand->dtype) && is_left &&
                            !gpu_gemm_axis_is_multiple(block->lower, k, depth);
    operand->is_copied = find_copied(operand);
    if (!operand->is_copied)
        operand->is_mn_major = may_be_mn_major(operand) && !has_run_along(operand, k) &&
                               has_run_along(operand, operand->axis);
    operand->by_elements =
        operand->elem_bytes == 8 || (operand->elem_bytes == 4 && operand->is_mn_major);
    operand->n_rows = operand->is_mn_major ? depth : tile;
    operand->row_chunks = (operand->is_mn_major ? tile : depth) / operand->chunk_elems;
    share_chunks(operand);
    if (operand->is_copied) aim_copies(operand);
}

/* Fetching tiles. */

void mma_operand_move(MmaOperand *operand, Val first) {
    operand->first = first;
    if (operand->is_copied) aim_copies(operand);
}

static void copy_chunk(const Codegen *k, Val to, Val from, Val n_bytes) {
    Val args[3] = {to, from, n_bytes};
    k_intrinsic(k, "llvm.nvvm.cp.async.cg.shared.global.16.s", args, 3);
}

static void start_copies(const MmaOperand *operand, Val k0, Val stage) {
    Lower *lower = operand->lower;
    Codegen *k = lower->k;
    LLVMTypeRef element = k_memory_type(k, operand->dtype, 1);
    Val delta = k_mul(k, k0, operand->k_stride);
    if (lower->index_type == k->i32) delta = k_sext(k, delta, k->i64);
    Val to = k_byte(k, stage, operand->own_bytes), in_k = NULL;
    if (!operand->is_mn_major) {
        Point point = chunk_point(operand, 0, k0);
        in_k = bytes_inside(operand, point.axis[gemm_axis_k(lower->kernel)], operand->block->k);
    }
    for (uint32_t i = 0; i < operand->n_chunks; i++) {
        Val n_bytes = operand->n_bytes[i];
        if (operand->is_mn_major) {
            Val row = gpu_index(lower, row_number(operand, i));
            Val left = k_sub(k, operand->block->k, k0);
            n_bytes = k_select(k, k_slt(k, row, left), n_bytes, k_i32(k, 0));
        } else {
            n_bytes = k_and(k, n_bytes, in_k);
        }
        uint32_t rows_bytes = i * operand->row_step * operand->row_chunks * CHUNK_BYTES;
        Val from = k_gep(k, element, operand->sources[i], delta);
        copy_chunk(k, k_byte(k, to, k_i32(k, rows_bytes)), from, n_bytes);
    }
}

/* A mask of the lanes of a chunk along `lane_axis`, from `at` on, that are inside the extent. */
static Val lanes_inside(const MmaOperand *operand, Val at, Val extent) {
    const Lower *lower = operand->lower;
    const Codegen *k = lower->k;
    uint32_t n = operand->chunk_elems;
    Val numbers[CHUNK_BYTES];
    for (uint32_t i = 0; i < n; i++) numbers[i] = lower_index_const(lower, i);
    Val lanes = k_splat(k, at, n);
    lanes = k_add(k, lanes, LLVMConstVector(numbers, n));
    extent = k_splat(k, extent, n);
    return k_slt(k, lanes, extent);
}

static Val compute_chunk(const MmaOperand *operand, uint32_t i, Val k0) {
    Lower *lower = operand->lower;
    Codegen *k = lower->k;
    uint32_t axis_k = gemm_axis_k(lower->kernel);
    Point point = chunk_point(operand, i, k0);
    uint32_t row_axis = operand->is_mn_major ? axis_k : operand->axis;
    Val row_extent = operand->is_mn_major ? operand->block->k : operand->extent;
    Val extent = operand->is_mn_major ? operand->extent : operand->block->k;
    Val at = point.axis[point.lane_axis];
    point.active = k_slt(k, point.axis[row_axis], row_extent);
    if (gpu_gemm_axis_is_multiple(lower, point.lane_axis, operand->chunk_elems)) {
        Val inside = k_slt(k, at, extent);
        point.active = k_and(k, point.active, inside);
    } else {
        point.mask = lanes_inside(operand, at, extent);
    }
    Val value = point_lanes(&point, operand->value);
    Val exists = k_splat(k, point.active, operand->chunk_elems);
    if (point.mask) exists = k_and(k, exists, point.mask);
    value = k_select(k, exists, value, LLVMConstNull(LLVMTypeOf(value)));
    return k_bitcast(k, value, LLVMVectorType(k->i32, 4));
}

void mma_operand_fetch(MmaOperand *operand, Val k0, Val stage) {
    if (operand->is_copied) {
        start_copies(operand, k0, stage);
        return;
    }
    for (uint32_t i = 0; i < operand->n_chunks; i++)
        operand->values[i] = compute_chunk(operand, i, k0);
}

void mma_operand_put(const MmaOperand *operand, Val stage) {
    const Codegen *k = operand->k;
    if (operand->is_copied) return;
    Val to = k_byte(k, stage, operand->own_bytes);
    for (uint32_t i = 0; i < operand->n_chunks; i++) {
        uint32_t rows_bytes = i * operand->row_step * operand->row_chunks * CHUNK_BYTES;
        Val at = k_byte(k, to, k_i32(k, rows_bytes));
        k_store_aligned(k, operand->values[i], at, CHUNK_BYTES);
    }
}

/* Fragments. */

uint32_t mma_fragment_registers(const MmaOperand *operand) {
    return operand->elem_bytes == 8 ? 2 : FRAGMENT_REGISTERS;
}

/* For ldmatrix, lane l gives the address of row l % 8 of matrix l / 8. The lhs needs the matrices
 * (m 0, k 0), (m 8, k 0), (m 0, k 1), (m 8, k 1), and the rhs (n 0, k 0), (n 0, k 1), (n 8, k 0),
 * (n 8, k 1), where k counts chunks. */
static void aim_matrices(MmaOperand *operand, Val warp_first, uint32_t n) {
    const Codegen *k = operand->k;
    Val one = k_i32(k, 1);
    Val in_matrix = k_andi(k, operand->block->thread, 7);
    Val bit3 = k_lshri(k, operand->block->thread, 3);
    Val bit4 = k_lshri(k, operand->block->thread, 4);
    bit3 = k_and(k, bit3, one);
    bit4 = k_and(k, bit4, one);
    Val half_own = operand->is_left ? bit3 : bit4, half_k = operand->is_left ? bit4 : bit3;
    Val half_row = operand->is_mn_major ? half_k : half_own;
    Val half_chunk = operand->is_mn_major ? half_own : half_k;
    Val row = k_madi(k, half_row, 8, in_matrix);
    if (operand->is_mn_major) {
        Val chunk = k_lshri(k, warp_first, 3);
        half_chunk = k_add(k, half_chunk, chunk);
    } else {
        row = k_add(k, row, warp_first);
    }
    for (uint32_t i = 0; i < n; i++) {
        Val chunk = k_addi(k, half_chunk, (int64_t)i * 2);
        operand->lane_bytes[i] = chunk_bytes(operand, row, chunk);
    }
}

/* Element loads: lane l has the elements (own l / 4, k l % 4) of matrices of 8 x 4. */
static void aim_elements(MmaOperand *operand, Val warp_first, uint32_t n) {
    const Codegen *k = operand->k;
    Val lane = k_andi(k, operand->block->thread, WARP_THREADS - 1);
    Val own = k_lshri(k, lane, 2);
    Val at_k = k_andi(k, lane, 3);
    own = k_add(k, own, warp_first);
    uint32_t n_places = operand->is_mn_major ? n * 2 : n;
    for (uint32_t i = 0; i < n_places; i++) {
        uint32_t own_plus = operand->is_mn_major ? i * 8 : 0;
        uint32_t k_plus = operand->is_mn_major ? 0 : i * STEP_BYTES / operand->elem_bytes;
        Val one = k_addi(k, own, own_plus);
        Val two = k_addi(k, at_k, k_plus);
        Val row = operand->is_mn_major ? two : one, along = operand->is_mn_major ? one : two;
        Val elems = k_i32(k, operand->chunk_elems);
        Val chunk = k_udiv(k, along, elems);
        Val rest = k_muli(k, k_urem(k, along, elems), operand->elem_bytes);
        Val at = chunk_bytes(operand, row, chunk);
        operand->lane_bytes[i] = k_add(k, at, rest);
    }
}

void mma_operand_aim(MmaOperand *operand, Val warp_first, uint32_t warp_elems) {
    uint32_t steps = operand->lower->variant->sched.gemm.tile_k * operand->elem_bytes / STEP_BYTES;
    uint32_t n = operand->is_mn_major ? warp_elems / 16 : steps;
    if (n > MAX_FRAGMENTS)
        ice(operand->k->arena, "a warp takes more than %d fragments", MAX_FRAGMENTS);
    if (operand->by_elements)
        aim_elements(operand, warp_first, n);
    else
        aim_matrices(operand, warp_first, n);
}

static void load_matrices(const MmaOperand *operand, const Codegen *k, Val stage, uint32_t i,
                          uint32_t step, Val *registers) {
    uint32_t column = operand->is_mn_major ? i : step,
             rows = (operand->is_mn_major ? step : i) * 16;
    uint32_t rows_bytes = rows * operand->row_chunks * CHUNK_BYTES;
    Val at = k_byte(k, k_byte(k, stage, operand->lane_bytes[column]), k_i32(k, rows_bytes));
    LLVMTypeRef type = LLVMTypeOf(at);
    const char *name = operand->is_mn_major ? "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.trans.b16"
                                            : "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16";
    Val matrices = k_intrinsic_of(k, name, &type, 1, &at, 1);
    for (uint32_t r = 0; r < FRAGMENT_REGISTERS; r++)
        registers[r] = k_extract_value(k, matrices, r);
}

/* Loads the registers in the instruction's order: for the lhs the halves of m before those of k,
 * for the rhs after them. */
static void load_elements(const MmaOperand *operand, const Codegen *k, Val stage, uint32_t i,
                          uint32_t step, Val *registers) {
    LLVMTypeRef type = operand->elem_bytes == 8 ? k_value_type(k, DT_F64, 1) : k->i32;
    uint32_t n = mma_fragment_registers(operand), n_k = n / 2;
    for (uint32_t r = 0; r < n; r++) {
        uint32_t own_half = operand->is_left ? r % 2 : r / n_k;
        uint32_t k_half = operand->is_left ? r / 2 : r % n_k;
        uint32_t rows = operand->is_mn_major ? step * STEP_BYTES / operand->elem_bytes + k_half * 4
                                             : i * 16 + own_half * 8;
        uint32_t place = operand->is_mn_major ? i * 2 + own_half : step;
        uint32_t rows_bytes = rows * operand->row_chunks * CHUNK_BYTES;
        Val at = k_byte(k, k_byte(k, stage, operand->lane_bytes[place]), k_i32(k, rows_bytes));
        registers[r] = k_load_aligned(k, type, at, operand->elem_bytes);
    }
}

/* Past the end of k the lhs is -0 and the rhs +0: adding their product changes no sum, not even
 * -0. */
static void pad_elements(const MmaOperand *operand, MmaStep step, Val *registers, uint32_t n) {
    Lower *lower = operand->lower;
    const Codegen *k = lower->k;
    Val lane = k_andi(k, operand->block->thread, 3);
    Val at_k = k_addi(k, k_add(k, step.k0, gpu_index(lower, lane)), (int64_t)step.step * 4);
    Val inside = k_slt(k, at_k, operand->block->k);
    Val pad = k_number(k, DT_F64, -0.0);
    for (uint32_t r = 0; r < n; r++) registers[r] = k_select(k, inside, registers[r], pad);
}

/* Rounds as PRIM_TF32 does, by the machine's instruction if it has one. A NaN becomes the canonical
 * one first, because the instruction cuts off the low bits. */
static Val round_to_tf32(const Codegen *k, Val bits) {
    Val value = k_bitcast(k, bits, k->f32);
    if (!k->target->has_tf32_rounding) return k_bitcast(k, math_unary(k, "tf32", value), k->i32);
    value = k_intrinsic_2(k, "llvm.nvvm.fmax.nan.f", value, value);
    return k_intrinsic_1(k, "llvm.nvvm.f2tf32.rn", value);
}

void mma_operand_fragment(const MmaOperand *operand, Val stage, uint32_t i, MmaStep step,
                          Val *registers) {
    const Codegen *k = operand->k;
    uint32_t n = mma_fragment_registers(operand);
    if (operand->by_elements)
        load_elements(operand, k, stage, i, step.step, registers);
    else
        load_matrices(operand, k, stage, i, step.step, registers);
    if (operand->ends_in_step) pad_elements(operand, step, registers, n);
    for (uint32_t r = 0; r < n && operand->rounds; r++)
        registers[r] = round_to_tf32(k, registers[r]);
}
