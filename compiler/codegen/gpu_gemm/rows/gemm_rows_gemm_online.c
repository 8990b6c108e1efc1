/* The online-softmax rewrite of a gemm-rows-gemm launch to one pass (launch/online_softmax.h).
 * Weights are relative to the largest exponent so far. When it grows, earlier sums are scaled down.
 * See gemm_rows_gemm.h. */
#include "codegen/gpu_gemm/rows/gemm_rows_gemm.h"

static const OnlineSoftmax *online_of(const GemmRowsGemm *s) {
    return s->online_softmax;
}

static const Reduce *shift_of(const GemmRowsGemm *s) {
    return &s->rows_kernel->reduces.data[online_of(s)->shift];
}

static const Reduce *total_of(const GemmRowsGemm *s) {
    return &s->rows_kernel->reduces.data[online_of(s)->total];
}

void gemm_rows_gemm_begin_online(GemmRowsGemm *s, GemmRowsGemmState *state) {
    for (uint32_t r = 0; r < s->n_rows; r++) {
        state->shift[r] = acc_identity(s->rows_lower, shift_of(s), 1).value;
        state->total[r] = acc_identity(s->rows_lower, total_of(s), 1).value;
    }
}

/* The largest exponent of a row in this tile, over all its threads. */
static Acc greatest(const GemmRowsGemm *s, const ScoreTile *at, Point *groups) {
    const Reduce *reduce = shift_of(s);
    Acc none = acc_identity(s->rows_lower, reduce, s->group * PAIR), most = none;
    for (uint32_t g = 0; g < s->n_groups; g++) {
        Val exists = gemm_rows_gemm_group_exists(s, at, g);
        Acc element = acc_element(&groups[g], reduce);
        if (exists) element = acc_select(s->rows_lower, exists, element, none);
        most = acc_combine(s->rows_lower, reduce, most, element);
    }
    most = acc_join_lanes(s->rows_lower, reduce, most, s->group * PAIR);
    return gpu_fragment_join(s->rows_lower, reduce, most);
}

/* The scale of earlier sums when the shift goes from `before` to `now`. At the start `before` is
 * -inf and the scale is 0, not NaN, because an infinite shift counts as none. */
static Val scale_of(const GemmRowsGemm *s, Val before, Val now) {
    Val ahead = k_fsub(s->k, before, now);
    return math_prim(s->k, online_of(s)->power, DT_F32, ahead, NULL, NULL);
}

static Val finite_shift(const GemmRowsGemm *s, Val shift) {
    const Codegen *k = s->k;
    Val none = k_number(k, DT_F32, shift_of(s)->identity);
    Val is_none = k_fcmp(k, LLVMRealOEQ, shift, none);
    return k_select(k, is_none, k_number(k, DT_F32, 0), shift);
}

/* Adds a row's weights to its thread's sum, and stores them as the lhs of the second GEMM. */
static void weigh_row(const GemmRowsGemm *s, const ScoreTile *at, uint32_t r, Point *groups,
                      Val *total, Weights *weights) {
    const Codegen *k = s->k;
    const Store *store = &s->rows_kernel->stages.data[s->rows_kernel->stages.n - 1].stores.data[0];
    Dtype from = DT_F32;
    Dtype to = scalar_get(s->rows_kernel->scalars, store->value)->dtype;
    for (uint32_t g = 0; g < s->n_groups; g++) {
        Val exists = gemm_rows_gemm_group_exists(s, at, g);
        Val value = point_lanes(&groups[g], online_of(s)->weight);
        Val none = LLVMConstNull(LLVMTypeOf(value));
        if (exists) value = k_select(k, exists, value, none);
        Acc sum = acc_join_lanes(s->rows_lower, total_of(s), (Acc){value, NULL}, s->group * PAIR);
        *total = k_fadd(k, *total, sum.value);
        gemm_rows_gemm_put_weights(s, r, g, convert_value(k, value, from, to), weights);
    }
}

static void scale_outputs(GemmRowsGemm *s, uint32_t r, Val scale) {
    MmaTile *out = &s->out;
    for (uint32_t n = 0; n < out->n_n; n++)
        for (uint32_t i = 0; i < PAIR; i++) {
            Val *acc = &out->accs[gpu_fragment_pair(out->n_n, r / 2, n, r % 2) + i];
            *acc = k_fmul(s->k, *acc, scale);
        }
}

void gemm_rows_gemm_weigh(GemmRowsGemm *s, const ScoreTile *at, GemmRowsGemmState *state,
                          Weights *weights) {
    Point groups[MAX_PAIRS];
    for (uint32_t r = 0; r < s->n_rows; r++) {
        for (uint32_t g = 0; g < s->n_groups; g++) groups[g] = gemm_rows_gemm_group(s, at, r, g);
        Acc before = {state->shift[r], NULL};
        Acc most = greatest(s, at, groups);
        Val shift = acc_combine(s->rows_lower, shift_of(s), before, most).value;
        Val now = finite_shift(s, shift), scale = scale_of(s, state->shift[r], now);
        s->rows[r].results[online_of(s)->shift] = now; /* results are per row, so all groups share
                                                        * them */
        state->shift[r] = shift;
        state->total[r] = k_fmul(s->k, state->total[r], scale);
        scale_outputs(s, r, scale);
        weigh_row(s, at, r, groups, &state->total[r], weights);
    }
}

void gemm_rows_gemm_end_online(GemmRowsGemm *s, const GemmRowsGemmState *state) {
    for (uint32_t r = 0; r < s->n_rows; r++) {
        Acc total = gpu_fragment_join(s->rows_lower, total_of(s), (Acc){state->total[r], NULL});
        Val one = k_number(s->k, DT_F32, 1);
        scale_outputs(s, r, k_fdiv(s->k, one, total.value));
    }
}
