/* Quotients by one divisor as a GPU computes them, on the emulated one: its way of what is unusual
 * is not the CPU's. */
#include "emulator/emu.h"
#include "ir/op.h"
#include "tools/math_reference.h"

#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { N = 4096 };

static struct { float x[N], y[N], out[N]; } memory;

static bool may_access(uint64_t at, uint32_t n_bytes) {
    uint64_t begin = (uint64_t)(uintptr_t)&memory;
    return at >= begin && at + n_bytes <= begin + sizeof memory;
}

static void divide(const EmuKernel *kernel) {
    uint64_t x = (uint64_t)(uintptr_t)memory.x, y = (uint64_t)(uintptr_t)memory.y;
    uint64_t out = (uint64_t)(uintptr_t)memory.out, n = N;
    void *params[] = {&x, &y, &out, &n};
    EmuLaunch launch = {
        .n_blocks = 1, .n_threads = 1, .params = params, .seed = 1, .may_access = may_access};
    char error[400];
    cr_assert(emu_run(kernel, &launch, error, sizeof error), "%s", error);
}

/* For math_text_free, after the module's. */
static char *load(const MathKernel *kernel, EmuModule *module) {
    char *text = math_assembly(kernel, 1, "sm_80");
    cr_assert_not_null(text);
    cr_assert(emu_module_init(module, text), "%s\n%s", module->error, text);
    return text;
}

/* To the bit, or both NaN. */
static bool is_same(float want, float out) {
    return isnan(want) ? isnan(out) : memcmp(&want, &out, sizeof want) == 0;
}

static float as_f32(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t draw(uint64_t *state) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 32);
}

static const float specials[] = {
    0,         -0.0f,          INFINITY,        -INFINITY,     NAN,      1,         -1,
    0x1p-149f, -0x1p-149f,     0x1p-130f,       0x1p-126f,     0x1p-95f, 0x1p-94f,  0x1p-93f,
    0x1p-64f,  0x1p-63f,       0x1p-33f,        0x1p-32f,      0x1p32f,  0x1p33f,   0x1p34f,
    0x1p127f,  0x1.fffffep33f, 0x1.fffffep127f, -0x1p126f,     3,        0x1p-148f, 0x1.8p-148f,
    7,         0x1p-62f,       -0x1.8p-127f,    0x1.fffffep-1f};
enum { N_SPECIALS = sizeof specials / sizeof *specials };

/* Lanes of bits at random, of moderate ones, of zeros and tiny ones among them. */
static void draw_operands(uint64_t *state, uint32_t round, uint32_t lanes, bool are_fractions) {
    for (uint32_t i = 0; i < N; i++) {
        uint32_t batch = i / lanes, bits = draw(state);
        float x = as_f32(bits), moderate = as_f32(0x3f000000 | bits >> 9);
        if (batch % 4 == 1) x = bits % 8 ? moderate : 0;
        if (batch % 4 == 2) x = as_f32(bits % (100u << 23));
        if (batch % 4 == 3) x = bits % 4 ? moderate : specials[bits / 4 % N_SPECIALS];
        if (are_fractions) x = x == 0 ? 0 : fabsf(x) > 1 ? 1 / fabsf(x) : fabsf(x);
        memory.x[i] = x;
        memory.y[i] = round == 0   ? specials[batch % N_SPECIALS]
                      : round == 1 ? as_f32(draw(state))
                                   : as_f32(0x30000000 + draw(state) % 0x1f000000);
    }
}

static void check(const char *op, uint32_t lanes) {
    for (uint32_t i = 0; i < N; i++) {
        float y = memory.y[i / lanes * lanes], want = memory.x[i] / y, out = memory.out[i];
        cr_assert(is_same(want, out), "%s of %u lanes: %a / %a = %a, want %a", op, lanes,
                  (double)memory.x[i], (double)y, (double)out, (double)want);
    }
}

Test(emulated_math, quotients_by_one_divisor_are_exact, .timeout = 300) {
    static const unsigned widths[] = {2, 8, 32, 64};
    for (size_t k = 0; k < 8; k++) {
        bool are_fractions = k % 2;
        const MathKernel kernel = {.op = are_fractions ? MATH_OP_fraction_by_one
                                                       : MATH_OP_quotient_by_one,
                                   .from = DT_F32,
                                   .to = DT_F32,
                                   .lanes = widths[k / 2]};
        EmuModule module;
        char *text = load(&kernel, &module);
        uint64_t state = k;
        for (uint32_t round = 0; round < 4; round++) {
            draw_operands(&state, round, kernel.lanes, are_fractions);
            divide(module.kernels.data[0]);
            check(math_op_name(kernel.op), kernel.lanes);
        }
        emu_module_free(&module);
        math_text_free(text);
    }
}

/* Shorter forms, within what the table says of them. The machine's own functions are off by as much
 * as its manual allows. */

static PrimId prim_of(const char *name) {
    for (int p = 1; p < PRIM_COUNT; p++)
        if (strcmp(prim_info((PrimId)p)->name, name) == 0) return (PrimId)p;
    cr_assert_fail("there is no primitive %s", name);
    return PRIM_NONE;
}

/* Bits at random, moderate numbers, and all pairs of special ones. */
static void draw_shorts(uint64_t *state) {
    for (uint32_t i = 0; i < N; i++) {
        uint32_t bits = draw(state), other = draw(state);
        bool is_special = i < N_SPECIALS * N_SPECIALS;
        bool is_moderate = i % 2;
        memory.x[i] = is_special    ? specials[i % N_SPECIALS]
                      : is_moderate ? 200 * as_f32(0x3f800000 | bits >> 9) - 300
                                    : as_f32(bits);
        memory.y[i] = is_special    ? specials[i / N_SPECIALS]
                      : is_moderate ? as_f32(0x3f800000 | other >> 9)
                                    : as_f32(other);
    }
}

static void check_short(PrimId prim, uint32_t lanes) {
    const PrimInfo *info = prim_info(prim);
    for (uint32_t i = 0; i < N; i++) {
        double x = (double)memory.x[i], y = (double)memory.y[i], out = (double)memory.out[i];
        double exact = prim_eval(prim, DT_F32, x, y, 0);
        double bound = prim_error(prim, DT_F32, exact);
        bool overflows = isfinite(exact) && fabs(exact) + bound > (double)FLT_MAX;
        bool is_right = isnan(exact)   ? isnan(out) != 0
                        : isinf(exact) ? out == exact
                        : exact == 0   ? fabs(out) <= bound
                        : isinf(out)   ? overflows && signbit(out) == signbit(exact)
                                       : fabs(out - exact) <= bound;
        cr_assert(is_right, "%s of %u lanes (%a, %a) = %a, not %a, bound %a", info->name, lanes, x,
                  y, out, exact, bound);
        bool has_zero = exact == 0 && out == 0 && prim != PRIM_LOG_21 && prim != PRIM_LOG2_22;
        cr_assert(!has_zero || signbit(out) == signbit(exact), "%s (%a, %a): the sign of zero",
                  info->name, x, y);
    }
}

Test(emulated_math, shorter_forms_are_within_their_bounds, .timeout = 300) {
#define SHORT(name, arity) MATH_OP_##name,
    static const MathOp ops[] = {MATH_SHORT(SHORT)};
    uint64_t state = 11;
    for (size_t k = 0; k < sizeof ops / sizeof *ops; k++)
        for (unsigned lanes = 0; lanes <= 4; lanes += 4) {
            const MathKernel kernel = {ops[k], DT_F32, DT_F32, lanes};
            EmuModule module;
            char *text = load(&kernel, &module);
            for (int round = 0; round < 4; round++) {
                draw_shorts(&state);
                divide(module.kernels.data[0]);
                check_short(prim_of(math_op_name(kernel.op)), lanes);
            }
            emu_module_free(&module);
            math_text_free(text);
        }
}

/* The machine's own functions are rounded correctly here. The logistic function is subnormal below
 * -87, the product below -91; it is 0 below -108.7. */
Test(emulated_math, silu_keeps_its_digits_where_the_logistic_function_is_subnormal) {
    const MathKernel kernel = {MATH_OP_silu, DT_F32, DT_F32, 4};
    const double bound = op_ulp(op_info(op_by_name("silu")), DT_F32);
    EmuModule module;
    char *text = load(&kernel, &module);
    for (uint32_t i = 0; i < N; i++) memory.x[i] = -80 - 40 * (float)i / N;
    for (uint32_t i = 0; i < N_SPECIALS; i++) memory.x[i] = specials[i];
    divide(module.kernels.data[0]);
    for (uint32_t i = 0; i < N; i++) {
        double want = prim_eval(PRIM_SILU, DT_F32, (double)memory.x[i], 0, 0);
        double error = math_error_ulp((double)memory.out[i], (long double)want, DT_F32);
        cr_expect(error <= bound, "silu(%a) = %a, want %a: %.2f ULP", (double)memory.x[i],
                  (double)memory.out[i], want, error);
    }
    emu_module_free(&module);
    math_text_free(text);
}

/* What a lane has does not depend on the others: with large ones among them it is the same. */
Test(emulated_math, shorter_forms_are_the_same_beside_others, .timeout = 300) {
    static const MathOp ops[] = {MATH_SHORT(SHORT)};
    static float alone[N];
    for (size_t k = 0; k < sizeof ops / sizeof *ops; k++)
        for (unsigned lanes = 0; lanes <= 4; lanes += 4) {
            const MathKernel kernel = {ops[k], DT_F32, DT_F32, lanes};
            EmuModule module;
            char *text = load(&kernel, &module);
            uint64_t state = 29;
            draw_shorts(&state);
            for (uint32_t i = 0; i < N; i += 4) memory.x[i] = 0x1p20f + (float)i;
            divide(module.kernels.data[0]);
            if (lanes == 0) memcpy(alone, memory.out, sizeof alone);
            for (uint32_t i = 0; i < N; i++)
                cr_assert(is_same(alone[i], memory.out[i]),
                          "%s (%a, %a) = %a beside others, %a alone", math_op_name(kernel.op),
                          (double)memory.x[i], (double)memory.y[i], (double)memory.out[i],
                          (double)alone[i]);
            emu_module_free(&module);
            math_text_free(text);
        }
}
