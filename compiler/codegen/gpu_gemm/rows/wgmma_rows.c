/* Gemm-rows-gemm launches by wgmma: the roles of the block's warpgroups. See wgmma_rows.h.
 *
 * Tiles of the scores' rhs and of the result's rhs have stages and barriers of their own. So the
 * scores' tile is free for the next copy while the second product still runs. */
#include "codegen/gpu_gemm/rows/wgmma_rows.h"
#include "codegen/gpu_gemm/wgmma_epilogue.h"
#include "machine/tuning.h"

enum { GROUP_THREADS = WGMMA_GROUP_WARPS * WARP_THREADS, BLOCK_ELEMS = 64 };
enum { FEW_REGISTERS = 24, MANY_REGISTERS = 240 };
/* Barriers: two of the lhs, then four of each stage. */
enum { LEFT_FULL, LEFT_EMPTY, STAGE_BARRIERS };
typedef enum StageBarrier {
    RIGHT_FULL,
    RIGHT_EMPTY,
    VALUES_FULL,
    VALUES_EMPTY,
    PER_STAGE
} StageBarrier;

/* Setting up. */

static OperandTile operand_tile(Lower *lower, Lower *of_maps, uint32_t map, uint32_t parameter,
                                uint32_t axis, uint32_t own, uint32_t depth) {
    OperandTile tile = {.lower = lower,
                        .map = &of_maps->variant->maps[map],
                        .parameter = of_maps->maps[parameter],
                        .axis = axis,
                        .own = own,
                        .depth = depth};
    tile.is_mn_major = tile.map->axes[0].axis == axis;
    tile.bytes = wgmma_operand_bytes(own, depth, tile.is_mn_major);
    return tile;
}

static void init_operands(WgmmaRows *s) {
    const Sched *scores = &s->lower->variant->sched, *result = &s->out_lower->variant->sched;
    uint32_t m = gemm_axis_m(s->lower->kernel), n = gemm_axis_n(s->lower->kernel);
    uint32_t depth = scores->gemm.tile_k, rows = scores->gemm.tile_m;
    s->width = scores->gemm.tile_n;
    s->n_pairs = s->width / FRAGMENT_COLUMNS;
    s->n_sums = result->gemm.tile_n / 2;
    s->n_stages = scores->gemm.stages;
    if (s->n_pairs > WGMMA_ROWS_MOST_PAIRS || s->n_sums > WGMMA_ROWS_MOST_SUMS)
        ice(s->k->arena, "tiles of %u scores and %u results", s->width, result->gemm.tile_n);
    s->left = operand_tile(s->lower, s->lower, 0, 0, m, rows, depth);
    s->right = operand_tile(s->lower, s->lower, 1, 1, n, s->width, depth);
    s->values = operand_tile(s->out_lower, s->out_lower, 1, 2, gemm_axis_n(s->out_lower->kernel),
                             result->gemm.tile_n, s->width);
}

/* The result's tile. Its buffers follow the stages, and its stages those of the lhs. */
static void init_out(WgmmaRows *s) {
    const Codegen *k = s->k;
    Wgmma *out = &s->out;
    *out = (Wgmma){.lower = s->out_lower,
                   .k = k,
                   .sched = &s->out_lower->variant->sched,
                   .acc = DT_F32,
                   .acc_type = k->f32,
                   .n_gemms = 1,
                   .thread = gpu_thread(k)};
    out->width = out->sched->gemm.tile_n;
    out->n_groups = out->sched->gemm.warps_m / WGMMA_GROUP_WARPS;
    out->epilogue_bytes = wgmma_epilogue_bytes(out->sched);
    out->stage_bytes = s->right.bytes + s->values.bytes;
    out->shared = k_byte(k, gpu_shared_dynamic(k), k_i32(k, s->left.bytes));
    wgmma_place_thread(out);
    out->tiles = gpu_gemm_tiles(s->out_lower, out->sched->gemm.tile_m);
}

static void init(WgmmaRows *s, Lower *lowers) {
    const Sched *sched = &lowers->variant->sched;
    *s = (WgmmaRows){.lower = lowers,
                     .rows_lower = lowers + 1,
                     .out_lower = lowers + 2,
                     .k = lowers->k,
                     .online = &lowers->launch->online_softmax};
    init_operands(s);
    init_out(s);
    s->tiles = gpu_gemm_tiles(s->lower, sched->gemm.tile_m);
    s->is_whole = s->tiles.is_whole;
    s->tiles.across = dim_const(lower_dims(s->lower), 1);
    wgmma_rows_find_masks(s);
    wgmma_rows_find_factor(s);
}

static Val barriers_at(const WgmmaRows *s, Val number) {
    const Wgmma *out = &s->out;
    uint32_t before =
        s->n_stages * out->stage_bytes + out->sched->gemm.warps_m * out->epilogue_bytes;
    return wgmma_at(out, k_addi(s->k, k_muli(s->k, number, WGMMA_BARRIER_BYTES), before));
}

static Val left_barrier(const WgmmaRows *s, uint32_t which) {
    return barriers_at(s, k_i32(s->k, which));
}

static Val stage_barrier(const WgmmaRows *s, Val stage, StageBarrier which) {
    Val number = k_muli(s->k, stage, PER_STAGE);
    return barriers_at(s, k_addi(s->k, number, (int64_t)STAGE_BARRIERS + which));
}

static void init_barriers(const WgmmaRows *s) {
    const Codegen *k = s->k;
    If first = if_begin(k, k_eqi(k, s->out.thread, 0));
    uint32_t n = STAGE_BARRIERS + s->n_stages * PER_STAGE;
    for (uint32_t i = 0; i < n; i++) /* an odd one is empty when every consumer has read it */
        gpu_mbarrier_init(k, barriers_at(s, k_i32(k, i)), i % 2 ? s->out.n_groups : 1);
    gpu_mbarrier_publish(k);
    k_intrinsic_0(k, "llvm.nvvm.fence.proxy.async.shared_cta");
    if_end(k, &first);
    gpu_barrier(k);
}

/* Tiles. */

static Val right_at(const WgmmaRows *s, Val stage) {
    return wgmma_at(&s->out, k_muli(s->k, stage, s->out.stage_bytes));
}

static Val values_at(const WgmmaRows *s, Val stage) {
    return k_byte(s->k, right_at(s, stage), k_i32(s->k, s->right.bytes));
}

static DimId n_tiles(const WgmmaRows *s) {
    DimTab *dims = lower_dims(s->lower);
    const Kernel *kernel = s->lower->kernel;
    DimId n = dim_ceil_div(dims, kernel_axis_extent(kernel, gemm_axis_m(kernel)), s->tiles.m);
    for (uint32_t axis = 0; axis < gemm_axis_m(kernel); axis++)
        n = dim_mul(dims, n, kernel_axis_extent(kernel, axis));
    return n;
}

static Loop each_tile(const WgmmaRows *s) {
    Lower *lower = s->lower;
    Val step = gpu_index(lower, gpu_special(s->k, "nctaid.x"));
    return loop_begin_by(s->k, gpu_block(lower), lower_dim(lower, n_tiles(s)), step);
}

/* The batches whose right operands the L2 cache holds together. */
static Val batches_at_once(const WgmmaRows *s) {
    const Codegen *k = s->k;
    uint32_t row_bytes = 2 * (s->right.depth + s->values.own);
    Val n = k_index_cast(k, lower_extent(s->lower, gemm_axis_n(s->lower->kernel)), k->i64);
    Val rows =
        k_udiv(k, k_i64(k, CODEGEN_ROWS_GEMM_L2_BYTES / row_bytes), k_umax(k, n, k_i64(k, 1)));
    return k_index_cast(k, k_umax(k, rows, k_i64(k, 1)), s->lower->index_type);
}

/* The number of the block's tile `at`. Where masks hide tiles of columns, tiles of rows take
 * different times: of a few batches those that see most come first, so that no block ends with a
 * long tile. */
static Val number_of(const WgmmaRows *s, Val at) {
    const Codegen *k = s->k;
    Lower *lower = s->lower;
    if (!s->n_masks) return at;
    const Kernel *kernel = lower->kernel;
    DimId across = dim_ceil_div(lower_dims(lower), kernel_axis_extent(kernel, gemm_axis_m(kernel)),
                                s->tiles.m);
    Val rows = lower_dim(lower, across), group = batches_at_once(s);
    Val all = k_udiv(k, lower_dim(lower, n_tiles(s)), rows);
    Val per_group = k_mul(k, group, rows);
    Val first = k_mul(k, k_udiv(k, at, per_group), group), in_group = k_urem(k, at, per_group);
    Val size = k_umin(k, k_sub(k, all, first), group);
    Val row = k_sub(k, k_subi(k, rows, 1), k_udiv(k, in_group, size));
    return k_mad(k, k_add(k, first, k_urem(k, in_group, size)), rows, row);
}

static Loop each_column_tile(const WgmmaRows *s) {
    const Kernel *kernel = s->lower->kernel;
    return loop_over(s->k, lower_extent(s->lower, gemm_axis_n(kernel)), s->width);
}

static PipelineState next_stage(const WgmmaRows *s, PipelineState place) {
    return pipeline_next(s->k, place, s->n_stages);
}

/* The work of a role on the tile of columns at `column`. `sees_all`: see Seen. */
typedef void ColumnsWork(WgmmaRows *s, const GemmBlock *out_block, Val column, Val sees_all,
                         PipelineState place);

/* Does the work on every tile of columns that some row sees. `ring` has the stage and its parity.
 */
static void each_columns(WgmmaRows *s, const GemmBlock *out_block, ColumnsWork *work, Val *ring) {
    const Codegen *k = s->k;
    Loop columns = each_column_tile(s);
    loop_carry(k, &columns, ring, 2);
    PipelineState place = {ring[0], ring[1]}, next = next_stage(s, place);
    Seen seen = wgmma_rows_seen(s, columns.index);
    If some;
    if (seen.none) some = if_begin(k, k_not(k, seen.none));
    work(s, out_block, columns.index, seen.all, place);
    if (seen.none) if_end(k, &some);
    ring[0] = seen.none ? k_select(k, seen.none, place.stage, next.stage) : next.stage;
    ring[1] = seen.none ? k_select(k, seen.none, place.parity, next.parity) : next.parity;
    loop_end(k, &columns);
}

/* The producer. */

/* Copies the tile from `own` along its axis and `along_k` on (index_type) to `to`. */
static void copy_tile(const WgmmaRows *s, const OperandTile *tile, const GemmBlock *block, Val own,
                      Val along_k, Val to, Val barrier) {
    const Codegen *k = s->k;
    uint32_t along = tile->is_mn_major ? tile->own : tile->depth;
    uint32_t rows = tile->is_mn_major ? tile->depth : tile->own;
    gpu_mbarrier_expect(k, barrier, tile->bytes);
    for (uint32_t at = 0; at < along; at += BLOCK_ELEMS) {
        WgmmaBox box = {.map = tile->map,
                        .parameter = tile->parameter,
                        .axis = tile->axis,
                        .own = own,
                        .k = along_k,
                        .to = k_byte(k, to, k_i32(k, (int64_t)at * rows * 2)),
                        .barrier = barrier};
        Val *moves = tile->is_mn_major ? &box.own : &box.k;
        *moves = k_addi(k, *moves, at);
        wgmma_copy_box(tile->lower, &box, block);
    }
}

static void fill_columns(WgmmaRows *s, const GemmBlock *out_block, Val column, Val sees_all,
                         PipelineState place) {
    const Codegen *k = s->k;
    Val opposite = k_xori(k, place.parity, 1), zero = lower_index_const(s->lower, 0);
    (void)sees_all;
    wgmma_wait(&s->out, stage_barrier(s, place.stage, RIGHT_EMPTY), opposite);
    copy_tile(s, &s->right, &s->block, column, zero, right_at(s, place.stage),
              stage_barrier(s, place.stage, RIGHT_FULL));
    wgmma_wait(&s->out, stage_barrier(s, place.stage, VALUES_EMPTY), opposite);
    copy_tile(s, &s->values, out_block, zero, column, values_at(s, place.stage),
              stage_barrier(s, place.stage, VALUES_FULL));
}

/* `ring` has the stage, its parity, and the parity of the lhs. */
static void fill_tile(WgmmaRows *s, Val number, Val *ring) {
    const Codegen *k = s->k;
    wgmma_rows_take_tile(s, number);
    GemmBlock out_block = gpu_gemm_block_at(s->out_lower, number, &s->out.tiles);
    wgmma_wait(&s->out, left_barrier(s, LEFT_EMPTY), k_xori(k, ring[2], 1));
    copy_tile(s, &s->left, &s->block, s->block.m0, lower_index_const(s->lower, 0),
              gpu_shared_dynamic(k), left_barrier(s, LEFT_FULL));
    ring[2] = k_xori(k, ring[2], 1);
    each_columns(s, &out_block, fill_columns, ring);
}

static void set_registers(const WgmmaRows *s, bool more) {
    if (s->out.n_groups < 2) return; /* a single consumer has registers enough */
    k_intrinsic_1(s->k,
                  more ? "llvm.nvvm.setmaxnreg.inc.sync.aligned.u32"
                       : "llvm.nvvm.setmaxnreg.dec.sync.aligned.u32",
                  k_i32(s->k, more ? MANY_REGISTERS : FEW_REGISTERS));
}

static void run_copying(WgmmaRows *s) {
    const Codegen *k = s->k;
    set_registers(s, false);
    If warp = if_begin(k, k_eqi(k, s->out.warp, s->out.sched->gemm.warps_m));
    Val elected = k_intrinsic_1(k, "llvm.nvvm.elect.sync", k_i32(k, -1));
    If lane = if_begin(k, k_extract_value(k, elected, 1));
    Val ring[3] = {k_i32(k, 0), k_i32(k, 0), k_i32(k, 0)};
    Loop tiles = each_tile(s);
    loop_carry(k, &tiles, ring, 3);
    fill_tile(s, number_of(s, tiles.index), ring);
    loop_end(k, &tiles);
    if_end(k, &lane);
    if_end(k, &warp);
}

/* The consumers. */

static void make_variables(WgmmaRows *s) {
    const Codegen *k = s->k;
    for (uint32_t i = 0; i < s->width / 2; i++) s->scores[i] = k_alloca(k, k->f32);
    for (uint32_t i = 0; i < s->n_sums; i++) s->sums[i] = k_alloca(k, k->f32);
    for (uint32_t r = 0; r < WGMMA_ROWS_OF_THREAD; r++) {
        s->shift[r] = k_alloca(k, k->f32);
        for (uint32_t i = 0; i < 2; i++) s->total[r][i] = k_alloca(k, k->f32);
    }
    for (uint32_t i = 0; i < 2 * s->n_pairs; i++) s->weights[i] = k_alloca(k, k->i32);
    s->has_weights = k_alloca(k, k->i32);
}

static void release(const WgmmaRows *s, Val barrier) {
    const Codegen *k = s->k;
    If one = if_begin(k, k_eqi(k, s->out.in_group, 0));
    Val args[2] = {barrier, k_i32(k, 1)};
    k_intrinsic(k, "llvm.nvvm.mbarrier.arrive.scope.cta.space.cta", args, 2);
    if_end(k, &one);
}

/* Two consumers begin their products by turns, so that one multiplies while the other computes
 * weights: barrier 1 + g of the block is the turn of consumer g. */
static void pass_turn(const WgmmaRows *s, const char *text, Val group) {
    const Codegen *k = s->k;
    Val number = k_addi(k, group, 1);
    if (s->out.n_groups != 2) return;
    k_asm(k, k->void_type, text, "r,~{memory}", &number, 1, true);
}

static void take_turn(const WgmmaRows *s) {
    pass_turn(s, "bar.sync $0, 256;", s->out.group);
}

static void give_turn(const WgmmaRows *s) {
    pass_turn(s, "bar.arrive $0, 256;", k_xori(s->k, s->out.group, 1));
}

/* The first row of this consumer's part of the lhs tile. */
static Val own_left(const WgmmaRows *s) {
    const Codegen *k = s->k;
    uint32_t rows = s->left.is_mn_major ? s->left.depth : WGMMA_ROWS;
    Val at = k_muli(k, s->out.group, (int64_t)rows * WGMMA_SWIZZLE_BYTES);
    return k_byte(k, gpu_shared_dynamic(k), at);
}

/* The place in the ring before this one. */
static PipelineState place_before(const WgmmaRows *s, PipelineState place) {
    const Codegen *k = s->k;
    Val wraps = k_eqi(k, place.stage, 0);
    Val last = k_i32(k, (int64_t)s->n_stages - 1);
    return (PipelineState){k_select(k, wraps, last, k_subi(k, place.stage, 1)),
                           k_xor(k, place.parity, k_zext(k, wraps, k->i32))};
}

static void begin_scores(const WgmmaRows *s, PipelineState place) {
    wgmma_wait(&s->out, stage_barrier(s, place.stage, RIGHT_FULL), place.parity);
    wgmma_rows_multiply_scores(s, own_left(s), right_at(s, place.stage));
}

static void begin_sums(const WgmmaRows *s, PipelineState place) {
    wgmma_wait(&s->out, stage_barrier(s, place.stage, VALUES_FULL), place.parity);
    wgmma_rows_multiply_weights(s, values_at(s, place.stage));
}

static void end_scores(const WgmmaRows *s, PipelineState place, uint32_t n_after) {
    wgmma_await(s->k, n_after, s->scores, s->width / 2);
    release(s, stage_barrier(s, place.stage, RIGHT_EMPTY));
}

static void end_sums(const WgmmaRows *s, PipelineState place) {
    wgmma_await(s->k, 0, s->sums, s->n_sums);
    release(s, stage_barrier(s, place.stage, VALUES_EMPTY));
}

/* The first tile of columns: there are no weights yet. */
static void first_columns(const WgmmaRows *s, Val column, Val sees_all, PipelineState place) {
    RowShifts shifts;
    begin_scores(s, place);
    end_scores(s, place, 0);
    wgmma_rows_weigh(s, column, sees_all, &shifts);
    wgmma_rows_keep_weights(s);
    k_store(s->k, k_i32(s->k, 1), s->has_weights);
}

/* Ends the block of code in which weights are computed. ptxas moves arithmetic past an instruction
 * that waits for products, but not past a branch: so the weights are computed beside the products.
 * The branch sleeps if the values of this place have been replaced, as another warp may have had
 * them replaced already. */
static void end_block(const WgmmaRows *s, PipelineState place) {
    const Codegen *k = s->k;
    Val args[2] = {stage_barrier(s, place.stage, VALUES_FULL), place.parity};
    Val is_there = k_asm(k, k->i32,
                         "{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [$1], $2; "
                         "selp.b32 $0, 1, 0, p; }",
                         "=r,r,r,~{memory}", args, 2, true);
    If is_late = if_begin(k, k_eqi(k, is_there, 0));
    k_asm(k, k->void_type, "nanosleep.u32 20;", "~{memory}", NULL, 0, true);
    if_end(k, &is_late);
}

/* The scores become weights while the weights of the tile before are multiplied. */
static void next_columns(const WgmmaRows *s, Val column, Val sees_all, PipelineState place) {
    RowShifts shifts;
    PipelineState before = place_before(s, place);
    take_turn(s);
    begin_scores(s, place);
    begin_sums(s, before);
    give_turn(s);
    end_scores(s, place, 1);
    wgmma_rows_weigh(s, column, sees_all, &shifts);
    end_block(s, before);
    end_sums(s, before);
    wgmma_rows_scale(s, &shifts);
    wgmma_rows_keep_weights(s);
}

static void multiply_columns(WgmmaRows *s, const GemmBlock *out_block, Val column, Val sees_all,
                             PipelineState place) {
    const Codegen *k = s->k;
    LLVMBasicBlockRef first = k_block(k, "first"), next = k_block(k, "next");
    LLVMBasicBlockRef after = k_block(k, "after");
    (void)out_block;
    k_cond_br(k, k_eqi(k, k_load(k, k->i32, s->has_weights), 0), first, next);
    k_goto(k, first);
    first_columns(s, column, sees_all, place);
    k_br(k, after);
    k_goto(k, next);
    next_columns(s, column, sees_all, place);
    k_br(k, after);
    k_goto(k, after);
}

static void multiply_tile(WgmmaRows *s, Val number, Val *ring) {
    const Codegen *k = s->k;
    wgmma_rows_take_tile(s, number);
    wgmma_rows_begin(s);
    WgmmaEpilogue epilogue = wgmma_begin_epilogue(&s->out, number);
    wgmma_wait(&s->out, left_barrier(s, LEFT_FULL), ring[2]);
    ring[2] = k_xori(k, ring[2], 1);
    each_columns(s, NULL, multiply_columns, ring);
    release(s, left_barrier(s, LEFT_EMPTY));
    If some = if_begin(k, k_eqi(k, k_load(k, k->i32, s->has_weights), 1));
    PipelineState last = place_before(s, (PipelineState){ring[0], ring[1]});
    begin_sums(s, last);
    end_sums(s, last);
    if_end(k, &some);
    wgmma_rows_end(s);
    wgmma_epilogue_sums(&s->out, &epilogue, s->sums);
}

static void run_multiplying(WgmmaRows *s) {
    const Codegen *k = s->k;
    Val ring[3] = {k_i32(k, 0), k_i32(k, 0), k_i32(k, 0)};
    set_registers(s, true);
    make_variables(s);
    If second = if_begin(k, k_eqi(k, s->out.group, 1));
    give_turn(s);
    if_end(k, &second);
    Loop tiles = each_tile(s);
    loop_carry(k, &tiles, ring, 3);
    multiply_tile(s, number_of(s, tiles.index), ring);
    loop_end(k, &tiles);
}

void emit_gpu_gemm_rows_gemm_wgmma(Lower *lowers) {
    const Codegen *k = lowers->k;
    WgmmaRows *s = arena_array(k->arena, WgmmaRows, 1);
    init(s, lowers);
    init_barriers(s);
    LLVMBasicBlockRef copying = k_block(k, "copying");
    LLVMBasicBlockRef multiplying = k_block(k, "multiplying");
    LLVMBasicBlockRef done = k_block(k, "finished");
    k_cond_br(k, k_eqi(k, s->out.group, s->out.n_groups), copying, multiplying);
    k_goto(k, copying);
    run_copying(s);
    k_br(k, done);
    k_goto(k, multiplying);
    run_multiplying(s);
    k_branch(k, done);
}
