/* Loading of CPU kernel code. An object may hold functions and constants only: no writable data, no
 * undefined symbol, and only the few relocations that such code needs. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "code/image.h"

#include "code/elf_file.h"
#include "host/error.h"
#include "host/mem.h"
#include "host/port.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE_BYTES = 4096 };
#define MAX_IMAGE_BYTES ((uint64_t)1 << 30) /* 32-bit offsets must reach everything */

typedef enum Group { GROUP_NONE, GROUP_CODE, GROUP_DATA } Group;

typedef struct Place {
    Group group;
    uint64_t at; /* offset in the map */
} Place;

struct Image {
    ElfFile elf;
    Place *places; /* one per section */
    unsigned char *map;
    uint64_t n_map, n_code; /* bytes; the code comes first */
    uint64_t got_at, n_got; /* offset of the global offset table, slots in use */
    void *library;          /* shared object, or NULL */
    int file;               /* memory file of `library`. It stays open as long as the library,
                             * because dlopen would return this library again for another image with
                             * the same file name */
};

static bool starts_with(const char *text, const char *prefix) {
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* The group of the image that a section belongs to. */
static frt_status classify(const Elf64_Shdr *section, const char *name, Group *group,
                           frt_error *err) {
    *group = GROUP_NONE;
    if (!(section->sh_flags & SHF_ALLOC) || section->sh_size == 0 || section->sh_type == SHT_NOTE ||
        strcmp(name, FRT_MANIFEST_SECTION) == 0 || strcmp(name, ".eh_frame") == 0) {
        return FRT_OK;
    }
    bool is_relro = starts_with(name, ".data.rel.ro");
    bool is_plain = section->sh_type == SHT_PROGBITS && !(section->sh_flags & SHF_TLS);
    if (!is_plain || ((section->sh_flags & SHF_WRITE) && !is_relro)) {
        return frt_fail(err, FRT_E_CODE,
                        "section %s of the object is neither code nor constant data", name);
    }
    if (section->sh_addralign > PAGE_BYTES ||
        (section->sh_addralign & (section->sh_addralign - 1)) != 0) {
        return frt_fail(err, FRT_E_CODE, "section %s asks for an odd alignment", name);
    }
    *group = section->sh_flags & SHF_EXECINSTR ? GROUP_CODE : GROUP_DATA;
    return FRT_OK;
}

static bool is_got_relocation(uint64_t type) {
    return type == R_X86_64_GOTPCREL || type == R_X86_64_GOTPCRELX ||
           type == R_X86_64_REX_GOTPCRELX;
}

static Elf64_Rela relocation_at(const Image *image, const Elf64_Shdr *section, uint64_t i) {
    Elf64_Rela rela;
    memcpy(&rela, image->elf.bytes + section->sh_offset + i * sizeof rela, sizeof rela);
    return rela;
}

/* An upper bound of the GOT slots that the relocations need. */
static uint64_t count_got(const Image *image) {
    uint64_t n = 0;
    for (uint32_t i = 0; i < image->elf.n_sections; i++) {
        Elf64_Shdr section = elf_section(&image->elf, i);
        if (section.sh_type != SHT_RELA) {
            continue;
        }
        for (uint64_t k = 0; k < section.sh_size / sizeof(Elf64_Rela); k++) {
            n += is_got_relocation(ELF64_R_TYPE(relocation_at(image, &section, k).r_info));
        }
    }
    return n;
}

/* Append the sections of one group at `end`, each aligned. */
static frt_status place_group(Image *image, Group wanted, uint64_t *end, frt_error *err) {
    for (uint32_t i = 1; i < image->elf.n_sections; i++) {
        Elf64_Shdr section = elf_section(&image->elf, i);
        Group group;
        frt_status status =
            classify(&section, elf_section_name(&image->elf, &section), &group, err);
        if (status) {
            return status;
        }
        if (group != wanted) {
            continue;
        }
        uint64_t align = section.sh_addralign ? section.sh_addralign : 1;
        uint64_t at = (*end + align - 1) / align * align;
        if (section.sh_size > MAX_IMAGE_BYTES || at > MAX_IMAGE_BYTES - section.sh_size) {
            return frt_fail(err, FRT_E_CODE, "the object's code is larger than 1 GiB");
        }
        image->places[i] = (Place){group, at};
        *end = at + section.sh_size;
    }
    return FRT_OK;
}

static uint64_t round_to_page(uint64_t n) {
    return (n + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

static frt_status place_sections(Image *image, frt_error *err) {
    uint64_t end = 0;
    frt_status status = place_group(image, GROUP_CODE, &end, err);
    if (status) {
        return status;
    }
    end = image->n_code = round_to_page(end);
    status = place_group(image, GROUP_DATA, &end, err);
    if (status) {
        return status;
    }
    image->got_at = (end + 7) / 8 * 8;
    image->n_map = round_to_page(image->got_at + 8 * count_got(image));
    if (image->n_code == 0) {
        return frt_fail(err, FRT_E_CODE, "the object has no code");
    }
    void *map =
        mmap(NULL, image->n_map, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED) {
        return frt_fail_memory(err, image->n_map);
    }
    image->map = map;
    for (uint32_t i = 1; i < image->elf.n_sections; i++) {
        Elf64_Shdr section = elf_section(&image->elf, i);
        if (image->places[i].group != GROUP_NONE) {
            memcpy(image->map + image->places[i].at, image->elf.bytes + section.sh_offset,
                   section.sh_size);
        }
    }
    return FRT_OK;
}

/* Symbol `index` of a symbol table: its name, and its address in the map if it has one. */
static bool symbol_at(const Image *image, const Elf64_Shdr *table, uint64_t index,
                      const char **name, Elf64_Sym *symbol, uint64_t *address) {
    *name = "?";
    if (table->sh_type != SHT_SYMTAB || table->sh_link >= image->elf.n_sections ||
        index >= table->sh_size / sizeof *symbol) {
        return false;
    }
    memcpy(symbol, image->elf.bytes + table->sh_offset + index * sizeof *symbol, sizeof *symbol);
    Elf64_Shdr strings = elf_section(&image->elf, table->sh_link);
    const char *text = elf_string(&image->elf, &strings, symbol->st_name);
    *name = text ? text : "?";
    if (symbol->st_shndx == SHN_UNDEF || symbol->st_shndx >= image->elf.n_sections) {
        return false;
    }
    const Place *place = &image->places[symbol->st_shndx];
    Elf64_Shdr section = elf_section(&image->elf, symbol->st_shndx);
    if (place->group == GROUP_NONE || symbol->st_value > section.sh_size) {
        return false;
    }
    *address = (uint64_t)(uintptr_t)image->map + place->at + symbol->st_value;
    return true;
}

static bool store_relative(unsigned char *where, uint64_t value) {
    int64_t wide = (int64_t)(value - (uint64_t)(uintptr_t)where);
    int32_t narrow = (int32_t)wide;
    memcpy(where, &narrow, sizeof narrow);
    return narrow == wide;
}

static frt_status relocate(Image *image, const Elf64_Shdr *symbols, uint32_t target,
                           Elf64_Rela rela, frt_error *err) {
    uint64_t type = ELF64_R_TYPE(rela.r_info);
    Elf64_Shdr section = elf_section(&image->elf, target);
    uint64_t n_bytes = type == R_X86_64_64 ? 8 : 4;
    Elf64_Sym symbol;
    const char *name;
    uint64_t address = 0;
    if (section.sh_size < n_bytes || rela.r_offset > section.sh_size - n_bytes) {
        return frt_fail(err, FRT_E_CODE, "a relocation lies outside its section");
    }
    if (!symbol_at(image, symbols, ELF64_R_SYM(rela.r_info), &name, &symbol, &address)) {
        return frt_fail(err, FRT_E_CODE, "the object needs symbol `%s`, which it does not define",
                        name);
    }
    unsigned char *where = image->map + image->places[target].at + rela.r_offset;
    uint64_t addend = (uint64_t)rela.r_addend;
    bool fits = true;
    if (type == R_X86_64_64) {
        address += addend;
        memcpy(where, &address, sizeof address);
    } else if (type == R_X86_64_PC32 || type == R_X86_64_PLT32) {
        fits = store_relative(where, address + addend);
    } else if (is_got_relocation(type)) {
        unsigned char *slot = image->map + image->got_at + 8 * image->n_got++;
        memcpy(slot, &address, sizeof address);
        fits = store_relative(where, (uint64_t)(uintptr_t)slot + addend);
    } else {
        return frt_fail(err, FRT_E_CODE, "relocation type %llu against `%s` is not supported",
                        (unsigned long long)type, name);
    }
    return fits ? FRT_OK
                : frt_fail(err, FRT_E_CODE, "a relocation against `%s` is out of reach", name);
}

static frt_status relocate_all(Image *image, frt_error *err) {
    for (uint32_t i = 1; i < image->elf.n_sections; i++) {
        Elf64_Shdr section = elf_section(&image->elf, i);
        bool is_relocation = section.sh_type == SHT_RELA || section.sh_type == SHT_REL;
        if (!is_relocation || section.sh_info >= image->elf.n_sections ||
            image->places[section.sh_info].group == GROUP_NONE) {
            continue;
        }
        if (section.sh_type == SHT_REL || section.sh_link >= image->elf.n_sections) {
            return frt_fail(err, FRT_E_CODE, "the object's relocations are not of x86-64's form");
        }
        Elf64_Shdr symbols = elf_section(&image->elf, section.sh_link);
        for (uint64_t k = 0; k < section.sh_size / sizeof(Elf64_Rela); k++) {
            frt_status status =
                relocate(image, &symbols, section.sh_info, relocation_at(image, &section, k), err);
            if (status) {
                return status;
            }
        }
    }
    return FRT_OK;
}

static frt_status load_object(Image *image, frt_error *err) {
    image->places = mem_alloc(image->elf.n_sections, sizeof *image->places);
    if (!image->places) {
        return frt_fail_memory(err, image->elf.n_sections * sizeof *image->places);
    }
    frt_status status = place_sections(image, err);
    if (!status) {
        status = relocate_all(image, err);
    }
    if (status) {
        return status;
    }
    uint64_t n_data = image->n_map - image->n_code;
    if (mprotect(image->map, image->n_code, PROT_READ | PROT_EXEC) != 0 ||
        (n_data > 0 && mprotect(image->map + image->n_code, n_data, PROT_READ) != 0)) {
        return frt_fail(err, FRT_E_CODE, "the system does not allow code to be made executable");
    }
    return FRT_OK;
}

/* The library is loaded from the checked bytes in memory. Its path could by now name another
 * file. */
static frt_status load_shared(Image *image, const frt_module *module, frt_error *err) {
    image->file = port_memory_file("fusec-artifact");
    if (image->file < 0) {
        return frt_fail(err, FRT_E_CODE, "the system has no memory files to load the code from");
    }
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", image->file);
    size_t n_written = 0;
    while (n_written < module->n_bytes) {
        ssize_t n = write(image->file, module->bytes + n_written, module->n_bytes - n_written);
        if (n <= 0) {
            return frt_fail(err, FRT_E_CODE, "cannot write the code to a memory file");
        }
        n_written += (size_t)n;
    }
    image->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const char *reason = image->library ? NULL : dlerror();
    return image->library ? FRT_OK
                          : frt_fail(err, FRT_E_CODE, "the shared object does not load: %s",
                                     reason ? reason : "no reason given");
}

frt_status image_load(const frt_module *module, Image **result, frt_error *err) {
    Image *image = mem_alloc(1, sizeof *image);
    if (!image) {
        return frt_fail_memory(err, sizeof *image);
    }
    image->file = -1;
    frt_status status = elf_open(module->bytes, module->n_bytes, &image->elf, err);
    if (!status) {
        status = module->code_kind == FRT_CODE_OBJECT ? load_object(image, err)
                                                      : load_shared(image, module, err);
    }
    if (status) {
        image_free(image);
        return status;
    }
    *result = image;
    return FRT_OK;
}

frt_status image_find(const Image *image, const char *symbol, void **address, frt_error *err) {
    *address = image->library ? dlsym(image->library, symbol) : NULL;
    for (uint32_t i = 1; !*address && image->places && i < image->elf.n_sections; i++) {
        Elf64_Shdr table = elf_section(&image->elf, i);
        if (table.sh_type != SHT_SYMTAB) {
            continue;
        }
        for (uint64_t k = 1; k < table.sh_size / sizeof(Elf64_Sym); k++) {
            Elf64_Sym entry;
            const char *name;
            uint64_t at;
            if (symbol_at(image, &table, k, &name, &entry, &at) && strcmp(name, symbol) == 0 &&
                ELF64_ST_BIND(entry.st_info) != STB_LOCAL &&
                image->places[entry.st_shndx].group == GROUP_CODE) {
                *address = (void *)(uintptr_t)at;
                return FRT_OK;
            }
        }
    }
    return *address ? FRT_OK
                    : frt_fail(err, FRT_E_CODE, "the artifact's code has no kernel `%s`", symbol);
}

void image_free(Image *image) {
    if (!image) {
        return;
    }
    if (image->map) {
        munmap(image->map, image->n_map);
    }
    if (image->library) {
        dlclose(image->library);
    }
    if (image->file >= 0) {
        close(image->file);
    }
    mem_free(image->places);
    mem_free(image);
}
