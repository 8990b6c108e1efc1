/* The declarations that the files of this folder share: types, values in registers, and the text of
 * one instruction.
 *
 * PTX has unlimited virtual registers, and ptxas selects instructions, schedules and allocates. So
 * one LLVM instruction becomes one PTX instruction, or a few, and a value is a list of parts:
 * registers or immediates. */
#ifndef FUSEC_CODEGEN_PTX_PTX_H
#define FUSEC_CODEGEN_PTX_PTX_H

#include "base/str.h"

#include <llvm-c/Core.h>

/* Register classes: predicates, and all other registers by their width. */
typedef enum PtxClass { PTX_PRED, PTX_16, PTX_32, PTX_64, PTX_N_CLASSES } PtxClass;

typedef struct PtxClassInfo {
    const char *type;   /* ".b32" */
    const char *prefix; /* of a register's name: "%r" */
    uint32_t bits;
} PtxClassInfo;
const PtxClassInfo *ptx_class(PtxClass class);

typedef enum PtxElement {
#define PTX_TYPE(symbol, register_class, bits, suffix) PTX_##symbol,
#include "codegen/ptx/types.def"
    PTX_N_ELEMENTS
} PtxElement;

typedef struct PtxElementInfo {
    PtxClass class;
    uint32_t bits;
    const char *suffix; /* for floats; NULL: an integer type */
} PtxElementInfo;
const PtxElementInfo *ptx_element(PtxElement element);

/* A scalar or vector type. A value of it has one part per lane. A vector of an even number of
 * 16-bit floats is packed instead: one 32-bit register holds two lanes. */
typedef struct PtxType {
    PtxElement element;
    uint32_t n_lanes, n_parts;
    bool is_packed;
} PtxType;

typedef enum PtxPartKind {
    PTX_NOTHING,  /* an undefined value */
    PTX_NUMBER,   /* an immediate: the bits in `number`, sign-extended */
    PTX_REGISTER, /* register `index`; for an address, plus `number` bytes */
    PTX_SYMBOL,   /* the address of `symbol` plus `number` bytes */
    PTX_HALF,     /* a packed pair with one defined lane, lane `number`, in 16-bit register
                   * `index` */
    PTX_VARIABLE  /* the address of an alloca, which lives in register `index` */
} PtxPartKind;

typedef struct PtxPart {
    PtxPartKind kind;
    PtxClass class;
    bool is_float; /* whether an immediate is printed as a float */
    uint32_t index;
    int64_t number;
    const char *symbol;
} PtxPart;

typedef struct PtxMapEntry {
    const void *key;
    void *value;
} PtxMapEntry;

typedef struct PtxMap {
    PtxMapEntry *entries;
    uint32_t n, capacity; /* a power of two */
} PtxMap;

typedef struct PtxBlock {
    LLVMBasicBlockRef block;
    uint32_t label; /* its position in the text: earlier blocks have smaller labels */
    const struct PtxBlock *dominator; /* the immediate dominator; NULL: the entry block */
} PtxBlock;

/* The state while one function is written. */
typedef struct Ptx {
    Arena *arena;
    Text body;
    LLVMModuleRef module;
    LLVMValueRef function;
    const char *name;
    unsigned invariant_kind; /* LLVM's id of invariant.load */
    uint32_t n_registers[PTX_N_CLASSES];
    uint32_t n_labels;
    PtxMap parts;         /* PtxPart arrays of instructions and parameters */
    PtxMap blocks;        /* PtxBlock by LLVMBasicBlockRef */
    PtxMap shared;        /* the arrays in shared memory that the function uses */
    PtxMap same;          /* computed values by hash: see cse.c */
    PtxMap first;         /* for an eliminated instruction, the first equal one */
    PtxMap called;        /* rows of calls.def by intrinsic */
    const PtxBlock *here; /* the block that is written */
} Ptx;

void *ptx_map_find(const PtxMap *map, const void *key); /* NULL: no entry */
void ptx_map_add(Arena *arena, PtxMap *map, const void *key, void *value);
/* An empty map with room for `n` entries. */
PtxMap ptx_map_for(Arena *arena, uint32_t n);

/* Types and values. */
PtxType ptx_type(const Ptx *ptx, LLVMTypeRef type);
PtxType ptx_type_of(const Ptx *ptx, LLVMValueRef value);
/* The unpacked form of `type`: one part for each lane. */
PtxType ptx_unpacked(PtxType type);
/* Of one part: its register class, and its bits in memory. */
PtxClass ptx_part_class(PtxType type);
uint32_t ptx_part_bits(PtxType type);
PtxPart ptx_number(PtxClass class, int64_t number);
PtxPart ptx_new(Ptx *ptx, PtxClass class);
/* New registers for a value of `type`. */
PtxPart *ptx_new_parts(Ptx *ptx, PtxType type);
PtxPart *ptx_parts(Ptx *ptx, LLVMValueRef value);
void ptx_set_parts(Ptx *ptx, LLVMValueRef value, PtxPart *parts);
/* Splits a value into one part per lane, and joins lanes to a value. */
PtxPart *ptx_lanes(Ptx *ptx, PtxType type, const PtxPart *parts);
PtxPart ptx_lane(Ptx *ptx, PtxType type, const PtxPart *parts, uint32_t lane);
PtxPart *ptx_join_lanes(Ptx *ptx, PtxType type, const PtxPart *lanes);

/* Bytes between neighbouring elements of a GEP's source element type. */
int64_t ptx_element_bytes(const Ptx *ptx, LLVMValueRef gep);

/* Text. In an instruction text, `$2` is operand 2: a register, an immediate, or inside brackets an
 * address. `$r2` forces operand 2 into a register. #s, #u, #b and #f expand to the type suffix of
 * `type`: .s32, .f16x2. The text inside ?5<..> is kept only where operand 5 is an immediate other
 * than 0. */
void ptx_put(Ptx *ptx, const PtxType *type, const char *text, const PtxPart *operands);
/* ptx_put with one new register of class `class` as the result, operand 0. `from` has the other `n`
 * operands. */
PtxPart ptx_do(Ptx *ptx, const PtxType *type, const char *text, PtxClass class, const PtxPart *from,
               uint32_t n);
/* ptx_plain: the part as a register without offset, or as an immediate. ptx_register: the part as a
 * register. */
PtxPart ptx_plain(Ptx *ptx, PtxPart part);
PtxPart ptx_register(Ptx *ptx, PtxPart part);
void ptx_move(Ptx *ptx, PtxPart to, PtxPart from);

/* One instruction for each part of the result. Operand k + 1 of part i is from[k][i]. */
void ptx_put_each(Ptx *ptx, LLVMValueRef instruction, const char *text, PtxType type,
                  PtxPart *const *from, uint32_t n);

/* The bits of an immediate of `type`, zero-extended. */
uint64_t ptx_bits(PtxPart part, PtxType type);
/* x op y for one part. It folds identities and powers of two. */
PtxPart ptx_operate(Ptx *ptx, LLVMOpcode op, PtxType type, PtxPart x, PtxPart y);
/* Four byte lanes as one word. */
PtxPart ptx_word_of_bytes(Ptx *ptx, const PtxPart *bytes);
bool ptx_put_division(Ptx *ptx, LLVMValueRef instruction);
/* Whether a dominating block has computed an equal value; then the instruction's parts are those of
 * that value. is_free: the instruction emits no text of its own, so the equal one needs no
 * parts. */
bool ptx_is_same(Ptx *ptx, LLVMValueRef instruction, bool is_free);
/* Whether the results of an intrinsic depend on its arguments alone. */
bool ptx_is_pure_call(Ptx *ptx, LLVMValueRef call);
/* Each function writes one kind of instruction and returns false for any other kind. */
bool ptx_put_arithmetic(Ptx *ptx, LLVMValueRef instruction);
bool ptx_put_cast(Ptx *ptx, LLVMValueRef instruction);
bool ptx_put_lanes(Ptx *ptx, LLVMValueRef instruction);
bool ptx_put_memory(Ptx *ptx, LLVMValueRef instruction);
bool ptx_put_call(Ptx *ptx, LLVMValueRef instruction);
void ptx_put_params(Ptx *ptx, Text *head);

/* Ends the compilation with an internal error that prints `value`. */
#if defined(__GNUC__)
__attribute__((noreturn))
#endif
void ptx_ice(const Ptx *ptx, const char *what, LLVMValueRef value);

#endif
