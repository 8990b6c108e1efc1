/* Test artifacts: text assembly, the C compiler and objcopy, an independent CRC-32C. */
#include "rt_artifact.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *text_replace(const char *text, const char *from, const char *to) {
    const char *at = strstr(text, from);
    cr_assert(at != NULL, "`%s` is not in the text", from);
    size_t n = strlen(text) - strlen(from) + strlen(to) + 1;
    char *result = malloc(n);
    cr_assert_not_null(result);
    snprintf(result, n, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    return result;
}

/* Bit by bit from the definition, so that it shares no code with the checked implementation. */
static uint32_t crc32c(const char *bytes, size_t n) {
    uint32_t crc = 0xffffffffu;
    for (size_t i = 0; i < n; i++) {
        for (int bit = 0; bit < 8; bit++) {
            uint32_t in = (uint32_t)((unsigned char)bytes[i] >> bit & 1);
            uint32_t mix = (crc ^ in) & 1;
            crc = crc >> 1 ^ (mix ? 0x82f63b78u : 0);
        }
    }
    return ~crc;
}

void artifact_stamp(Artifact *artifact) {
    static const char word[] = "//@ checksum ";
    const size_t n_word = sizeof word - 1;
    for (size_t i = 0; i + n_word + 8 <= artifact->n_bytes; i++) {
        const char *line = artifact->bytes + i;
        if (memcmp(line, word, n_word) == 0 && strspn(line + n_word, "0123456789abcdef") == 8) {
            char digits[9];
            memcpy(artifact->bytes + i + n_word, "00000000", 8);
            snprintf(digits, sizeof digits, "%08x", crc32c(artifact->bytes, artifact->n_bytes));
            memcpy(artifact->bytes + i + n_word, digits, 8);
            return;
        }
    }
}

Artifact artifact_text(const char *manifest, const char *code) {
    size_t n = strlen(manifest) + strlen(code);
    Artifact artifact = {malloc(n + 1), n};
    cr_assert_not_null(artifact.bytes);
    snprintf(artifact.bytes, n + 1, "%s%s", manifest, code);
    artifact_stamp(&artifact);
    return artifact;
}

void artifact_free(Artifact *artifact) {
    free(artifact->bytes);
    *artifact = (Artifact){NULL, 0};
}

char *rt_folder_make(void) {
    char *folder = malloc(64);
    cr_assert_not_null(folder);
    snprintf(folder, 64, "/tmp/fusert-test-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
    return folder;
}

void rt_folder_remove(char *folder) {
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    cr_assert_eq(system(command), 0);
    free(folder);
}

void rt_file_write(const char *path, const void *bytes, size_t n_bytes) {
    FILE *file = fopen(path, "wb");
    cr_assert_not_null(file, "cannot write %s", path);
    cr_assert_eq(fwrite(bytes, 1, n_bytes, file), n_bytes);
    cr_assert_eq(fclose(file), 0);
}

static void read_file(const char *path, Artifact *artifact) {
    FILE *file = fopen(path, "rb");
    cr_assert_not_null(file, "cannot read %s", path);
    fseek(file, 0, SEEK_END);
    artifact->n_bytes = (size_t)ftell(file);
    rewind(file);
    artifact->bytes = malloc(artifact->n_bytes + 1);
    cr_assert_not_null(artifact->bytes);
    cr_assert_eq(fread(artifact->bytes, 1, artifact->n_bytes, file), artifact->n_bytes);
    fclose(file);
}

Artifact artifact_object(const char *manifest, const char *c_source, int is_shared) {
    char *folder = rt_folder_make();
    char path[128];
    char command[1024];
    Artifact artifact;
    snprintf(path, sizeof path, "%s/kernel.c", folder);
    rt_file_write(path, c_source, strlen(c_source));
    snprintf(path, sizeof path, "%s/manifest", folder);
    rt_file_write(path, manifest, strlen(manifest));
    snprintf(command, sizeof command,
             "cd '%s' && cc -O2 -fPIC -ffreestanding -fno-asynchronous-unwind-tables "
             "-fno-tree-loop-distribute-patterns %s -o kernel.o kernel.c && "
             "objcopy --add-section .fusec=manifest kernel.o artifact.o",
             folder, is_shared ? "-shared -nostdlib" : "-c");
    cr_assert_eq(system(command), 0, "the C compiler failed");
    snprintf(path, sizeof path, "%s/artifact.o", folder);
    read_file(path, &artifact);
    rt_folder_remove(folder);
    artifact_stamp(&artifact);
    return artifact;
}
