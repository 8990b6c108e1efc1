/* codegen/math/convert.h on the CPU against conversions in integers, written for this test alone;
 * and what both emitters compile to: no external symbol on x86-64, PTX that ptxas accepts. */
#include "lib/ptx.h"
#include "tools/math_jit.h"
#include "tools/math_reference.h"

#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A value as an integer times a power of two. */
typedef enum Kind { KIND_FINITE, KIND_INFINITE, KIND_NAN } Kind;

typedef struct Exact {
    Kind kind;
    bool is_negative;
    uint64_t digits;
    int exponent;
} Exact;

typedef struct Format {
    int n_fraction, n_exponent; /* bits */
    bool has_infinity;
} Format;

static bool format_of(Dtype type, Format *format) {
    const DtypeInfo *info = dtype_info(type);
    if (!dtype_is_float(type)) return false;
    *format = (Format){(int)info->n_digits - 1, (int)info->n_exponent_bits, type != DT_F8E4M3};
    return true;
}

static Exact decode_integer(Dtype type, uint64_t bits) {
    if (type == DT_BOOL) return (Exact){.digits = bits & 1};
    uint32_t n_bits = 8 * dtype_bytes(type), n_unused = 64 - n_bits;
    bool is_negative = dtype_info(type)->n_digits < n_bits && (bits >> (n_bits - 1) & 1);
    uint64_t size = is_negative ? (0 - bits) << n_unused >> n_unused : bits;
    return (Exact){.is_negative = is_negative, .digits = size};
}

static Exact decode(Dtype type, uint64_t bits) {
    Format f;
    if (!format_of(type, &f)) return decode_integer(type, bits);
    uint64_t fraction = bits & (((uint64_t)1 << f.n_fraction) - 1);
    int field = (int)(bits >> f.n_fraction & (((uint64_t)1 << f.n_exponent) - 1));
    int greatest = (1 << f.n_exponent) - 1;
    int bias = greatest / 2;
    Exact e = {.is_negative = bits >> (f.n_fraction + f.n_exponent) & 1};
    bool is_last = fraction == ((uint64_t)1 << f.n_fraction) - 1;
    if (field == greatest && (f.has_infinity || is_last)) {
        e.kind = fraction ? KIND_NAN : KIND_INFINITE;
        return e;
    }
    e.digits = field ? fraction | (uint64_t)1 << f.n_fraction : fraction;
    e.exponent = (field ? field : 1) - bias - f.n_fraction;
    return e;
}

/* digits / 2^shift, half to even. */
static uint64_t shift_to_even(uint64_t digits, int shift) {
    if (shift <= 0) return digits << -shift;
    if (shift > 63) return 0;
    uint64_t kept = digits >> shift;
    uint64_t lost = digits & (((uint64_t)1 << shift) - 1);
    uint64_t half = (uint64_t)1 << (shift - 1);
    return kept + (lost > half || (lost == half && (kept & 1)));
}

/* The bits of the nearest value; a quiet NaN for NaN. */
static uint64_t encode(Format f, Exact e) {
    uint64_t sign = (uint64_t)e.is_negative << (f.n_fraction + f.n_exponent);
    uint64_t infinity = (((uint64_t)1 << f.n_exponent) - 1) << f.n_fraction;
    uint64_t nan = infinity | (uint64_t)1 << (f.n_fraction - 1);
    if (!f.has_infinity) nan = infinity | (((uint64_t)1 << f.n_fraction) - 1), infinity = nan - 1;
    if (e.kind == KIND_NAN) return nan;
    if (e.kind == KIND_INFINITE) return sign | infinity;
    if (!e.digits) return sign;
    int bias = (1 << (f.n_exponent - 1)) - 1;
    int top = 63;
    while (!(e.digits >> top & 1)) top--;
    int place = top + e.exponent - f.n_fraction; /* exponent of the last place */
    int least = 1 - bias - f.n_fraction;
    if (place < least) place = least;
    uint64_t rounded = shift_to_even(e.digits, place - e.exponent);
    uint64_t base = (uint64_t)(place - least) << f.n_fraction; /* a carry raises the exponent */
    uint64_t bits = rounded + base;
    return sign | (bits < infinity ? bits : infinity);
}

/* The greatest magnitude of an integer of the sign. */
static uint64_t limit_of(Dtype type, bool is_negative) {
    uint32_t n_digits = dtype_info(type)->n_digits;
    uint64_t above = (uint64_t)1 << n_digits;
    if (!is_negative) return above - 1;
    return n_digits < 8 * dtype_bytes(type) ? above : 0;
}

/* Floats saturate, integers keep their low bits. */
static uint64_t encode_integer(Dtype type, Exact e, bool saturates) {
    if (e.kind == KIND_NAN) return 0;
    uint64_t limit = limit_of(type, e.is_negative), size = limit;
    if (e.kind == KIND_FINITE && e.exponent <= 0)
        size = e.exponent > -64 ? e.digits >> -e.exponent : 0;
    else if (e.kind == KIND_FINITE && e.exponent < 64 && !(e.digits >> (64 - e.exponent)))
        size = e.digits << e.exponent;
    if (!e.digits && e.kind == KIND_FINITE) size = 0;
    if (size > limit && saturates) size = limit;
    uint32_t n_unused = 64 - 8 * dtype_bytes(type);
    return (e.is_negative ? (uint64_t)0 - size : size) << n_unused >> n_unused;
}

static uint64_t convert_bits(Dtype from, Dtype to, uint64_t bits) {
    Exact e = decode(from, bits);
    Format f;
    if (format_of(to, &f)) return encode(f, e);
    if (dtype_is_int(to)) return encode_integer(to, e, dtype_is_float(from));
    return e.kind != KIND_FINITE || e.digits != 0;
}

static bool is_nan_of(Dtype type, uint64_t bits) {
    Format f;
    return format_of(type, &f) && decode(type, bits).kind == KIND_NAN;
}

static bool is_quiet(Dtype type, uint64_t bits) {
    Format f;
    return format_of(type, &f) && (bits >> (f.n_fraction - 1) & 1);
}

enum { N_BATCH = 1 << 16, N_WIDTHS = 4 };

static void put(Dtype type, void *array, size_t i, uint64_t bits) {
    unsigned char *at = (unsigned char *)array + i * dtype_bytes(type);
    for (size_t k = 0; k < dtype_bytes(type); k++) at[k] = (unsigned char)(bits >> 8 * k);
}

static uint64_t get(Dtype type, const void *array, size_t i) {
    const unsigned char *at = (const unsigned char *)array + i * dtype_bytes(type);
    uint64_t bits = 0;
    for (size_t k = 0; k < dtype_bytes(type); k++) bits |= (uint64_t)at[k] << 8 * k;
    return bits;
}

/* The boundary of every 16-bit float: between two of them, and just beside. */
static uint64_t draw_edge(uint64_t *state, Format f) {
    uint64_t random = math_random(state);
    Dtype near = random & 1 ? DT_F16 : DT_BF16;
    Exact e = decode(near, random >> 8 & 0xffff);
    if (e.kind == KIND_FINITE) {
        e.digits = (e.digits << 1 | (random >> 1 & 1)) << 40;
        e.exponent -= 41;
        e.digits += (random >> 2 & 3) - 1;
        if (random >> 4 & 1) e.digits += (uint64_t)1 << 20;
    }
    return encode(f, e);
}

static uint64_t draw(Dtype type, uint64_t *state, size_t i) {
    uint64_t random = math_random(state);
    Format f = {0};
    if (type == DT_BOOL) return i & 1;
    if (dtype_is_narrow(type)) return i & ((1u << 8 * dtype_bytes(type)) - 1);
    if (dtype_is_int(type) && dtype_bytes(type) < 4) return i & ((1u << 8 * dtype_bytes(type)) - 1);
    if (type == DT_I64 && i < 4096) /* near the halves between narrow floats, and the ends */
        return ((uint64_t)1 << (i / 64)) + ((uint64_t)(i & 1) << (i / 64 / 2)) + (i / 2 & 31) - 16;
    if (type == DT_I64) return (i & 1 ? 0 - (random >> (i & 63)) : random >> (i & 63));
    if (dtype_is_int(type)) {
        static const uint32_t edges[] = {0, 1, 0x7fffffff, 0x80000000u, 0xffffffffu, 1 << 24};
        if (i < 64) return edges[i % 6] + (uint32_t)(i / 6) - 5;
        return (random & UINT32_MAX) >> (random >> 59);
    }
    format_of(type, &f);
    if (random >> 62 == 0) return draw_edge(state, f);
    if (random >> 62 == 1) { /* near the ends of i32 and below */
        Exact e = {.is_negative = i & 1, .digits = random >> 12 & 0xffffffffff, .exponent = -8};
        if (i & 2) e.digits = ((uint64_t)1 << 39) + (random & 1023) - 512;
        return encode(f, e);
    }
    if (random >> 60 == 8) { /* near the ends of i64 */
        Exact e = {.is_negative = i & 1, .digits = ((uint64_t)1 << 52) + (random & 7) - 4};
        e.exponent = 11;
        return encode(f, e);
    }
    return type == DT_F32 ? random & UINT32_MAX : random;
}

static void check_pair(const MathJit *jit, size_t i_first, Dtype from, Dtype to) {
    static uint64_t x[N_BATCH], out[N_WIDTHS][N_BATCH];
    uint64_t state = 17;
    for (size_t i = 0; i < N_BATCH; i++) put(from, x, i, draw(from, &state, i));
    for (size_t k = 0; k < N_WIDTHS; k++) {
        math_jit_function(jit, i_first + k)(x, x, out[k], N_BATCH);
        cr_assert_arr_eq(out[k], out[0], N_BATCH * dtype_bytes(to),
                         "%s to %s differs between widths", dtype_name(from), dtype_name(to));
    }
    for (size_t i = 0; i < N_BATCH; i++) {
        uint64_t bits = get(from, x, i), got = get(to, out[0], i);
        uint64_t want = convert_bits(from, to, bits);
        bool is_good = got == want;
        if (is_nan_of(to, want)) {
            bool is_shift = from == DT_BF16 && to == DT_F32;
            is_good = is_nan_of(to, got) && (from == to || is_shift || is_quiet(to, got));
        }
        cr_assert(is_good, "%s 0x%llx to %s is 0x%llx, want 0x%llx", dtype_name(from),
                  (unsigned long long)bits, dtype_name(to), (unsigned long long)got,
                  (unsigned long long)want);
    }
}

static size_t add_conversions(MathKernel *kernels, const unsigned *widths, size_t n_widths) {
    size_t n = 0;
    for (int from = 0; from < DT_COUNT; from++) {
        for (int to = 0; to < DT_COUNT; to++) {
            for (size_t k = 0; k < n_widths; k++) {
                kernels[n++] = (MathKernel){.op = MATH_OP_CONVERT,
                                            .from = (Dtype)from,
                                            .to = (Dtype)to,
                                            .lanes = widths[k]};
            }
        }
    }
    return n;
}

static size_t add_operations(MathKernel *kernels, const unsigned *widths, size_t n_widths) {
    size_t n = 0;
    for (int op = 0; op < MATH_OP_CONVERT; op++) {
        bool is_integer =
            op == MATH_OP_idiv || op == MATH_OP_irem || op == MATH_OP_udiv || op == MATH_OP_urem;
        bool is_of_f32 = op == MATH_OP_quotient_by_one || op == MATH_OP_fraction_by_one;
        for (int type = 0; type < 2; type++) {
            if ((is_integer && type) || (is_of_f32 && type != DT_F32)) continue;
            for (size_t k = 0; k < n_widths; k++) {
                kernels[n++] = (MathKernel){.op = (MathOp)op,
                                            .from = is_integer ? DT_I32 : (Dtype)type,
                                            .lanes = widths[k]};
            }
        }
    }
    return n;
}

enum { N_PAIRS = DT_COUNT * DT_COUNT, N_KERNELS = 2048 };

Test(convert, all_pairs_round_once) {
    static const unsigned widths[N_WIDTHS] = {0, 2, 8, 16};
    static MathKernel kernels[N_PAIRS * N_WIDTHS];
    size_t n = add_conversions(kernels, widths, N_WIDTHS);
    MathJit *jit = math_jit_new(kernels, n);
    cr_assert_not_null(jit);
    for (size_t i = 0; i < n; i += N_WIDTHS) check_pair(jit, i, kernels[i].from, kernels[i].to);
    math_jit_free(jit);
}

Test(convert, x86_objects_need_no_symbol) {
    static const unsigned widths[] = {0, 3, 8, 16};
    static MathKernel kernels[N_KERNELS];
    size_t n = add_conversions(kernels, widths, 4);
    n += add_operations(kernels + n, widths, 4);
    cr_assert_leq(n, N_KERNELS);
    cr_assert_eq(math_count_externals(kernels, n), 0);
}

/* An add or mul without .rn may be fused by ptxas, which would change the bits. Subnormals may be
 * lost by reciprocals alone, of which division sees what became, and by powers of fast programs. */
static void check_ptx(const char *cpu) {
    static const unsigned widths[] = {0, 2};
    static const char *const banned[] = {"add.f32", "mul.f32", "sub.f32", "add.f64",
                                         "mul.f64", "sub.f64", "call",    ".extern"};
    static MathKernel kernels[N_KERNELS];
    size_t n = add_conversions(kernels, widths, 2);
    n += add_operations(kernels + n, widths, 2);
    char *ptx = math_assembly(kernels, n, cpu);
    cr_assert_not_null(ptx);
    for (size_t i = 0; i < sizeof banned / sizeof *banned; i++) {
        cr_assert_null(strstr(ptx, banned[i]), "%s in the PTX for %s", banned[i], cpu);
    }
    cr_assert_gt(ptx_count(ptx, "rcp.approx.ftz"), 0, "no vector was divided");
    cr_assert_eq(ptx_count(ptx, ".ftz"),
                 ptx_count(ptx, "rcp.approx.ftz") + ptx_count(ptx, "ex2.approx.ftz"), "%s", cpu);
    Arena *arena = arena_new(NULL);
    PtxReport report;
    if (ptx_assemble(arena, ptx, strlen(ptx), (PtxOptions){.target = cpu, .level = "1"}, &report))
        cr_expect_eq(report.n_remarks, 0, "%s", cpu);
    arena_free(arena);
    math_text_free(ptx);
}

Test(convert, ptx_for_sm_80_assembles) {
    check_ptx("sm_80");
}

Test(convert, ptx_for_sm_90a_assembles) {
    check_ptx("sm_90a");
}
