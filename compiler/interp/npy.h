/* NumPy's .npy files, format versions 1 to 3, little endian, C order.
 *
 * dtypes: <f8 <f4 <f2 <i4 |b1, and for bf16, which NumPy lacks, <u2 (written and read) or |V2
 * (read; what ml_dtypes saves): the two bytes of each element. Objects, big endian and Fortran
 * order of rank 2 and up are refused. Every byte is checked before it is used. */
#ifndef FUSEC_INTERP_NPY_H
#define FUSEC_INTERP_NPY_H

#include "base/str.h"
#include "interp/tensor.h"

typedef struct NpyArray {
    Dtype dtype;
    uint32_t rank;
    int64_t dims[TENSOR_MAX_RANK];
    const uint8_t *bytes; /* row-major elements */
    size_t n_bytes;
} NpyArray;

/* Points into `file`. On failure false and what is wrong, one line on the arena. */
bool npy_read(Arena *arena, const char *file, size_t n_bytes, NpyArray *array, const char **error);
/* A whole file, version 1. */
void npy_write(const NpyArray *array, Text *file);

#endif
