/* Just enough of NumPy's .npy files for the example programs: little endian, row-major, with the
 * dtype that the caller expects. */
#ifndef EXAMPLE_NPY_H
#define EXAMPLE_NPY_H

#include <stddef.h>
#include <stdint.h>

enum { NPY_MAX_RANK = 4 };

typedef struct NpyFile {
    int rank;
    int64_t dims[NPY_MAX_RANK]; /* elements */
    void *data;                 /* for free() */
} NpyFile;

/* Reads `path`, whose elements must be `descr` ("<f4", "<i4"), each of `elem_bytes`. Returns NULL,
 * or what is wrong with the file; nothing is to be freed then. */
const char *npy_read(const char *path, const char *descr, size_t elem_bytes, NpyFile *file);

#endif
