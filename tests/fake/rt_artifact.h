/* Artifacts for tests of the runtime, made without the compiler: a hand-written manifest with PTX
 * text that nobody reads, or with an object from the system's C compiler. */
#ifndef RT_ARTIFACT_H
#define RT_ARTIFACT_H

#include <stddef.h>

typedef struct Artifact {
    char *bytes; /* malloc'ed */
    size_t n_bytes;
} Artifact;

/* `manifest` followed by `code`, with the right checksum. */
Artifact artifact_text(const char *manifest, const char *code);

/* The object (is_shared: shared object) of a C source, with the manifest in section .fusec and the
 * right checksum. Fails the test if the compiler fails. */
Artifact artifact_object(const char *manifest, const char *c_source, int is_shared);

/* Writes the right checksum into the first checksum line with eight hex digits. */
void artifact_stamp(Artifact *artifact);

void artifact_free(Artifact *artifact);

/* `text` with the first `from` replaced by `to`; malloc'ed. Fails the test if `from` does not
 * occur. */
char *text_replace(const char *text, const char *from, const char *to);

/* The path of a new temporary folder, which rt_folder_remove removes. */
char *rt_folder_make(void);
void rt_folder_remove(char *folder);
void rt_file_write(const char *path, const void *bytes, size_t n_bytes);

#endif
