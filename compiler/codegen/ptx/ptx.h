/* What the files that write PTX share: types, values in registers, and one instruction's text.
 *
 * PTX has as many registers as one likes, and its assembler selects, schedules and allocates. So an
 * instruction of LLVM's IR is one of PTX, or a few; what it computes is kept as parts. */
#ifndef FUSEC_CODEGEN_PTX_PTX_H
#define FUSEC_CODEGEN_PTX_PTX_H

#include "base/str.h"

#include <llvm-c/Core.h>

/* Registers: predicates, and the others by their bits alone. */
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
    const char *suffix; /* of a float; NULL: an integer */
} PtxElementInfo;
const PtxElementInfo *ptx_element(PtxElement element);

/* A scalar or vector. Its value is a list of parts, one per lane; but floats of 16 bits in an even
 * number are packed, two lanes in a register of 32. */
typedef struct PtxType {
    PtxElement element;
    uint32_t n_lanes, n_parts;
    bool is_packed;
} PtxType;

typedef enum PtxPartKind {
    PTX_NOTHING,  /* undefined */
    PTX_NUMBER,   /* `number`: its bits, sign-extended */
    PTX_REGISTER, /* `index`, plus `number` of an address */
    PTX_SYMBOL,   /* the address of `symbol`, plus `number` */
    PTX_HALF,     /* a pair of which one lane, `number`, is defined: 16-bit register `index` */
    PTX_VARIABLE  /* the address of register `index`, which is set more than once */
} PtxPartKind;

typedef struct PtxPart {
    PtxPartKind kind;
    PtxClass class;
    bool is_float; /* how a number is written */
    uint32_t index;
    int64_t number;
    const char *symbol;
} PtxPart;

typedef struct PtxMap {
    const void **keys;
    void **values;
    uint32_t n, capacity; /* a power of two */
} PtxMap;

typedef struct PtxBlock {
    LLVMBasicBlockRef block;
    uint32_t label; /* its place in the text: those that come before have lower ones */
    const struct PtxBlock *dominator; /* the last block that all ways to it pass; NULL: the entry */
} PtxBlock;

/* One function being written. */
typedef struct Ptx {
    Arena *arena;
    Text body;
    LLVMModuleRef module;
    LLVMValueRef function;
    const char *name;
    unsigned invariant_kind; /* of metadata */
    uint32_t n_registers[PTX_N_CLASSES];
    uint32_t n_labels;
    PtxMap parts;  /* of instructions and parameters */
    PtxMap blocks; /* PtxBlock, by their LLVMBasicBlockRef */
    PtxMap shared; /* arrays that are declared */
    PtxMap same;   /* what has been computed, by what it is: see cse.c */
    PtxMap first;  /* of what is computed again, the first */
} Ptx;

void *ptx_map_find(const PtxMap *map, const void *key); /* NULL: not there */
void ptx_map_add(Arena *arena, PtxMap *map, const void *key, void *value);

/* Types and values. */
PtxType ptx_type(const Ptx *ptx, LLVMTypeRef type);
PtxType ptx_type_of(const Ptx *ptx, LLVMValueRef value);
/* The same, a part for each lane. */
PtxType ptx_unpacked(PtxType type);
/* Of one part: where it lies, and its bits in memory. */
PtxClass ptx_part_class(PtxType type);
uint32_t ptx_part_bits(PtxType type);
PtxPart ptx_number(PtxClass class, int64_t number);
PtxPart ptx_new(Ptx *ptx, PtxClass class);
/* What stands for `type`: registers of its own. */
PtxPart *ptx_new_parts(Ptx *ptx, PtxType type);
PtxPart *ptx_parts(Ptx *ptx, LLVMValueRef value);
void ptx_set_parts(Ptx *ptx, LLVMValueRef value, PtxPart *parts);
/* The lanes of a value, each in a part of its own, and back. */
PtxPart *ptx_lanes(Ptx *ptx, PtxType type, const PtxPart *parts);
PtxPart ptx_lane(Ptx *ptx, PtxType type, const PtxPart *parts, uint32_t lane);
PtxPart *ptx_join_lanes(Ptx *ptx, PtxType type, const PtxPart *lanes);

/* Bytes from one element to the next of what an address is counted in. */
int64_t ptx_element_bytes(const Ptx *ptx, LLVMValueRef gep);

/* Text. In an instruction `$2` is operand 2, a register, a number, or in brackets an address; `$r2`
 * is in a register for certain. #s, #u, #b and #f are types as wide as `type`: .s32, .f16x2. What
 * ?5<..> holds is for where operand 5 is a number other than 0. */
void ptx_put(Ptx *ptx, const PtxType *type, const char *text, const PtxPart *operands);
/* The same for one part: `n` operands, the result comes first. */
PtxPart ptx_do(Ptx *ptx, const PtxType *type, const char *text, PtxClass class, const PtxPart *from,
               uint32_t n);
/* A part as a plain register or number, or as a register. */
PtxPart ptx_plain(Ptx *ptx, PtxPart part);
PtxPart ptx_register(Ptx *ptx, PtxPart part);
void ptx_move(Ptx *ptx, PtxPart to, PtxPart from);

/* One instruction for each part of the result: operand k of part i is from[k][i]. */
void ptx_put_each(Ptx *ptx, LLVMValueRef instruction, const char *text, PtxType type,
                  PtxPart *const *from, uint32_t n);

/* The bits of a number. */
uint64_t ptx_bits(PtxPart part, PtxType type);
/* x op y, of one part. */
PtxPart ptx_operate(Ptx *ptx, LLVMOpcode op, PtxType type, PtxPart x, PtxPart y);
bool ptx_put_division(Ptx *ptx, LLVMValueRef instruction);
/* Whether a block that dominates the instruction's has computed the same: that is then its value.
 * is_free: it is never computed by itself. */
bool ptx_is_same(Ptx *ptx, LLVMValueRef instruction, bool is_free);
/* Whether an intrinsic's results hang on its arguments alone. */
bool ptx_is_pure_call(const Ptx *ptx, LLVMValueRef call);
/* Instructions by kind; false where it is none of theirs. */
bool ptx_put_arithmetic(Ptx *ptx, LLVMValueRef instruction);
bool ptx_put_cast(Ptx *ptx, LLVMValueRef instruction);
bool ptx_put_lanes(Ptx *ptx, LLVMValueRef instruction);
bool ptx_put_memory(Ptx *ptx, LLVMValueRef instruction);
bool ptx_put_call(Ptx *ptx, LLVMValueRef instruction);
void ptx_put_params(Ptx *ptx, Text *head);

/* Leaves with an internal error that prints the value. */
#if defined(__GNUC__)
__attribute__((noreturn))
#endif
void ptx_ice(const Ptx *ptx, const char *what, LLVMValueRef value);

#endif
