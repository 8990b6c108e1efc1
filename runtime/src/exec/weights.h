/* A .safetensors file. Its whole header is checked before any lookup. Elements are read on request,
 * not mapped, so a file that another process truncates is an error and not a signal. */
#ifndef FRT_WEIGHTS_H
#define FRT_WEIGHTS_H

#include <fusert.h>

typedef struct Weight {
    const char *name;
    const char *dtype; /* the dtype's word in the file, "F32" */
    int32_t rank;
    int64_t dims[FRT_MAX_RANK];
    uint64_t offset; /* of its elements, little-endian and row-major, from the start of the data */
    size_t n_bytes;
} Weight;

typedef struct Weights Weights;

/* FRT_E_WEIGHTS_MISSING (no such file), _FILE, _WEIGHTS_BAD, _OUT_OF_MEMORY. */
frt_status weights_open(const char *path, Weights **weights, frt_error *err);

/* weights_open over bytes in memory, which are borrowed. `name` appears in messages. */
frt_status weights_parse(const void *bytes, size_t n_bytes, const char *name, Weights **weights,
                         frt_error *err);
void weights_close(Weights *weights);

/* NULL if the file has no tensor of this name. */
const Weight *weights_find(const Weights *weights, const char *name);

/* Copies bytes [at, at + n) of the tensor's elements to `to`. FRT_E_WEIGHTS_BAD when the file has
 * become shorter, FRT_E_FILE when it cannot be read. */
frt_status weights_read(const Weights *weights, const Weight *weight, size_t at, void *to, size_t n,
                        frt_error *err);

/* The word for a dtype in such files. */
const char *weights_dtype_word(frt_dtype dtype);

#endif
