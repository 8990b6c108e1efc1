/* See part.h. A part that names a global is compared with none, since its constants may differ. */
#include "codegen/part/part.h"

#include "base/keytab.h"
#include "codegen/part/part_key.h"

#include <string.h>

struct PartTab {
    Arena *arena;
    KeyTab keys;
    Vec(const char *) names; /* by ids of keys - 1 */
    uint32_t n;              /* parts, also those without a key */
};

PartTab *parttab_new(Arena *arena) {
    PartTab *tab = arena_array(arena, PartTab, 1);
    tab->arena = arena;
    return tab;
}

static LLVMTypeRef part_type(const Part *part) {
    const Codegen *k = part->lower->k;
    LLVMTypeRef *types = arena_array(k->arena, LLVMTypeRef, part->n);
    for (uint32_t i = 0; i < part->n; i++) types[i] = LLVMTypeOf(part->values[i]);
    return LLVMFunctionType(k->void_type, types, part->n, 0);
}

Part part_begin(Lower *lower, Val **slots, uint32_t n) {
    Codegen *k = lower->k;
    Part part = {.lower = lower, .outer = *lower, .from = k_here(k)};
    part.slots = arena_array(k->arena, Val *, n);
    part.values = arena_array(k->arena, Val, n);
    for (uint32_t i = 0; i < n; i++) {
        if (!*slots[i]) continue;
        part.values[part.n] = *slots[i];
        part.slots[part.n++] = slots[i];
    }
    part.function = LLVMAddFunction(k->module, "part", part_type(&part));
    for (uint32_t i = 0; i < part.n; i++) *part.slots[i] = LLVMGetParam(part.function, i);
    lower->function = part.function;
    lower->entry = LLVMAppendBasicBlockInContext(k->context, part.function, "entry");
    lower->divisors.n = 0;
    lower->divisors.data = NULL;
    lower->dims = NULL;
    lower->n_dims = 0;
    part.body = LLVMAppendBasicBlockInContext(k->context, part.function, "body");
    k_goto(k, part.body);
    return part;
}

Part part_begin_kernel(Lower *lower) {
    uint32_t n_args = lower->kernel->args.n, n_given = kernel_n_given(lower->kernel), n = 0;
    Val **slots = arena_array(lower->k->arena, Val *, n_args + n_given + DIM_MAX_SYMBOLS + 2);
    for (uint32_t i = 0; i < n_args; i++) slots[n++] = &lower->pointers[i];
    for (uint32_t s = 0; s < DIM_MAX_SYMBOLS; s++) slots[n++] = &lower->symbols[s];
    for (uint32_t i = 0; i < n_given; i++) slots[n++] = &lower->given[i];
    slots[n++] = &lower->units_begin;
    slots[n++] = &lower->units_end;
    return part_begin(lower, slots, n);
}

/* The name of the part that is equal to this one; `own` if there was none. */
static const char *find_name(PartTab *tab, const Part *part, const char *own) {
    VecU32 key = {0};
    if (!part_key(part->lower->k, part->function, &key)) return own;
    uint32_t id = keytab_intern(tab->arena, &tab->keys, &key);
    if (id > tab->names.n) vec_push(tab->arena, &tab->names, own);
    return tab->names.data[id - 1];
}

/* Attributes of the caller's function hold for the part too. */
static void take_attributes(const Part *part) {
    LLVMAttributeIndex whole = (LLVMAttributeIndex)LLVMAttributeFunctionIndex;
    Arena *arena = part->lower->k->arena;
    uint32_t n = LLVMGetAttributeCountAtIndex(part->outer.function, whole);
    LLVMAttributeRef *attributes = arena_array(arena, LLVMAttributeRef, n);
    LLVMGetAttributesAtIndex(part->outer.function, whole, attributes);
    for (uint32_t i = 0; i < n; i++) LLVMAddAttributeAtIndex(part->function, whole, attributes[i]);
}

/* Keeps the function, unless there is an equal part already: then that is declared. */
static void keep_or_declare(Part *part, LLVMTypeRef type) {
    const Codegen *k = part->lower->k;
    PartTab *tab = k->parts;
    const char *own = str_format(tab->arena, "%s_part%u", k->symbol, tab->n);
    const char *name = find_name(tab, part, own);
    if (name != own) {
        LLVMDeleteFunction(part->function);
        part->function = LLVMGetNamedFunction(k->module, name);
        if (!part->function) part->function = LLVMAddFunction(k->module, name, type);
    } else {
        tab->n++;
        LLVMSetValueName2(part->function, name, strlen(name));
        take_attributes(part);
    }
    LLVMSetVisibility(part->function, LLVMHiddenVisibility);
}

void part_end(Part *part) {
    Lower *lower = part->lower;
    const Codegen *k = lower->k;
    LLVMTypeRef type = part_type(part);
    k_ret_void(k);
    k_goto(k, lower->entry);
    k_br(k, part->body);
    keep_or_declare(part, type);
    *lower = part->outer;
    for (uint32_t i = 0; i < part->n; i++) *part->slots[i] = part->values[i];
    k_goto(k, part->from);
    k_call(k, type, part->function, part->values, part->n);
}
