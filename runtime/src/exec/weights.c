/* Reading .safetensors: 8 bytes of little-endian header length, a JSON object of {name: {dtype,
 * shape, data_offsets}}, then the data without gaps. Every number of the header is checked against
 * the file before it becomes a pointer. */
#define _DEFAULT_SOURCE
#include "exec/weights.h"

#include "host/error.h"
#include "manifest/expr.h"
#include "host/mem.h"
#include "host/read.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_HEADER_BYTES 100000000u

enum { LENGTH_BYTES = 8 }; /* size of the header length */

struct Weights {
    char name[256]; /* for messages */
    char *header;   /* for a file: memory with the header length and the JSON text */
    int file;       /* -1: the elements are at `data` */
    const unsigned char *data;
    uint64_t data_begin; /* for a file: offset of the first element */
    size_t n_data;
    json_t *root; /* owns the strings of `list` */
    Weight *list; /* sorted by offset, then by size */
    size_t n;
};

static const struct {
    const char *word;
    int64_t n_bytes;
} dtype_words[] = {
    {"F64", 8}, {"F32", 4}, {"F16", 2},  {"BF16", 2},    {"I64", 8},
    {"I32", 4}, {"I16", 2}, {"I8", 1},   {"U64", 8},     {"U32", 4},
    {"U16", 2}, {"U8", 1},  {"BOOL", 1}, {"F8_E4M3", 1}, {"F8_E5M2", 1},
};

const char *weights_dtype_word(frt_dtype dtype) {
    static const char *const words[FRT_DTYPE_COUNT] = {
#define X(symbol, number, name, safetensors, bytes, map) [number] = safetensors,
#include <frt_dtype.def>
#undef X
    };
    return words[dtype];
}

static frt_status bad(const Weights *w, frt_error *err, const char *tensor, const char *why) {
    return tensor ? frt_fail(err, FRT_E_WEIGHTS_BAD, "%s: tensor `%.200s` %s", w->name, tensor, why)
                  : frt_fail(err, FRT_E_WEIGHTS_BAD, "%s: %s", w->name, why);
}

/* Reads a JSON array of at most `max` integers, each at least 0. */
static bool read_numbers(const json_t *array, size_t max, int64_t *numbers, size_t *n) {
    *n = json_array_size(array);
    if (!json_is_array(array) || *n > max) {
        return false;
    }
    for (size_t i = 0; i < *n; i++) {
        const json_t *item = json_array_get(array, i);
        numbers[i] = json_integer_value(item);
        if (!json_is_integer(item) || numbers[i] < 0) {
            return false;
        }
    }
    return true;
}

/* Bytes of a tensor of this shape and dtype; -1 if they overflow, -2 for an unknown dtype. */
static int64_t span_of(const Weight *weight) {
    int64_t n = -2;
    for (size_t i = 0; i < sizeof dtype_words / sizeof dtype_words[0]; i++) {
        if (strcmp(dtype_words[i].word, weight->dtype) == 0) {
            n = dtype_words[i].n_bytes;
        }
    }
    bool is_empty = false;
    for (int32_t i = 0; n > 0 && i < weight->rank; i++) {
        int64_t extent = weight->dims[i];
        is_empty = is_empty || extent == 0;
        if (!checked_mul(n, extent ? extent : 1, &n)) {
            return -1;
        }
    }
    return n > 0 && is_empty ? 0 : n;
}

static frt_status read_weight(Weights *w, const char *name, const json_t *entry, frt_error *err) {
    Weight weight = {.name = name};
    int64_t offsets[2];
    size_t n_offsets;
    size_t rank;
    if (!json_is_object(entry) || json_object_size(entry) != 3) {
        return bad(w, err, name, "is not {dtype, shape, data_offsets}");
    }
    weight.dtype = json_string_value(json_object_get(entry, "dtype"));
    if (!weight.dtype) {
        return bad(w, err, name, "has no dtype");
    }
    if (!read_numbers(json_object_get(entry, "shape"), FRT_MAX_RANK, weight.dims, &rank)) {
        return bad(w, err, name, "has no shape of at most 8 extents");
    }
    weight.rank = (int32_t)rank;
    if (!read_numbers(json_object_get(entry, "data_offsets"), 2, offsets, &n_offsets) ||
        n_offsets != 2 || offsets[0] > offsets[1]) {
        return bad(w, err, name, "has no pair of ascending data_offsets");
    }
    if ((uint64_t)offsets[1] > w->n_data) {
        return frt_fail(err, FRT_E_WEIGHTS_BAD,
                        "%s: tensor `%.200s` ends at byte %lld of the data, but the file has %zu: "
                        "it is cut short",
                        w->name, name, (long long)offsets[1], w->n_data);
    }
    int64_t span = span_of(&weight);
    if (span != -2 && span != offsets[1] - offsets[0]) {
        return bad(w, err, name, "has data_offsets that do not fit its shape and dtype");
    }
    weight.offset = (uint64_t)offsets[0];
    weight.n_bytes = (size_t)(offsets[1] - offsets[0]);
    w->list[w->n++] = weight;
    return FRT_OK;
}

static int compare_weights(const void *a, const void *b) {
    const Weight *x = a;
    const Weight *y = b;
    if (x->offset != y->offset) {
        return x->offset < y->offset ? -1 : 1;
    }
    return (x->n_bytes > y->n_bytes) - (x->n_bytes < y->n_bytes);
}

/* Checks that the tensors tile the data: no overlap, no gap, no rest. */
static frt_status check_tiling(Weights *w, frt_error *err) {
    uint64_t end = 0;
    qsort(w->list, w->n, sizeof *w->list, compare_weights);
    for (size_t i = 0; i < w->n; i++) {
        uint64_t offset = w->list[i].offset;
        if (offset != end) {
            return bad(w, err, w->list[i].name,
                       offset < end ? "overlaps another tensor" : "follows a hole in the data");
        }
        end = offset + w->list[i].n_bytes;
    }
    if (end != w->n_data) {
        return bad(w, err, NULL, "there is data after the last tensor");
    }
    return FRT_OK;
}

static frt_status read_header(Weights *w, const char *header, size_t n_header, frt_error *err) {
    json_error_t why;
    if (n_header == 0 || header[0] != '{') {
        return bad(w, err, NULL, "the header is not a JSON object");
    }
    w->root = json_loadb(header, n_header, JSON_REJECT_DUPLICATES, &why);
    if (!json_is_object(w->root)) {
        return frt_fail(err, FRT_E_WEIGHTS_BAD, "%s: the header is not valid JSON: %.160s", w->name,
                        why.text);
    }
    w->list = mem_alloc(json_object_size(w->root), sizeof *w->list);
    if (!w->list) {
        return frt_fail_memory(err, json_object_size(w->root) * sizeof *w->list);
    }
    const char *name;
    json_t *entry;
    json_object_foreach(w->root, name, entry) {
        frt_status status = FRT_OK;
        if (strcmp(name, "__metadata__") != 0) {
            status = read_weight(w, name, entry, err);
        } else if (!json_is_object(entry)) {
            status = bad(w, err, NULL, "__metadata__ is not an object");
        }
        if (status) {
            return status;
        }
    }
    return check_tiling(w, err);
}

/* Reads the header length from the first 8 of the file's `n_bytes` bytes. */
static frt_status read_length(Weights *w, const unsigned char *p, uint64_t n_bytes,
                              size_t *n_header, frt_error *err) {
    uint64_t n = 0;
    for (int i = LENGTH_BYTES - 1; i >= 0; i--) {
        n = n << 8 | p[i];
    }
    if (n > MAX_HEADER_BYTES || n > n_bytes - LENGTH_BYTES) {
        return bad(w, err, NULL,
                   "the header's length lies outside the file: not a .safetensors "
                   "file, or cut short");
    }
    *n_header = (size_t)n;
    w->data_begin = LENGTH_BYTES + n;
    w->n_data = (size_t)(n_bytes - w->data_begin);
    return FRT_OK;
}

static frt_status parse(Weights *w, const void *bytes, size_t n_bytes, frt_error *err) {
    const unsigned char *p = bytes;
    size_t n_header;
    if (n_bytes < LENGTH_BYTES) {
        return bad(w, err, NULL, "too short for a .safetensors file");
    }
    frt_status status = read_length(w, p, n_bytes, &n_header, err);
    if (status) {
        return status;
    }
    w->data = p + w->data_begin;
    return read_header(w, (const char *)p + LENGTH_BYTES, n_header, err);
}

static frt_status new_weights(const char *name, Weights **weights, frt_error *err) {
    Weights *w = *weights = mem_alloc(1, sizeof *w);
    if (!w) {
        return frt_fail_memory(err, sizeof *w);
    }
    w->file = -1;
    snprintf(w->name, sizeof w->name, "%s", name);
    return FRT_OK;
}

/* Returns the weights in *weights, or closes them on an error. */
static frt_status give(Weights *w, frt_status status, Weights **weights) {
    if (status) {
        weights_close(w);
        return status;
    }
    *weights = w;
    return FRT_OK;
}

frt_status weights_parse(const void *bytes, size_t n_bytes, const char *name, Weights **weights,
                         frt_error *err) {
    Weights *w;
    frt_status status = new_weights(name, &w, err);
    return status ? status : give(w, parse(w, bytes, n_bytes, err), weights);
}

/* Reads bytes [at, at + n) of the file, all of them. */
static frt_status read_file(const Weights *w, uint64_t at, void *to, size_t n, frt_error *err) {
    int64_t got = read_at(w->file, to, n, at);
    if (got < 0) {
        return frt_fail(err, FRT_E_FILE, "cannot read %s: %s", w->name, strerror(errno));
    }
    return (size_t)got < n ? bad(w, err, NULL, "was cut short while it was read") : FRT_OK;
}

static frt_status parse_file(Weights *w, const char *path, frt_error *err) {
    struct stat info;
    unsigned char length[LENGTH_BYTES];
    size_t n_header = 0;
    if (fstat(w->file, &info) != 0 || !S_ISREG(info.st_mode)) {
        return frt_fail(err, FRT_E_FILE, "%s is no regular file", path);
    }
    if (info.st_size == 0) {
        return frt_fail(err, FRT_E_WEIGHTS_BAD, "%s is empty", path);
    }
    if (info.st_size < LENGTH_BYTES) {
        return bad(w, err, NULL, "too short for a .safetensors file");
    }
    frt_status status = read_file(w, 0, length, sizeof length, err);
    if (!status) {
        status = read_length(w, length, (uint64_t)info.st_size, &n_header, err);
    }
    if (status) {
        return status;
    }
    w->header = mem_alloc(n_header + 1, 1);
    if (!w->header) {
        return frt_fail_memory(err, n_header + 1);
    }
    status = read_file(w, LENGTH_BYTES, w->header, n_header, err);
    return status ? status : read_header(w, w->header, n_header, err);
}

frt_status weights_open(const char *path, Weights **weights, frt_error *err) {
    /* O_NONBLOCK, because opening a FIFO would wait. It is refused like every file that is not
     * regular. */
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) {
        return frt_fail(err, errno == ENOENT ? FRT_E_WEIGHTS_MISSING : FRT_E_FILE,
                        "cannot open weights file %s: %s", path, strerror(errno));
    }
    Weights *w;
    frt_status status = new_weights(path, &w, err);
    if (status) {
        close(file);
        return status;
    }
    w->file = file;
    return give(w, parse_file(w, path, err), weights);
}

frt_status weights_read(const Weights *w, const Weight *weight, size_t at, void *to, size_t n,
                        frt_error *err) {
    if (w->file >= 0) {
        return read_file(w, w->data_begin + weight->offset + at, to, n, err);
    }
    memcpy(to, w->data + weight->offset + at, n);
    return FRT_OK;
}

void weights_close(Weights *w) {
    if (!w) {
        return;
    }
    if (w->file >= 0) {
        close(w->file);
    }
    json_decref(w->root);
    mem_free(w->list);
    mem_free(w->header);
    mem_free(w);
}

const Weight *weights_find(const Weights *w, const char *name) {
    for (size_t i = 0; i < w->n; i++) {
        if (strcmp(w->list[i].name, name) == 0) {
            return &w->list[i];
        }
    }
    return NULL;
}
