/* Types, and values as lists of parts. See ptx.h. */
#include "codegen/ptx/ptx.h"

const PtxElementInfo *ptx_element(PtxElement element) {
    static const PtxElementInfo infos[] = {
#define PTX_TYPE(symbol, register_class, n_bits, float_suffix) \
    {.class = register_class, .bits = n_bits, .suffix = float_suffix},
#include "codegen/ptx/types.def"
    };
    return &infos[element];
}

const PtxClassInfo *ptx_class(PtxClass class) {
    static const PtxClassInfo infos[] = {[PTX_PRED] = {".pred", "%p", 1},
                                         [PTX_16] = {".b16", "%rs", 16},
                                         [PTX_32] = {".b32", "%r", 32},
                                         [PTX_64] = {".b64", "%rd", 64}};
    return &infos[class];
}

void ptx_ice(const Ptx *ptx, const char *what, LLVMValueRef value) {
    char *text = LLVMPrintValueToString(value);
    const char *copy = str_format(ptx->arena, "%s", text);
    LLVMDisposeMessage(text);
    ice(ptx->arena, "%s: the PTX writer does not know %s%s", ptx->name, what, copy);
}

/* Maps by address. No result depends on the order of addresses. */

static PtxMapEntry *map_slot(const PtxMap *map, const void *key) {
    uint64_t hash = (uint64_t)(uintptr_t)key * UINT64_C(0x9e3779b97f4a7c15);
    uint32_t slot = (uint32_t)(hash >> 32) & (map->capacity - 1);
    while (map->entries[slot].key && map->entries[slot].key != key)
        slot = (slot + 1) & (map->capacity - 1);
    return &map->entries[slot];
}

void *ptx_map_find(const PtxMap *map, const void *key) {
    return map->capacity ? map_slot(map, key)->value : NULL;
}

PtxMap ptx_map_for(Arena *arena, uint32_t n) {
    PtxMap map = {.capacity = 256};
    while (map.capacity / 2 < n) map.capacity *= 2;
    map.entries = arena_array(arena, PtxMapEntry, map.capacity);
    return map;
}

static void map_grow(Arena *arena, PtxMap *map) {
    PtxMap old = *map;
    *map = ptx_map_for(arena, old.capacity);
    map->n = old.n;
    for (uint32_t i = 0; i < old.capacity; i++)
        if (old.entries[i].key) *map_slot(map, old.entries[i].key) = old.entries[i];
}

void ptx_map_add(Arena *arena, PtxMap *map, const void *key, void *value) {
    if (map->n * 2 >= map->capacity) map_grow(arena, map);
    PtxMapEntry *entry = map_slot(map, key);
    map->n += !entry->key;
    *entry = (PtxMapEntry){key, value};
}

/* Types. */

enum { GENERIC_SPACE = 0, GLOBAL_SPACE = 1 };

/* A pointer into shared memory, of the block or the cluster, has 32 bits. */
static PtxElement pointer_element(LLVMTypeRef type) {
    unsigned space = LLVMGetPointerAddressSpace(type);
    return space == GENERIC_SPACE || space == GLOBAL_SPACE ? PTX_I64 : PTX_I32;
}

static PtxElement integer_element(const Ptx *ptx, LLVMTypeRef type) {
    switch (LLVMGetIntTypeWidth(type)) {
    case 1:
        return PTX_I1;
    case 8:
        return PTX_I8;
    case 16:
        return PTX_I16;
    case 32:
        return PTX_I32;
    case 64:
        return PTX_I64;
    default:
        ice(ptx->arena, "%s: the PTX writer does not know i%u", ptx->name,
            LLVMGetIntTypeWidth(type));
    }
}

static PtxElement scalar_element(const Ptx *ptx, LLVMTypeRef type) {
    LLVMTypeKind kind = LLVMGetTypeKind(type);
    if (kind == LLVMIntegerTypeKind) return integer_element(ptx, type);
    if (kind == LLVMPointerTypeKind) return pointer_element(type);
    if (kind == LLVMFloatTypeKind) return PTX_F32;
    if (kind == LLVMDoubleTypeKind) return PTX_F64;
    if (kind == LLVMHalfTypeKind) return PTX_F16;
    if (kind == LLVMBFloatTypeKind) return PTX_BF16;
    ice(ptx->arena, "%s: the PTX writer does not know type %d", ptx->name, (int)kind);
}

PtxType ptx_type(const Ptx *ptx, LLVMTypeRef type) {
    bool is_vector = LLVMGetTypeKind(type) == LLVMVectorTypeKind;
    uint32_t n = is_vector ? LLVMGetVectorSize(type) : 1;
    PtxElement element = scalar_element(ptx, is_vector ? LLVMGetElementType(type) : type);
    bool is_packed = (element == PTX_F16 || element == PTX_BF16) && n % 2 == 0;
    return (PtxType){
        .element = element, .n_lanes = n, .n_parts = is_packed ? n / 2 : n, .is_packed = is_packed};
}

PtxType ptx_type_of(const Ptx *ptx, LLVMValueRef value) {
    return ptx_type(ptx, LLVMTypeOf(value));
}

PtxType ptx_unpacked(PtxType type) {
    return (PtxType){.element = type.element, .n_lanes = type.n_lanes, .n_parts = type.n_lanes};
}

PtxClass ptx_part_class(PtxType type) {
    return type.is_packed ? PTX_32 : ptx_element(type.element)->class;
}

uint32_t ptx_part_bits(PtxType type) {
    return type.is_packed ? 32 : ptx_element(type.element)->bits;
}

/* Values. */

PtxPart ptx_number(PtxClass class, int64_t number) {
    return (PtxPart){.kind = PTX_NUMBER, .class = class, .number = number};
}

PtxPart ptx_new(Ptx *ptx, PtxClass class) {
    return (PtxPart){.kind = PTX_REGISTER, .class = class, .index = ++ptx->n_registers[class]};
}

PtxPart *ptx_new_parts(Ptx *ptx, PtxType type) {
    PtxPart *parts = arena_array(ptx->arena, PtxPart, type.n_parts);
    for (uint32_t i = 0; i < type.n_parts; i++) parts[i] = ptx_new(ptx, ptx_part_class(type));
    return parts;
}

void ptx_set_parts(Ptx *ptx, LLVMValueRef value, PtxPart *parts) {
    ptx_map_add(ptx->arena, &ptx->parts, value, parts);
}

static PtxPart constant_lane(Ptx *ptx, PtxElement element, LLVMValueRef constant) {
    const PtxElementInfo *info = ptx_element(element);
    PtxPart part = {.kind = PTX_NUMBER, .class = info->class, .is_float = info->suffix != NULL};
    if (LLVMIsUndef(constant)) return (PtxPart){.kind = PTX_NOTHING, .class = info->class};
    if (LLVMIsNull(constant)) return part;
    if (info->suffix) {
        LLVMContextRef context = LLVMGetModuleContext(ptx->module);
        constant = LLVMConstBitCast(constant, LLVMIntTypeInContext(context, info->bits));
    }
    if (!LLVMIsAConstantInt(constant)) ptx_ice(ptx, "the constant ", constant);
    part.number = LLVMConstIntGetSExtValue(constant);
    if (info->bits < 32) part.number &= (1 << info->bits) - 1;
    return part;
}

/* A constant address: an array plus a number of bytes. */
static PtxPart symbol_part(Ptx *ptx, LLVMValueRef constant) {
    if (LLVMIsAGlobalVariable(constant)) {
        size_t n;
        ptx_map_add(ptx->arena, &ptx->shared, constant, constant);
        return (PtxPart){
            .kind = PTX_SYMBOL, .class = PTX_32, .symbol = LLVMGetValueName2(constant, &n)};
    }
    if (!LLVMIsAConstantExpr(constant)) ptx_ice(ptx, "the constant ", constant);
    LLVMOpcode opcode = LLVMGetConstOpcode(constant);
    PtxPart part = symbol_part(ptx, LLVMGetOperand(constant, 0));
    bool is_binary = opcode == LLVMGetElementPtr || opcode == LLVMAdd;
    if (is_binary && LLVMGetNumOperands(constant) == 2) {
        LLVMValueRef more = LLVMGetOperand(constant, 1);
        int64_t scale = opcode == LLVMAdd ? 1 : ptx_element_bytes(ptx, constant);
        if (!LLVMIsAConstantInt(more)) ptx_ice(ptx, "the constant ", constant);
        part.number += LLVMConstIntGetSExtValue(more) * scale;
        return part;
    }
    if (opcode == LLVMPtrToInt || opcode == LLVMAddrSpaceCast)
        if (ptx_type_of(ptx, constant).element == PTX_I32) return part;
    ptx_ice(ptx, "the constant ", constant);
}

static PtxPart *constant_parts(Ptx *ptx, LLVMValueRef constant) {
    PtxType type = ptx_type_of(ptx, constant);
    PtxPart *lanes = arena_array(ptx->arena, PtxPart, type.n_lanes);
    bool is_vector = LLVMGetTypeKind(LLVMTypeOf(constant)) == LLVMVectorTypeKind;
    if (LLVMIsAGlobalVariable(constant) || LLVMIsAConstantExpr(constant)) {
        lanes[0] = symbol_part(ptx, constant);
        return lanes;
    }
    for (uint32_t i = 0; i < type.n_lanes; i++) {
        LLVMValueRef lane = is_vector ? LLVMGetAggregateElement(constant, i) : constant;
        lanes[i] = constant_lane(ptx, type.element, lane);
    }
    return type.is_packed ? ptx_join_lanes(ptx, type, lanes) : lanes;
}

/* A back edge may read a phi before its block is written. Every other value is defined before its
 * uses. */
PtxPart *ptx_parts(Ptx *ptx, LLVMValueRef value) {
    PtxPart *parts = ptx_map_find(&ptx->parts, value);
    if (parts) return parts;
    if (LLVMIsConstant(value))
        parts = constant_parts(ptx, value);
    else if (LLVMIsAPHINode(value))
        parts = ptx_new_parts(ptx, ptx_type_of(ptx, value));
    else
        ptx_ice(ptx, "yet ", value);
    ptx_set_parts(ptx, value, parts);
    return parts;
}

/* Lanes. */

static PtxPart half_of(PtxPart pair, uint32_t lane) {
    if (pair.kind == PTX_NUMBER)
        return (PtxPart){.kind = PTX_NUMBER,
                         .class = PTX_16,
                         .is_float = true,
                         .number = pair.number >> (lane * 16) & 0xffff};
    bool is_there = pair.kind == PTX_HALF && pair.number == lane;
    return (PtxPart){
        .kind = is_there ? PTX_REGISTER : PTX_NOTHING, .class = PTX_16, .index = pair.index};
}

static void unpack(Ptx *ptx, PtxPart pair, PtxPart halves[2]) {
    if (pair.kind != PTX_REGISTER) {
        for (uint32_t i = 0; i < 2; i++) halves[i] = half_of(pair, i);
        return;
    }
    halves[0] = ptx_new(ptx, PTX_16);
    halves[1] = ptx_new(ptx, PTX_16);
    ptx_put(ptx, NULL, "mov.b32 {$0, $1}, $2;", (PtxPart[]){halves[0], halves[1], pair});
}

PtxPart ptx_lane(Ptx *ptx, PtxType type, const PtxPart *parts, uint32_t lane) {
    if (!type.is_packed) return parts[lane];
    PtxPart halves[2];
    unpack(ptx, parts[lane / 2], halves);
    return halves[lane % 2];
}

PtxPart *ptx_lanes(Ptx *ptx, PtxType type, const PtxPart *parts) {
    PtxPart *lanes = arena_array(ptx->arena, PtxPart, type.n_lanes);
    for (uint32_t i = 0; i < type.n_parts; i++) {
        if (type.is_packed)
            unpack(ptx, parts[i], lanes + 2 * i);
        else
            lanes[i] = parts[i];
    }
    return lanes;
}

static PtxPart pack(Ptx *ptx, PtxPart low, PtxPart high) {
    if (low.kind == PTX_NOTHING && high.kind == PTX_NOTHING)
        return (PtxPart){.kind = PTX_NOTHING, .class = PTX_32};
    if (low.kind != PTX_REGISTER && high.kind != PTX_REGISTER)
        return ptx_number(PTX_32,
                          (int32_t)((uint32_t)high.number << 16 | (uint32_t)(low.number & 0xffff)));
    if (low.kind == PTX_NOTHING || high.kind == PTX_NOTHING) {
        bool is_high = low.kind == PTX_NOTHING;
        return (PtxPart){.kind = PTX_HALF,
                         .class = PTX_32,
                         .index = is_high ? high.index : low.index,
                         .number = is_high};
    }
    return ptx_do(ptx, NULL, "mov.b32 $0, {$r1, $r2};", PTX_32, (PtxPart[]){low, high}, 2);
}

PtxPart *ptx_join_lanes(Ptx *ptx, PtxType type, const PtxPart *lanes) {
    PtxPart *parts = arena_array(ptx->arena, PtxPart, type.n_parts);
    for (uint32_t i = 0; i < type.n_parts; i++)
        parts[i] = type.is_packed ? pack(ptx, lanes[2 * i], lanes[2 * i + 1]) : lanes[i];
    return parts;
}
