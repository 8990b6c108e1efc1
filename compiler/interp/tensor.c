/* Host tensors: extents, and elements decoded from bytes by arithmetic. */
#include "interp/tensor.h"

#include "base/str.h"

#include <math.h>
#include <string.h>

int64_t tensor_n_elems(const Tensor *tensor) {
    int64_t n = 1;
    for (uint32_t k = 0; k < tensor->rank; k++)
        if (tensor->dims[k] == 0) return 0;
    for (uint32_t k = 0; k < tensor->rank; k++) {
        if (tensor->dims[k] < 0 || tensor->dims[k] > TENSOR_MAX_ELEMS / n) return -1;
        n *= tensor->dims[k];
    }
    return n;
}

bool tensor_new(Arena *arena, Dtype dtype, uint32_t rank, const int64_t *dims, Tensor *out) {
    Tensor tensor = {.dtype = dtype, .rank = rank}; /* a local, because `dims` may be out->dims */
    for (uint32_t k = 0; k < rank; k++) {
        if (dims[k] < 0) return false;
        tensor.dims[k] = dims[k];
    }
    int64_t n = tensor_n_elems(&tensor);
    if (n < 0) return false;
    tensor.data = arena_array(arena, double, (size_t)n);
    *out = tensor;
    return true;
}

bool tensor_same_shape(const Tensor *a, const Tensor *b) {
    if (a->rank != b->rank) return false;
    for (uint32_t k = 0; k < a->rank; k++)
        if (a->dims[k] != b->dims[k]) return false;
    return true;
}

void tensor_strides(const Tensor *tensor, int64_t strides[TENSOR_MAX_RANK]) {
    int64_t stride = 1;
    for (uint32_t k = tensor->rank; k-- > 0;) {
        strides[k] = stride;
        stride *= tensor->dims[k];
    }
}

const char *tensor_type_str(const Tensor *tensor, Arena *arena) {
    Text text = {.arena = arena};
    text_printf(&text, "%s[", dtype_name(tensor->dtype));
    for (uint32_t k = 0; k < tensor->rank; k++)
        text_printf(&text, "%s%lld", k ? ", " : "", (long long)tensor->dims[k]);
    text_puts(&text, "]");
    return text_str(&text);
}

/* Elements. */

double tensor_number(const Tensor *tensor, int64_t i) {
    return dtype_is_wide(tensor->dtype) ? (double)tensor_int(tensor, i) : tensor->data[i];
}

int64_t tensor_int(const Tensor *tensor, int64_t i) {
    int64_t value;
    if (!dtype_is_wide(tensor->dtype)) return (int64_t)tensor->data[i];
    memcpy(&value, &tensor->data[i], sizeof value);
    return value;
}

void tensor_set_int(Tensor *tensor, int64_t i, int64_t value) {
    value = dtype_wrap(tensor->dtype, value);
    if (dtype_is_wide(tensor->dtype))
        memcpy(&tensor->data[i], &value, sizeof value);
    else
        tensor->data[i] = (double)value;
}

void tensor_set_number(Tensor *tensor, int64_t i, double number) {
    if (dtype_is_int(tensor->dtype))
        tensor_set_int(tensor, i, dtype_saturate(tensor->dtype, number));
    else
        tensor->data[i] = dtype_round(tensor->dtype, number);
}

/* Bytes. */

void tensor_store(const Tensor *tensor, uint8_t *bytes) {
    int64_t n = tensor_n_elems(tensor), elem_bytes = dtype_bytes(tensor->dtype);
    for (int64_t i = 0; i < n; i++)
        if (dtype_is_int(tensor->dtype))
            dtype_store_int(tensor->dtype, tensor_int(tensor, i), bytes + i * elem_bytes);
        else
            dtype_store(tensor->dtype, tensor->data[i], bytes + i * elem_bytes);
}

void tensor_load(Tensor *tensor, const uint8_t *bytes) {
    int64_t n = tensor_n_elems(tensor), elem_bytes = dtype_bytes(tensor->dtype);
    for (int64_t i = 0; i < n; i++)
        if (dtype_is_int(tensor->dtype))
            tensor_set_int(tensor, i, dtype_load_int(tensor->dtype, bytes + i * elem_bytes));
        else
            tensor->data[i] = dtype_load(tensor->dtype, bytes + i * elem_bytes);
}
