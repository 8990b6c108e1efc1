/* NumPy's .npy files, format versions 1 to 3, little endian, C order.
 *
 * dtype.def has the dtypes' descriptions. NumPy lacks bf16: it is written and read as <u2, which is
 * u16 too, and read as |V2, which ml_dtypes saves; either is the two bytes of each element.
 * Objects, big endian and Fortran order of rank 2 and up are refused. Every byte is checked before
 * it is used. */
#ifndef FUSEC_INTERP_NPY_H
#define FUSEC_INTERP_NPY_H

#include "base/str.h"
#include "interp/tensor.h"

enum { NPY_MAX_RANK = 8 }; /* that of inputs, params and outputs */

typedef struct NpyArray {
    Dtype dtype;
    DtypeSet dtypes; /* of a file that was read: `dtype`, and those with the same description */
    uint32_t rank;
    int64_t dims[NPY_MAX_RANK];
    const uint8_t *bytes; /* row-major elements */
    size_t n_bytes;
} NpyArray;

/* A header with its length, version and magic number takes at most NPY_HEAD_BYTES. */
enum { NPY_MAX_HEADER_BYTES = 65535, NPY_HEAD_BYTES = NPY_MAX_HEADER_BYTES + 12 };

/* Reads the header alone, which lies in the first `n_bytes` bytes of the file. array->n_bytes are
 * the bytes that the shape needs, array->bytes points behind the header. On failure it returns
 * false and a one-line message on the arena. */
bool npy_read_header(Arena *arena, const char *file, size_t n_bytes, NpyArray *array,
                     const char **error);
/* Reads a whole file. The array points into `file`. On failure it returns false and a one-line
 * message on the arena. */
bool npy_read(Arena *arena, const char *file, size_t n_bytes, NpyArray *array, const char **error);
/* Writes a whole file, version 1. */
void npy_write(const NpyArray *array, Text *file);

#endif
