/* GEMMs of f16, bf16, tf32, i8, u8 or 8-bit floats by wgmma. See wgmma.h.
 *
 * Every output is one chain of wgmma steps of 16 from +0, ascending in k, with k padded by zeros.
 * Its bits equal those of mma.c's chain, as measured on an H200. Of 8-bit floats there is a chain
 * for each GEMM_F8_DEPTH elements of k, and mma.c has the same instructions. */
#include "codegen/gpu_gemm/wgmma_epilogue.h"
#include "codegen/gpu_gemm/im2col.h"

enum { BLOCK_ELEMS = 64 };
/* A kernel of three warpgroups starts with 168 registers per thread. The producer gives most of its
 * registers to the consumers (setmaxnreg). */
enum { FEW_REGISTERS = 40, MANY_REGISTERS = 232 };
/* The copy engine's L2 hint: evict the fetched data first. It made a lhs that is read once beside
 * many results slower, so only the rhs takes it. */
#define EVICT_FIRST INT64_C(0x12F0000000000000)

/* Setup. */

/* Side 0 is the lhs [m,k]; side i is the rhs [k,n] of kernel i - 1 of the launch. The maps of all
 * rhs operands follow that of the lhs. */
static void init_side(Wgmma *w, uint32_t i) {
    const Kernel *kernel = w->lower->kernel;
    WgmmaSide *side = &w->sides[i];
    uint32_t map = i ? (w->wide ? 2 : 1) : 0, n_right = w->lower->variant->n_maps - 1;
    side->map = &w->lower[i ? i - 1 : 0].variant->maps[map];
    side->parameter = w->lower->maps[i ? (i - 1) * n_right + map : 0];
    side->axis = i ? gemm_axis_n(kernel) : gemm_axis_m(kernel);
    side->tile = i ? w->sched->gemm.tile_n : w->sched->gemm.tile_m;
    side->is_mn_major = side->map->axes[0].axis == side->axis;
    if (i > 1 && side->is_mn_major && side->tile % BLOCK_ELEMS)
        ice(w->k->arena, "blocks of %u columns do not lie side by side", side->tile);
    side->is_read_once = i > 0 && gpu_gemm_reads_right_once(&w->lower[i - 1]);
    side->begin_bytes = w->tile_bytes;
    w->tile_bytes += wgmma_tile_bytes(side->tile, side->is_mn_major);
}

/* Sets up one code of a parallel launch, or the narrow tiles: sizes and layout of its stages. */
static void init_code(Wgmma *w, Lower *lower, const Sched *sched) {
    const Kernel *kernel = lower->kernel;
    w->lower = lower;
    w->sched = sched;
    w->tile_bytes = 0;
    w->epilogue_bytes = wgmma_epilogue_bytes(&lower->variant->sched);
    w->left_dtype = gemm_left_dtype(kernel);
    w->dtype = gemm_operand_dtype(kernel);
    w->acc = kernel->reduces.data[0].acc;
    w->acc_type = k_value_type(w->k, w->acc, 1);
    w->n_gemms = lower->n_together;
    w->width = w->n_gemms * w->sched->gemm.tile_n;
    w->n_groups = w->sched->gemm.warps_m / WGMMA_GROUP_WARPS;
    if (w->n_gemms != wgmma_n_gemms(w->sched) || w->n_gemms > WGMMA_MAX_GEMMS ||
        w->width > WGMMA_MAX_WIDTH || w->n_groups * WGMMA_ROWS != w->sched->gemm.tile_m)
        ice(lower->k->arena, "no instruction for %u tiles of %u x %u", w->n_gemms,
            w->sched->gemm.tile_m, w->sched->gemm.tile_n);
    for (uint32_t i = 0; i <= w->n_gemms; i++) init_side(w, i);
    w->stage_bytes = w->wide ? w->wide->stage_bytes : w->tile_bytes;
    w->tiles = wgmma_tiles(w);
}

static void init_tail(Wgmma *w) {
    Wgmma *tail = arena_array(w->k->arena, Wgmma, 1);
    Sched *sched = arena_array(w->k->arena, Sched, 1);
    *sched = wgmma_tail(w->sched);
    *tail = *w;
    tail->wide = w;
    init_code(tail, w->lower, sched);
    w->tail = tail;
}

void wgmma_place_thread(Wgmma *w) {
    const Codegen *k = w->k;
    w->thread = gpu_thread(k);
    /* The shuffle tells LLVM and ptxas that the warp's number is the same in all lanes. */
    Val args[4] = {k_i32(k, -1), k_lshri(k, w->thread, 5), k_i32(k, 0), k_i32(k, WARP_THREADS - 1)};
    w->warp = k_intrinsic(k, "llvm.nvvm.shfl.sync.idx.i32", args, 4);
    w->group = k_lshri(k, w->warp, 2);
    w->in_group = k_andi(k, w->thread, WGMMA_GROUP_THREADS - 1);
    if (w->sched->cluster > 1) w->rank = gpu_special(k, "cluster.ctarank");
}

static Loop each_stage(const Wgmma *w, GpuBand of_k) {
    return loop_begin(w->k, of_k.first, of_k.end, wgmma_depth(w->dtype));
}

/* The producer warp. */

static Val coordinate(const Lower *lower, Val index) {
    if (lower->index_type == lower->k->i32) return index;
    return k_trunc(lower->k, index, lower->k->i32);
}

void wgmma_copy_box(const Lower *lower, const WgmmaBox *box, const GemmBlock *block) {
    static const char *const names[] = {[2] = "llvm.nvvm.cp.async.bulk.tensor.g2s.tile.2d",
                                        [3] = "llvm.nvvm.cp.async.bulk.tensor.g2s.tile.3d",
                                        [4] = "llvm.nvvm.cp.async.bulk.tensor.g2s.tile.4d",
                                        [5] = "llvm.nvvm.cp.async.bulk.tensor.g2s.tile.5d"};
    const Codegen *k = lower->k;
    LLVMTypeRef cluster_ptr = LLVMPointerTypeInContext(k->context, 7);
    LLVMTypeRef i16 = k->i16;
    Val args[3 + MAX_MAP_RANK + 5];
    uint32_t n = 0;
    args[n++] = k_addrspace_cast(k, box->to, cluster_ptr);
    args[n++] = box->barrier;
    args[n++] = box->parameter;
    for (uint32_t i = 0; i < box->map->rank; i++) {
        uint32_t axis = box->map->axes[i].axis;
        bool is_k = axis == gemm_axis_k(lower->kernel);
        args[n++] = coordinate(lower, is_k                ? box->k
                                      : axis == box->axis ? box->own
                                                          : block->point.axis[axis]);
    }
    args[n++] = k_int(i16, box->blocks);
    args[n++] = k_int(k->i64, EVICT_FIRST);
    args[n++] = k_int(k->i1, box->blocks != 0);
    args[n++] = k_int(k->i1, box->is_read_once);
    args[n++] = k_i32(k, 0);
    k_intrinsic(k, names[box->map->rank], args, n);
}

/* One copy of the box at (`own`, `k`) to `bytes` in shared memory; to_all: multicast to the
 * cluster. */
typedef struct Copy {
    Val own, k; /* index_type: first element of the box along m or n, and along k */
    Val bytes;  /* i32: offset in shared memory */
    bool to_all;
} Copy;

static void start_copy(const Wgmma *w, const WgmmaSide *side, const GemmBlock *block, Val barrier,
                       Copy copy) {
    if (!side->map->im2col) {
        WgmmaBox box = {.map = side->map,
                        .parameter = side->parameter,
                        .axis = side->axis,
                        .own = copy.own,
                        .k = copy.k,
                        .to = wgmma_at(w, copy.bytes),
                        .barrier = barrier,
                        .blocks = copy.to_all ? (1u << wgmma_cluster(w)) - 1 : 0,
                        .is_read_once = side->is_read_once};
        wgmma_copy_box(w->lower, &box, block);
        return;
    }
    WindowsCopy windows = {.windows = side->map->im2col,
                           .map = side->parameter,
                           .to = wgmma_at(w, copy.bytes),
                           .barrier = barrier,
                           .row = coordinate(w->lower, copy.own),
                           .k = coordinate(w->lower, copy.k)};
    gpu_im2col_copy(w->k, &windows);
}

/* `at` plus `number` times `step`, in the type of `at`. */
static Val offset(const Wgmma *w, Val at, Val number, uint32_t step) {
    const Codegen *k = w->k;
    Val by = k_muli(k, number, step);
    if (LLVMTypeOf(at) != k->i32) by = gpu_index(w->lower, by);
    return k_add(k, at, by);
}

/* Copies the tile of a side. In a cluster, each block copies its share of a common tile: of a
 * straight tile a range of rows, of a transposed one a range of rows of each block. */
static void copy_side(const Wgmma *w, const WgmmaSide *side, const GemmBlock *block, Val k0,
                      Val stage) {
    bool is_left = side == &w->sides[0], to_all = !is_left && w->rank;
    uint32_t rows = side->map->axes[1].box, width = side->is_mn_major ? BLOCK_ELEMS : side->tile;
    Copy copy = {.own = is_left ? block->m0 : block->n0, .k = k0, .to_all = to_all};
    copy.bytes = offset(w, k_i32(w->k, side->begin_bytes), stage, w->stage_bytes);
    if (to_all) {
        Val *moves = side->is_mn_major ? &copy.k : &copy.own;
        *moves = offset(w, *moves, w->rank, rows);
        copy.bytes = offset(w, copy.bytes, w->rank, rows * WGMMA_SWIZZLE_BYTES);
    }
    for (uint32_t along = 0; along < side->tile; along += width) {
        start_copy(w, side, block, wgmma_full(w, stage), copy);
        copy.own = offset(w, copy.own, k_i32(w->k, 1), width);
        copy.bytes = offset(w, copy.bytes, k_i32(w->k, 1), width * WGMMA_SWIZZLE_BYTES);
    }
}

static void fill_stage(const Wgmma *w, const GemmBlock *block, Val k0, PipelineState place) {
    const Codegen *k = w->k;
    Val opposite = k_xori(k, place.parity, 1);
    wgmma_wait(w, wgmma_empty(w, place.stage), opposite);
    Val full = wgmma_full(w, place.stage);
    const WgmmaSide *left = &w->sides[0];
    uint32_t left_out = left->is_mn_major ? 0 : left->tile - left->map->axes[1].box;
    gpu_mbarrier_expect(k, full, w->tile_bytes - left_out * WGMMA_SWIZZLE_BYTES);
    for (uint32_t i = 0; i <= w->n_gemms; i++) copy_side(w, &w->sides[i], block, k0, place.stage);
}

/* Copies the tiles of all steps of k of an output tile. `ring` is stage and parity. */
static void fill_tile(Wgmma *w, Val number, Val *ring) {
    const Codegen *k = w->k;
    wgmma_take_maps(w, wgmma_kernel_of_tile(w, &number));
    GemmBlock block = wgmma_tile_at(w, number);
    Loop stages = each_stage(w, wgmma_k_of_number(w, number));
    loop_carry(k, &stages, ring, 2);
    PipelineState place = {ring[0], ring[1]};
    fill_stage(w, &block, stages.index, place);
    place = pipeline_next(w->k, place, w->sched->gemm.stages);
    ring[0] = place.stage;
    ring[1] = place.parity;
    loop_end(k, &stages);
}

static void fill_tiles(Wgmma *w, Val *ring) {
    WgmmaWalk walk = wgmma_walk(w, ring, 2);
    wgmma_work_by_code(w, walk.number, fill_tile, ring, 2, 2);
    wgmma_walked(w, &walk);
}

static void set_registers(const Wgmma *w, bool more) {
    if (w->n_groups < 2 || w->sched->gemm.store_warps)
        return; /* a single consumer group has
                 * registers enough */
    k_intrinsic_1(w->k,
                  more ? "llvm.nvvm.setmaxnreg.inc.sync.aligned.u32"
                       : "llvm.nvvm.setmaxnreg.dec.sync.aligned.u32",
                  k_i32(w->k, more ? MANY_REGISTERS : FEW_REGISTERS));
}

/* One elected thread of one warp copies; the other warps of its group may store results. */
static void run_copying(Wgmma *w) {
    const Codegen *k = w->k;
    set_registers(w, false);
    Val is_first = k_eqi(k, w->warp, w->sched->gemm.warps_m);
    If warp = if_begin(k, is_first);
    Val elected = k_intrinsic_1(k, "llvm.nvvm.elect.sync", k_i32(k, -1));
    If lane = if_begin(k, k_extract_value(k, elected, 1));
    Val ring[2] = {k_i32(k, 0), k_i32(k, 0)};
    fill_tiles(w, ring);
    if (w->tail) fill_tiles(w->tail, ring);
    if_end(k, &lane);
    if_end(k, &warp);
    if (!w->sched->gemm.store_warps) return;
    If others = if_begin(k, k_not(k, is_first));
    Val parity = k_i32(k, 0);
    wgmma_store_tiles(w, &parity);
    if (w->tail) wgmma_store_tiles(w->tail, &parity);
    if_end(k, &others);
}

/* The consumer warpgroups. */

/* Allocates the accumulators: see wgmma_multiply. */
static void make_accumulators(const Wgmma *w, Val *accs) {
    for (uint32_t i = 0; i < w->width / 2; i++) accs[i] = k_alloca(w->k, w->acc_type);
}

/* Multiplies all steps of k, but does not wait for the last ones. The accumulators begin at +0. A
 * stage is released once the next stage's multiplications have begun. Advances `ring`, and returns
 * the stage that is still to be released. */
static Val multiply_stages(const Wgmma *w, GpuBand of_k, PipelineState *ring, const Val *accs) {
    const Codegen *k = w->k;
    Val zero = LLVMConstNull(w->acc_type);
    for (uint32_t i = 0; i < w->width / 2; i++) k_store(k, zero, accs[i]);
    Val before = k_i32(k, 0); /* the stage before */
    Loop loop = each_stage(w, of_k);
    loop_carry(k, &loop, &ring->stage, 1);
    loop_carry(k, &loop, &ring->parity, 1);
    loop_carry(k, &loop, &before, 1);
    wgmma_wait(w, wgmma_full(w, ring->stage), ring->parity);
    wgmma_multiply(w, ring->stage, accs, false);
    k_intrinsic_1(k, "llvm.nvvm.wgmma.wait_group.sync.aligned", k_int(k->i64, 1));
    Val is_later = k_sgt(k, loop.index, of_k.first);
    wgmma_release(w, before, is_later);
    before = ring->stage;
    *ring = pipeline_next(w->k, *ring, w->sched->gemm.stages);
    loop_end(k, &loop);
    return before;
}

/* The same for 8-bit floats, but waits. A stage is as deep as a part: its sums, `parts`, are added
 * to the accumulators. Every stage but the last is released. */
static Val multiply_parts(const Wgmma *w, GpuBand of_k, PipelineState *ring, const Val *accs,
                          const Val *parts) {
    const Codegen *k = w->k;
    Val zero = LLVMConstNull(w->acc_type);
    uint32_t n = w->width / 2;
    for (uint32_t i = 0; i < n; i++) k_store(k, zero, accs[i]);
    Val last = k_i32(k, 0);
    Loop loop = each_stage(w, of_k);
    loop_carry(k, &loop, &ring->stage, 1);
    loop_carry(k, &loop, &ring->parity, 1);
    loop_carry(k, &loop, &last, 1);
    wgmma_wait(w, wgmma_full(w, ring->stage), ring->parity);
    wgmma_multiply(w, ring->stage, parts, true);
    wgmma_finish(w, parts);
    Val next = k_addi(k, loop.index, wgmma_depth(w->dtype));
    Val has_next = k_slt(k, next, of_k.end);
    wgmma_release(w, ring->stage, has_next);
    for (uint32_t i = 0; i < n; i++) {
        Val part = k_load(k, w->acc_type, parts[i]), acc = k_load(k, w->acc_type, accs[i]);
        k_store(k, k_fadd(k, acc, part), accs[i]);
    }
    last = ring->stage;
    *ring = pipeline_next(w->k, *ring, w->sched->gemm.stages);
    loop_end(k, &loop);
    return last;
}

/* `values` are the accumulators and the last stage. */
static void epilogue_of_code(Wgmma *w, Val number, Val *values) {
    WgmmaEpilogue epilogue = wgmma_begin_epilogue(w, number);
    wgmma_end_epilogue(w, &epilogue, values[w->width / 2], values);
}

/* `ring` has the stage, its parity, and the parity of the results' buffer. */
static void multiply_tiles(Wgmma *w, Val *ring) {
    Val values[WGMMA_MAX_VALUES], parts[WGMMA_MAX_ACCUMULATORS];
    bool is_one = w->lower->n_codes == 1, has_parts = dtype_in(w->dtype, DTS_STORED);
    WgmmaEpilogue epilogue;
    make_accumulators(w, values);
    if (has_parts) make_accumulators(w, parts);
    WgmmaWalk walk = wgmma_walk(w, ring, 3);
    bool has_store_warps = w->sched->gemm.store_warps > 0;
    if (is_one && !has_store_warps) epilogue = wgmma_begin_epilogue(w, walk.number);
    PipelineState place = {ring[0], ring[1]};
    Val *last_stage = &values[w->width / 2];
    GpuBand of_k = wgmma_k_of_tile(w, walk.number);
    *last_stage = has_parts ? multiply_parts(w, of_k, &place, values, parts)
                            : multiply_stages(w, of_k, &place, values);
    if (has_store_warps)
        ring[2] = wgmma_leave_results(w, &walk, ring[2], *last_stage, values);
    else if (is_one)
        wgmma_end_epilogue(w, &epilogue, *last_stage, values);
    else
        wgmma_work_by_code(w, walk.number, epilogue_of_code, values, w->width / 2 + 1, 0);
    ring[0] = place.stage;
    ring[1] = place.parity;
    wgmma_walked(w, &walk);
}

static void run_multiplying(Wgmma *w) {
    Val ring[3] = {k_i32(w->k, 0), k_i32(w->k, 0), k_i32(w->k, 0)};
    set_registers(w, true);
    if (w->lower->rows) {
        wgmma_take_smem(w, w->lower);
        wgmma_take_smem(w, w->lower->rows);
    }
    multiply_tiles(w, ring);
    if (w->tail) multiply_tiles(w->tail, ring);
}

void emit_gpu_gemm_wgmma(Lower *lower) {
    Wgmma *w = arena_array(lower->k->arena, Wgmma, lower->n_codes);
    const Codegen *k = w->k = lower->k;
    w->sched = &lower->variant->sched;
    w->shared = gpu_shared_dynamic(k);
    wgmma_place_thread(w);
    for (uint32_t c = lower->n_codes; c-- > 0;) {
        w[c] = w[0];
        init_code(&w[c], &lower[c], &lower[c].variant->sched);
    }
    if (w->sched->gemm.tail_n) init_tail(w);
    wgmma_init_barriers(w);
    LLVMBasicBlockRef copying = k_block(k, "copying");
    LLVMBasicBlockRef multiplying = k_block(k, "multiplying");
    LLVMBasicBlockRef done = k_block(k, "finished");
    Val copies = k_eqi(k, w->group, w->n_groups);
    k_cond_br(k, copies, copying, multiplying);
    k_goto(k, copying);
    run_copying(w);
    k_br(k, done);
    k_goto(k, multiplying);
    run_multiplying(w);
    k_branch(k, done);
    if (w->rank)
        wgmma_meet(w); /* a block must not exit while others of the cluster signal its
                        * barriers */
}
