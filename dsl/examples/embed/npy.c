/* A .npy file is eight bytes, the length of a header, a header that is a Python dict, and the
 * elements. Sizes are checked before they are used. */
#include "npy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEADER_MAX_BYTES = 4096 };

/* The header's text, with a final NUL, into `header`. */
static const char *read_header(FILE *stream, char *header) {
    unsigned char start[10];
    if (fread(start, 1, sizeof start, stream) != sizeof start) return "too short";
    if (memcmp(start, "\x93NUMPY\x01", 7) != 0) return "not a .npy file of version 1";
    size_t n = start[8] + 256u * start[9];
    if (n >= HEADER_MAX_BYTES || fread(header, 1, n, stream) != n) return "bad header";
    header[n] = '\0';
    return NULL;
}

static const char *parse_header(const char *header, const char *descr, NpyFile *file) {
    char wanted[32];
    snprintf(wanted, sizeof wanted, "'descr': '%s'", descr);
    if (!strstr(header, wanted)) return "another dtype than expected";
    if (!strstr(header, "'fortran_order': False")) return "not row-major";
    const char *at = strstr(header, "'shape': (");
    if (!at) return "without a shape";
    at += strlen("'shape': (");
    while (*at != ')') {
        char *end;
        long long extent = strtoll(at, &end, 10);
        if (end == at || extent < 0 || file->rank == NPY_MAX_RANK) return "bad shape";
        file->dims[file->rank++] = extent;
        for (at = end; *at == ',' || *at == ' ';) at++;
    }
    return NULL;
}

static const char *read_elements(FILE *stream, size_t elem_bytes, NpyFile *file) {
    size_t n_bytes = elem_bytes;
    for (int k = 0; k < file->rank; k++) {
        size_t extent = (size_t)file->dims[k];
        if (extent && n_bytes > (SIZE_MAX - 1) / extent) return "bad shape";
        n_bytes *= extent;
    }
    char *data = malloc(n_bytes + 1); /* one more, to see that the file ends */
    if (!data) return "too large";
    if (fread(data, 1, n_bytes + 1, stream) != n_bytes) {
        free(data);
        return "of another length than its shape says";
    }
    file->data = data;
    return NULL;
}

const char *npy_read(const char *path, const char *descr, size_t elem_bytes, NpyFile *file) {
    char header[HEADER_MAX_BYTES];
    *file = (NpyFile){0};
    FILE *stream = fopen(path, "rb");
    if (!stream) return "cannot be opened";
    const char *error = read_header(stream, header);
    if (!error) error = parse_header(header, descr, file);
    if (!error) error = read_elements(stream, elem_bytes, file);
    fclose(stream);
    return error;
}
