/* Tensor cores and their loads. See emu.h. Fragments are those of the PTX manual: with g a lane's
 * number / 4 and t the rest, rows g and g + 8, columns 2t and 2t + 1. */
#include "emulator/emu.h"

#include <limits.h>
#include <math.h>
#include <string.h>

enum { MAX_K = 32, MAX_COLUMNS = 256, WARP_ROWS = 16, ABREAST = 8 };

/* The rows of a warp: both operands, and accumulators. A row of `b` has an element of each
 * column. */
typedef struct Product {
    float a[WARP_ROWS][MAX_K], b[MAX_K][MAX_COLUMNS];
    uint64_t accs[WARP_ROWS][MAX_COLUMNS];
} Product;
static _Thread_local Product product;

static bool is_int(EmuType type) {
    return type == EMU_S8 || type == EMU_U8;
}

/* Floats of 8 bits. Every term is cut off F8_BITS below the exponent of the largest one, and so is
 * the sum. Subnormal operands count as the least exponent. */
enum { F8_BITS = 13 };

static bool is_f8(EmuType type) {
    return type == EMU_E4M3 || type == EMU_E5M2;
}

static int exponent_of(EmuType type, float value) {
    int least = type == EMU_E4M3 ? -6 : -14, own = value != 0 ? ilogbf(value) : least;
    return own > least ? own : least;
}

static float add_cut(EmuType left, EmuType right, float sum, const float *a, const float *b,
                     uint32_t n) {
    int top = sum != 0 ? ilogbf(sum) : INT_MIN;
    bool is_finite = isfinite(sum);
    double all = 0;
    for (uint32_t k = 0; k < n; k++) {
        int own = exponent_of(left, a[k]) + exponent_of(right, b[k]);
        is_finite = is_finite && isfinite(a[k]) && isfinite(b[k]);
        all += (double)a[k] * b[k];
        if (a[k] * b[k] != 0 && own > top) top = own;
    }
    if (!is_finite) return (float)(all + sum);
    if (top == INT_MIN) return 0;
    double total = trunc(ldexp(sum, F8_BITS - top));
    for (uint32_t k = 0; k < n; k++) total += trunc(ldexp((double)a[k] * b[k], F8_BITS - top));
    if (total == 0) return 0;
    int bits = ilogb(total) - F8_BITS;
    return (float)ldexp(bits > 0 ? ldexp(trunc(ldexp(total, -bits)), bits) : total, top - F8_BITS);
}

static uint32_t bytes_of(EmuType type) {
    return is_int(type) || is_f8(type) ? 1 : type == EMU_TF32 ? 4 : 2;
}

/* The element in the lowest bits. */
static float number_of(EmuType type, uint64_t bits) {
    if (is_int(type)) return type == EMU_S8 ? (int8_t)bits : (uint8_t)bits;
    if (type == EMU_TF32) return emu_float((uint32_t)bits);
    if (type == EMU_E5M2) return emu_of_f16((bits & 0xFF) << 8);
    if (type == EMU_E4M3 && (bits & 0x7F) == 0x7F) return NAN;
    if (type == EMU_E4M3) return 256 * emu_of_f16((bits & 0x80) << 8 | (bits & 0x7F) << 7);
    return type == EMU_BF16 ? emu_of_bf16(bits & 0xFFFF) : emu_of_f16(bits & 0xFFFF);
}

static void add_cut_products(Product *p, const EmuInst *inst, uint32_t row, uint32_t n_k,
                             uint32_t n_columns) {
    for (uint32_t column = 0; column < n_columns; column++) {
        uint64_t *acc = &p->accs[row][column];
        float b[MAX_K];
        for (uint32_t k = 0; k < n_k; k++) b[k] = p->b[k][column];
        *acc = emu_bits(add_cut(inst->type, inst->from, emu_float(*acc), p->a[row], b, n_k));
    }
}

/* Integers are exact, and wrap. */
static void add_int_products(Product *p, uint32_t row, uint32_t n_k, uint32_t n_columns) {
    for (uint32_t column = 0; column < n_columns; column++) {
        uint32_t sum = (uint32_t)p->accs[row][column];
        for (uint32_t k = 0; k < n_k; k++)
            sum += (uint32_t)((int32_t)p->a[row][k] * (int32_t)p->b[k][column]);
        p->accs[row][column] = sum;
    }
}

/* Other floats: exactly in double, with one rounding. Columns abreast are a vector. */
static void add_float_products(Product *p, uint32_t row, uint32_t n_k, uint32_t n_columns) {
    const float *a = p->a[row];
    for (uint32_t column = 0; column < n_columns; column += ABREAST) {
        double all[4][ABREAST] = {{0}};
        uint64_t *accs = &p->accs[row][column];
        for (uint32_t k = 0; k < n_k; k += 4)
            for (uint32_t part = 0; part < 4; part++)
                for (uint32_t i = 0; i < ABREAST; i++)
                    all[part][i] += (double)a[k + part] * p->b[k + part][column + i];
        for (uint32_t i = 0; i < ABREAST; i++) {
            double sum = (all[0][i] + all[1][i]) + (all[2][i] + all[3][i]);
            accs[i] = emu_bits((float)(sum + emu_float(accs[i])));
        }
    }
}

static void multiply(Product *p, const EmuInst *inst, uint32_t n_k, uint32_t n_columns) {
    for (uint32_t row = 0; row < WARP_ROWS; row++)
        if (is_f8(inst->from))
            add_cut_products(p, inst, row, n_k, n_columns);
        else if (is_int(inst->from))
            add_int_products(p, row, n_k, n_columns);
        else
            add_float_products(p, row, n_k, n_columns);
}

/* Loads four 8 x 8 matrices of 16-bit elements. `test`: t for transposed. */
EmuOutcome emu_ldmatrix(EmuWarp *warp, const EmuInst *inst, uint32_t mask) {
    uint16_t rows[4][8][8];
    if (mask != UINT32_MAX) return emu_fail(warp, inst, "wants all threads", mask);
    EMU_EACH_LANE(lane, mask) {
        uint64_t address = emu_get(warp, &inst->x[4], lane);
        const uint8_t *from = emu_shared(warp, address, 16);
        if (!from) return emu_fail(warp, inst, "loads from where nothing is", address);
        memcpy(rows[lane / 8][lane % 8], from, 16);
    }
    EMU_EACH_LANE(lane, mask) {
        uint32_t g = lane / 4, t = lane % 4;
        for (uint32_t i = 0; i < 4; i++) {
            uint32_t low = inst->test == 't' ? rows[i][2 * t][g] : rows[i][g][2 * t];
            uint32_t high = inst->test == 't' ? rows[i][2 * t + 1][g] : rows[i][g][2 * t + 1];
            emu_set(warp, &inst->x[i], lane, high << 16 | low);
        }
    }
    return EMU_GO_ON;
}

/* mma.sync: operands d, a, b, c with these numbers of registers. */
typedef struct Shape {
    uint32_t m, k, n_d, n_a, n_b;
} Shape;

static Shape shape_of(const EmuInst *inst) {
    bool is_wide = inst->test == 'w'; /* 16 rows */
    if (inst->from == EMU_F64) return is_wide ? (Shape){16, 4, 4, 2, 1} : (Shape){8, 4, 2, 1, 1};
    return (Shape){16, 32 / bytes_of(inst->from), 4, 4, 2};
}

/* The position of part h of register i of a lane, of `n` parts: along its own axis, and along k. */
static void place_in(uint32_t lane, uint32_t i, uint32_t h, uint32_t n, bool is_left, uint32_t *own,
                     uint32_t *k) {
    uint32_t g = lane / 4, t = lane % 4, upper = is_left ? i / 2 : i;
    *own = g + (is_left && i % 2 ? 8 : 0);
    *k = n * (t + 4 * upper) + h;
}

/* An operand's elements, and how far apart in `data` they are along its own axis and along k. */
typedef struct Elements {
    float *data;
    uint32_t own_stride, k_stride;
} Elements;

static Elements left_of(Product *p) {
    return (Elements){p->a[0], MAX_K, 1};
}

static Elements right_of(Product *p) {
    return (Elements){p->b[0], 1, MAX_COLUMNS};
}

/* Gathers an operand of f32 or narrower elements as floats. */
static void gather(EmuWarp *warp, const EmuInst *inst, const EmuOperand *x, uint32_t n,
                   bool is_left, Elements to) {
    EmuType type = is_left ? inst->type : inst->from;
    uint32_t bytes = bytes_of(type);
    for (uint32_t lane = 0; lane < EMU_LANES; lane++)
        for (uint32_t i = 0; i < n; i++)
            for (uint32_t h = 0; h < 4 / bytes; h++) {
                uint64_t bits = emu_get(warp, &x[i], lane);
                uint32_t own, k;
                place_in(lane, i, h, 4 / bytes, is_left, &own, &k);
                to.data[own * to.own_stride + k * to.k_stride] =
                    number_of(type, bits >> (8 * bytes * h));
            }
}

static void multiply_f64(EmuWarp *warp, const EmuInst *inst, Shape s) {
    double a[16][4], b[8][4];
    for (uint32_t lane = 0; lane < EMU_LANES; lane++) {
        uint32_t g = lane / 4, t = lane % 4;
        for (uint32_t i = 0; i < s.n_a; i++)
            a[g + 8 * i][t] = emu_double(emu_get(warp, &inst->x[s.n_d + i], lane));
        b[g][t] = emu_double(emu_get(warp, &inst->x[s.n_d + s.n_a], lane));
    }
    for (uint32_t lane = 0; lane < EMU_LANES; lane++)
        for (uint32_t i = 0; i < s.n_d; i++) {
            uint32_t row = lane / 4 + 8 * (i / 2), column = 2 * (lane % 4) + i % 2;
            double sum = emu_double(emu_get(warp, &inst->x[s.n_d + s.n_a + s.n_b + i], lane));
            for (uint32_t k = 0; k < s.k; k++) sum = fma(a[row][k], b[column][k], sum);
            emu_set(warp, &inst->x[i], lane, emu_double_bits(sum));
        }
}

/* The place of accumulator i of a lane. */
static uint64_t *acc_of(Product *p, uint32_t lane, uint32_t i) {
    return &p->accs[lane / 4 + 8 * (i / 2 % 2)][i / 4 * 8 + 2 * (lane % 4) + i % 2];
}

static void get_accs(Product *p, const EmuWarp *warp, const EmuOperand *x, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t lane = 0; lane < EMU_LANES; lane++)
            *acc_of(p, lane, i) = emu_get(warp, &x[i], lane);
}

static void set_accs(Product *p, EmuWarp *warp, const EmuOperand *x, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t lane = 0; lane < EMU_LANES; lane++)
            emu_set(warp, &x[i], lane, *acc_of(p, lane, i));
}

EmuOutcome emu_mma(EmuWarp *warp, const EmuInst *inst, uint32_t mask) {
    Shape s = shape_of(inst);
    if (mask != UINT32_MAX) return emu_fail(warp, inst, "wants all threads", mask);
    if (inst->from == EMU_F64) {
        multiply_f64(warp, inst, s);
        return EMU_GO_ON;
    }
    Product *p = &product;
    const EmuOperand *left = &inst->x[s.n_d], *right = left + s.n_a;
    gather(warp, inst, left, s.n_a, true, left_of(p));
    gather(warp, inst, right, s.n_b, false, right_of(p));
    get_accs(p, warp, right + s.n_b, s.n_d);
    multiply(p, inst, s.k, 8);
    set_accs(p, warp, inst->x, s.n_d);
    return EMU_GO_ON;
}

/* wgmma: a warp has 16 of 64 rows. `width`: columns / 8. After the accumulators come a descriptor
 * of the left operand, or its four registers, and one of the right operand; whether the
 * accumulators count, and of floats two numbers; and whether each operand with a descriptor is
 * transposed. */

enum { SWIZZLE_128 = 1 };

/* The element of an operand at `own` along its axis and `k`, according to the descriptor. */
static const uint8_t *operand_at(const EmuWarp *warp, uint64_t descriptor, bool is_transposed,
                                 uint32_t bytes, uint32_t own, uint32_t k) {
    uint32_t begin = (uint32_t)(descriptor & 0x3FFF) << 4;
    uint32_t lead = (uint32_t)(descriptor >> 16 & 0x3FFF) << 4;
    uint32_t stride = (uint32_t)(descriptor >> 32 & 0x3FFF) << 4, at;
    uint32_t across = 128 / bytes;
    if (is_transposed)
        at = begin + own / across * lead + k / 8 * stride + k % 8 * 128 + own % across * bytes;
    else
        at = begin + own / 8 * stride + own % 8 * 128 + k * bytes;
    at ^= (at >> 7 & 7) << 4;
    return at + bytes <= warp->machine->shared_bytes ? warp->block->shared + at : NULL;
}

static bool read_operand(const EmuWarp *warp, EmuType type, uint64_t descriptor, bool is_transposed,
                         uint32_t begin, uint32_t n, Elements to) {
    uint32_t bytes = bytes_of(type);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < 32 / bytes; k++) {
            uint32_t bits = 0;
            const uint8_t *from = operand_at(warp, descriptor, is_transposed, bytes, begin + i, k);
            if (!from) return false;
            memcpy(&bits, from, bytes);
            to.data[i * to.own_stride + k * to.k_stride] = number_of(type, bits);
        }
    return true;
}

/* Whether the left operand is in registers. */
static bool has_left_registers(const EmuInst *inst) {
    return inst->n == inst->width * 4u + 9;
}

/* Reads the warp's rows of the left operand, from registers when the instruction runs. */
static bool read_left(EmuWarp *warp, const EmuPending *p, bool is_transposed, Elements to) {
    const EmuOperand *first = &p->inst->x[p->inst->width * 4u];
    if (has_left_registers(p->inst))
        gather(warp, p->inst, first, 4, true, to);
    else if ((p->a >> 62) != SWIZZLE_128)
        return false;
    else
        return read_operand(warp, p->inst->type, p->a, is_transposed, warp->number % 4 * WARP_ROWS,
                            WARP_ROWS, to);
    return true;
}

/* Computes the warp's rows. */
static bool multiply_group(EmuWarp *warp, const EmuPending *pending) {
    const EmuInst *inst = pending->inst;
    Product *p = &product;
    uint32_t columns = inst->width * 8u, n = columns / 2, k = 32 / bytes_of(inst->from);
    uint32_t n_left = has_left_registers(inst) ? 4 : 1, after = n + n_left + 1;
    bool has_transposes = inst->n > after + 3;
    bool transposes_left = has_transposes && n_left == 1 && inst->x[after + 3].number;
    bool transposes_right = has_transposes && inst->x[inst->n - 1].number;
    bool begins = !inst->x[after].number;
    if ((pending->b >> 62) != SWIZZLE_128 ||
        !read_left(warp, pending, transposes_left, left_of(p)) ||
        !read_operand(warp, inst->from, pending->b, transposes_right, 0, columns, right_of(p)))
        return false;
    if (begins)
        memset(p->accs, 0, sizeof p->accs);
    else
        get_accs(p, warp, inst->x, n);
    multiply(p, inst, k, columns);
    set_accs(p, warp, inst->x, n);
    return true;
}

/* Runs when it is awaited, or earlier. */
EmuOutcome emu_wgmma(EmuWarp *warp, const EmuInst *inst, uint32_t mask) {
    uint32_t n = inst->width * 4u;
    if (mask != UINT32_MAX) return emu_fail(warp, inst, "wants all threads", mask);
    EmuPending p = {.inst = inst,
                    .a = emu_get(warp, &inst->x[n], 0),
                    .b = emu_get(warp, &inst->x[n + (has_left_registers(inst) ? 4 : 1)], 0),
                    .group = warp->group};
    vec_push(warp->machine->arena, &warp->pending, p);
    return EMU_GO_ON;
}

/* The four warps of a warpgroup. No operation begins before all four have issued it, and it ends
 * for all at once. */
enum { TOGETHER = 4 };

static EmuWarp *first_of_group(EmuWarp *warp) {
    return warp - warp->number % TOGETHER;
}

/* The number of groups that all four have committed. */
static uint32_t n_common(EmuWarp *warp) {
    const EmuWarp *first = first_of_group(warp);
    uint32_t n = first->group;
    for (uint32_t i = 1; i < TOGETHER; i++)
        if (first[i].group < n) n = first[i].group;
    return n;
}

/* Completes the groups before `end` of one of the four warps. */
static bool finish_groups(EmuWarp *warp, uint32_t end) {
    uint32_t n_kept = 0;
    bool is_good = true;
    for (uint32_t i = 0; i < warp->pending.n; i++) {
        EmuPending p = warp->pending.data[i];
        if (p.inst && p.group < end)
            is_good = multiply_group(warp, &p) && is_good;
        else
            warp->pending.data[n_kept++] = p;
    }
    warp->pending.n = n_kept;
    return is_good;
}

static EmuOutcome finish_all(EmuWarp *warp, const EmuInst *inst, uint32_t end) {
    EmuWarp *first = first_of_group(warp);
    for (uint32_t i = 0; i < TOGETHER; i++)
        if (!finish_groups(&first[i], end))
            return emu_fail(warp, inst, "multiplies what is not there", end);
    return EMU_GO_ON;
}

EmuOutcome emu_wgmma_commit(EmuWarp *warp, const EmuInst *inst, uint32_t mask) {
    (void)mask;
    warp->group++;
    bool is_early = rng_chance(&warp->machine->rng, 50);
    return is_early ? finish_all(warp, inst, n_common(warp)) : EMU_GO_ON;
}

EmuOutcome emu_wgmma_wait(EmuWarp *warp, const EmuInst *inst, uint32_t mask) {
    uint32_t n_left = (uint32_t)inst->x[0].number;
    (void)mask;
    if (warp->group <= n_left) return EMU_GO_ON;
    if (n_common(warp) < warp->group - n_left) return EMU_WAITS;
    warp->machine->n_idle = 0;
    return finish_all(warp, inst, warp->group - n_left);
}
