/* Softmax between two products on tensor cores: tiles in which a value is not finite. See
 * wgmma_rows.h.
 *
 * A hidden key has a weight of 0, but 0 times an infinity or a NaN is NaN. So infinities and NaNs
 * count as 0 in the product of such a tile. Before that product, each thread adds the infinities
 * and NaNs that its rows see to its sums. */
#include "codegen/gpu_gemm/rows/wgmma_rows.h"

#include <math.h>

enum { PAIR = FRAGMENT_PAIR, HALF_BITS = 16, HIGH_HALF = -0x10000, THREADS_OF_ROW = 4 };
enum { SIGN_BITS = -0x7FFF8000, SIGN_BIT = 0x8000, SIZE_BITS = 0x7FFF };

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

Val wgmma_rows_next_exponents(const WgmmaRows *s, Val word) {
    const Codegen *k = s->k;
    int64_t bits = exponent_bits(s), least = bits & ~(bits << 1);
    Val exponents = k_andi(k, word, bits << HALF_BITS | bits);
    return k_addi(k, exponents, least << HALF_BITS | least);
}

Val wgmma_rows_is_infinite(const WgmmaRows *s, Val next) {
    return k_nei(s->k, k_andi(s->k, next, SIGN_BITS), 0);
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

/* The keys of the thread whose weights have one of these bits. */
static Val keys_of_weights(const WgmmaRows *s, uint32_t r, int64_t bits) {
    const Codegen *k = s->k;
    Val keys = k_i32(k, 0);
    for (uint32_t n = 0; n < s->n_pairs; n++) {
        Val word = k_load(k, k->i32, s->weights[wgmma_rows_weight(r, n)]);
        for (uint32_t i = 0; i < PAIR; i++) {
            Val own = k_andi(k, word, i ? bits * (1 << HALF_BITS) : bits);
            keys = k_or(k, keys, bit(k, k_nei(k, own, 0), n, i));
        }
    }
    return keys;
}

/* A key for the thread's rows. */
typedef struct SeenKey {
    Val seen[WGMMA_ROWS_OF_THREAD];    /* i1 */
    Val weights[WGMMA_ROWS_OF_THREAD]; /* f32: 1, with the sign of its factor, or 0 where it has
                                        * been rounded to 0 */
} SeenKey;

/* Adds the infinities and NaNs of pair `j` of values (i32) to its sums. A finite value counts as
 * -0, which changes no sum. */
static void add_pair(const WgmmaRows *s, const SeenKey *key, Val pair, uint32_t j) {
    const Codegen *k = s->k;
    Dtype dtype = gemm_operand_dtype(s->out_lower->kernel);
    Val values = k_bitcast(k, pair, k_value_type(k, dtype, PAIR)), none = k_number(k, DT_F32, -0.0);
    values = convert_value(k, values, dtype, DT_F32);
    for (uint32_t i = 0; i < PAIR; i++) {
        Val half = k_extract(k, values, i);
        Val value = k_select(k, is_infinite_half(s, pair, i), half, none);
        for (uint32_t r = 0; r < WGMMA_ROWS_OF_THREAD; r++) {
            Val sum = s->sums[gpu_fragment_pair(0, 0, j, r) + i];
            Val own = k_select(k, key->seen[r], value, none);
            k_store(k, math_fma(k, own, key->weights[r], k_load(k, k->f32, sum)), sum);
        }
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
void wgmma_rows_add_infinite(const WgmmaRows *s, WgmmaRowsPair *pair_at, const void *user) {
    const Codegen *k = s->k;
    Val weighty[WGMMA_ROWS_OF_THREAD], negative[WGMMA_ROWS_OF_THREAD], seen[WGMMA_ROWS_OF_THREAD];
    Val t = k_andi(k, s->out.thread, THREADS_OF_ROW - 1),
        column = gpu_fragment_column(k, s->out.thread);
    uint32_t n_own = PAIR * s->n_pairs;
    for (uint32_t r = 0; r < WGMMA_ROWS_OF_THREAD; r++) {
        weighty[r] = keys_of_weights(s, r, s->weight_factor ? SIZE_BITS : 0xFFFF);
        if (s->weight_factor) negative[r] = keys_of_weights(s, r, SIGN_BIT);
        seen[r] = k_load(k, k->i32, s->seen[r]);
    }
    Loop loop = loop_over(k, k_i32(k, (int64_t)THREADS_OF_ROW * n_own), 1);
    Val distance = k_udivi(k, loop.index, n_own), number = k_uremi(k, loop.index, n_own);
    SeenKey key;
    for (uint32_t r = 0; r < WGMMA_ROWS_OF_THREAD; r++) {
        Val has_weight = is_in(k, weighty[r], distance, number);
        key.seen[r] = is_in(k, seen[r], distance, number);
        Val one = k_number(k, DT_F32, 1);
        if (s->weight_factor)
            one =
                k_select(k, is_in(k, negative[r], distance, number), k_number(k, DT_F32, -1), one);
        key.weights[r] = k_select(k, has_weight, one, k_number(k, DT_F32, 0));
    }
    Val at = k_muli(k, k_lshri(k, number, 1), FRAGMENT_COLUMNS);
    at = k_add(k, at, k_muli(k, k_xor(k, t, distance), PAIR));
    at = k_add(k, at, k_andi(k, number, 1));
    If some = if_begin(k, k_or(k, key.seen[0], key.seen[1]));
    for (uint32_t j = 0; j < s->n_sums / FRAGMENT_ACCUMULATORS; j++)
        add_pair(s, &key, pair_at(user, at, k_addi(k, column, (int64_t)j * FRAGMENT_COLUMNS)), j);
    if_end(k, &some);
    loop_end(k, &loop);
}

Val wgmma_rows_pair(const Codegen *k, Val first, Val second, bool are_neighbours) {
    if (are_neighbours) return k_load_aligned(k, k->i32, first, PAIR * GEMM_ROWS_GEMM_ELEM_BYTES);
    Val low = k_zext(k, k_load(k, k->i16, first), k->i32);
    Val high = k_zext(k, k_load(k, k->i16, second), k->i32);
    return k_or(k, low, k_shli(k, high, HALF_BITS));
}
