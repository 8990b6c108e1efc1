/* The comparison itself: what it lets pass, and above all what it does not. */
#include "lib/compare.h"

#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <string.h>

Test(compare, nothing_but_the_same_passes_without_a_bound) {
    cr_expect(compare_element(DT_F32, 1, 1, 0));
    cr_expect(compare_element(DT_F32, NAN, NAN, 0));
    cr_expect(compare_element(DT_F32, -INFINITY, -INFINITY, 0));
    cr_expect_not(compare_element(DT_F32, 0.0, -0.0, 0));
    cr_expect_not(compare_element(DT_F32, 1, 1 + (double)FLT_EPSILON, 0));
    cr_expect_not(compare_element(DT_F32, 1, NAN, 0));
    cr_expect_not(compare_element(DT_F32, NAN, 1, 0));
    cr_expect_not(compare_element(DT_F32, INFINITY, -INFINITY, 0));
}

Test(compare, bounds_hold_and_do_not_swallow_nan) {
    cr_expect(compare_element(DT_F32, 1, 1.5, 0.5));
    cr_expect_not(compare_element(DT_F32, 1, 1.5000001192092896, 0.5));
    cr_expect(compare_element(DT_F32, 0.0, -0.0, 1e-30));
    cr_expect_not(compare_element(DT_F32, 1, NAN, 1e30));
    cr_expect_not(compare_element(DT_F32, NAN, 1, 1e30));
    cr_expect_not(compare_element(DT_F32, 1, INFINITY, 1e30));
    cr_expect(compare_element(DT_F16, 65504, INFINITY, 32));
    cr_expect_not(compare_element(DT_F16, 65504, INFINITY, 31));
    cr_expect(compare_element(DT_F32, 1, NAN, INFINITY), "an infinite bound means anything");
    cr_expect_not(compare_element(DT_F32, 1, 1, NAN), "a broken bound lets nothing pass");
}

Test(compare, the_first_wrong_element_is_told) {
    Arena *arena = arena_new(NULL);
    Tensor a, b;
    Comparison c;
    int64_t dims[] = {3, 4};
    cr_assert(tensor_new(arena, DT_F32, 2, dims, &a) && tensor_new(arena, DT_F32, 2, dims, &b));
    cr_expect(compare_within(&a, &b, NULL, &c));
    b.data[6] = 0.5;
    b.data[11] = NAN;
    cr_expect_not(compare_within(&a, &b, NULL, &c));
    cr_expect(c.n_wrong == 2 && c.first == 6 && c.actual == 0.5 && c.n_elems == 12);
    Text text = {.arena = arena};
    compare_print(&c, &a, &text);
    cr_expect_not_null(strstr(text_str(&text), "first [1, 2]"), "%s", text_str(&text));
    b.dtype = DT_F64;
    cr_expect_not(compare_within(&a, &b, NULL, &c), "another dtype");
    b = a;
    b.dims[0] = 4, b.dims[1] = 3;
    cr_expect_not(compare_within(&a, &b, NULL, &c), "another shape");
    arena_free(arena);
}

Test(compare, bits_are_bits) {
    Arena *arena = arena_new(NULL);
    Tensor shape;
    Comparison c;
    int64_t dims[] = {2};
    cr_assert(tensor_new(arena, DT_F16, 1, dims, &shape));
    uint8_t a[] = {0, 0, 0, 0x7E}, b[] = {0, 0, 0, 0x7E};
    cr_expect(compare_bits(&shape, a, b, &c));
    b[1] = 0x80;
    cr_expect(!compare_bits(&shape, a, b, &c) && c.first == 0, "the sign of zero");
    b[1] = 0;
    b[2] = 1;
    cr_expect(!compare_bits(&shape, a, b, &c) && c.first == 1, "the payload of a NaN");
    arena_free(arena);
}
