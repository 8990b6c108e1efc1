/* Addresses, loads, stores and parameters. See ptx.h. An address is a register or a symbol plus a
 * constant number of bytes. The load or store encodes the constant. */
#include "codegen/ptx/ptx.h"

#include <string.h>

enum { MAX_ACCESS_BYTES = 16, MAX_ACCESS_PARTS = 4, MAX_SPACE = 7 };

static const char *space_name(const Ptx *ptx, LLVMValueRef pointer) {
    static const char *const names[] = {
        [0] = "", [1] = ".global", [3] = ".shared", [MAX_SPACE] = ".shared::cluster"};
    unsigned space = LLVMGetPointerAddressSpace(LLVMTypeOf(pointer));
    if (space > MAX_SPACE || !names[space]) ptx_ice(ptx, "the address space of ", pointer);
    return names[space];
}

/* Addresses. */

int64_t ptx_element_bytes(const Ptx *ptx, LLVMValueRef gep) {
    LLVMTypeRef element = LLVMGetGEPSourceElementType(gep);
    if (LLVMGetTypeKind(element) == LLVMIntegerTypeKind) return LLVMGetIntTypeWidth(element) / 8;
    PtxType type = ptx_type(ptx, element);
    return (int64_t)type.n_lanes * ptx_element(type.element)->bits / 8;
}

/* index * bytes, in the width of an address. */
static PtxPart scaled_index(Ptx *ptx, LLVMValueRef index, int64_t bytes, bool is_wide) {
    PtxPart number = ptx_number(PTX_32, bytes);
    LLVMOpcode op = LLVMIsAInstruction(index) ? LLVMGetInstructionOpcode(index) : LLVMRet;
    bool is_extended = op == LLVMSExt || op == LLVMZExt;
    LLVMValueRef narrow = is_extended ? LLVMGetOperand(index, 0) : index;
    bool is_narrow = ptx_type_of(ptx, narrow).element == PTX_I32;
    if (is_wide && is_narrow) {
        const char *text =
            op == LLVMZExt ? "mul.wide.u32 $0, $r1, $2;" : "mul.wide.s32 $0, $r1, $2;";
        return ptx_do(ptx, NULL, text, PTX_64, (PtxPart[]){*ptx_parts(ptx, narrow), number}, 2);
    }
    PtxPart part = *ptx_parts(ptx, index);
    if (!is_wide && part.class == PTX_64)
        part = ptx_do(ptx, NULL, "cvt.u32.u64 $0, $r1;", PTX_32, &part, 1);
    if (bytes == 1) return part;
    const char *text = is_wide ? "mul.lo.s64 $0, $1, $2;" : "mul.lo.s32 $0, $1, $2;";
    number.class = part.class;
    return ptx_do(ptx, NULL, text, part.class, (PtxPart[]){part, number}, 2);
}

static void put_address(Ptx *ptx, LLVMValueRef gep) {
    if (LLVMGetNumOperands(gep) != 2) ptx_ice(ptx, "", gep);
    LLVMValueRef index = LLVMGetOperand(gep, 1);
    int64_t bytes = ptx_element_bytes(ptx, gep);
    PtxPart *address = arena_array(ptx->arena, PtxPart, 1);
    *address = *ptx_parts(ptx, LLVMGetOperand(gep, 0));
    if (LLVMIsAConstantInt(index)) {
        address->number += LLVMConstIntGetSExtValue(index) * bytes;
    } else {
        bool is_wide = address->class == PTX_64;
        int64_t more = address->number;
        address->number = 0;
        PtxPart both[2] = {*address, scaled_index(ptx, index, bytes, is_wide)};
        const char *text = is_wide ? "add.s64 $0, $1, $2;" : "add.s32 $0, $1, $2;";
        *address = ptx_do(ptx, NULL, text, address->class, both, 2);
        address->number = more;
    }
    ptx_set_parts(ptx, gep, address);
}

/* Accesses. */

typedef struct Access {
    const char *name; /* "ld.global", "st.shared": the instruction up to the vector length */
    uint32_t align;
    PtxPart address;
} Access;

/* One access to `n` adjacent parts: ld.global.v4.b32 {$0, $1, $2, $3}, [$4]. */
static void put_access(Ptx *ptx, const Access *access, uint32_t bits, PtxPart *parts, uint32_t n,
                       int64_t offset, bool is_load) {
    static const char *const lists[] = {[1] = "$0", [2] = "{$0, $1}", [4] = "{$0, $1, $2, $3}"};
    PtxPart operands[MAX_ACCESS_PARTS + 1];
    for (uint32_t i = 0; i < n; i++) {
        operands[i] = parts[i];
        operands[i].is_float = false; /* PTX wants one kind of immediate in a list */
    }
    operands[n] = access->address;
    operands[n].number += offset;
    const char *vector = n > 1 ? str_format(ptx->arena, ".v%u", n) : "";
    const char *text = is_load ? str_format(ptx->arena, "%s%s.b%u %s, [$%u];", access->name, vector,
                                            bits, lists[n], n)
                               : str_format(ptx->arena, "%s%s.b%u [$%u], %s;", access->name, vector,
                                            bits, n, lists[n]);
    ptx_put(ptx, NULL, text, operands);
}

/* Emits the fewest accesses that the alignment allows. */
static void put_accesses(Ptx *ptx, const Access *access, uint32_t bits, PtxPart *parts, uint32_t n,
                         bool is_load) {
    uint32_t bytes = bits / 8, width = MAX_ACCESS_PARTS;
    if (access->align < bytes)
        ice(ptx->arena, "%s: %u bytes at %u", ptx->name, bytes, access->align);
    while (width * bytes > MAX_ACCESS_BYTES || width * bytes > access->align) width /= 2;
    for (uint32_t i = 0; i < n; i += width) {
        while (i + width > n) width /= 2;
        put_access(ptx, access, bits, parts + i, width, (int64_t)i * bytes, is_load);
    }
}

static Access access_of(Ptx *ptx, LLVMValueRef instruction, LLVMValueRef pointer,
                        const char *verb) {
    bool is_constant = LLVMGetMetadata(instruction, ptx->invariant_kind) != NULL;
    const char *space = space_name(ptx, pointer);
    bool is_global = strcmp(space, ".global") == 0;
    return (Access){.name = str_format(ptx->arena, "%s%s%s%s", verb,
                                       LLVMGetVolatile(instruction) ? ".volatile" : "", space,
                                       is_constant && is_global ? ".nc" : ""),
                    .align = LLVMGetAlignment(instruction),
                    .address = *ptx_parts(ptx, pointer)};
}

/* Whether an i8 vector moves as 32-bit words, four lanes at a time. */
static bool is_words(PtxType type, const Access *access) {
    return type.element == PTX_I8 && type.n_lanes % 4 == 0 && access->align % 4 == 0;
}

static bool is_split(PtxType type, const Access *access) {
    return type.is_packed && access->align < 4;
}

static void put_load(Ptx *ptx, LLVMValueRef load) {
    Access access = access_of(ptx, load, LLVMGetOperand(load, 0), "ld");
    PtxType type = ptx_type_of(ptx, load);
    PtxType own = is_split(type, &access) ? ptx_unpacked(type) : type;
    PtxPart *parts = ptx_new_parts(ptx, own);
    if (is_words(type, &access)) {
        PtxType words = {
            .element = PTX_I32, .n_lanes = type.n_lanes / 4, .n_parts = type.n_lanes / 4};
        PtxPart *word = ptx_new_parts(ptx, words);
        put_accesses(ptx, &access, 32, word, words.n_parts, true);
        for (uint32_t i = 0; i < type.n_lanes; i++)
            ptx_put(ptx, NULL, "bfe.u32 $0, $1, $2, 8;",
                    (PtxPart[]){parts[i], word[i / 4], ptx_number(PTX_32, i % 4 * 8)});
    } else {
        put_accesses(ptx, &access, ptx_part_bits(own), parts, own.n_parts, true);
    }
    ptx_set_parts(ptx, load, is_split(type, &access) ? ptx_join_lanes(ptx, type, parts) : parts);
}

PtxPart ptx_word_of_bytes(Ptx *ptx, const PtxPart *bytes) {
    return ptx_do(ptx, NULL,
                  "{ .reg .b32 x, y; prmt.b32 x, $1, $2, 0x3340; prmt.b32 y, $3, $4, 0x3340; "
                  "prmt.b32 $0, x, y, 0x5410; }",
                  PTX_32, bytes, 4);
}

static void put_store(Ptx *ptx, LLVMValueRef store) {
    Access access = access_of(ptx, store, LLVMGetOperand(store, 1), "st");
    LLVMValueRef value = LLVMGetOperand(store, 0);
    PtxType type = ptx_type_of(ptx, value);
    PtxPart *parts = ptx_parts(ptx, value);
    if (is_split(type, &access)) {
        parts = ptx_lanes(ptx, type, parts);
        type = ptx_unpacked(type);
    }
    uint32_t bits = ptx_part_bits(type), n = type.n_parts;
    if (is_words(type, &access)) {
        PtxPart *words = arena_array(ptx->arena, PtxPart, n / 4);
        for (uint32_t i = 0; i < n / 4; i++)
            words[i] = ptx_word_of_bytes(ptx, parts + 4 * (size_t)i);
        parts = words;
        n /= 4;
        bits = 32;
    }
    put_accesses(ptx, &access, bits, parts, n, false);
}

/* Variables. A variable of one thread (an alloca) is a register. Loads, stores and inline assembly
 * use the register itself; no other instruction takes its address. */

static PtxPart *variable_of(Ptx *ptx, LLVMValueRef pointer) {
    if (!LLVMIsAAllocaInst(pointer)) return NULL;
    PtxPart *part = arena_copy(ptx->arena, ptx_parts(ptx, pointer), sizeof *part);
    part->kind = PTX_REGISTER;
    return part;
}

static void put_variable(Ptx *ptx, LLVMValueRef variable) {
    PtxType type = ptx_type(ptx, LLVMGetAllocatedType(variable));
    if (type.n_parts != 1) ptx_ice(ptx, "", variable);
    PtxPart *part = ptx_new_parts(ptx, type);
    part->kind = PTX_VARIABLE;
    ptx_set_parts(ptx, variable, part);
}

static bool put_variable_access(Ptx *ptx, LLVMValueRef access) {
    bool is_load = LLVMIsALoadInst(access) != NULL;
    PtxPart *variable = variable_of(ptx, LLVMGetOperand(access, is_load ? 0 : 1));
    if (!variable) return false;
    PtxType type = ptx_type_of(ptx, is_load ? access : LLVMGetOperand(access, 0));
    if (is_load) {
        PtxPart *value = ptx_new_parts(ptx, type);
        ptx_move(ptx, *value, *variable);
        ptx_set_parts(ptx, access, value);
    } else {
        ptx_move(ptx, *variable, *ptx_parts(ptx, LLVMGetOperand(access, 0)));
    }
    return true;
}

bool ptx_put_memory(Ptx *ptx, LLVMValueRef instruction) {
    LLVMOpcode op = LLVMGetInstructionOpcode(instruction);
    if (op == LLVMGetElementPtr)
        put_address(ptx, instruction);
    else if (op == LLVMAlloca)
        put_variable(ptx, instruction);
    else if ((op == LLVMLoad || op == LLVMStore) && put_variable_access(ptx, instruction))
        return true;
    else if (op == LLVMLoad)
        put_load(ptx, instruction);
    else if (op == LLVMStore)
        put_store(ptx, instruction);
    else
        return false;
    return true;
}

/* Parameters. */

static unsigned attribute_kind(const char *name) {
    return LLVMGetEnumAttributeKindForName(name, strlen(name));
}

static void put_map_param(Ptx *ptx, Text *head, uint32_t i) {
    static const char text[] = "\t.param .align %u .b8 %s_param_%u[%u]";
    LLVMAttributeRef map =
        LLVMGetEnumAttributeAtIndex(ptx->function, i + 1, attribute_kind("byval"));
    LLVMAttributeRef align =
        LLVMGetEnumAttributeAtIndex(ptx->function, i + 1, attribute_kind("align"));
    text_printf(head, text, (unsigned)LLVMGetEnumAttributeValue(align), ptx->name, i,
                (unsigned)LLVMGetArrayLength2(LLVMGetTypeAttributeValue(map)));
}

/* A tensor map stays in parameter space, and the value of the parameter is its address there. */
void ptx_put_params(Ptx *ptx, Text *head) {
    uint32_t n = LLVMCountParams(ptx->function);
    for (uint32_t i = 0; i < n; i++) {
        LLVMValueRef param = LLVMGetParam(ptx->function, i);
        PtxType type = ptx_type_of(ptx, param);
        bool is_map =
            LLVMGetEnumAttributeAtIndex(ptx->function, i + 1, attribute_kind("byval")) != NULL;
        bool is_pointer = LLVMGetTypeKind(LLVMTypeOf(param)) == LLVMPointerTypeKind;
        if (is_map)
            put_map_param(ptx, head, i);
        else
            text_printf(head, "\t.param .u%u %s%s_param_%u", ptx_element(type.element)->bits,
                        is_pointer ? ".ptr .global .align 1 " : "", ptx->name, i);
        text_puts(head, i + 1 < n ? ",\n" : "\n");
        if (!LLVMGetFirstUse(param)) continue;
        PtxPart *part = ptx_new_parts(ptx, type);
        const char *text =
            is_map ? str_format(ptx->arena,
                                "{ .reg .b64 t; mov.b64 t, %s_param_%u; cvta.param.u64 $0, t; }",
                                ptx->name, i)
                   : str_format(ptx->arena, "ld.param.b%u $0, [%s_param_%u];",
                                ptx_element(type.element)->bits, ptx->name, i);
        ptx_put(ptx, NULL, text, part);
        ptx_set_parts(ptx, param, part);
    }
}
