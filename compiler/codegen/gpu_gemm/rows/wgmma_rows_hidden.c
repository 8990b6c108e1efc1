/* Softmax between two products on tensor cores: tiles in which a value is not finite. See
 * wgmma_rows.h.
 *
 * A hidden key has a weight of 0, but 0 times an infinity or a NaN is NaN. So infinities and NaNs
 * count as 0 in the product of such a tile. Before it, each thread adds those that its rows see to
 * its sums. */
#include "codegen/gpu_gemm/rows/wgmma_rows.h"

#include <math.h>

enum { PAIR = FRAGMENT_PAIR, HALF_BITS = 16, HIGH_HALF = -0x10000, THREADS_OF_ROW = 4 };

/* The bits of an exponent that is all ones, of one element. */
static int64_t exponent_bits(const WgmmaRows *s) {
    Dtype dtype = gemm_operand_dtype(s->out_lower->kernel);
    return dtype_info(dtype)->mma == MMA_BFLOAT ? 0x7F80 : 0x7C00;
}

/* Whether the element in half `half` of the word (i32) is not finite: i1. */
static Val is_infinite_half(const WgmmaRows *s, Val word, uint32_t half) {
    int64_t bits = exponent_bits(s) << half * HALF_BITS;
    return k_eqi(s->k, k_andi(s->k, word, bits), bits);
}

Val wgmma_rows_is_infinite(const WgmmaRows *s, Val word) {
    Val low = is_infinite_half(s, word, 0);
    return k_or(s->k, low, is_infinite_half(s, word, 1));
}

Val wgmma_rows_finite(const WgmmaRows *s, Val word) {
    const Codegen *k = s->k;
    for (uint32_t half = 0; half < PAIR; half++) {
        Val rest = k_andi(k, word, half ? 0xFFFF : HIGH_HALF);
        word = k_select(k, is_infinite_half(s, word, half), rest, word);
    }
    return word;
}

/* Bit 2n + i of a thread's keys is number i of pair n. */
static Val bit(const Codegen *k, Val is_set, uint32_t n, uint32_t i) {
    return k_select(k, is_set, k_i32(k, (int64_t)1 << (PAIR * n + i)), k_i32(k, 0));
}

void wgmma_rows_note_seen(const WgmmaRows *s) {
    const Codegen *k = s->k;
    Val none = k_number(k, DT_F32, s->greatest.identity);
    for (uint32_t r = 0; r < WGMMA_ROWS_OF_THREAD; r++) {
        Val seen = k_i32(k, 0);
        for (uint32_t n = 0; n < s->n_pairs; n++)
            for (uint32_t i = 0; i < PAIR; i++) {
                Val x = k_load(k, k->f32, s->scores[gpu_fragment_pair(s->n_pairs, 0, n, r) + i]);
                seen = k_or(k, seen, bit(k, k_fcmp(k, LLVMRealUNE, x, none), n, i));
            }
        k_store(k, seen, s->seen[r]);
    }
}

/* The keys of the thread whose weights have not been rounded to 0. */
static Val weighty_keys(const WgmmaRows *s, uint32_t r) {
    const Codegen *k = s->k;
    Val keys = k_i32(k, 0);
    for (uint32_t n = 0; n < s->n_pairs; n++) {
        Val word = k_load(k, k->i32, s->weights[wgmma_rows_weight(r, n)]);
        for (uint32_t i = 0; i < PAIR; i++) {
            Val own = k_andi(k, word, i ? HIGH_HALF : 0xFFFF);
            keys = k_or(k, keys, bit(k, k_nei(k, own, 0), n, i));
        }
    }
    return keys;
}

/* A key for the thread's rows. */
typedef struct SeenKey {
    Val number;                                              /* i32: in the tile */
    Val seen[WGMMA_ROWS_OF_THREAD], has_weight[WGMMA_ROWS_OF_THREAD]; /* i1 */
} SeenKey;

/* Adds value `bits` (i16) to the sums of pair `j`, number `i`, if it is not finite. */
static void add_value(const WgmmaRows *s, const SeenKey *key, Val bits, uint32_t j, uint32_t i) {
    const Codegen *k = s->k;
    Dtype dtype = gemm_operand_dtype(s->out_lower->kernel);
    Val is_infinite = is_infinite_half(s, k_zext(k, bits, k->i32), 0);
    Val value = convert_value(k, k_bitcast(k, bits, k_value_type(k, dtype, 1)), dtype, DT_F32);
    Val nan = k_number(k, DT_F32, NAN);
    for (uint32_t r = 0; r < WGMMA_ROWS_OF_THREAD; r++) {
        Val sum = s->sums[gpu_fragment_pair(0, 0, j, r) + i], before = k_load(k, k->f32, sum);
        Val after = k_fadd(k, before, k_select(k, key->has_weight[r], value, nan));
        k_store(k, k_select(k, k_and(k, is_infinite, key->seen[r]), after, before), sum);
    }
}

/* Whether the key is in the set (i32) of the thread `distance` (i32) away, as bit `number`. */
static Val is_in(const Codegen *k, Val set, Val distance, Val number) {
    Val args[4] = {k_i32(k, -1), set, distance, k_i32(k, WARP_THREADS - 1)};
    Val other = k_intrinsic(k, "llvm.nvvm.shfl.sync.bfly.i32", args, 4);
    return k_nei(k, k_andi(k, k_lshr(k, other, number), 1), 0);
}

/* Each of the four threads of a row has a quarter of the keys. A thread takes its own, then those
 * of the three others. */
void wgmma_rows_add_infinite(const WgmmaRows *s, WgmmaRowsValue *value_at, const void *user) {
    const Codegen *k = s->k;
    Val weighty[WGMMA_ROWS_OF_THREAD], seen[WGMMA_ROWS_OF_THREAD];
    Val t = k_andi(k, s->out.thread, THREADS_OF_ROW - 1), column = gpu_fragment_column(k, s->out.thread);
    uint32_t n_own = PAIR * s->n_pairs;
    for (uint32_t r = 0; r < WGMMA_ROWS_OF_THREAD; r++) {
        weighty[r] = weighty_keys(s, r);
        seen[r] = k_load(k, k->i32, s->seen[r]);
    }
    Loop loop = loop_over(k, k_i32(k, (int64_t)THREADS_OF_ROW * n_own), 1);
    Val distance = k_udivi(k, loop.index, n_own), number = k_uremi(k, loop.index, n_own);
    SeenKey key;
    for (uint32_t r = 0; r < WGMMA_ROWS_OF_THREAD; r++) {
        key.seen[r] = is_in(k, seen[r], distance, number);
        key.has_weight[r] = is_in(k, weighty[r], distance, number);
    }
    Val pair = k_muli(k, k_lshri(k, number, 1), FRAGMENT_COLUMNS);
    pair = k_add(k, pair, k_muli(k, k_xor(k, t, distance), PAIR));
    key.number = k_add(k, pair, k_andi(k, number, 1));
    If some = if_begin(k, k_or(k, key.seen[0], key.seen[1]));
    for (uint32_t j = 0; j < s->n_sums / FRAGMENT_ACCUMULATORS; j++)
        for (uint32_t i = 0; i < PAIR; i++) {
            Val at = k_addi(k, column, (int64_t)j * FRAGMENT_COLUMNS + i);
            add_value(s, &key, value_at(user, key.number, at), j, i);
        }
    if_end(k, &some);
    loop_end(k, &loop);
}
