/* A bounds-checked view of a 64-bit little-endian ELF file. Borrows the bytes. */
#ifndef FRT_ELF_FILE_H
#define FRT_ELF_FILE_H

#include <elf.h>
#include <fusert.h>

typedef struct ElfFile {
    const unsigned char *bytes;
    size_t n_bytes;
    uint16_t type;    /* ET_REL, ET_DYN */
    uint16_t machine; /* EM_X86_64, EM_CUDA */
    uint32_t n_sections;
    uint64_t sections_at;
    Elf64_Shdr names; /* the section of section names */
} ElfFile;

bool elf_is_elf(const void *bytes, size_t n_bytes);

/* Check the header and that every section lies inside the file. FRT_E_ARTIFACT. */
frt_status elf_open(const void *bytes, size_t n_bytes, ElfFile *elf, frt_error *err);

/* The header and the name of section i < n_sections. */
Elf64_Shdr elf_section(const ElfFile *elf, uint32_t i);
const char *elf_section_name(const ElfFile *elf, const Elf64_Shdr *section);

/* The NUL-terminated string at offset `at` of a string section, or NULL. */
const char *elf_string(const ElfFile *elf, const Elf64_Shdr *strings, uint64_t at);

/* Index of the section called `name`; 0 if there is none or more than one. */
uint32_t elf_find_section(const ElfFile *elf, const char *name);

#endif
