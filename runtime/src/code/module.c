/* Loading an artifact: the kind of file, its checksum, its manifest and its code. */
#include "code/module.h"

#include "host/crc32c.h"
#include "code/elf_file.h"
#include "host/error.h"
#include "host/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_FILE_BYTES = 1 << 30 };

/* Open a regular file for reading and get its size. FRT_E_FILE. O_NONBLOCK, because opening a pipe
 * would wait for its writer. */
static frt_status file_open(const char *path, FILE **file, size_t *n_bytes, frt_error *err) {
    struct stat info;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) {
        return frt_fail(err, FRT_E_FILE, "cannot open %s: %s", path, strerror(errno));
    }
    if (fstat(descriptor, &info) != 0 || !S_ISREG(info.st_mode)) {
        close(descriptor);
        return frt_fail(err, FRT_E_FILE, "%s is no regular file", path);
    }
    *file = fdopen(descriptor, "rb");
    if (!*file) {
        close(descriptor);
        return frt_fail(err, FRT_E_FILE, "cannot read %s", path);
    }
    *n_bytes = (size_t)info.st_size;
    return FRT_OK;
}

/* Read a whole file. FRT_E_FILE, _OUT_OF_MEMORY. The caller frees *bytes (n_bytes and a NUL) by
 * mem_free. */
static frt_status file_read(const char *path, char **bytes, size_t *n_bytes, frt_error *err) {
    FILE *file = NULL;
    size_t n = 0;
    frt_status status = file_open(path, &file, &n, err);
    if (status) {
        return status;
    }
    char *data = NULL;
    if (n > MAX_FILE_BYTES) {
        status = frt_fail(err, FRT_E_FILE, "%s has more than 1 GiB", path);
    } else if (!(data = mem_alloc(n + 1, 1))) {
        status = frt_fail_memory(err, n + 1);
    } else if (fread(data, 1, n, file) != n) {
        status = frt_fail(err, FRT_E_FILE, "cannot read %s", path);
    }
    fclose(file);
    if (status) {
        mem_free(data);
        return status;
    }
    *bytes = data;
    *n_bytes = n;
    return FRT_OK;
}

/* The checksum covers every byte of the file; its own digits count as '0'. */
static frt_status check_sum(const frt_module *module, size_t text_at, frt_error *err) {
    static const char zeros[] = "00000000";
    size_t at = text_at + module->manifest.checksum_at;
    size_t rest = at + FRT_CHECKSUM_DIGITS;
    uint32_t crc = crc32c_update(0, module->bytes, at);
    crc = crc32c_update(crc, zeros, FRT_CHECKSUM_DIGITS);
    crc = crc32c_update(crc, module->bytes + rest, module->n_bytes - rest);
    if (crc != module->manifest.checksum) {
        return frt_fail(err, FRT_E_CHECKSUM,
                        "the artifact says checksum %08x but its bytes have %08x: it is damaged "
                        "or was changed",
                        module->manifest.checksum, crc);
    }
    return FRT_OK;
}

static frt_status check_target(const frt_module *module, frt_target wanted, frt_error *err) {
    if (module->manifest.target != wanted) {
        return frt_fail(err, FRT_E_ARTIFACT, "the manifest's target %s does not fit the file",
                        target_info(module->manifest.target)->word);
    }
    return FRT_OK;
}

static frt_status load_elf(frt_module *module, frt_error *err) {
    ElfFile elf;
    frt_status status = elf_open(module->bytes, module->n_bytes, &elf, err);
    if (status) {
        return status;
    }
    if (elf.machine != EM_X86_64 || (elf.type != ET_REL && elf.type != ET_DYN)) {
        return frt_fail(err, FRT_E_ARTIFACT, "neither an x86-64 object nor shared object");
    }
    uint32_t index = elf_find_section(&elf, FRT_MANIFEST_SECTION);
    if (index == 0 || elf_section(&elf, index).sh_type != SHT_PROGBITS) {
        return frt_fail(err, FRT_E_ARTIFACT,
                        "no (single) section " FRT_MANIFEST_SECTION
                        ": this file was not made by fusec");
    }
    Elf64_Shdr section = elf_section(&elf, index);
    status =
        manifest_read(module->bytes + section.sh_offset, section.sh_size, &module->manifest, err);
    if (!status) {
        status = check_sum(module, section.sh_offset, err);
    }
    if (!status) {
        status = check_target(module, FRT_TARGET_KIND_CPU, err);
    }
    if (!status && module->manifest.n_text != section.sh_size) {
        status = frt_fail(err, FRT_E_ARTIFACT,
                          "section " FRT_MANIFEST_SECTION " goes on after its `end` line");
    }
    module->code_kind = elf.type == ET_REL ? FRT_CODE_OBJECT : FRT_CODE_SHARED_OBJECT;
    module->code = module->bytes;
    module->n_code = module->n_bytes;
    return status;
}

/* Reads `//@ payload N` and exactly N bytes of an ELF cubin after it. */
static frt_status load_cubin(frt_module *module, const char *line, size_t n_left, frt_error *err) {
    char wanted[64];
    const char *end = memchr(line, '\n', n_left < sizeof wanted ? n_left : sizeof wanted);
    size_t n_line = end ? (size_t)(end - line) + 1 : 0;
    size_t n_code = n_left - n_line;
    int n = snprintf(wanted, sizeof wanted, FRT_MANIFEST_PREFIX FRT_D_PAYLOAD " %zu\n", n_code);
    if ((size_t)n != n_line || memcmp(line, wanted, n_line) != 0) {
        return frt_fail(err, FRT_E_ARTIFACT, "the payload line does not match the bytes after it");
    }
    ElfFile elf;
    module->code = line + n_line;
    module->n_code = n_code;
    module->code_kind = FRT_CODE_CUBIN;
    frt_status status = elf_open(module->code, n_code, &elf, err);
    if (!status && elf.machine != EM_CUDA) {
        status = frt_fail(err, FRT_E_ARTIFACT, "the payload is an ELF file but no cubin");
    }
    return status;
}

static frt_status load_text(frt_module *module, frt_error *err) {
    static const char payload[] = FRT_MANIFEST_PREFIX FRT_D_PAYLOAD;
    frt_status status = manifest_read(module->bytes, module->n_bytes, &module->manifest, err);
    if (!status) {
        status = check_sum(module, 0, err);
    }
    if (!status) {
        status = check_target(module, FRT_TARGET_KIND_CUDA, err);
    }
    if (status) {
        return status;
    }
    const char *rest = module->bytes + module->manifest.n_text;
    size_t n_rest = module->n_bytes - module->manifest.n_text;
    if (n_rest >= sizeof payload && memcmp(rest, payload, sizeof payload - 1) == 0) {
        return load_cubin(module, rest, n_rest, err);
    }
    if (n_rest == 0 || memchr(rest, '\0', n_rest)) {
        return frt_fail(err, FRT_E_ARTIFACT, "no PTX text follows the manifest");
    }
    module->code_kind = FRT_CODE_PTX;
    module->code = rest;
    module->n_code = n_rest;
    return FRT_OK;
}

/* Takes ownership of `bytes` (n_bytes and a NUL) and `folder`. */
static frt_status load(char *bytes, size_t n_bytes, char *folder, frt_module **result,
                       frt_error *err) {
    frt_module *module = mem_alloc(1, sizeof *module);
    if (!module) {
        mem_free(bytes);
        mem_free(folder);
        return frt_fail_memory(err, sizeof *module);
    }
    *module = (frt_module){.bytes = bytes, .n_bytes = n_bytes, .folder = folder};
    atomic_init(&module->n_owners, 1);
    frt_status status;
    static const char magic[] = FRT_MANIFEST_PREFIX;
    if (elf_is_elf(bytes, n_bytes)) {
        status = load_elf(module, err);
    } else if (n_bytes >= sizeof magic && memcmp(bytes, magic, sizeof magic - 1) == 0) {
        status = load_text(module, err);
    } else {
        status = frt_fail(err, FRT_E_ARTIFACT, "neither an ELF file nor text that begins with `%s`",
                          magic);
    }
    if (!status) {
        status = pieces_find(module, err);
    }
    if (status) {
        frt_module_free(module);
        return status;
    }
    *result = module;
    return FRT_OK;
}

/* "a/b/" of "a/b/c.ptx", "" of "c.ptx"; NULL when memory is out. */
static char *folder_of(const char *path) {
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) + 1 : 0;
    char *folder = mem_alloc(n + 1, 1);
    if (folder) {
        memcpy(folder, path, n);
    }
    return folder;
}

frt_status frt_module_load_file(const char *path, frt_module **module, frt_error *err) {
    if (!path || !module) {
        return frt_fail(err, FRT_E_INVALID_ARGUMENT, "no path or no place for the module");
    }
    char *bytes = NULL;
    size_t n_bytes = 0;
    frt_status status = file_read(path, &bytes, &n_bytes, err);
    if (status) {
        return status;
    }
    char *folder = folder_of(path);
    if (!folder) {
        mem_free(bytes);
        return frt_fail_memory(err, strlen(path));
    }
    return load(bytes, n_bytes, folder, module, err);
}

frt_status frt_module_load_memory(const void *bytes, size_t n_bytes, frt_module **module,
                                  frt_error *err) {
    if (!bytes || !module || n_bytes > MAX_FILE_BYTES) {
        return frt_fail(err, FRT_E_INVALID_ARGUMENT,
                        "no bytes, more than 1 GiB of them, or no place for the module");
    }
    char *copy = mem_alloc(n_bytes + 1, 1);
    if (!copy) {
        return frt_fail_memory(err, n_bytes + 1);
    }
    memcpy(copy, bytes, n_bytes);
    return load(copy, n_bytes, NULL, module, err);
}

frt_module *module_retain(frt_module *module) {
    atomic_fetch_add(&module->n_owners, 1);
    return module;
}

void frt_module_free(frt_module *module) {
    if (!module || atomic_fetch_sub(&module->n_owners, 1) != 1) {
        return;
    }
    manifest_free(&module->manifest);
    mem_free(module->pieces);
    mem_free(module->folder);
    mem_free(module->bytes);
    mem_free(module);
}
