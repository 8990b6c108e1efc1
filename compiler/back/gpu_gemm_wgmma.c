/* Contractions of f16 or bf16 on tensor cores, fed from shared memory. See gpu_gemm_wgmma.h.
 *
 * Every output is one chain of wgmma steps of 16 from +0, ascending in k, k padded with zeros: bit
 * for bit the chain of gpu_gemm_mma.c, as measured on an H200. */
#include "back/gpu_gemm_wgmma.h"

#include <string.h>

enum { GROUP_THREADS = WGMMA_GROUP_WARPS * WARP, BLOCK_ELEMS = 64, MAX_CARRIED = 8, MAX_LANES = 4 };
/* Of 168 registers per thread, three groups' worth, the copying group leaves most to the others. */
enum { FEW_REGISTERS = 40, MANY_REGISTERS = 232 };
/* The copy engine's hint to the cache: what is fetched is given up before all else. For a left
 * factor that is read once, beside many results, it was slower. */
#define EVICT_FIRST INT64_C(0x12F0000000000000)

static LLVMValueRef i32_const(const Wgmma *w, int64_t value) {
    return unit_int(w->unit->i32, value);
}

/* In shared memory. */
static LLVMValueRef wgmma_at(const Wgmma *w, LLVMValueRef bytes) {
    return gpu_shared_at(w->unit, w->shared, w->unit->i8, bytes);
}

/* Setup. */

/* The left factor, or the right one of phase i - 1. The maps of all phases' right factors follow
 * that of the left one. */
static void init_side(Wgmma *w, uint32_t i) {
    const Kernel *kernel = w->lower->kernel;
    WgmmaSide *side = &w->sides[i];
    uint32_t map = i ? (w->wide ? 2 : 1) : 0, n_right = w->lower->variant->n_maps - 1;
    side->map = &w->lower[i ? i - 1 : 0].variant->maps[map];
    side->parameter = w->lower->maps[i ? (i - 1) * n_right + map : 0];
    side->axis = i ? gemm_axis_n(kernel) : gemm_axis_m(kernel);
    side->tile = i ? w->sched->tile_n : w->sched->tile_m;
    side->is_turned = side->map->axes[0].axis == side->axis;
    if (i > 1 && side->is_turned && side->tile % BLOCK_ELEMS)
        ice(w->unit->arena, "blocks of %u columns do not lie side by side", side->tile);
    side->is_read_once = i > 0 && gpu_gemm_reads_right_once(&w->lower[i - 1]);
    side->begin_bytes = w->tile_bytes;
    w->tile_bytes += wgmma_tile_bytes(side->tile, side->is_turned);
}

/* Of one code, or of the narrow tiles: what it multiplies, and where that lies. */
static void init_code(Wgmma *w, Lower *lower, const Sched *sched) {
    Unit *unit = lower->unit;
    const Kernel *kernel = lower->kernel;
    w->lower = lower;
    w->sched = sched;
    w->tile_bytes = 0;
    w->drain_bytes = wgmma_drain_bytes(&lower->variant->sched);
    w->dtype = gemm_factor_dtype(kernel);
    w->n_products = lower->n_together;
    w->width = w->n_products * w->sched->tile_n;
    w->n_groups = w->sched->warps_m / WGMMA_GROUP_WARPS;
    if (w->n_products != wgmma_products(w->sched) || w->n_products > WGMMA_MAX_PRODUCTS ||
        w->width > WGMMA_MAX_WIDTH || w->n_groups * WGMMA_ROWS != w->sched->tile_m)
        ice(unit->arena, "no instruction for %u tiles of %u x %u", w->n_products, w->sched->tile_m,
            w->sched->tile_n);
    for (uint32_t i = 0; i <= w->n_products; i++) init_side(w, i);
    w->stage_bytes = w->wide ? w->wide->stage_bytes : w->tile_bytes;
    w->tiles = wgmma_tiles(w);
}

static void init_tail(Wgmma *w) {
    Wgmma *tail = arena_array(w->unit->arena, Wgmma, 1);
    Sched *sched = arena_array(w->unit->arena, Sched, 1);
    *sched = wgmma_tail(w->sched);
    *tail = *w;
    tail->wide = w;
    init_code(tail, w->lower, sched);
    w->tail = tail;
}

static void place_thread(Wgmma *w) {
    Unit *unit = w->unit;
    LLVMBuilderRef builder = unit->builder;
    w->shared = gpu_shared_dynamic(unit);
    w->thread = gpu_thread(unit);
    /* The same for all lanes, as they themselves cannot see. */
    LLVMValueRef args[4] = {i32_const(w, -1),
                            LLVMBuildLShr(builder, w->thread, i32_const(w, 5), ""), i32_const(w, 0),
                            i32_const(w, WARP - 1)};
    w->warp = unit_intrinsic(unit, "llvm.nvvm.shfl.sync.idx.i32", NULL, 0, args, 4);
    w->group = LLVMBuildLShr(builder, w->warp, i32_const(w, 2), "");
    w->in_group = LLVMBuildAnd(builder, w->thread, i32_const(w, GROUP_THREADS - 1), "");
    if (w->sched->cluster > 1) w->rank = gpu_special(unit, "cluster.ctarank");
}

/* Barriers. */

static uint32_t barriers_begin(const Wgmma *w) {
    return w->sched->stages * w->stage_bytes + w->sched->warps_m * w->drain_bytes;
}

static LLVMValueRef barrier_at(const Wgmma *w, LLVMValueRef stage, uint32_t begin) {
    LLVMBuilderRef builder = w->unit->builder;
    LLVMValueRef at = LLVMBuildMul(builder, stage, i32_const(w, WGMMA_BARRIER_BYTES), "");
    return wgmma_at(w, LLVMBuildAdd(builder, at, i32_const(w, begin), ""));
}

/* Barriers of a stage. */
static LLVMValueRef wgmma_full(const Wgmma *w, LLVMValueRef stage) {
    return barrier_at(w, stage, barriers_begin(w));
}

static LLVMValueRef wgmma_empty(const Wgmma *w, LLVMValueRef stage) {
    return barrier_at(w, stage, barriers_begin(w) + w->sched->stages * WGMMA_BARRIER_BYTES);
}

/* All threads of the block, or of the cluster. */
static void meet(const Wgmma *w) {
    if (!w->rank) {
        gpu_barrier(w->unit);
        return;
    }
    unit_intrinsic(w->unit, "llvm.nvvm.barrier.cluster.arrive", NULL, 0, NULL, 0);
    unit_intrinsic(w->unit, "llvm.nvvm.barrier.cluster.wait", NULL, 0, NULL, 0);
}

static void init_barriers(const Wgmma *w) {
    const Unit *unit = w->unit;
    LLVMValueRef is_first = LLVMBuildICmp(unit->builder, LLVMIntEQ, w->thread, i32_const(w, 0), "");
    uint32_t n_releases = w->n_groups * wgmma_cluster(w);
    If first = if_begin(unit, w->lower->function, is_first);
    for (uint32_t s = 0; s < w->sched->stages; s++) {
        LLVMValueRef full = wgmma_full(w, i32_const(w, s));
        LLVMValueRef empty = wgmma_empty(w, i32_const(w, s));
        gpu_mbarrier_init(unit, full, 1);
        gpu_mbarrier_init(unit, empty, n_releases);
    }
    gpu_mbarrier_publish(unit);
    unit_intrinsic(unit, "llvm.nvvm.fence.proxy.async.shared_cta", NULL, 0, NULL, 0);
    if_end(unit, &first);
    meet(w);
}

static void wgmma_wait(const Wgmma *w, LLVMValueRef barrier, LLVMValueRef parity) {
    gpu_mbarrier_wait(w->lower, barrier, parity, false);
}

static RingPlace wgmma_ring_next(const Wgmma *w, RingPlace place) {
    LLVMBuilderRef builder = w->unit->builder;
    LLVMValueRef next = LLVMBuildAdd(builder, place.stage, i32_const(w, 1), "");
    LLVMValueRef wraps =
        LLVMBuildICmp(builder, LLVMIntEQ, next, i32_const(w, w->sched->stages), "");
    LLVMValueRef flip = LLVMBuildZExt(builder, wraps, w->unit->i32, "");
    return (RingPlace){.stage = LLVMBuildSelect(builder, wraps, i32_const(w, 0), next, ""),
                       .parity = LLVMBuildXor(builder, place.parity, flip, "")};
}

/* One thread of the group for each block of the cluster says there that a stage may be filled
 * again. `condition` may be NULL. It orders nothing but what the copy engine and the tensor cores
 * read and write, so that the block's own scope is enough. */
static void release(const Wgmma *w, LLVMValueRef stage, LLVMValueRef condition) {
    const Unit *unit = w->unit;
    LLVMBuilderRef builder = unit->builder;
    LLVMValueRef speaks =
        LLVMBuildICmp(builder, LLVMIntULT, w->in_group, i32_const(w, wgmma_cluster(w)), "");
    if (condition) speaks = LLVMBuildAnd(builder, speaks, condition, "");
    If one = if_begin(unit, w->lower->function, speaks);
    LLVMValueRef args[2] = {wgmma_empty(w, stage), i32_const(w, 1)};
    const char *name = "llvm.nvvm.mbarrier.arrive.scope.cta.space.cta";
    if (w->rank) {
        args[0] = gpu_cluster_at(unit, args[0], w->in_group);
        name = "llvm.nvvm.mbarrier.arrive.scope.cta.space.cluster";
    }
    unit_intrinsic(unit, name, NULL, 0, args, 2);
    if_end(unit, &one);
}

/* Tiles. */

/* The block's own part of a tile; its rows may begin beyond the matrix in a cluster. */
static GemmBlock tile_at(const Wgmma *w, LLVMValueRef number) {
    GemmBlock block = gpu_gemm_block_at(w->lower, number, &w->tiles);
    if (!w->rank) return block;
    LLVMBuilderRef builder = w->unit->builder;
    LLVMValueRef below = LLVMBuildMul(builder, w->rank, i32_const(w, w->sched->tile_m), "");
    block.m0 = LLVMBuildAdd(builder, block.m0, gpu_index(w->lower, below), "");
    return block;
}

static Loop each_stage(const Wgmma *w, LLVMValueRef k) {
    return loop_begin(w->unit, w->lower->function, lower_index_const(w->lower, 0), k,
                      lower_index_const(w->lower, wgmma_depth(w->dtype)));
}

/* The copying warp. */

static LLVMValueRef coordinate(const Wgmma *w, LLVMValueRef index) {
    if (w->lower->index_type == w->unit->i32) return index;
    return LLVMBuildTrunc(w->unit->builder, index, w->unit->i32, "");
}

/* One copy: of the box from (`own`, `k`) to `bytes` in shared memory; to all of the cluster, or to
 * the own block alone. */
typedef struct Copy {
    LLVMValueRef own, k; /* index_type: where the box begins along m or n, and k */
    LLVMValueRef bytes;  /* i32 */
    bool to_all;
} Copy;

static void start_copy(const Wgmma *w, const WgmmaSide *side, const GemmBlock *block,
                       LLVMValueRef barrier, Copy copy) {
    static const char *const names[] = {[2] = "llvm.nvvm.cp.async.bulk.tensor.g2s.tile.2d",
                                        [3] = "llvm.nvvm.cp.async.bulk.tensor.g2s.tile.3d",
                                        [4] = "llvm.nvvm.cp.async.bulk.tensor.g2s.tile.4d",
                                        [5] = "llvm.nvvm.cp.async.bulk.tensor.g2s.tile.5d"};
    const Unit *unit = w->unit;
    LLVMTypeRef cluster_ptr = LLVMPointerTypeInContext(unit->context, 7);
    LLVMTypeRef i16 = LLVMInt16TypeInContext(unit->context);
    LLVMValueRef args[3 + MAX_MAP_RANK + 5];
    uint32_t n = 0, blocks = copy.to_all ? (1u << wgmma_cluster(w)) - 1 : 0;
    args[n++] = LLVMBuildAddrSpaceCast(unit->builder, wgmma_at(w, copy.bytes), cluster_ptr, "");
    args[n++] = barrier;
    args[n++] = side->parameter;
    for (uint32_t i = 0; i < side->map->rank; i++) {
        uint32_t axis = side->map->axes[i].axis;
        bool is_k = axis == gemm_axis_k(w->lower->kernel);
        args[n++] = coordinate(w, is_k                 ? copy.k
                                  : axis == side->axis ? copy.own
                                                       : block->point.axis[axis]);
    }
    args[n++] = unit_int(i16, blocks);
    args[n++] = unit_int(unit->i64, EVICT_FIRST);
    args[n++] = unit_int(unit->i1, copy.to_all);
    args[n++] = unit_int(unit->i1, side->is_read_once);
    args[n++] = i32_const(w, 0);
    unit_intrinsic(unit, names[side->map->rank], NULL, 0, args, n);
}

/* `number` times `step`, as an i32 and as an index. */
static LLVMValueRef offset(const Wgmma *w, LLVMValueRef at, LLVMValueRef number, uint32_t step) {
    LLVMBuilderRef builder = w->unit->builder;
    LLVMValueRef by = LLVMBuildMul(builder, number, i32_const(w, step), "");
    if (LLVMTypeOf(at) != w->unit->i32) by = gpu_index(w->lower, by);
    return LLVMBuildAdd(builder, at, by, "");
}

/* The whole tile; in a cluster the own share of a common one: of a straight tile its rows, of a
 * turned one the rows of each block. */
static void copy_side(const Wgmma *w, const WgmmaSide *side, const GemmBlock *block,
                      LLVMValueRef k0, LLVMValueRef stage) {
    bool is_left = side == &w->sides[0], to_all = !is_left && w->rank;
    uint32_t rows = side->map->axes[1].box, width = side->is_turned ? BLOCK_ELEMS : side->tile;
    LLVMValueRef begin = i32_const(w, side->begin_bytes);
    Copy copy = {.own = is_left ? block->m0 : block->n0, .k = k0, .to_all = to_all};
    copy.bytes = offset(w, begin, stage, w->stage_bytes);
    if (to_all) {
        LLVMValueRef *moves = side->is_turned ? &copy.k : &copy.own;
        *moves = offset(w, *moves, w->rank, rows);
        copy.bytes = offset(w, copy.bytes, w->rank, rows * WGMMA_SWIZZLE_BYTES);
    }
    for (uint32_t along = 0; along < side->tile; along += width) {
        start_copy(w, side, block, wgmma_full(w, stage), copy);
        copy.own = offset(w, copy.own, i32_const(w, 1), width);
        copy.bytes = offset(w, copy.bytes, i32_const(w, 1), width * WGMMA_SWIZZLE_BYTES);
    }
}

static void fill_stage(const Wgmma *w, const GemmBlock *block, LLVMValueRef k0, RingPlace place) {
    const Unit *unit = w->unit;
    LLVMValueRef opposite = LLVMBuildXor(unit->builder, place.parity, i32_const(w, 1), "");
    wgmma_wait(w, wgmma_empty(w, place.stage), opposite);
    LLVMValueRef full = wgmma_full(w, place.stage);
    const WgmmaSide *left = &w->sides[0];
    uint32_t left_out = left->is_turned ? 0 : left->tile - left->map->axes[1].box;
    gpu_mbarrier_expect(unit, full, w->tile_bytes - left_out * WGMMA_SWIZZLE_BYTES);
    for (uint32_t i = 0; i <= w->n_products; i++)
        copy_side(w, &w->sides[i], block, k0, place.stage);
}

/* All of k of a tile; `ring`: stage and parity. */
static void fill_tile(Wgmma *w, LLVMValueRef number, LLVMValueRef *ring) {
    const Unit *unit = w->unit;
    wgmma_take_maps(w, wgmma_part_of_tile(w, &number));
    GemmBlock block = tile_at(w, number);
    Loop stages = each_stage(w, lower_dim(w->lower, wgmma_extent_of_k(w)));
    loop_carry(unit, &stages, ring, 2);
    RingPlace place = {ring[0], ring[1]};
    fill_stage(w, &block, stages.index, place);
    place = wgmma_ring_next(w, place);
    ring[0] = place.stage;
    ring[1] = place.parity;
    loop_end_carry(unit, &stages, ring, 2);
}

static void fill_tiles(Wgmma *w, LLVMValueRef *ring) {
    const Unit *unit = w->unit;
    Loop tiles = wgmma_each_tile(w);
    loop_carry(unit, &tiles, ring, 2);
    if (w->lower->n_codes > 1)
        wgmma_work_by_code(w, tiles.index, fill_tile, ring, 2, 2);
    else
        fill_tile(w, tiles.index, ring);
    loop_end_carry(unit, &tiles, ring, 2);
}

static void set_registers(const Wgmma *w, bool more) {
    if (w->n_groups < 2) return; /* there are enough */
    LLVMValueRef n = i32_const(w, more ? MANY_REGISTERS : FEW_REGISTERS);
    unit_intrinsic(w->unit,
                   more ? "llvm.nvvm.setmaxnreg.inc.sync.aligned.u32"
                        : "llvm.nvvm.setmaxnreg.dec.sync.aligned.u32",
                   NULL, 0, &n, 1);
}

/* One thread of one warp. */
static void run_copying(Wgmma *w) {
    const Unit *unit = w->unit;
    LLVMBuilderRef builder = unit->builder;
    set_registers(w, false);
    LLVMValueRef is_first =
        LLVMBuildICmp(builder, LLVMIntEQ, w->warp, i32_const(w, w->sched->warps_m), "");
    If warp = if_begin(unit, w->lower->function, is_first);
    LLVMValueRef all = i32_const(w, -1);
    LLVMValueRef elected = unit_intrinsic(unit, "llvm.nvvm.elect.sync", NULL, 0, &all, 1);
    If lane = if_begin(unit, w->lower->function, LLVMBuildExtractValue(builder, elected, 1, ""));
    LLVMValueRef ring[2] = {i32_const(w, 0), i32_const(w, 0)};
    fill_tiles(w, ring);
    if (w->tail) fill_tiles(w->tail, ring);
    if_end(unit, &lane);
    if_end(unit, &warp);
}

/* The multiplying groups. */

/* Registers to add up in: see wgmma_multiply. */
static void make_accumulators(const Wgmma *w, LLVMValueRef *accs) {
    for (uint32_t i = 0; i < w->width / 2; i++)
        accs[i] = LLVMBuildAlloca(w->unit->builder, w->unit->f32, "");
}

/* All of k but for the wait for what is under way; accs begin at +0. Leaves the ring after it and
 * the stage that is still to be released. A stage is released when the next one's multiplications
 * have begun. */
static LLVMValueRef multiply_stages(const Wgmma *w, LLVMValueRef k, RingPlace *ring,
                                    const LLVMValueRef *accs) {
    const Unit *unit = w->unit;
    LLVMBuilderRef builder = unit->builder;
    LLVMValueRef zero = LLVMConstReal(unit->f32, 0);
    for (uint32_t i = 0; i < w->width / 2; i++) LLVMBuildStore(builder, zero, accs[i]);
    LLVMValueRef values[3] = {ring->stage, ring->parity, i32_const(w, 0) /* the stage before */};
    Loop loop = each_stage(w, k);
    loop_carry(unit, &loop, values, 3);
    RingPlace place = {values[0], values[1]};
    wgmma_wait(w, wgmma_full(w, place.stage), place.parity);
    wgmma_multiply(w, place.stage, accs);
    LLVMValueRef one = unit_int(unit->i64, 1);
    unit_intrinsic(unit, "llvm.nvvm.wgmma.wait_group.sync.aligned", NULL, 0, &one, 1);
    LLVMValueRef is_later =
        LLVMBuildICmp(builder, LLVMIntSGT, loop.index, lower_index_const(w->lower, 0), "");
    release(w, values[2], is_later);
    values[2] = place.stage;
    place = wgmma_ring_next(w, place);
    values[0] = place.stage;
    values[1] = place.parity;
    loop_end_carry(unit, &loop, values, 3);
    *ring = (RingPlace){values[0], values[1]};
    return values[2];
}

/* Results. A warp drains its 16 rows in parts: 8 rows of some columns of every product at a time.
 */

typedef struct Drain {
    uint32_t columns, n_parts, lanes, across; /* of a part; lanes' groups side by side */
    uint32_t step, unroll;                    /* rows at a time, and of those at once */
    GemmBlock *tiles;                         /* per product */
    LLVMValueRef own;                         /* the warp's place in shared memory */
    LLVMValueRef place;                       /* where this lane's accumulators go in it */
    LLVMValueRef first_row, in_part;          /* i32: of this lane's in a part */
} Drain;

/* The same tile to the kernel of each phase. */
static GemmBlock *tiles_of_phases(const Wgmma *w, const GemmBlock *tile) {
    GemmBlock *tiles = arena_array(w->unit->arena, GemmBlock, w->n_products);
    for (uint32_t p = 0; p < w->n_products; p++) {
        tiles[p] = *tile;
        if (p == 0) continue;
        tiles[p].lower = &w->lower[p];
        tiles[p].point = point_new(&w->lower[p], 1);
        memcpy(tiles[p].point.axis, tile->point.axis, sizeof tile->point.axis);
    }
    return tiles;
}

/* Accumulators 4j + 2h and the next of a thread are columns 8j + 2t and the next of row g + 8h,
 * where g is the lane's number / 4 and t the rest. */
static Drain drain_init(const Wgmma *w, const GemmBlock *tile) {
    LLVMBuilderRef builder = w->unit->builder;
    LLVMValueRef lane = LLVMBuildAnd(builder, w->thread, i32_const(w, WARP - 1), "");
    Drain d = {.lanes = gpu_gemm_lanes(tile, MAX_LANES), .unroll = UINT32_MAX};
    d.tiles = tiles_of_phases(w, tile);
    for (uint32_t p = 0; p < w->n_products; p++) {
        uint32_t unroll = 2 * gpu_gemm_rows_at_once(&w->lower[p]);
        if (unroll < d.unroll) d.unroll = unroll;
    }
    if (d.lanes < MAX_LANES) d.lanes = 1;
    d.columns = wgmma_drain_columns(w->sched, d.lanes);
    d.step = wgmma_drain_step(d.columns, d.lanes);
    d.n_parts = w->sched->tile_n / d.columns;
    d.across = d.columns / d.lanes;
    LLVMValueRef bytes = i32_const(w, w->drain_bytes);
    LLVMValueRef at = LLVMBuildMul(builder, w->warp, bytes, "");
    LLVMValueRef begin = i32_const(w, (int64_t)w->sched->stages * w->stage_bytes);
    d.own = wgmma_at(w, LLVMBuildAdd(builder, at, begin, ""));
    LLVMValueRef pitch = i32_const(w, wgmma_drain_pitch(w->sched, d.lanes));
    LLVMValueRef row = LLVMBuildLShr(builder, lane, i32_const(w, 2), "");
    LLVMValueRef column = LLVMBuildAnd(builder, lane, i32_const(w, 3), "");
    column = LLVMBuildShl(builder, column, i32_const(w, 1), "");
    at = LLVMBuildAdd(builder, LLVMBuildMul(builder, row, pitch, ""), column, "");
    d.place = gpu_shared_at(w->unit, d.own, w->unit->f32, at);
    d.first_row = i32_const(w, 0);
    if (d.across < WARP) d.first_row = LLVMBuildUDiv(builder, lane, i32_const(w, d.across), "");
    LLVMValueRef works = LLVMBuildICmp(builder, LLVMIntULT, d.first_row, i32_const(w, d.step), "");
    d.first_row = LLVMBuildSelect(builder, works, d.first_row, i32_const(w, WGMMA_DRAIN_ROWS), "");
    d.in_part = LLVMBuildURem(builder, lane, i32_const(w, d.across), "");
    d.in_part = LLVMBuildMul(builder, d.in_part, i32_const(w, d.lanes), "");
    return d;
}

/* What depends on this lane's columns of a part alone, in each phase. */
static void part_columns(const Wgmma *w, const Drain *d, LLVMValueRef part, GemmColumn *columns) {
    LLVMBuilderRef builder = w->unit->builder;
    LLVMValueRef first = LLVMBuildMul(builder, part, i32_const(w, d->columns), "");
    first = LLVMBuildAdd(builder, first, d->in_part, "");
    for (uint32_t p = 0; p < w->n_products; p++) {
        columns[p] = gpu_gemm_column(&d->tiles[p], first, d->lanes);
        columns[p].in_part = d->in_part;
    }
}

static void put_results(const Wgmma *w, const Drain *d, const LLVMValueRef *accs, uint32_t part,
                        uint32_t half) {
    const Unit *unit = w->unit;
    LLVMBuilderRef builder = unit->builder;
    LLVMValueRef poison = LLVMGetPoison(LLVMVectorType(unit->f32, 2));
    for (uint32_t i = 0; i < w->n_products * d->columns / 8; i++) {
        uint32_t product = i / (d->columns / 8), column = i % (d->columns / 8);
        column += (product * w->sched->tile_n + part * d->columns) / 8;
        const LLVMValueRef *sums = accs + column * 4 + half * 2;
        LLVMValueRef pair = LLVMBuildInsertElement(builder, poison, sums[0], i32_const(w, 0), "");
        pair = LLVMBuildInsertElement(builder, pair, sums[1], i32_const(w, 1), "");
        LLVMValueRef at = gpu_shared_at(unit, d->place, unit->f32, i32_const(w, (int64_t)i * 8));
        LLVMSetAlignment(LLVMBuildStore(builder, pair, at), 8);
    }
}

/* Chooses by number which accumulators are stored: a thread's registers have no index, and the
 * loops around keep the epilogue's code to one copy. */
static void choose_results(const Wgmma *w, const Drain *d, LLVMValueRef number,
                           const LLVMValueRef *accs) {
    const Unit *unit = w->unit;
    LLVMBasicBlockRef after = unit_block(unit, w->lower->function, "put");
    LLVMBasicBlockRef from = unit_here(unit);
    uint32_t n = d->n_parts * 2;
    LLVMBasicBlockRef *cases = arena_array(unit->arena, LLVMBasicBlockRef, n);
    for (uint32_t i = 0; i < n; i++) {
        cases[i] = unit_block(unit, w->lower->function, "part");
        unit_goto(unit, cases[i]);
        put_results(w, d, accs, i / 2, i % 2);
        LLVMBuildBr(unit->builder, after);
    }
    unit_goto(unit, from);
    LLVMValueRef choice = LLVMBuildSwitch(unit->builder, number, cases[0], n);
    for (uint32_t i = 1; i < n; i++) LLVMAddCase(choice, i32_const(w, i), cases[i]);
    unit_goto(unit, after);
}

/* Where the warp's half begins in the tile: index_type. */
static LLVMValueRef first_of_half(const Wgmma *w, LLVMValueRef half) {
    LLVMBuilderRef builder = w->unit->builder;
    LLVMValueRef row = LLVMBuildShl(builder, w->warp, i32_const(w, 1), "");
    row = LLVMBuildAdd(builder, row, half, "");
    row = LLVMBuildMul(builder, row, i32_const(w, WGMMA_DRAIN_ROWS), "");
    return gpu_index(w->lower, row);
}

static void warp_barrier(const Wgmma *w) {
    LLVMValueRef all = i32_const(w, -1);
    unit_intrinsic(w->unit, "llvm.nvvm.bar.warp.sync", NULL, 0, &all, 1);
}

/* The rows of a half (i32) of a part, whose results will lie in `results`; so many rows (i32; NULL:
 * none) of the part are drained next. */
static GemmRows rows_of_half(const Wgmma *w, const Drain *d, LLVMValueRef half, LLVMValueRef n_next,
                             GemmPhase *phases, GemmPart *results) {
    LLVMValueRef m0 = LLVMBuildAdd(w->unit->builder, d->tiles->m0, first_of_half(w, half), "");
    for (uint32_t p = 0; p < w->n_products; p++) phases[p].block.m0 = m0;
    *results = (GemmPart){.shared = d->own,
                          .pitch = wgmma_drain_pitch(w->sched, d->lanes),
                          .n_rows = WGMMA_DRAIN_ROWS,
                          .n_columns = d->columns,
                          .run = WGMMA_DRAIN_ROWS,
                          .run_stride = WGMMA_DRAIN_ROWS,
                          .n_next = n_next};
    return gpu_gemm_rows(phases, w->n_products, results, d->first_row, d->step, d->unroll);
}

static void phases_of_part(const Wgmma *w, const Drain *d, const GemmColumn *columns,
                           GemmPhase *phases) {
    for (uint32_t p = 0; p < w->n_products; p++)
        phases[p] = (GemmPhase){.block = d->tiles[p], .column = columns[p]};
    gpu_gemm_load_early(phases, w->n_products);
}

/* The accumulators of a half of a part, for all lanes of the warp to read. */
static void put_half(const Wgmma *w, const Drain *d, LLVMValueRef part, LLVMValueRef half,
                     const LLVMValueRef *accs) {
    LLVMValueRef number = LLVMBuildShl(w->unit->builder, part, i32_const(w, 1), "");
    choose_results(w, d, LLVMBuildOr(w->unit->builder, number, half, ""), accs);
    warp_barrier(w);
}

static Loop each_half(const Wgmma *w) {
    return loop_begin(w->unit, w->lower->function, i32_const(w, 0), i32_const(w, 2),
                      i32_const(w, 1));
}

static Loop each_part(const Wgmma *w, const Drain *d) {
    return loop_begin(w->unit, w->lower->function, i32_const(w, 0), i32_const(w, d->n_parts),
                      i32_const(w, 1));
}

/* A half of the warp's rows. */
static void drain_half(const Wgmma *w, const Drain *d, LLVMValueRef part, LLVMValueRef half,
                       const GemmColumn *columns, const LLVMValueRef *accs) {
    LLVMValueRef early[GEMM_MAX_EARLY_VALUES];
    GemmPhase phases[WGMMA_MAX_PRODUCTS];
    GemmPart results;
    phases_of_part(w, d, columns, phases);
    GemmRows rows = rows_of_half(w, d, half, NULL, phases, &results);
    gpu_gemm_begin_rows(&rows, early);
    put_half(w, d, part, half, accs);
    gpu_gemm_drain_rows(&rows, early);
    warp_barrier(w);
}

/* Both halves; each loads ahead for the next. */
static void drain_part(const Wgmma *w, const Drain *d, LLVMValueRef part, const GemmColumn *columns,
                       const LLVMValueRef *accs) {
    const Unit *unit = w->unit;
    LLVMValueRef early[GEMM_MAX_EARLY_VALUES], all = i32_const(w, WGMMA_DRAIN_ROWS);
    GemmPhase phases[WGMMA_MAX_PRODUCTS];
    GemmPart results;
    phases_of_part(w, d, columns, phases);
    GemmRows rows = rows_of_half(w, d, i32_const(w, 0), all, phases, &results);
    uint32_t n_early = gpu_gemm_begin_rows(&rows, early);
    Loop halves = each_half(w);
    loop_carry(unit, &halves, early, n_early);
    put_half(w, d, part, halves.index, accs);
    LLVMValueRef left = LLVMBuildSub(unit->builder, i32_const(w, 1), halves.index, "");
    LLVMValueRef n_next = LLVMBuildMul(unit->builder, left, all, "");
    rows = rows_of_half(w, d, halves.index, n_next, phases, &results);
    gpu_gemm_drain_rows(&rows, early);
    warp_barrier(w);
    loop_end_carry(unit, &halves, early, n_early);
}

/* The values of all phases' columns that vary with the column; the first MAX_CARRIED of them. */
static uint32_t columns_values(const Wgmma *w, const Drain *d, const GemmColumn *columns,
                               LLVMValueRef *values) {
    uint32_t n = 0;
    for (uint32_t p = 0; p < w->n_products; p++) {
        uint32_t used = n < MAX_CARRIED ? n : MAX_CARRIED;
        n += gpu_gemm_column_values(&d->tiles[p], &columns[p], values + used, MAX_CARRIED - used);
    }
    return n;
}

/* The columns with those values replaced. */
static void columns_with(const Wgmma *w, const Drain *d, const GemmColumn *columns,
                         const LLVMValueRef *values, GemmColumn *with) {
    for (uint32_t p = 0; p < w->n_products; p++) {
        with[p] = gpu_gemm_column_with(&d->tiles[p], &columns[p], values);
        values += gpu_gemm_column_values(&d->tiles[p], &columns[p], NULL, 0);
    }
}

/* `first` was prepared while the last multiplications ran; likewise each next part's columns are
 * while the one before is stored, unless they would take too many registers. */
static void drain_tile(const Wgmma *w, const Drain *d, const GemmColumn *first,
                       const LLVMValueRef *accs) {
    const Unit *unit = w->unit;
    LLVMBuilderRef builder = unit->builder;
    LLVMValueRef values[MAX_CARRIED], last = i32_const(w, (int64_t)d->n_parts - 1);
    if (d->n_parts == 1) {
        drain_part(w, d, i32_const(w, 0), first, accs);
        return;
    }
    GemmColumn ahead[WGMMA_MAX_PRODUCTS], columns[WGMMA_MAX_PRODUCTS];
    uint32_t n = columns_values(w, d, first, values);
    Loop parts = each_part(w, d);
    if (n > MAX_CARRIED) {
        part_columns(w, d, parts.index, columns);
        drain_part(w, d, parts.index, columns, accs);
        loop_end(unit, &parts);
        return;
    }
    loop_carry(unit, &parts, values, n);
    LLVMValueRef next = LLVMBuildAdd(builder, parts.index, i32_const(w, 1), "");
    LLVMValueRef is_last = LLVMBuildICmp(builder, LLVMIntEQ, parts.index, last, "");
    next = LLVMBuildSelect(builder, is_last, last, next, "");
    part_columns(w, d, next, ahead);
    columns_with(w, d, first, values, columns);
    drain_part(w, d, parts.index, columns, accs);
    columns_values(w, d, ahead, values);
    loop_end_carry(unit, &parts, values, n);
}

/* Rows that follow. */

/* Of what is on chip each warp has its own rows. */
static void take_chips(const Wgmma *w, Lower *lower) {
    const Unit *unit = w->unit;
    Chip *own = arena_array(unit->arena, Chip, lower->kernel->args.n);
    for (uint32_t i = 0; i < lower->kernel->args.n; i++) {
        own[i] = lower->chips[i];
        if (!own[i].base) continue;
        Dtype dtype = lower->plan->buffers.data[lower->kernel->args.data[i]].dtype;
        LLVMValueRef at =
            LLVMBuildMul(unit->builder, w->warp,
                         i32_const(w, (int64_t)WGMMA_DRAIN_ROWS * dtype_bytes(dtype)), "");
        LLVMValueRef pitch = unit_index_cast(unit, lower_dim(lower, own[i].pitch), unit->i32);
        own[i].base =
            gpu_shared_at(unit, own[i].base, unit->i8, LLVMBuildMul(unit->builder, at, pitch, ""));
    }
    lower->chips = own;
}

/* A half of the warp's rows, all columns, then what follows for these rows: by the warp alone, so
 * that no warp waits for another. */
static void drain_rows(const Wgmma *w, const Drain *d, const LLVMValueRef *accs) {
    Unit *unit = w->unit;
    BlockTile *tile = w->lower->tile;
    GemmColumn columns[WGMMA_MAX_PRODUCTS];
    Loop halves = each_half(w);
    GemmBlock block = *d->tiles;
    block.m0 = LLVMBuildAdd(unit->builder, block.m0, first_of_half(w, halves.index), "");
    *tile = gpu_gemm_tile(&block);
    tile->n_rows = WGMMA_DRAIN_ROWS;
    tile->is_warps = true;
    LLVMValueRef exist = LLVMBuildICmp(unit->builder, LLVMIntULT, block.m0, block.m, "");
    If some = if_begin(unit, w->lower->function, exist);
    Loop parts = each_part(w, d);
    part_columns(w, d, parts.index, columns);
    drain_half(w, d, parts.index, halves.index, columns, accs);
    loop_end(unit, &parts);
    unit->math.overlaps_quotients = false;
    template_gpu_row(w->lower->rows);
    unit->math.overlaps_quotients = true;
    warp_barrier(w);
    if_end(unit, &some);
    loop_end(unit, &halves);
}

static Drain begin_drain(Wgmma *w, LLVMValueRef number, GemmBlock *tile) {
    wgmma_take_pointers(w, wgmma_part_of_tile(w, &number));
    *tile = tile_at(w, number);
    return drain_init(w, tile);
}

/* While the last multiplications run, and then with their results. */
static void end_drain(const Wgmma *w, const Drain *drain, LLVMValueRef last_stage,
                      const LLVMValueRef *accs) {
    LLVMValueRef sums[WGMMA_MAX_ACCUMULATORS];
    GemmColumn columns[WGMMA_MAX_PRODUCTS];
    if (!w->lower->rows) part_columns(w, drain, i32_const(w, 0), columns);
    wgmma_finish(w, accs);
    for (uint32_t i = 0; i < w->width / 2; i++)
        sums[i] = LLVMBuildLoad2(w->unit->builder, w->unit->f32, accs[i], "");
    release(w, last_stage, NULL);
    if (w->lower->rows)
        drain_rows(w, drain, sums);
    else
        drain_tile(w, drain, columns, sums);
}

/* `values`: the accumulators and the last stage. */
static void drain_of_code(Wgmma *w, LLVMValueRef number, LLVMValueRef *values) {
    GemmBlock tile;
    Drain drain = begin_drain(w, number, &tile);
    end_drain(w, &drain, values[w->width / 2], values);
}

/* From `ring` on, stage and parity. */
static void multiply_tiles(Wgmma *w, LLVMValueRef *ring) {
    const Unit *unit = w->unit;
    LLVMValueRef values[WGMMA_MAX_VALUES];
    bool is_one = w->lower->n_codes == 1;
    GemmBlock tile;
    Drain drain;
    make_accumulators(w, values);
    Loop tiles = wgmma_each_tile(w);
    loop_carry(unit, &tiles, ring, 2);
    if (is_one) drain = begin_drain(w, tiles.index, &tile);
    RingPlace place = {ring[0], ring[1]};
    LLVMValueRef *last_stage = &values[w->width / 2];
    *last_stage = multiply_stages(w, wgmma_k_of_tile(w, tiles.index), &place, values);
    if (is_one)
        end_drain(w, &drain, *last_stage, values);
    else
        wgmma_work_by_code(w, tiles.index, drain_of_code, values, w->width / 2 + 1, 0);
    ring[0] = place.stage;
    ring[1] = place.parity;
    loop_end_carry(unit, &tiles, ring, 2);
}

static void run_multiplying(Wgmma *w) {
    LLVMValueRef ring[2] = {i32_const(w, 0), i32_const(w, 0)};
    set_registers(w, true);
    if (w->lower->rows) {
        take_chips(w, w->lower);
        take_chips(w, w->lower->rows);
    }
    multiply_tiles(w, ring);
    if (w->tail) multiply_tiles(w->tail, ring);
}

void template_gpu_gemm_wgmma(Lower *lower) {
    Wgmma *w = arena_array(lower->unit->arena, Wgmma, lower->n_codes);
    const Unit *unit = lower->unit;
    w->unit = lower->unit;
    w->sched = &lower->variant->sched;
    place_thread(w);
    for (uint32_t c = lower->n_codes; c-- > 0;) {
        w[c] = w[0];
        init_code(&w[c], &lower[c], &lower[c].variant->sched);
    }
    if (w->sched->tail_n) init_tail(w);
    init_barriers(w);
    LLVMBasicBlockRef copying = unit_block(unit, lower->function, "copying");
    LLVMBasicBlockRef multiplying = unit_block(unit, lower->function, "multiplying");
    LLVMBasicBlockRef done = unit_block(unit, lower->function, "finished");
    LLVMValueRef copies =
        LLVMBuildICmp(unit->builder, LLVMIntEQ, w->group, i32_const(w, w->n_groups), "");
    LLVMBuildCondBr(unit->builder, copies, copying, multiplying);
    unit_goto(unit, copying);
    run_copying(w);
    LLVMBuildBr(unit->builder, done);
    unit_goto(unit, multiplying);
    run_multiplying(w);
    unit_branch(unit, done);
    if (w->rank) meet(w); /* nobody leaves whom others still tell something */
}
