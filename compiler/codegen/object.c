/* See object.h. Sections of the same name and flags become one; each part is aligned in it. Local
 * symbols come before the others, as ELF asks. Names of sections and of symbols share a table. */
#include "codegen/object.h"

#include <elf.h>
#include <string.h>

/* A section of the result. */
typedef struct Section {
    Elf64_Shdr head; /* sh_name, sh_offset, sh_link and sh_info are set when it is written */
    const char *name;
    Text bytes;
    Vec(Elf64_Rela) relocations;
    uint32_t symbol; /* of the section itself; 0: none */
} Section;

/* Where a section or a symbol of an object went. */
typedef struct Place {
    uint32_t index;  /* in the result; of a section from 1 on; 0: nowhere */
    uint64_t offset; /* of a section in the result's */
} Place;

typedef struct Object {
    const char *bytes, *section_names, *symbol_names;
    const Elf64_Shdr *heads;
    uint32_t n_sections, n_symbols;
    const Elf64_Sym *symbols;
    Place *places;        /* per section */
    uint32_t *symbols_at; /* per symbol: its number in the result */
} Object;

typedef struct Join {
    Arena *arena;
    Vec(Section) sections; /* number 0 is ELF's own */
    Vec(Elf64_Sym) symbols;
    Text names;
} Join;

static Object read_object(Arena *arena, CodeBytes code) {
    const Elf64_Ehdr *head = (const Elf64_Ehdr *)(const void *)code.data;
    if (code.n_bytes < sizeof *head || memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 ||
        head->e_type != ET_REL || head->e_machine != EM_X86_64)
        ice(arena, "LLVM made no object");
    Object object = {.bytes = code.data,
                     .heads = (const Elf64_Shdr *)(const void *)(code.data + head->e_shoff),
                     .n_sections = head->e_shnum};
    object.section_names = code.data + object.heads[head->e_shstrndx].sh_offset;
    object.places = arena_array(arena, Place, object.n_sections);
    for (uint32_t i = 0; i < object.n_sections; i++) {
        const Elf64_Shdr *own = &object.heads[i];
        if (own->sh_type != SHT_SYMTAB) continue;
        object.symbols = (const Elf64_Sym *)(const void *)(code.data + own->sh_offset);
        object.n_symbols = (uint32_t)(own->sh_size / sizeof *object.symbols);
        object.symbol_names = code.data + object.heads[own->sh_link].sh_offset;
    }
    object.symbols_at = arena_array(arena, uint32_t, object.n_symbols);
    return object;
}

/* Sections. */

static bool has_contents(const Elf64_Shdr *head) {
    return head->sh_type != SHT_NULL && head->sh_type != SHT_STRTAB &&
           head->sh_type != SHT_SYMTAB && head->sh_type != SHT_RELA;
}

static uint32_t find_section(const Join *join, const Elf64_Shdr *head, const char *name) {
    for (uint32_t i = 1; i < join->sections.n; i++) {
        const Section *own = &join->sections.data[i];
        if (strcmp(own->name, name) == 0 && own->head.sh_type == head->sh_type &&
            own->head.sh_flags == head->sh_flags && own->head.sh_entsize == head->sh_entsize)
            return i;
    }
    return 0;
}

static uint32_t add_section(Join *join, const Elf64_Shdr *head, const char *name) {
    Section section = {.name = name, .bytes.arena = join->arena};
    section.head.sh_type = head->sh_type;
    section.head.sh_flags = head->sh_flags;
    section.head.sh_entsize = head->sh_entsize;
    vec_push(join->arena, &join->sections, section);
    return join->sections.n - 1;
}

static void pad(Text *bytes, uint64_t align) {
    static const char zeros[64];
    while (align > 1 && bytes->n_bytes % align) {
        size_t n = align - bytes->n_bytes % align;
        text_add(bytes, zeros, n < sizeof zeros ? n : sizeof zeros);
    }
}

/* A note says something of the whole object, so equal notes become one. */
static Place add_contents(Join *join, const Object *object, const Elf64_Shdr *head) {
    const char *name = object->section_names + head->sh_name,
               *data = object->bytes + head->sh_offset;
    if (head->sh_type == SHT_NOBITS || head->sh_type == SHT_GROUP)
        ice(join->arena, "an object has a section %s of type %u", name, head->sh_type);
    uint32_t i = find_section(join, head, name);
    bool is_new = i == 0;
    if (is_new) i = add_section(join, head, name);
    Section *section = &join->sections.data[i];
    if (head->sh_type == SHT_NOTE && !is_new) {
        if (section->bytes.n_bytes != head->sh_size ||
            memcmp(section->bytes.data, data, head->sh_size) != 0)
            ice(join->arena, "two objects differ in their notes %s", name);
        return (Place){i, 0};
    }
    if (head->sh_size) pad(&section->bytes, head->sh_addralign);
    Place place = {i, section->bytes.n_bytes};
    if (head->sh_addralign > section->head.sh_addralign)
        section->head.sh_addralign = head->sh_addralign;
    text_add(&section->bytes, data, head->sh_size);
    return place;
}

/* Symbols. */

static uint32_t add_name(Join *join, const char *name) {
    uint32_t at = (uint32_t)join->names.n_bytes;
    text_add(&join->names, name, strlen(name) + 1);
    return at;
}

static uint32_t add_section_symbol(Join *join, uint32_t i) {
    Section *section = &join->sections.data[i];
    if (section->symbol) return section->symbol;
    Elf64_Sym symbol = {.st_info = ELF64_ST_INFO(STB_LOCAL, STT_SECTION),
                        .st_shndx = (Elf64_Section)i};
    section->symbol = join->symbols.n;
    vec_push(join->arena, &join->symbols, symbol);
    return section->symbol;
}

/* The symbol that an earlier object defines, or that no earlier one does, and that is not local. */
static uint32_t find_symbol(const Join *join, const char *name) {
    for (uint32_t i = 1; i < join->symbols.n; i++) {
        const Elf64_Sym *symbol = &join->symbols.data[i];
        if (ELF64_ST_BIND(symbol->st_info) != STB_LOCAL &&
            strcmp(join->names.data + symbol->st_name, name) == 0)
            return i;
    }
    return 0;
}

static uint32_t add_symbol(Join *join, const Object *object, const Elf64_Sym *given) {
    const char *name = object->symbol_names + given->st_name;
    Elf64_Sym symbol = *given;
    bool is_placed = symbol.st_shndx != SHN_UNDEF && symbol.st_shndx < SHN_LORESERVE;
    uint32_t found = symbol.st_shndx == SHN_UNDEF ? find_symbol(join, name) : 0;
    if (found) return found;
    if (is_placed) {
        Place place = object->places[given->st_shndx];
        if (ELF64_ST_TYPE(symbol.st_info) == STT_SECTION)
            return add_section_symbol(join, place.index);
        symbol.st_shndx = (Elf64_Section)place.index;
        symbol.st_value += place.offset;
    }
    symbol.st_name = add_name(join, name);
    vec_push(join->arena, &join->symbols, symbol);
    return join->symbols.n - 1;
}

/* Adds the local symbols, or the others. The file's name is that of the first object. */
static void add_symbols(Join *join, Object *object, bool are_local, bool is_first) {
    for (uint32_t i = 1; i < object->n_symbols; i++) {
        const Elf64_Sym *symbol = &object->symbols[i];
        bool is_file = ELF64_ST_TYPE(symbol->st_info) == STT_FILE;
        if ((ELF64_ST_BIND(symbol->st_info) == STB_LOCAL) != are_local || (is_file && !is_first))
            continue;
        object->symbols_at[i] = add_symbol(join, object, symbol);
    }
}

/* Relocations. */

static void add_relocations(Join *join, const Object *object, const Elf64_Shdr *head) {
    Place place = object->places[head->sh_info];
    const Elf64_Rela *given = (const Elf64_Rela *)(const void *)(object->bytes + head->sh_offset);
    for (uint64_t i = 0; i < head->sh_size / sizeof *given; i++) {
        Elf64_Rela own = given[i];
        uint32_t symbol = (uint32_t)ELF64_R_SYM(own.r_info);
        const Elf64_Sym *of = &object->symbols[symbol];
        own.r_offset += place.offset;
        if (ELF64_ST_TYPE(of->st_info) == STT_SECTION)
            own.r_addend += (Elf64_Sxword)object->places[of->st_shndx].offset;
        own.r_info =
            ELF64_R_INFO((Elf64_Xword)object->symbols_at[symbol], ELF64_R_TYPE(own.r_info));
        vec_push(join->arena, &join->sections.data[place.index].relocations, own);
    }
}

/* Writing. */

/* Adds a section's bytes to the file and its head to the heads. */
static void write_section(Join *join, Text *file, Text *heads, Elf64_Shdr head, const char *name,
                          const void *data, size_t n_bytes) {
    pad(file, head.sh_addralign);
    head.sh_name = add_name(join, name);
    head.sh_offset = file->n_bytes;
    head.sh_size = n_bytes;
    text_add(file, data, n_bytes);
    text_add(heads, (const char *)&head, sizeof head);
}

static uint32_t count_local(const Join *join) {
    uint32_t n = 0;
    while (n < join->symbols.n && ELF64_ST_BIND(join->symbols.data[n].st_info) == STB_LOCAL) n++;
    return n;
}

/* The sections of the result, then relocations of each, symbols, and names. */
static CodeBytes write_object(Join *join, const Elf64_Ehdr *like) {
    static const Elf64_Shdr none;
    Text file = {.arena = join->arena}, heads = {.arena = join->arena};
    uint32_t n_sections = join->sections.n, n_relocated = 0;
    for (uint32_t i = 1; i < n_sections; i++)
        n_relocated += join->sections.data[i].relocations.n != 0;
    uint32_t symbols = n_sections + n_relocated;
    text_add(&file, (const char *)like, sizeof *like);
    text_add(&heads, (const char *)&none, sizeof none);
    for (uint32_t i = 1; i < n_sections; i++) {
        const Section *own = &join->sections.data[i];
        write_section(join, &file, &heads, own->head, own->name, text_str(&own->bytes),
                      own->bytes.n_bytes);
    }
    for (uint32_t i = 1; i < n_sections; i++) {
        const Section *own = &join->sections.data[i];
        Elf64_Shdr head = {.sh_type = SHT_RELA,
                           .sh_flags = SHF_INFO_LINK,
                           .sh_link = symbols,
                           .sh_info = i,
                           .sh_addralign = 8,
                           .sh_entsize = sizeof(Elf64_Rela)};
        if (own->relocations.n)
            write_section(join, &file, &heads, head, str_format(join->arena, ".rela%s", own->name),
                          own->relocations.data, own->relocations.n * sizeof(Elf64_Rela));
    }
    write_section(join, &file, &heads,
                  (Elf64_Shdr){.sh_type = SHT_SYMTAB,
                               .sh_link = symbols + 1,
                               .sh_info = count_local(join),
                               .sh_addralign = 8,
                               .sh_entsize = sizeof(Elf64_Sym)},
                  ".symtab", join->symbols.data, join->symbols.n * sizeof(Elf64_Sym));
    uint32_t own_name = add_name(join, ".strtab");
    Elf64_Shdr names = {.sh_name = own_name,
                        .sh_type = SHT_STRTAB,
                        .sh_offset = file.n_bytes,
                        .sh_size = join->names.n_bytes,
                        .sh_addralign = 1};
    text_add(&file, join->names.data, join->names.n_bytes);
    text_add(&heads, (const char *)&names, sizeof names);
    pad(&file, 8);
    Elf64_Ehdr *head = (Elf64_Ehdr *)(void *)file.data;
    head->e_shoff = file.n_bytes;
    head->e_shnum = (Elf64_Half)(symbols + 2);
    head->e_shstrndx = (Elf64_Half)(symbols + 1);
    text_add(&file, heads.data, heads.n_bytes);
    return (CodeBytes){file.data, file.n_bytes};
}

CodeBytes object_join(Arena *arena, const CodeBytes *objects, uint32_t n) {
    Join join = {.arena = arena, .names.arena = arena};
    if (n == 1) return objects[0];
    Object *read = arena_array(arena, Object, n);
    add_name(&join, "");
    vec_push(arena, &join.sections, (Section){.symbol = 0});
    vec_push(arena, &join.symbols, (Elf64_Sym){.st_name = 0});
    for (uint32_t i = 0; i < n; i++) {
        read[i] = read_object(arena, objects[i]);
        for (uint32_t k = 0; k < read[i].n_sections; k++)
            if (has_contents(&read[i].heads[k]))
                read[i].places[k] = add_contents(&join, &read[i], &read[i].heads[k]);
    }
    for (uint32_t i = 0; i < n; i++) add_symbols(&join, &read[i], true, i == 0);
    for (uint32_t i = 0; i < n; i++) add_symbols(&join, &read[i], false, i == 0);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < read[i].n_sections; k++)
            if (read[i].heads[k].sh_type == SHT_RELA)
                add_relocations(&join, &read[i], &read[i].heads[k]);
    return write_object(&join, (const Elf64_Ehdr *)(const void *)objects[0].data);
}
