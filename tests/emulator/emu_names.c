/* The names of instructions. See emu.h. */
#include "emulator/emu.h"

#include <stdlib.h>
#include <string.h>

typedef struct Name {
    const char *begin; /* the beginning of the name: whole parts between dots */
    EmuRun *run;
    EmuKind kind;
    uint8_t test;
} Name;

/* The first match counts. */
static const Name names[] = {
#define EMU(begin, run, kind, test) {begin, run, EMU_##kind, test},
#define WORD(text)
#include "emulator/emu_names.def"
};

static const char *const words[] = {
#define EMU(begin, run, kind, test)
#define WORD(text) text,
#include "emulator/emu_names.def"
};

static const struct {
    const char *name;
    EmuType type;
} types[] = {{"pred", EMU_PRED},     {"b8", EMU_U8},    {"u8", EMU_U8},     {"s8", EMU_S8},
             {"b16", EMU_U16},       {"u16", EMU_U16},  {"s16", EMU_U16},   {"b32", EMU_U32},
             {"u32", EMU_U32},       {"s32", EMU_S32},  {"b64", EMU_U64},   {"u64", EMU_U64},
             {"s64", EMU_S64},       {"f16", EMU_F16},  {"bf16", EMU_BF16}, {"f16x2", EMU_F16X2},
             {"bf16x2", EMU_BF16X2}, {"f32", EMU_F32},  {"tf32", EMU_TF32}, {"f64", EMU_F64},
             {"e4m3", EMU_E4M3},     {"e5m2", EMU_E5M2}};

typedef struct Piece {
    const char *at;
    size_t n;
} Piece;

static bool is_piece(Piece piece, const char *text) {
    return strlen(text) == piece.n && memcmp(piece.at, text, piece.n) == 0;
}

static Piece next_piece(const char **at) {
    Piece piece = {*at, 0};
    while (piece.at[piece.n] && piece.at[piece.n] != '.') piece.n++;
    *at += piece.n + (piece.at[piece.n] == '.');
    return piece;
}

static EmuType type_of(Piece piece) {
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (is_piece(piece, types[i].name)) return types[i].type;
    return EMU_NONE;
}

static bool has_piece(const char *name, const char *wanted) {
    while (*name)
        if (is_piece(next_piece(&name), wanted)) return true;
    return false;
}

/* Reads the types in the name: `type` is the last one, `from` the one before, if there is one. */
static void read_types(EmuInst *inst, const char *name) {
    EmuType found[8] = {EMU_NONE};
    uint32_t n = 0;
    while (*name && n < 8) {
        EmuType type = type_of(next_piece(&name));
        if (type != EMU_NONE) found[n++] = type;
    }
    inst->type = n ? found[n - 1] : EMU_NONE;
    inst->from = n > 1 ? found[n - 2] : inst->type;
}

/* Type `i` of the name, counted from 0. */
static EmuType type_number(const char *name, uint32_t i) {
    while (*name) {
        EmuType type = type_of(next_piece(&name));
        if (type != EMU_NONE && i-- == 0) return type;
    }
    return EMU_NONE;
}

static uint8_t test_of(Piece piece) {
    static const struct {
        const char *name;
        uint8_t test;
    } tests[] = {{"eq", '='},        {"ne", '!'},        {"lt", '<'},        {"le", 'l'},
                 {"gt", '>'},        {"ge", 'g'},        {"equ", '=' | 128}, {"neu", '!' | 128},
                 {"ltu", '<' | 128}, {"leu", 'l' | 128}, {"gtu", '>' | 128}, {"geu", 'g' | 128},
                 {"num", '1'},       {"nan", '0'}};
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        if (is_piece(piece, tests[i].name)) return tests[i].test;
    return 0;
}

/* The number after `letter` in the shape part of a name, such as m64n128k16. */
static uint32_t number_behind(const char *name, char letter) {
    while (*name) {
        Piece piece = next_piece(&name);
        if (piece.n < 2 || piece.at[0] != 'm' || piece.at[1] < '0' || piece.at[1] > '9') continue;
        const char *at = memchr(piece.at, letter, piece.n);
        return at ? (uint32_t)strtoul(at + 1, NULL, 10) : 0;
    }
    return 0;
}

static void read_access(EmuInst *inst, const char *name) {
    inst->space = strstr(name, ".shared")  ? EMU_SHARED
                  : strstr(name, ".param") ? EMU_PARAM
                                           : EMU_GLOBAL;
    inst->width = has_piece(name, "v4") ? 4 : has_piece(name, "v2") ? 2 : 1;
}

/* Integer and float instructions share names. */
static void choose_by_type(EmuInst *inst) {
    bool is_float = inst->type >= EMU_F16;
    static const struct {
        EmuRun *of_integers, *of_floats;
        uint8_t test;
    } both[] = {{emu_add, emu_float_2, '+'},
                {emu_sub, emu_float_2, '-'},
                {emu_quotient, emu_float_2, '/'},
                {emu_extreme, emu_float_2, 0},
                {emu_compare_int, emu_compare_float, 0}};
    for (size_t i = 0; i < sizeof both / sizeof *both; i++) {
        if (!is_float || inst->run != both[i].of_integers) continue;
        inst->run = both[i].of_floats;
        if (both[i].test) inst->test = both[i].test;
        return;
    }
}

/* Chooses which type of its name an instruction goes by, and reads the rest of the name. */
static void read_rest(EmuInst *inst, const char *name) {
    if (inst->run == emu_load || inst->run == emu_store || inst->run == emu_atom_inc)
        read_access(inst, name);
    if (inst->run == emu_compare_int || inst->run == emu_set_float) {
        const char *at = name;
        next_piece(&at);
        inst->test = test_of(next_piece(&at));
        inst->from = inst->type; /* set: the type of the compared values */
    }
    if (inst->run == emu_convert || inst->run == emu_convert_2) {
        EmuType to = inst->from;
        inst->from = inst->type;
        inst->type = to;
        const char *rounds = strstr(name, ".r");
        inst->test = rounds ? (uint8_t)rounds[2] : 'n';
    }
    if (inst->run == emu_mma) {
        inst->test = number_behind(name, 'm') == 16 ? 'w' : 0;
        inst->type = type_number(name, 1); /* of the left operand; `from`: of the right one */
        inst->from = type_number(name, 2);
    }
    if (inst->run == emu_ldmatrix) inst->test = has_piece(name, "trans") ? 't' : 0;
    if (inst->run == emu_wgmma) {
        inst->width = (uint8_t)(number_behind(name, 'n') / 8);
        inst->type = type_number(name, 1);
        inst->from = type_number(name, 2);
    }
    if (inst->run == emu_tensor_copy) {
        inst->width = (uint8_t)(name[strlen("cp.async.bulk.tensor.")] - '0');
        inst->test = strstr(name, ".multicast") ? 'm' : strstr(name, ".im2col") ? 'w' : 0;
    }
    choose_by_type(inst);
}

static bool is_word(Piece piece) {
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (is_piece(piece, words[i])) return true;
    return false;
}

/* Whether all parts after the beginning are known; an ignored part might change the meaning. */
static bool are_known(const EmuInst *inst, const char *rest) {
    while (*rest) {
        Piece piece = next_piece(&rest);
        bool is_shape = inst->run == emu_wgmma && piece.n > 1 && piece.at[0] == 'm';
        if (piece.n && !is_shape && type_of(piece) == EMU_NONE && !test_of(piece) &&
            !is_word(piece))
            return false;
    }
    return true;
}

bool emu_find_op(EmuInst *inst, const char *name) {
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t n = strlen(names[i].begin);
        if (strncmp(name, names[i].begin, n) != 0 || (name[n] && name[n] != '.')) continue;
        inst->run = names[i].run;
        inst->kind = names[i].kind;
        inst->test = names[i].test;
        read_types(inst, name);
        read_rest(inst, name);
        return are_known(inst, name + n);
    }
    return false;
}
