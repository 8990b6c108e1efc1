/* Tensors on the host. Elements are held in doubles, which represent every element of every dtype
 * exactly, except of i64: there a double holds the bits of the integer. The file converts elements
 * to and from the bytes that a program stores. Row-major, no padding. */
#ifndef FUSEC_INTERP_TENSOR_H
#define FUSEC_INTERP_TENSOR_H

#include "base/arena.h"
#include "ir/dtype.h"

#include <stddef.h>

enum { TENSOR_MAX_RANK = 16, TENSOR_MAX_ELEMS = 1 << 28 };

typedef struct Tensor {
    Dtype dtype;
    uint32_t rank;
    int64_t dims[TENSOR_MAX_RANK];
    double *data; /* tensor_n_elems numbers, each representable in dtype, or an i64's bits */
} Tensor;

/* A tensor of zeros on the arena. False when it would have more than TENSOR_MAX_ELEMS elements or
 * when an extent is negative. */
bool tensor_new(Arena *arena, Dtype dtype, uint32_t rank, const int64_t *dims, Tensor *out);
/* An element as a number: of i64 the nearest double. */
double tensor_number(const Tensor *tensor, int64_t i);
/* An element of an integer dtype or bool. tensor_set_int wraps the value to the dtype. */
int64_t tensor_int(const Tensor *tensor, int64_t i);
void tensor_set_int(Tensor *tensor, int64_t i, int64_t value);
/* Stores the element nearest to `number`. */
void tensor_set_number(Tensor *tensor, int64_t i, double number);
/* Product of the extents; -1 beyond TENSOR_MAX_ELEMS. */
int64_t tensor_n_elems(const Tensor *tensor);
bool tensor_same_shape(const Tensor *a, const Tensor *b);
/* Row-major strides in elements. */
void tensor_strides(const Tensor *tensor, int64_t strides[TENSOR_MAX_RANK]);
/* `f32[3, 5]` on the arena. */
const char *tensor_type_str(const Tensor *tensor, Arena *arena);

/* Stores or loads all elements: n_elems * dtype_bytes bytes. */
void tensor_store(const Tensor *tensor, uint8_t *bytes);
void tensor_load(Tensor *tensor, const uint8_t *bytes);

#endif
