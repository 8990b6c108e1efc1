/* Scalar primitives: the special cases that decide bits, and the table. */
#include "ir/prim.h"
#include "ir/scalar.h"
#include "lib/compare.h"

#include <criterion/criterion.h>
#include <math.h>

typedef struct Case {
    PrimId prim;
    Dtype dtype;
    double a, b, c, want;
} Case;

static void expect_cases(const Case *cases, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const Case *k = &cases[i];
        double got = prim_eval(k->prim, k->dtype, k->a, k->b, k->c);
        cr_expect(compare_same(got, k->want), "%s(%g, %g, %g) on %s gives %g, not %g",
                  prim_info(k->prim)->name, k->a, k->b, k->c, dtype_name(k->dtype), got, k->want);
    }
}

#define EXPECT_CASES(cases) expect_cases(cases, sizeof(cases) / sizeof *(cases))

Test(prim, minimum_and_maximum_pass_nan_and_order_zeros) {
    const Case cases[] = {
        {PRIM_MAX, DT_F32, -0.0, 0.0, 0, 0.0},
        {PRIM_MAX, DT_F32, 0.0, -0.0, 0, 0.0},
        {PRIM_MAX, DT_F32, -0.0, -0.0, 0, -0.0},
        {PRIM_MIN, DT_F64, -0.0, 0.0, 0, -0.0},
        {PRIM_MIN, DT_F64, 0.0, -0.0, 0, -0.0},
        {PRIM_MAX, DT_F32, NAN, 1, 0, NAN},
        {PRIM_MAX, DT_F32, 1, NAN, 0, NAN},
        {PRIM_MIN, DT_F32, NAN, -INFINITY, 0, NAN},
        {PRIM_MIN, DT_F32, -INFINITY, NAN, 0, NAN},
        {PRIM_MAX, DT_F32, INFINITY, NAN, 0, NAN},
        {PRIM_MAX, DT_F32, -1, -2, 0, -1},
        {PRIM_MIN, DT_F32, -1, -2, 0, -2},
        {PRIM_MAX, DT_F32, -INFINITY, -3, 0, -3},
        {PRIM_MIN, DT_F32, INFINITY, -3, 0, -3},
        {PRIM_MAX, DT_I32, -7, 3, 0, 3},
        {PRIM_MIN, DT_I32, INT32_MIN, 0, 0, INT32_MIN},
    };
    EXPECT_CASES(cases);
}

Test(prim, i32_wraps_and_divides_by_anything) {
    const Case cases[] = {
        {PRIM_ADD, DT_I32, INT32_MAX, 1, 0, INT32_MIN},
        {PRIM_SUB, DT_I32, INT32_MIN, 1, 0, INT32_MAX},
        {PRIM_MUL, DT_I32, 65536, 65536, 0, 0},
        {PRIM_MUL, DT_I32, INT32_MAX, INT32_MAX, 0, 1},
        {PRIM_MUL, DT_I32, 65536, 32768, 0, INT32_MIN},
        {PRIM_DIV, DT_I32, -7, 2, 0, -3},
        {PRIM_DIV, DT_I32, 7, 0, 0, 0},
        {PRIM_DIV, DT_I32, INT32_MIN, -1, 0, INT32_MIN},
        {PRIM_REM, DT_I32, -7, 2, 0, -1},
        {PRIM_REM, DT_I32, 7, -2, 0, 1},
        {PRIM_REM, DT_I32, 7, 0, 0, 0},
        {PRIM_REM, DT_I32, INT32_MIN, -1, 0, 0},
        {PRIM_NEG, DT_I32, INT32_MIN, 0, 0, INT32_MIN},
        {PRIM_ABS, DT_I32, INT32_MIN, 0, 0, INT32_MIN},
        {PRIM_ABS, DT_I32, -5, 0, 0, 5},
    };
    EXPECT_CASES(cases);
}

Test(prim, comparisons_are_false_on_nan_but_for_ne) {
    const Case cases[] = {
        {PRIM_LT, DT_F32, NAN, 1, 0, 0},    {PRIM_LT, DT_F32, 1, NAN, 0, 0},
        {PRIM_LE, DT_F32, NAN, NAN, 0, 0},  {PRIM_EQ, DT_F32, NAN, NAN, 0, 0},
        {PRIM_NE, DT_F32, NAN, NAN, 0, 1},  {PRIM_NE, DT_F64, 1, NAN, 0, 1},
        {PRIM_EQ, DT_F32, -0.0, 0.0, 0, 1}, {PRIM_LT, DT_F32, -0.0, 0.0, 0, 0},
        {PRIM_LE, DT_I32, 3, 3, 0, 1},      {PRIM_LT, DT_I32, 3, 3, 0, 0},
        {PRIM_EQ, DT_BOOL, 1, 1, 0, 1},     {PRIM_NE, DT_BOOL, 1, 0, 0, 1},
    };
    EXPECT_CASES(cases);
}

Test(prim, logic_and_select) {
    const Case cases[] = {
        {PRIM_AND, DT_BOOL, 1, 1, 0, 1},
        {PRIM_AND, DT_BOOL, 1, 0, 0, 0},
        {PRIM_OR, DT_BOOL, 0, 1, 0, 1},
        {PRIM_OR, DT_BOOL, 0, 0, 0, 0},
        {PRIM_NOT, DT_BOOL, 0, 0, 0, 1},
        {PRIM_NOT, DT_BOOL, 1, 0, 0, 0},
        {PRIM_SELECT, DT_F32, 1, -0.0, NAN, -0.0},
        {PRIM_SELECT, DT_F32, 0, NAN, -0.0, -0.0},
        {PRIM_SELECT, DT_I32, 1, 5, 6, 5},
        {PRIM_SELECT, DT_BOOL, 0, 1, 0, 0},
    };
    EXPECT_CASES(cases);
}

Test(prim, floats_follow_ieee) {
    const Case cases[] = {
        {PRIM_DIV, DT_F32, 1, -0.0, 0, -INFINITY},
        {PRIM_DIV, DT_F32, 0, 0, 0, NAN},
        {PRIM_SUB, DT_F32, 1, 1, 0, 0.0},
        {PRIM_ADD, DT_F32, -0.0, -0.0, 0, -0.0},
        {PRIM_REM, DT_F32, -7.5, 2, 0, -1.5},
        {PRIM_REM, DT_F32, 1, 0, 0, NAN},
        {PRIM_REM, DT_F32, -4, 2, 0, -0.0},
        {PRIM_REM, DT_F32, 3, INFINITY, 0, 3},
        {PRIM_RINT, DT_F32, 2.5, 0, 0, 2},
        {PRIM_RINT, DT_F32, 3.5, 0, 0, 4},
        {PRIM_RINT, DT_F32, -0.4, 0, 0, -0.0},
        {PRIM_CEIL, DT_F32, -0.5, 0, 0, -0.0},
        {PRIM_FLOOR, DT_F32, -0.5, 0, 0, -1},
        {PRIM_SQRT, DT_F32, -0.0, 0, 0, -0.0},
        {PRIM_SQRT, DT_F64, -1, 0, 0, NAN},
        {PRIM_NEG, DT_F32, 0.0, 0, 0, -0.0},
        {PRIM_ABS, DT_F32, -0.0, 0, 0, 0.0},
        {PRIM_EXP, DT_F32, -INFINITY, 0, 0, 0.0},
        {PRIM_EXP2, DT_F32, 10, 0, 0, 1024},
        {PRIM_LOG2, DT_F32, 0.125, 0, 0, -3},
        {PRIM_LOG, DT_F32, 0, 0, 0, -INFINITY},
        {PRIM_TANH, DT_F32, INFINITY, 0, 0, 1},
        {PRIM_ERF, DT_F32, -INFINITY, 0, 0, -1},
        {PRIM_SIN, DT_F32, -0.0, 0, 0, -0.0},
        {PRIM_COS, DT_F32, 0, 0, 0, 1},
        {PRIM_EXP_16, DT_F32, -INFINITY, 0, 0, 0.0},
        {PRIM_EXP_FTZ, DT_F32, -INFINITY, 0, 0, 0.0},
        {PRIM_TANH_10, DT_F32, -INFINITY, 0, 0, -1},
        {PRIM_LOGISTIC, DT_F32, -INFINITY, 0, 0, 0.0},
        {PRIM_LOGISTIC, DT_F32, -1000, 0, 0, 0.0},
        {PRIM_LOGISTIC, DT_F64, 0, 0, 0, 0.5},
        {PRIM_LOGISTIC_16, DT_F32, INFINITY, 0, 0, 1},
        {PRIM_SILU, DT_F32, -INFINITY, 0, 0, NAN},
        {PRIM_SILU, DT_F32, INFINITY, 0, 0, INFINITY},
        {PRIM_SILU, DT_F64, -1000, 0, 0, -0.0},
        {PRIM_SILU_16, DT_F32, -0.0, 0, 0, -0.0},
        {PRIM_NORMAL, DT_F32, -INFINITY, 0, 0, 0.0},
        {PRIM_NORMAL, DT_F32, 0, 0, 0, 0.5},
        {PRIM_NORMAL_12, DT_F32, INFINITY, 0, 0, 1},
        {PRIM_POW, DT_F32, 0, 0, 0, 1},
        {PRIM_POW, DT_F32, NAN, 0, 0, 1},
        {PRIM_POW, DT_F32, -2, 3, 0, -8},
        {PRIM_TF32, DT_F32, 0x1.002p0, 0, 0, 1}, /* ties, to even */
        {PRIM_TF32, DT_F32, -0x1.006p0, 0, 0, -0x1.008p0},
        {PRIM_TF32, DT_F32, 0x1.002002p0, 0, 0, 0x1.004p0},
        {PRIM_TF32, DT_F32, 0x1.005ffep0, 0, 0, 0x1.004p0},
        {PRIM_TF32, DT_F32, 0x1.ffep0, 0, 0, 2},
        {PRIM_TF32, DT_F32, 0x1.fffffep127, 0, 0, INFINITY},
        {PRIM_TF32, DT_F32, -INFINITY, 0, 0, -INFINITY},
        {PRIM_TF32, DT_F32, 0x1p-137, 0, 0, 0}, /* half the least subnormal */
        {PRIM_TF32, DT_F32, 0x1.8p-136, 0, 0, 0x1p-135},
        {PRIM_TF32, DT_F32, 0x1.8p-138, 0, 0, 0},
        {PRIM_TF32, DT_F32, -0.0, 0, 0, -0.0},
    };
    EXPECT_CASES(cases);
}

Test(prim, results_of_16_bits_take_shorter_functions) {
    cr_expect_eq(prim_rounded_to(PRIM_EXP, DT_BF16), PRIM_EXP_16);
    cr_expect_eq(prim_rounded_to(PRIM_EXP, DT_F16), PRIM_EXP_16);
    cr_expect_eq(prim_rounded_to(PRIM_TANH, DT_F16), PRIM_TANH, "f16 has more digits than 10");
    cr_expect_eq(prim_rounded_to(PRIM_ERF, DT_BF16), PRIM_ERF, "near zero its error is relative");
    for (int p = PRIM_NONE + 1; p < PRIM_COUNT; p++) {
        PrimId prim = (PrimId)p;
        cr_expect_eq(prim_rounded_to(prim, DT_F32), prim);
        cr_expect_eq(prim_rounded_to(prim, DT_F64), prim);
        PrimId shorter = prim_rounded_to(prim, DT_BF16);
        if (shorter == prim) continue;
        cr_expect_lt(prim_info(shorter)->cost, prim_info(prim)->cost, "%s", prim_info(prim)->name);
        cr_expect(!prim_info(prim)->is_exact, "%s", prim_info(prim)->name);
    }
}

Test(prim, every_row_is_whole) {
    for (int p = PRIM_NONE + 1; p < PRIM_COUNT; p++) {
        const PrimInfo *info = prim_info((PrimId)p);
        cr_expect(info->name && info->arity >= 1 && info->arity <= 3 && info->cost >= 1);
        cr_expect(info->operands != 0, "%s has no operand type", info->name);
        for (int d = 0; d < DT_COUNT; d++) { /* defined wherever the table says it is */
            if (!dtype_in((Dtype)d, info->operands) || dtype_compute((Dtype)d) != (Dtype)d)
                continue;
            double got = prim_eval((PrimId)p, (Dtype)d, 1, 1, 1);
            cr_expect(!isnan(got), "%s on %s", info->name, dtype_name((Dtype)d));
        }
    }
}

Test(prim, integers_of_64_bits_are_exact_and_wrap) {
    const int64_t large = INT64_MAX, lowest = INT64_MIN;
    cr_expect_eq(prim_eval_int(PRIM_ADD, DT_I64, large, 1, 0), lowest);
    cr_expect_eq(prim_eval_int(PRIM_SUB, DT_I64, lowest, 1, 0), large);
    cr_expect_eq(prim_eval_int(PRIM_MUL, DT_I64, large, large, 0), 1);
    cr_expect_eq(prim_eval_int(PRIM_DIV, DT_I64, lowest, -1, 0), lowest);
    cr_expect_eq(prim_eval_int(PRIM_REM, DT_I64, lowest, -1, 0), 0);
    cr_expect_eq(prim_eval_int(PRIM_DIV, DT_I64, large, 0, 0), 0);
    cr_expect_eq(prim_eval_int(PRIM_NEG, DT_I64, lowest, 0, 0), lowest);
    cr_expect_eq(prim_eval_int(PRIM_ABS, DT_I64, lowest, 0, 0), lowest);
    cr_expect_eq(prim_eval_int(PRIM_MAX, DT_I64, large, large - 1, 0), large);
    cr_expect_eq(prim_eval_int(PRIM_LT, DT_I64, large - 1, large, 0), 1);
    cr_expect_eq(prim_eval_int(PRIM_SELECT, DT_I64, 0, 1, large), large);
}

Test(prim, every_shift_is_defined) {
    cr_expect_eq(prim_eval_int(PRIM_SHL, DT_I32, 1, 31, 0), INT32_MIN);
    cr_expect_eq(prim_eval_int(PRIM_SHL, DT_I32, 1, 32, 0), 0);
    cr_expect_eq(prim_eval_int(PRIM_SHL, DT_I32, 1, -1, 0), 0);
    cr_expect_eq(prim_eval_int(PRIM_SHR, DT_I32, -8, 1, 0), -4);
    cr_expect_eq(prim_eval_int(PRIM_SHR, DT_I32, -8, 32, 0), -1);
    cr_expect_eq(prim_eval_int(PRIM_SHR, DT_I32, 8, -1, 0), 0);
    cr_expect_eq(prim_eval_int(PRIM_SHR, DT_I64, INT64_MIN, 63, 0), -1);
    cr_expect_eq(prim_eval_int(PRIM_SHL, DT_I64, 3, 63, 0), INT64_MIN);
    cr_expect_eq(prim_eval_int(PRIM_BITXOR, DT_I64, INT64_MAX, -1, 0), INT64_MIN);
    cr_expect_eq(prim_eval_int(PRIM_BITAND, DT_I32, -4, 7, 0), 4);
    cr_expect_eq(prim_eval(PRIM_BITXOR, DT_BOOL, 1, 1, 0), 0);
}

Test(prim, a_neutral_operand_gives_the_other_one) {
    const double values[] = {-0.0, 0.0, 1, -3.5, 0x1p-149, 0x1.fffffep127, -INFINITY, NAN};
    uint32_t n = 0;
    for (int prim = 1; prim < PRIM_COUNT; prim++)
        for (uint32_t arg = 0; arg < 2; arg++) {
            double neutral, operands[2];
            if (!prim_has_neutral((PrimId)prim, arg, &neutral)) continue;
            n++;
            for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
                operands[arg] = neutral, operands[1 - arg] = values[i];
                double got = prim_eval((PrimId)prim, DT_F32, operands[0], operands[1], 0);
                cr_expect(compare_same(got, values[i]), "%s of %g and %g gives %g",
                          prim_info((PrimId)prim)->name, operands[0], operands[1], got);
            }
        }
    cr_expect_eq(n, 6);
}

Test(prim, scalars_leave_neutral_operands_out) {
    Arena *arena = arena_new(NULL);
    ScalarTab *tab = scalartab_new(arena, indextab_new(arena, dimtab_new(arena)));
    ScalarId x = scalar_stage(tab, DT_F32, 0, 0), i = scalar_stage(tab, DT_I32, 1, 0);
    ScalarId minus = scalar_const(tab, DT_F32, -0.0), plus = scalar_const(tab, DT_F32, 0.0);
    ScalarId one = scalar_const(tab, DT_F32, 1);
    cr_expect_eq(scalar_prim(tab, PRIM_ADD, x, minus, SCALAR_NONE), x);
    cr_expect_eq(scalar_prim(tab, PRIM_ADD, minus, x, SCALAR_NONE), x);
    cr_expect_neq(scalar_prim(tab, PRIM_ADD, x, plus, SCALAR_NONE), x);
    cr_expect_eq(scalar_prim(tab, PRIM_SUB, x, plus, SCALAR_NONE), x);
    cr_expect_neq(scalar_prim(tab, PRIM_SUB, plus, x, SCALAR_NONE), x);
    cr_expect_neq(scalar_prim(tab, PRIM_SUB, x, minus, SCALAR_NONE), x);
    cr_expect_eq(scalar_prim(tab, PRIM_DIV, x, one, SCALAR_NONE), x);
    cr_expect_neq(scalar_prim(tab, PRIM_DIV, one, x, SCALAR_NONE), x);
    cr_expect_eq(scalar_prim(tab, PRIM_ADD, i, scalar_const_int(tab, DT_I32, 0), SCALAR_NONE), i);
    arena_free(arena);
}
