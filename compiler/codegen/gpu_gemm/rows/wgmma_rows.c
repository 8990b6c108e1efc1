/* Softmax between two products by wgmma: the roles of the block's warpgroups. See wgmma_rows.h.
 *
 * Tiles of the scores' rhs and of the result's rhs have stages and barriers of their own. So, where
 * no key is hidden, the scores' tile is free for the next copy while the second product still runs.
 */
#include "codegen/gpu_gemm/rows/wgmma_rows.h"
#include "codegen/gpu_gemm/wgmma_epilogue.h"

/* Barriers: two of the lhs, then those of each stage. Values are checked when the warps that look
 * for infinities have seen them. */
enum { LEFT_FULL, LEFT_EMPTY, STAGE_BARRIERS };
typedef enum StageBarrier {
    RIGHT_FULL,
    RIGHT_EMPTY,
    VALUES_FULL,
    VALUES_EMPTY,
    VALUES_CHECKED,
    PER_STAGE = GEMM_ROWS_GEMM_STAGE_BARRIERS
} StageBarrier;
enum { N_CHECKERS = WGMMA_GROUP_WARPS - 1 };

/* Setting up. */

/* The tile of an operand, which is copied by map `map` of the launch, if there are maps; `own` and
 * `depth` are its elements along `axis` and along k. */
static OperandTile operand_tile(Lower *lower, uint32_t map, uint32_t axis, uint32_t own,
                                uint32_t depth) {
    const Variant *variant = lower->variant;
    OperandTile tile = {.lower = lower, .axis = axis, .own = own, .depth = depth};
    tile.is_mn_major = axis != gemm_axis_m(lower->kernel) && form_info(lower->kernel->form)->weighs;
    if (variant->n_maps) {
        bool is_left = axis == gemm_axis_m(lower->kernel);
        tile.is_read_once = !is_left && gpu_gemm_one_tile_reads_right(lower);
        tile.map = &variant->maps[is_left ? 0 : variant->n_maps - 1];
        tile.parameter = lower->maps[map];
        tile.is_mn_major = tile.map->axes[0].axis == axis;
    }
    tile.bytes = wgmma_operand_bytes(own, depth, tile.is_mn_major);
    return tile;
}

static void init_operands(WgmmaRows *s) {
    const Sched *result = &s->out_lower->variant->sched;
    s->has_maps = s->out_lower->variant->n_maps > 0;
    s->n_stages = result->gemm.stages;
    if (s->has_scores) {
        const GemmSched *scores = &s->lower->variant->sched.gemm;
        s->left = operand_tile(s->lower, 0, s->row_axis, scores->tile_m, scores->tile_k);
        s->right = operand_tile(s->lower, 1, s->key_axis, s->width, scores->tile_k);
    }
    s->values = operand_tile(s->out_lower, s->has_scores ? 2 : 0, gemm_axis_n(s->out_lower->kernel),
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
                   .n_gemms = 1};
    out->width = out->sched->gemm.tile_n;
    out->n_groups = out->sched->gemm.warps_m / WGMMA_GROUP_WARPS;
    out->epilogue_bytes = wgmma_epilogue_bytes(out->sched);
    out->stage_bytes = s->right.bytes + s->values.bytes;
    out->shared = k_byte(k, gpu_shared_dynamic(k), k_i32(k, s->left.bytes));
    wgmma_place_thread(out);
    out->tiles = gpu_gemm_tiles(s->out_lower, out->sched->gemm.tile_m);
}

/* The kernels of the launch: scores and an online kernel, or that alone. */
static void init_kernels(WgmmaRows *s, Lower *lowers) {
    bool has_scores = !form_info(lowers->kernel->form)->weighs;
    const Kernel *last = lowers[has_scores].kernel;
    *s = (WgmmaRows){.lower = lowers, .out_lower = lowers + has_scores, .k = lowers->k};
    s->has_scores = has_scores;
    s->row_axis = gemm_axis_m(lowers->kernel);
    s->key_axis = s->has_scores ? gemm_axis_n(lowers->kernel) : last->first_reduced;
    s->greatest = (Reduce){.combine = PRIM_MAX, .acc = DT_F32, .identity = -INFINITY};
    s->total_of_row = (Reduce){.combine = PRIM_ADD, .acc = DT_F32, .identity = -0.0};
    s->exponent = last->reduces.data[0].lhs;
    s->weight_factor = last->reduces.data[0].factor;
    s->factor = last->reduces.data[0].power == PRIM_EXP ? 1.44269504088896340736 : 1;
}

void wgmma_rows_open(WgmmaRows *s, Lower *lowers) {
    init_kernels(s, lowers);
    const GemmSched *result = &s->out_lower->variant->sched.gemm;
    s->width = result->tile_k;
    s->n_pairs = s->width / FRAGMENT_COLUMNS;
    s->n_sums = result->tile_n / 2;
    s->overlaps = s->n_sums <= WGMMA_ROWS_MOST_BESIDE && result->warps_m > WGMMA_GROUP_WARPS;
    if (s->n_pairs > WGMMA_ROWS_MOST_PAIRS || s->n_sums > WGMMA_ROWS_MOST_SUMS)
        ice(s->k->arena, "tiles of %u scores and %u results", s->width, result->tile_n);
    s->tiles = gpu_gemm_tiles(s->lower, result->tile_m);
    s->is_whole = gpu_gemm_axis_is_multiple(s->lower, s->key_axis, s->width);
    s->tiles.across = dim_const(lower_dims(s->lower), 1);
    s->n_keys = lower_extent(s->lower, s->key_axis);
    wgmma_rows_find_masks(s);
}

static OnlineRegisters registers_of(const WgmmaRows *s) {
    uint32_t least = s->has_maps ? ONLINE_COPYING_REGISTERS : ONLINE_COMPUTING_REGISTERS;
    return online_registers(s->out_lower->variant->sched.min_blocks, s->out.n_groups, least);
}

static void init(WgmmaRows *s, Lower *lowers) {
    wgmma_rows_open(s, lowers);
    init_operands(s);
    init_out(s);
    s->keeps_left = wgmma_rows_can_keep_left(s, registers_of(s).consumer);
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

/* Whether warp `warp` (i32) of the producer has found a value of the stage that is not finite: an
 * i32 in shared memory, behind the barriers. */
static Val flag_at(const WgmmaRows *s, Val stage, Val warp) {
    const Codegen *k = s->k;
    Val before = barriers_at(s, k_i32(k, STAGE_BARRIERS + s->n_stages * PER_STAGE));
    Val number = k_madi(k, stage, WGMMA_GROUP_WARPS, warp);
    return k_byte(k, before, k_muli(k, number, 4));
}

WgmmaRowsGiven wgmma_rows_given(const WgmmaRows *s) {
    const Codegen *k = s->k;
    Val full = flag_at(s, k_i32(k, s->n_stages), k_i32(k, 0));
    return (WgmmaRowsGiven){full, k_byte(k, full, k_i32(k, WGMMA_BARRIER_BYTES)),
                            k_byte(k, full, k_i32(k, 2 * WGMMA_BARRIER_BYTES))};
}

/* Whether a row may not see a key of a tile. */
static bool hides_keys(const WgmmaRows *s) {
    return s->may_hide || wgmma_rows_hide_columns(s);
}

/* The warps that look at what the copy engine copied. */
static uint32_t n_checkers(const WgmmaRows *s) {
    return s->has_maps && hides_keys(s) ? N_CHECKERS : 0;
}

static void init_barriers(const WgmmaRows *s) {
    const Codegen *k = s->k;
    uint32_t n_consumers = s->out.n_groups;
    If first = if_begin(k, k_eqi(k, s->out.thread, 0));
    gpu_mbarrier_init(k, left_barrier(s, LEFT_FULL), 1);
    gpu_mbarrier_init(k, left_barrier(s, LEFT_EMPTY), n_consumers * WGMMA_GROUP_WARPS);
    for (uint32_t i = 0; i < s->n_stages; i++) {
        Val stage = k_i32(k, i);
        gpu_mbarrier_init(k, stage_barrier(s, stage, RIGHT_FULL), 1);
        gpu_mbarrier_init(k, stage_barrier(s, stage, RIGHT_EMPTY), n_consumers);
        gpu_mbarrier_init(k, stage_barrier(s, stage, VALUES_FULL), 1);
        gpu_mbarrier_init(k, stage_barrier(s, stage, VALUES_EMPTY), n_consumers + n_checkers(s));
        gpu_mbarrier_init(k, stage_barrier(s, stage, VALUES_CHECKED), N_CHECKERS);
        for (uint32_t w = 0; w < WGMMA_GROUP_WARPS; w++)
            k_store(k, k_i32(k, 0), flag_at(s, stage, k_i32(k, w)));
    }
    if (wgmma_rows_counts_tiles(s)) {
        WgmmaRowsGiven given = wgmma_rows_given(s);
        gpu_mbarrier_init(k, given.full, 1);
        gpu_mbarrier_init(k, given.empty, (n_consumers + 1) * WGMMA_GROUP_WARPS);
    }
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

/* The producer. */

/* Copies the tile from `own` along its axis and `along_k` on (index_type) to `to`. */
static void copy_tile(const WgmmaRows *s, const OperandTile *tile, const GemmBlock *block, Val own,
                      Val along_k, Val to, Val barrier) {
    const Codegen *k = s->k;
    uint32_t along = tile->is_mn_major ? tile->own : tile->depth;
    uint32_t rows = tile->is_mn_major ? tile->depth : tile->own;
    If copies = if_begin(k, s->copies);
    gpu_mbarrier_expect(k, barrier, tile->bytes);
    for (uint32_t at = 0; at < along; at += WGMMA_ROWS_BLOCK_ELEMS) {
        WgmmaBox box = {.map = tile->map,
                        .parameter = tile->parameter,
                        .axis = tile->axis,
                        .own = own,
                        .k = along_k,
                        .to =
                            k_byte(k, to, k_i32(k, (int64_t)at * rows * GEMM_ROWS_GEMM_ELEM_BYTES)),
                        .barrier = barrier,
                        .is_read_once = tile->is_read_once};
        Val *moves = tile->is_mn_major ? &box.own : &box.k;
        *moves = k_addi(k, *moves, at);
        wgmma_copy_box(tile->lower, &box, block);
    }
    if_end(k, &copies);
}

/* Brings in a tile: the elected thread copies, or all threads compute. */
static void bring_tile(const WgmmaRows *s, const OperandTile *tile, const GemmBlock *block, Val own,
                       Val along_k, Val to, Val barrier, Val flag) {
    if (s->has_maps)
        copy_tile(s, tile, block, own, along_k, to, barrier);
    else
        wgmma_rows_compute_tile(
            s, tile, block, (TilePlace){.own = own, .k = along_k, .to = to, .flag = flag}, barrier);
}

static Val own_flag(const WgmmaRows *s, Val stage) {
    Val warp = k_subi(s->k, s->out.warp, s->out.sched->gemm.warps_m);
    return flag_at(s, stage, warp);
}

static void bring_left(const WgmmaRows *s) {
    const Codegen *k = s->k;
    Val parity = k_load(k, k->i32, s->left_parity);
    Val opposite = k_xori(k, parity, 1);
    wgmma_wait(&s->out, left_barrier(s, LEFT_EMPTY), opposite);
    Val full = left_barrier(s, LEFT_FULL);
    bring_tile(s, &s->left, &s->block, s->block.m0, lower_index_const(s->lower, 0),
               gpu_shared_dynamic(k), full, NULL);
}

/* The lhs follows the first tile of the rhs, which need not wait for the rows before to end. */
static void bring_left_once(const WgmmaRows *s) {
    const Codegen *k = s->k;
    If wants = if_begin(k, k_nei(k, k_load(k, k->i32, s->wants_left), 0));
    bring_left(s);
    k_store(k, k_i32(k, 0), s->wants_left);
    if_end(k, &wants);
}

static void fill_columns(WgmmaRows *s, Val column, Val sees_all, PipelineState place) {
    const Codegen *k = s->k;
    Val opposite = k_xori(k, place.parity, 1), zero = lower_index_const(s->lower, 0);
    (void)sees_all;
    if (s->has_scores) {
        wgmma_wait(&s->out, stage_barrier(s, place.stage, RIGHT_EMPTY), opposite);
        Val full = stage_barrier(s, place.stage, RIGHT_FULL);
        bring_tile(s, &s->right, &s->block, column, zero, right_at(s, place.stage), full, NULL);
        if (s->has_maps) bring_left_once(s);
    }
    wgmma_wait(&s->out, stage_barrier(s, place.stage, VALUES_EMPTY), opposite);
    Val flag = own_flag(s, place.stage), full = stage_barrier(s, place.stage, VALUES_FULL);
    bring_tile(s, &s->values, &s->out_block, zero, column, values_at(s, place.stage), full, flag);
}

/* `ring` has the stage, its parity, and the parity of the lhs. */
static void fill_tile(WgmmaRows *s, Val number, Val *ring) {
    const Codegen *k = s->k;
    wgmma_rows_take_tile(s, number);
    k_store(k, ring[2], s->left_parity);
    k_store(k, k_i32(k, 1), s->wants_left);
    if (s->has_scores && !s->has_maps) bring_left(s);
    wgmma_rows_each_columns(s, fill_columns, ring);
    if (s->has_scores && s->has_maps) bring_left_once(s);
    ring[2] = k_xori(k, ring[2], 1);
}

/* A warp looks at its part of the values, if some row may not see some key: else nobody asks. The
 * values are not replaced before. */
static void check_columns(WgmmaRows *s, Val column, Val sees_all, PipelineState place) {
    const Codegen *k = s->k;
    (void)column;
    wgmma_wait(&s->out, stage_barrier(s, place.stage, VALUES_FULL), place.parity);
    If hides = if_begin(k, s->may_hide ? NULL : k_not(k, sees_all));
    Val flag = own_flag(s, place.stage);
    wgmma_rows_check_values(s, values_at(s, place.stage), flag);
    if_end(k, &hides);
    If one = if_begin(k, k_eqi(k, k_andi(k, s->out.thread, WARP_THREADS - 1), 0));
    gpu_mbarrier_arrive(k, stage_barrier(s, place.stage, VALUES_CHECKED));
    gpu_mbarrier_arrive(k, stage_barrier(s, place.stage, VALUES_EMPTY));
    if_end(k, &one);
}

static void check_tile(WgmmaRows *s, Val number, Val *ring) {
    wgmma_rows_take_tile(s, number);
    wgmma_rows_each_columns(s, check_columns, ring);
    ring[2] = k_xori(s->k, ring[2], 1);
}

/* Moves registers from the producer's threads to the consumers'. In a single block with a single
 * consumer every thread has enough of them. */
static void set_registers(const WgmmaRows *s, bool is_consumer) {
    OnlineRegisters n = registers_of(s);
    if (s->out_lower->variant->sched.min_blocks * s->out.n_groups < 2) return;
    k_intrinsic_1(s->k,
                  is_consumer ? "llvm.nvvm.setmaxnreg.inc.sync.aligned.u32"
                              : "llvm.nvvm.setmaxnreg.dec.sync.aligned.u32",
                  k_i32(s->k, is_consumer ? n.consumer : n.producer));
}

/* One elected thread of one warp copies; where rows may not see columns, the whole warp looks
 * ahead. The other warps look at what it copied. */
static void run_copying(WgmmaRows *s) {
    const Codegen *k = s->k;
    set_registers(s, false);
    s->left_parity = k_alloca(k, k->i32);
    s->wants_left = k_alloca(k, k->i32);
    if (!s->has_maps) {
        wgmma_rows_each_tile(s, fill_tile, true);
        return;
    }
    Val is_first = k_eqi(k, s->out.warp, s->out.sched->gemm.warps_m);
    If warp = if_begin(k, is_first);
    Val elected = k_intrinsic_1(k, "llvm.nvvm.elect.sync", k_i32(k, -1));
    Val is_elected = k_extract_value(k, elected, 1);
    If lane = if_begin(k, wgmma_rows_hide_columns(s) ? NULL : is_elected);
    s->copies = wgmma_rows_hide_columns(s) ? is_elected : NULL;
    wgmma_rows_each_tile(s, fill_tile, true);
    if_end(k, &lane);
    if_end(k, &warp);
    if (!n_checkers(s)) return;
    If others = if_begin(k, k_not(k, is_first));
    wgmma_rows_each_tile(s, check_tile, false);
    if_end(k, &others);
}

/* The consumers. */

void wgmma_rows_make_variables(WgmmaRows *s) {
    const Codegen *k = s->k;
    for (uint32_t i = 0; i < s->width / 2; i++) s->scores[i] = k_alloca(k, k->f32);
    for (uint32_t i = 0; i < s->n_sums; i++) s->sums[i] = k_alloca(k, k->f32);
    for (uint32_t r = 0; r < WGMMA_ROWS_OF_THREAD; r++) {
        s->shift[r] = k_alloca(k, k->f32);
        for (uint32_t i = 0; i < 2; i++) s->total[r][i] = k_alloca(k, k->f32);
    }
    for (uint32_t i = 0; i < 2 * s->n_pairs; i++) s->weights[i] = k_alloca(k, k->i32);
    s->has_weights = k_alloca(k, k->i32);
    for (uint32_t r = 0; r < WGMMA_ROWS_OF_THREAD; r++) s->seen[r] = k_alloca(k, k->i32);
    s->weighed = k_alloca(k, s->lower->index_type);
}

static void release(const WgmmaRows *s, Val barrier) {
    If one = if_begin(s->k, k_eqi(s->k, s->out.in_group, 0));
    gpu_mbarrier_arrive(s->k, barrier);
    if_end(s->k, &one);
}

/* Consumers begin their products by turns, so that one multiplies while others compute weights:
 * barrier 1 + g of the block is the turn of consumer g. */
static void pass_turn(const WgmmaRows *s, const char *text, Val group) {
    const Codegen *k = s->k;
    Val number = k_addi(k, group, 1);
    if (s->out.n_groups < 2) return;
    k_asm(k, k->void_type, text, "r,~{memory}", &number, 1, true);
}

static void take_turn(const WgmmaRows *s) {
    pass_turn(s, "bar.sync $0, 256;", s->out.group);
}

static void give_turn(const WgmmaRows *s) {
    const Codegen *k = s->k;
    Val next = k_addi(k, s->out.group, 1);
    Val is_last = k_eqi(k, next, s->out.n_groups);
    pass_turn(s, "bar.arrive $0, 256;", k_select(k, is_last, k_i32(k, 0), next));
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
    if (!s->has_scores) return;
    wgmma_wait(&s->out, stage_barrier(s, place.stage, RIGHT_FULL), place.parity);
    Val right = right_at(s, place.stage);
    wgmma_rows_multiply_scores(s, s->keeps_left ? NULL : own_left(s), right);
}

/* Whether a value of the stage is not finite: i1. */
static Val has_infinities(const WgmmaRows *s, Val stage) {
    const Codegen *k = s->k;
    Val any = k_i32(k, 0);
    for (uint32_t w = 0; w < WGMMA_GROUP_WARPS; w++)
        any = k_or(k, any, k_load(k, k->i32, flag_at(s, stage, k_i32(k, w))));
    return k_ne(k, any, k_i32(k, 0));
}

static void await_values(const WgmmaRows *s, PipelineState place) {
    wgmma_wait(&s->out, stage_barrier(s, place.stage, VALUES_FULL), place.parity);
}

/* Goes to `infinite` if rows may not see keys of the place, and a value there is not finite; else
 * to `finite`. */
static void look_at_values(const WgmmaRows *s, PipelineState place, LLVMBasicBlockRef infinite,
                           LLVMBasicBlockRef finite) {
    const Codegen *k = s->k;
    LLVMBasicBlockRef look = k_block(k, "look");
    Val state = k_load(k, k->i32, s->has_weights);
    k_cond_br(k, k_eqi(k, state, WGMMA_ROWS_WEIGHTS_OF_HIDDEN), look, finite);
    k_goto(k, look);
    await_values(s, place);
    if (s->has_maps)
        wgmma_wait(&s->out, stage_barrier(s, place.stage, VALUES_CHECKED), place.parity);
    k_cond_br(k, has_infinities(s, place.stage), infinite, finite);
}

/* All but the last `n_after` groups of products finish. Where no key is hidden, nothing multiplies
 * the scores of the place again. */
static void end_scores(const WgmmaRows *s, PipelineState place, uint32_t n_after) {
    if (!s->has_scores) return;
    wgmma_await(s->k, n_after, s->scores, s->width / 2);
    if (!hides_keys(s)) release(s, stage_barrier(s, place.stage, RIGHT_EMPTY));
}

/* Elsewhere they are kept until the values have been looked at; is_last: the lhs too. */
static void forget_scores(const WgmmaRows *s, PipelineState place, bool is_last) {
    if (!hides_keys(s)) return;
    if (s->has_scores) release(s, stage_barrier(s, place.stage, RIGHT_EMPTY));
    if (is_last && !s->keeps_left) wgmma_rows_free_left(s, left_barrier(s, LEFT_EMPTY));
}

static void end_sums(const WgmmaRows *s, PipelineState place) {
    wgmma_await(s->k, 0, s->sums, s->n_sums);
    release(s, stage_barrier(s, place.stage, VALUES_EMPTY));
}

/* The second product of a place that has infinities, from its scores on. */
static void multiply_infinite(const WgmmaRows *s, PipelineState place, bool is_last) {
    begin_scores(s, place);
    end_scores(s, place, 0);
    forget_scores(s, place, is_last);
    wgmma_rows_make_exponents_again(s, k_load(s->k, s->lower->index_type, s->weighed));
    wgmma_rows_note_seen(s);
    wgmma_rows_take_infinite(s, values_at(s, place.stage));
    wgmma_rows_multiply_weights(s, values_at(s, place.stage));
    end_sums(s, place);
}

/* What the weights of a tile wait for. */
static void set_state(const WgmmaRows *s, Val sees_all) {
    const Codegen *k = s->k;
    Val plain = k_i32(k, WGMMA_ROWS_WEIGHTS), hidden = k_i32(k, WGMMA_ROWS_WEIGHTS_OF_HIDDEN),
        state = plain;
    if (s->may_hide)
        state = hidden;
    else if (sees_all)
        state = k_select(k, sees_all, plain, hidden);
    k_store(k, state, s->has_weights);
}

/* A tile of columns by itself: no weights wait to be multiplied. */
static void single_columns(const WgmmaRows *s, Val column, Val sees_all, PipelineState place) {
    RowMost rows[WGMMA_ROWS_OF_THREAD];
    begin_scores(s, place);
    end_scores(s, place, 0);
    k_store(s->k, column, s->weighed);
    wgmma_rows_make_exponents(s, column, sees_all);
    wgmma_rows_shift(s, rows);
    wgmma_rows_weigh(s, column, rows);
    set_state(s, sees_all);
}

static void multiply_finite(const WgmmaRows *s, PipelineState place) {
    forget_scores(s, place, s->overlaps);
    await_values(s, place);
    wgmma_rows_multiply_weights(s, values_at(s, place.stage));
    end_sums(s, place);
}

/* The second product of a tile of columns by itself. */
static void multiply_last(const WgmmaRows *s, PipelineState place) {
    const Codegen *k = s->k;
    if (!hides_keys(s)) {
        multiply_finite(s, place);
        return;
    }
    LLVMBasicBlockRef infinite = k_block(k, "infinite"), finite = k_block(k, "finite");
    LLVMBasicBlockRef after = k_block(k, "after");
    look_at_values(s, place, infinite, finite);
    k_goto(k, infinite);
    multiply_infinite(s, place, s->overlaps);
    k_br(k, after);
    k_goto(k, finite);
    multiply_finite(s, place);
    k_br(k, after);
    k_goto(k, after);
}

/* Ends the block of code in which the rows' shifts are computed. ptxas moves arithmetic past an
 * instruction that waits for products, but not past a branch: so shifts are found beside the
 * product of the tile before. After it the sums may be scaled, beside the powers. The branch sleeps
 * if the values of this place have been replaced, as another warp may have had them replaced
 * already. */
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

/* The greatest scores are found while the weights of the tile before are multiplied. */
static void next_columns(const WgmmaRows *s, Val column, Val sees_all, PipelineState place) {
    RowMost rows[WGMMA_ROWS_OF_THREAD];
    PipelineState before = place_before(s, place);
    forget_scores(s, before, false);
    take_turn(s);
    begin_scores(s, place);
    await_values(s, before);
    wgmma_rows_multiply_weights(s, values_at(s, before.stage));
    give_turn(s);
    end_scores(s, place, 1);
    k_store(s->k, column, s->weighed);
    wgmma_rows_make_exponents(s, column, sees_all);
    wgmma_rows_shift(s, rows);
    end_block(s, before);
    end_sums(s, before);
    wgmma_rows_weigh(s, column, rows);
    set_state(s, sees_all);
}

/* Where the values before have infinities, their product comes first, by itself. */
static void multiply_columns(WgmmaRows *s, Val column, Val sees_all, PipelineState place) {
    const Codegen *k = s->k;
    if (!s->overlaps) {
        single_columns(s, column, sees_all, place);
        multiply_last(s, place);
        return;
    }
    PipelineState before = place_before(s, place);
    LLVMBasicBlockRef single = k_block(k, "single"), next = k_block(k, "next");
    LLVMBasicBlockRef after = k_block(k, "after");
    LLVMBasicBlockRef some = hides_keys(s) ? k_block(k, "some_weights") : next;
    k_cond_br(k, k_eqi(k, k_load(k, k->i32, s->has_weights), WGMMA_ROWS_NO_WEIGHTS), single, some);
    if (hides_keys(s)) {
        LLVMBasicBlockRef infinite = k_block(k, "infinite");
        k_goto(k, some);
        look_at_values(s, before, infinite, next);
        k_goto(k, infinite);
        multiply_infinite(s, before, false);
        k_br(k, single);
    }
    k_goto(k, single);
    single_columns(s, column, sees_all, place);
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
    if (s->has_scores) wgmma_wait(&s->out, left_barrier(s, LEFT_FULL), ring[2]);
    ring[2] = k_xori(k, ring[2], 1);
    if (s->keeps_left) {
        wgmma_rows_take_left(s);
        wgmma_rows_free_left(s, left_barrier(s, LEFT_EMPTY));
    }
    wgmma_rows_each_columns(s, multiply_columns, ring);
    Val has_weights = k_nei(k, k_load(k, k->i32, s->has_weights), WGMMA_ROWS_NO_WEIGHTS);
    bool forgets = s->overlaps && hides_keys(s); /* the last product releases the lhs */
    if (!s->keeps_left) {
        If none = if_begin(k, forgets ? k_not(k, has_weights) : NULL);
        wgmma_rows_free_left(s, left_barrier(s, LEFT_EMPTY));
        if_end(k, &none);
    }
    if (s->overlaps) {
        If some = if_begin(k, has_weights);
        multiply_last(s, place_before(s, (PipelineState){ring[0], ring[1]}));
        if_end(k, &some);
    }
    wgmma_rows_end(s);
    wgmma_epilogue_sums(&s->out, &epilogue, s->sums);
}

static void run_multiplying(WgmmaRows *s) {
    const Codegen *k = s->k;
    set_registers(s, true);
    wgmma_rows_make_variables(s);
    If last = if_begin(k, k_eqi(k, s->out.group, (int64_t)s->out.n_groups - 1));
    give_turn(s);
    if_end(k, &last);
    wgmma_rows_each_tile(s, multiply_tile, false);
}

static void emit(Lower *lowers) {
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

void emit_gpu_online_wgmma(Lower *lower) {
    emit(lower);
}

void emit_gpu_gemm_online_wgmma(Lower *lowers) {
    emit(lowers);
}
