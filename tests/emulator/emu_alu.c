/* Integers, predicates and bits. See emu.h. */
#include "emulator/emu.h"

uint32_t emu_type_bits(EmuType type) {
    switch (type) {
    case EMU_PRED:
        return 1;
    case EMU_U8:
    case EMU_S8:
        return 8;
    case EMU_U16:
    case EMU_F16:
    case EMU_BF16:
        return 16;
    case EMU_U64:
    case EMU_S64:
    case EMU_F64:
        return 64;
    default:
        return 32;
    }
}

static inline uint64_t cut(EmuType type, uint64_t value) {
    uint32_t bits = emu_type_bits(type);
    return bits == 64 ? value : value & ((UINT64_C(1) << bits) - 1);
}

/* The value, sign-extended if the type is signed. */
static int64_t wide(EmuType type, uint64_t value) {
    if (type == EMU_S32) return (int32_t)value;
    return (int64_t)cut(type, value);
}

static bool is_signed(EmuType type) {
    return type == EMU_S32 || type == EMU_S64;
}

const uint64_t emu_zeros[EMU_LANES];

/* Defines an instruction of two operands or of one, with a fast case for 32 bits. */
#define OP_2(name, expression)                                                             \
    EmuOutcome name(EmuWarp *warp, const EmuInst *inst, uint32_t mask) {                   \
        EmuType type = inst->type;                                                         \
        const EmuOperand *y = inst->n > 2 ? &inst->x[2] : &inst->x[1];                     \
        const uint64_t *of_x = emu_values(warp, &inst->x[1]), *of_y = emu_values(warp, y); \
        uint64_t *to = warp->regs[inst->x[0].slot], x_plus = inst->x[1].number;            \
        uint64_t y_plus = y->number, field = cut(type, UINT64_MAX);                        \
        EMU_ALL_OR_EACH(lane, mask, uint64_t a = of_x[lane] + x_plus;                      \
                        uint64_t b = of_y[lane] + y_plus; (void)b;                         \
                        to[lane] = (uint64_t)(expression)&field;);                         \
        return EMU_GO_ON;                                                                  \
    }

static uint64_t high_half(EmuType type, uint64_t a, uint64_t b) {
    if (emu_type_bits(type) == 32)
        return is_signed(type) ? (uint64_t)(wide(type, a) * wide(type, b)) >> 32
                               : cut(type, a) * cut(type, b) >> 32;
    uint64_t low = (uint32_t)a * (uint64_t)(uint32_t)b, x = (a >> 32) * (uint32_t)b;
    uint64_t y = (uint32_t)a * (b >> 32), middle = (low >> 32) + (uint32_t)x + (uint32_t)y;
    uint64_t high = (a >> 32) * (b >> 32) + (x >> 32) + (y >> 32) + (middle >> 32);
    if (type == EMU_S64) high -= ((int64_t)a < 0 ? b : 0) + ((int64_t)b < 0 ? a : 0);
    return high;
}

static uint64_t divide(EmuType type, uint64_t a, uint64_t b, bool wants_rest) {
    a = cut(type, a), b = cut(type, b);
    if (b == 0) return wants_rest ? a : UINT64_MAX;
    if (!is_signed(type)) return wants_rest ? a % b : a / b;
    int64_t x = wide(type, a), y = wide(type, b);
    if (y == -1) return wants_rest ? 0 : 0 - (uint64_t)x;
    return (uint64_t)(wants_rest ? x % y : x / y);
}

static uint64_t shift(EmuType type, uint64_t a, uint64_t by, bool is_left) {
    uint32_t bits = emu_type_bits(type), n = (uint32_t)by;
    bool is_all = n >= bits;
    if (is_left) return is_all ? 0 : a << n;
    if (!is_signed(type)) return is_all ? 0 : cut(type, a) >> n;
    return (uint64_t)(wide(type, a) >> (is_all ? bits - 1 : n));
}

static uint64_t product_of_halves(EmuType type, uint64_t a, uint64_t b) {
    return type == EMU_S32 ? (uint64_t)((int64_t)(int32_t)a * (int32_t)b)
                           : (uint64_t)(uint32_t)a * (uint32_t)b;
}

OP_2(emu_add, a + b)
OP_2(emu_sub, a - b)
OP_2(emu_mul_lo, a *b)
OP_2(emu_mul_hi, high_half(type, a, b))
OP_2(emu_quotient, divide(type, a, b, false))
OP_2(emu_rest, divide(type, a, b, true))
OP_2(emu_shl, shift(type, a, b, true))
OP_2(emu_shr, shift(type, a, b, false))
OP_2(emu_and, a &b)
OP_2(emu_or, a | b)
OP_2(emu_xor, a ^ b)
OP_2(emu_not, ~a)
OP_2(emu_popc, (uint64_t)__builtin_popcountll(a))
OP_2(emu_move, a)

EmuOutcome emu_mul_wide(EmuWarp *warp, const EmuInst *inst, uint32_t mask) {
    EMU_EACH_LANE(lane, mask) {
        uint64_t a = emu_get(warp, &inst->x[1], lane), b = emu_get(warp, &inst->x[2], lane);
        emu_set(warp, &inst->x[0], lane, product_of_halves(inst->type, a, b));
    }
    return EMU_GO_ON;
}

EmuOutcome emu_mad_lo(EmuWarp *warp, const EmuInst *inst, uint32_t mask) {
    EMU_EACH_LANE(lane, mask) {
        uint64_t a = emu_get(warp, &inst->x[1], lane), b = emu_get(warp, &inst->x[2], lane);
        emu_set(warp, &inst->x[0], lane, cut(inst->type, a * b + emu_get(warp, &inst->x[3], lane)));
    }
    return EMU_GO_ON;
}

/* `test`: '<' minimum, '>' maximum. */
EmuOutcome emu_extreme(EmuWarp *warp, const EmuInst *inst, uint32_t mask) {
    EMU_EACH_LANE(lane, mask) {
        uint64_t a = emu_get(warp, &inst->x[1], lane), b = emu_get(warp, &inst->x[2], lane);
        bool is_less = is_signed(inst->type) ? wide(inst->type, a) < wide(inst->type, b)
                                             : cut(inst->type, a) < cut(inst->type, b);
        emu_set(warp, &inst->x[0], lane, cut(inst->type, is_less == (inst->test == '<') ? a : b));
    }
    return EMU_GO_ON;
}

/* Packs several operands into the first one, the lowest first. */
EmuOutcome emu_pack(EmuWarp *warp, const EmuInst *inst, uint32_t mask) {
    uint32_t n = inst->n - 1, bits = emu_type_bits(inst->type) / n;
    EMU_EACH_LANE(lane, mask) {
        uint64_t all = 0;
        for (uint32_t i = 0; i < n; i++)
            all |= (emu_get(warp, &inst->x[1 + i], lane) & (UINT64_MAX >> (64 - bits)))
                   << (i * bits);
        emu_set(warp, &inst->x[0], lane, all);
    }
    return EMU_GO_ON;
}

/* Unpacks the last operand into all others. */
EmuOutcome emu_unpack(EmuWarp *warp, const EmuInst *inst, uint32_t mask) {
    uint32_t n = inst->n - 1, bits = emu_type_bits(inst->type) / n;
    EMU_EACH_LANE(lane, mask) {
        uint64_t all = emu_get(warp, &inst->x[n], lane);
        for (uint32_t i = 0; i < n; i++)
            emu_set(warp, &inst->x[i], lane, all >> (i * bits) & (UINT64_MAX >> (64 - bits)));
    }
    return EMU_GO_ON;
}

/* Of s32 the field's highest bit is its sign. */
EmuOutcome emu_bfe(EmuWarp *warp, const EmuInst *inst, uint32_t mask) {
    EMU_EACH_LANE(lane, mask) {
        uint64_t a = cut(inst->type, emu_get(warp, &inst->x[1], lane));
        uint64_t from = emu_get(warp, &inst->x[2], lane) & 255;
        uint64_t n = emu_get(warp, &inst->x[3], lane) & 255;
        uint64_t field = n >= 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1;
        uint64_t bits = from >= 64 ? 0 : a >> from & field, sign = field / 2 + 1;
        if (inst->type == EMU_S32 && n < 32) bits = (bits ^ sign) - sign;
        emu_set(warp, &inst->x[0], lane, cut(inst->type, bits));
    }
    return EMU_GO_ON;
}

EmuOutcome emu_prmt(EmuWarp *warp, const EmuInst *inst, uint32_t mask) {
    EMU_EACH_LANE(lane, mask) {
        uint64_t bytes = (emu_get(warp, &inst->x[1], lane) & UINT32_MAX) |
                         emu_get(warp, &inst->x[2], lane) << 32;
        uint64_t control = emu_get(warp, &inst->x[3], lane), all = 0;
        for (uint32_t i = 0; i < 4; i++) {
            uint64_t choice = control >> (4 * i) & 15;
            uint64_t byte = bytes >> (8 * (choice & 7)) & 255;
            if (choice & 8) byte = byte & 128 ? 255 : 0;
            all |= byte << (8 * i);
        }
        emu_set(warp, &inst->x[0], lane, all);
    }
    return EMU_GO_ON;
}

EmuOutcome emu_lop3(EmuWarp *warp, const EmuInst *inst, uint32_t mask) {
    EMU_EACH_LANE(lane, mask) {
        uint64_t a = emu_get(warp, &inst->x[1], lane), b = emu_get(warp, &inst->x[2], lane);
        uint64_t c = emu_get(warp, &inst->x[3], lane), table = inst->x[4].number, all = 0;
        for (uint32_t i = 0; i < 8; i++)
            if (table >> i & 1) all |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
        emu_set(warp, &inst->x[0], lane, cut(inst->type, all));
    }
    return EMU_GO_ON;
}

EmuOutcome emu_select(EmuWarp *warp, const EmuInst *inst, uint32_t mask) {
    EMU_EACH_LANE(lane, mask) {
        const EmuOperand *chosen = &inst->x[emu_get(warp, &inst->x[3], lane) & 1 ? 1 : 2];
        emu_set(warp, &inst->x[0], lane, cut(inst->type, emu_get(warp, chosen, lane)));
    }
    return EMU_GO_ON;
}

static int64_t comparable(EmuType type, uint64_t value) {
    if (is_signed(type)) return wide(type, value);
    return (int64_t)(cut(type, value) ^ UINT64_C(1) << 63);
}

#define COMPARE(is_so)                                                             \
    EMU_ALL_OR_EACH(lane, mask, int64_t a = comparable(type, of_x[lane] + x_plus); \
                    int64_t b = comparable(type, of_y[lane] + y_plus); to[lane] = (is_so);)

/* `test`: = ! < l(<=) > g(>=) */
EmuOutcome emu_compare_int(EmuWarp *warp, const EmuInst *inst, uint32_t mask) {
    EmuType type = inst->type;
    const uint64_t *of_x = emu_values(warp, &inst->x[1]), *of_y = emu_values(warp, &inst->x[2]);
    uint64_t *to = warp->regs[inst->x[0].slot], x_plus = inst->x[1].number;
    uint64_t y_plus = inst->x[2].number;
    switch (inst->test) {
    case '=':
        COMPARE(a == b);
        break;
    case '!':
        COMPARE(a != b);
        break;
    case '<':
        COMPARE(a < b);
        break;
    case 'l':
        COMPARE(a <= b);
        break;
    case '>':
        COMPARE(a > b);
        break;
    default:
        COMPARE(a >= b);
    }
    return EMU_GO_ON;
}

/* Instructions without effect here: fences, hints, register counts, and convergence, which the
 * caller ensures. */
EmuOutcome emu_nothing(EmuWarp *warp, const EmuInst *inst, uint32_t mask) {
    (void)warp, (void)inst, (void)mask;
    return EMU_GO_ON;
}
