/* Element types: the reference rounding against two independent ones, and storage round trips. */
#include "interp/tensor.h"
#include "lib/compare.h"
#include "random/rng.h"

#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <string.h>

/* The narrow floats, and how many patterns each has; false behind the last. */
static bool next_narrow(int *dtype, uint32_t *n_patterns) {
    while (++*dtype < DT_COUNT && !dtype_is_narrow((Dtype)*dtype)) continue;
    if (*dtype == DT_COUNT) return false;
    *n_patterns = 1u << 8 * dtype_bytes((Dtype)*dtype);
    return true;
}

static double load16(Dtype dtype, uint32_t bits) {
    uint8_t bytes[2] = {(uint8_t)(bits & 0xFF), (uint8_t)(bits >> 8)}; /* of a byte the first */
    return dtype_load(dtype, bytes);
}

Test(dtype, names_are_found_again) {
    for (int i = 0; i < DT_COUNT; i++) {
        Dtype found = DT_COUNT;
        cr_expect(dtype_by_name(dtype_name((Dtype)i), &found));
        cr_expect_eq(found, (Dtype)i);
        cr_expect_leq(dtype_bytes((Dtype)i), 8u);
        cr_expect_eq(dtype_kind(dtype_compute((Dtype)i)), dtype_kind((Dtype)i));
        cr_expect_eq(dtype_compute(dtype_compute((Dtype)i)), dtype_compute((Dtype)i));
    }
    Dtype untouched = DT_I32;
    cr_expect_not(dtype_by_name("tf32", &untouched));
    cr_expect_eq(untouched, DT_I32);
}

Test(dtype, every_pattern_of_narrow_floats_survives_load_round_store) {
    uint32_t n;
    for (int t = -1; next_narrow(&t, &n);) {
        Dtype dtype = (Dtype)t;
        for (uint32_t bits = 0; bits < n; bits++) {
            double value = load16(dtype, bits);
            cr_assert(compare_same(dtype_round(dtype, value), value), "%s %04x", dtype_name(dtype),
                      bits);
            uint8_t bytes[2] = {0};
            dtype_store(dtype, value, bytes);
            uint32_t back = bytes[0] | (uint32_t)bytes[1] << 8;
            cr_assert(back == bits || (isnan(value) && isnan(load16(dtype, back))),
                      "%s %04x became %04x", dtype_name(dtype), bits, back);
        }
    }
}

/* f8e4m3 has no infinity, so what is larger than its largest number becomes that, infinity too. */
Test(dtype, rounding_beyond_the_largest_saturates_or_overflows) {
    static const struct {
        Dtype dtype;
        double from, to;
    } cases[] = {
        {DT_F8E4M3, 464, 448},           {DT_F8E4M3, 479, 448},        {DT_F8E4M3, -1e9, -448},
        {DT_F8E4M3, INFINITY, 448},      {DT_F8E4M3, 439, 448},        {DT_F8E4M3, 0x1p-10, 0},
        {DT_F8E5M2, 61439, 57344},       {DT_F8E5M2, 61440, INFINITY}, {DT_F8E5M2, -1e9, -INFINITY},
        {DT_F8E5M2, INFINITY, INFINITY}, {DT_F16, 65519, 65504},       {DT_F16, 65520, INFINITY}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        cr_expect_eq(dtype_round(cases[i].dtype, cases[i].from), cases[i].to, "%s of %g",
                     dtype_name(cases[i].dtype), cases[i].from);
    cr_expect(isnan(dtype_round(DT_F8E4M3, (double)NAN)));
}

Test(dtype, known_values_of_narrow_floats) {
    cr_expect_eq(load16(DT_F16, 0x3C00), 1);
    cr_expect_eq(load16(DT_F16, 0x7BFF), 65504);
    cr_expect_eq(load16(DT_F16, 0x0001), 0x1p-24);
    cr_expect_eq(load16(DT_F16, 0xC000), -2);
    cr_expect_eq(load16(DT_BF16, 0x3F80), 1);
    cr_expect_eq(load16(DT_F8E4M3, 0x7E), 448);
    cr_expect_eq(load16(DT_F8E4M3, 0x81), -0x1p-9);
    cr_expect_eq(load16(DT_F8E4M3, 0x38), 1);
    cr_expect(isnan(load16(DT_F8E4M3, 0x7F)) && isnan(load16(DT_F8E4M3, 0xFF)));
    cr_expect_eq(load16(DT_F8E5M2, 0x7B), 57344);
    cr_expect_eq(load16(DT_F8E5M2, 0x01), 0x1p-16);
    cr_expect_eq(load16(DT_F8E5M2, 0xFC), -INFINITY);
    cr_expect(isnan(load16(DT_F8E5M2, 0x7D)));
    cr_expect_eq(load16(DT_BF16, 0x7F7F), 0x1.FEp127);
    cr_expect_eq(load16(DT_BF16, 0x0001), 0x1p-133);
    cr_expect(isinf(load16(DT_F16, 0x7C00)) && isinf(load16(DT_BF16, 0xFF80)));
    cr_expect(isnan(load16(DT_F16, 0x7C01)) && isnan(load16(DT_BF16, 0x7FC0)));
}

static void check_midpoint(Dtype dtype, double middle, double lo, double hi, double even) {
    for (double sign = -1; sign <= 1; sign += 2) {
        cr_assert(compare_same(dtype_round(dtype, sign * middle), sign * even), "%s %a",
                  dtype_name(dtype), middle);
        cr_assert(compare_same(dtype_round(dtype, sign * nextafter(middle, INFINITY)), sign * hi));
        cr_assert(compare_same(dtype_round(dtype, sign * nextafter(middle, 0)), sign * lo));
    }
}

/* Adjacent narrow numbers have adjacent patterns: check the midpoint of each pair (to the even
 * pattern) and its two neighbours in double. The last is that with infinity, where there is one. */
Test(dtype, midpoints_of_narrow_floats_go_to_even) {
    uint32_t n;
    for (int t = -1; next_narrow(&t, &n);) {
        Dtype dtype = (Dtype)t;
        for (uint32_t bits = 0; load16(dtype, bits) < INFINITY; bits++) {
            double lo = load16(dtype, bits), hi = load16(dtype, bits + 1);
            double middle = isinf(hi) ? lo + (lo - load16(dtype, bits - 1)) / 2 : (lo + hi) / 2;
            if (!isnan(hi)) check_midpoint(dtype, middle, lo, hi, bits & 1 ? hi : lo);
        }
    }
}

/* The machine's own conversion is the reference for f32. */
Test(dtype, f32_rounds_as_the_machine_does) {
    Rng rng = rng_new(1);
    for (int i = 0; i < 2000000; i++) {
        uint64_t bits = rng_bits(&rng);
        if (i % 2) /* exponents near f32's range, and ties */
            bits = (bits & ~((uint64_t)2047 << 52)) | (uint64_t)(870 + rng_below(&rng, 290)) << 52;
        if (i % 4 == 3) bits &= ~(((uint64_t)1 << (20 + rng_below(&rng, 20))) - 1);
        double value;
        memcpy(&value, &bits, sizeof value);
        cr_assert(compare_same(dtype_round(DT_F32, value), (double)(float)value), "%a", value);
    }
    double edges[] = {FLT_MAX,  FLT_MAX + 0x1p102, FLT_MAX + 0x1p103, FLT_MIN,
                      0x1p-149, 0x1p-150,          0x1.8p-149,        0x1.000001p-150,
                      0x1p-151, DBL_TRUE_MIN,      DBL_MAX,           0.0};
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++) {
        cr_expect(compare_same(dtype_round(DT_F32, edges[i]), (double)(float)edges[i]), "%a",
                  edges[i]);
        cr_expect(compare_same(dtype_round(DT_F32, -edges[i]), (double)(float)-edges[i]), "%a",
                  -edges[i]);
    }
}

Test(dtype, i32_truncates_and_saturates_and_bool_is_not_zero) {
    cr_expect_eq(dtype_round(DT_I32, 2.9), 2);
    cr_expect_eq(dtype_round(DT_I32, -2.9), -2);
    cr_expect_eq(dtype_round(DT_I32, 1e300), INT32_MAX);
    cr_expect_eq(dtype_round(DT_I32, -INFINITY), INT32_MIN);
    cr_expect_eq(dtype_round(DT_I32, 2147483646.5), 2147483646);
    cr_expect(compare_same(dtype_round(DT_I32, NAN), 0) &&
              compare_same(dtype_round(DT_I32, -0.0), 0));
    cr_expect_eq(dtype_round(DT_BOOL, NAN), 1);
    cr_expect_eq(dtype_round(DT_BOOL, 0.25), 1);
    cr_expect(compare_same(dtype_round(DT_BOOL, -0.0), 0));
}

Test(dtype, wide_types_survive_storage) {
    Rng rng = rng_new(2);
    for (int i = 0; i < 200000; i++) {
        uint64_t bits = rng_bits(&rng);
        double value, from_f64;
        float narrow;
        uint32_t low = (uint32_t)(bits >> 32);
        memcpy(&value, &bits, sizeof value);
        memcpy(&narrow, &low, sizeof narrow);
        uint8_t bytes[8];
        dtype_store(DT_F64, value, bytes);
        memcpy(&from_f64, bytes, sizeof from_f64); /* little endian hosts only */
        cr_assert(compare_same(from_f64, value) && compare_same(dtype_load(DT_F64, bytes), value));
        dtype_store(DT_F32, (double)narrow, bytes);
        float from_f32;
        memcpy(&from_f32, bytes, sizeof from_f32);
        cr_assert(compare_same((double)from_f32, (double)narrow));
        cr_assert(compare_same(dtype_load(DT_F32, bytes), (double)narrow));
        int32_t integer = (int32_t)(low ^ 0x80000000u ? low & 0x7FFFFFFF : 0) * (low & 1 ? -1 : 1);
        dtype_store(DT_I32, integer, bytes);
        cr_assert_eq(dtype_load(DT_I32, bytes), integer);
    }
    uint8_t least[4] = {0, 0, 0, 0x80}, seven = 7;
    cr_expect_eq(dtype_load(DT_I32, least), INT32_MIN);
    cr_expect_eq(dtype_load(DT_BOOL, &seven), 1);
}

Test(dtype, ulp_is_the_distance_to_the_next_number) {
    uint32_t n;
    for (int t = -1; next_narrow(&t, &n);)
        for (uint32_t bits = 0; isfinite(load16((Dtype)t, bits + 1)); bits++)
            cr_assert_eq(dtype_ulp((Dtype)t, load16((Dtype)t, bits)),
                         load16((Dtype)t, bits + 1) - load16((Dtype)t, bits), "%04x", bits);
    cr_expect_eq(dtype_ulp(DT_F32, 1), (double)FLT_EPSILON);
    cr_expect_eq(dtype_ulp(DT_F32, 0), 0x1p-149);
    cr_expect_eq(dtype_ulp(DT_F64, 1), DBL_EPSILON);
    cr_expect_eq(dtype_ulp(DT_F64, DBL_MIN), DBL_TRUE_MIN);
    cr_expect_eq(dtype_max(DT_F32), (double)FLT_MAX);
    cr_expect_eq(dtype_max(DT_F64), DBL_MAX);
    cr_expect_eq(dtype_max(DT_F16), 65504);
}

Test(dtype, distances_take_infinity_for_the_next_number) {
    cr_expect_eq(dtype_distance(DT_F16, 65504, INFINITY), 32);
    cr_expect_eq(dtype_distance(DT_F16, -INFINITY, INFINITY), 2 * 65536);
    cr_expect_eq(dtype_distance(DT_F32, INFINITY, INFINITY), 0);
    cr_expect_eq(dtype_distance(DT_F32, 1, 3), 2);
    cr_expect(isnan(dtype_distance(DT_F32, 1, NAN)));
    cr_expect_eq(dtype_distance(DT_F64, NAN, NAN), 0);
}

Test(dtype, tensors_know_their_limits) {
    Arena *arena = arena_new(NULL);
    Tensor t;
    int64_t fine[] = {3, 0, 5}, large[] = {1 << 20, 1 << 10}, wrong[] = {-1};
    int64_t empty[] = {INT64_MAX, 0};
    cr_expect(tensor_new(arena, DT_F32, 3, fine, &t));
    cr_expect_eq(tensor_n_elems(&t), 0);
    cr_expect_str_eq(tensor_type_str(&t, arena), "f32[3, 0, 5]");
    cr_expect_not(tensor_new(arena, DT_F32, 2, large, &t));
    cr_expect_not(tensor_new(arena, DT_F32, 1, wrong, &t));
    cr_expect(tensor_new(arena, DT_F32, 2, empty, &t));
    cr_expect(tensor_new(arena, DT_BOOL, 0, NULL, &t));
    cr_expect_eq(tensor_n_elems(&t), 1);
    arena_free(arena);
}

Test(dtype, distances_in_ulps) {
    cr_expect_eq(dtype_ulps(DT_F32, 1, 1 + (double)FLT_EPSILON), 1);
    cr_expect_eq(dtype_ulps(DT_F32, -0.0, 0.0), 0);
    cr_expect_eq(dtype_ulps(DT_F32, -0x1p-149, 0x1p-149), 2);
    cr_expect_eq(dtype_ulps(DT_F16, 65504, INFINITY), 1);
    cr_expect_eq(dtype_ulps(DT_BF16, 1, 1.0078125), 1);
    cr_expect_eq(dtype_ulps(DT_F64, DBL_MAX, INFINITY), 1);
    cr_expect_eq(dtype_ulps(DT_I32, -3, 4), 7);
    cr_expect_eq(dtype_ulps(DT_F32, NAN, NAN), 0);
    cr_expect(isnan(dtype_ulps(DT_F32, NAN, 1)));
}

Test(dtype, integers_wrap_and_floats_saturate) {
    cr_expect_eq(dtype_wrap(DT_I8, 200), -56);
    cr_expect_eq(dtype_wrap(DT_I8, -129), 127);
    cr_expect_eq(dtype_wrap(DT_U8, -1), 255);
    cr_expect_eq(dtype_wrap(DT_U16, 65537), 1);
    cr_expect_eq(dtype_wrap(DT_U32, -1), UINT32_MAX);
    cr_expect_eq(dtype_wrap(DT_I32, INT64_MIN), 0);
    cr_expect_eq(dtype_wrap(DT_I64, INT64_MIN), INT64_MIN);
    cr_expect_eq(dtype_wrap(DT_BOOL, 256), 1);
    cr_expect_eq(dtype_saturate(DT_U8, -0.5), 0);
    cr_expect_eq(dtype_saturate(DT_U8, 255.9), 255);
    cr_expect_eq(dtype_saturate(DT_I8, -1e9), -128);
    cr_expect_eq(dtype_saturate(DT_I64, 0x1p63), INT64_MAX);
    cr_expect_eq(dtype_saturate(DT_I64, -INFINITY), INT64_MIN);
    cr_expect_eq(dtype_saturate(DT_I64, NAN), 0);
    for (int d = 0; d < DT_COUNT; d++) {
        uint8_t bytes[8];
        if (!dtype_is_int((Dtype)d)) continue;
        dtype_store_int((Dtype)d, INT64_MIN / 3, bytes);
        cr_expect_eq(dtype_load_int((Dtype)d, bytes), dtype_wrap((Dtype)d, INT64_MIN / 3));
    }
}

/* Halfway between two numbers of the dtype, and one unit beside: two roundings would be wrong. */
Test(dtype, integers_become_floats_in_one_rounding) {
    const int64_t half = ((int64_t)1 << 62) + ((int64_t)1 << 54), step = (int64_t)1 << 55;
    cr_expect_eq(dtype_round_int(DT_BF16, half), 0x1p62);
    cr_expect_eq(dtype_round_int(DT_BF16, half + 1), 0x1p62 + (double)step);
    cr_expect_eq(dtype_round_int(DT_BF16, -half - 1), -0x1p62 - (double)step);
    cr_expect_eq(dtype_round_int(DT_F32, ((int64_t)1 << 62) + ((int64_t)1 << 38) + 1),
                 0x1p62 + 0x1p39);
    cr_expect_eq(dtype_round_int(DT_F16, 65519), 65504);
    cr_expect_eq(dtype_round_int(DT_F16, INT64_MIN), -INFINITY);
    cr_expect_eq(dtype_round_int(DT_F64, INT64_MAX), 0x1p63);
}

Test(dtype, a_dtype_widens_to_another_that_holds_its_numbers) {
    cr_expect(dtype_widens(DT_U8, DT_I32) && dtype_widens(DT_I8, DT_F16));
    cr_expect(dtype_widens(DT_U16, DT_U32) && dtype_widens(DT_U32, DT_I64));
    cr_expect(dtype_widens(DT_U32, DT_F64) && !dtype_widens(DT_I64, DT_F64));
    cr_expect(!dtype_widens(DT_I8, DT_U8) && !dtype_widens(DT_I8, DT_U32));
    cr_expect(!dtype_widens(DT_U8, DT_I8) && !dtype_widens(DT_U16, DT_F16));
}

Test(dtype, new_names_are_not_reserved) {
    cr_expect(dtype_is_reserved("i32") && dtype_is_reserved("bool"));
    cr_expect(!dtype_is_reserved("i64") && !dtype_is_reserved("u8") && !dtype_is_reserved("x"));
}
