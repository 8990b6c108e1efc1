/* Artifacts for tests of the runtime, made without the compiler: a manifest written by hand
 * around PTX text that nobody reads, or around an object that the system's C compiler makes. */
#ifndef RT_ARTIFACT_H
#define RT_ARTIFACT_H

#include <stddef.h>

typedef struct Artifact {
    char *bytes; /* malloc'ed */
    size_t n_bytes;
} Artifact;

/* `manifest` and `code` one after the other, stamped with the right checksum. */
Artifact artifact_text(const char *manifest, const char *code);

/* The object (or, with `is_shared`, shared object) of a C source, with the manifest as section
 * .fusec, stamped. Stops the test if the compiler fails. */
Artifact artifact_object(const char *manifest, const char *c_source, int is_shared);

/* Put the right checksum into the first checksum line that has eight hex digits. */
void artifact_stamp(Artifact *artifact);

void artifact_free(Artifact *artifact);

/* `text` with the first `from` replaced by `to`; malloc'ed. Stops the test if it is not there. */
char *text_replace(const char *text, const char *from, const char *to);

/* A path in a fresh folder that is removed by rt_folder_remove. */
char *rt_folder_make(void);
void rt_folder_remove(char *folder);
void rt_file_write(const char *path, const void *bytes, size_t n_bytes);

#endif
