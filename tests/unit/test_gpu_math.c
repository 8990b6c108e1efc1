/* Elementary functions and activations as code for a GPU: what is spent on them follows from the
 * digits of the result. That they keep their bounds is for bench/gpu_ulp.py, on one. */
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

/* f32 needs what the machine's 2^x lacks; no activation needs a true quotient, `/` does. */
Test(gpu_math, activations_take_what_their_digits_need) {
    const char *wide = ptx_of("sigmoid(x)", "f32");
    uint32_t n = ptx_count(wide, "ex2.approx.f32");
    cr_expect(n > 0 && ptx_count(wide, "rcp.approx.ftz.f32") == n);
    cr_expect_geq(ptx_count(wide, "fma.rn.f32"), 3 * n);
    cr_expect_eq(ptx_count(wide, "div."), 0);
    const char *narrow = ptx_of("sigmoid(x)", "bf16");
    n = ptx_count(narrow, "ex2.approx.f32");
    cr_expect(n > 0 && ptx_count(narrow, "rcp.approx.ftz.f32") == n);
    cr_expect_eq(ptx_count(narrow, "fma.rn.f32") + ptx_count(narrow, "div."), 0);
    cr_expect(ptx_count(ptx_of("x / (x + 2.0)", "f32"), "div.rn.f32") > 0);
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
