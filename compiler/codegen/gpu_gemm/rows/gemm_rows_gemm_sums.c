/* The reducing passes of a gemm-rows-gemm launch's rows. See gemm_rows_gemm.h.
 *
 * A lot is the set of tiles with the same chains: every period-th tile. Lots are joined to a tree
 * as they come, in the manner of a binary counter. */
#include "codegen/gpu_gemm/rows/gemm_rows_gemm.h"

/* A reduction's accumulators of one of the thread's rows. `levels` has the joined results of
 * earlier lots: level l is the join of 2^l lots until it becomes part of a larger one. */
typedef struct Sum {
    const Reduce *reduce;
    uint32_t n_groups; /* accumulators; a reduction that has no order needs one */
    Acc groups[MAX_PAIRS], levels[MAX_LEVELS];
} Sum;

/* Those of a stage: [reduction,row]. */
typedef struct Sums {
    uint32_t n, n_reduces;
    Sum sums[GEMM_ROWS_GEMM_MOST_SUMS * MAX_ROWS];
} Sums;

static Sums *sums_new(const GemmRowsGemm *s, const Stage *stage) {
    Sums *sums = arena_array(s->k->arena, Sums, 1);
    sums->n_reduces = stage->reduces.n;
    sums->n = stage->reduces.n * s->n_rows;
    if (stage->reduces.n > GEMM_ROWS_GEMM_MOST_SUMS)
        ice(s->k->arena, "%u reductions in a pass of a gemm-rows-gemm launch", stage->reduces.n);
    for (uint32_t i = 0; i < sums->n; i++) {
        Sum *sum = &sums->sums[i];
        sum->reduce = stage_reduce(s->rows_kernel, stage, i / s->n_rows);
        sum->n_groups = acc_is_ordered(s->rows_lower, sum->reduce) ? s->n_groups : 1;
        for (uint32_t l = 0; l < s->n_levels; l++)
            sum->levels[l] = acc_identity(s->rows_lower, sum->reduce, 1);
    }
    return sums;
}

/* Adds a tile of scores to the accumulators. */
static void visit(const GemmRowsGemm *s, const ScoreTile *at, Sums *sums) {
    for (uint32_t r = 0; r < s->n_rows; r++)
        for (uint32_t g = 0; g < s->n_groups; g++) {
            Point point = gemm_rows_gemm_group(s, at, r, g);
            Val exists = gemm_rows_gemm_group_exists(s, at, g);
            for (uint32_t i = 0; i < sums->n_reduces; i++) {
                Sum *sum = &sums->sums[i * s->n_rows + r];
                Acc *acc = &sum->groups[g % sum->n_groups];
                Acc none = acc_identity(s->rows_lower, sum->reduce, point.lanes);
                Acc element = acc_element(&point, sum->reduce);
                if (exists) element = acc_select(s->rows_lower, exists, element, none);
                *acc = acc_combine(s->rows_lower, sum->reduce, *acc, element);
            }
        }
}

static Acc lane_of(const GemmRowsGemm *s, Acc acc, uint32_t lane) {
    return (Acc){k_extract(s->k, acc.value, lane), NULL};
}

/* Joins a row's lot of chains. Bit 0 of a chain's number is the lane, bits 1 and 2 are the thread,
 * the higher bits the pair. */
static Acc join_lot(const GemmRowsGemm *s, const Sum *sum) {
    const Reduce *reduce = sum->reduce;
    const Acc *groups = sum->groups;
    Acc parts[MAX_PAIRS];
    if (!acc_is_ordered(s->rows_lower, reduce))
        return gpu_fragment_join(s->rows_lower, reduce,
                                 acc_join_lanes(s->rows_lower, reduce, groups[0], s->group * PAIR));
    for (uint32_t i = 0; i < s->n_pairs; i++) {
        const Acc *group = &groups[i / s->group];
        uint32_t lane = i % s->group * PAIR;
        Acc low = lane_of(s, *group, lane), high = lane_of(s, *group, lane + 1);
        parts[i] =
            gpu_fragment_join(s->rows_lower, reduce, acc_combine(s->rows_lower, reduce, low, high));
    }
    return acc_join_pairs(s->rows_lower, reduce, parts, s->n_pairs);
}

static Val has_bit(const GemmRowsGemm *s, Val number, uint32_t bit) {
    const Codegen *k = s->k;
    Val mask = k_int(LLVMTypeOf(number), (int64_t)1 << bit);
    number = k_and(k, number, mask);
    return k_ne(k, number, LLVMConstNull(LLVMTypeOf(number)));
}

/* A binary counter: lot number `lot` joins the occupied low levels and goes to the lowest free
 * level. */
static void push_lot(const GemmRowsGemm *s, const Reduce *reduce, Acc *levels, Acc own, Val lot) {
    const Codegen *k = s->k;
    Val is_carried = k_int(k->i1, 1);
    for (uint32_t l = 0; l < s->n_levels; l++) {
        Val is_taken = has_bit(s, lot, l);
        Acc both = acc_combine(s->rows_lower, reduce, levels[l], own);
        Val is_free_here = k_not(k, is_taken);
        Val stays = k_and(k, is_carried, is_free_here);
        levels[l] = acc_select(s->rows_lower, stays, own, levels[l]);
        is_carried = k_and(k, is_carried, is_taken);
        own = both;
    }
}

/* Joins the levels after `n_lots` lots. Missing lots of an incomplete tree are identities. */
static Acc join_levels(const GemmRowsGemm *s, const Reduce *reduce, const Acc *levels, Val n_lots) {
    Acc all = acc_identity(s->rows_lower, reduce, 1);
    for (uint32_t l = 0; l < s->n_levels; l++) {
        Acc both = acc_combine(s->rows_lower, reduce, levels[l], all);
        all = acc_select(s->rows_lower, has_bit(s, n_lots, l), both, all);
    }
    return all;
}

static Val smaller(const GemmRowsGemm *s, Val a, Val b) {
    return k_select(s->k, k_ult(s->k, a, b), a, b);
}

/* The tile after `tile` of lot `lot`. After the last tile it is tile 0, with which the next pass
 * begins. */
static Val next_tile(const GemmRowsGemm *s, Val lot, Val n_lots, Val tile) {
    const Codegen *k = s->k;
    Val next = k_addi(k, tile, s->period);
    Val is_same = k_ult(k, next, s->n_tiles);
    Val next_lot = k_addi(k, lot, 1);
    next_lot = k_select(k, k_ult(k, next_lot, n_lots), next_lot, gemm_rows_gemm_index(s, 0));
    return k_select(k, is_same, next, next_lot);
}

/* Processes one lot: every period-th tile. */
static void run_lot(GemmRowsGemm *s, Sums *sums, Val lot, Val n_lots) {
    for (uint32_t i = 0; i < sums->n; i++)
        for (uint32_t g = 0; g < sums->sums[i].n_groups; g++)
            sums->sums[i].groups[g] =
                acc_identity(s->rows_lower, sums->sums[i].reduce, s->group * PAIR);
    Loop loop = loop_begin(s->k, lot, s->n_tiles, s->period);
    for (uint32_t i = 0; i < sums->n; i++)
        acc_loop_carry(s->k, &loop, sums->sums[i].groups, sums->sums[i].n_groups);
    loop_carry(s->k, &loop, &s->read, 1);
    gemm_rows_gemm_meet(s);
    Val other = gemm_rows_gemm_other_buffer(s, s->read);
    gemm_rows_gemm_fetch_right(s, next_tile(s, lot, n_lots, loop.index), other);
    gemm_rows_gemm_multiply_scores(s, s->read);
    ScoreTile at = gemm_rows_gemm_tile(s, loop.index);
    visit(s, &at, sums);
    s->read = other;
    loop_end(s->k, &loop);
}

void gemm_rows_gemm_reduce(GemmRowsGemm *s, const Stage *stage) {
    Sums *sums = sums_new(s, stage);
    Val n_lots = smaller(s, s->n_tiles, gemm_rows_gemm_index(s, s->period));
    Loop loop = loop_over(s->k, n_lots, 1);
    for (uint32_t i = 0; i < sums->n; i++)
        acc_loop_carry(s->k, &loop, sums->sums[i].levels, s->n_levels);
    loop_carry(s->k, &loop, &s->read, 1);
    run_lot(s, sums, loop.index, n_lots);
    for (uint32_t i = 0; i < sums->n; i++) {
        Sum *sum = &sums->sums[i];
        push_lot(s, sum->reduce, sum->levels, join_lot(s, sum), loop.index);
    }
    loop_end(s->k, &loop);
    for (uint32_t i = 0; i < sums->n; i++) {
        Sum *sum = &sums->sums[i];
        acc_finish(&s->rows[i % s->n_rows], stage->reduces.data[i / s->n_rows],
                   join_levels(s, sum->reduce, sum->levels, n_lots));
    }
}
