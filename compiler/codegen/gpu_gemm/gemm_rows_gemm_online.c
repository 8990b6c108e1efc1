/* The rewrite of a gemm-rows-gemm launch to one pass (launch/online_softmax.h): weights are taken
 * relative to the greatest exponent so far, and when that grows, what was summed is scaled down.
 * See gemm_rows_gemm.h. */
#include "codegen/gpu_gemm/gemm_rows_gemm.h"

static const OnlineSoftmax *online_of(const GemmRowsGemm *s) {
    return &s->rows_kernel->online_softmax;
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

/* Of the groups of a row in this tile, in all its threads. */
static Acc greatest(const GemmRowsGemm *s, const ScoreTile *at, Point *groups) {
    const Reduce *reduce = shift_of(s);
    Acc none = acc_identity(s->rows_lower, reduce, s->group * PAIR), most = none;
    for (uint32_t g = 0; g < s->n_groups; g++) {
        LLVMValueRef exists = gemm_rows_gemm_group_exists(s, at, g);
        Acc element = acc_element(&groups[g], reduce);
        if (exists) element = acc_select(s->rows_lower, exists, element, none);
        most = acc_combine(s->rows_lower, reduce, most, element);
    }
    most = acc_join_lanes(s->rows_lower, reduce, most, s->group * PAIR);
    return gemm_rows_gemm_join_threads(s, reduce, most);
}

/* What sums so far are multiplied by, as the shift goes from `before` to `now`. Before there was
 * anything that is 0, not NaN: an infinite shift is none. */
static LLVMValueRef scale_of(const GemmRowsGemm *s, LLVMValueRef before, LLVMValueRef now) {
    LLVMValueRef ahead = LLVMBuildFSub(s->unit->builder, before, now, "");
    return unit_prim(s->unit, online_of(s)->power, DT_F32, ahead, NULL, NULL);
}

static LLVMValueRef finite_shift(const GemmRowsGemm *s, LLVMValueRef shift) {
    LLVMBuilderRef builder = s->unit->builder;
    LLVMValueRef none = unit_number(s->unit, DT_F32, shift_of(s)->identity);
    LLVMValueRef is_none = LLVMBuildFCmp(builder, LLVMRealOEQ, shift, none, "");
    return LLVMBuildSelect(builder, is_none, unit_number(s->unit, DT_F32, 0), shift, "");
}

/* Adds a row's weights to its thread's sum, and has them as the product's lhs. */
static void weigh_row(const GemmRowsGemm *s, const ScoreTile *at, uint32_t r, Point *groups,
                      LLVMValueRef *total, Weights *weights) {
    const Unit *unit = s->unit;
    const Store *store = &s->rows_kernel->stages.data[s->rows_kernel->stages.n - 1].stores.data[0];
    ConvertType from = unit_convert_type(DT_F32);
    ConvertType to = unit_convert_type(scalar_get(s->rows_kernel->scalars, store->value)->dtype);
    for (uint32_t g = 0; g < s->n_groups; g++) {
        LLVMValueRef exists = gemm_rows_gemm_group_exists(s, at, g);
        LLVMValueRef value = point_lanes(&groups[g], online_of(s)->weight);
        LLVMValueRef none = LLVMConstNull(LLVMTypeOf(value));
        if (exists) value = LLVMBuildSelect(unit->builder, exists, value, none, "");
        Acc sum = acc_join_lanes(s->rows_lower, total_of(s), (Acc){value, NULL}, s->group * PAIR);
        *total = LLVMBuildFAdd(unit->builder, *total, sum.value, "");
        gemm_rows_gemm_put_weights(s, r, g, convert_value(&unit->math, value, from, to), weights);
    }
}

static void scale_outputs(GemmRowsGemm *s, uint32_t r, LLVMValueRef scale) {
    MmaTile *out = &s->out;
    for (uint32_t n = 0; n < out->n_n; n++)
        for (uint32_t i = 0; i < PAIR; i++) {
            LLVMValueRef *acc = &out->accs[(r / 2 * out->n_n + n) * 4 + r % 2 * PAIR + i];
            *acc = LLVMBuildFMul(s->unit->builder, *acc, scale, "");
        }
}

void gemm_rows_gemm_weigh(GemmRowsGemm *s, const ScoreTile *at, GemmRowsGemmState *state,
                          Weights *weights) {
    Point groups[MAX_PAIRS];
    for (uint32_t r = 0; r < s->n_rows; r++) {
        for (uint32_t g = 0; g < s->n_groups; g++) groups[g] = gemm_rows_gemm_group(s, at, r, g);
        Acc before = {state->shift[r], NULL};
        Acc most = greatest(s, at, groups);
        LLVMValueRef shift = acc_combine(s->rows_lower, shift_of(s), before, most).value;
        LLVMValueRef now = finite_shift(s, shift), scale = scale_of(s, state->shift[r], now);
        s->rows[r].results[online_of(s)->shift] = now; /* the groups have the same results */
        state->shift[r] = shift;
        state->total[r] = LLVMBuildFMul(s->unit->builder, state->total[r], scale, "");
        scale_outputs(s, r, scale);
        weigh_row(s, at, r, groups, &state->total[r], weights);
    }
}

void gemm_rows_gemm_end_online(GemmRowsGemm *s, const GemmRowsGemmState *state) {
    for (uint32_t r = 0; r < s->n_rows; r++) {
        Acc total = gemm_rows_gemm_join_threads(s, total_of(s), (Acc){state->total[r], NULL});
        LLVMValueRef one = unit_number(s->unit, DT_F32, 1);
        scale_outputs(s, r, LLVMBuildFDiv(s->unit->builder, one, total.value, ""));
    }
}
