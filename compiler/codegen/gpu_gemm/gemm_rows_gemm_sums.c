/* Passes of a gemm-rows-gemm launch's rows that reduce. See gemm_rows_gemm.h.
 *
 * The tiles that have the same chains are a lot: every period-th. Lots are joined as a tree while
 * they come, by counting in binary. */
#include "codegen/gpu_gemm/gemm_rows_gemm.h"

enum {
    MAX_STAGE_SUMS = 4, /* reductions of a stage */
    MAX_CARRIED = MAX_STAGE_SUMS * MAX_ROWS * (MAX_PAIRS + MAX_LEVELS) + 1
};

/* A stage's accumulators of a thread, and per row and reduction what the lots of chains before have
 * left: level l the sum of 2^l lots, while that is no part of a larger one. */
typedef struct Sums {
    const Stage *stage;
    Acc groups[MAX_STAGE_SUMS][MAX_ROWS][MAX_PAIRS];
    Acc levels[MAX_STAGE_SUMS][MAX_ROWS][MAX_LEVELS];
} Sums;

static uint32_t n_accs(const GemmRowsGemm *s, const Reduce *reduce) {
    return acc_is_ordered(s->rows_lower, reduce) ? s->n_groups : 1;
}

/* Both as flat lists of values, or back from them. */
static uint32_t flatten_groups(const GemmRowsGemm *s, Sums *sums, LLVMValueRef *values,
                               bool is_back) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < sums->stage->reduces.n; i++)
        for (uint32_t r = 0; r < s->n_rows; r++)
            for (uint32_t g = 0; g < n_accs(s, stage_reduce(s->rows_kernel, sums->stage, i));
                 g++, n++) {
                if (is_back)
                    sums->groups[i][r][g].value = values[n];
                else
                    values[n] = sums->groups[i][r][g].value;
            }
    return n;
}

static uint32_t flatten_levels(const GemmRowsGemm *s, Sums *sums, LLVMValueRef *values,
                               bool is_back) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < sums->stage->reduces.n; i++)
        for (uint32_t r = 0; r < s->n_rows; r++)
            for (uint32_t l = 0; l < s->n_levels; l++, n++) {
                if (is_back)
                    sums->levels[i][r][l].value = values[n];
                else
                    values[n] = sums->levels[i][r][l].value;
            }
    return n;
}

static void begin_groups(const GemmRowsGemm *s, Sums *sums) {
    for (uint32_t i = 0; i < sums->stage->reduces.n; i++)
        for (uint32_t r = 0; r < s->n_rows; r++)
            for (uint32_t g = 0; g < s->n_groups; g++)
                sums->groups[i][r][g] = acc_identity(
                    s->rows_lower, stage_reduce(s->rows_kernel, sums->stage, i), s->group * PAIR);
}

static void begin_levels(const GemmRowsGemm *s, Sums *sums) {
    for (uint32_t i = 0; i < sums->stage->reduces.n; i++)
        for (uint32_t r = 0; r < s->n_rows; r++)
            for (uint32_t l = 0; l < s->n_levels; l++)
                sums->levels[i][r][l] =
                    acc_identity(s->rows_lower, stage_reduce(s->rows_kernel, sums->stage, i), 1);
}

/* Adds a tile of scores. */
static void visit(const GemmRowsGemm *s, const ScoreTile *at, Sums *sums) {
    for (uint32_t r = 0; r < s->n_rows; r++)
        for (uint32_t g = 0; g < s->n_groups; g++) {
            Point point = gemm_rows_gemm_group(s, at, r, g);
            LLVMValueRef exists = gemm_rows_gemm_group_exists(s, at, g);
            for (uint32_t i = 0; i < sums->stage->reduces.n; i++) {
                const Reduce *reduce = stage_reduce(s->rows_kernel, sums->stage, i);
                Acc *acc = &sums->groups[i][r][acc_is_ordered(s->rows_lower, reduce) ? g : 0];
                Acc none = acc_identity(s->rows_lower, reduce, point.lanes);
                Acc element = acc_element(&point, reduce);
                if (exists) element = acc_select(s->rows_lower, exists, element, none);
                *acc = acc_combine(s->rows_lower, reduce, *acc, element);
            }
        }
}

static Acc lane_of(const GemmRowsGemm *s, Acc acc, uint32_t lane) {
    LLVMBuilderRef builder = s->unit->builder;
    return (Acc){LLVMBuildExtractElement(builder, acc.value, unit_i32(s->unit, lane), ""), NULL};
}

Acc gemm_rows_gemm_join_threads(const GemmRowsGemm *s, const Reduce *reduce, Acc acc) {
    for (uint32_t offset = 1; offset < 4; offset *= 2) {
        Acc other = {gpu_shuffle_xor(s->unit, acc.value, offset), NULL};
        acc = acc_combine(s->rows_lower, reduce, acc, other);
    }
    return acc;
}

/* The lot of chains of a row: bit 0 of a chain's number is the lane, 1 and 2 the thread, the next
 * ones the pair. */
static Acc join_lot(const GemmRowsGemm *s, const Reduce *reduce, const Acc *groups) {
    Acc parts[MAX_PAIRS];
    uint32_t n = s->n_pairs;
    if (!acc_is_ordered(s->rows_lower, reduce))
        return gemm_rows_gemm_join_threads(
            s, reduce, acc_join_lanes(s->rows_lower, reduce, groups[0], s->group * PAIR));
    for (uint32_t i = 0; i < n; i++) {
        const Acc *group = &groups[i / s->group];
        uint32_t lane = i % s->group * PAIR;
        Acc low = lane_of(s, *group, lane), high = lane_of(s, *group, lane + 1);
        parts[i] =
            gemm_rows_gemm_join_threads(s, reduce, acc_combine(s->rows_lower, reduce, low, high));
    }
    for (; n > 1; n /= 2)
        for (uint32_t i = 0; i < n / 2; i++)
            parts[i] = acc_combine(s->rows_lower, reduce, parts[2 * i], parts[2 * i + 1]);
    return parts[0];
}

static LLVMValueRef has_bit(const GemmRowsGemm *s, LLVMValueRef number, uint32_t bit) {
    LLVMBuilderRef builder = s->unit->builder;
    LLVMValueRef mask = unit_int(LLVMTypeOf(number), (int64_t)1 << bit);
    number = LLVMBuildAnd(builder, number, mask, "");
    return LLVMBuildICmp(builder, LLVMIntNE, number, LLVMConstNull(LLVMTypeOf(number)), "");
}

/* Counting in binary: lot number `lot` goes to the lowest level that is free, with all below. */
static void push_lot(const GemmRowsGemm *s, const Reduce *reduce, Acc *levels, Acc own,
                     LLVMValueRef lot) {
    LLVMBuilderRef builder = s->unit->builder;
    LLVMValueRef is_carried = unit_int(s->unit->i1, 1);
    for (uint32_t l = 0; l < s->n_levels; l++) {
        LLVMValueRef is_taken = has_bit(s, lot, l);
        Acc both = acc_combine(s->rows_lower, reduce, levels[l], own);
        LLVMValueRef is_free_here = LLVMBuildNot(builder, is_taken, "");
        LLVMValueRef stays = LLVMBuildAnd(builder, is_carried, is_free_here, "");
        levels[l] = acc_select(s->rows_lower, stays, own, levels[l]);
        is_carried = LLVMBuildAnd(builder, is_carried, is_taken, "");
        own = both;
    }
}

/* Of `n_lots` lots: those that are missing to a whole tree change nothing. */
static Acc join_levels(const GemmRowsGemm *s, const Reduce *reduce, const Acc *levels,
                       LLVMValueRef n_lots) {
    Acc all = acc_identity(s->rows_lower, reduce, 1);
    for (uint32_t l = 0; l < s->n_levels; l++) {
        Acc both = acc_combine(s->rows_lower, reduce, levels[l], all);
        all = acc_select(s->rows_lower, has_bit(s, n_lots, l), both, all);
    }
    return all;
}

static LLVMValueRef smaller(const GemmRowsGemm *s, LLVMValueRef a, LLVMValueRef b) {
    LLVMValueRef is_less = LLVMBuildICmp(s->unit->builder, LLVMIntULT, a, b, "");
    return LLVMBuildSelect(s->unit->builder, is_less, a, b, "");
}

/* The tile behind `tile` of lot `lot`; behind the last the first, with which the next pass begins.
 */
static LLVMValueRef next_tile(const GemmRowsGemm *s, LLVMValueRef lot, LLVMValueRef n_lots,
                              LLVMValueRef tile) {
    LLVMBuilderRef builder = s->unit->builder;
    LLVMValueRef next = LLVMBuildAdd(builder, tile, gemm_rows_gemm_index(s, s->period), "");
    LLVMValueRef is_same = LLVMBuildICmp(builder, LLVMIntULT, next, s->n_tiles, "");
    LLVMValueRef next_lot = LLVMBuildAdd(builder, lot, gemm_rows_gemm_index(s, 1), "");
    LLVMValueRef is_there = LLVMBuildICmp(builder, LLVMIntULT, next_lot, n_lots, "");
    next_lot = LLVMBuildSelect(builder, is_there, next_lot, gemm_rows_gemm_index(s, 0), "");
    return LLVMBuildSelect(builder, is_same, next, next_lot, "");
}

/* One lot of chains: every period-th tile. */
static void run_lot(GemmRowsGemm *s, Sums *sums, LLVMValueRef lot, LLVMValueRef n_lots) {
    LLVMValueRef values[MAX_CARRIED];
    begin_groups(s, sums);
    uint32_t n = flatten_groups(s, sums, values, false);
    values[n] = s->read;
    Loop loop = loop_begin(s->unit, s->lower->function, lot, s->n_tiles,
                           gemm_rows_gemm_index(s, s->period));
    loop_carry(s->unit, &loop, values, n + 1);
    flatten_groups(s, sums, values, true);
    s->read = values[n];
    gemm_rows_gemm_meet(s);
    LLVMValueRef other = gemm_rows_gemm_other_buffer(s, s->read);
    gemm_rows_gemm_fetch_right(s, next_tile(s, lot, n_lots, loop.index), other);
    gemm_rows_gemm_multiply_scores(s, s->read);
    ScoreTile at = gemm_rows_gemm_tile(s, loop.index);
    visit(s, &at, sums);
    flatten_groups(s, sums, values, false);
    values[n] = other;
    loop_end_carry(s->unit, &loop, values, n + 1);
    flatten_groups(s, sums, values, true);
    s->read = values[n];
}

static void join_lots(const GemmRowsGemm *s, Sums *sums, LLVMValueRef lot) {
    for (uint32_t i = 0; i < sums->stage->reduces.n; i++)
        for (uint32_t r = 0; r < s->n_rows; r++) {
            const Reduce *reduce = stage_reduce(s->rows_kernel, sums->stage, i);
            Acc own = join_lot(s, reduce, sums->groups[i][r]);
            push_lot(s, reduce, sums->levels[i][r], own, lot);
        }
}

void gemm_rows_gemm_reduce(GemmRowsGemm *s, const Stage *stage) {
    Sums *sums = arena_array(s->unit->arena, Sums, 1);
    LLVMValueRef values[MAX_CARRIED];
    sums->stage = stage;
    if (stage->reduces.n > MAX_STAGE_SUMS)
        ice(s->unit->arena, "%u reductions in a pass of a relay", stage->reduces.n);
    begin_levels(s, sums);
    LLVMValueRef n_lots = smaller(s, s->n_tiles, gemm_rows_gemm_index(s, s->period));
    uint32_t n = flatten_levels(s, sums, values, false);
    values[n] = s->read;
    Loop loop = loop_begin(s->unit, s->lower->function, gemm_rows_gemm_index(s, 0), n_lots,
                           gemm_rows_gemm_index(s, 1));
    loop_carry(s->unit, &loop, values, n + 1);
    flatten_levels(s, sums, values, true);
    s->read = values[n];
    run_lot(s, sums, loop.index, n_lots);
    join_lots(s, sums, loop.index);
    flatten_levels(s, sums, values, false);
    values[n] = s->read;
    loop_end_carry(s->unit, &loop, values, n + 1);
    flatten_levels(s, sums, values, true);
    s->read = values[n];
    for (uint32_t i = 0; i < stage->reduces.n; i++)
        for (uint32_t r = 0; r < s->n_rows; r++) {
            Acc all =
                join_levels(s, stage_reduce(s->rows_kernel, stage, i), sums->levels[i][r], n_lots);
            acc_finish(&s->rows[r], stage->reduces.data[i], all);
        }
}
