/* Contents of tensors. See data.h. */
#include "cli/data.h"

#include "base/str.h"
#include "interp/tensor.h"

#include <math.h>
#include <string.h>

static const DataInfo infos[DATA_COUNT] = {
#define DATA(sym, name, doc) [DATA_##sym] = {name, doc},
#include "cli/data.def"
};

const DataInfo *data_info(DataKind kind) {
    return &infos[kind];
}

static uint64_t next_random(uint64_t *state) {
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

enum { N_DISTINCT = 1000003 }; /* large tensors repeat after this many elements */

/* Integers are 0 to 3, because they may be indices. */
static double random_number(Dtype dtype, uint64_t bits) {
    if (dtype_is_int(dtype)) return (double)(bits & 3);
    if (dtype_is_bool(dtype)) return (double)(bits & 1);
    return (double)(bits >> 11) * 0x1p-52 - 1;
}

static double special_number(Dtype dtype, uint64_t bits) {
    if (dtype_is_bool(dtype)) return (double)(bits & 1);
    if (dtype_is_wide(dtype)) {
        static const double integers[] = {-0x1p63, 0x1p63, 0, -1, 0x1p53, -0x1p32};
        return integers[bits % 6];
    }
    if (dtype_is_int(dtype)) {
        static const double integers[] = {INT32_MIN, INT32_MAX, 0, -1, 65536, -65537};
        return integers[bits % 6];
    }
    double max = dtype_max(dtype), least = dtype_ulp(dtype, 0);
    const double floats[] = {NAN,  INFINITY, -INFINITY, 0.0,   -0.0, max,
                             -max, least,    -least,    100.0, 2.5,  -0.5};
    return floats[bits % 12];
}

static double number_at(DataKind kind, Dtype dtype, size_t i, uint64_t bits) {
    bool is_bool = dtype_is_bool(dtype);
    switch (kind) {
    case DATA_RAMPS:
        if (is_bool) return (double)(i % 3 == 1);
        return dtype_is_int(dtype) ? (double)(i % 97) : (double)(i % 509) / 128 - 2;
    case DATA_INTEGERS:
        return is_bool ? (double)(bits & 1) : (double)(bits % 7) - 3;
    case DATA_SPECIAL:
        if (bits >> 32 & 3) break;
        return special_number(dtype, bits >> 40);
    case DATA_RANDOM:
    case DATA_COUNT:
        break;
    }
    return random_number(dtype, bits);
}

void data_fill(DataKind kind, uint64_t seed, const char *name, Dtype dtype, uint8_t *bytes,
               size_t n_bytes) {
    uint64_t state = hash_bytes(STR_HASH_SEED ^ seed, name, strlen(name));
    size_t elem_bytes = dtype_bytes(dtype), n_filled = N_DISTINCT * elem_bytes;
    if (n_filled > n_bytes) n_filled = n_bytes;
    for (size_t i = 0; i < n_filled; i += elem_bytes) {
        double number = number_at(kind, dtype, i / elem_bytes, next_random(&state));
        dtype_store(dtype, dtype_round(dtype, number), bytes + i);
    }
    while (n_filled < n_bytes) {
        size_t rest = n_bytes - n_filled, n = n_filled < rest ? n_filled : rest;
        memcpy(bytes + n_filled, bytes, n);
        n_filled += n;
    }
}
