/* Bounds-checked access to ELF headers, sections and strings. */
#include "code/elf_file.h"

#include "host/error.h"

#include <string.h>

bool elf_is_elf(const void *bytes, size_t n_bytes) {
    return n_bytes >= SELFMAG && memcmp(bytes, ELFMAG, SELFMAG) == 0;
}

static bool is_inside(const ElfFile *elf, uint64_t at, uint64_t n) {
    return at <= elf->n_bytes && n <= elf->n_bytes - at;
}

Elf64_Shdr elf_section(const ElfFile *elf, uint32_t i) {
    Elf64_Shdr section;
    memcpy(&section, elf->bytes + elf->sections_at + i * sizeof section, sizeof section);
    return section;
}

const char *elf_string(const ElfFile *elf, const Elf64_Shdr *strings, uint64_t at) {
    if (strings->sh_type != SHT_STRTAB || at >= strings->sh_size) {
        return NULL;
    }
    const char *text = (const char *)elf->bytes + strings->sh_offset + at;
    return memchr(text, '\0', strings->sh_size - at) ? text : NULL;
}

const char *elf_section_name(const ElfFile *elf, const Elf64_Shdr *section) {
    const char *name = elf_string(elf, &elf->names, section->sh_name);
    return name ? name : "";
}

frt_status elf_open(const void *bytes, size_t n_bytes, ElfFile *elf, frt_error *err) {
    Elf64_Ehdr header;
    *elf = (ElfFile){.bytes = bytes, .n_bytes = n_bytes};
    if (n_bytes < sizeof header || !elf_is_elf(bytes, n_bytes)) {
        return frt_fail(err, FRT_E_ARTIFACT, "not an ELF file, or cut short");
    }
    memcpy(&header, bytes, sizeof header);
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
        header.e_shentsize != sizeof(Elf64_Shdr)) {
        return frt_fail(err, FRT_E_ARTIFACT, "not a 64-bit little-endian ELF file with sections");
    }
    elf->type = header.e_type;
    elf->machine = header.e_machine;
    elf->n_sections = header.e_shnum;
    elf->sections_at = header.e_shoff;
    if (!is_inside(elf, elf->sections_at, elf->n_sections * sizeof(Elf64_Shdr)) ||
        header.e_shstrndx >= elf->n_sections) {
        return frt_fail(err, FRT_E_ARTIFACT, "the ELF section table lies outside the file");
    }
    for (uint32_t i = 0; i < elf->n_sections; i++) {
        Elf64_Shdr section = elf_section(elf, i);
        if (section.sh_type != SHT_NOBITS && section.sh_type != SHT_NULL &&
            !is_inside(elf, section.sh_offset, section.sh_size)) {
            return frt_fail(err, FRT_E_ARTIFACT, "ELF section %u lies outside the file", i);
        }
    }
    elf->names = elf_section(elf, header.e_shstrndx);
    return FRT_OK;
}

uint32_t elf_find_section(const ElfFile *elf, const char *name) {
    uint32_t found = 0;
    for (uint32_t i = 1; i < elf->n_sections; i++) {
        Elf64_Shdr section = elf_section(elf, i);
        if (strcmp(elf_section_name(elf, &section), name) == 0) {
            if (found) {
                return 0;
            }
            found = i;
        }
    }
    return found;
}
