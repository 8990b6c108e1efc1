/* Elementary functions and activations as code for a GPU: what is spent on them follows from the
 * digits of the result. That they keep their bounds is for `soak --ulp`, on one. */
#include "lib/compiled.h"

#include <criterion/criterion.h>
#include <stdio.h>

static Compiled compiled;

static const char *ptx_of(const char *expression, const char *dtype) {
    static char source[256];
    snprintf(source, sizeof source, "graph g(x: %s[4096]) -> (y: %s[4096]) { y = %s }", dtype,
             dtype, expression);
    compiled = compiled_new(source, TARGET_SM_90A);
    return compiled.bytes;
}

/* Per element, two of the machine's functions and what the digits need: f32 reduces the exponent,
 * 16 bits do not. No activation needs a true quotient, `/` does. */
Test(gpu_math, activations_take_what_their_digits_need) {
    static const char *const functions[] = {"sigmoid(x)", "silu(x)", "gelu_tanh(x)", "gelu(x)"};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        const char *narrow = ptx_of(functions[i], "bf16");
        uint32_t n = ptx_count(narrow, "ex2.approx.ftz.f32");
        cr_expect(n > 0 && ptx_count(narrow, "rcp.approx.ftz.f32") == n, "%s", functions[i]);
        cr_expect_leq(ptx_count(narrow, "fma.rn.f32"), (i == 3 ? 4 : 1) * n, "%s", functions[i]);
        cr_expect_eq(ptx_count(narrow, "div.") + ptx_count(narrow, "selp."), 0, "%s", functions[i]);
        if (i == 3) break; /* gelu of f32 has the error function's two ranges */
        const char *wide = ptx_of(functions[i], "f32");
        n = ptx_count(wide, "ex2.approx.ftz.f32");
        cr_expect(n > 0 && ptx_count(wide, "rcp.approx.ftz.f32") == n, "%s", functions[i]);
        cr_expect_eq(ptx_count(wide, "fma.rn.f32"), 4 * n, "%s", functions[i]);
        cr_expect_eq(ptx_count(wide, "div."), 0, "%s", functions[i]);
    }
    cr_expect(ptx_count(ptx_of("x / (x + 2.0)", "f32"), "div.rn.f32") > 0);
}

/* One reciprocal, and no choice between two ranges. */
Test(gpu_math, tanh_of_f32_takes_one_of_the_machines_functions) {
    const char *ptx = ptx_of("tanh(x)", "f32");
    uint32_t n = ptx_count(ptx, "rcp.approx.ftz.f32");
    cr_expect(n > 0);
    cr_expect_eq(ptx_count(ptx, "ex2.") + ptx_count(ptx, "selp."), 0);
}

/* What widened values make and rounding leaves is computed as they are stored, by pairs. */
Test(gpu_math, what_bf16_makes_of_bf16_is_not_widened) {
    static const char *const expressions[] = {
        "clamp(x, -0.5, 2.0)",
        "leaky_relu(x)",
        "where(x < -x, x * 2.0, maximum(x, 0.25))",
        "abs(minimum(x, -x))",
        "where(cast(x, f32) <= 1.0, x, x + 1.0)",
        "cast(where(cast(x, f32) >= 1.0, cast(x, f32), cast(x, f32) * 0.5), bf16)"};
    for (size_t i = 0; i < sizeof expressions / sizeof *expressions; i++) {
        const char *ptx = ptx_of(expressions[i], "bf16");
        cr_expect_eq(ptx_count(ptx, ".f32"), 0, "%s", expressions[i]);
        cr_expect(ptx_count(ptx, "bf16x2") > 0, "%s", expressions[i]);
    }
    const char *twice = ptx_of("cast(cast(x, f32) * 0.3 + 1.0, bf16)", "bf16");
    cr_expect(ptx_count(twice, "fma.rn") == 0 && ptx_count(twice, "add.rn.f32") > 0,
              "what was not rounded between is computed in f32");
    const char *whole = ptx_of("where(cast(x, i32) < 7, x, 1.0)", "bf16");
    cr_expect(ptx_count(whole, "setp.lt.s32") > 0, "a cast to i32 is no widening");
}

/* The assembler would decide -0.5 <= |x| of pairs as it does of f32. */
Test(gpu_math, bounded_pairs_are_compared_in_f32) {
    const char *ptx = ptx_of("where(-0.5 <= abs(x), x, 3.0)", "bf16");
    cr_expect(ptx_count(ptx, "setp.le.f32") > 0);
    cr_expect_eq(ptx_count(ptx, "0fBF000000"), 0);
}

Test(gpu_math, tanh_is_the_machines_where_ten_bits_do) {
    cr_expect(ptx_count(ptx_of("tanh(x)", "bf16"), "tanh.approx.f32") > 0);
    cr_expect_eq(ptx_count(ptx_of("tanh(x)", "f16"), "tanh.approx.f32"), 0);
    cr_expect_eq(ptx_count(ptx_of("tanh(x)", "f32"), "tanh.approx.f32"), 0);
}

/* The assembler must not decide what NaN decides: see math_compare. */
Test(gpu_math, what_a_bounded_value_is_compared_with_is_hidden) {
    static const char *const values[] = {"abs(x)", "exp2(x)", "where(x < 1.0, abs(x), exp2(x))"};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        char expression[128];
        snprintf(expression, sizeof expression, "where(-0.5 <= %s, x, 3.0)", values[i]);
        const char *ptx = ptx_of(expression, "f32");
        cr_expect(ptx_count(ptx, "setp.") > 0);
        cr_expect_eq(ptx_count(ptx, "0fBF000000"), 0, "%s", expression);
    }
    cr_expect(ptx_count(ptx_of("where(-0.5 <= x * 2.0, x, 3.0)", "f32"), "0fBF000000") > 0);
}

/* The assembler takes a for -a in max(max(c, -a), -b) of signed numbers. */
Test(gpu_math, extremes_of_integers_are_unsigned) {
    static const char *const expressions[] = {
        "maximum(maximum(x + 1, -x), minimum(minimum(x, -x), 3))",
        "where(-x > x, -x, x) + where(x * 3 >= -x, -x, x * 3)",
        "where(x < -x, -x, x) + where(-x <= 3, -x, 3)"};
    for (size_t i = 0; i < sizeof expressions / sizeof *expressions; i++) {
        const char *ptx = ptx_of(expressions[i], "i32");
        uint32_t n = ptx_count(ptx, "max.s32") + ptx_count(ptx, "min.s32");
        cr_expect_eq(n, 0, "%s", expressions[i]);
        cr_expect(ptx_count(ptx, "max.u32") > 0 && ptx_count(ptx, "min.u32") > 0);
    }
}

/* What was rounded to bf16 in registers is rounded by pairs, whoever reads it. */
Test(gpu_math, pairs_are_rounded_at_once) {
    const char *ptx = ptx_of("sigmoid(exp(x))", "bf16");
    uint32_t pairs = ptx_count(ptx, "cvt.rn.bf16x2.f32"), ones = ptx_count(ptx, "cvt.rn.bf16.f32");
    cr_expect(pairs >= 8, "%u", pairs);
    cr_expect(ones <= 2, "%u of a single element: more than its scalar variant needs", ones);
}
