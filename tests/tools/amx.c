/* See amx.h. Instructions are decoded from their VEX prefix on: C4, then bits R X B and the opcode
 * map, then W, a register, L and the prefix that it stands for. Intel's manual of instructions
 * (volume 2) defines them. */
#define _GNU_SOURCE /* REG_RIP and its kin */
#include "tools/amx.h"

#include <cpuid.h>
#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

enum {
    N_TILES = 8,
    MOST_ROWS = 16,
    ROW_BYTES = 64,
    CONFIG_ROW_BYTES = 16, /* where a configuration has the bytes of a row, and the rows */
    CONFIG_ROWS = 48,
    MAP_0F38 = 2,
    NO_BASE = 5,  /* a base that is a displacement alone */
    HAS_SIB = 4,  /* an address with an index */
    NO_INDEX = 4, /* an index that there is not */
};

typedef enum { PREFIX_NONE, PREFIX_66, PREFIX_F3, PREFIX_F2 } Prefix;

typedef struct Tiles {
    uint8_t config[ROW_BYTES];
    uint8_t rows[N_TILES][MOST_ROWS][ROW_BYTES];
} Tiles;

static _Thread_local Tiles tiles;
static _Atomic uint64_t n_interpreted;

typedef struct Instruction {
    const uint8_t *at, *end;
    uint8_t opcode;
    Prefix prefix;
    bool is_register;         /* the last operand is one */
    uint8_t reg, rm, operand; /* registers; `operand`: the prefix's own */
    uint64_t base, stride;    /* of an operand in memory */
} Instruction;

static uint64_t general(const ucontext_t *context, uint32_t number) {
    static const int places[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                 REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                 REG_R12, REG_R13, REG_R14, REG_R15};
    return (uint64_t)context->uc_mcontext.gregs[places[number]];
}

static int64_t displacement(Instruction *i, uint32_t n_bytes) {
    int8_t byte;
    int32_t word;
    if (n_bytes == 1) memcpy(&byte, i->end, 1);
    if (n_bytes == 4) memcpy(&word, i->end, 4);
    i->end += n_bytes;
    return n_bytes == 1 ? byte : n_bytes == 4 ? word : 0;
}

/* Reads what follows the byte of the mode: the operand in memory. `x` and `b` are the high bits of
 * the index and the base. */
static void read_address(Instruction *i, const ucontext_t *context, uint32_t mode, uint32_t x,
                         uint32_t b) {
    uint32_t base = i->rm;
    if (base == HAS_SIB) {
        uint8_t sib = *i->end++;
        uint32_t index = (sib >> 3 & 7) | x << 3;
        base = sib & 7;
        if (index != NO_INDEX) i->stride = general(context, index) << (sib >> 6);
    }
    bool has_base = mode != 0 || base != NO_BASE;
    int64_t more = displacement(i, mode == 1 ? 1 : mode == 2 || !has_base ? 4 : 0);
    uint64_t from = has_base ? general(context, base | b << 3) : 0;
    if (!has_base && i->rm == NO_BASE) from = (uint64_t)(uintptr_t)i->end; /* the next one's */
    i->base = from + (uint64_t)more;
}

static bool decode(Instruction *i, const ucontext_t *context) {
    const uint8_t *at = (const uint8_t *)(uintptr_t)context->uc_mcontext.gregs[REG_RIP];
    if (at[0] != 0xC4 || (at[1] & 0x1F) != MAP_0F38) return false;
    uint32_t mode = at[4] >> 6, high = ~(uint32_t)at[1];
    *i = (Instruction){.at = at,
                       .end = at + 5,
                       .opcode = at[3],
                       .prefix = (Prefix)(at[2] & 3),
                       .is_register = mode == 3,
                       .reg = at[4] >> 3 & 7,
                       .rm = at[4] & 7,
                       .operand = ~(uint32_t)at[2] >> 3 & 7};
    if (!i->is_register) read_address(i, context, mode, high >> 6 & 1, high >> 5 & 1);
    return true;
}

static uint32_t n_rows(uint32_t tile) {
    return tiles.config[CONFIG_ROWS + tile];
}

static uint32_t row_bytes(uint32_t tile) {
    return tiles.config[CONFIG_ROW_BYTES + 2 * tile];
}

static void clear_tile(uint32_t tile) {
    memset(tiles.rows[tile], 0, sizeof tiles.rows[tile]);
}

static void move_tile(const Instruction *i, bool loads) {
    if (loads) clear_tile(i->reg);
    for (uint32_t r = 0; r < n_rows(i->reg); r++) {
        uint8_t *memory = (uint8_t *)(uintptr_t)(i->base + r * i->stride);
        uint8_t *row = tiles.rows[i->reg][r];
        memcpy(loads ? row : memory, loads ? memory : row, row_bytes(i->reg));
    }
}

static int32_t byte_of(const uint8_t *at, bool is_signed) {
    return is_signed ? (int8_t)*at : *at;
}

static void multiply_bytes(const Instruction *i, bool left_signed, bool right_signed) {
    for (uint32_t r = 0; r < n_rows(i->reg); r++)
        for (uint32_t c = 0; c < row_bytes(i->reg); c += 4) {
            uint32_t sum;
            memcpy(&sum, &tiles.rows[i->reg][r][c], 4);
            for (uint32_t k = 0; k < row_bytes(i->rm); k++) {
                int32_t left = byte_of(&tiles.rows[i->rm][r][k], left_signed);
                int32_t right = byte_of(&tiles.rows[i->operand][k / 4][c + k % 4], right_signed);
                sum += (uint32_t)(left * right);
            }
            memcpy(&tiles.rows[i->reg][r][c], &sum, 4);
        }
}

/* Subnormal numbers are zeros, as operands and as results. */
static float flushed(float x) {
    return fabsf(x) < 0x1p-126f ? copysignf(0, x) : x;
}

static float bfloat_at(const uint8_t *at) {
    uint16_t bits;
    float x;
    memcpy(&bits, at, 2);
    uint32_t word = (uint32_t)bits << 16;
    memcpy(&x, &word, 4);
    return flushed(x);
}

/* Even and odd steps have a sum each. */
static void multiply_bfloats(const Instruction *i) {
    for (uint32_t r = 0; r < n_rows(i->reg); r++)
        for (uint32_t c = 0; c < row_bytes(i->reg); c += 4) {
            float sums[2] = {0, 0}, all;
            for (uint32_t k = 0; k < row_bytes(i->rm) / 2; k++) {
                float left = bfloat_at(&tiles.rows[i->rm][r][2 * k]);
                float right = bfloat_at(&tiles.rows[i->operand][k / 2][c + 2 * (k % 2)]);
                sums[k % 2] = flushed(fmaf(left, right, sums[k % 2]));
            }
            memcpy(&all, &tiles.rows[i->reg][r][c], 4);
            all = flushed(flushed(all) + flushed(sums[0] + sums[1]));
            memcpy(&tiles.rows[i->reg][r][c], &all, 4);
        }
}

static bool configure(const Instruction *i) {
    if (i->is_register && i->prefix == PREFIX_F2) {
        clear_tile(i->reg);
        return true;
    }
    bool is_known = i->prefix == PREFIX_NONE; /* a configuration, or the end of one */
    if (is_known) memset(&tiles, 0, sizeof tiles);
    if (is_known && !i->is_register)
        memcpy(tiles.config, (const void *)(uintptr_t)i->base, ROW_BYTES);
    return is_known;
}

static bool execute(const Instruction *i) {
    switch (i->opcode) {
    case 0x49:
        return configure(i);
    case 0x4B:
        move_tile(i, i->prefix != PREFIX_F3);
        return !i->is_register;
    case 0x5C:
        multiply_bfloats(i);
        return i->prefix == PREFIX_F3;
    case 0x5E:
        multiply_bytes(i, i->prefix == PREFIX_F2 || i->prefix == PREFIX_F3,
                       i->prefix == PREFIX_F2 || i->prefix == PREFIX_66);
        return true;
    default:
        return false;
    }
}

/* A processor that has tile registers configures them itself, also without the permission that
 * other instructions on them need. Then the interrupted thread's saved state has the
 * configuration. */
static void take_configuration(const ucontext_t *context) {
    enum { STATE_LEAF = 0xD, TILE_CONFIG = 17 };
    uint32_t a, b, c, d;
    if (tiles.config[0] || !__builtin_cpu_supports("amx-tile")) return;
    if (!__get_cpuid_count(STATE_LEAF, TILE_CONFIG, &a, &b, &c, &d)) return;
    memcpy(tiles.config, (const uint8_t *)context->uc_mcontext.fpregs + b, sizeof tiles.config);
}

static void on_illegal(int number, siginfo_t *info, void *user) {
    (void)number;
    (void)info;
    ucontext_t *context = user;
    Instruction i;
    take_configuration(context);
    if (!decode(&i, context) || !execute(&i)) abort();
    context->uc_mcontext.gregs[REG_RIP] = (greg_t)(uintptr_t)i.end;
    atomic_fetch_add(&n_interpreted, 1);
}

void amx_interpret(void) {
    struct sigaction action = {.sa_sigaction = on_illegal, .sa_flags = SA_SIGINFO};
    sigemptyset(&action.sa_mask);
    sigaction(SIGILL, &action, NULL);
}

uint64_t amx_n_interpreted(void) {
    return atomic_load(&n_interpreted);
}
